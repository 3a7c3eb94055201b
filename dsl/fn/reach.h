/* What can be reached from a Lua value. */
#ifndef DC_DSL_FN_REACH_H
#define DC_DSL_FN_REACH_H

#include <lua.h>

/*
 * Replaces the value on top by a table that has every function, table and full userdata which can
 * be reached from it as a key: through captured locals, fields, metatables, user values. Globals and
 * deepc's own modules are not entered twice. Very large worlds are cut off.
 */
void dc_reach_push(lua_State *L);

#endif
