/*
 * backends/cuda on the stand-in (tests/cuda), counted: what a call costs in the steady state, when a graph is built
 * again, that values are right whatever moves.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "tests/unit/cuda_run.h"

/* What every script finds: the modules, and what is counted while a function runs. */
#define PRELUDE                                                                                 \
    "local dc, nn, optim = require 'deepc', require 'deepc.nn', require 'deepc.optim'\n"        \
    "local function counted(f)\n"                                                               \
    "  local names = { launch = 'cuGraphLaunch', kernel = 'cuLaunchKernel',\n"                  \
    "    build = 'cuGraphInstantiateWithFlags', alloc = 'cuMemAllocFromPoolAsync',\n"           \
    "    free = 'cuMemFreeAsync', map = 'cuMemCreate', pin = 'cuMemHostAlloc',\n"               \
    "    load = 'cuModuleLoadData', send = 'cuMemcpyHtoDAsync', fetch = 'cuMemcpyDtoHAsync',\n" \
    "    copy = 'cuMemcpyDtoDAsync', event = 'cuEventCreate', wait = 'cuStreamSynchronize' }\n" \
    "  local n = {}\n"                                                                          \
    "  for k, entry in pairs(names) do n[k] = -standin.calls(entry) end\n"                      \
    "  f()\n"                                                                                   \
    "  for k, entry in pairs(names) do n[k] = n[k] + standin.calls(entry) end\n"                \
    "  return n\n"                                                                              \
    "end\n"                                                                                     \
    "local function same(n, want, what)\n"                                                      \
    "  for k, v in pairs(n) do\n"                                                               \
    "    check(v == (want[k] or 0), ('%s: %d of %s'):format(what, v, k))\n"                     \
    "  end\n"                                                                                   \
    "end\n"

/* A step of training: one launch, one copy of what is new, nothing else. */
static void test_steady(void)
{
    cuda_script("steady", PRELUDE
                "dc.seed(1)\n"
                "local net = nn.Sequential { nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3) }\n"
                "local opt = optim.Adam(net:parameters(), { lr = 1e-2 })\n"
                "local step = dc.fn('step(x: f32[8, 4], y: i32[8]) -> f32[]', function(x, y)\n"
                "  local loss = nn.cross_entropy(net(x), y)\n"
                "  opt:step(loss)\n"
                "  return loss\n"
                "end)\n"
                "local x, y = dc.rand('f32[8, 4]', { seed = 1 }), dc.iota 'i32[8]' % 3\n"
                "local first = step(x, y):item()\n"
                "local function run(n)\n"
                "  for _ = 1, n do step(x, y) collectgarbage() end\n"
                "end\n"
                "run(4)\n"
                "local n = counted(function() run(20) end)\n"
                "check(n.send <= 20, 'copies')\n"
                "same(n, { launch = 20, send = n.send }, 'steps')\n"
                "local last\n"
                "n = counted(function() last = step(x, y):item() end)\n"
                "check(n.launch == 1 and n.fetch == 1 and n.build == 0, 'a value is one copy')\n"
                "check(last < first, 'it learns')\n");
}

/* An epoch of shuffled batches: a launch that gathers and a step for each. Nothing is fetched, built or waited for. */
static void test_batches(void)
{
    cuda_script(
        "batches", PRELUDE
        "local w = dc.param('f32[4]', dc.zeros 'f32[4]')\n"
        "local step = dc.fn('step(x: f32[8, 4], y: i32[8]) -> f32[4]', function(x, y)\n"
        "  local sum = (x * y:cast 'f32':reshape(8, 1)):sum(1)\n"
        "  w:set(w + sum)\n"
        "  return sum\n"
        "end)\n"
        "local n = dc.iota 'i32[200]'\n"
        "local set = require 'deepc.data'.set(n:cast 'f32':reshape(200, 1):expand(200, 4), n)\n"
        "local function epoch()\n"
        "  for x, y in set:batches { size = 8, shuffle = true, seed = 1 } do step(x, y) end\n"
        "  collectgarbage() collectgarbage()\n"
        "end\n"
        "epoch()\n"
        "epoch()\n"
        "local waits = standin.calls 'cuEventSynchronize'\n"
        "local n = counted(epoch)\n"
        "check(standin.calls 'cuEventSynchronize' == waits, 'no run is waited for')\n"
        "check(n.launch == 50 and n.wait == 0 and n.fetch == 0, 'two launches a batch')\n"
        "check(n.build == 0 and n.kernel == 0 and n.map == 0 and n.load == 0, 'of graphs that are "
        "there')\n"
        "local sum = 0\n"
        "for i = 0, 199 do sum = sum + i * i end\n"
        "for _, v in ipairs(w:totable()) do check(v == 3 * sum, 'rows and numbers go together') "
        "end\n");
}

/* Numbers, results that are held and other arguments are new words, not new graphs. */
static void test_one_graph(void)
{
    cuda_script(
        "one graph", PRELUDE
        "local w = dc.param('f32[100]', dc.zeros 'f32[100]')\n"
        "local f = dc.fn('f(x: f32[100], k: f32[]) -> f32[100]', function(x, k)\n"
        "  w:set(w + k * x)\n"
        "  return w * 2 + x\n"
        "end)\n"
        "local one, two = dc.full('f32[100]', 1), dc.full('f32[100]', 2)\n"
        "local sum, held, want = 0, {}, {}\n"
        "local function call(x, v, k)\n"
        "  held[#held + 1] = f(x, k)\n"
        "  sum = sum + k * v\n"
        "  want[#want + 1] = 2 * sum + v\n"
        "end\n"
        "for i = 1, 3 do call(one, 1, i) call(two, 2, i) end\n"
        "local n = counted(function()\n"
        "  for i = 1, 20 do call(one, 1, i) call(two, 2, 1 / i) end\n"
        "end)\n"
        "check(n.launch == 40 and n.build == 0 and n.kernel == 0, 'one graph')\n"
        "for i, t in ipairs(held) do\n"
        "  local v = t:totable()\n"
        "  local good = math.abs(v[1] - want[i]) <= 1e-5 * (1 + want[i]) and v[100] == v[1]\n"
        "  check(good, ('call %d: %g, not %g'):format(i, v[1], want[i]))\n"
        "end\n"
        "check(math.abs(w:totable()[7] - sum) <= 1e-5 * sum, 'the cell')\n");
}

/* A job that has the arena makes another call take memory of its own; a cell that is laid out anew stands elsewhere. */
static void test_moved(void)
{
    cuda_script(
        "moved", PRELUDE
        "local f = dc.fn('f(x: f32[64, 50]) -> f32[64]', function(x)\n"
        "  return x:softmax(2):log():sum(2):softmax(1):cumsum(1)\n"
        "end)\n"
        "local g = dc.fn('g(x: f32[32, 50]) -> f32[32]', function(x)\n"
        "  return x:softmax(2):log():sum(2):softmax(1):cumsum(1)\n"
        "end)\n"
        "local x, y = dc.rand('f32[64, 50]', { seed = 3 }), dc.rand('f32[32, 50]', { seed = 4 })\n"
        "local a, b = f(x):totable(), g(y):totable()\n"
        "local job = f:start(x)\n"
        "local function same_list(p, q, what)\n"
        "  for i = 1, #q do check(p[i] == q[i], what .. i) end\n"
        "end\n"
        "for _ = 1, 3 do\n"
        "  local more = job:poll { ms = 0 }\n"
        "  same_list(g(y):totable(), b, 'beside a job ')\n"
        "end\n"
        "same_list(job:result():totable(), a, 'the job ')\n"
        "same_list(f(x):totable(), a, 'after it ')\n");
}

/* A check that fires names the element, and no cell has changed; the next call is as if it had not been. */
static void test_checks(void)
{
    cuda_script(
        "checks", PRELUDE
        "local w = dc.param('f32[4]', dc.zeros 'f32[4]')\n"
        "local table = dc.iota 'f32[10]'\n"
        "local f = dc.fn('f(at: i32[4]) -> f32[4]', function(at)\n"
        "  local rows = table:take(at, 1)\n"
        "  w:set(w + rows)\n"
        "  return rows\n"
        "end)\n"
        "local good, bad = dc.tensor({ 0, 9, 3, 4 }, 'i32'), dc.tensor({ 0, 1, 10, 2 }, 'i32')\n"
        "f(good) f(good)\n"
        "for _ = 1, 3 do\n"
        "  local before = w:totable()\n"
        "  local ok, err = pcall(function() return f(bad):totable() end)\n"
        "  check(not ok, 'it fires')\n"
        "  check(tostring(err):find('10', 1, true), tostring(err))\n"
        "  local after = w:totable()\n"
        "  for i = 1, 4 do check(after[i] == before[i], 'cells as they were') end\n"
        "  local rows = f(good):totable()\n"
        "  check(rows[2] == 9, 'the next call')\n"
        "  check(w:totable()[2] == before[2] + 9, 'which counts')\n"
        "end\n");
}

/* What is given up while the device has still to do it. */
static void test_given_up(void)
{
    cuda_script("given up", PRELUDE
                "local results = {}\n"
                "for i = 1, 6 do\n"
                "  local w = dc.param('f32[300]', dc.full('f32[300]', i))\n"
                "  local f = dc.fn(('f%d(x: f32[300]) -> f32[300]'):format(i), function(x)\n"
                "    w:set(w + 1)\n"
                "    return x * w + i\n"
                "  end)\n"
                "  local x = dc.full('f32[300]', 2)\n"
                "  f(x)\n"
                "  results[i] = f(x)\n"
                "  w, f, x = nil, nil, nil\n"
                "  collectgarbage()\n"
                "  collectgarbage()\n"
                "end\n"
                "for i, r in ipairs(results) do\n"
                "  check(r:totable()[300] == 2 * (i + 2) + i, 'result ' .. i)\n"
                "end\n");
}

/* Memory: what is too much is an error, and the script goes on. */
static void test_no_memory(void)
{
    standin.set("MEMORY", "33554432");
    cuda_script(
        "no memory", PRELUDE
        "local f = dc.fn('f(x: f32[1024]) -> f32[1024]', function(x) return x + 1 end)\n"
        "check(f(dc.zeros 'f32[1024]'):totable()[5] == 1, 'before')\n"
        "local held = {}\n"
        "local ok, err = pcall(function()\n"
        "  for i = 1, 100 do\n"
        "    held[i] = dc.full('f32[500000]', i)\n"
        "    held[i]:sum():item()\n"
        "    held[i] = held[i] * 2\n"
        "    held[i][77]:item()\n"
        "  end\n"
        "end)\n"
        "check(not ok and err.code == 'DC1001', tostring(err))\n"
        "check(#held >= 4 and #held < 30, 'some fit: ' .. #held)\n"
        "for i = 1, #held - 1 do check(held[i][77]:item() == 2 * i, 'held ' .. i) end\n"
        "check(f(dc.zeros 'f32[1024]'):totable()[5] == 1, 'goes on')\n"
        "held = nil\n"
        "collectgarbage() collectgarbage()\n"
        "check(dc.full('f32[2000000]', 3):sum():item() == 6000000, 'after all was given back')\n"
        "local big = dc.fn('big(x: f32[1024]) -> f32[]', function(x)\n"
        "  return (x:reshape(1024, 1):expand(1024, 65536) * 2):cumsum(2):cumsum(1):sum()\n"
        "end)\n"
        "ok, err = pcall(big, dc.zeros 'f32[1024]')\n"
        "check(not ok and err.code == 'DC1001', tostring(err))\n"
        "check(f(dc.zeros 'f32[1024]'):totable()[5] == 1, 'goes on again')\n");
    standin.set("MEMORY", "4294967296");
}

/*
 * What the driver's pool keeps of memory that was freed is no more missing elsewhere: to temporaries, and to programs and
 * graphs, which are tried again.
 */
static void test_room(void)
{
    standin.set("MEMORY", "67108864");
    cuda_script("room", PRELUDE
                "local large = dc.fn('large(k: f32[]) -> f32[11000000]', function(k)\n"
                "  return dc.zeros 'f32[11000000]' + k\n"
                "end)\n"
                "check(large(2):sum():item() == 22000000, 'of 44 MB')\n"
                "large = nil\n"
                "collectgarbage() collectgarbage()\n"
                "local f = dc.fn('f(x: f32[2000]) -> f32[]', function(x)\n"
                "  local m = x:reshape '[2000, 1]' * x:reshape '[1, 2000]'\n"
                "  return m:matmul(m):square():sum()\n"
                "end)\n"
                "check(f(dc.zeros 'f32[2000]'):item() == 0, 'temporaries in their place')\n");
    cuda_script("room for graphs", PRELUDE
                "local w = dc.param('f32[100]', dc.zeros 'f32[100]')\n"
                "local function fails(entry, times)\n"
                "  local before, x, list = w:totable()[1], dc.ones 'f32[100]', {}\n"
                "  local k, trims = times + #entry, standin.calls 'cuMemPoolTrimTo'\n"
                "  for n = 1, times do list[n] = ('%s@%d=2'):format(entry, n) end\n"
                "  standin.set('FAIL', table.concat(list, ','))\n"
                "  local f = dc.fn('f(x: f32[100]) -> f32[100]', function(x)\n"
                "    local y = x:cumsum(1) * k\n"
                "    w:set(w + 1)\n"
                "    return y + w\n"
                "  end)\n"
                "  local ok, said = pcall(f, x)\n"
                "  standin.set('FAIL', '')\n"
                "  check(standin.calls 'cuMemPoolTrimTo' > trims, entry .. ': room was made')\n"
                "  if ok then check(said:totable()[3] == 3 * k + before + 1, 'its result') end\n"
                "  check(w:totable()[50] == before + (ok and 1 or 0), 'the cell')\n"
                "  check(f(x):totable()[1] == k + w:totable()[1], 'the next call')\n"
                "  return ok, tostring(said)\n"
                "end\n"
                "local entries = { 'cuModuleGetFunction', 'cuGraphInstantiateWithFlags', "
                "'cuGraphUpload', 'cuGraphLaunch' }\n"
                "check(fails('cuModuleLoadData', 1), 'a program')\n"
                "for _, entry in ipairs(entries) do\n"
                "  check(fails(entry, 1) and fails(entry, 2), entry)\n"
                "  local ok, said = fails(entry, 8)\n"
                "  check(not ok and said:find 'out of memory: the function needs', said)\n"
                "end\n");
    standin.set("MEMORY", "4294967296");
}

/* Commands one by one: a launch that finds no memory is tried again. Where that fails too, others have run. */
static void test_room_between(void)
{
    setenv("DEEPC_LAUNCH", "one", 1);
    cuda_script(
        "room between", PRELUDE
        "local w = dc.param('f32[100]', dc.zeros 'f32[100]')\n"
        "local f = dc.fn('f(x: f32[100]) -> f32[100]', function(x)\n"
        "  w:set(w + 1)\n"
        "  return x:cumsum(1):sum(1) * x:softmax(1):cumsum(1)\n"
        "end)\n"
        "local x = dc.ones 'f32[100]'\n"
        "local want = f(x):totable()\n"
        "local launches = counted(function() f(x) end).kernel\n"
        "check(launches > 1, 'some launches')\n"
        "for n = 1, launches do\n"
        "  standin.set('FAIL', ('cuLaunchKernel@%d=2'):format(n))\n"
        "  local v = f(x):totable()\n"
        "  check(v[1] == want[1] and v[100] == want[100], 'the same result')\n"
        "end\n"
        "standin.set('FAIL', '')\n"
        "check(w:totable()[1] == launches + 2, 'each call once')\n"
        "standin.set('FAIL', 'cuLaunchKernel@2=2,cuLaunchKernel@3=2')\n"
        "local ok, said = pcall(f, x)\n"
        "standin.set('FAIL', '')\n"
        "check(not ok and tostring(said):find \"a run, at kernel '[^']+': "
        "CUDA_ERROR_OUT_OF_MEMORY\",\n"
        "  tostring(said))\n"
        "w:set(dc.zeros 'f32[100]')\n"
        "check(f(x):totable()[100] == want[100] and w:totable()[1] == 1, 'the next call')\n");
    unsetenv("DEEPC_LAUNCH");
}

/* The arena grows where it stands: nothing that was built with it is built again. */
static void test_arena(void)
{
    cuda_script(
        "arena", PRELUDE
        "local function make(n)\n"
        "  return dc.fn(('f(x: f32[%d, 4], a: f32[4, 64]) -> f32[%d]'):format(n, n), function(x, "
        "a)\n"
        "    return x:matmul(a):tanh():matmul(a:transpose()):sum(2)\n"
        "  end)\n"
        "end\n"
        "local small, large = make(8), make(12000)\n"
        "local x, y = dc.rand('f32[8, 4]', { seed = 1 }), dc.rand('f32[12000, 4]', { seed = 1 })\n"
        "local a = dc.rand('f32[4, 64]', { seed = 2 })\n"
        "local before = small(x, a):totable()\n"
        "small(x, a)\n"
        "local maps = standin.calls 'cuMemMap'\n"
        "local rows = large(y, a)[{ { 1, 8 } }]:totable()\n"
        "check(standin.calls 'cuMemMap' > maps, 'it has grown')\n"
        "for i = 1, 8 do check(math.abs(rows[i] - before[i]) < 1e-4, 'row ' .. i) end\n"
        "local n = counted(function()\n"
        "  local after = small(x, a):totable()\n"
        "  for i = 1, 8 do check(after[i] == before[i], 'row ' .. i) end\n"
        "end)\n"
        "check(n.build == 0 and n.map == 0, 'the same graph')\n");
}

/* ---- hosts -------------------------------------------------------------------------------------- */

static const char counter[] = "local dc = require 'deepc'\n"
                              "local w = dc.param('f32[64]', dc.zeros 'f32[64]')\n"
                              "local f = dc.fn('f(k: f32[]) -> f32[64]', function(k)\n"
                              "  w:set(w + k)\n"
                              "  return w * 2\n"
                              "end)\n"
                              "function step(k) last = f(k) end\n"
                              "function value() return w:totable()[64] + last:totable()[1] end\n"
                              "function whole()\n"
                              "  local v = w:totable()\n"
                              "  for i = 2, 64 do if v[i] ~= v[1] then return false end end\n"
                              "  return v[1] == math.floor(v[1])\n"
                              "end\n"
                              "function forever() while true do f(1) end end\n";

static double call_number(cuda_host *h, const char *name, double argument)
{
    lua_settop(h->L, 0);
    lua_getglobal(h->L, name);
    lua_pushnumber(h->L, argument);
    if (!CHECK(lua_pcall(h->L, 1, 1, 0) == LUA_OK))
        printf("%s: %s\n", name, luaL_tolstring(h->L, -1, NULL));
    return lua_tonumber(h->L, -1);
}

static bool counter_open(cuda_host *h, const char *device)
{
    const dc_status status = cuda_host_open(h, device);
    if (CHECK_EQ(status, DC_OK) && CHECK(cuda_host_call(h, "counter", counter)))
        return true;
    printf("%s\n", status != DC_OK ? dc_errmsg(h->rt) : luaL_tolstring(h->L, -1, NULL));
    cuda_host_close(h, status);
    return false;
}

/* Two contexts on a device, one on another, in turn on this thread. */
static void test_contexts(void)
{
    cuda_host h[3];
    standin.set("DEVICES", "2");
    for (int i = 0; i < 3; i++)
        if (!counter_open(&h[i], i < 2 ? "cuda:0" : "cuda:1"))
            return;
    for (int n = 0; n < 5; n++)
        for (int i = 0; i < 3; i++)
            call_number(&h[i], "step", i + 1);
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(call_number(&h[i], "value", 0), 3 * 5 * (i + 1), 0);
    cuda_host_close(&h[0], DC_OK);
    call_number(&h[1], "step", 2);
    CHECK_NEAR(call_number(&h[1], "value", 0), 3 * 6 * 2, 0);
    cuda_host_close(&h[1], DC_OK);
    CHECK_EQ(standin.bytes(0), 0);
    CHECK(standin.bytes(1) > 0);
    cuda_host_close(&h[2], DC_OK);
    CHECK_EQ(standin.bytes(1), 0);
    standin.set("DEVICES", "1");
}

/* What is current in the host's thread is so afterwards: nothing, another device's context, the device's own. */
static void test_current(void)
{
    int (*retain)(void **, int), (*release)(int), (*set_current)(void *), (*get_current)(void **);
    void *context[3] = {NULL};
    cuda_host h;
    standin_symbol(standin.cuda, "cuDevicePrimaryCtxRetain", &retain);
    standin_symbol(standin.cuda, "cuDevicePrimaryCtxRelease_v2", &release);
    standin_symbol(standin.cuda, "cuCtxSetCurrent", &set_current);
    standin_symbol(standin.cuda, "cuCtxGetCurrent", &get_current);
    standin.set("DEVICES", "2");
    CHECK(retain(&context[1], 1) == 0 && retain(&context[2], 0) == 0);
    for (int i = 0; i < 3; i++) {
        void *now = NULL;
        CHECK_EQ(set_current(context[i]), 0);
        if (!counter_open(&h, "cuda:0"))
            return;
        CHECK(get_current(&now) == 0 && now == context[i]);
        call_number(&h, "step", 1);
        CHECK(get_current(&now) == 0 && now == context[i]);
        CHECK_NEAR(call_number(&h, "value", 0), 3, 0);
        CHECK(get_current(&now) == 0 && now == context[i]);
        cuda_host_close(&h, DC_OK);
        CHECK(get_current(&now) == 0 && now == context[i]);
    }
    set_current(NULL);
    CHECK(release(1) == 0 && release(0) == 0);
    standin.set("DEVICES", "1");
}

/* A deadline ends a loop of steps between two of them: the cell has the value that a whole number of steps gives. */
static void test_deadline(void)
{
    cuda_host h;
    if (!counter_open(&h, NULL))
        return;
    for (int i = 0; i < 5; i++) {
        lua_settop(h.L, 0);
        lua_getglobal(h.L, "forever");
        CHECK_EQ(dc_pcall(h.L, 0, 0, 0, 20 + 7 * i), DC_E_STOPPED);
        lua_settop(h.L, 0);
        lua_getglobal(h.L, "whole");
        CHECK(lua_pcall(h.L, 0, 1, 0) == LUA_OK && lua_toboolean(h.L, -1));
    }
    call_number(&h, "step", 1);
    cuda_host_close(&h, DC_OK);
}

enum { RING_BYTES = 700001 };

/* What a call of the driver that fails refuses works when it is asked for again. */
static void ring_upload(dc_rt *rt, void *mem, int byte, size_t bytes)
{
    static unsigned char data[RING_BYTES];
    dc_status status = DC_E_DEVICE;
    memset(data, byte, bytes);
    for (int try = 0; try < 2 && status != DC_OK; try++) {
        rt->job.err = (dc_err){0};
        status = rt->device->ops->upload(rt->device, &rt->job, mem, data, bytes);
    }
    CHECK_EQ(status, DC_OK);
    memset(data, 0, bytes);
}

static bool ring_holds(dc_rt *rt, const void *mem, int byte, size_t bytes)
{
    static unsigned char data[RING_BYTES];
    return rt->device->ops->download(rt->device, &rt->job, data, mem, bytes) == DC_OK &&
           data[0] == byte && data[bytes - 1] == byte && memcmp(data, data + 1, bytes - 1) == 0;
}

/* More than the ring of pinned memory holds, while nothing has arrived; the source is written over at once. */
static void test_ring(const char *fault)
{
    enum { MANY = 40 };
    void *mem[MANY];
    cuda_host h;
    if (!counter_open(&h, NULL))
        return;
    dc_device *d = h.rt->device;
    standin.set("FAIL", fault);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(d->ops->alloc(d, &h.rt->job, RING_BYTES, &mem[i]), DC_OK);
        ring_upload(h.rt, mem[i], 100 + i, i % 3 == 0 ? 1000 : RING_BYTES);
    }
    if (!ring_holds(h.rt, mem[0], 100, 1000)) { /* it may arrive yet, where nothing else is put */
        h.rt->job.err = (dc_err){0};
        ring_upload(h.rt, mem[3], 103, 1000);
    }
    standin.set("FAIL", "");
    for (int i = 0; i < MANY; i++) {
        if (!CHECK(ring_holds(h.rt, mem[i], 100 + i, i % 3 == 0 ? 1000 : RING_BYTES)))
            printf("%s: copy %d\n", fault, i);
        d->ops->release(d, mem[i]);
    }
    cuda_host_close(&h, DC_OK);
}

static void test_rings(void)
{
    test_ring("");
    test_ring("cuEventRecord@3=1");
    test_ring("cuEventSynchronize@1=2");
    test_ring("cuEventSynchronize@3=1");
    test_ring("cuStreamSynchronize@1=1");
    test_ring("cuMemcpyDtoHAsync_v2@1=2");
}

/* A cell has its old value where the device refuses the copy of a new one. */
static void test_refused_copy(void)
{
    cuda_script("a refused copy", PRELUDE
                "local w = dc.param('f32[4]', dc.ones 'f32[4]')\n"
                "local v = dc.tensor({ 5, 6, 7, 8 }, 'f32[4]')\n"
                "check(w:totable()[4] == 1 and v:totable()[4] == 8, 'both have values')\n"
                "standin.set('FAIL', 'cuMemcpyDtoDAsync_v2@1=1')\n"
                "local ok, err = pcall(w.set, w, v)\n"
                "standin.set('FAIL', '')\n"
                "check(not ok and tostring(err):find 'CUDA_ERROR_INVALID_VALUE', tostring(err))\n"
                "check(w:totable()[4] == 1, 'the old value')\n"
                "w:set(v)\n"
                "check(w:totable()[4] == 8, 'the new value')\n");
}

/*
 * The compiler joins no products and sums but those that the text joins: of a product that is wanted twice the lowest bit
 * is lost. 1 + 2^-12 squared is 1 + 2^-11 and that bit.
 */
static void test_rounding(void)
{
    cuda_script(
        "rounding", PRELUDE
        "local f = dc.fn('f(x: f32[4], y: f32[4]) -> f32[4], f32[4]', function(x, y)\n"
        "  local p = x * x\n"
        "  return p - y, p + y\n"
        "end)\n"
        "local v = f(dc.full('f32[4]', 1 + 2^-12), dc.full('f32[4]', 1 + 2^-11)):totable()\n"
        "check(v[1] == 0 and v[4] == 0, v[1])\n");
}

static void test_all(void)
{
    test_steady();
    test_one_graph();
    test_moved();
    test_checks();
    setenv("DEEPC_CHECKS", "now", 1);
    test_checks();
    setenv("DEEPC_CHECKS", "later", 1);
    test_given_up();
    test_no_memory();
    test_room();
    test_room_between();
    test_arena();
    test_contexts();
    test_current();
    test_deadline();
    test_rings();
    test_refused_copy();
}

int main(void)
{
    if (!standin_open()) {
        T_SKIP("DEEPC_CUDA and DEEPC_NVRTC name no stand-in for CUDA");
        return t_done();
    }
    setenv("DEEPC_CACHE", "off", 1);
    for (int order = 0; order < 2; order++) {
        standin.set("STREAMS", order == 0 ? "late" : "random");
        test_all();
    }
    standin.set("STREAMS", "eager"); /* each run is over when the next begins */
    test_batches();
    test_rounding();
    return t_done();
}
