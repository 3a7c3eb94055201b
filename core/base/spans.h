/*
 * Spans: what ran from when to when, on which thread, as dc.trace writes it to a file (formats/trace_events.h).
 *
 * Any thread may add spans, between dc_spans_start and dc_spans_stop, which are the context's thread's, as is reading what
 * was recorded. A span takes a place in one array of pieces by one atomic addition, so threads do not wait for each other;
 * nothing is written to a file meanwhile. Where memory or the limit is at its end, spans are counted and left out. While
 * nothing is recorded a span costs the look at one word.
 *
 *     const uint64_t begun = dc_span_begin(j->log);
 *     ...
 *     dc_span_end(j->log, begun, DC_SPAN_COMPILE, e->desc.name);
 *
 * Names are numbers of texts that are kept once. What occurs in every step asks for its number beforehand (dc_spans_name).
 */
#ifndef DC_CORE_BASE_SPANS_H
#define DC_CORE_BASE_SPANS_H

#include "core/base/log.h"

#include <stdatomic.h>

/*  id        category    what it is */
#define DC_SPAN_KINDS(S)                                                                 \
    S(CALL, "call")         /* of a typed function, from its arguments to its results */ \
    S(TRACE, "trace")       /* the body of a typed function runs */                      \
    S(COMPILE, "compile")   /* a stage of a compilation */                               \
    S(KERNEL, "kernel")     /* a launch */                                               \
    S(HOST, "host")         /* what the host computes: LAPACK, sorting */                \
    S(EVAL, "interpreter")  /* what the interpreter computes */                          \
    S(COPY, "copy")         /* from memory to memory, device to device */                \
    S(DATA, "data")         /* rows of batches are read and gathered */                  \
    S(EXCHANGE, "exchange") /* between ranks */                                          \
    S(WAIT, "wait")         /* for another thread, a rank or the device */               \
    S(FILE, "file")         /* files of tensors are written and read */                  \
    S(MEMORY, "memory")     /* no span: bytes in use at a moment, its number */          \
    S(USER, "user")         /* dc.span */

typedef enum dc_span_kind {
#define S(id, name) DC_SPAN_##id,
    DC_SPAN_KINDS(S)
#undef S
        DC_SPAN__COUNT
} dc_span_kind;

const char *dc_span_category(dc_span_kind kind);

/* What spans of one name have in common; texts may be NULL. */
typedef struct dc_span_name {
    dc_span_kind kind;
    const char *text;  /* "step", the label of a kernel */
    const char *where; /* lines of the script: "train.lua:12 train.lua:13" */
    const char *layer; /* "net.2 (nn.Linear 784 -> 10)" */
    double flops, bytes;
} dc_span_name;

typedef struct dc_span_time {
    uint64_t begun_ns, ended_ns; /* of dc_clock_ns */
    int64_t number;              /* of the step, bytes that are copied; 0: none */
    uint32_t name, lane;
} dc_span_time;

/* A row of the picture: a thread, or a device that has its own time. */
typedef struct dc_span_lane {
    int64_t thread; /* the system's number; 0: a device */
    char name[40];
} dc_span_lane;

typedef struct dc_spans dc_spans;

dc_spans *dc_spans_new(void);
void dc_spans_free(dc_spans *s); /* NULL is fine; no other thread may know it any more */

/* Begins at nothing, for `most` spans; false where there is no memory. One that is recording goes on. */
bool dc_spans_start(dc_spans *s, uint64_t most);
/* When it returns no thread writes. What was recorded stays until the next start, or dc_spans_drop. */
void dc_spans_stop(dc_spans *s);
void dc_spans_drop(dc_spans *s);

/* The number of a name, which is copied; 0: nothing is recorded, or there is no memory. */
uint32_t dc_spans_name(dc_spans *s, const dc_span_name *name);
/* The number of a device's lane. Lane 0 is that of the thread that adds a span. */
uint32_t dc_spans_lane(dc_spans *s, const char *device);
void dc_spans_add(dc_spans *s, uint32_t name, uint32_t lane, uint64_t begun_ns, uint64_t ended_ns,
                  int64_t number);
/* It grows with each start: numbers of names hold while this is the same. 0: nothing is recorded. */
uint64_t dc_spans_recording(const dc_spans *s);

/* Once it has stopped. */
uint64_t dc_spans_count(const dc_spans *s);
bool dc_spans_at(const dc_spans *s, uint64_t i, dc_span_time *out); /* false: it was not written */
uint64_t dc_spans_lost(const dc_spans *s);
uint64_t dc_spans_begun_ns(const dc_spans *s);
const dc_span_name *dc_spans_name_at(const dc_spans *s, uint32_t name);
uint32_t dc_spans_lanes(const dc_spans *s); /* numbers 1 to this one */
const dc_span_lane *dc_spans_lane_at(const dc_spans *s, uint32_t lane);

/* ---- where things happen ----------------------------------------------------------------------- */

static inline bool dc_span_wanted(const dc_log *log)
{
    return log != NULL && log->spans != NULL && dc_spans_recording(log->spans) != 0;
}

/* 0: nothing is recorded; dc_span_end then does nothing. */
static inline uint64_t dc_span_begin(const dc_log *log)
{
    return dc_span_wanted(log) ? dc_clock_ns() : 0;
}

void dc_span_end(const dc_log *log, uint64_t begun, dc_span_kind kind, const char *text);
void dc_span_end_of(const dc_log *log, uint64_t begun, const dc_span_name *name, int64_t number);

#endif
