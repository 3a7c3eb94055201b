#include "core/graph/custom.h"

#include "core/graph/control.h"
#include "core/graph/grad.h"

#include <stdlib.h>

static dc_ref hole(dc_func *f, const dc_type *t, int64_t id, int64_t which)
{
    const int64_t attr[2] = {id, which};
    return dc_graph_make(f, DC_OP_HOLE, NULL, 0, attr, 2, t);
}

dc_ref dc_graph_barrier(dc_func *f, dc_ref a, dc_ref token)
{
    const int64_t id = f->node.n; /* the number that the node gets, since it is a new one */
    return dc_graph_make(f, DC_OP_BARRIER, (dc_ref[]){a, token}, 2, &id, 1, NULL);
}

int dc_node_inputs(const dc_node *n)
{
    return n->op == DC_OP_CUSTOM ? 1 + (int)n->attr[0] : n->op == DC_OP_BARRIER ? 1 : n->nin;
}

/* ---- pieces of a graph ----------------------------------------------------------------------- */

/*
 * A custom node that stands for the cotangent and the value by holes of this id: they are its own, whatever other node
 * has holes of the same id. Copies of a body have them.
 */
static bool binds(const dc_node *n, int64_t id)
{
    return id != 0 && n->op == DC_OP_CUSTOM && n->attr[1] == id;
}

static dc_ref oldest(const dc_func *f, const dc_ref *of, int n)
{
    dc_ref least = f->node.n;
    for (int i = 0; i < n; i++)
        least = of[i] < least ? of[i] : least;
    return least;
}

/*
 * What the roots are made of, from node `first` on; of custom nodes, the gradients only if asked for, and not of those
 * that bind id. Tables of these functions begin at node `first`: what a piece of a graph costs is its length.
 */
static bool *made_of(dc_job *j, const dc_func *f, const dc_ref *root, int n, bool gradients,
                     int64_t id, dc_ref first)
{
    bool *part = DC_NEW_ARRAY(&j->scratch, bool, f->node.n - first);
    for (int i = 0; i < n; i++)
        if (root[i] >= first)
            part[root[i] - first] = true;
    for (dc_ref r = f->node.n; r-- > first;) {
        if (!part[r - first])
            continue;
        const dc_node *x = dc_node_at(f, r);
        const int nin = gradients && !binds(x, id) ? x->nin : dc_node_inputs(x);
        for (int i = 0; i < nin; i++)
            if (x->in[i] >= first)
                part[x->in[i] - first] = true;
    }
    return part;
}

/* Is it one of `from`, of which `first` is the oldest, or made of one? Not through gradients of nodes that bind id. */
static bool *depending(dc_job *j, const dc_func *f, const dc_ref *from, int n, int64_t id,
                       dc_ref first)
{
    bool *does = DC_NEW_ARRAY(&j->scratch, bool, f->node.n - first);
    for (int i = 0; i < n; i++)
        does[from[i] - first] = true;
    for (dc_ref r = first; r < f->node.n; r++) {
        const dc_node *x = dc_node_at(f, r);
        const int nin = binds(x, id) ? dc_node_inputs(x) : x->nin;
        for (int i = 0; i < nin && !does[r - first]; i++)
            does[r - first] = x->in[i] >= first && does[x->in[i] - first];
    }
    return does;
}

/* Node r of `from` in `to`, with other attributes. */
static dc_ref make_again(dc_func *to, const dc_func *from, dc_ref r, const dc_ref *in,
                         const int64_t *attr)
{
    const char *where = to->where, *path = to->path;
    to->where = to->path = NULL;
    const dc_ref made = dc_node_at(from, r)->op == DC_OP_BARRIER
                            ? dc_graph_barrier(to, in[0], in[1])
                            : dc_graph_on(to, from, r, in, attr);
    to->where = where;
    to->path = path;
    dc_func_copy_origin(to, made, from, r);
    return made;
}

dc_ref dc_graph_again(dc_func *to, const dc_func *from, dc_ref r, const dc_ref *in)
{
    const dc_node *n = dc_node_at(from, r);
    int64_t attr[DC_LOOP_ATTRS];
    if (!dc_is_control(n))
        return make_again(to, from, r, in, n->attr);
    dc_bodies_import(to->module, from->module, n, attr, NULL);
    return make_again(to, from, r, in, attr);
}

typedef struct change { /* to[i] in the place of from[i] */
    const dc_ref *from, *to;
    int n;
    int64_t id; /* of holes that are replaced; 0 none */
} change;

typedef struct mapping { /* of nodes from `first` up to `end`; 0: they stay */
    dc_ref first, end;
    dc_ref *to;
} mapping;

static dc_ref mapped(const mapping *m, dc_ref r)
{
    return r >= m->first && r < m->end && m->to[r - m->first] != 0 ? m->to[r - m->first] : r;
}

/* Node r of f on what stands for its operands. */
static dc_ref again(dc_func *f, dc_ref r, const mapping *m)
{
    const dc_node *n = dc_node_at(f, r);
    dc_ref in[DC_MAX_OPERANDS];
    for (int i = 0; i < n->nin; i++)
        in[i] = mapped(m, n->in[i]);
    return dc_graph_again(f, f, r, in);
}

/* The roots after a change, in place; what does not depend on it is shared. */
static void replace_nodes(dc_job *j, dc_func *f, change c, dc_ref *root, int n)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    mapping m = {.first = oldest(f, c.from, c.n), .end = f->node.n}; /* older nodes stay */
    const bool *part = made_of(j, f, root, n, true, c.id, m.first);
    const bool *does = depending(j, f, c.from, c.n, c.id, m.first);
    m.to = DC_NEW_ARRAY(&j->scratch, dc_ref, m.end - m.first);
    for (int i = 0; i < c.n; i++)
        m.to[c.from[i] - m.first] = c.to[i];
    for (dc_ref r = m.first; r < m.end; r++) {
        const dc_ref at = r - m.first;
        if (part[at] && does[at] && m.to[at] == 0)
            m.to[at] = again(f, r, &m);
    }
    for (int i = 0; i < n; i++)
        root[i] = mapped(&m, root[i]);
    dc_arena_rewind(&j->scratch, mark);
}

void dc_graph_replace(dc_job *j, dc_func *f, const dc_ref *from, const dc_ref *to, int n,
                      dc_ref *root, int nroot)
{
    replace_nodes(j, f, (change){from, to, n, 0}, root, nroot);
}

static dc_ref replaced(dc_job *j, const dc_custom *c, dc_ref root, const dc_ref *to, int n)
{
    replace_nodes(j, c->f, (change){c->stand_in, to, n, 0}, &root, 1);
    return root;
}

static bool is_float(const dc_func *f, dc_ref r)
{
    return dc_dtype_is_float((dc_dtype)dc_node_at(f, r)->dtype);
}

typedef struct reading {
    dc_arena *a;
    dc_ref first;
    const bool *does; /* it is made of a stand-in, from `first` on */
    DC_VEC(dc_ref) node;
} reading;

/* What no stand-in is part of, and a gradient can flow to. */
static void note_read(reading *x, const dc_func *f, dc_ref r)
{
    const bool inside = r >= x->first && x->does[r - x->first];
    if (!inside && dc_node_at(f, r)->varies)
        DC_PUSH_IN(x->a, x->node, r);
}

static int by_age(const void *a, const void *b)
{
    const dc_ref x = *(const dc_ref *)a, y = *(const dc_ref *)b;
    return (x > y) - (x < y);
}

/*
 * What the body that made y of the stand-ins read besides, as far as gradients can flow to it: floats
 * that no stand-in is part of, read by a node that one is part of. Not what is constant. In order of age.
 */
static int captures(dc_job *j, const dc_custom *c, dc_ref y, dc_ref *out, int most)
{
    const dc_func *f = c->f;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const dc_ref first = oldest(f, c->stand_in, c->n);
    bool *part = made_of(j, f, &y, 1, false, 0, first);
    reading x = {
        .a = &j->scratch, .first = first, .does = depending(j, f, c->stand_in, c->n, 0, first)};
    int n = 0;
    for (int i = 0; i < c->n; i++)
        part[c->stand_in[i] - first] = false; /* what it reads is no capture */
    for (dc_ref r = first; r <= y; r++) {
        const dc_node *node = dc_node_at(f, r);
        if (!part[r - first] || !x.does[r - first] || node->op == DC_OP_STOP)
            continue;
        for (int i = 0; i < dc_node_inputs(node); i++)
            note_read(&x, f, node->in[i]);
    }
    note_read(&x, f, y);
    if (x.node.n > 1)
        qsort(x.node.at, x.node.n, sizeof *x.node.at, by_age);
    for (uint32_t i = 0; i < x.node.n; i++) {
        if (i > 0 && x.node.at[i] == x.node.at[i - 1])
            continue;
        if (n < most)
            out[n] = x.node.at[i];
        n++;
    }
    dc_arena_rewind(&j->scratch, mark);
    return n;
}

/* ---- without gradients ------------------------------------------------------------------------ */

static bool has_custom(const dc_func *f)
{
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        bool found = n->op == DC_OP_CUSTOM;
        for (int i = 0; i < dc_node_bodies(n) && !found; i++)
            found = has_custom(dc_body_at(f->module, n->attr[i]));
        if (found)
            return true;
    }
    return false;
}

/* The number of a body that is this one without gradients. */
static int64_t strip_body(dc_module *m, int64_t number)
{
    const dc_func *from = dc_body_at(m, number);
    if (!has_custom(from))
        return number;
    dc_func *to = dc_func_new(m, from->name);
    dc_ref *map = DC_NEW_ARRAY(&m->arena, dc_ref, from->node.n);
    dc_graph_params(to, from, map);
    dc_custom_strip(to, from, map);
    for (uint32_t i = 0; i < from->result.n; i++)
        DC_PUSH(to->result, map[from->result.at[i]]);
    number = dc_body_add(m, to);
    dc_func_drop(to);
    return number;
}

void dc_custom_strip(dc_func *to, const dc_func *from, dc_ref *map)
{
    bool *part = DC_NEW_ARRAY(&to->module->arena, bool, from->node.n);
    for (uint32_t i = 0; i < from->result.n; i++)
        part[from->result.at[i]] = true;
    for (dc_ref r = from->node.n; r-- > 1;) {
        const dc_node *n = dc_node_at(from, r);
        const int nin = n->op == DC_OP_CUSTOM ? 1 : n->nin;
        for (int i = 0; part[r] && i < nin; i++)
            part[n->in[i]] = true;
    }
    for (dc_ref r = 1; r < from->node.n; r++) {
        const dc_node *n = dc_node_at(from, r);
        dc_ref in[DC_MAX_OPERANDS];
        int64_t attr[DC_LOOP_ATTRS];
        if (!part[r] || map[r] != 0)
            continue;
        if (n->op == DC_OP_CUSTOM) {
            map[r] = map[n->in[0]];
            continue;
        }
        DC_ASSERT(n->op != DC_OP_HOLE, "hole %u is left", r);
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        for (int i = 0; dc_is_control(n) && i < n->nattr; i++)
            attr[i] = i < dc_node_bodies(n) ? strip_body(from->module, n->attr[i]) : n->attr[i];
        map[r] = make_again(to, from, r, in, dc_is_control(n) ? attr : n->attr);
    }
}

/* ---- recording ------------------------------------------------------------------------------- */

void dc_custom_begin(dc_func *f, const dc_ref *x, int n, dc_custom *out)
{
    DC_ASSERT(n <= DC_CUSTOM_INPUTS, "%d inputs", n);
    *out = (dc_custom){.f = f, .n = n};
    for (int i = 0; i < n; i++) {
        out->x[i] = x[i];
        out->stand_in[i] = dc_graph_barrier(f, x[i], x[i]);
    }
}

/* Holes of the type of the value. */
static void make_holes(dc_custom *c)
{
    const dc_type t = dc_node_type(c->f, c->y);
    c->id = c->f->node.n;
    c->dy = hole(c->f, &t, c->id, 0);
    c->y_again = hole(c->f, &t, c->id, 1);
}

dc_status dc_custom_value(dc_job *j, dc_custom *c, dc_ref y, dc_ref *captured)
{
    if (captures(j, c, y, captured, 1) > 0)
        return dc_fail(j, DC_ERR_GRAD_CAPTURED, &(dc_fact){.op = "custom_grad"});
    c->y = replaced(j, c, y, c->x, c->n);
    make_holes(c);
    return DC_OK;
}

void dc_custom_given(dc_func *f, const dc_ref *x, int n, dc_ref y, dc_custom *out)
{
    DC_ASSERT(n <= DC_CUSTOM_INPUTS, "%d inputs", n);
    *out = (dc_custom){.f = f, .n = n, .y = y};
    for (int i = 0; i < n; i++)
        out->x[i] = x[i];
    make_holes(out);
}

static dc_status check_gradients(dc_job *j, const dc_custom *c, const dc_ref *dx)
{
    for (int i = 0; i < c->n; i++) {
        if (dx[i] == 0)
            continue;
        const dc_type x = dc_node_type(c->f, c->x[i]), d = dc_node_type(c->f, dx[i]);
        char want[DC_TYPE_TEXT], got[DC_TYPE_TEXT];
        dc_type_print(&x, want, sizeof want);
        dc_type_print(&d, got, sizeof got);
        if (!dc_dtype_is_float((dc_dtype)x.dtype))
            return dc_failf(j, DC_ERR_GRAD_CUSTOM, "custom_grad",
                            "argument %d is %s and has no gradient, nil stands for none", i + 1,
                            want);
        if (!dc_type_same(&x, &d))
            return dc_failf(j, DC_ERR_GRAD_CUSTOM, "custom_grad",
                            "the gradient of argument %d is %s, the argument is %s", i + 1, got,
                            want);
    }
    return DC_OK;
}

dc_status dc_custom_end(dc_job *j, dc_custom *c, const dc_ref *dx, dc_ref *out)
{
    dc_ref in[DC_MAX_OPERANDS] = {c->y};
    int64_t attr[3] = {c->n, c->id, 0};
    int nin = 1;
    DC_TRY(check_gradients(j, c, dx));
    for (int i = 0; i < c->n; i++)
        in[nin++] = c->x[i];
    for (int i = 0; i < c->n; i++)
        if (dx[i] != 0) {
            in[nin++] = dx[i];
            attr[2] |= INT64_C(1) << i;
        }
    *out = dc_graph_make(c->f, DC_OP_CUSTOM, in, nin, attr, 3, NULL);
    return DC_OK;
}

dc_ref dc_custom_leaf(dc_func *f, dc_ref a)
{
    const int64_t attr[3] = {0, f->node.n, 0};
    return dc_graph_make(f, DC_OP_CUSTOM, &a, 1, attr, 3, NULL);
}

dc_status dc_custom_remat(dc_job *j, dc_custom *c, dc_ref y, dc_ref *out)
{
    dc_func *f = c->f;
    dc_ref wrt[DC_CUSTOM_INPUTS], dx[DC_CUSTOM_INPUTS], later[DC_CUSTOM_INPUTS],
        part[DC_CUSTOM_INPUTS];
    int where[DC_CUSTOM_INPUTS], nwrt = 0;
    const int n = c->n, more = captures(j, c, y, c->x + n, DC_CUSTOM_INPUTS - n);
    if (n + more > DC_CUSTOM_INPUTS)
        return dc_failf(j, DC_ERR_ARG, "remat", "the function reads %d tensors, %d is the most",
                        n + more, DC_CUSTOM_INPUTS);
    c->y = replaced(j, c, y, c->x, n);
    make_holes(c);
    for (int i = 0; i < n; i++)
        later[i] = dc_graph_barrier(f, c->x[i], c->dy);
    const dc_ref same = replaced(j, c, y, later, n);
    c->n += more;
    for (int i = 0; i < c->n; i++) {
        dx[i] = 0;
        if (!is_float(f, c->x[i]))
            continue;
        where[nwrt] = i;
        wrt[nwrt++] = i < n ? later[i] : c->x[i];
    }
    DC_TRY(dc_grad_pull(j, f, &same, &c->dy, 1, wrt, nwrt, part));
    for (int i = 0; i < nwrt; i++)
        dx[where[i]] = part[i];
    return dc_custom_end(j, c, dx, out);
}

void dc_custom_pull(dc_job *j, dc_func *f, dc_ref r, dc_ref cotangent, dc_ref *out)
{
    const dc_node n = *dc_node_at(f, r);
    const dc_type t = dc_node_type(f, r);
    const int given = n.nin - 1 - (int)n.attr[0];
    const dc_ref from[2] = {hole(f, &t, n.attr[1], 0), hole(f, &t, n.attr[1], 1)};
    dc_ref dx[DC_CUSTOM_INPUTS];
    for (int i = 0; i < given; i++)
        dx[i] = n.in[1 + n.attr[0] + i];
    replace_nodes(j, f, (change){from, (const dc_ref[]){cotangent, r}, 2, n.attr[1]}, dx, given);
    for (int i = 0, at = 0; i < (int)n.attr[0]; i++)
        out[i] = n.attr[2] >> i & 1 ? dx[at++] : 0;
}
