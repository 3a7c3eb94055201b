/*
 * deepc --ranks 4 FILE, deepc --ranks cuda:0,cuda:1 FILE: ranks that are threads of this process, each with a context and a
 * lua_State of its own.
 */
#ifndef DC_VM_PROGRAM_RANKS_MAIN_H
#define DC_VM_PROGRAM_RANKS_MAIN_H

/*
 * Runs run(arg), which returns a status, on a thread for each rank that `list` asks for, and waits for them; the status of the
 * first that failed. One rank is no thread: *device is what it computes on, NULL the setting. Where one has failed the
 * others get some seconds to end.
 */
int dc_ranks_main(const char *list, int (*run)(void *arg, const char *device), void *arg);

#endif
