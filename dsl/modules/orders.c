/*
 * Orders of rows. Internals for stdlib/data:
 *
 *   order(n, seed, epoch [, base])   a shuffled order of 0..n-1, or of the rows of another order
 *   order_list(rows)                 rows as a list, from 1
 *   order_part(order, n, first, count)   a part of an order, or of 0..n-1
 *   order_grouped(n, base or nil, rows, size, seed, epoch, shuffle)
 *                                    rows of several lengths so that those of a batch are about as long
 *   order_weighted(weights, base or nil, draws, seed, epoch, replacement)
 *                                    rows drawn with probabilities; weights: one of a tensor for each row
 *   order_joined(order, order)       one behind the other
 *   order_row(order, i)              its row i; both count from 1
 *   order_pick(seed, epoch, i, n)    a number of 0..n-1
 *   order_count(order)
 *   order_digest(order)              a number that orders of other rows hardly share
 */
#include "dsl/modules/orders.h"

#include "core/base/bits.h"
#include "core/base/sort.h"
#include "dsl/base/args.h"
#include "dsl/base/error.h"
#include "dsl/base/interrupt.h"
#include "dsl/base/run.h"
#include "dsl/ops/ops.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Loops over batches point to it, from other threads too, so it lies in no userdata that Lua may free before them. */
static void drop_order(void *node)
{
    DC_UNUSED(node);
}

const dc_utype dc_order_type = {.name = "deepc.order", .drop = drop_order};

static dc_order *new_order(lua_State *L, int64_t n)
{
    luaL_argcheck(L, n >= 0 && n < UINT32_MAX, 1, "too many rows");
    dc_order *o = dc_udata_new(L, &dc_order_type, sizeof *o + (size_t)n * sizeof o->at[0], 0);
    o->n = n;
    o->most = n - 1;
    return o;
}

static const dc_order *base_at(lua_State *L, int idx)
{
    return lua_isnoneornil(L, idx) ? NULL : dc_udata_check(L, idx, &dc_order_type);
}

/* 0..n-1, or the rows of base. */
static void begin(lua_State *L, dc_dsl *d, dc_order *o, const dc_order *base, uint32_t *looks)
{
    luaL_argcheck(L, base == NULL || base->n == o->n, 1, "rows of the order");
    for (int64_t i = 0; i < o->n; i++) {
        dc_interrupt_poll_often(L, d, looks);
        o->at[i] = base != NULL ? base->at[i] : (uint32_t)i;
    }
    if (base != NULL)
        o->most = base->most;
}

/* Fisher and Yates, with bits of (seed, epoch). A 32-bit number times the range picks. */
static void shuffle(lua_State *L, dc_dsl *d, uint32_t *at, int64_t n, uint64_t seed, uint64_t epoch,
                    uint32_t *looks)
{
    for (int64_t i = n - 1; i > 0; i--) {
        dc_interrupt_poll_often(L, d, looks);
        const uint64_t bits = dc_rand_bits(seed, epoch, (uint64_t)i);
        const int64_t k = (int64_t)(bits * (uint64_t)(i + 1) >> 32);
        const uint32_t other = at[k];
        at[k] = at[i];
        at[i] = other;
    }
}

static int l_order(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const int64_t n = luaL_checkinteger(L, 1);
    const uint64_t seed = (uint64_t)luaL_checkinteger(L, 2);
    const uint64_t epoch = (uint64_t)luaL_checkinteger(L, 3);
    const dc_order *base = base_at(L, 4);
    uint32_t looks = 0;
    dc_order *o = new_order(L, n);
    begin(L, d, o, base, &looks);
    shuffle(L, d, o->at, n, seed, epoch, &looks);
    return 1;
}

static int l_order_list(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    const int64_t n = (int64_t)lua_rawlen(L, 1);
    dc_order *o = new_order(L, n);
    o->most = -1;
    for (int64_t i = 0; i < n; i++) {
        lua_rawgeti(L, 1, i + 1);
        const lua_Integer row = luaL_checkinteger(L, -1);
        luaL_argcheck(L, row >= 1 && row < UINT32_MAX, 1, "rows count from 1");
        o->at[i] = (uint32_t)(row - 1);
        o->most = dc_max_i64(o->most, row - 1);
        lua_pop(L, 1);
    }
    return 1;
}

static int l_order_part(lua_State *L)
{
    const dc_order *base = base_at(L, 1);
    const int64_t n = luaL_checkinteger(L, 2), first = luaL_checkinteger(L, 3);
    const int64_t count = luaL_checkinteger(L, 4);
    luaL_argcheck(L,
                  first >= 0 && count >= 0 && first <= n - count && (base == NULL || base->n == n),
                  3, "rows outside");
    dc_order *o = new_order(L, count);
    o->most = -1;
    for (int64_t i = 0; i < count; i++) {
        o->at[i] = base != NULL ? base->at[first + i] : (uint32_t)(first + i);
        o->most = dc_max_i64(o->most, o->at[i]);
    }
    return 1;
}

static int l_order_joined(lua_State *L)
{
    const dc_order *a = dc_udata_check(L, 1, &dc_order_type),
                   *b = dc_udata_check(L, 2, &dc_order_type);
    dc_order *o = new_order(L, a->n + b->n);
    memcpy(o->at, a->at, (size_t)a->n * sizeof o->at[0]);
    memcpy(o->at + a->n, b->at, (size_t)b->n * sizeof o->at[0]);
    o->most = dc_max_i64(a->most, b->most);
    return 1;
}

static int l_order_row(lua_State *L)
{
    const dc_order *o = dc_udata_check(L, 1, &dc_order_type);
    const lua_Integer i = luaL_checkinteger(L, 2);
    luaL_argcheck(L, i >= 1 && i <= o->n, 2, "no such row");
    lua_pushinteger(L, (lua_Integer)o->at[i - 1] + 1);
    return 1;
}

/* One of 0..n-1. */
static int l_order_pick(lua_State *L)
{
    const uint64_t bits =
        dc_rand_bits((uint64_t)luaL_checkinteger(L, 1), (uint64_t)luaL_checkinteger(L, 2),
                     (uint64_t)luaL_checkinteger(L, 3));
    const uint64_t n = (uint64_t)luaL_checkinteger(L, 4);
    luaL_argcheck(L, n > 0 && n <= UINT32_MAX, 4, "numbers to pick from");
    lua_pushinteger(L, (lua_Integer)(bits * n >> 32));
    return 1;
}

static int l_order_count(lua_State *L)
{
    lua_pushinteger(L, base_at(L, 1)->n);
    return 1;
}

static int l_order_digest(lua_State *L)
{
    const dc_order *o = dc_udata_check(L, 1, &dc_order_type);
    uint64_t h = (uint64_t)o->n;
    for (int64_t i = 0; i < o->n; i++)
        h = dc_hash_mix(h, o->at[i]);
    lua_pushinteger(L, (lua_Integer)h);
    return 1;
}

/* ---- rows of about one length ------------------------------------------------------------------ */

typedef struct keyed {
    double key;
    uint32_t row, place;
} keyed;

/* By key, then by where they stood. */
static int compare(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

typedef struct sorting {
    keyed *key;
    int64_t n;
} sorting;

static dc_status sort_body(dc_job *j, void *arg)
{
    const sorting *a = arg;
    return dc_sort(j, a->key, (size_t)a->n, sizeof *a->key, compare);
}

static void sort_keyed(lua_State *L, dc_dsl *d, keyed *key, int64_t n)
{
    sorting a = {key, n};
    dc_run(L, d, sort_body, &a);
}

/*
 * Shuffled, sorted by length within windows of many batches, and whole batches shuffled: rows of a batch are about
 * as long, and each epoch has other batches in another order.
 */
static int l_order_grouped(lua_State *L)
{
    enum { WINDOW = 100 }; /* batches */
    dc_dsl *d = dc_dsl_of(L);
    const int64_t n = luaL_checkinteger(L, 1), size = luaL_checkinteger(L, 4);
    const dc_order *base = base_at(L, 2);
    const dc_rows *r = ((dc_rows_holder *)dc_udata_check(L, 3, &dc_rows_type))->rows;
    const uint64_t seed = (uint64_t)luaL_checkinteger(L, 5),
                   epoch = (uint64_t)luaL_checkinteger(L, 6);
    const bool shuffled = lua_toboolean(L, 7);
    uint32_t looks = 0;
    luaL_argcheck(L, size > 0 && r != NULL && r->length != NULL, 3, "rows of several lengths");
    dc_order *o = new_order(L, n);
    begin(L, d, o, base, &looks);
    luaL_argcheck(L, o->most < r->type.dim[0], 2, "rows outside");
    if (shuffled)
        shuffle(L, d, o->at, n, seed, epoch, &looks);
    const int64_t window = dc_min_i64(n, size > INT64_MAX / WINDOW ? n : size * WINDOW);
    keyed *key = lua_newuserdatauv(L, (size_t)window * sizeof *key + 1, 0);
    for (int64_t from = 0; from < n; from += window) {
        const int64_t m = dc_min_i64(window, n - from);
        for (int64_t i = 0; i < m; i++)
            key[i] = (keyed){(double)r->length[o->at[from + i]], o->at[from + i], (uint32_t)i};
        sort_keyed(L, d, key, m);
        for (int64_t i = 0; i < m; i++)
            o->at[from + i] = key[i].row;
        dc_interrupt_poll(L, d);
    }
    const int64_t whole = shuffled ? n / size : 0;
    uint32_t *batch = lua_newuserdatauv(L, (size_t)whole * sizeof *batch + 1, 0);
    dc_order *mixed = new_order(L, n);
    mixed->most = o->most;
    for (int64_t i = 0; i < whole; i++)
        batch[i] = (uint32_t)i;
    shuffle(L, d, batch, whole, seed, epoch + ((uint64_t)1 << 31), &looks);
    memcpy(mixed->at, o->at, (size_t)n * sizeof o->at[0]);
    for (int64_t i = 0; i < whole; i++)
        memcpy(mixed->at + i * size, o->at + (int64_t)batch[i] * size,
               (size_t)size * sizeof o->at[0]);
    return 1;
}

/* ---- rows drawn with probabilities -------------------------------------------------------------- */

/* In [0, 1), 53 bits. */
static double uniform(uint64_t seed, uint64_t epoch, uint64_t i)
{
    const uint64_t high = dc_rand_bits(seed, epoch, 2 * i),
                   low = dc_rand_bits(seed, epoch, 2 * i + 1);
    return (double)(high << 21 | low >> 11) * 0x1p-53;
}

typedef struct drawing {
    int64_t n, draws;
    uint64_t seed, epoch;
    double *weight;
    const dc_order *base;
    dc_order *out;
} drawing;

static uint32_t row_of(const drawing *a, int64_t i)
{
    return a->base != NULL ? a->base->at[i] : (uint32_t)i;
}

/* Sums of weights, and the first one above a number. */
static void draw_again(lua_State *L, dc_dsl *d, drawing *a)
{
    uint32_t looks = 0;
    for (int64_t i = 1; i < a->n; i++)
        a->weight[i] += a->weight[i - 1];
    const double total = a->weight[a->n - 1];
    for (int64_t i = 0; i < a->draws; i++) {
        const double u = uniform(a->seed, a->epoch, (uint64_t)i) * total;
        int64_t lo = 0, hi = a->n - 1;
        dc_interrupt_poll_often(L, d, &looks);
        while (lo < hi) {
            const int64_t mid = lo + (hi - lo) / 2;
            if (a->weight[mid] > u)
                hi = mid;
            else
                lo = mid + 1;
        }
        a->out->at[i] = row_of(a, lo);
    }
}

/* Each row once: those with the largest u^(1/w) (Efraimidis and Spirakis, 2006), in that order. */
static void draw_once(lua_State *L, dc_dsl *d, drawing *a)
{
    uint32_t looks = 0;
    keyed *key = lua_newuserdatauv(L, (size_t)a->n * sizeof *key + 1, 0);
    for (int64_t i = 0; i < a->n; i++) {
        dc_interrupt_poll_often(L, d, &looks);
        const double u = uniform(a->seed, a->epoch, (uint64_t)i) + 0x1p-54;
        key[i] = (keyed){a->weight[i] > 0 ? -log(u) / a->weight[i] : (double)INFINITY, row_of(a, i),
                         (uint32_t)i};
    }
    sort_keyed(L, d, key, a->n);
    for (int64_t i = 0; i < a->draws; i++)
        a->out->at[i] = key[i].row;
}

static int l_order_weighted(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_handle *h = dc_handle_check(L, d, 1, "batches");
    const dc_type t = *dc_handle_type(h);
    const char *from = dc_handle_read(L, d, h, "batches");
    drawing a = {.n = dc_type_count(&t), .draws = luaL_checkinteger(L, 3), .base = base_at(L, 2)};
    a.seed = (uint64_t)luaL_checkinteger(L, 4);
    a.epoch = (uint64_t)luaL_checkinteger(L, 5);
    a.weight = lua_newuserdatauv(L, (size_t)a.n * sizeof *a.weight + 1, 0);
    int64_t some = 0;
    uint32_t looks = 0;
    for (int64_t i = 0; i < a.n; i++) {
        dc_interrupt_poll_often(L, d, &looks);
        a.weight[i] = dc_value_of(
            (dc_dtype)t.dtype,
            dc_bits_load((dc_dtype)t.dtype, from + (size_t)i * dc_dtype_size((dc_dtype)t.dtype)));
        if (!(a.weight[i] >= 0 && isfinite(a.weight[i])))
            dc_error_raisef(L, d, DC_ERR_ARG, "batches",
                            "weight %" PRId64 " is %g: weights are finite and not negative", i + 1,
                            a.weight[i]);
        some += a.weight[i] > 0;
    }
    const bool again = lua_toboolean(L, 6);
    luaL_argcheck(L, a.base == NULL || a.base->n == a.n, 2, "one weight for each row");
    if (some == 0 && a.draws > 0)
        dc_error_raisef(L, d, DC_ERR_ARG, "batches", "no weight is above 0");
    if (!again && a.draws > some)
        dc_error_raisef(L, d, DC_ERR_ARG, "batches",
                        "%" PRId64 " rows are to be drawn once each, %" PRId64
                        " have a weight above 0",
                        a.draws, some);
    a.out = new_order(L, a.draws);
    const int result = lua_gettop(L);
    a.out->most = a.base != NULL ? a.base->most : a.n - 1;
    if (a.draws > 0 && again)
        draw_again(L, d, &a);
    else if (a.draws > 0)
        draw_once(L, d, &a);
    lua_pushvalue(L, result);
    return 1;
}

static const dc_binding bindings[] = {
    {"order", l_order, DC_ANY, DC_IN_LIBRARY},
    {"order_list", l_order_list, DC_ANY, DC_IN_LIBRARY},
    {"order_part", l_order_part, DC_ANY, DC_IN_LIBRARY},
    {"order_joined", l_order_joined, DC_ANY, DC_IN_LIBRARY},
    {"order_row", l_order_row, DC_ANY, DC_IN_LIBRARY},
    {"order_pick", l_order_pick, DC_ANY, DC_IN_LIBRARY},
    {"order_count", l_order_count, DC_ANY, DC_IN_LIBRARY},
    {"order_digest", l_order_digest, DC_ANY, DC_IN_LIBRARY},
    {"order_grouped", l_order_grouped, DC_ANY, DC_IN_LIBRARY},
    {"order_weighted", l_order_weighted, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_order_bindings = DC_BINDINGS(bindings);
