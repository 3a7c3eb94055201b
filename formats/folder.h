/* Folders: what is in one, in an order that does not depend on the file system; patterns of names. */
#ifndef DC_FORMATS_FOLDER_H
#define DC_FORMATS_FOLDER_H

#include "core/base/job.h"

/*
 * The entries of a folder, sorted by the bytes of their names: for each one a byte, 'f' of a file and 'd' of a folder,
 * the name and a zero. Links count as what they lead to, as files where that is nothing; a job with folders
 * (core/base/path.h) leaves them out. So is what is neither file nor folder, "." and "..".
 */
typedef struct dc_folder_list {
    char *text; /* the caller's, dc_xfree */
    size_t n;
    uint64_t id[2]; /* the same for two paths of one folder */
} dc_folder_list;

/* FILE where it cannot be read. */
dc_status dc_folder_read(dc_job *j, const char *path, dc_folder_list *out);

/*
 * Does a name have the form of a pattern (Python's fnmatch)? * is any text, ? one character of UTF-8, [a-z] and [!a-z]
 * one of a set; all else is itself, a [ without its ] too. In time of both lengths multiplied.
 */
bool dc_folder_match(const char *pattern, const char *name);

#endif
