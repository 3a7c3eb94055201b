/*
 * deepc sandbox [--read=DIR] [--write=DIR] [--clock] [--memory=MIB] [--seconds=N] FILE ARGS
 *
 * The program's way to dc_sandbox: what a script may do is what the options name, print goes to stdout, and
 * `require name` runs name.lua from the folder of FILE.
 */
#include "vm/program/sandbox_main.h"

#include "core/base/digits.h"
#include "core/base/file.h"
#include "core/base/heap.h"
#include "vm/sandbox.h"
#include "vm/program/say.h"
#include "vm/program/signals.h"
#include "vm/sink.h"

#include <lauxlib.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { FOLDERS = 16, MOST = 1 << 20 /* MiB, seconds */ };

static const char usage[] = "usage: deepc sandbox [options] FILE [ARGS]\n"
                            "Runs a script that may compute and print, and nothing else\n"
                            "  --read=DIR     it may read files beneath this folder\n"
                            "  --write=DIR    it may write files beneath this folder\n"
                            "  --clock        it has os.time, os.clock, os.date\n"
                            "  --memory=MIB   most memory of its Lua state\n"
                            "  --seconds=N    it ends after so many\n"
                            "`require \"name\"` runs name.lua from the folder of FILE\n";

typedef struct options {
    dc_sandbox_options o;
    const char *read[FOLDERS + 1], *write[FOLDERS + 1];
    size_t nread, nwrite;
    const char *file;
    int64_t ms;   /* 0: no deadline */
    char *module; /* the text that was required last */
} options;

static void on_print(void *ctx, const char *text, size_t n)
{
    DC_UNUSED(ctx);
    fwrite(text, 1, n, stdout);
}

/* Names are words with dots between them, and become no other files. */
static const char *on_require(void *ctx, const char *name, size_t *n)
{
    options *s = ctx;
    char path[600];
    const char *slash = strrchr(s->file, '/');
    const int folder = slash != NULL ? (int)(slash - s->file) + 1 : 0;
    const int length = snprintf(path, sizeof path, "%.*s%s.lua", folder, s->file, name);
    if (length >= (int)sizeof path)
        return NULL;
    for (char *dot = path + folder; dot < path + length - 4; dot++)
        if (*dot == '.')
            *dot = '/';
    dc_xfree(s->module);
    s->module = dc_file_read(path, DC_SANDBOX_TEXT + 1);
    *n = s->module != NULL ? strlen(s->module) : 0;
    return s->module;
}

static bool add_folder(const char **list, size_t *n, const char *folder)
{
    if (*n == FOLDERS)
        return false;
    list[(*n)++] = folder;
    return true;
}

/* The rest of a word behind the name of an option, or NULL. */
static const char *value_of(const char *word, const char *option)
{
    const size_t n = strlen(option);
    return strncmp(word, option, n) == 0 ? word + n : NULL;
}

static bool read_option(options *s, const char *word)
{
    const char *value;
    uint64_t number;
    if (strcmp(word, "--clock") == 0)
        return s->o.clock = true;
    if ((value = value_of(word, "--read=")) != NULL)
        return add_folder(s->read, &s->nread, value);
    if ((value = value_of(word, "--write=")) != NULL)
        return add_folder(s->write, &s->nwrite, value);
    if ((value = value_of(word, "--memory=")) != NULL && dc_digits_whole(value, MOST, &number) &&
        number > 0) {
        s->o.memory_limit = (size_t)number << 20;
        return true;
    }
    if ((value = value_of(word, "--seconds=")) != NULL && dc_digits_whole(value, MOST, &number) &&
        number > 0) {
        s->ms = (int64_t)number * 1000;
        return true;
    }
    return false;
}

static int set_arguments(lua_State *L)
{
    const int argc = (int)lua_tointeger(L, 1);
    char **argv = lua_touserdata(L, 2);
    lua_createtable(L, argc, 0);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i);
    }
    lua_setglobal(L, "arg");
    return 0;
}

static int run_script(lua_State *L, const options *s, int argc, char **argv)
{
    char *text = dc_file_read(s->file, DC_SANDBOX_TEXT + 1);
    if (text == NULL) {
        dc_sayf(stderr, "deepc: %s: %s\n", s->file, strerror(errno));
        return 1;
    }
    lua_pushcfunction(L, set_arguments);
    lua_pushinteger(L, argc);
    lua_pushlightuserdata(L, argv);
    dc_status status = DC_E_NOMEM;
    if (lua_pcall(L, 2, 0, 0) == LUA_OK) {
        dc_signals_catch(dc_dsl_rt(L), false);
        status = dc_sandbox_run(L, argv[0], text, strlen(text), s->ms);
        dc_signals_leave();
        dc_signals_forget(L);
    }
    dc_xfree(text);
    if (status != DC_OK)
        dc_sayf(stderr, "deepc: %s\n", lua_tostring(L, -1));
    return status != DC_OK;
}

int dc_sandbox_main(int argc, char **argv)
{
    const dc_sandbox_options dflt = DC_SANDBOX_INIT;
    options s = {.o = dflt};
    dc_config cfg = DC_CONFIG_INIT;
    int i = 0;
    while (i < argc && argv[i][0] == '-' && read_option(&s, argv[i]))
        i++;
    if (i == argc || argv[i][0] == '-') {
        if (i < argc)
            dc_sayf(stderr, "deepc sandbox: no option '%s'\n", argv[i]);
        fputs(usage, stderr);
        return 1;
    }
    s.file = argv[i];
    s.o.read = s.read;
    s.o.write = s.write;
    s.o.print = on_print;
    s.o.require = on_require;
    s.o.require_ctx = &s;
    cfg.log = dc_sink_stderr;
    lua_State *L = luaL_newstate();
    int result = 1;
    if (L != NULL && dc_open(&cfg, &s.o.context) == DC_OK && dc_sandbox(L, &s.o) == DC_OK) {
        result = run_script(L, &s, argc - i, argv + i);
    } else {
        dc_sayf(stderr, "deepc: %s\n", dc_errmsg(s.o.context));
        dc_close(s.o.context);
    }
    if (L != NULL)
        lua_close(L);
    dc_xfree(s.module);
    return result;
}
