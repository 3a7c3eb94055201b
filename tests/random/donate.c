/*
 * Updates in place do not change what is computed: random functions run twice on one device, once
 * with every value an argument or a result, once with random parameters as cells that are set to
 * random values of their type.
 *
 *   donate DEVICE GRAPHS BATCH [SEED]      (tests/random/suite.h)
 *
 * Both run the same kernels, so every bit must agree, call after call; the one without cells agrees
 * with the interpreter within the bound of tests/unit/graphgen.h. Between calls results are held or
 * let go, cells are shown and written, and arguments of the next call are the old value of a cell or
 * an earlier result: what is held must never change.
 */
#include "core/gtext.h"

#include "tests/random/suite.h"
#include "tests/unit/graphgen.h"

enum { CALLS = 4, LARGEST = 24, HELD = 64, MORE_CELLS = 2 };

typedef struct held { /* a tensor, and what it must show for good */
    dc_tensor *tensor;
    void *bytes;
} held;

typedef struct batch {
    suite *s;
    dc_rt *rt;
    dc_job *j;
    rng rnd;
    uint64_t seed; /* of the first graph */
    dc_func *f;
    dc_exec_desc plain, donating;
    uint32_t *set;
    dc_type *type;        /* by parameter */
    void **param;         /* what the next call starts from */
    dc_type *result_type; /* results and new values */
    void **result;        /* of the plain run */
    dc_cell **cell;
    held held[HELD];
    int nheld;
} batch;

typedef struct totals {
    uint64_t donated, denied;
    long compared;
} totals;

static bool chance(batch *b, int percent)
{
    return rng_below(&b->rnd, 100) < percent;
}

static void *room(batch *b, const dc_type *t)
{
    return dc_arena_alloc(&b->j->scratch, dc_type_bytes(t) + 1);
}

/* The function -------------------------------------------------------------------------------- */

static void make_params(batch *b, const dc_func *g, uint32_t first, uint32_t n, dc_ref *map)
{
    for (uint32_t i = first; i < n; i++) {
        const dc_type t = dc_node_type(g, g->param.at[i]);
        map[g->param.at[i]] = dc_g_param(b->f, &t, "x");
    }
}

/* Parameters `first` and up become cells; so do some that the graph does not know. */
static void make_cell_params(batch *b, rng *r, const dc_func *g, uint32_t first, dc_ref *map)
{
    make_params(b, g, first, g->param.n, map);
    for (int i = 0; i < MORE_CELLS; i++) {
        const dc_type t = dc_node_type(g, 1 + (dc_ref)rng_below(r, (int)g->node.n - 1));
        dc_g_param(b->f, &t, "cell");
    }
}

/* Joins graphs, all free parameters in front of all cells. */
static void join(batch *b, dc_module *m, int n)
{
    const dc_func *g[SUITE_BATCH];
    uint32_t nfree[SUITE_BATCH];
    dc_ref *map[SUITE_BATCH];
    rng r[SUITE_BATCH];
    b->f = dc_func_new(m, "batch");
    for (int i = 0; i < n; i++) { /* with BATCH 1 each graph is the same */
        const uint64_t seed = b->seed + (uint64_t)i;
        r[i] = (rng){~seed};
        g[i] = graphgen_func(m, seed, 4 + rng_below(&r[i], LARGEST));
        nfree[i] = (uint32_t)(rng_below(&r[i], 2) * rng_below(&r[i], (int)g[i]->param.n + 1));
        map[i] = dc_xalloc(g[i]->node.n * sizeof *map[i]);
        make_params(b, g[i], 0, nfree[i], map[i]);
    }
    b->donating = (dc_exec_desc){.fn = b->f, .name = "donating", .nfree = b->f->param.n};
    for (int i = 0; i < n; i++)
        make_cell_params(b, &r[i], g[i], nfree[i], map[i]);
    for (int i = 0; i < n; i++) {
        suite_append(b->f, g[i], map[i]);
        for (uint32_t k = 0; k < g[i]->result.n; k++)
            DC_PUSH(b->f->result, map[i][g[i]->result.at[k]]);
        dc_xfree(map[i]);
    }
    b->donating.ncell = b->f->param.n - b->donating.nfree;
    b->donating.nresult = b->f->result.n;
}

/* Some live node of the type among the first `n`, at random; 0 if there is none. */
static dc_ref any_of_type(batch *b, const bool *live, dc_ref n, const dc_type *want)
{
    dc_ref found = 0;
    int seen = 0;
    for (dc_ref r = 1; r < n; r++) {
        const dc_type t = dc_node_type(b->f, r);
        if (live[r] && dc_type_same(&t, want) && rng_below(&b->rnd, ++seen) == 0)
            found = r;
    }
    return found;
}

/*
 * A new node that reads the cell, at its own place or elsewhere, beside some value of its type: what
 * optimisers do, and what must not happen in place.
 */
static dc_ref update(batch *b, dc_ref cell, dc_ref value)
{
    static const dc_op numeric[] = {DC_OP_ADD, DC_OP_SUB, DC_OP_MAX, DC_OP_MUL};
    static const dc_op logical[] = {DC_OP_AND, DC_OP_OR, DC_OP_XOR};
    const dc_node *n = dc_node_at(b->f, cell);
    const dc_op op = n->dtype == DC_BOOL ? logical[rng_below(&b->rnd, DC_COUNTOF(logical))]
                                         : numeric[rng_below(&b->rnd, DC_COUNTOF(numeric))];
    const uint32_t axes = (uint32_t)rng_below(&b->rnd, 1 << n->rank);
    return dc_g2(b->f, op, value, chance(b, 65) ? dc_g_flip(b->f, cell, axes) : cell);
}

/* Most cells are set to a value of their type, which becomes a result behind the others. */
static void choose_sets(batch *b)
{
    dc_exec_desc *d = &b->donating;
    const bool *live = dc_func_live(b->f, &b->j->scratch);
    const dc_ref n = b->f->node.n;
    b->set = DC_NEW_ARRAY(&b->j->scratch, uint32_t, d->ncell + 1);
    for (uint32_t c = 0; c < d->ncell; c++) {
        const dc_ref cell = b->f->param.at[d->nfree + c];
        const dc_ref value = any_of_type(b, live, n, &b->type[d->nfree + c]);
        if (value == 0 || chance(b, 15))
            continue;
        b->set[d->nset++] = c;
        DC_PUSH(b->f->result, chance(b, 40) ? value : update(b, cell, value));
    }
    d->set = b->set;
    d->no_reuse = chance(b, 25);
    b->plain = (dc_exec_desc){.fn = b->f, .name = "plain", .nfree = b->f->param.n};
    b->plain.nresult = b->f->result.n;
}

static void describe(batch *b)
{
    const dc_func *f = b->f;
    dc_arena *a = &b->j->scratch;
    const bool special = chance(b, 25);
    b->type = DC_NEW_ARRAY(a, dc_type, f->param.n + 1);
    b->param = DC_NEW_ARRAY(a, void *, f->param.n + 1);
    b->cell = DC_NEW_ARRAY(a, dc_cell *, f->param.n + 1);
    for (uint32_t i = 0; i < f->param.n; i++) {
        b->type[i] = dc_node_type(f, f->param.at[i]);
        b->param[i] = room(b, &b->type[i]);
        graphgen_input(&b->rnd, &b->type[i], special, b->param[i]);
    }
    choose_sets(b);
    b->result_type = DC_NEW_ARRAY(a, dc_type, f->result.n + 1);
    b->result = DC_NEW_ARRAY(a, void *, f->result.n + 1);
    for (uint32_t i = 0; i < f->result.n; i++) {
        b->result_type[i] = dc_node_type(f, f->result.at[i]);
        b->result[i] = room(b, &b->result_type[i]);
    }
}

/* Memory of the device -------------------------------------------------------------------------- */

static dc_status upload(batch *b, const dc_type *t, const void *bytes, dc_tensor **out)
{
    DC_TRY(dc_tensor_new(b->rt, b->j, t, out));
    if (dc_type_bytes(t) == 0)
        return DC_OK;
    return b->rt->device->ops->upload(b->rt->device, b->j, dc_tensor_mem(*out), bytes,
                                      dc_type_bytes(t));
}

static dc_status download(batch *b, const dc_store *from, const dc_type *t, void *out)
{
    if (dc_type_bytes(t) == 0)
        return DC_OK;
    return b->rt->device->ops->download(b->rt->device, b->j, out, from->mem, dc_type_bytes(t));
}

/* Does the device's memory hold these bytes? Says what does not. */
static dc_status expect(batch *b, const dc_store *got, const dc_type *t, const void *want,
                        const char *what, uint32_t number)
{
    const dc_mark mark = dc_arena_mark(&b->j->scratch);
    char *bytes = room(b, t);
    DC_TRY(download(b, got, t, bytes));
    if (!CHECK(memcmp(bytes, want, dc_type_bytes(t)) == 0))
        printf("%s: batch from %llu: %s %u differs\n", b->s->device, (unsigned long long)b->seed,
               what, number);
    dc_arena_rewind(&b->j->scratch, mark);
    return DC_OK;
}

static dc_status make_cells(batch *b)
{
    const uint32_t nfree = b->donating.nfree;
    for (uint32_t c = 0; c < b->donating.ncell; c++) {
        dc_tensor *value;
        DC_TRY(upload(b, &b->type[nfree + c], b->param[nfree + c], &value));
        DC_TRY(dc_cell_new(b->rt, b->j, &b->type[nfree + c], NULL, false, &b->cell[c]));
        DC_TRY(dc_cell_write(b->cell[c], b->j, value));
        dc_tensor_release(value);
    }
    return DC_OK;
}

/* What is held ------------------------------------------------------------------------------------ */

/* Takes the reference. With no room left an earlier one goes. */
static void hold(batch *b, dc_tensor *t, const void *bytes)
{
    held *h = &b->held[b->nheld < HELD ? b->nheld++ : rng_below(&b->rnd, HELD)];
    dc_tensor_release(h->tensor);
    h->tensor = t;
    h->bytes = room(b, &t->type);
    memcpy(h->bytes, bytes, dc_type_bytes(&t->type));
}

static dc_status check_held(batch *b)
{
    for (int i = 0; i < b->nheld; i++)
        DC_TRY(expect(b, b->held[i].tensor->store, &b->held[i].tensor->type, b->held[i].bytes,
                      "held tensor", (uint32_t)i));
    return DC_OK;
}

static void let_go(batch *b)
{
    for (int i = 0; i < b->nheld; i++)
        dc_tensor_release(b->held[i].tensor);
    b->nheld = 0;
    memset(b->held, 0, sizeof b->held);
}

/* Something held of this type, or NULL. */
static const held *held_of_type(batch *b, const dc_type *t)
{
    const int first = b->nheld > 0 ? rng_below(&b->rnd, b->nheld) : 0;
    for (int i = 0; i < b->nheld; i++) {
        const held *h = &b->held[(first + i) % b->nheld];
        if (dc_type_same(&h->tensor->type, t))
            return h;
    }
    return NULL;
}

/* Between calls: some cells are shown, some are written from outside. */
static dc_status use_cells(batch *b)
{
    const uint32_t nfree = b->donating.nfree;
    for (uint32_t c = 0; c < b->donating.ncell; c++) {
        const dc_type *t = &b->type[nfree + c];
        dc_tensor *value;
        if (chance(b, 40))
            hold(b, dc_cell_show(b->cell[c]), b->param[nfree + c]);
        if (!chance(b, 10))
            continue;
        graphgen_input(&b->rnd, t, false, b->param[nfree + c]);
        DC_TRY(upload(b, t, b->param[nfree + c], &value));
        DC_TRY(dc_cell_write(b->cell[c], b->j, value));
        dc_tensor_release(value);
    }
    return DC_OK;
}

/* Calls ------------------------------------------------------------------------------------------ */

/* Fresh copies of everything. */
static dc_status call_plain(batch *b, dc_inst *inst)
{
    dc_arg *arg = DC_NEW_ARRAY(&b->j->scratch, dc_arg, b->plain.nfree + 1);
    dc_tensor **in = DC_NEW_ARRAY(&b->j->scratch, dc_tensor *, b->plain.nfree + 1);
    dc_tensor **out = DC_NEW_ARRAY(&b->j->scratch, dc_tensor *, b->plain.nresult + 1);
    dc_fault fault;
    for (uint32_t i = 0; i < b->plain.nfree; i++) {
        DC_TRY(upload(b, &b->type[i], b->param[i], &in[i]));
        arg[i] = (dc_arg){.tensor = in[i]};
    }
    DC_TRY(dc_inst_call(inst, b->j, arg, out, &fault));
    for (uint32_t i = 0; i < b->plain.nresult; i++) {
        DC_TRY(download(b, out[i]->store, &b->result_type[i], b->result[i]));
        dc_tensor_release(out[i]);
    }
    for (uint32_t i = 0; i < b->plain.nfree; i++)
        dc_tensor_release(in[i]);
    return DC_OK;
}

/* Free arguments: something held, whatever it shows, or new values. */
static dc_status choose_args(batch *b, dc_tensor **in)
{
    for (uint32_t i = 0; i < b->donating.nfree; i++) {
        const dc_type *t = &b->type[i];
        const held *h = chance(b, 60) ? held_of_type(b, t) : NULL;
        if (h != NULL) {
            memcpy(b->param[i], h->bytes, dc_type_bytes(t));
            in[i] = dc_tensor_retain(h->tensor);
        } else {
            DC_TRY(upload(b, t, b->param[i], &in[i]));
        }
    }
    return DC_OK;
}

static dc_status call_donating(batch *b, dc_inst *inst, dc_tensor **in)
{
    const dc_exec_desc *d = &b->donating;
    dc_arg *arg = DC_NEW_ARRAY(&b->j->scratch, dc_arg, d->nfree + 1);
    dc_tensor **out = DC_NEW_ARRAY(&b->j->scratch, dc_tensor *, d->nresult + 1);
    dc_fault fault;
    for (uint32_t i = 0; i < d->nfree; i++)
        arg[i] = (dc_arg){.tensor = in[i]};
    DC_TRY(dc_inst_call(inst, b->j, arg, out, &fault));
    for (uint32_t i = 0; i < d->nfree; i++)
        dc_tensor_release(in[i]);
    for (uint32_t i = 0; i < d->nresult; i++) {
        DC_TRY(expect(b, out[i]->store, &b->result_type[i], b->result[i], "result", i));
        if (chance(b, 50))
            hold(b, out[i], b->result[i]);
        else
            dc_tensor_release(out[i]);
    }
    return DC_OK;
}

/* The plain run's new values are what the cells hold now, and the next call starts from. */
static dc_status carry_over(batch *b)
{
    const dc_exec_desc *d = &b->donating;
    for (uint32_t i = 0; i < d->nset; i++) {
        const uint32_t p = d->nfree + b->set[i];
        memcpy(b->param[p], b->result[d->nresult + i], dc_type_bytes(&b->type[p]));
    }
    for (uint32_t c = 0; c < d->ncell; c++)
        DC_TRY(expect(b, b->cell[c]->store, &b->type[d->nfree + c], b->param[d->nfree + c], "cell",
                      c));
    return DC_OK;
}

/* The plain run against the interpreter. */
static dc_status check_values(batch *b, totals *all)
{
    const uint32_t n = b->f->result.n;
    double **value = DC_NEW_ARRAY(&b->j->scratch, double *, n + 1);
    double **bound = DC_NEW_ARRAY(&b->j->scratch, double *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const int64_t count = dc_type_count(&b->result_type[i]);
        value[i] = DC_NEW_ARRAY(&b->j->scratch, double, count + 1);
        bound[i] = DC_NEW_ARRAY(&b->j->scratch, double, count + 1);
    }
    DC_TRY(graphgen_bound(b->j, b->f, (const void *const *)b->param, value, bound));
    for (uint32_t i = 0; i < n; i++) {
        const dc_type *t = &b->result_type[i];
        const int64_t count = dc_type_count(t);
        all->compared += (long)count;
        if (!CHECK(graphgen_differs((dc_dtype)t->dtype, b->result[i], value[i], bound[i], count,
                                    1) < 0))
            printf("%s: batch from %llu: result %u is out of its bound\n", b->s->device,
                   (unsigned long long)b->seed, i);
    }
    return DC_OK;
}

static dc_status run_calls(batch *b, dc_inst *plain, dc_inst *donating, totals *all)
{
    dc_tensor **in = DC_NEW_ARRAY(&b->j->scratch, dc_tensor *, b->donating.nfree + 1);
    for (int n = 0; n < CALLS; n++) {
        DC_TRY(use_cells(b));
        DC_TRY(choose_args(b, in));
        DC_TRY(call_plain(b, plain));
        DC_TRY(check_values(b, all));
        DC_TRY(call_donating(b, donating, in));
        DC_TRY(carry_over(b));
        DC_TRY(check_held(b));
    }
    return DC_OK;
}

static dc_status run_batch(batch *b, totals *all)
{
    dc_exec *e[2];
    dc_inst *inst[2];
    dc_exec_info info;
    DC_TRY(dc_exec_build(b->rt, b->j, &b->plain, &e[0]));
    DC_TRY(dc_exec_build(b->rt, b->j, &b->donating, &e[1]));
    dc_exec_info_of(e[1], &info);
    CHECK(info.interpreted == b->s->interpret);
    all->donated += info.donated;
    all->denied += info.denied;
    DC_TRY(make_cells(b));
    DC_TRY(dc_inst_new(b->rt, b->j, e[0], NULL, &inst[0]));
    DC_TRY(dc_inst_new(b->rt, b->j, e[1], b->cell, &inst[1]));
    DC_TRY(run_calls(b, inst[0], inst[1], all));
    let_go(b);
    for (int i = 0; i < 2; i++) {
        dc_inst_free(inst[i]);
        dc_exec_release(e[i]);
    }
    for (uint32_t c = 0; c < b->donating.ncell; c++)
        dc_cell_release(b->cell[c]);
    return DC_OK;
}

/* The function too, when it is small enough to read: with BATCH 1. */
static void print_batch(const batch *b, int n)
{
    const dc_exec_desc *d = &b->donating;
    dc_text text = {0};
    printf("%s: batch from %llu of %d, %u free, %u cells, %u results, set are", b->s->device,
           (unsigned long long)b->seed, n, d->nfree, d->ncell, d->nresult);
    for (uint32_t i = 0; i < d->nset; i++)
        printf(" %u", d->set[i]);
    if (n == 1)
        dc_func_print(b->f, &text);
    printf("\n%s\n", text.s != NULL ? text.s : "");
    dc_text_free(&text);
}

static dc_status try_batch(dc_job *j, suite *s, uint64_t seed, int n, totals *all)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    batch *b = DC_NEW(&j->scratch, batch);
    dc_module *m = dc_module_new();
    const long failed = t_failed;
    *b = (batch){.s = s, .rt = s->rt, .j = j, .rnd = {seed}, .seed = seed};
    join(b, m, n);
    describe(b);
    const dc_status status = run_batch(b, all);
    if (status != DC_OK || t_failed > failed)
        print_batch(b, n);
    dc_module_free(m);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}

static dc_status body(dc_job *j, suite *s)
{
    totals all = {0};
    for (long g = 0; g < s->graphs && t_failed == 0; g += s->batch) {
        const int n = (int)(s->graphs - g < s->batch ? s->graphs - g : s->batch);
        DC_TRY(try_batch(j, s, s->seed + (uint64_t)g, n, &all));
    }
    CHECK(all.compared > 0);
    if (!s->interpret && s->graphs >= 100) { /* both occur, many times */
        CHECK(all.donated * 2 > (uint64_t)s->graphs);
        CHECK(all.denied * 32 > (uint64_t)s->graphs);
    }
    printf("%s: %ld graphs, %llu cells in place, %llu by copy, %ld elements, %llu kernels, "
           "%llu fallbacks\n",
           s->device, s->graphs, (unsigned long long)all.donated, (unsigned long long)all.denied,
           all.compared, (unsigned long long)s->rt->stats.kernels,
           (unsigned long long)s->rt->stats.fallbacks);
    return DC_OK;
}

int main(int argc, char **argv)
{
    return suite_main(argc, argv, body);
}
