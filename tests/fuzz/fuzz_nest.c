/*
 * Text of kernels in nest form: what is legal prints to a text that reads back the same, is scheduled for a target
 * to a kernel that is legal, and is rendered for it.
 */
#include "jit/compile/kernel_forms.h"
#include "jit/nest/nest.h"
#include "jit/nest/nest_print.h"
#include "jit/schedule/schedule.h"
#include "jit/sim/sim_target.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static void free_kernel(void *k)
{
    dc_kernel_free(k);
}

static void come_back(dc_job *j, dc_kernel *k)
{
    dc_text *a = dc_job_text(j), *b = dc_job_text(j);
    dc_kernel *again;
    dc_nest_print(k, a);
    if (dc_nest_parse(j, a->s, &again) != DC_OK)
        fuzz_finding("legal, but does not read back:\n%s", a->s);
    dc_job_defer(j, free_kernel, again);
    dc_nest_print(again, b);
    if (strcmp(a->s, b->s) != 0)
        fuzz_finding("reads back as another text:\n%s\n%s", a->s, b->s);
    dc_job_keep(j, again);
    dc_kernel_free(again);
    dc_job_text_end(j, b);
    dc_job_text_end(j, a);
}

static dc_status use(dc_job *j, dc_kernel *k, size_t n)
{
    static const char *const names[] = {"cpu", "c11", "opencl", "cuda", "sim:cpu", "sim:cuda"};
    const dc_target *t = dc_sim_target_named(names[n % DC_COUNTOF(names)]);
    come_back(j, k);
    if (n % 7 != 0) {
        DC_TRY(dc_schedule(j, k, t, 2));
        if (dc_nest_check(j, k) != DC_OK)
            fuzz_finding("scheduled, it is illegal");
    }
    dc_text *out = dc_job_text(j);
    DC_TRY(dc_form_print(j, k, t, 0, DC_FORM_TEXT, out));
    dc_job_text_end(j, out);
    return DC_OK;
}

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    dc_kernel *k;
    dc_status s = DC_OK;
    DC_TRY(dc_nest_parse(j, in->text, &k));
    dc_job_defer(j, free_kernel, k);
    if ((s = dc_nest_check_given(j, k)) == DC_OK)
        s = use(j, k, in->n);
    dc_job_keep(j, k);
    dc_kernel_free(k);
    return s;
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
