/*
 * Files of arrays and of tables for stdlib/data: NumPy's, and tables as text.
 *
 *   npy_read(path)            a tensor; how many bytes follow it
 *   npy_write(path, x)
 *   npz_open(path)            an archive
 *   npz_names(archive)        a list of names
 *   npz_take(archive, i)      tensor i of the list, from 1
 *   npz_unread(archive, i)    why it is not read; or nil
 *   npz_write(path, names, tensors, compress)
 *   csv_open(op, path, options)   a table; options: separator, quote, comment, header, skip, rows, missing (a list)
 *   csv_first(table)          fields of the first record
 *   csv_parse(table, kinds, fill, matrix)
 *                             kinds[i]: false (left out), "find", "text" or a dtype; fill[i]: a number or nil
 *                             -> a list of tensors, lists of texts and false; or the matrix. With the list another one: of
 *                             each column the whole numbers that f64, which was found for it, does not hold
 *   csv_write(path, names, columns, separator, header)
 *                             columns: tensors of one axis, or lists of texts
 */
#include "core/base/bits.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/error.h"
#include "dsl/base/interrupt.h"
#include "dsl/base/reading.h"
#include "dsl/base/run.h"
#include "dsl/modules/modules.h"
#include "formats/csv.h"
#include "formats/npy.h"

#include <string.h>

typedef struct archive {
    dc_uhead head;
    dc_npz *z; /* NULL: closed */
} archive;

typedef struct table {
    dc_uhead head;
    dc_csv *c; /* NULL: closed */
} table;

static void drop_archive(void *node)
{
    archive *a = node;
    dc_npz_close(a->z);
    a->z = NULL;
}

static void drop_table(void *node)
{
    table *t = node;
    dc_csv_close(t->c);
    t->c = NULL;
}

const dc_utype dc_npz_type = {.name = "deepc.npz", .drop = drop_archive};
const dc_utype dc_csv_type = {.name = "deepc.csv", .drop = drop_table};

/* ---- arrays ----------------------------------------------------------------------------------- */

typedef struct taking {
    dc_reading r;
    const char *path;
    dc_npz *z;
    uint32_t i;
    int64_t behind;  /* bytes that follow the array */
    const char *why; /* it is not read */
} taking;

static dc_status read_body(dc_job *j, void *arg)
{
    taking *a = arg;
    const dc_room room = dc_reading_room(&a->r);
    DC_TRY(a->z != NULL ? dc_npz_read(a->z, j, a->i, &room)
                        : dc_npy_read(j, a->path, &room, &a->behind));
    return dc_reading_end(&a->r, j);
}

static int l_npy_read(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    taking a = {.path = dc_args_text(L, d, 1, "read_npy")};
    a.r = dc_reading_new(L, d, a.path);
    const dc_run_made made = {.out = &a.r.h, .nout = 1};
    dc_error_check_of(L, d, dc_run_again(L, d, read_body, &a, &made), "read_npy");
    lua_pushinteger(L, a.behind);
    return 2;
}

typedef struct opening {
    const char *path;
    archive *z;
    table *t;
    dc_csv_options csv;
} opening;

static dc_status open_npz_body(dc_job *j, void *arg)
{
    const opening *a = arg;
    return dc_npz_open(j, a->path, &a->z->z);
}

static int l_npz_open(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    opening a = {.path = dc_args_text(L, d, 1, "read_npz")};
    a.z = dc_udata_new(L, &dc_npz_type, sizeof *a.z, 0);
    dc_error_check_of(L, d, dc_run_once(d, open_npz_body, &a), "read_npz");
    return 1;
}

static archive *archive_at(lua_State *L)
{
    archive *a = dc_udata_check(L, 1, &dc_npz_type);
    luaL_argcheck(L, a->z != NULL, 1, "closed");
    return a;
}

static int l_npz_names(lua_State *L)
{
    const archive *a = archive_at(L);
    lua_newtable(L);
    for (uint32_t i = 0; i < dc_npz_count(a->z); i++) {
        const char *name = dc_npz_name(a->z, i);
        lua_pushlstring(L, name, strlen(name) - strlen(".npy"));
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static int l_npz_take(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const lua_Integer i = luaL_checkinteger(L, 2);
    taking a = {.z = archive_at(L)->z};
    luaL_argcheck(L, i >= 1 && i <= (lua_Integer)dc_npz_count(a.z), 2, "no such array");
    a.i = (uint32_t)(i - 1);
    a.r = dc_reading_new(L, d, dc_npz_name(a.z, a.i));
    const dc_run_made made = {.out = &a.r.h, .nout = 1};
    dc_error_check_of(L, d, dc_run_again(L, d, read_body, &a, &made), "read_npz");
    return 1;
}

static dc_status unread_body(dc_job *j, void *arg)
{
    taking *a = arg;
    return dc_npz_unread(a->z, j, a->i, &a->why);
}

static int l_npz_unread(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const lua_Integer i = luaL_checkinteger(L, 2);
    taking a = {.z = archive_at(L)->z};
    luaL_argcheck(L, i >= 1 && i <= (lua_Integer)dc_npz_count(a.z), 2, "no such array");
    a.i = (uint32_t)(i - 1);
    dc_error_check_of(L, d, dc_run_once(d, unread_body, &a), "read_npz");
    lua_pushstring(L, a.why);
    return 1;
}

static int l_npz_close(lua_State *L)
{
    drop_archive(dc_udata_check(L, 1, &dc_npz_type));
    return 0;
}

typedef struct writing {
    dc_rt *rt;
    const char *path;
    dc_npy_item *item;
    uint32_t n;
    bool archive, compress;
} writing;

static dc_status write_arrays_body(dc_job *j, void *arg)
{
    const writing *a = arg;
    if (a->rt->check) /* `deepc check` leaves the world as it is */
        return DC_OK;
    return a->archive ? dc_npz_write(j, a->path, a->item, a->n, a->compress)
                      : dc_npy_write(j, a->path, a->item);
}

static int l_npy_write(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_npy_item item = {0};
    writing a = {.rt = d->rt, .path = dc_args_text(L, d, 1, "write_npy"), .item = &item, .n = 1};
    dc_handle *h = dc_handle_check(L, d, 2, "write_npy");
    item.type = *dc_handle_type(h);
    item.data = dc_handle_read(L, d, h, "write_npy");
    dc_error_check_of(L, d, dc_run_once(d, write_arrays_body, &a), "write_npy");
    return 0;
}

static int l_npz_write(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    writing a = {.rt = d->rt, .path = dc_args_text(L, d, 1, "write_npz"), .archive = true};
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TTABLE);
    a.n = (uint32_t)lua_rawlen(L, 2);
    a.compress = lua_toboolean(L, 4);
    a.item = lua_newuserdatauv(L, a.n * sizeof *a.item + 1, 0);
    lua_createtable(L, (int)a.n, 0); /* keeps what is read */
    const int kept = lua_gettop(L);
    for (uint32_t i = 0; i < a.n; i++) {
        lua_rawgeti(L, 2, i + 1);
        lua_rawgeti(L, 3, i + 1);
        dc_handle *h = dc_handle_check(L, d, -1, "write_npz");
        const dc_type type = *dc_handle_type(h);
        a.item[i] = (dc_npy_item){.name = dc_args_text(L, d, -2, "write_npz"), .type = type};
        a.item[i].data = dc_handle_read(L, d, h, "write_npz");
        lua_rawseti(L, kept, i + 1);
        lua_settop(L, kept);
    }
    dc_error_check_of(L, d, dc_run_once(d, write_arrays_body, &a), "write_npz");
    return 0;
}

/* ---- tables of text --------------------------------------------------------------------------- */

static bool has_option(lua_State *L, const char *name)
{
    return lua_getfield(L, 3, name) != LUA_TNIL;
}

static char byte_option(lua_State *L, const char *name)
{
    const char *text = has_option(L, name) ? luaL_checkstring(L, -1) : "";
    lua_pop(L, 1);
    return *text;
}

static int64_t integer_option(lua_State *L, const char *name, int64_t otherwise)
{
    const int64_t v = has_option(L, name) ? luaL_checkinteger(L, -1) : otherwise;
    lua_pop(L, 1);
    return v;
}

static dc_status open_csv_body(dc_job *j, void *arg)
{
    const opening *a = arg;
    return dc_csv_open(j, a->path, &a->csv, &a->t->c);
}

/* The words of options.missing, in memory that the table keeps. */
static void read_missing(lua_State *L, dc_csv_options *o)
{
    lua_getfield(L, 3, "missing");
    luaL_checktype(L, -1, LUA_TTABLE);
    const size_t n = lua_rawlen(L, -1);
    dc_csv_text *word = lua_newuserdatauv(L, n * sizeof *word + 1, 1);
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, -2, (lua_Integer)i + 1);
        word[i] = (dc_csv_text){.at = luaL_checkstring(L, -1), .n = lua_rawlen(L, -1)};
        lua_pop(L, 1);
    }
    lua_pushvalue(L, -2);
    lua_setiuservalue(L, -2, 1); /* its strings */
    lua_remove(L, -2);
    o->missing = word;
    o->nmissing = n;
}

static int l_csv_open(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    luaL_checktype(L, 3, LUA_TTABLE);
    opening a = {.path = dc_args_text(L, d, 2, op)};
    a.csv = (dc_csv_options){.separator = byte_option(L, "separator"),
                             .quote = byte_option(L, "quote"),
                             .comment = byte_option(L, "comment"),
                             .skip = integer_option(L, "skip", 0),
                             .rows = integer_option(L, "rows", -1)};
    a.csv.header = has_option(L, "header") && lua_toboolean(L, -1);
    lua_settop(L, 3);
    a.t = dc_udata_new(L, &dc_csv_type, sizeof *a.t, 1);
    read_missing(L, &a.csv);
    lua_setiuservalue(L, -2, 1);
    dc_error_check_of(L, d, dc_run_once(d, open_csv_body, &a), op);
    return 1;
}

static table *table_at(lua_State *L)
{
    table *t = dc_udata_check(L, 1, &dc_csv_type);
    luaL_argcheck(L, t->c != NULL, 1, "closed");
    return t;
}

static void push_field(lua_State *L, const dc_csv *c, const dc_csv_text *t)
{
    if (!t->doubled) {
        lua_pushlstring(L, t->at, t->n);
        return;
    }
    luaL_Buffer b;
    char *room = luaL_buffinitsize(L, &b, t->n);
    luaL_pushresultsize(&b, dc_csv_copy(c, t, room));
}

static int l_csv_first(lua_State *L)
{
    const table *t = table_at(L);
    size_t n;
    const dc_csv_text *first = dc_csv_first(t->c, &n);
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        push_field(L, t->c, &first[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* Columns as they are wanted, and as they come. */
typedef struct columns {
    dc_uhead head;
    size_t n;
    dc_csv_column at[];
} columns;

static void drop_columns(void *node)
{
    columns *c = node;
    for (size_t i = 0; i < c->n; i++) {
        dc_xfree(c->at[i].data);
        c->at[i].data = NULL;
    }
}

const dc_utype dc_csv_columns_type = {.name = "deepc.csv.columns", .drop = drop_columns};

static void read_wish(lua_State *L, dc_csv_column *col)
{
    const char *kind = lua_toboolean(L, -2) ? luaL_checkstring(L, -2) : "";
    *col = (dc_csv_column){.kind = DC_CSV_SKIP};
    if (strcmp(kind, "find") == 0)
        col->kind = DC_CSV_FIND;
    else if (strcmp(kind, "text") == 0)
        col->kind = DC_CSV_TEXTS;
    else if (*kind != '\0') {
        col->kind = DC_CSV_GIVEN;
        luaL_argcheck(L, dc_dtype_find(kind, strlen(kind), &col->dtype), 2, "a dtype");
    }
    col->fills = lua_isnumber(L, -1);
    col->fill = lua_tonumber(L, -1);
}

typedef struct parsing {
    dc_dsl *d;
    dc_csv *c;
    columns *columns;
    bool matrix;
    int64_t rows;
    size_t i; /* the column that becomes a tensor */
    dc_type type;
    dc_reading r;
} parsing;

static dc_status parse_body(dc_job *j, void *arg)
{
    parsing *a = arg;
    return dc_csv_parse(a->c, j, a->columns->at, a->matrix, &a->rows);
}

static dc_status column_body(dc_job *j, void *arg)
{
    parsing *a = arg;
    const dc_room room = dc_reading_room(&a->r);
    void *at;
    DC_TRY(room.make(j, room.ctx, &a->type, &at));
    DC_TRY(dc_host_copy(NULL, j, at, a->columns->at[a->i].data, dc_type_bytes(&a->type)));
    return dc_reading_end(&a->r, j);
}

static void push_texts(lua_State *L, const parsing *a)
{
    const dc_csv_text *text = a->columns->at[a->i].data;
    uint32_t looks = 0;
    lua_createtable(L, (int)dc_min_i64(a->rows, INT32_MAX), 0);
    for (int64_t i = 0; i < a->rows; i++) {
        dc_interrupt_poll_often(L, a->d, &looks);
        push_field(L, a->c, &text[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

/* The memory of the column is free afterwards. */
static void push_tensor(lua_State *L, parsing *a, const char *op)
{
    a->r = dc_reading_new(L, a->d, "a table");
    const dc_run_made made = {.out = &a->r.h, .nout = 1};
    dc_error_check_of(L, a->d, dc_run_again(L, a->d, column_body, a, &made), op);
    dc_xfree(a->columns->at[a->i].data);
    a->columns->at[a->i].data = NULL;
}

static void push_matrix(lua_State *L, parsing *a, const char *op)
{
    int64_t dim[2] = {a->rows, 0};
    for (size_t i = a->columns->n; i-- > 0;)
        if (a->columns->at[i].kind == DC_CSV_GIVEN) {
            dim[1]++;
            a->i = i;
        }
    a->type = dc_type_make(a->columns->at[a->i].dtype, 2, dim);
    push_tensor(L, a, op);
}

static int l_csv_parse(lua_State *L)
{
    static const char op[] = "read_csv";
    dc_dsl *d = dc_dsl_of(L);
    parsing a = {.d = d, .c = table_at(L)->c, .matrix = lua_toboolean(L, 4)};
    size_t n;
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TTABLE);
    dc_csv_first(a.c, &n);
    a.columns =
        dc_udata_new(L, &dc_csv_columns_type, sizeof *a.columns + n * sizeof a.columns->at[0], 0);
    a.columns->n = 0;
    for (size_t i = 0; i < n; i++, a.columns->n++) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        lua_rawgeti(L, 3, (lua_Integer)i + 1);
        read_wish(L, &a.columns->at[i]);
        lua_pop(L, 2);
    }
    dc_error_check_of(L, d, dc_run_once(d, parse_body, &a), op);
    if (a.matrix) {
        push_matrix(L, &a, op);
        return 1;
    }
    lua_createtable(L, (int)n, 0);
    for (a.i = 0; a.i < n; a.i++) {
        const dc_csv_column *col = &a.columns->at[a.i];
        if (col->kind == DC_CSV_TEXTS) {
            push_texts(L, &a);
        } else if (col->kind == DC_CSV_SKIP) {
            lua_pushboolean(L, false);
        } else {
            a.type = dc_type_make(col->dtype, 1, &a.rows);
            push_tensor(L, &a, op);
        }
        lua_rawseti(L, -2, (lua_Integer)a.i + 1);
    }
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushinteger(L, a.columns->at[i].rounded);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 2;
}

static int l_csv_close(lua_State *L)
{
    drop_table(dc_udata_check(L, 1, &dc_csv_type));
    return 0;
}

typedef struct putting {
    dc_rt *rt;
    const char *path;
    dc_csv_source *column;
    size_t n;
    int64_t rows;
    char separator;
    bool header;
} putting;

static dc_status write_csv_body(dc_job *j, void *arg)
{
    const putting *a = arg;
    if (a->rt->check)
        return DC_OK;
    return dc_csv_write(j, a->path, a->column, a->n, a->rows, a->separator, a->header);
}

/* The list of strings on top, which stays alive, as texts; pushes their memory. */
static const dc_csv_text *texts_at_top(lua_State *L, int64_t rows)
{
    const int list = lua_gettop(L);
    dc_csv_text *text = lua_newuserdatauv(L, (size_t)rows * sizeof *text + 1, 0);
    for (int64_t i = 0; i < rows; i++) {
        lua_rawgeti(L, list, i + 1);
        luaL_checktype(L, -1, LUA_TSTRING);
        text[i] = (dc_csv_text){.at = lua_tostring(L, -1), .n = lua_rawlen(L, -1)};
        lua_pop(L, 1);
    }
    return text;
}

/* The column on top; what it points to is kept in the table at `kept`. */
static void read_column(lua_State *L, dc_dsl *d, putting *a, size_t i, int kept)
{
    dc_csv_source *c = &a->column[i];
    dc_handle *h = dc_handle_test(L, -1);
    if (h == NULL) {
        luaL_checktype(L, -1, LUA_TTABLE);
        a->rows = (int64_t)lua_rawlen(L, -1);
        c->text = texts_at_top(L, a->rows);
    } else {
        const dc_type type = *dc_handle_type(h);
        luaL_argcheck(L, type.rank == 1, 3, "one axis");
        a->rows = type.dim[0];
        c->dtype = (dc_dtype)type.dtype;
        c->stride = dc_dtype_size(c->dtype);
        c->data = dc_handle_read(L, d, h, "write_csv");
    }
    lua_rawseti(L, kept, (lua_Integer)i + 1);
}

static int l_csv_write(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    putting a = {.rt = d->rt, .path = dc_args_text(L, d, 1, "write_csv")};
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TTABLE);
    a.n = lua_rawlen(L, 2);
    a.separator = *luaL_checkstring(L, 4);
    a.header = lua_toboolean(L, 5);
    a.column = lua_newuserdatauv(L, a.n * sizeof *a.column + 1, 0);
    memset(a.column, 0, a.n * sizeof *a.column);
    lua_createtable(L, (int)a.n, 0);
    const int kept = lua_gettop(L);
    for (size_t i = 0; i < a.n; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        a.column[i].name = (dc_csv_text){.at = luaL_checkstring(L, -1), .n = lua_rawlen(L, -1)};
        lua_rawgeti(L, 3, (lua_Integer)i + 1);
        read_column(L, d, &a, i, kept);
        lua_settop(L, kept);
    }
    dc_error_check_of(L, d, dc_run_once(d, write_csv_body, &a), "write_csv");
    return 0;
}

/* ---- bindings --------------------------------------------------------------------------------- */

static const dc_binding of_npz[] = {{"__close", l_npz_close, DC_ANY, DC_IN_META}};
static const dc_binding of_csv[] = {{"__close", l_csv_close, DC_ANY, DC_IN_META}};

const dc_bindings dc_npz_methods = DC_BINDINGS(of_npz);
const dc_bindings dc_csv_methods = DC_BINDINGS(of_csv);

static const dc_binding bindings[] = {
    {"npy_read", l_npy_read, DC_ANY, DC_IN_LIBRARY},
    {"npy_write", l_npy_write, DC_ANY, DC_IN_LIBRARY},
    {"npz_open", l_npz_open, DC_ANY, DC_IN_LIBRARY},
    {"npz_names", l_npz_names, DC_ANY, DC_IN_LIBRARY},
    {"npz_take", l_npz_take, DC_ANY, DC_IN_LIBRARY},
    {"npz_unread", l_npz_unread, DC_ANY, DC_IN_LIBRARY},
    {"npz_write", l_npz_write, DC_ANY, DC_IN_LIBRARY},
    {"csv_open", l_csv_open, DC_ANY, DC_IN_LIBRARY},
    {"csv_first", l_csv_first, DC_ANY, DC_IN_LIBRARY},
    {"csv_parse", l_csv_parse, DC_ANY, DC_IN_LIBRARY},
    {"csv_write", l_csv_write, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_tables_bindings = DC_BINDINGS(bindings);
