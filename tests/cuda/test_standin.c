/*
 * The stand-in for the CUDA driver: what it does as a GPU would, and that it finds misuse. Each part
 * opens a device of its own and ends it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include "tests/cuda/harness.h"

static const char add_text[] = /* out[i] = x[i] + y[i], of 64 i32 */
    "extern \"C\" __global__ void __launch_bounds__(64) add(int *out, const int *x, const int *y)\n"
    "{\n"
    "    out[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x];\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(64) twice(int *x, int more)\n"
    "{\n"
    "    x[threadIdx.x] = 2 * x[threadIdx.x] + more;\n"
    "}\n";

enum { N = 64, BYTES = N * 4 };

/* The next misuse has these words in it. */
static void expect_misuse(const char *words)
{
    const char *why = cuda_standin_take_wrong();
    if (!CHECK(why != NULL && strstr(why, words) != NULL))
        printf("    wanted '%s', got '%s'\n", words, why != NULL ? why : "nothing");
}

typedef struct world {
    CUcontext ctx;
    CUmodule m;
    CUfunction add, twice;
    CUstream s;
    CUdeviceptr x, y, z;
    int *host; /* pinned */
} world;

static char *image;

static void begin(world *w)
{
    *w = (world){.ctx = open_device(0)};
    CHECK_EQ(cuModuleLoadData(&w->m, image), CUDA_SUCCESS);
    CHECK_EQ(cuModuleGetFunction(&w->add, w->m, "add"), CUDA_SUCCESS);
    CHECK_EQ(cuModuleGetFunction(&w->twice, w->m, "twice"), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&w->s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&w->x, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&w->y, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemAllocAsync(&w->z, BYTES, w->s), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostAlloc((void **)&w->host, BYTES, 0), CUDA_SUCCESS);
    for (int i = 0; i < N; i++)
        w->host[i] = i;
    CHECK_EQ(cuMemcpyHtoD_v2(w->x, w->host, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyHtoD_v2(w->y, w->host, BYTES), CUDA_SUCCESS);
}

static void end(world *w)
{
    CHECK_EQ(cuMemFreeAsync(w->z, w->s), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(w->x), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(w->y), CUDA_SUCCESS);
    CHECK_EQ(cuMemFreeHost(w->host), CUDA_SUCCESS);
    CHECK_EQ(cuStreamDestroy_v2(w->s), CUDA_SUCCESS);
    CHECK_EQ(cuModuleUnload(w->m), CUDA_SUCCESS);
    close_device(0);
    no_misuse();
    CHECK_EQ(cuda_standin_bytes(0), 0);
}

static CUresult launch_add(const world *w, CUdeviceptr z, CUdeviceptr x, CUdeviceptr y)
{
    return cuLaunchKernel(w->add, 1, 1, 1, N, 1, 1, 0, w->s, (void *[]){&z, &x, &y}, NULL);
}

static CUresult launch_twice(const world *w, CUdeviceptr x, int more)
{
    return cuLaunchKernel(w->twice, 1, 1, 1, N, 1, 1, 0, w->s, (void *[]){&x, &more}, NULL);
}

static int first_of(const world *w, CUdeviceptr p) /* element 1 */
{
    CHECK_EQ(cuMemcpyDtoHAsync_v2(w->host, p, BYTES, w->s), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(w->s), CUDA_SUCCESS);
    return w->host[1];
}

/* What works ---------------------------------------------------------------------------------- */

static void test_work(void)
{
    static const char *const order[] = {"late", "eager", "random"};
    for (int o = 0; o < 3; o++) {
        world w;
        cuda_standin_set("STREAMS", order[o]);
        begin(&w);
        const uint64_t kernels = cuda_standin_kernels();
        CHECK_EQ(launch_add(&w, w.z, w.x, w.y), CUDA_SUCCESS);
        CHECK_EQ(launch_twice(&w, w.z, 5), CUDA_SUCCESS);
        if (o < 2)
            CHECK_EQ(cuda_standin_kernels() - kernels, o == 1 ? 2 : 0);
        CHECK_EQ(first_of(&w, w.z), 9);
        CHECK_EQ(cuda_standin_kernels() - kernels, 2);
        CHECK_EQ(cuMemsetD32Async(w.z, 7, N, w.s), CUDA_SUCCESS);
        CHECK_EQ(cuMemcpyDtoDAsync_v2(w.x, w.z, BYTES, w.s), CUDA_SUCCESS);
        CHECK_EQ(first_of(&w, w.x), 7);
        end(&w);
    }
    cuda_standin_set("STREAMS", "late");
}

static void count(void *p)
{
    ++*(int *)p;
}

static void bad_call(void *p)
{
    cuMemGetInfo_v2(p, p);
}

static void test_events(void)
{
    world w;
    CUevent e, f;
    CUstream other;
    float ms = -1;
    int called = 0;
    size_t sizes[1];
    begin(&w);
    CHECK_EQ(cuEventCreate(&e, 0), CUDA_SUCCESS);
    CHECK_EQ(cuEventCreate(&f, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(cuEventQuery(e), CUDA_SUCCESS); /* nothing was recorded */
    CHECK_EQ(launch_twice(&w, w.x, 1), CUDA_SUCCESS);
    CHECK_EQ(cuEventRecord(e, w.s), CUDA_SUCCESS);
    CHECK_EQ(cuLaunchHostFunc(w.s, count, &called), CUDA_SUCCESS);
    CHECK_EQ(cuEventSynchronize(e), CUDA_SUCCESS);
    CHECK_EQ(called, 0); /* it runs as far as asked for */
    CHECK_EQ(cuStreamSynchronize(w.s), CUDA_SUCCESS);
    CHECK_EQ(called, 1);
    /* another stream waits */
    CHECK_EQ(launch_twice(&w, w.x, 1), CUDA_SUCCESS);
    CHECK_EQ(cuEventRecord(f, w.s), CUDA_SUCCESS);
    CHECK_EQ(cuStreamWaitEvent(other, f, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyDtoHAsync_v2(w.host, w.x, BYTES, other), CUDA_SUCCESS);
    CHECK_EQ(w.host[1], (int)0xeeeeeeee); /* not yet */
    CHECK_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
    CHECK_EQ(w.host[1], 7);
    /* who asks often enough sees the end */
    CHECK_EQ(launch_twice(&w, w.x, 1), CUDA_SUCCESS);
    CHECK_EQ(cuEventRecord(e, w.s), CUDA_SUCCESS);
    int asked = 0;
    while (cuEventQuery(e) == CUDA_ERROR_NOT_READY && asked < 1000)
        asked++;
    CHECK(asked > 0 && asked < 1000);
    CHECK_EQ(cuEventElapsedTime(&ms, e, e), CUDA_SUCCESS);
    CHECK_NEAR(ms, 0, 0);
    CHECK_EQ(cuEventElapsedTime(&ms, e, f), CUDA_ERROR_INVALID_HANDLE);
    no_misuse();
    CHECK_EQ(cuLaunchHostFunc(w.s, bad_call, sizes), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(w.s), CUDA_SUCCESS);
    expect_misuse("a host function calls the driver");
    CHECK_EQ(cuEventDestroy_v2(e), CUDA_SUCCESS);
    CHECK_EQ(cuEventDestroy_v2(f), CUDA_SUCCESS);
    CHECK_EQ(cuStreamDestroy_v2(other), CUDA_SUCCESS);
    end(&w);
}

/* Graphs -------------------------------------------------------------------------------------- */

static CUDA_KERNEL_NODE_PARAMS twice_params(const world *w, void **argument)
{
    return (CUDA_KERNEL_NODE_PARAMS){.func = w->twice,
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = N,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = argument};
}

/* fill z; then z = 2 z + 1, 2 z + 2, ... with or without edges; copy to the host; an event */
static CUgraphExec make_graph(const world *w, bool edges, CUgraphNode *node, CUevent e)
{
    CUgraph g;
    CUgraphExec x = NULL;
    CUdeviceptr z = w->z;
    const CUDA_MEMSET_NODE_PARAMS fill = {
        .dst = z, .value = 0, .elementSize = 4, .width = N, .height = 1};
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = z,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = w->host,
                                .WidthInBytes = BYTES,
                                .Height = 1,
                                .Depth = 1};
    CHECK_EQ(cuGraphCreate(&g, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphAddMemsetNode(&node[0], g, NULL, 0, &fill, w->ctx), CUDA_SUCCESS);
    for (int i = 1; i <= 4; i++) {
        const CUDA_KERNEL_NODE_PARAMS p = twice_params(w, (void *[]){&z, &i});
        CHECK_EQ(cuGraphAddKernelNode_v2(&node[i], g, &node[i - 1], edges, &p), CUDA_SUCCESS);
    }
    CHECK_EQ(cuGraphAddMemcpyNode(&node[5], g, &node[4], edges, &copy, w->ctx), CUDA_SUCCESS);
    CHECK_EQ(cuGraphAddEventRecordNode(&node[6], g, &node[5], edges, e), CUDA_SUCCESS);
    CHECK_EQ(cuGraphAddEmptyNode(&node[7], g, NULL, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphInstantiateWithFlags(&x, g, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphDestroy(g), CUDA_SUCCESS);
    return x;
}

static void test_graph(void)
{
    world w;
    CUgraphNode node[8];
    CUevent e;
    begin(&w);
    CHECK_EQ(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    CUgraphExec g = make_graph(&w, true, node, e);
    const uint64_t waits = cuda_standin_calls("cuStreamSynchronize"), all = cuda_standin_calls("*");
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(cuGraphLaunch(g, w.s), CUDA_SUCCESS);
        CHECK_EQ(cuEventSynchronize(e), CUDA_SUCCESS);
        CHECK_EQ(w.host[5], ((1 * 2 + 2) * 2 + 3) * 2 + 4);
    }
    CHECK_EQ(cuda_standin_calls("cuStreamSynchronize"), waits);
    CHECK_EQ(cuda_standin_calls("*") - all, 20);
    /* parameters are those of the time of the launch */
    int more = 100;
    CUDA_KERNEL_NODE_PARAMS p = twice_params(&w, (void *[]){&w.z, &more});
    CHECK_EQ(cuGraphLaunch(g, w.s), CUDA_SUCCESS);
    CHECK_EQ(cuGraphExecKernelNodeSetParams_v2(g, node[4], &p), CUDA_SUCCESS);
    more = 1;
    CHECK_EQ(cuStreamSynchronize(w.s), CUDA_SUCCESS);
    CHECK_EQ(w.host[5], 26);
    CHECK_EQ(cuGraphLaunch(g, w.s), CUDA_SUCCESS);
    CHECK_EQ(cuGraphExecDestroy(g), CUDA_SUCCESS); /* what was launched runs */
    CHECK_EQ(cuStreamSynchronize(w.s), CUDA_SUCCESS);
    CHECK_EQ(w.host[5], 122);
    CHECK_EQ(cuGraphLaunch(g, w.s), CUDA_ERROR_INVALID_HANDLE);
    expect_misuse("has been destroyed");
    /* without edges the order is any */
    g = make_graph(&w, false, node, e);
    int wrong = 0;
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(cuGraphLaunch(g, w.s), CUDA_SUCCESS);
        CHECK_EQ(cuStreamSynchronize(w.s), CUDA_SUCCESS);
        wrong += w.host[5] != 26;
    }
    CHECK(wrong > 10);
    CHECK_EQ(cuGraphExecDestroy(g), CUDA_SUCCESS);
    CHECK_EQ(cuEventDestroy_v2(e), CUDA_SUCCESS);
    end(&w);
}

static void test_bad_graphs(void)
{
    world w;
    CUgraph g, other;
    CUgraphNode a, b, c;
    CUgraphExec x;
    begin(&w);
    CHECK_EQ(cuGraphCreate(&g, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphCreate(&other, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphAddEmptyNode(&a, g, NULL, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphAddEmptyNode(&b, g, &a, 1), CUDA_SUCCESS);
    CHECK_EQ(cuGraphAddEmptyNode(&c, other, &a, 1), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("node of another graph");
    CHECK_EQ(cuGraphAddDependencies(g, &b, &a, 1), CUDA_SUCCESS);
    CHECK_EQ(cuGraphInstantiateWithFlags(&x, g, 0), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("cycle");
    int more = 0;
    CUDA_KERNEL_NODE_PARAMS p = twice_params(&w, (void *[]){&w.z, &more});
    CHECK_EQ(cuGraphInstantiateWithFlags(&x, other, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphExecKernelNodeSetParams_v2(x, a, &p), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("not of this graph");
    p.blockDimX = 65;
    CHECK_EQ(cuGraphAddKernelNode_v2(&c, other, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("its bound is 64");
    CHECK_EQ(cuGraphExecDestroy(x), CUDA_SUCCESS);
    CHECK_EQ(cuGraphDestroy(g), CUDA_SUCCESS);
    CHECK_EQ(cuGraphDestroy(other), CUDA_SUCCESS);
    end(&w);
}

/* Misuse -------------------------------------------------------------------------------------- */

static void test_handles(void)
{
    world w;
    CUevent e;
    size_t bytes;
    begin(&w);
    CHECK_EQ(cuEventCreate(&e, 0), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize((CUstream)(void *)e), CUDA_ERROR_INVALID_HANDLE);
    expect_misuse("event");
    CHECK_EQ(cuEventSynchronize((CUevent)(void *)&e), CUDA_ERROR_INVALID_HANDLE);
    expect_misuse("is no event");
    CHECK_EQ(cuEventDestroy_v2(e), CUDA_SUCCESS);
    CHECK_EQ(cuEventRecord(e, w.s), CUDA_ERROR_INVALID_HANDLE);
    expect_misuse("has been destroyed");
    CHECK_EQ(cuEventDestroy_v2(e), CUDA_ERROR_INVALID_HANDLE);
    expect_misuse("has been destroyed");
    /* a module is unloaded while its kernel waits */
    CUmodule m;
    CUfunction f;
    int more = 1;
    CHECK_EQ(cuModuleLoadData(&m, image), CUDA_SUCCESS);
    CHECK_EQ(cuModuleGetFunction(&f, m, "none"), CUDA_ERROR_NOT_FOUND);
    CHECK_EQ(cuModuleGetFunction(&f, m, "twice"), CUDA_SUCCESS);
    CHECK_EQ(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, w.s, (void *[]){&w.x, &more}, NULL),
             CUDA_SUCCESS);
    CHECK_EQ(cuModuleUnload(m), CUDA_SUCCESS);
    expect_misuse("has not run yet");
    CHECK_EQ(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, w.s, (void *[]){&w.x, &more}, NULL),
             CUDA_ERROR_INVALID_HANDLE);
    expect_misuse("has been destroyed");
    /* no context is current */
    CHECK_EQ(cuCtxSetCurrent(NULL), CUDA_SUCCESS);
    CHECK_EQ(cuMemGetInfo_v2(&bytes, &bytes), CUDA_ERROR_INVALID_CONTEXT);
    expect_misuse("no context is current");
    CHECK_EQ(cuCtxPushCurrent_v2(w.ctx), CUDA_SUCCESS);
    CHECK_EQ(cuCtxPopCurrent_v2(NULL), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(w.ctx), CUDA_SUCCESS);
    end(&w);
}

static void test_launches(void)
{
    world w;
    int more = 0;
    void *argument[] = {&w.x, &more};
    begin(&w);
    CHECK_EQ(cuLaunchKernel(w.twice, 0, 1, 1, N, 1, 1, 0, w.s, argument, NULL),
             CUDA_ERROR_INVALID_VALUE);
    expect_misuse("a grid of 0");
    CHECK_EQ(cuLaunchKernel(w.twice, 1, 1, 1, 128, 1, 1, 0, w.s, argument, NULL),
             CUDA_ERROR_INVALID_VALUE);
    expect_misuse("its bound is 64");
    CHECK_EQ(cuLaunchKernel(w.twice, 1, 1, 1, N, 1, 1, 50000, w.s, argument, NULL),
             CUDA_ERROR_INVALID_VALUE);
    expect_misuse("up to 49152 are allowed");
    CHECK_EQ(cuFuncSetAttribute(w.twice, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300000),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuFuncSetAttribute(w.twice, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000),
             CUDA_SUCCESS);
    CHECK_EQ(cuLaunchKernel(w.twice, 1, 1, 1, N, 1, 1, 50000, w.s, argument, NULL), CUDA_SUCCESS);
    int value;
    CHECK_EQ(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, w.twice),
             CUDA_SUCCESS);
    CHECK_EQ(value, 64);
    CHECK_EQ(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, w.twice, 64, 100 << 10),
             CUDA_SUCCESS);
    CHECK_EQ(value, 2);
    end(&w);
}

static void test_leaks(void)
{
    world w;
    CUdeviceptr p;
    CUstream s;
    void *host;
    begin(&w);
    CHECK_EQ(cuMemAlloc_v2(&p, 100), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostAlloc(&host, 200, 0), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&s, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemFreeAsync(w.z, w.s), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(w.x), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(w.y), CUDA_SUCCESS);
    CHECK_EQ(cuMemFreeHost(w.host), CUDA_SUCCESS);
    CHECK_EQ(cuStreamDestroy_v2(w.s), CUDA_SUCCESS);
    CHECK_EQ(cuModuleUnload(w.m), CUDA_SUCCESS);
    close_device(0);
    expect_misuse("leak: 100 bytes of device memory");
    expect_misuse("leak: 200 bytes of pinned memory");
    expect_misuse("leak: stream");
    no_misuse();
    CHECK_EQ(cuMemFree_v2(p), CUDA_ERROR_INVALID_CONTEXT);
    expect_misuse("no context is current");
}

static void test_memory(void)
{
    world w;
    CUdeviceptr p;
    char few[16];
    begin(&w);
    CHECK_EQ(cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAlloc_v2(&p, (size_t)1 << 40), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(cuMemAlloc_v2(&p, 16), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyHtoD_v2(p, few, 17), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("leave allocation");
    CHECK_EQ(cuMemcpyDtoH_v2((void *)p, w.x, 16), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("where the host's is wanted");
    CHECK_EQ(cuMemcpyHtoD_v2((CUdeviceptr)few, w.host, 16), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("is no memory of the device");
    CHECK_EQ(cuMemcpyDtoH_v2(few, p, 16), CUDA_SUCCESS);
    CHECK_EQ(few[3], -1); /* fresh memory is no number */
    CHECK_EQ(cuMemFree_v2(p + 8), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("is not the begin");
    CHECK_EQ(cuMemFree_v2(p), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("is freed twice");
    CHECK_EQ(cuMemFreeHost((void *)w.x), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("is not the begin of pinned memory");
    /* pinned memory changes before it was copied */
    CHECK_EQ(cuMemcpyHtoDAsync_v2(w.x, w.host, BYTES, w.s), CUDA_SUCCESS);
    w.host[3]++;
    CHECK_EQ(cuStreamSynchronize(w.s), CUDA_SUCCESS);
    expect_misuse("the host has changed 256 bytes");
    /* memory that is not pinned is read at once */
    static int other[N];
    other[1] = 8;
    CHECK_EQ(cuMemcpyHtoDAsync_v2(w.x, other, BYTES, w.s), CUDA_SUCCESS);
    other[1] = 9;
    CHECK_EQ(first_of(&w, w.x), 8);
    end(&w);
}

/* What is freed stays with its pool: other memory may be missing, until it is trimmed or, where it keeps less, waited. */
static void test_pool(void)
{
    const CUmemPoolProps of_device = {.allocType = 1, .location = {1, 0}};
    const size_t most = (size_t)1 << 20;
    uint64_t keep = UINT64_MAX, nothing = 0;
    CUmemoryPool pool;
    CUdeviceptr p, q;
    world w;
    begin(&w);
    cuda_standin_set("MEMORY", "1048576");
    const size_t before = cuda_standin_bytes(0), half = (most - before) / 2;
    CHECK_EQ(cuMemPoolCreate(&pool, &of_device), CUDA_SUCCESS);
    CHECK_EQ(cuMemPoolSetAttribute(pool, 4, &keep), CUDA_SUCCESS);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cuMemAllocFromPoolAsync(&p, 2 * half, pool, w.s), CUDA_SUCCESS);
        CHECK_EQ(cuMemFreeAsync(p, w.s), CUDA_SUCCESS);
        CHECK_EQ(cuStreamSynchronize(w.s), CUDA_SUCCESS);
        CHECK_EQ(cuda_standin_bytes(0), before);
    }
    CHECK_EQ(cuMemAlloc_v2(&q, half), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(cuMemPoolTrimTo(pool, half), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&q, half), CUDA_SUCCESS);
    CHECK_EQ(cuMemAllocFromPoolAsync(&p, 2 * half, pool, w.s), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(cuMemAllocFromPoolAsync(&p, half, pool, w.s), CUDA_SUCCESS);
    CHECK_EQ(cuMemFreeAsync(p, w.s), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(q), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&q, 2 * half), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(cuMemPoolSetAttribute(pool, 4, &nothing), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(w.s), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&q, 2 * half), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(q), CUDA_SUCCESS);
    CHECK_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
    cuda_standin_set("MEMORY", "4294967296");
    end(&w);
}

/* The host may not look into memory of the device. */
static void test_host_touches(void)
{
    world w;
    begin(&w);
    volatile int *p = (volatile int *)w.x; // NOLINT: it is an address of this process
    CHECK_EQ(p[1], 1);
    expect_misuse("host: it touches");
    CHECK_EQ(launch_twice(&w, w.x, 0), CUDA_SUCCESS);
    CHECK_EQ(first_of(&w, w.x), 2); /* closed again */
    CHECK_EQ(p[1], 2);
    expect_misuse("host: it touches");
    end(&w);
}

/* A launch that goes wrong is an error that stays; what is left over then is no leak. */
static void test_device_lost(void)
{
    for (int i = 0; i < 3; i++) {
        world w;
        begin(&w);
        if (i == 0) {
            CHECK_EQ(launch_twice(&w, 0, 1), CUDA_SUCCESS);
            CHECK_EQ(cuStreamSynchronize(w.s), CUDA_ERROR_LAUNCH_FAILED);
            expect_misuse("kernel twice, line 7: block 0, thread 0: fault: a null pointer");
        } else if (i == 1) { /* freed before it ran */
            CHECK_EQ(launch_twice(&w, w.z, 1), CUDA_SUCCESS);
            CHECK_EQ(cuMemFreeAsync(w.z, w.s), CUDA_SUCCESS);
            CHECK_EQ(launch_twice(&w, w.z, 1), CUDA_SUCCESS);
            CHECK_EQ(cuStreamSynchronize(w.s), CUDA_ERROR_LAUNCH_FAILED);
            expect_misuse("of 256 bytes, which was freed");
        } else {
            cuda_standin_set("FAIL", "cuStreamSynchronize@1=719");
            CHECK_EQ(cuStreamSynchronize(w.s), CUDA_ERROR_LAUNCH_FAILED);
        }
        CHECK_EQ(cuMemFree_v2(w.x), CUDA_ERROR_LAUNCH_FAILED);
        CHECK_EQ(cuStreamDestroy_v2(w.s), CUDA_ERROR_LAUNCH_FAILED);
        close_device(0);
        no_misuse();
        CHECK_EQ(cuda_standin_bytes(0), 0);
    }
    world w; /* the next context is a fresh one */
    begin(&w);
    CHECK_EQ(launch_twice(&w, w.x, 3), CUDA_SUCCESS);
    CHECK_EQ(first_of(&w, w.x), 5);
    end(&w);
}

static void test_failures(void)
{
    world w;
    CUdeviceptr p = 0;
    begin(&w);
    cuda_standin_set("FAIL", "cuMemAlloc_v2@2=2,cuLaunchKernel@1=701");
    CHECK_EQ(cuMemAlloc_v2(&p, 16), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(p), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&p, 16), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(cuMemAlloc_v2(&p, 16), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(p), CUDA_SUCCESS);
    cuda_standin_set("FAIL", "");
    end(&w);
    cuda_standin_set("FAIL", "nvrtcCompileProgram@1=1");
    CHECK(kernel_image(add_text) == NULL);
    cuda_standin_set("FAIL", "");
    char *again = kernel_image(add_text);
    CHECK(again != NULL);
    free(again);
}

/* Virtual memory ------------------------------------------------------------------------------ */

static void test_virtual(void)
{
    world w;
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle a, b;
    CUdeviceptr p;
    size_t g = 0;
    begin(&w);
    CHECK_EQ(cuMemGetAllocationGranularity(&g, &prop, 0), CUDA_SUCCESS);
    CHECK(g >= 4096);
    CHECK_EQ(cuMemAddressReserve(&p, 8 * g, 0, 0, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemCreate(&a, g, &prop, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemCreate(&b, g + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("no multiple of the granularity");
    CHECK_EQ(cuMemCreate(&b, g, &prop, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemMap(p, g, 0, a, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemMap(p, g, 0, b, 0), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("memory is mapped there");
    CHECK_EQ(cuMemMap(p + g, g, 0, b, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemMap(p + 8 * g, g, 0, b, 0), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("are not reserved");
    CHECK_EQ(cuMemcpyHtoD_v2(p, w.host, BYTES), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("no access was set");
    CHECK_EQ(cuMemSetAccess(p, 2 * g, &access, 1), CUDA_SUCCESS);
    CHECK_EQ(cuMemRelease(b), CUDA_SUCCESS);                           /* the mapping holds it */
    CHECK_EQ(cuMemcpyHtoD_v2(p + g - 8, w.host, BYTES), CUDA_SUCCESS); /* over the border */
    CHECK_EQ(launch_twice(&w, p + g - 8, 3), CUDA_SUCCESS);
    CHECK_EQ(first_of(&w, p + g - 8), 5);
    CHECK_EQ(cuMemcpyHtoD_v2(p + 2 * g - 8, w.host, BYTES), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("in no allocation");
    /* elsewhere it is the same memory */
    CHECK_EQ(cuMemUnmap(p, g / 2), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("not whole mappings");
    CHECK_EQ(cuMemUnmap(p, g), CUDA_SUCCESS);
    CHECK_EQ(cuMemMap(p + 4 * g, g, 0, a, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemSetAccess(p + 4 * g, g, &access, 1), CUDA_SUCCESS);
    CHECK_EQ(first_of(&w, p + 5 * g - BYTES), -1);
    int last[2];
    CHECK_EQ(cuMemcpyDtoH_v2(last, p + 5 * g - 8, 8), CUDA_SUCCESS);
    CHECK_EQ(last[1], 5);
    CHECK_EQ(cuMemAddressFree(p, 8 * g), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("memory is mapped there");
    CHECK_EQ(cuMemUnmap(p + g, g), CUDA_SUCCESS);
    CHECK_EQ(cuMemUnmap(p + 4 * g, g), CUDA_SUCCESS);
    CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
    CHECK_EQ(cuMemRelease(a), CUDA_ERROR_INVALID_HANDLE);
    expect_misuse("is no handle of memory");
    CHECK_EQ(cuMemAddressFree(p, 8 * g), CUDA_SUCCESS);
    end(&w);
    open_device(0);
    CHECK_EQ(cuMemAddressReserve(&p, g, 0, 0, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemCreate(&a, g, &prop, 0), CUDA_SUCCESS);
    close_device(0);
    expect_misuse("leak: a handle of ");
    expect_misuse("reserved bytes of addresses");
    no_misuse();
    CHECK_EQ(cuda_standin_bytes(0), 0);
}

/* Ranges of addresses that were freed are there again, but the latest ones not at once; ranges that are held do not meet. */
static void test_addresses(void)
{
    const size_t most = (size_t)1 << 36;
    CUdeviceptr p, q, before = 0;
    open_device(0);
    for (int i = 0; i < 100; i++) {
        if (!CHECK_EQ(cuMemAddressReserve(&p, most, 0, 0, 0), CUDA_SUCCESS) ||
            !CHECK_EQ(cuMemAddressReserve(&q, most, 0, 0, 0), CUDA_SUCCESS))
            break;
        CHECK(p + most <= q || q + most <= p);
        CHECK(p != before && q != before);
        before = q;
        CHECK_EQ(cuMemAddressFree(p, most), CUDA_SUCCESS);
        CHECK_EQ(cuMemAddressFree(q, most), CUDA_SUCCESS);
    }
    CHECK_EQ(cuMemAddressReserve(&p, (size_t)1 << 40, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    close_device(0);
    no_misuse();
}

/* Images, devices ----------------------------------------------------------------------------- */

static char *image_for(const char *arch, bool ptx)
{
    char option[60];
    const char *const options[] = {option};
    nvrtcProgram p;
    size_t n = 0;
    char *out = NULL;
    snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
    CHECK_EQ(nvrtcCreateProgram(&p, add_text, "k.cu", 0, NULL, NULL), NVRTC_SUCCESS);
    if (nvrtcCompileProgram(p, 1, options) == NVRTC_SUCCESS) {
        CHECK_EQ(ptx ? nvrtcGetPTXSize(p, &n) : nvrtcGetCUBINSize(p, &n), NVRTC_SUCCESS);
        out = n > 0 ? malloc(n) : NULL;
        if (out != NULL)
            CHECK_EQ(ptx ? nvrtcGetPTX(p, out) : nvrtcGetCUBIN(p, out), NVRTC_SUCCESS);
    }
    CHECK_EQ(nvrtcDestroyProgram(&p), NVRTC_SUCCESS);
    return out;
}

static void test_images(void)
{
    static const struct {
        const char *arch;
        bool ptx;
        CUresult on_90;
    } row[] = {
        {"sm_90", false, CUDA_SUCCESS},
        {"sm_90a", false, CUDA_SUCCESS},
        {"sm_80", false, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {"sm_100", false, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {"compute_80", true, CUDA_SUCCESS},
        {"compute_120", true, CUDA_ERROR_NO_BINARY_FOR_GPU},
    };
    world w;
    begin(&w);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        CUmodule m;
        char *x = image_for(row[i].arch, row[i].ptx);
        if (!CHECK(x != NULL))
            continue;
        CHECK_EQ(cuModuleLoadData(&m, x), row[i].on_90);
        if (row[i].on_90 == CUDA_SUCCESS)
            CHECK_EQ(cuModuleUnload(m), CUDA_SUCCESS);
        free(x);
    }
    CHECK(image_for("sm_35", false) == NULL);
    CHECK(image_for("compute_80", false) == NULL);
    CUmodule m;
    static const char junk[256] = "no image";
    CHECK_EQ(cuModuleLoadData(&m, junk), CUDA_ERROR_INVALID_IMAGE);
    /* an error in a text is told, with its line */
    nvrtcProgram p;
    size_t n = 0;
    CHECK_EQ(nvrtcCreateProgram(&p, "\nint f() { return none; }\n", "k.cu", 0, NULL, NULL),
             NVRTC_SUCCESS);
    CHECK_EQ(nvrtcCompileProgram(p, 0, NULL), NVRTC_ERROR_COMPILATION);
    CHECK_EQ(nvrtcGetProgramLogSize(p, &n), NVRTC_SUCCESS);
    char *log = calloc(n, 1);
    CHECK_EQ(nvrtcGetProgramLog(p, log), NVRTC_SUCCESS);
    CHECK(strstr(log, "kernels.cu:2:") != NULL);
    CHECK_EQ(nvrtcCompileProgram(p, 1, (const char *const[]){"--unknown"}),
             NVRTC_ERROR_INVALID_OPTION);
    free(log);
    CHECK_EQ(nvrtcDestroyProgram(&p), NVRTC_SUCCESS);
    end(&w);
}

static void test_devices(void)
{
    int n = 0, major = 0, active = -1;
    unsigned flags;
    world w;
    cuda_standin_set("DEVICES", "2");
    cuda_standin_set("SM", "90,80");
    begin(&w);
    CHECK_EQ(cuDeviceGetCount(&n), CUDA_SUCCESS);
    CHECK_EQ(n, 2);
    CHECK_EQ(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 1),
             CUDA_SUCCESS);
    CHECK_EQ(major, 8);
    CHECK_EQ(cuDeviceGetAttribute(&major, 9999, 1), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("does not know attribute 9999");
    CHECK_EQ(cuDevicePrimaryCtxGetState(1, &flags, &active), CUDA_SUCCESS);
    CHECK_EQ(active, 0);
    open_device(1);
    CUdeviceptr p;
    CHECK_EQ(cuMemAlloc_v2(&p, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuda_standin_bytes(1), BYTES);
    CHECK_EQ(cuCtxSetCurrent(w.ctx), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyHtoD_v2(p, w.host, BYTES), CUDA_ERROR_INVALID_VALUE);
    expect_misuse("memory of device 1, used on device 0");
    open_device(1);
    CHECK_EQ(cuMemFree_v2(p), CUDA_SUCCESS);
    close_device(1);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(1), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(w.ctx), CUDA_SUCCESS);
    end(&w);
    cuda_standin_set("DEVICES", "1");
    cuda_standin_set("SM", "90");
    CHECK_EQ(cuDeviceGet(&n, 1), CUDA_ERROR_INVALID_DEVICE);
}

static void test_names(void)
{
    const char *text = NULL;
    void *entry = NULL;
    int status = -1;
    CHECK_EQ(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
    CHECK_STR(text, "CUDA_ERROR_OUT_OF_MEMORY");
    CHECK_EQ(cuGetErrorName(12345, &text), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuGetProcAddress_v2("cuMemAlloc", &entry, 12000, 0, &status), CUDA_SUCCESS);
    CHECK(entry == dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    CHECK_EQ(cuGetProcAddress_v2("cuNothing", &entry, 12000, 0, &status), CUDA_ERROR_NOT_FOUND);
    CHECK_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

/* Compilation from several threads, one text each and one that all have. */
static void *compile_some(void *p)
{
    char text[300];
    snprintf(text, sizeof text, "extern \"C\" __global__ void k(int *x)\n{\n    *x = %d;\n}\n",
             *(int *)p);
    char *x = kernel_image(text), *y = kernel_image(add_text);
    void *ok = x != NULL && y != NULL ? p : NULL;
    free(x);
    free(y);
    return ok;
}

static void test_threads(void)
{
    pthread_t t[4];
    int number[4];
    const uint64_t before = cuda_standin_compiled();
    for (int i = 0; i < 4; i++) {
        number[i] = i;
        CHECK_EQ(pthread_create(&t[i], NULL, compile_some, &number[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *ok = NULL;
        pthread_join(t[i], &ok);
        CHECK(ok != NULL);
    }
    CHECK_EQ(cuda_standin_compiled() - before, 4);
}

int main(void)
{
    cuda_standin_set("WRONG", "report");
    if (!have_compiler())
        return t_done();
    image = kernel_image(add_text);
    if (!CHECK(image != NULL))
        return t_done();
    test_names();
    test_work();
    test_events();
    test_graph();
    test_bad_graphs();
    test_handles();
    test_launches();
    test_leaks();
    test_memory();
    test_pool();
    test_host_touches();
    test_device_lost();
    test_failures();
    test_virtual();
    test_addresses();
    test_images();
    test_devices();
    test_threads();
    free(image);
    return t_done();
}
