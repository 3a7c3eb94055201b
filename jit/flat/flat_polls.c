/*
 * Work is counted in instructions, of vectors or not: loops times their rounds. A loop looks when it does a lot of work
 * itself, so between two looks lies less than that, or a loop that looks. Rounds that are no constant are the
 * launch's work items, one at a time, or the few of a block.
 */
#include "jit/flat/flat_polls.h"

#define LONG_WORK \
    (INT64_C(1) << 22) /* instructions: about a millisecond, four where memory is slow */

static int64_t rounds_of(const dc_flat *f, const dc_finst *loop)
{
    const dc_finst *from = dc_finst_at(f, loop->in[0]), *to = dc_finst_at(f, loop->in[1]);
    if (from->op != DC_K_CONST || to->op != DC_K_CONST)
        return 1;
    return dc_max_i64((int64_t)(to->imm - from->imm), 1);
}

static int64_t times(int64_t work, int64_t rounds)
{
    int64_t all;
    return dc_mul_ok(work, rounds, &all) ? all : INT64_MAX / 2;
}

const bool *dc_flat_polls_find(const dc_flat *f, dc_arena *a)
{
    bool *looks = DC_NEW_ARRAY(a, bool, f->inst.n), any = false;
    dc_fv *open = DC_NEW_ARRAY(a, dc_fv, f->order.n + 1);
    int64_t *work = DC_NEW_ARRAY(a, int64_t, f->order.n + 1);
    uint32_t depth = 0;
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_fv v = f->order.at[n];
        const dc_kop op = (dc_kop)dc_finst_at(f, v)->op;
        if (op == DC_K_LOOP || op == DC_K_IF) {
            open[++depth] = v;
            work[depth] = 0;
        } else if (op != DC_K_END) {
            work[depth]++;
        } else {
            const dc_finst *i = dc_finst_at(f, open[depth]);
            const int64_t rounds = i->op == DC_K_LOOP ? rounds_of(f, i) : 1;
            const int64_t all = times(work[depth] + 1, rounds);
            looks[open[depth]] = rounds > 1 && all >= LONG_WORK;
            any |= looks[open[depth]];
            depth--;
            if (!dc_add_ok(work[depth], all, &work[depth]))
                work[depth] = INT64_MAX / 2;
        }
    }
    return any ? looks : NULL;
}
