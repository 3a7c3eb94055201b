/*
 * Spans (core/base/spans.h) as a file in the Trace Event Format, JSON that Perfetto (https://ui.perfetto.dev) and
 * chrome://tracing show. A path that ends with .gz is compressed. Times are microseconds of the system's monotonic clock, so files of
 * ranks on one host can be laid beside each other.
 */
#ifndef DC_FORMATS_TRACE_EVENTS_H
#define DC_FORMATS_TRACE_EVENTS_H

#include "core/base/spans.h"
#include "core/runtime/rt.h"

/* Spans that are kept at most, where nothing else is asked for: 40 bytes each, and some 200 of the file. */
enum { DC_TRACE_SPANS = 1000000 };

typedef struct dc_trace_facts {
    const char *version, *device, *host; /* of the program; the first device; the machine */
    int rank, ranks;                     /* 0 and 1 where there is one; ranks 0: not known */
    int64_t thread;                      /* the system's number of the script's thread */
} dc_trace_facts;

/* Of spans that are not recorded any more. The file is replaced whole or not at all. */
dc_status dc_trace_events_write(dc_job *j, const dc_spans *s, const dc_trace_facts *f,
                                const char *path);

/*
 * From now on the context records; dc_trace_stop, or closing it, writes the file. Of several ranks each writes one, whose name has the
 * rank in front of its ending: run.json is run.1.json for rank 1. FILE where it cannot be written, which is tried at once. STATE where
 * it records already.
 */
dc_status dc_trace_start(dc_rt *rt, dc_job *j, const char *path, uint64_t most);
/* STATE where nothing is recorded. *path: where it was written, in scratch memory. A file that cannot be written ends the recording, too. */
dc_status dc_trace_stop(dc_rt *rt, dc_job *j, const char **path, uint64_t *count, uint64_t *lost);
/* At an end: writes the file if something is recorded. False where it cannot be written, which becomes a note. */
bool dc_trace_end(dc_rt *rt);

#endif
