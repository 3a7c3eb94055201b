/* The text of a kernel in any of its forms, made again from its nest as lowered and its moves. */
#include "jit/compile/compile_job.h"
#include "jit/flat/flat_join.h"
#include "jit/flat/flatten.h"
#include "jit/moves/move.h"
#include "jit/nest/nest.h"

#include <stdio.h>

static void free_kernel(void *k)
{
    dc_kernel_free(k);
}

static void free_flat(void *f)
{
    dc_flat_free(f);
}

/* Scheduled as it was; it is on the cleanup list. */
static dc_status open_kernel(dc_job *j, const dc_kept *kept, dc_kernel **out)
{
    const char *why = "";
    DC_TRY(dc_nest_parse(j, kept->nest, out));
    dc_job_defer(j, free_kernel, *out);
    snprintf((*out)->name, sizeof(*out)->name, "%s", kept->name);
    for (uint32_t m = 0; m < kept->nmove; m++)
        if (!dc_move_apply_text(*out, kept->move[m], &why))
            DC_BUG("kernel %s: '%s' applied once and does not now: %s", kept->name, kept->move[m],
                   why);
    return DC_OK;
}

static void close_kernel(dc_job *j, dc_kernel *k)
{
    dc_job_keep(j, k);
    dc_kernel_free(k);
}

static dc_status source(dc_job *j, dc_exec *e, const dc_kept *kept, dc_form form, dc_text *out)
{
    dc_kernel *k;
    uint32_t skip = 0;
    const dc_target *t = dc_exec_target(e, &skip);
    DC_TRY(open_kernel(j, kept, &k));
    const dc_status s = dc_form_print(j, k, t, skip, form, out);
    close_kernel(j, k);
    return s;
}

static dc_status flatten_part(dc_job *j, dc_exec *e, const dc_kept *part, dc_flat **out)
{
    dc_kernel *k;
    uint32_t skip = 0;
    const dc_target *t = dc_exec_target(e, &skip);
    DC_TRY(open_kernel(j, part, &k));
    const dc_status s = dc_flatten_for(j, k, t, skip, out);
    close_kernel(j, k);
    return s;
}

/* Joined again; the parts are on the cleanup list. */
static dc_status joined(dc_job *j, dc_exec *e, const dc_kept *kept, dc_form form, dc_text *out)
{
    dc_flat **part = DC_NEW_ARRAY(&j->scratch, dc_flat *, kept->npart);
    uint32_t skip = 0;
    dc_status s = DC_OK;
    for (uint32_t i = 0; i < kept->npart; i++) {
        DC_TRY(flatten_part(j, e, &kept->part[i], &part[i]));
        dc_job_defer(j, free_flat, part[i]);
    }
    dc_flat *f = dc_flat_join(j, (const dc_flat *const *)part, kept->npart, kept->name);
    dc_job_defer(j, free_flat, f);
    s = dc_form_print_flat(j, f, dc_exec_target(e, &skip), form, out);
    dc_job_keep(j, f);
    dc_flat_free(f);
    for (uint32_t i = kept->npart; i-- > 0;) {
        dc_job_keep(j, part[i]);
        dc_flat_free(part[i]);
    }
    return s;
}

/* Of a kernel that is joined of others: what is compiled; in the forms before that theirs, one after the other. */
dc_status dc_exec_source(dc_exec *e, dc_job *j, uint32_t kernel, dc_form form, dc_text *out)
{
    DC_ASSERT(kernel < dc_exec_kernel_count(e), "kernel %u of %u", kernel, e->nkernel);
    const dc_kept *kept = &e->kept[kernel];
    if (kept->npart == 0)
        return source(j, e, kept, form, out);
    if (form == DC_FORM_FLAT || form == DC_FORM_TEXT)
        return joined(j, e, kept, form, out);
    for (uint32_t i = 0; i < kept->npart; i++)
        DC_TRY(source(j, e, &kept->part[i], form, out));
    return DC_OK;
}
