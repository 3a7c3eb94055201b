/*
 * What the machine can do, asked from the processor itself, so that knowing the target needs no
 * compiler. The level of the psABI, the model and the features name all that generated code depends
 * on, which makes them fit for keys.
 */
#include "backends/cpu/cpu_impl.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* An instruction set that kernels are written for: of the psABI, or all that the machine has. */
typedef struct level {
    const char *set; /* "cpu:SET", DEEPC_TARGET */
    int number;      /* x86-64-vN; 0 the machine's */
    const char *cpu; /* of LLVM and gcc; NULL the machine */
    int vector_bytes, vector_registers;
} level;

static const level levels[] = {
    {"native", 0, NULL, 0, 0},
    {"avx512", 4, "x86-64-v4", 64, 32},
    {"avx2", 3, "x86-64-v3", 32, 16},
    {"baseline", 1, "x86-64", 16, 16},
};

static size_t cache_size(int name, size_t otherwise)
{
    const long n = sysconf(name);
    return n > 0 ? (size_t)n : otherwise;
}

#if defined(__x86_64__)

#include <cpuid.h>

/* The features that change generated code, by the names LLVM has for them. */
/* clang-format off */
#define FEATURES(F) \
    F("sse3", "sse3") F("ssse3", "ssse3") F("sse4.1", "sse4.1") F("sse4.2", "sse4.2") \
    F("popcnt", "popcnt") F("avx", "avx") F("avx2", "avx2") F("fma", "fma") \
    F("bmi", "bmi") F("bmi2", "bmi2") F("avx512f", "avx512f") F("avx512bw", "avx512bw") \
    F("avx512cd", "avx512cd") F("avx512dq", "avx512dq") F("avx512vl", "avx512vl") \
    F("avx512vbmi", "avx512vbmi") F("avx512vnni", "avx512vnni") F("avx512bf16", "avx512bf16")
/* clang-format on */

/*
 * Bytes of the data cache of level 3 that a core reaches, by the leaf of Intel or that of AMD; 0 if
 * it has none. sysconf gives the sum of a whole processor, which no core has.
 */
static size_t shared_cache(void)
{
    static const unsigned leaves[] = {4, 0x8000001d};
    for (size_t l = 0; l < DC_COUNTOF(leaves); l++)
        for (unsigned n = 0; n < 8; n++) {
            unsigned a = 0, b = 0, c = 0, d = 0;
            if (!__get_cpuid_count(leaves[l], n, &a, &b, &c, &d) || (a & 31) == 0)
                break;
            if ((a >> 5 & 7) == 3)
                return ((size_t)(b >> 22) + 1) * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) *
                       ((size_t)c + 1);
        }
    return 0;
}

/* Not every compiler has a name for it. The registers it works on are those of AVX. */
static bool has_f16c(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1) != 0;
}

static void list_features(char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
#define ADD(name, llvm)                           \
    if (__builtin_cpu_supports(name) && n < size) \
        n += (size_t)snprintf(out + n, size - n, "%s+" llvm, n > 0 ? "," : "");
    FEATURES(ADD)
#undef ADD
    if (has_f16c() && n < size)
        snprintf(out + n, size - n, "%s+f16c", n > 0 ? "," : "");
}

/* Family, model and stepping as the vendor counts them: "26.2.1". */
static void name_model(char *out, size_t size)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    __get_cpuid(1, &a, &b, &c, &d);
    unsigned family = a >> 8 & 15, model = a >> 4 & 15;
    if (family == 6 || family == 15)
        model += (a >> 16 & 15) << 4;
    if (family == 15)
        family += a >> 20 & 255;
    snprintf(out, size, "%u.%u.%u", family, model, a & 15);
}

/* What LLVM and gcc take for granted in x86-64-v3. */
static bool has_avx2(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool lzcnt = __get_cpuid(0x80000001, &a, &b, &c, &d) && (c >> 5 & 1) != 0;
    const bool movbe = __get_cpuid(1, &a, &b, &c, &d) && (c >> 22 & 1) != 0;
    return lzcnt && movbe && has_f16c() && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

/* AVX-512 counts from the set that every server since Skylake has. */
static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq");
}

static int level_of_machine(void)
{
    return has_avx512() ? 4 : has_avx2() ? 3 : 1;
}

static void detect_native(dc_target *t)
{
    char model[32];
    const int number = level_of_machine();
    t->vector_bytes = number == 4 ? 64 : number == 3 ? 32 : 16;
    t->vector_registers = number == 4 ? 32 : 16;
    name_model(model, sizeof model);
    snprintf(t->name, sizeof t->name, "cpu x86-64-v%d %s", number, model);
    list_features(t->features, sizeof t->features);
    t->half = t->fused = number >= 3;
    t->scales = t->ranges = number == 4;
    t->dp4a = number == 4 && __builtin_cpu_supports("avx512vnni");
}

static dc_status need_x86(dc_job *j)
{
    DC_UNUSED(j);
    __builtin_cpu_init();
    return DC_OK;
}

#else

static size_t shared_cache(void)
{
    return 0;
}

static void detect_native(dc_target *t)
{
    DC_UNUSED(t);
}

static int level_of_machine(void)
{
    return 0;
}

static dc_status need_x86(dc_job *j)
{
    return dc_failf(j, DC_ERR_DEVICE, "cpu", "code is generated for x86-64 only");
}

#endif

/* "avx2, baseline", with `prefix` before each: those that a machine of that level has. */
static const char *list_levels(int number, const char *prefix, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < DC_COUNTOF(levels) && n < size; i++)
        if (levels[i].number <= number)
            n += (size_t)snprintf(out + n, size - n, "%s%s%s", n > 0 ? ", " : "", prefix,
                                  levels[i].set);
    return out;
}

static const level *find_level(const char *set)
{
    for (size_t i = 0; i < DC_COUNTOF(levels); i++)
        if (strcmp(set, levels[i].set) == 0)
            return &levels[i];
    return NULL;
}

/* By the end of the device's name, else by DEEPC_TARGET; both would be one too many. */
static dc_status choose_level(dc_job *j, const char *set, const level **out)
{
    char known[128];
    const char *target = j->opt->target;
    if (set[0] != '\0' && target[0] != '\0')
        return dc_fail(
            j, DC_ERR_OPTION,
            &(dc_fact){.word = {"DEEPC_TARGET", "nothing, as the device's name says it"}});
    *out = find_level(set[0] != '\0' ? set : target[0] != '\0' ? target : levels[0].set);
    if (*out != NULL)
        return DC_OK;
    if (set[0] == '\0')
        return dc_fail(
            j, DC_ERR_OPTION,
            &(dc_fact){.word = {"DEEPC_TARGET", list_levels(4, "", known, sizeof known)}});
    return dc_failf(j, DC_ERR_DEVICE, NULL,
                    "no device is called 'cpu:%.40s'; instruction sets are %s, all of them after "
                    "cpu:cc, too",
                    set, list_levels(4, "cpu:", known, sizeof known));
}

static void set_level(const level *l, dc_cpu *cpu)
{
    dc_target *t = &cpu->target;
    cpu->llvm_cpu = l->cpu;
    if (l->number == 0) {
        detect_native(t);
        return;
    }
    snprintf(t->name, sizeof t->name, "cpu %s", l->cpu);
    t->vector_bytes = l->vector_bytes;
    t->vector_registers = l->vector_registers;
    t->half = t->fused = l->number >= 3;
    t->scales = t->ranges = l->number == 4;
}

dc_status dc_host_choose(dc_job *j, const char *set, int machine, dc_cpu *cpu)
{
    const level *l;
    char known[128];
    DC_TRY(choose_level(j, set, &l));
    if (l->number > machine)
        return dc_failf(j, DC_ERR_DEVICE, "cpu",
                        "this machine's processor has no instruction set '%s'; it has %s", l->set,
                        list_levels(machine, "", known, sizeof known));
    set_level(l, cpu);
    return DC_OK;
}

/* What DEEPC_MACHINE says, and the level of its instructions; NULL: nothing is said of them. */
static dc_status pretend(dc_job *j, dc_machine *said, const level **as)
{
    *as = NULL;
    bool fine = dc_opts_machine(j->opt, said);
    if (fine && said->set[0] != '\0') {
        *as = find_level(said->set);
        fine = *as != NULL && (*as)->number > 0;
    }
    return fine ? DC_OK
                : dc_fail(
                      j, DC_ERR_OPTION,
                      &(dc_fact){.word = {"DEEPC_MACHINE",
                                          "avx512, avx2 or baseline, l1, l2 and l3 in bytes, and "
                                          "cores, as in avx2,l1=32K,l2=512K,l3=8M,cores=8"}});
}

/* Of a machine that is pretended `native` is what that one has. */
static dc_status choose(dc_job *j, const char *set, const level *as, dc_cpu *cpu)
{
    const int machine = level_of_machine();
    if (as == NULL)
        return dc_host_choose(j, set, machine, cpu);
    if (as->number > machine)
        return dc_host_choose(j, as->set, machine, cpu); /* which refuses it */
    DC_TRY(dc_host_choose(j, set, as->number, cpu));
    if (cpu->llvm_cpu == NULL) {
        cpu->target = (dc_target){0}; /* nothing of this machine's */
        set_level(as, cpu);
    }
    return DC_OK;
}

dc_status dc_host_detect(dc_job *j, const char *set, dc_cpu *cpu)
{
    dc_target *t = &cpu->target;
    dc_machine said;
    const level *as;
    DC_TRY(need_x86(j));
    DC_TRY(pretend(j, &said, &as));
    DC_TRY(choose(j, set, as, cpu));
    snprintf(t->triple, sizeof t->triple, "x86_64-pc-linux-gnu");
    snprintf(t->dialect, sizeof t->dialect, "llvm");
    t->bundles = true;
    t->l1 = said.l1 > 0 ? (size_t)said.l1 : cache_size(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
    t->l2 = said.l2 > 0 ? (size_t)said.l2 : cache_size(_SC_LEVEL2_CACHE_SIZE, 512 << 10);
    t->l3 = said.l3 >= 0 ? (size_t)said.l3 : shared_cache();
    cpu->cores = said.cores > 0 ? said.cores : 0;
    return DC_OK;
}

const char *dc_host_sets(const dc_opts *opt, char *out, size_t size)
{
    dc_job j;
    dc_machine said;
    const level *as = NULL;
    dc_job_init(&j, opt, NULL);
    const bool known = need_x86(&j) == DC_OK && pretend(&j, &said, &as) == DC_OK;
    dc_job_fini(&j);
    return list_levels(!known ? -1 : as != NULL ? as->number : level_of_machine(), "", out, size);
}
