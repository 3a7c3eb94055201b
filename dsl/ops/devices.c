/*
 * Several devices: where tensors lie, and how they get elsewhere.
 *
 *   x.device         the name of the device that x lies on: "cpu", "opencl:0"
 *   x:to(name)       x on that device: a copy, or x itself where it is there
 *   p:move(name)     a parameter or a state lies there from now on; p itself
 *   dc.device()      the name of the device that values are made on
 *   anywhere(x)      for stdlib/: a tensor that goes to where it is used, as what is made by rule does
 */
#include "core/runtime/devices.h"

#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/error.h"
#include "dsl/base/place.h"
#include "dsl/base/run.h"
#include "dsl/base/trace.h"
#include "dsl/ops/ops.h"

#include <string.h>

typedef struct finding {
    dc_dsl *d;
    const char *name;
    dc_rt *out;
} finding;

static dc_status find_body(dc_job *j, void *arg)
{
    finding *a = arg;
    return dc_rt_on(a->d->rt, j, a->name, &a->out);
}

dc_rt *dc_devices_read(lua_State *L, dc_dsl *d, int idx, const char *op)
{
    finding a = {.d = d, .name = dc_args_text(L, d, idx, op)};
    dc_dtype dtype;
    if (dc_dtype_find(a.name, strlen(a.name), &dtype)) {
        const char *text = lua_pushfstring(L, "'%s' is a dtype, not the name of a device", a.name);
        dc_error_fact(L, d, DC_ERR_ARG, &(dc_fact){.op = op, .word = {text}},
                      &(dc_blame){.hint = lua_pushfstring(L, ":cast \"%s\"", a.name)});
    }
    dc_error_check_of(L, d, dc_run_again(L, d, find_body, &a, NULL), op);
    return a.out;
}

/* In a trace everything is on one device. */
static void refuse_tracing(lua_State *L, dc_dsl *d, const char *op, const char *hint)
{
    if (dc_trace_here(L, d) == NULL)
        return;
    const char *text =
        lua_pushfstring(L, "'%s' is traced, and a function computes on one device", d->trace->name);
    dc_error_fact(L, d, DC_ERR_REENTER, &(dc_fact){.op = op, .word = {text}},
                  &(dc_blame){.hint = hint});
}

void dc_devices_push(lua_State *L, dc_dsl *d, const dc_handle *h)
{
    const dc_rt *rt = dc_handle_rt(h);
    const dc_trace *t = rt == NULL ? dc_trace_here(L, d) : NULL;
    if (t != NULL && t->rt != NULL)
        rt = t->rt;
    lua_pushstring(L, rt != NULL ? rt->device_name : d->rt->device_name);
}

static int l_to(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    refuse_tracing(L, d, "to", "move its arguments before the call");
    dc_handle *h = dc_handle_check(L, d, 1, "to");
    if (h->kind == DC_HANDLE_TRACED)
        dc_error_fact(L, d, DC_ERR_LEAKED, &(dc_fact){.op = "to", .word = {h->fn}}, NULL);
    dc_rt *rt = dc_devices_read(L, d, 2, "to");
    if (dc_handle_rt(h) == rt && h->kind != DC_HANDLE_CELL) {
        lua_pushvalue(L, 1);
        return 1;
    }
    dc_collector_step(L, d);
    dc_handle *out = dc_handle_new(L, d);
    out->origin = dc_place_made(d, dc_place_find(L, d).where);
    dc_handle_copy(L, d, dc_handle_check(L, d, 1, "to"), rt, out);
    return 1;
}

typedef struct moving {
    dc_cell *cell;
    dc_rt *to;
} moving;

static dc_status move_body(dc_job *j, void *arg)
{
    const moving *a = arg;
    return dc_cell_move(a->cell, j, a->to);
}

static int l_move(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    refuse_tracing(L, d, "move", "move parameters and states before the call");
    dc_handle *h = dc_handle_check(L, d, 1, "move");
    if (h->kind != DC_HANDLE_CELL)
        dc_error_fact(L, d, DC_ERR_IMMUTABLE, NULL,
                      &(dc_blame){.hint = "x:to(device) makes a tensor on another device"});
    dc_rt *rt = dc_devices_read(L, d, 2, "move");
    if (h->cell == d->generator)
        dc_error_raisef(L, d, DC_ERR_ARG, "move",
                        "the generator goes by itself where numbers are drawn");
    dc_collector_step(L, d);
    moving a = {dc_handle_check(L, d, 1, "move")->cell, rt};
    dc_error_check_of(L, d, dc_run_again(L, d, move_body, &a, NULL), "move");
    lua_settop(L, 1);
    return 1;
}

static dc_status roam_body(dc_job *j, void *arg)
{
    dc_handle *const *h = arg;
    DC_UNUSED(j);
    dc_lazy *n = dc_lazy_leaf(h[0]->d->rt, h[0]->tensor);
    n->rule = true;
    dc_handle_fill_lazy(h[1], n);
    return DC_OK;
}

void dc_devices_roam(lua_State *L, dc_dsl *d, int idx)
{
    const dc_handle *made = dc_handle_check(L, d, idx, "anywhere");
    dc_handle *h[2];
    if (dc_trace_here(L, d) != NULL || made->kind != DC_HANDLE_VALUE || dc_handle_rt(made) != d->rt)
        return;
    h[1] = dc_handle_new(L, d);
    h[0] = dc_handle_check(L, d, idx, "anywhere");
    h[1]->origin = h[0]->origin;
    dc_run(L, d, roam_body, h);
    lua_replace(L, idx);
}

static int l_anywhere(lua_State *L)
{
    lua_settop(L, 1);
    dc_devices_roam(L, dc_dsl_of(L), 1);
    return 1;
}

static int l_device(lua_State *L)
{
    lua_pushstring(L, dc_dsl_of(L)->rt->device_name);
    return 1;
}

static const dc_binding bindings[] = {
    {"to", l_to, 2, DC_IN_METHODS},
    {"move", l_move, 2, DC_IN_METHODS},
    {"device", l_device, 0, DC_IN_MODULE},
    {"anywhere", l_anywhere, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_devices_bindings = DC_BINDINGS(bindings);
