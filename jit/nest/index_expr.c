/*
 * Index expressions: sums of atoms, kept canonical (jit/nest/nest.h).
 *
 * Everything rests on three rewrites, all exact for floor semantics:
 *   (m*q + r) / m = q  and  (m*q + r) % m = r     where 0 <= r < m by ranges
 *   (g*y + s) / (g*m) = y / m                     where 0 <= s < g
 *   m * (x / m) + x % m = x                       when a sum is put together
 * They undo the division and remainder that reshape introduces wherever the shapes allow it.
 */
#include "jit/nest/hash_cons.h"
#include "jit/nest/nest.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TERMS = 64 };

typedef struct sum { /* being built; the canonical form is made by seal() */
    int64_t c;
    uint32_t n;
    dc_term t[MAX_TERMS];
} sum;

static const dc_ix_node *ix_at(const dc_kernel *k, dc_ix a)
{
    DC_ASSERT(a > 0 && a < k->ix.n, "index expression %u of %u", a, k->ix.n);
    return &k->ix.at[a];
}

/* Hash-consing ------------------------------------------------------------------------------ */

static uint64_t ix_hash(const dc_ix_node *x)
{
    uint64_t h = dc_hash_mix(1, (uint64_t)x->c);
    for (uint32_t i = 0; i < x->n; i++)
        h = dc_hash_mix(dc_hash_mix(h, x->term[i].atom), (uint64_t)x->term[i].coef);
    return h;
}

static bool ix_same(const dc_ix_node *a, const dc_ix_node *b)
{
    if (a->c != b->c || a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->term[i].atom != b->term[i].atom || a->term[i].coef != b->term[i].coef)
            return false;
    return true;
}

void dc_hash_cons_insert(dc_hash_cons *c, uint64_t hash, uint32_t ref)
{
    for (uint32_t i = (uint32_t)hash & (c->nslot - 1);; i = (i + 1) & (c->nslot - 1))
        if (c->slot[i] == 0) {
            c->slot[i] = ref;
            c->used++;
            return;
        }
}

bool dc_hash_cons_reserve(dc_kernel *k, dc_hash_cons *c)
{
    if (c->used * 2 < c->nslot)
        return false;
    c->nslot = c->nslot ? c->nslot * 2 : 64;
    c->slot = DC_NEW_ARRAY(&k->arena, uint32_t, c->nslot);
    c->used = 0;
    return true;
}

/* Does a hold all of b? */
static bool axes_hold(dc_axes a, dc_axes b)
{
    for (uint32_t i = 0; i < b.nword; i++)
        if ((b.word[i] & ~(i < a.nword ? a.word[i] : 0)) != 0)
            return false;
    return true;
}

dc_axes dc_axes_join(dc_kernel *k, dc_axes a, dc_axes b)
{
    if (axes_hold(a, b))
        return a;
    if (axes_hold(b, a))
        return b;
    const uint32_t n = a.nword > b.nword ? a.nword : b.nword;
    uint64_t *word = DC_NEW_ARRAY(&k->arena, uint64_t, n);
    for (uint32_t i = 0; i < n; i++)
        word[i] = (i < a.nword ? a.word[i] : 0) | (i < b.nword ? b.word[i] : 0);
    return (dc_axes){n, word};
}

static dc_axes axes_of(dc_kernel *k, const dc_ix_node *x)
{
    dc_axes all = {0};
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *a = &k->atom.at[x->term[i].atom];
        uint64_t *word;
        switch ((dc_atom_kind)a->kind) {
        case DC_ATOM_AXIS:
            if (dc_axes_has(all, a->axis))
                break;
            word = DC_NEW_ARRAY(&k->arena, uint64_t, a->axis / 64 + 1);
            word[a->axis / 64] = (uint64_t)1 << a->axis % 64;
            all = dc_axes_join(k, all, (dc_axes){a->axis / 64 + 1, word});
            break;
        case DC_ATOM_DIV:
        case DC_ATOM_MOD:
            all = dc_axes_join(k, all, k->ix.at[a->of].axes);
            break;
        case DC_ATOM_VALUE:
            all = dc_axes_join(k, all, k->vx.at[a->value].axes);
            break;
        }
    }
    return all;
}

static dc_ix ix_cons(dc_kernel *k, const dc_ix_node *x)
{
    if (dc_hash_cons_reserve(k, &k->ixcons))
        for (uint32_t r = 1; r < k->ix.n; r++)
            dc_hash_cons_insert(&k->ixcons, ix_hash(&k->ix.at[r]), r);
    const uint64_t h = ix_hash(x);
    const uint32_t mask = k->ixcons.nslot - 1;
    for (uint32_t i = (uint32_t)h & mask; k->ixcons.slot[i] != 0; i = (i + 1) & mask)
        if (ix_same(&k->ix.at[k->ixcons.slot[i]], x))
            return k->ixcons.slot[i];
    dc_ix_node kept = *x;
    dc_term *term = DC_NEW_ARRAY(&k->arena, dc_term, x->n);
    if (x->n > 0)
        memcpy(term, x->term, x->n * sizeof *term);
    kept.term = term;
    kept.axes = axes_of(k, &kept);
    DC_PUSH_IN(&k->arena, k->ix, kept);
    dc_hash_cons_insert(&k->ixcons, h, k->ix.n - 1);
    return k->ix.n - 1;
}

static uint64_t atom_hash(const dc_atom_node *a)
{
    uint64_t h = dc_hash_mix(a->kind, a->axis);
    return dc_hash_mix(dc_hash_mix(dc_hash_mix(h, a->of), (uint64_t)a->k), a->value);
}

static dc_atom atom_cons(dc_kernel *k, const dc_atom_node *a)
{
    if (dc_hash_cons_reserve(k, &k->atomcons))
        for (uint32_t r = 1; r < k->atom.n; r++)
            dc_hash_cons_insert(&k->atomcons, atom_hash(&k->atom.at[r]), r);
    const uint64_t h = atom_hash(a);
    const uint32_t mask = k->atomcons.nslot - 1;
    for (uint32_t i = (uint32_t)h & mask; k->atomcons.slot[i] != 0; i = (i + 1) & mask) {
        const dc_atom_node *b = &k->atom.at[k->atomcons.slot[i]];
        if (a->kind == b->kind && a->axis == b->axis && a->of == b->of && a->k == b->k &&
            a->value == b->value)
            return k->atomcons.slot[i];
    }
    DC_PUSH_IN(&k->arena, k->atom, *a);
    dc_hash_cons_insert(&k->atomcons, h, k->atom.n - 1);
    return k->atom.n - 1;
}

/* Sums -------------------------------------------------------------------------------------- */

static void add_term(sum *s, dc_atom atom, int64_t coef)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->t[i].atom == atom) {
            s->t[i].coef += coef;
            if (s->t[i].coef == 0)
                s->t[i] = s->t[--s->n];
            return;
        }
    if (coef == 0)
        return;
    if (s->n == MAX_TERMS)
        DC_BUG("index expression of more than %d terms", MAX_TERMS);
    s->t[s->n++] = (dc_term){atom, coef};
}

static void add_sum(sum *s, const dc_ix_node *x, int64_t times)
{
    s->c += x->c * times;
    for (uint32_t i = 0; i < x->n; i++)
        add_term(s, x->term[i].atom, x->term[i].coef * times);
}

static int find_term(const sum *s, dc_atom atom)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->t[i].atom == atom)
            return (int)i;
    return -1;
}

/* c*m * (x/m) + c * (x%m) becomes c * x. One pair per call; false when there is none. */
static bool join_div_mod(dc_kernel *k, sum *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const dc_atom_node a = k->atom.at[s->t[i].atom];
        const int64_t coef = s->t[i].coef;
        if (a.kind != DC_ATOM_MOD)
            continue;
        const dc_ix_node quotient = *ix_at(k, dc_ix_div(k, a.of, a.k));
        if (quotient.n != 1 || quotient.c != 0 || quotient.term[0].coef != 1)
            continue;
        const int j = find_term(s, quotient.term[0].atom);
        if (j < 0 || s->t[j].coef != coef * a.k || s->n + ix_at(k, a.of)->n > MAX_TERMS)
            continue;
        const dc_atom div = s->t[j].atom, mod = s->t[i].atom;
        add_term(s, div, -coef * a.k);
        add_term(s, mod, -coef);
        add_sum(s, ix_at(k, a.of), coef);
        return true;
    }
    return false;
}

static int by_atom(const void *a, const void *b)
{
    const dc_atom x = ((const dc_term *)a)->atom, y = ((const dc_term *)b)->atom;
    return x < y ? -1 : x > y;
}

static void range_of(const dc_kernel *k, const sum *s, int64_t *lo, int64_t *hi)
{
    *lo = *hi = s->c;
    for (uint32_t i = 0; i < s->n; i++) {
        const dc_atom_node *a = &k->atom.at[s->t[i].atom];
        const int64_t x = s->t[i].coef * a->lo, y = s->t[i].coef * a->hi;
        *lo += x < y ? x : y;
        *hi += x < y ? y : x;
    }
}

static dc_ix seal(dc_kernel *k, sum *s)
{
    while (join_div_mod(k, s))
        continue;
    qsort(s->t, s->n, sizeof s->t[0], by_atom);
    dc_ix_node x = {.c = s->c, .n = s->n, .term = s->t};
    range_of(k, s, &x.lo, &x.hi);
    return ix_cons(k, &x);
}

dc_ix dc_ix_const(dc_kernel *k, int64_t c)
{
    sum s = {.c = c};
    return seal(k, &s);
}

dc_ix dc_ix_axis(dc_kernel *k, uint32_t axis)
{
    const int64_t extent = k->axis.at[axis].extent;
    if (extent <= 1)
        return dc_ix_const(k, 0);
    const dc_atom_node a = {.kind = DC_ATOM_AXIS, .axis = axis, .lo = 0, .hi = extent - 1};
    sum s = {0};
    add_term(&s, atom_cons(k, &a), 1);
    return seal(k, &s);
}

dc_ix dc_ix_add(dc_kernel *k, dc_ix a, dc_ix b)
{
    sum s = {0};
    add_sum(&s, ix_at(k, a), 1);
    add_sum(&s, ix_at(k, b), 1);
    return seal(k, &s);
}

dc_ix dc_ix_mul(dc_kernel *k, dc_ix a, int64_t c)
{
    sum s = {0};
    if (c != 0)
        add_sum(&s, ix_at(k, a), c);
    return seal(k, &s);
}

/* Division and remainder -------------------------------------------------------------------- */

/* a = m * whole + rest, the constant of rest in 0..m-1. */
static void split_by(const dc_ix_node *a, int64_t m, sum *whole, sum *rest)
{
    *whole = (sum){.c = dc_floor_div(a->c, m)};
    *rest = (sum){.c = a->c - m * dc_floor_div(a->c, m)};
    for (uint32_t i = 0; i < a->n; i++) {
        const dc_term t = a->term[i];
        if (t.coef % m == 0)
            add_term(whole, t.atom, t.coef / m);
        else
            add_term(rest, t.atom, t.coef);
    }
}

/*
 * Looks for a divisor g > 1 of m such that rest = g*big + small with 0 <= small < g. Returns g, or
 * 0 when there is none.
 */
static int64_t common_step(const dc_kernel *k, const sum *rest, int64_t m, sum *big, sum *small)
{
    for (uint32_t i = 0; i < rest->n; i++) {
        const int64_t g = llabs(rest->t[i].coef);
        if (g <= 1 || m % g != 0)
            continue;
        *big = (sum){.c = dc_floor_div(rest->c, g)};
        *small = (sum){.c = rest->c - g * dc_floor_div(rest->c, g)};
        for (uint32_t j = 0; j < rest->n; j++) {
            const dc_term t = rest->t[j];
            if (t.coef % g == 0)
                add_term(big, t.atom, t.coef / g);
            else
                add_term(small, t.atom, t.coef);
        }
        int64_t lo, hi;
        range_of(k, small, &lo, &hi);
        if (lo >= 0 && hi < g)
            return g;
    }
    return 0;
}

static dc_ix atom_ix(dc_kernel *k, dc_atom_kind kind, sum *of, int64_t m, sum *plus)
{
    int64_t lo, hi;
    range_of(k, of, &lo, &hi);
    dc_atom_node a = {.kind = (uint8_t)kind, .of = seal(k, of), .k = m, .lo = 0, .hi = m - 1};
    if (kind == DC_ATOM_DIV) {
        a.lo = dc_floor_div(lo, m);
        a.hi = dc_floor_div(hi, m);
    }
    add_term(plus, atom_cons(k, &a), 1);
    return seal(k, plus);
}

dc_ix dc_ix_div(dc_kernel *k, dc_ix a, int64_t m)
{
    DC_ASSERT(m > 0, "division by %lld", (long long)m);
    if (m == 1)
        return a;
    sum whole, rest, big, small;
    int64_t lo, hi;
    const dc_ix_node x = *ix_at(k, a);
    split_by(&x, m, &whole, &rest);
    range_of(k, &rest, &lo, &hi);
    if (dc_floor_div(lo, m) == dc_floor_div(hi, m)) {
        whole.c += dc_floor_div(lo, m);
        return seal(k, &whole);
    }
    const int64_t g = common_step(k, &rest, m, &big, &small);
    if (g > 1)
        return dc_ix_add(k, seal(k, &whole), dc_ix_div(k, seal(k, &big), m / g));
    if (rest.n == 1 && rest.c == 0 && rest.t[0].coef == 1) {
        const dc_atom_node inner = k->atom.at[rest.t[0].atom];
        int64_t both;
        if (inner.kind == DC_ATOM_DIV && dc_mul_ok(inner.k, m, &both))
            return dc_ix_add(k, seal(k, &whole), dc_ix_div(k, inner.of, both));
    }
    return atom_ix(k, DC_ATOM_DIV, &rest, m, &whole);
}

dc_ix dc_ix_mod(dc_kernel *k, dc_ix a, int64_t m)
{
    DC_ASSERT(m > 0, "remainder by %lld", (long long)m);
    if (m == 1)
        return dc_ix_const(k, 0);
    sum whole, rest, big, small, none = {0};
    int64_t lo, hi;
    const dc_ix_node x = *ix_at(k, a);
    split_by(&x, m, &whole, &rest);
    range_of(k, &rest, &lo, &hi);
    if (dc_floor_div(lo, m) == dc_floor_div(hi, m)) {
        rest.c -= m * dc_floor_div(lo, m);
        return seal(k, &rest);
    }
    const int64_t g = common_step(k, &rest, m, &big, &small);
    if (g > 1)
        return dc_ix_add(k, dc_ix_mul(k, dc_ix_mod(k, seal(k, &big), m / g), g), seal(k, &small));
    if (rest.n == 1 && rest.c == 0 && rest.t[0].coef == 1) {
        const dc_atom_node inner = k->atom.at[rest.t[0].atom];
        if (inner.kind == DC_ATOM_MOD && inner.k % m == 0)
            return dc_ix_mod(k, inner.of, m);
    }
    return atom_ix(k, DC_ATOM_MOD, &rest, m, &none);
}

/* Loaded integers --------------------------------------------------------------------------- */

/*
 * Of 64 bits: no axis is that long, and sums of ranges stay within int64_t. A stage that uses one
 * as an index has clamped it to its axis by minimum and maximum, or tests it as a number of 64 bits.
 */
enum { MAX_LOADED_BITS = 48 };

static bool value_range(const dc_kernel *k, dc_vx v, int depth, int64_t *lo, int64_t *hi)
{
    const dc_vx_node *n = &k->vx.at[v];
    const dc_dtype t = (dc_dtype)n->dtype;
    if (dc_dtype_is_float(t))
        return false;
    const int bits = t == DC_BOOL ? 1 : dc_dtype_bits(t);
    const bool sign = dc_dtype_kind(t) == DC_KIND_SINT;
    *hi = ((int64_t)1 << dc_min_i64(sign ? bits - 1 : bits, MAX_LOADED_BITS)) - 1;
    *lo = sign ? -*hi - 1 : 0;
    if (n->kind == DC_VX_CONST) {
        *lo = *hi = (int64_t)n->bits;
    } else if (n->kind == DC_VX_OP && (n->op == DC_OP_MAX || n->op == DC_OP_MIN) && depth > 0) {
        int64_t l[2], h[2];
        for (int i = 0; i < 2; i++)
            value_range(k, n->in[i], depth - 1, &l[i], &h[i]);
        const bool max = n->op == DC_OP_MAX;
        *lo = max ? dc_max_i64(l[0], l[1]) : dc_min_i64(l[0], l[1]);
        *hi = max ? dc_max_i64(h[0], h[1]) : dc_min_i64(h[0], h[1]);
    } else if (n->kind == DC_VX_OP && n->op == DC_OP_CAST && depth > 0) {
        int64_t l, h; /* of what is not cut */
        if (value_range(k, n->in[0], depth - 1, &l, &h) && l >= *lo && h <= *hi) {
            *lo = l;
            *hi = h;
        }
    }
    return true;
}

bool dc_vx_range(const dc_kernel *k, dc_vx v, int64_t *lo, int64_t *hi)
{
    return value_range(k, v, 4, lo, hi);
}

dc_ix dc_ix_value(dc_kernel *k, dc_vx v)
{
    dc_atom_node a = {.kind = DC_ATOM_VALUE, .value = v};
    sum s = {0};
    if (!dc_vx_range(k, v, &a.lo, &a.hi))
        DC_BUG("a float as index");
    add_term(&s, atom_cons(k, &a), 1);
    return seal(k, &s);
}

/* Questions --------------------------------------------------------------------------------- */

bool dc_ix_is_const(const dc_kernel *k, dc_ix a, int64_t *c)
{
    const dc_ix_node *x = ix_at(k, a);
    if (x->n != 0)
        return false;
    *c = x->c;
    return true;
}

static bool atom_uses(const dc_kernel *k, dc_atom atom, uint32_t axis)
{
    const dc_atom_node *a = &k->atom.at[atom];
    if (a->kind == DC_ATOM_AXIS)
        return a->axis == axis;
    return dc_axes_has(a->kind == DC_ATOM_VALUE ? k->vx.at[a->value].axes : k->ix.at[a->of].axes,
                       axis);
}

bool dc_ix_any_value(const dc_kernel *k)
{
    for (uint32_t a = 0; a < k->atom.n; a++)
        if (k->atom.at[a].kind == DC_ATOM_VALUE)
            return true;
    return false;
}

bool dc_ix_uses(const dc_kernel *k, dc_ix a, uint32_t axis)
{
    return dc_axes_has(ix_at(k, a)->axes, axis);
}

int64_t dc_ix_stride(const dc_kernel *k, dc_ix a, uint32_t axis, bool *affine)
{
    const dc_ix_node *x = ix_at(k, a);
    int64_t stride = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *at = &k->atom.at[x->term[i].atom];
        if (at->kind == DC_ATOM_AXIS && at->axis == axis)
            stride += x->term[i].coef;
        else if (at->kind != DC_ATOM_AXIS && atom_uses(k, x->term[i].atom, axis))
            *affine = false;
    }
    return stride;
}

/* Substitution ------------------------------------------------------------------------------ */

static dc_ix subst_atom(dc_subst *s, dc_atom atom)
{
    dc_kernel *k = s->k;
    const dc_atom_node a = k->atom.at[atom];
    switch ((dc_atom_kind)a.kind) {
    case DC_ATOM_AXIS:
        return a.axis == s->axis ? s->to : dc_ix_axis(k, a.axis);
    case DC_ATOM_DIV:
        return dc_ix_div(k, dc_subst_ix(s, a.of), a.k);
    case DC_ATOM_MOD:
        return dc_ix_mod(k, dc_subst_ix(s, a.of), a.k);
    case DC_ATOM_VALUE: {
        dc_atom_node moved = a;
        moved.value = dc_subst_vx(s, a.value);
        sum one = {0};
        add_term(&one, atom_cons(k, &moved), 1);
        return seal(k, &one);
    }
    }
    DC_BUG("atom of kind %d", a.kind);
}

dc_ix dc_subst_ix(dc_subst *s, dc_ix a)
{
    if (a == 0)
        return 0;
    if (a < s->nix && s->ixmap[a] != 0)
        return s->ixmap[a];
    const dc_ix_node x = *ix_at(s->k, a);
    dc_ix out = dc_ix_const(s->k, x.c);
    for (uint32_t i = 0; i < x.n; i++)
        out = dc_ix_add(s->k, out, dc_ix_mul(s->k, subst_atom(s, x.term[i].atom), x.term[i].coef));
    if (a < s->nix)
        s->ixmap[a] = out;
    return out;
}
