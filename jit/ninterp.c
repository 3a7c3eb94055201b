#include "jit/ninterp.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct running {
    dc_job *j;
    const dc_kernel *k;
    int64_t *at_axis; /* current iteration by axis */
    void **mem;       /* by buffer */
    uint64_t *known;  /* by value: what it is, if it was computed for this assignment */
    uint64_t *when, now;
    dc_status status;
} running;

static uint64_t value(running *r, dc_vx v);

static int64_t index_of(running *r, dc_ix a)
{
    const dc_ix_node *x = &r->k->ix.at[a];
    int64_t sum = x->c;
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *at = &r->k->atom.at[x->term[i].atom];
        int64_t v = 0;
        switch ((dc_atom_kind)at->kind) {
        case DC_ATOM_AXIS:
            v = r->at_axis[at->axis];
            break;
        case DC_ATOM_DIV:
            v = dc_floor_div(index_of(r, at->of), at->k);
            break;
        case DC_ATOM_MOD:
            v = index_of(r, at->of);
            v -= dc_floor_div(v, at->k) * at->k;
            break;
        case DC_ATOM_VALUE:
            v = (int64_t)value(r, at->value);
            break;
        }
        sum += v * x->term[i].coef;
    }
    return sum;
}

static bool holds(running *r, dc_pred p)
{
    for (uint32_t i = 0; i < p.n; i++) {
        const int64_t v = index_of(r, p.range[i].ix);
        if (v < 0 || v >= p.range[i].n)
            return false;
    }
    return true;
}

static char *element(running *r, uint32_t buf, int64_t at)
{
    const dc_buffer *b = &r->k->buf.at[buf];
    if (at < 0 || at >= b->count) {
        char text[96];
        snprintf(text, sizeof text, "%s[%" PRId64 "] of %" PRId64, b->name, at, b->count);
        r->status = dc_fail(r->j, DC_ERR_BUG, &(dc_fact){.word = {r->k->name, text}});
        return NULL;
    }
    return (char *)r->mem[buf] + (size_t)at * dc_dtype_size(b->dtype);
}

static uint64_t compute(running *r, dc_vx v)
{
    const dc_vx_node *n = &r->k->vx.at[v];
    uint64_t in[4] = {0};
    switch ((dc_vx_kind)n->kind) {
    case DC_VX_OP:
        if (n->op == DC_OP_CAST)
            return dc_bits_cast(r->k->vx.at[n->in[0]].dtype, n->dtype, value(r, n->in[0]));
        for (int i = 0; i < n->n; i++)
            in[i] = value(r, n->in[i]);
        return dc_op_eval(n->op, r->k->vx.at[n->in[n->n - 1]].dtype, n->dtype, in);
    case DC_VX_LOAD: {
        if (!holds(r, n->pred))
            return 0;
        const char *at = element(r, n->buf, index_of(r, n->at));
        return at != NULL ? dc_bits_load(n->dtype, at) : 0;
    }
    case DC_VX_CONST:
        return n->bits;
    case DC_VX_INDEX:
        return dc_bits_cast(DC_I32, n->dtype, (uint64_t)index_of(r, n->at));
    case DC_VX_TEST:
        return holds(r, n->pred);
    }
    return 0;
}

static uint64_t value(running *r, dc_vx v)
{
    if (r->when[v] != r->now) {
        r->known[v] = compute(r, v);
        r->when[v] = r->now;
    }
    return r->known[v];
}

static void run_set(running *r, const dc_stmt *t)
{
    r->now++;
    if (!holds(r, t->pred))
        return;
    const dc_mark mark = dc_arena_mark(&r->j->scratch);
    uint64_t *v = DC_NEW_ARRAY(&r->j->scratch, uint64_t, t->nput);
    for (uint32_t i = 0; i < t->nput; i++)
        v[i] = value(r, t->put[i].value);
    for (uint32_t i = 0; i < t->nput && r->status == DC_OK; i++) {
        char *at = element(r, t->put[i].buf, index_of(r, t->put[i].at));
        if (at != NULL)
            dc_bits_store(r->k->buf.at[t->put[i].buf].dtype, at, v[i]);
    }
    dc_arena_rewind(&r->j->scratch, mark);
}

static void run_list(running *r, const dc_stmt *first)
{
    for (const dc_stmt *t = first; t != NULL && r->status == DC_OK; t = t->next) {
        if (t->kind == DC_STMT_SET) {
            run_set(r, t);
            continue;
        }
        for (int64_t i = 0; i < r->k->axis.at[t->axis].extent && r->status == DC_OK; i++) {
            r->at_axis[t->axis] = i;
            run_list(r, t->body);
        }
    }
}

dc_status dc_nest_run(dc_job *j, const dc_kernel *k, void *const *mem)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    running r = {.j = j, .k = k};
    r.at_axis = DC_NEW_ARRAY(&j->scratch, int64_t, k->axis.n);
    r.mem = DC_NEW_ARRAY(&j->scratch, void *, k->buf.n);
    r.known = DC_NEW_ARRAY(&j->scratch, uint64_t, k->vx.n);
    r.when = DC_NEW_ARRAY(&j->scratch, uint64_t, k->vx.n);
    for (uint32_t b = 0; b < k->buf.n; b++) {
        const dc_buffer *x = &k->buf.at[b];
        r.mem[b] = x->scope == DC_SCOPE_PARAM
                       ? mem[x->param]
                       : dc_arena_alloc(&j->scratch, (size_t)x->count * dc_dtype_size(x->dtype));
    }
    run_list(&r, k->root);
    dc_arena_rewind(&j->scratch, mark);
    return r.status;
}
