#include "vm/program/say.h"

#include "core/base/shown.h"
#include "core/base/utf8.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void dc_say(FILE *to, const char *text, size_t n)
{
    char piece[DC_SHOWN_PIECE];
    size_t m;
    if (dc_shown_is_plain(text, n, true)) {
        fwrite(text, 1, n, to);
        return;
    }
    for (size_t at = 0; at < n;) {
        at += dc_shown_next(text + at, n - at, true, piece, &m);
        fwrite(piece, 1, m, to);
    }
}

void dc_say_json(FILE *to, const char *text, size_t n)
{
    uint32_t code;
    for (size_t at = 0, k; at < n; at += k) {
        k = dc_utf8_character(text + at, n - at, &code);
        if (k == 0)
            fprintf(to, "\\ufffd");
        else if (!dc_shown_is_plain(text + at, k, true))
            fprintf(to, "\\u%04x", (unsigned)code);
        else
            fwrite(text + at, 1, k, to);
        k = k == 0 ? 1 : k;
    }
}

void dc_sayf(FILE *to, const char *fmt, ...)
{
    char room[2000], *text = room;
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(room, sizeof room, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof room && (text = malloc((size_t)n + 1)) != NULL) {
        va_start(ap, fmt);
        vsnprintf(text, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    if (text == NULL)
        text = room; /* as much as there is */
    dc_say(to, text, strlen(text));
    if (text != room)
        free(text);
}
