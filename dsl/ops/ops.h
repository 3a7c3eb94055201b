/*
 * What the files of operations add to the module, and what some have for others.
 */
#ifndef DC_DSL_OPS_OPS_H
#define DC_DSL_OPS_OPS_H

#include "dsl/base/binding.h"
#include "dsl/base/error.h"
#include "dsl/base/trace.h"

extern const dc_bindings dc_operator_bindings[3], dc_unary_bindings[2], dc_number_bindings[2];
extern const dc_bindings dc_reduce_bindings, dc_movement_bindings, dc_subscript_bindings,
    dc_einsum_bindings, dc_concat_bindings, dc_gather_bindings, dc_make_bindings, dc_rand_bindings,
    dc_devices_bindings, dc_tensor_bindings, dc_param_bindings, dc_gradient_bindings,
    dc_custom_grad_bindings, dc_conv_pool_bindings, dc_cumulative_bindings, dc_sort_bindings,
    dc_pad_bindings, dc_host_bindings, dc_size_methods, dc_bytes_bindings, dc_complex_bindings,
    dc_fft_bindings, dc_quantized_product_bindings, dc_exchange_bindings, dc_messages_bindings;

/* A size at idx (dsl/base/size.h) becomes a traced scalar of this dtype; other values stay. */
void dc_ops_size(lua_State *L, dc_dsl *d, int idx, dc_dtype dtype);

/* What no row says: metamethods that are methods, too; fields by name; what `not` is called. */
void dc_operators_open(lua_State *L, int methods, int module, int meta);
/* devices.c. The device whose name is at idx, opened if need be; raises. x.device: pushes the name. */
dc_rt *dc_devices_read(lua_State *L, dc_dsl *d, int idx, const char *op);
/* The tensor at idx, just made of a table, goes to where it is used, as what is made by rule does. */
void dc_devices_roam(lua_State *L, dc_dsl *d, int idx);
void dc_devices_push(lua_State *L, dc_dsl *d, const dc_handle *h);
void dc_tensor_open(lua_State *L, dc_dsl *d, int methods, int meta);

/* Two values one behind the other along the axis, an int; no name there. */
dc_status dc_concat_build(dc_job *j, dc_func *f, const void *axis, const dc_val *in, dc_val *out);
int dc_gather_put(lua_State *L, dc_dsl *d);                  /* x:put(idx, v, axis) */
int dc_subscript_get(lua_State *L, dc_dsl *d, dc_handle *h); /* a[k]: key at 2 */
int dc_print_value(lua_State *L, dc_dsl *d, dc_handle *h);   /* pushes text */
void dc_make_from_table(lua_State *L, dc_dsl *d, int idx, const dc_type *want, bool dtype_only,
                        const char *op); /* pushes a tensor */
uint32_t dc_rand_bits(uint64_t seed, uint64_t stream, uint64_t i);
/* messages.c: ranks do together now what this line asks for; where that raises, they do nothing together any more. */
void dc_messages_meet_here(lua_State *L, dc_dsl *d);
/* The same value, which is computed behind the messages that the trace, or none, has made. */
void dc_messages_come_after(dc_func *f, const dc_trace *t, dc_val *v);
/*
 * Exchanges of ranks that nothing uses are performed all the same, since others may use theirs. At the end of a function, when its
 * results are known; at the end of a body for all of its exchanges: what is not used of a loop or a branch would go, and loops
 * that are the same in each iteration would leave those round them, on this rank alone.
 */
dc_status dc_messages_keep_unused(dc_job *j, dc_trace *t);
dc_status dc_messages_keep_in_body(dc_job *j, dc_trace *t);
/* Pushes the part of the tensor at idx that begins there: exchange.c. */
void dc_exchange_cut(lua_State *L, dc_dsl *d, int idx, const char *op, const dc_type *part,
                     const int64_t *start);
/* A new value of a cell while tracing; of its type. */
dc_status dc_param_record(dc_job *j, dc_trace *t, dc_cell *c, dc_val v);
/* Raises where dc.vmap runs: a cell that it calls for each row is not set. Before a cell is set outside traces. */
void dc_param_refuse_mapped(lua_State *L, dc_dsl *d, const char *op, const dc_cell *c);
/*
 * Tests the integers of the tensor at idx: now, or when a call of the function being traced
 * completes (data_check.c). Of the test: id, op, role, classes, axis. Raises.
 */
void dc_data_check_index(lua_State *L, dc_dsl *d, int idx, dc_trace_check test);
/* The same of integers for matrices at `shown`, of which each has to be 0. */
void dc_data_check_matrices(lua_State *L, dc_dsl *d, int idx, int shown, dc_err_id id,
                            const char *op);
/* An integer outside, at a position (from 0) of the tensor h; NULL: of that which the test tells of. */
typedef struct dc_found {
    int64_t value, position;
    dc_handle *h;
    const char *hint; /* instead of the error's own; or NULL */
} dc_found;
DC_NORETURN void dc_data_check_raise(lua_State *L, dc_dsl *d, const dc_trace_check *c,
                                     const dc_found *found);

#endif
