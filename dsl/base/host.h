/*
 * What a host asks of Lua while deepc is open in it: entries that can be interrupted, texts of errors.
 */
#ifndef DC_DSL_BASE_HOST_H
#define DC_DSL_BASE_HOST_H

#include "core/runtime/rt.h"

#include <lua.h>

/*
 * The text of the error value at idx, as deepc.h tells of dc_error_text: never raises. Where there is not room for
 * all of it, its beginning; returns the length of all of it.
 */
size_t dc_dsl_error_copy(lua_State *L, int idx, char *out, size_t room);

/*
 * The host's entry: from dc_dsl_enter to dc_dsl_leave, Lua of L and of the coroutines that it resumes looks by
 * itself whether it is to end (dsl/base/interrupt.c); no other thread touches the state meanwhile.
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
 * stays if it is that of an interruption.
 */
int dc_dsl_ended(lua_State *L);

/* Pushes a function for lua_newthread that calls the one at idx so that what it leaves open is closed with hooks on. */
void dc_dsl_push_body(lua_State *L, int idx);

/* Raises where an interruption is wanted: for functions in C that take their time, which no hook ends. */
void dc_dsl_poll(lua_State *L);
/* Before the next piece of work: an interruption that was not delivered is dropped. */
void dc_dsl_resume(lua_State *L);

/*
 * The dims of the typed function at idx that a call would have to tell before it can be traced: how many, and their names.
 * 0 where it was traced, or where more than sizes is missing: values of static parameters, lengths of lists, "...".
 */
enum { DC_DSL_DIMS = 16 };
int dc_dsl_open_dims(lua_State *L, int idx, const char *name[DC_DSL_DIMS]);
/* Traces it for these sizes of them, as f:check does; raises what is wrong. */
void dc_dsl_trace_for(lua_State *L, int idx, const int64_t size[DC_DSL_DIMS]);

#endif
