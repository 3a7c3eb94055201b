/*
 * WordPiece: the longest token that a word begins with, then the longest that continues it, and so on; a word that cannot be
 * cut so is unknown as a whole (Schuster and Nakajima, 2012). And vocabularies of whole words.
 */
#include "extras/llm/tokenizer/impl.h"

static size_t count_chars(dc_piece p)
{
    size_t n = 0;
    for (size_t at = 0, length; at < p.n; at += length, n++)
        dc_char_at(p.s, p.n, at, &length);
    return n;
}

/* The trees of beginnings and continuations are one: those of continuations are behind their prefix. */
static size_t longest(const dc_model *m, uint32_t node, const char *s, size_t n, uint32_t *id)
{
    size_t found = 0;
    for (size_t i = 0;
         i < n && node != 0 && (node = dc_trie_step(&m->trie, node, (unsigned char)s[i])) != 0; i++)
        if (m->trie.id[node] != DC_TOKEN_NONE) {
            found = i + 1;
            *id = m->trie.id[node];
        }
    return found;
}

void dc_wordpiece_encode(dc_tokenizer *t, dc_piece p)
{
    const dc_model *m = &t->model;
    const uint32_t before = t->to->n;
    uint32_t id = m->unknown, rest = 1;
    if (m->kind == DC_MODEL_WORDS) {
        const uint32_t found = dc_vocab_find(&m->vocab, p.s, p.n);
        dc_model_put(t, found != DC_TOKEN_NONE ? found : m->unknown, p, 0, p.n);
        return;
    }
    for (size_t i = 0; rest != 0 && i < m->prefix.n; i++)
        rest = dc_trie_step(&m->trie, rest, (unsigned char)m->prefix.at[i]);
    if (p.n > m->most_chars && count_chars(p) > m->most_chars) {
        dc_model_put(t, m->unknown, p, 0, p.n);
        return;
    }
    for (size_t at = 0, n; at < p.n; at += n) {
        dc_tokenizer_look(t, 64);
        n = longest(m, at == 0 ? 1 : rest, p.s + at, p.n - at, &id);
        if (n == 0) {
            t->to->n = before;
            if (t->to_ranges != NULL)
                t->to_ranges->n = before;
            dc_model_put(t, m->unknown, p, 0, p.n);
            return;
        }
        dc_model_put(t, id, p, at, n);
    }
}
