/*
 * Instructions of the flat form from their text (jit/flat/flat_parse_impl.h): operands, of which literals become constants of
 * the type that the place asks for, and what each form of instruction has beside them.
 */
#include "jit/flat/flat_parse_impl.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_DEPTH = 1000, MAX_BITS = 64 };

/* An operand as it stands: a value, or a literal whose type is perhaps known later. */
typedef struct operand {
    dc_fv v; /* 0: a literal */
    dc_ftype type;
    const char *text;
    size_t n;
} operand;

/* Operands ---------------------------------------------------------------------------------- */

/* The literal as a pattern of the type. */
static dc_status pattern_of(dc_flat_parser *p, const operand *o, int type, uint64_t *bits)
{
    bool negative;
    const int shown = (int)(o->n < 40 ? o->n : 40);
    if (dc_ftype_is_float(type)) {
        if (!dc_flat_print_float((dc_dtype)type, o->text, o->n, bits))
            return dc_scan_refuse(&p->scan, "'%.*s' is no %s", shown, o->text,
                                  dc_flat_print_type(type));
        return DC_OK;
    }
    if (!dc_flat_parse_bits(o->text, o->n, bits, &negative))
        return dc_scan_refuse(&p->scan, "'%.*s' is no integer", shown, o->text);
    const int w = dc_flat_width(p->f, type);
    const bool sign = dc_ftype_is_signed(type) || type == DC_INDEX;
    const uint64_t least = 0 - ((uint64_t)1 << (w - 1)); /* the smallest with a sign */
    const bool fits = negative ? sign && *bits >= least : w == MAX_BITS || *bits >> w == 0;
    if (!fits)
        return dc_scan_refuse(&p->scan, "%.*s does not fit %s", shown, o->text,
                              dc_flat_print_type(type));
    *bits = dc_flat_canonical(p->f, type, *bits);
    return DC_OK;
}

static dc_fv append_inst(dc_flat_parser *p, const dc_finst *i)
{
    DC_PUSH_IN(&p->f->arena, p->f->inst, *i);
    return p->f->inst.n - 1;
}

/* Of constants and arguments. */
static dc_fv once(dc_flat_parser *p, const dc_finst *i)
{
    for (uint32_t n = 0; n < p->first.n; n++) {
        const dc_finst *o = &p->f->inst.at[p->first.at[n]];
        if (o->op == i->op && o->type == i->type && o->lanes == i->lanes && o->imm == i->imm)
            return p->first.at[n];
    }
    const dc_fv v = append_inst(p, i);
    DC_PUSH_IN(&p->scan.j->scratch, p->first, v);
    return v;
}

static dc_status find_value(dc_flat_parser *p, uint32_t number, dc_fv *out)
{
    uint32_t lo = 0, hi = p->value.n;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (p->value.at[mid].number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == p->value.n || p->value.at[lo].number != number)
        return dc_scan_refuse(&p->scan, "%%%" PRIu32 " does not stand before", number);
    *out = p->value.at[lo].v;
    return DC_OK;
}

static dc_status read_operand(dc_flat_parser *p, operand *o)
{
    int64_t number;
    *o = (operand){0};
    if (dc_scan_accept(&p->scan, "%")) {
        DC_TRY(dc_flat_parse_count(p, UINT32_MAX, &number));
        return find_value(p, (uint32_t)number, &o->v);
    }
    const int arg = dc_flat_parse_one_of(p, dc_flattext_args, DC_COUNTOF(dc_flattext_args));
    if (arg >= 0) {
        o->v = once(
            p, &(dc_finst){.op = DC_K_ARG, .type = DC_INDEX, .lanes = 1, .imm = (uint64_t)arg});
        return DC_OK;
    }
    dc_flat_parse_any_type(p, &o->type);
    dc_scan_skip(&p->scan);
    o->text = p->scan.at;
    o->n = dc_flat_parse_literal(p->scan.at);
    if (o->n == 0)
        return dc_scan_expected(&p->scan, "a value");
    p->scan.at += o->n;
    return DC_OK;
}

/* Operand n of i, whose literal is made a constant of the type that the place asks for. */
static dc_status set_operand(dc_flat_parser *p, dc_finst *i, int n, operand *o,
                             const operand *other)
{
    dc_ftype of = {0, 0};
    if (other != NULL && other->v != 0)
        of = (dc_ftype){p->f->inst.at[other->v].type, p->f->inst.at[other->v].lanes};
    if (o->v == 0) {
        dc_finst c = {.op = DC_K_CONST};
        const dc_ftype t = o->type.lanes != 0 ? o->type : dc_flat_print_operand(i, n, of);
        if (t.lanes == 0)
            return dc_scan_refuse(&p->scan, "the type of '%.*s' is not known here",
                                  (int)(o->n < 40 ? o->n : 40), o->text);
        c.type = (uint8_t)t.type;
        c.lanes = (uint16_t)t.lanes;
        DC_TRY(pattern_of(p, o, t.type, &c.imm));
        o->v = once(p, &c);
    }
    i->in[n] = o->v;
    return DC_OK;
}

/* Instructions ------------------------------------------------------------------------------ */

static dc_status read_buffer_use(dc_flat_parser *p, uint32_t *out)
{
    dc_flat_word name;
    int64_t at = -1;
    DC_TRY(dc_flat_parse_label(p, &name));
    if (dc_scan_accept(&p->scan, "@"))
        DC_TRY(dc_flat_parse_count(p, UINT32_MAX, &at));
    for (uint32_t n = 0; n < p->f->buf.n; n++)
        if ((at < 0 || at == n) && strlen(p->f->buf.at[n].name) == name.n &&
            memcmp(p->f->buf.at[n].name, name.s, name.n) == 0) {
            *out = n;
            return DC_OK;
        }
    return dc_scan_refuse(&p->scan, "no buffer '%.*s'", (int)name.n, name.s);
}

/* What stands behind the place in memory, of matrix, wgmma and wgmma_wait. */
static dc_status read_product(dc_flat_parser *p, dc_finst *i)
{
    operand o;
    int64_t number = 0;
    i->align = (uint16_t)(i->type == DC_INDEX ? 1 : dc_dtype_size((dc_dtype)i->type));
    i->imm = 0;
    if (i->op == DC_K_MATRIX && dc_scan_accept(&p->scan, "turned"))
        DC_TRY(dc_flat_parse_count(p, INT64_MAX, &number));
    if (i->op == DC_K_WGMMA_WAIT) {
        DC_TRY(dc_scan_expect(&p->scan, ","));
        DC_TRY(dc_flat_parse_count(p, INT64_MAX, &number));
    }
    i->imm = (uint64_t)number;
    for (int n = 1; i->op == DC_K_WGMMA && n < 3; n++) {
        DC_TRY(dc_scan_expect(&p->scan, ","));
        DC_TRY(read_operand(p, &o));
        DC_TRY(set_operand(p, i, n, &o, NULL));
    }
    if (i->op == DC_K_WGMMA && dc_scan_accept(&p->scan, "begin"))
        i->imm |= DC_WGMMA_BEGIN;
    if (i->op == DC_K_WGMMA && dc_scan_accept(&p->scan, "end"))
        i->imm |= DC_WGMMA_END;
    return DC_OK;
}

static dc_status read_mem(dc_flat_parser *p, dc_finst *i)
{
    const bool stores = dc_kop_stores((dc_kop)i->op);
    operand o;
    int64_t number;
    DC_TRY(read_buffer_use(p, &i->buf));
    DC_TRY(dc_scan_expect(&p->scan, "["));
    DC_TRY(read_operand(p, &o));
    DC_TRY(set_operand(p, i, 0, &o, NULL));
    i->imm = 1;
    if (dc_scan_accept(&p->scan, "step")) {
        DC_TRY(dc_flat_parse_integer(p, &number));
        i->imm = (uint64_t)number;
    }
    DC_TRY(dc_scan_expect(&p->scan, "]"));
    if (i->op == DC_K_MATRIX || i->op == DC_K_WGMMA || i->op == DC_K_WGMMA_WAIT)
        return read_product(p, i);
    if (i->op == DC_K_LDMATRIX)
        i->imm = dc_scan_accept(&p->scan, "transposed") ? 1
                 : dc_scan_accept(&p->scan, "rounded")  ? 2
                                                        : 0;
    if (stores) {
        DC_TRY(dc_scan_expect(&p->scan, ","));
        DC_TRY(read_operand(p, &o));
        DC_TRY(set_operand(p, i, 1, &o, NULL));
    }
    i->align = (uint16_t)(i->type == DC_INDEX ? 1 : dc_dtype_size((dc_dtype)i->type));
    while (dc_scan_accept(&p->scan, ",")) {
        if (dc_scan_accept(&p->scan, "mask")) {
            DC_TRY(read_operand(p, &o));
            DC_TRY(set_operand(p, i, stores ? 2 : 1, &o, NULL));
        } else if (i->op == DC_K_LOAD && dc_scan_accept(&p->scan, "prefetch")) {
            DC_TRY(read_operand(p, &o));
            DC_TRY(set_operand(p, i, 2, &o, NULL));
        } else {
            DC_TRY(dc_scan_expect(&p->scan, "align"));
            DC_TRY(dc_flat_parse_count(p, UINT16_MAX, &number));
            i->align = (uint16_t)number;
        }
    }
    return DC_OK;
}

static dc_status read_operands(dc_flat_parser *p, dc_finst *i, int n)
{
    operand o[3];
    for (int k = 0; k < n; k++) {
        if (k > 0)
            DC_TRY(dc_scan_expect(&p->scan, ","));
        DC_TRY(read_operand(p, &o[k]));
    }
    if (n == 2) { /* a literal takes its type from a value, not from another literal */
        const operand first = o[0];
        DC_TRY(set_operand(p, i, 0, &o[0], &o[1]));
        return set_operand(p, i, 1, &o[1], first.v != 0 ? &first : NULL);
    }
    for (int k = 0; k < n; k++)
        DC_TRY(set_operand(p, i, k, &o[k], NULL));
    return DC_OK;
}

/* Of CELL and ROWS: which table, and which column. */
static dc_status read_table_use(dc_flat_parser *p, dc_finst *i)
{
    int64_t table, column = 0;
    DC_TRY(dc_flat_parse_count(p, UINT32_MAX, &table));
    if (i->op == DC_K_CELL)
        DC_TRY(dc_flat_parse_count(p, UINT32_MAX, &column));
    i->imm = i->op == DC_K_CELL ? dc_cell_of((uint32_t)table, (uint32_t)column) : (uint64_t)table;
    return dc_scan_expect(&p->scan, ",");
}

static dc_status read_rest(dc_flat_parser *p, dc_finst *i)
{
    const dc_kop_row *row = dc_kop_row_of((dc_kop)i->op);
    dc_ftype t = {DC_INDEX, 1};
    int64_t number;
    if (row->form != DC_KFORM_CTRL)
        DC_TRY(dc_flat_parse_type(p, &t));
    else if (i->op != DC_K_LOOP)
        t = (dc_ftype){0, 0};
    i->type = (uint8_t)t.type;
    i->lanes = (uint16_t)t.lanes;
    if (row->form == DC_KFORM_MEM)
        return read_mem(p, i);
    if (i->op == DC_K_BARRIER) {
        const int kind =
            dc_flat_parse_one_of(p, dc_flattext_barriers, DC_COUNTOF(dc_flattext_barriers));
        i->imm = (uint64_t)kind;
        return kind >= 0 ? DC_OK : dc_scan_expected(&p->scan, "'group' or 'lanes'");
    }
    if (i->op == DC_K_LANES || i->op == DC_K_WAIT) {
        DC_TRY(dc_flat_parse_integer(p, &number));
        i->imm = (uint64_t)number;
    }
    if (i->op == DC_K_CELL || i->op == DC_K_ROWS)
        DC_TRY(read_table_use(p, i));
    return read_operands(p, i, row->n);
}

/* Loops that the value depends on, as building counts them (jit/flat/flat.c). */
static uint16_t level_of(const dc_flat_parser *p, const dc_finst *i)
{
    uint16_t level = 0;
    if (dc_kop_opens((dc_kop)i->op) || dc_kop_meets((dc_kop)i->op) || i->op == DC_K_BARRIER ||
        dc_kop_orders((dc_kop)i->op) ||
        (dc_kop_row_of((dc_kop)i->op)->form == DC_KFORM_MEM && !dc_flat_reads_input(p->f, i)))
        return p->level;
    for (int n = 0; n < 3; n++)
        if (i->in[n] != 0 && p->f->inst.at[i->in[n]].level > level)
            level = p->f->inst.at[i->in[n]].level;
    return i->op == DC_K_END ? 0 : level;
}

static dc_status put_inst(dc_flat_parser *p, dc_finst *i, const uint32_t *number)
{
    const bool opens = dc_kop_opens((dc_kop)i->op);
    const bool has_value = i->lanes > 0 && !dc_kop_stores((dc_kop)i->op);
    if (has_value != (number != NULL))
        return dc_scan_refuse(&p->scan, has_value ? "%s without a number" : "%s has no value",
                              dc_kop_row_of((dc_kop)i->op)->name);
    if (opens && p->open.n == MAX_DEPTH)
        return dc_scan_refuse(&p->scan, "scopes are nested more than %d deep", MAX_DEPTH);
    p->level = (uint16_t)(p->level + (i->op == DC_K_LOOP));
    i->level = level_of(p, i);
    const dc_fv v = append_inst(p, i);
    DC_PUSH_IN(&p->f->arena, p->f->order, v);
    if (has_value)
        DC_PUSH_IN(&p->scan.j->scratch, p->value, ((dc_flat_named){*number, v}));
    if (opens)
        DC_PUSH_IN(&p->scan.j->scratch, p->open, v);
    if (i->op == DC_K_END && p->open.n > 0)
        p->level = (uint16_t)(p->level - (p->f->inst.at[p->open.at[--p->open.n]].op == DC_K_LOOP));
    return DC_OK;
}

static dc_status read_op(dc_flat_parser *p, dc_finst *i)
{
    dc_scan_skip(&p->scan);
    const size_t n = dc_flat_parse_word_length(p->scan.at);
    for (int op = 0; op < DC_K__COUNT; op++) {
        const char *name = dc_kop_row_of((dc_kop)op)->name;
        if (op == DC_K_CONST || op == DC_K_ARG || strlen(name) != n ||
            strncmp(p->scan.at, name, n) != 0)
            continue;
        i->op = (uint8_t)op;
        p->scan.at += n;
        return DC_OK;
    }
    return dc_scan_expected(&p->scan, "an instruction");
}

dc_status dc_flat_parse_inst(dc_flat_parser *p)
{
    dc_finst i = {0};
    uint32_t number = 0;
    const bool numbered = dc_scan_accept(&p->scan, "%");
    if (numbered) {
        int64_t n;
        DC_TRY(dc_flat_parse_count(p, UINT32_MAX, &n));
        number = (uint32_t)n;
        if (number == 0 || (p->value.n > 0 && p->value.at[p->value.n - 1].number >= number))
            return dc_scan_refuse(&p->scan, "%%%" PRIu32 " is out of order", number);
        DC_TRY(dc_scan_expect(&p->scan, "="));
    }
    DC_TRY(read_op(p, &i));
    DC_TRY(read_rest(p, &i));
    return put_inst(p, &i, numbered ? &number : NULL);
}
