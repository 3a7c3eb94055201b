/*
 * Signatures solved: which sizes the variables have in a call, and whether everything agrees.
 *
 * First dtypes and numbers of dims, then dims whose size stands there (numbers, names, "..."), then
 * expressions: each is a line c + a*v in the names without a size, and one with a single such name
 * tells it. Statements `name = expr` take part like dims of the size that the name has. What has
 * found nothing new is over; then every expression must have the value of its dim.
 */
#include "core/base/job.h"
#include "core/graph/signature.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void dc_sig_begin(const dc_sig *s, dc_sig_bind *b)
{
    *b = (dc_sig_bind){.rest = -1};
    for (int v = 0; v < DC_SIG_VARS; v++)
        b->size[v] = v < s->nvar ? s->size[v] : -1;
}

dc_status dc_sig_give(dc_job *j, const dc_sig *s, dc_sig_bind *b, const char *name, int64_t size)
{
    const int v = dc_sig_var(s, name);
    if (v < 0) {
        char known[200] = "";
        size_t n = 0;
        for (int i = 0; i < s->nvar && n < sizeof known; i++)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%.40s", i ? ", " : "", s->var[i]);
        return dc_failf(j, DC_ERR_ARG, s->name, "no dim is called '%.40s'; %s%s", name,
                        s->nvar > 0 ? "there are " : "no dim has a name", known);
    }
    if (size < 0)
        return dc_failf(j, DC_ERR_ARG, s->name, "'%.40s' = %" PRId64 ": a size is 0 or more", name,
                        size);
    if (b->size[v] >= 0 && b->size[v] != size)
        return dc_failf(j, DC_ERR_ARG, s->name, "'%.40s' is %" PRId64 " and cannot be %" PRId64,
                        name, b->size[v], size);
    b->size[v] = size;
    return DC_OK;
}

/* ---- one call ---- */

typedef struct solver {
    const dc_sig *s;
    dc_sig_bind *b;
    const dc_sig_leaf *leaf;
    int n;
    bool inside; /* given types are under the signature's names */
    bool found;  /* a size, in this round */
    dc_sig_miss *miss;
} solver;

/* Fills in what every miss tells; false. */
static bool missed(solver *x, dc_sig_miss_kind kind, int leaf, int axis, const dc_dim *d,
                   int64_t want, int64_t got)
{
    *x->miss = (dc_sig_miss){.kind = kind, .leaf = leaf, .axis = axis, .want = want, .got = got};
    x->miss->var = d != NULL ? d->var : -1;
    if (d != NULL && d->kind == DC_DIM_REST)
        memcpy(x->miss->text, "...", 4);
    return false;
}

/* The axis of the given type where dim k lies. */
static int axis_of(const dc_sig_leaf *l, int k)
{
    return l->declared->rest >= 0 && k > l->declared->rest ? k - l->declared->ndim + l->given.rank
                                                           : k;
}

/* dtype, number of dims, and how many "..." stands for. */
static bool match_form(solver *x, int i)
{
    const dc_sig_leaf *l = &x->leaf[i];
    const dc_sig_type *t = l->declared;
    const int fixed = t->ndim - (t->rest >= 0), rank = l->given.rank;
    DC_ASSERT(t->kind == DC_SHAPE_TENSOR, "a leaf is no tensor");
    if (t->dtype != (dc_dtype)l->given.dtype)
        return missed(x, DC_MISS_DTYPE, i, -1, NULL, t->dtype, l->given.dtype);
    if (t->rest < 0 ? rank != fixed : rank < fixed)
        return missed(x, DC_MISS_RANK, i, -1, t->rest < 0 ? NULL : &t->dim[t->rest], fixed, rank);
    if (t->rest < 0)
        return true;
    if (x->b->rest >= 0 && x->b->rest != rank - fixed)
        return missed(x, DC_MISS_RANK, i, t->rest, &t->dim[t->rest], x->b->rest, rank - fixed);
    if (x->b->rest < 0) {
        x->b->rest = rank - fixed;
        for (int k = 0; k < x->b->rest; k++)
            x->b->rest_size[k] = -1;
    }
    return true;
}

/* One axis against a variable or a dim of "...": takes or compares the size. */
static bool match_size(solver *x, int i, int axis, const dc_dim *d, int64_t *size)
{
    const int64_t got = x->leaf[i].given.dim[axis];
    if (*size < 0)
        *size = got;
    return *size == got || missed(x, DC_MISS_SIZE, i, axis, d, *size, got);
}

/* Outside, *name is the caller's for that variable; inside, names are those of the signature. */
static bool match_name(solver *x, int i, int axis, const dc_dim *d, const char **name)
{
    const char *got = x->leaf[i].given.name[axis];
    const char *want = x->inside ? d->name : *name;
    if (got == NULL)
        return true;
    if (want != NULL && want != got) {
        missed(x, DC_MISS_NAME, i, axis, d, 0, 0);
        x->miss->want_name = want;
        x->miss->got_name = got;
        return false;
    }
    if (!x->inside)
        *name = got;
    return true;
}

static bool match_rest(solver *x, int i)
{
    const dc_sig_type *t = x->leaf[i].declared;
    for (int k = 0; k < x->b->rest; k++)
        if (!match_size(x, i, t->rest + k, &t->dim[t->rest], &x->b->rest_size[k]) ||
            !match_name(x, i, t->rest + k, &t->dim[t->rest], &x->b->rest_name[k]))
            return false;
    return true;
}

/* Everything but expressions. */
static bool match_bare(solver *x, int i)
{
    const dc_sig_leaf *l = &x->leaf[i];
    for (int k = 0; k < l->declared->ndim; k++) {
        const dc_dim *d = &l->declared->dim[k];
        const int axis = axis_of(l, k);
        int64_t size = d->size;
        if (k == l->declared->rest) {
            if (!match_rest(x, i))
                return false;
            continue;
        }
        if (d->kind == DC_DIM_SIZE && !match_size(x, i, axis, d, &size))
            return false;
        if (d->var >= 0 && (!match_size(x, i, axis, d, &x->b->size[d->var]) ||
                            !match_name(x, i, axis, d, &x->b->name[d->var])))
            return false;
    }
    return true;
}

/* ---- expressions ---- */

/* Where an expression stands: in a dim of a leaf, or in a statement alone (leaf and axis are -1). */
typedef struct place {
    const dc_dim *d;
    int leaf, axis;
    int64_t size; /* that it must have; -1 not known */
} place;

static bool missed_at(solver *x, dc_sig_miss_kind kind, const place *p, int64_t want)
{
    missed(x, kind, p->leaf, p->axis, p->d, want, p->size);
    dc_expr_print(p->d->expr, x->s->var, x->miss->text, sizeof x->miss->text);
    if (p->leaf < 0)
        x->miss->want_name = p->d->name;
    return false;
}

/* The only variable of a line; -1 if it has none, -2 if several. */
static int only_var(const dc_expr_linear *l)
{
    int var = -1;
    for (int v = 0; v < DC_EXPR_VARS; v++)
        if (l->a[v] != 0)
            var = var == -1 ? v : -2;
    return var;
}

/* c + a*v = size. */
static bool solve_line(solver *x, const place *p, const dc_expr_linear *l, int v)
{
    int64_t diff;
    if (__builtin_sub_overflow(p->size, l->c, &diff) || (l->a[v] == -1 && diff == INT64_MIN))
        return missed_at(x, DC_MISS_RANGE, p, 0);
    const bool whole = diff % l->a[v] == 0;
    const int64_t value = diff / l->a[v];
    if (!whole || value < 0) {
        missed_at(x, DC_MISS_WHOLE, p, whole ? value : 0);
        x->miss->var = v;
        return false;
    }
    x->b->size[v] = value;
    x->found = true;
    return true;
}

/* Looks for a size that this place tells. */
static bool solve(solver *x, const place *p)
{
    dc_expr_linear l;
    const dc_expr_fault fault = dc_expr_linearize(p->d->expr, x->b->size, &l);
    if (fault == DC_EXPR_ZERO)
        return missed_at(x, DC_MISS_ZERO, p, 0);
    if (fault == DC_EXPR_LARGE)
        return missed_at(x, DC_MISS_RANGE, p, 0);
    if (fault != DC_EXPR_OK)
        return true;
    const int v = only_var(&l);
    if (p->size >= 0)
        return v < 0 || solve_line(x, p, &l, v);
    if (v == -1) { /* the other way round: the name of a statement takes the value */
        if (l.c < 0)
            return missed_at(x, DC_MISS_RANGE, p, l.c);
        x->b->size[p->d->var] = l.c;
        x->found = true;
    }
    return true;
}

static bool agree(solver *x, const place *p)
{
    dc_expr_linear l;
    if (p->size < 0)
        return true;
    const bool line = dc_expr_linearize(p->d->expr, x->b->size, &l) == DC_EXPR_OK;
    if (line && only_var(&l) == -1)
        return l.c == p->size || missed_at(x, DC_MISS_SIZE, p, l.c);
    if (p->leaf < 0)
        return true; /* a result may tell */
    missed_at(x, DC_MISS_OPEN, p, 0);
    for (int v = x->s->nvar - 1; v >= 0; v--)
        if ((dc_expr_vars(p->d->expr) >> v & 1) != 0 && x->b->size[v] < 0)
            x->miss->var = v;
    return false;
}

/* visit() for every expression of the leaves and every statement. */
static bool each_expr(solver *x, bool (*visit)(solver *, const place *))
{
    for (int i = 0; i < x->n; i++) {
        const dc_sig_leaf *l = &x->leaf[i];
        for (int k = 0; k < l->declared->ndim; k++) {
            place p = {&l->declared->dim[k], i, axis_of(l, k), 0};
            if (p.d->kind != DC_DIM_EXPR)
                continue;
            p.size = l->given.dim[p.axis];
            if (!visit(x, &p))
                return false;
        }
    }
    for (const dc_sig_def *def = x->s->def; def != NULL; def = def->next) {
        const dc_dim d = {DC_DIM_EXPR, 0, def->var, x->s->var[def->var], def->expr};
        if (!visit(x, &(place){&d, -1, -1, x->b->size[def->var]}))
            return false;
    }
    return true;
}

static bool solve_all(solver *x)
{
    do {
        x->found = false;
        if (!each_expr(x, solve))
            return false;
    } while (x->found);
    return each_expr(x, agree);
}

static bool match_all(solver *x)
{
    *x->miss = (dc_sig_miss){.leaf = -1, .axis = -1, .var = -1};
    for (int i = 0; i < x->n; i++)
        if (!match_form(x, i))
            return false;
    for (int i = 0; i < x->n; i++)
        if (!match_bare(x, i))
            return false;
    return solve_all(x);
}

bool dc_sig_match(const dc_sig *s, dc_sig_bind *b, const dc_sig_leaf *leaf, int n,
                  dc_sig_miss *miss)
{
    solver x = {.s = s, .b = b, .leaf = leaf, .n = n, .miss = miss};
    return match_all(&x);
}

bool dc_sig_match_result(const dc_sig *s, dc_sig_bind *b, const dc_sig_type *t,
                         const dc_type *given, dc_sig_miss *miss)
{
    dc_sig_bind more = *b;
    const dc_sig_leaf leaf = {t, *given};
    solver x = {.s = s, .b = &more, .leaf = &leaf, .n = 1, .inside = true, .miss = miss};
    if (!match_all(&x))
        return false;
    *b = more;
    return true;
}

/* ---- a type with sizes ---- */

typedef enum outcome { FITS, OPEN, NEGATIVE, ZERO, TOO_LARGE, TOO_MANY } outcome;

static outcome size_of(const dc_sig_bind *b, const dc_dim *d, int64_t *out)
{
    dc_expr_fault fault = DC_EXPR_OK;
    if (d->kind == DC_DIM_SIZE)
        *out = d->size;
    else if (d->kind == DC_DIM_EXPR)
        fault = dc_expr_eval(d->expr, b->size, out);
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
    solver x = {.s = s, .b = b, .miss = &miss};
    if (!match_all(&x)) {
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

/* ---- words for a miss ---- */

static bool is_about_rest(const dc_sig_miss *m)
{
    return strcmp(m->text, "...") == 0;
}

/* Behind the number that a size is compared with: which part of the signature it is of. */
static const char *of_what(const dc_sig *s, const dc_sig_miss *m, char *out, size_t room)
{
    if (m->var >= 0)
        snprintf(out, room, " (%.60s)", s->var[m->var]);
    else
        snprintf(out, room, "%s", is_about_rest(m) ? " (...)" : "");
    return out;
}

static int print_size(const dc_sig *s, const dc_sig_miss *m, const char *at, char *out, size_t room)
{
    char of[80];
    if (m->text[0] != '\0' && !is_about_rest(m))
        return snprintf(out, room, "%s = %" PRId64 " against %s = %" PRId64, at, m->got, m->text,
                        m->want);
    return snprintf(out, room, "%s = %" PRId64 " against %" PRId64 "%s", at, m->got, m->want,
                    of_what(s, m, of, sizeof of));
}

static int print_rank(const dc_sig_miss *m, char *out, size_t room)
{
    const char *dims = m->got == 1 ? "dim" : "dims";
    if (m->axis >= 0)
        return snprintf(out, room, "'...' is %" PRId64 " %s against %" PRId64, m->got, dims,
                        m->want);
    return snprintf(out, room, "%" PRId64 " %s against %s%" PRId64, m->got, dims,
                    is_about_rest(m) ? "at least " : "", m->want);
}

int dc_sig_miss_print(const dc_sig *s, const dc_sig_miss *m, int axis_base, char *out, size_t room)
{
    char at[64], of[80];
    const char *var = m->var >= 0 ? s->var[m->var] : "";
    if (m->axis >= 0)
        snprintf(at, sizeof at, "axis %d", m->axis + axis_base);
    else
        snprintf(at, sizeof at, "%.40s", m->want_name != NULL ? m->want_name : "");
    switch (m->kind) {
    case DC_MISS_NONE:
        break;
    case DC_MISS_DTYPE:
        return snprintf(out, room, "%s against %s", dc_dtype_name((dc_dtype)m->got),
                        dc_dtype_name((dc_dtype)m->want));
    case DC_MISS_RANK:
        return print_rank(m, out, room);
    case DC_MISS_SIZE:
        return print_size(s, m, at, out, room);
    case DC_MISS_NAME:
        return snprintf(out, room, "%s: '%s' against '%s'%s", at, m->got_name, m->want_name,
                        of_what(s, m, of, sizeof of));
    case DC_MISS_WHOLE:
        if (m->want < 0)
            return snprintf(out, room, "%s = %" PRId64 " is %s only for %s = %" PRId64, at, m->got,
                            m->text, var, m->want);
        return snprintf(out, room, "%s = %" PRId64 " is not %s for a whole %s", at, m->got, m->text,
                        var);
    case DC_MISS_RANGE:
        if (m->want < 0)
            return snprintf(out, room, "%s: %s is %" PRId64 "; a size is 0 or more", at, m->text,
                            m->want);
        return snprintf(out, room, "%s: %s is too large", at, m->text);
    case DC_MISS_ZERO:
        return snprintf(out, room, "%s: %s divides by zero", at, m->text);
    case DC_MISS_OPEN:
        return snprintf(out, room, "%s = %" PRId64 ": the size of '%s' cannot be found from %s", at,
                        m->got, var, m->text);
    }
    return snprintf(out, room, "nothing is amiss");
}
