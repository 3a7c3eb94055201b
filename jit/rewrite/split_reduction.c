#include "jit/rewrite/split_reduction.h"

#include "jit/base/tuning.h"

static bool is_reduced(const dc_node *n, int axis)
{
    return (n->attr[0] >> axis & 1) != 0;
}

/* Do neighbours in memory belong to different results? */
static bool over_columns(const dc_node *n, const dc_node *a)
{
    int last = a->rank - 1;
    while (last > 0 && a->dim[last] == 1)
        last--;
    return !is_reduced(n, last);
}

bool dc_split_is_row_wise(const dc_func *f, dc_ref r, dc_split_rows *out)
{
    const dc_node *n = dc_node_at(f, r);
    if (!dc_op_is((dc_op)n->op, DC_CLASS_RED))
        return false;
    const dc_node *a = dc_node_at(f, n->in[0]);
    int split = 0;
    while (split < a->rank && (!is_reduced(n, split) || a->dim[split] == 1))
        split++;
    int64_t columns = 1;
    for (int i = split; i < a->rank; i++) {
        if (!is_reduced(n, i) && a->dim[i] != 1)
            return false;
        columns *= a->dim[i];
    }
    *out = (dc_split_rows){split, dc_node_count(n), columns};
    return columns > 1;
}

bool dc_split_is_of_blocks(const dc_func *f, dc_ref r, dc_split_blocks *out)
{
    const dc_node *n = dc_node_at(f, r);
    if (!dc_op_is((dc_op)n->op, DC_CLASS_RED))
        return false;
    const dc_node *a = dc_node_at(f, n->in[0]);
    int64_t count[3] = {1, 1, 1};
    int at = 0;
    for (int i = 0; i < a->rank; i++) {
        if (a->dim[i] == 1)
            continue;
        if (is_reduced(n, i) != (at == 1))
            at++;
        if (at > 2)
            return false;
        count[at] *= a->dim[i];
    }
    *out = (dc_split_blocks){count[0], count[1], count[2]};
    return count[1] > 1;
}

/* Is there a row-wise reduction of so many rows and columns, whose kernel could take in partial sums? */
static bool has_row_wise(const dc_func *f, int64_t rows, int64_t columns)
{
    dc_split_rows x;
    for (dc_ref r = 1; r < f->node.n; r++)
        if (dc_split_is_row_wise(f, r, &x) && x.rows == rows && x.columns == columns)
            return true;
    return false;
}

static int64_t count_parts(const dc_func *f, const dc_node *n, const dc_node *a, bool groups)
{
    int64_t results = 1, terms = 1;
    for (int i = 0; i < a->rank; i++)
        if (is_reduced(n, i))
            terms *= a->dim[i];
        else
            results *= a->dim[i];
    const bool columns = over_columns(n, a);
    if (terms * results < DC_TUNE_SPLIT_POINTS)
        return 1;
    if (columns && terms * results < DC_TUNE_SPLIT_COLUMNS * (int64_t)DC_TUNE_SPLIT_POINTS &&
        !has_row_wise(f, terms, results))
        return 1;
    const int64_t have =
        columns ? (results + DC_TUNE_SPLIT_STRIP - 1) / DC_TUNE_SPLIT_STRIP : results;
    if (columns && terms <= DC_TUNE_CHAIN_TERMS && have >= DC_TUNE_SPLIT_ITEMS)
        return 1; /* short ones, and strips enough */
    if (groups && !columns)
        return dc_min_i64(DC_TUNE_SPLIT_GROUPS / have, terms / DC_TUNE_SPLIT_GROUP_TERMS);
    int64_t parts = DC_TUNE_SPLIT_ITEMS / have;
    if (groups)
        parts =
            dc_min_i64(DC_TUNE_SPLIT_GROUPS * DC_TUNE_GROUP_THREADS / results, DC_TUNE_CHAIN_TERMS);
    if (columns)
        parts = dc_max_i64(
            parts, dc_max_i64(DC_TUNE_BLOCKS_LEAST,
                              dc_min_i64(terms / DC_TUNE_CHAIN_TERMS, DC_TUNE_BLOCKS_MOST)));
    return dc_min_i64(parts, terms / (columns ? DC_TUNE_BLOCK_ROWS : DC_TUNE_SPLIT_TERMS));
}

static int64_t largest_divisor(int64_t n, int64_t most)
{
    int64_t d = dc_min_i64(n, most);
    while (d > 1 && n % d != 0)
        d--;
    return dc_max_i64(d, 1);
}

/* The parts: axes in front of `axis` that are reduced in the second step, times `parts` of that one. */
typedef struct cut {
    uint32_t before;
    int axis;
    int64_t parts;
} cut;

/* The reduced axis that falls into most parts, the outermost of those. */
static cut largest_cut(const dc_node *n, const dc_node *a, int64_t most)
{
    cut c = {.axis = -1, .parts = 1};
    for (int i = 0; i < a->rank; i++) {
        const int64_t d = is_reduced(n, i) ? largest_divisor(a->dim[i], most) : 1;
        if (d <= c.parts)
            continue;
        c.axis = i;
        c.parts = d;
    }
    return c;
}

/* Each part in one piece: outer axes as a whole, then part of the next. */
static cut outermost_cut(const dc_node *n, const dc_node *a, int64_t most)
{
    cut c = {0};
    while (is_reduced(n, c.axis) && a->dim[c.axis] <= most) {
        most /= dc_max_i64(a->dim[c.axis], 1);
        c.before |= 1u << c.axis++;
    }
    c.parts = is_reduced(n, c.axis) ? largest_divisor(a->dim[c.axis], most) : 1;
    return c;
}

static cut best_cut(const dc_node *n, const dc_node *a, int64_t most)
{
    const cut c = over_columns(n, a) && is_reduced(n, 0) ? outermost_cut(n, a, most) : (cut){0};
    return c.before != 0 || c.parts > 1 ? c : largest_cut(n, a, most);
}

/* The axis that is cut becomes two, of which the inner one is summed first. */
static dc_ref in_two_steps(dc_func *to, const dc_func *f, dc_ref r, dc_ref in, cut c)
{
    const dc_node a = *dc_node_at(to, in), *n = dc_node_at(f, r);
    int64_t dim[DC_MAX_RANK];
    uint32_t axes = 0, second = 0;
    for (int i = 0, o = 0, left = 0; i < a.rank; i++) {
        const bool in_parts = (c.before >> i & 1) != 0;
        if (i == c.axis && c.parts > 1) {
            second |= 1u << left++;
            dim[o++] = c.parts;
        }
        if (is_reduced(n, i) && !in_parts)
            axes |= 1u << o;
        else if (in_parts)
            second |= 1u << left++;
        else
            left++;
        dim[o++] = i == c.axis ? a.dim[i] / c.parts : a.dim[i];
    }
    const dc_ref parts = c.parts > 1 ? dc_graph_reshape(to, in, a.rank + 1, dim) : in;
    const dc_ref first = dc_graph_reduce(to, (dc_op)n->op, parts, axes);
    dc_func_copy_origin(to, first, f, r);
    return dc_graph_reduce(to, (dc_op)n->op, first, second);
}

/* ---- few columns ---- */

/* How many columns a matrix of rows has that a reduction drops whole; 0: it drops others. */
static int64_t columns_of(const dc_node *n, const dc_node *a)
{
    int64_t columns = 1;
    for (int i = 0; i < a->rank; i++) {
        if (is_reduced(n, i) && columns > 1 && a->dim[i] > 1)
            return 0;
        columns *= is_reduced(n, i) ? 1 : a->dim[i];
    }
    return columns;
}

static dc_ref part_of_rows(dc_func *to, dc_ref in, int64_t from, int64_t rows)
{
    const int64_t start[2] = {from, 0}, step[2] = {1, 1};
    const int64_t dim[2] = {rows, dc_node_at(to, in)->dim[1]};
    return dc_graph_slice(to, in, start, step, dim);
}

/*
 * Columns too few for vectors: rows that follow each other are one, as wide as several vectors, until there is a sum of each
 * of its columns. Rows that are left over are summed up by themselves.
 */
static dc_ref few_columns(dc_func *to, const dc_func *f, dc_ref r, dc_ref in)
{
    const dc_node *n = dc_node_at(f, r), a = *dc_node_at(to, in);
    const int64_t columns = columns_of(n, &a), all = dc_node_count(&a);
    if (columns < 2 || columns > DC_TUNE_NARROW_COLUMNS || all < DC_TUNE_NARROW_POINTS)
        return 0;
    const int64_t rows = all / columns, beside = DC_TUNE_NARROW_ROW / (columns < 3 ? 2 : 4);
    const int64_t wide = rows / beside;
    const int64_t parts =
        dc_max_i64(dc_min_i64(wide / DC_TUNE_CHAIN_TERMS, DC_TUNE_SPLIT_ITEMS), 1);
    const int64_t used = wide / parts * parts * beside;
    const int64_t matrix[2] = {rows, columns}, sums[2] = {parts * beside, columns};
    const int64_t piece[3] = {parts, wide / parts, beside * columns};
    const dc_ref m = dc_graph_reshape(to, in, 2, matrix);
    dc_ref sum = dc_graph_reshape(to, part_of_rows(to, m, 0, used), 3, piece);
    sum = dc_graph_reduce(to, (dc_op)n->op, sum, 2);
    dc_func_copy_origin(to, sum, f, r);
    sum = dc_graph_reduce(to, (dc_op)n->op, dc_graph_reshape(to, sum, 2, sums), 1);
    if (used < rows) {
        const dc_ref rest =
            dc_graph_reduce(to, (dc_op)n->op, part_of_rows(to, m, used, rows - used), 1);
        dc_func_copy_origin(to, rest, f, r);
        sum = dc_graph_op2(to, (dc_op)dc_op_row_of((dc_op)n->op)->combine, sum, rest);
    }
    return dc_graph_reshape(to, sum, n->rank, n->dim);
}

dc_ref dc_split_reduce(dc_func *to, const dc_func *f, dc_ref r, dc_ref in, bool groups)
{
    const dc_node a = *dc_node_at(to, in), *n = dc_node_at(f, r);
    if (!dc_op_is((dc_op)n->op, DC_CLASS_RED) || a.rank == 0 || a.rank == DC_MAX_RANK)
        return 0;
    const bool narrow = dc_dtype_is_short((dc_dtype)a.dtype);
    dc_ref sum = few_columns(to, f, r, narrow ? dc_graph_cast(to, in, DC_F32) : in);
    if (sum == 0) {
        const int64_t parts = count_parts(f, n, &a, groups);
        const cut c = parts > 1 ? best_cut(n, &a, parts) : (cut){.axis = -1};
        if (c.axis < 0)
            return 0;
        sum = in_two_steps(to, f, r, narrow ? dc_graph_cast(to, in, DC_F32) : in, c);
    }
    if (narrow)
        sum = dc_graph_cast(to, sum, (dc_dtype)n->dtype);
    dc_func_copy_origin(to, sum, f, r);
    return sum;
}
