#include "jit/nest/nest_roles.h"

#include "jit/nest/nest_access.h"
#include "jit/nest/nest_limit.h"
#include "jit/nest/nest_print.h"

#include <string.h>

/* Names --------------------------------------------------------------------------------------- */

static const char *const names[DC_ROLE__COUNT] = {
    [DC_ROLE_NONE] = "",         [DC_ROLE_BATCH] = "batch", [DC_ROLE_M] = "m",
    [DC_ROLE_N] = "n",           [DC_ROLE_K] = "k",         [DC_ROLE_SPATIAL] = "spatial",
    [DC_ROLE_WINDOW] = "window", [DC_ROLE_ROW] = "row",     [DC_ROLE_COLUMN] = "column",
    [DC_ROLE_LANE] = "lane",
};

const char *dc_role_name(dc_role role)
{
    return names[role];
}

int dc_role_find(const char *name, size_t n)
{
    for (int i = 1; i < DC_ROLE__COUNT; i++)
        if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
            return i;
    return -1;
}

bool dc_role_fits(dc_role role, bool reduce)
{
    switch (role) {
    case DC_ROLE_NONE:
    case DC_ROLE_COLUMN:
        return true;
    case DC_ROLE_K:
    case DC_ROLE_WINDOW:
        return reduce;
    case DC_ROLE_BATCH:
    case DC_ROLE_M:
    case DC_ROLE_N:
    case DC_ROLE_SPATIAL:
    case DC_ROLE_ROW:
    case DC_ROLE_LANE:
    case DC_ROLE__COUNT:
        break;
    }
    return !reduce;
}

bool dc_roles_has(const dc_kernel *k, dc_role role)
{
    for (uint32_t i = 0; i < k->axis.n; i++)
        if (k->axis.at[i].role == role)
            return true;
    return false;
}

bool dc_roles_any(const dc_kernel *k)
{
    for (uint32_t i = 0; i < k->axis.n; i++)
        if (k->axis.at[i].role != DC_ROLE_NONE)
            return true;
    return false;
}

/* Moves ---------------------------------------------------------------------------------------- */

dc_role dc_role_join(dc_role a, dc_role b)
{
    if (a == b)
        return a;
    if ((a == DC_ROLE_M && b == DC_ROLE_SPATIAL) || (a == DC_ROLE_SPATIAL && b == DC_ROLE_M))
        return DC_ROLE_M;
    if ((a == DC_ROLE_K && b == DC_ROLE_WINDOW) || (a == DC_ROLE_WINDOW && b == DC_ROLE_K))
        return DC_ROLE_K;
    return DC_ROLE_NONE;
}

void dc_axis_inherit(dc_kernel *k, uint32_t part, uint32_t axis)
{
    const dc_axis *from = &k->axis.at[axis];
    dc_axis *to = &k->axis.at[part];
    to->role = to->reduce == from->reduce ? from->role : DC_ROLE_NONE;
}

/* Operands ------------------------------------------------------------------------------------- */

typedef enum which_loads { ALL, MOVING, INVARIANT } which_loads;

/* Do loads below v move along the axis? Asked of all, or of those that move along n, or of those that do not. */
static bool moves(const dc_kernel *k, dc_arena *scratch, dc_vx v, uint32_t axis, which_loads which,
                  uint32_t n)
{
    const dc_mark mark = dc_arena_mark(scratch);
    const bool *part = dc_vx_parts(k, scratch, v);
    bool any = false;
    for (dc_vx i = 1; i <= v && !any; i++) {
        const dc_vx_node *x = &k->vx.at[i];
        if (part[i] && x->kind == DC_VX_LOAD &&
            (which == ALL || dc_ix_uses(k, x->at, n) == (which == MOVING)))
            any = dc_ix_uses(k, x->at, axis);
    }
    dc_arena_rewind(scratch, mark);
    return any;
}

bool dc_operand_moves(const dc_kernel *k, dc_arena *scratch, dc_vx operand, uint32_t axis)
{
    return moves(k, scratch, operand, axis, ALL, axis);
}

/* Is there a load below v that does not move along the axis? */
static bool any_invariant(const dc_kernel *k, dc_arena *scratch, dc_vx v, uint32_t axis)
{
    const dc_mark mark = dc_arena_mark(scratch);
    const bool *part = dc_vx_parts(k, scratch, v);
    bool any = false;
    for (dc_vx i = 1; i <= v; i++)
        any |= part[i] && k->vx.at[i].kind == DC_VX_LOAD && !dc_ix_uses(k, k->vx.at[i].at, axis);
    dc_arena_rewind(scratch, mark);
    return any;
}

static bool is_product(const dc_kernel *k, dc_vx term)
{
    return k->vx.at[term].kind == DC_VX_OP && k->vx.at[term].op == DC_OP_MUL;
}

static bool operands_of(const dc_kernel *k, dc_arena *scratch, dc_vx term, uint32_t n,
                        dc_operands *out)
{
    const dc_vx_node *x = &k->vx.at[term];
    *out = (dc_operands){term, term, is_product(k, term)};
    if (!out->product)
        return moves(k, scratch, term, n, ALL, n) && any_invariant(k, scratch, term, n);
    const int left = moves(k, scratch, x->in[0], n, ALL, n) ? 1 : 0;
    out->left = x->in[left];
    out->right = x->in[1 - left];
    return !moves(k, scratch, out->left, n, ALL, n) && moves(k, scratch, out->right, n, ALL, n);
}

bool dc_contraction_of(dc_kernel *k, const dc_shape *p, dc_operands *out)
{
    const uint32_t n = p->nout > 0 ? p->out[p->nout - 1] : DC_NO_AXIS;
    return n != DC_NO_AXIS && p->one_sum && !p->by_rows && dc_axis_role(k, n) == DC_ROLE_N &&
           operands_of(k, &k->arena, dc_shape_term(k, p), n, out);
}

/* Is it where(position < number, x, 0), zeros behind a size? */
static bool is_mask(const dc_kernel *k, const dc_vx_node *v)
{
    dc_ix at;
    if (v->kind != DC_VX_OP || v->op != DC_OP_WHERE)
        return false;
    const dc_vx_node *test = &k->vx.at[v->in[0]], *rest = &k->vx.at[v->in[2]];
    return rest->kind == DC_VX_CONST && rest->bits == 0 && test->kind == DC_VX_OP && test->n == 2 &&
           k->vx.at[test->in[1]].kind == DC_VX_LOAD &&
           dc_nest_limit_test(k, test, k->vx.at[test->in[1]].buf, &at);
}

dc_vx dc_operand_load(const dc_kernel *k, dc_vx v)
{
    for (;;) {
        const dc_vx_node *x = &k->vx.at[v];
        if (x->kind == DC_VX_OP && x->op == DC_OP_CAST)
            v = x->in[0];
        else if (is_mask(k, x))
            v = x->in[1];
        else
            break;
    }
    return k->vx.at[v].kind == DC_VX_LOAD ? v : 0;
}

dc_vx dc_operand_main_load(dc_kernel *k, dc_vx operand)
{
    const dc_mark mark = dc_arena_mark(&k->arena);
    const bool *part = dc_vx_parts(k, &k->arena, operand);
    dc_vx found = 0;
    for (dc_vx i = 1; i <= operand; i++) {
        const dc_vx_node *n = &k->vx.at[i];
        if (part[i] && n->kind == DC_VX_LOAD && k->buf.at[n->buf].scope == DC_SCOPE_PARAM &&
            (found == 0 || k->buf.at[n->buf].count > k->buf.at[k->vx.at[found].buf].count))
            found = i;
    }
    dc_arena_rewind(&k->arena, mark);
    return found;
}

/* Of a naive nest ------------------------------------------------------------------------------ */

static void set_role(dc_kernel *k, uint32_t axis, dc_role role)
{
    k->axis.at[axis].role = (uint8_t)role;
}

/* In the loops over rows: loops over their columns; loops over the rows of a block hold several of those. */
static void derive_columns(dc_kernel *k, const dc_stmt *first)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        const bool rows = !k->axis.at[t->axis].reduce && t->body != NULL && t->body->next != NULL;
        set_role(k, t->axis, rows ? DC_ROLE_ROW : DC_ROLE_COLUMN);
        derive_columns(k, t->body);
    }
}

static void derive_rows(dc_kernel *k, const dc_shape *p)
{
    const dc_stmt *body = k->root;
    for (int i = 0; i < p->nout; i++) {
        set_role(k, p->out[i], DC_ROLE_ROW);
        body = body->body;
    }
    derive_columns(k, body);
}

/* Along an axis of the result, by which operands move along it. */
static dc_role role_of_out(dc_kernel *k, const dc_operands *o, uint32_t axis, uint32_t n)
{
    const bool left = moves(k, &k->arena, o->left, axis, o->product ? ALL : INVARIANT, n);
    const bool right = moves(k, &k->arena, o->right, axis, o->product ? ALL : MOVING, n);
    return left && right ? DC_ROLE_BATCH : left ? DC_ROLE_M : right ? DC_ROLE_N : DC_ROLE_NONE;
}

/* Marks positions and taps where the left operand is read through a window; a position may move the right one, too. */
static void derive_window(dc_kernel *k, const dc_shape *p, const dc_operands *operands, uint32_t n)
{
    const dc_vx load = dc_operand_load(k, operands->left);
    for (int o = 0; load != 0 && p->nout >= 2 && o < p->nout; o++)
        for (int r = 0; r < p->nred; r++)
            if (dc_axes_overlap(k, k->vx.at[load].at, p->out[o], p->red[r])) {
                if (!moves(k, &k->arena, operands->right, p->out[o], ALL, n))
                    set_role(k, p->out[o], DC_ROLE_SPATIAL);
                set_role(k, p->red[r], DC_ROLE_WINDOW);
            }
}

static void derive_contraction(dc_kernel *k, const dc_shape *p)
{
    dc_operands o;
    if (!p->one_sum || p->nout == 0 || !dc_nest_accumulates(k, p->add))
        return;
    const uint32_t n = p->out[p->nout - 1];
    if (!operands_of(k, &k->arena, dc_shape_term(k, p), n, &o))
        return;
    if (o.product)
        derive_window(k, p, &o, n);
    for (int i = 0; i < p->nout; i++)
        if (k->axis.at[p->out[i]].role == DC_ROLE_NONE)
            set_role(k, p->out[i], role_of_out(k, &o, p->out[i], n));
    for (int i = 0; i < p->nred; i++)
        if (k->axis.at[p->red[i]].role == DC_ROLE_NONE)
            set_role(k, p->red[i], DC_ROLE_K);
}

void dc_roles_derive(dc_kernel *k)
{
    const dc_shape p = dc_shape_of(k);
    for (uint32_t i = 0; i < k->axis.n; i++)
        set_role(k, i, DC_ROLE_NONE);
    if (p.by_rows)
        derive_rows(k, &p);
    else
        derive_contraction(k, &p);
}

/* Of a text ------------------------------------------------------------------------------------ */

/* Does anything store where integers say that are loaded? */
static bool any_scattered(const dc_kernel *k, const dc_stmt *first)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        for (uint32_t i = 0; i < t->nput; i++)
            if (dc_ix_loads(k, t->put[i].at))
                return true;
        if (any_scattered(k, t->body))
            return true;
    }
    return false;
}

dc_kernel_kind dc_kind_of_loops(const dc_kernel *k)
{
    const dc_shape p = dc_shape_of(k);
    if (dc_roles_has(k, DC_ROLE_LANE))
        return dc_roles_has(k, DC_ROLE_M) ? DC_KERNEL_attention : DC_KERNEL_transform;
    if (any_scattered(k, k->root))
        return DC_KERNEL_scatter;
    if (p.by_rows)
        return DC_KERNEL_rows;
    return p.add != NULL ? DC_KERNEL_reduction : DC_KERNEL_map;
}

/* Contradictions ------------------------------------------------------------------------------- */

/*
 * Do parameters that v loads move along an axis of the role that is open? SPATIAL counts as M. Locals do not count: a move
 * may have given them a copy for each iteration, of whatever axis.
 */
static bool moves_along(const dc_kernel *k, dc_arena *scratch, dc_vx v, dc_role role,
                        const bool *open)
{
    const dc_mark mark = dc_arena_mark(scratch);
    const bool *part = dc_vx_parts(k, scratch, v);
    bool any = false;
    for (dc_vx i = 1; i <= v && !any; i++) {
        const dc_vx_node *x = &k->vx.at[i];
        if (!part[i] || x->kind != DC_VX_LOAD || k->buf.at[x->buf].scope != DC_SCOPE_PARAM)
            continue;
        for (uint32_t a = 0; a < k->axis.n && !any; a++) {
            const dc_role is = (dc_role)k->axis.at[a].role;
            any = open[a] && (is == role || (is == DC_ROLE_SPATIAL && role == DC_ROLE_M)) &&
                  dc_ix_uses(k, x->at, a);
        }
    }
    dc_arena_rewind(scratch, mark);
    return any;
}

const char *dc_roles_contradict(const dc_kernel *k, dc_arena *scratch, const dc_stmt *t,
                                const bool *open)
{
    if (!t->reduces || !dc_nest_accumulates(k, t))
        return NULL;
    const dc_vx term = k->vx.at[t->put[0].value].in[1];
    if (!is_product(k, term))
        return NULL;
    bool along_n[2], along_m[2];
    for (int i = 0; i < 2; i++) {
        along_n[i] = moves_along(k, scratch, k->vx.at[term].in[i], DC_ROLE_N, open);
        along_m[i] = moves_along(k, scratch, k->vx.at[term].in[i], DC_ROLE_M, open);
    }
    if (along_n[0] && along_n[1])
        return "both operands move along an axis n";
    if (along_m[0] && along_m[1])
        return "both operands move along an axis m";
    if ((along_n[0] && along_m[0]) || (along_n[1] && along_m[1]))
        return "an operand moves along an axis m and an axis n";
    return NULL;
}
