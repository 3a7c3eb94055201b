/*
 * Several tensors into one, one into several, and what else moves elements about:
 *
 *   dc.concat({ a, b, ... }, axis)   dc.stack({ a, b, ... }, axis)   axis 1 if none is given
 *   x:split(3, axis)  x:split({ 2, 5, 1 }, axis)                     several results
 *   x:flip(axes)  x:roll(by, axis)
 *
 * An axis whose size changes loses its name.
 */
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/size.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int first_two[2] = {1, 2};

/* ---- concat and stack ------------------------------------------------------------------------- */

/*
 * Both padded to the whole with what changes nothing, then put together: x + -0 is x for every
 * float, x | 0 for the rest. The gradient of either is its slice.
 */
dc_status dc_concat_build(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const int axis = *(const int *)arg;
    const bool flt = dc_dtype_is_smooth((dc_dtype)in[0].type.dtype);
    dc_type whole = in[0].type;
    dc_val v[2];
    whole.dim[axis] = dc_extent_add(j->extents, in[0].type.dim[axis], in[1].type.dim[axis]);
    if (whole.dim[axis] == DC_EXTENT_NONE)
        whole.dim[axis] = INT64_MAX; /* too large: pad says so */
    for (int i = 0; i < 2; i++) {
        int64_t lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK];
        for (int k = 0; k < DC_MAX_RANK; k++)
            step[k] = 1;
        lo[axis] = i == 0 ? 0 : in[0].type.dim[axis];
        DC_TRY(dc_build_pad(j, f, in[i], lo, step, &whole, flt ? -0.0 : 0, &v[i]));
        v[i].type.name[axis] = NULL;
    }
    return dc_ops_2(j, f, flt ? DC_OP_ADD : DC_OP_OR, v[0], v[1], out);
}

DC_NORETURN static void blame_two(lua_State *L, dc_dsl *d, dc_err_id id, const dc_fact *fact, int i)
{
    dc_operand in[2];
    luaL_checkstack(L, 6, "an error");
    for (int k = 0; k < 2; k++) {
        lua_rawgeti(L, 1, k == 0 ? 1 : i);
        in[k] = (dc_operand){.h = dc_handle_test(L, -1), .type = fact->type[k]};
        in[k].role = lua_pushfstring(L, "%d", k == 0 ? 1 : i);
    }
    dc_error_fact(L, d, id, fact, &(dc_blame){.in = in, .n = 2});
}

/* Element i of the list fits the first one everywhere but at `axis` (-1: everywhere). */
static void check_alike(lua_State *L, dc_dsl *d, const char *op, const dc_type *a, const dc_type *b,
                        int i, int axis)
{
    dc_fact fact = {.op = op, .type = {*a, *b}};
    char words[60];
    if (a->dtype != b->dtype)
        blame_two(L, d, DC_ERR_DTYPE_MIX, &fact, i);
    if (a->rank != b->rank) {
        snprintf(words, sizeof words, "tensor %d has %d", i, b->rank);
        fact.num[0] = a->rank;
        fact.word[0] = words;
        blame_two(L, d, DC_ERR_RANK, &fact, i);
    }
    for (int k = 0; k < a->rank; k++) {
        fact.axis[0] = fact.axis[1] = k;
        fact.num[0] = a->dim[k];
        fact.num[1] = b->dim[k];
        if (k != axis && a->dim[k] != b->dim[k])
            blame_two(L, d, DC_ERR_DIMS, &fact, i);
        fact.word[0] = a->name[k];
        fact.word[1] = b->name[k];
        if (k != axis && a->name[k] != NULL && b->name[k] != NULL && a->name[k] != b->name[k])
            blame_two(L, d, DC_ERR_NAMES, &fact, i);
    }
}

/* The list at 1: how many tensors, and the type of the first. */
static int check_list(lua_State *L, dc_dsl *d, const char *op, dc_type *first)
{
    if (lua_type(L, 1) != LUA_TTABLE)
        dc_error_raisef(L, d, DC_ERR_ARG, op,
                        "a list of tensors is needed, as in dc.%s({ a, b }, 1), not %s", op,
                        dc_handle_describe(L, 1));
    const size_t n = lua_rawlen(L, 1);
    if (n == 0)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "a list of at least one tensor is needed");
    luaL_argcheck(L, n < INT32_MAX / 2, 1, "too many");
    for (size_t i = 1; i <= n; i++) {
        lua_rawgeti(L, 1, (lua_Integer)i);
        if (dc_handle_test(L, -1) == NULL)
            dc_error_raisef(L, d, DC_ERR_ARG, op,
                            "element %d of the list is %s, a tensor is needed", (int)i,
                            dc_handle_describe(L, -1));
        const dc_type t = *dc_handle_type(dc_handle_check(L, d, lua_gettop(L), op));
        if (i == 1)
            *first = t;
        lua_pop(L, 1);
    }
    return (int)n;
}

static void check_elements(lua_State *L, dc_dsl *d, const char *op, const dc_type *first, int n,
                           int axis)
{
    for (int i = 2; i <= n; i++) {
        lua_rawgeti(L, 1, i);
        const dc_type t = *dc_handle_type(dc_handle_check(L, d, lua_gettop(L), op));
        lua_pop(L, 1);
        check_alike(L, d, op, first, &t, i, axis);
    }
}

/* Neighbours in the table at `list` of n tensors are joined until one is left, which is pushed. */
static void join(lua_State *L, dc_dsl *d, const char *op, int list, int n, int axis)
{
    luaL_checkstack(L, 8, "tensors");
    while (n > 1) {
        int to = 0;
        for (int i = 1; i <= n; i += 2) {
            lua_rawgeti(L, list, i);
            if (i < n) {
                lua_rawgeti(L, list, i + 1);
                const int at[2] = {lua_gettop(L) - 1, lua_gettop(L)};
                dc_apply_step(L, d, op, at, 2, dc_concat_build, &axis, n == 2);
            }
            lua_rawseti(L, list, ++to);
            lua_settop(L, list);
        }
        n = to;
    }
    lua_rawgeti(L, list, 1);
}

static void push_copy(lua_State *L, int n)
{
    lua_createtable(L, n, 0);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, 1, i);
        lua_rawseti(L, -2, i);
    }
}

static int l_concat(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_type first;
    lua_settop(L, 2);
    const int n = check_list(L, d, "concat", &first);
    if (lua_isnil(L, 2)) {
        lua_pushinteger(L, 1);
        lua_replace(L, 2);
    }
    const int axis = dc_args_axis_of(L, d, 2, &first, "concat");
    check_elements(L, d, "concat", &first, n, axis);
    push_copy(L, n);
    join(L, d, "concat", 3, n, axis);
    return 1;
}

static dc_status build_reshape(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    const dc_type *to = arg; /* with the names that stay */
    DC_UNUSED(j);
    *out = dc_build_as(f, in[0], to);
    return DC_OK;
}

/* A new axis of the result, 1..rank + 1 or from the end; 0-based. */
static int new_axis(lua_State *L, dc_dsl *d, int idx, const dc_type *t)
{
    if (lua_isnil(L, idx))
        return 0;
    const int64_t k = dc_args_count(L, d, idx, "stack", "an axis");
    if (k >= 1 && k <= t->rank + 1)
        return (int)k - 1;
    if (k < 0 && k >= -t->rank - 1)
        return (int)k + t->rank + 1;
    dc_error_raisef(L, d, DC_ERR_ARG, "stack",
                    "axis %" PRId64 " of the result: axes are 1 to %d, -1 is the last", k,
                    t->rank + 1);
}

static int l_stack(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_type first;
    lua_settop(L, 2);
    const int n = check_list(L, d, "stack", &first);
    const int axis = new_axis(L, d, 2, &first);
    const int most = dc_dtype_is_complex((dc_dtype)first.dtype) ? DC_MAX_RANK - 1 : DC_MAX_RANK;
    if (first.rank == most)
        dc_error_fact(L, d, DC_ERR_TOO_MANY_AXES,
                      &(dc_fact){.op = "stack", .num = {most + 1, most}}, NULL);
    check_elements(L, d, "stack", &first, n, -1);
    push_copy(L, n);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, 3, i);
        const dc_type t = *dc_handle_type(dc_handle_check(L, d, 4, "stack"));
        dc_type to = dc_type_scalar((dc_dtype)t.dtype);
        for (int k = 0; k <= t.rank; k++) {
            const int from = k < axis ? k : k - 1;
            to.dim[to.rank] = k == axis ? 1 : t.dim[from];
            to.name[to.rank++] = k == axis ? NULL : t.name[from];
        }
        dc_apply_step(L, d, "stack", (const int[]){4}, 1, build_reshape, &to, n == 1);
        lua_rawseti(L, 3, i);
        lua_settop(L, 3);
    }
    join(L, d, "stack", 3, n, axis);
    return 1;
}

/* ---- split ------------------------------------------------------------------------------------ */

typedef struct cut {
    int axis;
    int64_t first, n;
} cut;

static dc_status build_cut(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const cut *c = arg;
    int64_t first[DC_MAX_RANK] = {0}, last[DC_MAX_RANK], step[DC_MAX_RANK];
    for (int k = 0; k < in[0].type.rank; k++) {
        last[k] = dc_extent_sub(j->extents, in[0].type.dim[k], 1);
        step[k] = 1;
    }
    first[c->axis] = c->first;
    last[c->axis] = dc_extent_sub(j->extents, dc_extent_add(j->extents, c->first, c->n), 1);
    return dc_build_slice(j, f, in[0], first, last, step, out);
}

/* Of an axis whose size is known at run time it has to be so for each size. */
static dc_err_id split_error(int64_t whole)
{
    return dc_extent_is(whole) ? DC_ERR_EXTENT_TEXT : DC_ERR_ARG;
}

/* The sizes at 2, whose sum is the whole axis; how many. */
static int check_sizes(lua_State *L, dc_dsl *d, int64_t whole)
{
    dc_extents *e = d->rt->extents;
    char all[DC_EXTENT_TEXT], found[DC_EXTENT_TEXT] = "no form that is known at each call";
    int64_t sum = 0;
    const size_t n = lua_rawlen(L, 2);
    for (size_t i = 1; i <= n && i < 1000 && sum != DC_EXTENT_NONE; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i);
        const int64_t size = dc_size_read(L, d, lua_gettop(L), "split", "a size");
        if (!dc_extent_at_least(e, size, 0))
            dc_error_raisef(L, d, split_error(size), "split", "a size is 0 or more");
        sum = dc_extent_add(e, sum, size);
        lua_pop(L, 1);
    }
    if (sum == whole && n > 0 && n < 1000)
        return (int)n;
    if (sum != DC_EXTENT_NONE)
        dc_extent_print(e, sum, found, sizeof found);
    dc_extent_print(e, whole, all, sizeof all);
    dc_error_raisef(L, d, split_error(whole), "split", "%zu sizes of sum %s, the axis has %s", n,
                    found, all);
}

/* Sizes of the parts as a list at 2, from a number of equal ones; how many. */
static int read_sizes(lua_State *L, dc_dsl *d, int64_t whole)
{
    if (lua_type(L, 2) == LUA_TTABLE)
        return check_sizes(L, d, whole);
    dc_extents *e = d->rt->extents;
    const int64_t n = dc_args_count(L, d, 2, "split", "the number of parts, or a list of sizes,");
    const int64_t part = n < 1 ? DC_EXTENT_NONE : dc_extent_div(e, whole, n);
    if (n >= 1000 || part == DC_EXTENT_NONE || dc_extent_mul(e, part, n) != whole) {
        char text[DC_EXTENT_TEXT];
        dc_extent_print(e, whole, text, sizeof text);
        dc_error_raisef(L, d, split_error(whole), "split",
                        "an axis of %s has no %" PRId64 " equal parts", text, n);
    }
    lua_createtable(L, (int)n, 0);
    for (int i = 1; i <= n; i++) {
        dc_size_push(L, part);
        lua_rawseti(L, -2, i);
    }
    lua_replace(L, 2);
    return (int)n;
}

static int l_split(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "split");
    const dc_type t = *dc_handle_type(h);
    lua_settop(L, 3);
    if (lua_isnil(L, 3)) {
        lua_pushinteger(L, 1);
        lua_replace(L, 3);
    }
    cut c = {.axis = dc_args_axis_of(L, d, 3, &t, "split")};
    dc_size_check(L, d, "split", &t);
    const int n = read_sizes(L, d, t.dim[c.axis]);
    luaL_checkstack(L, n + 8, "parts");
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, 2, i);
        c.n = dc_size_read(L, d, lua_gettop(L), "split", "a size");
        lua_pop(L, 1);
        dc_apply_to(L, d, "split", first_two, 1, build_cut, &c);
        c.first = dc_extent_add(d->rt->extents, c.first, c.n);
    }
    return n;
}

/* ---- flip, roll ------------------------------------------------------------------------------- */

static dc_status build_flip(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return dc_build_flip(j, f, in[0], *(const uint32_t *)arg, out);
}

/* x:flip()  x:flip(2)  x:flip "t"  x:flip { 1, 2 } */
static int l_flip(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "flip");
    bool keep;
    lua_settop(L, 2);
    const uint32_t mask = dc_args_axes(L, d, 2, h, "flip", &keep);
    dc_apply_to(L, d, "flip", first_two, 1, build_flip, &mask);
    return 1;
}

/* The last `first` elements of the axis, then the others. */
static dc_status build_roll(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const cut *c = arg;
    const int64_t n = in[0].type.dim[c->axis];
    const cut back = {c->axis, n - c->first, c->first}, front = {c->axis, 0, n - c->first};
    dc_val part[2];
    *out = in[0];
    if (c->first == 0)
        return DC_OK;
    DC_TRY(build_cut(j, f, &back, in, &part[0]));
    DC_TRY(build_cut(j, f, &front, in, &part[1]));
    DC_TRY(dc_concat_build(j, f, &c->axis, part, out));
    out->type = in[0].type;
    return DC_OK;
}

static dc_status apply(dc_job *j, dc_func *f, dc_op op, dc_val a, dc_val b, dc_val *out)
{
    return dc_build_ew(j, f, op, (const dc_val[]){a, b}, 2, out);
}

/* The same where the size n is known at run time: element i is that at (i - first) mod n. */
static dc_status build_roll_bounded(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                    dc_val *out)
{
    const cut *c = arg;
    const dc_type one = dc_type_scalar(DC_I64),
                  row = {.dtype = DC_I64, .rank = 1, .dim = {in[0].type.dim[c->axis]}};
    dc_val n, by, least, index;
    DC_TRY(dc_build_count(j, f, &row, 1, &n));
    DC_TRY(dc_build_const(j, f, &one, 1, &least));
    DC_TRY(apply(j, f, DC_OP_MAX, n, least, &n)); /* without elements nothing is divided by 0 */
    DC_TRY(dc_build_bits(j, f, &one, (uint64_t)c->first, &by));
    DC_TRY(apply(j, f, DC_OP_REM, by, n, &by));
    DC_TRY(dc_build_iota(j, f, &row, 0, &index));
    DC_TRY(apply(j, f, DC_OP_SUB, index, by, &index)); /* above -n, below 2 n */
    DC_TRY(apply(j, f, DC_OP_ADD, index, n, &index));
    DC_TRY(apply(j, f, DC_OP_REM, index, n, &index));
    DC_TRY(dc_build_cast(j, f, index, DC_I32, &index));
    DC_TRY(dc_build_gather(j, f, in[0], index, c->axis, 0, out));
    out->type = in[0].type;
    return DC_OK;
}

/* The same where the shift is an argument, not part of the graph: element i is that at i + in[1], or so many less. */
static dc_status build_roll_by(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    const cut *c = arg;
    const dc_type one = dc_type_scalar(DC_I32),
                  row = {.dtype = DC_I32, .rank = 1, .dim = {in[0].type.dim[c->axis]}};
    dc_val n, index, less, behind;
    DC_TRY(dc_build_bits(j, f, &one, (uint64_t)row.dim[0], &n));
    DC_TRY(dc_build_iota(j, f, &row, 0, &index));
    DC_TRY(apply(j, f, DC_OP_ADD, index, in[1], &index));
    DC_TRY(apply(j, f, DC_OP_SUB, index, n, &less));
    DC_TRY(apply(j, f, DC_OP_LE, n, index, &behind));
    DC_TRY(dc_ops_where(j, f, behind, less, index, &index));
    DC_TRY(dc_build_gather(j, f, in[0], index, c->axis, 0, out));
    out->type = in[0].type;
    return DC_OK;
}

/* Outside of traces a large one takes the shift as an argument: a program for each would be compiled, and used once. */
static bool roll_by_argument(lua_State *L, dc_dsl *d, const dc_handle *h, const cut *c)
{
    const dc_type t = *dc_handle_type(h);
    if (dc_trace_here(L, d) != NULL || c->first == 0 || t.dim[c->axis] > INT32_MAX / 2 ||
        dc_type_count(&t) <= DC_LAZY_SMALL || dc_dtype_is_complex((dc_dtype)t.dtype) ||
        dc_handle_keeps_recipe(h))
        return false;
    dc_apply a = {.op = "roll", .nout = 1, .build = build_roll_by, .arg = c};
    dc_apply_operands(L, d, &a, "roll", first_two, 1);
    a.in[1] = (dc_operand){.role = "shift",
                           .type = dc_type_scalar(DC_I32),
                           .bits = (uint64_t)(t.dim[c->axis] - c->first)};
    a.n = 2;
    dc_apply_run(L, d, &a);
    return true;
}

/* x:roll(by, axis): element i goes to i + by, round the end. */
static int l_roll(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "roll");
    const dc_type t = *dc_handle_type(h);
    lua_settop(L, 3);
    const int64_t by = dc_args_integer(L, d, 2, "roll", "a shift");
    if (lua_isnil(L, 3) && t.rank == 1) {
        lua_pushinteger(L, 1);
        lua_replace(L, 3);
    }
    cut c = {.axis = dc_args_axis_of(L, d, 3, &t, "roll")};
    const int64_t n = t.dim[c.axis];
    dc_size_check(L, d, "roll", &t);
    if (dc_extent_is(n)) {
        c.first = dc_extent_number(by);
        dc_apply_to(L, d, "roll", first_two, 1, build_roll_bounded, &c);
        return 1;
    }
    c.first = n == 0 ? 0 : (by % n + n) % n;
    if (roll_by_argument(L, d, h, &c))
        return 1;
    dc_apply_to(L, d, "roll", first_two, 1, build_roll, &c);
    return 1;
}

static const dc_binding bindings[] = {
    {"concat", l_concat, 2, DC_IN_MODULE}, {"stack", l_stack, 2, DC_IN_MODULE},
    {"split", l_split, 3, DC_IN_BOTH},     {"flip", l_flip, 2, DC_IN_BOTH},
    {"roll", l_roll, 3, DC_IN_BOTH},
};

const dc_bindings dc_concat_bindings = DC_BINDINGS(bindings);
