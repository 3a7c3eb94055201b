/* Processes of `deepc doctor`: what they print, and how they end. */
#ifndef DC_VM_DOCTOR_RUN_H
#define DC_VM_DOCTOR_RUN_H

#include <lua.h>

/*
 * run(words, variables, seconds): starts the program words[1] with these arguments and, besides the environment, these
 * variables ("NAME=value"); its input is empty. Gives a table: out and err, the first 64 KiB of each; how, "exit",
 * "signal" or "time" (it was ended after so many seconds), and number, the status or the signal; seconds; kib, the most
 * memory it had. nil and a sentence where it cannot be started.
 */
int dc_doctor_run(lua_State *L);

#endif
