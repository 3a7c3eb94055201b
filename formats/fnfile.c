#include "formats/fnfile.h"

#include "core/gtext.h"

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

typedef struct reading {
    dc_job *j;
    dc_arena *a;
    dc_fnfile_variant *v;
    int64_t line;
    bool counted;
    uint32_t narg, ncaptured, ncell, nset, ncheck; /* read so far */
} reading;

static dc_status refuse(reading *r, const char *what)
{
    return dc_fail(r->j, DC_ERR_PARSE, &(dc_fact){.num = {r->line}, .word = {what}});
}

/* Six digits each: no file can ask for much. */
static dc_status read_counts(reading *r, const char *text)
{
    dc_fnfile_variant *v = r->v;
    int end = 0;
    if (r->counted ||
        sscanf(text,
               "arguments %6u captured %6u cells %6u results %6u printed %6u sets %6u checks %6u%n",
               &v->narg, &v->ncaptured, &v->ncell, &v->nresult, &v->nprinted, &v->nset, &v->ncheck,
               &end) != 7 ||
        text[end] != '\0')
        return refuse(r, "counts expected");
    r->counted = true;
    v->arg = DC_NEW_ARRAY(r->a, const char *, v->narg);
    v->captured = DC_NEW_ARRAY(r->a, const char *, v->ncaptured);
    v->cell = DC_NEW_ARRAY(r->a, const char *, v->ncell);
    v->set = DC_NEW_ARRAY(r->a, uint32_t, v->nset);
    v->check = DC_NEW_ARRAY(r->a, dc_fnfile_check, v->ncheck);
    return DC_OK;
}

static dc_status read_name(reading *r, const char *text, const char **list, uint32_t *n,
                           uint32_t most)
{
    if (*n >= most)
        return refuse(r, "more names than the counts say");
    list[(*n)++] = text;
    return DC_OK;
}

static dc_status read_set(reading *r, const char *text)
{
    int end = 0;
    if (r->nset >= r->v->nset)
        return refuse(r, "more cells are set than the counts say");
    if (sscanf(text, "%9u%n", &r->v->set[r->nset++], &end) != 1 || text[end] != '\0')
        return refuse(r, "the number of a cell expected");
    return DC_OK;
}

/* "class 0 10 i32[64]", a tab, the operation, a tab, the role. */
static dc_status read_check(reading *r, char *text)
{
    char kind[10];
    int at = 0;
    char *op = strchr(text, '\t'), *role = op != NULL ? strchr(op + 1, '\t') : NULL;
    if (r->ncheck >= r->v->ncheck)
        return refuse(r, "more checks than the counts say");
    dc_fnfile_check *c = &r->v->check[r->ncheck++];
    if (role == NULL ||
        sscanf(text, "%9s %4d %18" SCNd64 " %n", kind, &c->axis, &c->classes, &at) != 3)
        return refuse(r, "a check expected");
    *op = *role = '\0';
    c->op = op + 1;
    c->role = role + 1;
    c->position = strcmp(kind, "position") == 0;
    const char *type = text + at;
    DC_TRY(dc_type_parse(r->j, NULL, &type, &c->type));
    if (*type != '\0' || c->axis < 0 || c->axis >= DC_MAX_RANK ||
        (!c->position && strcmp(kind, "class") != 0))
        return refuse(r, "a check expected");
    return DC_OK;
}

static dc_status read_line(reading *r, char *word)
{
    dc_fnfile_variant *v = r->v;
    char *text = strstr(word, ": ");
    if (text == NULL)
        return refuse(r, "'word: text' expected");
    *text = '\0';
    text += 2;
    if (strcmp(word, "counts") == 0)
        return read_counts(r, text);
    if (strcmp(word, "argument") == 0)
        return read_name(r, text, v->arg, &r->narg, v->narg);
    if (strcmp(word, "captured") == 0)
        return read_name(r, text, v->captured, &r->ncaptured, v->ncaptured);
    if (strcmp(word, "cell") == 0)
        return read_name(r, text, v->cell, &r->ncell, v->ncell);
    if (strcmp(word, "set") == 0)
        return read_set(r, text);
    if (strcmp(word, "check") == 0)
        return read_check(r, text);
    return refuse(r, "an unknown word");
}

static dc_status read_module(reading *r, const char *text, dc_module **module)
{
    dc_fnfile_variant *v = r->v;
    if (r->narg != v->narg || r->ncaptured != v->ncaptured || r->ncell != v->ncell ||
        r->nset != v->nset || r->ncheck != v->ncheck || !r->counted)
        return refuse(r, "fewer names than the counts say");
    DC_TRY(dc_module_parse(r->j, text, module));
    if ((*module)->func.n != 1) {
        dc_module_free(*module);
        return refuse(r, "one function expected");
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
    return refuse(&r, "'module:' expected");
}
