/*
 * What the values of a script are, as a check sees them: for each name on a line (`x`, `self.first.weight`) what it was
 * before the line ran and after it, and what each operation on a line gave. An editor shows it.
 *
 * Names are found in the text beforehand; when a line begins, a hook looks at the variables of these names, of this line
 * and of the one that the function has just left. Nothing of the script is called for it. A line is looked at a few times
 * in each trace and outside of all, so that loops cost little; in a long loop of known lines the hook is off until
 * something is called from another one.
 */
#ifndef DC_VM_PROGRAM_CHECK_TYPES_H
#define DC_VM_PROGRAM_CHECK_TYPES_H

#include "core/base/vec.h"
#include "dsl/base/handle.h"

#include <lua.h>

typedef struct dc_check_types dc_check_types;

/* text stays the caller's. */
dc_check_types *dc_check_types_new(dc_rt *rt, const char *text, size_t n);
void dc_check_types_free(dc_check_types *t);

/* The script's main function is on top: the hook looks at functions of the same source. May raise. */
void dc_check_types_begin(lua_State *L, dc_check_types *t);

enum { DC_CHECK_TYPES_EVENTS = LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE };
void dc_check_types_hook(lua_State *L, lua_Debug *ar, dc_check_types *t);

/* An operation at this place ("train.lua:12") gave h. */
void dc_check_types_made(dc_check_types *t, const dc_handle *h, const char *op, const char *where);

/*
 * "values": [{"kind": "tensor", "text": "f32[64, 128]"}, ...], "seen": [[line, name, 0 before or 1 after, value], ...],
 * "made": [[line, operation, value], ...]: values are numbered from 1. file: the script's name. Tables are described
 * now, which may call their __tostring; may raise.
 */
void dc_check_types_print(lua_State *L, dc_check_types *t, const char *file, dc_text *out);

#endif
