/* Out of memory in lazy expressions; tests/unit/nomem.h tells how. */
#define _GNU_SOURCE
#include "core/runtime/lazy.h"

#include "tests/unit/nomem.h"

static struct {
    dc_cell *cell;
    dc_lazy *x, *y, *loss, *grad;
    int64_t n;
} lazy;

static dc_status do_leaf(dc_job *j, void *ctx)
{
    dc_tensor *t;
    (void)ctx;
    const dc_type type = dc_type_make(DC_F32, 1, &lazy.n);
    DC_TRY(dc_cell_new(rt, j, &type, "p", true, &lazy.cell));
    DC_TRY(dc_tensor_new(rt, j, &type, &t));
    float *at = dc_tensor_mem(t);
    for (int64_t i = 0; i < lazy.n; i++)
        at[i] = (float)i;
    lazy.x = dc_lazy_leaf(rt, t);
    dc_tensor_release(t);
    return DC_OK;
}

/* sum((x * p + x) * 3) */
static dc_status do_build(dc_job *j, void *ctx)
{
    dc_lazy *p, *made[2];
    dc_val v, s;
    (void)ctx;
    DC_TRY(dc_lazy_read(rt, j, lazy.cell, &p));
    dc_job_defer(j, (void (*)(void *))dc_lazy_release, p);
    dc_func *f = dc_lazy_begin(rt, j);
    const dc_val x = dc_lazy_operand(rt, lazy.x);
    DC_TRY(dc_build_ew(j, f, DC_OP_MUL, (dc_val[]){x, dc_lazy_operand(rt, p)}, 2, &v));
    DC_TRY(dc_build_ew(j, f, DC_OP_ADD, (dc_val[]){v, x}, 2, &v));
    DC_TRY(dc_build_reduce(j, f, DC_OP_SUM, v, 1, false, &s));
    dc_lazy_end(rt, j, (dc_val[]){v, s}, 2, "a.lua:1", "net.1", made);
    lazy.y = made[0];
    lazy.loss = made[1];
    return DC_OK;
}

static void make_leaf(void)
{
    must(dc_protect(job, do_leaf, NULL) == DC_OK, "a leaf");
}

static void make_loss(void)
{
    make_leaf();
    must(dc_protect(job, do_build, NULL) == DC_OK, "a loss");
}

static void release_nodes(void)
{
    dc_lazy **const held[] = {&lazy.x, &lazy.y, &lazy.loss, &lazy.grad};
    for (size_t i = 0; i < DC_COUNTOF(held); i++) {
        dc_lazy_release(*held[i]);
        *held[i] = NULL;
    }
    dc_cell_release(lazy.cell);
    lazy.cell = NULL;
    CHECK_EQ(rt->stats.lazy_nodes, 0);
}

static void release_all(void)
{
    release_nodes();
    dc_lazy_close(rt);
}

static void refuse_build(void)
{
    CHECK(lazy.y == NULL && lazy.loss == NULL);
    CHECK(rt->lazy == NULL || (!rt->lazy->open && rt->lazy->fresh.n == 0));
}

static void after_build(bool done)
{
    CHECK((lazy.loss != NULL) == done);
    release_all();
}

static dc_status do_realize(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_lazy_realize(rt, j, lazy.loss);
}

static void refuse_realize(void)
{
    CHECK(lazy.loss->value == NULL && lazy.y->value == NULL);
}

static void after_realize(bool done)
{
    CHECK((lazy.loss->value != NULL) == done);
    if (done)
        same(dc_tensor_mem(lazy.loss->value), sizeof(float));
    release_all();
}

/* The third size of a form, for which a program for any size is made. */
static void make_sized(void)
{
    const int64_t n = lazy.n;
    for (lazy.n = n - 2; lazy.n < n; lazy.n++) {
        make_loss();
        must(dc_protect(job, do_realize, NULL) == DC_OK, "another size");
        release_nodes();
    }
    make_loss();
}

static void after_sized(bool done)
{
    if (done)
        CHECK(rt->stats.lazy_general > 0);
    after_realize(done);
}

static dc_status do_grad(dc_job *j, void *ctx)
{
    dc_lazy_wrt wrt = {.cell = lazy.cell, .name = "p", .type = lazy.cell->type};
    (void)ctx;
    return dc_lazy_grad(rt, j, lazy.loss, &wrt, 1, false, "a.lua:2", NULL, &lazy.grad,
                        &(dc_lazy *){NULL});
}

static void refuse_grad(void)
{
    CHECK(lazy.grad == NULL);
}

static void after_grad(bool done)
{
    CHECK((lazy.grad != NULL) == done);
    if (done && CHECK_EQ(dc_lazy_realize(rt, job, lazy.grad), DC_OK))
        same(dc_tensor_mem(lazy.grad->value), sizeof(float) * (size_t)lazy.n);
    release_all();
}

static void run_trials(const char *device, int64_t n, int most)
{
    dc_opts opt;
    const char *bad;
    dc_opts_init(&opt, &bad);
    open_world(device, &opt, "");
    must(dc_jit_open(rt, job) == DC_OK, "jit");
    lazy.n = n;
    const trial trials[] = {
        {"an operation", make_leaf, do_build, refuse_build, after_build, most, false, false, false},
        /* what a program has computed stays where only the last step failed */
        {"its value", make_loss, do_realize, refuse_realize, after_realize, most, false, true,
         false},
        {"its gradient", make_loss, do_grad, refuse_grad, after_grad, most, false, false, false}};
    for (size_t i = 0; i < DC_COUNTOF(trials); i++)
        try(&trials[i]);
    close_world();
}

static void run_sizes(int64_t n, int most)
{
    dc_opts opt;
    const char *bad;
    dc_opts_init(&opt, &bad);
    snprintf(opt.lazy, sizeof opt.lazy, "sizes");
    open_world("sim:cpu", &opt, "");
    must(dc_jit_open(rt, job) == DC_OK, "jit");
    lazy.n = n;
    /* where there is no memory for that program the interpreter computes it */
    const trial sized = {"a value of any size",
                         make_sized,
                         do_realize,
                         refuse_realize,
                         after_sized,
                         most,
                         false,
                         true,
                         false};
    try(&sized);
    close_world();
}

int main(int argc, char **argv)
{
    nomem_begin(argc, argv);
    run_trials("eval", 8, 400);
    run_trials("sim:cpu", 8000, 60); /* compiled */
    run_sizes(10, 200);
    return t_done();
}
