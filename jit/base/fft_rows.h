/* How transforms of many rows are computed, for the passes that have to agree about it (jit/lower/lower_transform.c). */
#ifndef DC_JIT_BASE_FFT_ROWS_H
#define DC_JIT_BASE_FFT_ROWS_H

#include "core/ir/dft.h"

/*
 * Rows of n complex numbers that lie side by side in vectors, where `after` elements lie behind the axis; 1: vectors lie
 * along the numbers of a row; 0: neither.
 */
int64_t dc_fft_rows(int64_t n, int64_t after, dc_dtype t);

/* Bytes of the locals that so many rows go through. */
int64_t dc_fft_bytes(int64_t n, int64_t rows, dc_dtype t);

#endif
