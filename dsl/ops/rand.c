/*
 * Random numbers (core/build/random.h says which): operations like any other, so they are lazy, traced and
 * compiled like any other.
 *
 *   dc.rand(type, { low =, high =, seed = })      uniform in [low, high)
 *   dc.randn(type, { mean =, std =, seed = })     normal
 *   dc.randint(type, { low =, high =, seed = })   whole numbers, low <= v < high
 *   dc.bernoulli(type, { p =, seed = })           true with probability p
 *   dc.seed(n)                                    starts the generator again
 *   dc.generator()                                its state, a cell
 *
 * With a seed the key is that of the seed. Without, it comes from the generator: outside typed
 * functions it is fixed when the draw is written, and the generator advances; a traced function
 * reads the generator and sets it once, whatever number of draws there are in it. In a loop the number of the element
 * is part of the key, so that each iteration draws anew.
 */
#include "core/autodiff/custom.h"
#include "core/build/complex.h"
#include "core/build/random.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/place.h"
#include "dsl/base/run.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <math.h>

/* For the order of batches. */
uint32_t dc_rand_bits(uint64_t seed, uint64_t draw, uint64_t i)
{
    uint32_t key[2];
    dc_random_seed(seed, DC_RANDOM_ORDER, key);
    return dc_threefry(key[0], key[1], i, (uint32_t)draw);
}

/* ---- the generator --------------------------------------------------------------------------- */

static const dc_type state_type = {.dtype = DC_U32, .rank = 1, .dim = {DC_RANDOM_STATE}};

static dc_status write_state(dc_job *j, dc_cell *c, const uint32_t *state)
{
    dc_device *dev = c->rt->device;
    DC_TRY(dc_cell_check(c, j, "seed", false));
    DC_TRY(dc_storage_evict(c->store, j));
    DC_TRY(dev->ops->upload(dev, j, c->store->mem, state, DC_RANDOM_STATE * sizeof *state));
    dc_cell_written(c, false);
    return DC_OK;
}

/* Starts it again, and makes it where it is not there. */
static dc_status start_generator_body(dc_job *j, void *arg)
{
    dc_dsl *d = arg;
    uint32_t state[DC_RANDOM_STATE] = {0};
    dc_cell *c = d->generator;
    dc_random_seed(d->seed, DC_RANDOM_GENERATOR, state);
    if (c != NULL)
        return write_state(j, c, state);
    DC_TRY(dc_cell_new(d->rt, j, &state_type, "generator", false, &c));
    dc_cell_defer(j, c);
    DC_TRY(write_state(j, c, state));
    dc_job_keep(j, c);
    d->generator = c;
    return DC_OK;
}

/* The cell is made at the first draw. */
static void need_generator(lua_State *L, dc_dsl *d)
{
    if (d->generator == NULL)
        dc_error_check(L, d, dc_run_again(L, d, start_generator_body, d, NULL));
}

typedef struct advancing {
    dc_dsl *d;
    uint32_t key[2];
} advancing;

/* The key of the next draw outside typed functions. */
static dc_status advance_generator_body(dc_job *j, void *arg)
{
    advancing *a = arg;
    dc_cell *c = a->d->generator;
    dc_device *dev = c->rt->device;
    uint32_t state[DC_RANDOM_STATE];
    DC_TRY(dc_cell_check(c, j, NULL, true));
    DC_TRY(dev->ops->download(dev, j, state, c->store->mem, sizeof state));
    dc_random_key(state, 0, a->key);
    dc_random_advance(state);
    return write_state(j, c, state);
}

/* ---- draws ----------------------------------------------------------------------------------- */

typedef enum kind { UNIFORM, NORMAL, INTEGER, BERNOULLI, EXPONENTIAL } kind;

typedef struct draw {
    kind kind;
    dc_type type;
    bool plain;     /* from 0 to 1; mean 0, deviation 1 */
    dc_dsl *traced; /* the key is of the generator, in a trace; else NULL: of the operands */
} draw;

/* The first draw of a trace reads the generator and says what it is when the call ends. */
static dc_status call_keys(dc_job *j, dc_dsl *d)
{
    dc_trace *t = d->trace;
    const dc_trace_cell *entry = dc_trace_cell_of(t, d->generator);
    dc_val next;
    DC_TRY(dc_random_call(j, t->f, entry->read.at[entry->read.n - 1], t->call, &next));
    return dc_param_record(j, t, d->generator, next);
}

/* The loops around, the outermost one first. */
static dc_status fold_loops(dc_job *j, dc_trace *t, const dc_trace_body *b, dc_val key[2])
{
    if (b == NULL)
        return DC_OK;
    DC_TRY(fold_loops(j, t, b->outer, key));
    return b->loop ? dc_random_fold(j, t->f, b->i, key) : DC_OK;
}

static dc_status site_key(dc_job *j, dc_dsl *d, dc_val key[2])
{
    dc_trace *t = d->trace;
    if (t->draws == 0)
        DC_TRY(call_keys(j, d));
    DC_TRY(dc_random_site(j, t->f, t->call, ++t->draws, key));
    return fold_loops(j, t, t->body, key);
}

/* Complex numbers: both parts uniform, or normal with half of the variance each; the mean is that of the real part. */
static dc_status build_complex(dc_job *j, dc_func *f, const draw *a, const dc_val *in,
                               const dc_val key[2], dc_val *out)
{
    dc_type parts = a->type;
    dc_val v, by, mean;
    parts.dtype = dc_dtype_part((dc_dtype)a->type.dtype);
    parts.dim[parts.rank] = 2;
    parts.name[parts.rank++] = 0;
    if (a->kind == UNIFORM) {
        DC_TRY(dc_random_uniform(j, f, key, &parts, a->plain ? NULL : &in[2],
                                 a->plain ? NULL : &in[3], &v));
        *out = (dc_val){v.ref, a->type};
        return DC_OK;
    }
    DC_TRY(dc_random_normal(j, f, key, &parts, NULL, NULL, &v));
    DC_TRY(dc_ops_number(j, f, v, sqrt(0.5), &by));
    if (!a->plain)
        DC_TRY(dc_ops_2(j, f, DC_OP_MUL, by, in[3], &by));
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, v, by, &v));
    *out = (dc_val){v.ref, a->type};
    if (a->plain)
        return DC_OK;
    DC_TRY(dc_ops_number(j, f, in[2], 0, &by));
    DC_TRY(dc_complex_join(j, f, in[2], by, &mean));
    return dc_ops_2(j, f, DC_OP_ADD, *out, mean, out);
}

/* Operands: the two words of the key, then the two numbers of the kind. */
static dc_status build_draw(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const draw *a = arg;
    const dc_val *first = a->plain ? NULL : &in[2], *second = a->plain ? NULL : &in[3];
    dc_val key[2] = {in[0], in[1]};
    if (a->traced != NULL)
        DC_TRY(site_key(j, a->traced, key));
    if (dc_dtype_is_complex((dc_dtype)a->type.dtype))
        return build_complex(j, f, a, in, key, out);
    switch (a->kind) {
    case UNIFORM:
        return dc_random_uniform(j, f, key, &a->type, first, second, out);
    case NORMAL:
        return dc_random_normal(j, f, key, &a->type, first, second, out);
    case INTEGER:
        return dc_random_integer(j, f, key, &a->type, in[2], in[3], out);
    case BERNOULLI: {
        dc_type t = a->type;
        dc_val u;
        t.dtype = DC_F32;
        DC_TRY(dc_random_uniform(j, f, key, &t, NULL, NULL, &u));
        return dc_ops_2(j, f, DC_OP_LT, u, in[2], out);
    }
    case EXPONENTIAL:
        return dc_random_exponential(j, f, key, &a->type, out);
    }
    DC_BUG("draws of kind %d", (int)a->kind);
}

static dc_operand scalar(dc_dtype t, uint64_t bits)
{
    return (dc_operand){.role = "with", .type = dc_type_scalar(t), .bits = bits};
}

/* Of { seed = n }; false: there is none. */
static bool read_seed(lua_State *L, dc_dsl *d, const char *op, uint32_t key[2])
{
    bool given = false;
    if (!lua_isnoneornil(L, 2)) {
        given = lua_getfield(L, 2, "seed") != LUA_TNIL;
        if (given)
            dc_random_seed((uint64_t)dc_args_integer(L, d, lua_gettop(L), op, "seed"),
                           DC_RANDOM_SEED, key);
        lua_pop(L, 1);
    }
    return given;
}

/* The numbers of the kind are in a->in[2] and [3]. */
static int apply_draw(lua_State *L, dc_dsl *d, draw *w, dc_apply *a)
{
    advancing x = {.d = d};
    if (!read_seed(L, d, a->op, x.key)) {
        need_generator(L, d);
        if (dc_trace_here(L, d) != NULL)
            w->traced = d;
        else
            dc_error_check(L, d, dc_run_again(L, d, advance_generator_body, &x, NULL));
    }
    a->in[0] = scalar(DC_U32, x.key[0]);
    a->in[1] = scalar(DC_U32, x.key[1]);
    a->n = 4;
    a->nout = 1;
    a->build = build_draw;
    a->arg = w;
    dc_apply_run(L, d, a);
    return 1;
}

static int draw_float(lua_State *L, kind k, const char *op, const char *const *known, double first,
                      double second)
{
    dc_dsl *d = dc_dsl_of(L);
    draw w = {.kind = k};
    dc_apply a = {.op = op};
    lua_settop(L, 2);
    dc_args_like(L, d, 1, op, &w.type);
    dc_args_options(L, d, 2, op, known);
    const dc_dtype t = dc_dtype_part((dc_dtype)w.type.dtype);
    if (!dc_dtype_is_float(t))
        dc_error_fact(L, d, DC_ERR_DTYPE,
                      &(dc_fact){.op = op, .type = {w.type}, .word = {"a float"}},
                      &(dc_blame){.hint = "dc.randint draws whole numbers"});
    const double x = dc_args_option(L, d, 2, op, known[0], first);
    const double y = dc_args_option(L, d, 2, op, known[1], second);
    if (k == UNIFORM && !(x <= y))
        dc_error_raisef(L, d, DC_ERR_ARG, op, "low is %g, more than high, %g", x, y);
    if (k == NORMAL && !(y >= 0))
        dc_error_raisef(L, d, DC_ERR_ARG, op, "std is %g, less than 0", y);
    w.plain = x == first && y == second;
    a.in[2] = scalar(t, dc_bits_of(t, x));
    a.in[3] = scalar(t, dc_bits_of(t, y));
    return apply_draw(L, d, &w, &a);
}

static int l_rand(lua_State *L)
{
    return draw_float(L, UNIFORM, "rand", (const char *const[]){"low", "high", "seed", NULL}, 0, 1);
}

static int l_randn(lua_State *L)
{
    return draw_float(L, NORMAL, "randn", (const char *const[]){"mean", "std", "seed", NULL}, 0, 1);
}

static int64_t integer_option(lua_State *L, dc_dsl *d, const char *name, int64_t dflt)
{
    if (lua_isnoneornil(L, 2))
        return dflt;
    const bool given = lua_getfield(L, 2, name) != LUA_TNIL;
    const int64_t v = given ? dc_args_integer(L, d, lua_gettop(L), "randint", name) : dflt;
    lua_pop(L, 1);
    return v;
}

static bool fits(dc_dtype t, int64_t v)
{
    return dc_value_of(t, dc_bits_of(t, (double)v)) == (double)v;
}

static int l_randint(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    draw w = {.kind = INTEGER};
    dc_apply a = {.op = "randint"};
    lua_settop(L, 2);
    dc_args_like(L, d, 1, a.op, &w.type);
    dc_args_options(L, d, 2, a.op, (const char *const[]){"low", "high", "seed", NULL});
    const dc_dtype t = (dc_dtype)w.type.dtype;
    if (dc_dtype_is_float(t) || t == DC_BOOL)
        dc_error_fact(L, d, DC_ERR_DTYPE,
                      &(dc_fact){.op = a.op, .type = {w.type}, .word = {"an integer"}},
                      &(dc_blame){.hint = "dc.rand draws floats, dc.bernoulli bools"});
    const int64_t low = integer_option(L, d, "low", 0), high = integer_option(L, d, "high", low);
    if (low >= high)
        dc_error_raisef(L, d, DC_ERR_ARG, a.op,
                        "nothing is between low, %lld, and high, %lld; { high = 10 } draws 0 to 9",
                        (long long)low, (long long)high);
    if (!fits(t, low) || !fits(t, high - 1) || (uint64_t)high - (uint64_t)low > UINT32_MAX)
        dc_error_raisef(L, d, DC_ERR_NUMBER_FIT, a.op, "%lld to %lld", (long long)low,
                        (long long)high - 1);
    a.in[2] = scalar(t, (uint64_t)low);
    a.in[3] = scalar(DC_U32, (uint64_t)high - (uint64_t)low);
    return apply_draw(L, d, &w, &a);
}

static int l_bernoulli(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    draw w = {.kind = BERNOULLI};
    dc_apply a = {.op = "bernoulli"};
    lua_settop(L, 2);
    dc_args_like(L, d, 1, a.op, &w.type);
    dc_args_options(L, d, 2, a.op, (const char *const[]){"p", "seed", NULL});
    if (w.type.dtype != DC_BOOL)
        dc_error_fact(L, d, DC_ERR_DTYPE,
                      &(dc_fact){.op = a.op, .type = {w.type}, .word = {"bool"}},
                      &(dc_blame){.hint = ":cast \"f32\" makes 0 and 1 of it"});
    const double p = dc_args_option(L, d, 2, a.op, "p", 0.5);
    if (!(p >= 0 && p <= 1))
        dc_error_raisef(L, d, DC_ERR_ARG, a.op, "p is %g, a probability is 0 to 1", p);
    a.in[2] = a.in[3] = scalar(DC_F32, dc_bits_of(DC_F32, p));
    return apply_draw(L, d, &w, &a);
}

/* random_exponential(type, { seed = }), for stdlib/random.lua: of rate 1. */
static int l_exponential(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    draw w = {.kind = EXPONENTIAL};
    dc_apply a = {.op = "exponential"};
    lua_settop(L, 2);
    dc_args_like(L, d, 1, a.op, &w.type);
    a.in[2] = a.in[3] = scalar(DC_F32, 0);
    return apply_draw(L, d, &w, &a);
}

/* The value of y, whose gradient for a is the slope; nothing else of y has one. */
static dc_status build_with_slope(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                  dc_val *out)
{
    dc_custom c;
    DC_UNUSED(arg);
    dc_custom_given(f, &in[1].ref, 1, in[0].ref, &c);
    const dc_ref da = dc_graph_op2(f, DC_OP_MUL, c.dy, in[2].ref);
    out->type = in[0].type;
    return dc_custom_end(j, &c, &da, &out->ref);
}

/* with_slope(name of the caller, y, a, slope), for stdlib/random: tensors of floats of one type. */
static int l_with_slope(lua_State *L)
{
    static const int at[3] = {2, 3, 4};
    dc_dsl *d = dc_dsl_of(L);
    const char *caller = dc_place_name(L, d, "%s", luaL_checkstring(L, 1));
    dc_apply a = {.build = build_with_slope, .step = true};
    dc_apply_operands(L, d, &a, caller, at, 3);
    dc_apply_run(L, d, &a);
    return 1;
}

/* ---- its state ------------------------------------------------------------------------------- */

static int l_seed(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const uint64_t seed = (uint64_t)dc_args_integer(L, d, 1, "seed", "a seed");
    if (dc_trace_here(L, d) != NULL)
        dc_error_raisef(L, d, DC_ERR_REENTER, "seed",
                        "inside '%s' it would act once, when that is traced", d->trace->name);
    d->seed = seed;
    dc_error_check(L, d, dc_run_again(L, d, start_generator_body, d, NULL));
    return 0;
}

static int l_generator(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    need_generator(L, d);
    dc_handle *h = dc_handle_new(L, d);
    dc_handle_fill_cell(h, dc_cell_retain(d->generator));
    return 1;
}

static const dc_binding bindings[] = {
    {"rand", l_rand, 2, DC_IN_MODULE},
    {"randn", l_randn, 2, DC_IN_MODULE},
    {"randint", l_randint, 2, DC_IN_MODULE},
    {"bernoulli", l_bernoulli, 2, DC_IN_MODULE},
    {"generator", l_generator, 0, DC_IN_MODULE},
    {"seed", l_seed, 1, DC_IN_MODULE},
    {"random_exponential", l_exponential, DC_ANY, DC_IN_LIBRARY},
    {"with_slope", l_with_slope, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_rand_bindings = DC_BINDINGS(bindings);
