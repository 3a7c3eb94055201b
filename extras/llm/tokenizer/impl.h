/*
 * The parts of a tokenizer, for the files of this folder.
 *
 * A text goes through it piece by piece: each step gets a piece, writes or cuts it, and hands what it made to the next
 * step, so that nothing is kept of pieces but the buffers of steps that write. Where places in the text are asked for, a
 * piece has the range that each of its bytes is from; steps that write carry it along.
 */
#ifndef DC_EXTRAS_LLM_TOKENIZER_IMPL_H
#define DC_EXTRAS_LLM_TOKENIZER_IMPL_H

#include "formats/jsontree.h"
#include "extras/llm/tokenizer/tokenizer.h"
#include "extras/llm/tokenizer/unicode.h"

typedef struct dc_piece {
    const char *s;
    size_t n;
    const dc_range *from; /* of each byte; NULL: not asked for */
    bool first;           /* it begins where the text does */
} dc_piece;

/* What a step writes. */
typedef struct dc_writing {
    char *s;
    dc_range *from;
    size_t n, cap;
    bool ranges;
} dc_writing;

/* ---- vocabulary: vocab.c ---------------------------------------------------------------------- */

/* Texts by number, and their numbers. */
typedef struct dc_vocab {
    dc_span *token; /* by id; at NULL: none */
    uint32_t size;
    uint32_t *slot, mask; /* open addressing: id + 1 */
    uint64_t seed;
} dc_vocab;

/* A number that no file knows: what it has must not be able to fall on one place of a table. */
uint64_t dc_vocab_seed(const void *of);

void dc_vocab_init(dc_vocab *v, dc_arena *a, uint32_t size, size_t tokens);
/* The id that the text has already, or `id` after it was added. */
uint32_t dc_vocab_add(dc_vocab *v, dc_span token, uint32_t id);
void dc_vocab_set(dc_vocab *v, dc_span token, uint32_t id);         /* of a text that is there */
uint32_t dc_vocab_find(const dc_vocab *v, const char *s, size_t n); /* DC_TOKEN_NONE */

/* A tree of bytes, for what a text begins with. Edges are in one table: node << 8 | byte. */
typedef struct dc_trie {
    uint64_t *edge; /* node << 40 | byte << 32 | to; 0: free. Nodes count from 1 */
    uint32_t mask, nodes;
    uint32_t *id; /* by node; DC_TOKEN_NONE: none ends there */
    bool begins[256];
} dc_trie;

/* Room for texts of so many bytes together. */
void dc_trie_init(dc_trie *t, dc_arena *a, size_t bytes);
void dc_trie_add(dc_trie *t, const char *s, size_t n, uint32_t id);
uint32_t dc_trie_step(const dc_trie *t, uint32_t node,
                      unsigned char byte); /* 0: no edge; the root is 1 */
/* The longest one that s begins with; its length, 0 where there is none. */
size_t dc_trie_longest(const dc_trie *t, const char *s, size_t n, uint32_t *id);

/* ---- patterns: pattern.c ---------------------------------------------------------------------- */

typedef enum dc_pattern_kind {
    DC_PATTERN_LITERAL,
    DC_PATTERN_GPT2,
    DC_PATTERN_CL100K, /* and its relatives, with digits in groups of `digits` */
    DC_PATTERN_REGEX   /* by libpcre2 */
} dc_pattern_kind;

typedef struct dc_pattern {
    dc_pattern_kind kind;
    dc_span literal;
    int digits;
    struct dc_regex *regex;
} dc_pattern;

struct dc_tokenizer;
dc_status dc_pattern_regex(struct dc_tokenizer *t, dc_job *j, const char *name, dc_span regex,
                           dc_pattern *out);
/*
 * The next match in s from `at` on: *from to *to; false where there is none. Matches may be of nothing, but not where one
 * ended before, at `at`: `behind` says that.
 */
bool dc_pattern_next(struct dc_tokenizer *t, const dc_pattern *p, const char *s, size_t n,
                     size_t at, bool behind, size_t *from, size_t *to);

/* charset.c: sets of code points. */
enum { DC_CHARSET_CODES = 0x110000 };
typedef struct dc_charset {
    uint64_t bit[DC_CHARSET_CODES / 64];
} dc_charset;

static inline bool dc_charset_has(const dc_charset *s, uint32_t c)
{
    return (s->bit[c / 64] >> c % 64 & 1) != 0;
}

void dc_charset_add(dc_charset *s, uint32_t from, uint32_t to);
void dc_charset_set(dc_charset *s, uint32_t from, uint32_t to, bool in);
void dc_charset_flip(dc_charset *s);
void dc_charset_join(dc_charset *s, const dc_charset *other);
void dc_charset_meet(dc_charset *s, const dc_charset *other);
/* The next run at *to or behind: *from to *to - 1; surrogates are in none. false: there is none. */
bool dc_charset_run(const dc_charset *s, uint32_t *from, uint32_t *to);
/* Of the categories in the mask, 1 << dc_category each; and of which categories all is in s. */
void dc_charset_categories(const dc_unicode *u, dc_charset *s, uint32_t categories);
uint32_t dc_charset_within(const dc_unicode *u, const dc_charset *s);
/* A property, or a POSIX bracket, by its name. false: it is not known. */
bool dc_charset_name(const dc_unicode *u, dc_charset *s, dc_span name, bool posix);
/* What a code point folds to; a set with all that are the same without case; are there some that fold to several? */
uint32_t dc_charset_folded(const dc_unicode *u, uint32_t c);
void dc_charset_fold(const dc_unicode *u, dc_charset *s);
bool dc_charset_folds_to_several(const dc_charset *s);

/* regex_text.c: a pattern of Oniguruma as one of PCRE2. */
typedef struct dc_regex_text {
    dc_text *to;
    const char *wrong; /* what it has that PCRE2 has not, or that is not known; NULL: nothing */
    bool whole;        /* where a search begins matters */
    bool repeat;       /* it compares with what was matched before */
    bool categories;   /* it has some by their names */
} dc_regex_text;

/* By categories as the package has them, or `exact`: and what of them PCRE2 has not, or has besides. */
dc_regex_text dc_regex_translate(struct dc_tokenizer *t, dc_job *j, dc_span pattern, bool exact);
/* regex.c: adds what PCRE2 takes for characters of these categories. */
void dc_regex_categories(struct dc_tokenizer *t, uint32_t mask, dc_charset *out);

/* regex.c: the same by libpcre2. false with a failure of t->job: PCRE2 fails, or all of t->work is done. */
dc_status dc_regex_new(struct dc_tokenizer *t, dc_job *j, const char *name, dc_span text,
                       struct dc_regex **out);
bool dc_regex_next(struct dc_tokenizer *t, struct dc_regex *r, const char *s, size_t n, size_t at,
                   bool behind, size_t *from, size_t *to);
void dc_regex_close(struct dc_tokenizer *t); /* all of them */
/* How much work patterns may make of texts of so many bytes. */
uint64_t dc_regex_work(size_t bytes);

/* ---- steps ------------------------------------------------------------------------------------ */

typedef enum dc_step_kind {
    /* normalizers, and pre-tokenizers that write */
    DC_STEP_BERT,
    DC_STEP_NFC,
    DC_STEP_NFD,
    DC_STEP_NFKC,
    DC_STEP_NFKD,
    DC_STEP_LOWER,
    DC_STEP_ACCENTS,
    DC_STEP_PREPEND,
    DC_STEP_REPLACE,
    DC_STEP_STRIP,
    DC_STEP_NMT,
    DC_STEP_CHARSMAP,
    DC_STEP_BYTES,         /* bytes as characters of the byte-level alphabet */
    DC_STEP_SENTENCEPIECE, /* its normalizer as a whole */
    /* pre-tokenizers that cut */
    DC_STEP_CUT_BYTES, /* ByteLevel */
    DC_STEP_CUT_BERT,
    DC_STEP_CUT_SPLIT,
    DC_STEP_CUT_DIGITS,
    DC_STEP_CUT_META,
    DC_STEP_CUT_WORDS,
    DC_STEP_CUT_SPACES,
    DC_STEP_CUT_PUNCT,
    DC_STEP_CUT_LENGTH,
    /* decoders */
    DC_STEP_OF_BYTES,
    DC_STEP_OF_WORDPIECE,
    DC_STEP_OF_META,
    DC_STEP_OF_BPE,
    DC_STEP_OF_REPLACE,
    DC_STEP_OF_FALLBACK,
    DC_STEP_OF_FUSE,
    DC_STEP_OF_STRIP,
    DC_STEP_OF_CTC,
    DC_STEP_OF_SENTENCEPIECE
} dc_step_kind;

typedef enum dc_behavior {
    DC_SPLIT_REMOVED,
    DC_SPLIT_ISOLATED,
    DC_SPLIT_PREVIOUS,
    DC_SPLIT_NEXT,
    DC_SPLIT_CONTIGUOUS
} dc_behavior;

typedef enum dc_prepend { DC_PREPEND_NEVER, DC_PREPEND_FIRST, DC_PREPEND_ALWAYS } dc_prepend;

typedef struct dc_charsmap {
    const uint32_t *unit; /* a double array */
    uint32_t nunit;
    const char *pool; /* texts that end in '\0' */
    size_t npool;
} dc_charsmap;

/* One kind uses some of it. */
typedef struct dc_step {
    dc_step_kind kind;
    bool clean, chinese, accents, lower; /* BERT */
    bool left, right;                    /* strip; of decoders counts */
    bool prefix, regex;                  /* ByteLevel */
    bool split, invert;
    dc_behavior behavior;
    dc_prepend prepend;
    dc_pattern pattern;
    dc_span text; /* to prepend, to put in the place, the replacement, the prefix */
    dc_span word; /* CTC's delimiter */
    int64_t start, stop;
    dc_charsmap map;
    /* SentencePiece */
    bool dummy, collapse, escape, suffix;
} dc_step;

typedef struct dc_steps {
    dc_step *at;
    uint32_t n;
} dc_steps;

/* ---- models ----------------------------------------------------------------------------------- */

typedef enum dc_model_kind {
    DC_MODEL_BPE,
    DC_MODEL_UNIGRAM,
    DC_MODEL_WORDPIECE,
    DC_MODEL_WORDS
} dc_model_kind;

typedef struct dc_merge {
    uint64_t pair; /* left id << 32 | right id; UINT64_MAX: free */
    uint32_t rank, id;
} dc_merge;

/* Tokens of SentencePiece that are no usual ones. */
typedef enum dc_frozen {
    DC_FROZEN_NOT,
    DC_FROZEN_USER,   /* found before anything else, stays as it is */
    DC_FROZEN_UNUSED, /* made in between, not given out */
    DC_FROZEN_AWAY    /* not found in texts */
} dc_frozen;

typedef struct dc_model {
    dc_model_kind kind;
    bool bytes; /* pieces are the text's own bytes, tokens are what the alphabet makes of theirs */
    bool fallback, fuse, ignore_merges;
    bool
        by_score; /* BPE: any two tokens whose texts together are one merge, the best score first */
    bool as_float; /* scores are added as floats are */
    uint32_t unknown;
    dc_vocab vocab; /* as the model looks them up */
    dc_merge *merge;
    uint32_t merge_mask;
    uint64_t merge_seed;
    uint32_t byte_id[256];  /* of a byte: its symbol, or its token <0xNN> */
    dc_span prefix, suffix; /* continuing_subword_prefix, end_of_word_suffix */
    size_t most_chars;      /* WordPiece */
    double *score, least, best;
    dc_trie trie;    /* Unigram: of all; SentencePiece: of what the user defined */
    uint8_t *frozen; /* SentencePiece: by id, a dc_frozen; or NULL */
    bool has_frozen; /* some are user defined */
    uint32_t *half;  /* BPE: of an unused token, the bytes of its left part; 0: not met */
} dc_model;

/* ---- the whole -------------------------------------------------------------------------------- */

typedef struct dc_added {
    dc_span text;  /* as the file has it */
    dc_span shown; /* where normalizing makes something else of it; or at NULL */
    uint32_t id;
    bool special, normalized, single_word, lstrip, rstrip;
} dc_added;

typedef enum dc_part_kind { DC_PART_TEXT, DC_PART_PAIR, DC_PART_TOKEN } dc_part_kind;

typedef struct dc_part {
    dc_part_kind kind;
    uint32_t id;
    uint8_t type;
} dc_part;

typedef struct dc_template {
    dc_part *part;
    uint32_t n, ntoken;
} dc_template;

/* A piece that was cut before: 64 bytes. */
enum { DC_MEMO_KEY = 22, DC_MEMO_IDS = 10, DC_MEMO_SLOTS = 1 << 15 };
typedef struct dc_memo {
    uint8_t n, nid;
    char key[DC_MEMO_KEY];
    uint32_t id[DC_MEMO_IDS];
} dc_memo;

/* A symbol of BPE: bytes of a piece. */
typedef struct dc_symbol {
    uint32_t id, at, n;
    int32_t before, behind;
} dc_symbol;

typedef struct dc_candidate {
    double order;                 /* the least first */
    uint32_t at, left, right, id; /* the symbol, the ids of the two, what they become */
} dc_candidate;

typedef struct dc_best {
    double score;
    uint32_t from, id;
} dc_best;

typedef DC_VEC(uint32_t) dc_ids;
typedef DC_VEC(dc_range) dc_ranges;

enum { DC_MOST_STEPS = 32 };

struct dc_tokenizer {
    dc_arena keep; /* all that does not change */
    const dc_unicode *u;
    dc_steps normalizer, cutter, decoder;
    dc_model model;
    dc_vocab spelled; /* the model's tokens, as the file spells them */
    dc_vocab all;     /* every token as the file spells it, added ones included */
    dc_added *added;
    uint32_t nadded;
    uint32_t *added_of; /* by id: place in added + 1 */
    dc_trie raw,
        normal; /* added tokens that are found before and after normalizing; values: places */
    bool has_raw, has_normal;
    dc_template single, pair;
    bool trim, trim_prefix; /* ranges without blanks, as ByteLevel's post-processor has them */
    struct dc_regex *regexes;
    void *regex_library;
    dc_tokenizer_info info;
    /* working memory */
    dc_memo *memo; /* DC_MEMO_SLOTS of them; NULL before the first piece */
    dc_writing write[DC_MOST_STEPS + 2];
    DC_VEC(dc_range) origin;
    dc_ids ids[2];
    dc_ranges ranges[2];
    DC_VEC(dc_symbol) symbol;
    DC_VEC(dc_candidate) heap;
    dc_ids halves; /* whose half is known */
    DC_VEC(dc_best) best;
    dc_ids out;
    DC_VEC(uint8_t) types, marks;
    dc_ranges out_ranges;
    dc_text text; /* decoded */
    /* of the running call */
    dc_job *job;
    dc_ids *to;
    dc_ranges *to_ranges; /* NULL: not asked for */
    bool parse_special;
    size_t looks;  /* what was done since the job was asked */
    uint64_t work; /* that regular expressions may still do */
};

/*
 * Loops over what others wrote ask the job whether they are to go on, some hundred microseconds of work apart: those over
 * characters as they read them, others as they count what they do, in about as much as a character takes.
 */
enum { DC_LOOK_EVERY = 1 << 15 };

static inline uint32_t dc_char_at(const char *s, size_t n, size_t at, size_t *length)
{
    const uint32_t c = dc_utf8_next(s + at, n - at, length);
    if ((at ^ (at + *length)) >= DC_LOOK_EVERY)
        dc_job_look();
    return c;
}

static inline void dc_tokenizer_look(dc_tokenizer *t, size_t work)
{
    t->looks += work;
    if (t->looks >= DC_LOOK_EVERY) {
        t->looks = 0;
        dc_job_look();
    }
}

static inline uint32_t dc_merge_slot(const dc_model *m, uint64_t pair)
{
    uint64_t h = (pair ^ m->merge_seed) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32) & m->merge_mask;
}

/* build.c, build_steps.c, build_model.c: parts of the description. */
typedef struct dc_building {
    dc_job *job;
    const char *name;
    dc_tokenizer *t;
    const dc_token_list *list;
} dc_building;

#define dc_refuse(b, ...) dc_path_fail((b)->job, DC_ERR_FORMAT, (b)->name, __VA_ARGS__)

dc_status dc_build_flag(dc_building *b, const dc_jnode *o, const char *key, bool dflt, bool *out);
dc_status dc_build_text(dc_building *b, const dc_jnode *o, const char *key, dc_span *out);
dc_status dc_build_whole(dc_building *b, const dc_jnode *o, const char *key, int64_t least,
                         int64_t most, int64_t *out);
/* Fields other than these (NULL-terminated) are refused by their name; `type` is always known. */
dc_status dc_build_known(dc_building *b, const dc_jnode *o, const char *what,
                         const char *const *known);
dc_span dc_build_copy(dc_building *b, dc_span s);
dc_status dc_build_normalizer(dc_building *b, const dc_jnode *v);
dc_status dc_build_cutter(dc_building *b, const dc_jnode *v);
dc_status dc_build_decoder(dc_building *b, const dc_jnode *v);
dc_status dc_build_model(dc_building *b, const dc_jnode *v);
dc_status dc_build_post(dc_building *b, const dc_jnode *v);

/* normalize.c, charsmap.c */
dc_status dc_charsmap_read(dc_building *b, dc_span bytes, dc_charsmap *out);
/* What s begins with and becomes: bytes read; *to, *n what they are now. */
size_t dc_charsmap_next(const dc_charsmap *m, const char *s, size_t n, dc_span *to);
/* What the shortest entry that s begins with becomes; false where there is none. */
bool dc_charsmap_first(const dc_charsmap *m, const char *s, size_t n, dc_span *to);
void dc_write_reset(dc_writing *w, bool ranges);
void dc_write_put(dc_writing *w, const char *s, size_t n, dc_range from);
/* One step: p, or what it becomes in w. */
dc_piece dc_normalize_step(dc_tokenizer *t, const dc_step *s, dc_piece p, dc_writing *w);
dc_piece dc_normalize(dc_tokenizer *t, dc_piece p);
dc_piece dc_sentencepiece_normalize(dc_tokenizer *t, const dc_step *s, dc_piece p, dc_writing *w);
uint32_t dc_byte_char(unsigned char byte); /* of the byte-level alphabet */
bool dc_char_byte(uint32_t c, unsigned char *byte);

/* cut.c: cuts a piece by the steps from k on and has the model make tokens of what comes out. */
void dc_cut(dc_tokenizer *t, uint32_t k, dc_piece p);

/* model.c, bpe.c, unigram.c, wordpiece.c: tokens of a piece that is not empty, added to t->to. */
void dc_model_encode(dc_tokenizer *t, dc_piece p);
void dc_bpe_encode(dc_tokenizer *t, dc_piece p);
void dc_unigram_encode(dc_tokenizer *t, dc_piece p);
void dc_wordpiece_encode(dc_tokenizer *t, dc_piece p);
void dc_model_put(dc_tokenizer *t, uint32_t id, dc_piece p, size_t at, size_t n);

/* added.c: the text, cut at added tokens. */
void dc_added_encode(dc_tokenizer *t, dc_piece p);

#endif
