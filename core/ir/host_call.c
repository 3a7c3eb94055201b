#include "core/ir/host_call.h"

#include <string.h>

dc_host_call dc_host_call_of(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    dc_host_call c = {.op = (dc_op)n->op,
                      .nin = n->nin,
                      .nattr = n->nattr,
                      .label = dc_op_row_of((dc_op)n->op)->name};
    for (int i = 0; i < n->nin; i++)
        c.in[i] = dc_node_type(f, n->in[i]);
    for (int i = 0; i < n->nattr; i++)
        c.attr[i] = n->attr[i];
    c.out = dc_node_type(f, r);
    return c;
}

int dc_host_call_axes(dc_op op, const int64_t *attr)
{
    DC_ASSERT(dc_op_is(op, DC_CLASS_HST), "op %d", (int)op);
    if (op == DC_OP_RUN)
        return 1 + (int)attr[2];
    return op == DC_OP_SORT || op == DC_OP_ARGSORT || op == DC_OP_TOPK ? 1 : 2;
}

static uint32_t put_type(int64_t *to, uint32_t at, const dc_type *t)
{
    to[at++] = t->dtype;
    to[at++] = t->rank;
    for (int k = 0; k < t->rank; k++)
        to[at++] = t->dim[k];
    return at;
}

/*
 * op, attributes and their number, operands and their number; of recv the result. A type is dtype, rank, dims.
 */
const int64_t *dc_host_call_pack(const dc_host_call *c, dc_arena *a, uint32_t *n)
{
    int64_t *to =
        DC_NEW_ARRAY(a, int64_t, 3 + DC_HOST_ATTRS + (DC_HOST_OPERANDS + 1) * (2 + DC_MAX_RANK));
    uint32_t at = 0;
    to[at++] = c->op;
    to[at++] = c->nattr;
    for (int i = 0; i < c->nattr; i++)
        to[at++] = c->attr[i];
    to[at++] = c->nin;
    for (int i = 0; i < c->nin; i++)
        at = put_type(to, at, &c->in[i]);
    if (c->op == DC_OP_RECV)
        at = put_type(to, at, &c->out);
    *n = at;
    return to;
}

typedef struct reading {
    const int64_t *at;
    uint32_t n;
    bool wrong;
} reading;

static int64_t next(reading *r, int64_t most)
{
    if (r->n == 0 || *r->at < 0 || *r->at > most) {
        r->wrong = true;
        return 0;
    }
    r->n--;
    return *r->at++;
}

static dc_type next_type(reading *r)
{
    int64_t dim[DC_MAX_RANK];
    const int64_t dtype = next(r, DC_DTYPE__COUNT - 1), rank = next(r, DC_MAX_RANK);
    for (int k = 0; k < rank; k++)
        dim[k] = next(r, INT64_MAX);
    const dc_type t = dc_type_make((dc_dtype)dtype, (int)rank, dim);
    r->wrong = r->wrong || !dc_dims_fit(t.rank, t.dim, dc_dtype_size((dc_dtype)t.dtype));
    return t;
}

bool dc_host_call_unpack(dc_job *j, const int64_t *at, uint32_t n, dc_host_call *out)
{
    reading r = {at, n, false};
    dc_host_call c = {.op = (dc_op)next(&r, DC_OP__COUNT - 1)};
    c.nattr = (int)next(&r, DC_HOST_ATTRS);
    for (int i = 0; i < c.nattr; i++)
        c.attr[i] = next(&r, INT64_MAX);
    c.nin = (int)next(&r, DC_HOST_OPERANDS);
    for (int i = 0; i < c.nin; i++)
        c.in[i] = next_type(&r);
    const dc_type want = c.op == DC_OP_RECV ? next_type(&r) : (dc_type){0};
    dc_job inner = {.opt = j->opt, .log = j->log, .extents = j->extents};
    if (r.wrong || r.n > 0 || !dc_op_for_host(c.op) ||
        dc_infer(&inner, c.op, c.in, c.nin, c.attr, c.nattr, &want, &c.out) != DC_OK)
        return false;
    c.label = dc_op_row_of(c.op)->name;
    *out = c;
    return true;
}
