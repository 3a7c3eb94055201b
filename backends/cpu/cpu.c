#include "backends/cpu/cpu.h"

#include "backends/cpu/cpu_impl.h"

#include <stdio.h>
#include <string.h>

/*
 * Of LLVM: what 2 does besides is to schedule once more after registers are given, a tenth of the
 * time of a compilation for nothing that could be measured.
 */
enum { CODE_LEVEL = 1 };

/*
 * Bytes of text that LLVM is given inside of our process, where it cannot be ended: it takes 0.6 to 1.5 s for
 * a MiB. Kernels of whole groups of operations have up to 3 MiB; a script can make one of 14 of fifty
 * transposed operands, and more.
 */
enum { MOST_TEXT = 8 << 20 };

static dc_cpu *cpu_of(dc_device *d)
{
    return (dc_cpu *)d;
}

static void cpu_free(dc_device *d)
{
    dc_cpu *cpu = cpu_of(d);
    dc_cpu_pool_free(cpu->pool);
    dc_llvm_close(cpu->llvm);
    dc_servers_close(cpu->servers);
    DC_VEC_FREE(cpu->reserved);
    dc_chunks_free(&cpu->chunks);
    dc_xfree(cpu);
}

static const dc_target *cpu_target(const dc_device *d)
{
    return &((const dc_cpu *)d)->target;
}

/* --- programs ----------------------------------------------------------------------------- */

static dc_llvm_conf llvm_conf(const dc_cpu *cpu)
{
    return (dc_llvm_conf){.path = cpu->llvm_path,
                          .triple = cpu->target.triple,
                          .cpu = cpu->llvm_cpu,
                          .features = "",
                          .level = CODE_LEVEL};
}

/* Two threads that are the first open it twice, and one closes it again. */
static dc_status open_llvm(dc_cpu *cpu, dc_job *j, dc_llvm **out)
{
    *out = atomic_load(&cpu->llvm);
    if (*out != NULL)
        return DC_OK;
    const dc_llvm_conf conf = llvm_conf(cpu);
    dc_llvm *mine, *before = NULL;
    const uint64_t begun = dc_clock_ns();
    DC_TRY(dc_llvm_open(j, &conf, &mine));
    dc_logf(j->log, DC_CH_CACHE, "compiler opened in %.1f ms",
            (double)(dc_clock_ns() - begun) / 1e6);
    *out = mine;
    if (!atomic_compare_exchange_strong(&cpu->llvm, &before, mine)) {
        dc_llvm_close(mine);
        *out = before;
    }
    return DC_OK;
}

static void cpu_settings(dc_device *d, dc_text *out)
{
    const dc_llvm_conf conf = llvm_conf(cpu_of(d));
    dc_llvm_settings(&conf, out);
}

static bool cpu_toolchain(dc_device *d, dc_text *out)
{
    const dc_llvm_conf conf = llvm_conf(cpu_of(d));
    return dc_llvm_toolchain(&conf, out);
}

static dc_status check_length(dc_job *j, const dc_source *src)
{
    const size_t n = strlen(src->text);
    if (n <= MOST_TEXT)
        return DC_OK;
    return dc_failf(
        j, DC_ERR_BUILD, "cpu",
        "the text of a kernel has %.1f MiB, and LLVM, which cannot be interrupted, is given %d "
        "at most; DEEPC_COMPILE=process has it read any",
        (double)n / (1 << 20), MOST_TEXT >> 20);
}

static dc_status cpu_translate(dc_device *d, dc_job *j, const dc_source *src, const void **object,
                               size_t *bytes)
{
    dc_llvm *llvm;
    if (strcmp(src->dialect, "llvm") != 0)
        return dc_failf(j, DC_ERR_BUILD, "cpu", "kernels come as LLVM IR, not as '%s'",
                        src->dialect);
    if (cpu_of(d)->servers != NULL)
        return dc_servers_compile(cpu_of(d)->servers, j, src->text, object, bytes);
    DC_TRY(check_length(j, src));
    DC_TRY(open_llvm(cpu_of(d), j, &llvm));
    return dc_llvm_compile(llvm, j, src->text, object, bytes);
}

static dc_status cpu_load(dc_device *d, dc_job *j, const dc_source *src, const void *object,
                          size_t bytes, dc_program **out)
{
    dc_image *image;
    DC_UNUSED(d);
    dc_program *p = dc_xalloc(sizeof *p);
    dc_job_defer(j, dc_xfree, p);
    DC_TRY(dc_job_settle(j, p, dc_loader_load(j, object, bytes, src->entry, src->nentry, &image)));
    p->image = image;
    p->nentry = image->nentry;
    p->entry = (dc_cpu_kernel *)(void *)image->entry; /* POSIX: as wide as pointers to data */
    *out = p;
    return DC_OK;
}

static dc_status cpu_compile(dc_device *d, dc_job *j, const dc_source *src, dc_program **out)
{
    const void *object;
    size_t bytes;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    DC_TRY(cpu_translate(d, j, src, &object, &bytes));
    const dc_status status = cpu_load(d, j, src, object, bytes, out);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}

static void program_free(void *what)
{
    dc_program *p = what;
    if (p->image != NULL)
        dc_loader_unload(p->image);
    else
        dc_xfree(p->entry);
    dc_cc_unload(p->library);
    dc_xfree(p);
}

static void cpu_program_free(dc_device *d, dc_program *p)
{
    DC_UNUSED(d);
    if (p != NULL)
        program_free(p);
}

/* The program that `load` makes of a source and what is given besides. */
static dc_status cc_program(dc_cpu *cpu, dc_job *j, const dc_source *src, const void *object,
                            size_t bytes, dc_program **out)
{
    if (strcmp(src->dialect, "c11") != 0)
        return dc_failf(j, DC_ERR_BUILD, "cpu:cc", "kernels come as C11, not as '%s'",
                        src->dialect);
    dc_program *p = dc_xalloc(sizeof *p);
    dc_job_defer(j, program_free, p);
    p->nentry = src->nentry;
    p->entry = dc_xalloc((src->nentry + 1) * sizeof *p->entry);
    void **entry = (void **)(void *)p->entry;
    const dc_status status = object != NULL
                                 ? dc_cc_load(&cpu->cc, j, src, object, bytes, entry, &p->library)
                                 : dc_cc_compile(&cpu->cc, j, src, entry, &p->library);
    DC_TRY(dc_job_settle(j, p, status));
    *out = p;
    return DC_OK;
}

static dc_status cc_compile(dc_device *d, dc_job *j, const dc_source *src, dc_program **out)
{
    return cc_program(cpu_of(d), j, src, NULL, 0, out);
}

static dc_status cc_load(dc_device *d, dc_job *j, const dc_source *src, const void *object,
                         size_t bytes, dc_program **out)
{
    return cc_program(cpu_of(d), j, src, object, bytes, out);
}

static dc_status cc_translate(dc_device *d, dc_job *j, const dc_source *src, const void **object,
                              size_t *bytes)
{
    return dc_cc_translate(&cpu_of(d)->cc, j, src, object, bytes);
}

static void cc_settings(dc_device *d, dc_text *out)
{
    dc_cc_settings(&cpu_of(d)->cc, out);
}

static bool cc_toolchain(dc_device *d, dc_text *out)
{
    return dc_cc_toolchain(&cpu_of(d)->cc, out);
}

/* --- the device --------------------------------------------------------------------------- */

/* One machine with two compilers, whose functions begin with the word. */
#define OPS(compiler)                                                                          \
    .free = cpu_free, .target = cpu_target, .alloc = dc_cpu_alloc, .release = dc_cpu_release,  \
    DC_HOST_MEMORY_OPS, .compile = compiler##_compile, .settings = compiler##_settings,        \
    .toolchain = compiler##_toolchain, .translate = compiler##_translate, .load = compiler##_load, \
    .program_free = cpu_program_free, .record = dc_cpu_record,                                 \
    .recording_free = dc_cpu_recording_free, .run = dc_cpu_run, .reserve = dc_cpu_reserve,     \
    .commit = dc_cpu_commit

static const dc_device_ops ops = {OPS(cpu), .name = "cpu", .one_by_one = true};
static const dc_device_ops cc_ops = {OPS(cc), .name = "cpu:cc"};

static dc_status open_cpu(dc_job *j, const char *set, dc_device **out)
{
    dc_cpu *cpu = dc_xalloc(sizeof *cpu);
    cpu->device.ops = &ops;
    memcpy(cpu->llvm_path, j->opt->llvm, sizeof cpu->llvm_path);
    cpu->split_all = j->opt->check >= 2;
    dc_job_defer(j, dc_xfree, cpu);
    const dc_status status = dc_host_detect(j, set, cpu);
    if (status == DC_OK)
        cpu->pool = dc_cpu_pool_new(j->opt->threads > 0 ? j->opt->threads : cpu->cores);
    DC_TRY(dc_job_settle(j, cpu, status));
    cpu->device.threads = dc_cpu_pool_width(cpu->pool);
    *out = &cpu->device;
    return DC_OK;
}

dc_status dc_cpu_open_cc(dc_job *j, const char *set, dc_device **out)
{
    char name[sizeof((dc_target *)0)->name];
    DC_TRY(open_cpu(j, set, out));
    dc_cpu *cpu = cpu_of(*out);
    dc_target *t = &cpu->target;
    cpu->device.ops = &cc_ops;
    memcpy(cpu->cc.command, j->opt->cc, sizeof cpu->cc.command);
    memcpy(cpu->cc.folder, j->opt->tmp, sizeof cpu->cc.folder);
    cpu->cc.march = cpu->llvm_cpu != NULL ? cpu->llvm_cpu : "native";
    memcpy(name, t->name, sizeof name);
    snprintf(t->name, sizeof t->name, "cpu:cc%.50s", name + strlen("cpu"));
    snprintf(t->dialect, sizeof t->dialect, "c11");
    t->half = t->scales = t->ranges = t->fused = t->dp4a = false; /* its text has no words for that */
    return DC_OK;
}

dc_status dc_cpu_open(dc_job *j, const char *set, dc_device **out)
{
    DC_TRY(open_cpu(j, set, out));
    if (strcmp(j->opt->compile, "process") != 0)
        return DC_OK;
    dc_cpu *cpu = cpu_of(*out);
    const dc_llvm_conf conf = llvm_conf(cpu);
    const dc_status status = dc_servers_open(j, &conf, j->opt->compiler, &cpu->servers);
    if (status != DC_OK)
        cpu_free(*out);
    return status;
}

/* --- in a line ---------------------------------------------------------------------------- */

/* The target, or the sentence why there is none. */
static bool detect(const dc_opts *opt, const char *set, dc_target *t, char *line, size_t size)
{
    dc_job j;
    dc_cpu cpu = {0};
    dc_job_init(&j, opt, NULL);
    const bool ok = dc_host_detect(&j, set, &cpu) == DC_OK;
    if (!ok)
        dc_err_render(&j.err, 1, line, size);
    *t = cpu.target;
    dc_job_fini(&j);
    return ok;
}

bool dc_cpu_describe_cc(const dc_opts *opt, const char *set, char *line, size_t size)
{
    dc_target t;
    return detect(opt, set, &t, line, size) && dc_cc_probe(opt->cc, line, size);
}

bool dc_cpu_describe(const dc_opts *opt, const char *set, char *line, size_t size)
{
    char llvm[200], sets[80];
    dc_target t;
    if (!detect(opt, set, &t, line, size))
        return false;
    const bool found = dc_llvm_probe(opt->llvm, llvm, sizeof llvm);
    snprintf(line, size, "%s, vectors of %d bytes, %s; instruction sets: %s",
             t.name + strlen("cpu "), t.vector_bytes, llvm, dc_host_sets(opt, sets, sizeof sets));
    return found;
}
