#include "backends/registry.h"

#include "backends/cpu/cpu.h"
#include "core/rt.h"

#include <stdio.h>
#include <string.h>

static dc_status open_eval(dc_job *j, dc_device **out)
{
    DC_UNUSED(j);
    *out = dc_host_device_new();
    return DC_OK;
}

static bool describe_eval(const dc_opts *opt, char *line, size_t size)
{
    DC_UNUSED(opt);
    snprintf(line, size, "the reference interpreter: slow, needs no compiler");
    return true;
}

/* A row per device. */
static const struct backend {
    const char *name;
    bool interpret;
    dc_status (*open)(dc_job *j, dc_device **out);
    bool (*describe)(const dc_opts *opt, char *line, size_t size);
} backends[] = {
    {"cpu", false, dc_cpu_open, dc_cpu_describe},
    {"eval", true, open_eval, describe_eval},
};

static dc_status unknown(dc_job *j, const char *name)
{
    char known[128];
    size_t n = 0;
    for (size_t i = 0; i < DC_COUNTOF(backends) && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i > 0 ? ", " : "",
                              backends[i].name);
    return dc_failf(j, DC_ERR_DEVICE, NULL, "no device is called '%.40s'; there are %s", name,
                    known);
}

dc_status dc_backend_open(dc_job *j, const char *name, dc_device **out, bool *interpret)
{
    for (size_t i = 0; i < DC_COUNTOF(backends); i++)
        if (strcmp(name, backends[i].name) == 0) {
            *interpret = backends[i].interpret;
            return backends[i].open(j, out);
        }
    return unknown(j, name);
}

void dc_backend_list(const dc_opts *opt,
                     void (*see)(void *ctx, const char *name, bool usable, const char *line),
                     void *ctx)
{
    for (size_t i = 0; i < DC_COUNTOF(backends); i++) {
        char line[400];
        const bool usable = backends[i].describe(opt, line, sizeof line);
        see(ctx, backends[i].name, usable, line);
    }
}
