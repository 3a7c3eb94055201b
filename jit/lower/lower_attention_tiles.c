/* Tiles of attention (lower_attention.c): loops, what operands have where, and contractions of tiles, patch by patch. */
#include "jit/lower/lower_attention_impl.h"

#include <stdio.h>

/* ---- loops and locals ------------------------------------------------------------------------- */

void dc_attend_append(attending *x, dc_stmt *s)
{
    *x->last = s;
    while (*x->last != NULL)
        x->last = &(*x->last)->next;
}

dc_ix dc_attend_loop(attending *x, const char *prefix, int64_t extent, dc_role role, bool reduce,
                     nest *loops)
{
    char name[16];
    dc_kernel *k = x->w->k;
    snprintf(name, sizeof name, "%s%u", prefix, ++x->loops);
    const uint32_t a = dc_axis_new(k, name, extent, reduce);
    k->axis.at[a].role = role;
    loops->axis[loops->n++] = a;
    return dc_ix_axis(k, a);
}

dc_ix dc_attend_lanes(attending *x, nest *loops)
{
    dc_lower_forget(x->w);
    return x->w->lane = dc_attend_loop(x, "v", WIDTH, DC_ROLE_LANE, false, loops);
}

uint32_t dc_attend_local(attending *x, const char *name, int64_t rows)
{
    char full[16];
    snprintf(full, sizeof full, "%s%u", name, x->w->k->buf.n);
    return dc_buffer_new(x->w->k, full, kind_of(x), rows * WIDTH, DC_SCOPE_LOCAL, DC_MODE_OUT);
}

void dc_attend_stands_in(attending *x, dc_ref r, uint32_t buf, bool by_row)
{
    lower_fact *f = dc_lower_fact(x->w, r);
    f->buf = buf;
    f->is_local = true;
    f->is_row = by_row;
}

void dc_attend_leaves(attending *x, dc_ref r)
{
    lower_fact *f = dc_lower_fact(x->w, r);
    f->is_local = f->is_row = false;
    f->buf = DC_NO_BUF;
}

/* ---- positions -------------------------------------------------------------------------------- */

/* Of an element of the weights. */
static void at_weights(const attending *x, dc_ix row, dc_ix term, dc_ix *pos)
{
    for (int i = 0; i < x->weights->rank; i++)
        pos[i] = x->batch[i];
    pos[x->a->x] = row;
    pos[x->a->y] = term;
}

dc_vx dc_attend_element(attending *x, dc_ref r, dc_ix term, dc_ix lane)
{
    dc_ix at[DC_MAX_RANK], pos[DC_MAX_RANK];
    const dc_ix row = plus(x, x->first_row, lane);
    x->w->column = place(x, term, lane);
    x->w->guard = is_row(x, row);
    at_weights(x, row, plus(x, x->first_term, term), at);
    dc_lower_at(x->w, dc_node_at(x->w->fn, r), x->weights->rank, x->weights->dim, at, pos);
    const dc_vx v = dc_lower_cast(x->w, dc_lower_node(x->w, r, pos), kind_of(x));
    x->w->guard = (dc_pred){0};
    return v;
}

dc_vx dc_attend_operand(attending *x, dc_ref dot, bool of_rows, dc_ix at, dc_ix c)
{
    const dc_node *n = dc_node_at(x->w->fn, dot);
    const dc_dot d = dc_dot_of(x->w->fn, n);
    const int left = x->a->x == x->weights->rank - 2 ? 0 : 1, side = of_rows ? left : 1 - left;
    dc_ix pos[DC_MAX_RANK];
    for (int i = 0; i < d.nbatch; i++)
        pos[d.batch[side][i]] = x->batch[i];
    pos[d.free[side][0]] = at;
    pos[d.contract[side][0]] = c;
    x->w->guard = of_rows ? is_row(x, at) : (dc_pred){0};
    const dc_vx v = dc_lower_cast(x->w, dc_lower_node(x->w, n->in[side], pos), kind_of(x));
    x->w->guard = (dc_pred){0};
    return v;
}

dc_ix dc_attend_batch(const attending *x, const dc_dot *d, int i, int k)
{
    const bool is_part = i == x->a->n && x->a->parts > 0 && k == d->nbatch - 1;
    return is_part ? x->part : x->batch[d->batch[0][k]];
}

dc_vx dc_attend_value_of(attending *x, int i, dc_ix at, dc_ix column)
{
    const dc_node *n = dc_node_at(x->w->fn, x->a->dot[i]);
    const dc_dot d = dc_dot_of(x->w->fn, n);
    const bool in_parts = i == x->a->n && x->a->parts > 0;
    dc_ix pos[DC_MAX_RANK];
    for (int k = 0; k < d.nbatch; k++)
        pos[d.batch[1][k]] = dc_attend_batch(x, &d, i, k);
    pos[d.contract[1][0]] = in_parts ? row_of_part(x, at) : at;
    pos[d.free[1][0]] = column;
    return dc_lower_cast(x->w, dc_lower_node(x->w, n->in[1], pos), kind_of(x));
}

int64_t dc_attend_features_of(const attending *x, dc_ref dot)
{
    const dc_node *n = dc_node_at(x->w->fn, dot);
    const dc_dot d = dc_dot_of(x->w->fn, n);
    return dc_node_at(x->w->fn, n->in[0])->dim[d.contract[0][0]];
}

int64_t dc_attend_columns_of(const attending *x, int i)
{
    const dc_node *n = dc_node_at(x->w->fn, x->a->dot[i]);
    return n->dim[n->rank - 1];
}

/* ---- contractions ----------------------------------------------------------------------------- */

/* So many strips of one size, from a first element on. */
typedef struct strips {
    int64_t first, count, size;
} strips;

/* Those of a size, then what is left. */
static int strips_of(int64_t all, int64_t size, strips out[2])
{
    int n = 0;
    if (all >= size)
        out[n++] = (strips){0, all / size, size};
    if (all % size > 0)
        out[n++] = (strips){all / size * size, 1, all % size};
    return n;
}

int64_t dc_attend_strip_of(int64_t all)
{
    for (int64_t n = STRIP; n >= 4; n--)
        if (all % n == 0)
            return n;
    return STRIP;
}

static dc_ix first_of(attending *x, const strips *s, nest *loops)
{
    dc_kernel *k = x->w->k;
    const dc_ix first = dc_ix_const(k, s->first);
    return s->count == 1
               ? first
               : plus(x, first,
                      dc_ix_mul(k, dc_attend_loop(x, "s", s->count, DC_ROLE_NONE, false, loops),
                                s->size));
}

void dc_attend_lanes_of(attending *x, const patch *p, nest *loops, dc_ix *here, dc_ix *there)
{
    dc_lower_forget(x->w);
    *here = dc_attend_loop(x, "v", p->rows, DC_ROLE_LANE, false, loops);
    *there = plus(x, p->row, *here);
}

/* Its sums begin with zeros, or what stands in a local; or they go there. */
static void move_sums(attending *x, const patch *p, uint32_t buf, bool begin)
{
    nest loops = {0};
    dc_ix v, lane;
    const dc_ix i = dc_attend_loop(x, "i", p->size, DC_ROLE_M, false, &loops);
    dc_attend_lanes_of(x, p, &loops, &v, &lane);
    const dc_ix there = place(x, plus(x, p->first, i), lane);
    const dc_ix here = plus(x, dc_ix_mul(x->w->k, i, x->lanes), v);
    dc_stmt *body = !begin             ? set(x, buf, there, load(x, x->strip, here))
                    : buf == DC_NO_BUF ? set(x, x->strip, here, number(x, 0))
                                       : set(x, x->strip, here, load(x, buf, there));
    dc_attend_append(x, dc_lower_wrap(x->w->k, &loops, body));
}

/* sums[i] += operand(i, c) * vectors[c] over c. */
static void add_products(attending *x, const patch *p, int64_t terms, uint32_t vectors, int inner,
                         int out)
{
    nest loops = {0};
    dc_ix v, lane;
    const dc_ix c = dc_attend_loop(x, "k", terms, DC_ROLE_K, true, &loops);
    const dc_ix i = dc_attend_loop(x, "i", p->size, DC_ROLE_M, false, &loops);
    dc_attend_lanes_of(x, p, &loops, &v, &lane);
    const dc_ix at = plus(x, p->first, i), here = plus(x, dc_ix_mul(x->w->k, i, x->lanes), v);
    const dc_vx a =
        inner >= 0 ? dc_attend_operand(x, x->a->inner[inner], false, plus(x, x->first_term, at), c)
                   : dc_attend_value_of(x, out, plus(x, x->first_term, c), at);
    const dc_vx product = op2(x, DC_OP_MUL, a, load(x, vectors, place(x, c, lane)));
    dc_stmt *body = set(x, x->strip, here, op2(x, DC_OP_ADD, load(x, x->strip, here), product));
    body->reduces = true;
    dc_attend_append(x, dc_lower_wrap(x->w->k, &loops, body));
}

static void contract_patch(attending *x, const patch *p, int inner, int out)
{
    if (inner >= 0) {
        move_sums(x, p, DC_NO_BUF, true);
        add_products(x, p, dc_attend_features_of(x, x->a->inner[inner]), x->rows[inner], inner, -1);
        move_sums(x, p, x->tile[inner], false);
    } else {
        move_sums(x, p, x->total[out], true);
        add_products(x, p, x->height, x->weight[out], -1, out);
        move_sums(x, p, x->total[out], false);
    }
}

void dc_attend_patches(attending *x, int64_t all, int64_t rows,
                       void (*f)(attending *x, const patch *p, int inner, int out), int inner,
                       int out)
{
    strips part[2], side[2];
    const int n = strips_of(all, dc_attend_strip_of(all), part);
    const int m = strips_of(rows, x->lanes, side);
    for (int i = 0; i < n * m; i++) {
        const strips *a = &part[i / m], *b = &side[i % m];
        nest outer = {0};
        dc_stmt *body = NULL, **last = x->last;
        const dc_ix first = first_of(x, a, &outer);
        const patch p = {first, first_of(x, b, &outer), a->size, b->size};
        x->last = &body;
        f(x, &p, inner, out);
        x->last = last;
        dc_attend_append(x, dc_lower_wrap(x->w->k, &outer, body));
    }
}

void dc_attend_contract(attending *x, int inner, int out)
{
    const int64_t all = inner >= 0 ? x->height : dc_attend_columns_of(x, out);
    dc_attend_patches(x, all, WIDTH, contract_patch, inner, out);
}
