/* From pieces to tokens: pieces that were met before are looked up, others go to the model. */
#include "extras/llm/tokenizer/impl.h"

#include <string.h>

void dc_model_put(dc_tokenizer *t, uint32_t id, dc_piece p, size_t at, size_t n)
{
    if (id == DC_TOKEN_NONE) {
        dc_failf(t->job, DC_ERR_FORMAT_TEXT, NULL,
                 "'%.*s' is in no token, and the tokenizer has none for what is unknown",
                 (int)(p.n < 40 ? p.n : 40), p.s);
        return;
    }
    DC_PUSH(*t->to, id);
    if (t->to_ranges != NULL) {
        const dc_range r = p.from != NULL && n > 0
                               ? (dc_range){p.from[at].from, p.from[at + n - 1].to}
                               : (dc_range){0, 0};
        DC_PUSH(*t->to_ranges, r);
    }
}

static void encode(dc_tokenizer *t, dc_piece p)
{
    switch (t->model.kind) {
    case DC_MODEL_BPE:
        dc_bpe_encode(t, p);
        return;
    case DC_MODEL_UNIGRAM:
        dc_unigram_encode(t, p);
        return;
    case DC_MODEL_WORDPIECE:
    case DC_MODEL_WORDS:
        dc_wordpiece_encode(t, p);
        return;
    }
}

static uint32_t slot_of(const char *key)
{
    uint64_t w[3] = {0};
    memcpy(w, key, DC_MEMO_KEY);
    uint64_t h = w[0] * 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 29) ^ w[1]) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 32) ^ w[2]) * 0x94d049bb133111ebu;
    return (uint32_t)(h >> 40) & (DC_MEMO_SLOTS - 1);
}

void dc_model_encode(dc_tokenizer *t, dc_piece p)
{
    char key[DC_MEMO_KEY] = {0};
    if (p.n > DC_MEMO_KEY || t->to_ranges != NULL) {
        encode(t, p);
        return;
    }
    memcpy(key, p.s, p.n);
    if (t->memo == NULL)
        t->memo = dc_arena_alloc(&t->keep, DC_MEMO_SLOTS * sizeof *t->memo);
    dc_memo *m = &t->memo[slot_of(key)];
    if (m->n == p.n && memcmp(m->key, key, DC_MEMO_KEY) == 0) {
        for (uint32_t i = 0; i < m->nid; i++)
            DC_PUSH(*t->to, m->id[i]);
        return;
    }
    const uint32_t from = t->to->n;
    encode(t, p);
    const uint32_t made = t->to->n - from;
    if (made > DC_MEMO_IDS || t->job->err.status != DC_OK)
        return;
    m->n = (uint8_t)p.n;
    m->nid = (uint8_t)made;
    memcpy(m->key, key, DC_MEMO_KEY);
    if (made > 0)
        memcpy(m->id, t->to->at + from, made * sizeof *m->id);
}
