/*
 * The language: what vm/ puts into a lua_State. One context serves one state; everything made
 * through it dies with that state.
 */
#ifndef DC_DSL_DSL_H
#define DC_DSL_DSL_H

#include "dsl/base/host.h"

#include <lua.h>

/*
 * Pushes the module table, makes the modules of stdlib/ known to `require`. A second call in the same state
 * pushes the same table. May raise (memory). Nothing works before a context is there:
 */
void dc_dsl_open(lua_State *L);
/*
 * Gives the state, whose module is open, its context. `closed(arg)` is called when the state closes and nothing of
 * the context is left in it. Does not raise.
 */
void dc_dsl_own(lua_State *L, dc_rt *rt, void (*closed)(void *), void *arg);

/* Is the value at idx a typed function? */
bool dc_dsl_is_function(lua_State *L, int idx);

/*
 * The globals of now become those of the library's own modules, for good: what scripts change in theirs later, also
 * in the tables of Lua's libraries, is theirs alone. Otherwise this happens when the first module is loaded. release:
 * forgets them, where the state is not attached. May raise (memory).
 */
void dc_dsl_capture(lua_State *L);
void dc_dsl_release(lua_State *L);

/* The context of a state, or NULL. */
dc_rt *dc_dsl_rt(lua_State *L);

/*
 * Message handler for lua_pcall: leaves error values as they are, adds a traceback to others.
 */
int dc_dsl_traceback(lua_State *L);

#endif
