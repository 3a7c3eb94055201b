#include "jit/deps.h"

#include "core/vec.h"

#define NONE UINT32_MAX

typedef struct past { /* an access of an item that is known already */
    uint32_t unit;
    dc_access access;
} past;

typedef DC_VEC(past) pasts;

/* One list: its items, bodies included as parts of their heads, are units. */
typedef struct list {
    dc_arena *a;
    const dc_visit *v;
    uint32_t nunit;
    uint32_t *head;  /* by unit: position of its first item */
    uint64_t *reach; /* by unit: nword words, a bit for every unit that comes before it anyway */
    uint32_t nword;
    pasts *by_mem;  /* what later items may still meet */
    uint32_t check; /* the last unit that checks */
    DC_VEC(uint32_t) found;
} list;

static uint32_t span(const dc_visit *v)
{
    return 1 + v->nbody + v->nelse;
}

static bool meet(const dc_access *a, const dc_access *b)
{
    return (a->write || b->write) && (a->join == 0 || a->join != b->join) && a->begin < b->end &&
           b->begin < a->end;
}

/* Nothing can depend on `old` that does not depend on `now`, which depends on it. */
static bool covers(const dc_access *now, const dc_access *old)
{
    return now->write && now->join == 0 && now->begin <= old->begin && now->end >= old->end;
}

static void add(list *l, uint32_t unit)
{
    if (unit != NONE)
        DC_PUSH_IN(l->a, l->found, unit);
}

static void meet_past(list *l, uint32_t unit, const dc_access *x)
{
    pasts *p = &l->by_mem[x->mem];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const past old = p->at[i];
        if (old.unit != unit && meet(&old.access, x))
            add(l, old.unit);
        if (old.unit == unit || !covers(x, &old.access))
            p->at[kept++] = old;
    }
    p->n = kept;
    DC_PUSH_IN(l->a, *p, ((past){unit, *x}));
}

static bool reaches(const list *l, uint32_t from, uint32_t to)
{
    return (l->reach[(size_t)from * l->nword + to / 64] >> (to % 64) & 1) != 0;
}

static void join(list *l, uint32_t unit, uint32_t before)
{
    uint64_t *to = l->reach + (size_t)unit * l->nword;
    const uint64_t *from = l->reach + (size_t)before * l->nword;
    for (uint32_t w = 0; w < l->nword; w++)
        to[w] |= from[w];
    to[before / 64] |= (uint64_t)1 << (before % 64);
}

/* Of the units found, the latest first, those that no later one has waited for. */
static void reduce(list *l, uint32_t unit, dc_deps *out)
{
    uint32_t *kept = DC_NEW_ARRAY(l->a, uint32_t, l->found.n);
    uint32_t n = 0;
    for (uint32_t i = 1; i < l->found.n; i++) { /* insertion: few, and mostly in order */
        const uint32_t x = l->found.at[i];
        uint32_t k = i;
        for (; k > 0 && l->found.at[k - 1] < x; k--)
            l->found.at[k] = l->found.at[k - 1];
        l->found.at[k] = x;
    }
    for (uint32_t i = 0; i < l->found.n; i++)
        if (!reaches(l, unit, l->found.at[i])) {
            join(l, unit, l->found.at[i]);
            kept[n++] = l->head[l->found.at[i]];
        }
    for (uint32_t i = 0; i < n / 2; i++) {
        const uint32_t x = kept[i];
        kept[i] = kept[n - 1 - i];
        kept[n - 1 - i] = x;
    }
    *out = (dc_deps){n, kept};
}

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
        add(l, l->check);
    reduce(l, unit, &out[l->head[unit]]);
    if (check)
        l->check = unit;
}

static void find_in(dc_arena *a, const dc_visit *v, uint32_t n, uint32_t nmem, dc_deps *out)
{
    list l = {.a = a, .v = v, .check = NONE};
    for (uint32_t i = 0; i < n; i += span(&v[i]))
        l.nunit++;
    l.nword = (l.nunit + 63) / 64;
    l.head = DC_NEW_ARRAY(a, uint32_t, l.nunit);
    l.reach = DC_NEW_ARRAY(a, uint64_t, (size_t)l.nunit * l.nword);
    l.by_mem = DC_NEW_ARRAY(a, pasts, nmem);
    for (uint32_t i = 0, unit = 0; i < n; i += span(&v[i]))
        l.head[unit++] = i;
    for (uint32_t unit = 0; unit < l.nunit; unit++)
        visit_unit(&l, unit, out);
    for (uint32_t i = 0; i < n; i += span(&v[i])) {
        if (v[i].nbody > 0)
            find_in(a, v + i + 1, v[i].nbody, nmem, out + i + 1);
        if (v[i].nelse > 0)
            find_in(a, v + i + 1 + v[i].nbody, v[i].nelse, nmem, out + i + 1 + v[i].nbody);
    }
}

void dc_deps_find(dc_arena *a, const dc_visit *v, uint32_t n, dc_deps *out)
{
    uint32_t nmem = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < v[i].naccess; k++)
            if (v[i].access[k].mem >= nmem)
                nmem = v[i].access[k].mem + 1;
    find_in(a, v, n, nmem, out);
}
