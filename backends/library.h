/* Where the libraries are that backends open at run time, and what tells one version of a file from another. */
#ifndef DC_BACKENDS_LIBRARY_H
#define DC_BACKENDS_LIBRARY_H

#include "core/base/vec.h"

/*
 * The first file of that name in the folders where the loader looks (but for what /etc/ld.so.conf adds), then in
 * `folder`. Both lists end with NULL. Opens nothing.
 */
bool dc_library_find(const char *const *name, const char *const *folder, char *path, size_t size);

/* "path size date": false where there is no such file. */
bool dc_library_put_id(const char *path, dc_text *out);

#endif
