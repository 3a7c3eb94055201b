/*
 * Every entry of deepc.h that needs memory, in a context whose host refuses it (dc_config.alloc): the n-th allocation
 * fails, for rising n, alone or with all that follow. The status is NOMEM, or the entry did without; then the same
 * entry succeeds in the same state, and nothing is lost. What closes, takes back or tells needs no memory at all.
 * (unit/test_nomem_host.c: dc_open, and compilations; unit/test_attach.c: allocations of the lua_State.)
 *
 *   test_nomem_entries [SEED | all [ENTRY]]
 */
#define _GNU_SOURCE /* mkdtemp */
#include "core/runtime/rt.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/nomem.h"

static char folder[] = "/tmp/deepc-entries-XXXXXX";
static char function_file[100];

/* ---- the host's memory ----------------------------------------------------------------------- */

static struct {
    _Atomic size_t bytes;
    _Atomic long n, refused;
    _Atomic bool armed;
    long first, last; /* these fail */
} host;

static void *give(void *ctx, void *block, size_t old_size, size_t new_size)
{
    (void)ctx;
    if (new_size == 0) {
        host.bytes -= old_size;
        __real_free(block);
        return NULL;
    }
    if (host.armed && new_size > old_size) {
        const long n = ++host.n;
        if (n >= host.first && n <= host.last) {
            host.refused++;
            return NULL;
        }
    }
    void *p = __real_realloc(block, new_size);
    if (p != NULL)
        host.bytes += new_size - old_size;
    return p;
}

static void arm(long first, bool alone)
{
    host.n = host.refused = 0;
    host.first = first;
    host.last = alone ? first : LONG_MAX;
    host.armed = true;
}

static bool disarm(void)
{
    host.armed = false;
    return host.refused > 0;
}

static void *lua_memory(void *ctx, void *block, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (new_size > 0)
        return __real_realloc(block, new_size);
    __real_free(block);
    return NULL;
}

/* ---- a host ---------------------------------------------------------------------------------- */

typedef struct world {
    const char *device;
    lua_State *L;
    dc_rt *ctx;
    dc_function *fn;
    bool owned; /* the state has the context */
} world;

static void open_context_of(world *w)
{
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = w->device;
    cfg.threads = 1;
    cfg.alloc = give;
    cfg.cache = "off";
    must(dc_open(&cfg, &w->ctx) == DC_OK, "dc_open");
}

static void open_apart(world *w)
{
    open_context_of(w);
    w->L = lua_newstate(lua_memory, NULL);
    luaL_openlibs(w->L);
}

static void open_attached(world *w)
{
    open_apart(w);
    must(dc_attach(w->L, w->ctx) == DC_OK, "dc_attach");
    w->owned = true;
}

/* Whatever there is, without a byte to be had. */
static void close_all(world *w)
{
    arm(1, false);
    dc_unload(w->fn);
    if (w->L != NULL)
        lua_close(w->L);
    if (!w->owned)
        dc_close(w->ctx);
    disarm();
    CHECK_EQ(host.bytes, 0);
    *w = (world){.device = w->device};
}

/* ---- entries --------------------------------------------------------------------------------- */

static const char works[] =
    "local dc = require 'deepc'\n"
    "local f = dc.fn('f(x: f32[n]) -> f32[n]', function(x) return x * 2 end)\n"
    "assert(f(dc.ones 'f32[2]'):sum():item() == 4)\n";

static const char training[] =
    "local dc, nn, optim = require 'deepc', require 'deepc.nn', require 'deepc.optim'\n"
    "local data, plot = require 'deepc.data', require 'deepc.plot'\n"
    "local net = nn.Sequential { nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2) }\n"
    "local opt = optim.Adam(net:parameters())\n"
    "local step = dc.fn('step(x: f32[n, 2], y: i32[n]) -> f32[]', function(x, y)\n"
    "  local loss = nn.cross_entropy(net(x), y) opt:step(loss) return loss end)\n"
    "local set = data.set(dc.ones 'f32[4, 2]', dc.zeros 'i32[4]')\n"
    "for x, y in set:batches { size = 2, shuffle = true } do assert(step(x, y):item() < 10) end\n"
    "local ck = dc.checkpoint(FOLDER .. '/ck', { model = net, opt = opt })\n"
    "ck:save { n = 1 } assert(ck:load().n == 1)\n"
    "dc.save(FOLDER .. '/st', net) dc.load(FOLDER .. '/st', net) dc.load(FOLDER .. '/st')\n"
    "dc.fn('g(x: f32[n, 2]) -> f32[n, 2]', function(x) return net(x) end):export(FOLDER .. '/fn', "
    "{ n = 1 })\n"
    "plot.lines(FOLDER .. '/x.png', { { y = { 1, 2 } } }, { width = 200, height = 200 })\n"
    "local job = step:start(dc.ones 'f32[2, 2]', dc.zeros 'i32[2]')\n"
    "while not job:poll { ms = 10 } do end\n"
    "assert(not pcall(function() return dc.ones 'f32[2]' + dc.ones 'f32[3]' end))\n"
    "return tostring(net) .. tostring(job:result()) .. step:explain()\n";

/* As a status: NOMEM where the error value says so. */
static dc_status status_of(lua_State *L, int status)
{
    char text[400] = "";
    if (status == LUA_OK)
        return DC_OK;
    dc_error_text(L, -1, text, sizeof text);
    if (strstr(text, "out of memory") != NULL || strstr(text, "not enough memory") != NULL)
        return DC_E_NOMEM;
    printf("%d: %s\n", status, text);
    return DC_E_BUG;
}

static dc_status run_for(world *w, const char *code, int64_t ms)
{
    must(luaL_loadstring(w->L, code) == LUA_OK, "a script");
    const dc_status status = status_of(w->L, dc_pcall(w->L, 0, 0, 0, ms));
    lua_settop(w->L, 0);
    return status;
}

static dc_status attach(world *w)
{
    const dc_status status = dc_attach(w->L, w->ctx);
    w->owned = status == DC_OK;
    return status;
}

static dc_status sandbox(world *w)
{
    const char *const list[] = {folder, "/usr", NULL};
    dc_sandbox_options o = DC_SANDBOX_INIT;
    o.context = w->ctx;
    o.read = o.write = list;
    o.memory_limit = (size_t)64 << 20;
    const dc_status status = dc_sandbox(w->L, &o);
    w->owned = status == DC_OK;
    if (w->owned) {
        lua_pushstring(w->L, folder);
        lua_setglobal(w->L, "FOLDER");
    }
    return status;
}

static void open_sandbox(world *w)
{
    open_apart(w);
    must(sandbox(w) == DC_OK, "dc_sandbox");
}

static void open_script(world *w)
{
    open_attached(w);
    lua_pushstring(w->L, folder);
    lua_setglobal(w->L, "FOLDER");
}

static dc_status call_script(world *w)
{
    return run_for(w, training, 0);
}

/* On a device whose memory is not the host's. */
static void open_far(world *w)
{
    static dc_device_ops far;
    open_context_of(w);
    far = *w->ctx->device->ops;
    far.host = false;
    w->ctx->device->ops = &far;
    w->L = lua_newstate(lua_memory, NULL);
    luaL_openlibs(w->L);
    must(dc_attach(w->L, w->ctx) == DC_OK, "dc_attach");
    w->owned = true;
}

static dc_status call_far(world *w)
{
    return run_for(w,
                   "local dc, data = require 'deepc', require 'deepc.data'\n"
                   "local n = dc.iota 'i32[10]'\n"
                   "for _, shuffle in ipairs { true, false } do\n"
                   "  local rows = 0\n"
                   "  for x, y in data.set(n * 2, n):batches { size = 4, shuffle = shuffle, last = "
                   "'keep' } do\n"
                   "    assert((x - y * 2):abs():sum():item() == 0)\n"
                   "    rows = rows + x.shape[1]\n"
                   "  end\n"
                   "  assert(rows == 10)\n"
                   "end\n",
                   0);
}

/* What f:export does is begun again after a collection (dsl/base/collector.c). */
static dc_status call_export(world *w)
{
    return run_for(w,
                   "local dc = require 'deepc'\n"
                   "g = g or dc.fn('g(x: f32[n]) -> f32[n]', function(x) return x * W end)\n"
                   "W = W or dc.param('f32[]', 2)\n"
                   "g:export(FOLDER .. '/fn', { n = 1 }, { n = 2 })\n",
                   0);
}

/* Loops and branches: the bodies are traced, what they set, test and print is carried. */
static dc_status call_control(world *w)
{
    return run_for(w,
                   "local dc = require 'deepc'\n"
                   "local own, lines = print, 0\n"
                   "print = function() lines = lines + 1 end\n"
                   "local s, t = dc.state('f32[]', 1), dc.tensor { 1, 2, 3 }\n"
                   "local f = dc.fn('f(xs: i32[4]) -> f32[], f32[4]', function(xs)\n"
                   "  return dc.scan(function(c, i)\n"
                   "    s:set(s + t:take(i))\n"
                   "    dc.print('s', s)\n"
                   "    local y = dc.cond(c:lt(3), function() return c + s end, function()\n"
                   "      return dc.fori(2, function(_, d) return d + dc.rand 'f32[]' end, c)\n"
                   "    end)\n"
                   "    return y, s\n"
                   "  end, 0, xs)\n"
                   "end)\n"
                   "local ok, c, ys = pcall(f, dc.tensor({ 0, 1, 2, 0 }, 'i32[4]'))\n"
                   "print = own\n"
                   "if not ok then error(c, 0) end\n"
                   "assert(lines == 4 and ys[4]:item() == 8 and s:item() == 8)\n",
                   0);
}

/* What is compared or shown by its name: functions, static values, what a function captured, operations. */
static dc_status call_names(world *w)
{
    return run_for(
        w,
        "local dc = require 'deepc'\n"
        "local scale, cfg = dc.static(2), { lr = { 3 } }\n"
        "local f = dc.fn('f(x: f32[n], o: { a: f32[], b: f32[] }) -> f32[n]',\n"
        "  function(x, o)\n"
        "    return x:take(dc.tensor({ 0, 1 }, 'i32[2]')):sort() * scale.value * cfg.lr[1] + o.a * "
        "o.b\n"
        "  end)\n"
        "local function sum(n)\n"
        "  return f(dc.ones 'f32[2]', { a = 1, b = n }):sum():item()\n"
        "end\n"
        "assert(sum(1) == 14 and sum(2) == 16)\n"
        "scale.value = 3\n"
        "assert(sum(2) == 22)\n"
        "assert(dc.fn('(x: f32[]) -> f32[]', function(x) return x + 1 end)(1):item() == 2)\n",
        0);
}

/* A call that adds rows to a state adds them once, or not at all. */
static dc_status call_growing(world *w)
{
    return run_for(w,
                   "local dc = require 'deepc'\n"
                   "C = C or dc.state 'f32[0 <= t <= 64, 2]'\n"
                   "F = F or dc.fn('add(x: f32[n <= 4, 2]) -> f32[n, n], f32[k, 2]', function(x)\n"
                   "  C:set(dc.concat({ C, x }, 1))\n"
                   "  return x:matmul(x:transpose()), C * 1\n"
                   "end)\n"
                   "if #C > 40 then C:set(dc.zeros 'f32[0, 2]') end\n"
                   "local n, sum, x = #C, C:sum():item(), dc.ones 'f32[3, 2]'\n"
                   "local ok, a, b = pcall(F, x)\n"
                   "assert(#C == (ok and n + 3 or n))\n"
                   "if not ok then error(a, 0) end\n"
                   "assert(#b == n + 3 and b:sum():item() == sum + 6 and a:sum():item() == 18)\n"
                   "assert(C:sum():item() == sum + 6)\n",
                   0);
}

static dc_status call_in_time(world *w)
{
    return run_for(w, works, 600000);
}

static dc_status run_sandboxed(world *w)
{
    char text[400] = "";
    const dc_status status = dc_sandbox_run(w->L, "script", training, strlen(training), 0);
    if (status != DC_OK)
        dc_error_text(w->L, -1, text, sizeof text);
    lua_settop(w->L, 0);
    if (status == DC_E_VALUE && strstr(text, "out of memory") != NULL)
        return DC_E_NOMEM;
    if (status != DC_OK && status != DC_E_NOMEM)
        printf("%d: %s\n", status, text);
    return status;
}

/* A stop ends the entry whether there is memory for it or not. */
static dc_status stop(world *w)
{
    dc_stop(w->ctx);
    must(luaL_loadstring(w->L, training) == LUA_OK, "a script");
    const int status = dc_pcall(w->L, 0, 0, 0, 0);
    lua_settop(w->L, 0);
    dc_resume(w->ctx);
    return status == DC_E_STOPPED ? DC_OK : DC_E_BUG;
}

static dc_status interrupt(world *w)
{
    dc_interrupt(w->ctx);
    must(luaL_loadstring(w->L, "for _ = 1, 1e9 do end") == LUA_OK, "a script");
    const int status = dc_pcall(w->L, 0, 0, 0, 0);
    lua_settop(w->L, 0);
    dc_resume(w->ctx);
    return status == LUA_ERRRUN ? DC_OK : DC_E_BUG;
}

/* An error of deepc and one whose text is made by the script. */
static dc_status error_text(world *w)
{
    static const char code[] =
        "local dc = require 'deepc'\n"
        "local e = setmetatable({ message = 'made' }, { __tostring = function()\n"
        "  return 'made ' .. dc.ones('f32[2]'):sum():item() end })\n"
        "return e, select(2, pcall(function() return dc.ones 'f32[2]' + dc.ones 'f32[3]' end))\n";
    char text[400];
    const bool armed = host.armed;
    host.armed = false;
    must(luaL_dostring(w->L, code) == LUA_OK, "two errors");
    host.armed = armed;
    CHECK(dc_error_text(w->L, 1, text, sizeof text) >= 4 && strncmp(text, "made", 4) == 0);
    CHECK(dc_error_text(w->L, 2, text, sizeof text) > 20 && strstr(text, "add") != NULL);
    lua_settop(w->L, 0);
    return DC_OK;
}

static dc_status load(world *w)
{
    dc_unload(w->fn);
    const dc_status status = dc_load(w->ctx, function_file, &w->fn);
    CHECK((w->fn != NULL) == (status == DC_OK));
    return status;
}

static dc_status load_in_time(world *w)
{
    dc_deadline(w->ctx, 600000);
    return load(w);
}

static void open_loaded(world *w)
{
    open_context_of(w);
    must(load(w) == DC_OK, "dc_load");
}

static dc_status call(world *w)
{
    float x[4] = {1, 2, 3, 4}, s[2] = {1, 1}, y[4];
    const dc_array in[] = {{DC_F32, 1, {4}, x, sizeof x}}, one = {DC_F32, 1, {2}, s, sizeof s};
    dc_array out = {.data = NULL}, value = {.data = y, .bytes = sizeof y};
    const char *state = "";
    CHECK(dc_function_cell(w->fn, 0, &state, NULL));
    DC_TRY(dc_function_set(w->fn, state, &one));
    DC_TRY(dc_call(w->fn, in, 1, &out, 1)); /* to memory of its own */
    CHECK(((const float *)out.data)[3] == 8);
    DC_TRY(dc_function_get(w->fn, state, &value));
    CHECK(y[0] == 2 && y[1] == 2);
    out = (dc_array){.data = y, .bytes = sizeof y};
    DC_TRY(dc_call(w->fn, in, 1, &out, 1));
    CHECK(y[3] == 16);
    return DC_OK;
}

/* Memory of the host as a tensor, and where one is. */
static dc_status push_array(world *w)
{
    static _Alignas(64) float x[4] = {1, 2, 3, 4};
    const dc_array a = {DC_F32, 1, {4}, x, sizeof x};
    dc_array at = {.data = NULL};
    dc_status status = dc_push_array(w->L, &a, NULL, NULL);
    if (status == DC_OK) {
        status = dc_to_array(w->L, -1, &at);
        CHECK(status != DC_OK || at.data == x);
    }
    lua_settop(w->L, 0);
    return status;
}

static dc_status call_device(world *w)
{
    static _Alignas(64) float x[4] = {1, 2, 3, 4}, y[4];
    const dc_array in = {DC_F32, 1, {4}, x, sizeof x};
    dc_array out = {.data = NULL};
    DC_TRY(dc_call_device(w->fn, &in, 1, &out, 1));
    out = (dc_array){.data = y, .bytes = sizeof y};
    return dc_call_device(w->fn, &in, 1, &out, 1);
}

/* ---- each of them, without memory ------------------------------------------------------------ */

typedef struct entry {
    const char *name, *device;
    void (*open)(world *);
    dc_status (*act)(world *);
    bool fresh; /* in a world of its own each time */
    int most;   /* allocations that fail */
} entry;

static const entry entries[] = {
    {"dc_attach", "eval", open_apart, attach, true, 30},
    {"dc_sandbox", "eval", open_apart, sandbox, true, 30},
    {"dc_pcall", "eval", open_script, call_script, false, 100},
    {"dc_pcall, cpu", "cpu", open_script, call_script, false, 16},
    {"dc_pcall, batches", "cpu", open_far, call_far, true, 60},
    {"dc_pcall, loops", "eval", open_script, call_control, false, 200},
    {"dc_pcall, names", "eval", open_attached, call_names, true, 2000},
    {"dc_pcall, f:export", "eval", open_script, call_export, false, 100},
    {"dc_pcall, a growing state", "eval", open_script, call_growing, false, 80},
    {"dc_pcall, a growing state, cpu", "cpu", open_script, call_growing, true, 40},
    {"dc_pcall, a growing state, far", "cpu", open_far, call_growing, true, 40},
    {"dc_pcall, deadline", "eval", open_attached, call_in_time, true, 60},
    {"dc_sandbox_run", "eval", open_sandbox, run_sandboxed, false, 40},
    {"dc_stop", "eval", open_script, stop, false, 20},
    {"dc_interrupt", "eval", open_script, interrupt, false, 20},
    {"dc_error_text", "eval", open_attached, error_text, false, 100},
    {"dc_load", "eval", open_context_of, load, false, 100},
    {"dc_load, deadline", "eval", open_context_of, load_in_time, true, 60},
    {"dc_load, cpu", "cpu", open_context_of, load, true, 20},
    {"dc_call", "eval", open_loaded, call, true, 100},
    {"dc_call, cpu", "cpu", open_loaded, call, true, 20},
    {"dc_call_device", "eval", open_loaded, call_device, true, 100},
    {"dc_call_device, cpu", "cpu", open_loaded, call_device, true, 20},
    {"dc_push_array", "eval", open_attached, push_array, false, 100},
};

/* No file of a writer that had no memory. */
static void check_folder(void)
{
    DIR *d = opendir(folder);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        CHECK(e->d_name[0] != '.' || strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0);
    if (d != NULL)
        closedir(d);
}

static void fail_once(const entry *e, world *w, long n, bool alone)
{
    const long failures = t_failed;
    if (w->ctx == NULL)
        e->open(w);
    arm(n, alone);
    dc_status status = e->act(w);
    const bool failed = disarm();
    CHECK(status == DC_OK || (failed && status == DC_E_NOMEM));
    if (status != DC_OK)
        CHECK(dc_errmsg(w->ctx)[0] != '\0');
    if (status != DC_OK)
        CHECK_EQ(e->act(w), DC_OK);
    if (w->L != NULL && w->owned)
        CHECK_EQ(run_for(w, works, 0), DC_OK);
    check_folder();
    if (e->fresh)
        close_all(w);
    if (t_failed > failures)
        printf("in %s, allocation %ld%s fails\n", e->name, n, alone ? "" : " and what follows");
}

/* What is held when nothing of the script is any more. */
static size_t settled_bytes(const world *w)
{
    if (w->L != NULL) {
        lua_gc(w->L, LUA_GCCOLLECT);
        lua_gc(w->L, LUA_GCCOLLECT);
    }
    return host.bytes;
}

static void test_entry(const entry *e)
{
    enum { GROWTH = 8 << 10, ROUNDS = 5 }; /* of lists that stay */
    size_t held[ROUNDS] = {0};
    int round = 0;
    world w = {.device = e->device};
    e->open(&w);
    arm(0, true);
    CHECK_EQ(e->act(&w), DC_OK);
    const long all = host.n, step = stretch_of(all, e->most);
    disarm();
    close_all(&w);
    printf("%-20s %6ld allocations, 1 of %ld fails\n", e->name, all, step);
    /* All from one on; then one alone, so that others leave what stays; again where what stays was made that late. */
    const int rounds = e->fresh && every ? 2 : 3;
    for (; round < rounds ||
           (!e->fresh && round < ROUNDS && held[round - 1] > held[round - 2] + GROWTH);
         round++) {
        for (long from = 1; from <= all; from += step)
            fail_once(e, &w, from + rng_below(&dice, (int)step), round > 0);
        held[round] = settled_bytes(&w);
    }
    CHECK(held[round - 1] <= held[round - 2] + GROWTH); /* a failure loses nothing */
    if (w.ctx != NULL)
        close_all(&w);
    CHECK_EQ(host.bytes, 0);
}

/* Where each allocation is to fail, in new worlds too: what is there already needs no memory. */
static void test_each(const entry *e)
{
    entry again = *e;
    again.fresh = true;
    test_entry(e);
    if (every && !e->fresh && strcmp(e->device, "eval") == 0)
        test_entry(&again);
}

/* A file for dc_load. */
static void export_function(void)
{
    static const char code[] = "local dc = require 'deepc'\n"
                               "local s = dc.state('f32[2]', 1)\n"
                               "local f = dc.fn('f(x: f32[n]) -> f32[n]', function(x)\n"
                               "  s:set(s * 2) return x * s:sum() / 2 end)\n"
                               "f:export(FOLDER .. '/function', { n = 4 }, { n = 5 })\n";
    world w = {.device = "eval"};
    open_script(&w);
    must(run_for(&w, code, 0) == DC_OK, "export");
    close_all(&w);
    snprintf(function_file, sizeof function_file, "%s/function", folder);
}

int main(int argc, char **argv)
{
    nomem_begin(argc, argv);
    must(mkdtemp(folder) != NULL, "mkdtemp");
    export_function();
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (argc < 3 || strcmp(argv[2], entries[i].name) == 0)
            test_each(&entries[i]);
    static const char *const files[] = {"function", "ck", "st", "fn", "x.png"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[100];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        CHECK(unlink(path) == 0 || argc > 2);
    }
    CHECK_EQ(rmdir(folder), 0);
    return t_done();
}
