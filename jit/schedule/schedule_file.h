/*
 * Schedules from a file (the setting DEEPC_SCHEDULE), for kernels by name:
 *
 *   schedule D_64_10_k64     # a kernel's name
 *     split i1 32
 *     reorder k i1.i
 *
 * A schedule lists moves (jit/moves/moves.def) in their order, one a line; "#" starts a comment. A kernel
 * that is not in the file is scheduled by the rules (jit/schedule/schedule.h); one that is there without moves
 * stays as it was lowered.
 */
#ifndef DC_JIT_SCHEDULE_SCHEDULE_FILE_H
#define DC_JIT_SCHEDULE_SCHEDULE_FILE_H

#include "jit/nest/nest.h"

typedef struct dc_schedule_file dc_schedule_file;

/* FILE or PARSE on failure, with the path and the line. What a move does is not checked here. */
dc_status dc_schedule_file_read(dc_job *j, const char *path, dc_schedule_file **out);
/* The same from text; `name` stands for it in messages. */
dc_status dc_schedule_file_parse(dc_job *j, const char *name, const char *text,
                                 dc_schedule_file **out);
/* The moves of a kernel, as dc_move_apply_text takes them; NULL where the file has no schedule for it. */
const char *const *dc_schedule_file_find(const dc_schedule_file *f, const char *kernel,
                                         uint32_t *n);
void dc_schedule_file_free(dc_schedule_file *f);

/* The moves that were applied to k, in the same format. */
void dc_schedule_file_print(const dc_kernel *k, dc_text *out);

#endif
