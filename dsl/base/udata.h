/*
 * Userdata of ours: a word in front that says what they are.
 *
 * No script reaches what C relies on. Metatables are in the registry under the address of the type's row, and
 * getmetatable gives scripts the name of the type instead. Whether a value is of a type is read in the value:
 * its first word is the address of the row, from when its metatable, and so its finalizer, is in place until the
 * finalizer has run. A value whose metatable is exchanged with the debug library is what it was; what the
 * debug library puts in the place of a user value, an upvalue or an entry of the registry is tested before use.
 */
#ifndef DC_DSL_BASE_UDATA_H
#define DC_DSL_BASE_UDATA_H

#include "core/base/base.h"

#include <lauxlib.h>
#include <lua.h>

typedef struct dc_utype {
    const char *name; /* "deepc.tensor" */
} dc_utype;

/* The first member of every userdata. */
typedef struct dc_uhead {
    const dc_utype *type; /* NULL: it is being made, or was finalized */
} dc_uhead;

/* The userdata at idx if it is of this type, else NULL. Pushes nothing, raises nothing. */
static inline void *dc_udata_test(lua_State *L, int idx, const dc_utype *type)
{
    if (lua_type(L, idx) != LUA_TUSERDATA || lua_rawlen(L, idx) < sizeof(dc_uhead))
        return NULL;
    dc_uhead *head = lua_touserdata(L, idx);
    return head->type == type ? head : NULL;
}

/* The same; raises where it is something else. */
void *dc_udata_check(lua_State *L, int idx, const dc_utype *type);
/* Pushes a userdata of zeros with its metatable. */
void *dc_udata_new(lua_State *L, const dc_utype *type, size_t size, int nuser);
/* Pushes user value n of the userdata at idx, a table; raises where it is none. */
void dc_udata_table(lua_State *L, int idx, int n);
/* Pushes the metatable; raises where the registry has lost it. */
void dc_udata_push_meta(lua_State *L, const dc_utype *type);
/* Has the value at idx this metatable? So has one that was finalized. */
bool dc_udata_has_meta(lua_State *L, int idx, const dc_utype *type);
/* Pushes a new metatable of this name that scripts do not see, and remembers it; it has no methods yet. */
void dc_udata_register(lua_State *L, const dc_utype *type);
/* The table on top is a metatable: getmetatable gives scripts this name in its place. */
void dc_udata_hide(lua_State *L, const char *name);

#endif
