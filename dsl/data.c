/*
 * What the modules of stdlib/ need beyond the public functions; they receive it as a table that
 * scripts never see.
 *
 *   layer(text)              the __call of layers; text(layer) is what errors say of it
 *   name_of(value)           the name of the script's variable that holds it, or nil
 *   kind(value)              "param", "state", "tensor" or nil
 *   label(cell [, text])     the name of a cell
 *   fail(row, op, text, hint, role, tensor, ...)
 *   check_class(labels, n, op)   a run-time test that all labels are in 0..n-1
 *   idx(path)                a file as a tensor
 *   seed()                   that of the context
 *   order(n, seed, epoch)    a shuffled order of 0..n-1
 *   gather(x, order or nil, first, count)   rows of x, on loan
 *   give_back(x)             ends a loan
 *   options(op, table, name, ...)   refuses what is neither nil nor a table of these names
 *   entries(class)           the class, its functions entered through C (place.c)
 *   module(name, table)      the same of a module, in which an unknown name is an error
 */
#include "dsl/impl.h"
#include "formats/idx.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char ORDER[] = "deepc.order";

/* ---- layers, names, failures ------------------------------------------------------------------
 */

static int l_layer(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, dc_place_layer, 2);
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

typedef struct labelling {
    dc_cell *cell;
    const char *text;
} labelling;

static dc_status label_body(dc_job *j, void *arg)
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
    if (!lua_isnoneornil(L, 2)) {
        labelling a = {h->cell, luaL_checkstring(L, 2)};
        dc_error_check(L, d, dc_protect(&d->rt->job, label_body, &a), "label");
    }
    lua_pushstring(L, h->cell->label);
    return 1;
}

static int l_fail(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    static const char *const names[] = {"ARG", "DTYPE", "DIMS", NULL};
    static const dc_err_id ids[] = {DC_ERR_ARG, DC_ERR_DTYPE_TEXT, DC_ERR_DIMS_TEXT};
    const dc_err_id id = ids[luaL_checkoption(L, 1, "ARG", names)];
    const char *op = luaL_optstring(L, 2, NULL);
    dc_operand in[DC_APPLY_IN];
    int n = 0;
    for (int i = 5; i < lua_gettop(L) && n < DC_APPLY_IN; i += 2) {
        dc_handle *h = dc_handle_test(L, i + 1);
        if (h != NULL && h->kind != DC_HANDLE_CLOSED)
            in[n++] =
                (dc_operand){.h = h, .role = luaL_checkstring(L, i), .type = *dc_handle_type(h)};
    }
    dc_error_fact(L, d, id, &(dc_fact){.op = op, .word = {luaL_checkstring(L, 3)}},
                  &(dc_blame){.in = in, .n = n, .hint = luaL_optstring(L, 4, NULL)});
}

/* options(op, table, "name" ...): refuses what is no table of these names; nil is. */
static int l_options(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *known[8] = {0};
    const char *op = luaL_checkstring(L, 1);
    for (int i = 3; i <= lua_gettop(L) && i < 10; i++)
        known[i - 3] = luaL_checkstring(L, i);
    luaL_checkstack(L, 8, "options");
    dc_args_options(L, d, 2, op, known);
    return 0;
}

static int l_unknown(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *name = luaL_tolstring(L, 2, NULL);
    dc_error_fact(L, d, DC_ERR_FIELD,
                  &(dc_fact){.word = {lua_tostring(L, lua_upvalueindex(2)), name}}, NULL);
}

/* entries(class): the same, its functions behind entries (place.c); for what no module lists. */
static int l_entries(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    dc_place_enter(L, dc_dsl_of(L), 1);
    return 1;
}

/* module(name, table): the table behind entries, in which reading an unknown name is an error. */
static int l_module(lua_State *L)
{
    luaL_checktype(L, 2, LUA_TTABLE);
    dc_place_enter(L, dc_dsl_of(L), 2);
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

/* Position of the first label outside 0..n-1, or -1; and the label there. */
static dc_status build_class(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const int64_t classes = *(const int64_t *)arg;
    const int64_t count = dc_type_count(&in[0].type);
    const dc_type flat = dc_type_make(DC_I32, 1, &count);
    dc_val l, at, low, high, zero, none, end, hit;
    DC_TRY(dc_b_cast(j, f, in[0], DC_I32, &l));
    DC_TRY(dc_b_reshape(j, f, l, &flat, &l));
    DC_TRY(dc_b_iota(j, f, &flat, 0, &at));
    DC_TRY(dc_ops_number(j, f, l, 0, &zero));
    DC_TRY(dc_ops_number(j, f, l, -1, &none));
    DC_TRY(dc_ops_number(j, f, l, (double)count, &end));
    DC_TRY(dc_ops_number(j, f, l, (double)classes, &high));
    DC_TRY(dc_ops_2(j, f, DC_OP_LT, l, zero, &low));
    DC_TRY(dc_ops_2(j, f, DC_OP_LE, high, l, &high));
    DC_TRY(dc_ops_2(j, f, DC_OP_OR, low, high, &hit));
    const dc_val pick[3] = {hit, at, end};
    dc_val first;
    DC_TRY(dc_b_ew(j, f, DC_OP_WHERE, pick, 3, &first));
    DC_TRY(dc_b_reduce(j, f, DC_OP_MINR, first, 1, false, &first));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, at, first, &hit));
    const dc_val take[3] = {hit, l, zero};
    DC_TRY(dc_b_ew(j, f, DC_OP_WHERE, take, 3, &l));
    DC_TRY(dc_b_reduce(j, f, DC_OP_SUM, l, 1, false, &out[1]));
    DC_TRY(dc_ops_2(j, f, DC_OP_LT, first, end, &hit));
    const dc_val clean[3] = {hit, first, none};
    return dc_b_ew(j, f, DC_OP_WHERE, clean, 3, &out[0]);
}

typedef struct checking {
    dc_trace *trace;
    dc_trace_check check;
} checking;

static dc_status check_body(dc_job *j, void *arg)
{
    const checking *a = arg;
    DC_UNUSED(j);
    DC_PUSH(a->trace->check, a->check);
    return DC_OK;
}

static int64_t read_i32(lua_State *L, dc_dsl *d, int idx)
{
    return *(const int32_t *)dc_handle_read(L, d, dc_handle_test(L, idx), "check_class");
}

static int l_check_class(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    static const int at[1] = {1};
    lua_settop(L, 3);
    dc_handle *h = dc_handle_check(L, d, 1, "check_class");
    const int64_t classes = luaL_checkinteger(L, 2);
    dc_trace_check c = {.classes = classes,
                        .op = dc_place_intern(d, "%s", luaL_checkstring(L, 3)),
                        .type = *dc_handle_type(h),
                        .origin = h->origin,
                        .place = dc_place_find(L, d)};
    dc_apply a = {.build = build_class, .arg = &classes};
    dc_apply_operands(L, d, &a, c.op, at, 1);
    a.nout = 2;
    dc_apply_run(L, d, &a); /* position at 4, value at 5 */
    if (dc_trace_here(L, d) != NULL) {
        c.position = dc_handle_test(L, 4)->val.ref;
        c.value = dc_handle_test(L, 5)->val.ref;
        checking x = {d->trace, c};
        dc_error_check(L, d, dc_protect(&d->rt->job, check_body, &x), c.op);
        return 0;
    }
    const int64_t position = read_i32(L, d, 4), value = read_i32(L, d, 5);
    const dc_operand in = {.h = h, .role = "labels", .type = c.type};
    if (position >= 0)
        dc_error_fact(L, d, DC_ERR_CLASS,
                      &(dc_fact){.op = c.op, .num = {value, classes - 1, position + 1}},
                      &(dc_blame){.in = &in, .n = 1, .place = &c.place});
    return 0;
}

/* ---- files and batches ----------------------------------------------------------------------- */

typedef struct reading {
    dc_dsl *d;
    dc_handle *h;
    const char *path;
} reading;

static void release_tensor(void *t)
{
    dc_tensor_release(t);
}

static dc_status idx_body(dc_job *j, void *arg)
{
    const reading *a = arg;
    dc_device *dev = a->d->rt->device;
    dc_type type;
    void *data;
    dc_tensor *t;
    DC_TRY(dc_idx_read(j, a->path, &type, &data));
    dc_job_defer(j, free, data);
    DC_TRY(dc_tensor_new(a->d->rt, j, &type, &t));
    dc_job_defer(j, release_tensor, t);
    DC_TRY(dev->ops->upload(dev, j, t->store->mem, data, dc_type_bytes(&type)));
    dc_job_keep(j, t);
    dc_handle_fill(a->h, t);
    return DC_OK;
}

static int l_idx(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    if (lua_type(L, 1) != LUA_TSTRING)
        dc_error_raisef(L, d, DC_ERR_ARG, "idx", "a path is needed, not %s",
                        dc_args_describe(L, 1));
    reading a = {d, NULL, lua_tostring(L, 1)};
    a.h = dc_handle_new(L, d);
    a.h->origin = dc_place_intern(d, "read from %.300s", a.path);
    dc_error_check(L, d, dc_protect(&d->rt->job, idx_body, &a), "idx");
    dc_handle_pressure(L, d, dc_type_bytes(dc_handle_type(a.h)));
    return 1;
}

static int l_seed(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)dc_dsl_of(L)->seed);
    return 1;
}

typedef struct shuffled {
    int64_t n;
    uint32_t at[];
} shuffled;

/* Fisher and Yates, with bits of (seed, epoch). A 32-bit number times the range picks. */
static int l_order(lua_State *L)
{
    const int64_t n = luaL_checkinteger(L, 1);
    const uint64_t seed = (uint64_t)luaL_checkinteger(L, 2),
                   epoch = (uint64_t)luaL_checkinteger(L, 3);
    luaL_argcheck(L, n >= 0 && n < UINT32_MAX, 1, "too many rows");
    shuffled *s = lua_newuserdatauv(L, sizeof *s + (size_t)n * sizeof s->at[0], 0);
    luaL_setmetatable(L, ORDER);
    s->n = n;
    for (int64_t i = 0; i < n; i++)
        s->at[i] = (uint32_t)i;
    for (int64_t i = n - 1; i > 0; i--) {
        const uint64_t bits = dc_random_bits(seed, epoch, (uint64_t)i);
        const int64_t k = (int64_t)(bits * (uint64_t)(i + 1) >> 32);
        const uint32_t other = s->at[k];
        s->at[k] = s->at[i];
        s->at[i] = other;
    }
    return 1;
}

typedef struct gathering {
    dc_dsl *d;
    dc_handle *from, *to;
    const dc_tensor *value; /* of from */
    const shuffled *order; /* NULL: as they are */
    int64_t first, count;
} gathering;

static dc_status copy_rows(dc_device *dev, dc_job *j, char *to, const char *from, size_t bytes)
{
    if (dev->ops->copy != NULL)
        return dev->ops->copy(dev, j, to, from, bytes);
    const dc_mark mark = dc_arena_mark(&j->scratch);
    void *host = dc_arena_alloc(&j->scratch, bytes);
    dc_status status = dev->ops->download(dev, j, host, from, bytes);
    if (status == DC_OK)
        status = dev->ops->upload(dev, j, to, host, bytes);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}

static dc_status gather_rows(const gathering *a, dc_job *j, char *to, size_t row)
{
    dc_device *dev = a->d->rt->device;
    const char *from = dc_tensor_mem(a->value);
    if (a->order == NULL)
        return copy_rows(dev, j, to, from + (size_t)a->first * row, (size_t)a->count * row);
    for (int64_t i = 0; i < a->count; i++)
        DC_TRY(copy_rows(dev, j, to + (size_t)i * row, from + a->order->at[a->first + i] * row,
                         row));
    return DC_OK;
}

static dc_status gather_body(dc_job *j, void *arg)
{
    const gathering *a = arg;
    dc_type type = a->value->type;
    const size_t row = dc_type_bytes(&type) / (size_t)type.dim[0];
    dc_tensor *t;
    type.dim[0] = a->count;
    type.name[0] = NULL;
    DC_TRY(dc_tensor_new(a->d->rt, j, &type, &t));
    dc_job_defer(j, release_tensor, t);
    DC_TRY(gather_rows(a, j, dc_tensor_mem(t), row)); /* what fails releases t */
    dc_job_keep(j, t);
    dc_handle_fill(a->to, t);
    return DC_OK;
}

static int l_gather(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    gathering a = {.d = d, .from = dc_handle_check(L, d, 1, "batches")};
    a.order = lua_isnil(L, 2) ? NULL : luaL_checkudata(L, 2, ORDER);
    a.first = luaL_checkinteger(L, 3);
    a.count = luaL_checkinteger(L, 4);
    const bool is_tensor = a.from->kind == DC_HANDLE_VALUE || a.from->kind == DC_HANDLE_LAZY;
    luaL_argcheck(L, is_tensor && dc_handle_type(a.from)->rank > 0, 1,
                  "a tensor with rows is needed");
    a.value = dc_handle_realize(L, d, a.from, "batches");
    const int64_t rows = a.order != NULL ? a.order->n : a.value->type.dim[0];
    luaL_argcheck(L, rows <= a.value->type.dim[0], 2, "an order of more rows");
    luaL_argcheck(L, a.first >= 0 && a.count > 0 && a.first <= rows - a.count, 3, "rows outside");
    a.to = dc_handle_new(L, d);
    a.to->origin = dc_place_intern(d, "a batch");
    a.to->loan = true;
    dc_error_check(L, d, dc_protect(&d->rt->job, gather_body, &a), "batches");
    return 1;
}

static int l_give_back(lua_State *L)
{
    dc_handle *h = dc_handle_test(L, 1);
    if (h != NULL && h->loan)
        dc_handle_close(h);
    return 0;
}

void dc_data_register(lua_State *L, dc_dsl *d)
{
    static const luaL_Reg fn[] = {{"layer", l_layer},
                                  {"name_of", l_name_of},
                                  {"kind", l_kind},
                                  {"label", l_label},
                                  {"fail", l_fail},
                                  {"check_class", l_check_class},
                                  {"idx", l_idx},
                                  {"seed", l_seed},
                                  {"order", l_order},
                                  {"gather", l_gather},
                                  {"give_back", l_give_back},
                                  {"options", l_options},
                                  {"entries", l_entries},
                                  {"module", l_module},
                                  {NULL, NULL}};
    luaL_newmetatable(L, ORDER);
    lua_pop(L, 1);
    dc_lib_add(L, d, fn);
}
