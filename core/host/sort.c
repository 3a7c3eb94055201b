/*
 * sort, argsort and top_k of one row. Elements become unsigned keys whose order is the wanted one: of floats the bits,
 * turned where the sign is set, -0 as 0, every NaN behind infinity; all bits turned for descending order. Then long rows
 * are sorted by radix (least significant digit first; digits that all keys share are skipped), short ones by merging.
 * Both keep the order of equal keys. With positions, a key of 32 bits and its position are one number of 64.
 */
#include "core/host/host_impl.h"

#include <math.h>
#include <string.h>

enum {
    RUN = 12,         /* elements that insertion sorts */
    FEW = 128,        /* counted */
    INSERTED = 16,    /* of top_k: the best so far, kept in order */
    RADIX_FROM = 256, /* shorter rows are merged */
    VECTOR = 8,       /* keys made by instructions on vectors */
    DIGIT = 8,        /* bits */
    BUCKETS = 1 << DIGIT
};

/* ---- keys ---------------------------------------------------------------------------------------- */

static bool is_wide(dc_dtype t)
{
    return dc_dtype_size(t) == 8;
}

static int64_t row_length(const dc_host_call *c)
{
    return dc_host_dim(&c->in[0], 1);
}

/* Between short rows others look. */
static const dc_look *of_long(const dc_host_call *c, const dc_look *look)
{
    return row_length(c) > DC_LOOK_PIECE ? look : NULL;
}

/* Of the bits of an f32: those of one NaN; 0 for -0. */
static inline uint32_t one_zero(uint32_t b)
{
    const int32_t size = (int32_t)(b & 0x7fffffffu);
    b = size > 0x7f800000 ? 0x7fc00000u : b;
    return size == 0 ? 0 : b;
}

static inline uint32_t bits_f32(float v)
{
    uint32_t b;
    memcpy(&b, &v, sizeof b);
    return one_zero(b);
}

static inline uint64_t bits_f64(double v)
{
    uint64_t b;
    if (v != v)
        return 0x7ff8000000000000u;
    memcpy(&b, &v, sizeof b);
    return v == 0 ? 0 : b;
}

static inline uint32_t ordered32(uint32_t b)
{
    return b ^ ((uint32_t)((int32_t)b >> 31) | 0x80000000u);
}

static inline uint64_t ordered64(uint64_t b)
{
    return b ^ ((uint64_t)((int64_t)b >> 63) | 0x8000000000000000u);
}

/* n keys of elements from x[at] on. */
static void keys32(dc_dtype t, const void *x, int64_t at, int64_t n, uint32_t turn, uint32_t *out)
{
    if (t == DC_F32) {
        const uint32_t *v = (const uint32_t *)x + at;
        int64_t i = 0;
        for (; i + VECTOR <= n; i += VECTOR)
            for (int k = 0; k < VECTOR; k++)
                out[i + k] = ordered32(one_zero(v[i + k])) ^ turn;
        for (; i < n; i++)
            out[i] = ordered32(one_zero(v[i])) ^ turn;
        return;
    }
    const size_t size = dc_dtype_size(t);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = dc_bits_load(t, (const char *)x + (size_t)(at + i) * size);
        if (dc_dtype_is_float(t))
            out[i] = ordered32(bits_f32((float)dc_value_of(t, bits))) ^ turn;
        else
            out[i] = ((uint32_t)bits ^ (dc_dtype_is_signed(t) ? 0x80000000u : 0)) ^ turn;
    }
}

static inline uint64_t key64(dc_dtype t, const void *x, int64_t at, uint64_t turn)
{
    uint64_t b;
    if (t == DC_F64)
        return ordered64(bits_f64(((const double *)x)[at])) ^ turn;
    memcpy(&b, (const uint64_t *)x + at, sizeof b);
    return b ^ (dc_dtype_is_signed(t) ? 0x8000000000000000u : 0) ^ turn;
}

static uint32_t back32(uint32_t key, uint32_t turn)
{
    key ^= turn;
    return key & 0x80000000u ? key & 0x7fffffffu : ~key;
}

static uint64_t back64(uint64_t key, uint64_t turn)
{
    key ^= turn;
    return key >> 63 ? key & 0x7fffffffffffffffu : ~key;
}

/* A key of 32 bits becomes an element again. */
static void put32(dc_dtype t, uint32_t key, uint32_t turn, void *out, int64_t at)
{
    char *to = (char *)out + (size_t)at * dc_dtype_size(t);
    float v;
    if (!dc_dtype_is_float(t)) {
        dc_bits_store(t, to, (key ^ turn) ^ (dc_dtype_is_signed(t) ? 0x80000000u : 0));
        return;
    }
    const uint32_t bits = back32(key, turn);
    memcpy(&v, &bits, sizeof v);
    dc_bits_store(t, to, dc_bits_of(t, (double)v));
}

/* ---- sorting ------------------------------------------------------------------------------------- */

typedef struct wide {
    uint64_t key;
    uint32_t at;
} wide;

/*
 * Sorts n of `type` at a, with room for as many at b; returns the one that holds them. KEY(x) is an unsigned number of
 * `bits` bits, of which those from `low` on count; elements with equal ones keep their order.
 */
#define DEFINE_SORT(name, type, KEY, low, bits)                                              \
    static void name##_insert(type *a, int64_t n)                                            \
    {                                                                                        \
        for (int64_t i = 1; i < n; i++) {                                                    \
            const type x = a[i];                                                             \
            int64_t k = i;                                                                   \
            for (; k > 0 && KEY(a[k - 1]) > KEY(x); k--)                                     \
                a[k] = a[k - 1];                                                             \
            a[k] = x;                                                                        \
        }                                                                                    \
    }                                                                                        \
                                                                                             \
    /* Without branches that depend on the keys, while both runs have some left. */          \
    static void name##_merge(const type *a, int64_t middle, int64_t n, type *out)            \
    {                                                                                        \
        int64_t i = 0, k = middle, to = 0;                                                   \
        while (i < middle && k < n) {                                                        \
            const bool right = KEY(a[k]) < KEY(a[i]);                                        \
            out[to++] = right ? a[k] : a[i];                                                 \
            k += right;                                                                      \
            i += !right;                                                                     \
        }                                                                                    \
        memcpy(out + to, a + i, (size_t)(middle - i) * sizeof *a);                           \
        memcpy(out + to + middle - i, a + k, (size_t)(n - k) * sizeof *a);                   \
    }                                                                                        \
                                                                                             \
    static type *name##_by_merging(type *a, type *b, int64_t n)                              \
    {                                                                                        \
        for (int64_t i = 0; i < n; i += RUN)                                                 \
            name##_insert(a + i, dc_min_i64(RUN, n - i));                                    \
        for (int64_t run = RUN; run < n; run *= 2) {                                         \
            for (int64_t i = 0; i < n; i += 2 * run) {                                       \
                const int64_t left = dc_min_i64(2 * run, n - i);                             \
                name##_merge(a + i, dc_min_i64(run, left), left, b + i);                     \
            }                                                                                \
            type *const swap = a;                                                            \
            a = b;                                                                           \
            b = swap;                                                                        \
        }                                                                                    \
        return a;                                                                            \
    }                                                                                        \
                                                                                             \
    static type *name##_by_radix(const dc_look *look, type *a, type *b, int64_t n)           \
    {                                                                                        \
        enum { DIGITS = ((bits) - (low)) / DIGIT };                                          \
        int64_t count[DIGITS][BUCKETS];                                                      \
        memset(count, 0, sizeof count);                                                      \
        DC_LOOK_PIECES (look, at, end, n)                                                    \
            for (int64_t i = at; i < end; i++)                                               \
                for (int d = 0; d < DIGITS; d++)                                             \
                    count[d][KEY(a[i]) >> ((low) + d * DIGIT) & (BUCKETS - 1)]++;            \
        for (int d = 0; d < DIGITS; d++) {                                                   \
            const int shift = (low) + d * DIGIT;                                             \
            int64_t first = 0;                                                               \
            if (count[d][KEY(a[0]) >> shift & (BUCKETS - 1)] == n)                           \
                continue;                                                                    \
            for (int k = 0; k < BUCKETS; k++) {                                              \
                const int64_t here = count[d][k];                                            \
                count[d][k] = first;                                                         \
                first += here;                                                               \
            }                                                                                \
            DC_LOOK_PIECES (look, at, end, n)                                                \
                for (int64_t i = at; i < end; i++)                                           \
                    b[count[d][KEY(a[i]) >> shift & (BUCKETS - 1)]++] = a[i];                \
            type *const swap = a;                                                            \
            a = b;                                                                           \
            b = swap;                                                                        \
        }                                                                                    \
        return a;                                                                            \
    }                                                                                        \
                                                                                             \
    static type *name(const dc_look *look, type *a, type *b, int64_t n)                      \
    {                                                                                        \
        return n < RADIX_FROM ? name##_by_merging(a, b, n) : name##_by_radix(look, a, b, n); \
    }

#define ITSELF(x) (x)
#define KEY_OF(x) ((x).key)

DEFINE_SORT(sort_u32, uint32_t, ITSELF, 0, 32)
DEFINE_SORT(sort_u64, uint64_t, ITSELF, 0, 64)
DEFINE_SORT(sort_pair, uint64_t, ITSELF, 32, 64) /* key << 32 | position */
DEFINE_SORT(sort_wide, wide, KEY_OF, 0, 64)

/* Few keys: each goes where the number of smaller ones says, which vectors count; equal ones side by side. */
typedef int32_t four __attribute__((vector_size(16)));

static void sort_few(const uint32_t *a, uint32_t *out, int64_t n)
{
    four key[FEW / 4];
    uint8_t seen[FEW] = {0};
    const int64_t vectors = (n + 3) / 4;
    for (int64_t i = 0; i < 4 * vectors; i++)
        key[i / 4][i % 4] = i < n ? (int32_t)(a[i] ^ 0x80000000u) : INT32_MAX;
    for (int64_t i = 0; i < n; i++) {
        const int32_t x = (int32_t)(a[i] ^ 0x80000000u);
        four less = {0};
        for (int64_t j = 0; j < vectors; j++)
            less -= key[j] < (four){x, x, x, x};
        const int32_t rank = less[0] + less[1] + less[2] + less[3];
        out[rank + seen[rank]++] = a[i];
    }
}

/* ---- sort ---------------------------------------------------------------------------------------- */

static size_t sort_scratch(const dc_host_call *c)
{
    return 2 * (size_t)row_length(c) * (is_wide((dc_dtype)c->in[0].dtype) ? 8 : 4);
}

static double sort_cost(const dc_host_call *c)
{
    const double n = (double)row_length(c);
    return n * (is_wide((dc_dtype)c->in[0].dtype) ? 16 : 8);
}

/* Keys know one zero: the elements that are zero stand there again, in their order. */
static void restore_zeros(const dc_host_call *c, const dc_look *look, void *out, const void *x)
{
    const dc_dtype t = (dc_dtype)c->in[0].dtype;
    const size_t size = dc_dtype_size(t);
    const int64_t n = row_length(c);
    int64_t to = 0;
    DC_LOOK_PIECES (look, at, end, n)
        for (int64_t i = at; i < end; i++) {
            const char *from = (const char *)x + (size_t)i * size;
            if (dc_value_of(t, dc_bits_load(t, from)) != 0)
                continue;
            while (dc_value_of(t, dc_bits_load(t, (char *)out + (size_t)to * size)) != 0)
                to++;
            memcpy((char *)out + (size_t)to++ * size, from, size);
        }
}

static inline bool any_negative_zero(dc_dtype t, const void *x, int64_t begin, int64_t end)
{
    const uint64_t negative = dc_bits_of(t, -0.0);
    bool any = false;
    for (int64_t i = begin; i < end && t == DC_F32; i++)
        any |= ((const uint32_t *)x)[i] == 0x80000000u;
    for (int64_t i = begin; i < end && t == DC_F64; i++)
        any |= ((const uint64_t *)x)[i] == 0x8000000000000000u;
    for (int64_t i = begin; i < end && t != DC_F32 && t != DC_F64; i++)
        any |= dc_bits_load(t, (const char *)x + (size_t)i * dc_dtype_size(t)) == negative;
    return any;
}

static bool has_negative_zero(const dc_host_call *c, const dc_look *look, const void *x)
{
    const dc_dtype t = (dc_dtype)c->in[0].dtype;
    if (row_length(c) <= DC_LOOK_PIECE)
        return dc_dtype_is_float(t) && any_negative_zero(t, x, 0, row_length(c));
    if (dc_dtype_is_float(t))
        DC_LOOK_PIECES (look, at, end, row_length(c))
            if (any_negative_zero(t, x, at, end))
                return true;
    return false;
}

static void sort_wide_row(const dc_host_call *c, const dc_look *look, void *out, const void *x,
                          uint64_t *a)
{
    const dc_dtype t = (dc_dtype)c->in[0].dtype;
    const int64_t n = row_length(c);
    const uint64_t turn = c->attr[0] != 0 ? UINT64_MAX : 0;
    DC_LOOK_PIECES (look, at, end, n)
        for (int64_t i = at; i < end; i++)
            a[i] = key64(t, x, i, turn);
    a = sort_u64(look, a, a + n, n);
    DC_LOOK_PIECES (look, at, end, n)
        for (int64_t i = at; i < end; i++) {
            const uint64_t bits = t == DC_F64             ? back64(a[i], turn)
                                  : dc_dtype_is_signed(t) ? (a[i] ^ turn) ^ 0x8000000000000000u
                                                          : a[i] ^ turn;
            memcpy((uint64_t *)out + i, &bits, sizeof bits);
        }
}

static inline void put_narrow(dc_dtype t, const uint32_t *a, int64_t begin, int64_t end,
                              uint32_t turn, void *out)
{
    for (int64_t i = begin; i < end && t == DC_F32; i++) {
        const uint32_t bits = back32(a[i], turn);
        memcpy((uint32_t *)out + i, &bits, sizeof bits);
    }
    for (int64_t i = begin; i < end && t != DC_F32; i++)
        put32(t, a[i], turn, out, i);
}

static void sort_narrow_row(const dc_host_call *c, const dc_look *look, void *out, const void *x,
                            uint32_t *a)
{
    const dc_dtype t = (dc_dtype)c->in[0].dtype;
    const int64_t n = row_length(c);
    const uint32_t turn = c->attr[0] != 0 ? UINT32_MAX : 0;
    if (n <= FEW) {
        keys32(t, x, 0, n, turn, a);
        sort_few(a, a + n, n);
        put_narrow(t, a + n, 0, n, turn, out);
        return;
    }
    DC_LOOK_PIECES (look, at, end, n)
        keys32(t, x, at, end - at, turn, a + at);
    a = sort_u32(look, a, a + n, n);
    DC_LOOK_PIECES (look, at, end, n)
        put_narrow(t, a, at, end, turn, out);
}

static void sort_row(const dc_host_call *c, const dc_look *look, void *out, const void *in,
                     void *scratch)
{
    look = of_long(c, look);
    if (is_wide((dc_dtype)c->in[0].dtype))
        sort_wide_row(c, look, out, in, scratch);
    else
        sort_narrow_row(c, look, out, in, scratch);
    if (has_negative_zero(c, look, in) && !dc_look_ends(look))
        restore_zeros(c, look, out, in);
}

const dc_host_row dc_host_sort = {.run_long = sort_row, .scratch = sort_scratch, .cost = sort_cost};

/* ---- argsort ------------------------------------------------------------------------------------- */

enum { PIECE = 256 }; /* elements whose keys are made at a time */

static size_t pair_size(const dc_host_call *c)
{
    return is_wide((dc_dtype)c->in[0].dtype) ? sizeof(wide) : sizeof(uint64_t);
}

static size_t argsort_scratch(const dc_host_call *c)
{
    return 2 * (size_t)row_length(c) * pair_size(c);
}

static double argsort_cost(const dc_host_call *c)
{
    return (double)row_length(c) * (is_wide((dc_dtype)c->in[0].dtype) ? 30 : 14);
}

/* The first k positions in sorted order. */
static void positions(const dc_host_call *c, const dc_look *look, bool descending, int64_t k,
                      int32_t *out, const void *x, void *scratch)
{
    const dc_dtype t = (dc_dtype)c->in[0].dtype;
    const int64_t n = row_length(c);
    if (is_wide(t)) {
        wide *a = scratch;
        DC_LOOK_PIECES (look, at, end, n)
            for (int64_t i = at; i < end; i++)
                a[i] = (wide){key64(t, x, i, descending ? UINT64_MAX : 0), (uint32_t)i};
        a = sort_wide(look, a, a + n, n);
        DC_LOOK_PIECES (look, at, end, k)
            for (int64_t i = at; i < end; i++)
                out[i] = (int32_t)a[i].at;
        return;
    }
    uint64_t *a = scratch;
    uint32_t key[PIECE];
    DC_LOOK_PIECES (look, piece, end, n)
        for (int64_t at = piece; at < end; at += PIECE) {
            const int64_t m = dc_min_i64(PIECE, end - at);
            keys32(t, x, at, m, descending ? UINT32_MAX : 0, key);
            for (int64_t i = 0; i < m; i++)
                a[at + i] = (uint64_t)key[i] << 32 | (uint64_t)(at + i);
        }
    a = sort_pair(look, a, a + n, n);
    DC_LOOK_PIECES (look, at, end, k)
        for (int64_t i = at; i < end; i++)
            out[i] = (int32_t)(a[i] & UINT32_MAX);
}

static void argsort_row(const dc_host_call *c, const dc_look *look, void *out, const void *in,
                        void *scratch)
{
    positions(c, of_long(c, look), c->attr[0] != 0, row_length(c), out, in, scratch);
}

const dc_host_row dc_host_argsort = {
    .run_long = argsort_row, .scratch = argsort_scratch, .cost = argsort_cost};

/* ---- top_k --------------------------------------------------------------------------------------- */

/*
 * Few of many: candidates are collected, those below the k-th best so far alone; when their room is full, the k best of
 * them stay. Rows in random order give some k log(n / k) candidates.
 */
static bool is_few(const dc_host_call *c)
{
    return c->attr[0] * 4 <= row_length(c);
}

static int64_t candidates(const dc_host_call *c)
{
    return 2 * c->attr[0] + 2 * PIECE;
}

static size_t topk_scratch(const dc_host_call *c)
{
    return is_few(c) ? 2 * (size_t)candidates(c) * pair_size(c) : argsort_scratch(c);
}

static double topk_cost(const dc_host_call *c)
{
    return is_few(c) ? (double)row_length(c) * 2 : argsort_cost(c);
}

static inline uint64_t make_pair(uint32_t key, int64_t at)
{
    return (uint64_t)key << 32 | (uint64_t)at;
}

static inline wide make_wide(uint64_t key, int64_t at)
{
    return (wide){key, (uint32_t)at};
}

static void keys64(dc_dtype t, const void *x, int64_t at, int64_t n, uint64_t turn, uint64_t *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = key64(t, x, at + i, turn);
}

/*
 * What comes later of equal keys is no better, so keys alone are compared. SORT leaves candidates of PAIR in order; KEYS
 * makes `key`s of elements.
 */
#define DEFINE_FEW(name, key, PAIR, KEYS, SORT, MAKE, KEY, AT)                                \
    static void name(const dc_host_call *c, const dc_look *look, int32_t *out, const void *x, \
                     PAIR *a)                                                                 \
    {                                                                                         \
        const dc_dtype t = (dc_dtype)c->in[0].dtype;                                          \
        const int64_t n = row_length(c), k = c->attr[0], room = candidates(c);                \
        PAIR *const other = a + room;                                                         \
        const int64_t first = dc_min_i64(2 * k, PIECE);                                       \
        key bound = 0, v[PIECE];                                                              \
        bool bounded = false;                                                                 \
        int64_t count = 0;                                                                    \
        for (int64_t at = 0, m; at < n && !dc_look_ends(look); at += m) {                     \
            m = dc_min_i64(bounded ? PIECE : first, n - at);                                  \
            bool any = !bounded;                                                              \
            KEYS(t, x, at, m, c->attr[1] != 0 ? (key)-1 : 0, v);                              \
            for (int64_t i = 0; i < m && bounded; i++)                                        \
                any |= v[i] < bound;                                                          \
            for (int64_t i = 0; i < m && any; i++) {                                          \
                a[count] = MAKE(v[i], at + i);                                                \
                count += !bounded || v[i] < bound;                                            \
            }                                                                                 \
            if (count < k || (bounded && count + PIECE <= room))                              \
                continue;                                                                     \
            memmove(a, SORT(look, a, other, count), (size_t)k * sizeof *a);                   \
            count = k;                                                                        \
            bound = KEY(a[k - 1]);                                                            \
            bounded = true;                                                                   \
        }                                                                                     \
        const PAIR *best = SORT(look, a, other, count);                                       \
        for (int64_t i = 0; i < k; i++)                                                       \
            out[i] = (int32_t)AT(best[i]);                                                    \
    }

/* The same of so few that each candidate is inserted among the best so far, of which there are k after as many elements. */
#define DEFINE_BEST(name, key, PAIR, KEYS, MAKE, KEY, AT)                                     \
    static void name(const dc_host_call *c, const dc_look *look, int32_t *out, const void *x, \
                     PAIR *a)                                                                 \
    {                                                                                         \
        const dc_dtype t = (dc_dtype)c->in[0].dtype;                                          \
        const int64_t n = row_length(c), k = c->attr[0];                                      \
        int64_t count = 0;                                                                    \
        key v[PIECE];                                                                         \
        for (int64_t at = 0, m; at < n && !dc_look_ends(look); at += m) {                     \
            m = dc_min_i64(PIECE, n - at);                                                    \
            KEYS(t, x, at, m, c->attr[1] != 0 ? (key)-1 : 0, v);                              \
            for (int64_t i = 0; i < m; i++) {                                                 \
                if (count == k && v[i] >= KEY(a[k - 1]))                                      \
                    continue;                                                                 \
                count += count < k;                                                           \
                int64_t to = count - 1;                                                       \
                for (; to > 0 && v[i] < KEY(a[to - 1]); to--)                                 \
                    a[to] = a[to - 1];                                                        \
                a[to] = MAKE(v[i], at + i);                                                   \
            }                                                                                 \
        }                                                                                     \
        for (int64_t i = 0; i < k; i++)                                                       \
            out[i] = (int32_t)AT(a[i]);                                                       \
    }

#define PAIR_KEY(x) ((uint32_t)((x) >> 32))
#define PAIR_AT(x)  ((x)&UINT32_MAX)
#define WIDE_AT(x)  ((x).at)

DEFINE_FEW(few, uint32_t, uint64_t, keys32, sort_pair, make_pair, PAIR_KEY, PAIR_AT)
DEFINE_FEW(few_wide, uint64_t, wide, keys64, sort_wide, make_wide, KEY_OF, WIDE_AT)
DEFINE_BEST(best, uint32_t, uint64_t, keys32, make_pair, PAIR_KEY, PAIR_AT)
DEFINE_BEST(best_wide, uint64_t, wide, keys64, make_wide, KEY_OF, WIDE_AT)

static void topk_row(const dc_host_call *c, const dc_look *look, void *out, const void *in,
                     void *scratch)
{
    const bool wide_keys = is_wide((dc_dtype)c->in[0].dtype),
               inserts = c->attr[0] > 0 && c->attr[0] <= INSERTED;
    look = of_long(c, look);
    if (!is_few(c))
        positions(c, look, c->attr[1] != 0, c->attr[0], out, in, scratch);
    else if (wide_keys)
        (inserts ? best_wide : few_wide)(c, look, out, in, scratch);
    else
        (inserts ? best : few)(c, look, out, in, scratch);
}

const dc_host_row dc_host_topk = {.run_long = topk_row, .scratch = topk_scratch, .cost = topk_cost};
