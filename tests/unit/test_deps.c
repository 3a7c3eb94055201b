/*
 * Dependencies of commands: random lists with bodies against the definition, tried on every pair.
 * Everything that has to wait does, by a chain of deps; nothing else does; no dep can be spared. In long lists, none on
 * a command near by.
 * The seed is printed; argument 1 sets it.
 */
#include "core/base/vec.h"
#include "jit/plan/bitset.h"
#include "jit/plan/command_deps.h"

#include <stdlib.h>
#include <string.h>

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
        x[i].join = x[i].write && rng_below(r, 3) == 0 ? 1 + (uint32_t)rng_below(r, 2) : 0;
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
    return a->mem == b->mem && a->begin < b->end && b->begin < a->end &&
           (a->join == 0 || a->join != b->join);
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
        dc_command_deps_find(&l.arena, l.v, l.n, l.deps);
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
    dc_command_deps_find(&a, v, N, deps);
    CHECK_EQ(deps[0].n, 0);
    for (uint32_t i = 1; i < N; i++)
        CHECK(deps[i].n == 1 && deps[i].at[0] == i - 1);
    dc_command_deps_find(&a, v, 0, deps); /* nothing to do */
    dc_arena_free(&a);
}

/* Long lists, in which commands touch what others near by or far off have: by a table of what comes before what. */
static bool long_list(uint64_t seed, int places)
{
    enum { N = 3000, WORDS = N / 64 + 1, NEAR = 1000 };
    static uint64_t before[N][WORDS];
    dc_arena a = {0};
    rng r = {seed};
    bool ok = true;
    dc_access *x = DC_NEW_ARRAY(&a, dc_access, 2 * N);
    dc_visit *v = DC_NEW_ARRAY(&a, dc_visit, N);
    dc_deps *deps = DC_NEW_ARRAY(&a, dc_deps, N);
    for (uint32_t i = 0; i < N; i++) {
        for (int k = 0; k < 2; k++) {
            const size_t begin = (size_t)rng_below(&r, places);
            x[2 * i + (uint32_t)k] =
                (dc_access){.write = rng_below(&r, 2) == 0,
                            .begin = begin,
                            .end = begin + 1 + (size_t)rng_below(&r, i % 50 == 0 ? places : 3)};
        }
        v[i] = (dc_visit){.naccess = 2, .access = x + 2 * i};
    }
    dc_command_deps_find(&a, v, N, deps);
    memset(before, 0, sizeof before);
    for (uint32_t b = 0; b < N && ok; b++) {
        for (uint32_t d = 0; d < deps[b].n; d++) { /* by way of later ones? */
            const uint32_t from = deps[b].at[d];
            for (uint32_t e = d + 1; e < deps[b].n && b - from < NEAR; e++)
                ok = ok && (before[deps[b].at[e]][from / 64] >> (from % 64) & 1) == 0;
            ok = ok && has_to_wait(&v[from], &v[b]);
        }
        for (uint32_t d = 0; d < deps[b].n; d++) {
            const uint32_t from = deps[b].at[d];
            for (uint32_t w = 0; w < WORDS; w++)
                before[b][w] |= before[from][w];
            before[b][from / 64] |= UINT64_C(1) << (from % 64);
        }
        for (uint32_t c = 0; c < b && ok; c++)
            ok = !has_to_wait(&v[c], &v[b]) || (before[b][c / 64] >> (c % 64) & 1) != 0;
    }
    dc_arena_free(&a);
    return CHECK(ok);
}

static void test_long(uint64_t seed)
{
    static const int places[] = {4, 100, 3000, 20000};
    for (size_t i = 0; i < DC_COUNTOF(places); i++)
        if (!long_list(seed + i, places[i]))
            printf("seed %llu, %d places\n", (unsigned long long)seed, places[i]);
}

/* Members up to a number and from it on, beside a list of bools. */
static void test_sets(uint64_t seed)
{
    rng r = {seed};
    for (uint32_t n = 1; n <= 300000; n = n < 200 ? n + 1 : n * 7) {
        dc_arena a = {0};
        bool *in = DC_NEW_ARRAY(&a, bool, n), ok = true;
        dc_bitset b = dc_bitset_make(&a, n);
        for (int i = 0; i < 200 && ok; i++) {
            const uint32_t x = (uint32_t)rng_below(&r, (int)n), y = (uint32_t)rng_below(&r, (int)n);
            in[x] = rng_below(&r, 2) == 0;
            (in[x] ? dc_bitset_add : dc_bitset_drop)(&b, x);
            uint32_t last = y, first = y;
            while (last != DC_BITSET_NONE && !in[last])
                last--;
            while (first < n && !in[first])
                first++;
            ok &= CHECK(dc_bitset_has(&b, y) == in[y]) && CHECK_EQ(dc_bitset_last(&b, y), last) &&
                  CHECK_EQ(dc_bitset_first(&b, y), first < n ? first : DC_BITSET_NONE);
        }
        CHECK_EQ(dc_bitset_first(&b, n), DC_BITSET_NONE);
        dc_arena_free(&a);
    }
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 7);
    test_chain();
    test_random(seed);
    test_long(seed);
    test_sets(seed);
    return t_done();
}
