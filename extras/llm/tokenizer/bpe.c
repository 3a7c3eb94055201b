/*
 * Byte-pair encoding: the symbols of a piece are merged in pairs, the pair of the best rank first and of equal ones the
 * left one, until no pair has a rank (Sennrich et al., 2016, arXiv 1508.07909).
 *
 * A pair's rank is in a table, or, where a vocabulary has scores in place of merges, follows from the token that their
 * texts make together. Short pieces look through all pairs for each merge; long ones keep them in a heap, so that n bytes
 * take n log n steps.
 */
#include "extras/llm/tokenizer/impl.h"

#include <string.h>

enum { SHORT = 32 };

/* ---- symbols ---------------------------------------------------------------------------------- */

static void add(dc_tokenizer *t, uint32_t id, size_t at, size_t n)
{
    const dc_symbol s = {.id = id, .at = (uint32_t)at, .n = (uint32_t)n};
    DC_PUSH(t->symbol, s);
}

static uint32_t find_char(const dc_model *m, dc_piece p, size_t at, size_t n)
{
    char text[256];
    const dc_span before = at > 0 ? m->prefix : (dc_span){"", 0};
    const dc_span behind = at + n == p.n ? m->suffix : (dc_span){"", 0};
    if (before.n + behind.n == 0)
        return dc_vocab_find(&m->vocab, p.s + at, n);
    memcpy(text, before.at, before.n); /* both are at most 100 bytes */
    memcpy(text + before.n, p.s + at, n);
    memcpy(text + before.n + n, behind.at, behind.n);
    return dc_vocab_find(&m->vocab, text, before.n + n + behind.n);
}

static bool all_bytes(const dc_model *m, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (m->byte_id[(unsigned char)s[i]] == DC_TOKEN_NONE)
            return false;
    return true;
}

/* Characters that have no token are bytes, or unknown: one for each, or for each run. Without such a token they are left out. */
static void read_chars(dc_tokenizer *t, dc_piece p)
{
    const dc_model *m = &t->model;
    dc_symbol unknown = {.n = 0};
    for (size_t at = 0, n; at < p.n; at += n) {
        uint32_t own;
        dc_tokenizer_look(t, m->has_frozen ? 64 : 0);
        n = m->has_frozen ? dc_trie_longest(&m->trie, p.s + at, p.n - at, &own) : 0;
        const bool frozen = n > 0 && m->frozen[own] == DC_FROZEN_USER;
        if (!frozen)
            dc_char_at(p.s, p.n, at, &n);
        const uint32_t id = frozen ? own : find_char(m, p, at, n);
        if (id != DC_TOKEN_NONE || m->by_score) { /* by score it may yet become part of a token */
            if (unknown.n > 0)
                add(t, m->unknown, unknown.at, unknown.n);
            unknown.n = 0;
            add(t, id, at, n);
        } else if (m->fallback && all_bytes(m, p.s + at, n)) {
            for (size_t i = 0; i < n; i++)
                add(t, m->byte_id[(unsigned char)p.s[at + i]], at + i, 1);
        } else if (m->unknown != DC_TOKEN_NONE) {
            if (unknown.n > 0 && !m->fuse) {
                add(t, m->unknown, unknown.at, unknown.n);
                unknown.n = 0;
            }
            unknown.at = unknown.n > 0 ? unknown.at : (uint32_t)at;
            unknown.n += (uint32_t)n;
        }
    }
    if (unknown.n > 0)
        add(t, m->unknown, unknown.at, unknown.n);
}

static void read_symbols(dc_tokenizer *t, dc_piece p)
{
    const dc_model *m = &t->model;
    t->symbol.n = 0;
    if (!m->bytes) {
        read_chars(t, p);
        return;
    }
    for (size_t i = 0; i < p.n; i++) {
        dc_tokenizer_look(t, 1);
        const uint32_t id = m->byte_id[(unsigned char)p.s[i]];
        if (id != DC_TOKEN_NONE)
            add(t, id, i, 1);
        else if (m->unknown != DC_TOKEN_NONE)
            add(t, m->unknown, i, 1);
    }
}

/* ---- merges ----------------------------------------------------------------------------------- */

static const dc_merge *find_merge(const dc_model *m, uint32_t left, uint32_t right)
{
    const uint64_t pair = (uint64_t)left << 32 | right;
    for (uint32_t i = dc_merge_slot(m, pair);; i = (i + 1) & m->merge_mask) {
        if (m->merge[i].pair == pair)
            return &m->merge[i];
        if (m->merge[i].pair == UINT64_MAX)
            return NULL;
    }
}

static bool is_frozen(const dc_model *m, uint32_t id, dc_frozen how)
{
    return m->frozen != NULL && id != DC_TOKEN_NONE && m->frozen[id] == how;
}

static bool rank_by_score(dc_tokenizer *t, dc_piece p, const dc_symbol *a, const dc_symbol *b,
                          double *order, uint32_t *id)
{
    const dc_model *m = &t->model;
    if (is_frozen(m, a->id, DC_FROZEN_USER) || is_frozen(m, b->id, DC_FROZEN_USER))
        return false;
    *id = dc_vocab_find(&m->vocab, p.s + a->at, a->n + b->n);
    if (*id == DC_TOKEN_NONE || is_frozen(m, *id, DC_FROZEN_AWAY))
        return false;
    if (is_frozen(m, *id, DC_FROZEN_UNUSED) && m->half[*id] == 0) {
        m->half[*id] = a->n;
        DC_PUSH(t->halves, *id);
    }
    *order = -m->score[*id];
    return true;
}

/* The order of a pair among others, the least first, and what it becomes; false: nothing. */
static bool rank(dc_tokenizer *t, dc_piece p, const dc_symbol *a, const dc_symbol *b, double *order,
                 uint32_t *id)
{
    if (t->model.by_score)
        return rank_by_score(t, p, a, b, order, id);
    const dc_merge *merge = find_merge(&t->model, a->id, b->id);
    if (merge == NULL)
        return false;
    *order = merge->rank;
    *id = merge->id;
    return true;
}

static void merge_short(dc_tokenizer *t, dc_piece p)
{
    double order[SHORT];
    uint32_t to[SHORT], n = t->symbol.n;
    bool can[SHORT];
    dc_symbol *s = t->symbol.at;
    for (uint32_t i = 0; i + 1 < n; i++)
        can[i] = rank(t, p, &s[i], &s[i + 1], &order[i], &to[i]);
    for (;;) {
        uint32_t best = n;
        for (uint32_t i = 0; i + 1 < n; i++)
            if (can[i] && (best == n || order[i] < order[best]))
                best = i;
        if (best == n)
            break;
        s[best].id = to[best];
        s[best].n += s[best + 1].n;
        n--;
        for (uint32_t i = best + 1; i < n; i++) {
            s[i] = s[i + 1];
            order[i] = order[i + 1];
            to[i] = to[i + 1];
            can[i] = i + 1 < n && can[i + 1];
        }
        can[best] = best + 1 < n && rank(t, p, &s[best], &s[best + 1], &order[best], &to[best]);
        if (best > 0)
            can[best - 1] = rank(t, p, &s[best - 1], &s[best], &order[best - 1], &to[best - 1]);
    }
    t->symbol.n = n;
}

/* ---- long pieces ------------------------------------------------------------------------------ */

static bool before(const dc_candidate *a, const dc_candidate *b)
{
    return a->order < b->order || (a->order == b->order && a->at < b->at);
}

static void push(dc_tokenizer *t, dc_candidate c)
{
    DC_PUSH(t->heap, c);
    dc_candidate *h = t->heap.at;
    uint32_t i = t->heap.n - 1;
    for (; i > 0 && before(&c, &h[(i - 1) / 2]); i = (i - 1) / 2)
        h[i] = h[(i - 1) / 2];
    h[i] = c;
}

static dc_candidate pop(dc_tokenizer *t)
{
    dc_candidate *h = t->heap.at;
    const dc_candidate top = h[0], last = h[--t->heap.n];
    const uint32_t n = t->heap.n;
    uint32_t i = 0;
    for (uint32_t k; (k = 2 * i + 1) < n; i = k) {
        k += k + 1 < n && before(&h[k + 1], &h[k]);
        if (!before(&h[k], &last))
            break;
        h[i] = h[k];
    }
    if (n > 0)
        h[i] = last;
    return top;
}

/* The pair of symbol i and the one behind it. */
static void offer(dc_tokenizer *t, dc_piece p, int32_t i)
{
    const dc_symbol *s = t->symbol.at;
    const int32_t k = i >= 0 ? s[i].behind : -1;
    dc_candidate c;
    if (k < 0 || !rank(t, p, &s[i], &s[k], &c.order, &c.id))
        return;
    c.at = (uint32_t)i;
    c.left = s[i].id;
    c.right = s[k].id;
    push(t, c);
}

static void merge_long(dc_tokenizer *t, dc_piece p)
{
    const int32_t n = (int32_t)t->symbol.n;
    t->heap.n = 0;
    for (int32_t i = 0; i < n; i++) {
        t->symbol.at[i].before = i - 1;
        t->symbol.at[i].behind = i + 1 < n ? i + 1 : -1;
    }
    for (int32_t i = 0; i < n; i++) {
        dc_tokenizer_look(t, 16);
        offer(t, p, i);
    }
    while (t->heap.n > 0) {
        const dc_candidate c = pop(t);
        dc_symbol *s = t->symbol.at, *a = &s[c.at];
        dc_tokenizer_look(t, 16);
        /* Still the pair that was offered? One that was merged away has the length 0. */
        if (a->n == 0 || a->id != c.left || a->behind < 0 || s[a->behind].id != c.right)
            continue;
        dc_symbol *b = &s[a->behind];
        if (t->model.by_score && dc_vocab_find(&t->model.vocab, p.s + a->at, a->n + b->n) != c.id)
            continue; /* others without a token */
        a->id = c.id;
        a->n += b->n;
        b->n = 0;
        a->behind = b->behind;
        if (a->behind >= 0)
            s[a->behind].before = (int32_t)c.at;
        offer(t, p, a->before);
        offer(t, p, (int32_t)c.at);
    }
    uint32_t k = 0;
    for (int32_t i = 0; i < n; i++)
        if (t->symbol.at[i].n > 0)
            t->symbol.at[k++] = t->symbol.at[i];
    t->symbol.n = k;
}

/* ---- what comes out --------------------------------------------------------------------------- */

/* A token that is not to be given out is the two that made it when it was first met, as SentencePiece has it. */
static void put_unused(dc_tokenizer *t, dc_piece p, const dc_symbol *s, int depth)
{
    const dc_model *m = &t->model;
    const uint32_t left = m->half[s->id], n[2] = {left, s->n - left};
    if (left == 0 || left >= s->n || depth > 100) {
        dc_model_put(t, s->id, p, s->at, s->n);
        return;
    }
    for (uint32_t k = 0, at = s->at; k < 2; at += n[k++]) {
        const uint32_t id = dc_vocab_find(&m->vocab, p.s + at, n[k]);
        const dc_symbol part = {.id = id, .at = at, .n = n[k]};
        if (is_frozen(m, id, DC_FROZEN_UNUSED))
            put_unused(t, p, &part, depth + 1);
        else
            dc_model_put(t, id != DC_TOKEN_NONE ? id : m->unknown, p, at, n[k]);
    }
}

/* Symbols without a token: bytes, or one unknown token for a run of them. Returns the last one. */
static uint32_t put_unknown(dc_tokenizer *t, dc_piece p, uint32_t i)
{
    const dc_model *m = &t->model;
    const dc_symbol *s = &t->symbol.at[i];
    if (m->fallback && all_bytes(m, p.s + s->at, s->n)) {
        for (uint32_t k = 0; k < s->n; k++)
            dc_model_put(t, m->byte_id[(unsigned char)p.s[s->at + k]], p, s->at + k, 1);
        return i;
    }
    uint32_t n = s->n;
    for (; m->fuse && i + 1 < t->symbol.n && t->symbol.at[i + 1].id == DC_TOKEN_NONE; i++)
        n += t->symbol.at[i + 1].n;
    dc_model_put(t, m->unknown, p, s->at, n);
    return i;
}

static void put_all(dc_tokenizer *t, dc_piece p)
{
    for (uint32_t i = 0; i < t->symbol.n; i++) {
        const dc_symbol s = t->symbol.at[i];
        dc_tokenizer_look(t, 4);
        if (s.id == DC_TOKEN_NONE)
            i = put_unknown(t, p, i);
        else if (is_frozen(&t->model, s.id, DC_FROZEN_UNUSED))
            put_unused(t, p, &s, 0);
        else
            dc_model_put(t, s.id, p, s.at, s.n);
    }
}

void dc_bpe_encode(dc_tokenizer *t, dc_piece p)
{
    const dc_model *m = &t->model;
    if (m->ignore_merges) {
        const uint32_t id = dc_vocab_find(&m->vocab, p.s, p.n);
        if (id != DC_TOKEN_NONE) {
            dc_model_put(t, id, p, 0, p.n);
            return;
        }
    }
    while (t->halves.n > 0) /* of the piece before, which may have been ended in between */
        t->model.half[t->halves.at[--t->halves.n]] = 0;
    read_symbols(t, p);
    if (t->symbol.n > 1 && t->symbol.n <= SHORT)
        merge_short(t, p);
    else if (t->symbol.n > 1)
        merge_long(t, p);
    put_all(t, p);
}
