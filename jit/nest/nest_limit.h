/*
 * Where loops may end before their extent: by the limits of the statements in them (dc_limit).
 *
 * What stands in a loop can be left out where every statement in it can: where one of its limits says so, or where
 * all that it stores is to buffers that an iteration of the loop has for itself. Limits are compared as lower bounds,
 * with axes of loops further inside at their least, so that a whole iteration is left out or none of it.
 */
#ifndef DC_JIT_NEST_NEST_LIMIT_H
#define DC_JIT_NEST_NEST_LIMIT_H

#include "jit/nest/nest_access.h"

enum { DC_NEST_LIMITS = 4 };

/* Is it "position < number" of the number in this buffer? */
bool dc_nest_limit_test(const dc_kernel *k, const dc_vx_node *v, uint32_t buf, dc_ix *at);
/*
 * May the value, which the statement computes with, be any number where the limit's expression is
 * not below its number? So it is where the statement only computes what is not needed there, or
 * looks at no such number, because of a test.
 */
bool dc_nest_limit_hides(dc_nest_edit *v, const dc_stmt *s, dc_limit limit, dc_vx value);

/*
 * Is an element of the buffer, at this position, needed by nobody where the limit says so? A limit of what is added to it alone
 * may also say that nothing is added: all that is stored to the buffer besides has to have the same limit, by its own axes.
 */
bool dc_nest_limit_of_elements(dc_nest_edit *v, uint32_t buf, dc_ix at, dc_limit limit);

/*
 * Each is reason enough to leave out an iteration of a loop; made of axes that are known, and of its own. What the
 * statements' own expressions are in it is `more` greater at most; -1: unknown.
 */
typedef struct dc_limits {
    int n;
    dc_limit at[DC_NEST_LIMITS];
    int64_t more[DC_NEST_LIMITS];
} dc_limits;

/* Of the loop; known: by axis, those that have a value in front of it. */
dc_limits dc_nest_limits(dc_nest_edit *v, dc_stmt *loop, const bool *known);

/*
 * One step of finding the first iteration with ix >= value, where there is a value below which ix never falls again:
 * ix is rest + coef * axis, or rest + coef * (of / divisor). False: it has another form. No part of it is negative.
 */
typedef struct dc_limit_step {
    dc_ix rest;
    int64_t coef;
    dc_ix of; /* 0: the axis */
    int64_t divisor;
} dc_limit_step;

bool dc_nest_limit_step(dc_kernel *k, dc_ix ix, uint32_t axis, dc_limit_step *out);
/* Does it have that form all the way down? */
bool dc_nest_limit_rises(dc_kernel *k, dc_ix ix, uint32_t axis);

#endif
