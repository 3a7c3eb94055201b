/*
 * What tokenizers need to know of code points: categories, classes, lower case, decompositions, compositions; and
 * UTF-8. A byte that is no UTF-8 is the code point DC_RAW_BYTE + byte, so that any bytes can be read and written again.
 */
#ifndef DC_EXTRAS_LLM_TOKENIZER_UNICODE_H
#define DC_EXTRAS_LLM_TOKENIZER_UNICODE_H

#include "core/base/job.h"

enum { DC_RAW_BYTE = 0x110000 };

typedef enum dc_category {
    DC_CAT_CN,
    DC_CAT_LU,
    DC_CAT_LL,
    DC_CAT_LT,
    DC_CAT_LM,
    DC_CAT_LO,
    DC_CAT_MN,
    DC_CAT_MC,
    DC_CAT_ME,
    DC_CAT_ND,
    DC_CAT_NL,
    DC_CAT_NO,
    DC_CAT_ZS,
    DC_CAT_ZL,
    DC_CAT_ZP,
    DC_CAT_CC,
    DC_CAT_CF,
    DC_CAT_CS,
    DC_CAT_CO,
    DC_CAT_PC,
    DC_CAT_PD,
    DC_CAT_PS,
    DC_CAT_PE,
    DC_CAT_PI,
    DC_CAT_PF,
    DC_CAT_PO,
    DC_CAT_SM,
    DC_CAT_SC,
    DC_CAT_SK,
    DC_CAT_SO,
    DC_CATEGORIES
} dc_category; /* in the order of scripts/unicode.py */

/* A code point's row: category | combining class << 8 | flags. */
enum {
    DC_UC_SPACE = 1 << 16,     /* \s */
    DC_UC_DROP = 1 << 17,      /* BERT's cleaning takes it away */
    DC_UC_BLANK = 1 << 18,     /* or makes it a space */
    DC_UC_PUNCT = 1 << 19,     /* cut off by BERT's and other pre-tokenizers */
    DC_UC_NUMERIC = 1 << 20,   /* of the pre-tokenizer Digits */
    DC_UC_MARK = 1 << 21,      /* of the normalizer StripAccents */
    DC_UC_ACCENT = 1 << 22,    /* of BERT's */
    DC_UC_UPPER = 1 << 23,     /* has a lower case */
    DC_UC_NFD = 1 << 24,       /* has a canonical decomposition */
    DC_UC_NFKD = 1 << 25,      /* has another one for compatibility */
    DC_UC_SECOND = 1 << 26,    /* may combine with what is before it */
    DC_UC_WORD = 1 << 27,      /* \w of the pre-tokenizer Whitespace, which is not Oniguruma's */
    DC_UC_ALPHA = 1 << 28,     /* [:alpha:] */
    DC_UC_LOWERCASE = 1 << 29, /* [:lower:] */
    DC_UC_UPPERCASE = 1 << 30  /* [:upper:] */
};

typedef struct dc_unicode {
    uint8_t bmp[0x10000]; /* rows of code points */
    const uint32_t *row;
    const uint32_t *from, *of; /* ranges: first code point, row */
    uint32_t nrange, nlower, ndecomposed, ncomposed;
    const uint32_t *upper, *lower;
    const uint32_t *code, *compatible, *at; /* decompositions, at[i] to at[i + 1] of pool */
    const uint32_t *pool;
    const uint32_t *first, *second, *both; /* sorted by the two */
    const uint32_t *script_from, *script;  /* ranges: first code point, number of charset.c */
    uint32_t nscript;
} dc_unicode;

/* Unpacks the tables into the arena. */
dc_status dc_unicode_new(dc_job *j, dc_arena *a, const dc_unicode **out);

uint32_t dc_unicode_far(const dc_unicode *u, uint32_t c);

/* Of any code point, DC_RAW_BYTE and above included. */
static inline uint32_t dc_unicode_row(const dc_unicode *u, uint32_t c)
{
    return c < 0x10000 ? u->row[u->bmp[c]] : dc_unicode_far(u, c);
}

static inline unsigned dc_unicode_category(uint32_t row)
{
    return row & 255;
}

static inline bool dc_unicode_letter(uint32_t row)
{
    return (row & 255) >= DC_CAT_LU && (row & 255) <= DC_CAT_LO;
}

static inline bool dc_unicode_number(uint32_t row)
{
    return (row & 255) >= DC_CAT_ND && (row & 255) <= DC_CAT_NO;
}

uint32_t dc_unicode_lower(const dc_unicode *u, uint32_t c); /* U+0130 excepted, which has two */
/* The whole decomposition, NULL where c stands for itself; Hangul syllables are not in it. */
const uint32_t *dc_unicode_decompose(const dc_unicode *u, uint32_t c, bool compatible, uint32_t *n);
uint32_t dc_unicode_compose(const dc_unicode *u, uint32_t a, uint32_t b); /* 0: they do not */

uint32_t dc_utf8_far(const char *s, size_t n, size_t *length);

/* The code point that s[0] to s[n - 1] begin with; n > 0. */
static inline uint32_t dc_utf8_next(const char *s, size_t n, size_t *length)
{
    if ((unsigned char)*s < 0x80) {
        *length = 1;
        return (unsigned char)*s;
    }
    return dc_utf8_far(s, n, length);
}

/* Writes it, at most 4 bytes; returns how many. */
size_t dc_utf8_put(uint32_t c, char *to);
/* Bytes of s that are no UTF-8 and stand for one U+FFFD, as Python's "replace" has it; n > 0. */
size_t dc_utf8_broken(const char *s, size_t n);

extern const uint32_t dc_unicode_words, dc_unicode_packed;
extern const unsigned char dc_unicode_table[];

#endif
