/*
 * Loops of a script that is checked: a numeric loop that calls typed functions ends after some rounds, since a call computes
 * nothing and a further round finds no more than the ones before.
 *
 * The rest of the rounds is a number that the loop keeps among the local variables of its function, as every Lua 5.4 does:
 * three variables "(for state)" with the index, the rounds that are left, and the step. It becomes 0; so the round that is under
 * way ends as it would, and the script goes on behind the loop.
 */
#include "vm/check.h"

#include <lauxlib.h>

#include <string.h>

enum {
    ROUNDS = 10, /* of a loop */
    LOOPS = 64   /* that are known at once */
};

static bool is_state(const char *name)
{
    return name != NULL && strcmp(name, "(for state)") == 0;
}

/* The value of local n, if it is an integer. */
static bool read_integer(lua_State *L, const lua_Debug *ar, int n, lua_Integer *out)
{
    const bool is = is_state(lua_getlocal(L, ar, n)) && lua_isinteger(L, -1);
    *out = is ? lua_tointeger(L, -1) : 0;
    lua_pop(L, 1);
    return is;
}

static dc_check_loop *loop_of(dc_check *c, const void *function, int local)
{
    for (uint32_t i = 0; i < c->loops.n; i++)
        if (c->loops.at[i].function == function && c->loops.at[i].local == local)
            return &c->loops.at[i];
    if (c->loops.n == LOOPS)
        c->loops.n = 0;
    DC_PUSH(c->loops, ((dc_check_loop){.function = function, .local = local}));
    return &c->loops.at[c->loops.n - 1];
}

/* The loop whose state begins with local n has come to another round, or to a call more in the one that it was in. */
static void look_at_loop(lua_State *L, dc_check *c, const lua_Debug *ar, const void *function,
                         int n, lua_Integer left)
{
    dc_check_loop *l = loop_of(c, function, n);
    if (l->rounds == 0 || (lua_Unsigned)left > (lua_Unsigned)l->left)
        l->rounds = 1;
    else
        l->rounds += left != l->left;
    l->left = left;
    if (l->rounds < ROUNDS || left == 0)
        return;
    lua_pushinteger(L, 0);
    lua_setlocal(L, ar, n + 1);
    l->rounds = 0;
    c->cut = true;
}

/* Numeric loops have three variables of state, others four, of which the first is what is called. */
static void look_at_function(lua_State *L, dc_check *c, const lua_Debug *ar, const void *function)
{
    const char *name;
    for (int n = 1; (name = lua_getlocal(L, ar, n)) != NULL; n++) {
        const bool numeric = is_state(name) && lua_isnumber(L, -1);
        lua_Integer index, left, step;
        lua_pop(L, 1);
        if (numeric && read_integer(L, ar, n, &index) && read_integer(L, ar, n + 1, &left) &&
            read_integer(L, ar, n + 2, &step))
            look_at_loop(L, c, ar, function, n, left);
        if (is_state(name))
            n += numeric ? 2 : 3;
    }
}

void dc_check_rounds(lua_State *L, dc_check *c)
{
    lua_Debug ar;
    luaL_checkstack(L, 4, "loops");
    for (int level = 0; lua_getstack(L, level, &ar) != 0; level++) {
        lua_getinfo(L, "f", &ar);
        const void *function = lua_topointer(L, -1);
        const bool ours = lua_iscfunction(L, -1);
        lua_pop(L, 1);
        if (!ours)
            look_at_function(L, c, &ar, function);
    }
}
