/* Commands to a recording: what their launches need, found once. */
#include "backends/cuda/cu_impl.h"
#include "core/host/host_step.h"
#include "core/runtime/walk.h"

#include <limits.h>
#include <string.h>

static void free_recording(void *what)
{
    dc_recording *r = what;
    if (r->exec != NULL || r->mem != 0)
        dc_cu_graph_free(r);
    for (uint32_t i = 0; i < r->nstep; i++)
        dc_xfree(r->step[i].host);
    dc_walk_free(r->walk);
    dc_arena_free(&r->own);
    dc_xfree(r);
}

/* Runs of it may be under way. */
void dc_cu_recording_free(dc_device *d, dc_recording *r)
{
    dc_cu *cu = dc_cu_of(d);
    bool pushed;
    if (r == NULL)
        return;
    if (dc_cu_push(cu, &pushed) != CU_SUCCESS) {
        r->exec = NULL; /* gone with the context */
        r->mem = 0;
        free_recording(r);
        return;
    }
    if (r->exec != NULL && cu->busy && cu->lost == NULL) {
        dc_cu_nccl_quit(cu);
        cu->lib.fn.StreamSynchronize(cu->stream);
    }
    free_recording(r);
    dc_cu_pop(cu, pushed);
}

/* --- launches ----------------------------------------------------------------------------------- */

static dc_status find_kernel(dc_recording *r, dc_job *j, const dc_command *x, dc_cu_step *s)
{
    dc_cu *cu = r->cu;
    const dc_program *p = x->program;
    DC_ASSERT(x->entry < p->nentry, "launch of kernel %u of %u", x->entry, p->nentry);
    const char *name = p->entry[x->entry];
    cu_result error;
    DC_CU_CALL(cu, error, ModuleGetFunction(&s->fn, p->module, name)); /* may load the program */
    if (error == CU_ERROR_NOT_FOUND)
        return dc_failf(j, DC_ERR_BUILD, "cuda", "a program has no kernel '%.60s'", name);
    if (error != CU_SUCCESS)
        return dc_cu_failed(cu, j, "a kernel", error);
    if (x->grid > INT_MAX)
        return dc_failf(j, DC_ERR_BUILD, "cuda",
                        "kernel '%.60s' has %lld groups, a launch has %d at most", name,
                        (long long)x->grid, INT_MAX);
    if (x->shared == 0)
        return DC_OK;
    if (cu->lib.fn.FuncSetAttribute(s->fn, CU_FUNCTION_DYNAMIC_SHARED, (int)x->shared) !=
        CU_SUCCESS)
        return dc_failf(
            j, DC_ERR_BUILD, "cuda",
            "kernel '%.60s' needs %zu bytes of shared memory, more than the device gives a group",
            name, x->shared);
    return DC_OK;
}

static void copy_step(dc_recording *r, const dc_command *x, dc_cu_step *s)
{
    uint32_t *dep = DC_NEW_ARRAY(&r->own, uint32_t, x->ndep);
    if (x->ndep > 0)
        memcpy(dep, x->dep, x->ndep * sizeof *dep);
    *s = (dc_cu_step){.kind = x->kind,
                      .sets = x->sets,
                      .grid = (unsigned)x->grid,
                      .threads = x->threads,
                      .shared = (unsigned)x->shared,
                      .bytes = x->bytes,
                      .nbind = x->nbind,
                      .ndep = x->ndep,
                      .dep = dep,
                      .label = dc_arena_strdup(&r->own, x->label != NULL ? x->label : "a command")};
}

static dc_status record_steps(dc_recording *r, dc_job *j, const dc_command *x, uint32_t n)
{
    r->walk = dc_walk_new(x, n);
    r->nbind = dc_walk_bind_count(r->walk);
    r->step = DC_NEW_ARRAY(&r->own, dc_cu_step, n);
    r->nstep = n; /* free_recording visits as many, also where the line above had no memory */
    r->straight = true;
    for (uint32_t i = 0, first = 0; i < n; i++) {
        dc_cu_step *s = &r->step[i];
        copy_step(r, &x[i], s);
        s->first = first;
        first += s->nbind;
        r->straight = r->straight && x[i].nbody == 0 && x[i].kind != DC_COMMAND_BRANCH &&
                      x[i].kind != DC_COMMAND_LOOP && x[i].kind != DC_COMMAND_HOST;
        if (x[i].kind == DC_COMMAND_HOST)
            DC_TRY(dc_host_step_new(j, x[i].host, x[i].nhost, x[i].label, true, &s->host));
        r->checks += x[i].kind == DC_COMMAND_CHECK;
        for (uint32_t b = 0; b < s->nbind; b++)
            if (x[i].bind[b].slot >= r->nslot)
                r->nslot = x[i].bind[b].slot + 1;
        if (x[i].kind == DC_COMMAND_LAUNCH)
            DC_TRY(find_kernel(r, j, &x[i], s));
    }
    r->place = DC_NEW_ARRAY(&r->own, dc_cu_slot_place, r->nslot);
    r->at = DC_NEW_ARRAY(&r->own, void *, r->nslot);
    r->moves = DC_NEW_ARRAY(&r->own, bool, r->nslot);
    r->word_of = DC_NEW_ARRAY(&r->own, uint32_t, r->nbind);
    r->word = DC_NEW_ARRAY(&r->own, dc_cu_word, r->nbind + 1);
    return DC_OK;
}

dc_status dc_cu_record(dc_device *d, dc_job *j, const dc_command *command, uint32_t n,
                       dc_recording **out)
{
    dc_cu *cu = dc_cu_of(d);
    bool pushed;
    dc_recording *r = dc_xalloc(sizeof *r);
    r->cu = cu;
    dc_job_defer(j, free_recording, r);
    dc_status status = dc_cu_enter(cu, j, &pushed);
    if (status == DC_OK) {
        status = record_steps(r, j, command, n);
        dc_cu_leave(cu, j, pushed);
    }
    DC_TRY(dc_job_settle(j, r, status));
    *out = r;
    return DC_OK;
}
