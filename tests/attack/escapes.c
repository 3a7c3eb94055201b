/*
 * What scripts of others try: escapes/NAME.lua, attempts between lines "--- what it tries". Each runs in a
 * sandbox of its own, in this process, and has to end harmless: the script itself asserts what would have been
 * the way out; one with a line "--! words" has to be refused with these words. In names "cpu_..." kernels are
 * compiled.
 *
 * After each attempt the host looks whether anything of its own has changed: the files beside the script's
 * folders, what a neighbour's state and a function of the same context compute, its registry, what was printed on
 * stdout and stderr; and closes the state, in which nothing of the script may run.
 *
 *     escapes [FILE [NUMBER]]
 */
#define _GNU_SOURCE /* memmem, setenv */

#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/unit/folder.h"

enum {
    STATE_MEMORY = 32 << 20,
    CONTEXT_MEMORY = 256 << 20,
    TENSOR_MEMORY = 64 << 20,
    SECONDS = 60
};

static const char *const files[] = {"code",  "metatables", "library", "loops", "memory",
                                    "files", "world",      "leaving", "calls", "cpu_kernels"};

static const char prelude[] = "local function refused(f, words) "
                              "local ok, err = pcall(f) "
                              "local text = type(err) == 'table' and err.message or tostring(err) "
                              "assert(not ok, 'it went through') "
                              "assert(not words or text:find(words, 1, true), text) "
                              "return text end ";

static char policy[100]; /* a function of the host, beside the script's folders */

/* ---- what the host gives ----------------------------------------------------------------------- */

typedef struct memory {
    atomic_size_t used;
} memory;

static void *allocate(void *ctx, void *block, size_t had, size_t want)
{
    memory *m = ctx;
    if (want > had && atomic_load(&m->used) + (want - had) > CONTEXT_MEMORY)
        return NULL;
    if (want == 0) {
        free(block);
        atomic_fetch_sub(&m->used, had);
        return NULL;
    }
    void *p = realloc(block, want);
    if (p != NULL)
        atomic_fetch_add(&m->used, want - had);
    return p;
}

typedef struct host {
    lua_State *L;
    dc_rt *rt;
    memory memory;
    bool closing;
    int printed_late; /* while the state was being closed */
    int bad_names;    /* that `require` was asked for */
    dc_function *policy;
} host;

static void on_print(void *ctx, const char *text, size_t n)
{
    host *h = ctx;
    (void)text, (void)n;
    h->printed_late += h->closing;
}

static const char *on_require(void *ctx, const char *name, size_t *n)
{
    static const char text[] = "return ...";
    host *h = ctx;
    h->bad_names += strpbrk(name, "/\\ ~") != NULL || strstr(name, "..") != NULL || *name == '.';
    *n = sizeof text - 1;
    return strcmp(name, "mod") == 0 ? text : NULL;
}

static void discard(void *ctx, const char *channel, const char *text, size_t n)
{
    (void)ctx, (void)channel, (void)text, (void)n;
}

static int host_secret(lua_State *L)
{
    lua_pushboolean(L, lua_isstring(L, lua_upvalueindex(1)));
    return 1;
}

static void open_host(host *h, const char *device)
{
    const char *const read[] = {folder_path("in"), NULL}, *const write[] = {folder_path("out"),
                                                                            NULL};
    dc_config cfg = DC_CONFIG_INIT;
    dc_sandbox_options o = DC_SANDBOX_INIT;
    *h = (host){.L = luaL_newstate()};
    luaL_openlibs(h->L); /* a host that has them all */
    cfg.device = device;
    cfg.threads = 1;
    cfg.log = discard;
    cfg.alloc = allocate;
    cfg.alloc_ctx = &h->memory;
    cfg.memory_limit = TENSOR_MEMORY;
    if (!CHECK_EQ(dc_open(&cfg, &h->rt), DC_OK))
        exit(t_done());
    o.context = h->rt;
    o.read = read;
    o.write = write;
    o.memory_limit = STATE_MEMORY;
    o.print = on_print;
    o.require = on_require;
    o.print_ctx = o.require_ctx = h;
    lua_pushliteral(h->L, "the host's");
    lua_setfield(h->L, LUA_REGISTRYINDEX, "host.secret");
    CHECK_EQ(dc_sandbox(h->L, &o), DC_OK);
    lua_pushliteral(h->L, "the host's");
    lua_pushcclosure(h->L, host_secret, 1);
    lua_setglobal(h->L, "host_secret");
    lua_pushstring(h->L, folder_root());
    lua_setglobal(h->L, "root");
    CHECK_EQ(dc_load(h->rt, policy, &h->policy), DC_OK);
}

/* Without Lua, through the context that the script used. */
static bool policy_answers(host *h)
{
    float x[2] = {1, 2}, y[2] = {0, 0};
    dc_array in = {DC_F32, 1, {2}, x, sizeof x}, out = {.data = y, .bytes = sizeof y};
    return dc_call(h->policy, &in, 1, &out, 1) == DC_OK && y[0] == 3 && y[1] == 5;
}

/* ---- what may not change ------------------------------------------------------------------------ */

static void make_world(void)
{
    CHECK(mkdir(folder_path("in"), 0700) == 0 && mkdir(folder_path("out"), 0700) == 0);
    CHECK(folder_put("secret", "secret") && folder_put("in/plain", "plain"));
    CHECK_EQ(symlink(folder_path("secret"), folder_path("in/link")), 0);
    CHECK_EQ(symlink("..", folder_path("in/up")), 0);
    CHECK_EQ(symlink(folder_path("made"), folder_path("out/dangling")), 0);
    CHECK_EQ(symlink(folder_path("secret"), folder_path("out/link")), 0);
    CHECK_EQ(mkfifo(folder_path("in/pipe"), 0600), 0);
    snprintf(policy, sizeof policy, "%s", folder_path("policy.dcfn"));
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt;
    cfg.device = "eval";
    CHECK(dc_open(&cfg, &rt) == DC_OK && dc_attach(L, rt) == DC_OK);
    lua_pushstring(L, policy);
    lua_setglobal(L, "policy");
    CHECK(luaL_dostring(L, "local f = require 'deepc'.fn('f(x: f32[2]) -> f32[2]', function(x) "
                           "return x * 2 + 1 end)\n"
                           "f:export(policy, {})") == LUA_OK);
    lua_close(L);
}

static bool world_is_whole(void)
{
    return folder_entries("") == 4 && folder_entries("in") == 4 && folder_has("secret", "secret") &&
           folder_has("in/plain", "plain") && folder_has("in/link", "secret");
}

/* stdout and stderr go to a file while scripts run. */
typedef struct silence {
    int out, err, file;
} silence;

static silence be_silent(void)
{
    fflush(stdout);
    silence s = {dup(1), dup(2),
                 open(folder_path("in/../printed"), O_RDWR | O_CREAT | O_TRUNC, 0600)};
    unlink(folder_path("printed"));
    dup2(s.file, 1);
    dup2(s.file, 2);
    return s;
}

/* How much was written there; a sanitizer's report is shown. */
static long be_loud(silence s)
{
    const long n = (long)lseek(s.file, 0, SEEK_END);
    dup2(s.out, 1);
    dup2(s.err, 2);
    close(s.out);
    close(s.err);
    close(s.file);
    return n;
}

/* ---- one attempt -------------------------------------------------------------------------------- */

static void attempt(host *neighbour, const char *file, const char *title, const char *text,
                    size_t n)
{
    host h;
    char words[200] = "", said[500] = "";
    const char *mark = memmem(text, n, "--! ", 4);
    if (mark != NULL)
        snprintf(words, sizeof words, "%.*s", (int)strcspn(mark + 4, "\n"), mark + 4);
    const time_t before = time(NULL);
    open_host(&h, strncmp(file, "cpu", 3) == 0 ? "cpu" : "eval");
    char *code = malloc(sizeof prelude + n);
    memcpy(code, prelude, sizeof prelude - 1);
    memcpy(code + sizeof prelude - 1, text, n);
    const silence s = be_silent();
    const dc_status status = dc_sandbox_run(h.L, "script", code, sizeof prelude - 1 + n, 0);
    if (status != DC_OK)
        snprintf(said, sizeof said, "%s", lua_tostring(h.L, -1));
    lua_settop(h.L, 0);
    const bool computes = policy_answers(&h);
    lua_getfield(h.L, LUA_REGISTRYINDEX, "host.secret");
    const bool registry = strcmp(lua_tostring(h.L, -1), "the host's") == 0;
    h.closing = true;
    lua_close(h.L);
    static const char check[] = "assert(found == nil and math.floor(1.5) == 1 and\n"
                                "require 'deepc'.ones('f32[3]'):sum():item() == 3)";
    const bool alone =
        dc_sandbox_run(neighbour->L, "neighbour", check, sizeof check - 1, 0) == DC_OK;
    const long printed = be_loud(s);
    free(code);
    const bool good = mark == NULL ? CHECK_EQ(status, DC_OK)
                                   : CHECK(status != DC_OK && strstr(said, words) != NULL);
    if (!(good & CHECK(computes) & CHECK(registry) & CHECK(alone) & CHECK_EQ(printed, 0) &
          CHECK_EQ(h.printed_late, 0) & CHECK_EQ(h.bad_names, 0) & CHECK(world_is_whole()) &
          CHECK_EQ(h.memory.used, 0) & CHECK(time(NULL) - before < SECONDS)))
        printf("%s: %s\n    %s\n", file, title, said);
}

/* Attempts of a file; how many. */
static int run_file(host *neighbour, const char *file, int only)
{
    char path[100], *text = NULL;
    size_t room = 0;
    int n = 0;
    snprintf(path, sizeof path, "tests/attack/escapes/%s.lua", file);
    FILE *f = fopen(path, "r");
    if (!CHECK(f != NULL) || getdelim(&text, &room, '\0', f) < 0)
        return 0;
    fclose(f);
    for (char *at = strstr(text, "--- "), *next; at != NULL; at = next) {
        next = strstr(at, "\n--- ");
        next = next != NULL ? next + 1 : NULL;
        char title[100];
        snprintf(title, sizeof title, "%.*s", (int)strcspn(at + 4, "\n"), at + 4);
        n++;
        if (only == 0 || only == n)
            attempt(neighbour, file, title, at, next != NULL ? (size_t)(next - at) : strlen(at));
    }
    free(text);
    return n;
}

int main(int argc, char **argv)
{
    host neighbour;
    int n = 0;
    if (!CHECK(folder_make()))
        return t_done();
    setenv("DEEPC_SECRET", "secret", 1);
    make_world();
    open_host(&neighbour, "eval");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (argc < 2 || strcmp(argv[1], files[i]) == 0)
            n += run_file(&neighbour, files[i], argc > 2 ? atoi(argv[2]) : 0);
    lua_close(neighbour.L);
    printf("%d attempts\n", n);
    CHECK(argc > 1 || n >= 60);
    CHECK(folder_remove());
    return t_done();
}
