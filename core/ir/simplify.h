/*
 * Simplification: constants, identities, movement of movement, dead code. A new function of the
 * same module with the same parameters and results; never more nodes than before. Exact on every
 * value including NaN, infinities and signed zeros: only schedule moves reassociate.
 */
#ifndef DC_CORE_IR_SIMPLIFY_H
#define DC_CORE_IR_SIMPLIFY_H

#include "core/ir/graph.h"

dc_func *dc_simplify(const dc_func *f);

#endif
