#include "core/ir/control.h"

#include "core/base/extent.h"
#include "core/ir/subgraph.h"

#include <string.h>

/* ---- attributes ------------------------------------------------------------------------------ */

dc_loop dc_loop_read(const int64_t *attr)
{
    return (dc_loop){.body = (uint32_t)attr[0],
                     .n = attr[1],
                     .flags = (uint32_t)attr[2],
                     .nconst = (int)attr[3],
                     .ncarry = (int)attr[4],
                     .nx = (int)attr[5],
                     .ny = (int)attr[6]};
}

void dc_loop_write(const dc_loop *l, int64_t attr[DC_LOOP_ATTRS])
{
    const int64_t all[DC_LOOP_ATTRS] = {l->body,   l->n,  l->flags, l->nconst,
                                        l->ncarry, l->nx, l->ny};
    memcpy(attr, all, sizeof all);
}

dc_loop dc_loop_of(const dc_node *n)
{
    return dc_loop_read(n->attr);
}

/* ---- types ----------------------------------------------------------------------------------- */

static dc_type token(void)
{
    return dc_type_make(DC_BOOL, 1, (const int64_t[]){0});
}

static const dc_func *body_of(const dc_func *f, const dc_node *n, int which)
{
    return dc_body_at(f->module, n->attr[which]);
}

dc_ref dc_loop_start(const dc_func *f, dc_ref pick)
{
    const dc_node *n = dc_node_at(f, pick), *from = dc_node_at(f, n->in[0]);
    if (from->op != DC_OP_LOOP)
        return 0;
    const dc_loop l = dc_loop_of(from);
    const int i = (int)n->attr[0];
    if (i < l.ncarry)
        return from->in[dc_loop_carry(&l) + i];
    return dc_loop_may_end(&l) ? from->in[dc_loop_y(&l) + i - l.ncarry] : 0;
}

dc_type dc_loop_stack_type(const dc_loop *l, const dc_type *element)
{
    dc_type t = *element;
    if ((l->flags & DC_LOOP_ROWS) == 0)
        return dc_type_stacked(element, l->n);
    t.dim[0] *= l->n;
    return t;
}

int dc_control_results(const dc_func *f, const dc_node *n)
{
    return (int)body_of(f, n, 0)->result.n;
}

static dc_type stack_of(const dc_node *n, const dc_type *element)
{
    const dc_loop l = dc_loop_of(n);
    return dc_loop_stack_type(&l, element);
}

dc_type dc_control_result(const dc_func *f, const dc_node *n, int i)
{
    const dc_func *body = body_of(f, n, 0);
    const dc_type t = dc_node_type(body, body->result.at[i]);
    if (n->op == DC_OP_LOOP && i >= dc_loop_of(n).ncarry)
        return stack_of(n, &t);
    return t;
}

/* ---- the rules ------------------------------------------------------------------------------- */

typedef struct site {
    dc_job *j;
    const dc_func *f;
    dc_op op;
    const dc_ref *in;
    int nin;
} site;

static dc_status refuse(const site *s, const char *why)
{
    return dc_failf(s->j, DC_ERR_ARG, dc_op_row_of(s->op)->name, "%s", why);
}

static bool is_body(const site *s, int64_t body)
{
    return body >= 0 && body < (int64_t)s->f->module->body.n;
}

static dc_type param_type(const dc_func *body, int i)
{
    return dc_node_type(body, body->param.at[i]);
}

static dc_type result_type(const dc_func *body, int i)
{
    return dc_node_type(body, body->result.at[i]);
}

static dc_status need_type(const site *s, const char *what, int i, const dc_type *is,
                           const dc_type *want)
{
    if (dc_type_same(is, want))
        return DC_OK;
    char got[DC_TYPE_TEXT], needed[DC_TYPE_TEXT];
    dc_type_print(is, got, sizeof got);
    dc_type_print(want, needed, sizeof needed);
    return dc_failf(s->j, DC_ERR_ARG, dc_op_row_of(s->op)->name, "%s %d is %s, not %s", what, i + 1,
                    got, needed);
}

static dc_status check_counts(const site *s, const int64_t *attr, int nattr, dc_loop *l)
{
    if (nattr != DC_LOOP_ATTRS)
        return refuse(s, "a loop has 7 attributes");
    for (int i = 3; i < DC_LOOP_ATTRS; i++)
        if (attr[i] < 0 || attr[i] > DC_MAX_OPERANDS)
            return refuse(s, "a count is out of range");
    if (!is_body(s, attr[0]))
        return refuse(s, "there is no such body");
    if (dc_extent_bound(attr[1]) < 0 || dc_extent_bound(attr[1]) > INT32_MAX ||
        (dc_extent_is(attr[1]) && !dc_extent_known(s->j->extents, attr[1])))
        return refuse(s, "the number of iterations is out of range");
    if (attr[2] < 0 || attr[2] > DC_LOOP_FLAGS)
        return refuse(s, "unknown flags");
    *l = dc_loop_read(attr);
    const dc_func *body = dc_body_at(s->f->module, attr[0]);
    if (dc_loop_operands(l) != s->nin || dc_loop_operands(l) > DC_MAX_OPERANDS)
        return refuse(s, "the number of operands is not that of the counts");
    if ((int)body->param.n != 1 + l->nconst + l->ncarry + l->nx ||
        (int)body->result.n != l->ncarry + l->ny)
        return refuse(s, "the body has another number of parameters or results");
    if ((l->flags & DC_LOOP_TEST) != 0 && l->ncarry == 0)
        return refuse(s, "there is no carry that says whether it goes on");
    return DC_OK;
}

/* The type of an element becomes that of the stack. */
static dc_status check_stack(const site *s, const dc_loop *l, dc_type *t, const char *why)
{
    const bool rows = (l->flags & DC_LOOP_ROWS) != 0;
    int64_t dim;
    if (rows ? t->rank == 0 : t->rank == DC_MAX_RANK)
        return refuse(s, why);
    if (rows &&
        (dc_extent_is(l->n) || dc_extent_is(t->dim[0]) || !dc_mul_ok(l->n, t->dim[0], &dim)))
        return refuse(s, "rows of a stack that are no number");
    *t = dc_loop_stack_type(l, t);
    return DC_OK;
}

static dc_status check_loop(const site *s, const int64_t *attr, int nattr)
{
    dc_loop l = {0};
    DC_TRY(check_counts(s, attr, nattr, &l));
    const dc_func *body = dc_body_at(s->f->module, attr[0]);
    const dc_type i32 = dc_type_make(DC_I32, 0, NULL), yes = dc_type_make(DC_BOOL, 0, NULL);
    dc_type t = param_type(body, 0);
    DC_TRY(need_type(s, "parameter", 0, &t, &i32));
    if (l.flags & DC_LOOP_LIMIT) {
        t = dc_node_type(s->f, s->in[0]);
        DC_TRY(need_type(s, "operand", 0, &t, &i32));
    }
    if (l.flags & DC_LOOP_TEST) {
        t = result_type(body, 0);
        DC_TRY(need_type(s, "carry", 0, &t, &yes));
    }
    for (int i = 0; i < l.nconst + l.ncarry + l.nx; i++) {
        const dc_type want = dc_node_type(s->f, s->in[dc_loop_const(&l) + i]);
        t = param_type(body, 1 + i);
        if (i >= l.nconst + l.ncarry)
            DC_TRY(check_stack(s, &l, &t, "an x has too many axes, or none"));
        DC_TRY(need_type(s, "parameter", 1 + i, &t, &want));
    }
    for (int i = 0; i < l.ncarry; i++) {
        const dc_type want = param_type(body, 1 + l.nconst + i);
        t = result_type(body, i);
        DC_TRY(need_type(s, "carry", i, &t, &want));
    }
    for (int i = 0; i < l.ny; i++) {
        t = result_type(body, l.ncarry + i);
        DC_TRY(check_stack(s, &l, &t, "a y has too many axes, or none"));
        if (!dc_dims_fit(t.rank, t.dim, dc_dtype_size((dc_dtype)t.dtype)))
            return refuse(s, "a y is too large to address");
        if (!dc_loop_may_end(&l))
            continue;
        const dc_type is = dc_node_type(s->f, s->in[dc_loop_y(&l) + i]);
        DC_TRY(need_type(s, "operand", dc_loop_y(&l) + i, &is, &t));
    }
    return DC_OK;
}

static dc_status check_branch(const site *s, const int64_t *attr, int nattr)
{
    if (nattr != DC_BRANCH_ATTRS || !is_body(s, attr[0]) || !is_body(s, attr[1]))
        return refuse(s, "two bodies are needed");
    if (s->nin < 1 || s->nin > DC_MAX_OPERANDS)
        return refuse(s, "the number of operands is out of range");
    const dc_func *yes = dc_body_at(s->f->module, attr[0]);
    const dc_type flag = dc_node_type(s->f, s->in[0]), want = dc_type_make(DC_BOOL, 0, NULL);
    DC_TRY(need_type(s, "operand", 0, &flag, &want));
    for (int side = 0; side < 2; side++) {
        const dc_func *body = dc_body_at(s->f->module, attr[side]);
        if ((int)body->param.n != s->nin - 1 || body->result.n != yes->result.n)
            return refuse(s, "a body has another number of parameters or results");
        for (int i = 1; i < s->nin; i++) {
            const dc_type is = param_type(body, i - 1), given = dc_node_type(s->f, s->in[i]);
            DC_TRY(need_type(s, "parameter", i - 1, &is, &given));
        }
        for (int i = 0; i < (int)body->result.n; i++) {
            const dc_type is = result_type(body, i), first = result_type(yes, i);
            DC_TRY(need_type(s, "result", i, &is, &first));
        }
    }
    return DC_OK;
}

static dc_status infer_pick(const site *s, const int64_t *attr, int nattr, dc_type *out)
{
    if (s->nin != 1 || nattr != 1)
        return refuse(s, "one operand and one number are needed");
    const dc_node *n = dc_node_at(s->f, s->in[0]);
    if (!dc_is_control(n))
        return refuse(s, "the operand is neither a loop nor a branch");
    if (attr[0] < 0 || attr[0] >= dc_control_results(s->f, n))
        return refuse(s, "there is no such result");
    *out = dc_control_result(s->f, n, (int)attr[0]);
    return DC_OK;
}

dc_status dc_control_infer(dc_job *j, const dc_func *f, dc_op op, const dc_ref *in, int nin,
                           const int64_t *attr, int nattr, dc_type *out)
{
    const site s = {j, f, op, in, nin};
    if (op == DC_OP_PICK)
        return infer_pick(&s, attr, nattr, out);
    *out = token();
    return op == DC_OP_LOOP ? check_loop(&s, attr, nattr) : check_branch(&s, attr, nattr);
}

/* ---- for passes ------------------------------------------------------------------------------ */

dc_ref dc_graph_loop(dc_func *f, const dc_loop *l, const dc_ref *in)
{
    int64_t attr[DC_LOOP_ATTRS];
    dc_loop_write(l, attr);
    return dc_graph_make(f, DC_OP_LOOP, in, dc_loop_operands(l), attr, DC_LOOP_ATTRS, NULL);
}

dc_ref dc_graph_branch(dc_func *f, uint32_t yes, uint32_t no, const dc_ref *in, int nin)
{
    return dc_graph_make(f, DC_OP_BRANCH, in, nin, (const int64_t[]){yes, no}, DC_BRANCH_ATTRS,
                         NULL);
}

dc_ref dc_graph_pick(dc_func *f, dc_ref r, int i)
{
    const int64_t attr = i;
    return dc_graph_make(f, DC_OP_PICK, &r, 1, &attr, 1, NULL);
}

void dc_graph_inline(dc_func *f, const dc_func *from, const dc_ref *param, dc_ref *result)
{
    dc_job *j = dc_job_here();
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const bool *live = dc_func_live(from, &j->scratch);
    dc_ref *map = DC_NEW_ARRAY(&j->scratch, dc_ref, from->node.n);
    for (uint32_t i = 0; i < from->param.n; i++)
        map[from->param.at[i]] = param[i];
    for (dc_ref r = 1; r < from->node.n; r++) {
        const dc_node *n = dc_node_at(from, r);
        dc_ref in[DC_MAX_OPERANDS];
        if (!live[r] || n->op == DC_OP_PARAM)
            continue;
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        map[r] = dc_graph_again(f, from, r, in);
    }
    for (uint32_t i = 0; i < from->result.n; i++)
        result[i] = map[from->result.at[i]];
    dc_arena_rewind(&j->scratch, mark);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static bool same_array(const void *a, const void *b, size_t bytes)
{
    return bytes == 0 || memcmp(a, b, bytes) == 0;
}

/* Of one module, both as dc_func_clone leaves them. */
static bool same_body(const dc_func *a, const dc_func *b)
{
    if (a->node.n != b->node.n || a->param.n != b->param.n || a->result.n != b->result.n ||
        !same_array(a->result.at, b->result.at, a->result.n * sizeof *a->result.at))
        return false;
    for (dc_ref r = 1; r < a->node.n; r++) {
        const dc_node *x = dc_node_at(a, r), *y = dc_node_at(b, r);
        if (x->op != y->op || x->dtype != y->dtype || x->rank != y->rank || x->nin != y->nin ||
            x->nattr != y->nattr || !same_array(x->dim, y->dim, x->rank * sizeof *x->dim) ||
            !same_array(x->in, y->in, x->nin * sizeof *x->in) ||
            !same_array(x->attr, y->attr, x->nattr * sizeof *x->attr))
            return false;
    }
    return true;
}

uint32_t dc_body_add(dc_module *m, const dc_func *f)
{
    return dc_body_add_with(m, f, NULL);
}

uint32_t dc_body_add_with(dc_module *m, const dc_func *f, uint32_t *known)
{
    dc_func *fn = dc_func_clone_with(m, f, NULL, known);
    const uint64_t hash = dc_func_hash(fn);
    for (uint32_t i = 0; i < m->body.n; i++)
        if (m->body.at[i].hash == hash && same_body(m->body.at[i].fn, fn)) {
            dc_func_drop(fn);
            return i;
        }
    DC_ROOM(m->body); /* from here on the list frees it */
    dc_func_detach(fn);
    DC_PUSH(m->body, ((dc_body){fn, hash, 0}));
    return m->body.n - 1;
}

void dc_bodies_import(dc_module *to, const dc_module *from, const dc_node *n, int64_t *attr,
                      uint32_t *known)
{
    for (int i = 0; i < n->nattr; i++)
        attr[i] = n->attr[i];
    for (int i = 0; to != from && i < dc_node_bodies(n); i++) {
        uint32_t own = 0, *at = known != NULL ? &known[n->attr[i]] : &own;
        if (*at == 0)
            *at = 1 + dc_body_add_with(to, dc_body_at(from, n->attr[i]), known);
        attr[i] = *at - 1;
    }
}

static uint32_t bodies_in(const dc_func *f, const uint32_t *in)
{
    uint64_t n = 0;
    for (dc_ref r = 1; r < f->node.n; r++)
        for (int i = 0; i < dc_node_bodies(dc_node_at(f, r)); i++)
            n += 1 + (uint64_t)in[dc_node_at(f, r)->attr[i]];
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

uint32_t dc_control_bodies(const dc_func *f)
{
    dc_scratch scratch;
    dc_arena *a = dc_scratch_begin(&scratch);
    uint32_t *in = DC_NEW_ARRAY(a, uint32_t, f->module->body.n + 1);
    for (uint32_t i = 0; i < f->module->body.n; i++)
        in[i] = bodies_in(f->module->body.at[i].fn, in);
    const uint32_t n = bodies_in(f, in);
    dc_scratch_end(&scratch);
    return n;
}
