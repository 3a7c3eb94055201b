/*
 * A step of training as a graph, small and with everything an executable can have: forward,
 * gradient and update of a linear layer under a softmax cross entropy, built with core/build/build.h.
 *
 *   step(x, y, lr, w, b) -> loss, logits; w and b set; one check: no class is below 0
 */
#ifndef DC_TESTS_TRAINSTEP_H
#define DC_TESTS_TRAINSTEP_H

#include "core/build/build.h"
#include "jit/jit.h"

enum {
    STEP_ROWS = 4,
    STEP_WIDTH = 6,
    STEP_CLASSES = 3,
    STEP_NFREE = 3,
    STEP_NCELL = 2,
    STEP_NRESULT = 2,
    STEP_RESULTS = 6
};

typedef struct trainstep {
    dc_module *module;
    dc_func *fn;
    dc_val param[STEP_NFREE + STEP_NCELL];
    dc_val logits;
    dc_ref loss, grad[STEP_NCELL];
} trainstep;

/* Into s->module, which is there: parameters, logits and loss; the whole step. */
dc_status trainstep_forward(dc_job *j, trainstep *s);
dc_status trainstep_build(dc_job *j, trainstep *s);

/* The same, into a module of its own; step: a trainstep. For dc_protect. */
dc_status trainstep_make(dc_job *j, void *step);

/* As an executable whose cells are those that it sets. */
dc_exec_desc trainstep_desc(const trainstep *s);

/* What it can be run with, by parameter. */
extern const void *const trainstep_value[STEP_NFREE + STEP_NCELL];
extern const size_t trainstep_bytes[STEP_RESULTS]; /* of the results of fn */

#endif
