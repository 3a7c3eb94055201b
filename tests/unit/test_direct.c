/*
 * Exchanges from device to device, as far as they are the world's: which are fit for it, what members say to each other before
 * one, waiting beside the world. Ranks are threads, on one host and on several.
 */

#include "tests/t.h"

#include <stdlib.h>

#include "tests/unit/world_ranks.h"

/* ---- which are fit --------------------------------------------------------------------------------------- */

static bool is_fit(dc_exchange_kind kind, dc_combine by, dc_dtype t, int64_t n, int64_t outer)
{
    const dc_transfer at = {NULL, NULL, outer, 6};
    const dc_exchange x = {.kind = kind,
                           .combine = by,
                           .dtype = t,
                           .axes = {.naxis = 1, .mask = 1, .size = {n}},
                           .label = "x",
                           .n = 1,
                           .at = &at};
    return dc_exchange_is_fit(&x);
}

static void test_fit(void)
{
    static const dc_dtype whole[] = {DC_BOOL, DC_I8, DC_U8, DC_I32, DC_U32, DC_I64, DC_U64};
    static const dc_dtype none[] = {DC_I16, DC_U16, DC_C128};
    for (int by = DC_COMBINE_SUM; by <= DC_COMBINE_MIN; by++) {
        for (size_t i = 0; i < DC_COUNTOF(whole); i++)
            CHECK(is_fit(DC_ALL_REDUCE, (dc_combine)by, whole[i], 3, 1));
        for (size_t i = 0; i < DC_COUNTOF(none); i++)
            CHECK(!is_fit(DC_ALL_REDUCE, (dc_combine)by, none[i], 2, 1));
        CHECK_EQ(is_fit(DC_REDUCE_SCATTER, (dc_combine)by, DC_F32, 3, 1), by <= DC_COMBINE_PROD);
        CHECK_EQ(is_fit(DC_ALL_REDUCE, (dc_combine)by, DC_BF16, 2, 1), by <= DC_COMBINE_PROD);
        CHECK(!is_fit(DC_ALL_REDUCE, (dc_combine)by, DC_F16, 3, 1));
        CHECK_EQ(is_fit(DC_ALL_REDUCE, (dc_combine)by, DC_C64, 3, 1), by == DC_COMBINE_SUM);
    }
    for (int t = 0; t < DC_DTYPE__ALL; t++)
        for (int kind = DC_ALL_GATHER; kind <= DC_BROADCAST; kind++) {
            CHECK(is_fit((dc_exchange_kind)kind, DC_COMBINE_SUM, (dc_dtype)t, 2, 1));
            CHECK(!is_fit((dc_exchange_kind)kind, DC_COMBINE_SUM, (dc_dtype)t, 2, 3));
            CHECK(!is_fit((dc_exchange_kind)kind, DC_COMBINE_SUM, (dc_dtype)t, 1, 1));
        }
    CHECK(!is_fit(DC_SEND, DC_COMBINE_SUM, DC_F32, 2, 1));
    CHECK(!is_fit(DC_RECV, DC_COMBINE_SUM, DC_F32, 2, 1));
}

/* ---- what members say ------------------------------------------------------------------------------------ */

static dc_exchange sum_of(const rank_of *r, const dc_transfer *at, const char *label)
{
    return (dc_exchange){.kind = DC_ALL_REDUCE,
                         .dtype = DC_F32,
                         .axes = {.naxis = 1, .mask = 1, .size = {r->all->n}},
                         .label = label,
                         .n = 1,
                         .at = at};
}

static dc_status vote(dc_job *j, rank_of *r, bool can, uint64_t with, bool all, uint64_t have)
{
    static float elements[4];
    const dc_transfer at = {elements, elements, 1, 4};
    const dc_exchange x = sum_of(r, &at, "all_reduce, a.lua:1");
    dc_direct_vote heard;
    DC_TRY(dc_world_vote(r->w, j, &x, (dc_direct_vote){can, with}, &heard));
    r->wrong += heard.can != all || heard.with != have;
    return DC_OK;
}

static dc_status vote_all(dc_job *j, rank_of *r)
{
    const int last = r->all->n - 1;
    char mine[5], all[8 * 5], text[6];
    const dc_transfer at = {NULL, NULL, 1, 4};
    const dc_exchange x = sum_of(r, &at, "all_reduce, a.lua:2");
    DC_TRY(dc_world_open_direct(r->w, j, r->rank != last));
    r->wrong += dc_world_is_direct(r->w);
    DC_TRY(dc_world_open_direct(r->w, j, true));
    r->wrong += !dc_world_is_direct(r->w);
    DC_TRY(vote(j, r, true, 0, true, 0));
    DC_TRY(vote(j, r, true, 7, true, 7));
    DC_TRY(vote(j, r, r->rank != last, 7, false, 7));
    DC_TRY(vote(j, r, true, r->rank == last ? 0 : 7, true, 0));
    DC_TRY(vote(j, r, true, r->rank == last ? 9 : 7, true, 0));
    snprintf(mine, sizeof mine, "r%d.", r->rank);
    DC_TRY(dc_world_tell(r->w, j, &x, mine, all, sizeof mine));
    for (int k = 0; k < r->all->n; k++)
        r->wrong += all[k * 5] != 'r' || all[k * 5 + 1] != '0' + k;
    snprintf(text, sizeof text, "%s", r->rank == last ? "told" : "");
    DC_TRY(dc_world_tell_from(r->w, j, &x, last, text, sizeof text));
    r->wrong += strcmp(text, "told") != 0;
    r->wrong += dc_world_sent(r->w) != 0; /* none of it is what the script gives */
    return DC_OK;
}

/* The last member has it by way of the host, the others would have it from device to device. */
static dc_status vote_for_host(dc_job *j, rank_of *r)
{
    float one = 1, sum = 0;
    const dc_transfer at = {&one, &sum, 1, 1};
    const dc_exchange x = sum_of(r, &at, "all_reduce, a.lua:1");
    dc_direct_vote heard = {false, 0};
    DC_TRY(dc_world_open_direct(r->w, j, true));
    for (int i = 0; i < 3; i++) {
        if (r->rank < r->all->n - 1) {
            DC_TRY(dc_world_vote(r->w, j, &x, (dc_direct_vote){true, 7}, &heard));
            dc_world_set_voted(r->w, true);
        }
        DC_TRY(dc_world_vote_for_host(r->w, j, &x));
        DC_TRY(dc_world_run(r->w, j, &x));
        r->wrong += heard.can || sum != (float)r->all->n;
    }
    return DC_OK;
}

/* The last member does not ask, as a rank whose device is of another kind. */
static dc_status vote_alone(dc_job *j, rank_of *r)
{
    float one = 1, sum = 0;
    const dc_transfer at = {&one, &sum, 1, 1};
    const dc_exchange x = sum_of(r, &at, "all_reduce, a.lua:1");
    dc_direct_vote heard;
    if (r->rank == r->all->n - 1)
        return dc_world_run(r->w, j, &x);
    return dc_world_vote(r->w, j, &x, (dc_direct_vote){true, 7}, &heard);
}

/* ---- waiting --------------------------------------------------------------------------------------------- */

typedef struct wait {
    atomic_int come;
    int n, state;
} wait;

static const char *const words = "the wire is cut";

static int state_of(void *arg)
{
    wait *x = arg;
    return x->state != 0 ? x->state : atomic_load(&x->come) == x->n;
}

static dc_status await(dc_job *j, rank_of *r)
{
    const dc_transfer at = {NULL, NULL, 1, 4};
    const dc_exchange x = sum_of(r, &at, "all_reduce, a.lua:5");
    return dc_world_await(r->w, j, &x, state_of, r->all->ctx, &words);
}

static dc_status await_all(dc_job *j, rank_of *r)
{
    atomic_fetch_add(&((wait *)r->all->ctx)->come, 1);
    return await(j, r);
}

/* Nobody comes: the last one is killed, fails, interrupts the first, or has an end. */
static dc_status kill_last(dc_job *j, rank_of *r)
{
    if (r->rank < r->all->n - 1)
        return await(j, r);
    dc_threads_leave(r->all->engine, r->rank);
    while (dc_world_failure(r->w) == NULL)
        DC_TRY(dc_job_ended(j));
    return DC_OK;
}

static dc_status fail_last(dc_job *j, rank_of *r)
{
    if (r->rank < r->all->n - 1)
        return await(j, r);
    dc_world_fail(r->w, "a.lua:9: boom");
    return DC_OK;
}

static dc_status interrupt_first(dc_job *j, rank_of *r)
{
    DC_TRY(dc_world_barrier(r->w, j, "barrier, a.lua:1")); /* its world is open */
    if (r->rank == r->all->n - 1)
        atomic_store(&r->all->at[0].cancel, true);
    return await(j, r);
}

static void check_error(const ranks *all, int first, int end, const char *what)
{
    for (int r = first; r < end; r++)
        if (!CHECK(all->at[r].status == DC_E_DEVICE && strstr(all->at[r].error, what) != NULL))
            printf("rank %d of %d: '%s' and not '%s'\n", r, all->n, all->at[r].error, what);
}

static void check_all(const ranks *all)
{
    for (int r = 0; r < all->n; r++)
        if (!CHECK(all->at[r].status == DC_OK && all->at[r].wrong == 0))
            printf("rank %d of %d: %lld wrong, '%s'\n", r, all->n, (long long)all->at[r].wrong,
                   all->at[r].error);
}

static void test_waits(int n, const int *host)
{
    ranks all = {.seconds = 0};
    wait x = {.n = n};
    ranks_run(&all, n, host, await_all, &x);
    check_all(&all);
    x = (wait){.n = n};
    ranks_run(&all, n, host, fail_last, &x);
    check_error(&all, 0, n - 1, "failed: a.lua:9: boom");
    ranks_run(&all, n, host, interrupt_first, &x);
    CHECK_STR(all.at[0].error, "interrupted");
    check_error(&all, 1, n, "rank 0 (host0) was interrupted in all_reduce, a.lua:5");
    if (host == NULL) {
        ranks_run(&all, n, host, kill_last, &x);
        check_error(&all, 0, n - 1, "was killed or has crashed; all_reduce, a.lua:5 waited for it");
    }
    if (n > 2)
        return;
    x.state = -1;
    ranks_run(&all, n, host, await, &x);
    check_error(&all, 0, n, "): all_reduce, a.lua:5: the wire is cut");
    x.state = 0;
    all.seconds = 1;
    ranks_run(&all, n, host, await, &x);
    check_error(&all, 0, n, ") for 1 s in all_reduce, a.lua:5");
}

int main(void)
{
    static const int each[] = {0, 1, 2, 3}, pairs[] = {0, 0, 1, 1};
    static const int *const hosts[] = {NULL, each, pairs};
    test_fit();
    for (int n = 2; n <= 4; n++)
        for (size_t h = 0; h < DC_COUNTOF(hosts); h++) {
            ranks all = {.seconds = 0};
            ranks_run(&all, n, hosts[h], vote_all, NULL);
            check_all(&all);
            ranks_run(&all, n, hosts[h], vote_for_host, NULL);
            check_all(&all);
            ranks_run(&all, n, hosts[h], vote_alone, NULL);
            check_error(&all, 0, n, ": on devices of other kinds");
            test_waits(n, hosts[h]);
        }
    return t_done();
}
