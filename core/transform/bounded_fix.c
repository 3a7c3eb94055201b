/* Sizes put in: every node again, with the numbers that its sizes are. */
#include "core/ir/control.h"
#include "core/ir/conv.h"
#include "core/transform/bounded.h"

typedef struct fixing {
    dc_job *j;
    dc_extent_value *var;
    void *ctx;
} fixing;

static int64_t fixed(const fixing *x, int64_t dim)
{
    return dc_extent_eval(x->j->extents, dim, x->var, x->ctx);
}

static dc_type fixed_type(const fixing *x, const dc_func *f, dc_ref r)
{
    dc_type t = dc_node_type(f, r);
    for (int i = 0; i < t.rank; i++)
        t.dim[i] = fixed(x, t.dim[i]);
    return t;
}

static dc_status fix_function(const fixing *x, const dc_func *from, dc_func *to);

static dc_status fix_body(const fixing *x, dc_module *m, int64_t body, int64_t *made)
{
    const dc_func *from = dc_body_at(m, body);
    dc_func *to = dc_func_new(m, from->name);
    const dc_status status = fix_function(x, from, to);
    if (status == DC_OK)
        *made = dc_body_add(m, to);
    dc_func_drop(to);
    return status;
}

static dc_status fix_node(const fixing *x, const dc_func *from, dc_func *to, dc_ref r, dc_ref *map)
{
    const dc_node *n = dc_node_at(from, r);
    const dc_type want = fixed_type(x, from, r);
    dc_ref in[DC_MAX_OPERANDS];
    int64_t *attr = DC_NEW_ARRAY(&x->j->scratch, int64_t, n->nattr + 1);
    for (int i = 0; i < n->nin; i++)
        in[i] = map[n->in[i]];
    for (int i = 0; i < n->nattr; i++)
        attr[i] = n->attr[i];
    for (int i = 0; i < n->rank && (n->op == DC_OP_SLICE || n->op == DC_OP_PAD); i++)
        attr[i] = fixed(x, attr[i]);
    if (n->op == DC_OP_LOOP)
        attr[1] = fixed(x, attr[1]);
    for (int i = 0; i < dc_node_bodies(n); i++)
        DC_TRY(fix_body(x, to->module, n->attr[i], &attr[i]));
    return dc_make(x->j, to, (dc_op)n->op, in, n->nin, attr, n->nattr, &want, &map[r]);
}

static dc_status fix_function(const fixing *x, const dc_func *from, dc_func *to)
{
    dc_arena *a = &x->j->scratch;
    const bool *live = dc_func_live(from, a);
    dc_ref *map = DC_NEW_ARRAY(a, dc_ref, from->node.n);
    for (uint32_t i = 0; i < from->param.n; i++) {
        const dc_type t = fixed_type(x, from, from->param.at[i]);
        map[from->param.at[i]] = dc_graph_param(to, &t, from->label.at[i]);
    }
    for (dc_ref r = 1; r < from->node.n; r++)
        if (live[r] && dc_node_at(from, r)->op != DC_OP_PARAM)
            DC_TRY(fix_node(x, from, to, r, map));
    for (uint32_t i = 0; i < from->result.n; i++)
        DC_PUSH(to->result, map[from->result.at[i]]);
    return DC_OK;
}

dc_status dc_bounded_fix(dc_job *j, const dc_func *f, dc_extent_value *var, void *ctx,
                         dc_func **out)
{
    const fixing x = {j, var, ctx};
    dc_func *to = dc_func_new(f->module, f->name);
    const dc_status status = fix_function(&x, f, to);
    if (status == DC_OK)
        *out = to;
    else
        dc_func_drop(to);
    return status;
}
