/* Discrete Fourier transforms (core/ir/dft.h): radices, tables of factors, nodes. */
#include "core/ir/dft.h"

#include <math.h>

enum { CACHED = 1 << 15 }; /* numbers that stay in a core's cache, with a copy */

/* ---- radices --------------------------------------------------------------------------------- */

/*
 * Of a stage, by element, roughly: what is read and written, and additions for each factor. A radix above 16 keeps more
 * than the registers hold; where numbers do not stay in a cache, reading them once less is worth it.
 */
static double cost_of(int radix, bool cached)
{
    double cost = 8 + (radix > 16 ? (cached ? 1 : 0.25) * (radix - 16) : 0);
    for (int p = 2, rest = radix; rest > 1; p++)
        for (; rest % p == 0; rest /= p)
            cost += p == 2 ? 1 : p * 0.9;
    return cost;
}

typedef struct search {
    int at[DC_DFT_STAGES], best[DC_DFT_STAGES];
    int nbest;
    double least;
    int effort;
    bool cached;
} search;

/* Radices of rest, none larger than `most`. */
static void try_radices(search *s, int64_t rest, int most, int n, double cost)
{
    if (cost >= s->least || n == DC_DFT_STAGES || s->effort++ > 20000)
        return;
    if (rest == 1) {
        s->least = cost;
        s->nbest = n;
        for (int i = 0; i < n; i++)
            s->best[i] = s->at[i];
        return;
    }
    for (int r = most; r > 1; r--)
        if (rest % r == 0) {
            s->at[n] = r;
            try_radices(s, rest / r, r, n + 1, cost + cost_of(r, s->cached));
        }
}

/* The first one is the vectors' length in the second stage, so it is a multiple of 16 if one is. The product of the
   others is that of the first stage: of 4 16 and 8 16 both lengths are those of vectors. */
int dc_dft_radices(int64_t n, int radix[DC_DFT_STAGES])
{
    search s = {.least = INFINITY, .cached = n <= CACHED};
    int first = 0;
    radix[0] = 1;
    if (n == 1)
        return 1;
    try_radices(&s, n, DC_DFT_RADIX, 0, 0);
    for (int i = 0; i < s.nbest; i++)
        if (s.best[first] % 16 != 0 && s.best[i] % 16 == 0)
            first = i;
    if (s.nbest == 2 && s.best[first] == 16 && (s.best[!first] == 4 || s.best[!first] == 8))
        first = !first;
    for (int i = 0, to = 1; i < s.nbest; i++)
        radix[i == first ? 0 : to++] = s.best[i];
    return s.nbest;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static dc_ref op2(dc_func *f, dc_op op, dc_ref a, dc_ref b)
{
    return dc_graph_op2(f, op, a, b);
}

static dc_ref where(dc_func *f, dc_ref test, dc_ref yes, dc_ref no)
{
    return dc_graph_op3(f, DC_OP_WHERE, test, yes, no);
}

/* n - v where that is less than v; *is tells where. Of angles: seen from the other side. */
static dc_ref folded(dc_func *f, dc_ref v, int64_t n, dc_ref *is)
{
    *is = op2(f, DC_OP_LT, dc_graph_like(f, v, (double)n), op2(f, DC_OP_ADD, v, v));
    return where(f, *is, op2(f, DC_OP_SUB, dc_graph_like(f, v, (double)n), v), v);
}

/* Angles are whole numbers until they lie within an eighth of a turn, so that no large angle is rounded. */
void dc_graph_turns(dc_func *f, dc_dtype t, dc_ref v, int64_t n, dc_ref out[2])
{
    dc_ref below, left, steep;
    v = folded(f, v, n, &below);                       /* of 2 pi / n: to half a turn */
    v = folded(f, op2(f, DC_OP_ADD, v, v), n, &left);  /* of pi / n */
    v = folded(f, op2(f, DC_OP_ADD, v, v), n, &steep); /* of pi / 2n */
    const dc_ref x = dc_graph_cast(f, v, t);
    const dc_ref angle = op2(f, DC_OP_MUL, x, dc_graph_like(f, x, acos(-1) / 2 / (double)n));
    const dc_ref c = dc_graph_op1(f, DC_OP_COS, angle), s = dc_graph_op1(f, DC_OP_SIN, angle);
    out[0] = where(f, steep, s, c);
    out[1] = where(f, steep, c, s);
    out[0] = where(f, left, dc_graph_op1(f, DC_OP_NEG, out[0]), out[0]);
    out[1] = where(f, below, dc_graph_op1(f, DC_OP_NEG, out[1]), out[1]);
}

/* cos and sin of 2 pi p k / n, [r, m], n = r m. */
static void make_table(dc_func *f, dc_dtype t, int64_t r, int64_t m, dc_ref out[2])
{
    const int64_t n = r * m, rows = 0, columns = 1;
    const dc_type at = dc_type_make(n < (int64_t)1 << 28 ? DC_I32 : DC_I64, 2, (int64_t[]){r, m});
    const dc_ref v = op2(f, DC_OP_MUL, dc_graph_make(f, DC_OP_IOTA, NULL, 0, &rows, 1, &at),
                         dc_graph_make(f, DC_OP_IOTA, NULL, 0, &columns, 1, &at));
    dc_graph_turns(f, t, v, n, out);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

dc_ref dc_graph_dft(dc_func *f, dc_ref r, int axis, int sign)
{
    const dc_type t = dc_node_type(f, r);
    const int64_t attr[DC_DFT_ATTRS] = {axis, sign};
    int radix[DC_DFT_STAGES];
    dc_ref in[1 + 2 * DC_DFT_STAGES] = {r};
    int64_t m = t.dim[axis];
    int nin = 1;
    const int n = dc_dft_radices(m, radix);
    DC_ASSERT(n > 0, "no radices of %lld", (long long)m);
    for (int i = 0; i + 1 < n; i++, nin += 2) {
        m /= radix[i];
        make_table(f, (dc_dtype)t.dtype, radix[i], m, in + nin);
    }
    return dc_graph_make(f, DC_OP_DFT, in, nin, attr, DC_DFT_ATTRS, NULL);
}

bool dc_stage_read(const int64_t *attr, int rank, const int64_t *dim, dc_stage *out)
{
    int64_t n;
    *out = (dc_stage){.radix = attr[0],
                      .m = attr[1],
                      .s = attr[2],
                      .sign = attr[3] < 0 ? -1 : 1,
                      .from_planes = attr[4] != 0,
                      .to_planes = attr[5] != 0};
    if (rank != 4 || out->radix < 1 || out->radix > DC_DFT_RADIX || out->m < 1 || out->s < 1 ||
        !dc_mul_ok(out->radix, out->m, &n) || !dc_mul_ok(n, out->s, &n))
        return false;
    out->before = dim[0];
    out->after = dim[out->from_planes ? 3 : 2];
    return dim[out->from_planes ? 1 : 3] == 2 && dim[out->from_planes ? 2 : 1] == n;
}

dc_stage dc_stage_of(const dc_func *f, const dc_node *n)
{
    const dc_node *x = dc_node_at(f, n->in[0]);
    dc_stage s;
    if (!dc_stage_read(n->attr, x->rank, x->dim, &s))
        DC_BUG("a stage of another shape");
    return s;
}

void dc_stage_write(const dc_stage *s, int64_t attr[DC_STAGE_ATTRS])
{
    attr[0] = s->radix;
    attr[1] = s->m;
    attr[2] = s->s;
    attr[3] = s->sign;
    attr[4] = s->from_planes;
    attr[5] = s->to_planes;
}
