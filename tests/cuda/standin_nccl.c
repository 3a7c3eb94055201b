/*
 * libnccl.so.2 on a machine without a GPU: communicators that do not block, whose members are processes or threads that share
 * a folder. What a member gives lies there as a file, which the others read when it is whole. Work is done in the order of the
 * streams of the stand-in for CUDA; members are combined in their order. As NCCL it refuses two members on one device, and what
 * is under way ends when a communicator is aborted.
 */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_nccl.h"
#include "standin_api.h"

#define EXPORT __attribute__((visibility("default")))

enum {
    SUCCESS,
    CUDA_ERROR,
    SYSTEM_ERROR,
    INVALID_ARGUMENT = 4,
    INVALID_USAGE,
    REMOTE_ERROR,
    IN_PROGRESS = 7
};
enum { SUM, PROD, MAX, MIN };
enum { MOST = 16, VERSION = 22000, FOLDER = 1000 };

typedef enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, SEND, RECV } kind;

struct comm {
    char folder[FOLDER];
    int n, me, error;
    bool aborted, whole; /* whole: all members have come */
    uint64_t given;      /* collective operations, so far */
    uint64_t sent[MOST], got[MOST];
    _Atomic uint64_t asked,
        taken; /* operations that were asked for; whose operands have been read */
    CUstream stream;
};

typedef struct operation {
    comm *c;
    kind kind;
    const char *from;
    char *to;
    size_t n; /* elements */
    int type, by, peer;
    uint64_t number;
    bool published;
} operation;

static unsigned long calls;

__attribute__((destructor)) static void say_calls(void)
{
    const char *wanted = getenv("CUDA_STANDIN_CALLS");
    if (wanted != NULL && wanted[0] == '1')
        fprintf(stderr, "NCCL stand-in: %lu exchanges\n", calls);
}

/* Files ------------------------------------------------------------------------------------- */

static void path_of(const comm *c, char *out, size_t size, char what, int from, int to, uint64_t k)
{
    snprintf(out, size, "%s/%c%d.%d.%llu", c->folder, what, from, to, (unsigned long long)k);
}

static bool write_file(const char *path, const void *bytes, size_t n)
{
    char other[FOLDER + 80];
    snprintf(other, sizeof other, "%s.new", path);
    FILE *f = fopen(other, "w");
    if (f == NULL)
        return false;
    const bool fine = fwrite(bytes, 1, n, f) == n;
    return fclose(f) == 0 && fine && rename(other, path) == 0;
}

static bool read_file(const char *path, void *bytes, size_t n)
{
    FILE *f = fopen(path, "r");
    const bool fine = f != NULL && fread(bytes, 1, n, f) == n && fgetc(f) == EOF;
    if (f != NULL)
        fclose(f);
    return fine;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Numbers ----------------------------------------------------------------------------------- */

static const size_t size_of[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

static float of_bf16(uint16_t x)
{
    const uint32_t u = (uint32_t)x << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static uint16_t to_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static float of_f16(uint16_t x)
{
    const int e = x >> 10 & 31, m = x & 1023;
    const float all = e == 31 ? (m != 0 ? NAN : INFINITY)
                              : ldexpf((float)(e > 0 ? m + 1024 : m), (e > 0 ? e : 1) - 25);
    return x >> 15 != 0 ? -all : all;
}

static uint16_t to_f16(float f)
{
    const uint16_t sign = signbit(f) ? 0x8000 : 0;
    int e = 0;
    if (isnan(f))
        return 0x7e00 | sign;
    if (isinf(f) || f == 0)
        return (isinf(f) ? 0x7c00 : 0) | sign;
    frexpf(f, &e);
    e = e < -13 ? -13 : e;
    const long bits = ((long)(e + 13) << 10) + lrintf(ldexpf(fabsf(f), 11 - e));
    return (uint16_t)(bits < 0x7c00 ? bits : 0x7c00) | sign;
}

/* Elements of T, added as numbers of U. */
#define COMBINE(T, U)                                                                \
    for (size_t i = 0; i < n; i++) {                                                 \
        T *x = (T *)to + i;                                                          \
        const T a = *x, b = ((const T *)from)[i];                                    \
        const U sum = (U)((U)a + (U)b), product = (U)((U)a * (U)b);                  \
        const T more = a > b ? a : b, less = a < b ? a : b;                          \
        *x = by == SUM ? (T)sum : by == PROD ? (T)product : by == MAX ? more : less; \
    }
#define SHORT(t)                                                             \
    for (size_t i = 0; i < n; i++) {                                         \
        uint16_t *x = (uint16_t *)to + i;                                    \
        const float a = of_##t(*x), b = of_##t(((const uint16_t *)from)[i]); \
        *x = to_##t(by == SUM    ? a + b                                     \
                    : by == PROD ? a * b                                     \
                    : by == MAX  ? fmaxf(a, b)                               \
                                 : fminf(a, b));                              \
    }

static void combine(void *to, const void *from, size_t n, int type, int by)
{
    switch (type) {
    case 0:
        COMBINE(int8_t, unsigned)
        break;
    case 1:
        COMBINE(uint8_t, unsigned)
        break;
    case 2:
        COMBINE(int32_t, uint32_t)
        break;
    case 3:
        COMBINE(uint32_t, uint32_t)
        break;
    case 4:
        COMBINE(int64_t, uint64_t)
        break;
    case 5:
        COMBINE(uint64_t, uint64_t)
        break;
    case 6:
        SHORT(f16)
        break;
    case 7:
        COMBINE(float, float)
        break;
    case 8:
        COMBINE(double, double)
        break;
    default:
        SHORT(bf16)
    }
}

/* An operation in the order of its stream --------------------------------------------------- */

static size_t bytes_given(const operation *o)
{
    const size_t bytes = o->n * size_of[o->type];
    return o->kind == REDUCE_SCATTER                     ? bytes * (size_t)o->c->n
           : o->kind == BROADCAST && o->peer != o->c->me ? 0
                                                         : bytes;
}

static bool publish(operation *o, int on)
{
    char path[FOLDER + 64];
    comm *c = o->c;
    const size_t bytes = bytes_given(o);
    char *own = malloc(bytes + 1);
    const bool read = bytes == 0 || cuda_standin_move(on, own, o->from, bytes);
    path_of(c, path, sizeof path, o->kind == SEND ? 'p' : 'c', c->me, o->kind == SEND ? o->peer : 0,
            o->number);
    if (!read || !write_file(path, own, bytes))
        c->error = SYSTEM_ERROR;
    free(own);
    return c->error == SUCCESS;
}

/* What member m has given, or a part of it. */
static bool fetch(const operation *o, int m, char *to, size_t bytes)
{
    char path[FOLDER + 64];
    path_of(o->c, path, sizeof path, o->kind == RECV ? 'p' : 'c', m, o->kind == RECV ? o->c->me : 0,
            o->number);
    const bool fine = read_file(path, to, bytes);
    if (fine && o->kind == RECV)
        unlink(path);
    if (!fine)
        fprintf(stderr, "NCCL stand-in: another size in %s\n", path);
    return fine;
}

static bool all_are_there(const operation *o)
{
    char path[FOLDER + 64];
    for (int m = 0; m < o->c->n; m++) {
        path_of(o->c, path, sizeof path, 'c', m, 0, o->number);
        if (!is_there(path))
            return false;
    }
    return true;
}

static bool gather(const operation *o, char *all, size_t bytes)
{
    for (int m = 0; m < o->c->n; m++)
        if (!fetch(o, m, all + (size_t)m * bytes, bytes))
            return false;
    return true;
}

/* The members' elements from `first` on, o->n of them, combined to `all`. */
static bool reduce(const operation *o, char *all, size_t first)
{
    const size_t size = size_of[o->type], bytes = bytes_given(o);
    char *one = malloc(bytes + 1);
    bool fine = true;
    for (int m = 0; m < o->c->n && fine; m++) {
        fine = fetch(o, m, one, bytes);
        if (m == 0)
            memcpy(all, one + first * size, o->n * size);
        else
            combine(all, one + first * size, o->n, o->type, o->by);
    }
    free(one);
    return fine;
}

static bool finish(operation *o, int on)
{
    const size_t bytes = o->n * size_of[o->type];
    const size_t result = o->kind == ALL_GATHER ? bytes * (size_t)o->c->n : bytes;
    char *all = malloc(result + 1);
    bool fine = true;
    switch (o->kind) {
    case ALL_REDUCE:
    case REDUCE_SCATTER:
        fine = reduce(o, all, o->kind == ALL_REDUCE ? 0 : (size_t)o->c->me * o->n);
        break;
    case ALL_GATHER:
        fine = gather(o, all, bytes);
        break;
    default:
        fine = fetch(o, o->peer, all, bytes);
    }
    fine = fine && cuda_standin_move(on, o->to, all, result);
    free(all);
    return fine;
}

/* All have come to this one, so nobody reads what was given to the one before. */
static void forget_last(const operation *o)
{
    char path[FOLDER + 64];
    path_of(o->c, path, sizeof path, 'c', o->c->me, 0, o->number - 1);
    unlink(path);
}

static bool is_due(const operation *o)
{
    char path[FOLDER + 64];
    if (o->kind == SEND)
        return true;
    if (o->kind != RECV)
        return all_are_there(o);
    path_of(o->c, path, sizeof path, 'p', o->peer, o->c->me, o->number);
    return is_there(path);
}

/* cuda_standin_exchange asks again and again. */
static bool step(int on, void *data)
{
    operation *o = data;
    if (!o->published) {
        o->published = true;
        if (!o->c->aborted && o->kind != RECV)
            publish(o, on);
        o->c->taken++;
    }
    if (!o->c->aborted && o->c->error == SUCCESS && !is_due(o))
        return false;
    if (!o->c->aborted && o->c->error == SUCCESS && o->kind != SEND && !finish(o, on))
        o->c->error = INVALID_USAGE;
    if (!o->c->aborted && o->kind < SEND)
        forget_last(o);
    free(o);
    return true;
}

/* Groups of operations ---------------------------------------------------------------------- */

static _Thread_local int depth;
static _Thread_local operation *waiting[2 * MOST];
static _Thread_local unsigned nwaiting;

/* CUDA_STANDIN_NCCL=kill@MEMBER:NUMBER: what happens to a member when it asks for that exchange; stop, fail. */
static void have_accident(comm *c)
{
    const char *text = getenv("CUDA_STANDIN_NCCL");
    const char *at = text != NULL ? strchr(text, '@') : NULL;
    char *end = NULL;
    if (at == NULL || strtol(at + 1, &end, 10) != c->me || *end != ':' ||
        strtoul(end + 1, NULL, 10) != calls)
        return;
    if (text[0] == 'k')
        raise(SIGKILL);
    else if (text[0] == 's')
        raise(SIGSTOP);
    else
        c->error = REMOTE_ERROR;
}

static void give(operation *o)
{
    o->c->asked++;
    calls++;
    have_accident(o->c);
    cuda_standin_exchange(o->c->stream, step, o);
}

/* Those that send first: what is received may be from this member. */
static int give_all(void)
{
    for (int sends = 1; sends >= 0; sends--)
        for (unsigned i = 0; i < nwaiting; i++)
            if (waiting[i] != NULL && (waiting[i]->kind == SEND) == sends) {
                give(waiting[i]);
                waiting[i] = NULL; /* it may be done */
            }
    const int result = nwaiting > 0 ? IN_PROGRESS : SUCCESS;
    nwaiting = 0;
    return result;
}

EXPORT int ncclGroupStart(void)
{
    depth++;
    return SUCCESS;
}

EXPORT int ncclGroupEnd(void)
{
    return --depth == 0 ? give_all() : SUCCESS;
}

static int ask(comm *c, operation what, CUstream stream)
{
    if (what.type < 0 || what.type > 9 || what.by < 0 || what.by > MIN || what.peer < 0 ||
        what.peer >= c->n)
        return INVALID_ARGUMENT;
    if (c->error != SUCCESS || c->aborted || !c->whole || c->asked != c->taken)
        return INVALID_USAGE;
    operation *o = malloc(sizeof *o);
    *o = what;
    o->c = c;
    o->number = o->kind == SEND   ? ++c->sent[o->peer]
                : o->kind == RECV ? ++c->got[o->peer]
                                  : ++c->given;
    c->stream = stream;
    waiting[nwaiting++] = o;
    return depth > 0 ? SUCCESS : give_all();
}

EXPORT int ncclAllReduce(const void *from, void *to, size_t n, int type, int by, comm *c,
                         CUstream s)
{
    return ask(
        c, (operation){.kind = ALL_REDUCE, .from = from, .to = to, .n = n, .type = type, .by = by},
        s);
}

EXPORT int ncclReduceScatter(const void *from, void *to, size_t n, int type, int by, comm *c,
                             CUstream s)
{
    return ask(
        c,
        (operation){.kind = REDUCE_SCATTER, .from = from, .to = to, .n = n, .type = type, .by = by},
        s);
}

EXPORT int ncclAllGather(const void *from, void *to, size_t n, int type, comm *c, CUstream s)
{
    return ask(c, (operation){.kind = ALL_GATHER, .from = from, .to = to, .n = n, .type = type}, s);
}

EXPORT int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, comm *c,
                         CUstream s)
{
    return ask(
        c,
        (operation){.kind = BROADCAST, .from = from, .to = to, .n = n, .type = type, .peer = root},
        s);
}

EXPORT int ncclSend(const void *from, size_t n, int type, int peer, comm *c, CUstream s)
{
    return ask(c, (operation){.kind = SEND, .from = from, .n = n, .type = type, .peer = peer}, s);
}

EXPORT int ncclRecv(void *to, size_t n, int type, int peer, comm *c, CUstream s)
{
    return ask(c, (operation){.kind = RECV, .to = to, .n = n, .type = type, .peer = peer}, s);
}

/* Communicators ----------------------------------------------------------------------------- */

EXPORT int ncclGetVersion(int *version)
{
    *version = VERSION;
    return SUCCESS;
}

/* A folder that all members can name: an id, which is shorter than paths may be, has its last part alone. */
static void folder_of(const char *name, char out[FOLDER])
{
    const char *parent = getenv("TMPDIR");
    snprintf(out, FOLDER, "%.900s/%.60s", parent != NULL && parent[0] ? parent : "/tmp", name);
}

EXPORT int ncclGetUniqueId(nccl_id *out)
{
    char folder[FOLDER];
    memset(out, 0, sizeof *out);
    folder_of("nccl-XXXXXX", folder);
    if (mkdtemp(folder) == NULL)
        return SYSTEM_ERROR;
    snprintf(out->name, sizeof out->name, "%s", strrchr(folder, '/') + 1);
    return SUCCESS;
}

/* Which device is the current one. */
static bool find_device(char uuid[16])
{
    CUdevice device;
    CUuuid found;
    if (cuCtxGetDevice(&device) != CUDA_SUCCESS ||
        cuDeviceGetUuid_v2(&found, device) != CUDA_SUCCESS)
        return false;
    memcpy(uuid, found.bytes, 16);
    return true;
}

EXPORT int ncclCommInitRankConfig(comm **out, int n, nccl_id key, int me, const nccl_config *how)
{
    char uuid[16], path[FOLDER + 64];
    *out = NULL;
    if (how->magic != 0xcafebeef || how->blocking != 0 || how->size < sizeof *how || n > MOST ||
        me < 0 || me >= n || !find_device(uuid))
        return INVALID_ARGUMENT;
    comm *c = calloc(1, sizeof *c);
    folder_of(key.name, c->folder);
    c->n = n;
    c->me = me;
    path_of(c, path, sizeof path, 'm', me, 0, 0);
    if (!write_file(path, uuid, sizeof uuid))
        return SYSTEM_ERROR;
    *out = c;
    return IN_PROGRESS;
}

/* Until all have come. */
static void await_members(comm *c)
{
    char uuid[MOST][16], path[FOLDER + 64];
    for (int m = 0; m < c->n; m++) {
        path_of(c, path, sizeof path, 'm', m, 0, 0);
        if (!read_file(path, uuid[m], 16))
            return;
        for (int k = 0; k < m; k++)
            if (memcmp(uuid[k], uuid[m], 16) == 0)
                c->error = INVALID_USAGE;
    }
    c->whole = true;
}

EXPORT int ncclCommGetAsyncError(comm *c, int *state)
{
    if (!c->whole)
        await_members(c);
    else if (c->asked != c->taken) {
        const CUresult e = cuStreamQuery(c->stream);
        if (e != CUDA_SUCCESS && e != CUDA_ERROR_NOT_READY)
            c->error = CUDA_ERROR;
    }
    *state = c->error != SUCCESS                 ? c->error
             : !c->whole || c->asked != c->taken ? IN_PROGRESS
                                                 : SUCCESS;
    return SUCCESS;
}

EXPORT int ncclCommFinalize(comm *c)
{
    return c->asked == c->taken ? SUCCESS : INVALID_USAGE;
}

static void remove_all(const comm *c)
{
    char path[FOLDER + 300];
    DIR *d = opendir(c->folder);
    for (const struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        snprintf(path, sizeof path, "%s/%s", c->folder, e->d_name);
        unlink(path);
    }
    if (d != NULL)
        closedir(d);
    rmdir(c->folder);
}

/* Others may still read what this one has given: the last one removes all. Operations may know of it, so it stays. */
static void leave(const comm *c)
{
    char path[FOLDER + 64];
    bool last = true;
    path_of(c, path, sizeof path, 'm', c->me, 0, 0);
    unlink(path);
    for (int m = 0; m < c->n && last; m++) {
        path_of(c, path, sizeof path, 'm', m, 0, 0);
        last = !is_there(path);
    }
    if (last)
        remove_all(c);
}

EXPORT int ncclCommDestroy(comm *c)
{
    leave(c);
    c->aborted = true;
    return SUCCESS;
}

EXPORT int ncclCommAbort(comm *c)
{
    c->aborted = true;
    leave(c);
    return SUCCESS;
}
