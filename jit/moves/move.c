/*
 * Schedule moves on the nest form (jit/moves/moves.def): their table, their text, and how one is applied:
 * on a copy of the tree, which becomes the kernel's if the move fits.
 */
#include "core/base/digits.h"
#include "jit/moves/move_impl.h"
#include "jit/nest/matrix_tile.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TEXT = 8 * 24 };

#define MAX_COUNT ((int64_t)1 << 40)

typedef struct move_row {
    const char *name, *args, *usage;
    bool reassociates;
} move_row;

static const move_row rows[] = {
#define MOVE(id, name, args, reassociates, meaning) \
    [DC_MOVE_##id] = {name, args, "it reads: " name " " args, reassociates},
#include "jit/moves/moves.def"
};

static const char unknown[] = "there is no such move; there are:"
#define MOVE(id, name, ...) " " name
#include "jit/moves/moves.def"
    ;

const char *dc_move_name(dc_move_kind kind)
{
    return rows[kind].name;
}

bool dc_move_reassociates(dc_move_kind kind)
{
    return rows[kind].reassociates;
}

/* Text --------------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

/* The words of the text; -1 with the reason. */
static int words_of(const char *text, char word[][24], int most, const char **why)
{
    int n = 0;
    for (;;) {
        while (is_blank(*text))
            text++;
        if (*text == '\0')
            return n;
        size_t len = 0;
        while (is_word(text[len]))
            len++;
        *why = "a move has letters, digits, _ and . in its words, and blanks between them";
        if (text[len] != '\0' && !is_blank(text[len]))
            return -1;
        *why = "a word of a move has at most 23 characters";
        if (len > 23)
            return -1;
        *why = "a move has at most eight words";
        if (n == most)
            return -1;
        memcpy(word[n], text, len);
        word[n++][len] = '\0';
        text += len;
    }
}

static bool read_count(const char *word, int64_t *out)
{
    uint64_t count;
    if (!dc_digits_whole(word, MAX_COUNT, &count) || count < 1)
        return false;
    *out = (int64_t)count;
    return true;
}

static bool is_scope(const char *word)
{
    return strcmp(word, "local") == 0 || strcmp(word, "thread") == 0 || strcmp(word, "group") == 0;
}

/* Does the word stand for what the pattern wants at this place? */
static bool read_arg(dc_move *m, const char *want, size_t len, const char *word, const char **why)
{
    if (strncmp(want, "count", len) == 0) {
        *why = "a count is a whole number from 1 to 1099511627776";
        return read_count(word, &m->count);
    }
    *why = "a scope is local, thread or group";
    if (strncmp(want, "scope", len) == 0)
        return is_scope(word);
    *why = "there is no such matrix instruction in jit/nest/matrix_tiles.def";
    return strncmp(want, "tile", len) != 0 || dc_tile_find(word) >= 0;
}

static bool read_args(dc_move *m, char word[][24], const char **why)
{
    const char *want = rows[m->kind].args;
    int i = 0;
    while (*want != '\0') {
        const size_t len = strcspn(want, " .");
        const bool many = want[len] == '.';
        if (i == m->n && !many) {
            *why = rows[m->kind].usage;
            return false;
        }
        for (; i < m->n; i++) {
            if (!read_arg(m, want, len, word[i], why))
                return false;
            memcpy(m->arg[i], word[i], sizeof m->arg[i]);
            if (!many) {
                i++;
                break;
            }
        }
        want += len + strspn(want + len, ". ");
    }
    *why = rows[m->kind].usage;
    return i == m->n;
}

bool dc_move_parse(const char *text, dc_move *out, const char **why)
{
    char word[DC_MOVE_ARGS + 1][24];
    const int n = words_of(text, word, DC_MOVE_ARGS + 1, why);
    if (n < 0)
        return false;
    *why = unknown;
    for (int i = 0; n > 0 && i < DC_MOVE__COUNT; i++) {
        if (strcmp(rows[i].name, word[0]) != 0)
            continue;
        *out = (dc_move){.kind = (dc_move_kind)i, .n = n - 1};
        return read_args(out, word + 1, why);
    }
    return false;
}

/* Applying ----------------------------------------------------------------------------------- */

static bool apply(dc_nest_edit *v, const dc_move *m)
{
    switch (m->kind) {
    case DC_MOVE_SPLIT:
    case DC_MOVE_SPLIT_FULL:
        return dc_move_split(v, m);
    case DC_MOVE_CUT:
        return dc_move_cut(v, m);
    case DC_MOVE_PART:
        return dc_move_part(v, m);
    case DC_MOVE_REORDER:
    case DC_MOVE_REORDER_REDUCE:
        return dc_move_reorder(v, m);
    case DC_MOVE_FUSE:
        return dc_move_fuse(v, m);
    case DC_MOVE_PAD:
        return dc_move_pad(v, m);
    case DC_MOVE_VECTORIZE:
        return dc_move_vectorize(v, m);
    case DC_MOVE_UNROLL:
        return dc_move_unroll(v, m);
    case DC_MOVE_GRID:
        return dc_move_grid(v, m);
    case DC_MOVE_BLOCK:
    case DC_MOVE_LANE:
        return dc_move_block(v, m);
    case DC_MOVE_SCOPE:
        return dc_move_scope(v, m);
    case DC_MOVE_CACHE_READ:
    case DC_MOVE_PACK:
        return dc_move_cache_read(v, m);
    case DC_MOVE_CACHE_WRITE:
        return dc_move_cache_write(v, m);
    case DC_MOVE_COMPUTE_AT:
        return dc_move_compute_at(v, m);
    case DC_MOVE_SPLIT_REDUCE:
        return dc_move_split_reduce(v, m);
    case DC_MOVE_SUBTOTAL:
        return dc_move_subtotal(v, m);
    case DC_MOVE_WINDOW_READ:
        return dc_move_window_read(v, m);
    case DC_MOVE_TENSORIZE:
        return dc_move_tensorize(v, m);
    case DC_MOVE__COUNT:
        break;
    }
    DC_BUG("move %d", (int)m->kind);
}

typedef struct state { /* what a refused move puts back */
    dc_stmt *root;
    dc_axis *axis;
    dc_buffer *buf;
    uint32_t naxis, nbuf;
} state;

static state save(dc_nest_edit *v)
{
    dc_kernel *k = v->k;
    state s = {.root = k->root, .naxis = k->axis.n, .nbuf = k->buf.n};
    s.axis = DC_NEW_ARRAY(v->tmp, dc_axis, s.naxis);
    s.buf = DC_NEW_ARRAY(v->tmp, dc_buffer, s.nbuf);
    if (s.naxis > 0)
        memcpy(s.axis, k->axis.at, s.naxis * sizeof *s.axis);
    if (s.nbuf > 0)
        memcpy(s.buf, k->buf.at, s.nbuf * sizeof *s.buf);
    k->root = dc_stmt_copy(k, s.root);
    return s;
}

/* Axes made meanwhile stay, without a name: index expressions know their extents by number. */
static void restore(dc_kernel *k, const state *s)
{
    k->root = s->root;
    k->buf.n = s->nbuf;
    for (uint32_t i = s->naxis; i < k->axis.n; i++)
        k->axis.at[i].name = "";
    if (s->naxis > 0)
        memcpy(k->axis.at, s->axis, s->naxis * sizeof *s->axis);
    if (s->nbuf > 0)
        memcpy(k->buf.at, s->buf, s->nbuf * sizeof *s->buf);
}

static bool apply_checked(dc_kernel *k, const dc_move *m, const char **why)
{
    dc_job *j = dc_job_here();
    dc_arena own = {0};
    dc_nest_edit v = {.k = k, .tmp = j != NULL ? &j->scratch : &own};
    const dc_mark mark = dc_arena_mark(v.tmp);
    const state before = save(&v);
    const bool done =
        apply(&v, m) && dc_move_stands(&v) && dc_move_settle(&v, m) && dc_move_keeps(&v);
    if (!done)
        restore(k, &before);
    dc_arena_rewind(v.tmp, mark);
    dc_arena_free(&own);
    *why = done ? "" : v.why;
    DC_ASSERT(done || v.why != NULL, "%s was refused without a reason", rows[m->kind].name);
    return done;
}

bool dc_move_do(dc_kernel *k, const char **why, const char *fmt, ...)
{
    char text[MAX_TEXT + 1];
    dc_move m;
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    *why = "a move has at most eight words";
    if (n < 0 || n > MAX_TEXT || !dc_move_parse(text, &m, why) || !apply_checked(k, &m, why))
        return false;
    const char *kept = rows[m.kind].name;
    for (int i = 0; i < m.n; i++)
        kept = dc_arena_printf(&k->arena, "%s %s", kept, m.arg[i]);
    DC_PUSH_IN(&k->arena, k->moves, kept);
    return true;
}
