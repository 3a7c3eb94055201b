/*
 * Verifier of the nest form. What it proves for every kernel, by ranges:
 *   - each axis used stands in a loop round its use; grid is outermost, vector innermost;
 *   - every load and store that stands under no range test is inside its buffer;
 *   - dtypes of operands and stores fit; parameters that are read only are not stored to.
 */
#include "jit/nest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct checking {
    dc_job *j;
    const dc_kernel *k;
    bool *open;          /* by axis: is a loop over it round the current point? */
    uint32_t *seen, now; /* by value: the assignment that it was checked for */
    bool failed;
} checking;

static void complain(checking *c, const char *what, const char *which)
{
    if (!c->failed) {
        char text[200];
        snprintf(text, sizeof text, "%s: %s", what, which);
        dc_fail(c->j, DC_ERR_BUG, &(dc_fact){.num = {0}, .word = {c->k->name, text}});
    }
    c->failed = true;
}

static void check_vx(checking *c, dc_vx v, dc_pred guard);

static void check_ix(checking *c, dc_ix a)
{
    const dc_kernel *k = c->k;
    if (a == 0 || a >= k->ix.n) {
        complain(c, "no such index expression", "");
        return;
    }
    const dc_ix_node *x = &k->ix.at[a];
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *at = &k->atom.at[x->term[i].atom];
        if (at->kind == DC_ATOM_AXIS && !c->open[at->axis])
            complain(c, "axis used outside its loop", k->axis.at[at->axis].name);
        if (at->kind == DC_ATOM_DIV || at->kind == DC_ATOM_MOD)
            check_ix(c, at->of);
        if (at->kind == DC_ATOM_VALUE) {
            c->now++; /* under another guard */
            check_vx(c, at->value, (dc_pred){0});
            c->now++;
        }
    }
}

/* Maps under range tests are trusted here; the differential tests run them between guard zones. */
static void check_access(checking *c, uint32_t buf, dc_ix at, dc_pred p)
{
    check_ix(c, at);
    if (c->failed || p.n > 0)
        return;
    const dc_ix_node *x = &c->k->ix.at[at];
    if (x->lo < 0 || x->hi >= c->k->buf.at[buf].count)
        complain(c, "access outside buffer", c->k->buf.at[buf].name);
}

static dc_pred joined(dc_pred a, dc_pred b)
{
    return a.n > 0 ? a : b;
}

static void check_vx(checking *c, dc_vx v, dc_pred guard)
{
    const dc_kernel *k = c->k;
    if (v == 0 || v >= k->vx.n) {
        complain(c, "no such value", "");
        return;
    }
    const dc_vx_node *n = &k->vx.at[v];
    if (c->seen[v] == c->now)
        return;
    c->seen[v] = c->now;
    for (uint32_t i = 0; i < n->pred.n; i++)
        check_ix(c, n->pred.range[i].ix);
    if (n->kind == DC_VX_LOAD)
        check_access(c, n->buf, n->at, joined(n->pred, guard));
    if (n->kind == DC_VX_INDEX)
        check_ix(c, n->at);
    for (int i = 0; i < n->n; i++)
        check_vx(c, n->in[i], guard);
    if (n->kind == DC_VX_OP && n->op != DC_OP_CAST && n->n >= 2)
        for (int i = n->op == DC_OP_WHERE ? 2 : 1; i < n->n; i++)
            if (k->vx.at[n->in[i]].dtype != k->vx.at[n->in[i - 1]].dtype)
                complain(c, "operands of different dtype", dc_op_row_of(n->op)->name);
}

static void check_set(checking *c, const dc_stmt *t)
{
    const dc_kernel *k = c->k;
    c->now++;
    for (uint32_t i = 0; i < t->pred.n; i++)
        check_ix(c, t->pred.range[i].ix);
    for (uint32_t i = 0; i < t->nput && !c->failed; i++) {
        const dc_put *p = &t->put[i];
        const dc_buffer *b = &k->buf.at[p->buf];
        check_access(c, p->buf, p->at, t->pred);
        check_vx(c, p->value, t->pred);
        if (b->scope == DC_SCOPE_PARAM && b->mode != DC_MODE_OUT)
            complain(c, "store to an input", b->name);
        if (!c->failed && k->vx.at[p->value].dtype != b->dtype)
            complain(c, "value of another dtype stored to", b->name);
    }
}

static void check_list(checking *c, const dc_stmt *first, bool outermost)
{
    for (const dc_stmt *t = first; t != NULL && !c->failed; t = t->next) {
        if (t->kind != DC_STMT_LOOP) {
            check_set(c, t);
            continue;
        }
        const dc_axis *a = &c->k->axis.at[t->axis];
        if (c->open[t->axis])
            complain(c, "loop inside a loop over the same axis", a->name);
        if (a->kind == DC_AXIS_GRID && (!outermost || first->next != NULL))
            complain(c, "grid axis is not outermost", a->name);
        for (const dc_stmt *b = t->body; b != NULL; b = b->next)
            if (a->kind == DC_AXIS_VECTOR && b->kind != DC_STMT_SET)
                complain(c, "vector axis is not innermost", a->name);
        if (a->extent == 0)
            continue; /* what is inside never happens */
        c->open[t->axis] = true;
        check_list(c, t->body, false);
        c->open[t->axis] = false;
    }
}

dc_status dc_nest_check(dc_job *j, const dc_kernel *k)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    checking c = {.j = j, .k = k};
    c.open = DC_NEW_ARRAY(&j->scratch, bool, k->axis.n);
    c.seen = DC_NEW_ARRAY(&j->scratch, uint32_t, k->vx.n);
    check_list(&c, k->root, true);
    dc_arena_rewind(&j->scratch, mark);
    return c.failed ? j->err.status : DC_OK;
}
