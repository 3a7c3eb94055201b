#define _GNU_SOURCE /* madvise */
#include "backends/cpu/cpu.h"

#include "backends/cpu/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 64, HUGE_PAGE = 2 << 20, HUGE_FROM = 4 << 20, CODE_LEVEL = 2 };

static dc_cpu *cpu_of(dc_device *d)
{
    return (dc_cpu *)d;
}

static void cpu_free(dc_device *d)
{
    dc_cpu *cpu = cpu_of(d);
    dc_llvm_close(cpu->llvm);
    dc_xfree(cpu);
}

static const dc_target *cpu_target(const dc_device *d)
{
    return &((const dc_cpu *)d)->target;
}

/* --- memory ------------------------------------------------------------------------------- */

static dc_status cpu_alloc(dc_device *d, dc_job *j, size_t bytes, void **out)
{
    DC_UNUSED(d);
    const size_t align = bytes >= HUGE_FROM ? HUGE_PAGE : ALIGN;
    if (bytes > PTRDIFF_MAX - HUGE_PAGE)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    const size_t size = dc_align_up(bytes > 0 ? bytes : 1, align);
    void *mem = aligned_alloc(align, size);
    if (mem == NULL)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    if (align == HUGE_PAGE)
        madvise(mem, size, MADV_HUGEPAGE); /* a wish; refusal changes nothing */
    *out = mem;
    return DC_OK;
}

static void cpu_release(dc_device *d, void *mem)
{
    DC_UNUSED(d);
    free(mem);
}

static dc_status cpu_move(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes)
{
    DC_UNUSED(d);
    DC_UNUSED(j);
    if (bytes > 0)
        memmove(to, from, bytes);
    return DC_OK;
}

/* --- programs ----------------------------------------------------------------------------- */

static dc_status open_llvm(dc_cpu *cpu, dc_job *j)
{
    if (cpu->llvm != NULL)
        return DC_OK;
    const dc_llvm_conf conf = {.path = cpu->llvm_path,
                               .triple = cpu->target.triple,
                               .cpu = cpu->llvm_cpu,
                               .features = "",
                               .level = CODE_LEVEL};
    return dc_llvm_open(j, &conf, &cpu->llvm);
}

static dc_status cpu_compile(dc_device *d, dc_job *j, const dc_source *src, dc_program **out)
{
    dc_cpu *cpu = cpu_of(d);
    const void *object;
    size_t bytes;
    dc_image *image;
    if (strcmp(src->dialect, "llvm") != 0)
        return dc_failf(j, DC_ERR_BUILD, "cpu", "kernels come as LLVM IR, not as '%s'",
                        src->dialect);
    DC_TRY(open_llvm(cpu, j));
    const dc_mark mark = dc_arena_mark(&j->scratch);
    DC_TRY(dc_llvm_compile(cpu->llvm, j, src->text, &object, &bytes));
    dc_program *p = dc_xalloc(sizeof *p);
    dc_job_defer(j, dc_xfree, p);
    const dc_status status = dc_loader_load(j, object, bytes, src->entry, src->nentry, &image);
    dc_job_keep(j, p);
    dc_arena_rewind(&j->scratch, mark);
    if (status != DC_OK) {
        dc_xfree(p);
        return status;
    }
    p->image = image;
    p->nentry = image->nentry;
    p->entry = (dc_cpu_kernel *)(void *)image->entry; /* POSIX: as wide as pointers to data */
    *out = p;
    return DC_OK;
}

static void cpu_program_free(dc_device *d, dc_program *p)
{
    DC_UNUSED(d);
    if (p == NULL)
        return;
    dc_loader_unload(p->image);
    dc_xfree(p);
}

/* --- the device --------------------------------------------------------------------------- */

static const dc_device_ops ops = {
    .name = "cpu",
    .free = cpu_free,
    .target = cpu_target,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .upload = cpu_move,
    .download = cpu_move,
    .compile = cpu_compile,
    .program_free = cpu_program_free,
    .record = dc_cpu_record,
    .recording_free = dc_cpu_recording_free,
    .run = dc_cpu_run,
    .copy = cpu_move,
};

dc_status dc_cpu_open(dc_job *j, dc_device **out)
{
    dc_cpu *cpu = dc_xalloc(sizeof *cpu);
    cpu->device.ops = &ops;
    memcpy(cpu->llvm_path, j->opt->llvm, sizeof cpu->llvm_path);
    const dc_status status = dc_host_detect(j, j->opt->target, cpu);
    if (status != DC_OK) {
        dc_xfree(cpu);
        return status;
    }
    *out = &cpu->device;
    return DC_OK;
}

bool dc_cpu_describe(const dc_opts *opt, char *line, size_t size)
{
    char llvm[200];
    dc_job j;
    dc_cpu cpu = {0};
    dc_job_init(&j, opt, NULL);
    if (dc_host_detect(&j, opt->target, &cpu) != DC_OK) {
        dc_err_render(&j.err, 1, line, size);
        dc_job_fini(&j);
        return false;
    }
    dc_job_fini(&j);
    const bool found = dc_llvm_probe(opt->llvm, llvm, sizeof llvm);
    snprintf(line, size, "%s, vectors of %d bytes, %s", cpu.target.name + strlen("cpu "),
             cpu.target.vector_bytes, llvm);
    return found;
}
