/*
 * Failures as Lua errors: records of C with operands, places and hints.
 */
#ifndef DC_DSL_BASE_ERROR_H
#define DC_DSL_BASE_ERROR_H

#include "dsl/base/handle.h"
#include "dsl/base/place.h"

struct dc_operand {
    dc_handle *h;     /* NULL: a number */
    const char *role; /* "left" */
    int idx;          /* on the stack */
    uint64_t bits;    /* of a number, of dtype type.dtype */
    dc_type type;
};

/* What the sentence of a failure is surrounded by. */
struct dc_blame {
    const char *op; /* of the failure, instead of what the record has; NULL: as recorded */
    const dc_operand *in;
    int n;
    const dc_place *place; /* NULL: found now */
    const char *hint;      /* instead of the row's */
    const char *expected, *got;
};

extern const dc_utype dc_error_type; /* of a table: its metatable alone */
extern const dc_bindings dc_error_methods;
void dc_error_open(lua_State *L);
/* Is the value at idx one of ours? Raises and allocates nothing. */
bool dc_error_is(lua_State *L, int idx);
/* Pushes what luaL_traceback would, without a message, from level 1 on. */
void dc_error_traceback(lua_State *L);
/* Raises the record of the context's job. */
DC_NORETURN void dc_error_raise(lua_State *L, dc_dsl *d, const dc_blame *b);
/* Makes a record of one sentence and raises it; for mistakes found in dsl/. */
DC_NORETURN void dc_error_raisef(lua_State *L, dc_dsl *d, dc_err_id id, const char *op,
                                 const char *fmt, ...) DC_PRINTF(5, 6);
/* Makes a record from facts and raises it. */
DC_NORETURN void dc_error_fact(lua_State *L, dc_dsl *d, dc_err_id id, const dc_fact *fact,
                               const dc_blame *b);
/* Raises a sentence of the script alone, without a place or a code. */
DC_NORETURN void dc_error_sentence(lua_State *L, dc_dsl *d, const char *text);
/* Raises if the status is a failure. */
void dc_error_check(lua_State *L, dc_dsl *d, dc_status status);
void dc_error_check_of(lua_State *L, dc_dsl *d, dc_status status, const char *op);

/*
 * Pushes "the global 'scale' is nil" about a variable that the script's line reads, the first one that is nil;
 * returns NULL and pushes nothing where none is found.
 */
const char *dc_nil_variable_push(lua_State *L, dc_dsl *d);

#endif
