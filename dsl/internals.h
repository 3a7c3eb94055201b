/*
 * What stdlib/ needs and scripts do not see: each adds its functions to the table on top.
 */
#ifndef DC_DSL_INTERNALS_H
#define DC_DSL_INTERNALS_H

#include "dsl/base/state.h"

void dc_data_register(lua_State *L, dc_dsl *d);
void dc_files_register(lua_State *L, dc_dsl *d);
void dc_terminal_register(lua_State *L, dc_dsl *d);
void dc_batches_register(lua_State *L, dc_dsl *d);
void dc_batches_close_all(dc_dsl *d);

#endif
