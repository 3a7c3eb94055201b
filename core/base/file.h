/* Helpers for files that several readers and writers share. */
#ifndef DC_CORE_BASE_FILE_H
#define DC_CORE_BASE_FILE_H

#include "core/base/base.h"

/* All n bytes to a descriptor, however many calls it takes; false with errno when one fails. */
bool dc_file_write(int fd, const char *s, size_t n);

/*
 * What can be read of a file, with a zero behind it, for dc_xfree. NULL with errno where it cannot be
 * opened; EFBIG where it and the zero are more than `most` bytes; ENOMEM.
 */
char *dc_file_read(const char *path, size_t most);

/* Makes the folder and those above it that are missing, for the user alone; where one cannot be made, using it fails. */
void dc_file_make_folders(const char *path);

#endif
