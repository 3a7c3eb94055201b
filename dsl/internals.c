/*
 * What the modules of stdlib/ need beyond the public functions; they receive it as a table that
 * scripts never see.
 *
 *   layer(text)              the __call of layers; text(layer) is what errors say of it
 *   name_of(value)           the name of the script's variable that holds it, or nil
 *   kind(value)              "param", "state", "tensor" or nil
 *   describe(value)          what errors call it: "nil", "the number 3", "f32[2]", "an nn.Linear"
 *   shown(value)             the same, where numbers and texts need no word: "3", "'x'"
 *   label(cell [, text])     the name of a cell
 *   fail(row, op, text, hint, role, tensor, ...)
 *   stop(text)               raises it as it is, without a place or a code
 *   check_class(labels, n, op)   a run-time test that all labels are in 0..n-1
 *   check_length(lengths, n, op) that all lengths are in 0..n
 *   check_room(count, n, op)     that a count is at most n
 *   host_operation(op, caller, x, ...), check_matrices(integers, caller, kind, matrix, factors)   (ops/host.c)
 *   idx(path)                a file as a tensor
 *   seed()                   that of the context
 *   options(op, table, name, ...)   refuses what is neither nil nor a table of these names
 *   near(table, name)        "is 'epochs' meant?" of the keys of a table, or nil
 *   found(f, seconds)        is a typed function there, without a compiler (fn/fn.c)
 *   autocast(dtype | false)  what products are computed in from now on; returns what it was
 *   entries(class)           the class, its functions entered through C (stdlib_entry.c)
 *   module(name, table)      the same of a module, in which an unknown name is an error
 */
#include "dsl/internals.h"

#include "core/base/number.h"
#include "core/base/shown.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/hints.h"
#include "dsl/base/run.h"
#include "dsl/base/size.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"
#include "dsl/stdlib_entry.h"
#include "formats/idx.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- layers, names, failures ------------------------------------------------------------------
 */

static int l_layer(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, dc_stdlib_call_layer, 2);
    return 1;
}

static int l_name_of(lua_State *L)
{
    dc_place_push_name(L, 1);
    return 1;
}

static int l_kind(lua_State *L)
{
    const dc_handle *h = dc_handle_test(L, 1);
    if (h == NULL)
        lua_pushnil(L);
    else if (h->kind == DC_HANDLE_CELL)
        lua_pushstring(L, h->cell->trainable ? "param" : "state");
    else
        lua_pushliteral(L, "tensor");
    return 1;
}

static int l_describe(lua_State *L)
{
    lua_settop(L, 1);
    dc_handle_describe(L, 1);
    return 1;
}

static int l_shown(lua_State *L)
{
    lua_settop(L, 1);
    if (lua_type(L, 1) == LUA_TNUMBER)
        lua_pushstring(L, isnan(lua_tonumber(L, 1)) ? "nan" : luaL_tolstring(L, 1, NULL));
    else if (lua_type(L, 1) == LUA_TSTRING)
        lua_pushfstring(L, "'%s'", lua_tostring(L, 1));
    else
        dc_handle_describe(L, 1);
    return 1;
}

typedef struct labelling {
    dc_cell *cell;
    const char *text;
} labelling;

static dc_status label_cell_body(dc_job *j, void *arg)
{
    const labelling *a = arg;
    DC_UNUSED(j);
    dc_cell_label(a->cell, a->text);
    return DC_OK;
}

static int l_label(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_handle *h = dc_handle_check(L, d, 1, "label");
    if (h->kind != DC_HANDLE_CELL)
        return 0;
    if (!lua_isnoneornil(L, 2)) { /* false takes it away */
        labelling a = {h->cell, lua_toboolean(L, 2) ? luaL_checkstring(L, 2) : NULL};
        dc_run(L, d, label_cell_body, &a);
    }
    lua_pushstring(L, h->cell->label);
    return 1;
}

/* number(format, v): string.format of one number, in no locale. */
static int l_number(lua_State *L)
{
    char out[400];
    const char *format = luaL_checkstring(L, 1);
    const size_t n = strlen(format);
    luaL_argcheck(L,
                  n > 1 && n < 8 && format[0] == '%' &&
                      strspn(format + 1, ".0123456789") == n - 2 &&
                      strchr("aefg", format[n - 1]) != NULL,
                  1, "a format of one number");
    dc_number_format(out, sizeof out, format, luaL_checknumber(L, 2));
    lua_pushstring(L, out);
    return 1;
}

/* foreign(text, lines): as it is shown, core/base/shown.h. */
static int l_foreign(lua_State *L)
{
    size_t n;
    luaL_Buffer b;
    const char *text = luaL_checklstring(L, 1, &n);
    const bool lines = lua_toboolean(L, 2);
    const size_t m = dc_shown_put(NULL, 0, text, n, lines);
    dc_shown_put(luaL_buffinitsize(L, &b, m + 1), m + 1, text, n, lines);
    luaL_pushresultsize(&b, m);
    return 1;
}

/* bytes_text(n): "5.0 KiB" */
static int l_bytes_text(lua_State *L)
{
    char text[DC_NUMBER_TEXT];
    const double n = luaL_checknumber(L, 1);
    lua_pushstring(L, dc_number_bytes(n >= 0 && n < 0x1p63 ? (uint64_t)n : 0, text));
    return 1;
}

static int l_fail(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    static const struct {
        const char *name;
        dc_err_id id;
        int error; /* the system's number */
    } rows[] = {
        {"ARG", DC_ERR_ARG, 0},
        {"DTYPE", DC_ERR_DTYPE_TEXT, 0},
        {"DIMS", DC_ERR_DIMS_TEXT, 0},
        {"FIELD", DC_ERR_FIELD_TEXT, 0},
        {"FILE", DC_ERR_FILE_TEXT, 0},
        {"ABSENT", DC_ERR_FILE_TEXT, ENOENT}, /* a file that is not there */
        {"ASSIGNED", DC_ERR_ASSIGNED, 0},
        {"MISFIT", DC_ERR_MISFIT, 0},
        {"FORMAT", DC_ERR_FORMAT_TEXT, 0},
        {"SURPLUS", DC_ERR_ARG_COUNT_TEXT, 0},
        {"CONTROL", DC_ERR_CONTROL, 0},
        {"EXTENT", DC_ERR_EXTENT_TEXT, 0},
        {"NAMES", DC_ERR_NAMES_TEXT, 0},
        {"SHARDING", DC_ERR_SHARDING, 0},
        {"WORLD", DC_ERR_WORLD, 0},
    };
    const char *name = luaL_optstring(L, 1, "ARG");
    size_t which = 0;
    while (which < DC_COUNTOF(rows) && strcmp(rows[which].name, name) != 0)
        which++;
    luaL_argcheck(L, which < DC_COUNTOF(rows), 1, name);
    const char *op = luaL_optstring(L, 2, NULL);
    dc_operand in[DC_APPLY_IN];
    int n = 0;
    for (int i = 5; i < lua_gettop(L) && n < DC_APPLY_IN; i += 2) {
        dc_handle *h = dc_handle_test(L, i + 1);
        if (h != NULL && h->kind != DC_HANDLE_CLOSED)
            in[n++] =
                (dc_operand){.h = h, .role = luaL_checkstring(L, i), .type = *dc_handle_type(h)};
    }
    const dc_fact fact = {.op = op, .error = rows[which].error, .word = {luaL_checkstring(L, 3)}};
    dc_error_fact(L, d, rows[which].id, &fact,
                  &(dc_blame){.in = in, .n = n, .hint = luaL_optstring(L, 4, NULL)});
}

static int l_stop(lua_State *L)
{
    dc_error_sentence(L, dc_dsl_of(L), luaL_checkstring(L, 1));
}

/* options(op, table, "name" ...): refuses what is no table of these names; nil is. */
static int l_options(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *known[16] = {0};
    const char *op = luaL_checkstring(L, 1);
    luaL_argcheck(L, lua_gettop(L) - 2 < (int)DC_COUNTOF(known), 1, "too many options");
    for (int i = 3; i <= lua_gettop(L); i++)
        known[i - 3] = luaL_checkstring(L, i);
    luaL_checkstack(L, 8, "options");
    dc_args_options(L, d, 2, op, known);
    return 0;
}

static int l_unknown(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *name = luaL_tolstring(L, 2, NULL);
    const char *hint = dc_hint_library(name);
    dc_error_fact(L, d, DC_ERR_FIELD,
                  &(dc_fact){.word = {lua_tostring(L, lua_upvalueindex(2)), name}},
                  &(dc_blame){.hint = hint != NULL ? hint : dc_hint_spelling(L, 1, NULL, name)});
}

/* hint(name): what is here what other libraries call so, a method, a function or a class; or nil */
static int l_hint(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1), *hint = dc_hint_field(name);
    hint = hint != NULL ? hint : dc_hint_function(name);
    lua_pushstring(L, hint != NULL ? hint : dc_hint_library(name));
    return 1;
}

/* entries(class): the same, its functions behind entries (stdlib_entry.c); for what no module lists. */
static int l_entries(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    dc_stdlib_enter(L, dc_dsl_of(L), 1, "");
    return 1;
}

/* module(name, table): the table behind entries, in which reading an unknown name is an error. */
static int l_module(lua_State *L)
{
    luaL_checktype(L, 2, LUA_TTABLE);
    const char *name = luaL_checkstring(L, 1), *dot = strchr(name, '.');
    dc_stdlib_enter(L, dc_dsl_of(L), 2, dot != NULL ? dot + 1 : name);
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, l_unknown, 2);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, 2);
    lua_settop(L, 2);
    return 1;
}

/* ---- classes --------------------------------------------------------------------------------- */

static int check_range(lua_State *L, dc_err_id id, int64_t n, const char *role)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 3);
    dc_data_check_index(L, d, 1,
                        (dc_trace_check){.id = id,
                                         .classes = n,
                                         .op = dc_place_name(L, d, "%s", luaL_checkstring(L, 3)),
                                         .role = role});
    return 0;
}

static int l_check_class(lua_State *L)
{
    return check_range(L, DC_ERR_CLASS, dc_size_check_dim(L, 2), "labels");
}

/* Rows of a table: as `take` along the first axis. */
static int l_check_row(lua_State *L)
{
    return check_range(L, DC_ERR_POSITION, dc_size_check_dim(L, 2), "index");
}

static int l_check_length(lua_State *L)
{
    dc_extents *e = dc_dsl_of(L)->rt->extents;
    return check_range(L, DC_ERR_LENGTH, dc_extent_add(e, dc_size_check_dim(L, 2), 1), "lengths");
}

/* ---- files and batches ----------------------------------------------------------------------- */

typedef struct reading {
    dc_dsl *d;
    dc_handle *h;
    const char *path;
} reading;

enum { CHECKED = 1 << 20 }; /* elements of a file that `deepc check` reads */

static dc_status read_idx_body(dc_job *j, void *arg)
{
    const reading *a = arg;
    dc_device *dev = a->d->rt->device;
    dc_type type;
    void *data;
    dc_tensor *t;
    DC_TRY(dc_idx_read_small(j, a->path, a->d->rt->check ? CHECKED : INT64_MAX, &type, &data));
    if (data == NULL) { /* `deepc check` does not wait for images: zeros, as calls give */
        a->d->rt->check_unknown = true;
        DC_TRY(dc_tensor_new(a->d->rt, j, &type, &t));
        dc_handle_fill(a->h, t);
        return dc_storage_clear(t->store, j);
    }
    dc_job_defer(j, dc_xfree, data);
    DC_TRY(dc_tensor_new(a->d->rt, j, &type, &t));
    dc_handle_fill(a->h, t);
    return dev->ops->upload(dev, j, t->store->mem, data, dc_type_bytes(&type));
}

/* For `deepc check`, a file that is missing: what the name says of sets like MNIST, all zero. */
static void stand_in(lua_State *L, dc_dsl *d, const reading *a)
{
    const bool test = strstr(a->path, "t10k") != NULL || strstr(a->path, "test") != NULL;
    dc_type t = {.dtype = DC_U8, .rank = 3, .dim = {test ? 10000 : 60000, 28, 28}};
    if (strstr(a->path, "label") != NULL)
        t.rank = 1;
    d->rt->check_unknown = true;
    dc_handle_upload(L, d, a->h, &t, NULL);
}

static int l_checking(lua_State *L)
{
    lua_pushboolean(L, dc_dsl_of(L)->rt->check);
    return 1;
}

static int l_idx(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    if (lua_type(L, 1) != LUA_TSTRING)
        dc_error_raisef(L, d, DC_ERR_ARG, "idx", "a path is needed, not %s",
                        dc_handle_describe(L, 1));
    dc_collector_step(L, d);
    reading a = {d, NULL, dc_args_text(L, d, 1, "idx")};
    a.h = dc_handle_new(L, d);
    a.h->origin = dc_place_intern(d, "read from %.300s", a.path);
    const dc_run_made made = {.out = &a.h, .nout = 1};
    const dc_status status = dc_run_again(L, d, read_idx_body, &a, &made);
    if (status == DC_E_FILE && d->rt->check) {
        stand_in(L, d, &a);
    } else if (status != DC_OK) {
        dc_error_raise(L, d, &(dc_blame){.op = "idx"});
    }
    return 1;
}

static int l_seed(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)dc_dsl_of(L)->seed);
    return 1;
}

/* Is it a size that is known when the function runs? */
static int l_is_size(lua_State *L)
{
    int64_t dim;
    lua_pushboolean(L, dc_size_test(L, 1, &dim));
    return 1;
}

/* The least value of such a size, and the largest. */
static int l_size_range(lua_State *L)
{
    int64_t dim = 0;
    dc_size_test(L, 1, &dim);
    lua_pushinteger(L, (lua_Integer)dc_extent_lo(dc_dsl_of(L)->rt->extents, dim));
    lua_pushinteger(L, (lua_Integer)dc_extent_bound(dim));
    return 2;
}

/* check_room(count, bound, op): a test at run time that a count is no more than the bound. */
static int l_check_room(lua_State *L)
{
    dc_extents *e = dc_dsl_of(L)->rt->extents;
    return check_range(L, DC_ERR_ROOM, dc_extent_add(e, dc_size_check_dim(L, 2), 1), "count");
}

/* autocast("bf16" | "f16" | false): from now on; returns what it was. */
static int l_autocast(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const uint8_t was = d->autocast;
    const char *name = lua_tostring(L, 1);
    dc_dtype t = DC_BOOL;
    if (name != NULL)
        luaL_argcheck(L, dc_dtype_find(name, strlen(name), &t) && dc_dtype_is_half(t), 1,
                      "a 16-bit float");
    d->autocast = (uint8_t)t;
    if (was == DC_BOOL)
        lua_pushboolean(L, false);
    else
        lua_pushstring(L, dc_dtype_name((dc_dtype)was));
    return 1;
}

/* steady(): how lazy tensors are computed depends on structure and sizes alone from now on. */
static int l_steady(lua_State *L)
{
    dc_dsl_of(L)->rt->first->steady = true;
    return 0;
}

static const dc_binding bindings[] = {
    {"steady", l_steady, DC_ANY, DC_IN_LIBRARY},
    {"autocast", l_autocast, DC_ANY, DC_IN_LIBRARY},
    {"is_size", l_is_size, DC_ANY, DC_IN_LIBRARY},
    {"size_range", l_size_range, DC_ANY, DC_IN_LIBRARY},
    {"layer", l_layer, DC_ANY, DC_IN_LIBRARY},
    {"name_of", l_name_of, DC_ANY, DC_IN_LIBRARY},
    {"kind", l_kind, DC_ANY, DC_IN_LIBRARY},
    {"describe", l_describe, DC_ANY, DC_IN_LIBRARY},
    {"shown", l_shown, DC_ANY, DC_IN_LIBRARY},
    {"label", l_label, DC_ANY, DC_IN_LIBRARY},
    {"number", l_number, DC_ANY, DC_IN_LIBRARY},
    {"fail", l_fail, DC_ANY, DC_IN_LIBRARY},
    {"bytes_text", l_bytes_text, 1, DC_IN_LIBRARY},
    {"foreign", l_foreign, DC_ANY, DC_IN_LIBRARY},
    {"stop", l_stop, DC_ANY, DC_IN_LIBRARY},
    {"check_class", l_check_class, DC_ANY, DC_IN_LIBRARY},
    {"check_row", l_check_row, DC_ANY, DC_IN_LIBRARY},
    {"check_length", l_check_length, DC_ANY, DC_IN_LIBRARY},
    {"check_room", l_check_room, DC_ANY, DC_IN_LIBRARY},
    {"idx", l_idx, DC_ANY, DC_IN_LIBRARY},
    {"seed", l_seed, DC_ANY, DC_IN_LIBRARY},
    {"options", l_options, DC_ANY, DC_IN_LIBRARY},
    {"hint", l_hint, DC_ANY, DC_IN_LIBRARY},
    {"entries", l_entries, DC_ANY, DC_IN_LIBRARY},
    {"module", l_module, DC_ANY, DC_IN_LIBRARY},
    {"checking", l_checking, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_internal_bindings = DC_BINDINGS(bindings);
