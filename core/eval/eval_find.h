/*
 * Where infinities and NaN come from: the interpreter, with a look at each value.
 */
#ifndef DC_CORE_EVAL_EVAL_FIND_H
#define DC_CORE_EVAL_EVAL_FIND_H

#include "core/eval/eval.h"

enum { DC_EVAL_FIND_IN = 3 };

typedef struct dc_eval_range { /* of an operand */
    double lo, hi;             /* of what is finite; lo > hi: nothing is */
    int64_t bad;               /* elements that are not */
} dc_eval_range;

/* An operation that makes infinities or NaN of finite operands, or NaN of operands without NaN. */
typedef struct dc_eval_culprit {
    dc_ref ref;          /* 0: there is none */
    dc_ref node;         /* of the function itself: ref, or the result of the loop that it is in */
    const dc_func *body; /* of a loop or a branch, that it is in; NULL: of the function itself */
    int64_t i;           /* in a loop: of this element, the outermost one; else -1 */
    int64_t made, first; /* elements, and the first of them */
    double value;        /* what became of that one */
    dc_eval_range in[DC_EVAL_FIND_IN];
} dc_eval_culprit;

/* What is in an array of floats: 0 finite numbers alone, 1 infinities too, 2 NaN too. */
int dc_eval_worst(dc_dtype t, const void *at, int64_t count);

/*
 * dc_eval, and the first such operation whose values reach one of the first nresult results as infinities
 * or NaN on the way. *worst: the most of these results, as dc_eval_worst.
 */
dc_status dc_eval_find(dc_job *j, const dc_func *f, dc_eval_mode mode, const void *const *params,
                       uint32_t nresult, dc_eval_culprit *out, int *worst);

/* "2 of 6 elements become -inf, the first at [1, 3]; operand f32[2, 3]: 0 to 3.5" */
void dc_eval_maker_print(const dc_func *f, const dc_eval_culprit *m, char *out, size_t size);
/* What to do about such an operation. */
const char *dc_eval_maker_hint(const dc_func *f, const dc_eval_culprit *m);
/* Fails with NOT_FINITE; call: "in call 3 of 'step'" or "". where, path: NULL those of the node. */
dc_status dc_eval_culprit_fail(dc_job *j, const dc_func *f, const dc_eval_culprit *m,
                               const char *call);

#endif
