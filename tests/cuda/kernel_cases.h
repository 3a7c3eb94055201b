/*
 * The kernels of tests/cuda/kernels: how each is launched, numbers for it, and what it has to give.
 */
#ifndef DC_TESTS_CUDA_KERNEL_CASES_H
#define DC_TESTS_CUDA_KERNEL_CASES_H

#include <stdlib.h>

#include "tests/t.h"

/* The text of tests/cuda/kernels/NAME.cu, to be freed. */
static inline char *kernel_text(const char *name)
{
    char path[100];
    snprintf(path, sizeof path, "tests/cuda/kernels/%s.cu", name);
    FILE *f = fopen(path, "r");
    if (!CHECK(f != NULL))
        return calloc(1, 1);
    char *text = calloc(1 << 15, 1);
    CHECK(fread(text, 1, (1 << 15) - 1, f) > 0);
    fclose(f);
    return text;
}

/* The text with `from`, which stands in it once, made `to`; frees it. */
static inline char *changed_text(char *text, const char *from, const char *to)
{
    const size_t room = strlen(text) + strlen(to) + 1;
    char *at = strstr(text, from), *out = calloc(room, 1);
    if (!CHECK(at != NULL) || !CHECK(strstr(at + 1, from) == NULL))
        printf("    '%s'\n", from);
    else
        snprintf(out, room, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    free(text);
    return out;
}

/* The text of kind n, where it says KIND 0; frees it. */
static inline char *kind_of_text(char *text, unsigned n)
{
    char define[20];
    snprintf(define, sizeof define, "#define KIND %u", n);
    return n == 0 ? text : changed_text(text, "#define KIND 0", define);
}

enum { MOST_PARAMS = 3 };

/* How numbers of a parameter are written. */
typedef enum format { NONE, F32, F16, BF16, U8, S8 } format;

typedef struct kernel_case {
    const char *name;
    unsigned grid, threads, dynamic;
    struct {
        format format;
        unsigned n;
    } p[MOST_PARAMS]; /* the result first */
    /* result of inputs, both as numbers */
    void (*want)(double *out, const double *x, const double *y);
    unsigned kind; /* what the text defines KIND to be */
    bool hopper;   /* instructions of sm_90a */
} kernel_case;

/* Kernels ----------------------------------------------------------------------------------- */

static inline void multiply(double *out, const double *x, const double *y, int m, int n, int k)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            out[i * n + j] = 0;
            for (int l = 0; l < k; l++)
                out[i * n + j] += x[i * k + l] * y[l * n + j];
        }
}

static inline void want_product(double *out, const double *x, const double *y)
{
    multiply(out, x, y, 32, 32, 32);
}

static inline void want_gemm(double *out, const double *x, const double *y)
{
    multiply(out, x, y, 64, 64, 128);
}

/* a[128][256] * b[256][128], with one or both the other way round */
static inline void multiply_turned(double *out, const double *x, const double *y, bool turned_x,
                                   bool turned_y)
{
    for (int i = 0; i < 128; i++)
        for (int j = 0; j < 128; j++) {
            out[i * 128 + j] = 0;
            for (int l = 0; l < 256; l++)
                out[i * 128 + j] += x[turned_x ? l * 128 + i : i * 256 + l] *
                                    y[turned_y ? l * 128 + j : j * 256 + l];
        }
}

static inline void want_nt(double *out, const double *x, const double *y)
{
    multiply_turned(out, x, y, false, false);
}

static inline void want_nn(double *out, const double *x, const double *y)
{
    multiply_turned(out, x, y, false, true);
}

static inline void want_tn(double *out, const double *x, const double *y)
{
    multiply_turned(out, x, y, true, true);
}

static inline void want_k16(double *out, const double *x, const double *y)
{
    multiply(out, x, y, 16, 8, 16);
}

static inline void want_k8(double *out, const double *x, const double *y)
{
    multiply(out, x, y, 16, 8, 8);
}

static inline void want_k32(double *out, const double *x, const double *y)
{
    multiply(out, x, y, 16, 8, 32);
}

static inline void want_total(double *out, const double *x, const double *y)
{
    (void)y;
    for (int r = 0; r < 4; r++) {
        out[r] = 0;
        for (int i = 0; i < 1000; i++)
            out[r] += x[r * 1000 + i];
    }
}

static inline void want_lanes(double *out, const double *x, const double *y)
{
    (void)y;
    for (int r = 0; r < 2; r++) {
        double sum = 0, above = 0;
        for (int i = 0; i < 32; i++) {
            sum += x[r * 32 + i];
            above += x[r * 32 + i] > 0;
        }
        out[r * 4] = out[r * 4 + 1] = sum;
        out[r * 4 + 2] = above;
        out[r * 4 + 3] = 1;
    }
}

static inline void want_turn(double *out, const double *x, const double *y)
{
    (void)y;
    for (int i = 0; i < 64 * 64; i++)
        out[i] = x[i % 64 * 64 + i / 64];
}

static inline void want_bytes(double *out, const double *x, const double *y)
{
    (void)y;
    for (int i = 0; i < 1000; i++) {
        out[i] = x[i];
        out[1000 + i] = i < 999 && i % 4 != 3 ? x[i] : 0;
    }
    out[2000] = 0; /* 1024, as bytes */
    out[2001] = 4;
    out[2002] = out[2003] = 0;
}

static inline void want_dynamic(double *out, const double *x, const double *y)
{
    (void)y;
    for (int i = 0; i < 16384; i++)
        out[i] = x[16383 - i];
}

static const kernel_case cases[] = {
    {"product", 16, 64, 0, {{F32, 1024}, {F32, 1024}, {F32, 1024}}, want_product, 0, false},
    {"total", 4, 128, 0, {{F32, 4}, {F32, 4000}}, want_total, 0, false},
    {"lanes", 2, 32, 0, {{F32, 8}, {F32, 64}}, want_lanes, 0, false},
    {"turn", 4, 256, 0, {{F32, 4096}, {F32, 4096}}, want_turn, 0, false},
    {"bytes", 8, 128, 0, {{U8, 2004}, {U8, 1000}}, want_bytes, 0, false},
    {"dynamic", 1, 256, 65536, {{F32, 16384}, {F32, 16384}}, want_dynamic, 0, false},
    {"gemm", 1, 128, 0, {{F32, 4096}, {F16, 8192}, {F16, 8192}}, want_gemm, 0, false},
    {"fragments", 1, 32, 0, {{F32, 128}, {F16, 256}, {F16, 128}}, want_k16, 0, false},
    {"warpgroups", 1, 256, 98304, {{F32, 16384}, {F16, 32768}, {F16, 32768}}, want_nt, 0, true},
};
enum { NCASES = sizeof cases / sizeof *cases };

static const kernel_case kinds[] = {
    {"fragments", 1, 32, 0, {{F32, 128}, {BF16, 256}, {BF16, 128}}, want_k16, 1, false},
    {"fragments", 1, 32, 0, {{F32, 128}, {F32, 128}, {F32, 64}}, want_k8, 2, false},
    {"fragments", 1, 32, 0, {{F32, 128}, {S8, 512}, {S8, 256}}, want_k32, 3, false},
    {"warpgroups", 1, 256, 98304, {{F32, 16384}, {BF16, 32768}, {BF16, 32768}}, want_nn, 1, true},
    {"warpgroups", 1, 256, 98304, {{F32, 16384}, {F16, 32768}, {F16, 32768}}, want_tn, 2, true},
};

/* Numbers ----------------------------------------------------------------------------------- */

static const unsigned size_of[] = {0, 4, 2, 2, 1, 1};

/* Small whole numbers: exact in every format, and so are their sums. */
static inline double number(format f, unsigned i, unsigned salt)
{
    const unsigned r = (i * 2654435761u + salt * 40503u) >> 16;
    return f == U8 ? 1 + r % 200 : (double)(r % 7) - 3;
}

static inline void put(format f, char *at, double x)
{
    const float y = (float)x;
    unsigned bits;
    memcpy(&bits, &y, 4);
    unsigned short half = (unsigned short)(bits >> 16); /* bf16 */
    if (f == F16)                                       /* of a normal number that fits, or 0 */
        half =
            (unsigned short)(x == 0 ? 0
                                    : (bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10) |
                                          (bits >> 13 & 1023));
    const signed char byte = (signed char)(int)x;
    memcpy(at,
           f == F32             ? (const void *)&y
           : f == U8 || f == S8 ? (const void *)&byte
                                : &half,
           size_of[f]);
}

static inline double get(format f, const char *at)
{
    float x;
    if (f == U8)
        return (unsigned char)*at;
    memcpy(&x, at, 4);
    return (double)x;
}

/* Results ----------------------------------------------------------------------------------- */

static inline bool right(const kernel_case *k, const char *got, bool whole)
{
    static double x[32768], y[32768], out[16384];
    for (unsigned i = 0; i < k->p[1].n; i++)
        x[i] = number(k->p[1].format, i, 1);
    for (unsigned i = 0; i < k->p[2].n; i++)
        y[i] = number(k->p[2].format, i, 2);
    k->want(out, x, y);
    for (unsigned i = 0; i < k->p[0].n; i++) {
        int word;
        memcpy(&word, got + 4 * (size_t)i * !!whole, 4);
        const double value =
            whole ? word : get(k->p[0].format, got + (size_t)i * size_of[k->p[0].format]);
        if (!(value == out[i])) /* not a NaN either */
            return false;
    }
    return true;
}

#endif
