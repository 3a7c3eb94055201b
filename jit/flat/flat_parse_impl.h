/*
 * What the files of the parser of flat forms share: flat_parse.c reads words, headings and whole kernels, flat_parse_inst.c
 * instructions.
 */
#ifndef DC_JIT_FLAT_FLAT_PARSE_IMPL_H
#define DC_JIT_FLAT_FLAT_PARSE_IMPL_H

#include "core/base/scan.h"
#include "jit/flat/flat_print.h"

typedef struct dc_flat_named { /* %number */
    uint32_t number;
    dc_fv v;
} dc_flat_named;

typedef struct dc_flat_parser {
    dc_scan scan;
    dc_flat *f;
    DC_VEC(dc_flat_named) value; /* by ascending number */
    DC_VEC(dc_fv) first;         /* constants and arguments */
    DC_VEC(dc_fv) open;          /* LOOPs and IFs */
    uint16_t level;              /* open LOOPs */
} dc_flat_parser;

typedef struct dc_flat_word {
    const char *s;
    size_t n;
} dc_flat_word;

size_t dc_flat_parse_word_length(const char *s);
/* Also the signs of numbers: -1.5e-9. */
size_t dc_flat_parse_literal(const char *s);
/* Position in a list of words, -1: none of them. An empty word is no word. */
int dc_flat_parse_one_of(dc_flat_parser *p, const char *const *words, size_t n);
/* A name, of any length. */
dc_status dc_flat_parse_label(dc_flat_parser *p, dc_flat_word *out);

/* Decimal with a sign or hexadecimal; the pattern of 64 bits and whether it is below zero. */
bool dc_flat_parse_bits(const char *s, size_t n, uint64_t *out, bool *negative);
dc_status dc_flat_parse_integer(dc_flat_parser *p, int64_t *out);
/* From 0 to most. */
dc_status dc_flat_parse_count(dc_flat_parser *p, int64_t most, int64_t *out);
/* f32, f32x16; nothing is read where no type stands. */
bool dc_flat_parse_any_type(dc_flat_parser *p, dc_ftype *out);
dc_status dc_flat_parse_type(dc_flat_parser *p, dc_ftype *out);

/* An instruction, which becomes the last one. */
dc_status dc_flat_parse_inst(dc_flat_parser *p);

#endif
