/*
 * What a call is told later. A device that runs ahead of the host has launched the call's kernels, and whether a check
 * of its data stops it is not known when the call returns: that is its outcome. A call that was stopped has set no cell.
 * The storages of its results name the outcome, so that nobody takes for a value what was never computed.
 *
 * Outcomes become known in the order of the calls.
 */
#ifndef DC_CORE_RUNTIME_OUTCOME_H
#define DC_CORE_RUNTIME_OUTCOME_H

#include "core/runtime/storage.h"

typedef enum dc_outcome_state {
    DC_OUTCOME_OPEN,   /* not known yet */
    DC_OUTCOME_RIGHT,  /* nothing was found */
    DC_OUTCOME_STOPPED /* a check found something */
} dc_outcome_state;

typedef struct dc_outcome {
    uint32_t refs;
    dc_outcome_state state;
    bool told; /* STOPPED: somebody was given it */
    dc_rt *rt;
    struct dc_outcome *next; /* in rt->outcomes, or among the spare ones */
    uint64_t ticket;         /* of the device */
    void *owner;             /* who knows what the checks are about; NULL: gone */
    char name[64];           /* of the function */
    void *about;             /* for the reader of `command`; `drop` lets go of it */
    void (*drop)(void *about);
    uint32_t first;  /* for that reader, too */
    int32_t command; /* STOPPED: as in dc_run_info */
    int64_t value;
    uint64_t bits;
} dc_outcome;

/* Room for one: the next call of dc_outcome_new cannot fail. */
void dc_outcomes_room(dc_rt *rt);
/* Of the run that gave the ticket; in rt->outcomes until it is known, and told where it was stopped. */
dc_outcome *dc_outcome_new(dc_rt *rt, uint64_t ticket, const char *name, void *owner, void *about,
                           void (*drop)(void *about));
/* The storage is written by that call, NULL: by one whose outcome is known. */
void dc_outcome_attach(dc_outcome *o, dc_storage *s);

/* Asks the device about those that are open; waits for all of them if `wait`. DEVICE: it failed. */
dc_status dc_outcomes_ask(dc_rt *rt, dc_job *j, bool wait);
/* Before a value in it is used: waits until its outcome is known; NO_RESULT where the call was stopped. */
dc_status dc_outcome_settle(dc_storage *s, dc_job *j);
/* The first that was stopped and not told yet, which it is now; NULL: there is none. */
dc_outcome *dc_outcomes_stopped(dc_rt *rt);
/* The owner goes. */
void dc_outcomes_disown(dc_rt *rt, const void *owner);
void dc_outcomes_free(dc_rt *rt);

#endif
