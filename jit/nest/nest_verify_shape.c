/*
 * Verifier of the nest form, its first part (jit/nest/nest_verify.c): how loops of each kind stand in each other, how
 * many threads and iterations they make, and what axes and buffers are called.
 */
#include "jit/nest/nest_print.h"
#include "jit/nest/nest_roles.h"
#include "jit/nest/nest_verify_impl.h"

#include <string.h>

/* Shape -------------------------------------------------------------------------------------- */

typedef struct phases {
    int64_t least,
        most; /* threads of the phases among some statements; 0 and 1 where there are none */
} phases;

static phases check_shape(dc_nest_checking *c, const dc_stmt *first, bool root, bool lanes);

/* A block loop that holds thread loops. */
static void check_block(dc_nest_checking *c, const dc_stmt *loop, phases in)
{
    const char *name = c->k->axis.at[loop->axis].name;
    for (const dc_stmt *t = loop->body; t != NULL; t = t->next)
        if (t->kind != DC_STMT_LOOP)
            dc_nest_complain(c, "an assignment beside the thread loops of block axis", name);
    if (in.least != in.most)
        dc_nest_complain(c, "phases by different numbers of threads inside block axis", name);
}

static void check_vector(dc_nest_checking *c, const dc_stmt *loop)
{
    const dc_axis *a = &c->k->axis.at[loop->axis];
    for (const dc_stmt *t = loop->body; t != NULL; t = t->next)
        if (t->kind != DC_STMT_SET)
            dc_nest_complain(c, "vector axis is not innermost", a->name);
    if (a->extent < 1 || a->extent > MAX_LANES || (a->extent & (a->extent - 1)) != 0)
        dc_nest_complain(c, "vector lanes are a power of two, at most 64", a->name);
}

static phases check_loop(dc_nest_checking *c, const dc_stmt *loop, bool root, bool lanes)
{
    const phases none = {0, 1};
    c->line = loop->line;
    if (loop->axis >= c->k->axis.n) {
        dc_nest_complain(c, "no such axis", "");
        return none;
    }
    const dc_axis *a = &c->k->axis.at[loop->axis];
    const bool thread = dc_axis_is_thread(a->kind);
    if (a->extent < 0 || a->extent > MAX_COUNT || a->kind > DC_AXIS_LANE)
        dc_nest_complain(c, "no legal axis", a->name);
    if (c->given && a->extent == 0)
        dc_nest_complain(c, "a loop of no iterations", a->name);
    if (c->given && loop->body == NULL)
        dc_nest_complain(c, "a loop with nothing in it", a->name);
    if (!dc_role_fits((dc_role)a->role, a->reduce))
        dc_nest_complain(
            c, a->reduce ? "a role of loops that reduce nothing" : "a role of reductions", a->name);
    if (c->open[loop->axis])
        dc_nest_complain(c, "loop inside a loop over the same axis", a->name);
    if (a->kind == DC_AXIS_GRID && !root)
        dc_nest_complain(c, "grid axis is not outermost", a->name);
    if (thread && lanes)
        dc_nest_complain(c, "a thread axis inside a lane axis", a->name);
    if (thread && (a->extent < 1 || a->extent > MAX_THREADS))
        dc_nest_complain(c, "too many threads, or none", a->name);
    if (a->kind == DC_AXIS_VECTOR)
        check_vector(c, loop);
    if (c->failed)
        return none;
    c->open[loop->axis] = true;
    phases in = check_shape(c, loop->body, false, lanes || a->kind == DC_AXIS_LANE);
    c->open[loop->axis] = false;
    if (a->kind == DC_AXIS_BLOCK && in.least > 0)
        check_block(c, loop, in);
    if (!thread || c->failed)
        return in;
    if (in.most * a->extent > MAX_THREADS)
        dc_nest_complain(c, "too many threads, or none", a->name);
    return (phases){in.most * a->extent, in.most * a->extent};
}

static phases check_shape(dc_nest_checking *c, const dc_stmt *first, bool root, bool lanes)
{
    phases all = {0, 1};
    for (const dc_stmt *t = first; t != NULL && !c->failed; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        const phases p = check_loop(c, t, root, lanes);
        all.most = dc_max_i64(all.most, p.most);
        if (p.least > 0)
            all.least = all.least == 0 ? p.least : dc_min_i64(all.least, p.least);
    }
    return all;
}

static bool is_grid(const dc_kernel *k, const dc_stmt *t)
{
    return t->kind == DC_STMT_LOOP && t->axis < k->axis.n &&
           k->axis.at[t->axis].kind == DC_AXIS_GRID;
}

static void check_root(dc_nest_checking *c)
{
    const dc_stmt *grid = NULL;
    for (const dc_stmt *t = c->k->root; t != NULL; t = t->next)
        if (is_grid(c->k, t))
            grid = t;
    for (const dc_stmt *t = c->k->root; t != NULL && grid != NULL; t = t->next)
        if (!is_grid(c->k, t))
            dc_nest_complain(c, "something beside the loop over grid axis",
                             c->k->axis.at[grid->axis].name);
}

static void check_size(dc_nest_checking *c)
{
    const dc_stmt *loop = NULL;
    const char *what = c->failed ? NULL : dc_nest_too_large(c->k, &loop);
    if (what == NULL)
        return;
    c->line = loop->line;
    dc_nest_complain(c, what, c->k->axis.at[loop->axis].name);
}

int64_t dc_nest_check_threads(dc_nest_checking *c, const dc_stmt *first)
{
    return check_shape(c, first, false, false).most;
}

void dc_nest_check_shape(dc_nest_checking *c)
{
    check_root(c);
    c->threads = check_shape(c, c->k->root, true, false).most;
    check_size(c);
}

/* Names and buffers -------------------------------------------------------------------------- */

static void mark_axes(const dc_kernel *k, const dc_stmt *first, bool *used)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP) {
            used[t->axis] = true;
            mark_axes(k, t->body, used);
        }
}

/* Of axes, only those that some loop is over: moves leave others behind. */
static void check_distinct(dc_nest_checking *c)
{
    const dc_kernel *k = c->k;
    bool *used = DC_NEW_ARRAY(&c->j->scratch, bool, k->axis.n);
    mark_axes(k, k->root, used);
    for (uint32_t a = 0; a < k->axis.n; a++)
        for (uint32_t b = 0; used[a] && b < a; b++)
            if (used[b] && strcmp(k->axis.at[a].name, k->axis.at[b].name) == 0)
                dc_nest_complain(c, "two axes of one name", k->axis.at[a].name);
    for (uint32_t a = 0; a < k->buf.n; a++)
        for (uint32_t b = 0; b < a; b++)
            if (strcmp(k->buf.at[a].name, k->buf.at[b].name) == 0)
                dc_nest_complain(c, "two buffers of one name", k->buf.at[a].name);
}

static void check_buffers(dc_nest_checking *c)
{
    uint32_t params = 0;
    for (uint32_t i = 0; i < c->k->buf.n; i++) {
        const dc_buffer *b = &c->k->buf.at[i];
        if (b->dtype >= DC_DTYPE__COUNT || b->count < 0 || b->count > MAX_COUNT)
            dc_nest_complain(c, "no legal buffer", b->name);
        else if (b->scope == DC_SCOPE_PARAM)
            params += b->param == params;
        else if (b->scope > DC_SCOPE_GROUP)
            dc_nest_complain(c, "memory that only the flat form has", b->name);
        else if (b->count * (int64_t)dc_dtype_size((dc_dtype)b->dtype) > MAX_LOCAL)
            dc_nest_complain(c, "too large for local memory", b->name);
        else if (b->scope == DC_SCOPE_THREAD && b->count % c->threads != 0)
            dc_nest_complain(c, "rows that are not one for each thread", b->name);
    }
    if (params != c->k->nparam)
        dc_nest_complain(c, "parameters are not numbered in their order", "");
}

void dc_nest_check_names(dc_nest_checking *c)
{
    check_distinct(c);
    check_buffers(c);
}
