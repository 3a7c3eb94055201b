/*
 * A script that is checked: vm/program/check.h. Problems are collected while it runs; a typed function that does not pass is one,
 * and so is the error that ended the script.
 */
#define _POSIX_C_SOURCE 200809L
#include "vm/program/check.h"

#include "core/base/digits.h"
#include "dsl/base/interrupt.h"
#include "dsl/dsl.h"
#include "vm/deepc.h"
#include "vm/program/luaerror.h"

#include <lauxlib.h>

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000 };

static const char KEY = 0; /* its address: where the registry has the dc_check */
static const char STOPPED[] = "the script is at its end";

dc_check *dc_check_of(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &KEY);
    dc_check *c = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return c;
}

/* ---- problems -------------------------------------------------------------------------------- */

static char *copy_of(const char *text)
{
    return text != NULL ? strcpy(dc_xalloc(strlen(text) + 1), text) : NULL;
}

/* The line that `at` ends with, "train.lua:15"; 0 where there is none. *n: the bytes of the file's name. */
static int split_place(const char *at, size_t *n)
{
    const char *colon = strrchr(at, ':'), *digits = colon != NULL ? colon + 1 : "";
    uint64_t line = 0;
    *n = strlen(at);
    if (!isdigit((unsigned char)*digits) ||
        dc_digits_unsigned(&digits, NULL, INT_MAX, &line) != DC_DIGITS_OK || *digits != '\0')
        return 0;
    *n = (size_t)(colon - at);
    return (int)line;
}

/* Lua cuts long names of files: "...folder/train.lua". */
static bool is_name(const char *file, const char *name, size_t n)
{
    const size_t whole = strlen(file);
    if (n == whole && memcmp(name, file, n) == 0)
        return true;
    return n > 3 && memcmp(name, "...", 3) == 0 && n - 3 < whole &&
           memcmp(name + 3, file + whole - (n - 3), n - 3) == 0;
}

int dc_check_line_of(const char *place, const char *file)
{
    size_t n;
    const int line = split_place(place, &n);
    return is_name(file, place, n) ? line : 0;
}

static char *copy_name(const dc_check *c, const char *name, size_t n)
{
    if (is_name(c->file, name, n))
        return copy_of(c->file);
    char *copy = dc_xalloc(n + 1);
    memcpy(copy, name, n);
    return copy;
}

/* at: "train.lua:15" or "train.lua"; hint may be NULL. The result is good until the next one is added. */
static dc_check_problem *add_problem(dc_check *c, dc_check_severity severity, const char *at,
                                     const char *kind, const char *sentence, const char *hint)
{
    size_t n;
    dc_check_problem p = {.severity = severity, .number = (int)c->found.n};
    p.line = split_place(at, &n);
    p.file = copy_name(c, at, n);
    p.kind = copy_of(kind);
    p.sentence = copy_of(sentence);
    p.hint = hint != NULL && *hint != '\0' ? copy_of(hint) : NULL;
    c->errors += severity == DC_CHECK_ERROR;
    DC_PUSH(c->found, p);
    return &c->found.at[c->found.n - 1];
}

/* Nothing uses the results of this operation: of a comparison, they were most likely a condition. */
static void tell_unused(void *arg, const dc_use *use)
{
    const dc_err_row *row = dc_err_row_of(DC_ERR_UNUSED);
    dc_check_problem *p;
    char sentence[200], code[16];
    snprintf(sentence, sizeof sentence, "nothing uses the value of %s%s", use->op,
             use->test ? ": a tensor is always true" : "");
    snprintf(code, sizeof code, "DC%04d", row->code);
    if (use->test)
        p = add_problem(arg, DC_CHECK_ERROR, use->where, code, sentence, row->hint);
    else
        p = add_problem(arg, DC_CHECK_WARNING, use->where, "warning", sentence, NULL);
    p->word = copy_of(use->op);
}

static void tell_note(void *arg, const char *place, const char *op, const char *sentence,
                      const char *hint)
{
    dc_check_problem *p = add_problem(arg, DC_CHECK_WARNING, place, "warning", sentence, hint);
    p->word = copy_of(op);
}

/*
 * Outside traces, where a value may be kept for later: comparisons alone. A script that was stopped might have
 * come to it, unless there were several.
 */
static void tell_lazy(void *arg, const dc_use *use)
{
    const dc_check *c = arg;
    if (use->test && (use->n > 1 || c->ended))
        tell_unused(arg, use);
}

static int by_file_and_line(const void *x, const void *y)
{
    const dc_check_problem *a = x, *b = y;
    const int files = strcmp(a->file, b->file);
    if (files != 0)
        return files;
    return a->line != b->line ? (a->line > b->line) - (a->line < b->line)
                              : (a->number > b->number) - (a->number < b->number);
}

void dc_check_sort(dc_check *c)
{
    if (c->found.n > 1)
        qsort(c->found.at, c->found.n, sizeof *c->found.at, by_file_and_line);
}

void dc_check_free(dc_check *c)
{
    for (uint32_t i = 0; i < c->found.n; i++) {
        dc_check_problem *p = &c->found.at[i];
        char *const text[] = {p->file, p->sentence, p->kind, p->hint, p->layer, p->word};
        for (size_t k = 0; k < DC_COUNTOF(text); k++)
            dc_xfree(text[k]);
        for (uint32_t k = 0; k < p->related.n; k++) {
            dc_xfree(p->related.at[k].file);
            dc_xfree(p->related.at[k].text);
        }
        DC_VEC_FREE(p->related);
    }
    DC_VEC_FREE(c->found);
    dc_uses_free(&c->watch.lazy);
    dc_uses_free(&c->watch.seen);
}

/* ---- error values ---------------------------------------------------------------------------- */

static const char *field(lua_State *L, int idx, const char *name)
{
    lua_pushstring(L, name);
    lua_rawget(L, idx); /* stays, so that its text does */
    return lua_tostring(L, -1);
}

/* "argument 'x' of step, train.lua:12": the name of the file begins behind the last blank. */
static int origin_line(const char *origin, const char **name, size_t *n)
{
    size_t all;
    const int line = split_place(origin, &all);
    const char *blank = origin + all;
    while (blank > origin && blank[-1] != ' ')
        blank--;
    *name = blank;
    *n = (size_t)(origin + all - blank);
    return line;
}

/* The operand on top, { role, type, origin }. */
static void add_operand(dc_check *c, lua_State *L, dc_check_problem *p)
{
    const int idx = lua_gettop(L);
    const char *role = field(L, idx, "role"), *type = field(L, idx, "type");
    const char *origin = field(L, idx, "origin"), *name;
    char text[1000];
    size_t n;
    dc_check_related r = {0};
    snprintf(text, sizeof text, "%s%s%s%s%s", role != NULL ? role : "", role != NULL ? ": " : "",
             type != NULL ? type : "", origin != NULL ? ", " : "", origin != NULL ? origin : "");
    r.text = copy_of(text);
    r.line = origin != NULL ? origin_line(origin, &name, &n) : 0;
    r.file = r.line > 0 ? copy_name(c, name, n) : NULL;
    DC_PUSH(p->related, r);
    lua_settop(L, idx);
}

static void add_operands(dc_check *c, lua_State *L, int idx, dc_check_problem *p)
{
    field(L, idx, "operands");
    const int list = lua_gettop(L);
    if (!lua_istable(L, list))
        return;
    const lua_Integer n = (lua_Integer)lua_rawlen(L, list);
    for (lua_Integer i = 1; i <= n && i <= DC_ERR_OPERANDS; i++)
        if (lua_rawgeti(L, list, i) == LUA_TTABLE)
            add_operand(c, L, p);
}

/* One of ours: its own fields, the first line of its text. */
static void report_record(dc_check *c, lua_State *L, int idx)
{
    char sentence[1000];
    luaL_checkstack(L, 20, "an error");
    const char *at = field(L, idx, "at"), *code = field(L, idx, "code");
    const char *hint = field(L, idx, "hint"), *message = field(L, idx, "message");
    const size_t n = at != NULL ? strlen(at) : 0;
    if (message == NULL)
        message = "";
    if (at != NULL && strncmp(message, at, n) == 0 && message[n] == ':')
        message += n + 1 + (message[n + 1] == ' ');
    snprintf(sentence, sizeof sentence, "%.*s", (int)strcspn(message, "\n"), message);
    lua_pushliteral(L, "errno");
    const bool absent = /* a file of another machine is no mistake */
        lua_rawget(L, idx) == LUA_TNUMBER && lua_tointeger(L, -1) == ENOENT;
    if (absent && hint == NULL)
        hint = "the script stopped here; what stands behind it was not looked at";
    dc_check_problem *p = add_problem(c, absent ? DC_CHECK_NOTE : DC_CHECK_ERROR,
                                      at != NULL ? at : c->file, absent ? "note" : code, sentence, hint);
    p->word = copy_of(field(L, idx, "op"));
    p->layer = copy_of(field(L, idx, "path"));
    add_operands(c, L, idx, p);
}

/* What stands in quotes last: "(field 'x')", "near '='". */
static char *last_quoted(const char *sentence)
{
    const char *end = strrchr(sentence, '\''), *begin = end;
    while (begin != NULL && begin > sentence && begin[-1] != '\'')
        begin--;
    if (begin == NULL || begin == sentence || begin == end)
        return NULL;
    char *copy = dc_xalloc((size_t)(end - begin) + 1);
    memcpy(copy, begin, (size_t)(end - begin));
    return copy;
}

/* Lua's own: "train.lua:3: attempt to ...". */
static void report_text(dc_check *c, const char *text, const char *kind)
{
    char at[400];
    const char *colon = strchr(text, ':');
    while (colon != NULL && !isdigit((unsigned char)colon[1]))
        colon = strchr(colon + 1, ':');
    size_t n = colon != NULL ? 1 + strspn(colon + 1, "0123456789") : 0;
    if (colon == NULL || colon[n] != ':' || (size_t)(colon - text) + n >= sizeof at) {
        snprintf(at, sizeof at, "%s", c->file);
        n = 0;
        colon = text;
    } else {
        snprintf(at, sizeof at, "%.*s", (int)((size_t)(colon - text) + n), text);
        n += 1 + (colon[n + 1] == ' ');
    }
    const char *sentence = colon + n;
    char line[1000];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(sentence, "\n"), sentence);
    dc_check_problem *p;
    const bool absent = n > 0 && strstr(line, strerror(ENOENT)) != NULL; /* n: not the script itself */
    if (absent || c->rt->check_unknown) /* it may have been about a value that is not there */
        p = add_problem(c, DC_CHECK_NOTE, at, "note", line,
                        "the script stopped here; values are not computed by deepc check");
    else
        p = add_problem(c, DC_CHECK_ERROR, at, kind, line, dc_luaerror_hint(line));
    p->word = last_quoted(line);
}

/* Is the error what ends the script, and not one of its own? */
static bool is_stop(lua_State *L, const dc_check *c, int idx)
{
    return atomic_load(&c->stopped) || c->over || lua_touserdata(L, idx) == (const void *)STOPPED;
}

void dc_check_report(lua_State *L, dc_check *c, const char *kind)
{
    const int idx = lua_gettop(L);
    luaL_checkstack(L, 8, "an error");
    lua_pushliteral(L, "code");
    const bool ours = lua_type(L, idx) == LUA_TTABLE && lua_rawget(L, idx) == LUA_TSTRING;
    if (!is_stop(L, c, idx) && ours) {
        report_record(c, L, idx);
    } else if (!is_stop(L, c, idx)) {
        lua_settop(L, idx);
        dc_luaerror e;
        dc_luaerror_read(L, idx, &e);
        report_text(c, e.text, kind);
    }
    lua_settop(L, idx - 1);
}

static void stop_again(lua_State *L, lua_Debug *ar)
{
    DC_UNUSED(ar);
    dc_check_stop(L);
}

/* Each instruction of who catches it raises it again, so that no pcall in a loop keeps the script going. */
void dc_check_stop(lua_State *L)
{
    dc_check_of(L)->over = true;
    dc_interrupt_sethook(L, dc_dsl_in(L), stop_again, LUA_MASKCOUNT, 1);
    lua_pushlightuserdata(L, (void *)(uintptr_t)STOPPED);
    for (;;)
        lua_error(L);
}

/* ---- definitions ----------------------------------------------------------------------------- */

/* What stands for a function that did not pass: code that calls it is not checked. */
static int l_failed(lua_State *L)
{
    dc_check_stop(L);
}

static void push_failed(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__call", l_failed}, {"__index", l_failed}, {NULL, NULL}};
    lua_newtable(L);
    luaL_newlib(L, meta);
    lua_setmetatable(L, -2);
}

/* dc.fn; upvalue: the one that was there. Inside a trace the outer definition is what fails. */
static int l_fn(lua_State *L)
{
    dc_check *c = dc_check_of(L);
    const dc_dsl *d = dc_dsl_in(L);
    const bool outermost = d->trace == NULL;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    if (lua_pcall(L, lua_gettop(L) - 1, 1, 0) == LUA_OK) {
        if (outermost)
            dc_check_hold(L, c);
        return 1;
    }
    if (!outermost || is_stop(L, c, -1))
        return lua_error(L);
    dc_check_report(L, c, "error");
    push_failed(L);
    return 1;
}

static void watch_definitions(lua_State *L)
{
    lua_getglobal(L, "require");
    lua_pushliteral(L, "deepc");
    lua_call(L, 1, 1);
    lua_pushliteral(L, "fn");
    lua_pushliteral(L, "fn");
    lua_rawget(L, -3);
    lua_pushcclosure(L, l_fn, 1);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void hook(lua_State *L, lua_Debug *ar)
{
    dc_check *c = dc_check_of(L);
    if (ar->event == LUA_HOOKCOUNT && !c->over && dc_clock_ns() > c->deadline)
        c->over = c->late = true;
    if (ar->event != LUA_HOOKCOUNT && !c->over)
        dc_check_types_hook(L, ar, c->types);
    if (c->over && ar->event != LUA_HOOKRET)
        dc_check_stop(L);
}

static void tell_made(void *arg, const dc_handle *h, const char *op, const char *where)
{
    const dc_check *c = arg;
    dc_check_types_made(c->types, h, op, where);
}

static dc_status unused_body(dc_job *j, void *arg)
{
    dc_check *c = arg;
    DC_UNUSED(j);
    dc_uses_end(&c->watch.lazy, &c->watch.seen, tell_lazy, c);
    return DC_OK;
}

void dc_check_prepare(lua_State *L, dc_check *c)
{
    lua_pushlightuserdata(L, c);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &KEY);
    watch_definitions(L);
    dc_dsl_finish(L, true); /* the check tells it itself */
    dc_check_silence(L);
}

static void set_arguments(lua_State *L, const dc_check_source *s)
{
    lua_createtable(L, s->argc, 0);
    for (int i = 0; i < s->argc; i++) {
        lua_pushstring(L, s->argv[i]);
        lua_rawseti(L, -2, i);
    }
    lua_setglobal(L, "arg");
}

static int load_script(lua_State *L, const dc_check_source *s)
{
    if (s->text == NULL)
        return luaL_loadfile(L, s->file);
    const char *name = lua_pushfstring(L, "@%s", s->file), *text = s->text;
    size_t n = s->n;
    if (n > 0 && *text == '#') /* as luaL_loadfile: the line counts, and is no Lua */
        for (; n > 0 && *text != '\n'; n--)
            text++;
    const int status = luaL_loadbufferx(L, text, n, name, "t");
    lua_remove(L, -2);
    return status;
}

static void run_script(lua_State *L, dc_check *c, const dc_check_source *s)
{
    const int loaded = load_script(L, s);
    if (loaded != LUA_OK) {
        dc_check_report(L, c, loaded == LUA_ERRSYNTAX ? "syntax" : "error");
        return;
    }
    if (c->types != NULL)
        dc_check_types_begin(L, c->types);
    luaL_checkstack(L, s->argc, "arguments");
    for (int i = 1; i < s->argc; i++)
        lua_pushstring(L, s->argv[i]);
    if (c->types !=
        NULL) /* then others look at the clock: counting would be felt by each instruction */
        lua_sethook(L, hook, DC_CHECK_TYPES_EVENTS, 0);
    else
        lua_sethook(L, hook, LUA_MASKCOUNT, COUNT);
    const int status = lua_pcall(L, s->argc > 0 ? s->argc - 1 : 0, 0, 0);
    lua_sethook(L, NULL, 0, 0);
    c->ended = status == LUA_OK;
    c->late = c->late || atomic_load(&c->stopped);
    dc_resume(c->rt);
    if (status != LUA_OK)
        dc_check_report(L, c, "error");
    c->over = false;
    if (!c->late)
        dc_check_trace_open(L, c, s);
    if (c->late)
        add_problem(c, DC_CHECK_NOTE, c->file, "note",
                    "the script had not ended when its time was over",
                    "what it would have done is not checked; -t SECONDS gives it more");
}

void dc_check_trace(lua_State *L, dc_check *c, const dc_check_source *s)
{
    dc_dsl *d = dc_dsl_in(L);
    c->watch.tell = tell_unused;
    c->watch.made = c->types != NULL ? tell_made : NULL;
    c->watch.note = tell_note;
    c->watch.arg = c;
    d->watch = &c->watch;
    set_arguments(L, s);
    run_script(L, c, s);
    d->watch = NULL;
    dc_protect(&d->rt->job, unused_body, c);
    dc_check_sort(c);
}
