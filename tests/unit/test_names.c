/*
 * Names of dims, operation by operation: which stay, which are lost, which are refused. A name that
 * stays promises that the axis is the same axis; random chains of movements are run to see that.
 */
#include "core/eval/eval.h"
#include "core/ir/gtext.h"

#include <stdlib.h>

#include "tests/unit/rng.h"
#include "tests/unit/typed.h"

typedef struct row {
    const char *a, *b, *out;
} row;

/* ---- operations of several operands ---- */

static void test_elementwise(void)
{
    static const row rows[] = {
        {"f32[n=2, k=3]", "f32[n=2, k=3]", "f32[n=2, k=3]"},
        {"f32[n=2, k=3]", "f32[2, 3]", "f32[n=2, k=3]"},
        {"f32[2, 3]", "f32[n=2, k=3]", "f32[n=2, k=3]"},
        {"f32[n=2, 3]", "f32[2, k=3]", "f32[n=2, k=3]"},
        {"f32[n=2, n=2]", "f32[n=2]", "f32[n=2, n=2]"},
        {"f32[n=2, k=3]", "f32[]", "f32[n=2, k=3]"},
        {"f32[b=5, n=2]", "f32[n=2]", "f32[b=5, n=2]"},
        {"f32[n=2]", "f32[5, 1]", "f32[5, n=2]"},
        {"f32[n=2, 1]", "f32[1, k=3]", "f32[n=2, k=3]"},
        {"f32[1]", "f32[n=1]", "f32[n=1]"},
        {"f32[n=1]", "f32[n=1]", "f32[n=1]"},
        {"f32[n=2]", "f32[k=2]", "add: axis 1: 'n' against 'k'"},
        {"f32[n=2, k=2]", "f32[k=2, n=2]", "add: axis 2: 'k' against 'n'"},
        {"f32[b=5, n=2]", "f32[b=2]", "add: axis 2: 'n' against 'b'"},
        {"f32[n=1]", "f32[5]", "add: axis 1: named 'n' of size 1 does not stretch to 5"},
        {"f32[5]", "f32[n=1]", "add: axis 1: named 'n' of size 1 does not stretch to 5"},
        {"f32[n=1]", "f32[n=5]", "add: axis 1: named 'n' of size 1 does not stretch to 5"},
        {"f32[n=1]", "f32[k=5]", "add: axis 1: 'n' against 'k'"},
        {"f32[n=2]", "f32[n=3]", "add: axis 1: 2 against 3"},
    };
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        dc_val out, in[2] = {val(rows[i].a), val(rows[i].b)};
        CHECK_STR(told(dc_build_ew(&job, f, DC_OP_ADD, in, 2, &out), &out), rows[i].out);
    }
}

/* What three operands say of one axis does not depend on their order. */
static void test_three(void)
{
    static const struct {
        const char *in[3], *out;
    } rows[] = {
        {{"bool[n=2]", "f32[]", "f32[2]"}, "f32[n=2]"},
        {{"bool[]", "f32[n=2]", "f32[b=3, 1]"}, "f32[b=3, n=2]"},
        {{"bool[1]", "f32[n=2]", "f32[2]"}, "f32[n=2]"},
        {{"bool[2]", "f32[n=2]", "f32[k=2]"}, "where: axis 1: 'n' against 'k'"},
        {{"bool[1]", "f32[1]", "f32[n=1]"}, "f32[n=1]"},
        {{"bool[1]", "f32[n=1]", "f32[5]"},
         "where: axis 1: named 'n' of size 1 does not stretch to 5"},
        {{"bool[5]", "f32[1]", "f32[n=1]"},
         "where: axis 1: named 'n' of size 1 does not stretch to 5"},
        {{"bool[n=1]", "f32[5]", "f32[1]"},
         "where: axis 1: named 'n' of size 1 does not stretch to 5"},
    };
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        dc_val out, in[3] = {val(rows[i].in[0]), val(rows[i].in[1]), val(rows[i].in[2])};
        CHECK_STR(told(dc_build_ew(&job, f, DC_OP_WHERE, in, 3, &out), &out), rows[i].out);
    }
    const dc_type one = type("f32[n=2, 3]");
    dc_val out, in = {dc_graph_param(f, &one, NULL), one};
    CHECK_STR(told(dc_build_ew(&job, f, DC_OP_EXP, &in, 1, &out), &out), "f32[n=2, 3]");
    CHECK_STR(told(dc_build_cast(&job, f, in, DC_I32, &out), &out), "i32[n=2, 3]");
    CHECK_STR(told(dc_build_ew(&job, f, DC_OP_STOP, &in, 1, &out), &out), "f32[n=2, 3]");
}

static void test_products(void)
{
    static const row rows[] = {
        {"f32[m=2, k=3]", "f32[k=3, n=4]", "f32[m=2, n=4]"},
        {"f32[m=2, 3]", "f32[k=3, 4]", "f32[m=2, 4]"},
        {"f32[n=2, k=3]", "f32[k=3, n=2]", "f32[n=2, n=2]"},
        {"f32[n=2, n=2]", "f32[n=2, n=2]", "f32[n=2, n=2]"},
        {"f32[m=2, k=3]", "f32[i=3, n=4]", "matmul: axis 2: 'k' against 'i'"},
        {"f32[k=3]", "f32[k=3, n=4]", "f32[n=4]"},
        {"f32[m=2, k=3]", "f32[k=3]", "f32[m=2]"},
        {"f32[k=3]", "f32[k=3]", "f32[]"},
        {"f32[k=3]", "f32[i=3]", "matmul: axis 1: 'k' against 'i'"},
        {"f32[b=5, m=2, k=3]", "f32[b=5, k=3, n=4]", "f32[b=5, m=2, n=4]"},
        {"f32[b=5, m=2, 3]", "f32[5, 3, n=4]", "f32[b=5, m=2, n=4]"},
        {"f32[5, m=2, 3]", "f32[b=5, 3, n=4]", "f32[b=5, m=2, n=4]"},
        {"f32[1, m=2, 3]", "f32[b=5, 3, n=4]", "f32[b=5, m=2, n=4]"},
        {"f32[h=6, b=5, m=2, 3]", "f32[b=5, 3, n=4]", "f32[h=6, b=5, m=2, n=4]"},
        {"f32[b=5, m=2, k=3]", "f32[k=3, n=4]", "f32[b=5, m=2, n=4]"},
        {"f32[m=2, k=3]", "f32[b=5, k=3, n=4]", "f32[b=5, m=2, n=4]"},
        {"f32[k=3]", "f32[b=5, k=3, n=4]", "f32[b=5, n=4]"},
        {"f32[b=5, m=2, k=3]", "f32[k=3]", "f32[b=5, m=2]"},
        {"f32[b=5, m=2, 3]", "f32[c=5, 3, n=4]", "matmul: axis 1: 'b' against 'c'"},
        {"f32[b=1, m=2, 3]", "f32[5, 3, n=4]",
         "matmul: axis 1: named 'b' of size 1 does not stretch to 5"},
    };
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        dc_val out;
        CHECK_STR(told(dc_build_matmul(&job, f, val(rows[i].a), val(rows[i].b), &out), &out),
                  rows[i].out);
    }
}

/* ---- one operand ---- */

static void test_reshape(void)
{
    static const row rows[] = {
        /* the run from the left */
        {"f32[a=2, b=3, c=4]", "f32[2, 12]", "f32[a=2, 12]"},
        {"f32[a=2, b=3, c=4]", "f32[2, 3, 2, 2]", "f32[a=2, b=3, 2, 2]"},
        {"f32[a=2, b=3]", "f32[2, 3, 1]", "f32[a=2, b=3, 1]"},
        /* then from the right */
        {"f32[a=2, b=3, c=4]", "f32[6, 4]", "f32[6, c=4]"},
        {"f32[a=2, b=3, c=4]", "f32[2, 3, 1, 4]", "f32[a=2, b=3, 1, c=4]"},
        {"f32[a=2, b=6, c=4]", "f32[2, 2, 3, 4]", "f32[a=2, 2, 3, c=4]"},
        {"f32[b=3, c=4]", "f32[1, 3, 4]", "f32[1, b=3, c=4]"},
        {"f32[a=2, b=1, c=3]", "f32[2, 3]", "f32[a=2, c=3]"},
        /* each axis in one run only */
        {"f32[a=2, b=2]", "f32[2, 1, 2]", "f32[a=2, 1, b=2]"},
        {"f32[a=2, b=2, c=2]", "f32[4, 2]", "f32[4, c=2]"},
        {"f32[a=2, b=2, c=2]", "f32[2, 4]", "f32[a=2, 4]"},
        {"f32[a=4]", "f32[4, 1]", "f32[a=4, 1]"},
        {"f32[a=4]", "f32[1, 4]", "f32[1, a=4]"},
        {"f32[a=1, b=1]", "f32[1]", "f32[a=1]"},
        {"f32[a=1]", "f32[1, 1]", "f32[a=1, 1]"},
        /* what is in between is lost, and what is merged or split */
        {"f32[a=2, b=3, c=4]", "f32[2, 4, 3]", "f32[a=2, 4, 3]"},
        {"f32[a=2, b=3]", "f32[3, 2]", "f32[3, 2]"},
        {"f32[a=2, b=3]", "f32[6]", "f32[6]"},
        {"f32[a=1]", "f32[]", "f32[]"},
        {"f32[]", "f32[1]", "f32[1]"},
        {"f32[2, b=3]", "f32[2, 3]", "f32[2, b=3]"},
        {"f32[n=3, n=3]", "f32[3, 3]", "f32[n=3, n=3]"},
        /* names that are given go first */
        {"f32[a=6]", "f32[h=2, w=3]", "f32[h=2, w=3]"},
        {"f32[a=2, b=3]", "f32[b=2, a=3]", "f32[b=2, a=3]"},
        {"f32[a=2, b=3]", "f32[c=2, 3]", "f32[c=2, b=3]"},
        {"f32[a=2, b=6]", "f32[2, h=2, 3]", "f32[a=2, h=2, 3]"},
        {"f32[a=2, b=3]", "f32[b=2, 3]", "f32[b=2, 3]"}, /* not b twice */
    };
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        const dc_type want = type(rows[i].b);
        dc_val out;
        if (!CHECK_STR(told(dc_build_reshape(&job, f, val(rows[i].a), &want, &out), &out),
                       rows[i].out))
            printf("    %s to %s\n", rows[i].a, rows[i].b);
        dc_type node; /* the graph's own rule says the same */
        const dc_type from = type(rows[i].a);
        CHECK_EQ(dc_infer(&job, DC_OP_RESHAPE, &from, 1, NULL, 0, &want, &node), DC_OK);
        dc_type_print(&node, text, sizeof text);
        CHECK_STR(text, rows[i].out);
    }
}

static void test_expand(void)
{
    static const row rows[] = {
        {"f32[n=3]", "f32[3]", "f32[n=3]"},
        {"f32[n=3]", "f32[5, 3]", "f32[5, n=3]"},
        {"f32[n=3]", "f32[b=5, 3]", "f32[b=5, n=3]"},
        {"f32[1, n=3]", "f32[b=5, 3]", "f32[b=5, n=3]"},
        {"f32[3]", "f32[n=3]", "f32[n=3]"},
        {"f32[n=3]", "f32[k=3]", "expand: axis 1: 'n' against 'k'"},
        {"f32[n=1]", "f32[5]", "expand: axis 1: named 'n' of size 1 does not stretch to 5"},
        {"f32[n=1]", "f32[n=5]", "expand: axis 1: named 'n' of size 1 does not stretch to 5"},
    };
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        const dc_type want = type(rows[i].b);
        dc_val out;
        CHECK_STR(told(dc_build_expand(&job, f, val(rows[i].a), &want, &out), &out), rows[i].out);
    }
}

/* Axes as digits from 1: "13". */
static uint32_t mask_of(const char *axes)
{
    uint32_t mask = 0;
    for (; *axes != '\0'; axes++)
        mask |= 1u << (*axes - '1');
    return mask;
}

static void test_axes(void)
{
    static const struct {
        const char *op, *a, *axes, *out;
    } rows[] = {
        {"sum", "f32[a=2, b=3, c=4]", "2", "f32[a=2, c=4]"},
        {"sum", "f32[a=2, b=3, c=4]", "13", "f32[b=3]"},
        {"sum", "f32[a=2, b=3]", "12", "f32[]"},
        {"sum", "f32[a=2, b=3]", "", "f32[a=2, b=3]"},
        {"keep", "f32[a=2, b=3, c=4]", "2", "f32[a=2, 1, c=4]"},
        {"keep", "f32[a=2, b=1]", "2", "f32[a=2, 1]"},
        {"mean", "f32[a=2, b=3]", "1", "f32[b=3]"},
        {"mean keep", "i32[a=2, b=3]", "1", "f32[1, b=3]"},
        {"permute", "f32[a=2, b=3, c=4]", "312", "f32[c=4, a=2, b=3]"},
        {"permute", "f32[a=2, 3]", "21", "f32[3, a=2]"},
        {"permute", "f32[n=2, n=2]", "21", "f32[n=2, n=2]"},
        {"flip", "f32[a=2, b=3]", "2", "f32[a=2, b=3]"},
        {"drop", "f32[a=1, b=3, 1]", "13", "f32[b=3]"},
    };
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        const uint32_t mask = mask_of(rows[i].axes);
        const dc_val a = val(rows[i].a);
        const char *op = rows[i].op;
        int64_t perm[DC_MAX_RANK];
        dc_val out;
        dc_status status;
        const int n = (int)strlen(rows[i].axes);
        for (int k = 0; k < n; k++)
            perm[k] = rows[i].axes[k] - '1';
        if (strcmp(op, "permute") == 0)
            status = dc_build_permute(&job, f, a, perm, n, &out);
        else if (strcmp(op, "flip") == 0)
            status = dc_build_flip(&job, f, a, mask, &out);
        else if (strcmp(op, "drop") == 0)
            status = dc_build_drop(&job, f, a, mask, &out);
        else if (strncmp(op, "mean", 4) == 0)
            status = dc_build_mean(&job, f, a, mask, op[4] != '\0', &out);
        else
            status = dc_build_reduce(&job, f, DC_OP_SUM, a, mask, *op == 'k', &out);
        CHECK_STR(told(status, &out), rows[i].out);
    }
}

/* Positions of axis 2 of f32[a=2, b=n]. */
static void test_parts(void)
{
    static const struct {
        int64_t n, first, last, step;
        const char *out;
    } slices[] = {
        {5, 0, 4, 1, "f32[a=2, b=5]"},  {5, 0, 3, 1, "f32[a=2, 4]"},  {5, 1, 4, 1, "f32[a=2, 4]"},
        {5, 0, 4, 2, "f32[a=2, 3]"},    {5, 0, -1, 1, "f32[a=2, 0]"}, {1, 0, 0, 1, "f32[a=2, b=1]"},
        {0, 0, -1, 1, "f32[a=2, b=0]"},
    };
    for (size_t i = 0; i < DC_COUNTOF(slices); i++) {
        char a[40];
        dc_val out;
        snprintf(a, sizeof a, "f32[a=2, b=%d]", (int)slices[i].n);
        const int64_t first[2] = {0, slices[i].first}, last[2] = {1, slices[i].last},
                      step[2] = {1, slices[i].step};
        CHECK_STR(told(dc_build_slice(&job, f, val(a), first, last, step, &out), &out),
                  slices[i].out);
    }
    static const struct {
        int64_t lo, step;
        const char *want, *out;
    } pads[] = {
        {0, 1, "f32[2, 3]", "f32[a=2, b=3]"}, {1, 1, "f32[2, 4]", "f32[a=2, 4]"},
        {0, 1, "f32[2, 4]", "f32[a=2, 4]"},   {0, 2, "f32[2, 5]", "f32[a=2, 5]"},
        {0, 1, "f32[3, 3]", "f32[3, b=3]"},
    };
    for (size_t i = 0; i < DC_COUNTOF(pads); i++) {
        dc_val out;
        const int64_t lo[2] = {0, pads[i].lo}, step[2] = {1, pads[i].step};
        const dc_type want = type(pads[i].want);
        CHECK_STR(told(dc_build_pad(&job, f, val("f32[a=2, b=3]"), lo, step, &want, 0, &out), &out),
                  pads[i].out);
    }
}

static void test_sources(void)
{
    const dc_type t = type("i32[a=2, 3]");
    dc_val out;
    CHECK_STR(told(dc_build_const(&job, f, &t, 1, &out), &out), "i32[a=2, 3]");
    CHECK_STR(told(dc_build_iota(&job, f, &t, 1, &out), &out), "i32[a=2, 3]");
}

/* ---- what a name promises ---- */

enum { RANK = 4, MOST = 5000 };

static rng dice;

/* Another shape of as many elements: two neighbours merged, one split, or ones put in or left out. */
static void random_shape(const dc_type *a, dc_type *want)
{
    const int at = a->rank > 0 ? rng_below(&dice, a->rank) : 0, kind = rng_below(&dice, 4);
    *want = dc_type_scalar((dc_dtype)a->dtype);
    for (int i = 0; i < a->rank; i++) {
        if (kind == 0 && i == at && i + 1 < a->rank) {
            want->dim[want->rank++] = a->dim[i] * a->dim[i + 1];
            i++;
        } else if (kind == 1 && i == at && a->dim[i] % 2 == 0 && a->rank < DC_MAX_RANK) {
            want->dim[want->rank++] = 2;
            want->dim[want->rank++] = a->dim[i] / 2;
        } else if (kind == 2 && i == at && a->rank < DC_MAX_RANK) {
            want->dim[want->rank++] = 1;
            want->dim[want->rank++] = a->dim[i];
        } else if (kind != 3 || a->dim[i] != 1) {
            want->dim[want->rank++] = a->dim[i];
        }
    }
}

static dc_status random_move(dc_val *v)
{
    const int rank = v->type.rank;
    int64_t a[DC_MAX_RANK], b[DC_MAX_RANK], one[DC_MAX_RANK];
    dc_type want = v->type;
    memset(want.name, 0, sizeof want.name);
    for (int i = 0; i < rank; i++)
        a[i] = i, one[i] = 1;
    switch (rng_below(&dice, 6)) {
    case 0:
    case 1:
        random_shape(&v->type, &want);
        return dc_build_reshape(&job, f, *v, &want, v);
    case 2:
        for (int i = rank - 1; i > 0; i--) {
            const int k = rng_below(&dice, i + 1);
            const int64_t swap = a[i];
            a[i] = a[k];
            a[k] = swap;
        }
        return dc_build_permute(&job, f, *v, a, rank, v);
    case 3:
        for (int i = 0; i < rank; i++) {
            a[i] = rng_below(&dice, 4) > 0 ? 0 : rng_below(&dice, (int)v->type.dim[i] + 1);
            b[i] = rng_below(&dice, 4) > 0 ? v->type.dim[i] - 1 : v->type.dim[i] - 2;
            b[i] = b[i] < a[i] - 1 ? a[i] - 1 : b[i];
        }
        return dc_build_slice(&job, f, *v, a, b, one, v);
    case 4:
        for (int i = 0; i < rank; i++) {
            a[i] = rng_below(&dice, 4) == 0;
            want.dim[i] += a[i] + (rng_below(&dice, 4) == 0);
        }
        return dc_type_count(&want) < MOST / 4 ? dc_build_pad(&job, f, *v, a, one, &want, -1, v)
                                               : DC_OK;
    default:
        return rank > 1 ? dc_build_reduce(&job, f, DC_OP_MAXR, *v, 1u << rng_below(&dice, rank),
                                          rng_below(&dice, 2) > 0, v)
                        : DC_OK;
    }
}

/* The position along each axis that is called `name` is the element's own, where it is not padding. */
static long check_promise(const dc_type *t, const char *name, const float *value)
{
    long seen = 0;
    const int64_t n = dc_type_count(t);
    for (int axis = 0; axis < t->rank; axis++) {
        if (t->name[axis] != name)
            continue;
        int64_t inner = 1;
        for (int k = axis + 1; k < t->rank; k++)
            inner *= t->dim[k];
        for (int64_t i = 0; i < n; i++)
            if (value[i] >= 0 && !CHECK_EQ(value[i], i / inner % t->dim[axis]))
                return seen;
        seen++;
    }
    return seen;
}

/* Elements tell their position along axis k of the first tensor, whose name is looked for. */
static void test_promise(void)
{
    static float in[MOST], out[MOST];
    long seen = 0, lost = 0;
    for (int turn = 0; turn < 1500; turn++) {
        char first[80];
        const int k = rng_below(&dice, RANK);
        snprintf(first, sizeof first, "f32[a=%d, b=%d, c=%d, d=%d]", 1 + rng_below(&dice, 4),
                 1 + rng_below(&dice, 4), 1 + rng_below(&dice, 4), 1 + rng_below(&dice, 4));
        f = dc_func_new(module, "moves");
        dc_val v = val(first);
        const dc_type from = v.type;
        int64_t inner = 1;
        for (int i = k + 1; i < RANK; i++)
            inner *= from.dim[i];
        for (int64_t i = 0; i < dc_type_count(&from); i++)
            in[i] = (float)(i / inner % from.dim[k]);
        for (int moves = 1 + rng_below(&dice, 4); moves > 0; moves--)
            if (!CHECK_EQ(random_move(&v), DC_OK))
                return;
        CHECK(dc_type_count(&v.type) <= MOST);
        DC_PUSH(f->result, v.ref);
        CHECK_EQ(dc_eval(&job, f, DC_EVAL_ROUND, (const void *[]){in}, (void *[]){out}), DC_OK);
        const long got = check_promise(&v.type, from.name[k], out);
        seen += got;
        lost += got == 0;
    }
    printf("%ld names kept, %ld lost\n", seen, lost);
    CHECK(seen > 300 && lost > 300);
}

int main(int argc, char **argv)
{
    dice.state = rng_seed(argc, argv, 7);
    dc_job_init(&job, NULL, NULL);
    names = dc_names_new();
    module = dc_module_new();
    f = dc_func_new(module, "names");
    test_elementwise();
    test_three();
    test_products();
    test_reshape();
    test_expand();
    test_axes();
    test_parts();
    test_sources();
    CHECK(dc_func_check(&job, f) == DC_OK);
    test_promise();
    dc_module_free(module);
    dc_names_free(names);
    dc_job_fini(&job);
    return t_done();
}
