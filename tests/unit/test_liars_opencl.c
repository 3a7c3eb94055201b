/*
 * An OpenCL library that lies: functions here stand before those of the real one, and tell one lie at a time about counts,
 * sizes and texts. What computes then computes right, or ends with a sentence; nothing is read or written out of bounds,
 * which the sanitizers see. Skipped where there is no device of OpenCL.
 */
#define _GNU_SOURCE /* RTLD_NEXT, setenv */
#include "backends/opencl/cl_impl.h"
#include "backends/opencl/opencl.h"
#include "core/base/shown.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lualib.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/folder.h"

/* What is lied about: everything that one function says of `what`. */
typedef struct lie {
    const char *function;
    cl_uint what;
    uint64_t says;
    const char *target;
} lie;

static lie told;
static int times; /* that it was told */
static void *library;

/* The real library's functions are found behind those of this program. */
DC_API void *dlopen(const char *name, int flags)
{
    static void *(*real)(const char *, int);
    void *found = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&real, &found, sizeof found);
    if (name == NULL || strcmp(name, "libOpenCL.so.1") != 0)
        return real(name, flags);
    library = real(name, flags | RTLD_GLOBAL);
    return library != NULL ? real(NULL, flags) : NULL;
}

static bool is_told(const char *function, cl_uint what)
{
    const bool it = told.function != NULL && strcmp(told.function, function) == 0 &&
                    (told.what == what || told.what == 0);
    times += it;
    return it;
}

/* A text that steers a terminal, and has no end. */
static void fill(char *out, size_t room)
{
    static const char text[] = "a\033[31m\u202e";
    for (size_t i = 0; i < room; i++)
        out[i] = text[i % (sizeof text - 1)];
}

/* The answer to a question about `what`: a number in place of a number, one without an end in place of a text. */
static cl_int answer(const char *function, cl_uint what, size_t room, void *out, size_t *n,
                     cl_int status)
{
    if (status != CL_SUCCESS || !is_told(function, what))
        return status;
    if (out != NULL && room <= sizeof told.says)
        memcpy(out, &told.says, room);
    else if (out != NULL)
        fill(out, room);
    if (n != NULL)
        *n = out == NULL || room > sizeof told.says ? (size_t)told.says : room;
    return status;
}

#define REAL(name)                                  \
    static __typeof__(((dc_cl_api *)0)->name) real; \
    void *const found = dlsym(library, "cl" #name); \
    memcpy(&real, &found, sizeof found)

DC_API cl_int clGetPlatformIDs(cl_uint room, cl_platform *out, cl_uint *n);
DC_API cl_int clGetPlatformIDs(cl_uint room, cl_platform *out, cl_uint *n)
{
    REAL(GetPlatformIDs);
    const cl_int status = real(room, out, n);
    if (is_told("GetPlatformIDs", 0))
        *n = (cl_uint)told.says;
    return status;
}

DC_API cl_int clGetDeviceIDs(cl_platform p, uint64_t types, cl_uint room, cl_device *out,
                             cl_uint *n);
DC_API cl_int clGetDeviceIDs(cl_platform p, uint64_t types, cl_uint room, cl_device *out,
                             cl_uint *n)
{
    REAL(GetDeviceIDs);
    const cl_int status = real(p, types, room, out, n);
    if (is_told("GetDeviceIDs", 0))
        *n = (cl_uint)told.says;
    return status;
}

#define ANSWERS(name, object)                                                           \
    DC_API cl_int cl##name(object at, cl_uint what, size_t room, void *out, size_t *n); \
    DC_API cl_int cl##name(object at, cl_uint what, size_t room, void *out, size_t *n)  \
    {                                                                                   \
        REAL(name);                                                                     \
        return answer(#name, what, room, out, n, real(at, what, room, out, n));         \
    }
ANSWERS(GetDeviceInfo, cl_device)

static bool lies_of(const char *function)
{
    return told.function != NULL && strcmp(told.function, function) == 0;
}

/* PoCL, of which no programs are kept, is another platform where there is a lie about them. */
DC_API cl_int clGetPlatformInfo(cl_platform p, cl_uint what, size_t room, void *out, size_t *n);
DC_API cl_int clGetPlatformInfo(cl_platform p, cl_uint what, size_t room, void *out, size_t *n)
{
    REAL(GetPlatformInfo);
    if (!lies_of("GetProgramInfo"))
        return answer("GetPlatformInfo", what, room, out, n, real(p, what, room, out, n));
    snprintf(out, room, "another");
    return CL_SUCCESS;
}

DC_API cl_int clGetKernelWorkGroupInfo(cl_kernel k, cl_device d, cl_uint what, size_t room,
                                       void *out, size_t *n);
DC_API cl_int clGetKernelWorkGroupInfo(cl_kernel k, cl_device d, cl_uint what, size_t room,
                                       void *out, size_t *n)
{
    REAL(GetKernelWorkGroupInfo);
    return answer("GetKernelWorkGroupInfo", what, room, out, n, real(k, d, what, room, out, n));
}

DC_API cl_int clGetEventProfilingInfo(cl_event e, cl_uint what, size_t room, void *out, size_t *n);
DC_API cl_int clGetEventProfilingInfo(cl_event e, cl_uint what, size_t room, void *out, size_t *n)
{
    REAL(GetEventProfilingInfo);
    return answer("GetEventProfilingInfo", what, room, out, n, real(e, what, room, out, n));
}

/* Programs are refused where something is said of what the compiler said of them. */
DC_API cl_int clBuildProgram(cl_program p, cl_uint n, const cl_device *d, const char *options,
                             void (*notify)(cl_program, void *), void *arg);
DC_API cl_int clBuildProgram(cl_program p, cl_uint n, const cl_device *d, const char *options,
                             void (*notify)(cl_program, void *), void *arg)
{
    REAL(BuildProgram);
    return lies_of("GetProgramBuildInfo") ? CL_BUILD_PROGRAM_FAILURE
                                          : real(p, n, d, options, notify, arg);
}
DC_API cl_int clGetProgramBuildInfo(cl_program p, cl_device d, cl_uint what, size_t room, void *out,
                                    size_t *n);
DC_API cl_int clGetProgramBuildInfo(cl_program p, cl_device d, cl_uint what, size_t room, void *out,
                                    size_t *n)
{
    DC_UNUSED(p), DC_UNUSED(d);
    return answer("GetProgramBuildInfo", what, room, out, n, CL_SUCCESS);
}

/* A program of so many bytes, which are letters. */
DC_API cl_int clGetProgramInfo(cl_program p, cl_uint what, size_t room, void *out, size_t *n);
DC_API cl_int clGetProgramInfo(cl_program p, cl_uint what, size_t room, void *out, size_t *n)
{
    REAL(GetProgramInfo);
    if (what != CL_PROGRAM_BINARIES || !is_told("GetProgramInfo", CL_PROGRAM_BINARY_SIZES))
        return answer("GetProgramInfo", what, room, out, n, real(p, what, room, out, n));
    memset(*(unsigned char **)out, 'a', (size_t)told.says);
    return CL_SUCCESS;
}

static const lie lies[] = {
    {"GetPlatformIDs", 0, 0, "workers"},
    {"GetPlatformIDs", 0, UINT32_MAX, "workers"},
    {"GetDeviceIDs", 0, UINT32_MAX, "workers"},
    {"GetPlatformInfo", 0, UINT64_MAX, "workers"},
    {"GetDeviceInfo", CL_DEVICE_NAME, UINT64_MAX, "workers"},
    {"GetDeviceInfo", CL_DEVICE_VERSION, UINT64_MAX, "workers"},
    {"GetDeviceInfo", CL_DEVICE_OPENCL_C_VERSION, UINT64_MAX, "workers"},
    {"GetDeviceInfo", CL_DEVICE_MAX_COMPUTE_UNITS, 0, "workers"},
    {"GetDeviceInfo", CL_DEVICE_MAX_COMPUTE_UNITS, UINT64_MAX, "workers"},
    {"GetDeviceInfo", CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, UINT64_MAX, "workers"},
    {"GetDeviceInfo", CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, 5, "workers"},
    {"GetDeviceInfo", CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0, "workers"},
    {"GetDeviceInfo", CL_DEVICE_MAX_PARAMETER_SIZE, 0, "workers"},
    {"GetDeviceInfo", CL_DEVICE_MAX_WORK_GROUP_SIZE, 0, "simt"},
    {"GetDeviceInfo", CL_DEVICE_MAX_WORK_GROUP_SIZE, 8, "simt"},
    {"GetDeviceInfo", CL_DEVICE_MAX_WORK_GROUP_SIZE, 48, "simt"},
    {"GetDeviceInfo", CL_DEVICE_MAX_WORK_GROUP_SIZE, UINT64_MAX, "simt"},
    {"GetDeviceInfo", CL_DEVICE_LOCAL_MEM_SIZE, 0, "simt"},
    {"GetDeviceInfo", CL_DEVICE_MAX_COMPUTE_UNITS, UINT64_C(1) << 32, "workers"},
    {"GetDeviceInfo", CL_DEVICE_MAX_PARAMETER_SIZE, UINT64_MAX, "workers"},
    {"GetDeviceInfo", CL_DEVICE_MAX_MEM_ALLOC_SIZE, UINT64_MAX, "workers"},
    {"GetDeviceInfo", CL_DEVICE_GLOBAL_MEM_SIZE, UINT64_MAX, "workers"},
    {"GetDeviceInfo", CL_DEVICE_LOCAL_MEM_SIZE, UINT64_MAX, "simt"},
    {"GetKernelWorkGroupInfo", 0, 0, "simt"},
    {"GetKernelWorkGroupInfo", 0, UINT64_MAX, "simt"},
    {"GetEventProfilingInfo", CL_PROFILING_COMMAND_START, UINT64_MAX, "workers"},
    {"GetEventProfilingInfo", CL_PROFILING_COMMAND_END, UINT64_MAX, "workers"},
    {"GetEventProfilingInfo", CL_PROFILING_COMMAND_END, 0, "workers"},
    {"GetProgramInfo", CL_PROGRAM_BINARY_SIZES, 0, "workers"},
    {"GetProgramInfo", CL_PROGRAM_BINARY_SIZES, 100, "workers"},
    {"GetProgramInfo", CL_PROGRAM_BINARY_SIZES, UINT64_MAX, "workers"},
    {"GetProgramBuildInfo", CL_PROGRAM_BUILD_LOG, 0, "workers"},
    {"GetProgramBuildInfo", CL_PROGRAM_BUILD_LOG, 1, "workers"},
    {"GetProgramBuildInfo", CL_PROGRAM_BUILD_LOG, 5000, "workers"},
    {"GetProgramBuildInfo", CL_PROGRAM_BUILD_LOG, UINT64_MAX, "workers"},
};

static const char program[] =
    "local dc = require 'deepc'\n"
    "local target = ...\n"
    "local f = dc.fn('f(x: f32[16, 16]) -> f32[]', function(x)\n"
    "  return (target == 'simt' and x:matmul(x) or x * 15 + 1):sum()\n"
    "end)\n"
    "local good, y = pcall(function() return f(dc.ones 'f32[16, 16]'):item() end)\n"
    "assert(good and y == 16 ^ 3 or not good and #tostring(y) > 10, tostring(y))\n"
    "return good";

/* True: it computed. A device that is none says why. */
static bool compute(void)
{
    dc_rt *ctx = NULL;
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = "opencl:0";
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    bool good = dc_open(&cfg, &ctx) == DC_OK && dc_attach(L, ctx) == DC_OK;
    if (good) {
        luaL_loadstring(L, program);
        lua_pushstring(L, getenv("DEEPC_TARGET"));
        good = CHECK(lua_pcall(L, 1, 1, 0) == LUA_OK);
        if (!good)
            printf("%s %x: %s\n", told.function, told.what, lua_tostring(L, -1));
        good = good && lua_toboolean(L, -1);
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
    CHECK(dc_opencl_count(&opt) <= 1000);
    dc_opencl_describe(&opt, 0, line, sizeof line);
    CHECK(strlen(line) > 10 && dc_shown_is_plain(line, strlen(line), false));
}

static bool compute_with(const lie *l)
{
    told = *l;
    times = 0;
    setenv("DEEPC_TARGET", l->target, 1);
    setenv("DEEPC_CACHE", lies_of("GetProgramInfo") ? folder_root() : "off", 1);
    const bool good = compute();
    describe();
    if (!CHECK(times > 0))
        printf("%s %x: nobody has asked\n", l->function, l->what);
    return good;
}

int main(void)
{
    int computed = 0;
    setenv("DEEPC_CACHE", "off", 1);
    setenv("DEEPC_DEBUG", "time", 1);
    if (CHECK(folder_make())) { /* PoCL compiles a kernel once, not for each lie */
        setenv("POCL_KERNEL_CACHE", "1", 1);
        setenv("POCL_CACHE_DIR", folder_root(), 1);
    }
    if (!compute())
        T_SKIP("no device of OpenCL");
    for (size_t i = 0; i < DC_COUNTOF(lies) && t_skipped == 0; i++)
        computed += compute_with(&lies[i]);
    if (t_skipped == 0)
        CHECK(computed > (int)DC_COUNTOF(lies) / 2);
    folder_remove();
    return t_done();
}
