#include "core/base/extent.h"

#include "core/base/job.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct atom { /* a variable, or the floor of x / k */
    const char *name; /* NULL: a quotient */
    int64_t lo, hi;   /* of a variable; values of a quotient follow */
    int64_t x, k;     /* x: a code */
    int64_t code;     /* of the atom by itself */
} atom;

typedef struct term {
    int64_t k;
    uint8_t n;                          /* factors */
    uint16_t factor[DC_EXTENT_FACTORS]; /* atoms, ascending */
} term;

typedef struct poly { /* c and terms by ascending factors, none with k = 0 */
    int64_t c;
    int n;
    term t[DC_EXTENT_TERMS];
} poly;

typedef struct range {
    int64_t lo, hi;
    bool ok; /* it fits */
} range;

typedef struct expression {
    poly p;
    range r;
    uint32_t next; /* in the list of its hash: a number, and one more; 0 none */
} expression;

typedef enum question {
    NOTHING,
    SUM_OF,
    DIFFERENCE_OF,
    PRODUCT_OF,
    FLOOR_OF,
    QUOTIENT_OF,
    AT_LEAST
} question;

typedef struct answer {
    question what;
    int64_t a, b, is;
} answer;

enum { LISTS = 256, ANSWERS = 512 };

/*
 * Atoms and expressions stay and never change, so what was once computed of codes of the table holds: the range of an
 * expression is kept with it, and results of arithmetic in a table that later ones overwrite. A trace asks the same
 * few questions at every layer.
 */
struct dc_extents {
    DC_VEC(atom) atom;
    DC_VEC(expression) all; /* by number */
    uint32_t first[LISTS];  /* by hash, as `next` */
    answer answer[ANSWERS]; /* by hash */
};

dc_extents *dc_extents_new(void)
{
    return dc_xalloc(sizeof(dc_extents));
}

void dc_extents_free(dc_extents *e)
{
    if (e == NULL)
        return;
    DC_VEC_FREE(e->atom);
    DC_VEC_FREE(e->all);
    dc_xfree(e);
}

static int64_t number_of(int64_t code)
{
    return (code >> DC_EXTENT_SHIFT) & ((1 << (DC_EXTENT_BIT - DC_EXTENT_SHIFT)) - 1);
}

/* Of a code of the table. */
static const expression *expression_of(const dc_extents *e, int64_t code)
{
    return &e->all.at[number_of(code)];
}

/* ---- what was asked before -------------------------------------------------------------------- */

static answer *place_of(dc_extents *e, question what, int64_t a, int64_t b)
{
    const uint64_t h = dc_hash_mix(dc_hash_mix((uint64_t)what, (uint64_t)a), (uint64_t)b);
    return &e->answer[h % ANSWERS];
}

static bool was_asked(dc_extents *e, question what, int64_t a, int64_t b, int64_t *is)
{
    const answer *x = place_of(e, what, a, b);
    *is = x->is;
    return x->what == what && x->a == a && x->b == b;
}

/* a and b are numbers and codes of the table: what is none today may be one tomorrow. */
static int64_t keep_answer(dc_extents *e, question what, int64_t a, int64_t b, int64_t is)
{
    *place_of(e, what, a, b) = (answer){what, a, b, is};
    return is;
}

/* ---- ranges ----------------------------------------------------------------------------------- */

static int64_t floor_div(int64_t a, int64_t k)
{
    const int64_t q = a / k;
    return q * k > a ? q - 1 : q;
}

static range range_of_atom(const dc_extents *e, const atom *a)
{
    if (a->name != NULL)
        return (range){a->lo, a->hi, true};
    const range r = expression_of(e, a->x)->r;
    return (range){floor_div(r.lo, a->k), floor_div(r.hi, a->k), r.ok};
}

static range range_times(range a, range b)
{
    int64_t v[4];
    const bool ok = a.ok && b.ok && dc_mul_ok(a.lo, b.lo, &v[0]) && dc_mul_ok(a.lo, b.hi, &v[1]) &&
                    dc_mul_ok(a.hi, b.lo, &v[2]) && dc_mul_ok(a.hi, b.hi, &v[3]);
    range r = {0, 0, ok};
    for (int i = 0; ok && i < 4; i++) {
        r.lo = i == 0 ? v[i] : dc_min_i64(r.lo, v[i]);
        r.hi = i == 0 ? v[i] : dc_max_i64(r.hi, v[i]);
    }
    return r;
}

enum { MOST_CORNERS = 6 }; /* atoms of a sum */

/* The atoms of a sum in which none is multiplied by itself; -1 where there are more, or one is. */
static int linear_atoms(const poly *p, uint16_t *list)
{
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        const term *t = &p->t[i];
        for (int k = 0; k < t->n; k++) {
            int at = 0;
            if (k > 0 && t->factor[k] == t->factor[k - 1])
                return -1;
            while (at < n && list[at] != t->factor[k])
                at++;
            if (at == MOST_CORNERS)
                return -1;
            list[at] = t->factor[k];
            n += at == n;
        }
    }
    return n;
}

/* The value where the atoms of these numbers have these values. */
static bool value_at(const poly *p, const uint16_t *list, const int64_t *value, int64_t *out)
{
    *out = p->c;
    for (int i = 0; i < p->n; i++) {
        int64_t x = p->t[i].k;
        for (int k = 0; k < p->t[i].n; k++) {
            int at = 0;
            while (list[at] != p->t[i].factor[k])
                at++;
            if (!dc_mul_ok(x, value[at], &x))
                return false;
        }
        if (!dc_add_ok(*out, x, out))
            return false;
    }
    return true;
}

/*
 * A sum that is linear in each atom is least and largest at corners: b*t - b, with both from 1 on, is not below
 * 0, which no term tells.
 */
static void narrow_to_corners(const dc_extents *e, const poly *p, range *r)
{
    uint16_t list[MOST_CORNERS];
    int64_t value[MOST_CORNERS], v;
    range of[MOST_CORNERS], all = {INT64_MAX, INT64_MIN, true};
    const int n = p->n > 1 ? linear_atoms(p, list) : -1;
    for (int i = 0; i < n; i++) {
        of[i] = range_of_atom(e, &e->atom.at[list[i]]);
        all.ok = all.ok && of[i].ok;
    }
    for (unsigned corner = 0; n > 0 && all.ok && corner < 1u << n; corner++) {
        for (int i = 0; i < n; i++)
            value[i] = corner >> i & 1 ? of[i].hi : of[i].lo;
        all.ok = value_at(p, list, value, &v);
        all.lo = dc_min_i64(all.lo, v);
        all.hi = dc_max_i64(all.hi, v);
    }
    if (n > 0 && all.ok)
        *r = all;
}

/* Each term by itself, or together where that is known. */
static range range_of_terms(const dc_extents *e, const poly *p)
{
    range sum = {p->c, p->c, true};
    for (int i = 0; i < p->n; i++) {
        range r = {p->t[i].k, p->t[i].k, true};
        for (int k = 0; k < p->t[i].n; k++)
            r = range_times(r, range_of_atom(e, &e->atom.at[p->t[i].factor[k]]));
        sum.ok =
            sum.ok && r.ok && dc_add_ok(sum.lo, r.lo, &sum.lo) && dc_add_ok(sum.hi, r.hi, &sum.hi);
    }
    if (sum.ok)
        narrow_to_corners(e, p, &sum);
    return sum;
}

/* ---- canonical sums --------------------------------------------------------------------------- */

static int compare_factors(const term *a, const term *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (int i = 0; i < a->n; i++)
        if (a->factor[i] != b->factor[i])
            return a->factor[i] < b->factor[i] ? -1 : 1;
    return 0;
}

/* p + t; false where it does not fit. */
static bool add_term(poly *p, const term *t)
{
    int at = 0;
    if (t->k == 0)
        return true;
    if (t->n == 0)
        return dc_add_ok(p->c, t->k, &p->c);
    while (at < p->n && compare_factors(&p->t[at], t) < 0)
        at++;
    if (at < p->n && compare_factors(&p->t[at], t) == 0) {
        if (!dc_add_ok(p->t[at].k, t->k, &p->t[at].k))
            return false;
        if (p->t[at].k == 0) {
            memmove(&p->t[at], &p->t[at + 1], sizeof *p->t * (size_t)(p->n - at - 1));
            p->n--;
        }
        return true;
    }
    if (p->n == DC_EXTENT_TERMS)
        return false;
    memmove(&p->t[at + 1], &p->t[at], sizeof *p->t * (size_t)(p->n - at));
    p->t[at] = *t;
    p->n++;
    return true;
}

static bool poly_times(const poly *x, const poly *y, poly *out)
{
    *out = (poly){0};
    for (int i = -1; i < x->n; i++)
        for (int k = -1; k < y->n; k++) {
            static const term one = {0};
            const term *a = i < 0 ? &one : &x->t[i], *b = k < 0 ? &one : &y->t[k];
            term t = {.n = (uint8_t)(a->n + b->n)};
            if (!dc_mul_ok(i < 0 ? x->c : a->k, k < 0 ? y->c : b->k, &t.k) || t.k == INT64_MIN ||
                (t.k != 0 && t.n > DC_EXTENT_FACTORS))
                return false;
            if (t.k == 0)
                continue;
            for (int n = 0, p = 0, q = 0; n < t.n; n++) {
                const bool left = q == b->n || (p < a->n && a->factor[p] <= b->factor[q]);
                t.factor[n] = left ? a->factor[p++] : b->factor[q++];
            }
            if (!add_term(out, &t))
                return false;
        }
    return true;
}

static bool add_poly(poly *p, const poly *q)
{
    if (!dc_add_ok(p->c, q->c, &p->c))
        return false;
    for (int i = 0; i < q->n; i++)
        if (!add_term(p, &q->t[i]))
            return false;
    return true;
}

static bool is_quotient(const dc_extents *e, const term *t)
{
    return t->n == 1 && e->atom.at[t->factor[0]].name == NULL;
}

/* A number by which p has to be multiplied so that the coefficient of each y / d by itself is a multiple of d; 0: too large. */
static int64_t scale_of(const dc_extents *e, const poly *p)
{
    enum { MOST = 1 << 20 };
    int64_t scale = 1;
    for (int i = 0; i < p->n && scale > 0; i++) {
        const term *t = &p->t[i];
        if (!is_quotient(e, t))
            continue;
        const int64_t d = e->atom.at[t->factor[0]].k;
        const int64_t rest = t->k % d * (scale % d) % d;
        const int64_t more = d / dc_gcd_i64(d, rest < 0 ? -rest : rest);
        scale = d <= MOST && scale * more <= MOST ? scale * more : 0;
    }
    return scale;
}

/* scale * p without quotients by themselves, k * (y / d); at most as large, or (up) at least. */
static bool without_quotients(const dc_extents *e, const poly *p, int64_t scale, bool up, poly *out)
{
    const poly times = {.c = scale};
    poly all;
    if (!poly_times(p, &times, &all))
        return false;
    *out = (poly){.c = all.c};
    for (int i = 0; i < all.n; i++) {
        const term *t = &all.t[i];
        const atom *a = &e->atom.at[t->factor[0]];
        if (!is_quotient(e, t)) {
            if (!add_term(out, t))
                return false;
            continue;
        }
        const poly by = {.c = t->k / a->k};
        poly y = expression_of(e, a->x)->p, scaled;
        const bool below = (t->k > 0) != up; /* y - (d - 1) <= d * (y / d) <= y */
        if (!dc_add_ok(y.c, below ? 1 - a->k : 0, &y.c) || !poly_times(&y, &by, &scaled) ||
            !add_poly(out, &scaled))
            return false;
    }
    return true;
}

/* Of n - 4 * (n / 4) no term tells that it is from 0 to 3, nor of n - n / 2 that it is not below 0. */
static range range_of(const dc_extents *e, const poly *p)
{
    range all = range_of_terms(e, p);
    const int64_t scale = scale_of(e, p);
    for (int up = 0; up < 2 && all.ok && scale > 0; up++) {
        poly y;
        if (!without_quotients(e, p, scale, up != 0, &y))
            continue;
        const range r = range_of_terms(e, &y);
        if (r.ok && up)
            all.hi = dc_min_i64(all.hi, floor_div(r.hi, scale));
        else if (r.ok)
            all.lo = dc_max_i64(all.lo, -floor_div(-r.lo, scale));
    }
    return all;
}

static bool same_poly(const poly *a, const poly *b)
{
    if (a->c != b->c || a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++)
        if (a->t[i].k != b->t[i].k || compare_factors(&a->t[i], &b->t[i]) != 0)
            return false;
    return true;
}

static bool poly_of(const dc_extents *e, int64_t dim, poly *out)
{
    *out = (poly){.c = dim};
    if (!dc_extent_is(dim))
        return dim != DC_EXTENT_NONE;
    if (!dc_extent_known(e, dim))
        return false;
    *out = expression_of(e, dim)->p;
    return true;
}

static uint64_t hash_poly(const poly *p)
{
    uint64_t h = dc_hash_mix((uint64_t)p->n, (uint64_t)p->c);
    for (int i = 0; i < p->n; i++) {
        h = dc_hash_mix(h, (uint64_t)p->t[i].k);
        for (int k = 0; k < p->t[i].n; k++)
            h = dc_hash_mix(h, p->t[i].factor[k]);
    }
    return h;
}

static int64_t code_of_number(int64_t v)
{
    return dc_extent_is(v) ? DC_EXTENT_NONE : v;
}

static int64_t code_at(const dc_extents *e, uint32_t i)
{
    return (int64_t)1 << DC_EXTENT_BIT | (int64_t)i << DC_EXTENT_SHIFT | e->all.at[i].r.hi;
}

/* The number, or the code, that it is. */
static int64_t code_of(dc_extents *e, const poly *p)
{
    if (p->n == 0)
        return code_of_number(p->c);
    uint32_t *list = &e->first[hash_poly(p) % LISTS];
    for (uint32_t i = *list; i != 0; i = e->all.at[i - 1].next)
        if (same_poly(&e->all.at[i - 1].p, p))
            return code_at(e, i - 1);
    const range r = range_of(e, p);
    if (!r.ok || r.hi < 0 || r.hi >> DC_EXTENT_SHIFT != 0 || e->all.n == DC_EXTENT_MOST)
        return DC_EXTENT_NONE;
    DC_PUSH(e->all, ((expression){*p, r, *list}));
    *list = e->all.n;
    return code_at(e, e->all.n - 1);
}

static int64_t code_of_atom(dc_extents *e, uint32_t number)
{
    const poly p = {.n = 1, .t = {{.k = 1, .n = 1, .factor = {(uint16_t)number}}}};
    return code_of(e, &p);
}

int64_t dc_extent_var(dc_extents *e, const char *name, int64_t lo, int64_t hi)
{
    if (lo < 0 || hi < lo || hi < 1 || e->atom.n >= UINT16_MAX)
        return DC_EXTENT_NONE;
    for (uint32_t i = 0; i < e->atom.n; i++) {
        const atom *old = &e->atom.at[i];
        if (old->name == name && old->lo == lo && old->hi == hi)
            return old->code;
    }
    const atom a = {.name = name, .lo = lo, .hi = hi};
    DC_ROOM(e->all); /* a variable without its code would be found by who asks again */
    DC_PUSH(e->atom, a);
    const int64_t code = code_of_atom(e, e->atom.n - 1);
    e->atom.at[e->atom.n - 1].code = code;
    return code;
}

/* ---- arithmetic ------------------------------------------------------------------------------- */

static bool are_numbers(int64_t a, int64_t b)
{
    return !dc_extent_is(a) && !dc_extent_is(b);
}

static bool are_known(const dc_extents *e, int64_t a, int64_t b)
{
    return (dc_extent_is(a) ? dc_extent_known(e, a) : a != DC_EXTENT_NONE) &&
           (dc_extent_is(b) ? dc_extent_known(e, b) : b != DC_EXTENT_NONE);
}

int64_t dc_extent_add(dc_extents *e, int64_t a, int64_t b)
{
    int64_t is;
    poly x, y;
    if (!are_known(e, a, b))
        return DC_EXTENT_NONE;
    if (are_numbers(a, b))
        return dc_add_ok(a, b, &is) ? code_of_number(is) : DC_EXTENT_NONE;
    if (was_asked(e, SUM_OF, a, b, &is))
        return is;
    const bool ok = poly_of(e, a, &x) && poly_of(e, b, &y) && add_poly(&x, &y);
    return keep_answer(e, SUM_OF, a, b, ok ? code_of(e, &x) : DC_EXTENT_NONE);
}

int64_t dc_extent_mul(dc_extents *e, int64_t a, int64_t b)
{
    int64_t is;
    poly x, y, z;
    if (!are_known(e, a, b))
        return DC_EXTENT_NONE;
    if (are_numbers(a, b))
        return dc_mul_ok(a, b, &is) ? code_of_number(is) : DC_EXTENT_NONE;
    if (was_asked(e, PRODUCT_OF, a, b, &is))
        return is;
    const bool ok = poly_of(e, a, &x) && poly_of(e, b, &y) && poly_times(&x, &y, &z);
    return keep_answer(e, PRODUCT_OF, a, b, ok ? code_of(e, &z) : DC_EXTENT_NONE);
}

/* a - b as a sum, which may have any range. */
static bool difference(const dc_extents *e, int64_t a, int64_t b, poly *out)
{
    poly y, negative;
    const poly minus = {.c = -1};
    return poly_of(e, a, out) && poly_of(e, b, &y) && poly_times(&y, &minus, &negative) &&
           add_poly(out, &negative);
}

int64_t dc_extent_sub(dc_extents *e, int64_t a, int64_t b)
{
    int64_t is;
    poly x;
    if (!are_known(e, a, b))
        return DC_EXTENT_NONE;
    if (are_numbers(a, b))
        return dc_add_ok(a, -b, &is) ? code_of_number(is) : DC_EXTENT_NONE;
    if (was_asked(e, DIFFERENCE_OF, a, b, &is))
        return is;
    const bool ok = difference(e, a, b, &x);
    return keep_answer(e, DIFFERENCE_OF, a, b, ok ? code_of(e, &x) : DC_EXTENT_NONE);
}

static bool is_at_least(const dc_extents *e, int64_t a, int64_t b)
{
    poly x;
    if (!difference(e, a, b, &x))
        return false;
    const range r = range_of(e, &x);
    return r.ok && r.lo >= 0;
}

bool dc_extent_at_least(dc_extents *e, int64_t a, int64_t b)
{
    int64_t is;
    if (!are_known(e, a, b))
        return false;
    if (are_numbers(a, b))
        return a >= b;
    if (!was_asked(e, AT_LEAST, a, b, &is))
        is = keep_answer(e, AT_LEAST, a, b, is_at_least(e, a, b));
    return is != 0;
}

/* What is divisible leaves the quotient, so that equal ones look alike. */
static int64_t floor_of(dc_extents *e, int64_t a, int64_t k)
{
    poly x;
    if (!poly_of(e, a, &x))
        return DC_EXTENT_NONE;
    poly whole = {.c = floor_div(x.c, k)}, rest = {.c = x.c - whole.c * k};
    for (int i = 0; i < x.n; i++) {
        term t = x.t[i];
        t.k = floor_div(x.t[i].k, k);
        add_term(&whole, &t);
        t.k = x.t[i].k - t.k * k;
        add_term(&rest, &t);
    }
    if (rest.n == 0)
        return code_of(e, &whole);
    const int64_t code = code_of(e, &rest);
    if (code == DC_EXTENT_NONE)
        return code;
    uint32_t i = 0;
    while (i < e->atom.n &&
           (e->atom.at[i].name != NULL || e->atom.at[i].x != code || e->atom.at[i].k != k))
        i++;
    if (i == e->atom.n) {
        if (i == UINT16_MAX)
            return DC_EXTENT_NONE;
        const atom made = {.x = code, .k = k};
        DC_PUSH(e->atom, made);
    }
    const term t = {.k = 1, .n = 1, .factor = {(uint16_t)i}};
    return add_term(&whole, &t) ? code_of(e, &whole) : DC_EXTENT_NONE;
}

int64_t dc_extent_div(dc_extents *e, int64_t a, int64_t k)
{
    int64_t is;
    if (k < 1 || dc_extent_is(k) || !are_known(e, a, k))
        return DC_EXTENT_NONE;
    if (!dc_extent_is(a))
        return code_of_number(floor_div(a, k));
    if (was_asked(e, FLOOR_OF, a, k, &is))
        return is;
    return keep_answer(e, FLOOR_OF, a, k, floor_of(e, a, k));
}

/* a / b, where b is one product: its factors leave every term. */
static bool divide_terms(const poly *a, const poly *b, poly *out)
{
    const int64_t k = b->n == 0 ? b->c : b->t[0].k;
    *out = (poly){.c = a->c / k};
    if (a->c % k != 0 || (b->n > 0 && a->c != 0))
        return false;
    for (int i = 0; i < a->n; i++) {
        const term *t = &a->t[i];
        term q = {.k = t->k / k};
        int left = 0;
        if (t->k % k != 0)
            return false;
        for (int n = 0; n < t->n; n++)
            if (b->n > 0 && left < b->t[0].n && t->factor[n] == b->t[0].factor[left])
                left++;
            else
                q.factor[q.n++] = t->factor[n];
        if ((b->n > 0 && left < b->t[0].n) || !add_term(out, &q))
            return false;
    }
    return true;
}

static int64_t quotient_of(dc_extents *e, int64_t a, int64_t b)
{
    poly x, y, q;
    if (!poly_of(e, a, &x) || !poly_of(e, b, &y))
        return DC_EXTENT_NONE;
    if (same_poly(&x, &y))
        return 1;
    if ((y.n == 0 || (y.n == 1 && y.c == 0)) && divide_terms(&x, &y, &q))
        return code_of(e, &q);
    /* k * (n + 1) by n + 1, and by what else is a multiple of the other's first term */
    if (y.n > 0 && x.n > 0 && x.n >= y.n) {
        poly first = {.n = 1, .t = {y.t[y.n - 1]}}, top = {.n = 1, .t = {x.t[x.n - 1]}}, back;
        if (divide_terms(&top, &first, &q) && poly_times(&q, &y, &back) && same_poly(&back, &x))
            return code_of(e, &q);
    }
    return DC_EXTENT_NONE;
}

int64_t dc_extent_quotient(dc_extents *e, int64_t a, int64_t b)
{
    int64_t is;
    if (b == 0 || !are_known(e, a, b))
        return DC_EXTENT_NONE;
    if (are_numbers(a, b))
        return quotient_of(e, a, b);
    if (was_asked(e, QUOTIENT_OF, a, b, &is))
        return is;
    return keep_answer(e, QUOTIENT_OF, a, b, quotient_of(e, a, b));
}

int64_t dc_extent_product(dc_extents *e, int n, const int64_t *dim)
{
    int64_t p = 1;
    for (int i = 0; i < n && p != DC_EXTENT_NONE; i++)
        p = dc_extent_mul(e, p, dim[i]);
    return p;
}

/* ---- questions -------------------------------------------------------------------------------- */

bool dc_extent_known(const dc_extents *e, int64_t dim)
{
    if (!dc_extent_is(dim))
        return dim >= 0;
    return e != NULL && number_of(dim) < e->all.n &&
           expression_of(e, dim)->r.hi == dc_extent_bound(dim);
}

int64_t dc_extent_lo(const dc_extents *e, int64_t dim)
{
    return dc_extent_is(dim) ? expression_of(e, dim)->r.lo : dim;
}

int64_t dc_extent_eval(const dc_extents *e, int64_t dim, dc_extent_value *var, void *ctx)
{
    if (!dc_extent_is(dim))
        return dim;
    const poly *p = &expression_of(e, dim)->p;
    int64_t sum = p->c;
    for (int i = 0; i < p->n; i++) {
        int64_t v = p->t[i].k;
        for (int k = 0; k < p->t[i].n; k++) {
            const atom *a = &e->atom.at[p->t[i].factor[k]];
            v *= a->name != NULL ? var(ctx, a->code)
                                 : floor_div(dc_extent_eval(e, a->x, var, ctx), a->k);
        }
        sum += v;
    }
    return sum;
}

/* ---- text ------------------------------------------------------------------------------------- */

typedef struct printer { /* counts what is cut, too */
    char *out;
    size_t room, n;
} printer;

DC_PRINTF(2, 3) static void put(printer *p, const char *fmt, ...)
{
    va_list ap;
    const size_t at = p->n < p->room ? p->n : p->room;
    va_start(ap, fmt);
    const int n = vsnprintf(p->out + at, p->room - at, fmt, ap);
    va_end(ap);
    p->n += n < 0 ? 0 : (size_t)n;
}

static void put_poly(const dc_extents *e, const poly *x, printer *p);

static void put_atom(const dc_extents *e, const atom *a, printer *p)
{
    if (a->name != NULL) {
        put(p, "%s", a->name);
        return;
    }
    put(p, "(");
    put_poly(e, &expression_of(e, a->x)->p, p);
    put(p, ")//%" PRId64, a->k);
}

static void put_poly(const dc_extents *e, const poly *x, printer *p)
{
    for (int i = 0; i < x->n; i++) {
        const term *t = &x->t[i];
        const int64_t k = i > 0 && t->k < 0 ? -t->k : t->k;
        put(p, "%s", i == 0 ? "" : t->k < 0 ? " - " : " + ");
        if (k == -1)
            put(p, "-");
        else if (k != 1)
            put(p, "%" PRId64 "*", k);
        for (int n = 0; n < t->n; n++) {
            put(p, "%s", n ? "*" : "");
            put_atom(e, &e->atom.at[t->factor[n]], p);
        }
    }
    if (x->c != 0)
        put(p, " %c %" PRId64, x->c < 0 ? '-' : '+', x->c < 0 ? -x->c : x->c);
}

int dc_extent_print(const dc_extents *e, int64_t dim, char *out, size_t room)
{
    printer p = {out, room, 0};
    if (!dc_extent_is(dim))
        put(&p, "%" PRId64, dim);
    else if (!dc_extent_known(e, dim))
        put(&p, "?");
    else
        put_poly(e, &expression_of(e, dim)->p, &p);
    return (int)p.n;
}
