/* Devices and their primary contexts; each thread has a stack of current contexts. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "standin.h"

enum { VERSION = 13000, DEEP = 16 };

device_state device[MOST_DEVICES];
static bool inited;
static _Thread_local context *current[DEEP];
static _Thread_local int depth;

static CUresult check_device(CUdevice d)
{
    if (!inited)
        return CUDA_ERROR_NOT_INITIALIZED;
    return d >= 0 && d < set.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* The library ------------------------------------------------------------------------------- */

EXPORT CUresult cuInit(unsigned flags)
{
    ENTER;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (set.devices == 0)
        return CUDA_ERROR_NO_DEVICE;
    if (!inited)
        memory_init();
    inited = true;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    ENTER;
    *version = VERSION;
    return CUDA_SUCCESS;
}

/* clang-format off */
static const struct { CUresult e; const char *name, *text; } errors[] = {
    {0,   "CUDA_SUCCESS",                       "no error"},
    {1,   "CUDA_ERROR_INVALID_VALUE",           "invalid argument"},
    {2,   "CUDA_ERROR_OUT_OF_MEMORY",           "out of memory"},
    {3,   "CUDA_ERROR_NOT_INITIALIZED",         "initialization error"},
    {4,   "CUDA_ERROR_DEINITIALIZED",           "driver shutting down"},
    {46,  "CUDA_ERROR_DEVICE_UNAVAILABLE",      "device is busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE",               "no device is there"},
    {101, "CUDA_ERROR_INVALID_DEVICE",          "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE",           "kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT",         "invalid context"},
    {205, "CUDA_ERROR_MAP_FAILED",              "mapping failed"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU",       "no kernel image for the device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE",       "uncorrectable memory error"},
    {218, "CUDA_ERROR_INVALID_PTX",             "invalid PTX"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "PTX of an unsupported toolchain"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM",        "a call of the system failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE",          "invalid handle"},
    {500, "CUDA_ERROR_NOT_FOUND",               "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY",               "not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS",         "illegal memory access"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources for a launch"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT",          "the launch timed out"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS",      "misaligned address"},
    {719, "CUDA_ERROR_LAUNCH_FAILED",           "unspecified launch failure"},
    {800, "CUDA_ERROR_NOT_PERMITTED",           "not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED",           "not supported"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",  "driver and library differ"},
    {999, "CUDA_ERROR_UNKNOWN",                 "unknown error"},
};
/* clang-format on */

static CUresult error_text(CUresult e, bool name, const char **text)
{
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].e == e)
            *text = name ? errors[i].name : errors[i].text;
    return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorName(CUresult e, const char **text)
{
    return error_text(e, true, text);
}

EXPORT CUresult cuGetErrorString(CUresult e, const char **text)
{
    return error_text(e, false, text);
}

/* By a name without suffix: the newest version that there is here. */
EXPORT CUresult cuGetProcAddress_v2(const char *name, void **entry, int version,
                                    unsigned long long flags, int *status)
{
    static const char *const suffix[] = {"_v3", "_v2", ""};
    ENTER;
    Dl_info self;
    dladdr(__extension__(void *) cuInit, &self);
    void *lib = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    *entry = NULL;
    for (size_t i = 0; *entry == NULL && version <= VERSION && flags <= 1 && i < 3; i++) {
        char full[100];
        snprintf(full, sizeof full, "%s%s", name, suffix[i]);
        *entry = dlsym(lib, full);
    }
    dlclose(lib);
    if (status != NULL)
        *status =
            *entry != NULL ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *entry != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Devices ----------------------------------------------------------------------------------- */

EXPORT CUresult cuDeviceGetCount(int *n)
{
    ENTER;
    *n = set.devices;
    return inited ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

EXPORT CUresult cuDeviceGet(CUdevice *d, int ordinal)
{
    ENTER;
    *d = ordinal;
    return check_device(ordinal);
}

EXPORT CUresult cuDeviceGetName(char *name, int room, CUdevice d)
{
    ENTER;
    TRY(check_device(d));
    snprintf(name, (size_t)room, "CUDA stand-in sm_%d", set.sm[d]);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice d)
{
    ENTER;
    *bytes = set.memory;
    return check_device(d);
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice d)
{
    ENTER;
    memset(uuid, 0xab, sizeof *uuid);
    uuid->bytes[15] = (char)d;
    return check_device(d);
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice d)
{
    return cuDeviceGetUuid_v2(uuid, d);
}

EXPORT CUresult cuDeviceGetPCIBusId(char *id, int room, CUdevice d)
{
    ENTER;
    snprintf(id, (size_t)room, "0000:%02X:00.0", (unsigned)d + 1);
    return check_device(d);
}

EXPORT CUresult cuDeviceCanAccessPeer(int *yes, CUdevice d, CUdevice peer)
{
    ENTER;
    *yes = 0;
    TRY(check_device(peer));
    return check_device(d);
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute a, CUdevice d)
{
    ENTER;
    TRY(check_device(d));
    /* clang-format off */
    const struct { CUdevice_attribute a; int value; } row[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, ENGINE_MOST_THREADS},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, ENGINE_MOST_THREADS},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, STATIC_SHARED},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, shared_of_block(set.sm[d])},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, shared_of_block(set.sm[d]) + 1024},
        {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, set.units},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1785000},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, set.sm[d] / 10},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, set.sm[d] % 10},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, d + 1},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0}, {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0}, {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0},
        {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0}, {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0}, {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (row[i].a == a) {
            *value = row[i].value;
            return CUDA_SUCCESS;
        }
    return misuse(__func__, "the stand-in does not know attribute %d", a);
}

/* Contexts ---------------------------------------------------------------------------------- */

context *standin_current(const char *entry)
{
    context *c = depth > 0 ? current[depth - 1] : NULL;
    if (c == NULL)
        misuse(entry, "no context is current in this thread");
    else if (!c->h.alive)
        misuse(entry, "the current context has been destroyed");
    else
        return c;
    return NULL;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice d)
{
    ENTER;
    TRY(check_device(d));
    if (device[d].primary == NULL) {
        device[d].primary = new_handle(CONTEXT, sizeof(context), d, CALLER);
        device[d].primary->device = d;
        device[d].dead = CUDA_SUCCESS;
    }
    device[d].retained++;
    *ctx = (CUcontext)(void *)device[d].primary;
    return CUDA_SUCCESS;
}

static void end_handles(int d)
{
    static const char *const name[] = {[MODULE] = "module",
                                       [STREAM] = "stream",
                                       [EVENT] = "event",
                                       [GRAPH] = "graph",
                                       [EXEC] = "executable graph"};
    for (handle *h = handles; h != NULL; h = h->next) {
        if (!h->alive || h->device != d)
            continue;
        if (h->kind <= EXEC && h->kind != CONTEXT && name[h->kind] != NULL &&
            device[d].dead == CUDA_SUCCESS)
            misuse("leak", "%s %lu, made at %p", name[h->kind], (unsigned long)h->serial, h->where);
        if (h->kind == STREAM)
            end_stream((stream *)(void *)h);
        h->alive = false;
    }
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d)
{
    ENTER;
    TRY(check_device(d));
    if (device[d].retained == 0) {
        misuse(__func__, "released more often than retained");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (--device[d].retained > 0)
        return CUDA_SUCCESS;
    drain_device(d);
    end_stream(stream_of(NULL, d));
    memory_leaks(d);
    end_handles(d);
    device[d].primary = NULL;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice d, unsigned *flags, int *active)
{
    ENTER;
    TRY(check_device(d));
    *flags = device[d].flags;
    *active = device[d].primary != NULL;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice d, unsigned flags)
{
    ENTER;
    TRY(check_device(d));
    device[d].flags = flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *ctx)
{
    ENTER;
    *ctx = depth > 0 ? (CUcontext)(void *)current[depth - 1] : NULL;
    return inited ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext ctx)
{
    ENTER;
    if (ctx != NULL)
        WANT(ctx, CONTEXT);
    depth += depth == 0;
    current[depth - 1] = (context *)(void *)ctx;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    ENTER;
    WANT(ctx, CONTEXT);
    if (depth == DEEP)
        return misuse(__func__, "%d contexts are pushed", depth);
    current[depth++] = (context *)(void *)ctx;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
    ENTER;
    if (depth == 0) {
        misuse(__func__, "no context was pushed");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    depth--;
    if (ctx != NULL)
        *ctx = (CUcontext)(void *)current[depth];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *d)
{
    ENTER_CONTEXT;
    *d = ctx->device;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    ENTER_CONTEXT;
    TRY(drain_device(ctx->device));
    pools_settle(ctx->device);
    return CUDA_SUCCESS;
}
