/*
 * What calls of the CUDA driver cost on this machine: a line "what <tab> number <tab> unit" each, the median of several
 * runs. On the stand-in the numbers mean nothing.
 *
 *   costs [tiny]
 */
#include <stdint.h>
#include <time.h>

#include "tests/cuda/cuda_driver.h"
#include "tests/unit/nvrtc.h"

enum { RUNS = 7, MOST_NODES = 1000 };

static const char text[] =
    "typedef unsigned char u8; typedef unsigned long long u64; typedef long long i64;\n"
    "__device__ __forceinline__ u8 *at(u8 *base, u64 p)\n"
    "{ return base + ((i64)p < 0 ? *(const u64 *)(base + (p & ~0ull >> 1)) : p); }\n"
    "extern \"C\" __global__ void __launch_bounds__(32) empty(u64 a) {}\n"
    "extern \"C\" __global__ void __launch_bounds__(32) touch(u8 *base, u64 stop, u64 a, u64 b, "
    "u64 c, u64 d)\n"
    "{\n"
    "    if (stop != 0 && *(const int *)(base + stop) != 0) return;\n"
    "    const unsigned i = threadIdx.x;\n"
    "    ((float *)at(base, a))[i] = ((float *)at(base, b))[i] + ((float *)at(base, c))[i] +\n"
    "        ((float *)at(base, d))[i];\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(256) copy(float4 *to, const float4 *from, u64 "
    "n)\n"
    "{\n"
    "    const u64 i = blockIdx.x * 1024ull + threadIdx.x;\n"
    "    for (int k = 0; k < 4; k++)\n"
    "        if (i + 256 * k < n) to[i + 256 * k] = from[i + 256 * k];\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(256) read(float *to, const float4 *from, u64 "
    "n)\n"
    "{\n"
    "    float sum = 0;\n"
    "    for (u64 i = blockIdx.x * 256ull + threadIdx.x; i < n; i += 262144) {\n"
    "        const float4 x = from[i];\n"
    "        sum += x.x + x.y + x.z + x.w;\n"
    "    }\n"
    "    if (sum == 0.12345f) to[threadIdx.x] = sum;\n"
    "}\n";

typedef struct machine {
    CUmodule module;
    CUfunction empty, touch, copy, read;
    CUstream stream;
    CUevent first, last;
    CUdeviceptr mem, large; /* large: two halves */
    size_t half;
    char *pinned;
    int many; /* calls in a run */
    int host; /* a stand-in */
} machine;

static void need(CUresult e, const char *what)
{
    const char *name = "?";
    if (e == CUDA_SUCCESS)
        return;
    cuGetErrorName(e, &name);
    printf("costs: %s: %s\n", what, name);
    exit(1);
}
#define NEED(call) need(call, #call)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One run of `n` calls: microseconds of all. */
typedef double act(machine *m, int n);

static double median(machine *m, act *f, int n)
{
    double t[RUNS];
    f(m, n);
    for (int i = 0; i < RUNS; i++)
        t[i] = f(m, n);
    qsort(t, RUNS, sizeof *t, ascending);
    return t[RUNS / 2];
}

static void tell(machine *m, const char *what, act *f)
{
    printf("%s\t%.2f\tus\n", what, median(m, f, m->many) / m->many);
}

static double waited(machine *m, double begin)
{
    NEED(cuStreamSynchronize(m->stream));
    return now() - begin;
}

/* --- launches, events, small copies ------------------------------------------------------------ */

static void launch_empty(machine *m)
{
    CUdeviceptr none = 0;
    void *argument[] = {&none};
    NEED(cuLaunchKernel(m->empty, 1, 1, 1, 32, 1, 1, 0, m->stream, argument, NULL));
}

static double launches(machine *m, int n)
{
    const double begin = now();
    for (int i = 0; i < n; i++)
        launch_empty(m);
    return waited(m, begin);
}

static double launches_issued(machine *m, int n)
{
    const double begin = now();
    for (int i = 0; i < n; i++)
        launch_empty(m);
    const double spent = now() - begin;
    waited(m, begin);
    return spent;
}

static double launches_waited(machine *m, int n)
{
    const double begin = now();
    for (int i = 0; i < n; i++) {
        launch_empty(m);
        NEED(cuStreamSynchronize(m->stream));
    }
    return now() - begin;
}

static double idle_waits(machine *m, int n)
{
    const double begin = now();
    for (int i = 0; i < n; i++)
        NEED(cuStreamSynchronize(m->stream));
    return now() - begin;
}

static double events(machine *m, int n)
{
    const double begin = now();
    for (int i = 0; i < n; i++)
        NEED(cuEventRecord(m->last, m->stream));
    return waited(m, begin);
}

static double event_queries(machine *m, int n)
{
    NEED(cuEventRecord(m->last, m->stream));
    NEED(cuStreamSynchronize(m->stream));
    const double begin = now();
    for (int i = 0; i < n; i++)
        NEED(cuEventQuery(m->last));
    return now() - begin;
}

static double copies_to(machine *m, int n)
{
    const double begin = now();
    for (int i = 0; i < n; i++)
        NEED(cuMemcpyHtoDAsync_v2(m->mem, m->pinned, 256, m->stream));
    return waited(m, begin);
}

static double copies_from(machine *m, int n)
{
    const double begin = now();
    for (int i = 0; i < n; i++) {
        NEED(cuMemcpyDtoHAsync_v2(m->pinned, m->mem, 4, m->stream));
        NEED(cuStreamSynchronize(m->stream));
    }
    return now() - begin;
}

static double allocations(machine *m, int n)
{
    const double begin = now();
    for (int i = 0; i < n; i++) {
        CUdeviceptr p;
        NEED(cuMemAllocAsync(&p, 1 << 20, m->stream));
        NEED(cuMemFreeAsync(p, m->stream));
    }
    return waited(m, begin);
}

/* --- graphs ---------------------------------------------------------------------------------- */

/* `words`: its four addresses are words of memory; `stop`: a word says whether it runs. */
static void touch_params(machine *m, bool words, bool stop, CUDA_KERNEL_NODE_PARAMS *p,
                         uint64_t value[6], void *argument[6])
{
    value[0] = 0;
    value[1] = stop ? m->mem + 1024 : 0;
    for (int i = 0; i < 4; i++)
        value[2 + i] = words ? (1ull << 63) | (m->mem + 512 + 8 * (uint64_t)i)
                             : m->mem + 4096 * (uint64_t)(i + 1);
    for (int i = 0; i < 6; i++)
        argument[i] = &value[i];
    *p = (CUDA_KERNEL_NODE_PARAMS){.func = m->touch,
                                   .gridDimX = 1,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 32,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .kernelParams = argument};
}

typedef struct graph {
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode node[MOST_NODES];
    int n;
    double made; /* microseconds */
} graph;

static void make_graph(machine *m, graph *g, int n, bool chain, bool words, bool stop)
{
    CUDA_KERNEL_NODE_PARAMS p;
    uint64_t value[6];
    void *argument[6];
    touch_params(m, words, stop, &p, value, argument);
    g->n = n;
    const double begin = now();
    NEED(cuGraphCreate(&g->graph, 0));
    for (int i = 0; i < n; i++)
        NEED(cuGraphAddKernelNode_v2(&g->node[i], g->graph, i > 0 && chain ? &g->node[i - 1] : NULL,
                                     i > 0 && chain, &p));
    NEED(cuGraphInstantiateWithFlags(&g->exec, g->graph, 0));
    NEED(cuGraphUpload(g->exec, m->stream));
    g->made = waited(m, begin);
}

static void free_graph(graph *g)
{
    NEED(cuGraphExecDestroy(g->exec));
    NEED(cuGraphDestroy(g->graph));
}

static double launch_graph(machine *m, const graph *g, int n, double *issued)
{
    double all[RUNS], own[RUNS];
    for (int r = -1; r < RUNS; r++) {
        const double begin = now();
        for (int i = 0; i < n; i++)
            NEED(cuGraphLaunch(g->exec, m->stream));
        const double spent = now() - begin, whole = waited(m, begin);
        if (r >= 0) {
            all[r] = whole / n;
            own[r] = spent / n;
        }
    }
    qsort(all, RUNS, sizeof *all, ascending);
    qsort(own, RUNS, sizeof *own, ascending);
    *issued = own[RUNS / 2];
    return all[RUNS / 2];
}

static void tell_graphs(machine *m)
{
    static const int sizes[] = {1, 10, 100, MOST_NODES};
    static graph g;
    double issued;
    for (int k = 0; k < (m->host ? 3 : 4); k++) {
        const int n = sizes[k], times = m->host ? 2 : 2000 / n + 20;
        make_graph(m, &g, n, true, false, false);
        const double chain = launch_graph(m, &g, times, &issued);
        printf("graph of %d nodes one after the other, launch\t%.2f\tus\n", n, chain);
        printf("graph of %d nodes, time of the call\t%.2f\tus\n", n, issued);
        printf("graph of %d nodes, made and instantiated\t%.2f\tus\n", n, g.made);
        free_graph(&g);
        if (n == 1)
            continue;
        make_graph(m, &g, n, false, false, false);
        printf("graph of %d independent nodes, launch\t%.2f\tus\n", n,
               launch_graph(m, &g, times, &issued));
        free_graph(&g);
        make_graph(m, &g, n, true, true, false);
        const double words = launch_graph(m, &g, times, &issued);
        printf("graph of %d nodes, 4 addresses each from memory, launch\t%.2f\tus\n", n, words);
        printf("4 addresses read from memory, a node of %d\t%.3f\tus\n", n, (words - chain) / n);
        free_graph(&g);
        make_graph(m, &g, n, true, false, true);
        printf("word that stops read from memory, a node of %d\t%.3f\tus\n", n,
               (launch_graph(m, &g, times, &issued) - chain) / n);
        free_graph(&g);
    }
}

static void tell_updates(machine *m)
{
    static graph g;
    CUDA_KERNEL_NODE_PARAMS p;
    uint64_t value[6];
    void *argument[6];
    make_graph(m, &g, 100, true, false, false);
    touch_params(m, true, false, &p, value, argument);
    const double begin = now();
    for (int i = 0; i < 100; i++)
        NEED(cuGraphExecKernelNodeSetParams_v2(g.exec, g.node[i], &p));
    printf("parameters of a node set\t%.2f\tus\n", (now() - begin) / 100);
    free_graph(&g);
}

/* --- bandwidth ------------------------------------------------------------------------------- */

static double by_events(machine *m, double begin)
{
    float ms = 0;
    NEED(cuEventRecord(m->last, m->stream));
    waited(m, begin);
    NEED(cuEventElapsedTime(&ms, m->first, m->last));
    return (double)ms * 1e3;
}

static double copy_by_driver(machine *m, int n)
{
    NEED(cuEventRecord(m->first, m->stream));
    for (int i = 0; i < n; i++)
        NEED(cuMemcpyDtoDAsync_v2(m->large, m->large + m->half, m->half, m->stream));
    return by_events(m, now());
}

static double launch_large(machine *m, CUfunction f, unsigned grid, int n)
{
    CUdeviceptr to = m->large, from = m->large + m->half;
    uint64_t count = m->half / 16;
    void *argument[] = {&to, &from, &count};
    NEED(cuEventRecord(m->first, m->stream));
    for (int i = 0; i < n; i++)
        NEED(cuLaunchKernel(f, grid, 1, 1, 256, 1, 1, 0, m->stream, argument, NULL));
    return by_events(m, now());
}

static double copy_by_kernel(machine *m, int n)
{
    return launch_large(m, m->copy, (unsigned)((m->half / 16 + 1023) / 1024), n);
}

static double read_by_kernel(machine *m, int n)
{
    return launch_large(m, m->read, 1024, n);
}

static double copy_to_device(machine *m, int n)
{
    NEED(cuEventRecord(m->first, m->stream));
    for (int i = 0; i < n; i++)
        NEED(cuMemcpyHtoDAsync_v2(m->large, m->pinned, m->half, m->stream));
    return by_events(m, now());
}

static double copy_to_host(machine *m, int n)
{
    NEED(cuEventRecord(m->first, m->stream));
    for (int i = 0; i < n; i++)
        NEED(cuMemcpyDtoHAsync_v2(m->pinned, m->large, m->half, m->stream));
    return by_events(m, now());
}

static void tell_rate(machine *m, const char *what, act *f, int pieces)
{
    const int n = m->host ? 1 : 20;
    const double us = median(m, f, n) / n;
    printf("%s\t%.1f\tGB/s\n", what, us > 0 ? (double)m->half * pieces / us * 1e-3 : 0.0);
}

/* --- the whole ------------------------------------------------------------------------------- */

static void open_machine(machine *m)
{
    int major = 0, minor = 0;
    char arch[16];
    nvrtc compiler;
    CUcontext context;
    if (cuInit(0) != CUDA_SUCCESS || !nvrtc_open(&compiler)) {
        printf("skip: no CUDA device, or no NVRTC library\n");
        exit(77);
    }
    cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    snprintf(arch, sizeof arch, "sm_%d%d", major, minor);
    NEED(cuDevicePrimaryCtxRetain(&context, 0));
    NEED(cuCtxSetCurrent(context));
    void *image = nvrtc_compile(&compiler, text, arch);
    if (image == NULL)
        exit(1);
    NEED(cuModuleLoadData(&m->module, image));
    NEED(cuModuleGetFunction(&m->empty, m->module, "empty"));
    NEED(cuModuleGetFunction(&m->touch, m->module, "touch"));
    NEED(cuModuleGetFunction(&m->copy, m->module, "copy"));
    NEED(cuModuleGetFunction(&m->read, m->module, "read"));
    NEED(cuStreamCreate(&m->stream, CU_STREAM_NON_BLOCKING));
    NEED(cuEventCreate(&m->first, 0));
    NEED(cuEventCreate(&m->last, 0));
    NEED(cuMemAlloc_v2(&m->mem, 1 << 16));
    NEED(cuMemAlloc_v2(&m->large, 2 * m->half));
    NEED(cuMemHostAlloc((void **)&m->pinned, m->half, CU_MEMHOSTALLOC_PORTABLE));
    memset(m->pinned, 0, m->half);
    for (int i = 0; i < 4; i++)
        ((uint64_t *)(void *)(m->pinned + 512))[i] = m->mem + 4096 * (uint64_t)(i + 1);
    NEED(cuMemcpyHtoD_v2(m->mem, m->pinned, 1 << 16));
    for (size_t done = 0; done < 2 * m->half; done += m->half)
        NEED(cuMemsetD32_v2(m->large + done, 0x3f800000, m->half / 4));
    free(image);
}

static void close_machine(machine *m)
{
    NEED(cuEventDestroy_v2(m->first));
    NEED(cuEventDestroy_v2(m->last));
    NEED(cuMemFree_v2(m->mem));
    NEED(cuMemFree_v2(m->large));
    NEED(cuMemFreeHost(m->pinned));
    NEED(cuStreamDestroy_v2(m->stream));
    NEED(cuModuleUnload(m->module));
    NEED(cuCtxSetCurrent(NULL));
    NEED(cuDevicePrimaryCtxRelease_v2(0));
}

int main(int argc, char **argv)
{
    static machine m;
    m.host = argc > 1 && strcmp(argv[1], "tiny") == 0;
    m.many = m.host ? 5 : 2000;
    m.half = m.host ? (size_t)1 << 16 : (size_t)256 << 20;
    open_machine(&m);
    tell(&m, "empty kernel, one after the other", launches);
    tell(&m, "empty kernel, time of the call", launches_issued);
    tell(&m, "empty kernel, launched and waited for", launches_waited);
    tell(&m, "wait for an idle stream", idle_waits);
    tell(&m, "event recorded", events);
    tell(&m, "event asked", event_queries);
    tell(&m, "copy of 256 bytes to the device", copies_to);
    tell(&m, "copy of 4 bytes to the host, waited for", copies_from);
    tell(&m, "1 MiB taken from the pool and given back", allocations);
    tell_graphs(&m);
    tell_updates(&m);
    tell_rate(&m, "copy by the driver, read and written", copy_by_driver, 2);
    tell_rate(&m, "copy by a kernel, read and written", copy_by_kernel, 2);
    tell_rate(&m, "sum by a kernel, read", read_by_kernel, 1);
    tell_rate(&m, "copy to the device, pinned", copy_to_device, 1);
    tell_rate(&m, "copy to the host, pinned", copy_to_host, 1);
    close_machine(&m);
    return 0;
}
