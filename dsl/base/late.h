/* Errors of calls that have returned: a check of their data stopped them on a device that runs ahead (core/runtime/outcome.h). */
#ifndef DC_DSL_BASE_LATE_H
#define DC_DSL_BASE_LATE_H

#include "dsl/base/state.h"

/* Raises the first that is known and was not raised; `wait`: none is left unknown. */
void dc_late_check(lua_State *L, dc_dsl *d, bool wait);

#endif
