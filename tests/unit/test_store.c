/*
 * core/runtime/storage.c and core/runtime/rt.c over the host device: pool, handles and the evict rule, cells, guard
 * zones, and a device that has no room.
 */
#include "core/runtime/storage.h"

#include <stdlib.h>

#include "tests/t.h"

/* Sizes that no machine has are refused by malloc, and by that of the sanitizers only if told so. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static dc_rt *rt;
static dc_job *job;
static const dc_type type4 = {.dtype = DC_I32, .rank = 1, .dim = {4}};

static void open_rt(int check)
{
    dc_opts opt;
    const char *bad;
    dc_opts_init(&opt, &bad);
    opt.check = check;
    rt = dc_rt_new(&opt, NULL);
    job = &rt->job;
    dc_rt_set_device(rt, dc_host_device_new(), true);
}

static dc_tensor *tensor(int value)
{
    dc_tensor *t = NULL;
    if (dc_tensor_new(rt, job, &type4, &t) != DC_OK)
        exit(1);
    for (int i = 0; i < 4; i++)
        ((int32_t *)dc_tensor_mem(t))[i] = value;
    return t;
}

static int value_of(const dc_tensor *t)
{
    return ((const int32_t *)dc_tensor_mem(t))[3];
}

static dc_cell *cell(const char *label)
{
    dc_cell *c = NULL;
    if (dc_cell_new(rt, job, &type4, label, true, &c) != DC_OK)
        exit(1);
    return c;
}

static int handles_of(const dc_storage *s)
{
    int n = 0;
    const dc_tensor *before = NULL;
    for (const dc_tensor *t = s->shown; t != NULL; before = t, t = t->next, n++)
        CHECK(t->prev == before && t->store == s);
    return n;
}

static void test_pool(void)
{
    dc_storage *s;
    CHECK(dc_storage_new(rt, job, 100, &s) == DC_OK);
    void *mem = s->mem;
    CHECK_EQ((uintptr_t)mem % 64, 0);
    const uint64_t allocs = rt->stats.allocs;
    CHECK(rt->stats.bytes_live >= 100 && rt->stats.bytes_live <= 128);
    dc_storage_free(s);
    CHECK_EQ(rt->stats.bytes_live, 0);
    CHECK(dc_storage_new(rt, job, 97, &s) == DC_OK); /* the same class */
    CHECK(s->mem == mem);
    CHECK_EQ(s->bytes, 97);
    CHECK_EQ(rt->stats.allocs, allocs);
    dc_storage_free(s);
    CHECK(dc_storage_new(rt, job, 1000, &s) == DC_OK);
    CHECK_EQ(rt->stats.allocs, allocs + 1);
    dc_storage_free(s);
    dc_pool_drain(rt);
    CHECK(dc_storage_new(rt, job, 100, &s) == DC_OK);
    CHECK_EQ(rt->stats.allocs, allocs + 2);
    dc_storage_free(s);
    CHECK(rt->stats.bytes_peak >= 1000);
}

static uint64_t waits(void)
{
    return rt->held - rt->stats.bytes_live;
}

/* What waits to be used again is no more than was alive at once lately, or 64 MiB. */
static void test_trim(void)
{
    enum { N = 48, MIB = 1 << 20 };
    dc_storage *s[N];
    dc_pool_drain(rt);
    for (int i = 0; i < N; i++)
        CHECK(dc_storage_new(rt, job, 4 * MIB, &s[i]) == DC_OK);
    for (int i = 0; i < N; i++)
        dc_storage_free(s[i]);
    CHECK_EQ(waits(), 4 * N * MIB);
    const uint64_t allocs = rt->stats.allocs;
    for (int i = 0; i < N; i++) /* as much of another size: the first go */
        CHECK(dc_storage_new(rt, job, 5 * MIB, &s[i]) == DC_OK);
    CHECK_EQ(rt->stats.allocs, allocs + N);
    for (int i = 0; i < N; i++)
        dc_storage_free(s[i]);
    CHECK(dc_storage_new(rt, job, 6 * MIB, &s[0]) == DC_OK);
    CHECK(waits() <= 5 * N * MIB);
    CHECK(dc_storage_new(rt, job, 5 * MIB, &s[1]) == DC_OK); /* freed last: still there */
    CHECK_EQ(rt->stats.allocs, allocs + N + 1);
    dc_pool_trim(rt); /* as many may be needed again */
    CHECK(waits() > 64 * MIB);
    dc_pool_trim(rt); /* they were not */
    CHECK(waits() <= 64 * MIB);
    dc_storage_free(s[0]);
    dc_storage_free(s[1]);
    dc_pool_drain(rt);
    CHECK_EQ(waits(), 0);
}

/* Every size: a store of its class holds it and at most a third more. */
static void test_classes(void)
{
    dc_storage *s[64];
    size_t bytes = 0;
    for (int i = 0; i < 64; i++, bytes += bytes / 2 + 1) {
        if (bytes > 1 << 26)
            bytes = 0;
        const uint64_t before = rt->stats.bytes_live;
        CHECK(dc_storage_new(rt, job, bytes, &s[i]) == DC_OK);
        const uint64_t held = rt->stats.bytes_live - before;
        CHECK(held >= bytes && (held == 64 || held * 4 <= bytes * 5 + 4 * 64));
        memset(s[i]->mem, i, held < 4096 ? held : 4096);
    }
    for (int i = 0; i < 64; i++)
        dc_storage_free(s[i]);
    CHECK_EQ(rt->stats.bytes_live, 0);
    dc_pool_drain(rt);
    CHECK(dc_storage_new(rt, job, SIZE_MAX / 8, &s[0]) == DC_E_NOMEM);
    CHECK_EQ(job->err.id, DC_ERR_NOMEM);
    job->err = (dc_err){0};
    CHECK(dc_storage_new(rt, job, SIZE_MAX, &s[0]) == DC_E_NOMEM);
    job->err = (dc_err){0};
}

static void test_handles(void)
{
    dc_tensor *a = tensor(7);
    dc_storage *s = a->store;
    dc_tensor *b = dc_tensor_show(s, &type4), *c = dc_tensor_show(s, &type4);
    CHECK_EQ(handles_of(s), 3);
    CHECK(dc_tensor_retain(b) == b);
    dc_tensor_release(b);
    CHECK_EQ(handles_of(s), 3);
    dc_tensor_release(b); /* out of the middle */
    CHECK_EQ(handles_of(s), 2);
    dc_tensor_release(a);
    CHECK_EQ(value_of(c), 7);
    CHECK(rt->stats.bytes_live > 0);
    dc_tensor_release(c);
    CHECK_EQ(rt->stats.bytes_live, 0);
    dc_tensor_release(NULL);
}

static void test_evict(void)
{
    dc_storage *s;
    CHECK(dc_storage_new(rt, job, 16, &s) == DC_OK);
    s->owned = true;
    CHECK(dc_storage_evict(s, job) == DC_OK); /* no tensor shows it: nothing happens */
    CHECK_EQ(rt->stats.moved_out, 0);
    int32_t *mem = s->mem;
    mem[3] = 5;
    dc_tensor *a = dc_tensor_show(s, &type4), *b = dc_tensor_show(s, &type4);
    CHECK(dc_storage_evict(s, job) == DC_OK);
    CHECK_EQ(rt->stats.moved_out, 1);
    CHECK(s->mem == mem && s->shown == NULL); /* the address stays */
    mem[3] = 6;
    CHECK(a->store == b->store && a->store != s);
    CHECK_EQ(value_of(a), 5);
    CHECK_EQ(handles_of(a->store), 2);
    dc_tensor *c = dc_tensor_show(s, &type4);
    CHECK(dc_storage_evict(s, job) == DC_OK);
    mem[3] = 7;
    CHECK_EQ(value_of(b), 5);
    CHECK_EQ(value_of(c), 6);
    dc_tensor_release(b);
    CHECK_EQ(value_of(a), 5);
    dc_tensor_release(a);
    dc_tensor_release(c);
    dc_tensor *d = dc_tensor_show(s, &type4);
    dc_storage_disown(s); /* now d's alone */
    CHECK_EQ(value_of(d), 7);
    CHECK(rt->stats.bytes_live > 0);
    dc_tensor_release(d);
    CHECK_EQ(rt->stats.bytes_live, 0);
    CHECK(dc_storage_new(rt, job, 16, &s) == DC_OK);
    s->owned = true;
    dc_storage_disown(s); /* without an owner: freed now */
    CHECK_EQ(rt->stats.bytes_live, 0);
}

static void test_cells(void)
{
    dc_cell *c = cell("net.1.weight"), *other = cell(NULL);
    CHECK(c->id != other->id && c->trainable && !c->torn);
    CHECK_STR(c->label, "net.1.weight");
    dc_tensor *before = dc_cell_show(c), *seven = tensor(7);
    void *address = c->store->mem;
    CHECK_EQ(value_of(before), 0);
    CHECK(dc_cell_write(c, job, seven) == DC_OK);
    CHECK_EQ(value_of(before), 0);
    CHECK(c->store->mem == address && seven->store != c->store);
    dc_tensor *now = dc_cell_show(c);
    CHECK_EQ(value_of(now), 7);
    const uint64_t moved = rt->stats.moved_out;
    CHECK(dc_cell_write(c, job, now) == DC_OK); /* its own value */
    CHECK_EQ(rt->stats.moved_out, moved);
    CHECK(now->store == c->store);
    CHECK(dc_cell_write(other, job, now) == DC_OK); /* that of another cell */
    CHECK(dc_cell_write(c, job, before) == DC_OK);
    CHECK_EQ(value_of(now), 7);
    dc_tensor *of_other = dc_cell_show(other);
    CHECK_EQ(value_of(of_other), 7);

    dc_tensor *wrong = NULL;
    const dc_type other_type = {.dtype = DC_F32, .rank = 1, .dim = {4}};
    char text[200];
    CHECK(dc_tensor_new(rt, job, &other_type, &wrong) == DC_OK);
    CHECK(dc_cell_write(c, job, wrong) == DC_E_TYPE);
    dc_err_render(&job->err, 1, text, sizeof text);
    CHECK_STR(text, "net.1.weight is i32[4] and was set to f32[4]");
    job->err = (dc_err){0};

    dc_cell_label(c, "w");
    CHECK_STR(c->label, "w");
    CHECK(dc_cell_retain(c) == c);
    dc_cell_release(c);
    CHECK_STR(c->label, "w");
    dc_tensor *last = dc_cell_show(c);
    dc_cell_release(c);
    CHECK_EQ(value_of(last), 0); /* a holder outlives the cell */
    dc_cell_release(other);
    dc_cell_release(NULL);
    dc_tensor *const all[] = {before, seven, now, of_other, wrong, last};
    for (size_t i = 0; i < DC_COUNTOF(all); i++)
        dc_tensor_release(all[i]);
    CHECK_EQ(rt->stats.bytes_live, 0);
}

static void test_empty(void)
{
    const dc_type none = {.dtype = DC_F32, .rank = 2, .dim = {0, 5}};
    dc_tensor *t = NULL;
    dc_cell *c = NULL;
    CHECK(dc_tensor_new(rt, job, &none, &t) == DC_OK && dc_tensor_mem(t) != NULL);
    CHECK(dc_cell_new(rt, job, &none, "empty", false, &c) == DC_OK);
    CHECK(dc_cell_write(c, job, t) == DC_OK);
    dc_tensor *shown = dc_cell_show(c);
    CHECK(dc_storage_evict(c->store, job) == DC_OK);
    dc_tensor_release(shown);
    dc_tensor_release(t);
    dc_cell_release(c);
}

static bool guards_hold(void)
{
    job->err = (dc_err){0};
    return dc_storage_guards(rt, job, "k1") == DC_OK;
}

static void test_guards(void)
{
    for (size_t bytes = 0; bytes < 300; bytes += 37) {
        dc_storage *s;
        CHECK(dc_storage_new(rt, job, bytes, &s) == DC_OK);
        char *mem = s->mem;
        memset(mem, 1, bytes);
        CHECK(guards_hold());
        char *const outside[] = {mem - 1, mem - 64, mem + bytes, mem + bytes + 63};
        for (size_t i = 0; i < DC_COUNTOF(outside); i++) {
            const char was = *outside[i];
            *outside[i] = 0;
            CHECK(!guards_hold());
            CHECK_EQ(job->err.id, DC_ERR_GUARD);
            CHECK_STR(job->err.fact.word[0], "k1");
            CHECK_EQ(job->err.fact.num[0], bytes);
            *outside[i] = was;
            CHECK(guards_hold());
        }
        dc_storage_free(s);
        CHECK(guards_hold());
        if (bytes > 0) { /* written after it was freed */
            const char was = mem[bytes - 1];
            mem[bytes - 1] = 1;
            CHECK(!guards_hold());
            mem[bytes - 1] = was;
        }
    }
    job->err = (dc_err){0};
}

/* ---- a device with room for a few ---- */

typedef struct small_device {
    dc_device base;
    const dc_device_ops *host;
    dc_device_ops ops;
    int room;
} small_device;

static dc_status small_alloc(dc_device *d, dc_job *j, size_t bytes, void **out)
{
    small_device *s = (small_device *)d;
    if (s->room == 0)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    s->room--;
    return s->host->alloc(d, j, bytes, out);
}

static void small_release(dc_device *d, void *mem)
{
    small_device *s = (small_device *)d;
    s->room++;
    s->host->release(d, mem);
}

static void test_no_room(void)
{
    dc_device *host = dc_host_device_new();
    small_device *d = dc_xalloc(sizeof *d);
    d->host = host->ops;
    d->ops = *host->ops;
    d->ops.alloc = small_alloc;
    d->ops.release = small_release;
    d->ops.copy = NULL; /* through the host */
    d->base.ops = &d->ops;
    d->room = 3;
    host->ops->free(host);
    dc_rt_set_device(rt, &d->base, true);

    dc_storage *s, *big;
    CHECK(dc_storage_new(rt, job, 64, &s) == DC_OK);
    dc_storage_free(s);
    CHECK(dc_storage_new(rt, job, 1000, &s) == DC_OK);
    dc_storage_free(s);
    dc_tensor *t = tensor(3); /* finds the first one */
    CHECK_EQ(d->room, 1);
    CHECK(dc_storage_new(rt, job, 5000, &big) == DC_OK);
    CHECK_EQ(d->room, 0);
    CHECK(dc_storage_new(rt, job, 9000, &s) == DC_OK); /* the pool is given back */
    CHECK_EQ(job->err.status, DC_OK);
    CHECK_EQ(d->room, 0);
    const uint64_t live = rt->stats.bytes_live;
    dc_tensor *none = NULL;
    dc_cell *c = NULL;
    CHECK(dc_tensor_new(rt, job, &type4, &none) == DC_E_NOMEM && none == NULL);
    job->err = (dc_err){0};
    CHECK(dc_cell_new(rt, job, &type4, "c", true, &c) == DC_E_NOMEM && c == NULL);
    job->err = (dc_err){0};
    CHECK(dc_storage_evict(t->store, job) == DC_E_NOMEM); /* and all is as before */
    job->err = (dc_err){0};
    CHECK_EQ(value_of(t), 3);
    CHECK_EQ(rt->stats.bytes_live, live);
    dc_storage_free(s);
    dc_storage *old = t->store;
    CHECK(dc_storage_evict(t->store, job) == DC_OK);
    CHECK_EQ(value_of(t), 3);
    dc_storage_free(old);
    dc_storage_free(big);
    dc_tensor_release(t);
}

static void all(int check)
{
    open_rt(check);
    test_pool();
    test_trim();
    test_classes();
    test_handles();
    test_evict();
    test_cells();
    test_empty();
    if (check >= 2)
        test_guards();
    else
        CHECK(guards_hold());
    test_no_room();
    dc_rt_free(rt);
}

int main(void)
{
    all(0);
    all(2);
    dc_rt_free(NULL);
    return t_done();
}
