/*
 * Products of warp groups (tiles wgmma_* of jit/nest/matrix_tiles.def). In a nest each thread has tiles of its own, a loop of
 * them along n. Where the threads of four warps have those of one product of 64 rows, the loop is one instruction:
 *
 *   warp w, lane 4 * i + j   rows 16 * w + i and 8 further on of a, columns 2 * j and 2 * j + 1 of every 8 of b
 *
 * Both operands are read from group memory, in atoms (swizzle_atoms of jit/moves/moves.def), rows along k or across it.
 * What is not so is left to flatten_tile.c. Products go on until a wait: at the end of their phase, or, in a loop that is
 * staged, in the next iteration (flatten_simt.c).
 */
#include "jit/flat/flatten_impl.h"
#include "jit/nest/matrix_tile.h"

enum { ROWS = 64, TERMS = 16, ATOM_ROWS = 8, WIDTH = 64 }; /* of 128 bytes of 16-bit floats */

/* A matrix in atoms: where its first element is, from there to the next row, m or n, and the next term. */
typedef struct matrix {
    uint32_t buf;
    dc_ix at;
    int64_t row, col;
    int64_t rows; /* that one instruction reads */
    bool turned;  /* rows of memory go along m or n */
} matrix;

/* The axis that counts warps: 32 threads to an iteration; those of four follow each other. */
static uint32_t warps_of(const flattener *l)
{
    for (uint32_t x = 0; x < l->k->axis.n; x++) {
        bool affine = true;
        if (dc_axis_is_thread(l->k->axis.at[x].kind) && l->k->axis.at[x].extent % 4 == 0 &&
            dc_ix_stride(l->k, l->thread_ix, x, &affine) == 32 && affine)
            return x;
    }
    return DC_NO_AXIS;
}

static bool is_zero(flattener *l, dc_ix a)
{
    int64_t c;
    return dc_ix_is_const(l->k, a, &c) && c == 0;
}

/* Does it begin in a first row of 8, at 16 terms; or, turned, at 16 rows of memory and 64 of m or n? */
static bool begins_atom(flattener *l, const matrix *x, int64_t n)
{
    const dc_ix rest = dc_ix_mod(l->k, x->at, (x->turned ? TERMS : ATOM_ROWS) * n);
    const int64_t reach = x->turned ? x->rows : TERMS;
    return fl_ix(l, rest)->lo >= 0 && fl_ix(l, rest)->hi + reach <= n &&
           is_zero(l, dc_ix_mod(l->k, rest, x->turned ? WIDTH : TERMS));
}

static bool is_in_atoms(flattener *l, matrix *x)
{
    const dc_buffer *b = &l->k->buf.at[x->buf];
    const int64_t n = b->swizzle;
    x->turned = x->col != 1;
    if (!b->atoms || l->b->f->buf.at[x->buf].scope != DC_SCOPE_GROUP ||
        (x->turned ? x->row != 1 || x->col != n : x->row != n))
        return false;
    for (uint32_t a = 0; a < l->k->axis.n; a++) /* all of a warp begin by the same one */
        if (dc_axis_is_thread(l->k->axis.at[a].kind) && dc_ix_uses(l->k, x->at, a) &&
            a != warps_of(l))
            return false;
    return begins_atom(l, x, n);
}

/* 64 rows of a from that of the first of four warps on, and all columns of b. */
static bool find_matrices(flattener *l, const dc_stmt *loop, matrix *a, matrix *b)
{
    const dc_tile *t = loop->body->tile;
    const uint32_t i = l->inner[0], j = l->inner[1], w = warps_of(l);
    *a = (matrix){.buf = t->a.buf, .at = t->a.at, .row = t->a.row / 8, .col = t->a.col};
    *b = (matrix){.buf = t->b.buf, .at = t->b.at, .row = t->b.col, .col = t->b.row};
    a->rows = ROWS;
    b->rows = 8 * l->k->axis.at[loop->axis].extent;
    if (w == DC_NO_AXIS || t->a.row % 8 != 0 || !dc_flatten_without(l, &a->at, i, a->row) ||
        !dc_flatten_without(l, &a->at, j, 0) || !dc_flatten_without(l, &a->at, loop->axis, 0) ||
        !dc_flatten_without(l, &a->at, w, 16 * a->row) ||
        !dc_flatten_without(l, &b->at, j, 2 * b->row) || !dc_flatten_without(l, &b->at, i, 0) ||
        !dc_flatten_without(l, &b->at, w, 0) ||
        !dc_flatten_without(l, &b->at, loop->axis, 8 * b->row))
        return false;
    const dc_ix group = dc_ix_div(l->k, dc_ix_axis(l->k, w), 4);
    a->at = dc_ix_add(l->k, a->at, dc_ix_mul(l->k, group, ROWS * a->row));
    return is_in_atoms(l, a) && is_in_atoms(l, b);
}

/* Tiles of a thread beside each other, in numbers of it alone. */
static bool find_sums(flattener *l, const dc_stmt *loop, dc_ix *at)
{
    const dc_tile_operand *c = &loop->body->tile->c;
    int64_t place;
    *at = c->at;
    if (l->row[c->buf] != ROW_PRIVATE || c->row != 2 || c->col != 1 ||
        !dc_flatten_without(l, at, loop->axis, 4))
        return false;
    for (uint32_t x = 0; x < l->k->axis.n; x++) { /* loops that are repeated have a number here */
        const bind *b = &l->bind[x];
        if (b->kind == BIND_CONST && dc_ix_uses(l->k, *at, x)) {
            bool affine = true;
            const int64_t step = dc_ix_stride(l->k, *at, x, &affine);
            if (!affine || !dc_flatten_without(l, at, x, step))
                return false;
            *at = dc_ix_add(l->k, *at, dc_ix_const(l->k, step * b->c));
        }
    }
    *at = dc_flatten_place(l, c->buf, *at);
    return dc_ix_is_const(l->k, *at, &place) && place >= 0;
}

static bool is_product(const flattener *l, const dc_stmt *loop)
{
    const dc_stmt *s = loop->body;
    if (loop->kind != DC_STMT_LOOP || s == NULL || s->next != NULL || s->kind != DC_STMT_TILE ||
        !dc_tile_by_warpgroups(s->tile->which) || s->pred.n != 0)
        return false;
    const int64_t n = 8 * l->k->axis.at[loop->axis].extent;
    const uint32_t i = l->inner[0], j = l->inner[1];
    return (n == 64 || n == 128 || n == 256) && !l->divided && l->active == 0 && i != DC_NO_AXIS &&
           l->k->axis.at[i].extent == 8 && l->k->axis.at[j].extent == 4 && l->warp == 32 &&
           l->threads % 128 == 0;
}

static dc_fv put_matrix(flattener *l, const matrix *x)
{
    const dc_buffer *b = &l->k->buf.at[x->buf];
    const int64_t leading = b->count / b->swizzle * WIDTH * 2; /* bytes */
    const dc_ix place = dc_flatten_place(l, x->buf, x->at);
    return dc_fb_mem(l->b, &(dc_finst){.op = DC_K_MATRIX,
                                       .lanes = 1,
                                       .imm = x->turned ? (uint64_t)leading : 0,
                                       .buf = x->buf,
                                       .align = 2,
                                       .in = {dc_flatten_scalar_index(l, place)}});
}

/* Of what is added to, the wait will be told. */
static bool note_sum(fl_products *p, uint32_t buf, uint64_t at, uint16_t lanes)
{
    for (int n = 0; n < p->n; n++)
        if (p->sum[n].buf == buf && p->sum[n].at == at)
            return p->sum[n].lanes == lanes;
    if (p->n == DC_COUNTOF(p->sum))
        return false;
    p->sum[p->n].buf = buf;
    p->sum[p->n].at = at;
    p->sum[p->n++].lanes = lanes;
    return true;
}

bool dc_flatten_wgmma(flattener *l, const dc_stmt *loop)
{
    matrix a, b;
    dc_ix at;
    int64_t place = 0;
    if (!is_product(l, loop) || !find_sums(l, loop, &at) || !find_matrices(l, loop, &a, &b))
        return false;
    const uint16_t lanes = (uint16_t)(4 * l->k->axis.at[loop->axis].extent);
    const uint32_t sums = loop->body->tile->c.buf;
    dc_ix_is_const(l->k, at, &place);
    if (!note_sum(&l->products, sums, (uint64_t)place, lanes))
        return false;
    dc_finst mem = {.op = DC_K_WGMMA,
                    .lanes = lanes,
                    .imm = l->products.last == 0 ? DC_WGMMA_BEGIN : 0,
                    .buf = sums,
                    .align = 4};
    mem.in[0] = dc_fb_const(l->b, DC_INDEX, 1, (uint64_t)place);
    mem.in[1] = put_matrix(l, &a);
    mem.in[2] = put_matrix(l, &b);
    l->products.last = dc_fb_mem(l->b, &mem);
    return true;
}

void dc_flatten_wgmma_wait(flattener *l, int groups)
{
    fl_products *p = &l->products;
    if (p->last != 0)
        l->b->f->inst.at[p->last].imm |= DC_WGMMA_END;
    p->last = 0;
    for (int n = 0; n < p->n; n++)
        dc_fb_mem(l->b, &(dc_finst){.op = DC_K_WGMMA_WAIT,
                                    .lanes = p->sum[n].lanes,
                                    .imm = (uint64_t)groups,
                                    .buf = p->sum[n].buf,
                                    .align = 4,
                                    .in = {dc_fb_const(l->b, DC_INDEX, 1, p->sum[n].at)}});
    if (groups == 0)
        p->n = 0;
}

bool dc_flatten_only_wgmma(const flattener *l, const dc_stmt *first)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next)
        if (s->kind == DC_STMT_SET ||
            (s->kind == DC_STMT_TILE ? !dc_tile_by_warpgroups(s->tile->which)
                                     : !dc_flatten_only_wgmma(l, s->body)))
            return false;
    return first != NULL;
}
