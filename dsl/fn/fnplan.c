/*
 * For stdlib/plan.lua: typed functions whose values are in parts, or that exchange something, as one rank runs them. Each is called some times with
 * zeros, in a world whose other ranks are not there, so that its kernels are timed; what ranks exchange is listed.
 */
#include "dsl/base/run.h"
#include "dsl/fn/report_impl.h"

enum { WARM = 3, CALLS = 12, LONG_NS = 1000000000 };

typedef struct planning {
    dc_dsl *d;
    dc_spec *s;
} planning;

static void release_zeros(dc_spec *s)
{
    for (uint32_t i = 0; i < s->nleaf; i++) {
        dc_tensor_release((dc_tensor *)(uintptr_t)s->arg[i].tensor);
        s->arg[i] = (dc_arg){.tensor = NULL};
    }
}

static dc_status make_zeros(const planning *a, dc_job *j)
{
    const dc_func *f = dc_exec_desc_of(a->s->exec)->fn;
    for (uint32_t i = 0; i < a->s->nleaf; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        dc_tensor *x = NULL;
        a->s->arg[i] = (dc_arg){.tensor = NULL};
        if (t.rank == 0)
            continue;
        DC_TRY(dc_tensor_new(a->s->rt, j, &t, &x));
        a->s->arg[i].tensor = x;
        DC_TRY(dc_storage_clear(x->store, j));
    }
    return DC_OK;
}

static dc_status call_once(const planning *a, dc_job *j)
{
    dc_fault fault;
    dc_tensor **out = DC_NEW_ARRAY(&j->scratch, dc_tensor *, a->s->nout + 1);
    DC_TRY(dc_inst_call(a->s->inst, j, a->s->arg, out, &fault));
    for (uint32_t i = 0; i < a->s->nout; i++)
        dc_tensor_release(out[i]);
    return DC_OK;
}

static dc_status call_some(const planning *a, dc_job *j)
{
    const uint64_t begun = dc_clock_ns();
    DC_TRY(make_zeros(a, j));
    for (int i = 0; i < WARM + CALLS; i++) {
        if (i == WARM)
            dc_exec_forget_times(a->s->exec);
        DC_TRY(call_once(a, j));
        if (i > WARM && dc_clock_ns() - begun > LONG_NS)
            break;
    }
    return DC_OK;
}

static dc_status ready_body(dc_job *j, void *arg)
{
    const planning *a = arg;
    return dc_spec_ready(a->d, j, a->s);
}

static dc_status time_body(dc_job *j, void *arg)
{
    const planning *a = arg;
    for (uint32_t i = 0; i < a->s->nleaf; i++)
        a->s->arg[i] = (dc_arg){.tensor = NULL};
    const dc_status status = call_some(a, j);
    release_zeros(a->s);
    return status;
}

static double cell_bytes(const dc_spec *s, bool trainable)
{
    double all = 0;
    for (uint32_t i = 0; i < s->trace->cell.n; i++) {
        const dc_cell *c = s->trace->cell.at[i].cell;
        all += c->trainable == trainable ? (double)c->store->bytes : 0;
    }
    return all;
}

static double leaf_bytes(const dc_spec *s)
{
    const dc_func *f = dc_exec_desc_of(s->exec)->fn;
    double all = 0;
    for (uint32_t i = 0; i < s->nleaf; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        all += (double)dc_type_bytes(&t);
    }
    return all;
}

static void push_spec(lua_State *L, dc_dsl *d, dc_spec *s)
{
    lua_newtable(L);
    dc_report_holder *h = dc_report_holder_push(L, s->exec);
    lua_insert(L, -2);
    dc_report_set_executable(L, d, h, DC_REPORT_NO_GRAPH);
    dc_report_set_text(L, "name", s->trace->name);
    dc_report_set_text(L, "where", s->trace->where);
    dc_report_set_number(L, "parameter_bytes", cell_bytes(s, true));
    dc_report_set_number(L, "state_bytes", cell_bytes(s, false));
    dc_report_set_number(L, "argument_bytes", leaf_bytes(s));
    lua_remove(L, -2);
}

/* Does it exchange anything? The commands are there when it is compiled. */
static bool exchanges(const dc_spec *s)
{
    bool any = s->nplace > 0;
    for (uint32_t i = 0; i < dc_exec_command_count(s->exec) && !any; i++) {
        dc_exec_command x;
        dc_exec_command_of(s->exec, i, &x);
        any = x.exchange;
    }
    return any;
}

/* plan_functions(): a list of reports, with { parameter_bytes, state_bytes, argument_bytes }, or of { name, refused } */
static int push_plans(lua_State *L) /* a finalizer would drop specialisations from the list */
{
    dc_dsl *d = dc_dsl_of(L);
    lua_newtable(L);
    const int out = lua_gettop(L);
    for (dc_spec *s = d->specs; s != NULL; s = s->next) {
        planning a = {d, s};
        if (s->size.n > 0 || s->exec == NULL)
            continue;
        dc_status status = dc_run_once(d, ready_body, &a);
        if (status == DC_OK && !exchanges(s))
            continue;
        if (status == DC_OK)
            status = dc_run_once(d, time_body, &a);
        if (status != DC_OK) {
            char why[600];
            dc_err_render(&d->rt->job.err, 1, why, sizeof why);
            dc_err_clear(&d->rt->job.err);
            lua_newtable(L);
            lua_pushstring(L, s->trace->name);
            lua_setfield(L, -2, "name");
            lua_pushstring(L, why);
            lua_setfield(L, -2, "refused");
        } else {
            push_spec(L, d, s);
        }
        lua_rawseti(L, out, (lua_Integer)lua_rawlen(L, out) + 1);
    }
    lua_settop(L, out);
    return 1;
}

static int l_plan_functions(lua_State *L)
{
    lua_settop(L, 0);
    return dc_collector_hold(L, push_plans);
}

static const dc_binding rows[] = {
    {"plan_functions", l_plan_functions, 0, DC_IN_LIBRARY},
};

const dc_bindings dc_fnplan_bindings = DC_BINDINGS(rows);
