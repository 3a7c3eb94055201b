#define _POSIX_C_SOURCE 200809L
#include "vm/program/ranks_main.h"

#include "backends/cpu/pool.h"
#include "backends/mpi/mpi.h"
#include "core/base/digits.h"
#include "core/base/thread.h"
#include "core/world/threads.h"
#include "vm/program/launched.h"
#include "vm/program/say.h"
#include "vm/program/signals.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST = DC_SIGNALS_MOST,
    NAME = 256,      /* of a device */
    REST_SECONDS = 5 /* for those that are left when one has failed */
};

/* What is asked for. */
typedef struct wanted {
    int n;
    bool named; /* devices are */
    char device[MOST][NAME];
} wanted;

typedef struct ranks {
    int (*run)(void *arg, const char *device);
    void *arg;
    int n, ended, status; /* how many threads have; of the first that failed */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct rank {
        dc_rank_thread thread;
        struct ranks *all;
        bool ended;
        pthread_t id;
    } at[MOST];
} ranks;

/* ---- the list ------------------------------------------------------------------------------------------- */

static bool read_count(const char *text, wanted *w)
{
    uint64_t n;
    if (!dc_digits_whole(text, MOST, &n) || n == 0)
        return false;
    w->n = (int)n;
    return true;
}

static bool read_devices(const char *text, wanted *w)
{
    w->named = true;
    for (;;) {
        const size_t n = strcspn(text, ",");
        if (n == 0 || n >= NAME || w->n == MOST)
            return false;
        snprintf(w->device[w->n++], NAME, "%.*s", (int)n, text);
        if (text[n] == '\0')
            return true;
        text += n + 1;
    }
}

/* Ranks of a kind of device that is counted get one each. */
static void number_devices(const dc_opts *opt, wanted *w)
{
    w->named = strcmp(opt->device, "cuda") == 0 || strcmp(opt->device, "opencl") == 0;
    for (int i = 0; w->named && i < w->n; i++)
        snprintf(w->device[i], NAME, "%.20s:%d", opt->device, i);
}

static bool read_list(const char *text, const dc_opts *opt, wanted *w)
{
    const bool count = text[0] >= '0' && text[0] <= '9';
    if (count ? !read_count(text, w) : !read_devices(text, w)) {
        dc_sayf(stderr,
                "deepc: --ranks %s: a number from 1 to %d is needed, or devices with commas: "
                "cuda:0,cuda:1\n",
                text, MOST);
        return false;
    }
    int rank, size = 1;
    if (w->n > 1 && dc_mpi_launcher(opt) != NULL && dc_mpi_place(&rank, &size) && size != 1) {
        dc_sayf(stderr, "deepc: --ranks %s: this process is one of the ranks of %s already\n", text,
                dc_mpi_launcher(opt));
        return false;
    }
    if (count)
        number_devices(opt, w);
    return true;
}

/* ---- threads -------------------------------------------------------------------------------------------- */

static void run_rank(void *arg)
{
    struct rank *r = arg;
    r->thread.status = r->all->run(r->all->arg, r->thread.device);
}

static void *run_thread(void *arg)
{
    struct rank *r = arg;
    ranks *all = r->all;
    dc_signals_use(r->thread.rank);
    dc_launched_as(&r->thread, run_rank, r);
    dc_signals_leave(); /* os.exit does not */
    dc_threads_leave((dc_threads *)r->thread.ranks, r->thread.rank);
    pthread_mutex_lock(&all->lock);
    dc_lines_end(r->thread.lines);
    r->ended = true;
    all->ended++;
    if (all->status == 0)
        all->status = r->thread.status;
    pthread_cond_signal(&all->changed);
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* Those that cannot be ended from outside, in a long call of the system perhaps, end with the process. */
static void give_up(const ranks *all)
{
    for (int i = 0; i < all->n; i++)
        if (!all->at[i].ended)
            dc_lines_shout(all->at[i].thread.lines,
                           "this rank did not end, where others have failed");
    _exit(all->status);
}

static void await_all(ranks *all)
{
    uint64_t until = UINT64_MAX;
    pthread_mutex_lock(&all->lock);
    while (all->ended < all->n) {
        if (all->status != 0 && until == UINT64_MAX)
            until = dc_clock_ns() + REST_SECONDS * (uint64_t)1000000000;
        if (!dc_thread_await(&all->changed, &all->lock, until))
            give_up(all);
    }
    pthread_mutex_unlock(&all->lock);
}

static bool prepare(ranks *all, const wanted *w, const dc_opts *opt)
{
    const int cores = (int)dc_cpu_pool_cores();
    const bool numbered = strcmp(opt->rank_prefix, "off") != 0;
    dc_ranks *group = NULL;
    dc_lines *common = dc_lines_new("");
    bool fine = dc_ranks_new(w->n, &group) == DC_OK && common != NULL;
    for (int i = 0; i < w->n; i++) {
        char number[16] = "";
        if (numbered)
            snprintf(number, sizeof number, "[%d] ", i);
        all->at[i].all = all;
        all->at[i].thread = (dc_rank_thread){.ranks = group,
                                             .rank = i,
                                             .threads = opt->threads == 0 ? cores / w->n : 0,
                                             .device = w->named ? w->device[i] : NULL,
                                             .lines = dc_lines_new(number)};
        if (opt->threads == 0 && all->at[i].thread.threads == 0)
            all->at[i].thread.threads = 1;
        fine = fine && all->at[i].thread.lines != NULL;
    }
    if (fine)
        dc_lines_install(common, true);
    return fine;
}

/* What ranks share stays: threads that os.exit has left may look at it until the process ends. */
static int run_threads(const wanted *w, const dc_opts *opt,
                       int (*run)(void *arg, const char *device), void *arg)
{
    static ranks all = {.lock = PTHREAD_MUTEX_INITIALIZER};
    dc_thread_condition(&all.changed);
    all.run = run;
    all.arg = arg;
    if (!prepare(&all, w, opt)) {
        fputs("deepc: out of memory\n", stderr);
        return 1;
    }
    for (; all.n < w->n; all.n++) {
        char name[16];
        snprintf(name, sizeof name, "deepc rank %u", (unsigned)all.n % 10000);
        if (!dc_thread_start(&all.at[all.n].id, name, DC_THREAD_DEEP_STACK, run_thread,
                             &all.at[all.n])) {
            dc_sayf(stderr, "deepc: there is no thread for rank %d\n", all.n);
            _exit(1);
        }
    }
    await_all(&all);
    for (int i = 0; i < all.n; i++)
        pthread_join(all.at[i].id, NULL);
    return all.status;
}

int dc_ranks_main(const char *list, int (*run)(void *arg, const char *device), void *arg)
{
    static wanted w;
    const char *bad;
    dc_opts opt;
    dc_opts_init(&opt, &bad);
    if (!read_list(list, &opt, &w))
        return 1;
    return w.n == 1 ? run(arg, w.named ? w.device[0] : NULL) : run_threads(&w, &opt, run, arg);
}
