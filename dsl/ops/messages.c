/*
 * For stdlib/ranks.lua and stdlib/pipeline.lua: what a rank sends to another one. In a trace messages are threaded by the token, a
 * state that they read and set (dc_dsl.token); outside each is done at once.
 */
#include "core/autodiff/custom.h"
#include "core/build/build.h"
#include "core/ir/exchange.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/place.h"
#include "dsl/base/ranks.h"
#include "dsl/base/trace.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <string.h>

/* Ranks do together now what this line asks for; where that raises, they do nothing together any more. */
void dc_messages_meet_here(lua_State *L, dc_dsl *d)
{
    d->rt->job.meeting = dc_place_find(L, d).where;
}

/* ---- the token ------------------------------------------------------------------------------- */

/* What stands behind the messages that this trace has made so far; 0: there are none. */
static dc_ref last_token(const dc_trace *t)
{
    uint32_t at;
    if (t == NULL || t->d->token == NULL || !dc_ptrmap_find(&t->known, t->d->token, &at))
        return 0;
    return t->cell.at[at].read.at[t->cell.at[at].read.n - 1].ref;
}

/* The same value, which is computed behind the messages of the trace. */
void dc_messages_come_after(dc_func *f, const dc_trace *t, dc_val *v)
{
    const dc_ref token = last_token(t);
    if (token != 0)
        v->ref = dc_graph_behind(f, v->ref, token);
}

/* ---- messages ---------------------------------------------------------------------------------- */

typedef struct message {
    int nattr;
    int64_t attr[DC_EXCHANGE_ATTRS];
    dc_type type;   /* of what is received */
    dc_trace *t;    /* NULL: it is sent or received now */
    dc_cell *token; /* what messages of a trace come after */
} message;

/* What the next message comes after. Outside of a trace each is done by itself. */
static dc_ref token_of(dc_func *f, const message *m)
{
    const dc_type f32 = dc_type_scalar(DC_F32);
    if (m->t == NULL)
        return dc_graph_const(f, &f32, 0);
    const dc_trace_cell *c = dc_trace_cell_of(m->t, m->token);
    return c->read.at[c->read.n - 1].ref;
}

/* What comes after it in the function reads the token: so it is kept, and in its place. */
static dc_status set_token(dc_job *j, dc_func *f, const message *m, dc_ref r)
{
    dc_val v = {r, dc_type_scalar(DC_F32)};
    if (m->t == NULL)
        return DC_OK;
    if (dc_node_at(f, r)->op != DC_OP_SEND)
        v.ref = dc_graph_arrived(f, r, token_of(f, m));
    return dc_param_record(j, m->t, m->token, v);
}

static dc_status build_send(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const message *m = arg;
    const dc_ref from[2] = {in[0].ref, token_of(f, m)};
    DC_TRY(dc_ops_need_real(j, in));
    out->type = dc_type_scalar(DC_F32);
    DC_TRY(dc_make(j, f, DC_OP_SEND, from, 2, m->attr, m->nattr, NULL, &out->ref));
    return set_token(j, f, m, out->ref);
}

static dc_status build_recv(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const message *m = arg;
    const dc_ref after = token_of(f, m);
    DC_UNUSED(in);
    out->type = m->type;
    DC_TRY(dc_make(j, f, DC_OP_RECV, &after, 1, m->attr, m->nattr, &m->type, &out->ref));
    return set_token(j, f, m, out->ref);
}

static dc_status build_settle(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    *out = in[0];
    return set_token(j, f, arg, in[0].ref);
}

/* In dc.vmap a message would be one of each row. */
static bool is_mapped(const dc_trace *t)
{
    bool mapped = t != NULL && t->d->mapping != NULL;
    for (const dc_trace_body *b = t != NULL ? t->body : NULL; b != NULL; b = b->outer)
        mapped = mapped || strcmp(b->op, "vmap") == 0;
    return mapped;
}

static void refuse_mapped(lua_State *L, dc_dsl *d, const char *op)
{
    if (d->mapping != NULL || is_mapped(dc_trace_here(L, d)))
        dc_error_raisef(L, d, DC_ERR_SHARDING, op,
                        "in dc.vmap each row would be a message to another rank");
}

/* ---- exchanges that nothing uses ------------------------------------------------------------------ */

/* What the results of the function, and what it sets, tests and prints, are made of. */
static bool *find_used(dc_job *j, const dc_trace *t)
{
    const dc_func *f = t->f;
    bool *used = DC_NEW_ARRAY(&j->scratch, bool, f->node.n);
    for (uint32_t i = 0; i < t->result.n; i++)
        used[t->result.at[i].ref] = true;
    for (uint32_t i = 0; i < t->cell.n; i++)
        if (t->cell.at[i].is_set)
            used[t->cell.at[i].set.ref] = true;
    for (uint32_t i = 0; i < t->check.n; i++)
        used[t->check.at[i].position] = used[t->check.at[i].value] = true;
    for (dc_ref r = f->node.n; r-- > 1;) {
        const dc_node *n = dc_node_at(f, r);
        const int nin = n->op == DC_OP_CUSTOM ? dc_node_inputs(n) : n->nin;
        for (int i = 0; used[r] && i < nin; i++)
            used[n->in[i]] = true;
    }
    return used;
}

/* Of a body that has ended, which performs it. */
static bool is_of_body(const dc_trace *t, dc_ref r)
{
    for (const dc_trace_body *b = t->left; b != NULL; b = b->outer)
        if (r >= b->mark && r < b->end)
            return true;
    return false;
}

/* Exchanges from `mark` on but for those that are used: the token, which is kept, comes after them. used NULL: none is. */
static dc_status keep(dc_job *j, dc_trace *t, dc_ref mark, const bool *used)
{
    const message m = {.t = t, .token = t->d->token};
    const uint32_t end = t->f->node.n;
    for (dc_ref r = mark; r < end; r++)
        if (dc_exchange_is_written(dc_node_at(t->f, r)) && (used == NULL || !used[r]) &&
            !is_of_body(t, r))
            DC_TRY(set_token(j, t->f, &m, r));
    return DC_OK;
}

dc_status dc_messages_keep_in_body(dc_job *j, dc_trace *t)
{
    const bool any = t->f->module->written && !is_mapped(t);
    return any ? keep(j, t, t->body->mark, NULL) : DC_OK;
}

dc_status dc_messages_keep_unused(dc_job *j, dc_trace *t)
{
    return t->f->module->written ? keep(j, t, 1, find_used(j, t)) : DC_OK;
}

/* With n operands from 1 on; the token is at 4. */
static void run_message(lua_State *L, dc_dsl *d, dc_op op, message *m, int n)
{
    const int first = 1;
    const char *name = dc_op_row_of(op)->name;
    refuse_mapped(L, d, name);
    m->t = dc_trace_here(L, d);
    m->token = dc_handle_check(L, d, 4, name)->cell;
    d->effect = ++d->born;
    dc_apply_step(L, d, name, &first, n, op == DC_OP_SEND ? build_send : build_recv, m, false);
    if (m->t != NULL)
        return;
    dc_messages_meet_here(L, d);
    dc_handle_realize(L, d, dc_handle_test(L, -1));
    d->rt->job.meeting = NULL;
}

static message message_of(lua_State *L, dc_dsl *d, int axes, int member, const char *op)
{
    const dc_mesh *m = dc_ranks_mesh(L, d, op);
    dc_exchange_attr e = {.other = luaL_checkinteger(L, member)};
    message out = {0};
    e.group = dc_mesh_group(m, dc_ranks_mask(L, d, axes, op));
    dc_ranks_world(L, d);
    out.nattr = dc_exchange_write(&e, out.attr);
    return out;
}

/* send(x, member, axes, token) */
static int l_send(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    message m = message_of(L, d, 3, 2, "send");
    dc_handle_check(L, d, 1, "send");
    run_message(L, d, DC_OP_SEND, &m, 1);
    return 1;
}

/* recv(type, member, axes, token) */
static int l_recv(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_sharding s;
    message m = message_of(L, d, 3, 2, "recv");
    if (dc_ranks_splits(L, 1))
        dc_error_raisef(L, d, DC_ERR_SHARDING, "recv",
                        "a message is a whole value: '%s' is in parts", lua_tostring(L, 1));
    dc_ranks_type(L, d, 1, "recv", &m.type, &s);
    run_message(L, d, DC_OP_RECV, &m, 0);
    return 1;
}

/*
 * settle(x): in a trace with messages, what is written behind this line comes after x has been computed, to memory: a plan
 * does not put off what the script has made. Elsewhere it is x.
 */
static int l_settle(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const int first = 1;
    message m = {.t = dc_trace_here(L, d), .token = d->token};
    lua_settop(L, 1);
    if (last_token(m.t) != 0)
        dc_apply_step(L, d, "settle", &first, 1, build_settle, &m, false);
    return 1;
}

static dc_status build_after(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const message *m = arg;
    DC_TRY(dc_ops_need_real(j, in));
    *out = in[0];
    dc_messages_come_after(f, m->t, out);
    return DC_OK;
}

/* after(x): in a trace with messages, x, and what is made of it, is computed behind those made so far. */
static int l_after(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const int first = 1;
    message m = {.t = dc_trace_here(L, d)};
    lua_settop(L, 1);
    if (last_token(m.t) != 0)
        dc_apply_step(L, d, "after", &first, 1, build_after, &m, false);
    return 1;
}

/* set_token(state): what messages of traces read and set */
static int l_set_token(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "mesh");
    d->token = h->cell;
    return 0;
}

static const dc_binding bindings[] = {
    {"send", l_send, 4, DC_IN_LIBRARY},           {"recv", l_recv, 4, DC_IN_LIBRARY},
    {"settle", l_settle, 1, DC_IN_LIBRARY},       {"after", l_after, 1, DC_IN_LIBRARY},
    {"set_token", l_set_token, 1, DC_IN_LIBRARY},
};

const dc_bindings dc_messages_bindings = DC_BINDINGS(bindings);
