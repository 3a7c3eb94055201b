/*
 * Signatures solved: which sizes the variables have in a call, and whether everything agrees.
 *
 * First dtypes and numbers of dims, then dims whose size stands there (numbers, names, "..."), then
 * expressions: each is a line c + a*v in the names without a size, and one with a single such name
 * tells it. Statements `name = expr` take part like dims of the size that the name has. What has
 * found nothing new is over; then every expression must have the value of its dim.
 * core/signature/sigcheck.c puts the sizes into types.
 */
#include "core/base/extent.h"
#include "core/base/job.h"
#include "core/signature/signature.h"

#include <inttypes.h>
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

dc_status dc_sig_limit(dc_job *j, dc_sig *s, const char *name, int64_t least, int64_t most)
{
    const int v = dc_sig_var(s, name);
    if (v < 0)
        return dc_failf(j, DC_ERR_ARG, s->name, "no dim is called '%.40s'", name);
    if (most > DC_SIG_MOST)
        return dc_failf(j, DC_ERR_ARG, s->name,
                        "the bound of '%.40s' is too large; %" PRId64 " is the largest", name,
                        (int64_t)DC_SIG_MOST);
    if (least < 0 || most < least || most < 1)
        return dc_failf(j, DC_ERR_ARG, s->name, "'%.40s' has no size from %" PRId64 " to %" PRId64,
                        name, least, most);
    bool told = s->size[v] >= 0;
    for (const dc_sig_def *def = s->def; def != NULL; def = def->next)
        told = told || def->var == v;
    if (told || (s->most[v] >= 0 && (s->most[v] != most || s->least[v] != least)))
        return dc_failf(j, DC_ERR_ARG, s->name, "'%.40s' has another size or bound, too", name);
    s->least[v] = least;
    s->most[v] = most;
    return DC_OK;
}

bool dc_sig_bound(const dc_sig *s, dc_extents *x, dc_sig_bind *b, dc_bound_mode mode, int *var)
{
    b->extents = x;
    for (int v = 0; v < s->nvar; v++) {
        const int64_t size = b->size[v];
        if (s->most[v] < 0)
            continue;
        *var = v;
        if (size >= 0 &&
            (dc_extent_lo(x, size) < s->least[v] || dc_extent_bound(size) > s->most[v]))
            return false;
        if (mode == DC_BOUND_EXACT && size >= 0)
            b->size[v] = dc_extent_var(x, s->var[v], size, dc_max_i64(size, 1));
        else if (mode != DC_BOUND_OPEN || size < 0)
            b->size[v] = dc_extent_var(x, s->var[v], s->least[v], s->most[v]);
    }
    for (const dc_sig_def *def = s->def; def != NULL; def = def->next)
        if (dc_expr_eval_in(x, def->expr, b->size, &b->size[def->var]) != DC_EXPR_OK)
            b->size[def->var] = -1;
    return true;
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

/* Does a code occur in what is known of the place? */
static bool has_extent(const solver *x, const place *p)
{
    bool any = dc_extent_is(p->size);
    for (int v = 0; v < x->s->nvar; v++)
        any = any || ((dc_expr_vars(p->d->expr) >> v & 1) != 0 && dc_extent_is(x->b->size[v]));
    return any;
}

/* Looks for a size that this place tells. */
static bool solve(solver *x, const place *p)
{
    dc_expr_linear l;
    if (has_extent(x, p)) /* known, or agree misses it */
        return true;
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
    int64_t value;
    if (has_extent(x, p) &&
        dc_expr_eval_in(x->b->extents, p->d->expr, x->b->size, &value) == DC_EXPR_OK)
        return value == p->size || missed_at(x, DC_MISS_SIZE, p, value);
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
        const dc_dim d = {
            .kind = DC_DIM_EXPR, .var = def->var, .name = x->s->var[def->var], .expr = def->expr};
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

/* "64", or "up to 512" of a code. */
static const char *size_text(int64_t size, char out[32])
{
    snprintf(out, 32, "%s%" PRId64, dc_extent_is(size) ? "up to " : "", dc_extent_bound(size));
    return out;
}

static int print_size(const dc_sig *s, const dc_sig_miss *m, const char *at, char *out, size_t room)
{
    char of[80], got[32], want[32];
    size_text(m->got, got);
    size_text(m->want, want);
    if (m->text[0] != '\0' && !is_about_rest(m))
        return snprintf(out, room, "%s = %s against %s = %s", at, got, m->text, want);
    return snprintf(out, room, "%s = %s against %s%s", at, got, want, of_what(s, m, of, sizeof of));
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
