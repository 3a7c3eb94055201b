/*
 * The language: what vm/ puts into a lua_State. One context serves one state; everything made
 * through it dies with that state.
 */
#ifndef DC_DSL_DSL_H
#define DC_DSL_DSL_H

#include "core/runtime/rt.h"

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
/*
 * The text of the error value at idx, as deepc.h tells of dc_error_text: never raises. Where there is not room for
 * all of it, its beginning; returns the length of all of it.
 */
size_t dc_dsl_error_copy(lua_State *L, int idx, char *out, size_t room);

/*
 * The host's entry: from dc_dsl_enter to dc_dsl_leave, Lua of L and of the coroutines that it resumes looks by
 * itself whether it is to end (dsl/interrupt.c); no other thread touches the state meanwhile.
 */
typedef struct dc_dsl_watch {
    lua_State *running;
    lua_Hook hook;
    int mask, count;
} dc_dsl_watch;

void dc_dsl_enter(lua_State *L, dc_dsl_watch *w);
void dc_dsl_leave(lua_State *L, const dc_dsl_watch *w);
/*
 * A function for lua_pcall: the error value of an entry that was ended. Argument: the one that there is, which
 * stays if it is that of somebody who wanted an end.
 */
int dc_dsl_ended(lua_State *L);

/* Pushes a function for lua_newthread that calls the one at idx so that what it leaves open is closed with hooks on. */
void dc_dsl_push_body(lua_State *L, int idx);

/* Raises where an interruption is wanted: for functions in C that take their time, which no hook ends. */
void dc_dsl_poll(lua_State *L);
/* Before the next piece of work: an interruption that nobody received is forgotten. */
void dc_dsl_resume(lua_State *L);

#endif
