/*
 * Whether a Lua table is still what it was, for less than a nanosecond per field: its memory is
 * compared with a copy. Equal bytes are equal content, so `same` is never wrong when it says yes; when it
 * says no, the table may only be laid out anew, and the caller compares it through Lua's API. Likewise numbers in a row
 * are read where they lie.
 *
 * The layout is that of Lua 5.4, which is no part of its API. dc_luatable_known looks at a table made
 * for this when deepc is opened; in a Lua with another layout every answer is no.
 */
#ifndef DC_DSL_BASE_LUATABLE_H
#define DC_DSL_BASE_LUATABLE_H

#include "core/base/vec.h"

#include <lua.h>

/* What a table held. What its slots refer to is kept alive by the caller. */
typedef struct dc_luatable {
    const void *metatable;
    size_t array_bytes, hash_bytes;
    DC_VEC(char) copy; /* of both parts */
    bool taken;
} dc_luatable;

bool dc_luatable_known(lua_State *L);
/* at: lua_topointer of the table. Only where the layout is known. */
void dc_luatable_take(dc_luatable *t, const void *at);
bool dc_luatable_same(const dc_luatable *t, const void *at);

/*
 * Slots of a table's array part, where its keys are 1..n and no others, and all lie there; false: it may be otherwise. They
 * are good until Lua runs again.
 */
typedef struct dc_luaslot {
    uint64_t value;
    uint8_t tag;
} dc_luaslot;

enum { DC_LUASLOT_INTEGER = 0x03, DC_LUASLOT_FLOAT = 0x13 };

bool dc_luatable_array(const void *at, int64_t n, const dc_luaslot **slots);

#endif
