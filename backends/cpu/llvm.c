#define _GNU_SOURCE /* dladdr */
#include "backends/cpu/llvm.h"

#include "backends/cpu/toolchain.h"
#include "backends/library.h"
#include "core/base/digits.h"
#include "core/base/owner.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OLDEST = 15, SPARE = 4 };

/* LLVM's own numbers (llvm-c/TargetMachine.h, Analysis.h). */
enum { RELOC_PIC = 2, MODEL_SMALL = 3, TYPE_OBJECT = 1, VERIFY_RETURN = 2, SEVERITY_ERROR = 0 };

/*
 * Kernels arrive with explicit vectors, unrolled tiles and hoisted addresses. What they need is
 * their local arrays in registers and cleaning up between instructions; the usual "default<O2>"
 * takes more than twice as long to make code that is no faster (backends/cpu/README.md).
 */
static const char *const usual_passes =
    "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)";
/* Up to 17 there is no such option; from 18 on, without it, a missed fixpoint ends the process. */
static const char *const usual_passes_17 =
    "function(sroa,early-cse<memssa>,instcombine,simplifycfg)";

typedef struct api {
#define API(result, name, parameters)          result(*name) parameters;
#define API_OPTIONAL(result, name, parameters) result(*name) parameters;
#include "backends/cpu/llvm_api.def"
} api;

static const dc_library_symbol symbols[] = {
#define API(result, name, parameters)          {"LLVM" #name, offsetof(api, name), false},
#define API_OPTIONAL(result, name, parameters) {"LLVM" #name, offsetof(api, name), true},
#include "backends/cpu/llvm_api.def"
};

/* An open library. */
typedef struct library {
    void *handle;
    api fn;
    unsigned version[3];
} library;

struct dc_llvm {
    library lib;
    dc_llvm_conf conf; /* its strings outlive us */
    const char *passes;
    pthread_mutex_t lock;
    void *machine[SPARE]; /* idle target machines */
    int nmachine;
};

/*
 * Opening and closing the library changes what is one for the whole process (its table of targets,
 * its command line options), and contexts of several threads may do it at once. No other state of
 * ours is outside a context.
 */
static dc_process_lock opening;

/* Before 16 the library does not tell its version; 14 lacks a function that 15 brought. */
static void ask_version(library *lib)
{
    if (lib->fn.GetVersion != NULL)
        lib->fn.GetVersion(&lib->version[0], &lib->version[1], &lib->version[2]);
    else
        lib->version[0] = lib->fn.GetAggregateElement != NULL ? 15 : 14;
}

/* Opens one library; on failure nothing stays open and `why` tells. */
static bool open_library(const char *name, library *lib, char *why, size_t size)
{
    memset(lib, 0, sizeof *lib);
    lib->handle = dc_library_open(name, RTLD_LAZY, why, size);
    if (lib->handle == NULL)
        return false;
    const char *missing = dc_library_resolve(lib->handle, symbols, DC_COUNTOF(symbols), &lib->fn);
    if (lib->fn.GetVersion == NULL && lib->fn.ContextCreate == NULL) {
        snprintf(why, size, "%s is not LLVM", name);
    } else {
        ask_version(lib);
        if (lib->version[0] < OLDEST)
            snprintf(why, size, "%s is older than LLVM %d", name, OLDEST);
        else if (missing != NULL)
            snprintf(why, size, "%s has no %s", name, missing);
        else
            return true;
    }
    dc_library_close(&lib->handle);
    return false;
}

/* Bytes that may still be mapped; SIZE_MAX: there is no limit, or it is not known. */
static size_t room_for_maps(struct rlimit *limit)
{
    char line[80];
    const char *at = line;
    uint64_t pages = 0;
    FILE *f;
    if (getrlimit(RLIMIT_AS, limit) != 0 || limit->rlim_cur == RLIM_INFINITY ||
        (f = fopen("/proc/self/statm", "re")) == NULL)
        return SIZE_MAX;
    const bool read = fgets(line, sizeof line, f) != NULL &&
                      dc_digits_unsigned(&at, NULL, SIZE_MAX / 4096, &pages) == DC_DIGITS_OK;
    fclose(f);
    const size_t used = pages * (size_t)sysconf(_SC_PAGESIZE);
    return !read ? SIZE_MAX : limit->rlim_cur > used ? limit->rlim_cur - used : 0;
}

/*
 * LLVM ends the process when it gets no memory, so it is opened only where there is room for itself and for
 * what it does: of its file nearly all is mapped.
 */
static bool has_room(const char *path, char *why, size_t size)
{
    enum { WORK = 96 << 20, MIB = 1 << 20 };
    struct stat file;
    struct rlimit limit;
    const size_t room = room_for_maps(&limit);
    if (room == SIZE_MAX || stat(path, &file) != 0 || room >= (size_t)file.st_size + WORK)
        return true;
    snprintf(why, size,
             "%s needs %zu MiB of address space, and %zu are left of the limit of %zu (ulimit -v, "
             "RLIMIT_AS): raise "
             "it, or do without the compiler (DEEPC_COMPILE=cache or off)",
             path, ((size_t)file.st_size + WORK) / MIB, room / MIB, (size_t)limit.rlim_cur / MIB);
    return false;
}

static bool find_library(const char *path, library *lib, char *why, size_t size)
{
    char found[1024];
    const bool known = dc_toolchain_find_llvm(path != NULL ? path : "", found, sizeof found);
    if (known && !has_room(found, why, size))
        return false;
    if (path != NULL && path[0] != '\0')
        return open_library(path, lib, why, size);
    /* the one that dc_llvm_toolchain names */
    if (known && open_library(found, lib, why, size))
        return true;
    for (size_t i = 0; dc_toolchain_llvm[i] != NULL; i++)
        if (open_library(dc_toolchain_llvm[i], lib, why, size))
            return true;
    snprintf(why, size,
             "no LLVM library of version %d or later is installed (Debian: apt-get install "
             "libllvm19; DEEPC_LLVM names one elsewhere)",
             OLDEST);
    return false;
}

bool dc_llvm_toolchain(const dc_llvm_conf *conf, dc_text *out)
{
    char path[1024];
    return dc_toolchain_find_llvm(conf->path, path, sizeof path) && dc_library_put_id(path, out);
}

void dc_llvm_settings(const dc_llvm_conf *conf, dc_text *out)
{
    dc_text_printf(out, "%s %s %s %d\n", conf->passes != NULL ? conf->passes : usual_passes,
                   conf->triple, conf->cpu != NULL ? conf->cpu : "host", conf->level);
    if (conf->cpu == NULL)
        dc_toolchain_put_processor(out);
}

bool dc_llvm_probe(const char *path, char *line, size_t size)
{
    library lib;
    if (!find_library(path, &lib, line, size))
        return false;
    Dl_info where = {0};
    void *p;
    memcpy(&p, &lib.fn.ContextCreate, sizeof p);
    dladdr(p, &where);
    snprintf(line, size, "LLVM %u.%u.%u, %s", lib.version[0], lib.version[1], lib.version[2],
             where.dli_fname != NULL ? where.dli_fname : path);
    dc_library_close(&lib.handle);
    return true;
}

static void init_x86(const api *fn)
{
    fn->InitializeX86TargetInfo();
    fn->InitializeX86Target();
    fn->InitializeX86TargetMC();
    fn->InitializeX86AsmPrinter();
    fn->InitializeX86AsmParser(); /* or LLVM ends the process at inline assembly */
}

/*
 * What the processor has, for CreateTargetMachine. LLVM 18 ends the process where a loop converts 16-bit floats by
 * instructions of AVX512-FP16; kernels compute with those of AVX512 as well.
 */
static void find_features(const library *lib, char *out, size_t size)
{
    char *features = lib->fn.GetHostCPUFeatures();
    snprintf(out, size, "%s%s", features, lib->version[0] == 18 ? ",-avx512fp16" : "");
    lib->fn.DisposeMessage(features);
}

/* NULL with a message (of LLVM, or NULL) when the triple is unknown. */
static void *make_machine(const library *lib, const dc_llvm_conf *conf, char **message)
{
    const api *fn = &lib->fn;
    char features[8192]; /* some hundred words */
    void *target = NULL;
    if (fn->GetTargetFromTriple(conf->triple, &target, message) != 0)
        return NULL;
    if (conf->cpu != NULL)
        return fn->CreateTargetMachine(target, conf->triple, conf->cpu, conf->features, conf->level,
                                       RELOC_PIC, MODEL_SMALL);
    find_features(lib, features, sizeof features);
    char *cpu = fn->GetHostCPUName();
    void *machine = fn->CreateTargetMachine(target, conf->triple, cpu, features, conf->level,
                                            RELOC_PIC, MODEL_SMALL);
    fn->DisposeMessage(cpu);
    return machine;
}

static void give_machine(dc_llvm *l, void *machine)
{
    pthread_mutex_lock(&l->lock);
    if (l->nmachine < SPARE) {
        l->machine[l->nmachine++] = machine;
        machine = NULL;
    }
    pthread_mutex_unlock(&l->lock);
    if (machine != NULL)
        l->lib.fn.DisposeTargetMachine(machine);
}

/* A machine for the caller alone, or NULL with a message. */
static void *take_machine(dc_llvm *l, char **message)
{
    pthread_mutex_lock(&l->lock);
    void *machine = l->nmachine > 0 ? l->machine[--l->nmachine] : NULL;
    pthread_mutex_unlock(&l->lock);
    return machine != NULL ? machine : make_machine(&l->lib, &l->conf, message);
}

static dc_status refuse_target(const dc_llvm *l, dc_job *j, char *message)
{
    dc_failf(j, DC_ERR_DEVICE, "cpu", "LLVM %u cannot generate code for %s%s%s", l->lib.version[0],
             l->conf.triple, message != NULL ? ": " : "", message != NULL ? message : "");
    if (message != NULL)
        l->lib.fn.DisposeMessage(message);
    return DC_E_DEVICE;
}

/* With the lock that is one for the process. */
static bool open_locked(dc_llvm *l, char *why, size_t size)
{
    dc_process_lock_take(&opening);
    const bool found = find_library(l->conf.path, &l->lib, why, size);
    if (found)
        init_x86(&l->lib.fn);
    dc_process_lock_drop(&opening);
    return found;
}

dc_status dc_llvm_open(dc_job *j, const dc_llvm_conf *conf, dc_llvm **out)
{
    char why[500], *message = NULL;
    dc_llvm *l = dc_xalloc(sizeof *l); /* before anything that unwinding would lose */
    l->conf = *conf;
    if (!open_locked(l, why, sizeof why)) {
        dc_xfree(l);
        return dc_failf(j, DC_ERR_DEVICE, "cpu", "%s", why);
    }
    pthread_mutex_init(&l->lock, NULL);
    l->passes = l->lib.version[0] >= 18 ? usual_passes : usual_passes_17;
    if (conf->passes != NULL)
        l->passes = conf->passes;
    void *machine = take_machine(l, &message);
    if (machine == NULL) {
        refuse_target(l, j, message);
        dc_llvm_close(l);
        return DC_E_DEVICE;
    }
    give_machine(l, machine);
    *out = l;
    return DC_OK;
}

void dc_llvm_close(dc_llvm *l)
{
    if (l == NULL)
        return;
    while (l->nmachine > 0)
        l->lib.fn.DisposeTargetMachine(l->machine[--l->nmachine]);
    dc_process_lock_take(&opening);
    dc_library_close(&l->lib.handle);
    dc_process_lock_drop(&opening);
    pthread_mutex_destroy(&l->lock);
    dc_xfree(l);
}

/* Everything one compilation holds. It is on the job's cleanup list while it lives. */
typedef struct build {
    dc_llvm *llvm;
    const api *fn;
    void *machine;
    void *context, *module, *layout, *options, *object;
    char *message;   /* made by LLVM */
    char words[300]; /* first error seen by the diagnostic handler */
} build;

static void build_end(void *arg)
{
    build *b = arg;
    const api *fn = b->fn;
    if (b->message != NULL)
        fn->DisposeMessage(b->message);
    if (b->object != NULL)
        fn->DisposeMemoryBuffer(b->object);
    if (b->options != NULL)
        fn->DisposePassBuilderOptions(b->options);
    if (b->layout != NULL)
        fn->DisposeTargetData(b->layout);
    if (b->module != NULL)
        fn->DisposeModule(b->module);
    if (b->context != NULL)
        fn->ContextDispose(b->context);
    if (b->machine != NULL)
        give_machine(b->llvm, b->machine);
}

/* Without a handler LLVM prints errors of the code generator and ends the process. */
static void see_diagnostic(void *info, void *arg)
{
    build *b = arg;
    if (b->words[0] != '\0' || b->fn->GetDiagInfoSeverity(info) != SEVERITY_ERROR)
        return;
    char *text = b->fn->GetDiagInfoDescription(info);
    snprintf(b->words, sizeof b->words, "%s", text);
    b->fn->DisposeMessage(text);
}

/* "kernel:3:5: error: ..." without the quoted source line behind it. */
static dc_status fail_build(dc_job *j, const char *what, const char *words)
{
    const char *s = words != NULL ? words : "no reason given";
    return dc_failf(j, DC_ERR_BUILD, "cpu", "%s: %.*s", what, (int)strcspn(s, "\n"), s);
}

static dc_status parse(build *b, dc_job *j, const char *text)
{
    void *in = b->fn->CreateMemoryBufferWithMemoryRange(text, strlen(text), "kernel", 1);
    if (b->fn->ParseIRInContext(b->context, in, &b->module, &b->message) != 0) {
        b->module = NULL;
        return fail_build(j, "the compiler cannot read a kernel", b->message);
    }
    if (b->fn->VerifyModule(b->module, VERIFY_RETURN, &b->message) != 0)
        return fail_build(j, "the compiler finds a kernel illegal", b->message);
    if (b->message != NULL) /* the verifier gives an empty one */
        b->fn->DisposeMessage(b->message);
    b->message = NULL;
    return DC_OK;
}

static dc_status optimize(build *b, dc_job *j)
{
    b->options = b->fn->CreatePassBuilderOptions();
    void *error = b->fn->RunPasses(b->module, b->llvm->passes, b->machine, b->options);
    if (error == NULL)
        return DC_OK;
    char *text = b->fn->GetErrorMessage(error);
    fail_build(j, "the compiler's passes failed", text);
    b->fn->DisposeErrorMessage(text);
    return DC_E_BUILD;
}

/* The only lane of a mask that is a constant; -1: it is none, or has several, or they are not known. */
static int only_lane(const api *fn, void *mask)
{
    int lane = -1;
    if (fn->IsAConstant(mask) == NULL || fn->GetAggregateElement == NULL)
        return -1;
    for (unsigned i = 0; i < fn->GetVectorSize(fn->TypeOf(mask)); i++) {
        void *bit = fn->GetAggregateElement(mask, i);
        if (bit == NULL || fn->IsAConstantInt(bit) == NULL)
            return -1;
        if (fn->ConstIntGetZExtValue(bit) == 0)
            continue;
        if (lane >= 0)
            return -1;
        lane = (int)i;
    }
    return lane;
}

/* Is it a call of llvm.masked.store, of one lane? Its arguments are a vector, an address, until 21 the alignment, a mask. */
static int only_lane_stored(const api *fn, void *instruction)
{
    static const char name[] = "llvm.masked.store.";
    size_t n = 0;
    if (fn->IsACallInst(instruction) == NULL)
        return -1;
    const char *called = fn->GetValueName2(fn->GetCalledValue(instruction), &n);
    if (n < sizeof name || strncmp(called, name, sizeof name - 1) != 0)
        return -1;
    return only_lane(fn, fn->GetOperand(instruction, fn->GetNumArgOperands(instruction) - 1));
}

static void store_lane(const api *fn, void *context, void *builder, void *call, int lane)
{
    void *vector = fn->GetOperand(call, 0), *pointer = fn->GetOperand(call, 1);
    void *index = fn->ConstInt(fn->Int64TypeInContext(context), (unsigned long long)lane, 0);
    fn->PositionBuilderBefore(builder, call);
    void *element = fn->BuildExtractElement(builder, vector, index, "");
    pointer =
        fn->BuildGEP2(builder, fn->GetElementType(fn->TypeOf(vector)), pointer, &index, 1, "");
    fn->SetAlignment(fn->BuildStore(builder, element, pointer), 1);
    fn->InstructionEraseFromParent(call);
}

/*
 * Masked stores of one lane become stores of an element. LLVM 22 does that itself, and where the vector comes out of a
 * wider one (f32 to bf16, i32 to i8) stores an element of that: what lies behind is overwritten.
 */
static void store_single_lanes(build *b)
{
    const api *fn = b->fn;
    void *builder = fn->CreateBuilderInContext(b->context);
    for (void *f = fn->GetFirstFunction(b->module); f != NULL; f = fn->GetNextFunction(f))
        for (void *at = fn->GetFirstBasicBlock(f); at != NULL; at = fn->GetNextBasicBlock(at))
            for (void *i = fn->GetFirstInstruction(at), *next; i != NULL; i = next) {
                next = fn->GetNextInstruction(i);
                const int lane = only_lane_stored(fn, i);
                if (lane >= 0)
                    store_lane(fn, b->context, builder, i, lane);
            }
    fn->DisposeBuilder(builder);
}

static dc_status emit_object(build *b, dc_job *j)
{
    if (b->fn->TargetMachineEmitToMemoryBuffer(b->machine, b->module, TYPE_OBJECT, &b->message,
                                               &b->object) != 0)
        return fail_build(j, "the compiler cannot write an object", b->message);
    if (b->words[0] != '\0')
        return fail_build(j, "the compiler cannot generate code", b->words);
    return DC_OK;
}

static dc_status run_build(build *b, dc_job *j, const char *text)
{
    char *message = NULL;
    b->machine = take_machine(b->llvm, &message);
    if (b->machine == NULL)
        return refuse_target(b->llvm, j, message);
    b->context = b->fn->ContextCreate();
    b->fn->ContextSetDiagnosticHandler(b->context, see_diagnostic, b);
    DC_TRY(parse(b, j, text));
    b->layout = b->fn->CreateTargetDataLayout(b->machine);
    b->fn->SetTarget(b->module, b->llvm->conf.triple);
    b->fn->SetModuleDataLayout(b->module, b->layout);
    DC_TRY(optimize(b, j));
    store_single_lanes(b);
    return emit_object(b, j);
}

dc_status dc_llvm_compile(dc_llvm *l, dc_job *j, const char *text, const void **object,
                          size_t *bytes)
{
    build *b = DC_NEW(&j->scratch, build);
    b->llvm = l;
    b->fn = &l->lib.fn;
    dc_job_defer(j, build_end, b);
    dc_status status = run_build(b, j, text);
    if (status == DC_OK) {
        *bytes = b->fn->GetBufferSize(b->object);
        void *copy = dc_arena_alloc(&j->scratch, *bytes);
        *object = memcpy(copy, b->fn->GetBufferStart(b->object), *bytes);
    }
    dc_job_keep(j, b);
    build_end(b);
    return status;
}
