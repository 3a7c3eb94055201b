/*
 * Copies to the device beside its runs (backends/cuda/cu_beside.c), on the stand-in: a large upload waits for the last run
 * that uses its memory and for none behind that; what comes after it sees the new values; nothing is overwritten before it
 * was read, in whatever order streams run.
 */
#include "backends/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin_api.h"
#include "tests/t.h"

enum { N = 3 << 20, BYTES = 4 * N, THREADS = 256 }; /* more than the ring holds */

static const char text[] = "extern \"C\" __global__ void __launch_bounds__(256) scale(unsigned "
                           "char *const base, const unsigned long long stop,\n"
                           "    const unsigned long long p0, const unsigned long long p1)\n"
                           "{\n"
                           "    const int i = blockIdx.x * 256 + threadIdx.x;\n"
                           "    ((int *)(base + p0))[i] = 2 * ((const int *)(base + p1))[i];\n"
                           "}\n";

static dc_opts opt;
static dc_log quiet;
static dc_job job;
static dc_device *device;
static dc_program *program;
static int *values;

typedef struct pair { /* scale reads `in`, writes `out` */
    void *in, *out;
    dc_recording *scale;
} pair;

static void *memory(void)
{
    void *at = NULL;
    CHECK_EQ(device->ops->alloc(device, &job, BYTES, &at), DC_OK);
    return at;
}

static pair new_pair(void)
{
    static const dc_bind bind[] = {{2, 0}, {1, 0}};
    const dc_command launch = {.kind = DC_COMMAND_LAUNCH,
                               .program = program,
                               .grid = 1, /* a group: the stand-in takes its time */
                               .threads = THREADS,
                               .nbind = 2,
                               .bind = bind,
                               .label = "scale"};
    pair p = {.in = memory(), .out = memory()};
    CHECK_EQ(device->ops->record(device, &job, &launch, 1, &p.scale), DC_OK);
    return p;
}

static void free_pair(pair *p)
{
    device->ops->recording_free(device, p->scale);
    device->ops->release(device, p->in);
    device->ops->release(device, p->out);
}

static void send(const pair *p, int value)
{
    for (int i = 0; i < N; i++)
        values[i] = value + i;
    CHECK_EQ(device->ops->upload(device, &job, p->in, values, BYTES), DC_OK);
}

static void run(const pair *p)
{
    void *slot[] = {p->in, p->in, p->out};
    dc_run_info info = {.fault_command = -1};
    CHECK_EQ(device->ops->run(device, &job, p->scale, slot, &info), DC_OK);
}

static void gives(const pair *p, int value)
{
    int got[THREADS];
    bool same = true;
    CHECK_EQ(device->ops->download(device, &job, got, p->out, sizeof got), DC_OK);
    for (int i = 0; i < THREADS; i++)
        same = same && got[i] == 2 * (value + i);
    CHECK(same);
}

/* Work is done as late as it may be: what has run when an upload returns is what the upload waited for. */
static void test_waits(void)
{
    pair a = new_pair(), b = new_pair();
    cuda_standin_set("STREAMS", "late");
    send(&a, 1);
    send(&b, 1000);
    run(&a);
    run(&b); /* the graphs are built, which waits */
    gives(&a, 1);
    run(&a);
    run(&b);
    run(&b);
    const uint64_t before = cuda_standin_kernels(),
                   settled = cuda_standin_calls("cuStreamSynchronize");
    send(&a, 7);
    CHECK_EQ(cuda_standin_kernels() - before, 1);
    CHECK_EQ(cuda_standin_calls("cuStreamSynchronize") - settled, 0);
    run(&a);
    gives(&a, 7);
    gives(&b, 1000);
    free_pair(&a);
    free_pair(&b);
}

/* Memory that comes and goes between two runs: each still waits for the runs of its own. */
static void test_others_go(void)
{
    pair a = new_pair(), b = new_pair(), c = new_pair();
    cuda_standin_set("STREAMS", "late");
    for (int i = 0; i < 2; i++) {
        send(&b, 1);
        run(&b);
        run(&c);
        gives(&b, 1);
    }
    free_pair(&a);
    run(&c);
    run(&b);
    run(&c);
    send(&b, 7);
    gives(&b, 1);
    a = new_pair();
    run(&b);
    run(&c);
    send(&b, 9);
    gives(&b, 7);
    run(&b);
    gives(&b, 9);
    free_pair(&a);
    free_pair(&b);
    free_pair(&c);
}

/* Uploads, runs and memory given back, in any order that streams and events allow. */
static void test_orders(void)
{
    char seed[20];
    cuda_standin_set("STREAMS", "random");
    for (int round = 0; round < 4; round++) {
        snprintf(seed, sizeof seed, "%d", round + 1);
        cuda_standin_set("SEED", seed);
        pair a = new_pair(), b = new_pair();
        for (int step = 0; step < 4; step++) {
            const pair *p = step % 2 == 0 ? &a : &b;
            send(p, 100 * round + step);
            run(p);
            if (step % 3 == 2)
                gives(p, 100 * round + step);
        }
        gives(&a, 100 * round + 2);
        gives(&b, 100 * round + 3);
        send(&a, -5); /* on its way when the memory is given back, and taken by others */
        free_pair(&a);
        pair c = new_pair();
        send(&c, 9);
        run(&c);
        gives(&c, 9);
        free_pair(&b);
        free_pair(&c);
    }
}

int main(void)
{
    static const char *const entry[] = {"scale"};
    const dc_source source = {.text = text, .dialect = "cuda", .entry = entry, .nentry = 1};
    const char *bad;
    dc_opts_init(&opt, &bad);
    dc_job_init(&job, &opt, &quiet);
    values = calloc(N, sizeof *values);
    if (CHECK_EQ(dc_cuda_open(&job, 0, &device), DC_OK) &&
        CHECK_EQ(device->ops->compile(device, &job, &source, &program), DC_OK)) {
        test_waits();
        test_others_go();
        test_orders();
        device->ops->program_free(device, program);
    }
    CHECK_EQ(cuda_standin_wrong(), 0);
    if (device != NULL)
        device->ops->free(device);
    free(values);
    dc_job_fini(&job);
    return t_done();
}
