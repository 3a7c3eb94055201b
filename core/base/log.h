/*
 * Trace channels: DEEPC_DEBUG=graph,kernel,src,time. One line per event, "[channel] text"; the
 * library itself never prints, lines go to the sink that the program or host installed.
 */
#ifndef DC_CORE_BASE_LOG_H
#define DC_CORE_BASE_LOG_H

#include "core/base/base.h"

/*  id       help */
#define DC_CHANNELS(CH)                                                           \
    CH(GRAPH, "graph", "checked graphs of typed functions, after simplification") \
    CH(FUSE, "fuse", "which nodes share a kernel")                                \
    CH(KERNEL, "kernel", "kernels in nest form, before and after their moves")    \
    CH(FLAT, "flat", "kernels in flat form")                                      \
    CH(SRC, "src", "kernel text given to the compiler")                           \
    CH(PLAN, "plan", "launches and memory of a compiled function")                \
    CH(CACHE, "cache", "what is found in the cache on disk, and what is not")     \
    CH(TIME, "time", "time per kernel, printed at the end")                       \
    CH(EXCHANGE, "exchange", "what ranks exchange while kernels run, and waits for it") \
    CH(TUNE, "tune", "schedules that dc.tune tries, with their times")            \
    CH(COMPARE, "compare", "results beside the interpreter's (DEEPC_COMPARE)")    \
    CH(NOTE, "note", "fallbacks and what else a user should know; always on")

typedef enum dc_channel {
#define CH(id, name, help) DC_CH_##id,
    DC_CHANNELS(CH)
#undef CH
        DC_CH__COUNT
} dc_channel;

typedef struct dc_log {
    uint32_t on; /* one bit per channel */
    /* Whole lines of a channel, whose name is given; it stays. */
    void (*write)(void *ctx, const char *channel, const char *text, size_t n);
    void *ctx;
    struct dc_spans *spans; /* what is timed (core/base/spans.h); NULL: nothing ever was */
} dc_log;

/* "graph, fuse, ..." for messages. */
const char *dc_log_channels(void);

/* Switches channels on by a comma list. Returns the first unknown word, or NULL. */
const char *dc_log_select(dc_log *log, const char *words);

static inline bool dc_log_on(const dc_log *log, dc_channel ch)
{
    return log != NULL && (log->on >> ch & 1) != 0;
}

void dc_logf(dc_log *log, dc_channel ch, const char *fmt, ...) DC_PRINTF(3, 4);

/* Text of several lines under one heading. */
void dc_log_text(dc_log *log, dc_channel ch, const char *heading, const char *text);

/* Lines kept for later, in memory of its own; never unwinds. */
typedef struct dc_log_buffer {
    char *text;
    size_t n, size;
    bool lost; /* there was no memory for some of them */
} dc_log_buffer;

/* A dc_log.write. */
void dc_log_keep(void *buffer, const char *channel, const char *text, size_t n);
/* Hands what is kept to the sink of `to` and empties the buffer. */
void dc_log_deliver(dc_log_buffer *b, dc_log *to);

#endif
