/* The text of a kernel in any of its forms, made again from its nest as lowered and its moves. */
#include "jit/compile/compile_job.h"
#include "jit/moves/move.h"
#include "jit/nest/nest.h"

#include <stdio.h>

static void free_kernel(void *k)
{
    dc_kernel_free(k);
}

static dc_status print(dc_job *j, dc_exec *e, dc_kernel *k, const dc_kept *kept, dc_form form,
                       dc_text *out)
{
    const char *why = "";
    uint32_t skip = 0;
    const dc_target *t = dc_exec_target(e, &skip);
    snprintf(k->name, sizeof k->name, "%s", kept->name);
    for (uint32_t m = 0; m < kept->nmove; m++)
        if (!dc_move_apply_text(k, kept->move[m], &why))
            DC_BUG("kernel %s: '%s' applied once and does not now: %s", kept->name, kept->move[m],
                   why);
    return dc_form_print(j, k, t, skip, form, out);
}

static dc_status source(dc_job *j, dc_exec *e, const dc_kept *kept, dc_form form, dc_text *out)
{
    dc_kernel *k;
    DC_TRY(dc_nest_parse(j, kept->nest, &k));
    dc_job_defer(j, free_kernel, k);
    const dc_status s = print(j, e, k, kept, form, out);
    dc_job_keep(j, k);
    dc_kernel_free(k);
    return s;
}

/* Of a kernel that is joined of others: theirs, one after the other. */
dc_status dc_exec_source(dc_exec *e, dc_job *j, uint32_t kernel, dc_form form, dc_text *out)
{
    DC_ASSERT(kernel < dc_exec_kernel_count(e), "kernel %u of %u", kernel, e->nkernel);
    const dc_kept *kept = &e->kept[kernel];
    if (kept->npart == 0)
        return source(j, e, kept, form, out);
    for (uint32_t i = 0; i < kept->npart; i++)
        DC_TRY(source(j, e, &kept->part[i], form, out));
    return DC_OK;
}
