/*
 * Gather and scatter of the interpreter. The axes are seen as [outer, before, axis, after], those of
 * the integers as [outer, own], with the extents multiplied: a run of `after` elements is moved, or
 * combined, at a time.
 */
#include "core/eval/eval_impl.h"

#include <string.h>

typedef struct picking {
    int64_t outer, before, axis, after, own;
    dc_dtype t;        /* of the integers */
    const void *index; /* their array */
} picking;

static int64_t dims_product(const int64_t *dim, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= dim[i];
    return n;
}

/* Of a gather or scatter node n. */
static picking picking_of(const dc_eval_state *s, const dc_node *n)
{
    const dc_node *x = dc_node_at(s->f, n->in[0]), *i = dc_node_at(s->f, n->in[1]);
    const int axis = (int)n->attr[0], nb = (int)n->attr[1];
    return (picking){.outer = dims_product(x->dim, 0, nb),
                     .before = dims_product(x->dim, nb, axis),
                     .axis = x->dim[axis],
                     .after = dims_product(x->dim, axis + 1, x->rank),
                     .own = dims_product(i->dim, nb, i->rank),
                     .t = (dc_dtype)i->dtype,
                     .index = s->value[n->in[1]]};
}

/* Integer k, cut to -1..axis: what lies outside stays outside, on its side. */
static int64_t place_of(const picking *p, int64_t k)
{
    const uint64_t bits =
        dc_bits_load(p->t, (const char *)p->index + (size_t)k * dc_dtype_size(p->t));
    if (dc_dtype_kind(p->t) == DC_KIND_UINT)
        return bits < (uint64_t)p->axis ? (int64_t)bits : p->axis;
    return dc_max_i64(-1, dc_min_i64((int64_t)bits, p->axis));
}

void dc_eval_gather(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    const picking p = picking_of(s, n);
    const size_t run = (size_t)p.after * dc_eval_size(s->mode, (dc_dtype)n->dtype);
    const char *from = s->value[n->in[0]];
    char *to = s->value[r];
    if (dc_node_count(n) == 0)
        return;
    for (int64_t o = 0; o < p.outer; o++)
        for (int64_t b = 0; b < p.before; b++)
            for (int64_t k = 0; k < p.own; k++, to += run) {
                if (k % DC_EVAL_CHUNK == 0)
                    dc_job_look();
                const int64_t i =
                    dc_max_i64(0, dc_min_i64(place_of(&p, o * p.own + k), p.axis - 1));
                memcpy(to, from + (size_t)((o * p.before + b) * p.axis + i) * run, run);
            }
}

/* to[at..] += from[k..], or what `combine` does, n elements, each rounded to the dtype. */
static void combine_run(dc_eval_mode mode, dc_op combine, dc_dtype t, void *to, int64_t at,
                        const void *from, int64_t k, int64_t n)
{
    double x[DC_EVAL_CHUNK], y[DC_EVAL_CHUNK];
    uint64_t a[DC_EVAL_CHUNK], b[DC_EVAL_CHUNK];
    for (int64_t done = 0; done < n; done += DC_EVAL_CHUNK) {
        const int64_t m = dc_min_i64(DC_EVAL_CHUNK, n - done);
        if (dc_dtype_is_float(t)) {
            dc_eval_get_f(mode, t, to, at + done, m, x);
            dc_eval_get_f(mode, t, from, k + done, m, y);
            for (int64_t i = 0; i < m; i++)
                x[i] = combine == DC_OP_ADD ? x[i] + y[i] : dc_op_evalf(combine, x[i], y[i], 0);
            dc_eval_put_f(mode, t, to, at + done, m, x);
        } else {
            dc_eval_get_i(t, to, at + done, m, a);
            dc_eval_get_i(t, from, k + done, m, b);
            for (int64_t i = 0; i < m; i++)
                a[i] = dc_op_eval(combine, t, t, (const uint64_t[]){a[i], b[i]});
            dc_eval_put_i(t, to, at + done, m, a);
        }
    }
}

/* Puts the elements `from` at their places in `to`, or combines them with what is there. */
static void scatter_all(dc_eval_mode mode, dc_op op, dc_dtype t, const picking *p, char *to,
                        const char *from)
{
    const size_t size = dc_eval_size(mode, t);
    for (int64_t o = 0; o < p->outer; o++)
        for (int64_t b = 0; b < p->before; b++)
            for (int64_t k = 0; k < p->own; k++) {
                if (k % DC_EVAL_CHUNK == 0)
                    dc_job_look();
                const int64_t row = o * p->before + b, i = place_of(p, o * p->own + k);
                const int64_t at = (row * p->axis + i) * p->after;
                const int64_t of = (row * p->own + k) * p->after;
                if (i < 0 || i >= p->axis)
                    continue;
                if (op != DC_OP_SCATTER)
                    combine_run(mode, (dc_op)dc_op_row_of(op)->combine, t, to, at, from, of,
                                p->after);
                else
                    memcpy(to + (size_t)at * size, from + (size_t)of * size,
                           (size_t)p->after * size);
            }
}

/* Sums of 16-bit floats are f32 on the way; so are products. */
static dc_status accumulate_short(dc_eval_state *s, dc_ref r, const picking *p)
{
    const dc_node *n = dc_node_at(s->f, r);
    const dc_dtype t = (dc_dtype)n->dtype;
    const int64_t count = dc_node_count(n),
                  many[2] = {count, dc_node_count(dc_node_at(s->f, n->in[2]))};
    for (int i = 0; i < 2; i++) {
        DC_TRY(dc_eval_alloc(s, many[i], sizeof(float), &s->temp[i]));
        for (int64_t k = 0; k < many[i]; k++) {
            double v;
            dc_eval_get_f(s->mode, t, s->value[n->in[2 * i]], k, 1, &v);
            ((float *)s->temp[i])[k] = (float)v;
        }
    }
    scatter_all(s->mode, (dc_op)n->op, DC_F32, p, s->temp[0], s->temp[1]);
    for (int64_t k = 0; k < count; k++) {
        const double v = (double)((float *)s->temp[0])[k];
        dc_eval_put_f(s->mode, t, s->value[r], k, 1, &v);
    }
    return DC_OK;
}

dc_status dc_eval_scatter(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    const dc_dtype t = (dc_dtype)n->dtype;
    const picking p = picking_of(s, n);
    if (dc_node_count(n) == 0)
        return DC_OK;
    if (dc_op_accumulates((dc_op)n->op) && dc_dtype_is_short(t) && s->mode != DC_EVAL_WIDE)
        return accumulate_short(s, r, &p);
    memcpy(s->value[r], s->value[n->in[0]], (size_t)dc_node_count(n) * dc_eval_size(s->mode, t));
    scatter_all(s->mode, (dc_op)n->op, t, &p, s->value[r], s->value[n->in[2]]);
    return DC_OK;
}
