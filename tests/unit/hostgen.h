/* Operations of class HST for generated functions and for the table: what they are made of, and whether they can run. */
#ifndef DC_TESTS_UNIT_HOSTGEN_H
#define DC_TESTS_UNIT_HOSTGEN_H

#include "core/ir/op.h"

/* Is operand 0 a square matrix? */
bool hostgen_is_square(dc_op op);
/* How many attributes. */
int hostgen_attrs(dc_op op);
/* False: it needs LAPACK, which is not installed (DEEPC_LAPACK=/nonexistent is the same), or another rank. */
bool hostgen_can(dc_op op);
/* Why what needs LAPACK is left out, or NULL where it is there; for T_SKIP. */
const char *hostgen_missing(void);

#endif
