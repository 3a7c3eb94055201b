#include "core/runtime/lazy.h"
#include "core/runtime/view.h"

bool dc_cell_layout_same(const dc_cell_layout *a, const dc_cell_layout *b)
{
    if (a->turned != b->turned)
        return false;
    for (int i = 0; a->turned && i < DC_MAX_RANK; i++)
        if (a->axis[i] != b->axis[i])
            return false;
    return true;
}

dc_type dc_cell_layout_type(const dc_cell_layout *l, const dc_type *t)
{
    dc_type memory = *t;
    for (int i = 0; l->turned && i < t->rank; i++) {
        memory.dim[i] = t->dim[l->axis[i]];
        memory.name[i] = t->name[l->axis[i]];
    }
    return memory;
}

void dc_cell_layout_perm(const dc_cell_layout *from, const dc_cell_layout *to, int rank,
                         int64_t *perm)
{
    int at[DC_MAX_RANK]; /* by axis of the value: which one of the memory it is now */
    for (int i = 0; i < rank; i++)
        at[from->turned ? from->axis[i] : i] = i;
    for (int i = 0; i < rank; i++)
        perm[i] = at[to->turned ? to->axis[i] : i];
}

/* On the host, where a compiler would take longer than the copy. */
static dc_status copy_here(dc_cell *c, dc_job *j, const dc_type *now, const dc_type *want,
                           const int64_t *perm, dc_tensor **out)
{
    dc_view v = dc_view_whole(now);
    dc_view_move(&v, DC_OP_PERMUTE, perm, want);
    DC_TRY(dc_tensor_new(c->rt, j, want, out));
    dc_view_read(&v, dc_dtype_size((dc_dtype)now->dtype), c->store->mem, 0, dc_type_count(now),
                 dc_tensor_mem(*out));
    return DC_OK;
}

/* The permuted value of the cell's memory, as an expression. */
static dc_lazy *permuted(dc_cell *c, dc_job *j, const dc_type *now, const int64_t *perm)
{
    dc_module *m = dc_module_new();
    dc_module_defer(j, m);
    dc_func *f = dc_func_new(m, "relayout");
    dc_tensor *shown = dc_tensor_show(c->store, now);
    dc_tensor_defer(j, shown);
    dc_lazy *leaf = dc_lazy_leaf(c->rt, shown), *map[DC_MAX_RANK] = {NULL};
    dc_lazy_defer(j, leaf);
    const dc_ref p = dc_graph_param(f, now, NULL), r = dc_graph_permute(f, p, perm);
    map[p] = leaf;
    dc_lazy *n = dc_lazy_node(c->rt, f, r, map);
    dc_job_keep(j, leaf);
    dc_job_keep(j, shown);
    dc_job_keep(j, m);
    dc_lazy_release(leaf);
    dc_tensor_release(shown);
    dc_module_free(m);
    return n;
}

static dc_status copy_there(dc_cell *c, dc_job *j, const dc_type *now, const int64_t *perm,
                            dc_tensor **out)
{
    dc_lazy *n = permuted(c, j, now, perm);
    dc_lazy_defer(j, n);
    const dc_status status = dc_lazy_realize(c->rt, j, n);
    if (status == DC_OK)
        *out = dc_tensor_retain(n->value);
    dc_job_keep(j, n);
    dc_lazy_release(n);
    return status;
}

/* Tensors that show the memory get a copy of it. No request ends it: a cell that is only read keeps its value. */
static dc_status replace_value(dc_cell *c, dc_job *j, const dc_tensor *t)
{
    DC_TRY(dc_storage_evict(c->store, j));
    const atomic_bool *cancel = dc_job_heed(j, NULL);
    const dc_status status =
        dc_storage_fill(c->store, j, dc_tensor_mem(t), dc_type_bytes(&t->type));
    dc_job_heed(j, cancel);
    return status;
}

static dc_status turn(dc_cell *c, dc_job *j, const dc_cell_layout *want)
{
    const dc_type parts = dc_type_parts(&c->type);
    const dc_type now = dc_cell_layout_type(&c->layout, &parts),
                  then = dc_cell_layout_type(want, &parts);
    int64_t perm[DC_MAX_RANK];
    dc_tensor *t;
    dc_cell_layout_perm(&c->layout, want, parts.rank, perm);
    DC_TRY(c->rt->device->ops->host ? copy_here(c, j, &now, &then, perm, &t)
                                    : copy_there(c, j, &now, perm, &t));
    dc_tensor_defer(j, t);
    const dc_status status = replace_value(c, j, t);
    dc_job_keep(j, t);
    dc_tensor_release(t);
    c->rt->first->stats.relayouts += status == DC_OK;
    return status;
}

dc_status dc_cell_relayout(dc_cell *c, dc_job *j, const dc_cell_layout *want)
{
    if (dc_cell_layout_same(&c->layout, want)) /* at nearly every call of a function */
        return DC_OK;
    if (dc_type_bytes(&c->type) > 0)
        DC_TRY(turn(c, j, want));
    c->layout = *want;
    return DC_OK;
}
