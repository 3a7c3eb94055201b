/*
 * Schedule moves on the nest form (jit/moves.def). Each finds its loops, checks that it may, and
 * only then rewrites.
 */
#include "jit/move.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct move_row {
    const char *name;
    enum { ARG_NONE, ARG_COUNT, ARG_AXIS } arg;
    bool reassociates;
} move_row;

static const move_row rows[] = {
#define MOVE(id, name, arg, reassociates, meaning) [DC_MOVE_##id] = {name, ARG_##arg, reassociates},
#include "jit/moves.def"
};

enum { MAX_UNROLL = 64, MAX_LANES = 64 };

/* Walking ------------------------------------------------------------------------------------ */

/* Calls see(slot) for each loop over the axis; slot points at the link that holds the loop. */
typedef bool (*loop_fn)(dc_kernel *k, dc_stmt **slot, void *arg);

static bool each_loop(dc_kernel *k, dc_stmt **first, uint32_t axis, loop_fn see, void *arg)
{
    for (dc_stmt **s = first; *s != NULL; s = &(*s)->next) {
        if ((*s)->kind != DC_STMT_LOOP)
            continue;
        if ((*s)->axis == axis) {
            if (!see(k, s, arg))
                return false;
        } else if (!each_loop(k, &(*s)->body, axis, see, arg)) {
            return false;
        }
    }
    return true;
}

typedef void (*set_fn)(dc_kernel *k, dc_stmt *set, void *arg);

static void each_set(dc_kernel *k, dc_stmt *first, set_fn see, void *arg)
{
    for (dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_LOOP)
            each_set(k, t->body, see, arg);
        else
            see(k, t, arg);
    }
}

static bool vx_reads(dc_kernel *k, dc_vx v, uint32_t buf)
{
    const dc_mark mark = dc_arena_mark(&k->arena);
    const bool *part = dc_vx_parts(k, &k->arena, v);
    bool found = false;
    for (dc_vx n = 1; n <= v && !found; n++)
        found = part[n] && k->vx.at[n].kind == DC_VX_LOAD && k->vx.at[n].buf == buf;
    dc_arena_rewind(&k->arena, mark);
    return found;
}

static bool touches(dc_kernel *k, const dc_stmt *first, uint32_t buf)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_LOOP) {
            if (touches(k, t->body, buf))
                return true;
            continue;
        }
        for (uint32_t i = 0; i < t->nput; i++)
            if (t->put[i].buf == buf || vx_reads(k, t->put[i].value, buf))
                return true;
    }
    return false;
}

/* split -------------------------------------------------------------------------------------- */

typedef struct split_arg {
    uint32_t axis, outer, inner;
    dc_ix whole; /* outer * f + inner */
    int64_t extent;
    bool tail;
    dc_subst subst;
} split_arg;

static void guard_tail(dc_kernel *k, dc_stmt *set, void *arg)
{
    const split_arg *s = arg;
    set->pred = dc_pred_and(k, set->pred, s->whole, s->extent);
}

static bool split_loop(dc_kernel *k, dc_stmt **slot, void *arg)
{
    split_arg *s = arg;
    dc_stmt *loop = *slot;
    dc_subst_stmt(&s->subst, loop->body);
    if (s->tail)
        each_set(k, loop->body, guard_tail, s);
    loop->body = dc_stmt_loop(k, s->inner, loop->body);
    loop->axis = s->outer;
    return true;
}

static bool move_split(dc_kernel *k, uint32_t axis, int64_t f, const char **why)
{
    const dc_axis a = k->axis.at[axis];
    char name[32];
    if (a.kind != DC_AXIS_SERIAL || f < 1) {
        *why = f < 1 ? "the extent must be positive" : "only a serial axis can be split";
        return false;
    }
    split_arg s = {.axis = axis, .extent = a.extent, .tail = a.extent % f != 0};
    snprintf(name, sizeof name, "%.20s.o", a.name);
    s.outer = dc_axis_new(k, name, (a.extent + f - 1) / f, a.reduce);
    snprintf(name, sizeof name, "%.20s.i", a.name);
    s.inner = dc_axis_new(k, name, f, a.reduce);
    s.whole = dc_ix_add(k, dc_ix_mul(k, dc_ix_axis(k, s.outer), f), dc_ix_axis(k, s.inner));
    s.subst = dc_subst_axis(k, axis, s.whole);
    return each_loop(k, &k->root, axis, split_loop, &s);
}

/* reorder ------------------------------------------------------------------------------------ */

typedef struct reorder_arg {
    uint32_t inner, outer; /* inner goes outside outer */
    bool check;
    int found;
    const char *why;
} reorder_arg;

static dc_stmt **child_loop(dc_stmt *loop, uint32_t axis)
{
    for (dc_stmt **s = &loop->body; *s != NULL; s = &(*s)->next)
        if ((*s)->kind == DC_STMT_LOOP && (*s)->axis == axis)
            return s;
    return NULL;
}

static bool is_indexed_by(const dc_kernel *k, const dc_stmt *first, uint32_t buf, uint32_t axis)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_LOOP) {
            if (!is_indexed_by(k, t->body, buf, axis))
                return false;
            continue;
        }
        for (uint32_t i = 0; i < t->nput; i++)
            if (t->put[i].buf == buf && !dc_ix_uses(k, t->put[i].at, axis))
                return false;
    }
    return true;
}

/* Does the statement outside `loop` (the whole tree but it) touch the buffer? */
static bool touched_outside(dc_kernel *k, const dc_stmt *first, const dc_stmt *loop, uint32_t buf)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t == loop)
            continue;
        if (t->kind == DC_STMT_LOOP) {
            if (touched_outside(k, t->body, loop, buf))
                return true;
            continue;
        }
        for (uint32_t i = 0; i < t->nput; i++)
            if (t->put[i].buf == buf || vx_reads(k, t->put[i].value, buf))
                return true;
    }
    return false;
}

/*
 * Two loops with nothing beside the inner one: their iterations change places. Fine for reductions
 * (the order of additions changes only if both are reduced), and otherwise if whatever is written
 * is a different element for each iteration of the outer axis.
 */
static bool may_interchange(dc_kernel *k, const dc_stmt *outer, const dc_stmt *inner,
                            const char **why)
{
    const bool both = k->axis.at[outer->axis].reduce && k->axis.at[inner->axis].reduce;
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (k->buf.at[b].scope == DC_SCOPE_LOCAL && touched_outside(k, k->root, outer, b) &&
            touches(k, inner->body, b) && !both && !is_indexed_by(k, inner->body, b, outer->axis)) {
            *why = "a local carried round both loops would be shared";
            return false;
        }
    return true;
}

/* Locals used in the loop get one element per iteration of its axis, outermost. */
static bool privatize(dc_kernel *k, dc_stmt *loop, bool check, const char **why)
{
    for (uint32_t b = 0; b < k->buf.n; b++) {
        if (k->buf.at[b].scope != DC_SCOPE_LOCAL || !touches(k, loop->body, b))
            continue;
        if (touched_outside(k, k->root, loop, b)) {
            if (is_indexed_by(k, loop->body, b, loop->axis))
                continue;
            *why = "a local is used outside the loop";
            return false;
        }
        if (check)
            continue;
        const dc_axis *a = &k->axis.at[loop->axis];
        const dc_ix add = dc_ix_mul(k, dc_ix_axis(k, loop->axis), k->buf.at[b].count);
        dc_subst s = dc_subst_buf(k, b, add);
        dc_subst_stmt(&s, loop->body);
        k->buf.at[b].count *= a->extent;
    }
    return true;
}

static bool reorder_loop(dc_kernel *k, dc_stmt **slot, void *arg)
{
    reorder_arg *r = arg;
    dc_stmt *outer = *slot;
    dc_stmt **at = child_loop(outer, r->inner);
    if (at == NULL)
        return true; /* this loop over the axis holds something else */
    r->found++;
    dc_stmt *inner = *at;
    const bool alone = outer->body == inner && inner->next == NULL;
    if (r->check) {
        if (alone)
            return may_interchange(k, outer, inner, &r->why);
        if (k->axis.at[r->outer].reduce) {
            r->why = "a reduction cannot be taken apart";
            return false;
        }
        return privatize(k, outer, true, &r->why);
    }
    if (!alone && !privatize(k, outer, false, &r->why))
        return false;

    dc_stmt *after = inner->next, *rest = outer->next;
    *at = NULL; /* outer->body is now what stands before */
    inner->body = dc_stmt_loop(k, r->outer, inner->body);
    inner->next = after != NULL ? dc_stmt_loop(k, r->outer, after) : rest;
    if (after != NULL)
        inner->next->next = rest;
    if (outer->body != NULL)
        outer->next = inner;
    else
        *slot = inner;
    return true;
}

static bool move_reorder(dc_kernel *k, uint32_t inner, uint32_t outer, const char **why)
{
    if (k->axis.at[inner].kind != DC_AXIS_SERIAL || k->axis.at[outer].kind != DC_AXIS_SERIAL) {
        *why = "only serial axes can be reordered";
        return false;
    }
    reorder_arg r = {.inner = inner,
                     .outer = outer,
                     .check = true,
                     .why = "the one is not directly in the other"};
    if (each_loop(k, &k->root, outer, reorder_loop, &r) && r.found > 0) {
        r.check = false;
        if (each_loop(k, &k->root, outer, reorder_loop, &r))
            return true;
    }
    *why = r.why;
    return false;
}

/* vectorize, unroll, grid -------------------------------------------------------------------- */

typedef struct lanes_arg {
    uint32_t axis;
    const char *why;
} lanes_arg;

static bool may_vectorize(dc_kernel *k, dc_stmt **slot, void *arg)
{
    lanes_arg *v = arg;
    for (const dc_stmt *t = (*slot)->body; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_SET) {
            v->why = "there is a loop inside";
            return false;
        }
        for (uint32_t i = 0; i < t->nput; i++)
            if (!dc_ix_uses(k, t->put[i].at, v->axis)) {
                v->why = "all lanes would store to one element";
                return false;
            }
    }
    return true;
}

static bool move_vectorize(dc_kernel *k, uint32_t axis, const char **why)
{
    dc_axis *a = &k->axis.at[axis];
    lanes_arg v = {.axis = axis};
    if (a->kind != DC_AXIS_SERIAL || a->extent < 2 || a->extent > MAX_LANES ||
        (a->extent & (a->extent - 1)) != 0) {
        *why = "lanes are 2 to 64, a power of two, on a serial axis";
        return false;
    }
    if (!each_loop(k, &k->root, axis, may_vectorize, &v)) {
        *why = v.why;
        return false;
    }
    a->kind = DC_AXIS_VECTOR;
    return true;
}

static bool move_unroll(dc_kernel *k, uint32_t axis, const char **why)
{
    dc_axis *a = &k->axis.at[axis];
    if (a->kind != DC_AXIS_SERIAL || a->extent > MAX_UNROLL) {
        *why = "an unrolled axis is serial and has at most 64 iterations";
        return false;
    }
    a->kind = DC_AXIS_UNROLL;
    return true;
}

static bool move_grid(dc_kernel *k, uint32_t axis, const char **why)
{
    const dc_stmt *root = k->root;
    if (root->kind != DC_STMT_LOOP || root->axis != axis || root->next != NULL ||
        k->axis.at[axis].kind != DC_AXIS_SERIAL || k->axis.at[axis].reduce) {
        *why = "the grid is the outermost loop, alone, and not a reduction";
        return false;
    }
    k->axis.at[axis].kind = DC_AXIS_GRID;
    return true;
}

/* split_reduce ------------------------------------------------------------------------------- */

/* The list that holds the outermost reduce loop of the chain round a loop over `axis`. */
static dc_stmt **find_chain(dc_kernel *k, dc_stmt **first, uint32_t axis, bool inside)
{
    for (dc_stmt **s = first; *s != NULL; s = &(*s)->next) {
        if ((*s)->kind != DC_STMT_LOOP)
            continue;
        const bool reduce = k->axis.at[(*s)->axis].reduce;
        if ((*s)->axis == axis)
            return s;
        dc_stmt **found = find_chain(k, &(*s)->body, axis, inside || reduce);
        if (found != NULL)
            return reduce && !inside ? s : found;
    }
    return NULL;
}

/* The assignment at the bottom of a chain of loops with nothing beside them. */
static dc_stmt *chain_bottom(dc_stmt *loop)
{
    dc_stmt *t = loop->body;
    while (t != NULL && t->kind == DC_STMT_LOOP && t->next == NULL)
        t = t->body;
    return t != NULL && t->kind == DC_STMT_SET && t->next == NULL && t->reduces ? t : NULL;
}

static uint64_t identity_of(dc_op combine, dc_dtype t)
{
    return dc_op_identity(combine == DC_OP_ADD   ? DC_OP_SUM
                          : combine == DC_OP_MAX ? DC_OP_MAXR
                                                 : DC_OP_MINR,
                          t);
}

static dc_stmt *accumulate(dc_kernel *k, uint32_t buf, dc_ix at, dc_op combine, dc_vx term)
{
    dc_stmt *set = dc_stmt_set(k, 1);
    const dc_vx in[2] = {dc_vx_load(k, buf, at, (dc_pred){0}), term};
    set->put[0] = (dc_put){buf, at, dc_vx_op(k, combine, k->buf.at[buf].dtype, in, 2)};
    set->reduces = true;
    return set;
}

static bool move_split_reduce(dc_kernel *k, uint32_t axis, int64_t f, const char **why)
{
    dc_stmt **slot = find_chain(k, &k->root, axis, false);
    dc_stmt *bottom = slot != NULL ? chain_bottom(*slot) : NULL;
    if (bottom == NULL || !k->axis.at[axis].reduce || f < 2) {
        *why = "no chain of reduction loops with one accumulation inside";
        return false;
    }
    const dc_put old = bottom->put[0];
    int64_t zero;
    if (!dc_ix_is_const(k, old.at, &zero) || k->axis.at[axis].kind != DC_AXIS_SERIAL) {
        *why = "the accumulator is no longer a single element";
        return false;
    }
    const dc_vx_node sum = k->vx.at[old.value];
    const dc_dtype t = (dc_dtype)sum.dtype;
    const int64_t extent = k->axis.at[axis].extent;
    char name[32];

    snprintf(name, sizeof name, "%.20s.o", k->axis.at[axis].name);
    const uint32_t outer = dc_axis_new(k, name, (extent + f - 1) / f, true);
    snprintf(name, sizeof name, "%.20s.i", k->axis.at[axis].name);
    const uint32_t inner = dc_axis_new(k, name, f, false); /* separate sums: not a reduction now */
    snprintf(name, sizeof name, "%.20s.j", k->axis.at[axis].name);
    const uint32_t last = dc_axis_new(k, name, f, true);
    snprintf(name, sizeof name, "%.8s.%u", k->buf.at[old.buf].name, k->buf.n);
    const uint32_t part = dc_buffer_new(k, name, t, f, DC_SCOPE_LOCAL, DC_MODE_OUT);
    const dc_ix lane = dc_ix_axis(k, inner);

    /* part[i] = identity */
    dc_stmt *init = dc_stmt_set(k, 1);
    init->put[0] = (dc_put){part, lane, dc_vx_const(k, t, identity_of(sum.op, t))};
    dc_stmt *before = dc_stmt_loop(k, inner, init);
    /* part[i] += term, axis = outer * f + i */
    const dc_ix whole = dc_ix_add(k, dc_ix_mul(k, dc_ix_axis(k, outer), f), lane);
    dc_subst s = dc_subst_axis(k, axis, whole);
    const dc_pred pred = dc_subst_pred(&s, bottom->pred);
    dc_stmt *add = accumulate(k, part, lane, sum.op, dc_subst_vx(&s, sum.in[1]));
    add->pred = dc_pred_and(k, pred, whole, extent);
    *bottom = *dc_stmt_loop(k, inner, add);
    /* acc += part[j] */
    dc_stmt *after =
        dc_stmt_loop(k, last,
                     accumulate(k, old.buf, old.at, sum.op,
                                dc_vx_load(k, part, dc_ix_axis(k, last), (dc_pred){0})));
    for (dc_stmt *loop = *slot; loop != NULL; loop = loop->body)
        if (loop->kind == DC_STMT_LOOP && loop->axis == axis) {
            loop->axis = outer;
            break;
        }
    after->next = (*slot)->next;
    (*slot)->next = after;
    before->next = *slot;
    *slot = before;
    return true;
}

/* ------------------------------------------------------------------------------------------- */

bool dc_move_reassociates(dc_move_kind kind)
{
    return rows[kind].reassociates;
}

bool dc_move_apply(dc_kernel *k, const dc_move *m, const char **why)
{
    const int axis = dc_axis_find(k, m->axis);
    *why = "no such axis";
    if (axis < 0)
        return false;
    switch (m->kind) {
    case DC_MOVE_SPLIT:
        return move_split(k, (uint32_t)axis, m->count, why);
    case DC_MOVE_REORDER: {
        const int other = dc_axis_find(k, m->other);
        return other >= 0 && move_reorder(k, (uint32_t)axis, (uint32_t)other, why);
    }
    case DC_MOVE_VECTORIZE:
        return move_vectorize(k, (uint32_t)axis, why);
    case DC_MOVE_UNROLL:
        return move_unroll(k, (uint32_t)axis, why);
    case DC_MOVE_GRID:
        return move_grid(k, (uint32_t)axis, why);
    case DC_MOVE_SPLIT_REDUCE:
        return move_split_reduce(k, (uint32_t)axis, m->count, why);
    case DC_MOVE__COUNT:
        break;
    }
    DC_BUG("move %d", (int)m->kind);
}

bool dc_move_parse(const char *text, dc_move *out, const char **why)
{
    char name[24], axis[24], arg[24];
    const int n = sscanf(text, "%23s %23s %23s", name, axis, arg);
    *why = "a move reads: name axis [count or axis]";
    for (int i = 0; n >= 2 && i < DC_MOVE__COUNT; i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        if ((n == 3) != (rows[i].arg != ARG_NONE))
            return false;
        *out = (dc_move){.kind = (dc_move_kind)i};
        strcpy(out->axis, axis);
        if (rows[i].arg == ARG_AXIS)
            strcpy(out->other, arg);
        return rows[i].arg != ARG_COUNT || sscanf(arg, "%lld", (long long *)&out->count) == 1;
    }
    return false;
}

bool dc_move_do(dc_kernel *k, const char **why, const char *fmt, ...)
{
    char text[80];
    dc_move m;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!dc_move_parse(text, &m, why) || !dc_move_apply(k, &m, why))
        return false;
    DC_PUSH_IN(&k->arena, k->moves, dc_arena_strdup(&k->arena, text));
    return true;
}
