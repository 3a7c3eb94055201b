/*
 * What guards are made of: shared by guard_value.c, guard_trace.c (noting, while a body is traced), guard_tables.c (captured
 * tables, when the trace ends), guard_compare.c (is it still the same?) and guard_text.c (what changed).
 */
#ifndef DC_DSL_FN_GUARD_IMPL_H
#define DC_DSL_FN_GUARD_IMPL_H

#include "dsl/base/args.h"
#include "dsl/base/luatable.h"
#include "dsl/base/run.h"
#include "dsl/fn/fn.h"

enum {
    DC_GUARD_EACH = 256,    /* fields in all that are compared at each call */
    DC_GUARD_FIELDS = 4096, /* that are compared at all */
    DC_GUARD_OFTEN = 16,    /* calls between two looks at the rest of them */
    DC_GUARD_MOST = 4096,   /* and, in the end, at what changes without effect */
    DC_GUARD_HARMLESS = 2   /* changes without another graph, after which a field is quiet */
};

typedef struct dc_guard_shot { /* a value at some time */
    int type;
    bool integer;
    union {
        lua_Integer i;
        lua_Number n;
        const void *p;
    } as;
    int ref; /* number in the references, of values that have an address */
} dc_guard_shot;

typedef struct dc_guard {
    int holder;       /* reference: a function or a table */
    int key;          /* number of the captured local, or reference of the key */
    const void *id;   /* of the captured local */
    const char *name; /* "total", "cfg.lr"; interned */
    dc_guard_shot was;
    bool
        named; /* a function that ran says the name of each field on the way to it, or may compute it */
    bool
        seldom; /* compared at long intervals: nothing says its name, and it changed without effect,
                    or is a global */
} dc_guard;

/* A table, or an object with its class: the fields from `first` on in dc_guards.field. */
typedef struct dc_guard_table {
    int ref;
    const void *at, *metatable; /* addresses; both are kept alive by the references */
    const char *name;           /* "" of globals; interned */
    uint32_t first, count;
    bool globals, named;
    bool each;    /* at each call */
    bool cut;     /* not all of its fields are guarded */
    bool seldom;  /* what is added to it and not named, as dc_guard.seldom */
    bool stirred; /* something seldom differed when it was looked at last */
    dc_luatable image;
} dc_guard_table;

/* Changes that made no other graph, by name: of a field, or fields added to a table. */
typedef struct dc_guard_harmless {
    const char *name;
    bool added, told;
    uint32_t times;
} dc_guard_harmless;

/* A table to be looked at when the trace ends. */
typedef struct dc_guard_todo {
    int ref;
    const char *name;
    int depth;
    bool named, globals, meta; /* meta: of objects called `name` */
} dc_guard_todo;

struct dc_guards {
    DC_VEC(dc_guard_todo) todo;
    DC_VEC(dc_guard) local;
    DC_VEC(dc_guard) field;
    DC_VEC(dc_guard_table) table;
    DC_VEC(dc_guard_harmless) harmless;
    uint32_t each;       /* fields that are compared at each call */
    uint64_t period;     /* calls between two looks at what is compared seldom */
    const char *beyond;  /* a table whose fields did not all fit; NULL */
    uint32_t nbeyond;    /* so many are such */
    uint32_t beyond_has; /* fields that it has */
    bool iterated;       /* the body went over keys: any of them may matter */
    bool
        foreign; /* a function ran that is neither of the library nor one of Lua's that keep nothing */
};

/* ---- guard_value.c ---- */

dc_guard_shot dc_guard_look_at(lua_State *L, int idx);
bool dc_guard_same(lua_State *L, int idx, const dc_guard_shot *s, int refs);
int dc_guard_ref(lua_State *L, int refs, int idx); /* adds the value to the references */
dc_guard_shot dc_guard_keep(lua_State *L, int idx, int refs);
static inline bool dc_guard_has_address(int type)
{
    return type != LUA_TNIL && type != LUA_TBOOLEAN && type != LUA_TNUMBER;
}
/* Takes the image of a table that is guarded whole, by which it is compared. Raises. */
void dc_guard_take_image(lua_State *L, dc_dsl *d, dc_guard_table *t);
/* Pushes what the guard is about, as it is now. */
void dc_guard_push_local(lua_State *L, const dc_guard *g, int refs);
void dc_guard_push_field(lua_State *L, const dc_guard *g, int refs);
/* Puts the value at idx into a set, which is a field of the references; false where it is in it. */
bool dc_guard_take_once(lua_State *L, int refs, const char *set, int idx);

/* ---- guard_names.c ---- */

/* refs.names: the set of words in the constants of the functions of the script that ran. */
void dc_guard_collect_names(lua_State *L, int refs);
/* May such a function say the key at idx? */
bool dc_guard_is_named(lua_State *L, int refs, int idx);

/* ---- guard_tables.c ---- */

/* Guards what the captured locals and the tables to do hold. */
void dc_guard_tables(lua_State *L, dc_dsl *d, dc_guards *g, int refs);

#endif
