/* The promise of docs/accuracy.md on samples: every function, f32 and f64. scripts/accuracy-table looks at all floats. */
#include <stdio.h>

#include "tests/t.h"
#include "tests/unit/accuracy.h"

static void check(accuracy *a, const accuracy_row *r, dc_dtype t)
{
    if (!CHECK(a->worst <= r->limit[t == DC_F64]))
        printf("    %s of %s: %.3f ulp at %.17g, %.17g\n", r->name, dc_dtype_name(t), a->worst,
               a->at[0], a->at[1]);
}

int main(void)
{
    accuracy a;
    if (!CHECK(accuracy_open(&a, "cpu")))
        return t_done();
    for (size_t i = 0; i < DC_COUNTOF(accuracy_of_one); i++) {
        const accuracy_row *r = &accuracy_of_one[i];
        accuracy_all(&a, r, 12345, 65521); /* one chunk */
        check(&a, r, DC_F32);
        for (int t = 0; t < 2; t++) {
            accuracy_samples(&a, r, t ? DC_F64 : DC_F32, 1, 88172645463325252u);
            check(&a, r, t ? DC_F64 : DC_F32);
        }
    }
    for (size_t i = 0; i < DC_COUNTOF(accuracy_of_two); i++)
        for (int t = 0; t < 2; t++) {
            accuracy_samples(&a, &accuracy_of_two[i], t ? DC_F64 : DC_F32, 1, 88172645463325252u);
            check(&a, &accuracy_of_two[i], t ? DC_F64 : DC_F32);
        }
    accuracy_close(&a);
    return t_done();
}
