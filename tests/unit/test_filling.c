/*
 * core/runtime/filling.c: cells that another thread fills are waited for by who reads or writes them; what cannot be read is
 * told at each use, until the cell is written; waiting can be interrupted; contexts and cells may end meanwhile.
 */
#define _POSIX_C_SOURCE 200809L
#include "core/runtime/filling.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/t.h"

enum { NCELL = 3, ELEMENTS = 5000 };

static dc_rt *rt;
static dc_job *job;
static dc_cell *cell[NCELL];
static const dc_type type = {.dtype = DC_I32, .rank = 1, .dim = {ELEMENTS}};

/* What the other thread does: waits until it may, writes all, or fails. */
typedef struct filling {
    atomic_bool go;
    bool fails;
    int32_t value;
    int32_t *to[NCELL];
    int released;
} filling;

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static dc_status body(dc_job *j, void *arg)
{
    filling *f = arg;
    while (!atomic_load(&f->go)) {
        DC_TRY(dc_job_ended(j));
        nap();
    }
    for (int c = 0; c < NCELL; c++)
        for (int i = 0; i < ELEMENTS; i++)
            f->to[c][i] = f->value + c;
    return f->fails ? dc_failf(j, DC_ERR_FORMAT, NULL, "file: tensor 'w' is cut off") : DC_OK;
}

static void release(void *arg)
{
    ((filling *)arg)->released++;
}

static void open_all(void)
{
    dc_opts opt;
    const char *bad;
    dc_opts_init(&opt, &bad);
    rt = dc_rt_new(&opt, NULL);
    job = &rt->job;
    dc_rt_set_device(rt, dc_host_device_new(), true);
    for (int c = 0; c < NCELL; c++)
        if (dc_cell_new(rt, job, &type, "w", true, &cell[c]) != DC_OK)
            exit(1);
}

static void close_all(void)
{
    for (int c = 0; c < NCELL; c++)
        dc_cell_release(cell[c]);
    dc_rt_free(rt);
}

static dc_status start_body(dc_job *j, void *arg)
{
    filling *f = arg;
    for (int c = 0; c < NCELL; c++) {
        DC_TRY(dc_cell_check(cell[c], j, NULL, false));
        DC_TRY(dc_storage_evict(cell[c]->store, j));
        f->to[c] = cell[c]->store->mem;
    }
    return dc_filling_start(rt, j, cell, NCELL, &(dc_filler){body, release, f});
}

static void start(filling *f)
{
    CHECK_EQ(dc_protect(job, start_body, f), DC_OK);
}

static dc_status check_body(dc_job *j, void *arg)
{
    const bool *reads = arg;
    return dc_cell_check(cell[1], j, NULL, *reads);
}

static dc_status check(bool reads)
{
    return dc_protect(job, check_body, &reads);
}

static int32_t value_of(int c)
{
    return ((const int32_t *)cell[c]->store->mem)[ELEMENTS - 1];
}

static bool says(const char *what)
{
    char text[400];
    dc_err_render(&job->err, 1, text, sizeof text);
    return strstr(text, what) != NULL;
}

/* Readers and writers wait for the value; a tensor that was shown before keeps its own. */
static void test_value(void)
{
    filling f = {.go = true, .value = 7}, again = {.value = 20};
    open_all();
    dc_tensor *shown = dc_cell_show(cell[1]);
    const uint64_t version = cell[1]->version;
    start(&f);
    CHECK_EQ(check(true), DC_OK);
    CHECK(value_of(0) == 7 && value_of(1) == 8 && value_of(2) == 9);
    CHECK(cell[1]->filling == NULL && !cell[1]->torn && cell[1]->version > version);
    CHECK_EQ(f.released, 1);
    CHECK_EQ(((const int32_t *)dc_tensor_mem(shown))[0], 0);
    dc_tensor_release(shown);
    start(&again);
    CHECK(cell[1]->torn);
    atomic_store(&again.go, true);
    CHECK_EQ(check(false), DC_OK);
    CHECK_EQ(value_of(1), 21);
    close_all();
}

/* One that nobody asks for ends by itself. */
static void test_unasked(void)
{
    filling f = {.go = true, .value = 1};
    open_all();
    start(&f);
    for (int i = 0; i < 10000 && f.released == 0; i++) {
        dc_fillings_settle(rt);
        nap();
    }
    CHECK(f.released == 1 && cell[0]->filling == NULL && value_of(2) == 3);
    close_all();
}

static dc_status write_body(dc_job *j, void *arg)
{
    const dc_tensor *t = arg;
    return dc_cell_write(cell[1], j, t);
}

static void test_failure(void)
{
    filling f = {.go = true, .fails = true};
    dc_tensor *t;
    open_all();
    start(&f);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(check(true), DC_E_FILE);
        CHECK(says("file: tensor 'w' is cut off"));
    }
    CHECK_EQ(f.released, 1);
    CHECK_EQ(dc_tensor_new(rt, job, &type, &t), DC_OK);
    memset(dc_tensor_mem(t), 0, ELEMENTS * sizeof(int32_t));
    CHECK_EQ(dc_protect(job, write_body, t), DC_OK);
    dc_tensor_release(t);
    CHECK_EQ(check(true), DC_OK);
    CHECK_EQ(value_of(1), 0);
    CHECK(cell[0]->torn && cell[0]->filling != NULL);
    close_all();
}

static void test_interrupt(void)
{
    filling f = {.value = 5};
    open_all();
    start(&f);
    atomic_store(&rt->interrupt, true);
    CHECK(check(true) != DC_OK);
    CHECK_EQ(job->err.id, DC_ERR_INTERRUPTED);
    CHECK(cell[1]->filling != NULL && f.released == 0);
    atomic_store(&rt->interrupt, false);
    atomic_store(&f.go, true);
    CHECK_EQ(check(true), DC_OK);
    CHECK_EQ(value_of(1), 6);
    close_all();
}

/* Cells, and the context, end while a thread writes. */
static void test_end(void)
{
    for (int round = 0; round < 40; round++) {
        filling f = {.go = round % 2 == 0};
        open_all();
        start(&f);
        if (round % 4 < 2)
            nap();
        close_all();
        CHECK_EQ(f.released, 1);
    }
}

/* ---- memory ---- */

static atomic_int left; /* allocations until all fail */

static void *allocate(void *ctx, void *block, size_t had, size_t want)
{
    DC_UNUSED(ctx);
    DC_UNUSED(had);
    if (want == 0) {
        free(block);
        return NULL;
    }
    return atomic_fetch_sub(&left, 1) > 0 ? realloc(block, want) : NULL;
}

static void test_no_memory(void)
{
    dc_status status = DC_E_NOMEM;
    open_all();
    dc_heap *heap = dc_heap_new((atomic_store(&left, 1 << 20), allocate), NULL);
    for (int n = 0; status != DC_OK && n < 100; n++) {
        filling f = {.go = true, .value = 3};
        rt->opt.heap = heap;
        atomic_store(&left, n);
        status = dc_protect(job, start_body, &f);
        atomic_store(&left, 1 << 20);
        CHECK(status == DC_OK || (status == DC_E_NOMEM && f.released == 1));
        CHECK_EQ(check(true), DC_OK);
        CHECK_EQ(f.released, 1);
        CHECK_EQ(value_of(1), status == DC_OK ? 4 : 0);
        rt->opt.heap = NULL;
    }
    CHECK_EQ(status, DC_OK);
    close_all();
    dc_heap_free(heap);
}

int main(void)
{
    test_value();
    test_unasked();
    test_failure();
    test_interrupt();
    test_end();
    test_no_memory();
    return t_done();
}
