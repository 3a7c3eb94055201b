/*
 * libnvrtc.so.13 without a GPU: the host's C++ compiler, with cuda_host.h in front of the text. The
 * image is a shared object (standin_module.c opens it). Texts that were compiled before, in this
 * process or in the folder CUDA_STANDIN_CACHE, are not compiled again.
 *
 * HOOKS and HEADERS are paths that the build gives.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_nvrtc.h"

#define EXPORT __attribute__((visibility("default")))

typedef struct bytes {
    char *at;
    size_t n;
} bytes;

typedef struct target {
    int sm, kind; /* kernel_arch */
    bool virtual_;
} target;

typedef struct nvrtc_program {
    uint32_t magic;
    char *text;
    bytes log, image;
    target t;
    bool contracts; /* a product that is added is not rounded by itself */
    bool found;     /* the image was compiled before */
} program;
enum { MAGIC = 0x6e767274 };

/* Version 13.0 has these. */
static const int known_sm[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
enum { NSM = sizeof known_sm / sizeof *known_sm };

extern char **environ;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t compiled;

EXPORT uint64_t cuda_standin_compiled(void)
{
    return compiled;
}

/* Failures: CUDA_STANDIN_FAIL as for the driver, with entries of nvrtc (standin.c) --------------- */

static nvrtcResult injected(const char *entry)
{
    static char *read;
    static struct {
        char entry[64];
        long n, error;
    } plan[16];
    static int n;
    const char *text = getenv("CUDA_STANDIN_FAIL"), *at = text != NULL ? text : "";
    nvrtcResult e = NVRTC_SUCCESS;
    pthread_mutex_lock(&lock);
    if (read == NULL || strcmp(read, at) != 0) { /* it was set anew */
        free(read);
        read = strdup(at);
        for (n = 0; *at != '\0' && n < 16; at += *at == ',') {
            if (sscanf(at, "%63[^@,]@%ld=%ld", plan[n].entry, &plan[n].n, &plan[n].error) == 3 &&
                strncmp(plan[n].entry, "nvrtc", 5) == 0)
                n++;
            at += strcspn(at, ",");
        }
    }
    for (int i = 0; i < n; i++)
        if (strcmp(plan[i].entry, entry) == 0 && --plan[i].n == 0)
            e = (nvrtcResult)plan[i].error;
    pthread_mutex_unlock(&lock);
    return e;
}

#define ENTER                                        \
    const nvrtcResult entered_ = injected(__func__); \
    if (entered_ != NVRTC_SUCCESS)                   \
    return entered_
#define WANT(p)                             \
    if ((p) == NULL || (p)->magic != MAGIC) \
    return NVRTC_ERROR_INVALID_PROGRAM

/* Files ------------------------------------------------------------------------------------- */

static bytes read_file(const char *path)
{
    bytes b = {NULL, 0};
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return b;
    if (fstat(fd, &st) == 0) {
        b.at = calloc((size_t)st.st_size + 1, 1);
        const ssize_t n = read(fd, b.at, (size_t)st.st_size);
        b.n = n > 0 ? (size_t)n : 0;
    }
    close(fd);
    return b;
}

static bool write_file(const char *path, const char *text, size_t n)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const bool ok = fd >= 0 && write(fd, text, n) == (ssize_t)n;
    if (fd >= 0)
        close(fd);
    return ok;
}

static uint64_t hash(uint64_t h, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * UINT64_C(1099511628211);
    return h;
}

/* Text -------------------------------------------------------------------------------------- */

static void word_end(const char **s)
{
    while (isspace((unsigned char)**s))
        ++*s;
}

/* Behind "__global__": what comes before the name. */
static unsigned skip_qualifiers(const char **s)
{
    unsigned threads = 0;
    for (;;) {
        word_end(s);
        if (strncmp(*s, "void", 4) == 0 && !isalnum((unsigned char)(*s)[4]) && (*s)[4] != '_')
            *s += 4;
        else if (strncmp(*s, "__launch_bounds__", 17) == 0) {
            const char *open = strchr(*s, '('), *close = strchr(*s, ')');
            if (open == NULL || close == NULL)
                return threads;
            threads = (unsigned)strtoul(open + 1, NULL, 10);
            *s = close + 1;
        } else
            return threads;
    }
}

/* "HOST_ENTRY(name, threads)" for each __global__ function, and what the image is for. */
static char *with_entries(const char *text, const target *t, bool checked)
{
    char *out = NULL;
    size_t n = 0;
    int entries = 0;
    FILE *f = open_memstream(&out, &n);
    fprintf(f, "#line 1 \"kernels.cu\"\n%s\n#line 1 \"entries\"\n", text);
    for (const char *s = text; (s = strstr(s, "__global__")) != NULL;) {
        s += strlen("__global__");
        const unsigned threads = skip_qualifiers(&s);
        size_t name = 0;
        while (isalnum((unsigned char)s[name]) || s[name] == '_')
            name++;
        if (name > 0) {
            fprintf(f, "HOST_ENTRY(%.*s, %u)\n", (int)name, s, threads);
            entries++;
        }
    }
    fprintf(f, "HOST_VISIBLE const kernel_arch kernel_arch_of_module = {%d, %d, %d, %d, %d};\n",
            t->sm, t->kind, t->virtual_, entries, checked);
    fclose(f);
    return out;
}

/* Options ----------------------------------------------------------------------------------- */

static bool read_arch(const char *value, target *t)
{
    const char *digits = value + strcspn(value, "0123456789");
    char *end;
    t->virtual_ = strncmp(value, "compute_", 8) == 0;
    if (!t->virtual_ && strncmp(value, "sm_", 3) != 0)
        return false;
    t->sm = (int)strtol(digits, &end, 10);
    t->kind = *end;
    if (t->kind != 0 && ((t->kind != 'a' && t->kind != 'f') || t->sm < 90 || end[1] != '\0'))
        return false;
    for (int i = 0; i < NSM; i++)
        if (known_sm[i] == t->sm)
            return true;
    return false;
}

static bool read_options(program *p, int n, const char *const *option)
{
    static const char *const known[] = {"--std=c++",
                                        "-std=c++",
                                        "--minimal",
                                        "-minimal",
                                        "--fmad=",
                                        "-fmad=",
                                        "-lineinfo",
                                        "--generate-line-info",
                                        "--device-as-default-execution-space",
                                        "--no-source-include",
                                        "-no-source-include",
                                        "--extra-device-vectorization",
                                        "--ptxas-options",
                                        "--split-compile=",
                                        "--device-stack-protector=",
                                        "--prec-div=",
                                        "--prec-sqrt=",
                                        "--ftz="};
    p->t = (target){75, 0, true};
    p->contracts = true;
    for (int i = 0; i < n; i++) {
        const char *o = option[i], *value = strchr(o, '=');
        bool ok = false;
        if (strncmp(o, "--gpu-architecture=", 19) == 0 || strncmp(o, "-arch=", 6) == 0)
            ok = read_arch(value + 1, &p->t);
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            ok = ok || strncmp(o, known[k], strlen(known[k])) == 0;
        if (strncmp(o, "--fmad=", 7) == 0)
            ok = strcmp(value, "=true") == 0 || strcmp(value, "=false") == 0;
        if (strncmp(o, "--fmad=", 7) == 0 || strncmp(o, "-fmad=", 6) == 0)
            p->contracts = strcmp(value, "=false") != 0;
        if (!ok) {
            char text[300];
            snprintf(text, sizeof text, "nvrtc: error: unrecognized option %s", o);
            free(p->log.at);
            p->log = (bytes){strdup(text), strlen(text)};
            return false;
        }
    }
    return true;
}

/* Compiling --------------------------------------------------------------------------------- */

typedef struct known_image {
    uint64_t key[2];
    bytes image;
    struct known_image *next;
} known_image;
static known_image *images;

static const char *compiler(void)
{
    const char *cxx = getenv("CUDA_STANDIN_CXX");
    return cxx != NULL && *cxx != '\0' ? cxx : "g++";
}

static bool cache_path(const uint64_t *key, char *path, size_t room)
{
    const char *folder = getenv("CUDA_STANDIN_CACHE");
    if (folder == NULL || *folder == '\0')
        return false;
    snprintf(path, room, "%s/%016lx%016lx.so", folder, (unsigned long)key[0],
             (unsigned long)key[1]);
    return true;
}

static void key_of(const char *text, bool checked, bool contracts, uint64_t *key)
{
    static uint64_t base;
    pthread_mutex_lock(&lock);
    if (base == 0) {
        const char *const file[] = {HEADERS "/cuda_host.h", HEADERS "/kernel_abi.h", HOOKS};
        base = UINT64_C(1469598103934665603);
        for (int i = 0; i < 3; i++) {
            const bytes b = read_file(file[i]);
            base = hash(base, b.at != NULL ? b.at : "", b.n);
            free(b.at);
        }
    }
    const char *cxx = compiler();
    key[0] = hash(hash(base + checked + 2 * contracts, cxx, strlen(cxx)), text, strlen(text));
    key[1] = hash(key[0] * 31 + 7, text, strlen(text));
    pthread_mutex_unlock(&lock);
}

static bytes copy_bytes(const bytes *b)
{
    bytes c = {malloc(b->n + 1), b->n};
    memcpy(c.at, b->at, b->n);
    return c;
}

static bool find_image(const uint64_t *key, bytes *out)
{
    char path[600];
    pthread_mutex_lock(&lock);
    const known_image *k = images;
    while (k != NULL && (k->key[0] != key[0] || k->key[1] != key[1]))
        k = k->next;
    if (k != NULL)
        *out = copy_bytes(&k->image);
    pthread_mutex_unlock(&lock);
    if (k == NULL && cache_path(key, path, sizeof path))
        *out = read_file(path);
    return out->n > 0;
}

static void keep_image(const uint64_t *key, const bytes *image)
{
    char path[600], fresh[640];
    known_image *k = malloc(sizeof *k);
    *k = (known_image){{key[0], key[1]}, copy_bytes(image), NULL};
    pthread_mutex_lock(&lock);
    k->next = images;
    images = k;
    pthread_mutex_unlock(&lock);
    if (cache_path(key, path, sizeof path)) {
        snprintf(fresh, sizeof fresh, "%s.%d.%lx", path, (int)getpid(),
                 (unsigned long)pthread_self());
        if (write_file(fresh, image->at, image->n))
            rename(fresh, path);
    }
}

/* Words of a command, split at blanks; its errors go to the file `log`. */
static nvrtcResult run_compiler(char *command, const char *log)
{
    char *word[80], *save = NULL;
    int n = 0, status = -1;
    pid_t child;
    for (char *w = strtok_r(command, " ", &save); w != NULL && n < 79;
         w = strtok_r(NULL, " ", &save))
        word[n++] = w;
    word[n] = NULL;
    posix_spawn_file_actions_t a;
    posix_spawn_file_actions_init(&a);
    posix_spawn_file_actions_addopen(&a, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    const int failed = posix_spawnp(&child, word[0], &a, NULL, word, environ);
    posix_spawn_file_actions_destroy(&a);
    if (failed != 0)
        return NVRTC_ERROR_INTERNAL_ERROR; /* there is no compiler */
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

/* Options of the compiler; nothing is linked. Without traps gcc 12 would take (float)(int)-0.3f for -0. */
static const char common[] =
    "-x c++ -std=c++17 -g1 -O1 -w -fPIC -shared -mfma -mf16c -fno-exceptions -fno-rtti "
    "-fno-strict-aliasing -fno-math-errno -fno-stack-protector -fwrapv "
    "-fno-delete-null-pointer-checks -fno-asynchronous-unwind-tables -nostdlib";
static const char with_checks[] = " -fsanitize=thread,bounds -fsanitize-undefined-trap-on-error";

static nvrtcResult compile(program *p, const char *text, bool checked)
{
    char folder[300], in[340], out[340], log[340], command[3000];
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/cuda-standin-XXXXXX",
             tmp != NULL && *tmp != '\0' ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL)
        return NVRTC_ERROR_INTERNAL_ERROR;
    snprintf(in, sizeof in, "%s/kernels.cu", folder);
    snprintf(out, sizeof out, "%s/kernels.so", folder);
    snprintf(log, sizeof log, "%s/log", folder);
    snprintf(
        command, sizeof command,
        "%s %s%s -ffp-contract=%s -D__CUDA_ARCH__=%d -I%s -include cuda_host.h %s -x none %s -o %s",
        compiler(), common, checked ? with_checks : "",
        p->contracts ? "fast -fexpensive-optimizations" : "off", p->t.sm * 10, HEADERS, in, HOOKS,
        out);
    nvrtcResult e = write_file(in, text, strlen(text)) ? run_compiler(command, log)
                                                       : NVRTC_ERROR_INTERNAL_ERROR;
    p->log = read_file(log);
    if (e == NVRTC_SUCCESS)
        p->image = read_file(out);
    if (getenv("CUDA_STANDIN_KEEP") == NULL) {
        unlink(in);
        unlink(out);
        unlink(log);
        rmdir(folder);
    }
    return e == NVRTC_SUCCESS && p->image.n == 0 ? NVRTC_ERROR_INTERNAL_ERROR : e;
}

static nvrtcResult build(nvrtcProgram p, int n, const char *const *options)
{
    const char *check = getenv("CUDA_STANDIN_CHECK"), *count = getenv("CUDA_STANDIN_TRAFFIC");
    const bool checked = (check != NULL && atoi(check) != 0) || (count != NULL && atoi(count) != 0);
    uint64_t key[2];
    if (!read_options(p, n, options))
        return NVRTC_ERROR_INVALID_OPTION;
    free(p->image.at);
    free(p->log.at);
    p->image = p->log = (bytes){NULL, 0};
    char *text = with_entries(p->text, &p->t, checked);
    key_of(text, checked, p->contracts, key);
    nvrtcResult e = NVRTC_SUCCESS;
    p->found = find_image(key, &p->image);
    if (!p->found) {
        e = compile(p, text, checked);
        if (e == NVRTC_SUCCESS)
            keep_image(key, &p->image);
    }
    free(text);
    return e;
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *options)
{
    ENTER;
    WANT(p);
    const nvrtcResult e = build(p, n, options);
    __atomic_add_fetch(&compiled, e == NVRTC_SUCCESS && !p->found, __ATOMIC_RELAXED);
    return e;
}

/*
 * What the driver makes of PTX of which the lines that begin with "//! " are the same in CUDA C++; NULL where it has none.
 * To be freed. It is no compilation that counts.
 */
EXPORT void *cuda_standin_assemble(const char *ptx, size_t *n);
void *cuda_standin_assemble(const char *ptx, size_t *n)
{
    static const char *const option = "--gpu-architecture=compute_75";
    nvrtcProgram p = NULL;
    char *text = calloc(strlen(ptx) + 1, 1), *to = text;
    for (const char *at = ptx; *at != '\0'; at += *at == '\n') {
        const size_t line = strcspn(at, "\n");
        if (line >= 4 && strncmp(at, "//! ", 4) == 0) {
            memcpy(to, at + 4, line - 4);
            to[line - 4] = '\n';
            to += line - 3;
        }
        at += line;
    }
    void *image = NULL;
    if (to != text && nvrtcCreateProgram(&p, text, "ptx", 0, NULL, NULL) == NVRTC_SUCCESS) {
        if (build(p, 1, &option) == NVRTC_SUCCESS) {
            image = memcpy(malloc(p->image.n), p->image.at, p->image.n);
            *n = p->image.n;
        }
        nvrtcDestroyProgram(&p);
    }
    free(text);
    return image;
}

/* Entries ----------------------------------------------------------------------------------- */

EXPORT nvrtcResult nvrtcVersion(int *major, int *minor)
{
    ENTER;
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

EXPORT const char *nvrtcGetErrorString(nvrtcResult e)
{
    static const char *const text[] = {"NVRTC_SUCCESS",
                                       "NVRTC_ERROR_OUT_OF_MEMORY",
                                       "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                       "NVRTC_ERROR_INVALID_INPUT",
                                       "NVRTC_ERROR_INVALID_PROGRAM",
                                       "NVRTC_ERROR_INVALID_OPTION",
                                       "NVRTC_ERROR_COMPILATION"};
    return e >= 0 && e < 7 ? text[e] : "NVRTC_ERROR_INTERNAL_ERROR";
}

EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int *n)
{
    ENTER;
    *n = NSM;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetSupportedArchs(int *arch)
{
    ENTER;
    memcpy(arch, known_sm, sizeof known_sm);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *text, const char *name, int n,
                                      const char *const *headers, const char *const *names)
{
    (void)name, (void)headers, (void)names;
    ENTER;
    if (n != 0 || text == NULL) /* the stand-in has no headers */
        return NVRTC_ERROR_INVALID_INPUT;
    program *p = calloc(1, sizeof *p);
    p->magic = MAGIC;
    p->text = strdup(text);
    *out = p;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *p)
{
    const nvrtcResult result = injected(__func__);
    WANT(*p);
    (*p)->magic = 0;
    free((*p)->text);
    free((*p)->log.at);
    free((*p)->image.at);
    free(*p);
    *p = NULL;
    return result; /* of one that fails there is nothing left either */
}

EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *n)
{
    ENTER;
    WANT(p);
    *n = p->log.n + 1;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *text)
{
    ENTER;
    WANT(p);
    if (p->log.n > 0)
        memcpy(text, p->log.at, p->log.n);
    text[p->log.n] = '\0';
    return NVRTC_SUCCESS;
}

static nvrtcResult image_size(const program *p, bool wanted, size_t *n)
{
    if (p->image.n == 0)
        return NVRTC_ERROR_INVALID_PROGRAM;
    *n = wanted ? p->image.n : 0;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *n)
{
    ENTER;
    WANT(p);
    return image_size(p, !p->t.virtual_, n);
}

EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *image)
{
    ENTER;
    WANT(p);
    if (p->image.n == 0 || p->t.virtual_)
        return NVRTC_ERROR_INVALID_PROGRAM;
    memcpy(image, p->image.at, p->image.n);
    return NVRTC_SUCCESS;
}

/* PTX of compute_XY alone: an image that runs on every later device. */
EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t *n)
{
    ENTER;
    WANT(p);
    return image_size(p, p->t.virtual_, n);
}

EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram p, char *image)
{
    ENTER;
    WANT(p);
    if (p->image.n == 0 || !p->t.virtual_)
        return NVRTC_ERROR_INVALID_PROGRAM;
    memcpy(image, p->image.at, p->image.n);
    return NVRTC_SUCCESS;
}
