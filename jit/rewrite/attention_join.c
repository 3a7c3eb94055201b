/* Which chains of attention are one kernel: those that are made of the same tiles. */
#include "jit/rewrite/attention_impl.h"

#include <string.h>

static bool share_tiles(const dc_attention_kernel *a, const dc_attention_kernel *b)
{
    for (int i = 0; i < a->ninner; i++)
        for (int n = 0; n < b->ninner; n++)
            if (a->inner[i] == b->inner[n])
                return true;
    return false;
}

/* Tiles of both, in a; false: there are too many. */
static bool join_tiles(dc_attention_kernel *a, const dc_attention_kernel *b)
{
    dc_attention_kernel both = *a;
    for (int i = 0; i < b->ninner; i++) {
        bool there = false;
        for (int n = 0; n < both.ninner; n++)
            there |= both.inner[n] == b->inner[i];
        if (!there && both.ninner == DC_ATTENTION_INNER)
            return false;
        if (!there)
            both.inner[both.ninner++] = b->inner[i];
    }
    *a = both;
    return true;
}

/* Does what b stores wait for nothing that a stores, and the other way round? */
static bool do_not_wait(finding *w, const dc_attention_kernel *a, const dc_attention_kernel *b)
{
    for (int i = 0; i < a->n; i++) {
        w->search++;
        if (dc_attention_depends(w, b->top[0], &a->top[i], 1, a->top[i]))
            return false;
        w->search++;
        if (dc_attention_depends(w, a->top[i], &b->top[0], 1, b->top[0]))
            return false;
    }
    return true;
}

/* May the result of b be one of the kernel a? */
static bool may_share(finding *w, const dc_attention_kernel *a, const dc_attention_kernel *b)
{
    return b->n == 1 && !b->across && a->parts == 0 && a->max == 0 && b->max == 0 &&
           same_dims(weights_of(w, a), weights_of(w, b)) && share_tiles(a, b) &&
           do_not_wait(w, a, b);
}

/* Two chains over tiles of the same rows, which share some and do not wait for each other, are one kernel. */
static bool join(finding *w, dc_attention_kernel *a, const dc_attention_kernel *b)
{
    if (a->n != 1 || b->parts > 0 || a->x != b->x || a->y != b->y || !may_share(w, a, b) ||
        !join_tiles(a, b))
        return false;
    a->dot[1] = b->dot[0];
    a->top[1] = b->top[0];
    a->n = 2;
    return true;
}

static int64_t whole_blocks(int64_t rows)
{
    return (rows + DC_TUNE_ATTENTION_WIDTH - 1) / DC_TUNE_ATTENTION_WIDTH * DC_TUNE_ATTENTION_WIDTH;
}

/* Tiles that are contracted, of whole blocks of rows in so many parts. */
static int64_t work_of(const finding *w, const dc_attention_kernel *k, int64_t parts)
{
    const dc_node *weights = weights_of(w, k);
    const int64_t rows = parts * whole_blocks(weights->dim[k->x] / parts);
    return rows * weights->dim[k->y] * (k->ninner + k->n + k->across);
}

static int64_t batches_of(const finding *w, const dc_attention_kernel *k)
{
    const dc_node *weights = weights_of(w, k);
    int64_t batches = 1;
    for (int i = 0; i < weights->rank; i++)
        batches *= i == k->x || i == k->y ? 1 : weights->dim[i];
    return batches;
}

/* Equal parts of the rows of a, as few as keep all threads busy; 0: there are none. */
static int64_t parts_for(const finding *w, const dc_attention_kernel *a)
{
    const int64_t batches = batches_of(w, a), rows = weights_of(w, a)->dim[a->x];
    if (batches >= DC_TUNE_WORK_ITEMS)
        return 1;
    for (int64_t n = 2; n < 2 * DC_TUNE_WORK_ITEMS; n++)
        if (batches * n >= DC_TUNE_WORK_ITEMS && rows % n == 0)
            return n;
    return 0;
}

/*
 * So is one whose rows are the terms of the other: its sums are in memory, and go on from one block of rows to the next. A
 * thread has all rows of a batch then, or of a part of one, so there have to be enough of these, and rows that fill their
 * blocks.
 */
static bool join_across(finding *w, dc_attention_kernel *a, const dc_attention_kernel *b)
{
    if (a->across || a->x != b->y || a->y != b->x || at(w, b->top[0])->dtype != DC_F32 ||
        !may_share(w, a, b))
        return false;
    const int64_t parts = b->parts > 0 ? b->parts : parts_for(w, a);
    dc_attention_kernel both = *a;
    both.dot[a->n] = b->dot[0];
    both.top[a->n] = b->top[0];
    both.parts = b->parts;
    both.across = true;
    if (parts == 0 || !join_tiles(&both, b) ||
        work_of(w, &both, parts) > work_of(w, a, 1) + work_of(w, b, 1))
        return false;
    if (parts > 1 && b->parts == 0) { /* see dc_attention_split */
        const bool last = b->y == b->rank - 1 && b->rank < DC_MAX_RANK;
        a->apart = last ? b->dot[0] : 0;
        a->apart_parts = parts;
        return false;
    }
    *a = both;
    return true;
}

static void remove_kernel(finding *w, uint32_t i)
{
    memmove(&w->kernel.at[i], &w->kernel.at[i + 1], (w->kernel.n - i - 1) * sizeof *w->kernel.at);
    w->kernel.n--;
}

void dc_attention_join(finding *w)
{
    for (uint32_t i = 0; i < w->kernel.n; i++)
        for (uint32_t j = i + 1; j < w->kernel.n; j++)
            if (join(w, &w->kernel.at[i], &w->kernel.at[j])) {
                remove_kernel(w, j);
                break;
            }
    for (uint32_t i = 0; i < w->kernel.n; i++)
        for (uint32_t j = 0; j < w->kernel.n; j++)
            if (j != i && join_across(w, &w->kernel.at[i], &w->kernel.at[j])) {
                remove_kernel(w, j);
                i -= j < i;
                break;
            }
}
