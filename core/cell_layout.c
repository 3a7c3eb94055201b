#include "core/lazy.h"
#include "core/view.h"

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
static dc_status turn_here(dc_cell *c, dc_job *j, const dc_type *now, const dc_type *want,
                           const int64_t *perm)
{
    dc_view v = dc_view_whole(now);
    dc_tensor *t;
    dc_view_move(&v, DC_OP_PERMUTE, perm, want);
    DC_TRY(dc_tensor_new(c->rt, j, want, &t));
    dc_view_read(&v, dc_dtype_size((dc_dtype)now->dtype), c->store->mem, 0, dc_type_count(now),
                 dc_tensor_mem(t));
    const dc_status status = dc_store_fill(c->store, j, dc_tensor_mem(t), dc_type_bytes(now));
    dc_tensor_release(t);
    return status;
}

/* The permuted value of the cell's memory, as an expression. */
static dc_lazy *permuted(dc_cell *c, const dc_type *now, const int64_t *perm)
{
    dc_module *m = dc_module_new();
    dc_func *f = dc_func_new(m, "relayout");
    dc_tensor *shown = dc_tensor_show(c->store, now);
    dc_lazy *leaf = dc_lazy_leaf(c->rt, shown), *map[DC_MAX_RANK] = {NULL};
    const dc_ref p = dc_g_param(f, now, NULL), r = dc_g_permute(f, p, perm);
    map[p] = leaf;
    dc_lazy *n = dc_lazy_node(c->rt, f, r, map);
    dc_lazy_release(leaf);
    dc_tensor_release(shown);
    dc_module_free(m);
    return n;
}

static dc_status turn_there(dc_cell *c, dc_job *j, const dc_type *now, const int64_t *perm)
{
    dc_lazy *n = permuted(c, now, perm);
    dc_lazy_defer(j, n);
    dc_status status = dc_lazy_realize(c->rt, j, n);
    if (status == DC_OK)
        status = dc_store_evict(c->store, j);
    if (status == DC_OK)
        status = dc_store_fill(c->store, j, dc_tensor_mem(n->value), dc_type_bytes(now));
    dc_job_keep(j, n);
    dc_lazy_release(n);
    return status;
}

dc_status dc_cell_relayout(dc_cell *c, dc_job *j, const dc_cell_layout *want)
{
    const dc_type now = dc_cell_layout_type(&c->layout, &c->type),
                  then = dc_cell_layout_type(want, &c->type);
    int64_t perm[DC_MAX_RANK];
    if (dc_cell_layout_same(&c->layout, want))
        return DC_OK;
    dc_cell_layout_perm(&c->layout, want, c->type.rank, perm);
    if (dc_type_bytes(&now) > 0) {
        DC_TRY(dc_store_evict(c->store, j));
        DC_TRY(c->rt->device->ops->host ? turn_here(c, j, &now, &then, perm)
                                        : turn_there(c, j, &now, perm));
        c->rt->stats.relayouts++;
    }
    c->layout = *want;
    return DC_OK;
}
