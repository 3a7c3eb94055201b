/* One kernel from text to any of its forms (jit/compile/kernel_forms.h). */
#include "jit/compile/kernel_forms.h"

#include "jit/flat/flatten.h"
#include "jit/moves/move.h"
#include "jit/render/render.h"
#include "jit/schedule/schedule.h"
#include "jit/schedule/schedule_file.h"
#include "jit/sim/sim_target.h"

#include <string.h>

static const char *const forms[] = {
    [DC_FORM_NEST] = "nest",
    [DC_FORM_SCHEDULE] = "schedule",
    [DC_FORM_FLAT] = "flat",
    [DC_FORM_TEXT] = "text",
};

bool dc_form_find(const char *name, dc_form *out)
{
    for (int i = 0; i < DC_FORM__COUNT; i++)
        if (strcmp(forms[i], name) == 0) {
            *out = (dc_form)i;
            return true;
        }
    return false;
}

static dc_status apply_file(dc_job *j, dc_kernel *k, const char *path)
{
    dc_schedule_file *f;
    uint32_t n = 0;
    const char *why = "";
    DC_TRY(dc_schedule_file_read(j, path, &f));
    const char *const *move = dc_schedule_file_find(f, k->name, &n);
    dc_status s = DC_OK;
    if (move == NULL)
        s = dc_failf(j, DC_ERR_ARG, NULL, "%s has no schedule for %s", path, k->name);
    for (uint32_t i = 0; i < n && s == DC_OK; i++)
        if (!dc_move_apply_text(k, move[i], &why))
            s = dc_failf(j, DC_ERR_ARG, k->name, "%s: %s: %s", path, move[i], why);
    dc_schedule_file_free(f);
    return s;
}

static void free_flat(void *f)
{
    dc_flat_free(f);
}

dc_status dc_form_print_flat(dc_job *j, const dc_flat *f, const dc_target *t, dc_form form,
                             dc_text *out)
{
    if (form == DC_FORM_TEXT)
        return dc_render(j, &f, 1, t, out);
    dc_flat_print(f, out);
    return DC_OK;
}

dc_status dc_form_print(dc_job *j, dc_kernel *k, const dc_target *t, uint32_t skip, dc_form form,
                        dc_text *out)
{
    dc_flat *f;
    if (form == DC_FORM_NEST) {
        dc_nest_print(k, out);
        return DC_OK;
    }
    if (form == DC_FORM_SCHEDULE) {
        dc_schedule_file_print(k, out);
        return DC_OK;
    }
    DC_TRY(dc_flatten_for(j, k, t, skip, &f));
    dc_job_defer(j, free_flat, f);
    const dc_status s = dc_form_print_flat(j, f, t, form, out);
    dc_job_keep(j, f);
    dc_flat_free(f);
    return s;
}

dc_status dc_form_of(dc_job *j, const char *nest, const dc_form_request *r, dc_text *out)
{
    const dc_target *t = dc_sim_target_named(r->target);
    dc_kernel *k;
    if (t == NULL)
        return dc_failf(j, DC_ERR_ARG, NULL,
                        "no target '%.40s'; there are cpu, c11, opencl, cuda, sim:cpu, sim:opencl, "
                        "sim:cuda",
                        r->target);
    DC_TRY(dc_nest_parse(j, nest, &k));
    dc_status s = dc_nest_check_given(j, k);
    if (s == DC_OK && r->schedule != NULL)
        s = apply_file(j, k, r->schedule);
    else if (s == DC_OK && !r->naive)
        s = dc_schedule(j, k, t, 2);
    if (s == DC_OK)
        s = dc_form_print(j, k, t, 0, r->form, out);
    dc_kernel_free(k);
    return s;
}
