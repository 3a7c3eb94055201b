/*
 * Loops in chunks, where the contractions of all iterations at once (jit/rewrite/loop_project.c) would make a stack that no
 * cache holds: an outer loop over chunks computes the stack of one, an inner loop reads it. What would go to memory and
 * back stays in L2, and takes no more room than a chunk. Strip-mining, of loops whose first part is distributed.
 */
#include "core/autodiff/chunks.h"
#include "core/autodiff/custom.h"
#include "jit/rewrite/loops_impl.h"

typedef struct splitting {
    dc_job *j;
    const dc_func *f;
    dc_func *to;
    int64_t *length; /* by ref: of the chunks of a loop; 0: it has none */
    dc_ref *map;
    dc_ref **many; /* by ref: the results of a loop in chunks */
} splitting;

static int64_t length_of(const splitting *s, dc_ref r, const dc_loop_sizes *sizes)
{
    const dc_node *n = dc_node_at(s->f, r);
    const dc_loop l = dc_loop_of(n);
    dc_loopedit e;
    dc_loop_open(s->j, (dc_func *)(uintptr_t)s->f, n, dc_body_at(s->f->module, l.body), n->in, &e);
    const int64_t length = dc_loop_chunk(&e, sizes);
    dc_loop_close(&e);
    return length > 1 ? length : 0;
}

static void split(const splitting *s, dc_ref r, const dc_ref *in)
{
    const dc_loop l = dc_loop_of(dc_node_at(s->f, r));
    const dc_type nothing = dc_node_type(s->f, r);
    s->many[r] = DC_NEW_ARRAY(&s->j->scratch, dc_ref, (uint32_t)(l.ncarry + l.ny));
    dc_loop_from(s->to, s->f, r);
    dc_chunks_split(s->to, &l, in, s->length[r], s->many[r]);
    s->to->where = s->to->path = NULL;
    s->map[r] = dc_graph_const(s->to, &nothing, 0); /* its own value is nothing */
}

static void copy(const splitting *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    dc_ref in[DC_MAX_OPERANDS];
    for (int i = 0; i < n->nin; i++)
        in[i] = s->map[n->in[i]];
    if (s->length[r] > 0) {
        split(s, r, in);
    } else if (n->op == DC_OP_PICK && s->many[n->in[0]] != NULL) {
        s->map[r] = s->many[n->in[0]][n->attr[0]];
        dc_func_copy_origin(s->to, s->map[r], s->f, r);
    } else {
        s->map[r] = dc_graph_again(s->to, s->f, r, in);
    }
}

dc_func *dc_loop_split(dc_job *j, const dc_func *f, const dc_loop_sizes *sizes)
{
    dc_arena *a = &j->scratch;
    const bool *live = dc_func_live(f, a);
    splitting s = {.j = j, .f = f, .length = DC_NEW_ARRAY(a, int64_t, f->node.n)};
    bool any = false;
    for (dc_ref r = 1; sizes->stack_bytes > 0 && r < f->node.n; r++) {
        if (live[r] && dc_node_at(f, r)->op == DC_OP_LOOP)
            s.length[r] = length_of(&s, r, sizes);
        any = any || s.length[r] > 0;
    }
    if (!any)
        return NULL;
    s.to = dc_func_new(f->module, f->name);
    s.map = DC_NEW_ARRAY(a, dc_ref, f->node.n);
    s.many = DC_NEW_ARRAY(a, dc_ref *, f->node.n);
    dc_graph_params(s.to, f, s.map);
    for (dc_ref r = 1; r < f->node.n; r++)
        if (live[r] && s.map[r] == 0)
            copy(&s, r);
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(s.to->result, s.map[f->result.at[i]]);
    return s.to;
}
