/* Cells: named places that own a storage (core/runtime/storage.h). */
#include "core/runtime/devices.h"
#include "core/runtime/filling.h"
#include "core/runtime/lazy.h"
#include "core/runtime/outcome.h"
#include "core/runtime/storage.h"

#include <stdlib.h>
#include <string.h>

static char *copy_text(const char *s)
{
    const size_t n = s == NULL ? 0 : strlen(s) + 1;
    char *copy = n ? dc_try_realloc(NULL, n) : NULL;
    return copy == NULL ? NULL : memcpy(copy, s, n);
}

static void release_cell(void *c)
{
    dc_cell_release(c);
}

void dc_cell_defer(dc_job *j, dc_cell *c)
{
    dc_job_defer(j, release_cell, c);
}

static dc_status fill_cell(dc_cell *c, dc_job *j, const char *label, struct dc_lazy *start,
                           const dc_growth *growth)
{
    if (growth != NULL)
        DC_TRY(dc_growth_add(c, j, growth));
    if (label != NULL && (c->label = copy_text(label)) == NULL)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    const dc_type room = dc_cell_room_type(c);
    DC_TRY(dc_storage_new(c->rt, j, dc_type_bytes(&room), &c->store));
    c->store->owned = true;
    c->rt->cell_bytes += c->store->bytes;
    if (start == NULL)
        return dc_storage_clear(c->store, j);
    c->start = dc_lazy_retain(start);
    return DC_OK;
}

static dc_status new_cell(dc_rt *rt, dc_job *j, const dc_type *type, const char *label,
                          bool trainable, struct dc_lazy *start, const dc_growth *growth,
                          dc_cell **out)
{
    dc_cell *c = dc_try_alloc(sizeof *c);
    if (c == NULL)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    *c = (dc_cell){.refs = 1, .rt = rt, .type = *type, .trainable = trainable};
    dc_cell_defer(j, c);
    const dc_status status = fill_cell(c, j, label, start, growth);
    dc_job_keep(j, c);
    if (status != DC_OK) {
        dc_cell_release(c);
        return status;
    }
    c->id = ++rt->first->next_cell;
    c->version = 1;
    *out = c;
    return DC_OK;
}

dc_status dc_cell_new(dc_rt *rt, dc_job *j, const dc_type *type, const char *label, bool trainable,
                      dc_cell **out)
{
    return new_cell(rt, j, type, label, trainable, NULL, NULL, out);
}

dc_status dc_cell_new_growing(dc_rt *rt, dc_job *j, const dc_type *type, const char *axis,
                              int64_t least, int64_t most, dc_cell **out)
{
    dc_growth growth;
    DC_TRY(dc_growth_of(rt, j, type, axis, least, most, &growth));
    return new_cell(rt, j, type, NULL, false, NULL, &growth, out);
}

static dc_status fail_type(const dc_cell *c, dc_job *j, const dc_type *value)
{
    return dc_fail(
        j, DC_ERR_CELL_TYPE,
        &(dc_fact){.type = {c->type, *value}, .word = {c->label == NULL ? "a cell" : c->label}});
}

dc_status dc_cell_start(dc_rt *rt, dc_job *j, const dc_type *type, bool trainable,
                        struct dc_lazy *n, dc_cell **out)
{
    const dc_cell asked = {.type = *type};
    if (!dc_type_agrees(type, &n->type))
        return fail_type(&asked, j, &n->type);
    n->steady = true;
    return new_cell(rt, j, type, NULL, trainable, n, NULL, out);
}

dc_status dc_cell_settle(dc_cell *c, dc_job *j)
{
    if (c->start == NULL)
        return DC_OK;
    DC_TRY(dc_lazy_realize(c->rt, j, c->start));
    if (c->start == NULL) /* by a sink of log lines */
        return DC_OK;
    DC_TRY(dc_storage_fill(c->store, j, dc_tensor_mem(c->start->value), c->store->bytes));
    dc_cell_written(c, false);
    return DC_OK;
}

dc_status dc_cell_set_split(dc_cell *c, dc_job *j, const dc_sharding *s, const dc_type *whole)
{
    if (c->split == NULL)
        c->split = dc_try_alloc(sizeof *c->split);
    if (c->split == NULL)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    *c->split = (dc_cell_split){*s, *whole};
    return DC_OK;
}

dc_status dc_cell_shard(dc_cell *c, dc_job *j, const dc_sharding *s, const dc_type *whole,
                        const dc_tensor *part)
{
    dc_storage *store;
    DC_TRY(dc_storage_new(c->rt, j, dc_type_bytes(&part->type), &store));
    dc_status status = dc_storage_fill(store, j, dc_tensor_mem(part), dc_type_bytes(&part->type));
    if (status == DC_OK)
        status = dc_cell_set_split(c, j, s, whole);
    if (status != DC_OK) {
        dc_storage_free(store);
        return status;
    }
    store->owned = true;
    c->rt->cell_bytes += store->bytes;
    c->rt->cell_bytes -= c->store->bytes;
    dc_storage_disown(c->store);
    c->store = store;
    memcpy(c->type.dim, part->type.dim, sizeof c->type.dim);
    c->layout = (dc_cell_layout){0};
    dc_cell_written(c, false);
    return DC_OK;
}

dc_cell *dc_cell_retain(dc_cell *c)
{
    c->refs++;
    return c;
}

void dc_cell_release(dc_cell *c)
{
    if (c == NULL || --c->refs > 0)
        return;
    if (c->store != NULL) {
        c->rt->cell_bytes -= c->store->bytes;
        dc_storage_disown(c->store);
    }
    for (dc_storage *s; (s = c->left) != NULL;) {
        c->left = s->left;
        s->left = NULL;
        s->rt->cell_bytes -= s->bytes;
        dc_storage_disown(s);
    }
    dc_growth_remove(c);
    dc_filling_leave(c);
    dc_lazy_release(c->start);
    dc_xfree(c->split);
    dc_xfree(c->label);
    dc_xfree(c);
}

dc_status dc_cell_refuse(dc_cell *c, dc_job *j, const char *op, bool reads)
{
    const char *name = c->label != NULL ? c->label : "a cell";
    if (c->job != NULL)
        return dc_fail(j, DC_ERR_JOB, &(dc_fact){.op = op, .word = {name, c->job}});
    if (c->filling != NULL)
        DC_TRY(dc_filling_await(c, j, reads));
    if (c->torn && reads)
        return dc_fail(j, DC_ERR_TORN, &(dc_fact){.op = op, .word = {name}});
    return DC_OK;
}

dc_status dc_cell_check(dc_cell *c, dc_job *j, const char *op, bool reads)
{
    DC_TRY(dc_cell_refuse(c, j, op, reads));
    DC_TRY(dc_cell_relayout(c, j, &(dc_cell_layout){0}));
    return reads ? dc_cell_settle(c, j) : DC_OK;
}

const atomic_bool *dc_cell_writing(const dc_cell *c, dc_job *j)
{
    return dc_job_heed(j, j->cancel != NULL ? &c->rt->first->insist : NULL);
}

/* Has a storage that was not filled half a value? Not where memory was short, or the device refused to copy. */
static bool is_half(const dc_cell *c, dc_status status)
{
    const bool refused = status == DC_E_DEVICE && c->rt->device->ops->copy != NULL;
    return status != DC_OK && status != DC_E_NOMEM && !refused;
}

dc_status dc_cell_write(dc_cell *c, dc_job *j, const dc_tensor *value)
{
    DC_TRY(dc_cell_check(c, j, NULL, false));
    if (!dc_cell_takes(c, &value->type))
        return fail_type(c, j, &value->type);
    const int64_t rows = value->type.dim[0];
    if (c->growth != NULL)
        DC_TRY(dc_cell_check_size(c, j, NULL, rows));
    DC_TRY(dc_outcome_settle(value->store, j));
    if (value->store == c->store && (c->growth == NULL || rows == c->type.dim[0]))
        return DC_OK; /* the value that it has: of its type there is no other part */
    DC_TRY(dc_storage_evict(c->store, j)); /* also the value, where it is a part of this */
    const atomic_bool *cancel = dc_cell_writing(c, j);
    const dc_status status =
        dc_storage_copy(c->store, j, value->store, value->offset, dc_type_bytes(&value->type));
    dc_job_heed(j, cancel);
    if (status == DC_OK && c->growth != NULL)
        c->type.dim[0] = rows;
    if (status == DC_OK || is_half(c, status))
        dc_cell_written(c, status != DC_OK);
    return status;
}

void dc_cell_written(dc_cell *c, bool torn)
{
    dc_filling_leave(c);
    dc_lazy_release(c->start);
    c->start = NULL;
    c->torn = torn;
    c->version++;
}

dc_tensor *dc_cell_show(dc_cell *c)
{
    DC_ASSERT(!c->layout.turned,
              "the memory of a cell has a layout that no reader of its value knows");
    return dc_tensor_show(c->store, &c->type);
}

static int by_address(const void *x, const void *y)
{
    const uintptr_t a = (uintptr_t) * (const dc_cell *const *)x;
    const uintptr_t b = (uintptr_t) * (const dc_cell *const *)y;
    return (a > b) - (a < b);
}

const dc_cell *dc_cells_twice(dc_job *j, dc_cell *const *cell, uint32_t n)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const dc_cell **sorted = DC_NEW_ARRAY(&j->scratch, const dc_cell *, n + 1), *twice = NULL;
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = cell[i];
    if (n > 1)
        qsort(sorted, n, sizeof *sorted, by_address);
    for (uint32_t i = 1; i < n && twice == NULL; i++)
        twice = sorted[i] == sorted[i - 1] ? sorted[i] : NULL;
    dc_arena_rewind(&j->scratch, mark);
    return twice;
}

void dc_cell_label(dc_cell *c, const char *label)
{
    char *copy = copy_text(label);
    if (copy == NULL && label != NULL)
        dc_nomem(0);
    dc_xfree(c->label);
    c->label = copy;
}
