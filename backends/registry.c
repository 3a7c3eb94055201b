#include "backends/registry.h"

#include "backends/cpu/cpu.h"
#include "backends/cuda/cuda.h"
#include "backends/opencl/opencl.h"
#include "core/base/digits.h"
#include "core/runtime/rt.h"

#include <stdio.h>
#include <string.h>

static dc_status open_eval(dc_job *j, const char *set, dc_device **out)
{
    DC_UNUSED(j);
    DC_UNUSED(set);
    *out = dc_host_device_new();
    return DC_OK;
}

static bool describe_eval(const dc_opts *opt, const char *set, char *line, size_t size)
{
    DC_UNUSED(opt);
    DC_UNUSED(set);
    snprintf(line, size, "the reference interpreter: slow, needs no compiler");
    return true;
}

/* A row per device. Where `has_sets`, an instruction set may follow: "cpu:avx2". */
static const struct backend {
    const char *name;
    bool interpret, has_sets;
    dc_status (*open)(dc_job *j, const char *set, dc_device **out);
    bool (*describe)(const dc_opts *opt, const char *set, char *line, size_t size);
} backends[] = {
    {"cpu", false, true, dc_cpu_open, dc_cpu_describe},
    {"cpu:cc", false, true, dc_cpu_open_cc, dc_cpu_describe_cc},
    {"eval", true, false, open_eval, describe_eval},
};

/* Kinds of device of which a machine may have several: "name:0", "name:1"; "name" is the first. */
static const struct kind {
    const char *name;
    dc_status (*open)(dc_job *j, uint32_t number, dc_device **out);
    bool (*describe)(const dc_opts *opt, uint32_t number, char *line, size_t size);
    uint32_t (*count)(const dc_opts *opt);
} kinds[] = {
    {"cuda", dc_cuda_open, dc_cuda_describe, dc_cuda_count},
    {"opencl", dc_opencl_open, dc_opencl_describe, dc_opencl_count},
};

static dc_status unknown_device(dc_job *j, const char *name)
{
    char known[128];
    size_t n = 0;
    for (size_t i = 0; i < DC_COUNTOF(backends) && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s, ", backends[i].name);
    for (size_t i = 0; i < DC_COUNTOF(kinds) && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s:0", i > 0 ? ", " : "",
                              kinds[i].name);
    return dc_failf(j, DC_ERR_DEVICE, NULL, "no device is called '%.40s'; there are %s", name,
                    known);
}

/* Is it one of the kind? Which? */
static bool is_of_kind(const struct kind *k, const char *name, uint32_t *number)
{
    const size_t n = strlen(k->name);
    *number = 0;
    if (strncmp(name, k->name, n) != 0)
        return false;
    if (name[n] == '\0')
        return true;
    uint64_t which;
    if (name[n] != ':' || !dc_digits_whole(name + n + 1, 999999, &which))
        return false;
    *number = (uint32_t)which;
    return true;
}

/* The one with the longest name that `name` begins with, and what follows it; NULL: none. */
static const struct backend *find_backend(const char *name, const char **set)
{
    const struct backend *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < DC_COUNTOF(backends); i++) {
        const struct backend *b = &backends[i];
        const size_t n = strlen(b->name);
        if (n <= longest || strncmp(name, b->name, n) != 0)
            continue;
        const bool more = b->has_sets && name[n] == ':' && name[n + 1] != '\0';
        if (name[n] != '\0' && !more)
            continue;
        found = b;
        longest = n;
        *set = name + n + more;
    }
    return found;
}

bool dc_backend_is(const char *name)
{
    uint32_t number;
    const char *set;
    bool is = find_backend(name, &set) != NULL;
    for (size_t i = 0; i < DC_COUNTOF(kinds); i++)
        is = is || is_of_kind(&kinds[i], name, &number);
    return is;
}

void dc_backend_name(const char *name, char *out, size_t size)
{
    uint32_t number;
    snprintf(out, size, "%s", name);
    for (size_t i = 0; i < DC_COUNTOF(kinds); i++)
        if (is_of_kind(&kinds[i], name, &number))
            snprintf(out, size, "%s:%u", kinds[i].name, number);
}

dc_status dc_backend_open(dc_job *j, const char *name, dc_device **out, bool *interpret)
{
    uint32_t number;
    const char *set;
    const struct backend *b = find_backend(name, &set);
    *interpret = b != NULL && b->interpret;
    if (b != NULL)
        return b->open(j, set, out);
    for (size_t i = 0; i < DC_COUNTOF(kinds); i++)
        if (is_of_kind(&kinds[i], name, &number))
            return kinds[i].open(j, number, out);
    return unknown_device(j, name);
}

bool dc_backend_describe(const dc_opts *opt, const char *name, char *line, size_t size)
{
    uint32_t number;
    const char *set;
    const struct backend *b = find_backend(name, &set);
    if (b != NULL)
        return b->describe(opt, set, line, size);
    for (size_t i = 0; i < DC_COUNTOF(kinds); i++)
        if (is_of_kind(&kinds[i], name, &number))
            return kinds[i].describe(opt, number, line, size);
    snprintf(line, size, "no device is called '%.40s'", name);
    return false;
}

typedef void see_fn(void *ctx, const char *name, bool usable, const char *line);

/* All there are; where there is none, one line that tells why. */
static void list_kind(const struct kind *k, const dc_opts *opt, see_fn *see, void *ctx)
{
    char line[400], name[64];
    const uint32_t n = k->count(opt);
    for (uint32_t i = 0; i < n; i++) {
        const bool usable = k->describe(opt, i, line, sizeof line);
        snprintf(name, sizeof name, "%s:%u", k->name, i);
        see(ctx, name, usable, line);
    }
    if (n == 0)
        see(ctx, k->name, k->describe(opt, 0, line, sizeof line), line);
}

void dc_backend_list(const dc_opts *opt, see_fn *see, void *ctx)
{
    for (size_t i = 0; i < DC_COUNTOF(backends); i++) {
        char line[400];
        const bool usable = backends[i].describe(opt, "", line, sizeof line);
        see(ctx, backends[i].name, usable, line);
    }
    for (size_t i = 0; i < DC_COUNTOF(kinds); i++)
        list_kind(&kinds[i], opt, see, ctx);
}
