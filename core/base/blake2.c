#include "core/base/blake2.h"

#include <string.h>

enum { BLOCK = 128, ROUNDS = 12, DIGEST = 16 };

static const uint64_t iv[8] = {UINT64_C(0x6a09e667f3bcc908), UINT64_C(0xbb67ae8584caa73b),
                               UINT64_C(0x3c6ef372fe94f82b), UINT64_C(0xa54ff53a5f1d36f1),
                               UINT64_C(0x510e527fade682d1), UINT64_C(0x9b05688c2b3e6c1f),
                               UINT64_C(0x1f83d9abfb41bd6b), UINT64_C(0x5be0cd19137e2179)};

/* Rounds 10 and 11 are as 0 and 1. */
static const uint8_t sigma[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                      {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                      {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                      {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                      {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                      {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                      {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                      {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                      {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                      {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

static uint64_t rotate(uint64_t v, int right)
{
    return v >> right | v << (64 - right);
}

static inline void mix(uint64_t *v, int a, int b, int c, int d, uint64_t x, uint64_t y)
{
    v[a] += v[b] + x;
    v[d] = rotate(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = rotate(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 63);
}

/* `counted`: bytes up to the end of this block. */
static void compress(uint64_t h[8], const unsigned char *block, uint64_t counted, bool last)
{
    uint64_t v[16], m[16];
    memcpy(m, block, sizeof m); /* little-endian, as all machines of ours */
    memcpy(v, h, 8 * sizeof *v);
    memcpy(v + 8, iv, sizeof iv);
    v[12] ^= counted;
    v[14] ^= last ? UINT64_MAX : 0;
    /* Unrolled, so that all places are known: v stays in registers. */
#pragma GCC unroll 12
    for (int r = 0; r < ROUNDS; r++) {
        const uint8_t *s = sigma[r % 10];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            mix(v, i, i + 4, i + 8, i + 12, m[s[2 * i]], m[s[2 * i + 1]]);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[s[8 + 2 * i]],
                m[s[9 + 2 * i]]);
    }
    for (int i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[i + 8];
}

void dc_blake2(const void *bytes, size_t n, uint64_t out[2])
{
    const unsigned char *at = bytes;
    unsigned char last[BLOCK] = {0};
    uint64_t h[8], counted = 0;
    memcpy(h, iv, sizeof h);
    h[0] ^= 0x01010000 ^ DIGEST; /* no key, one lane */
    for (; n > BLOCK; n -= BLOCK, at += BLOCK)
        compress(h, at, counted += BLOCK, false);
    if (n > 0)
        memcpy(last, at, n);
    compress(h, last, counted + n, true);
    memcpy(out, h, DIGEST);
}
