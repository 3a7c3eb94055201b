/*
 * Schedule moves that change which loops there are and in what order (jit/moves/move_impl.h): split, part,
 * part_after, fuse, pad, reorder, vectorize, unroll.
 */
#include "jit/moves/move_impl.h"
#include "jit/nest/nest_roles.h"

enum { MAX_UNROLL = 64, MAX_LANES = 64, MAX_GROWTH = 1 << 20 };

/* split, pad --------------------------------------------------------------------------------- */

typedef struct grow_arg { /* axis becomes `whole`, which may reach beyond its extent */
    uint32_t axis, outer, inner;
    dc_ix whole;
    int64_t extent;
    bool split, tail, zeros; /* zeros: split_full */
    bool *full; /* split_full: by buffer, locals that iterations beyond the extent may change */
    dc_subst subst;
} grow_arg;

/* split_full --------------------------------------------------------------------------------- */

/* Would an iteration beyond the extent leave a local? */
static bool leaves_local(dc_nest_edit *v, const dc_stmt *loop)
{
    const dc_accesses a = dc_nest_accesses(v, loop->body, NULL);
    for (uint32_t i = 0; i < a.n; i++)
        if (v->k->buf.at[a.at[i].buf].scope != DC_SCOPE_PARAM &&
            dc_ix_uses(v->k, a.at[i].at, loop->axis))
            return true;
    return false;
}

/*
 * May iterations beyond the extent change the local? If the change has no effect: it is used in the loop
 * alone and stored before it is read, or zeros are added to it.
 */
static bool is_own(dc_nest_edit *v, dc_stmt *loop, uint32_t buf)
{
    const dc_accesses all = dc_nest_accesses(v, v->k->root, NULL);
    const bool sum = v->k->axis.at[loop->axis].reduce;
    if (v->k->buf.at[buf].scope == DC_SCOPE_PARAM)
        return false;
    for (uint32_t i = 0; i < all.n; i++)
        if (all.at[i].buf == buf && !sum && !dc_path_has(all.at[i].path, loop))
            return false;
    return sum || dc_nest_written_first(v, loop->body, buf);
}

/* Is the value 0 where all that it loads is? */
static bool is_zero_of_zeros(const dc_kernel *k, dc_vx x)
{
    const dc_vx_node *n = &k->vx.at[x];
    if (n->kind == DC_VX_LOAD)
        return k->buf.at[n->buf].scope == DC_SCOPE_PARAM;
    if (n->kind != DC_VX_OP || (n->op != DC_OP_CAST && n->op != DC_OP_MUL))
        return false;
    for (int i = 0; i < n->n; i++)
        if (!is_zero_of_zeros(k, n->in[i]))
            return false;
    return true;
}

/* acc = acc + a * b, a contraction: zeros add nothing to it. */
static bool is_contraction(const dc_kernel *k, const dc_stmt *s)
{
    const dc_vx_node *sum = &k->vx.at[s->put[0].value];
    if (!s->reduces || s->nput != 1 || sum->kind != DC_VX_OP || sum->op != DC_OP_ADD ||
        k->vx.at[sum->in[0]].kind != DC_VX_LOAD)
        return false;
    const dc_vx_node *term = &k->vx.at[sum->in[1]];
    return term->kind == DC_VX_OP && term->op == DC_OP_MUL && is_zero_of_zeros(k, term->in[0]) &&
           is_zero_of_zeros(k, term->in[1]);
}

/* Puts a test on loads that depend on the axis; in a reduction over it on all, so that both factors are 0. */
static void guard_loads(dc_nest_edit *v, const grow_arg *g, dc_stmt *s)
{
    dc_kernel *k = v->k;
    const dc_accesses a = dc_nest_accesses_of(v, s, NULL);
    dc_vx_map map = dc_nest_vx_map(v);
    for (uint32_t i = 0; i < a.n; i++) {
        const dc_access *x = &a.at[i];
        if (x->load != 0 && k->buf.at[x->buf].scope == DC_SCOPE_PARAM &&
            (k->axis.at[g->axis].reduce || dc_ix_uses(k, x->at, g->outer) ||
             dc_ix_uses(k, x->at, g->inner)))
            map.to[x->load] =
                dc_vx_load(k, x->buf, x->at, dc_pred_and(k, x->pred, g->whole, g->extent));
    }
    dc_nest_replace(v, s, map);
}

/* The test that keeps the loop inside its extent, on loads where that will do. */
static void guard_tail(dc_nest_edit *v, const grow_arg *g, dc_stmt *first)
{
    const dc_kernel *k = v->k;
    for (dc_stmt *s = first; s != NULL; s = s->next) {
        if (s->kind == DC_STMT_LOOP) {
            guard_tail(v, g, s->body);
            continue;
        }
        bool full = g->full != NULL && s->kind == DC_STMT_SET;
        for (uint32_t i = 0; i < s->nput; i++)
            full = full && g->full[s->put[i].buf];
        if (full && (!k->axis.at[g->axis].reduce || is_contraction(k, s)))
            guard_loads(v, g, s);
        else
            s->pred = dc_pred_and(v->k, s->pred, g->whole, g->extent);
    }
}

static bool grow_loop(dc_nest_edit *v, dc_stmt **slot, void *arg)
{
    grow_arg *s = arg;
    dc_stmt *loop = *slot;
    s->full = NULL;
    if (s->zeros && s->tail && !leaves_local(v, loop)) {
        s->full = DC_NEW_ARRAY(v->tmp, bool, v->k->buf.n);
        for (uint32_t b = 0; b < v->k->buf.n; b++)
            s->full[b] = is_own(v, loop, b);
    }
    dc_subst_stmt(&s->subst, loop->body);
    if (s->tail)
        guard_tail(v, s, loop->body);
    if (s->split)
        loop->body = dc_stmt_loop(v->k, s->inner, loop->body);
    loop->axis = s->outer;
    return true;
}

/*
 * Indices that are loaded are loaded before any test, so their own position may not leave its
 * buffer.
 */
static bool may_have_tail(dc_nest_edit *v, uint32_t axis)
{
    return !dc_nest_picks_along(v, axis) ||
           dc_nest_refuse(
               v, "%s picks integers that positions are made of: only a divisor of %lld will do",
               v->k->axis.at[axis].name, (long long)v->k->axis.at[axis].extent);
}

bool dc_move_may_grow(dc_nest_edit *v, uint32_t axis, int64_t n)
{
    const int64_t extent = v->k->axis.at[axis].extent;
    if (n > MAX_GROWTH && n > extent)
        return dc_nest_refuse(v, "%s has %lld iterations only", v->k->axis.at[axis].name,
                              (long long)extent);
    /* positions do not depend on an axis of extent 1: later iterations would read an input again after
     * the store to an output in the same memory */
    if (extent == 1 && n > 1 && !v->k->axis.at[axis].reduce)
        return dc_nest_refuse(v, "%s has one iteration only", v->k->axis.at[axis].name);
    return extent % n == 0 || may_have_tail(v, axis);
}

bool dc_move_split(dc_nest_edit *v, const dc_move *m)
{
    dc_kernel *k = v->k;
    const int64_t n = m->count;
    grow_arg s = {.axis = m->axis[0], .split = true, .zeros = m->kind == DC_MOVE_SPLIT_FULL};
    if (!dc_move_has_serial_axis(v, m, s.axis) || !dc_move_may_grow(v, s.axis, n))
        return false;
    const dc_axis a = k->axis.at[s.axis];
    const int64_t outer = (a.extent + n - 1) / n;
    s.extent = a.extent;
    s.tail = a.extent % n != 0;
    if (!dc_nest_fits(v, outer * n, dc_max_i64(a.extent, 1)) ||
        !dc_move_new_axis(v, &s.outer, s.axis, outer, a.reduce, "o") ||
        !dc_move_new_axis(v, &s.inner, s.axis, n, a.reduce, "i"))
        return false;
    dc_axis_inherit(k, s.outer, s.axis);
    dc_axis_inherit(k, s.inner, s.axis);
    s.whole = dc_ix_add(k, dc_ix_mul(k, dc_ix_axis(k, s.outer), n), dc_ix_axis(k, s.inner));
    s.subst = dc_subst_axis(k, s.axis, s.whole);
    return dc_nest_each_loop(v, &k->root, s.axis, grow_loop, &s);
}

bool dc_move_pad(dc_nest_edit *v, const dc_move *m)
{
    dc_kernel *k = v->k;
    const int64_t n = m->count;
    grow_arg s = {.axis = m->axis[0]};
    if (!dc_move_has_serial_axis(v, m, s.axis) || !dc_move_may_grow(v, s.axis, n))
        return false;
    const dc_axis a = k->axis.at[s.axis];
    const int64_t extent = (a.extent + n - 1) / n * n;
    s.extent = a.extent;
    s.tail = extent != a.extent;
    if (!dc_nest_fits(v, extent, dc_max_i64(a.extent, 1)) ||
        !dc_move_new_axis(v, &s.outer, s.axis, extent, a.reduce, "p"))
        return false;
    dc_axis_inherit(k, s.outer, s.axis);
    s.whole = dc_ix_axis(k, s.outer);
    s.subst = dc_subst_axis(k, s.axis, s.whole);
    return dc_nest_each_loop(v, &k->root, s.axis, grow_loop, &s);
}

/* part --------------------------------------------------------------------------------------- */

typedef struct part_arg {
    uint32_t own, with;
    int own_n, rest_n;
    dc_subst subst;
} part_arg;

static bool part_loop(dc_nest_edit *v, dc_stmt **slot, void *arg)
{
    part_arg *p = arg;
    DC_UNUSED(v);
    if (dc_nest_has_loop((*slot)->body, p->with)) {
        p->rest_n++;
        return true;
    }
    dc_subst_stmt(&p->subst, (*slot)->body);
    (*slot)->axis = p->own;
    p->own_n++;
    return true;
}

bool dc_move_part(dc_nest_edit *v, const dc_move *m)
{
    const uint32_t axis = m->axis[0];
    part_arg p = {.with = m->axis[1]};
    if (!dc_move_has_serial_axis(v, m, axis) || !dc_move_has_axis(v, p.with))
        return false;
    const dc_axis a = v->k->axis.at[axis];
    if (!dc_move_new_axis(v, &p.own, axis, a.extent, a.reduce, "x"))
        return false;
    dc_axis_inherit(v->k, p.own, axis);
    p.subst = dc_subst_axis(v->k, axis, dc_ix_axis(v->k, p.own));
    if (!dc_nest_each_loop(v, &v->k->root, axis, part_loop, &p))
        return false;
    return (p.own_n > 0 && p.rest_n > 0) ||
           dc_nest_refuse(v, "loops over %s all hold a loop over %s, or none does", a.name,
                          v->k->axis.at[p.with].name);
}

/* part_after --------------------------------------------------------------------------------- */

/* *left: loops over p->with that are still to come. */
static void part_behind(part_arg *p, uint32_t axis, dc_stmt *first, int *left)
{
    for (dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        if (t->axis == axis && *left == 0) {
            dc_subst_stmt(&p->subst, t->body);
            t->axis = p->own;
            p->own_n++;
            continue;
        }
        part_behind(p, axis, t->body, left);
        *left -= t->axis == p->with;
    }
}

static int count_loops(const dc_stmt *first, uint32_t axis)
{
    int n = 0;
    for (const dc_stmt *t = first; t != NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP)
            n += (t->axis == axis) + count_loops(t->body, axis);
    return n;
}

bool dc_move_part_after(dc_nest_edit *v, const dc_move *m)
{
    dc_kernel *k = v->k;
    const uint32_t axis = m->axis[0];
    part_arg p = {.with = m->axis[1]};
    if (!dc_move_has_serial_axis(v, m, axis) || !dc_move_has_axis(v, p.with))
        return false;
    const dc_axis a = k->axis.at[axis];
    if (!dc_move_new_axis(v, &p.own, axis, a.extent, a.reduce, "y"))
        return false;
    dc_axis_inherit(k, p.own, axis);
    p.subst = dc_subst_axis(k, axis, dc_ix_axis(k, p.own));
    const int all = count_loops(k->root, axis);
    int left = count_loops(k->root, p.with);
    part_behind(&p, axis, k->root, &left);
    return (p.own_n > 0 && p.own_n < all) ||
           dc_nest_refuse(v, "loops over %s all come after the last loop over %s, or none does",
                          a.name, k->axis.at[p.with].name);
}

/* fuse --------------------------------------------------------------------------------------- */

typedef struct fuse_arg {
    uint32_t outer, inner, fused;
    dc_ix div, mod;
    int found;
} fuse_arg;

static bool holds_alone(const dc_stmt *outer, uint32_t inner)
{
    const dc_stmt *b = outer->body;
    return b != NULL && b->next == NULL && b->kind == DC_STMT_LOOP && b->axis == inner;
}

static bool fuse_loop(dc_nest_edit *v, dc_stmt **slot, void *arg)
{
    fuse_arg *f = arg;
    dc_stmt *outer = *slot;
    if (!holds_alone(outer, f->inner))
        return true; /* another loop over the same axis */
    f->found++;
    dc_stmt *body = outer->body->body;
    dc_subst a = dc_subst_axis(v->k, f->outer, f->div);
    dc_subst_stmt(&a, body);
    dc_subst b = dc_subst_axis(v->k, f->inner, f->mod);
    dc_subst_stmt(&b, body);
    outer->axis = f->fused;
    outer->body = body;
    return true;
}

bool dc_move_fuse(dc_nest_edit *v, const dc_move *m)
{
    dc_kernel *k = v->k;
    fuse_arg f = {.outer = m->axis[0], .inner = m->axis[1]};
    if (!dc_move_has_serial_axis(v, m, f.outer) || !dc_move_has_serial_axis(v, m, f.inner))
        return false;
    const dc_axis a = k->axis.at[f.outer], b = k->axis.at[f.inner];
    if (a.reduce != b.reduce)
        return dc_nest_refuse(v, "one of %s and %s is a reduction, the other is not", a.name,
                              b.name);
    if (a.extent > 0 && b.extent > (INT64_C(1) << 40) / a.extent)
        return dc_nest_refuse(v, "%s and %s together have too many iterations", a.name, b.name);
    if (!dc_move_new_axis(v, &f.fused, f.outer, a.extent * b.extent, a.reduce, "f"))
        return false;
    k->axis.at[f.fused].role = (uint8_t)dc_role_join((dc_role)a.role, (dc_role)b.role);
    const dc_ix whole = dc_ix_axis(k, f.fused);
    f.div = dc_ix_div(k, whole, dc_max_i64(b.extent, 1));
    f.mod = dc_ix_mod(k, whole, dc_max_i64(b.extent, 1));
    return dc_nest_each_loop(v, &k->root, f.outer, fuse_loop, &f) &&
           (f.found > 0 ||
            dc_nest_refuse(v, "%s is not directly and alone inside %s", b.name, a.name));
}

/* reorder ------------------------------------------------------------------------------------ */

typedef struct reorder_arg {
    uint32_t inner, outer; /* inner goes outside outer */
    bool reduce;           /* additions may change their order */
    int found;
} reorder_arg;

static dc_stmt **child_loop(dc_stmt *loop, uint32_t axis)
{
    for (dc_stmt **s = &loop->body; *s != NULL; s = &(*s)->next)
        if ((*s)->kind == DC_STMT_LOOP && (*s)->axis == axis)
            return s;
    return NULL;
}

/* Two loops around one reduction that does not read its result otherwise: iterations may run in any order. */
static bool is_one_reduction(dc_nest_edit *v, dc_stmt *loop)
{
    const dc_stmt *t = loop->body;
    while (t != NULL && t->kind == DC_STMT_LOOP && t->next == NULL)
        t = t->body;
    if (t == NULL || t->kind != DC_STMT_SET || t->next != NULL || !t->reduces || t->nput != 1)
        return false;
    const dc_accesses a = dc_nest_accesses(v, loop->body, NULL);
    int loads = 0;
    for (uint32_t i = 0; i < a.n; i++)
        loads += a.at[i].buf == t->put[0].buf && !a.at[i].store;
    return loads == 1;
}

/* Interchange of two perfectly nested loops. */
static bool may_interchange(dc_nest_edit *v, dc_stmt *outer, dc_stmt *inner, bool reduce)
{
    const dc_kernel *k = v->k;
    const dc_axis *o = &k->axis.at[outer->axis], *i = &k->axis.at[inner->axis];
    dc_nest_edit ask = *v;
    if (dc_nest_independent(&ask, outer, outer))
        return true;
    ask.why = NULL;
    if (dc_nest_independent(&ask, outer, inner))
        return true;
    if (!o->reduce || !i->reduce || !is_one_reduction(v, outer))
        return dc_nest_refuse(v, "%s", ask.why);
    return reduce ||
           dc_nest_refuse(v, "the order of additions would change; reorder_reduce allows that");
}

static bool touched_only_in(const dc_accesses *all, const dc_stmt *loop, uint32_t buf)
{
    bool touched = false;
    for (uint32_t i = 0; i < all->n; i++) {
        if (all->at[i].buf != buf)
            continue;
        if (!dc_path_has(all->at[i].path, loop))
            return false;
        touched = true;
    }
    return touched;
}

/*
 * Locals used in the loop alone get one element per iteration of its axis, as the outermost dim, unless
 * iterations use different elements already.
 */
static bool privatize(dc_nest_edit *v, dc_stmt *loop)
{
    dc_kernel *k = v->k;
    const dc_accesses all = dc_nest_accesses(v, k->root, NULL);
    for (uint32_t b = 0; b < k->buf.n; b++) {
        if (k->buf.at[b].scope == DC_SCOPE_PARAM || !touched_only_in(&all, loop, b) ||
            dc_nest_buffer_apart(v, &all, loop, loop->axis, b))
            continue;
        if (!dc_nest_widen(v, loop, b))
            return false;
    }
    return true;
}

static bool reorder_loop(dc_nest_edit *v, dc_stmt **slot, void *arg)
{
    reorder_arg *r = arg;
    dc_kernel *k = v->k;
    dc_stmt *outer = *slot;
    dc_stmt **at = child_loop(outer, r->inner);
    if (at == NULL)
        return true; /* another loop over the same axis */
    r->found++;
    dc_stmt *inner = *at;
    if (outer->body == inner && inner->next == NULL) {
        if (!may_interchange(v, outer, inner, r->reduce))
            return false;
    } else {
        if (k->axis.at[r->outer].reduce)
            return dc_nest_refuse(v, "%s is a reduction, which cannot be taken apart round %s",
                                  k->axis.at[r->outer].name, k->axis.at[r->inner].name);
        if (!dc_nest_independent(v, outer, outer) || !privatize(v, outer))
            return false;
    }

    dc_stmt *after = inner->next, *rest = outer->next;
    *at = NULL; /* outer->body is now what precedes the inner loop */
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

bool dc_move_reorder(dc_nest_edit *v, const dc_move *m)
{
    dc_kernel *k = v->k;
    reorder_arg r = {
        .inner = m->axis[0], .outer = m->axis[1], .reduce = m->kind == DC_MOVE_REORDER_REDUCE};
    if (!dc_move_has_serial_axis(v, m, r.inner) || !dc_move_has_serial_axis(v, m, r.outer))
        return false;
    return dc_nest_each_loop(v, &k->root, r.outer, reorder_loop, &r) &&
           (r.found > 0 || dc_nest_refuse(v, "%s is not directly inside %s",
                                          k->axis.at[r.inner].name, k->axis.at[r.outer].name));
}

/* vectorize, unroll -------------------------------------------------------------------------- */

static bool may_vectorize(dc_nest_edit *v, dc_stmt **slot, void *arg)
{
    const dc_kernel *k = v->k;
    const uint32_t axis = (*slot)->axis;
    DC_UNUSED(arg);
    for (const dc_stmt *t = (*slot)->body; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_SET)
            return dc_nest_refuse(v,
                                  t->kind == DC_STMT_LOOP ? "there is a loop inside %s"
                                                          : "there is a matrix instruction in %s",
                                  k->axis.at[axis].name);
        for (uint32_t i = 0; i < t->nput; i++)
            if (!dc_ix_uses(k, t->put[i].at, axis))
                return dc_nest_refuse(v, "all lanes of %s would store to one element of %s",
                                      k->axis.at[axis].name, k->buf.at[t->put[i].buf].name);
    }
    return dc_nest_independent(v, *slot, *slot);
}

bool dc_move_vectorize(dc_nest_edit *v, const dc_move *m)
{
    const uint32_t axis = m->axis[0];
    if (!dc_move_has_serial_axis(v, m, axis))
        return false;
    dc_axis *a = &v->k->axis.at[axis];
    if (a->extent < 2 || a->extent > MAX_LANES || (a->extent & (a->extent - 1)) != 0)
        return dc_nest_refuse(v, "lanes are 2 to %d, a power of two, %s has %lld", MAX_LANES,
                              a->name, (long long)a->extent);
    if (!dc_nest_each_loop(v, &v->k->root, axis, may_vectorize, NULL))
        return false;
    v->k->axis.at[axis].kind = DC_AXIS_VECTOR;
    return true;
}

bool dc_move_unroll(dc_nest_edit *v, const dc_move *m)
{
    const uint32_t axis = m->axis[0];
    if (!dc_move_has_serial_axis(v, m, axis))
        return false;
    dc_axis *a = &v->k->axis.at[axis];
    if (a->extent > MAX_UNROLL)
        return dc_nest_refuse(v, "%s has %lld iterations, at most %d are unrolled", a->name,
                              (long long)a->extent, MAX_UNROLL);
    a->kind = DC_AXIS_UNROLL;
    return true;
}
