/*
 * Pre-tokenizers: pieces are cut into smaller ones, which go to the next step at once and from the last one to the model.
 */
#include "extras/llm/tokenizer/impl.h"

#include <string.h>

/* Where the regions of a piece go: those that a pattern matches and those between, joined as `behavior` has it. */
typedef struct cutting {
    dc_tokenizer *t;
    uint32_t next; /* the step for what is cut out */
    const dc_piece *p;
    dc_behavior behavior;
    size_t from, to; /* held back */
    bool held, matched;
} cutting;

static void send(const cutting *c, size_t from, size_t to)
{
    const dc_piece *p = c->p;
    if (to > from)
        dc_cut(c->t, c->next,
               (dc_piece){.s = p->s + from,
                          .n = to - from,
                          .from = p->from != NULL ? p->from + from : NULL,
                          .first = p->first && from == 0});
}

static void release(cutting *c)
{
    if (c->held)
        send(c, c->from, c->to);
    c->held = false;
}

static void hold(cutting *c, size_t from, size_t to, bool matched)
{
    release(c);
    c->from = from;
    c->to = to;
    c->held = true;
    c->matched = matched;
}

static void region(cutting *c, size_t from, size_t to, bool matched)
{
    switch (c->behavior) {
    case DC_SPLIT_REMOVED:
        if (!matched)
            send(c, from, to);
        return;
    case DC_SPLIT_ISOLATED:
        send(c, from, to);
        return;
    case DC_SPLIT_PREVIOUS:
        if (c->held && matched && !c->matched) {
            c->to = to;
            c->matched = true;
        } else
            hold(c, from, to, matched);
        return;
    case DC_SPLIT_NEXT:
        if (c->held && c->matched && !matched) {
            c->to = to;
            c->matched = false;
        } else
            hold(c, from, to, matched);
        return;
    case DC_SPLIT_CONTIGUOUS:
        if (c->held && c->matched == matched)
            c->to = to;
        else
            hold(c, from, to, matched);
        return;
    }
}

static void cut_pattern(dc_tokenizer *t, uint32_t next, const dc_piece *p,
                        const dc_pattern *pattern, dc_behavior behavior, bool invert)
{
    cutting c = {.t = t, .next = next, .p = p, .behavior = behavior};
    size_t at = 0, from, to;
    for (bool behind = false;
         at < p->n && dc_pattern_next(t, pattern, p->s, p->n, at, behind, &from, &to); at = to) {
        if (from > at)
            region(&c, at, from, invert);
        region(&c, from, to, !invert); /* of nothing, it cuts */
        behind = true;
    }
    if (at < p->n)
        region(&c, at, p->n, invert);
    release(&c);
}

/* Each character with one of these flags is a match. */
static void cut_flags(dc_tokenizer *t, uint32_t next, const dc_piece *p, uint32_t flags,
                      dc_behavior behavior)
{
    cutting c = {.t = t, .next = next, .p = p, .behavior = behavior};
    size_t from = 0;
    for (size_t at = 0, length; at < p->n; at += length)
        if (dc_unicode_row(t->u, dc_char_at(p->s, p->n, at, &length)) & flags) {
            if (at > from)
                region(&c, from, at, false);
            region(&c, at, at + length, true);
            from = at + length;
        }
    if (from < p->n)
        region(&c, from, p->n, false);
    release(&c);
}

/* BERT's: without blanks, punctuation by itself. */
static void cut_bert(dc_tokenizer *t, uint32_t next, const dc_piece *p)
{
    const cutting c = {.t = t, .next = next, .p = p};
    size_t from = 0;
    for (size_t at = 0, length; at < p->n; at += length) {
        const uint32_t row = dc_unicode_row(t->u, dc_char_at(p->s, p->n, at, &length));
        if (row & (DC_UC_SPACE | DC_UC_PUNCT)) {
            send(&c, from, at);
            if (!(row & DC_UC_SPACE))
                send(&c, at, at + length);
            from = at + length;
        }
    }
    send(&c, from, p->n);
}

/* \w+|[^\w\s]+ */
static void cut_words(dc_tokenizer *t, uint32_t next, const dc_piece *p)
{
    const cutting c = {.t = t, .next = next, .p = p};
    size_t from = 0;
    uint32_t kind = DC_UC_SPACE;
    for (size_t at = 0, length; at < p->n; at += length) {
        const uint32_t row = dc_unicode_row(t->u, dc_char_at(p->s, p->n, at, &length));
        const uint32_t is = row & DC_UC_WORD ? DC_UC_WORD : row & DC_UC_SPACE;
        if (is == kind)
            continue;
        if (kind != DC_UC_SPACE)
            send(&c, from, at);
        from = at;
        kind = is;
    }
    if (kind != DC_UC_SPACE)
        send(&c, from, p->n);
}

static void cut_length(dc_tokenizer *t, uint32_t next, const dc_piece *p, int64_t most)
{
    const cutting c = {.t = t, .next = next, .p = p};
    size_t from = 0;
    int64_t n = 0;
    for (size_t at = 0, length; at < p->n; at += length) {
        dc_char_at(p->s, p->n, at, &length);
        if (n++ == most) {
            send(&c, from, at);
            from = at;
            n = 1;
        }
    }
    send(&c, from, p->n);
}

static bool begins(const dc_piece *p, dc_span text)
{
    return p->n >= text.n && memcmp(p->s, text.at, text.n) == 0;
}

static dc_piece put_before(dc_piece p, dc_span text, dc_writing *w)
{
    const dc_range from = p.from != NULL ? p.from[0] : (dc_range){0, 0};
    dc_write_reset(w, p.from != NULL);
    dc_write_put(w, text.at, text.n, from);
    for (size_t i = 0; p.from != NULL && i < p.n; i++)
        dc_write_put(w, p.s + i, 1, p.from[i]);
    if (p.from == NULL)
        dc_write_put(w, p.s, p.n, from);
    p.s = w->s;
    p.n = w->n;
    p.from = w->ranges ? w->from : NULL;
    return p;
}

static void cut_meta(dc_tokenizer *t, uint32_t k, const dc_step *s, dc_piece p)
{
    dc_writing *w = &t->write[2 + k];
    const dc_pattern space = {.kind = DC_PATTERN_LITERAL, .literal = {" ", 1}};
    const dc_step spaces = {.kind = DC_STEP_REPLACE, .pattern = space, .text = s->text};
    const dc_pattern sign = {.kind = DC_PATTERN_LITERAL, .literal = s->text};
    const bool prefix =
        s->prepend == DC_PREPEND_ALWAYS || (s->prepend == DC_PREPEND_FIRST && p.first);
    /* Written with the sign in front, which is left out again where it is not wanted. */
    const dc_piece with = put_before(p, s->text, w);
    dc_writing *other = &t->write[DC_MOST_STEPS + 1];
    dc_piece q = dc_normalize_step(t, &spaces, with, other);
    if (q.s != with.s) { /* into this step's own buffer, since later ones use the other */
        const dc_writing swap = *w;
        *w = *other;
        *other = swap;
    }
    const dc_piece rest = {q.s + s->text.n, q.n - s->text.n,
                           q.from != NULL ? q.from + s->text.n : NULL, p.first};
    if (!prefix || begins(&rest, s->text))
        q = rest;
    if (s->split)
        cut_pattern(t, k + 1, &q, &sign, DC_SPLIT_NEXT, false);
    else
        dc_cut(t, k + 1, q);
}

static void cut_bytes(dc_tokenizer *t, uint32_t k, const dc_step *s, dc_piece p)
{
    static const dc_span space = {" ", 1};
    const dc_pattern gpt2 = {.kind = DC_PATTERN_GPT2};
    if (s->prefix && *p.s != ' ')
        p = put_before(p, space, &t->write[2 + k]);
    if (s->regex)
        cut_pattern(t, k + 1, &p, &gpt2, DC_SPLIT_ISOLATED, false);
    else
        dc_cut(t, k + 1, p);
}

void dc_cut(dc_tokenizer *t, uint32_t k, dc_piece p)
{
    const dc_step *s = &t->cutter.at[k];
    if (p.n == 0 || t->job->err.status != DC_OK)
        return;
    if (k == t->cutter.n) {
        dc_tokenizer_look(t, 8);
        dc_model_encode(t, p);
        return;
    }
    if (s->kind == DC_STEP_CUT_BYTES)
        cut_bytes(t, k, s, p);
    else if (s->kind == DC_STEP_CUT_BERT)
        cut_bert(t, k + 1, &p);
    else if (s->kind == DC_STEP_CUT_SPLIT)
        cut_pattern(t, k + 1, &p, &s->pattern, s->behavior, s->invert);
    else if (s->kind == DC_STEP_CUT_DIGITS)
        cut_flags(t, k + 1, &p, DC_UC_NUMERIC, s->behavior);
    else if (s->kind == DC_STEP_CUT_META)
        cut_meta(t, k, s, p);
    else if (s->kind == DC_STEP_CUT_WORDS)
        cut_words(t, k + 1, &p);
    else if (s->kind == DC_STEP_CUT_SPACES)
        cut_flags(t, k + 1, &p, DC_UC_SPACE, DC_SPLIT_REMOVED);
    else if (s->kind == DC_STEP_CUT_PUNCT)
        cut_flags(t, k + 1, &p, DC_UC_PUNCT, s->behavior);
    else if (s->kind == DC_STEP_CUT_LENGTH)
        cut_length(t, k + 1, &p, s->stop);
    else /* DC_STEP_BYTES */
        dc_cut(t, k + 1, dc_normalize_step(t, s, p, &t->write[2 + k]));
}
