/*
 * Schedules: moves on kernels of tests/kernel, of which the first byte chooses one. After those that are not refused the
 * kernel is legal, is rendered, and computes what it did.
 */
#include "core/base/file.h"
#include "jit/compile/kernel_forms.h"
#include "jit/moves/move.h"
#include "jit/nest/nest.h"
#include "jit/nest/nest_print.h"
#include "jit/schedule/schedule_file.h"
#include "jit/sim/sim_target.h"

#include <math.h>
#include <stdio.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/nest_interp.h"

static const char *const kernels[] = {"argmax",  "attention", "lanes", "layer_norm", "product",
                                      "softmax", "total",     "turn",  "updates"};

enum { MOVES = 12, ELEMENTS = 4000 };

static void free_kernel(void *k)
{
    dc_kernel_free(k);
}

static void free_file(void *f)
{
    dc_schedule_file_free(f);
}

static dc_status read_kernel(dc_job *j, unsigned number, dc_kernel **out)
{
    char path[100];
    snprintf(path, sizeof path, "tests/kernel/%s.nest", kernels[number % DC_COUNTOF(kernels)]);
    char *text = dc_file_read(path, 1 << 16);
    if (text == NULL)
        fuzz_finding("%s is not there: run from the root", path);
    dc_job_defer(j, dc_xfree, text);
    DC_TRY(dc_nest_parse(j, text, out));
    dc_job_defer(j, free_kernel, *out);
    return DC_OK;
}

static int64_t elements(const dc_kernel *k)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < k->nparam; i++)
        n += k->buf.at[i].count;
    return n;
}

/* All its memory after a run, as numbers. */
static double *run(dc_job *j, const dc_kernel *k, const char *moves)
{
    void **mem = DC_NEW_ARRAY(&j->scratch, void *, k->nparam);
    double *out = DC_NEW_ARRAY(&j->scratch, double, elements(k)), *at = out;
    for (uint32_t i = 0; i < k->nparam; i++) {
        const dc_dtype t = k->buf.at[i].dtype;
        mem[i] = dc_arena_alloc(&j->scratch, (size_t)k->buf.at[i].count * dc_dtype_size(t));
        for (int64_t n = 0; n < k->buf.at[i].count; n++) {
            const double v =
                dc_dtype_is_float(t) ? (double)(n * 7919 % 17) / 4 - 2 : (double)(n % 2);
            dc_bits_store(t, (char *)mem[i] + (size_t)n * dc_dtype_size(t), dc_bits_of(t, v));
        }
    }
    if (dc_nest_run(j, k, mem) != DC_OK)
        fuzz_finding("it does not run after\n%s", moves);
    for (uint32_t i = 0; i < k->nparam; i++) {
        const dc_dtype t = k->buf.at[i].dtype;
        for (int64_t n = 0; n < k->buf.at[i].count; n++)
            *at++ = dc_value_of(t, dc_bits_load(t, (char *)mem[i] + (size_t)n * dc_dtype_size(t)));
    }
    return out;
}

static void compare(const double *want, const double *got, int64_t n, const char *moves)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-3 * fmax(1, fabs(want[i]))) && got[i] != want[i] &&
            !(isnan(got[i]) && isnan(want[i])))
            fuzz_finding("element %lld is %g, not %g, after\n%s", (long long)i, got[i], want[i],
                         moves);
}

static dc_status render(dc_job *j, dc_kernel *k, size_t n)
{
    static const char *const names[] = {"cpu", "cuda", "sim:cpu", "opencl"};
    dc_text *out = dc_job_text(j);
    DC_TRY(dc_form_print(j, k, dc_sim_target_named(names[n % DC_COUNTOF(names)]), 0, DC_FORM_TEXT,
                         out));
    dc_job_text_end(j, out);
    return DC_OK;
}

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    const char *why = "", *moves = in->text + 1;
    dc_schedule_file *f;
    dc_kernel *k;
    uint32_t n, done = 0;
    DC_TRY(dc_schedule_file_parse(j, "input", moves, &f));
    dc_job_defer(j, free_file, f);
    DC_TRY(read_kernel(j, in->at[0], &k));
    const char *const *move = dc_schedule_file_find(f, k->name, &n);
    if (move == NULL || n > MOVES)
        return DC_OK;
    const bool runs = elements(k) <= ELEMENTS;
    const double *want = runs ? run(j, k, "") : NULL;
    for (uint32_t i = 0; i < n; i++)
        done += dc_move_apply_text(k, move[i], &why);
    if (done == 0)
        return DC_OK;
    if (dc_nest_check(j, k) != DC_OK)
        fuzz_finding("illegal after\n%s", moves);
    if (runs)
        compare(want, run(j, k, moves), elements(k), moves);
    return render(j, k, in->n);
}

void fuzz_one(const fuzz_input *in)
{
    if (in->n > 1)
        fuzz_protect(body, (void *)in);
}
