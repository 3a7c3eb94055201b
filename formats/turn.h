/* Matrices with their axes the other way round. */
#ifndef DC_FORMATS_TURN_H
#define DC_FORMATS_TURN_H

#include "core/base/base.h"

/* to[c * stride + r] = from[r * columns + c], of elements of 1, 2, 4, 8 or 16 bytes; places do not overlap. */
void dc_turn(size_t size, const void *from, size_t rows, size_t columns, void *to, size_t stride);

#endif
