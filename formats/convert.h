/* Floats of one dtype to another, many at a time. */
#ifndef DC_FORMATS_CONVERT_H
#define DC_FORMATS_CONVERT_H

#include "core/base/type.h"

/* n elements; both are float dtypes. Rounded once, to the nearest, ties to even. The two places do not overlap. */
void dc_convert(dc_dtype from, const void *src, dc_dtype to, void *dst, size_t n);

/* Does every number of `from` exist in `to`, both float dtypes? */
bool dc_convert_exact(dc_dtype from, dc_dtype to);

#endif
