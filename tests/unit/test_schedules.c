/*
 * Random lists of schedule moves (tests/unit/schedule_random.h) through the middle of the compiler.
 * What the moves accept
 *   - is legal, reads back from its text, and runs in the interpreter of nests;
 *   - is flattened for threads of a CPU and for two kinds of groups, is legal there, reads back from its text
 *     and runs in the interpreter of the flat form, which finds no race;
 *   - gives the bits that the kernel gives without moves, unless an inexact sum was reassociated
 *     (flat forms give the same ones then as well), whatever runs it; exp and log differ between the
 *     nest and the flat form;
 *   - gives those bits as machine code, too: a hundred in one program.
 * A move that is refused changes nothing.
 *
 *   test_schedules [SEED [LISTS]]     what fails is printed with as few moves as still fail
 */
#include "jit/flat/flatten.h"
#include "jit/sim/flat_interp.h"
#include "jit/sim/sim_target.h"

#include <time.h>

#include "tests/unit/kernel_run.h"
#include "tests/unit/nest_interp.h"
#include "tests/unit/schedule_rings.h"

enum { PROGRAM = 100, FAILURES = 12, MAX_INST = 900, VERBOSE = 2 };

static dc_opts opts;
static dc_job job;
static int verbose;

static const char *const targets[] = {"sim:cpu", "sim:opencl", "sim:cuda"};

typedef struct failure {
    char stage[40]; /* "" none */
    char text[700];
} failure;

static struct totals {
    long lists, moves, tried, threads, group, shuffles, rings, large, same, failed, machine;
    long move[DC_MOVE__COUNT]; /* accepted */
} total;

static dc_status fail(failure *f, const char *stage, const char *target)
{
    snprintf(f->stage, sizeof f->stage, "%s%s%s", stage, target[0] != '\0' ? " " : "", target);
    dc_err_render(&job.err, 0, f->text, sizeof f->text);
    job.err = (dc_err){0};
    return DC_OK;
}

/* Memory ---------------------------------------------------------------------------------------- */

typedef struct memory {
    uint32_t n;
    void *at[SR_PARAMS], *own[SR_PARAMS];
    const dc_buffer *of[SR_PARAMS];
} memory;

/* Multiples of an eighth; what an output holds is something, too. */
static memory new_memory(const dc_kernel *k, uint64_t seed, const sr_source *s, bool shares)
{
    memory m = {.n = k->nparam};
    rng r = {seed};
    for (uint32_t p = 0; p < m.n; p++) {
        const dc_buffer *b = m.of[p] = sr_param(k, p);
        const dc_dtype t = (dc_dtype)b->dtype;
        const size_t size = dc_dtype_size(t);
        m.at[p] = m.own[p] = malloc(sr_bytes(b) + (sr_bytes(b) == 0));
        for (int64_t i = 0; i < b->count; i++)
            dc_bits_store(t, (char *)m.at[p] + (size_t)i * size,
                          dc_bits_of(t, (rng_below(&r, 33) - 16) / (t == DC_F32 ? 8. : 1.)));
    }
    nest_need_all(k, k->naive != NULL ? k->naive : k->root, m.at);
    for (uint32_t p = 0; shares && p < m.n; p++)
        if (s->share[p] >= 0) {
            memcpy(m.own[s->share[p]], m.own[p], sr_bytes(m.of[p]));
            m.at[p] = m.own[s->share[p]];
        }
    return m;
}

static void free_memory(memory *m)
{
    for (uint32_t p = 0; p < m->n; p++)
        free(m->own[p]);
    m->n = 0;
}

/* In all outputs; any NaN is like another. */
static bool same(const memory *a, const memory *b)
{
    for (uint32_t p = 0; p < a->n; p++) {
        const dc_dtype t = (dc_dtype)a->of[p]->dtype;
        const size_t size = dc_dtype_size(t);
        if (a->of[p]->mode == DC_MODE_IN)
            continue;
        for (int64_t i = 0; i < a->of[p]->count; i++) {
            const uint64_t x = dc_bits_load(t, (const char *)a->at[p] + (size_t)i * size);
            const uint64_t y = dc_bits_load(t, (const char *)b->at[p] + (size_t)i * size);
            if (x != y &&
                !(dc_dtype_is_float(t) && isnan(dc_value_of(t, x)) && isnan(dc_value_of(t, y))))
                return false;
        }
    }
    return true;
}

/* Cases ----------------------------------------------------------------------------------------- */

typedef struct scheduled { /* one source, one list of moves */
    const sr_source *s;
    const sr_list *list;
    uint64_t values; /* seed of what is in memory */
    dc_kernel *naive, *k;
    bool reassociated, rounded, shares;
    memory nest, flat; /* results of the kernel without moves */
    memory first;      /* result of the first flat form with moves */
    failure *failure;
    dc_flat *kept; /* for threads of a CPU */
} scheduled;

static bool is_rounded(const dc_kernel *k)
{
    for (uint32_t v = 1; v < k->vx.n; v++)
        if (k->vx.at[v].kind == DC_VX_OP && (dc_op_row_of(k->vx.at[v].op)->flags & DC_OPF_NEAR))
            return true;
    return false;
}

/* The kernel as it comes back from its text, which prints the same; it replaces *k. */
static dc_status reread_nest(scheduled *c, dc_kernel **k)
{
    dc_text a = {0}, b = {0};
    dc_kernel *back = NULL;
    dc_nest_print(*k, &a);
    const dc_status s = dc_nest_parse(&job, a.s, &back);
    if (s == DC_OK)
        dc_nest_print(back, &b);
    if (s != DC_OK)
        fail(c->failure, "nest-parse", "");
    else if (strcmp(a.s, b.s) != 0)
        fail(c->failure, "nest-text", "");
    else if (dc_nest_check(&job, back) != DC_OK)
        fail(c->failure, "nest-check-of-text", "");
    dc_text_free(&a);
    dc_text_free(&b);
    if (s == DC_OK) {
        dc_kernel_free(*k);
        *k = back;
    }
    return DC_OK;
}

static dc_status reread_flat(scheduled *c, const char *target, dc_flat **f)
{
    dc_text a = {0}, b = {0};
    dc_flat *back = NULL;
    dc_flat_print(*f, &a);
    const char *text = a.s;
    const dc_status s = dc_flat_parse(&job, &text, &back);
    if (s == DC_OK)
        dc_flat_print(back, &b);
    if (s != DC_OK)
        fail(c->failure, "flat-parse", target);
    else if (strcmp(a.s, b.s) != 0)
        fail(c->failure, "flat-text", target);
    else if (dc_flat_check(&job, back) != DC_OK)
        fail(c->failure, "flat-check-of-text", target);
    dc_text_free(&a);
    dc_text_free(&b);
    if (s == DC_OK) {
        dc_flat_free(*f);
        *f = back;
    }
    return DC_OK;
}

static dc_status parse(scheduled *c, dc_kernel **out)
{
    if (dc_nest_parse(&job, c->s->text, out) != DC_OK)
        return fail(c->failure, "parse", "");
    if (dc_nest_check(&job, *out) != DC_OK)
        return fail(c->failure, "naive-check", "");
    return DC_OK;
}

/* Applies the list; what does not fit any more is left out. */
static dc_status apply(scheduled *c)
{
    for (int i = 0; i < c->list->n && c->failure->stage[0] == '\0'; i++) {
        const char *why;
        dc_move m;
        CHECK(dc_move_parse(NULL, c->list->move[i], &m, &why));
        if (!dc_move_apply_text(c->k, c->list->move[i], &why))
            continue;
        c->reassociated |= dc_move_reassociates(m.kind);
        if (dc_nest_check(&job, c->k) != DC_OK)
            fail(c->failure, "nest-check", "");
    }
    return DC_OK;
}

/* Threads of a CPU share the work items; groups come one after the other. */
static dc_status run_flat(scheduled *c, const char *what, const dc_flat *f, memory *m)
{
    const int64_t n = f->positions, mid = f->simt ? n : n / 3;
    if (dc_flat_run(&job, f, m->at, 0, mid) != DC_OK ||
        (mid < n && dc_flat_run(&job, f, m->at, mid, n) != DC_OK))
        return fail(c->failure, "flat-run", what);
    return DC_OK;
}

static dc_status run_naive(scheduled *c)
{
    dc_flat *f = NULL;
    c->nest = new_memory(c->naive, c->values, c->s, c->shares);
    c->flat = new_memory(c->naive, c->values, c->s, c->shares);
    if (dc_nest_run(&job, c->naive, c->nest.at) != DC_OK)
        return fail(c->failure, "naive-run", "");
    if (dc_flatten(&job, c->naive, &f) != DC_OK)
        return fail(c->failure, "naive-flatten", "");
    run_flat(c, "naive", f, &c->flat);
    dc_flat_free(f);
    if (c->failure->stage[0] == '\0' && !c->rounded && !same(&c->nest, &c->flat))
        return fail(c->failure, "naive-differs", "");
    return DC_OK;
}

static dc_status run_nest(scheduled *c)
{
    memory m = new_memory(c->k, c->values, c->s, c->shares);
    if (dc_nest_run(&job, c->k, m.at) != DC_OK)
        fail(c->failure, "nest-run", "");
    else if ((!c->reassociated || c->s->exact) && !same(&c->nest, &m))
        fail(c->failure, "nest-differs", "");
    if (c->reassociated && !c->s->exact && !c->rounded) { /* what flat forms have to give */
        free_memory(&c->nest);
        c->nest = m;
    } else {
        free_memory(&m);
    }
    return DC_OK;
}

static bool is_too_large(void)
{
    char text[700];
    dc_err_render(&job.err, 0, text, sizeof text);
    return strstr(text, "a group needs") != NULL && strstr(text, "the device has") != NULL;
}

static void count_flat(const dc_flat *f)
{
    if (!f->simt)
        return;
    total.threads += f->threads > 1;
    bool group = false, shuffle = false;
    for (uint32_t b = 0; b < f->buf.n; b++)
        group |= f->buf.at[b].scope == DC_SCOPE_GROUP;
    for (uint32_t i = 0; i < f->order.n; i++)
        shuffle |= f->inst.at[f->order.at[i]].op == DC_K_SHUFFLE;
    total.group += group;
    total.shuffles += shuffle;
}

static dc_status through_flat(scheduled *c, const char *target, dc_flat **f)
{
    memory m = new_memory(c->k, c->values, c->s, c->shares);
    if (dc_flat_check(&job, *f) != DC_OK)
        fail(c->failure, "flat-check", target);
    if (c->failure->stage[0] == '\0')
        reread_flat(c, target, f);
    if (c->failure->stage[0] == '\0')
        run_flat(c, target, *f, &m);
    if (c->failure->stage[0] == '\0') {
        count_flat(*f);
        const bool same_sums = !c->reassociated || c->s->exact;
        if ((same_sums && !same(&c->flat, &m)) || (!c->rounded && !same(&c->nest, &m)))
            fail(c->failure, "flat-differs", target);
        else if (c->first.n > 0 && !same(&c->first, &m))
            fail(c->failure, "flat-forms-differ", target);
        total.same++;
    }
    if (c->first.n == 0)
        c->first = m;
    else
        free_memory(&m);
    return DC_OK;
}

static dc_status to_flat(scheduled *c, const char *target, uint32_t skip)
{
    dc_flat *f = NULL;
    const dc_status s = dc_flatten_for(&job, c->k, dc_sim_target_named(target), skip, &f);
    if (s == DC_E_BUILD && is_too_large()) {
        job.err = (dc_err){0};
        total.large++;
        return DC_OK;
    }
    if (s != DC_OK)
        return fail(c->failure, "flatten", target);
    through_flat(c, target, &f);
    if (!f->simt && c->kept == NULL)
        c->kept = f;
    else
        dc_flat_free(f);
    return DC_OK;
}

static dc_status try_steps(scheduled *c)
{
    parse(c, &c->naive);
    if (c->failure->stage[0] == '\0')
        parse(c, &c->k);
    if (c->failure->stage[0] != '\0')
        return DC_OK;
    c->rounded = is_rounded(c->naive);
    run_naive(c);
    apply(c);
    if (c->failure->stage[0] == '\0')
        reread_nest(c, &c->k);
    if (c->failure->stage[0] == '\0')
        run_nest(c);
    const uint32_t skip = c->values % 4 == 0 ? (uint32_t)(c->values >> 8) : 0;
    for (size_t t = 0; t < DC_COUNTOF(targets) && c->failure->stage[0] == '\0'; t++)
        to_flat(c, targets[t], skip);
    return DC_OK;
}

static dc_status try_body(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    return try_steps(arg);
}

/* False with *f filled in. The flat form for threads of a CPU and what it gives stay in *c. */
static bool try_case(scheduled *c, const sr_source *s, const sr_list *list, uint64_t values,
                     failure *f)
{
    *f = (failure){.stage = ""};
    *c = (scheduled){.s = s, .list = list, .values = values, .failure = f, .shares = true};
    if (dc_protect(&job, try_body, c) != DC_OK)
        fail(f, "bug", "");
    return f->stage[0] == '\0';
}

static void free_case(scheduled *c)
{
    free_memory(&c->nest);
    free_memory(&c->flat);
    free_memory(&c->first);
    dc_kernel_free(c->naive);
    dc_kernel_free(c->k);
    dc_flat_free(c->kept);
}

/* Failures -------------------------------------------------------------------------------------- */

/* Leaves out moves while it fails in the same way. */
static void shrink(const sr_source *s, sr_list *list, uint64_t values, failure *f)
{
    for (bool again = true; again;) {
        again = false;
        for (int i = list->n - 1; i >= 0; i--) {
            sr_list less = *list;
            scheduled c;
            failure g;
            memmove(less.move[i], less.move[i + 1], (size_t)(less.n - i - 1) * sizeof less.move[0]);
            less.n--;
            if (!try_case(&c, s, &less, values, &g) && strcmp(f->stage, g.stage) == 0) {
                *list = less;
                *f = g;
                again = true;
            }
            free_case(&c);
        }
    }
}

/* The kernel with its moves, and flattened for the target that failed. */
static dc_status show_body(dc_job *j, void *arg)
{
    scheduled *c = arg;
    dc_flat *f = NULL;
    dc_text text = {0};
    const char *target = strchr(c->failure->stage, ' ');
    dc_nest_print(c->k, &text);
    if (target != NULL && dc_sim_target_named(target + 1) != NULL &&
        dc_flatten_for(j, c->k, dc_sim_target_named(target + 1), 0, &f) == DC_OK)
        dc_flat_print(f, &text);
    printf("%s", text.s);
    dc_flat_free(f);
    dc_text_free(&text);
    return DC_OK;
}

static void report(const sr_source *s, sr_list *list, uint64_t values, uint64_t seed, failure *f)
{
    CHECK(f->stage[0] == '\0');
    if (++total.failed > FAILURES)
        return;
    shrink(s, list, values, f);
    printf("seed %llu: %s: %s\n%s", (unsigned long long)seed, f->stage, f->text, s->text);
    for (int i = 0; i < list->n; i++)
        printf("  %s\n", list->move[i]);
    scheduled c;
    try_case(&c, s, list, values, f);
    if (c.k != NULL)
        dc_protect(&job, show_body, &c);
    free_case(&c);
    fflush(stdout);
}

/* Lists ----------------------------------------------------------------------------------------- */

typedef struct making {
    sr_source *s;
    sr_list *list;
    rng *r;
    bool usable, changed;
    dc_kernel *k;
} making;

static void say_refused(const char *move, const char *why)
{
    printf("refused %s: %s\n", move, why);
}

static bool has_ring(const dc_kernel *k)
{
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (k->buf.at[b].stages > 0)
            return true;
    return false;
}

static dc_status make_body(dc_job *j, void *arg)
{
    making *m = arg;
    m->usable = sr_source_new(j, m->r, m->s);
    if (!m->usable || !CHECK_EQ(dc_nest_parse(j, m->s->text, &m->k), DC_OK))
        return DC_OK;
    sr_maker maker = {.r = m->r, .k = m->k, .list = m->list};
    maker.refused = verbose >= VERBOSE ? say_refused : NULL;
    if (rng_below(m->r, 4) == 0)
        sr_make_ring(&maker);
    else
        sr_make(&maker);
    total.rings += has_ring(m->k);
    for (uint32_t i = 0; i < m->k->moves.n; i++)
        total.move[m->k->moves.at[i]->kind]++;
    total.tried += maker.tried;
    total.moves += maker.done;
    return DC_OK;
}

static bool make(sr_source *s, sr_list *list, rng *r, uint64_t seed)
{
    failure f;
    making m = {.s = s, .list = list, .r = r};
    list->n = 0;
    const bool ok = CHECK_EQ(dc_protect(&job, make_body, &m), DC_OK);
    if (!ok) {
        fail(&f, "moves", "");
        printf("seed %llu: %s: %s\n%s", (unsigned long long)seed, f.stage, f.text, s->text);
        for (int i = 0; i < list->n; i++)
            printf("  %s\n", list->move[i]);
    }
    dc_kernel_free(m.k);
    return ok && m.usable;
}

/* Machine code ---------------------------------------------------------------------------------- */

typedef struct program {
    const char *device;
    int limit, n; /* programs at most; kernels in this one */
    runner r;
    memory want[PROGRAM];
    void *mem[PROGRAM][SR_PARAMS]; /* what goes in */
    dc_buffer of[PROGRAM][SR_PARAMS];
    uint64_t seed[PROGRAM];
} program;

static void finish_program(program *p)
{
    if (p->n == 0)
        return;
    const bool built = runner_build(&p->r);
    for (int i = 0; i < p->n; i++) {
        memory got = p->want[i];
        memcpy(got.at, p->mem[i], sizeof got.at);
        if (built)
            runner_run_range(&p->r, i, p->r.flat.at[i]->positions, got.at);
        if (built && !CHECK(same(&p->want[i], &got)))
            printf("seed %llu: %s gives something else\n", (unsigned long long)p->seed[i],
                   p->device);
        total.machine += built;
        for (uint32_t n = 0; n < p->want[i].n; n++)
            free(p->mem[i][n]);
        free_memory(&p->want[i]);
    }
    p->n = 0;
    p->limit--;
    runner_close(&p->r);
}

/* Takes the case's flat form and its result. */
static void add_to_program(program *p, scheduled *c, uint64_t seed)
{
    if (p->limit <= 0 || c->kept == NULL || c->kept->order.n > MAX_INST)
        return;
    if (p->n == 0 && !runner_open_on(&p->r, p->device)) {
        p->limit = 0;
        return;
    }
    const int n = p->n++;
    memory m = new_memory(c->naive, c->values, c->s, false);
    memcpy(p->mem[n], m.at, sizeof m.at);
    for (uint32_t i = 0; i < m.n; i++) {
        const size_t bytes = sr_bytes(m.of[i]);
        p->of[n][i] = *m.of[i];
        m.of[i] = &p->of[n][i];
        m.own[i] = m.at[i] = memcpy(malloc(bytes + 1), c->first.at[i], bytes);
    }
    p->want[n] = m;
    p->seed[n] = seed;
    runner_add_flat(&p->r, c->kept);
    c->kept = NULL;
    if (p->n == PROGRAM)
        finish_program(p);
}

/* ----------------------------------------------------------------------------------------------- */

static void try_list(uint64_t seed, program *p)
{
    static sr_list list;
    rng r = {seed};
    sr_source s;
    scheduled c;
    failure f;
    if (verbose > 0) {
        printf("list %llu\n", (unsigned long long)seed);
        fflush(stdout);
    }
    if (make(&s, &list, &r, seed)) {
        const uint64_t values = rng_next(&r);
        total.lists++;
        if (!try_case(&c, &s, &list, values, &f))
            report(&s, &list, values, seed, &f);
        else
            CHECK(true);
        if (f.stage[0] == '\0')
            add_to_program(p, &c, seed);
        free_case(&c);
    }
    free(s.text);
}

/* Every row is proposed at some time, in a form that is read as a move of that row. */
static void test_rows(uint64_t seed)
{
    static sr_list list;
    dc_kernel *k = NULL;
    rng r = {seed};
    if (!CHECK(dc_nest_parse(&job, sr_written[0], &k) == DC_OK))
        return;
    sr_maker m = {.r = &r, .k = k, .team = 4, .list = &list, .t = sr_tree_of(k)};
    for (dc_move_kind kind = 0; kind < DC_MOVE__COUNT; kind++) {
        char text[200];
        const char *why = "";
        dc_move move;
        bool is = false;
        CHECK(sr_weight.shape[kind] + sr_weight.bound[kind] + sr_weight.late[kind] +
                  sr_traffic[kind] >
              0);
        for (int i = 0; i < 20 && !is; i++) {
            sr_propose(&m, kind, text, sizeof text);
            is = dc_move_parse(k, text, &move, &why);
        }
        if (!CHECK(is && move.kind == kind))
            printf("    %s: %s\n", text, why);
        else
            CHECK_STR(dc_move_text(k, &move, &k->arena), text);
    }
    dc_kernel_free(k);
}

int main(int argc, char **argv)
{
    const char *bad;
    const uint64_t seed = rng_seed(argc, argv, 20);
    const uint64_t lists = argc > 2 ? strtoull(argv[2], NULL, 0) : 400;
    program *p = calloc(2, sizeof *p);
    p[0] = (program){.device = "cpu", .limit = argc > 3 ? atoi(argv[3]) : 1};
    p[1] = (program){.device = "cpu:cc", .limit = p[0].limit};
    verbose = argc > 4 ? atoi(argv[4]) : 0;
    dc_opts_init(&opts, &bad);
    opts.check = 1;
    dc_job_init(&job, &opts, NULL);
    test_rows(seed);
    for (uint64_t i = 0; i < lists; i++)
        try_list(seed + i, &p[i % 8 == 0]);
    finish_program(&p[0]);
    finish_program(&p[1]);
    free(p);
    printf(
        "%ld lists, %ld moves of %ld that were tried; %ld runs: %ld with threads, %ld with group "
        "memory, %ld with shuffles, %ld lists with rings; %ld too large; %ld as machine code; %ld "
        "failures\n",
        total.lists, total.moves, total.tried, total.same, total.threads, total.group,
        total.shuffles, total.rings, total.large, total.machine, total.failed);
    for (int i = 0; i < DC_MOVE__COUNT; i++)
        printf("%s%s %ld", i > 0 ? ", " : "accepted: ", dc_move_name((dc_move_kind)i),
               total.move[i]);
    printf("\n");
    CHECK(total.rings >= total.lists / 60);
    dc_job_fini(&job);
    return t_done();
}
