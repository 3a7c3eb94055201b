/*
 * The program as one of several ranks, which a launcher has started (mpirun, srun) or which are its threads (deepc --ranks): its
 * lines begin with the number of the rank, and it ends with a sentence that says which rank is to blame. Output and signals
 * belong to the process, so this is for the program alone.
 */
#ifndef DC_VM_PROGRAM_LAUNCHED_H
#define DC_VM_PROGRAM_LAUNCHED_H

#include "core/runtime/rt.h"
#include "vm/deepc.h"
#include "vm/program/lines.h"

#include <lua.h>

#include <setjmp.h>

/* A rank that is a thread (vm/program/ranks_main.c). */
typedef struct dc_rank_thread {
    dc_ranks *ranks;
    int rank, threads;  /* number; of its pool */
    const char *device; /* NULL: the setting */
    dc_lines *lines;
    int status;
    lua_State *left; /* open since os.exit, until the process ends */
    jmp_buf exit;    /* where os.exit goes */
} dc_rank_thread;

/* Runs body(arg) as this rank; os.exit, which sets the status, ends it too. */
void dc_launched_as(dc_rank_thread *t, void (*body)(void *), void *arg);
/* The one that this thread is; NULL: the process is one. */
dc_rank_thread *dc_launched_thread(void);

/* Before there is a Lua state: it takes stdout and stderr as they are then. Nothing where no launcher is there. */
void dc_launched_begin(dc_rt *rt);
/* os.exit ends the world, too; of threads, setvbuf leaves what they share. Before dc_attach. */
void dc_launched_guard(lua_State *L);
/*
 * An error has ended the script; `interrupted`: because of SIGINT. The other ranks are told, and the error or what other rank
 * it comes from is said on stderr. False, and nothing is done: there are no others.
 */
bool dc_launched_report(dc_rt *rt, const char *text, bool interrupted);
/* The end, with the others. Returns the status to exit with, which is not 0 where another rank has failed. */
int dc_launched_finish(dc_rt *rt, int status);
/* The context is closed next. */
void dc_launched_leave(void);

#endif
