/*
 * Schedule moves that copy a part of a buffer to a local (jit/moves/move_impl.h): cache_read, pack,
 * cache_write.
 *
 * The part is what one iteration of a loop touches. Its dims are the axes of the loops further
 * inside that the position depends on; the copy is dense in them, whatever the strides in the buffer are. pack
 * copies a value computed of the element, such as a cast or a scaled element, where that depends on nothing
 * but these dims.
 */
#include "jit/moves/move_impl.h"
#include "jit/nest/nest_in_place.h"
#include "jit/nest/nest_limit.h"

#include <string.h>

enum { MAX_DIMS = 16, MAX_PART = 1 << 24 };

typedef struct box { /* a part of a buffer */
    uint32_t buf;    /* the copy */
    dc_ix at;        /* position in the buffer copied, by the axes of the loops inside */
    dc_ix place;     /* position in the copy */
    dc_pred pred;    /* under which elements are copied */
    dc_vx load;      /* of the element */
    dc_vx value;     /* that is copied: the load, or a value computed of it */
    int n;
    uint32_t axis[MAX_DIMS]; /* outermost first */
    dc_limits limits;        /* from where on nobody looks at it */
    struct box *next;
} box;

typedef struct caching {
    dc_nest_edit *v;
    const dc_move *m;
    uint32_t of; /* the buffer */
    dc_stmt *loop;
    bool *inner; /* axes of loops inside */
    box *boxes;
    int found;
    bool more; /* copies have what no load may read: tests were left out */
} caching;

/* Dims --------------------------------------------------------------------------------------- */

/* Axes inside the loop that the position depends on, in the order of their loops. */
static bool find_dims(caching *c, const dc_access *x, box *b)
{
    const dc_kernel *k = c->v->k;
    b->n = 0;
    if (dc_ix_loads(k, x->at))
        return dc_nest_refuse(c->v, "positions in %s depend on integers that are loaded",
                              k->buf.at[c->of].name);
    for (const dc_path *p = x->path; p != NULL; p = p->up) {
        const uint32_t axis = p->loop->axis;
        if (!dc_ix_uses(k, x->at, axis))
            continue;
        if (b->n == MAX_DIMS)
            return dc_nest_refuse(c->v, "the part of %s has more than %d dims",
                                  k->buf.at[c->of].name, MAX_DIMS);
        memmove(b->axis + 1, b->axis, (size_t)b->n++ * sizeof *b->axis);
        b->axis[0] = axis;
    }
    return true;
}

/* Is it a loop inside that has but one iteration? */
static bool is_single(const caching *c, uint32_t axis)
{
    return c->inner[axis] && c->v->k->axis.at[axis].extent == 1;
}

/* Puts dims in the order given, which has each of them once. */
static bool order_dims(caching *c, box *b)
{
    const dc_kernel *k = c->v->k;
    int done = 0;
    if (c->m->naxis == 1)
        return true;
    for (uint32_t i = 1; i < c->m->naxis; i++) {
        const uint32_t axis = c->m->axis[i];
        int at = done;
        while (at < b->n && b->axis[at] != axis)
            at++;
        if (at == b->n && is_single(c, axis))
            continue;
        if (at == b->n)
            return dc_nest_refuse(c->v, "%s is no dim of what is read of %s (or named twice)",
                                  k->axis.at[axis].name, k->buf.at[c->of].name);
        memmove(b->axis + done + 1, b->axis + done, (size_t)(at - done) * sizeof *b->axis);
        b->axis[done++] = axis;
    }
    return done == b->n ||
           dc_nest_refuse(c->v, "the order leaves out %s", k->axis.at[b->axis[done]].name);
}

/* The position in the copy, dense in the dims. */
static dc_ix place_of(dc_kernel *k, const box *b)
{
    dc_ix place = dc_ix_const(k, 0);
    for (int i = 0; i < b->n; i++)
        place = dc_ix_add(k, dc_ix_mul(k, place, k->axis.at[b->axis[i]].extent),
                          dc_ix_axis(k, b->axis[i]));
    return place;
}

static bool make_copy(caching *c, box *b, dc_dtype t, const char *suffix)
{
    dc_kernel *k = c->v->k;
    int64_t count = 1;
    b->place = place_of(k, b);
    for (int i = b->n - 1; i >= 0; i--) {
        const int64_t extent = k->axis.at[b->axis[i]].extent;
        if (extent > MAX_PART / count)
            return dc_nest_refuse(c->v, "the part of %s has more than %d elements",
                                  k->buf.at[c->of].name, MAX_PART);
        count *= dc_max_i64(extent, 1);
    }
    b->buf = dc_move_new_buffer(c->v, c->of, suffix, t, count);
    return true;
}

static dc_stmt *wrap(dc_kernel *k, const box *b, dc_stmt *set)
{
    for (int i = b->n - 1; i >= 0; i--)
        set = dc_stmt_loop(k, b->axis[i], set);
    return set;
}

/* Gives the copying loops over the dims of the box axes of their own. */
static void rename_dims(caching *c, const box *b, dc_stmt *first)
{
    for (int i = 0; i < b->n; i++) {
        const uint32_t axis = dc_move_copy_axis(c->v, c->of, b->axis[i]);
        dc_subst s = dc_subst_axis(c->v->k, b->axis[i], dc_ix_axis(c->v->k, axis));
        dc_subst_stmt(&s, first);
        for (dc_stmt *t = first; t->kind == DC_STMT_LOOP; t = t->body)
            if (t->axis == b->axis[i])
                t->axis = axis;
    }
}

static bool may_copy(dc_nest_edit *v, const dc_move *m)
{
    const uint32_t axis = m->axis[0];
    if (!dc_move_has_buffer(v, m->buf) || !dc_move_has_axis(v, axis))
        return false;
    for (uint32_t i = 1; i < m->naxis; i++)
        if (m->axis[i] >= v->k->axis.n)
            return dc_nest_refuse(v, "there is no axis number %u", m->axis[i]);
    return v->k->axis.at[axis].kind != DC_AXIS_VECTOR ||
           dc_nest_refuse(v, "%s is vectorized: nothing can stand beside its assignments",
                          v->k->axis.at[axis].name);
}

static void enter(caching *c, dc_stmt *loop)
{
    c->loop = loop;
    c->boxes = NULL;
    c->inner = dc_nest_axis_set(c->v);
    dc_nest_axes_of(loop->body, c->inner);
}

/* Does the test depend on no loop inside other than those over dims? */
static bool is_of_dims(const caching *c, const box *b, dc_ix test)
{
    const dc_kernel *k = c->v->k;
    bool *others = dc_nest_axis_set(c->v);
    for (uint32_t i = 0; i < k->axis.n; i++)
        others[i] = i < k->axis.n && c->inner[i];
    for (int i = 0; i < b->n; i++)
        others[b->axis[i]] = false;
    return !dc_ix_loads(k, test) && !dc_ix_uses_any(k, test, others);
}

/* cache_read, pack --------------------------------------------------------------------------- */

/*
 * The tests to copy under: those of the load and of its assignment that depend on nothing but dims. Where
 * others are left out, the position has to be inside the buffer without them.
 */
static bool find_tests(caching *c, const dc_access *x, box *b, dc_pred *rest)
{
    dc_kernel *k = c->v->k;
    const dc_pred p = dc_access_tests(x), q = x->pred;
    bool all = true;
    b->pred = *rest = (dc_pred){0};
    for (uint32_t i = 0; i < p.n + q.n; i++) {
        const dc_range r = i < p.n ? p.range[i] : q.range[i - p.n];
        const bool can = is_of_dims(c, b, r.ix);
        if (can)
            b->pred = dc_pred_and(k, b->pred, r.ix, r.n);
        else if (i >= p.n)
            *rest = dc_pred_and(k, *rest, r.ix, r.n);
        all = all && can;
    }
    c->more |= !all;
    int64_t lo, hi;
    dc_nest_range(c->v, x->at, b->pred, (dc_pred){0}, &lo, &hi);
    return all || (lo >= 0 && hi < k->buf.at[c->of].count) ||
           dc_nest_refuse(c->v,
                          "the copy would read outside of %s: its loads stand under tests on "
                          "other loops",
                          k->buf.at[c->of].name);
}

/* Is the value computed of parameters, at positions that depend on no loops inside other than those over dims? */
static bool depends_on_dims(const caching *c, const box *b, dc_vx value)
{
    const dc_kernel *k = c->v->k;
    const bool *part = dc_vx_parts(k, c->v->tmp, value);
    for (dc_vx i = 1; i <= value; i++) {
        const dc_vx_node *n = &k->vx.at[i];
        if (!part[i] || n->kind == DC_VX_OP || n->kind == DC_VX_CONST)
            continue;
        if (n->kind != DC_VX_LOAD || k->buf.at[n->buf].mode != DC_MODE_IN ||
            !is_of_dims(c, b, n->at))
            return false;
        for (uint32_t t = 0; t < n->pred.n; t++)
            if (!is_of_dims(c, b, n->pred.range[t].ix))
                return false;
    }
    return true;
}

/* The only operation of the statement that uses the value; 0: none or several do. */
static dc_vx only_user(const caching *c, const dc_stmt *s, dc_vx value)
{
    const dc_kernel *k = c->v->k;
    const bool *part = dc_vx_parts(k, c->v->tmp, s->put[0].value);
    dc_vx found = 0;
    for (dc_vx i = value + 1; i <= s->put[0].value; i++)
        for (int o = 0; part[i] && k->vx.at[i].kind == DC_VX_OP && o < k->vx.at[i].n; o++)
            if (k->vx.at[i].in[o] == value) {
                if (found != 0 && found != i)
                    return 0;
                found = i;
            }
    return found;
}

/* The largest value that depends on the load and nothing else that changes in the loop, below the term of a reduction. */
static dc_vx largest_user(const caching *c, const dc_access *x, const box *b)
{
    const dc_kernel *k = c->v->k;
    const dc_stmt *s = x->stmt;
    dc_vx top = x->load;
    if (s->kind != DC_STMT_SET || s->nput != 1 || !s->reduces)
        return top;
    const dc_vx term = k->vx.at[s->put[0].value].in[1];
    for (dc_vx u = only_user(c, s, top); u != 0 && u != term; u = only_user(c, s, u)) {
        const dc_dtype t = (dc_dtype)k->vx.at[u].dtype;
        if (u == s->put[0].value || dc_dtype_is_short(t) || t == DC_BOOL ||
            !depends_on_dims(c, b, u))
            break;
        top = u;
    }
    return top;
}

static bool is_same(const box *b, const box *like)
{
    return b->at == like->at && b->n == like->n &&
           (b->value == like->value || (b->value == b->load && like->value == like->load)) &&
           memcmp(b->axis, like->axis, (size_t)b->n * sizeof *b->axis) == 0 &&
           b->pred.n == like->pred.n && dc_pred_implied(b->pred, like->pred, (dc_pred){0}) &&
           dc_pred_implied(like->pred, b->pred, (dc_pred){0});
}

/* The box as it is by the axes of another one that has as many iterations; n is 0 where there is no such box. */
static box by_axes_of(caching *c, const box *x, const box *other)
{
    dc_kernel *k = c->v->k;
    box b = *x;
    if (x->n != other->n || x->value != x->load)
        return (box){0};
    for (int i = 0; i < b.n; i++) {
        if (b.axis[i] == other->axis[i])
            continue;
        if (dc_ix_uses(k, x->at, other->axis[i]) ||
            k->axis.at[b.axis[i]].extent != k->axis.at[other->axis[i]].extent)
            return (box){0};
        dc_subst s = dc_subst_axis(k, b.axis[i], dc_ix_axis(k, other->axis[i]));
        b.at = dc_subst_ix(&s, b.at);
        b.pred = dc_subst_pred(&s, b.pred);
        b.axis[i] = other->axis[i];
    }
    return b;
}

/* A copy of the same part, be it that other loops go through it. */
static box *find_box(caching *c, const box *like)
{
    for (box *b = c->boxes; b != NULL; b = b->next)
        if (is_same(b, like))
            return b;
    for (box *b = c->boxes; b != NULL && like->n > 0; b = b->next) {
        const box same = by_axes_of(c, like, b);
        if (same.n > 0 && b->value == b->load && is_same(b, &same))
            return b;
    }
    return NULL;
}

/* The limits of a use that say what is copied, too. */
static void find_limits(caching *c, const dc_access *x, box *b)
{
    const dc_stmt *s = x->stmt;
    for (uint32_t i = 0; i < s->nlimit && b->limits.n < DC_NEST_LIMITS; i++)
        if (is_of_dims(c, b, s->limit[i].ix) && dc_nest_limit_hides(c->v, s, s->limit[i], b->value))
            b->limits.at[b->limits.n++] = s->limit[i];
}

/* Those of both; a use by other loops has none in common. */
static void keep_limits(box *b, const box *use)
{
    dc_limits both = {0};
    for (int i = 0; i < b->limits.n; i++)
        for (int n = 0; n < use->limits.n; n++)
            if (b->limits.at[i].ix == use->limits.at[n].ix &&
                b->limits.at[i].buf == use->limits.at[n].buf)
                both.at[both.n++] = b->limits.at[i];
    b->limits = both;
}

/* Replaces the load, or the value computed of it, by a load of the copy. */
static bool read_copy(caching *c, const dc_access *x, dc_vx_map *map)
{
    dc_pred rest;
    box b = {.at = x->at, .load = x->load};
    if (!find_dims(c, x, &b) || !order_dims(c, &b) || !find_tests(c, x, &b, &rest))
        return false;
    const bool computes = c->m->kind == DC_MOVE_PACK && rest.n == 0;
    b.value = computes ? largest_user(c, x, &b) : x->load;
    find_limits(c, x, &b);
    box *found = find_box(c, &b);
    if (found != NULL) {
        keep_limits(found, &b);
    } else {
        if (!make_copy(c, &b, (dc_dtype)c->v->k->vx.at[b.value].dtype, ".c"))
            return false;
        found = DC_NEW(c->v->tmp, box);
        *found = b;
        box **end = &c->boxes;
        while (*end != NULL)
            end = &(*end)->next;
        *end = found;
    }
    map->to[b.value] = dc_vx_load(c->v->k, found->buf, place_of(c->v->k, &b), rest);
    return true;
}

/* All loads of one statement; a[0 .. n - 1] are its accesses. */
static bool read_copies(caching *c, const dc_access *a, uint32_t n)
{
    dc_vx_map map = dc_nest_vx_map(c->v);
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        if (a[i].buf != c->of)
            continue;
        if (a[i].load == 0)
            return dc_nest_refuse(c->v, "a matrix instruction reads %s: cache before tensorize",
                                  c->v->k->buf.at[c->of].name);
        if (!read_copy(c, &a[i], &map))
            return false;
        any = true;
    }
    if (any)
        dc_nest_replace(c->v, a[0].stmt, map);
    return true;
}

/* Puts the loads of the value under the tests of the box. */
static void guard_value(caching *c, const box *b, dc_stmt *set)
{
    const dc_kernel *k = c->v->k;
    const bool *part = dc_vx_parts(k, c->v->tmp, b->value);
    dc_vx_map map = dc_nest_vx_map(c->v);
    for (dc_vx i = 1; i <= b->value; i++) {
        const dc_vx_node n = k->vx.at[i];
        dc_pred p = n.pred;
        if (!part[i] || n.kind != DC_VX_LOAD)
            continue;
        for (uint32_t t = 0; i != b->load && t < b->pred.n; t++)
            p = dc_pred_and(c->v->k, p, b->pred.range[t].ix, b->pred.range[t].n);
        map.to[i] = dc_vx_load(c->v->k, n.buf, n.at, i == b->load ? b->pred : p);
    }
    dc_nest_replace(c->v, set, map);
}

static void put_copies(caching *c)
{
    dc_kernel *k = c->v->k;
    dc_stmt *first = NULL, **tail = &first;
    for (const box *b = c->boxes; b != NULL; b = b->next) {
        dc_stmt *set = dc_stmt_set(k, 1);
        set->put[0] = (dc_put){b->buf, b->place, b->value};
        for (int i = 0; i < b->limits.n; i++)
            dc_stmt_add_limit(k, set, b->limits.at[i]);
        guard_value(c, b, set);
        *tail = wrap(k, b, set);
        rename_dims(c, b, *tail);
        tail = &(*tail)->next;
    }
    *tail = c->loop->body;
    c->loop->body = first;
}

/* Do all loops inside around uses of the buffer have iterations? Else there may be nothing to copy. */
static bool all_run(dc_nest_edit *v, const dc_accesses *a, uint32_t buf)
{
    for (uint32_t i = 0; i < a->n; i++)
        for (const dc_path *p = a->at[i].path; p != NULL && a->at[i].buf == buf; p = p->up)
            if (v->k->axis.at[p->loop->axis].extent == 0)
                return dc_nest_refuse(v, "%s has no iterations", v->k->axis.at[p->loop->axis].name);
    return true;
}

static bool read_in_loop(dc_nest_edit *v, dc_stmt **slot, void *arg)
{
    caching *c = arg;
    const dc_accesses a = dc_nest_accesses(v, (*slot)->body, NULL);
    if (!dc_access_loads(&a, c->of))
        return true;
    if (dc_access_stores(&a, c->of))
        return dc_nest_refuse(v, "iterations of %s also store to %s",
                              v->k->axis.at[(*slot)->axis].name, v->k->buf.at[c->of].name);
    if (!all_run(v, &a, c->of))
        return false;
    enter(c, *slot);
    c->found++;
    for (uint32_t i = 0, n; i < a.n; i += n) {
        for (n = 1; i + n < a.n && a.at[i + n].stmt == a.at[i].stmt;)
            n++;
        if (!read_copies(c, &a.at[i], n))
            return false;
    }
    put_copies(c);
    return true;
}

bool dc_move_cache_read(dc_nest_edit *v, const dc_move *m)
{
    const uint32_t axis = m->axis[0];
    caching c = {.v = v, .m = m, .of = m->buf};
    return may_copy(v, m) && dc_nest_each_loop(v, &v->k->root, axis, read_in_loop, &c) &&
           (c.found > 0 || dc_nest_refuse(v, "nothing inside %s reads %s", v->k->axis.at[axis].name,
                                          v->k->buf.at[c.of].name)) &&
           (!c.more || dc_nest_keeps_in_place(v, axis));
}

/* cache_write -------------------------------------------------------------------------------- */

/* The first store to the buffer; there is one. */
static const dc_access *first_store(const caching *c, const dc_accesses *a)
{
    uint32_t i = 0;
    while (a->at[i].buf != c->of || !a->at[i].store)
        i++;
    return &a->at[i];
}

/* Are all accesses at one position, under tests that imply those of the first store? */
static bool one_position(caching *c, const dc_accesses *a, box *b)
{
    dc_nest_edit *v = c->v;
    const char *name = v->k->buf.at[c->of].name;
    const dc_access *one = first_store(c, a);
    b->at = one->at;
    b->pred = one->stmt->pred;
    for (uint32_t i = 0; i < a->n; i++) {
        const dc_access *x = &a->at[i];
        if (x->buf != c->of)
            continue;
        if (x->tile)
            return dc_nest_refuse(v, "a matrix instruction works on %s", name);
        if (x->at != b->at)
            return dc_nest_refuse(v, "%s is used at more than one position", name);
        if (!dc_pred_implied(b->pred, dc_access_tests(x), x->pred))
            return dc_nest_refuse(v, "uses of %s stand under different tests", name);
    }
    if (!find_dims(c, one, b))
        return false;
    for (uint32_t i = 0; i < b->pred.n; i++)
        if (!is_of_dims(c, b, b->pred.range[i].ix))
            return dc_nest_refuse(v, "a store to %s stands under a test on another loop", name);
    return true;
}

/* Do different elements of the box belong to different elements of the buffer? */
static bool is_injective(caching *c, const box *b)
{
    dc_nest_edit *v = c->v;
    bool *dims = dc_nest_axis_set(v);
    for (int i = 0; i < b->n; i++)
        dims[b->axis[i]] = true;
    for (int i = 0; i < b->n; i++)
        if (!dc_nest_distinct(v, b->at, b->pred, b->axis[i], dims))
            return dc_nest_refuse(v, "iterations of %s may store to the same element of %s",
                                  v->k->axis.at[b->axis[i]].name, v->k->buf.at[c->of].name);
    return true;
}

/* Limits of all stores, from where on nobody needs the elements. */
static void find_needless(caching *c, const dc_accesses *a, box *b)
{
    const dc_stmt *one = first_store(c, a)->stmt;
    for (uint32_t n = 0; n < one->nlimit && b->limits.n < DC_NEST_LIMITS; n++) {
        const dc_limit limit = one->limit[n];
        bool all = is_of_dims(c, b, limit.ix);
        for (uint32_t i = 0; i < a->n && all; i++) {
            bool has = a->at[i].buf != c->of || !a->at[i].store;
            for (uint32_t m = 0; m < a->at[i].stmt->nlimit && !has; m++)
                has = a->at[i].stmt->limit[m].ix == limit.ix &&
                      a->at[i].stmt->limit[m].buf == limit.buf;
            all = has;
        }
        if (all && dc_nest_limit_of_elements(c->v, c->of, b->at, limit))
            b->limits.at[b->limits.n++] = limit;
    }
}

static void write_to_copy(caching *c, const dc_accesses *a, const box *b)
{
    dc_kernel *k = c->v->k;
    dc_vx_map map = dc_nest_vx_map(c->v);
    const dc_stmt *done = NULL;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->at[i].buf == c->of && a->at[i].load != 0)
            map.to[a->at[i].load] = dc_vx_load(k, b->buf, b->place, a->at[i].pred);
    for (uint32_t i = 0; i < a->n; i++) {
        const dc_access *x = &a->at[i];
        if (x->buf != c->of)
            continue;
        if (x->load != 0 && x->stmt != done)
            dc_nest_replace(c->v, x->stmt, map);
        if (x->store) {
            x->stmt->put[x->put].buf = b->buf;
            x->stmt->put[x->put].at = b->place;
        }
        done = x->stmt;
    }
}

/* Loads the copy first, where an iteration reads elements before it stores them. */
static bool copy_in(caching *c, const box *b)
{
    dc_nest_edit *v = c->v;
    dc_kernel *k = v->k;
    if (dc_nest_written_first(v, c->loop->body, b->buf))
        return true;
    if (k->buf.at[c->of].scope == DC_SCOPE_PARAM)
        return dc_nest_refuse(v, "an iteration of %s does not surely store what it reads of %s",
                              k->axis.at[c->loop->axis].name, k->buf.at[c->of].name);
    dc_stmt *set = dc_stmt_set(k, 1);
    set->put[0] = (dc_put){b->buf, b->place, dc_vx_load(k, c->of, b->at, (dc_pred){0})};
    set->pred = b->pred;
    dc_stmt *nest = wrap(k, b, set);
    nest->next = c->loop->body;
    c->loop->body = nest;
    dc_stmt *rest = nest->next;
    nest->next = NULL;
    rename_dims(c, b, nest);
    nest->next = rest;
    return true;
}

static bool copy_out(caching *c, const box *b)
{
    dc_nest_edit *v = c->v;
    dc_kernel *k = v->k;
    dc_stmt *set = dc_stmt_set(k, 1), **end = &c->loop->body;
    set->put[0] = (dc_put){c->of, b->at, dc_vx_load(k, b->buf, b->place, (dc_pred){0})};
    set->pred = b->pred;
    for (int i = 0; i < b->limits.n; i++)
        dc_stmt_add_limit(k, set, b->limits.at[i]);
    while (*end != NULL)
        end = &(*end)->next;
    *end = wrap(k, b, set);
    if (!dc_nest_written_first(v, c->loop->body, b->buf))
        return dc_nest_refuse(v,
                              "an iteration of %s does not surely store what it reads or leaves "
                              "in %s",
                              k->axis.at[c->loop->axis].name, k->buf.at[c->of].name);
    rename_dims(c, b, *end);
    return true;
}

static bool write_in_loop(dc_nest_edit *v, dc_stmt **slot, void *arg)
{
    caching *c = arg;
    dc_stmt *loop = *slot;
    const dc_accesses a = dc_nest_accesses(v, loop->body, NULL);
    box b = {0};
    if (!dc_access_stores(&a, c->of))
        return true;
    enter(c, loop);
    c->found++;
    if (!one_position(c, &a, &b) || !is_injective(c, &b) ||
        !make_copy(c, &b, (dc_dtype)v->k->buf.at[c->of].dtype, ".w"))
        return false;
    find_needless(c, &a, &b);
    write_to_copy(c, &a, &b);
    return copy_in(c, &b) && copy_out(c, &b);
}

bool dc_move_cache_write(dc_nest_edit *v, const dc_move *m)
{
    const uint32_t axis = m->axis[0];
    caching c = {.v = v, .m = m, .of = m->buf};
    return may_copy(v, m) && dc_nest_each_loop(v, &v->k->root, axis, write_in_loop, &c) &&
           (c.found > 0 || dc_nest_refuse(v, "nothing inside %s stores to %s",
                                          v->k->axis.at[axis].name, v->k->buf.at[c.of].name));
}
