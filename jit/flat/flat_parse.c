/*
 * The flat form from its text (jit/flat/flat_print.h). Any bytes give a PARSE record with the line or a
 * kernel that dc_flat_check can judge: the parser only sees to it that every field is inside its
 * type and every operand is a value that stands earlier.
 *
 * Constants and arguments become instructions in front of all others, each once.
 */
#include "core/base/digits.h"
#include "jit/flat/flat_parse_impl.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_PARAMS = 1 << 20 };

/* Words ------------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.';
}

size_t dc_flat_parse_word_length(const char *s)
{
    size_t n = 0;
    while (is_word(s[n]))
        n++;
    return n;
}

size_t dc_flat_parse_literal(const char *s)
{
    size_t n = s[0] == '-';
    while (is_word(s[n]) || ((s[n] == '-' || s[n] == '+') && n > 0 && s[n - 1] == 'e'))
        n++;
    return n;
}

int dc_flat_parse_one_of(dc_flat_parser *p, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (words[i][0] != '\0' && dc_scan_accept(&p->scan, words[i]))
            return (int)i;
    return -1;
}

dc_status dc_flat_parse_label(dc_flat_parser *p, dc_flat_word *out)
{
    dc_scan_skip(&p->scan);
    *out = (dc_flat_word){p->scan.at, dc_flat_parse_word_length(p->scan.at)};
    if (out->n == 0 || (*out->s >= '0' && *out->s <= '9'))
        return dc_scan_expected(&p->scan, "a name");
    p->scan.at += out->n;
    return DC_OK;
}

static dc_status read_name(dc_flat_parser *p, char *out, size_t size)
{
    dc_scan_skip(&p->scan);
    return dc_scan_name(&p->scan, "a name", out, size);
}

/* Numbers ----------------------------------------------------------------------------------- */

bool dc_flat_parse_bits(const char *s, size_t n, uint64_t *out, bool *negative)
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

dc_status dc_flat_parse_integer(dc_flat_parser *p, int64_t *out)
{
    uint64_t bits;
    bool negative;
    dc_scan_skip(&p->scan);
    const size_t n = dc_flat_parse_literal(p->scan.at);
    if (n == 0 || !dc_flat_parse_bits(p->scan.at, n, &bits, &negative))
        return dc_scan_expected(&p->scan, "an integer");
    if (!negative && bits > INT64_MAX)
        return dc_scan_refuse(&p->scan, "an integer is too large");
    p->scan.at += n;
    *out = (int64_t)bits;
    return DC_OK;
}

dc_status dc_flat_parse_count(dc_flat_parser *p, int64_t most, int64_t *out)
{
    DC_TRY(dc_flat_parse_integer(p, out));
    if (*out < 0 || *out > most)
        return dc_scan_refuse(&p->scan, "%" PRId64 " is not in 0..%" PRId64, *out, most);
    return DC_OK;
}

bool dc_flat_parse_any_type(dc_flat_parser *p, dc_ftype *out)
{
    dc_scan_skip(&p->scan);
    const size_t n = dc_flat_parse_word_length(p->scan.at);
    for (int t = 0; t <= DC_INDEX; t++) {
        const char *name = dc_flat_print_type(t);
        const size_t k = strlen(name);
        uint64_t lanes = 1;
        bool negative;
        if (n < k || memcmp(p->scan.at, name, k) != 0)
            continue;
        if (n > k && (p->scan.at[k] != 'x' || p->scan.at[k + 1] == '0' ||
                      !dc_flat_parse_bits(p->scan.at + k + 1, n - k - 1, &lanes, &negative)))
            continue;
        if (lanes < 1 || lanes > UINT16_MAX)
            continue;
        *out = (dc_ftype){t, (int)lanes};
        p->scan.at += n;
        return true;
    }
    return false;
}

dc_status dc_flat_parse_type(dc_flat_parser *p, dc_ftype *out)
{
    return dc_flat_parse_any_type(p, out) ? DC_OK : dc_scan_expected(&p->scan, "a type");
}

/* Heading ----------------------------------------------------------------------------------- */

static dc_status read_buffer_facts(dc_flat_parser *p, dc_buffer *b)
{
    int64_t number;
    for (;;) {
        int which = dc_flat_parse_one_of(p, dc_flattext_modes, DC_COUNTOF(dc_flattext_modes));
        if (which >= 0) {
            b->mode = (uint8_t)which;
            continue;
        }
        which = dc_flat_parse_one_of(p, dc_flattext_scopes, DC_COUNTOF(dc_flattext_scopes));
        if (which >= 0) {
            if (b->scope == DC_SCOPE_PARAM && b->mode == DC_MODE_IN)
                b->mode = DC_MODE_OUT;
            b->scope = (uint8_t)which;
            if (which != DC_SCOPE_SCRATCH)
                continue;
            DC_TRY(dc_flat_parse_count(p, INT64_MAX, &number));
            b->at = (size_t)number;
        } else if (dc_scan_accept(&p->scan, "align")) {
            DC_TRY(dc_flat_parse_count(p, DC_BUFFER_ALIGN, &number));
            b->align = (uint8_t)number;
        } else if (dc_scan_accept(&p->scan, "nontemporal")) {
            b->nontemporal = true;
        } else if (dc_scan_accept(&p->scan, "atoms")) {
            b->atoms = true;
        } else if (dc_scan_accept(&p->scan, "prefetch")) {
            DC_TRY(dc_flat_parse_count(p, UINT8_MAX, &number));
            b->prefetch = (uint8_t)number;
        } else if (dc_scan_accept(&p->scan, "table")) {
            DC_TRY(dc_flat_parse_count(p, UINT32_MAX - 1, &number));
            b->table = (uint32_t)number + 1;
        } else if (dc_scan_accept(&p->scan, "step")) {
            DC_TRY(dc_flat_parse_count(p, UINT32_MAX, &number));
            b->step = (uint32_t)number;
        } else if (dc_scan_accept(&p->scan, "column")) {
            DC_TRY(dc_flat_parse_count(p, UINT32_MAX - 1, &number));
            b->column = (uint32_t)number + 1;
        } else if (dc_scan_accept(&p->scan, "param")) {
            DC_TRY(dc_flat_parse_count(p, UINT32_MAX, &number));
            b->param = (uint32_t)number;
        } else {
            return DC_OK;
        }
    }
}

static dc_status read_buffer(dc_flat_parser *p)
{
    dc_buffer b = {0};
    dc_ftype t;
    dc_flat_word name;
    int64_t number;
    DC_TRY(dc_flat_parse_label(p, &name));
    b.name = dc_arena_printf(&p->f->arena, "%.*s", (int)name.n, name.s);
    if (dc_scan_accept(&p->scan, "@"))
        DC_TRY(dc_flat_parse_count(p, UINT32_MAX, &number));
    DC_TRY(dc_scan_expect(&p->scan, ":"));
    DC_TRY(dc_flat_parse_type(p, &t));
    if (t.lanes != 1 || t.type == DC_INDEX)
        return dc_scan_refuse(&p->scan, "buffer '%s' has no dtype", b.name);
    b.dtype = (uint8_t)t.type;
    DC_TRY(dc_scan_expect(&p->scan, "["));
    DC_TRY(dc_flat_parse_count(p, INT64_MAX, &b.count));
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
static dc_status read_table(dc_flat_parser *p)
{
    dc_ftable t = {0};
    DC_VEC(uint64_t) cell = {0};
    int64_t number;
    DC_TRY(dc_flat_parse_count(p, UINT16_MAX, &number));
    t.columns = (uint32_t)number;
    DC_TRY(dc_scan_expect(&p->scan, "("));
    do {
        for (uint32_t c = 0; c < t.columns; c++) {
            bool negative;
            uint64_t bits;
            dc_scan_skip(&p->scan);
            const size_t n = dc_flat_parse_literal(p->scan.at);
            if (n == 0 || !dc_flat_parse_bits(p->scan.at, n, &bits, &negative) || negative)
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
static dc_status count_parameters(dc_flat_parser *p)
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

static dc_status read_kernel_facts(dc_flat_parser *p)
{
    dc_flat *f = p->f;
    int64_t n;
    for (;;) {
        if (dc_scan_accept(&p->scan, "strict")) {
            f->strict = true;
        } else if (dc_scan_accept(&p->scan, "simt")) {
            DC_TRY(dc_flat_parse_count(p, UINT32_MAX, &n));
            f->simt = true;
            f->threads = (uint32_t)n;
        } else if (dc_scan_accept(&p->scan, "lanes")) {
            DC_TRY(dc_flat_parse_count(p, INT32_MAX, &n));
            f->lanes = (int)n;
        } else if (dc_scan_accept(&p->scan, "index")) {
            DC_TRY(dc_flat_parse_integer(p, &n));
            if (n != 32 && n != 64)
                return dc_scan_refuse(&p->scan, "the index type has 32 or 64 bits");
            f->index_bits = (int)n;
        } else if (dc_scan_accept(&p->scan, "positions")) {
            DC_TRY(dc_flat_parse_count(p, INT64_MAX, &f->positions));
        } else if (dc_scan_accept(&p->scan, "scratch")) {
            DC_TRY(dc_flat_parse_count(p, INT64_MAX, &n));
            f->scratch = (size_t)n;
        } else if (dc_scan_accept(&p->scan, "table")) {
            DC_TRY(read_table(p));
        } else {
            return count_parameters(p);
        }
    }
}

static dc_status read_heading(dc_flat_parser *p)
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
/* Kernels ----------------------------------------------------------------------------------- */

static void put_first_in_front(dc_flat_parser *p)
{
    dc_flat *f = p->f;
    const uint32_t n = p->first.n + f->order.n;
    dc_fv *order = DC_NEW_ARRAY(&f->arena, dc_fv, n);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i < p->first.n ? p->first.at[i] : f->order.at[i - p->first.n];
    f->order.at = order;
    f->order.n = f->order.cap = n;
}

static dc_status read_kernel(dc_flat_parser *p)
{
    DC_TRY(read_heading(p));
    while (!dc_scan_accept(&p->scan, "}"))
        DC_TRY(dc_flat_parse_inst(p));
    put_first_in_front(p);
    return DC_OK;
}

static void free_flat(void *f)
{
    dc_flat_free(f);
}

dc_status dc_flat_parse(dc_job *j, const char **text, dc_flat **out)
{
    dc_flat_parser p = {.scan = {j, *text, 1, dc_flat_parse_word_length}};
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
