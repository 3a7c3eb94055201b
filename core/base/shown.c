#include "core/base/shown.h"

#include "core/base/utf8.h"

#include <stdio.h>
#include <string.h>

/* Controls, marks and overrides of direction, separators of lines and paragraphs. */
static bool steers(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t dc_shown_next(const char *text, size_t n, bool lines, char piece[DC_SHOWN_PIECE], size_t *m)
{
    uint32_t code = 0;
    const size_t k = dc_utf8_character(text, n, &code);
    if (k == 0)
        *m = (size_t)snprintf(piece, DC_SHOWN_PIECE, "\\x%02x", (unsigned char)text[0]);
    else if (!steers(code) || (lines && (code == '\n' || code == '\t')))
        memcpy(piece, text, *m = k);
    else if (code == '\n' || code == '\t' || code == '\r')
        *m = (size_t)snprintf(piece, DC_SHOWN_PIECE, "\\%c",
                              code == '\n'   ? 'n'
                              : code == '\t' ? 't'
                                             : 'r');
    else
        *m = (size_t)snprintf(piece, DC_SHOWN_PIECE, code < 0x80 ? "\\x%02x" : "\\u{%x}", code);
    return k == 0 ? 1 : k;
}

size_t dc_shown_put(char *out, size_t size, const char *text, size_t n, bool lines)
{
    char piece[DC_SHOWN_PIECE];
    size_t wanted = 0, written = 0, m;
    for (size_t at = 0; at < n; wanted += m) {
        at += dc_shown_next(text + at, n - at, lines, piece, &m);
        if (written == wanted && written + m < size) {
            memcpy(out + written, piece, m);
            written += m;
        }
    }
    if (size > 0)
        out[written] = '\0';
    return wanted;
}

bool dc_shown_is_plain(const char *text, size_t n, bool lines)
{
    char piece[DC_SHOWN_PIECE];
    size_t m;
    for (size_t at = 0, k; at < n; at += k) {
        if ((unsigned char)text[at] >= 0x20 && (unsigned char)text[at] < 0x7f) {
            k = 1;
            continue;
        }
        k = dc_shown_next(text + at, n - at, lines, piece, &m);
        if (m != k || memcmp(piece, text + at, k) != 0)
            return false;
    }
    return true;
}

dc_shown_name dc_show_name(const char *name)
{
    enum { END = 4 };
    dc_shown_name out;
    const size_t n = strlen(name);
    if (dc_shown_put(out.s, sizeof out.s - END + 1, name, n, false) > sizeof out.s - END)
        strcat(out.s, "...");
    return out;
}
