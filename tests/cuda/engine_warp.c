/*
 * What the lanes of a warp do together. Each puts its part on the warp's table, all meet once, and
 * each reads what it needs; two tables in turn make one meeting enough.
 */
#include <string.h>

#include "engine_impl.h"

unsigned long long engine_exchange(unsigned mask, unsigned long long v, int lane, int line)
{
    fiber *me = engine_me();
    const unsigned turn = me->turn++ & 1, from = (me->view.number & ~31u) + (unsigned)lane;
    me->slot[turn] = v;
    engine_meet(mask, line);
    if (from >= eng.n || (mask >> lane & 1) == 0)
        engine_fail(NULL, "line %d: a shuffle reads lane %d, which takes no part", line, lane);
    return eng.f[from].slot[turn];
}

unsigned engine_ballot(unsigned mask, int yes, int line)
{
    fiber *me = engine_me();
    const unsigned turn = me->turn++ & 1, first = me->view.number & ~31u;
    unsigned all = 0;
    me->slot[turn] = (uint64_t)yes;
    engine_meet(mask, line);
    for (unsigned i = 0; i < 32 && first + i < eng.n; i++)
        if ((mask >> i & 1) != 0 && eng.f[first + i].slot[turn] != 0)
            all |= 1u << i;
    return all;
}

/* Numbers ----------------------------------------------------------------------------------- */

static float of_bits(uint32_t b)
{
    float f;
    memcpy(&f, &b, sizeof f);
    return f;
}

static float of_f16(uint16_t x)
{
    const uint32_t sign = (uint32_t)(x >> 15) << 31, exponent = x >> 10 & 31, mantissa = x & 1023;
    if (exponent == 0) { /* times 2^-24 */
        const float f = (float)mantissa * 0x1p-24f;
        return sign != 0 ? -f : f;
    }
    return of_bits(sign | (exponent == 31 ? 255u << 23 : (exponent + 112) << 23) | mantissa << 13);
}

float engine_of_half(uint16_t x, unsigned kind)
{
    return kind == MMA_M16N8K16_BF16 ? of_bits((uint32_t)x << 16) : of_f16(x);
}

/* Matrices ---------------------------------------------------------------------------------- */

/* 8 x 8 numbers of 16 bits each: lane 8m+r names row r of matrix m, lane gets two numbers of each. */
void engine_ldmatrix(unsigned *d, const void *row, int n, int transposed, int line)
{
    fiber *me = engine_me();
    const unsigned turn = me->turn++ & 1, lane = me->view.number & 31;
    const void *pc = __builtin_return_address(0);
    warp_table *w = &eng.warp[me->view.number / 32];
    if ((int)lane < 8 * n) {
        if (((uintptr_t)row & 15) != 0)
            engine_fail(pc, "line %d: a row of ldmatrix is not aligned to 16 bytes", line);
        if (!engine_is_shared(row))
            engine_fail(pc, "line %d: a row of ldmatrix is not in shared memory", line);
        if (eng.l->checked)
            engine_access(row, 16, 0, pc);
        memcpy(w->row[turn][lane], row, 16);
    }
    engine_meet(0xffffffffu, line);
    for (int m = 0; m < n; m++) {
        d[m] = 0;
        for (unsigned e = 0; e < 2; e++) {
            const unsigned pair = 2 * (lane & 3) + e, r = transposed ? pair : lane >> 2;
            const unsigned c = transposed ? lane >> 2 : pair;
            uint16_t x;
            memcpy(&x, w->row[turn][8 * (unsigned)m + r] + 2 * c, 2);
            d[m] |= (unsigned)x << 16 * e;
        }
    }
}

/*
 * Element (row, k) of a and (k, col) of b in the fragments of mma.sync for sm_80. An element of e
 * bytes: a register holds 4/e neighbours in k, a lane four of these; `half` is the k of the first
 * half of the registers.
 */
static uint32_t a_of(const uint32_t a[32][4], unsigned row, unsigned k, unsigned per, unsigned bits)
{
    const unsigned half = 4 * per, lane = (row & 7) * 4 + k % half / per;
    const uint32_t word = a[lane][(row >> 3) + 2 * (k / half)];
    return bits == 32 ? word : word >> bits * (k % per) & ((1u << bits) - 1);
}

static uint32_t b_of(const uint32_t b[32][4], unsigned col, unsigned k, unsigned per, unsigned bits)
{
    const unsigned half = 4 * per, lane = col * 4 + k % half / per;
    const uint32_t word = b[lane][k / half];
    return bits == 32 ? word : word >> bits * (k % per) & ((1u << bits) - 1);
}

/* One element of the result, k ascending; hardware adds in an order of its own. */
static float sum_float(const warp_table *w, unsigned turn, unsigned row, unsigned col, int kind,
                       float sum)
{
    const bool tf32 = kind == MMA_M16N8K8_TF32;
    const unsigned per = tf32 ? 1 : 2, bits = 32 / per, deep = 8 * per;
    for (unsigned k = 0; k < deep; k++) {
        const uint32_t x = a_of(w->a[turn], row, k, per, bits);
        const uint32_t y = b_of(w->b[turn], col, k, per, bits);
        const float p = tf32 ? of_bits(x & ~0x1fffu) : engine_of_half((uint16_t)x, (unsigned)kind);
        const float q = tf32 ? of_bits(y & ~0x1fffu) : engine_of_half((uint16_t)y, (unsigned)kind);
        sum = __builtin_fmaf(p, q, sum);
    }
    return sum;
}

static int32_t sum_s8(const warp_table *w, unsigned turn, unsigned row, unsigned col, int32_t start)
{
    uint32_t sum = (uint32_t)start;
    for (unsigned k = 0; k < 32; k++) {
        const int8_t x = (int8_t)a_of(w->a[turn], row, k, 4, 8);
        const int8_t y = (int8_t)b_of(w->b[turn], col, k, 4, 8);
        sum += (uint32_t)(x * y);
    }
    return (int32_t)sum;
}

void engine_mma(void *d, const unsigned *a, const unsigned *b, const void *c, int kind, int line)
{
    fiber *me = engine_me();
    const unsigned turn = me->turn++ & 1, lane = me->view.number & 31;
    warp_table *w = &eng.warp[me->view.number / 32];
    memcpy(w->a[turn][lane], a, 16);
    memcpy(w->b[turn][lane], b, 8);
    engine_meet(0xffffffffu, line);
    for (unsigned i = 0; i < 4; i++) {
        const unsigned row = (lane >> 2) + 8 * (i >> 1), col = 2 * (lane & 3) + (i & 1);
        if (kind == MMA_M16N8K32_S8)
            ((int32_t *)d)[i] = sum_s8(w, turn, row, col, ((const int32_t *)c)[i]);
        else
            ((float *)d)[i] = sum_float(w, turn, row, col, kind, ((const float *)c)[i]);
    }
}
