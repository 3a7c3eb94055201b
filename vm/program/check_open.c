/*
 * Typed functions whose sizes no call has told: "f(x: f32[n, 784])". At the end of the script each is traced for sizes
 * that occur nowhere else in it, all of them different. A trace that passes ends it: some caller may be right. What is wrong
 * with three choices of sizes, in the same place and words once each size is called as its dim, is a mistake unless
 * sizes that might mend it do so: the numbers that the sentence has, 1, equal ones, and one with many divisors.
 *
 * Only mistakes about types of tensors count: a script that was never in use may have lacked other values.
 */
#define _POSIX_C_SOURCE 200809L
#include "core/base/digits.h"
#include "dsl/base/interrupt.h"
#include "dsl/dsl.h"
#include "vm/program/check.h"
#include "vm/deepc.h"

#include <lauxlib.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    CHOICES = 3,
    MENDS = 16,          /* numbers of a sentence that are tried */
    HELD = 200,          /* functions that are looked at */
    FIRST = 101,         /* sizes begin here */
    MANY_DIVISORS = 960, /* 64 * 15 */
    LARGEST = 4096,      /* number of a sentence that is taken for a size */
    COUNT = 1000
};

static const char KEY = 0; /* its address: where the registry has the list of functions */

void dc_check_hold(lua_State *L, dc_check *c)
{
    const char *name[DC_DSL_DIMS];
    if (c->held == HELD || dc_dsl_open_dims(L, -1, name) == 0)
        return;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &KEY) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &KEY);
    }
    lua_pushvalue(L, -2);
    lua_rawseti(L, -2, ++c->held);
    lua_pop(L, 1);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* The numbers of a text, one after the other: where the next one begins, or NULL. */
static const char *next_number(const char *at, int64_t *value, const char **end)
{
    for (const char *from = at; *at != '\0'; at++) {
        const bool inside = at > from && (isalnum((unsigned char)at[-1]) || strchr("_.", at[-1]));
        uint64_t n;
        const char *digits = at;
        if (!isdigit((unsigned char)*at) || inside)
            continue;
        if (dc_digits_unsigned(&digits, NULL, INT32_MAX, &n) != DC_DIGITS_OK)
            continue;
        if (isalnum((unsigned char)*digits) || *digits == '_' ||
            (*digits == '.' && isdigit((unsigned char)digits[1])))
            continue;
        *value = (int64_t)n;
        *end = digits;
        return at;
    }
    return NULL;
}

typedef struct naming {
    int n;
    const char *name[DC_DSL_DIMS];
    int64_t size[DC_DSL_DIMS];
} naming;

static bool is_prime(int64_t n)
{
    for (int64_t k = 2; k * k <= n; k++)
        if (n % k == 0)
            return false;
    return true;
}

static bool occurs(const char *text, int64_t n)
{
    int64_t value;
    for (const char *end; (text = next_number(text, &value, &end)) != NULL; text = end)
        if (value == n)
            return true;
    return false;
}

/* The next primes above *last that the script does not have. */
static void choose(naming *to, const char *script, int64_t *last)
{
    for (int i = 0; i < to->n; i++) {
        do
            ++*last;
        while (!is_prime(*last) || occurs(script, *last));
        to->size[i] = *last;
    }
}

/* The text with the names of dims for their sizes: "f32[n=101, 10]" and "101 against 3" become "f32[n, 10]", "n against 3". */
static void put_named(const naming *by, const char *text, dc_text *out)
{
    const char *at, *end;
    int64_t value;
    for (; (at = next_number(text, &value, &end)) != NULL; text = end) {
        int i = 0;
        while (i < by->n && by->size[i] != value)
            i++;
        if (i == by->n) {
            dc_text_put(out, text, (size_t)(end - text));
            continue;
        }
        const size_t length = strlen(by->name[i]);
        const bool named = (size_t)(at - text) > length && at[-1] == '=' &&
                           memcmp(at - 1 - length, by->name[i], length) == 0;
        dc_text_put(out, text, (size_t)(at - text) - (named ? length + 1 : 0));
        dc_text_puts(out, by->name[i]);
    }
    dc_text_puts(out, text);
}

/* ---- traces ---------------------------------------------------------------------------------- */

typedef struct outcome {
    bool passed, ours; /* ours: an error about types of tensors */
    uint32_t made;     /* results of operations before it */
    char code[16], at[300];
} outcome;

/* Arguments: the function, sizes. */
static int trace_for(lua_State *L)
{
    dc_dsl_trace_for(L, 1, lua_touserdata(L, 2));
    return 0;
}

static void copy_field(lua_State *L, const char *name, char *out, size_t room)
{
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    const char *text = lua_tostring(L, -1);
    snprintf(out, room, "%s", text != NULL ? text : "");
    lua_pop(L, 1);
}

/* Codes of dtypes, of shapes but for those of memory, and of results that are not as declared. */
static bool is_about_types(const char *code)
{
    return strncmp(code, "DC02", 4) == 0 || strcmp(code, "DC0405") == 0 ||
           (strncmp(code, "DC03", 4) == 0 && strcmp(code, "DC0306") != 0);
}

/* Traces the function at idx; what it raised is pushed, or nil. */
static outcome try_sizes(lua_State *L, dc_check *c, int idx, const int64_t *size)
{
    outcome o = {0};
    c->made = 0;
    lua_pushcfunction(L, trace_for);
    lua_pushvalue(L, idx);
    lua_pushlightuserdata(L, (void *)(uintptr_t)size);
    o.passed = lua_pcall(L, 2, 1, 0) == LUA_OK;
    o.made = c->made;
    if (o.passed || lua_type(L, -1) != LUA_TTABLE)
        return o;
    copy_field(L, "code", o.code, sizeof o.code);
    copy_field(L, "at", o.at, sizeof o.at);
    o.ours = is_about_types(o.code) && *o.at != '\0';
    return o;
}

static bool same_place(const outcome *a, const outcome *b)
{
    return strcmp(a->code, b->code) == 0 && strcmp(a->at, b->at) == 0;
}

/* The field of the table at idx gets the names of dims. */
static void name_field(lua_State *L, int idx, const char *name, const naming *by)
{
    dc_text text = {0};
    lua_pushstring(L, name);
    lua_rawget(L, idx);
    if (lua_type(L, -1) == LUA_TSTRING) {
        put_named(by, lua_tostring(L, -1), &text);
        lua_pushstring(L, name);
        lua_pushlstring(L, text.s, text.n);
        lua_rawset(L, idx);
    }
    lua_pop(L, 1);
    dc_text_free(&text);
}

/* The error at the top is told in names of dims; its sentence is pushed. */
static void name_error(lua_State *L, const naming *by)
{
    const int idx = lua_gettop(L);
    luaL_checkstack(L, 12, "an error");
    name_field(L, idx, "message", by);
    name_field(L, idx, "hint", by);
    lua_pushliteral(L, "operands");
    if (lua_rawget(L, idx) == LUA_TTABLE)
        for (lua_Integer i = 1, n = (lua_Integer)lua_rawlen(L, idx + 1); i <= n; i++) {
            if (lua_rawgeti(L, idx + 1, i) == LUA_TTABLE)
                name_field(L, idx + 2, "type", by);
            lua_settop(L, idx + 1);
        }
    lua_settop(L, idx);
    lua_pushliteral(L, "message");
    lua_rawget(L, idx);
    const char *message = lua_tostring(L, -1);
    lua_pushlstring(L, message != NULL ? message : "",
                    message != NULL ? strcspn(message, "\n") : 0);
    lua_remove(L, -2);
}

/* ---- is it a mistake? ------------------------------------------------------------------------ */

typedef struct looking {
    dc_check *c;
    int fn; /* its index */
    naming dims;
    outcome error; /* of the first choice */
} looking;

/* Does the function get past the error where all dims have this size? */
static bool mends(lua_State *L, const looking *k, int64_t n)
{
    int64_t size[DC_DSL_DIMS];
    for (int i = 0; i < DC_DSL_DIMS; i++)
        size[i] = n;
    const outcome o = try_sizes(L, k->c, k->fn, size);
    lua_pop(L, 1);
    return o.passed || (!same_place(&o, &k->error) && o.made >= k->error.made);
}

static bool is_mended(lua_State *L, const looking *k, const char *sentence)
{
    int64_t value;
    const char *end;
    int n = 0;
    if (mends(L, k, 1) || mends(L, k, k->dims.size[0]) || mends(L, k, MANY_DIVISORS))
        return true;
    for (; n < MENDS && next_number(sentence, &value, &end) != NULL; sentence = end, n++)
        if (value > 0 && value <= LARGEST && mends(L, k, value))
            return true;
    return false;
}

static bool is_told(const dc_check *c, const outcome *o)
{
    for (uint32_t i = 0; i < c->found.n; i++) {
        const dc_check_problem *p = &c->found.at[i];
        if (p->line > 0 && strcmp(p->kind, o->code) == 0 &&
            dc_check_line_of(o->at, p->file) == p->line)
            return true;
    }
    return false;
}

/* The function is at the top. */
static void look_at(lua_State *L, dc_check *c, const char *script)
{
    looking k = {.c = c, .fn = lua_gettop(L)};
    int64_t last = FIRST - 1;
    k.dims.n = dc_dsl_open_dims(L, k.fn, k.dims.name);
    if (k.dims.n == 0)
        return;
    for (int i = 0; i < CHOICES; i++) {
        naming here = k.dims;
        choose(&here, script, &last);
        const outcome o = try_sizes(L, c, k.fn, here.size);
        if (!o.ours || c->over || (i > 0 && !same_place(&o, &k.error)))
            return;
        name_error(L, &here);
        if (i == 0) { /* the error and its sentence stay */
            k.error = o;
            k.dims = here;
        } else if (!lua_rawequal(L, -1, k.fn + 2)) {
            return;
        }
        lua_settop(L, k.fn + 2);
    }
    const char *sentence = lua_tostring(L, k.fn + 2);
    if (strstr(sentence, " is nil") != NULL || is_told(c, &k.error) || is_mended(L, &k, sentence) ||
        c->over)
        return;
    lua_settop(L, k.fn + 1);
    dc_check_report(L, c, "error");
}

static void hook(lua_State *L, lua_Debug *ar)
{
    dc_check *c = dc_check_of(L);
    DC_UNUSED(ar);
    if (!c->over && (atomic_load(&c->stopped) || (c->types == NULL && dc_clock_ns() > c->deadline)))
        c->over = c->late = true;
    if (c->over)
        dc_check_stop(L);
}

static void count_made(void *arg, const dc_handle *h, const char *op, const char *where)
{
    dc_check *c = arg;
    DC_UNUSED(h);
    DC_UNUSED(op);
    DC_UNUSED(where);
    c->made++;
}

/* A result that nothing uses may be used with other sizes. */
static void tell_nothing(void *arg, const dc_use *use)
{
    DC_UNUSED(arg);
    DC_UNUSED(use);
}

/* Argument: the text of the script. */
static int look_at_all(lua_State *L)
{
    dc_check *c = dc_check_of(L);
    const char *script = lua_tostring(L, 1);
    luaL_checkstack(L, 40, "functions");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &KEY);
    for (uint32_t i = 1; i <= c->held && !c->over; i++) {
        lua_rawgeti(L, 2, i);
        look_at(L, c, script);
        lua_settop(L, 2);
    }
    return 0;
}

/* Pushes the script. */
static void push_script(lua_State *L, const dc_check_source *s)
{
    luaL_Buffer b;
    if (s->text != NULL) {
        lua_pushlstring(L, s->text, s->n);
        return;
    }
    luaL_buffinit(L, &b);
    FILE *f = fopen(s->file, "rb");
    for (size_t n = LUAL_BUFFERSIZE; f != NULL && n == LUAL_BUFFERSIZE;) {
        n = fread(luaL_prepbuffer(&b), 1, LUAL_BUFFERSIZE, f);
        luaL_addsize(&b, n);
    }
    if (f != NULL)
        fclose(f);
    luaL_pushresult(&b);
}

void dc_check_trace_open(lua_State *L, dc_check *c, const dc_check_source *s)
{
    const dc_uses_watch was = c->watch;
    if (c->held == 0)
        return;
    c->watch.tell = tell_nothing;
    c->watch.made = count_made;
    lua_sethook(L, hook, LUA_MASKCOUNT, COUNT);
    lua_pushcfunction(L, look_at_all);
    push_script(L, s);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK)
        dc_check_report(L, c, "error");
    lua_sethook(L, NULL, 0, 0);
    c->late = c->late || atomic_load(&c->stopped);
    dc_resume(c->rt);
    c->over = false;
    c->watch.tell = was.tell;
    c->watch.made = was.made;
}
