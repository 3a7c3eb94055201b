/*
 * core/ir/simplify*.c: each rule on a written case, then random functions over special values, which
 * the interpreter must give the same bits for, before and after (any NaN is as good as another).
 *
 *   test_simplify [SEED]
 */
#include "core/eval/eval.h"
#include "core/ir/gtext.h"
#include "core/ir/simplify.h"

#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/rng.h"

static dc_job job;

/* ---- written cases: the body of a function of x, y: f32[2, 3], i, k: i32[2, 3], b, c: bool[2, 3]
 * ---- */

#define HEAD                                                                                  \
    "func f(%1: f32[2, 3], %2: f32[2, 3], %3: i32[2, 3], %4: i32[2, 3], %5: bool[2, 3], %6: " \
    "bool[2, 3]) {\n"
#define F       " : f32[2, 3]\n"
#define I       " : i32[2, 3]\n"
#define B       " : bool[2, 3]\n"
#define C(bits) "  %7 = const {" #bits "}"
#define ZERO    C(0) F
#define MINUS_0 C(2147483648) F
#define ONE     C(1065353216) F
#define MINUS_1 C(3212836864) F

static const struct {
    const char *from, *to;
} cases[] = {
    /* clang-format off */
    /* constants */
    {C(1065353216) F "  %8 = add %7, %7" F "  return %8", "  %7 = const {1073741824} : f32[2, 3] # 2\n  return %7"},
    {C(3) I "  %8 = lt %7, %7" B "  return %8", "  %7 = const {0}" B "  return %7"},
    {C(-1) I "  %8 = cast %7 : f32[2, 3]\n  return %8", "  %7 = const {3212836864} : f32[2, 3] # -1\n  return %7"},
    /* one operand */
    {"  %7 = neg %1" F "  %8 = neg %7" F "  return %8", "  return %1"},
    {"  %7 = not %5" B "  %8 = not %7" B "  return %8", "  return %5"},
    {"  %7 = eq %1, %2" B "  %8 = not %7" B "  return %8", "  %7 = ne %1, %2" B "  return %7"},
    {"  %7 = ne %1, %2" B "  %8 = not %7" B "  return %8", "  %7 = eq %1, %2" B "  return %7"},
    {"  %7 = lt %1, %2" B "  %8 = not %7" B "  return %8", NULL},
    {"  %7 = neg %1" F "  %8 = abs %7" F "  return %8", "  %7 = abs %1" F "  return %7"},
    {"  %7 = cast %3 : u8[2, 3]\n  %8 = neg %7 : u8[2, 3]\n  %9 = abs %8 : u8[2, 3]\n  return %9",
     "  %7 = cast %3 : u8[2, 3]\n  %8 = neg %7 : u8[2, 3]\n  return %8"},
    {"  %7 = abs %1" F "  %8 = abs %7" F "  return %8", "  %7 = abs %1" F "  return %7"},
    {"  %7 = const {2} : i32[]\n  %8 = set_size %1, %7 {0}" F "  %9 = set_size %8, %7 {1}" F
     "  %10 = set_size %9, %7 {0}" F "  return %10",
     "  %7 = const {2} : i32[]\n  %8 = set_size %1, %7 {0}" F "  %9 = set_size %8, %7 {1}" F "  return %9"},
    {"  %7 = floor %1" F "  %8 = floor %7" F "  return %8", "  %7 = floor %1" F "  return %7"},
    {"  %7 = stop_gradient %1" F "  return %7", "  return %1"},
    {"  %7 = cast %1" F "  return %7", "  return %1"},
    {"  %7 = cast %5" F "  %8 = cast %7" I "  return %8", "  %7 = cast %5" I "  return %7"},
    {"  %7 = cast %5" F "  %8 = cast %7" B "  return %8", "  return %5"},
    {"  %7 = cast %3" F "  %8 = cast %7" I "  return %8", NULL},
    {"  %7 = cast %3 : i8[2, 3]\n  %8 = cast %7" F "  %9 = cast %8 : u8[2, 3]\n  return %9", NULL},
    {"  %7 = cast %3 : i8[2, 3]\n  %8 = cast %7" F "  %9 = cast %8 : i16[2, 3]\n  return %9",
     "  %7 = cast %3 : i8[2, 3]\n  %8 = cast %7 : i16[2, 3]\n  return %8"},
    {"  %7 = cast %1 : f64[2, 3]\n  %8 = cast %7" F "  return %8", "  return %1"},
    {"  %7 = cast %3 : f64[2, 3]\n  %8 = cast %7" F "  return %8", "  %7 = cast %3" F "  return %7"},
    {"  %7 = cast %3 : u32[2, 3]\n  %8 = cast %7" F "  return %8", NULL},
    {"  %7 = bitcast %1" F "  return %7", "  return %1"},
    {"  %7 = bitcast %1" I "  %8 = bitcast %7" F "  return %8", "  return %1"},
    {"  %7 = bitcast %1 : u32[2, 3]\n  %8 = bitcast %7" I "  return %8", "  %7 = bitcast %1" I "  return %7"},
    {"  %7 = cast %1 : f16[2, 3]\n  %8 = bitcast %7 : u16[2, 3]\n  %9 = bitcast %8 : f16[2, 3]\n  return %9", NULL},
    {"  %7 = cast %1 : f16[2, 3]\n  %8 = bitcast %7 : u16[2, 3]\n  %9 = bitcast %8 : bf16[2, 3]\n  return %9",
     "  %7 = cast %1 : f16[2, 3]\n  %8 = bitcast %7 : bf16[2, 3]\n  return %8"},
    {C(-1) I "  %8 = bitcast %7 : u32[2, 3]\n  return %8", "  %7 = const {4294967295} : u32[2, 3] # 4294967295\n  return %7"},
    {C(2143289345) I "  %8 = bitcast %7" F "  return %8", "  %7 = const {2143289345}" F "  return %7"},
    /* zeros, ones, the same */
    {MINUS_0 "  %8 = add %1, %7" F "  return %8", "  return %1"},
    {ZERO "  %8 = add %1, %7" F "  return %8", NULL},
    {"  %7 = exp %1" F "  %8 = const {0}" F "  %9 = add %7, %8" F "  return %9", "  %7 = exp %1" F "  return %7"},
    {ZERO "  %8 = maximum %1, %7" F "  %9 = add %8, %7" F "  return %9",
     ZERO "  %8 = maximum %1, %7" F "  return %8"},
    {C(3212836864) F "  %8 = maximum %1, %7" F "  %9 = const {0}" F "  %10 = add %8, %9" F "  return %10", NULL}, /* of -0 and -1: -0 */
    {C(0) I "  %8 = add %3, %7" I "  return %8", "  return %3"},
    {"  %7 = neg %2" F "  %8 = add %1, %7" F "  return %8", "  %7 = sub %1, %2" F "  return %7"},
    {"  %7 = neg %1" F "  %8 = add %7, %2" F "  return %8", "  %7 = sub %2, %1" F "  return %7"},
    {ZERO "  %8 = sub %1, %7" F "  return %8", "  return %1"},
    {MINUS_0 "  %8 = sub %1, %7" F "  return %8", NULL},
    {MINUS_0 "  %8 = sub %7, %1" F "  return %8", "  %7 = neg %1" F "  return %7"},
    {ZERO "  %8 = sub %7, %1" F "  return %8", NULL},
    {C(0) I "  %8 = sub %7, %3" I "  return %8", "  %7 = neg %3" I "  return %7"},
    {"  %7 = sub %3, %3" I "  return %7", "  %7 = const {0}" I "  return %7"},
    {"  %7 = sub %1, %1" F "  return %7", NULL},
    {"  %7 = neg %2" F "  %8 = sub %1, %7" F "  return %8", "  %7 = add %1, %2" F "  return %7"},
    {ONE "  %8 = mul %1, %7" F "  return %8", "  return %1"},
    {MINUS_1 "  %8 = mul %1, %7" F "  return %8", "  %7 = neg %1" F "  return %7"},
    {ZERO "  %8 = mul %1, %7" F "  return %8", NULL},
    {C(0) I "  %8 = mul %3, %7" I "  return %8", "  %7 = const {0}" I "  return %7"},
    {ONE "  %8 = div %1, %7" F "  return %8", "  return %1"},
    {C(-1) I "  %8 = div %3, %7" I "  return %8", "  %7 = neg %3" I "  return %7"},
    {"  %7 = maximum %1, %1" F "  return %7", "  return %1"},
    {"  %7 = minimum %3, %3" I "  return %7", "  return %3"},
    {C(4286578688) F "  %8 = maximum %1, %7" F "  return %8", "  return %1"},
    {C(2139095040) F "  %8 = minimum %1, %7" F "  return %8", "  return %1"},
    {C(2139095040) F "  %8 = maximum %1, %7" F "  return %8", NULL},
    {"  %7 = bit_and %5, %5" B "  return %7", "  return %5"},
    {C(0) I "  %8 = bit_and %3, %7" I "  return %8", "  %7 = const {0}" I "  return %7"},
    {C(-1) I "  %8 = bit_and %3, %7" I "  return %8", "  return %3"},
    {C(1) B "  %8 = bit_and %5, %7" B "  return %8", "  return %5"},
    {"  %7 = bit_or %5, %5" B "  return %7", "  return %5"},
    {C(0) I "  %8 = bit_or %3, %7" I "  return %8", "  return %3"},
    {C(1) B "  %8 = bit_or %5, %7" B "  return %8", "  %7 = const {1}" B "  return %7"},
    {"  %7 = bit_xor %5, %5" B "  return %7", "  %7 = const {0}" B "  return %7"},
    {C(0) I "  %8 = bit_xor %3, %7" I "  return %8", "  return %3"},
    {C(0) I "  %8 = shift_left %3, %7" I "  return %8", "  return %3"},
    {C(0) I "  %8 = shift_right %3, %7" I "  return %8", "  return %3"},
    /* comparisons */
    {"  %7 = lt %1, %1" B "  return %7", "  %7 = const {0}" B "  return %7"},
    {"  %7 = le %3, %3" B "  return %7", "  %7 = const {1}" B "  return %7"},
    {"  %7 = le %1, %1" B "  return %7", NULL},
    {"  %7 = eq %3, %3" B "  return %7", "  %7 = const {1}" B "  return %7"},
    {"  %7 = ne %3, %3" B "  return %7", "  %7 = const {0}" B "  return %7"},
    {"  %7 = ne %1, %1" B "  return %7", NULL},
    {C(1) B "  %8 = eq %5, %7" B "  return %8", "  return %5"},
    {C(0) B "  %8 = ne %5, %7" B "  return %8", "  return %5"},
    {C(1) I "  %8 = eq %3, %7" B "  return %8", NULL},
    /* where */
    {C(1) B "  %8 = where %7, %1, %2" F "  return %8", "  return %1"},
    {C(0) B "  %8 = where %7, %1, %2" F "  return %8", "  return %2"},
    {"  %7 = where %5, %1, %1" F "  return %7", "  return %1"},
    {"  %7 = not %5" B "  %8 = where %7, %1, %2" F "  return %8", "  %7 = where %5, %2, %1" F "  return %7"},
    /* movement of movement */
    {"  %7 = reshape %1" F "  return %7", "  return %1"},
    {"  %7 = reshape %1 : f32[6]\n  %8 = reshape %7 : f32[3, 2]\n  return %8", "  %7 = reshape %1 : f32[3, 2]\n  return %7"},
    {"  %7 = reshape %1 : f32[6]\n  %8 = reshape %7" F "  return %8", "  return %1"},
    {"  %7 = permute %1 {1, 0} : f32[3, 2]\n  %8 = permute %7 {1, 0}" F "  return %8", "  return %1"},
    {"  %7 = permute %1 {0, 1}" F "  return %7", "  return %1"},
    {"  %7 = reshape %1 : f32[2, 3, 1]\n  %8 = expand %7 : f32[2, 3, 4]\n"
     "  %9 = permute %8 {1, 2, 0} : f32[3, 4, 2]\n  %10 = permute %9 {0, 2, 1} : f32[3, 2, 4]\n  return %10",
     "  %7 = reshape %1 : f32[2, 3, 1]\n  %8 = expand %7 : f32[2, 3, 4]\n  %9 = permute %8 {1, 0, 2} : f32[3, 2, 4]\n  return %9"},
    {"  %7 = reshape %1 : f32[1, 2, 3]\n  %8 = permute %7 {1, 0, 2} : f32[2, 1, 3]\n  return %8", "  %7 = reshape %1 : f32[2, 1, 3]\n  return %7"},
    {"  %7 = reshape %1 : f32[1, 2, 3, 1]\n  %8 = expand %7 : f32[4, 2, 3, 1]\n  %9 = expand %8 : f32[4, 2, 3, 5]\n  return %9",
     "  %7 = reshape %1 : f32[1, 2, 3, 1]\n  %8 = expand %7 : f32[4, 2, 3, 5]\n  return %8"},
    {"  %7 = expand %1" F "  return %7", "  return %1"},
    {"  %7 = slice %1 {0, 0, 1, 1}" F "  return %7", "  return %1"},
    {"  %7 = pad %1 {0, 0, 1, 1, 2147483648} : f32[4, 3]\n  %8 = pad %2 {2, 0, 1, 1, 2147483648} : f32[4, 3]\n  %9 = add %7, %8 : f32[4, 3]\n  %10 = slice %9 {2, 0, 1, 1} : f32[2, 3]\n  return %10",
     "  return %2"},
    {"  %7 = pad %1 {0, 0, 1, 1, 0} : f32[4, 3]\n  %8 = pad %2 {2, 0, 1, 1, 0} : f32[4, 3]\n  %9 = add %7, %8 : f32[4, 3]\n  %10 = slice %9 {0, 0, 1, 1} : f32[2, 3]\n  return %10",
     "  %7 = const {0} : f32[2, 3] # 0\n  %8 = add %1, %7" F "  return %8"},
    {"  %7 = pad %1 {1, 0, 2, 1, 0} : f32[5, 3]\n  %8 = slice %7 {1, 1, 2, 1} : f32[2, 2]\n  return %8", "  %7 = slice %1 {0, 1, 1, 1} : f32[2, 2]\n  return %7"},
    {"  %7 = reshape %1 : f32[6]\n  %8 = slice %7 {1, 2} : f32[3]\n  %9 = slice %8 {1, 1} : f32[2]\n  return %9",
     "  %7 = reshape %1 : f32[6]\n  %8 = slice %7 {3, 2} : f32[2]\n  return %8"},
    {"  %7 = pad %1 {0, 0, 1, 1, 5}" F "  return %7", "  return %1"},
    {"  %7 = reshape %1 : f32[6]\n  %8 = pad %7 {1, 1, 0} : f32[8]\n  %9 = pad %8 {2, 3, 0} : f32[30]\n  return %9",
     "  %7 = reshape %1 : f32[6]\n  %8 = pad %7 {5, 3, 0} : f32[30]\n  return %8"},
    {"  %7 = reshape %1 : f32[6]\n  %8 = pad %7 {1, 1, 0} : f32[8]\n  %9 = pad %8 {2, 3, 1} : f32[30]\n  return %9", NULL},
    {"  %7 = flip %1 {3}" F "  %8 = flip %7 {2}" F "  return %8", "  %7 = flip %1 {1}" F "  return %7"},
    {"  %7 = flip %1 {3}" F "  %8 = flip %7 {3}" F "  return %8", "  return %1"},
    {"  %7 = flip %1 {0}" F "  return %7", "  return %1"},
    /* movement of constants */
    {"  %7 = const {1065353216} : f32[]\n  %8 = reshape %7 : f32[1, 1]\n  %9 = expand %8" F "  return %9", "  %7 = const {1065353216}" " : f32[2, 3] # 1\n  return %7"},
    {"  %7 = const {5} : i32[4]\n  %8 = pad %7 {1, 1, 5} : i32[6]\n  %9 = slice %8 {0, 2} : i32[3]\n  return %9", "  %7 = const {5} : i32[3]\n  return %7"},
    {"  %7 = const {5} : i32[4]\n  %8 = pad %7 {1, 1, 6} : i32[6]\n  return %8", NULL},
    {"  %7 = iota {0} : i32[1, 5]\n  return %7", "  %7 = const {0} : i32[1, 5]\n  return %7"},
    /* reductions */
    {"  %7 = max %1 {1} : f32[3]\n  %8 = max %7 {1} : f32[]\n  return %8", "  %7 = max %1 {3} : f32[]\n  return %7"},
    {"  %7 = min %1 {2} : f32[2]\n  %8 = min %7 {1} : f32[]\n  return %8", "  %7 = min %1 {3} : f32[]\n  return %7"},
    {"  %7 = max %1 {1} : f32[3]\n  %8 = min %7 {1} : f32[]\n  return %8", NULL},
    {"  %7 = sum %1 {1} : f32[3]\n  %8 = sum %7 {1} : f32[]\n  return %8", NULL},
    {"  %7 = reshape %1 : f32[2, 1, 3]\n  %8 = max %7 {2}" F "  return %8", "  return %1"},
    {"  %7 = reshape %3 : i32[2, 1, 3]\n  %8 = sum %7 {2}" I "  return %8", "  return %3"},
    {"  %7 = reshape %1 : f32[2, 1, 3]\n  %8 = sum %7 {2}" F "  return %8", NULL}, /* of -0 it is 0 */
    {"  %7 = exp %1" F "  %8 = reshape %7 : f32[2, 1, 3]\n  %9 = sum %8 {2}" F "  return %9", "  %7 = exp %1" F "  return %7"},
    {ONE "  %8 = sum %7 {3} : f32[]\n  return %8", "  %7 = const {1086324736} : f32[] # 6\n  return %7"},
    {MINUS_0 "  %8 = sum %7 {3} : f32[]\n  return %8", "  %7 = const {0} : f32[] # 0\n  return %7"},
    {C(1036831949) F "  %8 = sum %7 {3} : f32[]\n  return %8", NULL}, /* 0.1: partial sums round */
    {C(1036831949) F "  %8 = max %7 {3} : f32[]\n  return %8", "  %7 = const {1036831949} : f32[] # 0.100000001\n  return %7"},
    {"  %7 = const {200} : u8[10]\n  %8 = sum %7 {1} : i32[]\n  return %8", "  %7 = const {2000} : i32[]\n  return %7"},
    {"  %7 = reshape %1 : f32[6, 1]\n  %8 = slice %7 {0, 0, 1, 1} : f32[0, 1]\n  %9 = min %8 {1} : f32[1]\n  return %9",
     "  %7 = const {2139095040} : f32[1] # inf\n  return %7"},
    {"  %7 = slice %1 {0, 0, 1, 1} : f32[2, 0]\n  %8 = slice %2 {0, 0, 1, 1} : f32[0, 3]\n  %9 = dot %7, %8 {0, 1, 1, 0}" F "  return %9",
     "  %7 = const {0}" " : f32[2, 3] # 0\n  return %7"},
    /* dead code, and what is left alone */
    {"  %7 = exp %1" F "  %8 = exp %2" F "  return %8, %1", "  %7 = exp %2" F "  return %7, %1"},
    {"  %7 = dot %1, %2 {0, 1, 1, 1} : f32[2, 2]\n  return %7", NULL},
    /* clang-format on */
};

static dc_func *parse(dc_module **m, const char *body)
{
    char text[2000];
    char said[400];
    snprintf(text, sizeof text, "%s%s\n}\n", HEAD, body);
    job.err = (dc_err){0};
    if (dc_module_parse(&job, text, m) != DC_OK) {
        dc_err_render(&job.err, 0, said, sizeof said);
        printf("%s\n%s\n", said, text);
        exit(1);
    }
    return (*m)->func.at[0];
}

/* The text without the comments of constants. */
static void print(const dc_func *f, char *out, size_t size)
{
    dc_text t = {0};
    size_t n = 0;
    dc_func_print(f, &t);
    for (const char *s = t.s; *s != '\0' && n + 1 < size; s++) {
        if (s[0] == ' ' && s[1] == '#')
            s += strcspn(s, "\n");
        out[n++] = *s;
    }
    out[n] = '\0';
    dc_text_free(&t);
}

static void test_written(void)
{
    for (size_t i = 0; i < DC_COUNTOF(cases); i++) {
        dc_module *from, *to;
        char got[2000], want[2000];
        dc_func *f = parse(&from, cases[i].from);
        const dc_func *g = parse(&to, cases[i].to ? cases[i].to : cases[i].from);
        const uint32_t functions = from->func.n;
        const dc_func *s = dc_simplify(f);
        CHECK_EQ(from->func.n, functions + 1);
        CHECK(dc_func_check(&job, s) == DC_OK);
        print(s, got, sizeof got);
        print(g, want, sizeof want);
        CHECK_STR(got, want);
        dc_module_free(from);
        dc_module_free(to);
    }
}

/* Origins: what stays keeps its lines, what is merged collects them. */
static void test_origins(void)
{
    dc_module *m = dc_module_new();
    dc_func *f = dc_func_new(m, "f");
    const dc_type t = {.dtype = DC_F32};
    const dc_ref x = dc_graph_param(f, &t, "x");
    dc_func_from(f, "a.lua:1", NULL);
    const dc_ref e = dc_graph_op1(f, DC_OP_EXP, x);
    dc_func_from(f, "a.lua:2", "net.1");
    DC_PUSH(f->result, dc_graph_op2(f, DC_OP_MUL, e, dc_graph_like(f, e, 1)));
    const dc_func *s = dc_simplify(f);
    const dc_node *n = dc_node_at(s, s->result.at[0]);
    CHECK_EQ(n->op, DC_OP_EXP);
    CHECK_STR(s->origins.at[n->origin].where, "a.lua:1");
    CHECK_STR(s->origins.at[s->origins.at[n->origin].next].where, "a.lua:2");
    CHECK_STR(s->label.at[0], "x");
    dc_module_free(m);
}

/* ---- random functions ---- */

static const double specials[] = {
    0.0,      -0.0,      1,   -1,           0.5,           2,           3, 255, 1e30, -1e-30,
    INFINITY, -INFINITY, NAN, 2147483647.0, -2147483648.0, 4294967295.0};

static double special(rng *r)
{
    return specials[rng_below(r, (int)DC_COUNTOF(specials))];
}

static dc_ref pick(rng *r, const dc_func *f)
{
    return 1 + (dc_ref)rng_below(r, (int)f->node.n - 1);
}

/* A node of that type; a constant if none is found soon. */
static dc_ref pick_like(rng *r, dc_func *f, const dc_type *t)
{
    for (int tries = rng_below(r, 30); tries > 0; tries--) {
        const dc_ref a = pick(r, f);
        const dc_type u = dc_node_type(f, a);
        if (dc_type_same(&u, t))
            return a;
    }
    return dc_graph_const(f, t, special(r));
}

static void grow_ew(rng *r, dc_func *f)
{
    const dc_op op = (dc_op)rng_below(r, DC_OP__COUNT);
    const dc_op_row *row = dc_op_row_of(op);
    dc_type t = dc_node_type(f, pick(r, f)), want = t;
    dc_ref in[4];
    dc_job own = {0};
    dc_ref made;
    if (row->cls != DC_CLASS_EW)
        return;
    for (int i = 0; i < row->n; i++) {
        dc_type u = t;
        if (op == DC_OP_WHERE && i == 0)
            u.dtype = DC_BOOL;
        in[i] = pick_like(r, f, &u);
    }
    want.dtype = (uint8_t)rng_below(r, DC_DTYPE__COUNT);
    (void)dc_make(&own, f, op, in, row->n, NULL, 0, &want, &made); /* dtypes may not fit */
}

static void random_dims(rng *r, const dc_type *t, int64_t *dim)
{
    for (int i = 0; i < t->rank; i++)
        dim[i] = t->dim[i];
    for (int i = 0; i + 1 < t->rank; i++)
        if (rng_below(r, 2)) {
            const int64_t d = dim[i];
            dim[i] = dim[i + 1];
            dim[i + 1] = d;
        }
}

static void grow_move(rng *r, dc_func *f)
{
    const dc_ref a = pick(r, f);
    const dc_type t = dc_node_type(f, a);
    const int rank = t.rank, kind = rng_below(r, 7);
    int64_t dim[DC_MAX_RANK], start[DC_MAX_RANK], step[DC_MAX_RANK], perm[DC_MAX_RANK];
    if (kind == 0) {
        random_dims(r, &t, dim);
        dc_graph_reshape(f, a, rank, dim);
    } else if (kind == 1 && rank < 4) {
        for (int i = 0, at = rng_below(r, rank + 1); i < rank + 1; i++)
            dim[i] = i == at ? 1 : t.dim[i - (i > at)];
        dc_graph_reshape(f, a, rank + 1, dim);
    } else if (kind == 2) {
        for (int i = 0; i < rank; i++)
            perm[i] = i;
        for (int i = 0; i + 1 < rank; i++) {
            const int other = i + rng_below(r, rank - i);
            const int64_t p = perm[i];
            perm[i] = perm[other];
            perm[other] = p;
        }
        dc_graph_make(f, DC_OP_PERMUTE, &a, 1, perm, rank, NULL);
    } else if (kind == 3) {
        for (int i = 0; i < rank; i++)
            dim[i] = t.dim[i] == 1 ? rng_below(r, 4) : t.dim[i];
        if (dc_type_count(&t) < 64)
            dc_graph_expand(f, a, dim);
    } else if (kind == 4) {
        for (int i = 0; i < rank; i++) {
            start[i] = t.dim[i] > 1 ? rng_below(r, (int)t.dim[i]) : 0;
            step[i] = 1 + rng_below(r, 3);
            dim[i] =
                t.dim[i] == 0 ? 0 : rng_below(r, (int)((t.dim[i] - 1 - start[i]) / step[i]) + 2);
        }
        dc_graph_slice(f, a, start, step, dim);
    } else if (kind == 5) {
        for (int i = 0; i < rank; i++) {
            start[i] = rng_below(r, 2);
            step[i] = 1 + rng_below(r, 2);
            dim[i] = start[i] + (t.dim[i] > 0 ? (t.dim[i] - 1) * step[i] + 1 : 0) + rng_below(r, 2);
        }
        if (dc_type_count(&t) < 64)
            dc_graph_pad(f, a, start, step, dim, dc_bits_of((dc_dtype)t.dtype, special(r)));
    } else if (kind == 6) {
        dc_graph_flip(f, a, (uint32_t)rng_below(r, 1 << rank));
    }
}

static void grow_other(rng *r, dc_func *f)
{
    const dc_ref a = pick(r, f);
    const dc_type t = dc_node_type(f, a);
    const dc_op reds[] = {DC_OP_SUM, DC_OP_MAXR, DC_OP_MINR}, op = reds[rng_below(r, 3)];
    dc_type positions = {.dtype = DC_I32, .rank = 1, .dim = {rng_below(r, 3)}};
    const int64_t zero = 0;
    switch (rng_below(r, 4)) {
    case 0:
    case 1:
        dc_graph_reduce(f, op, a, (uint32_t)rng_below(r, 1 << t.rank));
        return;
    case 2:
        dc_graph_make(f, DC_OP_IOTA, NULL, 0, &zero, 1, &positions);
        return;
    case 3:
        if (t.rank == 2 && t.dtype != DC_BOOL)
            dc_graph_dot(f, a, a, 0, NULL, NULL, 1, &zero, &zero);
        return;
    }
}

static dc_func *random_func(rng *r, dc_module *m)
{
    dc_func *f = dc_func_new(m, "random");
    for (int i = 0; i < 4; i++) {
        dc_type t = {.dtype = (uint8_t)rng_below(r, DC_DTYPE__COUNT)};
        t.rank = (uint8_t)rng_below(r, 4);
        for (int a = 0; a < t.rank; a++)
            t.dim[a] = rng_below(r, 8) ? 1 + rng_below(r, 3) : 0;
        dc_graph_param(f, &t, NULL);
    }
    for (int i = 5 + rng_below(r, 40); i > 0; i--) {
        const int kind = rng_below(r, 8);
        if (kind < 5)
            grow_ew(r, f);
        else if (kind < 7)
            grow_move(r, f);
        else
            grow_other(r, f);
    }
    for (int i = 0; i < 6; i++)
        DC_PUSH(f->result, pick(r, f));
    return f;
}

typedef struct run {
    const dc_func *f;
    dc_eval_mode mode;
    const void *const *params;
    void *const *results;
} run;

static dc_status evaluate(dc_job *j, void *arg)
{
    const run *u = arg;
    return dc_eval(j, u->f, u->mode, u->params, u->results);
}

static bool same_values(const dc_type *t, const void *a, const void *b)
{
    const size_t size = dc_dtype_size((dc_dtype)t->dtype);
    for (int64_t i = 0; i < dc_type_count(t); i++) {
        const uint64_t x = dc_bits_load((dc_dtype)t->dtype, (const char *)a + (size_t)i * size);
        const uint64_t y = dc_bits_load((dc_dtype)t->dtype, (const char *)b + (size_t)i * size);
        if (x != y && !(isnan(dc_value_of((dc_dtype)t->dtype, x)) &&
                        isnan(dc_value_of((dc_dtype)t->dtype, y))))
            return false;
    }
    return true;
}

static uint32_t count_live(const dc_func *f)
{
    dc_arena a = {0};
    const bool *live = dc_func_live(f, &a);
    uint32_t n = 0;
    for (dc_ref r = 1; r < f->node.n; r++)
        n += live[r];
    dc_arena_free(&a);
    return n;
}

static void test_random(rng *r)
{
    long gone = 0;
    for (int round = 0; round < 3000; round++) {
        const uint64_t state = r->state;
        dc_module *m = dc_module_new();
        dc_func *f = random_func(r, m);
        dc_func *s = dc_simplify(f);
        dc_arena a = {0};
        const void *params[4];
        void *before[6], *after[6];
        for (int i = 0; i < 4; i++) {
            const dc_type t = dc_node_type(f, f->param.at[i]);
            const size_t size = dc_dtype_size((dc_dtype)t.dtype);
            char *at = dc_arena_alloc(&a, dc_type_bytes(&t));
            for (int64_t k = 0; k < dc_type_count(&t); k++)
                dc_bits_store((dc_dtype)t.dtype, at + (size_t)k * size,
                              dc_bits_of((dc_dtype)t.dtype,
                                         rng_below(r, 2) ? special(r) : rng_uniform(r, -4, 4)));
            params[i] = at;
        }
        bool ok = s->result.n == 6 && count_live(s) <= count_live(f) &&
                  dc_func_check(&job, s) == DC_OK && dc_func_check(&job, f) == DC_OK;
        for (int mode = DC_EVAL_ROUND; ok && mode <= DC_EVAL_STRICT; mode++) {
            for (int i = 0; i < 6; i++) {
                const dc_type t = dc_node_type(f, f->result.at[i]),
                              u = dc_node_type(s, s->result.at[i]);
                ok = ok && dc_type_same(&t, &u);
                before[i] = dc_arena_alloc(&a, dc_type_bytes(&t));
                after[i] = dc_arena_alloc(&a, dc_type_bytes(&u));
            }
            ok = ok &&
                 dc_protect(&job, evaluate, &(run){f, (dc_eval_mode)mode, params, before}) == DC_OK;
            ok = ok &&
                 dc_protect(&job, evaluate, &(run){s, (dc_eval_mode)mode, params, after}) == DC_OK;
            for (int i = 0; ok && i < 6; i++) {
                const dc_type t = dc_node_type(f, f->result.at[i]);
                ok = same_values(&t, before[i], after[i]);
            }
        }
        gone += (long)count_live(f) - (long)count_live(s);
        dc_func *twice = dc_simplify(s);
        if (!CHECK(ok) || !CHECK(count_live(twice) <= count_live(s))) {
            dc_text t = {0};
            dc_func_print(f, &t);
            dc_func_print(s, &t);
            printf("seed %llu\n%s", (unsigned long long)state, t.s);
            dc_text_free(&t);
            round = 3000;
        }
        dc_arena_free(&a);
        dc_module_free(m);
    }
    CHECK(gone > 3000); /* the rules did something */
}

int main(int argc, char **argv)
{
    rng r = {rng_seed(argc, argv, 5489)};
    dc_job_init(&job, NULL, NULL);
    test_written();
    test_origins();
    test_random(&r);
    dc_job_fini(&job);
    return t_done();
}
