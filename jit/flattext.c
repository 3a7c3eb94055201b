/*
 * The flat form as text, and its verifier.
 *
 *   kernel E_100 (out0: f32[100] out, x0: f32[100]) {
 *     %1 = loop begin, end
 *       %2 = mul index %1, 16
 *       %3 = load f32x16 x0[%2], align 64
 *       %4 = add f32x16 %3, 1
 *       store f32x16 out0[%2], %4, align 64
 *     end
 *   }
 *
 * Values are numbered in the order they stand; constants stand where they are used.
 */
#include "jit/flat.h"

#include <inttypes.h>
#include <stdio.h>

static const char *type_name(int type)
{
    return type == DC_INDEX ? "index" : dc_dtype_name((dc_dtype)type);
}

static void print_type(const dc_finst *i, dc_text *out)
{
    dc_text_printf(out, " %s", type_name(i->type));
    if (i->lanes > 1)
        dc_text_printf(out, "x%d", i->lanes);
}

static bool stands_alone(const dc_finst *i)
{
    return i->op != DC_K_CONST && i->op != DC_K_ARG;
}

static void print_operand(const dc_flat *f, dc_fv v, const uint32_t *number, dc_text *out)
{
    const dc_finst *i = dc_finst_at(f, v);
    if (stands_alone(i))
        dc_text_printf(out, "%%%" PRIu32, number[v]);
    else if (i->op == DC_K_ARG)
        dc_text_puts(out, i->imm == 0 ? "begin" : "end");
    else if (i->type == DC_F32)
        dc_text_printf(out, "%.9g", (double)dc_bits_f32((uint32_t)i->imm));
    else
        dc_text_printf(out, "%" PRId64, (int64_t)i->imm);
}

static void print_mem(const dc_flat *f, const dc_finst *i, const uint32_t *number, dc_text *out)
{
    const bool stores = dc_kop_stores((dc_kop)i->op);
    const dc_fv mask = i->in[stores ? 2 : 1];
    dc_text_printf(out, " %s[", f->buf.at[i->buf].name);
    print_operand(f, i->in[0], number, out);
    if (i->lanes > 1 && i->imm != 1 && (i->op == DC_K_LOAD || i->op == DC_K_STORE))
        dc_text_printf(out, " step %" PRId64, (int64_t)i->imm);
    dc_text_puts(out, "]");
    if (stores) {
        dc_text_puts(out, ", ");
        print_operand(f, i->in[1], number, out);
    }
    if (mask != 0) {
        dc_text_puts(out, ", mask ");
        print_operand(f, mask, number, out);
    }
    if (i->align > dc_dtype_size((dc_dtype)i->type))
        dc_text_printf(out, ", align %d", i->align);
}

static void print_inst(const dc_flat *f, dc_fv v, const uint32_t *number, dc_text *out)
{
    const dc_finst *i = dc_finst_at(f, v);
    const dc_kop_row *row = dc_kop_row_of((dc_kop)i->op);
    if (number[v] != 0)
        dc_text_printf(out, "%%%" PRIu32 " = ", number[v]);
    dc_text_puts(out, row->name);
    if (row->form != DC_KFORM_CTRL)
        print_type(i, out);
    if (row->form == DC_KFORM_MEM) {
        print_mem(f, i, number, out);
    } else {
        for (int n = 0; n < row->n; n++) {
            dc_text_puts(out, n > 0 ? ", " : " ");
            print_operand(f, i->in[n], number, out);
        }
        if (i->op == DC_K_LANES)
            dc_text_printf(out, " %" PRId64, (int64_t)i->imm);
    }
    dc_text_puts(out, "\n");
}

/* Numbers of the values in the order they stand; instructions without a value have 0. */
static uint32_t *number_values(const dc_flat *f)
{
    uint32_t *number = dc_xalloc(f->inst.n * sizeof *number), next = 1;
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_finst *i = dc_finst_at(f, f->order.at[n]);
        if (i->lanes > 0 && !dc_kop_stores((dc_kop)i->op) && stands_alone(i))
            number[f->order.at[n]] = next++;
    }
    return number;
}

void dc_flat_print(const dc_flat *f, dc_text *out)
{
    dc_job *j = dc_job_here();
    uint32_t *number = number_values(f);
    int indent = 1;
    dc_job_defer(j, dc_xfree, number); /* the text may have no room to grow */
    dc_text_printf(out, "kernel %s (", f->name);
    for (uint32_t n = 0; n < f->buf.n; n++) {
        const dc_buffer *b = &f->buf.at[n];
        dc_text_printf(out, "%s%s: %s[%" PRId64 "]%s", n > 0 ? ", " : "", b->name,
                       dc_dtype_name((dc_dtype)b->dtype), b->count,
                       b->scope == DC_SCOPE_LOCAL ? " local"
                       : b->mode == DC_MODE_OUT   ? " out"
                                                  : "");
    }
    dc_text_printf(out, ")%s {\n", f->strict ? " strict" : "");
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_kop op = (dc_kop)dc_finst_at(f, f->order.at[n])->op;
        if (!stands_alone(dc_finst_at(f, f->order.at[n])))
            continue;
        if (op == DC_K_END)
            indent--;
        for (int t = 0; t < indent; t++)
            dc_text_puts(out, "  ");
        print_inst(f, f->order.at[n], number, out);
        if (op == DC_K_LOOP || op == DC_K_IF)
            indent++;
    }
    dc_text_puts(out, "}\n");
    dc_job_keep(j, number);
    dc_xfree(number);
}

/* Verifier ---------------------------------------------------------------------------------- */

typedef struct check {
    const dc_flat *f;
    uint32_t *scope_of; /* by value: 1 + the open scope it was computed in; 0 not computed yet */
    uint32_t *scope;    /* ids of the open scopes */
    uint32_t depth, next;
    bool *closed; /* by scope id */
} check;

static const char *check_operands(const check *c, const dc_finst *i)
{
    for (int n = 0; n < 3; n++) {
        if (i->in[n] == 0)
            continue;
        if (i->in[n] >= c->f->inst.n || c->scope_of[i->in[n]] == 0)
            return "an operand is not computed before its user";
        if (c->closed[c->scope_of[i->in[n]] - 1])
            return "an operand belongs to a scope that is closed";
    }
    return NULL;
}

static bool like(const dc_finst *a, const dc_finst *b)
{
    return a->type == b->type && a->lanes == b->lanes;
}

static bool is_index(const dc_finst *a, int lanes)
{
    return (a->type == DC_INDEX || (lanes > 1 && a->type == DC_U32)) && a->lanes == lanes;
}

static const char *check_mem(const check *c, const dc_finst *i)
{
    const bool stores = dc_kop_stores((dc_kop)i->op);
    const bool spread = i->op == DC_K_GATHER || i->op == DC_K_SCATTER;
    const dc_fv mask = i->in[stores ? 2 : 1];
    if (i->buf >= c->f->buf.n || i->type != c->f->buf.at[i->buf].dtype)
        return "no buffer of that type";
    if (i->in[0] == 0 || !is_index(dc_finst_at(c->f, i->in[0]), spread ? i->lanes : 1))
        return "the index is none";
    if (stores && (i->in[1] == 0 || !like(i, dc_finst_at(c->f, i->in[1]))))
        return "the value stored is of another type";
    if (stores && c->f->buf.at[i->buf].scope == DC_SCOPE_PARAM &&
        c->f->buf.at[i->buf].mode != DC_MODE_OUT)
        return "an input is stored to";
    if (mask != 0 && (dc_finst_at(c->f, mask)->type != DC_BOOL ||
                      dc_finst_at(c->f, mask)->lanes != i->lanes || i->lanes == 1))
        return "the mask is none";
    return NULL;
}

static const char *check_conv(const dc_finst *i, const dc_finst *a)
{
    if (i->op == DC_K_SPLAT)
        return a->type == i->type && a->lanes == 1 ? NULL : "splat of what is no scalar";
    if (i->op == DC_K_ANY)
        return a->type == DC_BOOL && i->lanes == 1 ? NULL : "any of what is not bool";
    if (a->lanes != i->lanes)
        return "lanes differ";
    return NULL;
}

static const char *check_types(const check *c, const dc_finst *i)
{
    const dc_kop_row *row = dc_kop_row_of((dc_kop)i->op);
    const dc_finst *in[3] = {&c->f->inst.at[i->in[0]], &c->f->inst.at[i->in[1]],
                             &c->f->inst.at[i->in[2]]};
    if (row->form != DC_KFORM_MEM)
        for (int n = 0; n < 3; n++)
            if ((i->in[n] != 0) != (n < row->n))
                return "wrong number of operands";
    switch ((dc_kform)row->form) {
    case DC_KFORM_LEAF:
        return NULL;
    case DC_KFORM_SAME:
        for (int n = 0; n < row->n; n++)
            if (!like(in[n], i))
                return "operand and result differ in type";
        return NULL;
    case DC_KFORM_TEST:
        return like(in[0], in[1]) && i->type == DC_BOOL && i->lanes == in[0]->lanes
                   ? NULL
                   : "operands differ in type";
    case DC_KFORM_PICK:
        return in[0]->type == DC_BOOL && in[0]->lanes == i->lanes && like(in[1], i) &&
                       like(in[2], i)
                   ? NULL
                   : "operands differ in type";
    case DC_KFORM_CONV:
        return check_conv(i, in[0]);
    case DC_KFORM_LANE:
        return like(in[0], i) ? NULL : "operand and result differ in type";
    case DC_KFORM_MEM:
        return check_mem(c, i);
    case DC_KFORM_CTRL:
        if (i->op == DC_K_LOOP && !(is_index(in[0], 1) && is_index(in[1], 1)))
            return "the bounds of a loop are no index";
        if (i->op == DC_K_IF && !(in[0]->type == DC_BOOL && in[0]->lanes == 1))
            return "the condition is no bool";
        return NULL;
    }
    return "no such form";
}

static const char *check_one(check *c, dc_fv v)
{
    const dc_finst *i = &c->f->inst.at[v];
    const char *wrong = check_operands(c, i);
    if (wrong == NULL)
        wrong = check_types(c, i);
    if (wrong != NULL)
        return wrong;
    if (i->op == DC_K_END) {
        if (c->depth == 0)
            return "end without a beginning";
        c->closed[c->scope[c->depth--]] = true;
        return NULL;
    }
    if (i->op == DC_K_LOOP || i->op == DC_K_IF)
        c->scope[++c->depth] = c->next++;
    c->scope_of[v] = c->scope[c->depth] + 1;
    return NULL;
}

dc_status dc_flat_check(dc_job *j, const dc_flat *f)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    check c = {.f = f,
               .scope_of = DC_NEW_ARRAY(&j->scratch, uint32_t, f->inst.n),
               .scope = DC_NEW_ARRAY(&j->scratch, uint32_t, f->order.n + 1),
               .closed = DC_NEW_ARRAY(&j->scratch, bool, f->order.n + 1),
               .next = 1};
    const char *wrong = NULL;
    uint32_t n = 0;
    for (; n < f->order.n && wrong == NULL; n++)
        wrong = check_one(&c, f->order.at[n]);
    if (wrong == NULL && c.depth > 0)
        wrong = "a scope stays open";
    const dc_kop op = n > 0 ? (dc_kop)f->inst.at[f->order.at[n - 1]].op : DC_K_END;
    dc_arena_rewind(&j->scratch, mark);
    if (wrong == NULL)
        return DC_OK;
    char text[160];
    snprintf(text, sizeof text, "flat %s, %s at %" PRIu32 ": %s", f->name, dc_kop_row_of(op)->name,
             n - 1, wrong);
    return dc_fail(j, DC_ERR_BUG, &(dc_fact){.num = {__LINE__}, .word = {__FILE__, text}});
}
