/*
 * What stdlib/ needs and scripts do not see.
 */
#ifndef DC_DSL_INTERNALS_H
#define DC_DSL_INTERNALS_H

#include "dsl/base/binding.h"

extern const dc_bindings dc_internal_bindings;

#endif
