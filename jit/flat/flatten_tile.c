/*
 * Flattening of matrix instructions (jit/nest/matrix_tiles.def). In a nest each thread has a tile of its own. Those of 32
 * lanes, 8 by 4 of them, whose rows and columns are dealt out to them in turn, are one product of larger matrices:
 *
 *   lane 4 * i + j   rows i and i + 8 of a, columns 2 * j and 2 * j + 1 of b, c where they meet
 *
 * Over 32 bytes of k. That is what `mma` computes of matrices that `ldmatrix` has loaded. Elsewhere, and where a target has no such
 * instructions, the tile is arithmetic.
 */
#include "jit/flat/flatten_impl.h"
#include "jit/nest/matrix_tile.h"

#include <string.h>

/* Arithmetic ---------------------------------------------------------------------------------- */

static dc_finst tile_access(flattener *l, dc_kop op, const dc_tile_operand *o, int64_t row,
                            int64_t col)
{
    const dc_ix add = dc_ix_const(l->k, row * o->row + col * o->col);
    const dc_ix at = dc_flatten_place(l, o->buf, dc_ix_add(l->k, o->at, add));
    return (dc_finst){.op = (uint8_t)op,
                      .lanes = 1,
                      .imm = 1,
                      .buf = o->buf,
                      .align = (uint16_t)dc_dtype_size(l->k->buf.at[o->buf].dtype),
                      .in = {dc_flatten_scalar_index(l, at)}};
}

static dc_fv tile_load(flattener *l, const dc_tile_operand *o, int64_t row, int64_t col)
{
    const dc_finst mem = tile_access(l, DC_K_LOAD, o, row, col);
    return dc_fb_mem(l->b, &mem);
}

/* To the nearest TF32, as dc_tf32_bits does. */
static dc_fv round_tf32(dc_fbuild *b, dc_fv v)
{
    const dc_fv bits = dc_fb_bitcast(b, v, DC_U32);
    const dc_fv up = dc_fb_op2(b, DC_K_ADD, bits, dc_fb_const(b, DC_U32, 1, 0x1000));
    const dc_fv cut = dc_fb_op2(b, DC_K_AND, up, dc_fb_const(b, DC_U32, 1, 0xffffe000));
    return dc_fb_op3(b, DC_K_SELECT, dc_fb_op2(b, DC_K_EQ, v, v), dc_fb_bitcast(b, cut, DC_F32), v);
}

/* A factor in the type of the sums. */
static dc_fv tile_factor(flattener *l, const dc_tile_operand *o, int64_t row, int64_t col,
                         const dc_tile_row *of)
{
    const dc_fv v = tile_load(l, o, row, col);
    if (dc_tile_rounds(of))
        return round_tf32(l->b, v);
    return of->ab == of->c ? v : dc_expand(l->b, DC_OP_CAST, (dc_dtype)of->c, &v);
}

/* Sums over k in order, for all m x n at once. */
static void tile_arithmetic(flattener *l, const dc_tile *t)
{
    const dc_tile_row *row = dc_tile_row_of(t->which);
    dc_fv *c = DC_NEW_ARRAY(&l->j->scratch, dc_fv, (size_t)(row->m * row->n));
    dc_fv *b = DC_NEW_ARRAY(&l->j->scratch, dc_fv, (size_t)row->n);
    for (int i = 0; i < row->m; i++)
        for (int n = 0; n < row->n; n++)
            c[i * row->n + n] = tile_load(l, &t->c, i, n);
    for (int k = 0; k < row->k; k++) {
        for (int n = 0; n < row->n; n++)
            b[n] = tile_factor(l, &t->b, k, n, row);
        for (int i = 0; i < row->m; i++) {
            const dc_fv a = tile_factor(l, &t->a, i, k, row);
            for (int n = 0; n < row->n; n++) {
                const dc_fv term = dc_fb_op2(l->b, DC_K_MUL, a, b[n]);
                c[i * row->n + n] = dc_fb_op2(l->b, DC_K_ADD, c[i * row->n + n], term);
            }
        }
    }
    for (int i = 0; i < row->m; i++)
        for (int n = 0; n < row->n; n++) {
            dc_finst mem = tile_access(l, DC_K_STORE, &t->c, i, n);
            mem.in[1] = c[i * row->n + n];
            dc_fb_mem(l->b, &mem);
        }
}

/* Lanes --------------------------------------------------------------------------------------- */

/* A matrix in group memory: where its first element is, from there to the next row and column of it. */
typedef struct matrix {
    uint32_t buf;
    dc_ix at;
    int64_t row, col;
} matrix;

bool dc_flatten_without(flattener *l, dc_ix *at, uint32_t axis, int64_t step)
{
    bool affine = true;
    if (dc_ix_stride(l->k, *at, axis, &affine) != step || !affine)
        return false;
    *at = dc_ix_add(l->k, *at, dc_ix_mul(l->k, dc_ix_axis(l->k, axis), -step));
    return true;
}

/* Elements of a row of 16 bytes. */
static int64_t row_elements(const flattener *l, const matrix *x)
{
    return 16 / (int64_t)dc_dtype_size((dc_dtype)l->k->buf.at[x->buf].dtype);
}

/* Are rows of it in memory, 16 bytes each, or, if it is transposed, columns? */
static bool has_rows(const flattener *l, const matrix *x, bool *transposed)
{
    const int64_t elements = row_elements(l, x);
    *transposed = x->col != 1;
    return (x->col == 1 || (x->row == 1 && elements == 8)) &&
           l->b->f->buf.at[x->buf].scope == DC_SCOPE_GROUP &&
           (*transposed ? x->col : x->row) % elements == 0 &&
           dc_flatten_align(l, x->at, x->buf) >= 16;
}

/*
 * count matrices of 8 rows of a larger one, the next one 8 rows further on, the third 16 bytes of columns. Lane
 * 8 * q + r says where row r of matrix q is.
 */
static dc_fv load_matrices(flattener *l, const matrix *x, int how, int count, bool down)
{
    const int64_t elements = row_elements(l, x);
    const bool transposed = how == 1;
    dc_kernel *k = l->k;
    const dc_ix i = dc_ix_axis(k, l->inner[0]), j = dc_ix_axis(k, l->inner[1]);
    const dc_ix r = dc_ix_add(k, dc_ix_mul(k, dc_ix_mod(k, i, 2), 4), j);
    const dc_ix odd = dc_ix_mod(k, dc_ix_div(k, i, 2), 2), high = dc_ix_div(k, i, 4);
    const int64_t below = 8 * x->row, beside = elements * x->col;
    const int64_t next = down ? below : beside, third = down ? beside : below;
    dc_ix at = dc_ix_add(k, x->at, dc_ix_mul(k, r, transposed ? x->col : x->row));
    at = dc_ix_add(k, at, dc_ix_mul(k, odd, next));
    if (count == 4)
        at = dc_ix_add(k, at, dc_ix_mul(k, high, third));
    const dc_finst mem = {.op = DC_K_LDMATRIX,
                          .lanes = (uint16_t)(elements / 4 * count),
                          .imm = (uint64_t)how,
                          .buf = x->buf,
                          .align = 16,
                          .in = {dc_flatten_scalar_index(l, dc_flatten_place(l, x->buf, at))}};
    for (fl_matrix *h = l->held; h != NULL; h = h->next)
        if (h->buf == x->buf && h->index == mem.in[0] && h->since == l->b->since && h->how == how)
            return h->v;
    fl_matrix *h = DC_NEW(&l->k->arena, fl_matrix);
    *h = (fl_matrix){l->held, x->buf, mem.in[0], l->b->since, dc_fb_mem(l->b, &mem), how};
    l->held = h;
    return h->v;
}

/* Do 32 lanes have the tiles of one product? Then it is made. */
static bool by_lanes(flattener *l, const dc_tile *t)
{
    const dc_tile_row *row = dc_tile_row_of(t->which);
    const uint32_t i = l->inner[0], j = l->inner[1];
    bool turned_a, turned_b;
    if (!l->matrices || l->divided || strcmp(row->dialect, "cuda") != 0 || i == DC_NO_AXIS ||
        l->k->axis.at[i].extent != 8 || l->k->axis.at[j].extent != 4 || l->warp != 32 ||
        l->threads % 32 != 0 || l->row[t->c.buf] != ROW_PRIVATE || t->c.row != 2 || t->c.col != 1)
        return false;
    matrix a = {t->a.buf, t->a.at, t->a.row / 8, t->a.col};
    matrix b = {t->b.buf, t->b.at, t->b.col, t->b.row}; /* transposed: a row for each column */
    if (t->a.row % 8 != 0 || !dc_flatten_without(l, &a.at, i, a.row) ||
        !dc_flatten_without(l, &a.at, j, 0) || !dc_flatten_without(l, &b.at, j, 2 * b.row) ||
        !dc_flatten_without(l, &b.at, i, 0) || !has_rows(l, &a, &turned_a) ||
        !has_rows(l, &b, &turned_b))
        return false;
    const dc_ix place = dc_flatten_place(l, t->c.buf, t->c.at);
    dc_finst mem = {.op = DC_K_LOAD,
                    .lanes = 4,
                    .imm = 1,
                    .buf = t->c.buf,
                    .align = dc_flatten_align(l, place, t->c.buf),
                    .in = {dc_flatten_scalar_index(l, place)}};
    const int rounds = dc_tile_rounds(row) ? 2 : 0;
    const dc_fv left = load_matrices(l, &a, turned_a ? 1 : rounds, 4, true);
    const dc_fv right = load_matrices(l, &b, turned_b ? 1 : rounds, 2, false);
    mem.in[1] = dc_fb_mma(l->b, left, right, dc_fb_mem(l->b, &mem));
    mem.op = DC_K_STORE;
    dc_fb_mem(l->b, &mem);
    return true;
}

void dc_flatten_tile(flattener *l, const dc_stmt *s)
{
    const dc_mark mark = dc_arena_mark(&l->j->scratch);
    l->now++;
    l->exchanged = NULL;
    l->products.others++;
    dc_flatten_wgmma_wait(l, 0);
    const cond c = dc_flatten_cond(l, s->pred);
    if (!c.never && !fl_is_full(l)) {
        const dc_fv when = dc_flatten_both(l, l->active, c.all);
        if (c.lane != 0)
            DC_BUG("%s: a matrix instruction by lanes", l->k->name);
        if (when != 0)
            dc_fb_if(l->b, when);
        if (when != 0 || !by_lanes(l, s->tile))
            tile_arithmetic(l, s->tile);
        if (when != 0)
            dc_fb_end(l->b);
    }
    dc_arena_rewind(&l->j->scratch, mark);
}
