/*
 * Schedule moves on reductions (jit/moves/move_impl.h): split_reduce, which Halide and TVM call rfactor, subtotal,
 * tensorize.
 */
#include "jit/moves/move_impl.h"
#include "jit/nest/matrix_tile.h"
#include "jit/nest/nest_roles.h"

#include <string.h>

/* split_reduce ------------------------------------------------------------------------------- */

/* The reductions in the innermost loop of a chain; NULL where its loops contain anything else. */
static dc_stmt *chain_sums(const dc_stmt *loop)
{
    dc_stmt *first = loop->body;
    while (first != NULL && first->kind == DC_STMT_LOOP && first->next == NULL)
        first = first->body;
    for (dc_stmt *s = first; s != NULL; s = s->next)
        if (s->kind != DC_STMT_SET || !s->reduces || s->nput != 1)
            return NULL;
    return first;
}

/* The link to the outermost reduce loop of the chain with a loop over `axis` in it. */
static dc_stmt **find_chain(dc_kernel *k, dc_stmt **first, uint32_t axis)
{
    for (dc_stmt **s = first; *s != NULL; s = &(*s)->next) {
        if ((*s)->kind != DC_STMT_LOOP)
            continue;
        const bool reduce = k->axis.at[(*s)->axis].reduce;
        if ((*s)->axis == axis ||
            (reduce && chain_sums(*s) != NULL && dc_nest_has_loop((*s)->body, axis)))
            return s;
        dc_stmt **found = find_chain(k, &(*s)->body, axis);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static bool identity_of(dc_op combine, dc_dtype t, uint64_t *bits)
{
    if (combine != DC_OP_ADD && combine != DC_OP_MAX && combine != DC_OP_MIN &&
        combine != DC_OP_MUL)
        return false;
    *bits = dc_op_identity(combine == DC_OP_ADD   ? DC_OP_SUM
                           : combine == DC_OP_MUL ? DC_OP_PROD
                           : combine == DC_OP_MAX ? DC_OP_MAXR
                                                  : DC_OP_MINR,
                           t);
    return true;
}

static dc_stmt *accumulate(dc_kernel *k, uint32_t buf, dc_ix at, dc_op combine, dc_vx term)
{
    dc_stmt *set = dc_stmt_set(k, 1);
    const dc_vx in[2] = {dc_vx_load(k, buf, at, (dc_pred){0}), term};
    set->put[0] = (dc_put){buf, at, dc_vx_op(k, combine, k->buf.at[buf].dtype, in, 2)};
    set->reduces = true;
    return set;
}

/* Is it acc = acc (combine) term, where the term does not read acc? */
static bool is_plain(dc_nest_edit *v, dc_stmt *bottom)
{
    const dc_kernel *k = v->k;
    const dc_put p = bottom->put[0];
    const dc_vx_node sum = k->vx.at[p.value];
    if (sum.kind != DC_VX_OP || sum.n != 2)
        return false;
    const dc_vx_node *acc = &k->vx.at[sum.in[0]];
    const dc_accesses a = dc_nest_accesses_of(v, bottom, NULL);
    int loads = 0;
    for (uint32_t i = 0; i < a.n; i++)
        loads += a.at[i].buf == p.buf && !a.at[i].store;
    return acc->kind == DC_VX_LOAD && acc->buf == p.buf && acc->at == p.at && acc->pred.n == 0 &&
           loads == 1;
}

/* The tests that depend on no loop of the chain. */
static dc_pred outer_tests(dc_nest_edit *v, const dc_stmt *chain, dc_pred p)
{
    bool *inside = dc_nest_axis_set(v);
    dc_pred out = {0};
    inside[chain->axis] = true;
    dc_nest_axes_of(chain->body, inside);
    for (uint32_t i = 0; i < p.n; i++)
        if (!dc_ix_loads(v->k, p.range[i].ix) && !dc_ix_uses_any(v->k, p.range[i].ix, inside))
            out = dc_pred_and(v->k, out, p.range[i].ix, p.range[i].n);
    return out;
}

/* The limits that depend on no loop of the chain: they hold for all that it adds up. */
static void add_outer_limits(dc_nest_edit *v, const dc_stmt *chain, dc_stmt *to, const dc_stmt *one)
{
    bool *inside = dc_nest_axis_set(v);
    inside[chain->axis] = true;
    dc_nest_axes_of(chain->body, inside);
    for (uint32_t i = 0; i < one->nlimit; i++)
        if (!dc_ix_loads(v->k, one->limit[i].ix) && !dc_ix_uses_any(v->k, one->limit[i].ix, inside))
            dc_stmt_add_limit(v->k, to, one->limit[i]);
}

/* The loop over the axis becomes one over `outer`, here and nowhere else. */
static void rename_loop(dc_stmt *chain, uint32_t axis, uint32_t outer)
{
    for (dc_stmt *loop = chain; loop != NULL; loop = loop->body)
        if (loop->kind == DC_STMT_LOOP && loop->axis == axis) {
            loop->axis = outer;
            return;
        }
}

/* Do the sums of a loop not read each other? */
static bool sums_apart(dc_nest_edit *v, dc_stmt *sums, dc_stmt *one)
{
    const dc_accesses a = dc_nest_accesses_of(v, one, NULL);
    for (const dc_stmt *other = sums; other != NULL; other = other->next)
        if (other != one &&
            (other->put[0].buf == one->put[0].buf || dc_access_loads(&a, other->put[0].buf)))
            return false;
    return true;
}

static bool may_split(dc_nest_edit *v, uint32_t axis, dc_stmt *chain, dc_stmt *sums, int64_t parts)
{
    const dc_kernel *k = v->k;
    const char *name = k->axis.at[axis].name;
    uint64_t zero;
    int64_t at;
    if (sums == NULL || !k->axis.at[axis].reduce)
        return dc_nest_refuse(
            v, "%s is in no chain of reduction loops with sums inside and nothing else", name);
    if (parts < 2)
        return dc_nest_refuse(v, "one partial sum is no split");
    for (dc_stmt *s = sums; s != NULL; s = s->next) {
        if (!is_plain(v, s) || !identity_of((dc_op)k->vx.at[s->put[0].value].op,
                                            (dc_dtype)k->vx.at[s->put[0].value].dtype, &zero))
            return dc_nest_refuse(
                v, "the loop over %s does not add up, multiply, or find a maximum or minimum",
                name);
        if (!dc_ix_is_const(k, s->put[0].at, &at))
            return dc_nest_refuse(v, "the sum over %s is not one element", name);
        if (!sums_apart(v, sums, s))
            return dc_nest_refuse(v, "the sums inside %s depend on each other", name);
    }
    for (const dc_stmt *t = chain; t->kind == DC_STMT_LOOP; t = t->body)
        if (k->axis.at[t->axis].kind == DC_AXIS_VECTOR)
            return dc_nest_refuse(v, "%s is vectorized", k->axis.at[t->axis].name);
    return true;
}

typedef struct splitting {
    uint32_t axis, outer, inner, last;
    int64_t parts, extent;
    dc_stmt *chain;
    dc_stmt *init, *add, *total; /* lists, of all sums so far */
} splitting;

static void append(dc_stmt **list, dc_stmt *s)
{
    while (*list != NULL)
        list = &(*list)->next;
    *list = s;
}

/* One of the sums: part[i] = identity, part[i] += term with axis = outer * parts + i, acc += part[j]. */
static void split_one(dc_nest_edit *v, splitting *x, const dc_stmt *one)
{
    dc_kernel *k = v->k;
    const dc_put old = one->put[0];
    const dc_vx_node sum = k->vx.at[old.value];
    const dc_dtype t = (dc_dtype)sum.dtype;
    const dc_ix lane = dc_ix_axis(k, x->inner);
    const dc_ix whole = dc_ix_add(k, dc_ix_mul(k, dc_ix_axis(k, x->outer), x->parts), lane);
    const dc_pred tests = outer_tests(v, x->chain, one->pred);
    const uint32_t part = dc_move_new_part(v, old.buf, t, x->parts);
    uint64_t zero = 0;
    identity_of((dc_op)sum.op, t, &zero);
    dc_stmt *init = dc_stmt_set(k, 1);
    init->put[0] = (dc_put){part, lane, dc_vx_const(k, t, zero)};
    dc_subst s = dc_subst_axis(k, x->axis, whole);
    const dc_pred pred = dc_subst_pred(&s, one->pred);
    dc_stmt *add = accumulate(k, part, lane, (dc_op)sum.op, dc_subst_vx(&s, sum.in[1]));
    add->pred = dc_pred_and(k, pred, whole, x->extent);
    dc_stmt_limits_of(&s, add, one);
    dc_stmt *total = accumulate(k, old.buf, old.at, (dc_op)sum.op,
                                dc_vx_load(k, part, dc_ix_axis(k, x->last), (dc_pred){0}));
    total->pred = tests;
    add_outer_limits(v, x->chain, total, one);
    append(&x->init, init);
    append(&x->add, add);
    append(&x->total, total);
}

/* The list in the innermost loop of a chain. */
static void set_bottom(dc_stmt *chain, dc_stmt *list)
{
    while (chain->body->kind == DC_STMT_LOOP)
        chain = chain->body;
    chain->body = list;
}

bool dc_move_split_reduce(dc_nest_edit *v, const dc_move *m)
{
    dc_kernel *k = v->k;
    const int64_t f = m->count;
    const uint32_t axis = m->axis[0];
    if (!dc_move_has_serial_axis(v, m, axis))
        return false;
    const dc_axis a = k->axis.at[axis];
    dc_stmt **slot = find_chain(k, &k->root, axis);
    dc_stmt *sums = slot != NULL ? chain_sums(*slot) : NULL;
    if (slot == NULL || !may_split(v, axis, *slot, sums, f))
        return false;
    const int64_t rounds = (a.extent + f - 1) / f;
    splitting x = {.axis = axis, .parts = f, .extent = a.extent, .chain = *slot};
    if (!dc_move_may_grow(v, axis, f) || !dc_nest_fits(v, rounds * f, dc_max_i64(a.extent, 1)) ||
        !dc_move_new_axis(v, &x.outer, axis, rounds, true, "o") ||
        !dc_move_new_axis(v, &x.inner, axis, f, false, "i") || /* partial results: no reduction */
        !dc_move_new_axis(v, &x.last, axis, f, true, "j"))
        return false;
    dc_axis_inherit(k, x.outer, axis);
    for (const dc_stmt *s = sums; s != NULL; s = s->next)
        split_one(v, &x, s);
    set_bottom(*slot, dc_stmt_loop(k, x.inner, x.add));
    dc_stmt *before = dc_stmt_loop(k, x.inner, x.init), *after = dc_stmt_loop(k, x.last, x.total);
    rename_loop(*slot, axis, x.outer);
    after->next = (*slot)->next;
    (*slot)->next = after;
    before->next = *slot;
    *slot = before;
    return true;
}

/* subtotal ----------------------------------------------------------------------------------- */

/* May the reduction get a partial result of its own? */
static bool may_total(dc_nest_edit *v, const dc_stmt *chain, dc_stmt *sums, dc_stmt *one)
{
    const dc_kernel *k = v->k;
    const char *name = k->axis.at[chain->axis].name;
    const dc_vx_node sum = k->vx.at[one->put[0].value];
    uint64_t zero;
    if (!is_plain(v, one) || !identity_of((dc_op)sum.op, (dc_dtype)sum.dtype, &zero))
        return dc_nest_refuse(
            v, "the loop over %s does not add up, multiply, or find a maximum or minimum", name);
    if (!sums_apart(v, sums, one))
        return dc_nest_refuse(v, "the sums inside %s depend on each other", name);
    for (const dc_stmt *s = chain; s->kind == DC_STMT_LOOP; s = s->body)
        if (!k->axis.at[s->axis].reduce || dc_ix_uses(k, one->put[0].at, s->axis))
            return dc_nest_refuse(v, "%s makes sums of its own", k->axis.at[s->axis].name);
    return true;
}

/* The reduction goes to a new local; *init sets it before the chain, *total combines it with the old result after it. */
static void total_one(dc_nest_edit *v, dc_stmt *chain, dc_stmt *one, dc_stmt **init,
                      dc_stmt **total)
{
    dc_kernel *k = v->k;
    const dc_put old = one->put[0];
    const dc_vx_node sum = k->vx.at[old.value];
    const dc_dtype t = (dc_dtype)sum.dtype;
    const dc_ix at = dc_ix_const(k, 0);
    const dc_pred tests = outer_tests(v, chain, one->pred);
    const dc_stmt was = *one;
    uint64_t zero = 0;
    const uint32_t part = dc_move_new_part(v, old.buf, t, 1);
    identity_of((dc_op)sum.op, t, &zero);
    *init = dc_stmt_set(k, 1);
    (*init)->put[0] = (dc_put){part, at, dc_vx_const(k, t, zero)};
    *one = *accumulate(k, part, at, (dc_op)sum.op, sum.in[1]);
    one->pred = was.pred;
    one->next = was.next;
    one->limit = was.limit; /* what adds nothing to the old result adds nothing to a part of it */
    one->nlimit = was.nlimit;
    *total = accumulate(k, old.buf, old.at, (dc_op)sum.op, dc_vx_load(k, part, at, (dc_pred){0}));
    (*total)->pred = tests;
    add_outer_limits(v, chain, *total, &was);
}

/*
 * The reductions of the chain of loops at the slot get partial results. Returns the last statement that replaces the
 * chain; NULL: refused.
 */
static dc_stmt *total_chain(dc_nest_edit *v, dc_stmt **slot)
{
    dc_stmt *chain = *slot, *sums = chain_sums(chain), *last = chain;
    if (sums == NULL) {
        dc_nest_refuse(v, "other things than sums stand inside %s",
                       v->k->axis.at[chain->axis].name);
        return NULL;
    }
    for (dc_stmt *s = sums; s != NULL; s = s->next)
        if (!may_total(v, chain, sums, s))
            return NULL;
    for (dc_stmt *s = sums; s != NULL; s = s->next) {
        dc_stmt *init, *total;
        total_one(v, chain, s, &init, &total);
        init->next = chain;
        *slot = init;
        slot = &init->next;
        total->next = last->next;
        last->next = total;
        last = total;
    }
    return last;
}

/* All outermost reduction loops of a list; *found counts them. */
static bool total_all(dc_nest_edit *v, dc_stmt **first, int *found)
{
    for (dc_stmt **s = first; *s != NULL; s = &(*s)->next) {
        if ((*s)->kind != DC_STMT_LOOP)
            continue;
        if (!v->k->axis.at[(*s)->axis].reduce) {
            if (!total_all(v, &(*s)->body, found))
                return false;
            continue;
        }
        dc_stmt *last = total_chain(v, s);
        if (last == NULL)
            return false;
        ++*found;
        while (*s != last)
            s = &(*s)->next;
    }
    return true;
}

static bool total_in_loop(dc_nest_edit *v, dc_stmt **slot, void *arg)
{
    const dc_axis *a = &v->k->axis.at[(*slot)->axis];
    return a->reduce ? total_all(v, &(*slot)->body, arg)
                     : dc_nest_refuse(v, "%s is no reduction loop", a->name);
}

bool dc_move_subtotal(dc_nest_edit *v, const dc_move *m)
{
    const uint32_t axis = m->axis[0];
    int found = 0;
    return dc_move_has_serial_axis(v, m, axis) &&
           dc_nest_each_loop(v, &v->k->root, axis, total_in_loop, &found) &&
           (found > 0 ||
            dc_nest_refuse(v, "no reduction loop is inside %s", v->k->axis.at[axis].name));
}

/* tensorize ---------------------------------------------------------------------------------- */

typedef struct tiling {
    uint32_t which; /* dc_tile_id */
    const dc_tile_row *row;
    uint32_t axis[3]; /* m, n, k */
    dc_stmt *set;
    int found;
} tiling;

static bool find_nest(dc_nest_edit *v, dc_stmt *loop, tiling *t)
{
    static const char *const roles = "mnk";
    const dc_kernel *k = v->k;
    const int want[3] = {t->row->m, t->row->n, t->row->k};
    for (int i = 0; i < 3; i++, loop = loop->body) {
        const dc_axis *a = &k->axis.at[loop->axis];
        if (a->kind != DC_AXIS_SERIAL || a->extent != want[i])
            return dc_nest_refuse(v, "%s wants a serial loop %c of extent %d, %s has %lld",
                                  t->row->name, roles[i], want[i], a->name, (long long)a->extent);
        t->axis[i] = loop->axis;
    }
    t->set = loop;
    return (loop != NULL && loop->next == NULL && loop->kind == DC_STMT_SET && loop->nput == 1) ||
           dc_nest_refuse(v, "there is more than one assignment in the loops");
}

/* The operand, if it is linear in the axes r (rows) and c (columns) and invariant in the third. */
static bool find_operand(dc_nest_edit *v, const tiling *t, uint32_t buf, dc_ix at, int r, int c,
                         dc_tile_operand *out)
{
    dc_kernel *k = v->k;
    bool affine = true;
    const int invariant = 3 - r - c;
    const int64_t step[3] = {dc_ix_stride(k, at, t->axis[0], &affine),
                             dc_ix_stride(k, at, t->axis[1], &affine),
                             dc_ix_stride(k, at, t->axis[2], &affine)};
    if (!affine || step[invariant] != 0)
        return false;
    for (int i = 0; i < 3; i++)
        at = dc_ix_add(k, at, dc_ix_mul(k, dc_ix_axis(k, t->axis[i]), -step[i]));
    *out = (dc_tile_operand){.buf = buf, .at = at, .row = step[r], .col = step[c]};
    return true;
}

/* A load under no test, through the cast to the accumulator's dtype where they differ. */
static const dc_vx_node *factor_of(const dc_kernel *k, const tiling *t, dc_vx x)
{
    const dc_vx_node *n = &k->vx.at[x];
    if (t->row->ab != t->row->c) {
        if (n->kind != DC_VX_OP || n->op != DC_OP_CAST || n->dtype != t->row->c)
            return NULL;
        n = &k->vx.at[n->in[0]];
    }
    return n->kind == DC_VX_LOAD && n->pred.n == 0 && n->dtype == t->row->ab ? n : NULL;
}

/* Do two elements have the same position? */
static bool overlaps(const dc_tile_operand *o, int rows, int cols)
{
    for (int i = 0; i < rows; i++)
        for (int j = -cols + 1; j < cols; j++)
            if ((i != 0 || j != 0) && i * o->row + j * o->col == 0)
                return true;
    return false;
}

static bool match(dc_nest_edit *v, const tiling *t, dc_tile *tile)
{
    const dc_kernel *k = v->k;
    const dc_put p = t->set->put[0];
    const dc_vx_node sum = k->vx.at[p.value];
    if (sum.kind != DC_VX_OP || sum.op != DC_OP_ADD || sum.dtype != t->row->c)
        return dc_nest_refuse(v, "the assignment is no sum in the dtype of %s", t->row->name);
    const dc_vx_node acc = k->vx.at[sum.in[0]], mul = k->vx.at[sum.in[1]];
    if (acc.kind != DC_VX_LOAD || acc.buf != p.buf || acc.at != p.at || acc.pred.n != 0 ||
        mul.kind != DC_VX_OP || mul.op != DC_OP_MUL)
        return dc_nest_refuse(v, "the assignment is not c = c + a * b");
    const dc_vx_node *a = factor_of(k, t, mul.in[0]), *b = factor_of(k, t, mul.in[1]);
    if (a == NULL || b == NULL)
        return dc_nest_refuse(v, "a and b are not plain loads of the dtype of %s", t->row->name);
    if (a->buf == p.buf || b->buf == p.buf)
        return dc_nest_refuse(v, "%s is both an operand and the result", k->buf.at[p.buf].name);
    const dc_vx_node left = *a, right = *b;
    if (!find_operand(v, t, p.buf, p.at, 0, 1, &tile->c))
        return dc_nest_refuse(v, "positions in %s are not linear in m and n, or depend on k",
                              k->buf.at[p.buf].name);
    if (overlaps(&tile->c, t->row->m, t->row->n))
        return dc_nest_refuse(v, "elements of the tile lie at one place in %s",
                              k->buf.at[p.buf].name);
    if (find_operand(v, t, left.buf, left.at, 0, 2, &tile->a) &&
        find_operand(v, t, right.buf, right.at, 2, 1, &tile->b))
        return true;
    return (find_operand(v, t, right.buf, right.at, 0, 2, &tile->a) &&
            find_operand(v, t, left.buf, left.at, 2, 1, &tile->b)) ||
           dc_nest_refuse(v, "a is not linear in m and k alone, or b in k and n");
}

/* All of a tile can be left out where its first element can, if none comes before that one. */
static void limit_tile(dc_kernel *k, const tiling *t, dc_stmt *tile)
{
    for (uint32_t i = 0; i < t->set->nlimit; i++) {
        const dc_limit of = t->set->limit[i];
        dc_ix first = of.ix;
        for (int a = 0; a < 3; a++) {
            dc_subst s = dc_subst_axis(k, t->axis[a], dc_ix_const(k, 0));
            first = dc_subst_ix(&s, first);
        }
        const dc_ix behind = dc_ix_add(k, of.ix, dc_ix_mul(k, first, -1));
        if (k->ix.at[behind].lo >= 0)
            dc_stmt_add_limit(k, tile, (dc_limit){first, of.buf});
    }
}

static bool holds_two(const dc_stmt *loop)
{
    for (int i = 0; i < 2; i++) {
        loop = loop->body;
        if (loop == NULL || loop->kind != DC_STMT_LOOP || loop->next != NULL)
            return false;
    }
    return true;
}

static bool tensorize_loop(dc_nest_edit *v, dc_stmt **slot, void *arg)
{
    tiling *t = arg;
    dc_kernel *k = v->k;
    dc_stmt *loop = *slot;
    bool *set = dc_nest_axis_set(v);
    dc_tile tile = {.which = t->which};
    if (!holds_two(loop))
        return true; /* this loop over the axis holds something else */
    if (!find_nest(v, loop, t) || !match(v, t, &tile))
        return false;
    for (int i = 0; i < 3; i++)
        set[t->axis[i]] = true;
    for (uint32_t i = 0; i < t->set->pred.n; i++)
        if (dc_ix_uses_any(k, t->set->pred.range[i].ix, set))
            return dc_nest_refuse(v, "the assignment stands under a test on the loops of the tile");
    dc_stmt *s = DC_NEW(&k->arena, dc_stmt);
    s->kind = DC_STMT_TILE;
    s->pred = t->set->pred;
    limit_tile(k, t, s);
    s->tile = DC_NEW(&k->arena, dc_tile);
    *s->tile = tile;
    s->next = loop->next;
    *slot = s;
    t->found++;
    return true;
}

bool dc_move_tensorize(dc_nest_edit *v, const dc_move *m)
{
    const uint32_t axis = m->axis[0];
    tiling t = {.which = m->tile, .row = dc_tile_row_of(m->tile)};
    if (!dc_move_has_serial_axis(v, m, axis))
        return false;
    if (dc_tile_rounds(t.row) && !v->k->tf32)
        return dc_nest_refuse(v, "%s rounds, and the kernel does not say tf32", t.row->name);
    return dc_nest_each_loop(v, &v->k->root, axis, tensorize_loop, &t) &&
           (t.found > 0 || dc_nest_refuse(v,
                                          "%s is not the outermost of three loops with nothing "
                                          "beside them",
                                          v->k->axis.at[axis].name));
}
