/*
 * The flat form from its text (jit/flat/flat_print.h). Any bytes give a PARSE record with the line or a
 * kernel that dc_flat_check can judge: the parser only sees to it that every field is inside its
 * type and every operand is a value that stands earlier.
 *
 * Constants and arguments become instructions in front of all others, each once.
 */
#include "core/base/digits.h"
#include "core/base/scan.h"
#include "jit/flat/flat_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 1000, MAX_BITS = 64, MAX_PARAMS = 1 << 20 };

typedef struct named { /* %number */
    uint32_t number;
    dc_fv v;
} named;

/* An operand as it stands: a value, or a literal whose type is perhaps known later. */
typedef struct operand {
    dc_fv v; /* 0: a literal */
    dc_ftype type;
    const char *text;
    size_t n;
} operand;

typedef struct parser {
    dc_scan scan;
    dc_flat *f;
    DC_VEC(named) value; /* by ascending number */
    DC_VEC(dc_fv) first; /* constants and arguments */
    DC_VEC(dc_fv) open;  /* LOOPs and IFs */
    uint16_t level;      /* open LOOPs */
} parser;

/* Words ------------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.';
}

static size_t word_length(const char *s)
{
    size_t n = 0;
    while (is_word(s[n]))
        n++;
    return n;
}

/* Also the signs of numbers: -1.5e-9. */
static size_t literal_length(const char *s)
{
    size_t n = s[0] == '-';
    while (is_word(s[n]) || ((s[n] == '-' || s[n] == '+') && n > 0 && s[n - 1] == 'e'))
        n++;
    return n;
}

/* Position in a list of words, -1: none of them. An empty word is no word. */
static int accept_one(parser *p, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (words[i][0] != '\0' && dc_scan_accept(&p->scan, words[i]))
            return (int)i;
    return -1;
}

typedef struct word {
    const char *s;
    size_t n;
} word;

/* A name, of any length. */
static dc_status read_label(parser *p, word *out)
{
    dc_scan_skip(&p->scan);
    *out = (word){p->scan.at, word_length(p->scan.at)};
    if (out->n == 0 || (*out->s >= '0' && *out->s <= '9'))
        return dc_scan_expected(&p->scan, "a name");
    p->scan.at += out->n;
    return DC_OK;
}

static dc_status read_name(parser *p, char *out, size_t size)
{
    dc_scan_skip(&p->scan);
    return dc_scan_name(&p->scan, "a name", out, size);
}

/* Numbers ----------------------------------------------------------------------------------- */

/* Decimal with a sign or hexadecimal; the pattern of 64 bits and whether it is below zero. */
static bool integer_of(const char *s, size_t n, uint64_t *out, bool *negative)
{
    const char *end = s + n;
    const bool hex = n > 2 && s[0] == '0' && s[1] == 'x';
    dc_digits d;
    *negative = n > 0 && s[0] == '-';
    if (hex) {
        s += 2;
        d = dc_digits_hex(&s, end, out);
    } else if (*negative) {
        int64_t v = 0;
        d = dc_digits_signed(&s, end, INT64_MIN, -1, &v);
        *out = (uint64_t)v;
    } else {
        d = dc_digits_unsigned(&s, end, UINT64_MAX, out);
    }
    return d == DC_DIGITS_OK && s == end;
}

static dc_status read_integer(parser *p, int64_t *out)
{
    uint64_t bits;
    bool negative;
    dc_scan_skip(&p->scan);
    const size_t n = literal_length(p->scan.at);
    if (n == 0 || !integer_of(p->scan.at, n, &bits, &negative))
        return dc_scan_expected(&p->scan, "an integer");
    if (!negative && bits > INT64_MAX)
        return dc_scan_refuse(&p->scan, "an integer is too large");
    p->scan.at += n;
    *out = (int64_t)bits;
    return DC_OK;
}

static dc_status read_count(parser *p, int64_t most, int64_t *out)
{
    DC_TRY(read_integer(p, out));
    if (*out < 0 || *out > most)
        return dc_scan_refuse(&p->scan, "%" PRId64 " is not in 0..%" PRId64, *out, most);
    return DC_OK;
}

/* The literal as a pattern of the type. */
static dc_status pattern_of(parser *p, const operand *o, int type, uint64_t *bits)
{
    bool negative;
    const int shown = (int)(o->n < 40 ? o->n : 40);
    if (dc_ftype_is_float(type)) {
        if (!dc_flat_print_float((dc_dtype)type, o->text, o->n, bits))
            return dc_scan_refuse(&p->scan, "'%.*s' is no %s", shown, o->text,
                                  dc_flat_print_type(type));
        return DC_OK;
    }
    if (!integer_of(o->text, o->n, bits, &negative))
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

/* f32, f32x16; nothing is read where no type stands. */
static bool accept_type(parser *p, dc_ftype *out)
{
    dc_scan_skip(&p->scan);
    const size_t n = word_length(p->scan.at);
    for (int t = 0; t <= DC_INDEX; t++) {
        const char *name = dc_flat_print_type(t);
        const size_t k = strlen(name);
        uint64_t lanes = 1;
        bool negative;
        if (n < k || memcmp(p->scan.at, name, k) != 0)
            continue;
        if (n > k && (p->scan.at[k] != 'x' || p->scan.at[k + 1] == '0' ||
                      !integer_of(p->scan.at + k + 1, n - k - 1, &lanes, &negative)))
            continue;
        if (lanes < 1 || lanes > UINT16_MAX)
            continue;
        *out = (dc_ftype){t, (int)lanes};
        p->scan.at += n;
        return true;
    }
    return false;
}

static dc_status read_type(parser *p, dc_ftype *out)
{
    return accept_type(p, out) ? DC_OK : dc_scan_expected(&p->scan, "a type");
}

/* Heading ----------------------------------------------------------------------------------- */

static dc_status read_buffer_facts(parser *p, dc_buffer *b)
{
    int64_t number;
    for (;;) {
        int which = accept_one(p, dc_flattext_modes, DC_COUNTOF(dc_flattext_modes));
        if (which >= 0) {
            b->mode = (uint8_t)which;
            continue;
        }
        which = accept_one(p, dc_flattext_scopes, DC_COUNTOF(dc_flattext_scopes));
        if (which >= 0) {
            if (b->scope == DC_SCOPE_PARAM && b->mode == DC_MODE_IN)
                b->mode = DC_MODE_OUT;
            b->scope = (uint8_t)which;
            if (which != DC_SCOPE_SCRATCH)
                continue;
            DC_TRY(read_count(p, INT64_MAX, &number));
            b->at = (size_t)number;
        } else if (dc_scan_accept(&p->scan, "align")) {
            DC_TRY(read_count(p, DC_BUFFER_ALIGN, &number));
            b->align = (uint8_t)number;
        } else if (dc_scan_accept(&p->scan, "nontemporal")) {
            b->nontemporal = true;
        } else if (dc_scan_accept(&p->scan, "prefetch")) {
            DC_TRY(read_count(p, UINT8_MAX, &number));
            b->prefetch = (uint8_t)number;
        } else if (dc_scan_accept(&p->scan, "table")) {
            DC_TRY(read_count(p, UINT32_MAX - 1, &number));
            b->table = (uint32_t)number + 1;
        } else if (dc_scan_accept(&p->scan, "step")) {
            DC_TRY(read_count(p, UINT32_MAX, &number));
            b->step = (uint32_t)number;
        } else if (dc_scan_accept(&p->scan, "column")) {
            DC_TRY(read_count(p, UINT32_MAX - 1, &number));
            b->column = (uint32_t)number + 1;
        } else if (dc_scan_accept(&p->scan, "param")) {
            DC_TRY(read_count(p, UINT32_MAX, &number));
            b->param = (uint32_t)number;
        } else {
            return DC_OK;
        }
    }
}

static dc_status read_buffer(parser *p)
{
    dc_buffer b = {0};
    dc_ftype t;
    word name;
    int64_t number;
    DC_TRY(read_label(p, &name));
    b.name = dc_arena_printf(&p->f->arena, "%.*s", (int)name.n, name.s);
    if (dc_scan_accept(&p->scan, "@"))
        DC_TRY(read_count(p, UINT32_MAX, &number));
    DC_TRY(dc_scan_expect(&p->scan, ":"));
    DC_TRY(read_type(p, &t));
    if (t.lanes != 1 || t.type == DC_INDEX)
        return dc_scan_refuse(&p->scan, "buffer '%s' has no dtype", b.name);
    b.dtype = (uint8_t)t.type;
    DC_TRY(dc_scan_expect(&p->scan, "["));
    DC_TRY(read_count(p, INT64_MAX, &b.count));
    DC_TRY(dc_scan_expect(&p->scan, "]"));
    b.param = p->f->nparam;
    DC_TRY(read_buffer_facts(p, &b));
    if (b.scope == DC_SCOPE_PARAM)
        p->f->nparam += b.table == 0;
    else
        b.param = 0;
    DC_PUSH_IN(&p->f->arena, p->f->buf, b);
    return DC_OK;
}

/* How many columns, then rows of so many patterns. */
static dc_status read_table(parser *p)
{
    dc_ftable t = {0};
    DC_VEC(uint64_t) cell = {0};
    int64_t number;
    DC_TRY(read_count(p, UINT16_MAX, &number));
    t.columns = (uint32_t)number;
    DC_TRY(dc_scan_expect(&p->scan, "("));
    do {
        for (uint32_t c = 0; c < t.columns; c++) {
            bool negative;
            uint64_t bits;
            dc_scan_skip(&p->scan);
            const size_t n = literal_length(p->scan.at);
            if (n == 0 || !integer_of(p->scan.at, n, &bits, &negative) || negative)
                return dc_scan_expected(&p->scan, "a pattern");
            p->scan.at += n;
            DC_PUSH_IN(&p->f->arena, cell, bits);
        }
        t.rows++;
    } while (dc_scan_accept(&p->scan, ","));
    t.cell = cell.at;
    DC_PUSH_IN(&p->f->arena, p->f->table, t);
    return dc_scan_expect(&p->scan, ")");
}

/* Parameters of buffers whose tables are known now. */
static dc_status count_parameters(parser *p)
{
    dc_flat *f = p->f;
    for (uint32_t n = 0; n < f->buf.n; n++) {
        const uint32_t table = f->buf.at[n].table;
        if (table > f->table.n)
            return dc_scan_refuse(&p->scan, "no table %" PRIu32, table - 1);
        const uint32_t rows = table != 0 ? dc_flat_rows(f, &f->buf.at[n]) : 0;
        if (rows > MAX_PARAMS || f->nparam > MAX_PARAMS - rows)
            return dc_scan_refuse(&p->scan, "too many parameters");
        f->nparam += rows;
    }
    return DC_OK;
}

static dc_status read_kernel_facts(parser *p)
{
    dc_flat *f = p->f;
    int64_t n;
    for (;;) {
        if (dc_scan_accept(&p->scan, "strict")) {
            f->strict = true;
        } else if (dc_scan_accept(&p->scan, "simt")) {
            DC_TRY(read_count(p, UINT32_MAX, &n));
            f->simt = true;
            f->threads = (uint32_t)n;
        } else if (dc_scan_accept(&p->scan, "lanes")) {
            DC_TRY(read_count(p, INT32_MAX, &n));
            f->lanes = (int)n;
        } else if (dc_scan_accept(&p->scan, "index")) {
            DC_TRY(read_integer(p, &n));
            if (n != 32 && n != 64)
                return dc_scan_refuse(&p->scan, "the index type has 32 or 64 bits");
            f->index_bits = (int)n;
        } else if (dc_scan_accept(&p->scan, "positions")) {
            DC_TRY(read_count(p, INT64_MAX, &f->positions));
        } else if (dc_scan_accept(&p->scan, "scratch")) {
            DC_TRY(read_count(p, INT64_MAX, &n));
            f->scratch = (size_t)n;
        } else if (dc_scan_accept(&p->scan, "table")) {
            DC_TRY(read_table(p));
        } else {
            return count_parameters(p);
        }
    }
}

static dc_status read_heading(parser *p)
{
    DC_TRY(dc_scan_expect(&p->scan, "kernel"));
    DC_TRY(read_name(p, p->f->name, sizeof p->f->name));
    DC_TRY(dc_scan_expect(&p->scan, "("));
    if (!dc_scan_accept(&p->scan, ")")) {
        do
            DC_TRY(read_buffer(p));
        while (dc_scan_accept(&p->scan, ","));
        DC_TRY(dc_scan_expect(&p->scan, ")"));
    }
    DC_TRY(read_kernel_facts(p));
    return dc_scan_expect(&p->scan, "{");
}

/* Operands ---------------------------------------------------------------------------------- */

static dc_fv append_inst(parser *p, const dc_finst *i)
{
    DC_PUSH_IN(&p->f->arena, p->f->inst, *i);
    return p->f->inst.n - 1;
}

/* Of constants and arguments. */
static dc_fv once(parser *p, const dc_finst *i)
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

static dc_status find_value(parser *p, uint32_t number, dc_fv *out)
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

static dc_status read_operand(parser *p, operand *o)
{
    int64_t number;
    *o = (operand){0};
    if (dc_scan_accept(&p->scan, "%")) {
        DC_TRY(read_count(p, UINT32_MAX, &number));
        return find_value(p, (uint32_t)number, &o->v);
    }
    const int arg = accept_one(p, dc_flattext_args, DC_COUNTOF(dc_flattext_args));
    if (arg >= 0) {
        o->v = once(
            p, &(dc_finst){.op = DC_K_ARG, .type = DC_INDEX, .lanes = 1, .imm = (uint64_t)arg});
        return DC_OK;
    }
    accept_type(p, &o->type);
    dc_scan_skip(&p->scan);
    o->text = p->scan.at;
    o->n = literal_length(p->scan.at);
    if (o->n == 0)
        return dc_scan_expected(&p->scan, "a value");
    p->scan.at += o->n;
    return DC_OK;
}

/* Operand n of i, whose literal is made a constant of the type that the place asks for. */
static dc_status set_operand(parser *p, dc_finst *i, int n, operand *o, const operand *other)
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

static dc_status read_buffer_use(parser *p, uint32_t *out)
{
    word name;
    int64_t at = -1;
    DC_TRY(read_label(p, &name));
    if (dc_scan_accept(&p->scan, "@"))
        DC_TRY(read_count(p, UINT32_MAX, &at));
    for (uint32_t n = 0; n < p->f->buf.n; n++)
        if ((at < 0 || at == n) && strlen(p->f->buf.at[n].name) == name.n &&
            memcmp(p->f->buf.at[n].name, name.s, name.n) == 0) {
            *out = n;
            return DC_OK;
        }
    return dc_scan_refuse(&p->scan, "no buffer '%.*s'", (int)name.n, name.s);
}

static dc_status read_mem(parser *p, dc_finst *i)
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
        DC_TRY(read_integer(p, &number));
        i->imm = (uint64_t)number;
    }
    DC_TRY(dc_scan_expect(&p->scan, "]"));
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
            DC_TRY(read_count(p, UINT16_MAX, &number));
            i->align = (uint16_t)number;
        }
    }
    return DC_OK;
}

static dc_status read_operands(parser *p, dc_finst *i, int n)
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
static dc_status read_table_use(parser *p, dc_finst *i)
{
    int64_t table, column = 0;
    DC_TRY(read_count(p, UINT32_MAX, &table));
    if (i->op == DC_K_CELL)
        DC_TRY(read_count(p, UINT32_MAX, &column));
    i->imm = i->op == DC_K_CELL ? dc_cell_of((uint32_t)table, (uint32_t)column) : (uint64_t)table;
    return dc_scan_expect(&p->scan, ",");
}

static dc_status read_rest(parser *p, dc_finst *i)
{
    const dc_kop_row *row = dc_kop_row_of((dc_kop)i->op);
    dc_ftype t = {DC_INDEX, 1};
    int64_t number;
    if (row->form != DC_KFORM_CTRL)
        DC_TRY(read_type(p, &t));
    else if (i->op != DC_K_LOOP)
        t = (dc_ftype){0, 0};
    i->type = (uint8_t)t.type;
    i->lanes = (uint16_t)t.lanes;
    if (row->form == DC_KFORM_MEM)
        return read_mem(p, i);
    if (i->op == DC_K_BARRIER) {
        const int kind = accept_one(p, dc_flattext_barriers, DC_COUNTOF(dc_flattext_barriers));
        i->imm = (uint64_t)kind;
        return kind >= 0 ? DC_OK : dc_scan_expected(&p->scan, "'group' or 'lanes'");
    }
    if (i->op == DC_K_LANES || i->op == DC_K_WAIT) {
        DC_TRY(read_integer(p, &number));
        i->imm = (uint64_t)number;
    }
    if (i->op == DC_K_CELL || i->op == DC_K_ROWS)
        DC_TRY(read_table_use(p, i));
    return read_operands(p, i, row->n);
}

/* Loops that the value depends on, as building counts them (jit/flat/flat.c). */
static uint16_t level_of(const parser *p, const dc_finst *i)
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

static dc_status put_inst(parser *p, dc_finst *i, const uint32_t *number)
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
        DC_PUSH_IN(&p->scan.j->scratch, p->value, ((named){*number, v}));
    if (opens)
        DC_PUSH_IN(&p->scan.j->scratch, p->open, v);
    if (i->op == DC_K_END && p->open.n > 0)
        p->level = (uint16_t)(p->level - (p->f->inst.at[p->open.at[--p->open.n]].op == DC_K_LOOP));
    return DC_OK;
}

static dc_status read_op(parser *p, dc_finst *i)
{
    dc_scan_skip(&p->scan);
    const size_t n = word_length(p->scan.at);
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

static dc_status read_inst(parser *p)
{
    dc_finst i = {0};
    uint32_t number = 0;
    const bool numbered = dc_scan_accept(&p->scan, "%");
    if (numbered) {
        int64_t n;
        DC_TRY(read_count(p, UINT32_MAX, &n));
        number = (uint32_t)n;
        if (number == 0 || (p->value.n > 0 && p->value.at[p->value.n - 1].number >= number))
            return dc_scan_refuse(&p->scan, "%%%" PRIu32 " is out of order", number);
        DC_TRY(dc_scan_expect(&p->scan, "="));
    }
    DC_TRY(read_op(p, &i));
    DC_TRY(read_rest(p, &i));
    return put_inst(p, &i, numbered ? &number : NULL);
}

/* Kernels ----------------------------------------------------------------------------------- */

static void put_first_in_front(parser *p)
{
    dc_flat *f = p->f;
    const uint32_t n = p->first.n + f->order.n;
    dc_fv *order = DC_NEW_ARRAY(&f->arena, dc_fv, n);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i < p->first.n ? p->first.at[i] : f->order.at[i - p->first.n];
    f->order.at = order;
    f->order.n = f->order.cap = n;
}

static dc_status read_kernel(parser *p)
{
    DC_TRY(read_heading(p));
    while (!dc_scan_accept(&p->scan, "}"))
        DC_TRY(read_inst(p));
    put_first_in_front(p);
    return DC_OK;
}

static void free_flat(void *f)
{
    dc_flat_free(f);
}

dc_status dc_flat_parse(dc_job *j, const char **text, dc_flat **out)
{
    parser p = {.scan = {j, *text, 1, word_length}};
    *out = NULL;
    dc_scan_skip(&p.scan);
    if (*p.scan.at == '\0') {
        *text = p.scan.at;
        return DC_OK;
    }
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_flat *f = p.f = dc_xalloc(sizeof *f);
    dc_job_defer(j, free_flat, f);
    f->index_bits = 64;
    f->threads = 1;
    DC_PUSH_IN(&f->arena, f->inst, (dc_finst){0});
    const dc_status s = dc_job_settle(j, f, read_kernel(&p));
    dc_arena_rewind(&j->scratch, mark);
    DC_TRY(s);
    *text = p.scan.at;
    *out = f;
    return DC_OK;
}
