#include "core/ir/exchange.h"
#include "core/ir/subgraph.h"
#include "core/transform/batch_impl.h"

dc_status dc_batch_type(dc_job *j, dc_op op, const dc_type *t, int64_t size, dc_type *out)
{
    const char *name = dc_op_row_of(op)->name;
    if (t->rank == DC_MAX_RANK)
        return dc_fail(j, DC_ERR_TOO_MANY_AXES,
                       &(dc_fact){.op = name, .num = {t->rank + 1, DC_MAX_RANK}});
    *out = dc_type_stacked(t, size);
    if (dc_dims_fit(out->rank, out->dim, dc_dtype_size((dc_dtype)out->dtype)))
        return DC_OK;
    char text[DC_TYPE_TEXT];
    dc_type_print(out, text, sizeof text);
    return dc_fail(j, DC_ERR_TOO_LARGE, &(dc_fact){.op = name, .word = {text}});
}

dc_status dc_batch_spread(dc_job *j, dc_func *f, dc_ref r, int64_t size, dc_ref *out)
{
    const dc_type t = dc_node_type(f, r);
    dc_type with, one;
    DC_TRY(dc_batch_type(j, DC_OP_EXPAND, &t, size, &with));
    DC_TRY(dc_batch_type(j, DC_OP_EXPAND, &t, 1, &one));
    *out = dc_graph_expand(f, dc_graph_reshape(f, r, one.rank, one.dim), with.dim);
    return DC_OK;
}

dc_status dc_batch_operand(dc_batch *b, const dc_node *n, int i, dc_ref *out)
{
    *out = b->map[n->in[i]];
    return dc_batch_is(b, n, i) ? DC_OK : dc_batch_spread(b->j, b->f, *out, b->size, out);
}

dc_ref dc_batch_move(dc_func *f, dc_ref r, int from, int to)
{
    const int rank = dc_node_at(f, r)->rank;
    int64_t perm[DC_MAX_RANK];
    for (int i = 0, next = 0; i < rank; i++) {
        next += next == from;
        perm[i] = i == to ? from : next++;
    }
    return dc_graph_permute(f, r, perm);
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* Operations whose attributes have no axes. */
static dc_status make_alike(dc_batch *b, const dc_node *n, const int64_t *attr, const dc_type *want,
                            dc_ref *out)
{
    dc_ref in[DC_MAX_TYPED];
    for (int i = 0; i < n->nin; i++)
        DC_TRY(dc_batch_operand(b, n, i, &in[i]));
    *out = dc_graph_make(b->f, (dc_op)n->op, in, n->nin, attr, n->nattr, want);
    return DC_OK;
}

static dc_ref make_reduction(dc_batch *b, const dc_node *n)
{
    const int64_t mask = n->attr[0] << 1;
    return dc_graph_make(b->f, (dc_op)n->op, &b->map[n->in[0]], 1, &mask, 1, NULL);
}

/* The new axis stays as it is, whole and in front. */
static dc_ref make_movement(dc_batch *b, const dc_node *n, const dc_type *want)
{
    const int rank = n->rank;
    int64_t attr[2 * DC_MAX_RANK + 1] = {0};
    int nattr = 0;
    switch ((int)n->op) {
    case DC_OP_PERMUTE:
        nattr = 1 + rank;
        for (int i = 0; i < rank; i++)
            attr[1 + i] = 1 + n->attr[i];
        break;
    case DC_OP_SLICE:
    case DC_OP_PAD:
        nattr = n->nattr + 2;
        attr[1 + rank] = 1;
        for (int i = 0; i < n->nattr; i++)
            attr[i < rank ? 1 + i : 2 + i] = n->attr[i];
        break;
    case DC_OP_FLIP:
        nattr = 1;
        attr[0] = n->attr[0] << 1;
        break;
    }
    return dc_graph_make(b->f, (dc_op)n->op, &b->map[n->in[0]], 1, attr, nattr, want);
}

/* In f ids count the nodes made so far, so that no two functions made part of f have one in common. */
static int64_t new_id(dc_batch *b, int64_t from)
{
    for (uint32_t i = 0; i < b->id.n; i++)
        if (b->id.at[i].from == from)
            return b->id.at[i].to;
    const dc_batch_id id = {from, b->f->node.n};
    DC_PUSH_IN(&b->j->scratch, b->id, id);
    return id.to;
}

static dc_status make_custom(dc_batch *b, const dc_node *n, dc_ref *out)
{
    const int64_t attr[3] = {n->attr[0], new_id(b, n->attr[1]), n->attr[2]};
    return make_alike(b, n, attr, NULL, out);
}

static dc_ref make_hole(dc_batch *b, const dc_node *n, const dc_type *t)
{
    const int64_t attr[2] = {new_id(b, n->attr[0]), n->attr[1]};
    return dc_graph_make(b->f, DC_OP_HOLE, NULL, 0, attr, 2, t);
}

/* Where each row has a size of its own, all elements are there. */
static dc_ref sized(dc_batch *b, const dc_node *n, int axis)
{
    const dc_ref x = b->map[n->in[0]], size = b->map[n->in[1]];
    return b->is.node[n->in[1]] ? x : dc_graph_set_size(b->f, x, axis, size);
}

static dc_status make_indexing(dc_batch *b, dc_ref r, dc_ref *out)
{
    return dc_node_at(b->from, r)->op == DC_OP_GATHER ? dc_batch_gather(b, r, out)
                                                      : dc_batch_scatter(b, r, out);
}

/* Tables have no rows. */
static dc_status make_transform(dc_batch *b, const dc_node *n, const dc_type *want, dc_ref *out)
{
    const int64_t attr[2] = {n->attr[0] + 1, n->attr[1]};
    dc_ref in[DC_MAX_TYPED];
    for (int i = 0; i < n->nin; i++)
        in[i] = b->map[n->in[i]];
    return dc_make(b->j, b->f, DC_OP_DFT, in, n->nin, attr, 2, want, out);
}

/* Each row by itself, all of them at once. */
static dc_status make_exchange(dc_batch *b, const dc_node *n, dc_ref *out)
{
    if (dc_op_is_message((dc_op)n->op))
        return dc_failf(b->j, DC_ERR_SHARDING, dc_op_row_of((dc_op)n->op)->name,
                        "in dc.vmap each row would be a message to another rank");
    dc_exchange_attr x = dc_exchange_read(n->attr);
    int64_t attr[DC_EXCHANGE_ATTRS];
    x.axis += n->op != DC_OP_ALL_REDUCE && n->op != DC_OP_BROADCAST;
    x.other += n->op == DC_OP_ALL_TO_ALL;
    dc_exchange_write(&x, attr);
    return make_alike(b, n, attr, NULL, out);
}

/* The rows themselves are in no parts. */
static dc_status make_reshard(dc_batch *b, const dc_node *n, dc_ref *out)
{
    int64_t attr[DC_MESH_AXES];
    for (int a = 0; a < DC_MESH_AXES; a++)
        attr[a] = n->attr[a] > 0 ? n->attr[a] + 1 : 0;
    return make_alike(b, n, attr, NULL, out);
}

/* Node r over all rows. */
static dc_status make_batched(dc_batch *b, dc_ref r, dc_ref *out)
{
    const dc_node *n = dc_node_at(b->from, r);
    const dc_type t = dc_node_type(b->from, r);
    dc_type want;
    DC_TRY(dc_batch_type(b->j, (dc_op)n->op, &t, b->size, &want));
    if (b->size == 0 && n->op != DC_OP_CUSTOM && n->op != DC_OP_HOLE) {
        *out = dc_graph_const(b->f, &want, 0);
        return DC_OK;
    }
    switch ((dc_op_class)dc_op_row_of((dc_op)n->op)->cls) {
    case DC_CLASS_EW:
        return make_alike(b, n, NULL, &want, out);
    case DC_CLASS_RED:
        *out = make_reduction(b, n);
        return DC_OK;
    case DC_CLASS_MOV:
        *out = make_movement(b, n, &want);
        return DC_OK;
    case DC_CLASS_SRC:
        *out = make_hole(b, n, &want);
        return DC_OK;
    case DC_CLASS_CON:
        return n->op == DC_OP_DOT ? dc_batch_dot(b, r, out) : dc_batch_conv(b, r, out);
    case DC_CLASS_IDX:
        return make_indexing(b, r, out);
    case DC_CLASS_HST: /* leading axes are a batch */
        return make_alike(b, n, n->attr, NULL, out);
    case DC_CLASS_COM:
        return make_exchange(b, n, out);
    case DC_CLASS_FFT:
        return make_transform(b, n, &want, out);
    case DC_CLASS_SAME:
        if (n->op == DC_OP_CUSTOM)
            return make_custom(b, n, out);
        if (n->op == DC_OP_RESHARD)
            return make_reshard(b, n, out);
        *out = n->op == DC_OP_BARRIER ? dc_graph_barrier(b->f, b->map[n->in[0]], b->map[n->in[1]])
                                      : sized(b, n, 1 + (int)n->attr[0]);
        return DC_OK;
    case DC_CLASS_PART:
    case DC_CLASS_CTL:
        break;
    }
    DC_BUG("%s is no operation over rows", dc_op_row_of((dc_op)n->op)->name);
}

/* Node r, which has no rows, as it is. */
static dc_ref make_once(dc_batch *b, dc_ref r)
{
    const dc_node *n = dc_node_at(b->from, r);
    const dc_type t = dc_node_type(b->from, r);
    dc_ref in[DC_MAX_OPERANDS];
    if (n->op == DC_OP_HOLE)
        return make_hole(b, n, &t);
    if (n->op == DC_OP_SET_SIZE)
        return sized(b, n, (int)n->attr[0]);
    for (int i = 0; i < n->nin; i++)
        in[i] = b->map[n->in[i]];
    if (n->op != DC_OP_CUSTOM)
        return dc_graph_again(b->f, b->from, r, in);
    const int64_t attr[3] = {n->attr[0], new_id(b, n->attr[1]), n->attr[2]};
    return dc_graph_make(b->f, DC_OP_CUSTOM, in, n->nin, attr, 3, NULL);
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool reads_batched(const dc_batch *b, const dc_node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (dc_batch_is(b, n, i))
            return true;
    return false;
}

static dc_status make(dc_batch *b, dc_ref r)
{
    const dc_node *n = dc_node_at(b->from, r);
    if (dc_op_is((dc_op)n->op, DC_CLASS_PART))
        DC_BUG("%s before compilation", dc_op_row_of((dc_op)n->op)->name);
    if (dc_is_control(n) && reads_batched(b, n)) { /* its own value is nothing */
        const dc_type nothing = dc_node_type(b->from, r);
        b->map[r] = dc_graph_const(b->f, &nothing, 0);
        return dc_batch_control(b, r);
    }
    if (n->op == DC_OP_PICK && b->many[n->in[0]] != NULL)
        b->map[r] = b->many[n->in[0]][n->attr[0]];
    else if (b->is.node[r])
        return make_batched(b, r, &b->map[r]);
    else
        b->map[r] = make_once(b, r);
    return DC_OK;
}

/* New nodes come from where the node came from that they stand for; after a failure f still says where. */
static dc_status make_from(dc_batch *b, dc_ref r)
{
    dc_func *f = b->f;
    const char *where = f->where, *path = f->path;
    const uint32_t origin = dc_node_at(b->from, r)->origin;
    if (origin != 0)
        dc_func_from(f, b->from->origins.at[origin].where, b->from->origins.at[origin].path);
    DC_TRY(make(b, r));
    f->where = where;
    f->path = path;
    dc_func_copy_origin(f, b->map[r], b->from, r);
    return DC_OK;
}

static dc_status inline_all(dc_batch *b, const bool *live)
{
    for (dc_ref r = 1; r < b->from->node.n; r++)
        if (live[r] && dc_node_at(b->from, r)->op != DC_OP_PARAM)
            DC_TRY(make_from(b, r));
    return DC_OK;
}

dc_status dc_batch_inline(dc_job *j, dc_func *f, const dc_func *from, const dc_ref *param,
                          const bool *batched, int64_t size, dc_ref *result, bool *result_batched)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_batch b = {.j = j, .f = f, .from = from, .size = size};
    b.is = dc_batch_mark(j, from, batched);
    b.map = DC_NEW_ARRAY(&j->scratch, dc_ref, from->node.n);
    b.many = DC_NEW_ARRAY(&j->scratch, dc_ref *, from->node.n);
    for (uint32_t i = 0; i < from->param.n; i++)
        b.map[from->param.at[i]] = param[i];
    const dc_status s = inline_all(&b, dc_func_live(from, &j->scratch));
    for (uint32_t i = 0; s == DC_OK && i < from->result.n; i++) {
        result[i] = b.map[from->result.at[i]];
        result_batched[i] = b.is.node[from->result.at[i]];
    }
    dc_arena_rewind(&j->scratch, mark);
    return s;
}
