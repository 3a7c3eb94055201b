/*
 * The kernels of one executable on their way to text: naive nests in, one program text out. Kernels
 * whose nests are equal but for the name become one entry.
 */
#ifndef DC_JIT_CODEGEN_H
#define DC_JIT_CODEGEN_H

#include "core/device.h"
#include "jit/nest.h"

typedef struct dc_entry { /* a distinct kernel */
    dc_kernel *kernel;
    struct dc_flat *flat;
    const char *text; /* of its naive nest, without the name */
    int64_t grid;     /* positions of a launch */
    size_t scratch;   /* bytes per worker */
} dc_entry;

typedef struct dc_codegen {
    DC_VEC(dc_entry) entry;
    dc_arena mem;
    dc_text work; /* whatever is being printed */
    dc_text text; /* of the program */
    const char *dialect;
} dc_codegen;

/* The kernel's entry: a new one under a name of its own, or an equal one. Takes the kernel over. */
uint32_t dc_codegen_add(dc_codegen *g, dc_kernel *k);

/* Moves on every nest by rule, for the target. */
dc_status dc_codegen_schedule(dc_codegen *g, dc_job *j, const dc_target *t);

/* Every nest to flat form, through the passes, to text. */
dc_status dc_codegen_render(dc_codegen *g, dc_job *j, const dc_target *t);

void dc_codegen_free(dc_codegen *g); /* what it holds */

#endif
