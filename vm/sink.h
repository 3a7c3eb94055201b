/* Where the program's lines of logs go; the library itself writes nowhere. */
#ifndef DC_VM_SINK_H
#define DC_VM_SINK_H

#include "core/base/base.h"

#include <stdio.h>

static inline void dc_sink_stderr(void *ctx, const char *channel, const char *text, size_t n)
{
    DC_UNUSED(channel);
    DC_UNUSED(ctx);
    fwrite(text, 1, n, stderr);
}

#endif
