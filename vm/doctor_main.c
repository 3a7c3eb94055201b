#define _GNU_SOURCE /* dlinfo, nftw, sched_getaffinity */
#include "vm/doctor_main.h"

#include "backends/cpu/toolchain.h"
#include "backends/registry.h"
#include "core/base/shown.h"
#include "dsl/dsl.h"
#include "jit/jit.h"
#include "vm/deepc.h"
#include "vm/doctor_run.h"
#include "vm/luaerror.h"
#include "vm/prompt.h"
#include "vm/say.h"
#include "vm/sink.h"

#include <lauxlib.h>
#include <lualib.h>

#include <dlfcn.h>
#include <ftw.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* ---- devices --------------------------------------------------------------------------------- */

static void print_device(void *ctx, const char *name, bool usable, const char *line)
{
    DC_UNUSED(ctx);
    char shown[1000]; /* on one line, whatever a driver calls its device */
    dc_shown_put(shown, sizeof shown, line, strlen(line), false);
    printf("%s\t%d\t%s\n", name, usable, shown);
    fflush(stdout); /* the next may not come back */
}

/* devices(kind): prints a line for each: its name, 1 or 0, what it is or why it is absent. */
static int l_devices(lua_State *L)
{
    dc_opts opt;
    const char *bad;
    dc_opts_init(&opt, &bad);
    dc_backend_list(&opt, luaL_checkstring(L, 1), print_device, NULL);
    return 0;
}

/* ---- libraries ------------------------------------------------------------------------------- */

/* What a library says of its version; NULL: it has no such function. */
static const char *ask_version(void *handle, const char *symbol, const char *form, char *text,
                               int size)
{
    int a = 0, b = 0;
    union { /* a function that dlsym has found */
        void *address;
        const char *(*text)(void *none);
        int (*one)(int *);
        int (*two)(int *, int *);
        int (*name)(char *, int *);
    } ask = {.address = dlsym(handle, symbol)};
    if (ask.address == NULL)
        return NULL;
    if (strcmp(form, "text") == 0)
        return ask.text(NULL);
    if (strcmp(form, "name") == 0)
        return ask.name(text, &size) == 0 ? text : NULL;
    if (strcmp(form, "one") == 0 && ask.one(&a) == 0)
        snprintf(text, (size_t)size, "%d", a);
    else if (strcmp(form, "two") == 0 && ask.two(&a, &b) == 0)
        snprintf(text, (size_t)size, "%d.%d", a, b);
    else
        return NULL;
    return text;
}

/* library(name, symbol, form): opens it; gives its file and what it says of its version, or nil and why not. */
static int l_library(lua_State *L)
{
    char real[4096], text[8192] = ""; /* MPI_MAX_LIBRARY_VERSION_STRING */
    struct link_map *map = NULL;
    void *handle = dlopen(luaL_checkstring(L, 1), RTLD_LAZY | RTLD_LOCAL);
    if (handle == NULL || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) {
        lua_pushnil(L);
        lua_pushstring(L, dlerror());
        return 2;
    }
    lua_pushstring(L, realpath(map->l_name, real) != NULL ? real : map->l_name);
    const char *symbol = luaL_optstring(L, 2, NULL);
    lua_pushstring(L, symbol == NULL
                          ? NULL
                          : ask_version(handle, symbol, luaL_checkstring(L, 3), text, sizeof text));
    return 2;
}

/* ---- the machine ----------------------------------------------------------------------------- */

static int l_now(lua_State *L)
{
    lua_pushnumber(L, (double)dc_clock_ns() * 1e-9);
    return 1;
}

/* cores(): those that this process may use, those there are. */
static int l_cores(lua_State *L)
{
    cpu_set_t set;
    const long all = sysconf(_SC_NPROCESSORS_ONLN);
    const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
    lua_pushinteger(L, known ? CPU_COUNT(&set) : all);
    lua_pushinteger(L, all);
    return 2;
}

/* cache(): a table about the cache on disk. */
static int l_cache(lua_State *L)
{
    dc_cache_report r;
    dc_opts opt;
    const char *bad;
    dc_opts_init(&opt, &bad);
    dc_cache_look(&opt, false, &r);
    lua_createtable(L, 0, 5);
    lua_pushstring(L, r.path);
    lua_setfield(L, -2, "path");
    lua_pushstring(L, r.why);
    lua_setfield(L, -2, "why");
    lua_pushinteger(L, (lua_Integer)r.files);
    lua_setfield(L, -2, "files");
    lua_pushinteger(L, (lua_Integer)r.bytes);
    lua_setfield(L, -2, "bytes");
    lua_pushinteger(L, (lua_Integer)r.most);
    lua_setfield(L, -2, "most");
    return 1;
}

static void add_setting(void *ctx, const char *env, const char *dflt, const char *now,
                        const char *help)
{
    lua_State *L = ctx;
    DC_UNUSED(help);
    if (strcmp(dflt, now) == 0)
        return;
    lua_pushfstring(L, "%s=%s", env, now);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* settings(): "DEEPC_DEVICE=eval" of those that are no default. */
static int l_settings(lua_State *L)
{
    dc_opts opt;
    const char *bad;
    dc_opts_init(&opt, &bad);
    lua_newtable(L);
    dc_opts_each(&opt, add_setting, L);
    return 1;
}

/* program(name): its file, by PATH, or nil. */
static int l_program(lua_State *L)
{
    char path[1024];
    const bool found = dc_toolchain_find_program(luaL_checkstring(L, 1), path, sizeof path);
    lua_pushstring(L, found ? path : NULL);
    return 1;
}

/* folder(): a new one for temporary files. */
static int l_folder(lua_State *L)
{
    char path[512];
    snprintf(path, sizeof path, "%s/deepc-doctor-XXXXXX", dc_opts_temporary());
    lua_pushstring(L, mkdtemp(path));
    return 1;
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    DC_UNUSED(s);
    DC_UNUSED(kind);
    DC_UNUSED(at);
    remove(path);
    return 0;
}

/* remove(folder): with all that is in it. */
static int l_remove(lua_State *L)
{
    nftw(luaL_checkstring(L, 1), remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return 0;
}

/* ---- the report ------------------------------------------------------------------------------ */

static const luaL_Reg functions[] = {
    {"run", dc_doctor_run}, {"devices", l_devices},   {"library", l_library}, {"now", l_now},
    {"cores", l_cores},     {"cache", l_cache},       {"program", l_program}, {"folder", l_folder},
    {"remove", l_remove},   {"settings", l_settings}, {NULL, NULL},
};

static void push_names(lua_State *L, const char *const *name)
{
    lua_newtable(L);
    for (size_t i = 0; name[i] != NULL; i++) {
        lua_pushstring(L, name[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static void push_system(lua_State *L)
{
    char exe[4096];
    const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe);
    luaL_newlib(L, functions);
    lua_pushlstring(L, exe, n > 0 ? (size_t)n : 0);
    lua_setfield(L, -2, "exe");
    lua_pushliteral(L, DC_VERSION);
    lua_setfield(L, -2, "version");
    lua_pushliteral(L, LUA_RELEASE);
    lua_setfield(L, -2, "lua");
    push_names(L, dc_toolchain_llvm);
    lua_setfield(L, -2, "llvm");
    push_names(L, dc_edit_libraries);
    lua_setfield(L, -2, "edit");
}

typedef struct request {
    int argc;
    char **argv;
    dc_rt *rt;
    int status;
} request;

/* deepc.doctor's run(system, arguments): the exit status. */
static int tell(lua_State *L)
{
    request *r = lua_touserdata(L, 1);
    luaL_openlibs(L);
    if (dc_attach(L, r->rt) != DC_OK)
        return luaL_error(L, "%s", dc_errmsg(r->rt));
    lua_getglobal(L, "require");
    lua_pushliteral(L, "deepc.doctor");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "run");
    push_system(L);
    lua_createtable(L, r->argc, 0);
    for (int i = 0; i < r->argc; i++) {
        lua_pushstring(L, r->argv[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_call(L, 2, 1);
    r->status = (int)luaL_checkinteger(L, -1);
    return 0;
}

int dc_doctor_main(int argc, char **argv)
{
    request r = {.argc = argc, .argv = argv, .status = 1};
    const bool part = argc >= 1 && strcmp(argv[0], "--part") == 0;
    const bool computes = argc >= 2 && strcmp(argv[1], "test") == 0;
    dc_config cfg = DC_CONFIG_INIT;
    cfg.log = dc_sink_stderr;
    cfg.device = part && computes ? NULL : "eval"; /* the variable says which one */
    if (part)
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* its output is for nobody else */
    if (dc_open(&cfg, &r.rt) != DC_OK) {
        dc_sayf(stderr, "deepc: %s\n", dc_errmsg(r.rt));
        dc_close(r.rt);
        return 1;
    }
    lua_State *L = luaL_newstate();
    if (L == NULL) {
        fputs("deepc: out of memory\n", stderr);
        dc_close(r.rt);
        return 1;
    }
    lua_pushcfunction(L, dc_luaerror_handler);
    lua_pushcfunction(L, tell);
    lua_pushlightuserdata(L, &r);
    if (lua_pcall(L, 1, 0, 1) != LUA_OK) {
        dc_luaerror e;
        dc_luaerror_read(L, -1, &e);
        dc_sayf(stderr, "deepc: %.*s\n", (int)e.n, e.text);
        r.status = 1;
    }
    const bool attached = dc_dsl_rt(L) != NULL;
    lua_close(L);
    if (!attached)
        dc_close(r.rt);
    return r.status;
}
