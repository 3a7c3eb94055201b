/*
 * Operands of contractions (jit/fuse/fuse.c). A contraction reads each element many times, so what is
 * computed for an operand is stored first, but for what reading does anyway:
 *
 *   - the left operand is read element by element: casts and movement of what is stored are folded into its
 *     reads, unless jit/rewrite/contraction_layout.c has transposed a large matrix for it;
 *   - the right operand of a dot is read as vectors, or packed: a parameter may be cast and scaled there;
 *   - thread groups copy both operands of a dot alike, so casts and movement are folded into either, and what they are
 *     casts and movement of is stored; but casts to fewer bits are done before a large one, whose matrix instructions
 *     take what is stored;
 *   - operands of a convolution of thread groups are gathered into tiles, whatever moves them.
 */
#include "core/ir/conv.h"
#include "core/ir/dot.h"
#include "jit/fuse/fuse_impl.h"
#include "jit/rewrite/contraction_layout.h"

static bool is_grouped(const dc_node *n)
{
    const dc_conv c = dc_conv_of(n);
    return c.groups > 1 || c.batch_groups > 1; /* gradients of kernels have the latter */
}

/*
 * Does a convolution in groups read r, transposed images with strided channels? It multiplies element by
 * element along the channels and copies no windows.
 */
static bool is_read_apart(const fusing *w, dc_ref user, dc_ref r)
{
    const dc_node *n = fuse_at(w, r);
    return fuse_at(w, user)->op == DC_OP_CONV && is_grouped(fuse_at(w, user)) &&
           n->op == DC_OP_PERMUTE && n->attr[n->rank - 1] != n->rank - 1;
}

/* Do windows of a convolution see elements several times, or leave some out? */
static bool has_windows(const fusing *w, const dc_node *n)
{
    const dc_conv c = dc_conv_of(n);
    bool any = false;
    for (int i = 0; i < c.n; i++)
        any |= c.dim[i].stride > 1 ||
               (fuse_at(w, n->in[1])->dim[c.kernel[2 + i]] > 1 && n->dim[c.out[2 + i]] > 1);
    return any;
}

/*
 * Tiles of a convolution are copied in vectors of channels where these are last. Images of few
 * channels are read in place, and those that are read once, in order.
 */
static uint8_t gathered(const fusing *w, dc_ref u, dc_ref r)
{
    const dc_node *n = fuse_at(w, u), *a = fuse_at(w, r);
    const bool columns =
        n->in[1] == r || is_grouped(n) ||
        (has_windows(w, n) && a->rank > 0 && a->dim[a->rank - 1] >= DC_TUNE_GROUP_ROWS);
    return (uint8_t)(OPERAND_LEFT | OPERAND_OTHER | OPERAND_GATHERED |
                     (columns ? OPERAND_COLUMNS : 0));
}

/* Has a dot so much work that its tiles repay an operand of fewer bits? */
static bool is_large(const fusing *w, const dc_node *n)
{
    const dc_node *a = fuse_at(w, n->in[0]), *b = fuse_at(w, n->in[1]);
    const dc_dot d = dc_dot_of(w->fn, n);
    int64_t terms = 1, rows = 1, columns = 1;
    for (int i = 0; i < d.ncontract; i++)
        terms *= a->dim[d.contract[0][i]];
    for (int i = 0; i < d.nfree[0]; i++)
        rows *= a->dim[d.free[0][i]];
    for (int i = 0; i < d.nfree[1]; i++)
        columns *= b->dim[d.free[1][i]];
    return dc_min_i64(rows, columns) > DC_TUNE_SKINNY_ROWS &&
           (double)dc_node_count(n) * (double)terms >= DC_TUNE_NARROW_WORK;
}

/*
 * Does a convolution that reads r, by whatever name, move windows along this axis? No loop ends at a size there: each of its
 * terms would be tested.
 */
static bool is_windowed(const fusing *w, dc_ref r, int axis)
{
    const fuse_node *x = &w->node[r];
    for (uint32_t i = 0; i < x->nuser; i++) {
        const dc_ref u = w->user[x->first_user + i];
        const dc_node *n = fuse_at(w, u);
        if (fuse_class(w, u) == DC_CLASS_SAME && is_windowed(w, u, axis))
            return true;
        if (n->op != DC_OP_CONV)
            continue;
        const dc_conv c = dc_conv_of(n);
        for (int k = 0; k < c.n; k++)
            if ((n->in[0] == r && c.in[2 + k] == axis) ||
                (n->in[1] == r && c.kernel[2 + k] == axis))
                return true;
    }
    return false;
}

static bool is_masked_windowed(const fusing *w, dc_ref r)
{
    const dc_node *n = fuse_at(w, r);
    for (int i = 0; i < n->rank; i++)
        if (dc_needs_before(&w->needs, n->in[0], i) != 0 && is_windowed(w, r, i))
            return true;
    return false;
}

/*
 * Zeros behind a size, where terms end: loops that end there do not test it (jit/flat/flatten_limit.c). Thread groups copy
 * operands to tiles, and matrix instructions read nothing but memory.
 */
bool dc_fuse_masks_operand(const fusing *w, dc_ref r, uint8_t operand)
{
    return !w->groups && (operand & (OPERAND_LEFT | OPERAND_VECTORS)) != 0 &&
           (operand & OPERAND_GATHERED) == 0 && dc_needs_is_zero_mask(&w->needs, r) &&
           !is_masked_windowed(w, r);
}

uint8_t dc_fuse_operand_of(const fusing *w, dc_ref u, dc_ref r)
{
    const dc_node *n = fuse_at(w, u);
    if (fuse_is_control(w, u) && n->op != DC_OP_PICK)
        return OPERAND_MEMORY | OPERAND_OTHER;
    if (fuse_is_transform(w, u) && n->in[0] != r) /* a table */
        return OPERAND_MEMORY | OPERAND_OTHER;
    if (dc_needs_is_zero_mask(&w->needs, u))
        return n->in[1] == r ? w->node[u].operand | OPERAND_OTHER : OPERAND_OTHER;
    if (fuse_class(w, u) != DC_CLASS_CON)
        return w->node[u].operand | OPERAND_OTHER;
    if (w->groups && n->op == DC_OP_CONV)
        return gathered(w, u, r);
    if (dc_attention_place_of(&w->attention, u) != DC_ATTENTION_NOT) /* element by element */
        return OPERAND_LEFT | OPERAND_OTHER;
    const bool left = n->in[0] == r, tiled = w->groups && n->op == DC_OP_DOT && is_large(w, n);
    return (uint8_t)((tiled ? OPERAND_TILED : 0) | (left ? OPERAND_LEFT : 0) |
                     (left || n->op != DC_OP_DOT ? OPERAND_OTHER : 0) |
                     (n->in[1] == r || is_read_apart(w, u, r) ? OPERAND_VECTORS : 0));
}

/* Is r movement, or a cast to more bits, that a gathering copy does? */
static bool is_gathered(const fusing *w, dc_ref r, uint8_t operand)
{
    const dc_node *n = fuse_at(w, r);
    if (fuse_class(w, r) == DC_CLASS_SRC || fuse_class(w, r) == DC_CLASS_SAME)
        return true;
    if (n->op == DC_OP_CAST)
        return dc_dtype_size((dc_dtype)n->dtype) >=
               dc_dtype_size((dc_dtype)fuse_at(w, n->in[0])->dtype);
    const bool turns = n->op == DC_OP_PERMUTE && n->attr[n->rank - 1] != n->rank - 1;
    return dc_layout_folds(w->fn, r) && !(turns && (operand & OPERAND_COLUMNS) != 0);
}

/* Is r, or what it is made of, only what a left operand folds into its reads over memory? */
static bool is_folded(const fusing *w, dc_ref r)
{
    while (fuse_class(w, r) != DC_CLASS_SRC) {
        if (fuse_class(w, r) != DC_CLASS_SAME && !dc_layout_folds(w->fn, r))
            return false;
        r = fuse_at(w, r)->in[0];
        if (w->node[r].stored || fuse_is_reduction(w, r))
            return true;
    }
    return true;
}

/* A parameter that is one number, or a row of them in a single dim, whatever it is spread over. */
static bool is_spread_row(const fusing *w, dc_ref r)
{
    const int64_t most = dc_node_count(fuse_at(w, r)) / DC_TUNE_SCALE_SHARE;
    while (fuse_at(w, r)->op == DC_OP_EXPAND || fuse_at(w, r)->op == DC_OP_RESHAPE ||
           fuse_at(w, r)->op == DC_OP_PERMUTE || fuse_at(w, r)->op == DC_OP_CAST)
        r = fuse_at(w, r)->in[0];
    const dc_node *n = fuse_at(w, r);
    int dims = 0;
    for (int i = 0; i < n->rank; i++)
        dims += n->dim[i] != 1;
    return fuse_class(w, r) == DC_CLASS_SRC && dims <= 1 && dc_node_count(n) <= most;
}

/*
 * May the right operand of a dot be made of a parameter where it is read, or packed? By casts, and scaled
 * by rows of numbers: less than what memory takes. A part of either is stored by itself. Other dims of the same memory,
 * of a parameter, of one that was changed at some places or of what a loop has stored, are as good as it.
 */
static bool is_made_at_once(const fusing *w, dc_ref r)
{
    for (int steps = 0; steps < DC_TUNE_OPERAND_STEPS; steps++) {
        const dc_node *n = fuse_at(w, r);
        if (n->op == DC_OP_PARAM || n->op == DC_OP_PICK ||
            (fuse_class(w, r) == DC_CLASS_IDX && n->op != DC_OP_GATHER))
            return steps > 0;
        if (n->op == DC_OP_MUL && is_spread_row(w, n->in[0]))
            r = n->in[1];
        else if (n->op == DC_OP_MUL && is_spread_row(w, n->in[1]))
            r = n->in[0];
        else if (n->op == DC_OP_CAST || n->op == DC_OP_PERMUTE || n->op == DC_OP_RESHAPE ||
                 fuse_class(w, r) == DC_CLASS_SAME)
            r = n->in[0];
        else
            return false;
    }
    return false;
}

static bool is_narrowing(const fusing *w, dc_ref r)
{
    const dc_node *n = fuse_at(w, r);
    return n->op == DC_OP_CAST &&
           dc_dtype_size((dc_dtype)n->dtype) < dc_dtype_size((dc_dtype)fuse_at(w, n->in[0])->dtype);
}

/*
 * Is r the same memory under other dims, read by dots alone? What has these elements is stored then, once for all that
 * read it, whatever dims they see.
 */
static bool is_renamed(const fusing *w, dc_ref r)
{
    const fuse_node *x = &w->node[r];
    if (fuse_at(w, r)->op != DC_OP_RESHAPE || w->is_result[r])
        return false;
    for (uint32_t i = 0; i < x->nuser; i++)
        if (fuse_at(w, w->user[x->first_user + i])->op != DC_OP_DOT)
            return false;
    return true;
}

bool dc_fuse_folds_operand(const fusing *w, dc_ref r, uint8_t operand)
{
    if (!w->groups && (operand & (OPERAND_LEFT | OPERAND_VECTORS)) != 0 && is_renamed(w, r))
        return true;
    if (!w->groups || (operand & (OPERAND_LEFT | OPERAND_VECTORS)) == 0 ||
        (operand & OPERAND_GATHERED) != 0 || !dc_layout_folds(w->fn, r) ||
        dc_layout_is_transposed(w->fn, r))
        return false;
    const dc_node *n = fuse_at(w, r);
    if (is_folded(w, r))
        return !is_narrowing(w, r) || (operand & OPERAND_TILED) == 0;
    return !is_narrowing(w, r) &&
           dc_node_count(fuse_at(w, n->in[0])) <= DC_TUNE_FOLDED_SHARE * dc_node_count(n);
}

bool dc_fuse_stores_operand(const fusing *w, dc_ref r, uint8_t operand)
{
    if (dc_fuse_folds_operand(w, r, operand) || dc_fuse_masks_operand(w, r, operand))
        return false;
    if ((operand & OPERAND_TILED) != 0 && is_narrowing(w, r))
        return true;
    if ((operand & OPERAND_VECTORS) != 0)
        return (operand & OPERAND_OTHER) != 0 || !is_made_at_once(w, r);
    if ((operand & OPERAND_GATHERED) != 0)
        return !is_gathered(w, r, operand);
    return (operand & OPERAND_LEFT) != 0 && (!is_folded(w, r) || dc_layout_is_transposed(w->fn, r));
}
