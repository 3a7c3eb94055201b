/* What readers of several formats share: opening files and reading them. Failures name the path. */
#ifndef DC_FORMATS_INFILE_H
#define DC_FORMATS_INFILE_H

#include "core/base/job.h"
#include "core/base/type.h"

struct stat;

/* An open descriptor of a regular file; FILE where there is none. */
dc_status dc_infile_open(dc_job *j, const char *path, int *fd, struct stat *st);

/* The descriptor is closed when the running entry ends. */
void dc_infile_defer(dc_job *j, int fd);

/* n bytes from a place on, or fewer where the file ends: *got tells. In pieces: INTERRUPTED where the job is to end. */
dc_status dc_infile_read(dc_job *j, const char *path, int fd, int64_t at, void *to, size_t n,
                         size_t *got);

/* FORMAT where the file is not as it was: it has been written to since. */
dc_status dc_infile_unchanged(dc_job *j, const char *path, int fd, const struct stat *was);

/*
 * Where a reader puts what it has read: called once, when the type is known and checked against what the file can
 * hold. Memory for all elements, which is the caller's, whatever becomes of the reading.
 */
typedef struct dc_room {
    dc_status (*make)(dc_job *j, void *ctx, const dc_type *type, void **at);
    void *ctx;
} dc_room;

/*
 * The whole file in memory, a zero behind its n bytes, to be freed with dc_xfree; one that is gzipped is unpacked (gunzip.h).
 * FILE where it cannot be read, FORMAT where it is more than `most` bytes or a damaged gzip stream.
 */
dc_status dc_infile_all(dc_job *j, const char *path, size_t most, char **bytes, size_t *n);

#endif
