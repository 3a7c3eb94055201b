/* Modules: an image is a shared object made by standin_nvrtc.c, opened from a file in memory. */
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "standin.h"

static size_t image_bytes(const void *image)
{
    Elf64_Ehdr e;
    memcpy(&e, image, sizeof e);
    return memcmp(e.e_ident, ELFMAG, 4) == 0 ? e.e_shoff + (size_t)e.e_shnum * e.e_shentsize : 0;
}

/* Binaries run on their major version from their minor on; sm_90a on 9.0 alone; PTX on all later. */
static bool runs_on(const kernel_arch *a, int sm)
{
    if (a->kind != 0)
        return a->sm == sm;
    if (a->virtual_)
        return a->sm <= sm;
    return a->sm / 10 == sm / 10 && a->sm <= sm;
}

/* PTX is text; the library of NVRTC beside this one knows how to make an image of it. */
static void *assemble(const char *ptx, size_t *bytes)
{
    char path[4200];
    Dl_info self;
    void *(*make)(const char *, size_t *) = NULL;
    if (dladdr(&device, &self) == 0)
        return NULL;
    const char *end = strrchr(self.dli_fname, '/');
    snprintf(path, sizeof path, "%.*slibnvrtc.so.13",
             end != NULL ? (int)(end + 1 - self.dli_fname) : 0, self.dli_fname);
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *p = lib != NULL ? dlsym(lib, "cuda_standin_assemble") : NULL;
    memcpy(&make, &p, sizeof make);
    return make != NULL ? make(ptx, bytes) : NULL;
}

static CUresult open_image(module *m, const void *image, int on)
{
    char path[64], *(*shared)(unsigned long *);
    unsigned long n = 0;
    const size_t bytes = image_bytes(image);
    m->fd = memfd_create("kernels", MFD_CLOEXEC);
    if (bytes == 0 || m->fd < 0 || write(m->fd, image, bytes) != (ssize_t)bytes)
        return CUDA_ERROR_INVALID_IMAGE;
    /* stays open: dlopen knows libraries by path, and addr2line reads it */
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), m->fd);
    m->lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (m->lib == NULL)
        return CUDA_ERROR_INVALID_IMAGE;
    m->arch = dlsym(m->lib, "kernel_arch_of_module");
    void *bounds = dlsym(m->lib, "kernel_shared"), *bind = dlsym(m->lib, "kernel_bind");
    if (m->arch == NULL || bounds == NULL || bind == NULL)
        return CUDA_ERROR_INVALID_IMAGE;
    memcpy(&shared, &bounds, sizeof shared);
    memcpy(&m->bind, &bind, sizeof bind);
    m->shared = shared(&n);
    m->shared_bytes = n;
    return runs_on(m->arch, set.sm[on]) ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

static void close_image(module *m)
{
    if (m->lib != NULL)
        dlclose(m->lib);
    if (m->fd >= 0)
        close(m->fd);
}

EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    ENTER_CONTEXT;
    module x = {.fd = -1};
    size_t n = 0;
    void *made = strncmp(image, ".version", 8) == 0 ? assemble(image, &n) : NULL;
    const CUresult e = open_image(&x, made != NULL ? made : image, ctx->device);
    free(made);
    if (e != CUDA_SUCCESS) {
        close_image(&x);
        return e;
    }
    module *m = new_handle(MODULE, sizeof *m, ctx->device, CALLER);
    x.h = m->h;
    *m = x;
    *out = (CUmodule)(void *)m;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n, int *options,
                                   void **values)
{
    (void)n, (void)options, (void)values;
    return cuModuleLoadData(m, image);
}

EXPORT CUresult cuModuleUnload(CUmodule x)
{
    module *m = (module *)(void *)x;
    ENTER_CONTEXT;
    WANT(m, MODULE);
    if (module_is_queued(m)) {
        misuse(__func__, "a launch of module %lu has not run yet", (unsigned long)m->h.serial);
        drain_device(ctx->device);
    }
    m->h.alive = false;
    for (function *f = m->first; f != NULL; f = f->next)
        f->h.alive = false;
    close_image(m);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule x, const char *name)
{
    module *m = (module *)(void *)x;
    char symbol[120];
    ENTER_CONTEXT;
    WANT(m, MODULE);
    snprintf(symbol, sizeof symbol, "kernel_entry_%s", name);
    void *entry = dlsym(m->lib, symbol);
    snprintf(symbol, sizeof symbol, "kernel_info_%s", name);
    const kernel_info *info = dlsym(m->lib, symbol);
    if (entry == NULL || info == NULL)
        return CUDA_ERROR_NOT_FOUND;
    function *f = new_handle(FUNCTION, sizeof *f, ctx->device, CALLER);
    f->m = m;
    f->next = m->first;
    m->first = f;
    f->info = info;
    memcpy(&f->entry, &entry, sizeof entry);
    snprintf(f->name, sizeof f->name, "%s", name);
    f->most_dynamic =
        m->shared_bytes < STATIC_SHARED ? STATIC_SHARED - (unsigned)m->shared_bytes : 0;
    *out = (CUfunction)(void *)f;
    return CUDA_SUCCESS;
}

/* The line of the text that an address of the module's code is of, by addr2line: what is inlined first. */
int module_line(const module *m, const void *pc)
{
    char line[300];
    Dl_info info;
    int found = 0;
    if (pc == NULL || dladdr(pc, &info) == 0)
        return 0;
    snprintf(line, sizeof line, "addr2line -i -e /proc/%d/fd/%d 0x%lx 2>/dev/null", (int)getpid(),
             m->fd, (unsigned long)((const char *)pc - (const char *)info.dli_fbase) - 1);
    FILE *f = popen(line, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *at = strstr(line, "kernels.cu:");
        if (at != NULL && found == 0)
            found = (int)strtol(at + strlen("kernels.cu:"), NULL, 10);
    }
    if (f != NULL)
        pclose(f);
    return found;
}

/* Functions --------------------------------------------------------------------------------- */

EXPORT CUresult cuFuncSetAttribute(CUfunction x, CUfunction_attribute a, int value)
{
    function *f = (function *)(void *)x;
    ENTER_CONTEXT;
    WANT(f, FUNCTION);
    if (a == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        return CUDA_SUCCESS;
    if (a != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return misuse(__func__, "attribute %d cannot be set", a);
    if (value < 0 || (size_t)value + f->m->shared_bytes > (size_t)shared_of_block(set.sm[ctx->device]))
        return CUDA_ERROR_INVALID_VALUE;
    f->most_dynamic = (unsigned)value;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute a, CUfunction x)
{
    const function *f = (const function *)(const void *)x;
    ENTER_CONTEXT;
    WANT(f, FUNCTION);
    switch (a) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = f->info->threads != 0 ? (int)f->info->threads : ENGINE_MOST_THREADS;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: /* of all of the module */
        *value = (int)f->m->shared_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = 0;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = f->m->arch->sm;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = (int)f->most_dynamic;
        break;
    default:
        return misuse(__func__, "the stand-in does not know attribute %d", a);
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetParamInfo(CUfunction x, size_t i, size_t *offset, size_t *bytes)
{
    const function *f = (const function *)(const void *)x;
    ENTER_CONTEXT;
    WANT(f, FUNCTION);
    if (i >= f->info->nparam)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = 0;
    for (size_t k = 0; k <= i; k++) { /* each is aligned to its size, up to 8 */
        const size_t n = f->info->size[k], align = n < 8 ? n : 8;
        *offset = (*offset + align - 1) / align * align + (k < i ? n : 0);
    }
    if (bytes != NULL)
        *bytes = f->info->size[i];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction x, int threads,
                                                            size_t dynamic)
{
    const function *f = (const function *)(const void *)x;
    ENTER_CONTEXT;
    WANT(f, FUNCTION);
    if (threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    const size_t shared = f->m->shared_bytes + dynamic + 1024;
    const int by_threads = 2048 / ((threads + 31) / 32 * 32);
    const int by_shared = (int)((size_t)(shared_of_block(set.sm[ctx->device]) + 1024) / shared);
    *n = by_threads < by_shared ? by_threads : by_shared;
    *n = *n < 32 ? *n : 32;
    return CUDA_SUCCESS;
}
