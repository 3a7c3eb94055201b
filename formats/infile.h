/* What readers of several formats share: opening files and reading them. Failures name the path. */
#ifndef DC_FORMATS_INFILE_H
#define DC_FORMATS_INFILE_H

#include "core/base/job.h"

struct stat;

/* An open descriptor of a regular file; FILE where there is none. */
dc_status dc_infile_open(dc_job *j, const char *path, int *fd, struct stat *st);

/* n bytes from a place on, or fewer where the file ends: *got tells. In pieces: INTERRUPTED where the job is to end. */
dc_status dc_infile_read(dc_job *j, const char *path, int fd, int64_t at, void *to, size_t n,
                         size_t *got);

#endif
