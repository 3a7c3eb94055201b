/*
 * Userdata of ours. A userdata is a reference; what it stands for is its node.
 *
 * What owns something (`drop` of its type) has its node in memory of the context, not in the userdata: Lua frees a
 * userdata also where its finalizer could not be called (200 C calls deep, at the end of Lua's stack, where there is
 * no memory), and lists of the context would point into freed memory. So membership in a list never depends on a
 * finalizer. A finalizer that was lost leaves its node behind: the next whole collection finds it
 * (dc_udata_sweep), at the latest the context's end does. Other nodes lie in their userdata.
 *
 * No script reaches what C relies on. Metatables are in the registry under the address of the type's row, and
 * getmetatable gives scripts the name of the type instead. Whether a value is of a type is read in the value:
 * its first word is the address of the row, from when its metatable, and so its finalizer, is in place until the
 * finalizer has run. A value whose metatable is exchanged with the debug library is what it was; what the
 * debug library puts in the place of a user value, an upvalue or an entry of the registry is tested before use.
 */
#ifndef DC_DSL_BASE_UDATA_H
#define DC_DSL_BASE_UDATA_H

#include "core/base/base.h"

#include <lauxlib.h>
#include <lua.h>

struct dc_dsl;
struct dc_uchunk;

typedef struct dc_utype {
    const char *name; /* "deepc.tensor" */
    /* Gives back what a node owns; never called where the context is gone. NULL: it owns nothing. */
    void (*drop)(void *node);
    /* The first finalizer orders a second one, which runs when nothing refers to the value still. */
    bool again;
} dc_utype;

/* The first member of every node. */
typedef struct dc_uhead {
    const dc_utype *type;    /* NULL: it is free, or was given back */
    struct dc_uchunk *chunk; /* that it lies in; NULL: in memory of its own, or in its userdata */
    uint64_t serial; /* another one for each use of the memory; 0 where the type owns nothing */
    uint32_t slot;   /* its number among the nodes of the context */
    uint32_t holds;  /* pointers from other nodes, which keep it */
    bool dying;      /* of types with `again`: was finalized once and not used since */
} dc_uhead;

/* The userdata. */
typedef struct dc_uref {
    const dc_utype *type; /* NULL: it is being made, or was finalized */
    dc_uhead *node;
    uint64_t serial; /* of the node; another one there: a sweep has given it back */
} dc_uref;

enum { DC_UDATA_USER = 2 }; /* user values of the context, which are udata.c's */

/* Nodes of a context, all in memory of Lua, which frees it when nothing can refer to it any more: udata.c. */
typedef struct dc_unodes {
    struct dc_uslot {
        dc_uhead *node; /* NULL: free */
        uint32_t next;  /* free one; 0: none */
    } * at;             /* [room], from 1 */
    uint32_t room, free;
    int weak;              /* number in the registry of the table of userdata by slot */
    uint64_t serial, lost; /* the last one; finalizers that were lost, so far */
    struct dc_upool {
        size_t size;             /* of its nodes; 0: none yet */
        struct dc_uchunk *first; /* those with free nodes */
        uint32_t room, used;     /* nodes of all chunks; those that stand for something */
    } pool[2];
} dc_unodes;

/* The reference at idx if it is one to a node of this type, else NULL. Light userdata and what is no userdata have no size. */
static inline dc_uref *dc_udata_look(lua_State *L, int idx, const dc_utype *type)
{
    dc_uref *r = lua_touserdata(L, idx);
    if (r == NULL || lua_rawlen(L, idx) < sizeof *r)
        return NULL;
    return r->type == type && r->node->type == type && r->node->serial == r->serial ? r : NULL;
}

/* The node of the userdata at idx if it is of this type, else NULL. Pushes nothing, raises nothing. */
static inline void *dc_udata_test(lua_State *L, int idx, const dc_utype *type)
{
    const dc_uref *r = dc_udata_look(L, idx, type);
    return r != NULL ? r->node : NULL;
}

/* The same of a value that is known to be of a type. */
static inline void *dc_udata_node(lua_State *L, int idx)
{
    return ((const dc_uref *)lua_touserdata(L, idx))->node;
}

/* The same as dc_udata_test; raises where it is something else. */
void *dc_udata_check(lua_State *L, int idx, const dc_utype *type);
/* Pushes a userdata with its metatable and a node of zeros, `size` bytes large. */
void *dc_udata_new(lua_State *L, const dc_utype *type, size_t size, int nuser);
/* The same of a type that owns something, many of which come and go: nodes of one size share chunks. Two sizes at most. */
void *dc_udata_new_pooled(lua_State *L, struct dc_dsl *d, const dc_utype *type, size_t size);
/* A pointer to a node from another one, which keeps the node; and its end. */
void dc_udata_hold(void *node);
void dc_udata_release(void *node);
/* Right after a whole collection: gives back nodes whose userdata are gone without having been finalized. */
void dc_udata_sweep(lua_State *L, struct dc_dsl *d);
/* Gives back all nodes. */
void dc_udata_close_all(struct dc_dsl *d);
/* Before the first node of a type that owns something. */
void dc_udata_open(lua_State *L, struct dc_dsl *d);
/* Pushes user value n of the userdata at idx, a table; raises where it is none. */
void dc_udata_table(lua_State *L, int idx, int n);
/* Pushes the metatable; raises where the registry has lost it. */
void dc_udata_push_meta(lua_State *L, const dc_utype *type);
/* Has the value at idx this metatable? So has one that was finalized. */
bool dc_udata_has_meta(lua_State *L, int idx, const dc_utype *type);
/* Pushes a new metatable of this name that scripts do not see, and remembers it; it has no methods yet. */
void dc_udata_register(lua_State *L, const dc_utype *type);
/* The table on top is the metatable of a type that owns something: its finalizer. */
void dc_udata_set_gc(lua_State *L, struct dc_dsl *d, const dc_utype *type);
/* The table on top is a metatable: getmetatable gives scripts this name in its place. */
void dc_udata_hide(lua_State *L, const char *name);

#endif
