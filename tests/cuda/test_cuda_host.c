/*
 * A host that has a CUDA context, a stream and memory of its own beside deepc's, on the stand-in: its stream orders what
 * both do, its memory is read and written where it is, its current context stays.
 *
 * The libraries are those that DEEPC_CUDA and DEEPC_NVRTC name.
 */
#include "tests/t.h"

#include "core/runtime/rt.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "tests/cuda/cuda_driver.h"
#include "tests/unit/lua_run.h"

enum { N = 40 };

typedef struct host {
    CUcontext context;
    CUstream stream;
    CUdeviceptr mem;
    float *pinned;
    int released;
} host;

static void release(void *ctx)
{
    ((host *)ctx)->released++;
}

static void open_host(host *h)
{
    void *p = NULL;
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&h->context, 0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxPushCurrent_v2(h->context), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&h->stream, 1), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&h->mem, N * sizeof(float)), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostAlloc(&p, N * sizeof(float), 0), CUDA_SUCCESS);
    h->pinned = p;
    for (int i = 0; i < N; i++)
        h->pinned[i] = (float)i;
}

static void close_host(host *h)
{
    CUcontext now = NULL;
    CHECK_EQ(cuCtxGetCurrent(&now), CUDA_SUCCESS);
    CHECK(now == h->context); /* as the host had it */
    CHECK_EQ(cuMemFree_v2(h->mem), CUDA_SUCCESS);
    CHECK_EQ(cuMemFreeHost(h->pinned), CUDA_SUCCESS);
    CHECK_EQ(cuStreamDestroy_v2(h->stream), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
}

/* The host fills memory in its stream and does not wait; deepc reads it behind that. */
static void test_stream(host *h)
{
    dc_rt *ctx = NULL;
    dc_config cfg = DC_CONFIG_INIT;
    lua_State *L = luaL_newstate();
    const dc_array a = {DC_F32, 2, {4, 10}, (void *)(uintptr_t)h->mem, N * sizeof(float)};
    dc_array out = {0};
    cfg.device = "cuda:0";
    cfg.stream = h->stream;
    luaL_openlibs(L);
    CHECK_EQ(dc_open(&cfg, &ctx), DC_OK);
    CHECK_EQ(dc_attach(L, ctx), DC_OK);
    CHECK(lua_run(L, "dc = require 'deepc'"));
    CHECK_EQ(cuMemcpyHtoDAsync_v2(h->mem, h->pinned, N * sizeof(float), h->stream), CUDA_SUCCESS);
    CHECK_EQ(dc_push_array(L, &a, release, h), DC_OK);
    lua_setglobal(L, "x");
    CHECK(lua_run(L,
                  "f = dc.fn('f(x: f32[4, 10]) -> f32[4, 10]', function(x) return x * 2 + 1 end)\n"
                  "y = f(x)"));
    lua_getglobal(L, "y");
    CHECK_EQ(dc_to_array(L, -1, &out), DC_OK);
    CHECK(out.data != NULL && out.bytes == N * sizeof(float));
    CHECK_EQ(
        cuMemcpyDtoHAsync_v2(h->pinned, (CUdeviceptr)(uintptr_t)out.data, out.bytes, h->stream),
        CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(h->stream), CUDA_SUCCESS);
    for (int i = 0; i < N; i++)
        CHECK(h->pinned[i] == 2.0f * (float)i + 1.0f);
    lua_pop(L, 1);
    CHECK(lua_run(L, "x, y = nil, nil; collectgarbage(); collectgarbage()"));
    CHECK_EQ(h->released, 1);
    CHECK_EQ(dc_wait(ctx), DC_OK);
    lua_close(L);
}

/*
 * Results that the host copies in its stream and then gives up: their memory is given out again to what is uploaded, at once
 * on the host and behind that copy in the stream.
 */
static void test_given_up_result(host *h)
{
    enum { LARGE = 1 << 20 }; /* elements: three of these are more than the ring of copies holds */
    static const char define[] =
        "dc = require 'deepc'\n"
        "rows = {}\n"
        "for i = 1, 1048576 do rows[i] = 7 end\n"
        "f = dc.fn('f(x: f32[1048576]) -> f32[1048576]', function(x) return x + 1 end)\n"
        "y = f(dc.zeros 'f32[1048576]')";
    dc_rt *ctx = NULL;
    dc_config cfg = DC_CONFIG_INIT;
    lua_State *L = luaL_newstate();
    dc_array out = {0};
    void *p = NULL;
    cfg.device = "cuda:0";
    cfg.stream = h->stream;
    luaL_openlibs(L);
    CHECK_EQ(cuMemHostAlloc(&p, LARGE * sizeof(float), 0), CUDA_SUCCESS);
    float *seen = p;
    CHECK_EQ(dc_open(&cfg, &ctx), DC_OK);
    CHECK_EQ(dc_attach(L, ctx), DC_OK);
    CHECK(lua_run(L, define));
    lua_getglobal(L, "y");
    CHECK_EQ(dc_to_array(L, -1, &out), DC_OK);
    lua_pop(L, 1);
    CHECK_EQ(out.bytes, LARGE * sizeof(float));
    CHECK(lua_run(L, "f(dc.zeros 'f32[1048576]')"));
    CHECK_EQ(cuMemcpyDtoHAsync_v2(seen, (CUdeviceptr)(uintptr_t)out.data, out.bytes, h->stream),
             CUDA_SUCCESS);
    CHECK(lua_run(L, "y = nil; collectgarbage(); collectgarbage()\n"
                     "held = {}\n"
                     "for i = 1, 3 do held[i] = dc.tensor(rows, 'f32') end\n"
                     "assert(held[3][1048576]:item() == 7)"));
    CHECK_EQ(cuStreamSynchronize(h->stream), CUDA_SUCCESS);
    for (int i = 0; i < LARGE; i += 1000)
        CHECK(seen[i] == 1.0f);
    lua_close(L);
    CHECK_EQ(cuMemFreeHost(seen), CUDA_SUCCESS);
}

/* One that works on another device is no stream of this one. */
static void test_other_device(void)
{
    CUcontext context = NULL;
    CUstream stream = NULL;
    CHECK_EQ(cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
    CHECK_EQ(cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&stream, 1), CUDA_SUCCESS);
    for (int number = 0; number < 2; number++) {
        dc_rt *ctx = NULL;
        dc_config cfg = DC_CONFIG_INIT;
        cfg.device = number == 0 ? "cuda:0" : "cuda:1";
        cfg.stream = stream;
        CHECK_EQ(dc_open(&cfg, &ctx), number == 0 ? DC_E_VALUE : DC_OK);
        CHECK((strstr(dc_errmsg(ctx), "dc_config.stream") != NULL) == (number == 0));
        dc_close(ctx);
    }
    CHECK_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    CHECK_EQ(cuCtxPopCurrent_v2(&context), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(1), CUDA_SUCCESS);
}

int main(void)
{
    static host h;
    open_host(&h);
    test_stream(&h);
    test_given_up_result(&h);
    test_other_device();
    close_host(&h);
    return t_done();
}
