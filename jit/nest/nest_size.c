/*
 * How large a nest may be: so that its iterations and positions can be counted, also where a schedule
 * rounds extents up, and the text of its unrolled loops be held in memory. Part of the verifier
 * (jit/nest/nest_verify.c), which has seen to axes and extents before.
 */
#include "jit/nest/nest_print.h"

#define MAX_ROUNDS ((int64_t)1 << 56)
#define MAX_COPIES ((int64_t)1 << 14)

static const char *size_of_list(const dc_kernel *k, const dc_stmt *first, int64_t rounds,
                                int64_t copies, const dc_stmt **loop)
{
    const char *what = NULL;
    for (const dc_stmt *t = first; t != NULL && what == NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        const dc_axis *a = &k->axis.at[t->axis];
        const bool unrolled = a->kind == DC_AXIS_UNROLL;
        *loop = t;
        if (a->extent > MAX_ROUNDS / rounds)
            return "more iterations than can be counted";
        if (unrolled && a->extent > MAX_COPIES / copies)
            return "more than 16384 copies by unrolled loops";
        what = a->extent == 0 ? NULL
                              : size_of_list(k, t->body, rounds * a->extent,
                                             unrolled ? copies * a->extent : copies, loop);
    }
    return what;
}

const char *dc_nest_too_large(const dc_kernel *k, const dc_stmt **loop)
{
    int64_t positions = 0;
    const char *what = size_of_list(k, k->root, 1, 1, loop);
    for (const dc_stmt *t = k->root; t != NULL && what == NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP && k->axis.at[t->axis].kind == DC_AXIS_GRID) {
            *loop = t;
            positions += k->axis.at[t->axis].extent;
            if (positions > MAX_ROUNDS)
                what = "more positions than can be counted";
        }
    return what;
}
