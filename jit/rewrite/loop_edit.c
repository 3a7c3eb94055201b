/*
 * A loop taken apart: slots say which node of the body each operand is the value of. Rewrites change slots, and
 * dc_loop_remake makes the body that belongs to them.
 */
#include "core/autodiff/custom.h"
#include "core/transform/batch.h"
#include "jit/rewrite/loops_impl.h"

#include <string.h>

/* ---- taking apart ---------------------------------------------------------------------------- */

void dc_loop_open(dc_job *j, dc_func *f, const dc_node *n, const dc_func *body, const dc_ref *in,
                  dc_loopedit *out)
{
    const dc_loop l = dc_loop_of(n);
    const dc_type i32 = dc_type_scalar(DC_I32);
    *out = (dc_loopedit){.j = j, .f = f, .n = l.n, .flags = l.flags};
    out->limit = l.flags & DC_LOOP_LIMIT ? in[0] : 0;
    out->body = dc_func_new(f->module, body->name);
    out->i = dc_graph_param(out->body, &i32, body->label.at[0]);
    dc_loop_add(out, n, body, in);
}

static dc_ref add_param(dc_func *to, const dc_func *from, int i)
{
    const dc_type t = dc_node_type(from, from->param.at[i]);
    return dc_graph_param(to, &t, from->label.at[i]);
}

static void add_results(dc_loopedit *w, const dc_loop *l, uint32_t carry)
{
    const uint32_t n = (uint32_t)(l->ncarry + l->ny);
    dc_loop_result *all = DC_NEW_ARRAY(&w->j->scratch, dc_loop_result, w->nresult + n);
    if (w->nresult > 0)
        memcpy(all, w->result, w->nresult * sizeof *all);
    for (uint32_t i = 0; i < n; i++)
        if (i < (uint32_t)l->ncarry)
            all[w->nresult + i] = (dc_loop_result){DC_LOOP_CARRIED, carry + i, 0};
        else
            all[w->nresult + i] = (dc_loop_result){
                DC_LOOP_STACKED, w->y.n - (uint32_t)l->ny + i - (uint32_t)l->ncarry, 0};
    w->result = all;
    w->nresult += n;
}

void dc_loop_add(dc_loopedit *w, const dc_node *n, const dc_func *body, const dc_ref *in)
{
    dc_arena *a = &w->j->scratch;
    const dc_loop l = dc_loop_of(n);
    dc_ref *param = DC_NEW_ARRAY(a, dc_ref, body->param.n);
    dc_ref *result = DC_NEW_ARRAY(a, dc_ref, body->result.n);
    const uint32_t carry = w->carry.n;
    param[0] = w->i;
    for (int i = 0; i < l.nconst + l.ncarry + l.nx; i++) {
        const dc_loop_slot s = {.in = in[dc_loop_const(&l) + i],
                                .param = add_param(w->body, body, 1 + i)};
        param[1 + i] = s.param;
        if (i < l.nconst)
            DC_PUSH_IN(a, w->constant, s);
        else if (i < l.nconst + l.ncarry)
            DC_PUSH_IN(a, w->carry, s);
        else
            DC_PUSH_IN(a, w->x, s);
    }
    dc_graph_inline(w->body, body, param, result);
    for (int i = 0; i < l.ncarry; i++)
        w->carry.at[carry + (uint32_t)i].next = result[i];
    for (int i = 0; i < l.ny; i++) {
        const dc_loop_stack y = {result[l.ncarry + i],
                                 dc_loop_may_end(&l) ? in[dc_loop_y(&l) + i] : 0, false};
        DC_PUSH_IN(a, w->y, y);
    }
    add_results(w, &l, carry);
}

void dc_loop_close(dc_loopedit *w)
{
    for (uint32_t i = 0; i < w->late.n; i++)
        dc_func_drop(w->late.at[i].fn);
    dc_func_drop(w->body);
}

/* ---- the body again -------------------------------------------------------------------------- */

/* Nodes that the nexts and ys are made of, down to what `stop` says; by node of the body. */
static bool *cone_of(const dc_loopedit *w, const bool *stop)
{
    const dc_func *b = w->body;
    bool *cone = DC_NEW_ARRAY(&w->j->scratch, bool, b->node.n);
    for (uint32_t i = 0; i < w->carry.n; i++)
        cone[w->carry.at[i].next] = true;
    for (uint32_t i = 0; i < w->y.n; i++)
        cone[w->y.at[i].value] = true;
    for (dc_ref r = b->node.n; r-- > 1;)
        for (int i = 0; cone[r] && (stop == NULL || !stop[r]) && i < dc_node_at(b, r)->nin; i++)
            cone[dc_node_at(b, r)->in[i]] = true;
    return cone;
}

typedef struct remaking {
    dc_loopedit *w;
    dc_func *to;
    dc_ref *map;
    bool *stop;
    dc_loop_again *again; /* NULL: nodes are made again as they are */
    void *ctx;
} remaking;

static const char *label_of(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    return n->op == DC_OP_PARAM ? f->label.at[n->attr[0]] : NULL;
}

static void remake_param(remaking *m, dc_ref r, const dc_ref *same, const dc_ref *sunk)
{
    if ((same != NULL && same[r] != 0) || (sunk != NULL && sunk[r] != 0) || m->map[r] != 0)
        return;
    const dc_type t = dc_node_type(m->w->body, r);
    m->map[r] = dc_graph_param(m->to, &t, label_of(m->w->body, r));
    dc_func_copy_origin(m->to, m->map[r], m->w->body, r);
}

static void replace_params(remaking *m, const dc_ref *same, const dc_ref *sunk)
{
    for (dc_ref r = 1; r < m->w->body->node.n; r++) {
        if (same != NULL && same[r] != 0)
            m->map[r] = m->map[same[r]];
        else if (sunk != NULL && sunk[r] != 0)
            m->map[r] = dc_loop_copy_trivial(m->to, m->w->f, sunk[r]);
        m->stop[r] = m->map[r] != 0;
    }
}

static void copy_nodes(remaking *m, const bool *cone)
{
    const dc_func *b = m->w->body;
    dc_ref in[DC_MAX_OPERANDS];
    for (dc_ref r = 1; r < b->node.n; r++) {
        const dc_node *n = dc_node_at(b, r);
        if (!cone[r] || m->map[r] != 0)
            continue;
        DC_ASSERT(n->op != DC_OP_PARAM, "nothing stands for parameter %d", (int)n->attr[0]);
        for (int i = 0; i < n->nin; i++)
            in[i] = m->map[n->in[i]];
        m->map[r] = m->again != NULL ? m->again(m->ctx, m->to, r, in) : 0;
        if (m->map[r] == 0)
            m->map[r] = dc_graph_again(m->to, b, r, in);
        else
            dc_func_copy_origin(m->to, m->map[r], b, r);
    }
}

/* What was cut off and is not needed may be 0. */
static void renumber(remaking *m)
{
    dc_loopedit *w = m->w;
    w->i = m->map[w->i];
    for (uint32_t i = 0; i < w->constant.n; i++)
        w->constant.at[i].param = m->map[w->constant.at[i].param];
    for (uint32_t i = 0; i < w->carry.n; i++) {
        w->carry.at[i].param = m->map[w->carry.at[i].param];
        w->carry.at[i].next = m->map[w->carry.at[i].next];
    }
    for (uint32_t i = 0; i < w->x.n; i++)
        w->x.at[i].param = m->map[w->x.at[i].param];
    for (uint32_t i = 0; i < w->y.n; i++)
        w->y.at[i].value = m->map[w->y.at[i].value];
}

static void remake(dc_loopedit *w, const dc_ref *same, const dc_ref *sunk, dc_loop_again *again,
                   void *ctx)
{
    dc_arena *a = &w->j->scratch;
    remaking m = {.w = w,
                  .to = dc_func_new(w->f->module, w->body->name),
                  .map = DC_NEW_ARRAY(a, dc_ref, w->body->node.n),
                  .stop = DC_NEW_ARRAY(a, bool, w->body->node.n),
                  .again = again,
                  .ctx = ctx};
    remake_param(&m, w->i, NULL, NULL);
    for (uint32_t i = 0; i < w->constant.n; i++)
        remake_param(&m, w->constant.at[i].param, same, sunk);
    for (uint32_t i = 0; i < w->carry.n; i++)
        remake_param(&m, w->carry.at[i].param, same, sunk);
    for (uint32_t i = 0; i < w->x.n; i++)
        remake_param(&m, w->x.at[i].param, same, sunk);
    replace_params(&m, same, sunk);
    copy_nodes(&m, cone_of(w, m.stop));
    renumber(&m);
    w->body = m.to;
}

void dc_loop_remake_beside(dc_loopedit *w, const dc_ref *same, const dc_ref *sunk)
{
    remake(w, same, sunk, NULL, NULL);
}

void dc_loop_remake_nodes(dc_loopedit *w, dc_loop_again *again, void *ctx)
{
    dc_func *old = w->body;
    remake(w, NULL, NULL, again, ctx);
    dc_func_drop(old);
}

void dc_loop_remake(dc_loopedit *w, const dc_ref *same, const dc_ref *sunk)
{
    dc_func *old = w->body;
    dc_loop_remake_beside(w, same, sunk);
    dc_func_drop(old);
}

/* ---- dead parts ------------------------------------------------------------------------------ */

/* Carries that a result or the test needs, then those that these need; marks the nodes of the body. */
static bool *mark_needed(const dc_loopedit *w, bool *carry, bool *y)
{
    const dc_func *b = w->body;
    bool *cone = DC_NEW_ARRAY(&w->j->scratch, bool, b->node.n), more = true;
    for (uint32_t i = 0; i < w->nresult; i++) {
        if (w->result[i].kind == DC_LOOP_CARRIED)
            carry[w->result[i].at] = true;
        if (w->result[i].kind == DC_LOOP_STACKED)
            y[w->result[i].at] = true;
    }
    if (w->flags & DC_LOOP_TEST)
        carry[0] = true;
    for (uint32_t i = 0; i < w->y.n; i++) {
        y[i] = y[i] || w->y.at[i].asked;
        if (y[i])
            cone[w->y.at[i].value] = true;
    }
    while (more) {
        more = false;
        for (uint32_t i = 0; i < w->carry.n; i++) {
            carry[i] = carry[i] || cone[w->carry.at[i].param];
            more = more || (carry[i] && !cone[w->carry.at[i].next]);
            if (carry[i])
                cone[w->carry.at[i].next] = true;
        }
        for (dc_ref r = b->node.n; r-- > 1;)
            for (int i = 0; cone[r] && i < dc_node_at(b, r)->nin; i++) {
                const dc_ref in = dc_node_at(b, r)->in[i];
                more = more || !cone[in];
                cone[in] = true;
            }
    }
    return cone;
}

bool *dc_loop_needed(const dc_loopedit *w)
{
    return cone_of(w, NULL);
}

void dc_loop_mark_unused(dc_loopedit *w, uint32_t first, const bool *used, int n)
{
    for (int i = 0; i < n; i++)
        if (!used[i])
            w->result[first + (uint32_t)i] = (dc_loop_result){DC_LOOP_UNUSED, 0, 0};
}

bool *dc_loop_used(dc_job *j, const dc_func *f, const bool *live, dc_ref r)
{
    const int n = dc_control_results(f, dc_node_at(f, r));
    bool *used = DC_NEW_ARRAY(&j->scratch, bool, (uint32_t)n);
    for (dc_ref p = r + 1; p < f->node.n; p++)
        if (live[p] && dc_node_at(f, p)->op == DC_OP_PICK && dc_node_at(f, p)->in[0] == r)
            used[dc_node_at(f, p)->attr[0]] = true;
    return used;
}

/* Numbers of those that stay, in order. */
static uint32_t *numbers(dc_loopedit *w, const bool *stays, uint32_t n)
{
    uint32_t *number = DC_NEW_ARRAY(&w->j->scratch, uint32_t, n);
    for (uint32_t i = 0, next = 0; i < n; i++) {
        number[i] = next;
        next += stays[i];
    }
    return number;
}

void dc_loop_keep_carries(dc_loopedit *w, const bool *stays)
{
    const uint32_t *number = numbers(w, stays, w->carry.n);
    for (uint32_t i = 0; i < w->nresult; i++)
        if (w->result[i].kind == DC_LOOP_CARRIED)
            w->result[i].at = number[w->result[i].at];
    uint32_t to = 0;
    for (uint32_t i = 0; i < w->carry.n; i++)
        if (stays[i])
            w->carry.at[to++] = w->carry.at[i];
    w->carry.n = to;
}

static void keep_ys(dc_loopedit *w, const bool *stays)
{
    const uint32_t *number = numbers(w, stays, w->y.n);
    for (uint32_t i = 0; i < w->nresult; i++)
        if (w->result[i].kind == DC_LOOP_STACKED)
            w->result[i].at = number[w->result[i].at];
    for (uint32_t i = 0; i < w->late.n; i++)
        for (uint32_t k = 0; k < w->late.at[i].fn->param.n; k++)
            if (w->late.at[i].arg[k].from == DC_LOOP_Y)
                w->late.at[i].arg[k].y = number[w->late.at[i].arg[k].y];
    uint32_t to = 0;
    for (uint32_t i = 0; i < w->y.n; i++)
        if (stays[i])
            w->y.at[to++] = w->y.at[i];
    w->y.n = to;
}

void dc_loop_drop_dead(dc_loopedit *w)
{
    bool *carry = DC_NEW_ARRAY(&w->j->scratch, bool, w->carry.n);
    bool *y = DC_NEW_ARRAY(&w->j->scratch, bool, w->y.n);
    const bool *needed = mark_needed(w, carry, y);
    uint32_t to = 0;
    dc_loop_keep_carries(w, carry);
    keep_ys(w, y);
    for (uint32_t i = 0; i < w->constant.n; i++)
        if (needed[w->constant.at[i].param])
            w->constant.at[to++] = w->constant.at[i];
    w->constant.n = to;
    to = 0;
    for (uint32_t i = 0; i < w->x.n; i++)
        if (needed[w->x.at[i].param])
            w->x.at[to++] = w->x.at[i];
    w->x.n = to;
}

/* ---- putting together ------------------------------------------------------------------------ */

uint32_t dc_loop_operand_count(const dc_loopedit *w)
{
    const bool may_end = (w->flags & (DC_LOOP_LIMIT | DC_LOOP_TEST)) != 0;
    return 1 + w->constant.n + w->carry.n + w->x.n + (may_end ? w->y.n : 0);
}

static dc_ref add_loop(dc_loopedit *w)
{
    dc_ref *in = DC_NEW_ARRAY(&w->j->scratch, dc_ref, dc_loop_operand_count(w));
    dc_loop l = {.n = w->n,
                 .flags = w->flags,
                 .nconst = (int)w->constant.n,
                 .ncarry = (int)w->carry.n,
                 .nx = (int)w->x.n,
                 .ny = (int)w->y.n};
    int at = 0;
    if (w->flags & DC_LOOP_LIMIT)
        in[at++] = w->limit;
    for (int i = 0; i < l.nconst; i++)
        in[at++] = w->constant.at[i].in;
    for (int i = 0; i < l.ncarry; i++)
        in[at++] = w->carry.at[i].in;
    for (int i = 0; i < l.nx; i++)
        in[at++] = w->x.at[i].in;
    for (int i = 0; dc_loop_may_end(&l) && i < l.ny; i++)
        in[at++] = w->y.at[i].kept;
    dc_loop_remake(w, NULL, NULL);
    for (int i = 0; i < l.ncarry; i++)
        DC_PUSH(w->body->result, w->carry.at[i].next);
    for (int i = 0; i < l.ny; i++)
        DC_PUSH(w->body->result, w->y.at[i].value);
    l.body = dc_body_add(w->f->module, w->body);
    return dc_graph_loop(w->f, &l, in);
}

/* Which of the n elements were reached, where the value is of them. */
static dc_ref reached(const dc_loopedit *w, const dc_type *t)
{
    dc_func *f = w->f;
    const int64_t along = 0;
    const uint32_t rest = (1u << t->rank) - 2;
    const dc_type line = dc_type_make(DC_I32, 1, &w->n);
    const dc_ref i = dc_graph_make(f, DC_OP_IOTA, NULL, 0, &along, 1, &line);
    const dc_ref is = dc_graph_op2(f, DC_OP_LT, i, dc_graph_unreduce(f, w->limit, 1, 1, line.dim));
    return dc_graph_unreduce(f, is, rest, t->rank, t->dim);
}

/* What is computed behind the loop has been tried (dc_loop_delay). */
static dc_ref emit_late(dc_loopedit *w, const dc_loop_late *late, dc_ref loop)
{
    dc_arena *a = &w->j->scratch;
    const uint32_t n = late->fn->param.n;
    dc_ref *param = DC_NEW_ARRAY(a, dc_ref, n), made;
    bool *rows = DC_NEW_ARRAY(a, bool, n), is;
    for (uint32_t i = 0; i < n; i++) {
        const dc_loop_arg *arg = &late->arg[i];
        rows[i] = arg->from != DC_LOOP_OUTER;
        param[i] = arg->from == DC_LOOP_Y ? dc_graph_pick(w->f, loop, (int)(w->carry.n + arg->y))
                                          : arg->in;
    }
    if (dc_batch_inline(w->j, w->f, late->fn, param, rows, w->n, &made, &is) != DC_OK || !is)
        DC_BUG("what was tried cannot be computed behind the loop");
    if (late->kept == 0)
        return made;
    const dc_type t = dc_node_type(w->f, made);
    return dc_graph_op3(w->f, DC_OP_WHERE, reached(w, &t), made, late->kept);
}

void dc_loop_emit(dc_loopedit *w, dc_ref *out)
{
    const dc_ref loop = w->carry.n + w->y.n > 0 ? add_loop(w) : 0;
    dc_ref *late = DC_NEW_ARRAY(&w->j->scratch, dc_ref, w->late.n);
    for (uint32_t i = 0; i < w->late.n; i++)
        late[i] = emit_late(w, &w->late.at[i], loop);
    for (uint32_t i = 0; i < w->nresult; i++) {
        const dc_loop_result *r = &w->result[i];
        out[i] = r->kind == DC_LOOP_VALUE ? r->value : 0;
        if (r->kind == DC_LOOP_CARRIED)
            out[i] = dc_graph_pick(w->f, loop, (int)r->at);
        if (r->kind == DC_LOOP_STACKED)
            out[i] = dc_graph_pick(w->f, loop, (int)(w->carry.n + r->at));
        if (r->kind == DC_LOOP_LATE)
            out[i] = late[r->at];
    }
}
