/*
 * Lowering of one group to a naive kernel (jit/lower/lower.h): its loops, its parameters, what it stores.
 *
 * The shape is first tried as one flat axis (and the reduced dims as another): most kernels are
 * linear in memory, and a long axis schedules better. Where division or remainder is left over in
 * an access map, the kernel is lowered again with an axis per dim.
 */
#include "core/ir/dot.h"
#include "jit/lower/lower_impl.h"
#include "jit/nest/nest_roles.h"

#include <stdio.h>
#include <string.h>

static bool tests_divide(const dc_kernel *k, dc_pred p)
{
    for (uint32_t i = 0; i < p.n; i++)
        if (dc_lower_divides(k, p.range[i].ix))
            return true;
    return false;
}

/* Is a division or remainder left in any map that is used, or in a test where nothing is added up? */
static bool maps_divide(const lowering *w)
{
    const dc_kernel *k = w->k;
    const bool is_map = w->group->kind == DC_KERNEL_map;
    if (w->divides)
        return true;
    for (uint32_t v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        if (is_map && tests_divide(k, n->pred))
            return true;
        if (n->kind != DC_VX_LOAD && n->kind != DC_VX_INDEX)
            continue;
        if (dc_lower_divides(k, n->at))
            return true;
    }
    return false;
}

static dc_ref first_reduction(const lowering *w)
{
    return w->group->nreduce > 0 ? w->group->reduce[0] : 0;
}

/* The letter of its kind, the sizes of what it gives, and of a reduction what is reduced: R_64_k10. */
static const char *kernel_name(const lowering *w, char *name, size_t size)
{
    const dc_kernel_kind kind = w->group->kind;
    const bool rows = kind == DC_KERNEL_rows;
    const dc_ref r = first_reduction(w);
    const dc_node *shape = dc_node_at(w->fn, rows ? w->group->shape : w->group->out[0]);
    int n = snprintf(name, size, "%c", dc_kernel_letter(kind));
    for (int i = 0; i < shape->rank && n < (int)size; i++)
        n += snprintf(name + n, size - (size_t)n, "_%lld", (long long)shape->dim[i]);
    if (kind == DC_KERNEL_stage)
        n += snprintf(name + n, size - (size_t)n, "_r%lld",
                      (long long)dc_node_at(w->fn, r)->attr[0]);
    else if (r != 0 && !rows && kind != DC_KERNEL_transform) {
        int64_t dim[DC_MAX_RANK];
        const int rank = dc_lower_reduced_dims(w, dc_node_at(w->fn, r), dim);
        for (int i = 0; i < rank && n < (int)size; i++)
            n += snprintf(name + n, size - (size_t)n, "%s%lld", i ? "_" : "_k", (long long)dim[i]);
    }
    return name;
}

/* A buffer that begins so many elements behind the beginning of memory. */
static void begins_at(dc_buffer *b, int64_t first)
{
    const size_t size = dc_dtype_size((dc_dtype)b->dtype);
    b->align = (uint64_t)first * size % DC_BUFFER_ALIGN == 0 ? 0 : (uint8_t)size;
}

static void declare_buffers(lowering *w)
{
    const dc_group *g = w->group;
    char name[16];
    for (uint32_t i = 0; i < g->nout; i++) {
        const dc_node *n = dc_node_at(w->fn, g->out[i]);
        snprintf(name, sizeof name, "out%u", i);
        const uint32_t b =
            dc_buffer_new(w->k, name, n->dtype, dc_node_count(n), DC_SCOPE_PARAM, DC_MODE_OUT);
        if (n->op != DC_OP_PIECE)
            continue;
        const dc_window x = dc_group_window(w->groups, g->out[i]);
        w->k->buf.at[b].count = x.span + 1;
        begins_at(&w->k->buf.at[b], x.first);
    }
    for (uint32_t i = 0; i < g->nin; i++) {
        const dc_node *n = dc_node_at(w->fn, g->in[i]);
        snprintf(name, sizeof name, "x%u", i);
        lower_fact *f = dc_lower_fact(w, g->in[i]);
        const bool again = f->buf != DC_NO_BUF;
        w->right = again ? g->in[i] : 0;
        *(again ? &w->right_buf : &f->buf) =
            dc_buffer_new(w->k, name, n->dtype, dc_node_count(n), DC_SCOPE_PARAM, DC_MODE_IN);
    }
}

static int64_t bytes_touched(const lowering *w)
{
    const dc_group *g = w->group;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < g->nout + g->nin - (w->right != 0); i++) {
        const dc_node *n = dc_node_at(w->fn, i < g->nout ? g->out[i] : g->in[i - g->nout]);
        bytes += dc_node_count(n) * (int64_t)dc_dtype_size((dc_dtype)n->dtype);
    }
    return bytes;
}

/* At most a quarter of what int64_t holds, so that a few may be added. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t n;
    return dc_mul_ok(a, b, &n) ? dc_min_i64(n, INT64_MAX / 4) : INT64_MAX / 4;
}

/* Arithmetic per launch: a product counts 2 per term, other kernels 1 per operation and position.
 */
static int64_t operations(const lowering *w, int64_t positions)
{
    const dc_ref r = first_reduction(w);
    int64_t terms = 1, ops = 0;
    for (uint32_t i = 1; i < w->k->vx.n; i++)
        ops += w->k->vx.at[i].kind == DC_VX_OP;
    if (r != 0 && w->group->kind != DC_KERNEL_scatter) {
        int64_t dim[DC_MAX_RANK];
        const dc_node *n = dc_node_at(w->fn, r);
        terms = dc_lower_product(dc_lower_reduced_dims(w, n, dim), dim);
        if (dc_op_is((dc_op)n->op, DC_CLASS_CON))
            return times(positions, times(2, terms) + ops - 2);
    }
    return times(positions, times(terms, ops));
}

static void free_kernel(void *k)
{
    dc_kernel_free(k);
}

/*
 * Two phases for each position beside the axis: the axis is filled, then one update follows the
 * other in the order of the integers. Positions beside the axis are independent.
 */
static void lower_scatter(lowering *w, bool flat)
{
    dc_kernel *k = w->k;
    const dc_node *n = dc_node_at(w->fn, first_reduction(w)), *i = dc_node_at(w->fn, n->in[1]);
    const int axis = (int)n->attr[0], nb = (int)n->attr[1], own = i->rank - nb;
    dc_ix pos[DC_MAX_RANK], of[DC_MAX_RANK], from[DC_MAX_RANK];
    nest beside = {0}, along = {0}, updates = {0};
    dc_stmt *fill = dc_stmt_set(k, 1), *update = dc_stmt_set(k, 1), *body = NULL;
    const dc_dtype t = n->dtype;

    dc_lower_axes(w, flat, "i", axis, n->dim, false, &beside, pos);
    dc_lower_axes(w, flat, "n", n->rank - axis - 1, n->dim + axis + 1, false, &beside,
                  pos + axis + 1);
    if (!w->updates_only) {
        dc_lower_axes(w, flat, "a", 1, n->dim + axis, false, &along, pos + axis);
        fill->put[0] = (dc_put){0, dc_lower_linear(k, n, pos),
                                dc_lower_as_stored(w, dc_lower_node(w, n->in[0], pos), t)};
        dc_lower_limit(w, fill, first_reduction(w), pos);
        dc_lower_limit(w, fill, n->in[0], pos);
        body = dc_lower_wrap(k, &along, fill);
    }

    memcpy(of, pos, (size_t)axis * sizeof *of);
    dc_lower_axes(w, flat, "k", own, i->dim + nb, false, &updates, of + axis);
    for (int d = axis + 1; d < n->rank; d++)
        of[d - 1 + own] = pos[d];
    dc_lower_index_position(w, n, of, from);
    const dc_vx at = dc_lower_node(w, n->in[1], from), value = dc_lower_node(w, n->in[2], of);
    update->pred =
        dc_pred_and(k, (dc_pred){0}, dc_lower_loaded_index(k, at, -1, n->dim[axis]), n->dim[axis]);
    pos[axis] = dc_lower_loaded_index(k, at, 0, n->dim[axis] - 1);
    const dc_ix to = dc_lower_linear(k, n, pos);
    const dc_vx sum[2] = {
        dc_lower_cast(w, dc_vx_load(k, 0, to, (dc_pred){0}), dc_lower_computed(t)), value};
    const dc_op combine = (dc_op)dc_op_row_of((dc_op)n->op)->combine;
    const dc_vx v =
        n->op == DC_OP_SCATTER ? value : dc_vx_op(k, combine, dc_lower_computed(t), sum, 2);
    update->put[0] = (dc_put){0, to, dc_lower_as_stored(w, v, t)};
    dc_lower_limit_updates(w, update, first_reduction(w), from);
    dc_lower_limit(w, update, n->in[2], of);

    if (!w->updates_only) { /* two steps for each row */
        dc_lower_set_role(k, &beside, DC_ROLE_ROW);
        dc_lower_set_role(k, &along, DC_ROLE_COLUMN);
        dc_lower_set_role(k, &updates, DC_ROLE_COLUMN);
    }
    *(body != NULL ? &body->next : &body) = dc_lower_wrap(k, &updates, update);
    k->root = dc_lower_wrap(k, &beside, body);
    k->flops = operations(w, dc_node_count(dc_node_at(w->fn, n->in[2])));
    if (w->updates_only) {
        k->buf.at[0].mode = DC_MODE_INOUT;
        k->bytes = 2 * dc_node_count(dc_node_at(w->fn, n->in[2])) * (int64_t)dc_dtype_size(t);
    }
}

void dc_lower_forget(lowering *w)
{
    w->scratch->loop++;
}

/*
 * Parts of complex numbers (core/build/complex.h): what stands at `part` along the last axis of r, of 2, if r is the sum of
 * two paddings with -0, which changes nothing. 0: it is something else.
 */
static dc_ref part_of(const lowering *w, dc_ref r, int part)
{
    const dc_node *n = dc_node_at(w->fn, r);
    const int last = n->rank - 1;
    for (int i = 0; i < 2 && n->op == DC_OP_ADD && last >= 0 && n->dim[last] == 2; i++) {
        const dc_node *p = dc_node_at(w->fn, n->in[i]);
        const uint64_t nothing = dc_bits_of((dc_dtype)n->dtype, -0.0);
        if (p->op != DC_OP_PAD || (uint64_t)p->attr[2 * n->rank] != nothing ||
            dc_lower_fact(w, n->in[i])->buf != DC_NO_BUF)
            return 0;
        const dc_node *of = dc_node_at(w->fn, p->in[0]);
        for (int k = 0; k <= last; k++)
            if (of->dim[k] != (k < last ? n->dim[k] : 1))
                return 0;
        if (p->attr[last] == part)
            return p->in[0];
    }
    return 0;
}

static bool is_of_parts(const lowering *w)
{
    const dc_group *g = w->group;
    if (g->nreduce > 0 || g->row_wise || w->updates_only)
        return false;
    for (uint32_t i = 0; i < g->nout; i++)
        if (part_of(w, g->out[i], 0) == 0 || part_of(w, g->out[i], 1) == 0 ||
            dc_node_at(w->fn, g->out[i])->rank != dc_node_at(w->fn, g->out[0])->rank)
            return false;
    return true;
}

/* Both parts of each output at the position w->out_pos of the axes before the last. */
static dc_stmt *lower_parts(lowering *w)
{
    const dc_group *g = w->group;
    dc_stmt *store = dc_stmt_set(w->k, 2 * g->nout);
    for (uint32_t i = 0; i < g->nout; i++) {
        const dc_node *n = dc_node_at(w->fn, g->out[i]);
        const int last = n->rank - 1;
        for (int part = 0; part < 2; part++) {
            w->out_pos[last] = dc_ix_const(w->k, 0);
            const dc_vx v = dc_lower_node(w, part_of(w, g->out[i], part), w->out_pos);
            w->out_pos[last] = dc_ix_const(w->k, part);
            if (part == 0)
                dc_lower_limit_also(w, store, i == 0, g->out[i], w->out_pos);
            store->put[2 * i + (uint32_t)part] = (dc_put){i, dc_lower_linear(w->k, n, w->out_pos),
                                                          dc_lower_as_stored(w, v, n->dtype)};
        }
    }
    return store;
}

/* The reductions one after the other, then the outputs, at the position w->out_pos of `shape`. */
static dc_stmt *lower_position(lowering *w, const dc_node *shape, bool flat)
{
    const dc_group *g = w->group;
    dc_stmt *first = NULL, **last = &first;
    dc_lower_terms s = {0};
    for (uint32_t i = 0; i < g->nreduce; i++) {
        *last = dc_lower_reduction(w, i, flat, &s);
        while (*last != NULL)
            last = &(*last)->next;
        dc_lower_forget(w);
    }
    const dc_ix at = dc_lower_linear(w->k, shape, w->out_pos);
    dc_stmt *store = *last = dc_stmt_set(w->k, g->nout);
    for (uint32_t i = 0; i < g->nout; i++) {
        const dc_node *n = dc_node_at(w->fn, g->out[i]);
        dc_ix pos[DC_MAX_RANK];
        dc_lower_at(w, n, shape->rank, shape->dim, w->out_pos, pos);
        const dc_vx v = dc_lower_node(w, g->out[i], pos);
        dc_lower_limit_also(w, store, i == 0, g->out[i], pos);
        store->put[i] =
            (dc_put){i, dc_lower_place(w, g->out[i], at), dc_lower_as_stored(w, v, n->dtype)};
    }
    return first;
}

/* ---- by kind ----------------------------------------------------------------------------------- */

/* Of a group whose outputs have an element for each of its points: their shape. */
static const dc_node *shape_of(const lowering *w)
{
    const dc_group *g = w->group;
    return dc_node_at(w->fn, g->nreduce > 0 ? g->reduce[0] : g->out[0]);
}

static void note_last(lowering *w, const nest *loops)
{
    if (loops->n > 0)
        w->last = loops->axis[loops->n - 1];
}

/* Inside loops over its points. */
static void lower_points(lowering *w, const nest *loops, bool flat)
{
    const dc_node *shape = shape_of(w);
    note_last(w, loops);
    w->k->root = dc_lower_wrap(w->k, loops, lower_position(w, shape, flat));
    w->k->flops = operations(w, dc_node_count(shape));
}

static void lower_reduction(lowering *w, bool flat)
{
    const dc_node *shape = shape_of(w);
    nest loops = {0};
    dc_lower_axes(w, flat, "i", shape->rank, shape->dim, false, &loops, w->out_pos);
    lower_points(w, &loops, flat);
}

static void lower_contraction(lowering *w, bool flat)
{
    const dc_node *shape = shape_of(w);
    nest loops = {0};
    dc_lower_axes(w, flat, "i", shape->rank, shape->dim, false, &loops, w->out_pos);
    dc_lower_dot_roles(w, shape, &loops);
    lower_points(w, &loops, flat);
}

static void lower_convolution(lowering *w, bool flat)
{
    nest loops = {0};
    dc_lower_conv_loops(w, shape_of(w), &loops);
    lower_points(w, &loops, flat);
}

static void lower_map(lowering *w, bool flat)
{
    const dc_node *shape = shape_of(w);
    nest loops = {0};
    if (w->updates_only) {
        dc_kernel *k = w->k;
        dc_lower_put(w, flat);
        k->flops = operations(w, k->bytes / (2 * (int64_t)dc_dtype_size(k->buf.at[0].dtype)));
        return;
    }
    if (!is_of_parts(w)) {
        lower_reduction(w, flat);
        return;
    }
    dc_lower_axes(w, flat, "i", shape->rank - 1, shape->dim, false, &loops, w->out_pos);
    note_last(w, &loops);
    w->k->root = dc_lower_wrap(w->k, &loops, lower_parts(w));
    w->k->flops = operations(w, dc_node_count(shape) / 2);
}

static void lower_rows(lowering *w, bool flat)
{
    const dc_group *g = w->group;
    w->k->root = dc_lower_rows(w, flat);
    w->k->flops = operations(w, dc_lower_product(g->split, dc_node_at(w->fn, g->shape)->dim));
}

static void lower_stage(lowering *w, bool flat)
{
    DC_UNUSED(flat);
    dc_lower_stage(w, first_reduction(w));
}

static void lower_transform(lowering *w, bool flat)
{
    DC_UNUSED(flat);
    dc_lower_transform(w, first_reduction(w));
}

static void lower_attention(lowering *w, bool flat)
{
    DC_UNUSED(flat);
    dc_lower_attention(w);
}

static dc_kernel *lower_as(lowering *w, bool flat)
{
    static void (*const by_kind[])(lowering *, bool) = {
#define KIND(id, letter) lower_##id,
#include "jit/base/kinds.def"
#undef KIND
    };
    char name[64];
    dc_kernel *k = w->k = dc_kernel_new(kernel_name(w, name, sizeof name));
    dc_job_defer(w->j, free_kernel, k);
    k->kind = (uint8_t)w->group->kind;
    k->strict = dc_opts_math(w->j->opt, "strict");
    k->tf32 = dc_opts_math(w->j->opt, "tf32");
    w->scratch->kernel++;
    w->scratch->loop++;
    w->guard = (dc_pred){0};
    w->divides = false;
    w->last = DC_NO_AXIS;
    declare_buffers(w);
    k->bytes = bytes_touched(w);
    by_kind[w->group->kind](w, flat);
    return k;
}

static struct dc_lower_scratch *new_scratch(dc_arena *a, uint32_t nodes)
{
    struct dc_lower_scratch *s = DC_NEW(a, struct dc_lower_scratch);
    s->fact = DC_NEW_ARRAY(a, lower_fact, nodes);
    return s;
}

static bool is_input(const dc_group *g, dc_ref r)
{
    for (uint32_t i = 0; i < g->nin; i++)
        if (g->in[i] == r)
            return true;
    return false;
}

/* The input that an operand of a contraction is, by casts and movement; 0: it is more. */
static dc_ref input_of(const dc_func *fn, const dc_group *g, dc_ref r)
{
    while (!is_input(g, r)) {
        const dc_node *n = dc_node_at(fn, r);
        if (n->op != DC_OP_CAST && n->op != DC_OP_PAD && !dc_op_is((dc_op)n->op, DC_CLASS_MOV))
            return 0;
        r = n->in[0];
    }
    return r;
}

/* The right operand becomes the last input once more, where it is the left one, too. */
static void part_operands(const dc_func *fn, dc_group *g, dc_arena *a)
{
    if (g->control != 0 || g->kind != DC_KERNEL_contraction || g->nreduce != 1)
        return;
    const dc_node *n = dc_node_at(fn, g->reduce[0]);
    const dc_ref right = input_of(fn, g, n->in[1]);
    if (right == 0 || right != input_of(fn, g, n->in[0]))
        return;
    dc_ref *in = DC_NEW_ARRAY(a, dc_ref, g->nin + 1);
    memcpy(in, g->in, g->nin * sizeof *in);
    in[g->nin++] = right;
    g->in = in;
}

void dc_lower_prepare(dc_groups *groups, dc_arena *a, uint32_t buffers)
{
    groups->lower = new_scratch(a, groups->fn->node.n);
    for (uint32_t i = 0; i < groups->n; i++)
        if (buffers == 0 || groups->at[i].nin + groups->at[i].nout < buffers)
            part_operands(groups->fn, &groups->at[i], a);
}

static dc_status lower(dc_job *j, const dc_groups *groups, uint32_t index, bool updates_only,
                       dc_kernel **out)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    lowering w = {.j = j,
                  .groups = groups,
                  .group = &groups->at[index],
                  .fn = groups->fn,
                  .scratch = groups->lower,
                  .updates_only = updates_only};
    if (w.scratch == NULL)
        w.scratch = new_scratch(&j->scratch, groups->fn->node.n);

    const dc_kernel_kind kind = w.group->kind;
    dc_kernel *k = lower_as(&w, kind != DC_KERNEL_convolution);
    if (kind != DC_KERNEL_convolution && kind != DC_KERNEL_attention &&
        (maps_divide(&w) || dc_lower_limits_wrap(k, k->root))) {
        dc_job_keep(j, k);
        dc_kernel_free(k);
        k = lower_as(&w, false);
    }
    if (kind == DC_KERNEL_reduction) /* whose node does not say what its dims mean */
        dc_roles_derive(k);
    dc_job_keep(j, k);
    dc_arena_rewind(&j->scratch, mark);
    *out = k;
    return DC_OK;
}

dc_status dc_lower(dc_job *j, const dc_groups *groups, uint32_t index, dc_kernel **out)
{
    return lower(j, groups, index, false, out);
}

dc_status dc_lower_updates(dc_job *j, const dc_groups *groups, uint32_t index, dc_kernel **out)
{
    return lower(j, groups, index, true, out);
}

dc_ref dc_lower_changes(const dc_groups *groups, uint32_t index)
{
    const dc_group *g = &groups->at[index];
    const dc_node *n = dc_node_at(groups->fn, g->nreduce == 1 ? g->reduce[0] : g->out[0]);
    return dc_op_is((dc_op)n->op, DC_CLASS_IDX) && g->nreduce == 1
               ? dc_below_sizes(groups->fn, n->in[0])
               : dc_lower_put_in(groups, index);
}
