/* Text of flat kernels: what is read prints to a text that reads back the same; what is legal is rendered. */
#include "jit/flat/flat.h"
#include "jit/flat/flat_print.h"
#include "jit/render/render.h"
#include "jit/sim/sim_target.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static void free_flat(void *f)
{
    dc_flat_free(f);
}

static void come_back(dc_job *j, const dc_flat *f)
{
    dc_text *a = dc_job_text(j), *b = dc_job_text(j);
    dc_flat *again = NULL;
    dc_flat_print(f, a);
    const char *at = a->s;
    if (dc_flat_parse(j, &at, &again) != DC_OK || again == NULL)
        fuzz_finding("does not read back:\n%s", a->s);
    dc_job_defer(j, free_flat, again);
    dc_flat_print(again, b);
    if (strcmp(a->s, b->s) != 0)
        fuzz_finding("reads back as another text:\n%s\n%s", a->s, b->s);
    dc_job_keep(j, again);
    dc_flat_free(again);
    dc_job_text_end(j, b);
    dc_job_text_end(j, a);
}

static dc_status render(dc_job *j, const dc_flat *f)
{
    static const char *const names[] = {"cpu", "c11", "opencl", "cuda"};
    for (size_t i = 0; i < DC_COUNTOF(names); i++) {
        const dc_target *t = dc_sim_target_named(names[i]);
        if (t == NULL || t->simt != f->simt)
            continue;
        dc_text *out = dc_job_text(j);
        DC_TRY(dc_render(j, &f, 1, t, out));
        dc_job_text_end(j, out);
    }
    return DC_OK;
}

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    const char *at = in->text;
    dc_flat *f = NULL;
    dc_status s = DC_OK;
    DC_TRY(dc_flat_parse(j, &at, &f));
    if (f == NULL)
        return DC_OK;
    dc_job_defer(j, free_flat, f);
    come_back(j, f);
    if (dc_flat_check(j, f) == DC_OK)
        s = render(j, f);
    else
        j->err = (dc_err){0}; /* an illegal kernel is a BUG of a stage; here it is the input's */
    dc_job_keep(j, f);
    dc_flat_free(f);
    return s;
}

void fuzz_one(const fuzz_input *in)
{
    /* That a target has no instruction for a type is checked when flattening, not in the text. */
    fuzz_protect_but(body, (void *)in, "has no rendering");
}
