/*
 * Contexts: a hundred opened and closed in turn, four at once on four threads. Each compiles in the
 * background, calls what it compiled, and closes while some of it is still being compiled.
 */
#define _POSIX_C_SOURCE 200809L
#include "core/ir/gtext.h"
#include "core/runtime/storage.h"
#include "jit/jit.h"
#include "vm/deepc.h"

#include <pthread.h>
#include <stdlib.h>

#include "tests/t.h"

enum { IN_TURN = 100, THREADS = 4, EACH = 5, COUNT = 24 };

typedef struct context {
    int number;
    dc_rt *rt;
    dc_exec *called, *unused;
    dc_inst *inst;
    dc_tensor *in, *out;
    bool calls;
    const char *failed; /* NULL: all was well */
} context;

/* x * number + 1, of a kernel that no other context has. */
static dc_status start(context *c, dc_job *j, int number, dc_exec **out)
{
    char text[300];
    dc_module *m = NULL;
    snprintf(text, sizeof text,
             "func f(%%1: f32[%d] \"x\") {\n"
             "  %%2 = const {%u} : f32[%d]\n"
             "  %%3 = const {%u} : f32[%d]\n"
             "  %%4 = mul %%1, %%2 : f32[%d]\n"
             "  %%5 = add %%4, %%3 : f32[%d]\n"
             "  return %%5\n}\n",
             COUNT, dc_f32_bits((float)number), COUNT, dc_f32_bits(1), COUNT, COUNT, COUNT);
    DC_TRY(dc_module_parse(j, text, &m));
    const dc_exec_desc d = {.fn = m->func.at[0], .name = "f", .nfree = 1, .nresult = 1};
    const dc_status status = dc_exec_start(c->rt, j, &d, out);
    dc_module_free(m);
    return status;
}

static dc_status call(context *c, dc_job *j)
{
    dc_device *d = c->rt->device;
    const dc_type t = dc_type_make(DC_F32, 1, (int64_t[]){COUNT});
    float x[COUNT], y[COUNT];
    dc_fault fault;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)i;
    DC_TRY(dc_inst_new(c->rt, j, c->called, NULL, &c->inst));
    DC_TRY(dc_tensor_new(c->rt, j, &t, &c->in));
    DC_TRY(d->ops->upload(d, j, dc_tensor_mem(c->in), x, sizeof x));
    DC_TRY(dc_inst_call(c->inst, j, &(dc_arg){.tensor = c->in}, &c->out, &fault));
    DC_TRY(d->ops->download(d, j, y, dc_tensor_mem(c->out), sizeof y));
    for (int i = 0; i < COUNT; i++)
        if (y[i] != x[i] * (float)c->number + 1)
            c->failed = "a wrong value";
    return DC_OK;
}

static dc_status body(dc_job *j, void *arg)
{
    context *c = arg;
    DC_TRY(start(c, j, c->number, &c->called));
    DC_TRY(start(c, j, c->number + 1000, &c->unused));
    return c->calls ? call(c, j) : DC_OK;
}

/* On whatever thread. */
static void live(context *c)
{
    c->failed = NULL;
    if (dc_open(NULL, &c->rt) != DC_OK || dc_protect(&c->rt->job, body, c) != DC_OK) {
        printf("context %d: %s\n", c->number, dc_errmsg(c->rt));
        c->failed = "a failure";
    }
    dc_tensor_release(c->in);
    dc_tensor_release(c->out);
    dc_inst_free(c->inst);
    dc_exec_release(c->called);
    dc_exec_release(c->unused);
    if (c->rt != NULL && c->rt->stats.fallbacks > 0)
        c->failed = "a compiler that failed";
    dc_close(c->rt);
}

static void test_in_turn(void)
{
    for (int i = 0; i < IN_TURN; i++) {
        context c = {.number = i, .calls = i % 5 == 0};
        live(&c);
        CHECK_STR(c.failed, NULL);
    }
}

/* An executable that was called stays, and counts once, however often somebody looks at it. */
static void test_kept(void)
{
    enum { LOOKS = 1001 };
    context c = {.number = 1};
    CHECK(dc_open(NULL, &c.rt) == DC_OK);
    dc_rt *rt = c.rt;
    rt->measure = true;
    dc_exec_keep(rt);
    c.calls = true;
    CHECK(dc_protect(&rt->job, body, &c) == DC_OK);
    dc_tensor_release(c.in);
    dc_tensor_release(c.out);
    dc_inst_free(c.inst);
    dc_exec_release(c.unused);
    dc_exec_release(c.called);
    for (int i = 0; i < LOOKS && dc_exec_next(rt, NULL) == c.called; i++)
        dc_exec_release(dc_exec_retain(c.called));
    CHECK(dc_exec_next(rt, NULL) == c.called);
    CHECK_EQ(rt->nkept, 1);
    dc_exec_forget(rt);
    CHECK(dc_exec_next(rt, NULL) == NULL);
    CHECK_EQ(rt->nkept, 0);
    CHECK_EQ(rt->kept_nodes, 0);
    dc_close(rt);
}

static void *several(void *arg)
{
    context *c = arg;
    for (int i = 0; i < EACH; i++) {
        const char *before = c->failed;
        *c = (context){.number = c->number + 1, .calls = i % 2 == 0};
        live(c);
        if (before != NULL)
            c->failed = before;
    }
    return NULL;
}

static void test_at_once(void)
{
    context c[THREADS] = {0};
    pthread_t thread[THREADS];
    int n = 0;
    for (; n < THREADS; n++) {
        c[n].number = 100 * n;
        if (!CHECK(pthread_create(&thread[n], NULL, several, &c[n]) == 0))
            break;
    }
    for (int i = 0; i < n; i++) {
        pthread_join(thread[i], NULL);
        CHECK_STR(c[i].failed, NULL);
    }
}

int main(void)
{
    test_kept();
    test_in_turn();
    test_at_once();
    return t_done();
}
