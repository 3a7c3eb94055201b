/*
 * Schedules found by timing, as they lie in the cache (jit/cache/tuned_schedules.h): what is read prints as a text that is
 * read as the same list. An entry of the one kernel below is applied as a compilation does, and leaves a legal kernel.
 */
#include "jit/cache/tuned_schedules.h"
#include "jit/compile/tuned_list.h"
#include "jit/nest/nest.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static const char nest[] = "kernel k(out0: f32[24] out, x0: f32[96]) {\n"
                           "  local acc: f32[1]\n"
                           "  for i in 24\n"
                           "    acc[0] = 0:f32\n"
                           "    for k in 4 reduce\n"
                           "      acc[0] add= x0[4*i + k]\n"
                           "    out0[i] = acc[0]\n"
                           "}\n";

static void print_again(dc_arena *mem, const dc_tuned *list)
{
    dc_text text = {0};
    const dc_tuned *again = NULL;
    dc_tuned_print(list, &text);
    if (!dc_tuned_parse(mem, text.s, text.n, &again) ||
        dc_tuned_fingerprint(again) != dc_tuned_fingerprint(list))
        fuzz_finding("a list that prints otherwise:\n%s", text.s);
    dc_text_free(&text);
}

/* The moves of all entries, one list after the other, whatever kernels they are of. */
static void apply(dc_job *j, dc_arena *mem, const dc_tuned *list)
{
    for (const dc_tuned *e = list; e != NULL; e = e->older) {
        dc_kernel *k = NULL;
        bool is;
        dc_tuned own = *e;
        own.kernel = dc_tuned_key(nest);
        if (dc_nest_parse(j, nest, &k) != DC_OK)
            fuzz_finding("the kernel is not read");
        if (dc_tuned_apply(j, dc_tuned_add(mem, NULL, &own), nest, &k, &is) != DC_OK ||
            dc_nest_check(j, k) != DC_OK || (!is && k->moves.n > 0))
            fuzz_finding("moves that leave no legal kernel");
        dc_kernel_free(k);
    }
}

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    const dc_tuned *list = NULL;
    if (dc_tuned_parse(&j->scratch, (const char *)in->at, in->n, &list)) {
        print_again(&j->scratch, list);
        apply(j, &j->scratch, list);
    }
    return DC_OK;
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)(uintptr_t)in);
}
