#include "formats/fnfile.h"

#include "core/base/digits.h"
#include "core/ir/control.h"
#include "core/ir/gtext.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- printing -------------------------------------------------------------------------------- */

/* One line, whatever is in the text. */
static void line(dc_text *out, const char *word, const char *text)
{
    dc_text_printf(out, "%s: ", word);
    for (; *text != '\0'; text++)
        dc_text_printf(out, "%c", (unsigned char)*text < ' ' ? ' ' : *text);
    dc_text_puts(out, "\n");
}

static void lines(dc_text *out, const char *word, const char *const *text, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        line(out, word, text[i]);
}

static const struct role {
    dc_err_id id;
    const char *name;
} roles[] = {{DC_ERR_SINGULAR, "singular"},
             {DC_ERR_NOT_DEFINITE, "not definite"},
             {DC_ERR_NO_FACTORS, "no factors"},
             {DC_ERR_LENGTH, "lengths"},
             {DC_ERR_ROOM, "count"}};

const char *dc_fnfile_role(dc_err_id id)
{
    for (size_t i = 0; i < DC_COUNTOF(roles); i++)
        if (roles[i].id == id && id != DC_ERR_LENGTH && id != DC_ERR_ROOM)
            return roles[i].name;
    return NULL;
}

dc_err_id dc_fnfile_failure(const dc_fnfile_check *c)
{
    if (c->position)
        return DC_ERR_POSITION;
    for (size_t i = 0; i < DC_COUNTOF(roles); i++)
        if (strcmp(roles[i].name, c->role) == 0)
            return roles[i].id;
    return DC_ERR_CLASS;
}

static void print_check(const dc_fnfile_check *c, dc_text *out)
{
    char type[DC_TYPE_TEXT], text[DC_TYPE_TEXT + 200];
    dc_type plain = c->type;
    memset(plain.name, 0, sizeof plain.name);
    dc_type_print(&plain, type, sizeof type);
    snprintf(text, sizeof text, "%s %d %" PRId64 " %s\t%.60s\t%.60s",
             c->position ? "position" : "class", c->axis, c->classes, type, c->op, c->role);
    dc_text_printf(out, "check: %s\n", text);
}

void dc_fnfile_print(const dc_fnfile_variant *v, dc_text *out)
{
    dc_text_printf(
        out, "counts: arguments %u captured %u cells %u results %u printed %u sets %u checks %u\n",
        v->narg, v->ncaptured, v->ncell, v->nresult, v->nprinted, v->nset, v->ncheck);
    lines(out, "argument", v->arg, v->narg);
    lines(out, "captured", v->captured, v->ncaptured);
    lines(out, "cell", v->cell, v->ncell);
    for (uint32_t i = 0; i < v->nset; i++)
        dc_text_printf(out, "set: %u\n", v->set[i]);
    for (uint32_t i = 0; i < v->ncheck; i++)
        print_check(&v->check[i], out);
    dc_text_puts(out, "module:\n");
    dc_func_print(v->fn, out);
}

/* ---- reading --------------------------------------------------------------------------------- */

enum { MOST = 999999 }; /* of each count */

typedef DC_VEC(const char *) names;

typedef struct reading {
    dc_job *j;
    dc_arena *a;
    dc_fnfile_variant *v;
    int64_t line;
    bool counted;
    names arg, captured, cell; /* read so far, as the two below */
    DC_VEC(uint32_t) set;
    DC_VEC(dc_fnfile_check) check;
} reading;

static dc_status refuse_line(reading *r, const char *what)
{
    return dc_fail(r->j, DC_ERR_PARSE, &(dc_fact){.num = {r->line}, .word = {what}});
}

/* "arguments 1 captured 1 ..." to the end of the text. */
static dc_status read_counts(reading *r, const char *text)
{
    dc_fnfile_variant *v = r->v;
    const struct {
        const char *word;
        uint32_t *to;
    } row[] = {{"arguments", &v->narg},  {"captured", &v->ncaptured}, {"cells", &v->ncell},
               {"results", &v->nresult}, {"printed", &v->nprinted},   {"sets", &v->nset},
               {"checks", &v->ncheck}};
    if (r->counted)
        return refuse_line(r, "counts are there twice");
    for (size_t i = 0; i < DC_COUNTOF(row); i++) {
        if ((i > 0 && *text++ != ' ') || !dc_digits_after(&text, row[i].word, MOST, row[i].to))
            return refuse_line(r, "counts expected, each a word and a number up to 999999");
    }
    if (*text != '\0')
        return refuse_line(r, "counts expected and nothing behind them");
    r->counted = true;
    return DC_OK;
}

static dc_status read_name(reading *r, const char *text, names *list, uint32_t most)
{
    if (list->n >= most)
        return refuse_line(r, "more names than the counts say");
    DC_PUSH_IN(r->a, *list, text);
    return DC_OK;
}

static dc_status read_set(reading *r, const char *text)
{
    uint64_t cell;
    if (r->set.n >= r->v->nset)
        return refuse_line(r, "more cells are set than the counts say");
    if (!dc_digits_whole(text, MOST, &cell))
        return refuse_line(r, "the number of a cell expected");
    DC_PUSH_IN(r->a, r->set, (uint32_t)cell);
    return DC_OK;
}

/* "class 0 10 i32[64]": which test, axis, how many are allowed, type. */
static dc_status read_test(reading *r, const char *text, dc_fnfile_check *c)
{
    uint32_t axis;
    uint64_t classes;
    c->position = strncmp(text, "position ", 9) == 0;
    if (!dc_digits_after(&text, c->position ? "position" : "class", DC_MAX_RANK - 1, &axis) ||
        *text++ != ' ' || dc_digits_unsigned(&text, NULL, INT64_MAX, &classes) != DC_DIGITS_OK ||
        *text++ != ' ')
        return refuse_line(r, "a check expected: class or position, an axis, a number, a type");
    c->axis = (int)axis;
    c->classes = (int64_t)classes;
    DC_TRY(dc_type_parse(r->j, NULL, &text, &c->type));
    return *text == '\0' ? DC_OK : refuse_line(r, "a check with more than its type");
}

/* The test, a tab, the operation, a tab, the role. */
static dc_status read_check(reading *r, char *text)
{
    dc_fnfile_check c = {.position = false};
    char *op = strchr(text, '\t'), *role = op != NULL ? strchr(op + 1, '\t') : NULL;
    if (r->check.n >= r->v->ncheck)
        return refuse_line(r, "more checks than the counts say");
    if (role == NULL)
        return refuse_line(r,
                           "a check expected: a test, an operation and a role, with tabs between");
    *op = *role = '\0';
    c.op = op + 1;
    c.role = role + 1;
    DC_TRY(read_test(r, text, &c));
    DC_PUSH_IN(r->a, r->check, c);
    return DC_OK;
}

static dc_status read_line(reading *r, char *word)
{
    dc_fnfile_variant *v = r->v;
    char *text = strstr(word, ": ");
    if (text == NULL)
        return refuse_line(r, "'word: text' expected");
    *text = '\0';
    text += 2;
    if (strcmp(word, "counts") == 0)
        return read_counts(r, text);
    if (strcmp(word, "argument") == 0)
        return read_name(r, text, &r->arg, v->narg);
    if (strcmp(word, "captured") == 0)
        return read_name(r, text, &r->captured, v->ncaptured);
    if (strcmp(word, "cell") == 0)
        return read_name(r, text, &r->cell, v->ncell);
    if (strcmp(word, "set") == 0)
        return read_set(r, text);
    if (strcmp(word, "check") == 0)
        return read_check(r, text);
    return refuse_line(r, "an unknown word");
}

/* Loops that the compiler alone makes: gradients and dc.vmap know none. */
static bool has_row_loops(const dc_func *f)
{
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        if (n->op == DC_OP_LOOP && (dc_loop_of(n).flags & DC_LOOP_ROWS) != 0)
            return true;
    }
    return false;
}

static bool is_for_files(const dc_module *m)
{
    for (uint32_t i = 0; i < m->body.n; i++)
        if (has_row_loops(m->body.at[i].fn))
            return false;
    return !has_row_loops(m->func.at[0]);
}

static dc_status read_module(reading *r, const char *text, dc_module **module)
{
    dc_fnfile_variant *v = r->v;
    if (!r->counted)
        return refuse_line(r, "counts expected before 'module:'");
    if (r->arg.n != v->narg || r->captured.n != v->ncaptured || r->cell.n != v->ncell ||
        r->set.n != v->nset || r->check.n != v->ncheck)
        return refuse_line(r, "fewer names than the counts say");
    v->arg = r->arg.at;
    v->captured = r->captured.at;
    v->cell = r->cell.at;
    v->set = r->set.at;
    v->check = r->check.at;
    DC_TRY(dc_module_parse(r->j, text, module));
    const bool one = (*module)->func.n == 1;
    if (!one || !is_for_files(*module)) {
        dc_module_free(*module);
        return refuse_line(r, one ? "a loop with a flag of the compiler" : "one function expected");
    }
    v->fn = (*module)->func.at[0];
    return DC_OK;
}

dc_status dc_fnfile_parse(dc_job *j, dc_arena *a, const char *text, dc_fnfile_variant *out,
                          dc_module **module)
{
    reading r = {.j = j, .a = a, .v = out};
    char *at = dc_arena_strdup(a, text), *end;
    *out = (dc_fnfile_variant){0};
    for (; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        *end = '\0';
        r.line++;
        if (strcmp(at, "module:") == 0)
            return read_module(&r, end + 1, module);
        DC_TRY(read_line(&r, at));
    }
    return refuse_line(&r, "'module:' expected");
}
