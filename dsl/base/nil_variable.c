/*
 * Which variable of a script's line is nil: for messages that say "not nil".
 *
 * A binding sees the value alone. Lua's own messages name the variable from the bytecode, which its API does not
 * give; so the names in the text of the line are looked up as the line would, without calling anything. The text
 * comes from the chunk itself or, where files may be opened, from its file.
 */
#include "dsl/base/error.h"
#include "dsl/base/place.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 400, NAME = 60 };

/* ---- the text of the line --------------------------------------------------------------------- */

/* The line of this number in a text; false where there is none. */
static bool line_of_text(const char *text, int number, char *out)
{
    for (; number > 1 && text != NULL; number--) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    if (text == NULL)
        return false;
    snprintf(out, LINE, "%.*s", (int)strcspn(text, "\n"), text);
    return true;
}

static bool line_of_file(const char *path, int number, char *out)
{
    FILE *f = fopen(path, "re");
    int at = 1;
    bool found = false;
    while (f != NULL && !found && fgets(out, LINE, f) != NULL) {
        found = at == number;
        at += strchr(out, '\n') != NULL;
    }
    if (f != NULL)
        fclose(f);
    return found;
}

static bool line_of(const dc_dsl *d, const lua_Debug *ar, char *out)
{
    if (ar->currentline < 1)
        return false;
    if (*ar->source == '@')
        return dc_opts_files(&d->rt->opt) && d->rt->folders == NULL &&
               line_of_file(ar->source + 1, ar->currentline, out);
    return *ar->source != '=' && line_of_text(ar->source, ar->currentline, out);
}

/* ---- names ------------------------------------------------------------------------------------ */

static bool is_keyword(const char *name)
{
    static const char *const words[] = {"and",   "break", "do",    "else", "elseif", "end",
                                        "false", "for",   "goto",  "if",   "in",     "function",
                                        "local", "nil",   "not",   "or",   "repeat", "return",
                                        "then",  "true",  "until", "while"};
    for (size_t i = 0; i < DC_COUNTOF(words); i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return false;
}

/* Reads a name at *at; false where none begins there. */
static bool read_name(const char **at, char *out)
{
    size_t n = 0;
    if (!isalpha((unsigned char)**at) && **at != '_')
        return false;
    while (isalnum((unsigned char)(*at)[n]) || (*at)[n] == '_')
        n++;
    snprintf(out, NAME, "%.*s", (int)n, *at);
    *at += n;
    return n < NAME;
}

/* Pushes the local of this name, or the captured one; tells what it is, NULL and pushes nothing: none. */
static const char *push_local(lua_State *L, lua_Debug *ar, const char *name)
{
    const char *found;
    int last = 0;
    for (int i = 1; (found = lua_getlocal(L, ar, i)) != NULL; i++, lua_pop(L, 1))
        last = strcmp(found, name) == 0 ? i : last; /* the innermost of a name is the last */
    if (last > 0) {
        lua_getlocal(L, ar, last);
        return "local";
    }
    lua_getinfo(L, "f", ar);
    const int fn = lua_gettop(L);
    for (int i = 1; (found = lua_getupvalue(L, fn, i)) != NULL; i++, lua_pop(L, 1))
        if (strcmp(found, name) == 0) {
            lua_remove(L, fn);
            return "captured local";
        }
    lua_settop(L, fn - 1);
    return NULL;
}

/* The field of the table on top takes its place, read without metamethods; false where it is no table. */
static bool push_field(lua_State *L, const char *name)
{
    if (lua_type(L, -1) != LUA_TTABLE)
        return false;
    lua_pushstring(L, name);
    if (lua_rawget(L, -2) == LUA_TNIL && lua_getmetatable(L, -2))
        return false; /* its __index may know */
    lua_remove(L, -2);
    return true;
}

/* Pushes the variable of this name as the running function sees it; NULL: what it is cannot be told. */
static const char *push_variable(lua_State *L, lua_Debug *ar, const char *name)
{
    const char *kind = push_local(L, ar, name);
    if (kind != NULL)
        return kind;
    return push_local(L, ar, "_ENV") != NULL && push_field(L, name) ? "global" : NULL;
}

/* A name and its fields, "cfg.scale", which begins at *at: is it nil? `out` says of what kind it is. */
static bool is_nil(lua_State *L, lua_Debug *ar, const char **at, char *out, size_t size)
{
    char name[NAME];
    const int top = lua_gettop(L);
    if (!read_name(at, name) || is_keyword(name))
        return false;
    const char *kind = push_variable(L, ar, name);
    bool known = kind != NULL;
    while (known && **at == '.' && (*at)[1] != '.') {
        ++*at;
        known = read_name(at, name) && push_field(L, name);
        kind = "field";
    }
    known = known && lua_type(L, -1) == LUA_TNIL;
    lua_settop(L, top);
    if (known)
        snprintf(out, size, "the %s '%s' is nil", kind, name);
    return known;
}

/* Behind a text in quotes or a comment that begins at `at`. */
static const char *skip_text(const char *at)
{
    if (strncmp(at, "--", 2) == 0)
        return at + strlen(at);
    const char quote = *at;
    for (at++; *at != '\0' && *at != quote; at++)
        at += *at == '\\' && at[1] != '\0';
    return *at != '\0' ? at + 1 : at;
}

/* Is the variable that ends here read, not set ("ok, err = "), called, or the name of a field? */
static bool is_read(const char *at)
{
    const char *next = at + strspn(at, " \t");
    while (isalnum((unsigned char)*at) || (*at != '\0' && strchr("_., \t", *at) != NULL))
        at++;
    return (*at != '=' || at[1] == '=') && (*next == '\0' || strchr("({\"'", *next) == NULL);
}

/* Behind the names that are declared from here on. */
static const char *skip_declared(const char *at)
{
    while (isalnum((unsigned char)*at) || (*at != '\0' && strchr("_,<> \t", *at) != NULL))
        at++;
    return at;
}

const char *dc_nil_variable_push(lua_State *L, dc_dsl *d)
{
    lua_Debug ar;
    char line[LINE], text[NAME + 40];
    int level = 0;
    while (lua_getstack(L, level, &ar) && lua_getinfo(L, "Sl", &ar) && !dc_place_is_script(&ar))
        level++;
    if (!lua_getstack(L, level, &ar) || !lua_getinfo(L, "Sl", &ar) || !line_of(d, &ar, line) ||
        !lua_checkstack(L, 8))
        return NULL;
    for (const char *at = line; *at != '\0';) {
        if (*at == '"' || *at == '\'' || strncmp(at, "--", 2) == 0) {
            at = skip_text(at);
        } else if (*at == '.' || *at == ':' || isdigit((unsigned char)*at)) { /* no variable */
            for (at++; isalnum((unsigned char)*at) || *at == '_';)
                at++;
        } else if (isalpha((unsigned char)*at) || *at == '_') {
            const char *begin = at;
            if (strncmp(at, "local ", 6) == 0) {
                at = skip_declared(at);
                continue;
            }
            if (is_nil(L, &ar, &at, text, sizeof text) && is_read(at))
                return lua_pushstring(L, text);
            at = at > begin ? at : begin + 1;
        } else {
            at++;
        }
    }
    return NULL;
}
