/*
 * Hosts for bench/embedding, and what measures them.
 *
 *   embedding measure N PROGRAM ARGS...   runs it N times: the best seconds, and the most memory in KiB
 *   embedding nothing                     a process that does nothing, for comparison
 *   embedding function FILE               with FUNCTION: an exported function is loaded and called
 *   embedding lua FILE                    with LUA: a script runs in a lua_State of the host
 *   embedding sandbox FILE                the same in a sandbox
 */
#define _DEFAULT_SOURCE /* wait4 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(LUA) || defined(FUNCTION)
#include <deepc.h>

static int failed(const char *why)
{
    fprintf(stderr, "embedding: %s\n", why);
    return EXIT_FAILURE;
}
#endif

#ifdef FUNCTION
static int call_function(const char *file)
{
    static float x[64 * 64], y[64];
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *ctx = NULL;
    dc_function *fn = NULL;
    const dc_array in = {DC_F32, 2, {64, 64}, x, sizeof x};
    dc_array out = {.data = y, .bytes = sizeof y};
    if (dc_open(&cfg, &ctx) != DC_OK || dc_load(ctx, file, &fn) != DC_OK ||
        dc_call(fn, &in, 1, &out, 1) != DC_OK)
        return failed(dc_errmsg(ctx));
    dc_close(ctx);
    return EXIT_SUCCESS;
}
#endif

#ifdef LUA
#include <lauxlib.h>
#include <lualib.h>

static int run_lua(const char *file)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *ctx = NULL;
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    if (dc_open(&cfg, &ctx) != DC_OK || dc_attach(L, ctx) != DC_OK)
        return failed(dc_errmsg(ctx));
    if (luaL_dofile(L, file) != LUA_OK)
        return failed(lua_tostring(L, -1));
    lua_close(L);
    return EXIT_SUCCESS;
}

static int run_sandbox(const char *file)
{
    static char text[10000];
    dc_config cfg = DC_CONFIG_INIT;
    dc_sandbox_options o = DC_SANDBOX_INIT;
    lua_State *L = luaL_newstate();
    FILE *f = fopen(file, "r");
    const size_t n = f != NULL ? fread(text, 1, sizeof text, f) : 0;
    if (dc_open(&cfg, &o.context) != DC_OK || dc_sandbox(L, &o) != DC_OK)
        return failed(dc_errmsg(o.context));
    if (dc_sandbox_run(L, "script", text, n, 0) != DC_OK)
        return failed(lua_tostring(L, -1));
    lua_close(L);
    return EXIT_SUCCESS;
}
#endif

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int measure(int times, char **argv)
{
    double best = 1e9;
    long most = 0;
    for (int i = 0; i < times; i++) {
        struct rusage usage;
        int status;
        const double from = now();
        const pid_t child = fork();
        if (child == 0) {
            execvp(argv[0], argv);
            _exit(127);
        }
        if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0)
            return EXIT_FAILURE;
        const double took = now() - from;
        best = took < best ? took : best;
        most = usage.ru_maxrss > most ? usage.ru_maxrss : most;
    }
    printf("%.1f %.1f\n", best * 1e3, (double)most / 1024);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "measure") == 0 && argc > 3)
        return measure(atoi(argv[2]), argv + 3);
    if (strcmp(what, "nothing") == 0)
        return EXIT_SUCCESS;
#ifdef FUNCTION
    if (strcmp(what, "function") == 0 && argc > 2)
        return call_function(argv[2]);
#endif
#ifdef LUA
    if (strcmp(what, "lua") == 0 && argc > 2)
        return run_lua(argv[2]);
    if (strcmp(what, "sandbox") == 0 && argc > 2)
        return run_sandbox(argv[2]);
#endif
    fprintf(stderr, "embedding: no '%s' here\n", what);
    return EXIT_FAILURE;
}
