/*
 * Rows of some tensors by number, on devices whose memory is not the host's: a compiled program gathers a
 * batch in one call, so rows do not pass through the host and nothing waits. The programs are the
 * state's, found by their sizes: a loop of another epoch compiles nothing.
 */
#ifndef DC_DSL_MODULES_BATCH_GATHER_H
#define DC_DSL_MODULES_BATCH_GATHER_H

#include "dsl/base/binding.h"

enum { DC_GATHER_PARTS = 16 }; /* at most */

/* What a program is made for. */
typedef struct dc_gather_form {
    int64_t from;                /* rows of the tensors, */
    int64_t rows, room;          /* of a batch, and with those of zeros behind them */
    int n;                       /* tensors */
    size_t row[DC_GATHER_PARTS]; /* bytes of a row of each */
} dc_gather_form;

/* The numbers of rows, on the device; NULL where they are too large for one. */
dc_status dc_gather_order(dc_rt *rt, dc_job *j, const uint32_t *at, int64_t n, dc_tensor **out);

/* Begins to compile it, unless that was done. */
dc_status dc_gather_start(dc_dsl *d, dc_job *j, const dc_gather_form *form);

/*
 * Rows order[first], order[first + 1], ... of all tensors, as tensors of `type`. No out[0]: nothing was done, since the
 * interpreter would have to, which takes all rows to the host.
 */
dc_status dc_gather_rows(dc_dsl *d, dc_job *j, const dc_gather_form *form,
                         dc_tensor *const from[DC_GATHER_PARTS], const dc_tensor *order,
                         int64_t first, const dc_type type[DC_GATHER_PARTS],
                         dc_tensor *out[DC_GATHER_PARTS]);

void dc_gather_close_all(dc_dsl *d);

#endif
