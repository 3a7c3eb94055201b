/*
 * The walk over a function: loops are merged and split first; then each node is made again, loops and branches by their rewrites,
 * whose bodies have been through all of it themselves. So what moves out of an inner loop may go on out of the outer one.
 */
#include "core/autodiff/custom.h"
#include "jit/rewrite/loops_impl.h"

typedef struct walking {
    dc_job *j;
    const dc_func *from;
    dc_func *to;
    const bool *live;
    dc_ref *map;
    dc_ref **many; /* by loop or branch: its results */
    const dc_loop_sizes *sizes;
} walking;

static bool has_control(const dc_func *f)
{
    for (dc_ref r = 1; r < f->node.n; r++)
        if (dc_is_control(dc_node_at(f, r)))
            return true;
    return false;
}

static void rewrite_loop(walking *w, dc_ref r, const dc_func *body, const dc_ref *in, dc_ref *out)
{
    const dc_node *n = dc_node_at(w->from, r);
    dc_loopedit e;
    dc_loop_open(w->j, w->to, n, body, in, &e);
    dc_loop_mark_unused(&e, 0, dc_loop_used(w->j, w->from, w->live, r),
                        dc_control_results(w->from, n));
    dc_loop_settle(&e);
    dc_loop_unify(&e);
    dc_loop_sink(&e);
    dc_loop_settle(&e);
    if (!dc_loop_unroll(&e, out)) {
        dc_loop_hoist(&e);
        dc_loop_project(&e, w->sizes);
        dc_loop_settle(&e);
        dc_loop_unify(&e);
        dc_loop_delay(&e);
        dc_loop_lay_panels(&e, w->sizes);
        dc_loop_emit(&e, out);
    }
    dc_loop_close(&e);
}

static void rewrite_control(walking *w, dc_ref r)
{
    const dc_node *n = dc_node_at(w->from, r);
    const dc_func *body[2];
    const dc_func *given[2];
    dc_ref *in = DC_NEW_ARRAY(&w->j->scratch, dc_ref, n->nin);
    dc_loop_sizes inside = *w->sizes;
    if (n->op ==
        DC_OP_LOOP) /* what an inner loop needs for each of its iterations is needed as often */
        inside.panel_work /= dc_max_i64(dc_loop_of(n).n, 1);
    w->many[r] = DC_NEW_ARRAY(&w->j->scratch, dc_ref, dc_control_results(w->from, n));
    for (int i = 0; i < n->nin; i++)
        in[i] = w->map[n->in[i]];
    for (int i = 0; i < dc_node_bodies(n); i++) {
        given[i] = dc_body_at(w->from->module, n->attr[i]);
        body[i] = dc_loops(w->j, given[i], &inside);
    }
    if (n->op == DC_OP_LOOP)
        rewrite_loop(w, r, body[0], in, w->many[r]);
    else
        dc_branch_rewrite(w->j, w->to, n, body, in, dc_loop_used(w->j, w->from, w->live, r),
                          w->many[r]);
    for (int i = 0; i < dc_node_bodies(n); i++)
        if (body[i] != given[i])
            dc_func_drop((dc_func *)body[i]);
}

static void walk_node(walking *w, dc_ref r)
{
    const dc_node *n = dc_node_at(w->from, r);
    dc_ref in[DC_MAX_OPERANDS];
    if (dc_is_control(n)) { /* its own value is nothing */
        const dc_type nothing = dc_node_type(w->from, r);
        w->map[r] = dc_graph_const(w->to, &nothing, 0);
        dc_loop_from(w->to, w->from, r);
        rewrite_control(w, r);
        w->to->where = w->to->path = NULL;
        return;
    }
    if (n->op == DC_OP_PICK) {
        w->map[r] = w->many[n->in[0]][n->attr[0]];
        return;
    }
    for (int i = 0; i < n->nin; i++)
        in[i] = w->map[n->in[i]];
    w->map[r] = dc_graph_again(w->to, w->from, r, in);
}

static dc_func *walk(dc_job *j, const dc_func *f, const dc_loop_sizes *sizes)
{
    dc_arena *a = &j->scratch;
    walking w = {j,
                 f,
                 dc_func_new(f->module, f->name),
                 dc_func_live(f, a),
                 DC_NEW_ARRAY(a, dc_ref, f->node.n),
                 DC_NEW_ARRAY(a, dc_ref *, f->node.n),
                 sizes};
    dc_graph_params(w.to, f, w.map);
    for (dc_ref r = 1; r < f->node.n; r++)
        if (w.live[r] && w.map[r] == 0)
            walk_node(&w, r);
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(w.to->result, w.map[f->result.at[i]]);
    return w.to;
}

const dc_func *dc_loops(dc_job *j, const dc_func *f, const dc_loop_sizes *sizes)
{
    if (!has_control(f))
        return f;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_func *merged = dc_loop_merge(j, f);
    dc_func *split = dc_loop_split(j, merged != NULL ? merged : f, sizes);
    dc_func *made = walk(j, split != NULL ? split : merged != NULL ? merged : f, sizes);
    dc_func *out = dc_func_clone(f->module, made, NULL);
    dc_func_drop(made);
    if (split != NULL)
        dc_func_drop(split);
    if (merged != NULL)
        dc_func_drop(merged);
    dc_arena_rewind(&j->scratch, mark);
    return out;
}
