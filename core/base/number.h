/*
 * Elements as text: the fewest digits that read back, and aligned forms for tables. None of it
 * depends on the locale.
 */
#ifndef DC_CORE_BASE_NUMBER_H
#define DC_CORE_BASE_NUMBER_H

#include "core/base/type.h"

#include <stdarg.h>

enum { DC_NUMBER_TEXT = 40, DC_NUMBER_DIGITS = 17 };

/* A finite float as d.ddd * 10^exp, with the fewest digits that round back to the element. */
typedef struct dc_decimal {
    char digit[DC_NUMBER_DIGITS + 1]; /* ends in '\0'; no trailing zeros, "0" for zero */
    int n, exp;
    bool negative;
} dc_decimal;

dc_decimal dc_number_decimal(dc_dtype t, uint64_t bits);

/* The double nearest to digits with an exponent and no point, "125e-3": so no locale matters. */
double dc_number_value(const char *text);

/* 0.1, 6.0, 1e+20, -3, true, nan, -inf; into DC_NUMBER_TEXT bytes. Returns out. */
const char *dc_number_print(dc_dtype t, uint64_t bits, char *out);

/* A float with so many places, as 12.50 or 1.25e+01; v is below 1e9 for the first. Returns out. */
const char *dc_number_fixed(double v, int places, char *out);
const char *dc_number_sci(double v, int places, char *out);

/* snprintf and vsnprintf with the decimal point that every reader knows, whatever locale the host has set. */
int dc_number_format(char *out, size_t size, const char *fmt, ...) DC_PRINTF(3, 4);
int dc_number_vformat(char *out, size_t size, const char *fmt, va_list ap);

/* Sizes of memory: "80 bytes", "12.0 KiB", "1.5 GiB"; into DC_NUMBER_TEXT bytes. Returns out. */
const char *dc_number_bytes(uint64_t bytes, char *out);

#endif
