/*
 * Lists of guards, and the values in them. A value is kept by type and bits, or by address while the table of
 * references holds it; so asking whether it is the same costs no allocation.
 */
#include "dsl/base/run.h"
#include "dsl/fn/guard_impl.h"

#include <string.h>

/* ---- values ---------------------------------------------------------------------------------- */

dc_guard_shot dc_guard_look_at(lua_State *L, int idx)
{
    dc_guard_shot s = {.type = lua_type(L, idx)};
    if (s.type == LUA_TNUMBER) {
        s.integer = lua_isinteger(L, idx);
        if (s.integer)
            s.as.i = lua_tointeger(L, idx);
        else
            s.as.n = lua_tonumber(L, idx);
    } else if (s.type == LUA_TBOOLEAN) {
        s.as.i = lua_toboolean(L, idx);
    } else if (s.type != LUA_TNIL) {
        s.as.p = lua_topointer(L, idx);
    }
    return s;
}

/* Long strings of the same text may have different addresses. */
static bool same_text(lua_State *L, int idx, const dc_guard_shot *s, int refs)
{
    if (s->type != LUA_TSTRING || lua_type(L, idx) != LUA_TSTRING)
        return false;
    idx = lua_absindex(L, idx);
    lua_rawgeti(L, refs, s->ref);
    const bool same = lua_rawequal(L, -1, idx);
    lua_pop(L, 1);
    return same;
}

bool dc_guard_same(lua_State *L, int idx, const dc_guard_shot *s, int refs)
{
    const dc_guard_shot now = dc_guard_look_at(L, idx);
    if (now.type != s->type || now.integer != s->integer)
        return false;
    if (now.type == LUA_TNUMBER && !now.integer)
        return memcmp(&now.as.n, &s->as.n, sizeof now.as.n) == 0;
    if (now.type == LUA_TNUMBER || now.type == LUA_TBOOLEAN)
        return now.as.i == s->as.i;
    return now.as.p == s->as.p || same_text(L, idx, s, refs);
}

int dc_guard_ref(lua_State *L, int refs, int idx)
{
    const int n = (int)lua_rawlen(L, refs) + 1;
    lua_pushvalue(L, idx);
    lua_rawseti(L, refs, n);
    return n;
}

dc_guard_shot dc_guard_keep(lua_State *L, int idx, int refs)
{
    dc_guard_shot s = dc_guard_look_at(L, idx);
    if (dc_guard_has_address(s.type))
        s.ref = dc_guard_ref(L, refs, idx);
    return s;
}

/* ---- lists ----------------------------------------------------------------------------------- */

bool dc_guard_foreign(const dc_guards *g)
{
    return g->foreign;
}

dc_guards *dc_guard_new(void)
{
    dc_guards *g = dc_xalloc(sizeof *g);
    g->period = DC_GUARD_OFTEN;
    return g;
}

void dc_guard_free(dc_guards *g)
{
    if (g == NULL)
        return;
    for (uint32_t i = 0; i < g->table.n; i++)
        DC_VEC_FREE(g->table.at[i].image.copy);
    DC_VEC_FREE(g->todo);
    DC_VEC_FREE(g->local);
    DC_VEC_FREE(g->field);
    DC_VEC_FREE(g->table);
    DC_VEC_FREE(g->harmless);
    dc_xfree(g);
}

bool dc_guard_take_once(lua_State *L, int refs, const char *set, int idx)
{
    lua_getfield(L, refs, set);
    lua_pushvalue(L, idx);
    const bool fresh = lua_rawget(L, -2) == LUA_TNIL;
    lua_pop(L, 1);
    if (fresh) {
        lua_pushvalue(L, idx);
        lua_pushboolean(L, 1);
        lua_rawset(L, -3);
    }
    lua_pop(L, 1);
    return fresh;
}

void dc_guard_push_local(lua_State *L, const dc_guard *g, int refs)
{
    lua_rawgeti(L, refs, g->holder);
    if (lua_getupvalue(L, -1, g->key) == NULL)
        lua_pushnil(L);
    lua_remove(L, -2);
}

static dc_status take_image_body(dc_job *j, void *arg)
{
    dc_guard_table *t = arg;
    DC_UNUSED(j);
    dc_luatable_take(&t->image, t->at);
    return DC_OK;
}

void dc_guard_take_image(lua_State *L, dc_dsl *d, dc_guard_table *t)
{
    if (d->sees_tables && !t->cut)
        dc_run(L, d, take_image_body, t);
}
