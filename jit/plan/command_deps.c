/*
 * Memory is segments, each with the accesses that a later one may still meet. An access splits the segments at its
 * ends and walks what is kept of those between; a write then is all that is kept there, in one segment. So a list
 * costs about as much as it has accesses and deps.
 */
#include "jit/plan/command_deps.h"

#include "core/base/vec.h"
#include "jit/plan/bitset.h"

#include <stdlib.h>
#include <string.h>

/* WINDOW: of so many units before it, it is known which ones come before a unit anyway */
enum { NONE = UINT32_MAX, WINDOW = 2048 };

/* Of an access: READS, the number of a join, or WRITES. Only writes meet others of their kind. */
enum { READS = 0, WRITES = UINT32_MAX };

typedef struct past { /* an access of a unit that is known already, and what there was before */
    uint32_t unit, kind;
    uint32_t seen; /* the last access that looked at it */
    struct past *next, *next_kind;
} past;

typedef struct point { /* where an access begins or ends */
    uint32_t mem;
    size_t at;
} point;

/* One list: its commands, bodies included as parts of their heads, are units. */
typedef struct list {
    dc_arena *a;
    const dc_visit *v;
    uint32_t nunit;
    uint32_t *head; /* by unit: position of its first command */
    const point *point;
    uint32_t npoint;
    dc_bitset begins; /* points at which a segment begins */
    past **past;      /* by point: what is kept of the segment that begins there */
    uint32_t seen;    /* accesses so far */
    uint64_t *reach;  /* by unit of the window: nword words, those that come before it anyway; the
                         lowest bit is the unit before it */
    uint32_t nword;
    uint32_t *found_by; /* by unit: the last one that found it, and one more */
    uint32_t check;     /* the last unit that checks */
    DC_VEC(uint32_t) found, kept;
} list;

static uint32_t span(const dc_visit *v)
{
    return 1 + v->nbody + v->nelse;
}

/* ---- segments -------------------------------------------------------------------------------- */

static int by_address(const void *x, const void *y)
{
    const point *a = x, *b = y;
    if (a->mem != b->mem)
        return a->mem < b->mem ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

/* In order, each once. */
static void list_points(list *l, uint32_t n)
{
    DC_VEC(point) all = {0};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < l->v[i].naccess; k++) {
            const dc_access *x = &l->v[i].access[k];
            DC_PUSH_IN(l->a, all, ((point){x->mem, x->begin}));
            DC_PUSH_IN(l->a, all, ((point){x->mem, x->end}));
        }
    if (all.n > 1)
        qsort(all.at, all.n, sizeof *all.at, by_address);
    for (uint32_t i = 0; i < all.n; i++)
        if (i == 0 || by_address(&all.at[i], &all.at[kept - 1]) != 0)
            all.at[kept++] = all.at[i];
    l->point = all.at;
    l->npoint = kept;
}

/* Each memory begins as one segment that nothing has touched. */
static void make_segments(list *l)
{
    l->begins = dc_bitset_make(l->a, l->npoint);
    l->past = DC_NEW_ARRAY(l->a, past *, l->npoint);
    for (uint32_t i = 0; i < l->npoint; i++)
        if (i == 0 || l->point[i].mem != l->point[i - 1].mem)
            dc_bitset_add(&l->begins, i);
}

/* The number of a point, where a segment begins from now on. */
static uint32_t split_at(list *l, uint32_t mem, size_t at)
{
    const point want = {mem, at};
    uint32_t low = 0, high = l->npoint - 1;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (by_address(&l->point[mid], &want) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (!dc_bitset_has(&l->begins, low)) {
        l->past[low] = l->past[dc_bitset_last(&l->begins, low)];
        dc_bitset_add(&l->begins, low);
    }
    return low;
}

/* ---- what an access meets -------------------------------------------------------------------- */

static uint32_t kind_of(const dc_access *x)
{
    return !x->write ? READS : x->join == 0 ? WRITES : x->join;
}

static void add_dep(list *l, uint32_t unit, uint32_t found)
{
    if (found == NONE || found == unit || l->found_by[found] == unit + 1)
        return;
    l->found_by[found] = unit + 1;
    DC_PUSH_IN(l->a, l->found, found);
}

/* Segments share what they have kept since before they were split: it is looked at once. */
static void look_back(list *l, uint32_t unit, uint32_t kind, past *p)
{
    while (p != NULL && p->seen != l->seen) {
        p->seen = l->seen;
        if (p->kind != kind || kind == WRITES)
            add_dep(l, unit, p->unit);
        p = p->kind == kind ? p->next_kind : p->next;
    }
}

static past *keep(list *l, uint32_t unit, uint32_t kind, past *before)
{
    if (before != NULL && before->unit == unit && before->kind == kind)
        return before;
    past *p = DC_NEW_ARRAY(l->a, past, 1);
    *p = (past){.unit = unit, .kind = kind, .next = before, .next_kind = before};
    if (before != NULL && before->kind == kind)
        p->next_kind = before->next_kind;
    return p;
}

static void meet_past(list *l, uint32_t unit, const dc_access *x)
{
    const uint32_t kind = kind_of(x);
    past *was = NULL, *now = NULL;
    if (x->begin >= x->end)
        return;
    const uint32_t begin = split_at(l, x->mem, x->begin), end = split_at(l, x->mem, x->end);
    l->seen++;
    for (uint32_t s = begin; s < end; s = dc_bitset_first(&l->begins, s + 1)) {
        look_back(l, unit, kind, l->past[s]);
        if (s == begin || (l->past[s] != was && kind != WRITES)) {
            was = l->past[s];
            now = l->past[s] = keep(l, unit, kind, kind == WRITES ? NULL : was);
        } else { /* it is as the one before it */
            dc_bitset_drop(&l->begins, s);
        }
    }
    DC_ASSERT(now != NULL, "unit %u touches nothing", unit);
}

/* ---- what can be spared ---------------------------------------------------------------------- */

static uint64_t *row(const list *l, uint32_t unit)
{
    return l->reach + (size_t)(unit % (l->nword * 64)) * l->nword;
}

static bool reaches(const list *l, uint32_t from, uint32_t to)
{
    const uint32_t back = from - to - 1;
    return back < l->nword * 64 && (row(l, from)[back / 64] >> (back % 64) & 1) != 0;
}

/* Further back than the window, a dep is left that could be spared. */
static void inherit_deps(list *l, uint32_t unit, uint32_t before)
{
    const uint32_t back = unit - before, by = back / 64, bit = back % 64;
    uint64_t *to = row(l, unit);
    const uint64_t *from = row(l, before);
    if (back > l->nword * 64)
        return;
    to[(back - 1) / 64] |= UINT64_C(1) << ((back - 1) % 64);
    for (uint32_t w = l->nword; w-- > by;) {
        to[w] |= from[w - by] << bit;
        if (bit > 0 && w > by)
            to[w] |= from[w - by - 1] >> (64 - bit);
    }
}

static int latest_first(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a < b) - (a > b);
}

/* Of the units found, the latest first, those that no later one has waited for. */
static void reduce(list *l, uint32_t unit, dc_deps *out)
{
    memset(row(l, unit), 0, l->nword * sizeof *l->reach);
    if (l->found.n > 1)
        qsort(l->found.at, l->found.n, sizeof *l->found.at, latest_first);
    l->kept.n = 0;
    for (uint32_t i = 0; i < l->found.n; i++)
        if (!reaches(l, unit, l->found.at[i])) {
            inherit_deps(l, unit, l->found.at[i]);
            DC_PUSH_IN(l->a, l->kept, l->head[l->found.at[i]]);
        }
    uint32_t *deps = DC_NEW_ARRAY(l->a, uint32_t, l->kept.n);
    for (uint32_t i = 0; i < l->kept.n; i++)
        deps[i] = l->kept.at[l->kept.n - 1 - i];
    *out = (dc_deps){l->kept.n, deps};
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void visit_unit(list *l, uint32_t unit, dc_deps *out)
{
    const dc_visit *v = l->v + l->head[unit];
    bool check = false, sets = false;
    l->found.n = 0;
    for (uint32_t i = 0; i < span(v); i++) {
        check |= v[i].check;
        sets |= v[i].sets;
        for (uint32_t k = 0; k < v[i].naccess; k++)
            meet_past(l, unit, &v[i].access[k]);
    }
    if (check || sets)
        add_dep(l, unit, l->check);
    reduce(l, unit, &out[l->head[unit]]);
    if (check)
        l->check = unit;
}

void dc_command_deps_find(dc_arena *a, const dc_visit *v, uint32_t n, dc_deps *out)
{
    list l = {.a = a, .v = v, .check = NONE};
    for (uint32_t i = 0; i < n; i += span(&v[i]))
        l.nunit++;
    l.nword = (l.nunit < WINDOW ? l.nunit + 63 : WINDOW) / 64;
    l.head = DC_NEW_ARRAY(a, uint32_t, l.nunit);
    l.found_by = DC_NEW_ARRAY(a, uint32_t, l.nunit);
    l.reach = DC_NEW_ARRAY(a, uint64_t, (size_t)l.nword * l.nword * 64);
    for (uint32_t i = 0, unit = 0; i < n; i += span(&v[i]))
        l.head[unit++] = i;
    list_points(&l, n);
    make_segments(&l);
    for (uint32_t unit = 0; unit < l.nunit; unit++)
        visit_unit(&l, unit, out);
    for (uint32_t i = 0; i < n; i += span(&v[i])) {
        if (v[i].nbody > 0)
            dc_command_deps_find(a, v + i + 1, v[i].nbody, out + i + 1);
        if (v[i].nelse > 0)
            dc_command_deps_find(a, v + i + 1 + v[i].nbody, v[i].nelse, out + i + 1 + v[i].nbody);
    }
}
