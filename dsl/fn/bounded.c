/*
 * Calls with bounded dims. The executable is for the bounds, so an argument is put into memory of that size, row by
 * row where an inner dim is bounded; of a result the part of the actual size is shown, or copied out of it where it is
 * no run of elements or a small part of the memory. What the
 * sizes are goes with the call as numbers.
 */
#include "core/transform/bounded.h"

#include "core/base/extent.h"
#include "core/build/build.h"
#include "core/runtime/block.h"
#include "core/runtime/outcome.h"
#include "dsl/fn/fn.h"

#include <inttypes.h>
#include <string.h>

/* ---- sizes ----------------------------------------------------------------------------------- */

bool dc_fn_exact(const dc_dsl *d)
{
    return d->rt->opt.numbers || d->rt->opt.compare[0] != '\0';
}

/* dim: a size, or inside of another function a code, some of whose sizes are outside of the bound of v. */
static DC_NORETURN void refuse_size(lua_State *L, dc_dsl *d, const dc_fn *fn, int v, int64_t dim)
{
    const char *name = fn->sig.var[v];
    const int64_t least = fn->sig.least[v], most = fn->sig.most[v];
    const bool above = dc_extent_bound(dim) > most;
    const int64_t size =
        above ? dc_extent_bound(dim) : dc_max_i64(dc_extent_lo(d->rt->extents, dim), 0);
    char text[200], hint[200];
    snprintf(text, sizeof text,
             "%.60s %s %" PRId64 ": a size from %" PRId64 " to %" PRId64 " is declared", name,
             dc_extent_is(dim) ? "may be" : "=", size, least, most);
    snprintf(hint, sizeof hint,
             "declare %" PRId64 " <= %.60s <= %" PRId64
             "; what the function does is then checked for that size, too",
             size, name, most);
    dc_error_fact(L, d, DC_ERR_BOUND, &(dc_fact){.op = fn->name, .word = {text}},
                  above ? NULL : &(dc_blame){.hint = hint});
}

void dc_fn_bound(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_fn_key *key, bool call)
{
    const dc_bound_mode mode = !call            ? DC_BOUND_OPEN
                               : dc_fn_exact(d) ? DC_BOUND_EXACT
                                                : DC_BOUND_CALL;
    const dc_sig_bind was = key->bind;
    int v = 0;
    if (!fn->bounded || dc_sig_bound(&fn->sig, d->rt->extents, &key->bind, mode, &v))
        return;
    refuse_size(L, d, fn, v, was.size[v]);
}

typedef struct values {
    const dc_sig_bind *code, *actual;
    const dc_trace *trace; /* its cells that grow */
} values;

static int64_t value_of(void *ctx, int64_t var)
{
    const values *x = ctx;
    for (int v = 0; v < DC_SIG_VARS; v++)
        if (x->code->size[v] == var)
            return x->actual->size[v];
    for (uint32_t i = 0; i < x->trace->cell.n; i++) {
        const dc_cell *c = x->trace->cell.at[i].cell;
        if (c->growth != NULL && c->growth->inside.dim[0] == var)
            return c->type.dim[0];
    }
    DC_BUG("a size of another function");
}

dc_trace_check dc_spec_check(const dc_spec *s, uint32_t check)
{
    dc_trace_check c = s->trace->check.at[check];
    values x = {&s->key.bind, &s->actual, s->trace};
    const dc_extents *e = s->rt->extents;
    c.classes = dc_extent_eval(e, c.classes, value_of, &x);
    for (int k = 0; k < c.type.rank; k++)
        c.type.dim[k] = dc_extent_eval(e, c.type.dim[k], value_of, &x);
    for (int k = 0; k < c.shown.rank; k++)
        c.shown.dim[k] = dc_extent_eval(e, c.shown.dim[k], value_of, &x);
    return c;
}

void dc_spec_sizes(dc_spec *s, const dc_sig_bind *actual)
{
    s->actual = *actual;
    values x = {&s->key.bind, &s->actual, s->trace};
    const dc_extents *e = s->rt->extents;
    for (uint32_t i = 0; i < s->size.n; i++)
        s->arg[s->nleaf + i] =
            (dc_arg){.bits = (uint32_t)dc_extent_eval(e, s->size.at[i], value_of, &x)};
    for (uint32_t i = 0; i < s->nout && s->size.n > 0; i++)
        for (int k = 0; k < s->out[i].rank; k++)
            s->out[i].dim[k] = dc_extent_eval(e, s->result[i].dim[k], value_of, &x);
}

/* ---- states that grow ------------------------------------------------------------------------ */

bool dc_spec_grows(const dc_spec *s, bool set)
{
    for (uint32_t i = 0; i < s->trace->cell.n; i++)
        if (s->trace->cell.at[i].cell->growth != NULL && (!set || s->trace->cell.at[i].is_set))
            return true;
    return false;
}

void dc_spec_refuse_growing(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_spec *s)
{
    if (dc_fn_exact(d) && dc_spec_grows(s, false))
        dc_error_raisef(L, d, DC_ERR_REENTER, fn->name,
                        "dc.check_numbers and DEEPC_COMPARE do not look at functions with a state "
                        "that grows");
}

dc_status dc_spec_growth(dc_spec *s, dc_job *j, int64_t **rows)
{
    *rows = NULL;
    if (!dc_spec_grows(s, false))
        return DC_OK;
    dc_spec_sizes(s, &s->actual);
    const values x = {&s->key.bind, &s->actual, s->trace};
    *rows = DC_NEW_ARRAY(&j->scratch, int64_t, s->trace->cell.n + 1);
    for (uint32_t i = 0; i < s->trace->cell.n; i++) {
        const dc_trace_cell *c = &s->trace->cell.at[i];
        if (c->cell->growth == NULL || !c->is_set)
            continue;
        (*rows)[i] =
            dc_extent_eval(s->rt->extents, c->set.type.dim[0], value_of, (void *)(uintptr_t)&x);
        DC_TRY(dc_cell_check_size(c->cell, j, s->trace->name, (*rows)[i]));
    }
    return DC_OK;
}

void dc_spec_grew(const dc_spec *s, const int64_t *rows)
{
    for (uint32_t i = 0; rows != NULL && i < s->trace->cell.n; i++) {
        const dc_trace_cell *c = &s->trace->cell.at[i];
        if (c->cell->growth != NULL && c->is_set)
            c->cell->type.dim[0] = rows[i];
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool is_bounded(const dc_type *t)
{
    return dc_build_is_bounded(t, UINT32_MAX);
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Memory for an argument, which no job of an earlier call reads any more. */
static dc_status take_room(dc_spec *s, dc_job *j, uint32_t i, const dc_type *bound)
{
    dc_tensor **room = &s->room[i];
    if (*room != NULL && (*room)->refs > 1) {
        dc_tensor_release(*room);
        *room = NULL;
    }
    if (*room != NULL)
        return DC_OK;
    DC_TRY(dc_tensor_new(s->rt, j, bound, room));
    return dc_storage_clear((*room)->store, j);
}

dc_status dc_spec_pad(dc_spec *s, dc_job *j)
{
    for (uint32_t i = 0; i < s->nleaf && s->size.n > 0; i++) {
        const dc_type *inside = &s->inside[i];
        dc_arg *arg = &s->arg[i];
        if (!is_bounded(inside) || arg->tensor == NULL)
            continue;
        const dc_type bound = dc_type_bound(inside);
        const dc_tensor *given = arg->tensor;
        const dc_type actual = dc_type_parts(&given->type);
        const size_t room = given->store->bytes - given->offset;
        if (dc_type_same(&actual, &bound) ||
            (dc_block_is_prefix(inside) && room >= dc_type_bytes(&bound)))
            continue; /* what lies behind it is not read, or does not matter */
        DC_TRY(take_room(s, j, i, &bound));
        DC_TRY(dc_outcome_settle(given->store, j));
        char *host =
            dc_arena_alloc(&j->scratch, dc_block_host_bytes(s->rt, &actual, &bound, &actual) + 1);
        DC_TRY(dc_block_copy(s->rt, j, host, &actual, (dc_block){dc_tensor_mem(s->room[i]), &bound},
                             (dc_block){dc_tensor_mem(given), &actual}));
        arg->tensor = s->room[i];
    }
    return DC_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

/*
 * Does it take so little of the memory of its bound that it would waste that as long as it is held? The memory stays with
 * the instance otherwise, for the next call.
 */
static bool wastes_memory(const dc_rt *rt, const dc_type *want, const dc_type *bound)
{
    enum { PAGES = 1 << 14, PART = 16 };
    const size_t room = dc_type_bytes(bound);
    return rt->device->ops->copy != NULL && room > PAGES && dc_type_bytes(want) <= room / PART;
}

/* Is the result copied out of memory of its bound, whose type is given then? */
static bool is_copied(const dc_spec *s, uint32_t i, const dc_type *want, dc_type *bound)
{
    const dc_type *inside = &s->result[i];
    *bound = dc_type_bound(inside);
    return is_bounded(inside) && !dc_type_same(want, bound) &&
           (!dc_block_is_prefix(inside) || wastes_memory(s->rt, want, bound));
}

dc_status dc_spec_reserve(const dc_spec *s, dc_job *j, const dc_type *want, dc_trim *out)
{
    size_t most = 0;
    *out = (dc_trim){NULL, NULL};
    if (s->size.n == 0)
        return DC_OK;
    out->part = DC_NEW_ARRAY(&j->scratch, dc_tensor *, s->nout + 1);
    for (uint32_t i = 0; i < s->nout; i++) {
        dc_type bound;
        if (!is_copied(s, i, &want[i], &bound))
            continue;
        const size_t bytes = dc_block_host_bytes(s->rt, &want[i], &want[i], &bound);
        most = bytes > most ? bytes : most;
        DC_TRY(dc_tensor_new(s->rt, j, &want[i], &out->part[i]));
        dc_tensor_defer(j, out->part[i]);
    }
    out->host = dc_arena_alloc(&j->scratch, most + 1);
    return DC_OK;
}

dc_status dc_spec_trim(const dc_spec *s, dc_job *j, const dc_type *want, const dc_trim *room,
                       dc_tensor **made)
{
    dc_status status = DC_OK;
    if (s->size.n == 0)
        return DC_OK;
    for (uint32_t i = 0; i < s->nout && status == DC_OK; i++) {
        dc_type bound;
        if (is_copied(s, i, &want[i], &bound)) {
            dc_outcome_attach(made[i]->store->outcome, room->part[i]->store);
            status = dc_block_copy(s->rt, j, room->host, &want[i],
                                   (dc_block){dc_tensor_mem(room->part[i]), &want[i]},
                                   (dc_block){dc_tensor_mem(made[i]), &bound});
        } else
            memcpy(made[i]->type.dim, want[i].dim, sizeof want[i].dim);
    }
    for (uint32_t i = 0; i < s->nout; i++) {
        if (status != DC_OK || room->part[i] != NULL)
            dc_tensor_release(made[i]);
        if (status == DC_OK && room->part[i] != NULL) {
            dc_job_keep(j, room->part[i]);
            made[i] = room->part[i];
        }
    }
    return status;
}

void dc_spec_drop_room(dc_spec *s)
{
    for (uint32_t i = 0; s->room != NULL && i < s->nleaf; i++)
        dc_tensor_release(s->room[i]);
    dc_xfree(s->room);
    dc_xfree(s->inside);
    dc_xfree(s->result);
    DC_VEC_FREE(s->size);
}
