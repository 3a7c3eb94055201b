/*
 * Every function of deepc.h with what it cannot take: NULL, a context that failed or is broken, arrays of wrong
 * ranks, sizes, types and rooms. Each returns a status, or that there is nothing; nothing changes. The rows below are
 * compared with the maps of what the libraries export, and each description in the header says from where the
 * function may be called and whether it raises.
 */
#define _POSIX_C_SOURCE 200809L /* mkstemp */
#include "core/runtime/rt.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdlib.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/unit/rng.h"

static char path[] = "/tmp/deepc-bad-calls-XXXXXX";
static dc_rt *good, *failed, *broken; /* contexts */
static dc_function *fn;               /* of `good` */

static const char code[] =
    "local dc = require 'deepc'\n"
    "local s = dc.state('f32[2]', 1)\n"
    "dc.fn('f(x: f32[n], k: i32[]) -> f32[n], f32[]', function(x, k)\n"
    "  return x * s:sum(), x:sum() * k:cast 'f32' end):export(path, { n = 2 }, { n = 3 })\n";

static dc_rt *open_context(const char *device)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = NULL;
    cfg.device = device;
    dc_open(&cfg, &rt);
    return rt;
}

static void set_up(void)
{
    const int fd = mkstemp(path);
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    lua_pushstring(L, path);
    lua_setglobal(L, "path");
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK(dc_attach(L, open_context("eval")) == DC_OK && luaL_dostring(L, code) == LUA_OK);
    lua_close(L);
    good = open_context("eval");
    failed = open_context("abacus");
    broken = open_context("eval");
    broken->broken = true; /* as after DC_E_BUG */
    if (!CHECK(dc_load(good, path, &fn) == DC_OK))
        exit(t_done());
}

/* The function computes what it did. */
static void check_unchanged(void)
{
    float x[2] = {1, 2}, y[2] = {0, 0}, sum = 0;
    int32_t k = 10;
    const dc_array in[2] = {{DC_F32, 1, {2}, x, sizeof x}, {DC_I32, 0, {0}, &k, sizeof k}};
    dc_array out[2] = {{.data = y, .bytes = sizeof y}, {.data = &sum, .bytes = sizeof sum}};
    CHECK(dc_call(fn, in, 2, out, 2) == DC_OK);
    CHECK(y[0] == 2 && y[1] == 4 && sum == 30);
}

/* ---- one function each ----------------------------------------------------------------------- */

static void api_level(void)
{
    CHECK_EQ(dc_api_level(), DC_API_LEVEL);
}

static void open_(void)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = NULL;
    CHECK(dc_open(NULL, NULL) == DC_E_VALUE && dc_open(&cfg, NULL) == DC_E_VALUE);
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, sizeof(dc_config) - 1,
                                   sizeof(dc_config) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct {
            dc_config cfg;
            unsigned char more[64];
        } large = {DC_CONFIG_INIT, {1}};
        large.cfg.compile = "off";
        large.cfg.size = sizes[i];
        const dc_status s = dc_open(&large.cfg, &rt);
        CHECK(s == DC_E_VALUE || (i == 3 && s == DC_OK));
        CHECK(s == DC_OK || strstr(dc_errmsg(rt), "dc_config.size") != NULL);
        dc_close(rt);
    }
    cfg.threads = -1;
    CHECK(dc_open(&cfg, &rt) == DC_E_VALUE);
    dc_close(rt);
    cfg.threads = 0;
    cfg.allow = UINT64_MAX;
    CHECK(dc_open(&cfg, &rt) == DC_E_VALUE);
    dc_close(rt);
    char longer[5000];
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    const char **const texts[] = {&cfg.device, &cfg.debug, &cfg.compile, &cfg.cache};
    for (int i = 0; i < 4; i++) {
        cfg = (dc_config)DC_CONFIG_INIT;
        *texts[i] = longer;
        CHECK(dc_open(&cfg, &rt) == DC_E_VALUE && strstr(dc_errmsg(rt), "too long") != NULL);
        dc_close(rt);
    }
}

static void close_(void)
{
    dc_close(NULL);
}

static void interrupt(void)
{
    dc_interrupt(NULL);
    dc_interrupt(failed);
    dc_interrupt(broken);
}

static void stop(void)
{
    dc_stop(NULL);
    dc_stop(failed);
    dc_stop(broken);
}

static void resume(void)
{
    dc_resume(NULL);
    dc_resume(failed);
    dc_resume(broken);
}

static void deadline(void)
{
    dc_deadline(NULL, 5);
    dc_deadline(failed, INT64_MAX);
    dc_deadline(good, INT64_MIN);
    check_unchanged();
    dc_deadline(good, 0);
}

static void errmsg(void)
{
    CHECK(strlen(dc_errmsg(NULL)) > 0 && strlen(dc_errmsg(failed)) > 0 &&
          strlen(dc_errmsg(broken)) > 0);
}

static void attach(void)
{
    lua_State *L = luaL_newstate();
    CHECK(dc_attach(NULL, good) == DC_E_STATE && dc_attach(L, NULL) == DC_E_STATE);
    CHECK(dc_attach(NULL, NULL) == DC_E_STATE);
    CHECK(dc_attach(L, failed) == DC_E_STATE && dc_attach(L, broken) == DC_E_STATE);
    CHECK_EQ(lua_gettop(L), 0);
    dc_rt *rt = open_context("eval"), *other = open_context("eval");
    luaL_openlibs(L);
    CHECK(dc_attach(L, rt) == DC_OK && dc_attach(L, rt) == DC_E_STATE &&
          dc_attach(L, other) == DC_E_STATE);
    lua_State *second = luaL_newstate();
    CHECK(dc_attach(second, rt) == DC_E_STATE);
    lua_close(second);
    dc_close(rt); /* nothing: it is the state's */
    CHECK(luaL_dostring(L, "return require('deepc').ones 'f32[2]'") == LUA_OK);
    lua_close(L);
    dc_close(other);
}

static void error_text(void)
{
    char text[4];
    CHECK(dc_error_text(NULL, 1, text, sizeof text) > 3 && strlen(text) == 3);
    CHECK(dc_error_text(NULL, 1, NULL, 7) > 3);
}

static void pcall_(void)
{
    lua_State *L = luaL_newstate(); /* without a context */
    CHECK(dc_pcall(NULL, 0, 0, 0, 0) == DC_E_STATE);
    lua_pushboolean(L, 1);
    CHECK(dc_pcall(L, 0, 0, 0, 0) != LUA_OK && lua_gettop(L) == 1);
    CHECK(strstr(lua_tostring(L, 1), "not attached") != NULL);
    lua_close(L);
}

static void sandbox(void)
{
    lua_State *L = luaL_newstate();
    dc_sandbox_options o = DC_SANDBOX_INIT;
    CHECK(dc_sandbox(L, NULL) == DC_E_STATE && dc_sandbox(NULL, NULL) == DC_E_STATE);
    CHECK(dc_sandbox(L, &o) == DC_E_STATE);
    o.context = failed;
    CHECK(dc_sandbox(L, &o) == DC_E_STATE);
    o.context = broken;
    CHECK(dc_sandbox(L, &o) == DC_E_STATE);
    o.context = good;
    CHECK(dc_sandbox(NULL, &o) == DC_E_STATE);
    o.size = 3;
    CHECK(dc_sandbox(L, &o) != DC_OK);
    CHECK_EQ(lua_gettop(L), 0);
    lua_close(L);
}

static void sandbox_run(void)
{
    lua_State *L = luaL_newstate();
    CHECK(dc_sandbox_run(NULL, "a", "", 0, 0) == DC_E_STATE);
    CHECK(dc_sandbox_run(L, NULL, "", 0, 0) == DC_E_VALUE);
    CHECK(dc_sandbox_run(L, "a", NULL, 0, 0) == DC_E_VALUE);
    CHECK_EQ(lua_gettop(L), 0);
    lua_close(L);
}

static void load(void)
{
    dc_function *f = fn;
    CHECK(dc_load(NULL, path, &f) == DC_E_STATE && f == NULL);
    CHECK(dc_load(NULL, NULL, NULL) == DC_E_STATE);
    f = fn;
    CHECK(dc_load(good, NULL, &f) == DC_E_VALUE && f == NULL);
    CHECK(dc_load(good, path, NULL) == DC_E_VALUE);
    CHECK(strstr(dc_errmsg(good), "not NULL") != NULL);
    static const char *const paths[] = {"", "/", ".", "/dev/null", "/nonexistent/x"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        CHECK(dc_load(good, paths[i], &f) == DC_E_FILE && f == NULL);
    CHECK(dc_load(failed, path, &f) != DC_OK && f == NULL);
    CHECK(dc_load(broken, path, &f) != DC_OK && f == NULL);
}

static void load_beside(void)
{
    dc_function *f = fn;
    CHECK(dc_load_beside(NULL, path, fn, &f) == DC_E_STATE && f == NULL);
    CHECK(dc_load_beside(good, NULL, fn, &f) == DC_E_VALUE && f == NULL);
    CHECK(dc_load_beside(good, path, fn, NULL) == DC_E_VALUE);
    CHECK(dc_load_beside(good, "/nonexistent/x", fn, &f) == DC_E_FILE && f == NULL);
    CHECK(dc_load_beside(good, path, NULL, &f) == DC_OK && f != NULL);
    dc_unload(f);
}

static void unload(void)
{
    dc_unload(NULL);
}

static void call(void)
{
    float x[2] = {1, 2};
    dc_array a[2] = {{DC_F32, 1, {2}, x, sizeof x}, {DC_I32, 0, {0}, x, 4}},
             out[2] = {{.data = NULL}};
    CHECK(dc_call(NULL, a, 2, out, 2) == DC_E_STATE &&
          dc_call(NULL, NULL, 0, NULL, 0) == DC_E_STATE);
    CHECK(dc_call(fn, NULL, 2, out, 2) == DC_E_VALUE && dc_call(fn, a, 2, NULL, 2) == DC_E_VALUE);
    CHECK(dc_call(fn, NULL, SIZE_MAX, NULL, SIZE_MAX) == DC_E_VALUE);
    CHECK(dc_call(fn, NULL, 0, NULL, 0) == DC_E_TYPE);
    CHECK(dc_call(fn, a, 2, NULL, 0) == DC_E_VALUE && dc_call(fn, a, 1, out, 2) == DC_E_TYPE);
    good->broken = true;
    CHECK(dc_call(fn, a, 2, out, 2) != DC_OK);
    good->broken = false;
}

static void call_device(void)
{
    _Alignas(64) float x[2] = {1, 2}, k[1] = {0};
    dc_array a[2] = {{DC_F32, 1, {2}, x, sizeof x}, {DC_I32, 0, {0}, k, 4}},
             out[2] = {{.data = NULL}};
    CHECK(dc_call_device(NULL, a, 2, out, 2) == DC_E_STATE);
    CHECK(dc_call_device(fn, NULL, 2, out, 2) == DC_E_VALUE &&
          dc_call_device(fn, a, 2, NULL, 2) == DC_E_VALUE);
    CHECK(dc_call_device(fn, NULL, 0, NULL, 0) == DC_E_TYPE);
    a[0].data = (char *)x + 4;
    CHECK(dc_call_device(fn, a, 2, out, 2) == DC_E_VALUE);
    a[0].data = NULL;
    CHECK(dc_call_device(fn, a, 2, out, 2) == DC_E_VALUE);
    a[0].data = x;
    good->broken = true;
    CHECK(dc_call_device(fn, a, 2, out, 2) != DC_OK);
    good->broken = false;
}

static void wait_(void)
{
    CHECK(dc_wait(NULL) == DC_E_STATE && dc_wait(good) == DC_OK);
    CHECK(dc_wait(failed) != DC_OK && dc_wait(broken) != DC_OK);
}

static void ranks_new(void)
{
    dc_ranks *r = (dc_ranks *)(uintptr_t)1;
    CHECK(dc_ranks_new(2, NULL) == DC_E_VALUE);
    CHECK(dc_ranks_new(0, &r) == DC_E_VALUE && r == NULL);
    CHECK(dc_ranks_new(INT32_MIN, &r) == DC_E_VALUE && dc_ranks_new(INT32_MAX, &r) == DC_E_VALUE);
    CHECK(dc_ranks_new(DC_RANKS_MOST, &r) == DC_OK);
    dc_ranks_free(r);
}

static void ranks_free(void)
{
    dc_ranks_free(NULL);
}

/* A dim among the codes of sizes known at run time (core/base/extent.h) is no size, whatever it is multiplied by. */
static void check_dims(void)
{
    static const int64_t dims[] = {INT64_MIN, -1, (int64_t)1 << 62, ((int64_t)1 << 62) + 1, ((int64_t)1 << 62) + 8};
    _Alignas(64) char x[64] = {0};
    dc_rt *rt;
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    CHECK_EQ(dc_open(NULL, &rt), DC_OK);
    CHECK_EQ(dc_attach(L, rt), DC_OK);
    for (size_t i = 0; i < DC_COUNTOF(dims); i++)
        for (int zero = 0; zero < 2; zero++) {
            const dc_array a = {DC_I8, 1 + zero, {dims[i], 0}, x, sizeof x};
            CHECK(dc_push_array(L, &a, NULL, NULL) == DC_E_VALUE && lua_gettop(L) == 0);
            CHECK_STR(dc_errmsg(rt), "no type of a tensor\n  [DC0101; deepc explain DC0101]");
        }
    CHECK(luaL_dostring(L, "assert(require('deepc').ones 'f32[2]':sum():item() == 2)") == LUA_OK);
    lua_close(L);
}

static void push_array(void)
{
    lua_State *bare = luaL_newstate();
    _Alignas(64) float x[2] = {1, 2};
    const dc_array a = {DC_F32, 1, {2}, x, sizeof x};
    CHECK(dc_push_array(NULL, &a, NULL, NULL) == DC_E_STATE);
    CHECK(dc_push_array(bare, &a, NULL, NULL) == DC_E_STATE && lua_gettop(bare) == 0);
    lua_close(bare);
    check_dims();
}

static void to_array(void)
{
    lua_State *bare = luaL_newstate();
    dc_array a;
    CHECK(dc_to_array(NULL, 1, &a) == DC_E_STATE && dc_to_array(bare, 1, &a) == DC_E_STATE);
    CHECK(dc_to_array(bare, 1, NULL) == DC_E_STATE);
    lua_close(bare);
}

static void signature(void)
{
    CHECK_STR(dc_function_signature(NULL), "");
    CHECK_STR(dc_function_signature(fn), "f(x: f32[n], k: i32[]) -> f32[n], f32[]");
}

static void variants(void)
{
    CHECK_EQ(dc_function_variants(NULL), 0);
    CHECK_EQ(dc_function_variants(fn), 2);
}

static void argument(void)
{
    const char *name = "before";
    dc_array a = {DC_U8, 7, {1}, &a, 3};
    CHECK(!dc_function_argument(NULL, 0, 0, &name, &a) &&
          !dc_function_argument(fn, 2, 0, &name, &a));
    CHECK(!dc_function_argument(fn, 0, 2, &name, &a) &&
          !dc_function_argument(fn, SIZE_MAX, SIZE_MAX, &name, &a));
    CHECK(a.rank == 7);
    CHECK_STR(name, "before");
    CHECK(dc_function_argument(fn, 0, 0, NULL, NULL) &&
          dc_function_argument(fn, 1, 1, &name, NULL));
    CHECK_STR(name, "k");
}

static void result(void)
{
    dc_array a = {DC_U8, 7, {1}, &a, 3};
    CHECK(!dc_function_result(NULL, 0, 0, &a) && !dc_function_result(fn, 2, 0, &a));
    CHECK(!dc_function_result(fn, 0, 2, &a) && a.rank == 7);
    CHECK(dc_function_result(fn, 0, 0, NULL) && dc_function_result(fn, 0, 1, &a) && a.rank == 0);
}

static void cell(void)
{
    const char *name = NULL;
    dc_array a = {DC_U8, 7, {1}, &a, 3};
    CHECK(!dc_function_cell(NULL, 0, &name, &a) && !dc_function_cell(fn, 1, &name, &a));
    CHECK(!dc_function_cell(fn, SIZE_MAX, &name, &a) && a.rank == 7 && name == NULL);
    CHECK(dc_function_cell(fn, 0, NULL, NULL) && dc_function_cell(fn, 0, &name, &a) &&
          name != NULL);
}

static void get(void)
{
    const char *name = "";
    float v[2] = {5, 5};
    dc_array a = {.data = v, .bytes = sizeof v};
    CHECK(dc_function_cell(fn, 0, &name, NULL));
    CHECK(dc_function_get(NULL, name, &a) == DC_E_STATE &&
          dc_function_get(fn, NULL, &a) == DC_E_VALUE);
    CHECK(dc_function_get(fn, name, NULL) == DC_E_VALUE &&
          dc_function_get(fn, "none", &a) == DC_E_VALUE);
    a.bytes = 7;
    CHECK(dc_function_get(fn, name, &a) == DC_E_VALUE);
    a = (dc_array){.data = NULL, .bytes = 8};
    CHECK(dc_function_get(fn, name, &a) == DC_E_VALUE && v[0] == 5);
}

static void set(void)
{
    const char *name = "";
    float v[2] = {5, 5};
    const dc_array a = {DC_F32, 1, {2}, v, sizeof v};
    CHECK(dc_function_cell(fn, 0, &name, NULL));
    CHECK(dc_function_set(NULL, name, &a) == DC_E_STATE &&
          dc_function_set(fn, NULL, &a) == DC_E_VALUE);
    CHECK(dc_function_set(fn, name, NULL) == DC_E_VALUE &&
          dc_function_set(fn, "none", &a) == DC_E_VALUE);
    const dc_array bad[] = {{DC_F64, 1, {2}, v, sizeof v},    {DC_F32, 2, {2, 1}, v, sizeof v},
                            {DC_F32, 1, {1}, v, sizeof v},    {DC_F32, 1, {2}, v, 7},
                            {DC_F32, 1, {2}, NULL, sizeof v}, {DC_F32, -1, {2}, v, sizeof v},
                            {DC_F32, 99, {2}, v, sizeof v},   {(dc_dtype)77, 1, {2}, v, sizeof v},
                            {DC_F32, 1, {-2}, v, sizeof v}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(dc_function_set(fn, name, &bad[i]) == DC_E_TYPE);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*test)(void);
} functions[] = {
    {"dc_api_level", api_level},
    {"dc_open", open_},
    {"dc_close", close_},
    {"dc_errmsg", errmsg},
    {"dc_interrupt", interrupt},
    {"dc_stop", stop},
    {"dc_resume", resume},
    {"dc_deadline", deadline},
    {"dc_load", load},
    {"dc_load_beside", load_beside},
    {"dc_unload", unload},
    {"dc_call", call},
    {"dc_call_device", call_device},
    {"dc_wait", wait_},
    {"dc_ranks_new", ranks_new},
    {"dc_ranks_free", ranks_free},
    {"dc_function_signature", signature},
    {"dc_function_variants", variants},
    {"dc_function_argument", argument},
    {"dc_function_result", result},
    {"dc_function_cell", cell},
    {"dc_function_get", get},
    {"dc_function_set", set},
    {"dc_attach", attach},
    {"dc_error_text", error_text},
    {"dc_pcall", pcall_},
    {"dc_sandbox", sandbox},
    {"dc_sandbox_run", sandbox_run},
    {"dc_push_array", push_array},
    {"dc_to_array", to_array},
};
enum { COUNT = sizeof functions / sizeof *functions };

static char *read_text(const char *file)
{
    static char text[60000];
    FILE *f = fopen(file, "r");
    if (!CHECK(f != NULL))
        return strcpy(text, "");
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

/* Each name of the map, up to `end`, has a row; returns how many there are. */
static int compare_with(const char *map, const char *end)
{
    char *text = read_text(map);
    int n = 0;
    char *stop = end != NULL ? strstr(text, end) : NULL;
    if (stop != NULL)
        *stop = '\0';
    for (char *at = strstr(text, "global:"); at != NULL && (at = strstr(at, "    dc_")) != NULL;
         n++) {
        char name[60] = "";
        at += 4;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ";"), at);
        bool found = false;
        for (int i = 0; i < COUNT; i++)
            found = found || strcmp(functions[i].name, name) == 0;
        if (!CHECK(found))
            printf("%s is called by no row of this test\n", name);
    }
    return n;
}

/* Where a function is declared: on a line that begins with its type. */
static const char *declaration(const char *text, const char *name)
{
    char call[60];
    snprintf(call, sizeof call, "%s(", name);
    for (const char *at = text; (at = strstr(at, call)) != NULL; at++) {
        const char *line = at;
        while (line > text && line[-1] != '\n')
            line--;
        if (*line != ' ')
            return at;
    }
    return NULL;
}

/* The comment above the declaration, or above one that shares it, ends with "[...]". */
static void test_descriptions(void)
{
    const char *text = read_text("vm/deepc.h");
    for (int i = 0; i < COUNT; i++) {
        const char *at = declaration(text, functions[i].name), *end = NULL, *last = NULL;
        for (const char *p = text; at != NULL && p < at; p++) {
            end = strncmp(p, "raises nothing]", 15) == 0 ? p : end;
            last = strncmp(p, "*/", 2) == 0 ? p : last; /* comment that ends before it */
        }
        if (!CHECK(at != NULL && last != NULL && end != NULL && end < last && last - end < 40))
            printf("%s: the header does not say from where it may be called\n", functions[i].name);
    }
}

/* Random arrays: success or a status, and what is outside of the arrays stays. */
static void test_random(rng *r)
{
    static const int64_t dims[] = {
        0, -1, 1, 2, 3, 4, INT64_MAX, INT64_MIN, INT64_C(1) << 31, INT64_C(1) << 62};
    int fine = 0;
    for (int i = 0; i < 20000; i++) {
        float x[3] = {1, 2, 3}, y[3] = {0}, z[1];
        int32_t k = 2;
        dc_array in[3] = {{DC_F32, 1, {2 + (int64_t)(rng_next(r) % 2)}, x, sizeof x},
                          {DC_I32, 0, {0}, &k, sizeof k}};
        dc_array out[3] = {{.data = y, .bytes = sizeof y}, {.data = z, .bytes = sizeof z}};
        size_t nin = 2, nout = 2;
        dc_array *a = &in[rng_next(r) % 2], *b = &out[rng_next(r) % 2];
        switch (rng_next(r) % 10) {
        case 0:
            a->rank = (int)(rng_next(r) % 40) - 20;
            break;
        case 1:
            a->dtype = (dc_dtype)(rng_next(r) % 40);
            break;
        case 2:
            a->bytes = rng_next(r) % 13;
            break;
        case 3:
            nin = rng_next(r) % 4;
            break;
        case 4:
            nout = rng_next(r) % 4;
            break;
        case 5:
            b->bytes = rng_next(r) % 13;
            break;
        case 6:
            b->data = NULL;
            break;
        case 7:
            a->data = NULL;
            break;
        case 8:
            a->rank = 1 + (int)(rng_next(r) % 8); /* fall through */
        default:
            for (int q = 0; q < 8; q++)
                a->dim[q] = dims[rng_next(r) % 10];
        }
        const dc_status s = dc_call(fn, in, nin, out, nout);
        fine += s == DC_OK;
        if (!CHECK(s == DC_OK || s == DC_E_TYPE || s == DC_E_VALUE))
            printf("status %d: %s\n", (int)s, dc_errmsg(good));
        CHECK(s == DC_OK || strlen(dc_errmsg(good)) > 10);
    }
    CHECK(fine > 1000);
}

int main(int argc, char **argv)
{
    rng r = {rng_seed(argc, argv, 1)};
    set_up();
    CHECK_EQ(compare_with("vm/libdeepc.map", "DEEPC_PRIVATE_@") +
                 compare_with("vm/module.map", NULL),
             COUNT);
    test_descriptions();
    for (int i = 0; i < COUNT; i++) {
        functions[i].test();
        check_unchanged();
    }
    test_random(&r);
    check_unchanged();
    dc_close(good);
    dc_close(failed);
    broken->broken = false;
    dc_close(broken);
    remove(path);
    return t_done();
}
