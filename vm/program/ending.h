/*
 * The end of a script that the program runs: what is still to be written then, in whatever way it has ended. What
 * cannot be written makes a failure of a success.
 */
#ifndef DC_VM_PROGRAM_ENDING_H
#define DC_VM_PROGRAM_ENDING_H

#include <lua.h>

#include <stdbool.h>

/*
 * Notes what the script left unread, unless it failed (dc_dsl_finish). Writes the page of --viz, what modules of stdlib/ keep for the end (stdlib/ending.lua), the trace, and what is left
 * of stdout; each that fails is said on stderr. Again it does nothing. Needs an attached state, and never raises.
 */
bool dc_ending(lua_State *L, bool failed);

/* os.exit does that first, and its status is not 0 then where something failed. After dc_attach. */
void dc_ending_guard(lua_State *L);

/* False where stdout has lost something, which is said. */
bool dc_ending_output(void);

#endif
