/*
 * Errors that are not deepc's own, as the program and the prompt show them.
 */
#ifndef DC_VM_PROGRAM_LUAERROR_H
#define DC_VM_PROGRAM_LUAERROR_H

#include <lua.h>

#include <stddef.h>

/*
 * A message handler for lua_pcall. An error of deepc stays as it is. Any other becomes text with a traceback: a
 * table without __tostring with its fields, a message of Lua that tensors cause with a hint.
 */
int dc_luaerror_handler(lua_State *L);
/* What is meant by what Lua could not read, or do; NULL: unknown. */
const char *dc_luaerror_hint(const char *text);

/* The text of an error value: that of a string, which is good as long as the value is on the stack; or `room`. */
typedef struct dc_luaerror {
    const char *text;
    size_t n;
    char room[16000];
} dc_luaerror;

/* Never raises. A text that is longer than `room` is cut off there, a string's is not. */
void dc_luaerror_read(lua_State *L, int idx, dc_luaerror *e);

#endif
