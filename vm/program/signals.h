/*
 * Ctrl-C in the program: SIGINT becomes an interruption of the context (core/runtime/entry.h). Signals
 * belong to the process, so this is for the program alone; hosts call dc_interrupt from handlers of
 * their own.
 */
#ifndef DC_VM_PROGRAM_SIGNALS_H
#define DC_VM_PROGRAM_SIGNALS_H

#include "core/runtime/rt.h"

#include <lua.h>

enum { DC_SIGNALS_MOST = 64 };

/* Threads that run scripts at once have numbers of their own; 0 where none is given. SIGINT is for all of them. */
void dc_signals_use(int number);

/* From now on. Of a script the second one ends the process, as without a handler; at the prompt it
 * insists. */
void dc_signals_catch(dc_rt *rt, bool prompt);
void dc_signals_leave(void); /* as it was before */

/* How many came since the last one was forgotten. */
int dc_signals_pending(void);
void dc_signals_forget(lua_State *L);

#endif
