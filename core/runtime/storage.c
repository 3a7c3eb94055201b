/*
 * Storages and tensors over one device, and the pool that freed storages wait in.
 *
 * Sizes are rounded to classes, four per power of two, so at most a quarter is unused and a store
 * is found again by its class alone. A store is in exactly one list: that of live ones, or the one of
 * its class. No more waits there than was alive at once lately: else those freed longest ago go back to
 * the device, when the pool grows or dc_pool_trim asks. With guards the memory of a store is
 *
 *     64 guard bytes | bytes | guard bytes up to 64 past the end of the class
 *
 * and the first DEAD_BYTES of a store that waits in the pool count as guard bytes, too.
 */
#include "core/runtime/storage.h"

#include "core/base/number.h"
#include "core/runtime/lazy.h"
#include "core/runtime/outcome.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0xa5, DEAD_BYTES = 4096, SMALLEST = 64, NCLASS = 256 };
enum { SPARE = 1 << 26 }; /* so many bytes may always wait */

typedef struct store_list {
    dc_storage *first, *last;
} store_list;

typedef struct dc_pool {
    store_list live, dead[NCLASS];
    store_list foreign;
    uint64_t alive;   /* bytes of those that live */
    uint64_t waiting; /* of the dead ones */
    uint64_t freed;   /* stores freed so far */
    uint64_t peak[2]; /* most bytes alive since it was trimmed; from the time before until then */
    dc_tensor *spare; /* for the next handles, so that a steady call allocates none */
    uint32_t nspare;
    size_t guard; /* bytes before and after: 0 or GUARD */
} dc_pool;

dc_pool *dc_pool_new(const dc_opts *opt)
{
    dc_pool *p = dc_xalloc(sizeof *p);
    p->guard = opt->check >= 2 ? GUARD : 0;
    return p;
}

/* Rounds up to 4, 5, 6 or 7 times a power of two; *cls numbers the result. */
static size_t class_bytes(size_t bytes, int *cls)
{
    size_t quarter = SMALLEST / 4;
    int octave = 0;
    *cls = 0;
    if (bytes <= SMALLEST)
        return SMALLEST;
    while (bytes > quarter * 8) {
        quarter *= 2;
        octave++;
    }
    const size_t steps = (bytes + quarter - 1) / quarter; /* 5 to 8 */
    *cls = octave * 4 + (int)steps - 4;
    return steps * quarter;
}

static size_t capacity_of(size_t bytes)
{
    int cls;
    return class_bytes(bytes, &cls);
}

static void link_store(store_list *list, dc_storage *s)
{
    s->prev = NULL;
    s->next = list->first;
    if (s->next != NULL)
        s->next->prev = s;
    else
        list->last = s;
    list->first = s;
}

static void unlink_store(store_list *list, dc_storage *s)
{
    if (s->prev != NULL)
        s->prev->next = s->next;
    else
        list->first = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    else
        list->last = s->prev;
    s->next = s->prev = NULL;
}

/* ---- guards ---- */

/* Calls act on each guard zone, the runs of bytes round the content of s that are never written. */
static dc_status each_guard(dc_storage *s, dc_job *j, bool dead,
                            dc_status (*act)(dc_storage *, dc_job *, char *, size_t))
{
    char *mem = s->mem;
    const size_t capacity = capacity_of(s->bytes);
    DC_TRY(act(s, j, mem - GUARD, GUARD));
    if (dead)
        DC_TRY(act(s, j, mem, s->bytes < DEAD_BYTES ? s->bytes : DEAD_BYTES));
    return act(s, j, mem + s->bytes, capacity + GUARD - s->bytes);
}

static dc_status fill_run(dc_storage *s, dc_job *j, char *at, size_t bytes)
{
    dc_device *d = s->rt->device;
    char pattern[256];
    memset(pattern, GUARD_BYTE, sizeof pattern);
    for (size_t n; bytes > 0; at += n, bytes -= n) {
        n = bytes < sizeof pattern ? bytes : sizeof pattern;
        DC_TRY(d->ops->upload(d, j, at, pattern, n));
    }
    return DC_OK;
}

static dc_status check_run(dc_storage *s, dc_job *j, char *at, size_t bytes)
{
    dc_device *d = s->rt->device;
    unsigned char seen[256];
    for (size_t n; bytes > 0; at += n, bytes -= n) {
        n = bytes < sizeof seen ? bytes : sizeof seen;
        DC_TRY(d->ops->download(d, j, seen, at, n));
        for (size_t i = 0; i < n; i++)
            if (seen[i] != GUARD_BYTE)
                return DC_E_BUG; /* the caller makes the record */
    }
    return DC_OK;
}

static dc_status check_list(dc_storage *s, dc_job *j, bool dead, const char *what)
{
    for (; s != NULL; s = s->next) {
        const dc_status status = each_guard(s, j, dead, check_run);
        if (status == DC_E_BUG)
            return dc_fail(j, DC_ERR_GUARD, &(dc_fact){.num = {(int64_t)s->bytes}, .word = {what}});
        DC_TRY(status);
    }
    return DC_OK;
}

dc_status dc_storage_guards(dc_rt *rt, dc_job *j, const char *what)
{
    dc_pool *p = rt->pool;
    if (p->guard == 0)
        return DC_OK;
    DC_TRY(check_list(p->live.first, j, false, what));
    for (int c = 0; c < NCLASS; c++)
        DC_TRY(check_list(p->dead[c].first, j, true, what));
    return DC_OK;
}

/* ---- stores ---- */

void dc_storage_tell(const dc_rt *rt)
{
    dc_heap_tell_device(rt->heap, rt->first->held);
}

void dc_storage_count(dc_rt *rt, size_t bytes)
{
    dc_stats *s = &rt->first->stats;
    s->bytes_live += bytes;
    if (s->bytes_live > s->bytes_peak)
        s->bytes_peak = s->bytes_live;
}

static void return_memory(dc_storage *s)
{
    s->rt->first->held -= capacity_of(s->bytes);
    dc_storage_tell(s->rt);
    s->rt->device->ops->release(s->rt->device, (char *)s->mem - s->rt->pool->guard);
    dc_xfree(s);
}

/* Takes it out of the pool. */
static dc_storage *wake(dc_pool *p, int cls, dc_storage *s)
{
    unlink_store(&p->dead[cls], s);
    p->waiting -= capacity_of(s->bytes);
    return s;
}

void dc_pool_drain(dc_rt *rt)
{
    for (dc_tensor *t; (t = rt->pool->spare) != NULL;) {
        rt->pool->spare = t->next;
        dc_xfree(t);
    }
    rt->pool->nspare = 0;
    for (int c = 0; c < NCLASS; c++)
        while (rt->pool->dead[c].first != NULL)
            return_memory(wake(rt->pool, c, rt->pool->dead[c].first));
}

/* What was freed longest ago goes first. */
static void trim(dc_rt *rt, uint64_t peak)
{
    dc_pool *p = rt->pool;
    const uint64_t most = peak > SPARE ? peak : SPARE;
    while (p->waiting > most) {
        int oldest = -1;
        for (int c = 0; c < NCLASS; c++)
            if (p->dead[c].last != NULL &&
                (oldest < 0 || p->dead[c].last->freed < p->dead[oldest].last->freed))
                oldest = c;
        return_memory(wake(p, oldest, p->dead[oldest].last));
    }
}

void dc_pool_trim(dc_rt *rt)
{
    dc_pool *p = rt->pool;
    trim(rt, p->peak[0]);
    p->peak[1] = p->peak[0];
    p->peak[0] = p->alive + rt->arena_bytes;
}

static void end_foreign(dc_storage *s)
{
    unlink_store(&s->rt->pool->foreign, s);
    if (s->release != NULL)
        s->release(s->release_ctx);
    dc_xfree(s);
}

static void give_up_handles(dc_storage *s)
{
    for (dc_tensor *t = s->shown, *next; t != NULL; t = next) {
        next = t->next;
        dc_xfree(t);
    }
}

/* After a broken promise: what was being made then has no owner left. */
static void give_up_live(dc_rt *rt)
{
    for (dc_storage *s; (s = rt->pool->live.first) != NULL;) {
        give_up_handles(s);
        unlink_store(&rt->pool->live, s);
        return_memory(s);
    }
    for (dc_storage *s; (s = rt->pool->foreign.first) != NULL;) {
        give_up_handles(s);
        end_foreign(s);
    }
}

void dc_pool_free(dc_rt *rt)
{
    if (rt->first->broken)
        give_up_live(rt);
    DC_ASSERT(rt->pool->live.first == NULL, "a store of %zu bytes outlives its context",
              rt->pool->live.first->bytes);
    DC_ASSERT(rt->pool->foreign.first == NULL, "memory of the host's outlives the context");
    dc_pool_drain(rt);
    dc_xfree(rt->pool);
    rt->pool = NULL;
}

void dc_storage_give_back(dc_rt *rt)
{
    if (rt->give_back != NULL)
        rt->give_back(rt);
    dc_pool_drain(rt);
}

/* The limit is that of all devices together. */
static void drain_all(dc_rt *rt)
{
    for (dc_rt *r = rt->first; r != NULL; r = r->next)
        dc_pool_drain(r);
}

static void give_back_all(dc_rt *rt)
{
    for (dc_rt *r = rt->first; r != NULL; r = r->next)
        dc_storage_give_back(r);
}

/* Memory of the device; when there is none, what the pool holds is given back first. */
static dc_status take_memory(dc_rt *rt, dc_job *j, size_t bytes, void **out)
{
    dc_device *d = rt->device;
    const dc_err before = j->err;
    dc_status status = d->ops->alloc(d, j, bytes, out);
    if (status == DC_E_NOMEM) {
        j->err = before;
        dc_storage_give_back(rt);
        status = d->ops->alloc(d, j, bytes, out);
    }
    return status;
}

/* So much more memory of the device beside all that is held, metadata included? */
static bool is_below_limit(const dc_rt *rt, uint64_t bytes)
{
    const uint64_t limit = (uint64_t)rt->opt.memory, used = dc_heap_used(rt->heap);
    return limit == 0 ||
           (bytes <= limit && used <= limit - bytes && rt->first->held <= limit - bytes - used);
}

dc_status dc_storage_admit(dc_rt *rt, dc_job *j, size_t bytes)
{
    const uint64_t limit = (uint64_t)rt->opt.memory;
    char more[DC_NUMBER_TEXT], held[DC_NUMBER_TEXT], most[DC_NUMBER_TEXT];
    if (is_below_limit(rt, bytes))
        return DC_OK;
    drain_all(rt);
    if (is_below_limit(rt, bytes))
        return DC_OK;
    give_back_all(rt);
    if (is_below_limit(rt, bytes))
        return DC_OK;
    return dc_failf(j, DC_ERR_MEMORY, NULL,
                    "%s more than the %s that tensors, parameters, graphs and compiled functions "
                    "hold; the limit is %s",
                    dc_number_bytes(bytes, more),
                    dc_number_bytes(rt->first->held + dc_heap_used(rt->heap), held),
                    dc_number_bytes(limit, most));
}

static dc_status fresh_store(dc_rt *rt, dc_job *j, size_t capacity, dc_storage **out)
{
    const size_t guard = rt->pool->guard;
    trim(rt, rt->pool->peak[0] > rt->pool->peak[1] ? rt->pool->peak[0] : rt->pool->peak[1]);
    DC_TRY(dc_storage_admit(rt, j, capacity));
    dc_storage *s = dc_try_alloc(sizeof *s);
    void *mem;
    if (s == NULL)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    dc_job_defer(j, dc_xfree, s);
    const dc_status status = take_memory(rt, j, capacity + 2 * guard, &mem);
    dc_job_keep(j, s);
    if (status != DC_OK) {
        dc_xfree(s);
        return status;
    }
    rt->first->stats.allocs++;
    rt->first->held += capacity;
    dc_storage_tell(rt);
    s->rt = rt;
    s->mem = (char *)mem + guard;
    *out = s;
    return DC_OK;
}

static void release_store(void *s)
{
    dc_storage_free(s);
}

static dc_status fill_guards(dc_storage *s, dc_job *j)
{
    dc_job_defer(j, release_store, s);
    const dc_status status = each_guard(s, j, false, fill_run);
    dc_job_keep(j, s);
    if (status != DC_OK)
        dc_storage_free(s);
    return status;
}

dc_status dc_storage_new(dc_rt *rt, dc_job *j, size_t bytes, dc_storage **out)
{
    dc_pool *p = rt->pool;
    int cls;
    if (bytes > SIZE_MAX / 4)
        return dc_fail_memory(j, bytes);
    const size_t capacity = class_bytes(bytes, &cls);
    dc_storage *s = p->dead[cls].first;
    if (s != NULL)
        wake(p, cls, s);
    else
        DC_TRY(fresh_store(rt, j, capacity, &s));
    s->bytes = bytes;
    s->owned = false;
    link_store(&p->live, s);
    rt->first->handed += capacity;
    p->alive += capacity;
    dc_storage_count(rt, capacity);
    if (p->alive + rt->arena_bytes > p->peak[0])
        p->peak[0] = p->alive + rt->arena_bytes;
    if (p->guard > 0)
        DC_TRY(fill_guards(s, j));
    *out = s;
    return DC_OK;
}

static dc_status fill_dead(dc_job *j, void *s)
{
    return each_guard(s, j, true, fill_run);
}

void dc_storage_free(dc_storage *s)
{
    dc_rt *rt = s->rt;
    int cls;
    DC_ASSERT(s->shown == NULL, "a store of %zu bytes is freed while it is shown", s->bytes);
    dc_outcome_attach(NULL, s);
    if (s->foreign) {
        end_foreign(s);
        return;
    }
    const size_t capacity = class_bytes(s->bytes, &cls);
    rt->pool->alive -= capacity;
    rt->first->stats.bytes_live -= capacity;
    unlink_store(&rt->pool->live, s);
    if (rt->pool->guard > 0) {
        dc_job own; /* a device that fails here fails in the next call, too */
        dc_job_init(&own, &rt->opt, &rt->log);
        const dc_status status = dc_protect(&own, fill_dead, s);
        dc_job_fini(&own);
        if (status != DC_OK) {
            return_memory(s);
            return;
        }
    }
    s->freed = ++rt->pool->freed;
    rt->pool->waiting += capacity;
    link_store(&rt->pool->dead[cls], s);
}

void dc_storage_disown(dc_storage *s)
{
    s->owned = false;
    if (s->shown == NULL)
        dc_storage_free(s);
}

dc_status dc_storage_fill(dc_storage *to, dc_job *j, const void *from, size_t bytes)
{
    dc_device *d = to->rt->device;
    if (bytes == 0)
        return DC_OK;
    if (d->ops->copy != NULL)
        return d->ops->copy(d, j, to->mem, from, bytes);
    void *host = dc_try_realloc(NULL, bytes);
    if (host == NULL)
        return dc_fail_memory(j, bytes);
    dc_job_defer(j, dc_xfree, host);
    dc_status status = d->ops->download(d, j, host, from, bytes);
    if (status == DC_OK)
        status = d->ops->upload(d, j, to->mem, host, bytes);
    dc_job_keep(j, host);
    dc_xfree(host);
    return status;
}

dc_status dc_storage_clear(dc_storage *s, dc_job *j)
{
    dc_device *d = s->rt->device;
    static const char zeros[4096];
    if (d->ops->clear != NULL) {
        d->ops->clear(d, s->mem, s->bytes);
        return DC_OK;
    }
    for (size_t at = 0, n; at < s->bytes; at += n) {
        n = s->bytes - at < sizeof zeros ? s->bytes - at : sizeof zeros;
        if (at > 0 && at % DC_PIECE_BYTES == 0)
            DC_TRY(dc_job_ended(j));
        DC_TRY(d->ops->upload(d, j, (char *)s->mem + at, zeros, n));
    }
    return DC_OK;
}

dc_status dc_storage_evict(dc_storage *s, dc_job *j)
{
    dc_storage *to;
    if (s->shown == NULL)
        return DC_OK;
    DC_TRY(dc_storage_new(s->rt, j, s->bytes, &to));
    dc_job_defer(j, release_store, to);
    const dc_status status = dc_storage_fill(to, j, s->mem, s->bytes);
    dc_job_keep(j, to);
    if (status != DC_OK) {
        dc_storage_free(to);
        return status;
    }
    for (dc_tensor *t = s->shown; t != NULL; t = t->next)
        t->store = to;
    to->shown = s->shown;
    s->shown = NULL;
    s->rt->first->stats.moved_out++;
    return DC_OK;
}

/* ---- tensors ---- */

static void add_shown(dc_tensor *t, dc_storage *s, const dc_type *type)
{
    *t = (dc_tensor){.refs = 1, .type = *type, .store = s, .next = s->shown};
    if (s->shown != NULL)
        s->shown->prev = t;
    s->shown = t;
}

/* NULL where there is no memory. */
static dc_tensor *take_handle(dc_rt *rt)
{
    dc_pool *p = rt->pool;
    dc_tensor *t = p->spare;
    if (t == NULL)
        return dc_try_alloc(sizeof *t);
    p->spare = t->next;
    p->nspare--;
    return t;
}

static void leave_handle(dc_rt *rt, dc_tensor *t)
{
    enum { MOST = 4096 };
    dc_pool *p = rt->pool;
    if (p->nspare == MOST) {
        dc_xfree(t);
        return;
    }
    t->next = p->spare;
    p->spare = t;
    p->nspare++;
}

dc_status dc_tensor_new(dc_rt *rt, dc_job *j, const dc_type *type, dc_tensor **out)
{
    dc_storage *s;
    dc_tensor *t = take_handle(rt);
    if (t == NULL)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    dc_job_defer(j, dc_xfree, t);
    const dc_status status = dc_storage_new(rt, j, dc_type_bytes(type), &s);
    dc_job_keep(j, t);
    if (status != DC_OK) {
        dc_xfree(t);
        return status;
    }
    add_shown(t, s, type);
    *out = t;
    return DC_OK;
}

dc_tensor *dc_tensor_show(dc_storage *s, const dc_type *type)
{
    DC_ASSERT(dc_type_bytes(type) <= s->bytes, "%zu bytes shown of %zu", dc_type_bytes(type),
              s->bytes);
    dc_tensor *t = take_handle(s->rt);
    if (t == NULL)
        dc_nomem(0);
    add_shown(t, s, type);
    return t;
}

dc_status dc_tensor_foreign(dc_rt *rt, dc_job *j, const dc_type *type, void *mem,
                            void (*release)(void *ctx), void *ctx, dc_tensor **out)
{
    DC_ASSERT((uintptr_t)mem % DC_ALIGN == 0, "memory of the host's at %p", mem);
    dc_storage *s = dc_try_alloc(sizeof *s);
    dc_tensor *t = take_handle(rt);
    if (s == NULL || t == NULL) {
        dc_xfree(s);
        dc_xfree(t);
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    }
    *s = (dc_storage){.rt = rt,
                      .mem = mem,
                      .bytes = dc_type_bytes(type),
                      .foreign = true,
                      .release = release,
                      .release_ctx = ctx};
    link_store(&rt->pool->foreign, s);
    add_shown(t, s, type);
    *out = t;
    return DC_OK;
}

dc_tensor *dc_tensor_window(const dc_tensor *of, const dc_type *type, size_t offset)
{
    dc_tensor *t = dc_tensor_show(of->store, type);
    t->offset = of->offset + offset;
    DC_ASSERT(t->offset + dc_type_bytes(type) <= of->store->bytes,
              "%zu bytes shown from byte %zu of %zu", dc_type_bytes(type), t->offset,
              of->store->bytes);
    return t;
}

dc_tensor *dc_tensor_part(const dc_tensor *of, const dc_type *type, size_t offset)
{
    DC_ASSERT((of->offset + offset) % DC_ALIGN == 0, "a tensor from byte %zu on",
              of->offset + offset);
    return dc_tensor_window(of, type, offset);
}

dc_tensor *dc_tensor_retain(dc_tensor *t)
{
    t->refs++;
    return t;
}

void dc_tensor_release(dc_tensor *t)
{
    if (t == NULL || --t->refs > 0)
        return;
    dc_storage *s = t->store;
    if (t->prev != NULL)
        t->prev->next = t->next;
    else
        s->shown = t->next;
    if (t->next != NULL)
        t->next->prev = t->prev;
    leave_handle(s->rt, t);
    if (s->shown == NULL && !s->owned)
        dc_storage_free(s);
}

static void release_tensor(void *t)
{
    dc_tensor_release(t);
}

void dc_tensor_defer(dc_job *j, dc_tensor *t)
{
    dc_job_defer(j, release_tensor, t);
}
