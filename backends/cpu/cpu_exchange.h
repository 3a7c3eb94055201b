/*
 * What ranks do together while kernels run. An exchange of a recording begins where its command stands, and is waited for
 * by the first command that has to wait for it (dc_command.dep). Small ones of one kind that follow each other, without a
 * command between them that needs one of them, are a bucket: they begin together, where the last one stands. But for those that
 * a script has written: other ranks may have other commands between them.
 *
 * Only exchanges of the outermost list are left to themselves; those in loops and branches end where they stand.
 */
#ifndef DC_BACKENDS_CPU_CPU_EXCHANGE_H
#define DC_BACKENDS_CPU_CPU_EXCHANGE_H

#include "core/host/host_step.h"
#include "core/runtime/device.h"

typedef struct dc_cpu_exchanges dc_cpu_exchanges;

/* Of a list of commands; NULL: there are none. */
dc_cpu_exchanges *dc_cpu_exchanges_new(const dc_command *command, uint32_t n);
void dc_cpu_exchanges_free(dc_cpu_exchanges *e);

/* Is the command one that may go on while others run? */
bool dc_cpu_exchange_is(const dc_cpu_exchanges *e, uint32_t command);
/* Its place has come; place[0] is the result. */
dc_status dc_cpu_exchange_reach(dc_cpu_exchanges *e, dc_job *j, uint32_t command,
                                const dc_host_step *s, void *const *place);
/* Waits for those that the command has to wait for. `e` is not NULL. */
dc_status dc_cpu_exchange_await(dc_cpu_exchanges *e, dc_job *j, uint32_t command);
/* A run begins at its front. NULL is fine, as below. */
void dc_cpu_exchanges_begin(dc_cpu_exchanges *e);
/*
 * Waits for all that are under way, whatever `status` the run has, which is returned unless waiting fails. Where it pauses, what
 * is not begun begins when it goes on: each rank pauses elsewhere, and all have to cut their buckets alike.
 */
dc_status dc_cpu_exchanges_finish(dc_cpu_exchanges *e, dc_job *j, dc_status status, bool paused);

#endif
