/*
 * Random lists of random schedule moves on kernels of random graphs and on those of move_run.h:
 * what is accepted leaves a legal kernel with the same results, bit for bit (where the order of
 * additions may have changed, on small integers, whose sums are exact in any order); what is
 * refused changes nothing.
 *
 *   test_move_random [seed [graphs]]
 */
#include "core/ir/simplify.h"
#include "jit/fuse/fuse.h"
#include "jit/lower/lower.h"

#include <math.h>

#include "tests/unit/graphgen.h"
#include "tests/unit/move_run.h"

enum { MAX_MOVES = 14, MAX_RUN = 200000 };

static long tried[DC_MOVE__COUNT], accepted[DC_MOVE__COUNT];

/* Any loop, and a loop directly inside it if there is one; each loop is as likely. */
typedef struct picked {
    const dc_stmt *loop, *inside;
    int n, ninside;
} picked;

static void pick_loop(rng *r, const dc_stmt *first, picked *p)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        if (rng_below(r, ++p->n) == 0)
            p->loop = t;
        pick_loop(r, t->body, p);
    }
}

static picked any_loop(rng *r, const dc_kernel *k)
{
    picked p = {0};
    pick_loop(r, k->root, &p);
    for (const dc_stmt *t = p.loop != NULL ? p.loop->body : NULL; t != NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP && rng_below(r, ++p.ninside) == 0)
            p.inside = t;
    return p;
}

static const char *name_of(const dc_kernel *k, const dc_stmt *loop)
{
    return loop == NULL ? "i" : k->axis.at[loop->axis].name;
}

static const char *any_axis(rng *r, const dc_kernel *k)
{
    if (k->axis.n > 0 && rng_below(r, 8) == 0) /* that there may be no loop over */
        return k->axis.at[rng_below(r, (int)k->axis.n)].name;
    return name_of(k, any_loop(r, k).loop);
}

static const char *any_buffer(rng *r, const dc_kernel *k)
{
    return k->buf.at[rng_below(r, (int)k->buf.n)].name;
}

/* These would leave little room for the others. */
static bool fits_often(dc_move_kind kind)
{
    return kind == DC_MOVE_CACHE_READ || kind == DC_MOVE_WINDOW_READ ||
           kind == DC_MOVE_CACHE_WRITE || kind == DC_MOVE_SCOPE || kind == DC_MOVE_UNROLL;
}

/* What an argument that is no axis may be. */
static const char *any_other(rng *r, const dc_kernel *k, const char *kind, char *number,
                             size_t size)
{
    static const int counts[] = {1, 2, 2, 3, 4, 4, 5, 7, 8, 16, 32};
    static const char *const scopes[] = {"local", "thread", "group"};
    if (strncmp(kind, "buffer", 6) == 0)
        return any_buffer(r, k);
    if (strncmp(kind, "scope", 5) == 0)
        return scopes[rng_below(r, 3)];
    if (strncmp(kind, "tile", 4) == 0)
        return "mma_4x4x4";
    snprintf(number, size, "%d", counts[rng_below(r, (int)DC_COUNTOF(counts))]);
    return number;
}

/* Axis i of the move: of two loops inside each other for those that take two. */
static const char *any_arg_axis(rng *r, const dc_kernel *k, dc_move_kind kind, const picked *p,
                                int i)
{
    const bool inner_first = kind == DC_MOVE_REORDER || kind == DC_MOVE_REORDER_REDUCE;
    if (strncmp(dc_move_args(kind), "axis axis", 9) != 0 || kind == DC_MOVE_GRID)
        return any_axis(r, k);
    return name_of(k, (i == 0) == inner_first ? p->inside : p->loop);
}

/* Mostly what could fit: any row, by the kinds of its arguments. */
static void any_move(rng *r, const dc_kernel *k, bool reassociate, bool traffic, char *text,
                     size_t size)
{
    dc_move_kind kind;
    do
        kind = (dc_move_kind)rng_below(r, DC_MOVE__COUNT);
    while ((dc_move_effect_of(kind) == DC_MOVE_TRAFFIC) != traffic ||
           (dc_move_reassociates(kind) && !reassociate) ||
           (fits_often(kind) && rng_below(r, 5) > 0));
    const picked p = any_loop(r, k);
    size_t n = (size_t)snprintf(text, size, "%s", dc_move_name(kind));
    int axes = 0;
    for (const char *args = dc_move_args(kind); *args != '\0' && n < size;
         args += strcspn(args, " "), args += strspn(args, " ")) {
        char number[16];
        const bool is_axis = strncmp(args, "axis", 4) == 0;
        if (is_axis && args[4] == '.' && (kind != DC_MOVE_PACK || rng_below(r, 2)))
            break;
        n += (size_t)snprintf(text + n, size - n, " %s",
                              is_axis ? any_arg_axis(r, k, kind, &p, axes++)
                                      : any_other(r, k, args, number, sizeof number));
    }
}

/* Are sums of small integers exact whatever their order? */
static bool sums_exactly(const dc_kernel *k)
{
    int products = 0;
    for (uint32_t v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        const double c = n->kind == DC_VX_CONST ? dc_value_of((dc_dtype)n->dtype, n->bits) : 0;
        if (!(fabs(c) <= 8 && c == floor(c)) && !isinf(c)) /* infinities start maxima */
            return false;
        if (n->kind != DC_VX_OP)
            continue;
        switch ((int)n->op) {
        case DC_OP_MUL:
            products++;
            break;
        case DC_OP_ADD:
        case DC_OP_SUB:
        case DC_OP_NEG:
        case DC_OP_ABS:
        case DC_OP_MAX:
        case DC_OP_MIN:
        case DC_OP_WHERE:
            break;
        default:
            return false;
        }
    }
    return products <= 3;
}

/* Iterations of all assignments. */
static int64_t work_of(const dc_kernel *k, const dc_stmt *first)
{
    int64_t sum = 0;
    for (const dc_stmt *t = first; t != NULL; t = t->next)
        sum += t->kind == DC_STMT_LOOP ? k->axis.at[t->axis].extent * work_of(k, t->body) : 1;
    return sum;
}

static void move_about(dc_kernel *plain, dc_kernel *k, uint64_t seed)
{
    rng r = {seed};
    const bool reassociate = rng_below(&r, 2) == 0 && sums_exactly(plain);
    const int64_t limit = 8 * work_of(plain, plain->root) + 2000;
    bool exact = true;
    for (int i = 0, done = 0; i < 12 * MAX_MOVES && done < MAX_MOVES; i++) {
        char text[400];
        const char *why = "";
        dc_move m;
        /* of memory traffic at the end; now and then too early, then others are refused */
        const bool traffic = done > MAX_MOVES - 3 || rng_below(&r, 60) == 0;
        any_move(&r, k, reassociate, traffic, text, sizeof text);
        if (!dc_move_parse(NULL, text, &m, &why))
            continue;
        tried[m.kind]++;
        char *before = i % 4 == 0 ? text_of(k) : NULL;
        const bool is = dc_move_apply_text(k, text, &why);
        if (before != NULL && !is) {
            char *after = text_of(k);
            CHECK_STR(after, before);
            free(after);
        }
        free(before);
        CHECK(is || *why != '\0');
        accepted[m.kind] += is;
        done += is;
        exact = exact && !(is && dc_move_reassociates(m.kind));
        if (work_of(k, k->root) > limit)
            break;
        if (is && !CHECK(dc_nest_check(&job, k) == DC_OK)) {
            complain();
            printf("    seed %llu\n", (unsigned long long)seed);
            print_kernel(k);
            return;
        }
    }
    if (!CHECK(equal_results(plain, k, seed, !exact)))
        printf("    seed %llu\n", (unsigned long long)seed);
}

/* Nothing to compute, or too slow for the interpreter. */
static bool is_usable(const dc_kernel *k)
{
    for (uint32_t p = 0; p < k->nparam; p++)
        if (param_of(k, p)->count == 0)
            return false;
    return k->nparam <= MAX_PARAMS && work_of(k, k->root) <= MAX_RUN / 40;
}

static int test_graph(uint64_t seed)
{
    const dc_mark mark = dc_arena_mark(&job.scratch);
    dc_groups groups;
    int kernels = 0;
    dc_module *m = dc_module_new();
    const dc_func *f = graphgen_func(m, seed, 5 + (int)(seed % 25));
    if (seed % 3 != 0)
        f = dc_simplify(f);
    CHECK(dc_fuse(&job, &job.scratch, f, seed % 2 ? 2 : 0, &groups) == DC_OK);
    for (uint32_t g = 0; g < groups.n; g++) {
        dc_kernel *plain, *k;
        if (!CHECK(dc_lower(&job, &groups, g, &plain) == DC_OK))
            break;
        if (is_usable(plain) && CHECK(dc_lower(&job, &groups, g, &k) == DC_OK)) {
            move_about(plain, k, seed * 1000 + g);
            kernels++;
            dc_kernel_free(k);
        }
        dc_kernel_free(plain);
    }
    dc_module_free(m);
    dc_arena_rewind(&job.scratch, mark);
    return kernels;
}

/* The same on the kernels above, whose moves reach further. */
static void test_kernels(uint64_t seed, int times)
{
    static const char *const kernels[] = {product, map,    rows,  window,  softmax, updates,
                                          stages,  gather, lanes, carried, shifted, tiled};
    for (size_t i = 0; i < DC_COUNTOF(kernels) * (size_t)times; i++) {
        const char *text = kernels[i % DC_COUNTOF(kernels)];
        dc_kernel *plain = parse(text), *k = parse(text);
        move_about(plain, k, seed * 7919 + i);
        dc_kernel_free(k);
        dc_kernel_free(plain);
    }
}

typedef struct plan {
    uint64_t seed, graphs;
} plan;

static dc_status body(dc_job *j, void *arg)
{
    const plan *p = arg;
    int kernels = 0;
    DC_UNUSED(j);
    for (uint64_t i = 0; i < p->graphs; i++)
        kernels += test_graph(p->seed + i);
    test_kernels(p->seed, (int)(p->graphs / 5));
    printf("%d kernels of graphs; moves applied of those tried:\n", kernels);
    for (int i = 0; i < DC_MOVE__COUNT; i++)
        printf("    %-14s %5ld of %5ld\n", dc_move_name((dc_move_kind)i), accepted[i], tried[i]);
    return DC_OK;
}

int main(int argc, char **argv)
{
    plan p = {.seed = rng_seed(argc, argv, 1)};
    p.graphs = argc > 2 ? strtoull(argv[2], NULL, 0) : 100;
    return run_moves(body, &p);
}
