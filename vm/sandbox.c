/*
 * dc_sandbox: a lua_State for scripts that the host did not write.
 *
 * What a script can reach is what hangs on its globals, on the metatable of strings and on values it is given.
 * So the globals are a table of ours, filled from a list of what may be there: what is not named below does not
 * exist for a script, be it added by a later Lua or by the host before. Libraries are opened anew for it,
 * so that no table is shared with the host's own. The modules of deepc get the same globals (dc_dsl_capture);
 * files they open in core/base/path.c, which is where the script's folders are enforced.
 *
 * All of it happens or nothing: what was there is put back where something fails.
 */
#include "vm/sandbox.h"

#include "core/base/path.h"

#include <lauxlib.h>
#include <lualib.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of each library, what scripts have; "" is the base library. What sandbox_base.c makes is not among it. */
static const struct {
    const char *library;
    lua_CFunction open;
    const char *names[32];
} allowed[] = {
    {"",
     luaopen_base,
     {"assert", "error", "ipairs", "next", "pairs", "pcall", "rawequal", "rawget", "rawlen",
      "rawset", "select", "tonumber", "tostring", "type", "xpcall", "_VERSION"}},
    {LUA_STRLIBNAME,
     luaopen_string,
     {"byte", "char", "format", "len", "lower", "pack", "packsize", "rep", "reverse", "sub",
      "unpack", "upper"}},
    {LUA_TABLIBNAME,
     luaopen_table,
     {"concat", "insert", "move", "pack", "remove", "sort", "unpack"}},
    {LUA_MATHLIBNAME,
     luaopen_math,
     {"abs",  "acos",   "asin",       "atan", "ceil",       "cos", "deg",        "exp",  "floor",
      "fmod", "huge",   "log",        "max",  "maxinteger", "min", "mininteger", "modf", "pi",
      "rad",  "random", "randomseed", "sin",  "sqrt",       "tan", "tointeger",  "type", "ult"}},
    {LUA_UTF8LIBNAME, luaopen_utf8, {"char", "charpattern", "codepoint", "codes", "len", "offset"}},
    {LUA_COLIBNAME,
     luaopen_coroutine,
     {"close", "create", "isyieldable", "resume", "running", "status", "wrap", "yield"}},
    {LUA_OSLIBNAME,
     luaopen_os,
     {"clock", "date", "difftime", "time"}}, /* the last: with a clock alone */
};

typedef struct building {
    const dc_sandbox_options *o;
    dc_rt *rt;
    dc_status status; /* of dc_attach */
} building;

/* ---- memory of the state ---------------------------------------------------------------------- */

/*
 * In front of the state's allocator, which gets its place back when the state closes. Where Lua has no memory to call the
 * finalizer that does it, this one serves to the end; so it lies in no userdata, and the last block that is freed, the
 * state's own, takes it along.
 *
 * Lua answers a refusal with a whole collection and asks again. Were it enough that this frees a little, a script at its
 * limit would collect for each few objects; so after a refusal there has to be an eighth of the limit free.
 */
typedef struct limited {
    lua_Alloc fn;
    void *ctx;
    size_t used, most;
    bool stands; /* it is the state's allocator */
    bool refused;
    const lua_State *main; /* in the state's own block */
} limited;

static void free_limit(limited *m)
{
    m->fn(m->ctx, m, sizeof *m, 0);
}

static void *allocate(void *ctx, void *block, size_t had, size_t want)
{
    limited *m = ctx;
    if (block == NULL)
        had = 0; /* what is in it then is a kind of object */
    if (want > had) {
        const size_t most = m->refused ? m->most - m->most / 8 : m->most;
        m->refused = m->used > most || want - had > most - m->used;
        if (m->refused)
            return NULL;
    }
    const uintptr_t at = (uintptr_t)block, main = (uintptr_t)m->main;
    const bool last = want == 0 && block != NULL && main >= at && main - at < had;
    void *p = m->fn(m->ctx, block, had, want);
    if (p != NULL || want == 0)
        m->used += want - had;
    if (last)
        free_limit(m);
    return p;
}

static int l_unlimited(lua_State *L)
{
    limited **at = lua_touserdata(L, 1), *m = *at;
    *at = NULL;
    if (m == NULL)
        return 0;
    if (m->stands)
        lua_setallocf(L, m->fn, m->ctx);
    free_limit(m);
    return 0;
}

/* Leaves in the registry a userdata that ends the limit. */
static limited *prepare_limit(lua_State *L)
{
    limited **at = lua_newuserdatauv(L, sizeof(limited *), 0);
    *at = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, l_unlimited);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, at);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    void *ctx;
    const lua_Alloc fn = lua_getallocf(L, &ctx);
    limited *m = fn(ctx, NULL, 0, sizeof *m);
    if (m == NULL)
        luaL_error(L, "not enough memory");
    *m = (limited){.fn = fn, .ctx = ctx, .main = lua_tothread(L, -1)};
    lua_pop(L, 1);
    return *at = m;
}

static void limit_memory(lua_State *L, limited *m, size_t most)
{
    m->stands = true;
    m->used = (size_t)lua_gc(L, LUA_GCCOUNT) * 1024 + (size_t)lua_gc(L, LUA_GCCOUNTB);
    m->most = most;
    lua_setallocf(L, allocate, m);
}

/* ---- globals ---------------------------------------------------------------------------------- */

static void set_globals(lua_State *L, int table)
{
    lua_pushvalue(L, table);
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
}

/* The library, opened, becomes what its row names of it; the base library lies in globals of its own. */
static void open_library(lua_State *L, size_t row, int globals)
{
    const int top = lua_gettop(L);
    lua_newtable(L);
    set_globals(L, top + 1);
    lua_pushcfunction(L, allowed[row].open);
    lua_pushstring(L, allowed[row].library);
    lua_call(L, 1, 1);
    set_globals(L, globals);
    const bool base = *allowed[row].library == '\0';
    if (base)
        lua_pushvalue(L, globals);
    else
        lua_newtable(L);
    for (const char *const *name = allowed[row].names; *name != NULL; name++) {
        lua_getfield(L, top + 2, *name);
        lua_setfield(L, -2, *name);
    }
    lua_setfield(L, globals, base ? LUA_GNAME : allowed[row].library);
    lua_settop(L, top);
}

/*
 * The metatable of strings, which luaopen_string has just made: "s":upper() finds functions of a table that no script
 * holds, and the metatable is not given out. Without a `dump` a function's text is nowhere.
 */
static void protect_strings(lua_State *L, int globals)
{
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    lua_newtable(L);
    lua_getfield(L, globals, LUA_STRLIBNAME);
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, -6);
    }
    lua_pop(L, 1);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 2);
}

/* Not by time and address, which the numbers would tell: from the context's seed. */
static void seed_random(lua_State *L, int globals, const dc_rt *rt)
{
    lua_getfield(L, globals, LUA_MATHLIBNAME);
    lua_getfield(L, -1, "randomseed");
    lua_pushinteger(L, (lua_Integer)rt->opt.seed);
    lua_call(L, 1, 0);
    lua_pop(L, 1);
}

/* Argument: the building. */
static int build_globals(lua_State *L)
{
    building *b = lua_touserdata(L, 1);
    luaL_checkstack(L, 20, "sandbox");
    lua_newtable(L);
    const int globals = lua_gettop(L);
    const size_t n = DC_COUNTOF(allowed) - (b->o->clock ? 0 : 1);
    for (size_t i = 0; i < n; i++)
        open_library(L, i, globals);
    dc_sandbox_state *s = lua_newuserdatauv(L, sizeof *s, 0);
    *s = (dc_sandbox_state){.rt = b->rt,
                            .print = b->o->print,
                            .print_ctx = b->o->print_ctx,
                            .require = b->o->require,
                            .require_ctx = b->o->require_ctx};
    dc_sandbox_base(L, globals, lua_gettop(L));
    protect_strings(L, globals);
    seed_random(L, globals, b->rt);
    limited *m = prepare_limit(L);
    set_globals(L, globals);
    dc_dsl_capture(L);
    b->status = dc_attach(L, b->rt);
    if (b->status != DC_OK)
        return luaL_error(L, "not attached");
    if (b->o->memory_limit > 0)
        limit_memory(L, m, b->o->memory_limit);
    return 0;
}

static int forget(lua_State *L)
{
    dc_dsl_release(L);
    return 0;
}

/* Arguments: the building, its globals, "" and the metatable that strings had. Puts those back if it fails. */
static int replace_globals(lua_State *L)
{
    building *b = lua_touserdata(L, 1);
    lua_pushcfunction(L, build_globals);
    lua_pushvalue(L, 1);
    if (lua_pcall(L, 1, 0, 0) == LUA_OK) {
        b->status = DC_OK;
        return 0;
    }
    if (b->status == DC_OK)
        b->status = DC_E_NOMEM;
    set_globals(L, 2);
    lua_pushvalue(L, 4);
    lua_setmetatable(L, 3);
    lua_pushcfunction(L, forget);
    lua_pcall(L, 0, 0, 0);
    return 0;
}

static int push_and_replace(lua_State *L)
{
    lua_pushglobaltable(L);
    lua_pushliteral(L, "");
    if (!lua_getmetatable(L, 3))
        lua_pushnil(L);
    return replace_globals(L);
}

/* ---- the entry -------------------------------------------------------------------------------- */

/* Those of a host that was compiled with an earlier header; a later one may set nothing that we do not know. */
static bool read_options(const dc_sandbox_options *given, dc_sandbox_options *out)
{
    const dc_sandbox_options dflt = DC_SANDBOX_INIT;
    const unsigned char *bytes = (const unsigned char *)given;
    *out = dflt;
    if (given == NULL || given->size < offsetof(dc_sandbox_options, read))
        return false;
    memcpy(out, given, given->size < sizeof dflt ? given->size : sizeof dflt);
    for (size_t i = sizeof dflt; i < given->size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

typedef struct folders {
    const dc_sandbox_options *o;
    dc_folders *out;
} folders;

static dc_status open_folders(dc_job *j, void *arg)
{
    folders *f = arg;
    const dc_sandbox_options *o = f->o;
    if (!dc_opts_files(j->opt) &&
        ((o->read != NULL && *o->read != NULL) || (o->write != NULL && *o->write != NULL)))
        return dc_fail(
            j, DC_ERR_OPTION,
            &(dc_fact){.word = {o->read != NULL && *o->read != NULL ? "read" : "write",
                                "folders, where no files may be opened (DC_ALLOW_COMPUTE)"}});
    return dc_folders_new(j, o->read, o->write, &f->out);
}

static dc_status sandbox_here(lua_State *L, dc_rt *rt, const dc_sandbox_options *o, bool fits)
{
    dc_err_clear(&rt->job.err);
    if (!fits)
        return dc_fail(&rt->job, DC_ERR_OPTION,
                       &(dc_fact){.word = {"dc_sandbox_options.size",
                                           "not that of this version or an earlier one; "
                                           "DC_SANDBOX_INIT sets it"}});
    if (rt->stop_lua != NULL)
        return dc_failf(&rt->job, DC_ERR_REENTER, NULL, "another lua_State has this context");
    folders f = {.o = o};
    const dc_status opened = dc_protect(&rt->job, open_folders, &f);
    if (opened != DC_OK)
        return opened;
    building b = {.o = o, .rt = rt, .status = DC_OK};
    if (!lua_checkstack(L, 8))
        b.status = dc_fail(&rt->job, DC_ERR_NOMEM, NULL);
    if (b.status == DC_OK) {
        lua_pushcfunction(L, push_and_replace);
        lua_pushlightuserdata(L, &b);
        if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
            lua_pop(L, 1);
            b.status = DC_E_NOMEM;
        }
        if (b.status == DC_E_NOMEM)
            dc_fail(&rt->job, DC_ERR_NOMEM, NULL);
    }
    if (b.status != DC_OK) {
        dc_folders_free(f.out);
        return b.status;
    }
    rt->folders = f.out;
    rt->job.folders = f.out;
    return DC_OK;
}

DC_API dc_status dc_sandbox(lua_State *L, const dc_sandbox_options *options)
{
    dc_sandbox_options o;
    bool first;
    const bool fits = read_options(options, &o);
    dc_rt *rt = o.context;
    if (L == NULL || rt == NULL || rt->broken || !dc_job_enter(&rt->job, &first))
        return DC_E_STATE;
    const dc_status status = sandbox_here(L, rt, &o, fits);
    dc_job_leave(&rt->job, first);
    return status;
}

/* ---- running ---------------------------------------------------------------------------------- */

typedef struct running {
    const char *name, *text;
    size_t n;
    int64_t ms;
    dc_status status;
} running;

/* Fields of an error value that are shown, the bytes of one, and how many are looked at. */
enum { ERROR_FIELDS = 8, ERROR_FIELD = 120, ERROR_LOOK = 64 };

/* A field of an error value, "name = value"; false where one of both is no text, number or truth value. */
static bool field_text(lua_State *L, int key, char text[ERROR_FIELD])
{
    const int value = key + 1;
    char of[2][ERROR_FIELD / 2 - 2];
    for (int i = 0; i < 2; i++) {
        const int type = lua_type(L, key + i);
        if (type == LUA_TBOOLEAN) {
            snprintf(of[i], sizeof of[i], "%s", lua_toboolean(L, key + i) ? "true" : "false");
        } else if (type == LUA_TSTRING || type == LUA_TNUMBER) {
            lua_pushvalue(L, key + i); /* lua_tostring would change a key that lua_next needs */
            snprintf(of[i], sizeof of[i], "%s", lua_tostring(L, -1));
            lua_pop(L, 1);
        } else {
            return false;
        }
    }
    const char *quote = lua_type(L, value) == LUA_TSTRING ? "\"" : "";
    snprintf(text, ERROR_FIELD, "%s = %s%s%s", of[0], quote, of[1], quote);
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The table on top becomes a text of its first fields. They are read raw: a script's metatable has no say. */
static void table_to_text(lua_State *L)
{
    char field[ERROR_FIELDS][ERROR_FIELD];
    size_t n = 0;
    const int table = lua_gettop(L);
    lua_pushnil(L);
    for (int i = 0; i < ERROR_LOOK && n < ERROR_FIELDS && lua_next(L, table); i++) {
        if (field_text(L, table + 1, field[n]))
            n++;
        lua_settop(L, table + 1);
    }
    lua_settop(L, table);
    qsort(field, n, sizeof *field, by_text);
    lua_pushliteral(L, "an error value that is a table");
    for (size_t i = 0; i < n; i++) {
        lua_pushstring(L, i == 0 ? ": " : ", ");
        lua_pushstring(L, field[i]);
        lua_concat(L, 3);
    }
    lua_remove(L, -2);
}

/* The error value on top becomes a text, and nothing of the script runs for it. */
static void to_text(lua_State *L)
{
    if (lua_type(L, -1) == LUA_TTABLE) {
        lua_pushliteral(L, "message"); /* an error of deepc has its text in a field */
        if (lua_rawget(L, -2) == LUA_TSTRING) {
            lua_remove(L, -2);
        } else {
            lua_pop(L, 1);
            table_to_text(L);
        }
    }
    if (lua_type(L, -1) != LUA_TSTRING) {
        lua_pushfstring(L, "an error value that is no text (%s)", luaL_typename(L, -1));
        lua_remove(L, -2);
    }
}

static int run_text(lua_State *L)
{
    running *r = lua_touserdata(L, 1);
    r->status = DC_E_VALUE;
    lua_pushfstring(L, "=%s", r->name);
    int status = dc_sandbox_load_text(L, r->text, r->n, lua_tostring(L, -1));
    if (status == LUA_OK)
        status = dc_pcall(L, 0, 0, 0, r->ms);
    if (status == LUA_OK) {
        r->status = DC_OK;
        return 0;
    }
    if (status == LUA_ERRMEM)
        r->status = DC_E_NOMEM;
    if (status == DC_E_STOPPED)
        r->status = DC_E_STOPPED;
    to_text(L);
    return 1;
}

DC_API dc_status dc_sandbox_run(lua_State *L, const char *name, const char *text, size_t n,
                                int64_t ms)
{
    running r = {name, text, n, ms, DC_E_NOMEM};
    if (L == NULL || !lua_checkstack(L, 8))
        return DC_E_STATE;
    const dc_rt *rt = dc_dsl_rt(L);
    if (rt != NULL && dc_job_elsewhere(&rt->job))
        return DC_E_STATE;
    if (name == NULL || text == NULL)
        return DC_E_VALUE;
    const int top = lua_gettop(L);
    lua_pushcfunction(L, run_text);
    lua_pushlightuserdata(L, &r);
    if (lua_pcall(L, 1, LUA_MULTRET, 0) != LUA_OK)
        r.status = DC_E_NOMEM; /* Lua's text of it is on top */
    if (r.status == DC_OK)
        lua_settop(L, top);
    return r.status;
}
