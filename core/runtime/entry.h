/*
 * Entries of the host (dc_pcall, dc_call, dc_load), and what ends them: a request (dc_interrupt, dc_stop) or a
 * deadline. Requests are flags of the context that whatever runs looks at:
 *
 *   interrupt   what runs is to end
 *   insist      reporting it does not take it back, so that scripts which catch errors end too
 *   why         the source of what insists: dc_why
 *
 * An entry that ends takes back what insisted: its own deadline, and as the outermost one dc_stop's request.
 * What was asked for while nothing ran ends the next entry. Deadlines of entries inside others never lie behind
 * those round them.
 *
 * A deadline is one number, `due`, that a thread of the context waits for; it is started by the first one. To
 * set one later than the thread's next look costs a store: it looks again then. The thread that changes `due` from
 * a time to FIRED raises the flags; an entry that finds FIRED waits for that, so no flag is raised after its entry.
 */
#ifndef DC_CORE_RUNTIME_ENTRY_H
#define DC_CORE_RUNTIME_ENTRY_H

#include "core/runtime/rt.h"

typedef enum dc_why {
    DC_WHY_HOST = 1, /* dc_stop */
    DC_WHY_LATE = 2, /* a deadline */
    DC_WHY_USER = 4  /* the second Ctrl-C at a prompt */
} dc_why;

typedef struct dc_entry {
    struct dc_entry *outer;
    uint64_t due,
        before; /* its deadline, 0: none of its own; what the timer waited for when it began */
    int64_t ms; /* of the deadline that holds */
    bool first; /* dc_job_enter */
} dc_entry;

/*
 * Begins an entry, unless it fails; ms <= 0: no deadline of its own. The first deadline takes memory and a thread. STATE
 * where another thread is in one: nothing of the context may be touched then.
 */
dc_status dc_entry_begin(dc_rt *rt, dc_entry *e, int64_t ms);
/* Ends it: its deadline, and as the outermost one dc_stop's request, are taken back. */
void dc_entry_end(dc_rt *rt, dc_entry *e);

/* Raises flags; in signal handlers and other threads too. why: 0, or a dc_why that insists. */
void dc_entry_ask(dc_rt *rt, int why);
/* Takes back everything that `why` asked for. */
void dc_entry_take_back(dc_rt *rt, int why);
void dc_entry_close(dc_rt *rt); /* ends the thread */

#endif
