/*
 * The program as one of several ranks that a launcher started (mpirun, srun): its lines begin with the number of the rank, and
 * it ends with a sentence that says which rank is to blame. Output and signals belong to the process, so this is for the
 * program alone.
 */
#ifndef DC_VM_LAUNCHED_H
#define DC_VM_LAUNCHED_H

#include "core/runtime/rt.h"

#include <lua.h>

/* Before there is a Lua state: it takes stdout and stderr as they are then. Nothing where no launcher is there. */
void dc_launched_begin(dc_rt *rt);
/* os.exit ends the world, too. Before dc_attach. */
void dc_launched_guard_exit(lua_State *L);
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
