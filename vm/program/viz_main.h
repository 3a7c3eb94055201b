/*
 * `deepc --viz PAGE`: the script runs with kernels timed, and a page about what it computed is written at its end, also where an
 * error or os.exit has ended it. Of several ranks the first one writes. The page is stdlib/viz.lua's.
 */
#ifndef DC_VM_PROGRAM_VIZ_MAIN_H
#define DC_VM_PROGRAM_VIZ_MAIN_H

#include <lua.h>

#include <stdbool.h>
#include <stddef.h>

/* Pushes a function that begins, of the path, the script or nil and the table arg. It raises where no page could be written. */
void dc_viz_push_begin(lua_State *L);
/* The script has failed: the page says so. Nothing where no page is asked for. */
void dc_viz_failed(lua_State *L, const char *text, size_t n);
/* Pushes the function that writes the page; false, and nothing, where none is asked for or it has been written. */
bool dc_viz_push_end(lua_State *L);

#endif
