/*
 * A file that is replaced whole or not at all: written beside its place without a name or under another
 * one, forced to the disk, then renamed. Until the commit has succeeded, whatever stood there is as it
 * was. A request to end is looked at between pieces, until all is on the disk: then the file is given up as by any
 * failure.
 *
 * A process that is killed leaves nothing; or, in the moment before the rename and where the file system knows no
 * files without a name, a file `.NAME.deepc-0a1b2c3d` beside it. It holds a lock (flock) on that file while it
 * lives, so the next process that writes NAME removes the files without a lock: their processes are dead.
 *
 * A symbolic link is followed: what it leads to is replaced. Of a job with folders (core/base/path.h), which follows
 * none, it is refused.
 */
#ifndef DC_CORE_BASE_OUTFILE_H
#define DC_CORE_BASE_OUTFILE_H

#include "core/base/path.h"

typedef struct dc_outfile dc_outfile;

/*
 * FILE where it cannot be: no such folder, no permission, a directory in its place. The file belongs
 * to the running entry, which gives it up when it ends without a commit.
 */
dc_status dc_outfile_open(dc_job *j, const char *path, dc_outfile **out);
dc_status dc_outfile_write(dc_outfile *f, const void *bytes, size_t n);
dc_status dc_outfile_commit(dc_outfile *f); /* f is gone, whatever becomes of it */

/* All three for bytes that are there. */
dc_status dc_outfile_put(dc_job *j, const char *path, const void *bytes, size_t n);

#endif
