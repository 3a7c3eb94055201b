/*
 * Checks of scripts for the language server, each in a process of its own.
 *
 * The server's process has a lua_State with a context in which the library is loaded and no script has run. A check is a
 * child of it by fork: it has all of that at once, and whatever a script does there - an endless loop, a crash, all of the
 * memory, changed globals - ends with the child. The server starts no thread, so that fork copies all of it.
 *
 * The child writes what it found into a pipe and ends:
 *
 *   {"complete": true, "late": false, "problems": [...], "values": [...], "seen": [...], "made": [...]}
 *
 * (vm/program/check.h, vm/program/check_types.h). It has limits of time and memory, writes no file, and dies with the server.
 */
#ifndef DC_EXTRAS_EDITORS_LANGUAGE_CHECK_H
#define DC_EXTRAS_EDITORS_LANGUAGE_CHECK_H

#include "core/base/vec.h"

#include <lua.h>

#include <sys/types.h>

typedef struct dc_warm dc_warm;

/* Loads the library. NULL: it could not, which has been printed. */
dc_warm *dc_warm_open(void);
void dc_warm_close(dc_warm *w);

typedef struct dc_warm_script {
    const char *file, *folder, *text; /* folder: where it runs */
    size_t n;
    int argc;
    char **argv;
    int64_t ms, mib; /* of time and of memory, at most */
} dc_warm_script;

/* Starts a check; *fd is where its result is read from. -1: no process could be made (errno). */
pid_t dc_warm_check(dc_warm *w, const dc_warm_script *s, int *fd);

#endif
