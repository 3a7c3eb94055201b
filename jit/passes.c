/* Passes over the flat form (jit/passes.def) and the loop that runs them. */
#include "jit/flat.h"

static void (*const passes[])(dc_flat *f) = {
#define PASS(id, help) dc_pass_##id,
#include "jit/passes.def"
};

dc_status dc_flat_optimize(dc_job *j, dc_flat *f, uint32_t skip, bool check)
{
    for (uint32_t i = 0; i < DC_COUNTOF(passes); i++) {
        if (skip >> i & 1)
            continue;
        passes[i](f);
        if (check)
            DC_TRY(dc_flat_check(j, f));
    }
    return DC_OK;
}

/* licm -------------------------------------------------------------------------------------- */

/* An open scope and the instructions that are to stand in it, its own LOOP or IF first. */
typedef struct scope {
    dc_kop op; /* LOOP or IF; of the outermost: END */
    DC_VEC(dc_fv) list;
} scope;

typedef struct scopes {
    dc_flat *f;
    scope *at;
    uint32_t depth;    /* of the innermost open one */
    uint32_t *home;    /* by value: depth of the scope that it is in */
} scopes;

/*
 * The scope to compute v in: out through loops that it does not depend on. A pure value may leave an
 * `if` on the way to a loop outside it; a load may not, the condition may guard it.
 */
static uint32_t place_of(const scopes *s, dc_fv v)
{
    const dc_inst *i = dc_inst_at(s->f, v);
    const bool pure = dc_kop_pure((dc_kop)i->op);
    uint32_t needs = 0, best = s->depth;
    if (!pure && !dc_flat_reads_input(s->f, i))
        return best;
    for (int n = 0; n < 3; n++)
        if (i->in[n] != 0 && s->home[i->in[n]] > needs)
            needs = s->home[i->in[n]];
    for (uint32_t d = s->depth; d > needs; d--) {
        if (s->at[d].op == DC_K_LOOP)
            best = d - 1;
        else if (!pure)
            break;
    }
    return best;
}

static void open_scope(scopes *s, dc_fv v)
{
    scope *inner = &s->at[++s->depth];
    inner->op = (dc_kop)dc_inst_at(s->f, v)->op;
    inner->list.n = 0;
    DC_PUSH_IN(&s->f->arena, inner->list, v);
    s->home[v] = s->depth;
}

static void close_scope(scopes *s, dc_fv end)
{
    const scope *inner = &s->at[s->depth--];
    scope *outer = &s->at[s->depth];
    for (uint32_t n = 0; n < inner->list.n; n++)
        DC_PUSH_IN(&s->f->arena, outer->list, inner->list.at[n]);
    DC_PUSH_IN(&s->f->arena, outer->list, end);
}

static uint32_t deepest(const dc_flat *f)
{
    uint32_t depth = 0, most = 0;
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_kop op = (dc_kop)dc_inst_at(f, f->order.at[n])->op;
        if (op == DC_K_LOOP || op == DC_K_IF)
            depth++;
        if (op == DC_K_END)
            depth--;
        most = depth > most ? depth : most;
    }
    return most;
}

void dc_pass_licm(dc_flat *f)
{
    scopes s = {.f = f,
                .at = DC_NEW_ARRAY(&f->arena, scope, deepest(f) + 1),
                .home = DC_NEW_ARRAY(&f->arena, uint32_t, f->inst.n)};
    s.at[0].op = DC_K_END;
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_fv v = f->order.at[n];
        const dc_kop op = (dc_kop)dc_inst_at(f, v)->op;
        if (op == DC_K_LOOP || op == DC_K_IF) {
            open_scope(&s, v);
        } else if (op == DC_K_END) {
            close_scope(&s, v);
        } else {
            s.home[v] = place_of(&s, v);
            DC_PUSH_IN(&f->arena, s.at[s.home[v]].list, v);
        }
    }
    f->order.at = s.at[0].list.at;
    f->order.n = s.at[0].list.n;
    f->order.cap = s.at[0].list.cap;
}

/* dce --------------------------------------------------------------------------------------- */

void dc_pass_dce(dc_flat *f)
{
    bool *live = DC_NEW_ARRAY(&f->arena, bool, f->inst.n);
    for (uint32_t n = f->order.n; n-- > 0;) { /* users before what they use */
        const dc_fv v = f->order.at[n];
        const dc_inst *i = dc_inst_at(f, v);
        if (!dc_kop_pure((dc_kop)i->op) && !dc_kop_loads((dc_kop)i->op))
            live[v] = true;
        if (live[v])
            for (int m = 0; m < 3; m++)
                live[i->in[m]] = true;
    }
    uint32_t kept = 0;
    for (uint32_t n = 0; n < f->order.n; n++)
        if (live[f->order.at[n]])
            f->order.at[kept++] = f->order.at[n];
    f->order.n = kept;
}
