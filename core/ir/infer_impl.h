/* What core/ir/infer.c, core/ir/infer_shape.c and core/ir/infer_names.c share. */
#ifndef DC_CORE_IR_INFER_IMPL_H
#define DC_CORE_IR_INFER_IMPL_H

#include "core/ir/dot.h"

/* One application of an operation: what comes in, and the type of its result that rules write. */
typedef struct dc_site {
    dc_job *j;
    dc_op op;
    const dc_type *in;
    int nin;
    const int64_t *attr;
    int nattr;
    const dc_type *want;
    dc_type *out;
} dc_site;

static inline const char *dc_site_name(const dc_site *s)
{
    return dc_op_row_of(s->op)->name;
}

/* Reads and checks the axes of a dot. */
dc_status dc_infer_dot(const dc_site *s, dc_dot *d);

/* Of operations of class HST (core/ir/infer_host.c). */
dc_status dc_infer_host_dtype(const dc_site *s);
dc_status dc_infer_host_shape(const dc_site *s);
dc_status dc_infer_host_names(const dc_site *s);

/* Of class COM (core/ir/exchange.c). */
dc_status dc_infer_exchange_dtype(const dc_site *s);
dc_status dc_infer_exchange_shape(const dc_site *s);

/* Rank and dims of the result, whose dtype has been inferred. */
dc_status dc_infer_shape(const dc_site *s);

/* Are the dims of the result sizes, or codes of the table that are never below 0? EXTENT. */
dc_status dc_infer_extents(const dc_site *s);

/* Names of the result, whose dtype and dims have been inferred. */
dc_status dc_infer_names(const dc_site *s);

#endif
