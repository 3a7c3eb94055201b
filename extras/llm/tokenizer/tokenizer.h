/*
 * Tokenizers: a text becomes numbers of tokens, and back.
 *
 * What one does is described as in the tokenizer.json of Hugging Face: added tokens are found in the text, what is
 * between them is normalized and cut into pieces, a model cuts pieces into tokens, a post-processor puts special tokens
 * around. Vocabularies of other files (GGUF, SentencePiece, vocab.txt) are given beside such a description. What is not
 * known in it is refused by its name.
 *
 * A tokenizer is used by one thread at a time: it keeps the memory that it works in, and pieces that it has cut before.
 */
#ifndef DC_EXTRAS_LLM_TOKENIZER_TOKENIZER_H
#define DC_EXTRAS_LLM_TOKENIZER_TOKENIZER_H

#include "core/base/job.h"

typedef struct dc_tokenizer dc_tokenizer;

typedef struct dc_span {
    const char *at;
    size_t n;
} dc_span;

/* Bytes of the text: from, and the first one behind. */
typedef struct dc_range {
    uint32_t from, to;
} dc_range;

/* A vocabulary beside the description; its bytes are copied. Ids are places in the list. */
typedef struct dc_token_list {
    const dc_span *token;
    size_t n;
    const double *score;  /* n, or NULL */
    const dc_span *merge; /* "a b" each */
    size_t nmerge;
    dc_span charsmap;   /* precompiled map of characters of SentencePiece; n = 0: none */
    bool sentencepiece; /* the description may ask for SentencePiece's own steps */
    bool find_special;  /* of sentencepiece: special tokens are found in texts, which it does not do itself */
} dc_token_list;

#define DC_TOKEN_NONE UINT32_MAX

/*
 * The n bytes of json are changed. `name` stands before what is wrong with it; list may be NULL. The tokenizer is
 * freed by dc_tokenizer_free.
 */
dc_status dc_tokenizer_new(dc_job *j, const char *name, char *json, size_t n,
                           const dc_token_list *list, dc_tokenizer **out);
void dc_tokenizer_free(dc_tokenizer *t); /* NULL is fine */

typedef struct dc_encode {
    dc_span text, pair; /* pair.at NULL: there is none */
    bool special;       /* the post-processor adds its tokens */
    bool parse_special; /* special tokens are found in the text */
    bool offsets;
    int64_t most; /* tokens, special ones included; -1: any number */
} dc_encode;

/* Where the tokenizer keeps it, until it is used again. */
typedef struct dc_encoded {
    const uint32_t *id;
    const uint8_t *type;   /* 0: of the text, 1: of the pair, or as the post-processor has it */
    const uint8_t *added;  /* 1: by the post-processor */
    const dc_range *range; /* in the text, or in the pair; NULL where it was not asked for */
    size_t n;
} dc_encoded;

dc_status dc_tokenizer_encode(dc_tokenizer *t, dc_job *j, const dc_encode *e, dc_encoded *out);

/* The text of n ids, in the tokenizer's memory. Those that no token has are left out, as the packages do. */
dc_status dc_tokenizer_decode(dc_tokenizer *t, dc_job *j, const uint32_t *id, size_t n,
                              bool skip_special, dc_span *out);

/* What the file says of batches, for those who make them. */
typedef struct dc_tokenizer_info {
    int64_t most, pad; /* tokens of a text, the id of padding; -1: not said */
    bool pad_left;
} dc_tokenizer_info;

dc_tokenizer_info dc_tokenizer_about(const dc_tokenizer *t);
uint32_t dc_tokenizer_size(const dc_tokenizer *t);              /* the largest id + 1 */
uint32_t dc_tokenizer_id(const dc_tokenizer *t, dc_span token); /* DC_TOKEN_NONE: there is none */
/* As the file spells it, an added one as normalizing leaves it; at is NULL where no token has the id. */
dc_span dc_tokenizer_token(const dc_tokenizer *t, uint32_t id);
bool dc_tokenizer_is_special(const dc_tokenizer *t, uint32_t id);
uint32_t dc_tokenizer_unknown(const dc_tokenizer *t);

#endif
