/*
 * What ranks print: stdout and stderr as streams of whole lines, each with the number of its rank in front and written by one
 * write(), so lines of ranks do not mix. What a child process writes goes past them. Streams belong to the process, so this is
 * for the program alone.
 */
#ifndef DC_VM_PROGRAM_LINES_H
#define DC_VM_PROGRAM_LINES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct dc_lines dc_lines;

/* `number` stands in front of each line: "[3] ", or nothing. NULL: there is no memory. */
dc_lines *dc_lines_new(const char *number);
/* What there is of a line is ended, and written. */
void dc_lines_end(dc_lines *l);

/*
 * From now on stdout and stderr write through these, on threads that have none of their own; at the end of the process what is
 * left is written. `apart`: other threads have, so nothing is kept between one call of a thread and the next.
 */
void dc_lines_install(dc_lines *l, bool apart);
/* Those of this thread. */
void dc_lines_use(dc_lines *l);

/* A line on stderr, past what is kept: another thread may be in that. */
void dc_lines_shout(const dc_lines *l, const char *text);

#endif
