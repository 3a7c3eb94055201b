/*
 * Whose process is this? A context belongs to the process that opened it: in a child of fork its threads are
 * gone, locks may be held for ever, and files, caches and queues of devices are the parent's. So every entry
 * checks the owner before it touches anything else.
 *
 * A page that the system wipes in children answers without a call of the system; where there is none, the
 * number of the process does. No handler of fork is installed: a library that is unloaded leaves none behind.
 */
#ifndef DC_CORE_BASE_OWNER_H
#define DC_CORE_BASE_OWNER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct dc_owner {
    const volatile int *here; /* 0 in a child; NULL: there is no such page */
    int process;
} dc_owner;

void dc_owner_init(dc_owner *o);
void dc_owner_fini(dc_owner *o);

/*
 * This process, a child by fork, becomes the owner instead. For what had no threads, no lock held and no queue of a device
 * when the parent forked: the caller's promise.
 */
void dc_owner_adopt(dc_owner *o);

/* Is it another process than the one that called dc_owner_init? */
bool dc_owner_is_other_process(const dc_owner *o);

static inline bool dc_owner_forked(const dc_owner *o)
{
    return o->here != NULL ? *o->here == 0 : dc_owner_is_other_process(o);
}

/*
 * A lock for what is one for the process and takes long, which a child does not inherit: what a thread of the
 * parent held when it was forked is free there. 0 to begin with.
 */
typedef atomic_int dc_process_lock;

void dc_process_lock_take(dc_process_lock *l);
void dc_process_lock_drop(dc_process_lock *l);

#endif
