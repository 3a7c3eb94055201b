/*
 * Interruptions: Lua code that ends where the host or Ctrl-C asks for it.
 */
#ifndef DC_DSL_INTERRUPT_H
#define DC_DSL_INTERRUPT_H

#include "dsl/state.h"

void dc_interrupt_register(lua_State *L, dc_dsl *d);
/*
 * For hooks of ours, and whoever has put another hook in place of the one that stood there: raises
 * if the context is interrupted; puts the hook that will raise into place again.
 */
void dc_interrupt_arm(void *d); /* in a signal handler too: dc_rt.stop_lua */
void dc_interrupt_poll(lua_State *L, dc_dsl *d);
void dc_interrupt_rearm(lua_State *L, dc_dsl *d);

#endif
