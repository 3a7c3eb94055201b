/*
 * The OpenCL library, found at run time, into a table of functions; and the devices it knows.
 */
#include "backends/library.h"
#include "backends/opencl/cl_impl.h"
#include "core/base/digits.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PLATFORMS = 16, MOST_DEVICES = 32 };

static const dc_library_symbol symbols[] = {
#define CL_API(result, name, parameters) {"cl" #name, offsetof(dc_cl_api, name), false},
#include "backends/opencl/cl_api.def"
};

static const struct error_name {
    cl_int number;
    const char *name;
} errors[] = {
#define CL_ERROR(name, number) {(number), "CL_" #name},
#include "backends/opencl/cl_api.def"
};

static const char *const usual_name = "libOpenCL.so.1";

const char *dc_cl_error(cl_int error, char spare[32])
{
    for (size_t i = 0; i < DC_COUNTOF(errors); i++)
        if (errors[i].number == error)
            return errors[i].name;
    snprintf(spare, 32, "OpenCL error %d", (int)error);
    return spare;
}

dc_status dc_cl_failed(dc_job *j, const char *what, cl_int error)
{
    char spare[32];
    return dc_failf(j, DC_ERR_DEVICE, "opencl", "%s: %s", what, dc_cl_error(error, spare));
}

/* --- the library -------------------------------------------------------------------------- */

/*
 * The library stays mapped when it is closed: drivers have threads and handlers that outlive their
 * contexts.
 */
bool dc_cl_lib_open(const char *path, dc_cl_lib *lib, char *why, size_t size)
{
    const bool given = path[0] != '\0';
    const char *name = given ? path : usual_name;
    memset(lib, 0, sizeof *lib);
    lib->handle = dc_library_open(name, RTLD_NOW | RTLD_NODELETE, why, size);
    if (lib->handle == NULL) {
        if (!given)
            snprintf(why, size,
                     "no OpenCL library is installed (%s; Debian: apt-get install "
                     "ocl-icd-libopencl1; DEEPC_OPENCL names one elsewhere)",
                     usual_name);
        return false;
    }
    const char *missing = dc_library_resolve(lib->handle, symbols, DC_COUNTOF(symbols), &lib->fn);
    if (missing == NULL)
        return true;
    snprintf(why, size, "%s has no %s: OpenCL 1.2 is needed", name, missing);
    dc_cl_lib_close(lib);
    return false;
}

void dc_cl_lib_close(dc_cl_lib *lib)
{
    dc_library_close(&lib->handle);
}

/* --- devices ------------------------------------------------------------------------------ */

/* Of n devices that a platform says it has, those that it gave. */
static uint32_t count_given(const cl_device *device, uint32_t n)
{
    uint32_t given = 0;
    while (given < n && given < MOST_DEVICES && device[given] != NULL)
        given++;
    return given;
}

/* Where the platforms have `number` devices or fewer, *at stays as it is. */
static uint32_t count_devices(const dc_cl_lib *lib, uint32_t number, dc_cl_place *at)
{
    cl_platform platform[MOST_PLATFORMS] = {0};
    cl_uint nplatform = 0;
    uint32_t n = 0;
    if (lib->fn.GetPlatformIDs(MOST_PLATFORMS, platform, &nplatform) != CL_SUCCESS)
        return 0;
    for (cl_uint p = 0; p < nplatform && p < MOST_PLATFORMS && platform[p] != NULL; p++) {
        cl_device device[MOST_DEVICES] = {0};
        cl_uint ndevice = 0;
        if (lib->fn.GetDeviceIDs(platform[p], CL_TYPE_ALL, MOST_DEVICES, device, &ndevice) !=
            CL_SUCCESS)
            continue;
        ndevice = count_given(device, ndevice);
        if (number >= n && number - n < ndevice)
            *at = (dc_cl_place){platform[p], device[number - n]};
        n += ndevice;
    }
    return n;
}

static bool refuse_device(char *why, size_t size, uint32_t number, const char *reason)
{
    snprintf(why, size, "device opencl:%u %s", number, reason);
    return false;
}

/* "OpenCL C 1.2 ..." as 12. What is none is older than all. */
static uint32_t version_of(const char *text)
{
    uint32_t major = 0;
    uint64_t minor = 0;
    if (!dc_digits_after(&text, "OpenCL C", 99, &major) || *text++ != '.' ||
        dc_digits_unsigned(&text, NULL, 9, &minor) != DC_DIGITS_OK)
        return 0;
    return major * 10 + (uint32_t)minor;
}

static bool usable(const dc_cl_lib *lib, const dc_cl_place *at, uint32_t number, char *why,
                   size_t size)
{
    char version[64];
    if (dc_cl_device_number(lib, at, CL_DEVICE_AVAILABLE) == 0)
        return refuse_device(why, size, number, "is not available");
    if (dc_cl_device_number(lib, at, CL_DEVICE_COMPILER_AVAILABLE) == 0)
        return refuse_device(why, size, number, "has no compiler");
    if (dc_cl_device_number(lib, at, CL_DEVICE_ENDIAN_LITTLE) == 0)
        return refuse_device(why, size, number, "has the other byte order");
    dc_cl_device_text(lib, at, CL_DEVICE_OPENCL_C_VERSION, version, sizeof version);
    if (version_of(version) < 12)
        return refuse_device(why, size, number, "is older than OpenCL C 1.2");
    return true;
}

bool dc_cl_find(const dc_cl_lib *lib, uint32_t number, dc_cl_place *out, uint32_t *n, char *why,
                size_t size)
{
    *n = count_devices(lib, number, out);
    if (*n == 0)
        snprintf(why, size,
                 "the OpenCL library knows no device (Debian: apt-get install pocl-opencl-icd, "
                 "or the driver of a GPU)");
    else if (number >= *n)
        snprintf(why, size, "there is no device opencl:%u, the last is opencl:%u", number, *n - 1);
    else
        return usable(lib, out, number, why, size);
    return false;
}

uint32_t dc_opencl_count(const dc_opts *opt)
{
    char why[300];
    dc_cl_lib lib;
    dc_cl_place at;
    if (!dc_cl_lib_open(opt->opencl, &lib, why, sizeof why))
        return 0;
    const uint32_t n = count_devices(&lib, UINT32_MAX, &at);
    dc_cl_lib_close(&lib);
    return n;
}

/* --- what it says of itself --------------------------------------------------------------- */

/* A text of any length, cut to the room there is, without spaces at either end. */
static void trim(char *text)
{
    size_t n = strlen(text), from = strspn(text, " ");
    while (n > from && text[n - 1] == ' ')
        n--;
    memmove(text, text + from, n - from);
    text[n - from] = '\0';
}

void dc_cl_platform_text(const dc_cl_lib *lib, const dc_cl_place *at, cl_uint what, char *out,
                         size_t size)
{
    char all[1024] = "";
    if (lib->fn.GetPlatformInfo(at->platform, what, sizeof all - 1, all, NULL) != CL_SUCCESS)
        all[0] = '\0';
    trim(all);
    snprintf(out, size, "%s", all);
}

void dc_cl_device_text(const dc_cl_lib *lib, const dc_cl_place *at, cl_uint what, char *out,
                       size_t size)
{
    char all[1024] = "";
    if (lib->fn.GetDeviceInfo(at->device, what, sizeof all - 1, all, NULL) != CL_SUCCESS)
        all[0] = '\0';
    trim(all);
    snprintf(out, size, "%s", all);
}

/* Numbers have four or eight bytes, in the order of this machine. */
uint64_t dc_cl_device_number(const dc_cl_lib *lib, const dc_cl_place *at, cl_uint what)
{
    uint64_t wide = 0;
    uint32_t narrow;
    size_t n = 0;
    if (lib->fn.GetDeviceInfo(at->device, what, sizeof wide, &wide, &n) != CL_SUCCESS)
        return 0;
    if (n > sizeof narrow)
        return wide;
    memcpy(&narrow, &wide, sizeof narrow);
    return narrow;
}
