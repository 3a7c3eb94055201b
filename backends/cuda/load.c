/*
 * The CUDA driver, found at run time, into a table of functions; and the devices it knows.
 */
#include "backends/cuda/cu_impl.h"
#include "backends/library.h"
#include "core/base/shown.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { OLDEST_DRIVER = 12000, OLDEST_SM = 70 };
/* What a driver may say. */
enum { MOST_DEVICES = 1000, MOST_UNITS = 1 << 16, LEAST_SHARED = 48 << 10, MOST_SHARED = 16 << 20 };

static const dc_library_symbol symbols[] = {
#define CU_API(name, symbol, parameters) {#symbol, offsetof(dc_cu_api, name), false},
#include "backends/cuda/cu_api.def"
};

static const struct error_name {
    cu_result number;
    const char *name;
} errors[] = {
#define CU_ERROR(name, number, lost) {(number), "CUDA_ERROR_" #name},
#include "backends/cuda/cu_api.def"
};

static const char *const usual_name = "libcuda.so.1";
static const char *const no_device =
    "the CUDA driver knows no device (CUDA_VISIBLE_DEVICES may hide some)";

const char *dc_cu_error(cu_result error, char spare[32])
{
    for (size_t i = 0; i < DC_COUNTOF(errors); i++)
        if (errors[i].number == error)
            return errors[i].name;
    snprintf(spare, 32, "CUDA error %d", error);
    return spare;
}

/* --- the library -------------------------------------------------------------------------- */

static bool refuse(char *why, size_t size, const char *name, const char *reason, const char *more)
{
    snprintf(why, size, "%s%s%s", name, reason, more);
    return false;
}

/* Whose functions are all there. */
static bool is_recent(dc_cu_lib *lib, const char *name, char *why, size_t size)
{
    int version = 0;
    char spare[32];
    const char *missing = dc_library_resolve(lib->handle, symbols, DC_COUNTOF(symbols), &lib->fn);
    if (missing != NULL)
        return refuse(why, size, name, ": a driver for CUDA 12 or later is needed, there is no ",
                      missing);
    const cu_result error = lib->fn.Init(0);
    if (error == CU_ERROR_NO_DEVICE)
        return refuse(why, size, no_device, "", "");
    if (error != CU_SUCCESS)
        return refuse(why, size, "the CUDA driver does not start: ", dc_cu_error(error, spare), "");
    if (lib->fn.DriverGetVersion(&version) != CU_SUCCESS || version < OLDEST_DRIVER) {
        snprintf(why, size, "%s is for CUDA %d.%d: 12.0 or later is needed", name, version / 1000,
                 version % 1000 / 10);
        return false;
    }
    return true;
}

/* The library stays mapped when it is closed: the driver has threads that outlive contexts. */
bool dc_cu_lib_open(const char *path, dc_cu_lib *lib, char *why, size_t size)
{
    const bool given = path[0] != '\0';
    const char *name = given ? path : usual_name;
    memset(lib, 0, sizeof *lib);
    lib->handle = dc_library_open(name, RTLD_NOW | RTLD_NODELETE, why, size);
    if (lib->handle == NULL) {
        if (!given)
            refuse(why, size, "no NVIDIA driver is installed (", usual_name,
                   "; DEEPC_CUDA names one elsewhere)");
        return false;
    }
    if (is_recent(lib, name, why, size))
        return true;
    dc_cu_lib_close(lib);
    return false;
}

void dc_cu_lib_close(dc_cu_lib *lib)
{
    dc_library_close(&lib->handle);
}

/* --- devices ------------------------------------------------------------------------------ */

int dc_cu_attribute(const dc_cu_lib *lib, cu_device device, int which)
{
    int value = 0;
    return lib->fn.DeviceGetAttribute(&value, which, device) == CU_SUCCESS ? value : 0;
}

/* A number that cannot be counts as not known. */
static int attribute_within(const dc_cu_lib *lib, cu_device device, int which, int least, int most)
{
    const int value = dc_cu_attribute(lib, device, which);
    return value >= least && value <= most ? value : 0;
}

int dc_cu_capability(const dc_cu_lib *lib, cu_device device)
{
    const int major = attribute_within(lib, device, CU_ATTRIBUTE_MAJOR, 1, 99);
    const int minor = dc_cu_attribute(lib, device, CU_ATTRIBUTE_MINOR);
    return minor >= 0 && minor <= 9 ? 10 * major + minor : 0;
}

int dc_cu_units(const dc_cu_lib *lib, cu_device device)
{
    return attribute_within(lib, device, CU_ATTRIBUTE_MULTIPROCESSORS, 1, MOST_UNITS);
}

size_t dc_cu_shared_bytes(const dc_cu_lib *lib, cu_device device)
{
    const int bytes =
        attribute_within(lib, device, CU_ATTRIBUTE_SHARED_OPTIN, LEAST_SHARED, MOST_SHARED);
    return bytes > 0 ? (size_t)bytes : LEAST_SHARED;
}

static bool usable(const dc_cu_lib *lib, cu_device at, uint32_t number, char *why, size_t size)
{
    const int sm = dc_cu_capability(lib, at);
    const char *lacks = NULL;
    if (dc_cu_attribute(lib, at, CU_ATTRIBUTE_UNIFIED_ADDRESSING) == 0)
        lacks = "one address space with the host";
    else if (dc_cu_attribute(lib, at, CU_ATTRIBUTE_MEMORY_POOLS) == 0)
        lacks = "memory pools";
    if (sm < OLDEST_SM)
        snprintf(why, size, "device cuda:%u has compute capability %d.%d, %d.%d or later is needed",
                 number, sm / 10, sm % 10, OLDEST_SM / 10, OLDEST_SM % 10);
    else if (lacks != NULL)
        snprintf(why, size, "device cuda:%u has no %s", number, lacks);
    else
        return true;
    return false;
}

bool dc_cu_find(const dc_cu_lib *lib, uint32_t number, cu_device *out, uint32_t *n, char *why,
                size_t size)
{
    int count = 0;
    if (lib->fn.DeviceGetCount(&count) != CU_SUCCESS)
        count = 0;
    *n = count <= 0 ? 0 : count < MOST_DEVICES ? (uint32_t)count : MOST_DEVICES;
    if (*n == 0)
        snprintf(why, size, "%s", no_device);
    else if (number >= *n)
        snprintf(why, size, "there is no device cuda:%u, the last is cuda:%u", number, *n - 1);
    else if (lib->fn.DeviceGet(out, (int)number) != CU_SUCCESS)
        snprintf(why, size, "device cuda:%u is not available", number);
    else
        return usable(lib, *out, number, why, size);
    return false;
}

uint32_t dc_cuda_count(const dc_opts *opt)
{
    char why[300];
    dc_cu_lib lib;
    cu_device at;
    uint32_t n = 0;
    if (!dc_cu_lib_open(opt->cuda, &lib, why, sizeof why))
        return 0;
    dc_cu_find(&lib, UINT32_MAX, &at, &n, why, sizeof why);
    dc_cu_lib_close(&lib);
    return n;
}

bool dc_cuda_describe(const dc_opts *opt, uint32_t number, char *line, size_t size)
{
    dc_cu_lib lib;
    cu_device at;
    uint32_t n;
    int version = 0;
    char name[120] = "", compiler[300];
    size_t bytes = 0;
    if (!dc_cu_lib_open(opt->cuda, &lib, line, size))
        return false;
    const bool found = dc_cu_find(&lib, number, &at, &n, line, size);
    if (found) {
        lib.fn.DeviceGetName(name, sizeof name - 1, at); /* which may have no end */
        lib.fn.DeviceTotalMem(&bytes, at);
        lib.fn.DriverGetVersion(&version);
        dc_cu_compiler_describe(opt, compiler, sizeof compiler);
        snprintf(
            line, size,
            "%s, compute capability %d.%d, %d multiprocessors, %.1f GiB, driver for CUDA %d.%d, %s",
            dc_show_name(name).s, dc_cu_capability(&lib, at) / 10, dc_cu_capability(&lib, at) % 10,
            dc_cu_units(&lib, at), (double)bytes / (double)((size_t)1 << 30), version / 1000,
            version % 1000 / 10, compiler);
    }
    dc_cu_lib_close(&lib);
    return found;
}
