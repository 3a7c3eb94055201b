/*
 * Loops: what a body has returned, and done besides, becomes one node.
 *
 *   control_test(body, c)        of a while loop: the condition, made of the stand-ins; what follows is the body
 *   control_loop(body, { init =, stand =, next =, xs =, element =, ys =, n =, reverse =, remat =, limit = })
 *                                two lists, of what the carries are in the end and of the stacked ys
 *
 * Carries, besides those of the script: the condition; each cell that the body sets; of each test of data the first
 * integer that it found, and where; the number of iterations where a print has to know it. Values that are printed
 * are ys.
 */
#include "core/autodiff/chunks.h"
#include "core/build/complex.h"
#include "dsl/base/args.h"
#include "dsl/base/size.h"
#include "dsl/control/control.h"
#include "dsl/ops/ops.h"

#include <string.h>

typedef struct looping {
    dc_control *c;
    dc_handles init, stand, next, xs, element, ys; /* of equal lengths: 3 and 2 */
    dc_handles last, stacked;                      /* results */
    dc_handle *limit;
    int64_t n;
    bool reverse, remat;
    int nline;       /* that the body prints */
    uint32_t nprint; /* values in them, found */
} looping;

/* One carry. */
typedef struct carried {
    dc_ref init, stand_in, next;
} carried;

/* What is put together while a loop is recorded. All refs are in root: next carries, sets, tests, ys, prints. */
typedef struct assembly {
    looping *a;
    dc_job *j;
    dc_trace *t;
    dc_trace_body *b;
    dc_func *f;
    uint32_t *set; /* numbers of cells */
    uint32_t nset, ncheck, nprint;
    int ncarry, ny;
    dc_ref *root;
    int nroot, first_set, first_check, first_y, first_print, test; /* in root; test -1: none */
    dc_val *print;
    dc_ref *start;   /* the condition's tests of what the carries begin with */
    carried *carry;  /* the condition, the script's, cells, tests, count */
    int nall, count; /* of all; where the count is, -1: nowhere */
    dc_loop l;
    dc_ref *result; /* of the loop: carries, then ys */
} assembly;

/* ---- what the body has left ------------------------------------------------------------------ */

static dc_status read_list(assembly *s, const dc_handles *list, dc_ref *out)
{
    for (int i = 0; i < list->n; i++) {
        dc_val v;
        DC_TRY(dc_trace_value(s->j, s->t, list->at[i], &v));
        out[i] = v.ref;
    }
    return DC_OK;
}

static dc_status gather(assembly *s)
{
    const looping *a = s->a;
    dc_trace *t = s->t;
    dc_arena *scratch = &s->j->scratch;
    s->nset = dc_control_sets(t, scratch, &s->set);
    s->ncheck = t->check.n - s->b->ncheck;
    s->nprint = t->print.n - s->b->nprint;
    s->ncarry = a->next.n;
    s->ny = a->ys.n;
    s->first_set = s->ncarry;
    s->first_check = s->first_set + (int)s->nset;
    s->first_y = s->first_check + 2 * (int)s->ncheck;
    s->first_print = s->first_y + s->ny;
    s->nroot = s->first_print + (int)s->nprint;
    s->test = a->c->test.ref != 0 ? s->nroot++ : -1;
    s->root = DC_NEW_ARRAY(scratch, dc_ref, (uint32_t)s->nroot + 1);
    s->print = DC_NEW_ARRAY(scratch, dc_val, s->nprint + 1);
    s->start = DC_NEW_ARRAY(scratch, dc_ref, 2 * a->c->ntest + 1);
    DC_TRY(read_list(s, &a->next, s->root));
    for (uint32_t i = 0; i < s->nset; i++)
        s->root[s->first_set + (int)i] = t->cell.at[s->set[i]].set.ref;
    for (uint32_t i = 0; i < s->ncheck; i++) {
        const dc_trace_check *c = &t->check.at[s->b->ncheck + i];
        s->root[s->first_check + 2 * (int)i] = c->position;
        s->root[s->first_check + 2 * (int)i + 1] = c->value;
    }
    DC_TRY(read_list(s, &a->ys, s->root + s->first_y));
    for (uint32_t i = 0; i < s->nprint; i++) {
        s->print[i] = t->print.at[s->b->nprint + i];
        s->root[s->first_print + (int)i] = s->print[i].ref;
    }
    if (s->test >= 0)
        s->root[s->test] = a->c->test.ref;
    return DC_OK;
}

static bool is_set(const assembly *s, uint32_t cell)
{
    for (uint32_t i = 0; i < s->nset; i++)
        if (s->set[i] == cell)
            return true;
    return false;
}

/* The value of a cell before the loop. */
static dc_ref outer_value(const assembly *s, uint32_t cell)
{
    const dc_trace_cell *c = &s->t->cell.at[cell];
    return c->read.at[cell < s->b->ncell ? s->b->cell[cell].nread - 1 : 0].ref;
}

/* Cells that the body did not set have the value from before it. */
static void put_unset_cells(assembly *s)
{
    dc_ref *from = DC_NEW_ARRAY(&s->j->scratch, dc_ref, s->b->ncell + 1);
    dc_ref *to = DC_NEW_ARRAY(&s->j->scratch, dc_ref, s->b->ncell + 1);
    int n = 0;
    for (uint32_t i = 0; i < s->b->ncell; i++) {
        if (s->b->cell[i].stand_in == 0 || is_set(s, i))
            continue;
        from[n] = s->b->cell[i].stand_in;
        to[n++] = outer_value(s, i);
    }
    if (n > 0)
        dc_graph_replace(s->j, s->f, from, to, n, s->root, s->nroot);
}

/* ---- carries --------------------------------------------------------------------------------- */

static dc_status add_carry(assembly *s, dc_ref init, dc_ref stand_in, dc_ref next)
{
    if (s->nall == DC_MAX_OPERANDS)
        return dc_failf(s->j, DC_ERR_ARG, s->a->c->op, "more than %d tensors are carried",
                        DC_MAX_OPERANDS);
    s->carry[s->nall++] = (carried){init, stand_in, next};
    return DC_OK;
}

static dc_status number(assembly *s, dc_dtype t, int64_t v, dc_ref *out)
{
    dc_val made;
    const dc_type type = dc_type_scalar(t);
    DC_TRY(dc_build_bits(s->j, s->f, &type, dc_bits_of(t, (double)v), &made));
    *out = made.ref;
    return DC_OK;
}

static dc_status add_script_carries(assembly *s)
{
    dc_ref *init = DC_NEW_ARRAY(&s->j->scratch, dc_ref, (uint32_t)s->ncarry + 1);
    dc_ref *stand = DC_NEW_ARRAY(&s->j->scratch, dc_ref, (uint32_t)s->ncarry + 1);
    DC_TRY(read_list(s, &s->a->init, init));
    DC_TRY(read_list(s, &s->a->stand, stand));
    for (int i = 0; i < s->ncarry; i++)
        DC_TRY(add_carry(s, init[i], stand[i], s->root[i]));
    return DC_OK;
}

static dc_status add_cells(assembly *s)
{
    for (uint32_t i = 0; i < s->nset; i++) {
        const uint32_t cell = s->set[i];
        if (cell < s->b->ncell && s->b->cell[cell].pulled)
            return dc_fail(
                s->j, DC_ERR_CONTROL,
                &(dc_fact){
                    .op = s->a->c->op,
                    .word = {
                        "the body takes a gradient for a cell through what was made of it before "
                        "the loop, and sets the cell"}});
        const dc_ref outer = outer_value(s, cell);
        const dc_ref stand = cell < s->b->ncell ? s->b->cell[cell].stand_in : outer;
        DC_TRY(add_carry(s, outer, stand, s->root[s->first_set + (int)i]));
    }
    return DC_OK;
}

/* The first one found stays: where(position >= 0, what there was, what is new). */
static dc_status add_check(assembly *s, dc_ref position, dc_ref value)
{
    const dc_type at = dc_node_type(s->f, position), what = dc_node_type(s->f, value);
    const dc_ref had = dc_graph_stand_in(s->f, &at), was = dc_graph_stand_in(s->f, &what);
    dc_ref none, zero, nothing, clean, next, v;
    DC_TRY(number(s, DC_I32, -1, &none));
    DC_TRY(number(s, DC_I32, 0, &zero));
    DC_TRY(number(s, (dc_dtype)what.dtype, 0, &nothing));
    DC_TRY(dc_control_ew(s->j, s->f, DC_OP_LT, (dc_ref[]){had, zero}, 2, &clean));
    DC_TRY(dc_control_ew(s->j, s->f, DC_OP_WHERE, (dc_ref[]){clean, position, had}, 3, &next));
    DC_TRY(dc_control_ew(s->j, s->f, DC_OP_WHERE, (dc_ref[]){clean, value, was}, 3, &v));
    DC_TRY(add_carry(s, none, had, next));
    return add_carry(s, nothing, was, v);
}

static dc_status add_checks(assembly *s)
{
    for (uint32_t i = 0; i < s->ncheck; i++) {
        const dc_ref *c = s->root + s->first_check + 2 * (int)i;
        DC_TRY(add_check(s, c[0], c[1]));
    }
    return DC_OK;
}

/* A while loop ends where a test of data has found something: what it would compute from there may never end. */
static dc_status end_at_fault(assembly *s, dc_ref position, dc_ref *test)
{
    dc_ref zero, clean;
    DC_TRY(number(s, DC_I32, 0, &zero));
    DC_TRY(dc_control_ew(s->j, s->f, DC_OP_LT, (dc_ref[]){position, zero}, 2, &clean));
    return dc_control_ew(s->j, s->f, DC_OP_AND, (dc_ref[]){*test, clean}, 2, test);
}

static dc_status end_at_faults(assembly *s)
{
    const int first = s->nall - 2 * (int)s->ncheck;
    for (uint32_t i = 0; i < s->a->c->ntest; i++)
        DC_TRY(end_at_fault(s, s->start[2 * i], &s->carry[0].init));
    for (uint32_t i = 0; i < s->ncheck; i++)
        DC_TRY(end_at_fault(s, s->carry[first + 2 * (int)i].next, &s->carry[0].next));
    return DC_OK;
}

/* How many iterations there were. */
static dc_status add_count(assembly *s)
{
    const dc_type i32 = dc_type_scalar(DC_I32);
    const dc_ref had = dc_graph_stand_in(s->f, &i32);
    dc_ref zero, one, next;
    DC_TRY(number(s, DC_I32, 0, &zero));
    DC_TRY(number(s, DC_I32, 1, &one));
    DC_TRY(dc_control_ew(s->j, s->f, DC_OP_ADD, (dc_ref[]){had, one}, 2, &next));
    return add_carry(s, zero, had, next);
}

/*
 * The condition is looked at before each iteration: once made of what the carries begin with, and in the body of what
 * they are next, where the number of the element is the next one, too. Its tests of data as well.
 */
static dc_status put_test(assembly *s)
{
    const int n = s->nall - 1, ntest = 1 + 2 * (int)s->a->c->ntest;
    dc_arena *a = &s->j->scratch;
    dc_ref *from = DC_NEW_ARRAY(a, dc_ref, (uint32_t)n + 1);
    dc_ref *to = DC_NEW_ARRAY(a, dc_ref, (uint32_t)n + 1);
    dc_ref *root = DC_NEW_ARRAY(a, dc_ref, (uint32_t)ntest), zero, one, next;
    DC_TRY(number(s, DC_I32, 0, &zero));
    DC_TRY(number(s, DC_I32, 1, &one));
    DC_TRY(dc_control_ew(s->j, s->f, DC_OP_ADD, (dc_ref[]){s->b->i.ref, one}, 2, &next));
    for (int i = 0; i < n; i++)
        from[i] = s->carry[1 + i].stand_in;
    from[n] = s->b->i.ref;
    for (int turn = 0; turn < 2; turn++) {
        root[0] = s->root[s->test];
        memcpy(root + 1, s->root + s->first_check, (size_t)(ntest - 1) * sizeof *root);
        for (int i = 0; i < n; i++)
            to[i] = turn == 0 ? s->carry[1 + i].init : s->carry[1 + i].next;
        to[n] = turn == 0 ? zero : next;
        dc_graph_replace(s->j, s->f, from, to, n + 1, root, ntest);
        if (turn == 0) {
            s->carry[0].init = root[0];
            memcpy(s->start, root + 1, (size_t)(ntest - 1) * sizeof *root);
        }
    }
    s->carry[0].next = root[0];
    memcpy(s->root + s->first_check, root + 1, (size_t)(ntest - 1) * sizeof *root);
    return DC_OK;
}

static dc_status make_carries(assembly *s)
{
    const dc_type flag = dc_type_scalar(DC_BOOL);
    s->carry = DC_NEW_ARRAY(&s->j->scratch, carried, DC_MAX_OPERANDS);
    if (s->test >= 0)
        DC_TRY(add_carry(s, 0, dc_graph_stand_in(s->f, &flag), 0));
    DC_TRY(add_script_carries(s));
    DC_TRY(add_cells(s));
    if (s->test >= 0)
        DC_TRY(put_test(s));
    DC_TRY(add_checks(s));
    if (s->test >= 0)
        DC_TRY(end_at_faults(s));
    s->count = -1;
    if (s->a->nline > 0 && (s->test >= 0 || s->a->limit != NULL)) {
        s->count = s->nall;
        DC_TRY(add_count(s));
    }
    return DC_OK;
}

/* ---- the node -------------------------------------------------------------------------------- */

static dc_type stacked(const dc_type *t, int64_t n, const char *name)
{
    dc_type out = dc_type_stacked(t, n);
    out.name[0] = name;
    return out;
}

/* Can n of this type be one tensor? TOO_MANY_AXES, TOO_LARGE. */
static dc_status check_stack(assembly *s, const dc_type *t)
{
    if (t->rank == DC_MAX_RANK)
        return dc_fail(s->j, DC_ERR_TOO_MANY_AXES,
                       &(dc_fact){.op = s->a->c->op, .num = {DC_MAX_RANK + 1, DC_MAX_RANK}});
    const dc_type all = stacked(t, s->a->n, NULL);
    char text[DC_TYPE_TEXT];
    dc_type_print(&all, text, sizeof text);
    if (!dc_dims_fit(all.rank, all.dim, dc_dtype_size((dc_dtype)all.dtype)))
        return dc_fail(s->j, DC_ERR_TOO_LARGE, &(dc_fact){.op = s->a->c->op, .word = {text}});
    return DC_OK;
}

static dc_status outline(assembly *s, dc_outline *o)
{
    dc_arena *a = &s->j->scratch;
    const looping *x = s->a;
    const int ny = s->ny + (int)s->nprint;
    dc_ref *root = DC_NEW_ARRAY(a, dc_ref, (uint32_t)(s->nall + ny) + 1);
    dc_ref *stand = DC_NEW_ARRAY(a, dc_ref, (uint32_t)(1 + s->nall + x->element.n));
    for (int i = 0; i < s->nall; i++) {
        root[i] = s->carry[i].next;
        stand[1 + i] = s->carry[i].stand_in;
    }
    memcpy(root + s->nall, s->root + s->first_y, (size_t)ny * sizeof *root);
    stand[0] = s->b->i.ref;
    DC_TRY(read_list(s, &x->element, stand + 1 + s->nall));
    *o = (dc_outline){.f = s->f,
                      .mark = s->b->mark,
                      .root = root,
                      .stand_in = stand,
                      .nroot = s->nall + ny,
                      .nstand_in = 1 + s->nall + x->element.n,
                      .head = 1};
    return dc_outline_loop(s->j, o, &s->l.body);
}

/* What stands where nothing is stored. */
static dc_status blank(assembly *s, dc_ref y, dc_ref *out)
{
    const dc_type t = dc_node_type(s->f, y), all = stacked(&t, s->l.n, NULL);
    dc_val v;
    DC_TRY(dc_build_const(s->j, s->f, &all, 0, &v));
    *out = v.ref;
    return DC_OK;
}

static dc_status make_loop(assembly *s)
{
    const looping *a = s->a;
    dc_outline *o = DC_NEW_ARRAY(&s->j->scratch, dc_outline, 1);
    const int ny = s->ny + (int)s->nprint;
    for (int i = 0; i < ny; i++) {
        const dc_type t = dc_node_type(s->f, s->root[s->first_y + i]);
        DC_TRY(check_stack(s, &t));
    }
    DC_TRY(outline(s, o));
    s->l.n = a->n;
    s->l.flags = (a->reverse ? DC_LOOP_REVERSE : 0) | (a->limit != NULL ? DC_LOOP_LIMIT : 0) |
                 (s->test >= 0 ? DC_LOOP_TEST : 0);
    s->l.nconst = o->ncaptured;
    s->l.ncarry = s->nall;
    s->l.nx = a->xs.n;
    s->l.ny = ny;
    const int total = dc_loop_operands(&s->l);
    if (total > DC_MAX_OPERANDS)
        return dc_failf(s->j, DC_ERR_ARG, a->c->op,
                        "the body reads and carries %d tensors, %d is "
                        "the most",
                        total, DC_MAX_OPERANDS);
    dc_ref in[DC_MAX_OPERANDS];
    int64_t attr[DC_LOOP_ATTRS];
    dc_val limit;
    if (a->limit != NULL) {
        DC_TRY(dc_trace_value(s->j, s->t, a->limit, &limit));
        in[0] = limit.ref;
    }
    memcpy(in + dc_loop_const(&s->l), o->captured, (size_t)o->ncaptured * sizeof *in);
    for (int i = 0; i < s->nall; i++)
        in[dc_loop_carry(&s->l) + i] = s->carry[i].init;
    DC_TRY(read_list(s, &a->xs, in + dc_loop_x(&s->l)));
    for (int i = 0; i < ny && dc_loop_may_end(&s->l); i++)
        DC_TRY(blank(s, s->root[s->first_y + i], &in[dc_loop_y(&s->l) + i]));
    s->result = DC_NEW_ARRAY(&s->j->scratch, dc_ref, (uint32_t)(s->nall + ny) + 1);
    if (a->remat) {
        dc_chunks_loop(s->f, &s->l, in, s->result);
        return DC_OK;
    }
    dc_ref node;
    dc_loop_write(&s->l, attr);
    DC_TRY(dc_make(s->j, s->f, DC_OP_LOOP, in, total, attr, DC_LOOP_ATTRS, NULL, &node));
    for (int i = 0; i < s->nall + ny; i++)
        s->result[i] = dc_graph_pick(s->f, node, i);
    return DC_OK;
}

/* ---- what comes of it ------------------------------------------------------------------------ */

static dc_val pick(const assembly *s, int i, const dc_type *names)
{
    const dc_ref r = s->result[i];
    return (dc_val){r, names != NULL ? dc_complex_type(s->f, r, names) : dc_node_type(s->f, r)};
}

/* The name of axis 1 of the xs: the first one that has one. */
static const char *stack_name(const looping *a)
{
    const char *name = NULL;
    for (int i = 0; i < a->xs.n && name == NULL; i++)
        name = dc_handle_type(a->xs.at[i])->name[0];
    return name;
}

/* Names that the new axis would double stay, those of the elements. */
static dc_type y_type(const assembly *s, const dc_type *element)
{
    const char *name = stack_name(s->a);
    for (int k = 0; k < element->rank; k++)
        name = element->name[k] == name ? NULL : name;
    return stacked(element, s->l.n, name);
}

/* A result, which is no tensor of the body that has ended. */
static void give_result(const assembly *s, dc_handle *h, dc_val v)
{
    h->born = ++s->t->d->born;
    dc_handle_trace(h, s->t, &v);
}

/* Names that the carry begins with, and those that the body gives to axes without one. */
static dc_type carry_names(const looping *a, int i)
{
    dc_type t = *dc_handle_type(a->init.at[i]);
    const dc_type *next = dc_handle_type(a->next.at[i]);
    for (int k = 0; k < t.rank; k++)
        t.name[k] = t.name[k] != NULL ? t.name[k] : next->name[k];
    return t;
}

static void give_results(assembly *s)
{
    looping *a = s->a;
    const int first = s->test >= 0;
    for (int i = 0; i < s->ncarry; i++) {
        const dc_type names = carry_names(a, i);
        give_result(s, a->last.at[i], pick(s, first + i, &names));
    }
    for (int i = 0; i < s->ny; i++) {
        const dc_type t = y_type(s, dc_handle_type(a->ys.at[i]));
        give_result(s, a->stacked.at[i], pick(s, s->nall + i, &t));
    }
}

/* The tests of the condition on what the loop begins with, then those of the body. */
static void give_checks(assembly *s, const dc_trace_check *body)
{
    const int first = (s->test >= 0) + s->ncarry + (int)s->nset;
    for (uint32_t i = 0; i < s->a->c->ntest; i++) {
        dc_trace_check c = body[i];
        c.position = s->start[2 * i];
        c.value = s->start[2 * i + 1];
        DC_PUSH(s->t->check, c);
    }
    for (uint32_t i = 0; i < s->ncheck; i++) {
        dc_trace_check c = body[i];
        c.position = pick(s, first + 2 * (int)i, NULL).ref;
        c.value = pick(s, first + 2 * (int)i + 1, NULL).ref;
        DC_PUSH(s->t->check, c);
    }
}

static void give_prints(assembly *s)
{
    if (s->count >= 0)
        DC_PUSH(s->t->print, pick(s, s->count, NULL));
    for (uint32_t i = 0; i < s->nprint; i++) {
        const dc_type t = stacked(&s->print[i].type, s->l.n, NULL);
        DC_PUSH(s->t->print, pick(s, s->nall + s->ny + (int)i, &t));
    }
}

static dc_status end_loop_body(dc_job *j, void *arg)
{
    looping *a = arg;
    dc_control *c = a->c;
    dc_trace *t = c->t;
    assembly s = {.a = a, .j = j, .t = t, .b = c->body, .f = t->f};
    dc_func_from(t->f, c->place.where, c->place.path);
    DC_TRY(dc_messages_keep_in_body(j, t));
    DC_TRY(gather(&s));
    put_unset_cells(&s);
    DC_TRY(make_carries(&s));
    DC_TRY(make_loop(&s));
    dc_trace_check *check = DC_NEW_ARRAY(&j->scratch, dc_trace_check, s.ncheck + 1);
    for (uint32_t i = 0; i < s.ncheck; i++)
        check[i] = t->check.at[s.b->ncheck + i];
    dc_trace_body_end(t, s.b);
    c->body = NULL;
    give_results(&s);
    for (uint32_t i = 0; i < s.nset; i++)
        DC_TRY(dc_param_record(j, t, t->cell.at[s.set[i]].cell,
                               pick(&s, (s.test >= 0) + s.ncarry + (int)i,
                                    dc_trace_cell_type(&t->cell.at[s.set[i]]))));
    give_checks(&s, check);
    give_prints(&s);
    a->nprint = s.nprint;
    return DC_OK;
}

/* ---- bindings -------------------------------------------------------------------------------- */

static int64_t integer_field(lua_State *L, int idx, const char *name)
{
    lua_getfield(L, idx, name);
    int64_t n = dc_extent_number(lua_tointeger(L, -1));
    dc_size_test(L, -1, &n);
    lua_pop(L, 1);
    return n;
}

/* The lines that the body printed, at `lines`, are shown once for each iteration. */
static void group_lines(lua_State *L, const looping *a, int lines)
{
    if (lua_rawlen(L, lines) == 0)
        return;
    lua_pushvalue(L, lines);
    lua_pushliteral(L, "loop");
    lua_setfield(L, -2, "kind");
    lua_pushinteger(L, a->n);
    lua_setfield(L, -2, "n");
    lua_pushboolean(L, a->reverse);
    lua_setfield(L, -2, "reverse");
    lua_pushboolean(L, a->limit != NULL || a->c->test.ref != 0);
    lua_setfield(L, -2, "counted");
    lua_pushinteger(L, a->nprint);
    lua_setfield(L, -2, "tensors");
    dc_control_add_lines(L, a->c->t);
}

/* What is printed is kept until the call ends, for each iteration that there may be. */
static void refuse_long_print(lua_State *L, const looping *a)
{
    if (a->nline > 0 && dc_extent_is(a->n))
        dc_error_fact(L, a->c->d, DC_ERR_CONTROL,
                      &(dc_fact){.op = a->c->op,
                                 .word = {"the body prints, and a bounded dim says how often"}},
                      &(dc_blame){.place = &a->c->place, .hint = "return what is to be printed"});
    if (a->nline > 0 && a->n == INT32_MAX && a->c->t->print.n > a->c->body->nprint)
        dc_error_fact(
            L, a->c->d, DC_ERR_CONTROL,
            &(dc_fact){.op = a->c->op,
                       .word = {"the body prints tensors, and nothing bounds the number of "
                                "iterations"}},
            &(dc_blame){.place = &a->c->place, .hint = "{ max = n } bounds it"});
}

/* control_loop(body, { ... }) */
static int l_loop(lua_State *L)
{
    looping a = {.c = dc_control_check(L, 1)};
    dc_dsl *d = a.c->d;
    lua_settop(L, 2);
    luaL_checkstack(L, 24, "a loop");
    a.init = dc_control_list(L, d, 2, "init");
    a.stand = dc_control_list(L, d, 2, "stand");
    a.next = dc_control_list(L, d, 2, "next");
    a.xs = dc_control_list(L, d, 2, "xs");
    a.element = dc_control_list(L, d, 2, "element");
    a.ys = dc_control_list(L, d, 2, "ys");
    a.n = integer_field(L, 2, "n");
    lua_getfield(L, 2, "reverse");
    a.reverse = lua_toboolean(L, -1);
    lua_getfield(L, 2, "remat");
    a.remat = lua_toboolean(L, -1);
    lua_pop(L, 1);
    lua_getfield(L, 2, "limit");
    if (!lua_isnil(L, -1))
        a.limit = dc_handle_check(L, d, lua_gettop(L), a.c->op);
    dc_control_cut_lines(L, a.c->t, a.c->body->nline + 1);
    const int lines = lua_gettop(L);
    a.nline = (int)lua_rawlen(L, lines);
    refuse_long_print(L, &a);
    a.last = dc_control_fresh(L, a.c, a.init.n);
    a.stacked = dc_control_fresh(L, a.c, a.ys.n);
    if (dc_run_once(d, end_loop_body, &a) != DC_OK)
        dc_error_raise(L, d, &(dc_blame){.op = a.c->op, .place = &a.c->place});
    group_lines(L, &a, lines);
    lua_pushvalue(L, lines + 2);
    lua_pushvalue(L, lines + 4);
    return 2;
}

typedef struct testing {
    dc_control *c;
    dc_handle *h;
} testing;

static dc_status test_body(dc_job *j, void *arg)
{
    const testing *a = arg;
    DC_TRY(dc_trace_value(j, a->c->t, a->h, &a->c->test));
    a->c->ntest = a->c->t->check.n - a->c->body->ncheck;
    return DC_OK;
}

/* control_test(body, c): raises where the condition did something besides */
static int l_test(lua_State *L)
{
    testing a = {dc_control_check(L, 1), NULL};
    dc_dsl *d = a.c->d;
    const dc_trace *t = a.c->t;
    a.h = dc_handle_check(L, d, 2, a.c->op);
    for (uint32_t i = 0; i < t->cell.n; i++)
        if (t->cell.at[i].is_set && t->cell.at[i].cell != d->generator)
            dc_error_fact(L, d, DC_ERR_CONTROL,
                          &(dc_fact){.op = a.c->op, .word = {"the condition sets a cell"}},
                          &(dc_blame){.place = &a.c->place, .hint = "set it in the body"});
    dc_trace_push_prints(L, t);
    if ((int)lua_rawlen(L, -1) > a.c->body->nline)
        dc_error_fact(L, d, DC_ERR_CONTROL,
                      &(dc_fact){.op = a.c->op, .word = {"the condition prints"}},
                      &(dc_blame){.place = &a.c->place, .hint = "dc.print in the body"});
    dc_run(L, d, test_body, &a);
    return 0;
}

static const dc_binding bindings[] = {
    {"control_loop", l_loop, DC_ANY, DC_IN_LIBRARY},
    {"control_test", l_test, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_loop_bindings = DC_BINDINGS(bindings);
