/*
 * replicate: the numbers of a row by all threads of the row (jit/moves/move_impl.h).
 *
 * A row-wise kernel has three kinds of statements directly in the loop over rows: loops over columns, loops that combine
 * partial results, and assignments of one number for the row. Were the last two the affair of one thread, the others
 * would wait for it, and fetch its result from shared memory. Here each of N threads does them: the local of such a number
 * has an element for each thread, and N partial results are combined by a butterfly, in which threads exchange registers:
 * in step h thread r adds that of thread r +- h, until each has the sum of all. More than LANES threads first add up what
 * lies LANES apart.
 */
#include "jit/moves/move_impl.h"

#include <string.h>

enum { LANES = 32 }; /* that exchange registers */

typedef struct replicating {
    dc_nest_edit *v;
    int64_t n;
    uint32_t axis;  /* A.r */
    uint32_t terms; /* A.c, partial results that one thread adds up; DC_NO_AXIS: none so far */
    uint32_t of;    /* A */
    bool *number;   /* by buffer: a number of the row */
    uint32_t step[DC_DTYPE__COUNT]
                 [2]; /* what steps of butterflies store to in turn, by type; 0: none so far */
} replicating;

/* The loop directly in `loop` that a statement is in; NULL: none. */
static const dc_stmt *loop_inside(const dc_path *path, const dc_stmt *loop)
{
    for (; path != NULL && path->up != NULL; path = path->up)
        if (path->up->loop == loop)
            return path->loop;
    return NULL;
}

/* Which locals are numbers of a row: of one element, used in the loop alone, and in more than one of those inside. */
static void find_numbers(replicating *r, const dc_stmt *loop)
{
    const dc_kernel *k = r->v->k;
    const dc_stmt **only = DC_NEW_ARRAY(r->v->tmp, const dc_stmt *, k->buf.n);
    bool *several = DC_NEW_ARRAY(r->v->tmp, bool, k->buf.n);
    const dc_accesses all = dc_nest_accesses(r->v, k->root, NULL);
    r->number = DC_NEW_ARRAY(r->v->tmp, bool, k->buf.n);
    for (uint32_t b = 0; b < k->buf.n; b++)
        r->number[b] = k->buf.at[b].scope == DC_SCOPE_LOCAL && k->buf.at[b].count == 1;
    for (uint32_t i = 0; i < all.n; i++) {
        const uint32_t b = all.at[i].buf;
        const dc_stmt *in = loop_inside(all.at[i].path, loop);
        if (!dc_path_has(all.at[i].path, loop) || all.at[i].tile)
            r->number[b] = false;
        several[b] = several[b] || in == NULL || (only[b] != NULL && only[b] != in);
        only[b] = in;
    }
    for (uint32_t b = 0; b < k->buf.n; b++)
        r->number[b] = r->number[b] && several[b];
}

/* Numbers that a statement loads are those of thread `at`. */
static void load_own(replicating *r, dc_stmt *s, dc_ix at)
{
    dc_kernel *k = r->v->k;
    const dc_accesses a = dc_nest_accesses_of(r->v, s, NULL);
    dc_vx_map map = dc_nest_vx_map(r->v);
    for (uint32_t i = 0; i < a.n; i++)
        if (a.at[i].load != 0 && r->number[a.at[i].buf])
            map.to[a.at[i].load] = dc_vx_load(k, a.at[i].buf, at, a.at[i].pred);
    dc_nest_replace(r->v, s, map);
}

/* Assignments -------------------------------------------------------------------------------- */

/* Of numbers by all threads, of other things by the first. */
static bool replicate_set(replicating *r, dc_stmt **slot)
{
    dc_kernel *k = r->v->k;
    dc_stmt *s = *slot, *next = s->next;
    const dc_ix thread = dc_ix_axis(k, r->axis);
    uint32_t numbers = 0;
    if (s->kind == DC_STMT_TILE)
        return dc_nest_refuse(r->v, "a matrix instruction is beside the loops");
    load_own(r, s, thread);
    for (uint32_t i = 0; i < s->nput; i++)
        if (r->number[s->put[i].buf]) {
            s->put[i].at = thread;
            numbers++;
        }
    if (numbers != 0 && numbers != s->nput)
        return dc_nest_refuse(r->v, "an assignment stores a number of the row and another element");
    if (numbers == 0)
        s->pred = dc_pred_and(k, s->pred, thread, 1);
    s->next = NULL;
    *slot = dc_stmt_loop(k, r->axis, s);
    (*slot)->next = next;
    return true;
}

/* Partial results ---------------------------------------------------------------------------- */

/* c[r] = a[r] (combine) a[other]; a loop over all threads. */
static dc_stmt *combine(replicating *r, dc_op op, dc_dtype t, uint32_t to, dc_ix mine, uint32_t a,
                        dc_ix x, uint32_t b, dc_ix y)
{
    dc_kernel *k = r->v->k;
    const dc_vx in[2] = {dc_vx_load(k, a, x, (dc_pred){0}), dc_vx_load(k, b, y, (dc_pred){0})};
    dc_stmt *s = dc_stmt_set(k, 1);
    s->put[0] = (dc_put){to, mine, dc_vx_op(k, op, t, in, 2)};
    return dc_stmt_loop(k, r->axis, s);
}

/* LANES sums of what lies LANES apart, which each LANES threads have. */
static bool first_sums(replicating *r, dc_op op, dc_dtype t, uint32_t from, uint32_t to,
                       dc_stmt **out)
{
    dc_kernel *k = r->v->k;
    const dc_ix thread = dc_ix_axis(k, r->axis), lane = dc_ix_mod(k, thread, LANES);
    dc_stmt *init = dc_stmt_set(k, 1);
    if (r->terms == DC_NO_AXIS &&
        !dc_move_new_axis(r->v, &r->terms, r->of, r->n / LANES - 1, true, "c"))
        return false;
    const dc_ix place = dc_ix_add(
        k, dc_ix_mul(k, dc_ix_add(k, dc_ix_axis(k, r->terms), dc_ix_const(k, 1)), LANES), lane);
    init->put[0] = (dc_put){to, thread, dc_vx_load(k, from, lane, (dc_pred){0})};
    dc_stmt *add = combine(r, op, t, to, thread, to, thread, from, place)->body;
    add->reduces = true;
    init->next = dc_stmt_loop(k, r->terms, add);
    *out = dc_stmt_loop(k, r->axis, init);
    return true;
}

/* Is it a loop that combines n partial results, one for each thread, to a number of the row? */
static bool is_combination(replicating *r, const dc_stmt *s, dc_vx_node *sum, dc_vx_node *part)
{
    dc_kernel *k = r->v->k;
    const dc_stmt *set = s->body;
    if (!k->axis.at[s->axis].reduce || k->axis.at[s->axis].extent != r->n || set == NULL ||
        set->next != NULL || set->kind != DC_STMT_SET || !set->reduces || set->nput != 1 ||
        !r->number[set->put[0].buf])
        return false;
    *sum = k->vx.at[set->put[0].value];
    if (sum->kind != DC_VX_OP || sum->n != 2)
        return false;
    *part = k->vx.at[sum->in[1]];
    return (sum->op == DC_OP_ADD || sum->op == DC_OP_MUL || sum->op == DC_OP_MAX ||
            sum->op == DC_OP_MIN) &&
           part->kind == DC_VX_LOAD && part->pred.n == 0 && part->at == dc_ix_axis(k, s->axis) &&
           k->buf.at[part->buf].scope == DC_SCOPE_LOCAL;
}

/* Where a step stores to, when it reads `from`. */
static uint32_t next_step(replicating *r, dc_dtype t, uint32_t like, uint32_t from)
{
    uint32_t *step = r->step[t];
    const int which = step[0] != 0 && step[0] == from;
    if (step[which] == 0)
        step[which] = dc_move_new_part(r->v, like, t, r->n);
    return step[which];
}

static bool butterfly(replicating *r, dc_stmt **slot, const dc_vx_node *sum, uint32_t part)
{
    dc_kernel *k = r->v->k;
    const dc_stmt *old = *slot, *set = old->body;
    const uint32_t number = set->put[0].buf;
    const dc_dtype t = (dc_dtype)sum->dtype;
    const dc_ix thread = dc_ix_axis(k, r->axis);
    const int64_t width = dc_min_i64(r->n, LANES);
    const dc_ix place = dc_ix_mod(k, thread, width);
    const dc_ix first = dc_ix_mul(k, dc_ix_div(k, thread, width), width);
    dc_stmt **end = slot, *next = old->next;
    if (r->n > LANES) {
        const uint32_t to = next_step(r, t, number, part);
        if (!first_sums(r, (dc_op)sum->op, t, part, to, end))
            return false;
        end = &(*end)->next;
        part = to;
    }
    for (int64_t h = width / 2; h > 0; h /= 2) {
        const uint32_t to = next_step(r, t, number, part);
        const dc_ix other = dc_ix_mod(k, dc_ix_add(k, place, dc_ix_const(k, h)), width);
        *end = combine(r, (dc_op)sum->op, t, to, thread, part, thread, part,
                       dc_ix_add(k, first, other));
        end = &(*end)->next;
        part = to;
    }
    *end = combine(r, (dc_op)sum->op, t, number, thread, number, thread, part, thread);
    (*end)->body->pred = set->pred;
    (*end)->next = next;
    return true;
}

/* Loops -------------------------------------------------------------------------------------- */

/* In loops over n iterations each has numbers of its own, elsewhere they are those of the first. */
static bool read_inside(replicating *r, dc_stmt *first, dc_ix thread, bool found)
{
    dc_kernel *k = r->v->k;
    for (dc_stmt *s = first; s != NULL; s = s->next) {
        if (s->kind == DC_STMT_LOOP) {
            const dc_axis *a = &k->axis.at[s->axis];
            const bool threads = !found && !a->reduce && a->extent == r->n;
            if (!read_inside(r, s->body, threads ? dc_ix_axis(k, s->axis) : thread,
                             found || threads))
                return false;
            continue;
        }
        for (uint32_t i = 0; i < s->nput; i++)
            if (r->number[s->put[i].buf])
                return dc_nest_refuse(r->v, "%s is set inside of a loop",
                                      k->buf.at[s->put[i].buf].name);
        load_own(r, s, thread);
    }
    return true;
}

static bool replicate_in_loop(dc_nest_edit *v, dc_stmt **slot, void *arg)
{
    replicating *r = arg;
    dc_kernel *k = v->k;
    dc_stmt *loop = *slot;
    const uint32_t nbuf = k->buf.n; /* butterflies make more */
    find_numbers(r, loop);
    memset(r->step, 0, sizeof r->step); /* iterations of two loops share nothing */
    for (dc_stmt **s = &loop->body; *s != NULL;) {
        dc_stmt *const next = (*s)->next;
        dc_vx_node sum, part;
        bool done;
        if ((*s)->kind != DC_STMT_LOOP) {
            done = replicate_set(r, s);
        } else if (is_combination(r, *s, &sum, &part)) {
            done = butterfly(r, s, &sum, part.buf);
        } else {
            (*s)->next = NULL;
            done = read_inside(r, *s, dc_ix_const(k, 0), false);
            (*s)->next = next;
        }
        if (!done)
            return false;
        while (*s != next)
            s = &(*s)->next;
    }
    for (uint32_t b = 0; b < nbuf; b++)
        if (r->number[b])
            k->buf.at[b].count = r->n;
    return true;
}

bool dc_move_replicate(dc_nest_edit *v, const dc_move *m)
{
    const uint32_t axis = m->axis[0];
    replicating r = {.v = v, .n = m->count, .terms = DC_NO_AXIS, .of = axis};
    const bool whole =
        r.n <= LANES ? r.n >= 2 && (r.n & (r.n - 1)) == 0 : r.n % LANES == 0 && r.n <= 1024;
    if (!dc_move_has_serial_axis(v, m, axis))
        return false;
    if (!whole)
        return dc_nest_refuse(v, "threads of a row are a power of two, or a multiple of %d", LANES);
    return dc_move_new_axis(v, &r.axis, axis, r.n, false, "r") &&
           dc_nest_each_loop(v, &v->k->root, axis, replicate_in_loop, &r);
}
