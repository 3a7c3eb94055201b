/*
 * `deepc check FILE`: see vm/program/check_main.h and vm/program/check.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "vm/program/check_main.h"

#include "backends/registry.h"
#include "core/base/digits.h"
#include "dsl/dsl.h"
#include "vm/program/check.h"
#include "vm/deepc.h"
#include "vm/program/say.h"
#include "vm/sink.h"

#include <lauxlib.h>
#include <lualib.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char SECONDS[] = "20";

/* ---- what is told ----------------------------------------------------------------------------- */

static void print_problems(const dc_check *c, FILE *to)
{
    for (uint32_t i = 0; i < c->found.n; i++) {
        const dc_check_problem *p = &c->found.at[i];
        if (p->line > 0)
            dc_sayf(to, "%s:%d: %s: %s\n", p->file, p->line, p->kind, p->sentence);
        else
            dc_sayf(to, "%s: %s: %s\n", p->file, p->kind, p->sentence);
        if (p->hint != NULL)
            dc_sayf(to, "  hint: %s\n", p->hint);
    }
}

/* The file's bytes; it may not be there. */
static void read_whole(const char *name, dc_text *out)
{
    char piece[4096];
    size_t n;
    FILE *f = fopen(name, "rb");
    while (f != NULL && (n = fread(piece, 1, sizeof piece, f)) > 0)
        dc_text_put(out, piece, n);
    if (f != NULL)
        fclose(f);
}

static void print_json(const dc_check *c)
{
    dc_text script = {0}, out = {0};
    read_whole(c->file, &script);
    dc_check_print_json(c, script.s, script.n, &out);
    dc_say_json(stdout, out.s, out.n);
    dc_text_free(&out);
    dc_text_free(&script);
}

/* ---- the whole ------------------------------------------------------------------------------- */

typedef struct request {
    dc_check *c;
    const dc_check_run *run;
} request;

/* Argument: the request. */
static int check_script(lua_State *L)
{
    const request *r = lua_touserdata(L, 1);
    dc_check *c = r->c;
    const dc_check_source s = {.file = c->file, .argc = r->run->argc, .argv = r->run->argv};
    luaL_openlibs(L);
    if (dc_attach(L, c->rt) != DC_OK)
        return luaL_error(L, "%s", dc_errmsg(c->rt));
    dc_check_prepare(L, c);
    dc_check_trace(L, c, &s);
    if (r->run->finish != NULL && c->errors == 0)
        r->run->finish(L, r->run->ctx);
    return 0;
}

void dc_check_name_device(dc_rt *rt)
{
    const char *bad;
    dc_opts opt;
    dc_opts_init(&opt, &bad);
    dc_backend_name(opt.device, rt->device_name, sizeof rt->device_name);
}

static int check_file(const request *r)
{
    dc_check *c = r->c;
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = r->run->device;
    cfg.log = dc_sink_stderr;
    if (dc_open(&cfg, &c->rt) != DC_OK) {
        dc_sayf(stderr, "deepc: %s\n", dc_errmsg(c->rt));
        dc_close(c->rt);
        return 1;
    }
    c->rt->check = true;
    dc_check_name_device(c->rt);
    if (r->run->prepare != NULL)
        r->run->prepare(c->rt, r->run->ctx);
    lua_State *L = luaL_newstate();
    if (L == NULL) {
        fputs("deepc: out of memory\n", stderr);
        dc_close(c->rt);
        return 1;
    }
    lua_pushcfunction(L, check_script);
    lua_pushlightuserdata(L, (void *)(uintptr_t)r);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
        dc_check_report(L, c, "error");
        dc_check_sort(c);
    }
    if (r->run->json)
        print_json(c);
    else
        print_problems(c, r->run->aside ? stderr : stdout);
    const bool attached = dc_dsl_rt(L) != NULL;
    lua_close(L);
    if (!attached)
        dc_close(c->rt);
    return c->errors > 0;
}

/* "5", "0.5": nanoseconds, above 0. */
static bool read_seconds(const char *text, uint64_t *ns)
{
    uint64_t whole;
    if (dc_digits_unsigned(&text, NULL, 1000000000, &whole) != DC_DIGITS_OK)
        return false;
    *ns = whole * 1000000000;
    if (*text == '.' && isdigit((unsigned char)text[1]))
        for (uint64_t place = 100000000; isdigit((unsigned char)*++text); place /= 10)
            *ns += place * (uint64_t)(*text - '0');
    return *text == '\0' && *ns > 0;
}

int dc_check_script(const dc_check_run *run)
{
    uint64_t ns;
    if (!read_seconds(run->seconds, &ns)) {
        dc_sayf(stderr, "deepc: -t is a number of seconds, not '%s'\n", run->seconds);
        return 1;
    }
    dc_check c = {.file = run->argv[0], .deadline = dc_clock_ns() + ns};
    const request r = {&c, run};
    const int status = check_file(&r);
    dc_check_free(&c);
    return status;
}

int dc_check_main(int argc, char **argv)
{
    static const char usage[] = "usage: deepc check [-t SECONDS] [--json] FILE [ARGS]\n";
    dc_check_run run = {.device = "eval", .seconds = SECONDS};
    uint64_t ns;
    int i = 0;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            run.json = true;
        } else if (strcmp(argv[i], "-t") == 0 && i + 1 < argc && read_seconds(argv[i + 1], &ns)) {
            run.seconds = argv[++i];
        } else {
            i = argc;
        }
    }
    if (i >= argc) {
        fputs(usage, stderr);
        return 1;
    }
    run.argc = argc - i;
    run.argv = argv + i;
    return dc_check_script(&run);
}
