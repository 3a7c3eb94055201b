#define _GNU_SOURCE /* MADV_WIPEONFORK, nanosleep */
#include "core/base/owner.h"

#include <stddef.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* A page in which only one word is used; NULL where the system cannot wipe it. */
static int *wiped_page(size_t bytes)
{
#ifdef MADV_WIPEONFORK
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, bytes, MADV_WIPEONFORK) == 0)
        return page;
    munmap(page, bytes);
#endif
    return NULL;
}

void dc_owner_init(dc_owner *o)
{
    int *page = wiped_page((size_t)sysconf(_SC_PAGESIZE));
    if (page != NULL)
        *page = 1;
    *o = (dc_owner){.here = page, .process = (int)getpid()};
}

void dc_owner_fini(dc_owner *o)
{
    void *page = (void *)(size_t)o->here;
    if (page != NULL)
        munmap(page, (size_t)sysconf(_SC_PAGESIZE));
    o->here = NULL;
}

void dc_owner_adopt(dc_owner *o)
{
    int *page = (void *)(size_t)o->here;
    if (page != NULL)
        *page = 1;
    o->process = (int)getpid();
}

bool dc_owner_is_other_process(const dc_owner *o)
{
    return o->process != (int)getpid();
}

/* Also takes a lock held by another process's number: it was copied by fork, and no thread here drops it. */
static bool try_take(dc_process_lock *l, int me)
{
    int holder = atomic_load(l);
    return holder != me && atomic_compare_exchange_strong(l, &holder, me);
}

void dc_process_lock_take(dc_process_lock *l)
{
    static const struct timespec a_little = {.tv_nsec = 200000};
    while (!try_take(l, (int)getpid()))
        nanosleep(&a_little, NULL);
}

void dc_process_lock_drop(dc_process_lock *l)
{
    atomic_store(l, 0);
}
