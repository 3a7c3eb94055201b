/*
 * Parts of a tensor: brackets, :slice and :put.
 *
 *   a[2]  a[-1]              drops the axis           a[{ 2, 3 }]           one index per axis
 *   a[{ {}, {2, 3} }]        all rows, columns 2..3   a[{ {2} }]            row 2, the axis kept
 *   a[{ {1, 9, 2} }]         with a step              a[{ {-1, 1, -1} }]    backwards
 *   a:slice { batch = { 1, 16 } }                     by name or number of the axis
 *   a:put({ 1, {2, 3} }, v)  a new tensor with v there
 *
 * Positions count from 1, or from the end if negative. A range {k + 1, k} is empty, k from 0 on;
 * nothing else may lie outside. Tables are read raw, so that what they hold cannot change while
 * they are read.
 */
#include "core/base/extent.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/size.h"
#include "dsl/base/trace.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One range per axis: 0-based, ascending; then flipped, then dropped. */
typedef struct part {
    dc_extents *extents; /* sizes may be known at run time only */
    dc_type type;        /* of the whole */
    int64_t first[DC_MAX_RANK], last[DC_MAX_RANK], step[DC_MAX_RANK];
    uint32_t drop, flip;
} part;

/* ---- builds ---------------------------------------------------------------------------------- */

static dc_status build_part(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const part *p = arg;
    DC_TRY(dc_build_slice(j, f, in[0], p->first, p->last, p->step, out));
    if (p->flip != 0)
        DC_TRY(dc_build_flip(j, f, *out, p->flip, out));
    return p->drop != 0 ? dc_build_drop(j, f, *out, p->drop, out) : DC_OK;
}

static bool is_whole_axis(const part *p, int k)
{
    return p->first[k] == 0 && p->step[k] == 1 &&
           p->last[k] == dc_extent_sub(p->extents, p->type.dim[k], 1);
}

static bool is_whole(const part *p)
{
    for (int k = 0; k < p->type.rank; k++)
        if (!is_whole_axis(p, k))
            return false;
    return true;
}

static int64_t count_at(const part *p, int k)
{
    dc_extents *e = p->extents;
    if (dc_extent_is(p->first[k]) || dc_extent_is(p->last[k]))
        return dc_extent_add(
            e, dc_extent_div(e, dc_extent_sub(e, p->last[k], p->first[k]), p->step[k]), 1);
    return p->last[k] < p->first[k] ? 0 : (p->last[k] - p->first[k]) / p->step[k] + 1;
}

/* The type that build_part gives: what stays, without the names of axes that are cut. */
static dc_type part_type(const part *p)
{
    dc_type t = dc_type_scalar((dc_dtype)p->type.dtype);
    for (int k = 0; k < p->type.rank; k++) {
        const int64_t n = count_at(p, k);
        if (p->drop >> k & 1)
            continue;
        t.dim[t.rank] = n;
        t.name[t.rank++] = n == p->type.dim[k] ? p->type.name[k] : NULL;
    }
    return t;
}

/* v, of the type of the part, where it belongs in the whole; fill elsewhere. */
static dc_status spread(dc_job *j, dc_func *f, const part *p, dc_val v, double fill, dc_val *out)
{
    dc_type kept = dc_type_scalar((dc_dtype)v.type.dtype), to = p->type;
    int from = 0;
    for (int k = 0; k < p->type.rank; k++)
        kept.dim[kept.rank++] = p->drop >> k & 1 ? 1 : v.type.dim[from++];
    v = dc_build_as(f, v, &kept);
    if (p->flip != 0)
        DC_TRY(dc_build_flip(j, f, v, p->flip, &v));
    to.dtype = v.type.dtype;
    const dc_status status = dc_build_pad(j, f, v, p->first, p->step, &to, fill, out);
    if (status != DC_OK && j->err.id == DC_ERR_EXTENT) /* of the whole, not of what is spread */
        j->err.fact.type[0] = p->type;
    return status;
}

/* where(mask, v, x); a scalar need not be spread. */
static dc_status build_put(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const part *p = arg;
    const dc_type want = part_type(p);
    dc_type yes = want;
    dc_val v = in[1], mask;
    if (v.type.dtype != in[0].type.dtype)
        return dc_fail(j, DC_ERR_DTYPE_MIX, &(dc_fact){.type = {in[0].type, v.type}, .operand = 2});
    if (v.type.rank > 0 || is_whole(p))
        DC_TRY(dc_build_expand(j, f, v, &want, &v));
    if (is_whole(p)) {
        DC_TRY(spread(j, f, p, v, 0, out));
        out->type = p->type;
        return DC_OK;
    }
    yes.dtype = DC_BOOL;
    DC_TRY(dc_build_const(j, f, &yes, 1, &mask));
    DC_TRY(spread(j, f, p, mask, 0, &mask));
    if (v.type.rank > 0)
        DC_TRY(spread(j, f, p, v, 0, &v));
    const dc_val pick[3] = {mask, v, in[0]};
    DC_TRY(dc_build_ew(j, f, DC_OP_WHERE, pick, 3, out));
    out->type = in[0].type;
    return DC_OK;
}

/* ---- a put where positions vary --------------------------------------------------------------- */

/*
 * Outside typed functions a position is an argument, so that one program serves all: adjacent axes [axis, end),
 * of which all but the last are cut to one position, are one axis of the whole, and the part is `n` places of it
 * from `at` on.
 */
typedef struct places {
    const part *p;
    int axis, end;
    int64_t at, n, step, size; /* size: of the axis that they are */
} places;

static bool find_places(const part *p, places *out)
{
    *out = (places){.p = p, .axis = -1, .n = 1, .size = 1};
    for (int k = 0; k < p->type.rank; k++) {
        if (is_whole_axis(p, k))
            continue;
        if (out->axis < 0)
            out->axis = out->end = k;
        if (out->end != k || out->n != 1 || !dc_mul_ok(out->size, p->type.dim[k], &out->size))
            return false;
        out->n = count_at(p, k);
        out->step = p->step[k];
        out->at = out->at * p->type.dim[k] + p->first[k];
        out->end = k + 1;
    }
    return out->axis >= 0 && out->n > 0 && out->size <= INT32_MAX;
}

/* Axes [axis, end) as one of n elements. */
static dc_val as_one_axis(dc_func *f, dc_val v, const places *x, int64_t n)
{
    dc_type to = dc_type_scalar((dc_dtype)v.type.dtype);
    for (int k = 0; k < v.type.rank; k++)
        if (k < x->axis || k >= x->end)
            to.dim[to.rank++] = v.type.dim[k];
        else if (k == x->axis)
            to.dim[to.rank++] = n;
    return dc_build_as(f, v, &to);
}

/* The whole, the value, the first place as an i32[]. */
static dc_status build_put_at(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const places *x = arg;
    const part *p = x->p;
    const dc_type want = part_type(p), list = dc_type_make(DC_I32, 1, &x->n);
    dc_type kept = dc_type_scalar((dc_dtype)p->type.dtype);
    dc_val v, at = in[2], step;
    DC_TRY(dc_build_expand(j, f, in[1], &want, &v));
    for (int k = 0; k < p->type.rank; k++)
        kept.dim[kept.rank++] = count_at(p, k);
    v = dc_build_as(f, v, &kept);
    if (p->flip != 0)
        DC_TRY(dc_build_flip(j, f, v, p->flip, &v));
    DC_TRY(dc_build_expand(j, f, at, &list, &at));
    if (x->n > 1) {
        dc_val k;
        DC_TRY(dc_build_iota(j, f, &list, 0, &k));
        DC_TRY(dc_ops_number(j, f, k, (double)x->step, &step));
        DC_TRY(dc_ops_2(j, f, DC_OP_MUL, k, step, &k));
        DC_TRY(dc_ops_2(j, f, DC_OP_ADD, at, k, &at));
    }
    DC_TRY(dc_build_scatter(j, f, DC_OP_SCATTER, as_one_axis(f, in[0], x, x->size), at,
                            as_one_axis(f, v, x, x->n), x->axis, 0, out));
    *out = dc_build_as(f, *out, &in[0].type);
    return DC_OK;
}

/* Nothing is to be said against v as the value of the part. */
static bool fits(const part *p, const dc_type *v)
{
    const dc_type want = part_type(p);
    bool fits = v->dtype == want.dtype && v->rank <= want.rank;
    for (int k = 0; k < v->rank && fits; k++) {
        const int to = k + want.rank - v->rank;
        fits = (v->name[k] == NULL || v->name[k] == want.name[to]) &&
               (v->dim[k] == 1 || v->dim[k] == want.dim[to]);
    }
    return fits;
}

/* ---- parsing --------------------------------------------------------------------------------- */

typedef struct site {
    dc_dsl *d;
    const char *op;
    part *p;
} site;

DC_NORETURN static void outside(lua_State *L, const site *s, int axis, int64_t k)
{
    const dc_type *t = &s->p->type;
    const dc_operand in = {.h = dc_handle_test(L, 1), .role = "of", .type = *t};
    const dc_fact fact = {.op = s->op,
                          .axis = {axis},
                          .num = {dc_extent_number(k), dc_extent_bound(t->dim[axis])},
                          .type = {*t}};
    dc_error_fact(L, s->d, DC_ERR_INDEX, &fact, &(dc_blame){.in = &in, .n = in.h != NULL});
}

/* Positions and steps as far as this are computed with; beyond it lies no axis. */
static const int64_t farthest = (int64_t)1 << 60;

/* The integer at idx, a position on that axis or, of -1, a step; tensors get a hint. */
static int64_t integer(lua_State *L, const site *s, int idx, int axis, const char *what)
{
    const dc_handle *h = dc_handle_test(L, idx);
    char text[DC_TYPE_TEXT + 60];
    int64_t size;
    if (dc_size_test(L, idx, &size))
        return size;
    if (lua_type(L, idx) == LUA_TNUMBER) {
        int exact;
        const lua_Integer k = lua_tointegerx(L, idx, &exact);
        if (exact && axis >= 0 && (k > farthest || k < -farthest))
            outside(L, s, axis, k);
        if (exact)
            return dc_max_i64(-farthest, dc_min_i64(k, farthest));
    }
    snprintf(text, sizeof text, "%s must be an integer, not %s", what, dc_handle_describe(L, idx));
    if (h == NULL)
        dc_error_raisef(L, s->d, DC_ERR_INDEX_TEXT, s->op, "%s", text);
    const bool mask = h->kind != DC_HANDLE_CLOSED && dc_handle_type(h)->dtype == DC_BOOL;
    dc_error_fact(L, s->d, DC_ERR_INDEX_TEXT, &(dc_fact){.op = s->op, .word = {text}},
                  &(dc_blame){.hint = mask && strcmp(s->op, "put") == 0
                                          ? "dc.where(mask, v, x) has v where the mask is true"
                                      : mask
                                          ? "x:compact(mask, { bound = n }) has what it selects; "
                                            "dc.where(mask, x, 0) keeps the shape"
                                          : ":take(idx, axis), or :take_nd { i, j } of several "
                                            "axes, takes positions from 0; "
                                            ":item() gives the number of one element"});
}

/* From 1, or from the end if negative; 0-based out, -1 and n for what lies just beside the axis. */
static int64_t resolve(const part *p, int axis, int64_t k)
{
    return k < 0 ? dc_extent_add(p->extents, p->type.dim[axis], k)
                 : dc_extent_sub(p->extents, k, 1);
}

/* Does what the axis is asked for depend on a size that is known at run time? Whether it is inside is proved later. */
static bool is_open(const site *s, int axis, int64_t a, int64_t b)
{
    return dc_extent_is(s->p->type.dim[axis]) || dc_extent_is(a) || dc_extent_is(b);
}

static void read_position(lua_State *L, const site *s, int idx, int axis)
{
    const int64_t k = integer(L, s, idx, axis, "an index"), n = s->p->type.dim[axis];
    if (k == 0 || (!is_open(s, axis, k, k) && (k > n || k < -n)))
        outside(L, s, axis, k);
    s->p->first[axis] = s->p->last[axis] = resolve(s->p, axis, k);
    s->p->drop |= 1u << axis;
}

DC_NORETURN static void wrong_way(lua_State *L, const site *s, int64_t a, int64_t b, int64_t step)
{
    char text[160], hint[120];
    snprintf(text, sizeof text,
             "the range %" PRId64 " to %" PRId64 " is empty in steps of %" PRId64, a, b, step);
    snprintf(hint, sizeof hint, "{%" PRId64 ", %" PRId64 "%s} goes %s", a, b,
             step > 0 ? ", -1" : "", step > 0 ? "backwards" : "forwards");
    dc_error_fact(L, s->d, DC_ERR_INDEX_TEXT, &(dc_fact){.op = s->op, .word = {text}},
                  &(dc_blame){.hint = hint});
}

/* The same along an axis whose size is known at run time: upwards, or all of it downwards. */
static void set_open_range(lua_State *L, const site *s, int axis, int64_t first, int64_t last,
                           int64_t step)
{
    part *p = s->p;
    const bool down = step == -1 && last == 0;
    if (step < 1 && !down)
        dc_error_fact(L, s->d, DC_ERR_EXTENT,
                      &(dc_fact){.op = s->op, .axis = {axis}, .type = {p->type}}, NULL);
    p->first[axis] = down ? last : first;
    p->last[axis] = down ? first : last;
    p->step[axis] = down ? 1 : step;
    p->flip |= down ? 1u << axis : 0;
}

/* a..b by step, step != 0, as an ascending range. */
static void set_range(lua_State *L, const site *s, int axis, int64_t a, int64_t b, int64_t step)
{
    part *p = s->p;
    const int64_t n = p->type.dim[axis];
    const int64_t first = resolve(p, axis, a), last = resolve(p, axis, b);
    if (is_open(s, axis, a, b)) {
        set_open_range(L, s, axis, first, last, step);
        return;
    }
    const bool empty = step > 0 && last == first - 1 && a != 0 && first >= 0 && first <= n &&
                       (b >= 0 || last >= 0);
    if (!empty && (a == 0 || first < 0 || first >= n))
        outside(L, s, axis, a);
    if (!empty && (b == 0 || last < 0 || last >= n))
        outside(L, s, axis, b);
    if (!empty && (step > 0 ? last < first : last > first))
        wrong_way(L, s, a, b, step);
    p->first[axis] = first;
    p->last[axis] = last;
    p->step[axis] =
        dc_min_i64(step > 0 ? step : -step, dc_max_i64(n, 1)); /* beyond it all are alike */
    if (step > 0)
        return;
    /* from the last element that is met, upwards */
    p->first[axis] = first - (first - last) / p->step[axis] * p->step[axis];
    p->last[axis] = first;
    p->flip |= 1u << axis;
}

/* The table at idx: {} {k} {first, last} {first, last, step}. */
static void read_range(lua_State *L, const site *s, int idx, int axis)
{
    static const char *const what[] = {"an index", "an index", "a step"};
    int64_t v[3] = {0, 0, 1};
    int n = 0, keys = 0;
    while (n < 4 && lua_rawgeti(L, idx, n + 1) != LUA_TNIL) {
        if (n < 3)
            v[n] = integer(L, s, lua_gettop(L), n < 2 ? axis : -1, what[n]);
        n++;
        lua_pop(L, 1);
    }
    lua_settop(L, idx);
    for (lua_pushnil(L); lua_next(L, idx) != 0; lua_pop(L, 1))
        keys++;
    if (keys != n || n > 3)
        dc_error_raisef(L, s->d, DC_ERR_INDEX_TEXT, s->op,
                        "a range is {}, {k}, {first, last} or {first, last, step}");
    if (n == 3 && v[2] == 0)
        dc_error_raisef(L, s->d, DC_ERR_INDEX_TEXT, s->op, "a range in steps of 0 has no end");
    if (n > 0)
        set_range(L, s, axis, v[0], n == 1 ? v[0] : v[1], v[2]);
}

static void read_item(lua_State *L, const site *s, int idx, int axis)
{
    if (lua_type(L, idx) == LUA_TTABLE)
        read_range(L, s, idx, axis);
    else
        read_position(L, s, idx, axis);
}

/* Too many, or a hole where a list is meant. */
static void check_list(lua_State *L, const site *s, int idx)
{
    int64_t most = 0;
    for (lua_pushnil(L); lua_next(L, idx) != 0; lua_pop(L, 1))
        if (lua_isinteger(L, -2) && lua_tointeger(L, -2) > most)
            most = lua_tointeger(L, -2);
    if (most > s->p->type.rank)
        dc_error_fact(L, s->d, DC_ERR_INDICES,
                      &(dc_fact){.op = s->op, .num = {most}, .type = {s->p->type}}, NULL);
    for (int k = 1; k <= most; k++)
        if (lua_rawgeti(L, idx, k) == LUA_TNIL)
            dc_error_raisef(L, s->d, DC_ERR_INDEX_TEXT, s->op,
                            "the index of axis %d is nil; {} is the whole axis", k);
        else
            lua_pop(L, 1);
}

static void read_table(lua_State *L, const site *s, int idx)
{
    dc_axis_table_check(L, s->d, idx, &s->p->type, s->op);
    for (int k = 0; k < s->p->type.rank; k++) {
        dc_axis_table_push(L, s->d, idx, &s->p->type, k, s->op);
        if (!lua_isnil(L, -1))
            read_item(L, s, lua_gettop(L), k);
        lua_pop(L, 1);
    }
}

static void whole(dc_dsl *d, const dc_type *t, part *p)
{
    *p = (part){.extents = d->rt->extents, .type = *t};
    for (int k = 0; k < t->rank; k++) {
        p->last[k] = dc_extent_sub(p->extents, t->dim[k], 1);
        p->step[k] = 1;
    }
}

/* What stands in brackets, at idx. */
static void read_index(lua_State *L, dc_dsl *d, int idx, const dc_handle *h, const char *op,
                       part *p)
{
    const site s = {d, op, p};
    whole(d, dc_handle_type(h), p);
    if (lua_type(L, idx) == LUA_TTABLE) {
        check_list(L, &s, idx);
        read_table(L, &s, idx);
        return;
    }
    if (p->type.rank == 0)
        dc_error_fact(L, d, DC_ERR_INDEX_TEXT,
                      &(dc_fact){.op = op, .word = {"an index for a scalar, which has no axes"}},
                      &(dc_blame){.hint = ":item() gives the number"});
    read_item(L, &s, idx, 0);
}

/* ---- bindings -------------------------------------------------------------------------------- */

static void apply_part(lua_State *L, dc_dsl *d, const char *op, dc_build_fn *build, const part *p)
{
    static const int at[1] = {1};
    dc_apply a = {.build = build, .arg = p};
    dc_apply_operands(L, d, &a, op, at, 1);
    dc_apply_run(L, d, &a);
}

/* A value that does not fit is told as what the script wrote. */
static void run_put(lua_State *L, dc_dsl *d, const part *p)
{
    static const int at[2] = {1, 3};
    dc_apply a = {.build = build_put, .arg = p};
    places x;
    dc_apply_operands(L, d, &a, "put", at, 2);
    a.in[0].role = "of";
    a.in[1].role = "value";
    if (dc_trace_here(L, d) == NULL && find_places(p, &x) && fits(p, &a.in[1].type)) {
        a.build = build_put_at;
        a.arg = &x;
        a.in[a.n++] = (dc_operand){.role = "position",
                                   .type = dc_type_scalar(DC_I32),
                                   .bits = dc_bits_of(DC_I32, (double)x.at)};
    }
    dc_apply_run(L, d, &a);
}

int dc_subscript_get(lua_State *L, dc_dsl *d, dc_handle *h)
{
    part p;
    lua_settop(L, 2);
    read_index(L, d, 2, h, "index", &p);
    apply_part(L, d, "index", build_part, &p);
    return 1;
}

static int l_slice(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "slice");
    part p;
    lua_settop(L, 2);
    if (lua_type(L, 2) != LUA_TTABLE)
        dc_error_raisef(L, d, DC_ERR_ARG, "slice",
                        "a table of ranges such as { batch = { 1, 16 } } is needed, not %s",
                        dc_handle_describe(L, 2));
    whole(d, dc_handle_type(h), &p);
    read_table(L, &(site){d, "slice", &p}, 2);
    apply_part(L, d, "slice", build_part, &p);
    return 1;
}

static int l_put(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "put");
    part p;
    lua_settop(L, 4);
    if (!lua_isnil(L, 3) && dc_handle_test(L, 2) != NULL)
        return dc_gather_put(L, d);
    lua_settop(L, 3);
    if (lua_isnil(L, 3))
        dc_error_raisef(L, d, DC_ERR_ARG, "put", "a value is needed, as in b = a:put({1}, 5)");
    read_index(L, d, 2, h, "put", &p);
    run_put(L, d, &p);
    return 1;
}

static const dc_binding bindings[] = {
    {"slice", l_slice, 2, DC_IN_METHODS},
    {"put", l_put, 4, DC_IN_METHODS},
};

const dc_bindings dc_subscript_bindings = DC_BINDINGS(bindings);
