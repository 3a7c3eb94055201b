/*
 * Shapes as reshape and expand take them, into sizes and names:
 *
 *   x:reshape(8, -1)   x:reshape { 8, -1 }   x:reshape "[8, -1]"   x:reshape "[batch, head, t=8]"
 *
 * In a text an item is a size, `name=size` or a name alone. The size of a name alone is that of the
 * operand's axis of this name. If there is none, the name is a new one, and its size is found:
 *
 *   - if all other sizes are those of the axes at their places, it is that of the axis at its own;
 *   - otherwise from the left, as long as everything before it keeps its place, then from the right,
 *     and the last one takes what the number of elements leaves, as -1 does.
 *
 * More new names than the operand has axes are an error: [a, b] of f32[24] could be many.
 */
#include "core/base/expr.h"
#include "dsl/base/args.h"
#include "dsl/base/error.h"
#include "dsl/base/run.h"
#include "dsl/base/size.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { OPEN = -1 }; /* a size to be found */

typedef struct shaping {
    dc_names *names;
    const char *op, *text;
    const dc_type *from;
    dc_type *out;
    uint32_t bare; /* items that are a name alone, size still open */
} shaping;

/* ---- reading a text --------------------------------------------------------------------------- */

static dc_status bad_text(dc_job *j, const shaping *s, const char *what, const char *at)
{
    return dc_failf(j, DC_ERR_ARG, s->op, "shape '%.80s': %s, not '%.20s'", s->text, what, at);
}

/* 64 or -1 */
static dc_status read_size(dc_job *j, const shaping *s, const char **at, int64_t *size)
{
    const char *p = *at;
    *size = 0;
    if (p[0] == '-' && p[1] == '1' && !isdigit((unsigned char)p[2])) {
        *size = OPEN;
        *at = dc_expr_skip_blanks(p + 2);
        return DC_OK;
    }
    if (!isdigit((unsigned char)*p))
        return bad_text(j, s, "a size or a name expected", p);
    for (; isdigit((unsigned char)*p); p++)
        if (!dc_mul_ok(*size, 10, size) || !dc_add_ok(*size, *p - '0', size))
            return bad_text(j, s, "a smaller size expected", *at);
    *at = dc_expr_skip_blanks(p);
    return DC_OK;
}

static dc_status read_item(dc_job *j, shaping *s, const char **at)
{
    dc_type *t = s->out;
    if (t->rank == DC_MAX_RANK)
        return dc_fail(j, DC_ERR_TOO_MANY_AXES,
                       &(dc_fact){.op = s->op, .num = {DC_MAX_RANK + 1, DC_MAX_RANK}});
    const int i = t->rank++;
    t->name[i] = NULL;
    if (!dc_expr_starts_name(**at))
        return read_size(j, s, at, &t->dim[i]);
    const size_t n = dc_expr_name_length(*at);
    t->name[i] = dc_name_intern(s->names, *at, n);
    *at = dc_expr_skip_blanks(*at + n);
    if (**at == '=') {
        *at = dc_expr_skip_blanks(*at + 1);
        return read_size(j, s, at, &t->dim[i]);
    }
    t->dim[i] = OPEN;
    s->bare |= 1u << i;
    return DC_OK;
}

/* "[8, t=4]", or "f32[8, t=4]" with the operand's dtype. */
static dc_status read_text(dc_job *j, shaping *s)
{
    const char *at = dc_expr_skip_blanks(s->text);
    const char *dtype = dc_dtype_name((dc_dtype)s->from->dtype);
    if (strncmp(at, dtype, strlen(dtype)) == 0)
        at = dc_expr_skip_blanks(at + strlen(dtype));
    if (*at != '[')
        return dc_failf(
            j, DC_ERR_ARG, s->op,
            "a shape such as \"[64, 784]\" is needed, not '%.80s'; :cast changes the dtype",
            s->text);
    at = dc_expr_skip_blanks(at + 1);
    while (*at != ']') {
        DC_TRY(read_item(j, s, &at));
        if (*at != ']' && *at != ',')
            return bad_text(j, s, "',' or ']' expected", at);
        if (*at == ',')
            at = dc_expr_skip_blanks(at + 1);
    }
    at = dc_expr_skip_blanks(at + 1);
    return *at == '\0' ? DC_OK : bad_text(j, s, "nothing more expected", at);
}

/* ---- names alone ------------------------------------------------------------------------------ */

static dc_status by_name(dc_job *j, shaping *s)
{
    const dc_type *from = s->from;
    for (int i = 0; i < s->out->rank; i++) {
        int found = -1;
        for (int k = 0; k < from->rank && s->bare >> i & 1; k++) {
            if (from->name[k] != s->out->name[i])
                continue;
            if (found >= 0 && from->dim[k] != from->dim[found])
                return dc_failf(j, DC_ERR_ARG, s->op,
                                "axes %d and %d are both '%s', of different sizes; write %s=SIZE",
                                found + 1, k + 1, from->name[k], from->name[k]);
            found = k;
        }
        if (found < 0)
            continue;
        s->out->dim[i] = from->dim[found];
        s->bare &= ~(1u << i);
    }
    return DC_OK;
}

/* Does every item that has a size have that of the axis at its place? */
static bool all_in_place(const shaping *s)
{
    if (s->out->rank != s->from->rank)
        return false;
    for (int i = 0; i < s->out->rank; i++)
        if ((s->bare >> i & 1) == 0 && s->out->dim[i] != s->from->dim[i])
            return false;
    return true;
}

static int open_sizes(const shaping *s)
{
    int n = 0;
    for (int i = 0; i < s->out->rank; i++)
        n += s->out->dim[i] == OPEN;
    return n;
}

/* From one end inwards, until a size is not that of its place, or one is left. */
static void by_place(shaping *s, bool from_right)
{
    const int n = s->out->rank, m = s->from->rank;
    for (int k = 0; k < n && k < m && open_sizes(s) > 1; k++) {
        const int i = from_right ? n - 1 - k : k;
        const int64_t dim = s->from->dim[from_right ? m - 1 - k : k];
        if (s->bare >> i & 1) {
            s->out->dim[i] = dim;
            s->bare &= ~(1u << i);
        }
        if (s->out->dim[i] != dim)
            return;
    }
}

static dc_status find_sizes(dc_job *j, shaping *s)
{
    DC_TRY(by_name(j, s));
    if (all_in_place(s)) {
        for (int i = 0; i < s->out->rank; i++)
            s->out->dim[i] = s->from->dim[i];
        return DC_OK;
    }
    if (__builtin_popcount(s->bare) <= s->from->rank) {
        by_place(s, false);
        by_place(s, true);
    }
    if (open_sizes(s) <= 1 || s->bare == 0)
        return DC_OK; /* more than one -1 is told where the rest is */
    char type[DC_TYPE_TEXT];
    const char *name = s->out->name[__builtin_ctz(s->bare)];
    dc_type_print(s->from, type, sizeof type);
    return dc_failf(j, DC_ERR_ARG, s->op,
                    "the size of '%s' in '%.80s' does not follow from %s; write %s=SIZE", name,
                    s->text, type, name);
}

static dc_status parse_shape_body(dc_job *j, void *arg)
{
    shaping *s = arg;
    DC_TRY(read_text(j, s));
    return find_sizes(j, s);
}

/* ---- arguments -------------------------------------------------------------------------------- */

static void add_dim(lua_State *L, dc_dsl *d, int idx, const char *op, dc_type *t)
{
    if (t->rank == DC_MAX_RANK)
        dc_error_fact(L, d, DC_ERR_TOO_MANY_AXES,
                      &(dc_fact){.op = op, .num = {DC_MAX_RANK + 1, DC_MAX_RANK}}, NULL);
    t->dim[t->rank++] = dc_size_read(L, d, idx, op, "a size");
}

void dc_shape_arg_read(lua_State *L, dc_dsl *d, const dc_type *from, const char *op, dc_type *out)
{
    const int n = lua_gettop(L);
    *out = dc_type_scalar((dc_dtype)from->dtype);
    if (n == 2 && lua_type(L, 2) == LUA_TSTRING) {
        shaping s = {d->rt->names, op, dc_args_text(L, d, 2, op), from, out, 0};
        dc_run(L, d, parse_shape_body, &s);
        return;
    }
    if (n == 2 && lua_type(L, 2) == LUA_TTABLE) {
        const size_t len = lua_rawlen(L, 2);
        for (size_t i = 1; i <= len; i++, lua_pop(L, 1)) {
            lua_rawgeti(L, 2, (lua_Integer)i);
            add_dim(L, d, lua_gettop(L), op, out);
        }
        return;
    }
    for (int i = 2; i <= n; i++)
        add_dim(L, d, i, op, out);
}
