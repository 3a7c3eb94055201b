/*
 * A communicator for each group of ranks. It is made when the group exchanges values of this device for the first time;
 * its id goes through the world. Members find out together whether there can be one: all of them have the same NCCL, and
 * no two the same GPU.
 */
#define _DEFAULT_SOURCE /* nanosleep */
#include "backends/cuda/cu_nccl.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CONFIG_MAGIC = (int)0xcafebeefu, LEAVE_NS = 2000000000 };

/* What members tell each other. */
typedef struct record {
    char uuid[16];
    int32_t version, number; /* of the library, 0: the uuid is not known; cuda:number */
} record;

dc_nccl_group *dc_nccl_group_of(struct dc_cu_nccl *n, const dc_exchange *x)
{
    for (dc_nccl_group *g = n->group; g != NULL; g = g->next)
        if (dc_group_is_same(&g->axes, &x->axes))
            return g;
    dc_nccl_group *g = dc_xalloc(sizeof *g);
    *g = (dc_nccl_group){.next = n->group,
                         .axes = x->axes,
                         .n = (int)dc_group_size(&x->axes),
                         .me = (int)dc_group_member(&x->axes, dc_world_rank(n->world)),
                         .refused = n->handle == NULL};
    return n->group = g;
}

/* ---- may there be one? ------------------------------------------------------------------------------- */

static void refuse(dc_job *j, dc_nccl_group *g, const char *why)
{
    g->refused = true;
    dc_logf(j->log, DC_CH_EXCHANGE, "a group of %d ranks exchanges through the host: %s", g->n,
            why);
}

/* Two members with the same GPU, or of other versions; the same on all of them. */
static bool find_reason(const dc_nccl_group *g, const dc_world *w, const record *all, char *why,
                        size_t size)
{
    for (int a = 0; a < g->n; a++) {
        const int rank = dc_group_rank(&g->axes, dc_world_rank(w), a);
        if (all[a].version == 0) {
            snprintf(why, size, "the driver of rank %d does not tell which GPU is which", rank);
            return true;
        }
        for (int b = 0; b < a; b++)
            if (memcmp(all[a].uuid, all[b].uuid, sizeof all[a].uuid) == 0) {
                snprintf(why, size, "ranks %d and %d have the same GPU (cuda:%d and cuda:%d)",
                         dc_group_rank(&g->axes, dc_world_rank(w), b), rank, all[b].number,
                         all[a].number);
                return true;
            }
        if (all[a].version != all[0].version) {
            snprintf(why, size, "rank %d has another version of NCCL", rank);
            return true;
        }
    }
    return false;
}

/* Do the members fit together? */
static dc_status compare(struct dc_cu_nccl *n, dc_job *j, dc_nccl_group *g, const dc_exchange *x)
{
    char why[200];
    const dc_mark mark = dc_arena_mark(&j->scratch);
    record mine = {.version = n->version, .number = n->cu->at};
    record *all = DC_NEW_ARRAY(&j->scratch, record, (size_t)g->n);
    const cu_result error = n->cu->lib.fn.DeviceGetUuid(mine.uuid, n->cu->at);
    mine.version = error == CU_SUCCESS ? mine.version : 0;
    DC_TRY(dc_world_tell(n->world, j, x, &mine, all, sizeof mine));
    if (find_reason(g, n->world, all, why, sizeof why))
        refuse(j, g, why);
    dc_arena_rewind(&j->scratch, mark);
    return DC_OK;
}

/* ---- what a communicator is asked ---------------------------------------------------------------------- */

typedef struct asked {
    struct dc_cu_nccl *n;
    nccl_comm comm;
    bool made; /* it has been of use before */
} asked;

/* What makes a communicator fail, makes the next run's fail as well. */
static int fail(const asked *a, nccl_result error)
{
    struct dc_cu_nccl *n = a->n;
    n->failure = dc_nccl_words(error);
    if (a->made)
        return -1;
    snprintf(n->why, sizeof n->why, "%s; DEEPC_NCCL=off exchanges through the host", n->failure);
    n->failure = n->why;
    return -1;
}

static int state_of(void *arg)
{
    const asked *a = arg;
    nccl_result state = NCCL_SUCCESS;
    const nccl_result error = a->n->fn.CommGetAsyncError(a->comm, &state);
    if (error == NCCL_SUCCESS && state == NCCL_SUCCESS)
        return 1;
    if (error == NCCL_SUCCESS && state == NCCL_IN_PROGRESS)
        return 0;
    return fail(a, error != NCCL_SUCCESS ? error : state);
}

static int has_failed(void *arg)
{
    (void)arg;
    return -1;
}

static bool is_made(const struct dc_cu_nccl *n, nccl_comm comm)
{
    for (const dc_nccl_group *g = n->group; g != NULL; g = g->next)
        if (g->comm == comm && g->number != 0)
            return true;
    return false;
}

dc_status dc_nccl_await(struct dc_cu_nccl *n, dc_job *j, nccl_comm comm, const dc_exchange *x,
                        nccl_result result)
{
    asked a = {n, comm, is_made(n, comm)};
    if (result == NCCL_SUCCESS)
        return DC_OK;
    fail(&a, result);
    const dc_status status = dc_world_await(
        n->world, j, x, result == NCCL_IN_PROGRESS ? state_of : has_failed, &a, &n->failure);
    if (status != DC_OK)
        dc_nccl_abort(n);
    return status;
}

void dc_nccl_abort(struct dc_cu_nccl *n)
{
    for (dc_nccl_group *g = n->group; g != NULL; g = g->next) {
        if (g->comm != NULL)
            n->fn.CommAbort(g->comm);
        g->comm = NULL;
        g->number = 0;
    }
}

static void pause_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

/* Others may still read what this one has sent; they have so much time. */
static void leave(struct dc_cu_nccl *n, nccl_comm comm)
{
    asked a = {n, comm, true};
    const uint64_t until = dc_clock_ns() + LEAVE_NS;
    const nccl_result result = n->fn.CommFinalize(comm);
    int over = result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS ? 0 : -1;
    while (over == 0 && (over = state_of(&a)) == 0 && dc_clock_ns() < until)
        pause_a_moment();
    if (over > 0)
        n->fn.CommDestroy(comm);
    else
        n->fn.CommAbort(comm);
}

void dc_nccl_leave(struct dc_cu_nccl *n)
{
    for (dc_nccl_group *g = n->group; g != NULL; g = g->next) {
        if (g->comm != NULL)
            leave(n, g->comm);
        g->comm = NULL;
        g->number = 0;
    }
}

/* ---- making one ------------------------------------------------------------------------------------------ */

/* Of the id; not 0. */
static uint64_t number_of(const nccl_id *id)
{
    return dc_hash_bytes(1, id->bytes, sizeof id->bytes) | 1;
}

/* The first member makes the id; true: there is one, and all have it. */
static dc_status tell_id(struct dc_cu_nccl *n, dc_job *j, const dc_nccl_group *g,
                         const dc_exchange *x, nccl_id *id, bool *made)
{
    char told[1 + sizeof *id] = {0};
    if (g->me == 0 && n->fn.GetUniqueId(id) == NCCL_SUCCESS) {
        told[0] = 1;
        memcpy(told + 1, id->bytes, sizeof id->bytes);
    }
    DC_TRY(dc_world_tell_from(n->world, j, x, 0, told, sizeof told));
    memcpy(id->bytes, told + 1, sizeof id->bytes);
    *made = told[0] != 0;
    return DC_OK;
}

/* It waits for the others without holding up this thread, which looks after the world meanwhile. */
static dc_status init(struct dc_cu_nccl *n, dc_job *j, dc_nccl_group *g, const dc_exchange *x,
                      const nccl_id *id)
{
    nccl_config config = {.size = sizeof config,
                          .magic = (unsigned)CONFIG_MAGIC,
                          .version = NCCL_OLDEST,
                          .blocking = 0,
                          .cluster = INT_MIN,
                          .least_blocks = INT_MIN,
                          .most_blocks = INT_MIN};
    const nccl_result result = n->fn.CommInit(&g->comm, g->n, *id, g->me, &config);
    dc_status status = DC_OK;
    if (result == NCCL_IN_PROGRESS || (result == NCCL_SUCCESS && g->comm != NULL))
        status = dc_nccl_await(n, j, g->comm, x, NCCL_IN_PROGRESS);
    else
        status = dc_nccl_await(n, j, NULL, x, result != NCCL_SUCCESS ? result : 3);
    if (status == DC_OK)
        g->number = number_of(id);
    return status;
}

static dc_status make(struct dc_cu_nccl *n, dc_job *j, dc_nccl_group *g, const dc_exchange *x)
{
    nccl_id id;
    bool made;
    DC_TRY(tell_id(n, j, g, x, &id, &made));
    if (!made) {
        refuse(j, g, "NCCL makes no id for a communicator");
        return DC_OK;
    }
    DC_TRY(init(n, j, g, x, &id));
    dc_logf(
        j->log, DC_CH_EXCHANGE,
        "a group of %d ranks exchanges from device to device: NCCL %d.%d.%d, member %d has cuda:%d",
        g->n, n->version / 10000, n->version / 100 % 100, n->version % 100, g->me, n->cu->at);
    return DC_OK;
}

dc_status dc_nccl_join(struct dc_cu_nccl *n, dc_job *j, dc_nccl_group *g, const dc_exchange *x)
{
    if (g->comm != NULL) { /* another member has none, or another one: it uses another device now */
        n->fn.CommAbort(g->comm);
        g->comm = NULL;
        g->number = 0;
    }
    DC_TRY(compare(n, j, g, x));
    return g->refused ? DC_OK : make(n, j, g, x);
}
