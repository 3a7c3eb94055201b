/*
 * Misspelt names: of the names that there are, the one that was meant. A letter changed, left out,
 * put in, or two swapped count as one; letters of another case as none.
 */
#include "dsl/base/hints.h"

#include <lauxlib.h>

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { LONGEST = 32 };

static int least(int a, int b, int c)
{
    const int m = a < b ? a : b;
    return m < c ? m : c;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* How many changes make b of a; both at most LONGEST long. */
static int distance(const char *a, const char *b)
{
    int row[3][LONGEST + 1]; /* before the last, the last, this one */
    const int na = (int)strlen(a), nb = (int)strlen(b);
    for (int k = 0; k <= nb; k++)
        row[1][k] = k;
    for (int i = 1; i <= na; i++) {
        row[2][0] = i;
        for (int k = 1; k <= nb; k++) {
            row[2][k] =
                least(row[1][k] + 1, row[2][k - 1] + 1, row[1][k - 1] + !same(a[i - 1], b[k - 1]));
            if (i > 1 && k > 1 && same(a[i - 1], b[k - 2]) && same(a[i - 2], b[k - 1]) &&
                row[0][k - 2] + 1 < row[2][k])
                row[2][k] = row[0][k - 2] + 1;
        }
        memcpy(row[0], row[1], sizeof row[0]);
        memcpy(row[1], row[2], sizeof row[1]);
    }
    return row[1][nb];
}

typedef struct nearest {
    const char *name, *found;
    int least;
} nearest;

/* Of equally near names the first in the alphabet, whatever order they come in. */
static void consider(nearest *n, const char *candidate)
{
    if (strlen(candidate) > LONGEST || *candidate == '_')
        return;
    const int d = distance(n->name, candidate);
    if (d < n->least || (d == n->least && n->found != NULL && strcmp(candidate, n->found) < 0)) {
        n->least = d;
        n->found = candidate;
    }
}

const char *dc_hint_spelling(lua_State *L, int table, const char *const *more, const char *name)
{
    const int length = (int)strlen(name);
    nearest n = {.name = name, .least = length < 3 ? 1 : length < 6 ? 2 : 3};
    if (length > LONGEST)
        return NULL;
    for (; more != NULL && *more != NULL; more++)
        consider(&n, *more);
    table = lua_absindex(L, table);
    luaL_checkstack(L, 4, "names");
    const bool is_table = lua_istable(L, table); /* a metamethod called by hand may get anything */
    for (lua_pushnil(L); is_table && lua_next(L, table) != 0; lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING)
            consider(&n, lua_tostring(L, -2)); /* the table keeps it */
    if (!is_table)
        lua_pop(L, 1);
    return n.found != NULL ? lua_pushfstring(L, "is '%s' meant?", n.found) : NULL;
}
