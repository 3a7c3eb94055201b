/*
 * The prompt: reads a piece of Lua, runs it, shows what it gave, again and again.
 *
 * A piece is one or more lines: as long as Lua's compiler finds its end missing, another line is
 * read. What compiles as an expression is one; `_` is the first value of the last one. On a pipe
 * the same happens without signs, history, colours and times.
 */
#define _POSIX_C_SOURCE 200809L
#include "vm/program/prompt.h"

#include "core/base/number.h"
#include "core/base/shown.h"
#include "dsl/dsl.h"
#include "vm/deepc.h"
#include "vm/program/luaerror.h"
#include "vm/program/say.h"
#include "vm/program/signals.h"

#include <lauxlib.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char CHUNK[] = "=stdin";

enum { SLOW_MS = 100 };

/* ---- colours --------------------------------------------------------------------------------- */

static const char *code(const dc_prompt *p, const char *text)
{
    return p->colour ? text : "";
}

const char *dc_prompt_dim(const dc_prompt *p)
{
    return code(p, "\033[2m");
}

const char *dc_prompt_red(const dc_prompt *p)
{
    return code(p, "\033[31m");
}

const char *dc_prompt_bold(const dc_prompt *p)
{
    return code(p, "\033[1m");
}

const char *dc_prompt_plain(const dc_prompt *p)
{
    return code(p, "\033[0m");
}

/* ---- failures -------------------------------------------------------------------------------- */

/* The traceback of something entered here says nothing where nothing was called. */
static size_t without_frames(const char *text)
{
    static const char *const noise[] = {"\n\t[C]: in ?", "\n\tstdin:", "\n\t[C]: in function"};
    const char *trace = strstr(text, "\nstack traceback:");
    size_t n = strlen(text);
    if (trace == NULL)
        return n;
    const char *last = strstr(trace, "\n\t[C]: in ?");
    if (last != NULL && last[strlen(noise[0])] == '\0')
        n = (size_t)(last - text);
    for (const char *line = strstr(trace, "\n\t"); line != NULL && line < text + n;
         line = strstr(line + 1, "\n\t")) {
        const char *end = strstr(line + 1, "\n\t");
        const char *main = strstr(line, " in main chunk");
        const bool plain = strncmp(line, noise[1], strlen(noise[1])) == 0 && main != NULL &&
                           (end == NULL || main < end);
        if (!plain && strncmp(line, noise[2], strlen(noise[2])) != 0)
            return n;
    }
    return (size_t)(trace - text);
}

/* Of these the place is enough. */
static bool is_interruption(lua_State *L, int idx)
{
    idx = lua_absindex(L, idx);
    if (lua_type(L, idx) != LUA_TTABLE)
        return false;
    lua_pushliteral(L, "code");
    lua_rawget(L, idx);
    const char *found = lua_tostring(L, -1);
    const bool is = found != NULL && strcmp(found, "DC0708") == 0;
    lua_pop(L, 1);
    return is;
}

void dc_prompt_report(dc_prompt *p)
{
    fflush(stdout);
    dc_luaerror e;
    dc_luaerror_read(p->L, -1, &e);
    size_t n = e.n;
    if (lua_type(p->L, -1) == LUA_TSTRING)
        n = without_frames(e.text);
    else if (is_interruption(p->L, -1))
        n = strcspn(e.text, "\n");
    fputs(dc_prompt_red(p), stderr);
    dc_say(stderr, e.text, n);
    fprintf(stderr, "%s\n", dc_prompt_plain(p));
    fflush(stderr);
    lua_pop(p->L, 1);
}

/* Ctrl-C ends a write that waits for a reader: output of what was stopped, no failure of stdout. */
void dc_prompt_forget(dc_prompt *p)
{
    if (dc_signals_pending() == 0)
        p->unwritten = p->unwritten || ferror(stdout);
    else if (!p->unwritten)
        clearerr(stdout);
    dc_signals_forget(p->L);
}

bool dc_prompt_call(dc_prompt *p, int narg)
{
    const int base = lua_gettop(p->L) - narg;
    lua_pushcfunction(p->L, dc_luaerror_handler);
    lua_insert(p->L, base);
    int status = lua_pcall(p->L, narg, LUA_MULTRET, base);
    if (status == LUA_OK) {
        lua_pushcfunction(p->L, dc_dsl_settle);
        status = lua_pcall(p->L, 0, 0, base);
    }
    lua_remove(p->L, base);
    dc_prompt_forget(p);
    if (status != LUA_OK)
        dc_prompt_report(p);
    return status == LUA_OK;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

typedef enum piece {
    WHOLE, /* a function is on top */
    UNFINISHED,
    WRONG /* an error value is on top */
} piece;

static bool is_unfinished(lua_State *L)
{
    static const char mark[] = "<eof>";
    size_t n;
    const char *text = lua_tolstring(L, -1, &n);
    return n >= sizeof mark - 1 && strcmp(text + n - (sizeof mark - 1), mark) == 0;
}

int dc_prompt_load_expression(lua_State *L, const char *text)
{
    lua_pushfstring(L, "return %s", text);
    const char *code_text = lua_tostring(L, -1);
    const int status = luaL_loadbufferx(L, code_text, strlen(code_text), CHUNK, "t");
    lua_remove(L, -2);
    return status;
}

/* Is the statement's failure about its first word? Then it was meant as an expression. */
static bool is_about_begin(lua_State *L, const char *text)
{
    const char *near = strstr(lua_tostring(L, -1), "unexpected symbol near '");
    text += strspn(text, " \t\n");
    return near != NULL && strncmp(strchr(near, '\'') + 1, text, 1) == 0;
}

static piece load_piece(lua_State *L, const char *text)
{
    if (dc_prompt_load_expression(L, text) == LUA_OK)
        return WHOLE;
    const bool unfinished = is_unfinished(L);
    if (luaL_loadbufferx(L, text, strlen(text), CHUNK, "t") == LUA_OK) {
        lua_remove(L, -2);
        return WHOLE;
    }
    if (unfinished || is_unfinished(L)) {
        lua_pop(L, 2);
        return UNFINISHED;
    }
    lua_remove(L, is_about_begin(L, text) ? -1 : -2);
    return WRONG;
}

/* Reads until a piece is whole; its text is on top. */
static dc_line_end read_piece(dc_prompt *p)
{
    lua_State *L = p->L;
    const char *line;
    dc_line_end end = dc_lines_read(p->lines, false, &line);
    if (end != DC_LINE_READ)
        return end;
    lua_pushstring(L, line);
    for (;;) {
        const char *text = lua_tostring(L, -1);
        const char *first = text + strspn(text, " \t\n");
        if (*first == '\0' || (*first == ':' && first[1] != ':'))
            return DC_LINE_READ;
        if (load_piece(L, text) != UNFINISHED) {
            lua_pop(L, 1);
            return DC_LINE_READ;
        }
        end = dc_lines_read(p->lines, true, &line);
        if (end == DC_LINE_INTERRUPTED)
            return end;
        if (end == DC_LINE_END) /* what is there is wrong, and will be said to be */
            return DC_LINE_READ;
        lua_pushliteral(L, "\n");
        lua_pushstring(L, line);
        lua_concat(L, 3);
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static void show_time(const dc_prompt *p, uint64_t ns)
{
    const double ms = (double)ns / 1e6;
    char text[DC_NUMBER_TEXT];
    if (!p->terminal || ms < SLOW_MS)
        return;
    if (ms < 10e3)
        dc_number_format(text, sizeof text, "%.0f ms", ms);
    else
        dc_number_format(text, sizeof text, "%.1f s", ms / 1e3);
    printf("%s%s%s\n", dc_prompt_dim(p), text, dc_prompt_plain(p));
}

static int l_show(lua_State *L)
{
    dc_prompt_show(L, lua_gettop(L));
    return 0;
}

/* Of the values above `base`; the first is kept. */
static void show_values(dc_prompt *p, int base)
{
    lua_State *L = p->L;
    const int n = lua_gettop(L) - base;
    if (n == 0)
        return;
    lua_pushvalue(L, base + 1);
    lua_setglobal(L, "_");
    if (!lua_checkstack(L, 4)) {
        lua_settop(L, base);
        return;
    }
    lua_pushcfunction(L, l_show);
    lua_insert(L, base + 1);
    dc_prompt_call(p, n);
}

static void run_piece(dc_prompt *p, const char *text)
{
    lua_State *L = p->L;
    const int base = lua_gettop(L);
    const uint64_t start = dc_clock_ns();
    dc_prompt_forget(p);
    switch (load_piece(L, text)) {
    case WHOLE:
        if (dc_prompt_call(p, 0))
            show_values(p, base);
        show_time(p, dc_clock_ns() - start);
        break;
    case UNFINISHED: /* the input ended */
        if (luaL_loadbufferx(L, text, strlen(text), CHUNK, "t") != LUA_OK)
            dc_prompt_report(p);
        break;
    case WRONG:
        dc_prompt_report(p);
        break;
    }
    lua_settop(L, base);
    fflush(stdout);
}

/* Is the piece this word, with or without (), and no global of the script's? */
static bool is_word(lua_State *L, const char *text, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(text, word, n) != 0)
        return false;
    text += n;
    text += strncmp(text, "()", 2) == 0 ? 2 : 0;
    const bool is_free = lua_getglobal(L, word) == LUA_TNIL;
    lua_pop(L, 1);
    return is_free && text[strspn(text, " \t\n")] == '\0';
}

/* The command that a piece without a colon means: what other prompts call help, quit and exit. */
static const char *command_of(lua_State *L, const char *text)
{
    if (*text == ':' && text[1] != ':')
        return text + 1;
    if (is_word(L, text, "help"))
        return "help";
    if (strncmp(text, "help ", 5) == 0 && isalpha((unsigned char)text[5]) &&
        is_word(L, "help", "help"))
        return text;
    return is_word(L, text, "quit") || is_word(L, text, "exit") ? "quit" : NULL;
}

/* Said once: a local is gone with its piece. */
static void tell_local(dc_prompt *p, const char *text)
{
    if (p->told_local || strncmp(text, "local ", 6) != 0 || strpbrk(text, ";\n") != NULL)
        return;
    p->told_local = true;
    fprintf(stderr, "%sa local ends with the piece that declares it; without `local` it stays%s\n",
            dc_prompt_dim(p), dc_prompt_plain(p));
}

/* false: the end. */
static bool do_piece(dc_prompt *p)
{
    lua_State *L = p->L;
    dc_prompt_forget(p);
    switch (read_piece(p)) {
    case DC_LINE_INTERRUPTED:
        lua_settop(L, 0);
        return true;
    case DC_LINE_END:
        return false;
    case DC_LINE_READ:
        break;
    }
    bool on = true;
    const char *text = lua_tostring(L, 1);
    const char *first = text + strspn(text, " \t\n");
    if (*first != '\0')
        dc_lines_remember(p->lines, text);
    const char *command = command_of(L, first);
    if (command != NULL) {
        on = dc_prompt_command(p, command);
    } else if (*first != '\0') {
        run_piece(p, text);
        tell_local(p, first);
    }
    lua_settop(L, 0);
    return on;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* The library under the names that scripts give it, where they are free. */
static void load_library(dc_prompt *p)
{
    static const char *const module[][2] = {
        {"dc", "deepc"}, {"nn", "deepc.nn"}, {"optim", "deepc.optim"}, {"data", "deepc.data"}};
    lua_State *L = p->L;
    for (size_t i = 0; i < DC_COUNTOF(module); i++) {
        const bool is_free = lua_getglobal(L, module[i][0]) == LUA_TNIL;
        lua_pop(L, 1);
        lua_getglobal(L, "require");
        lua_pushstring(L, module[i][1]);
        if (is_free && lua_pcall(L, 1, 1, 0) == LUA_OK)
            lua_setglobal(L, module[i][0]);
        lua_settop(L, 0);
    }
}

static void greet(const dc_prompt *p)
{
    if (p->terminal)
        printf("deepc %s, %s, device %s%s\n%sdc, nn, optim and data are loaded; :help for help, "
               "Ctrl-D to leave%s\n",
               DC_VERSION, LUA_RELEASE, dc_show_name(p->rt->opt.device).s,
               p->rt->interpret ? " (the reference interpreter)" : "", dc_prompt_dim(p),
               dc_prompt_plain(p));
}

/* https://no-color.org, and terminals that know none. */
static bool wants_colour(const dc_prompt *p)
{
    const char *term = dc_opts_system("TERM");
    return p->terminal && *dc_opts_system("NO_COLOR") == '\0' && *term != '\0' &&
           strcmp(term, "dumb") != 0;
}

int dc_prompt_run(lua_State *L, dc_rt *rt)
{
    dc_prompt p = {.L = L, .rt = rt};
    p.terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    p.colour = wants_colour(&p);
    lua_settop(L, 0);
    p.lines = dc_lines_open(&p);
    if (p.lines == NULL) {
        fputs("deepc: out of memory\n", stderr);
        return 1;
    }
    dc_signals_catch(rt, true);
    rt->measure = true;
    load_library(&p);
    greet(&p);
    while (do_piece(&p))
        ;
    dc_prompt_forget(&p);
    dc_signals_leave();
    dc_lines_close(p.lines);
    return 0;
}
