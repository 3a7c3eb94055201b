/*
 * An option of extras/ (vm/program/extras.h): the module's function _program is called with the option's argument before
 * the script, and gives a function that is called once at the script's end, also where an error or os.exit has ended it,
 * with { script, command, error }. Of several ranks the first one does it.
 */
#ifndef DC_VM_PROGRAM_MODULE_OPTION_H
#define DC_VM_PROGRAM_MODULE_OPTION_H

#include <lua.h>

#include <stdbool.h>
#include <stddef.h>

/* Pushes a function that begins, of the argument, the script or nil, the table arg and the module's name. What _program
 * raises it raises: nothing runs then. */
void dc_module_option_push_begin(lua_State *L);
/* The script has failed, with that text. Nothing where there is no such option. */
void dc_module_option_failed(lua_State *L, const char *text, size_t n);
/* Pushes the function that ends; false, and nothing, where there is none or it has been called. */
bool dc_module_option_push_end(lua_State *L);

#endif
