/* May an output of a kernel live in the memory of an input (dc_lower_in_place)? Asked of the naive kernel. */
#include "jit/lower/lower.h"
#include "jit/nest/nest_in_place.h"

bool dc_lower_in_place(dc_kernel *k, const dc_group *g, uint32_t out, uint32_t in)
{
    return dc_nest_in_place(k, k->root, out, g->nout + in);
}
