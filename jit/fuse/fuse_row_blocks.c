/*
 * Partial sums over rows in the row-wise group of those rows (jit/fuse/fuse.h): the gradients of a norm's
 * weight and bias beside that of its input. By itself each reads the same large values; together they are
 * read once.
 *
 * A sum comes here in two steps (jit/rewrite/split_reduction.h), the first of which is over the rows of each
 * block. A group of such sums becomes part of a row-wise group if
 *
 *   - blocks are as many rows of the group, in order, and columns its columns;
 *   - the sums read the group's own values under blocked maps;
 *   - a large value that they read is read or computed in the group anyway;
 *   - blocks are enough for all threads, and the sums of a row stay in a core's cache: they are loaded and
 *     stored for each row.
 *
 * A column is added up in the same order as without the group: rows one after the other, from the
 * neutral element on, then blocks.
 */
#include "jit/fuse/fuse_impl.h"
#include "jit/rewrite/split_reduction.h"

#include <string.h>

/* Maps --------------------------------------------------------------------------------------- */

typedef struct maps {
    const fusing *w;
    uint32_t g;
    bool *seen[2]; /* by ref: met under another map, under a blocked one of g's rows */
} maps;

/* Of broadcasts only the one along the columns of g keeps a map blocked in its rows. */
static bool keeps_rows(const maps *p, dc_ref u)
{
    const fuse_group *x = &p->w->group.at[p->g];
    fuse_rows rows;
    if (fuse_at(p->w, u)->op == DC_OP_EXPAND)
        return dc_fuse_along_columns(p->w, u, &rows) && rows.rows == x->rows &&
               rows.rows * rows.columns == x->points;
    return fuse_class(p->w, u) != DC_CLASS_RED && dc_fuse_keeps_blocked(p->w, u);
}

/* Is all that r reads of group g read under a blocked map of its rows, as r itself is? */
static bool reads_blocked(maps *p, dc_ref r, bool blocked)
{
    const fusing *w = p->w;
    if (w->node[r].stored || fuse_is_param(w, r))
        return w->node[r].home != p->g || blocked;
    if (p->seen[blocked][r])
        return true;
    p->seen[blocked][r] = true;
    const bool step = blocked && keeps_rows(p, r);
    for (int i = 0; i < fuse_reads(w, r); i++)
        if (!reads_blocked(p, fuse_at(w, r)->in[i], step))
            return false;
    return w->node[r].home != p->g;
}

static bool all_blocked(const fusing *w, uint32_t g, uint32_t h)
{
    const dc_mark mark = dc_arena_mark(&w->j->scratch);
    const dc_group *y = &w->group.at[h].g;
    maps p = {.w = w, .g = g};
    for (int i = 0; i < 2; i++)
        p.seen[i] = DC_NEW_ARRAY(&w->j->scratch, bool, w->fn->node.n);
    bool all = true;
    for (uint32_t i = 0; i < y->nreduce && all; i++)
        all = reads_blocked(&p, fuse_at(w, y->reduce[i])->in[0], true);
    dc_arena_rewind(&w->j->scratch, mark);
    return all;
}

/* Blocks ------------------------------------------------------------------------------------- */

/* What jit/rewrite/split_reduction.c makes can be taken in; blocks are a divisor, up to twice as long. */
_Static_assert(DC_TUNE_BLOCKS_LEAST >= DC_TUNE_WORK_ITEMS, "row blocks for all threads");
enum { MOST_ROWS = 2 * DC_TUNE_CHAIN_TERMS };

/* Over how many blocks of g's rows r makes partial sums; 0: it does something else. */
static int64_t blocks_of(const fusing *w, uint32_t g, dc_ref r)
{
    const fuse_group *x = &w->group.at[g];
    dc_split_blocks b;
    if (!dc_split_is_of_blocks(w->fn, r, &b))
        return 0;
    const bool fits = b.blocks * b.rows == x->rows && x->rows * b.columns == x->points;
    return fits && b.rows <= MOST_ROWS ? b.blocks : 0;
}

static size_t bytes_of_partials(const fusing *w, const dc_group *x, int64_t columns)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < x->npartial; i++)
        bytes += (size_t)columns * dc_dtype_size((dc_dtype)fuse_at(w, x->partial[i])->dtype);
    return bytes;
}

/* Only partial sums, each an output. */
static int64_t blocks_of_all(const fusing *w, uint32_t g, const dc_group *y)
{
    const int64_t blocks = y->nreduce > 0 ? blocks_of(w, g, y->reduce[0]) : 0;
    bool all = y->nout == y->nreduce;
    for (uint32_t i = 0; i < y->nreduce; i++)
        all = all && w->node[y->reduce[i]].stored && blocks_of(w, g, y->reduce[i]) == blocks;
    return all ? blocks : 0;
}

/* Something with an element for each point that both read, or that g stores and h reads. */
static bool saves_much(const fusing *w, uint32_t g, const dc_group *y)
{
    const fuse_group *x = &w->group.at[g];
    for (uint32_t i = 0; i < y->nin; i++) {
        bool shared = w->node[y->in[i]].stored && w->node[y->in[i]].home == g;
        for (uint32_t k = 0; k < x->g.nin; k++)
            shared |= x->g.in[k] == y->in[i];
        if (shared && dc_node_count(fuse_at(w, y->in[i])) >= x->points)
            return true;
    }
    return false;
}

bool dc_fuse_may_take_any(const fusing *w, uint32_t g)
{
    const fuse_group *x = &w->group.at[g];
    return w->row_blocks && x->rows > 0 && x->g.nreduce > 0 && x->points >= DC_TUNE_BLOCK_POINTS;
}

bool dc_fuse_may_take_partials(const fusing *w, uint32_t g, uint32_t h)
{
    const fuse_group *x = &w->group.at[g];
    const dc_group *y = &w->group.at[h].g;
    if (!dc_fuse_may_take_any(w, g) || w->group.at[h].rows > 0 || y->nreduce == 0)
        return false;
    const int64_t blocks = blocks_of_all(w, g, y), columns = x->points / x->rows;
    const size_t bytes = bytes_of_partials(w, &x->g, columns) + y->nreduce * (size_t)columns * 4;
    return blocks >= DC_TUNE_WORK_ITEMS && columns >= DC_TUNE_LONG_ROW &&
           bytes <= DC_TUNE_ROW_BYTES && (x->g.blocks == 0 || x->g.blocks == blocks) &&
           saves_much(w, g, y) && all_blocked(w, g, h);
}

void dc_fuse_add_partials(fusing *w, uint32_t g, uint32_t h)
{
    dc_group *x = &w->group.at[g].g, *y = &w->group.at[h].g;
    dc_ref *sum = DC_NEW_ARRAY(w->a, dc_ref, x->npartial + y->nreduce);
    if (x->npartial > 0)
        memcpy(sum, x->partial, x->npartial * sizeof *sum);
    memcpy(sum + x->npartial, y->reduce, y->nreduce * sizeof *sum);
    x->blocks = blocks_of(w, g, y->reduce[0]);
    x->partial = sum;
    x->npartial += y->nreduce;
    y->nreduce = 0;
}

/* Outputs ------------------------------------------------------------------------------------ */

bool dc_fuse_is_read_outside(const fusing *w, dc_ref r, uint32_t g)
{
    const fuse_node *x = &w->node[r];
    for (uint32_t i = 0; i < x->nuser; i++) {
        const dc_ref u = w->user[x->first_user + i];
        const uint32_t home = w->node[u].home;
        if (home == MANY_HOME ? dc_fuse_is_read_outside(w, u, g) : home != NO_HOME && home != g)
            return true;
    }
    return false;
}

uint32_t dc_fuse_drop_outputs(fusing *w, uint32_t g)
{
    dc_group *x = &w->group.at[g].g;
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->nout; i++) {
        const dc_ref r = x->out[i];
        w->node[r].stored = w->is_result[r] || dc_fuse_is_read_outside(w, r, g);
        if (w->node[r].stored)
            x->out[n++] = r;
    }
    const uint32_t dropped = x->nout - n;
    x->nout = n;
    return dropped;
}
