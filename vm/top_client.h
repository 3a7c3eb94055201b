/* Connections of `deepc top` to those that it watches. */
#ifndef DC_VM_TOP_CLIENT_H
#define DC_VM_TOP_CLIENT_H

#include "vm/monitor_folder.h"
#include "vm/top_snapshot.h"

enum { DC_TOP_MOST = 64 /* ranks that are shown */ };

typedef struct dc_top_client {
    int fd;      /* -1: it has ended, or was never there: why */
    bool silent; /* it has not answered the last request yet */
    char *text;  /* of the last answer, room for `room` bytes */
    size_t n, room;
    char why[DC_MONITOR_WHY];
    dc_top_snapshot *now,
        *last; /* the last answer; the one whose counters are older. NULL: none was read */
} dc_top_client;

/* Those that have to do with each other: contexts of a process, ranks of a run on this host. */
typedef struct dc_top_clients {
    uint32_t n;
    dc_top_client at[DC_TOP_MOST];
} dc_top_clients;

/* What can be watched, in the order of processes and contexts: of `process`, 0: of all. true: at least one. */
bool dc_top_find(dc_top_clients *all, const char *setting, int process, char why[DC_MONITOR_WHY]);
/* Ranks that this process has launched. */
bool dc_top_find_launched(dc_top_clients *all, const char *setting, double process);
/* The same of one socket by its path. */
bool dc_top_connect(dc_top_clients *all, const char *path, char why[DC_MONITOR_WHY]);
/* Adds the other ranks of the run that at[0] is one of, and sorts by ranks. */
void dc_top_add_ranks(dc_top_clients *all, const char *setting);
void dc_top_close(dc_top_clients *all);
/* Leaves out those that have never answered. false: none is left; `why` is what the last one said. */
bool dc_top_drop_silent(dc_top_clients *all, char why[DC_MONITOR_WHY]);

/*
 * Asks all and waits until each has answered, or for so long that those who have not are silent. Then now is the answer, and
 * last what it was before where the counters of both differ in age. At least one lives: true.
 */
bool dc_top_ask(dc_top_clients *all, bool kernels);
/* Who asks nothing for a minute is let go: asks, and what comes is of no interest. */
void dc_top_keep(dc_top_clients *all, bool kernels);

#endif
