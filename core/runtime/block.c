#include "core/runtime/block.h"

#include "core/base/extent.h"

#include <string.h>

bool dc_block_is_prefix(const dc_type *t)
{
    int k = 0;
    while (k < t->rank && t->dim[k] == 1)
        k++;
    for (k++; k < t->rank; k++)
        if (dc_extent_is(t->dim[k]))
            return false;
    return true;
}

/* host: memory of the host for what the device does not copy by itself. */
static dc_status copy_run(dc_rt *rt, dc_job *j, bool on_host, char *host, char *to,
                          const char *from, size_t bytes)
{
    dc_device *d = rt->device;
    if (on_host) {
        memcpy(to, from, bytes);
        return DC_OK;
    }
    if (d->ops->copy != NULL)
        return d->ops->copy(d, j, to, from, bytes);
    DC_TRY(d->ops->download(d, j, host, from, bytes));
    return d->ops->upload(d, j, to, host, bytes);
}

/* The first axis from which on the block is one run in both places; *run: its bytes. */
static int first_of_run(const dc_type *part, dc_block to, dc_block from, int64_t *run)
{
    int inner = part->rank;
    *run = (int64_t)dc_dtype_size((dc_dtype)part->dtype);
    while (inner > 0) {
        inner--;
        *run *= part->dim[inner];
        if (from.type->dim[inner] != to.type->dim[inner] ||
            from.type->dim[inner] != part->dim[inner])
            break;
    }
    return inner;
}

/* Bytes of a row in the host's memory for which a call of memcpy takes longer than copying them. */
enum { MOST_SHORT = 64 };

static void copy_short(char *to, const char *from, size_t bytes)
{
    enum { PIECE = 16 };
    if (bytes < PIECE) {
        memcpy(to, from, bytes);
        return;
    }
    for (size_t i = 0; i + PIECE < bytes; i += PIECE)
        memcpy(to + i, from + i, PIECE);
    memcpy(to + bytes - PIECE, from + bytes - PIECE, PIECE);
}

/* Runs that follow one another so many bytes apart. */
typedef struct runs {
    int64_t n, bytes, to_step, from_step;
} runs;

static dc_status copy_row_of_runs(dc_rt *rt, dc_job *j, bool on_host, char *host, const runs *r,
                                  char *to, const char *from)
{
    if (on_host && r->bytes <= MOST_SHORT) {
        for (int64_t i = 0; i < r->n; i++)
            copy_short(to + i * r->to_step, from + i * r->from_step, (size_t)r->bytes);
        return DC_OK;
    }
    for (int64_t i = 0; i < r->n; i++)
        DC_TRY(copy_run(rt, j, on_host, host, to + i * r->to_step, from + i * r->from_step,
                        (size_t)r->bytes));
    return DC_OK;
}

static dc_status copy_runs(dc_rt *rt, dc_job *j, bool on_host, char *host, const dc_type *part,
                           dc_block to, dc_block from)
{
    const int64_t size = (int64_t)dc_dtype_size((dc_dtype)part->dtype);
    int64_t at[DC_MAX_RANK] = {0};
    runs r = {.n = 1};
    int inner = first_of_run(part, to, from, &r.bytes);
    if (inner > 0) { /* the axis of which runs are rows */
        r.n = part->dim[--inner];
        r.to_step = r.from_step = size;
        for (int k = inner + 1; k < part->rank; k++) {
            r.to_step *= to.type->dim[k];
            r.from_step *= from.type->dim[k];
        }
    }
    for (;;) {
        int64_t x = 0, y = 0;
        for (int k = 0; k < part->rank; k++) {
            x = x * from.type->dim[k] + at[k];
            y = y * to.type->dim[k] + at[k];
        }
        DC_TRY(copy_row_of_runs(rt, j, on_host, host, &r, to.at + y * size, from.at + x * size));
        int k = inner - 1;
        while (k >= 0 && ++at[k] == part->dim[k])
            at[k--] = 0;
        if (k < 0)
            return DC_OK;
    }
}

/* Many short copies within a device that is not the host take longer than one there and one back. */
static bool is_many(const dc_rt *rt, const dc_type *part, dc_block to, dc_block from, int64_t *run)
{
    enum { MANY = 16 };
    first_of_run(part, to, from, run);
    return !rt->device->ops->host && *run > 0 && (int64_t)dc_type_bytes(part) / *run > MANY;
}

size_t dc_block_host_bytes(const dc_rt *rt, const dc_type *part, const dc_type *to,
                           const dc_type *from)
{
    int64_t run;
    if (is_many(rt, part, (dc_block){.type = to}, (dc_block){.type = from}, &run))
        return dc_type_bytes(from) + dc_type_bytes(to);
    return rt->device->ops->host || rt->device->ops->copy != NULL ? 0 : (size_t)run;
}

dc_status dc_block_copy(dc_rt *rt, dc_job *j, char *host, const dc_type *part, dc_block to,
                        dc_block from)
{
    dc_device *d = rt->device;
    int64_t run;
    if (dc_type_bytes(part) == 0)
        return DC_OK;
    if (!is_many(rt, part, to, from, &run))
        return copy_runs(rt, j, d->ops->host, host, part, to, from);
    const size_t there = dc_type_bytes(from.type), back = dc_type_bytes(to.type);
    const dc_block a = {host, from.type}, b = {host + there, to.type};
    memset(b.at, 0, back);
    DC_TRY(d->ops->download(d, j, a.at, from.at, there));
    DC_TRY(copy_runs(rt, j, true, NULL, part, b, a));
    return d->ops->upload(d, j, to.at, b.at, back);
}
