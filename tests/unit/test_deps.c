/*
 * Dependencies of items: random lists with bodies against the definition, tried on every pair.
 * Everything that has to wait does, by a chain of deps; nothing else does; no dep can be spared.
 * The seed is printed; argument 1 sets it.
 */
#include "core/vec.h"
#include "jit/deps.h"

#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/rng.h"

enum { MANY = 24, MEMS = 4, ROUNDS = 2000 };

typedef struct list {
    dc_arena arena;
    dc_visit v[MANY];
    dc_deps deps[MANY];
    uint32_t n;
} list;

static uint32_t span(const dc_visit *v)
{
    return 1 + v->nbody + v->nelse;
}

/* ---- random lists ---- */

static void random_accesses(list *l, dc_visit *v, rng *r)
{
    dc_access *x = DC_NEW_ARRAY(&l->arena, dc_access, 3);
    v->naccess = (uint32_t)rng_below(r, 4);
    v->access = x;
    for (uint32_t i = 0; i < v->naccess; i++) {
        x[i].mem = (uint32_t)rng_below(r, MEMS);
        x[i].write = rng_below(r, 3) == 0;
        x[i].begin = (size_t)rng_below(r, 8);
        x[i].end = rng_below(r, 5) == 0 ? SIZE_MAX : x[i].begin + 1 + (size_t)rng_below(r, 4);
    }
    v->check = rng_below(r, 8) == 0;
    v->sets = rng_below(r, 6) == 0;
}

/* Items [begin, end); bodies at most two deep. */
static void random_list(list *l, uint32_t begin, uint32_t end, int depth, rng *r)
{
    for (uint32_t i = begin; i < end; i += span(&l->v[i])) {
        const int left = (int)(end - i) - 1;
        random_accesses(l, &l->v[i], r);
        if (depth == 2 || left == 0 || rng_below(r, 5) > 0)
            continue;
        l->v[i].nbody = (uint32_t)rng_below(r, left + 1);
        l->v[i].nelse = (uint32_t)rng_below(r, left + 1 - (int)l->v[i].nbody);
        random_list(l, i + 1, i + 1 + l->v[i].nbody, depth + 1, r);
        random_list(l, i + 1 + l->v[i].nbody, i + span(&l->v[i]), depth + 1, r);
    }
}

/* ---- the definition ---- */

static bool overlap(const dc_access *a, const dc_access *b)
{
    return a->mem == b->mem && a->begin < b->end && b->begin < a->end;
}

static bool has_to_wait(const dc_visit *a, const dc_visit *b)
{
    bool checks = false, sets = false, check = false;
    for (uint32_t i = 0; i < span(a); i++)
        checks |= a[i].check;
    for (uint32_t i = 0; i < span(b); i++) {
        sets |= b[i].sets;
        check |= b[i].check;
    }
    if (checks && (sets || check))
        return true;
    for (uint32_t i = 0; i < span(a); i++)
        for (uint32_t k = 0; k < span(b); k++)
            for (uint32_t x = 0; x < a[i].naccess; x++)
                for (uint32_t y = 0; y < b[k].naccess; y++)
                    if (overlap(&a[i].access[x], &b[k].access[y]) &&
                        (a[i].access[x].write || b[k].access[y].write))
                        return true;
    return false;
}

/* Is there a way from unit b back to unit a of one list, by its deps (but not the direct one)? */
static bool leads(const dc_deps *deps, uint32_t b, uint32_t a, bool direct)
{
    for (uint32_t d = 0; d < deps[b].n; d++) {
        const uint32_t x = deps[b].at[d];
        if ((x == a && direct) || (x != a && x > a && leads(deps, x, a, true)))
            return true;
    }
    return false;
}

static bool by_definition(const dc_visit *v, uint32_t b, uint32_t a)
{
    if (has_to_wait(&v[a], &v[b]))
        return true;
    for (uint32_t x = a + span(&v[a]); x < b; x += span(&v[x]))
        if (has_to_wait(&v[x], &v[b]) && by_definition(v, x, a))
            return true;
    return false;
}

static bool right(const dc_visit *v, const dc_deps *deps, uint32_t n)
{
    bool ok = true;
    for (uint32_t b = 0; b < n; b += span(&v[b])) {
        for (uint32_t a = 0; a < b; a += span(&v[a]))
            ok &= CHECK(by_definition(v, b, a) == leads(deps, b, a, true));
        for (uint32_t d = 0; d < deps[b].n; d++) {
            ok &= CHECK(d == 0 || deps[b].at[d - 1] < deps[b].at[d]);
            ok &= CHECK(!leads(deps, b, deps[b].at[d], false)); /* it cannot be spared */
        }
        ok = ok && right(v + b + 1, deps + b + 1, v[b].nbody) &&
             right(v + b + 1 + v[b].nbody, deps + b + 1 + v[b].nbody, v[b].nelse);
    }
    return ok;
}

static void test_random(uint64_t seed)
{
    uint32_t found = 0, inside = 0;
    bool ok = true;
    for (uint64_t i = 0; i < ROUNDS && ok; i++) {
        rng r = {seed + i};
        list l = {.n = (uint32_t)rng_below(&r, MANY)};
        random_list(&l, 0, l.n, 0, &r);
        dc_deps_find(&l.arena, l.v, l.n, l.deps);
        ok = right(l.v, l.deps, l.n);
        for (uint32_t k = 0; k < l.n; k++) {
            found += l.deps[k].n;
            inside += l.v[k].nbody > 0 && l.deps[k + 1].n == 0;
        }
        if (!ok)
            printf("seed %llu\n", (unsigned long long)(seed + i));
        dc_arena_free(&l.arena);
    }
    CHECK(found > ROUNDS && inside > 0); /* the lists reach all of it */
}

/* ---- directed ---- */

static void test_chain(void)
{
    enum { N = 2000 };
    static const dc_access cell = {.mem = 0, .write = true, .end = 4};
    dc_arena a = {0};
    dc_visit *v = DC_NEW_ARRAY(&a, dc_visit, N);
    dc_deps *deps = DC_NEW_ARRAY(&a, dc_deps, N);
    for (uint32_t i = 0; i < N; i++)
        v[i] = (dc_visit){.naccess = 1, .access = &cell};
    dc_deps_find(&a, v, N, deps);
    CHECK_EQ(deps[0].n, 0);
    for (uint32_t i = 1; i < N; i++)
        CHECK(deps[i].n == 1 && deps[i].at[0] == i - 1);
    dc_deps_find(&a, v, 0, deps); /* nothing to do */
    dc_arena_free(&a);
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 7);
    test_chain();
    test_random(seed);
    return t_done();
}
