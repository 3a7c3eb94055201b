/*
 * CUDA C++ to programs: NVRTC makes machine code for the very architecture of the device, or PTX where it does not know
 * that one yet, which the driver then translates. NVRTC is opened when the first text has to be compiled; what is in a cache
 * needs only the driver.
 */
#include "backends/build_log.h"
#include "backends/cuda/cu_impl.h"
#include "backends/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};
static const char *const folders[] = {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu",
                                      "/usr/lib/aarch64-linux-gnu", NULL};

static const dc_library_symbol symbols[] = {
#define NVRTC_API(name, symbol, parameters) {#symbol, offsetof(dc_nvrtc_api, name), false},
#include "backends/cuda/cu_api.def"
};

/* --- the compiler ------------------------------------------------------------------------------ */

static bool resolve_compiler(dc_cu *cu)
{
    const char *missing =
        dc_library_resolve(cu->nvrtc, symbols, DC_COUNTOF(symbols), &cu->compiler);
    if (missing == NULL)
        return true;
    snprintf(cu->nvrtc_why, sizeof cu->nvrtc_why,
             "%.200s has no %s: NVRTC of CUDA 12 or later is needed", cu->nvrtc_path, missing);
    dc_library_close(&cu->nvrtc);
    return false;
}

/* What NVRTC may say of sizes. */
enum { MOST_ARCHS = 1000, MOST_BYTES = 1 << 30 };

/* The device's architecture, or PTX for the latest before it that the compiler knows. */
static void choose_arch(dc_cu *cu)
{
    int arch[MOST_ARCHS] = {0}; /* it may write more than it says */
    int n = 0, latest = 0;
    snprintf(cu->arch, sizeof cu->arch, "--gpu-architecture=%.20s", cu->target.triple);
    if (cu->compiler.GetNumArchs(&n) != 0 || n <= 0 || n > MOST_ARCHS)
        return;
    bool known = cu->compiler.GetArchs(arch) != 0;
    for (int i = 0; !known && i < n; i++) {
        known = arch[i] == cu->target.sm;
        latest = arch[i] <= cu->target.sm && arch[i] > latest ? arch[i] : latest;
    }
    if (known || latest == 0)
        return;
    cu->ptx = true;
    snprintf(cu->arch, sizeof cu->arch, "--gpu-architecture=compute_%d", latest);
}

/* The file, if `path` names none yet; still none where at most the loader knows. */
static void find_compiler(char *path, size_t size)
{
    if (path[0] == '\0' && !dc_library_find(names, folders, path, size))
        path[0] = '\0';
}

static void *open_library(char *path, size_t size, char *why, size_t why_size)
{
    void *handle = NULL;
    if (path[0] != '\0')
        return dc_library_open(path, RTLD_NOW, why, why_size);
    for (int i = 0; handle == NULL && names[i] != NULL; i++) {
        snprintf(path, size, "%s", names[i]);
        handle = dc_library_open(path, RTLD_NOW, why, why_size);
    }
    return handle;
}

void dc_cu_compiler_describe(const dc_opts *opt, char *out, size_t size)
{
    char path[sizeof opt->nvrtc], why[300];
    memcpy(path, opt->nvrtc, sizeof path);
    find_compiler(path, sizeof path);
    void *handle = open_library(path, sizeof path, why, sizeof why);
    snprintf(out, size, handle != NULL ? "NVRTC %s" : "no NVRTC (%s), so no kernel is compiled",
             path);
    dc_library_close(&handle);
}

static bool open_compiler(dc_cu *cu)
{
    pthread_mutex_lock(&cu->lock);
    if (!cu->nvrtc_tried) {
        find_compiler(cu->nvrtc_path, sizeof cu->nvrtc_path);
        cu->nvrtc = open_library(cu->nvrtc_path, sizeof cu->nvrtc_path, cu->nvrtc_why,
                                 sizeof cu->nvrtc_why);
        if (cu->nvrtc == NULL)
            snprintf(cu->nvrtc_why, sizeof cu->nvrtc_why,
                     "kernels cannot be compiled: NVRTC is not installed (%.100s; Debian: apt-get "
                     "install libnvrtc12, or "
                     "NVIDIA's CUDA toolkit; DEEPC_NVRTC names one elsewhere)",
                     cu->nvrtc_path);
        else if (resolve_compiler(cu))
            choose_arch(cu);
        cu->nvrtc_tried = true;
    }
    pthread_mutex_unlock(&cu->lock);
    return cu->nvrtc != NULL;
}

void dc_cu_compiler_close(dc_cu *cu)
{
    dc_library_close(&cu->nvrtc);
}

void dc_cu_settings(dc_device *d, dc_text *out)
{
    dc_text_printf(out, "--gpu-architecture=%s --std=c++17 --fmad=false%s\n",
                   dc_cu_of(d)->target.triple, dc_cu_of(d)->flush ? " --ftz=true" : "");
}

bool dc_cu_toolchain(dc_device *d, dc_text *out)
{
    dc_cu *cu = dc_cu_of(d);
    pthread_mutex_lock(&cu->lock);
    if (!cu->nvrtc_tried)
        find_compiler(cu->nvrtc_path, sizeof cu->nvrtc_path);
    pthread_mutex_unlock(&cu->lock);
    return dc_library_put_id(cu->nvrtc_path, out);
}

/* --- what the compiler said ---------------------------------------------------------------- */

static dc_status refuse(dc_job *j, const char *log)
{
    size_t n;
    const char *line = dc_build_log_line(log, &n);
    dc_log_text(j->log, DC_CH_SRC, "build log", log);
    return dc_failf(j, DC_ERR_BUILD, "cuda", "the compiler refuses a kernel: %.*s",
                    (int)(n < 400 ? n : 400), line);
}

static dc_status read_log(const dc_cu *cu, dc_job *j, nvrtc_program p)
{
    size_t n = 0;
    if (cu->compiler.GetProgramLogSize(p, &n) != 0 || n == 0 || n > MOST_BYTES)
        return refuse(j, "");
    char *log = dc_arena_alloc(&j->scratch, n + 1);
    cu->compiler.GetProgramLog(p, log);
    return refuse(j, log);
}

/* --- compiling ------------------------------------------------------------------------------ */

typedef struct compilation {
    const dc_cu *cu;
    nvrtc_program p;
} compilation;

static void end_compilation(void *what)
{
    compilation *c = what;
    c->cu->compiler.DestroyProgram(&c->p);
}

static dc_status take_image(compilation *c, dc_job *j, const void **object, size_t *bytes)
{
    const dc_nvrtc_api *fn = &c->cu->compiler;
    const bool ptx = c->cu->ptx;
    if ((ptx ? fn->GetPTXSize(c->p, bytes) : fn->GetCUBINSize(c->p, bytes)) != 0 || *bytes == 0 ||
        *bytes > MOST_BYTES)
        return dc_failf(j, DC_ERR_BUILD, "cuda", "the compiler gives no machine code");
    char *image = dc_arena_alloc(&j->scratch, *bytes);
    if ((ptx ? fn->GetPTX(c->p, image) : fn->GetCUBIN(c->p, image)) != 0)
        return dc_failf(j, DC_ERR_BUILD, "cuda", "the compiler gives no machine code");
    *object = image;
    return DC_OK;
}

static dc_status compile_text(compilation *c, dc_job *j, const void **object, size_t *bytes)
{
    const char *const options[] = {c->cu->arch, "--std=c++17", "--fmad=false", "--ftz=true"};
    const int n = (int)DC_COUNTOF(options) - !c->cu->flush;
    if (c->cu->compiler.CompileProgram(c->p, n, options) != 0)
        return read_log(c->cu, j, c->p);
    return take_image(c, j, object, bytes);
}

dc_status dc_cu_translate(dc_device *d, dc_job *j, const dc_source *src, const void **object,
                          size_t *bytes)
{
    dc_cu *cu = dc_cu_of(d);
    compilation *c = dc_arena_alloc(&j->scratch, sizeof *c);
    if (strcmp(src->dialect, "cuda") != 0)
        return dc_failf(j, DC_ERR_BUILD, "cuda", "kernels come as CUDA C++, not as '%s'",
                        src->dialect);
    if (!open_compiler(cu))
        return dc_failf(j, DC_ERR_BUILD, "cuda", "%s", cu->nvrtc_why);
    c->cu = cu;
    if (cu->compiler.CreateProgram(&c->p, src->text, "kernels.cu", 0, NULL, NULL) != 0)
        return dc_failf(j, DC_ERR_BUILD, "cuda", "the compiler takes no text");
    dc_job_defer(j, end_compilation, c);
    const dc_status status = compile_text(c, j, object, bytes);
    dc_job_keep(j, c);
    end_compilation(c);
    return status;
}

static void free_program(void *what)
{
    dc_program *p = what;
    for (uint32_t i = 0; i < p->nentry && p->entry != NULL; i++)
        dc_xfree(p->entry[i]);
    dc_xfree(p->entry);
    dc_xfree(p);
}

static dc_status load_module(dc_program *p, dc_job *j, const void *object)
{
    bool pushed;
    DC_TRY(dc_cu_enter(p->cu, j, &pushed));
    cu_result error;
    DC_CU_CALL(p->cu, error, ModuleLoadData(&p->module, object));
    dc_cu_leave(p->cu, j, pushed);
    if (error == CU_ERROR_INVALID_IMAGE || error == CU_ERROR_NO_BINARY_FOR_GPU ||
        error == CU_ERROR_INVALID_PTX || error == CU_ERROR_UNSUPPORTED_PTX_VERSION) {
        char spare[32];
        return dc_failf(j, DC_ERR_BUILD, "cuda", "the driver refuses machine code: %s",
                        dc_cu_error(error, spare));
    }
    if (error != CU_SUCCESS)
        return dc_cu_failed(p->cu, j, "a program", error);
    atomic_fetch_add(&p->cu->objects, 1);
    return DC_OK;
}

/* Ends with a 0, as the driver wants of PTX. */
static dc_status fill_program(dc_program *p, dc_job *j, const dc_source *src, const void *object,
                              size_t bytes)
{
    p->entry = dc_xalloc(src->nentry * sizeof *p->entry);
    p->nentry = src->nentry;
    for (uint32_t i = 0; i < src->nentry; i++) {
        const size_t n = strlen(src->entry[i]) + 1;
        p->entry[i] = memcpy(dc_xalloc(n), src->entry[i], n);
    }
    char *image = dc_arena_alloc(&j->scratch, bytes + 1);
    memcpy(image, object, bytes);
    return load_module(p, j, image);
}

dc_status dc_cu_load(dc_device *d, dc_job *j, const dc_source *src, const void *object,
                     size_t bytes, dc_program **out)
{
    dc_program *p = dc_xalloc(sizeof *p);
    p->cu = dc_cu_of(d);
    dc_job_defer(j, free_program, p);
    const dc_mark mark = dc_arena_mark(&j->scratch);
    DC_TRY(dc_job_settle(j, p, fill_program(p, j, src, object, bytes)));
    dc_arena_rewind(&j->scratch, mark);
    *out = p;
    return DC_OK;
}

dc_status dc_cu_compile(dc_device *d, dc_job *j, const dc_source *src, dc_program **out)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const void *object = NULL;
    size_t bytes = 0;
    DC_TRY(dc_cu_translate(d, j, src, &object, &bytes));
    DC_TRY(dc_cu_load(d, j, src, object, bytes, out));
    dc_arena_rewind(&j->scratch, mark);
    return DC_OK;
}

/* Launches of it may still be under way. */
void dc_cu_program_free(dc_device *d, dc_program *p)
{
    dc_cu *cu = dc_cu_of(d);
    bool pushed;
    if (p == NULL)
        return;
    if (p->module != NULL) {
        if (dc_cu_push(cu, &pushed) == CU_SUCCESS) {
            if (cu->busy && cu->lost == NULL) {
                dc_cu_nccl_quit(cu);
                cu->lib.fn.StreamSynchronize(cu->stream);
            }
            cu->lib.fn.ModuleUnload(p->module);
            dc_cu_pop(cu, pushed);
        }
        atomic_fetch_sub(&cu->objects, 1);
    }
    free_program(p);
}
