/*
 * What begins with a colon at the prompt. Most commands take an expression, which is computed as if
 * it had been entered.
 */
#include "core/base/digits.h"
#include "core/base/number.h"
#include "core/base/shown.h"
#include "dsl/dsl.h"
#include "jit/jit.h"
#include "vm/program/explain.h"
#include "vm/program/luaerror.h"
#include "vm/program/prompt.h"
#include "vm/program/say.h"

#include <lauxlib.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct command {
    const char *name, *args, *help;
    bool (*run)(dc_prompt *p, const char *args); /* false: the prompt is to end */
} command;

enum { COMMANDS = 10 };

static const command commands[COMMANDS + 1];

const char *dc_prompt_command_name(int i)
{
    return commands[i].name;
}

static size_t blanks(const char *s)
{
    return strspn(s, " \t\n");
}

/* ---- expressions ----------------------------------------------------------------------------- */

static bool need(const char *args, const char *what)
{
    if (*args != '\0')
        return true;
    printf("needs %s\n", what);
    return false;
}

/* Pushes the first value of the expression; false when it failed, which has been said. */
static bool push_value(dc_prompt *p, const char *text, size_t n)
{
    lua_State *L = p->L;
    const int base = lua_gettop(L);
    lua_pushlstring(L, text, n);
    if (dc_prompt_load_expression(L, lua_tostring(L, -1)) != LUA_OK) {
        dc_prompt_report(p);
        lua_settop(L, base);
        return false;
    }
    lua_remove(L, base + 1);
    if (!dc_prompt_call(p, 0)) {
        lua_settop(L, base);
        return false;
    }
    lua_settop(L, base + 1); /* nil where there is none */
    return true;
}

static bool fail(dc_prompt *p, const char *sentence)
{
    fputs(dc_prompt_red(p), stderr);
    dc_say(stderr, sentence, strlen(sentence));
    fprintf(stderr, "%s\n", dc_prompt_plain(p));
    return true;
}

/* The method of the typed function that args begins with; pushes the method and the function. */
static bool push_method(dc_prompt *p, const char *args, size_t n, const char *method)
{
    lua_State *L = p->L;
    if (!push_value(p, args, n))
        return false;
    if (!dc_dsl_is_function(L, -1)) {
        fail(p, "that is no typed function");
        return false;
    }
    lua_getfield(L, -1, method);
    lua_insert(L, -2);
    return true;
}

static void print_text(dc_prompt *p)
{
    dc_luaerror e;
    dc_luaerror_read(p->L, -1, &e);
    dc_sayf(stdout, "%s\n", e.text);
    lua_pop(p->L, 1);
}

/* ---- about values ---------------------------------------------------------------------------- */

static int l_push_type(lua_State *L)
{
    dc_prompt_push_type(L, 1);
    return 1;
}

static bool run_type(dc_prompt *p, const char *args)
{
    lua_pushcfunction(p->L, l_push_type);
    if (need(args, "an expression") && push_value(p, args, strlen(args)) && dc_prompt_call(p, 1))
        print_text(p);
    return true;
}

/* "hist EXPR", if what is behind the word is an expression; its length, or 0. */
static size_t kind_of_picture(lua_State *L, const char *args)
{
    static const char *const word[] = {"image ", "line ", "hist "};
    for (size_t i = 0; i < DC_COUNTOF(word); i++) {
        const size_t n = strlen(word[i]);
        if (strncmp(args, word[i], n) != 0)
            continue;
        const bool is_expression = dc_prompt_load_expression(L, args + n) == LUA_OK;
        lua_pop(L, 1);
        return is_expression ? n : 0;
    }
    return 0;
}

/* dc.show(value, { as = ... }) */
static bool run_show(dc_prompt *p, const char *args)
{
    lua_State *L = p->L;
    if (!need(args, "an expression"))
        return true;
    const size_t n = kind_of_picture(L, args);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "deepc");
    if (!dc_prompt_call(p, 1))
        return true;
    lua_getfield(L, -1, "show");
    lua_remove(L, -2);
    if (!push_value(p, args + n, strlen(args + n)))
        return true;
    lua_newtable(L);
    if (n > 0) {
        lua_pushlstring(L, args, n - 1);
        lua_setfield(L, -2, "as");
    }
    dc_prompt_call(p, 2);
    return true;
}

enum { RUNS = 11, MOST_NS = 1000000000 };

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void print_duration(uint64_t ns)
{
    char text[DC_NUMBER_TEXT];
    if (ns < 10000)
        dc_number_format(text, sizeof text, "%.2f us", (double)ns / 1e3);
    else if (ns < 10000000)
        dc_number_format(text, sizeof text, "%.1f us", (double)ns / 1e3);
    else
        dc_number_format(text, sizeof text, "%.1f ms", (double)ns / 1e6);
    fputs(text, stdout);
}

/*
 * Pushes what runs the expression once. A tensor that it gives is read, so that nothing is left to
 * be computed.
 */
static bool push_timed(dc_prompt *p, const char *args)
{
    static const char code[] = "local f, kind = ...\n"
                               "local function force(x, ...)\n"
                               "  if kind(x) then tostring(x) end\n"
                               "end\n"
                               "return function() force(f()) end\n";
    lua_State *L = p->L;
    if (luaL_loadbuffer(L, code, sizeof code - 1, "=deepc/time") != LUA_OK ||
        dc_prompt_load_expression(L, args) != LUA_OK) {
        dc_prompt_report(p);
        return false;
    }
    lua_pushcfunction(L, dc_prompt_is_tensor);
    return dc_prompt_call(p, 2);
}

static bool run_time(dc_prompt *p, const char *args)
{
    uint64_t ns[RUNS], all = 0;
    lua_State *L = p->L;
    int n = 0;
    if (!need(args, "an expression") || !push_timed(p, args))
        return true;
    for (; n < RUNS && (n < 4 || all < MOST_NS); n++) {
        const uint64_t start = dc_clock_ns();
        lua_pushvalue(L, -1);
        if (!dc_prompt_call(p, 0))
            return true;
        ns[n] = dc_clock_ns() - start;
        all += ns[n];
        if (n == 0 && ns[0] > 4ull * MOST_NS)
            break;
    }
    printf("first  ");
    print_duration(ns[0]);
    if (n > 1) {
        qsort(ns + 1, (size_t)n - 1, sizeof *ns, by_size);
        printf("\nthen   ");
        print_duration(ns[1 + (n - 1) / 2]);
        printf("   median of %d, fastest ", n - 1);
        print_duration(ns[1]);
    }
    printf("\n");
    return true;
}

/* ---- about typed functions ------------------------------------------------------------------- */

static bool run_explain(dc_prompt *p, const char *args)
{
    char code[16];
    if (strncmp(args, "DC", 2) == 0 && strlen(args) < sizeof code &&
        strspn(args + 2, "0123456789") == strlen(args + 2)) {
        char *argv[] = {strcpy(code, args)};
        dc_vm_explain(1, argv);
        return true;
    }
    if (need(args, "a typed function, or the code of an error such as DC0301") &&
        push_method(p, args, strlen(args), "explain") && dc_prompt_call(p, 1))
        print_text(p);
    return true;
}

static double number_field(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    const double v = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return v;
}

/* What the machine does at its best (stdlib/peaks.lua), measured once for a prompt. 0 where kernels are interpreted. */
static void measure_peak(dc_prompt *p)
{
    static const char code[] = "return require 'deepc.peaks'()\n";
    lua_State *L = p->L;
    const int base = lua_gettop(L);
    if (p->peak_known || p->rt->interpret || dc_sim_is(p->rt->opt.device))
        return;
    p->peak_known = true;
    if (luaL_loadbuffer(L, code, sizeof code - 1, "=deepc/peak") == LUA_OK &&
        dc_prompt_call(p, 0)) {
        p->peak_gflops = lua_tonumber(L, base + 1);
        p->peak_gbs = lua_tonumber(L, base + 2);
    }
    lua_settop(L, base);
}

static double share(double part, double whole)
{
    return whole > 0 ? part < whole ? part / whole : 1 : 0;
}

/* The kernel on top, as a line. */
static void print_kernel(const dc_prompt *p, lua_Integer i)
{
    lua_State *L = p->L;
    lua_getfield(L, -1, "name");
    lua_getfield(L, -2, "lines");
    const char *name = lua_tostring(L, -2), *lines = lua_tostring(L, -1);
    lua_pop(L, 2); /* the kernel still has them */
    const double gflops = number_field(L, "gflops"), gbs = number_field(L, "gbs");
    const double a = share(gflops, p->peak_gflops), b = share(gbs, p->peak_gbs);
    char numbers[100], rates[100] = "       -        -     -"; /* of bounded dims none is known */
    dc_number_format(numbers, sizeof numbers, "%6.0f %9.3f", number_field(L, "calls"),
                     number_field(L, "ms"));
    if (gflops > 0 || gbs > 0)
        dc_number_format(rates, sizeof rates, "%8.2f %8.2f %4.0f%%", gflops, gbs,
                         100 * (a > b ? a : b));
    char shown[400] = "";
    if (lines != NULL)
        dc_shown_put(shown, sizeof shown, lines, strlen(lines), false);
    dc_sayf(stdout, "%3d  %-24s %s %s  %s\n", (int)i, name, numbers, rates, shown);
}

static bool run_kernels(dc_prompt *p, const char *args)
{
    lua_State *L = p->L;
    if (!need(args, "a typed function") || !push_method(p, args, strlen(args), "kernels") ||
        !dc_prompt_call(p, 1))
        return true;
    measure_peak(p);
    printf("%3s  %-24s %6s %9s %8s %8s %5s  %s\n", "n", "kernel", "calls", "ms", "GFLOP/s", "GB/s",
           "peak", "lines");
    for (lua_Integer i = 1; i <= (lua_Integer)lua_rawlen(L, -1); i++) {
        lua_rawgeti(L, -1, i);
        print_kernel(p, i);
        lua_pop(L, 1);
    }
    return true;
}

/* The last word of the text, without which it is *n bytes long; NULL where it is the only one. */
static const char *last_word(const char *text, size_t *n)
{
    size_t end = *n;
    while (end > 0 && isspace((unsigned char)text[end - 1]))
        end--;
    size_t from = end;
    while (from > 0 && !isspace((unsigned char)text[from - 1]))
        from--;
    if (from == 0)
        return NULL;
    *n = from;
    return text + from;
}

/* A kernel that there is not where the word, which may have blanks behind it, is no number. */
static uint64_t number_of(const char *word)
{
    uint64_t n = 0;
    const dc_digits d = dc_digits_unsigned(&word, NULL, INT32_MAX, &n);
    return d == DC_DIGITS_OK && (*word == '\0' || isspace((unsigned char)*word)) ? n : 0;
}

/* A line with the name of a kernel of the function that the n bytes of args give, and the lines of Lua it computes. */
static void print_origin(dc_prompt *p, const char *args, size_t n, uint64_t number)
{
    lua_State *L = p->L;
    const int top = lua_gettop(L);
    if (push_method(p, args, n, "kernels") && dc_prompt_call(p, 1) &&
        lua_rawgeti(L, -1, (lua_Integer)number) == LUA_TTABLE) {
        lua_getfield(L, -1, "name");
        lua_getfield(L, -2, "lines");
        const char *name = lua_tostring(L, -2), *lines = lua_tostring(L, -1);
        dc_sayf(stdout, "kernel %d, %s: %s\n\n", (int)number, name, lines != NULL ? lines : "");
    }
    lua_settop(L, top);
}

/* f [n [form]] */
static bool run_source(dc_prompt *p, const char *args)
{
    lua_State *L = p->L;
    size_t n = strlen(args);
    char form[16] = "";
    uint64_t number = 1;
    if (!need(args, "a typed function, the number of a kernel, and one of nest, flat, text"))
        return true;
    const char *word = last_word(args, &n);
    if (word != NULL && isalpha((unsigned char)*word)) {
        snprintf(form, sizeof form, "%.*s", (int)strcspn(word, " \t"), word);
        word = last_word(args, &n);
    }
    if (word != NULL && isdigit((unsigned char)*word))
        number = number_of(word);
    else
        n = form[0] != '\0' ? n : strlen(args);
    if (!push_method(p, args, n, "source"))
        return true;
    lua_pushinteger(L, (lua_Integer)number);
    if (form[0] != '\0')
        lua_pushstring(L, form);
    if (dc_prompt_call(p, form[0] != '\0' ? 3 : 2)) {
        print_origin(p, args, n, number);
        print_text(p);
    }
    return true;
}

static bool run_plan(dc_prompt *p, const char *args)
{
    if (need(args, "a typed function") && push_method(p, args, strlen(args), "plan") &&
        dc_prompt_call(p, 1))
        print_text(p);
    return true;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void print_bytes(const char *what, double bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    for (; bytes >= 10240 && u < 4; u++)
        bytes /= 1024;
    printf("%-22s %.*f %s\n", what, u == 0 || bytes >= 100 ? 0 : 1, bytes, unit[u]);
}

static bool run_mem(dc_prompt *p, const char *args)
{
    const dc_stats *s = &p->rt->stats;
    DC_UNUSED(args);
    print_bytes("tensors and cells", (double)s->bytes_live);
    print_bytes("at most", (double)s->bytes_peak);
    print_bytes("temporaries", (double)p->rt->arena_bytes);
    print_bytes("Lua", lua_gc(p->L, LUA_GCCOUNT) * 1024.0 + lua_gc(p->L, LUA_GCCOUNTB));
    return true;
}

static bool run_quit(dc_prompt *p, const char *args)
{
    DC_UNUSED(p);
    DC_UNUSED(args);
    return false;
}

static void print_overview(void)
{
    for (const command *c = commands; c->name != NULL; c++)
        printf(":%-8s %-16s %s\n", c->name, c->args, c->help);
    puts("\n"
         "An expression is printed; its value is _. A piece goes on while it is unfinished.\n"
         "Tab completes names, fields and methods. Ctrl-C ends what runs, Ctrl-D the prompt.");
}

/* :help NAME asks the library's pages, if there are any. */
static bool run_help(dc_prompt *p, const char *args)
{
    lua_State *L = p->L;
    if (*args == '\0') {
        print_overview();
        return true;
    }
    lua_getglobal(L, "require");
    lua_pushliteral(L, "deepc.help");
    if (lua_pcall(L, 1, 1, 0) != LUA_OK)
        return fail(p, "there are no pages of help in this program; :help tells the commands");
    lua_pushstring(L, args);
    if (!dc_prompt_call(p, 1))
        return true;
    if (lua_isnil(L, -1))
        return fail(p, "nothing is known of that name; :help tells the commands");
    print_text(p);
    return true;
}

static const command commands[COMMANDS + 1] = {
    {"help", "[NAME]", "this text; what is known of a name of the library", run_help},
    {"type", "EXPR", "the type of a value", run_type},
    {"show", "[AS] EXPR", "a tensor as a picture; AS: image, line or hist", run_show},
    {"time", "EXPR", "how long it takes: the first time, then the median", run_time},
    {"explain", "F", "a typed function: its specialisations, kernels, memory", run_explain},
    {"kernels", "F", "its kernels: calls, time, speed, lines", run_kernels},
    {"source", "F [N [FORM]]", "kernel N, its lines and its text: nest, flat or text", run_source},
    {"plan", "F", "its launches and its memory", run_plan},
    {"mem", "", "memory in use", run_mem},
    {"quit", "", "leaves the prompt, as Ctrl-D does", run_quit},
    {NULL, NULL, NULL, NULL},
};

bool dc_prompt_command(dc_prompt *p, const char *line)
{
    size_t n = 0, words;
    while (isalpha((unsigned char)line[n]))
        n++;
    const char *args = line + n + blanks(line + n);
    words = strlen(args);
    while (words > 0 && isspace((unsigned char)args[words - 1]))
        words--;
    dc_prompt_forget(p);
    for (const command *c = commands; c->name != NULL; c++) {
        if (strlen(c->name) != n || strncmp(c->name, line, n) != 0)
            continue;
        lua_pushlstring(p->L, args, words);
        const bool on = c->run(p, lua_tostring(p->L, -1));
        fflush(stdout);
        return on;
    }
    fprintf(stderr, "%sno command ':%.*s'; there are:%s\n", dc_prompt_red(p), (int)n, line,
            dc_prompt_plain(p));
    for (const command *c = commands; c->name != NULL; c++)
        printf(":%-8s %-16s %s\n", c->name, c->args, c->help);
    fflush(stdout);
    return true;
}
