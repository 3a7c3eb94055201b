/*
 * Transposing in square tiles, whose rows are lines of the cache, there and here. Tiles of elements of 2 and 4 bytes are made
 * of squares whose rows are vectors; what no tile holds goes one by one.
 */
#include "formats/turn.h"

#include <string.h>

enum { LINE = 64 };

#define SIDE(T) (LINE / sizeof(T))

typedef struct two_words {
    uint64_t a, b;
} two_words;

/* ---- tiles ------------------------------------------------------------------------------------ */

#define ONE_BY_ONE(T)                                                                         \
    static void T##_part(const void *from, size_t rows, size_t columns, size_t row, void *to, \
                         size_t stride)                                                       \
    {                                                                                         \
        for (size_t c = 0; c < columns; c++)                                                  \
            for (size_t r = 0; r < rows; r++)                                                 \
                ((T *)to)[c * stride + r] = ((const T *)from)[r * row + c];                   \
    }
ONE_BY_ONE(uint8_t)
ONE_BY_ONE(uint16_t)
ONE_BY_ONE(uint32_t)
ONE_BY_ONE(uint64_t)
ONE_BY_ONE(two_words)
#undef ONE_BY_ONE

/* clang-format off */
typedef uint32_t four __attribute__((vector_size(16)));
typedef uint16_t eight __attribute__((vector_size(16)));

#define LOW4(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH4(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LOW8(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH8(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)

/* Written out, so that all of a square stays in registers. */
#define TIMES2(F) F(0) F(1)
#define TIMES4(F) TIMES2(F) F(2) F(3)
#define TIMES8(F) TIMES4(F) F(4) F(5) F(6) F(7)

#define GET(i) memcpy(&x[i], from + (i) * row, sizeof x[i]);
#define PUT(i) memcpy(to + (i) * stride, &y[i], sizeof y[i]);
#define ZIP4(i) y[2 * (i)] = LOW4(x[i], x[(i) + 2]), y[2 * (i) + 1] = HIGH4(x[i], x[(i) + 2]);
#define ZIP8(i) y[2 * (i)] = LOW8(x[i], x[(i) + 4]), y[2 * (i) + 1] = HIGH8(x[i], x[(i) + 4]);
#define BACK(i) x[i] = y[i];

/* clang-format on */

/* Rows that are zipped with those half of the rows later, as often as halving leads to one, are columns. */
static inline void uint32_t_square(const uint32_t *from, size_t row, uint32_t *to, size_t stride)
{
    four x[4], y[4];
    TIMES4(GET)
    TIMES2(ZIP4)
    TIMES4(BACK)
    TIMES2(ZIP4)
    TIMES4(PUT)
}

static inline void uint16_t_square(const uint16_t *from, size_t row, uint16_t *to, size_t stride)
{
    eight x[8], y[8];
    TIMES8(GET)
    TIMES4(ZIP8)
    TIMES8(BACK)
    TIMES4(ZIP8)
    TIMES8(BACK)
    TIMES4(ZIP8)
    TIMES8(PUT)
}

#define VECTOR_TILE(T, n)                                                                         \
    static void T##_tile(const void *from, size_t row, void *to, size_t stride)                   \
    {                                                                                             \
        for (size_t c = 0; c < SIDE(T); c += (n))                                                 \
            for (size_t r = 0; r < SIDE(T); r += (n))                                             \
                T##_square((const T *)from + r * row + c, row, (T *)to + c * stride + r, stride); \
    }
VECTOR_TILE(uint32_t, 4)
VECTOR_TILE(uint16_t, 8)
#undef VECTOR_TILE

#define SCALAR_TILE(T)                                                          \
    static void T##_tile(const void *from, size_t row, void *to, size_t stride) \
    {                                                                           \
        T##_part(from, SIDE(T), SIDE(T), row, to, stride);                      \
    }
SCALAR_TILE(uint8_t)
SCALAR_TILE(uint64_t)
SCALAR_TILE(two_words)
#undef SCALAR_TILE

/* ---- matrices --------------------------------------------------------------------------------- */

typedef struct turner {
    size_t size;
    void (*tile)(const void *from, size_t row, void *to, size_t stride);
    void (*part)(const void *from, size_t rows, size_t columns, size_t row, void *to,
                 size_t stride);
} turner;

static const turner turners[] = {
    {1, uint8_t_tile, uint8_t_part},      {2, uint16_t_tile, uint16_t_part},
    {4, uint32_t_tile, uint32_t_part},    {8, uint64_t_tile, uint64_t_part},
    {16, two_words_tile, two_words_part},
};

static const turner *turner_of(size_t size)
{
    for (size_t i = 0; i < DC_COUNTOF(turners); i++)
        if (turners[i].size == size)
            return &turners[i];
    DC_BUG("elements of %zu bytes are turned", size);
}

void dc_turn(size_t size, const void *from, size_t rows, size_t columns, void *to, size_t stride)
{
    const turner *t = turner_of(size);
    const size_t side = LINE / size, whole_rows = rows / side * side, whole = columns / side * side;
    const char *x = from;
    char *y = to;
    for (size_t c = 0; c < whole; c += side)
        for (size_t r = 0; r < whole_rows; r += side)
            t->tile(x + (r * columns + c) * size, columns, y + (c * stride + r) * size, stride);
    t->part(x + whole_rows * columns * size, rows - whole_rows, columns, columns,
            y + whole_rows * size, stride);
    t->part(x + whole * size, whole_rows, columns - whole, columns, y + whole * stride * size,
            stride);
}
