/*
 * The roles of loops (jit/nest/nest.h): where they come from, and the operands that they tell apart.
 *
 * Lowering writes them where it makes loops: of contractions and of groups by rows, whose nodes say what their
 * loops mean (jit/lower/lower_roles.c). Access maps tell them where nothing says them, of a reduction of what may be a
 * product of values computed by element (sum(a * b)), and of a text that names none (dc_schedule). Moves hand roles on
 * to the loops that they make (dc_axis_inherit); schedule rules read them.
 */
#ifndef DC_JIT_NEST_NEST_ROLES_H
#define DC_JIT_NEST_NEST_ROLES_H

#include "jit/nest/nest_shape.h"

/* Of a role, as it is printed: "batch", "m"; "" for DC_ROLE_NONE. */
const char *dc_role_name(dc_role role);
/* -1: there is none. */
int dc_role_find(const char *name, size_t n);
/* Of loops that are reductions; of loops that are none. */
bool dc_role_fits(dc_role role, bool reduce);

/* Of rows of a contraction's result: those of the left operand, or positions of a convolution. */
static inline bool dc_role_is_rows(dc_role role)
{
    return role == DC_ROLE_M || role == DC_ROLE_SPATIAL;
}

static inline dc_role dc_axis_role(const dc_kernel *k, uint32_t axis)
{
    return (dc_role)k->axis.at[axis].role;
}

static inline bool dc_axis_is_rows(const dc_kernel *k, uint32_t axis)
{
    return dc_role_is_rows(dc_axis_role(k, axis));
}

/* Does any axis have a role, this one? */
bool dc_roles_any(const dc_kernel *k);
bool dc_roles_has(const dc_kernel *k, dc_role role);

/* The role of one loop for the iterations of two. */
dc_role dc_role_join(dc_role a, dc_role b);
/* A loop over a part of an axis means what the axis does, unless it reduces something and the part nothing. */
void dc_axis_inherit(dc_kernel *k, uint32_t part, uint32_t axis);

/*
 * From the access maps of a naive nest, in place of those that there are: for a nest that no node says them of. Axes of
 * dims of different meaning overlap by chance in a window, and rows that store nothing by columns are not seen.
 */
void dc_roles_derive(dc_kernel *k);

/* The kind of a kernel that was given as text, by the roles and the form of its loops. */
dc_kernel_kind dc_kind_of_loops(const dc_kernel *k);

/* The operands of a contraction's term. */
typedef struct dc_operands {
    dc_vx left,
        right; /* left does not move along n, right does; both the term where it is no product */
    bool product;
} dc_operands;

/* Of the only sum of a kernel, along whose last axis of the result vectors lie (n). False: it is no contraction. */
bool dc_contraction_of(dc_kernel *k, const dc_shape *p, dc_operands *out);
/* Does an operand move along the axis: does a load in it? */
bool dc_operand_moves(const dc_kernel *k, dc_arena *scratch, dc_vx operand, uint32_t axis);
/* The load that an operand is, casts and zeros behind a size aside; 0: it is computed of more. */
dc_vx dc_operand_load(const dc_kernel *k, dc_vx operand);

/* Of an operand that is computed, the load of the largest parameter in it; 0: it has none. */
dc_vx dc_operand_main_load(dc_kernel *k, dc_vx operand);

/* NULL, or why the roles of the loops round an accumulation (`open`, by axis) contradict what it reads. */
const char *dc_roles_contradict(const dc_kernel *k, dc_arena *scratch, const dc_stmt *t,
                                const bool *open);

#endif
