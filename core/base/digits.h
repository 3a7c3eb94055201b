/*
 * Whole numbers in texts and files: the one reader that all formats, settings and arguments share.
 *
 * A number is decimal digits and nothing else: no blanks, no '+', no other base; '-' only where a signed number is
 * asked for. It has no leading zeros, and zero has no sign, so each value has one text. What is beyond the bounds is
 * told apart from what is no number, and nothing wraps: no text gives a value outside the bounds.
 *
 * scanf, strtol and atoi are not used anywhere else either (scripts/layers.sh): they take blanks and signs, and
 * overflow silently or by errno.
 */
#ifndef DC_CORE_BASE_DIGITS_H
#define DC_CORE_BASE_DIGITS_H

#include "core/base/base.h"

typedef enum dc_digits {
    DC_DIGITS_OK,
    DC_DIGITS_NONE,  /* no digit stands there */
    DC_DIGITS_ZEROS, /* 007, -0 */
    DC_DIGITS_LARGE, /* beyond a bound */
} dc_digits;

/*
 * The number that *at begins with, which ends at another byte or at `end`; NULL: the text ends in '\0'. *at moves
 * behind it, and *out is set, only where it is well.
 */
dc_digits dc_digits_unsigned(const char **at, const char *end, uint64_t most, uint64_t *out);
dc_digits dc_digits_signed(const char **at, const char *end, int64_t least, int64_t most,
                           int64_t *out);

/* Hexadecimal digits, lower case, as many zeros in front as there are: patterns of bits. */
dc_digits dc_digits_hex(const char **at, const char *end, uint64_t *out);

/* Is the whole text a number of 0..most? */
bool dc_digits_whole(const char *text, uint64_t most, uint64_t *out);

/* "cells 12": the word, one blank, a number of 0..most. *at moves behind it where it is so. */
bool dc_digits_after(const char **at, const char *word, uint32_t most, uint32_t *out);

/* Behind "a number": "is too large". */
const char *dc_digits_why(dc_digits d);

#endif
