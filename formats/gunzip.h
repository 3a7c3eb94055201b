/*
 * Files that may be gzipped, read from their beginning to their end: what has the magic number of gzip is unpacked, all
 * members one behind the other, as gzip(1) does; anything else comes as it is. What stands behind the last member and is
 * none is a failure, where gzip(1) warns and zlib's gzread is silent.
 */
#ifndef DC_FORMATS_GUNZIP_H
#define DC_FORMATS_GUNZIP_H

#include "core/base/job.h"

enum { DC_GUNZIP_BEST = 1032 /* deflate cannot shrink by more than this factor (zlib's manual) */ };

typedef struct dc_gunzip dc_gunzip;

/* Of a file of so many bytes; the descriptor is the reader's from here on, also where this fails. */
dc_status dc_gunzip_open(dc_job *j, const char *path, int fd, int64_t length, dc_gunzip **out);
/* n bytes, or fewer at the end: *got tells. Then checksums and lengths were right, too, and nothing else follows. */
dc_status dc_gunzip_read(dc_gunzip *g, dc_job *j, void *to, size_t n, size_t *got);
bool dc_gunzip_packs(const dc_gunzip *g);
void dc_gunzip_close(dc_gunzip *g);

#endif
