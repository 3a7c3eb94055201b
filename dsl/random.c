/*
 * Random numbers: Threefry of (key, element, draw). The same seed gives the same numbers on every
 * device. A key comes from the seed by Threefry itself; what { seed = n } draws and what the
 * context's generator draws use different keys.
 *
 *   dc.rand(type, { low =, high =, seed = })   uniform in [low, high), 24 bits
 *   dc.randn(type, { mean =, std =, seed = })  normal, by Box and Muller (1958)
 *   dc.seed(n)                                 starts the generator again
 */
#include "dsl/impl.h"

#include <math.h>

typedef struct stream {
    uint32_t key[2];
    uint32_t draw;
} stream;

enum { PURPOSE_GENERATOR = 1, PURPOSE_SEED = 2, PURPOSE_ORDER = 3 };

static stream make_stream(uint64_t seed, uint64_t purpose, uint64_t draw)
{
    const uint64_t lo = seed & UINT32_MAX, hi = seed >> 32;
    return (stream){{dc_threefry(lo, hi, purpose, 0), dc_threefry(lo, hi, purpose, 1)},
                    (uint32_t)draw};
}

static uint32_t bits_at(const stream *s, uint64_t i)
{
    return dc_threefry(s->key[0], s->key[1], i, s->draw);
}

/* For the order of batches. */
uint32_t dc_random_bits(uint64_t seed, uint64_t draw, uint64_t i)
{
    const stream s = make_stream(seed, PURPOSE_ORDER, draw);
    return bits_at(&s, i);
}

/* The stream of a call: of its own seed, or the next of the generator. */
static stream next_stream(lua_State *L, dc_dsl *d, int options, const char *op)
{
    if (!lua_isnoneornil(L, options)) {
        if (lua_getfield(L, options, "seed") != LUA_TNIL) {
            const int64_t seed = dc_args_integer(L, d, lua_gettop(L), op, "seed");
            lua_pop(L, 1);
            return make_stream((uint64_t)seed, PURPOSE_SEED, 0);
        }
        lua_pop(L, 1);
    }
    if (dc_trace_here(L, d) != NULL)
        dc_error_raisef(L, d, DC_ERR_REENTER, op,
                        "the generator does not advance inside a typed function yet; draw outside "
                        "and pass it, or give { seed = n } for fixed numbers");
    return make_stream(d->seed, PURPOSE_GENERATOR, d->draws++);
}

static float uniform(const stream *s, uint64_t i, double low, double high)
{
    const double u = (double)(bits_at(s, i) >> 8) * 0x1p-24;
    const float v = (float)(low + (high - low) * u);
    return v < (float)high || low >= high ? v : nextafterf((float)high, (float)low);
}

static float normal(const stream *s, uint64_t i, double mean, double std)
{
    const double u = ((double)bits_at(s, 2 * i) + 0.5) * 0x1p-32;
    const double angle = 6.283185307179586 * ((double)bits_at(s, 2 * i + 1) * 0x1p-32);
    return (float)(mean + std * (sqrt(-2 * log(u)) * cos(angle)));
}

static int draw(lua_State *L, const char *op, const char *const *known,
                float (*next)(const stream *, uint64_t, double, double), double a, double b)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_type t;
    lua_settop(L, 2);
    dc_args_type(L, d, 1, op, &t);
    dc_args_options(L, d, 2, op, known);
    if (t.dtype != DC_F32)
        dc_error_fact(L, d, DC_ERR_DTYPE, &(dc_fact){.op = op, .type = {t}, .word = {"f32"}}, NULL);
    a = dc_args_option(L, d, 2, op, known[0], a);
    b = dc_args_option(L, d, 2, op, known[1], b);
    const stream s = next_stream(L, d, 2, op);
    const dc_place place = dc_place_find(L, d);
    dc_handle *h = dc_handle_new(L, d);
    if (place.where != NULL)
        h->origin = dc_place_intern(d, "made at %s", place.where);
    float *room = lua_newuserdatauv(L, dc_type_bytes(&t) + 4, 0);
    const int64_t n = dc_type_count(&t);
    for (int64_t i = 0; i < n; i++)
        room[i] = next(&s, (uint64_t)i, a, b);
    dc_handle_upload(L, d, h, &t, room, op);
    lua_pop(L, 1);
    return 1;
}

static int l_rand(lua_State *L)
{
    return draw(L, "rand", (const char *const[]){"low", "high", "seed", NULL}, uniform, 0, 1);
}

static int l_randn(lua_State *L)
{
    return draw(L, "randn", (const char *const[]){"mean", "std", "seed", NULL}, normal, 0, 1);
}

static int l_seed(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    d->seed = (uint64_t)dc_args_integer(L, d, 1, "seed", "a seed");
    d->draws = 0;
    return 0;
}

void dc_random_register(lua_State *L, dc_dsl *d, int module)
{
    static const luaL_Reg fn[] = {
        {"rand", l_rand}, {"randn", l_randn}, {"seed", l_seed}, {NULL, NULL}};
    lua_pushvalue(L, module);
    dc_lib_add(L, d, fn);
    lua_pop(L, 1);
}
