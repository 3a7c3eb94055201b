/*
 * OpenCL C to programs. A text that was built lately is not built again: the device keeps the last
 * few programs with their texts. Several threads may compile at once.
 */
#include "backends/build_log.h"
#include "backends/opencl/cl_impl.h"

#include <stdio.h>
#include <string.h>

/* --- what the compiler said ---------------------------------------------------------------- */

/* Clang in a driver puts the name of a temporary file before line and column. */
static const char *first_error(const char *log, size_t *n)
{
    const char *line = dc_build_log_line(log, n);
    const char *place = strstr(line, ".cl:");
    if (place != NULL && place < line + *n) {
        *n -= (size_t)(place + 4 - line);
        line = place + 4;
    }
    return line;
}

static dc_status refuse_build(dc_job *j, const char *log)
{
    size_t n;
    const char *line = first_error(log, &n);
    dc_log_text(j->log, DC_CH_SRC, "build log", log);
    return dc_failf(j, DC_ERR_BUILD, "opencl", "the compiler refuses a kernel: %.*s",
                    (int)(n < 400 ? n : 400), line);
}

static dc_status read_log(dc_cl *cl, dc_job *j, cl_program program)
{
    const dc_cl_api *fn = &cl->lib.fn;
    size_t n = 0;
    fn->GetProgramBuildInfo(program, cl->at.device, CL_PROGRAM_BUILD_LOG, 0, NULL, &n);
    n = n <= DC_CL_MOST_BYTES ? n : 0;
    char *log = dc_arena_alloc(&j->scratch, n + 1); /* zeroed */
    fn->GetProgramBuildInfo(program, cl->at.device, CL_PROGRAM_BUILD_LOG, n, log, NULL);
    return refuse_build(j, log);
}

/* --- programs built lately ------------------------------------------------------------------ */

static uint64_t hash_text(const char *s)
{
    return dc_hash_bytes(UINT64_C(0xcbf29ce484222325), s, strlen(s));
}

static void release_program(dc_cl *cl, cl_program program)
{
    if (program == NULL)
        return;
    cl->lib.fn.ReleaseProgram(program);
    atomic_fetch_sub(&cl->objects, 1);
}

/* One more owner. */
static cl_program retain_program(dc_cl *cl, cl_program program)
{
    cl->lib.fn.RetainProgram(program);
    atomic_fetch_add(&cl->objects, 1);
    return program;
}

/* NULL, or a program that the caller owns, too. */
static cl_program find_built(dc_cl *cl, uint64_t hash, const char *text)
{
    cl_program found = NULL;
    pthread_mutex_lock(&cl->lock);
    for (int i = 0; i < DC_CL_BUILT && found == NULL; i++) {
        dc_cl_built *b = &cl->built[i];
        if (b->program == NULL || b->hash != hash || strcmp(b->text, text) != 0)
            continue;
        b->used = ++cl->clock;
        found = retain_program(cl, b->program);
    }
    pthread_mutex_unlock(&cl->lock);
    return found;
}

/* In the place of the least recently used one. Takes `text`. */
static void keep_built(dc_cl *cl, uint64_t hash, char *text, cl_program program)
{
    pthread_mutex_lock(&cl->lock);
    dc_cl_built *oldest = &cl->built[0];
    for (int i = 1; i < DC_CL_BUILT; i++)
        if (cl->built[i].used < oldest->used)
            oldest = &cl->built[i];
    const dc_cl_built gone = *oldest;
    *oldest = (dc_cl_built){hash, ++cl->clock, text, retain_program(cl, program)};
    pthread_mutex_unlock(&cl->lock);
    release_program(cl, gone.program);
    dc_xfree(gone.text);
}

void dc_cl_programs_close(dc_cl *cl)
{
    for (int i = 0; i < DC_CL_BUILT; i++) {
        release_program(cl, cl->built[i].program);
        dc_xfree(cl->built[i].text);
        cl->built[i] = (dc_cl_built){0};
    }
}

/* --- kernels -------------------------------------------------------------------------------- */

dc_status dc_cl_kernel_new(dc_cl *cl, dc_job *j, cl_program program, const char *name,
                           cl_kernel *out)
{
    cl_int error = CL_SUCCESS;
    *out = cl->lib.fn.CreateKernel(program, name, &error);
    if (*out == NULL || error != CL_SUCCESS) {
        char spare[32];
        return dc_failf(j, DC_ERR_BUILD, "opencl", "kernel '%.60s': %s", name,
                        dc_cl_error(error, spare));
    }
    atomic_fetch_add(&cl->objects, 1);
    return DC_OK;
}

void dc_cl_kernel_free(dc_cl *cl, cl_kernel kernel)
{
    if (kernel == NULL)
        return;
    cl->lib.fn.ReleaseKernel(kernel);
    atomic_fetch_sub(&cl->objects, 1);
}

/* Every parameter of ours has eight bytes: addresses, offsets, ranges of work items. */
static dc_status check_parameters(dc_cl *cl, dc_job *j, const char *name, cl_kernel kernel)
{
    cl_uint n = 0;
    cl->lib.fn.GetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof n, &n, NULL);
    if (n * sizeof(uint64_t) <= cl->limits.max_parameters)
        return DC_OK;
    return dc_failf(j, DC_ERR_BUILD, "opencl",
                    "kernel '%.60s' has %zu bytes of parameters, the device takes %zu", name,
                    n * sizeof(uint64_t), cl->limits.max_parameters);
}

/* --- compiling ------------------------------------------------------------------------------ */

void dc_cl_drop_program(void *what)
{
    dc_program *p = what;
    release_program(p->cl, p->program);
    for (uint32_t i = 0; i < p->nentry && p->entry != NULL; i++)
        dc_xfree(p->entry[i]);
    dc_xfree(p->entry);
    dc_xfree(p);
}

void dc_cl_program_free(dc_device *d, dc_program *p)
{
    DC_UNUSED(d);
    if (p != NULL)
        dc_cl_drop_program(p);
}

static char *copy_text(const char *s)
{
    const size_t n = strlen(s) + 1;
    return memcpy(dc_xalloc(n), s, n);
}

dc_program *dc_cl_program_new(dc_cl *cl)
{
    dc_program *p = dc_xalloc(sizeof *p);
    p->cl = cl;
    return p;
}

static dc_status build_text(dc_program *p, dc_job *j, const char *text)
{
    dc_cl *cl = p->cl;
    const dc_cl_api *fn = &cl->lib.fn;
    cl_int error = CL_SUCCESS;
    atomic_fetch_add(&cl->builds, 1);
    const cl_program program = fn->CreateProgramWithSource(cl->context, 1, &text, NULL, &error);
    if (program == NULL || error != CL_SUCCESS)
        return dc_cl_failed(j, "a program", error);
    atomic_fetch_add(&cl->objects, 1);
    p->program = program;
    error = fn->BuildProgram(program, 1, &cl->at.device, cl->options, NULL, NULL);
    if (error == CL_BUILD_PROGRAM_FAILURE)
        return read_log(cl, j, program);
    return error == CL_SUCCESS ? DC_OK : dc_cl_failed(j, "the compiler", error);
}

cl_program dc_cl_built_lately(dc_cl *cl, const char *text)
{
    return find_built(cl, hash_text(text), text);
}

static dc_status find_or_build(dc_program *p, dc_job *j, const char *text)
{
    p->program = dc_cl_built_lately(p->cl, text);
    if (p->program != NULL)
        return DC_OK;
    DC_TRY(build_text(p, j, text));
    keep_built(p->cl, hash_text(text), copy_text(text), p->program);
    return DC_OK;
}

dc_status dc_cl_entries(dc_program *p, dc_job *j, const dc_source *src)
{
    p->entry = dc_xalloc(src->nentry * sizeof *p->entry);
    p->nentry = src->nentry;
    for (uint32_t i = 0; i < src->nentry; i++)
        p->entry[i] = copy_text(src->entry[i]);
    for (uint32_t i = 0; i < src->nentry; i++) {
        cl_kernel kernel;
        DC_TRY(dc_cl_kernel_new(p->cl, j, p->program, p->entry[i], &kernel));
        const dc_status status = check_parameters(p->cl, j, p->entry[i], kernel);
        dc_cl_kernel_free(p->cl, kernel);
        DC_TRY(status);
    }
    return DC_OK;
}

dc_status dc_cl_build(dc_program *p, dc_job *j, const dc_source *src)
{
    if (strcmp(src->dialect, "opencl") != 0)
        return dc_failf(j, DC_ERR_BUILD, "opencl", "kernels come as OpenCL C, not as '%s'",
                        src->dialect);
    return find_or_build(p, j, src->text);
}

static dc_status compile(dc_program *p, dc_job *j, const dc_source *src)
{
    DC_TRY(dc_cl_build(p, j, src));
    return dc_cl_entries(p, j, src);
}

dc_status dc_cl_compile(dc_device *d, dc_job *j, const dc_source *src, dc_program **out)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_program *p = dc_cl_program_new(dc_cl_of(d));
    dc_job_defer(j, dc_cl_drop_program, p);
    const dc_status status = dc_job_settle(j, p, compile(p, j, src));
    dc_arena_rewind(&j->scratch, mark);
    DC_TRY(status);
    *out = p;
    return DC_OK;
}
