/*
 * dc_sandbox, as a host meets it: what a script finds, the capabilities one by one, failures that leave the state
 * as it was. What scripts try to get out is in tests/attack/escapes.
 */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */

#include "vm/deepc.h"

#include <lua.h>
#include <lualib.h>

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/unit/lua_run.h"

static char folder[] = "/tmp/deepc-sandbox-XXXXXX";

typedef struct host {
    lua_State *L;
    dc_rt *rt;
    dc_sandbox_options o;
    char printed[300];
} host;

static void on_print(void *ctx, const char *text, size_t n)
{
    host *h = ctx;
    const size_t had = strlen(h->printed);
    if (had + n < sizeof h->printed)
        memcpy(h->printed + had, text, n + 1);
}

static const char *on_require(void *ctx, const char *name, size_t *n)
{
    static const char *const texts[][2] = {
        {"words", "return { hello = 'hello from ' .. ... }"},
        {"mine.other", "count = (count or 0) + 1"},
        {"circle", "return require 'circle'"},
        {"broken", "return ="},
        {"fails", "tries = (tries or 0) + 1 error('try ' .. tries)"},
    };
    (void)ctx;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(name, texts[i][0]) == 0) {
            *n = strlen(texts[i][1]);
            return texts[i][1];
        }
    return NULL;
}

static dc_rt *open_context(void)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt;
    cfg.device = "eval";
    CHECK(dc_open(&cfg, &rt) == DC_OK);
    return rt;
}

static void prepare(host *h)
{
    const dc_sandbox_options o = DC_SANDBOX_INIT;
    *h = (host){.L = luaL_newstate(), .rt = open_context(), .o = o};
    h->o.context = h->rt;
    h->o.print = on_print;
    h->o.print_ctx = h;
    h->o.require = on_require;
}

static void open_host(host *h)
{
    if (!CHECK_EQ(dc_sandbox(h->L, &h->o), DC_OK)) {
        printf("%s\n", dc_errmsg(h->rt));
        exit(t_done());
    }
}

static bool run(host *h, const char *code)
{
    const dc_status status = dc_sandbox_run(h->L, "script", code, strlen(code), 0);
    if (status != DC_OK)
        printf("%d: %s\n", status, lua_tostring(h->L, -1));
    lua_settop(h->L, 0);
    return status == DC_OK;
}

/* Runs what has to fail with these words. */
static void fails(host *h, const char *code, dc_status wanted, const char *words)
{
    const dc_status status = dc_sandbox_run(h->L, "script", code, strlen(code), 0);
    const char *text = status != DC_OK ? lua_tostring(h->L, -1) : "";
    if (!CHECK_EQ(status, wanted) || !CHECK(text != NULL && strstr(text, words) != NULL))
        printf("%s\n    %s\n", code, text);
    lua_settop(h->L, 0);
}

static void test_computing(void)
{
    host h;
    prepare(&h);
    open_host(&h);
    CHECK(run(&h,
              "local dc, nn, optim = require 'deepc', require 'deepc.nn', require 'deepc.optim'\n"
              "local net = nn.Sequential { nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2) }\n"
              "local opt = optim.Adam(net:parameters(), { lr = 1e-2 })\n"
              "local step = dc.fn('step(x: f32[4, 2], y: i32[4]) -> f32[]', function(x, y)\n"
              "  local loss = nn.cross_entropy(net(x), y)\n"
              "  opt:step(loss)\n"
              "  return loss\n"
              "end)\n"
              "local x = dc.tensor { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } }\n"
              "local y = dc.tensor({ 0, 1, 1, 0 }, 'i32[4]')\n"
              "local first = step(x, y):item()\n"
              "for _ in dc.progress(20) do step(x, y) end\n"
              "assert(step(x, y):item() < first)\n"
              "print('loss', #tostring(first) > 0)\n"
              "dc.print('twice')\n"
              "local train = require 'deepc.data'.set(x, y)\n"
              "for bx in train:batches { size = 2 } do assert(bx.shape[1] == 2) end"));
    CHECK_STR(h.printed, "loss\ttrue\ntwice\n");
    lua_close(h.L);
}

static void test_globals(void)
{
    static const char list[] =
        "local names = {}\n"
        "for name, value in pairs(_G) do\n"
        "  if value == _G or type(value) ~= 'table' then names[#names + 1] = name\n"
        "  else for inner in pairs(value) do names[#names + 1] = name .. '.' .. inner end end\n"
        "end\n"
        "table.sort(names)\n"
        "assert(#names == count, #names .. ': ' .. table.concat(names, ' '))\n";
    host h;
    for (int i = 0; i < 2; i++) { /* with a clock, four more */
        prepare(&h);
        if (i == 1)
            luaL_openlibs(h.L);
        h.o.clock = i == 1;
        open_host(&h);
        lua_pushinteger(h.L, i == 1 ? 92 : 88);
        lua_setglobal(h.L, "count"); /* itself one of them */
        CHECK(run(&h, list));
        CHECK(run(&h, "assert(debug == nil and io == nil and package == nil and dofile == nil)\n"
                      "assert(loadfile == nil and warn == nil and string.dump == nil)\n"
                      "assert(('x'):rep(3) == 'xxx' and ('x'):find 'x' == 1 and '2' + 1 == 3)"));
        lua_close(h.L);
    }
}

static void test_require(void)
{
    host h;
    prepare(&h);
    open_host(&h);
    CHECK(run(&h, "assert(require 'words'.hello == 'hello from words' and require 'words' == "
                  "require 'words')\n"
                  "assert(require 'mine.other' == true and require 'mine.other' and count == 1)\n"
                  "assert(require 'deepc.wall' == true and require 'deepc.wall')\n"
              "local ok, err = pcall(require, 'fails')\n"
                  "assert(not ok and err == 'fails:1: try 1', err)\n"
                  "assert(select(2, pcall(require, 'fails')) == 'fails:1: try 2')"));
    fails(&h, "require 'circle'", DC_E_VALUE, "module 'circle' requires itself");
    fails(&h, "require 'broken'", DC_E_VALUE, "module 'broken': broken:1: unexpected symbol");
    fails(&h, "require 'none'", DC_E_VALUE, "module 'none' not found");
    fails(&h, "require 'deepc.none'", DC_E_VALUE, "module 'deepc.none' not found");
    fails(&h, "require '../words'", DC_E_VALUE, "is no name of a module");
    lua_close(h.L);
}

static void test_folders(void)
{
    char code[700];
    host h;
    prepare(&h);
    const char *const both[] = {folder, NULL}, *const none[] = {"/nowhere/at/all", NULL};
    h.o.read = none;
    CHECK_EQ(dc_sandbox(h.L, &h.o), DC_E_FILE);
    CHECK(strstr(dc_errmsg(h.rt), "/nowhere/at/all: No such file") != NULL);
    h.o.read = h.o.write = both;
    h.o.clock = true;
    open_host(&h);
    snprintf(code, sizeof code,
             "local dc, plot = require 'deepc', require 'deepc.plot'\n"
             "local w = dc.param('f32[2]', { 1, 2 })\n"
             "dc.save('%s/w', { w = w })\n"
             "assert(dc.load('%s/w').w:totable()[2] == 2)\n"
             "local ckpt = dc.checkpoint('%s/c', { w = { named_cells = nil } })\n"
             "plot.lines('%s/x.png', { { y = { 1, 2 } } })\n"
             "local f = dc.fn('f(x: f32[2]) -> f32[2]', function(x) return x * w end)\n"
             "f:export '%s/f.dcfn'\n"
             "assert(os.time() > 0 and os.getenv == nil)",
             folder, folder, folder, folder, folder);
    CHECK(run(&h, code));
    fails(&h, "require 'deepc'.load '/etc/passwd'", DC_E_VALUE,
          "/etc/passwd: outside the folders that may be read here");
    fails(&h, "require 'deepc'.load '/etc/none'", DC_E_VALUE,
          "/etc/none: outside the folders that may be read here");
    /* The host is not bound: another context's function file, from anywhere. */
    char elsewhere[60];
    snprintf(elsewhere, sizeof elsewhere, "/tmp/deepc-function-%ld", (long)getpid());
    snprintf(code, sizeof code, "mv %s/f.dcfn %s", folder, elsewhere);
    CHECK_EQ(system(code), 0);
    dc_function *f;
    CHECK_EQ(dc_load(h.rt, elsewhere, &f), DC_OK);
    CHECK_EQ(unlink(elsewhere), 0);
    fails(&h, "require 'deepc'.load '/etc/none'", DC_E_VALUE, "outside the folders");
    lua_close(h.L);
}

static void test_memory(void)
{
    host h;
    prepare(&h);
    h.o.memory_limit = (size_t)16 << 20;
    open_host(&h);
    fails(&h, "local t = {} for i = 1, 1e9 do t[i] = i end", DC_E_NOMEM, "not enough memory");
    fails(&h, "local s = 'x' while true do s = s .. s end", DC_E_NOMEM, "not enough memory");
    CHECK(run(&h, "assert(collectgarbage 'count' < 16 * 1024) collectgarbage()"));
    fails(&h, "return (' '):rep(1e9)", DC_E_NOMEM, "not enough memory");
    CHECK(run(&h,
              "local dc = require 'deepc' assert(dc.ones('f32[2000, 2000]'):sum():item() == 4e6)"));
    lua_close(h.L);
}

/* Closed while it holds all that it may, with a stack that has no room for calls of finalizers. */
static void test_close_at_limit(void)
{
    for (int pushed = 0; pushed < 12; pushed += 3) {
        host h;
        prepare(&h);
        h.o.memory_limit = (size_t)8 << 20;
        open_host(&h);
        fails(&h, "kept = {} for i = 1, 1e9 do kept[i] = {} end", DC_E_NOMEM, "not enough memory");
        fails(&h, "more = {} for i = 1, 1e9 do more = { more } end", DC_E_NOMEM,
              "not enough memory");
        for (int i = 0; i < pushed; i++)
            lua_pushinteger(h.L, i);
        lua_close(h.L);
    }
}

static void test_errors(void)
{
    host h;
    prepare(&h);
    open_host(&h);
    fails(&h, "error 'plain'", DC_E_VALUE, "script:1: plain");
    fails(&h, "x = = 1", DC_E_VALUE, "script:1: unexpected symbol");
    fails(&h, "error()", DC_E_VALUE, "an error value that is no text (nil)");
    fails(&h, "error(setmetatable({}, { __tostring = function() error 'no' end }))", DC_E_VALUE,
          "an error value that is a table");
    fails(&h, "error(setmetatable({}, { __index = function() error 'no' end }))", DC_E_VALUE,
          "an error value that is a table");
    fails(&h, "error { code = 3, why = 'too large', [1] = true, f = print, [print] = 1 }", DC_E_VALUE,
          "an error value that is a table: 1 = true, code = 3, why = \"too large\"");
    fails(&h, "local t = {} for i = 1, 100000 do t['n' .. i] = {} end error(t)", DC_E_VALUE,
          "an error value that is a table");
    fails(&h, "error { message = { 'x' } }", DC_E_VALUE, "an error value that is a table");
    fails(&h, "error(print)", DC_E_VALUE, "no text (function)");
    fails(&h, "require 'deepc'.ones 'f32[-1]'", DC_E_VALUE, "script:1");
    fails(&h, "\x1bLua", DC_E_VALUE, "attempt to load a binary chunk");
    fails(&h, "error 'x', 0", DC_E_VALUE, "");
    char *large = malloc((1 << 20) + 2);
    memset(large, ' ', (1 << 20) + 1);
    large[(1 << 20) + 1] = '\0';
    fails(&h, large, DC_E_VALUE, "a text of 1048577 bytes; at most 1048576 are loaded here");
    free(large);
    CHECK_EQ(dc_sandbox_run(NULL, "x", "", 0, 0), DC_E_STATE);
    CHECK_EQ(dc_sandbox_run(h.L, NULL, "", 0, 0), DC_E_VALUE);
    CHECK(run(&h, ""));
    CHECK_EQ(lua_gettop(h.L), 0);
    lua_close(h.L);
}

/* A deadline that no pcall of the script keeps off. */
static void test_time(void)
{
    static const char *const endless[] = {
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "coroutine.wrap(function() while true do pcall(error) end end)()",
        "while true do ('x'):rep(100):find(('x?'):rep(15) .. 'y') end",
        "local t = setmetatable({}, { __close = function() while true do end end })\n"
        "do local x <close> = t end",
        "load(function() while true do end end)",
        "table.sort({ 3, 2, 1 }, function() while true do end end)",
        "local s = ('x'):rep(1 << 23) while true do utf8.len(s) s:upper() end",
        "local s = ('x = 1 '):rep(170000)\n"
        "load('local load, s = ... ' .. ('load(s) '):rep(300))(load, s)\n"
        "while true do end",
        "local t = {} for i = 1, 200000 do t[i] = {} end\n"
        "('collect '):rep(100000):gsub('%a+', collectgarbage)",
        "local a, b, t = ('x'):rep(4e6), ('x'):rep(4e6 - 1) .. 'y', {}\n"
        "for i = 1, 20000 do t[i] = i % 2 == 0 and a or b end\n"
        "table.sort(t)",
        "local t = setmetatable({}, { __lt = rawequal })\n"
        "local list = {} for i = 1, 1000000 do list[i] = t end\n"
        "while true do table.sort(list) end",
        "local t = {} for i = 1, 100000 do t[i] = i end for i = 1, 99999 do t[i] = nil end\n"
        "table.concat(setmetatable(t, { __index = next }), '', 1, 1000000)",
        "local t = {} for i = 1, 100000 do t[i] = i end for i = 1, 99999 do t[i] = nil end\n"
        "table.unpack(setmetatable(t, { __index = next }), 1, 900000)",
        "local t = {} for i = 1, 100000 do t[i] = i end for i = 1, 99999 do t[i] = nil end\n"
        "table.move(setmetatable(t, { __index = next }), 1, 1000000, 1, {})",
        "local dc, t, r = require 'deepc', {}, {} for i = 1, 3000 do t[i] = r end\n"
        "local u, v = {}, {} for i = 1, 3000 do u[i] = t v[i] = u end\n"
        "dc.tensor(v, 'f32[3000, 3000, 3000, 0]')",
        "local mt = { __len = function() return 1 << 40 end, __index = getmetatable }\n"
        "require 'deepc'.tensor(setmetatable({}, setmetatable(mt, {})), 'f32[1099511627776, 0]')",
        "local l = {} for i = 1, 1000 do l[i] = i end\n"
        "require 'deepc'.fn('f(x: f32[a, b, c, d, z]) -> f32[]', print, { a = l, b = l, c = l, d = "
        "l })",
        "local dc, t, s = require 'deepc', {}, {}\n"
        "for i = 1, 10000 do t[i] = dc.zeros 'f32[]' t[i]:item() end\n"
        "for i = 1, 30000 do s[i] = dc.scope() end\n"
        "while true do s[1]:close() s[1] = dc.scope() end",
        "local dc, t = require 'deepc', {} for i = 1, 10000 do t[i] = dc.zeros 'f32[]' end\n"
        "while true do pcall(table.sort, t, dc.add) end", /* on a fast machine it ends: invalid order */
        "local function loop() while true do end end\n"
        "local co = coroutine.create(function()\n"
        "  local x <close> = setmetatable({}, { __close = loop })\n"
        "  require 'deepc'.fn('f(x: f32[]) -> f32[]', function() math.random() end)\n"
        "end)\n"
        "coroutine.resume(co) coroutine.close(co) loop()",
    };
    host h;
    prepare(&h);
    open_host(&h);
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        const time_t before = time(NULL);
        CHECK_EQ(dc_sandbox_run(h.L, "script", endless[i], strlen(endless[i]), 30), DC_E_STOPPED);
        CHECK(time(NULL) - before < 10); /* with sanitizers, on a busy machine */
        CHECK(lua_type(h.L, -1) == LUA_TSTRING && strstr(lua_tostring(h.L, -1), "30 ms") != NULL);
        lua_settop(h.L, 0);
        CHECK(run(&h, "assert(require 'deepc'.ones('f32[2]'):sum():item() == 2)"));
    }
    lua_close(h.L);
}

/* Functions of table over lists with a metatable do what they do over others. */
static void test_tables(void)
{
    host h;
    prepare(&h);
    open_host(&h);
    CHECK(run(
        &h,
        "local function same(name, ...)\n"
        "  local a, b = { 5, 3, 4, 1 }, setmetatable({}, { __index = { 5, 3, 4, 1 } })\n"
        "  for i = 1, 4 do b[i] = rawget(b, i) or b[i] end\n"
        "  local x, y = table.pack(pcall(table[name], a, ...)), table.pack(pcall(table[name], b, "
        "...))\n"
        "  assert(x.n == y.n and x[1] == y[1], name)\n"
        "  for i = 2, x[1] and x.n or 1 do\n"
        "    assert(x[i] == y[i] or x[i] == a and y[i] == b, tostring(x[i]) .. tostring(y[i]))\n"
        "  end\n"
        "  for i = 1, 12 do assert(rawget(a, i) == rawget(b, i), name .. i) end\n"
        "end\n"
        "for _, at in ipairs { -1, 0, 1, 2, 4, 5, 6, math.maxinteger, math.mininteger } do\n"
        "  same('insert', at, 7) same('remove', at) same('unpack', at) same('unpack', at, 3)\n"
        "  same('concat', ',', at) same('concat', '', 1, at) same('move', 1, 3, at)\n"
        "  same('move', at, 4, 2) same('unpack', 1, at)\n"
        "end\n"
        "same('insert', 7) same('insert') same('insert', 1, 2, 3) same('remove') same('unpack')\n"
        "same('concat') same('concat', ', ') same('sort') same('sort', function(a, b) return a > b "
        "end)\n"
        "same('sort', math.ult) same('sort', 5) same('move', 1, 4, 3, {}) same('move', 1) "
        "same('move', 1, 2)\n"
        "local list = { ('b'):rep(2000), ('a'):rep(2000), 'c' }\n"
        "table.sort(list) assert(list[1]:sub(1, 1) == 'a' and list[3] == 'c')\n"
        "assert(not pcall(table.sort, { 1, 'x' }) and not pcall(table.sort, { {}, {} }))\n"
        "local t = setmetatable({}, { __newindex = function(t, k, v) rawset(t, k + 1, v) end })\n"
        "table.insert(t, 'x') assert(t[1] == nil and t[2] == 'x')"));
    lua_close(h.L);
}

static void test_misuse(void)
{
    const dc_sandbox_options dflt = DC_SANDBOX_INIT;
    dc_sandbox_options o = dflt;
    host h;
    CHECK_EQ(dc_sandbox(NULL, NULL), DC_E_STATE);
    prepare(&h);
    CHECK_EQ(dc_sandbox(h.L, &o), DC_E_STATE); /* no context */
    CHECK_EQ(dc_sandbox(NULL, &h.o), DC_E_STATE);
    struct {
        dc_sandbox_options o;
        uint64_t later;
    } wide = {h.o, 1};
    wide.o.size = sizeof wide;
    CHECK_EQ(dc_sandbox(h.L, &wide.o), DC_E_VALUE);
    CHECK(strstr(dc_errmsg(h.rt), "dc_sandbox_options.size") != NULL);
    wide.later = 0;
    CHECK_EQ(dc_sandbox(h.L, &wide.o), DC_OK);
    CHECK_EQ(dc_sandbox(h.L, &h.o), DC_E_STATE); /* it has one */
    lua_State *L = luaL_newstate();
    CHECK_EQ(dc_sandbox(L, &h.o), DC_E_STATE); /* another has it */
    CHECK(strstr(dc_errmsg(h.rt), "another lua_State has this context") != NULL);
    lua_close(L);
    lua_close(h.L);
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = "eval";
    cfg.allow = DC_ALLOW_COMPUTE;
    CHECK(dc_open(&cfg, &o.context) == DC_OK);
    const char *const list[] = {folder, NULL};
    o.read = list;
    L = luaL_newstate();
    CHECK_EQ(dc_sandbox(L, &o), DC_E_VALUE);
    CHECK(strstr(dc_errmsg(o.context), "read: folders, where no files may be opened") != NULL);
    o.read = NULL;
    CHECK_EQ(dc_sandbox(L, &o), DC_OK);
    lua_close(L);
}

/* ---- memory that is refused on the way --------------------------------------------------------- */

typedef struct refusing {
    long left; /* allocations; < 0: any */
} refusing;

static void *refuse(void *ctx, void *block, size_t had, size_t want)
{
    refusing *r = ctx;
    (void)had;
    if (want == 0) {
        free(block);
        return NULL;
    }
    if (r->left == 0)
        return NULL;
    r->left -= r->left > 0;
    return realloc(block, want);
}

/* Whichever allocation of the state fails: it is as it was, and dc_sandbox works afterwards. */
static void test_no_memory(void)
{
    enum { MANY = 5000 };
    refusing r = {-1};
    int failed = 0;
    dc_status status = DC_E_NOMEM;
    for (long n = 0; n < MANY && status != DC_OK; n += 1 + n / 20) {
        host h;
        prepare(&h);
        lua_close(h.L);
        r.left = -1;
        h.L = lua_newstate(refuse, &r);
        luaL_openlibs(h.L);
        r.left = n;
        status = dc_sandbox(h.L, &h.o);
        r.left = -1;
        if (status != DC_OK) {
            failed++;
            CHECK_EQ(status, DC_E_NOMEM);
            CHECK(lua_run(h.L, "assert(io and debug and ('x'):upper() == 'X')\n"
                               "assert(getmetatable('x').__index == string and string.dump)"));
            CHECK_EQ(dc_sandbox(h.L, &h.o), DC_OK);
        }
        CHECK(run(&h, "assert(require 'deepc'.ones('f32[2]'):sum():item() == 2 and io == nil)"));
        lua_close(h.L);
    }
    CHECK_EQ(status, DC_OK);
    CHECK(failed > 20);
}

int main(void)
{
    if (!CHECK(mkdtemp(folder) != NULL))
        return t_done();
    test_computing();
    test_globals();
    test_require();
    test_folders();
    test_memory();
    test_close_at_limit();
    test_errors();
    test_time();
    test_tables();
    test_misuse();
    test_no_memory();
    char command[60];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_EQ(system(command), 0);
    return t_done();
}
