/*
 * Where sockets of monitors are: a folder of the user's alone (mode 700), with one socket PID-N for each context of a process
 * that may be watched. Both sides use it: vm/monitor.c opens one, `deepc top` connects (docs/monitoring.md).
 *
 * A folder is held by a descriptor and its files are reached through that, so neither the length of its path nor what others do
 * to that path matters. A socket to which nobody listens any more is removed by whoever meets it.
 */
#ifndef DC_VM_MONITOR_FOLDER_H
#define DC_VM_MONITOR_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { DC_MONITOR_PATH = 512, DC_MONITOR_FILE = 32, DC_MONITOR_WHY = 700 };

typedef struct dc_monitor_folder {
    int fd;
    char path[DC_MONITOR_PATH];
} dc_monitor_folder;

/* What DEEPC_MONITOR and dc_config.monitor may be: "on", "off", or the path of a folder. */
bool dc_monitor_known(const char *setting);

/*
 * The first folder that can be had, for the user with this number (0, and others are looked at as well): that of the setting,
 * else $XDG_RUNTIME_DIR/deepc, else /tmp/deepc-UID. `make`: it is made if it is not there. `which` counts from 0; false: there
 * is none from there on, `why` is the sentence of the last that cannot be used, or empty. *which becomes the number behind it.
 */
bool dc_monitor_folder_open(const char *setting, uid_t user, bool make, int *which,
                            dc_monitor_folder *out, char why[DC_MONITOR_WHY]);
void dc_monitor_folder_close(dc_monitor_folder *f);

/* Makes a socket of this process and listens: -1, and why not. `file` is its name. */
int dc_monitor_listen(const dc_monitor_folder *f, char file[DC_MONITOR_FILE],
                      char why[DC_MONITOR_WHY]);
/* Of a socket; other files stay. */
void dc_monitor_unlink(const dc_monitor_folder *f, const char *file);

/*
 * A connection that does not block, to a process of this user or `user`: -1, and why not. `tidy`: a socket whose process has
 * ended is removed, if its name is one of deepc's; never what somebody has named by its path.
 */
int dc_monitor_connect(const dc_monitor_folder *f, const char *file, uid_t user, bool tidy,
                       char why[DC_MONITOR_WHY]);
/* The user at the other end of a connection; false: it is not told. */
bool dc_monitor_peer(int fd, uid_t *user, pid_t *process);

/* Is it a name of a socket? Then of which process, and which context of it. */
bool dc_monitor_file(const char *name, int *process, int *number);
/* Calls see(ctx, name, process, number) for each, in no order. */
void dc_monitor_folder_each(const dc_monitor_folder *f,
                            void (*see)(void *ctx, const char *name, int process, int number),
                            void *ctx);

#endif
