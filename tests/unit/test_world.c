/*
 * core/world: exchanges of ranks that are threads, on one host and on pretended ones, compared with sums that are computed
 * plainly, element by element in the order of members; every bit.
 */
#include "core/base/bits.h"
#include "core/base/heap.h"
#include "core/world/combine.h"
#include "core/world/world_impl.h"

#include <math.h>
#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/world_ranks.h"

enum { MOST_ARRAYS = 3 };

typedef struct shape {
    int64_t outer, inner;
} shape;

typedef struct sample {
    dc_exchange x;
    shape array[MOST_ARRAYS];
    const int *host;
    bool in_place;
} sample;

/* ---- numbers ------------------------------------------------------------------------------------------- */

static uint64_t draw(uint64_t a, uint64_t b, uint64_t c)
{
    return dc_hash_mix(dc_hash_mix(dc_hash_mix(7, a), b), c);
}

/* Element i of array k of a rank, as the bits of a part of it (of a complex number there are two). */
static uint64_t element(dc_dtype t, int rank, uint32_t k, int64_t i)
{
    static const double special[] = {0.0, -0.0, NAN, INFINITY, -INFINITY};
    const dc_dtype part = dc_dtype_part(t);
    const uint64_t u = draw((uint64_t)rank, k, (uint64_t)i);
    if (!dc_dtype_is_float(part))
        return dc_bits_canonical(part, u >> 7);
    if (u % 37 == 0 && !dc_dtype_is_complex(t))
        return dc_bits_of(part, special[u / 37 % DC_COUNTOF(special)]);
    return dc_bits_of(part, (double)(u >> 40) / (1 << 22) - 2);
}

static double max_of(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}

static double combine_floats(dc_combine op, double a, double b)
{
    switch (op) {
    case DC_COMBINE_SUM:
        return a + b;
    case DC_COMBINE_PROD:
        return a * b;
    case DC_COMBINE_MAX:
        return max_of(a, b);
    case DC_COMBINE_MIN:
        return -max_of(-a, -b);
    }
    return 0;
}

static uint64_t combine_whole(dc_dtype t, dc_combine op, uint64_t a, uint64_t b)
{
    const bool less = dc_dtype_is_signed(t) ? (int64_t)a < (int64_t)b : a < b;
    switch (op) {
    case DC_COMBINE_SUM:
        return t == DC_BOOL ? a | b : dc_bits_canonical(t, a + b);
    case DC_COMBINE_PROD:
        return dc_bits_canonical(t, a * b);
    case DC_COMBINE_MAX:
        return less ? b : a;
    case DC_COMBINE_MIN:
        return less ? a : b;
    }
    return 0;
}

/* What elements of several members have in common: a value of arithmetic, before it is rounded. */
typedef struct value {
    double f[2];
    uint64_t u;
} value;

static value value_of(dc_dtype t, int rank, uint32_t k, int64_t i)
{
    const dc_dtype part = dc_dtype_part(t);
    value v = {.u = element(t, rank, k, dc_dtype_is_complex(t) ? 2 * i : i)};
    if (!dc_dtype_is_float(part))
        return v;
    v.f[0] = dc_value_of(part, v.u);
    if (dc_dtype_is_complex(t))
        v.f[1] = dc_value_of(part, element(t, rank, k, 2 * i + 1));
    return v;
}

static double round_part(dc_dtype t, double v)
{
    return dc_dtype_part(t) == DC_F64 ? v : (double)(float)v;
}

static value combine(dc_dtype t, dc_combine op, value a, value b)
{
    value v = {.u = combine_whole(t, op, a.u, b.u)};
    if (dc_dtype_is_complex(t) && op == DC_COMBINE_PROD) {
        const double ac = round_part(t, a.f[0] * b.f[0]), bd = round_part(t, a.f[1] * b.f[1]),
                     ad = round_part(t, a.f[0] * b.f[1]), bc = round_part(t, a.f[1] * b.f[0]);
        v.f[0] = round_part(t, ac - bd);
        v.f[1] = round_part(t, ad + bc);
        return v;
    }
    for (int p = 0; p < 2; p++)
        v.f[p] = round_part(t, combine_floats(op, a.f[p], b.f[p]));
    return v;
}

static bool is_value(dc_dtype t, value v, const char *at)
{
    const dc_dtype part = dc_dtype_part(t);
    for (int p = 0; p <= dc_dtype_is_complex(t); p++) {
        const uint64_t got = dc_bits_load(part, at + (size_t)p * dc_dtype_size(part));
        const uint64_t want = dc_dtype_is_float(part) ? dc_bits_of(part, v.f[p]) : v.u;
        const bool nan = dc_dtype_is_float(part) && isnan(v.f[p]) && isnan(dc_value_of(part, got));
        if (got != want && !nan)
            return false;
    }
    return true;
}

/* ---- what is to come out ------------------------------------------------------------------------------- */

/* Of host h of the group those members that are on it, in order; of one host or of irregular ones all are on it. */
static value combined(const sample *s, int rank, uint32_t k, int64_t i)
{
    const int n = (int)dc_group_size(&s->x.axes);
    int count[RANKS_MOST] = {0}, nhost = 0, host[RANKS_MOST];
    for (int m = 0; m < n; m++) {
        host[m] = s->host != NULL ? s->host[dc_group_rank(&s->x.axes, rank, m)] : 0;
        nhost += count[host[m]]++ == 0;
    }
    bool regular = true;
    for (int m = 0; m < n; m++)
        regular = regular && count[host[m]] * nhost == n;
    value all = {0};
    bool begun = false;
    for (int h = 0; h < RANKS_MOST; h++) {
        value part = {0};
        bool any = false;
        for (int m = 0; m < n; m++)
            if (regular ? host[m] == h : h == 0) {
                const value v = value_of(s->x.dtype, dc_group_rank(&s->x.axes, rank, m), k, i);
                part = any ? combine(s->x.dtype, s->x.combine, part, v) : v;
                any = true;
            }
        if (any)
            all = begun ? combine(s->x.dtype, s->x.combine, all, part) : part;
        begun = begun || any;
    }
    return all;
}

static value member_value(const sample *s, int rank, int member, uint32_t k, int64_t i)
{
    return value_of(s->x.dtype, dc_group_rank(&s->x.axes, rank, member), k, i);
}

/* Element i of what `rank` is to have in array k. */
static value expected(const sample *s, int rank, uint32_t k, int64_t i)
{
    const int64_t n = dc_group_size(&s->x.axes), inner = s->array[k].inner;
    const int64_t me = dc_group_member(&s->x.axes, rank);
    const int64_t row = i / inner, column = i % inner;
    switch (s->x.kind) {
    case DC_ALL_REDUCE:
        return combined(s, rank, k, i);
    case DC_REDUCE_SCATTER:
        return combined(s, rank, k, (row * n + me) * inner + column);
    case DC_ALL_GATHER:
        return member_value(s, rank, (int)(row % n), k, row / n * inner + column);
    case DC_ALL_TO_ALL:
        return member_value(s, rank, (int)(row % n), k, (row / n * n + me) * inner + column);
    case DC_BROADCAST:
        return member_value(s, rank, s->x.peer, k, i);
    case DC_SEND:
    case DC_RECV:
        return member_value(s, rank, s->x.peer, k, i);
    }
    return (value){0};
}

/* ---- one exchange of a rank ------------------------------------------------------------------------------ */

typedef struct arrays {
    sample s;
    dc_transfer at[MOST_ARRAYS];
    char *from[MOST_ARRAYS], *to[MOST_ARRAYS];
    int64_t nto[MOST_ARRAYS];
} arrays;

static void make_arrays(const sample *s, int rank, arrays *a)
{
    const dc_exchange_kind kind = s->x.kind;
    const int64_t n = dc_group_size(&s->x.axes);
    const int64_t wide = n * (kind == DC_REDUCE_SCATTER || kind == DC_ALL_TO_ALL) +
                         (kind != DC_REDUCE_SCATTER && kind != DC_ALL_TO_ALL);
    const int64_t wide_to = kind == DC_ALL_GATHER || kind == DC_ALL_TO_ALL ? n : 1;
    const dc_dtype t = s->x.dtype, part = dc_dtype_part(t);
    const int64_t parts = dc_dtype_is_complex(t) ? 2 : 1;
    *a = (arrays){.s = *s};
    a->s.x.at = a->at;
    for (uint32_t k = 0; k < s->x.n; k++) {
        const int64_t each = s->array[k].outer * s->array[k].inner, nfrom = each * wide;
        a->nto[k] = each * wide_to;
        a->from[k] = malloc((size_t)nfrom * dc_dtype_size(t) + 1);
        a->to[k] = s->in_place ? a->from[k] : malloc((size_t)a->nto[k] * dc_dtype_size(t) + 1);
        for (int64_t i = 0; i < nfrom * parts; i++)
            dc_bits_store(part, a->from[k] + (size_t)i * dc_dtype_size(part),
                          element(t, rank, k, i));
        a->at[k] = (dc_transfer){a->from[k], a->to[k], s->array[k].outer, s->array[k].inner};
        if (kind == DC_BROADCAST && dc_group_member(&s->x.axes, rank) != s->x.peer)
            a->at[k].from = NULL;
    }
}

/* How many elements are not what they are to be. */
static int64_t check_arrays(arrays *a, int rank)
{
    int64_t wrong = 0;
    for (uint32_t k = 0; k < a->s.x.n; k++) {
        const uint64_t most =
            a->nto[k] > 4000 ? 60 : 1; /* of long ones some, other ones on each rank */
        for (int64_t i = 0; i < a->nto[k] && a->s.x.kind != DC_SEND;
             i += 1 + (int64_t)(draw((uint64_t)rank, (uint64_t)i, 0) % most))
            wrong += !is_value(a->s.x.dtype, expected(&a->s, rank, k, i),
                               a->to[k] + (size_t)i * dc_dtype_size(a->s.x.dtype));
        if (a->to[k] != a->from[k])
            free(a->to[k]);
        free(a->from[k]);
    }
    return wrong;
}

typedef struct samples {
    uint32_t n;
    sample at[400];
} samples;

/* One after the other. */
static dc_status run_samples(dc_job *j, rank_of *r)
{
    samples *all = r->all->ctx;
    for (uint32_t i = 0; i < all->n; i++) {
        arrays a;
        make_arrays(&all->at[i], r->rank, &a);
        const dc_status status = dc_world_run(r->w, j, &a.s.x);
        const int64_t wrong = check_arrays(&a, r->rank);
        DC_TRY(status);
        if (wrong > 0 && r->wrong == 0)
            printf("sample %u, %s of %s, by %d: %lld are wrong\n", i, a.s.x.label,
                   dc_dtype_name(a.s.x.dtype), (int)a.s.x.combine, (long long)wrong);
        r->wrong += wrong;
    }
    return DC_OK;
}

/* All are under way at once. */
static dc_status run_samples_at_once(dc_job *j, rank_of *r)
{
    samples *all = r->all->ctx;
    arrays *a = dc_arena_alloc(&j->scratch, all->n * sizeof *a);
    dc_ticket *ticket = dc_arena_alloc(&j->scratch, all->n * sizeof *ticket);
    for (uint32_t i = 0; i < all->n; i++) {
        make_arrays(&all->at[i], r->rank, &a[i]);
        DC_TRY(dc_world_begin(r->w, j, &a[i].s.x, &ticket[i]));
    }
    dc_status status = DC_OK;
    for (uint32_t i = 0; i < all->n; i++)
        if (status == DC_OK)
            status = dc_world_end(r->w, j, ticket[i]);
    for (uint32_t i = 0; i < all->n; i++) {
        if (status == DC_OK && !dc_world_ended(r->w, ticket[i]))
            r->wrong++;
        r->wrong += check_arrays(&a[i], r->rank);
    }
    return status;
}

static void check_ranks(const ranks *all, const char *what)
{
    for (int r = 0; r < all->n; r++)
        if (!CHECK(all->at[r].status == DC_OK && all->at[r].wrong == 0))
            printf("%s: rank %d of %d: %lld wrong; %s\n", what, r, all->n,
                   (long long)all->at[r].wrong, all->at[r].error);
}

/* ---- samples ------------------------------------------------------------------------------------------- */

static const char *const labels[] = {
    "all_reduce, a.lua:1", "reduce_scatter, a.lua:2", "all_gather, a.lua:3", "all_to_all, a.lua:4",
    "broadcast, a.lua:5",  "send, a.lua:6",           "recv, a.lua:7"};

static dc_group_axes all_of(int n)
{
    return (dc_group_axes){.naxis = 1, .mask = 1, .size = {n}};
}

static sample *add(samples *s, dc_exchange_kind kind, dc_combine op, dc_dtype t, dc_group_axes axes)
{
    sample *at = &s->at[s->n++];
    *at = (sample){
        .x = {.kind = kind, .combine = op, .dtype = t, .axes = axes, .label = labels[kind], .n = 1},
        .array = {{1, 5}}};
    return at;
}

/* Every kind, operation and dtype, of a few odd sizes. */
static void add_dtypes(samples *s, dc_group_axes axes, const int *host)
{
    for (int t = 0; t < DC_DTYPE__ALL; t++)
        for (int op = 0; op < 4; op++) {
            if (dc_combine_find((dc_combine)op, (dc_dtype)t, (dc_dtype)t) == NULL)
                continue;
            sample *a = add(s, DC_ALL_REDUCE, (dc_combine)op, (dc_dtype)t, axes);
            a->array[0] = (shape){1, 600 + op};
            a->host = host;
            sample *b = add(s, DC_REDUCE_SCATTER, (dc_combine)op, (dc_dtype)t, axes);
            b->array[0] = (shape){3, 7};
            b->host = host;
        }
}

/* Every kind with several arrays of all sorts of sizes. */
static void add_kinds(samples *s, dc_group_axes axes, const int *host)
{
    static const shape of[][MOST_ARRAYS] = {{{1, 0}, {0, 4}, {2, 0}},
                                            {{1, 1}, {5, 3}, {1, 2}},
                                            {{1, 1000}, {1, 0}, {17, 13}},
                                            {{1, 40000}, {2, 20011}, {1, 90001}}};
    const int n = (int)dc_group_size(&axes);
    for (size_t i = 0; i < DC_COUNTOF(of); i++)
        for (int kind = DC_ALL_REDUCE; kind <= DC_BROADCAST; kind++) {
            sample *a =
                add(s, (dc_exchange_kind)kind, DC_COMBINE_SUM, i % 2 != 0 ? DC_F32 : DC_BF16, axes);
            memcpy(a->array, of[i], sizeof of[i]);
            a->x.n = i == 3 && kind != DC_ALL_REDUCE ? 2 : 3;
            a->x.peer = (int)i % n;
            a->in_place = kind == DC_ALL_REDUCE && i != 1;
            a->host = host;
        }
}

/* Races, and what waits, do not depend on the type of the elements. */
#if defined(__SANITIZE_THREAD__) || defined(TEST_CLOCK)
#define EVERY_DTYPE(n) ((n) == 3)
#else
#define EVERY_DTYPE(n) ((n) != 4)
#endif

static void run_all(int n, const int *host, const char *what)
{
    static samples s;
    ranks all = {.seconds = 0};
    s.n = 0;
    if (EVERY_DTYPE(n))
        add_dtypes(&s, all_of(n), host);
    add_kinds(&s, all_of(n), host);
    ranks_run(&all, n, host, run_samples, &s);
    check_ranks(&all, what);
}

/* Groups of a mesh, in an order in which no two that follow each other are the same. */
static void run_mesh(dc_group_axes mesh, const int *host)
{
    static samples s;
    ranks all = {.seconds = 0};
    uint32_t n = 1;
    s.n = 0;
    for (uint32_t a = 0; a < mesh.naxis; a++)
        n *= (uint32_t)mesh.size[a];
    for (uint32_t k = 0; k < 16; k++) {
        dc_group_axes axes = mesh;
        axes.mask = (k * 5 + 3) % (1u << mesh.naxis);
        sample *a = add(&s, (dc_exchange_kind)(k % 5), DC_COMBINE_SUM, DC_F32, axes);
        a->array[0] = (shape){1, 1 + (k * 7919) % 5000};
        a->host = host;
        if (k % 8 == 7)
            add_kinds(&s, axes, host);
    }
    ranks_run(&all, (int)n, host, run_samples, &s);
    check_ranks(&all, "mesh");
    ranks_run(&all, (int)n, host, run_samples_at_once, &s);
    check_ranks(&all, "mesh at once");
}

static void test_meshes(const int *host)
{
    run_mesh((dc_group_axes){.naxis = 2, .size = {2, 2}}, host);
    run_mesh((dc_group_axes){.naxis = 2, .size = {2, 3}}, host);
    run_mesh((dc_group_axes){.naxis = 3, .size = {2, 2, 2}}, host);
}

/* ---- groups -------------------------------------------------------------------------------------------- */

static void test_groups(void)
{
    const dc_group_axes g = {.naxis = 3, .mask = 1 | 4, .size = {2, 3, 4}};
    CHECK_EQ(dc_group_size(&g), 8);
    for (int r = 0; r < 24; r++) {
        int64_t below = -1;
        CHECK_EQ(dc_group_rank(&g, r, dc_group_member(&g, r)), r);
        for (int64_t m = 0; m < 8; m++) {
            const int other = dc_group_rank(&g, r, m);
            CHECK(other > below && other / 4 % 3 == r / 4 % 3);
            CHECK_EQ(dc_group_member(&g, other), m);
            below = other;
        }
    }
}

/* ---- messages from one to another ---------------------------------------------------------------------- */

/* Each rank hands its numbers on to the next one, round a ring: all send first, all receive first, or in turns. */
static dc_status hand_on(dc_job *j, rank_of *r)
{
    enum { N = 200001 };
    const int n = r->all->n, before = (r->rank + n - 1) % n, next = (r->rank + 1) % n;
    float *from = dc_arena_alloc(&j->scratch, N * sizeof *from),
          *to = dc_arena_alloc(&j->scratch, N * sizeof *to);
    for (int i = 0; i < N; i++)
        from[i] = (float)(r->rank * 1000 + i % 1000);
    const dc_transfer out = {from, NULL, 1, N}, in = {NULL, to, 1, N};
    const dc_exchange send = {.kind = DC_SEND,
                              .dtype = DC_F32,
                              .axes = all_of(n),
                              .peer = next,
                              .label = "send, a.lua:1",
                              .n = 1,
                              .at = &out};
    const dc_exchange recv = {.kind = DC_RECV,
                              .dtype = DC_F32,
                              .axes = all_of(n),
                              .peer = before,
                              .label = "recv, b.lua:1",
                              .n = 1,
                              .at = &in};
    for (int round = 0; round < 3; round++) {
        dc_ticket a, b;
        const int first = round < 2 ? round : r->rank % 2;
        DC_TRY(dc_world_begin(r->w, j, first == 0 ? &send : &recv, &a));
        DC_TRY(dc_world_begin(r->w, j, first == 0 ? &recv : &send, &b));
        DC_TRY(dc_world_end(r->w, j, b));
        DC_TRY(dc_world_end(r->w, j, a));
        for (int i = 0; i < N; i++)
            r->wrong += to[i] != (float)(before * 1000 + i % 1000);
    }
    return DC_OK;
}

/* Several arrays are copied, whose memory changes at once, then received one after the other. */
static dc_status hand_on_copies(dc_job *j, rank_of *r)
{
    enum { N = 200001, MESSAGES = 5 };
    const int n = r->all->n, before = (r->rank + n - 1) % n, next = (r->rank + 1) % n;
    float *from = dc_arena_alloc(&j->scratch, N * sizeof *from),
          *to = dc_arena_alloc(&j->scratch, N * sizeof *to);
    for (int round = 0; round < 2; round++) {
        for (int m = 0; m < MESSAGES; m++) {
            char label[20], where[20];
            const int64_t size = m % 2 == 0 ? N : 1 + m;
            const dc_transfer out = {from, NULL, 1, size};
            dc_ticket t;
            snprintf(label, sizeof label, "send");
            snprintf(where, sizeof where, "a.lua:%d", m);
            for (int i = 0; i < N; i++)
                from[i] = (float)(r->rank * 1000 + m * 100 + i % 100);
            DC_TRY(dc_world_begin(r->w, j,
                                  &(dc_exchange){.kind = DC_SEND,
                                                 .dtype = DC_F32,
                                                 .axes = all_of(n),
                                                 .peer = next,
                                                 .copied = true,
                                                 .label = label,
                                                 .where = where,
                                                 .n = 1,
                                                 .at = &out},
                                  &t));
            r->wrong += t != 0;
        }
        for (int m = 0; m < MESSAGES; m++) {
            const int64_t size = m % 2 == 0 ? N : 1 + m;
            const dc_transfer in = {NULL, to, 1, size};
            DC_TRY(dc_world_run(r->w, j,
                                &(dc_exchange){.kind = DC_RECV,
                                               .dtype = DC_F32,
                                               .axes = all_of(n),
                                               .peer = before,
                                               .label = "recv, b.lua:1",
                                               .n = 1,
                                               .at = &in}));
            for (int64_t i = 0; i < size; i++)
                r->wrong += to[i] != (float)(before * 1000 + m * 100 + i % 100);
        }
    }
    return DC_OK;
}

/* ---- failures ------------------------------------------------------------------------------------------ */

static dc_status reduce(dc_job *j, rank_of *r, int64_t n, const char *label)
{
    float *x = dc_arena_alloc(&j->scratch, (size_t)(n + 1) * sizeof *x);
    const dc_transfer at = {x, x, 1, n};
    const dc_exchange e = {
        .dtype = DC_F32, .axes = all_of(r->all->n), .label = label, .n = 1, .at = &at};
    return dc_world_run(r->w, j, &e);
}

static dc_status disagree(dc_job *j, rank_of *r)
{
    DC_TRY(reduce(j, r, 10, "all_reduce, a.lua:1"));
    return reduce(j, r, r->rank == r->all->n - 1 ? 7 : 1000,
                  r->rank == r->all->n - 1 ? "all_reduce, a.lua:9" : "all_reduce, a.lua:3");
}

/* Each gives, and none takes. */
static dc_status broadcast_all(dc_job *j, rank_of *r)
{
    float x[5] = {0};
    const dc_transfer at = {x, x, 1, 5};
    const dc_exchange e = {.kind = DC_BROADCAST,
                           .dtype = DC_F32,
                           .axes = all_of(r->all->n),
                           .peer = r->rank,
                           .label = "broadcast",
                           .where = "a.lua:2",
                           .n = 1,
                           .at = &at};
    DC_TRY(reduce(j, r, 10, "all_reduce, a.lua:1"));
    return dc_world_run(r->w, j, &e);
}

static dc_status fail_one(dc_job *j, rank_of *r)
{
    DC_TRY(reduce(j, r, 10, "all_reduce, a.lua:1"));
    if (r->rank == 0) {
        dc_world_fail(r->w, "train.lua:3: no such file");
        return DC_OK;
    }
    return reduce(j, r, 100000, "all_reduce, a.lua:2");
}

static dc_status leave_one(dc_job *j, rank_of *r)
{
    DC_TRY(reduce(j, r, 10, "all_reduce, a.lua:1"));
    return r->rank == 0 ? DC_OK : reduce(j, r, 20, "all_reduce, a.lua:2");
}

static dc_status kill_one(dc_job *j, rank_of *r)
{
    DC_TRY(reduce(j, r, 10, "all_reduce, a.lua:1"));
    if (r->rank == 0) {
        dc_threads_leave(r->all->engine, 0);
        while (dc_world_failure(r->w) ==
               NULL) /* it has no thread to look with; the others find it */
            DC_TRY(dc_job_ended(j));
        return DC_OK;
    }
    return reduce(j, r, 20, "all_reduce, a.lua:2");
}

static dc_status come_late(dc_job *j, rank_of *r)
{
    DC_TRY(reduce(j, r, 10, "all_reduce, a.lua:1"));
    if (r->rank > 0)
        return reduce(j, r, 20, "all_reduce, a.lua:2");
    while (dc_world_failure(r->w) == NULL)
        DC_TRY(dc_job_ended(j));
    return reduce(j, r, 20, "all_reduce, a.lua:2");
}

static void hear(void *heard)
{
    atomic_store((atomic_bool *)heard, true);
}

/* Rank 1 fails, rank 0 waits for nobody: it is told, and what it says of it names both. */
static dc_status hear_one(dc_job *j, rank_of *r)
{
    atomic_bool heard = false;
    char text[500] = "";
    DC_TRY(reduce(j, r, 10, "all_reduce, a.lua:1"));
    if (r->rank == 1) {
        CHECK(dc_world_say(r->w, "a.lua:3: boom"));
        dc_world_fail(r->w, "later words");
        CHECK(dc_world_sentence(r->w, false, text, sizeof text));
        CHECK(strncmp(text, "rank 1 (host", 12) == 0 && strstr(text, "ended because") == NULL);
        return DC_OK;
    }
    dc_world_alarm(r->w, hear, &heard);
    while (r->rank == 0 && !atomic_load(&heard))
        DC_TRY(dc_job_ended(j));
    const dc_status status = reduce(j, r, 20, "all_reduce, a.lua:2");
    CHECK(!dc_world_finish(r->w));
    CHECK(dc_world_sentence(r->w, false, text, sizeof text));
    CHECK(strstr(text, "): ended because rank 1 (host") != NULL);
    CHECK(strstr(text, ") failed: a.lua:3: boom") != NULL);
    return status;
}

/* Rank 1 interrupts rank 0, which waits for it. */
static dc_status interrupt_one(dc_job *j, rank_of *r)
{
    DC_TRY(reduce(j, r, 10, "all_reduce, a.lua:1"));
    if (r->rank == 1) {
        atomic_store(&r->all->at[0].cancel, true);
        while (dc_world_failure(r->w) == NULL)
            DC_TRY(dc_job_ended(j));
    }
    return reduce(j, r, 20, "all_reduce, a.lua:2");
}

static void check_error(const ranks *all, int from, const char *words)
{
    for (int r = from; r < all->n; r++)
        if (!CHECK(all->at[r].status == DC_E_DEVICE && strstr(all->at[r].error, words) != NULL))
            printf("rank %d of %d: '%s' and not '%s'\n", r, all->n, all->at[r].error, words);
}

static void test_failures(int n, const int *host)
{
    ranks all = {.seconds = 0};
    char words[100];
    ranks_run(&all, n, host, disagree, NULL);
    snprintf(words, sizeof words,
             ": all_reduce f32 x 1000, a.lua:3; rank %d: all_reduce f32 x 7, a.lua:9", n - 1);
    check_error(&all, 0, "ranks disagree: rank ");
    check_error(&all, 0, words);
    ranks_run(&all, n, host, broadcast_all, NULL);
    check_error(&all, 0, "ranks disagree: rank ");
    check_error(&all, 0, ": broadcast f32 x 5, from rank ");
    ranks_run(&all, n, host, fail_one, NULL);
    CHECK_STR(all.at[0].failure, "");
    check_error(&all, 1, "rank 0 (host0) failed: train.lua:3: no such file");
    ranks_run(&all, n, host, leave_one, NULL);
    check_error(&all, 1, "rank 0 (host0) has ended, and rank ");
    ranks_run(&all, n, host, hear_one, NULL);
    check_error(&all, 2, ") failed: a.lua:3: boom");
    ranks_run(&all, n, host, interrupt_one, NULL);
    CHECK_STR(all.at[0].error, "interrupted");
    check_error(&all, 1, "rank 0 (host0) was interrupted ");
    if (n != 3 || (host != NULL && host[1] == 0)) /* it takes two seconds */
        return;
    all.seconds = 2;
    ranks_run(&all, n, host, come_late, NULL);
    check_error(&all, 0, " has not answered");
    check_error(&all, 0, " for 2 s in all_reduce, a.lua:2");
}

static void test_deaths(int n)
{
    ranks all = {.seconds = 0};
    ranks_run(&all, n, NULL, kill_one, NULL);
    check_error(&all, 1,
                "rank 0 (host0) was killed or has crashed; all_reduce, a.lua:2 waited for it");
}

/* ---- agreement, barriers, one rank --------------------------------------------------------------------- */

static dc_status agree(dc_job *j, rank_of *r)
{
    char text[80];
    snprintf(text, sizeof text, "x: f32[3]\ny: f32[%d]\n", r->rank == 1 ? 4 : 5);
    DC_TRY(dc_world_barrier(r->w, j, "barrier, a.lua:1"));
    DC_TRY(dc_world_agree(r->w, j, "the seed", 42, "42"));
    const dc_status status = dc_world_agree(r->w, j, "the graph of step", r->rank == 1, text);
    if (status != DC_OK)
        dc_err_render(&j->err, 1, r->error, sizeof r->error);
    j->err = (dc_err){0};
    r->wrong = status == DC_OK;
    return dc_world_barrier(r->w, j, "barrier, a.lua:2"); /* the world is fine */
}

static void test_agree(int n, const int *host)
{
    ranks all = {.seconds = 0};
    ranks_run(&all, n, host, agree, NULL);
    check_ranks(&all, "agree");
    for (int r = 0; r < n; r++)
        CHECK_STR(
            all.at[r].error,
            "the graph of step differs between ranks: rank 0 has 'y: f32[5]', rank 1 'y: f32[4]'");
}

static dc_status run_alone(dc_job *j, void *arg)
{
    dc_world *w;
    float x[3] = {1, 2, 3}, y[3] = {0};
    const dc_transfer at = {x, y, 1, 3};
    const dc_exchange e = {
        .dtype = DC_F32, .axes = all_of(1), .label = "all_reduce", .n = 1, .at = &at};
    dc_ticket t = 1;
    DC_UNUSED(arg);
    DC_TRY(dc_world_alone(j, &w));
    CHECK_EQ(dc_world_begin(w, j, &e, &t), DC_OK);
    CHECK_EQ(t, 0);
    CHECK_EQ(dc_world_end(w, j, t), DC_OK);
    CHECK(y[0] == 1 && y[2] == 3);
    CHECK_EQ(dc_world_agree(w, j, "a", 1, "a"), DC_OK);
    CHECK_EQ(dc_world_barrier(w, j, "b"), DC_OK);
    CHECK(dc_world_host(w, 0)[0] != '\0' && dc_world_size(w) == 1 && dc_world_rank(w) == 0);
    dc_world_fail(w, "anything");
    CHECK_STR(dc_world_failure(w), NULL);
    dc_world_close(w);
    return DC_OK;
}

static void test_alone(void)
{
    static const dc_opts opt;
    dc_job j;
    dc_job_init(&j, &opt, NULL);
    CHECK_EQ(dc_protect(&j, run_alone, NULL), DC_OK);
    dc_job_fini(&j);
}

/* Hosts of eight ranks, and of fewer. */
static const int each[] = {0, 1, 2, 3, 4, 5, 6, 7}, pairs[] = {0, 0, 1, 1, 2, 2, 3, 3},
                 halves[] = {0, 0, 0, 0, 1, 1, 1, 1}, turns[] = {0, 1, 0, 1, 0, 1, 0, 1},
                 odd[] = {0, 0, 0, 1, 1, 2, 0, 1};

/* A rank gives (n - 1) / n of the bytes to the others to combine, and as many to gather. */
static void test_bytes(void)
{
    static samples s;
    static const double times[] = {2, 1, 1, 1};
    for (int kind = DC_ALL_REDUCE; kind <= DC_ALL_TO_ALL; kind++) {
        ranks all = {.seconds = 0};
        const int64_t n = 4, elements = 400000;
        s.n = 0;
        sample *a = add(&s, (dc_exchange_kind)kind, DC_COMBINE_SUM, DC_BF16, all_of(4));
        a->array[0] = (shape){1, kind == DC_ALL_REDUCE ? elements : elements / n};
        a->host = each;
        ranks_run(&all, 4, each, run_samples, &s);
        check_ranks(&all, "bytes");
        for (int r = 0; r < n; r++)
            CHECK_EQ(all.at[r].sent, (uint64_t)(times[kind] * 3 / 4 * (double)elements * 2));
    }
}

/* ---- a member that lies -------------------------------------------------------------------------------- */

static const dc_engine_ops *honest;
static _Atomic uint32_t told;

/* Heads of rank 1 are of another exchange, in every field; names and notices have no end. */
static bool send_lies(dc_engine *e, int rank, int tag, const void *bytes, size_t n, dc_request *r)
{
    static dc_head lies[4096]; /* they stay where they are until they have arrived */
    static char words[256][DC_TEXT_BYTES];
    const uint32_t k = atomic_fetch_add(&told, 1), random = k * 2654435761u;
    if (e->rank == 1 && tag == DC_TAG_HEAD) {
        dc_head *lie = &lies[k % DC_COUNTOF(lies)];
        memcpy(lie, bytes, sizeof *lie);
        lie->digest ^= 1;
        lie->elements = random % 3 == 0 ? INT64_MAX : random % 3 == 1 ? INT64_MIN : -1;
        lie->dtype = random % 5 == 0 ? lie->dtype : (int32_t)random;
        lie->kind = random % 7 < 3 ? (int32_t)(random % 7) : (int32_t)(random * 5);
        lie->how = (int32_t)(random * 3);
        lie->end = random % 11 == 0;
        memset(lie->label, 'x', sizeof lie->label);
        bytes = lie;
    } else if (e->rank == 1 && tag == DC_TAG_NOTICE) {
        bytes = memset(words[k % DC_COUNTOF(words)], 'x', sizeof *words);
    }
    return honest->send(e, rank, tag, bytes, n, r);
}

static void make_liar(dc_engine *e)
{
    static dc_engine_ops lying;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (honest == NULL) {
        honest = e->ops;
        lying = *e->ops;
        lying.send = send_lies;
    }
    e->ops = &lying;
    pthread_mutex_unlock(&lock);
}

static dc_status meet(dc_job *j, rank_of *r)
{
    return dc_world_barrier(r->w, j, "barrier, a.lua:1");
}

/* A name without end is shown as far as it goes; what lies behind it is not. */
static bool ends_with_name(const char *error)
{
    const char *x = strstr(error, "xxxx");
    if (x == NULL)
        return error[0] != '\0';
    const size_t n = strspn(x, "x");
    return x[n] == '\0' || x[n] == ' ' || x[n] == ';' || x[n] == '\n';
}

/* Each of the others hears that ranks disagree, or that one has failed, and none reads behind what it was sent. */
static void test_lies(void)
{
    for (int n = 2; n <= 4; n++)
        for (int round = 0; round < 12; round++) {
            ranks all = {.seconds = 20, .change = make_liar};
            ranks_run(&all, n, each, meet, NULL);
            for (int r = 0; r < n; r++)
                CHECK(all.at[r].status == DC_E_DEVICE && ends_with_name(all.at[r].error));
        }
}

/* An engine that cannot be opened, and one whose ranks have no memory in common. */
static bool refuse_open(dc_engine *e)
{
    snprintf(e->why, sizeof e->why, "no network");
    return false;
}

static bool open_two(dc_engine *e)
{
    static const int host[] = {0, 0};
    static const char *const name[] = {"a", "a"};
    e->size = 2;
    e->host = host;
    e->name = name;
    return true;
}

static void *refuse_segment(dc_engine *e, size_t bytes)
{
    snprintf(e->why, sizeof e->why, "no room for %zu bytes", bytes);
    return NULL;
}

static void count_close(dc_engine *e, bool clean)
{
    e->rank += 10 + clean;
}

static dc_status open_refused(dc_job *j, void *arg)
{
    dc_world *w = NULL;
    return dc_world_open(j, arg, &w);
}

static void test_engines(void)
{
    static const dc_engine_ops closed = {.open = refuse_open, .close = count_close},
                               crowded = {.open = open_two,
                                          .segment = refuse_segment,
                                          .close = count_close};
    static const dc_opts opt;
    dc_job j;
    dc_job_init(&j, &opt, NULL);
    dc_engine e = {.ops = &closed};
    CHECK_EQ(dc_protect(&j, open_refused, &e), DC_E_DEVICE);
    CHECK(strstr(j.err.text, "no network") != NULL && e.rank == 10);
    e = (dc_engine){.ops = &crowded};
    CHECK_EQ(dc_protect(&j, open_refused, &e), DC_E_DEVICE);
    CHECK(strstr(j.err.text, "no room for ") != NULL && e.rank == 10);
    dc_job_fini(&j);
}

int main(void)
{
    static const int sizes[] = {1, 2, 3, 4, 5, 8};
    test_groups();
    test_alone();
    test_engines();
    test_lies();
    for (size_t i = 0; i < DC_COUNTOF(sizes); i++) {
        run_all(sizes[i], NULL, "one host");
        run_all(sizes[i], each, "a host each");
    }
    run_all(4, pairs, "two on a host");
    run_all(8, pairs, "two on a host");
    run_all(8, halves, "four on a host");
    run_all(8, turns, "in turns");
    run_all(5, odd, "odd hosts");
    run_all(8, odd, "odd hosts");
    test_meshes(NULL);
    test_meshes(each);
    test_meshes(pairs);
    test_meshes(odd);
    test_bytes();
    for (int n = 2; n <= 4; n++) {
        static const int *const hosts[] = {NULL, each, pairs, odd};
        for (size_t h = 0; h < DC_COUNTOF(hosts); h++) {
            ranks all = {.seconds = 0};
            ranks_run(&all, n, hosts[h], hand_on, NULL);
            check_ranks(&all, "hand on");
            all = (ranks){.seconds = 0};
            ranks_run(&all, n, hosts[h], hand_on_copies, NULL);
            check_ranks(&all, "hand on copies");
            test_failures(n, hosts[h]);
            test_agree(n, hosts[h]);
        }
        test_deaths(n);
    }
    return t_done();
}
