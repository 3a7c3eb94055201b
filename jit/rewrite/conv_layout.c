#include "jit/rewrite/conv_layout.h"

#include "core/autodiff/custom.h"
#include "core/ir/conv.h"
#include "jit/base/tuning.h"

#include <string.h>

/*
 * By node of the old function: the new one of the same shape, and the one whose axis 1 is the last;
 * 0 where it has not been made. `images`: it was made with channels last.
 */
typedef struct turning {
    const dc_func *f;
    dc_func *to;
    dc_ref *plain, *last;
    bool *images;
    bool matrices; /* 16-bit floats are multiplied by matrix instructions */
} turning;

static const dc_node *at(const turning *w, dc_ref r)
{
    return dc_node_at(w->f, r);
}

/* ---- axes: 0, 1, 2, 3 of a plain tensor are 0, 3, 1, 2 of one with channels last ---- */

static int last_axis(int rank, int axis)
{
    return axis == 1 ? rank - 1 : axis > 1 ? axis - 1 : axis;
}

/* Numbers by axis, in the order of the other form. */
static void turn(int rank, const int64_t *plain, int64_t *last)
{
    for (int i = 0; i < rank; i++)
        last[last_axis(rank, i)] = plain[i];
}

static uint32_t turn_mask(int rank, uint32_t plain)
{
    uint32_t last = 0;
    for (int i = 0; i < rank; i++)
        last |= (plain >> i & 1) << last_axis(rank, i);
    return last;
}

/* Of a permute it is one of what that reads. */
static dc_ref permute(turning *w, dc_ref r, const int64_t *perm)
{
    const dc_node *n = dc_node_at(w->to, r);
    int64_t both[DC_MAX_RANK];
    if (n->op != DC_OP_PERMUTE)
        return dc_graph_permute(w->to, r, perm);
    for (int i = 0; i < n->rank; i++)
        both[i] = n->attr[perm[i]];
    return dc_graph_permute(w->to, n->in[0], both);
}

static dc_ref plain_of(turning *w, dc_ref r)
{
    const int rank = at(w, r)->rank;
    int64_t back[DC_MAX_RANK];
    for (int i = 0; i < rank; i++)
        back[i] = last_axis(rank, i);
    if (w->plain[r] != 0)
        return w->plain[r];
    w->plain[r] = permute(w, w->last[r], back);
    const dc_node *n = at(w, r);
    if (n->op == DC_OP_SET_SIZE)
        w->plain[r] =
            dc_graph_make(w->to, DC_OP_SET_SIZE, (dc_ref[]){w->plain[r], plain_of(w, n->in[1])}, 2,
                          n->attr, 1, NULL);
    return w->plain[r];
}

/* The type of r with channels last. */
static dc_type last_type(const turning *w, dc_ref r)
{
    const dc_node *n = at(w, r);
    int64_t dim[DC_MAX_RANK];
    turn(n->rank, n->dim, dim);
    return dc_type_make((dc_dtype)n->dtype, n->rank, dim);
}

/* Is it where(i < e, x, constant), by a number e that is a parameter? (core/transform/bounded.h) */
static bool is_size_mask(const turning *w, const dc_node *n)
{
    if (n->op != DC_OP_WHERE || at(w, n->in[2])->op != DC_OP_CONST)
        return false;
    const dc_node *test = at(w, n->in[0]);
    return test->op == DC_OP_LT && at(w, test->in[0])->op == DC_OP_IOTA &&
           dc_number_param(w->f, test->in[1]) != 0;
}

static dc_ref last_of(turning *w, dc_ref r);

/*
 * What has no layout of its own, or is no more than elements of another value: it is made with channels last rather
 * than turned, so that zeros behind a size stay what fusion knows (jit/fuse/needs.h). 0: it is something else.
 */
static dc_ref made_last(turning *w, dc_ref r)
{
    const dc_node *n = at(w, r);
    const dc_type want = last_type(w, r);
    dc_ref in[3];
    if (n->op == DC_OP_CONST)
        return dc_graph_make(w->to, DC_OP_CONST, NULL, 0, n->attr, 1, &want);
    if (n->op == DC_OP_SET_SIZE) {
        const int64_t axis = last_axis(n->rank, (int)n->attr[0]);
        in[0] = last_of(w, n->in[0]);
        in[1] = plain_of(w, n->in[1]);
        return dc_graph_make(w->to, DC_OP_SET_SIZE, in, 2, &axis, 1, NULL);
    }
    if (!is_size_mask(w, n))
        return 0;
    for (int i = 0; i < 3; i++)
        in[i] = last_of(w, n->in[i]);
    return dc_graph_make(w->to, DC_OP_WHERE, in, 3, NULL, 0, &want);
}

static dc_ref last_of(turning *w, dc_ref r)
{
    const int rank = at(w, r)->rank;
    int64_t perm[DC_MAX_RANK];
    if (w->last[r] == 0 && rank >= 3)
        w->last[r] = made_last(w, r);
    for (int i = 0; i < rank; i++)
        perm[last_axis(rank, i)] = i;
    if (w->last[r] == 0)
        w->last[r] = rank < 3 ? w->plain[r] : permute(w, w->plain[r], perm);
    return w->last[r];
}

static void set_last(turning *w, dc_ref r, dc_ref made)
{
    w->last[r] = made;
    w->images[r] = true;
}

/* ---- convolutions ---- */

/* Channels of the result are the last axis of the kernel, those of the input the one before. */
static dc_ref turn_kernel(turning *w, dc_ref kernel, dc_conv *c)
{
    int64_t perm[DC_CONV_AXES];
    for (int i = 0; i < c->n; i++) {
        perm[i] = c->kernel[2 + i];
        c->kernel[2 + i] = i;
    }
    perm[c->n] = c->kernel[1];
    perm[c->n + 1] = c->kernel[0];
    c->kernel[1] = c->n;
    c->kernel[0] = c->n + 1;
    return permute(w, plain_of(w, kernel), perm);
}

/* Of such a kernel: channels of the result go to the first axis, so that those of the input are the last one. */
static dc_ref turn_terms(turning *w, dc_ref kernel, dc_conv *c)
{
    const int rank = c->n + 2;
    int64_t perm[DC_CONV_AXES];
    for (int i = 0; i < rank; i++) {
        perm[i] = (i + rank - 1) % rank;
        c->kernel[i] = (c->kernel[i] + 1) % rank;
    }
    return permute(w, kernel, perm);
}

static void turn_axes(int rank, int64_t *axes)
{
    for (int i = 0; i < rank; i++)
        axes[i] = last_axis(rank, (int)axes[i]);
}

/* Does it go from images to images? */
static bool is_of_images(const dc_conv *c)
{
    return c->in[0] == 0 && c->in[1] == 1 && c->out[0] == 0 && c->out[1] == 1;
}

/* Is it the gradient of a kernel, which adds up over the batch? */
static bool is_of_kernel(const dc_conv *c)
{
    return c->in[0] == 1 && c->in[1] == 0 && c->kernel[0] == 1 && c->kernel[1] == 0;
}

/* ---- taps that meet nothing but padding ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* The taps of a window of `taps` that meet an element at some position, counted as the window goes: *first, how many. */
static int64_t taps_that_meet(const dc_conv_dim *d, int64_t taps, int64_t input, int64_t positions,
                              int64_t *first)
{
    const int64_t end = dc_min_i64(taps, floor_div(input - 1 + d->lo, d->dilate) + 1);
    *first = dc_max_i64(-floor_div((positions - 1) * d->stride - d->lo, d->dilate), 0);
    return d->dilate_in > 1 ? taps : end - *first;
}

/*
 * A convolution with channels last, by the taps that are needed: on an image that is small beside its window many
 * meet nothing but padding, whatever the position. dim: of the result.
 */
static dc_ref conv_of_taps(turning *w, dc_ref input, dc_ref kernel, const dc_conv *all,
                           const int64_t *dim)
{
    const dc_node x = *dc_node_at(w->to, input), k = *dc_node_at(w->to, kernel);
    int64_t start[DC_CONV_AXES] = {0}, step[DC_CONV_AXES], cut[DC_CONV_AXES];
    dc_conv c = *all;
    for (int i = 0; i < 2 + c.n; i++) {
        cut[i] = k.dim[i];
        step[i] = 1;
    }
    for (int i = 0; i < c.n; i++) {
        dc_conv_dim *d = &c.dim[i];
        const int64_t taps = k.dim[c.kernel[2 + i]], n = x.dim[c.in[2 + i]],
                      positions = dim[c.out[2 + i]];
        int64_t first;
        const int64_t left = taps_that_meet(d, taps, n, positions, &first);
        if (left >= taps || left <= 0 || n == 0 || positions == 0)
            continue;
        start[c.kernel[2 + i]] = d->reversed ? taps - first - left : first;
        cut[c.kernel[2 + i]] = left;
        d->lo -= first * d->dilate;
        d->hi = (positions - 1) * d->stride + (left - 1) * d->dilate + 1 - n - d->lo;
    }
    return dc_graph_conv(w->to, input, dc_graph_slice(w->to, kernel, start, step, cut), &c);
}

/* ---- inputs with holes, as gradients of convolutions with a stride have them ---- */

/*
 * Positions y of one phase, y = dilate_in * y' + phase, meet elements of the input at every dilate_in-th
 * tap; what they see is a convolution without holes, by the part of the kernel with these taps.
 */
typedef struct phase {
    int64_t first, taps; /* of the kernel */
    dc_conv_dim dim;
} phase;

static phase phase_of(const dc_conv_dim *d, int64_t at, int64_t window, int64_t input,
                      int64_t positions)
{
    const int64_t s = d->dilate_in;
    int64_t first = (d->lo - at) % s;
    first += first < 0 ? s : 0;
    phase p = {.first = first, .taps = window > first ? (window - first + s - 1) / s : 0};
    p.dim = (dc_conv_dim){.stride = 1,
                          .lo = (d->lo - at - first) / s,
                          .dilate_in = 1,
                          .dilate = 1,
                          .reversed = d->reversed};
    p.dim.hi = (positions - at + s - 1) / s - 1 + p.taps - input - p.dim.lo;
    if (d->reversed)
        p.first = window - 1 - first - s * (p.taps - 1);
    return p;
}

/* How many phases, where the window moves by single steps; 1 where there are no holes. */
static int64_t phases_of(const dc_conv *c)
{
    int64_t n = 1;
    for (int i = 0; i < c->n; i++) {
        const dc_conv_dim *d = &c->dim[i];
        if (d->dilate_in > DC_TUNE_CONV_PHASES ||
            (d->dilate_in > 1 && (d->stride > 1 || d->dilate > 1)))
            return 1;
        n *= d->dilate_in;
    }
    return n <= DC_TUNE_CONV_PHASES ? n : 1;
}

/* Phase `which` of a convolution with channels last; 0 where it is all zeros. Where it stands: lo. */
static dc_ref one_phase(turning *w, dc_ref input, dc_ref kernel, dc_conv c, const int64_t *dim,
                        int64_t which, int64_t *lo)
{
    const dc_node x = *dc_node_at(w->to, input), k = *dc_node_at(w->to, kernel);
    int64_t start[DC_CONV_AXES] = {0}, step[DC_CONV_AXES], cut[DC_CONV_AXES], one[DC_CONV_AXES];
    for (int i = 0; i < 2 + c.n; i++) {
        cut[i] = k.dim[i];
        one[i] = dim[i];
        step[i] = 1;
        lo[i] = 0;
    }
    for (int i = 0; i < c.n; i++) {
        const int64_t s = c.dim[i].dilate_in, at = which % s, ax = c.kernel[2 + i];
        const int64_t positions = dim[c.out[2 + i]];
        if (s == 1)
            continue;
        const phase p = phase_of(&c.dim[i], at, k.dim[ax], x.dim[c.in[2 + i]], positions);
        which /= s;
        if (p.taps == 0 || at >= positions)
            return 0;
        lo[c.out[2 + i]] = at;
        start[ax] = p.first;
        step[ax] = s;
        cut[ax] = p.taps;
        one[c.out[2 + i]] = (positions - at + s - 1) / s;
        c.dim[i] = p.dim;
    }
    return conv_of_taps(w, input, dc_graph_slice(w->to, kernel, start, step, cut), &c, one);
}

/* The same convolution; phases one by one where the input has holes. dim: of the result. */
static dc_ref make_conv(turning *w, dc_ref input, dc_ref kernel, const dc_conv *c,
                        const dc_type *type)
{
    const int64_t phases = phases_of(c);
    int64_t lo[DC_CONV_AXES], step[DC_CONV_AXES];
    dc_ref sum = 0;
    if (phases == 1)
        return conv_of_taps(w, input, kernel, c, type->dim);
    for (int i = 0; i < 2 + c->n; i++)
        step[i] = 1;
    for (int i = 0; i < c->n; i++)
        step[c->out[2 + i]] = c->dim[i].dilate_in;
    for (int64_t p = 0; p < phases; p++) {
        const dc_ref part = one_phase(w, input, kernel, *c, type->dim, p, lo);
        if (part == 0)
            continue;
        const dc_ref there = dc_graph_pad(w->to, part, lo, step, type->dim, 0);
        sum = sum == 0 ? there : dc_graph_op2(w->to, DC_OP_ADD, sum, there);
    }
    return sum != 0 ? sum : dc_graph_const(w->to, type, 0);
}

/* ---- channels of matrix instructions ---- */

/*
 * So many channels for c of 16-bit floats, the last axis of images: whole vectors of 8 bytes, or of 16 where that takes few
 * more. Copies of these to shared memory are not waited for.
 */
static int64_t channels_of_vectors(int64_t c)
{
    const int64_t half = (c + 3) / 4 * 4, whole = (c + 7) / 8 * 8;
    if (half == c || (half - c) * DC_TUNE_CONV_ADDED > c)
        return c;
    return (whole - half) * DC_TUNE_CONV_ADDED_MORE <= c ? whole : half;
}

static dc_ref pad_axis(turning *w, dc_ref r, int axis, int64_t to)
{
    const dc_node n = *dc_node_at(w->to, r);
    int64_t lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK], dim[DC_MAX_RANK];
    if (n.dim[axis] == to)
        return r;
    for (int i = 0; i < n.rank; i++) {
        step[i] = 1;
        dim[i] = i == axis ? to : n.dim[i];
    }
    return dc_graph_pad(w->to, r, lo, step, dim, 0);
}

/* Do whole vectors pay for these images? Where windows see each element several times. */
static bool takes_vectors(const turning *w, dc_ref images, const dc_conv *c, int64_t taps,
                          double products)
{
    const dc_node *x = dc_node_at(w->to, images);
    return w->matrices && dc_dtype_is_half((dc_dtype)x->dtype) && c->groups == 1 &&
           c->batch_groups == 1 && taps >= DC_TUNE_CONV_ADDED_TAPS &&
           products >= DC_TUNE_CONV_ADDED_WORK;
}

static int64_t product(const int64_t *dim, int n)
{
    int64_t all = 1;
    for (int i = 0; i < n; i++)
        all *= dim[i];
    return all;
}

/* Channels of zeros, which are added up, for convolution r. A kernel whose rows are no whole vectors goes along them. */
static void pad_channels(turning *w, dc_ref *input, dc_ref *kernel, dc_conv *c, dc_ref r)
{
    const dc_node k = *dc_node_at(w->to, *kernel);
    const int64_t in = k.dim[c->kernel[1]], out = k.dim[c->kernel[0]], taps = product(k.dim, c->n);
    const int64_t n = channels_of_vectors(in);
    if (!takes_vectors(w, *input, c, taps, (double)dc_node_count(at(w, r)) * (double)(taps * in)))
        return;
    *input = pad_axis(w, *input, (int)c->in[1], n);
    *kernel = pad_axis(w, *kernel, (int)c->kernel[1], n);
    if (n % 4 == 0 && out % 4 != 0)
        *kernel = turn_terms(w, *kernel, c);
}

/* The gradient r of a kernel, of images x and g; made with more channels where they get some. */
static dc_ref gradient_of_kernel(turning *w, dc_ref x, dc_ref g, const dc_conv *c, dc_ref r)
{
    const dc_node *kernel = at(w, r);
    const dc_conv plain = dc_conv_of(kernel);
    const int last = kernel->rank - 1;
    const int64_t in = kernel->dim[plain.out[0]], out = kernel->dim[plain.out[1]];
    const int64_t results = dc_node_count(kernel), taps = results / dc_max_i64(in * out, 1);
    const int64_t positions = product(dc_node_at(w->to, g)->dim, last);
    if (!takes_vectors(w, x, c, taps, (double)results * (double)positions))
        return dc_graph_conv(w->to, x, g, c);
    const dc_ref made = dc_graph_conv(w->to, pad_axis(w, x, last, channels_of_vectors(in)),
                                      pad_axis(w, g, last, channels_of_vectors(out)), c);
    const dc_node n = *dc_node_at(w->to, made);
    int64_t start[DC_MAX_RANK] = {0}, step[DC_MAX_RANK], dim[DC_MAX_RANK];
    for (int i = 0; i <= last; i++) {
        step[i] = 1;
        dim[i] = i == c->out[0] ? in : i == c->out[1] ? out : n.dim[i];
    }
    return dc_graph_slice(w->to, made, start, step, dim);
}

static bool turn_conv(turning *w, dc_ref r)
{
    const dc_node *n = at(w, r);
    dc_conv c = dc_conv_of(n);
    const int rank = n->rank;
    if (is_of_images(&c)) {
        dc_ref kernel = turn_kernel(w, n->in[1], &c), input = last_of(w, n->in[0]);
        turn_axes(rank, c.in);
        turn_axes(rank, c.out);
        pad_channels(w, &input, &kernel, &c, r);
        const dc_type type = last_type(w, r);
        set_last(w, r, make_conv(w, input, kernel, &c, &type));
        return true;
    }
    if (!is_of_kernel(&c))
        return false;
    int64_t back[DC_CONV_AXES]; /* by axis of the result: where it is made */
    turn_axes(rank, c.in);
    turn_axes(rank, c.kernel);
    for (int i = 0; i < rank; i++) {
        const int made = i < 2 ? c.n + i : i - 2;
        back[c.out[i]] = made;
        c.out[i] = made;
    }
    const dc_ref made = gradient_of_kernel(w, last_of(w, n->in[0]), last_of(w, n->in[1]), &c, r);
    w->plain[r] = dc_graph_permute(w->to, made, back);
    return true;
}

/* ---- what lies between ---- */

static bool any_images(const turning *w, const dc_node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (w->images[n->in[i]])
            return true;
    return false;
}

static void turn_ew(turning *w, dc_ref r)
{
    const dc_node *n = at(w, r);
    const dc_type want = last_type(w, r);
    dc_ref in[4];
    for (int i = 0; i < n->nin; i++)
        in[i] = last_of(w, n->in[i]);
    set_last(w, r, dc_graph_make(w->to, (dc_op)n->op, in, n->nin, NULL, 0, &want));
}

/* Batch and channels may be dropped, both or one: then what is left has no channels to speak of. */
static void turn_reduce(turning *w, dc_ref r)
{
    const dc_node *n = at(w, r), *a = at(w, n->in[0]);
    const uint32_t mask = (uint32_t)n->attr[0];
    const dc_ref made =
        dc_graph_reduce(w->to, (dc_op)n->op, w->last[n->in[0]], turn_mask(a->rank, mask));
    int64_t back[DC_MAX_RANK];
    if ((mask & 3) == 0 && n->rank >= 3) {
        set_last(w, r, made);
        return;
    }
    const bool channels = (mask & 2) == 0; /* they are the last axis of what was made */
    const int first = (mask & 1) == 0;     /* where they belong */
    for (int i = 0; i < n->rank; i++)
        back[i] = !channels || i < first ? i : i == first ? n->rank - 1 : i - 1;
    w->plain[r] = dc_graph_permute(w->to, made, back);
}

static bool turn_move(turning *w, dc_ref r)
{
    const dc_node *n = at(w, r), *a = at(w, n->in[0]);
    const dc_ref in = w->last[n->in[0]];
    const int rank = n->rank;
    int64_t dim[DC_MAX_RANK], start[DC_MAX_RANK], step[DC_MAX_RANK];
    if (rank < 3)
        return false;
    turn(rank, n->dim, dim);
    switch ((int)n->op) {
    case DC_OP_RESHAPE:
        if (n->dim[0] != a->dim[0] || n->dim[1] != a->dim[1])
            return false;
        set_last(w, r, dc_graph_reshape(w->to, in, rank, dim));
        return true;
    case DC_OP_EXPAND:
        set_last(w, r, dc_graph_expand(w->to, in, dim));
        return true;
    case DC_OP_SLICE:
    case DC_OP_PAD:
        turn(rank, n->attr, start);
        turn(rank, n->attr + rank, step);
        set_last(w, r,
                 n->op == DC_OP_SLICE
                     ? dc_graph_slice(w->to, in, start, step, dim)
                     : dc_graph_pad(w->to, in, start, step, dim, (uint64_t)n->attr[2 * rank]));
        return true;
    case DC_OP_FLIP:
        set_last(w, r, dc_graph_flip(w->to, in, turn_mask(rank, (uint32_t)n->attr[0])));
        return true;
    default:
        return false;
    }
}

/* Makes node r with channels last, or in whatever order is best for it; false: no rule for it. */
static bool turn_node(turning *w, dc_ref r)
{
    const dc_node *n = at(w, r);
    switch ((dc_op_class)dc_op_row_of((dc_op)n->op)->cls) {
    case DC_CLASS_CON:
        return n->op == DC_OP_CONV && turn_conv(w, r);
    case DC_CLASS_EW:
        if (n->rank < 3 || !any_images(w, n))
            return false;
        turn_ew(w, r);
        return true;
    case DC_CLASS_RED:
        if (!any_images(w, n))
            return false;
        turn_reduce(w, r);
        return true;
    case DC_CLASS_MOV:
        return any_images(w, n) && turn_move(w, r);
    case DC_CLASS_SAME:
        if (n->op != DC_OP_SET_SIZE || n->rank < 3 || !any_images(w, n))
            return false;
        set_last(w, r, made_last(w, r));
        return true;
    case DC_CLASS_SRC:
    case DC_CLASS_IDX:
    case DC_CLASS_HST:
    case DC_CLASS_COM:
    case DC_CLASS_FFT:
    case DC_CLASS_PART:
    case DC_CLASS_CTL:
        return false;
    }
    return false;
}

static void copy_node(turning *w, dc_ref r)
{
    const dc_node *n = at(w, r);
    dc_ref in[DC_MAX_OPERANDS];
    for (int i = 0; i < n->nin; i++)
        in[i] = plain_of(w, n->in[i]);
    w->plain[r] = dc_graph_again(w->to, w->f, r, in);
}

static bool has_conv(const dc_func *f, const bool *live)
{
    for (dc_ref r = 1; r < f->node.n; r++)
        if (live[r] && dc_node_at(f, r)->op == DC_OP_CONV)
            return true;
    return false;
}

const dc_func *dc_conv_layout(dc_arena *scratch, const dc_func *f, const dc_target *groups)
{
    const bool *live = dc_func_live(f, scratch);
    if (!has_conv(f, live))
        return f;
    turning w = {.f = f, .to = dc_func_new(f->module, f->name)};
    w.matrices = groups != NULL && groups->sm >= 80;
    w.plain = DC_NEW_ARRAY(scratch, dc_ref, f->node.n);
    w.last = DC_NEW_ARRAY(scratch, dc_ref, f->node.n);
    w.images = DC_NEW_ARRAY(scratch, bool, f->node.n);
    dc_graph_params(w.to, f, w.plain);
    for (dc_ref r = 1; r < f->node.n; r++) {
        if (!live[r] || w.plain[r] != 0)
            continue;
        if (turn_node(&w, r))
            dc_func_copy_origin(w.to, w.images[r] ? w.last[r] : w.plain[r], f, r);
        else
            copy_node(&w, r);
    }
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(w.to->result, plain_of(&w, f->result.at[i]));
    return w.to;
}
