/*
 * printf for renderers of the flat form: %s, %u (uint32_t), %d, %l (int64_t), %%, and letters of the
 * renderer's own, all of which take a value (dc_fv).
 */
#ifndef DC_JIT_RENDER_RENDER_FORMAT_H
#define DC_JIT_RENDER_RENDER_FORMAT_H

#include "jit/flat/flat.h"

#include <stdarg.h>

/* Writes v in the form that the letter names; false: there is no such letter. */
typedef bool dc_fput_value(void *renderer, char letter, dc_fv v);

/* ap is used up: its owner only ends it. */
void dc_render_format(dc_text *out, const char *fmt, va_list ap, dc_fput_value *value,
                      void *renderer);

#endif
