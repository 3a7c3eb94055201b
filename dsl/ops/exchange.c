/*
 * For stdlib/ranks.lua: the world and its mesh, what ranks do together, and tensors in parts.
 */
#include "core/ir/exchange.h"

#include "core/build/build.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/place.h"
#include "dsl/base/ranks.h"
#include "dsl/base/run.h"
#include "dsl/base/trace.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the world and the mesh -------------------------------------------------------------------- */

/* world(): the rank from 0, how many there are, the names of their hosts */
static int l_world(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_world *w = dc_ranks_world(L, d);
    lua_pushinteger(L, w != NULL ? dc_world_rank(w) : 0);
    lua_pushinteger(L, w != NULL ? dc_world_size(w) : 1);
    lua_newtable(L);
    for (int i = 0; w != NULL && i < dc_world_size(w); i++) {
        lua_pushstring(L, dc_world_host(w, i));
        lua_rawseti(L, -2, i + 1);
    }
    return 3;
}

/* sent(): bytes that this rank has given to others */
static int l_sent(lua_State *L)
{
    const dc_world *w = dc_dsl_of(L)->rt->world;
    lua_pushinteger(L, w != NULL ? (lua_Integer)dc_world_sent(w) : 0);
    return 1;
}

typedef struct saying {
    dc_rt *rt;
    const char *what, *text;
    uint64_t digest;
} saying;

static dc_status barrier_body(dc_job *j, void *arg)
{
    const saying *a = arg;
    return dc_world_barrier(a->rt->world, j, a->what);
}

/* barrier(what) */
static int l_barrier(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    saying a = {.rt = d->rt, .what = dc_args_text(L, d, 1, "barrier")};
    if (dc_ranks_world(L, d) == NULL)
        return 0;
    dc_messages_meet_here(L, d);
    dc_run(L, d, barrier_body, &a);
    d->rt->job.meeting = NULL;
    return 0;
}

static dc_status agree_body(dc_job *j, void *arg)
{
    const saying *a = arg;
    return dc_world_agree(a->rt->world, j, a->what, a->digest, a->text);
}

/* All ranks make the same one. */
static void agree_on_mesh(lua_State *L, dc_dsl *d, const dc_mesh *m)
{
    char text[300] = "";
    saying a = {.rt = d->rt, .what = "the mesh", .text = text, .digest = m->naxis};
    for (uint32_t k = 0; k < m->naxis; k++) {
        const size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%s = %" PRId64, k > 0 ? ", " : "", m->name[k],
                 m->size[k]);
        a.digest = dc_hash_bytes(a.digest, m->name[k], strlen(m->name[k]));
        a.digest = dc_hash_mix(a.digest, (uint64_t)m->size[k]);
    }
    if (d->rt->check || dc_ranks_world(L, d) == NULL)
        return;
    dc_messages_meet_here(L, d);
    dc_run(L, d, agree_body, &a);
    d->rt->job.meeting = NULL;
}

/* agree(what, text [, digest]): WORLD on all ranks, unless all say the same; text: lines */
static int l_agree(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    size_t n;
    saying a = {.rt = d->rt, .what = luaL_checkstring(L, 1), .text = luaL_checklstring(L, 2, &n)};
    a.digest = dc_hash_bytes(dc_hash_mix((uint64_t)luaL_optinteger(L, 3, 0), n), a.text, n);
    if (!d->rt->check && dc_ranks_world(L, d) != NULL)
        dc_run(L, d, agree_body, &a);
    return 0;
}

typedef struct outcome {
    dc_rt *rt;
    const char *what;
    int32_t first; /* rank that has failed, where 0 is the last one; -1: none has */
    char said[1000];
} outcome;

/* Of those that have failed the first rank says why. */
static dc_status outcome_body(dc_job *j, void *arg)
{
    outcome *a = arg;
    dc_world *w = a->rt->world;
    const int size = dc_world_size(w);
    const dc_transfer found = {&a->first, &a->first, 1, 1},
                      words = {a->said, a->said, 1, sizeof a->said};
    dc_exchange x = {.kind = DC_ALL_REDUCE,
                     .combine = DC_COMBINE_MAX,
                     .dtype = DC_I32,
                     .axes = {1, 1, {size}},
                     .label = a->what,
                     .n = 1,
                     .at = &found};
    DC_TRY(dc_world_run(w, j, &x));
    if (a->first < 0)
        return DC_OK;
    x.kind = DC_BROADCAST;
    x.dtype = DC_U8;
    x.peer = size - 1 - a->first;
    x.at = &words;
    return dc_world_run(w, j, &x);
}

/* outcome(what, text or nil): nil where no rank gives a text; else the first that does, and its text. All ranks come here. */
static int l_outcome(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    outcome a = {.rt = d->rt, .what = luaL_checkstring(L, 1), .first = -1};
    const char *text = luaL_optstring(L, 2, NULL);
    const dc_world *w = d->rt->check ? NULL : dc_ranks_world(L, d);
    if (text != NULL) {
        a.first = w != NULL ? dc_world_size(w) - 1 - dc_world_rank(w) : 0;
        snprintf(a.said, sizeof a.said, "%s", text);
    }
    if (w != NULL)
        dc_run(L, d, outcome_body, &a);
    if (a.first < 0)
        return 0;
    a.said[sizeof a.said - 1] = '\0';
    lua_pushinteger(L, w != NULL ? dc_world_size(w) - 1 - a.first : 0);
    lua_pushstring(L, a.said);
    return 2;
}

/* Cells are in parts of it, and functions compiled for it. */
static bool is_another(const dc_mesh *a, const dc_mesh *b)
{
    bool same = a->naxis == b->naxis;
    for (uint32_t k = 0; same && k < a->naxis; k++)
        same = a->size[k] == b->size[k] && strcmp(a->name[k], b->name[k]) == 0;
    return !same;
}

/* set_mesh(names, sizes): the lists are checked by the caller */
static int l_set_mesh(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_mesh m = {.naxis = dc_args_list_length(L, 1)};
    int64_t all = 1;
    if (m.naxis > DC_MESH_AXES)
        dc_error_raisef(L, d, DC_ERR_SHARDING, "mesh", "a mesh has %d axes at most", DC_MESH_AXES);
    for (uint32_t a = 0; a < m.naxis; a++) {
        m.name[a] = dc_place_name(L, d, "%s", dc_args_list_text(L, d, 1, a, "mesh"));
        lua_rawgeti(L, 2, a + 1);
        m.size[a] = lua_tointeger(L, -1);
        if (!dc_mul_ok(all, m.size[a], &all) || all > INT32_MAX)
            dc_error_raisef(L, d, DC_ERR_SHARDING, "mesh", "a mesh has %d places at most",
                            INT32_MAX);
    }
    if (d->rt->mesh != NULL && is_another(d->rt->mesh, &m))
        dc_error_raisef(L, d, DC_ERR_SHARDING, "mesh",
                        "there is another mesh already, and a program has one");
    agree_on_mesh(L, d, &m);
    dc_mesh *kept = d->rt->mesh != NULL ? d->rt->mesh : dc_try_alloc(sizeof *kept);
    if (kept == NULL)
        dc_error_raisef(L, d, DC_ERR_NOMEM_TEXT, "mesh", "a mesh");
    *kept = m;
    d->rt->mesh = kept;
    return 0;
}

/* ---- operations -------------------------------------------------------------------------------- */

typedef struct applied {
    dc_op op;
    dc_exchange_attr attr;
    dc_trace *t; /* NULL: outside of one */
} applied;

static dc_status build(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const applied *x = arg;
    int64_t attr[DC_EXCHANGE_ATTRS];
    dc_exchange_attr e = x->attr;
    dc_val v = *in;
    DC_TRY(dc_ops_need_real(j, in));
    dc_messages_come_after(f, x->t, &v);
    if (x->t != NULL) {
        f->module->written = true;
        e.number = dc_exchange_next(f, x->op, e.group.mask);
    }
    const int nattr = dc_exchange_write(&e, attr);
    return dc_build_host(j, f, x->op, &v, attr, nattr, out);
}

/* exchange(op, x, axis, other, axes): axes count from 0; axes: "data+model", nil all of the mesh */
static int l_exchange(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    size_t n;
    const char *name = luaL_checklstring(L, 1, &n), *op = dc_place_name(L, d, "%s", name);
    applied x;
    const int at = 2;
    if (!dc_op_find(name, n, &x.op) || !dc_op_is(x.op, DC_CLASS_COM))
        return luaL_error(L, "no operation of ranks: %s", name);
    const dc_mesh *m = dc_ranks_mesh(L, d, op);
    dc_exchange_attr e = {.axis = luaL_checkinteger(L, 3), .other = luaL_checkinteger(L, 4)};
    e.group = dc_mesh_group(m, dc_ranks_mask(L, d, 5, op));
    dc_ranks_world(L, d);
    x.attr = e;
    x.t = dc_trace_here(L, d);
    dc_apply_to(L, d, op, &at, 1, build, &x);
    if (dc_trace_here(L, d) == NULL) { /* now, as the others do it now */
        dc_messages_meet_here(L, d);
        dc_handle_realize(L, d, dc_handle_test(L, -1));
        d->rt->job.meeting = NULL;
    }
    return 1;
}

static dc_status build_reshard(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    return dc_build_host(j, f, DC_OP_RESHARD, in, arg, DC_MESH_AXES, out);
}

/* reshard(x, type): the type is that of the value */
static int l_reshard(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_sharding s;
    dc_type whole, part;
    int64_t attr[DC_MESH_AXES];
    const int at = 1;
    dc_handle *h = dc_handle_check(L, d, 1, "reshard");
    dc_ranks_type(L, d, 2, "reshard", &whole, &s);
    const dc_type *t = dc_handle_type(h);
    if (!dc_type_same_shape(&whole, t) || whole.dtype != t->dtype)
        dc_error_raisef(L, d, DC_ERR_SHARDING, "reshard", "%s is not of the type '%s'",
                        dc_handle_describe(L, 1), lua_tostring(L, 2));
    dc_ranks_check(L, d, "reshard", &whole, &s, &part);
    for (int a = 0; a < DC_MESH_AXES; a++)
        attr[a] = s.dim[a];
    dc_apply_to(L, d, "reshard", &at, 1, build_reshard, attr);
    return 1;
}

/* ---- parts ------------------------------------------------------------------------------------- */

typedef struct cutting {
    int64_t start[DC_MAX_RANK], step[DC_MAX_RANK], dim[DC_MAX_RANK];
} cutting;

/* Of complex numbers both parts. */
static dc_status build_part(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    cutting x = *(const cutting *)arg;
    const int rank = in->type.rank;
    DC_UNUSED(j);
    if (dc_dtype_is_complex((dc_dtype)in->type.dtype)) {
        x.start[rank] = 0;
        x.dim[rank] = 2;
    }
    out->type = in->type;
    memcpy(out->type.dim, x.dim, (size_t)rank * sizeof *x.dim);
    out->ref = dc_graph_slice(f, in->ref, x.start, x.step, x.dim);
    return DC_OK;
}

void dc_exchange_cut(lua_State *L, dc_dsl *d, int idx, const char *op, const dc_type *part,
                     const int64_t *start)
{
    cutting x;
    for (int k = 0; k < DC_MAX_RANK; k++) {
        x.start[k] = k < part->rank ? start[k] : 0;
        x.step[k] = 1;
        x.dim[k] = part->dim[k];
    }
    dc_apply_step(L, d, op, &idx, 1, build_part, &x, false);
}

/* part(x, type): of a whole tensor what this rank has */
static int l_part(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_sharding s;
    dc_type whole, part;
    int64_t start[DC_MAX_RANK];
    const dc_handle *h = dc_handle_check(L, d, 1, "part");
    dc_ranks_type(L, d, 2, "part", &whole, &s);
    if (!dc_type_same_shape(&whole, dc_handle_type(h)) || whole.dtype != dc_handle_type(h)->dtype)
        dc_error_raisef(L, d, DC_ERR_SHARDING, "part", "%s is not of the type '%s'",
                        dc_handle_describe(L, 1), lua_tostring(L, 2));
    dc_ranks_part(L, d, "part", &whole, &s, &part, start);
    dc_exchange_cut(L, d, 1, "part", &part, start);
    return 1;
}

static void push_integers(lua_State *L, const int64_t *at, int n)
{
    lua_createtable(L, n, 0);
    for (int k = 0; k < n; k++) {
        lua_pushinteger(L, at[k]);
        lua_rawseti(L, -2, k + 1);
    }
}

/* The axes of the mesh that split each axis: { {}, { "model" } } */
static void push_axes(lua_State *L, const dc_mesh *m, const dc_sharding *s, int rank)
{
    lua_createtable(L, rank, 0);
    for (int k = 0; k < rank; k++) {
        lua_newtable(L);
        for (uint32_t a = 0; a < m->naxis; a++)
            if (s->dim[a] == k + 1) {
                lua_pushstring(L, m->name[a]);
                lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
            }
        lua_rawseti(L, -2, k + 1);
    }
}

/* cell_split(cell): nil, or sizes of the whole value, where the part begins, axes of the mesh by axis */
static int l_cell_split(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "cell_split");
    if (h->kind != DC_HANDLE_CELL || h->cell->split == NULL)
        return 0;
    const dc_cell_split *x = h->cell->split;
    dc_type part;
    int64_t start[DC_MAX_RANK];
    dc_ranks_part(L, d, "cell_split", &x->whole, &x->s, &part, start);
    push_integers(L, x->whole.dim, x->whole.rank);
    push_integers(L, start, x->whole.rank);
    push_axes(L, d->rt->mesh, &x->s, x->whole.rank);
    return 3;
}

/* type_split(x, type): axes of the mesh by axis; x is what this rank has of a value of that type */
static int l_type_split(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_sharding s;
    dc_type whole, part;
    const dc_handle *h = dc_handle_check(L, d, 1, "whole");
    const dc_type *t = dc_handle_type(h);
    const bool split = h->kind == DC_HANDLE_CELL && h->cell->split != NULL;
    dc_ranks_type(L, d, 2, "whole", &whole, &s);
    dc_ranks_check(L, d, "whole", &whole, &s, &part);
    if (!dc_type_same_shape(&part, t) || part.dtype != t->dtype ||
        (split && !dc_sharding_same(&h->cell->split->s, &s)))
        dc_error_raisef(L, d, DC_ERR_SHARDING, "whole", "%s is no part of a value of the type '%s'",
                        dc_handle_describe(L, 1), lua_tostring(L, 2));
    push_axes(L, d->rt->mesh, &s, whole.rank);
    return 1;
}

/* mesh_size(axis): of so many ranks */
static int l_mesh_size(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const int a = dc_ranks_axis(L, d, "shard", dc_args_text(L, d, 1, "shard"));
    lua_pushinteger(L, d->rt->mesh->size[a]);
    return 1;
}

/* mesh_axes(): names and sizes of its axes, nil where there is none yet */
static int l_mesh_axes(lua_State *L)
{
    const dc_mesh *m = dc_dsl_of(L)->rt->mesh;
    if (m == NULL)
        return 0;
    lua_newtable(L);
    for (uint32_t a = 0; a < m->naxis; a++) {
        lua_pushstring(L, m->name[a]);
        lua_rawseti(L, -2, a + 1);
    }
    push_integers(L, m->size, (int)m->naxis);
    return 2;
}

/* mesh_group(op, axes): the number of this rank, from 0, among those along "data+model", and how many these are */
static int l_mesh_group(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = dc_place_name(L, d, "%s", luaL_checkstring(L, 1));
    const dc_mesh *m = dc_ranks_mesh(L, d, op);
    const dc_group_axes g = dc_mesh_group(m, dc_ranks_mask(L, d, 2, op));
    const dc_world *w = dc_ranks_world(L, d);
    lua_pushinteger(L, dc_group_member(&g, w != NULL ? dc_world_rank(w) : 0));
    lua_pushinteger(L, dc_group_size(&g));
    return 2;
}

/* plans(): of deepc plan the sizes by axis, of deepc check true: the ranks are not there; else false */
static int l_plans(lua_State *L)
{
    const dc_rt *rt = dc_dsl_of(L)->rt;
    if (rt->planned == NULL) {
        lua_pushboolean(L, rt->check);
        return 1;
    }
    lua_newtable(L);
    for (uint32_t a = 0; a < rt->planned->naxis; a++) {
        lua_pushinteger(L, rt->planned->size[a]);
        lua_setfield(L, -2, rt->planned->name[a]);
    }
    return 1;
}

typedef struct sharding {
    dc_cell *cell;
    const dc_tensor *part;
    dc_cell_split split;
} sharding;

static dc_status shard_body(dc_job *j, void *arg)
{
    const sharding *a = arg;
    return dc_cell_shard(a->cell, j, &a->split.s, &a->split.whole, a->part);
}

typedef struct showing {
    const dc_handle *of;
    dc_handle *out;
} showing;

static dc_status show_body(dc_job *j, void *arg)
{
    const showing *a = arg;
    dc_cell *c = a->of->cell;
    if (c->start != NULL) {
        dc_handle_fill_lazy(a->out, dc_lazy_retain(c->start));
        return DC_OK;
    }
    DC_TRY(dc_cell_check(c, j, "shard", true));
    dc_handle_fill(a->out, dc_cell_show(c));
    return DC_OK;
}

/* shard_cell(cell, type): from now on it holds the part of this rank */
static int l_shard_cell(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    sharding a = {NULL, NULL, {{{0}, 0}, {0}}};
    dc_type part;
    int64_t start[DC_MAX_RANK];
    const dc_handle *h = dc_handle_check(L, d, 1, "shard");
    if (h->kind != DC_HANDLE_CELL)
        dc_error_raisef(L, d, DC_ERR_SHARDING, "shard",
                        "parameters and states are held in parts, not %s",
                        dc_handle_describe(L, 1));
    dc_ranks_type(L, d, 2, "shard", &a.split.whole, &a.split.s);
    a.cell = h->cell;
    if (a.cell->split != NULL || a.cell->growth != NULL || a.cell->refs > 1)
        dc_error_raisef(L, d, DC_ERR_SHARDING, "shard", "%s %s",
                        a.cell->label != NULL ? a.cell->label : "the cell",
                        a.cell->split != NULL    ? "is in parts already"
                        : a.cell->growth != NULL ? "grows, and stays whole"
                                                 : "is used by a function already: shard first");
    if (!dc_type_same_shape(&a.split.whole, &a.cell->type) ||
        a.split.whole.dtype != a.cell->type.dtype)
        dc_error_raisef(L, d, DC_ERR_SHARDING, "shard", "%s is not of the type '%s'",
                        dc_handle_describe(L, 1), lua_tostring(L, 2));
    memcpy(a.split.whole.name, a.cell->type.name, sizeof a.split.whole.name);
    dc_ranks_part(L, d, "shard", &a.split.whole, &a.split.s, &part, start);
    showing show = {h, dc_handle_new(L, d)};
    const int at = lua_gettop(L);
    dc_run(L, d, show_body, &show);
    dc_exchange_cut(L, d, at, "shard", &part, start);
    a.part = dc_handle_realize(L, d, dc_handle_test(L, -1));
    dc_run(L, d, shard_body, &a);
    return 0;
}

static const dc_binding bindings[] = {
    {"world", l_world, 0, DC_IN_LIBRARY},
    {"sent", l_sent, 0, DC_IN_LIBRARY},
    {"barrier", l_barrier, 1, DC_IN_LIBRARY},
    {"agree", l_agree, 3, DC_IN_LIBRARY},
    {"outcome", l_outcome, 2, DC_IN_LIBRARY},
    {"set_mesh", l_set_mesh, 2, DC_IN_LIBRARY},
    {"exchange", l_exchange, 5, DC_IN_LIBRARY},
    {"reshard", l_reshard, 2, DC_IN_LIBRARY},
    {"part", l_part, 2, DC_IN_LIBRARY},
    {"cell_split", l_cell_split, 1, DC_IN_LIBRARY},
    {"type_split", l_type_split, 2, DC_IN_LIBRARY},
    {"mesh_size", l_mesh_size, 1, DC_IN_LIBRARY},
    {"mesh_axes", l_mesh_axes, 0, DC_IN_LIBRARY},
    {"mesh_group", l_mesh_group, 2, DC_IN_LIBRARY},
    {"plans", l_plans, 0, DC_IN_LIBRARY},
    {"shard_cell", l_shard_cell, 2, DC_IN_LIBRARY},
};

const dc_bindings dc_exchange_bindings = DC_BINDINGS(bindings);
