/*
 * Ranges of positions, and whether positions of different iterations of a loop are disjoint: a dependence
 * test on mixed-radix digits.
 *
 * The difference of two positions is a sum of digits: coefficient times a number from a range, one
 * for each axis that may differ between the two accesses, or for each sum that a test bounds as a
 * whole. By growing coefficient, digits fall into groups: where those so far make less together
 * than the least that the others can make but 0, both have to be 0. So a digit that stands in a
 * group of its own is the same in both accesses if they meet; if such digits tell the iterations of
 * the loop apart, they do not meet. A digit that is a tested sum is looked into in the same way.
 */
#include "jit/nest/nest_disjoint.h"

#include <stdlib.h>

enum {
    MAX_COUNTED = 1 << 16, /* iterations looked at one by one */
    MAX_DEPTH = 4
}; /* tested sums inside each other */

/* Ranges ------------------------------------------------------------------------------------- */

/* a without times * e, if e's terms all stand in a with that factor; else 0. */
static dc_ix take_out(dc_kernel *k, dc_ix a, dc_ix e, int64_t *times)
{
    const dc_ix_node x = k->ix.at[a], y = k->ix.at[e];
    uint32_t j = 0;
    *times = 0;
    for (uint32_t i = 0; i < y.n; i++) {
        while (j < x.n && x.term[j].atom < y.term[i].atom)
            j++;
        if (j == x.n || x.term[j].atom != y.term[i].atom || x.term[j].coef % y.term[i].coef != 0)
            return 0;
        const int64_t t = x.term[j].coef / y.term[i].coef;
        if (i > 0 && t != *times)
            return 0;
        *times = t;
    }
    return *times == 0 ? 0 : dc_ix_add(k, a, dc_ix_mul(k, e, -*times));
}

typedef struct span {
    int64_t lo, hi;
} span;

static span span_of(int64_t coef, int64_t lo, int64_t hi)
{
    return coef < 0 ? (span){coef * hi, coef * lo} : (span){coef * lo, coef * hi};
}

/* The range of e under 0 <= e < n. */
static span tested(const dc_kernel *k, dc_range r)
{
    const dc_ix_node *x = &k->ix.at[r.ix];
    return (span){dc_max_i64(0, x->lo), dc_min_i64(r.n - 1, x->hi)};
}

void dc_nest_range(dc_nest_edit *v, dc_ix a, dc_pred p, dc_pred q, int64_t *lo, int64_t *hi)
{
    dc_kernel *k = v->k;
    span plus = {0, 0};
    for (uint32_t i = 0; i < p.n + q.n; i++) {
        const dc_range r = i < p.n ? p.range[i] : q.range[i - p.n];
        int64_t times;
        const dc_ix rest = take_out(k, a, r.ix, &times);
        const span s = tested(k, r);
        if (rest == 0 || s.lo > s.hi)
            continue;
        const span by = span_of(times, s.lo, s.hi);
        plus = (span){plus.lo + by.lo, plus.hi + by.hi};
        a = rest;
    }
    *lo = k->ix.at[a].lo + plus.lo;
    *hi = k->ix.at[a].hi + plus.hi;
}

/* Digits ------------------------------------------------------------------------------------- */

typedef struct digit {
    int64_t coef, lo, hi; /* the number is in lo..hi */
    int64_t least, most;  /* what it makes in the difference */
    dc_atom atom;         /* of the loop's axis alone: the same number in both accesses, or not */
    dc_ix sum;            /* a tested sum with the loop's axis in it; likewise */
} digit;

typedef struct digits {
    uint32_t n, ncommon;
    digit *at;
    dc_term *common; /* the same in both accesses */
    int64_t c;
} digits;

typedef struct query {
    dc_nest_edit *v;
    uint32_t axis;
    const bool *own;   /* by axis: the one */
    const bool *moves; /* by axis: those that differ between the accesses */
    enum {
        NO_SUMS,
        SHARED_SUMS,
        ALL_SUMS,
        SUMS
    } whole;        /* which tested sums are digits: those tested in both? */
    bool mixed;     /* and atoms of the loop's axis and of those that differ, as its own ones are */
    bool any_mixed; /* there are such */
    dc_pred test[2][2]; /* of both accesses */
    dc_atom *found;     /* digits that are the same in both if they meet */
    uint32_t nfound;
} query;

static bool atom_uses(const dc_kernel *k, dc_atom atom, const bool *set)
{
    const dc_atom_node *t = &k->atom.at[atom];
    if (t->kind == DC_ATOM_AXIS)
        return set[t->axis];
    return t->kind == DC_ATOM_VALUE ? dc_vx_uses_any(k, t->value, set)
                                    : dc_ix_uses_any(k, t->of, set);
}

static bool atom_loads(const dc_kernel *k, dc_atom atom)
{
    const dc_atom_node *t = &k->atom.at[atom];
    return t->kind == DC_ATOM_VALUE || (t->kind != DC_ATOM_AXIS && dc_ix_loads(k, t->of));
}

static void push_digit(digits *d, digit x, int sign)
{
    const span s = span_of(sign * x.coef, x.lo, x.hi);
    x.least = s.lo;
    x.most = s.hi;
    d->at[d->n++] = x;
}

static bool is_tested(const query *q, int side, dc_ix sum)
{
    for (int t = 0; t < 2; t++)
        for (uint32_t i = 0; i < q->test[side][t].n; i++)
            if (q->test[side][t].range[i].ix == sum)
                return true;
    return false;
}

/* Sums that are tested, but for `but`, become digits; what is left of the position. */
static dc_ix take_sums(query *q, digits *d, dc_ix at, int side, dc_ix but)
{
    dc_kernel *k = q->v->k;
    for (int t = 0; t < 2; t++)
        for (uint32_t i = 0; i < q->test[side][t].n; i++) {
            const dc_range r = q->test[side][t].range[i];
            const bool own = dc_ix_uses_any(k, r.ix, q->own);
            const span s = tested(k, r);
            int64_t times;
            if (r.ix == but || s.lo > s.hi || (!own && !dc_ix_uses_any(k, r.ix, q->moves)) ||
                (q->whole == SHARED_SUMS && !is_tested(q, 1 - side, r.ix)))
                continue;
            const dc_ix rest = take_out(k, at, r.ix, &times);
            if (rest == 0)
                continue;
            push_digit(d, (digit){.coef = times, .lo = s.lo, .hi = s.hi, .sum = own ? r.ix : 0},
                       side == 0 ? 1 : -1);
            at = rest;
        }
    return at;
}

static digits digits_of(query *q, dc_ix at, int side, dc_ix but)
{
    dc_kernel *k = q->v->k;
    const uint32_t room = k->ix.at[at].n + q->test[side][0].n + q->test[side][1].n;
    digits d = {.at = DC_NEW_ARRAY(q->v->tmp, digit, room),
                .common = DC_NEW_ARRAY(q->v->tmp, dc_term, room)};
    if (q->whole != NO_SUMS)
        at = take_sums(q, &d, at, side, but);
    const dc_ix_node *x = &k->ix.at[at];
    d.c = x->c;
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_term t = x->term[i];
        const dc_atom_node *atom = &k->atom.at[t.atom];
        const bool differs = atom_uses(k, t.atom, q->moves), is = atom_uses(k, t.atom, q->own);
        const bool moves = atom_loads(k, t.atom) || (differs && !(is && q->mixed));
        const bool own = !moves && is;
        q->any_mixed |= differs && is;
        if (moves || own)
            push_digit(
                &d,
                (digit){.coef = t.coef, .lo = atom->lo, .hi = atom->hi, .atom = own ? t.atom : 0},
                side == 0 ? 1 : -1);
        else
            d.common[d.ncommon++] = t;
    }
    return d;
}

static bool same_common(const digits *f, const digits *g)
{
    if (f->ncommon != g->ncommon)
        return false;
    for (uint32_t i = 0; i < f->ncommon; i++)
        if (f->common[i].atom != g->common[i].atom || f->common[i].coef != g->common[i].coef)
            return false;
    return true;
}

/* The digits of f - g; those with the loop's axis in them have to be in both. */
static bool subtract(query *q, const digits *f, const digits *g, digits *out)
{
    uint32_t pairs = 0, own = 0;
    *out = (digits){.at = DC_NEW_ARRAY(q->v->tmp, digit, f->n + g->n), .c = f->c - g->c};
    for (uint32_t i = 0; i < g->n; i++) {
        own += g->at[i].atom != 0 || g->at[i].sum != 0;
        if (g->at[i].atom == 0 && g->at[i].sum == 0)
            out->at[out->n++] = g->at[i];
    }
    for (uint32_t i = 0; i < f->n; i++) {
        digit x = f->at[i];
        if (x.atom != 0 || x.sum != 0) {
            uint32_t j = 0;
            while (j < g->n &&
                   (g->at[j].atom != x.atom || g->at[j].sum != x.sum || g->at[j].coef != x.coef))
                j++;
            if (j == g->n)
                return false;
            pairs++;
            x.most = llabs(x.coef) * (x.hi - x.lo);
            x.least = -x.most;
        }
        out->at[out->n++] = x;
    }
    return pairs == own && same_common(f, g);
}

/* Groups ------------------------------------------------------------------------------------- */

static int by_coef(const void *a, const void *b)
{
    const int64_t x = llabs(((const digit *)a)->coef), y = llabs(((const digit *)b)->coef);
    return x < y ? -1 : x > y;
}

static int64_t furthest(int64_t lo, int64_t hi)
{
    return dc_max_i64(-lo, hi);
}

/* By digit: the least that it and all larger ones can make but 0. */
static int64_t *least_of(query *q, const digits *d)
{
    int64_t *least = DC_NEW_ARRAY(q->v->tmp, int64_t, d->n + 1), step = 0;
    least[d->n] = INT64_MAX;
    for (uint32_t i = d->n; i-- > 0;) {
        const int64_t coef = llabs(d->at[i].coef);
        step = dc_gcd_i64(coef, step);
        least[i] = dc_min_i64(coef, least[i + 1] - furthest(d->at[i].least, d->at[i].most));
        least[i] = dc_max_i64(least[i], step);
    }
    return least;
}

static void find_digits(query *q, digits *d, int64_t lo, int64_t hi, int depth);

static bool is_found(const query *q, dc_atom atom)
{
    for (uint32_t n = 0; n < q->nfound; n++)
        if (q->found[n] == atom)
            return true;
    return false;
}

/* The sum is the same in both accesses if they meet. */
static void find_inside(query *q, dc_ix sum, int depth)
{
    const digits f = digits_of(q, sum, 0, sum), g = digits_of(q, sum, 1, sum);
    digits inside;
    if (subtract(q, &f, &g, &inside))
        find_digits(q, &inside, 0, 0, depth + 1);
}

/* The digit is the same in both accesses if they meet. */
static void found(query *q, const digit *x, int depth)
{
    if (x->atom != 0 && !is_found(q, x->atom))
        q->found[q->nfound++] = x->atom;
    if (x->sum != 0 && depth < MAX_DEPTH)
        find_inside(q, x->sum, depth);
}

/* lo..hi: what else is in the difference. */
static void find_digits(query *q, digits *d, int64_t lo, int64_t hi, int depth)
{
    if (d->n == 0)
        return;
    qsort(d->at, d->n, sizeof *d->at, by_coef);
    const int64_t *least = least_of(q, d);
    bool alone = furthest(lo, hi) < least[0]; /* nothing in the group but the digit at hand */
    if (alone)
        lo = hi = 0;
    for (uint32_t i = 0; i < d->n; i++) {
        lo += d->at[i].least;
        hi += d->at[i].most;
        const bool ends = i + 1 == d->n || furthest(lo, hi) < least[i + 1];
        if (ends && alone)
            found(q, &d->at[i], depth);
        if (ends)
            lo = hi = 0;
        alone = ends;
    }
}

/* Iterations --------------------------------------------------------------------------------- */

/* Value of an expression of one axis. */
static int64_t value_at(const dc_kernel *k, dc_ix a, int64_t axis);

static int64_t atom_at(const dc_kernel *k, dc_atom atom, int64_t axis)
{
    const dc_atom_node *t = &k->atom.at[atom];
    if (t->kind == DC_ATOM_AXIS)
        return axis;
    const int64_t of = value_at(k, t->of, axis), quotient = dc_floor_div(of, t->k);
    return t->kind == DC_ATOM_DIV ? quotient : of - quotient * t->k;
}

static int64_t value_at(const dc_kernel *k, dc_ix a, int64_t axis)
{
    const dc_ix_node *x = &k->ix.at[a];
    int64_t sum = x->c;
    for (uint32_t i = 0; i < x->n; i++)
        sum += x->term[i].coef * atom_at(k, x->term[i].atom, axis);
    return sum;
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Terms of the sum that use the axis and are not found; one of them in *atom. */
static uint32_t unknown_in(const query *q, dc_ix a, dc_atom *atom)
{
    const dc_kernel *k = q->v->k;
    const dc_ix_node *x = &k->ix.at[a];
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n; i++)
        if (atom_uses(k, x->term[i].atom, q->own) && !is_found(q, x->term[i].atom)) {
            *atom = x->term[i].atom;
            n++;
        }
    return n;
}

static bool is_known(const query *q, dc_ix a)
{
    dc_atom atom;
    return unknown_in(q, a, &atom) == 0;
}

/* A sum with a quotient e / c in it is (c * the rest + e) / c: what is divided, 0 where there is none. */
static dc_ix over_divisor(dc_kernel *k, dc_ix a, int64_t *c)
{
    const dc_ix_node x = k->ix.at[a];
    for (uint32_t i = 0; i < x.n; i++) {
        const dc_atom_node t = k->atom.at[x.term[i].atom];
        if (t.kind != DC_ATOM_DIV || x.term[i].coef != 1)
            continue;
        const dc_ix rest = dc_ix_add(k, a, dc_ix_mul(k, dc_ix_div(k, t.of, t.k), -1));
        *c = t.k;
        return dc_ix_add(k, dc_ix_mul(k, rest, t.k), t.of);
    }
    return 0;
}

/* The quotient that a remainder stands beside is written in one of two ways: (16 * o + i / 16) / 6 is (256 * o + i) / 96. */
static dc_ix quotient_of(const query *q, dc_atom_node remainder,
                         bool (*is)(const query *q, dc_ix a))
{
    dc_kernel *k = q->v->k;
    int64_t c = 1;
    const dc_ix plain = dc_ix_div(k, remainder.of, remainder.k);
    const dc_ix over = is(q, plain) ? 0 : over_divisor(k, remainder.of, &c);
    return over == 0 ? plain : dc_ix_div(k, over, c * remainder.k);
}

/*
 * A remainder that is found and the quotient beside it make the sum that they are of; what alone is
 * not known of that sum is found, too. True where it is the axis itself.
 */
static bool join_digits(query *q)
{
    dc_kernel *k = q->v->k;
    for (uint32_t n = 0; n < q->nfound; n++) {
        const dc_atom_node t = k->atom.at[q->found[n]];
        dc_atom atom;
        if (t.kind != DC_ATOM_MOD || !is_known(q, quotient_of(q, t, is_known)) ||
            unknown_in(q, t.of, &atom) != 1)
            continue;
        if (k->atom.at[atom].kind == DC_ATOM_AXIS)
            return true;
        q->found[q->nfound++] = atom;
        n = UINT32_MAX; /* once more, from the first */
    }
    return false;
}

/* Is all found that may differ between the accesses? */
static bool all_found(const query *q, dc_ix a)
{
    const dc_kernel *k = q->v->k;
    const dc_ix_node *x = &k->ix.at[a];
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom atom = x->term[i].atom;
        if ((atom_loads(k, atom) || atom_uses(k, atom, q->own) || atom_uses(k, atom, q->moves)) &&
            !is_found(q, atom))
            return false;
    }
    return true;
}

/* The same where the sum has other axes in it that differ: its digits tell which of it is the same in both. */
static void join_mixed(query *q)
{
    dc_kernel *k = q->v->k;
    for (uint32_t n = 0; n < q->nfound; n++) {
        const dc_atom_node t = k->atom.at[q->found[n]];
        const uint32_t before = q->nfound;
        if (t.kind == DC_ATOM_MOD && all_found(q, quotient_of(q, t, all_found)))
            find_inside(q, t.of, 0);
        if (q->nfound > before)
            n = UINT32_MAX; /* once more, from the first */
    }
}

/* Only those that depend on nothing but the axis, so that they can be counted. */
static void keep_countable(query *q)
{
    const dc_kernel *k = q->v->k;
    bool *others = dc_nest_axis_set(q->v);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < k->axis.n; i++)
        others[i] = i != q->axis;
    for (uint32_t n = 0; n < q->nfound; n++)
        if (!atom_uses(k, q->found[n], others))
            q->found[kept++] = q->found[n];
    q->nfound = kept;
}

/* Do the digits found differ between any two iterations? */
static bool tell_apart(query *q)
{
    const dc_kernel *k = q->v->k;
    const int64_t extent = k->axis.at[q->axis].extent;
    int64_t room = 1;
    if (q->mixed)
        join_mixed(q);
    else if (join_digits(q))
        return true;
    keep_countable(q);
    for (uint32_t n = 0; n < q->nfound; n++) {
        const dc_atom_node *t = &k->atom.at[q->found[n]];
        if (t->kind == DC_ATOM_AXIS)
            return true;
        if (t->hi - t->lo >= (INT64_C(1) << 60) / room)
            return false;
        room *= t->hi - t->lo + 1;
    }
    if (q->nfound == 0 || extent > MAX_COUNTED)
        return false;
    int64_t *at = DC_NEW_ARRAY(q->v->tmp, int64_t, extent);
    for (int64_t i = 0; i < extent; i++)
        for (uint32_t n = 0; n < q->nfound; n++) {
            const dc_atom_node *t = &k->atom.at[q->found[n]];
            at[i] = at[i] * (t->hi - t->lo + 1) + atom_at(k, q->found[n], i) - t->lo;
        }
    qsort(at, (size_t)extent, sizeof *at, by_value);
    for (int64_t i = 1; i < extent; i++)
        if (at[i] == at[i - 1])
            return false;
    return true;
}

/*
 * Can the difference not be 0, whatever the digits are? Where the smaller digits and what else there is make less together
 * than the least that the others can make but 0, they have to be 0 by themselves: 2 x + 1 is not, nor is 2 x + 8 for an x
 * from -3 to 3, whatever a multiple of 128 is added.
 */
static bool never_meet(query *q, digits *d, int64_t lo, int64_t hi)
{
    const bool one = lo == hi;
    const int64_t c = lo;
    int64_t step = 0;
    if (lo <= 0 && hi >= 0)
        return false;
    qsort(d->at, d->n, sizeof *d->at, by_coef);
    const int64_t *least = least_of(q, d);
    for (uint32_t i = 0;; i++) {
        if (furthest(lo, hi) < least[i] && (lo > 0 || hi < 0 || (one && step > 0 && c % step != 0)))
            return true;
        if (i == d->n)
            return false;
        step = dc_gcd_i64(llabs(d->at[i].coef), step);
        lo += d->at[i].least;
        hi += d->at[i].most;
    }
}

static bool is_apart(query *q, const dc_access *a, const dc_access *b)
{
    const digits f = digits_of(q, a->at, 0, 0), g = digits_of(q, b->at, 1, 0);
    digits d;
    if (!subtract(q, &f, &g, &d))
        return false;
    const int64_t lo = d.c + a->lo - b->hi, hi = d.c + a->hi - b->lo;
    if (never_meet(q, &d, lo, hi))
        return true;
    q->nfound = 0;
    q->found = DC_NEW_ARRAY(q->v->tmp, dc_atom, q->v->k->atom.n * (MAX_DEPTH + 1));
    find_digits(q, &d, lo, hi, 0);
    return tell_apart(q);
}

/* Does the access happen in the first iteration of the axis alone? */
static bool only_first(const dc_access *x, dc_ix axis)
{
    const dc_pred tests = dc_access_tests(x);
    for (uint32_t i = 0; i < tests.n; i++)
        if (tests.range[i].ix == axis && tests.range[i].n == 1)
            return true;
    for (uint32_t i = 0; i < x->pred.n; i++)
        if (x->pred.range[i].ix == axis && x->pred.range[i].n == 1)
            return true;
    return false;
}

bool dc_access_apart(dc_nest_edit *v, const dc_access *a, const dc_access *b, uint32_t axis,
                     const bool *moves)
{
    const dc_ix number = dc_ix_axis(v->k, axis);
    if (only_first(a, number) && only_first(b, number))
        return true;
    const dc_mark mark = dc_arena_mark(v->tmp);
    bool *own = dc_nest_axis_set(v), is = false;
    own[axis] = true;
    query q = {.v = v,
               .axis = axis,
               .own = own,
               .moves = moves,
               .test = {{dc_access_tests(a), a->pred}, {dc_access_tests(b), b->pred}}};
    for (int how = 0; how < 2 * SUMS && !is && (how < SUMS || q.any_mixed); how++) {
        q.whole = how % SUMS;
        q.mixed = how >= SUMS;
        is = is_apart(&q, a, b);
    }
    dc_arena_rewind(v->tmp, mark);
    return is;
}

bool dc_nest_distinct(dc_nest_edit *v, dc_ix at, dc_pred p, uint32_t axis, const bool *with)
{
    bool *moves = dc_nest_axis_set(v);
    for (uint32_t i = 0; i < v->k->axis.n; i++)
        moves[i] = with[i] && i != axis;
    dc_stmt stmt = {.pred = p};
    const dc_access x = {.at = at, .stmt = &stmt};
    return v->k->axis.at[axis].extent < 2 || dc_access_apart(v, &x, &x, axis, moves);
}
