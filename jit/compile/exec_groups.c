/*
 * The groups of a function, made again for pictures of it: an executable keeps its graph as it was traced, and kernels
 * without their nodes.
 */
#include "jit/compile/compile_job.h"
#include "jit/compile/pipeline_impl.h"

typedef struct seeing {
    dc_job *j;
    dc_exec_groups_see *see;
    void *ctx;
} seeing;

/* Nodes of group g: from its outputs down to what it reads. */
static uint32_t collect(const dc_part *p, uint32_t g, dc_arena *a, uint32_t *seen, dc_ref *out)
{
    const dc_group *x = &p->groups.at[g];
    DC_VEC(dc_ref) todo = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->nout; i++)
        DC_PUSH_IN(a, todo, x->out[i]);
    while (todo.n > 0) {
        const dc_ref r = todo.at[--todo.n];
        const dc_node *node = dc_node_at(p->fn, r);
        const uint32_t home = p->groups.group_of[r];
        if (seen[r] == g + 1 || node->op == DC_OP_PARAM || (home != DC_NO_GROUP && home != g))
            continue;
        seen[r] = g + 1;
        out[n++] = r;
        for (int i = 0; i < node->nin; i++)
            DC_PUSH_IN(a, todo, node->in[i]);
    }
    return n;
}

static void see_part(void *ctx, const dc_part *p)
{
    const seeing *a = ctx;
    dc_arena *arena = &a->j->scratch;
    DC_VEC(uint32_t) group = {0};
    DC_VEC(dc_ref) ref = {0};
    uint32_t *seen = DC_NEW_ARRAY(arena, uint32_t, p->fn->node.n);
    dc_ref *here = DC_NEW_ARRAY(arena, dc_ref, p->fn->node.n);
    for (uint32_t g = 0; g < p->groups.n; g++) {
        const uint32_t n = collect(p, g, arena, seen, here);
        for (uint32_t i = 0; i < n; i++) {
            DC_PUSH_IN(arena, group, g);
            DC_PUSH_IN(arena, ref, here[i]);
        }
    }
    const dc_exec_groups out = {p->fn, p->is_prologue, p->groups.n, group.n, group.at, ref.at};
    a->see(a->ctx, &out);
}

dc_status dc_exec_groups_of(dc_exec *e, dc_job *j, dc_exec_groups_see *see, void *ctx)
{
    dc_env env;
    seeing a = {j, see, ctx};
    DC_TRY(dc_compile_open(e->rt, j));
    DC_TRY(dc_compile_env(e->rt, j, &env));
    dc_exec *again = dc_exec_new(e->rt);
    dc_job_defer(j, dc_exec_free, again);
    dc_status status = dc_exec_describe(again, j, &e->desc);
    if (status == DC_OK)
        status = dc_pipeline_groups(&env, j, again, see_part, &a);
    dc_job_keep(j, again);
    dc_exec_free(again);
    return status;
}
