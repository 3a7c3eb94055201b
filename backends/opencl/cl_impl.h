/* What the files of this folder share. */
#ifndef DC_BACKENDS_OPENCL_CL_IMPL_H
#define DC_BACKENDS_OPENCL_CL_IMPL_H

#include "backends/opencl/opencl.h"

#include <pthread.h>
#include <stdatomic.h>

/* The types of OpenCL, as wide as its headers have them; handles differ so that they do not mix. */
typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef struct cl_platform_ *cl_platform;
typedef struct cl_device_ *cl_device;
typedef struct cl_context_ *cl_context;
typedef struct cl_queue_ *cl_queue;
typedef struct cl_mem_ *cl_mem;
typedef struct cl_program_ *cl_program;
typedef struct cl_kernel_ *cl_kernel;
typedef struct cl_event_ *cl_event;

enum {
#define CL_INFO(name, number)  CL_##name = (number),
#define CL_ERROR(name, number) CL_##name = (number),
#include "backends/opencl/cl_api.def"
    CL_TYPE_CPU = 2,                      /* a bit of CL_DEVICE_TYPE */
    CL_FP_CORRECTLY_ROUNDED_DIVIDE = 128, /* a bit of CL_DEVICE_SINGLE_FP_CONFIG */
    CL_QUEUE_PROFILING = 2,
    CL_MEM_READ_WRITE = 1,
    CL_CONTEXT_PLATFORM = 0x1084
};
#define CL_TYPE_ALL UINT64_C(0xffffffff)

typedef struct dc_cl_api {
#define CL_API(result, name, parameters) result(*name) parameters;
#include "backends/opencl/cl_api.def"
} dc_cl_api;

typedef struct dc_cl_lib {
    void *handle;
    dc_cl_api fn;
} dc_cl_lib;

/* Where a device is. */
typedef struct dc_cl_place {
    cl_platform platform;
    cl_device device;
} dc_cl_place;

typedef struct dc_cl_limits {
    size_t max_alloc, max_parameters, max_group;
    uint32_t compute_units;
} dc_cl_limits;

/* Memory in use: addresses base to base + bytes are ours, mem is what the device has for them. */
typedef struct dc_cl_range {
    uintptr_t base;
    size_t bytes;
    cl_mem mem;
} dc_cl_range;

enum { DC_CL_BUILT = 32 };
/* What a driver may say of the size of a program or a log. */
#define DC_CL_MOST_BYTES ((size_t)1 << 30)

/* A program that was built, kept for when the same text comes again. */
typedef struct dc_cl_built {
    uint64_t hash, used; /* used: larger means later */
    char *text;
    cl_program program;
} dc_cl_built;

typedef struct dc_cl {
    dc_device device; /* first */
    dc_device_ops ops;
    dc_target target;
    dc_cl_lib lib;
    dc_cl_place at;
    dc_cl_limits limits;
    char options[96]; /* of every build */
    cl_context context;
    cl_queue queue;
    cl_queue timed;     /* the same with profiling; made when times are asked for */
    atomic_int objects; /* buffers, programs and kernels alive: what tests count */
    atomic_uint builds; /* texts given to the compiler */
    atomic_uint loads;  /* programs made from what it gave out before */

    DC_VEC(dc_cl_range) range; /* by base, ascending */
    uintptr_t next_base;

    pthread_mutex_t lock; /* over the two below: several threads compile */
    dc_cl_built built[DC_CL_BUILT];
    uint64_t clock;
} dc_cl;

struct dc_program {
    dc_cl *cl;
    cl_program program;
    uint32_t nentry;
    char **entry;
};

static inline dc_cl *dc_cl_of(dc_device *d)
{
    return (dc_cl *)d;
}

/* load.c. On failure nothing stays open and `why` tells. */
bool dc_cl_lib_open(const char *path, dc_cl_lib *lib, char *why, size_t size);
void dc_cl_lib_close(dc_cl_lib *lib);
/* Finds device `number`; *n: how many there are. */
bool dc_cl_find(const dc_cl_lib *lib, uint32_t number, dc_cl_place *out, uint32_t *n, char *why,
                size_t size);
void dc_cl_platform_text(const dc_cl_lib *lib, const dc_cl_place *at, cl_uint what, char *out,
                         size_t size);
void dc_cl_device_text(const dc_cl_lib *lib, const dc_cl_place *at, cl_uint what, char *out,
                       size_t size);
uint64_t dc_cl_device_number(const dc_cl_lib *lib, const dc_cl_place *at, cl_uint what);
/* "CL_OUT_OF_RESOURCES", or "OpenCL error -9999" written to `spare`. */
const char *dc_cl_error(cl_int error, char spare[32]);
/* A DEVICE record: "what: CL_NAME". */
dc_status dc_cl_failed(dc_job *j, const char *what, cl_int error);

/* cl_memory.c */
dc_status dc_cl_alloc(dc_device *d, dc_job *j, size_t bytes, void **out);
void dc_cl_release(dc_device *d, void *mem);
dc_status dc_cl_upload(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes);
dc_status dc_cl_download(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes);
/* Begins it: the queue is in order, so a read of the result waits for it. */
dc_status dc_cl_copy(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes);
dc_status dc_cl_finish(dc_device *d, dc_job *j);
/* The buffer behind an address of ours, and the offset in it. BUG for an address that was not given out. */
cl_mem dc_cl_mem_at(const dc_cl *cl, const void *address, size_t *offset);
/* A buffer without an address; NOMEM. */
dc_status dc_cl_buffer(dc_cl *cl, dc_job *j, size_t bytes, cl_mem *out);
void dc_cl_buffer_release(dc_cl *cl, cl_mem mem);
/* Enqueues a copy, overlapping or not. *event as in OpenCL, NULL where it is not waited for. */
dc_status dc_cl_enqueue_copy(dc_cl *cl, dc_job *j, cl_queue queue, void *to, const void *from,
                             size_t bytes, cl_event *event);
void dc_cl_memory_close(dc_cl *cl);

/* program.c */
dc_status dc_cl_compile(dc_device *d, dc_job *j, const dc_source *src, dc_program **out);
/* One with nothing in it; what frees one, for dc_job_defer. */
dc_program *dc_cl_program_new(dc_cl *cl);
void dc_cl_drop_program(void *program);
/* The library's program of a text: one built lately, or built now. */
dc_status dc_cl_build(dc_program *p, dc_job *j, const dc_source *src);
/* One that the caller owns, too; NULL where the text was not built lately. */
cl_program dc_cl_built_lately(dc_cl *cl, const char *text);
/* The kernels of it, each looked at. */
dc_status dc_cl_entries(dc_program *p, dc_job *j, const dc_source *src);
void dc_cl_program_free(dc_device *d, dc_program *p);
dc_status dc_cl_kernel_new(dc_cl *cl, dc_job *j, cl_program program, const char *name,
                           cl_kernel *out);
void dc_cl_kernel_free(dc_cl *cl, cl_kernel kernel);
void dc_cl_programs_close(dc_cl *cl);

/* binary.c: dc_device_ops.settings, toolchain, translate, load */
void dc_cl_settings(dc_device *d, dc_text *out);
bool dc_cl_toolchain(dc_device *d, dc_text *out);
dc_status dc_cl_translate(dc_device *d, dc_job *j, const dc_source *src, const void **object,
                          size_t *bytes);
dc_status dc_cl_load(dc_device *d, dc_job *j, const dc_source *src, const void *object,
                     size_t bytes, dc_program **out);

/* cl_record.c */
dc_status dc_cl_record(dc_device *d, dc_job *j, const dc_command *item, uint32_t n,
                       dc_recording **out);
void dc_cl_recording_free(dc_device *d, dc_recording *r);
dc_status dc_cl_run(dc_device *d, dc_job *j, dc_recording *r, void *const *slot, dc_run_info *info);

#endif
