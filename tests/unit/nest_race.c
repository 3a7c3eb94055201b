#include "tests/unit/nest_race.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Memory ------------------------------------------------------------------------------------- */

static bool has_parallel(const dc_kernel *k, const dc_stmt *first)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        const uint8_t kind = k->axis.at[t->axis].kind;
        if (kind == DC_AXIS_GRID || dc_axis_is_thread(kind) || has_parallel(k, t->body))
            return true;
    }
    return false;
}

typedef struct span { /* memory of a parameter, or of several that overlap */
    uintptr_t lo, hi;
    size_t unit; /* bytes of a cell */
    bool shared, stored;
} span;

static span span_of(const dc_buffer *b, void *const *mem)
{
    const size_t each = dc_dtype_size((dc_dtype)b->dtype);
    const uintptr_t lo = (uintptr_t)mem[b->param];
    return (span){lo, lo + (size_t)b->count * each, each, false, b->mode != DC_MODE_IN};
}

/* Makes s the union with every span that it overlaps, until there is none. */
static void grow(const dc_kernel *k, void *const *mem, span *s)
{
    for (bool grown = true; grown;) {
        grown = false;
        for (uint32_t i = 0; i < k->buf.n; i++) {
            if (k->buf.at[i].scope != DC_SCOPE_PARAM)
                continue;
            const span t = span_of(&k->buf.at[i], mem);
            if (t.lo >= s->hi || t.hi <= s->lo)
                continue;
            if (t.unit != s->unit || (t.lo - s->lo) % s->unit != 0)
                s->unit = 1;
            s->shared |= t.lo != s->lo || t.hi != s->hi || t.stored != s->stored;
            s->stored |= t.stored;
            grown |= t.lo < s->lo || t.hi > s->hi;
            s->lo = t.lo < s->lo ? t.lo : s->lo;
            s->hi = t.hi > s->hi ? t.hi : s->hi;
        }
    }
}

static void watch_param(dc_race *r, uint32_t buf, void *const *mem, bool parallel)
{
    const dc_kernel *k = r->k;
    const span own = span_of(&k->buf.at[buf], mem);
    span s = own;
    if (own.lo == own.hi)
        return;
    grow(k, mem, &s);
    if (!s.stored || !(parallel || s.shared))
        return;
    dc_race_memory *m = &r->memory[buf];
    m->first = (own.lo - s.lo) / s.unit;
    m->each = (uint32_t)(own.unit / s.unit);
    for (uint32_t i = 0; i < buf && m->cell == NULL; i++) {
        if (k->buf.at[i].scope != DC_SCOPE_PARAM)
            continue;
        const span t = span_of(&k->buf.at[i], mem);
        if (t.lo >= s.lo && t.hi <= s.hi && t.lo < t.hi)
            m->cell = r->memory[i].cell;
    }
    if (m->cell == NULL)
        m->cell = DC_NEW_ARRAY(&r->j->scratch, dc_race_cell, (s.hi - s.lo) / s.unit);
}

void dc_race_init(dc_race *r, dc_job *j, const dc_kernel *k, void *const *mem)
{
    const bool parallel = has_parallel(k, k->root);
    *r = (dc_race){.j = j, .k = k, .position = 1};
    r->memory = DC_NEW_ARRAY(&j->scratch, dc_race_memory, k->buf.n);
    DC_PUSH_IN(&j->scratch, r->node, (dc_race_node){0});
    for (uint32_t i = 0; i < k->buf.n; i++) {
        if (k->buf.at[i].scope == DC_SCOPE_PARAM) {
            watch_param(r, i, mem, parallel);
            continue;
        }
        r->memory[i].each = 1;
        r->memory[i].cell = DC_NEW_ARRAY(&j->scratch, dc_race_cell, k->buf.at[i].count);
    }
}

/* Places in the run -------------------------------------------------------------------------- */

void dc_race_position(dc_race *r, uint32_t axis)
{
    r->position++;
    r->grid_axis = axis;
    r->node.n = 1;
    r->now = 0;
}

uint32_t dc_race_enter(dc_race *r, uint32_t axis, uint32_t number, int64_t iteration)
{
    const uint32_t outside = r->now;
    const dc_race_node n = {outside, r->node.at[outside].depth + 1, number, axis, iteration};
    DC_PUSH_IN(&r->j->scratch, r->node, n);
    r->now = r->node.n - 1;
    return outside;
}

void dc_race_leave(dc_race *r, uint32_t outside)
{
    r->now = outside;
}

/* Of this work item: the iterations of one loop in which a and now lie; false if there are none. */
static bool apart(const dc_race *r, uint32_t a, const dc_race_node **x, const dc_race_node **y)
{
    const dc_race_node *node = r->node.at;
    uint32_t b = r->now;
    while (node[a].depth > node[b].depth)
        a = node[a].parent;
    while (node[b].depth > node[a].depth)
        b = node[b].parent;
    if (a == b)
        return false;
    while (node[a].parent != node[b].parent) {
        a = node[a].parent;
        b = node[b].parent;
    }
    *x = &node[a];
    *y = &node[b];
    return node[a].loop == node[b].loop;
}

/* Touching ----------------------------------------------------------------------------------- */

typedef struct touch {
    dc_race *r;
    const dc_buffer *b;
    bool shared; /* by the work items of the grid */
    char *why;
    size_t size;
} touch;

/* May `other` run at the same time as what runs now? */
static bool meets(const touch *t, dc_race_who other)
{
    const dc_race *r = t->r;
    const dc_race_node *x, *y;
    if (other.position == 0)
        return false;
    if (other.position != r->position) {
        if (t->shared)
            snprintf(t->why, t->size, "positions %" PRIu32 " and %" PRIu32 " of the grid, axis %s",
                     other.position - 2, r->position - 2, r->k->axis.at[r->grid_axis].name);
        return t->shared;
    }
    if (!apart(r, other.node, &x, &y))
        return false;
    snprintf(t->why, t->size, "iterations %" PRId64 " and %" PRId64 " of axis %s", x->iteration,
             y->iteration, r->k->axis.at[y->axis].name);
    return true;
}

static bool says(const touch *t, const char *what)
{
    char who[128];
    snprintf(who, sizeof who, "%s", t->why);
    snprintf(t->why, t->size, "%s %s", who, what);
    return false;
}

/* Memory that each iteration has of its own. */
static bool touch_local(const touch *t, dc_race_cell *c, bool stores)
{
    const dc_race *r = t->r;
    if (stores)
        c->stored = (dc_race_who){r->position, r->now};
    else if (c->stored.position != r->position || meets(t, c->stored)) {
        snprintf(t->why, t->size, "is read before this iteration stores it");
        return false;
    }
    return true;
}

static bool touch_cell(const touch *t, dc_race_cell *c, bool stores)
{
    dc_race *r = t->r;
    const dc_race_who me = {r->position, r->now};
    if (t->b->scope == DC_SCOPE_LOCAL)
        return touch_local(t, c, stores);
    if (meets(t, c->stored))
        return says(t, stores ? "both store it" : "store it and read it");
    if (stores) {
        if (meets(t, c->loaded))
            return says(t, "read it and store it");
        c->stored = me;
        return true;
    }
    const bool fresh = c->stored.position == 0 || (!t->shared && c->stored.position != r->position);
    if (fresh && (t->b->scope != DC_SCOPE_PARAM || t->b->mode == DC_MODE_OUT)) {
        snprintf(t->why, t->size, "is read before it is stored");
        return false;
    }
    if (!fresh && t->b->scope == DC_SCOPE_PARAM && t->b->mode == DC_MODE_IN) {
        snprintf(t->why, t->size, "is read after an output was stored to the same memory");
        return false;
    }
    if (c->loaded.position == 0 || !meets(t, c->loaded))
        c->loaded = me;
    return true;
}

bool dc_race_touch(dc_race *r, uint32_t buf, int64_t at, bool stores, char *why, size_t size)
{
    const dc_race_memory *m = &r->memory[buf];
    const dc_buffer *b = &r->k->buf.at[buf];
    const touch t = {r, b, b->scope == DC_SCOPE_PARAM, why, size};
    dc_race_cell *c = m->cell;
    if (c == NULL)
        return true;
    c += m->first + (size_t)at * m->each;
    for (uint32_t i = 0; i < m->each; i++)
        if (!touch_cell(&t, &c[i], stores))
            return false;
    return true;
}
