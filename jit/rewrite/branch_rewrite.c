/*
 * Branches: what a constant flag chooses is written out; results that are the same on both sides pass by; results that
 * nothing reads and operands that no side reads are dropped, equal operands are one.
 */
#include "jit/rewrite/loops_impl.h"

typedef struct branching {
    dc_job *j;
    dc_func *f;
    const dc_func *const *body;
    const dc_ref *in; /* in[0] is the flag */
    int nin, nresult;
    bool *stays; /* by result */
    int *place;  /* by operand: its number in the new branch; -1: none */
} branching;

/* Which operand a result of a side is; 0: none. */
static dc_ref passed(const branching *w, int side, int i)
{
    const dc_func *b = w->body[side];
    const dc_node *n = dc_node_at(b, b->result.at[i]);
    return n->op == DC_OP_PARAM ? w->in[1 + n->attr[0]] : 0;
}

/* Result i without a branch; 0: it is chosen. */
static dc_ref without_branch(const branching *w, int i)
{
    const dc_ref yes = passed(w, 0, i), no = passed(w, 1, i);
    if (yes != 0 || no != 0)
        return yes == no ? yes : 0;
    const dc_func *const *b = w->body;
    const dc_ref r[2] = {b[0]->result.at[i], b[1]->result.at[i]};
    const dc_node *x = dc_node_at(b[0], r[0]), *y = dc_node_at(b[1], r[1]);
    if (x->op != DC_OP_CONST || y->op != DC_OP_CONST || x->attr[0] != y->attr[0])
        return 0;
    return dc_loop_copy_trivial(w->f, b[0], r[0]);
}

/* A side with the results that stay. */
static dc_func *side_of(const branching *w, int side)
{
    dc_func *f = dc_func_clone(w->f->module, w->body[side], NULL);
    uint32_t to = 0;
    for (int i = 0; i < w->nresult; i++)
        if (w->stays[i])
            f->result.at[to++] = f->result.at[i];
    f->result.n = to;
    return f;
}

static int place_operands(branching *w, dc_func *const *side, dc_ref *in)
{
    int n = 1;
    const bool *live[2] = {dc_func_live(side[0], &w->j->scratch),
                           dc_func_live(side[1], &w->j->scratch)};
    in[0] = w->in[0];
    for (int i = 1; i < w->nin; i++) {
        w->place[i] = -1;
        if (!live[0][side[0]->param.at[i - 1]] && !live[1][side[1]->param.at[i - 1]])
            continue;
        for (int k = 1; k < n; k++)
            if (in[k] == w->in[i])
                w->place[i] = k;
        if (w->place[i] < 0) {
            w->place[i] = n;
            in[n++] = w->in[i];
        }
    }
    return n;
}

/* The side as a body on the new operands. */
static uint32_t add_side(const branching *w, const dc_func *side, const dc_ref *in, int nin)
{
    dc_func *g = dc_func_new(w->f->module, side->name);
    dc_ref *param = DC_NEW_ARRAY(&w->j->scratch, dc_ref, side->param.n);
    dc_ref *result = DC_NEW_ARRAY(&w->j->scratch, dc_ref, side->result.n);
    for (int i = 1, next = 1; i < w->nin; i++)
        if (w->place[i] == next && next < nin) {
            const dc_type t = dc_node_type(w->f, in[next++]);
            dc_graph_param(g, &t, side->label.at[i - 1]);
        }
    for (int i = 1; i < w->nin; i++)
        param[i - 1] = w->place[i] < 0 ? 0 : g->param.at[w->place[i] - 1];
    dc_graph_inline(g, side, param, result);
    for (uint32_t i = 0; i < side->result.n; i++)
        DC_PUSH(g->result, result[i]);
    const uint32_t made = dc_body_add(w->f->module, g);
    dc_func_drop(g);
    return made;
}

static void choose(branching *w, dc_ref *out)
{
    dc_arena *a = &w->j->scratch;
    dc_func *side[2] = {side_of(w, 0), side_of(w, 1)};
    const uint32_t n = side[0]->result.n;
    dc_ref *in = DC_NEW_ARRAY(a, dc_ref, w->nin), *made = DC_NEW_ARRAY(a, dc_ref, n);
    const int nin = place_operands(w, side, in);
    const uint32_t yes = add_side(w, side[0], in, nin), no = add_side(w, side[1], in, nin);
    if (yes == no) {
        dc_graph_inline(w->f, dc_body_at(w->f->module, yes), in + 1, made);
    } else {
        const dc_ref branch = dc_graph_branch(w->f, yes, no, in, nin);
        for (uint32_t i = 0; i < n; i++)
            made[i] = dc_graph_pick(w->f, branch, (int)i);
    }
    for (int i = 0, next = 0; i < w->nresult; i++)
        if (w->stays[i])
            out[i] = made[next++];
    dc_func_drop(side[0]);
    dc_func_drop(side[1]);
}

void dc_branch_rewrite(dc_job *j, dc_func *f, const dc_node *n, const dc_func *const *body,
                       const dc_ref *in, const bool *used, dc_ref *out)
{
    branching w = {.j = j,
                   .f = f,
                   .body = body,
                   .in = in,
                   .nin = n->nin,
                   .nresult = (int)body[0]->result.n,
                   .stays = DC_NEW_ARRAY(&j->scratch, bool, body[0]->result.n),
                   .place = DC_NEW_ARRAY(&j->scratch, int, n->nin)};
    const dc_node flag = *dc_node_at(f, in[0]);
    bool any = false;
    if (flag.op == DC_OP_CONST) {
        dc_graph_inline(f, body[flag.attr[0] != 0 ? 0 : 1], in + 1, out);
        return;
    }
    for (int i = 0; i < w.nresult; i++) {
        out[i] = used[i] ? without_branch(&w, i) : 0;
        w.stays[i] = used[i] && out[i] == 0;
        any = any || w.stays[i];
    }
    if (any)
        choose(&w, out);
}
