/*
 * Normalizers: a piece becomes another one. A step that changes nothing gives its piece back; one that does writes into
 * the buffer of its place.
 */
#include "extras/llm/tokenizer/impl.h"

#include <string.h>

/* ---- writing ---------------------------------------------------------------------------------- */

void dc_write_reset(dc_writing *w, bool ranges)
{
    w->n = 0;
    w->ranges = ranges;
}

static void grow(dc_writing *w, size_t n)
{
    size_t cap = w->cap;
    n += w->s == NULL; /* never NULL afterwards */
    if (w->n + n <= w->cap && (!w->ranges || w->from != NULL))
        return;
    if (w->n + n > INT32_MAX) /* what texts may have: places are of 32 bits */
        dc_nomem(w->n + n);
    dc_job_look();
    while (cap < w->n + n)
        cap = cap * 2 + 256;
    w->s = dc_xrealloc(w->s, cap);
    if (w->ranges || w->from != NULL)
        w->from = dc_xrealloc(w->from, cap * sizeof *w->from);
    w->cap = cap;
}

void dc_write_put(dc_writing *w, const char *s, size_t n, dc_range from)
{
    grow(w, n);
    memcpy(w->s + w->n, s, n);
    for (size_t i = 0; w->ranges && i < n; i++)
        w->from[w->n + i] = from;
    w->n += n;
}

static void put_code(dc_writing *w, uint32_t c, dc_range from)
{
    char bytes[4];
    dc_write_put(w, bytes, dc_utf8_put(c, bytes), from);
}

static dc_range range_at(const dc_piece *p, size_t at)
{
    return p->from != NULL ? p->from[at] : (dc_range){0, 0};
}

/* Bytes at to at + n of the piece as they are. */
static void put_part(dc_writing *w, const dc_piece *p, size_t at, size_t n)
{
    grow(w, n);
    memcpy(w->s + w->n, p->s + at, n);
    if (w->ranges)
        memcpy(w->from + w->n, p->from + at, n * sizeof *w->from);
    w->n += n;
}

static dc_piece written(const dc_writing *w, dc_piece p)
{
    p.s = w->n > 0 ? w->s : "";
    p.n = w->n;
    p.from = w->ranges && w->n > 0 ? w->from : NULL;
    return p;
}

static bool is_ascii(const dc_piece *p)
{
    size_t i = 0;
    uint64_t w;
    for (; i + 8 <= p->n; i += 8) {
        memcpy(&w, p->s + i, 8);
        if ((w & 0x8080808080808080u) != 0)
            return false;
    }
    for (; i < p->n; i++)
        if ((unsigned char)p->s[i] >= 0x80)
            return false;
    return true;
}

/* ---- the four forms --------------------------------------------------------------------------- */

enum { S = 0xac00, L = 0x1100, V = 0x1161, T = 0x11a7, VS = 21, TS = 28, SYLLABLES = 11172 };

typedef struct mark {
    uint32_t code;
    unsigned order; /* combining class */
    bool inserted;  /* a part behind the first one of a decomposition */
    dc_range from;
} mark;

typedef struct forming {
    dc_tokenizer *t;
    dc_writing *w;
    bool compose;
    DC_VEC(mark) held; /* a starter and what is behind it; or marks alone */
    dc_ranges ranges;
} forming;

/* Marks into the order of their classes, equal ones as they came. Long runs are a mark of hostile text. */
static void sort_marks(mark *m, uint32_t n)
{
    if (n > 64) { /* by counting, in linear time */
        mark *copy = dc_xalloc((size_t)n * sizeof *copy);
        uint32_t start[257] = {0}, at[256];
        for (uint32_t i = 0; i < n; i++)
            start[m[i].order + 1]++;
        for (int k = 0; k < 256; k++) {
            start[k + 1] += start[k];
            at[k] = start[k];
        }
        for (uint32_t i = 0; i < n; i++)
            copy[at[m[i].order]++] = m[i];
        memcpy(m, copy, (size_t)n * sizeof *m);
        dc_xfree(copy);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        const mark x = m[i];
        uint32_t k = i;
        for (; k > 0 && m[k - 1].order > x.order; k--)
            m[k] = m[k - 1];
        m[k] = x;
    }
}

/* What is held begins with a starter: marks that no other one keeps from it become part of it. Returns how many of these were
 * characters of the text. */
static uint32_t compose(forming *f)
{
    mark *m = f->held.at;
    unsigned last = 0;
    uint32_t k = 1, read = 0;
    for (uint32_t i = 1; i < f->held.n; i++) {
        dc_tokenizer_look(f->t, 2);
        const uint32_t both =
            last < m[i].order ? dc_unicode_compose(f->t->u, m[0].code, m[i].code) : 0;
        if (both != 0) {
            m[0].code = both;
            read += !m[i].inserted;
        } else {
            last = m[i].order;
            m[k++] = m[i];
        }
    }
    f->held.n = k;
    return read;
}

/*
 * Marks are put into their order, and composed where that is asked for. Ranges stay in the order of the text, one for each
 * character that was read, as the packages have it.
 */
static void settle(forming *f)
{
    const uint32_t starter = f->held.at[0].order == 0;
    const uint32_t n = f->held.n;
    dc_range last = f->held.at[0].from;
    for (uint32_t i = starter; f->w->ranges && i < n; i++)
        if (!f->held.at[i].inserted)
            DC_PUSH(f->ranges, f->held.at[i].from);
    sort_marks(f->held.at + starter, n - starter);
    uint32_t k = f->compose && starter ? compose(f) : 0;
    if (f->w->ranges && k > 0)
        last = f->ranges.at[k - 1];
    for (uint32_t i = starter; f->w->ranges && i < f->held.n; i++) {
        if (!f->held.at[i].inserted)
            last = f->ranges.at[k++];
        f->held.at[i].from = last;
    }
    f->ranges.n = 0;
}

static void flush(forming *f)
{
    for (uint32_t i = 0; i < f->held.n; i++) {
        dc_tokenizer_look(f->t, 1);
        put_code(f->w, f->held.at[i].code, f->held.at[i].from);
    }
    f->held.n = 0;
}

static void add(forming *f, uint32_t c, bool inserted, dc_range from)
{
    const uint32_t row = dc_unicode_row(f->t->u, c);
    const unsigned order = row >> 8 & 255;
    if (order == 0 && f->held.n > 0) {
        settle(f);
        /* Two starters combine where no mark is left between them. */
        const bool adjacent = f->held.n == 1 && f->held.at[0].order == 0;
        const uint32_t both = f->compose && adjacent && (row & DC_UC_SECOND)
                                  ? dc_unicode_compose(f->t->u, f->held.at[0].code, c)
                                  : 0;
        if (both != 0) {
            f->held.at[0].code = both;
            return;
        }
        flush(f);
    }
    const mark m = {c, order, inserted, from};
    DC_PUSH(f->held, m);
}

static void decompose(forming *f, uint32_t c, bool compatible, dc_range from)
{
    uint32_t n;
    if (c >= S && c < S + SYLLABLES) {
        const uint32_t k = c - S;
        add(f, L + k / (VS * TS), false, from);
        add(f, V + k / TS % VS, true, from);
        if (k % TS != 0)
            add(f, T + k % TS, true, from);
        return;
    }
    const uint32_t flags = DC_UC_NFD | (compatible ? DC_UC_NFKD : 0);
    const uint32_t *to = dc_unicode_row(f->t->u, c) & flags
                             ? dc_unicode_decompose(f->t->u, c, compatible, &n)
                             : NULL;
    if (to == NULL) {
        add(f, c, false, from);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        add(f, to[i], i > 0, from);
}

static void free_held(void *what)
{
    forming *f = what;
    DC_VEC_FREE(f->held);
    DC_VEC_FREE(f->ranges);
}

static dc_piece normal_form(dc_tokenizer *t, dc_step_kind kind, dc_piece p, dc_writing *w)
{
    const bool compatible = kind == DC_STEP_NFKC || kind == DC_STEP_NFKD;
    if (is_ascii(&p))
        return p;
    forming *f = DC_NEW(&t->job->scratch, forming);
    *f = (forming){.t = t, .w = w, .compose = kind == DC_STEP_NFC || kind == DC_STEP_NFKC};
    dc_job_defer(t->job, free_held, f);
    dc_write_reset(w, p.from != NULL);
    for (size_t at = 0, length; at < p.n; at += length)
        decompose(f, dc_char_at(p.s, p.n, at, &length), compatible, range_at(&p, at));
    if (f->held.n > 0)
        settle(f);
    flush(f);
    dc_job_keep(t->job, f);
    free_held(f);
    return written(w, p);
}

/* ---- letters ---------------------------------------------------------------------------------- */

static void put_lower(const dc_tokenizer *t, dc_writing *w, uint32_t c, dc_range from)
{
    if (c == 0x130) {
        dc_write_put(w, "i\xcc\x87", 3, from);
        return;
    }
    put_code(w, dc_unicode_row(t->u, c) & DC_UC_UPPER ? dc_unicode_lower(t->u, c) : c, from);
}

static dc_piece lower(const dc_tokenizer *t, dc_piece p, dc_writing *w)
{
    dc_write_reset(w, p.from != NULL);
    for (size_t at = 0, length; at < p.n; at += length)
        put_lower(t, w, dc_char_at(p.s, p.n, at, &length), range_at(&p, at));
    return written(w, p);
}

static dc_piece without(const dc_tokenizer *t, dc_piece p, uint32_t flag, bool low, dc_writing *w)
{
    dc_write_reset(w, p.from != NULL);
    for (size_t at = 0, length; at < p.n; at += length) {
        const uint32_t c = dc_char_at(p.s, p.n, at, &length);
        if (dc_unicode_row(t->u, c) & flag) {
            p.first = p.first && w->n > 0;
            continue;
        }
        if (low)
            put_lower(t, w, c, range_at(&p, at));
        else
            put_code(w, c, range_at(&p, at));
    }
    return written(w, p);
}

static bool is_chinese(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b81f) ||
           (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) ||
           (c >= 0x2f800 && c <= 0x2fa1f);
}

static dc_piece clean(const dc_tokenizer *t, const dc_step *s, dc_piece p, dc_writing *w)
{
    dc_write_reset(w, p.from != NULL);
    for (size_t at = 0, length; at < p.n; at += length) {
        const uint32_t c = dc_char_at(p.s, p.n, at, &length);
        const uint32_t row = dc_unicode_row(t->u, c);
        const dc_range from = range_at(&p, at);
        if (s->clean && (row & DC_UC_DROP)) {
            p.first = p.first && w->n > 0;
            continue;
        }
        if (s->clean && (row & DC_UC_BLANK))
            dc_write_put(w, " ", 1, from);
        else if (s->chinese && is_chinese(c)) {
            dc_write_put(w, " ", 1, from);
            put_code(w, c, from);
            dc_write_put(w, " ", 1, from);
        } else
            put_code(w, c, from);
    }
    return written(w, p);
}

/* The same of ASCII, in one go. */
static dc_piece bert_ascii(dc_tokenizer *t, const dc_step *s, dc_piece p, dc_writing *w)
{
    dc_write_reset(w, p.from != NULL);
    grow(w, p.n);
    for (size_t at = 0; at < p.n; at++) {
        const unsigned char c = (unsigned char)p.s[at];
        dc_tokenizer_look(t, 1);
        const uint32_t row = dc_unicode_row(t->u, c);
        if (s->clean && (row & DC_UC_DROP)) {
            p.first = p.first && w->n > 0;
            continue;
        }
        if (w->ranges)
            w->from[w->n] = p.from[at];
        w->s[w->n++] = s->clean && (row & DC_UC_BLANK)    ? ' '
                       : s->lower && c >= 'A' && c <= 'Z' ? (char)(c | 0x20)
                                                          : (char)c;
    }
    return written(w, p);
}

static dc_piece bert(dc_tokenizer *t, const dc_step *s, dc_piece p, dc_writing *w)
{
    dc_writing *other = &t->write[DC_MOST_STEPS + 1];
    if (is_ascii(&p))
        return bert_ascii(t, s, p, w);
    p = clean(t, s, p, w);
    if (s->accents) {
        const char *before = p.s;
        p = normal_form(t, DC_STEP_NFD, p, other);
        return without(t, p, DC_UC_ACCENT, s->lower, p.s == before ? other : w);
    }
    if (!s->lower)
        return p;
    const dc_piece low = lower(t, p, other);
    const dc_writing swap = *w;
    *w = *other;
    *other = swap;
    return low;
}

/* ---- texts ------------------------------------------------------------------------------------ */

static dc_piece prepend(const dc_step *s, dc_piece p, dc_writing *w)
{
    if (p.n == 0)
        return p;
    dc_write_reset(w, p.from != NULL);
    dc_write_put(w, s->text.at, s->text.n, range_at(&p, 0));
    put_part(w, &p, 0, p.n);
    return written(w, p);
}

static dc_piece replace(dc_tokenizer *t, const dc_step *s, dc_piece p, dc_writing *w)
{
    size_t at = 0, from, to;
    if (p.n == 0 || !dc_pattern_next(t, &s->pattern, p.s, p.n, 0, false, &from, &to))
        return p;
    dc_write_reset(w, p.from != NULL);
    do {
        put_part(w, &p, at, from - at);
        dc_write_put(w, s->text.at, s->text.n, to > 0 ? range_at(&p, to - 1) : (dc_range){0, 0});
        p.first = p.first && w->n > 0;
        at = to;
    } while (dc_pattern_next(t, &s->pattern, p.s, p.n, at, true, &from, &to));
    put_part(w, &p, at, p.n - at);
    return written(w, p);
}

static dc_piece strip(const dc_tokenizer *t, const dc_step *s, dc_piece p)
{
    size_t length, begin = 0, end = 0;
    while (s->left && begin < p.n &&
           (dc_unicode_row(t->u, dc_char_at(p.s, p.n, begin, &length)) & DC_UC_SPACE))
        begin += length;
    end = s->right ? begin : p.n;
    for (size_t at = begin; s->right && at < p.n; at += length)
        if (!(dc_unicode_row(t->u, dc_char_at(p.s, p.n, at, &length)) & DC_UC_SPACE))
            end = at + length;
    p.s += begin;
    p.first = p.first && begin == 0;
    p.n = end - begin;
    p.from = p.from != NULL ? p.from + begin : NULL;
    return p;
}

static uint32_t nmt(uint32_t c)
{
    if ((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
        c == 0x9f)
        return UINT32_MAX;
    if (c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 || (c >= 0x200b && c <= 0x200f) ||
        c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd)
        return ' ';
    return c;
}

static dc_piece map_nmt(dc_piece p, dc_writing *w)
{
    dc_write_reset(w, p.from != NULL);
    for (size_t at = 0, length; at < p.n; at += length) {
        const uint32_t c = nmt(dc_char_at(p.s, p.n, at, &length));
        if (c != UINT32_MAX)
            put_code(w, c, range_at(&p, at));
        p.first = p.first && w->n > 0;
    }
    return written(w, p);
}

uint32_t dc_byte_char(unsigned char b)
{
    if ((b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b != 0xad))
        return b;
    return b <= 0x20 ? 0x100u + b : b <= 0xa0 ? 0x100u + 0x21 + (b - 0x7fu) : 0x143;
}

bool dc_char_byte(uint32_t c, unsigned char *byte)
{
    if (c < 0x100) {
        *byte = (unsigned char)c;
        return dc_byte_char(*byte) == c;
    }
    if (c > 0x143)
        return false;
    *byte = (unsigned char)(c <= 0x120 ? c - 0x100 : c == 0x143 ? 0xad : c - 0x121 + 0x7f);
    return true;
}

static dc_piece map_bytes(dc_tokenizer *t, dc_piece p, dc_writing *w)
{
    dc_write_reset(w, p.from != NULL);
    for (size_t at = 0; at < p.n; at++) {
        dc_tokenizer_look(t, 1);
        put_code(w, dc_byte_char((unsigned char)p.s[at]), range_at(&p, at));
    }
    return written(w, p);
}

/* Does it belong to the character before it (UAX 29: Extend, SpacingMark)? Marks do, but for these; and some others. */
static bool extends(const dc_unicode *u, uint32_t c)
{
    static const uint32_t apart[][2] = {
        {0x102b, 0x102c}, {0x1038, 0x1038}, {0x1062, 0x1064},  {0x1067, 0x106d}, {0x1083, 0x1083},
        {0x1087, 0x108c}, {0x108f, 0x108f}, {0x109a, 0x109c},  {0x1a61, 0x1a61}, {0x1a63, 0x1a64},
        {0xaa7b, 0xaa7b}, {0xaa7d, 0xaa7d}, {0x11720, 0x11721}};
    const unsigned kind = dc_unicode_category(dc_unicode_row(u, c));
    if (kind < DC_CAT_MN || kind > DC_CAT_ME)
        return c == 0x200c || c == 0x200d || c == 0xe33 || c == 0xeb3 || c == 0xff9e || c == 0xff9f;
    for (size_t i = 0; i < DC_COUNTOF(apart); i++)
        if (c >= apart[i][0] && c <= apart[i][1])
            return false;
    return true;
}

/* Bytes of a character and what belongs to it, as far as a map of characters is concerned. */
static size_t cluster(const dc_tokenizer *t, const dc_piece *p, size_t at)
{
    size_t length, n;
    const uint32_t c = dc_char_at(p->s, p->n, at, &n);
    const unsigned category = dc_unicode_category(dc_unicode_row(t->u, c));
    if (c == '\r' && at + 1 < p->n && p->s[at + 1] == '\n')
        return 2;
    if (category >= DC_CAT_ZL && category <= DC_CAT_CF)
        return n;
    for (; at + n < p->n; n += length) {
        if (!extends(t->u, dc_char_at(p->s, p->n, at + n, &length)))
            break;
    }
    return n;
}

/* What a cluster becomes: each character in the place of one that was there, further ones in that of the last. */
static void put_over(dc_writing *w, const dc_piece *p, size_t at, size_t end, dc_span to)
{
    size_t length = 0, next;
    for (size_t i = 0; i < to.n; i += length) {
        dc_utf8_next(to.at + i, to.n - i, &length);
        dc_write_put(w, to.at + i, length, range_at(p, at));
        dc_utf8_next(p->s + at, end - at, &next);
        at = at + next < end ? at + next : at;
    }
}

/* As the packages apply a map: to short clusters as a whole by the first entry that fits, else to each character. */
static dc_piece map_chars(const dc_tokenizer *t, const dc_step *s, dc_piece p, dc_writing *w)
{
    enum { SHORT = 6 };
    dc_write_reset(w, p.from != NULL);
    for (size_t at = 0, length; at < p.n;) {
        const size_t whole = cluster(t, &p, at), end = at + whole;
        dc_span to;
        if (whole < SHORT && dc_charsmap_first(&s->map, p.s + at, whole, &to)) {
            put_over(w, &p, at, end, to);
            at = end;
        }
        for (; at < end; at += length) {
            dc_char_at(p.s, p.n, at, &length);
            if (!dc_charsmap_first(&s->map, p.s + at, length, &to))
                to = (dc_span){p.s + at, length};
            dc_write_put(w, to.at, to.n, range_at(&p, at));
        }
        p.first = p.first && w->n > 0;
    }
    return written(w, p);
}

dc_piece dc_normalize_step(dc_tokenizer *t, const dc_step *s, dc_piece p, dc_writing *w)
{
    switch (s->kind) {
    case DC_STEP_BERT:
        return bert(t, s, p, w);
    case DC_STEP_NFC:
    case DC_STEP_NFD:
    case DC_STEP_NFKC:
    case DC_STEP_NFKD:
        return normal_form(t, s->kind, p, w);
    case DC_STEP_LOWER:
        return lower(t, p, w);
    case DC_STEP_ACCENTS:
        return without(t, p, DC_UC_MARK, false, w);
    case DC_STEP_PREPEND:
        return prepend(s, p, w);
    case DC_STEP_REPLACE:
        return replace(t, s, p, w);
    case DC_STEP_STRIP:
        return strip(t, s, p);
    case DC_STEP_NMT:
        return map_nmt(p, w);
    case DC_STEP_CHARSMAP:
        return map_chars(t, s, p, w);
    case DC_STEP_BYTES:
        return map_bytes(t, p, w);
    case DC_STEP_SENTENCEPIECE:
        return dc_sentencepiece_normalize(t, s, p, w);
    case DC_STEP_CUT_BYTES:
    case DC_STEP_CUT_BERT:
    case DC_STEP_CUT_SPLIT:
    case DC_STEP_CUT_DIGITS:
    case DC_STEP_CUT_META:
    case DC_STEP_CUT_WORDS:
    case DC_STEP_CUT_SPACES:
    case DC_STEP_CUT_PUNCT:
    case DC_STEP_CUT_LENGTH:
    case DC_STEP_OF_BYTES:
    case DC_STEP_OF_WORDPIECE:
    case DC_STEP_OF_META:
    case DC_STEP_OF_BPE:
    case DC_STEP_OF_REPLACE:
    case DC_STEP_OF_FALLBACK:
    case DC_STEP_OF_FUSE:
    case DC_STEP_OF_STRIP:
    case DC_STEP_OF_CTC:
    case DC_STEP_OF_SENTENCEPIECE:
        break;
    }
    DC_BUG("step %d does not write", (int)s->kind);
}

/* Two buffers take turns. */
dc_piece dc_normalize(dc_tokenizer *t, dc_piece p)
{
    for (uint32_t i = 0, k = 0; i < t->normalizer.n && p.n > 0; i++) {
        const char *before = p.s;
        p = dc_normalize_step(t, &t->normalizer.at[i], p, &t->write[k]);
        if (p.s != before && p.s == t->write[k].s)
            k ^= 1;
    }
    return p;
}
