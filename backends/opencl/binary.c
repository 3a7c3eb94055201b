/*
 * Programs as bytes, for the cache on disk: what the driver gives out of a program that it built, behind a head of ours.
 * Drivers need not survive bytes that are damaged (PoCL does not), so the head has a checksum, and no byte
 * reaches a driver that it does not cover. Which driver it is, is in the name of the target and in the toolchain id;
 * another version is another key.
 */
#define _GNU_SOURCE /* dladdr */
#include "backends/opencl/cl_impl.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

static const char magic[8] = "deepcCL1";

typedef struct head {
    char magic[sizeof magic];
    uint64_t bytes, check; /* of what follows */
} head;

#define SEED UINT64_C(0x6f70656e636c0001)

/* ---- what made them -------------------------------------------------------------------------- */

void dc_cl_settings(dc_device *d, dc_text *out)
{
    dc_text_printf(out, "%s\n", dc_cl_of(d)->options);
}

/* The file that a function is in, its size and date. */
static bool put_file_of(const void *function, dc_text *out)
{
    Dl_info at;
    struct stat s;
    if (function == NULL || dladdr(function, &at) == 0 || at.dli_fname == NULL ||
        stat(at.dli_fname, &s) != 0)
        return false;
    dc_text_printf(out, "%s %" PRId64 " %" PRId64 ".%09ld\n", at.dli_fname, (int64_t)s.st_size,
                   (int64_t)s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
    return true;
}

/* The library; and the driver behind it, where it is one of several that a loader chose. */
bool dc_cl_toolchain(dc_device *d, dc_text *out)
{
    const dc_cl *cl = dc_cl_of(d);
    const void *library;
    memcpy(&library, &cl->lib.fn.GetPlatformIDs, sizeof library);
    dc_text_printf(out, "%s\n", cl->target.features);
    put_file_of(cl->lib.fn.GetExtensionFunctionAddressForPlatform(cl->at.platform,
                                                                  "clIcdGetPlatformIDsKHR"),
                out);
    return put_file_of(library, out);
}

/* ---- out of a program ------------------------------------------------------------------------ */

/* A driver that gives out nothing leaves the head alone, which load() refuses: then a program is built each time. */
static void put_binary(const dc_program *p, dc_job *j, const void **object, size_t *bytes)
{
    const dc_cl_api *fn = &p->cl->lib.fn;
    size_t n = 0;
    if (fn->GetProgramInfo(p->program, CL_PROGRAM_BINARY_SIZES, sizeof n, &n, NULL) != CL_SUCCESS ||
        n > DC_CL_MOST_BYTES)
        n = 0;
    char *all = dc_arena_alloc(&j->scratch, sizeof(head) + n);
    unsigned char *to = (unsigned char *)all + sizeof(head);
    if (n > 0 &&
        fn->GetProgramInfo(p->program, CL_PROGRAM_BINARIES, sizeof to, &to, NULL) != CL_SUCCESS)
        n = 0;
    head h = {.bytes = n, .check = dc_hash_bytes(SEED, to, n)};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(all, &h, sizeof h);
    *object = all;
    *bytes = sizeof h + n;
}

dc_status dc_cl_translate(dc_device *d, dc_job *j, const dc_source *src, const void **object,
                          size_t *bytes)
{
    dc_program *p = dc_cl_program_new(dc_cl_of(d));
    dc_job_defer(j, dc_cl_drop_program, p);
    const dc_status status = dc_cl_build(p, j, src);
    if (status == DC_OK)
        put_binary(p, j, object, bytes);
    dc_job_keep(j, p);
    dc_cl_drop_program(p);
    return status;
}

/* ---- to a program ---------------------------------------------------------------------------- */

static bool is_whole(const void *object, size_t bytes)
{
    head h;
    if (bytes <= sizeof h)
        return false;
    memcpy(&h, object, sizeof h);
    return memcmp(h.magic, magic, sizeof magic) == 0 && h.bytes == bytes - sizeof h &&
           h.check == dc_hash_bytes(SEED, (const char *)object + sizeof h, h.bytes);
}

static dc_status refuse(dc_job *j, cl_int error)
{
    char spare[32];
    return dc_failf(j, DC_ERR_BUILD, "opencl", "the driver refuses a kept program: %s",
                    dc_cl_error(error, spare));
}

static dc_status take_binary(dc_program *p, dc_job *j, const void *object, size_t bytes)
{
    dc_cl *cl = p->cl;
    const dc_cl_api *fn = &cl->lib.fn;
    const unsigned char *binary = (const unsigned char *)object + sizeof(head);
    const size_t n = bytes - sizeof(head);
    cl_int status = CL_SUCCESS, error = CL_SUCCESS;
    if (!is_whole(object, bytes))
        return dc_failf(j, DC_ERR_BUILD, "opencl", "a kept program is damaged");
    p->program =
        fn->CreateProgramWithBinary(cl->context, 1, &cl->at.device, &n, &binary, &status, &error);
    if (p->program == NULL)
        return refuse(j, error);
    atomic_fetch_add(&cl->objects, 1);
    atomic_fetch_add(&cl->loads, 1);
    if (error != CL_SUCCESS || status != CL_SUCCESS)
        return refuse(j, error != CL_SUCCESS ? error : status);
    error = fn->BuildProgram(p->program, 1, &cl->at.device, cl->options, NULL, NULL);
    return error == CL_SUCCESS ? DC_OK : refuse(j, error);
}

/* A text that was built just now needs no way through its bytes. */
static dc_status load(dc_program *p, dc_job *j, const dc_source *src, const void *object,
                      size_t bytes)
{
    if (src->text != NULL)
        p->program = dc_cl_built_lately(p->cl, src->text);
    if (p->program == NULL)
        DC_TRY(take_binary(p, j, object, bytes));
    return dc_cl_entries(p, j, src);
}

dc_status dc_cl_load(dc_device *d, dc_job *j, const dc_source *src, const void *object,
                     size_t bytes, dc_program **out)
{
    dc_program *p = dc_cl_program_new(dc_cl_of(d));
    dc_job_defer(j, dc_cl_drop_program, p);
    DC_TRY(dc_job_settle(j, p, load(p, j, src, object, bytes)));
    *out = p;
    return DC_OK;
}
