/*
 * Views in lazy expressions: what is movement of a value is read where it stands, or given to a program
 * as a window of memory, so that where it stands is no part of the program.
 *
 * A window is a dense run of elements, from the first of those of the view to the last; the program takes
 * them out of it. Its form depends on sizes and steps, and on whether the view begins at an aligned address.
 */
#include "core/runtime/lazy.h"
#include "core/runtime/outcome.h"

#include <string.h>

enum {
    DEPTH = 64,     /* movements that follow one another; behind more they are computed */
    MOST_RANK = 6,  /* of a window's axes that are not one run */
    FEW_READS = 64, /* of a device's memory, each of little */
    LONG_RUN = 16,
    PARTS = 8,            /* a part that is less than this of a whole is one of many */
    MOST_COPIED = 1 << 20 /* elements */
};

/* ---- of what n is a view --------------------------------------------------------------------- */

static bool moves(const dc_lazy *n)
{
    return n->kind == DC_LAZY_OP && n->value == NULL && n->op != DC_OP_PAD &&
           dc_op_is((dc_op)n->op, DC_CLASS_MOV);
}

/* What movement leads to n, the last first; *base is what is moved, real. DEPTH + 1: too much. */
static int movement(dc_lazy *n, dc_lazy **step, dc_lazy **base)
{
    int depth = 0;
    for (n = dc_lazy_real(n); moves(n) && depth <= DEPTH; n = dc_lazy_real(n->in[0]))
        step[depth++] = n;
    *base = n;
    return depth;
}

/* Views and windows are of the parts of complex numbers. */
static dc_view view_of_value(const dc_type *t)
{
    const dc_type parts = dc_type_parts(t);
    return dc_view_whole(&parts);
}

static bool view_of_leaf(const dc_lazy *n, dc_lazy_view *out)
{
    if (n->value != NULL)
        *out = (dc_lazy_view){n->value, view_of_value(&n->type)};
    else if (n->view != NULL)
        *out = *n->view;
    else
        return false;
    return true;
}

/* From the base upwards, as far as it goes: the step that is no view, or NULL. */
static dc_lazy *follow(dc_lazy *const *step, int depth, dc_lazy_view *v)
{
    while (depth-- > 0) {
        const dc_type to = dc_type_parts(&step[depth]->type);
        if (!dc_view_move(&v->at, (dc_op)step[depth]->op, step[depth]->attr, &to))
            return step[depth];
    }
    return NULL;
}

static size_t element_size(const dc_lazy_view *v)
{
    return dc_dtype_size(dc_dtype_part((dc_dtype)v->of->type.dtype));
}

bool dc_lazy_view_of(dc_lazy *n, dc_lazy_view *out)
{
    dc_lazy *step[DEPTH + 1], *base;
    dc_lazy_view v;
    const int depth = movement(n, step, &base);
    if (depth > DEPTH || !view_of_leaf(base, &v) || follow(step, depth, &v) != NULL)
        return false;
    *out = v;
    return true;
}

dc_lazy *dc_lazy_beneath(dc_lazy *n)
{
    dc_lazy *step[DEPTH + 1], *base;
    dc_lazy_view v;
    const int depth = movement(n, step, &base);
    if (depth == 0 || depth > DEPTH)
        return NULL;
    if (!view_of_leaf(base, &v))
        return base;
    dc_lazy *stuck = follow(step, depth, &v);
    return stuck != step[0] ? stuck : NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

bool dc_lazy_is_far(const dc_rt *rt, const dc_lazy_view *v)
{
    const int64_t n = dc_view_count(&v->at);
    int64_t run;
    DC_UNUSED(rt);
    if (v->of->store->rt->device->ops->host || n <= FEW_READS)
        return false;
    dc_view_find(&v->at, 0, &run);
    return run < LONG_RUN || n / run > FEW_READS;
}

dc_status dc_lazy_read_view(dc_rt *rt, dc_job *j, const dc_lazy_view *v, int64_t first, int64_t n,
                            void *to)
{
    dc_device *dev = v->of->store->rt->device;
    const char *mem = dc_tensor_mem(v->of);
    const int64_t size = (int64_t)element_size(v);
    DC_UNUSED(rt);
    DC_TRY(dc_outcome_settle(v->of->store, j));
    if (dev->ops->host) {
        const int64_t most = (int64_t)DC_PIECE_BYTES / size;
        for (int64_t at = 0; at < n; at += most) {
            DC_TRY(at > 0 ? dc_job_ended(j) : DC_OK);
            dc_view_read(&v->at, (size_t)size, mem, first + at, dc_min_i64(n - at, most),
                         (char *)to + at * size);
        }
        return DC_OK;
    }
    for (char *out = to; n > 0;) {
        int64_t run;
        const int64_t at = dc_view_find(&v->at, first, &run);
        run = run < n ? run : n;
        DC_TRY(dev->ops->download(dev, j, out, mem + at * size, (size_t)(run * size)));
        out += run * size;
        first += run;
        n -= run;
    }
    return DC_OK;
}

/* ---- windows --------------------------------------------------------------------------------- */

typedef struct window {
    int64_t first, span; /* elements of the memory: the first, and how many up to the last */
    uint32_t flip, expand;
    int n, axis[DC_MAX_RANK]; /* axes that move, the widest steps first */
    int nrun;                 /* the same, joined where they are one run */
    int64_t dim[DC_MAX_RANK], stride[DC_MAX_RANK];
} window;

static int64_t stride_of(const dc_view *v, int axis)
{
    return v->stride[axis] < 0 ? -v->stride[axis] : v->stride[axis];
}

static void add_axis(window *w, const dc_view *v, int axis)
{
    int i = w->n++;
    for (; i > 0 && stride_of(v, w->axis[i - 1]) < stride_of(v, axis); i--)
        w->axis[i] = w->axis[i - 1];
    w->axis[i] = axis;
}

static void join_axes(window *w, const dc_view *v)
{
    for (int i = 0; i < w->n; i++) {
        const int64_t dim = v->dim[w->axis[i]], stride = stride_of(v, w->axis[i]);
        if (w->nrun > 0 && w->stride[w->nrun - 1] == dim * stride) {
            w->dim[w->nrun - 1] *= dim;
            w->stride[w->nrun - 1] = stride;
            continue;
        }
        w->dim[w->nrun] = dim;
        w->stride[w->nrun++] = stride;
    }
}

/* False: there is none, since elements are met twice or axes are too many. */
static bool find_window(const dc_view *v, window *w)
{
    *w = (window){.first = v->at, .span = 1};
    for (int k = 0; k < v->rank; k++) {
        if (v->dim[k] == 1)
            continue;
        if (v->dim[k] == 0)
            return false;
        if (v->stride[k] == 0) {
            w->expand |= 1u << k;
            continue;
        }
        if (v->stride[k] < 0) {
            w->flip |= 1u << k;
            w->first += (v->dim[k] - 1) * v->stride[k];
        }
        add_axis(w, v, k);
    }
    join_axes(w, v);
    for (int i = w->nrun; i-- > 0;) {
        if (w->span > w->stride[i])
            return false;
        w->span += (w->dim[i] - 1) * w->stride[i];
    }
    return w->nrun <= MOST_RANK;
}

static bool is_aligned(const dc_lazy_view *v, const window *w)
{
    return (v->of->offset + (size_t)w->first * element_size(v)) % DC_ALIGN == 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* So little of what it is a part of that it should not keep all that alive. */
static bool is_crumb(const dc_lazy_view *v)
{
    const int64_t n = dc_view_count(&v->at);
    return n <= DC_LAZY_SMALL && (size_t)n * element_size(v) <= dc_type_bytes(&v->of->type) / 8;
}

static dc_status copy_view(dc_rt *rt, dc_job *j, const dc_type *type, const dc_lazy_view *v,
                           dc_tensor **out)
{
    const int64_t n = dc_view_count(&v->at);
    const char *mem = dc_tensor_mem(v->of);
    dc_tensor *t;
    DC_TRY(dc_tensor_new(rt, j, type, &t));
    dc_tensor_defer(j, t);
    if (rt->device->ops->host)
        dc_view_read(&v->at, element_size(v), mem, 0, n, dc_tensor_mem(t));
    else
        DC_TRY(dc_storage_fill(t->store, j, mem + v->at.at * (int64_t)element_size(v),
                               dc_type_bytes(type)));
    dc_job_keep(j, t);
    *out = t;
    return DC_OK;
}

/* Worth a copy: a program would be made for its form, or for where it begins. */
static bool is_copied(const dc_rt *rt, const dc_lazy_view *v, dc_lazy_copies copies)
{
    const int64_t n = dc_view_count(&v->at);
    const bool host = rt->device->ops->host;
    window w;
    if (n <= DC_LAZY_SMALL)
        return host || dc_view_is_dense(&v->at);
    if (copies != DC_LAZY_COPY_PART)
        return host && copies == DC_LAZY_COPY_ALL;
    return host && v->at.cut && n <= MOST_COPIED && find_window(&v->at, &w) && !is_aligned(v, &w);
}

dc_status dc_lazy_load(dc_rt *rt, dc_job *j, dc_lazy *n, const dc_lazy_view *v,
                       dc_lazy_copies copies)
{
    const size_t at = (size_t)v->at.at * element_size(v);
    if (n->value != NULL)
        return DC_OK;
    if (dc_view_is_dense(&v->at) && (v->of->offset + at) % DC_ALIGN == 0 && !is_crumb(v))
        n->value = dc_tensor_part(v->of, &n->type, at);
    else if (is_copied(rt, v, copies))
        DC_TRY(copy_view(rt, j, &n->type, v, &n->value));
    return DC_OK;
}

dc_status dc_lazy_settle(dc_rt *rt, dc_job *j, dc_lazy *n)
{
    dc_lazy_view v;
    if (n->param || n->kind == DC_LAZY_LEAF || !dc_lazy_view_of(n, &v))
        return DC_OK;
    if (is_crumb(&v))
        DC_TRY(dc_lazy_load(rt, j, n, &v, DC_LAZY_COPY_LITTLE));
    dc_lazy_drop(n);
    return DC_OK;
}

/* ---- windows in programs ---------------------------------------------------------------------- */

bool dc_lazy_has_window(const dc_lazy_view *v)
{
    window w;
    return find_window(&v->at, &w);
}

bool dc_lazy_window_aligned(const dc_lazy_view *v)
{
    window w;
    return find_window(&v->at, &w) && is_aligned(v, &w);
}

int dc_lazy_window_words(const dc_lazy_view *v, uint64_t *word)
{
    window w;
    int n = 0;
    find_window(&v->at, &w);
    word[n++] = is_aligned(v, &w);
    for (int k = 0; k < v->at.rank; k++)
        word[n++] = (uint64_t)(v->at.dim[k] > 1 ? v->at.stride[k] : 0);
    return n;
}

dc_tensor *dc_lazy_window_tensor(const dc_lazy_view *v)
{
    window w;
    find_window(&v->at, &w);
    const dc_type type = dc_type_make(dc_dtype_part((dc_dtype)v->of->type.dtype), 1, &w.span);
    return dc_tensor_window(v->of, &type, (size_t)w.first * element_size(v));
}

/* The first n elements of the last axis of r, whose other dims are dim[]; or more, of no meaning. */
static dc_ref with_last(dc_func *f, dc_ref r, int rank, int64_t *dim, int64_t n)
{
    int64_t zero[DC_MAX_RANK] = {0}, one[DC_MAX_RANK];
    const int64_t had = dim[rank - 1];
    for (int k = 0; k < rank; k++)
        one[k] = 1;
    dim[rank - 1] = n;
    if (n == had)
        return r;
    return n < had ? dc_graph_slice(f, r, zero, one, dim) : dc_graph_pad(f, r, zero, one, dim, 0);
}

/* Axis by axis: rows of the widest step, of each as much as the next steps reach, and so on. */
static dc_ref cut_runs(dc_func *f, dc_ref r, const window *w)
{
    int64_t dim[DC_MAX_RANK] = {w->span}, span = w->span;
    for (int i = 0; i < w->nrun && w->stride[i] > 1; i++) {
        r = with_last(f, r, i + 1, dim, w->dim[i] * w->stride[i]);
        dim[i] = w->dim[i];
        dim[i + 1] = w->stride[i];
        r = dc_graph_reshape(f, r, i + 2, dim);
        span -= (w->dim[i] - 1) * w->stride[i];
        r = with_last(f, r, i + 2, dim, span);
    }
    return r;
}

dc_ref dc_lazy_window_write(dc_func *f, const dc_lazy_view *v)
{
    window w;
    find_window(&v->at, &w);
    const dc_type type = dc_type_make(dc_dtype_part((dc_dtype)v->of->type.dtype), 1, &w.span);
    int64_t dim[DC_MAX_RANK], perm[DC_MAX_RANK], rank = 0;
    dc_ref r = dc_graph_param(f, &type, NULL);
    r = cut_runs(f, r, &w);
    for (int i = 0; i < w.n; i++)
        dim[i] = v->at.dim[w.axis[i]];
    r = dc_graph_reshape(f, r, w.n, dim);
    for (int k = 0; k < v->at.rank; k++)
        for (int i = 0; i < w.n; i++)
            if (w.axis[i] == k)
                perm[rank++] = i;
    r = dc_graph_permute(f, r, perm);
    for (int k = 0; k < v->at.rank; k++)
        dim[k] = w.expand >> k & 1 ? 1 : v->at.dim[k];
    r = dc_graph_reshape(f, r, v->at.rank, dim);
    if (w.flip != 0)
        r = dc_graph_flip(f, r, w.flip);
    return w.expand != 0 ? dc_graph_expand(f, r, v->at.dim) : r;
}

/* ---- parts of what is pending ---------------------------------------------------------------- */

/* By number: is more than element-wise work pending below it? */
static bool *find_heavy(const dc_lazy_walk *t)
{
    bool *heavy = DC_NEW_ARRAY(&t->j->scratch, bool, t->order.n + 1);
    for (uint32_t i = 0; i < t->order.n; i++) {
        const dc_lazy *n = t->order.at[i];
        if (dc_lazy_walk_leaf(t, n))
            continue;
        const uint8_t cls = dc_op_row_of((dc_op)n->op)->cls;
        bool is = cls == DC_CLASS_CON || cls == DC_CLASS_RED || cls == DC_CLASS_IDX ||
                  cls == DC_CLASS_HST || cls == DC_CLASS_COM || cls == DC_CLASS_FFT;
        for (uint32_t k = 0; k < n->nin && !is; k++)
            is = heavy[dc_lazy_walk_real(t, n->in[k])->number];
        heavy[n->number] = is;
    }
    return heavy;
}

/* By number: how many parts are taken of it? */
static uint32_t *count_taken(const dc_lazy_walk *t)
{
    uint32_t *taken = DC_NEW_ARRAY(&t->j->scratch, uint32_t, t->order.n + 1);
    for (uint32_t i = 0; i < t->order.n; i++) {
        dc_lazy *n = t->order.at[i];
        dc_lazy *whole =
            dc_lazy_walk_pending(t, n) && n->op == DC_OP_SLICE ? dc_lazy_beneath(n) : NULL;
        if (whole != NULL && dc_lazy_walk_pending(t, whole))
            taken[whole->number]++;
    }
    return taken;
}

/*
 * What is pending and has a part taken of it is realized before: where it is one part of many, so that the next
 * one neither computes it again nor is another program. Several large parts of one thing in one expression, such
 * as the gates of a cell or the taps of a pool, stay in one program with it.
 */
void dc_lazy_wholes(const dc_lazy_walk *t, dc_lazy_list *todo)
{
    bool *heavy = NULL;
    uint32_t *taken = NULL;
    for (uint32_t i = t->order.n; i-- > 0;) { /* the deepest last, which is the first to be done */
        dc_lazy *n = t->order.at[i];
        if (dc_lazy_walk_leaf(t, n) || n->op != DC_OP_SLICE)
            continue;
        dc_lazy *whole = dc_lazy_beneath(n);
        if (whole == NULL || !dc_lazy_walk_pending(t, whole))
            continue;
        if (heavy == NULL) {
            heavy = find_heavy(t);
            taken = count_taken(t);
        }
        const bool one_of_many = dc_type_count(&n->type) < dc_type_count(&whole->type) / PARTS;
        if (one_of_many || (heavy[whole->number] && taken[whole->number] == 1))
            DC_PUSH_IN(&t->j->scratch, *todo, whole);
    }
}
