/*
 * The product of a matrix by a quantised one (formats/blocks.h), as operations that there are, for stdlib/nn/quantized.lua:
 *
 *   quantized_product(x, words, scales, mins or nil, rows, block, bits, zero, activations [, step])
 *       f32[n, rows] of x f32[n, columns]. Each block of x becomes numbers of 8 or 16 bits and a scale; sums of products
 *       of bytes are integers (dp4a), which scales turn into floats. Of 16 bits a number is 256 upper + lower bytes.
 *       step: f32[], the scale of all blocks; what is beyond the largest number becomes that.
 *
 *   quantized_elements(words, scales, mins or nil, bits, zero)
 *       f32[n, columns, lanes] of strips, words [n, blocks, words, lanes] with scales and mins [n, blocks, lanes].
 *
 * A model has hundreds of these products, of some sixty operations each, and as many matrices in their gradients: recorded
 * one by one from Lua they would take longer than all else that is traced.
 */
#include "core/base/extent.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <float.h>
#include <math.h>

enum { LANES = 16, MOST_WORDS = 8 };

typedef struct product {
    int64_t rows, block, bits, zero, activations;
    bool mins, fixed; /* fixed: the last operand is a step */
} product;

typedef struct builder {
    dc_job *j;
    dc_func *f;
    const product *p;
    int64_t n, blocks, strips; /* of x; of words */
} builder;

/* Numbers of x: words of their bytes; scale and sum of each block, as [n, 1, blocks, 1]; a fixed scale as [n, 1, 1]. */
typedef struct activations {
    dc_val lower, upper, scale, total;
} activations;

static dc_status shaped(builder *b, dc_val v, int64_t d0, int64_t d1, int64_t d2, int64_t d3,
                        dc_val *out)
{
    const int64_t dim[4] = {d0, d1, d2, d3};
    const dc_type t = dc_type_make((dc_dtype)v.type.dtype, d3 == 0 ? 3 : 4, dim);
    return dc_build_reshape(b->j, b->f, v, &t, out);
}

static dc_status number(builder *b, dc_dtype t, uint64_t bits, dc_val *out)
{
    const dc_type scalar = dc_type_scalar(t);
    return dc_build_bits(b->j, b->f, &scalar, bits, out);
}

/* a op a number of its dtype, by its pattern. */
static dc_status with(builder *b, dc_op op, dc_val a, uint64_t bits, dc_val *out)
{
    dc_val v;
    DC_TRY(number(b, (dc_dtype)a.type.dtype, bits, &v));
    return dc_ops_2(b->j, b->f, op, a, v, out);
}

/* Element `at` of the last axis but `behind`, whose size becomes 1. */
static dc_status one_of(builder *b, dc_val a, int behind, int64_t at, dc_val *out)
{
    int64_t first[DC_MAX_RANK] = {0}, last[DC_MAX_RANK], step[DC_MAX_RANK];
    const int axis = a.type.rank - 1 - behind;
    for (int i = 0; i < a.type.rank; i++) {
        last[i] = dc_extent_sub(b->j->extents, a.type.dim[i], 1);
        step[i] = 1;
    }
    first[axis] = last[axis] = at;
    return dc_build_slice(b->j, b->f, a, first, last, step, out);
}

/* Words of four bytes of numbers: [n, blocks, block / 4, 1]. */
static dc_status bytes_of(builder *b, dc_val numbers, dc_val *out)
{
    dc_val bytes, byte;
    DC_TRY(with(b, DC_OP_AND, numbers, 255, &bytes));
    DC_TRY(dc_build_cast(b->j, b->f, bytes, DC_U32, &bytes));
    DC_TRY(shaped(b, bytes, b->n, b->blocks, b->p->block / 4, 4, &bytes));
    DC_TRY(one_of(b, bytes, 0, 0, out));
    for (int i = 1; i < 4; i++) {
        DC_TRY(one_of(b, bytes, 0, i, &byte));
        DC_TRY(with(b, DC_OP_SHL, byte, 8 * (uint64_t)i, &byte));
        DC_TRY(dc_ops_2(b->j, b->f, DC_OP_OR, *out, byte, out));
    }
    return DC_OK;
}

static dc_status dp4a(builder *b, dc_val x, dc_val y, dc_val sum, dc_val *out)
{
    const dc_val in[3] = {x, y, sum};
    return dc_build_ew(b->j, b->f, DC_OP_DP4A, in, 3, out);
}

/* The sums of signed bytes of words, of each block, i32. */
static dc_status total_of(builder *b, dc_val words, dc_val *out)
{
    dc_val ones, none;
    DC_TRY(number(b, DC_U32, 0x01010101, &ones));
    DC_TRY(number(b, DC_U32, 0, &none));
    DC_TRY(dp4a(b, ones, words, none, out));
    DC_TRY(dc_build_reduce(b->j, b->f, DC_OP_SUM, *out, 1u << 2, true, out));
    DC_TRY(shaped(b, *out, b->n, 1, b->blocks, 1, out));
    return dc_build_cast(b->j, b->f, *out, DC_I32, out);
}

/* x / scale, to the nearest; a scale without a reciprocal makes zeros. */
static dc_status round_to(builder *b, dc_val parts, dc_val scale, dc_val *out)
{
    dc_val one, zero, smallest, test, by;
    DC_TRY(number(b, DC_F32, dc_f32_bits(1), &one));
    DC_TRY(number(b, DC_F32, 0, &zero));
    DC_TRY(number(b, DC_F32, dc_f32_bits(FLT_MIN), &smallest));
    DC_TRY(dc_ops_2(b->j, b->f, DC_OP_LT, smallest, scale, &test));
    DC_TRY(dc_ops_2(b->j, b->f, DC_OP_DIV, one, scale, &by));
    DC_TRY(dc_ops_where(b->j, b->f, test, by, zero, &by));
    DC_TRY(dc_ops_2(b->j, b->f, DC_OP_MUL, parts, by, out));
    DC_TRY(dc_ops_1(b->j, b->f, DC_OP_ROUND, *out, out));
    return dc_build_cast(b->j, b->f, *out, DC_I32, out);
}

/* The scale that makes the largest element of each block the largest number. */
static dc_status scale_by_blocks(builder *b, dc_val x, float largest, dc_val *numbers,
                                 dc_val *scale)
{
    dc_val parts;
    DC_TRY(shaped(b, x, b->n, b->blocks, b->p->block, 0, &parts));
    DC_TRY(dc_ops_1(b->j, b->f, DC_OP_ABS, parts, scale));
    DC_TRY(dc_build_reduce(b->j, b->f, DC_OP_MAXR, *scale, 1u << 2, true, scale));
    DC_TRY(with(b, DC_OP_DIV, *scale, dc_f32_bits(largest), scale));
    DC_TRY(round_to(b, parts, *scale, numbers));
    return shaped(b, *scale, b->n, 1, b->blocks, 1, scale);
}

/* Numbers of multiples of a step; the scale of a row with NaN is NaN. */
static dc_status scale_by_step(builder *b, dc_val x, dc_val step, float largest, dc_val *numbers,
                               dc_val *scale)
{
    dc_val parts, one, by, nan, row, good;
    DC_TRY(dc_ops_1(b->j, b->f, DC_OP_STOP, step, &step));
    DC_TRY(number(b, DC_F32, dc_f32_bits(1), &one));
    DC_TRY(number(b, DC_F32, dc_f32_bits(NAN), &nan));
    DC_TRY(shaped(b, x, b->n, b->blocks, b->p->block, 0, &parts));
    DC_TRY(dc_ops_2(b->j, b->f, DC_OP_DIV, one, step, &by));
    DC_TRY(dc_ops_2(b->j, b->f, DC_OP_MUL, parts, by, numbers));
    DC_TRY(dc_ops_1(b->j, b->f, DC_OP_ROUND, *numbers, numbers));
    DC_TRY(with(b, DC_OP_MIN, *numbers, dc_f32_bits(largest), numbers));
    DC_TRY(with(b, DC_OP_MAX, *numbers, dc_f32_bits(-largest), numbers));
    DC_TRY(dc_build_cast(b->j, b->f, *numbers, DC_I32, numbers));
    DC_TRY(dc_build_reduce(b->j, b->f, DC_OP_MAXR, parts, 3u << 1, true, &row));
    DC_TRY(dc_ops_2(b->j, b->f, DC_OP_EQ, row, row, &good));
    return dc_ops_where(b->j, b->f, good, step, nan, scale);
}

static dc_status read_x(builder *b, const dc_val *in, activations *a)
{
    const bool both = b->p->activations == 16;
    const float largest =
        both ? 127 * 256 : 127; /* its upper byte, rounded, has to be one with a sign */
    const dc_val x = in[0];
    dc_val numbers, high;
    if (b->p->fixed)
        DC_TRY(scale_by_step(b, x, in[b->p->mins ? 4 : 3], largest, &numbers, &a->scale));
    else
        DC_TRY(scale_by_blocks(b, x, largest, &numbers, &a->scale));
    DC_TRY(bytes_of(b, numbers, &a->lower));
    DC_TRY(total_of(b, a->lower, &a->total));
    if (!both)
        return DC_OK;
    DC_TRY(with(b, DC_OP_ADD, numbers, 128, &high));
    DC_TRY(with(b, DC_OP_SHR, high, 8, &high));
    DC_TRY(bytes_of(b, high, &a->upper));
    DC_TRY(total_of(b, a->upper, &high));
    DC_TRY(with(b, DC_OP_MUL, high, 256, &high));
    return dc_ops_2(b->j, b->f, DC_OP_ADD, high, a->total, &a->total);
}

/* sum with the products of the numbers of a block and those that x has for them. */
static dc_status add_products(builder *b, const dc_val *w, dc_val x, dc_val *sum)
{
    const int64_t words = b->p->block / 4;
    for (int64_t k = 0; k < words; k++) {
        const int64_t at = b->p->bits == 4 ? k / 2 + k % 2 * (words / 2) : k;
        dc_val word;
        DC_TRY(one_of(b, x, 1, at, &word));
        DC_TRY(shaped(b, word, b->n, 1, b->blocks, 1, &word));
        DC_TRY(dp4a(b, w[k], word, *sum, sum));
    }
    return DC_OK;
}

/* Numbers of a block of the matrix, in the order of their use: of 4 bits low and high halves of each word. */
static dc_status read_words(builder *b, dc_val words, dc_val *w)
{
    const int64_t n = b->p->block * b->p->bits / 32;
    for (int64_t k = 0; k < n; k++) {
        dc_val word;
        DC_TRY(one_of(b, words, 1, k, &word));
        DC_TRY(shaped(b, word, 1, b->strips, b->blocks, LANES, &word));
        if (b->p->bits == 8) {
            w[k] = word;
            continue;
        }
        DC_TRY(with(b, DC_OP_AND, word, 0x0f0f0f0f, &w[2 * k]));
        DC_TRY(with(b, DC_OP_SHR, word, 4, &word));
        DC_TRY(with(b, DC_OP_AND, word, 0x0f0f0f0f, &w[2 * k + 1]));
    }
    return DC_OK;
}

/* Of each block: scales or mins as f32[1, strips, blocks, lanes]. */
static dc_status of_columns(builder *b, dc_val v, dc_val *out)
{
    DC_TRY(dc_ops_1(b->j, b->f, DC_OP_STOP, v, out));
    DC_TRY(shaped(b, *out, 1, b->strips, b->blocks, LANES, out));
    return dc_build_cast(b->j, b->f, *out, DC_F32, out);
}

/* The integer that a block is, before its scales. */
static dc_status integers(builder *b, dc_val words, const activations *a, dc_val *sum)
{
    dc_val w[MOST_WORDS], zero;
    DC_TRY(read_words(b, words, w));
    DC_TRY(number(b, DC_U32, 0, &zero));
    if (b->p->zero > 0) {
        DC_TRY(with(b, DC_OP_MUL, a->total, (uint64_t)-b->p->zero, &zero));
        DC_TRY(dc_build_cast(b->j, b->f, zero, DC_U32, &zero));
    }
    *sum = zero;
    if (b->p->activations == 16) {
        DC_TRY(number(b, DC_U32, 0, sum));
        DC_TRY(add_products(b, w, a->upper, sum));
        DC_TRY(with(b, DC_OP_SHL, *sum, 8, sum));
        DC_TRY(dc_ops_2(b->j, b->f, DC_OP_ADD, *sum, zero, sum));
    }
    return add_products(b, w, a->lower, sum);
}

static dc_status scaled(builder *b, const dc_val *in, const activations *a, dc_val sum, dc_val *out)
{
    dc_val scales, mins, total;
    DC_TRY(of_columns(b, in[2], &scales));
    DC_TRY(dc_build_cast(b->j, b->f, sum, DC_I32, &sum));
    DC_TRY(dc_build_cast(b->j, b->f, sum, DC_F32, &sum));
    if (!b->p->fixed)
        DC_TRY(dc_ops_2(b->j, b->f, DC_OP_MUL, sum, a->scale, &sum));
    DC_TRY(dc_ops_2(b->j, b->f, DC_OP_MUL, sum, scales, out));
    if (!b->p->mins)
        return DC_OK;
    DC_TRY(of_columns(b, in[3], &mins));
    DC_TRY(dc_build_cast(b->j, b->f, a->total, DC_F32, &total));
    if (!b->p->fixed)
        DC_TRY(dc_ops_2(b->j, b->f, DC_OP_MUL, total, a->scale, &total));
    DC_TRY(dc_ops_2(b->j, b->f, DC_OP_MUL, total, mins, &total));
    return dc_ops_2(b->j, b->f, DC_OP_ADD, *out, total, out);
}

static dc_status build_product(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    const product *p = arg;
    builder b = {.j = j,
                 .f = f,
                 .p = p,
                 .n = in[0].type.dim[0],
                 .blocks = in[1].type.dim[1],
                 .strips = in[1].type.dim[0]};
    const int64_t whole[2] = {b.n, b.strips * LANES};
    const dc_type t = dc_type_make(DC_F32, 2, whole);
    activations a;
    dc_val sum;
    DC_TRY(read_x(&b, in, &a));
    DC_TRY(integers(&b, in[1], &a, &sum));
    DC_TRY(scaled(&b, in, &a, sum, out));
    DC_TRY(dc_build_reduce(j, f, DC_OP_SUM, *out, 1u << 2, false, out));
    if (p->fixed) /* f32[n, strips, lanes] */
        DC_TRY(dc_ops_2(j, f, DC_OP_MUL, *out, a.scale, out));
    DC_TRY(dc_build_reshape(j, f, *out, &t, out));
    if (p->rows == whole[1])
        return DC_OK;
    const int64_t first[2] = {0, 0}, last[2] = {dc_extent_sub(j->extents, b.n, 1), p->rows - 1},
                  step[2] = {1, 1};
    return dc_build_slice(j, f, *out, first, last, step, out);
}

static int l_product(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    int at[DC_APPLY_IN] = {1, 2, 3}, n = 3;
    const product p = {.rows = luaL_checkinteger(L, 5),
                       .block = luaL_checkinteger(L, 6),
                       .bits = luaL_checkinteger(L, 7),
                       .zero = luaL_checkinteger(L, 8),
                       .activations = luaL_checkinteger(L, 9),
                       .mins = !lua_isnil(L, 4),
                       .fixed = !lua_isnoneornil(L, 10)};
    if (p.mins)
        at[n++] = 4;
    if (p.fixed)
        at[n++] = 10;
    dc_apply_to(L, d, "quantized_product", at, n, build_product, &p);
    return 1;
}

/* ---- elements --------------------------------------------------------------------------------- */

typedef struct elements {
    int64_t bits, zero;
    bool mins;
} elements;

/* Bytes of words in the order of memory, [n, blocks, 4 * words, lanes]. */
static dc_status unpack(builder *b, dc_val words, dc_val *out)
{
    const int64_t *dim = words.type.dim;
    const int64_t apart[5] = {dim[0], dim[1], dim[2], 1, dim[3]};
    const dc_type t = dc_type_make(DC_U32, 5, apart);
    const int axis = 3;
    dc_val byte[4], pair[2];
    for (uint64_t i = 0; i < 4; i++) {
        DC_TRY(with(b, DC_OP_SHR, words, 8 * i, &byte[i]));
        DC_TRY(with(b, DC_OP_AND, byte[i], 255, &byte[i]));
    }
    for (int i = 0; i < 4; i++)
        DC_TRY(dc_build_reshape(b->j, b->f, byte[i], &t, &byte[i]));
    DC_TRY(dc_concat_build(b->j, b->f, &axis, &byte[0], &pair[0]));
    DC_TRY(dc_concat_build(b->j, b->f, &axis, &byte[2], &pair[1]));
    DC_TRY(dc_concat_build(b->j, b->f, &axis, pair, out));
    return shaped(b, *out, dim[0], dim[1], 4 * dim[2], dim[3], out);
}

/* Scales or mins of blocks, beside their elements. */
static dc_status beside(builder *b, dc_val v, dc_val *out)
{
    DC_TRY(shaped(b, v, v.type.dim[0], v.type.dim[1], 1, v.type.dim[2], out));
    return dc_build_cast(b->j, b->f, *out, DC_F32, out);
}

static dc_status build_elements(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                dc_val *out)
{
    const elements *p = arg;
    const int64_t *dim = in[0].type.dim;
    const int axis = 2;
    builder b = {.j = j, .f = f};
    dc_val numbers, half[2], v;
    DC_TRY(unpack(&b, in[0], &numbers));
    if (p->bits == 4) {
        DC_TRY(with(&b, DC_OP_AND, numbers, 15, &half[0]));
        DC_TRY(with(&b, DC_OP_SHR, numbers, 4, &half[1]));
        DC_TRY(dc_concat_build(j, f, &axis, half, &numbers));
    }
    const int64_t columns = dim[1] * numbers.type.dim[2];
    DC_TRY(dc_build_cast(j, f, numbers, DC_I32, &numbers));
    DC_TRY(with(&b, DC_OP_SUB, numbers, (uint64_t)p->zero, &numbers));
    DC_TRY(dc_build_cast(j, f, numbers, DC_F32, &numbers));
    DC_TRY(beside(&b, in[1], &v));
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, numbers, v, out));
    if (p->mins) {
        DC_TRY(beside(&b, in[2], &v));
        DC_TRY(dc_ops_2(j, f, DC_OP_ADD, *out, v, out));
    }
    return shaped(&b, *out, dim[0], columns, dim[3], 0, out);
}

static int l_elements(lua_State *L)
{
    static const int at[DC_APPLY_IN] = {1, 2, 3};
    dc_dsl *d = dc_dsl_of(L);
    const elements p = {
        .bits = luaL_checkinteger(L, 4), .zero = luaL_checkinteger(L, 5), .mins = !lua_isnil(L, 3)};
    dc_apply_to(L, d, "quantized_elements", at, p.mins ? 3 : 2, build_elements, &p);
    return 1;
}

static const dc_binding bindings[] = {
    {"quantized_product", l_product, DC_ANY, DC_IN_LIBRARY},
    {"quantized_elements", l_elements, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_quantized_product_bindings = DC_BINDINGS(bindings);
