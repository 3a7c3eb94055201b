/* A function file in memory, between vm/funcload.c (which makes it) and vm/function.c (which calls it). */
#ifndef DC_VM_FUNCTION_H
#define DC_VM_FUNCTION_H

#include "formats/fnfile.h"
#include "jit/jit.h"
#include "vm/deepc.h"

/* The function for one set of sizes. */
typedef struct dc_fvariant {
    dc_fnfile_variant file; /* its fn is gone: exec has a copy */
    dc_exec *exec;
    dc_inst *inst;
    dc_cell **cell;
    dc_type *arg_type, *result_type;
    dc_tensor **in;  /* by argument: memory that it is copied to; NULL for rank 0 */
    dc_arg *arg;     /* arguments and captured tensors */
    dc_tensor **out; /* of the last call; NULL before it. Those that are only printed included */
    void **copy;     /* by result: a copy on the host where the device is none; NULL until wanted */
} dc_fvariant;

typedef struct dc_fvalue { /* a tensor of the file */
    const char *name;
    dc_cell *cell; /* NULL: captured */
    dc_tensor *tensor;
} dc_fvalue;

struct dc_function {
    dc_rt *rt;
    dc_function *next, *prev; /* in rt->functions */
    dc_arena mem;             /* texts and arrays below */
    const char *name, *signature;
    dc_fvariant *variant;
    uint32_t nvariant;
    DC_VEC(dc_fvalue) value; /* in mem */
};

/* Fills f, which is in rt->functions; what it has made when it fails is freed with f. */
/* `beside`: whose cells are taken where names are the same; NULL: nobody's. */
dc_status dc_function_read(dc_job *j, dc_function *f, const char *path, const dc_function *beside);

#endif
