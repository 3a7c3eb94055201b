/* `deepc --replay FILE`: the function of a file about a bug (jit/compile/bug_report.c), run again. */
#ifndef DC_VM_PROGRAM_REPLAY_H
#define DC_VM_PROGRAM_REPLAY_H

/*
 * Compiles the function with the settings of the file, calls it once with random values and
 * compares with the interpreter. Prints what happened; 0 when all was well, 1 when it failed or the
 * file could not be read.
 */
int dc_replay(const char *path);

#endif
