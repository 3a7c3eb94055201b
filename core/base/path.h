/*
 * Folders: where a script's files may lie. A job without folders opens any path; with them, a path names
 * a file only beneath one of them, for reading or for writing.
 *
 * A path is opened component by component from a descriptor of the folder, opened when the host named it
 * (O_NOFOLLOW at each step). So neither "..", nor a symbolic link, nor one that is put in place between a check and
 * its use, leads out of it. What lies outside is refused before the file system is asked: the same sentence
 * (ALLOW), whether there is such a file or not.
 */
#ifndef DC_CORE_BASE_PATH_H
#define DC_CORE_BASE_PATH_H

#include "core/base/job.h"

typedef struct dc_folders dc_folders;

typedef enum dc_folder_use { DC_FOLDER_READ, DC_FOLDER_WRITE } dc_folder_use;

/*
 * Opens the folders of two lists that end with NULL; a list of NULL is empty. Relative names count from the
 * working directory of now, in paths of scripts too. FILE: one is not there or is no folder; ARG: one is
 * written with "..". The set is freed by dc_folders_free.
 */
dc_status dc_folders_new(dc_job *j, const char *const *read, const char *const *write,
                         dc_folders **out);
void dc_folders_free(dc_folders *f); /* NULL is fine */

/*
 * The folder that holds a path's last name, for openat: *dir is the caller's to close, *name has the life of
 * the job's scratch memory. ALLOW outside the folders, FILE where one on the way is missing. Only for jobs with
 * folders.
 */
dc_status dc_folders_enter(dc_job *j, dc_folder_use use, const char *path, int *dir,
                           const char **name);

/* ALLOW for a name in *dir that is a symbolic link; OK for others, and where there is none. */
dc_status dc_folders_no_link(dc_job *j, const char *path, int dir, const char *name);

/* Opens a file for reading, as the job may: any path, or one beneath its folders. */
dc_status dc_path_open(dc_job *j, const char *path, int *fd);

/* Is there something of that name, beneath the folders of this use? */
dc_status dc_path_exists(dc_job *j, dc_folder_use use, const char *path, bool *there);

/* Removes a file; one that is not there is fine. */
dc_status dc_path_remove(dc_job *j, const char *path);

/* A FILE or FORMAT record about a path: "path: sentence". Of a long path the end is kept. */
dc_status dc_path_fail(dc_job *j, dc_err_id id, const char *path, const char *fmt, ...)
    DC_PRINTF(4, 5);
/* A FILE record of errno: "path: doing: No such file or directory"; doing may be NULL. errno stays. */
dc_status dc_path_fail_errno(dc_job *j, const char *path, const char *doing);
/* ALLOW where the context may open no files. */
dc_status dc_path_allow(dc_job *j, const char *path);

#endif
