/*
 * Exchanges of ranks from device to device, in the order of the stream. The host does not wait for them; where it waits
 * for the stream it waits for them first, in the world, which knows when another rank will not come: then what is under
 * way is ended, and the stream goes on.
 */
#include "backends/cuda/cu_nccl.h"

#include <stdio.h>
#include <string.h>

/* ---- waiting --------------------------------------------------------------------------------------------- */

typedef struct awaited {
    struct dc_cu_nccl *n;
    const dc_nccl_begun *b;
} awaited;

/* An error of the device is told by what waits for the stream afterwards. */
static int state_of(void *arg)
{
    const awaited *a = arg;
    nccl_result state = NCCL_SUCCESS;
    if (a->n->cu->lib.fn.EventQuery(a->b->done) != CU_ERROR_NOT_READY)
        return 1;
    const nccl_result error = a->n->fn.CommGetAsyncError(a->b->comm, &state);
    state = error != NCCL_SUCCESS ? error : state;
    if (state == NCCL_SUCCESS || state == NCCL_IN_PROGRESS)
        return 0;
    a->n->failure = dc_nccl_words(state);
    return -1;
}

static int never(void *arg)
{
    (void)arg;
    return 0;
}

static dc_status await_first(struct dc_cu_nccl *n, dc_job *j)
{
    const dc_nccl_begun *b = &n->begun[n->first % DC_NCCL_AHEAD];
    awaited a = {n, b};
    if (state_of(&a) > 0) {
        n->first++;
        return DC_OK;
    }
    const dc_status status = dc_world_await(n->world, j, &b->x, state_of, &a, &n->failure);
    if (status == DC_OK) {
        n->first++;
        return DC_OK;
    }
    n->first = n->end;
    n->broken = b;
    dc_nccl_abort(n);
    return status;
}

/* What came behind one that was ended has no values. */
static dc_status say_again(struct dc_cu_nccl *n, dc_job *j)
{
    return dc_world_await(n->world, j, &n->broken->x, never, NULL, &n->failure);
}

dc_status dc_cu_nccl_settle(dc_cu *cu, dc_job *j)
{
    struct dc_cu_nccl *n = cu->nccl;
    if (n != NULL && n->world != NULL && n->broken != NULL)
        return say_again(n, j);
    while (n != NULL && n->world != NULL && n->first < n->end)
        DC_TRY(await_first(n, j));
    return DC_OK;
}

/* On another thread nothing is waited for here: that of the exchanges ends them. */
void dc_cu_nccl_quit(const dc_cu *cu)
{
    struct dc_cu_nccl *n = cu->nccl;
    if (n != NULL && n->first < n->end && pthread_equal(n->thread, pthread_self()))
        dc_cu_nccl_settle(n->cu, NULL);
}

/* ---- the world and the device come and go -------------------------------------------------------------- */

bool dc_cu_nccl_can(dc_device *d, dc_job *j)
{
    dc_cu *cu = dc_cu_of(d);
    if (cu->nccl == NULL)
        cu->nccl = dc_nccl_open(cu, j->opt->nccl);
    if (cu->nccl->handle == NULL)
        dc_logf(j->log, DC_CH_EXCHANGE, "no NCCL: %s", cu->nccl->why);
    return cu->nccl->handle != NULL;
}

static void leave_world(void *arg)
{
    struct dc_cu_nccl *n = arg;
    bool pushed;
    if (dc_cu_push(n->cu, &pushed) == CU_SUCCESS) {
        dc_cu_nccl_settle(n->cu, NULL);
        if (dc_world_is_broken(n->world))
            dc_nccl_abort(n);
        dc_nccl_leave(n);
        dc_cu_pop(n->cu, pushed);
    }
    n->world = NULL;
}

static void enter_world(struct dc_cu_nccl *n, dc_world *w)
{
    if (n->world == w)
        return;
    if (n->world != NULL) { /* of another context with this device */
        dc_world_remove_user(n->world, &n->user);
        leave_world(n);
    }
    n->world = w;
    n->broken = NULL;
    n->thread = pthread_self();
    n->user = (dc_world_user){.leave = leave_world, .arg = n};
    dc_world_add_user(w, &n->user);
}

void dc_cu_nccl_close(dc_cu *cu)
{
    struct dc_cu_nccl *n = cu->nccl;
    if (n == NULL)
        return;
    if (n->world != NULL) {
        dc_world_remove_user(n->world, &n->user);
        leave_world(n);
    }
    for (int i = 0; i < DC_NCCL_AHEAD; i++)
        if (n->begun[i].done != NULL)
            cu->lib.fn.EventDestroy(n->begun[i].done);
    dc_nccl_unload(n);
    cu->nccl = NULL;
}

/* ---- exchanges --------------------------------------------------------------------------------------------- */

typedef struct giving {
    struct dc_cu_nccl *n;
    const dc_nccl_group *g;
    const dc_exchange *x;
    const char *from;
    char *to;
} giving;

/* Elements as NCCL has them. */
static size_t count_of(const dc_exchange *x, int *type)
{
    const size_t n = (size_t)x->at->inner;
    switch (x->dtype) {
#define NCCL_TYPE(dtype, number, parts) \
    case DC_##dtype:                    \
        *type = number;                 \
        return n * parts;
#include "backends/cuda/nccl_api.def"
    default:
        DC_BUG("%s in an exchange of devices", dc_dtype_name(x->dtype));
    }
}

/* Of truth values a sum is the larger one. */
static int operation_of(const dc_exchange *x)
{
    static const int whole[] = {NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN},
                     truth[] = {NCCL_MAX, NCCL_MIN, NCCL_MAX, NCCL_MIN};
    return (x->dtype == DC_BOOL ? truth : whole)[x->combine];
}

static bool is_taken(nccl_result r)
{
    return r == NCCL_SUCCESS || r == NCCL_IN_PROGRESS;
}

static nccl_result give_to_all(const giving *v, size_t bytes)
{
    const dc_nccl_api *fn = &v->n->fn;
    const cu_stream stream = v->n->cu->stream;
    nccl_result r = fn->GroupStart();
    if (!is_taken(r))
        return r;
    for (int m = 0; m < v->g->n && is_taken(r); m++) {
        r = fn->Send(v->from + (size_t)m * bytes, bytes, NCCL_U8, m, v->g->comm, stream);
        if (is_taken(r))
            r = fn->Recv(v->to + (size_t)m * bytes, bytes, NCCL_U8, m, v->g->comm, stream);
    }
    const nccl_result end = fn->GroupEnd();
    return is_taken(r) ? end : r;
}

/* What is not combined are bytes. */
static nccl_result give(const giving *v)
{
    const dc_nccl_api *fn = &v->n->fn;
    const cu_stream stream = v->n->cu->stream;
    const dc_exchange *x = v->x;
    const nccl_comm comm = v->g->comm;
    const size_t bytes = (size_t)x->at->inner * dc_dtype_size(x->dtype);
    int type = NCCL_U8;
    switch (x->kind) {
    case DC_ALL_REDUCE: {
        const size_t n = count_of(x, &type);
        return fn->AllReduce(v->from, v->to, n, type, operation_of(x), comm, stream);
    }
    case DC_REDUCE_SCATTER: {
        const size_t n = count_of(x, &type);
        return fn->ReduceScatter(v->from, v->to, n, type, operation_of(x), comm, stream);
    }
    case DC_ALL_GATHER:
        return fn->AllGather(v->from, v->to, bytes, NCCL_U8, comm, stream);
    case DC_BROADCAST:
        return fn->Broadcast(v->from, v->to, bytes, NCCL_U8, x->peer, comm, stream);
    case DC_ALL_TO_ALL:
        return give_to_all(v, bytes);
    case DC_SEND:
    case DC_RECV:
        break;
    }
    DC_BUG("an exchange of kind %d between devices", x->kind);
}

/* Its end is known by an event, and what it is by words of its own. */
static dc_status note(struct dc_cu_nccl *n, dc_job *j, nccl_comm comm, const dc_exchange *x)
{
    dc_nccl_begun *b = &n->begun[n->end % DC_NCCL_AHEAD];
    b->comm = comm;
    b->x = *x;
    b->at = (dc_transfer){NULL, NULL, x->at->outer, x->at->inner};
    dc_exchange_name(x, b->label, sizeof b->label);
    b->x.at = &b->at;
    b->x.label = b->label;
    b->x.where = NULL;
    DC_CU_TRY(n->cu, j, "an event", EventRecord(b->done, n->cu->stream));
    n->end++;
    return DC_OK;
}

/* Where as many are under way as there are places, the first one is waited for. */
static dc_status take_place(struct dc_cu_nccl *n, dc_job *j)
{
    dc_nccl_begun *b = &n->begun[n->end % DC_NCCL_AHEAD];
    if (n->end - n->first == DC_NCCL_AHEAD)
        DC_TRY(await_first(n, j));
    if (b->done == NULL)
        DC_CU_TRY(n->cu, j, "an event", EventCreate(&b->done, CU_EVENT_NO_TIMES));
    return DC_OK;
}

/* As core/world counts them: what each gives on average, or what the one gives that has something. */
static void count_sent(const giving *v, const dc_host_call *c)
{
    const dc_exchange_attr a = dc_exchange_read(c->attr);
    double bytes = dc_exchange_bytes(c->op, &a, &c->in[0]);
    if (v->x->kind == DC_BROADCAST)
        bytes = v->x->peer == v->g->me ? bytes * v->g->n : 0;
    dc_world_add_sent(v->n->world, (uint64_t)(bytes + 0.5));
}

/* Other members are in it now: one that goes on without it would be in their next one. */
static dc_status fail_alone(const giving *v, dc_status status)
{
    char name[DC_NCCL_LABEL], text[DC_NCCL_LABEL + 40];
    if (status == DC_OK || dc_world_is_broken(v->n->world))
        return status;
    dc_exchange_name(v->x, name, sizeof name);
    snprintf(text, sizeof text, "%s cannot begin here", name);
    dc_world_say(v->n->world, text);
    return status;
}

static dc_status carry_out(const giving *v, dc_job *j, const dc_host_call *c)
{
    DC_TRY(take_place(v->n, j));
    v->n->cu->busy = true;
    DC_TRY(dc_nccl_await(v->n, j, v->g->comm, v->x, give(v)));
    DC_TRY(note(v->n, j, v->g->comm, v->x));
    count_sent(v, c);
    return DC_OK;
}

/* Members say how they would have it; then those that have no communicator yet make one. */
static dc_status agree(struct dc_cu_nccl *n, dc_job *j, dc_nccl_group *g, const dc_exchange *x,
                       bool *direct)
{
    dc_direct_vote all;
    DC_TRY(dc_world_vote(n->world, j, x, (dc_direct_vote){!g->refused, g->number}, &all));
    if (all.can && all.with == 0) {
        DC_TRY(dc_cu_nccl_settle(n->cu, j));
        DC_TRY(dc_nccl_join(n, j, g, x));
    }
    *direct = all.can && !g->refused;
    dc_world_set_voted(n->world, !*direct);
    return DC_OK;
}

dc_status dc_cu_exchange(dc_cu *cu, dc_job *j, const dc_host_call *c, cu_address to,
                         cu_address from, bool *direct)
{
    dc_exchange x;
    dc_transfer t;
    *direct = false;
    giving v = {.from = (const char *)(uintptr_t)from, .to = (char *)(uintptr_t)to};
    if (!dc_exchange_describe(c->op, c->attr, &c->in[0], c->label, v.to, v.from, &x, &t) ||
        !dc_exchange_is_fit(&x))
        return DC_OK;
    dc_exchange_label(j, c->op, c->where, &x);
    if (cu->nccl == NULL)
        cu->nccl = dc_nccl_open(cu, j->opt->nccl);
    enter_world(cu->nccl, j->world);
    dc_nccl_group *g = dc_nccl_group_of(cu->nccl, &x);
    DC_TRY(agree(cu->nccl, j, g, &x, direct));
    if (!*direct)
        return DC_OK;
    v.n = cu->nccl;
    v.g = g;
    v.x = &x;
    return fail_alone(&v, carry_out(&v, j, c));
}
