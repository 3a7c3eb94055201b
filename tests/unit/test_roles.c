/*
 * Roles of loops (jit/nest/nest_roles.h): as text, what contradicts them, what moves make of them, and those that
 * access maps tell, which are those of the graph's contraction; rules that go by them.
 */
#include "core/ir/dot.h"
#include "jit/fuse/fuse.h"
#include "jit/lower/lower.h"
#include "jit/moves/move.h"
#include "jit/nest/nest_roles.h"

#include <string.h>

#include "tests/unit/convgen.h"
#include "tests/unit/graphgen.h"
#include "tests/unit/nest_texts.h"
#include "tests/unit/rng.h"

/* "i0=m i1=n k=k": the axes that have a role. */
static const char *roles(const dc_kernel *k)
{
    static char text[400];
    size_t n = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < k->axis.n; i++)
        if (k->axis.at[i].role != DC_ROLE_NONE)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s=%s", n > 0 ? " " : "",
                                  k->axis.at[i].name, dc_role_name((dc_role)k->axis.at[i].role));
    return text;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void test_text(void)
{
    static const char text[] = "kernel f(out0: f32[6] out, x0: f32[6]) {\n"
                               "  for i: row in 2 grid\n"
                               "    for n: column in 3\n"
                               "      out0[3*i + n] = x0[3*i + n]\n"
                               "}\n";
    dc_kernel *k = nest_of(text);
    dc_text out = {0};
    CHECK_STR(roles(k), "i=row n=column");
    dc_nest_print(k, &out);
    CHECK_STR(out.s, text);
    dc_text_free(&out);
    dc_kernel_free(k);
    for (int r = 1; r < DC_ROLE__COUNT; r++)
        CHECK_EQ(dc_role_find(dc_role_name((dc_role)r), strlen(dc_role_name((dc_role)r))), r);
    CHECK_EQ(dc_role_find("mm", 2), -1);
    CHECK_EQ(dc_role_find("", 0), -1);
}

static void refused(const char *text, const char *why)
{
    dc_kernel *k = NULL;
    if (dc_nest_parse(&nest_job, text, &k) == DC_OK)
        CHECK(dc_nest_check_given(&nest_job, k) != DC_OK);
    const char *said = nest_said();
    if (!CHECK(strstr(said, why) != NULL))
        printf("    %s\n", said);
    dc_kernel_free(k);
}

#define SUM(i, j, r, term)                                    \
    "kernel f(out0: f32[6] out, x0: f32[8], x1: f32[16]) {\n" \
    "  local acc: f32[1]\n"                                   \
    "  for i" i " in 2\n"                                     \
    "    for j" j " in 3\n"                                   \
    "      acc[0] = 0:f32\n"                                  \
    "      for k" r "\n"                                      \
    "        acc[0] add= " term "\n"                          \
    "      out0[3*i + j] = acc[0]\n"                          \
    "}\n"
#define TERM "mul(x0[4*i + k], x1[3*k + j])"

static void test_refused(void)
{
    refused(SUM(": x", "", " in 4 reduce", TERM), "a role of an axis expected, not 'x'");
    refused(SUM(":", "", " in 4 reduce", TERM), "a role of an axis expected, not 'in'");
    refused(SUM("", "", ": k in 4", TERM), "a role of reductions: k");
    refused(SUM("", "", ": window in 4", TERM), "a role of reductions: k");
    refused(SUM("", "", ": m in 4 reduce", TERM), "a role of loops that reduce nothing: k");
    refused(SUM(": n", ": n", ": k in 4 reduce", TERM), "both operands move along an axis n");
    refused(SUM(": m", ": m", ": k in 4 reduce", TERM), "both operands move along an axis m");
    refused(SUM(": m", ": n", ": k in 4 reduce", "mul(x0[4*i + j], x1[3*k])"),
            "an operand moves along an axis m and an axis n");
    refused("kernel f(out0: f32[2] out) {\n  for i: m in 2\n    out0[i] = 0:f32\n  for i in 2\n"
            "    out0[i] = 0:f32\n}\n",
            "loops over 'i' differ");
    /* the other way round it is the same contraction */
    dc_kernel *k = nest_of(SUM(": n", ": m", ": k in 4 reduce", TERM));
    CHECK(dc_nest_check_given(&nest_job, k) == DC_OK);
    dc_kernel_free(k);
}

/* ---- moves ----------------------------------------------------------------------------------- */

static void after(const char *text, const char *moves, const char *want)
{
    dc_kernel *k = nest_of(text);
    const char *why = "";
    char move[80];
    for (const char *at = moves; *at != '\0'; at += strcspn(at, ";"), at += *at == ';') {
        snprintf(move, sizeof move, "%.*s", (int)strcspn(at, ";"), at);
        if (!CHECK(dc_move_apply_text(k, move, &why)))
            printf("    %s: %s\n", move, why);
    }
    CHECK(dc_nest_check(&nest_job, k) == DC_OK);
    CHECK_STR(roles(k), want);
    dc_kernel_free(k);
}

static void test_moves(void)
{
    static const char product[] = SUM(": m", ": n", ": k in 4 reduce", TERM);
    static const char conv[] = "kernel f(out0: f32[12] out, x0: f32[12], x1: f32[6]) {\n"
                               "  local acc: f32[1]\n"
                               "  for b: m in 2\n"
                               "    for y: spatial in 3\n"
                               "      for o: n in 2\n"
                               "        acc[0] = 0:f32\n"
                               "        for t: window in 3 reduce\n"
                               "          for c: k in 1 reduce\n"
                               "            acc[0] add= mul(x0[6*b + y + t + c], x1[2*t + o])\n"
                               "        out0[6*b + 2*y + o] = acc[0]\n"
                               "}\n";
    after(product, "split i 2;split k 2", "i=m j=n k=k i.o=m i.i=m k.o=k k.i=k");
    after(product, "cut j 1", "i=m j=n k=k j.l=n j.h=n");
    after(product, "pad j 4", "i=m j=n k=k j.p=n");
    after(product, "fuse i j", "i=m j=n k=k"); /* what is both has none */
    after(product, "split j 2;split k 2;reorder k.o j.i;part j.i k.i",
          "i=m j=n k=k j.o=n j.i=n k.o=k k.i=k j.i.x=n");
    after(product, "split_reduce k 2", "i=m j=n k=k k.o=k"); /* the partial sums are no reduction */
    after(product, "reorder j i", "i=m j=n k=k");
    after(conv, "fuse b y;fuse t c", "b=m y=spatial o=n t=window c=k b.f=m t.f=k");
    after(conv, "split y 2;split t 3",
          "b=m y=spatial o=n t=window c=k y.o=spatial y.i=spatial t.o=window t.i=window");
}

/* ---- from access maps ------------------------------------------------------------------------ */

static void derived(const char *text, const char *want)
{
    dc_kernel *k = nest_of(text);
    CHECK_STR(roles(k), "");
    dc_roles_derive(k);
    CHECK_STR(roles(k), want);
    if (!CHECK(dc_nest_check(&nest_job, k) == DC_OK))
        printf("    %s\n%s", nest_said(), text);
    dc_kernel_free(k);
}

static void test_derived(void)
{
    derived(SUM("", "", " in 4 reduce", TERM), "i=m j=n k=k");
    derived(SUM("", "", " in 4 reduce", "mul(x1[3*k + j], x0[4*i + k])"), "i=m j=n k=k");
    derived(SUM("", "", " in 4 reduce", "mul(x0[k], x1[3*k + j])"), "j=n k=k");
    derived(SUM("", "", " in 4 reduce", "mul(x0[4*i + k], x1[3*k + i + j])"), "i=batch j=n k=k");
    derived(SUM("", "", " in 4 reduce", "mul(x0[4*i + k], x1[2*k + i])"), "");
    derived(SUM("", "", " in 4 reduce", "mul(x0[i + j + k], x1[3*k + j])"), "");
    derived(SUM("", "", " in 4 reduce", "x1[3*k + j]"), "");
    /* a distance: no product, but an operand that is invariant along n */
    derived(SUM("", "", " in 4 reduce", "sub(x0[4*i + k], x1[3*k + j])"), "i=m j=n k=k");
    /* a window: positions i and taps k see the same elements */
    derived(SUM("", "", " in 4 reduce", "mul(x0[i + k], x1[3*k + j])"), "i=spatial j=n k=window");
    derived(SUM("", "", " in 4 reduce", "mul(x0[i + k], x1[2*k + i + j])"), "i=batch j=n k=window");
    derived(SUM("", "", " in 4 reduce", "mul(neg(x0[i + k]), x1[3*k + j])"), "i=m j=n k=k");
    derived("kernel f(out0: f32[6] out, x0: f32[6]) {\n"
            "  for i in 6\n"
            "    out0[i] = x0[i]\n"
            "}\n",
            "");
    derived("kernel f(out0: f32[6] out, x0: f32[6]) {\n"
            "  local acc: f32[1]\n"
            "  for i in 2\n"
            "    acc[0] = 0:f32\n"
            "    for k in 3 reduce\n"
            "      acc[0] add= x0[3*i + k]\n"
            "    for n in 3\n"
            "      out0[3*i + n] = div(x0[3*i + n], acc[0])\n"
            "}\n",
            "i=row k=column n=column");
    derived("kernel f(out0: f32[12] out, out1: f32[6] out, x0: f32[12]) {\n"
            "  local sum: f32[3]\n"
            "  for b in 2\n"
            "    for n in 3\n"
            "      sum[n] = 0:f32\n"
            "    for i in 2\n"
            "      out1[2*b + i] = x0[6*b + 3*i]\n"
            "      for na in 3\n"
            "        sum[na] = add(sum[na], x0[6*b + 3*i + na])\n"
            "    for nb in 3\n"
            "      out0[3*b + nb] = sum[nb]\n"
            "}\n",
            "b=row n=column i=row na=column nb=column");
}

/* ---- of graphs ------------------------------------------------------------------------------- */

/* A random contraction of up to 2 axes of each sort, in any order in the operands; at most 6 axes in each. */
static dc_dot random_dot(rng *r, int64_t dim[2][DC_MAX_RANK], int rank[2])
{
    dc_dot d = {.nbatch = (int)rng_below(r, 3), .ncontract = 1 + (int)rng_below(r, 2)};
    for (int side = 0; side < 2; side++) {
        int64_t order[DC_MAX_RANK];
        d.nfree[side] = (int)rng_below(r, 3);
        rank[side] = d.nbatch + d.ncontract + d.nfree[side];
        for (int i = 0; i < rank[side]; i++) {
            const int at = (int)rng_below(r, i + 1);
            order[i] = order[at];
            order[at] = i;
        }
        for (int i = 0; i < d.nbatch; i++)
            d.batch[side][i] = order[i];
        for (int i = 0; i < d.ncontract; i++)
            d.contract[side][i] = order[d.nbatch + i];
    }
    for (int i = 0; i < d.nbatch; i++)
        dim[0][d.batch[0][i]] = dim[1][d.batch[1][i]] = 2 + rng_below(r, 3);
    for (int i = 0; i < d.ncontract; i++)
        dim[0][d.contract[0][i]] = dim[1][d.contract[1][i]] = 2 + rng_below(r, 3);
    return d;
}

/* Roles of the loops over the result, and of those over terms, as the graph has it: n lies last. */
static dc_role role_in_graph(const dc_dot *d, int axis)
{
    const bool left = axis < d->nbatch + d->nfree[0], swapped = d->nfree[1] == 0;
    return d->nfree[0] + d->nfree[1] == 0 ? DC_ROLE_NONE
           : axis < d->nbatch             ? DC_ROLE_BATCH
           : left == swapped              ? DC_ROLE_N
                                          : DC_ROLE_M;
}

static void check_role(const dc_kernel *k, const char *prefix, int i, int n, dc_role want)
{
    char name[8];
    snprintf(name, sizeof name, n > 1 ? "%s%d" : "%s", prefix, i);
    const int axis = dc_axis_find(k, name);
    if (axis >= 0) /* else dims lie in memory as one */
        CHECK_STR(dc_role_name((dc_role)k->axis.at[axis].role), dc_role_name(want));
}

static void test_of_graph(dc_module *m, rng *r)
{
    int64_t dim[2][DC_MAX_RANK];
    int rank[2];
    dc_ref in[2];
    dc_groups gs;
    dc_kernel *k;
    dc_dot d = random_dot(r, dim, rank);
    dc_func *f = dc_func_new(m, "product");
    for (int side = 0; side < 2; side++) {
        dc_type t = {.dtype = DC_F32, .rank = (uint8_t)rank[side]};
        for (int i = 0; i < rank[side]; i++)
            t.dim[i] = 2 + rng_below(r, 3);
        for (int i = 0; i < d.nbatch; i++)
            t.dim[d.batch[side][i]] = dim[0][d.batch[0][i]];
        for (int i = 0; i < d.ncontract; i++)
            t.dim[d.contract[side][i]] = dim[0][d.contract[0][i]];
        in[side] = dc_graph_param(f, &t, side == 0 ? "a" : "b");
    }
    const dc_ref y = dc_dot_make(f, in[0], in[1], &d);
    const int n = d.nbatch + d.nfree[0] + d.nfree[1];
    DC_PUSH(f->result, dc_graph_op1(f, DC_OP_NEG, y));
    CHECK(dc_fuse(&nest_job, &nest_job.scratch, f, 2, &gs) == DC_OK);
    CHECK_EQ(gs.n, 1);
    CHECK(dc_lower(&nest_job, &gs, 0, &k) == DC_OK);
    for (int i = 0; i < n; i++)
        check_role(k, "i", i, n, role_in_graph(&d, i));
    for (int i = 0; i < d.ncontract; i++)
        check_role(k, "k", i, d.ncontract, d.nfree[0] + d.nfree[1] > 0 ? DC_ROLE_K : DC_ROLE_NONE);
    dc_kernel_free(k);
}

static void test_of_graphs(void)
{
    dc_module *m = dc_module_new();
    rng r = {1};
    for (int i = 0; i < 300; i++)
        test_of_graph(m, &r);
    dc_module_free(m);
}

/* ---- what lowering writes beside what access maps tell ------------------------------------------ */

static dc_op reduction_of(const dc_groups *gs, const dc_group *g)
{
    return g->nreduce == 0 ? DC_OP_NEG : (dc_op)dc_node_at(gs->fn, g->reduce[0])->op;
}

/*
 * A window that is wider than what it slides over: in memory, its iterations and those of another dim reach the same
 * elements, and the maps tell of a window there, too.
 */
static bool reaches_farther(const dc_func *f, const dc_node *n)
{
    const dc_conv c = dc_conv_of(n);
    for (int i = 0; i < c.n; i++) {
        const int64_t extent = dc_node_at(f, n->in[0])->dim[c.in[2 + i]];
        const int64_t taps = dc_node_at(f, n->in[1])->dim[c.kernel[2 + i]];
        if (c.dim[i].dilate * taps > extent * c.dim[i].dilate_in ||
            c.dim[i].stride * n->dim[c.out[2 + i]] > extent * c.dim[i].dilate_in)
            return true;
    }
    return false;
}

/* Roles without what tells windows from other reductions, and positions from other rows. */
static dc_role without_window(dc_role role)
{
    return role == DC_ROLE_SPATIAL ? DC_ROLE_M : role == DC_ROLE_WINDOW ? DC_ROLE_K : role;
}

/*
 * Both are the same, but for windows that reach farther, and for rows that store nothing in loops over columns, or
 * have no such loops, which the maps do not tell.
 */
static void check_agree(const dc_groups *gs, const dc_group *g, const dc_kernel *k,
                        const dc_kernel *told)
{
    const dc_op op = reduction_of(gs, g);
    const bool wide = op == DC_OP_CONV && reaches_farther(gs->fn, dc_node_at(gs->fn, g->reduce[0]));
    const bool rows = (g->row_wise || dc_op_is(op, DC_CLASS_IDX)) && !dc_roles_any(told);
    bool same = true;
    for (uint32_t i = 0; i < k->axis.n; i++) {
        const dc_role is = (dc_role)k->axis.at[i].role, maps = (dc_role)told->axis.at[i].role;
        same &= rows   ? is == DC_ROLE_ROW || is == DC_ROLE_COLUMN
                : wide ? without_window(is) == without_window(maps)
                       : is == maps;
    }
    if (!CHECK(same)) {
        dc_text t = {0};
        printf("    %s, of maps ", roles(k));
        printf("%s\n", roles(told));
        dc_nest_print((dc_kernel *)told, &t);
        printf("%s", t.s);
        dc_text_free(&t);
    }
}

/* How many kernels of a function have roles. */
static int agree(dc_func *f, int level)
{
    const dc_mark mark = dc_arena_mark(&nest_job.scratch);
    dc_groups gs;
    dc_kernel *k, *told;
    int any = 0;
    CHECK(dc_fuse(&nest_job, &nest_job.scratch, f, level, &gs) == DC_OK);
    for (uint32_t g = 0; g < gs.n; g++) {
        if (gs.at[g].is_join)
            continue;
        CHECK(dc_lower(&nest_job, &gs, g, &k) == DC_OK);
        CHECK(dc_lower(&nest_job, &gs, g, &told) == DC_OK);
        dc_roles_derive(told);
        check_agree(&gs, &gs.at[g], k, told);
        CHECK(dc_nest_check(&nest_job, k) == DC_OK);
        any += dc_roles_any(k);
        dc_kernel_free(k);
        dc_kernel_free(told);
    }
    dc_arena_rewind(&nest_job.scratch, mark);
    return any;
}

static dc_func *random_conv(dc_module *m, rng *r)
{
    dc_conv c;
    int64_t dim[2][DC_MAX_RANK];
    dc_func *f = dc_func_new(m, "conv");
    convgen(r, &c, dim[0], dim[1]);
    const dc_type x = dc_type_make(DC_F32, c.n + 2, dim[0]),
                  w = dc_type_make(DC_F32, c.n + 2, dim[1]);
    const dc_ref y = dc_graph_conv(f, dc_graph_param(f, &x, "x"), dc_graph_param(f, &w, "w"), &c);
    const dc_type g = dc_node_type(f, y);
    const dc_ref cotangent = dc_graph_param(f, &g, "g");
    DC_PUSH(f->result, y);
    for (int side = 0; side < 2; side++)
        DC_PUSH(f->result, dc_conv_grad(f, y, cotangent, side));
    return f;
}

static void test_agree(void)
{
    int any[3] = {0};
    dc_module *m = dc_module_new();
    rng r = {1};
    for (int i = 0; i < 1200; i++) {
        any[0] += agree(graphgen_func(m, (uint64_t)i + 1, 10 + i % 16), i % 3);
        any[1] += i % 4 == 0 ? agree(graphgen_large(m, (uint64_t)i + 1, 10 + i % 16), 2) : 0;
        any[2] += i % 4 == 0 ? agree(random_conv(m, &r), 2) : 0;
    }
    dc_module_free(m);
    CHECK(any[0] > 300);
    CHECK(any[1] > 100);
    CHECK(any[2] > 300);
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* The moves of the rules for a text, one to a line. */
static const char *schedule(const char *text)
{
    static char out[2000];
    dc_kernel *k = nest_of(text);
    size_t n = 0;
    CHECK(dc_schedule(&nest_job, k, &nest_target, 2) == DC_OK);
    out[0] = '\0';
    for (uint32_t i = 0; i < k->moves.n; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s\n",
                              dc_move_text(k, k->moves.at[i], &nest_job.scratch));
    dc_kernel_free(k);
    return out;
}

#define PRODUCT(i, j, r)                                              \
    "kernel f(out0: f32[4096] out, x0: f32[4096], x1: f32[4096]) {\n" \
    "  local acc: f32[1]\n"                                           \
    "  for i" i " in 64\n"                                            \
    "    for j" j " in 64\n"                                          \
    "      acc[0] = 0:f32\n"                                          \
    "      for k" r " in 64 reduce\n"                                 \
    "        acc[0] add= mul(x0[64*i + k], x1[64*k + j])\n"           \
    "      out0[64*i + j] = acc[0]\n"                                 \
    "}\n"

/* Rules go by roles: those of a text, or else of its access maps. */
static void test_rules(void)
{
    char stated[2000];
    snprintf(stated, sizeof stated, "%s", schedule(PRODUCT(": m", ": n", ": k")));
    CHECK(strstr(stated, "split_full i ") != NULL); /* blocks of m x n */
    CHECK_STR(schedule(PRODUCT("", "", "")), stated);
    snprintf(stated, sizeof stated, "%s", schedule(PRODUCT("", "", ": k")));
    CHECK(strstr(stated, "split_full") == NULL && strstr(stated, "vectorize j.i.i") != NULL);
}

/* A left operand behind a reshape: its axes split loops, and the outer one of the sum has sums that wait in a local. */
static void test_reshaped(void)
{
    const char *moves =
        schedule("kernel f(out0: f32[262144] out, x0: f32[524288], x1: f32[524288]) {\n"
                 "  local acc: f32[1]\n"
                 "  for i: m in 512\n"
                 "    for j: n in 512\n"
                 "      acc[0] = 0:f32\n"
                 "      for k: k in 1024 reduce\n"
                 "        acc[0] add= mul(x0[65536*(k/128) + 8192*(i/64) + 64*(k%128) + (i%64)], "
                 "x1[512*k + j])\n"
                 "      out0[512*i + j] = acc[0]\n"
                 "}\n");
    CHECK(strstr(moves, "split k 128\nsplit i 64\n") != NULL);
    CHECK(strstr(moves, "reorder k.o j.i\n") != NULL);
    CHECK(strstr(moves, "cache_write acc ") != NULL);
}

static dc_kernel_kind kind(const char *text)
{
    dc_kernel *k = nest_of(text);
    const dc_kernel_kind kind = (dc_kernel_kind)k->kind;
    dc_kernel_free(k);
    return kind;
}

#define COPIES(i, j)                             \
    "kernel f(out0: f32[6] out, x0: f32[6]) {\n" \
    "  for i" i " in 2\n"                        \
    "    for j" j " in 3\n"                      \
    "      out0[3*i + j] = x0[3*i + j]\n"        \
    "}\n"

static void test_kinds(void)
{
    CHECK_EQ(kind(COPIES("", "")), DC_KERNEL_map);
    CHECK_EQ(kind(COPIES(": row", ": lane")), DC_KERNEL_transform);
    CHECK_EQ(kind(COPIES(": m", ": lane")), DC_KERNEL_attention);
    CHECK_EQ(kind(PRODUCT(": m", ": n", ": k")), DC_KERNEL_reduction);
    CHECK_EQ(kind("kernel f(out0: f32[6] out, x0: f32[6]) {\n"
                  "  for i in 2\n"
                  "    for j in 3\n"
                  "      out0[3*i + j] = 0:f32\n"
                  "    for k in 3\n"
                  "      out0[3*i + k] = x0[3*i + k]\n"
                  "}\n"),
             DC_KERNEL_rows);
    CHECK_EQ(kind("kernel f(out0: f32[6] out, x0: i32[4], x1: f32[4]) {\n"
                  "  for a in 6\n"
                  "    out0[a] = 0:f32\n"
                  "  for k in 4\n"
                  "    t0 = minimum(maximum(x0[k], 0:i32), 5:i32)\n"
                  "    out0[int(t0)] = add(out0[int(t0)], x1[k])\n"
                  "}\n"),
             DC_KERNEL_scatter);
}

int main(void)
{
    nest_open();
    test_text();
    test_refused();
    test_moves();
    test_derived();
    test_of_graphs();
    test_agree();
    test_rules();
    test_reshaped();
    test_kinds();
    nest_close();
    return t_done();
}
