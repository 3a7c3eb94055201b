/*
 * Signatures read from text, in one pass with a character of lookahead. core/signature/sigprint.c prints them,
 * core/signature/sigbind.c solves them.
 *
 * A failure quotes the signature around the place and names what stands there. Records and lists go
 * DC_SIG_NEST deep, so that no text makes the reader go deeper.
 */
#include "core/signature/signature.h"

#include "core/base/digits.h"
#include "core/base/job.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- words of a failure ---- */

typedef struct reader {
    dc_job *j;
    dc_names *intern;
    const char *text, *at;
    dc_sig *sig;
    int ntensor, nest;
    const dc_sig_def **def_end;
} reader;

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* At most n bytes of s, blanks as one each, no character cut in two; how much of s that is. */
static size_t quote(const char *s, size_t n, char *out)
{
    size_t used = 0, i = 0;
    for (; s[i] != '\0' && used < n; i++)
        if (!is_blank(s[i]))
            out[used++] = s[i];
        else if (used > 0 && out[used - 1] != ' ')
            out[used++] = ' ';
    if (s[i] != '\0')
        while (used > 0 && ((unsigned char)s[i] & 0xC0) == 0x80)
            i--, used--;
    while (used > 0 && out[used - 1] == ' ')
        used--;
    out[used] = '\0';
    return i;
}

/* The signature around the place. */
static void quote_signature(const reader *r, char *out)
{
    enum { MOST = 160, BEFORE = 80 };
    const char *from = r->text;
    if (r->at - from > MOST - 40) {
        from = r->at - BEFORE;
        while (((unsigned char)*from & 0xC0) == 0x80)
            from++;
        memcpy(out, ".. ", 4);
        out += 3;
    }
    const size_t n = quote(from, MOST, out);
    if (*dc_expr_skip_blanks(from + n) != '\0')
        memcpy(out + strlen(out), " ..", 4);
}

static dc_status refuse(reader *r, const char *fmt, ...) DC_PRINTF(2, 3);

static dc_status refuse(reader *r, const char *fmt, ...)
{
    char quoted[200], reason[200];
    quote_signature(r, quoted);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(reason, sizeof reason, fmt, ap);
    va_end(ap);
    return dc_fail(r->j, DC_ERR_SIGNATURE, &(dc_fact){.word = {quoted, reason}});
}

static dc_status expected(reader *r, const char *what)
{
    char there[20];
    r->at = dc_expr_skip_blanks(r->at);
    quote(r->at, 16, there);
    if (there[0] == '\0')
        return refuse(r, "%s expected at its end", what);
    return refuse(r, "%s expected before '%s'", what, there);
}

/* ---- tokens ---- */

static bool take(reader *r, const char *token)
{
    const size_t n = strlen(token);
    r->at = dc_expr_skip_blanks(r->at);
    if (strncmp(r->at, token, n) != 0)
        return false;
    r->at += n;
    return true;
}

static dc_status expect(reader *r, const char *token)
{
    char what[8];
    if (take(r, token))
        return DC_OK;
    snprintf(what, sizeof what, "'%s'", token);
    return expected(r, what);
}

/* A name, interned; NULL if none stands here. */
static const char *take_name(reader *r)
{
    r->at = dc_expr_skip_blanks(r->at);
    const char *start = r->at;
    const size_t n = dc_expr_name_length(start);
    r->at += n;
    return n > 0 ? dc_name_intern(r->intern, start, n) : NULL;
}

/* ---- dims ---- */

static int find_var(void *ctx, const char *text, size_t n)
{
    const reader *r = ctx;
    dc_sig *s = r->sig;
    const char *name = dc_name_intern(r->intern, text, n);
    for (int v = 0; v < s->nvar; v++)
        if (s->var[v] == name)
            return v;
    if (s->nvar == DC_SIG_VARS)
        return -1;
    s->var[s->nvar] = name;
    s->size[s->nvar] = s->most[s->nvar] = -1;
    return s->nvar++;
}

static dc_status refuse_expr(reader *r, dc_expr_fault fault)
{
    char there[20];
    quote(r->at, 16, there);
    switch (fault) {
    case DC_EXPR_CLOSE:
        return expected(r, "')'");
    case DC_EXPR_NAME:
        return refuse(r, "more than %d names of dims", DC_SIG_VARS);
    case DC_EXPR_WORD:
        return refuse(r, "'%s' is neither a size nor a name; a product is 2*n", there);
    case DC_EXPR_SLASH:
        return refuse(r, "sizes are divided by '//', not '/'");
    case DC_EXPR_ZEROS:
        return refuse(r, "a size has a leading zero");
    case DC_EXPR_LARGE:
        return refuse(r, "a size is too large");
    case DC_EXPR_ZERO:
        return refuse(r, "a size divides by zero");
    case DC_EXPR_LONG:
        return refuse(r, "an expression has more than %d parts", DC_EXPR_NODES);
    case DC_EXPR_DEEP:
        return refuse(r, "more than %d parentheses in each other", DC_EXPR_NEST);
    case DC_EXPR_OPERAND:
    case DC_EXPR_OK:
    case DC_EXPR_UNKNOWN:
    case DC_EXPR_NOT_LINEAR:
        break;
    }
    if (*r->at == '-')
        return refuse(r, "a size is 0 or more, not '%s'", there);
    return expected(r, "a size");
}

static const dc_expr *keep_expr(reader *r, const dc_expr_reader *in)
{
    dc_expr_node *node = DC_NEW_ARRAY(&r->sig->arena, dc_expr_node, in->n);
    dc_expr *e = DC_NEW(&r->sig->arena, dc_expr);
    memcpy(node, in->node, sizeof *node * (size_t)in->n);
    *e = (dc_expr){in->n, node};
    return e;
}

/* What stands for a size: becomes SIZE, VAR or EXPR. */
static dc_status read_size(reader *r, dc_dim *d)
{
    dc_expr_reader in = {.at = dc_expr_skip_blanks(r->at), .var = find_var, .ctx = r};
    const char *start = in.at;
    dc_expr_fault fault = dc_expr_read(&in);
    r->at = in.at;
    if (fault != DC_EXPR_OK)
        return refuse_expr(r, fault);
    const dc_expr e = {in.n, in.node};
    if (dc_expr_vars(&e) == 0) {
        d->kind = DC_DIM_SIZE;
        fault = dc_expr_eval(&e, NULL, &d->size);
        if (fault != DC_EXPR_OK) {
            r->at = start;
            return refuse_expr(r, fault);
        }
        if (d->size < 0)
            return refuse(r, "a size is 0 or more, not %" PRId64, d->size);
    } else if (e.n == 1 && d->name == NULL) {
        d->kind = DC_DIM_VAR;
        d->var = (int)in.node[0].v;
        d->name = r->sig->var[d->var];
    } else {
        d->kind = DC_DIM_EXPR;
        d->expr = keep_expr(r, &in);
    }
    return DC_OK;
}

/* The statement name = expr. */
static dc_status define(reader *r, const dc_dim *d)
{
    dc_sig *s = r->sig;
    if (s->most[d->var] >= 0)
        return refuse(r, "'%.40s' has another size or bound, too", d->name);
    if (d->kind == DC_DIM_SIZE) {
        if (s->size[d->var] >= 0 && s->size[d->var] != d->size)
            return refuse(r, "'%.40s' is %" PRId64 " and %" PRId64, d->name, s->size[d->var],
                          d->size);
        s->size[d->var] = d->size;
        return DC_OK;
    }
    if ((dc_expr_vars(d->expr) >> d->var & 1) != 0)
        return refuse(r, "'%.40s' is told by itself", d->name);
    dc_sig_def *def = DC_NEW(&s->arena, dc_sig_def);
    *def = (dc_sig_def){d->var, d->expr, NULL};
    *r->def_end = def;
    r->def_end = &def->next;
    return DC_OK;
}

static dc_status read_rest(reader *r, dc_sig_type *t)
{
    if (t->rest >= 0)
        return refuse(r, "'...' stands twice in a type");
    if (!r->sig->has_rest)
        r->sig->rest_at = r->sig->nvar;
    r->sig->has_rest = true;
    t->rest = t->ndim;
    t->dim[t->ndim++] = (dc_dim){.kind = DC_DIM_REST, .var = -1};
    return DC_OK;
}

/* A number behind "<=". */
static dc_status read_limit(reader *r, int64_t *out)
{
    dc_expr_reader in = {.at = dc_expr_skip_blanks(r->at)};
    dc_expr_fault fault = dc_expr_read(&in);
    r->at = in.at;
    if (fault == DC_EXPR_NAME)
        return refuse(r, "a bound is a number, not '%.*s'", (int)dc_expr_name_length(r->at), r->at);
    if (fault == DC_EXPR_OK)
        fault = dc_expr_eval(&(dc_expr){in.n, in.node}, NULL, out);
    return fault == DC_EXPR_OK ? DC_OK : refuse_expr(r, fault);
}

/* [0 <=] t <= 512, from the name on; what stands before it has been read. */
static dc_status read_bounded(reader *r, int64_t least, dc_dim *d)
{
    const char *name = take_name(r);
    int64_t most;
    if (name == NULL)
        return expected(r, "a name");
    d->kind = DC_DIM_VAR;
    d->var = find_var(r, name, strlen(name));
    if (d->var < 0)
        return refuse_expr(r, DC_EXPR_NAME);
    d->name = name;
    DC_TRY(expect(r, "<="));
    DC_TRY(read_limit(r, &most));
    const dc_sig *s = r->sig;
    const int v = d->var;
    if (most > DC_SIG_MOST)
        return refuse(r, "the bound of '%.40s' is too large; %" PRId64 " is the largest", name,
                      (int64_t)DC_SIG_MOST);
    if (least < 0 || most < least || most < 1)
        return refuse(r, "'%.40s' has no size from %" PRId64 " to %" PRId64, name, least, most);
    if (s->size[v] >= 0 || (s->most[v] >= 0 && (s->most[v] != most || s->least[v] != least)))
        return refuse(r, "'%.40s' has another size or bound, too", name);
    r->sig->least[v] = least;
    r->sig->most[v] = most;
    return DC_OK;
}

/* Is it a bounded name that stands here? *least: what its sizes begin with. Moves behind that. */
static bool take_bounded(reader *r, int64_t *least)
{
    const char *at = dc_expr_skip_blanks(r->at);
    *least = 1;
    const bool number = dc_digits_signed(&at, NULL, 0, INT32_MAX, least) == DC_DIGITS_OK;
    at = dc_expr_skip_blanks(at);
    if (number && strncmp(at, "<=", 2) == 0) {
        r->at = dc_expr_skip_blanks(at + 2);
        return true;
    }
    *least = 1;
    const size_t n = number ? 0 : dc_expr_name_length(at);
    return n > 0 && strncmp(dc_expr_skip_blanks(at + n), "<=", 2) == 0;
}

static dc_status add_dim(reader *r, dc_sig_type *t, const dc_dim *d)
{
    if (t->ndim - (t->rest >= 0) == DC_MAX_RANK)
        return refuse(r, "a type has more than %d axes", DC_MAX_RANK);
    t->dim[t->ndim++] = *d;
    return DC_OK;
}

/* "@ data", "@ data+model" behind the last dim. */
static dc_status read_split(reader *r, dc_sig_type *t)
{
    dc_dim *d = &t->dim[t->ndim - 1];
    if (!take(r, "@"))
        return DC_OK;
    if (d->kind == DC_DIM_REST)
        return refuse(r, "'...' is not split; an axis that has a name or a size is");
    if (d->kind == DC_DIM_VAR && r->sig->most[d->var] >= 0)
        return refuse(r, "'%.40s' has a size known at run time, and is not split", d->name);
    do {
        const char *name = take_name(r);
        if (name == NULL)
            return expected(r, "an axis of the mesh");
        if (d->nsplit == DC_SIG_SPLITS)
            return refuse(r, "an axis is split by %d axes of the mesh at most", DC_SIG_SPLITS);
        d->split[d->nsplit++] = name;
    } while (take(r, "+"));
    return DC_OK;
}

static dc_status read_unsplit(reader *r, dc_sig_type *t)
{
    dc_dim d = {.var = -1};
    int64_t least;
    if (take(r, "..."))
        return read_rest(r, t);
    if (take_bounded(r, &least)) {
        DC_TRY(read_bounded(r, least, &d));
        return add_dim(r, t, &d);
    }
    const size_t n = dc_expr_name_length(r->at);
    const char *after = dc_expr_skip_blanks(r->at + n);
    if (n > 0 && *after == '=') {
        d.var = find_var(r, r->at, n);
        if (d.var < 0)
            return refuse_expr(r, DC_EXPR_NAME);
        d.name = r->sig->var[d.var];
        r->at = after + 1;
    }
    const bool told = d.name != NULL;
    DC_TRY(read_size(r, &d));
    DC_TRY(add_dim(r, t, &d));
    return told ? define(r, &d) : DC_OK;
}

static dc_status read_dim(reader *r, dc_sig_type *t)
{
    DC_TRY(read_unsplit(r, t));
    return read_split(r, t);
}

/* ---- types ---- */

static dc_status read_type(reader *r, const dc_sig_type **out);

static dc_status read_tensor(reader *r, dc_sig_type *t)
{
    const char *start = r->at, *name = take_name(r);
    if (name == NULL)
        return expected(r, "a type");
    if (!dc_dtype_find(name, strlen(name), &t->dtype)) {
        r->at = start; /* the type parser knows the dtypes and says so */
        dc_type none;
        DC_TRY(dc_type_parse(r->j, r->intern, &r->at, &none));
        DC_BUG("a type of an unknown dtype");
    }
    if (++r->ntensor > DC_SIG_LEAVES)
        return refuse(r, "more than %d tensors", DC_SIG_LEAVES);
    if (!take(r, "["))
        return refuse(r, "%s without dims; a scalar is %s[]", name, name);
    if (take(r, "]"))
        return DC_OK;
    do
        DC_TRY(read_dim(r, t));
    while (take(r, ","));
    return take(r, "]") ? DC_OK : expected(r, "',' or ']'");
}

static dc_status read_record(reader *r, dc_sig_type *t)
{
    DC_VEC(dc_sig_field) field = {0}; /* of the arena: nothing to free */
    do {
        const char *name = take_name(r);
        if (name == NULL)
            return expected(r, "a field's name");
        for (uint32_t i = 0; i < field.n; i++)
            if (field.at[i].name == name)
                return refuse(r, "field '%.40s' is given twice", name);
        DC_TRY(expect(r, ":"));
        if (field.n == field.cap) {
            field.cap = field.cap ? 2 * field.cap : 8;
            dc_sig_field *at = DC_NEW_ARRAY(&r->sig->arena, dc_sig_field, field.cap);
            if (field.n > 0)
                memcpy(at, field.at, sizeof *at * field.n);
            field.at = at;
        }
        DC_TRY(read_type(r, &field.at[field.n].type));
        field.at[field.n++].name = name;
    } while (take(r, ","));
    t->kind = DC_SHAPE_RECORD;
    t->field = field.at;
    t->nfield = (int)field.n;
    return take(r, "}") ? DC_OK : expected(r, "',' or '}'");
}

/* Behind the "{". */
static dc_status read_table(reader *r, dc_sig_type *t)
{
    r->at = dc_expr_skip_blanks(r->at);
    if (*r->at == '}')
        return refuse(r, "'{}' holds nothing; a record is {w: f32[n]}, a list {f32[n]}");
    if (r->nest == DC_SIG_NEST)
        return refuse(r, "more than %d records and lists in each other", DC_SIG_NEST);
    r->nest++;
    const size_t n = dc_expr_name_length(r->at);
    if (n > 0 && *dc_expr_skip_blanks(r->at + n) == ':') {
        DC_TRY(read_record(r, t));
    } else {
        t->kind = DC_SHAPE_LIST;
        DC_TRY(read_type(r, &t->of));
        DC_TRY(expect(r, "}"));
    }
    r->nest--;
    return DC_OK;
}

static dc_status read_type(reader *r, const dc_sig_type **out)
{
    dc_sig_type *t = DC_NEW(&r->sig->arena, dc_sig_type);
    t->rest = -1;
    *out = t;
    return take(r, "{") ? read_table(r, t) : read_tensor(r, t);
}

/* ---- the whole ---- */

static dc_status read_param(reader *r)
{
    dc_sig *s = r->sig;
    const char *name = take_name(r);
    if (name == NULL)
        return expected(r, "a parameter's name");
    for (int i = 0; i < s->nparam; i++)
        if (s->param[i].name == name)
            return refuse(r, "parameter '%.40s' is given twice", name);
    if (s->nparam == DC_SIG_PARAMS)
        return refuse(r, "more than %d parameters", DC_SIG_PARAMS);
    dc_sig_param *p = &s->param[s->nparam++];
    p->name = name;
    p->optional = take(r, "?");
    return take(r, ":") ? read_type(r, &p->type) : DC_OK;
}

static dc_status read_results(reader *r)
{
    dc_sig *s = r->sig;
    if (take(r, "("))
        return take(r, ")") ? DC_OK : refuse(r, "results stand without parentheses; '()' is none");
    do {
        if (s->nresult == DC_SIG_RESULTS)
            return refuse(r, "more than %d results", DC_SIG_RESULTS);
        DC_TRY(read_type(r, &s->result[s->nresult++]));
    } while (take(r, ","));
    return DC_OK;
}

static dc_status read_sig(reader *r)
{
    dc_sig *s = r->sig;
    s->name = take_name(r);
    DC_TRY(expect(r, "("));
    if (!take(r, ")")) {
        do
            DC_TRY(read_param(r));
        while (take(r, ","));
        if (!take(r, ")"))
            return expected(r, "',' or ')'");
    }
    s->any_result = !take(r, "->");
    if (!s->any_result)
        DC_TRY(read_results(r));
    r->at = dc_expr_skip_blanks(r->at);
    return *r->at == '\0' ? DC_OK : expected(r, s->any_result ? "'->' or its end" : "its end");
}

static void release_sig(void *what)
{
    dc_sig_fini(what);
}

dc_status dc_sig_parse(dc_job *j, dc_names *intern, const char *text, dc_sig *out)
{
    *out = (dc_sig){0};
    reader r = {.j = j, .intern = intern, .text = text, .at = text, .sig = out};
    r.def_end = &out->def;
    dc_job_defer(j, release_sig, out);
    const dc_status status = read_sig(&r);
    dc_job_keep(j, out);
    if (status != DC_OK)
        dc_sig_fini(out);
    return status;
}

void dc_sig_fini(dc_sig *s)
{
    dc_arena_free(&s->arena);
    *s = (dc_sig){0};
}

int dc_sig_var(const dc_sig *s, const char *name)
{
    for (int v = 0; v < s->nvar; v++)
        if (strcmp(s->var[v], name) == 0)
            return v;
    return -1;
}
