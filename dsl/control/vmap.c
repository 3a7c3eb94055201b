/*
 * dc.vmap in a function that is traced: what f made of the stand-ins is taken out of the graph, and put in again over
 * one more axis (core/transform/batch.h).
 *
 *   control_vmap(body, { xs =, element =, results =, n =, name =, once = })
 *                                  a list of results, with the new axis in front, and a list of booleans: which are
 *                                  other ones for each row. once[i]: if it is not, result i stays without the axis
 *   control_keep_cells(body)       as it begins: cells, which f does not set, have the values from before it
 *   control_map_call(f, ...)       outside typed functions: calls it; no cell is set meanwhile
 *   control_axis(x, axis, op)      the number of an axis, from 1; its name or nil
 *
 * The number of the row is the number of the element of a loop, so random numbers are drawn as in loops. Of each test
 * of data the first row that fails is told. What dc.print shows has the axis behind those of loops around it.
 */
#include "core/base/extent.h"
#include "core/transform/batch.h"
#include "dsl/base/args.h"
#include "dsl/base/size.h"
#include "dsl/control/control.h"

#include <inttypes.h>
#include <string.h>

/* What is printed: so many loops of the body are around it; one integer or truth value that tells what is shown. */
typedef struct shown {
    int depth;
    bool tells;
} shown;

typedef struct mapping {
    dc_control *c;
    dc_handles xs, element, result; /* xs and element of equal length */
    dc_handles out;
    bool *once;   /* by result */
    bool *varies; /* by result, found */
    int64_t n;
    const char *name; /* of the axis; interned, or NULL */
    dc_place place;   /* of what failed */
    shown *shown;     /* by value that is printed */
    uint32_t nshown;
} mapping;

/* All refs are in root: results, two for each test, prints. After batching they are in made. */
typedef struct assembly {
    mapping *a;
    dc_job *j;
    dc_trace *t;
    dc_trace_body *b;
    dc_func *f;
    dc_ref *root, *made;
    bool *batched;
    int nroot, first_check, first_print;
    uint32_t ncheck, nprint;
    dc_trace_check *check;
    dc_val *print;
} assembly;

/* ---- what f has left ------------------------------------------------------------------------- */

static dc_status gather(assembly *s)
{
    const mapping *a = s->a;
    const dc_trace *t = s->t;
    dc_arena *scratch = &s->j->scratch;
    s->ncheck = t->check.n - s->b->ncheck;
    s->nprint = t->print.n - s->b->nprint;
    s->first_check = a->result.n;
    s->first_print = s->first_check + 2 * (int)s->ncheck;
    s->nroot = s->first_print + (int)s->nprint;
    s->root = DC_NEW_ARRAY(scratch, dc_ref, (uint32_t)s->nroot + 1);
    s->made = DC_NEW_ARRAY(scratch, dc_ref, (uint32_t)s->nroot + 1);
    s->batched = DC_NEW_ARRAY(scratch, bool, (uint32_t)s->nroot + 1);
    s->check = DC_NEW_ARRAY(scratch, dc_trace_check, s->ncheck + 1);
    s->print = DC_NEW_ARRAY(scratch, dc_val, s->nprint + 1);
    for (int i = 0; i < a->result.n; i++) {
        dc_val v;
        DC_TRY(dc_trace_value(s->j, s->t, a->result.at[i], &v));
        s->root[i] = v.ref;
    }
    for (uint32_t i = 0; i < s->ncheck; i++) {
        s->check[i] = t->check.at[s->b->ncheck + i];
        s->root[s->first_check + 2 * (int)i] = s->check[i].position;
        s->root[s->first_check + 2 * (int)i + 1] = s->check[i].value;
    }
    for (uint32_t i = 0; i < s->nprint; i++) {
        s->print[i] = t->print.at[s->b->nprint + i];
        s->root[s->first_print + (int)i] = s->print[i].ref;
    }
    return DC_OK;
}

/* ---- over the axis --------------------------------------------------------------------------- */

/* Parameters are the number of the row, the elements, then what is captured. */
static dc_status outline(assembly *s, dc_outline *o, dc_func **out)
{
    const mapping *a = s->a;
    dc_ref *stand = DC_NEW_ARRAY(&s->j->scratch, dc_ref, (uint32_t)a->element.n + 1);
    stand[0] = s->b->i.ref;
    for (int i = 0; i < a->element.n; i++) {
        dc_val v;
        DC_TRY(dc_trace_value(s->j, s->t, a->element.at[i], &v));
        stand[1 + i] = v.ref;
    }
    *o = (dc_outline){.f = s->f,
                      .mark = s->b->mark,
                      .root = s->root,
                      .stand_in = stand,
                      .nroot = s->nroot,
                      .nstand_in = 1 + a->element.n,
                      .head = 1 + a->element.n};
    return dc_outline_function(s->j, o, out);
}

static dc_status batch(assembly *s)
{
    const mapping *a = s->a;
    dc_outline *o = DC_NEW_ARRAY(&s->j->scratch, dc_outline, 1);
    const dc_type rows = dc_type_make(DC_I32, 1, &a->n);
    dc_func *body;
    dc_val at;
    DC_TRY(outline(s, o, &body));
    const uint32_t total = body->param.n;
    dc_ref *param = DC_NEW_ARRAY(&s->j->scratch, dc_ref, total + 1);
    bool *has = DC_NEW_ARRAY(&s->j->scratch, bool, total + 1);
    DC_TRY(dc_build_iota(s->j, s->f, &rows, 0, &at));
    param[0] = at.ref;
    for (int i = 0; i < a->xs.n; i++) {
        DC_TRY(dc_trace_value(s->j, s->t, a->xs.at[i], &at));
        param[1 + i] = at.ref;
    }
    for (int i = 0; i <= a->xs.n; i++)
        has[i] = true;
    memcpy(param + 1 + a->xs.n, o->captured, (size_t)o->ncaptured * sizeof *param);
    const dc_status status =
        dc_batch_inline(s->j, s->f, body, param, has, a->n, s->made, s->batched);
    dc_func_drop(body);
    if (status != DC_OK && s->f->where != NULL)
        s->a->place = (dc_place){s->f->where, s->f->path};
    return status;
}

/* ---- tests of data --------------------------------------------------------------------------- */

static dc_status number(assembly *s, dc_dtype t, int64_t v, dc_val *out)
{
    const dc_type type = dc_type_scalar(t);
    return dc_build_bits(s->j, s->f, &type, (uint64_t)v, out);
}

static dc_status ew(assembly *s, dc_op op, dc_val a, dc_val b, dc_val *out)
{
    return dc_build_ew(s->j, s->f, op, (const dc_val[]){a, b}, 2, out);
}

static dc_status where(assembly *s, dc_val p, dc_val yes, dc_val no, dc_val *out)
{
    return dc_build_ew(s->j, s->f, DC_OP_WHERE, (const dc_val[]){p, yes, no}, 3, out);
}

static dc_val value_of(const assembly *s, dc_ref r)
{
    return (dc_val){r, dc_node_type(s->f, r)};
}

/* The number of elements of t, of i32. */
static dc_status count(assembly *s, const dc_type *t, dc_val *out)
{
    dc_type all = *t;
    all.dtype = DC_I32;
    if (dc_build_is_bounded(t, (1u << t->rank) - 1))
        return dc_build_count(s->j, s->f, &all, 1, out);
    return number(s, DC_I32, dc_type_count(t), out);
}

/* The type of what is tested with the axis in front; false: it is none, or its positions do not fit an i32. */
static bool tested_type(const assembly *s, const dc_type *t, dc_type *out)
{
    const dc_type most = dc_type_bound(t);
    const int64_t rows = dc_extent_bound(s->a->n);
    if (t->rank == DC_MAX_RANK || dc_type_count(&most) > INT32_MAX / (rows > 0 ? rows : 1))
        return false;
    *out = (dc_type){.dtype = t->dtype, .rank = (uint8_t)(t->rank + 1), .dim = {s->a->n}};
    out->name[0] = s->a->name;
    for (int k = 0; k < t->rank; k++) {
        out->dim[k + 1] = t->dim[k];
        out->name[k + 1] = t->name[k];
    }
    return true;
}

/* Of positions and integers by row, those of the first row where the position is not -1. */
static dc_status find_first(assembly *s, dc_trace_check *c, dc_val position, dc_val value)
{
    dc_val at, end, zero, none, hit, first, start, size, nothing;
    const dc_type rows = position.type;
    dc_type all;
    DC_TRY(dc_build_iota(s->j, s->f, &rows, 0, &at));
    DC_TRY(count(s, &rows, &end));
    DC_TRY(number(s, DC_I32, 0, &zero));
    DC_TRY(number(s, DC_I32, -1, &none));
    DC_TRY(number(s, (dc_dtype)value.type.dtype, 0, &nothing));
    DC_TRY(ew(s, DC_OP_LE, zero, position, &hit));
    DC_TRY(where(s, hit, at, end, &first));
    DC_TRY(dc_build_reduce(s->j, s->f, DC_OP_MINR, first, 1, false, &first));
    DC_TRY(ew(s, DC_OP_EQ, at, first, &hit));
    DC_TRY(where(s, hit, position, zero, &position));
    DC_TRY(dc_build_reduce(s->j, s->f, DC_OP_SUM, position, 1, false, &position));
    DC_TRY(where(s, hit, value, nothing, &value));
    DC_TRY(dc_build_reduce(s->j, s->f, DC_OP_SUM, value, 1, false, &value));
    if (tested_type(s, &c->type, &all)) {
        DC_TRY(count(s, &c->type, &size));
        DC_TRY(ew(s, DC_OP_MUL, first, size, &start));
        DC_TRY(ew(s, DC_OP_ADD, start, position, &position));
        c->type = all;
    }
    if (tested_type(s, &c->shown, &all))
        c->shown = all;
    DC_TRY(ew(s, DC_OP_LT, first, end, &hit));
    DC_TRY(where(s, hit, position, none, &position));
    c->position = position.ref;
    c->value = value.ref;
    return DC_OK;
}

static dc_status add_checks(assembly *s)
{
    for (uint32_t i = 0; i < s->ncheck; i++) {
        dc_trace_check *c = &s->check[i];
        const int at = s->first_check + 2 * (int)i;
        c->position = s->made[at];
        c->value = s->made[at + 1];
        if (!s->batched[at] && !s->batched[at + 1])
            continue;
        for (int k = at; k < at + 2; k++)
            if (!s->batched[k])
                DC_TRY(dc_batch_spread(s->j, s->f, s->made[k], s->a->n, &s->made[k]));
        DC_TRY(find_first(s, c, value_of(s, s->made[at]), value_of(s, s->made[at + 1])));
    }
    return DC_OK;
}

/* ---- what comes of it ------------------------------------------------------------------------ */

/* The new axis in front of t, under its name if no other axis has that. */
static dc_type with_axis(const assembly *s, dc_ref r, const dc_type *t)
{
    dc_type out = dc_node_type(s->f, r);
    if (dc_dtype_is_complex((dc_dtype)t->dtype)) {
        out.dtype = t->dtype;
        out.rank--;
    }
    out.name[0] = s->a->name;
    for (int k = 0; k < t->rank; k++) {
        out.name[k + 1] = t->name[k];
        if (t->name[k] == s->a->name)
            out.name[0] = NULL;
    }
    return out;
}

static dc_status make_results(assembly *s, dc_val *out)
{
    mapping *a = s->a;
    for (int i = 0; i < a->result.n; i++) {
        const dc_type t = *dc_handle_type(a->result.at[i]);
        dc_ref r = s->made[i];
        a->varies[i] = s->batched[i];
        if (!s->batched[i] && a->once[i]) {
            out[i] = (dc_val){r, t};
            continue;
        }
        if (!s->batched[i])
            DC_TRY(dc_batch_spread(s->j, s->f, r, a->n, &r));
        out[i] = (dc_val){r, with_axis(s, r, &t)};
    }
    return DC_OK;
}

/* Its axis stands behind those of the loops that have stacked it, whose elements are shown one by one. */
static dc_status add_print(assembly *s, uint32_t i)
{
    const int at = s->first_print + (int)i, depth = s->a->shown[i].depth;
    dc_val v = {s->made[at], s->print[i].type};
    if (s->batched[at] && s->a->shown[i].tells)
        return dc_fail(s->j, DC_ERR_CONTROL,
                       &(dc_fact){.op = "vmap",
                                  .word = {"dc.print in a loop or a branch that is another one for "
                                           "each row"}});
    if (s->batched[at]) {
        const dc_type t = with_axis(s, v.ref, &v.type);
        int64_t perm[DC_MAX_RANK];
        for (int k = 0; k < t.rank; k++)
            perm[k] = k < depth ? k + 1 : k == depth ? 0 : k;
        v.type = t;
        DC_TRY(dc_build_permute(s->j, s->f, v, perm, t.rank, &v));
    }
    s->print[i] = v;
    return DC_OK;
}

static dc_status end_vmap_body(dc_job *j, void *arg)
{
    mapping *a = arg;
    dc_control *c = a->c;
    dc_trace *t = c->t;
    assembly s = {.a = a, .j = j, .t = t, .b = c->body, .f = t->f};
    dc_func_from(t->f, c->place.where, c->place.path);
    DC_TRY(gather(&s));
    s.b->end = t->f->node.n; /* what comes is of all rows, and not its own */
    DC_TRY(batch(&s));
    dc_val *out = DC_NEW_ARRAY(&j->scratch, dc_val, (uint32_t)a->result.n + 1);
    DC_TRY(make_results(&s, out));
    DC_TRY(add_checks(&s));
    for (uint32_t i = 0; i < s.nprint; i++)
        DC_TRY(add_print(&s, i));
    dc_trace_body_end(t, s.b);
    c->body = NULL;
    for (int i = 0; i < a->result.n; i++) { /* no tensors of the body that has ended */
        a->out.at[i]->born = ++t->d->born;
        dc_handle_trace(a->out.at[i], t, &out[i]);
    }
    for (uint32_t i = 0; i < s.ncheck; i++)
        DC_PUSH(t->check, s.check[i]);
    for (uint32_t i = 0; i < s.nprint; i++)
        DC_PUSH(t->print, s.print[i]);
    return DC_OK;
}

/* ---- bindings -------------------------------------------------------------------------------- */

/* The first cell that f has set, with the line of the last one. */
static void refuse_sets(lua_State *L, const dc_control *c)
{
    const dc_trace *t = c->t;
    for (uint32_t i = 0; i < t->cell.n; i++) {
        const dc_trace_cell *entry = &t->cell.at[i];
        if (!entry->is_set || entry->cell == c->d->generator)
            continue;
        const uint32_t origin = dc_node_at(t->f, entry->read.at[entry->read.n - 1].ref)->origin;
        const char *where = origin != 0 ? t->f->origins.at[origin].where : NULL;
        const char *text =
            lua_pushfstring(L, "the function sets %s%s%s, and each row would set it",
                            entry->cell->label != NULL ? entry->cell->label : "a cell",
                            where != NULL ? " at " : "", where != NULL ? where : "");
        dc_error_fact(
            L, c->d, DC_ERR_CONTROL, &(dc_fact){.op = c->op, .word = {text}},
            &(dc_blame){.place = &c->place, .hint = "return the value, and set it outside"});
    }
}

/* One value that is printed. */
static void note_shown(mapping *a, int depth, bool tells)
{
    if (a->shown != NULL)
        a->shown[a->nshown] = (shown){depth, tells};
    a->nshown++;
}

/* Goes through the lines from number `from` on of the table on top, as dsl/fn/dim_print.c shows them. */
static void walk_lines(lua_State *L, mapping *a, int from, int depth)
{
    const int lines = lua_gettop(L), n = (int)lua_rawlen(L, lines);
    luaL_checkstack(L, 8, "dc.print");
    for (int i = from; i <= n; i++, lua_settop(L, lines)) {
        lua_rawgeti(L, lines, i);
        lua_getfield(L, -1, "kind");
        const char *kind = lua_tostring(L, -1);
        lua_getfield(L, -2, "counted");
        const bool counted = lua_toboolean(L, -1);
        lua_settop(L, lines + 1);
        if (kind == NULL) {
            for (int k = (int)lua_rawlen(L, -1); k > 0; k--, lua_pop(L, 1))
                if (lua_rawgeti(L, lines + 1, k) == LUA_TBOOLEAN)
                    note_shown(a, depth, false);
            continue;
        }
        if (*kind == 's' || counted)
            note_shown(a, depth, true);
        walk_lines(L, a, 1, depth + (*kind == 'l'));
    }
}

/* Pushes what is needed of the lines that f has printed. */
static void look_at_lines(lua_State *L, mapping *a)
{
    const int from = a->c->body->nline + 1;
    dc_trace_push_prints(L, a->c->t);
    walk_lines(L, a, from, 0);
    shown *list = lua_newuserdatauv(L, (a->nshown + 1) * sizeof *list, 0);
    lua_insert(L, -2);
    a->shown = list;
    a->nshown = 0;
    walk_lines(L, a, from, 0);
    lua_pop(L, 1);
    DC_ASSERT(a->nshown == a->c->t->print.n - a->c->body->nprint, "%u of %u values printed",
              a->nshown, a->c->t->print.n - a->c->body->nprint);
}

static const char *text_field(lua_State *L, dc_dsl *d, int idx, const char *name)
{
    lua_getfield(L, idx, name);
    const char *text =
        lua_isnil(L, -1) ? NULL : dc_name_intern_text(d->rt->names, luaL_checkstring(L, -1));
    lua_pop(L, 1);
    return text;
}

/* The booleans in field `once`, and as many for the results, in a new userdata on the stack. */
static void make_flags(lua_State *L, mapping *a)
{
    const int n = a->result.n;
    a->once = lua_newuserdatauv(L, 2 * (size_t)n + 1, 0);
    a->varies = a->once + n;
    lua_getfield(L, 2, "once");
    for (int i = 0; i < n; i++, lua_pop(L, 1)) {
        lua_rawgeti(L, -1, i + 1);
        a->once[i] = lua_toboolean(L, -1);
        a->varies[i] = false;
    }
    lua_pop(L, 1);
}

/* control_vmap(body, { ... }) */
static int l_vmap(lua_State *L)
{
    mapping a = {.c = dc_control_check(L, 1)};
    dc_dsl *d = a.c->d;
    lua_settop(L, 2);
    luaL_checkstack(L, 24, "dc.vmap");
    a.xs = dc_control_list(L, d, 2, "xs");
    a.element = dc_control_list(L, d, 2, "element");
    a.result = dc_control_list(L, d, 2, "results");
    a.name = text_field(L, d, 2, "name");
    lua_getfield(L, 2, "n");
    a.n = dc_size_check_dim(L, -1);
    lua_pop(L, 1);
    make_flags(L, &a);
    refuse_sets(L, a.c);
    look_at_lines(L, &a);
    a.out = dc_control_fresh(L, a.c, a.result.n);
    const int list = lua_gettop(L);
    a.place = a.c->place;
    if (dc_run_once(d, end_vmap_body, &a) != DC_OK) {
        const dc_err_id id = d->rt->job.err.id;
        a.place.where = dc_place_intern(d, "%s", a.place.where != NULL ? a.place.where : "?");
        a.place.path = a.place.path != NULL ? dc_place_intern(d, "%s", a.place.path) : NULL;
        dc_error_raise(
            L, d,
            &(dc_blame){.place = &a.place,
                        .hint = id == DC_ERR_TOO_MANY_AXES ? "one of them is that of dc.vmap"
                                : id == DC_ERR_EXTENT
                                    ? "the convolution has a group for each row of dc.vmap; "
                                      "dc.map has none"
                                : id == DC_ERR_CONTROL ? "dc.print in front of it, or behind it"
                                                       : NULL});
    }
    lua_pushvalue(L, list);
    lua_createtable(L, a.result.n, 0);
    for (int i = 0; i < a.result.n; i++) {
        lua_pushboolean(L, a.varies[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 2;
}

/*
 * control_keep_cells(body). What a loop may set has a stand-in. Here the value itself is read, so that a gradient for a
 * cell is also that of what was made of it before f.
 */
static int l_keep_cells(lua_State *L)
{
    const dc_control *c = dc_control_check(L, 1);
    for (uint32_t i = 0; i < c->body->ncell; i++) {
        dc_trace_saved *saved = &c->body->cell[i];
        if (saved->stand_in == 0)
            continue;
        c->t->cell.at[i].read.n = saved->nread;
        saved->stand_in = 0;
    }
    return 0;
}

/* control_map_call(f, ...) */
static int l_map_call(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_place place = dc_place_find(L, d);
    const char *was = d->mapping;
    d->mapping = place.where != NULL ? place.where : "?";
    const int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    d->mapping = was;
    return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

/* control_axis(x, axis, op) */
static int l_axis(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 3);
    const dc_type t = *dc_handle_type(dc_handle_check(L, d, 1, op));
    const int axis = dc_args_axis_of(L, d, 2, &t, op);
    lua_pushinteger(L, axis + 1);
    lua_pushstring(L, t.name[axis]);
    return 2;
}

static const dc_binding bindings[] = {
    {"control_vmap", l_vmap, DC_ANY, DC_IN_LIBRARY},
    {"control_keep_cells", l_keep_cells, DC_ANY, DC_IN_LIBRARY},
    {"control_map_call", l_map_call, DC_ANY, DC_IN_LIBRARY},
    {"control_axis", l_axis, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_vmap_bindings = DC_BINDINGS(bindings);
