/*
 * Bodies of loops and branches, while the function around them is traced.
 *
 * Everything is recorded in the one graph of the trace, on stand-ins; dsl/control/ makes functions of it when a body
 * has ended. Until then the trace notes where it began, so that what it did to cells, tests and prints is found again,
 * and taken back where it fails.
 */
#include "core/ir/outline.h"
#include "dsl/base/trace.h"

static void save_cell(dc_trace *t, dc_trace_body *b, uint32_t i)
{
    dc_trace_cell *c = &t->cell.at[i];
    if (c->cell == t->d->generator) /* advances once in a call, whatever loops draw from it */
        return;
    dc_trace_saved saved = {.nread = c->read.n, .set = c->set, .is_set = c->is_set};
    if (b->loop) {
        const dc_type now = c->read.at[c->read.n - 1].type;
        const dc_val v = {dc_graph_stand_in(t->f, &now), now};
        DC_PUSH(c->read, v);
        saved.stand_in = v.ref;
    }
    c->is_set = false;
    b->cell[i] = saved;
}

dc_trace_body *dc_trace_body_begin(dc_trace *t, lua_State *L, const char *op, const char *where,
                                   bool loop)
{
    dc_arena *a = &t->module->arena;
    dc_trace_body *b = DC_NEW_ARRAY(a, dc_trace_body, 1);
    b->cell = DC_NEW_ARRAY(a, dc_trace_saved, t->cell.n + 1);
    b->op = op;
    b->where = where;
    b->loop = loop;
    b->L = L;
    b->born = t->d->born;
    b->mark = t->f->node.n;
    b->ncheck = t->check.n;
    b->nprint = t->print.n;
    b->outer = t->body;
    t->body = b;
    if (loop) {
        const dc_type i32 = dc_type_scalar(DC_I32);
        b->i = (dc_val){dc_graph_stand_in(t->f, &i32), i32};
    }
    for (; b->ncell < t->cell.n; b->ncell++)
        save_cell(t, b, b->ncell);
    return b;
}

static void restore_cell(dc_trace_cell *c, const dc_trace_saved *was)
{
    if (was != NULL && was->nread == 0)
        return;
    c->read.n = was != NULL ? was->nread : 1;
    c->is_set = was != NULL && was->is_set;
    if (was != NULL)
        c->set = was->set;
}

void dc_trace_body_end(dc_trace *t, dc_trace_body *b)
{
    while (t->body != b)
        dc_trace_body_end(t, t->body);
    for (uint32_t i = 0; i < t->cell.n; i++)
        if (t->cell.at[i].cell != t->d->generator)
            restore_cell(&t->cell.at[i], i < b->ncell ? &b->cell[i] : NULL);
    t->check.n = b->ncheck;
    t->print.n = b->nprint;
    t->body = b->outer;
    b->last = t->d->born;
    b->end = b->end != 0 ? b->end : t->f->node.n;
    while (t->left != NULL && t->left->born >= b->born)
        t->left = t->left->outer;
    b->outer = t->left;
    t->left = b;
}

const dc_trace_body *dc_trace_body_left(const dc_trace *t, uint64_t born)
{
    for (const dc_trace_body *b = t->left; b != NULL && b->last >= born; b = b->outer)
        if (born > b->born)
            return b;
    return NULL;
}
