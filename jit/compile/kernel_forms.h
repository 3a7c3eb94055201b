/*
 * `deepc kernel`: a kernel given as text, scheduled for a target and printed in any of its forms. Needs no
 * device.
 */
#ifndef DC_JIT_COMPILE_KERNEL_FORMS_H
#define DC_JIT_COMPILE_KERNEL_FORMS_H

#include "core/base/job.h"

typedef enum dc_form {
    DC_FORM_NEST,     /* after its moves */
    DC_FORM_SCHEDULE, /* the moves */
    DC_FORM_FLAT,
    DC_FORM_TEXT, /* what a compiler is given */
    DC_FORM__COUNT
} dc_form;

typedef struct dc_form_request {
    const char *target;   /* of jit/sim/sim_target.h */
    const char *schedule; /* file with the moves; NULL: those of the rules */
    bool naive;           /* no moves */
    dc_form form;
} dc_form_request;

struct dc_flat;
struct dc_kernel;
struct dc_target;

bool dc_form_find(const char *name, dc_form *out);

/* PARSE (also of what is not legal), ARG (no such target, a move that does not fit), FILE, BUILD. */
dc_status dc_form_of(dc_job *j, const char *nest, const dc_form_request *r, dc_text *out);

/* Inside jit/: of a kernel that is legal and scheduled; skip: passes to leave out. */
dc_status dc_form_print(dc_job *j, struct dc_kernel *k, const struct dc_target *t, uint32_t skip,
                        dc_form form, dc_text *out);

/* One that is flat: in the forms FLAT and TEXT. */
dc_status dc_form_print_flat(dc_job *j, const struct dc_flat *f, const struct dc_target *t,
                             dc_form form, dc_text *out);

#endif
