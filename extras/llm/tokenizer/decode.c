/*
 * Numbers of tokens as a text. A decoder's steps work on a list of texts, at first one for each token; what is left is put
 * together. ByteLevel's makes bytes of characters; what is no UTF-8 then becomes U+FFFD, as in the packages.
 */
#include "extras/llm/tokenizer/impl.h"

#include <string.h>

typedef struct texts {
    dc_tokenizer *t;
    dc_arena *a;
    dc_span *at;
    uint32_t n;
} texts;

/* A text that is made; its memory is the entry's. */
typedef struct made {
    char *s;
    size_t n;
} made;

static made room(const texts *x, size_t n)
{
    dc_tokenizer_look(x->t, n + 16);
    return (made){dc_arena_alloc(x->a, n + 1), 0};
}

static void put(made *m, const char *s, size_t n)
{
    memcpy(m->s + m->n, s, n);
    m->n += n;
}

static dc_span span(const made *m)
{
    return (dc_span){m->s, m->n};
}

static dc_span replace(const texts *x, dc_span s, const dc_pattern *pattern, dc_span by)
{
    dc_writing *w = &x->t->write[0];
    dc_tokenizer_look(x->t, 4 + s.n / 16);
    const dc_range none = {0, 0};
    size_t at = 0, from, to;
    if (s.n == 0 || !dc_pattern_next(x->t, pattern, s.at, s.n, 0, false, &from, &to))
        return s;
    dc_write_reset(w, false);
    do {
        dc_write_put(w, s.at + at, from - at, none);
        dc_write_put(w, by.at, by.n, none);
        at = to;
    } while (dc_pattern_next(x->t, pattern, s.at, s.n, at, true, &from, &to));
    dc_write_put(w, s.at + at, s.n - at, none);
    made m = room(x, w->n);
    put(&m, w->s, w->n);
    return span(&m);
}

static dc_span replace_text(const texts *x, dc_span s, const char *what, const char *by)
{
    const dc_pattern p = {.kind = DC_PATTERN_LITERAL, .literal = {what, strlen(what)}};
    return replace(x, s, &p, (dc_span){by, strlen(by)});
}

/* Each token by itself, if all its characters are of the alphabet; bytes that are UTF-8 only with the next token's stay. */
static void of_bytes(const texts *x)
{
    size_t n = 0;
    for (uint32_t i = 0; i < x->n; i++)
        n += x->at[i].n;
    made m = room(x, n);
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_span s = x->at[i];
        const size_t before = m.n;
        dc_tokenizer_look(x->t, 4 + s.n);
        for (size_t at = 0, length; at < s.n; at += length) {
            unsigned char byte;
            if (!dc_char_byte(dc_char_at(s.at, s.n, at, &length), &byte)) {
                m.n = before;
                put(&m, s.at, s.n);
                break;
            }
            put(&m, (const char *)&byte, 1);
        }
        x->at[i] = (dc_span){m.s + before, m.n - before};
    }
}

static dc_span clean_up(const texts *x, dc_span s)
{
    static const char *const pairs[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                           {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                           {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                           {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < DC_COUNTOF(pairs); i++)
        s = replace_text(x, s, pairs[i][0], pairs[i][1]);
    return s;
}

static void of_wordpiece(const texts *x, const dc_step *s)
{
    for (uint32_t i = 0; i < x->n; i++) {
        dc_span *w = &x->at[i];
        dc_tokenizer_look(x->t, 4);
        if (i > 0 && w->n >= s->text.n && memcmp(w->at, s->text.at, s->text.n) == 0) {
            w->at += s->text.n;
            w->n -= s->text.n;
        } else if (i > 0) {
            made m = room(x, w->n + 1);
            put(&m, " ", 1);
            put(&m, w->at, w->n);
            *w = span(&m);
        }
        if (s->clean)
            *w = clean_up(x, *w);
    }
}

static void of_meta(const texts *x, const dc_step *s)
{
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_pattern sign = {.kind = DC_PATTERN_LITERAL, .literal = s->text};
        /* Of the first token all are gone, wherever they stand. */
        const bool gone = i == 0 && s->prepend != DC_PREPEND_NEVER;
        x->at[i] = replace(x, x->at[i], &sign, (dc_span){" ", gone ? 0 : 1});
    }
}

static void of_bpe(const texts *x, const dc_step *s)
{
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_pattern suffix = {.kind = DC_PATTERN_LITERAL, .literal = s->text};
        x->at[i] =
            replace(x, x->at[i], &suffix, i + 1 < x->n ? (dc_span){" ", 1} : (dc_span){"", 0});
    }
}

/* "<0x41>" */
static bool is_byte(dc_span s, unsigned char *byte)
{
    static const char digits[] = "0123456789ABCDEF0123456789abcdef";
    if (s.n != 6 || memcmp(s.at, "<0x", 3) != 0 || s.at[5] != '>' || s.at[3] == '\0' ||
        s.at[4] == '\0')
        return false;
    const char *hi = strchr(digits, s.at[3]), *lo = strchr(digits, s.at[4]);
    if (hi == NULL || lo == NULL)
        return false;
    *byte = (unsigned char)((hi - digits) % 16 * 16 + (lo - digits) % 16);
    return true;
}

static bool is_utf8(const char *s, size_t n)
{
    size_t length;
    for (size_t at = 0; at < n; at += length)
        if (dc_char_at(s, n, at, &length) >= DC_RAW_BYTE)
            return false;
    return true;
}

/* Runs of tokens for bytes: their text, or U+FFFD for each where it is none. */
static void of_fallback(texts *x)
{
    uint32_t k = 0;
    unsigned char byte;
    for (uint32_t i = 0; i < x->n;) {
        uint32_t n = 0;
        dc_tokenizer_look(x->t, 4);
        while (i + n < x->n && is_byte(x->at[i + n], &byte))
            n++;
        if (n == 0) {
            x->at[k++] = x->at[i++];
            continue;
        }
        made m = room(x, (size_t)n * 3);
        for (uint32_t b = 0; b < n; b++) {
            dc_tokenizer_look(x->t, 2);
            is_byte(x->at[i + b], &byte);
            put(&m, (const char *)&byte, 1);
        }
        if (!is_utf8(m.s, m.n)) {
            m.n = 0;
            for (uint32_t b = 0; b < n; b++)
                put(&m, "\xef\xbf\xbd", 3);
        }
        x->at[k++] = span(&m);
        i += n;
    }
    x->n = k;
}

static void fuse(texts *x)
{
    size_t n = 0;
    for (uint32_t i = 0; i < x->n; i++)
        n += x->at[i].n;
    made m = room(x, n);
    for (uint32_t i = 0; i < x->n; i++) {
        dc_tokenizer_look(x->t, 2 + x->at[i].n / 16);
        put(&m, x->at[i].at, x->at[i].n);
    }
    if (x->n > 0)
        x->at[0] = span(&m);
    x->n = x->n > 0;
}

static void of_strip(const texts *x, const dc_step *s)
{
    const size_t c = s->text.n;
    for (uint32_t i = 0; i < x->n; i++) {
        dc_span *w = &x->at[i];
        dc_tokenizer_look(x->t, 4 + w->n);
        for (int64_t k = 0; k < s->start && w->n >= c && memcmp(w->at, s->text.at, c) == 0; k++) {
            w->at += c;
            w->n -= c;
        }
        for (int64_t k = 0;
             k < s->stop && w->n >= c && memcmp(w->at + w->n - c, s->text.at, c) == 0; k++)
            w->n -= c;
    }
}

static void of_ctc(texts *x, const dc_step *s)
{
    uint32_t k = 0;
    dc_span last = {NULL, 0};
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_span now = x->at[i];
        dc_tokenizer_look(x->t, 4 + now.n / 16);
        const dc_pattern pad = {.kind = DC_PATTERN_LITERAL, .literal = s->text};
        const dc_pattern word = {.kind = DC_PATTERN_LITERAL, .literal = s->word};
        if (last.at != NULL && last.n == now.n && memcmp(last.at, now.at, now.n) == 0)
            continue;
        last = now;
        dc_span w = replace(x, now, &pad, (dc_span){"", 0});
        if (s->clean)
            w = replace(x, clean_up(x, w), &word, (dc_span){" ", 1});
        if (w.n > 0)
            x->at[k++] = w;
    }
    x->n = k;
}

/* A run of bytes as text, U+FFFD for each one that is not part of a character. */
static dc_span text_of_bytes(const texts *x, uint32_t i, uint32_t n)
{
    made bytes = room(x, n), m = room(x, (size_t)n * 3);
    unsigned char byte = 0;
    for (uint32_t b = 0; b < n; b++) {
        dc_tokenizer_look(x->t, 2);
        is_byte(x->at[i + b], &byte);
        put(&bytes, (const char *)&byte, 1);
    }
    for (size_t at = 0, length; at < n; at += length) {
        if (dc_char_at(bytes.s, n, at, &length) < DC_RAW_BYTE)
            put(&m, bytes.s + at, length);
        else
            put(&m, "\xef\xbf\xbd", 3);
    }
    return span(&m);
}

/* SentencePiece's: blanks that a text begins with are its dummy prefix; unknown pieces have a text of their own. */
static void of_sentencepiece(texts *x, const dc_step *s)
{
    static const char sign[] = "\xe2\x96\x81";
    unsigned char byte;
    bool begins = s->dummy;
    uint32_t k = 0;
    for (uint32_t i = 0, n; i < x->n; i += n) {
        dc_span w = x->at[i];
        dc_tokenizer_look(x->t, 4);
        for (n = 0; i + n < x->n && is_byte(x->at[i + n], &byte);)
            n++;
        if (n > 0) {
            x->at[k++] = text_of_bytes(x, i, n);
            begins = false;
            continue;
        }
        n = 1;
        if (w.n == s->word.n && memcmp(w.at, s->word.at, w.n) == 0) {
            x->at[k++] = s->text;
            begins = begins && s->text.n == 0;
            continue;
        }
        const bool prefix = begins && w.n >= 3 && memcmp(w.at, sign, 3) == 0;
        if (prefix)
            w = (dc_span){w.at + 3, w.n - 3};
        begins = begins && w.n == 0 && !(prefix && !s->collapse);
        x->at[k++] = replace_text(x, w, sign, " ");
    }
    x->n = k;
}

static void run(texts *x, const dc_step *s)
{
    if (s->kind == DC_STEP_OF_BYTES)
        of_bytes(x);
    else if (s->kind == DC_STEP_OF_WORDPIECE)
        of_wordpiece(x, s);
    else if (s->kind == DC_STEP_OF_META)
        of_meta(x, s);
    else if (s->kind == DC_STEP_OF_BPE)
        of_bpe(x, s);
    else if (s->kind == DC_STEP_OF_REPLACE)
        for (uint32_t i = 0; i < x->n; i++)
            x->at[i] = replace(x, x->at[i], &s->pattern, s->text);
    else if (s->kind == DC_STEP_OF_FALLBACK)
        of_fallback(x);
    else if (s->kind == DC_STEP_OF_FUSE)
        fuse(x);
    else if (s->kind == DC_STEP_OF_STRIP)
        of_strip(x, s);
    else if (s->kind == DC_STEP_OF_SENTENCEPIECE)
        of_sentencepiece(x, s);
    else
        of_ctc(x, s);
}

/* The bytes with U+FFFD for what is no UTF-8, in t->text. */
static void keep_text(dc_tokenizer *t, dc_span s)
{
    t->text.n = 0;
    dc_text_put(&t->text, "", 0);
    for (size_t at = 0, length, from = 0; at < s.n;) {
        if (dc_char_at(s.at, s.n, at, &length) < DC_RAW_BYTE) {
            at += length;
            if (at == s.n)
                dc_text_put(&t->text, s.at + from, at - from);
            continue;
        }
        dc_text_put(&t->text, s.at + from, at - from);
        dc_text_puts(&t->text, "\xef\xbf\xbd");
        at += dc_utf8_broken(s.at + at, s.n - at);
        from = at;
    }
}

/* The package looks for what it shows among special tokens as they are spelled. */
static bool is_left_out(const dc_tokenizer *t, uint32_t id)
{
    return dc_tokenizer_is_special(t, id) && t->added[t->added_of[id] - 1].shown.at == NULL;
}

dc_status dc_tokenizer_decode(dc_tokenizer *t, dc_job *j, const uint32_t *id, size_t n,
                              bool skip_special, dc_span *out)
{
    texts x = {.t = t, .a = &j->scratch};
    if (n > INT32_MAX)
        return dc_failf(j, DC_ERR_ARG, "decode", "%zu tokens are too many", n);
    x.at = DC_NEW_ARRAY(&j->scratch, dc_span, n + 1);
    t->job = j;
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const dc_span token = dc_tokenizer_token(t, id[i]);
        dc_tokenizer_look(t, 1);
        if (token.at == NULL || (skip_special && is_left_out(t, id[i])))
            continue;
        x.at[x.n++] = token;
        bytes += token.n;
    }
    t->work = dc_regex_work(bytes);
    for (uint32_t i = 0; i < t->decoder.n; i++)
        run(&x, &t->decoder.at[i]);
    const bool spaces = t->decoder.n == 0; /* without a decoder tokens stand apart */
    for (uint32_t i = 1; spaces && i < x.n; i++) {
        made m = room(&x, x.at[i].n + 1);
        put(&m, " ", 1);
        put(&m, x.at[i].at, x.at[i].n);
        x.at[i] = span(&m);
    }
    fuse(&x);
    keep_text(t, x.n > 0 ? x.at[0] : (dc_span){"", 0});
    *out = (dc_span){t->text.s != NULL ? t->text.s : "", t->text.n};
    return j->err.status;
}

/* ---- tokens ----------------------------------------------------------------------------------- */

uint32_t dc_tokenizer_size(const dc_tokenizer *t)
{
    return t->all.size;
}

uint32_t dc_tokenizer_id(const dc_tokenizer *t, dc_span token)
{
    return dc_vocab_find(&t->all, token.at, token.n);
}

dc_span dc_tokenizer_token(const dc_tokenizer *t, uint32_t id)
{
    if (id >= t->all.size)
        return (dc_span){NULL, 0};
    const dc_added *a = t->added_of[id] != 0 ? &t->added[t->added_of[id] - 1] : NULL;
    return a != NULL && a->shown.at != NULL ? a->shown : t->all.token[id];
}

bool dc_tokenizer_is_special(const dc_tokenizer *t, uint32_t id)
{
    return id < t->all.size && t->added_of[id] != 0 && t->added[t->added_of[id] - 1].special;
}

uint32_t dc_tokenizer_unknown(const dc_tokenizer *t)
{
    return t->model.unknown;
}
