/*
 * Schedules by rule (jit/schedule.h). Three sketches over the nests that lowering writes:
 *
 *   map      no reduction: the last axis in vectors.
 *   columns  a reduction whose operands are read along the last output axis n with stride 0 or 1:
 *            products, sums over leading axes. Tiles of m x n accumulators in registers, vectors
 *            along n, the reduction outside the tile.
 *   rows     a reduction read along one of its own axes: partial sums in vectors, added up at the
 *            end.
 *
 * Where no axis is read along memory, rows and columns are used with lanes that are apart in memory
 * (one scalar load each): arithmetic is still by vectors, and no sum waits for the one before. A
 * map does so only for costly operations. What is left keeps its naive loops. A move that does not
 * apply ends the sketch; what was done before it stands, since every prefix is a schedule.
 */
#include "jit/schedule.h"

#include "jit/move.h"
#include "jit/schedule_impl.h"

#include <stdio.h>
#include <string.h>

enum { OTHER_REGISTERS = 4, MAX_COLUMN_VECTORS = 4 };

typedef struct sketch {
    dc_kernel *k;
    const dc_target *t;
    int lanes;
    const char *why;
} sketch;

static void read_reduction(const dc_kernel *k, const dc_stmt *first, dc_shape *s)
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

dc_shape dc_shape_of(const dc_kernel *k)
{
    dc_shape s = {0};
    const dc_stmt *t = k->root;
    while (t != NULL && t->kind == DC_STMT_LOOP && t->next == NULL && !k->axis.at[t->axis].reduce) {
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
    bool zero, one, far, none; /* none: not affine */
} strides;

static strides strides_of(dc_kernel *k, dc_vx v, uint32_t axis)
{
    const dc_mark mark = dc_arena_mark(&k->arena);
    const bool *part = dc_vx_parts(k, &k->arena, v);
    strides s = {0};
    for (dc_vx i = 1; i <= v; i++) {
        const dc_vx_node *n = &k->vx.at[i];
        if (!part[i] || n->kind != DC_VX_LOAD || k->buf.at[n->buf].scope != DC_SCOPE_PARAM)
            continue;
        bool affine = true;
        const int64_t stride = dc_ix_stride(k, n->at, axis, &affine);
        s.zero |= affine && stride == 0;
        s.one |= affine && stride == 1;
        s.far |= affine && stride != 0 && stride != 1;
        s.none |= !affine;
    }
    dc_arena_rewind(&k->arena, mark);
    return s;
}

static bool do_grid(sketch *s)
{
    return s->k->root->kind != DC_STMT_LOOP ||
           dc_move_do(s->k, &s->why, "grid %s", name_of(s, s->k->root->axis));
}

/* map ---------------------------------------------------------------------------------------- */

static bool is_costly(const dc_kernel *k)
{
    for (uint32_t v = 1; v < k->vx.n; v++)
        if (k->vx.at[v].kind == DC_VX_OP &&
            (dc_op_row_of(k->vx.at[v].op)->flags & DC_OPF_COSTLY) != 0)
            return true;
    return false;
}

/* The last axis is too short for vectors: lanes along the one before, apart in memory. */
static bool schedule_short(sketch *s, const dc_shape *p)
{
    if (p->nout < 2 || extent_of(s, p->out[p->nout - 2]) < s->lanes || !is_costly(s->k))
        return do_grid(s);
    char m[24], n[24];
    snprintf(m, sizeof m, "%s", name_of(s, p->out[p->nout - 2]));
    snprintf(n, sizeof n, "%s", name_of(s, p->out[p->nout - 1]));
    return dc_move_do(s->k, &s->why, "split %s %d", m, s->lanes) &&
           dc_move_do(s->k, &s->why, "reorder %s %s.i", n, m) &&
           dc_move_do(s->k, &s->why, "vectorize %s.i", m) && do_grid(s);
}

static bool schedule_map(sketch *s, const dc_shape *p)
{
    if (p->nout == 0)
        return true;
    const uint32_t n = p->out[p->nout - 1];
    const int64_t extent = extent_of(s, n);
    if (extent < 4)
        return schedule_short(s, p);
    const int64_t lanes = extent < s->lanes ? round_up_pow2(extent) : s->lanes;
    char name[24];
    snprintf(name, sizeof name, "%s", name_of(s, n));
    return dc_move_do(s->k, &s->why, "split %s %lld", name, (long long)lanes) &&
           dc_move_do(s->k, &s->why, "vectorize %s.i", name) && do_grid(s);
}

/* columns ------------------------------------------------------------------------------------ */

/* Rows of a tile: the largest divisor of m within the registers, else as few tiles as they allow.
 */
static int64_t tile_rows(const sketch *s, int64_t m, int64_t column_vectors)
{
    const int64_t most = dc_max_i64(4, (s->t->vector_registers - OTHER_REGISTERS) / column_vectors);
    for (int64_t r = most; r >= 4; r--)
        if (m % r == 0)
            return r;
    const int64_t tiles = (m + most - 1) / most;
    return (m + tiles - 1) / tiles;
}

static bool hoist_reduction(sketch *s, const char *const *red, int nred, const char *axis)
{
    for (int i = 0; i < nred; i++)
        if (!dc_move_do(s->k, &s->why, "reorder %s %s", red[i], axis))
            return false;
    return true;
}

static bool schedule_columns(sketch *s, const dc_shape *p, strides along)
{
    dc_kernel *k = s->k;
    char n[24], m[24] = "";
    const char *red[DC_SHAPE_AXES];
    char red_name[DC_SHAPE_AXES][24];
    const int64_t extent = extent_of(s, p->out[p->nout - 1]);
    const int64_t lanes = extent < s->lanes ? round_up_pow2(extent) : s->lanes;
    const int64_t vectors = (extent + lanes - 1) / lanes;
    const bool tiled = along.zero && !along.far && p->nout >= 2;
    int64_t nv = dc_min_i64(vectors, along.far ? 1 : tiled ? 2 : MAX_COLUMN_VECTORS);
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
        const int64_t rows = tile_rows(s, extent_of(s, p->out[p->nout - 2]), nv);
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

static bool schedule_rows(sketch *s, uint32_t axis)
{
    dc_kernel *k = s->k;
    char r[24];
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

/* The innermost reduction axis worth vectors of partial sums, and how it is read; -1 if none is. */
static int row_axis(const sketch *s, const dc_shape *p, dc_vx term, bool far)
{
    int64_t terms = 1;
    for (int i = 0; i < p->nred; i++)
        terms *= extent_of(s, p->red[i]);
    for (int i = p->nred - 1; i >= 0 && terms >= 2 * s->lanes; i--) {
        const strides along = strides_of(s->k, term, p->red[i]);
        if (extent_of(s, p->red[i]) >= s->lanes && !along.none &&
            (far || (along.one && !along.far)))
            return i;
    }
    return -1;
}

/* Vectors along memory if there is an axis for it, else lanes that are apart in memory. */
static bool schedule_reduction(sketch *s, const dc_shape *p)
{
    const dc_vx term = s->k->vx.at[p->add->put[0].value].in[1];
    const int64_t columns = p->nout > 0 ? extent_of(s, p->out[p->nout - 1]) : 0;
    strides along = {.none = true};
    if (columns >= 2)
        along = strides_of(s->k, term, p->out[p->nout - 1]);
    if (along.one && !along.far && !along.none)
        return schedule_columns(s, p, along);
    for (int far = 0; far < 2; far++) {
        const int row = row_axis(s, p, term, far > 0);
        if (row >= 0)
            return schedule_rows(s, p->red[row]);
    }
    if (columns >= 4 && along.far && !along.none)
        return schedule_columns(s, p, along);
    return do_grid(s);
}

/* Bytes of the widest numbers that are computed, at least those of f32. */
static int widest(const dc_kernel *k)
{
    size_t bytes = 4;
    for (uint32_t v = 1; v < k->vx.n; v++)
        if (k->vx.at[v].kind == DC_VX_OP || k->vx.at[v].kind == DC_VX_LOAD)
            bytes =
                dc_dtype_size(k->vx.at[v].dtype) > bytes ? dc_dtype_size(k->vx.at[v].dtype) : bytes;
    return (int)bytes;
}

dc_status dc_schedule(dc_job *j, dc_kernel *k, const dc_target *t, int level)
{
    sketch s = {.k = k, .t = t, .lanes = (int)dc_max_i64(t->vector_bytes / widest(k), 1)};
    const dc_shape p = dc_shape_of(k);
    if (level < 2)
        return DC_OK;
    const bool done = t->simt         ? dc_schedule_simt(k, t, &p, &s.why)
                      : p.add == NULL ? schedule_map(&s, &p)
                                      : schedule_reduction(&s, &p);
    if (!done)
        dc_logf(j->log, DC_CH_KERNEL, "%s: schedule ends: %s", k->name, s.why);
    return DC_OK;
}
