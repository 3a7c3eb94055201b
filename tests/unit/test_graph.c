/*
 * core/ir/graph.c and core/ir/infer*.c: consing, origins, clones and hashes; the type, shape and names
 * rules with what they refuse.
 */
#include "core/ir/dot.h"

#include <string.h>

#include "tests/unit/typetext.h"

static dc_module *module;

static dc_ref param(dc_func *f, const char *t)
{
    const dc_type made = type(t);
    return dc_graph_param(f, &made, NULL);
}

static const char *type_of(const dc_func *f, dc_ref r)
{
    const dc_type t = dc_node_type(f, r);
    dc_type_print(&t, text, sizeof text);
    return text;
}

/* The result of inference, or the sentence it is refused with (axes from 1). */
static const char *infer(dc_op op, int n, const char *const *in, int nattr, const int64_t *attr,
                         const char *want)
{
    dc_type types[4], out, wanted = {0};
    for (int i = 0; i < n; i++)
        types[i] = type(in[i]);
    if (want != NULL)
        wanted = type(want);
    job.err = (dc_err){0};
    if (dc_infer(&job, op, types, n, attr, nattr, want == NULL ? NULL : &wanted, &out) == DC_OK)
        dc_type_print(&out, text, sizeof text);
    else
        dc_err_render(&job.err, 1, text, sizeof text);
    return text;
}

#define ATTR(...)                                                        \
    (int)DC_COUNTOF(((const int64_t[]){__VA_ARGS__})), (const int64_t[]) \
    {                                                                    \
        __VA_ARGS__                                                      \
    }
#define NO_ATTR 0, NULL
#define TYPES(...)                                                     \
    (int)DC_COUNTOF(((const char *[]){__VA_ARGS__})), (const char *[]) \
    {                                                                  \
        __VA_ARGS__                                                    \
    }
#define NO_TYPES 0, NULL

static void test_consing(void)
{
    dc_func *f = dc_func_new(module, "consing");
    const dc_ref a = param(f, "f32[4]"), b = param(f, "f32[4]");
    CHECK(a != b && a != 0);
    const dc_ref sum = dc_graph_op2(f, DC_OP_ADD, a, b);
    CHECK_EQ(dc_graph_op2(f, DC_OP_ADD, b, a), sum);
    CHECK(dc_graph_op2(f, DC_OP_SUB, a, b) != dc_graph_op2(f, DC_OP_SUB, b, a));
    const dc_ref one = dc_graph_like(f, a, 1);
    CHECK_EQ(dc_node_at(f, dc_graph_op2(f, DC_OP_MUL, one, sum))->in[1], one); /* constants last */
    CHECK_EQ(dc_graph_like(f, b, 1), one);
    CHECK(dc_is_const(f, one, 1) && !dc_is_const(f, one, 2) && !dc_is_const(f, a, 1));
    const dc_ref zero = dc_graph_like(f, a, -0.0);
    CHECK(dc_is_const(f, zero, -0.0) && !dc_is_const(f, zero, 0.0));
    const dc_type small = type("u8[]");
    CHECK(!dc_is_const(f, dc_graph_const(f, &small, 0.5), 0.5));
    uint32_t made = 0;
    for (int round = 0; round < 2; round++) { /* the second finds all of the first */
        dc_ref r = a;
        for (int i = 0; i < 1000; i++)
            r = dc_graph_op2(f, i & 1 ? DC_OP_MUL : DC_OP_SUB, r, i % 3 ? a : b);
        if (round > 0)
            CHECK_EQ(f->node.n, made);
        made = f->node.n;
    }
    for (dc_ref r = 1; r < f->node.n; r++)
        for (int i = 0; i < f->node.at[r].nin; i++)
            CHECK(f->node.at[r].in[i] < r);
}

static void test_helpers(void)
{
    dc_func *f = dc_func_new(module, "helpers");
    const dc_ref a = param(f, "f32[2, 3]"), u = param(f, "u8[2, 3]");
    const int64_t d23[] = {2, 3}, d6[] = {6}, d32[] = {3, 2}, zeros[] = {0, 0}, ones[] = {1, 1};
    CHECK_EQ(dc_graph_reshape(f, a, 2, d23), a);
    CHECK_STR(type_of(f, dc_graph_reshape(f, a, 1, d6)), "f32[6]");
    CHECK_EQ(dc_graph_permute(f, a, (const int64_t[]){0, 1}), a);
    CHECK_STR(type_of(f, dc_graph_permute(f, a, (const int64_t[]){1, 0})), "f32[3, 2]");
    CHECK_EQ(dc_graph_expand(f, a, d23), a);
    CHECK_EQ(dc_graph_slice(f, a, zeros, ones, d23), a);
    CHECK_STR(
        type_of(f, dc_graph_slice(f, a, zeros, (const int64_t[]){1, 2}, (const int64_t[]){2, 2})),
        "f32[2, 2]");
    CHECK_EQ(dc_graph_pad(f, a, zeros, ones, d23, 0), a);
    CHECK_STR(type_of(f, dc_graph_pad(f, a, ones, ones, (const int64_t[]){4, 5}, 0)), "f32[4, 5]");
    CHECK_EQ(dc_graph_flip(f, a, 0), a);
    CHECK_EQ(dc_graph_cast(f, a, DC_F32), a);
    CHECK_EQ(dc_graph_reduce(f, DC_OP_SUM, a, 0), a);
    CHECK_STR(type_of(f, dc_graph_reduce(f, DC_OP_SUM, u, 0)), "i32[2, 3]");
    const dc_ref row = dc_graph_reduce(f, DC_OP_SUM, a, 2);
    CHECK_STR(type_of(f, row), "f32[2]");
    CHECK_STR(type_of(f, dc_graph_unreduce(f, row, 2, 2, d23)), "f32[2, 3]");
    const dc_ref b = dc_graph_reshape(f, a, 2, d32);
    CHECK_STR(type_of(f, dc_graph_dot(f, a, b, 0, NULL, NULL, 1, (const int64_t[]){1}, zeros)),
              "f32[2, 2]");
    CHECK_EQ(dc_node_count(dc_node_at(f, a)), 6);
}

/* Attributes of a dot to the structure and back; axes that are none of the lists are free. */
static void test_dot_axes(void)
{
    const int64_t attr[] = {1, 2, 1, 0, 0, 3, 2, 1};
    int64_t back[DC_DOT_ATTRS];
    CHECK_EQ(dc_dot_nattr(attr, 8), 8);
    const dc_dot d = dc_dot_read(attr, 4, 4);
    CHECK(d.nbatch == 1 && d.batch[0][0] == 1 && d.batch[1][0] == 0);
    CHECK(d.ncontract == 2 && d.contract[0][0] == 0 && d.contract[0][1] == 3);
    CHECK(d.contract[1][0] == 2 && d.contract[1][1] == 1);
    CHECK(d.nfree[0] == 1 && d.free[0][0] == 2 && d.nfree[1] == 1 && d.free[1][0] == 3);
    CHECK_EQ(dc_dot_write(&d, back), 8);
    CHECK(memcmp(attr, back, sizeof attr) == 0);
    CHECK_EQ(dc_dot_nattr(attr, 1), -1);
    CHECK_EQ(dc_dot_nattr((const int64_t[]){0, -1}, 2), -1);
    CHECK_EQ(dc_dot_nattr((const int64_t[]){DC_MAX_RANK + 1, 0}, 2), -1);
    CHECK_EQ(dc_dot_nattr((const int64_t[]){0, DC_MAX_RANK}, 2), 2 + 2 * DC_MAX_RANK);
}

static int count_origins(const dc_func *f, dc_ref r)
{
    int n = 0;
    for (uint32_t i = f->node.at[r].origin; i != 0; i = f->origins.at[i].next)
        n++;
    return n;
}

static void test_origins(void)
{
    dc_func *f = dc_func_new(module, "origins");
    char where[16] = "a.lua:1";
    const dc_ref a = param(f, "f32[4]");
    CHECK_EQ(count_origins(f, a), 0);
    dc_func_from(f, where, "net.1");
    const dc_ref r = dc_graph_op1(f, DC_OP_NEG, a);
    where[6] = '2'; /* the string was copied */
    dc_func_from(f, where, NULL);
    CHECK_EQ(dc_graph_op1(f, DC_OP_NEG, a), r);
    CHECK_EQ(dc_graph_op1(f, DC_OP_NEG, a), r);
    CHECK_EQ(count_origins(f, r), 2);
    const dc_origin *first = &f->origins.at[f->node.at[r].origin];
    CHECK_STR(first->where, "a.lua:1");
    CHECK_STR(first->path, "net.1");
    CHECK_STR(f->origins.at[first->next].where, "a.lua:2");
    CHECK(f->origins.at[first->next].path == NULL);
    DC_PUSH(f->result, r);
    dc_module *other = dc_module_new();
    dc_func *g = dc_func_clone(other, f, NULL);
    CHECK_EQ(count_origins(g, g->result.at[0]), 2);
    CHECK_STR(g->origins.at[g->node.at[g->result.at[0]].origin].where, "a.lua:1");
    dc_module_free(other);
    for (int i = 0; i < 100; i++) { /* the list is cut */
        snprintf(where, sizeof where, "%d", i);
        dc_func_from(f, where, NULL);
        dc_graph_op1(f, DC_OP_NEG, a);
    }
    CHECK_EQ(count_origins(f, r), 8);
}

/* The function (a, b) -> exp(a) + b, with a dead node, made in another order when late. */
static dc_func *sample(dc_module *m, const char *name, bool late)
{
    dc_func *f = dc_func_new(m, name);
    const dc_ref a = param(f, "f32[4]");
    const dc_ref early = late ? 0 : param(f, "f32[4]");
    const dc_ref e = dc_graph_op1(f, DC_OP_EXP, a);
    if (!late)
        dc_graph_op1(f, DC_OP_LOG, a);
    const dc_ref b = late ? param(f, "f32[4]") : early;
    DC_PUSH(f->result, dc_graph_op2(f, DC_OP_ADD, e, b));
    return f;
}

static void test_clone_and_hash(void)
{
    dc_func *f = sample(module, "one", false), *g = sample(module, "two", true);
    dc_arena a = {0};
    const bool *live = dc_func_live(f, &a);
    int n = 0;
    for (dc_ref r = 1; r < f->node.n; r++)
        n += live[r];
    CHECK_EQ(n, 4);
    CHECK(dc_func_hash(f) == dc_func_hash(g)); /* neither dead nodes nor names nor order count */
    dc_ref *map = DC_NEW_ARRAY(&a, dc_ref, g->node.n);
    dc_func *c = dc_func_clone(module, g, map);
    CHECK_EQ(c->node.n, 5);
    CHECK_EQ(map[g->result.at[0]], c->result.at[0]);
    CHECK(dc_func_hash(c) == dc_func_hash(g));
    dc_func *h = sample(module, "three", false);
    h->result.at[0] = dc_graph_op1(h, DC_OP_NEG, h->result.at[0]);
    CHECK(dc_func_hash(h) != dc_func_hash(f));
    dc_func *p = sample(module, "four", false);
    param(p, "f32[4]"); /* unused parameters count */
    CHECK(dc_func_hash(p) != dc_func_hash(f));
    dc_func *q = dc_func_clone(module, p, NULL);
    CHECK_EQ(q->param.n, 3);
    const uint32_t functions = module->func.n;
    dc_func_drop(q);
    CHECK_EQ(module->func.n, functions - 1);
    CHECK(module->func.at[module->func.n - 1] == p);
    dc_arena_free(&a);
}

static void test_dtype_rules(void)
{
    CHECK_STR(infer(DC_OP_ADD, TYPES("f32[2]", "f32[2]"), NO_ATTR, NULL), "f32[2]");
    CHECK_STR(infer(DC_OP_ADD, TYPES("f32[2]", "i32[2]"), NO_ATTR, NULL),
              "add: dtypes differ: f32[2] and i32[2]");
    CHECK_EQ(job.err.fact.operand, 2);
    CHECK_STR(infer(DC_OP_ADD, TYPES("bool[2]", "bool[2]"), NO_ATTR, NULL),
              "add: bool[2]: a number is needed");
    CHECK_STR(infer(DC_OP_EXP, TYPES("i32[2]"), NO_ATTR, NULL), "exp: i32[2]: a float is needed");
    CHECK_STR(infer(DC_OP_NOT, TYPES("f32[2]"), NO_ATTR, NULL),
              "not: f32[2]: an integer or bool is needed");
    CHECK_STR(infer(DC_OP_SHL, TYPES("bool[2]", "bool[2]"), NO_ATTR, NULL),
              "shift_left: bool[2]: an integer is needed");
    CHECK_STR(infer(DC_OP_LT, TYPES("f32[2]", "f32[2]"), NO_ATTR, NULL), "bool[2]");
    CHECK_STR(infer(DC_OP_WHERE, TYPES("bool[2]", "u8[2]", "u8[2]"), NO_ATTR, NULL), "u8[2]");
    CHECK_STR(infer(DC_OP_WHERE, TYPES("u8[2]", "u8[2]", "u8[2]"), NO_ATTR, NULL),
              "where: u8[2]: bool is needed");
    CHECK_STR(infer(DC_OP_WHERE, TYPES("bool[2]", "u8[2]", "f32[2]"), NO_ATTR, NULL),
              "where: dtypes differ: u8[2] and f32[2]");
    CHECK_STR(infer(DC_OP_THREEFRY, TYPES("u32[]", "u32[]", "i32[]", "u32[]"), NO_ATTR, NULL),
              "threefry: i32[]: u32 is needed");
    CHECK_STR(infer(DC_OP_CAST, TYPES("f32[2]"), NO_ATTR, "u8[]"), "u8[2]");
    CHECK_STR(infer(DC_OP_BITCAST, TYPES("f32[2]"), NO_ATTR, "i32[]"), "i32[2]");
    CHECK_STR(infer(DC_OP_BITCAST, TYPES("u8[2]"), NO_ATTR, "f8e5m2[]"), "f8e5m2[2]");
    CHECK_STR(infer(DC_OP_BITCAST, TYPES("f32[2]"), NO_ATTR, "f64[]"),
              "bitcast: elements of f32[2] have 32 bits, those of f64 64");
    CHECK_STR(infer(DC_OP_BITCAST, TYPES("u8[2]"), NO_ATTR, "bool[]"),
              "bitcast: elements of u8[2] have 8 bits, those of bool 1");
    CHECK_STR(infer(DC_OP_BITCAST, TYPES("bool[2]"), NO_ATTR, "u8[]"),
              "bitcast: bool[2]: a number is needed");
    CHECK_STR(infer(DC_OP_BITCAST, TYPES("f64[2]"), NO_ATTR, "c64[]"),
              "bitcast: an element of c64 is two numbers");
    CHECK_STR(infer(DC_OP_SUM, TYPES("u8[2, 3]"), ATTR(1), NULL), "i32[3]");
    CHECK_STR(infer(DC_OP_SUM, TYPES("bool[2, 3]"), ATTR(3), NULL), "i32[]");
    CHECK_STR(infer(DC_OP_MAXR, TYPES("u8[2, 3]"), ATTR(1), NULL), "u8[3]");
    CHECK_STR(infer(DC_OP_IOTA, NO_TYPES, ATTR(0), "u8[2]"),
              "iota: u8[2]: a dtype of 32 or 64 bits is needed");
    CHECK_STR(infer(DC_OP_ADD, TYPES("f32[]"), NO_ATTR, NULL), "add: 1 operands given, 2 needed");
}

static void test_shape_rules(void)
{
    CHECK_STR(infer(DC_OP_MUL, TYPES("f32[64, 784]", "f32[64, 10]"), NO_ATTR, NULL),
              "mul: axis 2: 784 against 10");
    CHECK_STR(infer(DC_OP_RESHAPE, TYPES("f32[2, 3]"), NO_ATTR, "f32[7]"),
              "reshape: f32[2, 3] has 6 elements, f32[7] has 7");
    CHECK_STR(infer(DC_OP_PERMUTE, TYPES("f32[2, 3, 4]"), ATTR(2, 0, 1), NULL), "f32[4, 2, 3]");
    CHECK_STR(infer(DC_OP_PERMUTE, TYPES("f32[2, 3]"), ATTR(1, 1), NULL),
              "permute: axis 2 is given twice for f32[2, 3]");
    CHECK_STR(infer(DC_OP_PERMUTE, TYPES("f32[2, 3]"), ATTR(0, 2), NULL),
              "permute: axis 3 of f32[2, 3]: axes are 1 to 2, -1 is the last, or a name");
    CHECK_STR(infer(DC_OP_EXPAND, TYPES("f32[1, 3]"), NO_ATTR, "f32[0, 3]"), "f32[0, 3]");
    CHECK_STR(infer(DC_OP_EXPAND, TYPES("f32[2, 3]"), NO_ATTR, "f32[4, 3]"),
              "expand: axis 1: 2 against 4");
    CHECK_STR(infer(DC_OP_EXPAND, TYPES("f32[3]"), NO_ATTR, "f32[2, 3]"),
              "expand: f32[3] has 1 axes, 2 are wanted");
    CHECK_STR(infer(DC_OP_SLICE, TYPES("f32[10]"), ATTR(1, 3), "f32[3]"), "f32[3]");
    CHECK_STR(infer(DC_OP_SLICE, TYPES("f32[10]"), ATTR(1, 3), "f32[4]"),
              "slice: axis 1 of f32[10] has no range 2 to 11");
    CHECK_STR(infer(DC_OP_SLICE, TYPES("f32[10]"), ATTR(INT64_MAX, INT64_MAX), "f32[4]"),
              "slice: axis 1 of f32[10] has no range 9223372036854775807 to 9223372036854775807");
    CHECK_STR(infer(DC_OP_SLICE, TYPES("f32[10]"), ATTR(10, 1), "f32[0]"), "f32[0]");
    CHECK_STR(infer(DC_OP_SLICE, TYPES("f32[10]"), ATTR(0, 0), "f32[1]"),
              "slice: a step is at least 1");
    CHECK_STR(infer(DC_OP_PAD, TYPES("f32[3]"), ATTR(1, 2, 0), "f32[6]"), "f32[6]");
    CHECK_STR(infer(DC_OP_PAD, TYPES("f32[3]"), ATTR(1, 2, 0), "f32[5]"),
              "pad: axis 1: 3 elements from 1 by 2 do not fit 5");
    CHECK_STR(infer(DC_OP_PAD, TYPES("u8[3]"), ATTR(0, 1, 256), "u8[5]"),
              "pad: 256 is no pattern of u8");
    CHECK_STR(infer(DC_OP_FLIP, TYPES("f32[3]"), ATTR(2), NULL),
              "flip: axis 2 of f32[3]: axes are 1 to 1, -1 is the last, or a name");
    CHECK_STR(infer(DC_OP_SUM, TYPES("f32[2, 3]"), ATTR(5), NULL),
              "sum: axis 3 of f32[2, 3]: axes are 1 to 2, -1 is the last, or a name");
    CHECK_STR(infer(DC_OP_CONST, NO_TYPES, ATTR(-1), "i32[4]"), "i32[4]");
    CHECK_STR(infer(DC_OP_CONST, NO_TYPES, ATTR(-1), "f32[4]"), "const: -1 is no pattern of f32");
    CHECK_STR(infer(DC_OP_CONST, NO_TYPES, ATTR(2), "bool[4]"), "const: 2 is no pattern of bool");
    CHECK_STR(infer(DC_OP_IOTA, NO_TYPES, ATTR(1), "i32[4]"),
              "iota: axis 2 of i32[4]: axes are 1 to 1, -1 is the last, or a name");
}

static void test_index_rules(void)
{
    CHECK_STR(infer(DC_OP_PROD, TYPES("u8[2, 3]"), ATTR(1), NULL), "i32[3]");
    CHECK_STR(
        infer(DC_OP_GATHER, TYPES("f32[word=10, d=4]", "i32[batch=2, t=3]"), ATTR(0, 0), NULL),
        "f32[batch=2, t=3, d=4]");
    CHECK_STR(infer(DC_OP_GATHER, TYPES("bool[2, 5, 7]", "u8[2, 3]"), ATTR(1, 1), NULL),
              "bool[2, 3, 7]");
    CHECK_STR(infer(DC_OP_GATHER, TYPES("f32[n=2, 5]", "i32[n=2]"), ATTR(1, 1), NULL), "f32[n=2]");
    CHECK_STR(infer(DC_OP_GATHER, TYPES("f32[n=2, 5]", "i32[m=2]"), ATTR(1, 1), NULL),
              "gather: axis 1: 'n' against 'm'");
    CHECK_STR(infer(DC_OP_GATHER, TYPES("f32[5]", "f32[2]"), ATTR(0, 0), NULL),
              "gather: f32[2]: an integer is needed");
    CHECK_STR(infer(DC_OP_GATHER, TYPES("f32[5]", "i32[2]"), ATTR(1, 0), NULL),
              "gather: axis 2 of f32[5]: axes are 1 to 1, -1 is the last, or a name");
    CHECK_STR(infer(DC_OP_GATHER, TYPES("f32[3, 5]", "i32[2, 5]"), ATTR(1, 1), NULL),
              "gather: axis 1: 3 against 2");
    CHECK_STR(infer(DC_OP_GATHER, TYPES("f32[3, 5]", "i32[3]"), ATTR(0, 1), NULL),
              "gather: 1 axes in common, at most 0 are");
    CHECK_STR(infer(DC_OP_GATHER, TYPES("f32[0]", "i32[2]"), ATTR(0, 0), NULL),
              "gather: axis 1 has no elements to pick from");
    CHECK_STR(infer(DC_OP_GATHER, TYPES("f32[0]", "i32[0]"), ATTR(0, 0), NULL), "f32[0]");
    CHECK_STR(infer(DC_OP_GATHER, TYPES("f32[1,1,1,1,1]", "i32[1,1,1,1,1]"), ATTR(0, 0), NULL),
              "gather: 9 axes; 8 is the most");
    CHECK_STR(infer(DC_OP_SCATTER, TYPES("f32[n=5, 2]", "i32[3]", "f32[3, d=2]"), ATTR(0, 0), NULL),
              "f32[n=5, 2]");
    CHECK_STR(infer(DC_OP_SCATTER, TYPES("f32[5, 2]", "i32[3]", "i32[3, 2]"), ATTR(0, 0), NULL),
              "scatter: dtypes differ: f32[5, 2] and i32[3, 2]");
    CHECK_STR(infer(DC_OP_SCATTER_ADD, TYPES("f32[5, 2]", "i32[3]", "f32[4, 2]"), ATTR(0, 0), NULL),
              "scatter_add: axis 1: 3 against 4");
    CHECK_STR(infer(DC_OP_SCATTER_ADD, TYPES("f32[5, 2]", "i32[3]", "f32[3]"), ATTR(0, 0), NULL),
              "scatter_add: f32[3] has 1 axes, the integers pick another number");
    CHECK_STR(infer(DC_OP_SCATTER_ADD, TYPES("bool[5]", "i32[3]", "bool[3]"), ATTR(0, 0), NULL),
              "scatter_add: bool[5]: a number is needed");
    CHECK_STR(infer(DC_OP_SCATTER, TYPES("f32[5, c=2]", "i32[3]", "f32[3, d=2]"), ATTR(0, 0), NULL),
              "scatter: axis 2: 'c' against 'd'");
}

static void test_dot_rules(void)
{
    CHECK_STR(infer(DC_OP_DOT, TYPES("f32[64, 784]", "f32[784, 10]"), ATTR(0, 1, 1, 0), NULL),
              "f32[64, 10]");
    CHECK_STR(infer(DC_OP_DOT, TYPES("f32[5, 2, 3]", "f32[3, 4, 5]"), ATTR(1, 1, 0, 2, 2, 0), NULL),
              "f32[5, 2, 4]");
    CHECK_STR(infer(DC_OP_DOT, TYPES("f32[64, 784]", "f32[100, 10]"), ATTR(0, 1, 1, 0), NULL),
              "dot: inner dims differ: axis 2 = 784 against axis 1 = 100");
    CHECK_STR(infer(DC_OP_DOT, TYPES("f32[2, 3]", "f32[4, 3]"), ATTR(1, 1, 0, 0, 1, 1), NULL),
              "dot: axis 1: 2 against 4");
    CHECK_STR(infer(DC_OP_DOT, TYPES("f32[2, 3]", "f32[3, 3]"), ATTR(1, 1, 1, 0, 1, 1), NULL),
              "dot: axis 2 is given twice for f32[2, 3]");
    CHECK_STR(infer(DC_OP_DOT, TYPES("f32[2]", "f32[2]"), ATTR(0, 0), NULL), "f32[2, 2]");
    CHECK_STR(infer(DC_OP_DOT, TYPES("f32[2]", "f32[2]"), ATTR(0), NULL),
              "dot: counts of axes are missing");
    CHECK_STR(infer(DC_OP_DOT, TYPES("f32[2]", "f32[2]"), ATTR(0, 9), NULL),
              "dot: counts of axes are missing");
    CHECK_STR(infer(DC_OP_DOT, TYPES("f32[1,1,1,1,1]", "f32[1,1,1,1]"), ATTR(0, 0), NULL),
              "dot: 9 axes; 8 is the most");
    CHECK_STR(infer(DC_OP_DOT, TYPES("f32[4294967296]", "f32[4294967296]"), ATTR(0, 0), NULL),
              "dot: a tensor of f32[4294967296, 4294967296] is too large to address");
}

static void test_names_rules(void)
{
    CHECK_STR(infer(DC_OP_ADD, TYPES("f32[n=2, 3]", "f32[2, k=3]"), NO_ATTR, NULL),
              "f32[n=2, k=3]");
    CHECK_STR(infer(DC_OP_ADD, TYPES("f32[n=2]", "f32[k=2]"), NO_ATTR, NULL),
              "add: axis 1: 'n' against 'k'");
    CHECK_STR(infer(DC_OP_PERMUTE, TYPES("f32[n=2, k=3]"), ATTR(1, 0), NULL), "f32[k=3, n=2]");
    CHECK_STR(infer(DC_OP_SUM, TYPES("f32[n=2, 3, k=4]"), ATTR(2), NULL), "f32[n=2, k=4]");
    CHECK_STR(infer(DC_OP_SLICE, TYPES("f32[n=2, k=4]"), ATTR(0, 1, 1, 1), "f32[2, 3]"),
              "f32[n=2, 3]");
    CHECK_STR(infer(DC_OP_PAD, TYPES("f32[n=2, k=4]"), ATTR(0, 1, 1, 1, 0), "f32[2, 6]"),
              "f32[n=2, 6]");
    CHECK_STR(infer(DC_OP_FLIP, TYPES("f32[n=2]"), ATTR(1), NULL), "f32[n=2]");
    CHECK_STR(infer(DC_OP_EXPAND, TYPES("f32[n=1, 1]"), NO_ATTR, "f32[1, 5]"), "f32[n=1, 5]");
    CHECK_STR(infer(DC_OP_EXPAND, TYPES("f32[n=1, 1]"), NO_ATTR, "f32[5, 1]"),
              "expand: axis 1: named 'n' of size 1 does not stretch to 5");
    CHECK_STR(infer(DC_OP_CONST, NO_TYPES, ATTR(0), "f32[n=2]"), "f32[n=2]");
    CHECK_STR(infer(DC_OP_DOT, TYPES("f32[n=2, 3]", "f32[k=3, m=4]"), ATTR(0, 1, 1, 0), NULL),
              "f32[n=2, m=4]");
    CHECK_STR(infer(DC_OP_DOT, TYPES("f32[n=2, i=3]", "f32[k=3, 4]"), ATTR(0, 1, 1, 0), NULL),
              "dot: axis 2: 'i' against 'k'");
    CHECK_STR(infer(DC_OP_DOT, TYPES("f32[2, 3]", "f32[b=2, 3]"), ATTR(1, 1, 0, 0, 1, 1), NULL),
              "f32[b=2]");
}

static void test_names_of_reshape(void)
{
#define RESHAPE(from, to) infer(DC_OP_RESHAPE, TYPES(from), NO_ATTR, to)
    CHECK_STR(RESHAPE("f32[n=2, 3, 4]", "f32[2, 12]"), "f32[n=2, 12]");
    CHECK_STR(RESHAPE("f32[n=2, 3, k=4]", "f32[6, 4]"), "f32[6, k=4]");
    CHECK_STR(RESHAPE("f32[n=2, 3, k=4]", "f32[2, 3, 2, 2]"), "f32[n=2, 3, 2, 2]");
    CHECK_STR(RESHAPE("f32[n=2, 6, k=4]", "f32[2, 2, 3, 4]"), "f32[n=2, 2, 3, k=4]");
    CHECK_STR(RESHAPE("f32[n=2]", "f32[2, 1]"), "f32[n=2, 1]");
    CHECK_STR(RESHAPE("f32[n=2]", "f32[1, 2]"), "f32[1, n=2]");
    CHECK_STR(RESHAPE("f32[a=2, b=2]", "f32[2, 2, 1]"), "f32[a=2, b=2, 1]");
    CHECK_STR(RESHAPE("f32[n=2, k=3]", "f32[x=2, 3]"), "f32[x=2, k=3]");
    CHECK_STR(RESHAPE("f32[n=1]", "f32[]"), "f32[]");
#undef RESHAPE
}

/* A pass that makes an illegal node is a mistake of ours: the entry ends with BUG. */
static dc_status bad_pass(dc_job *j, void *f)
{
    DC_UNUSED(j);
    dc_graph_op2(f, DC_OP_ADD, param(f, "f32[2]"), param(f, "f32[3]"));
    return DC_OK;
}

static void test_bug(void)
{
    dc_func *f = dc_func_new(module, "bug");
    CHECK_EQ(dc_protect(&job, bad_pass, f), DC_E_BUG);
    dc_err_render(&job.err, 1, text, sizeof text);
    CHECK(strstr(text, "add: axis 0: 2 against 3") != NULL);
}

int main(void)
{
    dc_job_init(&job, NULL, NULL);
    names = dc_names_new();
    module = dc_module_new();
    test_consing();
    test_helpers();
    test_origins();
    test_clone_and_hash();
    test_dtype_rules();
    test_shape_rules();
    test_index_rules();
    test_dot_axes();
    test_dot_rules();
    test_names_rules();
    test_names_of_reshape();
    test_bug();
    dc_module_free(module);
    dc_names_free(names);
    dc_job_fini(&job);
    return t_done();
}
