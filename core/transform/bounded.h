/*
 * Graphs with sizes that are known at run time (core/base/extent.h), and what is made of them.
 *
 * dc_bounded_lower makes a function whose sizes are numbers, the bounds. A tensor is as large as it can be; behind its
 * actual size along an axis it holds anything. So whatever would read that is given a neutral element there: what is
 * reduced, both factors of a contraction, what a window sees beyond the end, integers that index. Results end in
 * set_size nodes. Actual sizes are parameters of type i32[], one for each expression.
 * (As XLA's dynamic padder does.)
 *
 * dc_bounded_fix puts sizes in: the function that a trace with these sizes would have made. It says what the lowered one
 * has to compute; tests compare the two.
 */
#ifndef DC_CORE_TRANSFORM_BOUNDED_H
#define DC_CORE_TRANSFORM_BOUNDED_H

#include "core/base/extent.h"
#include "core/ir/graph.h"

/* Are there sizes in f that are known at run time? */
bool dc_bounded_any(const dc_func *f);

typedef DC_VEC(int64_t) dc_extent_list;

/* Those of f and of the bodies that it names, each once; the list grows in the arena. */
void dc_bounded_sizes(const dc_func *f, dc_arena *a, dc_extent_list *to);

/*
 * The parameters of f with their bounds, behind the first `before` of them one for each expression, which are added to
 * *sizes in this order. EXTENT, with the operation and its line, where an operation needs a fixed size.
 */
dc_status dc_bounded_lower(dc_job *j, const dc_func *f, uint32_t before, dc_extent_list *sizes,
                           dc_func **out);

/*
 * A result that goes to the memory of a parameter (a state that grows), which has so many rows: the size of the result
 * is no more than that, whatever its bound is. rows 0: a result of its own.
 */
typedef struct dc_bounded_place {
    int64_t rows;
    uint32_t param;
} dc_bounded_place;

/* The same; places by result, NULL: there are none. */
dc_status dc_bounded_lower_into(dc_job *j, const dc_func *f, uint32_t before,
                                const dc_bounded_place *place, dc_extent_list *sizes,
                                dc_func **out);

dc_status dc_bounded_fix(dc_job *j, const dc_func *f, dc_extent_value *var, void *ctx,
                         dc_func **out);

#endif
