/* What a compiler says of a text that it refuses. */
#ifndef DC_BACKENDS_BUILD_LOG_H
#define DC_BACKENDS_BUILD_LOG_H

#include <stddef.h>

/*
 * The first line that speaks of an error, else the first one with words, else "no reason given": *n bytes. An error record
 * has room for a sentence, not for a log.
 */
const char *dc_build_log_line(const char *log, size_t *n);

#endif
