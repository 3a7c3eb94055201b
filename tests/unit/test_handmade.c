/*
 * Nine kernels written by hand, and two of lanes (tests/kernel/NAME.nest) with a schedule for threads of a CPU
 * (NAME.cpu) and one for groups of threads (NAME.simt): parsed, verified, run by the interpreters and by every device
 * that is there, after each prefix of each list of moves.
 *
 *   - the naive nest in its interpreter is what the mathematics says (written out below, in double);
 *   - every prefix gives the same bits in that interpreter, as long as no move has reassociated;
 *     after that it is within the bound of another order of additions;
 *   - the same holds for the flat form in its interpreter, for threads of a CPU and for groups;
 *   - the kernels are strict, so machine code gives the bits of the flat form's interpreter.
 */
#include "backends/registry.h"
#include "jit/flat/flatten.h"
#include "jit/moves/move.h"
#include "jit/render/render.h"
#include "jit/schedule/schedule_file.h"
#include "jit/sim/flat_interp.h"
#include "jit/sim/sim_target.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/nest_interp.h"
#include "tests/unit/rng.h"

enum { MAX_PARAM = 8, MAX_VARIANTS = 400 };

static dc_opts opts;
static dc_job job;

/* The mathematics ----------------------------------------------------------------------------- */

typedef void formula(double *const *p); /* parameters as numbers, outputs replaced */

static void softmax(double *const *p)
{
    for (int i = 0; i < 37; i++) {
        double top = -INFINITY, sum = 0;
        for (int k = 0; k < 100; k++)
            top = fmax(top, p[1][100 * i + k]);
        for (int k = 0; k < 100; k++)
            sum += exp(p[1][100 * i + k] - top);
        for (int k = 0; k < 100; k++)
            p[0][100 * i + k] = exp(p[1][100 * i + k] - top) / sum;
    }
}

static void turn(double *const *p)
{
    for (int m = 0; m < 48; m++)
        for (int n = 0; n < 32; n++)
            p[0][32 * m + n] = p[1][48 * n + m] + p[2][32 * m + n];
}

static void layer_norm(double *const *p)
{
    for (int i = 0; i < 37; i++) {
        const double *x = p[1] + (ptrdiff_t)48 * i;
        double mean = 0, square = 0;
        for (int k = 0; k < 48; k++)
            mean += x[k] / 48;
        for (int k = 0; k < 48; k++)
            square += (x[k] - mean) * (x[k] - mean) / 48;
        for (int k = 0; k < 48; k++)
            p[0][48 * i + k] = (x[k] - mean) / sqrt(square + 1e-5) * p[2][k] + p[3][k];
    }
}

static void attention(double *const *p)
{
    for (int i = 0; i < 12; i++) {
        double sum = 0;
        for (int j = 0; j < 40; j++)
            sum += exp(p[1][40 * i + j]);
        for (int d = 0; d < 24; d++) {
            p[0][24 * i + d] = 0;
            for (int j = 0; j < 40; j++)
                p[0][24 * i + d] += exp(p[1][40 * i + j]) / sum * p[2][24 * j + d];
        }
    }
}

static void argmax(double *const *p)
{
    for (int i = 0; i < 37; i++) {
        int best = 0;
        for (int k = 1; k < 65; k++)
            if (p[2][65 * i + k] > p[2][65 * i + best])
                best = k;
        p[0][i] = p[2][65 * i + best];
        p[1][i] = best;
    }
}

static void product(double *const *p)
{
    for (int m = 0; m < 48; m++)
        for (int n = 0; n < 40; n++) {
            p[0][40 * m + n] = 0;
            for (int k = 0; k < 64; k++)
                p[0][40 * m + n] += p[1][64 * m + k] * p[2][40 * k + n];
        }
}

static void triangle(double *const *p)
{
    for (int i = 0; i < 40; i++) {
        p[0][i] = 0;
        for (int k = i > 20 ? i - 20 : 0; k <= i; k++)
            p[0][i] += p[1][40 * i + k];
    }
}

static void total(double *const *p)
{
    for (int g = 0; g < 4; g++) {
        p[0][g] = 0;
        for (int k = 0; k < 4000; k++)
            p[0][g] += p[1][4000 * g + k];
    }
}

static void lanes(double *const *p)
{
    for (int i = 0; i < 8; i++) {
        p[0][i] = 0;
        for (int k = 0; k < 16; k++)
            p[0][i] += p[1][32 * (i / 2) + 2 * k + i % 2];
    }
}

static void exchange(double *const *p)
{
    for (int i = 0; i < 500; i++)
        p[0][i] = 2 * p[1][i / 8 * 8 + 4 * (i / 2 % 2) + 2 * (i / 4 % 2) + i % 2] + 1;
}

static void updates(double *const *p)
{
    for (int i = 0; i < 300; i++)
        p[0][i] -= 0.125 * p[2][i];
    for (int i = 0; i < 70; i++)
        p[1][i] -= 0.25 * p[3][i];
}

/*
 * exact: inputs are such that every sum is exact, in any order. terms: how many numbers a result
 * depends on; f32 results are within 4 * terms roundings of the mathematics, relative to 1 or the
 * result.
 */
static const struct handmade {
    const char *name;
    formula *formula;
    bool exact;
    int terms;
} kernels[] = {
    {"softmax", softmax, false, 100},
    {"layer_norm", layer_norm, false, 48},
    {"attention", attention, false, 40},
    {"argmax", argmax, true, 1},
    {"product", product, true, 64},
    {"total", total, true, 4000},
    {"updates", updates, true, 2},
    {"lanes", lanes, true, 16},
    {"exchange", exchange, true, 2},
    {"triangle", triangle, true, 40},
    {"turn", turn, true, 2},
};

/* Memory ------------------------------------------------------------------------------------------ */

typedef struct memory {
    uint32_t n;
    void *at[MAX_PARAM];
    size_t bytes[MAX_PARAM];
} memory;

static const dc_buffer *param_of(const dc_kernel *k, uint32_t p)
{
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (k->buf.at[b].scope == DC_SCOPE_PARAM && k->buf.at[b].param == p)
            return &k->buf.at[b];
    DC_BUG("%s has no parameter %u", k->name, p);
}

/* Inputs, always the same ones; outputs hold something else. */
static memory new_memory(const dc_kernel *k, bool exact)
{
    memory m = {.n = k->nparam};
    rng r = {7};
    for (uint32_t p = 0; p < m.n; p++) {
        const dc_buffer *b = param_of(k, p);
        m.bytes[p] = (size_t)b->count * dc_dtype_size((dc_dtype)b->dtype);
        m.at[p] = calloc(1, m.bytes[p]);
        for (int64_t i = 0; i < b->count && b->dtype == DC_F32; i++)
            ((float *)m.at[p])[i] =
                exact ? (float)(rng_below(&r, 129) - 64) / 8 : (float)rng_uniform(&r, -3, 3);
    }
    return m;
}

static void free_memory(memory *m)
{
    for (uint32_t p = 0; p < m->n; p++)
        free(m->at[p]);
}

static double number(dc_dtype t, const void *at, size_t i)
{
    return dc_value_of(t, dc_bits_load(t, (const char *)at + i * dc_dtype_size(t)));
}

static void check_formula(const struct handmade *h, const dc_kernel *k, const memory *before,
                          const memory *after)
{
    double *p[MAX_PARAM];
    double worst = 0;
    for (uint32_t n = 0; n < before->n; n++) {
        const dc_buffer *b = param_of(k, n);
        p[n] = calloc((size_t)b->count, sizeof **p);
        for (size_t i = 0; i < (size_t)b->count; i++)
            p[n][i] = number((dc_dtype)b->dtype, before->at[n], i);
    }
    h->formula(p);
    for (uint32_t n = 0; n < before->n; n++) {
        const dc_buffer *b = param_of(k, n);
        for (size_t i = 0; i < (size_t)b->count; i++) {
            const double apart = fabs(p[n][i] - number((dc_dtype)b->dtype, after->at[n], i));
            worst = fmax(worst, apart / fmax(1, fabs(p[n][i])));
        }
        free(p[n]);
    }
    if (!CHECK(worst <= (h->exact ? 0 : 4 * h->terms * 0x1p-24)))
        printf("%s: %g from the mathematics\n", h->name, worst);
}

static bool same_bits(const memory *a, const memory *b)
{
    for (uint32_t p = 0; p < a->n; p++)
        if (memcmp(a->at[p], b->at[p], a->bytes[p]) != 0)
            return false;
    return true;
}

/* Sums of positive terms in another order: `terms` roundings of the sum, one of the quotient. */
static bool close_enough(const struct handmade *h, const dc_kernel *k, const memory *a,
                         const memory *b)
{
    for (uint32_t p = 0; p < a->n; p++) {
        const dc_buffer *x = param_of(k, p);
        for (size_t i = 0; i < (size_t)x->count; i++) {
            const double u = number((dc_dtype)x->dtype, a->at[p], i);
            const double v = number((dc_dtype)x->dtype, b->at[p], i);
            if (fabs(u - v) > (h->terms + 1) * 0x1p-23 * fabs(u))
                return false;
        }
    }
    return true;
}

/* Kernels and schedules ----------------------------------------------------------------------- */

static char *read_text(const char *path)
{
    FILE *in = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);
    if (CHECK(in != NULL)) {
        text[fread(text, 1, (1 << 16) - 1, in)] = '\0';
        fclose(in);
    }
    return text;
}

static void complain(const char *what, const char *more)
{
    char text[700];
    dc_err_render(&job.err, 0, text, sizeof text);
    printf("%s %s: %s\n", what, more, text);
    job.err = (dc_err){0};
}

static dc_kernel *parse(const char *name)
{
    char path[200];
    dc_kernel *k = NULL;
    snprintf(path, sizeof path, "tests/kernel/%s.nest", name);
    char *text = read_text(path);
    if (!CHECK_EQ(dc_nest_parse(&job, text, &k), DC_OK))
        complain(path, "");
    free(text);
    return k;
}

typedef struct variant { /* a prefix of a schedule */
    const struct handmade *h;
    char label[120];
    bool groups, reassociated;
    uint32_t moves;
    dc_kernel *k;
} variant;

static variant variants[MAX_VARIANTS];
static uint32_t nvariants;

/* The kernel after the first n moves, or NULL. */
static dc_kernel *schedule(const struct handmade *h, const char *const *move, uint32_t n,
                           bool *reassociated)
{
    dc_kernel *k = parse(h->name);
    *reassociated = false;
    for (uint32_t i = 0; i < n && k != NULL; i++) {
        const char *why = "";
        dc_move m;
        CHECK(dc_move_parse(NULL, move[i], &m, &why));
        *reassociated |= dc_move_reassociates(m.kind);
        if (!CHECK(dc_move_apply_text(k, move[i], &why))) {
            printf("%s: %s: %s\n", h->name, move[i], why);
            dc_kernel_free(k);
            return NULL;
        }
    }
    if (k != NULL && !CHECK_EQ(dc_nest_check(&job, k), DC_OK)) {
        complain(h->name, n > 0 ? move[n - 1] : "naive");
        dc_kernel_free(k);
        return NULL;
    }
    return k;
}

static void add_variants(const struct handmade *h, bool groups)
{
    char path[200];
    dc_schedule_file *f;
    uint32_t n = 0;
    snprintf(path, sizeof path, "tests/kernel/%s.%s", h->name, groups ? "simt" : "cpu");
    if (!CHECK_EQ(dc_schedule_file_read(&job, path, &f), DC_OK)) {
        complain(path, "");
        return;
    }
    const char *const *move = dc_schedule_file_find(f, h->name, &n);
    CHECK(move != NULL && n > 0);
    for (uint32_t i = groups ? 1 : 0; i <= n && nvariants < MAX_VARIANTS; i++) {
        variant *v = &variants[nvariants];
        v->k = schedule(h, move, i, &v->reassociated);
        if (v->k == NULL)
            break;
        v->h = h;
        v->groups = groups;
        v->moves = i;
        snprintf(v->label, sizeof v->label, "%s, %s schedule, %u moves%s%.40s", h->name,
                 groups ? "simt" : "cpu", i, i > 0 ? ", last: " : "", i > 0 ? move[i - 1] : "");
        snprintf(v->k->name, sizeof v->k->name, "%.30s_%s%u", h->name, groups ? "g" : "w", i);
        nvariants++;
    }
    dc_schedule_file_free(f);
}

static void free_variants(void)
{
    for (uint32_t i = 0; i < nvariants; i++)
        dc_kernel_free(variants[i].k);
}

/* What comes out beside what came out of the kernel without moves. */
static void check_same(const variant *v, const char *where, const memory *first, const memory *got)
{
    const bool ok = !v->reassociated || v->h->exact ? same_bits(first, got)
                                                    : close_enough(v->h, v->k, first, got);
    if (!CHECK(ok))
        printf("%s: %s: another result\n", where, v->label);
}

/* Interpreters -------------------------------------------------------------------------------- */

static void test_nests(void)
{
    memory first = {0};
    for (uint32_t i = 0; i < nvariants; i++) {
        const variant *v = &variants[i];
        memory before = new_memory(v->k, v->h->exact), m = new_memory(v->k, v->h->exact);
        if (!CHECK_EQ(dc_nest_run(&job, v->k, m.at), DC_OK))
            complain("nest", v->label);
        if (v->moves == 0) {
            check_formula(v->h, v->k, &before, &m);
            free_memory(&first);
            first = m;
        } else {
            check_same(v, "nest", &first, &m);
            free_memory(&m);
        }
        free_memory(&before);
    }
    free_memory(&first);
}

static dc_flat *flatten(const variant *v, const dc_target *t)
{
    dc_flat *f = NULL;
    if (!CHECK_EQ(dc_flatten_for(&job, v->k, t, 0, &f), DC_OK)) {
        complain(t->name, v->label);
        return NULL;
    }
    if (!CHECK_EQ(dc_flat_check(&job, f), DC_OK))
        complain(t->name, v->label);
    return f;
}

/* Runs variant v flattened for t in the interpreter; the caller frees. */
static memory run_flat(const variant *v, const dc_flat *f, const char *where)
{
    memory m = new_memory(v->k, v->h->exact);
    if (!CHECK_EQ(dc_flat_run(&job, f, m.at, 0, dc_nest_launch(v->k).positions), DC_OK))
        complain(where, v->label);
    return m;
}

static void test_flat(const char *target)
{
    const dc_target *t = dc_sim_target_named(target);
    memory first = {0};
    for (uint32_t i = 0; i < nvariants; i++) {
        const variant *v = &variants[i];
        dc_flat *f = flatten(v, t);
        if (f == NULL)
            continue;
        memory m = run_flat(v, f, target);
        if (v->moves == 0) {
            free_memory(&first);
            first = m;
        } else {
            check_same(v, target, &first, &m);
            free_memory(&m);
        }
        dc_flat_free(f);
    }
    free_memory(&first);
}

/* Devices ------------------------------------------------------------------------------------------ */

static void run_on_device(dc_device *d, dc_program *p, uint32_t entry, const variant *v,
                          const dc_flat *f, const char *where)
{
    const dc_device_ops *ops = d->ops;
    memory want = run_flat(v, f, where), m = new_memory(v->k, v->h->exact);
    void *slot[MAX_PARAM + 1] = {NULL};
    dc_bind bind[MAX_PARAM];
    dc_recording *r = NULL;
    dc_run_info info = {0};
    for (uint32_t n = 0; n < m.n; n++) {
        CHECK_EQ(ops->alloc(d, &job, m.bytes[n], &slot[n + 1]), DC_OK);
        CHECK_EQ(ops->upload(d, &job, slot[n + 1], m.at[n], m.bytes[n]), DC_OK);
        bind[n] = (dc_bind){n + 1, 0};
    }
    CHECK_EQ(ops->alloc(d, &job, 64, &slot[0]), DC_OK);
    const dc_command item = {.kind = DC_COMMAND_LAUNCH,
                             .program = p,
                             .entry = entry,
                             .grid = f->positions,
                             .threads = f->threads,
                             .scratch = f->scratch,
                             .nbind = m.n,
                             .bind = bind,
                             .label = f->name};
    if (!CHECK_EQ(ops->record(d, &job, &item, 1, &r), DC_OK) ||
        !CHECK_EQ(ops->run(d, &job, r, slot, &info), DC_OK))
        complain(where, v->label);
    for (uint32_t n = 0; n < m.n; n++) {
        CHECK_EQ(ops->download(d, &job, m.at[n], slot[n + 1], m.bytes[n]), DC_OK);
        ops->release(d, slot[n + 1]);
    }
    ops->release(d, slot[0]);
    if (r != NULL)
        ops->recording_free(d, r);
    if (!CHECK(same_bits(&want, &m)))
        printf("%s: %s: not what the interpreter has\n", where, v->label);
    free_memory(&want);
    free_memory(&m);
}

/* All variants as one program. */
static void run_all(dc_device *d, const char *where)
{
    const dc_target *t = d->ops->target(d);
    dc_flat **flat = calloc(nvariants, sizeof(dc_flat *));
    const char **entry = calloc(nvariants, sizeof(char *));
    const variant **of = calloc(nvariants, sizeof(variant *));
    dc_text text = {0};
    dc_program *p = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < nvariants; i++) {
        if ((flat[n] = flatten(&variants[i], t)) == NULL)
            continue;
        of[n] = &variants[i];
        entry[n] = flat[n]->name;
        n++;
    }
    CHECK_EQ(dc_render(&job, (const dc_flat *const *)flat, n, t, &text), DC_OK);
    const dc_source src = {text.s, t->dialect, entry, n};
    const dc_status s = d->ops->compile(d, &job, &src, &p);
    if (s == DC_E_DEVICE)
        T_SKIP("kernels by hand: the compiler of a device is absent");
    else if (!CHECK_EQ(s, DC_OK))
        complain(where, "compile");
    for (uint32_t i = 0; i < n && p != NULL; i++)
        run_on_device(d, p, i, of[i], flat[i], where);
    printf("%s: %u kernels\n", where, n);
    if (p != NULL)
        d->ops->program_free(d, p);
    for (uint32_t i = 0; i < n; i++)
        dc_flat_free(flat[i]);
    dc_text_free(&text);
    free(of);
    free(entry);
    free(flat);
}

static void test_device(const char *name, const char *target)
{
    dc_device *d;
    bool interpret;
    snprintf(opts.target, sizeof opts.target, "%s", target);
    const dc_status s = dc_backend_open(&job, name, &d, &interpret);
    opts.target[0] = '\0';
    if (s == DC_E_DEVICE) {
        complain(name, target);
        T_SKIP("kernels by hand: a device is absent");
        return;
    }
    if (!CHECK_EQ(s, DC_OK)) {
        complain(name, target);
        return;
    }
    char where[64];
    snprintf(where, sizeof where, "%s %s", name, target);
    run_all(d, where);
    d->ops->free(d);
}

static dc_status body(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    DC_UNUSED(arg);
    for (size_t i = 0; i < DC_COUNTOF(kernels); i++) {
        add_variants(&kernels[i], false);
        add_variants(&kernels[i], true);
    }
    CHECK(nvariants > 7 * 6);
    test_nests();
    test_flat("sim:cpu");
    test_flat("sim:opencl");
    test_flat("sim:cuda");
    test_device("cpu", "");
    test_device("cpu:cc", "");
    test_device("opencl:0", "workers");
    test_device("opencl:0", "simt");
    free_variants();
    return DC_OK;
}

int main(void)
{
    const char *bad;
    dc_opts_init(&opts, &bad);
    opts.check = 1;
    dc_job_init(&job, &opts, NULL);
    if (!CHECK_EQ(dc_protect(&job, body, NULL), DC_OK))
        complain("kernels by hand", "");
    dc_job_fini(&job);
    return t_done();
}
