/*
 * Is what was captured still the same? Locals are compared one by one. A table whose image is the same
 * (luatable.c) has the same fields; another one is looked at field by field, and its image is taken anew
 * where nothing counts that differs.
 *
 * A change that leads to the same graph is harmless. A field that changed so twice, and whose name no
 * function that ran says, is compared at intervals that grow, so that a counter in an object which the body
 * never reads does not trace it again at each call.
 */
#include "dsl/base/run.h"
#include "dsl/fn/guard_impl.h"

dc_guard_look dc_guard_look_of(const dc_guards *g, uint64_t calls)
{
    if (calls % g->period == 0)
        return DC_LOOK_ALL;
    return calls % DC_GUARD_OFTEN == 0 ? DC_LOOK_OFTEN : DC_LOOK_CALL;
}

/* ---- locals ---------------------------------------------------------------------------------- */

static int local_changed(lua_State *L, const dc_guards *g, int refs)
{
    if (g->local.n == 0)
        return -1;
    const int top = lua_gettop(L);
    int holder = 0, changed = -1;
    for (uint32_t i = 0; i < g->local.n && changed < 0; i++) {
        const dc_guard *l = &g->local.at[i];
        if (l->holder != holder) {
            lua_settop(L, top);
            lua_rawgeti(L, refs, holder = l->holder);
        }
        lua_getupvalue(L, -1, l->key);
        if (!dc_guard_same(L, -1, &l->was, refs))
            changed = (int)i;
        lua_pop(L, 1);
    }
    lua_settop(L, top);
    return changed;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* What a look at a table found. */
typedef struct found {
    int field;     /* the first that differs and counts, or -1 */
    bool table;    /* its metatable, or fields that were added */
    bool seldom;   /* something differs that does not count now */
    uint32_t have; /* guarded fields that are still there */
} found;

static bool other_metatable(lua_State *L, const dc_guard_table *t)
{
    const void *now = NULL;
    if (lua_getmetatable(L, -1)) {
        now = lua_topointer(L, -1);
        lua_pop(L, 1);
    }
    return now != t->metatable;
}

void dc_guard_push_field(lua_State *L, const dc_guard *g, int refs)
{
    lua_rawgeti(L, refs, g->holder);
    lua_rawgeti(L, refs, g->key);
    lua_rawget(L, -2);
    lua_remove(L, -2);
}

static bool is_field_of(lua_State *L, const dc_guards *g, const dc_guard_table *t, int refs,
                        int key)
{
    bool equal = false;
    for (uint32_t i = 0; i < t->count && !equal; i++) {
        lua_rawgeti(L, refs, g->field.at[t->first + i].key);
        equal = lua_rawequal(L, -1, key);
        lua_pop(L, 1);
    }
    return equal;
}

/* The table is on top and has more fields than it had. Does one of them count, whose name is said? */
static bool added_named(lua_State *L, const dc_guards *g, const dc_guard_table *t, int refs)
{
    const int table = lua_gettop(L);
    bool any = false;
    for (lua_pushnil(L); !any && lua_next(L, table) != 0; lua_settop(L, table + 1))
        any = dc_guard_is_named(L, refs, table + 1) && !is_field_of(L, g, t, refs, table + 1);
    lua_settop(L, table);
    return any;
}

static bool has_more(lua_State *L, uint32_t have)
{
    uint32_t n = 0;
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1))
        n++;
    return n > have;
}

/* The table is on top. */
static found look_through(lua_State *L, const dc_guards *g, const dc_guard_table *t, int refs,
                          dc_guard_look look)
{
    found f = {.field = -1};
    f.table = other_metatable(L, t);
    for (uint32_t i = 0; !f.table && i < t->count; i++) {
        const dc_guard *w = &g->field.at[t->first + i];
        lua_rawgeti(L, refs, w->key);
        f.have += lua_rawget(L, -2) != LUA_TNIL;
        const bool differs = !dc_guard_same(L, -1, &w->was, refs);
        lua_pop(L, 1);
        if (differs && w->seldom && look != DC_LOOK_ALL) {
            f.seldom = true;
        } else if (differs) {
            f.field = (int)(t->first + i);
            return f;
        }
    }
    if (f.table || t->cut || !has_more(L, f.have))
        return f;
    f.table = !t->seldom || look == DC_LOOK_ALL || (t->named && added_named(L, g, t, refs));
    f.seldom = !f.table;
    return f;
}

/* Fields that were added may be collected: no image may hold them. */
static void take_image(lua_State *L, dc_dsl *d, dc_guard_table *t, uint32_t have)
{
    if (d->sees_tables && !t->cut && !has_more(L, have))
        dc_guard_take_image(L, d, t);
}

/* Number of the guard, or -1. */
static int table_changed(lua_State *L, dc_dsl *d, dc_guards *g, uint32_t i, int refs,
                         dc_guard_look look)
{
    dc_guard_table *t = &g->table.at[i];
    if (dc_luatable_same(&t->image, t->at) && !(look == DC_LOOK_ALL && t->stirred))
        return -1;
    lua_rawgeti(L, refs, t->ref);
    const found f = look_through(L, g, t, refs, look);
    int changed = -1;
    if (f.field >= 0)
        changed = (int)g->local.n + f.field;
    else if (f.table)
        changed = (int)(g->local.n + g->field.n + i);
    t->stirred = f.seldom;
    if (changed < 0)
        take_image(L, d, t, f.have);
    lua_pop(L, 1);
    return changed;
}

int dc_guard_changed(lua_State *L, dc_dsl *d, dc_guards *g, int refs, dc_guard_look look)
{
    refs = lua_absindex(L, refs);
    int changed = local_changed(L, g, refs);
    for (uint32_t i = 0; changed < 0 && i < g->table.n; i++)
        if (g->table.at[i].each || look != DC_LOOK_CALL)
            changed = table_changed(L, d, g, i, refs, look);
    return changed;
}

int dc_guard_blame(lua_State *L, dc_dsl *d, dc_guards *g, int refs)
{
    refs = lua_absindex(L, refs);
    for (uint32_t i = 0; i < g->field.n; i++) {
        const dc_guard *w = &g->field.at[i];
        if (!w->named)
            continue;
        dc_guard_push_field(L, w, refs);
        const bool differs = !dc_guard_same(L, -1, &w->was, refs);
        lua_pop(L, 1);
        if (differs && local_changed(L, g, refs) < 0)
            return (int)(g->local.n + i);
    }
    for (int look = DC_LOOK_CALL; look <= DC_LOOK_ALL; look++) {
        const int changed = dc_guard_changed(L, d, g, refs, (dc_guard_look)look);
        if (changed >= 0)
            return changed;
    }
    return -1;
}

/* ---- harmless changes ------------------------------------------------------------------------ */

static dc_guard_harmless *find_harmless(dc_guards *g, const char *name, bool added)
{
    for (uint32_t i = 0; i < g->harmless.n; i++)
        if (g->harmless.at[i].name == name && g->harmless.at[i].added == added)
            return &g->harmless.at[i];
    return NULL;
}

static void count(lua_State *L, dc_dsl *d, dc_guards *g, const char *name, bool added)
{
    const dc_guard_harmless one = {.name = name, .added = added, .times = 1};
    dc_guard_harmless *h = find_harmless(g, name, added);
    if (h != NULL)
        h->times++;
    else if (g->harmless.n < 64)
        DC_PUSH_OR_RAISE(L, d, g->harmless, one);
}

void dc_guard_count(lua_State *L, dc_dsl *d, dc_guards *g, int refs, dc_guard_look look)
{
    bool grow = look == DC_LOOK_ALL;
    refs = lua_absindex(L, refs);
    grow =
        grow && dc_guard_changed(L, d, g, refs, DC_LOOK_OFTEN) < 0; /* only what is seldom asked */
    for (uint32_t i = 0; i < g->table.n; i++) {
        const dc_guard_table *t = &g->table.at[i];
        uint32_t have = 0;
        if (dc_luatable_same(&t->image, t->at))
            continue;
        lua_rawgeti(L, refs, t->ref);
        for (uint32_t k = 0; k < t->count; k++) {
            const dc_guard *w = &g->field.at[t->first + k];
            lua_rawgeti(L, refs, w->key);
            have += lua_rawget(L, -2) != LUA_TNIL;
            if (!w->named && !w->seldom && !dc_guard_same(L, -1, &w->was, refs))
                count(L, d, g, w->name, false);
            lua_pop(L, 1);
        }
        if (!t->cut && !t->seldom && has_more(L, have) && !(t->named && added_named(L, g, t, refs)))
            count(L, d, g, t->name, true);
        lua_pop(L, 1);
    }
    if (grow && g->period < DC_GUARD_MOST)
        g->period *= 2;
}

void dc_guard_forget(dc_guards *g)
{
    g->harmless.n = 0;
    g->period = DC_GUARD_OFTEN;
}

/* Where keys are gone over, any of them may be read. */
static bool is_quiet(dc_guards *g, const char *name, bool added)
{
    const dc_guard_harmless *h = g->iterated ? NULL : find_harmless(g, name, added);
    return h != NULL && h->times >= DC_GUARD_HARMLESS;
}

void dc_guard_inherit(dc_guards *g, dc_guards *old)
{
    g->harmless.at = old->harmless.at;
    g->harmless.n = old->harmless.n;
    g->harmless.cap = old->harmless.cap;
    old->harmless.at = NULL;
    old->harmless.n = old->harmless.cap = 0;
    g->period = old->period;
    for (uint32_t i = 0; g->harmless.n > 0 && i < g->field.n; i++)
        if (!g->field.at[i].named && is_quiet(g, g->field.at[i].name, false))
            g->field.at[i].seldom = true;
    for (uint32_t i = 0; g->harmless.n > 0 && i < g->table.n; i++)
        if (is_quiet(g, g->table.at[i].name, true))
            g->table.at[i].seldom = true;
}
