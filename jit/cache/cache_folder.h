/*
 * A folder of files that can be made again, for one user alone.
 *
 * The folder has mode 0700 and belongs to the user of the process, or it is not used: others could
 * leave code there. A file counts if it is a plain file of the same owner that no other user can read
 * or write; links are not followed. A file appears whole, under its name, or not at all, whatever other
 * process writes the same one at that time. When the files become too many, those go that have not been
 * used for the longest time.
 */
#ifndef DC_JIT_CACHE_CACHE_FOLDER_H
#define DC_JIT_CACHE_CACHE_FOLDER_H

#include "core/base/opt.h"

/* Where it is by the settings (DEEPC_CACHE); false: nowhere. */
bool dc_cache_folder_place(const dc_opts *opt, char *path, size_t size);

/*
 * A descriptor, or -1; `why` then says what is wrong, or is "" where the folder is just not there and
 * cannot be made, or, without `make`, is not made.
 */
int dc_cache_folder_open(const char *path, bool make, char *why, size_t size);

/* A whole file, for dc_xfree; it counts as used. NULL where there is none that counts. */
void *dc_cache_folder_read(int dir, const char *name, size_t *bytes);

/* The file consists of `head` and `body`. False with errno where it cannot be written. */
bool dc_cache_folder_write(int dir, const char *name, const void *head, size_t nhead,
                           const void *body, size_t nbody);

/* What a file of so many bytes takes on disk: entries are small, and many. */
uint64_t dc_cache_folder_bytes(uint64_t size);

typedef struct dc_cachedir_use { /* on disk */
    uint64_t bytes;
    uint32_t files;
} dc_cachedir_use;

dc_cachedir_use dc_cache_folder_measure(int dir);

/* Removes files, the longest unused first, until at most so many bytes are left; what is left. */
dc_cachedir_use dc_cache_folder_trim(int dir, uint64_t most);

#endif
