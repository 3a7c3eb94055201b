#include "jit/base/exec_desc.h"

/* NULL, or what is wrong. */
static const char *wrong_set(const dc_exec_desc *d, uint32_t n, bool *is_set)
{
    const dc_func *fn = d->fn;
    if (d->set[n] >= d->ncell)
        return "a cell is set that it has not got";
    if (is_set[d->set[n]])
        return "a cell is set twice";
    is_set[d->set[n]] = true;
    const dc_type value = dc_node_type(fn, fn->result.at[d->nresult + n]);
    const dc_type cell = dc_node_type(fn, fn->param.at[d->nfree + d->set[n]]);
    return dc_type_same(&value, &cell) ? NULL : "a cell is set to a value of another type";
}

dc_status dc_exec_desc_check(dc_job *j, const dc_exec_desc *d, const char *op)
{
    const dc_func *fn = d->fn;
    const dc_type number = dc_type_scalar(DC_I32), wide = dc_type_scalar(DC_I64);
    const char *wrong = NULL;
    if ((uint64_t)d->nfree + d->ncell != fn->param.n ||
        (uint64_t)d->nresult + d->nset + 2 * (uint64_t)d->ncheck != fn->result.n)
        wrong = "the counts are not those of its function";
    bool *is_set = wrong == NULL ? DC_NEW_ARRAY(&j->scratch, bool, d->ncell) : NULL;
    for (uint32_t n = 0; n < d->nset && wrong == NULL; n++)
        wrong = wrong_set(d, n, is_set);
    for (uint32_t n = d->nresult + d->nset; n < fn->result.n && wrong == NULL; n++) {
        const dc_type t = dc_node_type(fn, fn->result.at[n]);
        const bool value = (n - d->nresult - d->nset) % 2 == 1; /* behind its position */
        if (!dc_type_same(&t, &number) && !(value && dc_type_same(&t, &wide)))
            wrong = "a check is no i32[]";
    }
    return wrong == NULL ? DC_OK : dc_failf(j, DC_ERR_FORMAT_TEXT, op, "%s", wrong);
}
