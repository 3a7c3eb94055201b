#include "jit/nest/nest_traffic.h"

#include "jit/nest/nest_access.h"

bool dc_nest_has_traffic(const dc_kernel *k)
{
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (k->buf.at[b].nontemporal || k->buf.at[b].prefetch != 0 || k->buf.at[b].stages != 0)
            return true;
    for (uint32_t a = 0; a < k->axis.n; a++)
        if (k->axis.at[a].pipeline)
            return true;
    return false;
}

/* Parts of an iteration ------------------------------------------------------------------------ */

/* A loop around one assignment, nothing beside any of its loops; NULL else. */
static const dc_stmt *only_set(const dc_stmt *s)
{
    while (s->kind == DC_STMT_LOOP && s->body != NULL && s->body->next == NULL)
        s = s->body;
    return s->kind == DC_STMT_SET && !s->reduces ? s : NULL;
}

/* A serial loop around one assignment, to parameters only or to none. */
static const dc_stmt *set_of_part(const dc_kernel *k, const dc_stmt *s, bool params)
{
    if (s->kind != DC_STMT_LOOP || k->axis.at[s->axis].kind != DC_AXIS_SERIAL ||
        k->axis.at[s->axis].extent < 2)
        return NULL;
    const dc_stmt *set = only_set(s);
    for (uint32_t n = 0; set != NULL && n < set->nput; n++)
        if ((k->buf.at[set->put[n].buf].scope == DC_SCOPE_PARAM) != params)
            return NULL;
    return set;
}

/* Places in two loops -------------------------------------------------------------------------- */

typedef struct pairing { /* loops that stand alike: an axis of one by an axis of the other */
    const dc_kernel *k;
    uint32_t n, from[16], to[16];
} pairing;

static bool pair_loops(pairing *p, const dc_stmt *from, const dc_stmt *to)
{
    for (; from->kind == DC_STMT_LOOP; from = from->body, to = to->body) {
        if (to->kind != DC_STMT_LOOP || p->n == DC_COUNTOF(p->from) ||
            p->k->axis.at[from->axis].extent != p->k->axis.at[to->axis].extent)
            return false;
        p->from[p->n] = from->axis;
        p->to[p->n++] = to->axis;
    }
    return to->kind == DC_STMT_SET;
}

static uint32_t paired(const pairing *p, uint32_t axis)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->from[i] == axis)
            return p->to[i];
    return axis;
}

static bool same_index(const pairing *p, dc_ix a, dc_ix b);

static bool same_atom(const pairing *p, dc_atom a, dc_atom b)
{
    const dc_atom_node *x = &p->k->atom.at[a], *y = &p->k->atom.at[b];
    if (x->kind != y->kind)
        return false;
    switch ((dc_atom_kind)x->kind) {
    case DC_ATOM_AXIS:
        return paired(p, x->axis) == y->axis;
    case DC_ATOM_DIV:
    case DC_ATOM_MOD:
        return x->k == y->k && same_index(p, x->of, y->of);
    case DC_ATOM_VALUE:
        break;
    }
    return false;
}

/* Is `a` in the first loop what `b` is in the second? Terms of `a` with different axes stay different ones. */
static bool same_index(const pairing *p, dc_ix a, dc_ix b)
{
    const dc_ix_node *x = &p->k->ix.at[a], *y = &p->k->ix.at[b];
    if (x->c != y->c || x->n != y->n)
        return false;
    for (uint32_t i = 0; i < x->n; i++) {
        bool found = false;
        for (uint32_t j = 0; j < y->n; j++)
            found |= x->term[i].coef == y->term[j].coef &&
                     same_atom(p, x->term[i].atom, y->term[j].atom);
        if (!found)
            return false;
    }
    return true;
}

static int64_t absolute(int64_t a)
{
    return a < 0 ? -a : a;
}

/* Is another iteration of the loop another element, whatever the loops inside it do? */
static bool iterations_apart(const dc_kernel *k, dc_ix at, uint32_t axis)
{
    bool affine = true;
    const dc_ix_node *x = &k->ix.at[at];
    const int64_t step = dc_ix_stride(k, at, axis, &affine);
    int64_t rest = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &k->atom.at[x->term[i].atom];
        if (t->kind != DC_ATOM_AXIS || t->axis != axis)
            rest += absolute(x->term[i].coef) * (t->hi - t->lo);
    }
    return affine && rest < absolute(step);
}

/* Pipelining ----------------------------------------------------------------------------------- */

typedef struct stages {
    const dc_kernel *k;
    dc_overlap of;
    const dc_stmt *set; /* of `late` */
    bool *reads;        /* by value: it is part of what `late` stores */
} stages;

static bool indexes_load(const dc_kernel *k, dc_pred p)
{
    for (uint32_t i = 0; i < p.n; i++)
        if (dc_ix_loads(k, p.range[i].ix))
            return true;
    return false;
}

/* What `late` reads; false where an index of it is computed of what is loaded. */
static bool find_reads(stages *s, dc_arena *scratch)
{
    const dc_kernel *k = s->k;
    s->reads = DC_NEW_ARRAY(scratch, bool, k->vx.n);
    if (indexes_load(k, s->set->pred))
        return false;
    for (uint32_t n = 0; n < s->set->nput; n++) {
        const bool *part = dc_vx_parts(k, scratch, s->set->put[n].value);
        if (dc_ix_loads(k, s->set->put[n].at))
            return false;
        for (dc_vx v = 1; v <= s->set->put[n].value; v++) {
            const dc_vx_node *x = &k->vx.at[v];
            if (!part[v])
                continue;
            s->reads[v] = true;
            if (((x->kind == DC_VX_LOAD || x->kind == DC_VX_INDEX) && dc_ix_loads(k, x->at)) ||
                indexes_load(k, x->pred))
                return false;
        }
    }
    return true;
}

/* Does each load of the buffer by `late` come before that store, which is in the loop `with` or in none of them? */
static bool reads_first(const stages *s, uint32_t buf, dc_ix at, bool inside)
{
    pairing p = {.k = s->k};
    const bool alike = inside && pair_loops(&p, s->of.with, s->of.late);
    for (dc_vx v = 1; v < s->k->vx.n; v++) {
        const dc_vx_node *x = &s->k->vx.at[v];
        if (s->reads[v] && x->kind == DC_VX_LOAD && x->buf == buf &&
            !(alike && same_index(&p, at, x->at) &&
              iterations_apart(s->k, x->at, s->of.late->axis)))
            return false;
    }
    return true;
}

static bool outlives(const stages *s, const dc_stmt *t, bool inside)
{
    if (t->kind == DC_STMT_TILE)
        return reads_first(s, t->tile->c.buf, 0, false);
    if (t->kind == DC_STMT_LOOP) {
        for (const dc_stmt *i = t->body; i != NULL; i = i->next)
            if (!outlives(s, i, inside))
                return false;
        return true;
    }
    for (uint32_t n = 0; n < t->nput; n++)
        if (!reads_first(s, t->put[n].buf, t->put[n].at, inside))
            return false;
    return true;
}

const char *dc_nest_overlap(const dc_kernel *k, dc_arena *scratch, const dc_stmt *loop,
                            dc_overlap *out)
{
    stages s = {.k = k};
    const dc_stmt *late = loop->body;
    while (late != NULL && late->next != NULL)
        late = late->next;
    s.set = late != NULL ? set_of_part(k, late, true) : NULL;
    if (s.set == NULL)
        return "its last part is no serial loop that stores results alone";
    for (const dc_stmt *t = loop->body; t != late; t = t->next)
        if (set_of_part(k, t, false) != NULL &&
            k->axis.at[t->axis].extent == k->axis.at[late->axis].extent)
            s.of.with = t;
    if (s.of.with == NULL)
        return "no other part is a loop of as many iterations as its last, which fills a local";
    s.of.late = late;
    const dc_mark mark = dc_arena_mark(scratch);
    const char *why =
        find_reads(&s, scratch) ? NULL : "its last part computes indices of what it loads";
    for (const dc_stmt *t = loop->body; why == NULL && t != s.of.with->next; t = t->next)
        if (!outlives(&s, t, t == s.of.with))
            why = "what its last part reads would be overwritten before";
    dc_arena_rewind(scratch, mark);
    *out = s.of;
    return why;
}

/* Loads of vectors ----------------------------------------------------------------------------- */

typedef struct vector_loads { /* of one buffer, contiguous in memory */
    const dc_kernel *k;
    dc_arena *scratch;
    uint32_t buf, over;
    bool any, fixed,
        apart; /* is there one; one that does not move along `over`; one not by a constant */
} vector_loads;

static void see_value(vector_loads *l, dc_vx value, uint32_t vector)
{
    const dc_kernel *k = l->k;
    const dc_mark mark = dc_arena_mark(l->scratch);
    const bool *part = dc_vx_parts(k, l->scratch, value);
    for (dc_vx v = 1; v <= value; v++) {
        const dc_vx_node *x = &k->vx.at[v];
        bool along = true, over = true;
        if (!part[v] || x->kind != DC_VX_LOAD || x->buf != l->buf ||
            dc_ix_stride(k, x->at, vector, &along) != 1 || !along)
            continue;
        const int64_t step = dc_ix_stride(k, x->at, l->over, &over);
        l->any = true;
        l->fixed |= over && step == 0;
        l->apart |= !over;
    }
    dc_arena_rewind(l->scratch, mark);
}

static void see_list(vector_loads *l, const dc_stmt *first, uint32_t vector)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        const bool is = t->kind == DC_STMT_LOOP && l->k->axis.at[t->axis].kind == DC_AXIS_VECTOR;
        if (t->kind == DC_STMT_LOOP)
            see_list(l, t->body, is ? t->axis : vector);
        for (uint32_t n = 0; t->kind == DC_STMT_SET && vector != DC_NO_AXIS && n < t->nput; n++)
            see_value(l, t->put[n].value, vector);
    }
}

/* In the loops over `within` of a list. */
static void see_loops(vector_loads *l, const dc_stmt *first, uint32_t within)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP && t->axis == within)
            see_list(l, t->body, DC_NO_AXIS);
        else if (t->kind == DC_STMT_LOOP)
            see_loops(l, t->body, within);
}

bool dc_nest_loads_vectors(const dc_kernel *k, dc_arena *scratch, const dc_stmt *loop, uint32_t buf)
{
    vector_loads l = {.k = k, .scratch = scratch, .buf = buf, .over = loop->axis};
    see_list(&l, loop->body, DC_NO_AXIS);
    return l.any;
}

/* Are all loops over the axis inside loops over the other, or the same? */
static bool all_inside(const dc_stmt *first, uint32_t axis, uint32_t other)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP && t->axis != other &&
            (t->axis == axis || !all_inside(t->body, axis, other)))
            return false;
    return true;
}

static bool is_plain(const dc_kernel *k, uint32_t axis)
{
    const uint8_t kind = k->axis.at[axis].kind;
    return kind == DC_AXIS_SERIAL || kind == DC_AXIS_GRID;
}

const char *dc_nest_prefetches(const dc_kernel *k, dc_arena *scratch, uint32_t buf, uint32_t over,
                               uint32_t within)
{
    const dc_buffer *b = &k->buf.at[buf];
    vector_loads l = {.k = k, .scratch = scratch, .buf = buf, .over = over};
    if (b->scope != DC_SCOPE_PARAM || b->mode != DC_MODE_IN)
        return "it is no input";
    if (!is_plain(k, over) || !is_plain(k, within))
        return "both loops are serial or the grid";
    if (!all_inside(k->root, within, over))
        return "the second loop is not inside the first";
    see_loops(&l, k->root, within);
    if (!l.any)
        return "it is not read there in vectors that are contiguous in memory";
    if (l.fixed)
        return "what is read there is the same in the next iteration";
    if (l.apart && k->axis.at[over].kind != DC_AXIS_GRID)
        return "where the next iteration reads is only known of the grid";
    return NULL;
}

/* Of texts ------------------------------------------------------------------------------------- */

static const char *fault_of_buffer(const dc_kernel *k, dc_arena *scratch, uint32_t buf)
{
    const dc_buffer *b = &k->buf.at[buf];
    const bool param = b->scope == DC_SCOPE_PARAM;
    if (b->uncached && !param)
        return "no parameter, but uncached";
    if (b->nontemporal && (!param || b->mode != DC_MODE_OUT))
        return "no output, but stored past the caches";
    if (b->prefetch > 2)
        return "prefetched to no cache";
    if (b->prefetch == 0)
        return NULL;
    if (b->over >= k->axis.n || b->within >= k->axis.n)
        return "no such axis";
    return dc_nest_prefetches(k, scratch, buf, b->over, b->within);
}

static dc_traffic_fault fault_of_loops(const dc_kernel *k, dc_arena *scratch, const dc_stmt *first)
{
    dc_traffic_fault f = {0};
    dc_overlap o;
    for (const dc_stmt *t = first; t != NULL && f.what == NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        const dc_axis *a = &k->axis.at[t->axis];
        f = fault_of_loops(k, scratch, t->body);
        if (a->pipeline && f.what == NULL)
            f = (dc_traffic_fault){a->kind != DC_AXIS_GRID ? "pipelined, but not the grid"
                                                           : dc_nest_overlap(k, scratch, t, &o),
                                   a->name, t};
    }
    return f;
}

dc_traffic_fault dc_nest_traffic_fault(const dc_kernel *k, dc_arena *scratch)
{
    for (uint32_t i = 0; i < k->buf.n; i++) {
        const char *what = fault_of_buffer(k, scratch, i);
        if (what != NULL)
            return (dc_traffic_fault){what, k->buf.at[i].name, NULL};
    }
    return fault_of_loops(k, scratch, k->root);
}
