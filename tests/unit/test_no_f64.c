/* A device that does not compute in f64 refuses functions that do, with a record; others run. */
#include "backends/registry.h"
#include "core/ir/gtext.h"
#include "jit/jit.h"

#include <string.h>

#include "tests/t.h"

static dc_target without;

static const dc_target *target_without(const dc_device *d)
{
    DC_UNUSED(d);
    return &without;
}

static dc_status build(dc_rt *rt, const char *text)
{
    dc_job *j = &rt->job;
    dc_module *m = NULL;
    dc_exec *e = NULL;
    j->err = (dc_err){0};
    if (!CHECK(dc_module_parse(j, text, &m) == DC_OK))
        return DC_E_BUG;
    const dc_func *f = m->func.at[0];
    const dc_exec_desc d = {.fn = f, .name = "f", .nfree = f->param.n, .nresult = f->result.n};
    const dc_status s = dc_exec_build(rt, j, &d, &e);
    if (s == DC_OK)
        dc_exec_release(e);
    dc_module_free(m);
    return s;
}

static dc_status body(dc_job *j, void *rt)
{
    char text[300];
    CHECK_EQ(build(rt, "func f(%1: f32[4]) {\n  %2 = neg %1 : f32[4]\n  return %2\n}\n"), DC_OK);
    CHECK_EQ(build(rt, "func f(%1: f32[4]) {\n  %2 = cast %1 : f64[4]\n  %3 = exp %2 : f64[4]\n"
                       "  %4 = cast %3 : f32[4]\n  return %4\n}\n"),
             DC_E_TYPE);
    CHECK_EQ(j->err.id, DC_ERR_DTYPE);
    dc_err_render(&j->err, 1, text, sizeof text);
    CHECK_STR(text, "f: f64[4]: f32 (this device has no f64) is needed");
    return DC_OK;
}

int main(void)
{
    static dc_opts opts;
    static dc_log log;
    dc_device *dev;
    bool interpret;
    const char *bad;
    dc_opts_init(&opts, &bad);
    dc_rt *rt = dc_rt_new(&opts, &log);
    if (CHECK(dc_backend_open(&rt->job, "cpu", &dev, &interpret) == DC_OK)) {
        static dc_device_ops ops;
        ops = *dev->ops;
        without = *ops.target(dev);
        without.no_f64 = true;
        snprintf(without.name, sizeof without.name, "without");
        ops.target = target_without;
        dev->ops = &ops;
        dc_rt_set_device(rt, dev, interpret);
        CHECK(dc_protect(&rt->job, body, rt) == DC_OK);
    }
    dc_rt_free(rt);
    return t_done();
}
