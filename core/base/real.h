/*
 * Numbers in texts, fast: what a column of a file is made of.
 *
 * A number is an optional sign, digits with an optional point among, before or behind them, an optional exponent; or inf,
 * infinity, nan in letters of any case. The double is the nearest one, ties to even, whatever the length of the text;
 * beyond the largest it is infinite, below the smallest zero. No locale changes what is read.
 */
#ifndef DC_CORE_BASE_REAL_H
#define DC_CORE_BASE_REAL_H

#include "core/base/base.h"

typedef enum dc_real_kind {
    DC_REAL_NONE,     /* no number stands there */
    DC_REAL_WHOLE,    /* digits alone, which an int64_t holds */
    DC_REAL_UNSIGNED, /* digits alone, which a uint64_t holds and no int64_t */
    DC_REAL_LONG,     /* digits alone, which neither holds */
    DC_REAL_FLOAT
} dc_real_kind;

/*
 * The number that *at begins with; *at moves behind it where there is one. *v is its value, of WHOLE and UNSIGNED *whole besides,
 * which has the bits of the latter.
 */
dc_real_kind dc_real_read(const char **at, const char *end, double *v, int64_t *whole);

#endif
