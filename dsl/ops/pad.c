/*
 * More elements before and after, along some axes, which lose their names.
 *
 *   x:pad({ [2] = { 1, 1 }, batch = { 0, 3 } }, value)
 *   x:pad({ [3] = 2, [4] = 2 }, { mode = "reflect" })
 *
 * What is no value everywhere is parts of the axis, one axis after the other: so corners are those of the result so far.
 */
#include "core/base/extent.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef enum mode { CONSTANT, REFLECT, SYMMETRIC, REPLICATE, CIRCULAR } mode;

static const char *const names[] = {
    [CONSTANT] = "constant",   [REFLECT] = "reflect",   [SYMMETRIC] = "symmetric",
    [REPLICATE] = "replicate", [CIRCULAR] = "circular",
};

typedef struct padding {
    dc_type whole;
    int64_t lo[DC_MAX_RANK], hi[DC_MAX_RANK];
    mode mode;
    double fill;
} padding;

/* ---- builds ---------------------------------------------------------------------------------- */

static dc_status build_constant(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                dc_val *out)
{
    const padding *p = arg;
    int64_t step[DC_MAX_RANK];
    for (int k = 0; k < DC_MAX_RANK; k++)
        step[k] = 1;
    return dc_build_pad(j, f, in[0], p->lo, step, &p->whole, p->fill, out);
}

/* An axis, and how many elements are to stand before it or after it. */
typedef struct side {
    int axis;
    int64_t n;
    bool before;
} side;

/* n elements of the axis, from the start or from the end on, all but `skip` of them. */
static dc_status part(dc_job *j, dc_func *f, dc_val v, const side *s, bool start, int skip,
                      int64_t n, dc_val *out)
{
    int64_t first[DC_MAX_RANK] = {0}, last[DC_MAX_RANK], step[DC_MAX_RANK];
    for (int k = 0; k < v.type.rank; k++) {
        last[k] = dc_extent_sub(j->extents, v.type.dim[k], 1);
        step[k] = 1;
    }
    const int64_t size = v.type.dim[s->axis];
    first[s->axis] = start ? skip : dc_extent_sub(j->extents, size, n + skip);
    last[s->axis] = start ? skip + n - 1 : dc_extent_sub(j->extents, size, skip + 1);
    return dc_build_slice(j, f, v, first, last, step, out);
}

static dc_status build_side(dc_job *j, dc_func *f, mode m, dc_val v, const side *s, dc_val *out)
{
    switch (m) {
    case CONSTANT:
        break;
    case CIRCULAR: /* the other end */
        return part(j, f, v, s, !s->before, 0, s->n, out);
    case REFLECT:
    case SYMMETRIC:
        DC_TRY(part(j, f, v, s, s->before, m == REFLECT, s->n, out));
        return dc_build_flip(j, f, *out, 1u << s->axis, out);
    case REPLICATE: {
        DC_TRY(part(j, f, v, s, s->before, 0, 1, out));
        dc_type wide = out->type;
        out->type.name[s->axis] = wide.name[s->axis] =
            NULL; /* an axis of a name does not stretch */
        wide.dim[s->axis] = s->n;
        return dc_build_expand(j, f, *out, &wide, out);
    }
    }
    DC_BUG("parts of mode %d", (int)m);
}

static dc_status build_parts(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const padding *p = arg;
    *out = in[0];
    for (int k = 0; k < in[0].type.rank; k++) {
        const dc_val own = *out;
        for (int i = 0; i < 2; i++) {
            const side s = {k, i == 0 ? p->lo[k] : p->hi[k], i == 0};
            dc_val more, pair[2];
            if (s.n == 0)
                continue;
            DC_TRY(build_side(j, f, p->mode, own, &s, &more));
            pair[0] = s.before ? more : *out;
            pair[1] = s.before ? *out : more;
            DC_TRY(dc_concat_build(j, f, &k, pair, out));
        }
    }
    return DC_OK;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static int64_t margin(lua_State *L, dc_dsl *d, int idx)
{
    const int64_t n = dc_args_count(L, d, idx, "pad", "a margin");
    if (n < 0)
        dc_error_raisef(L, d, DC_ERR_ARG, "pad", "a margin is 0 or more, not %" PRId64, n);
    return dc_min_i64(n, (int64_t)1 << 60); /* too large, as anything beyond */
}

/* { before, after }, or one number for both, at the top. */
static void read_margins(lua_State *L, dc_dsl *d, padding *p, int k)
{
    const int item = lua_gettop(L);
    if (lua_type(L, item) == LUA_TTABLE) {
        if (lua_rawlen(L, item) != 2)
            dc_error_raisef(L, d, DC_ERR_ARG, "pad", "margins are {before, after}");
        lua_rawgeti(L, item, 1);
        lua_rawgeti(L, item, 2);
        p->lo[k] = margin(L, d, item + 1);
        p->hi[k] = margin(L, d, item + 2);
        lua_settop(L, item);
    } else {
        p->lo[k] = p->hi[k] = margin(L, d, item);
    }
    dc_extents *e = d->rt->extents;
    p->whole.dim[k] = dc_extent_add(e, dc_extent_add(e, p->whole.dim[k], p->lo[k]), p->hi[k]);
    if (p->whole.dim[k] == DC_EXTENT_NONE)
        p->whole.dim[k] = INT64_MAX;
}

static void read_mode(lua_State *L, dc_dsl *d, int idx, padding *p)
{
    const char *text = lua_type(L, idx) == LUA_TSTRING ? lua_tostring(L, idx) : "";
    for (size_t i = 0; i < DC_COUNTOF(names); i++)
        if (strcmp(text, names[i]) == 0) {
            p->mode = (mode)i;
            return;
        }
    if (strcmp(text, "edge") == 0) { /* NumPy's name, and the next */
        p->mode = REPLICATE;
    } else if (strcmp(text, "wrap") == 0) {
        p->mode = CIRCULAR;
    } else if (!lua_isnil(L, idx)) {
        dc_error_raisef(L, d, DC_ERR_ARG, "pad",
                        "mode is \"constant\", \"reflect\", \"symmetric\", \"replicate\" or "
                        "\"circular\", not %s",
                        dc_handle_describe(L, idx));
    }
}

/* The value at idx, or a table of options there. */
static void read_options(lua_State *L, dc_dsl *d, int idx, padding *p)
{
    const int top = lua_gettop(L);
    if (lua_type(L, idx) == LUA_TTABLE) {
        dc_args_options(L, d, idx, "pad", (const char *const[]){"mode", "value", NULL});
        lua_getfield(L, idx, "mode");
        read_mode(L, d, top + 1, p);
        lua_getfield(L, idx, "value");
        if (p->mode != CONSTANT && !lua_isnil(L, -1))
            dc_error_raisef(L, d, DC_ERR_ARG, "pad", "a value is for mode \"constant\", not \"%s\"",
                            names[p->mode]);
        idx = lua_gettop(L);
    }
    if (!lua_isnil(L, idx)) {
        const dc_dtype t = (dc_dtype)p->whole.dtype;
        p->fill = dc_value_of(t, dc_args_element(L, d, idx, "pad", t));
    }
    lua_settop(L, top);
}

/* Has each axis the elements that are to be seen again? */
static void check_margins(lua_State *L, dc_dsl *d, const dc_type *t, const padding *p)
{
    const dc_operand in = {.h = dc_handle_test(L, 1), .role = "of", .type = *t};
    for (int k = 0; k < t->rank; k++) {
        char size[DC_EXTENT_TEXT], text[DC_EXTENT_TEXT + 200];
        const int64_t most = p->lo[k] > p->hi[k] ? p->lo[k] : p->hi[k];
        const int64_t need = most == 0              ? 0
                             : p->mode == REPLICATE ? 1
                             : p->mode == REFLECT   ? most + 1
                                                    : most;
        if (dc_extent_at_least(d->rt->extents, t->dim[k], need))
            continue;
        dc_extent_print(d->rt->extents, t->dim[k], size, sizeof size);
        const int n = snprintf(text, sizeof text,
                               "a margin of %" PRId64 " of mode \"%s\" needs %" PRId64
                               " element%s, axis %d has %s",
                               most, names[p->mode], need, need == 1 ? "" : "s", k + 1, size);
        if (dc_extent_is(t->dim[k]))
            snprintf(text + n, sizeof text - (size_t)n, ", which may be %" PRId64,
                     dc_extent_lo(d->rt->extents, t->dim[k]));
        dc_error_fact(L, d, dc_extent_is(t->dim[k]) ? DC_ERR_EXTENT_TEXT : DC_ERR_DIMS_TEXT,
                      &(dc_fact){.op = "pad", .word = {text}}, &(dc_blame){.in = &in, .n = 1});
    }
}

static int l_pad(lua_State *L)
{
    static const int first[1] = {1};
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "pad");
    const dc_type t = *dc_handle_type(h);
    padding p = {.whole = t};
    lua_settop(L, 3);
    if (lua_type(L, 2) != LUA_TTABLE)
        dc_error_raisef(L, d, DC_ERR_ARG, "pad",
                        "a table of margins such as { [2] = {1, 1} } is needed, not %s",
                        dc_handle_describe(L, 2));
    read_options(L, d, 3, &p);
    dc_axis_table_check(L, d, 2, &t, "pad");
    for (int k = 0; k < t.rank; k++) {
        dc_axis_table_push(L, d, 2, &t, k, "pad");
        if (!lua_isnil(L, -1))
            read_margins(L, d, &p, k);
        lua_settop(L, 3);
    }
    if (p.mode != CONSTANT)
        check_margins(L, d, &t, &p);
    dc_apply_to(L, d, "pad", first, 1, p.mode == CONSTANT ? build_constant : build_parts, &p);
    return 1;
}

static const dc_binding bindings[] = {
    {"pad", l_pad, 3, DC_IN_BOTH},
};

const dc_bindings dc_pad_bindings = DC_BINDINGS(bindings);
