/* The table library of scripts of others (vm/sandbox_base.c puts it in). */
#ifndef DC_VM_SANDBOX_TABLE_H
#define DC_VM_SANDBOX_TABLE_H

#include <lua.h>

/* Replaces functions of the table library at the absolute index, which they call. Raises (memory). */
void dc_sandbox_table(lua_State *L, int table);

#endif
