/*
 * Maps of characters that SentencePiece has precompiled: a double array (Darts) of what may stand in a text, whose values
 * are places in a pool of texts that it becomes. And SentencePiece's own normalizer, which works with one.
 */
#include "core/base/path.h"
#include "extras/llm/tokenizer/impl.h"

#include <string.h>

/* The size of the array, the array, the pool. */
dc_status dc_charsmap_read(dc_building *b, dc_span bytes, dc_charsmap *out)
{
    uint32_t size;
    if (bytes.n < 4)
        return dc_refuse(b, "the precompiled map of characters is cut off");
    memcpy(&size, bytes.at, 4);
    if (size % 4 != 0 || size > bytes.n - 4 || size == 0)
        return dc_refuse(b, "the precompiled map of characters has %zu bytes for an array of %u",
                         bytes.n, size);
    uint32_t *unit = dc_arena_alloc(&b->t->keep, size);
    memcpy(unit, bytes.at + 4, size);
    out->unit = unit;
    out->nunit = size / 4;
    out->npool = bytes.n - 4 - size;
    char *pool = dc_arena_alloc(&b->t->keep, out->npool + 1);
    memcpy(pool, bytes.at + 4 + size, out->npool);
    out->pool = pool;
    return DC_OK;
}

/* Of Darts: the distance to the children of a unit. */
static uint32_t offset(uint32_t unit)
{
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* An array may lead in a circle, and keys be as long as the text. Those of files are some characters. */
enum { MOST_KEY = 256 };

/* The longest key that s begins with, or the shortest: its length, and its value. */
static size_t find(const dc_charsmap *m, const char *s, size_t n, bool shortest, uint32_t *value)
{
    size_t found = 0;
    uint32_t at = m->nunit > 0 ? offset(m->unit[0]) : 0;
    for (size_t i = 0; i < n && i < MOST_KEY && s[i] != '\0'; i++) {
        at ^= (unsigned char)s[i];
        if (at >= m->nunit || (m->unit[at] & (1u << 31 | 0xff)) != (unsigned char)s[i])
            break;
        const uint32_t unit = m->unit[at];
        at ^= offset(unit);
        if (at >= m->nunit)
            break;
        if (unit >> 8 & 1) {
            found = i + 1;
            *value = m->unit[at] & 0x7fffffffu;
            if (shortest)
                break;
        }
    }
    return found;
}

size_t dc_charsmap_next(const dc_charsmap *m, const char *s, size_t n, dc_span *to)
{
    uint32_t value = 0;
    size_t length;
    const size_t found = find(m, s, n, false, &value);
    if (found > 0 && value < m->npool) {
        *to = (dc_span){m->pool + value, strlen(m->pool + value)};
        return found;
    }
    dc_utf8_next(s, n, &length);
    *to = (dc_span){s, length};
    return length;
}

bool dc_charsmap_first(const dc_charsmap *m, const char *s, size_t n, dc_span *to)
{
    uint32_t value = 0;
    if (find(m, s, n, true, &value) == 0 || value >= m->npool)
        return false;
    *to = (dc_span){m->pool + value, strlen(m->pool + value)};
    return true;
}

static size_t next(dc_tokenizer *t, const dc_step *s, const char *at, size_t n, dc_span *to)
{
    uint32_t id;
    dc_tokenizer_look(t, 64);
    const size_t own = t->model.has_frozen ? dc_trie_longest(&t->model.trie, at, n, &id) : 0;
    if (own > 0 &&
        t->model.frozen[id] == DC_FROZEN_USER) { /* what the user defined stays as it is */
        *to = (dc_span){at, own};
        return own;
    }
    return dc_charsmap_next(&s->map, at, n, to);
}

/* Adds what a character became, blanks as signs for them; of blanks in a row one where `collapse` asks for it. */
static bool put(const dc_step *s, dc_writing *w, dc_span to, dc_range from, bool blank)
{
    for (size_t i = 0; s->collapse && blank && i < to.n && to.at[i] == ' ';) {
        to.at++;
        to.n--;
    }
    if (to.n == 0)
        return blank;
    for (size_t i = 0; i < to.n; i++) {
        if (s->escape && to.at[i] == ' ')
            dc_write_put(w, "\xe2\x96\x81", 3, from);
        else
            dc_write_put(w, to.at + i, 1, from);
    }
    return to.at[to.n - 1] == ' ';
}

static void drop_end(const dc_step *s, dc_writing *w)
{
    const char *sign = s->escape ? "\xe2\x96\x81" : " ";
    const size_t n = strlen(sign);
    while (w->n >= n && memcmp(w->s + w->n - n, sign, n) == 0)
        w->n -= n;
}

dc_piece dc_sentencepiece_normalize(dc_tokenizer *t, const dc_step *s, dc_piece p, dc_writing *w)
{
    static const dc_span space = {" ", 1};
    size_t at = 0, length;
    dc_span to;
    const dc_range none = {0, 0};
    dc_write_reset(w, p.from != NULL);
    while (s->collapse && at < p.n) {
        length = next(t, s, p.s + at, p.n - at, &to);
        if (to.n != 1 || *to.at != ' ')
            break;
        at += length;
    }
    const bool any = at < p.n;
    if (any && s->dummy && !s->suffix)
        put(s, w, space, p.from != NULL ? p.from[at] : none, false);
    for (bool blank = s->collapse; at < p.n; at += length) {
        length = next(t, s, p.s + at, p.n - at, &to);
        blank = put(s, w, to, p.from != NULL ? p.from[at] : none, blank);
        blank = blank && s->collapse;
    }
    if (s->collapse)
        drop_end(s, w);
    if (any && s->dummy && s->suffix)
        put(s, w, space, p.from != NULL ? p.from[p.n - 1] : none, false);
    p.s = w->n > 0 ? w->s : "";
    p.n = w->n;
    p.from = w->ranges && w->n > 0 ? w->from : NULL;
    return p;
}
