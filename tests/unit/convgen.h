/*
 * Random convolutions: every attribute, operands of at most about 200 elements, results of a few
 * hundred.
 */
#ifndef DC_TESTS_CONVGEN_H
#define DC_TESTS_CONVGEN_H

#include "core/ir/conv.h"

#include "tests/unit/rng.h"

/* dims of both operands; a legal convolution. */
void convgen(rng *r, dc_conv *out, int64_t *input, int64_t *kernel);

#endif
