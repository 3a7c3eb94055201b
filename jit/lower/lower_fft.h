/* What lowering of transforms shares: complex numbers that a kernel computes with. */
#ifndef DC_JIT_LOWER_LOWER_FFT_H
#define DC_JIT_LOWER_LOWER_FFT_H

#include "core/ir/dft.h"
#include "jit/lower/lower_impl.h"

typedef struct dc_number { /* real and imaginary part */
    dc_vx re, im;
} dc_number;

typedef struct dc_line { /* what it is computed in; sign of the exponent */
    dc_kernel *k;
    dc_dtype t;
    int sign;
} dc_line;

/* lower_butterfly.c: the transform of x[0..n), n <= DC_DFT_RADIX, in its place. */
void dc_lower_butterfly(const dc_line *l, int n, dc_number *x);
/* x (c + i s), or with the other sign x (c - i s). */
dc_number dc_lower_twiddle(const dc_line *l, dc_number x, dc_vx c, dc_vx s);

#endif
