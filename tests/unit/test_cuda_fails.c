/*
 * Calls of the CUDA driver and of NVRTC that fail, one after the other, on the stand-in (tests/cuda): a script opens a
 * device, trains, reads, saves and closes while the n-th call of any entry fails, for rising n, with each kind of error.
 * It ends well, or with an error that says why; the context closes, nothing is misused, nothing leaks, cells of a call that
 * was not begun have their old values, and where the device lives the same script in the same state then does what it always
 * does. The same with memory that the host refuses, once or from then on.
 *
 *   test_cuda_fails [step [first]]      each step-th call (11), from `first` on
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "tests/unit/cuda_run.h"
#include "tests/unit/hostmem.h"

enum { OUT_OF_MEMORY = 2, INVALID_VALUE = 1, UNAVAILABLE = 46, ECC = 214, LAUNCH_FAILED = 719 };

static const int errors[] = {OUT_OF_MEMORY, INVALID_VALUE, UNAVAILABLE, ECC, LAUNCH_FAILED};

/* Both cells get the same: they tell of a call that was torn. */
static const char script[] =
    "local dc = require 'deepc'\n"
    "local a = dc.param('f32[40]', dc.zeros 'f32[40]')\n"
    "local b = dc.param('f32[40]', dc.zeros 'f32[40]')\n"
    "cells = { a, b }\n"
    "local step = dc.fn('step(x: f32[40], at: i32[2], k: f32[]) -> f32[]', function(x, at, k)\n"
    "  local part = x:take(at, 1)\n"
    "  a:set(a + k * x:sum())\n"
    "  b:set(b + k * x:sum())\n"
    "  return (x:softmax(1) * a):sum() + part:sum()\n"
    "end)\n"
    "local other = dc.fn('other(x: f32[40]) -> f32[]', function(x)\n"
    "  return (x:softmax(1) * 2):cumsum(1):sum()\n"
    "end)\n"
    "function train()\n"
    "  local x, at = dc.full('f32[40]', 0.5), dc.tensor({ 3, 4 }, 'i32')\n"
    "  a:set(dc.zeros 'f32[40]')\n"
    "  b:set(dc.zeros 'f32[40]')\n"
    "  local sum = 0\n"
    "  for k = 1, 3 do sum = sum + step(x, at, k):item() end\n"
    "  local job = other:start(x)\n" /* it has the arena: graphs are built anew */
    "  sum = sum + step(x, at, 0):item() + job:result():item()\n"
    "  local path = os.tmpname()\n"
    "  local ok, err = pcall(dc.save, path, { a = a, b = b })\n"
    "  os.remove(path)\n"
    "  if not ok then error(err, 0) end\n"
    "  return sum + a:totable()[40]\n"
    "end\n";

/* The elements of a cell are alike, and a whole number of the steps that there are: 0, 20, 60, 120. */
static const char look[] =
    "local fine = { [0] = true, [20] = true, [60] = true, [120] = true }\n"
    "for i, c in ipairs(cells or {}) do\n"
    "  local ok, v = pcall(c.totable, c)\n"
    "  if not ok then return tostring(v) end\n"
    "  for k = 1, 40 do\n"
    "    if v[k] ~= v[1] or not fine[v[k]] then return 'torn: ' .. v[k] end\n"
    "  end\n"
    "end\n"
    "return ''\n";

static const double want = 4 * 1 + 20 + 60 + 120 + 120 + 41 + 120;

static long finished, refused, lost, torn;

static bool train(cuda_host *h, double *result)
{
    lua_settop(h->L, 0);
    if (!cuda_host_call(h, "script", script) || lua_getglobal(h->L, "train") != LUA_TFUNCTION ||
        lua_pcall(h->L, 0, 1, 0) != LUA_OK)
        return false;
    *result = lua_tonumber(h->L, -1);
    return true;
}

static void complain(const char *fault, const char *text)
{
    printf("%s: %s\n", fault, text);
}

/* What the message has to say. */
static bool says_why(const char *text)
{
    return strstr(text, "CUDA") != NULL || strstr(text, "cuda") != NULL ||
           strstr(text, "memory") != NULL || strstr(text, "compiler") != NULL;
}

static void check_rest(cuda_host *h, const char *fault, bool is_lost)
{
    double result = 0;
    if (CHECK(cuda_host_call(h, "look", look))) {
        const char *text = luaL_tolstring(h->L, -1, NULL);
        const bool told = strstr(text, "may hold half of a value") != NULL;
        torn += told;
        if (!CHECK(is_lost || text[0] == '\0' || (told && strstr(fault, "=2") == NULL)))
            complain(fault, text);
        if (!CHECK(strncmp(text, "torn: ", 6) != 0))
            complain(fault, text);
    }
    if (is_lost)
        return;
    if (CHECK(train(h, &result)))
        CHECK_NEAR(result, want, 1e-3);
    else
        complain(fault, luaL_tolstring(h->L, -1, NULL));
}

/* Nothing is left on the device, nothing was misused. */
static void check_closed(const char *fault)
{
    CHECK_EQ(standin.bytes(0), 0);
    for (const char *wrong; (wrong = standin.take_wrong()) != NULL;)
        if (!CHECK(false))
            complain(fault, wrong);
}

/* The script with this failure; true when it came to it. */
static void visit(const char *fault, bool is_lost)
{
    cuda_host h;
    double result = 0;
    standin.set("FAIL", fault);
    const dc_status status = cuda_host_open(&h, NULL);
    const bool ran = status == DC_OK && train(&h, &result);
    standin.set("FAIL", "");
    if (status != DC_OK) {
        refused++;
        if (!CHECK(says_why(dc_errmsg(h.rt))))
            complain(fault, dc_errmsg(h.rt));
    } else if (!ran) {
        const char *text = luaL_tolstring(h.L, -1, NULL);
        refused++;
        lost += is_lost;
        if (!CHECK(says_why(text)))
            complain(fault, text);
        check_rest(&h, fault, is_lost);
    } else {
        finished++;
        if (!CHECK(fabs(result - want) <= 1e-3))
            complain(fault, "another result");
    }
    cuda_host_close(&h, status);
    check_closed(fault);
}

/* Calls of the driver that the script makes. */
static uint64_t count_calls(const char *entry)
{
    const uint64_t before = standin.calls(entry);
    visit("", false);
    return standin.calls(entry) - before;
}

static void sweep(uint64_t step, uint64_t first)
{
    char fault[80];
    const uint64_t n = count_calls("*");
    CHECK_EQ(finished, 1);
    for (uint64_t i = first; i <= n; i += step)
        for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
            snprintf(fault, sizeof fault, "*@%llu=%d", (unsigned long long)i, errors[e]);
            visit(fault, errors[e] > 2);
        }
    printf("%llu calls of the driver; %ld scripts came to their end, %ld did not, %ld of them on a "
           "lost device, %ld with a cell that has to be set again\n",
           (unsigned long long)n, finished, refused, lost, torn);
}

static void sweep_compiler(void)
{
    static const char *const entries[] = {
        "nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs", "nvrtcCreateProgram",
        "nvrtcCompileProgram",       "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",
        "nvrtcGetCUBINSize",         "nvrtcGetCUBIN",          "nvrtcDestroyProgram",
    };
    char fault[80];
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        for (int n = 1; n <= 4; n++)
            for (int error = 1; error <= 6; error += 5) {
                snprintf(fault, sizeof fault, "%s@%d=%d", entries[i], n, error);
                visit(fault, false);
            }
}

/* Allocations of the context that fail while it opens and runs the script. */
static void visit_memory(hostmem *m, long first, bool alone)
{
    char fault[80];
    cuda_host h;
    double result = 0;
    dc_config cfg = DC_CONFIG_INIT;
    snprintf(fault, sizeof fault, "allocation %ld%s", first, alone ? "" : " and all that follow");
    cfg.device = "cuda:0";
    cfg.alloc = hostmem_give;
    cfg.alloc_ctx = m;
    m->first = 0;
    if (first > 0)
        hostmem_refuse(m, first, alone);
    m->refused = 0;
    const dc_status status = cuda_host_open_as(&h, &cfg);
    const bool ran = status == DC_OK && train(&h, &result);
    hostmem_allow(m);
    if (ran && !CHECK(fabs(result - want) <= 1e-3))
        complain(fault, "another result");
    if (!ran)
        CHECK(m->refused > 0);
    if (status == DC_OK && !ran) {
        const char *text = luaL_tolstring(h.L, -1, NULL);
        if (!CHECK(strstr(text, "memory") != NULL))
            complain(fault, text);
        check_rest(&h, fault, false);
    }
    cuda_host_close(&h, status);
    if (!CHECK_EQ(m->bytes, 0))
        complain(fault, "of the host's memory");
    check_closed(fault);
}

/* What opens the device is visited whole. */
static void sweep_memory(uint64_t step, uint64_t from)
{
    enum { OPENING = 40 };
    hostmem m = {0};
    visit_memory(&m, 0, true);
    const long n = m.n;
    for (long first = (long)from; first <= n; first += first < OPENING ? 1 : 3 * (long)step)
        for (int alone = 0; alone < 2; alone++)
            visit_memory(&m, first, alone != 0);
    printf("%ld allocations\n", n);
}

int main(int argc, char **argv)
{
    const uint64_t step = argc > 1 ? strtoull(argv[1], NULL, 10) : 11;
    const uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (!standin_open()) {
        T_SKIP("DEEPC_CUDA and DEEPC_NVRTC name no stand-in for CUDA");
        return t_done();
    }
    setenv("DEEPC_CACHE", "off", 1);
    standin.set("WRONG", "report");
    sweep(step > 0 ? step : 1, first > 0 ? first : 1);
    sweep_compiler();
    sweep_memory(step > 0 ? step : 1, first > 0 ? first : 1);
    return t_done();
}
