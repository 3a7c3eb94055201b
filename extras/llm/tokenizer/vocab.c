/* Texts and their numbers, by a hash table; trees of bytes, whose edges are in one. */
#include "extras/llm/tokenizer/impl.h"

#include <string.h>

static uint32_t table_size(size_t entries)
{
    uint32_t n = 16;
    while (n / 2 < entries)
        n *= 2;
    return n;
}

uint64_t dc_vocab_seed(const void *of)
{
    return (dc_clock_ns() ^ (uintptr_t)of) * 0xbf58476d1ce4e5b9u;
}

static uint32_t hash(uint64_t seed, const char *s, size_t n)
{
    uint64_t h = seed ^ n, w;
    for (; n >= 8; n -= 8, s += 8) {
        memcpy(&w, s, 8);
        h = (h ^ w) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    w = 0;
    memcpy(&w, s, n);
    h = (h ^ w) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(h >> 32);
}

void dc_vocab_init(dc_vocab *v, dc_arena *a, uint32_t size, size_t tokens)
{
    v->size = size;
    v->seed = dc_vocab_seed(v);
    v->token = DC_NEW_ARRAY(a, dc_span, (size_t)size + 1);
    v->mask = table_size(tokens + 1) - 1;
    v->slot = DC_NEW_ARRAY(a, uint32_t, (size_t)v->mask + 1);
}

static uint32_t *slot_of(const dc_vocab *v, const char *s, size_t n)
{
    uint32_t i = hash(v->seed, s, n) & v->mask;
    for (; v->slot[i] != 0; i = (i + 1) & v->mask) {
        const dc_span *t = &v->token[v->slot[i] - 1];
        if (t->n == n && memcmp(t->at, s, n) == 0)
            break;
    }
    return &v->slot[i];
}

uint32_t dc_vocab_add(dc_vocab *v, dc_span token, uint32_t id)
{
    uint32_t *slot = slot_of(v, token.at, token.n);
    if (*slot != 0)
        return *slot - 1;
    *slot = id + 1;
    v->token[id] = token;
    return id;
}

void dc_vocab_set(dc_vocab *v, dc_span token, uint32_t id)
{
    *slot_of(v, token.at, token.n) = id + 1;
}

uint32_t dc_vocab_find(const dc_vocab *v, const char *s, size_t n)
{
    return *slot_of(v, s, n) - 1; /* 0 - 1: DC_TOKEN_NONE */
}

/* ---- trees ------------------------------------------------------------------------------------ */

void dc_trie_init(dc_trie *t, dc_arena *a, size_t bytes)
{
    t->mask = table_size(bytes + 1) - 1;
    t->edge = DC_NEW_ARRAY(a, uint64_t, (size_t)t->mask + 1);
    t->id = DC_NEW_ARRAY(a, uint32_t, bytes + 2);
    t->nodes = 2;
    t->id[1] = DC_TOKEN_NONE;
}

static uint64_t *edge_of(const dc_trie *t, uint32_t key)
{
    uint32_t i = (key * 0x9e3779b1u) >> 7 & t->mask;
    while (t->edge[i] != 0 && t->edge[i] >> 32 != key)
        i = (i + 1) & t->mask;
    return &t->edge[i];
}

uint32_t dc_trie_step(const dc_trie *t, uint32_t node, unsigned char byte)
{
    return (uint32_t)*edge_of(t, node << 8 | byte);
}

void dc_trie_add(dc_trie *t, const char *s, size_t n, uint32_t id)
{
    uint32_t node = 1;
    for (size_t i = 0; i < n; i++) {
        const uint32_t key = node << 8 | (unsigned char)s[i];
        uint64_t *edge = edge_of(t, key);
        if (*edge == 0) {
            *edge = (uint64_t)key << 32 | t->nodes;
            t->id[t->nodes++] = DC_TOKEN_NONE;
        }
        node = (uint32_t)*edge;
    }
    t->id[node] = id;
    if (n > 0)
        t->begins[(unsigned char)*s] = true;
}

size_t dc_trie_longest(const dc_trie *t, const char *s, size_t n, uint32_t *id)
{
    size_t longest = 0;
    uint32_t node = 1;
    if (n == 0 || !t->begins[(unsigned char)*s])
        return 0;
    for (size_t i = 0; i < n && (node = dc_trie_step(t, node, (unsigned char)s[i])) != 0; i++)
        if (t->id[node] != DC_TOKEN_NONE) {
            longest = i + 1;
            *id = t->id[node];
        }
    return longest;
}
