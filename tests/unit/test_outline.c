/*
 * Bodies taken out of the graph that they were recorded in (core/ir/outline.h): what is inside, what is captured, in
 * which order; gradients that were given by hand in them, and what is left without these.
 */
#include "core/autodiff/custom.h"
#include "core/ir/control.h"
#include "core/ir/gtext.h"
#include "core/ir/outline.h"

#include <string.h>

#include "tests/t.h"

static dc_job job;
static dc_module *m;
static dc_func *f;
static const int64_t two[1] = {2};

static void begin(void)
{
    m = dc_module_new();
    f = dc_func_new(m, "f");
}

static dc_type vec(void)
{
    return dc_type_make(DC_F32, 1, two);
}

static dc_ref param(void)
{
    const dc_type t = vec();
    return dc_graph_param(f, &t, NULL);
}

static dc_ref stand_in(void)
{
    const dc_type t = vec();
    return dc_graph_stand_in(f, &t);
}

static dc_ref number(void)
{
    const dc_type t = dc_type_scalar(DC_I32);
    return dc_graph_stand_in(f, &t);
}

static void check_text(uint32_t body, const char *want)
{
    dc_text out = {0};
    dc_func_print(dc_body_at(m, body), &out);
    if (!CHECK(out.s != NULL && strstr(out.s, want) != NULL))
        printf("%s\nhas no\n%s\n", out.s, want);
    dc_text_free(&out);
}

/*
 * c = c * w + x: the carry and the element stay parameters; w is captured, and w + w as well, as one value; the number 2,
 * which is stretched, is made again.
 */
static dc_status loop_body(dc_job *j, void *arg)
{
    DC_UNUSED(arg);
    begin();
    const dc_ref w = param(), i = number(), c = stand_in(), x = stand_in();
    const dc_type scalar = dc_type_scalar(DC_F32);
    const dc_ref one = dc_graph_reshape(f, dc_graph_const(f, &scalar, 2), 1, (const int64_t[]){1});
    const dc_ref all = dc_graph_expand(f, one, two), twice = dc_graph_op2(f, DC_OP_ADD, w, w);
    const dc_ref next = dc_graph_op2(f, DC_OP_ADD, dc_graph_op2(f, DC_OP_MUL, c, twice), x);
    const dc_ref y = dc_graph_op2(f, DC_OP_MUL, next, all);
    const dc_ref root[3] = {next, y, w}, stand[3] = {i, c, x};
    dc_outline o = {
        .f = f, .mark = i, .root = root, .stand_in = stand, .nroot = 3, .nstand_in = 3, .head = 1};
    uint32_t body;
    CHECK_EQ(dc_outline_loop(j, &o, &body), DC_OK);
    CHECK_EQ(o.ncaptured, 2);
    CHECK_EQ(o.captured[0], w);
    CHECK_EQ(o.captured[1], twice);
    check_text(body, "func f(%1: i32[], %2: f32[2], %3: f32[2], %4: f32[2], %5: f32[2]) {\n"
                     "  %6 = const {1073741824} : f32[] # 2\n"
                     "  %7 = reshape %6 : f32[1]\n"
                     "  %8 = expand %7 : f32[2]\n"
                     "  %9 = mul %3, %4 : f32[2]\n"
                     "  %10 = add %5, %9 : f32[2]\n"
                     "  %11 = mul %8, %10 : f32[2]\n"
                     "  return %10, %11, %2\n");
    dc_module_free(m);
    return DC_OK;
}

/*
 * Two sides: what was made since the mark is in each that needs it, and is not captured although nothing stands in. What
 * is older is captured, of either side by both.
 */
static dc_status branch_body(dc_job *j, void *arg)
{
    DC_UNUSED(arg);
    begin();
    const dc_ref a = param(), b = param(), old = dc_graph_op1(f, DC_OP_EXP, a);
    const dc_ref mark = f->node.n, later = param();
    const dc_ref shared = dc_graph_op1(f, DC_OP_NEG, a);
    const dc_ref root[2] = {
        dc_graph_op2(f, DC_OP_ADD, shared, old),
        dc_graph_op2(f, DC_OP_MUL, dc_graph_op2(f, DC_OP_ADD, later, b), shared)};
    dc_outline o = {.f = f, .mark = mark, .root = root, .nroot = 1};
    uint32_t body[2];
    CHECK_EQ(dc_outline_branch(j, &o, body), DC_OK);
    CHECK_EQ(o.ncaptured, 4);
    CHECK(o.captured[0] == a && o.captured[1] == b && o.captured[2] == old &&
          o.captured[3] == later);
    check_text(body[0], "func f(%1: f32[2], %2: f32[2], %3: f32[2], %4: f32[2]) {\n"
                        "  %5 = neg %1 : f32[2]\n"
                        "  %6 = add %3, %5 : f32[2]\n"
                        "  return %6\n");
    check_text(body[1], "func f(%1: f32[2], %2: f32[2], %3: f32[2], %4: f32[2]) {\n"
                        "  %5 = neg %1 : f32[2]\n"
                        "  %6 = add %2, %4 : f32[2]\n"
                        "  %7 = mul %5, %6 : f32[2]\n"
                        "  return %7\n");
    dc_module_free(m);
    return DC_OK;
}

/* The result of a loop that was made before: itself, not its token. */
static dc_status pick_body(dc_job *j, void *arg)
{
    DC_UNUSED(arg);
    begin();
    const dc_ref a = param(), i = number(), c = stand_in();
    const dc_ref next = dc_graph_op2(f, DC_OP_ADD, c, c), stand[2] = {i, c};
    dc_outline o = {
        .f = f, .mark = i, .root = &next, .stand_in = stand, .nroot = 1, .nstand_in = 2, .head = 1};
    dc_loop l = {.n = 3, .ncarry = 1};
    CHECK_EQ(dc_outline_loop(j, &o, &l.body), DC_OK);
    CHECK_EQ(o.ncaptured, 0);
    const dc_ref loop = dc_graph_loop(f, &l, &a), mark = f->node.n;
    const dc_ref last = dc_graph_pick(f, loop, 0);
    const dc_ref root[2] = {dc_graph_op1(f, DC_OP_NEG, last), last};
    dc_outline b = {.f = f, .mark = mark, .root = root, .nroot = 1};
    uint32_t body[2];
    CHECK_EQ(dc_outline_branch(j, &b, body), DC_OK);
    CHECK_EQ(b.ncaptured, 1);
    CHECK_EQ(b.captured[0], last);
    dc_module_free(m);
    return DC_OK;
}

static int count_op(const dc_func *fn, dc_op op)
{
    int n = 0;
    for (dc_ref r = 1; r < fn->node.n; r++)
        n += dc_node_at(fn, r)->op == op;
    return n;
}

/*
 * A gradient given by hand in a body, which depends on its value, on the carry and on what was captured, goes into the
 * body with it; without it the body is the value alone.
 */
static dc_status custom_body(dc_job *j, void *arg)
{
    DC_UNUSED(arg);
    begin();
    const dc_ref w = param(), i = number(), c = stand_in();
    dc_custom x;
    dc_ref captured = 0, y, dx;
    dc_custom_begin(f, &c, 1, &x);
    CHECK_EQ(dc_custom_value(j, &x, dc_graph_op1(f, DC_OP_EXP, x.stand_in[0]), &captured), DC_OK);
    dx = dc_graph_op2(f, DC_OP_MUL, dc_graph_op2(f, DC_OP_ADD, x.dy, w), x.y_again);
    CHECK_EQ(dc_custom_end(j, &x, &dx, &y), DC_OK);
    const dc_ref stand[2] = {i, c};
    dc_outline o = {
        .f = f, .mark = i, .root = &y, .stand_in = stand, .nroot = 1, .nstand_in = 2, .head = 1};
    dc_loop l = {.n = 3, .ncarry = 1};
    CHECK_EQ(dc_outline_loop(j, &o, &l.body), DC_OK);
    CHECK_EQ(o.ncaptured, 1);
    const dc_func *body = dc_body_at(m, l.body);
    CHECK_EQ(count_op(body, DC_OP_CUSTOM), 1);
    CHECK_EQ(count_op(body, DC_OP_HOLE), 2);
    l.nconst = 1;
    const dc_ref loop = dc_graph_loop(f, &l, (dc_ref[]){w, w});
    DC_PUSH(f->result, dc_graph_pick(f, loop, 0));
    dc_func *to = dc_func_new(m, "stripped");
    dc_ref *map = DC_NEW_ARRAY(&m->arena, dc_ref, f->node.n);
    const dc_type t = vec();
    map[w] = dc_graph_param(to, &t, NULL);
    dc_custom_strip(to, f, map);
    DC_PUSH(to->result, map[f->result.at[0]]);
    CHECK_EQ(dc_func_check(j, to), DC_OK);
    const dc_node *n = dc_node_at(to, dc_node_at(to, to->result.at[0])->in[0]);
    CHECK(n->op == DC_OP_LOOP && (uint32_t)n->attr[0] != l.body);
    CHECK_EQ(count_op(dc_body_at(m, n->attr[0]), DC_OP_CUSTOM), 0);
    CHECK_EQ(count_op(dc_body_at(m, n->attr[0]), DC_OP_HOLE), 0);
    dc_module_free(m);
    return DC_OK;
}

/* A gradient that does not depend on the carry, nor its value: the node is captured as it is. */
static dc_status outer_custom_body(dc_job *j, void *arg)
{
    DC_UNUSED(arg);
    begin();
    const dc_ref w = param(), i = number(), c = stand_in();
    dc_custom x;
    dc_ref captured = 0, y, dx;
    dc_custom_begin(f, &w, 1, &x);
    CHECK_EQ(dc_custom_value(j, &x, dc_graph_op1(f, DC_OP_EXP, x.stand_in[0]), &captured), DC_OK);
    dx = dc_graph_op2(f, DC_OP_MUL, x.dy, w);
    CHECK_EQ(dc_custom_end(j, &x, &dx, &y), DC_OK);
    const dc_ref next = dc_graph_op2(f, DC_OP_ADD, c, y), stand[2] = {i, c};
    dc_outline o = {
        .f = f, .mark = i, .root = &next, .stand_in = stand, .nroot = 1, .nstand_in = 2, .head = 1};
    uint32_t body;
    CHECK_EQ(dc_outline_loop(j, &o, &body), DC_OK);
    CHECK_EQ(o.ncaptured, 1);
    CHECK_EQ(o.captured[0], y);
    dc_module_free(m);
    return DC_OK;
}

static dc_status too_much_body(dc_job *j, void *arg)
{
    DC_UNUSED(arg);
    begin();
    dc_ref all[DC_MAX_OPERANDS + 1];
    for (int k = 0; k <= DC_MAX_OPERANDS; k++)
        all[k] = param();
    const dc_ref i = number(), c = stand_in(), stand[2] = {i, c};
    dc_ref sum = c;
    for (int k = 0; k <= DC_MAX_OPERANDS; k++)
        sum = dc_graph_op2(f, DC_OP_ADD, sum, all[k]);
    dc_outline o = {
        .f = f, .mark = i, .root = &sum, .stand_in = stand, .nroot = 1, .nstand_in = 2, .head = 1};
    uint32_t body;
    CHECK_EQ(dc_outline_loop(j, &o, &body), DC_E_VALUE);
    dc_module_free(m);
    return DC_OK;
}

int main(void)
{
    CHECK_EQ(dc_protect(&job, loop_body, NULL), DC_OK);
    CHECK_EQ(dc_protect(&job, branch_body, NULL), DC_OK);
    CHECK_EQ(dc_protect(&job, pick_body, NULL), DC_OK);
    CHECK_EQ(dc_protect(&job, custom_body, NULL), DC_OK);
    CHECK_EQ(dc_protect(&job, outer_custom_body, NULL), DC_OK);
    CHECK_EQ(dc_protect(&job, too_much_body, NULL), DC_OK);
    dc_arena_free(&job.scratch);
    return t_done();
}
