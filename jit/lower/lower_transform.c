/*
 * Lowering of whole transforms of rows (core/ir/dft.h): a work item takes its rows through all stages, from one local to
 * another, so that only the first stage reads memory and only the last one stores to it. There are two ways.
 *
 *   one row     stages have vectors along what their transforms have in common, where radices leave whole ones: of the
 *               first stage m, of the others s. Real and imaginary parts lie in planes of their own.
 *   a block     of as many rows as a vector has lanes, which is copied to a local that has the numbers of the rows side by
 *               side, and copied out at the end. Every access of a stage is a whole vector then, whatever the radices are,
 *               and factors are one number for a vector. The rows behind the last whole block are one of fewer rows.
 *               Where the axis is not the last one, rows lie side by side in memory, and nothing is copied.
 */
#include "jit/base/fft_rows.h"
#include "jit/lower/lower_fft.h"

#include <math.h>
#include <stdio.h>

typedef struct rows {
    lowering *w;
    const dc_node *node; /* its operand is [before, n, after, 2] */
    dc_line line;
    int64_t n, after;
    int64_t lanes;   /* rows of a whole block; 1: there are none */
    int64_t width;   /* of this block */
    dc_ix first;     /* number of its first row, of before times after */
    uint32_t buf[2]; /* locals */
    int parts;       /* loops so far, for their names */
    dc_stmt *stmt, **last;
} rows;

typedef enum memory { INPUT, OUTPUT, FIRST, SECOND } memory; /* the last two: locals */

static void append(rows *x, dc_stmt *s)
{
    *x->last = s;
    x->last = &s->next;
}

static void begin_loops(rows *x)
{
    x->parts++;
    dc_lower_forget(x->w);
}

static dc_ix loop(rows *x, const char *prefix, int64_t extent, nest *loops)
{
    char name[16];
    if (extent == 1)
        return dc_ix_const(x->w->k, 0);
    snprintf(name, sizeof name, "%s%d", prefix, x->parts);
    const uint32_t a = dc_axis_new(x->w->k, name, extent, false);
    loops->axis[loops->n++] = a;
    return dc_ix_axis(x->w->k, a);
}

/* The loop over the rows of a block. */
static dc_ix loop_beside(rows *x, nest *loops)
{
    char name[16];
    if (x->lanes == 1)
        return dc_ix_const(x->w->k, 0);
    snprintf(name, sizeof name, "v%d", x->parts);
    const uint32_t a = dc_axis_new(x->w->k, name, x->width, false);
    loops->axis[loops->n++] = a;
    return dc_ix_axis(x->w->k, a);
}

/* The innermost loop goes along vectors. */
static dc_stmt *wrap(rows *x, const nest *loops, dc_stmt *set)
{
    x->w->k->axis.at[loops->axis[loops->n - 1]].role = DC_ROLE_LANE;
    return dc_lower_wrap(x->w->k, loops, set);
}

/* Real or imaginary part of a number, in a local. */
static dc_ix place(const rows *x, dc_ix number, int part, dc_ix lane)
{
    dc_kernel *k = x->w->k;
    if (x->lanes == 1)
        return dc_ix_add(k, number, dc_ix_const(k, part * x->n));
    const dc_ix at = dc_ix_add(k, dc_ix_mul(k, number, 2), dc_ix_const(k, part));
    return dc_ix_add(k, dc_ix_mul(k, at, x->lanes), lane);
}

/* Where a part of a number of a row is in memory. */
static void position(const rows *x, dc_ix number, dc_ix part, dc_ix lane, dc_ix pos[4])
{
    dc_kernel *k = x->w->k;
    const bool is_last = x->after == 1;
    pos[0] = is_last ? dc_ix_add(k, x->first, lane) : dc_ix_div(k, x->first, x->after);
    pos[1] = number;
    pos[2] = is_last ? dc_ix_const(k, 0) : dc_ix_add(k, dc_ix_mod(k, x->first, x->after), lane);
    pos[3] = part;
}

static dc_ix linear(const rows *x, const dc_ix pos[4])
{
    dc_kernel *k = x->w->k;
    const int64_t dim[4] = {0, x->n, x->after, 2};
    dc_ix at = pos[0];
    for (int i = 1; i < 4; i++)
        at = dc_ix_add(k, dc_ix_mul(k, at, dim[i]), pos[i]);
    return at;
}

static dc_vx load(rows *x, memory from, dc_ix number, int part, dc_ix lane)
{
    dc_kernel *k = x->w->k;
    dc_ix pos[4];
    if (from != INPUT)
        return dc_vx_load(k, x->buf[from == SECOND], place(x, number, part, lane), (dc_pred){0});
    position(x, number, dc_ix_const(k, part), lane, pos);
    return dc_lower_node(x->w, x->node->in[0], pos);
}

static dc_put store(rows *x, memory to, dc_ix number, int part, dc_ix lane, dc_vx v)
{
    dc_ix pos[4];
    if (to != OUTPUT)
        return (dc_put){x->buf[to == SECOND], place(x, number, part, lane), v};
    position(x, number, dc_ix_const(x->w->k, part), lane, pos);
    return (dc_put){0, linear(x, pos), v};
}

/* A block from memory to a local, or the other way round. */
static void copy(rows *x, memory from, memory to)
{
    dc_kernel *k = x->w->k;
    nest loops = {0};
    dc_ix pos[4];
    begin_loops(x);
    const dc_ix j = loop(x, "j", 2 * x->n, &loops), lane = loop_beside(x, &loops);
    const dc_ix at = dc_ix_add(k, dc_ix_mul(k, j, x->lanes), lane);
    position(x, dc_ix_div(k, j, 2), dc_ix_mod(k, j, 2), lane, pos);
    dc_stmt *set = dc_stmt_set(k, 1);
    set->put[0] =
        from == INPUT
            ? (dc_put){x->buf[to == SECOND], at, dc_lower_node(x->w, x->node->in[0], pos)}
            : (dc_put){0, linear(x, pos), dc_vx_load(k, x->buf[from == SECOND], at, (dc_pred){0})};
    append(x, wrap(x, &loops, set));
}

/* Stage i: m times s transforms of length `radix`. */
static void stage(rows *x, int i, int radix, int64_t m, int64_t s, memory source, memory result)
{
    dc_kernel *k = x->w->k;
    dc_number v[DC_DFT_RADIX];
    nest loops = {0};
    begin_loops(x);
    const dc_ix p = loop(x, "p", m, &loops), q = loop(x, "q", s, &loops);
    const dc_ix lane = loop_beside(x, &loops);
    const dc_ix from = dc_ix_add(k, dc_ix_mul(k, p, s), q);
    const dc_ix to = dc_ix_add(k, dc_ix_mul(k, p, radix * s), q);
    for (int j = 0; j < radix; j++) {
        const dc_ix number = dc_ix_add(k, from, dc_ix_const(k, j * m * s));
        v[j].re = load(x, source, number, 0, lane);
        v[j].im = load(x, source, number, 1, lane);
    }
    dc_lower_butterfly(&x->line, radix, v);
    dc_stmt *set = dc_stmt_set(k, 2 * (uint32_t)radix);
    for (int j = 0; j < radix; j++) {
        if (m > 1 && j > 0) {
            const dc_ix at[2] = {dc_ix_const(k, j), p};
            const dc_vx c = dc_lower_node(x->w, x->node->in[1 + 2 * i], at);
            v[j] = dc_lower_twiddle(&x->line, v[j], c,
                                    dc_lower_node(x->w, x->node->in[2 + 2 * i], at));
        }
        const dc_ix number = dc_ix_add(k, to, dc_ix_const(k, j * s));
        set->put[2 * j] = store(x, result, number, 0, lane, v[j].re);
        set->put[2 * j + 1] = store(x, result, number, 1, lane, v[j].im);
    }
    append(x, wrap(x, &loops, set));
}

/* From row `first` on, so many times `width` rows. */
static dc_stmt *work(rows *x, int64_t first, int64_t count, int64_t width)
{
    dc_kernel *k = x->w->k;
    int radix[DC_DFT_STAGES];
    const int n = dc_dft_radices(x->n, radix);
    const bool block = x->lanes > 1 && x->after == 1;
    nest loops = {0};
    x->parts++;
    char name[16];
    snprintf(name, sizeof name, "b%d", x->parts);
    loops.axis[loops.n++] = dc_axis_new(k, name, count, false);
    dc_lower_set_role(k, &loops, DC_ROLE_ROW);
    x->first =
        dc_ix_add(k, dc_ix_mul(k, dc_ix_axis(k, loops.axis[0]), x->lanes), dc_ix_const(k, first));
    x->width = width;
    x->last = &x->stmt;
    if (block)
        copy(x, INPUT, FIRST);
    int64_t m = x->n, s = 1;
    for (int i = 0; i < n; i++) {
        m /= radix[i];
        stage(x, i, radix[i], m, s,
              i == 0 && !block ? INPUT
              : i % 2 == 0     ? FIRST
                               : SECOND,
              i == n - 1 && !block ? OUTPUT
              : i % 2 == 0         ? SECOND
                                   : FIRST);
        s *= radix[i];
    }
    if (block)
        copy(x, n % 2 == 0 ? FIRST : SECOND, OUTPUT);
    return dc_lower_wrap(k, &loops, x->stmt);
}

void dc_lower_transform(lowering *w, dc_ref r)
{
    dc_kernel *k = w->k;
    const dc_node *n = dc_node_at(w->fn, r);
    const dc_dtype t = (dc_dtype)n->dtype;
    const int64_t all = n->dim[0] * n->dim[2];
    rows x = {
        .w = w, .node = n, .line = {k, t, (int)n->attr[1]}, .n = n->dim[1], .after = n->dim[2]};
    x.lanes = dc_fft_rows(x.n, x.after, t);
    for (int i = 0; i < 2; i++)
        x.buf[i] = dc_buffer_new(k, i == 0 ? "rows0" : "rows1", t, 2 * x.n * x.lanes,
                                 DC_SCOPE_LOCAL, DC_MODE_OUT);
    const int64_t whole = all / x.lanes, rest = all % x.lanes;
    dc_stmt *tail = rest > 0 ? work(&x, whole * x.lanes, 1, rest) : NULL;
    k->root = whole > 0 ? work(&x, 0, whole, x.lanes) : tail;
    if (whole > 0)
        k->root->next = tail;
    k->flops = (int64_t)((double)(5 * all * x.n) * log2((double)x.n));
}
