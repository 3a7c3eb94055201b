/*
 * Convolutions of the interpreter. The input is laid out as [batch, channel, room...] with its padding
 * and with what lies between its elements, all of it zeros; then each row of positions is a product of
 * the kernel as [channel, terms] with what the window sees as [terms, positions]. Terms come in
 * row-major order of the kernel's axes.
 */
#include "core/eval/eval_impl.h"
#include "core/ir/conv.h"

#include <string.h>

typedef struct convolving {
    dc_eval_state *s;
    dc_conv c;
    const dc_node *x, *w, *n;
    void *result;
    bool floats;
    int64_t groups;             /* of either kind */
    int64_t terms;              /* of one element */
    int64_t room[DC_CONV_AXES]; /* of the input laid out: batch, channel, room... */
    int64_t step[DC_CONV_AXES];
    int64_t *offset; /* by term: where it is read, from the first one of channel 0 */
} convolving;

/* Elements as doubles or patterns of 8 bytes, into *slot. */
static dc_status widen(const convolving *v, dc_dtype t, const void *from, int64_t count,
                       void **slot)
{
    DC_TRY(dc_eval_alloc(v->s, count, sizeof(double), slot));
    if (count > 0 && v->floats)
        dc_eval_get_f(v->s->mode, t, from, 0, count, *slot);
    else if (count > 0)
        dc_eval_get_i(t, from, 0, count, *slot);
    return DC_OK;
}

/* Copies the input into the room of its own; elements that padding below 0 cuts stay behind. */
static void place_input(const convolving *v, size_t size, char *to)
{
    const dc_node *x = v->x;
    const char *from = v->s->value[v->n->in[0]];
    int64_t step[DC_MAX_RANK], base_to = 0, base_from = 0;
    dc_eval_move m = {.rank = x->rank};
    dc_eval_steps(x->rank, x->dim, step);
    for (int i = 0; i < x->rank; i++) {
        const dc_conv_dim *d = i < 2 ? NULL : &v->c.dim[i - 2];
        const int64_t every = d != NULL ? d->dilate_in : 1, lo = d != NULL ? d->lo : 0;
        const int64_t first = lo < 0 ? (-lo + every - 1) / every : 0, n = x->dim[v->c.in[i]];
        const int64_t at = first * every + lo;
        m.dim[i] =
            at < v->room[i] ? dc_min_i64(n - first, (v->room[i] - at + every - 1) / every) : 0;
        m.from[i] = step[v->c.in[i]];
        m.to[i] = v->step[i] * every;
        base_from += first * m.from[i];
        base_to += at * v->step[i];
        if (m.dim[i] <= 0)
            return;
    }
    dc_eval_move_run(&m, size, to + (size_t)base_to * size, from + (size_t)base_from * size);
}

static dc_status lay_out_input(convolving *v)
{
    dc_eval_state *s = v->s;
    const dc_dtype t = (dc_dtype)v->x->dtype;
    const size_t size = dc_eval_size(s->mode, t);
    int64_t count = 1;
    for (int i = 0; i < 2 + v->c.n; i++) {
        const dc_conv_dim *d = i < 2 ? NULL : &v->c.dim[i - 2];
        const int64_t n = v->x->dim[v->c.in[i]];
        v->room[i] = d == NULL ? n : (n > 0 ? (n - 1) * d->dilate_in + 1 : 0) + d->lo + d->hi;
    }
    if (!dc_dims_fit(2 + v->c.n, v->room, sizeof(double)))
        return dc_fail(s->j, DC_ERR_NOMEM, NULL);
    dc_eval_steps(2 + v->c.n, v->room, v->step);
    for (int i = 0; i < 2 + v->c.n; i++)
        count *= v->room[i];
    DC_TRY(dc_eval_alloc(s, count, size, &s->temp[2]));
    if (count > 0)
        memset(s->temp[2], 0, (size_t)count * size);
    if (dc_node_count(v->x) > 0)
        place_input(v, size, s->temp[2]);
    DC_TRY(widen(v, t, s->temp[2], count, &s->temp[0]));
    dc_eval_drop(&s->temp[2]);
    return DC_OK;
}

/* What position p of an axis of the kernel (not that of the results) adds to the window's corner. */
static int64_t offset_along(const convolving *v, int axis, int64_t p)
{
    if (axis == v->c.kernel[1])
        return p * v->step[1];
    int dim = 0;
    while (v->c.kernel[2 + dim] != axis)
        dim++;
    const dc_conv_dim *d = &v->c.dim[dim];
    return (d->reversed ? v->w->dim[axis] - 1 - p : p) * d->dilate * v->step[2 + dim];
}

/* Where the input of each term of a sum is, in the order in which the kernel is laid out. */
static void list_offsets(convolving *v)
{
    const dc_node *w = v->w;
    const int own = (int)v->c.kernel[0];
    v->terms = dc_node_count(w) / w->dim[own];
    v->offset = DC_NEW_ARRAY(&v->s->j->scratch, int64_t, v->terms);
    for (int64_t k = 0; k < v->terms; k++) {
        int64_t rest = k;
        for (int axis = w->rank - 1; axis >= 0; axis--) {
            if (axis == own)
                continue;
            v->offset[k] += offset_along(v, axis, rest % w->dim[axis]);
            rest /= w->dim[axis];
        }
    }
}

/* The kernel as [channel of the result, terms], and where each term is read. */
static dc_status lay_out_kernel(convolving *v)
{
    dc_eval_state *s = v->s;
    const dc_node *w = v->w;
    const dc_dtype t = (dc_dtype)w->dtype;
    const size_t size = dc_eval_size(s->mode, t);
    const int64_t count = dc_node_count(w);
    const int own = (int)v->c.kernel[0];
    int64_t step[DC_MAX_RANK];
    dc_eval_move m = {.rank = w->rank};
    dc_eval_steps(w->rank, w->dim, step);
    for (int i = 0; i < w->rank; i++) {
        const int axis = i == 0 ? own : i <= own ? i - 1 : i;
        m.dim[i] = w->dim[axis];
        m.from[i] = step[axis];
    }
    dc_eval_steps(w->rank, m.dim, m.to);
    DC_TRY(dc_eval_alloc(s, count, size, &s->temp[2]));
    dc_eval_move_run(&m, size, s->temp[2], s->value[v->n->in[1]]);
    DC_TRY(widen(v, t, s->temp[2], count, &s->temp[1]));
    dc_eval_drop(&s->temp[2]);
    list_offsets(v);
    return DC_OK;
}

/* What the window sees at a row of positions, [terms, positions]; `base`: the first of them. */
static void gather_rows(const convolving *v, int64_t base, int64_t step, int64_t n)
{
    const uint64_t *from = v->s->temp[0];
    uint64_t *to = v->s->temp[2];
    for (int64_t k = 0; k < v->terms; k++)
        for (int64_t i = 0; i < n; i++)
            *to++ = from[base + v->offset[k] + i * step];
}

/* One row of results, in the channels of one group. position: batch, -, all but the last. */
static void run_row(const convolving *v, int64_t group, const int64_t *position)
{
    const dc_eval_state *s = v->s;
    const dc_conv *c = &v->c;
    const int last = 1 + c->n;
    const dc_dtype t = (dc_dtype)v->n->dtype;
    const int64_t n = v->n->dim[c->out[last]], own = v->n->dim[c->out[1]] / v->groups;
    int64_t step[DC_MAX_RANK], base = 0, at = 0;
    dc_eval_steps(v->n->rank, v->n->dim, step);
    for (int i = 0; i < last; i++) {
        if (i == 1)
            continue;
        base += position[i] * v->step[i] * (i >= 2 ? c->dim[i - 2].stride : 1);
        at += position[i] * step[c->out[i]];
    }
    base += c->batch_groups > 1 ? group * v->n->dim[c->out[0]] * v->step[0] : 0;
    base += c->groups > 1 ? group * (v->room[1] / v->groups) * v->step[1] : 0;
    gather_rows(v, base, v->step[last] * c->dim[c->n - 1].stride, n);
    for (int64_t o = group * own; o < (group + 1) * own; o++) {
        memset(s->temp[3], 0, (size_t)n * sizeof(double));
        dc_eval_rows(s->mode, t, v->terms, n, (const double *)s->temp[1] + o * v->terms, s->temp[2],
                     s->temp[3]);
        for (int64_t i = 0; i < n; i++) {
            const int64_t to = at + o * step[c->out[1]] + i * step[c->out[last]];
            if (v->floats)
                dc_eval_put_f(s->mode, t, v->result, to, 1, (const double *)s->temp[3] + i);
            else
                dc_eval_put_i(t, v->result, to, 1, (const uint64_t *)s->temp[3] + i);
        }
    }
}

dc_status dc_eval_conv(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    convolving v = {.s = s,
                    .c = dc_conv_of(n),
                    .x = dc_node_at(s->f, n->in[0]),
                    .w = dc_node_at(s->f, n->in[1]),
                    .n = n,
                    .result = s->value[r],
                    .floats = dc_dtype_is_float((dc_dtype)n->dtype)};
    v.groups = v.c.groups * v.c.batch_groups;
    const int64_t row = n->dim[v.c.out[1 + v.c.n]];
    int64_t rows = v.groups * n->dim[v.c.out[0]], terms;
    for (int i = 2; i < 1 + v.c.n; i++)
        rows *= n->dim[v.c.out[i]];
    if (dc_node_count(n) == 0)
        return DC_OK;
    const dc_mark mark = dc_arena_mark(&s->j->scratch);
    DC_TRY(lay_out_input(&v));
    DC_TRY(lay_out_kernel(&v));
    if (!dc_mul_ok(v.terms, row, &terms))
        return dc_fail(s->j, DC_ERR_NOMEM, NULL);
    DC_TRY(dc_eval_alloc(s, terms, sizeof(double), &s->temp[2]));
    DC_TRY(dc_eval_alloc(s, row, sizeof(double), &s->temp[3]));
    for (int64_t i = 0; i < rows; i++) {
        int64_t position[DC_CONV_AXES], left = i;
        dc_job_look();
        for (int k = v.c.n; k >= 2; k--) {
            position[k] = left % n->dim[v.c.out[k]];
            left /= n->dim[v.c.out[k]];
        }
        position[0] = left % n->dim[v.c.out[0]];
        run_row(&v, left / n->dim[v.c.out[0]], position);
    }
    dc_arena_rewind(&s->j->scratch, mark);
    return DC_OK;
}
