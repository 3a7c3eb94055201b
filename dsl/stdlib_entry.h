/*
 * How scripts enter what stdlib/ has written in Lua.
 */
#ifndef DC_DSL_STDLIB_ENTRY_H
#define DC_DSL_STDLIB_ENTRY_H

#include "dsl/base/state.h"

/* The __call of layers; second upvalue: a function from the layer to the text of its path. */
int dc_stdlib_call_layer(lua_State *L);
/*
 * Puts C functions, which count arguments, before the Lua functions of a module, of its classes and their
 * bases. prefix: the module as scripts call it, "nn".
 */
void dc_stdlib_enter(lua_State *L, dc_dsl *d, int table, const char *prefix);

#endif
