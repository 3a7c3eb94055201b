/*
 * A plan as text (DEEPC_DEBUG=plan, f:plan).
 */
#include "jit/plan/plan.h"

static void print_whole(const dc_plan *p, dc_place at, dc_text *out)
{
    switch ((dc_place_kind)at.kind) {
    case DC_PLACE_NONE:
        dc_text_puts(out, "none");
        return;
    case DC_PLACE_BLOCK:
        dc_text_printf(out, "block.%u", at.index);
        return;
    case DC_PLACE_FREE:
        dc_text_printf(out, "arg.%u", at.index);
        return;
    case DC_PLACE_CELL:
        dc_text_printf(out, "cell.%u", at.index);
        return;
    case DC_PLACE_RESULT:
        dc_text_printf(out, "result.%u", at.index);
        return;
    case DC_PLACE_TEMP:
        dc_text_printf(out, "temp@%zu", p->temp[at.index].offset);
        return;
    }
}

static void print_place(const dc_plan *p, dc_place at, dc_text *out)
{
    print_whole(p, at, out);
    if (at.at > 0)
        dc_text_printf(out, "+%zu", at.at);
}

static void print_group(const dc_plan *p, const dc_group *g, dc_text *out)
{
    for (uint32_t i = 0; i < g->nout; i++) {
        dc_text_puts(out, i > 0 ? ", " : " ");
        print_place(p, p->home[g->out[i]], out);
    }
    dc_text_puts(out, " <-");
    for (uint32_t i = 0; i < g->nin; i++) {
        dc_text_puts(out, i > 0 ? ", " : " ");
        print_place(p, p->home[g->in[i]], out);
    }
}

static void print_deps(const dc_step *s, dc_text *out)
{
    for (uint32_t i = 0; i < s->ndep; i++)
        dc_text_printf(out, "%s%u", i == 0 ? "  after " : ", ", s->dep[i]);
    dc_text_puts(out, "\n");
}

void dc_plan_print(const dc_plan *p, const dc_groups *g,
                   const char *(*label)(const void *ctx, uint32_t group), const void *ctx,
                   dc_text *out)
{
    uint32_t inside = 0; /* groups to come of a bundle */
    for (uint32_t i = 0; i < p->nstep; i++) {
        const dc_step *s = &p->step[i];
        dc_text_printf(out, "%4u  %s", i, inside > 0 ? "  " : "");
        inside = s->kind == DC_STEP_BUNDLE ? s->nbody : inside > 0 ? inside - 1 : 0;
        if (s->kind == DC_STEP_GROUP) {
            dc_text_puts(out, label(ctx, s->index));
            print_group(p, &g->at[s->index], out);
        } else if (s->kind == DC_STEP_BUNDLE) {
            dc_text_printf(out, "bundle of %u", s->nbody);
        } else if (s->kind == DC_STEP_CHECK) {
            dc_text_printf(out, "check %u ", s->index);
            print_place(p, s->from, out);
        } else {
            dc_text_puts(out, "copy ");
            print_place(p, s->to, out);
            dc_text_puts(out, " <- ");
            print_place(p, s->from, out);
            dc_text_printf(out, " %zu bytes", s->bytes);
        }
        print_deps(s, out);
    }
    dc_text_printf(
        out, "arena %zu bytes, %.3f of the %zu alive at once; cells in place %u, by copy %u\n",
        p->bytes, dc_plan_ratio(p->bytes, p->lower_bound), p->lower_bound, p->donated, p->denied);
}
