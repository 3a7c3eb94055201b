/*
 * What the files of dsl/ add to the module, and single functions that others need of them.
 */
#ifndef DC_DSL_PARTS_H
#define DC_DSL_PARTS_H

#include "dsl/error.h"
#include "dsl/trace.h"

void dc_ops_register(lua_State *L, dc_dsl *d, int methods, int module, int meta); /* ops.c */
void dc_reduce_register(lua_State *L, dc_dsl *d, int methods, int module);        /* reduce.c */
void dc_move_register(lua_State *L, dc_dsl *d, int methods);                      /* move.c */
void dc_einsum_register(lua_State *L, dc_dsl *d, int module);                     /* einsum.c */
void dc_join_register(lua_State *L, dc_dsl *d, int methods, int module);          /* join.c */
void dc_unary_register(lua_State *L, dc_dsl *d, int methods, int module);         /* unary.c */
void dc_pick_register(lua_State *L, dc_dsl *d, int methods, int module);          /* pick.c */
int dc_pick_put(lua_State *L, dc_dsl *d);       /* x:put(idx, v, axis) */
const char *dc_hint_field(const char *name);    /* hints.c: of a tensor; or NULL */
const char *dc_hint_function(const char *name); /* of the module; or NULL */
/* What was meant by argument `at`, one more than op takes, and those behind it; pushes it, or NULL. */
const char *dc_hint_surplus(lua_State *L, const char *op, int at);
const char *dc_hint_library(const char *name);                /* of nn, optim, data ...; or NULL */
void dc_index_register(lua_State *L, dc_dsl *d, int methods); /* index.c */
int dc_index_get(lua_State *L, dc_dsl *d, dc_handle *h);      /* a[k]: key at 2 */
void dc_make_register(lua_State *L, dc_dsl *d, int module);   /* make.c */
void dc_make_from_table(lua_State *L, dc_dsl *d, int idx, const dc_type *want, bool dtype_only,
                        const char *op);                      /* pushes a tensor */
void dc_random_register(lua_State *L, dc_dsl *d, int module); /* random.c */
uint32_t dc_random_bits(uint64_t seed, uint64_t stream, uint64_t i);
void dc_cell_register(lua_State *L, dc_dsl *d, int methods, int module); /* cell.c */
/* A new value of a cell while tracing; of its type. */
dc_status dc_cell_record(dc_job *j, dc_trace *t, dc_cell *c, dc_val v);
void dc_grad_register(lua_State *L, dc_dsl *d, int methods, int module); /* grad.c */
void dc_custom_register(lua_State *L, dc_dsl *d, int module); /* custom.c */
void dc_conv_register(lua_State *L, dc_dsl *d, int module);   /* conv.c */
void dc_fn_register(lua_State *L, dc_dsl *d, int module);     /* fn.c */
void dc_layer_register(lua_State *L, dc_dsl *d); /* layer.c: internals on top */
void dc_data_register(lua_State *L, dc_dsl *d);  /* data.c: internals on top */
/* batches.c: internals on top */
void dc_batches_register(lua_State *L, dc_dsl *d);
void dc_batches_close_all(dc_dsl *d);
void dc_files_register(lua_State *L, dc_dsl *d);    /* files.c: internals on top */
void dc_terminal_register(lua_State *L, dc_dsl *d); /* terminal.c: internals on top */
void dc_tensor_register(lua_State *L, dc_dsl *d, int methods, int meta); /* tensor.c */
void dc_scope_register(lua_State *L, dc_dsl *d, int module);             /* scope.c */
int dc_print_value(lua_State *L, dc_dsl *d, dc_handle *h);   /* print.c: pushes text */

#endif
