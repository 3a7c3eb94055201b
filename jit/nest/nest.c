/*
 * Kernels in nest form: construction, value expressions, rewriting. Index algebra is in
 * jit/nest/index_expr.c, the text in jit/nest/nest_print.c, the verifier in jit/nest/nest_verify.c.
 */
#include "jit/nest/nest.h"

#include "jit/nest/hash_cons.h"
#include "jit/nest/nest_print.h"

#include <stdio.h>
#include <string.h>

static void release_kernel(void *k)
{
    dc_kernel_free(k);
}

dc_kernel *dc_kernel_new(const char *name)
{
    dc_job *j = dc_job_here();
    dc_kernel *k = dc_xalloc(sizeof *k);
    dc_job_defer(j, release_kernel, k);
    snprintf(k->name, sizeof k->name, "%s", name);
    DC_PUSH_IN(&k->arena, k->ix, (dc_ix_node){0});
    DC_PUSH_IN(&k->arena, k->atom, (dc_atom_node){0});
    DC_PUSH_IN(&k->arena, k->vx, (dc_vx_node){0});
    dc_job_keep(j, k);
    return k;
}

void dc_kernel_free(dc_kernel *k)
{
    if (k == NULL)
        return;
    dc_arena_free(&k->arena);
    dc_xfree(k);
}

uint32_t dc_axis_new(dc_kernel *k, const char *name, int64_t extent, bool reduce)
{
    const dc_axis a = {.name = dc_arena_strdup(&k->arena, name),
                       .extent = extent,
                       .reduce = reduce,
                       .of = DC_NO_AXIS};
    DC_PUSH_IN(&k->arena, k->axis, a);
    return k->axis.n - 1;
}

int dc_axis_find(const dc_kernel *k, const char *name)
{
    for (uint32_t i = 0; i < k->axis.n; i++)
        if (strcmp(k->axis.at[i].name, name) == 0)
            return (int)i;
    return -1;
}

uint32_t dc_buffer_new(dc_kernel *k, const char *name, dc_dtype t, int64_t count, dc_scope s,
                       dc_mode m)
{
    dc_buffer b = {.dtype = (uint8_t)t, .scope = (uint8_t)s, .mode = (uint8_t)m, .count = count};
    b.name = dc_arena_strdup(&k->arena, name);
    if (s == DC_SCOPE_PARAM)
        b.param = k->nparam++;
    DC_PUSH_IN(&k->arena, k->buf, b);
    return k->buf.n - 1;
}

/* Value expressions ------------------------------------------------------------------------- */

static bool pred_same(dc_pred a, dc_pred b)
{
    if (a.n != b.n)
        return false;
    for (uint32_t i = 0; i < a.n; i++)
        if (a.range[i].ix != b.range[i].ix || a.range[i].n != b.range[i].n)
            return false;
    return true;
}

static uint64_t vx_hash(const dc_vx_node *v)
{
    uint64_t h = dc_hash_mix(v->kind, v->op);
    h = dc_hash_mix(dc_hash_mix(h, v->dtype), v->bits);
    h = dc_hash_mix(dc_hash_mix(h, v->buf), v->at);
    for (int i = 0; i < v->n; i++)
        h = dc_hash_mix(h, v->in[i]);
    for (uint32_t i = 0; i < v->pred.n; i++)
        h = dc_hash_mix(dc_hash_mix(h, v->pred.range[i].ix), (uint64_t)v->pred.range[i].n);
    return h;
}

static bool vx_same(const dc_vx_node *a, const dc_vx_node *b)
{
    return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype && a->n == b->n &&
           a->buf == b->buf && a->at == b->at && a->bits == b->bits &&
           memcmp(a->in, b->in, sizeof a->in) == 0 && pred_same(a->pred, b->pred);
}

static dc_axes axes_of(dc_kernel *k, const dc_vx_node *v)
{
    dc_axes all = {0};
    if (v->kind == DC_VX_LOAD || v->kind == DC_VX_INDEX)
        all = k->ix.at[v->at].axes;
    for (uint32_t i = 0; i < v->pred.n; i++)
        all = dc_axes_join(k, all, k->ix.at[v->pred.range[i].ix].axes);
    for (int i = 0; i < v->n; i++)
        all = dc_axes_join(k, all, k->vx.at[v->in[i]].axes);
    return all;
}

static dc_vx vx_cons(dc_kernel *k, const dc_vx_node *v)
{
    if (dc_hash_cons_reserve(k, &k->vxcons))
        for (uint32_t r = 1; r < k->vx.n; r++)
            dc_hash_cons_insert(&k->vxcons, vx_hash(&k->vx.at[r]), r);
    const uint64_t h = vx_hash(v);
    const uint32_t mask = k->vxcons.nslot - 1;
    for (uint32_t i = (uint32_t)h & mask; k->vxcons.slot[i] != 0; i = (i + 1) & mask)
        if (vx_same(&k->vx.at[k->vxcons.slot[i]], v))
            return k->vxcons.slot[i];
    dc_vx_node kept = *v;
    kept.axes = axes_of(k, v);
    DC_PUSH_IN(&k->arena, k->vx, kept);
    dc_hash_cons_insert(&k->vxcons, h, k->vx.n - 1);
    return k->vx.n - 1;
}

dc_vx dc_vx_op(dc_kernel *k, dc_op op, dc_dtype t, const dc_vx *in, int n)
{
    dc_vx_node v = {.kind = DC_VX_OP, .op = (uint8_t)op, .dtype = (uint8_t)t, .n = (uint8_t)n};
    for (int i = 0; i < n; i++)
        v.in[i] = in[i];
    return vx_cons(k, &v);
}

dc_vx dc_vx_const(dc_kernel *k, dc_dtype t, uint64_t bits)
{
    const dc_vx_node v = {.kind = DC_VX_CONST, .dtype = (uint8_t)t, .bits = bits};
    return vx_cons(k, &v);
}

dc_vx dc_vx_load(dc_kernel *k, uint32_t buf, dc_ix at, dc_pred pred)
{
    const dc_vx_node v = {
        .kind = DC_VX_LOAD, .dtype = k->buf.at[buf].dtype, .buf = buf, .at = at, .pred = pred};
    return vx_cons(k, &v);
}

dc_vx dc_vx_index(dc_kernel *k, dc_ix at, dc_dtype t)
{
    const dc_vx_node v = {.kind = DC_VX_INDEX, .dtype = (uint8_t)t, .at = at};
    return vx_cons(k, &v);
}

dc_vx dc_vx_test(dc_kernel *k, dc_pred pred)
{
    const dc_vx_node v = {.kind = DC_VX_TEST, .dtype = DC_BOOL, .pred = pred};
    return vx_cons(k, &v);
}

bool *dc_vx_parts(const dc_kernel *k, dc_arena *a, dc_vx v)
{
    bool *part = DC_NEW_ARRAY(a, bool, v + 1);
    part[v] = true;
    for (dc_vx n = v; n > 0; n--) /* operands are older than what uses them */
        for (int i = 0; part[n] && i < k->vx.at[n].n; i++)
            part[k->vx.at[n].in[i]] = true;
    return part;
}

void dc_ix_mark(const dc_kernel *k, dc_ix a, bool *seen)
{
    const dc_ix_node *x = &k->ix.at[a];
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &k->atom.at[x->term[i].atom];
        if (t->kind == DC_ATOM_VALUE)
            seen[t->value] = true;
        else if (t->kind != DC_ATOM_AXIS)
            dc_ix_mark(k, t->of, seen);
    }
}

void dc_pred_mark(const dc_kernel *k, dc_pred p, bool *seen)
{
    for (uint32_t i = 0; i < p.n; i++)
        dc_ix_mark(k, p.range[i].ix, seen);
}

void dc_vx_mark_parts(const dc_kernel *k, bool *seen)
{
    for (dc_vx v = k->vx.n; v-- > 1;) { /* as in dc_vx_parts */
        const dc_vx_node *n = &k->vx.at[v];
        if (!seen[v])
            continue;
        dc_pred_mark(k, n->pred, seen);
        if (n->kind == DC_VX_LOAD || n->kind == DC_VX_INDEX)
            dc_ix_mark(k, n->at, seen);
        for (int i = 0; i < n->n; i++)
            seen[n->in[i]] = true;
    }
}

/* Does 0 <= ix < n hold always, or where a does? */
static bool is_told(const dc_kernel *k, dc_pred a, dc_ix ix, int64_t n)
{
    const dc_ix_node *x = &k->ix.at[ix];
    if (x->lo >= 0 && x->hi < n)
        return true;
    for (uint32_t i = 0; i < a.n; i++)
        if (a.range[i].ix == ix && a.range[i].n <= n)
            return true;
    return false;
}

dc_pred dc_pred_and(dc_kernel *k, dc_pred a, dc_ix ix, int64_t n)
{
    if (is_told(k, a, ix, n))
        return a;
    dc_range *r = DC_NEW_ARRAY(&k->arena, dc_range, a.n + 1);
    if (a.n > 0)
        memcpy(r, a.range, a.n * sizeof *r);
    r[a.n] = (dc_range){ix, n};
    return (dc_pred){a.n + 1, r};
}

/* Rewriting --------------------------------------------------------------------------------- */

static dc_subst subst_new(dc_kernel *k)
{
    return (dc_subst){.k = k,
                      .axis = DC_NO_AXIS,
                      .buf = DC_NO_BUF,
                      .ixmap = DC_NEW_ARRAY(&k->arena, uint32_t, k->ix.n),
                      .vxmap = DC_NEW_ARRAY(&k->arena, uint32_t, k->vx.n),
                      .nix = k->ix.n,
                      .nvx = k->vx.n};
}

dc_subst dc_subst_axis(dc_kernel *k, uint32_t axis, dc_ix to)
{
    dc_subst s = subst_new(k);
    s.axis = axis;
    s.to = to;
    return s;
}

dc_subst dc_subst_buf(dc_kernel *k, uint32_t buf, dc_ix add)
{
    dc_subst s = subst_new(k);
    s.buf = buf;
    s.add = add;
    return s;
}

dc_pred dc_subst_pred(dc_subst *s, dc_pred p)
{
    dc_range *r = p.n > 0 ? DC_NEW_ARRAY(&s->k->arena, dc_range, p.n) : NULL;
    dc_pred out = {0, r};
    for (uint32_t i = 0; i < p.n; i++) {
        const dc_ix ix = dc_subst_ix(s, p.range[i].ix);
        if (!is_told(s->k, out, ix, p.range[i].n))
            r[out.n++] = (dc_range){ix, p.range[i].n};
    }
    return out;
}

dc_vx dc_subst_vx(dc_subst *s, dc_vx v)
{
    if (v == 0)
        return 0;
    if (v < s->nvx && s->vxmap[v] != 0)
        return s->vxmap[v];
    dc_vx_node n = s->k->vx.at[v];
    for (int i = 0; i < n.n; i++)
        n.in[i] = dc_subst_vx(s, n.in[i]);
    n.at = dc_subst_ix(s, n.at);
    n.pred = dc_subst_pred(s, n.pred);
    if (n.kind == DC_VX_LOAD && n.buf == s->buf)
        n.at = dc_ix_add(s->k, n.at, s->add);
    const dc_vx out = vx_cons(s->k, &n);
    if (v < s->nvx)
        s->vxmap[v] = out;
    return out;
}

static void subst_operand(dc_subst *s, dc_tile_operand *o)
{
    o->at = dc_subst_ix(s, o->at);
    if (o->buf == s->buf)
        o->at = dc_ix_add(s->k, o->at, s->add);
}

void dc_subst_stmt(dc_subst *s, dc_stmt *first)
{
    for (dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_LOOP) {
            t->from = t->from != 0 ? dc_subst_ix(s, t->from) : 0;
            t->to = t->to != 0 ? dc_subst_ix(s, t->to) : 0;
            dc_subst_stmt(s, t->body);
            continue;
        }
        t->pred = dc_subst_pred(s, t->pred);
        dc_stmt_limits_of(s, t, t);
        if (t->kind == DC_STMT_TILE) {
            subst_operand(s, &t->tile->c);
            subst_operand(s, &t->tile->a);
            subst_operand(s, &t->tile->b);
        }
        for (uint32_t i = 0; i < t->nput; i++) {
            dc_put *p = &t->put[i];
            p->value = dc_subst_vx(s, p->value);
            p->at = dc_subst_ix(s, p->at);
            if (p->buf == s->buf)
                p->at = dc_ix_add(s->k, p->at, s->add);
        }
    }
}

void dc_stmt_add_limit(dc_kernel *k, dc_stmt *s, dc_limit limit)
{
    for (uint32_t i = 0; i < s->nlimit; i++)
        if (s->limit[i].ix == limit.ix && s->limit[i].buf == limit.buf)
            return;
    dc_limit *all = DC_NEW_ARRAY(&k->arena, dc_limit, s->nlimit + 1);
    if (s->nlimit > 0)
        memcpy(all, s->limit, s->nlimit * sizeof *all);
    all[s->nlimit++] = limit;
    s->limit = all;
}

void dc_stmt_limits_of(dc_subst *s, dc_stmt *to, const dc_stmt *from)
{
    const dc_limit *old = from->limit;
    const uint32_t n = from->nlimit;
    bool same = true;
    dc_limit *made = n > 0 ? DC_NEW_ARRAY(&s->k->arena, dc_limit, n) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        made[i] = (dc_limit){dc_subst_ix(s, old[i].ix), old[i].buf};
        same = same && made[i].ix == old[i].ix;
    }
    to->limit = same ? old : made;
    to->nlimit = n;
}

bool dc_stmt_has_limits(const dc_stmt *first)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next)
        if (s->kind == DC_STMT_LOOP ? dc_stmt_has_limits(s->body) : s->nlimit > 0)
            return true;
    return false;
}

dc_stmt *dc_stmt_loop(dc_kernel *k, uint32_t axis, dc_stmt *body)
{
    dc_stmt *t = DC_NEW(&k->arena, dc_stmt);
    t->kind = DC_STMT_LOOP;
    t->axis = axis;
    t->body = body;
    return t;
}

dc_stmt *dc_stmt_set(dc_kernel *k, uint32_t nput)
{
    dc_stmt *t = DC_NEW(&k->arena, dc_stmt);
    t->kind = DC_STMT_SET;
    t->nput = nput;
    t->put = DC_NEW_ARRAY(&k->arena, dc_put, nput);
    return t;
}

dc_stmt *dc_stmt_copy(dc_kernel *k, const dc_stmt *first)
{
    dc_stmt *head = NULL, **tail = &head;
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        dc_stmt *c = DC_NEW(&k->arena, dc_stmt);
        *c = *t;
        c->next = NULL;
        c->body = dc_stmt_copy(k, t->body);
        if (t->nput > 0) {
            c->put = DC_NEW_ARRAY(&k->arena, dc_put, t->nput);
            memcpy(c->put, t->put, t->nput * sizeof *c->put);
        }
        if (t->tile != NULL) {
            c->tile = DC_NEW(&k->arena, dc_tile);
            *c->tile = *t->tile;
        }
        *tail = c;
        tail = &c->next;
    }
    return head;
}

/* Launching ---------------------------------------------------------------------------------- */

int64_t dc_nest_threads(const dc_kernel *k, const dc_stmt *first)
{
    int64_t most = 1;
    for (const dc_stmt *s = first; s != NULL; s = s->next) {
        if (s->kind != DC_STMT_LOOP)
            continue;
        const dc_axis *a = &k->axis.at[s->axis];
        const int64_t inside = dc_nest_threads(k, s->body);
        most = dc_max_i64(most, dc_axis_is_thread(a->kind) ? a->extent * inside : inside);
    }
    return most;
}

dc_launch dc_nest_launch(const dc_kernel *k)
{
    dc_launch l = {.positions = 0, .threads = (uint32_t)dc_nest_threads(k, k->root)};
    bool grid = false;
    for (const dc_stmt *s = k->root; s != NULL; s = s->next)
        if (s->kind == DC_STMT_LOOP && k->axis.at[s->axis].kind == DC_AXIS_GRID) {
            grid = true;
            l.positions += k->axis.at[s->axis].extent;
        }
    if (!grid)
        l.positions = 1;
    return l;
}

/* Dtypes of operations ----------------------------------------------------------------------- */

typedef enum rule {
    RULE_any,
    RULE_num,
    RULE_flt,
    RULE_bits,
    RULE_int,
    RULE_u32,
    RULE_half,
    RULE_pattern,
    RULE_sel
} rule;

static const uint8_t rules[] = {
#define EW(id, lua, n, flags, type, ...) [DC_OP_##id] = RULE_##type,
#include "core/ir/ops.def"
};

static bool takes(rule r, dc_dtype t)
{
    switch (r) {
    case RULE_any:
    case RULE_sel:
        return true;
    case RULE_num:
    case RULE_pattern:
        return t != DC_BOOL;
    case RULE_flt:
        return dc_dtype_is_float(t);
    case RULE_bits:
        return !dc_dtype_is_float(t);
    case RULE_int:
        return !dc_dtype_is_float(t) && t != DC_BOOL;
    case RULE_u32:
        return t == DC_U32;
    case RULE_half:
        return t == DC_U16;
    }
    return false;
}

bool dc_nest_op_dtype(const dc_kernel *k, dc_op op, const dc_vx *in, dc_dtype *out)
{
    const dc_op_row *row = dc_op_row_of(op);
    const rule r = (rule)rules[op];
    const int first = r == RULE_sel ? 1 : 0;
    const dc_dtype t = (dc_dtype)k->vx.at[in[first]].dtype;
    if (r == RULE_sel && k->vx.at[in[0]].dtype != DC_BOOL)
        return false;
    for (int i = first; i < row->n; i++)
        if (k->vx.at[in[i]].dtype != t || !takes(r, t) || (dc_dtype_is_short(t) && r != RULE_sel))
            return false;
    *out = (row->flags & DC_OPF_CMP) != 0 ? DC_BOOL : r == RULE_half ? DC_F32 : t;
    return true;
}
