/*
 * Failure records. dc_fail fills the job's record once (later failures are consequences) and
 * returns the status. dc_err_print turns a record, and what is known of where it happened, into the
 * text that scripts, the program and hosts in C report.
 */
#ifndef DC_CORE_BASE_ERR_H
#define DC_CORE_BASE_ERR_H

#include "core/base/type.h"

struct dc_job;

typedef enum dc_err_id {
#define ERR(id, ...) DC_ERR_##id,
#include "core/base/err.def"
    DC_ERR__COUNT
} dc_err_id;

/* What is known where the failure happens; unused fields stay zero. */
typedef struct dc_fact {
    const char *op; /* operation as users call it, or NULL */
    int axis[2];    /* 0-based */
    int64_t num[4];
    dc_type type[2];
    const char *word[2]; /* copied into the record */
    int operand;         /* which operand is at fault, 1-based; 0 none */
    int error;           /* the system's number, of errno.h; 0 none */
    bool lines; /* the words are lines of ours: what others wrote in them is escaped already */
} dc_fact;

typedef struct dc_err {
    dc_err_id id;
    dc_status status;
    dc_fact fact; /* op and word point into text below */
    char text[512];
    char hint[480];             /* instead of the row's; "" none */
    char where[160], path[200]; /* of the operation, where that is not what was called; "" */
} dc_err;

/*
 * Makes the record empty: of its texts the first bytes, and no facts, which dc_fail writes. An entry does this for each call,
 * which zeros in all of the record would slow down by a tenth.
 */
static inline void dc_err_clear(dc_err *e)
{
    e->id = (dc_err_id)0;
    e->status = DC_OK;
    e->text[0] = e->hint[0] = e->where[0] = e->path[0] = '\0';
}

/* Does it say that what ran was asked to end? */
static inline bool dc_err_ends(dc_err_id id)
{
    return id == DC_ERR_INTERRUPTED || id == DC_ERR_STOPPED || id == DC_ERR_OVERDUE;
}

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

/* NOMEM for so many bytes at once. */
dc_status dc_fail_memory(struct dc_job *j, uint64_t bytes);

/* The line and the layer of what failed; NULL unknown. */
void dc_err_at(struct dc_job *j, const char *where, const char *path);

/* A copy that stays when the job fails again. */
void dc_err_copy(dc_err *to, const dc_err *from);

/* Records another job's failure in this one, unless it has one of its own. Returns the status. */
dc_status dc_err_take(struct dc_job *j, const dc_err *from);

/* "op: sentence", with axes counted from axis_base. Returns what snprintf would. */
int dc_err_render(const dc_err *e, int axis_base, char *out, size_t size);

/* The record's own hint, or one that follows from the types (in room), or the row's; "" none. */
const char *dc_err_hint(const dc_err *e, char *room, size_t size);

/* An operand as its reader sees it. */
typedef struct dc_err_in {
    const char *role;   /* "left" */
    const char *type;   /* "f32[784, 10]" */
    const char *origin; /* "argument 'img' of step, train.lua:12"; NULL or "" not known */
} dc_err_in;

enum { DC_ERR_OPERANDS = 8 };

/* What stands around the sentence; NULL where it is not known. */
typedef struct dc_err_scene {
    const char *where; /* "train.lua:15" */
    const char *path;  /* of the layer: "net.2 (nn.Linear 784 -> 10)" */
    const char *dims;  /* bound so far: "batch=32, t=128" */
    const char *hint;  /* instead of the record's */
    dc_err_in in[DC_ERR_OPERANDS];
    int n;
} dc_err_scene;

/* The whole text, several lines without the last newline. Returns what snprintf would. */
int dc_err_print(const dc_err *e, const dc_err_scene *scene, int axis_base, char *out, size_t size);

#endif
