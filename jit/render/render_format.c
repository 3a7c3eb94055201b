/*
 * Formats with values of the flat form (jit/render/render_format.h).
 */
#include "jit/render/render_format.h"

#include <inttypes.h>
#include <string.h>

void dc_render_format(dc_text *out, const char *fmt, va_list ap, dc_fput_value *value,
                      void *renderer)
{
    for (const char *p = fmt; *p != '\0'; p++) {
        if (*p != '%' || p[1] == '%') {
            const size_t n = *p == '%' ? 1 : strcspn(p, "%");
            dc_text_put(out, p, n);
            p += *p == '%' ? 1 : n - 1;
            continue;
        }
        switch (*++p) {
        case 's':
            dc_text_puts(out, va_arg(ap, const char *));
            break;
        case 'u':
            dc_text_printf(out, "%" PRIu32, va_arg(ap, uint32_t));
            break;
        case 'd':
            dc_text_printf(out, "%d", va_arg(ap, int));
            break;
        case 'l':
            dc_text_printf(out, "%" PRId64, va_arg(ap, int64_t));
            break;
        default:
            if (!value(renderer, *p, va_arg(ap, dc_fv)))
                DC_BUG("format %s", fmt);
        }
    }
}
