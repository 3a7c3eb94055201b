/*
 * Tensors and cells from files, for stdlib/files.lua. Names are the file's.
 *
 *   file_open(path)               a file, what stands before its data read and checked
 *   file_format(file)             "safetensors"
 *   file_list(file [, most])      names of tensors in order; a table of metadata, without lists of more than most values
 *   file_about(file, name)        "F32", its type there; its sizes; its bytes or nil; what it is read as: a dtype, nil where
 *                                 it is not read; "q4_1" where it is packed; true where a conversion has to be asked for; in
 *                                 how many parts it lies, 0: as one; why it is not read: "it is sparse"
 *   file_notes(file)              sentences about values that are left out or changed
 *   file_kinds(file)              the types of metadata by key: "u32", "list of text"
 *   file_tree(file, tensors)      the tables of a format that has them, with tensors[name] in their places; nil
 *   file_shape(file, name)        its sizes
 *   file_take(file, names, hows)  a list of tensors, each of its own dtype; "packed": as it lies; of another float dtype
 *   file_put(file, names, cells, turned, cast [, first, last, later])      cells in parts get the part of this rank
 *                                 cell i gets tensor names[i], transposed if turned[i]; all or, where the disk fails on the
 *                                 way, none that can be read (cells that are torn). Of several calls in order, each reads
 *                                 its part of the list. cast: floats are rounded to narrower ones. turned[i] of a packed
 *                                 matrix: "words", and behind it "scales" and, where it has them, "mins", each for a cell.
 *                                 "f8_e4m3", "f8_e5m2": such floats as they lie, for a cell of u8.
 *                                 later: a thread may read them, and closes the file; who reads a cell waits, or fails as the
 *                                 reading did
 *   file_close(file)
 */
#include "core/runtime/filling.h"
#include "core/runtime/outcome.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/error.h"
#include "dsl/base/interrupt.h"
#include "dsl/base/ranks.h"
#include "dsl/base/run.h"
#include "dsl/modules/modules.h"
#include "formats/convert.h"
#include "formats/tensor_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct open_file {
    dc_uhead head;
    dc_tensor_file *file; /* NULL: closed */
    char path[200];       /* the end of it, for messages */
} open_file;

static void drop_file(void *node)
{
    open_file *f = node;
    dc_tensor_file_close(f->file);
    f->file = NULL;
}

const dc_utype dc_file_type = {.name = "deepc.file", .drop = drop_file};

/* ---- opening --------------------------------------------------------------------------------- */

static open_file *check_file(lua_State *L, dc_dsl *d)
{
    open_file *f = dc_udata_check(L, 1, &dc_file_type);
    if (f->file == NULL)
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
    return dc_tensor_file_open(j, a->path, &a->f->file);
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
    drop_file(dc_udata_check(L, 1, &dc_file_type));
    return 0;
}

static int l_format(lua_State *L)
{
    lua_pushstring(L, dc_tensor_file_format(check_file(L, dc_dsl_of(L))->file));
    return 1;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static void push_meta(lua_State *L, dc_dsl *d, const dc_meta *v);

static void push_meta_list(lua_State *L, dc_dsl *d, dc_meta list)
{
    uint32_t seen = 0;
    luaL_checkstack(L, 8, "load");
    lua_createtable(L, list.n < INT32_MAX ? (int)list.n : 0, 0);
    for (lua_Integer i = 1; list.n > 0; i++) {
        const dc_meta v = dc_meta_next(&list);
        dc_interrupt_poll_often(L, d, &seen);
        push_meta(L, d, &v);
        lua_rawseti(L, -2, i);
    }
}

/* An integer beyond Lua's becomes a float. */
static void push_meta(lua_State *L, dc_dsl *d, const dc_meta *v)
{
    switch (v->kind) {
    case DC_META_U8:
    case DC_META_U16:
    case DC_META_U32:
    case DC_META_U64:
        if (v->u > INT64_MAX)
            lua_pushnumber(L, (lua_Number)v->u);
        else
            lua_pushinteger(L, (lua_Integer)v->u);
        return;
    case DC_META_I8:
    case DC_META_I16:
    case DC_META_I32:
    case DC_META_I64:
        lua_pushinteger(L, v->i);
        return;
    case DC_META_BOOL:
        lua_pushboolean(L, v->u != 0);
        return;
    case DC_META_F32:
    case DC_META_F64:
        lua_pushnumber(L, v->f);
        return;
    case DC_META_TEXT:
        lua_pushlstring(L, v->text, (size_t)v->n);
        return;
    case DC_META_LIST:
        push_meta_list(L, d, *v);
        return;
    case DC_META__COUNT:
        break;
    }
    DC_BUG("metadata of kind %d", (int)v->kind);
}

static int l_kinds(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const open_file *f = check_file(L, d);
    uint32_t n;
    const dc_meta_entry *e = dc_tensor_file_metadata(f->file, &n);
    lua_createtable(L, 0, (int)n);
    for (uint32_t i = 0; i < n; i++) {
        dc_interrupt_poll(L, d);
        if (e[i].value.kind == DC_META_LIST)
            lua_pushfstring(L, "list of %s", dc_meta_kind_name(e[i].value.of));
        else
            lua_pushstring(L, dc_meta_kind_name(e[i].value.kind));
        lua_setfield(L, -2, e[i].key);
    }
    return 1;
}

/* Argument 2 has tensors by name; `seen`, at that index, tables that have been made, by their trees. */
static void push_tree(lua_State *L, dc_dsl *d, const dc_tree *t, int seen)
{
    luaL_checkstack(L, 8, "load");
    if (t->kind == DC_TREE_NONE) {
        lua_pushnil(L);
        return;
    }
    if (t->kind == DC_TREE_VALUE) {
        push_meta(L, d, &t->value);
        return;
    }
    if (t->kind == DC_TREE_TENSOR) {
        lua_getfield(L, 2, t->name);
        return;
    }
    if (lua_rawgetp(L, seen, t) != LUA_TNIL)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, seen, t);
    for (uint32_t i = 0; i < t->n; i++) {
        dc_interrupt_poll(L, d);
        push_meta(L, d, &t->key[i]);
        push_tree(L, d, t->item[i], seen);
        lua_rawset(L, -3);
    }
}

static int l_tree(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_tree *t = dc_tensor_file_tree(check_file(L, d)->file);
    luaL_checktype(L, 2, LUA_TTABLE);
    if (t == NULL)
        return 0;
    lua_settop(L, 2);
    lua_newtable(L);
    push_tree(L, d, t, 3);
    return 1;
}

/* ---- what is in it --------------------------------------------------------------------------- */

static int l_list(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const open_file *f = check_file(L, d);
    const lua_Integer most = luaL_optinteger(L, 2, LUA_MAXINTEGER);
    uint32_t n;
    const dc_file_tensor *t = dc_tensor_file_list(f->file, &n);
    lua_createtable(L, (int)n, 0);
    for (uint32_t i = 0; i < n; i++) {
        dc_interrupt_poll(L, d);
        lua_pushstring(L, t[i].name);
        lua_rawseti(L, -2, i + 1);
    }
    const dc_meta_entry *e = dc_tensor_file_metadata(f->file, &n);
    lua_createtable(L, 0, (int)n);
    for (uint32_t i = 0; i < n; i++) {
        dc_interrupt_poll(L, d);
        if (e[i].value.kind == DC_META_LIST && e[i].value.n > (uint64_t)most)
            continue;
        push_meta(L, d, &e[i].value);
        lua_setfield(L, -2, e[i].key);
    }
    return 2;
}

static const dc_file_tensor *find_tensor(lua_State *L, const open_file *f, const char *name)
{
    const dc_file_tensor *t = dc_tensor_file_find(f->file, name);
    if (t == NULL)
        luaL_error(L, "no tensor '%s'", name); /* stdlib/files.lua asks for those of the list */
    return t;
}

static int l_notes(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    uint32_t n;
    const char *const *note = dc_tensor_file_notes(check_file(L, d)->file, &n);
    lua_createtable(L, (int)n, 0);
    for (uint32_t i = 0; i < n; i++) {
        dc_interrupt_poll(L, d);
        lua_pushstring(L, note[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static void push_shape(lua_State *L, const dc_type *t)
{
    lua_createtable(L, t->rank, 0);
    for (int i = 0; i < t->rank; i++) {
        lua_pushinteger(L, t->dim[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

static int l_shape(lua_State *L)
{
    const open_file *f = check_file(L, dc_dsl_of(L));
    push_shape(L, &find_tensor(L, f, luaL_checkstring(L, 2))->type);
    return 1;
}

static int l_about(lua_State *L)
{
    const open_file *f = check_file(L, dc_dsl_of(L));
    const dc_file_tensor *t = find_tensor(L, f, luaL_checkstring(L, 2));
    lua_pushstring(L, t->format);
    push_shape(L, &t->type);
    if (t->bytes >= 0)
        lua_pushinteger(L, t->bytes);
    else
        lua_pushnil(L);
    lua_pushstring(L, t->unread ? NULL : dc_dtype_name((dc_dtype)t->type.dtype));
    lua_pushstring(L, t->packing != NULL ? t->packing->name
                      : t->unread        ? NULL
                                         : dc_packing_codes((dc_dtype)t->type.dtype));
    lua_pushboolean(L, t->asks);
    lua_pushinteger(L, t->parts);
    lua_pushstring(L, t->why);
    return 8;
}

/* ---- tensors --------------------------------------------------------------------------------- */

typedef struct taking {
    dc_dsl *d;
    const open_file *f;
    uint32_t n;
    dc_tensor_want *want;
    dc_type *type; /* of the results */
    dc_handle **h;
    dc_storage **to;
} taking;

static dc_status take_tensors_body(dc_job *j, void *arg)
{
    const taking *a = arg;
    for (uint32_t i = 0; i < a->n; i++)
        DC_TRY(dc_tensor_file_readable(a->f->file, j, a->want[i].tensor));
    for (uint32_t i = 0; i < a->n; i++) {
        dc_tensor *t;
        DC_TRY(dc_tensor_new(a->d->rt, j, &a->type[i], &t));
        dc_handle_fill(a->h[i], t);
        a->to[i] = t->store;
    }
    DC_TRY(
        dc_tensor_store_read(a->f->file, j, a->want, a->to, a->n, (dc_tensor_begin){NULL, NULL}));
    return dc_tensor_file_unchanged(a->f->file, j);
}

/* Bytes of rows, as they lie. */
static dc_type packed_type(const dc_file_tensor *t)
{
    dc_type type = t->type;
    type.dtype = DC_U8;
    if (type.rank > 0)
        type.dim[type.rank - 1] =
            (int64_t)dc_packing_bytes(t->packing, (size_t)type.dim[type.rank - 1]);
    return type;
}

/* Tensor i, as the i-th of the list of ways says: "packed", a float dtype, or false. */
static void want_tensor(lua_State *L, const taking *a, uint32_t i)
{
    lua_rawgeti(L, 2, i + 1);
    lua_rawgeti(L, 3, i + 1);
    const char *how = lua_tostring(L, -1);
    const dc_file_tensor *t = find_tensor(L, a->f, luaL_checkstring(L, -2));
    dc_tensor_want *w = &a->want[i];
    *w = (dc_tensor_want){.tensor = t, .dtype = (dc_dtype)t->type.dtype};
    if (how != NULL && t->packing != NULL && strcmp(how, "packed") == 0)
        w->form = DC_FORM_PACKED;
    if (how != NULL && dc_dtype_is_float(w->dtype))
        dc_dtype_find(how, strlen(how), &w->dtype);
    const bool packed = w->form == DC_FORM_PACKED;
    a->type[i] = packed ? packed_type(t) : t->type;
    a->type[i].dtype = packed ? DC_U8 : (uint8_t)w->dtype;
    lua_pop(L, 2);
}

static int l_take(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_collector_step(L, d);
    taking a = {.d = d, .f = check_file(L, d), .n = dc_args_list_length(L, 2)};
    luaL_checkstack(L, 12, "load");
    a.want = lua_newuserdatauv(L, a.n * sizeof *a.want + 1, 0);
    a.type = lua_newuserdatauv(L, a.n * sizeof *a.type + 1, 0);
    a.h = lua_newuserdatauv(L, a.n * sizeof *a.h + 1, 0);
    a.to = lua_newuserdatauv(L, a.n * sizeof *a.to + 1, 0);
    for (uint32_t i = 0; i < a.n; i++)
        want_tensor(L, &a, i);
    lua_createtable(L, (int)a.n, 0);
    for (uint32_t i = 0; i < a.n; i++) {
        dc_interrupt_poll(L, d);
        a.h[i] = dc_handle_new(L, d);
        a.h[i]->origin = dc_place_intern(d, "'%.60s' of %s", a.want[i].tensor->name, a.f->path);
        lua_rawseti(L, -2, i + 1);
    }
    const dc_run_made made = {.out = a.h, .nout = (int)a.n};
    dc_error_check(L, d, dc_run_again(L, d, take_tensors_body, &a, &made));
    return 1;
}

/* ---- cells ----------------------------------------------------------------------------------- */

typedef struct putting {
    dc_dsl *d;
    open_file *f;
    dc_tensor_want *want;
    dc_cell **cell;
    uint32_t n;
    bool cast;
    bool later;          /* on another thread, where there may be one */
    uint32_t first, end; /* those of this call */
} putting;

/* What can fail without a trace. Cells of earlier calls are done with. */
static dc_status ready_cells(const putting *a, dc_job *j)
{
    for (uint32_t i = a->first; i < a->n; i++) {
        DC_TRY(dc_cell_check(a->cell[i], j, "load", false));
        DC_TRY(dc_tensor_file_readable(a->f->file, j, a->want[i].tensor));
    }
    return dc_tensor_file_unchanged(a->f->file, j);
}

/* From here on cells count as torn until all of them are read. */
static void tear(void *arg, dc_job *j)
{
    const putting *a = arg;
    for (uint32_t i = a->first; i < a->n; i++)
        dc_cell_written(a->cell[i], true);
    if (a->n > 0)
        dc_cell_writing(a->cell[0], j);
}

static dc_status read_cells(putting *a, dc_job *j)
{
    dc_storage **to = DC_NEW_ARRAY(&j->scratch, dc_storage *, a->n + 1);
    for (uint32_t i = a->first; i < a->end; i++)
        to[i] = a->cell[i]->store;
    return dc_tensor_store_read(a->f->file, j, a->want + a->first, to + a->first, a->end - a->first,
                                (dc_tensor_begin){tear, a});
}

/* ---- on another thread ---- */

typedef struct later {
    dc_tensor_file *file;
    uint32_t n;
    dc_tensor_want *want;
    dc_storage **to;
} later;

static dc_status read_later(dc_job *j, void *arg)
{
    const later *l = arg;
    DC_TRY(dc_tensor_store_read(l->file, j, l->want, l->to, l->n, (dc_tensor_begin){NULL, NULL}));
    return dc_tensor_file_unchanged(l->file, j);
}

static void end_later(void *arg)
{
    later *l = arg;
    dc_tensor_file_close(l->file);
    dc_xfree(l->want);
    dc_xfree(l->to);
    dc_xfree(l);
}

/* The file goes along: the userdata is closed. */
static dc_status start_later(const putting *a, dc_job *j)
{
    later *l = dc_xalloc(sizeof *l);
    dc_job_defer(j, end_later, l);
    l->n = a->n;
    l->want = dc_xalloc(a->n * sizeof *l->want + 1);
    l->to = dc_xalloc(a->n * sizeof *l->to + 1);
    memcpy(l->want, a->want, a->n * sizeof *l->want);
    for (uint32_t i = 0; i < a->n; i++)
        l->to[i] = a->cell[i]->store;
    l->file = a->f->file;
    a->f->file = NULL;
    dc_job_keep(j, l);
    return dc_filling_start(a->d->rt, j, a->cell, a->n,
                            &(dc_filler){.body = read_later, .release = end_later, .arg = l});
}

static dc_status put_cells_body(dc_job *j, void *arg)
{
    putting *a = arg;
    bool host = true;
    DC_TRY(ready_cells(a, j));
    if (a->d->rt->check)
        return DC_OK;
    for (uint32_t i = a->first; i < a->n; i++) {
        dc_device *dev = a->cell[i]->rt->device;
        if (dev->ops->finish != NULL && (i == a->first || a->cell[i]->rt != a->cell[i - 1]->rt))
            DC_TRY(dev->ops->finish(dev, j));
        host = host && dev->ops->host;
        DC_TRY(dc_storage_evict(a->cell[i]->store, j));
    }
    if (a->later && host && a->d->rt->opt.threads != 1)
        return start_later(a, j);
    DC_TRY(read_cells(a, j));
    DC_TRY(dc_tensor_file_unchanged(a->f->file, j));
    for (uint32_t i = 0; i < a->n && a->end == a->n; i++) {
        if (a->cell[i]->growth != NULL)
            a->cell[i]->type.dim[0] =
                a->want[i].tensor->type.dim[a->want[i].form == DC_FORM_TURNED];
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

static bool both_floats(const dc_type *a, const dc_type *b)
{
    return dc_dtype_is_float((dc_dtype)a->dtype) && dc_dtype_is_float((dc_dtype)b->dtype);
}

/* What to do where a type differs as files of other programs do; NULL: nothing is known. */
static const char *advice(const dc_type *file, const dc_type *cell)
{
    const bool turned = file->rank == 2 && cell->rank == 2 && file->dim[0] == cell->dim[1] &&
                        file->dim[1] == cell->dim[0] && file->dim[0] != file->dim[1];
    if (turned)
        return "the file has it transposed, as PyTorch keeps matrices: "
               "cell:set(dc.load(path)[name]:transpose())";
    if (!dc_type_same_shape(file, cell))
        return NULL;
    return both_floats(file, cell) ? "{ cast = true } rounds what is narrower here"
                                   : "dc.load(path) gives tensors: cell:set(t:cast(cell.dtype))";
}

/* Can elements of the tensor become those of the cell? Floats of 8 bits are in all others. */
static bool converts(const dc_file_tensor *t, const dc_type *cell, bool cast)
{
    const dc_dtype from = (dc_dtype)t->type.dtype, to = (dc_dtype)cell->dtype;
    return from == to ||
           (both_floats(&t->type, cell) && (cast || t->asks || dc_convert_exact(from, to)));
}

/* Of a cell in parts the part of this rank, with the axes of the file. The sizes of the whole fit. */
static void want_part(lua_State *L, dc_dsl *d, dc_tensor_want *w, const dc_cell *c)
{
    dc_type part;
    int64_t start[DC_MAX_RANK] = {0};
    dc_box *b = &w->box;
    dc_ranks_part(L, d, "load", &c->split->whole, &c->split->s, &part, start);
    w->boxed = true;
    b->rank = part.rank;
    for (int k = 0; k < part.rank; k++) {
        const int from = w->form == DC_FORM_TURNED ? 1 - k : k;
        b->whole[k] = c->split->whole.dim[from];
        b->start[k] = start[from];
        b->dim[k] = part.dim[from];
    }
}

static void check_fit(lua_State *L, dc_dsl *d, const putting *a, uint32_t i)
{
    char in_file[DC_TYPE_TEXT], in_cell[DC_TYPE_TEXT], what[100], text[600];
    const dc_file_tensor *t = a->want[i].tensor;
    const dc_cell *c = a->cell[i];
    dc_type as_set = t->type;
    if (a->want[i].form >= DC_FORM_WORDS) { /* of cells that the library has made for it */
        luaL_argcheck(L,
                      dc_tensor_laid_type(t, a->want[i].form, &as_set) &&
                          dc_type_same_shape(&as_set, &c->type) && as_set.dtype == c->type.dtype,
                      3, "cells for a packed matrix");
        return;
    }
    if (a->want[i].form == DC_FORM_TURNED) {
        as_set.dim[0] = t->type.dim[1];
        as_set.dim[1] = t->type.dim[0];
    }
    if (a->want[i].form == DC_FORM_CODES)
        as_set.dtype = DC_U8;
    dc_type own = *dc_cell_whole(c);
    const dc_growth *g = c->growth;
    if (g != NULL && as_set.rank > 0)
        own.dim[0] = as_set.dim[0];
    const bool converted =
        a->want[i].form == DC_FORM_CODES ? own.dtype == DC_U8 : converts(t, &own, a->cast);
    const bool same = dc_type_same_shape(&as_set, &own) && converted;
    const bool fits = g == NULL || (own.dim[0] >= g->least && own.dim[0] <= g->most);
    if (t->unread || (same && fits))
        return;
    dc_type_print(&t->type, in_file, sizeof in_file);
    dc_type_print(g != NULL ? &g->inside : dc_cell_whole(c), in_cell, sizeof in_cell);
    if (same)
        snprintf(what, sizeof what, "axis 1 has from %" PRId64 " to %" PRId64, g->least, g->most);
    else
        difference(&t->type, &own, what, sizeof what);
    snprintf(text, sizeof text, "%s: tensor '%.60s' is %.80s, the %s %.80s: %s", a->f->path,
             t->name, in_file, c->trainable ? "parameter" : "state", in_cell, what);
    dc_error_fact(L, d, DC_ERR_MISFIT, &(dc_fact){.op = "load", .word = {text}},
                  &(dc_blame){.expected = in_cell,
                              .got = in_file,
                              .hint = advice(&t->type, dc_cell_whole(c))});
}

/* What stands at the top of the stack: "words", "scales", "mins", "f8_e4m3", or whether a matrix is turned. */
static dc_tensor_form form_at(lua_State *L, const dc_file_tensor *t)
{
    static const char *const laid[] = {"words", "scales", "mins"};
    const char *how = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    for (int i = 0; i < 3; i++)
        if (strcmp(how, laid[i]) == 0)
            return (dc_tensor_form)(DC_FORM_WORDS + i);
    const char *codes = dc_packing_codes((dc_dtype)t->type.dtype);
    if (strncmp(how, "f8_", 3) == 0)
        return codes != NULL && strcmp(how, codes) == 0 ? DC_FORM_CODES : DC_FORM_PLAIN;
    return lua_toboolean(L, -1) && t->type.rank == 2 ? DC_FORM_TURNED : DC_FORM_PLAIN;
}

static void fill_want(lua_State *L, dc_dsl *d, putting *a, uint32_t i)
{
    const dc_handle *h = dc_args_list_handle(L, d, 3, i, "load");
    luaL_argcheck(L, h->kind == DC_HANDLE_CELL, 3, "cells are needed");
    a->cell[i] = h->cell;
    a->want[i] = (dc_tensor_want){
        .tensor = find_tensor(L, a->f, dc_args_list_text(L, d, 2, i, "load")),
        .dtype = (dc_dtype)h->cell->type.dtype,
    };
    if (lua_istable(L, 4))
        lua_rawgeti(L, 4, i + 1);
    else
        lua_pushnil(L);
    a->want[i].form = form_at(L, a->want[i].tensor);
    lua_pop(L, 1);
    check_fit(L, d, a, i);
    if (h->cell->split != NULL)
        want_part(L, d, &a->want[i], h->cell);
}

static int l_put(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    putting a = {.d = d, .f = check_file(L, d), .n = dc_args_list_length(L, 2)};
    a.cast = lua_toboolean(L, 5);
    a.first = (uint32_t)luaL_optinteger(L, 6, 1) - 1;
    a.end = (uint32_t)luaL_optinteger(L, 7, a.n);
    a.later = lua_toboolean(L, 8) && a.first == 0 && a.end == a.n;
    luaL_argcheck(L, a.first <= a.end && a.end <= a.n, 6, "a part of the list");
    luaL_checkstack(L, 8, "load");
    a.want = lua_newuserdatauv(L, a.n * sizeof *a.want + 1, 0);
    a.cell = lua_newuserdatauv(L, a.n * sizeof *a.cell + 1, 0);
    for (uint32_t i = 0; i < a.n; i++)
        fill_want(L, d, &a, i);
    luaL_argcheck(L, dc_tensor_together(a.want + a.first, a.end - a.first), 4,
                  "words, scales and mins of a matrix together");
    dc_run(L, d, put_cells_body, &a);
    return 0;
}

static const dc_binding of_file[] = {
    {"__close", l_close, DC_ANY, DC_IN_META},
};

const dc_bindings dc_file_methods = DC_BINDINGS(of_file);

static const dc_binding bindings[] = {
    {"file_open", l_open, DC_ANY, DC_IN_LIBRARY},
    {"file_format", l_format, DC_ANY, DC_IN_LIBRARY},
    {"file_list", l_list, DC_ANY, DC_IN_LIBRARY},
    {"file_about", l_about, DC_ANY, DC_IN_LIBRARY},
    {"file_notes", l_notes, DC_ANY, DC_IN_LIBRARY},
    {"file_kinds", l_kinds, DC_ANY, DC_IN_LIBRARY},
    {"file_tree", l_tree, DC_ANY, DC_IN_LIBRARY},
    {"file_shape", l_shape, DC_ANY, DC_IN_LIBRARY},
    {"file_take", l_take, DC_ANY, DC_IN_LIBRARY},
    {"file_put", l_put, DC_ANY, DC_IN_LIBRARY},
    {"file_close", l_close, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_tensor_file_bindings = DC_BINDINGS(bindings);
