/*
 * Editing of lines on a terminal with libedit, its keys as in Emacs: history by arrows and Ctrl-R,
 * completion by Tab, Ctrl-C for a new line. The program's own function reads characters, since a
 * signal has to end a line and a resized terminal has to be drawn anew.
 *
 * The library is opened by the first prompt: what is only run by scripts starts without it, and where it is not
 * installed lines are read as they come.
 */
#define _DEFAULT_SOURCE /* the signals SIGWINCH and SIGCONT, wcwidth of libedit's header */
#include "vm/program/prompt.h"
#include "vm/program/signals.h"

#include <lauxlib.h>

#include <dlfcn.h>
#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <unistd.h>
#include <wchar.h>

enum { ESCAPE = 1, KEPT = 2000, COLUMNS = 80 };

struct dc_edit {
    dc_prompt *p;
    EditLine *el;
    History *history;
    bool more, interrupted;
    char text[40]; /* of the prompt */
    char *line;
    mbstate_t shift;
    struct sigaction before[2];
};

/* What is used of the library; its header has the types. Filled in once, by the first prompt. */
#define FUNCTIONS(row)                                                                           \
    row(el_init) row(el_end) row(el_get) row(el_set) row(el_gets) row(el_line) row(el_insertstr) \
        row(el_resize) row(el_source) row(history_init) row(history) row(history_end)
static struct {
#define FIELD(name) __typeof__(&name) name;
    FUNCTIONS(FIELD)
#undef FIELD
} lib;

/* Debian's, others'. */
const char *const dc_edit_libraries[] = {"libedit.so.2", "libedit.so.0", NULL};

static bool find_function(void *handle, const char *name, void *field)
{
    void *found = dlsym(handle, name);
    memcpy(field, &found, sizeof found);
    return found != NULL;
}

/* It stays open: the terminal is given back by it. */
static bool open_library(void)
{
    void *handle = NULL;
    for (int i = 0; handle == NULL && dc_edit_libraries[i] != NULL; i++)
        handle = dlopen(dc_edit_libraries[i], RTLD_NOW | RTLD_LOCAL);
    bool all = handle != NULL;
#define FIND(name) all = all && find_function(handle, #name, &lib.name);
    FUNCTIONS(FIND)
#undef FIND
    return all;
}

static const int watched[] = {SIGWINCH, SIGCONT};
static volatile sig_atomic_t resized, continued;

static void on_change(int sig)
{
    if (sig == SIGCONT)
        continued = 1;
    else
        resized = 1;
}

static dc_edit *edit_of(EditLine *el)
{
    void *e = NULL;
    lib.el_get(el, EL_CLIENTDATA, &e);
    return e;
}

static char *prompt(EditLine *el)
{
    dc_edit *e = edit_of(el);
    const char *sign = e->more ? ">> " : "> ";
    if (!e->p->colour)
        snprintf(e->text, sizeof e->text, "%s", sign);
    else
        snprintf(e->text, sizeof e->text, "%c%s%c%s%c%s%c", ESCAPE, dc_prompt_bold(e->p), ESCAPE,
                 sign, ESCAPE, dc_prompt_plain(e->p), ESCAPE);
    return e->text;
}

/* ---- characters ------------------------------------------------------------------------------ */

/* After a stop the terminal is as the shell left it. */
static void redraw(EditLine *el)
{
    if (resized)
        lib.el_resize(el);
    if (continued) {
        lib.el_set(el, EL_PREP_TERM, 0);
        lib.el_set(el, EL_PREP_TERM, 1);
    }
    resized = continued = 0;
    lib.el_set(el, EL_REFRESH);
}

/* Waits for input; false when Ctrl-C came. Signals are let in while it waits and at no other time. */
static bool await(EditLine *el)
{
    sigset_t held, before;
    bool ready = false;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGWINCH);
    sigaddset(&held, SIGCONT);
    sigprocmask(SIG_BLOCK, &held, &before);
    while (!ready && dc_signals_pending() == 0) {
        fd_set in;
        FD_ZERO(&in);
        FD_SET(STDIN_FILENO, &in);
        ready = pselect(STDIN_FILENO + 1, &in, NULL, NULL, NULL, &before) > 0;
        if (!ready && (resized || continued))
            redraw(el);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ready;
}

static int read_char(EditLine *el, wchar_t *out)
{
    dc_edit *e = edit_of(el);
    for (;;) {
        char c;
        if (!await(el)) {
            e->interrupted = true;
            return -1;
        }
        const ssize_t n = read(STDIN_FILENO, &c, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return (int)n;
        const size_t used = mbrtowc(out, &c, 1, &e->shift);
        if (used == (size_t)-2)
            continue;
        if (used == (size_t)-1) { /* no text of this locale */
            memset(&e->shift, 0, sizeof e->shift);
            *out = (unsigned char)c;
        }
        return 1;
    }
}

/* ---- completion ------------------------------------------------------------------------------ */

typedef struct completing {
    dc_edit *e;
    const char *line;
    size_t at;
    unsigned char result;
} completing;

/* Of the list of words on top, how long the begin is that all have. */
static size_t common_length(lua_State *L)
{
    lua_rawgeti(L, -1, 1);
    const char *first = lua_tostring(L, -1);
    size_t same = strlen(first);
    for (lua_Integer i = 2; i <= (lua_Integer)lua_rawlen(L, -2); i++) {
        lua_rawgeti(L, -2, i);
        const char *word = lua_tostring(L, -1);
        size_t n = 0;
        while (n < same && word[n] == first[n])
            n++;
        same = n;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return same;
}

/* In columns below the line. */
static void list_words(lua_State *L)
{
    const int n = (int)lua_rawlen(L, -1);
    size_t width = 0;
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, -1, i);
        const size_t w = strlen(lua_tostring(L, -1)) + 2;
        width = w > width ? w : width;
        lua_pop(L, 1);
    }
    const int columns = width < COLUMNS ? (int)(COLUMNS / width) : 1,
              rows = (n + columns - 1) / columns;
    putchar('\n');
    for (int row = 0; row < rows; row++) {
        for (int i = row; i < n; i += rows) {
            lua_rawgeti(L, -1, i + 1);
            printf("%-*s", i + rows < n ? (int)width : 0, lua_tostring(L, -1));
            lua_pop(L, 1);
        }
        putchar('\n');
    }
    fflush(stdout);
}

/* Argument: the request. */
static int l_complete(lua_State *L)
{
    completing *c = lua_touserdata(L, 1);
    const size_t from = dc_prompt_complete(L, c->line, c->at);
    const size_t n = (size_t)lua_rawlen(L, -1);
    if (n == 0)
        return 0;
    const size_t same = common_length(L), typed = c->at - from;
    if (same > typed) {
        lua_rawgeti(L, -1, 1);
        lua_pushlstring(L, lua_tostring(L, -1) + typed, same - typed);
        c->result = lib.el_insertstr(c->e->el, lua_tostring(L, -1)) == 0 ? CC_REFRESH : CC_ERROR;
    } else if (n > 1) {
        list_words(L);
        c->result = CC_REDISPLAY;
    }
    return 0;
}

/* A copy of the line, to be freed; *at: the cursor in it. NULL where the library's places cannot be right. */
static char *copy_line(EditLine *el, size_t *at)
{
    enum { MOST = 1 << 20 };
    const LineInfo *l = lib.el_line(el);
    if (l == NULL || l->buffer == NULL)
        return NULL;
    const uintptr_t begin = (uintptr_t)l->buffer, cursor = (uintptr_t)l->cursor,
                    last = (uintptr_t)l->lastchar;
    if (cursor < begin || last < cursor || last - begin > MOST)
        return NULL;
    *at = cursor - begin;
    char *line = strndup(l->buffer, last - begin);
    if (line == NULL || strlen(line) == last - begin)
        return line;
    free(line);
    return NULL;
}

static unsigned char complete_line(dc_edit *e, const char *line, size_t at)
{
    lua_State *L = e->p->L;
    completing c = {.e = e, .line = line, .at = at, .result = CC_ERROR};
    if (strspn(line, " \t\n") >= at)
        return lib.el_insertstr(e->el, "  ") == 0 ? CC_REFRESH : CC_ERROR;
    if (!lua_checkstack(L, 2))
        return CC_ERROR;
    lua_pushcfunction(L, l_complete);
    lua_pushlightuserdata(L, &c);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK)
        lua_pop(L, 1);
    return c.result;
}

static unsigned char complete(EditLine *el, int key)
{
    size_t at = 0;
    char *line = copy_line(el, &at);
    DC_UNUSED(key);
    const unsigned char result = line != NULL ? complete_line(edit_of(el), line, at) : CC_ERROR;
    free(line);
    return result;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void watch(dc_edit *e)
{
    struct sigaction action = {.sa_handler = on_change};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < 2; i++)
        sigaction(watched[i], &action, &e->before[i]);
}

dc_edit *dc_edit_open(dc_prompt *p)
{
    HistEvent ev;
    dc_edit *e = open_library() ? calloc(1, sizeof *e) : NULL;
    if (e == NULL)
        return NULL;
    e->p = p;
    setlocale(LC_CTYPE, ""); /* which bytes are one character */
    e->el = lib.el_init("deepc", stdin, stdout, stderr);
    e->history = lib.history_init();
    if (e->el == NULL || e->history == NULL) {
        dc_edit_close(e);
        return NULL;
    }
    watch(e);
    lib.history(e->history, &ev, H_SETSIZE, KEPT);
    lib.el_set(e->el, EL_CLIENTDATA, e);
    lib.el_set(e->el, EL_EDITOR, "emacs");
    lib.el_set(e->el, EL_HIST, lib.history, e->history);
    lib.el_set(e->el, EL_GETCFN, read_char);
    lib.el_set(e->el, EL_PROMPT_ESC, prompt, ESCAPE);
    lib.el_set(e->el, EL_ADDFN, "deepc-complete", "completes a name", complete);
    lib.el_set(e->el, EL_BIND, "^I", "deepc-complete", NULL);
    lib.el_set(e->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    lib.el_source(e->el, NULL);
    return e;
}

void dc_edit_close(dc_edit *e)
{
    if (e == NULL)
        return;
    for (int i = 0; e->el != NULL && e->history != NULL && i < 2; i++)
        sigaction(watched[i], &e->before[i], NULL);
    if (e->el != NULL)
        lib.el_end(e->el);
    if (e->history != NULL)
        lib.history_end(e->history);
    free(e->line);
    free(e);
}

dc_line_end dc_edit_read(dc_edit *e, bool more, const char **out)
{
    int n = 0;
    e->more = more;
    e->interrupted = false;
    memset(&e->shift, 0, sizeof e->shift);
    fflush(stdout);
    lib.el_set(e->el, EL_PREP_TERM, 1); /* before the sign is shown: what is typed then is for us */
    const char *got = lib.el_gets(e->el, &n);
    if (e->interrupted || got == NULL || n <= 0) {
        putchar('\n');
        return e->interrupted ? DC_LINE_INTERRUPTED : DC_LINE_END;
    }
    const size_t all = strnlen(got, (size_t)n); /* whatever n is */
    const size_t length = all - (all > 0 && got[all - 1] == '\n');
    free(e->line);
    e->line = strndup(got, length);
    if (e->line == NULL)
        return DC_LINE_END;
    *out = e->line;
    return DC_LINE_READ;
}

void dc_edit_remember(dc_edit *e, const char *piece)
{
    HistEvent ev;
    lib.history(e->history, &ev, H_ENTER, piece);
}
