/*
 * The module: its table, what it tells about itself, and the modules of stdlib/ for `require`.
 */
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/error.h"
#include "dsl/base/hints.h"
#include "dsl/base/interrupt.h"
#include "dsl/base/late.h"
#include "dsl/base/ranks.h"
#include "dsl/base/scope.h"
#include "dsl/base/size.h"
#include "dsl/control/control.h"
#include "dsl/dsl.h"
#include "dsl/extras.h"
#include "dsl/fn/fn.h"
#include "dsl/internals.h"
#include "dsl/modules/batch_gather.h"
#include "dsl/modules/modules.h"
#include "dsl/modules/orders.h"
#include "dsl/ops/ops.h"
#include "dsl/stdlib.h"
#include "jit/jit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Keys of the registry: their addresses. */
static const char MODULE[] = "the module", GLOBALS[] = "its globals";

/* ---- what it tells --------------------------------------------------------------------------- */

/* Is a setting switched? To what; it is true or false. */
static bool is_switched(lua_State *L, dc_dsl *d, const char *name, bool *on)
{
    if (lua_isnoneornil(L, 1))
        return false;
    if (!lua_isboolean(L, 1))
        dc_error_raisef(L, d, DC_ERR_ARG, name, "true or false is needed, not %s",
                        dc_handle_describe(L, 1));
    *on = lua_toboolean(L, 1);
    return true;
}

/* dc.check_numbers(on): what DEEPC_CHECK=nan does, from now on; whether it did before. */
static int l_check_numbers(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const bool was = d->rt->opt.numbers;
    is_switched(L, d, "check_numbers", &d->rt->opt.numbers);
    for (dc_rt *rt = d->rt->next; rt != NULL; rt = rt->next)
        rt->opt.numbers = d->rt->opt.numbers;
    lua_pushboolean(L, was);
    return 1;
}

/*
 * dc.flush_denormals(on): what DEEPC_MATH=ftz does, from now on; whether it did before. CPUs are told at each run;
 * the kernels of GPUs are compiled for it.
 */
static int l_flush_denormals(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const bool was = d->rt->opt.flush;
    bool on = was;
    const bool changes = is_switched(L, d, "flush_denormals", &on) && on != was;
    for (const dc_rt *rt = d->rt; rt != NULL && changes; rt = rt->next)
        if (rt->device->ops->compiles_flush)
            dc_error_raisef(L, d, DC_ERR_ARG, "flush_denormals",
                            "kernels of '%s' are compiled for it: DEEPC_MATH=ftz says so "
                            "beforehand",
                            rt->device->ops->name);
    for (dc_rt *rt = d->rt; rt != NULL; rt = rt->next)
        rt->opt.flush = on;
    lua_pushboolean(L, was);
    return 1;
}

typedef struct asking {
    dc_rt *rt;
    uint64_t fingerprint;
} asking;

static dc_status ask_body(dc_job *j, void *arg)
{
    asking *a = arg;
    return dc_tune_fingerprint(a->rt, j, &a->fingerprint);
}

/* "rules", or the fingerprint of the schedules that dc.tune has found. */
static void push_schedules(lua_State *L)
{
    char text[24];
    dc_dsl *d = dc_dsl_of(L);
    asking a = {.rt = d->rt};
    dc_run(L, d, ask_body, &a);
    snprintf(text, sizeof text, "%016" PRIx64, a.fingerprint);
    lua_pushstring(L, a.fingerprint != 0 ? text : "rules");
}

/* dc.stats(): counters since the context was opened. */
static int l_stats(lua_State *L)
{
    dc_rt *rt = dc_dsl_of(L)->rt;
    const dc_stats *s = &rt->stats;
    dc_jit_settle(rt);
    lua_newtable(L);
#define COUNT(field) dc_binding_set_number(L, #field, s->field)
    COUNT(traces);
    COUNT(compiles);
    COUNT(kernels);
    COUNT(kernels_cached);
    COUNT(kernels_shared);
    COUNT(launches);
    COUNT(prologues);
    COUNT(relayouts);
    COUNT(calls);
    COUNT(interpreted);
    COUNT(fallbacks);
    COUNT(denormals);
    COUNT(allocs);
    COUNT(moved_out);
    COUNT(bytes_live);
    COUNT(bytes_peak);
    COUNT(compile_ns);
    COUNT(realized);
    COUNT(lazy_programs);
    COUNT(lazy_general);
    COUNT(lazy_nodes);
#undef COUNT
    dc_binding_set_number(L, "handles", dc_dsl_of(L)->nlive);
    dc_binding_set_number(L, "lost", dc_dsl_of(L)->nodes.lost);
    dc_binding_set_number(L, "collections", dc_dsl_of(L)->collections);
    lua_pushnumber(L, s->compare_max);
    lua_setfield(L, -2, "compare_max");
    lua_pushstring(L, rt->opt.device);
    lua_setfield(L, -2, "device");
    push_schedules(L);
    lua_setfield(L, -2, "schedules");
    return 1;
}

/* dc.ops(): the op table as a list of { name, class, operands, low, high }. */
static int l_ops(lua_State *L)
{
    lua_createtable(L, DC_OP__COUNT, 0);
    for (int op = 0; op < DC_OP__COUNT; op++) {
        const dc_op_row *row = dc_op_row_of((dc_op)op);
        if (row->cls == DC_CLASS_PART || op == DC_OP_STAGE) /* no script has them */
            continue;
        lua_createtable(L, 0, 5);
        lua_pushstring(L, row->name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, dc_op_class_name((dc_op)op));
        lua_setfield(L, -2, "class");
        dc_binding_set_number(L, "operands", row->n);
        lua_pushnumber(L, row->lo);
        lua_setfield(L, -2, "low");
        lua_pushnumber(L, row->hi);
        lua_setfield(L, -2, "high");
        lua_rawseti(L, -2, op + 1);
    }
    return 1;
}

/* dc.dtypes(): the element types as a list of { name, kind, bits, signed, exponent, fraction, finite }. */
static int l_dtypes(lua_State *L)
{
    static const char *const kinds[] = {[DC_KIND_BOOL] = "bool",
                                        [DC_KIND_UINT] = "integer",
                                        [DC_KIND_SINT] = "integer",
                                        [DC_KIND_FLOAT] = "float",
                                        [DC_KIND_COMPLEX] = "complex"};
    lua_createtable(L, DC_DTYPE__ALL, 0);
    for (int t = 0; t < DC_DTYPE__ALL; t++) {
        const dc_kind kind = dc_dtype_kind((dc_dtype)t);
        lua_createtable(L, 0, 7);
        lua_pushstring(L, dc_dtype_name((dc_dtype)t));
        lua_setfield(L, -2, "name");
        lua_pushstring(L, kinds[kind]);
        lua_setfield(L, -2, "kind");
        lua_pushboolean(L, kind != DC_KIND_BOOL && kind != DC_KIND_UINT);
        lua_setfield(L, -2, "signed");
        lua_pushboolean(L, dc_dtype_is_finite((dc_dtype)t));
        lua_setfield(L, -2, "finite");
        dc_binding_set_number(L, "bits", dc_dtype_bits((dc_dtype)t));
        dc_binding_set_number(L, "exponent", dc_dtype_exponent((dc_dtype)t));
        dc_binding_set_number(L, "fraction", dc_dtype_fraction((dc_dtype)t));
        lua_rawseti(L, -2, t + 1);
    }
    return 1;
}

/* os.exit, which may leave the state open; upvalues: the context, the function that was there. */
static int l_exit(lua_State *L)
{
    dc_dsl *d = dc_dsl_of_any(L);
    if (!dc_dsl_gone(d)) {
        dc_jit_stop(d->rt);
        dc_ranks_exit(L, d);
    }
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

static void guard_exit(lua_State *L, dc_dsl *d)
{
    const int top = lua_gettop(L);
    lua_pushglobaltable(L);
    lua_pushliteral(L, "os");
    if (lua_rawget(L, -2) == LUA_TTABLE && lua_getfield(L, -1, "exit") == LUA_TFUNCTION) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, d);
        lua_insert(L, -2);
        lua_pushcclosure(L, l_exit, 2);
        lua_setfield(L, -2, "exit");
    }
    lua_settop(L, top);
}

static int l_no_field(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *name = luaL_tolstring(L, 2, NULL);
    const char *hint = dc_hint_function(name);
    dc_error_fact(L, d, DC_ERR_FIELD, &(dc_fact){.word = {"deepc", name}},
                  &(dc_blame){.hint = hint != NULL ? hint : dc_hint_spelling(L, 1, NULL, name)});
}

/* ---- stdlib ---------------------------------------------------------------------------------- */

/* The table on top becomes a copy of it. */
static void copy_table(lua_State *L)
{
    const int from = lua_gettop(L);
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, from) != 0; lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, from + 1);
    }
    lua_remove(L, from);
}

/*
 * The globals of the library: Lua's own as they were when the first module was loaded, so that a script
 * may call a variable of its own `type` or `next`, or give math.floor another meaning; all others are the
 * script's.
 */
static void push_globals(lua_State *L)
{
    static const char *const own[] = {
        "assert",   "error",    "getmetatable", "ipairs", "next",      "pairs",  "pcall",
        "rawequal", "rawget",   "rawlen",       "rawset", "require",   "select", "setmetatable",
        "tonumber", "tostring", "type",         "xpcall", "coroutine", "debug",  "io",
        "math",     "os",       "string",       "table",  "utf8"};
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, GLOBALS) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    lua_createtable(L, 0, (int)DC_COUNTOF(own));
    lua_createtable(L, 0, 1);
    lua_pushglobaltable(L);
    for (size_t i = 0; i < DC_COUNTOF(own); i++) {
        lua_pushstring(L, own[i]);
        const int kind = lua_rawget(L, -2);
        if (kind == LUA_TTABLE && strcmp(own[i], "io") != 0) /* io.stderr is where a script says */
            copy_table(L);
        if (kind == LUA_TFUNCTION || kind == LUA_TTABLE)
            lua_setfield(L, -4, own[i]);
        else
            lua_pop(L, 1);
    }
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, GLOBALS);
}

void dc_dsl_capture(lua_State *L)
{
    luaL_checkstack(L, 12, "deepc");
    dc_dsl_release(L);
    push_globals(L);
    lua_pop(L, 1);
}

void dc_dsl_release(lua_State *L)
{
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, GLOBALS);
}

/* Upvalues: the context, the module, the internals. */
static int l_load(lua_State *L)
{
    luaL_checkstack(L, 8, "deepc");
    const struct dc_stdlib_module *m = lua_touserdata(L, lua_upvalueindex(2));
    if (luaL_loadbufferx(L, (const char *)m->text, m->size, m->chunkname, "t") != LUA_OK)
        return lua_error(L);
    push_globals(L);
    lua_setupvalue(L, -2, 1); /* _ENV */
    lua_pushstring(L, m->name);
    lua_pushvalue(L, lua_upvalueindex(3));
    lua_call(L, 2, 1);
    return 1;
}

enum { FUNCTION, METHOD };

/* Functions of the module that are written in Lua: the file is run when one is first called. METHOD: of tensors, too. */
static const struct {
    const char *name, *module;
    int method;
} written_in_lua[] = {
    {"checkpoint", "deepc.files", FUNCTION},
    {"load", "deepc.load", FUNCTION},
    {"options", "deepc.options", FUNCTION},
    {"fail", "deepc.options", FUNCTION},
    {"progress", "deepc.progress", FUNCTION},
    {"show", "deepc.show", FUNCTION},
    {"metric", "deepc.progress", FUNCTION},
    {"save", "deepc.files", FUNCTION},
    {"span", "deepc.trace", FUNCTION},
    {"cond", "deepc.control", FUNCTION},
    {"fori", "deepc.control", FUNCTION},
    {"loop", "deepc.control", FUNCTION},
    {"map", "deepc.control", FUNCTION},
    {"scan", "deepc.control", FUNCTION},
    {"switch", "deepc.control", FUNCTION},
    {"vmap", "deepc.vmap", FUNCTION},
    {"associative_scan", "deepc.associative", FUNCTION},
    {"gather", "deepc.indexing", METHOD},
    {"scatter", "deepc.indexing", METHOD},
    {"scatter_add", "deepc.indexing", METHOD},
    {"index_add", "deepc.indexing", METHOD},
    {"index_copy", "deepc.indexing", METHOD},
    {"index_fill", "deepc.indexing", METHOD},
    {"index_reduce", "deepc.indexing", METHOD},
    {"gather_nd", "deepc.indexing", METHOD},
    {"take_nd", "deepc.indexing", METHOD},
    {"put_nd", "deepc.indexing", METHOD},
    {"scatter_nd", "deepc.indexing", METHOD},
    {"segment_sum", "deepc.indexing", METHOD},
    {"segment_mean", "deepc.indexing", METHOD},
    {"segment_max", "deepc.indexing", METHOD},
    {"segment_min", "deepc.indexing", METHOD},
    {"segment_prod", "deepc.indexing", METHOD},
    {"compact", "deepc.counting", METHOD},
    {"nonzero", "deepc.counting", METHOD},
    {"bincount", "deepc.counting", METHOD},
    {"histogram", "deepc.counting", METHOD},
    {"isin", "deepc.counting", METHOD},
    {"gcd", "deepc.divisors", METHOD},
    {"lcm", "deepc.divisors", METHOD},
    {"quantile", "deepc.order", METHOD},
    {"percentile", "deepc.order", METHOD},
    {"nanquantile", "deepc.order", METHOD},
    {"median", "deepc.order", METHOD},
    {"nanmedian", "deepc.order", METHOD},
    {"kthvalue", "deepc.order", METHOD},
    {"mode", "deepc.order", METHOD},
    {"unique", "deepc.order", METHOD},
    {"searchsorted", "deepc.search", METHOD},
    {"bucketize", "deepc.search", METHOD},
    {"digitize", "deepc.search", METHOD},
    {"interp", "deepc.search", METHOD},
    {"cross", "deepc.arrange", METHOD},
    {"diag", "deepc.arrange", METHOD},
    {"diagonal", "deepc.arrange", METHOD},
    {"dot", "deepc.arrange", METHOD},
    {"inner", "deepc.arrange", METHOD},
    {"kron", "deepc.arrange", METHOD},
    {"movedim", "deepc.arrange", METHOD},
    {"outer", "deepc.arrange", METHOD},
    {"repeat_interleave", "deepc.arrange", METHOD},
    {"rot90", "deepc.arrange", METHOD},
    {"tile", "deepc.arrange", METHOD},
    {"trace", "deepc.arrange", METHOD},
    {"unfold", "deepc.arrange", METHOD},
    {"vdot", "deepc.arrange", METHOD},
    {"meshgrid", "deepc.arrange", FUNCTION},
    {"world", "deepc.ranks", FUNCTION},
    {"mesh", "deepc.ranks", FUNCTION},
    {"shard", "deepc.ranks", FUNCTION},
    {"part", "deepc.ranks", FUNCTION},
    {"whole", "deepc.ranks", FUNCTION},
    {"reshard", "deepc.ranks", FUNCTION},
    {"all_reduce", "deepc.ranks", FUNCTION},
    {"reduce_scatter", "deepc.ranks", FUNCTION},
    {"all_gather", "deepc.ranks", FUNCTION},
    {"all_to_all", "deepc.ranks", FUNCTION},
    {"broadcast", "deepc.ranks", FUNCTION},
    {"send", "deepc.ranks", FUNCTION},
    {"recv", "deepc.ranks", FUNCTION},
    {"send_recv", "deepc.ranks", FUNCTION},
    {"barrier", "deepc.ranks", FUNCTION},
    {"cdist", "deepc.distances", FUNCTION},
    {"linspace", "deepc.ranges", FUNCTION},
    {"logspace", "deepc.ranges", FUNCTION},
    {"arange", "deepc.ranges", FUNCTION},
    {"vander", "deepc.ranges", METHOD},
    {"autocast", "deepc.autocast", FUNCTION},
};

static int leave_written(lua_State *L, int status, lua_KContext ctx)
{
    DC_UNUSED(status);
    DC_UNUSED(ctx);
    return lua_gettop(L);
}

/* Upvalues: the context, the row. */
static int l_written(lua_State *L)
{
    const int row = (int)lua_tointeger(L, lua_upvalueindex(2));
    const int n = lua_gettop(L);
    luaL_checkstack(L, 5, "arguments");
    dc_binding_require(L, written_in_lua[row].module);
    lua_getfield(L, -1, written_in_lua[row].name);
    lua_insert(L, 1);
    lua_settop(L, n + 1);
    lua_callk(L, n, LUA_MULTRET, 0, leave_written);
    return leave_written(L, LUA_OK, 0);
}

static void add_written(lua_State *L, int module, int methods)
{
    dc_dsl *d = dc_dsl_in(L);
    for (size_t i = 0; i < DC_COUNTOF(written_in_lua); i++) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, d);
        lua_pushinteger(L, (lua_Integer)i);
        lua_pushcclosure(L, l_written, 2);
        if (written_in_lua[i].method) {
            lua_pushvalue(L, -1);
            lua_setfield(L, methods, written_in_lua[i].name);
        }
        lua_setfield(L, module, written_in_lua[i].name);
    }
}

static const struct dc_stdlib_module *find_in(const struct dc_stdlib_module *m, const char *name)
{
    while (m->name != NULL && strcmp(m->name, name) != 0)
        m++;
    return m->name != NULL ? m : NULL;
}

/* source(module): the text of a module, for deepc.help; nil where this build has none of that name. */
static int l_source(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const struct dc_stdlib_module *m = find_in(dc_stdlib_modules, name);
    for (const dc_extra *e = dc_extras; m == NULL && e->modules != NULL; e++)
        m = find_in(e->modules, name);
    if (m == NULL)
        return 0;
    lua_pushlstring(L, (const char *)m->text, m->size);
    return 1;
}

/* A file of annotations alone is no module. */
static bool is_meta(const struct dc_stdlib_module *m)
{
    return strncmp((const char *)m->text, "---@meta", 8) == 0;
}

/* The internals are on top. */
static void preload(lua_State *L, dc_dsl *d, const struct dc_stdlib_module *m)
{
    const int internals = lua_gettop(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    for (; m->name != NULL; m++) {
        if (is_meta(m))
            continue;
        lua_rawgetp(L, LUA_REGISTRYINDEX, d);
        lua_pushlightuserdata(L, (void *)(uintptr_t)m);
        lua_pushvalue(L, internals);
        lua_pushcclosure(L, l_load, 3);
        lua_setfield(L, -2, m->name);
    }
    lua_pop(L, 1);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int l_context_gc(lua_State *L)
{
    dc_dsl *d = dc_udata_test(L, 1, &dc_dsl_type);
    if (d == NULL || d->rt == NULL)
        return 0;
    if (!dc_rt_forked(d->rt)) {
        dc_fn_close_all(d);
        dc_batches_close_all(d);
        dc_gather_close_all(d);
        dc_handle_close_all(d);
        dc_udata_close_all(d);
        dc_cell_release(d->generator);
    }
    d->generator = NULL;
    dc_ranks_leave(d);
    d->rt->stop_lua = NULL;
    d->rt = NULL;
    if (d->closed != NULL)
        d->closed(d->arg);
    return 0;
}

static const dc_binding of_module[] = {
    {"stats", l_stats, 0, DC_IN_MODULE},
    {"ops", l_ops, 0, DC_IN_MODULE},
    {"dtypes", l_dtypes, 0, DC_IN_MODULE},
    {"dtypes", l_dtypes, DC_ANY, DC_IN_LIBRARY},
    {"check_numbers", l_check_numbers, 1, DC_IN_MODULE},
    {"flush_denormals", l_flush_denormals, 1, DC_IN_MODULE},
    {"source", l_source, 1, DC_IN_LIBRARY},
};
static const dc_bindings module_bindings = DC_BINDINGS(of_module);

/* Every function in C that scripts and stdlib/ call. Of two with one name the later one is found. */
static const dc_bindings *const all[] = {
    &dc_operator_bindings[0], &dc_operator_bindings[1], &dc_operator_bindings[2],
    &dc_reduce_bindings,      &dc_movement_bindings,    &dc_subscript_bindings,
    &dc_einsum_bindings,      &dc_unary_bindings[0],    &dc_unary_bindings[1],
    &dc_number_bindings[0],   &dc_number_bindings[1],   &dc_concat_bindings,
    &dc_gather_bindings,      &dc_make_bindings,        &dc_rand_bindings,
    &dc_devices_bindings,
    &dc_tensor_bindings,      &dc_scope_bindings,       &dc_param_bindings,
    &dc_gradient_bindings,    &dc_custom_grad_bindings, &dc_conv_pool_bindings,
    &dc_static_bindings,      &dc_dim_print_bindings,   &dc_fn_bindings,
    &module_bindings,         &dc_internal_bindings,    &dc_fntune_bindings,      &dc_fnplan_bindings, &dc_trace_work_bindings, &dc_report_bindings, &dc_fnreport_bindings, &dc_fngraph_bindings,
    &dc_batches_bindings,     &dc_file_bindings,        &dc_layer_bindings,
    &dc_terminal_bindings,    &dc_control_bindings,     &dc_loop_bindings,
    &dc_branch_bindings,      &dc_vmap_bindings,        &dc_cumulative_bindings,
    &dc_sort_bindings,        &dc_pad_bindings,         &dc_host_bindings,        &dc_exchange_bindings, &dc_messages_bindings,
    &dc_bytes_bindings,       &dc_tables_bindings,      &dc_order_bindings,
    &dc_source_bindings,      &dc_media_bindings,       &dc_fetch_bindings,
    &dc_folder_bindings,      &dc_span_bindings,        &dc_complex_bindings,     &dc_fft_bindings,
    &dc_tensor_file_bindings, &dc_summary_bindings, &dc_screen_bindings,
    &dc_json_bindings,
    &dc_quantized_bindings,   &dc_quantized_product_bindings,
};

/* Every type of userdata but the context, and its own functions. */
static const struct {
    const dc_utype *type;
    const dc_bindings *methods;
} types[] = {
    {&dc_layer_call_type, &dc_layer_call_methods},
    {&dc_handle_utype, NULL},
    {&dc_error_type, &dc_error_methods},
    {&dc_scope_type, &dc_scope_methods},
    {&dc_fn_type, &dc_fn_methods},
    {&dc_spec_type, NULL},
    {&dc_tracing_type, &dc_tracing_methods},
    {&dc_frame_type, &dc_frame_methods},
    {&dc_fnjob_type, &dc_fnjob_methods},
    {&dc_fntext_type, NULL},
    {&dc_fntune_type, NULL},
    {&dc_executable_type, NULL},
    {&dc_static_type, &dc_static_methods},
    {&dc_size_type, &dc_size_methods},
    {&dc_order_type, NULL},
    {&dc_rows_type, NULL},
    {&dc_batches_type, NULL},
    {&dc_file_type, &dc_file_methods},
    {&dc_npz_type, &dc_npz_methods},
    {&dc_csv_type, &dc_csv_methods},
    {&dc_csv_columns_type, NULL},
    {&dc_control_type, &dc_control_methods},
    {&dc_json_type, NULL},
};

/* Every upvalue that a finalizer of ours needs is the context itself, so it outlives them. */
static void fill_module(lua_State *L, dc_dsl *d, int module, int library)
{
    dc_binding_tables to = {.module = module, .library = library};
    for (size_t i = 0; i < DC_COUNTOF(types); i++)
        dc_binding_add_type(L, d, types[i].type, types[i].methods);
    for (const dc_extra *e = dc_extras; e->modules != NULL; e++)
        if (e->type != NULL)
            dc_binding_add_type(L, d, e->type, NULL);
    lua_newtable(L);
    to.methods = lua_gettop(L);
    dc_udata_push_meta(L, &dc_handle_utype);
    to.meta = lua_gettop(L);
    for (size_t i = 0; i < DC_COUNTOF(all); i++)
        dc_binding_add(L, d, all[i], &to);
    for (const dc_extra *e = dc_extras; e->modules != NULL; e++)
        if (e->bindings != NULL)
            dc_binding_add(L, d, e->bindings, &to);
    dc_operators_open(L, to.methods, module, to.meta);
    dc_tensor_open(L, d, to.methods, to.meta);
    add_written(L, module, to.methods);
    lua_createtable(L, 0, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, d);
    lua_pushcclosure(L, l_no_field, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, module);
    lua_settop(L, library);
}

void dc_dsl_open(lua_State *L)
{
    luaL_checkstack(L, 20, "deepc");
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, MODULE) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    dc_dsl *d = dc_dsl_new(L, l_context_gc);
    lua_newtable(L);
    const int module = lua_gettop(L);
    lua_newtable(L);
    fill_module(L, d, module, module + 1);
    preload(L, d, dc_stdlib_modules);
    for (const dc_extra *e = dc_extras; e->modules != NULL; e++)
        preload(L, d, e->modules);
    lua_settop(L, module);
    dc_place_open(L);
    dc_error_open(L);
    dc_interrupt_open(L, d);
    dc_guard_open(L, d);
    guard_exit(L, d);
    lua_pushglobaltable(L);
    dc_coroutine_open(L, d, lua_gettop(L));
    lua_pop(L, 1);
    lua_pushvalue(L, module);
    lua_rawsetp(L, LUA_REGISTRYINDEX, MODULE);
}

void dc_dsl_own(lua_State *L, dc_rt *rt, void (*closed)(void *), void *arg)
{
    dc_dsl *d = dc_dsl_in(L);
    rt->stop_lua_ctx = d;
    rt->stop_lua = dc_interrupt_arm;
    d->raise_late = dc_fn_raise_late;
    d->seed = (uint64_t)rt->opt.seed;
    d->closed = closed;
    d->arg = arg;
    d->rt = rt;
}

int dc_dsl_settle(lua_State *L)
{
    dc_dsl *d = dc_dsl_in(L);
    if (d != NULL && d->rt != NULL)
        dc_late_check(L, d, true);
    return 0;
}

void dc_dsl_finish(lua_State *L, bool failed)
{
    dc_dsl *d = dc_dsl_in(L);
    if (d != NULL && d->rt != NULL)
        dc_uses_finish(d, failed);
}

dc_rt *dc_dsl_rt(lua_State *L)
{
    const dc_dsl *d = dc_dsl_in(L);
    return d != NULL ? d->rt : NULL;
}

bool dc_dsl_is_function(lua_State *L, int idx)
{
    return dc_udata_test(L, idx, &dc_fn_type) != NULL;
}

int dc_dsl_traceback(lua_State *L)
{
    const char *text = lua_tostring(L, 1);
    if (text == NULL) {
        if (lua_type(L, 1) == LUA_TTABLE || lua_type(L, 1) == LUA_TUSERDATA)
            return 1;
        text = luaL_tolstring(L, 1, NULL);
    }
    luaL_traceback(L, L, text, 1);
    return 1;
}
