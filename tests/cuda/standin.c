/*
 * libcuda.so.1 without a GPU: what all of its entries share. Settings are environment variables,
 * listed in README.md; entries take one lock, are counted, and fail where CUDA_STANDIN_FAIL says so.
 */
#include "standin.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

settings set;

static pthread_mutex_t lock;
static entry_count *counts;
static uint64_t random_state;

/* Reports ----------------------------------------------------------------------------------- */

enum { MOST_WRONG = 64, TEXT = 1000 };
static char said[MOST_WRONG][TEXT]; /* a signal handler writes here, too */
static unsigned nwrong, nsaid;

CUresult misuse(const char *entry, const char *format, ...)
{
    char text[TEXT];
    va_list a;
    int n = snprintf(text, sizeof text, "%s: ", entry);
    va_start(a, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, a);
    va_end(a);
    if (set.wrong != WRONG_REPORT)
        fprintf(stderr, "CUDA stand-in: %s\n", text);
    nwrong++;
    if (nsaid < MOST_WRONG)
        memcpy(said[nsaid++], text, sizeof text);
    if (set.wrong == WRONG_ABORT)
        abort();
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORT unsigned cuda_standin_wrong(void)
{
    return nwrong;
}

EXPORT const char *cuda_standin_take_wrong(void)
{
    static char taken[TEXT];
    if (nsaid == 0)
        return NULL;
    memcpy(taken, said[0], sizeof taken);
    memmove(said, said + 1, --nsaid * sizeof *said);
    nwrong--;
    return taken;
}

/* Settings ---------------------------------------------------------------------------------- */

static const char *setting(const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "CUDA_STANDIN_%s", name);
    const char *text = getenv(full);
    return text != NULL ? text : "";
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = setting(name);
    return *text != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

static void bad_setting(const char *name)
{
    fprintf(stderr, "CUDA stand-in: CUDA_STANDIN_%s=%s is not known\n", name, setting(name));
    abort();
}

static bool is(const char *name, const char *value)
{
    return strcmp(setting(name), value) == 0;
}

static void read_sm(void)
{
    const char *at = setting("SM");
    for (int d = 0; d < MOST_DEVICES; d++) {
        char *end;
        const long sm = *at != '\0' ? strtol(at, &end, 10) : d > 0 ? set.sm[d - 1] : 90;
        set.sm[d] = (int)sm;
        at = *at == '\0' ? at : *end == ',' ? end + 1 : end;
    }
}

static void read_settings(void)
{
    set.streams = is("STREAMS", "eager") ? EAGER : is("STREAMS", "random") ? RANDOM : LATE;
    if (set.streams == LATE && !is("STREAMS", "") && !is("STREAMS", "late"))
        bad_setting("STREAMS");
    set.threads_random = is("THREADS", "random");
    if (!set.threads_random && !is("THREADS", "") && !is("THREADS", "ordered"))
        bad_setting("THREADS");
    set.wrong = is("WRONG", "abort")    ? WRONG_ABORT
                : is("WRONG", "report") ? WRONG_REPORT
                                        : WRONG_EXIT;
    if (set.wrong == WRONG_EXIT && !is("WRONG", "") && !is("WRONG", "exit"))
        bad_setting("WRONG");
    set.traffic = number_of("TRAFFIC", 0) != 0;
    set.seed = number_of("SEED", 1);
    set.devices = (int)number_of("DEVICES", 1);
    if (set.devices > MOST_DEVICES)
        bad_setting("DEVICES");
    set.units = (int)number_of("UNITS", 132);
    set.memory = number_of("MEMORY", (uint64_t)4 << 30);
    random_state = (set.seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    read_sm();
}

unsigned coin(unsigned n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)((random_state >> 20) % n);
}

/* Failures that a setting asks for: "entry@n=error,..." -------------------------------------- */

typedef struct failure {
    char entry[64];
    long n, error;
} failure;
static failure plan[32];
static int nplan;

static void read_plan(void)
{
    const char *at = setting("FAIL");
    nplan = 0;
    while (*at != '\0' && nplan < 32) {
        failure *f = &plan[nplan++];
        if (sscanf(at, "%63[^@,]@%ld=%ld", f->entry, &f->n, &f->error) != 3)
            bad_setting("FAIL");
        at += strcspn(at, ",");
        at += *at == ',';
    }
}

/* Were it to fail, something would stay that nobody can end. */
static bool is_end(const char *entry)
{
    static const char *const word[] = {"Destroy", "Free", "Unload", "Release", "Unmap", "Pop"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (strstr(entry, word[i]) != NULL)
            return true;
    return false;
}

static bool is_meant(const failure *f, const char *entry)
{
    return strcmp(f->entry, entry) == 0 || (strcmp(f->entry, "*") == 0 && !is_end(entry));
}

static CUresult planned(const char *entry)
{
    CUresult e = CUDA_SUCCESS;
    for (int i = 0; i < nplan; i++)
        if (is_meant(&plan[i], entry) && --plan[i].n == 0 && e == CUDA_SUCCESS)
            e = (CUresult)plan[i].error;
    return e;
}

/* Entries ----------------------------------------------------------------------------------- */

__attribute__((constructor)) static void begin(void)
{
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &a);
    read_settings();
    read_plan();
}

int standin_lock(void)
{
    pthread_mutex_lock(&lock);
    return 1;
}

void standin_unlock(const int *locked)
{
    (void)locked;
    pthread_mutex_unlock(&lock);
}

static const char *in_call; /* set while a host function runs, to its name */

CUresult standin_enter(entry_count *e)
{
    if (!e->known) {
        e->known = true;
        e->next = counts;
        counts = e;
    }
    e->n++;
    if (in_call != NULL)
        misuse(e->name, "a host function calls the driver");
    const CUresult error = planned(e->name);
    if (error == CUDA_ERROR_DEVICE_UNAVAILABLE || error == CUDA_ERROR_ECC_UNCORRECTABLE ||
        (error >= 700 && error < 800) || error == CUDA_ERROR_UNKNOWN)
        for (int d = 0; d < set.devices; d++)
            device[d].dead = error;
    return error;
}

EXPORT uint64_t cuda_standin_calls(const char *entry)
{
    const size_t n = strlen(entry);
    uint64_t sum = 0;
    for (const entry_count *e = counts; e != NULL; e = e->next)
        if (strcmp(entry, "*") == 0 || strcmp(e->name, entry) == 0 ||
            (strncmp(e->name, entry, n) == 0 && e->name[n] == '_' && e->name[n + 1] == 'v'))
            sum += e->n;
    return sum;
}

EXPORT void cuda_standin_set(const char *name, const char *value)
{
    char full[64];
    snprintf(full, sizeof full, "CUDA_STANDIN_%s", name);
    setenv(full, value, 1);
    read_settings();
    if (strcmp(name, "FAIL") == 0)
        read_plan();
}

void run_call(CUhostFn fn, void *data)
{
    in_call = "host function";
    fn(data);
    in_call = NULL;
}

__attribute__((destructor)) static void end(void)
{
    for (int d = 0; d < set.devices; d++)
        if (device[d].retained > 0 && device[d].dead == CUDA_SUCCESS)
            memory_leaks(d);
    if (setting("CALLS")[0] == '1')
        for (const entry_count *e = counts; e != NULL; e = e->next)
            fprintf(stderr, "CUDA stand-in: %8lu %s\n", (unsigned long)e->n, e->name);
    if (nwrong == 0)
        return;
    fprintf(stderr, "CUDA stand-in: %u found wrong\n", nwrong);
    for (unsigned i = 0; i < nsaid && set.wrong == WRONG_REPORT; i++)
        fprintf(stderr, "    %s\n", said[i]);
    fflush(NULL);
    _exit(86);
}

/* Handles ----------------------------------------------------------------------------------- */

enum { BUCKETS = 1 << 16 };
handle *handles;
static handle *bucket[BUCKETS];
static uint64_t serial;

static handle **bucket_of(const void *p)
{
    return &bucket[(uintptr_t)p * UINT64_C(0x9e3779b97f4a7c15) >> 48];
}

void *new_handle(handle_kind k, size_t size, int on, const void *where)
{
    handle *h = calloc(1, size), **b = bucket_of(h);
    *h = (handle){k, true, on, ++serial, where, handles, *b};
    handles = *b = h;
    return h;
}

bool is_handle(const void *p)
{
    for (const handle *h = *bucket_of(p); h != NULL; h = h->chain)
        if (h == p)
            return true;
    return false;
}

CUresult want(const char *entry, const void *p, handle_kind k)
{
    static const char *const name[] = {"context",    "module", "function", "stream",
                                       "event",      "graph",  "node",     "executable graph",
                                       "memory pool"};
    const handle *h = p;
    if (!is_handle(p))
        misuse(entry, "%p is no %s", p, name[k]);
    else if (h->kind != k)
        misuse(entry, "%s %lu where a %s is wanted", name[h->kind], (unsigned long)h->serial,
               name[k]);
    else if (!h->alive)
        misuse(entry, "%s %lu has been destroyed", name[k], (unsigned long)h->serial);
    else
        return CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_HANDLE;
}
