/* NCCL, found at run time, into a table of functions. */
#include "backends/cuda/cu_nccl.h"
#include "backends/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const dc_library_symbol symbols[] = {
#define NCCL_API(name, symbol, parameters) {#symbol, offsetof(dc_nccl_api, name), false},
#include "backends/cuda/nccl_api.def"
};

static const char *const usual_name = "libnccl.so.2";

const char *dc_nccl_words(nccl_result error)
{
    static const char *const words[] = {
        "NCCL: no error",
        "NCCL: a call of CUDA failed (ncclUnhandledCudaError)",
        "NCCL: a call of the system failed (ncclSystemError)",
        "NCCL: ncclInternalError",
        "NCCL: ncclInvalidArgument",
        "NCCL: ncclInvalidUsage",
        "NCCL: another rank or the network failed (ncclRemoteError)",
        "NCCL: ncclInProgress",
        "NCCL: ncclTimeout"};
    return error >= 0 && (size_t)error < DC_COUNTOF(words) ? words[error]
                                                           : "NCCL: an unknown error";
}

static bool fill_in(struct dc_cu_nccl *n, const char *name)
{
    const char *missing = dc_library_resolve(n->handle, symbols, DC_COUNTOF(symbols), &n->fn);
    if (missing == NULL && n->fn.GetVersion(&n->version) == NCCL_SUCCESS &&
        n->version >= NCCL_OLDEST)
        return true;
    if (missing != NULL)
        snprintf(n->why, sizeof n->why, "%s has no %s: NCCL 2.17 is needed", name, missing);
    else
        snprintf(n->why, sizeof n->why, "%s has version number %d: NCCL 2.17 is needed", name,
                 n->version);
    return false;
}

/* The library stays mapped: it has threads that outlive communicators. */
struct dc_cu_nccl *dc_nccl_open(dc_cu *cu, const char *path)
{
    struct dc_cu_nccl *n = dc_xalloc(sizeof *n);
    const char *name = path[0] != '\0' ? path : usual_name;
    n->cu = cu;
    if (strcmp(path, "off") == 0) {
        snprintf(n->why, sizeof n->why, "DEEPC_NCCL=off");
        return n;
    }
    n->handle = dc_library_open(name, RTLD_NOW | RTLD_NODELETE, n->why, sizeof n->why);
    if (n->handle != NULL && !fill_in(n, name))
        dc_library_close(&n->handle);
    return n;
}

void dc_nccl_unload(struct dc_cu_nccl *n)
{
    dc_library_close(&n->handle);
    while (n->group != NULL) {
        dc_nccl_group *g = n->group;
        n->group = g->next;
        dc_xfree(g);
    }
    dc_xfree(n);
}
