/*
 * Convolution (core/ir/conv.h): the interpreter against the sum written out, types and refusals of
 * dc_infer, attributes. The seed is printed; argument 1 sets it.
 */
#include "core/eval/eval.h"
#include "core/ir/conv.h"
#include "core/ir/gtext.h"

#include <string.h>

#include "tests/t.h"
#include "tests/unit/convgen.h"

enum { ROUNDS = 400, MOST = 4096 };

static dc_job job;

static int64_t steps(int rank, const int64_t *dim, int64_t *step)
{
    int64_t n = 1;
    for (int i = rank - 1; i >= 0; i--) {
        step[i] = n;
        n *= dim[i];
    }
    return n;
}

/* One element of the result, as core/ir/conv.h says it. at: its batch, channel and position. */
static double element(const dc_conv *c, const int64_t *xd, const int64_t *wd, const double *x,
                      const double *w, const int64_t *at, int64_t result_batch)
{
    int64_t xs[DC_CONV_AXES], ws[DC_CONV_AXES], taps = 1;
    double sum = 0;
    steps(2 + c->n, xd, xs);
    steps(2 + c->n, wd, ws);
    for (int i = 0; i < c->n; i++)
        taps *= wd[c->kernel[2 + i]];
    const int64_t group = at[1] / (wd[c->kernel[0]] / (c->groups * c->batch_groups));
    for (int64_t channel = 0; channel < wd[c->kernel[1]]; channel++)
        for (int64_t k = 0; k < taps; k++) {
            const int64_t batch = at[0] + (c->batch_groups > 1 ? group * result_batch : 0);
            const int64_t from = channel + (c->groups > 1 ? group * wd[c->kernel[1]] : 0);
            int64_t xi = batch * xs[c->in[0]] + from * xs[c->in[1]], left = k;
            int64_t wi = at[1] * ws[c->kernel[0]] + channel * ws[c->kernel[1]];
            bool inside = true;
            for (int i = c->n - 1; i >= 0; i--) {
                const dc_conv_dim *d = &c->dim[i];
                const int64_t n = wd[c->kernel[2 + i]], tap = left % n;
                const int64_t p =
                    at[2 + i] * d->stride + (d->reversed ? n - 1 - tap : tap) * d->dilate - d->lo;
                left /= n;
                inside = inside && p >= 0 && p % d->dilate_in == 0 &&
                         p / d->dilate_in < xd[c->in[2 + i]];
                xi += p / d->dilate_in * xs[c->in[2 + i]];
                wi += tap * ws[c->kernel[2 + i]];
            }
            sum += inside ? x[xi] * w[wi] : 0;
        }
    return sum;
}

/* Small whole numbers: every sum is exact, whatever its order. */
static void fill(rng *r, int64_t n, double *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = rng_below(r, 9) - 4;
}

static void test_values(rng *r)
{
    static double x[MOST], w[MOST], y[MOST];
    for (int round = 0; round < ROUNDS; round++) {
        dc_conv c;
        int64_t xd[DC_CONV_AXES], wd[DC_CONV_AXES], step[DC_CONV_AXES];
        dc_module *m = dc_module_new();
        dc_func *f = dc_func_new(m, "f");
        convgen(r, &c, xd, wd);
        const dc_type xt = dc_type_make(DC_F64, 2 + c.n, xd),
                      wt = dc_type_make(DC_F64, 2 + c.n, wd);
        const dc_ref a = dc_graph_param(f, &xt, "x"), b = dc_graph_param(f, &wt, "w");
        const dc_ref out = dc_graph_conv(f, a, b, &c);
        const dc_node n = *dc_node_at(f, out);
        DC_PUSH(f->result, out);
        fill(r, dc_type_count(&xt), x);
        fill(r, dc_type_count(&wt), w);
        CHECK(dc_type_count(&xt) <= MOST && dc_type_count(&wt) <= MOST &&
              dc_node_count(&n) <= MOST);
        const void *in[2] = {x, w};
        CHECK_EQ(dc_eval(&job, f, DC_EVAL_ROUND, in, (void *const[]){y}), DC_OK);
        const int64_t count = steps(n.rank, n.dim, step);
        bool same = true;
        for (int64_t i = 0; i < count; i++) {
            int64_t at[DC_CONV_AXES];
            for (int k = 0; k < n.rank; k++)
                at[k] = i / step[c.out[k]] % n.dim[c.out[k]];
            same = same && y[i] == element(&c, xd, wd, x, w, at, n.dim[c.out[0]]);
        }
        CHECK(same);
        if (!same) {
            dc_text text = {0};
            dc_func_print(f, &text);
            printf("round %d\n%s", round, text.s);
            dc_text_free(&text);
        }
        dc_module_free(m);
    }
}

static void test_attributes(rng *r)
{
    for (int round = 0; round < ROUNDS; round++) {
        dc_conv c, back;
        int64_t xd[DC_CONV_AXES], wd[DC_CONV_AXES], attr[DC_CONV_ATTRS], again[DC_CONV_ATTRS];
        convgen(r, &c, xd, wd);
        const int n = dc_conv_write(&c, attr);
        CHECK(dc_conv_read(attr, n, &back));
        CHECK_EQ(dc_conv_write(&back, again), n);
        CHECK(memcmp(attr, again, (size_t)n * sizeof *attr) == 0);
        CHECK(!dc_conv_read(attr, n - 1, &back));
        attr[rng_below(r, n)] = rng_below(r, 2) ? INT64_MIN : INT64_MAX;
        CHECK(!dc_conv_read(attr, n, &back));
    }
}

/* The type of a plain convolution of two types, or what is wrong with them. */
static const char *refused(const char *x, const char *w, dc_conv c)
{
    static char text[300];
    dc_job own = {0};
    dc_type in[2], out;
    int64_t attr[DC_CONV_ATTRS];
    const char *from[2] = {x, w};
    dc_names *names = dc_names_new();
    for (int i = 0; i < 2; i++)
        CHECK_EQ(dc_type_parse(&own, names, &from[i], &in[i]), DC_OK);
    const int n = dc_conv_write(&c, attr);
    if (dc_infer(&own, DC_OP_CONV, in, 2, attr, n, NULL, &out) == DC_OK)
        dc_type_print(&out, text, sizeof text);
    else
        dc_err_render(&own.err, 1, text, sizeof text);
    dc_names_free(names);
    return text;
}

static dc_conv plain2(int64_t stride, int64_t pad, int64_t groups)
{
    dc_conv c = dc_conv_plain(2);
    c.groups = groups;
    for (int i = 0; i < 2; i++) {
        c.dim[i].stride = stride;
        c.dim[i].lo = c.dim[i].hi = pad;
    }
    return c;
}

static void test_types(void)
{
    CHECK_STR(refused("f32[n=8, 3, h=28, 28]", "f32[o=16, 3, 5, 5]", plain2(1, 2, 1)),
              "f32[n=8, o=16, 28, 28]");
    CHECK_STR(refused("f32[8, 3, 28, 28]", "f32[16, 3, 3, 3]", plain2(2, 1, 1)),
              "f32[8, 16, 14, 14]");
    CHECK_STR(refused("f32[8, 6, 4, 4]", "f32[4, 3, 3, 3]", plain2(1, 0, 2)), "f32[8, 4, 2, 2]");
    CHECK_STR(refused("f32[0, 3, 4, 4]", "f32[4, 3, 3, 3]", plain2(1, 0, 1)), "f32[0, 4, 2, 2]");
    CHECK_STR(refused("f32[8, 3, 28]", "f32[16, 3, 5, 5]", plain2(1, 0, 1)),
              "conv: f32[8, 3, 28] has 3 axes, 4 are needed");
    CHECK_STR(refused("f32[8, 3, 28, 28]", "f32[16, 1, 5, 5]", plain2(1, 0, 1)),
              "conv: channels differ: axis 2 = 3 against axis 2 = 1 of the kernel");
    CHECK_STR(refused("f32[8, 6, 28, 28]", "f32[4, 2, 5, 5]", plain2(1, 0, 2)),
              "conv: channels differ: axis 2 = 6 in 2 groups against axis 2 = 2 of the kernel");
    CHECK_STR(refused("f32[8, 3, 28, 28]", "f32[4, 1, 5, 5]", plain2(1, 0, 2)),
              "conv: axis 2 = 3 does not divide into 2 groups");
    CHECK_STR(refused("f32[8, 4, 28, 28]", "f32[5, 2, 5, 5]", plain2(1, 0, 2)),
              "conv: axis 1 = 5 does not divide into 2 groups");
    CHECK_STR(refused("f32[8, 3, 4, 28]", "f32[16, 3, 7, 7]", plain2(1, 1, 1)),
              "conv: axis 3: a window over 7 does not fit 4 with 1 and 1 of padding");
    CHECK_STR(refused("f32[8, 3, 4, 4]", "f32[16, 3, 3, 0]", plain2(1, 0, 1)),
              "conv: axis 4: a window over 0 does not fit 4 with 0 and 0 of padding");
    CHECK_STR(refused("f32[8, c=3, 4, 4]", "f32[4, d=3, 3, 3]", plain2(1, 0, 1)),
              "conv: axis 2: 'c' against 'd'");
    CHECK_STR(refused("f32[8, 3, 4, 4]", "f64[4, 3, 3, 3]", plain2(1, 0, 1)),
              "conv: dtypes differ: f32[8, 3, 4, 4] and f64[4, 3, 3, 3]");
    CHECK_STR(refused("bool[8, 3, 4, 4]", "bool[4, 3, 3, 3]", plain2(1, 0, 1)),
              "conv: bool[8, 3, 4, 4]: a number is needed");
    CHECK_STR(refused("f32[8, 3, 4, 4]", "f32[4, 3, 3, 3]", plain2(0, 0, 1)),
              "conv: these attributes are no convolution's");
}

int main(int argc, char **argv)
{
    rng r = {rng_seed(argc, argv, 1)};
    test_values(&r);
    test_attributes(&r);
    test_types();
    return t_done();
}
