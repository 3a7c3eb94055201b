/*
 * Keys of typed functions: from tables of sizes that a script gives, and what of two keys differs.
 */
#include "core/base/extent.h"
#include "dsl/base/args.h"
#include "dsl/base/run.h"
#include "dsl/fn/fn.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- sizes ----------------------------------------------------------------------------------- */

typedef struct giving {
    const dc_sig *sig;
    dc_sig_bind *bind;
    const char *name; /* NULL: all are given */
    int64_t size;
} giving;

static dc_status give_size_body(dc_job *j, void *arg)
{
    const giving *a = arg;
    return a->name == NULL ? dc_sig_check(j, a->sig, a->bind)
                           : dc_sig_give(j, a->sig, a->bind, a->name, a->size);
}

void dc_fn_give_size(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_sig_bind *b, const char *name,
                     int64_t n)
{
    giving a = {&fn->sig, b, name, n};
    dc_run(L, d, give_size_body, &a);
}

void dc_fn_check_sizes(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_sig_bind *b)
{
    giving a = {.sig = &fn->sig, .bind = b};
    dc_run(L, d, give_size_body, &a);
}

/* ---- from tables ----------------------------------------------------------------------------- */

bool dc_fn_add_lengths(const dc_sig_type *t, int64_t length, dc_fn_key *key, int *leaves)
{
    dc_type out;
    switch (t->kind) {
    case DC_SHAPE_TENSOR:
        return ++*leaves <= DC_SIG_LEAVES && dc_sig_resolve(&key->bind, t, &out);
    case DC_SHAPE_RECORD:
        for (int f = 0; f < t->nfield; f++)
            if (!dc_fn_add_lengths(t->field[f].type, length, key, leaves))
                return false;
        return true;
    case DC_SHAPE_LIST:
        if (length < 0 || length > DC_SIG_LEAVES || key->nshape == DC_FN_SHAPE)
            return false;
        key->shape[key->nshape++] = length;
        for (int64_t i = 0; i < length; i++)
            if (!dc_fn_add_lengths(t->of, length, key, leaves))
                return false;
        return true;
    }
    return false;
}

bool dc_fn_early_key(const dc_fn *fn, dc_fn_key *key)
{
    int leaves = 0;
    key->nshape = 0;
    for (int i = 0; i < fn->sig.nparam; i++) {
        const dc_sig_param *p = &fn->sig.param[i];
        if (p->type == NULL)
            return false;
        if (p->optional)
            key->shape[key->nshape++] = 0;
        else if (!dc_fn_add_lengths(p->type, -1, key, &leaves))
            return false;
    }
    return true;
}

/* The key of a check by the table at idx; false where it does not tell enough. */
static bool check_key(lua_State *L, dc_dsl *d, const dc_fn *fn, int idx, const char *op,
                      dc_fn_key *key)
{
    int leaves = 0;
    for (int i = 0; i < fn->sig.nparam; i++) {
        const dc_sig_param *p = &fn->sig.param[i];
        const bool given = lua_getfield(L, idx, p->name) != LUA_TNIL;
        const int value = lua_gettop(L);
        int64_t length = -1;
        if (key->nshape == DC_FN_SHAPE)
            return false;
        if (p->type == NULL) {
            key->shape[key->nshape++] = dc_fn_number_static(L, d, fn, 1, i, value);
        } else {
            if (given && lua_type(L, value) == LUA_TNUMBER)
                length = dc_args_count(L, d, value, op, p->name);
            if (length > DC_SIG_LEAVES)
                dc_error_raisef(L, d, DC_ERR_ARG, op,
                                "%s = %" PRId64 ": more than %d tensors in all", p->name, length,
                                DC_SIG_LEAVES);
            if (p->optional)
                key->shape[key->nshape++] = given;
            if ((!p->optional || given) && !dc_fn_add_lengths(p->type, length, key, &leaves))
                return false;
        }
        lua_settop(L, value - 1);
    }
    return true;
}

/* Names of dims and of parameters. */
static void check_names(lua_State *L, dc_dsl *d, const dc_fn *fn, int idx, const char *op)
{
    const char *known[DC_SIG_VARS + DC_SIG_PARAMS + 1];
    int n = 0;
    for (int v = 0; v < fn->sig.nvar; v++)
        known[n++] = fn->sig.var[v];
    for (int i = 0; i < fn->sig.nparam; i++)
        known[n++] = fn->sig.param[i].name;
    known[n] = NULL;
    dc_args_options(L, d, idx, op, known);
}

/* Static parameters by name, as lengths of lists; optional parameters are there if their name is given. */
void dc_fn_key_of(lua_State *L, dc_dsl *d, const dc_fn *fn, int idx, const char *op, dc_fn_key *key)
{
    *key = (dc_fn_key){.nshape = 0};
    check_names(L, d, fn, idx, op);
    dc_sig_begin(&fn->sig, &key->bind);
    for (int v = 0; v < fn->sig.nvar; v++) {
        if (lua_getfield(L, idx, fn->sig.var[v]) != LUA_TNIL)
            dc_fn_give_size(L, d, fn, &key->bind, fn->sig.var[v],
                            dc_args_count(L, d, lua_gettop(L), op, fn->sig.var[v]));
        lua_pop(L, 1);
    }
    dc_fn_check_sizes(L, d, fn, &key->bind);
    dc_fn_bound(L, d, fn, key, false);
    if (!check_key(L, d, fn, idx, op, key)) {
        char text[800];
        dc_sig_print(&fn->sig, &key->bind, text, sizeof text);
        dc_error_raisef(L, d, DC_ERR_ARG, op, "not every size is known: %s", text);
    }
}

/* ---- differences ----------------------------------------------------------------------------- */

/* A size, or that there is none, behind n bytes of out; how many more are needed. */
static size_t put_size(char *out, size_t room, size_t n, int64_t size)
{
    if (n >= room)
        return 0;
    return (size_t)(size < 0
                        ? snprintf(out + n, room - n, "not given")
                        : snprintf(out + n, room - n, "%s%lld", dc_extent_is(size) ? "up to " : "",
                                   (long long)dc_extent_bound(size)));
}

/* The device of a key; one without tensors has that of the context, where it is none of this specialisation. */
static const dc_rt *where_of(const dc_spec *a, const dc_fn_key *key)
{
    if (key->rt != NULL)
        return key->rt;
    return a->key.rt == NULL ? a->rt : a->d->rt;
}

uint64_t dc_spec_distance(const dc_sig *sig, const dc_spec *a, const dc_fn_key *key)
{
    const dc_sig_bind *x = &a->key.bind, *y = &key->bind;
    uint64_t count = memcmp(x->rest_size, y->rest_size, sizeof x->rest_size) != 0, by = 0;
    for (int v = 0; v < sig->nvar; v++) {
        const int64_t p = x->size[v], q = y->size[v];
        count += p != q;
        by += p > q ? (uint64_t)(p - q) : (uint64_t)(q - p);
    }
    for (int i = 0; i < a->key.nshape && i < key->nshape; i++)
        count += a->key.shape[i] != key->shape[i];
    for (uint32_t i = 0; i < a->dep.n; i++)
        count += a->dep.at[i].now->number != a->dep.at[i].then.number;
    count += where_of(a, key) != a->rt;
    return count << 32 | (by < UINT32_MAX ? by : UINT32_MAX);
}

void dc_spec_difference(lua_State *L, int fn_idx, const dc_spec *a, const dc_fn_key *key, char *out,
                        size_t room)
{
    const dc_fn *fn = dc_udata_node(L, fn_idx);
    size_t n = 0;
    *out = '\0';
    for (int v = 0; v < fn->sig.nvar && n < room; v++)
        if (a->key.bind.size[v] != key->bind.size[v]) {
            n += (size_t)snprintf(out + n, room - n, "%s%s ", n ? ", " : "", fn->sig.var[v]);
            n += put_size(out, room, n, a->key.bind.size[v]);
            if (n < room)
                n += (size_t)snprintf(out + n, room - n, " -> ");
            n += put_size(out, room, n, key->bind.size[v]);
        }
    if (n == 0 &&
        (a->key.bind.rest != key->bind.rest ||
         memcmp(a->key.bind.rest_size, key->bind.rest_size, sizeof key->bind.rest_size) != 0))
        n += (size_t)snprintf(out + n, room - n, "the dims of '...'");
    if (n == 0 && where_of(a, key) != a->rt)
        n += (size_t)snprintf(out, room, "%s -> %s", a->rt->device_name,
                              where_of(a, key)->device_name);
    if (n == 0) {
        dc_fn_shape_difference(L, fn, fn_idx, a->key.shape, key->shape, out, room);
        n = strlen(out);
    }
    for (uint32_t i = 0; n == 0 && i < a->dep.n; i++) {
        const dc_trace_dep *dep = &a->dep.at[i];
        if (dep->now->number != dep->then.number)
            n += (size_t)snprintf(out + n, room - n, "%s: %s -> %s", dep->what, dep->then.text,
                                  dep->now->text);
    }
}
