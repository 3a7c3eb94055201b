/*
 * What stdlib/files.lua needs of files: tensors and cells to and from safetensors.
 *
 *   file_save(path, names, values, keys, texts)
 *   file_open(path)               a file, its header read and checked
 *   file_list(file)               names of tensors in order; a table of metadata; dtypes that are not read,
 *                                 by the names of their tensors
 *   file_shape(file, name)        its sizes
 *   file_take(file, name)         a tensor
 *   file_put(file, names, cells [, turned])
 *                                 cell i gets tensor names[i], transposed if turned[i]; all or, where the
 *                                 disk fails on the way, none that can be read (cells that are torn)
 *   file_close(file)
 *   file_exists(op, path)
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
#include "dsl/internals.h"
#include "formats/png.h"
#include "formats/ststore.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const dc_utype dc_file_type = {"deepc.file"};

typedef struct open_file {
    dc_uhead head;
    dc_st_file *st; /* NULL: closed */
    char path[200]; /* the end of it, for messages */
} open_file;

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
} saving;

static dc_status save_body(dc_job *j, void *arg)
{
    saving *a = arg;
    for (uint32_t i = 0; i < a->ncommand; i++)
        DC_TRY(a->value[i].cell != NULL ? dc_cell_check(a->value[i].cell, j, "save", true)
                                        : dc_outcome_settle(a->value[i].tensor->store, j));
    if (a->d->rt->check) /* `deepc check` leaves the world as it is */
        return DC_OK;
    const void **mem = DC_NEW_ARRAY(&j->scratch, const void *, a->ncommand);
    for (uint32_t i = 0; i < a->ncommand; i++)
        mem[i] = a->value[i].cell != NULL ? a->value[i].cell->store->mem
                                          : dc_tensor_mem(a->value[i].tensor);
    return dc_ststore_write(j, a->d->rt->device, a->path, a->item, mem, a->ncommand, a->text,
                            a->ntext);
}

static uint32_t length_of(lua_State *L, int idx)
{
    luaL_checktype(L, idx, LUA_TTABLE);
    return (uint32_t)lua_rawlen(L, idx);
}

/* The string t[i] of a list; the list keeps it. One with a zero byte is an error. */
static const char *text_at(lua_State *L, dc_dsl *d, int list, uint32_t i, const char *op)
{
    lua_rawgeti(L, list, i + 1);
    const char *text = dc_args_text(L, d, -1, op);
    lua_pop(L, 1);
    return text;
}

static dc_handle *handle_at(lua_State *L, dc_dsl *d, int list, uint32_t i, const char *op)
{
    lua_rawgeti(L, list, i + 1);
    dc_handle *h = dc_handle_check(L, d, -1, op);
    lua_pop(L, 1);
    return h;
}

static void fill_value(lua_State *L, dc_dsl *d, saving *a, uint32_t i)
{
    dc_handle *h = handle_at(L, d, 3, i, "save");
    a->item[i] = (dc_st_item){text_at(L, d, 2, i, "save"), *dc_handle_type(h)};
    if (h->kind == DC_HANDLE_CELL)
        a->value[i].cell = h->cell;
    else
        a->value[i].tensor = dc_handle_realize(L, d, h); /* it has been already */
}

static int l_save(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    saving a = {.d = d, .path = dc_args_text(L, d, 1, "save")};
    a.ncommand = length_of(L, 2);
    a.ntext = length_of(L, 4);
    luaL_checkstack(L, 8, "save");
    a.item = lua_newuserdatauv(L, a.ncommand * sizeof *a.item + 1, 0);
    a.value = lua_newuserdatauv(L, a.ncommand * sizeof *a.value + 1, 0);
    a.text = lua_newuserdatauv(L, a.ntext * sizeof *a.text + 1, 0);
    memset(a.value, 0, a.ncommand * sizeof *a.value);
    for (uint32_t i = 0; i < a.ncommand; i++) {
        dc_handle *h = handle_at(L, d, 3, i, "save");
        if (h->kind != DC_HANDLE_CELL)
            dc_handle_realize(L, d, h);
    }
    for (uint32_t i = 0; i < a.ncommand; i++) /* nothing of the script runs from here on */
        fill_value(L, d, &a, i);
    for (uint32_t i = 0; i < a.ntext; i++)
        a.text[i] = (dc_st_text){text_at(L, d, 4, i, "save"), text_at(L, d, 5, i, "save")};
    dc_run(L, d, save_body, &a);
    return 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static open_file *check_file(lua_State *L, dc_dsl *d)
{
    open_file *f = dc_udata_check(L, 1, &dc_file_type);
    if (f->st == NULL)
        dc_error_raisef(L, d, DC_ERR_CLOSED, "load", "the file is closed");
    return f;
}

typedef struct opening {
    const char *path;
    open_file *f;
} opening;

static dc_status open_file_body(dc_job *j, void *arg)
{
    const opening *a = arg;
    return dc_safetensors_open(j, a->path, &a->f->st);
}

/* nil for `deepc check` where there is no such file: it may be one that the script makes. */
static int l_open(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    opening a = {dc_args_text(L, d, 1, "load"), NULL};
    a.f = dc_udata_new(L, &dc_file_type, sizeof *a.f, 0);
    const size_t n = strlen(a.path), most = sizeof a.f->path - 1;
    snprintf(a.f->path, sizeof a.f->path, "%s", n > most ? a.path + n - most : a.path);
    const dc_status status = dc_run_once(d, open_file_body, &a);
    if (status == DC_E_FILE && d->rt->job.err.id == DC_ERR_FILE && d->rt->check) {
        d->rt->check_unknown = true;
        return 0;
    }
    dc_error_check(L, d, status);
    return 1;
}

static int l_close(lua_State *L)
{
    open_file *f = dc_udata_check(L, 1, &dc_file_type);
    dc_safetensors_close(f->st);
    f->st = NULL;
    return 0;
}

static int l_list(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const open_file *f = check_file(L, d);
    uint32_t n;
    const dc_st_tensor *t = dc_safetensors_tensors(f->st, &n);
    lua_createtable(L, (int)n, 0);
    for (uint32_t i = 0; i < n; i++) {
        dc_interrupt_poll(L, d);
        lua_pushstring(L, t[i].name);
        lua_rawseti(L, -2, i + 1);
    }
    const dc_st_text *text = dc_safetensors_texts(f->st, &n);
    lua_createtable(L, 0, (int)n);
    for (uint32_t i = 0; i < n; i++) {
        dc_interrupt_poll(L, d);
        lua_pushstring(L, text[i].value);
        lua_setfield(L, -2, text[i].key);
    }
    t = dc_safetensors_tensors(f->st, &n);
    lua_newtable(L);
    for (uint32_t i = 0; i < n; i++)
        if (t[i].unread != NULL) {
            lua_pushstring(L, t[i].unread);
            lua_setfield(L, -2, t[i].name);
        }
    return 3;
}

static const dc_st_tensor *find_tensor(lua_State *L, const open_file *f, const char *name)
{
    const dc_st_tensor *t = dc_safetensors_find(f->st, name);
    if (t == NULL)
        luaL_error(L, "no tensor '%s'", name); /* stdlib/files.lua asks for those of the list */
    return t;
}

static int l_shape(lua_State *L)
{
    const open_file *f = check_file(L, dc_dsl_of(L));
    const dc_type *t = &find_tensor(L, f, luaL_checkstring(L, 2))->type;
    lua_createtable(L, t->rank, 0);
    for (int i = 0; i < t->rank; i++) {
        lua_pushinteger(L, t->dim[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* ---- tensors --------------------------------------------------------------------------------- */

typedef struct taking {
    dc_dsl *d;
    const open_file *f;
    const dc_st_tensor *t;
    dc_handle *h;
} taking;

static dc_status take_tensor_body(dc_job *j, void *arg)
{
    const taking *a = arg;
    dc_tensor *t;
    DC_TRY(dc_safetensors_readable(a->f->st, j, a->t));
    DC_TRY(dc_tensor_new(a->d->rt, j, &a->t->type, &t));
    dc_handle_fill(a->h, t);
    DC_TRY(dc_ststore_read(a->f->st, j, a->t, t->store));
    return dc_safetensors_unchanged(a->f->st, j);
}

static int l_take(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_collector_step(L, d);
    taking a = {.d = d, .f = check_file(L, d)};
    a.t = find_tensor(L, a.f, luaL_checkstring(L, 2));
    a.h = dc_handle_new(L, d);
    a.h->origin = dc_place_intern(d, "'%.60s' of %s", a.t->name, a.f->path);
    const dc_run_made made = {.out = &a.h, .nout = 1};
    dc_error_check(L, d, dc_run_again(L, d, take_tensor_body, &a, &made));
    return 1;
}

/* ---- cells ----------------------------------------------------------------------------------- */

typedef struct putting {
    dc_dsl *d;
    const open_file *f;
    const dc_st_tensor **tensor;
    dc_cell **cell;
    bool *turned;
    uint32_t n;
} putting;

/* What can fail without a trace comes first; then cells count as torn until all of them are read. */
static dc_status put_cells_body(dc_job *j, void *arg)
{
    const putting *a = arg;
    dc_device *dev = a->d->rt->device;
    for (uint32_t i = 0; i < a->n; i++) {
        DC_TRY(dc_cell_check(a->cell[i], j, "load", false));
        DC_TRY(dc_safetensors_readable(a->f->st, j, a->tensor[i]));
    }
    DC_TRY(dc_safetensors_unchanged(a->f->st, j));
    if (a->d->rt->check)
        return DC_OK;
    if (dev->ops->finish != NULL)
        DC_TRY(dev->ops->finish(dev, j));
    for (uint32_t i = 0; i < a->n; i++)
        DC_TRY(dc_storage_evict(a->cell[i]->store, j));
    for (uint32_t i = 0; i < a->n; i++)
        dc_cell_written(a->cell[i], true);
    if (a->n > 0)
        dc_cell_writing(a->cell[0], j);
    for (uint32_t i = 0; i < a->n; i++)
        DC_TRY((a->turned[i] ? dc_ststore_read_turned : dc_ststore_read)(a->f->st, j, a->tensor[i],
                                                                         a->cell[i]->store));
    DC_TRY(dc_safetensors_unchanged(a->f->st, j));
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->cell[i]->growth != NULL)
            a->cell[i]->type.dim[0] = a->tensor[i]->type.dim[a->turned[i] ? 1 : 0];
        dc_cell_written(a->cell[i], false);
    }
    return DC_OK;
}

/* "axis 1: 784 against 700", the first thing that differs. */
static void difference(const dc_type *file, const dc_type *cell, char *out, size_t size)
{
    if (file->rank != cell->rank) {
        snprintf(out, size, "%d axes against %d", file->rank, cell->rank);
        return;
    }
    for (int i = 0; i < file->rank; i++)
        if (file->dim[i] != cell->dim[i]) {
            snprintf(out, size, "axis %d: %" PRId64 " against %" PRId64, i + 1, file->dim[i],
                     cell->dim[i]);
            return;
        }
    snprintf(out, size, "%s against %s", dc_dtype_name((dc_dtype)file->dtype),
             dc_dtype_name((dc_dtype)cell->dtype));
}

/* What to do where a type differs as files of other programs do; NULL: nothing is known. */
static const char *advice(const dc_type *file, const dc_type *cell)
{
    const bool turned = file->rank == 2 && cell->rank == 2 && file->dim[0] == cell->dim[1] &&
                        file->dim[1] == cell->dim[0] && file->dim[0] != file->dim[1];
    if (turned)
        return "the file has it transposed, as PyTorch keeps matrices: "
               "cell:set(dc.load(path)[name]:transpose())";
    return dc_type_same_shape(file, cell)
               ? "dc.load(path) gives tensors: cell:set(t:cast(cell.dtype))"
               : NULL;
}

static void check_fit(lua_State *L, dc_dsl *d, const open_file *f, const dc_st_tensor *t,
                      const dc_cell *c, bool turned)
{
    char in_file[DC_TYPE_TEXT], in_cell[DC_TYPE_TEXT], what[100], text[600];
    dc_type as_set = t->type;
    if (turned) {
        as_set.dim[0] = t->type.dim[1];
        as_set.dim[1] = t->type.dim[0];
    }
    dc_type own = c->type;
    const dc_growth *g = c->growth;
    if (g != NULL && as_set.rank > 0)
        own.dim[0] = as_set.dim[0];
    const bool same = dc_type_same(&as_set, &own);
    const bool fits = g == NULL || (own.dim[0] >= g->least && own.dim[0] <= g->most);
    if (t->unread != NULL || (same && fits))
        return;
    dc_type_print(&t->type, in_file, sizeof in_file);
    dc_type_print(g != NULL ? &g->inside : &c->type, in_cell, sizeof in_cell);
    if (same)
        snprintf(what, sizeof what, "axis 1 has from %" PRId64 " to %" PRId64, g->least, g->most);
    else
        difference(&t->type, &own, what, sizeof what);
    snprintf(text, sizeof text, "%s: tensor '%.60s' is %.80s, the %s %.80s: %s", f->path, t->name,
             in_file, c->trainable ? "parameter" : "state", in_cell, what);
    dc_error_fact(
        L, d, DC_ERR_MISFIT, &(dc_fact){.op = "load", .word = {text}},
        &(dc_blame){.expected = in_cell, .got = in_file, .hint = advice(&t->type, &c->type)});
}

static int l_put(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    putting a = {.d = d, .f = check_file(L, d), .n = length_of(L, 2)};
    luaL_checkstack(L, 8, "load");
    a.tensor = lua_newuserdatauv(L, a.n * sizeof(dc_st_tensor *) + 1, 0);
    a.cell = lua_newuserdatauv(L, a.n * sizeof *a.cell + 1, 0);
    a.turned = lua_newuserdatauv(L, a.n * sizeof *a.turned + 1, 0);
    for (uint32_t i = 0; i < a.n; i++) {
        const dc_handle *h = handle_at(L, d, 3, i, "load");
        luaL_argcheck(L, h->kind == DC_HANDLE_CELL, 3, "cells are needed");
        a.tensor[i] = find_tensor(L, a.f, text_at(L, d, 2, i, "load"));
        a.cell[i] = h->cell;
        if (lua_istable(L, 4))
            lua_rawgeti(L, 4, i + 1);
        else
            lua_pushnil(L);
        a.turned[i] = lua_toboolean(L, -1) && a.tensor[i]->type.rank == 2;
        lua_pop(L, 1);
        check_fit(L, d, a.f, a.tensor[i], h->cell, a.turned[i]);
    }
    dc_run(L, d, put_cells_body, &a);
    return 0;
}

typedef struct existing {
    const char *path;
    bool there;
} existing;

static dc_status file_exists_body(dc_job *j, void *arg)
{
    existing *a = arg;
    return dc_path_exists(j, a->path, &a->there);
}

static int l_exists(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    existing a = {dc_args_text(L, d, 2, op), false};
    dc_run(L, d, file_exists_body, &a);
    lua_pushboolean(L, a.there);
    return 1;
}

/* Bytes, or an image of bytes, to a file. */
typedef struct writing {
    dc_rt *rt;
    const char *path, *bytes;
    size_t n;
    uint32_t width, height; /* of an image; else 0 */
} writing;

static dc_status write_file_body(dc_job *j, void *arg)
{
    const writing *a = arg;
    if (a->rt->check)
        return DC_OK;
    if (a->width > 0)
        return dc_png_write(j, a->path, a->width, a->height, (const unsigned char *)a->bytes);
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

static int l_write_png(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    writing a = {.rt = d->rt, .path = dc_args_text(L, d, 2, op)};
    a.width = (uint32_t)luaL_checkinteger(L, 3);
    a.height = (uint32_t)luaL_checkinteger(L, 4);
    a.bytes = luaL_checklstring(L, 5, &a.n);
    luaL_argcheck(L, a.width > 0 && a.n == (size_t)a.width * a.height * 3, 5, "pixels");
    dc_run(L, d, write_file_body, &a);
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

static const dc_binding of_file[] = {
    {"__gc", l_close, DC_ANY, DC_IN_META},
    {"__close", l_close, DC_ANY, DC_IN_META},
};

const dc_bindings dc_file_methods = DC_BINDINGS(of_file);

static const dc_binding bindings[] = {
    {"file_save", l_save, DC_ANY, DC_IN_LIBRARY},
    {"file_open", l_open, DC_ANY, DC_IN_LIBRARY},
    {"file_list", l_list, DC_ANY, DC_IN_LIBRARY},
    {"file_shape", l_shape, DC_ANY, DC_IN_LIBRARY},
    {"file_take", l_take, DC_ANY, DC_IN_LIBRARY},
    {"file_put", l_put, DC_ANY, DC_IN_LIBRARY},
    {"file_close", l_close, DC_ANY, DC_IN_LIBRARY},
    {"file_exists", l_exists, DC_ANY, DC_IN_LIBRARY},
    {"write_file", l_write_file, DC_ANY, DC_IN_LIBRARY},
    {"write_png", l_write_png, DC_ANY, DC_IN_LIBRARY},
    {"append_file", l_append_file, DC_ANY, DC_IN_LIBRARY},
    {"make_folder", l_make_folder, DC_ANY, DC_IN_LIBRARY},
    {"near", l_near, DC_ANY, DC_IN_LIBRARY},
    {"note", l_note, DC_ANY, DC_IN_LIBRARY},
    {"refuse_tracing", l_refuse_tracing, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_file_bindings = DC_BINDINGS(bindings);
