/*
 * Unigram: of all ways to cut a piece into tokens the one with the best sum of scores (Kudo, 2018, arXiv 1804.10959), by
 * Viterbi's algorithm. A character that no token is made of alone may be unknown, for ten less than the least score.
 */
#include "extras/llm/tokenizer/impl.h"

#include <string.h>

static const double unknown_costs = 10;

typedef struct lattice {
    dc_tokenizer *t;
    dc_best *best; /* by the end of the last token; from is UINT32_MAX where none ends there */
} lattice;

static void offer(const lattice *l, size_t from, size_t to, uint32_t id, double score)
{
    dc_best *b = &l->best[to];
    score += l->best[from].score;
    if (l->t->model.as_float) /* before it is compared: of pieces that tie then the first stays */
        score = (double)(float)score;
    if (b->from != UINT32_MAX && !(score > b->score))
        return;
    b->score = score;
    b->from = (uint32_t)from;
    b->id = id;
}

static double score_of(const dc_model *m, uint32_t id, size_t n)
{
    if (m->frozen != NULL && m->frozen[id] == DC_FROZEN_USER) /* what the user defined wins */
        return (double)((float)n * (float)m->best) - 0.1;
    return m->score[id];
}

static double unknown_score(const dc_model *m)
{
    return m->as_float ? (double)((float)m->least - (float)unknown_costs)
                       : m->least - unknown_costs;
}

static void search(const lattice *l, dc_piece p)
{
    const dc_model *m = &l->t->model;
    size_t length;
    for (size_t at = 0; at < p.n; at += length) {
        bool alone = false;
        uint32_t node = 1;
        dc_utf8_next(p.s + at, p.n - at, &length);
        size_t i = at;
        for (; i < p.n && (node = dc_trie_step(&m->trie, node, (unsigned char)p.s[i])) != 0; i++) {
            const uint32_t id = m->trie.id[node];
            if (id == DC_TOKEN_NONE || (m->frozen != NULL && m->frozen[id] >= DC_FROZEN_UNUSED))
                continue;
            offer(l, at, i + 1, id, score_of(m, id, i + 1 - at));
            alone = alone || i + 1 - at == length;
        }
        if (!alone)
            offer(l, at, at + length, m->unknown, unknown_score(m));
        dc_tokenizer_look(l->t, 4 + i - at);
    }
}

static bool all_bytes(const dc_model *m, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (m->byte_id[(unsigned char)s[i]] == DC_TOKEN_NONE)
            return false;
    return true;
}

static void put(dc_tokenizer *t, dc_piece p, uint32_t id, size_t at, size_t n)
{
    const dc_model *m = &t->model;
    if (id == m->unknown) {
        const uint32_t whole = dc_vocab_find(&m->vocab, p.s + at, n);
        if (whole != DC_TOKEN_NONE && !m->as_float) {
            id = whole;
        } else if (m->fallback && all_bytes(m, p.s + at, n)) {
            for (size_t i = 0; i < n; i++)
                dc_model_put(t, m->byte_id[(unsigned char)p.s[at + i]], p, at, n);
            return;
        }
    }
    dc_model_put(t, id, p, at, n);
}

void dc_unigram_encode(dc_tokenizer *t, dc_piece p)
{
    const dc_best none = {.from = UINT32_MAX};
    t->best.n = 0;
    for (size_t i = 0; i <= p.n; i++) {
        dc_tokenizer_look(t, 1);
        DC_PUSH(t->best, none);
    }
    t->best.at[0].from = 0;
    const lattice l = {t, t->best.at};
    search(&l, p);
    /* From the end: each end's entry gets to know the next one. Runs that are unknown are one token. */
    const uint32_t unknown = t->model.unknown;
    uint32_t end = (uint32_t)p.n, next = UINT32_MAX;
    while (end > 0) {
        dc_best *b = &t->best.at[end];
        dc_tokenizer_look(t, 4 + end - b->from);
        uint32_t from = b->from;
        while (t->model.fuse && b->id == unknown && from > 0 && t->best.at[from].id == unknown)
            from = t->best.at[from].from;
        b->from = from;
        b->score = next;
        next = end;
        end = from;
    }
    while (next != UINT32_MAX) {
        const dc_best b = t->best.at[next];
        dc_tokenizer_look(t, 4 + next - b.from);
        put(t, p, b.id, b.from, next - b.from);
        next = (uint32_t)b.score;
    }
}
