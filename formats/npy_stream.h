/* Between npy.c and npz.c: an array wherever its bytes come from. */
#ifndef DC_FORMATS_NPY_STREAM_H
#define DC_FORMATS_NPY_STREAM_H

#include "formats/npy.h"

#include <stdarg.h>

typedef struct dc_npy_stream {
    /* The next n bytes, fewer at the end. */
    dc_status (*read)(struct dc_npy_stream *in, dc_job *j, void *to, size_t n, size_t *got);
    const char *path, *entry; /* for messages; entry may be NULL */
    int64_t length;           /* in all; -1: not known */
} dc_npy_stream;

dc_status dc_npy_read_header(dc_job *j, dc_npy_stream *in, dc_npy_header *head);
dc_status dc_npy_read_stream(dc_job *j, dc_npy_stream *in, const dc_room *room);

enum { DC_NPY_ROOM = 512 };
size_t dc_npy_header_write(const dc_type *t, char out[DC_NPY_ROOM]);

/* Is that the name of an array in an archive? */
bool dc_npz_is_array(const char *name);

/* FORMAT: "path: 'entry': sentence". */
dc_status dc_npy_fail(dc_job *j, const char *path, const char *entry, const char *fmt, ...)
    DC_PRINTF(4, 5);

#endif
