/*
 * accuracy_table [STEP [DEVICE [NAME]]]: a line for each function, with the largest error in ulp. Functions of one f32 for
 * every STEP-th float (1: all), others for samples. scripts/accuracy-table runs it.
 */
#include <stdio.h>

#include "tests/unit/accuracy.h"

static void show(accuracy *a, const accuracy_row *r, dc_dtype t, bool all)
{
    const double limit = r->limit[t == DC_F64];
    printf("%s %s %s %.3f %g %.17g %.17g\n", r->name, dc_dtype_name(t), all ? "all" : "samples",
           a->worst, limit, a->at[0], a->at[1]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const uint32_t step = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 64;
    const char *name = argc > 3 ? argv[3] : NULL;
    accuracy a;
    if (!accuracy_open(&a, argc > 2 ? argv[2] : "cpu"))
        return 1;
    for (size_t i = 0; i < DC_COUNTOF(accuracy_of_one); i++) {
        const accuracy_row *r = &accuracy_of_one[i];
        if (name != NULL && strcmp(name, r->name) != 0)
            continue;
        accuracy_all(&a, r, 0, step == 0 ? 1 : step);
        show(&a, r, DC_F32, step <= 1);
        accuracy_samples(&a, r, DC_F64, 64, 88172645463325252u);
        show(&a, r, DC_F64, false);
    }
    for (size_t i = 0; i < DC_COUNTOF(accuracy_of_two); i++) {
        const accuracy_row *r = &accuracy_of_two[i];
        if (name != NULL && strcmp(name, r->name) != 0)
            continue;
        for (int t = 0; t < 2; t++) {
            accuracy_samples(&a, r, t ? DC_F64 : DC_F32, 256, 88172645463325252u);
            show(&a, r, t ? DC_F64 : DC_F32, false);
        }
    }
    accuracy_close(&a);
    return 0;
}
