/* Out of memory (tests/unit/nomem.h tells how) in steps that devices give to the host. */
#include "core/host/host_step.h"

#include "tests/unit/nomem.h"

/* sort of f32[2, 2], as dc_host_call_pack writes it */
static const int64_t numbers[] = {DC_OP_SORT, 1, 0, 1, DC_F32, 2, 2, 2};
static bool staged;
static dc_host_step *step;

static void before(void)
{
    step = NULL;
}

static dc_status do_step(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_host_step_new(j, numbers, DC_COUNTOF(numbers), NULL, staged, &step);
}

static void after(bool done)
{
    static const float rows[4] = {3, 1, 2, 1};
    float sorted[4];
    CHECK_EQ(step != NULL, done);
    if (step == NULL)
        return;
    void *const place[2] = {sorted, (void *)(uintptr_t)rows};
    if (staged) {
        memcpy(step->place[1], rows, sizeof rows);
        CHECK_EQ(dc_host_step_run(step, NULL, NULL, step->place, step->work, 0, step->rows), DC_OK);
        memcpy(sorted, step->place[0], sizeof sorted);
    } else {
        void *const work = dc_xalloc(step->scratch + 64);
        CHECK_EQ(dc_host_step_run(step, NULL, NULL, place, work, 0, step->rows), DC_OK);
        dc_xfree(work);
    }
    CHECK(sorted[0] == 1 && sorted[1] == 3 && sorted[2] == 1 && sorted[3] == 2);
    dc_xfree(step);
}

int main(int argc, char **argv)
{
    dc_opts opt;
    const char *bad;
    nomem_begin(argc, argv);
    dc_opts_init(&opt, &bad);
    open_world("eval", &opt, "");
    for (int i = 0; i < 2; i++) {
        staged = i == 1;
        try(&(trial){
            .name = "a step", .before = before, .body = do_step, .after = after, .most = 60});
    }
    close_world();
    return t_done();
}
