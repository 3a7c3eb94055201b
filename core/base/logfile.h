/*
 * Files that grow at their end: logs. Bytes are appended by one call each, so that what stands there is whole up to the
 * last one; a run that goes on cuts the file to the length that it had when its checkpoint was written.
 */
#ifndef DC_CORE_BASE_LOGFILE_H
#define DC_CORE_BASE_LOGFILE_H

#include "core/base/path.h"

/*
 * Cuts the file to `keep` bytes, or keeps all of it where that is -1, and appends n bytes; a file that is not there is
 * made. *size: its bytes afterwards. FILE where that cannot be: where it has fewer than `keep` bytes nothing has changed
 * then, where the disk is full nothing is appended.
 */
dc_status dc_logfile_append(dc_job *j, const char *path, int64_t keep, const void *bytes, size_t n,
                            int64_t *size);

/* A folder of that name, made where there is none; the one above has to be there. */
dc_status dc_logfile_folder(dc_job *j, const char *path);

#endif
