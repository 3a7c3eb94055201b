/*
 * What stdlib/files.lua and others need of files: tensors and cells to safetensors; texts and images. What reads tensors is
 * in tensor_files.c.
 *
 *   file_save(path, names, values, keys, texts [, piece, as])   a safetensors file; several of `piece` bytes and an index;
 *                                                           as[name]: what it calls the dtype of u8, "F8_E4M3"
 *   gguf_save(path, names, values, types, count, entries)   a GGUF file; types[i] is "q8_0", a dtype or false: its own.
 *                                 entries: `count` metadata as they stand in the file
 *   file_exists(op, path)         where files may be read; file_exists(op, path, "write"): where they may be written
 *   absent(op, path)              may a script that is only checked make up what is in it: is it not here
 *   file_remove(op, path)         unless it is gone
 *   write_file(op, path, text)
 *   write_png(op, path, width, height, rgb)
 *   append_file(op, path, keep, text)   cuts it to `keep` bytes, unless -1, and appends; its size then
 *   make_folder(op, path)         unless it is there
 *   near(table, name)             "is 'x' meant?", of the table's keys, or nil
 *   note(text)                    a line of the channel `note`
 *   refuse_tracing(name)          raises inside typed functions
 */
#include "core/base/logfile.h"
#include "core/base/outfile.h"
#include "core/runtime/outcome.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/error.h"
#include "dsl/base/hints.h"
#include "dsl/base/interrupt.h"
#include "dsl/base/run.h"
#include "dsl/base/trace.h"
#include "dsl/modules/modules.h"
#include "formats/image.h"
#include "formats/ststore.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- saving ---------------------------------------------------------------------------------- */

typedef struct value {
    dc_cell *cell; /* NULL: a tensor */
    dc_tensor *tensor;
} value;

typedef struct saving {
    dc_dsl *d;
    const char *path;
    dc_st_item *item;
    value *value;
    uint32_t ncommand;
    dc_st_text *text;
    uint32_t ntext;
    int64_t piece;      /* bytes of one file of several; 0: one file */
    dc_gguf_item *gguf; /* NULL: safetensors */
    dc_gguf_entries entries;
} saving;

static dc_status save_body(dc_job *j, void *arg)
{
    saving *a = arg;
    for (uint32_t i = 0; i < a->ncommand; i++)
        DC_TRY(a->value[i].cell != NULL ? dc_cell_check(a->value[i].cell, j, "save", true)
                                        : dc_outcome_settle(a->value[i].tensor->store, j));
    if (a->d->rt->check) /* `deepc check` leaves the world as it is */
        return DC_OK;
    dc_st_memory *mem = DC_NEW_ARRAY(&j->scratch, dc_st_memory, a->ncommand);
    for (uint32_t i = 0; i < a->ncommand; i++) {
        const value *v = &a->value[i];
        const dc_storage *s = v->cell != NULL ? v->cell->store : v->tensor->store;
        mem[i] = (dc_st_memory){s->rt->device, v->cell != NULL ? s->mem : dc_tensor_mem(v->tensor)};
    }
    if (a->gguf != NULL)
        return dc_ststore_write_gguf(j, a->path, a->gguf, mem, a->ncommand, &a->entries);
    if (a->piece > 0)
        return dc_ststore_write_pieces(j, a->path, a->item, mem, a->ncommand, a->text, a->ntext,
                                       a->piece);
    return dc_ststore_write(j, a->path, a->item, mem, a->ncommand, a->text, a->ntext);
}

static void fill_value(lua_State *L, dc_dsl *d, saving *a, uint32_t i)
{
    dc_handle *h = dc_args_list_handle(L, d, 3, i, "save");
    a->item[i] = (dc_st_item){dc_args_list_text(L, d, 2, i, "save"), *dc_handle_type(h), NULL};
    if (lua_istable(L, 7)) { /* who gave the table keeps it, and the text in it */
        lua_getfield(L, 7, a->item[i].name);
        a->item[i].as = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    if (h->kind == DC_HANDLE_CELL)
        a->value[i].cell = h->cell;
    else
        a->value[i].tensor = dc_handle_realize(L, d, h); /* it has been already */
}

/* Arguments 2 and 3. */
static void read_items(lua_State *L, dc_dsl *d, saving *a)
{
    a->ncommand = dc_args_list_length(L, 2);
    luaL_checkstack(L, 8, "save");
    a->item = lua_newuserdatauv(L, a->ncommand * sizeof *a->item + 1, 0);
    a->value = lua_newuserdatauv(L, a->ncommand * sizeof *a->value + 1, 0);
    memset(a->value, 0, a->ncommand * sizeof *a->value);
    for (uint32_t i = 0; i < a->ncommand; i++) {
        dc_handle *h = dc_args_list_handle(L, d, 3, i, "save");
        if (h->kind != DC_HANDLE_CELL)
            dc_handle_realize(L, d, h);
    }
    for (uint32_t i = 0; i < a->ncommand; i++) /* nothing of the script runs from here on */
        fill_value(L, d, a, i);
}

static int l_save(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    saving a = {.d = d, .path = dc_args_text(L, d, 1, "save")};
    a.ntext = dc_args_list_length(L, 4);
    a.piece = luaL_optinteger(L, 6, 0);
    read_items(L, d, &a);
    a.text = lua_newuserdatauv(L, a.ntext * sizeof *a.text + 1, 0);
    for (uint32_t i = 0; i < a.ntext; i++)
        a.text[i] = (dc_st_text){dc_args_list_text(L, d, 4, i, "save"),
                                 dc_args_list_text(L, d, 5, i, "save")};
    dc_run(L, d, save_body, &a);
    return 0;
}

/* The i-th of the list of types; "q8_0", a dtype, or false. */
static dc_gguf_item gguf_item(lua_State *L, const dc_st_item *item, uint32_t i)
{
    dc_gguf_item out = {.name = item->name, .type = item->type};
    out.dtype = (dc_dtype)item->type.dtype;
    lua_rawgeti(L, 4, i + 1);
    const char *type = lua_tostring(L, -1);
    if (type != NULL && !dc_dtype_find(type, strlen(type), &out.dtype)) {
        out.packing = dc_packing_find(type);
        out.dtype = DC_F32;
        luaL_argcheck(L, out.packing != NULL && out.packing->pack != NULL, 4, type);
    }
    lua_pop(L, 1);
    return out;
}

static int l_gguf_save(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    saving a = {.d = d, .path = dc_args_text(L, d, 1, "save")};
    a.entries.count = (uint64_t)luaL_checkinteger(L, 5);
    a.entries.bytes = luaL_checklstring(L, 6, &a.entries.n);
    read_items(L, d, &a);
    a.gguf = lua_newuserdatauv(L, a.ncommand * sizeof *a.gguf + 1, 0);
    for (uint32_t i = 0; i < a.ncommand; i++)
        a.gguf[i] = gguf_item(L, &a.item[i], i);
    dc_run(L, d, save_body, &a);
    return 0;
}

/* ---- other files --------------------------------------------------------------------------------- */

typedef struct existing {
    const char *path;
    dc_folder_use use;
    bool there;
} existing;

static dc_status file_exists_body(dc_job *j, void *arg)
{
    existing *a = arg;
    return dc_path_exists(j, a->use, a->path, &a->there);
}

static int l_exists(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    existing a = {dc_args_text(L, d, 2, op),
                  lua_isnoneornil(L, 3) ? DC_FOLDER_READ : DC_FOLDER_WRITE, false};
    dc_run(L, d, file_exists_body, &a);
    lua_pushboolean(L, a.there);
    return 1;
}

static int l_absent(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    existing a = {dc_args_text(L, d, 2, luaL_checkstring(L, 1)), DC_FOLDER_READ, true};
    if (d->rt->check)
        dc_run(L, d, file_exists_body, &a);
    d->rt->check_unknown |= !a.there;
    lua_pushboolean(L, !a.there);
    return 1;
}

static dc_status remove_file_body(dc_job *j, void *arg)
{
    const existing *a = arg;
    return dc_path_remove(j, a->path);
}

static int l_remove(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    existing a = {.path = dc_args_text(L, d, 2, luaL_checkstring(L, 1))};
    if (!d->rt->check)
        dc_run(L, d, remove_file_body, &a);
    return 0;
}

/* Bytes to a file. */
typedef struct writing {
    dc_rt *rt;
    const char *path, *bytes;
    size_t n;
} writing;

static dc_status write_file_body(dc_job *j, void *arg)
{
    const writing *a = arg;
    if (a->rt->check)
        return DC_OK;
    return dc_outfile_put(j, a->path, a->bytes, a->n);
}

static int l_write_file(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    writing a = {.rt = d->rt, .path = dc_args_text(L, d, 2, op)};
    a.bytes = luaL_checklstring(L, 3, &a.n);
    dc_run(L, d, write_file_body, &a);
    return 0;
}

typedef struct drawing {
    dc_rt *rt;
    const char *path;
    dc_image image;
} drawing;

static dc_status write_png_body(dc_job *j, void *arg)
{
    const drawing *a = arg;
    return a->rt->check ? DC_OK : dc_png_put(j, a->path, &a->image);
}

static int l_write_png(lua_State *L)
{
    size_t n;
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    drawing a = {
        .rt = d->rt, .path = dc_args_text(L, d, 2, op), .image = {.channels = 3, .depth = 8}};
    a.image.width = luaL_checkinteger(L, 3);
    a.image.height = luaL_checkinteger(L, 4);
    a.image.pixel = (void *)(uintptr_t)luaL_checklstring(L, 5, &n); /* read alone */
    luaL_argcheck(L,
                  a.image.width > 0 && a.image.width <= DC_IMAGE_SIDE && a.image.height > 0 &&
                      a.image.height <= DC_IMAGE_SIDE &&
                      n == (size_t)a.image.width * (size_t)a.image.height * 3,
                  5, "pixels");
    dc_run(L, d, write_png_body, &a);
    return 0;
}

/* append_file(op, path, keep, bytes): cuts it to `keep` bytes, unless that is -1, and appends; its size then. */
typedef struct appending {
    dc_rt *rt;
    const char *path, *bytes;
    size_t n;
    int64_t keep, size;
} appending;

static dc_status append_file_body(dc_job *j, void *arg)
{
    appending *a = arg;
    return a->rt->check ? DC_OK : dc_logfile_append(j, a->path, a->keep, a->bytes, a->n, &a->size);
}

static int l_append_file(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    appending a = {.rt = d->rt, .path = dc_args_text(L, d, 2, op)};
    a.keep = luaL_checkinteger(L, 3);
    a.bytes = luaL_checklstring(L, 4, &a.n);
    dc_run(L, d, append_file_body, &a);
    lua_pushinteger(L, (lua_Integer)a.size);
    return 1;
}

static dc_status make_folder_body(dc_job *j, void *arg)
{
    const appending *a = arg;
    return a->rt->check ? DC_OK : dc_logfile_folder(j, a->path);
}

static int l_make_folder(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    appending a = {.rt = d->rt, .path = dc_args_text(L, d, 2, op)};
    dc_run(L, d, make_folder_body, &a);
    return 0;
}

static int l_near(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    return dc_hint_spelling(L, 1, NULL, luaL_checkstring(L, 2)) != NULL;
}

static int l_note(lua_State *L)
{
    dc_logf(&dc_dsl_of(L)->rt->log, DC_CH_NOTE, "%s", luaL_checkstring(L, 1));
    return 0;
}

static int l_refuse_tracing(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_trace *t = dc_trace_here(L, d);
    if (t != NULL)
        dc_error_fact(L, d, DC_ERR_FORBIDDEN, &(dc_fact){.word = {luaL_checkstring(L, 1), t->name}},
                      NULL);
    return 0;
}

static const dc_binding bindings[] = {
    {"file_save", l_save, DC_ANY, DC_IN_LIBRARY},
    {"gguf_save", l_gguf_save, DC_ANY, DC_IN_LIBRARY},
    {"file_exists", l_exists, DC_ANY, DC_IN_LIBRARY},
    {"absent", l_absent, DC_ANY, DC_IN_LIBRARY},
    {"file_remove", l_remove, DC_ANY, DC_IN_LIBRARY},
    {"write_file", l_write_file, DC_ANY, DC_IN_LIBRARY},
    {"write_png", l_write_png, DC_ANY, DC_IN_LIBRARY},
    {"append_file", l_append_file, DC_ANY, DC_IN_LIBRARY},
    {"make_folder", l_make_folder, DC_ANY, DC_IN_LIBRARY},
    {"near", l_near, DC_ANY, DC_IN_LIBRARY},
    {"note", l_note, DC_ANY, DC_IN_LIBRARY},
    {"refuse_tracing", l_refuse_tracing, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_file_bindings = DC_BINDINGS(bindings);
