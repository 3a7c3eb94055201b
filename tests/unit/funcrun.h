/* Arrays for the parameters and results of a function, to be interpreted (core/eval/eval.h) and compared bit by bit. */
#ifndef DC_TESTS_FUNCRUN_H
#define DC_TESTS_FUNCRUN_H

#include "core/eval/eval.h"

#include <math.h>
#include <string.h>

#include "tests/unit/graphgen.h"

static inline void *funcrun_array(dc_arena *a, const dc_type *t)
{
    return dc_arena_alloc(a, (size_t)dc_type_count(t) * dc_dtype_size((dc_dtype)t->dtype) + 8);
}

static inline void **funcrun_inputs(dc_arena *a, rng *r, const dc_func *f, bool special)
{
    void **in = DC_NEW_ARRAY(a, void *, f->param.n + 1);
    for (uint32_t i = 0; i < f->param.n; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        in[i] = funcrun_array(a, &t);
        graphgen_input(r, &t, special, in[i]);
    }
    return in;
}

static inline void **funcrun_results(dc_arena *a, const dc_func *f)
{
    void **out = DC_NEW_ARRAY(a, void *, f->result.n + 1);
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_type t = dc_node_type(f, f->result.at[i]);
        out[i] = funcrun_array(a, &t);
    }
    return out;
}

/* Position of the first element whose bits differ, -1 if none does; a NaN is like any other. */
static inline int64_t funcrun_differs(dc_dtype t, const void *a, const void *b, int64_t n)
{
    const size_t size = dc_dtype_size(t);
    for (int64_t i = 0; i < n; i++) {
        const char *x = (const char *)a + (size_t)i * size, *y = (const char *)b + (size_t)i * size;
        if (memcmp(x, y, size) != 0 &&
            !(dc_dtype_is_float(t) && isnan(dc_value_of(t, dc_bits_load(t, x))) &&
              isnan(dc_value_of(t, dc_bits_load(t, y)))))
            return i;
    }
    return -1;
}

#endif
