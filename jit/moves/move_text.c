/*
 * Moves to text and back (jit/moves/move.h): the name of a row of jit/moves/moves.def, then its arguments, with axes and
 * buffers by their names in the kernel.
 */
#include "core/base/digits.h"
#include "jit/moves/move.h"
#include "jit/nest/matrix_tile.h"

#include <stdio.h>
#include <string.h>

enum { MAX_WORDS = DC_MOVE_AXES + 1 };

#define MAX_COUNT ((uint64_t)1 << 40)

typedef struct word {
    const char *s;
    int n;
} word;

static const char *const usage[] = {
#define MOVE(id, name, function, args, ...) [DC_MOVE_##id] = "it reads: " name " " args,
#include "jit/moves/moves.def"
};

static const char unknown[] = "there is no such move; there are:"
#define MOVE(id, name, ...) " " name
#include "jit/moves/moves.def"
    ;

static const char *const scopes[] = {
    [DC_SCOPE_LOCAL] = "local", [DC_SCOPE_THREAD] = "thread", [DC_SCOPE_GROUP] = "group"};

static bool is_word(word w, const char *text)
{
    return strlen(text) == (size_t)w.n && memcmp(text, w.s, (size_t)w.n) == 0;
}

/* The kind of argument at the place in the list of a row; the last one repeats where it ends in "...". */
static const char *next_arg(const char **args, size_t *len)
{
    const char *want = *args;
    *len = strcspn(want, " .");
    if (want[*len] != '.')
        *args = want + *len + strspn(want + *len, " ");
    return want;
}

static bool is_kind(const char *want, size_t len, const char *kind)
{
    return strlen(kind) == len && memcmp(want, kind, len) == 0;
}

/* Words -------------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

/* The words of the text; -1 with the reason. */
static int words_of(const char *text, word *out, const char **why)
{
    for (int n = 0;; n++) {
        while (is_blank(*text))
            text++;
        if (*text == '\0')
            return n;
        size_t len = 0;
        while (is_letter(text[len]))
            len++;
        *why = "a move has letters, digits, _ and . in its words, and blanks between them";
        if (text[len] != '\0' && !is_blank(text[len]))
            return -1;
        *why = "a move has at most eight words";
        if (n == MAX_WORDS)
            return -1;
        out[n] = (word){text, (int)len};
        text += len;
    }
}

/* Arguments without the kernel ---------------------------------------------------------------- */

static bool read_count(word w, int64_t *out)
{
    char digits[24];
    uint64_t count;
    if ((size_t)w.n >= sizeof digits)
        return false;
    memcpy(digits, w.s, (size_t)w.n);
    digits[w.n] = '\0';
    if (!dc_digits_whole(digits, MAX_COUNT, &count) || count < 1)
        return false;
    *out = (int64_t)count;
    return true;
}

static bool read_scope(word w, dc_scope *out)
{
    for (dc_scope s = DC_SCOPE_LOCAL; s <= DC_SCOPE_GROUP; s++)
        if (is_word(w, scopes[s])) {
            *out = s;
            return true;
        }
    return false;
}

static bool read_tile(word w, uint32_t *out)
{
    for (uint32_t i = 0; i < DC_TILE__COUNT; i++)
        if (is_word(w, dc_tile_row_of(i)->name)) {
            *out = i;
            return true;
        }
    return false;
}

/* Axes are counted, buffers left for later. */
static bool read_arg(dc_move *m, const char *want, size_t len, word w, const char **why)
{
    if (is_kind(want, len, "axis"))
        m->naxis++;
    if (is_kind(want, len, "count")) {
        *why = "a count is a whole number from 1 to 1099511627776";
        return read_count(w, &m->count);
    }
    if (is_kind(want, len, "scope")) {
        *why = "a scope is local, thread or group";
        return read_scope(w, &m->scope);
    }
    if (is_kind(want, len, "tile")) {
        *why = "there is no such matrix instruction in jit/nest/matrix_tiles.def";
        return read_tile(w, &m->tile);
    }
    return true;
}

static bool read_args(dc_move *m, const word *w, int n, const char **why)
{
    const char *args = dc_move_args(m->kind);
    for (int i = 0; i < n; i++) {
        size_t len;
        const char *want = next_arg(&args, &len);
        if (*want == '\0') {
            *why = usage[m->kind];
            return false;
        }
        if (!read_arg(m, want, len, w[i], why))
            return false;
    }
    *why = usage[m->kind];
    return *args == '\0' || (n > 0 && args[strcspn(args, " .")] == '.');
}

/* Axes and buffers ---------------------------------------------------------------------------- */

static bool find_buffer(dc_kernel *k, word w, uint32_t *out, const char **why)
{
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (is_word(w, k->buf.at[b].name)) {
            *out = b;
            return true;
        }
    *why = dc_arena_printf(&k->arena, "there is no buffer %.*s", w.n, w.s);
    return false;
}

/* Axis number i of the move: of one that copies a buffer, those from the second on are its dims. */
static bool find_axis(dc_kernel *k, dc_move *m, bool copies, uint32_t i, word w, const char **why)
{
    for (uint32_t a = 0; a < k->axis.n; a++)
        if (is_word(w, k->axis.at[a].name)) {
            m->axis[i] = a;
            return true;
        }
    *why = copies && i > 0
               ? dc_arena_printf(&k->arena, "%.*s is no dim of what is read of %s (or named twice)",
                                 w.n, w.s, k->buf.at[m->buf].name)
               : dc_arena_printf(&k->arena, "there is no loop over %.*s", w.n, w.s);
    return false;
}

static bool find_names(dc_kernel *k, dc_move *m, const word *w, const char **why)
{
    const bool has_buffer = strncmp(dc_move_args(m->kind), "buffer", 6) == 0;
    if (has_buffer && !find_buffer(k, *w++, &m->buf, why))
        return false;
    for (uint32_t i = 0; i < m->naxis; i++)
        if (!find_axis(k, m, has_buffer && dc_move_effect_of(m->kind) != DC_MOVE_TRAFFIC, i, w[i],
                       why))
            return false;
    return true;
}

bool dc_move_parse(dc_kernel *k, const char *text, dc_move *out, const char **why)
{
    word w[MAX_WORDS];
    const int n = words_of(text, w, why);
    if (n < 0)
        return false;
    *why = unknown;
    for (dc_move_kind i = 0; n > 0 && i < DC_MOVE__COUNT; i++)
        if (is_word(w[0], dc_move_name(i))) {
            *out = (dc_move){.kind = i};
            return read_args(out, w + 1, n - 1, why) &&
                   (k == NULL || find_names(k, out, w + 1, why));
        }
    return false;
}

/* Printing ------------------------------------------------------------------------------------ */

/* Word i of the text of a move, a number in `digits`; NULL: it has no more. */
static const char *word_at(const dc_kernel *k, const dc_move *m, uint32_t i, char digits[24])
{
    const char *args = dc_move_args(m->kind), *want = args;
    const uint32_t first = strncmp(args, "buffer", 6) == 0 ? 1 : 0;
    size_t len = 0;
    if (i == 0)
        return dc_move_name(m->kind);
    for (uint32_t n = 0; n < i && *want != '\0'; n++)
        want = next_arg(&args, &len);
    if (*want == '\0')
        return NULL;
    if (is_kind(want, len, "buffer"))
        return k->buf.at[m->buf].name;
    if (is_kind(want, len, "scope"))
        return scopes[m->scope];
    if (is_kind(want, len, "tile"))
        return dc_tile_row_of(m->tile)->name;
    if (is_kind(want, len, "axis"))
        return i - 1 - first < m->naxis ? k->axis.at[m->axis[i - 1 - first]].name : NULL;
    snprintf(digits, 24, "%lld", (long long)m->count);
    return digits;
}

void dc_move_print(const dc_kernel *k, const dc_move *m, dc_text *out)
{
    char digits[24];
    const char *w;
    for (uint32_t i = 0; (w = word_at(k, m, i, digits)) != NULL; i++)
        dc_text_printf(out, "%s%s", i > 0 ? " " : "", w);
}

const char *dc_move_text(const dc_kernel *k, const dc_move *m, dc_arena *a)
{
    char digits[24];
    const char *w;
    size_t n = 0;
    for (uint32_t i = 0; (w = word_at(k, m, i, digits)) != NULL; i++)
        n += strlen(w) + 1;
    char *out = dc_arena_alloc(a, n), *end = out;
    for (uint32_t i = 0; (w = word_at(k, m, i, digits)) != NULL; i++) {
        if (i > 0)
            *end++ = ' ';
        memcpy(end, w, strlen(w));
        end += strlen(w);
    }
    *end = '\0';
    return out;
}
