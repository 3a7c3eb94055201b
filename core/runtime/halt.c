/* Ends of runs in the middle of a launch (core/runtime/halt.h). */
#include "core/runtime/halt.h"

#define GRACE_NS 5000000u

uint64_t dc_halt_until(dc_halt *h)
{
    uint64_t until = 0;
    const uint64_t wanted = dc_clock_ns() + GRACE_NS;
    return atomic_compare_exchange_strong(&h->until, &until, wanted) ? wanted : until;
}

bool dc_halt_now(dc_halt *h, uint32_t command)
{
    if (atomic_load_explicit(&h->cut, memory_order_relaxed))
        return true;
    if (!atomic_load_explicit(h->asked, memory_order_relaxed))
        return false;
    if (command >= h->whole) {
        if (!atomic_load(h->insist) || dc_clock_ns() < dc_halt_until(h))
            return false;
        atomic_store(&h->torn, true);
    }
    atomic_store(&h->cut, true);
    return true;
}

static int ask(void *ctx)
{
    const dc_halt_at *at = ctx;
    return dc_halt_now(at->halt, at->command);
}

dc_look dc_halt_look(dc_halt_at *at)
{
    static const atomic_bool never;
    return (dc_look){at->halt != NULL ? at->halt->asked : &never, ask, at};
}
