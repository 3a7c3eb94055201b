/*
 * Interruptions: Lua code that ends where the host or Ctrl-C asks for it.
 */
#ifndef DC_DSL_INTERRUPT_H
#define DC_DSL_INTERRUPT_H

#include "dsl/state.h"

void dc_interrupt_register(lua_State *L, dc_dsl *d);
void dc_interrupt_arm(void *d); /* in a signal handler too: dc_rt.stop_lua */
/* For whoever has put another hook in place of ours: puts the one that will raise back. */
void dc_interrupt_rearm(lua_State *L, dc_dsl *d);

/* The hook of L; where an interruption has put its own there, the one that it put away. */
lua_Hook dc_interrupt_below(lua_State *L, dc_dsl *d, int *mask, int *count);

#endif
