#include "jit/plan/plan_memory.h"

#include "jit/base/tuning.h"
#include "jit/plan/free_ranges.h"

#include <stdlib.h>
#include <string.h>

/* A temporary with its guards. */
typedef struct box {
    dc_temp *temp;
    size_t size, at;
} box;

static int by_size(const void *x, const void *y)
{
    const box *a = x, *b = y;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    if (a->temp->first != b->temp->first)
        return a->temp->first < b->temp->first ? -1 : 1;
    return a->temp < b->temp ? -1 : 1;
}

static int by_offset(const void *x, const void *y)
{
    const box *const *a = x, *const *b = y;
    return (*a)->at < (*b)->at ? -1 : (*a)->at > (*b)->at;
}

static bool together(const dc_temp *a, const dc_temp *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The tightest gap between the boxes that are alive together with b; behind them if none fits. */
static size_t find_gap(const box *b, box *const *others, uint32_t n)
{
    size_t end = 0, best = SIZE_MAX, best_room = SIZE_MAX;
    for (uint32_t i = 0; i < n; i++) {
        const box *o = others[i];
        if (o->at > end && o->at - end >= b->size && o->at - end < best_room) {
            best = end;
            best_room = o->at - end;
        }
        if (o->at + o->size > end)
            end = o->at + o->size;
    }
    return best != SIZE_MAX ? best : end;
}

/* In the order given. Returns what it takes. */
static size_t place_boxes(box *const *order, uint32_t n, box **others)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        box *b = order[i];
        uint32_t m = 0;
        for (uint32_t k = 0; k < i; k++)
            if (together(order[k]->temp, b->temp))
                others[m++] = order[k];
        if (m > 1)
            qsort(others, m, sizeof *others, by_offset);
        b->at = find_gap(b, others, m);
        bytes = b->at + b->size > bytes ? b->at + b->size : bytes;
    }
    return bytes;
}

/* The box that reaches highest goes first, the others stay in order. */
static void promote(box **order, uint32_t n)
{
    uint32_t top = 0;
    for (uint32_t i = 1; i < n; i++)
        if (order[i]->at + order[i]->size > order[top]->at + order[top]->size)
            top = i;
    box *b = order[top];
    for (uint32_t i = top; i > 0; i--)
        order[i] = order[i - 1];
    order[0] = b;
}

/* Any order, the same ones in every run. */
static void shuffle(box **order, uint32_t n, uint64_t *state)
{
    for (uint32_t i = n; i > 1; i--) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint32_t k = (uint32_t)((*state >> 33) % i);
        box *b = order[k];
        order[k] = order[i - 1];
        order[i - 1] = b;
    }
}

/*
 * The largest first; then again and again, with what stuck out placed before everything else; then
 * in any order; until nothing is wasted or it has been tried often enough. The best stays.
 */
static void place_well(dc_arena *a, box *b, uint32_t n, size_t lower_bound)
{
    box **order = DC_NEW_ARRAY(a, box *, n), **others = DC_NEW_ARRAY(a, box *, n);
    size_t *best_at = DC_NEW_ARRAY(a, size_t, n), best = SIZE_MAX;
    const uint64_t work = (uint64_t)n * n / ((uint64_t)DC_TUNE_ARENA_MANY * DC_TUNE_ARENA_MANY);
    const uint64_t tries = 1 + DC_TUNE_ARENA_TRIES / (work + 1);
    const uint64_t more =
        DC_TUNE_ARENA_COMPARED / ((uint64_t)n * n + DC_TUNE_ARENA_COMPARED / 1024 + 1);
    uint64_t state = 0;
    for (uint32_t i = 0; i < n; i++)
        order[i] = &b[i];
    for (uint64_t t = 0; t < tries + more && best > lower_bound; t++) {
        const size_t bytes = place_boxes(order, n, others);
        for (uint32_t i = 0; i < n && bytes < best; i++)
            best_at[i] = b[i].at;
        best = bytes < best ? bytes : best;
        if (t >= tries)
            shuffle(order, n, &state);
        else if (n > 0)
            promote(order, n);
    }
    for (uint32_t i = 0; i < n; i++)
        b[i].at = best_at[i];
}

static void place_apart(box *b, uint32_t n)
{
    size_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        b[i].at = end;
        end += b[i].size;
    }
}

static int by_first(const void *x, const void *y)
{
    const dc_temp *a = (*(box *const *)x)->temp, *b = (*(box *const *)y)->temp;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return by_size(*(box *const *)x, *(box *const *)y);
}

static int by_last(const void *x, const void *y)
{
    const dc_temp *a = (*(box *const *)x)->temp, *b = (*(box *const *)y)->temp;
    return (a->last > b->last) - (a->last < b->last);
}

static box **sorted(dc_arena *a, box *b, uint32_t n, int (*order)(const void *, const void *))
{
    box **out = DC_NEW_ARRAY(a, box *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        out[i] = &b[i];
    if (n > 1)
        qsort(out, n, sizeof *out, order);
    return out;
}

/* The largest sum over steps; only steps where something begins can be the largest. */
static size_t live_most(dc_arena *a, box *b, uint32_t n)
{
    box **begin = sorted(a, b, n, by_first), **end = sorted(a, b, n, by_last);
    size_t sum = 0, most = 0;
    for (uint32_t i = 0, k = 0; i < n; i++) {
        for (; end[k]->temp->last < begin[i]->temp->first; k++)
            sum -= end[k]->size;
        sum += begin[i]->size;
        most = sum > most ? sum : most;
    }
    return most;
}

/* Very many, in the order of time: each into a gap that others have left. */
static void place_in_time(dc_arena *a, box *b, uint32_t n)
{
    box **begin = sorted(a, b, n, by_first), **end = sorted(a, b, n, by_last);
    dc_free_range **piece = DC_NEW_ARRAY(a, dc_free_range *, n);
    dc_free_ranges gaps = dc_free_ranges_make(a);
    for (uint32_t i = 0, k = 0; i < n; i++) {
        for (; end[k]->temp->last < begin[i]->temp->first; k++)
            dc_free_ranges_give(&gaps, piece[end[k] - b]);
        piece[begin[i] - b] = dc_free_ranges_take(&gaps, begin[i]->size);
        begin[i]->at = dc_free_range_at(piece[begin[i] - b]);
    }
}

dc_status dc_plan_memory_pack(dc_job *j, dc_arena *a, dc_temp *temp, uint32_t n, size_t guard,
                              bool no_reuse, size_t *bytes, size_t *lower_bound)
{
    box *b = DC_NEW_ARRAY(a, box, n);
    int64_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        b[i] =
            (box){.temp = &temp[i], .size = dc_align_up(temp[i].bytes, DC_PLAN_ALIGN) + 2 * guard};
        if (temp[i].bytes > INT64_MAX / 2 || !dc_add_ok(total, (int64_t)b[i].size, &total))
            return dc_fail(j, DC_ERR_TOO_LARGE, &(dc_fact){.word = {"the values of one function"}});
    }
    if (n > 1)
        qsort(b, n, sizeof *b, by_size);
    *lower_bound = live_most(a, b, n);
    if (no_reuse)
        place_apart(b, n);
    else if (n > DC_TUNE_ARENA_VERY_MANY)
        place_in_time(a, b, n);
    else
        place_well(a, b, n, *lower_bound);
    *bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        b[i].temp->offset = b[i].at + guard;
        if (b[i].at + b[i].size > *bytes)
            *bytes = b[i].at + b[i].size;
    }
    return DC_OK;
}
