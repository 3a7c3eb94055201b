/*
 * What was meant by a name or an argument that does not exist.
 */
#ifndef DC_DSL_BASE_HINTS_H
#define DC_DSL_BASE_HINTS_H

#include "core/base/base.h"

#include <lauxlib.h>
#include <lua.h>

const char *dc_hint_field(const char *name);    /* of a tensor; or NULL */
const char *dc_hint_function(const char *name); /* of the module; or NULL */
const char *dc_hint_library(const char *name);  /* of nn, optim, data ...; or NULL */
/* What was meant by argument `at`, one more than op takes, and those behind it; pushes it, or NULL. */
/* What is given in the place of a type, at idx: numbers, a list of sizes; pushes it. NULL: something else. */
const char *dc_hint_type(lua_State *L, const char *op, int idx);
/* A number in the place of options, at idx: the option that it stands for elsewhere; pushes it. */
const char *dc_hint_options(lua_State *L, const char *op, int idx);
/* An option that is unknown: what other libraries call so, or the nearest of those known (ends with NULL). Pushes it, or NULL. */
const char *dc_hint_option(lua_State *L, const char *const *known, const char *key);
const char *dc_hint_surplus(lua_State *L, const char *op, int at);
/*
 * For a name that does not exist: the nearest of the table's keys and of `more` (ends with NULL; may be NULL).
 * Pushes it, or returns NULL.
 */
const char *dc_hint_spelling(lua_State *L, int table, const char *const *more, const char *name);

#endif
