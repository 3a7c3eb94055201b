/*
 * Userdata of ours: making them, their nodes, and their metatables.
 *
 * Nodes that own something are numbered by slots. A weak table has the userdata of each slot: Lua empties the entry
 * when the userdata is found unreachable, then calls the finalizer, which empties the slot. So right after a whole
 * collection, which calls all finalizers, a slot without an entry is one whose finalizer was lost.
 *
 * Memory of slots and nodes is userdata without finalizers, which the context holds: a node is there until Lua frees
 * all that could refer to it. Nodes of pools lie in chunks, which are dropped when none of their nodes is used.
 */
#include "dsl/base/state.h"

#include <string.h>

/* User values of the context: the memory of slots; a set of the memory of nodes. In the registry the debug library could exchange them. */
enum { SLOTS = 1, KEPT };
_Static_assert((int)KEPT == (int)DC_UDATA_USER, "state.c makes the context with room for these");

enum { FIRST_SLOTS = 64, CHUNK_NODES = 64, KEPT_NODES = 512, PACE = 3 };

/* Nodes of one size in one block of memory. */
typedef struct dc_uchunk {
    struct dc_upool *pool;
    struct dc_uchunk *next, *prev; /* of those with free nodes */
    dc_uhead *free;                /* linked by the word behind the head */
    uint32_t nfree;
    bool pinned; /* a userdata that was lost may still refer to a node of it */
} dc_uchunk;

void *dc_udata_check(lua_State *L, int idx, const dc_utype *type)
{
    void *at = dc_udata_test(L, idx, type);
    if (at == NULL)
        luaL_typeerror(L, idx, type->name);
    return at;
}

void dc_udata_push_meta(lua_State *L, const dc_utype *type)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, type) != LUA_TTABLE)
        luaL_error(L, "the registry has lost the metatable of %s", type->name);
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Pushes the userdata of the context; false, and pushes nothing, where the registry has lost it. */
static bool push_context(lua_State *L, const dc_dsl *d)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, d);
    if (dc_udata_test(L, -1, &dc_dsl_type) == d)
        return true;
    lua_pop(L, 1);
    return false;
}

/*
 * Pushes the table of the userdata of each slot, weakly, or whatever the debug library has put in its place: false. A number
 * is the key of the registry that is found fastest. Where the debug library exchanges the table, values may be taken for
 * lost, and are closed then.
 */
static bool push_weak(lua_State *L, const dc_unodes *n)
{
    return lua_rawgeti(L, LUA_REGISTRYINDEX, n->weak) == LUA_TTABLE;
}

/* Of the value on top. */
static void set_weak(lua_State *L, const dc_unodes *n, uint32_t slot)
{
    if (push_weak(L, n)) {
        lua_pushvalue(L, -2);
        lua_rawseti(L, -2, slot);
    }
    lua_pop(L, 1);
}

/* Pushes a user value of the context; raises where the registry has lost that. */
static void push_own(lua_State *L, const dc_dsl *d, int which)
{
    if (!push_context(L, d))
        luaL_error(L, "the registry has lost the context");
    lua_getiuservalue(L, -1, which);
    lua_remove(L, -2);
}

/* Twice as many: all that may fail comes first. Entries of the weak table stay in its array, where setting one needs no memory. */
static void grow_slots(lua_State *L, dc_dsl *d)
{
    dc_unodes *n = &d->nodes;
    const uint32_t room = n->room == 0 ? FIRST_SLOTS : n->room * 2;
    luaL_checkstack(L, 8, "userdata");
    struct dc_uslot *at = lua_newuserdatauv(L, ((size_t)room + 1) * sizeof *at, 0);
    const int memory = lua_gettop(L);
    lua_createtable(L, (int)room, 0);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    if (n->room >= room) { /* by a finalizer */
        lua_settop(L, memory - 1);
        return;
    }
    for (uint32_t i = 1; i <= n->room && push_weak(L, n); i++, lua_settop(L, memory + 1)) {
        lua_rawgeti(L, memory + 2, i); /* the collector rests meanwhile */
        lua_rawseti(L, memory + 1, i);
    }
    lua_settop(L, memory + 1);
    memset(at, 0, ((size_t)room + 1) * sizeof *at);
    if (n->room > 0)
        memcpy(at, n->at, ((size_t)n->room + 1) * sizeof *at);
    if (!push_context(L, d))
        luaL_error(L, "the registry has lost the context");
    lua_pushvalue(L, memory);
    lua_setiuservalue(L, -2, SLOTS);
    lua_pushvalue(L, memory + 1);
    lua_rawseti(L, LUA_REGISTRYINDEX, n->weak);
    for (uint32_t i = room; i > n->room; i--) {
        at[i].next = n->free;
        n->free = i;
    }
    n->at = at;
    n->room = room;
    lua_settop(L, memory - 1);
}

static void free_slot(dc_unodes *n, uint32_t slot)
{
    n->at[slot] = (struct dc_uslot){.next = n->free};
    n->free = slot;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static void link_chunk(dc_uchunk *c)
{
    c->prev = NULL;
    c->next = c->pool->first;
    if (c->next != NULL)
        c->next->prev = c;
    c->pool->first = c;
}

static void unlink_chunk(dc_uchunk *c)
{
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        c->pool->first = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
}

static dc_uhead **free_link(dc_uhead *node)
{
    return (dc_uhead **)(void *)(node + 1);
}

static struct dc_upool *pool_of(dc_unodes *n, size_t size)
{
    struct dc_upool *p = n->pool;
    while (p->size != size && p->size != 0)
        p++;
    DC_ASSERT(p < n->pool + DC_COUNTOF(n->pool), "nodes of more than two sizes share chunks");
    p->size = size;
    return p;
}

static void add_chunk(lua_State *L, dc_dsl *d, struct dc_upool *p)
{
    luaL_checkstack(L, 4, "userdata");
    push_own(L, d, KEPT);
    dc_uchunk *c = lua_newuserdatauv(L, sizeof *c + CHUNK_NODES * p->size, 0);
    *c = (dc_uchunk){.pool = p, .nfree = CHUNK_NODES};
    for (int i = CHUNK_NODES - 1; i >= 0; i--) {
        dc_uhead *node = (dc_uhead *)(void *)((char *)(c + 1) + (size_t)i * p->size);
        *node = (dc_uhead){.chunk = c};
        *free_link(node) = c->free;
        c->free = node;
    }
    lua_rawsetp(L, -2, c);
    lua_pop(L, 1);
    link_chunk(c);
    p->room += CHUNK_NODES;
}

static dc_uhead *take_pooled(struct dc_upool *p)
{
    dc_uchunk *c = p->first;
    dc_uhead *node = c->free;
    c->free = *free_link(node);
    p->used++;
    if (--c->nfree == 0)
        unlink_chunk(c);
    return node;
}

/* What is at this address is not needed any more; false where that cannot be said. */
static bool forget_memory(lua_State *L, const dc_dsl *d, const void *at)
{
    if (!push_context(L, d))
        return false;
    lua_getiuservalue(L, -1, KEPT);
    lua_pushnil(L);
    lua_rawsetp(L, -2, at);
    lua_pop(L, 2);
    return true;
}

/* A chunk that no node is used of goes, where most of what there is has been free: a collection frees many at once, and as many are made before the next. */
static void give_pooled(lua_State *L, const dc_dsl *d, dc_uhead *node)
{
    dc_uchunk *c = node->chunk;
    struct dc_upool *p = c->pool;
    *free_link(node) = c->free;
    c->free = node;
    p->used--;
    if (c->nfree++ == 0)
        link_chunk(c);
    if (c->nfree < CHUNK_NODES || c->pinned || p->room <= KEPT_NODES || p->used > p->room / 4)
        return;
    if (!forget_memory(L, d, c))
        return;
    unlink_chunk(c);
    p->room -= CHUNK_NODES;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static dc_uref *new_reference(lua_State *L, const dc_utype *type, size_t behind, int nuser)
{
    dc_uref *r = lua_newuserdatauv(L, sizeof *r + behind, nuser);
    *r = (dc_uref){.type = NULL};
    dc_udata_push_meta(L, type);
    lua_setmetatable(L, -2);
    return r;
}

/* The node gets a slot and its reference, which is on top; nothing of this needs memory. */
static void *enter(lua_State *L, dc_unodes *n, const dc_utype *type, dc_uref *r, dc_uhead *node)
{
    const uint32_t slot = n->free;
    n->free = n->at[slot].next;
    n->at[slot].node = node;
    node->slot = slot;
    node->serial = ++n->serial;
    node->type = type;
    set_weak(L, n, slot);
    *r = (dc_uref){type, node, node->serial};
    return node;
}

/*
 * The userdata is as large as PACE nodes. The collector comes when what was made since the last time is a share of all
 * memory; chunks and slots are in all, but are used again and never made, so the more handles have waited for it the longer
 * the next ones wait. With small userdata, what waits for it would fill the caches.
 */
void *dc_udata_new_pooled(lua_State *L, dc_dsl *d, const dc_utype *type, size_t size)
{
    dc_unodes *n = &d->nodes;
    struct dc_upool *p = pool_of(n, size);
    dc_uref *r = new_reference(L, type, PACE * size, 0);
    while (n->free == 0 || p->first == NULL) { /* finalizers may run where there is room made */
        if (n->free == 0)
            grow_slots(L, d);
        if (p->first == NULL)
            add_chunk(L, d, p);
    }
    dc_uhead *node = take_pooled(p);
    dc_uchunk *c = node->chunk;
    memset(node, 0, size);
    node->chunk = c;
    return enter(L, n, type, r, node);
}

static void *new_alone(lua_State *L, dc_dsl *d, const dc_utype *type, size_t size, int nuser)
{
    dc_unodes *n = &d->nodes;
    dc_uref *r = new_reference(L, type, 0, nuser);
    luaL_checkstack(L, 4, "userdata");
    dc_uhead *node = lua_newuserdatauv(L, size, 0);
    memset(node, 0, size);
    while (n->free == 0)
        grow_slots(L, d);
    push_own(L, d, KEPT);
    lua_insert(L, -2);
    lua_rawsetp(L, -2, node);
    lua_pop(L, 1);
    return enter(L, n, type, r, node);
}

static dc_dsl *context_in(lua_State *L)
{
    dc_dsl *d = dc_dsl_in(L);
    if (d == NULL)
        luaL_error(L, "the registry has lost the context");
    return d;
}

/* The word in front is written last: without its finalizer a value is of no type. */
void *dc_udata_new(lua_State *L, const dc_utype *type, size_t size, int nuser)
{
    if (type->drop != NULL)
        return new_alone(L, context_in(L), type, size, nuser);
    dc_uref *r = new_reference(L, type, size, nuser);
    memset(r + 1, 0, size);
    r->node = (dc_uhead *)(void *)(r + 1);
    r->node->type = r->type = type;
    return r->node;
}

void dc_udata_hold(void *node)
{
    ((dc_uhead *)node)->holds++;
}

void dc_udata_release(void *node)
{
    ((dc_uhead *)node)->holds--;
}

/* ---- the end of nodes ------------------------------------------------------------------------- */

static void drop(dc_uhead *node)
{
    const dc_utype *type = node->type;
    if (type == NULL)
        return;
    type->drop(node);
    node->type = NULL;
}

/* Nothing refers to the node any more. */
static void free_node(lua_State *L, dc_dsl *d, dc_uhead *node)
{
    free_slot(&d->nodes, node->slot);
    node->serial = 0;
    if (node->chunk != NULL)
        give_pooled(L, d, node);
    else
        forget_memory(L, d, node);
}

#ifdef DC_LOSE_FINALIZERS
/* A build for tests: one of so many finalizers is lost, as Lua loses those that it cannot call. */
static bool is_lost(dc_dsl *d)
{
    static const uint64_t a = 6364136223846793005u, c = 1442695040888963407u;
    d->losing = (d->losing ^ d->seed << 20) * a + c;
    return (d->losing >> 33) % DC_LOSE_FINALIZERS == 0;
}
#else
static bool is_lost(dc_dsl *d)
{
    DC_UNUSED(d);
    return false;
}
#endif

/* The userdata at 1 has another finalizer, and its entry in the weak table, which Lua has emptied. */
static void order_again(lua_State *L, const dc_dsl *d, dc_uhead *node)
{
    node->dying = true;
    if (lua_getmetatable(L, 1))
        lua_setmetatable(L, 1);
    lua_settop(L, 1);
    set_weak(L, &d->nodes, node->slot);
}

/*
 * Upvalues: the context, which outlives all nodes; the type. Finalizers of scripts may have brought the value back, and
 * Lua may run a first finalizer in the middle of a call: then a type with `again` waits for the second one.
 */
static int l_gc(lua_State *L)
{
    dc_dsl *d = dc_dsl_of_any(L);
    const dc_utype *type = lua_touserdata(L, lua_upvalueindex(2));
    dc_uref *r = dc_udata_look(L, 1, type);
    if (r == NULL || dc_dsl_gone(d) || is_lost(d))
        return 0;
    dc_uhead *node = r->node;
    if (type->again && !node->dying) {
        order_again(L, d, node);
        return 0;
    }
    r->type = NULL;
    if (node->holds > 0) { /* the next sweep finds it */
        node->serial = 0;
        return 0;
    }
    drop(node);
    free_node(L, d, node);
    return 0;
}

/* A node without a userdata. Its memory stays where a userdata that was lost and brought back may refer to it. */
static void take_back(lua_State *L, dc_dsl *d, dc_uhead *node)
{
    const bool was_lost = node->serial != 0;
    if (node->type == NULL || node->holds > 0)
        return;
    d->nodes.lost += was_lost;
    drop(node);
    if (node->chunk != NULL)
        node->chunk->pinned |= was_lost;
    if (node->chunk != NULL || !was_lost)
        free_node(L, d, node);
}

void dc_udata_sweep(lua_State *L, dc_dsl *d)
{
    const dc_unodes *n = &d->nodes;
    if (!lua_checkstack(L, 6))
        return;
    if (!push_weak(L, n)) {
        lua_pop(L, 1);
        return;
    }
    for (uint32_t i = 1; i <= n->room; i++) {
        if (n->at[i].node == NULL)
            continue;
        if (lua_rawgeti(L, -1, i) == LUA_TNIL)
            take_back(L, d, n->at[i].node);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

void dc_udata_close_all(dc_dsl *d)
{
    for (uint32_t i = 1; i <= d->nodes.room; i++)
        if (d->nodes.at[i].node != NULL)
            drop(d->nodes.at[i].node);
}

/* ---- metatables ------------------------------------------------------------------------------- */

void dc_udata_open(lua_State *L, dc_dsl *d)
{
    lua_newtable(L);
    d->nodes.weak = luaL_ref(L, LUA_REGISTRYINDEX);
    push_context(L, d);
    lua_newtable(L);
    lua_setiuservalue(L, -2, KEPT);
    lua_pop(L, 1);
}

void dc_udata_table(lua_State *L, int idx, int n)
{
    if (lua_getiuservalue(L, idx, n) != LUA_TTABLE)
        luaL_error(L, "a value of deepc has lost what belongs to it");
}

bool dc_udata_has_meta(lua_State *L, int idx, const dc_utype *type)
{
    if (!lua_getmetatable(L, idx))
        return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, type);
    const bool same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same;
}

void dc_udata_hide(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__metatable");
}

void dc_udata_set_gc(lua_State *L, dc_dsl *d, const dc_utype *type)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, d);
    lua_pushlightuserdata(L, (void *)type);
    lua_pushcclosure(L, l_gc, 2);
    lua_setfield(L, -2, "__gc");
}

void dc_udata_register(lua_State *L, const dc_utype *type)
{
    lua_createtable(L, 0, 8);
    lua_pushstring(L, type->name);
    lua_setfield(L, -2, "__name");
    dc_udata_hide(L, type->name);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, type);
}
