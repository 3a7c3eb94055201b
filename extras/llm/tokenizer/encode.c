/*
 * A text, or two, as numbers of tokens: cut by added.c and what follows it, shortened to what may be, special tokens put
 * around.
 */
#include "extras/llm/tokenizer/impl.h"

#include <string.h>

/* ---- the text --------------------------------------------------------------------------------- */

static bool is_utf8(dc_span s)
{
    size_t length;
    for (size_t at = 0; at < s.n; at += length)
        if (dc_char_at(s.at, s.n, at, &length) >= DC_RAW_BYTE)
            return false;
    return true;
}

/* Does any byte have a token? */
static bool takes_bytes(const dc_tokenizer *t)
{
    for (uint32_t i = 0; i < t->normalizer.n; i++)
        if (t->normalizer.at[i].kind == DC_STEP_BYTES)
            return true;
    for (uint32_t i = 0; i < t->cutter.n; i++)
        if (t->cutter.at[i].kind == DC_STEP_CUT_BYTES)
            return true;
    return false;
}

/* What is no UTF-8 as U+FFFD, into memory that lives as long as the entry. `map`: from where each byte is. */
static dc_span repair(dc_job *j, dc_span s, dc_range **map)
{
    char *to = dc_arena_alloc(&j->scratch, s.n * 3 + 1);
    dc_range *range = map != NULL ? DC_NEW_ARRAY(&j->scratch, dc_range, s.n * 3 + 1) : NULL;
    size_t n = 0;
    for (size_t at = 0, length; at < s.n; at += length) {
        const bool raw = dc_char_at(s.at, s.n, at, &length) >= DC_RAW_BYTE;
        length = raw ? dc_utf8_broken(s.at + at, s.n - at) : length;
        const size_t k = raw ? 3 : length;
        memcpy(to + n, raw ? "\xef\xbf\xbd" : s.at + at, k);
        for (size_t i = 0; range != NULL && i < k; i++)
            range[n + i] = (dc_range){(uint32_t)at, (uint32_t)(at + length)};
        n += k;
    }
    if (map != NULL)
        *map = range;
    return (dc_span){to, n};
}

/* Each byte is from the character that it is part of. */
static const dc_range *ranges_of(dc_tokenizer *t, dc_span s)
{
    t->origin.n = 0;
    for (size_t at = 0, length; at < s.n; at += length) {
        dc_char_at(s.at, s.n, at, &length);
        const dc_range r = {(uint32_t)at, (uint32_t)(at + length)};
        for (size_t i = 0; i < length; i++)
            DC_PUSH(t->origin, r);
    }
    return t->origin.at;
}

/* The place n characters behind one, or before it, in a text. */
static size_t move(dc_span s, size_t at, size_t n, bool back)
{
    size_t length;
    for (; n > 0 && !back && at < s.n; n--, at += length)
        dc_char_at(s.at, s.n, at, &length);
    for (; n > 0 && back && at > 0; n--)
        do
            at--;
        while (at > 0 && ((unsigned char)s.at[at] & 0xc0) == 0x80);
    return at;
}

/* Blanks that a text begins and ends with, in characters. */
static void count_blanks(const dc_tokenizer *t, dc_span s, size_t *before, size_t *behind)
{
    bool begun = false;
    *before = *behind = 0;
    for (size_t at = 0, length; at < s.n; at += length) {
        const uint32_t c = dc_char_at(s.at, s.n, at, &length);
        const bool blank = dc_unicode_row(t->u, c) & DC_UC_SPACE;
        begun = begun || !blank;
        *before += !begun;
        *behind = blank ? *behind + 1 : 0;
    }
}

/* The same of bytes that a token of the byte-level alphabet stands for: only the space is one there. */
static void count_spaces(dc_span s, size_t *before, size_t *behind)
{
    *before = *behind = 0;
    while (*before < s.n && s.at[*before] == ' ')
        ++*before;
    while (*behind < s.n && s.at[s.n - 1 - *behind] == ' ')
        ++*behind;
}

/* ByteLevel's post-processor: ranges without the blanks that the tokens begin and end with. */
static void trim(const dc_tokenizer *t, dc_span s, const dc_ids *ids, dc_ranges *ranges)
{
    for (uint32_t i = 0; i < ids->n; i++) {
        const uint32_t id = ids->at[i];
        dc_range *r = &ranges->at[i];
        size_t before, behind;
        if (t->added_of[id] != 0)
            count_blanks(t, (dc_span){s.at + r->from, r->to - r->from}, &before, &behind);
        else if (t->model.bytes && t->model.vocab.token[id].at != NULL)
            count_spaces(t->model.vocab.token[id], &before, &behind);
        else
            count_blanks(t, dc_tokenizer_token(t, id), &before, &behind);
        if (before > 0 && t->trim_prefix && (i == 0 || r->from == 0))
            before--;
        const size_t from = move(s, r->from, before, false), to = move(s, r->to, behind, true);
        r->from = from < r->to ? (uint32_t)from : r->to;
        if (behind <= r->to)
            r->to = to > r->from ? (uint32_t)to : r->from;
    }
}

static dc_status encode_text(dc_tokenizer *t, dc_job *j, dc_span s, int which, const dc_encode *e)
{
    dc_range *map = NULL;
    const bool whole = takes_bytes(t) || is_utf8(s);
    const dc_span text = whole ? s : repair(j, s, e->offsets ? &map : NULL);
    t->job = j;
    t->parse_special = e->parse_special;
    t->to = &t->ids[which];
    t->to->n = 0;
    t->to_ranges = e->offsets ? &t->ranges[which] : NULL;
    t->ranges[which].n = 0;
    dc_added_encode(t, (dc_piece){.s = text.at,
                                  .n = text.n,
                                  .from = !e->offsets || text.n == 0 ? NULL
                                          : map != NULL              ? map
                                                                     : ranges_of(t, text),
                                  .first = true});
    if (e->offsets && t->trim)
        trim(t, s, t->to, t->to_ranges);
    return j->err.status;
}

/* ---- special tokens --------------------------------------------------------------------------- */

/* How many tokens of both stay, as "longest first" has it. */
static void shorten(size_t n[2], size_t most, bool two)
{
    const bool swapped = n[0] > n[1];
    if (n[0] + n[1] <= most)
        return;
    if (!two) {
        n[0] = most;
        return;
    }
    size_t a = n[swapped], b = n[!swapped]; /* a <= b */
    b = a > most ? a : (size_t)dc_max_i64((int64_t)a, (int64_t)(most - a));
    if (a + b > most) {
        a = most / 2;
        b = a + most % 2;
    }
    n[swapped] = a;
    n[!swapped] = b;
}

static void put(dc_tokenizer *t, uint32_t id, uint8_t type, bool added, dc_range r, bool ranges)
{
    DC_PUSH(t->out, id);
    DC_PUSH(t->types, type);
    DC_PUSH(t->marks, added);
    if (ranges)
        DC_PUSH(t->out_ranges, r);
}

static void put_all(dc_tokenizer *t, int which, size_t n, uint8_t type, bool ranges)
{
    const dc_range none = {0, 0};
    for (size_t i = 0; i < n; i++) {
        dc_tokenizer_look(t, 4);
        put(t, t->ids[which].at[i], type, false, ranges ? t->ranges[which].at[i] : none, ranges);
    }
}

static void put_template(dc_tokenizer *t, const dc_template *m, const size_t n[2], bool ranges)
{
    const dc_range none = {0, 0};
    for (uint32_t i = 0; i < m->n; i++) {
        const dc_part *part = &m->part[i];
        if (part->kind == DC_PART_TOKEN)
            put(t, part->id, part->type, true, none, ranges);
        else
            put_all(t, part->kind == DC_PART_PAIR, n[part->kind == DC_PART_PAIR], part->type,
                    ranges);
    }
}

dc_status dc_tokenizer_encode(dc_tokenizer *t, dc_job *j, const dc_encode *e, dc_encoded *out)
{
    const bool two = e->pair.at != NULL;
    const dc_template *m = two ? &t->pair : &t->single;
    const size_t own = e->special && m->n > 0 ? m->ntoken : 0;
    if (e->text.n > INT32_MAX || (two && e->pair.n > INT32_MAX))
        return dc_failf(j, DC_ERR_ARG, "encode", "a text of %zu bytes: 2 GiB are the most",
                        e->text.n > INT32_MAX ? e->text.n : e->pair.n);
    if (e->most >= 0 && (uint64_t)e->most < own)
        return dc_failf(j, DC_ERR_ARG, "encode", "max is %d, and %zu special tokens are added",
                        (int)e->most, own);
    t->ids[1].n = 0;
    t->work = dc_regex_work(e->text.n + (two ? e->pair.n : 0));
    DC_TRY(encode_text(t, j, e->text, 0, e));
    if (two)
        DC_TRY(encode_text(t, j, e->pair, 1, e));
    size_t n[2] = {t->ids[0].n, t->ids[1].n};
    if (e->most >= 0)
        shorten(n, (size_t)e->most - own, two);
    t->out.n = t->types.n = t->marks.n = t->out_ranges.n = 0;
    if (e->special && m->n > 0) {
        put_template(t, m, n, e->offsets);
    } else {
        put_all(t, 0, n[0], 0, e->offsets);
        put_all(t, 1, n[1], 1, e->offsets);
    }
    *out = (dc_encoded){.id = t->out.at,
                        .type = t->types.at,
                        .added = t->marks.at,
                        .range = e->offsets ? t->out_ranges.at : NULL,
                        .n = t->out.n};
    return DC_OK;
}
