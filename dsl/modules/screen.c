/*
 * What dc.show asks of the terminal that stdout is.
 *
 *   screen()         columns, rows, pixels of a character (0: not told), colours (0, 256 or 1 << 24); nil where it is none
 *   wants_colour()   is NO_COLOR not set, and are blocks among the characters of the locale?
 *   asks_sixel()     the answer to a question to the terminal: does it show Sixel?
 *   show_setting()   DEEPC_SHOW: "auto", "sixel", "blocks" or "ascii"
 */
#define _DEFAULT_SOURCE
#include "dsl/base/binding.h"
#include "dsl/modules/modules.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static bool ends_in_utf8(const char *locale)
{
    const char *dot = strchr(locale, '.');
    return dot != NULL && (strncasecmp(dot, ".utf-8", 6) == 0 || strncasecmp(dot, ".utf8", 5) == 0);
}

/* Blocks are no ASCII. Where nothing is said of the locale, terminals of today are taken for what they are. */
static bool knows_utf8(void)
{
    static const char *const name[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < DC_COUNTOF(name); i++) {
        const char *locale = dc_opts_system(name[i]);
        if (*locale != '\0')
            return ends_in_utf8(locale);
    }
    return true;
}

/* https://no-color.org */
static bool wants_colour(void)
{
    return *dc_opts_system("NO_COLOR") == '\0';
}

static lua_Integer colours_of_terminal(void)
{
    const char *term = dc_opts_system("TERM"), *more = dc_opts_system("COLORTERM");
    if (!wants_colour() || !knows_utf8() || *term == '\0' || strcmp(term, "dumb") == 0)
        return 0;
    return strcmp(more, "truecolor") == 0 || strcmp(more, "24bit") == 0 || strstr(term, "direct")
               ? 1 << 24
               : 256;
}

static int l_screen(lua_State *L)
{
    struct winsize size = {0};
    if (!isatty(STDOUT_FILENO))
        return 0;
    const bool told = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    lua_pushinteger(L, told ? size.ws_col : 80);
    lua_pushinteger(L, told && size.ws_row > 0 ? size.ws_row : 24);
    lua_pushinteger(L, told ? size.ws_xpixel / size.ws_col : 0);
    lua_pushinteger(L, told && size.ws_row > 0 ? size.ws_ypixel / size.ws_row : 0);
    lua_pushinteger(L, colours_of_terminal());
    return 5;
}

static int l_wants_colour(lua_State *L)
{
    lua_pushboolean(L, wants_colour() && knows_utf8());
    return 1;
}

static int l_show_setting(lua_State *L)
{
    lua_pushstring(L, dc_dsl_of(L)->rt->opt.show);
    return 1;
}

enum { ANSWER = 128, PATIENCE_MS = 300 };

/* Does something come within so many milliseconds? */
static bool has_input(int ms)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&p, 1, ms) == 1 && (p.revents & POLLIN) != 0;
}

/*
 * The terminal's answer to a request for its device attributes, ESC [ ? 64 ; 4 c, of which 4 is Sixel. It is not asked
 * where something was typed that waits: that would be taken for an answer.
 */
static bool ask(void)
{
    static const char request[] = "\033[c";
    char answer[ANSWER + 1];
    size_t n = 0;
    if (has_input(0) || write(STDOUT_FILENO, request, sizeof request - 1) < 0)
        return false;
    while (n < ANSWER && has_input(PATIENCE_MS) && read(STDIN_FILENO, answer + n, 1) == 1)
        if (answer[n++] == 'c')
            break;
    answer[n] = '\0';
    const char *at = strstr(answer, "\033[?");
    for (at = at != NULL ? strpbrk(at, ";c") : NULL; at != NULL && *at == ';';
         at = strpbrk(at + 1, ";c"))
        if (at[1] == '4' && (at[2] == ';' || at[2] == 'c'))
            return true;
    return false;
}

/* Whoever changes the terminal in the background is stopped. */
static bool is_in_front(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static int l_asks_sixel(lua_State *L)
{
    struct termios was, raw;
    bool has = false;
    if (strcmp(dc_dsl_of(L)->rt->opt.allow, "all") == 0 && isatty(STDIN_FILENO) &&
        isatty(STDOUT_FILENO) && is_in_front() && tcgetattr(STDIN_FILENO, &was) == 0) {
        raw = was;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        fflush(stdout);
        if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0) {
            has = ask();
            tcsetattr(STDIN_FILENO, TCSANOW, &was);
        }
    }
    lua_pushboolean(L, has);
    return 1;
}

static const dc_binding bindings[] = {
    {"screen", l_screen, DC_ANY, DC_IN_LIBRARY},
    {"wants_colour", l_wants_colour, DC_ANY, DC_IN_LIBRARY},
    {"asks_sixel", l_asks_sixel, DC_ANY, DC_IN_LIBRARY},
    {"show_setting", l_show_setting, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_screen_bindings = DC_BINDINGS(bindings);
