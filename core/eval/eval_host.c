/* Operations that a function of core/host computes: the interpreter calls the same one as everything else. */
#include "core/eval/eval_impl.h"
#include "core/host/host.h"

/* Floats are doubles in the wide mode. */
static void widen(const dc_eval_state *s, dc_type *t)
{
    if (dc_eval_holds_double(s->mode, (dc_dtype)t->dtype))
        t->dtype = DC_F64;
}

static int always(void *ctx)
{
    DC_UNUSED(ctx);
    return 1;
}

dc_status dc_eval_host(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    dc_host_call c = dc_host_call_of(s->f, r);
    c.where = s->f->origins.at[n->origin].where;
    const void *in[DC_HOST_OPERANDS];
    dc_lapack lib;
    for (int i = 0; i < c.nin; i++) {
        in[i] = s->value[n->in[i]];
        widen(s, &c.in[i]);
    }
    widen(s, &c.out);
    DC_TRY(dc_host_open(s->j, &c, &lib));
    DC_TRY(dc_eval_alloc(s, (int64_t)dc_host_scratch(&c), 1, &s->temp[0]));
    const dc_look look = {s->j->cancel, always, NULL};
    for (int64_t row = 0; row < dc_host_rows(&c); row++) {
        DC_TRY(dc_host_run(s->j, &c, &lib, look.flag != NULL ? &look : NULL, s->value[r], in,
                           s->temp[0], row, row + 1));
        dc_job_look();
    }
    return DC_OK;
}
