/*
 * Stops at random moments in every reader of files: large files of each format are read again and again, and dc_stop from
 * another thread or a deadline ends it. How much of the processor was used after dc_stop, which says what a reader does
 * without looking, whatever else runs. Afterwards the context is used, the file is read whole, and no descriptor is left.
 *
 *     readers [N [SEED [NAME]]]     N moments for each reader; prints median, 99 % and the longest, in ms of the processor
 *
 * Termination is what is asserted, within a bound that no machine under load exceeds.
 */
#define _GNU_SOURCE
#include "core/base/base.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lualib.h>

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/t.h"
#include "tests/unit/folder.h"
#include "tests/unit/lua_run.h"

#define BOUND_MS 4000.0

static const char setup[] =
    "dc, data = require 'deepc', require 'deepc.data'\n"
    "double = dc.fn('double(x: f32[]) -> f32[]', function(x) return x * 2 end)\n"
    "function put(name, ...)\n"
    "  path = folder .. '/' .. name\n"
    "  local f = assert(io.open(path, 'wb'))\n"
    "  for _, part in ipairs { ... } do f:write(part) end\n"
    "  f:close()\n"
    "end\n"
    "function text(s) return 'X' .. string.pack('<s4', s) end\n";

typedef struct reader {
    const char *name;
    const char *make; /* writes the file, sets `path` */
    const char *read; /* a function of nothing that reads it and checks what there is */
} reader;

static const reader readers[] = {
    {"table (csv)", "put('a.csv', 'a,b,c\\n', ('1.5,-2,7e-3\\n'):rep(300000))",
     "assert(data.read_csv(path).c.shape[1] == 300000)"},
    {"table of texts (csv)", "put('b.csv', 'a,b\\n', ('\"x, \"\"y\"\"\",word\\n'):rep(200000))",
     "assert(#data.read_csv(path).a == 200000)"},
    {"array (npy)", "path = folder .. '/a.npy' data.write_npy(path, dc.iota 'f32[8000000]')",
     "assert(data.read_npy(path)[7999999]:item() == 7999998)"},
    {"archive, deflated (npz)",
     "path = folder .. '/a.npz'\n"
     "data.write_npz(path, { x = dc.iota 'f32[3000000]' }, { compress = true })",
     "assert(data.read_npz(path).x[3000000]:item() == 2999999)"},
    {"archive, deflated (dc.load)", NULL, "assert(dc.load(path).x[3000000]:item() == 2999999)"},
    {"GGUF",
     "put('a.gguf', 'GGUF', string.pack('<I4I8I8s8I4I4I8', 3, 1, 2, 'words', 9, 8, 400000),\n"
     "  string.pack('<s8', 'a word'):rep(400000), string.pack('<s8I4I4', 'general.alignment', 4, "
     "1),\n"
     "  string.pack('<s8I4I8I4I8', 'x', 1, 4000000, 8, 0), '\\0\\x38' .. "
     "('\\1'):rep(34 * 125000 - 2))",
     NULL},
    {"PyTorch (.pt)",
     "put('a.pt', '\\x80\\2\\x8a\\10l\\xfc\\x9c\\x46\\xf9\\x20j\\xa8P\\x19.', "
     "'\\x80\\2M\\xe9\\3.', '\\x80\\2}.',\n"
     "  '\\x80\\2}(' .. text 'list' .. '](', ('K\\1'):rep(400000), 'e', text 'x',\n"
     "  'ctorch._utils\\n_rebuild_tensor_v2\\n((' .. text 'storage' .. "
     "'ctorch\\nFloatStorage\\n',\n"
     "  text '0' .. text 'cpu', string.pack('<c1i4', 'J', 4000000) .. "
     "'NtQK\\0M\\xd0\\7M\\xd0\\7\\x86',\n"
     "  'K\\1M\\xd0\\7\\x86\\x89ccollections\\nOrderedDict\\n)RtRu.', '\\x80\\2](' .. text '0' .. "
     "'e.',\n"
     "  string.pack('<I8', 4000000), string.pack('<f', 2.5):rep(4000000))",
     "local t = dc.load(path) assert(#t.list == 400000 and t.x[{ 2000, 2000 }]:item() == 2.5)"},
    {"safetensors",
     "path = folder .. '/a.safetensors' local all = {}\n"
     "for i = 1, 2000 do all['t' .. i] = dc.ones 'f32[1000]' end dc.save(path, all)",
     "assert(dc.load(path).t2000[1000]:item() == 1)"},
    {"image (png)",
     "path = folder .. '/a.png'\n"
     "data.write_image(path, (dc.iota 'i32[2000, 2000]' * 7 % 251):cast 'u8')",
     "assert(data.read_image(path).shape[1] == 2000)"},
    {"image (jpeg)",
     "path = folder .. '/a.jpg'\n"
     "data.write_image(path, (dc.iota 'i32[1000, 1000, 1]' * 7 % 251):cast 'u8')",
     "assert(data.read_image(path).shape[1] == 1000)"},
    {"sound (wav)",
     "path = folder .. '/a.wav' data.write_wav(path, dc.iota 'f32[6000000]' % 2 - 1, 8000)",
     "assert(data.read_wav(path).shape[1] == 6000000)"},
    {"chunks (wav)",
     "put('b.wav', 'RIFF\\0\\0\\0\\0WAVE', ('none\\0\\0\\0\\0'):rep(1000000), 'fmt "
     "\\16\\0\\0\\0\\1\\0\\1\\0',\n"
     "  string.pack('<I4I4I2I2', 8000, 8000, 1, 8), 'data\\1\\0\\0\\0x\\0')",
     "assert(data.read_wav(path).shape[1] == 1)"},
    {"sound (FLAC)",
     "local function crc(s, poly, width)\n"
     "  local c = 0\n"
     "  for i = 1, #s do\n"
     "    c = c ~ s:byte(i) << width - 8\n"
     "    for _ = 1, 8 do c = c << 1 c = c >> width ~= 0 and c ~ poly ~ 1 << width or c end\n"
     "  end\n"
     "  return c\n"
     "end\n"
     "local frames = {}\n"
     "for i = 0, 99 do\n" /* of a constant each */
     "  local head = string.pack('>I2BBBI2', 0xfff8, 0x70, 0x08, i, 59999)\n"
     "  head = head .. string.char(crc(head, 7, 8)) .. '\\0\\1\\0'\n"
     "  frames[i + 1] = head .. string.pack('>I2', crc(head, 0x8005, 16))\n"
     "end\n"
     "put('a.flac', 'fLaC\\x80\\0\\0\\34', string.pack('>I2I2I4I2I8', 60000, 60000, 0, 0,\n"
     "  8000 << 44 | 15 << 36 | 6000000), ('\\0'):rep(16), table.concat(frames))",
     "assert(data.read_sound(path).shape[1] == 6000000)"},
    {"images (idx)",
     "put('a.idx', '\\0\\0\\8\\3', string.pack('>I4I4I4', 10000, 28, 28), ('x'):rep(7840000))",
     "assert(data.idx(path).shape[1] == 10000)"},
    {"text", "put('a.txt', ('some words of a text\\n'):rep(500000))",
     "assert(#data.read_text(path) == 10500000)"},
    {"letters", NULL, "assert(data.Vocabulary(data.read_text(path)))"},
    {"bytes", NULL, "assert(data.read_bytes(path, 'u8[10500000]').shape[1] == 10500000)"},
};

/* ---- one moment ------------------------------------------------------------------------------- */

typedef struct stopper {
    dc_rt *ctx;
    uint64_t after;
    clockid_t clock; /* of the thread that is stopped */
    uint64_t used;   /* on it, when it was */
} stopper;

static uint64_t time_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *stop_then(void *arg)
{
    stopper *s = arg;
    const struct timespec wait = {.tv_nsec = (long)s->after};
    nanosleep(&wait, NULL);
    s->used = time_of(s->clock);
    dc_stop(s->ctx);
    return NULL;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Every other moment a deadline, which ends in time; what was used after dc_stop, in ms. */
static double end_once(lua_State *L, dc_rt *ctx, const char *code, uint64_t *state, bool deadline)
{
    pthread_t thread;
    const uint64_t random = next_random(state);
    stopper s = {.ctx = ctx, .after = random % 60000000u};
    pthread_getcpuclockid(pthread_self(), &s.clock);
    const int64_t ms = deadline ? (int64_t)(1 + random % 60) : 0;
    CHECK_EQ(luaL_loadstring(L, code), LUA_OK);
    const uint64_t begun = dc_clock_ns();
    if (!deadline)
        CHECK_EQ(pthread_create(&thread, NULL, stop_then, &s), 0);
    const int status = dc_pcall(L, 0, 0, 0, ms);
    const uint64_t used = time_of(s.clock);
    CHECK((double)(dc_clock_ns() - begun) * 1e-6 < BOUND_MS);
    if (!deadline)
        pthread_join(thread, NULL);
    if (!CHECK_EQ(status, DC_E_STOPPED))
        printf("%s\n", luaL_tolstring(L, -1, NULL));
    lua_settop(L, 0);
    return deadline || used < s.used ? 0 : (double)(used - s.used) * 1e-6;
}

static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d != NULL && readdir(d) != NULL)
        n++;
    if (d != NULL)
        closedir(d);
    return n;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static const char *code_of(const reader *r)
{
    return r->read != NULL ? r->read : "assert(dc.load(path))";
}

static void run_reader(lua_State *L, dc_rt *ctx, const reader *r, int n, uint64_t seed)
{
    char loop[1000];
    CHECK(r->make == NULL || lua_run(L, r->make));
    if (!CHECK(lua_run(L, code_of(r)))) /* it is a file of its format, and libraries are open */
        return;
    lua_run(L, "collectgarbage()");
    const int files = open_files(), entries = folder_entries("");
    snprintf(loop, sizeof loop, "while true do pcall(function() %s end) end", code_of(r));
    double *late = calloc((size_t)n, sizeof *late);
    for (int i = 0; i < n; i++) {
        late[i] = end_once(L, ctx, loop, &seed, i % 2 == 1);
        CHECK(lua_run(L, "assert(double(4):item() == 8)"));
    }
    CHECK(lua_run(L, code_of(r)));
    lua_run(L, "collectgarbage() collectgarbage()");
    CHECK_EQ(open_files(), files);
    CHECK_EQ(folder_entries(""), entries);
    qsort(late, (size_t)n, sizeof *late, compare);
    /* half of them are of deadlines */
    printf("%-28s median %7.3f  99 %% %7.3f  longest %7.3f ms\n", r->name, late[n * 3 / 4],
           late[n - 1 - n / 200], late[n - 1]);
    fflush(stdout);
    free(late);
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 100;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *ctx;
    printf("seed %llu\n", (unsigned long long)seed);
    cfg.device = "eval";
    if (!CHECK(folder_make()) || !CHECK_EQ(dc_open(&cfg, &ctx), DC_OK))
        return t_done();
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    CHECK_EQ(dc_attach(L, ctx), DC_OK);
    lua_pushstring(L, folder_root());
    lua_setglobal(L, "folder");
    CHECK(lua_run(L, setup));
    for (size_t i = 0; i < DC_COUNTOF(readers); i++)
        if (argc < 4 || strstr(readers[i].name, argv[3]) != NULL)
            run_reader(L, ctx, &readers[i], n < 2 ? 2 : n, seed + i);
    lua_close(L);
    CHECK(folder_remove());
    return t_done();
}
