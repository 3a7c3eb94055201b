/*
 * Typed functions and their specialisations, between dsl/fn.c and dsl/spec.c.
 */
#ifndef DC_DSL_FN_H
#define DC_DSL_FN_H

#include "dsl/impl.h"

/* User values of a dc_fn. */
enum { DC_FN_BODY = 1, DC_FN_SPECS = 2 };

typedef struct dc_fn {
    dc_oldsig sig;
    const char *name;     /* interned, as are the next two */
    const char *place;    /* ", train.lua:12", or "" */
    const char *origin;   /* of results */
    struct dc_spec *only; /* the specialisation where there is no choice; held by DC_FN_SPECS */
    int limit;
} dc_fn;

typedef struct dc_spec {
    dc_trace *trace;
    dc_exec *exec;
    dc_inst *inst;
    dc_arg *arg; /* declared parameters, then captured tensors */
    uint32_t nresult;
    int64_t size[DC_OLDSIG_VARS];
} dc_spec;

/* Methods that look at a typed function (look.c): pushes the one of this name, or false. */
bool dc_look_push(lua_State *L, dc_dsl *d, const char *name);
dc_fn *dc_fn_check(lua_State *L, int idx);

/* Makes the metatables. */
void dc_spec_register(lua_State *L);
/* Traces and checks the function at fn_idx for these sizes, begins to compile it; pushes the
 * specialisation. */
dc_spec *dc_spec_make(lua_State *L, dc_dsl *d, int fn_idx, const int64_t *size);
/* For whoever calls it: waits for the executable, makes the instance. Inside dc_protect. */
dc_status dc_spec_ready(dc_dsl *d, dc_job *j, dc_spec *s);
/* Of the results at idx..., raises where one is not as declared. Numbers stand for scalars. */
void dc_spec_check_results(lua_State *L, dc_dsl *d, const dc_fn *fn, const int64_t *size, int idx,
                           int n);

#endif
