/*
 * What the suites of random graphs share: a context on a device given by name, the command line, and
 * many graphs as one function, so that their kernels are one program (compilers of some devices need
 * long for each).
 *
 *   PROGRAM DEVICE GRAPHS BATCH [SEED]
 *
 * The seed is fresh unless given here or in DEEPC_TEST_SEED, and printed. Settings come from the
 * environment, as for deepc, but kernels are kept on disk only where DEEPC_CACHE names a folder; else IR is
 * verified in any case. A device that is absent is a skip.
 */
#ifndef DC_TESTS_SUITE_H
#define DC_TESTS_SUITE_H

#include "backends/registry.h"
#include "jit/jit.h"

#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/graphgen.h"
#include "tests/unit/loopgen.h"
#include "tests/unit/rng.h"

enum { SUITE_BATCH = 64 }; /* graphs in a function at most */

typedef struct suite {
    dc_rt *rt;
    const char *device;
    bool interpret; /* device is `eval` */
    uint64_t seed;
    long graphs;
    int batch;
} suite;

/* A graph of this seed; of the programs large_*, with axes as long as those of small networks; of loop_*, with loops. */
static inline dc_func *suite_graph(dc_module *m, uint64_t seed, int size)
{
#if defined RANDOM_LOOPS
    return loopgen_func(m, seed, size);
#elif defined RANDOM_LARGE
    return graphgen_large(m, seed, size);
#else
    return graphgen_func(m, seed, size);
#endif
}

/*
 * Copies the nodes of `from` behind those of `to`. map has a place for each node of `from`: 0, or
 * for a parameter the node of `to` that stands for it; receives the rest.
 */
static inline void suite_append(dc_func *to, const dc_func *from, dc_ref *map)
{
    for (dc_ref r = 1; r < from->node.n; r++) {
        const dc_node *n = dc_node_at(from, r);
        const dc_type t = dc_node_type(from, r);
        dc_ref in[DC_MAX_OPERANDS];
        if (map[r] != 0)
            continue;
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        map[r] = n->op == DC_OP_PARAM
                     ? dc_graph_param(to, &t, "x")
                     : dc_graph_make(to, (dc_op)n->op, in, n->nin, n->attr, n->nattr, &t);
    }
}

static inline void suite_show(void *ctx, const char *channel, const char *text, size_t n)
{
    (void)channel;
    DC_UNUSED(ctx);
    fwrite(text, 1, n, stderr);
}

/* True when the device is there. */
static inline bool suite_open(suite *s, dc_opts *opts, dc_log *log)
{
    dc_device *device;
    char text[600];
    s->rt = dc_rt_new(opts, log);
    if (!dc_sim_is(s->device) && !dc_backend_describe(opts, s->device, text, sizeof text)) {
        printf("skip: no device %s: %s\n", s->device, text); /* or its compiler is not there */
        return false;
    }
    const dc_status status = dc_sim_is(s->device)
                                 ? dc_sim_open(&s->rt->job, s->device, &device)
                                 : dc_backend_open(&s->rt->job, s->device, &device, &s->interpret);
    if (status == DC_OK) {
        dc_rt_set_device(s->rt, device, s->interpret);
        return true;
    }
    dc_err_render(&s->rt->job.err, 0, text, sizeof text);
    printf("skip: no device %s: %s\n", s->device, text);
    CHECK(status == DC_E_DEVICE);
    return false;
}

/*
 * One call of f's instance on values of its parameters, whose results go to got; in and out receive tensors, which the
 * caller releases.
 */
static inline dc_status suite_call(dc_rt *rt, dc_job *j, const dc_func *f, dc_inst *inst,
                                   void *const *param, void *const *got, dc_tensor **in,
                                   dc_tensor **out)
{
    const dc_device_ops *ops = rt->device->ops;
    dc_arg *arg = DC_NEW_ARRAY(&j->scratch, dc_arg, f->param.n + 1);
    dc_fault fault;
    for (uint32_t i = 0; i < f->param.n; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        DC_TRY(dc_tensor_new(rt, j, &t, &in[i]));
        if (dc_type_bytes(&t) > 0)
            DC_TRY(ops->upload(rt->device, j, dc_tensor_mem(in[i]), param[i], dc_type_bytes(&t)));
        arg[i] = (dc_arg){.tensor = in[i]};
    }
    DC_TRY(dc_inst_call(inst, j, arg, out, &fault));
    for (uint32_t i = 0; i < f->result.n; i++)
        if (dc_type_bytes(&out[i]->type) > 0)
            DC_TRY(ops->download(rt->device, j, got[i], dc_tensor_mem(out[i]),
                                 dc_type_bytes(&out[i]->type)));
    return DC_OK;
}

typedef struct suite_entry {
    suite *s;
    dc_status (*body)(dc_job *j, suite *s);
} suite_entry;

static inline dc_status suite_enter(dc_job *j, void *arg)
{
    const suite_entry *e = arg;
    return e->body(j, e->s);
}

/* Runs body on the device. Ends in the checks of every suite: success, and no fallbacks. */
static inline int suite_main(int argc, char **argv, dc_status (*body)(dc_job *j, suite *s))
{
    dc_opts opts;
    dc_log log = {.write = suite_show};
    const char *bad;
    if (argc < 4) {
        printf("%s DEVICE GRAPHS BATCH [SEED]\n", argv[0]);
        return 2;
    }
    suite s = {.device = argv[1], .graphs = strtol(argv[2], NULL, 10), .batch = atoi(argv[3])};
    s.batch = s.batch < 1 ? 1 : s.batch > SUITE_BATCH ? SUITE_BATCH : s.batch;
    s.seed = rng_seed(argc - 3, argv + 3, dc_clock_ns() / 1000);
    dc_opts_init(&opts, &bad);
    if (strcmp(opts.cache, "auto") == 0)
        snprintf(opts.cache, sizeof opts.cache, "off");
    if (opts.check < 1 && strcmp(opts.cache, "off") == 0) /* what is verified is not found whole */
        opts.check = 1;
    dc_log_select(&log, opts.debug);
    if (!suite_open(&s, &opts, &log)) {
        dc_rt_free(s.rt);
        return t_done() == 1 ? 1 : 77;
    }
    const dc_status status = dc_protect(&s.rt->job, suite_enter, &(suite_entry){&s, body});
    if (status != DC_OK) {
        char text[700];
        dc_err_render(&s.rt->job.err, 0, text, sizeof text);
        printf("%s\n", text);
        fflush(stdout); /* a sanitizer may end the process before */
    }
    CHECK(status == DC_OK);
    CHECK_EQ(s.rt->stats.fallbacks, 0);
    if (status == DC_OK) /* else what the failed call held is not given back */
        dc_rt_free(s.rt);
    return t_done();
}

#endif
