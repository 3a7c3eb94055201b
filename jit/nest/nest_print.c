/*
 * Text of a nest:
 *
 *   kernel D_64_10_k64(out0: f32[640] out, x0: f32[4096], x1: f32[640]) {
 *     local acc: f32[1]
 *     for i0: m in 64 grid
 *       for i1: n in 10
 *         acc[0] = 0:f32
 *         for k: k in 64 reduce
 *           acc[0] add= mul(x0[64*i0 + k], x1[10*k + i1])
 *         out0[10*i0 + i1] = maximum(acc[0], 0:f32)
 *   }
 *
 * It holds all that the meaning depends on and jit/nest/nest_parse.c reads it back; the grammar is there.
 *
 * Operations that an assignment uses several times stand before it, "t0 = mul(...)", so the text is
 * not longer than the kernel; so do some of a very deep expression, which bounds the nesting of
 * parentheses. Deterministic, and independent of how the kernel was made: terms of a sum stand by
 * falling coefficient, then in the order of their loops. Names are those of axes and buffers and
 * numbers in the order of the text, so equal kernels print alike.
 */
#include "jit/nest/nest_print.h"

#include "jit/nest/matrix_tile.h"
#include "jit/nest/nest_roles.h"

#include <inttypes.h>
#include <string.h>

enum { DEEPEST = 40 }; /* operations inside each other, in text */

/* What is being printed; name[v] is 0, or 1 more than the number of a value that has a line. */
typedef struct printing {
    dc_kernel *k;
    dc_text *out;
    uint32_t *rank;   /* by axis: place of its first loop in the text */
    dc_term **sorted; /* by index expression: its terms in order, NULL if not known */
    uint8_t *loads;   /* by index expression: 0 not known, 1 no loaded integers inside, 2 some */
    uint32_t *uses, *name, nname; /* by value, of the assignment at hand */
    dc_vx sum;                    /* value of an accumulation: has no line of its own */
} printing;

/* Order of terms ----------------------------------------------------------------------------- */

static const dc_term *sorted(printing *p, dc_ix a);
static int compare_ix(printing *p, dc_ix a, dc_ix b);

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

/* Parameters in their order, then the others. */
static int64_t place_of_buffer(const dc_kernel *k, uint32_t buf)
{
    return k->buf.at[buf].scope == DC_SCOPE_PARAM ? k->buf.at[buf].param : (int64_t)k->nparam + buf;
}

static int compare_pred(printing *p, dc_pred a, dc_pred b)
{
    int c = compare(a.n, b.n);
    for (uint32_t i = 0; i < a.n && c == 0; i++) {
        c = compare_ix(p, a.range[i].ix, b.range[i].ix);
        c = c != 0 ? c : compare(a.range[i].n, b.range[i].n);
    }
    return c;
}

/* Different values differ in one of these; what is shared has the same ref. */
static int compare_vx(printing *p, dc_vx a, dc_vx b)
{
    const dc_kernel *k = p->k;
    if (a == b)
        return 0;
    const dc_vx_node *x = &k->vx.at[a], *y = &k->vx.at[b];
    int c = compare(x->kind, y->kind);
    c = c != 0 ? c : compare(x->op, y->op);
    c = c != 0 ? c : compare(x->dtype, y->dtype);
    c = c != 0 ? c : compare((int64_t)x->bits, (int64_t)y->bits);
    if (c == 0 && x->kind == DC_VX_LOAD)
        c = compare(place_of_buffer(k, x->buf), place_of_buffer(k, y->buf));
    c = c != 0 ? c : compare_ix(p, x->at, y->at);
    c = c != 0 ? c : compare_pred(p, x->pred, y->pred);
    for (int i = 0; i < x->n && i < y->n && c == 0; i++)
        c = compare_vx(p, x->in[i], y->in[i]);
    return c;
}

static int compare_atoms(printing *p, dc_atom a, dc_atom b)
{
    if (a == b)
        return 0;
    const dc_atom_node *x = &p->k->atom.at[a], *y = &p->k->atom.at[b];
    if (x->kind != y->kind)
        return compare(x->kind, y->kind);
    if (x->kind == DC_ATOM_AXIS)
        return compare(p->rank[x->axis], p->rank[y->axis]);
    if (x->kind == DC_ATOM_VALUE)
        return compare_vx(p, x->value, y->value);
    return x->k != y->k ? compare(y->k, x->k) : compare_ix(p, x->of, y->of);
}

static int compare_terms(printing *p, const dc_term *a, const dc_term *b)
{
    const int64_t x = a->coef < 0 ? -a->coef : a->coef, y = b->coef < 0 ? -b->coef : b->coef;
    if (x != y)
        return compare(y, x);
    return a->coef != b->coef ? compare(b->coef, a->coef) : compare_atoms(p, a->atom, b->atom);
}

static int compare_ix(printing *p, dc_ix a, dc_ix b)
{
    if (a == b)
        return 0;
    const dc_ix_node *x = &p->k->ix.at[a], *y = &p->k->ix.at[b];
    const dc_term *s = sorted(p, a), *t = sorted(p, b);
    int c = compare(x->n, y->n);
    for (uint32_t i = 0; i < x->n && c == 0; i++)
        c = compare_terms(p, &s[i], &t[i]);
    return c != 0 ? c : compare(x->c, y->c);
}

static const dc_term *sorted(printing *p, dc_ix a)
{
    const dc_ix_node *x = &p->k->ix.at[a];
    if (p->sorted[a] != NULL || x->n == 0)
        return p->sorted[a];
    dc_term *t = DC_NEW_ARRAY(&p->k->arena, dc_term, x->n);
    for (uint32_t i = 0; i < x->n; i++) {
        uint32_t at = i;
        for (; at > 0 && compare_terms(p, &x->term[i], &t[at - 1]) < 0; at--)
            t[at] = t[at - 1];
        t[at] = x->term[i];
    }
    p->sorted[a] = t;
    return t;
}

/* Index expressions -------------------------------------------------------------------------- */

static void print_vx(printing *p, dc_vx v);
static void print_ix(printing *p, dc_ix a);

static void print_atom(printing *p, dc_atom atom)
{
    const dc_kernel *k = p->k;
    dc_text *out = p->out;
    const dc_atom_node *a = &k->atom.at[atom];
    switch ((dc_atom_kind)a->kind) {
    case DC_ATOM_AXIS:
        dc_text_puts(out, k->axis.at[a->axis].name);
        return;
    case DC_ATOM_DIV:
    case DC_ATOM_MOD:
        dc_text_puts(out, "((");
        print_ix(p, a->of);
        dc_text_printf(out, ")%s%" PRId64 ")", a->kind == DC_ATOM_DIV ? "/" : "%", a->k);
        return;
    case DC_ATOM_VALUE:
        dc_text_puts(out, "int(");
        print_vx(p, a->value);
        dc_text_puts(out, ")");
        return;
    }
}

static void print_ix(printing *p, dc_ix a)
{
    dc_text *out = p->out;
    const dc_ix_node *x = &p->k->ix.at[a];
    const dc_term *term = sorted(p, a);
    for (uint32_t i = 0; i < x->n; i++) {
        const int64_t coef = term[i].coef;
        if (i > 0)
            dc_text_puts(out, coef < 0 ? " - " : " + ");
        else if (coef < 0)
            dc_text_puts(out, "-");
        if (coef != 1 && coef != -1)
            dc_text_printf(out, "%" PRId64 "*", coef < 0 ? -coef : coef);
        print_atom(p, term[i].atom);
    }
    if (x->n == 0)
        dc_text_printf(out, "%" PRId64, x->c);
    else if (x->c != 0)
        dc_text_printf(out, " %c %" PRId64, x->c < 0 ? '-' : '+', x->c < 0 ? -x->c : x->c);
}

static void print_pred(printing *p, dc_pred pred)
{
    for (uint32_t i = 0; i < pred.n; i++) {
        dc_text_puts(p->out, i > 0 ? " && " : "");
        print_ix(p, pred.range[i].ix);
        dc_text_printf(p->out, " in %" PRId64, pred.range[i].n);
    }
}

static void print_guard(printing *p, dc_pred pred)
{
    if (pred.n > 0)
        dc_text_puts(p->out, " if ");
    print_pred(p, pred);
}

/* Values ------------------------------------------------------------------------------------- */

static void print_whole(printing *p, dc_vx v)
{
    const dc_kernel *k = p->k;
    dc_text *out = p->out;
    const dc_vx_node *n = &k->vx.at[v];
    switch ((dc_vx_kind)n->kind) {
    case DC_VX_OP:
        dc_text_puts(out, dc_op_row_of(n->op)->name);
        if (dc_nest_op_converts(n->op))
            dc_text_printf(out, ".%s", dc_dtype_name(n->dtype));
        dc_text_puts(out, "(");
        for (int i = 0; i < n->n; i++) {
            dc_text_puts(out, i > 0 ? ", " : "");
            print_vx(p, n->in[i]);
        }
        dc_text_puts(out, ")");
        return;
    case DC_VX_LOAD:
        dc_text_printf(out, "%s[", k->buf.at[n->buf].name);
        print_ix(p, n->at);
        print_guard(p, n->pred);
        dc_text_puts(out, "]");
        return;
    case DC_VX_CONST:
        dc_const_print(n->dtype, n->bits, out);
        return;
    case DC_VX_INDEX:
        dc_text_printf(out, "%s(", dc_dtype_name(n->dtype));
        print_ix(p, n->at);
        dc_text_puts(out, ")");
        return;
    case DC_VX_TEST:
        dc_text_puts(out, "test(");
        print_pred(p, n->pred);
        dc_text_puts(out, ")");
        return;
    }
}

static void print_vx(printing *p, dc_vx v)
{
    if (p->name[v] != 0)
        dc_text_printf(p->out, "t%" PRIu32, p->name[v] - 1);
    else
        print_whole(p, v);
}

/* Lines of their own ------------------------------------------------------------------------- */

static bool loads_inside(printing *p, dc_ix a)
{
    if (a == 0 || p->loads[a] != 0)
        return p->loads[a] == 2;
    const dc_ix_node *x = &p->k->ix.at[a];
    p->loads[a] = 1;
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *at = &p->k->atom.at[x->term[i].atom];
        if (at->kind == DC_ATOM_VALUE || (at->kind != DC_ATOM_AXIS && loads_inside(p, at->of)))
            p->loads[a] = 2;
    }
    return p->loads[a] == 2;
}

/* Calls see for the loaded integers of an index expression, in the order of the text. */
typedef int (*value_fn)(printing *p, dc_vx v, int depth);

static int each_loaded(printing *p, dc_ix a, value_fn see, int depth)
{
    int most = 0;
    if (!loads_inside(p, a))
        return 0;
    const dc_term *term = sorted(p, a);
    for (uint32_t i = 0; i < p->k->ix.at[a].n; i++) {
        const dc_atom_node *at = &p->k->atom.at[term[i].atom];
        int h = 0;
        if (at->kind == DC_ATOM_VALUE)
            h = 1 + see(p, at->value, depth);
        else if (at->kind != DC_ATOM_AXIS)
            h = 1 + each_loaded(p, at->of, see, depth);
        most = h > most ? h : most;
    }
    return most;
}

static int each_loaded_of(printing *p, dc_pred pred, value_fn see, int depth)
{
    int most = 0;
    for (uint32_t i = 0; i < pred.n; i++) {
        const int h = each_loaded(p, pred.range[i].ix, see, depth);
        most = h > most ? h : most;
    }
    return most;
}

/* Values that v is printed with. */
static int each_part(printing *p, dc_vx v, value_fn see, int depth)
{
    const dc_vx_node *n = &p->k->vx.at[v];
    int most = 0;
    for (int i = 0; i < n->n; i++) {
        const int h = see(p, n->in[i], depth);
        most = h > most ? h : most;
    }
    const int at = each_loaded(p, n->at, see, depth);
    const int pred = each_loaded_of(p, n->pred, see, depth);
    most = at > most ? at : most;
    return pred > most ? pred : most;
}

static bool may_have_line(printing *p, dc_vx v)
{
    const dc_vx_node *n = &p->k->vx.at[v];
    if (v == p->sum)
        return false;
    if (n->kind == DC_VX_OP || loads_inside(p, n->at))
        return true;
    for (uint32_t i = 0; i < n->pred.n; i++)
        if (loads_inside(p, n->pred.range[i].ix))
            return true;
    return false;
}

static int count_uses(printing *p, dc_vx v, int depth)
{
    if (p->uses[v]++ == 0 || v == p->sum)
        each_part(p, v, count_uses, depth);
    return 0;
}

/* Prints the lines of v and what is below it, operands first; how deep v's text is inside. */
static int print_lines(printing *p, dc_vx v, int depth)
{
    const uint32_t uses = p->uses[v];
    if (p->name[v] != 0)
        return 0;
    const int height = 1 + each_part(p, v, print_lines, depth);
    if (!may_have_line(p, v) || (uses < 2 && height < DEEPEST))
        return height;
    dc_text_printf(p->out, "%*st%" PRIu32 " = ", depth * 2, "", p->nname);
    print_whole(p, v);
    dc_text_puts(p->out, "\n");
    p->name[v] = ++p->nname;
    return 0;
}

/* Statements --------------------------------------------------------------------------------- */

bool dc_nest_accumulates(const dc_kernel *k, const dc_stmt *t)
{
    if (t->kind != DC_STMT_SET || t->nput == 0)
        return false;
    const dc_put *p = &t->put[0];
    const dc_vx_node *n = &k->vx.at[p->value];
    if (n->kind != DC_VX_OP || n->n != 2 || (dc_op_row_of(n->op)->flags & DC_OPF_ASSOC) == 0)
        return false;
    const dc_vx_node *old = &k->vx.at[n->in[0]];
    return old->kind == DC_VX_LOAD && old->buf == p->buf && old->at == p->at && old->pred.n == 0;
}

/* The value that stands on the right of put i. */
static dc_vx printed_value(const printing *p, const dc_stmt *t, uint32_t i)
{
    return i == 0 && p->sum != 0 ? p->k->vx.at[p->sum].in[1] : t->put[i].value;
}

static void each_root(printing *p, const dc_stmt *t, value_fn see, int depth)
{
    for (uint32_t i = 0; i < t->nput; i++) {
        each_loaded(p, t->put[i].at, see, depth);
        see(p, printed_value(p, t, i), depth);
    }
    if (t->kind == DC_STMT_TILE) {
        each_loaded(p, t->tile->c.at, see, depth);
        each_loaded(p, t->tile->a.at, see, depth);
        each_loaded(p, t->tile->b.at, see, depth);
    }
    each_loaded_of(p, t->pred, see, depth);
}

static void print_put(printing *p, const dc_stmt *t, uint32_t i)
{
    const dc_put *put = &t->put[i];
    dc_text_printf(p->out, "%s%s[", i > 0 ? "& " : "", p->k->buf.at[put->buf].name);
    print_ix(p, put->at);
    dc_text_puts(p->out, "] ");
    if (i == 0 && p->sum != 0)
        dc_text_puts(p->out, dc_op_row_of(p->k->vx.at[p->sum].op)->name);
    dc_text_puts(p->out, "= ");
    print_vx(p, printed_value(p, t, i));
}

static void print_operand(printing *p, const dc_tile_operand *o)
{
    dc_text_printf(p->out, "%s[", p->k->buf.at[o->buf].name);
    print_ix(p, o->at);
    dc_text_printf(p->out, " by %" PRId64 ", %" PRId64 "]", o->row, o->col);
}

static void print_tile(printing *p, const dc_tile *tile)
{
    dc_text_printf(p->out, "%s(", dc_tile_row_of(tile->which)->name);
    print_operand(p, &tile->c);
    dc_text_puts(p->out, ", ");
    print_operand(p, &tile->a);
    dc_text_puts(p->out, ", ");
    print_operand(p, &tile->b);
    dc_text_puts(p->out, ")");
}

static void print_limits(printing *p, const dc_stmt *t)
{
    for (uint32_t i = 0; i < t->nlimit; i++) {
        dc_text_puts(p->out, i > 0 ? " && " : " needed ");
        print_ix(p, t->limit[i].ix);
        dc_text_printf(p->out, " < %s", p->k->buf.at[t->limit[i].buf].name);
    }
}

static void print_leaf(printing *p, const dc_stmt *t, int depth)
{
    const uint32_t nput = t->kind == DC_STMT_TILE ? 1 : t->nput;
    p->nname = 0;
    p->sum = t->reduces && dc_nest_accumulates(p->k, t) ? t->put[0].value : 0;
    memset(p->name, 0, p->k->vx.n * sizeof *p->name);
    memset(p->uses, 0, p->k->vx.n * sizeof *p->uses);
    each_root(p, t, count_uses, depth);
    each_root(p, t, print_lines, depth);
    for (uint32_t i = 0; i < nput; i++) {
        dc_text_printf(p->out, "%*s", depth * 2, "");
        if (t->kind == DC_STMT_TILE)
            print_tile(p, t->tile);
        else
            print_put(p, t, i);
        if (i + 1 == nput) {
            print_guard(p, t->pred);
            print_limits(p, t);
        }
        dc_text_puts(p->out, "\n");
    }
}

static void print_bound(printing *p, const char *word, dc_ix bound)
{
    if (bound == 0)
        return;
    dc_text_puts(p->out, word);
    print_ix(p, bound);
}

static void print_loop(printing *p, const dc_stmt *loop, int depth)
{
    const uint32_t axis = loop->axis;
    static const char *const kinds[] = {"", " grid", " vector", " unroll", " block", " lane"};
    const dc_kernel *k = p->k;
    const dc_axis *a = &k->axis.at[axis];
    dc_text_printf(p->out, "%*sfor %s%s%s in %" PRId64 "%s%s%s", depth * 2, "", a->name,
                   a->role != DC_ROLE_NONE ? ": " : "", dc_role_name((dc_role)a->role), a->extent,
                   a->reduce ? " reduce" : "", kinds[a->kind], a->pipeline ? " pipeline" : "");
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (k->buf.at[b].prefetch != 0 && k->buf.at[b].within == axis)
            dc_text_printf(p->out, " prefetch %s %s %d", k->buf.at[b].name,
                           k->axis.at[k->buf.at[b].over].name, k->buf.at[b].prefetch);
    print_bound(p, " from ", dc_stmt_from(loop));
    print_bound(p, " to ", dc_stmt_to(loop));
    dc_text_puts(p->out, "\n");
}

static void print_stmts(printing *p, const dc_stmt *first, int depth)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP) {
            print_leaf(p, t, depth);
            continue;
        }
        print_loop(p, t, depth);
        print_stmts(p, t->body, depth + 1);
    }
}

/* Kernels ------------------------------------------------------------------------------------ */

static void rank_axes(printing *p, const dc_stmt *first, uint32_t *n)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP) {
            if (p->rank[t->axis] == 0)
                p->rank[t->axis] = ++*n;
            rank_axes(p, t->body, n);
        }
}

static void print_buffer(const dc_buffer *b, dc_text *out)
{
    dc_text_printf(out, "%s: %s[%" PRId64 "]", b->name, dc_dtype_name(b->dtype), b->count);
}

static void print_head(const dc_kernel *k, dc_text *out)
{
    static const char *const modes[] = {"", " out", " inout"};
    dc_text_printf(out, "kernel %s(", k->name);
    for (uint32_t i = 0, n = 0; i < k->buf.n; i++) {
        if (k->buf.at[i].scope != DC_SCOPE_PARAM)
            continue;
        dc_text_puts(out, n++ > 0 ? ", " : "");
        print_buffer(&k->buf.at[i], out);
        dc_text_puts(out, modes[k->buf.at[i].mode]);
        if (k->buf.at[i].align != 0)
            dc_text_printf(out, " align %d", k->buf.at[i].align);
        dc_text_puts(out, k->buf.at[i].uncached ? " uncached" : "");
        dc_text_puts(out, k->buf.at[i].nontemporal ? " nontemporal" : "");
    }
    dc_text_printf(out, ")%s%s {\n", k->strict ? " strict" : "", k->tf32 ? " tf32" : "");
}

static void print_locals(const dc_kernel *k, dc_text *out)
{
    static const char *const scopes[] = {"", "local", "thread", "group", "scratch"};
    for (uint32_t i = 0; i < k->buf.n; i++) {
        if (k->buf.at[i].scope == DC_SCOPE_PARAM)
            continue;
        dc_text_printf(out, "  %s ", scopes[k->buf.at[i].scope]);
        print_buffer(&k->buf.at[i], out);
        if (k->buf.at[i].swizzle != 0)
            dc_text_printf(out, " swizzle %" PRIu32 "%s", k->buf.at[i].swizzle,
                           k->buf.at[i].atoms ? " atoms" : "");
        dc_text_puts(out, k->buf.at[i].fixed ? " fixed" : "");
        if (k->buf.at[i].stages != 0)
            dc_text_printf(out, " stages %" PRIu32, k->buf.at[i].stages);
        dc_text_puts(out, "\n");
    }
}

void dc_nest_print(dc_kernel *k, dc_text *out)
{
    const dc_mark mark = dc_arena_mark(&k->arena);
    printing p = {.k = k, .out = out};
    uint32_t ranks = 0;
    p.uses = DC_NEW_ARRAY(&k->arena, uint32_t, k->vx.n);
    p.name = DC_NEW_ARRAY(&k->arena, uint32_t, k->vx.n);
    p.rank = DC_NEW_ARRAY(&k->arena, uint32_t, k->axis.n + 1);
    p.sorted = DC_NEW_ARRAY(&k->arena, dc_term *, k->ix.n);
    p.loads = DC_NEW_ARRAY(&k->arena, uint8_t, k->ix.n);
    rank_axes(&p, k->root, &ranks);
    print_head(k, out);
    print_locals(k, out);
    print_stmts(&p, k->root, 1);
    dc_text_puts(out, "}\n");
    dc_arena_rewind(&k->arena, mark);
}
