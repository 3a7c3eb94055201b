#include "core/transform/bounded.h"

#include "core/ir/control.h"
#include "core/ir/conv.h"
#include "core/ir/dot.h"
#include "core/transform/bounded_impl.h"

#include <math.h>
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
    dc_scratch scratch;
    dc_arena *a = dc_scratch_begin(&scratch);
    const bool any = any_in(f, bodies_with_any(f->module, a));
    dc_scratch_end(&scratch);
    return any;
}

/* A list of sizes grows in the arena, where one is given. */
static void add_size(dc_extent_list *to, dc_arena *a, int64_t dim)
{
    if (!dc_extent_is(dim))
        return;
    for (uint32_t i = 0; i < to->n; i++)
        if (to->at[i] == dim)
            return;
    if (a != NULL)
        DC_PUSH_IN(a, *to, dim);
    else
        DC_PUSH(*to, dim);
}

/* Of f, and of the bodies that it names. */
static void list_sizes(const dc_func *f, dc_arena *a, dc_extent_list *to)
{
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        int first, end;
        size_attrs(n, &first, &end);
        for (int i = 0; i < n->rank; i++)
            add_size(to, a, n->dim[i]);
        for (int i = first; i < end; i++)
            add_size(to, a, n->attr[i]);
        for (int i = 0; i < dc_node_bodies(n); i++)
            list_sizes(dc_body_at(f->module, n->attr[i]), a, to);
    }
}

void dc_bounded_sizes(const dc_func *f, dc_arena *a, dc_extent_list *to)
{
    list_sizes(f, a, to);
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
    const dc_type t = dc_node_type(f, r);
    return dc_type_bound(&t);
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
    return dc_graph_unreduce(f, scalar, (1u << like->rank) - 1, like->rank, like->dim);
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

dc_ref dc_bound_with_sizes(const lowering *l, dc_ref value, const int64_t *dim, int rank)
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
    bool is_true = t.dtype == DC_BOOL && bits == 0 && is_everywhere(f, value, 1);
    for (int i = 0; i < t.rank && !is_true; i++)
        if ((axes >> i & 1) != 0)
            value = with_size(l, value, i, dim[i]);
    for (int i = 0; i < t.rank; i++) {
        if ((axes >> i & 1) == 0 || !dc_extent_is(dim[i]))
            continue;
        const dc_ref end = dc_bound_spread(f, dc_bound_size(l, dim[i]), &t);
        const dc_ref inside = dc_graph_op2(f, DC_OP_LT, dc_bound_iota(f, &t, i), end);
        const dc_ref fill = dc_graph_make(f, DC_OP_CONST, NULL, 0, &attr, 1, &t);
        value = is_true ? inside : dc_graph_op3(f, DC_OP_WHERE, inside, value, fill);
        is_true = false;
    }
    return value;
}

/* The operand with zeros behind its size along the axes of the mask. */
static dc_ref operand_masked(const lowering *l, dc_ref old, uint32_t axes)
{
    const dc_node *n = dc_node_at(l->from, old);
    return dc_bound_mask(l, l->map[old], n->dim, axes, dc_bits_of((dc_dtype)n->dtype, 0));
}

dc_ref dc_bound_operand(const lowering *l, dc_ref old)
{
    const dc_node *n = dc_node_at(l->from, old);
    return n->op == DC_OP_LOOP || n->op == DC_OP_BRANCH || dc_bound_is_changed(l, old)
               ? l->map[old]
               : dc_bound_with_sizes(l, l->map[old], n->dim, n->rank);
}

/* So many elements, i32[]; 0: more than that holds. */
static dc_ref count_of(const lowering *l, const dc_node *x, uint32_t axes)
{
    const dc_type i32 = dc_type_scalar(DC_I32);
    dc_ref count = dc_graph_const(l->to, &i32, 1);
    int64_t most = 1;
    for (int i = 0; i < x->rank; i++) {
        if ((axes >> i & 1) == 0)
            continue;
        if (!dc_mul_ok(most, dc_extent_bound(x->dim[i]), &most) || most > INT32_MAX)
            return 0;
        count = dc_graph_op2(l->to, DC_OP_MUL, count, dc_bound_size(l, x->dim[i]));
    }
    return count;
}

/* The sum of a finite constant is a product with the number of elements; 0: it is added up. */
static dc_ref lower_count(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r), *x = dc_node_at(l->from, n->in[0]);
    const dc_dtype is = (dc_dtype)x->dtype, sum = (dc_dtype)n->dtype;
    const dc_dtype wide = dc_dtype_is_short(sum) ? DC_F32 : sum;
    dc_func *f = l->to;
    const dc_type t = dc_bound_type(l->from, r);
    const dc_ref count = count_of(l, x, (uint32_t)n->attr[0]);
    if (count == 0 || (dc_dtype_is_float(is) && !isfinite(dc_value_of(is, (uint64_t)x->attr[0]))))
        return 0;
    const dc_ref each = dc_graph_make(f, DC_OP_CONST, NULL, 0, x->attr, 1, &(dc_type){.dtype = is});
    const dc_ref product =
        dc_graph_op2(f, DC_OP_MUL, dc_graph_cast(f, each, wide), dc_graph_cast(f, count, wide));
    return dc_bound_spread(f, dc_graph_cast(f, product, sum), &t);
}

static dc_ref lower_reduce(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r), *x = dc_node_at(l->from, n->in[0]);
    const uint64_t neutral = dc_op_identity((dc_op)n->op, (dc_dtype)x->dtype);
    const dc_ref count = n->op == DC_OP_SUM && x->op == DC_OP_CONST ? lower_count(l, r) : 0;
    if (count != 0)
        return count;
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

/* ---- loops and branches ----------------------------------------------------------------------- */

static dc_status lower_body(const lowering *outer, uint32_t body, uint32_t before, uint32_t *made);

/* The sizes that bodies of the node need, each once. */
static void sizes_of_bodies(const lowering *l, const dc_node *n, dc_extent_list *sizes)
{
    for (int i = 0; i < dc_node_bodies(n); i++)
        list_sizes(dc_body_at(l->from->module, n->attr[i]), &l->j->scratch, sizes);
}

/*
 * What a stack begins with, which is replaced as far as it is needed: another number for each, since two loops would have
 * to copy what both begin with.
 */
static dc_ref any_value(dc_func *f, const dc_type *t)
{
    return dc_graph_const(f, t, t->dtype == DC_BOOL ? 0 : (double)(f->node.n % 100));
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
    if (n->nin + sizes->n + 1 + (n->op == DC_OP_LOOP ? (uint32_t)dc_loop_of(n).ny : 0) >
        DC_MAX_OPERANDS)
        return dc_bound_refuse(l, r, "it reads too many tensors");
    if (n->op == DC_OP_BRANCH) {
        uint32_t side[2];
        before = n->nin - 1u;
        for (int i = 0; i < n->nin; i++)
            in[nin++] = dc_bound_operand(l, n->in[i]);
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
        in[nin++] = dc_bound_operand(l, *at++);
    for (uint32_t i = 0; i < sizes->n; i++)
        in[nin++] = dc_bound_size(l, sizes->at[i]);
    for (int i = 0; i < loop.ncarry + loop.nx; i++, at++)
        in[nin++] = dc_bound_is_changed_param(l, *at) ? l->map[*at] : dc_bound_operand(l, *at);
    before = 1 + (uint32_t)loop.nconst;
    const int ny = dc_loop_may_end(&loop) ? loop.ny : 0;
    for (int i = 0; i < ny; i++)
        in[nin++] = dc_bound_operand(l, *at++);
    for (int i = 0; i < loop.ny && ny == 0 && bounded; i++) {
        const dc_func *body = dc_body_at(l->from->module, loop.body);
        dc_type t = dc_bound_type(body, body->result.at[loop.ncarry + i]);
        t = dc_type_stacked(&t, dc_extent_bound(loop.n));
        in[nin++] = dc_bound_with_sizes(l, any_value(l->to, &t), &loop.n, 1);
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
    return lower_control(l, r, &sizes, out);
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
    if (dc_bound_append(l, r, out))
        return DC_OK;
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
        *out = dc_bound_slice(l, r);
        return DC_OK;
    case DC_OP_PAD:
        return dc_bound_pad(l, r, out);
    case DC_OP_FLIP:
        *out = dc_bound_flip(l, r);
        return DC_OK;
    case DC_OP_GATHER:
        *out = dc_bound_gather(l, r);
        return DC_OK;
    case DC_OP_SCATTER:
    case DC_OP_SCATTER_ADD:
    case DC_OP_SCATTER_MUL:
    case DC_OP_SCATTER_MAX:
    case DC_OP_SCATTER_MIN:
        *out = dc_bound_scatter(l, r);
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

/* How many others hold the same value as a result: what a state is set to, and earlier results of the same node. */
static int count_same(const lowering *l, const dc_ref *made, uint32_t result)
{
    int n = !l->in_body && dc_bound_is_returned(l, result);
    for (uint32_t i = 0; i < result && !l->in_body; i++)
        n += made[i] == made[result];
    return l->place != NULL && l->place[result].rows > 0 ? 0 : n;
}

/*
 * The value again, as a node of its own: its size is the same number by another node. Results that are one node are
 * copied with all the memory of the bound.
 */
static dc_ref again(const lowering *l, dc_ref v, int64_t dim, int number)
{
    const dc_type i32 = dc_type_scalar(DC_I32);
    const dc_ref below = dc_graph_const(l->to, &i32, -number);
    const dc_ref in[2] = {v, dc_graph_op2(l->to, DC_OP_MAX, dc_bound_size(l, dim), below)};
    return dc_graph_make(l->to, DC_OP_SET_SIZE, in, 2, (const int64_t[]){0}, 1, NULL);
}

static void lower_results(const lowering *l)
{
    const dc_func *from = l->from;
    dc_ref *made = DC_NEW_ARRAY(&l->j->scratch, dc_ref, from->result.n + 1);
    dc_ref *value = DC_NEW_ARRAY(&l->j->scratch, dc_ref, from->result.n + 1);
    for (uint32_t i = 0; i < from->result.n; i++) {
        const dc_node *n = dc_node_at(from, from->result.at[i]);
        const bool whole = dc_bound_is_in_room(l, i);
        uint32_t k = 0;
        value[i] = dc_bound_place(l, i);
        while (k < i && (whole || value[k] != value[i] || made[k] == value[k]))
            k++;
        made[i] = whole   ? value[i]
                  : k < i ? made[k]
                          : dc_bound_with_sizes(l, value[i], n->dim, n->rank);
    }
    for (uint32_t i = 0; i < from->result.n; i++) {
        const dc_node *n = dc_node_at(from, from->result.at[i]);
        const int same = count_same(l, made, i);
        const bool grows = same > 0 && n->rank > 0 && dc_extent_is(n->dim[0]);
        DC_PUSH(l->to->result, grows ? again(l, made[i], n->dim[0], same) : made[i]);
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
    dc_bound_find_growth(l);
    for (dc_ref r = 1; r < from->node.n; r++) {
        if (!live[r] || dc_node_at(from, r)->op == DC_OP_PARAM)
            continue;
        const dc_ref first = l->to->node.n;
        DC_TRY(lower_node(l, r, &l->map[r]));
        for (dc_ref k = first; k < l->to->node.n; k++)
            dc_func_copy_origin(l->to, k, from, r);
    }
    lower_results(l);
    return DC_OK;
}

static dc_status lower_body(const lowering *outer, uint32_t body, uint32_t before, uint32_t *made)
{
    dc_module *m = outer->from->module;
    const dc_func *from = dc_body_at(m, body);
    lowering l = *outer;
    l.from = from;
    l.in_body = true;
    l.place = NULL;
    l.grown = NULL;
    l.room = NULL;
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
    return dc_bounded_lower_into(j, f, before, NULL, sizes, out);
}

dc_status dc_bounded_lower_into(dc_job *j, const dc_func *f, uint32_t before,
                                const dc_bounded_place *place, dc_extent_list *sizes, dc_func **out)
{
    list_sizes(f, NULL, sizes);
    lowering l = {.j = j, .from = f, .size = sizes->at, .nsize = sizes->n, .place = place};
    l.to = dc_func_new(f->module, f->name);
    const dc_status status = lower_function(&l, before);
    if (status == DC_OK)
        *out = l.to;
    else
        dc_func_drop(l.to);
    return status;
}
