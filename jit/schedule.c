/*
 * Schedules by rule (jit/schedule.h). Three sketches over the nests that lowering writes:
 *
 *   map      no reduction: the last axis in vectors.
 *   columns  a reduction whose operands are read along the last output axis n with stride 0 or 1:
 *            products, sums over leading axes. Tiles of m x n accumulators in registers, vectors
 *            along n, the reduction outside the tile.
 *   rows     a reduction read along its own last axis: partial sums in vectors, added up at the
 * end.
 *
 * Whatever fits none of them keeps its naive loops. A move that does not apply ends the sketch;
 * what was done before it stands, since every prefix is a schedule.
 */
#include "jit/schedule.h"

#include "jit/move.h"

#include <stdio.h>
#include <string.h>

enum { MAX_AXES = 2 * DC_MAX_RANK, ACCUMULATORS = 28, MAX_COLUMN_VECTORS = 4 };

typedef struct shape {                     /* of a naive nest */
    uint32_t out[MAX_AXES], red[MAX_AXES]; /* axes, outermost first */
    int nout, nred;
    const dc_stmt *add; /* the accumulation, NULL in a map */
} shape;

typedef struct sketch {
    dc_kernel *k;
    const dc_target *t;
    int lanes;
    const char *why;
} sketch;

static void read_reduction(const dc_kernel *k, const dc_stmt *first, shape *s)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_LOOP && k->axis.at[t->axis].reduce) {
            s->red[s->nred++] = t->axis;
            read_reduction(k, t->body, s);
        } else if (t->kind == DC_STMT_SET && t->reduces) {
            s->add = t;
        }
    }
}

static shape shape_of(const dc_kernel *k)
{
    shape s = {0};
    const dc_stmt *t = k->root;
    while (t != NULL && t->kind == DC_STMT_LOOP && !k->axis.at[t->axis].reduce) {
        s.out[s.nout++] = t->axis;
        t = t->body;
    }
    read_reduction(k, t, &s);
    return s;
}

static const char *name_of(const sketch *s, uint32_t axis)
{
    return s->k->axis.at[axis].name;
}

static int64_t extent_of(const sketch *s, uint32_t axis)
{
    return s->k->axis.at[axis].extent;
}

/* Smallest power of two >= n. */
static int64_t round_up_pow2(int64_t n)
{
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

/* How the loads below v move along an axis: which strides occur. */
typedef struct strides {
    bool zero, one, other;
} strides;

static void strides_of(const dc_kernel *k, dc_vx v, uint32_t axis, strides *s)
{
    const dc_vx_node *n = &k->vx.at[v];
    if (n->kind == DC_VX_LOAD && k->buf.at[n->buf].scope == DC_SCOPE_PARAM) {
        bool affine = true;
        const int64_t stride = dc_ix_stride(k, n->at, axis, &affine);
        s->zero |= affine && stride == 0;
        s->one |= affine && stride == 1;
        s->other |= !affine || (stride != 0 && stride != 1);
    }
    for (int i = 0; i < n->n; i++)
        strides_of(k, n->in[i], axis, s);
}

static bool do_grid(sketch *s)
{
    return s->k->root->kind != DC_STMT_LOOP ||
           dc_move_do(s->k, &s->why, "grid %s", name_of(s, s->k->root->axis));
}

/* map ---------------------------------------------------------------------------------------- */

static bool schedule_map(sketch *s, const shape *p)
{
    if (p->nout == 0)
        return true;
    const uint32_t n = p->out[p->nout - 1];
    const int64_t extent = extent_of(s, n);
    if (extent < 4)
        return do_grid(s);
    const int64_t lanes = extent < s->lanes ? round_up_pow2(extent) : s->lanes;
    char name[24];
    snprintf(name, sizeof name, "%s", name_of(s, n));
    return dc_move_do(s->k, &s->why, "split %s %lld", name, (long long)lanes) &&
           dc_move_do(s->k, &s->why, "vectorize %s.i", name) && do_grid(s);
}

/* columns ------------------------------------------------------------------------------------ */

/* Rows of a tile: the largest divisor of m within the registers, else 8 with a tail. */
static int64_t tile_rows(int64_t m, int64_t column_vectors)
{
    for (int64_t r = ACCUMULATORS / column_vectors; r >= 4; r--)
        if (m % r == 0)
            return r;
    return m < 8 ? m : 8;
}

static bool hoist_reduction(sketch *s, const char *const *red, int nred, const char *axis)
{
    for (int i = 0; i < nred; i++)
        if (!dc_move_do(s->k, &s->why, "reorder %s %s", red[i], axis))
            return false;
    return true;
}

static bool schedule_columns(sketch *s, const shape *p, bool reuse)
{
    dc_kernel *k = s->k;
    char n[24], m[24] = "";
    const char *red[MAX_AXES];
    char red_name[MAX_AXES][24];
    const int64_t extent = extent_of(s, p->out[p->nout - 1]);
    const int64_t lanes = extent < s->lanes ? round_up_pow2(extent) : s->lanes;
    const int64_t vectors = (extent + lanes - 1) / lanes;
    const bool tiled = reuse && p->nout >= 2;
    int64_t nv = dc_min_i64(vectors, tiled ? 2 : MAX_COLUMN_VECTORS);
    while (nv > 1 && vectors % nv != 0)
        nv--;

    snprintf(n, sizeof n, "%s", name_of(s, p->out[p->nout - 1]));
    for (int i = 0; i < p->nred; i++) {
        snprintf(red_name[i], sizeof red_name[i], "%s", name_of(s, p->red[i]));
        red[i] = red_name[i];
    }
    if (!dc_move_do(k, &s->why, "split %s %lld", n, (long long)(nv * lanes)))
        return false;
    if (tiled) {
        snprintf(m, sizeof m, "%s", name_of(s, p->out[p->nout - 2]));
        const int64_t rows = tile_rows(extent_of(s, p->out[p->nout - 2]), nv);
        if (!dc_move_do(k, &s->why, "split %s %lld", m, (long long)rows) ||
            !dc_move_do(k, &s->why, "reorder %s.o %s.i", n, m) ||
            !dc_move_do(k, &s->why, "reorder %s.o %s.o", n, m))
            return false;
    }
    char tile[32], rows[32];
    snprintf(tile, sizeof tile, "%s.i", n);
    snprintf(rows, sizeof rows, "%s.i", m);
    return hoist_reduction(s, red, p->nred, tile) &&
           (!tiled || hoist_reduction(s, red, p->nred, rows)) &&
           dc_move_do(k, &s->why, "split %s %lld", tile, (long long)lanes) &&
           dc_move_do(k, &s->why, "vectorize %s.i", tile) &&
           dc_move_do(k, &s->why, "unroll %s.o", tile) &&
           (!tiled || dc_move_do(k, &s->why, "unroll %s", rows)) && do_grid(s);
}

/* rows --------------------------------------------------------------------------------------- */

static bool schedule_rows(sketch *s, const shape *p)
{
    dc_kernel *k = s->k;
    char r[24];
    const uint32_t axis = p->red[p->nred - 1];
    const int64_t extent = extent_of(s, axis);
    int64_t parts = s->lanes;
    for (int64_t many = 4 * s->lanes; many > s->lanes; many /= 2)
        if (extent % many == 0) {
            parts = many;
            break;
        }
    snprintf(r, sizeof r, "%s", name_of(s, axis));
    if (!dc_move_do(k, &s->why, "split_reduce %s %lld", r, (long long)parts) ||
        !dc_move_do(k, &s->why, "split %s.i %d", r, s->lanes) ||
        !dc_move_do(k, &s->why, "vectorize %s.i.i", r) ||
        !dc_move_do(k, &s->why, "unroll %s.i.o", r))
        return false;
    if (parts == s->lanes)
        return dc_move_do(k, &s->why, "unroll %s.j", r) && do_grid(s);
    return dc_move_do(k, &s->why, "split_reduce %s.j %d", r, s->lanes) &&
           dc_move_do(k, &s->why, "vectorize %s.j.i", r) &&
           dc_move_do(k, &s->why, "unroll %s.j.o", r) &&
           dc_move_do(k, &s->why, "unroll %s.j.j", r) && do_grid(s);
}

static bool schedule_reduction(sketch *s, const shape *p)
{
    const dc_vx term = s->k->vx.at[p->add->put[0].value].in[1];
    if (p->nout > 0 && extent_of(s, p->out[p->nout - 1]) >= 4) {
        strides along = {0};
        strides_of(s->k, term, p->out[p->nout - 1], &along);
        if (along.one && !along.other)
            return schedule_columns(s, p, along.zero);
    }
    if (p->nred > 0 && extent_of(s, p->red[p->nred - 1]) >= 2 * s->lanes) {
        strides along = {0};
        strides_of(s->k, term, p->red[p->nred - 1], &along);
        if (along.one && !along.other)
            return schedule_rows(s, p);
    }
    return do_grid(s);
}

dc_status dc_schedule(dc_job *j, dc_kernel *k, const dc_target *t, int level)
{
    sketch s = {.k = k, .t = t, .lanes = t->vector_bytes / 4};
    const shape p = shape_of(k);
    if (level < 2)
        return DC_OK;
    const bool done = p.add == NULL ? schedule_map(&s, &p) : schedule_reduction(&s, &p);
    if (!done)
        dc_logf(j->log, DC_CH_KERNEL, "%s: schedule ends: %s", k->name, s.why);
    return DC_OK;
}
