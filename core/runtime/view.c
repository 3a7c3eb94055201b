/*
 * Arithmetic of strided views.
 */
#include "core/runtime/view.h"

#include <string.h>

static void set_dense(dc_view *v)
{
    int64_t stride = 1;
    for (int k = v->rank - 1; k >= 0; k--) {
        v->stride[k] = stride;
        stride *= v->dim[k];
    }
}

dc_view dc_view_whole(const dc_type *t)
{
    dc_view v = {.rank = t->rank};
    for (int k = 0; k < t->rank; k++)
        v.dim[k] = t->dim[k];
    set_dense(&v);
    return v;
}

int64_t dc_view_count(const dc_view *v)
{
    int64_t n = 1;
    for (int k = 0; k < v->rank; k++)
        n *= v->dim[k];
    return n;
}

bool dc_view_is_dense(const dc_view *v)
{
    int64_t stride = 1;
    for (int k = v->rank - 1; k >= 0; k--) {
        if (v->dim[k] == 0)
            return true;
        if (v->dim[k] != 1 && v->stride[k] != stride)
            return false;
        stride *= v->dim[k];
    }
    return true;
}

bool dc_view_same(const dc_view *a, const dc_view *b)
{
    if (a->rank != b->rank || a->at != b->at)
        return false;
    for (int k = 0; k < a->rank; k++)
        if (a->dim[k] != b->dim[k] || (a->dim[k] > 1 && a->stride[k] != b->stride[k]))
            return false;
    return true;
}

/* ---- movement -------------------------------------------------------------------------------- */

/* Without axes of 1, and with axes joined that are one run of equal steps. */
static dc_view squeeze(const dc_view *v)
{
    dc_view s = {.at = v->at};
    for (int k = 0; k < v->rank; k++) {
        if (v->dim[k] == 1)
            continue;
        if (s.rank > 0 && s.stride[s.rank - 1] == v->dim[k] * v->stride[k]) {
            s.dim[s.rank - 1] *= v->dim[k];
            s.stride[s.rank - 1] = v->stride[k];
            continue;
        }
        s.dim[s.rank] = v->dim[k];
        s.stride[s.rank++] = v->stride[k];
    }
    return s;
}

/* Each new axis has to lie within one run of equal steps: from the last axis on, such runs are cut up. */
static bool reshape(dc_view *v, const dc_type *to)
{
    const dc_view s = squeeze(v);
    dc_view r = {.rank = to->rank, .cut = v->cut, .at = v->at};
    int run = s.rank - 1;
    int64_t left = run >= 0 ? s.dim[run] : 1, stride = run >= 0 ? s.stride[run] : 1;
    for (int k = 0; k < to->rank; k++)
        r.dim[k] = to->dim[k];
    if (dc_view_count(v) == 0) {
        set_dense(&r);
        *v = r;
        return true;
    }
    for (int k = to->rank - 1; k >= 0; k--) {
        if (left == 1 && r.dim[k] > 1 && run > 0) {
            left = s.dim[--run];
            stride = s.stride[run];
        }
        if (left % r.dim[k] != 0)
            return false;
        r.stride[k] = stride;
        stride *= r.dim[k];
        left /= r.dim[k];
    }
    *v = r;
    return true;
}

static void slice(dc_view *v, const int64_t *attr, const dc_type *to)
{
    for (int k = 0; k < v->rank; k++) {
        v->at += to->dim[k] > 0 ? attr[k] * v->stride[k] : 0;
        v->stride[k] *= attr[v->rank + k];
        v->cut = v->cut || v->dim[k] != to->dim[k];
        v->dim[k] = to->dim[k];
    }
}

static void flip(dc_view *v, int64_t mask)
{
    for (int k = 0; k < v->rank; k++)
        if (mask >> k & 1 && v->dim[k] > 0) {
            v->at += (v->dim[k] - 1) * v->stride[k];
            v->stride[k] = -v->stride[k];
        }
}

static void permute(dc_view *v, const int64_t *perm)
{
    const dc_view from = *v;
    for (int k = 0; k < v->rank; k++) {
        v->dim[k] = from.dim[perm[k]];
        v->stride[k] = from.stride[perm[k]];
    }
}

static void expand(dc_view *v, const dc_type *to)
{
    for (int k = 0; k < v->rank; k++) {
        if (v->dim[k] == 1 && to->dim[k] != 1)
            v->stride[k] = 0;
        v->dim[k] = to->dim[k];
    }
}

bool dc_view_move(dc_view *v, dc_op op, const int64_t *attr, const dc_type *to)
{
    if (op == DC_OP_RESHAPE)
        return reshape(v, to);
    if (op == DC_OP_PERMUTE)
        permute(v, attr);
    else if (op == DC_OP_EXPAND)
        expand(v, to);
    else if (op == DC_OP_SLICE)
        slice(v, attr, to);
    else if (op == DC_OP_FLIP)
        flip(v, attr[0]);
    else
        return false;
    return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

int64_t dc_view_find(const dc_view *v, int64_t i, int64_t *run)
{
    const dc_view s = squeeze(v);
    int64_t at = s.at;
    *run = 1;
    for (int k = s.rank - 1; k >= 0; k--) {
        const int64_t p = i % s.dim[k];
        if (k == s.rank - 1 && s.stride[k] == 1)
            *run = s.dim[k] - p;
        at += p * s.stride[k];
        i /= s.dim[k];
    }
    return at;
}

#define COPY(type)                                 \
    do {                                           \
        const type *from = (const type *)mem + at; \
        for (int64_t i = 0; i < n; i++)            \
            ((type *)to)[i] = from[i * stride];    \
    } while (0)

/* n elements in equal steps. */
static void copy_run(size_t size, const void *mem, int64_t at, int64_t stride, int64_t n, void *to)
{
    if (stride == 1)
        memcpy(to, (const char *)mem + at * (int64_t)size, (size_t)n * size);
    else if (size == 1)
        COPY(uint8_t);
    else if (size == 2)
        COPY(uint16_t);
    else if (size == 4)
        COPY(uint32_t);
    else
        COPY(uint64_t);
}

void dc_view_read(const dc_view *v, size_t size, const void *mem, int64_t first, int64_t n,
                  void *to)
{
    const dc_view s = squeeze(v);
    const int last = s.rank - 1;
    int64_t p[DC_MAX_RANK], at = s.at, i = first;
    if (last < 0 && n > 0)
        copy_run(size, mem, at, 1, 1, to);
    for (int k = last; k >= 0 && n > 0; k--) {
        p[k] = i % s.dim[k];
        at += p[k] * s.stride[k];
        i /= s.dim[k];
    }
    for (char *out = to; last >= 0 && n > 0;) {
        const int64_t run = s.dim[last] - p[last] < n ? s.dim[last] - p[last] : n;
        copy_run(size, mem, at, s.stride[last], run, out);
        out += (size_t)run * size;
        n -= run;
        at += run * s.stride[last];
        p[last] += run;
        for (int k = last; k > 0 && p[k] == s.dim[k]; k--) { /* carry */
            at += s.stride[k - 1] - s.dim[k] * s.stride[k];
            p[k] = 0;
            p[k - 1]++;
        }
    }
}
