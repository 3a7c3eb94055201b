/* Models and their vocabularies, out of a description or beside it. */
#include "core/base/path.h"
#include "extras/llm/tokenizer/impl.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_AFFIX = 100, TRIE_BYTES = 1 << 24, TRIE_TOKEN = 1024 };

/* ---- vocabularies ----------------------------------------------------------------------------- */

/* An object of texts and ids. */
static dc_status read_object(dc_building *b, const dc_jnode *v, dc_vocab *out)
{
    uint32_t size = 0;
    for (const dc_jnode *one = v->child; one != NULL; one = one->next) {
        if (one->kind != DC_J_NUMBER ||
            !(one->v.num >= 0 && one->v.num < (double)v->n * 8 + (1 << 16)) ||
            one->v.num != (double)(uint32_t)one->v.num)
            return dc_refuse(
                b,
                "the id of the token '%.60s' is no whole number, or far above the number of tokens",
                one->key);
        size = (uint32_t)one->v.num >= size ? (uint32_t)one->v.num + 1 : size;
    }
    dc_vocab_init(out, &b->t->keep, size, v->n);
    for (const dc_jnode *one = v->child; one != NULL; one = one->next) {
        const uint32_t id = (uint32_t)one->v.num;
        dc_tokenizer_look(b->t, 16);
        const dc_span token = dc_build_copy(b, (dc_span){one->key, one->nkey});
        if (out->token[id].at != NULL)
            return dc_refuse(b, "the id %u is that of two tokens, '%.60s' and '%.60s'", id,
                             out->token[id].at, token.at);
        if (dc_vocab_add(out, token, id) != id)
            return dc_refuse(b, "the token '%.60s' is there twice", token.at);
    }
    return DC_OK;
}

/* Tokens by their places; of a text that is there twice the last one is found. */
static void add_last(dc_vocab *v, dc_span token, uint32_t id)
{
    const uint32_t before = dc_vocab_add(v, token, id);
    if (before != id) {
        v->token[id] = token;
        dc_vocab_set(v, token, id);
    }
}

/* [["text", score], ...] */
static dc_status read_scored(dc_building *b, const dc_jnode *v, dc_vocab *out)
{
    dc_model *m = &b->t->model;
    uint32_t id = 0;
    dc_vocab_init(out, &b->t->keep, v->n, v->n);
    m->score = DC_NEW_ARRAY(&b->t->keep, double, v->n + 1);
    for (const dc_jnode *one = v->child; one != NULL; one = one->next, id++) {
        dc_tokenizer_look(b->t, 16);
        const dc_jnode *text = one->child, *score = text != NULL ? text->next : NULL;
        if (one->kind != DC_J_LIST || one->n != 2 || text->kind != DC_J_STRING ||
            score->kind != DC_J_NUMBER)
            return dc_refuse(b, "token %u of vocab is no text and score", id);
        add_last(out, dc_build_copy(b, (dc_span){text->v.s, text->n}), id);
        m->score[id] = score->v.num;
    }
    return DC_OK;
}

static dc_status read_given(dc_building *b, dc_vocab *out)
{
    const dc_token_list *l = b->list;
    dc_model *m = &b->t->model;
    if (l->n > UINT32_MAX / 16)
        return dc_refuse(b, "%zu tokens are too many", l->n);
    dc_vocab_init(out, &b->t->keep, (uint32_t)l->n, l->n);
    for (uint32_t i = 0; i < l->n; i++) {
        dc_tokenizer_look(b->t, 16);
        add_last(out, dc_build_copy(b, l->token[i]), i);
    }
    if (l->score == NULL)
        return DC_OK;
    m->score = DC_NEW_ARRAY(&b->t->keep, double, l->n + 1);
    for (uint32_t i = 0; i < l->n; i++) {
        if (!isfinite(l->score[i]))
            return dc_refuse(b, "the score of token %u is %g", i, l->score[i]);
        m->score[i] = l->score[i];
    }
    return DC_OK;
}

static dc_status read_vocab(dc_building *b, const dc_jnode *model, bool scored)
{
    const dc_jnode *v = dc_json_get(model, "vocab");
    dc_vocab *out = &b->t->spelled;
    if (v == NULL && b->list != NULL)
        return read_given(b, out);
    if (v == NULL || v->kind != (scored ? DC_J_LIST : DC_J_OBJECT))
        return dc_refuse(b, "vocab of the model is %s, not %s", scored ? "a list" : "an object",
                         dc_json_kind(v));
    return scored ? read_scored(b, v, out) : read_object(b, v, out);
}

static dc_status read_unknown(dc_building *b, const dc_jnode *model)
{
    const dc_jnode *v = dc_json_get(model, "unk_token");
    b->t->model.unknown = DC_TOKEN_NONE;
    if (v == NULL)
        return DC_OK;
    if (v->kind != DC_J_STRING)
        return dc_refuse(b, "unk_token is a string, not %s", dc_json_kind(v));
    b->t->model.unknown = dc_vocab_find(&b->t->spelled, v->v.s, v->n);
    return DC_OK;
}

/* All tokens into one tree. */
static dc_status plant(dc_building *b)
{
    const dc_vocab *v = &b->t->model.vocab;
    size_t bytes = 0;
    for (uint32_t i = 0; i < v->size; i++) {
        bytes += v->token[i].n;
        if (v->token[i].n > TRIE_TOKEN) /* as far as is looked at each place of a text */
            return dc_refuse(b, "token %u has %zu bytes, %d are the most", i, v->token[i].n,
                             TRIE_TOKEN);
    }
    if (bytes >= TRIE_BYTES)
        return dc_refuse(b, "tokens of %zu bytes together: %d are the most", bytes, TRIE_BYTES);
    dc_trie_init(&b->t->model.trie, &b->t->keep, bytes);
    for (uint32_t i = 0; i < v->size; i++) {
        dc_tokenizer_look(b->t, v->token[i].n);
        if (v->token[i].n > 0)
            dc_trie_add(&b->t->model.trie, v->token[i].at, v->token[i].n, i);
    }
    return DC_OK;
}

/* The tokens of bytes: "<0x41>". */
static void find_bytes(dc_model *m)
{
    char name[8];
    for (int i = 0; i < 256; i++) {
        snprintf(name, sizeof name, "<0x%02X>", i);
        m->byte_id[i] = dc_vocab_find(&m->vocab, name, 6);
    }
}

/* Tokens of the byte-level alphabet as the bytes that they stand for; what has other characters is in no text. */
static void vocab_of_bytes(dc_building *b)
{
    dc_model *m = &b->t->model;
    const dc_vocab *from = &b->t->spelled;
    dc_vocab_init(&m->vocab, &b->t->keep, from->size, from->size);
    for (uint32_t id = 0; id < from->size; id++) {
        const dc_span s = from->token[id];
        dc_tokenizer_look(b->t, 16 + s.n);
        char *bytes = s.at != NULL ? dc_arena_alloc(&b->t->keep, s.n + 1) : NULL;
        size_t n = 0, at = 0, length;
        for (; at < s.n; at += length)
            if (!dc_char_byte(dc_utf8_next(s.at + at, s.n - at, &length),
                              (unsigned char *)&bytes[n++]))
                break;
        if (bytes != NULL && at == s.n && n > 0)
            dc_vocab_add(&m->vocab, (dc_span){bytes, n}, id);
    }
    for (int i = 0; i < 256; i++) {
        const char byte = (char)i;
        m->byte_id[i] = dc_vocab_find(&m->vocab, &byte, 1);
    }
}

/* ---- merges ----------------------------------------------------------------------------------- */

static void put_merge(dc_model *m, uint64_t pair, uint32_t rank, uint32_t id)
{
    uint32_t i = dc_merge_slot(m, pair);
    while (m->merge[i].pair != UINT64_MAX && m->merge[i].pair != pair)
        i = (i + 1) & m->merge_mask;
    m->merge[i] = (dc_merge){pair, rank, id};
}

static dc_status add_merge(dc_building *b, dc_span left, dc_span right, uint32_t rank)
{
    dc_tokenizer *t = b->t;
    dc_tokenizer_look(t, 64);
    const dc_mark mark = dc_arena_mark(&b->job->scratch);
    const size_t skip = t->model.prefix.n <= right.n ? t->model.prefix.n : right.n;
    const uint32_t l = dc_vocab_find(&t->spelled, left.at, left.n),
                   r = dc_vocab_find(&t->spelled, right.at, right.n);
    char *both = dc_arena_alloc(&b->job->scratch, left.n + right.n + 1);
    memcpy(both, left.at, left.n);
    memcpy(both + left.n, right.at + skip, right.n - skip);
    const uint32_t id = dc_vocab_find(&t->spelled, both, left.n + right.n - skip);
    if (l == DC_TOKEN_NONE || r == DC_TOKEN_NONE || id == DC_TOKEN_NONE)
        return dc_refuse(b, "merge %u: '%.60s' is not in vocab", rank,
                         l == DC_TOKEN_NONE   ? left.at
                         : r == DC_TOKEN_NONE ? right.at
                                              : both);
    dc_arena_rewind(&b->job->scratch, mark);
    put_merge(&t->model, (uint64_t)l << 32 | r, rank, id);
    return DC_OK;
}

/* "left right", cut in its place: one blank. */
static dc_status add_text(dc_building *b, dc_span s, uint32_t rank)
{
    const char *blank = memchr(s.at, ' ', s.n);
    const size_t n = blank != NULL ? (size_t)(blank - s.at) : 0;
    if (n == 0 || n + 1 == s.n || memchr(blank + 1, ' ', s.n - n - 1) != NULL)
        return dc_refuse(b, "merge %u, '%.60s', is not two texts with a blank between them", rank,
                         s.at);
    const dc_span left = dc_build_copy(b, (dc_span){s.at, n});
    return add_merge(b, left, (dc_span){blank + 1, s.n - n - 1}, rank);
}

static void make_merges(dc_building *b, size_t n)
{
    dc_model *m = &b->t->model;
    m->merge_mask = 15;
    m->merge_seed = dc_vocab_seed(m);
    while (m->merge_mask / 2 < n)
        m->merge_mask = m->merge_mask * 2 + 1;
    m->merge = DC_NEW_ARRAY(&b->t->keep, dc_merge, (size_t)m->merge_mask + 1);
    for (uint32_t i = 0; i <= m->merge_mask; i++)
        m->merge[i].pair = UINT64_MAX;
}

static dc_status read_merges(dc_building *b, const dc_jnode *model)
{
    const dc_jnode *v = dc_json_get(model, "merges");
    uint32_t rank = 0;
    if (v == NULL && b->list != NULL && b->list->merge != NULL) {
        make_merges(b, b->list->nmerge);
        for (size_t i = 0; i < b->list->nmerge; i++)
            DC_TRY(add_text(b, b->list->merge[i], (uint32_t)i));
        return DC_OK;
    }
    if (v == NULL || v->kind != DC_J_LIST)
        return dc_refuse(b, "merges of the model is a list, not %s", dc_json_kind(v));
    make_merges(b, v->n);
    for (const dc_jnode *one = v->child; one != NULL; one = one->next, rank++) {
        if (one->kind == DC_J_STRING) {
            DC_TRY(add_text(b, (dc_span){one->v.s, one->n}, rank));
            continue;
        }
        if (one->kind != DC_J_LIST || one->n != 2 || one->child->kind != DC_J_STRING ||
            one->child->next->kind != DC_J_STRING)
            return dc_refuse(b, "merge %u is not two texts", rank);
        const dc_jnode *l = one->child, *r = l->next;
        DC_TRY(add_merge(b, (dc_span){l->v.s, l->n}, (dc_span){r->v.s, r->n}, rank));
    }
    return DC_OK;
}

/* ---- SentencePiece ---------------------------------------------------------------------------- */

/* Kinds of tokens, as the numbers of a list: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte. */
static dc_status read_types(dc_building *b, const dc_jnode *model)
{
    const dc_jnode *v = dc_json_get(model, "types");
    dc_model *m = &b->t->model;
    const uint32_t n = b->t->spelled.size;
    uint32_t id = 0;
    bool any = false;
    if (v == NULL)
        return DC_OK;
    if (v->kind != DC_J_LIST || v->n != n)
        return dc_refuse(b, "types has %u kinds for %u tokens", v->n, n);
    m->frozen = DC_NEW_ARRAY(&b->t->keep, uint8_t, n + 1);
    m->half = DC_NEW_ARRAY(&b->t->keep, uint32_t, n + 1);
    m->least = INFINITY;
    m->best = FLT_MIN; /* as there: no score is better, since they are logarithms */
    for (const dc_jnode *one = v->child; one != NULL; one = one->next, id++) {
        const int kind =
            one->kind == DC_J_NUMBER && one->v.num >= 1 && one->v.num <= 6 ? (int)one->v.num : 0;
        if (kind == 0)
            return dc_refuse(b, "the kind of token %u is a number of 1 to 6", id);
        m->frozen[id] = kind == 4   ? DC_FROZEN_USER
                        : kind == 5 ? DC_FROZEN_UNUSED
                        : kind != 1 ? DC_FROZEN_AWAY
                                    : DC_FROZEN_NOT;
        any = any || kind == 4;
        if (kind == 1) {
            m->least = fmin(m->least, m->score[id]);
            m->best = fmax(m->best, m->score[id]);
        }
    }
    m->has_frozen = any;
    return DC_OK;
}

/* ---- models ----------------------------------------------------------------------------------- */

static dc_status read_affix(dc_building *b, const dc_jnode *v, const char *key, dc_span *out)
{
    *out = (dc_span){"", 0};
    if (dc_json_get(v, key) == NULL)
        return DC_OK;
    DC_TRY(dc_build_text(b, v, key, out));
    return out->n <= MOST_AFFIX
               ? DC_OK
               : dc_refuse(b, "%s has %zu bytes, %d are the most", key, out->n, MOST_AFFIX);
}

static dc_status read_bpe(dc_building *b, const dc_jnode *v)
{
    static const char *const known[] = {"dropout",
                                        "unk_token",
                                        "continuing_subword_prefix",
                                        "end_of_word_suffix",
                                        "fuse_unk",
                                        "byte_fallback",
                                        "ignore_merges",
                                        "vocab",
                                        "merges",
                                        "by_score",
                                        "types",
                                        NULL};
    dc_model *m = &b->t->model;
    const dc_jnode *dropout = dc_json_get(v, "dropout");
    m->kind = DC_MODEL_BPE;
    DC_TRY(dc_build_known(b, v, "the model BPE", known));
    if (dropout != NULL && !(dropout->kind == DC_J_NUMBER && dropout->v.num == 0))
        return dc_refuse(b, "dropout of merges is not known");
    DC_TRY(dc_build_flag(b, v, "fuse_unk", false, &m->fuse));
    DC_TRY(dc_build_flag(b, v, "byte_fallback", false, &m->fallback));
    DC_TRY(dc_build_flag(b, v, "ignore_merges", false, &m->ignore_merges));
    DC_TRY(dc_build_flag(b, v, "by_score", false, &m->by_score));
    DC_TRY(read_affix(b, v, "continuing_subword_prefix", &m->prefix));
    DC_TRY(read_affix(b, v, "end_of_word_suffix", &m->suffix));
    DC_TRY(read_vocab(b, v, false));
    DC_TRY(read_unknown(b, v));
    if (m->by_score && m->score == NULL)
        return dc_refuse(b, "there are no scores");
    if (m->bytes) {
        vocab_of_bytes(b);
    } else {
        m->vocab = b->t->spelled;
        find_bytes(m);
    }
    if (!m->by_score)
        return read_merges(b, v);
    DC_TRY(read_types(b, v));
    return m->has_frozen ? plant(b) : DC_OK;
}

static dc_status read_unigram(dc_building *b, const dc_jnode *v)
{
    static const char *const known[] = {"unk_id",   "byte_fallback", "vocab",
                                        "as_float", "types",         NULL};
    dc_model *m = &b->t->model;
    int64_t id = -1;
    m->kind = DC_MODEL_UNIGRAM;
    DC_TRY(dc_build_known(b, v, "the model Unigram", known));
    DC_TRY(dc_build_flag(b, v, "byte_fallback", false, &m->fallback));
    DC_TRY(dc_build_flag(b, v, "as_float", false, &m->as_float));
    DC_TRY(read_vocab(b, v, true));
    m->vocab = b->t->spelled;
    m->fuse = true;
    m->unknown = DC_TOKEN_NONE;
    if (m->vocab.size == 0 || m->score == NULL)
        return dc_refuse(b, "there are no tokens with scores");
    if (dc_json_get(v, "unk_id") != NULL)
        DC_TRY(dc_build_whole(b, v, "unk_id", 0, (int64_t)m->vocab.size - 1, &id));
    if (id >= 0)
        m->unknown = (uint32_t)id;
    m->least = INFINITY;
    for (uint32_t i = 0; i < m->vocab.size; i++)
        m->least = fmin(m->least, m->score[i]);
    find_bytes(m);
    DC_TRY(read_types(b, v));
    return plant(b);
}

static dc_status read_wordpiece(dc_building *b, const dc_jnode *v)
{
    static const char *const known[] = {"unk_token", "continuing_subword_prefix",
                                        "max_input_chars_per_word", "vocab", NULL};
    dc_model *m = &b->t->model;
    int64_t most;
    m->kind = DC_MODEL_WORDPIECE;
    DC_TRY(dc_build_known(b, v, "the model WordPiece", known));
    DC_TRY(read_affix(b, v, "continuing_subword_prefix", &m->prefix));
    DC_TRY(dc_build_whole(b, v, "max_input_chars_per_word", 0, INT32_MAX, &most));
    m->most_chars = (size_t)most;
    DC_TRY(read_vocab(b, v, false));
    DC_TRY(read_unknown(b, v));
    m->vocab = b->t->spelled;
    return plant(b);
}

static dc_status read_words(dc_building *b, const dc_jnode *v)
{
    static const char *const known[] = {"unk_token", "vocab", NULL};
    b->t->model.kind = DC_MODEL_WORDS;
    DC_TRY(dc_build_known(b, v, "the model WordLevel", known));
    DC_TRY(read_vocab(b, v, false));
    DC_TRY(read_unknown(b, v));
    b->t->model.vocab = b->t->spelled;
    return DC_OK;
}

/* Files of the first versions do not name the model: one with merges is BPE. */
dc_status dc_build_model(dc_building *b, const dc_jnode *v)
{
    const dc_jnode *type = dc_json_get(v, "type");
    if (dc_json_is(type, "BPE") || (type == NULL && dc_json_get(v, "merges") != NULL))
        return read_bpe(b, v);
    if (dc_json_is(type, "Unigram"))
        return read_unigram(b, v);
    if (dc_json_is(type, "WordPiece"))
        return read_wordpiece(b, v);
    if (dc_json_is(type, "WordLevel"))
        return read_words(b, v);
    return dc_refuse(b, "the model '%.60s' is not known",
                     type != NULL && type->kind == DC_J_STRING ? type->v.s : dc_json_kind(type));
}
