/*
 * Code generation for the kernels of one executable: naive nests in, kernels of the context's
 * table (jit/exec/kernel_table.h) out. Kernels whose nests are equal but for the name become one
 * entry; a kernel of several others (jit/flat/flat_join.h) is an entry, too.
 */
#ifndef DC_JIT_COMPILE_CODEGEN_H
#define DC_JIT_COMPILE_CODEGEN_H

#include "jit/compile/pipeline.h"
#include "jit/flat/flat.h"

typedef struct dc_entry { /* a distinct kernel */
    dc_kernel *kernel;    /* NULL: it is joined of others */
    dc_flat *flat;
    const char *text;    /* of its naive nest, without the name */
    const char *lowered; /* the same with the name, for DEEPC_DUMP */
    char base[64];       /* its name before it had to differ from others */
    dc_launch launch;
    const uint32_t
        *part; /* entries that it is joined of, npart of them, some of them several times */
    uint32_t npart;
    bool launched;   /* by itself, not only as a part */
    uint32_t number; /* among those that are */
} dc_entry;

typedef struct dc_codegen {
    const dc_env *env;
    DC_VEC(dc_entry) entry;
    dc_arena mem;
    dc_text work; /* whatever is being printed */
    uint32_t nlaunched;
} dc_codegen;

/*
 * The kernel's entry: a new one under a name of its own, or an equal one. Takes the kernel over.
 */
uint32_t dc_codegen_add(dc_codegen *g, dc_kernel *k);

/* Moves on every nest, by rule or from DEEPC_SCHEDULE. */
dc_status dc_codegen_schedule(dc_codegen *g, dc_job *j);

/* Every nest to flat form, through the passes. */
dc_status dc_codegen_flatten(dc_codegen *g, dc_job *j);

/* The entry that does the work of all parts, which are flat, in one launch. */
uint32_t dc_codegen_join(dc_codegen *g, dc_job *j, const uint32_t *part, uint32_t n);

/* The entry will be launched: it gets a number, the first one 0, and will be compiled. */
void dc_codegen_launch(dc_codegen *g, uint32_t entry);

static inline const char *dc_entry_name(const dc_entry *e)
{
    return e->kernel != NULL ? e->kernel->name : e->flat->name;
}

/*
 * The kernels of the entries that are launched in the context's table, by their numbers: there already, or compiled,
 * all new ones in one program. On failure what is there in out is used and has to be released.
 */
dc_status dc_codegen_compile(dc_codegen *g, dc_job *j, dc_compiled **out, dc_counts *n);

void dc_codegen_free(dc_codegen *g); /* what it holds */

#endif
