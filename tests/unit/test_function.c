/*
 * Typed functions written to files by Lua and called without it: variants, parameters, states, captured
 * tensors, checks; what does not fit; files that are damaged at random.
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
#include "tests/unit/hostgen.h"
#include "tests/unit/rng.h"

static char path[] = "/tmp/deepc-function-XXXXXX";

static dc_rt *open_rt(const char *device, size_t limit)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt;
    cfg.device = device;
    cfg.memory_limit = limit;
    if (!CHECK(dc_open(&cfg, &rt) == DC_OK))
        exit(t_done());
    return rt;
}

/* Runs a script in a state of its own, which may write the file whose name is in `path`. */
static const char *script(const char *device, const char *code)
{
    static char text[1000];
    dc_rt *rt = open_rt(device, 0);
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    lua_pushstring(L, path);
    lua_setglobal(L, "path");
    text[0] = '\0';
    CHECK(dc_attach(L, rt) == DC_OK);
    if (luaL_dostring(L, code) != LUA_OK)
        snprintf(text, sizeof text, "%s", luaL_tolstring(L, -1, NULL));
    lua_close(L);
    return text;
}

static void must_run(const char *device, const char *code)
{
    CHECK_STR(script(device, code), "");
}

static dc_array vector(dc_dtype t, int64_t n, void *data)
{
    return (dc_array){t, 1, {n}, data, (size_t)n * (t == DC_F32 || t == DC_I32 ? 4 : 1)};
}

/* ---- inference ------------------------------------------------------------------------------- */

static const char policy[] =
    "local dc, nn = require 'deepc', require 'deepc.nn'\n"
    "local net = nn.Sequential { nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2) }\n"
    "local scale = dc.tensor { 1, 10 }\n"
    "local f = dc.fn('policy(x: f32[n, 4], bias: f32[]) -> f32[n, 2], i32[n]', function(x, bias)\n"
    "  local y = net(x) * scale + bias\n"
    "  return y, y:argmax(2)\n"
    "end)\n"
    "f:export(path, { n = 1 }, { n = 3 })\n"
    "local y = f(dc.ones 'f32[3, 4]', 0.5)\n"
    "out = io.open(path .. '.txt', 'w')\n"
    "for i = 1, 2 do out:write(('%a\\n'):format(y[1][i]:item())) end\n"
    "out:close()\n";

static void read_expected(double *to, int n)
{
    char name[sizeof path + 4];
    snprintf(name, sizeof name, "%s.txt", path);
    FILE *f = fopen(name, "r");
    for (int i = 0; i < n; i++)
        CHECK(f != NULL && fscanf(f, "%la", &to[i]) == 1);
    if (f != NULL)
        fclose(f);
    unlink(name);
}

static void test_policy(const char *device)
{
    double expected[2] = {0};
    float x[12], bias = 0.5f, y[6];
    int32_t best[3];
    const char *name = NULL;
    dc_function *f = NULL;
    dc_array info;
    must_run(device, policy);
    read_expected(expected, 2);
    for (int i = 0; i < 12; i++)
        x[i] = 1;

    dc_rt *rt = open_rt(device, 0);
    if (!CHECK(dc_load(rt, path, &f) == DC_OK)) {
        puts(dc_errmsg(rt));
        dc_close(rt);
        return;
    }
    CHECK_STR(dc_function_signature(f), "policy(x: f32[n, 4], bias: f32[]) -> f32[n, 2], i32[n]");
    CHECK_EQ(dc_function_variants(f), 2);
    CHECK(dc_function_argument(f, 1, 0, &name, &info));
    CHECK_STR(name, "x");
    CHECK(info.dtype == DC_F32 && info.rank == 2 && info.dim[0] == 3 && info.dim[1] == 4);
    CHECK(info.bytes == 48 && info.data == NULL);
    CHECK(dc_function_argument(f, 0, 1, NULL, &info) && info.rank == 0 && info.bytes == 4);
    CHECK(!dc_function_argument(f, 2, 0, NULL, &info) &&
          !dc_function_argument(f, 0, 2, NULL, &info));
    CHECK(dc_function_result(f, 1, 1, &info) && info.dtype == DC_I32 && info.dim[0] == 3);
    CHECK(!dc_function_result(f, 0, 2, &info));

    dc_array in[2] = {{DC_F32, 2, {3, 4}, x, sizeof x},
                      {.dtype = DC_F32, .data = &bias, .bytes = 4}};
    dc_array out[2] = {{.data = y, .bytes = sizeof y}, {.data = best, .bytes = sizeof best}};
    CHECK_EQ(dc_call(f, in, 2, out, 2), DC_OK);
    CHECK(out[0].rank == 2 && out[0].dim[0] == 3 && out[0].data == y && out[0].bytes == sizeof y);
    for (int i = 0; i < 6; i++)
        CHECK(y[i] == (float)expected[i % 2]);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(best[i], expected[1] > expected[0]);

    /* The other variant; results where they are; no more memory than before. */
    in[0].dim[0] = 1;
    for (int i = 0; i < 3; i++) {
        out[0] = out[1] = (dc_array){.data = NULL};
        const uint64_t allocs = rt->stats.allocs;
        CHECK_EQ(dc_call(f, in, 2, out, 2), DC_OK);
        CHECK(i == 0 || rt->stats.allocs == allocs);
        CHECK(out[0].data != NULL && ((float *)out[0].data)[1] == (float)expected[1]);
        CHECK(out[1].bytes == 4 && *(int32_t *)out[1].data == (expected[1] > expected[0]));
    }

    /* What does not fit. */
    in[0].dim[0] = 2;
    CHECK_EQ(dc_call(f, in, 2, out, 2), DC_E_TYPE);
    CHECK(strstr(dc_errmsg(rt),
                 "policy: no variant for arguments (f32[2, 4], f32[]); it was exported for "
                 "(f32[1, 4], f32[]), (f32[3, 4], f32[])") != NULL);
    in[0].dim[0] = 3;
    in[0].bytes = 47;
    CHECK_EQ(dc_call(f, in, 2, out, 2), DC_E_VALUE);
    in[0].bytes = 48;
    CHECK_EQ(dc_call(f, in, 1, out, 2), DC_E_TYPE);
    CHECK_EQ(dc_call(f, in, 2, out, 1), DC_E_VALUE);
    out[0] = (dc_array){.data = y, .bytes = 20};
    CHECK_EQ(dc_call(f, in, 2, out, 2), DC_E_VALUE);
    CHECK(strstr(dc_errmsg(rt), "result 1 has room for 20 bytes, 24 are needed") != NULL);
    in[0].dtype = (dc_dtype)77;
    in[0].rank = 100;
    CHECK_EQ(dc_call(f, in, 2, out, 2), DC_E_TYPE);
    dc_unload(f);
    CHECK(rt->functions == NULL);
    CHECK_EQ(rt->stats.bytes_live, 0);
    dc_close(rt);
}

/* ---- states, training ------------------------------------------------------------------------ */

static const char training[] =
    "local dc = require 'deepc'\n"
    "local w = dc.param('f32[2]', 0)\n"
    "local count = dc.state('i32[]', 0)\n"
    "local f = dc.fn('step(x: f32[n, 2], y: f32[n], k: i32[n]) -> f32[], i32[]', function(x, y, "
    "k)\n"
    "  local loss = (x:matmul(w) - y):square():mean() + dc.zeros('f32[5]'):take(k, 1):sum()\n"
    "  w:set(w - 0.1 * dc.grad(loss, w))\n"
    "  count:set(count + 1)\n"
    "  return loss, count\n"
    "end, { n = 4 })\n"
    "f:export(path)\n";

static void test_training(const char *device)
{
    float x[8] = {1, 0, 0, 1, 1, 1, 1, -1}, y[4] = {2, 3, 5, -1}, w[2], loss = 0;
    int32_t k[4] = {0, 1, 2, 4}, count = 0;
    dc_function *f;
    const char *name;
    dc_array info;
    must_run(device, training);
    dc_rt *rt = open_rt(device, 0);
    if (!CHECK(dc_load(rt, path, &f) == DC_OK)) {
        puts(dc_errmsg(rt));
        exit(t_done());
    }
    dc_array in[3] = {{DC_F32, 2, {4, 2}, x, sizeof x}, vector(DC_F32, 4, y), vector(DC_I32, 4, k)};
    dc_array out[2] = {{.data = &loss, .bytes = 4}, {.data = &count, .bytes = 4}};
    for (int i = 1; i <= 200; i++) {
        CHECK_EQ(dc_call(f, in, 3, out, 2), DC_OK);
        CHECK_EQ(count, i);
    }
    CHECK(loss < 1e-6f);

    CHECK(dc_function_cell(f, 0, &name, &info) && dc_function_cell(f, 1, NULL, &info));
    CHECK(!dc_function_cell(f, 2, NULL, &info));
    const char *weight = NULL;
    for (size_t i = 0; dc_function_cell(f, i, &name, &info); i++)
        if (info.dtype == DC_F32)
            weight = name;
    dc_array value = {.data = w, .bytes = sizeof w};
    if (!CHECK(weight != NULL))
        exit(t_done());
    CHECK_EQ(dc_function_get(f, weight, &value), DC_OK);
    CHECK_NEAR(w[0], 2, 1e-3);
    CHECK_NEAR(w[1], 3, 1e-3);
    w[0] = w[1] = 0;
    CHECK_EQ(dc_function_set(f, weight, &value), DC_OK);
    CHECK_EQ(dc_call(f, in, 3, out, 2), DC_OK);
    CHECK_NEAR(loss, 39.0 / 4, 1e-4);
    value.dim[0] = 3;
    CHECK_EQ(dc_function_set(f, weight, &value), DC_E_TYPE);
    CHECK_EQ(dc_function_set(f, "nobody", &value), DC_E_VALUE);
    value.bytes = 7;
    CHECK_EQ(dc_function_get(f, weight, &value), DC_E_VALUE);

    k[2] = 5; /* a check: nothing has changed */
    const int32_t before = count;
    CHECK_EQ(dc_call(f, in, 3, out, 2), DC_E_VALUE);
    CHECK(strstr(dc_errmsg(rt), "take: index 5 outside 0..4 of axis 1 at position 3") ==
          dc_errmsg(rt));
    k[2] = 0;
    CHECK_EQ(dc_call(f, in, 3, out, 2), DC_OK);
    CHECK_EQ(count, before + 1);
    dc_close(rt); /* unloads f */
}

/* Two functions of one network: what one trains the other one predicts with. */
static const char pair[] =
    "local dc, nn, optim = require 'deepc', require 'deepc.nn', require 'deepc.optim'\n"
    "dc.seed(1)\n"
    "local net = nn.Sequential { nn.Linear(2, 1) }\n"
    "local opt = optim.SGD(net:parameters(), { lr = 0.1 })\n"
    "local train = dc.fn('train(x: f32[4, 2], y: f32[4, 1]) -> f32[]', function(x, y)\n"
    "  local loss = (net(x) - y):square():mean()\n"
    "  opt:step(loss)\n"
    "  return loss\n"
    "end)\n"
    "local predict = dc.fn('predict(x: f32[4, 2]) -> f32[4, 1]', function(x) return net(x) end)\n"
    "local other = nn.Linear(3, 1)\n"
    "net[1].weight:set(dc.zeros 'f32[2, 1]')\n"
    "train:export(path, {})\n"
    "predict:export(path .. '.predict', {})\n"
    "net = nn.Sequential { nn.Linear(3, 1) }\n"
    "dc.fn('f(x: f32[4, 3]) -> f32[4, 1]', function(x) return net(x) end):export(path .. '.other', "
    "{})\n";

static void test_beside(const char *device)
{
    float x[8] = {1, 0, 0, 1, 1, 1, 1, -1}, y[4] = {2, 3, 5, -1}, said[4], loss = 0;
    char at[sizeof path + 10];
    dc_function *train, *predict, *alone, *f = NULL;
    must_run(device, pair);
    dc_rt *rt = open_rt(device, 0), *elsewhere = open_rt(device, 0);
    CHECK_EQ(dc_load(rt, path, &train), DC_OK);
    snprintf(at, sizeof at, "%s.predict", path);
    CHECK_EQ(dc_load(rt, at, &alone), DC_OK);
    if (!CHECK_EQ(dc_load_beside(rt, at, train, &predict), DC_OK)) {
        puts(dc_errmsg(rt));
        exit(t_done());
    }
    CHECK_EQ(dc_load_beside(elsewhere, at, train, &f), DC_E_VALUE);
    CHECK(f == NULL && strstr(dc_errmsg(elsewhere), "'train' is of another context") != NULL);
    dc_array in[2] = {{DC_F32, 2, {4, 2}, x, sizeof x}, {DC_F32, 2, {4, 1}, y, sizeof y}};
    dc_array told = {.data = &loss, .bytes = 4}, out = {.data = said, .bytes = sizeof said};
    for (int i = 0; i < 400; i++)
        CHECK_EQ(dc_call(train, in, 2, &told, 1), DC_OK);
    CHECK(loss < 1e-4f);
    CHECK_EQ(dc_call(predict, in, 1, &out, 1), DC_OK);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(said[i], y[i], 0.05);
    CHECK_EQ(dc_call(alone, in, 1, &out, 1), DC_OK);
    CHECK(said[0] == said[1] &&
          said[1] == said[2]); /* the bias: its weights are those of the file */
    dc_unload(train);          /* the other one keeps what it shares */
    CHECK_EQ(dc_call(predict, in, 1, &out, 1), DC_OK);
    CHECK_NEAR(said[2], 5, 0.05);
    unlink(at);
    snprintf(at, sizeof at, "%s.other", path);
    CHECK_EQ(dc_load_beside(rt, at, predict, &f), DC_E_FILE);
    CHECK(f == NULL && strstr(dc_errmsg(rt), "has another type in the function beside it") != NULL);
    unlink(at);
    dc_close(elsewhere);
    dc_unload(predict);
    dc_unload(alone);
    CHECK_EQ(rt->stats.bytes_live, 0);
    dc_close(rt);
}

static const char recurrent[] =
    "local dc, nn = require 'deepc', require 'deepc.nn'\n"
    "local gru = nn.GRU(2, 3)\n"
    "local f = dc.fn('read(x: f32[4, 2, 2], n: i32[2]) -> f32[2, 3]', function(x, n)\n"
    "  local _, h = gru(x, nil, { lengths = n })\n"
    "  return h[1]\n"
    "end)\n"
    "f:export(path)\n";

/* A loop, and lengths that are checked, in a file. */
static void test_lengths(const char *device)
{
    float x[16] = {1, 2, 3, 4, 5, 6, 7, 8}, h[6] = {0}, first[6];
    int32_t n[2] = {4, 0};
    dc_function *f;
    must_run(device, recurrent);
    dc_rt *rt = open_rt(device, 0);
    if (!CHECK(dc_load(rt, path, &f) == DC_OK)) {
        puts(dc_errmsg(rt));
        exit(t_done());
    }
    const dc_array in[2] = {{DC_F32, 3, {4, 2, 2}, x, sizeof x}, vector(DC_I32, 2, n)};
    dc_array out = {.data = h, .bytes = sizeof h};
    CHECK_EQ(dc_call(f, in, 2, &out, 1), DC_OK);
    CHECK(h[0] != 0 && h[3] == 0 && h[4] == 0 && h[5] == 0); /* row 2 has no elements */
    memcpy(first, h, sizeof h);
    n[1] = 5;
    CHECK_EQ(dc_call(f, in, 2, &out, 1), DC_E_VALUE);
    CHECK(strstr(dc_errmsg(rt), "nn.GRU: length 5 outside 0..4 at row 2") == dc_errmsg(rt));
    n[1] = 0;
    CHECK_EQ(dc_call(f, in, 2, &out, 1), DC_OK);
    CHECK(memcmp(first, h, sizeof h) == 0);
    dc_close(rt);
}

static const char factors[] =
    "local dc, linalg = require 'deepc', require 'deepc.linalg'\n"
    "local f = dc.fn('half(a: f32[2, 2, 2]) -> f32[2, 2, 2]', function(a)\n"
    "  local l = linalg.cholesky(a)\n"
    "  return l\n"
    "end)\n"
    "f:export(path)\n";

/* Matrices that are tested, in a file. */
static void test_matrices(const char *device)
{
    float a[8] = {4, 0, 0, 9, 16, 0, 0, 1}, l[8] = {0};
    dc_function *f;
    must_run(device, factors);
    dc_rt *rt = open_rt(device, 0);
    if (!CHECK(dc_load(rt, path, &f) == DC_OK)) {
        puts(dc_errmsg(rt));
        exit(t_done());
    }
    const dc_array in = {DC_F32, 3, {2, 2, 2}, a, sizeof a};
    dc_array out = {.data = l, .bytes = sizeof l};
    CHECK_EQ(dc_call(f, &in, 1, &out, 1), DC_OK);
    CHECK(l[0] == 2 && l[3] == 3 && l[4] == 4 && l[7] == 1);
    a[7] = -1;
    CHECK_EQ(dc_call(f, &in, 1, &out, 1), DC_E_VALUE);
    CHECK(strstr(dc_errmsg(rt), "cholesky: matrix 2 is not positive definite") == dc_errmsg(rt));
    dc_close(rt);
}

/* ---- what cannot be ---------------------------------------------------------------------------- */

static bool says(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        printf("'%s' is not in: %s\n", part, text);
    return strstr(text, part) != NULL;
}

static void test_refusals(void)
{
    dc_function *f = NULL;
    CHECK(says(script("eval",
                      "local dc = require 'deepc'\n"
                      "dc.fn('f(x: f32[n]) -> f32[n]', function(x) return x end):export(path)"),
               "export: 'f' was compiled for no sizes yet"));
    CHECK(says(
        script("eval",
               "local dc = require 'deepc'\n"
               "local f = dc.fn('f(x: f32[2], k) -> f32[2]', function(x, k) return x * k end)\n"
               "f:export(path, { k = 1 }, { k = 2 })"),
        "have the same types of arguments"));
    CHECK(
        says(script("eval", "local dc = require 'deepc'\n"
                            "local f = dc.fn('f(x: f32[n]) -> f32[n]', function(x) return x end)\n"
                            "f:export(path, { m = 1 })"),
             "'m'"));
    CHECK(
        says(script("eval", "local dc = require 'deepc'\n"
                            "local f = dc.fn('f(x: f32[2]) -> f32[2]', function(x) return x end)\n"
                            "f:export('/nowhere/at/all')"),
             "[DC0801;"));
    must_run("eval",
             "local dc = require 'deepc'\n"
             "local g = dc.fn('g(x: f32[2], k) -> f32[2]', function(x, k) return x * k end)\n"
             "g:export(path, { k = 2 })\n"
             "dc.save(path .. '.plain', { a = dc.ones 'f32[2]' })\n");
    dc_rt *rt = open_rt("eval", 0);
    float x[2] = {1, 2};
    dc_array in = vector(DC_F32, 2, x), out = {.data = NULL};
    CHECK_EQ(dc_load(rt, path, &f), DC_OK);
    CHECK_EQ(dc_call(f, &in, 1, &out, 1), DC_OK);
    CHECK(((float *)out.data)[1] == 4);
    in.data = NULL;
    CHECK_EQ(dc_call(f, &in, 1, &out, 1), DC_E_VALUE);
    CHECK(says(dc_errmsg(rt), "has 0 bytes, 8 are needed"));
    CHECK_EQ(dc_load(rt, NULL, &f), DC_E_VALUE);
    CHECK_EQ(dc_load(rt, "/nowhere", &f), DC_E_FILE);
    CHECK(f == NULL);
    char plain[sizeof path + 6];
    snprintf(plain, sizeof plain, "%s.plain", path);
    CHECK_EQ(dc_load(rt, plain, &f), DC_E_FILE);
    CHECK(says(dc_errmsg(rt), "no function is in it"));
    unlink(plain);
    dc_close(rt);

    rt = open_rt("eval", 8); /* there is no room for it */
    CHECK_EQ(dc_load(rt, path, &f), DC_E_NOMEM);
    CHECK(rt->functions == NULL);
    dc_close(rt);
}

/* ---- damaged files ----------------------------------------------------------------------------- */

static char *contents(size_t *n)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(1 << 16);
    *n = file != NULL ? fread(text, 1, 1 << 16, file) : 0;
    if (file != NULL)
        fclose(file);
    return text;
}

static void put_contents(const char *text, size_t n)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(text, 1, n, file) == n);
    if (file != NULL)
        fclose(file);
}

/* Anything but a crash: a mutation may still be a function. */
static void try_file(dc_rt *rt, int *loaded)
{
    dc_function *f;
    const dc_status status = dc_load(rt, path, &f);
    CHECK(status == DC_OK || status == DC_E_FILE || status == DC_E_NOMEM);
    if (status != DC_OK) {
        CHECK(f == NULL && rt->functions == NULL);
        return;
    }
    static char data[4096];
    dc_array in[8], out[8];
    size_t nin = 0, nout = 0;
    ++*loaded;
    while (nin < 8 && dc_function_argument(f, 0, nin, NULL, &in[nin]) &&
           in[nin].bytes < sizeof data)
        in[nin++].data = data;
    while (nout < 8 && dc_function_result(f, 0, nout, &out[nout]))
        nout++;
    dc_call(f, in, nin, out, nout);
    dc_unload(f);
}

static void test_damage(rng *dice)
{
    size_t n;
    int loaded = 0;
    must_run("eval", training);
    char *good = contents(&n), *bad = malloc(n);
    dc_rt *rt = open_rt("eval", 1 << 20);
    for (int i = 0; i < 1500; i++) {
        memcpy(bad, good, n);
        size_t size = n;
        const int kind = rng_below(dice, 4);
        const size_t at = 8 + (size_t)rng_below(dice, (int)n - 8);
        if (kind == 0)
            size = at;
        else if (kind == 1)
            bad[at] = (char)rng_below(dice, 256);
        else if (kind == 2) /* a digit: sizes, counts, numbers of nodes */
            for (size_t k = at; k < n; k++)
                if (bad[k] >= '0' && bad[k] <= '9') {
                    bad[k] = (char)('0' + rng_below(dice, 10));
                    break;
                }
        if (kind == 3) /* two places that are equal */
            memmove(bad + at, bad + 8 + rng_below(dice, (int)(n - 20)), n - at < 12 ? n - at : 12);
        put_contents(bad, size);
        try_file(rt, &loaded);
    }
    printf("%d of the damaged files are functions\n", loaded);
    CHECK_EQ(rt->stats.bytes_live, 0);
    dc_close(rt);
    free(good);
    free(bad);
}

int main(int argc, char **argv)
{
    rng dice = {rng_seed(argc, argv, 5)};
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    test_policy("cpu");
    test_policy("eval");
    test_training("cpu");
    test_training("eval");
    test_beside("cpu");
    test_beside("eval");
    test_lengths("cpu");
    test_lengths("eval");
    if (hostgen_missing() == NULL) {
        test_matrices("cpu");
        test_matrices("eval");
    } else {
        T_SKIP(hostgen_missing());
    }
    test_refusals();
    test_damage(&dice);
    unlink(path);
    return t_done();
}
