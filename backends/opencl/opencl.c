/*
 * The device: which of the library's it is, what schedules and renderers need to know of it, and the
 * table of its functions.
 */
#include "backends/opencl/cl_impl.h"
#include "core/base/number.h"
#include "core/base/shown.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a query that fails, or a device that knows no better, counts as. */
enum { LEAST_VECTOR = 16, MOST_VECTOR = 64, REGISTERS = 16 };
enum { ONE_LANE = 4, THREAD_REGISTERS = 64, MOST_THREADS = 256 }; /* of a thread in a group */
enum { L1 = 32 << 10, L2 = 512 << 10 };
/* What more counts as. */
enum { MOST_UNITS = 1 << 16, MOST_LOCAL = 16 << 20 };

/* --- the target ----------------------------------------------------------------------------- */

static bool is_cpu(const dc_cl_lib *lib, const dc_cl_place *at)
{
    return (dc_cl_device_number(lib, at, CL_DEVICE_TYPE) & CL_TYPE_CPU) != 0;
}

/* Ranges of work items for single threads, or groups of threads? */
static dc_status choose_form(dc_cl *cl, dc_job *j)
{
    const char *wanted = j->opt->target;
    if (wanted[0] == '\0')
        cl->target.simt = !is_cpu(&cl->lib, &cl->at);
    else if (strcmp(wanted, "simt") == 0 || strcmp(wanted, "workers") == 0)
        cl->target.simt = wanted[0] == 's';
    else
        return dc_fail(j, DC_ERR_OPTION,
                       &(dc_fact){.word = {"DEEPC_TARGET", "workers or simt with OpenCL"}});
    return DC_OK;
}

static uint64_t number_within(const dc_cl *cl, cl_uint what, uint64_t least, uint64_t most)
{
    const uint64_t n = dc_cl_device_number(&cl->lib, &cl->at, what);
    return n < least ? least : n > most ? most : n;
}

static int vector_bytes(const dc_cl *cl)
{
    if (cl->target.simt)
        return ONE_LANE;
    uint64_t lanes =
        number_within(cl, CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, LEAST_VECTOR / 4, MOST_VECTOR / 4);
    while ((lanes & (lanes - 1)) != 0) /* OpenCL C has vectors of powers of two, and of 3 */
        lanes &= lanes - 1;
    return 4 * (int)lanes;
}

static uint64_t hash_words(const char *s, uint64_t h)
{
    for (; *s != '\0'; s++)
        h = dc_hash_mix(h, (unsigned char)*s);
    return h;
}

/*
 * The versions decide what is generated, so they are in `features` in words (as many as fit) and in
 * `name` as a number that all of them go into.
 */
static void name_target(dc_cl *cl)
{
    dc_target *t = &cl->target;
    char platform[160], platform_version[160], device[160], version[160], driver[160];
    dc_cl_platform_text(&cl->lib, &cl->at, CL_PLATFORM_NAME, platform, sizeof platform);
    dc_cl_platform_text(&cl->lib, &cl->at, CL_PLATFORM_VERSION, platform_version,
                        sizeof platform_version);
    dc_cl_device_text(&cl->lib, &cl->at, CL_DEVICE_NAME, device, sizeof device);
    dc_cl_device_text(&cl->lib, &cl->at, CL_DEVICE_VERSION, version, sizeof version);
    dc_cl_device_text(&cl->lib, &cl->at, CL_DRIVER_VERSION, driver, sizeof driver);
    const char *const words[] = {platform, platform_version, device, version, driver, cl->options};
    uint64_t h = 0;
    size_t n = 0;
    t->features[0] = '\0';
    for (size_t i = 0; i < DC_COUNTOF(words); i++) {
        h = hash_words(words[i], dc_hash_mix(h, i));
        if (n < sizeof t->features)
            n += (size_t)snprintf(t->features + n, sizeof t->features - n, "%s%s",
                                  i > 0 ? "; " : "", words[i]);
    }
    snprintf(t->name, sizeof t->name, "opencl %s %016" PRIx64 " %.28s",
             t->simt ? "simt" : "workers", h, device);
}

/* Each has a pointer and an offset; kernels that are not simt have two parameters more. */
static uint32_t most_buffers(uint64_t parameter_bytes)
{
    const uint64_t words = parameter_bytes / sizeof(uint64_t);
    return words > 1 << 16 ? 1 << 15 : words > 4 ? (uint32_t)(words - 2) / 2 : 1;
}

static void describe_target(dc_cl *cl)
{
    dc_target *t = &cl->target;
    const dc_cl_lib *lib = &cl->lib;
    snprintf(t->dialect, sizeof t->dialect, "opencl");
    t->no_f64 = dc_cl_device_number(lib, &cl->at, CL_DEVICE_DOUBLE_FP_CONFIG) == 0;
    t->vector_bytes = vector_bytes(cl);
    t->vector_registers = t->simt ? THREAD_REGISTERS : REGISTERS;
    t->group_threads = (int)number_within(cl, CL_DEVICE_MAX_WORK_GROUP_SIZE, 1, MOST_THREADS);
    t->group_bytes = number_within(cl, CL_DEVICE_LOCAL_MEM_SIZE, 0, MOST_LOCAL);
    t->buffers = most_buffers(dc_cl_device_number(lib, &cl->at, CL_DEVICE_MAX_PARAMETER_SIZE));
    t->bundles = t->simt; /* kernels of groups are joined */
    t->l1 = L1;
    t->l2 = L2;
    name_target(cl);
}

static void ask_limits(dc_cl *cl, bool flush)
{
    const dc_cl_lib *lib = &cl->lib;
    const uint64_t fp = dc_cl_device_number(lib, &cl->at, CL_DEVICE_SINGLE_FP_CONFIG);
    cl->limits = (dc_cl_limits){
        .max_alloc = dc_cl_device_number(lib, &cl->at, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
        .max_parameters = dc_cl_device_number(lib, &cl->at, CL_DEVICE_MAX_PARAMETER_SIZE),
        .max_group = dc_cl_device_number(lib, &cl->at, CL_DEVICE_MAX_WORK_GROUP_SIZE),
        .compute_units = (uint32_t)number_within(cl, CL_DEVICE_MAX_COMPUTE_UNITS, 1, MOST_UNITS),
    };
    snprintf(cl->options, sizeof cl->options, "-cl-std=CL1.2 -w%s%s",
             (fp & CL_FP_CORRECTLY_ROUNDED_DIVIDE) != 0 ? " -cl-fp32-correctly-rounded-divide-sqrt"
                                                        : "",
             flush ? " -cl-denorms-are-zero" : "");
}

/* --- opening and closing -------------------------------------------------------------------- */

/* Whatever is not there yet is NULL. */
static void cl_free(dc_device *d)
{
    dc_cl *cl = dc_cl_of(d);
    const dc_cl_api *fn = &cl->lib.fn;
    dc_cl_programs_close(cl);
    dc_cl_memory_close(cl);
    if (cl->timed != NULL)
        fn->ReleaseCommandQueue(cl->timed);
    if (cl->queue != NULL)
        fn->ReleaseCommandQueue(cl->queue);
    if (cl->context != NULL)
        fn->ReleaseContext(cl->context);
    dc_cl_lib_close(&cl->lib);
    pthread_mutex_destroy(&cl->lock);
    dc_xfree(cl);
}

static void drop_device(void *d)
{
    cl_free(d);
}

static const dc_target *cl_target(const dc_device *d)
{
    return &((const dc_cl *)d)->target;
}

static const dc_device_ops ops = {
    .name = "opencl",
    .free = cl_free,
    .target = cl_target,
    .alloc = dc_cl_alloc,
    .release = dc_cl_release,
    .upload = dc_cl_upload,
    .download = dc_cl_download,
    .compile = dc_cl_compile,
    .program_free = dc_cl_program_free,
    .one_by_one = true,
    .compiles_flush = true,
    .settings = dc_cl_settings,
    .toolchain = dc_cl_toolchain,
    .translate = dc_cl_translate,
    .load = dc_cl_load,
    .record = dc_cl_record,
    .recording_free = dc_cl_recording_free,
    .run = dc_cl_run,
    .copy = dc_cl_copy,
    .finish = dc_cl_finish,
};

/*
 * PoCL compiles a program again, for groups of any size, before it gives out its bytes, under a lock that all threads
 * wait for; and it has a cache of its own. So there programs are built together and not kept here.
 */
static void choose_ops(dc_cl *cl)
{
    char version[160];
    dc_cl_platform_text(&cl->lib, &cl->at, CL_PLATFORM_VERSION, version, sizeof version);
    cl->ops = ops;
    cl->device.ops = &cl->ops;
    if (strstr(version, "pocl") == NULL && strstr(version, "PoCL") == NULL)
        return;
    cl->ops.one_by_one = false;
    cl->ops.settings = NULL;
    cl->ops.toolchain = NULL;
    cl->ops.translate = NULL;
    cl->ops.load = NULL;
}

static dc_status open_context(dc_cl *cl, dc_job *j)
{
    const intptr_t properties[] = {CL_CONTEXT_PLATFORM, (intptr_t)cl->at.platform, 0};
    cl_int error = CL_SUCCESS;
    cl->context = cl->lib.fn.CreateContext(properties, 1, &cl->at.device, NULL, NULL, &error);
    if (cl->context == NULL)
        return dc_cl_failed(j, "a context", error);
    cl->queue = cl->lib.fn.CreateCommandQueue(cl->context, cl->at.device, 0, &error);
    return cl->queue != NULL ? DC_OK : dc_cl_failed(j, "a queue", error);
}

static dc_status open_device(dc_cl *cl, dc_job *j, uint32_t number)
{
    char why[300];
    uint32_t n;
    if (!dc_cl_lib_open(j->opt->opencl, &cl->lib, why, sizeof why) ||
        !dc_cl_find(&cl->lib, number, &cl->at, &n, why, sizeof why))
        return dc_failf(j, DC_ERR_DEVICE, "opencl", "%s", why);
    DC_TRY(choose_form(cl, j));
    choose_ops(cl);
    ask_limits(cl, j->opt->flush);
    describe_target(cl);
    return open_context(cl, j);
}

dc_status dc_opencl_open(dc_job *j, uint32_t number, dc_device **out)
{
    dc_cl *cl = dc_xalloc(sizeof *cl);
    cl->device.ops = &ops;
    pthread_mutex_init(&cl->lock, NULL);
    dc_job_defer(j, drop_device, &cl->device);
    DC_TRY(dc_job_settle(j, &cl->device, open_device(cl, j, number)));
    *out = &cl->device;
    return DC_OK;
}

/* "name, platform, OpenCL 3.0 ..., 2 units, 6.2 GiB, kernels for workers" */
static void put_properties(const dc_cl_lib *lib, const dc_cl_place *at, char *line, size_t size)
{
    char name[120], platform[80], version[80], bytes[DC_NUMBER_TEXT];
    dc_cl_device_text(lib, at, CL_DEVICE_NAME, name, sizeof name);
    dc_cl_device_text(lib, at, CL_DEVICE_VERSION, version, sizeof version);
    dc_cl_platform_text(lib, at, CL_PLATFORM_NAME, platform, sizeof platform);
    snprintf(line, size, "%s, %s, %s, %" PRIu64 " units, %s, kernels for %s%s",
             dc_show_name(name).s, dc_show_name(platform).s, dc_show_name(version).s,
             dc_cl_device_number(lib, at, CL_DEVICE_MAX_COMPUTE_UNITS),
             dc_number_bytes(dc_cl_device_number(lib, at, CL_DEVICE_GLOBAL_MEM_SIZE), bytes),
             is_cpu(lib, at) ? "workers" : "groups of threads",
             dc_cl_device_number(lib, at, CL_DEVICE_DOUBLE_FP_CONFIG) == 0 ? ", no f64" : "");
}

bool dc_opencl_describe(const dc_opts *opt, uint32_t number, char *line, size_t size)
{
    dc_cl_lib lib;
    dc_cl_place at;
    uint32_t n;
    if (!dc_cl_lib_open(opt->opencl, &lib, line, size))
        return false;
    const bool found = dc_cl_find(&lib, number, &at, &n, line, size);
    if (found)
        put_properties(&lib, &at, line, size);
    dc_cl_lib_close(&lib);
    return found;
}
