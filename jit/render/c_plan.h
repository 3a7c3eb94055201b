/*
 * What a renderer of the C family decides about a kernel before it writes: which vector
 * instructions share one loop over their lanes, which vectors need an array because another loop
 * reads them, and which products are written as part of a sum.
 *
 * Lanes. An instruction of n lanes becomes n turns of a loop. Neighbours join one loop as long as no
 * lane touches memory that another lane of it writes; scalars between them go before the loop. A
 * scatter stands by itself, since lanes may meet there, and so does a zip, which reads other lanes.
 *
 * Contraction. In a kernel that is not strict a product used once, in the same block, by an addition
 * or subtraction is contracted to fma. That it is decided here, and compilers are told to contract
 * nothing by themselves, makes results equal wherever the text is compiled.
 *
 * Wide accesses. In a kernel for groups of threads a load or store of lanes that follow one another, aligned and
 * under a test of all lanes at most, is one access of up to 16 bytes, or several of 16, and stands by itself; what it loads is an array.
 */
#ifndef DC_JIT_RENDER_C_PLAN_H
#define DC_JIT_RENDER_C_PLAN_H

#include "jit/flat/flat.h"

typedef struct dc_cstep {
    dc_fv v;
    uint32_t loop; /* its number; 0: a statement by itself */
} dc_cstep;

typedef struct dc_c_plan {
    dc_cstep *step; /* what is written, in order */
    uint32_t n;
    bool *array;    /* by value: an array */
    bool *wide;     /* by value: a wide access */
    bool *stored;   /* by value: by one */
    dc_fv *product; /* by value: the operand that is written as a product in its place; 0 none */
} dc_c_plan;

/* wide: the dialect has types for wide accesses. */
dc_c_plan dc_c_plan_make(dc_arena *a, const dc_flat *f, bool wide);

/* Bytes of each piece of a wide access, a power of two from 2 to 16; 0: it is none. */
size_t dc_c_plan_wide(const dc_flat *f, const dc_finst *i);

/* Has no statement: its users write what it is. */
static inline bool dc_cplan_inline(const dc_finst *i)
{
    return i->op == DC_K_CONST || i->op == DC_K_ARG || i->op == DC_K_LANES || i->op == DC_K_SPLAT;
}

#endif
