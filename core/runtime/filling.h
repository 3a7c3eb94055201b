/*
 * Cells whose values another thread is writing: a file is read while functions are traced and compiled.
 *
 * From dc_filling_start on until the values are there the cells count as torn, and belong to the thread: whoever reads or
 * writes one waits in dc_cell_refuse. Where the values cannot be had, each read of such a cell fails as the body did, until
 * it is written. All functions are for the context's thread.
 */
#ifndef DC_CORE_RUNTIME_FILLING_H
#define DC_CORE_RUNTIME_FILLING_H

#include "core/runtime/storage.h"

typedef struct dc_filling dc_filling;

/* What writes the memory of the cells. */
typedef struct dc_filler {
    /* On another thread; of the context it touches that memory alone. Its failure names what could not be read. */
    dc_status (*body)(dc_job *j, void *arg);
    void (*release)(void *arg); /* on the context's thread, when the body runs no more */
    void *arg;
} dc_filler;

/*
 * The cells have passed dc_cell_check, and tensors that showed them dc_storage_evict. The argument is released whatever
 * happens: where there is no memory nothing has begun.
 */
dc_status dc_filling_start(dc_rt *rt, dc_job *j, dc_cell *const *cell, uint32_t n,
                           const dc_filler *by);

/* For cell.c. Waits for the value of a cell that has a filling; the failure where it is to be read and there is none. */
dc_status dc_filling_await(dc_cell *c, dc_job *j, bool reads);
/* The cell has another value, or ends. */
void dc_filling_leave(dc_cell *c);

/* Ends those that are done; cheap where there are none. */
void dc_fillings_settle(dc_rt *rt);
/* All are told to stop, and have stopped. */
void dc_fillings_close(dc_rt *rt);

#endif
