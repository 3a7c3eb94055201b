/*
 * Schedules by rule (jit/schedule/schedule.h). Each kind of kernel has a list of rules, which are tried in order: a rule whose
 * loops are not there declines, the last one never does. The sketches over the nests that lowering writes:
 *
 *   map      no reduction: the last axis in vectors (jit/schedule/schedule_map.c).
 *   columns  a reduction whose operands are read along the last output axis n with stride 1: sums
 *            over leading axes. Accumulators in registers, vectors along n, the reduction outside.
 *   product  the same with an operand that does not move along n (jit/schedule/schedule_contraction.c).
 *   rows     reductions read along their own axes, and what is stored by rows beside them
 *            (jit/schedule/schedule_rows.c).
 *
 * Where no axis is read along memory, rows and columns are used with lanes that are apart in memory
 * (one scalar load each): arithmetic is by vectors, and accumulators are independent. What
 * is left keeps its naive loops. A move that does not apply ends the sketch; what was done before it
 * stands, since every prefix is a schedule.
 */
#include "jit/schedule/schedule.h"

#include "jit/base/tuning.h"
#include "jit/moves/move.h"
#include "jit/schedule/schedule_impl.h"

#include <stdio.h>
#include <string.h>

int64_t dc_sketch_extent(const dc_sketch *s, uint32_t axis)
{
    return s->k->axis.at[axis].extent;
}

int64_t dc_sketch_lanes(const dc_sketch *s, int64_t extent)
{
    int64_t p = 1;
    while (p < extent && p < s->lanes)
        p *= 2;
    return p;
}

/* Blocked summation -------------------------------------------------------------------------- */

/* Additions of one chain; reductions of four times as many are long. */
enum { CHAIN = DC_TUNE_CHAIN_TERMS / 4 };

/* The largest divisor of n from most / 4 to most, as a multiple of `of`; most if there is none. */
static int64_t fitting_block(int64_t n, int64_t most, int64_t of)
{
    for (int64_t b = most - most % of; b >= of && b >= most / 4; b -= of)
        if (n % b == 0)
            return b;
    return most;
}

void dc_sketch_subtotal(dc_sketch *s, dc_chain *c)
{
    const dc_vx_node sum = s->k->vx.at[c->total];
    int64_t terms = c->inside, inner = c->inside, side = c->side, most = CHAIN;
    int at = c->n - 1; /* the loop to be split */
    for (int i = 0; i < c->n; i++)
        terms *= i < at ? c->extent[i] : (c->extent[i] + side - 1) / side;
    if (sum.op != DC_OP_ADD || !dc_dtype_is_float((dc_dtype)sum.dtype) || c->n == 0 ||
        terms < DC_TUNE_CHAIN_TERMS)
        return;
    while (most * most < terms) /* as many sums as each has terms */
        most *= 2;
    while (at > 0 && inner * c->extent[at] <= most * side) {
        inner *= (c->extent[at--] + side - 1) / side;
        side = 1;
    }
    const int64_t block = fitting_block(c->extent[at], dc_max_i64(most / inner, 1) * side, side);
    if (block == 1 || c->extent[at] < 2 * block) { /* each iteration of a loop is enough */
        at = at < c->n - 1 ? at : c->n - 2;
        if (at >= 0)
            dc_do_subtotal(s, c->red[at]);
        return;
    }
    dc_split r;
    if (!dc_do_split(s, c->red[at], block, &r))
        return;
    dc_do_subtotal(s, r.o);
    memmove(&c->red[at + 1], &c->red[at], (size_t)(c->n - at) * sizeof *c->red);
    memmove(&c->extent[at + 1], &c->extent[at], (size_t)(c->n - at) * sizeof *c->extent);
    c->red[at] = r.o;
    c->red[at + 1] = r.i;
    c->extent[at] = (c->extent[at] + block - 1) / block;
    c->extent[at + 1] = block;
    c->n++;
}

/* Columns ------------------------------------------------------------------------------------ */

static void mark_values(const dc_kernel *k, const dc_stmt *first, bool *used)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        mark_values(k, t->body, used);
        dc_pred_mark(k, t->pred, used);
        for (uint32_t i = 0; i < t->nput; i++) {
            used[t->put[i].value] = true;
            dc_ix_mark(k, t->put[i].at, used);
        }
    }
}

bool *dc_sketch_used(const dc_kernel *k, dc_arena *a)
{
    bool *used = DC_NEW_ARRAY(a, bool, k->vx.n);
    mark_values(k, k->root, used);
    dc_vx_mark_parts(k, used);
    return used;
}

int dc_sketch_loads(dc_kernel *k, uint32_t buf)
{
    const dc_mark mark = dc_arena_mark(&k->arena);
    const bool *used = dc_sketch_used(k, &k->arena);
    int n = 0;
    for (dc_vx v = 1; v < k->vx.n; v++)
        n += used[v] && k->vx.at[v].kind == DC_VX_LOAD && k->vx.at[v].buf == buf;
    dc_arena_rewind(&k->arena, mark);
    return n;
}

bool dc_sketch_hoist(dc_sketch *s, const uint32_t *red, int nred, uint32_t axis)
{
    for (int i = 0; i < nred; i++)
        if (!dc_do_reorder(s, red[i], axis))
            return false;
    return true;
}

/*
 * Vectors of a strip of columns: many, so that rows are read in long pieces, but fewer where there
 * would be few work items for threads.
 */
static int64_t strip_vectors(const dc_sketch *s, const dc_shape *p, int64_t vectors)
{
    int64_t others = 1, sums = 1, most = s->t->vector_registers / 2;
    for (int i = 0; i < p->nout - 1; i++)
        others *= dc_sketch_extent(s, p->out[i]);
    for (const dc_stmt *add = p->add->next; add != NULL; add = add->next)
        sums++;
    most = dc_max_i64(most / sums, 1);
    while (most > DC_TUNE_STRIP_VECTORS && others * vectors / most < DC_TUNE_WORK_ITEMS)
        most /= 2;
    most = dc_min_i64(vectors, most);
    most = dc_sketch_knob(s, DC_KNOB_STRIP, most, (const int32_t[]){1, 2, 4, 8, 12, 16, 0},
                          dc_min_i64(vectors, s->t->vector_registers - 2));
    while (most > 1 && vectors % most != 0)
        most--;
    return most;
}

/* Where work items are few, as of reductions in two steps, strips of columns are work items. */
static bool grid_of_strips(dc_sketch *s, const dc_shape *p, uint32_t strips)
{
    uint32_t all;
    if (p->nout == 2 && dc_sketch_extent(s, p->out[0]) < DC_TUNE_SPLIT_ITEMS &&
        !dc_do_fuse(s, p->out[0], strips, &all))
        return false;
    return dc_sketch_grid(s);
}

bool dc_sketch_along_last(dc_sketch *s, const dc_shape *p, dc_strides *along)
{
    if (p->add == NULL || p->by_rows || p->nout == 0 ||
        dc_sketch_extent(s, p->out[p->nout - 1]) < 2)
        return false;
    *along = dc_strides_of(s->k, dc_shape_term(s->k, p), p->out[p->nout - 1]);
    return along->unit && !along->strided && !along->irregular;
}

static bool schedule_columns(dc_sketch *s, dc_shape *p, bool *is)
{
    dc_strides along;
    *is = dc_sketch_along_last(s, p, &along);
    if (!*is)
        return true;
    dc_chain sum = {.total = p->add->put[0].value, .n = p->nred, .side = 1, .inside = 1};
    for (int i = 0; i < p->nred; i++) {
        sum.red[i] = p->red[i];
        sum.extent[i] = dc_sketch_extent(s, p->red[i]);
    }
    dc_sketch_subtotal(s, &sum);
    const uint32_t n = p->out[p->nout - 1];
    const int64_t extent = dc_sketch_extent(s, n), lanes = dc_sketch_lanes(s, extent);
    const int64_t nv = strip_vectors(s, p, (extent + lanes - 1) / lanes);
    dc_split strip, vectors;
    return dc_do_split(s, n, nv * lanes, &strip) && dc_sketch_hoist(s, sum.red, sum.n, strip.i) &&
           dc_do_split(s, strip.i, lanes, &vectors) && dc_do_vectorize(s, vectors.i) &&
           dc_do_unroll(s, vectors.o) && grid_of_strips(s, p, strip.o);
}

/* By kind ------------------------------------------------------------------------------------- */

bool dc_sketch_try(dc_sketch *s, dc_shape *p, dc_sketch_rule *const *rules)
{
    bool is = false, done = true;
    for (; !is && *rules != NULL; rules++)
        done = (*rules)(s, p, &is);
    return done;
}

/*
 * The same rules serve all sums, since a sum by element may be one of products. Vectors lie along memory if an axis does, else
 * lanes are apart in memory.
 */
#define SUMS                                                                      \
    dc_schedule_map, dc_sketch_merge_rows, dc_schedule_conv, dc_schedule_product, \
        schedule_columns, dc_schedule_rows

DC_RULES(map, dc_schedule_map, dc_schedule_rows);
DC_RULES(reduction, SUMS);
DC_RULES(contraction, SUMS);
DC_RULES(convolution, SUMS);
DC_RULES(scatter, dc_schedule_map, dc_schedule_rows);
DC_RULES(stage, dc_schedule_map, dc_schedule_rows);
DC_RULES(transform, dc_schedule_lanes);
DC_RULES(rows, dc_schedule_map, schedule_columns, dc_schedule_rows);
DC_RULES(attention, dc_schedule_attention);

static dc_sketch_rule *const *const by_kind[] = {
#define KIND(id, letter) id##_rules,
#include "jit/base/kinds.def"
#undef KIND
};

/* axes of reshapes ----------------------------------------------------------------------------- */

/* Is it an axis, by itself? Which. */
static bool is_axis(const dc_kernel *k, dc_ix a, uint32_t *axis)
{
    const dc_ix_node *x = &k->ix.at[a];
    if (x->c != 0 || x->n != 1 || x->term[0].coef != 1 ||
        k->atom.at[x->term[0].atom].kind != DC_ATOM_AXIS)
        return false;
    *axis = k->atom.at[x->term[0].atom].axis;
    return true;
}

/* An axis that a load divides by a divisor of its extent, the smallest of them; 0: there is none. */
static int64_t divided_axis(const dc_kernel *k, dc_ix at, uint32_t *axis)
{
    const dc_ix_node *x = &k->ix.at[at];
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &k->atom.at[x->term[i].atom];
        if (t->kind != DC_ATOM_DIV && t->kind != DC_ATOM_MOD)
            continue;
        const int64_t inner = divided_axis(k, t->of, axis);
        if (inner != 0)
            return inner;
        if (is_axis(k, t->of, axis) && t->k >= DC_TUNE_RESHAPED_PART &&
            t->k < k->axis.at[*axis].extent && k->axis.at[*axis].extent % t->k == 0)
            return t->k;
    }
    return 0;
}

/*
 * Behind a reshape an access map has divisions in it, along which nothing is a stride: x[64 * (i / 64) + i % 64].
 * Where they divide the axis, it becomes two loops. Is there such an axis?
 */
static bool split_divided(dc_sketch *s)
{
    dc_kernel *k = s->k;
    bool any = false;
    for (dc_vx v = 1; v < k->vx.n; v++) {
        uint32_t axis = 0;
        const dc_vx_node *n = &k->vx.at[v];
        const bool load = n->kind == DC_VX_LOAD && k->buf.at[n->buf].scope == DC_SCOPE_PARAM;
        const int64_t part = load ? divided_axis(k, n->at, &axis) : 0;
        dc_split both;
        if (part > 0 && dc_do_split(s, axis, part, &both)) {
            v = 0; /* access maps are others now */
            any = true;
        }
    }
    return any;
}

/* Marks casts that are stored as they are. */
static void mark_stored_casts(const dc_kernel *k, const dc_stmt *first, bool *stored)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        mark_stored_casts(k, t->body, stored);
        for (uint32_t i = 0; i < t->nput; i++) {
            const dc_vx_node *n = &k->vx.at[t->put[i].value];
            stored[t->put[i].value] = n->kind == DC_VX_OP && n->op == DC_OP_CAST;
        }
    }
}

/* Does it add up, and is it no contraction? */
static bool is_reduction(const dc_kernel *k)
{
    bool reduces = false;
    for (uint32_t a = 0; a < k->axis.n; a++)
        reduces = reduces || k->axis.at[a].reduce;
    return reduces && !dc_roles_has(k, DC_ROLE_K);
}

/*
 * Bytes of the widest numbers that are computed, at least those of f32. What a reduction widens only to store it is
 * computed once for many terms: short integers whose sum is an i64 are added up in vectors of i32.
 */
static int widest(const dc_kernel *k, dc_arena *a)
{
    size_t bytes = 4;
    bool *stored = DC_NEW_ARRAY(a, bool, k->vx.n);
    if (is_reduction(k))
        mark_stored_casts(k, k->root, stored);
    for (uint32_t v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        if ((n->kind == DC_VX_OP && !stored[v]) || n->kind == DC_VX_LOAD)
            bytes = dc_dtype_size(n->dtype) > bytes ? dc_dtype_size(n->dtype) : bytes;
    }
    return (int)bytes;
}

/* knobs ----------------------------------------------------------------------------------------- */

static const char *const knob_names[] = {
#define KNOB(id, name, unit, meaning) [DC_KNOB_##id] = (name),
#include "jit/schedule/knobs.def"
};

const char *dc_knob_name(dc_knob knob)
{
    return knob_names[knob];
}

static void offer(dc_knob_offer *o, int64_t value)
{
    for (int i = 0; i < o->n; i++)
        if (o->value[i] == value)
            return;
    if (value != o->rule && o->n < DC_KNOB_VALUES)
        o->value[o->n++] = (int32_t)value;
}

/* A rule that goes by a knob several times offers to all of them. */
int64_t dc_sketch_knob(const dc_sketch *s, dc_knob knob, int64_t rule, const int32_t *others,
                       int64_t most)
{
    if (s->space != NULL) {
        dc_knob_offer *o = &s->space->offer[knob];
        o->rule = (int32_t)rule;
        for (int i = 0; others[i] != 0; i++)
            if (others[i] <= most)
                offer(o, others[i]);
    }
    return s->knobs != NULL && s->knobs->value[knob] != 0 ? s->knobs->value[knob] : rule;
}

/* Instructions of the widest vectors are not always the fastest. */
static int lanes_of(const dc_sketch *s, dc_arena *scratch)
{
    const int64_t all = dc_max_i64(s->t->vector_bytes / widest(s->k, scratch), 1);
    const int32_t half[] = {all >= 8 ? (int32_t)all / 2 : 0, 0};
    return s->t->simt ? (int)all : (int)dc_sketch_knob(s, DC_KNOB_LANES, all, half, all);
}

static void schedule(dc_job *j, dc_sketch *s)
{
    dc_kernel *k = s->k;
    const dc_target *t = s->t;
    s->lanes = lanes_of(s, &j->scratch);
    if (!dc_roles_any(k)) /* of a text that was given */
        dc_roles_derive(k);
    dc_shape p = dc_shape_of(k);
    if (!p.by_rows && (!t->simt || p.add == NULL) && split_divided(s)) {
        dc_roles_derive(k); /* operands may move along one of two parts alone */
        p = dc_shape_of(k);
    }
    const dc_row_inputs inputs = dc_sketch_row_inputs(s);
    const bool done = t->simt ? dc_schedule_simt(s, &p) : dc_sketch_try(s, &p, by_kind[k->kind]);
    if (!done && s->space == NULL)
        dc_logf(j->log, DC_CH_KERNEL, "%s: schedule ends: %s", k->name, s->why);
    if (s->space != NULL)
        s->space->complete = done;
    if (!t->simt && k->kind != DC_KERNEL_attention)
        dc_schedule_memory(s, &inputs);
}

/* Has it the loops that it was lowered with? */
static bool is_naive(const dc_kernel *k)
{
    for (uint32_t i = 0; i < k->moves.n; i++)
        if (dc_move_effect_of(k->moves.at[i]->kind) != DC_MOVE_TRAFFIC)
            return false;
    return true;
}

/* A contraction whose first move is refused is many times slower, and on one thread: no sketch may leave one so. */
static dc_status refuse_naive(dc_job *j, const dc_sketch *s)
{
    const dc_kernel *k = s->k;
    char text[200];
    if (k->flops <= DC_TUNE_IDLE_WORK || !dc_roles_has(k, DC_ROLE_N) || !is_naive(k))
        return DC_OK;
    snprintf(text, sizeof text, "a contraction without a schedule: %s",
             s->why != NULL ? s->why : "");
    dc_logf(j->log, DC_CH_NOTE, "jit: %s: %s", k->name, text);
    return j->opt->check < 1 ? DC_OK : dc_fail(j, DC_ERR_BUG, &(dc_fact){.word = {k->name, text}});
}

dc_status dc_schedule(dc_job *j, dc_kernel *k, const dc_target *t, int level)
{
    dc_sketch s = {.k = k, .t = t};
    if (level < 2)
        return DC_OK;
    schedule(j, &s);
    return refuse_naive(j, &s);
}

dc_status dc_schedule_search(dc_job *j, dc_kernel *k, const dc_target *t, const dc_knobs *knobs,
                             dc_knob_space *space)
{
    dc_sketch s = {.k = k, .t = t, .knobs = knobs, .space = space};
    *space = (dc_knob_space){.complete = false};
    schedule(j, &s);
    return DC_OK;
}
