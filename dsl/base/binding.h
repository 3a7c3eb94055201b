/*
 * Functions that scripts call, and how they get into tables.
 */
#ifndef DC_DSL_BASE_BINDING_H
#define DC_DSL_BASE_BINDING_H

#include "dsl/base/state.h"

#include <limits.h>

/* Tables that have a function. */
enum {
    DC_IN_MODULE = 1,
    DC_IN_METHODS = 2, /* of tensors, or of the type that the rows are of */
    DC_IN_BOTH = DC_IN_MODULE | DC_IN_METHODS,
    DC_IN_META = 4,   /* metamethods; arguments of these and the next are not counted */
    DC_IN_LIBRARY = 8 /* internals of stdlib/ */
};

/*
 * A function that scripts call. More arguments than `most` are an error (binding.c); of a method, x of x:name()
 * is one. Rows live as long as the program; a function that is called with counted arguments finds its own in
 * dc_binding_of.
 */
typedef struct dc_binding {
    const char *name;
    lua_CFunction fn;
    int most;
    unsigned in;
} dc_binding;

/* The functions of a file, or of a type: n rows of `size` bytes, each of which begins with a dc_binding. */
typedef struct dc_bindings {
    const dc_binding *first;
    size_t n, size;
} dc_bindings;

#define DC_BINDINGS(rows)                         \
    {                                             \
        (rows), DC_COUNTOF(rows), sizeof(rows)[0] \
    }

enum { DC_ANY = INT_MAX }; /* the function reads all there are */

static inline const dc_binding *dc_binding_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(2));
}

/* Where the tables are on the stack; 0: there is none. */
typedef struct dc_binding_tables {
    int module, methods, meta, library;
} dc_binding_tables;

/* Puts functions into the tables that their rows name. */
void dc_binding_add(lua_State *L, dc_dsl *d, const dc_bindings *b, const dc_binding_tables *to);
/*
 * Makes the metatable of a type with these functions; rows may be NULL. Methods are found by __index where no row
 * is called so.
 */
void dc_binding_add_type(lua_State *L, dc_dsl *d, const dc_utype *type, const dc_bindings *rows);
/* Pushes the method of this name; false, and nothing, where there is none. */
bool dc_binding_find(lua_State *L, dc_dsl *d, const dc_bindings *b, const char *name);
/*
 * Raises where more than `most` arguments are on the stack, but for nil at the end. The script did not write
 * the first `own` of them, nor x of x:name().
 */
void dc_binding_surplus(lua_State *L, dc_dsl *d, const char *op, int most, int own);
/* Pushes the table of a module of stdlib/, which is run when it is first asked for. */
void dc_binding_require(lua_State *L, const char *module);
/* Can it be pushed? A build has not all modules of extras/. */
bool dc_binding_provides(lua_State *L, const char *module);
/* t[name] = n for the table on top. */
void dc_binding_set_number(lua_State *L, const char *name, uint64_t n);

#endif
