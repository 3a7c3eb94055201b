/*
 * Loops and branches over rows.
 *
 * A loop stays one loop, whose body is batched; carries that have rows anywhere have them from the start. The axis of
 * xs and ys is behind that of the elements: [n, rows, ...]. Where rows end at different iterations, because the limit
 * or the test has rows, the loop goes on until all are done. Rows that are done keep their carries, and their elements
 * of ys: what stands there if they are left out is an x, too. With a test the flag that ends the loop, whether any row
 * goes on, becomes a carry in front of the others.
 *
 * A branch whose flag has no rows stays a branch. Else both sides are computed, and the flag of each row selects.
 */
#include "core/transform/batch_impl.h"

typedef struct looping {
    dc_batch *b;
    const dc_node *n;
    const dc_func *body;
    dc_loop l;
    bool *param, *result; /* which of the body, of the loop have rows */
    bool masked;          /* rows end at different iterations */
    bool row_limit, test;
    dc_loop to; /* of the new loop */
} looping;

static bool carry_is(const looping *w, int i)
{
    return w->param[1 + w->l.nconst + i];
}

static bool x_is(const looping *w, int i)
{
    return w->param[1 + w->l.nconst + w->l.ncarry + i];
}

static bool y_is(const looping *w, int i)
{
    return w->result[w->l.ncarry + i];
}

/* Does any row say true? */
static dc_ref any_row(dc_func *f, dc_ref flags)
{
    return dc_graph_reduce(f, DC_OP_MAXR, flags, 1);
}

/* flags [rows] where the value has more axes */
static dc_ref along_rows(dc_func *f, dc_ref flags, const dc_type *t)
{
    int64_t ones[DC_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        ones[i] = i == 0 ? t->dim[0] : 1;
    return dc_graph_expand(f, dc_graph_reshape(f, flags, t->rank, ones), t->dim);
}

static dc_ref choose(dc_func *f, dc_ref flags, dc_ref yes, dc_ref no)
{
    const dc_type t = dc_node_type(f, yes);
    return yes == no ? yes : dc_graph_op3(f, DC_OP_WHERE, along_rows(f, flags, &t), yes, no);
}

/* ---- the body of a loop ---------------------------------------------------------------------- */

typedef struct inside {
    dc_func *g;
    dc_ref *param;     /* of the body, and then: */
    dc_ref limit, any; /* [rows], [] */
    dc_ref *kept;      /* of each y, what stands there if it is left out */
    dc_ref active;     /* which rows go on */
} inside;

static dc_status add_param(const looping *w, dc_func *g, int i, dc_ref *out)
{
    dc_type t = dc_node_type(w->body, w->body->param.at[i]);
    if (w->param[i])
        DC_TRY(dc_batch_type(w->b->j, DC_OP_LOOP, &t, w->b->size, &t));
    *out = dc_graph_param(g, &t, w->body->label.at[i]);
    return DC_OK;
}

static dc_status add_params(const looping *w, inside *s)
{
    const dc_loop *l = &w->l;
    const int carry = 1 + l->nconst;
    const dc_type rows = dc_type_make(DC_I32, 1, &w->b->size), flag = dc_type_scalar(DC_BOOL);
    for (int i = 0; i < (int)w->body->param.n; i++) {
        if (i == carry && w->row_limit)
            s->limit = dc_graph_param(s->g, &rows, "limit");
        if (i == carry && w->test)
            s->any = dc_graph_param(s->g, &flag, "any");
        DC_TRY(add_param(w, s->g, i, &s->param[i]));
    }
    if (carry == (int)w->body->param.n && w->row_limit) /* there are no carries */
        s->limit = dc_graph_param(s->g, &rows, "limit");
    for (int i = 0; w->masked && i < l->ny; i++) {
        dc_type t = dc_node_type(w->body, w->body->result.at[l->ncarry + i]);
        DC_TRY(dc_batch_type(w->b->j, DC_OP_LOOP, &t, w->b->size, &t));
        s->kept[i] = dc_graph_param(s->g, &t, "kept");
    }
    return DC_OK;
}

static void find_active(const looping *w, inside *s)
{
    if (w->row_limit) {
        const dc_type rows = dc_node_type(s->g, s->limit);
        const dc_ref i = dc_graph_unreduce(s->g, s->param[0], 1, 1, rows.dim);
        s->active = dc_graph_op2(s->g, DC_OP_LT, i, s->limit);
    }
    if (w->test) {
        const dc_ref goes_on = s->param[1 + w->l.nconst];
        s->active = s->active == 0 ? goes_on : dc_graph_op2(s->g, DC_OP_AND, s->active, goes_on);
    }
}

static dc_status add_results(const looping *w, inside *s, dc_ref *result, const bool *is)
{
    const dc_loop *l = &w->l;
    dc_batch *b = w->b;
    for (int i = 0; i < l->ncarry + l->ny; i++) {
        if (w->result[i] && !is[i])
            DC_TRY(dc_batch_spread(b->j, s->g, result[i], b->size, &result[i]));
        if (w->masked)
            result[i] =
                choose(s->g, s->active, result[i],
                       i < l->ncarry ? s->param[1 + l->nconst + i] : s->kept[i - l->ncarry]);
    }
    if (w->test)
        DC_PUSH(s->g->result, any_row(s->g, result[0]));
    for (int i = 0; i < l->ncarry + l->ny; i++)
        DC_PUSH(s->g->result, result[i]);
    return DC_OK;
}

static dc_status fill_body(const looping *w, dc_func *g)
{
    dc_batch *b = w->b;
    dc_arena *a = &b->j->scratch;
    const uint32_t nresult = w->body->result.n;
    inside s = {.g = g, .param = DC_NEW_ARRAY(a, dc_ref, w->body->param.n)};
    dc_ref *result = DC_NEW_ARRAY(a, dc_ref, nresult);
    bool *is = DC_NEW_ARRAY(a, bool, nresult);
    s.kept = DC_NEW_ARRAY(a, dc_ref, nresult);
    DC_TRY(add_params(w, &s));
    if (w->masked)
        find_active(w, &s);
    DC_TRY(dc_batch_inline(b->j, g, w->body, s.param, w->param, b->size, result, is));
    return add_results(w, &s, result, is);
}

/* What `fill` makes as a body of the module. */
static dc_status make_body(const looping *w, uint32_t *out)
{
    dc_func *g = dc_func_new(w->b->f->module, w->body->name);
    const dc_status s = fill_body(w, g);
    if (s == DC_OK)
        *out = dc_body_add(w->b->f->module, g);
    dc_func_drop(g);
    return s;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Operand i where its rows are expected; stacked: behind the elements. */
static dc_status operand(const looping *w, int i, bool is, bool stacked, dc_ref *out)
{
    dc_batch *b = w->b;
    *out = b->map[w->n->in[i]];
    if (!is)
        return DC_OK;
    DC_TRY(dc_batch_operand(b, w->n, i, out));
    if (stacked)
        *out = dc_batch_move(b->f, *out, 0, 1);
    return DC_OK;
}

static dc_status list_operands(const looping *w, dc_ref *in)
{
    const dc_loop *l = &w->l;
    dc_func *f = w->b->f;
    int at = 0;
    if (l->flags & DC_LOOP_LIMIT) {
        const dc_ref limit = w->b->map[w->n->in[0]];
        in[at++] = w->row_limit ? any_row(f, limit) : limit;
    }
    for (int i = 0; i < l->nconst; i++)
        in[at++] = w->b->map[w->n->in[dc_loop_const(l) + i]];
    if (w->row_limit)
        in[at++] = w->b->map[w->n->in[0]];
    const int carry = at + w->test;
    for (int i = 0; i < l->ncarry; i++)
        DC_TRY(operand(w, dc_loop_carry(l) + i, carry_is(w, i), false, &in[carry + i]));
    if (w->test)
        in[at] = any_row(f, in[carry]);
    at = carry + l->ncarry;
    for (int i = 0; i < l->nx; i++)
        DC_TRY(operand(w, dc_loop_x(l) + i, x_is(w, i), true, &in[at++]));
    for (int i = 0; w->masked && i < l->ny; i++)
        DC_TRY(operand(w, dc_loop_y(l) + i, true, true, &in[at++]));
    for (int i = 0; dc_loop_may_end(l) && i < l->ny; i++)
        DC_TRY(operand(w, dc_loop_y(l) + i, y_is(w, i), true, &in[at++]));
    DC_ASSERT(at == dc_loop_operands(&w->to), "%d operands", at);
    return DC_OK;
}

/* Types that a pass would call a bug of ours. */
static dc_status check_results(const looping *w)
{
    for (int i = 0; i < w->l.ncarry + w->l.ny; i++) {
        dc_type t = dc_control_result(w->b->from, w->n, i);
        if (w->result[i])
            DC_TRY(dc_batch_type(w->b->j, DC_OP_LOOP, &t, w->b->size, &t));
    }
    return DC_OK;
}

static dc_status make_loop(looping *w, dc_ref *result)
{
    dc_batch *b = w->b;
    int64_t attr[DC_LOOP_ATTRS];
    dc_ref *in = DC_NEW_ARRAY(&b->j->scratch, dc_ref, dc_loop_operands(&w->to)), made;
    DC_TRY(check_results(w));
    DC_TRY(make_body(w, &w->to.body));
    DC_TRY(list_operands(w, in));
    dc_loop_write(&w->to, attr);
    if (dc_loop_operands(&w->to) > DC_MAX_OPERANDS)
        return dc_failf(b->j, DC_ERR_ARG, "loop", "%d operands of a batched loop; %d is the most",
                        dc_loop_operands(&w->to), DC_MAX_OPERANDS);
    DC_TRY(dc_make(b->j, b->f, DC_OP_LOOP, in, dc_loop_operands(&w->to), attr, DC_LOOP_ATTRS, NULL,
                   &made));
    for (int i = 0; i < w->l.ncarry + w->l.ny; i++) {
        result[i] = dc_graph_pick(b->f, made, w->test + i);
        if (i >= w->l.ncarry && w->result[i])
            result[i] = dc_batch_move(b->f, result[i], 1, 0);
    }
    return DC_OK;
}

static dc_status batch_loop(dc_batch *b, const dc_node *n, const bool *operand, dc_ref *result)
{
    dc_arena *a = &b->j->scratch;
    looping w = {.b = b, .n = n, .l = dc_loop_of(n)};
    w.body = dc_body_at(b->from->module, w.l.body);
    w.param = DC_NEW_ARRAY(a, bool, w.body->param.n);
    w.result = DC_NEW_ARRAY(a, bool, w.body->result.n);
    w.masked = dc_batch_mark_loop(b->j, b->from, n, operand, w.param, w.result);
    w.row_limit = w.masked && (w.l.flags & DC_LOOP_LIMIT) != 0 && operand[0];
    w.test = w.masked && (w.l.flags & DC_LOOP_TEST) != 0;
    w.to = w.l;
    w.to.nconst += w.row_limit;
    w.to.ncarry += w.test;
    w.to.nx += w.masked ? w.l.ny : 0;
    return make_loop(&w, result);
}

/* ---- branches -------------------------------------------------------------------------------- */

typedef struct branching {
    dc_batch *b;
    const dc_node *n;
    const bool *param, *result; /* which parameters of the bodies, which results have rows */
} branching;

/* A body on these values; results that have rows in one body have them in both. */
static dc_status inline_side(const branching *w, dc_func *f, int side, const dc_ref *param,
                             dc_ref *result)
{
    dc_batch *b = w->b;
    const dc_func *body = dc_body_at(b->from->module, w->n->attr[side]);
    bool *is = DC_NEW_ARRAY(&b->j->scratch, bool, body->result.n);
    DC_TRY(dc_batch_inline(b->j, f, body, param, w->param, b->size, result, is));
    for (uint32_t i = 0; i < body->result.n; i++)
        if (w->result[i] && !is[i])
            DC_TRY(dc_batch_spread(b->j, f, result[i], b->size, &result[i]));
    return DC_OK;
}

static dc_status fill_side(const branching *w, dc_func *g, int side)
{
    dc_batch *b = w->b;
    const dc_func *body = dc_body_at(b->from->module, w->n->attr[side]);
    dc_ref *param = DC_NEW_ARRAY(&b->j->scratch, dc_ref, body->param.n);
    dc_ref *result = DC_NEW_ARRAY(&b->j->scratch, dc_ref, body->result.n);
    for (uint32_t i = 0; i < body->param.n; i++) {
        dc_type t = dc_node_type(body, body->param.at[i]);
        if (w->param[i])
            DC_TRY(dc_batch_type(b->j, DC_OP_BRANCH, &t, b->size, &t));
        param[i] = dc_graph_param(g, &t, body->label.at[i]);
    }
    DC_TRY(inline_side(w, g, side, param, result));
    for (uint32_t i = 0; i < body->result.n; i++)
        DC_PUSH(g->result, result[i]);
    return DC_OK;
}

static dc_status make_side(const branching *w, int side, uint32_t *out)
{
    dc_func *g =
        dc_func_new(w->b->f->module, dc_body_at(w->b->from->module, w->n->attr[side])->name);
    const dc_status s = fill_side(w, g, side);
    if (s == DC_OK)
        *out = dc_body_add(w->b->f->module, g);
    dc_func_drop(g);
    return s;
}

static dc_status select_rows(const branching *w, const dc_ref *in, dc_ref *result)
{
    dc_func *f = w->b->f;
    const int nresult = dc_control_results(w->b->from, w->n);
    dc_ref *no = DC_NEW_ARRAY(&w->b->j->scratch, dc_ref, (uint32_t)nresult);
    DC_TRY(inline_side(w, f, 0, in + 1, result));
    DC_TRY(inline_side(w, f, 1, in + 1, no));
    for (int i = 0; i < nresult; i++)
        result[i] = choose(f, in[0], result[i], no[i]);
    return DC_OK;
}

static dc_status batch_branch(dc_batch *b, const dc_node *n, const bool *operand,
                              const bool *result_is, dc_ref *result)
{
    const branching w = {b, n, operand + 1, result_is};
    uint32_t side[2];
    dc_ref *in = DC_NEW_ARRAY(&b->j->scratch, dc_ref, n->nin), made;
    for (int i = 0; i < n->nin; i++)
        in[i] = b->map[n->in[i]];
    if (operand[0])
        return select_rows(&w, in, result);
    DC_TRY(make_side(&w, 0, &side[0]));
    DC_TRY(make_side(&w, 1, &side[1]));
    made = dc_graph_branch(b->f, side[0], side[1], in, n->nin);
    for (int i = 0; i < dc_control_results(b->from, n); i++)
        result[i] = dc_graph_pick(b->f, made, i);
    return DC_OK;
}

dc_status dc_batch_control(dc_batch *b, dc_ref r)
{
    const dc_node *n = dc_node_at(b->from, r);
    dc_arena *a = &b->j->scratch;
    bool *operand = DC_NEW_ARRAY(a, bool, n->nin);
    b->many[r] = DC_NEW_ARRAY(a, dc_ref, (uint32_t)dc_control_results(b->from, n));
    for (int i = 0; i < n->nin; i++)
        operand[i] = dc_batch_is(b, n, i);
    if (n->op == DC_OP_LOOP)
        return batch_loop(b, n, operand, b->many[r]);
    return batch_branch(b, n, operand, b->is.many[r], b->many[r]);
}
