/*
 * What ranks compare before they compute together: values of which each has a copy. Ranks whose copies differ would go on
 * as several runs, with no sign of it; here all of them are told which value it is, and what two of them have.
 */
#include "core/base/bits.h"
#include "core/base/number.h"
#include "core/world/world.h"
#include "dsl/fn/fn.h"

#include <stdio.h>
#include <string.h>

/* Of so many bytes on the device: what all have to be equal to, and the first element. */
static dc_status digest_of(dc_job *j, dc_rt *rt, const dc_type *type, const void *at, uint64_t *out,
                           double *first)
{
    dc_device *d = rt->device;
    const size_t bytes = dc_type_bytes(type);
    void *copy = NULL;
    if (!d->ops->host) {
        copy = dc_try_alloc(bytes + 1);
        if (copy == NULL)
            return dc_fail_memory(j, bytes);
        const dc_status status = d->ops->download(d, j, copy, at, bytes);
        if (status != DC_OK) {
            dc_xfree(copy);
            return status;
        }
        at = copy;
    }
    const dc_dtype t = (dc_dtype)type->dtype;
    *out = dc_hash_bytes(bytes, at, bytes);
    *first = bytes > 0 && !dc_dtype_is_complex(t) ? dc_value_of(t, dc_bits_load(t, at)) : 0;
    dc_xfree(copy);
    return DC_OK;
}

static dc_status agree_on_memory(dc_job *j, dc_rt *rt, const char *what, const dc_type *t,
                                 const void *at)
{
    char text[DC_TYPE_TEXT + 80], type[DC_TYPE_TEXT];
    uint64_t digest = 0;
    double first = 0;
    DC_TRY(digest_of(j, rt, t, at, &digest, &first));
    dc_type_print(t, type, sizeof type);
    snprintf(text, sizeof text, "%s, which begins with %.9g", type, first);
    return dc_world_agree(rt->world, j, what, digest, text);
}

dc_status dc_spec_agree(dc_job *j, const dc_spec *s)
{
    dc_rt *rt = s->d->rt;
    char what[160];
    for (uint32_t i = 0; rt->world != NULL && s->nplace > 0 && i < s->trace->cell.n; i++) {
        dc_cell *c = s->trace->cell.at[i].cell;
        if (c->agreed || c->split != NULL)
            continue;
        DC_TRY(dc_cell_check(c, j, NULL, true));
        snprintf(what, sizeof what, "the value of %.80s (dc.seed makes draws equal)",
                 c->label != NULL       ? c->label
                 : c == s->d->generator ? "the generator"
                                        : "a cell");
        DC_TRY(agree_on_memory(j, rt, what, &c->type, c->store->mem));
        c->agreed = true;
    }
    return DC_OK;
}

/* The argument or captured tensor that entry i of s->whole is about. */
static const dc_arg *whole_arg(const dc_spec *s, uint32_t i)
{
    return &s->arg[i < s->nleaf ? i : i + s->size.n + s->nplace];
}

static dc_status agree_on_value(dc_job *j, const dc_spec *s, uint32_t i)
{
    const dc_arg *a = whole_arg(s, i);
    const dc_tensor *t = a->tensor;
    const bool given = i < s->nleaf;
    char what[300], text[40];
    snprintf(what, sizeof what,
             "%s '%.80s' of '%.60s', which no '@' splits and all ranks should have alike,",
             given ? "argument" : "the captured tensor", s->whole.at[i], s->trace->name);
    if (t != NULL)
        return agree_on_memory(j, s->d->rt, what, &t->type, (char *)t->store->mem + t->offset);
    snprintf(text, sizeof text, "%.9g", dc_value_of(s->declared.at[i]->dtype, a->bits));
    return dc_world_agree(s->d->rt->world, j, what, a->bits, text);
}

dc_status dc_spec_agree_values(dc_job *j, dc_spec *s)
{
    if (s->agreed || s->nplace == 0 || s->d->rt->world == NULL)
        return DC_OK;
    for (uint32_t i = 0; i < s->whole.n; i++)
        if (s->whole.at[i] != NULL)
            DC_TRY(agree_on_value(j, s, i));
    s->agreed = true;
    return DC_OK;
}

/*
 * Of the ranks that stand along these axes, which alone have to call the function: the largest sizes, and negative ones of
 * the smallest.
 */
static dc_status bounds_of_sizes(dc_job *j, const dc_spec *s, int64_t *bounds)
{
    const dc_rt *rt = s->d->rt;
    const uint32_t n = s->size.n;
    const dc_transfer sizes = {bounds, bounds, 1, 2 * (int64_t)n};
    dc_exchange x = {.kind = DC_ALL_REDUCE,
                     .combine = DC_COMBINE_MAX,
                     .dtype = DC_I64,
                     .axes = dc_mesh_group(rt->mesh, s->sized & ((1u << rt->mesh->naxis) - 1)),
                     .label = "sizes known at run time",
                     .where = s->trace->where,
                     .n = 1,
                     .at = &sizes};
    for (uint32_t i = 0; i < n; i++) {
        bounds[i] = (int64_t)s->arg[s->nleaf + i].bits;
        bounds[n + i] = -bounds[i];
    }
    return dc_world_run(rt->world, j, &x);
}

dc_status dc_spec_agree_sizes(dc_job *j, const dc_spec *s)
{
    const uint32_t n = s->size.n;
    if (s->d->rt->world == NULL || s->sized == 0 || n == 0)
        return DC_OK;
    int64_t *bounds = DC_NEW_ARRAY(&j->scratch, int64_t, 2 * n);
    DC_TRY(bounds_of_sizes(j, s, bounds));
    for (uint32_t i = 0; i < n; i++)
        if (bounds[i] != -bounds[n + i])
            return dc_failf(j, DC_ERR_WORLD, NULL,
                            "a size known at run time differs between ranks in '%.60s': %lld to "
                            "%lld, here %lld",
                            s->trace->name, (long long)-bounds[n + i], (long long)bounds[i],
                            (long long)s->arg[s->nleaf + i].bits);
    return DC_OK;
}
