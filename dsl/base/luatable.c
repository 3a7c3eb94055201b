#include "dsl/base/luatable.h"

#include <string.h>

/* ---- as lobject.h of Lua 5.4 has it ---------------------------------------------------------- */

typedef struct lua_node {
    uint64_t value;
    uint8_t tag, key_tag;
    int next;
    uint64_t key;
} lua_node;

typedef struct lua_table {
    void *next;
    uint8_t type, marked, flags, lsizenode;
    unsigned int alimit;
    const dc_luaslot *array;
    const lua_node *node, *lastfree;
    const void *metatable;
    void *gclist;
} lua_table;

enum { NOT_REAL_SIZE = 0x80, FLOAT = 0x13, SHORT_STRING = 0x44 };

/* The array may be longer than alimit, which the length operator moves: then by a power of two. */
static uint32_t array_size(const lua_table *t)
{
    const uint32_t n = t->alimit;
    uint32_t size = 1;
    if ((t->flags & NOT_REAL_SIZE) == 0 || (n & (n - 1)) == 0)
        return n;
    while (size < n)
        size *= 2;
    return size;
}

/* ---- images ---------------------------------------------------------------------------------- */

static size_t array_bytes(const lua_table *t)
{
    return array_size(t) * sizeof *t->array;
}

static size_t hash_bytes(const lua_table *t)
{
    return ((size_t)1 << t->lsizenode) * sizeof *t->node;
}

void dc_luatable_take(dc_luatable *image, const void *at)
{
    const lua_table *t = at;
    image->taken = false;
    image->metatable = t->metatable;
    image->array_bytes = array_bytes(t);
    image->hash_bytes = hash_bytes(t);
    const size_t bytes = image->array_bytes + image->hash_bytes;
    if (bytes > UINT32_MAX)
        return;
    while (image->copy.cap < bytes) {
        image->copy.n = image->copy.cap;
        DC_ROOM(image->copy);
    }
    if (image->array_bytes > 0)
        memcpy(image->copy.at, t->array, image->array_bytes);
    memcpy(image->copy.at + image->array_bytes, t->node, image->hash_bytes);
    image->copy.n = (uint32_t)bytes;
    image->taken = true;
}

bool dc_luatable_same(const dc_luatable *image, const void *at)
{
    const lua_table *t = at;
    if (!image->taken || t->metatable != image->metatable || array_bytes(t) != image->array_bytes ||
        hash_bytes(t) != image->hash_bytes)
        return false;
    return (image->array_bytes == 0 || memcmp(image->copy.at, t->array, image->array_bytes) == 0) &&
           memcmp(image->copy.at + image->array_bytes, t->node, image->hash_bytes) == 0;
}

/* ---- rows of numbers --------------------------------------------------------------------------- */

static bool is_nil(uint8_t tag)
{
    return (tag & 0x0f) == 0;
}

bool dc_luatable_array(const void *at, int64_t n, const dc_luaslot **slots)
{
    const lua_table *t = at;
    const uint32_t size = array_size(t);
    if ((int64_t)size < n || t->metatable != NULL)
        return false;
    for (uint32_t i = (uint32_t)n; i < size; i++)
        if (!is_nil(t->array[i].tag))
            return false;
    for (size_t i = 0; i < (size_t)1 << t->lsizenode; i++)
        if (!is_nil(t->node[i].tag))
            return false;
    *slots = t->array;
    return true;
}

/* ---- is the layout this one? ----------------------------------------------------------------- */

static bool is_address(const void *p)
{
    return p != NULL && (uintptr_t)p % sizeof(void *) == 0;
}

/* The table at idx is { 1.5, [text on top] = the same text } with itself as its metatable. */
static bool looks_right(lua_State *L, int idx)
{
    const double element = 1.5;
    const uint64_t text = (uint64_t)(uintptr_t)lua_topointer(L, -1);
    const lua_table *t = lua_topointer(L, idx);
    if (t->type != LUA_TTABLE || t->alimit != 1 || t->lsizenode != 0 || t->metatable != t ||
        !is_address(t->array) || !is_address(t->node))
        return false;
    return t->array->tag == FLOAT && memcmp(&t->array->value, &element, sizeof element) == 0 &&
           t->node->tag == SHORT_STRING && t->node->key_tag == SHORT_STRING &&
           t->node->value == text && t->node->key == text;
}

bool dc_luatable_known(lua_State *L)
{
    const int top = lua_gettop(L);
    if (sizeof(void *) != 8 || sizeof(lua_Number) != 8 || sizeof(lua_Integer) != 8 ||
        lua_version(L) != 504)
        return false;
    lua_createtable(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_setmetatable(L, -2);
    lua_pushnumber(L, 1.5);
    lua_rawseti(L, top + 1, 1);
    lua_pushliteral(L, "deepc");
    lua_pushvalue(L, -1);
    lua_pushvalue(L, -1);
    lua_rawset(L, top + 1);
    const bool known = looks_right(L, top + 1);
    lua_settop(L, top);
    return known;
}
