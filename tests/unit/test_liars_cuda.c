/*
 * A CUDA driver and an NVRTC that lie: functions here stand before those of the stand-in (tests/cuda), and tell one lie
 * at a time about counts, sizes, times and texts. What computes then computes right, or ends with a sentence; nothing is
 * read or written out of bounds, which the sanitizers see. Skipped where DEEPC_CUDA and DEEPC_NVRTC do not name the
 * stand-in.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "backends/cuda/cu_impl.h"
#include "backends/cuda/cuda.h"
#include "core/base/shown.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lualib.h>

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"

/* What one function says: of `what`, if it answers about several things. */
typedef struct lie {
    const char *function;
    int what;
    int64_t says;
    bool computes; /* all the same */
} lie;

static lie told;
static int times; /* that it was told */
static void *driver, *compiler;
static const char *driver_path, *compiler_path;

/* The functions of the stand-in are found behind those of this program. */
DC_API void *dlopen(const char *name, int flags)
{
    static void *(*real)(const char *, int);
    void *found = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&real, &found, sizeof found);
    const bool is_driver = name != NULL && driver_path != NULL && strcmp(name, driver_path) == 0;
    if (!is_driver && (name == NULL || compiler_path == NULL || strcmp(name, compiler_path) != 0))
        return real(name, flags);
    void **const at = is_driver ? &driver : &compiler;
    *at = real(name, flags | RTLD_GLOBAL);
    return *at != NULL ? real(NULL, flags) : NULL;
}

static bool is_told(const char *function, int what)
{
    const bool it = told.function != NULL && strcmp(told.function, function) == 0 &&
                    (told.what == what || told.what == 0);
    times += it;
    return it;
}

/* A function of `library` that says, of `what`, the number in place of *out. */
#define LIES(type, library, name, what, out, parameters, arguments) \
    DC_API type name parameters;                                    \
    DC_API type name parameters                                     \
    {                                                               \
        static type(*real) parameters;                              \
        void *const found = dlsym(library, #name);                  \
        memcpy(&real, &found, sizeof found);                        \
        const type status = real arguments;                         \
        if (is_told(#name, what))                                   \
            *(out) = (__typeof__(*(out)))told.says;                 \
        return status;                                              \
    }

LIES(cu_result, driver, cuDriverGetVersion, 0, n, (int *n), (n))
LIES(cu_result, driver, cuDeviceGetCount, 0, n, (int *n), (n))
LIES(cu_result, driver, cuDeviceTotalMem_v2, 0, n, (size_t * n, cu_device d), (n, d))
LIES(cu_result, driver, cuDeviceGetAttribute, which, n, (int *n, int which, cu_device d),
     (n, which, d))
LIES(cu_result, driver, cuMemGetAllocationGranularity, 0, n,
     (size_t * n, const cu_mem_properties *p, int which), (n, p, which))
LIES(int, compiler, nvrtcGetNumSupportedArchs, 0, n, (int *n), (n))
LIES(int, compiler, nvrtcGetCUBINSize, 0, n, (nvrtc_program p, size_t *n), (p, n))
LIES(int, compiler, nvrtcGetProgramLogSize, 0, n, (nvrtc_program p, size_t *n), (p, n))

DC_API cu_result cuDeviceGetName(char *name, int room, cu_device d);
DC_API cu_result cuDeviceGetName(char *name, int room, cu_device d)
{
    static const char text[] = "a\033[31m\u202e"; /* steers a terminal */
    for (int i = 0; i < room; i++)
        name[i] = text[i % (int)(sizeof text - 1)];
    if (!is_told("cuDeviceGetName", 0)) /* else it has no end */
        name[room - 1] = '\0';
    return d < 0 ? 1 : CU_SUCCESS;
}

/* Those of a compiler that knows forty, whatever number was said. */
DC_API int nvrtcGetSupportedArchs(int *arch);
DC_API int nvrtcGetSupportedArchs(int *arch)
{
    const bool lies = is_told("nvrtcGetSupportedArchs", 0);
    for (int i = 0; i < 40; i++)
        arch[i] = lies ? (int)told.says : 80 + i;
    return 0;
}

/* Microseconds; INT64_MAX: no number. */
DC_API cu_result cuEventElapsedTime(float *ms, cu_event from, cu_event to);
DC_API cu_result cuEventElapsedTime(float *ms, cu_event from, cu_event to)
{
    *ms = 1;
    if (is_told("cuEventElapsedTime", 0))
        *ms = told.says == INT64_MAX ? NAN : (float)told.says / 1000;
    return from == to;
}

/* Texts are refused where the size of their log is lied about: letters, and no end. */
static bool lies_of_log(void)
{
    return told.function != NULL && strcmp(told.function, "nvrtcGetProgramLogSize") == 0;
}

DC_API int nvrtcCompileProgram(nvrtc_program p, int n, const char *const *options);
DC_API int nvrtcCompileProgram(nvrtc_program p, int n, const char *const *options)
{
    static int (*real)(nvrtc_program, int, const char *const *);
    void *const found = dlsym(compiler, "nvrtcCompileProgram");
    memcpy(&real, &found, sizeof found);
    return lies_of_log() ? 6 : real(p, n, options);
}
DC_API int nvrtcGetProgramLog(nvrtc_program p, char *log);
DC_API int nvrtcGetProgramLog(nvrtc_program p, char *log)
{
    static int (*real)(nvrtc_program, char *);
    void *const found = dlsym(compiler, "nvrtcGetProgramLog");
    memcpy(&real, &found, sizeof found);
    if (!lies_of_log())
        return real(p, log);
    memset(log, 'a', (size_t)told.says);
    return 0;
}

static const lie lies[] = {
    {"cuDriverGetVersion", 0, INT32_MAX, true},
    {"cuDriverGetVersion", 0, INT32_MIN, false},
    {"cuDeviceGetCount", 0, INT32_MAX, true},
    {"cuDeviceGetCount", 0, INT32_MIN, false},
    {"cuDeviceGetAttribute", CU_ATTRIBUTE_MAJOR, INT32_MAX, false},
    {"cuDeviceGetAttribute", CU_ATTRIBUTE_MAJOR, INT32_MIN, false},
    {"cuDeviceGetAttribute", CU_ATTRIBUTE_MAJOR, 1000, false},
    {"cuDeviceGetAttribute", CU_ATTRIBUTE_MINOR, INT32_MAX, false},
    {"cuDeviceGetAttribute", CU_ATTRIBUTE_MINOR, -1, false},
    {"cuDeviceGetAttribute", CU_ATTRIBUTE_MULTIPROCESSORS, 0, true},
    {"cuDeviceGetAttribute", CU_ATTRIBUTE_MULTIPROCESSORS, INT32_MIN, true},
    {"cuDeviceGetAttribute", CU_ATTRIBUTE_MULTIPROCESSORS, INT32_MAX, true},
    {"cuDeviceGetAttribute", CU_ATTRIBUTE_SHARED_OPTIN, -1, true},
    {"cuDeviceGetAttribute", CU_ATTRIBUTE_SHARED_OPTIN, INT32_MAX, true},
    {"cuDeviceGetAttribute", CU_ATTRIBUTE_L2_BYTES, INT32_MIN, true},
    {"cuDeviceGetAttribute", CU_ATTRIBUTE_L2_BYTES, INT32_MAX, true},
    {"cuDeviceTotalMem_v2", 0, -1, true},
    {"cuDeviceGetName", 0, 0, true},
    {"cuMemGetAllocationGranularity", 0, 0, true},
    {"cuMemGetAllocationGranularity", 0, 3, true},
    {"cuMemGetAllocationGranularity", 0, -1, true},
    {"cuMemGetAllocationGranularity", 0, INT64_MIN, true},
    {"cuEventElapsedTime", 0, INT64_MAX, true},
    {"cuEventElapsedTime", 0, -1000, true},
    {"cuEventElapsedTime", 0, INT64_MAX - 1, true},
    {"nvrtcGetNumSupportedArchs", 0, 0, true},
    {"nvrtcGetNumSupportedArchs", 0, INT32_MIN, true},
    {"nvrtcGetNumSupportedArchs", 0, INT32_MAX, true},
    {"nvrtcGetNumSupportedArchs", 0, 1, true}, /* fewer than there are */
    {"nvrtcGetSupportedArchs", 0, INT32_MIN, true},
    {"nvrtcGetSupportedArchs", 0, INT32_MAX, true},
    {"nvrtcGetSupportedArchs", 0, 50, true}, /* older than the device: PTX */
    {"nvrtcGetCUBINSize", 0, 0, true},       /* from here on the interpreter */
    {"nvrtcGetCUBINSize", 0, -1, true},
    {"nvrtcGetProgramLogSize", 0, 0, true},
    {"nvrtcGetProgramLogSize", 0, 1, true},
    {"nvrtcGetProgramLogSize", 0, 5000, true},
    {"nvrtcGetProgramLogSize", 0, -1, true},
};

static const char program[] =
    "local dc = require 'deepc'\n"
    "local f = dc.fn('f(x: f32[64, 64]) -> f32[]', function(x)\n"
    "  return (x:matmul(x) + x:softmax(2):cumsum(2)):sum()\n"
    "end)\n"
    "local good, y = pcall(function() return f(dc.ones 'f32[64, 64]'):item() end)\n"
    "assert(good and math.abs(y - 64 * (4096 + 32.5)) < 1 or not good and #tostring(y) > 10, "
    "tostring(y))\n"
    "return good";

/* True: it computed. A device that is none says why. */
static bool compute(void)
{
    dc_rt *ctx = NULL;
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = "cuda:0";
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    bool good = dc_open(&cfg, &ctx) == DC_OK && dc_attach(L, ctx) == DC_OK;
    if (good) {
        good = CHECK(luaL_dostring(L, program) == LUA_OK) && lua_toboolean(L, -1);
    } else {
        CHECK(strlen(dc_errmsg(ctx)) > 10);
        dc_close(ctx);
    }
    lua_close(L);
    return good;
}

/* What `deepc --devices` shows. */
static void describe(void)
{
    char line[1000] = "";
    dc_opts opt;
    const char *bad;
    dc_opts_init(&opt, &bad);
    CHECK(dc_cuda_count(&opt) <= 1000);
    dc_cuda_describe(&opt, 0, line, sizeof line);
    CHECK(strlen(line) > 10 && dc_shown_is_plain(line, strlen(line), false));
}

static void compute_with(const lie *l)
{
    told = *l;
    times = 0;
    if (!CHECK(compute() == l->computes))
        printf("%s %d: %s %lld\n", l->function, l->what,
               l->computes ? "fails with" : "computes with", (long long)l->says);
    describe();
    if (!CHECK(times > 0))
        printf("%s %d: nobody has asked\n", l->function, l->what);
}

int main(void)
{
    setenv("DEEPC_CACHE", "off", 1);
    setenv("DEEPC_DEBUG", "time", 1);
    driver_path = getenv("DEEPC_CUDA");
    compiler_path = getenv("DEEPC_NVRTC");
    void *lib = driver_path != NULL && compiler_path != NULL ? dlopen(driver_path, RTLD_NOW) : NULL;
    if (lib == NULL || dlsym(driver, "cuda_standin_calls") == NULL)
        T_SKIP("DEEPC_CUDA and DEEPC_NVRTC do not name the stand-in");
    for (size_t i = 0; i < DC_COUNTOF(lies) && t_skipped == 0; i++)
        compute_with(&lies[i]);
    if (lib != NULL)
        dlclose(lib);
    return t_done();
}
