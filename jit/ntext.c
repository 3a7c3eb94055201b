/*
 * Text of a nest:
 *
 *   kernel D_64_10_k64(out0: f32[640] out, x0: f32[4096], x1: f32[640]) {
 *     local acc: f32[1]
 *     for i0 in 64 grid
 *       for i1 in 10
 *         acc[0] = 0
 *         for k in 64 reduce
 *           acc[0] = add(acc[0], mul(x0[64*i0 + k], x1[10*k + i1]))
 *         out0[10*i0 + i1] = maximum(acc[0], 0)
 *   }
 *
 * Operations that an assignment uses several times stand before it, "t0 = mul(...)", so the text is
 * not longer than the kernel. Deterministic; names are those of axes and buffers and numbers in the
 * order of the text, so equal kernels print alike.
 */
#include "jit/nest.h"

#include <inttypes.h>
#include <string.h>

/* What is being printed; name[v] is 0, or 1 more than the number of a value that is shared. */
typedef struct printing {
    const dc_kernel *k;
    dc_text *out;
    uint32_t *uses, *name; /* by value, of the assignment at hand */
    uint32_t nname;
} printing;

static void print_vx(const printing *p, dc_vx v);
static void print_ix(const printing *p, dc_ix a);

static void print_atom(const printing *p, dc_atom atom)
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

static void print_ix(const printing *p, dc_ix a)
{
    const dc_kernel *k = p->k;
    dc_text *out = p->out;
    const dc_ix_node *x = &k->ix.at[a];
    for (uint32_t i = 0; i < x->n; i++) {
        const int64_t coef = x->term[i].coef;
        if (i > 0)
            dc_text_puts(out, coef < 0 ? " - " : " + ");
        else if (coef < 0)
            dc_text_puts(out, "-");
        if (coef != 1 && coef != -1)
            dc_text_printf(out, "%" PRId64 "*", coef < 0 ? -coef : coef);
        print_atom(p, x->term[i].atom);
    }
    if (x->n == 0)
        dc_text_printf(out, "%" PRId64, x->c);
    else if (x->c != 0)
        dc_text_printf(out, " %c %" PRId64, x->c < 0 ? '-' : '+', x->c < 0 ? -x->c : x->c);
}

static void print_pred(const printing *p, dc_pred pred)
{
    for (uint32_t i = 0; i < pred.n; i++) {
        dc_text_puts(p->out, i > 0 ? " && " : "");
        print_ix(p, pred.range[i].ix);
        dc_text_printf(p->out, " in %" PRId64, pred.range[i].n);
    }
}

static void print_const(dc_dtype t, uint64_t bits, dc_text *out)
{
    if (dc_dtype_is_float(t))
        dc_text_printf(out, "%a", dc_value_of(t, bits));
    else if (dc_dtype_kind(t) == DC_KIND_SINT)
        dc_text_printf(out, "%" PRId64, (int64_t)bits);
    else
        dc_text_printf(out, "%" PRIu64, bits);
}

static void print_whole(const printing *p, dc_vx v)
{
    const dc_kernel *k = p->k;
    dc_text *out = p->out;
    const dc_vx_node *n = &k->vx.at[v];
    switch ((dc_vx_kind)n->kind) {
    case DC_VX_OP:
        dc_text_puts(out, dc_op_row_of(n->op)->name);
        if (n->op == DC_OP_CAST)
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
        if (n->pred.n > 0)
            dc_text_puts(out, " if ");
        print_pred(p, n->pred);
        dc_text_puts(out, "]");
        return;
    case DC_VX_CONST:
        print_const(n->dtype, n->bits, out);
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

static void print_vx(const printing *p, dc_vx v)
{
    if (p->name[v] != 0)
        dc_text_printf(p->out, "t%" PRIu32, p->name[v] - 1);
    else
        print_whole(p, v);
}

static void count_uses(printing *p, dc_vx v)
{
    const dc_vx_node *n = &p->k->vx.at[v];
    if (p->uses[v]++ == 0)
        for (int i = 0; i < n->n; i++)
            count_uses(p, n->in[i]);
}

/* Lines for the operations below v that are used more than once, operands first. */
static void print_shared(printing *p, dc_vx v, int depth)
{
    const dc_vx_node *n = &p->k->vx.at[v];
    const uint32_t uses = p->uses[v];
    p->uses[v] = 0;
    if (uses == 0)
        return;
    for (int i = 0; i < n->n; i++)
        print_shared(p, n->in[i], depth);
    if (uses < 2 || n->kind != DC_VX_OP)
        return;
    dc_text_printf(p->out, "%*st%" PRIu32 " = ", depth * 2, "", p->nname);
    print_whole(p, v);
    dc_text_puts(p->out, "\n");
    p->name[v] = ++p->nname;
}

static void print_set(printing *p, const dc_stmt *t, int depth)
{
    dc_text *out = p->out;
    p->nname = 0;
    memset(p->name, 0, p->k->vx.n * sizeof *p->name);
    for (uint32_t i = 0; i < t->nput; i++)
        count_uses(p, t->put[i].value);
    for (uint32_t i = 0; i < t->nput; i++)
        print_shared(p, t->put[i].value, depth);
    for (uint32_t i = 0; i < t->nput; i++) {
        const dc_put *put = &t->put[i];
        dc_text_printf(out, "%*s%s%s[", depth * 2, "", i > 0 ? "& " : "",
                       p->k->buf.at[put->buf].name);
        print_ix(p, put->at);
        dc_text_puts(out, "] = ");
        print_vx(p, put->value);
        if (i + 1 == t->nput && t->pred.n > 0) {
            dc_text_puts(out, " if ");
            print_pred(p, t->pred);
        }
        dc_text_puts(out, "\n");
    }
}

static void print_stmts(printing *p, const dc_stmt *first, int depth)
{
    static const char *const kinds[] = {"", " grid", " vector", " unroll"};
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_SET) {
            print_set(p, t, depth);
            continue;
        }
        const dc_axis *a = &p->k->axis.at[t->axis];
        dc_text_printf(p->out, "%*sfor %s in %" PRId64 "%s%s\n", depth * 2, "", a->name, a->extent,
                       a->reduce ? " reduce" : "", kinds[a->kind]);
        print_stmts(p, t->body, depth + 1);
    }
}

void dc_nest_print(dc_kernel *k, dc_text *out)
{
    const dc_mark mark = dc_arena_mark(&k->arena);
    dc_text_printf(out, "kernel %s(", k->name);
    bool first = true;
    for (uint32_t i = 0; i < k->buf.n; i++) {
        const dc_buffer *b = &k->buf.at[i];
        if (b->scope != DC_SCOPE_PARAM)
            continue;
        dc_text_printf(out, "%s%s: %s[%" PRId64 "]%s", first ? "" : ", ", b->name,
                       dc_dtype_name(b->dtype), b->count, b->mode == DC_MODE_OUT ? " out" : "");
        first = false;
    }
    dc_text_printf(out, ")%s {\n", k->strict ? " strict" : "");
    for (uint32_t i = 0; i < k->buf.n; i++)
        if (k->buf.at[i].scope == DC_SCOPE_LOCAL)
            dc_text_printf(out, "  local %s: %s[%" PRId64 "]\n", k->buf.at[i].name,
                           dc_dtype_name(k->buf.at[i].dtype), k->buf.at[i].count);
    printing p = {.k = k, .out = out};
    p.uses = DC_NEW_ARRAY(&k->arena, uint32_t, k->vx.n);
    p.name = DC_NEW_ARRAY(&k->arena, uint32_t, k->vx.n);
    print_stmts(&p, k->root, 1);
    dc_text_puts(out, "}\n");
    dc_arena_rewind(&k->arena, mark);
}
