/*
 * core/ir/gtext.c: parse(print(x)) prints the same, on written and on random functions; what damaged
 * text is told; a fuzz loop over mutated text; what the verifier finds.
 *
 *   test_gtext [SEED]
 */
#include "tests/t.h"

#include "core/ir/gtext.h"

#include <stdlib.h>

#include "tests/unit/rng.h"

static dc_job job;
static char text[1024];

static dc_module *parse(const char *s)
{
    dc_module *m = NULL;
    job.err = (dc_err){0};
    if (dc_module_parse(&job, s, &m) != DC_OK) {
        dc_err_render(&job.err, 1, text, sizeof text);
        return NULL;
    }
    return m;
}

/* The sentence that text is refused with. */
static const char *refused(const char *s)
{
    dc_module *m = parse(s);
    if (m != NULL) {
        dc_module_free(m);
        return "accepted";
    }
    return text;
}

static void check_same(const char *s, const char *want)
{
    dc_module *m = parse(s);
    dc_text out = {0};
    if (CHECK(m != NULL)) {
        dc_module_print(m, &out);
        CHECK_STR(out.s, want);
        for (uint32_t i = 0; i < m->func.n; i++)
            CHECK(dc_func_check(&job, m->func.at[i]) == DC_OK);
    } else {
        printf("%s\n", text);
    }
    dc_text_free(&out);
    dc_module_free(m);
}

static const char sample[] = "func step(%1: f32[2, 3] \"x\", %2: f32[3, 4] \"net.1 "
                             "\\\"w\\\"\\x0a\", %3: bool[], %4: u32[5]) {\n"
                             "  %5 = dot %1, %2 {0, 1, 1, 0} : f32[2, 4]\n"
                             "  %6 = const {1056964608} : f32[2, 4] # 0.5\n"
                             "  %7 = mul %5, %6 : f32[2, 4]\n"
                             "  %8 = max %7 {2} : f32[2]\n"
                             "  %9 = pad %8 {1, 2, 4286578688} : f32[5]\n"
                             "  %10 = iota {0} : u32[5]\n"
                             "  %11 = const {7} : u32[5]\n"
                             "  %12 = threefry %4, %11, %10, %4 : u32[5]\n"
                             "  %13 = cast %12 : f32[5]\n"
                             "  %14 = reshape %3 : bool[1]\n"
                             "  %15 = expand %14 : bool[5]\n"
                             "  %16 = where %15, %9, %13 : f32[5]\n"
                             "  %17 = slice %16 {1, 2} : f32[2]\n"
                             "  %18 = flip %17 {1} : f32[2]\n"
                             "  %19 = permute %7 {1, 0} : f32[4, 2]\n"
                             "  return %18, %19, %18\n"
                             "}\n";

static void test_written(void)
{
    check_same(sample, sample);
    check_same("", "");
    check_same("func f() { return }", "func f() {\n  return\n}\n");
    check_same("func \"a b\"(){return} # end\nfunc g(%1:i32[]){return %1}",
               "func \"a b\"() {\n  return\n}\n\nfunc g(%1: i32[]) {\n  return %1\n}\n");
    /* dead nodes go, the rest is numbered again, operands that commute are ordered */
    check_same("func f(%1: i32[], %2: i32[]) {\n %3 = neg %1 : i32[]\n %4 = neg %2 : i32[]\n"
               " %5 = add %4, %1 : i32[]\n %6 = add %1, %4 : i32[]\n return %5, %6 }",
               "func f(%1: i32[], %2: i32[]) {\n  %3 = neg %2 : i32[]\n"
               "  %4 = add %1, %3 : i32[]\n  return %4, %4\n}\n");
}

static void test_refused(void)
{
    CHECK_STR(refused("fun"), "line 1: 'func' expected, not 'fun'");
    CHECK_STR(refused("func"), "line 1: a name expected, not the end");
    CHECK_STR(refused("func f(%2: i32[])"), "line 1: %1 comes next, not %2");
    CHECK_STR(refused("func f(%1: i3[])"), "line 1: type 'i3[]': unknown dtype 'i3'; known are "
                                           "bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, "
                                           "f32, f64, f8e4m3fn, f8e5m2, c64, c128");
    CHECK_STR(refused("func f(%1: i32[n=3])"),
              "line 1: type 'i32[n=3]': dim 'n' may have no name here");
    CHECK_STR(refused("func f(%1: i32[] \"x)"), "line 1: a string has no end");
    CHECK_STR(refused("func f(%1: i32[] \"\\q\")"), "line 1: a string has an unknown escape");
    CHECK_STR(refused("func f(%1: i32[] \"\\x00\")"), "line 1: a string has an unknown escape");
    CHECK_STR(refused("func f() {\n\n  %1 = foo : i32[]"), "line 3: unknown operation 'foo'");
    CHECK_STR(refused("func f() {\n  %1 = param {0} : i32[]"),
              "line 2: parameters stand in the head");
    CHECK_STR(refused("func f() {\n  %1 = neg %1 : i32[]"), "line 2: there is no %1 yet");
    CHECK_STR(refused("func f(%1: i32[2], %2: i32[3]) {\n # c\n  %3 = add %1, %2 : i32[2]"),
              "line 3: add: axis 0: 2 against 3");
    CHECK_STR(refused("func f(%1: i32[2]) {\n  %2 = neg %1 : i32[3]"),
              "line 2: neg gives i32[2], not i32[3]");
    CHECK_STR(refused("func f(%1: i32[2]) {\n  %2 = neg %1 {1} : i32[2]"),
              "line 2: neg: 1 attributes given, 0 needed");
    CHECK_STR(refused("func f() {\n  %1 = const {99999999999999999999} : i32[]"),
              "line 2: an integer is too large");
    CHECK_STR(refused("func f() {\n  %01 = const {1} : i32[]"), "line 2: an integer has leading zeros");
    CHECK_STR(refused("func f() {\n  %1 = const {-0} : i32[]"), "line 2: an integer has leading zeros");
    CHECK_STR(refused("func f() {\n  %1 = const {+1} : i32[]"), "line 2: an integer expected, not '+'");
    CHECK_STR(refused("func f() {\n return %1 }"), "line 2: there is no %1 yet");
    CHECK_STR(refused("func f() {\n return"), "line 2: '}' expected, not the end");
    CHECK_STR(refused("func f() {\n return \x01"), "line 2: '}' expected, not byte 1");
    CHECK_EQ(job.err.id, DC_ERR_PARSE);
    CHECK_EQ(job.err.fact.num[0], 2);
}

/* ---- random functions ---- */

static dc_ref pick(rng *r, const dc_func *f)
{
    return 1 + (dc_ref)rng_below(r, (int)f->node.n - 1);
}

/* One more node of whatever kind fits a node that exists. */
static void grow(rng *r, dc_func *f)
{
    const dc_ref a = pick(r, f);
    const dc_type t = dc_node_type(f, a);
    const int rank = t.rank;
    const dc_op ews[] = {DC_OP_ADD, DC_OP_SUB, DC_OP_MAX, DC_OP_MUL}, ew = ews[rng_below(r, 4)];
    int64_t dim[DC_MAX_RANK], at[2 * DC_MAX_RANK + 1];
    switch (rng_below(r, 10)) {
    case 0:
        dc_graph_op1(f, DC_OP_EXP, a);
        return;
    case 1:
        dc_graph_op2(f, ew, a, dc_graph_like(f, a, rng_uniform(r, -2, 2)));
        return;
    case 2:
        dc_graph_reduce(f, DC_OP_MINR, a, (uint32_t)rng_below(r, 1 << rank));
        return;
    case 3:
        for (int i = 0; i < rank; i++)
            at[i] = rank - 1 - i;
        dc_graph_permute(f, a, at);
        return;
    case 4:
        dim[0] = dc_type_count(&t);
        dc_graph_reshape(f, a, 1, dim);
        return;
    case 5:
        for (int i = 0; i < rank; i++) {
            at[i] = rng_below(r, 3);
            at[rank + i] = 1 + rng_below(r, 2);
            dim[i] = t.dim[i] * 2 + 3;
        }
        if (dc_type_count(&t) < 10000)
            dc_graph_pad(f, a, at, at + rank, dim, 0);
        return;
    case 6:
        dc_graph_flip(f, a, (uint32_t)rng_below(r, 1 << rank));
        return;
    case 7:
        if (rank < 3)
            dc_graph_dot(f, a, a, 0, NULL, NULL, 0, NULL, NULL);
        return;
    default:
        for (dc_ref b = 1; b < f->node.n; b++) {
            const dc_type u = dc_node_type(f, b);
            if (b != a && dc_type_same(&t, &u)) {
                dc_graph_op2(f, ew, b, a);
                return;
            }
        }
    }
}

static dc_module *random_module(rng *r)
{
    dc_module *m = dc_module_new();
    for (int k = 1 + rng_below(r, 2); k > 0; k--) {
        dc_func *f = dc_func_new(m, "random");
        for (int i = 1 + rng_below(r, 3); i > 0; i--) {
            dc_type t = {.dtype = DC_F32, .rank = (uint8_t)rng_below(r, 4)};
            for (int a = 0; a < t.rank; a++)
                t.dim[a] = rng_below(r, 4);
            dc_graph_param(f, &t, rng_below(r, 2) ? "x" : NULL);
        }
        for (int i = rng_below(r, 20); i > 0; i--)
            grow(r, f);
        const dc_type late = {.dtype = DC_F32, .rank = 1, .dim = {2}};
        dc_graph_param(f, &late, "late"); /* a parameter behind the nodes */
        for (int i = rng_below(r, 3); i > 0; i--)
            DC_PUSH(f->result, pick(r, f));
    }
    return m;
}

static void test_random(rng *r)
{
    for (int round = 0; round < 300; round++) {
        dc_module *m = random_module(r);
        dc_text out = {0};
        dc_module_print(m, &out);
        check_same(out.s, out.s);
        for (uint32_t i = 0; i < m->func.n; i++)
            CHECK(dc_func_check(&job, m->func.at[i]) == DC_OK);
        dc_module *again = parse(out.s);
        for (uint32_t i = 0; again != NULL && i < m->func.n; i++)
            CHECK(dc_func_hash(m->func.at[i]) == dc_func_hash(again->func.at[i]));
        dc_module_free(again);
        dc_text_free(&out);
        dc_module_free(m);
    }
}

/* ---- fuzz ---- */

static void mutate(rng *r, char *s, size_t room)
{
    static const char bytes[] = "%{}()[]:,=\"\\#-0129 \nfxi";
    const int changes = 1 + rng_below(r, 4);
    for (int i = 0; i < changes; i++) {
        const size_t n = strlen(s);
        const size_t at = n == 0 ? 0 : (size_t)rng_below(r, (int)n);
        switch (rng_below(r, 4)) {
        case 0: /* another byte */
            if (n > 0)
                s[at] = rng_below(r, 8) ? bytes[rng_below(r, (int)sizeof bytes - 1)]
                                        : (char)(1 + rng_below(r, 255));
            break;
        case 1: /* cut out a piece */
            if (n > 0) {
                const size_t cut = (size_t)rng_below(r, (int)(n - at < 20 ? n - at : 20)) + 1;
                memmove(s + at, s + at + cut, n - at - cut + 1);
            }
            break;
        case 2: /* put a piece of it elsewhere */
            if (n > 0 && n + 21 < room) {
                char piece[20];
                size_t from = (size_t)rng_below(r, (int)n);
                const size_t len = n - from < sizeof piece ? n - from : sizeof piece;
                memcpy(piece, s + from, len);
                memmove(s + at + len, s + at, n - at + 1);
                memcpy(s + at, piece, len);
            }
            break;
        case 3: /* end here */
            if (rng_below(r, 8) == 0)
                s[at] = '\0';
        }
    }
}

/* Any bytes are refused with a line, or become a legal module that prints and parses again. */
static void test_fuzz(rng *r)
{
    char s[4096];
    int accepted = 0;
    for (int round = 0; round < 30000; round++) {
        strcpy(s, sample);
        mutate(r, s, sizeof s);
        dc_module *m = parse(s);
        if (m == NULL) {
            if (job.err.id != DC_ERR_PARSE || job.err.fact.num[0] < 1)
                CHECK(job.err.id == DC_ERR_PARSE && job.err.fact.num[0] >= 1);
            continue;
        }
        accepted++;
        dc_text out = {0};
        dc_module_print(m, &out);
        if (round % 16 == 0)
            check_same(out.s, out.s);
        dc_text_free(&out);
        dc_module_free(m);
    }
    CHECK(accepted > 100 && accepted < 29000); /* both kinds occur */
    CHECK_EQ(job.cleanup.n, 0);
}

/* ---- the verifier ---- */

static const char *check_damaged(void (*damage)(dc_func *))
{
    dc_module *m = parse(sample);
    dc_func *f = m->func.at[0];
    damage(f);
    job.err = (dc_err){0};
    const dc_status status = dc_func_check(&job, f);
    dc_err_render(&job.err, 1, text, sizeof text);
    dc_module_free(m);
    return status == DC_E_BUG ? text : "accepted";
}

static void damage_operand(dc_func *f)
{
    static const dc_ref later[] = {9, 2};
    f->node.at[5].in = later;
}

static void damage_dims(dc_func *f)
{
    static const int64_t dim[] = {3, 4};
    f->node.at[7].dim = dim;
}

static void damage_dtype(dc_func *f)
{
    f->node.at[13].dtype = DC_I32;
}

static void damage_op(dc_func *f)
{
    f->node.at[8].op = 200;
}

static void damage_param(dc_func *f)
{
    f->param.at[1] = 1;
}

static void damage_result(dc_func *f)
{
    f->result.at[0] = 99;
}

static void test_check(void)
{
    CHECK_STR(check_damaged(damage_operand),
              "broken promise at step:5: operand 1 is 9, not an earlier node");
    CHECK_STR(check_damaged(damage_dims), "broken promise at step:7: mul has another type");
    CHECK(strstr(check_damaged(damage_dtype), "broken promise at step:16: where: dtypes differ"));
    CHECK(strstr(check_damaged(damage_op), "step:8: op 200"));
    CHECK(strstr(check_damaged(damage_param), "step:2: a parameter that is not in the list"));
    CHECK(strstr(check_damaged(damage_result), "step:99: result 1 is no node"));
}

int main(int argc, char **argv)
{
    rng r = {rng_seed(argc, argv, 20240229)};
    dc_job_init(&job, NULL, NULL);
    test_written();
    test_refused();
    test_random(&r);
    test_fuzz(&r);
    test_check();
    dc_job_fini(&job);
    return t_done();
}
