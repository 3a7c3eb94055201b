/*
 * Signatures as text, which core/signature/signature.c reads to the same signature; with a binding, known sizes
 * are put in. Also a dim, a type, and a binding alone.
 */
#include "core/base/extent.h"
#include "core/signature/signature.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct printer {
    const dc_sig *s;
    const dc_sig_bind *b; /* or NULL */
    char *out;
    size_t room, n;
} printer;

static void put(printer *p, const char *text)
{
    for (; *text != '\0'; text++, p->n++)
        if (p->n + 1 < p->room)
            p->out[p->n] = *text;
}

static void put_number(printer *p, int64_t v)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%s%" PRId64, dc_extent_is(v) ? "<= " : "", dc_extent_bound(v));
    put(p, digits);
}

static int finish(printer *p)
{
    if (p->room > 0)
        p->out[p->n < p->room ? p->n : p->room - 1] = '\0';
    return (int)p->n;
}

static void put_expr(printer *p, const dc_expr *e)
{
    const size_t room = p->n < p->room ? p->room - p->n : 0;
    p->n += (size_t)dc_expr_print(e, p->s->var, room > 0 ? p->out + p->n : NULL, room);
}

/* Its size, if the binding knows one; else -1. */
static int64_t size_of(const dc_sig_bind *b, const dc_dim *d)
{
    int64_t size;
    if (d->kind == DC_DIM_SIZE)
        return d->size;
    if (b == NULL)
        return -1;
    if (d->var >= 0 && b->size[d->var] >= 0)
        return b->size[d->var];
    if (d->kind == DC_DIM_EXPR &&
        dc_expr_eval_in(b->extents, d->expr, b->size, &size) == DC_EXPR_OK)
        return size;
    return -1;
}

static void put_rest(printer *p)
{
    if (p->b == NULL || p->b->rest < 0)
        put(p, "...");
    else
        for (int k = 0; k < p->b->rest; k++) {
            put(p, k ? ", " : "");
            put_number(p, p->b->rest_size[k]);
        }
}

static void put_dim(printer *p, const dc_dim *d)
{
    const int64_t size = size_of(p->b, d);
    if (d->kind == DC_DIM_REST) {
        put_rest(p);
        return;
    }
    const int64_t most = d->kind == DC_DIM_VAR ? p->s->most[d->var] : -1;
    if (most >= 0 && (size < 0 || dc_extent_is(size))) {
        if (p->s->least[d->var] != 1) {
            put_number(p, p->s->least[d->var]);
            put(p, " <= ");
        }
        put(p, d->name);
        put(p, " <= ");
        put_number(p, most);
        return;
    }
    if (dc_extent_is(size)) {
        put(p, d->name != NULL ? d->name : "");
        put(p, d->name != NULL ? " <= " : "<= ");
        put_number(p, dc_extent_bound(size));
        return;
    }
    if (d->name != NULL)
        put(p, d->name);
    if (d->name != NULL && (size >= 0 || d->kind == DC_DIM_EXPR))
        put(p, "=");
    if (size >= 0)
        put_number(p, size);
    else if (d->kind == DC_DIM_EXPR)
        put_expr(p, d->expr);
}

static void put_split(printer *p, const dc_dim *d)
{
    for (int i = 0; i < d->nsplit; i++) {
        put(p, i == 0 ? " @ " : "+");
        put(p, d->split[i]);
    }
}

static void put_type(printer *p, const dc_sig_type *t)
{
    bool first = true;
    if (t->kind != DC_SHAPE_TENSOR) {
        put(p, "{");
        for (int i = 0; i < t->nfield; i++) {
            put(p, i ? ", " : "");
            put(p, t->field[i].name);
            put(p, ": ");
            put_type(p, t->field[i].type);
        }
        if (t->kind == DC_SHAPE_LIST)
            put_type(p, t->of);
        put(p, "}");
        return;
    }
    put(p, dc_dtype_name(t->dtype));
    put(p, "[");
    for (int k = 0; k < t->ndim; k++) {
        if (k == t->rest && p->b != NULL && p->b->rest == 0)
            continue;
        put(p, first ? "" : ", ");
        put_dim(p, &t->dim[k]);
        put_split(p, &t->dim[k]);
        first = false;
    }
    put(p, "]");
}

int dc_sig_dim_print(const dc_sig *s, const dc_sig_bind *b, const dc_dim *d, char *out, size_t room)
{
    printer p = {s, b, out, room, 0};
    put_dim(&p, d);
    return finish(&p);
}

int dc_sig_type_print(const dc_sig *s, const dc_sig_bind *b, const dc_sig_type *t, char *out,
                      size_t room)
{
    printer p = {s, b, out, room, 0};
    put_type(&p, t);
    return finish(&p);
}

int dc_sig_print(const dc_sig *s, const dc_sig_bind *b, char *out, size_t room)
{
    printer p = {s, b, out, room, 0};
    put(&p, s->name != NULL ? s->name : "");
    put(&p, "(");
    for (int i = 0; i < s->nparam; i++) {
        const dc_sig_param *q = &s->param[i];
        put(&p, i ? ", " : "");
        put(&p, q->name);
        put(&p, q->optional ? "?" : "");
        if (q->type != NULL) {
            put(&p, ": ");
            put_type(&p, q->type);
        }
    }
    put(&p, s->any_result ? ")" : s->nresult > 0 ? ") -> " : ") -> ()");
    for (int i = 0; i < s->nresult; i++) {
        put(&p, i ? ", " : "");
        put_type(&p, s->result[i]);
    }
    return finish(&p);
}

/* One of the list that dc_sig_bind_print makes. */
static void put_known(printer *p, const char *name, const char *is)
{
    put(p, p->n > 0 ? ", " : "");
    put(p, name);
    put(p, is);
}

int dc_sig_bind_print(const dc_sig *s, const dc_sig_bind *b, char *out, size_t room)
{
    printer p = {s, b, out, room, 0};
    for (int v = 0; v <= s->nvar; v++) {
        if (s->has_rest && v == s->rest_at && b->rest >= 0) {
            put_known(&p, "...", "=");
            put(&p, "[");
            put_rest(&p);
            put(&p, "]");
        }
        if (v < s->nvar && b->size[v] >= 0) {
            put_known(&p, s->var[v], dc_extent_is(b->size[v]) ? " " : "=");
            put_number(&p, b->size[v]);
        }
    }
    return finish(&p);
}
