/*
 * Nodes of lazy expressions: leaves, operations out of a piece of graph, their life.
 *
 * An operation is built in a function that the context keeps for this and empties each time, with a
 * parameter for each different operand; what the results reach becomes nodes. So an operation costs
 * a few small allocations.
 */
#include "core/runtime/lazy.h"

#include "core/ir/exchange.h"
#include "core/runtime/devices.h"

#include <string.h>

/* ---- life ------------------------------------------------------------------------------------ */

dc_lazy *dc_lazy_retain(dc_lazy *n)
{
    n->refs++;
    return n;
}

/* One reference less; a node without references goes to the list of those to free. */
static void let_go(dc_lazy *n, dc_lazy **dead)
{
    if (--n->refs > 0)
        return;
    n->next = *dead;
    *dead = n;
}

static void let_go_operands(dc_lazy *n, dc_lazy **dead)
{
    for (uint32_t i = 0; i < n->nin; i++)
        let_go(n->in[i], dead);
    n->nin = 0;
}

static void drop_view(dc_lazy *n)
{
    if (n->view != NULL)
        dc_tensor_release(n->view->of);
    dc_xfree(n->view);
    n->view = NULL;
}

static void free_dead(dc_lazy *dead)
{
    while (dead != NULL) {
        dc_lazy *n = dead;
        dead = n->next;
        let_go_operands(n, &dead);
        n->rt->first->stats.lazy_nodes--;
        dc_tensor_release(n->value);
        drop_view(n);
        dc_xfree(n);
    }
}

void dc_lazy_release(dc_lazy *n)
{
    dc_lazy *dead = NULL;
    if (n == NULL)
        return;
    let_go(n, &dead);
    free_dead(dead);
}

static void release_lazy(void *n)
{
    dc_lazy_release(n);
}

void dc_lazy_defer(dc_job *j, dc_lazy *n)
{
    dc_job_defer(j, release_lazy, n);
}

static void keep_view(dc_lazy *n)
{
    dc_lazy_view v;
    if (!dc_lazy_view_of(n, &v))
        DC_BUG("a lazy tensor without a value is dropped");
    n->view = dc_xalloc(sizeof *n->view);
    *n->view = v;
    dc_tensor_retain(v.of);
}

void dc_lazy_drop(dc_lazy *n)
{
    dc_lazy *dead = NULL;
    if (n->param || (n->kind != DC_LAZY_OP && n->kind != DC_LAZY_PICK))
        return;
    if (n->value == NULL)
        keep_view(n);
    n->kind = DC_LAZY_LEAF;
    n->dropped = true;
    n->counts = false;
    n->ops = n->nodes = 0;
    let_go_operands(n, &dead);
    free_dead(dead);
}

dc_lazies *dc_lazy_of(dc_rt *rt)
{
    dc_job *j = dc_job_here();
    if (rt->lazy == NULL)
        rt->lazy = dc_xalloc(sizeof *rt->lazy);
    dc_lazies *l = rt->lazy;
    if (l->module == NULL) {
        dc_module *m = dc_module_new();
        dc_module_defer(j, m);
        l->scratch = dc_func_new(m, "operation");
        l->empty = dc_arena_mark(&m->arena);
        dc_job_keep(j, m);
        l->module = m;
    }
    return l;
}

static size_t node_bytes(uint32_t nin, uint32_t nattr)
{
    return sizeof(dc_lazy) + nin * sizeof(dc_lazy *) + nattr * sizeof(int64_t);
}

static dc_lazy *new_node(dc_rt *rt, dc_lazy_kind kind, const dc_type *t, uint32_t nin,
                         uint32_t nattr)
{
    dc_lazies *l = dc_lazy_of(rt);
    dc_lazy *n = dc_xalloc(node_bytes(nin, nattr));
    n->refs = 1;
    n->kind = (uint8_t)kind;
    n->rule = kind != DC_LAZY_LEAF;
    n->type = *t;
    n->serial = ++l->serial;
    n->rt = rt;
    n->attr = (int64_t *)(void *)(n + 1);
    n->in = (dc_lazy **)(void *)(n->attr + nattr);
    n->nattr = (uint16_t)nattr;
    rt->first->stats.lazy_nodes++;
    rt->first->handed += node_bytes(nin, nattr);
    return n;
}

/* Takes a reference; the facts about what is below follow. */
static void add_operand(dc_lazy *n, dc_lazy *in)
{
    const uint64_t ops = (uint64_t)n->ops + in->ops, nodes = (uint64_t)n->nodes + in->nodes;
    n->in[n->nin++] = dc_lazy_retain(in);
    n->param = n->param || in->param;
    n->rule = n->rule && in->rule;
    n->from.bit[0] |= in->from.bit[0];
    n->from.bit[1] |= in->from.bit[1];
    n->ops = ops < UINT32_MAX ? (uint32_t)ops : UINT32_MAX;
    n->nodes = nodes < UINT32_MAX ? (uint32_t)nodes : UINT32_MAX;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

dc_lazy_sources dc_lazy_source(uint64_t kind, uint64_t number)
{
    const uint64_t h = dc_hash_mix(kind, number);
    return (dc_lazy_sources){{(uint64_t)1 << (h & 63) | (uint64_t)1 << (h >> 8 & 63),
                              (uint64_t)1 << (h >> 16 & 63) | (uint64_t)1 << (h >> 24 & 63)}};
}

dc_lazy *dc_lazy_leaf(dc_rt *rt, dc_tensor *t)
{
    DC_UNUSED(rt);
    dc_lazy *n = new_node(t->store->rt, DC_LAZY_LEAF, &t->type, 0, 0);
    n->value = dc_tensor_retain(t);
    n->from = dc_lazy_source(0, n->serial);
    return n;
}

dc_lazy *dc_lazy_watch(dc_rt *rt, dc_tensor *t)
{
    dc_lazy *n = dc_lazy_leaf(rt, t);
    n->param = true;
    return n;
}

dc_status dc_lazy_read(dc_rt *rt, dc_job *j, dc_cell *c, dc_lazy **out)
{
    DC_TRY(dc_cell_check(c, j, NULL, true));
    DC_UNUSED(rt);
    dc_lazy *n = new_node(c->rt, DC_LAZY_LEAF, &c->type, 0, 0);
    dc_lazy_defer(j, n);
    n->value = dc_cell_show(c);
    dc_job_keep(j, n);
    n->cell = c->id;
    n->param = c->trainable;
    n->from = dc_lazy_source(1, c->id);
    *out = n;
    return DC_OK;
}

bool dc_lazy_is_numbers(const dc_lazy *n)
{
    enum { MOST = 256 }; /* visits: nodes that several read count again */
    const dc_lazy *todo[DC_LAZY_PENDING];
    uint32_t ntodo = 0, visits = 0;
    todo[ntodo++] = n;
    while (ntodo > 0) {
        const dc_lazy *x = todo[--ntodo];
        if (x->kind == DC_LAZY_NUMBER)
            continue;
        if (x->kind != DC_LAZY_OP || x->value != NULL || ++visits > MOST ||
            ntodo + x->nin > DC_LAZY_PENDING)
            return false;
        for (uint32_t i = 0; i < x->nin; i++)
            todo[ntodo++] = x->in[i];
    }
    return true;
}

dc_lazy *dc_lazy_number(dc_rt *rt, dc_dtype t, uint64_t bits)
{
    const dc_type type = dc_type_scalar(t);
    dc_lazy *n = new_node(rt, DC_LAZY_NUMBER, &type, 0, 0);
    n->bits = bits;
    return n;
}

bool dc_lazy_is_plain(dc_dtype t, uint64_t bits)
{
    return t == DC_BOOL || bits == dc_bits_of(t, 0) || bits == dc_bits_of(t, 1) ||
           bits == dc_bits_of(t, -1);
}

dc_status dc_lazy_on(dc_rt *rt, dc_job *j, dc_lazy *n, dc_lazy **out)
{
    dc_tensor *there;
    if (n->rt == rt) {
        *out = dc_lazy_retain(n);
        return DC_OK;
    }
    DC_TRY(dc_lazy_realize(n->rt, j, n));
    DC_TRY(dc_tensor_copy_to(rt, j, n->value, &there));
    dc_tensor_defer(j, there);
    *out = dc_lazy_leaf(rt, there);
    dc_job_keep(j, there);
    dc_tensor_release(there);
    return DC_OK;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* The operation at hand ends, whole or not. */
static void forget(void *what)
{
    dc_lazies *l = what;
    l->open = false;
    for (uint32_t i = 0; i < l->operand.n; i++)
        dc_lazy_release(l->operand.at[i]);
    for (uint32_t i = l->fresh.n; i-- > 0;)
        dc_lazy_release(l->fresh.at[i]);
    l->operand.n = l->fresh.n = 0;
}

dc_func *dc_lazy_begin(dc_rt *rt, dc_job *j)
{
    dc_lazies *l = dc_lazy_of(rt);
    DC_ASSERT(!l->open, "an operation inside an operation");
    dc_func_clear(l->scratch, l->empty);
    l->open = true;
    dc_job_defer(j, forget, l);
    return l->scratch;
}

dc_val dc_lazy_operand(dc_rt *rt, dc_lazy *n)
{
    dc_lazies *l = rt->lazy;
    const dc_type bare = dc_type_make((dc_dtype)n->type.dtype, n->type.rank, n->type.dim);
    for (uint32_t i = 0; i < l->operand.n; i++)
        if (l->operand.at[i] == n)
            return (dc_val){l->scratch->param.at[i], n->type};
    DC_ROOM(l->operand);
    const dc_ref r = dc_graph_param(l->scratch, &bare, NULL);
    DC_PUSH(l->operand, dc_lazy_retain(n));
    return (dc_val){r, n->type};
}

static void finish_node(dc_lazy *n)
{
    if (n->kind == DC_LAZY_OP && n->op == DC_OP_STOP) {
        n->param = false;
        n->from = (dc_lazy_sources){0};
    }
    n->nodes += n->nodes < UINT32_MAX;
}

dc_lazy *dc_lazy_node(dc_rt *rt, const dc_func *f, dc_ref r, dc_lazy *const *map)
{
    const dc_node *g = dc_node_at(f, r);
    const dc_type type = dc_node_type(f, r);
    dc_lazy *n = new_node(rt, DC_LAZY_OP, &type, g->nin, g->nattr);
    n->op = g->op;
    for (int i = 0; i < g->nattr; i++)
        n->attr[i] = g->attr[i];
    for (int i = 0; i < g->nin; i++) {
        add_operand(n, map[g->in[i]]);
        map[g->in[i]]->uses++;
    }
    n->param = n->param || dc_exchange_answers(f, g);
    n->rule = n->rule && !dc_exchange_answers(f, g);
    finish_node(n);
    return n;
}

void dc_lazy_room(dc_rt *rt)
{
    DC_ROOM(rt->lazy->fresh);
}

dc_lazy *dc_lazy_keep(dc_rt *rt, dc_lazy *n)
{
    DC_PUSH(rt->lazy->fresh, n);
    return n;
}

/* The same value under another name; kept by the operation at hand. */
static dc_lazy *alias(dc_rt *rt, dc_lazy *of, const dc_type *type)
{
    dc_lazy_room(rt);
    dc_lazy *n = dc_lazy_keep(rt, new_node(rt, DC_LAZY_OP, type, 1, 0));
    n->op = DC_OP_RESHAPE;
    add_operand(n, of);
    of->uses++;
    finish_node(n);
    return n;
}

static dc_lazy *pick_member(dc_rt *rt, dc_lazy *group, uint32_t index)
{
    const dc_lazy *body = group->in[index];
    dc_lazy_room(rt);
    dc_lazy *n = dc_lazy_keep(rt, new_node(rt, DC_LAZY_PICK, &body->type, 1, 0));
    n->index = index;
    add_operand(n, group);
    n->param = body->param; /* not that of its neighbours */
    n->from = body->from;
    n->where = body->where;
    n->path = body->path;
    return n;
}

void dc_lazy_group(dc_rt *rt, dc_lazy **member, int n)
{
    const dc_type none = dc_type_scalar(DC_BOOL);
    dc_lazy_room(rt);
    dc_lazy *g = dc_lazy_keep(rt, new_node(rt, DC_LAZY_GROUP, &none, (uint32_t)n, 0));
    for (int i = 0; i < n; i++)
        add_operand(g, member[i]);
    for (int i = 0; i < n; i++)
        member[i] = pick_member(rt, g, (uint32_t)i);
}

static bool same_names(const dc_type *a, const dc_type *b)
{
    for (int i = 0; i < a->rank; i++)
        if (a->name[i] != b->name[i])
            return false;
    return true;
}

dc_lazy *dc_lazy_name(dc_rt *rt, dc_lazy *n, const dc_type *type, const char *where,
                      const char *path)
{
    const dc_lazies *l = rt->lazy;
    const bool made = l->fresh.n > 0 && n->serial >= l->fresh.at[0]->serial;
    if (!made && dc_type_same(&n->type, type) && same_names(&n->type, type))
        return n;
    if (!made || n->counts)
        n = alias(rt, n, type);
    n->type = *type;
    n->where = where;
    n->path = path;
    n->counts = true;
    n->ops += n->ops < UINT32_MAX;
    if (n->from.bit[0] == 0) /* made of nothing: a source itself */
        n->from = dc_lazy_source(0, n->serial);
    return n;
}

static void mark_live(const dc_func *f, const dc_val *out, int nout, bool *live)
{
    for (int i = 0; i < nout; i++)
        live[out[i].ref] = true;
    for (dc_ref r = f->node.n; r-- > 1;)
        for (int i = 0; live[r] && i < f->node.at[r].nin; i++)
            live[f->node.at[r].in[i]] = true;
}

void dc_lazy_end(dc_rt *rt, dc_job *j, const dc_val *out, int nout, const char *where,
                 const char *path, dc_lazy **result)
{
    dc_lazies *l = rt->lazy;
    const dc_func *f = l->scratch;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_lazy **map = DC_NEW_ARRAY(&j->scratch, dc_lazy *, f->node.n);
    bool *live = DC_NEW_ARRAY(&j->scratch, bool, f->node.n);
    mark_live(f, out, nout, live);
    for (uint32_t i = 0; i < f->param.n; i++)
        map[f->param.at[i]] = l->operand.at[i];
    for (dc_ref r = 1; r < f->node.n; r++) {
        if (!live[r] || map[r] != NULL)
            continue;
        dc_lazy_room(rt);
        map[r] = dc_lazy_keep(rt, dc_lazy_node(rt, f, r, map));
        map[r]->where = where;
        map[r]->path = path;
    }
    for (int i = 0; i < nout; i++)
        result[i] = dc_lazy_name(rt, map[out[i].ref], &out[i].type, where, path);
    if (nout > 1)
        dc_lazy_group(rt, result, nout);
    dc_arena_rewind(&j->scratch, mark);
    dc_lazy_finish(rt, j, result, nout);
}

void dc_lazy_finish(dc_rt *rt, dc_job *j, dc_lazy *const *result, int n)
{
    for (int i = 0; i < n; i++)
        dc_lazy_retain(result[i]);
    dc_job_keep(j, rt->lazy);
    forget(rt->lazy);
}

/* ---- limits ---------------------------------------------------------------------------------- */

typedef struct counting {
    uint32_t ops, nodes, most_ops, most_nodes;
    DC_VEC(dc_lazy *) todo;
} counting;

static void count_node(dc_job *j, counting *c, dc_lazy *n, uint64_t epoch)
{
    if (n->epoch == epoch)
        return;
    n->epoch = epoch;
    c->ops += n->counts;
    c->nodes += n->kind == DC_LAZY_OP;
    if (n->nin > 0)
        DC_PUSH_IN(&j->scratch, c->todo, n);
}

/* n->ops and n->nodes are upper bounds where operands are shared. Makes them exact, up to the most. */
static void count_exactly(dc_rt *rt, dc_job *j, dc_lazy *n, uint32_t most_ops, uint32_t most_nodes)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const uint64_t epoch = ++rt->lazy->epoch;
    counting c = {.most_ops = most_ops, .most_nodes = most_nodes};
    count_node(j, &c, n, epoch);
    while (c.todo.n > 0 && c.ops <= most_ops && c.nodes <= most_nodes) {
        const dc_lazy *at = c.todo.at[--c.todo.n];
        for (uint32_t i = 0; i < at->nin; i++)
            count_node(j, &c, at->in[i], epoch);
    }
    n->ops = c.ops;
    n->nodes = c.nodes;
    dc_arena_rewind(&j->scratch, mark);
}

dc_status dc_lazy_limit(dc_rt *rt, dc_job *j, dc_lazy *n)
{
    const uint32_t ops = n->param ? DC_LAZY_RECIPE : DC_LAZY_PENDING - 1;
    const uint32_t nodes = n->param ? DC_LAZY_RECIPE * 16 : DC_LAZY_NODES;
    rt = n->rt;
    if (n->ops <= ops && n->nodes <= nodes)
        return DC_OK;
    count_exactly(rt, j, n, ops, nodes);
    if (n->ops <= ops && n->nodes <= nodes)
        return DC_OK;
    if (!n->param) {
        dc_lazy_view unread;
        return dc_lazy_look(rt, j, n, &unread);
    }
    return dc_fail(j, DC_ERR_LAZY_LONG, &(dc_fact){.num = {DC_LAZY_RECIPE}});
}
