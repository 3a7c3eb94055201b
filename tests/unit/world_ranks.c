#include "tests/unit/world_ranks.h"

#include "core/base/thread.h"

#include <stdio.h>
#include <string.h>

static dc_status live(dc_job *j, void *arg)
{
    rank_of *r = arg;
    dc_engine *e = dc_threads_engine(r->all->engine, r->rank);
    if (r->all->change != NULL)
        r->all->change(e);
    DC_TRY(dc_world_open(j, e, &r->w));
    const dc_status status = r->all->body(j, r);
    r->sent = dc_world_sent(r->w);
    const char *failure = dc_world_failure(r->w);
    snprintf(r->failure, sizeof r->failure, "%s", failure != NULL ? failure : "");
    return status;
}

static void *run_rank(void *arg)
{
    rank_of *r = arg;
    const char *bad;
    dc_opts opt;
    dc_job j;
    dc_opts_init(&opt, &bad);
    opt.rank_seconds = r->all->seconds;
    dc_job_init(&j, &opt, NULL);
    j.cancel = &r->cancel;
    r->status = dc_protect(&j, live, r);
    if (r->status != DC_OK)
        dc_err_render(&j.err, 1, r->error, sizeof r->error);
    dc_world_close(r->w);
    dc_job_fini(&j);
    return NULL;
}

void ranks_run(ranks *all, int n, const int *host, dc_status (*body)(dc_job *j, rank_of *r),
               void *ctx)
{
    pthread_t thread[RANKS_MOST];
    const int64_t seconds = all->seconds;
    void (*change)(dc_engine *) = all->change;
    *all = (ranks){.n = n, .body = body, .ctx = ctx, .seconds = seconds > 0 ? seconds : 60};
    all->change = change;
    all->engine = dc_threads_new(n, host != NULL ? host : (const int[RANKS_MOST]){0});
    for (int r = 0; r < n; r++) {
        all->at[r].all = all;
        all->at[r].rank = r;
        if (!dc_thread_start(&thread[r], "rank", 0, run_rank, &all->at[r]))
            DC_BUG("no thread");
    }
    for (int r = 0; r < n; r++)
        pthread_join(thread[r], NULL);
    dc_threads_free(all->engine);
}
