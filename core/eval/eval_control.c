/* Loops and branches: the body is interpreted as any function, once for each iteration. */
#include "core/eval/eval_impl.h"
#include "core/ir/control.h"

#include <string.h>

static size_t bytes_of(const dc_eval_state *s, const dc_type *t)
{
    return (size_t)dc_type_count(t) * dc_eval_size(s->mode, (dc_dtype)t->dtype);
}

static size_t operand_bytes(const dc_eval_state *s, dc_ref r)
{
    const dc_type t = dc_node_type(s->f, r);
    return bytes_of(s, &t);
}

static void copy_bytes(void *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

/* Arrays for all results, and `more` for the first ones once more. */
static dc_status make_many(dc_eval_state *s, dc_ref r, int more)
{
    const dc_node *n = dc_node_at(s->f, r);
    const int nresult = dc_control_results(s->f, n);
    dc_eval_many *m = &s->many[r];
    m->at = DC_NEW_ARRAY(&s->j->scratch, void *, (uint32_t)(nresult + more));
    m->n = (uint32_t)(nresult + more);
    for (int i = 0; i < nresult + more; i++) {
        const dc_type t = dc_control_result(s->f, n, i < nresult ? i : i - nresult);
        DC_TRY(dc_eval_alloc(s, dc_type_count(&t), dc_eval_size(s->mode, (dc_dtype)t.dtype),
                             &m->at[i]));
    }
    return DC_OK;
}

typedef struct looping {
    dc_eval_state *s;
    dc_ref r;
    dc_loop l;
    const dc_func *body;
    const dc_ref *in;
    const void **param;
    void **result;
    void **carry, **next; /* where the carries are, and where the next ones go */
    char **y;             /* stacked */
    size_t *x_bytes, *y_bytes;
    int32_t i;
} looping;

static int64_t iterations_of(const looping *w)
{
    int32_t limit;
    if ((w->l.flags & DC_LOOP_LIMIT) == 0)
        return w->l.n;
    memcpy(&limit, w->s->value[w->in[0]], sizeof limit);
    return limit < 0 ? 0 : dc_min_i64(limit, w->l.n);
}

static bool goes_on(const looping *w)
{
    uint8_t byte = 1;
    if (w->l.flags & DC_LOOP_TEST)
        memcpy(&byte, w->param[1 + w->l.nconst], 1);
    return byte != 0;
}

/* Element i; the carries change places. */
static dc_status iterate(looping *w)
{
    const dc_loop *l = &w->l;
    void **carry = w->carry;
    for (int k = 0; k < l->nx; k++)
        w->param[1 + l->nconst + l->ncarry + k] =
            (const char *)w->s->value[w->in[dc_loop_x(l) + k]] + (size_t)w->i * w->x_bytes[k];
    for (int k = 0; k < l->ncarry; k++)
        w->result[k] = w->next[k];
    for (int k = 0; k < l->ny; k++)
        w->result[l->ncarry + k] = w->y[k] + (size_t)w->i * w->y_bytes[k];
    DC_TRY(dc_eval_body(w->s, w->r, w->body, w->i, w->param, w->result));
    for (int k = 0; k < l->ncarry; k++)
        w->param[1 + l->nconst + k] = w->next[k];
    w->carry = w->next;
    w->next = carry;
    return DC_OK;
}

static void prepare_loop(looping *w, dc_ref r)
{
    const dc_loop *l = &w->l;
    dc_arena *a = &w->s->j->scratch;
    void **many = w->s->many[r].at;
    w->param = DC_NEW_ARRAY(a, const void *, w->body->param.n);
    w->result = DC_NEW_ARRAY(a, void *, w->body->result.n);
    w->x_bytes = DC_NEW_ARRAY(a, size_t, (uint32_t)l->nx);
    w->y_bytes = DC_NEW_ARRAY(a, size_t, (uint32_t)l->ny);
    w->y = DC_NEW_ARRAY(a, char *, (uint32_t)l->ny);
    w->next = many;
    w->carry = many + l->ncarry + l->ny;
    w->param[0] = &w->i;
    for (int k = 0; k < l->nconst + l->ncarry; k++)
        w->param[1 + k] = w->s->value[w->in[dc_loop_const(l) + k]];
    for (int k = 0; k < l->nx; k++) {
        const dc_type t = dc_node_type(w->body, w->body->param.at[1 + l->nconst + l->ncarry + k]);
        w->x_bytes[k] = bytes_of(w->s, &t);
    }
    for (int k = 0; k < l->ny; k++) {
        const dc_type t = dc_node_type(w->body, w->body->result.at[l->ncarry + k]);
        w->y_bytes[k] = bytes_of(w->s, &t);
        w->y[k] = many[l->ncarry + k];
        if (dc_loop_may_end(l))
            copy_bytes(w->y[k], w->s->value[w->in[dc_loop_y(l) + k]], w->y_bytes[k] * (size_t)l->n);
    }
}

dc_status dc_eval_loop(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    looping w = {.s = s, .r = r, .l = dc_loop_of(n), .in = n->in};
    w.body = dc_body_at(s->f->module, w.l.body);
    DC_TRY(make_many(s, r, w.l.ncarry));
    prepare_loop(&w, r);
    const int64_t most = iterations_of(&w);
    for (int64_t k = 0; k < most && goes_on(&w); k++) {
        w.i = (int32_t)(w.l.flags & DC_LOOP_REVERSE ? most - 1 - k : k);
        DC_TRY(iterate(&w));
    }
    for (int k = 0; k < w.l.ncarry; k++) {
        const dc_ref from = n->in[dc_loop_carry(&w.l) + k];
        const void *last = w.param[1 + w.l.nconst + k];
        if (last != s->many[r].at[k])
            copy_bytes(s->many[r].at[k], last, operand_bytes(s, from));
    }
    return DC_OK;
}

dc_status dc_eval_branch(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    uint8_t yes;
    DC_TRY(make_many(s, r, 0));
    memcpy(&yes, s->value[n->in[0]], 1);
    const dc_func *body = dc_body_at(s->f->module, n->attr[yes ? 0 : 1]);
    const void **param = DC_NEW_ARRAY(&s->j->scratch, const void *, body->param.n);
    for (uint32_t i = 0; i < body->param.n; i++)
        param[i] = s->value[n->in[1 + i]];
    return dc_eval_body(s, r, body, -1, param, s->many[r].at);
}

void dc_eval_pick(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    copy_bytes(s->value[r], s->many[n->in[0]].at[n->attr[0]], operand_bytes(s, r));
}
