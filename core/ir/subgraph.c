#include "core/ir/subgraph.h"

#include "core/ir/control.h"

dc_ref dc_graph_barrier(dc_func *f, dc_ref a, dc_ref token)
{
    const int64_t id = f->node.n; /* the number that the node gets, since it is a new one */
    return dc_graph_make(f, DC_OP_BARRIER, (dc_ref[]){a, token}, 2, &id, 1, NULL);
}

int dc_node_inputs(const dc_node *n)
{
    return n->op == DC_OP_CUSTOM ? 1 + (int)n->attr[0] : n->op == DC_OP_BARRIER ? 1 : n->nin;
}

/*
 * A custom node that stands for the cotangent and the value by holes of this id: they are its own, whatever other node
 * has holes of the same id. Copies of a body have them.
 */
static bool binds(const dc_node *n, int64_t id)
{
    return id != 0 && n->op == DC_OP_CUSTOM && n->attr[1] == id;
}

dc_ref dc_subgraph_oldest(const dc_func *f, const dc_ref *of, int n)
{
    dc_ref least = f->node.n;
    for (int i = 0; i < n; i++)
        least = of[i] < least ? of[i] : least;
    return least;
}

bool *dc_subgraph_of(dc_job *j, const dc_func *f, const dc_ref *root, int n, bool gradients,
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

bool *dc_subgraph_depending(dc_job *j, const dc_func *f, const dc_ref *from, int n, int64_t id,
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

void dc_subgraph_replace(dc_job *j, dc_func *f, dc_subgraph_change c, dc_ref *root, int n)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    mapping m = {.first = dc_subgraph_oldest(f, c.from, c.n),
                 .end = f->node.n}; /* older nodes stay */
    const bool *part = dc_subgraph_of(j, f, root, n, true, c.id, m.first);
    const bool *does = dc_subgraph_depending(j, f, c.from, c.n, c.id, m.first);
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
    dc_subgraph_replace(j, f, (dc_subgraph_change){from, to, n, 0}, root, nroot);
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
