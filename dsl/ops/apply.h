/*
 * One operation on what a script gives: recorded while a function is traced, lazy otherwise.
 */
#ifndef DC_DSL_OPS_APPLY_H
#define DC_DSL_OPS_APPLY_H

#include "dsl/base/binding.h"
#include "dsl/base/error.h"

typedef dc_status dc_build_fn(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                              dc_val *out);

enum { DC_APPLY_IN = 5, DC_APPLY_OUT = 2 };

/* One operation on operands that are parsed already. */
typedef struct dc_apply {
    const char *op;
    dc_operand in[DC_APPLY_IN];
    int n, nout;
    bool as_f32;  /* numbers beside integers are f32, for `/` and `^` */
    bool product; /* of f32, dc.autocast computes it in 16 bits */
    bool once;    /* of several steps: floats of 16 bits are f32 between them, and rounded once */
    bool alike;   /* three operands, all of one dtype, and not a condition and two */
    bool pairs;   /* operands are broadcast: where both grow that is noted */
    bool step;    /* of what the script called: that its result is not used is not reported */
    dc_build_fn *build;
    const void *arg;
} dc_apply;

/* Records it while tracing, else makes a lazy tensor. Pushes nout handles; raises. */
void dc_apply_run(lua_State *L, dc_dsl *d, dc_apply *a);
/* Both for the values at idx[0..n-1]: one result. */
void dc_apply_to(lua_State *L, dc_dsl *d, const char *op, const int *idx, int n, dc_build_fn *build,
                 const void *arg);
void dc_apply_step(lua_State *L, dc_dsl *d, const char *op, const int *idx, int n,
                   dc_build_fn *build, const void *arg,
                   bool last); /* ... which others may follow */
/* Takes the values at idx[0..n-1] as operands; numbers get the dtype that the tensors have. */
void dc_apply_operands(lua_State *L, dc_dsl *d, dc_apply *a, const char *op, const int *idx, int n);

/*
 * pairs.c. Do two operands both grow, to all pairs of their elements, and not all those axes have names? Then: an error
 * where one of them has, otherwise a note where both have the same sizes, once for each place. Masks are made so
 * (`positions:lt(lengths:reshape(-1, 1))`): comparisons are no error.
 */
bool dc_pairs_any(const dc_apply *a);
void dc_pairs_look(lua_State *L, dc_dsl *d, const dc_apply *a, const dc_handle *out,
                   const dc_place *place);

/* wraps.c. Does a number beside integers of 8 or 16 bits make what wraps for many of their values? Then: a note. */
bool dc_wraps_any(const dc_apply *a);
void dc_wraps_look(dc_dsl *d, const dc_apply *a, const dc_place *place);

/* Steps of composites. */
dc_status dc_ops_1(dc_job *j, dc_func *f, dc_op op, dc_val a, dc_val *out);
dc_status dc_ops_2(dc_job *j, dc_func *f, dc_op op, dc_val a, dc_val b, dc_val *out);
dc_status dc_ops_where(dc_job *j, dc_func *f, dc_val m, dc_val a, dc_val b, dc_val *out);
dc_status dc_ops_number(dc_job *j, dc_func *f, dc_val like, double v, dc_val *out); /* a scalar */
dc_status dc_ops_need_real(dc_job *j, const dc_val *v);               /* operand 1; DTYPE */
dc_status dc_ops_float(dc_job *j, dc_func *f, dc_val a, dc_val *out); /* integers become f32 */

/* An element-wise composite of 1 to 3 operands: a method and a function of the module. */
typedef struct dc_composite {
    dc_binding bound; /* of dc_ops_composite; takes its operands */
    dc_build_fn *build;
    bool as_f32, once; /* see dc_apply */
} dc_composite;

int dc_ops_composite(lua_State *L);

#endif
