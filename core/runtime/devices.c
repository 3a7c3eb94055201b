#include "core/runtime/devices.h"

#include "core/base/err.h"
#include "core/base/spans.h"
#include "core/runtime/outcome.h"

#include <stdio.h>
#include <string.h>

/* ---- opening --------------------------------------------------------------------------------- */

static dc_status open_body(dc_job *j, void *arg)
{
    dc_rt *rt = arg;
    return rt->first->open_device(rt, j);
}

/* With the settings of the new one, not those of the job. */
static dc_status open_device(dc_rt *rt, dc_job *j)
{
    dc_job own;
    dc_job_init(&own, &rt->opt, &rt->log);
    own.cancel = j->cancel;
    own.folders = j->folders;
    own.extents = j->extents;
    own.owner = j->owner;
    own.broken = j->broken;
    dc_status status = dc_protect(&own, open_body, rt);
    if (status != DC_OK)
        status = dc_err_take(j, &own.err);
    dc_job_fini(&own);
    return status;
}

static void free_other(void *rt)
{
    dc_rt_free_other(rt);
}

dc_status dc_rt_on(dc_rt *rt, dc_job *j, const char *name, dc_rt **out)
{
    char one[sizeof rt->device_name];
    dc_rt *first = rt->first, **end = &first->next;
    if (first->name_device != NULL)
        first->name_device(name, one, sizeof one);
    else
        snprintf(one, sizeof one, "%s", name);
    *out = first;
    if (strcmp(first->device_name, one) == 0)
        return DC_OK;
    for (; *end != NULL; end = &(*end)->next)
        if (strcmp((*end)->device_name, one) == 0) {
            *out = *end;
            return DC_OK;
        }
    if (first->open_device == NULL)
        return dc_failf(j, DC_ERR_DEVICE, NULL, "this context has '%s' and opens no other device",
                        first->device_name);
    dc_rt *other = dc_rt_new_other(first, one);
    dc_job_defer(j, free_other, other);
    const dc_status status = open_device(other, j);
    dc_job_keep(j, other);
    if (status != DC_OK) {
        dc_rt_free_other(other);
        return status;
    }
    *end = *out = other;
    return DC_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Neither memory is the host's. */
static dc_status copy_by_host(dc_storage *to, dc_job *j, dc_device *of, const char *from,
                              size_t bytes)
{
    dc_device *d = to->rt->device;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    void *piece = dc_arena_alloc(&j->scratch, dc_piece_of(bytes));
    for (size_t at = 0, n; at < bytes; at += n) {
        n = dc_piece_of(bytes - at);
        DC_TRY(of->ops->download(of, j, piece, from + at, n));
        DC_TRY(d->ops->upload(d, j, (char *)to->mem + at, piece, n));
    }
    dc_arena_rewind(&j->scratch, mark);
    return DC_OK;
}

static dc_status copy_bytes(dc_storage *to, dc_job *j, const dc_storage *from, size_t offset,
                            size_t bytes)
{
    const char *at = (const char *)from->mem + offset;
    dc_device *d = to->rt->device, *of = from->rt->device;
    if (to->rt == from->rt || bytes == 0)
        return dc_storage_fill(to, j, at, bytes);
    if (of->ops->host)
        return d->ops->upload(d, j, to->mem, at, bytes);
    if (d->ops->host)
        return of->ops->download(of, j, to->mem, at, bytes);
    return copy_by_host(to, j, of, at, bytes);
}

dc_status dc_storage_copy(dc_storage *to, dc_job *j, const dc_storage *from, size_t offset,
                          size_t bytes)
{
    const uint64_t begun = dc_span_begin(j->log);
    const dc_status status = copy_bytes(to, j, from, offset, bytes);
    if (begun != 0) {
        char text[600];
        snprintf(text, sizeof text, "copy %s to %s", from->rt->device_name, to->rt->device_name);
        dc_span_end_of(j->log, begun, &(dc_span_name){.kind = DC_SPAN_COPY, .text = text},
                       (int64_t)bytes);
    }
    return status;
}

dc_status dc_tensor_copy_to(dc_rt *rt, dc_job *j, const dc_tensor *t, dc_tensor **out)
{
    dc_tensor *made;
    DC_TRY(dc_outcome_settle(t->store, j));
    DC_TRY(dc_tensor_new(rt, j, &t->type, &made));
    dc_tensor_defer(j, made);
    const dc_status status =
        dc_storage_copy(made->store, j, t->store, t->offset, dc_type_bytes(&t->type));
    dc_job_keep(j, made);
    if (status != DC_OK) {
        dc_tensor_release(made);
        return status;
    }
    *out = made;
    return DC_OK;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static void release_store(void *s)
{
    dc_storage_free(s);
}

/* The memory that the cell has had there, or NULL. */
static dc_storage **find_left(dc_cell *c, const dc_rt *rt)
{
    for (dc_storage **at = &c->left; *at != NULL; at = &(*at)->left)
        if ((*at)->rt == rt)
            return at;
    return NULL;
}

/* Filled with the value; the cell is as it was. */
static dc_status copy_of(dc_cell *c, dc_job *j, dc_rt *to, dc_storage **out)
{
    dc_storage **had = find_left(c, to), *s;
    if (had != NULL) {
        DC_TRY(dc_storage_evict(*had, j));
        *out = *had;
        return dc_storage_copy(*had, j, c->store, 0, c->store->bytes);
    }
    DC_TRY(dc_storage_new(to, j, c->store->bytes, &s));
    dc_job_defer(j, release_store, s);
    const dc_status status = dc_storage_copy(s, j, c->store, 0, c->store->bytes);
    dc_job_keep(j, s);
    if (status != DC_OK) {
        dc_storage_free(s);
        return status;
    }
    s->owned = true;
    to->cell_bytes += s->bytes;
    *out = s;
    return DC_OK;
}

static dc_status move(dc_cell *c, dc_job *j, dc_rt *to, bool keep)
{
    dc_storage *s, *before = c->store, **had;
    if (c->rt == to)
        return DC_OK;
    DC_TRY(dc_cell_check(c, j, "move", true));
    DC_TRY(dc_outcome_settle(before, j));
    DC_TRY(copy_of(c, j, to, &s));
    had = find_left(c, to);
    if (had != NULL) {
        *had = s->left;
        s->left = NULL;
    }
    if (keep) {
        before->left = c->left;
        c->left = before;
    } else {
        c->rt->cell_bytes -= before->bytes;
        dc_storage_disown(before);
        c->moved++;
        to->first->cells_moved++;
    }
    c->store = s;
    c->rt = to;
    dc_cell_written(c, false);
    return DC_OK;
}

dc_status dc_cell_move(dc_cell *c, dc_job *j, dc_rt *to)
{
    return move(c, j, to, false);
}

dc_status dc_cell_visit(dc_cell *c, dc_job *j, dc_rt *to)
{
    return move(c, j, to, true);
}
