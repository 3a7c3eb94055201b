/*
 * JSON, as far as headers of files need it, read piece by piece in its own memory: strings are decoded
 * where they stand and end in '\0', so nothing is allocated however large or nested the text is. The
 * caller asks for what the format has at each place; anything else is a failure, so nesting is what
 * the format allows and no more. What is of no interest can be stepped over.
 *
 * Strict (RFC 8259): no comments, no trailing commas, no bare words; strings are valid UTF-8, with
 * paired surrogates and without zero bytes; numbers are whole, without sign, leading zeros, fraction or
 * exponent.
 */
#ifndef DC_FORMATS_JSON_H
#define DC_FORMATS_JSON_H

#include "core/base/vec.h"

typedef struct dc_json {
    char *text;
    size_t n, at;
    char why[96]; /* of the first failure; "" none */
} dc_json;

/* The n bytes of text are changed while they are read. */
void dc_json_init(dc_json *r, char *text, size_t n);

/* Is this sign next? Then moves behind it. Blanks before it are skipped. */
bool dc_json_accept(dc_json *r, char sign);
/* These fail with `why`: "at byte 17: '{' expected, not '['". */
bool dc_json_expect(dc_json *r, char sign);
bool dc_json_string(dc_json *r, char **out);
bool dc_json_whole(dc_json *r, int64_t *out); /* 0 to INT64_MAX */
/* What the next value begins with; '\0' at the end. */
char dc_json_peek(dc_json *r);
/* A whole number; where another one stands there, nothing is read and nothing fails. */
bool dc_json_try_whole(dc_json *r, int64_t *out);
/* Steps over a value of any kind, nested 32 deep at most. */
bool dc_json_skip(dc_json *r);
bool dc_json_end(dc_json *r); /* only blanks are left */

/* Writes a string with its quotes; false where it is not UTF-8. */
bool dc_json_print(dc_text *t, const char *s);

#endif
