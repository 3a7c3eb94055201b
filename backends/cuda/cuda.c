/*
 * The device: what schedules and renderers need to know of it, errors, and the table of its functions.
 */
#include "backends/cuda/cu_impl.h"

#include <stdio.h>
#include <string.h>

enum { LANES = 32, MOST_THREADS = 1024, THREAD_REGISTERS = 64, ONE_LANE = 4 };
enum { MOST_BUFFERS = 500 }; /* 4096 bytes of parameters */
enum { L1 = 128 << 10 };

/* --- errors --------------------------------------------------------------------------------- */

static bool is_fatal(cu_result error)
{
    switch (error) {
#define CU_ERROR(name, number, lost) \
    case number:                     \
        return lost;
#include "backends/cuda/cu_api.def"
    default:
        return false;
    }
}

dc_status dc_cu_failed(dc_cu *cu, dc_job *j, const char *what, cu_result error)
{
    char spare[32];
    if (error == CU_ERROR_OUT_OF_MEMORY)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    if (is_fatal(error) && cu->lost == NULL)
        cu->lost = dc_cu_error(error, spare);
    const dc_status status =
        dc_failf(j, DC_ERR_DEVICE, "cuda", "%s: %s%s", what, dc_cu_error(error, spare),
                 is_fatal(error) ? "; the device is lost to this process" : "");
    if (is_fatal(error) && cu->busy &&
        cu->launch != DC_CU_WAIT) /* it may be of any kernel before */
        snprintf(j->err.hint, sizeof j->err.hint,
                 "DEEPC_LAUNCH=wait waits for each kernel and names the one that fails");
    return status;
}

cu_result dc_cu_push(const dc_cu *cu, bool *pushed)
{
    cu_context now = NULL;
    *pushed = cu->lib.fn.CtxGetCurrent(&now) != CU_SUCCESS || now != cu->context;
    const cu_result error = *pushed ? cu->lib.fn.CtxPushCurrent(cu->context) : CU_SUCCESS;
    *pushed = *pushed && error == CU_SUCCESS;
    return error;
}

void dc_cu_pop(const dc_cu *cu, bool pushed)
{
    cu_context gone;
    if (pushed)
        cu->lib.fn.CtxPopCurrent(&gone);
}

static void pop_context(void *what)
{
    dc_cu_pop(what, true);
}

dc_status dc_cu_enter(dc_cu *cu, dc_job *j, bool *pushed)
{
    *pushed = false;
    const char *lost = cu->lost;
    if (lost != NULL)
        return dc_failf(j, DC_ERR_DEVICE, "cuda", "the device is lost to this process since %s",
                        lost);
    const cu_result error = dc_cu_push(cu, pushed);
    if (error != CU_SUCCESS)
        return dc_cu_failed(cu, j, "the context", error);
    if (*pushed)
        dc_job_defer(j, pop_context, cu);
    return DC_OK;
}

void dc_cu_leave(dc_cu *cu, dc_job *j, bool pushed)
{
    if (pushed)
        dc_job_keep(j, cu);
    dc_cu_pop(cu, pushed);
}

/* What fails here fails in the next attempt, too. */
bool dc_cu_make_room(const dc_cu *cu, cu_result error)
{
    if (error != CU_ERROR_OUT_OF_MEMORY || cu->pool == NULL)
        return false;
    dc_cu_nccl_quit(cu);
    cu->lib.fn.StreamSynchronize(cu->stream);
    cu->lib.fn.MemPoolTrimTo(cu->pool, 0);
    return true;
}

dc_status dc_cu_settle(dc_cu *cu, dc_job *j, const char *what)
{
    if (!cu->busy)
        return DC_OK;
    DC_TRY(dc_cu_beside_join(cu, j));
    DC_TRY(dc_cu_nccl_settle(cu, j));
    DC_CU_TRY(cu, j, what, StreamSynchronize(cu->stream));
    cu->busy = false;
    return DC_OK;
}

/* --- the target ----------------------------------------------------------------------------- */

/* The number of a word. */
static bool find_word(const char *word, const char *const *words, int *out)
{
    for (*out = 0; words[*out] != NULL; (*out)++)
        if (strcmp(word, words[*out]) == 0)
            return true;
    return false;
}

static dc_status read_settings(dc_cu *cu, dc_job *j)
{
    static const char *const launch[] = {"graph", "one", "wait", NULL}; /* dc_cu_launch */
    static const char *const checks[] = {"now", "later", NULL};
    int n;
    if (!find_word(j->opt->launch, launch, &n))
        return dc_fail(j, DC_ERR_OPTION,
                       &(dc_fact){.word = {"DEEPC_LAUNCH", "graph, one or wait"}});
    cu->launch = (dc_cu_launch)n;
    if (!find_word(j->opt->checks, checks, &n))
        return dc_fail(j, DC_ERR_OPTION, &(dc_fact){.word = {"DEEPC_CHECKS", "later or now"}});
    cu->device.answers_later = n == 1;
    return DC_OK;
}

/* sm_90a has instructions that sm_90 has not; what is made for one runs on no other. */
static void describe_target(dc_cu *cu, bool wgmma)
{
    dc_target *t = &cu->target;
    const dc_cu_lib *lib = &cu->lib;
    const int sm = dc_cu_capability(lib, cu->at);
    const int l2 = dc_cu_attribute(lib, cu->at, CU_ATTRIBUTE_L2_BYTES);
    *t = (dc_target){.dialect = "cuda",
                     .simt = true,
                     .bundles = true,
                     .half = true,
                     .fused = true,
                     .dp4a = sm >= 61,
                     .bfloat = sm >= 80,
                     .vector_bytes = ONE_LANE,
                     .vector_registers = THREAD_REGISTERS,
                     .buffers = MOST_BUFFERS,
                     .group_threads = MOST_THREADS,
                     .lanes = LANES,
                     .group_bytes = dc_cu_shared_bytes(lib, cu->at),
                     .units = dc_cu_units(lib, cu->at),
                     .sm = sm,
                     .l1 = L1,
                     .l2 = l2 > 0 ? (size_t)l2 : (size_t)4 << 20};
    t->warpgroups = sm == 90 && wgmma;
    snprintf(t->name, sizeof t->name, "cuda sm_%d %d", sm, t->units);
    snprintf(t->triple, sizeof t->triple, "sm_%d%s", sm, sm >= 90 ? "a" : "");
}

/* --- opening and closing -------------------------------------------------------------------- */

static void free_stream(dc_cu *cu)
{
    const dc_cu_api *fn = &cu->lib.fn;
    for (int i = 0; i < DC_CU_AHEAD; i++)
        if (cu->done[i] != NULL)
            fn->EventDestroy(cu->done[i]);
    for (int i = 0; i < 2; i++)
        if (cu->clock[i] != NULL)
            fn->EventDestroy(cu->clock[i]);
    if (cu->builtin != NULL)
        fn->ModuleUnload(cu->builtin);
    dc_cu_memory_close(cu);
    if (cu->stream != NULL && cu->own_stream)
        fn->StreamDestroy(cu->stream);
}

/* Whatever is not there yet is NULL. A lost device is left to the process's end. */
static void cu_free(dc_device *d)
{
    dc_cu *cu = dc_cu_of(d);
    const dc_cu_api *fn = &cu->lib.fn;
    bool pushed;
    if (cu->context != NULL) {
        if (dc_cu_push(cu, &pushed) == CU_SUCCESS) {
            dc_cu_nccl_close(cu);
            dc_cu_beside_wait(cu);
            if (cu->stream != NULL)
                fn->StreamSynchronize(cu->stream);
            free_stream(cu);
            dc_cu_pop(cu, pushed);
        }
        fn->PrimaryCtxRelease(cu->at);
    }
    dc_cu_compiler_close(cu);
    dc_cu_lib_close(&cu->lib);
    pthread_mutex_destroy(&cu->lock);
    DC_VEC_FREE(cu->space);
    DC_VEC_FREE(cu->found);
    DC_VEC_FREE(cu->place);
    dc_xfree(cu);
}

static void drop_device(void *d)
{
    cu_free(d);
}

static const dc_target *cu_target(const dc_device *d)
{
    return &((const dc_cu *)d)->target;
}

static const dc_device_ops ops = {
    .name = "cuda",
    .shares = true,
    .free = cu_free,
    .target = cu_target,
    .alloc = dc_cu_alloc,
    .release = dc_cu_release,
    .upload = dc_cu_upload,
    .download = dc_cu_download,
    .copy = dc_cu_copy,
    .reserve = dc_cu_reserve,
    .commit = dc_cu_commit,
    .finish = dc_cu_finish,
    .compile = dc_cu_compile,
    .program_free = dc_cu_program_free,
    .one_by_one = true,
    .compiles_flush = true,
    .settings = dc_cu_settings,
    .toolchain = dc_cu_toolchain,
    .translate = dc_cu_translate,
    .load = dc_cu_load,
    .takes_block = true,
    .direct = dc_cu_nccl_can,
    .record = dc_cu_record,
    .recording_free = dc_cu_recording_free,
    .run = dc_cu_run,
    .answer = dc_cu_answer,
};

/* A host with several devices may give the stream of another one. */
static dc_status check_host_stream(dc_cu *cu, dc_job *j)
{
    cu_context of = NULL;
    DC_CU_TRY(cu, j, "the stream of the host", StreamGetCtx(cu->stream, &of));
    return of == cu->context
               ? DC_OK
               : dc_fail(j, DC_ERR_OPTION,
                         &(dc_fact){.word = {"dc_config.stream",
                                             "a stream of the device's primary context"}});
}

static dc_status open_stream(dc_cu *cu, dc_job *j)
{
    cu->stream = j->opt->stream;
    cu->own_stream = cu->stream == NULL;
    if (cu->own_stream)
        DC_CU_TRY(cu, j, "a stream", StreamCreate(&cu->stream, CU_STREAM_NON_BLOCKING));
    else
        DC_TRY(check_host_stream(cu, j));
    for (int i = 0; i < DC_CU_AHEAD; i++)
        DC_CU_TRY(cu, j, "an event", EventCreate(&cu->done[i], CU_EVENT_NO_TIMES));
    DC_TRY(dc_cu_memory_open(cu, j));
    dc_text *text = dc_job_text(j);
    for (int i = 0; i < DC_CU_BUILTIN; i++)
        dc_text_puts(text, dc_cu_builtin_ptx[i]);
    const cu_result error = cu->lib.fn.ModuleLoadData(&cu->builtin, text->s);
    dc_job_text_end(j, text);
    if (error != CU_SUCCESS)
        return dc_cu_failed(cu, j, "the kernels of every device", error);
    DC_CU_TRY(cu, j, "the kernel of copies",
              ModuleGetFunction(&cu->copy_kernel, cu->builtin, "deepc_copy"));
    DC_CU_TRY(cu, j, "the kernel of checks",
              ModuleGetFunction(&cu->check_kernel, cu->builtin, "deepc_check"));
    return DC_OK;
}

static dc_status open_device(dc_cu *cu, dc_job *j, uint32_t number)
{
    char why[300];
    uint32_t n;
    bool pushed;
    if (!dc_cu_lib_open(j->opt->cuda, &cu->lib, why, sizeof why) ||
        !dc_cu_find(&cu->lib, number, &cu->at, &n, why, sizeof why))
        return dc_failf(j, DC_ERR_DEVICE, "cuda", "%s", why);
    DC_TRY(read_settings(cu, j));
    describe_target(cu, strcmp(j->opt->gpu, "wgmma") == 0);
    DC_CU_TRY(cu, j, "a context", PrimaryCtxRetain(&cu->context, cu->at));
    DC_TRY(dc_cu_enter(cu, j, &pushed));
    const dc_status status = open_stream(cu, j);
    dc_cu_leave(cu, j, pushed);
    return status;
}

dc_status dc_cuda_open(dc_job *j, uint32_t number, dc_device **out)
{
    dc_cu *cu = dc_xalloc(sizeof *cu);
    cu->device.ops = &ops;
    pthread_mutex_init(&cu->lock, NULL);
    cu->flush = j->opt->flush;
    snprintf(cu->nvrtc_path, sizeof cu->nvrtc_path, "%s", j->opt->nvrtc);
    dc_job_defer(j, drop_device, &cu->device);
    DC_TRY(dc_job_settle(j, &cu->device, open_device(cu, j, number)));
    *out = &cu->device;
    return DC_OK;
}
