/* What vm/program/check_types.c and vm/program/check_describe.c share. */
#ifndef DC_VM_PROGRAM_CHECK_TYPES_IMPL_H
#define DC_VM_PROGRAM_CHECK_TYPES_IMPL_H

#include "core/base/ptrmap.h"
#include "vm/program/check_types.h"

/* A name on a line: "self.first.weight", whose root is "self". */
typedef struct dc_check_name {
    uint32_t from, n, root; /* bytes */
    uint32_t line;
    uint32_t sight; /* the first */
} dc_check_name;

/* What it was, before the line or after it; 0 as the next one ends the list. */
typedef struct dc_check_sight {
    uint32_t value, next;
    bool after;
} dc_check_sight;

typedef enum dc_check_kind {
    DC_CHECK_TENSOR,
    DC_CHECK_PLAIN, /* a number, a string, ... */
    DC_CHECK_TABLE,
    DC_CHECK_FUNCTION /* a typed one, or one of Lua */
} dc_check_kind;

/* text: interned; NULL of tables and functions, which are kept alive in a list and described at the end. */
typedef struct dc_check_value {
    dc_check_kind kind;
    const char *text;
    uint32_t kept;
} dc_check_value;

typedef struct dc_check_made {
    const char *where, *op; /* interned */
    uint32_t value;
} dc_check_made;

/* A function that runs: by the line that it is defined in, since a tail call may have put another one in its place. */
typedef struct dc_check_frame {
    const void *at;
    uint32_t line;
    int function;
} dc_check_frame;

typedef struct dc_check_visit {
    uint64_t serial;
    uint32_t n;
} dc_check_visit;

struct dc_check_types {
    dc_rt *rt;
    const char *text, *source; /* source: of the functions of the script; Lua's */
    size_t n;
    uint32_t lines, idle;  /* idle: events of lines in a row at which nothing was looked at */
    uint32_t *first;       /* [lines + 2]: where the names of a line begin */
    dc_check_visit *visit; /* [lines + 2] */
    DC_VEC(dc_check_name) name;
    DC_VEC(dc_check_sight) sight;
    DC_VEC(dc_check_value) value;
    DC_VEC(dc_check_made) made;
    DC_VEC(dc_check_frame) frame;
    dc_ptrmap known; /* of texts and of addresses of tables and functions: the value */
};

/* The number of what is at idx; 0 of what is not told: nil, functions in C. */
uint32_t dc_check_value_of(lua_State *L, dc_check_types *t, int idx);
uint32_t dc_check_value_of_tensor(dc_check_types *t, const dc_handle *h);

#endif
