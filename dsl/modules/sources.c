/*
 * Rows that do not lie in a tensor (formats/rows.h), for stdlib/data:
 *
 *   rows_npy(path)   rows_safetensors(path, name)   rows_raw(path, type, at)
 *   rows_ragged(values, lengths, pad, bounds)   lengths and bounds: lists
 *   rows_type(rows)                  a dtype, a list of sizes
 *   rows_lengths(rows)               of sounds, a list; nil for other rows
 *   rows_get(rows, i)                row i, from 1, as a tensor
 */
#include "core/base/bits.h"
#include "dsl/base/args.h"
#include "dsl/base/error.h"
#include "dsl/base/reading.h"
#include "dsl/base/run.h"
#include "dsl/modules/orders.h"
#include "formats/rows.h"

#include <string.h>

static void drop_rows(void *node)
{
    dc_rows_holder *h = node;
    dc_rows_free(h->rows);
    h->rows = NULL;
}

const dc_utype dc_rows_type = {.name = "deepc.rows", .drop = drop_rows};

typedef struct opening {
    dc_rows_holder *holder;
    const char *path, *name;
    dc_type type;
    int64_t at;
    const void *values;
    const int64_t *length, *bound;
    int64_t n, nbound;
    uint64_t pad;
} opening;

static int open_with(lua_State *L, dc_dsl *d, dc_run_body *body, opening *a, const char *op)
{
    a->holder = dc_udata_new(L, &dc_rows_type, sizeof *a->holder, 0);
    if (dc_run_once(d, body, a) != DC_OK)
        dc_error_raise(L, d, &(dc_blame){.op = op});
    return 1;
}

static dc_status npy_body(dc_job *j, void *arg)
{
    const opening *a = arg;
    return dc_rows_npy(j, a->path, &a->holder->rows);
}

static dc_status safetensors_body(dc_job *j, void *arg)
{
    const opening *a = arg;
    return dc_rows_safetensors(j, a->path, a->name, &a->holder->rows);
}

static dc_status raw_body(dc_job *j, void *arg)
{
    const opening *a = arg;
    return dc_rows_raw(j, a->path, &a->type, a->at, &a->holder->rows);
}

static dc_status ragged_body(dc_job *j, void *arg)
{
    const opening *a = arg;
    return dc_rows_ragged(j, &a->type, a->values, a->length, a->n, a->pad, a->bound,
                          (size_t)a->nbound, &a->holder->rows);
}

static int l_rows_npy(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    opening a = {.path = dc_args_text(L, d, 1, "rows")};
    return open_with(L, d, npy_body, &a, "rows");
}

static int l_rows_safetensors(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    opening a = {.path = dc_args_text(L, d, 1, "rows"), .name = dc_args_text(L, d, 2, "rows")};
    return open_with(L, d, safetensors_body, &a, "rows");
}

static int l_rows_raw(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    opening a = {.path = dc_args_text(L, d, 1, "rows"), .at = luaL_checkinteger(L, 3)};
    dc_args_type(L, d, 2, "rows", &a.type);
    return open_with(L, d, raw_body, &a, "rows");
}

/* The integers of the list at idx; pushes their memory. */
static const int64_t *integers(lua_State *L, int idx, int64_t *n)
{
    luaL_checktype(L, idx, LUA_TTABLE);
    *n = (int64_t)lua_rawlen(L, idx);
    int64_t *at = lua_newuserdatauv(L, (size_t)*n * sizeof *at + 1, 0);
    for (int64_t i = 0; i < *n; i++) {
        lua_rawgeti(L, idx, i + 1);
        at[i] = luaL_checkinteger(L, -1);
        luaL_argcheck(L, at[i] >= 0, idx, "lengths");
        lua_pop(L, 1);
    }
    return at;
}

static int l_rows_ragged(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_handle *h = dc_handle_check(L, d, 1, "ragged");
    opening a = {.type = *dc_handle_type(h)};
    luaL_argcheck(L, a.type.rank > 0 && a.type.rank < DC_MAX_RANK, 1, "axes");
    lua_settop(L, 4);
    a.pad = dc_args_element(L, d, 3, "ragged", (dc_dtype)a.type.dtype);
    a.length = integers(L, 2, &a.n);
    a.bound = integers(L, 4, &a.nbound);
    a.values = dc_handle_read(L, d, h, "ragged");
    return open_with(L, d, ragged_body, &a, "ragged");
}

static const dc_rows *rows_at(lua_State *L)
{
    const dc_rows_holder *h = dc_udata_check(L, 1, &dc_rows_type);
    luaL_argcheck(L, h->rows != NULL, 1, "closed");
    return h->rows;
}

static int l_rows_type(lua_State *L)
{
    const dc_type *t = &rows_at(L)->type;
    lua_pushstring(L, dc_dtype_name((dc_dtype)t->dtype));
    lua_createtable(L, t->rank, 0);
    for (int i = 0; i < t->rank; i++) {
        lua_pushinteger(L, t->dim[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushboolean(L, rows_at(L)->length != NULL);
    return 3;
}

typedef struct taking {
    const dc_rows *rows;
    int64_t i;
    dc_reading r;
} taking;

static dc_status get_body(dc_job *j, void *arg)
{
    taking *a = arg;
    const dc_rows *r = a->rows;
    const dc_room room = dc_reading_room(&a->r);
    dc_type type = dc_type_make((dc_dtype)r->type.dtype, r->type.rank - 1, r->type.dim + 1);
    void *at;
    if (r->length != NULL)
        type.dim[0] = r->length[a->i];
    DC_TRY(room.make(j, room.ctx, &type, &at));
    DC_TRY(r->get(r, j, a->i, 1, r->length != NULL ? r->length[a->i] : 0, at));
    return dc_reading_end(&a->r, j);
}

static int l_rows_get(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    taking a = {.rows = rows_at(L), .i = luaL_checkinteger(L, 2) - 1};
    luaL_argcheck(L, a.i >= 0 && a.i < a.rows->type.dim[0], 2, "no such row");
    a.r = dc_reading_new(L, d, "a data set");
    const dc_run_made made = {.out = &a.r.h, .nout = 1};
    if (dc_run_again(L, d, get_body, &a, &made) != DC_OK)
        dc_error_raise(L, d, &(dc_blame){.op = "row"});
    return 1;
}

typedef struct measuring {
    const dc_rows *rows;
    int64_t *length;
} measuring;

static dc_status lengths_body(dc_job *j, void *arg)
{
    const measuring *a = arg;
    return dc_rows_sound_lengths(j, a->rows, a->length);
}

static int l_rows_lengths(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    measuring a = {.rows = rows_at(L)};
    const int64_t n = a.rows->type.dim[0];
    if (!dc_rows_are_sounds(a.rows))
        return 0;
    a.length = lua_newuserdatauv(L, (size_t)n * sizeof *a.length + 1, 0);
    dc_error_check_of(L, d, dc_run_once(d, lengths_body, &a), "lengths");
    lua_createtable(L, (int)n, 0);
    for (int64_t i = 0; i < n; i++) {
        lua_pushinteger(L, a.length[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static const dc_binding bindings[] = {
    {"rows_npy", l_rows_npy, DC_ANY, DC_IN_LIBRARY},
    {"rows_safetensors", l_rows_safetensors, DC_ANY, DC_IN_LIBRARY},
    {"rows_raw", l_rows_raw, DC_ANY, DC_IN_LIBRARY},
    {"rows_ragged", l_rows_ragged, DC_ANY, DC_IN_LIBRARY},
    {"rows_type", l_rows_type, DC_ANY, DC_IN_LIBRARY},
    {"rows_lengths", l_rows_lengths, DC_ANY, DC_IN_LIBRARY},
    {"rows_get", l_rows_get, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_source_bindings = DC_BINDINGS(bindings);
