#include "jit/rewrite/split_conv.h"

#include "core/ir/conv.h"
#include "jit/base/tuning.h"

/* A convolution in the function that is being made. */
typedef struct splitting {
    dc_func *to;
    dc_ref in, kernel;
    dc_conv conv;
    int64_t channels, columns; /* of the input, which are added up; of the result */
    int64_t rows, terms;       /* of the result, all others; of a sum */
    dc_ref sum;                /* so far; 0: nothing */
} splitting;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Parts that give each multiprocessor some tiles. */
static int64_t wanted(const splitting *x)
{
    const int64_t tiles = ceil_div(x->rows, DC_TUNE_SPLIT_TILE_ROWS) *
                          ceil_div(x->columns, DC_TUNE_SPLIT_TILE_COLUMNS);
    return dc_min_i64(DC_TUNE_SPLIT_TILES / tiles, x->terms / DC_TUNE_SPLIT_TILE_TERMS);
}

/*
 * Equal parts of the channels, about as many as wanted. What is left over is a convolution of its own, which should not
 * take longer than a part's share of the multiprocessors allows.
 */
static int64_t parts_of(int64_t channels, int64_t want)
{
    const int64_t most = dc_min_i64(2 * want, channels);
    int64_t best = dc_min_i64(want, channels), least = INT64_MAX;
    for (int64_t p = (want + 1) / 2; p <= most; p++) {
        const int64_t each = channels / p, rest = channels % p;
        const int64_t far = p < want ? want - p : p - want;
        const int64_t cost =
            2 * far + (rest > 0 ? want : 0) + (rest * 4 > each ? channels * rest : 0);
        if (cost > least)
            continue;
        least = cost;
        best = p;
    }
    return best;
}

static dc_ref cut(dc_func *to, dc_ref r, int64_t axis, int64_t from, int64_t count)
{
    const dc_node n = *dc_node_at(to, r);
    int64_t start[DC_CONV_AXES] = {0}, step[DC_CONV_AXES], dim[DC_CONV_AXES];
    if (count == n.dim[axis])
        return r;
    for (int i = 0; i < n.rank; i++) {
        step[i] = 1;
        dim[i] = n.dim[i];
    }
    start[axis] = from;
    dim[axis] = count;
    return dc_graph_slice(to, r, start, step, dim);
}

/* Channels of the result for each part of those of the input: [.., parts * each, .., columns] to [.., each, .., parts * columns]. */
static dc_ref kernel_of_parts(const splitting *x, dc_ref kernel, int64_t parts)
{
    const dc_node n = *dc_node_at(x->to, kernel);
    const int in = (int)x->conv.kernel[1], out = (int)x->conv.kernel[0];
    int64_t apart[DC_CONV_AXES + 1], perm[DC_CONV_AXES + 1], joined[DC_CONV_AXES];
    int rank = 0, at = 0;
    for (int i = 0; i < n.rank; i++) {
        if (i == in)
            apart[rank++] = parts;
        apart[rank++] = i == in ? n.dim[i] / parts : n.dim[i];
        joined[i] = i == in ? n.dim[i] / parts : i == out ? n.dim[i] * parts : n.dim[i];
    }
    for (int i = 0; i < n.rank; i++) {
        if (i == out)
            perm[at++] = in;
        perm[at++] = i + (i >= in);
    }
    const dc_ref split = dc_graph_reshape(x->to, kernel, rank, apart);
    return dc_graph_reshape(x->to, dc_graph_permute(x->to, split, perm), n.rank, joined);
}

/* The sum over the parts of axis `out` of the result, which has them outside of the columns. */
static dc_ref sum_of_parts(const splitting *x, dc_ref result, int64_t parts)
{
    const dc_node n = *dc_node_at(x->to, result);
    const int out = (int)x->conv.out[1];
    int64_t dim[DC_CONV_AXES + 1];
    int rank = 0;
    for (int i = 0; i < n.rank; i++) {
        if (i == out)
            dim[rank++] = parts;
        dim[rank++] = i == out ? x->columns : n.dim[i];
    }
    return dc_graph_reduce(x->to, DC_OP_SUM, dc_graph_reshape(x->to, result, rank, dim), 1u << out);
}

static void add(splitting *x, dc_ref part)
{
    x->sum = x->sum == 0 ? part : dc_graph_op2(x->to, DC_OP_ADD, x->sum, part);
}

/* Channels from `from` on, in so many parts of `each`. */
static void add_channels(splitting *x, dc_ref kernel, dc_conv c, int64_t from, int64_t parts,
                         int64_t each)
{
    const dc_ref in = cut(x->to, x->in, c.in[1], from, parts * each);
    kernel = cut(x->to, kernel, c.kernel[1], from, parts * each);
    c.groups = parts;
    if (parts > 1)
        kernel = kernel_of_parts(x, kernel, parts);
    const dc_ref all = dc_graph_conv(x->to, in, kernel, &c);
    add(x, parts > 1 ? sum_of_parts(x, all, parts) : all);
}

/* Taps from `first` to `end` of dim i of the window. */
static void add_taps(splitting *x, int i, int64_t first, int64_t end, int64_t parts)
{
    dc_conv c = x->conv;
    dc_conv_dim *d = &c.dim[i];
    const int64_t all = dc_node_at(x->to, x->kernel)->dim[c.kernel[2 + i]];
    const dc_ref kernel = cut(x->to, x->kernel, c.kernel[2 + i], first, end - first);
    const int64_t each = x->channels / parts, left = all - end;
    d->lo -= first * d->dilate;
    d->hi -= left * d->dilate;
    add_channels(x, kernel, c, 0, parts, each);
    if (parts * each < x->channels)
        add_channels(x, kernel, c, parts * each, 1, x->channels - parts * each);
}

/* The dim of the window that has most taps and may be cut. */
static int longest_dim(const splitting *x)
{
    const dc_node *k = dc_node_at(x->to, x->kernel);
    int best = 0;
    for (int i = 1; i < x->conv.n; i++)
        if (k->dim[x->conv.kernel[2 + i]] > k->dim[x->conv.kernel[2 + best]])
            best = i;
    return best;
}

/* Few channels make few parts: then taps are divided, too, each part of them a convolution. */
static int64_t parts_of_taps(const splitting *x, int dim, int64_t want, int64_t parts)
{
    const dc_conv_dim *d = &x->conv.dim[dim];
    const int64_t taps = dc_node_at(x->to, x->kernel)->dim[x->conv.kernel[2 + dim]];
    if (d->reversed || d->dilate_in > 1)
        return 1;
    return dc_max_i64(dc_min_i64(dc_min_i64(want / parts, taps / 2), DC_TUNE_SPLIT_KERNELS), 1);
}

static bool read_conv(splitting *x, const dc_func *f, const dc_node *n, const dc_ref *in)
{
    x->conv = dc_conv_of(n);
    const dc_node *k = dc_node_at(f, n->in[1]);
    if (dc_node_count(n) == 0 || dc_node_count(k) == 0)
        return false;
    x->channels = k->dim[x->conv.kernel[1]];
    x->columns = n->dim[x->conv.out[1]];
    x->rows = dc_node_count(n) / x->columns;
    x->terms = dc_node_count(k) / x->columns;
    x->in = in[0];
    x->kernel = in[1];
    return dc_dtype_is_float((dc_dtype)n->dtype);
}

/* In groups already, as the gradient of a kernel for each channel is: a convolution for each part of what is added up. */
static void split_grouped(splitting *x)
{
    if (x->conv.groups > 1 || x->rows * x->columns > DC_TUNE_SPLIT_RESULTS)
        return;
    const int64_t parts = dc_min_i64(dc_min_i64(x->channels, DC_TUNE_SPLIT_KERNELS),
                                     x->terms / DC_TUNE_SPLIT_GROUP_SUMS);
    for (int64_t i = 0; i < parts && parts > 1; i++) {
        const int64_t from = i * x->channels / parts, end = (i + 1) * x->channels / parts;
        add_channels(x, x->kernel, x->conv, from, 1, end - from);
    }
}

static void split(splitting *x)
{
    const int64_t want = wanted(x);
    if (want < 2 || x->rows < DC_TUNE_GROUP_ROWS)
        return;
    const int64_t parts = parts_of(x->channels, want);
    const int dim = longest_dim(x);
    const int64_t cuts = parts_of_taps(x, dim, want, parts);
    const int64_t taps = dc_node_at(x->to, x->kernel)->dim[x->conv.kernel[2 + dim]];
    for (int64_t i = 0; i < cuts && parts * cuts > 1; i++)
        add_taps(x, dim, i * taps / cuts, (i + 1) * taps / cuts, parts);
}

dc_ref dc_split_conv(dc_func *to, const dc_func *f, dc_ref r, const dc_ref *in)
{
    const dc_node *n = dc_node_at(f, r);
    splitting x = {.to = to};
    if (n->op != DC_OP_CONV || !read_conv(&x, f, n, in))
        return 0;
    if (dc_dtype_is_short((dc_dtype)n->dtype)) {
        x.in = dc_graph_cast(to, x.in, DC_F32);
        x.kernel = dc_graph_cast(to, x.kernel, DC_F32);
    }
    if (x.conv.groups > 1 || x.conv.batch_groups > 1)
        split_grouped(&x);
    else
        split(&x);
    if (x.sum == 0)
        return 0;
    const dc_ref sum = dc_graph_cast(to, x.sum, (dc_dtype)n->dtype);
    dc_func_copy_origin(to, sum, f, r);
    return sum;
}
