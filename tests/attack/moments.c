/*
 * Stops at random moments in fifteen kinds of work: how long what runs goes on after dc_stop, from another thread, or
 * after its deadline. After each the context is used.
 *
 *     moments [N [SEED]]     N moments for each kind; prints median, 99 % and the longest, in ms
 *
 * Termination is what is asserted, within a bound that no machine under load exceeds; the figures are for release
 * builds on an idle machine.
 */
#define _POSIX_C_SOURCE 200809L
#include "core/base/base.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lualib.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "tests/t.h"
#include "tests/unit/folder.h"
#include "tests/unit/lua_run.h"

#define BOUND_MS 4000.0

static const char setup[] =
    "dc, nn, optim = require 'deepc', require 'deepc.nn', require 'deepc.optim'\n"
    "dc.seed(1)\n"
    "function spin() local s = 0 while true do s = s + 1 end end\n"
    "double = dc.fn('double(x: f32[]) -> f32[]', function(x) return x * 2 end)\n"
    "local net = nn.Sequential { nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10) }\n"
    "local opt = optim.Adam(net:parameters())\n"
    "step = dc.fn('step(x: f32[64, 64], y: i32[64]) -> f32[]', function(x, y)\n"
    "  local loss = nn.cross_entropy(net(x), y) opt:step(loss) return loss end)\n"
    "x, y = dc.rand('f32[64, 64]', { seed = 1 }), dc.iota 'i32[64]' % 10\n"
    "long = dc.fn('long(k: f32[]) -> f32[]', function(k)\n"
    "  return (dc.iota 'f32[2000000000000]' * k):sin():sum() end)\n"
    "if dc.stats().device ~= 'eval' then long:info() end\n"
    "assert(double(1):item() == 2 and step(x, y):item() > 0)\n";

typedef struct kind {
    const char *name, *device, *code;
    const char *before, *after; /* run once; NULL: nothing */
} kind;

static const kind kinds[] = {
    {"Lua in pcall", "eval", "while true do pcall(spin) end", NULL, NULL},
    {"coroutines", "eval",
     "while true do local co = coroutine.wrap(function() while true do "
     "coroutine.yield(pcall(string.rep, 'x', 9)) "
     "end end)\n for _ = 1, 50 do co() end pcall(coroutine.wrap(function() "
     "pcall(function() for _ "
     "= 1, 2000 do end "
     "end) end)) end",
     NULL, NULL},
    {"training steps", "cpu", "while true do pcall(step, x, y) end", NULL, NULL},
    {"one long kernel", "cpu", "while true do pcall(long, 1.5) end", NULL, NULL},
    {"interpreter", "eval",
     "local a = dc.rand('f32[300, 300]', { seed = 2 })\n"
     "while true do pcall(function() return (a:matmul(a) * 0.01):exp():sum():item() "
     "end) end",
     NULL, NULL},
    {"lazy code and callbacks", "cpu",
     "local n = 0 while true do pcall(function() n = n % 40 + 1\n"
     "local t = dc.rand('f32[' .. n * 100 .. ']', { seed = 3 }) for _ = 1, n do t = t "
     "* 1.5 + 1 "
     "end t:sum():item()\n"
     "table.sort({ 5, 3, 1, 4, 2 }, function(a, b) pcall(string.gsub, 'abc', '.', "
     "function(c) "
     "return c .. a end) "
     "return a < b end) end) end",
     NULL, NULL},
    {"files and tables", "cpu",
     "turn = turn + 1 local f = work[turn % #work + 1] while true do pcall(f) end",
     "turn, big = 0, dc.iota 'f32[4000000]' local list, cell = big:totable(), "
     "dc.state('f32[4000000]', "
     "big)\n"
     "work = { function() dc.save(path, { x = big }) end, function() dc.load(path) "
     "end,\n"
     "function() dc.load(path, { x = cell }) end, function() cell:set(big) end,\n"
     "function() big:clone() end, function() big:totable() end, function() "
     "dc.tensor(list) end }\n"
     "work[1]()",
     "assert(dc.load(path).x[4000000]:item() == 3999999)"},
    {"tokenizers", "eval",
     "turn = turn + 1 local f = work[turn % #work + 1] while true do pcall(f) end",
     "turn, work = 0, {}\n"
     "local tokenizers = require 'deepc.tokenizers'\n"
     "local function from(json)\n"
     "  local file = assert(io.open(path .. '.json', 'w')) file:write(json) "
     "file:close()\n"
     "  local ok, tok = pcall(tokenizers.load, path .. '.json') os.remove(path .. "
     "'.json') return "
     "ok and tok or nil end\n"
     "local texts = { ('a'):rep(4000000), (' '):rep(4000000), ('ab \xcc\x81\xc3\xa9  "
     "\\n'):rep(400000) }\n"
     "local bpe = '\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, "
     "\"aa\": 2, "
     "\"ab\": 3, "
     "\"aaaa\": 4, \"\xc4\xa0\": 5}, \"merges\": [\"a a\", \"a b\", \"aa aa\"]}}'\n"
     "local uni = '\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": "
     "[[\"?\", 0], "
     "[\"a\", -1], "
     "[\"aa\", -2], [\"' .. ('a'):rep(1000) .. '\", -3]]}}'\n"
     "local function split(regex) return '{\"pre_tokenizer\": {\"type\": \"Split\", "
     "\"pattern\": "
     "{\"Regex\": \"' "
     ".. regex .. '\"}, \"behavior\": \"Isolated\"}, ' .. bpe end\n"
     "local bytes = '{\"pre_tokenizer\": {\"type\": \"ByteLevel\", "
     "\"add_prefix_space\": false}, "
     "\"decoder\": {\"type\": \"ByteLevel\"}, ' .. bpe\n"
     "local norm = '{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": "
     "[{\"type\": "
     "\"NFKC\"}, "
     "{\"type\": \"BertNormalizer\"}, {\"type\": \"NFD\"}, {\"type\": "
     "\"StripAccents\"}]}, '\n"
     "local added = '{\"added_tokens\": [{\"id\": 9, \"content\": \" \", \"rstrip\": "
     "true}], '\n"
     "for _, json in ipairs { bytes, norm .. bpe, '{' .. uni, added .. bpe, split "
     "'a(?=.*z)', "
     "split '(a|aa)+$', \n"
     "    split '(?:a?){30}a{30}b', split '(a+)\\\\\\\\1+b', split ' {2,}', split "
     "'(?=(.*)(.*)(.*)x)a' "
     "} do\n"
     "  local tok = from(json)\n"
     "  for _, text in ipairs(tok and texts or {}) do\n"
     "    work[#work + 1] = function() tok:encode(text, { offsets = true }) end\n"
     "    work[#work + 1] = function() tok:decode(tok:encode(text)) end end end\n",
     NULL},
    {"templates", "eval",
     "turn = turn + 1 local f = work[turn % #work + 1] while true do pcall(f) end",
     "turn, work = 0, {}\n"
     "local tok = require 'deepc.tokenizers'.load { vocab = { '[UNK]', 'a' }, kind = "
     "'bert' }\n"
     "local messages = {} for i = 1, 300 do messages[i] = { role = 'user', content = "
     "(' a'):rep(i) "
     "} end\n"
     "for _, template in ipairs {\n"
     "  '{% for m in messages %}{% for k in messages %}{{ m.content | trim }}{{ k | "
     "tojson }}{% "
     "endfor %}{% endfor %}',\n"
     "  '{% for i in range(1000000) %}{{ i }}{% endfor %}',\n"
     "  '{{ messages | map(attribute=\"content\") | join(\",\") | upper | length }}',\n"
     "  ('{% if true %}'):rep(2000) } do\n"
     "  work[#work + 1] = function() tok:chat(messages, { template = template }) end "
     "end\n",
     NULL},
    {"JSON", "eval", "while true do pcall(tokenizers.load, path .. '.json') end",
     "tokenizers = require 'deepc.tokenizers'\n"
     "local file, list = assert(io.open(path .. '.json', 'w')), {}\n"
     "for i = 1, 200000 do list[i] = ('\"t%d\": %d'):format(i, i - 1) end\n"
     "file:write('{\"x\": \"', ('a'):rep(4000000), '\", \"model\": {\"type\": "
     "\"WordLevel\", "
     "\"vocab\": {', "
     "table.concat(list, ', '), '}}}') file:close()\n",
     "os.remove(path .. '.json')"},
    {"CSV and images", "eval",
     "turn = turn + 1 local f = work[turn % #work + 1] while true do pcall(f) end",
     "data, turn = require 'deepc.data', 0\n"
     "local file, rows = assert(io.open(path .. '.csv', 'w')), {}\n"
     "for i = 1, 100000 do rows[i] = i .. ',text ' .. i .. ',' .. i / 7 end\n"
     "file:write('a,b,c\\n', table.concat(rows, '\\n'), '\\n') file:close()\n"
     "local image = dc.iota('i32[900, 900, 3]') % 256\n"
     "data.write_image(path .. '.png', image:cast 'u8')\n"
     "work = { function() data.read_csv(path .. '.csv') end, function() "
     "data.read_image(path .. '.png') end }\n"
     "work[1]() work[2]()",
     "os.remove(path .. '.csv') os.remove(path .. '.png')"},
    {"sorting, transforms", "cpu",
     "turn = turn + 1 local f = work[turn % #work + 1] while true do pcall(f) end",
     "fft, turn = require 'deepc.fft', 0\n"
     "local a = dc.rand('f32[50, 40000]', { seed = 4 })\n"
     "local row = dc.rand('f32[1000000]', { seed = 5 })\n"
     "work = { function() a:sort():sum():item() end, function() "
     "row:sort():sum():item() end,\n"
     "function() a:cumsum(2):sum():item() end, function() "
     "fft.rfft(a):abs():sum():item() end }\n"
     "for i = 1, #work do work[i]() end",
     NULL},
#define LONG_ROWS                                                                                  \
    "turn = turn + 1 local f = work[turn % #work + 1] while true do pcall(f) end",                 \
        "random, turn = require 'deepc.random', 0\n"                                               \
        "local row, wide = dc.rand('f32[8000000]', { seed = 7 }), dc.iota 'i64[4000000]' % 9973\n" \
        "work = { function() row:sort():sum():item() end,\n"                                       \
        "function() wide:argsort():sum():item() end,\n"                                            \
        "function() row:top_k(100):sum():item() end,\n"                                            \
        "function() row:cumsum():sum():item() end,\n"                                              \
        "function() wide:cummax():sum():item() end,\n"                                             \
        "function() random.permutation(8000000):sum():item() end }\n"                              \
        "for i = 1, #work do work[i]() end",                                                       \
        NULL
    {"long rows", "cpu", LONG_ROWS},
    {"long rows, interpreted", "eval", LONG_ROWS},
#undef LONG_ROWS
    {"linear algebra", "cpu",
     "turn = turn + 1 local f = work[turn % #work + 1] while true do pcall(f) end",
     "linalg, turn = require 'deepc.linalg', 0\n"
     "local a = dc.rand('f32[400, 40, 40]', { seed = 6 }) + dc.eye('f32[40, 40]')\n"
     "work = { function() linalg.inv(a):sum():item() end, function() "
     "linalg.svdvals(a):sum():item() end,\n"
     "function() linalg.solve(a, a):sum():item() end }\n"
     "if not pcall(work[1]) then work = { function() a:matmul(a):sum():item() end } "
     "end\n", /* no LAPACK here */
     NULL},
};

typedef struct stopper {
    dc_rt *ctx;
    uint64_t after;
    atomic_ullong at;
} stopper;

static void *stop_then(void *arg)
{
    stopper *s = arg;
    const struct timespec wait = {.tv_sec = (time_t)(s->after / 1000000000u),
                                  .tv_nsec = (long)(s->after % 1000000000u)};
    nanosleep(&wait, NULL);
    atomic_store(&s->at, dc_clock_ns());
    dc_stop(s->ctx);
    return NULL;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Every other moment a deadline; how late the end came, in ms. */
static double end_once(lua_State *L, dc_rt *ctx, const kind *k, uint64_t *state, bool deadline)
{
    pthread_t thread;
    const uint64_t random = next_random(state);
    const unsigned within = next_random(state) % 8 == 0 ? 100 : 12; /* ms */
    stopper s = {.ctx = ctx, .after = random % (within * 1000000u)};
    const int64_t ms = deadline ? (int64_t)(1 + random % within) : 0;
    CHECK_EQ(luaL_loadstring(L, k->code), LUA_OK);
    const uint64_t begun = dc_clock_ns();
    if (!deadline)
        CHECK_EQ(pthread_create(&thread, NULL, stop_then, &s), 0);
    const int status = dc_pcall(L, 0, 0, 0, ms);
    const uint64_t ended = dc_clock_ns();
    if (!deadline)
        pthread_join(thread, NULL);
    CHECK_EQ(status, DC_E_STOPPED);
    lua_settop(L, 0);
    const uint64_t asked = deadline ? begun + (uint64_t)ms * 1000000u : atomic_load(&s.at);
    return ended > asked ? (double)(ended - asked) * 1e-6 : 0;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_kind(const kind *k, int n, uint64_t seed)
{
    dc_rt *ctx;
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = k->device;
    if (!CHECK(dc_open(&cfg, &ctx) == DC_OK)) {
        dc_close(ctx);
        return;
    }
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    CHECK_EQ(dc_attach(L, ctx), DC_OK);
    lua_pushstring(L, folder_path("file"));
    lua_setglobal(L, "path");
    CHECK(lua_run(L, setup) && (k->before == NULL || lua_run(L, k->before)));
    double *late = calloc((size_t)n, sizeof *late);
    for (int i = 0; i < n; i++) {
        late[i] = end_once(L, ctx, k, &seed, i % 2 == 1);
        CHECK(lua_run(L, "assert(double(4):item() == 8)"));
    }
    CHECK(lua_run(L, "local l = step(x, y):item() assert(l == l and l < 10)"));
    CHECK(k->after == NULL || lua_run(L, k->after));
    CHECK(folder_entries("") <= 1);
    qsort(late, (size_t)n, sizeof *late, compare);
    printf("%-24s median %7.3f  99 %% %7.3f  longest %7.3f ms\n", k->name, late[n / 2],
           late[n * 99 / 100], late[n - 1]);
    fflush(stdout);
    CHECK(late[n - 1] < BOUND_MS);
    free(late);
    lua_close(L);
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 100;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    printf("seed %llu\n", (unsigned long long)seed);
    if (!CHECK(folder_make()))
        return t_done();
    for (size_t i = 0; i < DC_COUNTOF(kinds); i++)
        run_kind(&kinds[i], n < 2 ? 2 : n, seed + i);
    CHECK(folder_remove());
    return t_done();
}
