/*
 * Typed functions that no call has told the sizes of their dims: which dims these are, and a trace for sizes of them.
 */
#include "core/base/expr.h"
#include "dsl/base/host.h"
#include "dsl/fn/fn.h"

static unsigned vars_of(const dc_sig_type *t)
{
    unsigned vars = 0;
    for (int k = 0; k < t->ndim; k++) {
        if (t->dim[k].var >= 0)
            vars |= 1u << t->dim[k].var;
        if (t->dim[k].kind == DC_DIM_EXPR)
            vars |= dc_expr_vars(t->dim[k].expr);
    }
    for (int i = 0; i < t->nfield; i++)
        vars |= vars_of(t->field[i].type);
    return t->of != NULL ? vars | vars_of(t->of) : vars;
}

/* As bits: of those that arguments have. What `name = expr` says, what has a bound and what is given follow. */
static unsigned open_vars(const dc_fn *fn, const dc_sig_bind *b)
{
    unsigned vars = 0;
    for (int i = 0; i < fn->sig.nparam; i++)
        if (fn->sig.param[i].type != NULL && !fn->sig.param[i].optional)
            vars |= vars_of(fn->sig.param[i].type);
    for (const dc_sig_def *d = fn->sig.def; d != NULL; d = d->next)
        vars = (vars | dc_expr_vars(d->expr)) & ~(1u << d->var);
    for (int v = 0; v < fn->sig.nvar; v++)
        if (b->size[v] >= 0 || fn->sig.most[v] >= 0)
            vars &= ~(1u << v);
    return vars;
}

static void begin(const dc_fn *fn, dc_fn_key *key)
{
    *key = (dc_fn_key){.nshape = 0};
    dc_sig_begin(&fn->sig, &key->bind);
    if (fn->has_given)
        key->bind = fn->given;
}

int dc_dsl_open_dims(lua_State *L, int idx, const char *name[DC_DSL_DIMS])
{
    const dc_fn *fn = dc_fn_check(L, idx);
    dc_fn_key key;
    int n = 0;
    begin(fn, &key);
    const unsigned vars = open_vars(fn, &key.bind);
    for (int i = 0; i < fn->sig.nparam; i++)
        if (fn->traced || fn->sig.param[i].type == NULL)
            return 0;
    for (int v = 0; v < fn->sig.nvar && n < DC_DSL_DIMS; v++)
        if ((vars >> v & 1) != 0)
            name[n++] = fn->sig.var[v];
    return n;
}

void dc_dsl_trace_for(lua_State *L, int idx, const int64_t size[DC_DSL_DIMS])
{
    dc_dsl *d = dc_dsl_in(L);
    const dc_fn *fn = dc_fn_check(L, idx);
    dc_fn_key key;
    begin(fn, &key);
    const unsigned vars = open_vars(fn, &key.bind);
    idx = lua_absindex(L, idx);
    for (int v = 0, n = 0; v < fn->sig.nvar && n < DC_DSL_DIMS; v++)
        if ((vars >> v & 1) != 0)
            dc_fn_give_size(L, d, fn, &key.bind, fn->sig.var[v], size[n++]);
    dc_fn_check_sizes(L, d, fn, &key.bind);
    dc_fn_bound(L, d, fn, &key, false);
    if (dc_fn_early_key(fn, &key))
        dc_spec_make(L, d, idx, &key, true);
}
