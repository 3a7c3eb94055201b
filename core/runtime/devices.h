/*
 * Several devices in one context: opened at their first use, closed with it. What lies on one of them gets to another
 * one as a copy; only a cell moves.
 */
#ifndef DC_CORE_RUNTIME_DEVICES_H
#define DC_CORE_RUNTIME_DEVICES_H

#include "core/runtime/storage.h"

/* The device of this name, opened if need be. DEVICE as where a context is opened; then nothing has changed. */
dc_status dc_rt_on(dc_rt *rt, dc_job *j, const char *name, dc_rt **out);

/* Does the context have more than one? */
static inline bool dc_rt_has_others(const dc_rt *rt)
{
    return rt->first->next != NULL;
}

/* Of any two devices: bytes from `offset` on of one storage to the begin of the other. */
dc_status dc_storage_copy(dc_storage *to, dc_job *j, const dc_storage *from, size_t offset,
                          size_t bytes);
/* The same value on this device: a new tensor. */
dc_status dc_tensor_copy_to(dc_rt *rt, dc_job *j, const dc_tensor *t, dc_tensor **out);

/*
 * The cell lies on this device from now on, with its value; tensors that show it stay where they are. What is bound to it
 * finds that it was moved (dc_cell.moved). JOB, TORN; MEMORY: nothing has changed.
 */
dc_status dc_cell_move(dc_cell *c, dc_job *j, dc_rt *to);
/*
 * The same of a state that is on no device for long: it keeps its memory on each, so that what is bound to it goes on being
 * so, where it is there again.
 */
dc_status dc_cell_visit(dc_cell *c, dc_job *j, dc_rt *to);

#endif
