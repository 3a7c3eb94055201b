/*
 * A host without Lua whose data is on a GPU: it gives deepc its stream and addresses of its own, and waits once.
 *
 *     deepc policy.lua policy.dcfn
 *     device_host policy.dcfn
 */
#include <cuda.h>
#include <deepc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void need(CUresult error, const char *what)
{
    if (error == CUDA_SUCCESS)
        return;
    fprintf(stderr, "device_host: %s: error %d\n", what, (int)error);
    exit(EXIT_FAILURE);
}

static void *address(CUdeviceptr p)
{
    return (void *)(uintptr_t)p;
}

int main(int argc, char **argv)
{
    static float points[4][2] = {{0, 0}, {0.3f, -0.2f}, {0.9f, 0.9f}, {-0.8f, 0.7f}};
    float inside[4] = {0};
    CUcontext context;
    CUstream stream;
    CUdeviceptr points_at, inside_at;
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *ctx = NULL;
    dc_function *fn = NULL;
    int status = EXIT_FAILURE;

    need(cuInit(0), "the driver");
    need(cuDevicePrimaryCtxRetain(&context, 0), "the device");
    need(cuCtxPushCurrent(context), "its context");
    need(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "a stream");
    need(cuMemAlloc(&points_at, sizeof points), "memory");
    need(cuMemAlloc(&inside_at, sizeof inside), "memory");

    cfg.device = "cuda:0";
    cfg.stream = stream;
    if (dc_open(&cfg, &ctx) != DC_OK ||
        dc_load(ctx, argc > 1 ? argv[1] : "policy.dcfn", &fn) != DC_OK)
        goto failed;

    dc_array x = {DC_F32, 2, {4, 2}, address(points_at), sizeof points};
    dc_array y = {.data = address(inside_at), .bytes = sizeof inside};
    need(cuMemcpyHtoDAsync(points_at, points, sizeof points, stream), "a copy");
    if (dc_call_device(fn, &x, 1, &y, 1) != DC_OK)
        goto failed;
    need(cuMemcpyDtoHAsync(inside, inside_at, sizeof inside, stream), "a copy");
    if (dc_wait(ctx) != DC_OK)
        goto failed;

    for (int i = 0; i < 4; i++)
        printf("%5.2f %5.2f  inside: %.2f\n", points[i][0], points[i][1], inside[i]);
    status = inside[0] > 0.5f && inside[1] > 0.5f && inside[2] < 0.5f && inside[3] < 0.5f
                 ? EXIT_SUCCESS
                 : EXIT_FAILURE;
    goto done;

failed:
    fprintf(stderr, "device_host: %s\n", dc_errmsg(ctx));
done:
    dc_unload(fn);
    dc_close(ctx);
    cuMemFree(points_at);
    cuMemFree(inside_at);
    cuStreamDestroy(stream);
    cuDevicePrimaryCtxRelease(0);
    return status;
}
