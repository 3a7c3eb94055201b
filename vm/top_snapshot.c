#include "vm/top_snapshot.h"

#include "core/base/real.h"
#include "core/base/shown.h"
#include "formats/json.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef enum kind { TEXT, REAL, TRUTH, LIST, HISTORY } kind;

/* A value by its path among objects: "memory.live". */
typedef struct field {
    const char *path;
    kind kind;
    size_t at, size;         /* in the struct; of a TEXT its room, of a LIST that of an element */
    const struct field *of;  /* LIST: of an element */
    size_t nof, most, count; /* where the number of elements is */
} field;

#define F_TEXT(type, path, member)                                                     \
    {                                                                                  \
        path, TEXT, offsetof(type, member), sizeof(((type *)0)->member), NULL, 0, 0, 0 \
    }
#define F_REAL(type, path, member)                           \
    {                                                        \
        path, REAL, offsetof(type, member), 0, NULL, 0, 0, 0 \
    }
#define F_TRUTH(type, path, member)                           \
    {                                                         \
        path, TRUTH, offsetof(type, member), 0, NULL, 0, 0, 0 \
    }
#define F_LIST(path, member, number, fields)                                                      \
    {                                                                                             \
        path, LIST, offsetof(dc_top_snapshot, member), sizeof(((dc_top_snapshot *)0)->member[0]), \
            fields, DC_COUNTOF(fields), DC_COUNTOF(((dc_top_snapshot *)0)->member),               \
            offsetof(dc_top_snapshot, number)                                                     \
    }

/* clang-format off */
static const field of_function[] = {
    F_TEXT(dc_top_count, "name", name), F_REAL(dc_top_count, "calls", times), F_REAL(dc_top_count, "seconds", seconds)};
static const field of_kernel[] = {
    F_TEXT(dc_top_count, "name", name), F_TEXT(dc_top_count, "where", where), F_REAL(dc_top_count, "launches", times),
    F_REAL(dc_top_count, "seconds", seconds), F_REAL(dc_top_count, "flops", flops), F_REAL(dc_top_count, "bytes", bytes)};
static const field of_metric[] = {
    F_TEXT(dc_top_metric, "name", name), F_REAL(dc_top_metric, "value", value), F_REAL(dc_top_metric, "age", age),
    {"history", HISTORY, 0, 0, NULL, 0, 0, 0}};
static const field of_loop[] = {
    F_TEXT(dc_top_loop, "title", title), F_REAL(dc_top_loop, "done", done), F_REAL(dc_top_loop, "total", total),
    F_REAL(dc_top_loop, "size", size), F_REAL(dc_top_loop, "seconds", seconds), F_REAL(dc_top_loop, "since_first", since_first)};
static const field of_compilation[] = {
    F_TEXT(dc_top_compilation, "name", name), F_TRUTH(dc_top_compilation, "running", running),
    F_REAL(dc_top_compilation, "seconds", seconds)};
static const field of_snapshot[] = {
    F_TEXT(dc_top_snapshot, "error", error), F_TEXT(dc_top_snapshot, "deepc", version), F_TEXT(dc_top_snapshot, "socket", socket),
    F_TEXT(dc_top_snapshot, "command", command), F_TEXT(dc_top_snapshot, "host", host), F_TEXT(dc_top_snapshot, "device", device),
    F_TEXT(dc_top_snapshot, "doing.what", what), F_TEXT(dc_top_snapshot, "doing.name", name),
    F_TEXT(dc_top_snapshot, "waits.in", wait_in), F_REAL(dc_top_snapshot, "waits.rank", wait_rank),
    F_REAL(dc_top_snapshot, "waits.seconds", wait),
    F_REAL(dc_top_snapshot, "pid", pid), F_REAL(dc_top_snapshot, "parent", parent), F_REAL(dc_top_snapshot, "rank", rank),
    F_REAL(dc_top_snapshot, "ranks", ranks), F_REAL(dc_top_snapshot, "open_seconds", open), F_REAL(dc_top_snapshot, "age", age),
    F_REAL(dc_top_snapshot, "cpu_seconds", cpu), F_REAL(dc_top_snapshot, "doing.seconds", doing),
    F_REAL(dc_top_snapshot, "threads.kernels", kernel_threads), F_REAL(dc_top_snapshot, "threads.process", process_threads),
    F_REAL(dc_top_snapshot, "resident_bytes", resident), F_REAL(dc_top_snapshot, "memory.live", live),
    F_REAL(dc_top_snapshot, "memory.peak", peak), F_REAL(dc_top_snapshot, "memory.held", held),
    F_REAL(dc_top_snapshot, "memory.metadata", metadata), F_REAL(dc_top_snapshot, "memory.limit", limit),
    F_REAL(dc_top_snapshot, "counts.rounds", rounds), F_REAL(dc_top_snapshot, "counts.calls", calls),
    F_REAL(dc_top_snapshot, "counts.launches", launches), F_REAL(dc_top_snapshot, "counts.compiles", compiles),
    F_REAL(dc_top_snapshot, "counts.interpreted", interpreted), F_REAL(dc_top_snapshot, "counts.fallbacks", fallbacks),
    F_TRUTH(dc_top_snapshot, "kernels_timed", timed),
    F_LIST("functions", function, nfunction, of_function), F_LIST("kernels", kernel, nkernel, of_kernel),
    F_LIST("metrics", metric, nmetric, of_metric), F_LIST("loops", loop, nloop, of_loop),
    F_LIST("compiling", compilation, ncompilation, of_compilation)};
/* clang-format on */

static bool read_object(dc_json *r, const field *f, size_t n, const char *prefix, void *base);

/* A number, or one of the words for those that JSON has not. */
static bool read_real(dc_json *r, double *out)
{
    char *word;
    int64_t whole;
    if (dc_json_peek(r) == '"') {
        if (!dc_json_string(r, &word))
            return false;
        *out = strcmp(word, "inf") == 0 ? INFINITY : strcmp(word, "-inf") == 0 ? -INFINITY : NAN;
        return true;
    }
    const char *at = r->text + r->at, *end = r->text + r->n;
    const char first = dc_json_peek(r);
    if ((first != '-' && (first < '0' || first > '9')) ||
        dc_real_read(&at, end, out, &whole) == DC_REAL_NONE)
        return dc_json_skip(r);
    r->at = (size_t)(at - r->text);
    return true;
}

/* Scripts name metrics as they like. */
static bool read_text(dc_json *r, char *to, size_t size)
{
    char *s;
    if (!dc_json_string(r, &s))
        return false;
    dc_shown_put(to, size, s, strlen(s), false);
    return true;
}

static bool read_truth(dc_json *r, bool *out)
{
    *out = dc_json_peek(r) == 't';
    return dc_json_skip(r);
}

/* [[seconds, value], ...] */
static bool read_history(dc_json *r, dc_top_metric *m)
{
    double seconds = 0, value = 0;
    if (!dc_json_expect(r, '['))
        return false;
    for (bool first = true; !dc_json_accept(r, ']'); first = false) {
        if ((!first && !dc_json_expect(r, ',')) || !dc_json_expect(r, '[') ||
            !read_real(r, &seconds) || !dc_json_expect(r, ',') || !read_real(r, &value) ||
            !dc_json_expect(r, ']'))
            return false;
        if (m->npoint == DC_MONITOR_POINTS)
            continue;
        m->point[m->npoint].seconds = seconds;
        m->point[m->npoint++].value = value;
    }
    return true;
}

static bool read_list(dc_json *r, const field *f, char *base)
{
    uint32_t *n = (uint32_t *)(void *)(base + f->count);
    if (!dc_json_expect(r, '['))
        return false;
    for (bool first = true; !dc_json_accept(r, ']'); first = false) {
        if (!first && !dc_json_expect(r, ','))
            return false;
        if (*n == f->most ? !dc_json_skip(r)
                          : !read_object(r, f->of, f->nof, "", base + f->at + *n * f->size))
            return false;
        *n += *n < f->most;
    }
    return true;
}

static bool read_field(dc_json *r, const field *f, char *base)
{
    switch (f->kind) {
    case TEXT:
        return read_text(r, base + f->at, f->size);
    case REAL:
        return read_real(r, (double *)(void *)(base + f->at));
    case TRUTH:
        return read_truth(r, (bool *)(void *)(base + f->at));
    case LIST:
        return read_list(r, f, base);
    case HISTORY:
        return read_history(r, (dc_top_metric *)(void *)base);
    }
    return false;
}

static bool read_value(dc_json *r, const field *f, size_t n, const char *path, void *base)
{
    char prefix[168];
    for (size_t i = 0; i < n; i++)
        if (strcmp(f[i].path, path) == 0)
            return read_field(r, &f[i], base);
    if (dc_json_peek(r) != '{' || strchr(path, '.') != NULL)
        return dc_json_skip(r);
    snprintf(prefix, sizeof prefix, "%.160s.", path);
    return read_object(r, f, n, prefix, base);
}

static bool read_object(dc_json *r, const field *f, size_t n, const char *prefix, void *base)
{
    char path[240], *key;
    if (!dc_json_expect(r, '{'))
        return false;
    for (bool first = true; !dc_json_accept(r, '}'); first = false) {
        if ((!first && !dc_json_expect(r, ',')) || !dc_json_string(r, &key) ||
            !dc_json_expect(r, ':'))
            return false;
        snprintf(path, sizeof path, "%.160s%.70s", prefix, key);
        if (!read_value(r, f, n, path, base))
            return false;
    }
    return true;
}

bool dc_top_read(dc_top_snapshot *out, char *text, size_t n, char why[96])
{
    dc_json r;
    *out = (dc_top_snapshot){.age = -1, .wait = -1, .wait_rank = -1, .ranks = 1};
    for (size_t i = 0; i < DC_COUNTOF(out->loop); i++)
        out->loop[i].total = -1;
    dc_json_init(&r, text, n);
    if (read_object(&r, of_snapshot, DC_COUNTOF(of_snapshot), "", out) && dc_json_end(&r))
        return true;
    snprintf(why, 96, "%s", r.why);
    return false;
}
