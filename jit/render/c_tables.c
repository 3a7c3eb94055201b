/* Tables of the flat form in the C family (jit/render/c_tables.h). */
#include "jit/render/c_tables.h"

#include <stdio.h>

static void indent(dc_c_text *r, int depth)
{
    for (int n = 0; n < depth; n++)
        dc_text_puts(r->out, "    ");
}

static void put_number(dc_c_text *r, const char *pattern, const char *number)
{
    for (const char *p = pattern; *p != '\0'; p++)
        dc_c_text_put(r, *p == '#' ? number : (const char[]){*p, '\0'});
}

void dc_c_tables_parameter(dc_c_text *r, const dc_buffer *b, uint32_t row)
{
    char number[16];
    const bool array = r->f->table.n > 0 && r->d->param_at != NULL;
    snprintf(number, sizeof number, "%u", (unsigned)(b->param + b->step * row));
    put_number(r, array ? r->d->param_at : r->d->param, number);
}

void dc_c_tables_pointer(dc_c_text *r, const dc_buffer *b)
{
    dc_c_text_put(r, "%s%s%s *", r->d->global, b->mode == DC_MODE_IN ? "const " : "",
                  dc_c_text_type(r, b->dtype, true));
}

static bool is_of(const dc_c_text *r, uint32_t n, uint32_t table)
{
    return r->f->buf.at[n].table == table + 1;
}

/* The buffers of the table by the number of the row. */
static void put_row(dc_c_text *r, uint32_t table, int depth)
{
    for (uint32_t n = 0; n < r->f->buf.n; n++) {
        const dc_buffer *b = &r->f->buf.at[n];
        char number[64];
        if (!is_of(r, n, table))
            continue;
        if (dc_flat_rows(r->f, b) == 1)
            snprintf(number, sizeof number, "%u", (unsigned)b->param);
        else
            snprintf(number, sizeof number, "%u + %u * row%u", (unsigned)b->param,
                     (unsigned)b->step, (unsigned)table);
        indent(r, depth);
        dc_c_tables_pointer(r, b);
        dc_c_text_put(r, "const b%u = (", n);
        dc_c_tables_pointer(r, b);
        dc_c_text_put(r, ")");
        put_number(r, r->d->param_at, number);
        dc_c_text_put(r, "; /* %s, %l, %u rows */\n", b->name, b->count, dc_flat_rows(r->f, b));
    }
}

/* Where parameters have no numbers. */
static void put_row_cases(dc_c_text *r, uint32_t table, int depth)
{
    const dc_flat *f = r->f;
    const uint32_t rows = f->table.at[table].rows;
    for (uint32_t n = 0; n < f->buf.n; n++)
        if (is_of(r, n, table)) {
            indent(r, depth);
            dc_c_tables_pointer(r, &f->buf.at[n]);
            dc_c_text_put(r, "b%u; /* %s, %l */\n", n, f->buf.at[n].name, f->buf.at[n].count);
        }
    indent(r, depth);
    dc_c_text_put(r, "switch (row%u) {\n", table);
    for (uint32_t row = 0; row < rows; row++) {
        indent(r, depth);
        dc_c_text_put(r, row + 1 < rows ? "case %u:" : "default:", row);
        for (uint32_t n = 0; n < f->buf.n; n++)
            if (is_of(r, n, table)) {
                dc_c_text_put(r, " b%u = (", n);
                dc_c_tables_pointer(r, &f->buf.at[n]);
                dc_c_text_put(r, ")");
                dc_c_tables_parameter(r, &f->buf.at[n], row);
                dc_c_text_put(r, ";");
            }
        dc_c_text_put(r, " break;\n");
    }
    indent(r, depth);
    dc_c_text_put(r, "}\n");
}

void dc_c_tables_choose(dc_c_text *r, const dc_finst *i, int depth)
{
    const uint32_t table = (uint32_t)i->imm;
    indent(r, depth);
    dc_c_text_put(r, "{\n");
    depth++;
    indent(r, depth);
    dc_c_text_put(r, "const u32 row%u = (u32)%V;\n", table, i->in[0]);
    if (r->d->param_at != NULL)
        put_row(r, table, depth);
    else
        put_row_cases(r, table, depth);
}

void dc_c_tables_define(dc_c_text *r)
{
    const dc_flat *f = r->f;
    for (uint32_t n = 0; n < f->table.n; n++) {
        const dc_ftable *t = &f->table.at[n];
        if (t->columns == 0)
            continue;
        if (r->d->constant == NULL)
            DC_BUG("%s: %s has no tables", f->name, r->d->name);
        dc_c_text_put(r, "%s%s t%u_%s[%u] = {", r->d->constant,
                      dc_c_text_wide_table(t) ? "u64" : "u32", n, f->name, t->rows * t->columns);
        for (uint32_t c = 0; c < t->rows * t->columns; c++) {
            dc_c_text_put(r, c == 0 ? "" : c % t->columns == 0 ? ",\n    " : ", ");
            dc_c_text_literal(r, dc_c_text_wide_table(t) ? DC_U64 : DC_U32, t->cell[c]);
        }
        dc_c_text_put(r, "};\n");
    }
}
