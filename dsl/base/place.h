/*
 * Places in scripts: where a script called us, what its variables are called.
 */
#ifndef DC_DSL_BASE_PLACE_H
#define DC_DSL_BASE_PLACE_H

#include "dsl/base/binding.h"

/* Where a script called us: interned in the context, NULL unknown. */
typedef struct dc_place {
    const char *where; /* "train.lua:15" */
    const char *path;  /* "net.2 (nn.Linear 784 -> 10)" */
} dc_place;

dc_place dc_place_find(lua_State *L, dc_dsl *d);
/* For what an error may do without: NULL where there is no memory. */
const char *dc_place_intern(dc_dsl *d, const char *fmt, ...) DC_PRINTF(2, 3);
/* For what is compared, or shown without a look: raises then. */
const char *dc_place_name(lua_State *L, dc_dsl *d, const char *fmt, ...) DC_PRINTF(3, 4);
/* "made at train.lua:14", the origin of what an operation makes; NULL for NULL. */
const char *dc_place_made(dc_dsl *d, const char *where);
/* Where the Lua function at idx is written. */
const char *dc_place_of_function(lua_State *L, dc_dsl *d, int idx);
/* Is it a Lua function of a script, not of the library? Needs "S". */
bool dc_place_is_script(const lua_Debug *ar);
/* Is the function that runs called by a script itself, not by the library? */
bool dc_place_by_script(lua_State *L);
/* The name of the script's variable that holds the value at idx, innermost first; pushes it or nil.
 */
void dc_place_push_name(lua_State *L, int idx);
extern const dc_utype dc_layer_call_type;
extern const dc_bindings dc_layer_call_methods;
void dc_place_open(lua_State *L);
/*
 * Calls of layers that are open, in each coroutine. dc_place_open_layer replaces the text of a path on top by
 * a value to be closed; false, with more on the stack, where DC_PLACE_LAYERS are open: Lua's own limit is near
 * 200 C calls and names no line of the script.
 */
enum { DC_PLACE_LAYERS = 150 };
bool dc_place_open_layer(lua_State *L);
/* The path of the call on top, interned; NULL where it is something else. */
const char *dc_place_layer_path(lua_State *L, dc_dsl *d);

#endif
