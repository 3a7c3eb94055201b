/*
 * A host that gives the memory (dc_config.alloc): all that our objects allocate comes from it and goes back
 * to it, on any thread; where it refuses, the status is NOMEM and nothing is lost.
 */
#include "core/runtime/rt.h"
#include "vm/deepc.h"

#include "tests/unit/nomem.h"
#include "tests/unit/trainstep.h"

enum { STEP_PIECES = 16 }; /* more than the step has kernels */

/* ---- the host's memory ---- */

static struct {
    _Atomic size_t bytes, blocks;
    _Atomic long n, refused;
    long first; /* from here on there is none; 0: always some */
    const void *owner;
} host;

static void *give(void *ctx, void *block, size_t old_size, size_t new_size)
{
    CHECK(ctx == &host);
    CHECK((block == NULL) == (old_size == 0));
    if (new_size == 0) {
        host.bytes -= old_size;
        host.blocks--;
        __real_free(block);
        return NULL;
    }
    if (++host.n >= host.first && host.first > 0) {
        host.refused++;
        return NULL;
    }
    void *p = __real_realloc(block, new_size); /* of unknown content where it is new */
    if (p == NULL)
        return NULL;
    if (block == NULL)
        memset(p, 0xa5, new_size);
    host.bytes += new_size - old_size;
    host.blocks += block == NULL;
    return p;
}

/* ---- what a host does ---- */

typedef struct session {
    dc_rt *rt;
    dc_exec *exec;
    dc_inst *inst;
    dc_cell *cell[STEP_NCELL];
    dc_tensor *in[STEP_NFREE], *out[STEP_NRESULT];
} session;

static dc_status make(dc_job *j, void *arg)
{
    session *s = arg;
    trainstep step = {.module = dc_module_new()};
    dc_module_defer(j, step.module);
    DC_TRY(trainstep_build(j, &step));
    const dc_exec_desc d = trainstep_desc(&step);
    DC_TRY(dc_exec_start(s->rt, j, &d, &s->exec)); /* on another thread */
    for (uint32_t i = 0; i < STEP_NFREE + STEP_NCELL; i++) {
        const dc_type *t = &step.param[i].type;
        if (i >= STEP_NFREE) {
            DC_TRY(dc_cell_new(s->rt, j, t, "w", true, &s->cell[i - STEP_NFREE]));
            continue;
        }
        DC_TRY(dc_tensor_new(s->rt, j, t, &s->in[i]));
        DC_TRY(s->rt->device->ops->upload(s->rt->device, j, dc_tensor_mem(s->in[i]),
                                          trainstep_value[i], dc_type_bytes(t)));
    }
    DC_TRY(dc_exec_wait(s->rt, j, s->exec));
    return dc_inst_new(s->rt, j, s->exec, s->cell, &s->inst);
}

static dc_status call(dc_job *j, void *arg)
{
    session *s = arg;
    dc_arg in[STEP_NFREE];
    dc_fault fault;
    for (int i = 0; i < STEP_NFREE; i++)
        in[i] = (dc_arg){.tensor = s->in[i]};
    return dc_inst_call(s->inst, j, in, s->out, &fault);
}

static void let_go(session *s)
{
    for (int i = 0; i < STEP_NRESULT; i++)
        dc_tensor_release(s->out[i]);
    for (int i = 0; i < STEP_NFREE; i++)
        dc_tensor_release(s->in[i]);
    for (int i = 0; i < STEP_NCELL; i++)
        dc_cell_release(s->cell[i]);
    dc_inst_free(s->inst);
    dc_exec_release(s->exec);
}

/* Opens, compiles, calls, closes: NOMEM or OK. */
static dc_status visit(const char *device)
{
    dc_config cfg = DC_CONFIG_INIT;
    session s = {0};
    cfg.device = device;
    cfg.alloc = give;
    cfg.alloc_ctx = &host;
    host.n = host.refused = 0;
    dc_status status = dc_open(&cfg, &s.rt);
    if (status == DC_OK) {
        status = dc_protect(&s.rt->job, make, &s);
        if (status == DC_OK)
            status = dc_protect(&s.rt->job, call, &s);
        if (status != DC_OK)
            CHECK(strncmp(dc_errmsg(s.rt), "out of memory", 13) == 0 &&
                  strstr(dc_errmsg(s.rt), "\n  [DC1001; deepc explain DC1001]") != NULL);
        /* Machine code is mapped, a piece for each kernel; a page tells whose process it is. */
        CHECK(mem.blocks <= 1 + (strcmp(device, "cpu") == 0 ? STEP_PIECES : 0));
        let_go(&s);
        dc_close(s.rt);
    }
    CHECK_EQ(host.bytes, 0);
    CHECK_EQ(host.blocks, 0);
    CHECK_EQ(mem.blocks, 0);
    return status;
}

static void test_device(const char *device)
{
    host.first = 0;
    mem.n = 0;
    CHECK_EQ(visit(device), DC_OK);
    const long asked = host.n;
    CHECK(asked > 100);
    printf("%s asks %ld times\n", device, asked);
    const long step = asked / 40 + 1;
    for (host.first = 1 + rng_below(&dice, (int)step); host.first <= asked; host.first += step) {
        const dc_status status = visit(device);
        CHECK(status == DC_E_NOMEM || host.refused == 0); /* threads do not always ask as often */
    }
}

/* Two contexts, each with memory of its own; one has none any more. */
static void test_apart(void)
{
    dc_config cfg = DC_CONFIG_INIT;
    session a = {0}, b = {0};
    cfg.device = "eval";
    CHECK_EQ(dc_open(&cfg, &b.rt), DC_OK);
    const long before = mem.blocks;
    cfg.alloc = give;
    cfg.alloc_ctx = &host;
    host.first = 0;
    CHECK_EQ(dc_open(&cfg, &a.rt), DC_OK);
    CHECK_EQ(mem.blocks, before + 1);
    host.first = 1;
    CHECK_EQ(dc_protect(&a.rt->job, make, &a), DC_E_NOMEM);
    const size_t bytes = host.bytes;
    CHECK_EQ(dc_protect(&b.rt->job, make, &b), DC_OK);
    CHECK_EQ(dc_protect(&b.rt->job, call, &b), DC_OK);
    CHECK_EQ(host.bytes, bytes);
    let_go(&a);
    let_go(&b);
    dc_close(a.rt);
    CHECK_EQ(host.bytes, 0);
    dc_close(b.rt);
    CHECK_EQ(mem.blocks, 0);
}

int main(int argc, char **argv)
{
    nomem_begin(argc, argv);
    test_device("eval");
    test_device("sim:cpu");
    test_device("cpu");
    test_apart();
    return t_done();
}
