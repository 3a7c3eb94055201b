/*
 * The parser of the nest form, shared by its parts: tokens (jit/nest/nest_parse_word.c), expressions
 * (jit/nest/nest_parse_value.c), statements and kernels (jit/nest/nest_parse.c, where the grammar is). All functions
 * that return bool return false after a failure, which is then in the job's record.
 */
#ifndef DC_JIT_NEST_NEST_PARSE_IMPL_H
#define DC_JIT_NEST_NEST_PARSE_IMPL_H

#include "core/base/scan.h"
#include "jit/nest/nest_print.h"

/* Elements of a buffer, extent of an axis; how far an index expression can be from 0. */
#define DC_NP_MAX_COUNT ((int64_t)1 << 48)
#define DC_NP_MAX_INDEX ((int64_t)1 << 56)

typedef struct dc_np {
    dc_scan scan;
    dc_kernel *k;
    int64_t indent; /* of the current line */
    int open;       /* brackets round the current place: lines may end there */
    int nested;     /* expressions and loops round the current place */
    DC_VEC(dc_vx) temp;      /* in scratch memory, as the two below */
    DC_VEC(uint16_t) vdepth; /* by value, by index expression: expressions inside each other */
    DC_VEC(uint16_t) idepth;
} dc_np;

typedef struct dc_np_token { /* a word; n = 0: there is none */
    const char *s;
    int n;
} dc_np_token;

static inline bool dc_np_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Always false. */
#define dc_np_refuse(p, ...) (dc_scan_refuse(&(p)->scan, __VA_ARGS__) == DC_OK)
bool dc_np_expected(dc_np *p, const char *what);

/* Blanks and a comment; ends of lines too where a bracket is open. */
void dc_np_skip(dc_np *p);
/* To the next line that is not empty; false where something is left of this one. */
bool dc_np_next_line(dc_np *p);

size_t dc_np_word_length(const char *s);
dc_np_token dc_np_word(dc_np *p); /* the next one, which stays there */
bool dc_np_is(dc_np_token w, const char *text);
bool dc_np_is_temp(dc_np_token w); /* t0, t1 ... */
char dc_np_behind(dc_np_token w);  /* the byte after the word, blanks left out */

bool dc_np_accept_char(dc_np *p, char c);
bool dc_np_want_char(dc_np *p, char c);
bool dc_np_open(dc_np *p, char c); /* a bracket */
bool dc_np_close(dc_np *p, char c);
bool dc_np_accept_word(dc_np *p, const char *text);
bool dc_np_want_word(dc_np *p, const char *text);
/* A name, of any length. */
bool dc_np_want_label(dc_np *p, const char *what, dc_np_token *out);
/* A name into `out`, which has room for size - 1 bytes. */
bool dc_np_want_name(dc_np *p, const char *what, char *out, size_t size);
bool dc_np_want_integer(dc_np *p, int64_t most, int64_t *out); /* digits, up to most */
bool dc_np_want_dtype(dc_np *p, dc_dtype *out);

/* After every step that makes expressions: how deep those are that are new. */
bool dc_np_measure(dc_np *p);
bool dc_np_index(dc_np *p, dc_ix *out);
bool dc_np_guard(dc_np *p, dc_pred *out); /* "if" and tests, or nothing */
bool dc_np_value(dc_np *p, dc_vx *out);
bool dc_np_buffer(dc_np *p, uint32_t *out);        /* the name of one that is declared */
bool dc_np_temp_number(dc_np *p, int64_t *number); /* of t0, t1 ... */

#endif
