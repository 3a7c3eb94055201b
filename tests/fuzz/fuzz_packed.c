/* An executable as it lies in the cache, for a function with a parameter, a scalar and a cell. */
#include "core/ir/gtext.h"
#include "core/runtime/rt.h"
#include "jit/exec/exec.h"
#include "jit/exec/exec_pack.h"
#include "jit/jit.h"
#include "vm/deepc.h"

#include "tests/fuzz/fuzz.h"

static const char function[] = "func f(%1: f32[8] \"x\", %2: f32[] \"lr\", %3: f32[8] \"w\") {\n"
                               "  %4 = mul %1, %3 : f32[8]\n"
                               "  %5 = sum %4 {1} : f32[]\n"
                               "  return %5, %4\n"
                               "}\n";

static dc_exec *made;

static dc_status make(dc_job *j, void *rt)
{
    static const uint32_t set[] = {0};
    dc_module *m;
    DC_TRY(dc_module_parse(j, function, &m));
    dc_module_defer(j, m);
    const dc_exec_desc d = {.fn = m->func.at[0],
                            .name = "f",
                            .nfree = 2,
                            .ncell = 1,
                            .nresult = 1,
                            .nset = 1,
                            .set = set};
    DC_TRY(dc_exec_build(rt, j, &d, &made));
    dc_job_keep(j, m);
    dc_module_free(m);
    return DC_OK;
}

static void make_once(void)
{
    static dc_rt *rt;
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = "sim:cpu";
    cfg.threads = 1;
    cfg.cache = "off";
    if (made == NULL && (dc_open(&cfg, &rt) != DC_OK || dc_protect(&rt->job, make, rt) != DC_OK))
        fuzz_finding("the function is not compiled: %s", dc_errmsg(rt));
}

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    dc_exec e = *made;
    dc_packed_kernel *kernel;
    DC_UNUSED(j);
    e.mem = (dc_arena){0};
    dc_exec_unpack(&e, in->at, in->n, &kernel);
    dc_arena_free(&e.mem);
    return DC_OK;
}

void fuzz_one(const fuzz_input *in)
{
    make_once();
    fuzz_protect(body, (void *)in);
}
