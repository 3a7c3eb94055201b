/*
 * A libedit that lies, of functions here: of the line it shows places that are out of order, a line without an end, with
 * zeros or of any length, and of what was read any length. Nothing is read out of bounds, which the sanitizers see.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "tests/t.h"

#include "vm/program/prompt.h"
#include "vm/program/signals.h"

#include <lauxlib.h>

#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Of histedit.h, which need not be there. */
enum { ADDFN = 9, CLIENTDATA = 14, NORM = 0, ERROR = 6 };
typedef unsigned char key_function(void *el, int key);
typedef struct line_info {
    const char *buffer, *cursor, *last;
} line_info;

static line_info line;
static const char *got;
static int got_n;
static unsigned char answer;
static void *client;
static key_function *on_tab;
static size_t asked; /* completions */

DC_API void *dlopen(const char *name, int flags)
{
    static void *(*real)(const char *, int);
    void *found = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&real, &found, sizeof found);
    return real(name != NULL && strncmp(name, "libedit.", 8) == 0 ? NULL : name, flags);
}

#define IT(type, name, ...)        \
    DC_API type name(__VA_ARGS__); \
    DC_API type name(__VA_ARGS__)

IT(void *, el_init, const char *name, FILE *in, FILE *out, FILE *err)
{
    return name != NULL && in != NULL && out != NULL && err != NULL ? &line : NULL;
}
IT(void, el_end, void *el)
{
    DC_UNUSED(el);
}
IT(int, el_get, void *el, int what, void *to)
{
    if (what == CLIENTDATA)
        memcpy(to, &client, sizeof client);
    return el == NULL;
}
IT(int, el_set, void *el, int what, ...)
{
    va_list ap;
    va_start(ap, what);
    if (what == CLIENTDATA) {
        client = va_arg(ap, void *);
    } else if (what == ADDFN) {
        va_arg(ap, const char *), va_arg(ap, const char *);
        on_tab = va_arg(ap, key_function *);
    }
    va_end(ap);
    return el == NULL;
}
IT(const char *, el_gets, void *el, int *n)
{
    answer = on_tab(el, '\t');
    *n = got_n;
    return got;
}
IT(const line_info *, el_line, void *el)
{
    return el != NULL ? &line : NULL;
}
IT(int, el_insertstr, void *el, const char *s)
{
    return el == NULL || *s == '\0';
}
IT(void, el_resize, void *el)
{
    DC_UNUSED(el);
}
IT(int, el_source, void *el, const char *file)
{
    return el == NULL || file != NULL;
}
IT(void *, history_init, void)
{
    return &got;
}
IT(int, history, void *h, void *event, int what, ...)
{
    return h == NULL || event == NULL || what < 0;
}
IT(void, history_end, void *h)
{
    DC_UNUSED(h);
}

/* ---- what vm/program/prompt_edit.c uses of the prompt ------------------------------------------------------ */

const char *dc_prompt_bold(const dc_prompt *p)
{
    return p != NULL ? "" : NULL;
}

const char *dc_prompt_plain(const dc_prompt *p)
{
    return p != NULL ? "" : NULL;
}

int dc_signals_pending(void)
{
    return 0;
}

/* Reads all that it is given. */
size_t dc_prompt_complete(lua_State *L, const char *text, size_t at)
{
    size_t sum = 0;
    for (size_t i = 0; i < at; i++)
        sum += text[i] != 0;
    asked += sum == at;
    lua_newtable(L);
    return at;
}

/* ---- lies ------------------------------------------------------------------------------------------ */

static dc_edit *edit;

/* The answer to Tab in a line of n bytes, in memory of that size. */
static unsigned char tab(const char *bytes, size_t n, ptrdiff_t cursor, ptrdiff_t last)
{
    const char *out = NULL;
    char *const copy = malloc(n > 0 ? n : 1);
    memcpy(copy, bytes, n);
    line = (line_info){copy, copy + cursor, copy + last};
    asked = 0;
    answer = NORM;
    CHECK_EQ(dc_edit_read(edit, false, &out), DC_LINE_READ);
    free(copy);
    return answer;
}

static void test_places(void)
{
    CHECK(tab("ab", 2, 2, 2) == ERROR && asked == 1); /* it knows no such name */
    CHECK(tab("ab", 2, 1, 2) == ERROR && asked == 1);
    CHECK(tab("  ", 2, 2, 2) != ERROR && asked == 0); /* blanks go on, without an end behind them */
    CHECK(tab("", 0, 0, 0) != ERROR && asked == 0);
    CHECK(tab("ab", 2, 3, 2) == ERROR && asked == 0);
    CHECK(tab("ab", 2, -1, 2) == ERROR && asked == 0);
    CHECK(tab("ab", 2, 0, -1) == ERROR && asked == 0);
    CHECK(tab("ab", 2, 1 << 30, (ptrdiff_t)1 << 40) == ERROR && asked == 0);
    CHECK(tab("a\0b", 3, 3, 3) == ERROR && asked == 0); /* a text ends at the zero */
    CHECK(tab(" \0b", 3, 3, 3) == ERROR && asked == 0);
    line = (line_info){NULL, NULL, NULL};
    CHECK_EQ(on_tab(&line, '\t'), ERROR);
}

static void test_length(void)
{
    const char *out = NULL;
    char *const four = strdup("abc");
    got = four;
    got_n = INT32_MAX;
    line = (line_info){four, four, four};
    CHECK_EQ(dc_edit_read(edit, false, &out), DC_LINE_READ);
    CHECK_STR(out, "abc");
    got_n = 2;
    CHECK_EQ(dc_edit_read(edit, false, &out), DC_LINE_READ);
    CHECK_STR(out, "ab");
    got_n = -1;
    CHECK_EQ(dc_edit_read(edit, false, &out), DC_LINE_END);
    free(four);
}

int main(void)
{
    dc_prompt p = {.L = luaL_newstate()};
    got = "x\n";
    got_n = 2;
    edit = dc_edit_open(&p);
    if (edit == NULL)
        T_SKIP("built without libedit");
    if (edit != NULL) {
        test_places();
        test_length();
    }
    dc_edit_close(edit);
    lua_close(p.L);
    return t_done();
}
