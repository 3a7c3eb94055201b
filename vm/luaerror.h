/*
 * Errors that are not deepc's own, as the program and the prompt show them.
 */
#ifndef DC_VM_LUAERROR_H
#define DC_VM_LUAERROR_H

#include <lua.h>

/*
 * A message handler for lua_pcall. An error of deepc stays as it is. Any other becomes text with a traceback: a
 * table without __tostring with its fields, a message of Lua that tensors cause with a hint.
 */
int dc_luaerror_handler(lua_State *L);

#endif
