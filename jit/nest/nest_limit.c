#include "jit/nest/nest_limit.h"

#include "jit/nest/nest_dependence.h"

#include <string.h>

typedef struct limiting {
    dc_nest_edit *v;
    dc_stmt *loop;
    const bool *known; /* by axis */
    dc_limits out;
    bool any; /* out holds what was met so far */
} limiting;

static dc_ix atom_ix(dc_kernel *k, const dc_atom_node *t)
{
    return t->kind == DC_ATOM_AXIS  ? dc_ix_axis(k, t->axis)
           : t->kind == DC_ATOM_DIV ? dc_ix_div(k, t->of, t->k)
           : t->kind == DC_ATOM_MOD ? dc_ix_mod(k, t->of, t->k)
                                    : 0;
}

static bool is_known(const limiting *w, dc_ix a)
{
    const dc_kernel *k = w->v->k;
    for (uint32_t x = 0; x < k->axis.n; x++)
        if (dc_ix_uses(k, a, x) && !w->known[x] && x != w->loop->axis)
            return false;
    return true;
}

/* An expression of known axes, and of the loop's, that a is never below; or, with `most`, never above. */
static dc_ix bound(const limiting *w, dc_ix a, bool most)
{
    dc_kernel *k = w->v->k;
    if (is_known(w, a))
        return a;
    const dc_ix_node x = k->ix.at[a];
    dc_ix sum = dc_ix_const(k, x.c);
    for (uint32_t i = 0; i < x.n; i++) {
        const dc_atom_node t = k->atom.at[x.term[i].atom];
        const int64_t coef = x.term[i].coef;
        const dc_ix whole = atom_ix(k, &t);
        dc_ix part;
        if (whole != 0 && is_known(w, whole))
            part = dc_ix_mul(k, whole, coef);
        else if (t.kind == DC_ATOM_DIV && coef > 0)
            part = dc_ix_mul(k, dc_ix_div(k, bound(w, t.of, most), t.k), coef);
        else
            part = dc_ix_const(k, coef * ((coef > 0) == most ? t.hi : t.lo));
        sum = dc_ix_add(k, sum, part);
    }
    return sum;
}

/* Is a - b a constant? */
static bool differ_by(dc_kernel *k, dc_ix a, dc_ix b, int64_t *c)
{
    return dc_ix_is_const(k, dc_ix_add(k, a, dc_ix_mul(k, b, -1)), c);
}

static void add(dc_kernel *k, dc_limits *to, dc_limit x, int64_t more)
{
    for (int i = 0; i < to->n; i++)
        if (to->at[i].ix == x.ix && to->at[i].buf == x.buf)
            return;
    if (to->n == DC_NEST_LIMITS || k->ix.at[x.ix].lo < 0)
        return;
    to->more[to->n] = more;
    to->at[to->n++] = x;
}

static void meet(limiting *w, const dc_stmt *s)
{
    dc_kernel *k = w->v->k;
    dc_limits own = {0}, both = {0};
    for (uint32_t i = 0; i < s->nlimit; i++) {
        int64_t more;
        if (dc_ix_loads(k, s->limit[i].ix))
            continue;
        const dc_ix least = bound(w, s->limit[i].ix, false);
        if (!differ_by(k, bound(w, s->limit[i].ix, true), least, &more))
            more = -1;
        add(k, &own, (dc_limit){least, s->limit[i].buf}, more);
    }
    for (int i = 0; w->any && i < w->out.n; i++)
        for (int n = 0; n < own.n; n++) {
            int64_t c; /* how much greater the first is */
            if (w->out.at[i].buf != own.at[n].buf ||
                !differ_by(k, w->out.at[i].ix, own.at[n].ix, &c))
                continue;
            const int64_t a = w->out.more[i], b = own.more[n];
            add(k, &both, c < 0 ? w->out.at[i] : own.at[n],
                a < 0 || b < 0 ? -1 : dc_max_i64(a + dc_max_i64(c, 0), b + dc_max_i64(-c, 0)));
        }
    w->out = w->any ? both : own;
    w->any = true;
}

/* Does it store only to buffers that an iteration has for itself? */
static bool is_private(limiting *w, const dc_accesses *all, const dc_stmt *s)
{
    dc_nest_edit *v = w->v;
    if (s->kind != DC_STMT_SET)
        return false;
    for (uint32_t n = 0; n < s->nput; n++) {
        const uint32_t buf = s->put[n].buf;
        if (v->k->buf.at[buf].scope == DC_SCOPE_PARAM)
            return false;
        if (v->k->axis.at[w->loop->axis].kind == DC_AXIS_GRID)
            continue; /* work items share nothing else */
        for (uint32_t i = 0; i < all->n; i++)
            if (all->at[i].buf == buf && !dc_path_has(all->at[i].path, w->loop))
                return false;
        if (!dc_nest_written_first(v, w->loop->body, buf))
            return false;
    }
    return true;
}

static void meet_all(limiting *w, const dc_stmt *first, const dc_accesses *all)
{
    for (const dc_stmt *s = first; s != NULL && !(w->any && w->out.n == 0); s = s->next)
        if (s->kind == DC_STMT_LOOP)
            meet_all(w, s->body, all);
        else if (s->nlimit > 0 || !is_private(w, all, s))
            meet(w, s);
}

dc_limits dc_nest_limits(dc_nest_edit *v, dc_stmt *loop, const bool *known)
{
    limiting w = {.v = v, .loop = loop, .known = known};
    if (!dc_stmt_has_limits(loop->body))
        return w.out;
    const dc_mark mark = dc_arena_mark(v->tmp);
    const dc_accesses all = dc_nest_accesses(v, v->k->root, NULL);
    meet_all(&w, loop->body, &all);
    dc_arena_rewind(v->tmp, mark);
    return w.out;
}

bool dc_nest_limit_step(dc_kernel *k, dc_ix ix, uint32_t axis, dc_limit_step *out)
{
    const dc_ix_node x = k->ix.at[ix];
    dc_atom_node with = {0};
    int64_t coef = 0;
    for (uint32_t i = 0; i < x.n; i++) {
        const dc_atom_node t = k->atom.at[x.term[i].atom];
        const bool uses = t.kind == DC_ATOM_AXIS
                              ? t.axis == axis
                              : t.kind == DC_ATOM_VALUE || dc_ix_uses(k, t.of, axis);
        if (!uses)
            continue;
        if (coef != 0 || x.term[i].coef <= 0 || t.kind == DC_ATOM_MOD || t.kind == DC_ATOM_VALUE)
            return false;
        coef = x.term[i].coef;
        with = t;
    }
    if (coef == 0)
        return false;
    const dc_ix part = dc_ix_mul(k, atom_ix(k, &with), coef);
    *out = (dc_limit_step){.rest = dc_ix_add(k, ix, dc_ix_mul(k, part, -1)), .coef = coef};
    if (with.kind == DC_ATOM_DIV) {
        out->of = with.of;
        out->divisor = with.k;
    }
    return k->ix.at[out->rest].lo >= 0;
}

bool dc_nest_limit_rises(dc_kernel *k, dc_ix ix, uint32_t axis)
{
    dc_limit_step s;
    do {
        if (!dc_nest_limit_step(k, ix, axis, &s))
            return false;
        ix = s.of;
    } while (ix != 0);
    return true;
}

bool dc_nest_limit_test(const dc_kernel *k, const dc_vx_node *v, uint32_t buf, dc_ix *at)
{
    if (v->kind != DC_VX_OP || v->op != DC_OP_LT)
        return false;
    const dc_vx_node *left = &k->vx.at[v->in[0]], *right = &k->vx.at[v->in[1]];
    if (left->kind == DC_VX_OP && left->op == DC_OP_CAST && left->dtype == DC_I32)
        left = &k->vx.at[left->in[0]];
    if (left->kind != DC_VX_INDEX || left->dtype != DC_I32 || right->kind != DC_VX_LOAD ||
        right->buf != buf || right->pred.n > 0)
        return false;
    int64_t c;
    *at = left->at;
    return dc_ix_is_const(k, right->at, &c) && c == 0;
}

/* What an assignment computes, and what it needs for positions and tests. */
typedef struct computed {
    bool *part, *place;
    bool updates; /* it reads what it stores to */
} computed;

static computed computed_by(dc_nest_edit *v, const dc_stmt *s)
{
    const dc_kernel *k = v->k;
    computed c = {DC_NEW_ARRAY(v->tmp, bool, k->vx.n), DC_NEW_ARRAY(v->tmp, bool, k->vx.n),
                  s->reduces};
    dc_pred_mark(k, s->pred, c.place);
    for (uint32_t n = 0; n < s->nput; n++) {
        c.part[s->put[n].value] = true;
        dc_ix_mark(k, s->put[n].at, c.place);
    }
    for (dc_vx i = k->vx.n; i-- > 1;) { /* as in dc_vx_parts */
        const dc_vx_node *x = &k->vx.at[i];
        if (!c.part[i])
            continue;
        for (int o = 0; o < x->n; o++)
            c.part[x->in[o]] = true;
        dc_pred_mark(k, x->pred, c.place);
        if (x->kind == DC_VX_LOAD || x->kind == DC_VX_INDEX)
            dc_ix_mark(k, x->at, c.place);
        for (uint32_t n = 0; n < s->nput && x->kind == DC_VX_LOAD; n++)
            c.updates |= x->buf == s->put[n].buf;
    }
    dc_vx_mark_parts(k, c.place);
    return c;
}

/* Is it where(test, x, y), and the test false from the limit on? */
static bool is_hidden(dc_kernel *k, const dc_vx_node *x, dc_limit limit, const bool *seen)
{
    dc_ix at;
    if (x->kind != DC_VX_OP || x->op != DC_OP_WHERE || seen[x->in[0]] || seen[x->in[2]] ||
        !dc_nest_limit_test(k, &k->vx.at[x->in[0]], limit.buf, &at))
        return false;
    const dc_ix behind = dc_ix_add(k, at, dc_ix_mul(k, limit.ix, -1));
    return k->ix.at[behind].lo >= 0;
}

bool dc_nest_limit_hides(dc_nest_edit *v, const dc_stmt *s, dc_limit limit, dc_vx value)
{
    dc_kernel *k = v->k;
    if (s->kind != DC_STMT_SET)
        return false;
    const dc_mark mark = dc_arena_mark(v->tmp);
    const computed c = computed_by(v, s);
    bool *seen = DC_NEW_ARRAY(v->tmp, bool, k->vx.n), hides = !c.place[value];
    for (dc_vx i = 1; i < k->vx.n && hides && c.updates; i++) {
        const dc_vx_node x = k->vx.at[i];
        seen[i] = i == value;
        if (!c.part[i] || x.kind != DC_VX_OP || is_hidden(k, &x, limit, seen))
            continue;
        for (int o = 0; o < x.n; o++)
            seen[i] |= seen[x.in[o]];
    }
    for (uint32_t n = 0; n < s->nput; n++)
        hides = hides && !seen[s->put[n].value];
    dc_arena_rewind(v->tmp, mark);
    return hides;
}

/* ---- of elements ---- */

/* How far positions are apart from one number of the limit to the next; 0: these have no such distance. */
static int64_t distance(const dc_kernel *k, dc_ix at, dc_ix limit)
{
    for (uint32_t a = 0; a < k->axis.n; a++) {
        bool affine = true;
        const int64_t by = dc_ix_stride(k, limit, a, &affine),
                      far = dc_ix_stride(k, at, a, &affine);
        if (affine && by > 0 && far > 0 && far % by == 0)
            return far / by;
    }
    return 0;
}

/* What the limit has besides the number that the position is made of. */
static dc_ix besides(dc_kernel *k, dc_ix at, dc_ix limit, int64_t far)
{
    return dc_ix_add(k, limit, dc_ix_mul(k, dc_ix_div(k, at, far), -1));
}

bool dc_nest_limit_of_elements(dc_nest_edit *v, uint32_t buf, dc_ix at, dc_limit limit)
{
    dc_kernel *k = v->k;
    const int64_t far = distance(k, at, limit.ix);
    if (far == 0)
        return false;
    const dc_ix base = besides(k, at, limit.ix, far);
    for (uint32_t a = 0; a < k->axis.n; a++)
        if (dc_ix_uses(k, at, a) && dc_ix_uses(k, base, a))
            return false;
    const dc_accesses all = dc_nest_accesses(v, k->root, NULL);
    bool any = false;
    for (uint32_t i = 0; i < all.n; i++) {
        const dc_access *x = &all.at[i];
        if (x->buf != buf || !x->store || (x->stmt->reduces && !x->tile))
            continue;
        bool same = false;
        for (uint32_t n = 0; n < x->stmt->nlimit && !x->tile; n++)
            same |= x->stmt->limit[n].buf == limit.buf &&
                    besides(k, x->at, x->stmt->limit[n].ix, far) == base;
        if (!same)
            return false;
        any = true;
    }
    return any;
}
