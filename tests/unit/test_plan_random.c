/*
 * The planner on random graphs, watched by the model of tests/unit/plan_model.h; packing of random
 * temporaries alone. The seed is printed; argument 1 sets it.
 */
#include "tests/unit/plan_model.h"

/* ---- random graphs ---- */

static void random_function(trial *t, rng *r)
{
    static const dc_op unary[] = {DC_OP_NEG, DC_OP_ABS},
                       binary[] = {DC_OP_ADD, DC_OP_SUB, DC_OP_MUL};
    dc_type types[3] = {dc_type_make(DC_I32, 1, (int64_t[]){3 + rng_below(r, 200)}),
                        dc_type_make(DC_I32, 2, (int64_t[]){rng_below(r, 9), 16}),
                        dc_type_scalar(DC_I32)};
    dc_module *m = t->m = dc_module_new();
    dc_func *f = dc_func_new(m, "random");
    dc_ref made[3][MANY]; /* values by type */
    int n[3] = {0};
    t->desc.nfree = (uint32_t)rng_below(r, 4);
    t->desc.ncell = (uint32_t)rng_below(r, 7);
    int type_of_cell[MANY];
    for (uint32_t p = 0; p < 3 + t->desc.nfree + t->desc.ncell; p++) {
        /* three constants, so that every type has a value; then the parameters */
        const int k = p < 3 ? (int)p : rng_below(r, 3);
        made[k][n[k]++] =
            p < 3 ? dc_graph_const(f, &types[k], 7.0) : dc_graph_param(f, &types[k], NULL);
        if (p >= 3 + t->desc.nfree)
            type_of_cell[p - 3 - t->desc.nfree] = k;
    }
    for (int i = rng_below(r, 40); i > 0; i--) {
        const int k = rng_below(r, 3);
        const dc_ref a = made[k][rng_below(r, n[k])], b = made[k][rng_below(r, n[k])];
        const int what = rng_below(r, 8);
        if (n[k] == MANY || n[2] == MANY)
            break;
        if (what == 0 && k < 2)
            made[2][n[2]++] = dc_graph_reduce(f, DC_OP_MAXR, a, (1u << (k + 1)) - 1);
        else if (what < 3)
            made[k][n[k]++] = dc_graph_op1(f, unary[rng_below(r, 2)], a);
        else
            made[k][n[k]++] = dc_graph_op2(f, binary[rng_below(r, 3)], a, b);
    }
    t->desc.nresult = (uint32_t)rng_below(r, 4);
    for (uint32_t i = 0; i < t->desc.nresult; i++) {
        const int k = rng_below(r, 3);
        DC_PUSH(f->result, made[k][rng_below(r, n[k])]);
    }
    for (uint32_t c = 0; c < t->desc.ncell; c++)
        if (rng_below(r, 4) > 0) {
            const int k = type_of_cell[c];
            t->set[t->desc.nset++] = c;
            DC_PUSH(f->result, made[k][rng_below(r, n[k])]);
        }
    t->desc.ncheck = rng_below(r, 3) == 0 ? (uint32_t)rng_below(r, 3) : 0;
    for (uint32_t i = 0; i < 2 * t->desc.ncheck; i++)
        DC_PUSH(f->result, made[2][rng_below(r, n[2])]);
    t->fn = t->desc.fn = f;
}

/* Joins some neighbours of one shape that do not depend on each other. */
static void join_some(trial *t, rng *r)
{
    for (int i = 0; i < 4 && t->groups.n > 1; i++) {
        const uint32_t a = (uint32_t)rng_below(r, (int)t->groups.n - 1), b = a + 1;
        const dc_group *x = &t->groups.at[a], *y = &t->groups.at[b];
        const dc_type tx = dc_node_type(t->fn, x->out[0]), ty = dc_node_type(t->fn, y->out[0]);
        bool depends = x->nout > 1 || y->nout > 1; /* in between there may be others */
        for (uint32_t k = 0; k < y->nin; k++)
            depends |= t->groups.group_of[y->in[k]] == a;
        if (!depends && dc_type_same(&tx, &ty))
            join_groups(t, a, b);
    }
}

static void test_random(uint64_t seed, int rounds)
{
    uint32_t donated = 0, denied = 0, shared = 0;
    uint64_t deps = 0, steps = 0, bundles = 0;
    for (int i = 0; i < rounds; i++) {
        rng r = {seed + (uint64_t)i};
        trial t;
        begin(&t);
        random_function(&t, &r);
        one_group_each(&t);
        join_some(&t, &r);
        t.salt = rng_below(&r, 2) == 0 ? 0 : rng_next(&r) | 1;
        t.in.guard = rng_below(&r, 2) == 0 ? 0 : 64;
        t.in.no_reuse = rng_below(&r, 5) == 0;
        t.in.bundles = rng_below(&r, 3) > 0;
        t.in.cache = rng_below(&r, 2) == 0 ? 1 << 20 : (size_t)rng_below(&r, 4000);
        make_plan(&t);
        const char *said = watch(&t);
        if (!CHECK_STR(said, "right"))
            printf("seed %llu\n", (unsigned long long)(seed + (uint64_t)i));
        size_t sum = 0;
        for (uint32_t k = 0; k < t.plan.ntemp; k++)
            sum += dc_align_up(t.plan.temp[k].bytes, LINE) + 2 * t.in.guard;
        CHECK(t.in.no_reuse ? t.plan.bytes == sum : t.plan.bytes <= sum);
        donated += t.plan.donated;
        denied += t.plan.denied;
        shared += t.plan.bytes < sum;
        for (uint32_t k = 0; k < t.plan.nstep; k++)
            deps += t.plan.step[k].ndep;
        for (uint32_t k = 0; k < t.plan.nstep; k++)
            bundles += t.plan.step[k].kind == DC_STEP_BUNDLE;
        steps += t.plan.nstep;
        end(&t);
    }
    printf("%.2f deps per step\n", (double)deps / (double)steps);
    CHECK(donated > 0 && denied > 0 && shared > 0 && bundles > 0); /* the graphs reach all of it */
}

/* ---- packing alone ---- */

static void test_pack(uint64_t seed)
{
    double worst = 1.0;
    for (int i = 0; i < 200; i++) {
        rng r = {seed + (uint64_t)i};
        trial t;
        begin(&t);
        dc_temp temp[40];
        const uint32_t n = (uint32_t)rng_below(&r, 40);
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t first = (uint32_t)rng_below(&r, 60);
            temp[k] = (dc_temp){.bytes = (size_t)rng_below(&r, 4000) + 1,
                                .first = first,
                                .last = first + (uint32_t)rng_below(&r, 12)};
        }
        t.plan.temp = temp;
        t.plan.ntemp = n;
        CHECK_EQ(dc_plan_memory_pack(&t.job, &t.arena, temp, n, 0, false, &t.plan.bytes,
                                     &t.plan.lower_bound),
                 DC_OK);
        CHECK(!overlap(&t));
        CHECK(t.plan.bytes >= t.plan.lower_bound);
        if (n > 0 && (double)t.plan.bytes / (double)t.plan.lower_bound > worst)
            worst = (double)t.plan.bytes / (double)t.plan.lower_bound;
        end(&t);
    }
    printf("packing: at worst %.2f of the lower bound\n", worst);
    CHECK(worst < 1.3);
}

/* Too many to compare each with each. */
static void test_pack_many(uint64_t seed, int span, int bytes)
{
    enum { N = 5000 };
    static dc_temp temp[N];
    rng r = {seed};
    trial t;
    begin(&t);
    for (uint32_t k = 0; k < N; k++) {
        const uint32_t first = (uint32_t)rng_below(&r, N);
        temp[k] = (dc_temp){.bytes = (size_t)rng_below(&r, bytes) + 1,
                            .first = first,
                            .last = first + (uint32_t)rng_below(&r, span)};
    }
    t.plan.temp = temp;
    t.plan.ntemp = N;
    CHECK_EQ(dc_plan_memory_pack(&t.job, &t.arena, temp, N, 0, false, &t.plan.bytes,
                                 &t.plan.lower_bound),
             DC_OK);
    CHECK(!overlap(&t));
    printf("packing many: %.2f of the lower bound\n",
           (double)t.plan.bytes / (double)t.plan.lower_bound);
    CHECK(t.plan.bytes >= t.plan.lower_bound);
    CHECK((double)t.plan.bytes < 1.5 * (double)t.plan.lower_bound);
    end(&t);
}

static void test_too_large(void)
{
    trial t;
    dc_temp temp[3] = {
        {.bytes = INT64_MAX / 2}, {.bytes = INT64_MAX / 2}, {.bytes = INT64_MAX / 2}};
    size_t bytes, lower;
    begin(&t);
    CHECK_EQ(dc_plan_memory_pack(&t.job, &t.arena, temp, 3, 0, true, &bytes, &lower), DC_E_VALUE);
    CHECK_EQ(t.job.err.id, DC_ERR_TOO_LARGE);
    end(&t);
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 20);
    test_random(seed, 3000);
    test_pack(seed);
    test_pack_many(seed, 12, 4000);
    test_pack_many(seed, 3000, 300);
    test_pack_many(seed, 200, 1 << 20);
    test_too_large();
    return t_done();
}
