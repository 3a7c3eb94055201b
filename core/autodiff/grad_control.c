/*
 * Gradient rules of branches and picks, and what the rule of loops (core/autodiff/grad_loop.c) shares with them: which
 * parameters of a body carry a derivative, and pieces of functions copied into others.
 *
 * Cotangents of picks wait in the list of their loop or branch. The walk comes to it when it has passed all picks.
 */
#include "core/autodiff/grad_impl.h"
#include "core/ir/control.h"
#include "core/ir/subgraph.h"

#include <stdio.h>

/* ---- picks ----------------------------------------------------------------------------------- */

void dc_grad_pick(const dc_vjp *v)
{
    const dc_ref from = v->n.in[0];
    dc_gradpart *p = DC_NEW(&v->j->scratch, dc_gradpart);
    *p = (dc_gradpart){v->r, v->part[from]};
    v->part[from] = p;
    v->cotangent[from] = v->r; /* there is something to do */
}

dc_ref *dc_vjp_results(const dc_vjp *v, int n)
{
    dc_ref *g = DC_NEW_ARRAY(&v->j->scratch, dc_ref, n);
    for (const dc_gradpart *p = v->part[v->r]; p != NULL; p = p->before)
        g[dc_node_at(v->f, p->ref)->attr[0]] = v->cotangent[p->ref];
    return g;
}

/* ---- what carries a derivative --------------------------------------------------------------- */

static const dc_func *body_of(const dc_func *f, const dc_node *n, int which)
{
    return dc_body_at(f->module, n->attr[which]);
}

static dc_ref *varying_params(dc_job *j, const dc_func *body, const bool *varies, int *n)
{
    dc_ref *list = DC_NEW_ARRAY(&j->scratch, dc_ref, body->param.n);
    *n = 0;
    for (uint32_t i = 0; i < body->param.n; i++)
        if (varies[i])
            list[(*n)++] = body->param.at[i];
    return list;
}

/* By node of a body. */
static bool *active_in(dc_job *j, const dc_func *body, const bool *varies)
{
    int n;
    const dc_ref *wrt = varying_params(j, body, varies, &n);
    return dc_grad_active(j, body, wrt, n, body->node.n - 1);
}

bool *dc_grad_varying(dc_job *j, const dc_func *f, const dc_node *n, int which, const bool *active)
{
    const dc_func *body = body_of(f, n, which);
    const dc_loop l = n->op == DC_OP_LOOP ? dc_loop_of(n) : (dc_loop){0};
    const int first = n->op == DC_OP_LOOP; /* a loop's parameter 0 is the number of the element */
    const int skip = n->op == DC_OP_LOOP ? dc_loop_const(&l) : 1;
    bool *varies = DC_NEW_ARRAY(&j->scratch, bool, body->param.n), more = true;
    for (int i = first; i < (int)body->param.n; i++) {
        const dc_ref in = n->in[skip + i - first];
        varies[i] = active[in] && dc_dtype_is_float((dc_dtype)dc_node_at(f, in)->dtype);
    }
    while (more && l.ncarry > 0) {
        const bool *in_body = active_in(j, body, varies);
        more = false;
        for (int k = 0; k < l.ncarry; k++) {
            bool *carry = &varies[1 + l.nconst + k];
            const dc_ref next = body->result.at[k];
            if (!*carry && in_body[next] &&
                dc_dtype_is_float((dc_dtype)dc_node_at(body, next)->dtype))
                *carry = more = true;
        }
    }
    return varies;
}

/* ---- loops without a bound ------------------------------------------------------------------- */

/* It was made at another line than where the gradient is asked for. */
static dc_status refuse_unbounded(dc_job *j, const dc_func *f, const dc_node *n)
{
    const char *where = n->origin != 0 ? f->origins.at[n->origin].where : NULL;
    char words[200] = "a loop";
    if (where != NULL)
        snprintf(words, sizeof words, "the loop at %s", where);
    return dc_fail(j, DC_ERR_GRAD_UNBOUNDED, &(dc_fact){.op = "grad", .word = {words}});
}

static dc_status bounded_body(dc_job *j, const dc_func *f, const dc_node *n, int which,
                              const bool *active)
{
    const dc_func *body = body_of(f, n, which);
    const bool *in_body = active_in(j, body, dc_grad_varying(j, f, n, which, active));
    const bool *reached = dc_grad_reached(j, body, in_body, body->result.at, (int)body->result.n);
    return dc_grad_bounded(j, body, in_body, reached);
}

dc_status dc_grad_bounded(dc_job *j, const dc_func *f, const bool *active, const bool *reached)
{
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        if (!reached[r] || !dc_is_control(n))
            continue;
        if (n->op == DC_OP_LOOP) {
            const dc_loop l = dc_loop_of(n);
            if (dc_loop_may_end(&l) && l.n == INT32_MAX)
                return refuse_unbounded(j, f, n);
        }
        for (int i = 0; i < dc_node_bodies(n); i++)
            DC_TRY(bounded_body(j, f, n, i, active));
    }
    return DC_OK;
}

/* ---- pieces of functions --------------------------------------------------------------------- */

bool *dc_cone(dc_job *j, const dc_func *f, const dc_ref *root, int n, const bool *stop)
{
    bool *cone = DC_NEW_ARRAY(&j->scratch, bool, f->node.n);
    for (int i = 0; i < n; i++)
        cone[root[i]] = true;
    for (dc_ref r = f->node.n; r-- > 1;)
        for (int i = 0; cone[r] && (stop == NULL || !stop[r]) && i < dc_node_at(f, r)->nin; i++)
            cone[dc_node_at(f, r)->in[i]] = true;
    return cone;
}

void dc_cone_copy(dc_func *to, const dc_func *from, const bool *cone, dc_ref *map)
{
    const dc_ref end = from->node.n; /* to may be the same function */
    for (dc_ref r = 1; r < end; r++) {
        dc_ref in[DC_MAX_OPERANDS];
        if (!cone[r] || map[r] != 0)
            continue;
        const dc_node *n = dc_node_at(from, r);
        DC_ASSERT(n->op != DC_OP_PARAM, "nothing stands for parameter %d", (int)n->attr[0]);
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        map[r] = dc_graph_again(to, from, r, in);
    }
}

/* ---- branches -------------------------------------------------------------------------------- */

/* One side and its gradient: parameters of the side, then the cotangents of its results that have one. */
typedef struct side {
    dc_func *w;
    dc_ref *part; /* by parameter of the side */
} side;

static dc_ref like_param(dc_func *to, const dc_func *from, dc_ref r, const char *label)
{
    const dc_type t = dc_node_type(from, r);
    return dc_graph_param(to, &t, label);
}

static dc_status pull_side(const dc_vjp *v, int which, const dc_ref *g, side *out)
{
    dc_job *j = v->j;
    const dc_func *body = body_of(v->f, &v->n, which);
    const bool *varies = dc_grad_varying(j, v->f, &v->n, which, v->active);
    dc_func *w = dc_func_new(v->f->module, "side");
    dc_ref *result = DC_NEW_ARRAY(&j->scratch, dc_ref, body->result.n), *y, *gy, *wrt, *part;
    y = DC_NEW_ARRAY(&j->scratch, dc_ref, body->result.n);
    gy = DC_NEW_ARRAY(&j->scratch, dc_ref, body->result.n);
    wrt = DC_NEW_ARRAY(&j->scratch, dc_ref, body->param.n);
    part = DC_NEW_ARRAY(&j->scratch, dc_ref, body->param.n);
    *out = (side){w, DC_NEW_ARRAY(&j->scratch, dc_ref, body->param.n)};
    int ny = 0, nwrt = 0;
    for (uint32_t i = 0; i < body->param.n; i++)
        like_param(w, body, body->param.at[i], body->label.at[i]);
    dc_graph_inline(w, body, w->param.at, result);
    for (uint32_t i = 0; i < body->result.n; i++)
        if (g[i] != 0) {
            y[ny] = result[i];
            gy[ny++] = like_param(w, v->f, g[i], NULL);
        }
    for (uint32_t i = 0; i < body->param.n; i++)
        if (varies[i])
            wrt[nwrt++] = w->param.at[i];
    DC_TRY(dc_grad_pull(j, w, y, gy, ny, wrt, nwrt, part));
    for (int i = 0, at = 0; i < (int)body->param.n; i++)
        out->part[i] = varies[i] ? part[at++] : 0;
    return DC_OK;
}

/* What the side gives for the operands that get a part, as a body of the parameters that are used. */
static uint32_t side_body(const dc_vjp *v, const side *s, const int *to, int n, const bool *used)
{
    dc_func *b = dc_func_new(v->f->module, "side"), *w = s->w;
    dc_ref *root = DC_NEW_ARRAY(&v->j->scratch, dc_ref, n), *map;
    for (int i = 0; i < n; i++) {
        const dc_type t = dc_node_type(v->f, v->n.in[1 + to[i]]);
        root[i] = s->part[to[i]] != 0 ? s->part[to[i]] : dc_graph_const(w, &t, 0);
    }
    map = DC_NEW_ARRAY(&v->j->scratch, dc_ref, w->node.n);
    for (uint32_t i = 0; i < w->param.n; i++)
        if (used[i])
            map[w->param.at[i]] = like_param(b, w, w->param.at[i], w->label.at[i]);
    dc_cone_copy(b, w, dc_cone(v->j, w, root, n, NULL), map);
    for (int i = 0; i < n; i++)
        DC_PUSH(b->result, map[root[i]]);
    const uint32_t body = dc_body_add(v->f->module, b);
    dc_func_drop(b);
    dc_func_drop(w);
    return body;
}

static void mark_used(const dc_vjp *v, const side *s, bool *used)
{
    dc_ref *root = DC_NEW_ARRAY(&v->j->scratch, dc_ref, v->n.nin);
    int n = 0;
    for (int i = 0; i < v->n.nin - 1; i++)
        if (s->part[i] != 0)
            root[n++] = s->part[i];
    const bool *cone = dc_cone(v->j, s->w, root, n, NULL);
    for (uint32_t i = 0; i < s->w->param.n; i++)
        used[i] = used[i] || cone[s->w->param.at[i]];
}

/*
 * A branch on the same flag. Each side computes again what it needs of its values: keeping those of the side that
 * was chosen would need results that only one side has.
 */
void dc_grad_branch(const dc_vjp *v)
{
    const int nparam = v->n.nin - 1, nresult = dc_control_results(v->f, &v->n);
    const dc_ref *g = dc_vjp_results(v, nresult);
    int *to = DC_NEW_ARRAY(&v->j->scratch, int, nparam), n = 0, nin = 1;
    bool *used = DC_NEW_ARRAY(&v->j->scratch, bool, nparam + nresult);
    dc_ref in[DC_MAX_OPERANDS] = {v->n.in[0]};
    side s[2];
    uint32_t body[2];
    for (int i = 0; i < 2; i++) {
        *v->status = pull_side(v, i, g, &s[i]);
        if (*v->status != DC_OK)
            return;
        mark_used(v, &s[i], used);
    }
    for (int i = 0; i < nparam; i++)
        if (s[0].part[i] != 0 || s[1].part[i] != 0)
            to[n++] = i;
    const int nused = (int)s[0].w->param.n;
    for (int i = 0, result = 0; i < nused; i++) {
        while (i >= nparam && g[result] == 0)
            result++;
        const dc_ref r = i < nparam ? v->n.in[1 + i] : g[result++];
        if (used[i] && nin < DC_MAX_OPERANDS)
            in[nin] = r;
        nin += used[i];
    }
    if (nin > DC_MAX_OPERANDS) {
        *v->status = dc_failf(v->j, DC_ERR_ARG, "grad",
                              "the gradient of a branch reads %d tensors, %d is the most", nin,
                              DC_MAX_OPERANDS);
        return;
    }
    for (int i = 0; i < 2; i++)
        body[i] = side_body(v, &s[i], to, n, used);
    const dc_ref back = n > 0 ? dc_graph_branch(v->f, body[0], body[1], in, nin) : 0;
    for (int i = 0; i < n; i++)
        dc_vjp_give(v, 1 + to[i], dc_graph_pick(v->f, back, i));
}
