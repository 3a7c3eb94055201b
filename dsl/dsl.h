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

/* Waits for what runs; raises what a check of data found after its call had returned. To be called at the end of a script. */
int dc_dsl_settle(lua_State *L);

/* The script has ended: notes of comparisons that nothing has read, unless it failed; none from here on. */
void dc_dsl_finish(lua_State *L, bool failed);

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
 * Memory of the device, between a host and Lua; with a record in the context's job where they fail, and raising
 * nothing. push: a tensor over memory that is the host's (dc_tensor_foreign). memory: what the tensor at idx shows,
 * computed now if it has to be, good while the value at idx is alive.
 */
dc_status dc_dsl_push_memory(lua_State *L, const dc_type *type, void *mem,
                             void (*release)(void *ctx), void *ctx);
dc_status dc_dsl_memory(lua_State *L, int idx, dc_type *type, void **mem);

/*
 * Message handler for lua_pcall: leaves error values as they are, adds a traceback to others.
 */
int dc_dsl_traceback(lua_State *L);

#endif
