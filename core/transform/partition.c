#include "core/ir/host_call.h"
#include "core/ir/subgraph.h"
#include "core/transform/partition_impl.h"

#include <string.h>

/* ---- what users of a value want ------------------------------------------------------------------ */

static bool keeps_terms(const dc_node *n)
{
    switch ((dc_op)n->op) {
    case DC_OP_NEG:
    case DC_OP_ADD:
    case DC_OP_SUB:
    case DC_OP_RESHAPE:
    case DC_OP_PERMUTE:
    case DC_OP_SUM:
        return true;
    default:
        return false;
    }
}

static bool is_constant(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    while (n->op == DC_OP_EXPAND || n->op == DC_OP_RESHAPE || n->op == DC_OP_CAST)
        n = dc_node_at(f, n->in[0]);
    return n->op == DC_OP_CONST;
}

int dc_shard_scaled(const dc_partitioner *p, const dc_node *n)
{
    int at = -1;
    if (!dc_dtype_is_float((dc_dtype)n->dtype)) /* quotients of integers are rounded */
        return -1;
    if (n->op == DC_OP_MUL && is_constant(p->from, n->in[0]))
        at = 1;
    else if ((n->op == DC_OP_MUL || n->op == DC_OP_DIV) && is_constant(p->from, n->in[1]))
        at = 0;
    return at >= 0 && p->users[n->in[at]] == 1 ? at : -1;
}

static void count_users(dc_partitioner *p)
{
    const dc_func *f = p->from;
    for (uint32_t i = 0; i < f->result.n; i++)
        p->users[f->result.at[i]]++;
    for (dc_ref r = 1; r < f->node.n; r++)
        for (int i = 0; i < dc_node_at(f, r)->nin && p->live[r]; i++)
            p->users[dc_node_at(f, r)->in[i]]++;
}

static void add_hint(dc_partitioner *p, dc_ref r, const dc_sharding *s)
{
    for (uint32_t a = 0; a < p->mesh->naxis; a++)
        if (p->hint[r].dim[a] == 0)
            p->hint[r].dim[a] = s->dim[a];
}

/* From the results backwards, through what works element by element or only moves elements. */
static void look_back(dc_partitioner *p, const dc_sharding *result)
{
    const dc_func *f = p->from;
    dc_sharding in[DC_MAX_TYPED];
    for (uint32_t i = 0; i < f->result.n && result != NULL; i++)
        add_hint(p, f->result.at[i], &result[i]);
    for (dc_ref r = f->node.n; r-- > 1;) {
        const dc_node *n = dc_node_at(f, r);
        if (!p->live[r])
            continue;
        const int scaled = dc_shard_scaled(p, n);
        for (int i = 0; i < n->nin && !keeps_terms(n); i++)
            p->forced[n->in[i]] |= i != scaled;
        if (dc_is_control(n) || n->op == DC_OP_PICK || !dc_shard_fits(p, r, &p->hint[r]) ||
            !dc_shard_back(p, r, &p->hint[r], in))
            continue;
        for (int i = 0; i < n->nin; i++)
            add_hint(p, n->in[i], &in[i]);
    }
}

static void look_ahead(dc_partitioner *p)
{
    const dc_func *f = p->from;
    for (uint32_t i = 0; i < f->param.n; i++)
        p->data[f->param.at[i]] = p->from_data[i];
    for (dc_ref r = 1; r < f->node.n; r++)
        for (int i = 0; i < dc_node_at(f, r)->nin && !p->data[r]; i++)
            p->data[r] = p->data[dc_node_at(f, r)->in[i]];
}

/* ---- nodes --------------------------------------------------------------------------------------- */

static dc_status refuse_exchange(const dc_partitioner *p, dc_ref r)
{
    const dc_node *n = dc_shard_node(p, r);
    return dc_failf(p->j, DC_ERR_SHARDING, dc_op_row_of((dc_op)n->op)->name,
                    "the values of this function are whole ones that ranks have parts of, and here "
                    "ranks give each other values of their own");
}

/* Axes of the mesh of one rank split nothing. */
static dc_sharding without_ones(const dc_mesh *m, dc_sharding s)
{
    for (uint32_t a = 0; a < m->naxis; a++)
        s.dim[a] = m->size[a] == 1 ? 0 : s.dim[a];
    return s;
}

static void reshard(dc_partitioner *p, dc_ref r)
{
    const dc_node *n = dc_shard_node(p, r);
    dc_sharding s = {0};
    for (uint32_t a = 0; a < p->mesh->naxis; a++)
        s.dim[a] = (uint8_t)n->attr[a];
    s = without_ones(p->mesh, s);
    p->written = true;
    const dc_ref at = dc_shard_as(p, n->in[0], &s);
    p->written = false;
    dc_shard_add(p, r, &s, at);
}

/* The value of operand 0; sizes are those of whole axes, and say nothing of parts. */
static void same(dc_partitioner *p, dc_ref r)
{
    const dc_node *n = dc_shard_node(p, r);
    if (n->op == DC_OP_RESHARD) { /* also of terms, which it sums and splits at once */
        reshard(p, r);
        return;
    }
    const dc_sharding s = dc_shard_summed(p, n->in[0]);
    dc_ref at = dc_shard_as(p, n->in[0], &s);
    if (n->op == DC_OP_BARRIER)
        at = dc_graph_barrier(p->to, at, p->version[n->in[1]]->at);
    if (n->op == DC_OP_SET_SIZE && dc_sharding_parts(&s, p->mesh, (int)n->attr[0]) == 1)
        at = dc_graph_set_size(p->to, at, (int)n->attr[0], dc_shard_whole(p, n->in[1]));
    dc_shard_add(p, r, &s, at);
}

static dc_status make(dc_partitioner *p, dc_ref r)
{
    const dc_node *n = dc_shard_node(p, r);
    switch ((dc_op_class)dc_op_row_of((dc_op)n->op)->cls) {
    case DC_CLASS_EW:
        dc_shard_ew(p, r);
        return DC_OK;
    case DC_CLASS_RED:
        dc_shard_reduction(p, r);
        return DC_OK;
    case DC_CLASS_MOV:
        dc_shard_move(p, r);
        return DC_OK;
    case DC_CLASS_SRC:
        dc_shard_source(p, r);
        return DC_OK;
    case DC_CLASS_CON:
        if (n->op == DC_OP_DOT)
            dc_shard_dot(p, r);
        else
            dc_shard_conv(p, r);
        return DC_OK;
    case DC_CLASS_IDX:
        dc_shard_index(p, r);
        return DC_OK;
    case DC_CLASS_HST:
        dc_shard_rows(p, r, dc_host_call_axes((dc_op)n->op, n->attr));
        return DC_OK;
    case DC_CLASS_SAME:
        same(p, r);
        return DC_OK;
    case DC_CLASS_COM:
        return refuse_exchange(p, r);
    case DC_CLASS_CTL:
        return dc_shard_control(p, r);
    case DC_CLASS_FFT:
    case DC_CLASS_PART:
        break;
    }
    dc_shard_fallback(p, r);
    return DC_OK;
}

/* New nodes come from where the node came from that they stand for. */
static dc_status make_from(dc_partitioner *p, dc_ref r)
{
    dc_func *f = p->to;
    const uint32_t origin = dc_node_at(p->from, r)->origin;
    const char *where = f->where, *path = f->path;
    if (origin != 0)
        dc_func_from(f, p->from->origins.at[origin].where, p->from->origins.at[origin].path);
    p->user = r;
    const dc_status status = make(p, r);
    f->where = where;
    f->path = path;
    if (status == DC_OK && p->version[r]->at != 0)
        dc_func_copy_origin(f, p->version[r]->at, p->from, r);
    return status;
}

static dc_status make_all(dc_partitioner *p)
{
    for (dc_ref r = 1; r < p->from->node.n; r++)
        if (p->live[r] && p->version[r] == NULL)
            DC_TRY(make_from(p, r));
    return DC_OK;
}

/* ---- functions ----------------------------------------------------------------------------------- */

static void begin(dc_partitioner *p, const dc_func *f, const dc_sharding *result)
{
    dc_arena *a = &p->j->scratch;
    const uint32_t n = f->node.n;
    p->from = f;
    p->live = dc_func_live(f, a);
    p->version = DC_NEW_ARRAY(a, dc_version *, n);
    p->hint = DC_NEW_ARRAY(a, dc_sharding, n);
    p->forced = DC_NEW_ARRAY(a, bool, n);
    p->data = DC_NEW_ARRAY(a, bool, n);
    p->many = DC_NEW_ARRAY(a, dc_sharding *, n);
    p->many_at = DC_NEW_ARRAY(a, dc_ref *, n);
    p->index = DC_NEW_ARRAY(a, dc_ref, DC_MESH_AXES);
    p->users = DC_NEW_ARRAY(a, uint32_t, n);
    look_ahead(p);
    count_users(p);
    look_back(p, result);
}

static void add_places(dc_partitioner *p)
{
    const dc_type scalar = dc_type_scalar(DC_I32);
    for (uint32_t a = 0; a < p->mesh->naxis; a++)
        p->index[a] = dc_graph_param(p->to, &scalar, p->mesh->name[a]);
}

static void add_param(dc_partitioner *p, uint32_t i, const dc_sharding *s)
{
    const dc_ref r = p->from->param.at[i];
    const dc_type part = dc_shard_type(p, r, s);
    const dc_ref at = dc_graph_param(p->to, &part, p->from->label.at[i]);
    dc_func_copy_origin(p->to, at, p->from, r);
    dc_shard_add(p, r, s, at);
}

/* Does parameter i of a body depend on an argument? Carries do. */
static bool body_data(const dc_partitioner *outer, const dc_node *n, uint32_t i)
{
    if (n->op != DC_OP_LOOP)
        return outer->data[n->in[i + 1]];
    const dc_loop l = dc_loop_of(n);
    const int operand = (int)i - 1 + dc_loop_const(&l);
    const bool carry = operand >= dc_loop_carry(&l) && operand < dc_loop_x(&l);
    return i > 0 && (carry || outer->data[n->in[operand]]);
}

/* The body of the loop or branch that `outer` is at, up to its results. */
static dc_status begin_body(dc_partitioner *outer, const dc_func *body, const dc_sharding *param,
                            const dc_sharding *wanted, dc_partitioner *p)
{
    const dc_node *n = dc_shard_node(outer, outer->user);
    const bool loop = n->op == DC_OP_LOOP;
    const uint32_t places = loop ? 1 + (uint32_t)dc_loop_of(n).nconst : body->param.n;
    bool *data = DC_NEW_ARRAY(&outer->j->scratch, bool, body->param.n + 1);
    *p = (dc_partitioner){.j = outer->j,
                          .p = outer->p,
                          .mesh = outer->mesh,
                          .to = dc_func_new(outer->to->module, body->name),
                          .from_data = data};
    for (uint32_t i = 0; i < body->param.n; i++)
        data[i] = body_data(outer, n, i);
    begin(p, body, wanted);
    for (uint32_t i = 0; i <= body->param.n; i++) {
        if (i == places)
            add_places(p);
        if (i < body->param.n)
            add_param(p, i, &param[i]);
    }
    return make_all(p);
}

/* The one sharding that a parameter is exchanged to. */
static dc_sharding asked_for(const dc_partitioner *p, dc_ref r)
{
    const dc_version *v = p->version[r];
    const dc_version *other = v->next;
    const bool one = other != NULL && other->next == NULL && other->s.partial == 0;
    return one && dc_shard_gives(p, r, &other->s) ? other->s : v->s;
}

/* How r lies in terms. A sum of the carry `self`, which has none, and of terms: as these do. */
static dc_sharding terms_of(const dc_partitioner *p, dc_ref r, dc_ref self)
{
    const dc_node *n = dc_shard_node(p, r);
    const dc_sharding none = {0}, *s = dc_shard_of(p, r);
    if (p->forced[r])
        return none;
    if (s->partial != 0 || self == 0 || (n->op != DC_OP_ADD && n->op != DC_OP_SUB))
        return *s;
    for (int i = 0; i < 2; i++) {
        const dc_sharding of = n->in[i] != self ? terms_of(p, n->in[i], self) : none;
        if (of.partial != 0)
            return of;
    }
    return none;
}

/* The parameter that result i of the body that `outer` is at becomes; 0: none. */
static dc_ref carry_of(const dc_partitioner *outer, const dc_func *body, uint32_t i)
{
    const dc_node *n = dc_shard_node(outer, outer->user);
    if (n->op != DC_OP_LOOP || (int)i >= dc_loop_of(n).ncarry)
        return 0;
    return body->param.at[1 + dc_loop_of(n).nconst + (int)i];
}

dc_status dc_shard_body(dc_partitioner *outer, const dc_func *body, const dc_sharding *param,
                        dc_shard_facts *facts)
{
    dc_partitioner p;
    DC_TRY(begin_body(outer, body, param, NULL, &p));
    for (uint32_t i = 0; i < body->result.n; i++) {
        const dc_ref self = carry_of(outer, body, i);
        facts->result[i] = dc_shard_summed(&p, body->result.at[i]);
        facts->terms[i] = terms_of(&p, body->result.at[i], self);
        if (self != 0 && p.forced[self])
            facts->terms[i].partial = 0;
    }
    for (uint32_t i = 0; i < body->param.n; i++)
        facts->asked[i] = asked_for(&p, body->param.at[i]);
    dc_func_drop(p.to);
    return DC_OK;
}

static bool can_give(const dc_partitioner *p, dc_ref r, const dc_sharding *wanted)
{
    bool can = wanted->partial == 0 || dc_shard_is_zero(p, r);
    for (const dc_version *v = p->version[r]; v != NULL && !can; v = v->next)
        can = (wanted->partial & ~(uint32_t)v->s.partial) == 0;
    return can;
}

dc_status dc_shard_make_body(dc_partitioner *outer, const dc_func *body, const dc_sharding *param,
                             const dc_sharding *wanted, dc_func **out)
{
    const dc_node *n = dc_shard_node(outer, outer->user);
    dc_partitioner p;
    bool can = true;
    *out = NULL;
    DC_TRY(begin_body(outer, body, param, wanted, &p));
    for (uint32_t i = 0; i < body->result.n && can; i++)
        can = can_give(&p, body->result.at[i], &wanted[i]);
    if (!can) {
        dc_func_drop(p.to);
        return DC_OK;
    }
    for (uint32_t i = 0; i < body->result.n; i++) {
        p.user = body->result.at[i];
        DC_PUSH(p.to->result, dc_shard_as(&p, p.user, &wanted[i]));
    }
    dc_shard_keep_steps(&p, n->op == DC_OP_LOOP ? dc_loop_of(n).n : 1, outer, NULL);
    *out = p.to;
    return DC_OK;
}

static dc_status refuse_unwritten(dc_job *j, const dc_mesh *m, const dc_partition_step *s)
{
    char type[DC_TYPE_TEXT];
    dc_type_print(&s->type, type, sizeof type);
    const uint32_t first = (uint32_t)__builtin_ctz(s->mask);
    return dc_failf(j, DC_ERR_SHARDING, NULL,
                    "%s%s%s of %s over '%s' is needed, which was not asked for; without strict, "
                    "f:explain() lists "
                    "all of them",
                    s->where != NULL ? s->where : "", s->where != NULL ? ": " : "",
                    dc_op_row_of(s->op)->name, type, m->name[first]);
}

/* Sums are what the function says; that a value has to be brought together it does not. */
static dc_status check_strict(dc_job *j, const dc_partition *p)
{
    for (uint32_t i = 0; i < p->step.n && p->strict; i++) {
        const dc_partition_step *s = &p->step.at[i];
        if (!s->written && (s->op == DC_OP_ALL_GATHER || s->op == DC_OP_ALL_TO_ALL))
            return refuse_unwritten(j, p->mesh, s);
    }
    return DC_OK;
}

static const dc_sharding *simplified(dc_job *j, const dc_mesh *m, const dc_sharding *s, uint32_t n)
{
    dc_sharding *to = DC_NEW_ARRAY(&j->scratch, dc_sharding, n + 1);
    for (uint32_t i = 0; i < n; i++)
        to[i] = without_ones(m, s[i]);
    return to;
}

dc_status dc_partition_func(dc_job *j, const dc_func *f, dc_partition *how, dc_func **out)
{
    const dc_sharding *param = simplified(j, how->mesh, how->param, f->param.n);
    const dc_sharding *result = simplified(j, how->mesh, how->result, f->result.n);
    bool *data = DC_NEW_ARRAY(&j->scratch, bool, f->param.n + 1);
    dc_func *to = dc_func_new(f->module, f->name);
    dc_partitioner p = {.j = j, .p = how, .mesh = how->mesh, .to = to, .from_data = data};
    for (uint32_t i = 0; i < f->param.n; i++)
        data[i] = i < how->before;
    begin(&p, f, result);
    for (uint32_t i = 0; i <= f->param.n; i++) {
        if (i == how->before)
            add_places(&p);
        if (i < f->param.n)
            add_param(&p, i, &param[i]);
    }
    DC_TRY(make_all(&p));
    p.written = true;
    for (uint32_t i = 0; i < f->result.n; i++) {
        p.user = f->result.at[i];
        DC_PUSH(to->result, dc_shard_as(&p, f->result.at[i], &result[i]));
    }
    dc_shard_keep_steps(&p, 1, NULL, how);
    DC_TRY(check_strict(j, how));
    *out = dc_func_clone(f->module, to, NULL);
    dc_func_drop(to);
    return DC_OK;
}
