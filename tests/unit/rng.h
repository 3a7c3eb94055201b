/*
 * Random numbers for generated tests (splitmix64), and the seed: argument 1, else DEEPC_TEST_SEED,
 * else the test's own; printed.
 */
#ifndef DC_TESTS_RNG_H
#define DC_TESTS_RNG_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct rng {
    uint64_t state;
} rng;

static inline uint64_t rng_next(rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline int rng_below(rng *r, int n) /* 0..n-1 */
{
    return (int)(rng_next(r) % (uint64_t)n);
}

static inline double rng_uniform(rng *r, double lo, double hi)
{
    return lo + (hi - lo) * ((double)(rng_next(r) >> 11) * 0x1p-53);
}

static inline uint64_t rng_seed(int argc, char **argv, uint64_t otherwise)
{
    const char *given = argc > 1 ? argv[1] : getenv("DEEPC_TEST_SEED");
    const uint64_t seed = given != NULL && given[0] != '\0' ? strtoull(given, NULL, 0) : otherwise;
    printf("seed %llu\n", (unsigned long long)seed);
    return seed;
}

#endif
