/*
 * Interpreter of the nest form: runs a kernel on host memory, slowly, one iteration after the other.
 * Schedules are tested with it without any compiler: each prefix of a list of moves must compute the
 * same. BUG records, naming kernel, buffer and element, report
 *   - an access outside its buffer;
 *   - iterations of a grid, block or lane axis that are not independent: one element of a parameter,
 *     of group or of thread memory touched by two of them, one of which stores. Parameters that share
 *     memory are seen: elements are told apart by address;
 *   - a read of local, group or thread memory, or of an output, that has not been stored (of outputs
 *     where the kernel has parallel axes);
 *   - a read of an input whose memory an output has overwritten.
 */
#ifndef DC_TESTS_NEST_INTERP_H
#define DC_TESTS_NEST_INTERP_H

#include "jit/nest/nest.h"

#include <string.h>

/* mem[i] is the memory of parameter i. The kernel must be legal (dc_nest_check). */
dc_status dc_nest_run(dc_job *j, const dc_kernel *k, void *const *mem);

/*
 * Limits leave nothing out here. For a comparison with what does: sets the numbers that they end at so high that all is
 * needed. (Of other values in memory, what is behind a number may not be neutral, as limits say it is.)
 */
static inline void nest_need_all(const dc_kernel *k, const dc_stmt *first, void *const *mem)
{
    static const int32_t all = 1 << 20;
    for (const dc_stmt *s = first; s != NULL; s = s->next) {
        if (s->kind == DC_STMT_LOOP)
            nest_need_all(k, s->body, mem);
        for (uint32_t i = 0; i < s->nlimit; i++)
            memcpy(mem[k->buf.at[s->limit[i].buf].param], &all, sizeof all);
    }
}

#endif
