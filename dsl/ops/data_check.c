/*
 * Tests of data at run time: is every integer of a tensor in 0..n-1? Outside typed functions the
 * answer comes at once; inside, the test becomes part of the graph and is looked at when a call
 * completes (dc_trace.check).
 */
#include "core/base/extent.h"
#include "dsl/base/run.h"
#include "dsl/base/trace.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"
#include "formats/fnfile.h"

#include <string.h>

/* Integers that compare with n as they are: short ones as i32. */
static dc_status widen(dc_job *j, dc_func *f, dc_val a, dc_val *out)
{
    *out = a;
    const dc_dtype t = (dc_dtype)a.type.dtype;
    const bool whole = !dc_dtype_is_float(t) && dc_dtype_bits(t) >= 32;
    return whole ? DC_OK : dc_build_cast(j, f, a, DC_I32, out);
}

/* Position of the first integer outside, or -1; and the integer there. */
static dc_status build_check(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const int64_t n = *(const int64_t *)arg;
    const int64_t count = dc_type_count(&in[0].type); /* of the bounds: no position is as large */
    const int64_t all = dc_extent_product(j->extents, in[0].type.rank, in[0].type.dim);
    dc_type flat = dc_type_make((dc_dtype)in[0].type.dtype, 1, &all);
    dc_val l, at, low, high, zero, none, end, hit, first;
    DC_TRY(dc_build_reshape(j, f, in[0], &flat, &l));
    DC_TRY(widen(j, f, l, &l));
    flat.dtype = DC_I32;
    DC_TRY(dc_build_iota(j, f, &flat, 0, &at));
    DC_TRY(dc_ops_number(j, f, l, 0, &zero));
    if (dc_extent_is(n)) {
        const dc_type axis = dc_type_make(DC_I32, 1, &n);
        DC_TRY(dc_build_count(j, f, &axis, 1, &high));
        DC_TRY(dc_build_cast(j, f, high, (dc_dtype)l.type.dtype, &high));
    } else {
        DC_TRY(dc_ops_number(j, f, l, (double)n, &high));
    }
    DC_TRY(dc_ops_2(j, f, DC_OP_LT, l, zero, &low));
    DC_TRY(dc_ops_2(j, f, DC_OP_LE, high, l, &high));
    DC_TRY(dc_ops_2(j, f, DC_OP_OR, low, high, &hit));
    if (l.type.dtype != DC_I32) /* as large as it is, for the message */
        DC_TRY(dc_build_cast(j, f, l, DC_I64, &l));
    DC_TRY(dc_ops_number(j, f, at, -1, &none));
    DC_TRY(dc_ops_number(j, f, at, (double)count, &end));
    const dc_val pick[3] = {hit, at, end};
    DC_TRY(dc_build_ew(j, f, DC_OP_WHERE, pick, 3, &first));
    DC_TRY(dc_build_reduce(j, f, DC_OP_MINR, first, 1, false, &first));
    DC_TRY(dc_build_gather(j, f, l, first, 0, 0, &out[1])); /* where there is none the last one */
    DC_TRY(dc_ops_2(j, f, DC_OP_LT, first, end, &hit));
    const dc_val clean[3] = {hit, first, none};
    return dc_build_ew(j, f, DC_OP_WHERE, clean, 3, &out[0]);
}

void dc_data_check_raise(lua_State *L, dc_dsl *d, const dc_trace_check *c, const dc_found *found)
{
    char where[120];
    dc_handle shown = {.kind = DC_HANDLE_TRACED, .origin = c->origin};
    const dc_operand in = {
        .h = found->h != NULL ? found->h : &shown, .role = c->role, .type = c->shown};
    if (dc_fnfile_role(c->id) != NULL)
        dc_type_matrix(&c->type, found->position, where, sizeof where);
    else
        dc_type_position(&c->type, found->position, where, sizeof where);
    dc_error_fact(
        L, d, c->id,
        &(dc_fact){.op = c->op,
                   .axis = {c->axis},
                   .num = {found->value, dc_extent_bound(c->classes) - 1, found->position + 1},
                   .word = {where}},
        &(dc_blame){.in = &in, .n = 1, .place = &c->place, .hint = found->hint});
}

static int64_t read_integer(lua_State *L, dc_dsl *d, int idx, const char *op)
{
    dc_handle *h = dc_handle_test(L, idx);
    const void *at = dc_handle_read(L, d, h, op);
    return (int64_t)dc_bits_load((dc_dtype)dc_handle_type(h)->dtype, at);
}

/* Positions on the device are i32. */
static void check_count(lua_State *L, dc_dsl *d, const dc_trace_check *c)
{
    const int64_t count = dc_type_count(&c->type);
    if (count > INT32_MAX)
        dc_error_raisef(L, d, DC_ERR_ARG, c->op,
                        "%lld integers; 2147483647 are the most that are looked at together",
                        (long long)count);
}

/* What it is about, for messages, is at `shown`. */
static void check_integers(lua_State *L, dc_dsl *d, int idx, int shown, dc_trace_check c)
{
    const int top = lua_gettop(L), at[1] = {idx};
    const dc_handle *about = dc_handle_check(L, d, shown, c.op);
    c.type = *dc_handle_type(dc_handle_check(L, d, idx, c.op));
    c.shown = *dc_handle_type(about);
    c.origin = about->origin;
    c.place = dc_place_find(L, d);
    check_count(L, d, &c);
    dc_apply a = {.build = build_check, .arg = &c.classes};
    dc_apply_operands(L, d, &a, c.op, at, 1);
    a.nout = 2;
    dc_apply_run(L, d, &a); /* position, value */
    if (dc_trace_here(L, d) != NULL) {
        c.position = dc_handle_test(L, top + 1)->val.ref;
        c.value = dc_handle_test(L, top + 2)->val.ref;
        DC_PUSH_OR_RAISE(L, d, d->trace->check, c);
    } else {
        const int64_t position = read_integer(L, d, top + 1, c.op);
        if (position >= 0) {
            const int64_t value = read_integer(L, d, top + 2, c.op);
            dc_data_check_raise(L, d, &c,
                                &(dc_found){value, position, dc_handle_test(L, shown), NULL});
        }
    }
    lua_settop(L, top);
}

void dc_data_check_index(lua_State *L, dc_dsl *d, int idx, dc_trace_check c)
{
    check_integers(L, d, idx, idx, c);
}

void dc_data_check_matrices(lua_State *L, dc_dsl *d, int idx, int shown, dc_err_id id,
                            const char *op)
{
    check_integers(L, d, idx, shown,
                   (dc_trace_check){.id = id, .classes = 1, .op = op, .role = "matrix"});
}
