/*
 * Tables of Unicode, unpacked from unicode_table.c.
 *
 * The table is a sequence of words of 32 bits, deflated with bytes of the same significance together. It begins with
 * the number of entries of each of seven parts: rows, ranges (first code point, row), lower case (from, to),
 * decompositions (code point, for compatibility?, length), their code points, compositions (two, what they make), scripts (first code point, number). A part
 * is its columns, one behind the other, each value less the one before it.
 */
#include "extras/llm/tokenizer/unicode.h"

#include "core/base/utf8.h"

#include <string.h>
#include <zlib.h>

enum { PARTS = 7, MOST_COLUMNS = 3 };

/* The columns of a part: the values instead of the differences. */
static uint32_t *read_part(uint32_t *at, uint32_t n, uint32_t columns, const uint32_t *column[])
{
    for (uint32_t k = 0; k < columns; k++, at += n) {
        for (uint32_t i = 1; i < n; i++)
            at[i] += at[i - 1];
        column[k] = at;
    }
    return at;
}

static void read_parts(dc_unicode *u, dc_arena *a, uint32_t *words)
{
    static const uint32_t columns[PARTS] = {1, 2, 2, 3, 1, 3, 2};
    const uint32_t *c[PARTS][MOST_COLUMNS];
    uint32_t *at = words + PARTS;
    for (int p = 0; p < PARTS; p++)
        at = read_part(at, words[p], columns[p], c[p]);
    u->nrange = words[1];
    u->nlower = words[2];
    u->ndecomposed = words[3];
    u->ncomposed = words[5];
    u->row = c[0][0];
    u->from = c[1][0];
    u->of = c[1][1];
    u->upper = c[2][0];
    u->lower = c[2][1];
    u->code = c[3][0];
    u->compatible = c[3][1];
    u->pool = c[4][0];
    u->first = c[5][0];
    u->second = c[5][1];
    u->both = c[5][2];
    u->script_from = c[6][0];
    u->script = c[6][1];
    u->nscript = words[6];
    uint32_t *start = DC_NEW_ARRAY(a, uint32_t, u->ndecomposed + 1);
    for (uint32_t i = 0; i < u->ndecomposed; i++)
        start[i + 1] = start[i] + c[3][2][i];
    u->at = start;
    for (uint32_t i = 0; i < u->nrange && u->from[i] < 0x10000; i++) {
        const uint32_t end =
            i + 1 < u->nrange && u->from[i + 1] < 0x10000 ? u->from[i + 1] : 0x10000;
        memset(u->bmp + u->from[i], (int)u->of[i], end - u->from[i]);
    }
}

dc_status dc_unicode_new(dc_job *j, dc_arena *a, const dc_unicode **out)
{
    const uint32_t n = dc_unicode_words;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    uLongf size = (uLongf)n * 4;
    unsigned char *planes = dc_arena_alloc(&j->scratch, size);
    uint32_t *words = DC_NEW_ARRAY(a, uint32_t, n);
    dc_unicode *u = DC_NEW(a, dc_unicode);
    const int code = uncompress(planes, &size, dc_unicode_table, dc_unicode_packed);
    if (code == Z_MEM_ERROR)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    DC_ASSERT(code == Z_OK && size == (uLongf)n * 4, "the table is damaged");
    for (uint32_t i = 0; i < n; i++)
        words[i] = (uint32_t)planes[i] | (uint32_t)planes[n + i] << 8 |
                   (uint32_t)planes[2 * (size_t)n + i] << 16 |
                   (uint32_t)planes[3 * (size_t)n + i] << 24;
    dc_arena_rewind(&j->scratch, mark);
    read_parts(u, a, words);
    *out = u;
    return DC_OK;
}

/* The last of n sorted numbers that is at most x; the first one is. */
static uint32_t find(const uint32_t *sorted, uint32_t n, uint32_t x)
{
    uint32_t lo = 0;
    while (n > 1) {
        const uint32_t half = n / 2;
        if (sorted[lo + half] <= x)
            lo += half;
        n -= half;
    }
    return lo;
}

uint32_t dc_unicode_far(const dc_unicode *u, uint32_t c)
{
    return c < DC_RAW_BYTE ? u->row[u->of[find(u->from, u->nrange, c)]] : 0;
}

uint32_t dc_unicode_lower(const dc_unicode *u, uint32_t c)
{
    const uint32_t i = find(u->upper, u->nlower, c);
    return u->upper[i] == c ? u->lower[i] : c;
}

const uint32_t *dc_unicode_decompose(const dc_unicode *u, uint32_t c, bool compatible, uint32_t *n)
{
    uint32_t i =
        find(u->code, u->ndecomposed, c); /* the one for compatibility is behind the other */
    if (u->code[i] == c && u->compatible[i] && !compatible)
        i = i > 0 ? i - 1 : i;
    if (u->code[i] != c || (u->compatible[i] && !compatible))
        return NULL;
    *n = u->at[i + 1] - u->at[i];
    return u->pool + u->at[i];
}

enum { S = 0xac00, L = 0x1100, V = 0x1161, T = 0x11a7, LS = 19, VS = 21, TS = 28 };

uint32_t dc_unicode_compose(const dc_unicode *u, uint32_t a, uint32_t b)
{
    if (a >= L && a < L + LS && b >= V && b < V + VS)
        return S + ((a - L) * VS + (b - V)) * TS;
    if (a >= S && a < S + LS * VS * TS && (a - S) % TS == 0 && b > T && b < T + TS)
        return a + (b - T);
    const uint32_t lo = find(u->first, u->ncomposed, a); /* the last of the same first */
    for (uint32_t i = lo + 1; i-- > 0 && u->first[i] == a;)
        if (u->second[i] == b)
            return u->both[i];
    return 0;
}

/* ---- UTF-8 ------------------------------------------------------------------------------------ */

uint32_t dc_utf8_far(const char *text, size_t n, size_t *length)
{
    uint32_t c;
    const size_t bytes = dc_utf8_character(text, n, &c);
    *length = bytes > 0 ? bytes : 1;
    return bytes > 0 ? c : (uint32_t)DC_RAW_BYTE + (unsigned char)text[0];
}

size_t dc_utf8_put(uint32_t c, char *to)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 0x3f));
        to[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    if (c >= DC_RAW_BYTE) {
        to[0] = (char)(c - DC_RAW_BYTE);
        return 1;
    }
    to[0] = (char)(0xf0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 0x3f));
    to[2] = (char)(0x80 | (c >> 6 & 0x3f));
    to[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

size_t dc_utf8_broken(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    const size_t want = s[0] < 0xc2 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 1;
    size_t i = 1;
    while (i < want && i < n && (s[i] & 0xc0) == 0x80) {
        /* The second byte of some first ones is in a part of that range. */
        if (i == 1 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
                       (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90)))
            break;
        i++;
    }
    return i;
}
