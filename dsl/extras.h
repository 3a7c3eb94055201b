/*
 * What stands beside the runtime (extras/): modules that scripts reach by require, and what they have in C. The table is
 * extras/extras.c's; it has no rows where deepc is built without them (DEEPC_EXTRAS=OFF).
 */
#ifndef DC_DSL_EXTRAS_H
#define DC_DSL_EXTRAS_H

#include "dsl/base/binding.h"
#include "dsl/stdlib.h"

typedef struct dc_extra {
    const struct dc_stdlib_module *modules; /* NULL: behind the last */
    const dc_bindings *bindings;            /* Optional: functions for its modules */
    const dc_utype *type;                   /* Optional: of userdata, without methods */
} dc_extra;

extern const dc_extra dc_extras[];

#endif
