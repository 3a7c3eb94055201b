#include "core/ir/exchange.h"

#include "core/base/extent.h"
#include "core/ir/control.h"
#include "core/ir/infer_impl.h"

#include <inttypes.h>
#include <string.h>

enum { MASK = (1 << DC_MESH_AXES) - 1, NUMBER = 1 << DC_MESH_AXES };

dc_exchange_attr dc_exchange_read(const int64_t *attr)
{
    dc_exchange_attr x = {
        attr[0], attr[1], {(uint32_t)attr[3], attr[2] & MASK, {0}}, attr[2] / NUMBER};
    for (uint32_t i = 0; i < x.group.naxis; i++)
        x.group.size[i] = attr[4 + i];
    return x;
}

int dc_exchange_write(const dc_exchange_attr *x, int64_t attr[DC_EXCHANGE_ATTRS])
{
    attr[0] = x->axis;
    attr[1] = x->other;
    attr[2] = x->group.mask + NUMBER * x->number;
    attr[3] = x->group.naxis;
    for (uint32_t i = 0; i < x->group.naxis; i++)
        attr[4 + i] = x->group.size[i];
    return 4 + (int)x->group.naxis;
}

/* ---- types --------------------------------------------------------------------------------------- */

/* Attributes may come from a text. */
static dc_status check_attrs(const dc_site *s)
{
    const int64_t *a = s->attr;
    bool ok = s->nattr >= 5 && a[3] >= 1 && a[3] <= DC_MESH_AXES && s->nattr == 4 + a[3] &&
              (a[2] & MASK) >= 1 && (a[2] & MASK) < (int64_t)1 << a[3] && a[2] >= 0 &&
              a[2] / NUMBER <= INT32_MAX;
    int64_t n = 1;
    for (int i = 4; i < s->nattr && ok; i++)
        ok = a[i] >= 1 && dc_mul_ok(n, a[i], &n) && n <= INT32_MAX;
    if (!ok)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s),
                        "a mask and the sizes of a mesh are needed");
    return DC_OK;
}

/* An axis that is taken apart or put together: parts of a size that is not known would not lie behind each other. */
static dc_status check_axis(const dc_site *s, int64_t axis)
{
    const dc_type *t = &s->in[0];
    if (axis < 0 || axis >= t->rank)
        return dc_fail(s->j, DC_ERR_AXIS,
                       &(dc_fact){.op = dc_site_name(s), .num = {axis, t->rank}, .type = {*t}});
    if (dc_extent_is(t->dim[axis]))
        return dc_fail(
            s->j, DC_ERR_EXTENT,
            &(dc_fact){.op = dc_site_name(s), .axis = {(int)axis}, .type = {*t}, .operand = 1});
    return DC_OK;
}

/* Beyond all sizes: TOO_LARGE, which who calls finds. */
static int64_t times_at_most(int64_t dim, int64_t n)
{
    return dc_mul_ok(dim, n, &dim) ? dim : INT64_MAX;
}

static dc_status check_member(const dc_site *s, int64_t member, int64_t n)
{
    if (member >= 0 && member < n)
        return DC_OK;
    return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s),
                    "there is no rank %" PRId64 " of %" PRId64 ": they count from 0", member, n);
}

static dc_status check_combine(const dc_site *s, int64_t by)
{
    if (by < DC_COMBINE_SUM || by > DC_COMBINE_MIN || by == DC_COMBINE_PROD)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s),
                        "no way to combine has the number %" PRId64, by);
    if (s->in[0].dtype == DC_BOOL && by == DC_COMBINE_SUM)
        return dc_fail(
            s->j, DC_ERR_DTYPE,
            &(dc_fact){
                .op = dc_site_name(s), .type = {s->in[0]}, .word = {"a number"}, .operand = 1});
    return DC_OK;
}

/* Does the axis divide into n equal parts? */
static dc_status check_divides(const dc_site *s, int64_t axis, int64_t n)
{
    if (s->in[0].dim[axis] % n == 0)
        return DC_OK;
    return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s),
                    "axis %" PRId64 " has %" PRId64 " elements, which %" PRId64
                    " ranks cannot share equally",
                    axis + 1, s->in[0].dim[axis], n);
}

dc_status dc_infer_exchange_dtype(const dc_site *s)
{
    s->out->dtype = s->op == DC_OP_RECV       ? s->want->dtype
                    : dc_op_is_message(s->op) ? DC_F32
                                              : s->in[0].dtype;
    if (s->op == DC_OP_RECV && dc_dtype_is_complex((dc_dtype)s->want->dtype))
        return dc_fail(
            s->j, DC_ERR_DTYPE,
            &(dc_fact){.op = dc_site_name(s), .type = {*s->want}, .word = {"a real number"}});
    return DC_OK;
}

/* The other one knows sizes before it gets anything. */
static dc_status check_fixed(const dc_site *s, const dc_type *t)
{
    for (int k = 0; k < t->rank; k++)
        if (dc_extent_is(t->dim[k]))
            return dc_fail(
                s->j, DC_ERR_EXTENT,
                &(dc_fact){.op = dc_site_name(s), .axis = {k}, .type = {*t}, .operand = 1});
    if (dc_type_count(t) == 0)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "a message has an element at least");
    return DC_OK;
}

static dc_status message_shape(const dc_site *s)
{
    s->out->rank = 0;
    if (s->op == DC_OP_ARRIVED)
        return s->nattr == 0 ? DC_OK
                             : dc_failf(s->j, DC_ERR_ARG, dc_site_name(s),
                                        "%d attributes given, none needed", s->nattr);
    DC_TRY(check_attrs(s));
    const dc_exchange_attr x = dc_exchange_read(s->attr);
    DC_TRY(check_member(s, x.other, dc_group_size(&x.group)));
    if (s->op == DC_OP_SEND)
        return check_fixed(s, &s->in[0]);
    s->out->rank = s->want->rank;
    memcpy(s->out->dim, s->want->dim, sizeof s->out->dim);
    return check_fixed(s, s->want);
}

dc_status dc_infer_exchange_shape(const dc_site *s)
{
    if (dc_op_is_message(s->op))
        return message_shape(s);
    DC_TRY(check_attrs(s));
    const dc_exchange_attr x = dc_exchange_read(s->attr);
    const int64_t n = dc_group_size(&x.group);
    s->out->rank = s->in[0].rank;
    memcpy(s->out->dim, s->in[0].dim, sizeof s->out->dim);
    if (s->op == DC_OP_BROADCAST)
        return check_member(s, x.other, n);
    if (s->op == DC_OP_ALL_REDUCE)
        return check_combine(s, x.other);
    DC_TRY(check_axis(s, x.axis));
    if (s->op == DC_OP_ALL_GATHER) {
        s->out->dim[x.axis] = times_at_most(s->out->dim[x.axis], n);
        return DC_OK;
    }
    DC_TRY(check_divides(s, x.axis, n));
    s->out->dim[x.axis] /= n;
    if (s->op == DC_OP_REDUCE_SCATTER)
        return check_combine(s, x.other);
    DC_TRY(check_axis(s, x.other));
    s->out->dim[x.other] = times_at_most(s->out->dim[x.other], n);
    return DC_OK;
}

/* ---- numbers ------------------------------------------------------------------------------------- */

bool dc_exchange_is_written(const dc_node *n)
{
    return dc_op_is((dc_op)n->op, DC_CLASS_COM) && !dc_op_is_message((dc_op)n->op) &&
           n->attr[2] >= NUMBER;
}

/* Numbers rise with nodes. */
int64_t dc_exchange_next(const dc_func *f, dc_op op, uint32_t mask)
{
    if (!f->module->written)
        return 0;
    for (dc_ref r = f->node.n; r-- > 1;) {
        const dc_node *n = dc_node_at(f, r);
        if (dc_op_is((dc_op)n->op, DC_CLASS_COM) && n->nattr > 0 && n->attr[2] >= NUMBER &&
            dc_op_is_message((dc_op)n->op) == dc_op_is_message(op) && (n->attr[2] & MASK) == mask)
            return n->attr[2] / NUMBER + 1;
    }
    return 1;
}

/* ---- nodes --------------------------------------------------------------------------------------- */

/* With the number of the next one. */
static int write_next(const dc_func *f, dc_op op, const dc_exchange_attr *x,
                      int64_t attr[DC_EXCHANGE_ATTRS])
{
    dc_exchange_attr own = *x;
    own.number = dc_exchange_next(f, op, x->group.mask);
    return dc_exchange_write(&own, attr);
}

dc_ref dc_graph_exchange(dc_func *f, dc_op op, dc_ref a, const dc_exchange_attr *x)
{
    int64_t attr[DC_EXCHANGE_ATTRS];
    const int nattr = write_next(f, op, x, attr);
    return dc_graph_make(f, op, &a, 1, attr, nattr, NULL);
}

dc_ref dc_graph_all_reduce(dc_func *f, dc_ref a, dc_combine by, const dc_group_axes *group)
{
    return dc_graph_exchange(f, DC_OP_ALL_REDUCE, a, &(dc_exchange_attr){0, by, *group, 0});
}

dc_ref dc_graph_reduce_scatter(dc_func *f, dc_ref a, int axis, dc_combine by,
                               const dc_group_axes *group)
{
    return dc_graph_exchange(f, DC_OP_REDUCE_SCATTER, a, &(dc_exchange_attr){axis, by, *group, 0});
}

dc_ref dc_graph_all_gather(dc_func *f, dc_ref a, int axis, const dc_group_axes *group)
{
    return dc_graph_exchange(f, DC_OP_ALL_GATHER, a, &(dc_exchange_attr){axis, 0, *group, 0});
}

dc_ref dc_graph_send(dc_func *f, dc_ref a, dc_ref after, const dc_exchange_attr *x)
{
    int64_t attr[DC_EXCHANGE_ATTRS];
    const int nattr = write_next(f, DC_OP_SEND, x, attr);
    return dc_graph_make(f, DC_OP_SEND, (dc_ref[]){a, after}, 2, attr, nattr, NULL);
}

dc_ref dc_graph_recv(dc_func *f, const dc_type *t, dc_ref after, const dc_exchange_attr *x)
{
    int64_t attr[DC_EXCHANGE_ATTRS];
    const int nattr = write_next(f, DC_OP_RECV, x, attr);
    return dc_graph_make(f, DC_OP_RECV, &after, 1, attr, nattr, t);
}

dc_ref dc_graph_behind(dc_func *f, dc_ref a, dc_ref token)
{
    const dc_node n = *dc_node_at(f, a);
    const dc_dtype t = (dc_dtype)n.dtype;
    const dc_ref zeros =
        dc_graph_unreduce(f, dc_graph_cast(f, token, t), (1u << n.rank) - 1, n.rank, n.dim);
    return dc_graph_op2(f, t == DC_BOOL ? DC_OP_OR : DC_OP_SUB, a, zeros);
}

dc_ref dc_graph_arrived(dc_func *f, dc_ref r, dc_ref after)
{
    return dc_graph_make(f, DC_OP_ARRIVED, (dc_ref[]){r, after}, 2, NULL, 0, NULL);
}

/* Is it such a node, or a loop or a branch with one? */
static bool holds(const dc_func *f, const dc_node *n, bool (*is)(const dc_node *n))
{
    bool any = is(n);
    for (int i = 0; i < dc_node_bodies(n) && !any; i++) {
        const dc_func *body = dc_body_at(f->module, n->attr[i]);
        for (dc_ref r = 1; r < body->node.n && !any; r++)
            any = holds(body, dc_node_at(body, r), is);
    }
    return any;
}

static bool is_message(const dc_node *n)
{
    return n->op == DC_OP_SEND || n->op == DC_OP_RECV;
}

static bool is_ordered(const dc_node *n)
{
    return is_message(n) || dc_exchange_is_written(n);
}

bool dc_exchange_is_message(const dc_func *f, const dc_node *n)
{
    return holds(f, n, is_message);
}

bool dc_exchange_is_ordered(const dc_func *f, const dc_node *n)
{
    return holds(f, n, is_ordered);
}

bool dc_exchange_answers(const dc_func *f, const dc_node *n)
{
    if (n->op == DC_OP_RECV || n->op == DC_OP_SEND)
        return dc_dtype_is_float(
            (dc_dtype)(n->op == DC_OP_RECV ? n->dtype : dc_node_at(f, n->in[0])->dtype));
    for (int i = 0; i < dc_node_bodies(n); i++) {
        const dc_func *body = dc_body_at(f->module, n->attr[i]);
        for (dc_ref r = 1; r < body->node.n; r++)
            if (dc_exchange_answers(body, dc_node_at(body, r)))
                return true;
    }
    return false;
}

double dc_exchange_bytes(dc_op op, const dc_exchange_attr *x, const dc_type *t)
{
    const double n = (double)dc_group_size(&x->group), bytes = (double)dc_type_bytes(t);
    switch (op) {
    case DC_OP_ALL_REDUCE:
        return 2 * (n - 1) / n * bytes;
    case DC_OP_ALL_GATHER:
        return (n - 1) * bytes;
    case DC_OP_SEND:
        return bytes;
    case DC_OP_RECV:
    case DC_OP_ARRIVED:
        return 0;
    default: /* of a broadcast one member gives all, or each a part */
        return (n - 1) / n * bytes;
    }
}

/* ---- carrying out -------------------------------------------------------------------------------- */

static int64_t product(const dc_type *t, int first, int end)
{
    int64_t n = 1;
    for (int k = first; k < end; k++)
        n *= t->dim[k];
    return n;
}

/* What a member has is [before, axis, behind]; of inputs that are cut the axis is [n, its part]. */
static dc_transfer transfer_of(dc_op op, const dc_exchange_attr *x, const dc_type *in, void *to,
                               const void *from)
{
    const int axis = (int)x->axis;
    const int64_t all = product(in, 0, in->rank);
    if (dc_op_is_message(op)) /* the other place is that of a token */
        return (dc_transfer){op == DC_OP_SEND ? from : NULL, op == DC_OP_SEND ? NULL : to, 1, all};
    if (op == DC_OP_ALL_REDUCE || op == DC_OP_BROADCAST)
        return (dc_transfer){from, to, 1, all};
    const int64_t n = op == DC_OP_ALL_GATHER ? 1 : dc_group_size(&x->group);
    return (dc_transfer){from, to, product(in, 0, axis), product(in, axis, in->rank) / n};
}

static dc_exchange_kind kind_of(dc_op op)
{
    switch (op) {
    case DC_OP_ALL_REDUCE:
        return DC_ALL_REDUCE;
    case DC_OP_REDUCE_SCATTER:
        return DC_REDUCE_SCATTER;
    case DC_OP_ALL_GATHER:
        return DC_ALL_GATHER;
    case DC_OP_ALL_TO_ALL:
        return DC_ALL_TO_ALL;
    case DC_OP_SEND:
        return DC_SEND;
    case DC_OP_RECV:
        return DC_RECV;
    default:
        return DC_BROADCAST;
    }
}

static bool turns(dc_op op, const dc_exchange_attr *x)
{
    return op == DC_OP_ALL_TO_ALL && x->axis != x->other;
}

/*
 * Parts lie one behind the other where the axis was, [before, n, part, behind], and have to stand in front of what is left
 * of the axis `other`.
 */
static void put_parts(const dc_exchange_attr *x, const dc_type *in, char *to, const char *from)
{
    const int64_t n = dc_group_size(&x->group), size = (int64_t)dc_dtype_size((dc_dtype)in->dtype);
    const int axis = (int)x->axis, other = (int)x->other, first = axis < other ? axis : other;
    const int last = axis < other ? other : axis;
    const int64_t before = product(in, 0, first);
    int64_t between = product(in, first, last), block = product(in, last, in->rank);
    if (axis < other)
        between /= n;
    else
        block /= n;
    const size_t bytes = (size_t)(block * size);
    for (int64_t p = 0; p < before; p++)
        for (int64_t q = 0; q < between; q++)
            for (int64_t m = 0; m < n; m++) {
                const int64_t early = (p * n + m) * between + q, late = (p * between + q) * n + m;
                memcpy(to + (size_t)(axis < other ? late : early) * bytes,
                       from + (size_t)(axis < other ? early : late) * bytes, bytes);
            }
}

size_t dc_exchange_scratch(dc_op op, const int64_t *attr, const dc_type *in)
{
    const dc_exchange_attr x = dc_exchange_read(attr);
    return turns(op, &x) ? dc_type_bytes(in) : 0;
}

static dc_status exchange(dc_job *j, const dc_exchange *x)
{
    if (j->world != NULL)
        return dc_world_run(j->world, j, x);
    if (dc_group_size(&x->axes) != 1)
        return dc_failf(j, DC_ERR_ARG, x->label,
                        "%" PRId64 " ranks are needed, and this is the only one",
                        dc_group_size(&x->axes));
    if (x->kind == DC_SEND || x->kind == DC_RECV)
        return dc_failf(j, DC_ERR_ARG, x->label, "there is no other rank");
    const dc_transfer *t = x->at;
    const size_t bytes = (size_t)(t->outer * t->inner) * dc_dtype_size(x->dtype);
    if (t->to != t->from && bytes > 0)
        memcpy(t->to, t->from, bytes);
    return DC_OK;
}

static uint64_t shape_of(const dc_type *t)
{
    uint64_t h = t->rank;
    for (int k = 0; k < t->rank; k++)
        h = dc_hash_mix(h, (uint64_t)t->dim[k]);
    return h;
}

bool dc_exchange_describe(dc_op op, const int64_t *attr, const dc_type *in, const char *label,
                          void *to, const void *from, dc_exchange *x, dc_transfer *t)
{
    const dc_exchange_attr a = dc_exchange_read(attr);
    const bool combines = op == DC_OP_ALL_REDUCE || op == DC_OP_REDUCE_SCATTER;
    *t = transfer_of(op, &a, in, to, from);
    *x = (dc_exchange){.kind = kind_of(op),
                       .combine = combines ? (dc_combine)a.other : DC_COMBINE_SUM,
                       .dtype = (dc_dtype)in->dtype,
                       .axes = a.group,
                       .peer = op == DC_OP_BROADCAST || dc_op_is_message(op) ? (int)a.other : 0,
                       .shape = dc_op_is_message(op) ? shape_of(in) : (uint64_t)a.number,
                       .copied = op == DC_OP_SEND,
                       .label = label,
                       .n = 1,
                       .at = t};
    return !turns(op, &a);
}

void dc_exchange_label(const dc_job *j, dc_op op, const char *where, dc_exchange *x)
{
    x->where = where;
    if (j->meeting == NULL)
        return;
    x->label = dc_op_row_of(op)->name;
    x->where = j->meeting;
    x->shape = dc_op_is_message(op) ? x->shape : 0; /* outside of functions each is by itself */
}

dc_status dc_exchange_run(dc_job *j, dc_op op, const int64_t *attr, const dc_type *in,
                          const char *label, const char *where, void *to, const void *from,
                          void *scratch)
{
    const dc_exchange_attr a = dc_exchange_read(attr);
    void *at = turns(op, &a) ? scratch : to;
    dc_exchange x;
    dc_transfer t;
    dc_exchange_describe(op, attr, in, label, at, from, &x, &t);
    dc_exchange_label(j, op, where, &x);
    if (j->world != NULL && at == to)
        DC_TRY(dc_world_vote_for_host(j->world, j, &x));
    DC_TRY(exchange(j, &x));
    if (at != to)
        put_parts(&a, in, to, at);
    return DC_OK;
}
