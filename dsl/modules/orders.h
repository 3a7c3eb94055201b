/* Orders of the rows of a data set, which loops over batches go through. */
#ifndef DC_DSL_MODULES_ORDERS_H
#define DC_DSL_MODULES_ORDERS_H

#include "dsl/base/binding.h"
#include "formats/rows.h"

typedef struct dc_order {
    dc_uhead head;
    int64_t n;
    int64_t most; /* the largest row, -1: there is none */
    uint32_t at[];
} dc_order;

extern const dc_utype dc_order_type;
extern const dc_bindings dc_order_bindings;

/* Userdata that holds rows (dsl/modules/sources.c). */
typedef struct dc_rows_holder {
    dc_uhead head;
    dc_rows *rows; /* NULL: closed */
} dc_rows_holder;

extern const dc_utype dc_rows_type;
extern const dc_bindings dc_source_bindings;

#endif
