/*
 * Flattening of exchanges. A thread reads rows of two threads that are a power of two apart, its own and another lane's, at a
 * place that its own number chooses, as when pairs of lanes transpose two by two elements:
 *
 *   row[p.far][.. + p.here * step]    p.here: which of the two this thread is, p.far: which one's row it reads
 *
 * A shuffle has one place for all lanes. Here each of the two sends what the other one asks for, and keeps what it has
 * itself: one shuffle is enough for both rows.
 */
#include "jit/flat/flatten_impl.h"

typedef struct exchange {
    uint32_t here;  /* the axis of the two threads */
    dc_ix far;      /* whose row is read, 0 or 1 */
    dc_ix partner;  /* lane of the other one */
    dc_ix place[2]; /* in the row, as the first and the second thread read */
} exchange;

/* The only thread axis that the position depends on; DC_NO_AXIS: there is none, or several. */
static uint32_t only_thread(const flattener *l, dc_ix a)
{
    uint32_t found = DC_NO_AXIS;
    for (uint32_t x = 0; x < l->k->axis.n; x++)
        if (dc_axis_is_thread(l->k->axis.at[x].kind) && dc_ix_uses(l->k, a, x)) {
            if (found != DC_NO_AXIS)
                return DC_NO_AXIS;
            found = x;
        }
    return found;
}

static bool uses_threads_or_lanes(const flattener *l, dc_ix a)
{
    for (uint32_t x = 0; x < l->k->axis.n; x++) {
        const uint8_t kind = l->k->axis.at[x].kind;
        if ((dc_axis_is_thread(kind) || kind == DC_AXIS_VECTOR) && dc_ix_uses(l->k, a, x))
            return true;
    }
    return false;
}

/* Without c times the axis, which it has. */
static dc_ix without(dc_kernel *k, dc_ix a, uint32_t axis, int64_t c)
{
    return dc_ix_add(k, a, dc_ix_mul(k, dc_ix_axis(k, axis), -c));
}

/* Is element `at` of rows of n in one of the two rows? */
static bool find(flattener *l, dc_ix at, int64_t n, exchange *x)
{
    dc_kernel *k = l->k;
    bool affine = true;
    if (l->warp == 0 || fl_ix(l, at)->lo < 0)
        return false;
    const dc_ix place = dc_ix_mod(k, at, n), owner = dc_ix_div(k, at, n);
    x->here = only_thread(l, place);
    if (x->here == DC_NO_AXIS || k->axis.at[x->here].extent != 2)
        return false;
    const int64_t step = dc_ix_stride(k, place, x->here, &affine);
    const int64_t apart = dc_ix_stride(k, l->thread_ix, x->here, &affine);
    if (!affine || apart <= 0 || apart >= l->warp || l->warp % (2 * apart) != 0)
        return false;
    const dc_ix first = without(k, l->thread_ix, x->here, apart);
    const dc_ix ahead = dc_ix_add(k, owner, dc_ix_mul(k, first, -1));
    x->far = dc_ix_div(k, ahead, apart);
    x->partner = without(k, dc_ix_add(k, first, dc_ix_const(k, apart)), x->here, apart);
    x->partner = dc_ix_mod(k, x->partner, l->warp);
    x->place[0] = without(k, place, x->here, step);
    x->place[1] = dc_ix_add(k, x->place[0], dc_ix_const(k, step));
    return fl_ix(l, ahead)->lo >= 0 && fl_ix(l, ahead)->hi <= apart &&
           dc_ix_mul(k, x->far, apart) == ahead && !uses_threads_or_lanes(l, x->far) &&
           !uses_threads_or_lanes(l, x->place[0]);
}

bool dc_flatten_is_exchanged(flattener *l, dc_ix at, int64_t n)
{
    exchange x;
    return find(l, at, n, &x);
}

static dc_fv load(flattener *l, uint32_t buf, dc_fv place)
{
    const uint16_t align = (uint16_t)dc_dtype_size((dc_dtype)l->k->buf.at[buf].dtype);
    return dc_fb_mem(
        l->b,
        &(dc_finst){
            .op = DC_K_LOAD, .lanes = 1, .imm = 1, .buf = buf, .align = align, .in = {place}});
}

/* What this thread keeps and gets, once for both rows. */
static const fl_exchanged *exchanged(flattener *l, uint32_t buf, const exchange *x, dc_fv second)
{
    const dc_fv a = dc_flatten_scalar_index(l, x->place[0]);
    const dc_fv b = dc_flatten_scalar_index(l, x->place[1]);
    for (const fl_exchanged *e = l->exchanged; e != NULL; e = e->next)
        if (e->buf == buf && e->place[0] == a && e->place[1] == b && e->second == second &&
            e->since == l->b->since)
            return e;
    fl_exchanged *e = DC_NEW(&l->k->arena, fl_exchanged);
    const dc_fv v = load(l, buf, a), w = load(l, buf, b);
    const dc_fv send = dc_fb_op3(l->b, DC_K_SELECT, second, v, w);
    const dc_fv to = dc_flatten_index(l, x->partner, (fl_want){DC_U32, false});
    *e = (fl_exchanged){.next = l->exchanged,
                        .buf = buf,
                        .second = second,
                        .since = l->b->since,
                        .place = {a, b},
                        .own = dc_fb_op3(l->b, DC_K_SELECT, second, w, v),
                        .got = dc_fb_shuffle(l->b, send, to)};
    l->exchanged = e;
    return e;
}

dc_fv dc_flatten_exchange(flattener *l, uint32_t buf, dc_ix at)
{
    exchange x;
    if (!find(l, at, l->b->f->buf.at[buf].count, &x))
        return 0;
    const dc_fv here = dc_flatten_scalar_index(l, dc_ix_axis(l->k, x.here));
    const dc_fv second = dc_fb_op2(l->b, DC_K_EQ, here, dc_fb_const(l->b, DC_INDEX, 1, 1));
    const fl_exchanged *e = exchanged(l, buf, &x, second);
    const dc_fv mine = dc_fb_op2(l->b, DC_K_EQ, here, dc_flatten_scalar_index(l, x.far));
    return dc_fb_op3(l->b, DC_K_SELECT, mine, e->own, e->got);
}
