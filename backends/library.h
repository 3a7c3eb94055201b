/* Libraries that backends open at run time: where they are, which file it is, their functions. */
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

/* dlopen with RTLD_LOCAL and `flags`. NULL: `why` has the loader's words. */
void *dc_library_open(const char *name, int flags, char *why, size_t size);
/* Nothing where *handle is NULL, which it is afterwards. */
void dc_library_close(void **handle);

/* A function, and where its pointer stands in a table of functions. */
typedef struct dc_library_symbol {
    const char *name;
    size_t offset;
    bool optional; /* NULL where the library has none */
} dc_library_symbol;

/* Fills in a table. The name of the first function that is missing, or NULL. */
const char *dc_library_resolve(void *handle, const dc_library_symbol *symbol, size_t n,
                               void *table);

#endif
