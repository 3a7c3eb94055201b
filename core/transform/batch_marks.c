/*
 * Which nodes have the new axis: those that depend on a batched value. What a loop or branch passes from operands to
 * results is found in its bodies, of a loop again until the carries do not change.
 *
 * A gradient given by hand is the one thing that reaches down: if the value or an input has rows, the cotangent has,
 * too, and so have its holes, which come before. They are marked afterwards, and the walk is repeated.
 */
#include "core/transform/batch_impl.h"

static bool any(const bool *flag, int n)
{
    for (int i = 0; i < n; i++)
        if (flag[i])
            return true;
    return false;
}

void dc_batch_results(dc_job *j, const dc_func *from, const bool *batched, bool *result_batched)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const dc_batch_marks is = dc_batch_mark(j, from, batched);
    for (uint32_t i = 0; i < from->result.n; i++)
        result_batched[i] = is.node[from->result.at[i]];
    dc_arena_rewind(&j->scratch, mark);
}

bool dc_batch_mark_loop(dc_job *j, const dc_func *f, const dc_node *n, const bool *operand,
                        bool *param, bool *result)
{
    const dc_loop l = dc_loop_of(n);
    const dc_func *body = dc_body_at(f->module, l.body);
    bool *carry = param + 1 + l.nconst, masked = false, changed = true;
    param[0] = false;
    for (int i = 0; i < l.nconst + l.ncarry + l.nx; i++)
        param[1 + i] = operand[dc_loop_const(&l) + i];
    while (changed) {
        dc_batch_results(j, body, param, result);
        masked = ((l.flags & DC_LOOP_LIMIT) != 0 && operand[0]) ||
                 ((l.flags & DC_LOOP_TEST) != 0 && (carry[0] || result[0]));
        changed = false;
        for (int i = 0; i < l.ncarry; i++) {
            const bool has = carry[i] || result[i] || masked;
            changed = changed || has != carry[i];
            carry[i] = has;
        }
    }
    for (int i = 0; i < l.ncarry; i++)
        result[i] = carry[i];
    for (int i = 0; i < l.ny; i++)
        result[l.ncarry + i] =
            result[l.ncarry + i] || masked || (dc_loop_may_end(&l) && operand[dc_loop_y(&l) + i]);
    return masked;
}

static void mark_branch(dc_job *j, const dc_func *f, const dc_node *n, const bool *operand,
                        bool *result)
{
    const dc_func *const body[2] = {dc_body_at(f->module, n->attr[0]),
                                    dc_body_at(f->module, n->attr[1])};
    const uint32_t nresult = body[0]->result.n;
    bool *no = DC_NEW_ARRAY(&j->scratch, bool, nresult);
    dc_batch_results(j, body[0], operand + 1, result);
    dc_batch_results(j, body[1], operand + 1, no);
    for (uint32_t i = 0; i < nresult; i++)
        result[i] = result[i] || no[i] || operand[0];
}

static bool *mark_control(dc_job *j, const dc_func *f, const dc_node *n, const bool *is)
{
    const int nresult = dc_control_results(f, n);
    bool *result = DC_NEW_ARRAY(&j->scratch, bool, (uint32_t)nresult);
    bool *operand = DC_NEW_ARRAY(&j->scratch, bool, n->nin);
    for (int i = 0; i < n->nin; i++)
        operand[i] = is[n->in[i]];
    if (!any(operand, n->nin))
        return result;
    if (n->op == DC_OP_LOOP) {
        const dc_func *body = dc_body_at(f->module, n->attr[0]);
        dc_batch_mark_loop(j, f, n, operand, DC_NEW_ARRAY(&j->scratch, bool, body->param.n),
                           result);
    } else {
        mark_branch(j, f, n, operand, result);
    }
    return result;
}

static bool mark_node(dc_job *j, const dc_func *f, dc_ref r, const bool *batched,
                      const dc_batch_marks *is)
{
    const dc_node *n = dc_node_at(f, r);
    switch ((int)n->op) {
    case DC_OP_PARAM:
        return batched[n->attr[0]];
    case DC_OP_HOLE:
        return is->node[r];
    case DC_OP_BARRIER:
    case DC_OP_SET_SIZE:
        return is->node[n->in[0]];
    case DC_OP_LOOP:
    case DC_OP_BRANCH:
        is->many[r] = mark_control(j, f, n, is->node);
        return false;
    case DC_OP_PICK:
        return is->many[n->in[0]][n->attr[0]];
    }
    for (int i = 0; i < n->nin; i++)
        if (is->node[n->in[i]])
            return true;
    return false;
}

/* Marks the holes of gradients that have rows; false: they all were. */
static bool mark_holes(const dc_func *f, const bool *live, const dc_batch_marks *is)
{
    bool changed = false;
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *custom = dc_node_at(f, r);
        if (custom->op != DC_OP_CUSTOM || !live[r] || !is->node[r])
            continue;
        for (dc_ref h = 1; h < r; h++) {
            const dc_node *hole = dc_node_at(f, h);
            if (hole->op != DC_OP_HOLE || hole->attr[0] != custom->attr[1] || is->node[h])
                continue;
            is->node[h] = true;
            changed = changed || live[h];
        }
    }
    return changed;
}

dc_batch_marks dc_batch_mark(dc_job *j, const dc_func *f, const bool *batched)
{
    const bool *live = dc_func_live(f, &j->scratch);
    const dc_batch_marks is = {DC_NEW_ARRAY(&j->scratch, bool, f->node.n),
                               DC_NEW_ARRAY(&j->scratch, bool *, f->node.n)};
    do
        for (dc_ref r = 1; r < f->node.n; r++)
            if (live[r])
                is.node[r] = mark_node(j, f, r, batched, &is);
    while (mark_holes(f, live, &is));
    return is;
}
