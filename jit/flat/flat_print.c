/* The flat form to text, as jit/flat/flat_print.h describes it. */
#include "jit/flat/flat_print.h"

#include "core/base/digits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const dc_flattext_args[4] = {"begin", "end", "group", "thread"};
const char *const dc_flattext_barriers[3] = {"group", "lanes", "async"};
const char *const dc_flattext_scopes[5] = {"", "local", "thread", "group", "scratch"};
const char *const dc_flattext_modes[3] = {"in", "out", "inout"};

const char *dc_flat_print_type(int type)
{
    return type == DC_INDEX ? "index" : dc_dtype_name((dc_dtype)type);
}

dc_ftype dc_flat_print_operand(const dc_finst *i, int n, dc_ftype other)
{
    const dc_ftype own = {i->type, i->lanes}, unknown = {0, 0};
    const dc_ftype flag = {DC_BOOL, i->lanes};
    switch ((dc_kform)dc_kop_row_of((dc_kop)i->op)->form) {
    case DC_KFORM_LEAF:
        return unknown;
    case DC_KFORM_SAME:
        return own;
    case DC_KFORM_TEST:
        return other;
    case DC_KFORM_PICK:
        return n == 0 ? flag : own;
    case DC_KFORM_CONV:
        return i->op == DC_K_SPLAT ? (dc_ftype){i->type, 1} : unknown;
    case DC_KFORM_LANE:
        if (i->op == DC_K_MMA)
            return n == 2 ? own : unknown;
        return n == 0 ? own : (dc_ftype){DC_U32, 1};
    case DC_KFORM_MEM:
        if (n == 0)
            return (dc_ftype){DC_INDEX,
                              i->op == DC_K_GATHER || i->op == DC_K_SCATTER ? i->lanes : 1};
        if (n == 2 && i->op == DC_K_LOAD)
            return (dc_ftype){DC_INDEX, 1};
        return n == 1 && dc_kop_stores((dc_kop)i->op) ? own : flag;
    case DC_KFORM_CTRL:
        return i->op == DC_K_IF ? (dc_ftype){DC_BOOL, 1} : (dc_ftype){DC_INDEX, 1};
    }
    return unknown;
}

/* Floats ------------------------------------------------------------------------------------ */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits as an integer; what has more than fit is refused. */
static size_t read_digits(const char *s, size_t n, uint64_t *m)
{
    size_t i = 0;
    for (; i < n && is_digit(s[i]) && *m < UINT64_MAX / 10 - 1; i++)
        *m = *m * 10 + (uint64_t)(s[i] - '0');
    return i;
}

static double scaled(double v, int64_t power)
{
    static const double ten[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    for (; power > 15; power -= 15)
        v *= ten[15];
    for (; power < -15; power += 15)
        v /= ten[15];
    return power < 0 ? v / ten[-power] : v * ten[power];
}

static bool read_hex(dc_dtype t, const char *s, size_t n, uint64_t *bits)
{
    const char *at = s;
    return n <= (size_t)dc_dtype_bits(t) / 4 && dc_digits_hex(&at, s + n, bits) == DC_DIGITS_OK &&
           at == s + n;
}

/* The same on all machines and in all locales, which strtof is not. */
bool dc_flat_print_float(dc_dtype t, const char *s, size_t n, uint64_t *bits)
{
    if (n > 2 && s[0] == '0' && s[1] == 'x')
        return read_hex(t, s + 2, n - 2, bits);
    const bool negative = n > 0 && s[0] == '-';
    const uint64_t sign = negative ? (uint64_t)1 << (dc_dtype_bits(t) - 1) : 0;
    const uint64_t infinity = dc_bits_infinity(t);
    size_t at = negative;
    uint64_t m = 0, e = 0;
    if (n - at == 3 && memcmp(s + at, "inf", 3) == 0) {
        *bits = sign | infinity;
        return !dc_dtype_is_finite(t);
    }
    const size_t whole = read_digits(s + at, n - at, &m);
    at += whole;
    int64_t power = 0;
    if (whole > 0 && at < n && s[at] == '.') {
        const size_t part = read_digits(s + at + 1, n - at - 1, &m);
        at += 1 + part;
        power = -(int64_t)part;
        if (part == 0)
            return false;
    }
    if (whole > 0 && at < n && s[at] == 'e') {
        const bool down = at + 1 < n && s[at + 1] == '-';
        at += 1 + (at + 1 < n && (down || s[at + 1] == '+'));
        const size_t digits = read_digits(s + at, n - at, &e);
        if (digits == 0 || e > 400)
            return false;
        at += digits;
        power += down ? -(int64_t)e : (int64_t)e;
    }
    *bits = sign | dc_bits_of(t, scaled((double)m, power));
    return whole > 0 && at == n && (*bits & infinity) != infinity;
}

static void print_float(dc_dtype t, uint64_t bits, dc_text *out)
{
    char s[40];
    uint64_t again;
    const double v = dc_value_of(t, bits);
    if (v == v && v - v == 0) {
        snprintf(s, sizeof s, "%.6g", v);
        if (!dc_flat_print_float(t, s, strlen(s), &again) || again != bits)
            snprintf(s, sizeof s, "%.*g", t == DC_F64 ? 17 : 9, v);
        for (char *c = s; *c != '\0'; c++) /* whatever the locale has for a point */
            *c = is_digit(*c) || *c == '-' || *c == '+' || *c == 'e' ? *c : '.';
        if (dc_flat_print_float(t, s, strlen(s), &again) && again == bits) {
            dc_text_puts(out, s);
            return;
        }
    } else if (v == v) {
        dc_text_puts(out, v < 0 ? "-inf" : "inf");
        return;
    }
    dc_text_printf(out, "0x%0*" PRIx64, dc_dtype_bits(t) / 4, bits);
}

/* Instructions ------------------------------------------------------------------------------ */

typedef struct printer {
    const dc_flat *f;
    uint32_t *number; /* by value, in the order they stand; 0: it has none */
    dc_text *out;
} printer;

static void put_type(printer *p, int type, int lanes)
{
    dc_text_puts(p->out, dc_flat_print_type(type));
    if (lanes > 1)
        dc_text_printf(p->out, "x%d", lanes);
    dc_text_puts(p->out, " ");
}

static bool stands_alone(const dc_finst *i)
{
    return i->op != DC_K_CONST && i->op != DC_K_ARG;
}

static void put_const(printer *p, const dc_finst *c, dc_ftype want)
{
    if (want.lanes != c->lanes || want.type != c->type)
        put_type(p, c->type, c->lanes);
    if (dc_ftype_is_float(c->type))
        print_float((dc_dtype)c->type, c->imm, p->out);
    else if (c->type != DC_INDEX && !dc_ftype_is_signed(c->type))
        dc_text_printf(p->out, "%" PRIu64, c->imm);
    else
        dc_text_printf(p->out, "%" PRId64, (int64_t)dc_flat_canonical(p->f, c->type, c->imm));
}

static void put_operand(printer *p, const dc_finst *i, int n)
{
    const dc_finst *v = dc_finst_at(p->f, i->in[n]);
    if (v->op == DC_K_ARG) {
        dc_text_puts(p->out, dc_flattext_args[v->imm & 3]);
    } else if (v->op == DC_K_CONST) {
        const dc_fv o = n < 2 ? i->in[1 - n] : 0;
        const dc_finst *other = o != 0 ? dc_finst_at(p->f, o) : NULL;
        const bool tells = other != NULL && other->op != DC_K_CONST;
        put_const(p, v,
                  dc_flat_print_operand(
                      i, n, tells ? (dc_ftype){other->type, other->lanes} : (dc_ftype){0, 0}));
    } else {
        dc_text_printf(p->out, "%%%" PRIu32, p->number[i->in[n]]);
    }
}

static void put_buffer_name(printer *p, uint32_t n)
{
    dc_text_puts(p->out, p->f->buf.at[n].name);
    for (uint32_t m = 0; m < n; m++)
        if (strcmp(p->f->buf.at[m].name, p->f->buf.at[n].name) == 0) {
            dc_text_printf(p->out, "@%" PRIu32, n);
            return;
        }
}

/* What stands behind the place in memory. */
static void put_product(printer *p, const dc_finst *i)
{
    if (i->op == DC_K_MATRIX && i->imm != 0)
        dc_text_printf(p->out, " turned %" PRIu64, i->imm);
    if (i->op == DC_K_WGMMA_WAIT)
        dc_text_printf(p->out, ", %" PRIu64, i->imm);
    if (i->op != DC_K_WGMMA)
        return;
    dc_text_puts(p->out, ", ");
    put_operand(p, i, 1);
    dc_text_puts(p->out, ", ");
    put_operand(p, i, 2);
    dc_text_printf(p->out, "%s%s", (i->imm & DC_WGMMA_BEGIN) != 0 ? " begin" : "",
                   (i->imm & DC_WGMMA_END) != 0 ? " end" : "");
}

static void put_mem(printer *p, const dc_finst *i)
{
    const bool stores = dc_kop_stores((dc_kop)i->op);
    const int mask = stores ? 2 : 1;
    put_type(p, i->type, i->lanes);
    put_buffer_name(p, i->buf);
    dc_text_puts(p->out, "[");
    put_operand(p, i, 0);
    if (i->op == DC_K_MATRIX || i->op == DC_K_WGMMA || i->op == DC_K_WGMMA_WAIT) {
        dc_text_puts(p->out, "]");
        put_product(p, i);
        return;
    }
    if (i->lanes > 1 && i->imm != 1 && (i->op == DC_K_LOAD || i->op == DC_K_STORE))
        dc_text_printf(p->out, " step %" PRId64, (int64_t)i->imm);
    dc_text_puts(p->out, i->op != DC_K_LDMATRIX || i->imm == 0 ? "]"
                         : i->imm == 1                         ? "] transposed"
                                                               : "] rounded");
    if (stores) {
        dc_text_puts(p->out, ", ");
        put_operand(p, i, 1);
    }
    if (i->in[mask] != 0) {
        dc_text_puts(p->out, ", mask ");
        put_operand(p, i, mask);
    }
    if (i->op == DC_K_LOAD && i->in[2] != 0) {
        dc_text_puts(p->out, ", prefetch ");
        put_operand(p, i, 2);
    }
    if (i->align != dc_dtype_size((dc_dtype)i->type))
        dc_text_printf(p->out, ", align %d", i->align);
}

static void put_inst(printer *p, dc_fv v)
{
    const dc_finst *i = dc_finst_at(p->f, v);
    const dc_kop_row *row = dc_kop_row_of((dc_kop)i->op);
    if (p->number[v] != 0)
        dc_text_printf(p->out, "%%%" PRIu32 " = ", p->number[v]);
    dc_text_puts(p->out, row->name);
    if (row->form == DC_KFORM_MEM) {
        dc_text_puts(p->out, " ");
        put_mem(p, i);
    } else if (i->op == DC_K_WAIT) {
        dc_text_printf(p->out, " %" PRIu64, i->imm);
    } else if (i->op == DC_K_BARRIER) {
        dc_text_printf(p->out, " %s", dc_flattext_barriers[i->imm % 3]);
    } else {
        if (i->op != DC_K_END && i->op != DC_K_COMMIT)
            dc_text_puts(p->out, " ");
        if (row->form != DC_KFORM_CTRL)
            put_type(p, i->type, i->lanes);
        if (i->op == DC_K_ROWS)
            dc_text_printf(p->out, "%" PRIu64 ", ", i->imm);
        if (i->op == DC_K_CELL)
            dc_text_printf(p->out, "%" PRIu32 " %" PRIu32 ", ", dc_cell_table(i),
                           dc_cell_column(i));
        for (int n = 0; n < row->n; n++) {
            dc_text_puts(p->out, n > 0 ? ", " : "");
            put_operand(p, i, n);
        }
        if (i->op == DC_K_LANES)
            dc_text_printf(p->out, "%" PRId64, (int64_t)i->imm);
    }
    dc_text_puts(p->out, "\n");
}

/* Kernels ----------------------------------------------------------------------------------- */

static void put_buffer(printer *p, uint32_t n, uint32_t *nparam)
{
    const dc_buffer *b = &p->f->buf.at[n];
    const bool param = b->scope == DC_SCOPE_PARAM;
    dc_text_puts(p->out, n > 0 ? ", " : "");
    put_buffer_name(p, n);
    dc_text_printf(p->out, ": %s[%" PRId64 "]", dc_dtype_name((dc_dtype)b->dtype), b->count);
    if (!param)
        dc_text_printf(p->out, " %s", dc_flattext_scopes[b->scope]);
    if (b->scope == DC_SCOPE_SCRATCH)
        dc_text_printf(p->out, " %zu", b->at);
    if (b->mode != (param ? DC_MODE_IN : DC_MODE_OUT))
        dc_text_printf(p->out, " %s", dc_flattext_modes[b->mode]);
    if (b->align != 0)
        dc_text_printf(p->out, " align %d", b->align);
    if (b->nontemporal)
        dc_text_puts(p->out, " nontemporal");
    if (b->atoms)
        dc_text_puts(p->out, " atoms");
    if (b->prefetch != 0)
        dc_text_printf(p->out, " prefetch %d", b->prefetch);
    if (b->table != 0)
        dc_text_printf(p->out, " table %" PRIu32 " step %" PRIu32, b->table - 1, b->step);
    if (b->column != 0)
        dc_text_printf(p->out, " column %" PRIu32, b->column - 1);
    if (b->table != 0 || (param && b->param != *nparam))
        dc_text_printf(p->out, " param %" PRIu32, b->param);
    *nparam += param && b->table == 0;
}

static void put_table(printer *p, const dc_ftable *t)
{
    dc_text_printf(p->out, " table %" PRIu32 " (", t->columns);
    for (uint32_t r = 0; r < t->rows; r++) {
        dc_text_puts(p->out, r > 0 ? "," : "");
        for (uint32_t c = 0; c < t->columns; c++)
            dc_text_printf(p->out, "%s%" PRIu64, r + c > 0 ? " " : "", t->cell[r * t->columns + c]);
    }
    dc_text_puts(p->out, ")");
}

static void put_heading(printer *p)
{
    const dc_flat *f = p->f;
    uint32_t nparam = 0;
    dc_text_printf(p->out, "kernel %s (", f->name);
    for (uint32_t n = 0; n < f->buf.n; n++)
        put_buffer(p, n, &nparam);
    dc_text_printf(p->out, ")%s", f->strict ? " strict" : "");
    if (f->simt)
        dc_text_printf(p->out, " simt %" PRIu32, f->threads);
    if (f->lanes != 0)
        dc_text_printf(p->out, " lanes %d", f->lanes);
    if (f->index_bits != 64)
        dc_text_printf(p->out, " index %d", f->index_bits);
    if (f->positions != 0)
        dc_text_printf(p->out, " positions %" PRId64, f->positions);
    if (f->scratch != 0)
        dc_text_printf(p->out, " scratch %zu", f->scratch);
    for (uint32_t n = 0; n < f->table.n; n++)
        put_table(p, &f->table.at[n]);
    dc_text_puts(p->out, " {\n");
}

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
    printer p = {.f = f, .number = number_values(f), .out = out};
    int indent = 1;
    dc_job_defer(j, dc_xfree, p.number); /* the text may have no room to grow */
    put_heading(&p);
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_kop op = (dc_kop)dc_finst_at(f, f->order.at[n])->op;
        if (!stands_alone(dc_finst_at(f, f->order.at[n])))
            continue;
        if (op == DC_K_END)
            indent--;
        for (int t = 0; t < indent; t++)
            dc_text_puts(out, "  ");
        put_inst(&p, f->order.at[n]);
        if (dc_kop_opens(op))
            indent++;
    }
    dc_text_puts(out, "}\n");
    dc_job_keep(j, p.number);
    dc_xfree(p.number);
}
