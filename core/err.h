/*
 * Failure records. dc_fail fills the job's record once (later failures are consequences) and
 * returns the status. dc_err_render turns a record into its sentence; dsl/ adds the place, the
 * operands' origins, names of dims and the code.
 */
#ifndef DC_CORE_ERR_H
#define DC_CORE_ERR_H

#include "core/type.h"

struct dc_job;

typedef enum dc_err_id {
#define ERR(id, ...) DC_ERR_##id,
#include "core/err.def"
    DC_ERR__COUNT
} dc_err_id;

/* What is known where the failure happens; unused fields stay zero. */
typedef struct dc_fact {
    const char *op;      /* operation as users call it, or NULL */
    int axis[2];         /* 0-based */
    int64_t num[4];
    dc_type type[2];
    const char *word[2]; /* copied into the record */
    int operand;         /* which operand is at fault, 1-based; 0 none */
} dc_fact;

typedef struct dc_err {
    dc_err_id id;
    dc_status status;
    dc_fact fact; /* op and word point into text below */
    char text[512];
    char hint[480]; /* instead of the row's; "" none */
} dc_err;

typedef struct dc_err_row {
    int code;
    dc_status status;
    const char *text, *hint;
} dc_err_row;

const dc_err_row *dc_err_row_of(dc_err_id id);

dc_status dc_fail(struct dc_job *j, dc_err_id id, const dc_fact *fact);

/* The usual case of one sentence made on the spot: fills {w0} (and {w1} stays empty). */
dc_status dc_failf(struct dc_job *j, dc_err_id id, const char *op, const char *fmt, ...)
    DC_PRINTF(4, 5);

/* Records another job's failure in this one, unless it has one of its own. Returns the status. */
dc_status dc_err_take(struct dc_job *j, const dc_err *from);

/* "op: sentence", with axes counted from axis_base. Returns what snprintf would. */
int dc_err_render(const dc_err *e, int axis_base, char *out, size_t size);

#endif
