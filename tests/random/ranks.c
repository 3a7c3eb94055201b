/*
 * Random graphs in parts (core/transform/partition.h): partitioned for a random mesh with random shardings of parameters and
 * results, run by ranks that are threads (core/world/threads.h), each with a context of its own. The parts of the results
 * are those of the whole function, within the bound that running error analysis gives (tests/unit/graphgen.h), constant 1.
 *
 *   rank_graphs DEVICE GRAPHS BATCH [SEED]      (tests/random/suite.h; BATCH is not used)
 *
 * The program loop_rank_graphs has graphs with loops and branches, where every value is exact (tests/unit/loopgen.h).
 */
#include "core/eval/eval.h"
#include "core/ir/gtext.h"
#include "core/transform/partition.h"

#include "tests/random/suite.h"
#include "tests/unit/shardgen.h"
#include "tests/unit/world_ranks.h"

enum { GRAPH_SIZES = 16 };

typedef struct run {
    suite *s;
    const dc_mesh *mesh;
    const dc_func *whole;
    dc_func *part;
    dc_sharding *param, *result;
    uint32_t before; /* the places are parameters behind so many */
    void **value;    /* whole parameters */
    double **want, **bound;
    uint64_t seed;
    int size;
    long compared, exchanges;
} run;

/* ---- parts of arrays --------------------------------------------------------------------------- */

static int64_t place_of(const dc_mesh *m, int rank, uint32_t axis)
{
    int64_t behind = 1;
    for (uint32_t a = axis + 1; a < m->naxis; a++)
        behind *= m->size[a];
    return rank / behind % m->size[axis];
}

/* The element of the whole array that element k of a rank's part is. */
static int64_t whole_element(const dc_mesh *m, int rank, const dc_sharding *s, const dc_type *whole,
                             int64_t k)
{
    dc_type part;
    int axis;
    int64_t at = 0, scale = 1;
    CHECK(dc_sharding_part(s, m, whole, &part, &axis));
    for (int d = whole->rank; d-- > 0;) {
        int64_t number = 0;
        for (uint32_t a = 0; a < m->naxis; a++)
            if (s->dim[a] == d + 1)
                number = number * m->size[a] + place_of(m, rank, a);
        at += (number * part.dim[d] + k % part.dim[d]) * scale;
        scale *= whole->dim[d];
        k /= part.dim[d];
    }
    return at;
}

static void cut_part(const run *x, int rank, const dc_sharding *s, const dc_type *whole,
                     const void *from, void *to)
{
    dc_type part;
    int axis;
    const size_t size = dc_dtype_size((dc_dtype)whole->dtype);
    CHECK(dc_sharding_part(s, x->mesh, whole, &part, &axis));
    for (int64_t k = 0; k < dc_type_count(&part); k++)
        memcpy((char *)to + (size_t)k * size,
               (const char *)from + (size_t)whole_element(x->mesh, rank, s, whole, k) * size, size);
}

/* ---- a rank ------------------------------------------------------------------------------------ */

static void **arguments(const run *x, dc_job *j, int rank)
{
    const dc_func *f = x->part;
    void **param = DC_NEW_ARRAY(&j->scratch, void *, f->param.n + 1);
    for (uint32_t i = 0, from = 0; i < f->param.n; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        param[i] = dc_arena_alloc(&j->scratch, dc_type_bytes(&t) + 8);
        if (i >= x->before && i < x->before + x->mesh->naxis) {
            *(int32_t *)param[i] = (int32_t)place_of(x->mesh, rank, i - x->before);
            continue;
        }
        const dc_type whole = dc_node_type(x->whole, x->whole->param.at[from]);
        cut_part(x, rank, &x->param[from], &whole, x->value[from], param[i]);
        from++;
    }
    return param;
}

static dc_status call(dc_rt *rt, dc_job *j, const dc_func *f, void **param, void **got)
{
    const dc_exec_desc d = {.fn = f, .name = "part", .nfree = f->param.n, .nresult = f->result.n};
    dc_tensor **in = DC_NEW_ARRAY(&j->scratch, dc_tensor *, f->param.n + 1);
    dc_tensor **out = DC_NEW_ARRAY(&j->scratch, dc_tensor *, f->result.n + 1);
    dc_exec *e;
    dc_inst *inst = NULL;
    DC_TRY(dc_exec_build(rt, j, &d, &e));
    dc_status s = dc_inst_new(rt, j, e, NULL, &inst);
    if (s == DC_OK)
        s = suite_call(rt, j, f, inst, param, got, in, out);
    for (uint32_t i = 0; i < f->param.n; i++)
        dc_tensor_release(in[i]);
    for (uint32_t i = 0; i < f->result.n; i++)
        dc_tensor_release(out[i]);
    dc_inst_free(inst);
    dc_exec_release(e);
    return s;
}

typedef struct rank_call {
    rank_of *r;
    run *x;
    dc_rt *rt;
    void **got;
} rank_call;

static dc_status call_part(dc_job *j, void *arg)
{
    rank_call *c = arg;
    const dc_func *f = c->x->part;
    j->world = c->r->w;
    c->got = dc_xalloc((f->result.n + 1) * sizeof *c->got);
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_type t = dc_node_type(f, f->result.at[i]);
        c->got[i] = dc_xalloc(dc_type_bytes(&t) + 8);
    }
    return call(c->rt, j, f, arguments(c->x, j, c->r->rank), c->got);
}

/* Elements of result i that are not those of the whole function. */
static int64_t differing(const run *x, dc_job *j, int rank, uint32_t i, const void *got)
{
    const dc_type whole = dc_node_type(x->whole, x->whole->result.at[i]);
    const dc_type part = dc_node_type(x->part, x->part->result.at[i]);
    const int64_t n = dc_type_count(&part);
    double *want = DC_NEW_ARRAY(&j->scratch, double, n + 1);
    double *bound = DC_NEW_ARRAY(&j->scratch, double, n + 1);
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = whole_element(x->mesh, rank, &x->result[i], &whole, k);
        want[k] = x->want[i][at];
        bound[k] = x->bound[i][at];
    }
    const int64_t at = graphgen_differs((dc_dtype)part.dtype, got, want, bound, n, 1);
    if (at >= 0) {
        const dc_dtype d = (dc_dtype)part.dtype;
        printf("rank %d, graph %llu %d, result %u element %lld: %.9g, want %.9g within %g\n", rank,
               (unsigned long long)x->seed, x->size, i, (long long)at,
               dc_value_of(d, dc_bits_load(d, (const char *)got + (size_t)at * dc_dtype_size(d))),
               want[at], bound[at]);
    }
    return at;
}

static dc_status rank_body(dc_job *j, rank_of *r)
{
    run *x = r->all->ctx;
    suite s = {.device = x->s->device};
    dc_opts opts = *j->opt;
    dc_log log = {.write = suite_show};
    rank_call c = {r, x, NULL, NULL};
    snprintf(opts.cache, sizeof opts.cache, "off");
    opts.check = 1;
    if (!suite_open(&s, &opts, &log))
        return dc_failf(j, DC_ERR_DEVICE, NULL, "no device");
    c.rt = s.rt;
    const dc_status status = dc_protect(&s.rt->job, call_part, &c);
    if (status != DC_OK) {
        dc_err_render(&s.rt->job.err, 0, r->error, sizeof r->error);
        printf("rank %d: %s\n", r->rank, r->error);
    }
    for (uint32_t i = 0; i < x->part->result.n; i++) {
        if (status == DC_OK)
            r->wrong += differing(x, j, r->rank, i, c.got[i]) >= 0;
        dc_xfree(c.got[i]);
    }
    dc_xfree(c.got);
    if (status == DC_OK)
        dc_rt_free(s.rt);
    return status;
}

/* ---- one graph --------------------------------------------------------------------------------- */

static dc_status want(run *x, dc_job *j, rng *r)
{
    const dc_func *f = x->whole;
    dc_arena *a = &j->scratch;
    x->value = DC_NEW_ARRAY(a, void *, f->param.n + 1);
    x->want = DC_NEW_ARRAY(a, double *, f->result.n + 1);
    x->bound = DC_NEW_ARRAY(a, double *, f->result.n + 1);
    for (uint32_t i = 0; i < f->param.n; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        x->value[i] = dc_arena_alloc(a, dc_type_bytes(&t) + 1);
#ifdef RANDOM_LOOPS
        loopgen_input(r, &t, x->value[i]);
#else
        graphgen_input(r, &t, false, x->value[i]);
#endif
    }
    void **got = DC_NEW_ARRAY(a, void *, f->result.n + 1);
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_type t = dc_node_type(f, f->result.at[i]);
        got[i] = dc_arena_alloc(a, dc_type_bytes(&t) + 1);
        x->want[i] = DC_NEW_ARRAY(a, double, dc_type_count(&t) + 1);
        x->bound[i] = DC_NEW_ARRAY(a, double, dc_type_count(&t) + 1);
    }
#ifdef RANDOM_LOOPS
    DC_TRY(dc_eval(j, f, DC_EVAL_ROUND, (const void *const *)x->value, got));
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_type t = dc_node_type(f, f->result.at[i]);
        const dc_dtype d = (dc_dtype)t.dtype;
        for (int64_t k = 0; k < dc_type_count(&t); k++)
            x->want[i][k] =
                dc_value_of(d, dc_bits_load(d, (char *)got[i] + (size_t)k * dc_dtype_size(d)));
    }
    return DC_OK;
#else
    return graphgen_bound(j, f, (const void *const *)x->value, x->want, x->bound);
#endif
}

static dc_status one_graph(run *x, dc_job *j, dc_module *m)
{
    rng r = {x->seed};
    ranks all = {0};
    dc_partition how = {0};
    x->whole = suite_graph(m, x->seed, x->size);
    x->mesh = shardgen_mesh(&r);
    x->param = shardgen_list(&r, j, x->mesh, x->whole, x->whole->param.at, x->whole->param.n);
    x->result = shardgen_list(&r, j, x->mesh, x->whole, x->whole->result.at, x->whole->result.n);
    x->before = (uint32_t)rng_below(&r, (int)x->whole->param.n + 1);
    how = (dc_partition){
        .mesh = x->mesh, .param = x->param, .result = x->result, .before = x->before, .wide = true};
    DC_TRY(want(x, j, &r));
    DC_TRY(dc_partition_func(j, x->whole, &how, &x->part));
    DC_TRY(dc_func_check(j, x->part));
    x->exchanges += how.step.n;
    ranks_run(&all, (int)dc_mesh_size(x->mesh), NULL, rank_body, x);
    for (int i = 0; i < all.n; i++) {
        const bool right = all.at[i].status == DC_OK && all.at[i].wrong == 0;
        if (CHECK(right))
            continue;
        dc_text text = {0};
        printf("%s: seed %llu size %d, rank %d of %d: %s\n", x->s->device,
               (unsigned long long)x->seed, x->size, i, all.n, all.at[i].error);
        if (i == 0) {
            dc_func_print(x->whole, &text);
            printf("%s\n", text.s);
            text.n = 0;
            dc_func_print(x->part, &text);
            printf("%s\n", text.s);
        }
        dc_text_free(&text);
        fflush(stdout);
    }
    x->compared += (long)x->whole->result.n * all.n;
    return DC_OK;
}

static dc_status body(dc_job *j, suite *s)
{
    run x = {.s = s};
    for (long g = 0; g < s->graphs; g++) {
        const dc_mark mark = dc_arena_mark(&j->scratch);
        dc_module *m = dc_module_new();
        x.seed = s->seed + (uint64_t)g;
        x.size = 4 + (int)(g % GRAPH_SIZES);
        const dc_status status = one_graph(&x, j, m);
        if (status != DC_OK)
            printf("seed %llu size %d:\n", (unsigned long long)x.seed, x.size);
        dc_module_free(m);
        DC_TRY(status);
        dc_arena_rewind(&j->scratch, mark);
    }
    printf("%s: %ld graphs, %ld parts of results, %ld exchanges\n", s->device, s->graphs,
           x.compared, x.exchanges);
    return DC_OK;
}

int main(int argc, char **argv)
{
    return suite_main(argc, argv, body);
}
