#include "core/graph/bounded.h"

#include "core/graph/bounded_impl.h"
#include "core/graph/control.h"
#include "core/graph/conv.h"
#include "core/graph/dot.h"

#include <string.h>

/* ---- which sizes there are -------------------------------------------------------------------- */

/* The attributes of a node that may be codes are [*first, *end). */
static void size_attrs(const dc_node *n, int *first, int *end)
{
    *first = *end = 0;
    switch ((dc_op)n->op) {
    case DC_OP_SLICE:
    case DC_OP_PAD:
        *end = n->rank;
        break;
    case DC_OP_LOOP:
        *first = 1;
        *end = 2;
        break;
    default:
        break;
    }
}

static bool any_extent(const int64_t *at, int n)
{
    for (int i = 0; i < n; i++)
        if (dc_extent_is(at[i]))
            return true;
    return false;
}

static bool node_any(const dc_node *n)
{
    int first, end;
    size_attrs(n, &first, &end);
    return any_extent(n->dim, n->rank) || any_extent(n->attr + first, end - first);
}

static bool any_in(const dc_func *f, const bool *of_body)
{
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        if (node_any(n))
            return true;
        for (int i = 0; i < dc_node_bodies(n); i++)
            if (of_body[n->attr[i]])
                return true;
    }
    return false;
}

/* By body, in the arena given: is there any in it, or in one that it names? */
static bool *bodies_with_any(const dc_module *m, dc_arena *a)
{
    bool *is = DC_NEW_ARRAY(a, bool, m->body.n + 1);
    for (uint32_t i = 0; i < m->body.n; i++)
        is[i] = any_in(m->body.at[i].fn, is);
    return is;
}

bool dc_bounded_any(const dc_func *f)
{
    dc_arena *a = &f->module->arena;
    const dc_mark mark = dc_arena_mark(a);
    const bool any = any_in(f, bodies_with_any(f->module, a));
    dc_arena_rewind(a, mark);
    return any;
}

static void add_size(dc_extent_list *to, int64_t dim)
{
    if (!dc_extent_is(dim))
        return;
    for (uint32_t i = 0; i < to->n; i++)
        if (to->at[i] == dim)
            return;
    DC_PUSH(*to, dim);
}

/* Of f, and of the bodies that it names. */
static void list_sizes(const dc_func *f, dc_extent_list *to)
{
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        int first, end;
        size_attrs(n, &first, &end);
        for (int i = 0; i < n->rank; i++)
            add_size(to, n->dim[i]);
        for (int i = first; i < end; i++)
            add_size(to, n->attr[i]);
        for (int i = 0; i < dc_node_bodies(n); i++)
            list_sizes(dc_body_at(f->module, n->attr[i]), to);
    }
}

/* ---- lowering --------------------------------------------------------------------------------- */

dc_status dc_bound_refuse(const lowering *l, dc_ref r, const char *why)
{
    const dc_func *f = l->from;
    const dc_node *n = dc_node_at(f, r);
    const char *where = n->origin != 0 ? f->origins.at[n->origin].where : NULL;
    char type[DC_TYPE_TEXT];
    const dc_type t = dc_node_type(f, n->nin > 0 ? n->in[0] : r);
    dc_type_print(&t, type, sizeof type);
    return dc_failf(l->j, DC_ERR_EXTENT_TEXT, dc_op_row_of((dc_op)n->op)->name, "of %s%s%s: %s",
                    type, where != NULL ? ", " : "", where != NULL ? where : "", why);
}

dc_type dc_bound_type(const dc_func *f, dc_ref r)
{
    dc_type t = dc_node_type(f, r);
    for (int i = 0; i < t.rank; i++)
        t.dim[i] = dc_extent_bound(t.dim[i]);
    return t;
}

dc_ref dc_bound_size(const lowering *l, int64_t dim)
{
    const dc_type i32 = dc_type_scalar(DC_I32);
    for (uint32_t i = 0; i < l->nsize; i++)
        if (l->size[i] == dim)
            return l->value[i];
    if (dc_extent_is(dim))
        DC_BUG("a size that is no parameter");
    return dc_graph_const(l->to, &i32, (double)dim);
}

dc_ref dc_bound_spread(dc_func *f, dc_ref scalar, const dc_type *like)
{
    int64_t ones[DC_MAX_RANK];
    for (int i = 0; i < like->rank; i++)
        ones[i] = 1;
    return dc_graph_expand(f, dc_graph_reshape(f, scalar, like->rank, ones), like->dim);
}

dc_ref dc_bound_iota(dc_func *f, const dc_type *like, int axis)
{
    dc_type t = *like;
    const int64_t attr = axis;
    t.dtype = DC_I32;
    return dc_graph_make(f, DC_OP_IOTA, NULL, 0, &attr, 1, &t);
}

/* Is the node the same value everywhere already? */
static bool is_everywhere(const dc_func *f, dc_ref r, uint64_t bits)
{
    const dc_node *n = dc_node_at(f, r);
    return n->op == DC_OP_CONST && (uint64_t)n->attr[0] == bits;
}

/* With unspecified elements behind the size along an axis: nobody needs them. */
static dc_ref with_size(const lowering *l, dc_ref value, int64_t axis, int64_t dim)
{
    if (!dc_extent_is(dim))
        return value;
    return dc_graph_make(l->to, DC_OP_SET_SIZE, (dc_ref[]){value, dc_bound_size(l, dim)}, 2, &axis,
                         1, NULL);
}

static dc_ref with_sizes(const lowering *l, dc_ref value, const int64_t *dim, int rank)
{
    for (int i = 0; i < rank; i++)
        value = with_size(l, value, i, dim[i]);
    return value;
}

dc_ref dc_bound_mask(const lowering *l, dc_ref value, const int64_t *dim, uint32_t axes,
                     uint64_t bits)
{
    dc_func *f = l->to;
    const dc_type t = dc_node_type(f, value);
    const int64_t attr = (int64_t)bits;
    if (is_everywhere(f, value, bits))
        return value;
    for (int i = 0; i < t.rank; i++)
        if ((axes >> i & 1) != 0)
            value = with_size(l, value, i, dim[i]);
    for (int i = 0; i < t.rank; i++) {
        if ((axes >> i & 1) == 0 || !dc_extent_is(dim[i]))
            continue;
        const dc_ref end = dc_bound_spread(f, dc_bound_size(l, dim[i]), &t);
        const dc_ref inside = dc_graph_op2(f, DC_OP_LT, dc_bound_iota(f, &t, i), end);
        const dc_ref fill = dc_graph_make(f, DC_OP_CONST, NULL, 0, &attr, 1, &t);
        value = dc_graph_op3(f, DC_OP_WHERE, inside, value, fill);
    }
    return value;
}

/* The operand with zeros behind its size along the axes of the mask. */
static dc_ref operand_masked(const lowering *l, dc_ref old, uint32_t axes)
{
    const dc_node *n = dc_node_at(l->from, old);
    return dc_bound_mask(l, l->map[old], n->dim, axes, dc_bits_of((dc_dtype)n->dtype, 0));
}

static dc_ref operand_sized(const lowering *l, dc_ref old)
{
    const dc_node *n = dc_node_at(l->from, old);
    return n->op == DC_OP_LOOP || n->op == DC_OP_BRANCH
               ? l->map[old]
               : with_sizes(l, l->map[old], n->dim, n->rank);
}

/* The sum of a constant is a product with the sizes. */
static dc_ref lower_count(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r), *x = dc_node_at(l->from, n->in[0]);
    dc_func *f = l->to;
    const dc_dtype dtype = (dc_dtype)n->dtype;
    const dc_type t = dc_bound_type(l->from, r);
    dc_ref product = dc_graph_cast(
        f, dc_graph_make(f, DC_OP_CONST, NULL, 0, x->attr, 1, &(dc_type){.dtype = x->dtype}),
        dtype);
    for (int i = 0; i < x->rank; i++)
        if (n->attr[0] >> i & 1)
            product = dc_graph_op2(f, DC_OP_MUL, product,
                                   dc_graph_cast(f, dc_bound_size(l, x->dim[i]), dtype));
    return t.rank == 0 ? product : dc_bound_spread(f, product, &t);
}

static dc_ref lower_reduce(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r), *x = dc_node_at(l->from, n->in[0]);
    const uint64_t neutral = dc_op_identity((dc_op)n->op, (dc_dtype)x->dtype);
    if (n->op == DC_OP_SUM && x->op == DC_OP_CONST)
        return lower_count(l, r);
    const dc_ref v = dc_bound_mask(l, l->map[n->in[0]], x->dim, (uint32_t)n->attr[0], neutral);
    return dc_graph_reduce(l->to, (dc_op)n->op, v, (uint32_t)n->attr[0]);
}

static dc_ref lower_dot(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r);
    const dc_dot d = dc_dot_of(l->from, n);
    dc_ref in[2];
    for (int side = 0; side < 2; side++) {
        uint32_t axes = 0;
        for (int i = 0; i < d.ncontract; i++)
            axes |= 1u << d.contract[side][i];
        in[side] = operand_masked(l, n->in[side], axes);
    }
    return dc_graph_make(l->to, DC_OP_DOT, in, 2, n->attr, n->nattr, NULL);
}

/* Windows move along axes of fixed sizes alone (dc_build_conv). */
static dc_ref lower_conv(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r);
    const dc_conv c = dc_conv_of(n);
    return dc_graph_conv(l->to, operand_masked(l, n->in[0], 1u << c.in[1]),
                         operand_masked(l, n->in[1], 1u << c.kernel[1]), &c);
}

/* Elements of x along the axis at the places given, i32[n]. */
static dc_ref pick_along(dc_func *f, dc_ref x, int axis, dc_ref place)
{
    return dc_graph_gather(f, x, place, axis, 0);
}

/* first + i * step for i of so many, i32. */
static dc_ref places(dc_func *f, dc_ref first, int64_t step, int64_t n)
{
    const dc_type t = dc_type_make(DC_I32, 1, &n);
    const dc_ref i =
        dc_graph_op2(f, DC_OP_MUL, dc_bound_iota(f, &t, 0), dc_graph_const(f, &t, (double)step));
    return dc_graph_op2(f, DC_OP_ADD, i, dc_bound_spread(f, first, &t));
}

static dc_ref lower_flip(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r);
    const dc_type one = dc_type_scalar(DC_I32);
    dc_func *f = l->to;
    uint32_t fixed = (uint32_t)n->attr[0];
    dc_ref v = operand_sized(l, n->in[0]);
    for (int i = 0; i < n->rank; i++) {
        if (!dc_extent_is(n->dim[i]) || (n->attr[0] >> i & 1) == 0)
            continue;
        const dc_ref last =
            dc_graph_op2(f, DC_OP_SUB, dc_bound_size(l, n->dim[i]), dc_graph_const(f, &one, 1));
        v = pick_along(f, v, i, places(f, last, -1, dc_extent_bound(n->dim[i])));
        fixed &= ~(1u << i);
    }
    return fixed != 0 ? dc_graph_flip(f, v, fixed) : v;
}

static dc_ref lower_slice(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r);
    dc_func *f = l->to;
    const dc_type t = dc_bound_type(l->from, r);
    int64_t start[DC_MAX_RANK], step[DC_MAX_RANK];
    dc_ref v = operand_sized(l, n->in[0]);
    for (int i = 0; i < n->rank; i++) {
        start[i] = n->attr[i];
        step[i] = n->attr[n->rank + i];
        if (!dc_extent_is(start[i]))
            continue;
        v = pick_along(f, v, i, places(f, dc_bound_size(l, start[i]), step[i], t.dim[i]));
        start[i] = 0;
        step[i] = 1;
    }
    return dc_graph_slice(f, v, start, step, t.dim);
}

/* Elements that lie between the last one and the end of the result are the operand's junk, unless there is no room. */
static dc_status lower_pad(const lowering *l, dc_ref r, dc_ref *out)
{
    const dc_node *n = dc_node_at(l->from, r), *x = dc_node_at(l->from, n->in[0]);
    dc_func *f = l->to;
    const uint64_t fill = (uint64_t)n->attr[2 * n->rank];
    dc_type t = dc_bound_type(l->from, n->in[0]);
    const dc_type want = dc_bound_type(l->from, r);
    int64_t lo[DC_MAX_RANK], step[DC_MAX_RANK];
    dc_ref v = dc_bound_mask(l, l->map[n->in[0]], x->dim, (1u << n->rank) - 1, fill);
    for (int i = 0; i < n->rank; i++) {
        lo[i] = n->attr[i];
        step[i] = n->attr[n->rank + i];
        if (!dc_extent_is(lo[i])) {
            /* all of the bound has room: behind the actual size is what fills */
            if (lo[i] + (t.dim[i] - 1) * step[i] >= want.dim[i])
                return dc_bound_refuse(l, r, "the margins need a fixed size");
            continue;
        }
        if (step[i] != 1)
            return dc_bound_refuse(l, r, "a margin known at run time and a step");
        /* result[p] is v[p - lo] where that is inside */
        const dc_type i32 = dc_type_scalar(DC_I32);
        const dc_ref at = dc_bound_size(l, lo[i]);
        const dc_ref from = dc_graph_op2(f, DC_OP_SUB, dc_graph_const(f, &i32, 0), at);
        const dc_ref place = places(f, from, 1, want.dim[i]);
        v = pick_along(f, v, i, place);
        t.dim[i] = want.dim[i];
        const int64_t bits = (int64_t)fill;
        const dc_ref p = dc_bound_iota(f, &t, i);
        const dc_ref end = dc_graph_op2(f, DC_OP_ADD, at, dc_bound_size(l, x->dim[i]));
        const dc_ref below = dc_graph_op2(f, DC_OP_LT, p, dc_bound_spread(f, at, &t));
        const dc_ref above = dc_graph_op2(f, DC_OP_LE, dc_bound_spread(f, end, &t), p);
        const dc_ref rest = dc_graph_make(f, DC_OP_CONST, NULL, 0, &bits, 1, &t);
        v = dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_OR, below, above), rest, v);
        lo[i] = 0;
    }
    *out = dc_graph_pad(f, v, lo, step, want.dim, fill);
    return DC_OK;
}

static dc_dtype wide_enough(dc_dtype t)
{
    return t == DC_U32 || t == DC_U64 || t == DC_I64 ? DC_I64 : DC_I32;
}

/* Integers that index, as i32 or i64. */
static dc_ref index_wide(const lowering *l, dc_ref old)
{
    const dc_dtype t = (dc_dtype)dc_node_at(l->from, old)->dtype, wide = wide_enough(t);
    return t == wide ? l->map[old] : dc_graph_cast(l->to, l->map[old], wide);
}

static dc_ref lower_gather(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r), *x = dc_node_at(l->from, n->in[0]);
    dc_func *f = l->to;
    dc_ref index = l->map[n->in[1]];
    if (dc_extent_is(x->dim[n->attr[0]])) {
        const dc_type one = dc_type_scalar(DC_I32);
        index = index_wide(l, n->in[1]);
        const dc_type t = dc_node_type(f, index);
        const dc_ref last = dc_graph_op2(f, DC_OP_SUB, dc_bound_size(l, x->dim[n->attr[0]]),
                                         dc_graph_const(f, &one, 1));
        index = dc_graph_op2(f, DC_OP_MIN, index,
                             dc_bound_spread(f, dc_graph_cast(f, last, (dc_dtype)t.dtype), &t));
    }
    return dc_graph_make(f, DC_OP_GATHER, (dc_ref[]){operand_sized(l, n->in[0]), index}, 2, n->attr,
                         n->nattr, NULL);
}

/* Integers behind their size are outside of every axis. */
static dc_ref lower_scatter(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r), *i = dc_node_at(l->from, n->in[1]);
    dc_ref index = l->map[n->in[1]];
    if (any_extent(i->dim, i->rank)) {
        index = index_wide(l, n->in[1]);
        const dc_dtype t = (dc_dtype)dc_node_at(l->to, index)->dtype;
        index = dc_bound_mask(l, index, i->dim, (1u << i->rank) - 1, dc_bits_of(t, -1));
    }
    return dc_graph_make(l->to, (dc_op)n->op,
                         (dc_ref[]){operand_sized(l, n->in[0]), index, operand_sized(l, n->in[2])},
                         3, n->attr, n->nattr, NULL);
}

/* ---- loops and branches ----------------------------------------------------------------------- */

static dc_status lower_body(const lowering *outer, uint32_t body, uint32_t before, uint32_t *made);

/* The sizes that bodies of the node need, each once. */
static void sizes_of_bodies(const lowering *l, const dc_node *n, dc_extent_list *sizes)
{
    for (int i = 0; i < dc_node_bodies(n); i++)
        list_sizes(dc_body_at(l->from->module, n->attr[i]), sizes);
}

static dc_status lower_control(const lowering *l, dc_ref r, const dc_extent_list *sizes,
                               dc_ref *out)
{
    const dc_node *n = dc_node_at(l->from, r);
    dc_ref in[DC_MAX_OPERANDS];
    int nin = 0;
    dc_loop loop = {0};
    uint32_t before = 0;
    lowering inner = *l;
    inner.size = sizes->at;
    inner.nsize = sizes->n;
    if (n->nin + sizes->n + 64 > DC_MAX_OPERANDS)
        return dc_bound_refuse(l, r, "it reads too many tensors");
    if (n->op == DC_OP_BRANCH) {
        uint32_t side[2];
        before = n->nin - 1u;
        for (int i = 0; i < n->nin; i++)
            in[nin++] = operand_sized(l, n->in[i]);
        for (uint32_t i = 0; i < sizes->n; i++)
            in[nin++] = dc_bound_size(l, sizes->at[i]);
        for (int i = 0; i < 2; i++)
            DC_TRY(lower_body(&inner, (uint32_t)n->attr[i], before, &side[i]));
        *out = dc_graph_branch(l->to, side[0], side[1], in, nin);
        return DC_OK;
    }
    loop = dc_loop_of(n);
    const bool bounded = dc_extent_is(loop.n);
    const dc_ref *at = n->in;
    if (bounded || loop.flags & DC_LOOP_LIMIT) {
        in[nin] = bounded ? dc_bound_size(l, loop.n) : l->map[*at];
        if (bounded && loop.flags & DC_LOOP_LIMIT)
            in[nin] = dc_graph_op2(l->to, DC_OP_MIN, in[nin], l->map[*at]);
        at += (loop.flags & DC_LOOP_LIMIT) != 0;
        nin++;
    }
    for (int i = 0; i < loop.nconst; i++)
        in[nin++] = operand_sized(l, *at++);
    for (uint32_t i = 0; i < sizes->n; i++)
        in[nin++] = dc_bound_size(l, sizes->at[i]);
    for (int i = 0; i < loop.ncarry + loop.nx; i++)
        in[nin++] = operand_sized(l, *at++);
    before = 1 + (uint32_t)loop.nconst;
    const int ny = dc_loop_may_end(&loop) ? loop.ny : 0;
    for (int i = 0; i < ny; i++)
        in[nin++] = operand_sized(l, *at++);
    for (int i = 0; i < loop.ny && ny == 0 && bounded; i++) {
        const dc_func *body = dc_body_at(l->from->module, loop.body);
        dc_type t = dc_bound_type(body, body->result.at[loop.ncarry + i]);
        t = dc_type_stacked(&t, dc_extent_bound(loop.n));
        /* zeros, of which as many are needed as there will be elements */
        in[nin++] = with_sizes(l, dc_graph_const(l->to, &t, 0), &loop.n, 1);
    }
    DC_TRY(lower_body(&inner, loop.body, before, &loop.body));
    loop.nconst += (int)sizes->n;
    loop.flags |= bounded ? DC_LOOP_LIMIT : 0;
    loop.n = dc_extent_bound(loop.n);
    *out = dc_graph_loop(l->to, &loop, in);
    return DC_OK;
}

static dc_status lower_with_bodies(const lowering *l, dc_ref r, dc_ref *out)
{
    dc_extent_list sizes = {0};
    sizes_of_bodies(l, dc_node_at(l->from, r), &sizes);
    const dc_status status = lower_control(l, r, &sizes, out);
    DC_VEC_FREE(sizes);
    return status;
}

/* ---- nodes ------------------------------------------------------------------------------------ */

static dc_ref remake(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r);
    const dc_type want = dc_bound_type(l->from, r);
    dc_ref in[DC_MAX_TYPED];
    for (int i = 0; i < n->nin; i++)
        in[i] = l->map[n->in[i]];
    return dc_graph_make(l->to, (dc_op)n->op, in, n->nin, n->attr, n->nattr, &want);
}

static dc_status lower_node(const lowering *l, dc_ref r, dc_ref *out)
{
    const dc_node *n = dc_node_at(l->from, r);
    switch ((dc_op)n->op) {
    case DC_OP_SUM:
    case DC_OP_MAXR:
    case DC_OP_MINR:
    case DC_OP_PROD:
        *out = lower_reduce(l, r);
        return DC_OK;
    case DC_OP_DOT:
        *out = lower_dot(l, r);
        return DC_OK;
    case DC_OP_CONV:
        *out = lower_conv(l, r);
        return DC_OK;
    case DC_OP_RESHAPE:
        return dc_bound_reshape(l, r, out);
    case DC_OP_SLICE:
        *out = lower_slice(l, r);
        return DC_OK;
    case DC_OP_PAD:
        return lower_pad(l, r, out);
    case DC_OP_FLIP:
        *out = lower_flip(l, r);
        return DC_OK;
    case DC_OP_GATHER:
        *out = lower_gather(l, r);
        return DC_OK;
    case DC_OP_SCATTER:
    case DC_OP_SCATTER_ADD:
        *out = lower_scatter(l, r);
        return DC_OK;
    case DC_OP_LOOP:
    case DC_OP_BRANCH:
        return lower_with_bodies(l, r, out);
    case DC_OP_PICK:
        *out = dc_graph_pick(l->to, l->map[n->in[0]], (int)n->attr[0]);
        return DC_OK;
    case DC_OP_PIECE:
    case DC_OP_JOIN:
        DC_BUG("%s before compilation", dc_op_row_of((dc_op)n->op)->name);
    default:
        *out = remake(l, r); /* element by element, and what makes or moves whole elements */
        return DC_OK;
    }
}

/* The parameters of l->from, those of the sizes behind `before` of them. */
static void make_params(lowering *l, uint32_t before)
{
    const dc_func *from = l->from;
    const dc_type i32 = dc_type_scalar(DC_I32);
    for (uint32_t i = 0; i <= from->param.n; i++) {
        for (uint32_t k = 0; i == before && k < l->nsize; k++) {
            char label[DC_EXTENT_TEXT];
            dc_extent_print(l->j->extents, l->size[k], label, sizeof label);
            l->value[k] = dc_graph_param(l->to, &i32, label);
        }
        if (i == from->param.n)
            return;
        const dc_ref r = from->param.at[i];
        const dc_type t = dc_bound_type(from, r);
        l->map[r] = dc_graph_param(l->to, &t, from->label.at[i]);
        dc_func_copy_origin(l->to, l->map[r], from, r);
    }
}

static dc_status lower_function(lowering *l, uint32_t before)
{
    const dc_func *from = l->from;
    dc_arena *a = &l->j->scratch;
    const bool *live = dc_func_live(from, a);
    l->map = DC_NEW_ARRAY(a, dc_ref, from->node.n);
    l->value = DC_NEW_ARRAY(a, dc_ref, l->nsize + 1);
    make_params(l, before);
    for (dc_ref r = 1; r < from->node.n; r++) {
        if (!live[r] || dc_node_at(from, r)->op == DC_OP_PARAM)
            continue;
        const dc_ref first = l->to->node.n;
        DC_TRY(lower_node(l, r, &l->map[r]));
        for (dc_ref k = first; k < l->to->node.n; k++)
            dc_func_copy_origin(l->to, k, from, r);
    }
    for (uint32_t i = 0; i < from->result.n; i++) {
        const dc_node *n = dc_node_at(from, from->result.at[i]);
        DC_PUSH(l->to->result, with_sizes(l, l->map[from->result.at[i]], n->dim, n->rank));
    }
    return DC_OK;
}

static dc_status lower_body(const lowering *outer, uint32_t body, uint32_t before, uint32_t *made)
{
    dc_module *m = outer->from->module;
    const dc_func *from = dc_body_at(m, body);
    lowering l = *outer;
    l.from = from;
    l.to = dc_func_new(m, from->name);
    const dc_status status = lower_function(&l, before);
    if (status == DC_OK)
        *made = dc_body_add(m, l.to);
    dc_func_drop(l.to);
    return status;
}

dc_status dc_bounded_lower(dc_job *j, const dc_func *f, uint32_t before, dc_extent_list *sizes,
                           dc_func **out)
{
    list_sizes(f, sizes);
    lowering l = {.j = j, .from = f, .size = sizes->at, .nsize = sizes->n};
    l.to = dc_func_new(f->module, f->name);
    const dc_status status = lower_function(&l, before);
    if (status == DC_OK)
        *out = l.to;
    else
        dc_func_drop(l.to);
    return status;
}
