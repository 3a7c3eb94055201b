/*
 * Programs of lazy expressions (core/runtime/lazy.h): a function without cells, compiled and bound once, and
 * called with the leaves as arguments. Its results belong to the tensors that hold them, so a call never has
 * to move those of the call before.
 */
#include "core/runtime/lazy.h"
#include "jit/compile/compile_job.h"
#include "jit/exec/exec.h"

typedef struct program {
    dc_rt *rt;
    dc_exec *exec;
    dc_inst *inst;
} program;

static void free_program(void *what)
{
    program *p = what;
    dc_inst_free(p->inst);
    dc_exec_release(p->exec);
    dc_xfree(p);
}

static dc_status build(dc_rt *rt, dc_job *j, const dc_func *f, const bool *anywhere, uint32_t nsize,
                       void **out)
{
    const dc_exec_desc desc = {.fn = f,
                               .name = "lazy",
                               .nfree = f->param.n,
                               .nresult = f->result.n,
                               .anywhere = anywhere,
                               .nsize = nsize,
                               .once = true};
    program *p = dc_xalloc(sizeof *p);
    p->rt = rt;
    dc_job_defer(j, free_program, p);
    dc_status status = dc_exec_build(rt, j, &desc, &p->exec);
    if (status == DC_OK)
        status = dc_inst_new(rt, j, p->exec, NULL, &p->inst);
    if (status == DC_OK)
        p->inst->unchecked = true; /* core/runtime/realize_program.c does it */
    dc_job_keep(j, p);
    if (status != DC_OK) {
        free_program(p);
        return status;
    }
    *out = p;
    return DC_OK;
}

static void free_inst(void *i)
{
    dc_inst_free(i);
}

static dc_status call(dc_inst *i, dc_job *j, const dc_arg *arg, dc_tensor **out)
{
    dc_fault none;
    DC_TRY(dc_inst_call(i, j, arg, out, &none));
    dc_inst_detach(i);
    return DC_OK;
}

/* Where a call of it is running, of an instance for this time. */
static dc_status run(void *what, dc_job *j, const dc_lazy_arg *arg, dc_tensor **out)
{
    program *p = what;
    const uint32_t n = p->exec->desc.nfree;
    dc_arg *given = DC_NEW_ARRAY(&j->scratch, dc_arg, n);
    for (uint32_t i = 0; i < n; i++)
        given[i] = (dc_arg){arg[i].tensor, arg[i].bits};
    if (p->inst->state == DC_INST_FREE)
        return call(p->inst, j, given, out);
    dc_inst *other;
    DC_TRY(dc_inst_new(p->rt, j, p->exec, NULL, &other));
    other->unchecked = true;
    dc_job_defer(j, free_inst, other);
    const dc_status status = call(other, j, given, out);
    dc_job_keep(j, other);
    dc_inst_free(other);
    return status;
}

dc_status dc_jit_open(dc_rt *rt, dc_job *j)
{
    static const dc_lazy_exec table = {build, run, free_program};
    DC_TRY(dc_compile_open(rt, j));
    rt->lazy_exec = &table;
    return DC_OK;
}
