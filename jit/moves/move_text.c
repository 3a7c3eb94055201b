/*
 * Moves to text and back (jit/moves/move.h): the name of a row of jit/moves/moves.def, then its arguments, with axes and
 * buffers by their names in the kernel.
 */
#include "core/base/digits.h"
#include "jit/moves/move.h"
#include "jit/nest/matrix_tile.h"

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

/* Axis number i of the move: of one that reads a buffer, those from the second on are its dims. */
static bool find_axis(dc_kernel *k, dc_move *m, bool has_buffer, uint32_t i, word w,
                      const char **why)
{
    for (uint32_t a = 0; a < k->axis.n; a++)
        if (is_word(w, k->axis.at[a].name)) {
            m->axis[i] = a;
            return true;
        }
    *why = has_buffer && i > 0
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
        if (!find_axis(k, m, has_buffer, i, w[i], why))
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

const char *dc_move_print(const dc_kernel *k, const dc_move *m, dc_arena *a)
{
    const char *args = dc_move_args(m->kind), *out = dc_move_name(m->kind);
    uint32_t axes = 0;
    while (*args != '\0') {
        size_t len;
        const char *want = next_arg(&args, &len);
        const bool is_axis = is_kind(want, len, "axis");
        if (is_axis && axes == m->naxis)
            break; /* the end of those that repeat */
        if (is_kind(want, len, "count"))
            out = dc_arena_printf(a, "%s %lld", out, (long long)m->count);
        else
            out = dc_arena_printf(a, "%s %s", out,
                                  is_axis                        ? k->axis.at[m->axis[axes++]].name
                                  : is_kind(want, len, "buffer") ? k->buf.at[m->buf].name
                                  : is_kind(want, len, "scope")  ? scopes[m->scope]
                                                                 : dc_tile_row_of(m->tile)->name);
    }
    return out;
}
