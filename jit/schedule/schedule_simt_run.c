/*
 * Runs of an access map (jit/schedule/schedule_simt_run.h): how many neighbouring iterations are neighbours in memory, as
 * vectors of a copy are. Loops that have been joined are quotients and remainders of one axis.
 */
#include "jit/schedule/schedule_simt_run.h"

typedef struct run { /* of an index, where an axis goes on by one */
    int64_t step;    /* while nothing is carried */
    bool aligned;    /* it begins at a multiple of its length */
    bool even;       /* nothing is carried inside of it */
} run;

/* Runs of v iterations that begin at a multiple of v. */
static run run_of(const dc_kernel *k, dc_ix at, uint32_t axis, int64_t v)
{
    const dc_ix_node *x = &k->ix.at[at];
    run all = {.aligned = x->c % v == 0, .even = true};
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &k->atom.at[x->term[i].atom];
        run one = {.even = true};
        if (t->kind == DC_ATOM_AXIS) {
            one.step = one.aligned = t->axis == axis;
        } else if (t->kind != DC_ATOM_VALUE) {
            const run of = run_of(k, t->of, axis, v);
            one.even = of.even && (of.step == 0 || (of.step == 1 && of.aligned && t->k % v == 0));
            one.step = t->kind == DC_ATOM_MOD ? of.step : 0;
            one.aligned = t->kind == DC_ATOM_MOD && of.aligned && t->k % v == 0;
        }
        all.step += x->term[i].coef * one.step;
        all.aligned &= one.aligned || x->term[i].coef % v == 0;
        all.even &= one.even;
    }
    return all;
}

int64_t dc_simt_run(const dc_kernel *k, const dc_vx_node *load, uint32_t axis, int64_t most)
{
    const dc_buffer *b = &k->buf.at[load->buf];
    const int64_t align = b->align != 0 ? b->align : DC_BUFFER_ALIGN;
    const int64_t size = (int64_t)dc_dtype_size((dc_dtype)load->dtype);
    if (run_of(k, load->at, axis, 1).step != 1)
        return 0;
    for (int64_t v = most; v > 1; v /= 2) {
        const run r = run_of(k, load->at, axis, v);
        if (r.step == 1 && r.aligned && r.even && k->axis.at[axis].extent % v == 0 &&
            align % (v * size) == 0)
            return v;
    }
    return 1;
}
