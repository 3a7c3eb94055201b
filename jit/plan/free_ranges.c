#include "jit/plan/free_ranges.h"

#include "jit/plan/plan.h"

enum { EXACT = 64, CLASSES = EXACT * (65 - 6), TRIES = 16 };

struct dc_free_range {
    size_t at, size;
    bool taken;
    struct dc_free_range *below, *above;   /* in memory */
    struct dc_free_range *before, *behind; /* among gaps of a class */
};

/* Sizes of one class differ by less than a 64th. */
static uint32_t class_of(size_t size)
{
    const uint64_t n = size / DC_PLAN_ALIGN;
    if (n < EXACT)
        return (uint32_t)n;
    const uint32_t shift = 63 - (uint32_t)__builtin_clzll(n) - 6;
    return EXACT * (shift + 1) + (uint32_t)((n >> shift) - EXACT);
}

dc_free_ranges dc_free_ranges_make(dc_arena *a)
{
    return (dc_free_ranges){.a = a,
                            .of_class = DC_NEW_ARRAY(a, dc_free_range *, CLASSES),
                            .some = dc_bitset_make(a, CLASSES)};
}

size_t dc_free_range_at(const dc_free_range *piece)
{
    return piece->at;
}

static dc_free_range *new_piece(dc_free_ranges *g)
{
    dc_free_range *p = g->spare;
    if (p == NULL)
        return DC_NEW(g->a, dc_free_range);
    g->spare = p->behind;
    *p = (dc_free_range){.size = 0};
    return p;
}

static void drop_piece(dc_free_ranges *g, dc_free_range *p)
{
    p->behind = g->spare;
    g->spare = p;
}

static void open_gap(dc_free_ranges *g, dc_free_range *p)
{
    const uint32_t c = class_of(p->size);
    p->taken = false;
    p->before = NULL;
    p->behind = g->of_class[c];
    if (p->behind != NULL)
        p->behind->before = p;
    g->of_class[c] = p;
    dc_bitset_add(&g->some, c);
}

static void close_gap(dc_free_ranges *g, dc_free_range *p)
{
    const uint32_t c = class_of(p->size);
    if (p->before != NULL)
        p->before->behind = p->behind;
    else
        g->of_class[c] = p->behind;
    if (p->behind != NULL)
        p->behind->before = p->before;
    if (g->of_class[c] == NULL)
        dc_bitset_drop(&g->some, c);
    p->taken = true;
}

/* The tightest of the first few of a class that are large enough. */
static dc_free_range *tightest_in(const dc_free_ranges *g, uint32_t class, size_t size)
{
    dc_free_range *best = NULL, *p = g->of_class[class];
    for (int i = 0; p != NULL && i < TRIES; i++, p = p->behind)
        if (p->size >= size && (best == NULL || p->size < best->size))
            best = p;
    return best;
}

static dc_free_range *find_range(const dc_free_ranges *g, size_t size)
{
    const uint32_t own = class_of(size), next = dc_bitset_first(&g->some, own + 1);
    dc_free_range *best = tightest_in(g, own, size);
    if (best == NULL && next != DC_BITSET_NONE)
        best = tightest_in(g, next, size);
    return best;
}

static dc_free_range *add_on_top(dc_free_ranges *g, size_t size)
{
    dc_free_range *p = new_piece(g);
    *p = (dc_free_range){.at = g->last != NULL ? g->last->at + g->last->size : 0,
                         .size = size,
                         .taken = true,
                         .below = g->last};
    if (g->last != NULL)
        g->last->above = p;
    g->last = p;
    return p;
}

/* What is left above the first `size` bytes of p stays a gap. */
static void cut(dc_free_ranges *g, dc_free_range *p, size_t size)
{
    dc_free_range *rest = new_piece(g);
    *rest =
        (dc_free_range){.at = p->at + size, .size = p->size - size, .below = p, .above = p->above};
    p->above->below = rest;
    p->above = rest;
    p->size = size;
    open_gap(g, rest);
}

dc_free_range *dc_free_ranges_take(dc_free_ranges *g, size_t size)
{
    dc_free_range *p = find_range(g, size);
    if (p == NULL)
        return add_on_top(g, size);
    close_gap(g, p);
    if (p->size > size)
        cut(g, p, size);
    return p;
}

/* p and the gap above it are one. */
static void join_above(dc_free_ranges *g, dc_free_range *p, dc_free_range *above)
{
    p->size += above->size;
    p->above = above->above;
    p->above->below = p;
    drop_piece(g, above);
}

void dc_free_ranges_give(dc_free_ranges *g, dc_free_range *p)
{
    if (p->above != NULL && !p->above->taken) {
        close_gap(g, p->above);
        join_above(g, p, p->above);
    }
    if (p->below != NULL && !p->below->taken) {
        dc_free_range *below = p->below;
        close_gap(g, below);
        if (p->above != NULL) {
            join_above(g, below, p);
        } else {
            below->above = NULL;
            g->last = below;
            drop_piece(g, p);
        }
        p = below;
    }
    if (p->above != NULL) {
        open_gap(g, p);
    } else { /* nothing reaches higher */
        g->last = p->below;
        if (g->last != NULL)
            g->last->above = NULL;
        drop_piece(g, p);
    }
}
