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
 * Deterministic; a name occurs for axes and buffers only, so equal kernels print alike.
 */
#include "jit/nest.h"

#include <inttypes.h>

static void print_vx(const dc_kernel *k, dc_vx v, dc_text *out);
static void print_ix(const dc_kernel *k, dc_ix a, dc_text *out);

static void print_atom(const dc_kernel *k, dc_atom atom, dc_text *out)
{
    const dc_atom_node *a = &k->atom.at[atom];
    switch ((dc_atom_kind)a->kind) {
    case DC_ATOM_AXIS:
        dc_text_puts(out, k->axis.at[a->axis].name);
        return;
    case DC_ATOM_DIV:
    case DC_ATOM_MOD:
        dc_text_puts(out, "((");
        print_ix(k, a->of, out);
        dc_text_printf(out, ")%s%" PRId64 ")", a->kind == DC_ATOM_DIV ? "/" : "%", a->k);
        return;
    case DC_ATOM_VALUE:
        dc_text_puts(out, "int(");
        print_vx(k, a->value, out);
        dc_text_puts(out, ")");
        return;
    }
}

static void print_ix(const dc_kernel *k, dc_ix a, dc_text *out)
{
    const dc_ix_node *x = &k->ix.at[a];
    for (uint32_t i = 0; i < x->n; i++) {
        const int64_t coef = x->term[i].coef;
        if (i > 0)
            dc_text_puts(out, coef < 0 ? " - " : " + ");
        else if (coef < 0)
            dc_text_puts(out, "-");
        if (coef != 1 && coef != -1)
            dc_text_printf(out, "%" PRId64 "*", coef < 0 ? -coef : coef);
        print_atom(k, x->term[i].atom, out);
    }
    if (x->n == 0)
        dc_text_printf(out, "%" PRId64, x->c);
    else if (x->c != 0)
        dc_text_printf(out, " %c %" PRId64, x->c < 0 ? '-' : '+', x->c < 0 ? -x->c : x->c);
}

static void print_pred(const dc_kernel *k, dc_pred p, dc_text *out)
{
    for (uint32_t i = 0; i < p.n; i++) {
        dc_text_puts(out, i > 0 ? " && " : "");
        print_ix(k, p.range[i].ix, out);
        dc_text_printf(out, " in %" PRId64, p.range[i].n);
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

static void print_vx(const dc_kernel *k, dc_vx v, dc_text *out)
{
    const dc_vx_node *n = &k->vx.at[v];
    switch ((dc_vx_kind)n->kind) {
    case DC_VX_OP:
        dc_text_puts(out, dc_op_row_of(n->op)->name);
        if (n->op == DC_OP_CAST)
            dc_text_printf(out, ".%s", dc_dtype_name(n->dtype));
        dc_text_puts(out, "(");
        for (int i = 0; i < n->n; i++) {
            dc_text_puts(out, i > 0 ? ", " : "");
            print_vx(k, n->in[i], out);
        }
        dc_text_puts(out, ")");
        return;
    case DC_VX_LOAD:
        dc_text_printf(out, "%s[", k->buf.at[n->buf].name);
        print_ix(k, n->at, out);
        if (n->pred.n > 0)
            dc_text_puts(out, " if ");
        print_pred(k, n->pred, out);
        dc_text_puts(out, "]");
        return;
    case DC_VX_CONST:
        print_const(n->dtype, n->bits, out);
        return;
    case DC_VX_INDEX:
        dc_text_printf(out, "%s(", dc_dtype_name(n->dtype));
        print_ix(k, n->at, out);
        dc_text_puts(out, ")");
        return;
    case DC_VX_TEST:
        dc_text_puts(out, "test(");
        print_pred(k, n->pred, out);
        dc_text_puts(out, ")");
        return;
    }
}

static void print_stmts(const dc_kernel *k, const dc_stmt *first, int depth, dc_text *out)
{
    static const char *const kinds[] = {"", " grid", " vector", " unroll"};
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_LOOP) {
            const dc_axis *a = &k->axis.at[t->axis];
            dc_text_printf(out, "%*sfor %s in %" PRId64 "%s%s\n", depth * 2, "", a->name, a->extent,
                           a->reduce ? " reduce" : "", kinds[a->kind]);
            print_stmts(k, t->body, depth + 1, out);
            continue;
        }
        for (uint32_t i = 0; i < t->nput; i++) {
            const dc_put *p = &t->put[i];
            dc_text_printf(out, "%*s%s%s[", depth * 2, "", i > 0 ? "& " : "",
                           k->buf.at[p->buf].name);
            print_ix(k, p->at, out);
            dc_text_puts(out, "] = ");
            print_vx(k, p->value, out);
            if (i + 1 == t->nput && t->pred.n > 0) {
                dc_text_puts(out, " if ");
                print_pred(k, t->pred, out);
            }
            dc_text_puts(out, "\n");
        }
    }
}

void dc_nest_print(const dc_kernel *k, dc_text *out)
{
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
    print_stmts(k, k->root, 1, out);
    dc_text_puts(out, "}\n");
}
