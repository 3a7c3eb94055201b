/*
 * Arguments and results of typed functions: Lua values (tensors, numbers, tables of these as records
 * and lists say) taken apart into leaves, one for each tensor type of the signature, and put together
 * again. What is no tensor (is an optional argument there, how long is a list, which value has a
 * static parameter) goes into the key of the call.
 */
#include "dsl/base/args.h"
#include "dsl/fn/fn.h"
#include "dsl/ops/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- leaves ---------------------------------------------------------------------------------- */

void dc_fn_leaves_begin(dc_fn_leaves *v)
{
    v->n = 0;
    v->room = DC_FN_FEW;
    v->at = v->few;
}

dc_fn_taken *dc_fn_leaves_add(lua_State *L, dc_fn_leaves *v)
{
    if (v->n == v->room) {
        luaL_checkstack(L, 1, "arguments");
        dc_fn_taken *more = lua_newuserdatauv(L, 2 * (size_t)v->room * sizeof *more, 0);
        memcpy(more, v->at, (size_t)v->n * sizeof *more);
        v->at = more;
        v->room *= 2;
    }
    return &v->at[v->n++];
}

/* ---- a walk over values ---------------------------------------------------------------------- */

typedef struct walk {
    lua_State *L;
    dc_dsl *d;
    const dc_fn *fn;
    dc_fn_leaves *v;
    int64_t *shape;
    int *nshape;
    bool result;
    char path[120]; /* "p.w[2]" */
} walk;

/* A sentence about the value at path; takes nothing from the stack. */
static DC_NORETURN void refuse_kind(walk *w, const char *what, int idx, const char *declared)
{
    char text[480];
    const char *given = dc_handle_describe(w->L, idx);
    snprintf(text, sizeof text, "%s%s%s is %s, %s", w->result ? "" : "argument '", w->path,
             w->result ? "" : "'", given, what);
    dc_error_fact(w->L, w->d, w->result ? DC_ERR_RESULT_KIND : DC_ERR_ARG_KIND,
                  &(dc_fact){.op = w->fn->name, .word = {text}},
                  &(dc_blame){.expected = declared, .got = given});
}

static void put_shape(walk *w, int64_t n)
{
    if (*w->nshape == DC_FN_SHAPE)
        dc_error_raisef(w->L, w->d, DC_ERR_ARG, w->fn->name,
                        "more than %d optional arguments, lists and static values", DC_FN_SHAPE);
    w->shape[(*w->nshape)++] = n;
}

static void put_leaf(walk *w, const dc_sig_type *declared, int idx)
{
    if (w->v->n == DC_SIG_LEAVES)
        dc_error_raisef(w->L, w->d, DC_ERR_ARG, w->fn->name, "more than %d tensors in all",
                        DC_SIG_LEAVES);
    *dc_fn_leaves_add(w->L, w->v) = (dc_fn_taken){
        idx, declared, *w->path != '\0' ? dc_place_name(w->L, w->d, "%s", w->path) : NULL};
}

static void take(walk *w, const dc_sig_type *t, int idx);

/* Lengthens the path for the time of one step. */
static void take_part(walk *w, const dc_sig_type *t, const char *name, lua_Integer i)
{
    const size_t n = strlen(w->path);
    if (name != NULL)
        snprintf(w->path + n, sizeof w->path - n, ".%s", name);
    else
        snprintf(w->path + n, sizeof w->path - n, "[%" PRId64 "]", (int64_t)i);
    take(w, t, lua_gettop(w->L));
    w->path[n] = '\0';
}

static bool has_other_fields(lua_State *L, const dc_sig_type *t, int idx)
{
    int n = 0, known = 0;
    for (lua_pushnil(L); lua_next(L, idx) != 0; lua_pop(L, 1))
        n++;
    for (int f = 0; f < t->nfield; f++) {
        lua_pushstring(L, t->field[f].name);
        known += lua_rawget(L, idx) != LUA_TNIL;
        lua_pop(L, 1);
    }
    return n != known;
}

static void refuse_field(walk *w, const dc_sig_type *t, int idx)
{
    lua_State *L = w->L;
    if (!has_other_fields(L, t, idx))
        return;
    for (lua_pushnil(L); lua_next(L, idx) != 0; lua_pop(L, 1)) {
        bool known = false;
        for (int f = 0; f < t->nfield && !known; f++)
            known = lua_type(L, -2) == LUA_TSTRING &&
                    strcmp(lua_tostring(L, -2), t->field[f].name) == 0;
        if (known)
            continue;
        const char *key = luaL_tolstring(L, -2, NULL);
        dc_error_raisef(L, w->d, w->result ? DC_ERR_RESULT_KIND : DC_ERR_ARG_KIND, w->fn->name,
                        "%s has a field '%.60s' that is not declared", w->path, key);
    }
}

static void take_record(walk *w, const dc_sig_type *t, int idx)
{
    char declared[DC_TYPE_TEXT];
    dc_sig_type_print(&w->fn->sig, NULL, t, declared, sizeof declared);
    if (lua_type(w->L, idx) != LUA_TTABLE)
        refuse_kind(w, lua_pushfstring(w->L, "declared %s", declared), idx, declared);
    refuse_field(w, t, idx);
    for (int f = 0; f < t->nfield; f++) {
        lua_getfield(w->L, idx, t->field[f].name);
        take_part(w, t->field[f].type, t->field[f].name, 0);
    }
}

static void take_list(walk *w, const dc_sig_type *t, int idx)
{
    char declared[DC_TYPE_TEXT];
    dc_sig_type_print(&w->fn->sig, NULL, t, declared, sizeof declared);
    if (lua_type(w->L, idx) != LUA_TTABLE)
        refuse_kind(w, lua_pushfstring(w->L, "declared %s", declared), idx, declared);
    const lua_Integer length = luaL_len(w->L, idx), n = length < 0 ? 0 : length;
    put_shape(w, n);
    if (n > DC_SIG_LEAVES)
        dc_error_raisef(w->L, w->d, DC_ERR_ARG, w->fn->name, "more than %d tensors in all",
                        DC_SIG_LEAVES);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(w->L, idx, i);
        take_part(w, t->of, NULL, i);
    }
}

static void take(walk *w, const dc_sig_type *t, int idx)
{
    luaL_checkstack(w->L, 20, "arguments");
    switch (t->kind) {
    case DC_SHAPE_TENSOR:
        put_leaf(w, t, idx);
        break;
    case DC_SHAPE_RECORD:
        take_record(w, t, idx);
        break;
    case DC_SHAPE_LIST:
        take_list(w, t, idx);
        break;
    }
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* In the table of a function's static values: two tables, key to number and number to value. */
enum { NUMBERS = 1, VALUES = 2 };

/* Pushes one of them. */
static void push_statics(lua_State *L, int fn_idx, int which)
{
    lua_getiuservalue(L, fn_idx, DC_FN_STATICS);
    if (lua_rawgeti(L, -1, which) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawseti(L, -3, which);
    }
    lua_remove(L, -2);
}

int64_t dc_fn_number_static(lua_State *L, dc_dsl *d, const dc_fn *fn, int fn_idx, int param,
                            int idx)
{
    const int table = lua_gettop(L) + 1;
    if (dc_handle_test(L, idx) != NULL)
        dc_error_raisef(
            L, d, DC_ERR_ARG_KIND, fn->name,
            "a tensor is given for a static parameter; it needs a type, as in %s: f32[]",
            fn->sig.param[param].name);
    push_statics(L, fn_idx, NUMBERS);
    dc_static_push_key(L, idx);
    int64_t n;
    if (lua_rawget(L, table) == LUA_TNUMBER) {
        n = lua_tointeger(L, -1);
    } else {
        push_statics(L, fn_idx, VALUES);
        n = (int64_t)lua_rawlen(L, -1) + 1;
        if (lua_isnil(L, idx))
            lua_pushlightuserdata(L, (void *)(uintptr_t)&fn->sig); /* stands for nil */
        else
            lua_pushvalue(L, idx);
        lua_rawseti(L, -2, n);
        dc_static_push_key(L, idx);
        lua_pushinteger(L, n);
        lua_rawset(L, table);
    }
    lua_settop(L, table - 1);
    return n;
}

void dc_fn_take(lua_State *L, dc_dsl *d, dc_fn *fn, int fn_idx, dc_fn_leaves *v, dc_fn_key *key)
{
    dc_fn_leaves_begin(v);
    key->nshape = 0;
    if (fn->plain) {
        for (int i = 0; i < fn->sig.nparam; i++)
            *dc_fn_leaves_add(L, v) =
                (dc_fn_taken){i + 2, fn->sig.param[i].type, fn->sig.param[i].name};
        return;
    }
    walk w = {.L = L, .d = d, .fn = fn, .v = v, .shape = key->shape, .nshape = &key->nshape};
    for (int i = 0; i < fn->sig.nparam; i++) {
        const dc_sig_param *p = &fn->sig.param[i];
        snprintf(w.path, sizeof w.path, "%s", p->name);
        if (p->type == NULL) {
            put_shape(&w, dc_fn_number_static(L, d, fn, fn_idx, i, i + 2));
            continue;
        }
        if (p->optional)
            put_shape(&w, !lua_isnil(L, i + 2));
        if (!p->optional || !lua_isnil(L, i + 2))
            take(&w, p->type, i + 2);
    }
}

/* ---- binding --------------------------------------------------------------------------------- */

static DC_NORETURN void wrong_leaf(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_fn_leaves *v,
                                   const dc_sig_bind *b, int i, const dc_sig_miss *miss)
{
    char declared[DC_TYPE_TEXT], words[200] = "", cast[60], text[2 * DC_TYPE_TEXT + 400];
    const int idx = v->at[i].idx;
    dc_handle *h = dc_handle_test(L, idx);
    const bool tensor = h != NULL && h->kind != DC_HANDLE_CLOSED;
    const char *given = dc_handle_describe(L, idx), *hint = NULL;
    dc_sig_type_print(&fn->sig, b, v->at[i].declared, declared, sizeof declared);
    if (miss != NULL && miss->kind != DC_MISS_DTYPE && miss->kind != DC_MISS_RANK)
        dc_sig_miss_print(&fn->sig, miss, 1, words, sizeof words);
    snprintf(text, sizeof text, "argument '%s' is %s, declared %s%s%s", v->at[i].label, given,
             declared, *words ? ": " : "", words);
    if (miss != NULL && miss->kind == DC_MISS_DTYPE) {
        snprintf(cast, sizeof cast, ":cast \"%s\" converts",
                 dc_dtype_name(v->at[i].declared->dtype));
        hint = cast;
    }
    if (*words != '\0' && tensor && strchr(declared, '@') != NULL)
        hint = "a rank gives its part: of a whole tensor dc.part(x, type) is that";
    const dc_operand in = {
        .h = h, .role = v->at[i].label, .type = tensor ? *dc_handle_type(h) : (dc_type){0}};
    dc_error_fact(
        L, d, DC_ERR_ARG_KIND, &(dc_fact){.op = fn->name, .word = {text}},
        &(dc_blame){.in = &in, .n = tensor, .hint = hint, .expected = declared, .got = given});
}

/* Is the function called with parts of what its signature splits? Inside another function all values are whole. */
static bool has_parts(lua_State *L, dc_dsl *d, const dc_fn *fn)
{
    return fn->split && dc_trace_here(L, d) == NULL;
}

/* Tables of numbers become tensors, and numbers for complex scalars, of the declared type where its sizes are known by now. */
static bool make_tensors(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_fn_leaves *v,
                         const dc_sig_bind *b)
{
    bool made = false;
    for (int i = 0; i < v->n; i++) {
        const int idx = v->at[i].idx;
        dc_type want;
        const bool number = dc_args_is_scalar(L, idx) && v->at[i].declared->ndim == 0;
        const bool complex =
            dc_dtype_is_complex(v->at[i].declared->dtype); /* two numbers in memory */
        if (dc_handle_test(L, idx) != NULL || (number && !complex))
            continue;
        if (lua_type(L, idx) != LUA_TTABLE && !number)
            wrong_leaf(L, d, fn, v, b, i, NULL);
        const bool known = dc_sig_resolve(b, v->at[i].declared, &want);
        const dc_type scalar = dc_type_scalar(v->at[i].declared->dtype);
        for (int k = 0; known && k < want.rank; k++)
            want.name[k] = NULL;
        if (known && has_parts(L, d, fn))
            dc_fn_part(fn, v->at[i].declared, &want);
        dc_make_from_table(L, d, idx, known ? &want : &scalar, !known, fn->name);
        lua_replace(L, idx);
        made = true;
    }
    return made;
}

/* Arguments that contradict a statement such as n=2*m of a result: no one of them is at fault. */
static DC_NORETURN void wrong_together(lua_State *L, dc_dsl *d, const dc_fn *fn,
                                       const dc_sig_miss *miss)
{
    char words[200];
    dc_sig_miss_print(&fn->sig, miss, 1, words, sizeof words);
    dc_error_raisef(L, d, DC_ERR_ARG_KIND, fn->name, "the arguments do not fit together: %s",
                    words);
}

/* Takes from the definition what no argument tells: sizes of results alone. False: nothing is missing. */
static bool add_given(const dc_fn *fn, dc_sig_bind *b)
{
    bool added = false;
    for (int i = 0; fn->has_given && i < fn->sig.nvar; i++)
        if (b->size[i] < 0 && fn->given.size[i] >= 0) {
            b->size[i] = fn->given.size[i];
            added = true;
        }
    return added;
}

/* All tensors among the leaves at once. */
static void match(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_fn_leaves *v, dc_fn_key *key)
{
    enum { FEW = 32 };
    dc_sig_leaf few[FEW], *leaf = few;
    int few_which[FEW], *which = few_which, n = 0;
    if (v->n > FEW) {
        leaf = lua_newuserdatauv(L, (size_t)v->n * (sizeof *leaf + sizeof *which), 0);
        which = (int *)(leaf + v->n);
    }
    dc_sig_miss miss;
    const bool parts = has_parts(L, d, fn);
    const dc_sig_bind before = key->bind;
    for (int i = 0; i < v->n; i++) {
        if (dc_handle_test(L, v->at[i].idx) == NULL)
            continue;
        const dc_handle *h = dc_handle_check(L, d, v->at[i].idx, fn->name);
        leaf[n] = (dc_sig_leaf){v->at[i].declared, *dc_handle_type(h)};
        if (parts)
            dc_fn_whole(fn, v->at[i].declared, &leaf[n].given);
        which[n++] = i;
    }
    bool fits = dc_sig_match(&fn->sig, &key->bind, leaf, n, &miss);
    if (fits && add_given(fn, &key->bind))
        fits = dc_sig_match(&fn->sig, &key->bind, leaf, n, &miss);
    if (fits)
        return;
    if (miss.kind == DC_MISS_OPEN &&
        fn->has_given) { /* only what was given at the definition tells */
        dc_sig_miss other;
        key->bind = fn->given;
        if (dc_sig_match(&fn->sig, &key->bind, leaf, n, &other))
            return;
        miss = other;
    }
    if (miss.leaf < 0)
        wrong_together(L, d, fn, &miss);
    wrong_leaf(L, d, fn, v, miss.kind == DC_MISS_NAME ? &before : &key->bind, which[miss.leaf],
               &miss);
}

void dc_fn_lies(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_fn_leaves *v, dc_fn_key *key)
{
    int told = 0;
    key->rt = NULL;
    for (int i = 0; i < v->n; i++) {
        const dc_handle *h = dc_handle_test(L, v->at[i].idx);
        dc_rt *rt = h != NULL && !dc_handle_roams(h) ? dc_handle_rt(h) : NULL;
        if (rt == NULL || rt == key->rt)
            continue;
        if (key->rt != NULL)
            dc_error_raisef(L, d, DC_ERR_DEVICES, fn->name,
                            "argument '%s' is on %s, argument '%s' on %s", v->at[told].label,
                            key->rt->device_name, v->at[i].label, rt->device_name);
        key->rt = rt;
        told = i;
    }
}

void dc_fn_bind(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_fn_leaves *v, dc_fn_key *key)
{
    const dc_sig_bind start = key->bind;
    match(L, d, fn, v, key);
    if (make_tensors(L, d, fn, v, &key->bind)) {
        key->bind = start;
        match(L, d, fn, v, key);
    }
}

/* ---- arguments made by a key ------------------------------------------------------------------ */

typedef struct pushing {
    lua_State *L;
    dc_dsl *d;
    const dc_fn_key *key;
    int at; /* in key->shape */
    dc_fn_leaf *leaf;
    void *ctx;
} pushing;

static void push_value(pushing *p, const dc_sig_type *t, const char *label)
{
    lua_State *L = p->L;
    luaL_checkstack(L, 8, "arguments");
    switch (t->kind) {
    case DC_SHAPE_TENSOR:
        p->leaf(p->ctx, L, t, label);
        break;
    case DC_SHAPE_RECORD:
        lua_createtable(L, 0, t->nfield);
        for (int f = 0; f < t->nfield; f++) {
            push_value(p, t->field[f].type,
                       dc_place_name(L, p->d, "%s.%s", label, t->field[f].name));
            lua_setfield(L, -2, t->field[f].name);
        }
        break;
    case DC_SHAPE_LIST: {
        const int64_t n = p->key->shape[p->at++];
        lua_createtable(L, (int)n, 0);
        for (int64_t i = 1; i <= n; i++) {
            push_value(p, t->of, dc_place_name(L, p->d, "%s[%" PRId64 "]", label, i));
            lua_rawseti(L, -2, i);
        }
        break;
    }
    }
}

/* The static value with this number. */
static void push_static(lua_State *L, int fn_idx, int64_t number)
{
    push_statics(L, fn_idx, VALUES);
    lua_rawgeti(L, -1, number);
    lua_remove(L, -2);
    const dc_fn *fn = dc_udata_node(L, fn_idx);
    if (lua_islightuserdata(L, -1) && lua_touserdata(L, -1) == (const void *)&fn->sig) {
        lua_pop(L, 1);
        lua_pushnil(L);
    }
}

void dc_fn_push_arguments(lua_State *L, dc_dsl *d, const dc_fn *fn, int fn_idx,
                          const dc_fn_key *key, dc_fn_leaf *leaf, void *ctx)
{
    pushing p = {L, d, key, 0, leaf, ctx};
    for (int i = 0; i < fn->sig.nparam; i++) {
        const dc_sig_param *param = &fn->sig.param[i];
        luaL_checkstack(L, 8, "arguments");
        if (param->type == NULL)
            push_static(L, fn_idx, key->shape[p.at++]);
        else if (param->optional && key->shape[p.at++] == 0)
            lua_pushnil(L);
        else
            push_value(&p, param->type, param->name);
    }
}

/* ---- what of two shapes differs --------------------------------------------------------------- */

typedef struct differing {
    const int64_t *a, *b; /* what is left of them */
    char *out;
    size_t room;
} differing;

static bool list_differs(differing *w, const dc_sig_type *t, const char *name)
{
    if (t->kind == DC_SHAPE_RECORD)
        for (int f = 0; f < t->nfield; f++)
            if (list_differs(w, t->field[f].type, name))
                return true;
    if (t->kind != DC_SHAPE_LIST)
        return false;
    const int64_t a = *w->a++, b = *w->b++;
    if (a != b)
        snprintf(w->out, w->room, "length of list %s %" PRId64 " -> %" PRId64, name, a, b);
    for (int64_t i = 0; i < a && a == b; i++)
        if (list_differs(w, t->of, name))
            return true;
    return a != b;
}

static void static_differs(lua_State *L, differing *w, int fn_idx, const char *name)
{
    push_static(L, fn_idx, w->a[-1]);
    push_static(L, fn_idx, w->b[-1]);
    const char *a = luaL_tolstring(L, -2, NULL), *b = luaL_tolstring(L, -2, NULL);
    snprintf(w->out, w->room, "%s %.40s -> %.40s", name, a, b);
    lua_pop(L, 4);
}

void dc_fn_shape_difference(lua_State *L, const dc_fn *fn, int fn_idx, const int64_t *a,
                            const int64_t *b, char *out, size_t room)
{
    differing w = {a, b, out, room};
    for (int i = 0; i < fn->sig.nparam; i++) {
        const dc_sig_param *p = &fn->sig.param[i];
        bool there = true;
        if (p->type == NULL || p->optional) {
            const int64_t was = *w.a++, is = *w.b++;
            there = is != 0;
            if (was != is && p->type == NULL)
                static_differs(L, &w, fn_idx, p->name);
            else if (was != is)
                snprintf(out, room, "%s %s", p->name, there ? "is given now" : "is left out now");
            if (was != is)
                return;
        }
        if (p->type != NULL && there && list_differs(&w, p->type, p->name))
            return;
    }
}

/* ---- results --------------------------------------------------------------------------------- */

/* What makes a tensor the declared one, where that is plain; "" else. */
static void hint_for_result(const dc_type *is, const dc_sig_type *want, char *hint, size_t size)
{
    const bool wide = (is->dtype == DC_I64 || is->dtype == DC_U64) &&
                      !dc_dtype_is_float(want->dtype) && !dc_dtype_is_complex(want->dtype) &&
                      want->dtype != DC_BOOL;
    *hint = '\0';
    if (is->dtype != want->dtype && is->rank == want->ndim && !dc_dtype_is_complex(is->dtype))
        snprintf(hint, size, ":cast \"%s\" converts%s", dc_dtype_name(want->dtype),
                 wide ? "; sums of integers are i64 or u64" : "");
    else if (is->dtype == want->dtype && want->ndim == 0)
        snprintf(hint, size, "loss:mean() or :sum()");
}

static DC_NORETURN void wrong_result(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_sig_bind *b,
                                     const dc_fn_leaves *v, int i, const dc_sig_miss *miss)
{
    char type[DC_TYPE_TEXT], words[200] = "", given[DC_TYPE_TEXT], text[2 * DC_TYPE_TEXT + 400];
    dc_handle *h = dc_handle_test(L, v->at[i].idx);
    const bool tensor = h != NULL && h->kind != DC_HANDLE_CLOSED;
    const dc_sig_type *want = v->at[i].declared;
    dc_sig_type_print(&fn->sig, b, want, type, sizeof type);
    snprintf(given, sizeof given, "%s", dc_handle_describe(L, v->at[i].idx));
    if (miss != NULL && miss->kind != DC_MISS_DTYPE && miss->kind != DC_MISS_RANK &&
        miss->kind != DC_MISS_SIZE)
        dc_sig_miss_print(&fn->sig, miss, 1, words, sizeof words);
    snprintf(text, sizeof text, "%s is %s, declared %s%s%s", v->at[i].label, given, type,
             *words ? ": " : "", words);
    char hint[100] = "";
    if (tensor)
        hint_for_result(dc_handle_type(h), want, hint, sizeof hint);
    const dc_operand in = {
        .h = h, .role = "result", .type = tensor ? *dc_handle_type(h) : (dc_type){0}};
    dc_error_fact(L, d, DC_ERR_RESULT_KIND, &(dc_fact){.op = fn->name, .word = {text}},
                  &(dc_blame){.in = &in,
                              .n = tensor,
                              .expected = type,
                              .got = given,
                              .hint = *hint != '\0' ? hint : NULL});
}

static void check_leaf(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_sig_bind *b,
                       const dc_fn_leaves *v, int i)
{
    dc_handle *h = dc_handle_test(L, v->at[i].idx);
    dc_sig_miss miss;
    if (h == NULL && dc_args_is_scalar(L, v->at[i].idx) && v->at[i].declared->ndim == 0)
        return;
    if (h == NULL || h->kind == DC_HANDLE_CLOSED)
        wrong_result(L, d, fn, b, v, i, NULL);
    if (!dc_sig_match_result(&fn->sig, b, v->at[i].declared, dc_handle_type(h), &miss))
        wrong_result(L, d, fn, b, v, i, &miss);
}

/* A body that returns what a layer gave returns nothing where the layer's :forward forgot to. */
static DC_NORETURN void wrong_count(lua_State *L, dc_dsl *d, const dc_fn *fn, int n)
{
    const dc_trace *t = dc_trace_current(L, d);
    const char *silent = n < fn->sig.nresult && t != NULL ? t->silent : NULL;
    const char *hint =
        silent != NULL ? lua_pushfstring(L, "the :forward of %s returned nothing", silent) : NULL;
    dc_error_fact(L, d, DC_ERR_RESULT_COUNT,
                  &(dc_fact){.op = fn->name, .num = {n, fn->sig.nresult}},
                  &(dc_blame){.hint = hint});
}

void dc_fn_take_results(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_sig_bind *bind, int idx, int n,
                        dc_fn_leaves *v, int64_t *shape, int *nshape)
{
    const dc_sig *sig = &fn->sig;
    dc_fn_leaves_begin(v);
    *nshape = 0;
    walk w = {.L = L, .d = d, .fn = fn, .v = v, .shape = shape, .nshape = nshape, .result = true};
    if (!sig->any_result && n != sig->nresult)
        wrong_count(L, d, fn, n);
    if (n > DC_SIG_RESULTS)
        dc_error_raisef(L, d, DC_ERR_ARG, fn->name, "%d results returned, %d is the most", n,
                        DC_SIG_RESULTS);
    for (int i = 0; i < n; i++) {
        snprintf(w.path, sizeof w.path, "result %d", i + 1);
        if (sig->any_result) {
            dc_handle_check(L, d, idx + i, fn->name);
            put_leaf(&w, NULL, idx + i);
        } else {
            take(&w, sig->result[i], idx + i);
        }
    }
    for (int i = 0; i < v->n && !sig->any_result; i++)
        check_leaf(L, d, fn, bind, v, i);
}

typedef struct joining {
    lua_State *L;
    const int64_t *shape;
    int at, next;
} joining;

static void push_result(joining *p, const dc_sig_type *t)
{
    lua_State *L = p->L;
    luaL_checkstack(L, 8, "results");
    switch (t->kind) {
    case DC_SHAPE_TENSOR:
        lua_pushvalue(L, p->next++);
        break;
    case DC_SHAPE_RECORD:
        lua_createtable(L, 0, t->nfield);
        for (int f = 0; f < t->nfield; f++) {
            push_result(p, t->field[f].type);
            lua_setfield(L, -2, t->field[f].name);
        }
        break;
    case DC_SHAPE_LIST: {
        const int64_t n = p->shape[p->at++];
        lua_createtable(L, (int)n, 0);
        for (int64_t i = 1; i <= n; i++) {
            push_result(p, t->of);
            lua_rawseti(L, -2, i);
        }
        break;
    }
    }
}

int dc_fn_push_results(lua_State *L, const dc_fn *fn, const int64_t *shape, int first, int nleaf)
{
    joining p = {L, shape, 0, first};
    if (fn->sig.any_result) {
        luaL_checkstack(L, nleaf, "results");
        for (int i = 0; i < nleaf; i++)
            lua_pushvalue(L, first + i);
        return nleaf;
    }
    for (int i = 0; i < fn->sig.nresult; i++)
        push_result(&p, fn->sig.result[i]);
    return fn->sig.nresult;
}

/* A name inside that is the signature's own becomes the caller's; others stay. */
static const char *name_outside(const dc_fn *fn, const dc_sig_bind *b, const char *name)
{
    const int var = name != NULL ? dc_sig_var(&fn->sig, name) : -1;
    return var >= 0 ? b->name[var] : name;
}

void dc_fn_outside(const dc_fn *fn, const dc_sig_bind *b, const dc_sig_type *declared,
                   const dc_type *inside, dc_type *out)
{
    dc_type named;
    *out = *inside;
    const bool known = declared != NULL && dc_sig_resolve_outside(b, declared, &named);
    for (int k = 0; k < out->rank; k++) {
        out->name[k] = name_outside(fn, b, inside->name[k]);
        if (known && named.rank == out->rank && named.name[k] != NULL)
            out->name[k] = named.name[k];
    }
}
