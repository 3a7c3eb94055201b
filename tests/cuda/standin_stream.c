/*
 * Streams: queues of commands. They run as late as somebody may ask for their results, at once, or by
 * a coin; commands of a graph in any order that its edges allow.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "standin.h"

static uint64_t kernels_run;

EXPORT uint64_t cuda_standin_kernels(void)
{
    return kernels_run;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static uint64_t sum_of(const void *p, size_t n)
{
    uint64_t h = UINT64_C(1469598103934665603);
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)p)[i]) * UINT64_C(1099511628211);
    return h;
}

/* Kernels ----------------------------------------------------------------------------------- */

typedef struct counted {
    char name[96];
    cuda_traffic *row;
    size_t n;
    struct counted *next;
} counted;
static counted *all_counted;

static void keep_traffic(const function *f)
{
    const engine_site *site;
    const size_t n = engine_traffic(&site);
    counted *c = all_counted;
    while (c != NULL && strcmp(c->name, f->name) != 0)
        c = c->next;
    if (c == NULL) {
        c = calloc(1, sizeof *c);
        snprintf(c->name, sizeof c->name, "%s", f->name);
        c->next = all_counted;
        all_counted = c;
    }
    free(c->row);
    c->row = calloc(n + 1, sizeof *c->row);
    c->n = n;
    for (size_t i = 0; i < n; i++)
        c->row[i] = (cuda_traffic){module_line(f->m, site[i].pc),
                                   site[i].store,
                                   site[i].shared,
                                   site[i].bytes,
                                   site[i].requests,
                                   site[i].units,
                                   site[i].least,
                                   site[i].moved};
}

EXPORT size_t cuda_standin_traffic(const char *entry, const cuda_traffic **rows)
{
    for (const counted *c = all_counted; c != NULL; c = c->next)
        if (strcmp(c->name, entry) == 0) {
            *rows = c->row;
            return c->n;
        }
    *rows = NULL;
    return 0;
}

static CUresult fail_device(int on, CUresult e)
{
    return device[on].dead = e;
}

static CUresult launch_now(int on, const command *c)
{
    void *argument[KERNEL_MOST_PARAMS];
    char *at = (char *)c->value;
    const function *f = c->f;
    const void *pc = NULL;
    if (!f->h.alive) {
        misuse("launch", "kernel %s: its module has been unloaded", f->name);
        return fail_device(on, CUDA_ERROR_LAUNCH_FAILED);
    }
    for (unsigned i = 0; i < f->info->nparam; i++) {
        argument[i] = at;
        at += (f->info->size[i] + 7) / 8 * 8;
    }
    kernels_run++;
    engine_counts_traffic = set.traffic && f->m->arch->checked;
    device_works = true;
    device_at_work = on;
    const char *why =
        engine_run(&(engine_launch){.name = f->name,
                                    .entry = f->entry,
                                    .bind = f->m->bind,
                                    .argument = argument,
                                    .grid = {c->grid[0], c->grid[1], c->grid[2]},
                                    .threads = {c->block[0], c->block[1], c->block[2]},
                                    .shared = f->m->shared,
                                    .shared_bytes = f->m->shared_bytes,
                                    .dynamic_bytes = c->dynamic,
                                    .seed = set.threads_random ? set.seed + kernels_run : 0,
                                    .checked = f->m->arch->checked != 0},
                   &pc);
    device_works = false;
    memory_close_all();
    if (why == NULL) {
        if (engine_counts_traffic)
            keep_traffic(f);
        return CUDA_SUCCESS;
    }
    const int line = module_line(f->m, pc);
    if (line > 0)
        misuse("launch", "kernel %s, line %d: %s", f->name, line, why);
    else
        misuse("launch", "kernel %s: %s", f->name, why);
    return fail_device(on, CUDA_ERROR_LAUNCH_FAILED);
}

CUresult make_launch(const char *entry, CUfunction x, const unsigned *grid, const unsigned *block,
                     unsigned dynamic, void **argument, command *c)
{
    function *f = (function *)(void *)x;
    const unsigned threads = block[0] * block[1] * block[2];
    TRY(want(entry, f, FUNCTION));
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > 0x7fffffff || grid[1] > 65535 ||
        grid[2] > 65535 || threads == 0)
        return misuse(entry, "kernel %s: a grid of %u x %u x %u blocks of %u threads", f->name,
                      grid[0], grid[1], grid[2], threads);
    if (threads > ENGINE_MOST_THREADS || (f->info->threads != 0 && threads > f->info->threads))
        return misuse(entry, "kernel %s: blocks of %u threads, its bound is %u", f->name, threads,
                      f->info->threads);
    if ((f->m->arch->entries == 1 && f->m->shared_bytes > STATIC_SHARED) ||
        dynamic > f->most_dynamic)
        return misuse(
            entry, "kernel %s: %zu + %u bytes of shared memory, of the latter up to %u are allowed",
            f->name, f->m->shared_bytes, dynamic, f->most_dynamic);
    size_t words = 0;
    for (unsigned i = 0; i < f->info->nparam; i++)
        words += (f->info->size[i] + 7) / 8;
    if (words > 0 && argument == NULL)
        return misuse(entry, "kernel %s has %u parameters and gets none", f->name, f->info->nparam);
    if (words * 8 > 4096)
        return misuse(entry, "kernel %s: %zu bytes of parameters", f->name, words * 8);
    *c = (command){.op = LAUNCH, .f = f, .dynamic = dynamic};
    memcpy(c->grid, grid, sizeof c->grid);
    memcpy(c->block, block, sizeof c->block);
    c->value = calloc(words + 1, 8);
    char *at = (char *)c->value;
    for (unsigned i = 0; i < f->info->nparam; i++) {
        memcpy(at, argument[i], f->info->size[i]);
        at += (f->info->size[i] + 7) / 8 * 8;
    }
    return CUDA_SUCCESS;
}

/* Copies ------------------------------------------------------------------------------------ */

static CUresult copy_now(int on, const command *c)
{
    const bool to = in_region(c->to), from = in_region(c->from);
    const char *why = to ? memory_wrong(c->to, c->bytes, on) : NULL;
    if (why == NULL && from)
        why = memory_wrong(c->from, c->bytes, on);
    if (why != NULL) {
        misuse("copy", "%s", why);
        return fail_device(on, CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    if (to)
        memory_open_range(c->to, c->bytes);
    if (from)
        memory_open_range(c->from, c->bytes);
    const char *source = c->staged != NULL ? c->staged : c->from;
    if (c->sum != 0 && sum_of(source, c->bytes) != c->sum)
        misuse("copy", "the host has changed %zu bytes at %p before they were copied", c->bytes,
               (const void *)c->from);
    if (c->op == FILL) {
        for (size_t i = 0; i < c->bytes; i += c->width)
            memcpy(c->to + i, &c->pattern, c->width);
    } else
        memmove(c->to, source, c->bytes);
    memory_close_all();
    return CUDA_SUCCESS;
}

void note_source(command *c)
{
    if (c->op != COPY)
        return;
    c->sum = is_pinned(c->from) ? sum_of(c->from, c->bytes) : 0;
    if (is_pinned(c->to) && memory_wrong(c->to, c->bytes, memory_find(c->to)->device) == NULL)
        memset(c->to, 0xee, c->bytes); /* who looks too early sees this */
}

/* Queues ------------------------------------------------------------------------------------ */

stream *streams;
static stream *default_stream[MOST_DEVICES];

stream *new_stream(int on, bool blocking, const void *where)
{
    stream *s = new_handle(STREAM, sizeof *s, on, where);
    s->last = &s->first;
    s->blocking = blocking;
    s->next = streams;
    return streams = s;
}

void end_stream(stream *s)
{
    stream **at = &streams;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->h.alive = false;
}

stream *stream_of(CUstream x, int on)
{
    stream **s = &default_stream[on];
    if ((uintptr_t)x > 2) /* 1 and 2 name the default stream, too */
        return (stream *)(void *)x;
    if (*s == NULL || !(*s)->h.alive)
        *s = new_stream(on, true, NULL);
    return *s;
}

void free_command(command *c)
{
    free(c->value);
    free(c->staged);
    free(c);
}

CUresult run_command(int on, command *c)
{
    switch (c->op) {
    case LAUNCH:
        return launch_now(on, c);
    case COPY:
    case FILL:
        return copy_now(on, c);
    case RECORD:
        c->e->done = c->generation > c->e->done ? c->generation : c->e->done;
        c->e->at = now();
        return CUDA_SUCCESS;
    case WAIT:
        while (c->e->done < c->generation && c->e->s != NULL && run_first(c->e->s)) {
        }
        return CUDA_SUCCESS;
    case RELEASE:
        memory_end("cuMemFreeAsync", memory_find(c->to));
        return CUDA_SUCCESS;
    case CALL:
        run_call(c->fn, c->data);
        return CUDA_SUCCESS;
    case RUN_GRAPH:
    case EXCHANGE:
    case EMPTY:
        return CUDA_SUCCESS;
    }
    return CUDA_SUCCESS;
}

/* The first command of a stream, or one node if it is a graph; false: the stream is empty. */
bool run_first(stream *s)
{
    command *c = s->first;
    const int on = s->h.device;
    if (c == NULL)
        return false;
    if (c->op == RUN_GRAPH && device[on].dead == CUDA_SUCCESS && graph_run_step(on, c->g))
        return true;
    if (c->op == EXCHANGE && device[on].dead == CUDA_SUCCESS && !c->exchange(on, c->data)) {
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL); /* another process is to come */
        return true;
    }
    s->first = c->next;
    if (s->first == NULL)
        s->last = &s->first;
    if (c->op == RUN_GRAPH)
        graph_run_free(c->g);
    else if (device[on].dead == CUDA_SUCCESS || c->op == RECORD)
        run_command(on, c);
    free_command(c);
    return true;
}

CUresult drain(stream *s)
{
    while (run_first(s)) {
    }
    return device[s->h.device].dead;
}

CUresult drain_device(int on)
{
    for (stream *s = streams; s != NULL; s = s->next)
        if (s->h.device == on)
            drain(s);
    return device[on].dead;
}

bool module_is_queued(const module *m)
{
    for (const stream *s = streams; s != NULL; s = s->next)
        for (const command *c = s->first; c != NULL; c = c->next)
            if ((c->op == LAUNCH && c->f->m == m) ||
                (c->op == RUN_GRAPH && graph_run_uses(c->g, m)))
                return true;
    return false;
}

/* The default stream and those that are not CU_STREAM_NON_BLOCKING are in order with each other. */
static void in_order_with_default(stream *s)
{
    stream *d = stream_of(NULL, s->h.device);
    if (s != d) {
        if (s->blocking)
            drain(d);
        return;
    }
    for (stream *x = streams; x != NULL; x = x->next)
        if (x != s && x->h.device == s->h.device && x->blocking)
            drain(x);
}

CUresult push(stream *s, const command *what)
{
    command *c = malloc(sizeof *c);
    in_order_with_default(s);
    *c = *what;
    c->next = NULL;
    *s->last = c;
    s->last = &c->next;
    if (set.streams == EAGER)
        drain(s);
    for (stream *x = streams; set.streams == RANDOM && x != NULL; x = x->next)
        while (coin(4) == 0 && run_first(x)) {
        }
    return device[s->h.device].dead;
}

/* Exchanges, of standin_nccl.c -------------------------------------------------------------- */

EXPORT int cuda_standin_exchange(void *x, bool (*exchange)(int on, void *data), void *data)
{
    ENTER_CONTEXT;
    stream *s = stream_of(x, ctx->device);
    WANT(s, STREAM);
    return push(s, &(command){.op = EXCHANGE, .exchange = exchange, .data = data});
}

EXPORT bool cuda_standin_move(int on, void *to, const void *from, size_t bytes)
{
    const bool out = in_region(from);
    const void *p = out ? from : to;
    const char *why = memory_wrong(p, bytes, on);
    if (why != NULL) {
        misuse("an exchange", "%s", why);
        fail_device(on, CUDA_ERROR_ILLEGAL_ADDRESS);
        return false;
    }
    memory_open_range(p, bytes);
    memcpy(to, from, bytes);
    memory_close_all();
    return true;
}

/* Entries: copies --------------------------------------------------------------------------- */

static CUresult copy_async(const char *entry, int on, char *to, const char *from, size_t bytes,
                           CUstream x)
{
    stream *s = stream_of(x, on);
    command c = {.op = COPY, .to = to, .from = from, .bytes = bytes};
    TRY(want(entry, s, STREAM));
    if (bytes == 0)
        return CUDA_SUCCESS;
    const char *why = in_region(to) ? memory_wrong(to, bytes, on) : NULL;
    if (why == NULL && in_region(from))
        why = memory_wrong(from, bytes, on);
    if (why != NULL)
        return misuse(entry, "%s", why);
    if (!in_region(from)) /* memory that is not pinned has been read when the call returns */
        c.staged = memcpy(malloc(bytes), from, bytes);
    note_source(&c);
    TRY(push(s, &c));
    return in_region(to) ? CUDA_SUCCESS : drain(s);
}

/* What the entry's name says of its sides. */
static CUresult sides(const char *entry, const void *to, bool to_device, const void *from,
                      bool from_device)
{
    if (to_device && (!in_region(to) || is_pinned(to)))
        return misuse(entry, "%p is no memory of the device", to);
    if (from_device && (!in_region(from) || is_pinned(from)))
        return misuse(entry, "%p is no memory of the device", from);
    if ((!to_device && in_region(to) && !is_pinned(to)) ||
        (!from_device && in_region(from) && !is_pinned(from)))
        return misuse(entry, "memory of the device where the host's is wanted");
    return CUDA_SUCCESS;
}

#define COPY_ENTRY(name, T, to_device, F, from_device)                                   \
    EXPORT CUresult name##Async_v2(T to, F from, size_t n, CUstream s)                   \
    {                                                                                    \
        ENTER_CONTEXT;                                                                   \
        TRY(sides(__func__, (void *)to, to_device, (const void *)from, from_device));    \
        return copy_async(__func__, ctx->device, (char *)to, (const char *)from, n, s);  \
    }                                                                                    \
    EXPORT CUresult name##_v2(T to, F from, size_t n)                                    \
    {                                                                                    \
        ENTER_CONTEXT;                                                                   \
        TRY(sides(__func__, (void *)to, to_device, (const void *)from, from_device));    \
        TRY(copy_async(__func__, ctx->device, (char *)to, (const char *)from, n, NULL)); \
        return drain(stream_of(NULL, ctx->device));                                      \
    }
COPY_ENTRY(cuMemcpyHtoD, CUdeviceptr, true, const void *, false)
COPY_ENTRY(cuMemcpyDtoH, void *, false, CUdeviceptr, true)
COPY_ENTRY(cuMemcpyDtoD, CUdeviceptr, true, CUdeviceptr, true)

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
    ENTER_CONTEXT;
    return copy_async(__func__, ctx->device, (char *)to, (const char *)from, n, s);
}

static CUresult fill(const char *entry, int on, CUdeviceptr to, unsigned v, unsigned width,
                     size_t n, CUstream x)
{
    stream *s = stream_of(x, on);
    TRY(want(entry, s, STREAM));
    const char *why = memory_wrong((char *)to, width * n, on);
    if (why != NULL)
        return misuse(entry, "%s", why);
    if (to % width != 0)
        return misuse(entry, "%p is not aligned to %u bytes", (void *)to, width);
    return push(
        s,
        &(command){.op = FILL, .to = (char *)to, .bytes = width * n, .pattern = v, .width = width});
}

#define FILL_ENTRY(name, T)                                                \
    EXPORT CUresult name##Async(CUdeviceptr to, T v, size_t n, CUstream s) \
    {                                                                      \
        ENTER_CONTEXT;                                                     \
        return fill(__func__, ctx->device, to, v, sizeof(T), n, s);        \
    }
FILL_ENTRY(cuMemsetD8, unsigned char)
FILL_ENTRY(cuMemsetD16, unsigned short)
FILL_ENTRY(cuMemsetD32, unsigned)

EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char v, size_t n)
{
    ENTER_CONTEXT;
    return fill(__func__, ctx->device, to, v, 1, n, NULL);
}

EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned v, size_t n)
{
    ENTER_CONTEXT;
    return fill(__func__, ctx->device, to, v, 4, n, NULL);
}
