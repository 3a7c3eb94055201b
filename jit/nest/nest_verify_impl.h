/*
 * What the parts of the verifier of nests share (jit/nest/nest_verify.c): the state of one check, and how it ends. The
 * first complaint counts.
 */
#ifndef DC_JIT_NEST_NEST_VERIFY_IMPL_H
#define DC_JIT_NEST_NEST_VERIFY_IMPL_H

#include "jit/nest/nest.h"

enum { MAX_THREADS = 1 << 16, MAX_LANES = 64 };

#define MAX_COUNT ((int64_t)1 << 48) /* elements of a buffer, extent of an axis */
#define MAX_LOCAL ((int64_t)1 << 32) /* bytes of a buffer that is no parameter */

typedef struct frame { /* the loops round the current statement */
    const dc_stmt *loop;
    int64_t inside; /* threads that its body is divided among */
    const struct frame *outer;
} frame;

typedef struct dc_nest_checking {
    dc_job *j;
    const dc_kernel *k;
    int64_t threads;
    const frame *frames;             /* innermost first */
    const dc_stmt *grid, *parallel;  /* innermost loops of these kinds, NULL outside */
    const dc_stmt **home;            /* by buffer: the loop that it belongs to */
    bool *used;                      /* by buffer */
    bool *stored;                    /* by buffer */
    uint32_t *read;                  /* by buffer: line of its first load, from 1; 0: none */
    bool *open;                      /* by axis: is a loop over it round the current point? */
    uint32_t line;                   /* of the statement, where it was read from a text */
    bool dead;                       /* inside a loop of no iterations */
    bool given;                      /* as a text: a mistake is an error, not a bug */
    uint32_t *seen[2], *ixseen, now; /* the assignment it was checked for: [guarded] by value */
    bool failed;
} dc_nest_checking;

void dc_nest_complain(dc_nest_checking *c, const char *what, const char *which);

/* nest_verify_shape.c: how loops stand in each other, names of axes and buffers; the threads of the kernel. */
void dc_nest_check_shape(dc_nest_checking *c);
void dc_nest_check_names(dc_nest_checking *c);
/* Threads among which the body of a loop is divided. */
int64_t dc_nest_check_threads(dc_nest_checking *c, const dc_stmt *first);

#endif
