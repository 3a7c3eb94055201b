#include "jit/plan/bitset.h"

dc_bitset dc_bitset_make(dc_arena *a, uint32_t n)
{
    dc_bitset b = {.nlevel = 0};
    do {
        n = n / 64 + (n % 64 != 0 || n == 0);
        b.word[b.nlevel] = DC_NEW_ARRAY(a, uint64_t, n);
        b.nword[b.nlevel++] = n;
    } while (n > 1);
    return b;
}

bool dc_bitset_has(const dc_bitset *b, uint32_t i)
{
    return (b->word[0][i / 64] >> (i % 64) & 1) != 0;
}

void dc_bitset_add(dc_bitset *b, uint32_t i)
{
    for (int k = 0; k < b->nlevel; k++, i /= 64)
        b->word[k][i / 64] |= UINT64_C(1) << (i % 64);
}

void dc_bitset_drop(dc_bitset *b, uint32_t i)
{
    for (int k = 0; k < b->nlevel; k++, i /= 64) {
        b->word[k][i / 64] &= ~(UINT64_C(1) << (i % 64));
        if (b->word[k][i / 64] != 0)
            return;
    }
}

uint32_t dc_bitset_last(const dc_bitset *b, uint32_t i)
{
    int k = 0;
    uint64_t rest = b->word[0][i / 64] & UINT64_MAX >> (63 - i % 64);
    while (rest == 0) { /* up, until something is below i */
        i /= 64;
        if (++k == b->nlevel)
            return DC_BITSET_NONE;
        rest = b->word[k][i / 64] & ((UINT64_C(1) << (i % 64)) - 1);
    }
    i /= 64;
    for (;; rest = b->word[--k][i]) { /* and down, always to the last */
        i = i * 64 + 63 - (uint32_t)__builtin_clzll(rest);
        if (k == 0)
            return i;
    }
}

uint32_t dc_bitset_first(const dc_bitset *b, uint32_t i)
{
    int k = 0;
    uint64_t rest = i / 64 < b->nword[0] ? b->word[0][i / 64] & UINT64_MAX << (i % 64) : 0;
    while (rest == 0) {
        i /= 64;
        if (++k == b->nlevel)
            return DC_BITSET_NONE;
        if (i / 64 < b->nword[k] && i % 64 < 63)
            rest = b->word[k][i / 64] & UINT64_MAX << (i % 64 + 1);
    }
    i /= 64;
    for (;; rest = b->word[--k][i]) {
        i = i * 64 + (uint32_t)__builtin_ctzll(rest);
        if (k == 0)
            return i;
    }
}
