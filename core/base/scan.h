/*
 * Reading texts of ours: words and signs between blanks and comments (# to the end of the line), with
 * failures that name the line. Used by the parsers of graphs (core/ir/gtext.c), of flat kernels
 * (jit/flat/flat_parse.c) and of nests (jit/nest/nest_parse.c, which skips blanks in its own way, since its lines count).
 */
#ifndef DC_CORE_BASE_SCAN_H
#define DC_CORE_BASE_SCAN_H

#include "core/base/job.h"

typedef struct dc_scan {
    dc_job *j;
    const char *at; /* what comes next */
    int64_t line;   /* from 1 */
    size_t (*word)(const char *s); /* length of the word that s begins with, 0 for none */
} dc_scan;

/* A PARSE record with the line. */
dc_status dc_scan_refuse(dc_scan *p, const char *fmt, ...) DC_PRINTF(2, 3);
/* "what expected, not ..." what comes, which is no blank. */
dc_status dc_scan_expected(dc_scan *p, const char *what);

void dc_scan_skip(dc_scan *p); /* blanks, ends of lines, comments */

/* Is the next word or sign this one? Then moves behind it. */
bool dc_scan_accept(dc_scan *p, const char *token);
dc_status dc_scan_expect(dc_scan *p, const char *token);
/* The word that comes next into `out`, where it begins with no digit and is shorter than `size`. */
dc_status dc_scan_name(dc_scan *p, const char *what, char *out, size_t size);

#endif
