/*
 * What the accesses of warps cost: the n-th access of each lane at one place of the text is one
 * request. Requests are gathered while a block runs and counted when it ends.
 */
#include <stdlib.h>
#include <string.h>

#include "engine_impl.h"

enum { MOST_SITES = 1024 };

typedef struct request {
    uintptr_t at[32];
    uint32_t mask;
} request;

typedef struct site {
    engine_site s; /* first: engine_traffic gives these out, packed */
    request *q[WARPS];
    uint32_t n[WARPS], room[WARPS];
    uint32_t done[ENGINE_MOST_THREADS]; /* accesses of each thread in this block */
} site;

bool engine_counts_traffic;
static site *sites[MOST_SITES]; /* by hash */
static engine_site out[MOST_SITES];

void engine_traffic_open(void)
{
    for (unsigned i = 0; i < MOST_SITES; i++) {
        if (sites[i] == NULL)
            continue;
        for (unsigned w = 0; w < WARPS; w++)
            free(sites[i]->q[w]);
        free(sites[i]);
        sites[i] = NULL;
    }
}

static site *site_of(const void *pc, bool store, bool shared, unsigned bytes)
{
    const uintptr_t key = (uintptr_t)pc * 4 + (store ? 2 : 0) + (shared ? 1 : 0);
    size_t h = key * UINT64_C(0x9e3779b97f4a7c15) >> 54;
    for (unsigned tries = 0; tries < MOST_SITES; tries++, h = (h + 1) % MOST_SITES) {
        site *s = sites[h];
        if (s == NULL) {
            s = sites[h] = calloc(1, sizeof *s);
            s->s = (engine_site){.pc = pc, .store = store, .shared = shared, .bytes = bytes};
            return s;
        }
        if (s->s.pc == pc && s->s.store == store && s->s.shared == shared && s->s.bytes == bytes)
            return s;
    }
    engine_fail(pc, "more than %d places with accesses", MOST_SITES);
}

void engine_traffic_note(const void *p, unsigned bytes, bool store, bool shared, const void *pc)
{
    const unsigned me = eng.rt.now->number, w = me / 32;
    site *s = site_of(pc, store, shared, bytes);
    const uint32_t k = s->done[me]++;
    if (k >= s->n[w]) {
        if (k >= s->room[w]) {
            s->room[w] = 2 * k + 16;
            s->q[w] = realloc(s->q[w], s->room[w] * sizeof(request));
        }
        s->q[w][s->n[w]++].mask = 0;
    }
    s->q[w][k].mask |= 1u << (me & 31);
    s->q[w][k].at[me & 31] = (uintptr_t)p;
}

/* Counting ---------------------------------------------------------------------------------- */

typedef struct set {
    uintptr_t at[256]; /* open addressing; 0: free */
    unsigned n;
} set;

static bool enter(set *s, uintptr_t x)
{
    unsigned h = (unsigned)(x * UINT64_C(0x9e3779b97f4a7c15) >> 56);
    while (s->at[h] != 0 && s->at[h] != x + 1)
        h = (h + 1) % 256;
    if (s->at[h] != 0)
        return false;
    s->at[h] = x + 1;
    s->n++;
    return true;
}

static unsigned distinct(const request *q, unsigned bytes, unsigned unit)
{
    set s = {.n = 0};
    for (unsigned l = 0; l < 32; l++)
        for (uintptr_t x = q->at[l] / unit;
             (q->mask >> l & 1) && x <= (q->at[l] + bytes - 1) / unit; x++)
            enter(&s, x);
    return s.n;
}

/*
 * Each of the 32 banks gives one word in a pass, to all who want that word. Wide accesses go by
 * halves and quarters of the warp; so do the rows of ldmatrix, a matrix of 8 rows at a time.
 */
static unsigned passes(const request *q, unsigned bytes)
{
    const unsigned words = bytes < 4 ? 1 : bytes / 4, part = 32 / words;
    unsigned all = 0;
    for (unsigned from = 0; from < 32; from += part) {
        unsigned n[32] = {0}, most = 0;
        set s = {.n = 0};
        for (unsigned l = from; l < from + part; l++)
            for (unsigned k = 0; (q->mask >> l & 1) && k < words; k++) {
                const uintptr_t word = q->at[l] / 4 + k;
                if (enter(&s, word) && ++n[word % 32] > most)
                    most = n[word % 32];
            }
        all += most;
    }
    return all;
}

void engine_traffic_end_block(void)
{
    for (unsigned i = 0; i < MOST_SITES; i++) {
        site *s = sites[i];
        for (unsigned w = 0; s != NULL && w < WARPS; w++) {
            for (uint32_t k = 0; k < s->n[w]; k++) {
                const request *q = &s->q[w][k];
                const unsigned words = distinct(q, s->s.bytes, 4);
                s->s.requests++;
                s->s.units += s->s.shared ? passes(q, s->s.bytes) : distinct(q, s->s.bytes, 32);
                s->s.least += s->s.shared ? (words + 31) / 32 : (words + 7) / 8;
                s->s.moved += (uint64_t)s->s.bytes * (unsigned)__builtin_popcount(q->mask);
            }
            s->n[w] = 0;
        }
        if (s != NULL)
            memset(s->done, 0, sizeof s->done);
    }
}

static int by_pc(const void *a, const void *b)
{
    const engine_site *x = a, *y = b;
    if (x->pc != y->pc)
        return (uintptr_t)x->pc < (uintptr_t)y->pc ? -1 : 1;
    return (int)x->store - (int)y->store;
}

size_t engine_traffic(const engine_site **p)
{
    size_t n = 0;
    for (unsigned i = 0; i < MOST_SITES; i++)
        if (sites[i] != NULL)
            out[n++] = sites[i]->s;
    qsort(out, n, sizeof *out, by_pc);
    *p = out;
    return n;
}
