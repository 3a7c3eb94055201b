/*
 * Which build of deepc this is: the digest that the linker writes into what it links. It differs
 * wherever the code does, so the executables that one build cached are misses for another.
 */
#ifndef DC_JIT_CACHE_BUILD_ID_H
#define DC_JIT_CACHE_BUILD_ID_H

#include "core/base/vec.h"

/* In hexadecimal digits. False: the linker has written none. */
bool dc_build_id_put(dc_text *out);

#endif
