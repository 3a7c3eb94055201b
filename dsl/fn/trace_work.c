/*
 * The work of the trace at hand, for net:summary.
 *
 *   trace_length()        nodes of the function that is being traced
 *   trace_work(marks, ...)   operations (core/ir/flops.h) of what the tensors and the cells that were set need, between
 *                         each of the marks and the next one, the last one and the end
 */
#include "core/ir/flops.h"
#include "dsl/base/binding.h"
#include "dsl/base/run.h"
#include "dsl/fn/fn.h"

static int l_trace_length(lua_State *L)
{
    const dc_trace *t = dc_trace_here(L, dc_dsl_of(L));
    lua_pushinteger(L, t != NULL ? (lua_Integer)t->f->node.n : 0);
    return 1;
}

typedef struct working {
    dc_trace *t;
    dc_handle **tensor;
    int ntensor;
    uint32_t *mark;
    double *work; /* [nmark] */
    int nmark;
} working;

static dc_status work_body(dc_job *j, void *arg)
{
    const working *a = arg;
    const dc_func *f = a->t->f;
    const uint32_t n = f->node.n;
    bool *live = DC_NEW_ARRAY(&j->scratch, bool, n + 1);
    for (int i = 0; i < a->ntensor; i++) {
        dc_val v;
        DC_TRY(dc_trace_value(j, a->t, a->tensor[i], &v));
        if (v.ref < n)
            live[v.ref] = true;
    }
    for (uint32_t i = 0; i < a->t->cell.n; i++)
        if (a->t->cell.at[i].is_set)
            live[a->t->cell.at[i].set.ref] = true;
    for (dc_ref r = n; r-- > 1;) {
        const dc_node *x = dc_node_at(f, r);
        const int reads = x->op == DC_OP_CUSTOM ? 1 : x->nin; /* behind its value are gradients */
        for (int i = 0; live[r] && i < reads; i++)
            live[x->in[i]] = true;
    }
    for (int m = 0; m < a->nmark; m++)
        for (dc_ref r = a->mark[m]; r < (m + 1 < a->nmark ? a->mark[m + 1] : n); r++)
            a->work[m] += r > 0 && live[r] ? dc_flops_node(f, r) : 0;
    return DC_OK;
}

static int l_trace_work(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    working a = {.t = dc_trace_here(L, d), .nmark = (int)lua_rawlen(L, 1)};
    const int top = lua_gettop(L);
    luaL_argcheck(L, a.t != NULL, 1, "nothing is traced");
    a.tensor = lua_newuserdatauv(L, (size_t)top * sizeof *a.tensor, 0);
    for (int i = 2; i <= top; i++)
        a.tensor[a.ntensor++] = dc_handle_check(L, d, i, "summary");
    a.mark = lua_newuserdatauv(L, (size_t)(a.nmark + 1) * sizeof *a.mark, 0);
    a.work = lua_newuserdatauv(L, (size_t)(a.nmark + 1) * sizeof *a.work, 0);
    for (int i = 0; i < a.nmark; i++) {
        lua_rawgeti(L, 1, i + 1);
        a.mark[i] = (uint32_t)luaL_checkinteger(L, -1);
        a.work[i] = 0;
        lua_pop(L, 1);
    }
    dc_run(L, d, work_body, &a);
    lua_createtable(L, a.nmark, 0);
    for (int i = 0; i < a.nmark; i++) {
        lua_pushnumber(L, a.work[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static const dc_binding bindings[] = {
    {"trace_length", l_trace_length, DC_ANY, DC_IN_LIBRARY},
    {"trace_work", l_trace_work, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_trace_work_bindings = DC_BINDINGS(bindings);
