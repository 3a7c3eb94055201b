/*
 * core/base/extent.c: random expressions over variables against the same arithmetic on numbers, for all values of
 * the variables; equal ones have equal codes; what the table refuses; texts.
 *
 *   test_extent [seed]
 */
#include "tests/t.h"

#include "core/base/extent.h"
#include "core/base/job.h"

#include <string.h>

#include "tests/unit/rng.h"

enum { VARS = 3, SPAN = 6, VALUES = SPAN * SPAN * SPAN, POOL = 40, TABLES = 150 };

static dc_extents *table;
static int64_t var[VARS], low[VARS], high[VARS];
static int64_t point[VALUES][VARS]; /* all values of the variables, */
static int npoint;                  /* so many */
static long made, refused;

static int64_t value_at(void *ctx, int64_t code)
{
    const int64_t *p = ctx;
    for (int v = 0; v < VARS; v++)
        if (var[v] == code)
            return p[v];
    CHECK(!"a variable of the table");
    return 0;
}

static void open_table(rng *r)
{
    static const char *const name[VARS] = {"n", "m", "t"};
    static const int64_t least[3] = {0, 1, 3};
    table = dc_extents_new();
    npoint = 1;
    for (int v = 0; v < VARS; v++) {
        low[v] = least[rng_below(r, 3)];
        high[v] = low[v] + rng_below(r, SPAN);
        high[v] += high[v] == 0;
        var[v] = dc_extent_var(table, name[v], low[v], high[v]);
        CHECK(dc_extent_is(var[v]));
        CHECK_EQ(dc_extent_var(table, name[v], low[v], high[v]), var[v]);
        npoint *= (int)(high[v] - low[v] + 1);
    }
    for (int i = 0; i < npoint; i++)
        for (int v = 0, rest = i; v < VARS; v++) {
            const int span = (int)(high[v] - low[v] + 1);
            point[i][v] = low[v] + rest % span;
            rest /= span;
        }
}

/* ---- expressions ----------------------------------------------------------------------------- */

typedef struct expression {
    int64_t code, value[VALUES];
} expression;

static expression pool[POOL];

static int64_t floored(int64_t a, int64_t k)
{
    const int64_t q = a / k;
    return q * k > a ? q - 1 : q;
}

static const char *text_of(int64_t code)
{
    static char text[4][DC_EXTENT_TEXT];
    static int turn;
    turn = (turn + 1) % 4;
    dc_extent_print(table, code, text[turn], sizeof text[turn]);
    return text[turn];
}

/* Its value, bound and least value; a reason is printed. */
static bool is_right(const expression *x)
{
    const int64_t hi = dc_extent_bound(x->code), lo = dc_extent_lo(table, x->code);
    for (int i = 0; i < npoint; i++) {
        const int64_t v = dc_extent_eval(table, x->code, value_at, point[i]);
        if (v == x->value[i] && v >= lo && v <= hi)
            continue;
        printf("    %s is %lld, not %lld, from %lld to %lld\n", text_of(x->code), (long long)v,
               (long long)x->value[i], (long long)lo, (long long)hi);
        return false;
    }
    return !dc_extent_is(x->code) ? x->code == x->value[0] : dc_extent_known(table, x->code);
}

/* x is a OP b, of this code. */
static void compute(expression *x, char op, const expression *a, const expression *b)
{
    for (int i = 0; i < npoint; i++) {
        const int64_t p = a->value[i], q = b->value[i];
        x->value[i] = op == '+' ? p + q : op == '-' ? p - q : op == '*' ? p * q : floored(p, q);
    }
}

static expression number(int64_t n)
{
    expression x = {.code = n};
    for (int i = 0; i < npoint; i++)
        x.value[i] = n;
    return x;
}

static bool step(rng *r, expression *x)
{
    static const char ops[] = "+++---**/";
    const char op = ops[rng_below(r, 9)];
    const expression *a = &pool[rng_below(r, POOL)];
    expression b = rng_below(r, 3) == 0 ? number(1 + rng_below(r, 5)) : pool[rng_below(r, POOL)];
    if (op == '/')
        b = number(1 + rng_below(r, 5));
    x->code = op == '+'   ? dc_extent_add(table, a->code, b.code)
              : op == '-' ? dc_extent_sub(table, a->code, b.code)
              : op == '*' ? dc_extent_mul(table, a->code, b.code)
                          : dc_extent_div(table, a->code, b.code);
    if (x->code == DC_EXTENT_NONE)
        return false;
    compute(x, op, a, &b);
    if (!CHECK(is_right(x)))
        printf("    of %s %c %s\n", text_of(a->code), op, text_of(b.code));
    return true;
}

static void check_pair(const expression *a, const expression *b)
{
    const bool yes = dc_extent_at_least(table, a->code, b->code);
    bool all = true, equal = true;
    for (int i = 0; i < npoint; i++) {
        all = all && a->value[i] >= b->value[i];
        equal = equal && a->value[i] == b->value[i];
    }
    if (!CHECK(!yes || all))
        printf("    %s is not at least %s\n", text_of(a->code), text_of(b->code));
    CHECK(a->code != b->code || (yes && equal));
    if (b->code == 0)
        return;
    const int64_t q = dc_extent_quotient(table, a->code, b->code);
    for (int i = 0; i < npoint && q != DC_EXTENT_NONE; i++) {
        const int64_t v = dc_extent_eval(table, q, value_at, point[i]);
        if (!CHECK(v * b->value[i] == a->value[i])) {
            printf("    %s is no quotient of %s and %s\n", text_of(q), text_of(a->code),
                   text_of(b->code));
            return;
        }
    }
}

static void test_random(rng *r)
{
    for (int t = 0; t < TABLES; t++) {
        open_table(r);
        for (int i = 0; i < POOL; i++) {
            pool[i] = number(rng_below(r, 4));
            if (i >= VARS)
                continue;
            pool[i].code = var[i];
            for (int k = 0; k < npoint; k++)
                pool[i].value[k] = point[k][i];
        }
        for (int i = 0; i < 200; i++) {
            expression x;
            const bool ok = step(r, &x);
            made += ok;
            refused += !ok;
            if (ok && x.code < (int64_t)1 << DC_EXTENT_BIT && (x.code < 0 || x.code > 1000))
                continue;
            if (ok)
                pool[VARS + rng_below(r, POOL - VARS)] = x;
        }
        for (int i = 0; i < POOL; i++)
            for (int k = 0; k < POOL; k++)
                check_pair(&pool[i], &pool[k]);
        dc_extents_free(table);
    }
    CHECK(made > refused);
}

/* ---- one form -------------------------------------------------------------------------------- */

enum { TERMS = 6 };

static int64_t product_of(rng *r, const int64_t *term)
{
    int64_t order[3] = {term[0], term[1], term[2]};
    for (int i = 2; i > 0; i--) {
        const int k = rng_below(r, i + 1);
        const int64_t t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    return dc_extent_product(table, 3, order);
}

/* The sum of terms, each of three factors, in a random order, a part of them in brackets. */
static int64_t sum_of(rng *r, int64_t term[TERMS][3])
{
    int order[TERMS];
    int64_t sum[2] = {0, 0};
    for (int i = 0; i < TERMS; i++) {
        const int k = rng_below(r, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (int i = 0; i < TERMS; i++) {
        int64_t *to = &sum[rng_below(r, 2)];
        *to = dc_extent_add(table, *to, product_of(r, term[order[i]]));
    }
    return dc_extent_add(table, sum[0], sum[1]);
}

static void test_equal(rng *r)
{
    for (int t = 0; t < TABLES; t++) {
        int64_t term[TERMS][3];
        open_table(r);
        const int64_t half = dc_extent_div(table, dc_extent_add(table, var[0], 1), 2);
        for (int i = 0; i < TERMS; i++)
            for (int k = 0; k < 3; k++) {
                const int what = rng_below(r, 5);
                term[i][k] = what < 3 ? var[what] : what == 3 ? half : 1 + rng_below(r, 4);
            }
        const int64_t a = sum_of(r, term);
        for (int i = 0; i < 10; i++) {
            const int64_t b = sum_of(r, term);
            CHECK_EQ(a, b);
            CHECK(dc_extent_at_least(table, a, b));
            CHECK_EQ(dc_extent_sub(table, a, b), 0);
            CHECK_EQ(dc_extent_quotient(table, a, b), 1);
            /* what is put in comes out */
            CHECK_EQ(dc_extent_sub(table, dc_extent_add(table, a, var[1]), var[1]), b);
            CHECK_EQ(dc_extent_div(table, dc_extent_mul(table, a, 6), 6), b);
            CHECK_EQ(dc_extent_quotient(table, dc_extent_mul(table, a, 6), 6), b);
            CHECK_EQ(dc_extent_quotient(table, dc_extent_mul(table, a, 6), a), 6);
            const int64_t twice = dc_extent_mul(table, a, var[2]);
            if (twice != DC_EXTENT_NONE)
                CHECK_EQ(dc_extent_quotient(table, twice, var[2]), b);
        }
        dc_extents_free(table);
    }
}

/* ---- what is found ---------------------------------------------------------------------------- */

/* Positions that slices, pads and windows ask about. */
static void test_at_least(void)
{
    table = dc_extents_new();
    const int64_t n = dc_extent_var(table, "n", 3, 9), m = dc_extent_var(table, "m", 0, 4);
    const int64_t half = dc_extent_div(table, dc_extent_add(table, n, 1), 2);
    const int64_t last = dc_extent_sub(table, dc_extent_mul(table, half, 2), 1);
    CHECK(dc_extent_at_least(table, n, 3) && !dc_extent_at_least(table, n, 4));
    CHECK(dc_extent_at_least(table, 9, n) && !dc_extent_at_least(table, 8, n));
    CHECK(dc_extent_at_least(table, dc_extent_add(table, n, m), n));
    CHECK(dc_extent_at_least(table, dc_extent_mul(table, n, m), 0));
    CHECK(dc_extent_at_least(table, n, last)); /* every second one from the first */
    CHECK(!dc_extent_at_least(table, n, dc_extent_add(table, last, 1)));
    CHECK(dc_extent_at_least(table, n, dc_extent_mul(table, dc_extent_div(table, n, 4), 4)));
    CHECK(!dc_extent_at_least(table, DC_EXTENT_NONE, 0));
    CHECK(!dc_extent_at_least(table, n, DC_EXTENT_NONE));
    dc_extents_free(table);
}

/* n less its multiple of 4 is what a division leaves: at most 3. */
static void test_rests(void)
{
    table = dc_extents_new();
    const int64_t n = dc_extent_var(table, "n", 0, 9);
    const int64_t whole = dc_extent_mul(table, dc_extent_div(table, n, 4), 4);
    const int64_t rest = dc_extent_sub(table, n, whole);
    CHECK(dc_extent_at_least(table, rest, 0) && dc_extent_at_least(table, 3, rest));
    CHECK_EQ(dc_extent_bound(rest), 3);
    CHECK_EQ(dc_extent_lo(table, rest), 0);
    const int64_t half = dc_extent_div(table, n, 2), third = dc_extent_div(table, n, 3);
    CHECK(dc_extent_at_least(table, n, half));
    CHECK(dc_extent_at_least(table, dc_extent_sub(table, n, half), third));
    CHECK_EQ(dc_extent_bound(dc_extent_sub(table, n, half)), 5); /* the larger half of 9 */
    CHECK_EQ(dc_extent_lo(table, dc_extent_sub(table, n, dc_extent_mul(table, third, 2))), 0);
    dc_extents_free(table);
}

/* Of b*t - b no term tells that it is not below 0, nor that it is at most 4 * 31. */
static void test_corners(void)
{
    table = dc_extents_new();
    const int64_t b = dc_extent_var(table, "b", 1, 4), t = dc_extent_var(table, "t", 1, 32);
    const int64_t less = dc_extent_mul(table, b, dc_extent_sub(table, t, 1));
    CHECK_EQ(dc_extent_lo(table, less), 0);
    CHECK_EQ(dc_extent_bound(less), 124);
    const int64_t both =
        dc_extent_mul(table, dc_extent_sub(table, b, 1), dc_extent_sub(table, t, 1));
    CHECK_EQ(dc_extent_lo(table, both), 0);
    CHECK_EQ(dc_extent_bound(both), 93);
    CHECK(dc_extent_at_least(table, dc_extent_mul(table, b, t), b));
    dc_extents_free(table);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void test_none(void)
{
    const int64_t large = ((int64_t)1 << DC_EXTENT_SHIFT) - 1;
    int64_t sum = 0, product = 1, one[DC_EXTENT_TERMS + 1];
    table = dc_extents_new();
    CHECK_EQ(dc_extent_var(table, "a", -1, 3), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_var(table, "a", 4, 3), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_var(table, "a", 0, 0), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_var(table, "a", 0, large + 1), DC_EXTENT_NONE);
    const int64_t n = dc_extent_var(table, "n", 0, large), m = dc_extent_var(table, "m", 0, 3);
    CHECK_EQ(dc_extent_bound(n), large);
    CHECK_EQ(dc_extent_add(table, n, 1), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_mul(table, n, n), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_mul(table, n, INT64_MAX), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_sub(table, n, n), 0);
    CHECK_EQ(dc_extent_sub(table, m, 4), DC_EXTENT_NONE); /* always below 0 */
    CHECK_EQ(dc_extent_sub(table, -1, m), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_bound(dc_extent_sub(table, m, 3)), 0);
    CHECK_EQ(dc_extent_add(table, dc_extent_sub(table, m, 3), 3), m);
    CHECK_EQ(dc_extent_lo(table, dc_extent_sub(table, 0, m)), -3);
    CHECK_EQ(dc_extent_mul(table, m, 0), 0);
    CHECK_EQ(dc_extent_add(table, INT64_MAX, 1), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_mul(table, INT64_MAX, 2), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_sub(table, -2, INT64_MAX), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_add(table, (int64_t)1 << DC_EXTENT_BIT, 0), DC_EXTENT_NONE); /* of nothing */
    CHECK_EQ(dc_extent_add(NULL, 2, 3), 5);
    CHECK_EQ(dc_extent_mul(NULL, 2, 3), 6);
    CHECK_EQ(dc_extent_div(NULL, -7, 2), -4);
    CHECK_EQ(dc_extent_div(NULL, 7, 2), 3);
    CHECK_EQ(dc_extent_div(table, m, 0), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_div(table, m, -2), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_div(table, m, m), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_quotient(table, 7, 2), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_quotient(table, m, 2), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_quotient(table, m, 0), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_quotient(table, -8, 2), -4);
    for (int i = 0; i <= DC_EXTENT_TERMS; i++) {
        static const char *const name[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
        one[i] = dc_extent_var(table, name[i], 1, 2);
        sum = dc_extent_add(table, sum, one[i]);
        CHECK_EQ(sum == DC_EXTENT_NONE, i == DC_EXTENT_TERMS);
    }
    for (int i = 0; i <= DC_EXTENT_FACTORS; i++) {
        product = dc_extent_mul(table, product, one[i]);
        CHECK_EQ(product == DC_EXTENT_NONE, i == DC_EXTENT_FACTORS);
    }
    CHECK_EQ(dc_extent_add(table, DC_EXTENT_NONE, 1), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_mul(table, 0, DC_EXTENT_NONE), DC_EXTENT_NONE);
    CHECK_EQ(dc_extent_product(table, 2, (int64_t[]){DC_EXTENT_NONE, 2}), DC_EXTENT_NONE);
    dc_extents_free(table);
}

/* Arithmetic on a code itself makes none. */
static void test_known(rng *r)
{
    dc_extents *other = dc_extents_new();
    table = dc_extents_new();
    const int64_t n = dc_extent_var(table, "n", 1, 9), m = dc_extent_var(table, "m", 2, 5);
    int64_t code[] = {n, m, 0, 0, 0};
    code[2] = dc_extent_add(table, n, m);
    code[3] = dc_extent_mul(table, n, m);
    code[4] = dc_extent_div(table, n, 2);
    CHECK(dc_extent_known(table, 0) && dc_extent_known(table, 77) && dc_extent_known(NULL, 3));
    CHECK(!dc_extent_known(table, -1) && !dc_extent_known(table, DC_EXTENT_NONE));
    CHECK(!dc_extent_known(NULL, n) && !dc_extent_known(other, n));
    for (size_t i = 0; i < DC_COUNTOF(code); i++) {
        CHECK(dc_extent_known(table, code[i]));
        CHECK(!dc_extent_known(table, code[i] + 1) && !dc_extent_known(table, code[i] - 1));
        CHECK(!dc_extent_known(table, (int64_t)((uint64_t)code[i] * 2)));
        CHECK(!dc_extent_known(table, (int64_t)((uint64_t)code[i] * 3)));
        CHECK(!dc_extent_known(table, (int64_t)((uint64_t)code[i] + (uint64_t)n)));
        CHECK(!dc_extent_known(table, -code[i]));
        for (int k = 0; k < 1000; k++) {
            const int64_t off = (int64_t)(rng_next(r) >> (24 + rng_below(r, 40))) + 1;
            const int64_t c = code[i] + off;
            bool same = false; /* as another one of them */
            for (size_t q = 0; q < DC_COUNTOF(code); q++)
                same = same || c == code[q];
            CHECK(!dc_extent_is(c) || dc_extent_known(table, c) == same);
        }
    }
    for (int k = 0; k < 5; k++) /* of another table: other bounds */
        dc_extent_var(other, k % 2 ? "n" : "m", 0, 100 + k);
    for (size_t i = 0; i < DC_COUNTOF(code); i++)
        CHECK(!dc_extent_known(other, code[i]));
    dc_extents_free(other);
    dc_extents_free(table);
}

/* Answers are kept: they stay what they are, and a code that is not of the table yet has none. */
static void test_asked_again(void)
{
    enum { CODES = 60 };
    int64_t code[CODES], sum[CODES][CODES];
    dc_extents *more = dc_extents_new();
    table = dc_extents_new();
    const int64_t n = dc_extent_var(table, "n", 1, 9);
    CHECK_EQ(dc_extent_var(more, "n", 1, 9), n);
    const int64_t later = dc_extent_add(more, dc_extent_mul(more, n, 3), 1);
    CHECK_EQ(dc_extent_add(table, later, 1), DC_EXTENT_NONE);
    CHECK(!dc_extent_at_least(table, later, 0));
    CHECK_EQ(dc_extent_mul(table, n, 3), dc_extent_mul(more, n, 3));
    CHECK_EQ(dc_extent_add(table, dc_extent_mul(table, n, 3), 1), later);
    CHECK_EQ(dc_extent_add(table, later, 1), dc_extent_add(more, later, 1));
    CHECK(dc_extent_at_least(table, later, 0));
    for (int i = 0; i < CODES; i++)
        code[i] = dc_extent_add(table, dc_extent_mul(table, n, i / 8 + 1), i % 8);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < CODES; i++)
            for (int k = 0; k < CODES; k++) {
                const int64_t is = dc_extent_add(table, code[i], code[k]);
                const int64_t least = i / 8 + i % 8 - k / 8 - k % 8;
                sum[i][k] = round == 0 ? is : sum[i][k];
                CHECK_EQ(is, sum[i][k]);
                CHECK_EQ(dc_extent_sub(table, is, code[k]), code[i]);
                CHECK(!dc_extent_at_least(table, code[i], code[k]) || least >= 0);
                CHECK(i / 8 != k / 8 || dc_extent_at_least(table, code[i], code[k]) == (i >= k));
            }
    dc_extents_free(more);
    dc_extents_free(table);
}

/* ---- texts ------------------------------------------------------------------------------------ */

static void test_print(void)
{
    char text[8];
    table = dc_extents_new();
    const int64_t n = dc_extent_var(table, "n", 1, 9), m = dc_extent_var(table, "m", 0, 5);
    const int64_t twice = dc_extent_add(table, dc_extent_mul(table, n, 2), 1);
    CHECK_STR(text_of(64), "64");
    CHECK_STR(text_of(n), "n");
    CHECK_STR(text_of(twice), "2*n + 1");
    CHECK_STR(text_of(dc_extent_mul(table, n, m)), "n*m");
    CHECK_STR(text_of(dc_extent_sub(table, n, 1)), "n - 1");
    CHECK_STR(text_of(dc_extent_sub(table, 9, n)), "-n + 9");
    CHECK_STR(text_of(dc_extent_sub(table, m, dc_extent_mul(table, n, 3))), "-3*n + m");
    CHECK_STR(text_of(dc_extent_sub(table, n, m)), "n - m");
    CHECK_STR(text_of(dc_extent_div(table, twice, 4)), "(2*n + 1)//4");
    CHECK_STR(text_of(dc_extent_div(table, dc_extent_add(table, twice, 4), 2)), "n + 2");
    CHECK_STR(text_of(n + 1), "?");
    CHECK_EQ(dc_extent_print(table, twice, text, sizeof text), 7);
    CHECK_STR(text, "2*n + 1");
    CHECK_EQ(dc_extent_print(table, twice, text, 4), 7);
    CHECK_STR(text, "2*n");
    dc_extents_free(table);
}

int main(int argc, char **argv)
{
    rng r = {rng_seed(argc, argv, 1)};
    test_random(&r);
    test_equal(&r);
    test_at_least();
    test_rests();
    test_corners();
    test_none();
    test_known(&r);
    test_asked_again();
    test_print();
    printf("%ld expressions, %ld refused\n", made, refused);
    return t_done();
}
