/*
 * The userdata of typed functions and of specialisations: what they own, and when it is freed. All that own
 * something are in lists of the context, which frees what is left when its state closes.
 */
#include "core/runtime/outcome.h"
#include "dsl/fn/fn.h"

/* ---- typed functions ------------------------------------------------------------------------- */

dc_fn *dc_fn_check(lua_State *L, int idx)
{
    dc_fn *fn = dc_udata_test(L, idx, &dc_fn_type);
    if (fn == NULL)
        dc_error_fact(L, dc_dsl_of(L), DC_ERR_ARG,
                      &(dc_fact){.word = {lua_pushfstring(L, "a typed function is needed, not %s",
                                                          dc_handle_describe(L, idx))}},
                      &(dc_blame){.hint = "its methods have a colon: f:explain()"});
    if (!fn->ready)
        luaL_error(L, "the typed function was never made");
    fn->head.dying = false;
    return fn;
}

static void drop_fn(void *node)
{
    dc_fn *fn = node;
    if (!fn->ready)
        return;
    fn->ready = false;
    if (fn->prev != NULL)
        fn->prev->next = fn->next;
    else
        fn->d->fns = fn->next;
    if (fn->next != NULL)
        fn->next->prev = fn->prev;
    dc_sig_fini(&fn->sig);
    dc_uses_free(&fn->seen);
}

const dc_utype dc_fn_type = {.name = "deepc.fn", .drop = drop_fn, .again = true};

/* ---- specialisations ------------------------------------------------------------------------- */

void dc_spec_drop(dc_spec *s)
{
    dc_dsl *d = s->d;
    if (d == NULL || dc_dsl_gone(d))
        return;
    if (s->prev != NULL)
        s->prev->next = s->next;
    else
        d->specs = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    if (s->rt != NULL)
        dc_outcomes_disown(s->rt, s);
    dc_fnjob_end(s->job);
    dc_inst_free(s->inst);
    dc_exec_release(s->exec);
    dc_trace_free(s->trace);
    dc_guard_free(s->guards);
    dc_spec_drop_room(s);
    dc_xfree(s->arg);
    dc_xfree(s->type);
    dc_xfree(s->out);
    dc_xfree(s->out_declared);
    DC_VEC_FREE(s->dep);
    DC_VEC_FREE(s->declared);
    DC_VEC_FREE(s->exchange);
    DC_VEC_FREE(s->whole);
    DC_VEC_FREE(s->step);
    *s = (dc_spec){.head = s->head};
}

static void drop_spec(void *node)
{
    dc_spec_drop(node);
}

const dc_utype dc_spec_type = {.name = "deepc.specialisation", .drop = drop_spec, .again = true};

void dc_fn_push_specs(lua_State *L, int idx)
{
    dc_udata_table(L, idx, DC_FN_SPECS);
}

dc_spec *dc_spec_test(lua_State *L, int idx)
{
    return dc_udata_test(L, idx, &dc_spec_type);
}

dc_spec *dc_spec_at(lua_State *L, int idx)
{
    dc_spec *s = dc_udata_check(L, idx, &dc_spec_type);
    s->head.dying = false;
    return s;
}

dc_spec *dc_spec_push(lua_State *L, dc_dsl *d, const dc_fn_key *key)
{
    dc_spec *s = dc_udata_new(L, &dc_spec_type, sizeof *s, DC_SPEC__USER);
    s->key = *key;
    s->d = d;
    s->next = d->specs;
    if (s->next != NULL)
        s->next->prev = s;
    d->specs = s;
    return s;
}

void dc_fn_close_all(dc_dsl *d)
{
    while (d->specs != NULL)
        dc_spec_drop(d->specs);
    while (d->fns != NULL)
        drop_fn(d->fns);
}
