/* Calls inside calls: from a device that calls back, from a log hook, of the same instance and others. */
#include "tests/t.h"
#include "tests/unit/world.h"

typedef struct nested {
    world *w;
    dc_inst *same, *other;
    const dc_arg *arg;
    int calls, when; /* the `when`-th time, so that the outer call is half done */
} nested;

static void call_inside(void *ctx, void *to)
{
    nested *n = ctx;
    dc_job j;
    dc_fault fault;
    dc_tensor *out[2];
    DC_UNUSED(to);
    if (++n->calls != n->when)
        return;
    CHECK(n->w->on == ON_EVAL || n->w->rt->arena_busy);
    dc_job_init(&j, &n->w->opt, &n->w->log);
    CHECK_EQ(dc_inst_call(n->same, &j, n->arg, out, &fault), DC_E_STATE);
    CHECK_EQ(j.err.id, DC_ERR_REENTER);
    j.err = (dc_err){0};
    CHECK_EQ(dc_inst_call(n->other, &j, n->arg, out, &fault), DC_OK);
    dc_tensor_release(out[0]);
    dc_tensor_release(out[1]);
    dc_job_fini(&j);
}

static void test_nested(where on)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    dc_opts opt = {.opt = 0, .check = 2}; /* a kernel per node and a run per kernel */
    world_open(&w, on, &opt, "");
    dc_exec *e = world_build(&w, world_step, &world_step_signature);
    dc_cell *a = world_cell(&w, 8, 1, "a"), *b = world_cell(&w, 8, 2, "b");
    dc_inst *ia = world_bind(&w, e, &a), *ib = world_bind(&w, e, &b);
    dc_tensor *g = world_tensor(&w, DC_F32, 8, 1);
    const dc_arg arg[] = {given(g), number(1)};
    nested n = {.w = &w, .same = ia, .other = ib, .arg = arg, .when = on == ON_CPU ? 3 : 1};
    if (on == ON_CPU)
        w.dev->on_run = call_inside;
    else
        w.dev->on_upload = call_inside;
    w.dev->ctx = &n;
    CHECK_EQ(dc_inst_call(ia, w.j, arg, out, &fault), DC_OK);
    w.dev->on_upload = w.dev->on_run = NULL;
    CHECK(n.calls >= n.when && !w.rt->arena_busy);
    CHECK(value_at(out[0], 0) == 36.0f && cell_at(a, 7) == 0.0f && cell_at(b, 7) == 1.0f);
    dc_tensor_release(out[0]);
    dc_tensor_release(out[1]);
    CHECK_EQ(dc_inst_call(ia, w.j, arg, out, &fault), DC_OK); /* it is free again */
    dc_tensor_release(out[0]);
    dc_tensor_release(out[1]);
    dc_tensor_release(g);
    dc_inst_free(ia);
    dc_inst_free(ib);
    dc_cell_release(a);
    dc_cell_release(b);
    dc_exec_release(e);
    world_close(&w);
}

/* ---- from a log hook ---- */

typedef struct hook {
    world *w;
    dc_inst *same, *other;
    dc_cell *cell; /* that the outer call has just set */
    const dc_arg *arg;
    int lines, depth;
    float seen;
} hook;

static dc_status use_context(dc_job *j, void *arg)
{
    const hook *h = arg;
    dc_fault fault;
    dc_tensor *out[2];
    DC_TRY(dc_cell_check(h->cell, j, "read", true));
    DC_TRY(dc_inst_call(h->other, j, h->arg, out, &fault));
    world_release(out, 2);
    return dc_inst_call(h->same, j, h->arg, out, &fault);
}

/* As a host does it: through a public entry, with the context's job, which is in the middle of one.
 */
static void hear_line(void *ctx)
{
    hook *h = ctx;
    if (h->depth > 0)
        return;
    h->depth++;
    h->lines++;
    h->seen = cell_at(h->cell, 7);
    CHECK(h->w->rt->arena_busy);
    CHECK_EQ(dc_protect(h->w->j, use_context, h), DC_E_STATE);
    CHECK_EQ(h->w->j->err.id, DC_ERR_REENTER); /* its own record; the outer call has none */
    h->depth--;
}

typedef struct outer {
    dc_inst *i;
    const dc_arg *arg;
    dc_tensor *out[2];
    dc_fault fault;
} outer;

static dc_status call_outer(dc_job *j, void *arg)
{
    outer *o = arg;
    DC_TRY(dc_inst_call(o->i, j, o->arg, o->out, &o->fault));
    return j->err.status;
}

static void test_hook(void)
{
    world w;
    dc_opts opt = {.opt = 0, .compare = "eval"};
    world_open(&w, ON_CPU, &opt, "");
    dc_exec *e = world_build(&w, world_step, &world_step_signature);
    dc_cell *a = world_cell(&w, 8, 1, "a"), *b = world_cell(&w, 8, 2, "b");
    dc_inst *ia = world_bind(&w, e, &a), *ib = world_bind(&w, e, &b);
    dc_tensor *g = world_tensor(&w, DC_F32, 8, 1);
    const dc_arg arg[] = {given(g), number(1)};
    hook h = {.w = &w, .same = ia, .other = ib, .cell = a, .arg = arg};
    outer o = {.i = ia, .arg = arg};
    w.on_line = hear_line;
    w.line_ctx = &h;
    CHECK_EQ(dc_protect(w.j, call_outer, &o), DC_OK);
    CHECK_EQ(h.lines, 1);
    CHECK(h.seen == 0.0f); /* the new value, whole */
    CHECK(value_at(o.out[0], 0) == 36.0f && value_at(o.out[1], 7) == 0.0f);
    CHECK(cell_at(a, 7) == 0.0f && cell_at(b, 7) == 1.0f);
    world_release(o.out, 2);
    w.on_line = NULL;
    dc_tensor_release(g);
    dc_inst_free(ia);
    dc_inst_free(ib);
    dc_cell_release(a);
    dc_cell_release(b);
    dc_exec_release(e);
    world_close(&w);
}

int main(void)
{
    test_nested(ON_EVAL);
    test_nested(ON_CPU);
    test_hook();
    return t_done();
}
