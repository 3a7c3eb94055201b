/*
 * The move cut: loop splitting (index-set splitting), one loop becomes two that follow one another
 * (jit/moves/move_impl.h).
 *
 * Iterations keep their order, so any serial loop may be cut. In each part tests on the axis may be always true or
 * always false, and selects on them are folded: of x[i - 1] with a border one part is the border, the other a copy.
 */
#include "jit/moves/move_impl.h"
#include "jit/nest/nest_roles.h"
#include "jit/nest/select_fold.h"

/* Folding of selects --------------------------------------------------------------------------- */

/* The value, its constant selects folded. */
static dc_vx folded(dc_kernel *k, dc_vx_map map, dc_vx v)
{
    if (v < map.n && map.to[v] != 0)
        return map.to[v];
    dc_vx_node n = k->vx.at[v];
    for (int i = 0; i < n.n; i++)
        n.in[i] = folded(k, map, n.in[i]);
    const dc_vx is = dc_select_operand(k, &n);
    const dc_vx out = is != 0              ? is
                      : n.kind == DC_VX_OP ? dc_vx_op(k, (dc_op)n.op, (dc_dtype)n.dtype, n.in, n.n)
                                           : v;
    if (v < map.n)
        map.to[v] = out;
    return out;
}

static bool reduces(const dc_stmt *first)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next)
        if (s->reduces || reduces(s->body))
            return true;
    return false;
}

static void fold_selects(dc_nest_edit *v, dc_stmt *first)
{
    dc_vx_map map = dc_nest_vx_map(v);
    for (dc_stmt *s = first; s != NULL; s = s->next) {
        fold_selects(v, s->body);
        for (uint32_t i = 0; i < s->nput; i++)
            s->put[i].value = folded(v->k, map, s->put[i].value);
    }
}

/* cut ------------------------------------------------------------------------------------------ */

typedef struct cut_arg {
    uint32_t low, high;
    dc_subst in_low, in_high;
} cut_arg;

static void part_of(dc_nest_edit *v, dc_stmt *loop, uint32_t axis, dc_subst *s)
{
    loop->axis = axis;
    dc_subst_stmt(s, loop->body);
    if (!reduces(loop->body)) /* a reduction keeps its operation at the root */
        fold_selects(v, loop->body);
}

static bool cut_loop(dc_nest_edit *v, dc_stmt **slot, void *arg)
{
    cut_arg *c = arg;
    dc_stmt *low = *slot;
    dc_stmt *high = dc_stmt_loop(v->k, c->high, dc_stmt_copy(v->k, low->body));
    high->next = low->next;
    low->next = high;
    part_of(v, low, c->low, &c->in_low);
    part_of(v, high, c->high, &c->in_high);
    return true;
}

bool dc_move_cut(dc_nest_edit *v, const dc_move *m)
{
    dc_kernel *k = v->k;
    const uint32_t axis = m->axis[0];
    cut_arg c;
    if (!dc_move_has_serial_axis(v, m, axis))
        return false;
    const dc_axis a = k->axis.at[axis];
    const int64_t at = m->count;
    if (at >= a.extent)
        return dc_nest_refuse(v, "%s has %lld iterations only", a.name, (long long)a.extent);
    if (!dc_move_new_axis(v, &c.low, axis, at, a.reduce, "l") ||
        !dc_move_new_axis(v, &c.high, axis, a.extent - at, a.reduce, "h"))
        return false;
    dc_axis_inherit(k, c.low, axis);
    dc_axis_inherit(k, c.high, axis);
    c.in_low = dc_subst_axis(k, axis, dc_ix_axis(k, c.low));
    c.in_high = dc_subst_axis(k, axis, dc_ix_add(k, dc_ix_axis(k, c.high), dc_ix_const(k, at)));
    return dc_nest_each_loop(v, &k->root, axis, cut_loop, &c);
}
