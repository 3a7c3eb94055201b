/*
 * The build of the library, as keys of the cache have it: where the host has no memory for its text, the loader is left as
 * it was, and other threads open libraries.
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "core/runtime/rt.h"
#include "jit/cache/build_id.h"
#include "vm/deepc.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/t.h"
#include "tests/unit/hostmem.h"

enum { PATIENCE_MS = 10000 };

static dc_status put(dc_job *j, void *arg)
{
    bool *found = arg;
    dc_text *text = dc_job_text(j);
    *found = dc_build_id_put(text);
    CHECK(!*found || text->n >= 16);
    dc_job_text_end(j, text);
    return DC_OK;
}

static int see(struct dl_phdr_info *o, size_t size, void *arg)
{
    DC_UNUSED(o);
    DC_UNUSED(size);
    atomic_store((atomic_bool *)arg, true);
    return 1;
}

static void *look(void *arg)
{
    dl_iterate_phdr(see, arg);
    return NULL;
}

/* By another thread, which waits for ever if this one has the loader's lock. */
static bool loader_is_free(void)
{
    static atomic_bool seen;
    pthread_t thread;
    atomic_store(&seen, false);
    if (!CHECK(pthread_create(&thread, NULL, look, &seen) == 0))
        return false;
    for (int ms = 0; ms < PATIENCE_MS && !atomic_load(&seen); ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    const bool free = atomic_load(&seen);
    if (free)
        pthread_join(thread, NULL);
    return free;
}

int main(void)
{
    hostmem m = {0};
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = NULL;
    bool found = false, refused = false;
    cfg.device = "eval";
    cfg.alloc = hostmem_give;
    cfg.alloc_ctx = &m;
    CHECK_EQ(dc_open(&cfg, &rt), DC_OK);
    CHECK_EQ(dc_protect(&rt->job, put, &found), DC_OK);
    for (long first = 1; first <= 4; first++) {
        hostmem_refuse(&m, first, false);
        refused |= dc_protect(&rt->job, put, &found) == DC_E_NOMEM;
        hostmem_allow(&m);
        if (!CHECK(loader_is_free()))
            return t_done();
    }
    CHECK(refused || !found);
    dc_close(rt);
    CHECK_EQ(m.bytes, 0);
    return t_done();
}
