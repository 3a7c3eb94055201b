/*
 * What a binding makes of declared types: their sizes put in, under the signature's names or the caller's.
 * And whether a signature is a definition, so that calls can find the size of every name: bare names first,
 * then expressions with one name not known, as core/signature/sigbind.c solves them.
 */
#include "core/base/job.h"
#include "core/signature/signature.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- a type with sizes ---- */

typedef enum outcome { FITS, OPEN, NEGATIVE, ZERO, TOO_LARGE, TOO_MANY, TOO_MANY_PARTS } outcome;

static outcome size_of(const dc_sig_bind *b, const dc_dim *d, int64_t *out)
{
    dc_expr_fault fault = DC_EXPR_OK;
    if (d->kind == DC_DIM_SIZE)
        *out = d->size;
    else if (d->kind == DC_DIM_EXPR)
        fault = dc_expr_eval_in(b->extents, d->expr, b->size, out);
    if (d->kind == DC_DIM_VAR || (fault == DC_EXPR_UNKNOWN && d->var >= 0)) {
        *out = b->size[d->var];
        fault = *out < 0 ? DC_EXPR_UNKNOWN : DC_EXPR_OK;
    }
    if (fault == DC_EXPR_OK)
        return *out < 0 ? NEGATIVE : FITS;
    return fault == DC_EXPR_UNKNOWN ? OPEN : fault == DC_EXPR_ZERO ? ZERO : TOO_LARGE;
}

static outcome add_axis(dc_type *out, int64_t size, const char *name)
{
    if (out->rank == DC_MAX_RANK)
        return TOO_MANY;
    out->dim[out->rank] = size;
    out->name[out->rank++] = name;
    return FITS;
}

/* *at: the dim that decided. */
static outcome resolve_type(const dc_sig_bind *b, const dc_sig_type *t, bool outside, dc_type *out,
                            const dc_dim **at)
{
    *out = dc_type_scalar(t->dtype);
    for (int k = 0; k < t->ndim; k++) {
        const dc_dim *d = *at = &t->dim[k];
        int64_t size = 0;
        outcome o = FITS;
        if (k == t->rest) {
            o = b->rest < 0 ? OPEN : FITS;
            for (int i = 0; i < b->rest && o == FITS; i++)
                o = add_axis(out, b->rest_size[i], outside ? b->rest_name[i] : NULL);
        } else {
            o = size_of(b, d, &size);
            if (o == FITS)
                o = add_axis(out, size, !outside ? d->name : d->var >= 0 ? b->name[d->var] : NULL);
        }
        if (o != FITS)
            return o;
    }
    if (!dc_type_has_parts(out))
        return TOO_MANY_PARTS;
    return dc_dims_fit(out->rank, out->dim, dc_dtype_size(t->dtype)) ? FITS : TOO_LARGE;
}

bool dc_sig_resolve(const dc_sig_bind *b, const dc_sig_type *t, dc_type *out)
{
    const dc_dim *at;
    return resolve_type(b, t, false, out, &at) == FITS;
}

bool dc_sig_resolve_outside(const dc_sig_bind *b, const dc_sig_type *t, dc_type *out)
{
    const dc_dim *at;
    return resolve_type(b, t, true, out, &at) == FITS;
}

/* ---- is it a definition? ---- */

typedef struct checker {
    dc_job *j;
    const dc_sig *s;
    const dc_sig_bind *b;
    unsigned known; /* variables that a call finds, as bits */
} checker;

static dc_status refuse_signature(const checker *c, const char *fmt, ...) DC_PRINTF(2, 3);

static dc_status refuse_signature(const checker *c, const char *fmt, ...)
{
    char text[180], reason[240];
    va_list ap;
    if (dc_sig_print(c->s, NULL, text, sizeof text) >= (int)sizeof text)
        memcpy(text + sizeof text - 4, " ..", 4);
    va_start(ap, fmt);
    vsnprintf(reason, sizeof reason, fmt, ap);
    va_end(ap);
    return dc_fail(c->j, DC_ERR_SIGNATURE, &(dc_fact){.word = {text, reason}});
}

/* visit() for every tensor in a parameter's or result's type. */
static dc_status each_tensor(checker *c, const dc_sig_type *t,
                             dc_status (*visit)(checker *, const dc_sig_type *))
{
    if (t == NULL)
        return DC_OK;
    if (t->kind == DC_SHAPE_TENSOR)
        return visit(c, t);
    for (int i = 0; i < t->nfield; i++)
        DC_TRY(each_tensor(c, t->field[i].type, visit));
    return each_tensor(c, t->of, visit);
}

static dc_status learn_bare(checker *c, const dc_sig_type *t)
{
    for (int k = 0; k < t->ndim; k++)
        if (t->dim[k].var >= 0)
            c->known |= 1u << t->dim[k].var;
    return DC_OK;
}

static void learn_expr(checker *c, const dc_expr *e)
{
    const int v = dc_expr_solvable(e, c->known);
    if (v >= 0)
        c->known |= 1u << v;
}

static dc_status learn_solved(checker *c, const dc_sig_type *t)
{
    for (int k = 0; k < t->ndim; k++)
        if (t->dim[k].kind == DC_DIM_EXPR)
            learn_expr(c, t->dim[k].expr);
    for (const dc_sig_def *d = c->s->def; d != NULL; d = d->next)
        if ((c->known >> d->var & 1) != 0)
            learn_expr(c, d->expr);
        else if ((dc_expr_vars(d->expr) & ~c->known) == 0)
            c->known |= 1u << d->var;
    return DC_OK;
}

static dc_status check_known(checker *c, const dc_sig_type *t)
{
    for (int k = 0; k < t->ndim; k++) {
        const dc_dim *d = &t->dim[k];
        const unsigned open = d->kind == DC_DIM_EXPR ? dc_expr_vars(d->expr) & ~c->known : 0;
        char text[120];
        int v = 0;
        if (open == 0)
            continue;
        while ((open >> v & 1) == 0)
            v++;
        dc_expr_print(d->expr, c->s->var, text, sizeof text);
        return refuse_signature(c, "the size of '%.40s' cannot be found from %s", c->s->var[v],
                                text);
    }
    return DC_OK;
}

/* The parameters, or one result. */
typedef struct group {
    const dc_sig_type *type[DC_SIG_PARAMS];
    int n;
} group;

static dc_status each_of(checker *c, const group *g,
                         dc_status (*visit)(checker *, const dc_sig_type *))
{
    for (int i = 0; i < g->n; i++)
        DC_TRY(each_tensor(c, g->type[i], visit));
    return DC_OK;
}

static dc_status check_found(checker *c, const group *g)
{
    unsigned before;
    DC_TRY(each_of(c, g, learn_bare));
    do {
        before = c->known;
        DC_TRY(each_of(c, g, learn_solved));
    } while (c->known != before);
    return each_of(c, g, check_known);
}

static dc_status check_size(checker *c, const dc_sig_type *t)
{
    dc_type full;
    const dc_dim *d = NULL;
    char text[120] = "";
    int64_t size = 0;
    const outcome o = resolve_type(c->b, t, false, &full, &d);
    if (d != NULL)
        dc_sig_dim_print(c->s, NULL, d, text, sizeof text);
    switch (o) {
    case FITS:
    case OPEN:
        return DC_OK;
    case NEGATIVE:
        size_of(c->b, d, &size);
        return refuse_signature(c, "%s is %" PRId64 "; a size is 0 or more", text, size);
    case ZERO:
        return refuse_signature(c, "%s divides by zero", text);
    case TOO_MANY:
        return refuse_signature(c, "a type has more than %d axes", DC_MAX_RANK);
    case TOO_MANY_PARTS:
        return refuse_signature(c, "a type of complex numbers has more than %d axes",
                                DC_MAX_RANK - 1);
    case TOO_LARGE:
        break;
    }
    return refuse_signature(c, "a type is too large to address");
}

dc_status dc_sig_check(dc_job *j, const dc_sig *s, dc_sig_bind *b)
{
    checker c = {j, s, b, 0};
    dc_sig_miss miss = {0};
    group params = {.n = s->nparam};
    char text[200];
    if (!dc_sig_match(s, b, NULL, 0, &miss)) {
        dc_sig_miss_print(s, &miss, 1, text, sizeof text);
        return refuse_signature(&c, "%s", text);
    }
    for (int v = 0; v < s->nvar; v++)
        c.known |= b->size[v] >= 0 ? 1u << v : 0;
    for (int i = 0; i < s->nparam; i++)
        params.type[i] = s->param[i].type;
    DC_TRY(check_found(&c, &params));
    DC_TRY(each_of(&c, &params, check_size));
    for (int i = 0; i < s->nresult; i++) {
        const group result = {.type = {s->result[i]}, .n = 1};
        DC_TRY(check_found(&c, &result));
        DC_TRY(each_of(&c, &result, check_size));
    }
    return DC_OK;
}
