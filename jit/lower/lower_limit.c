/*
 * Limits of assignments (dc_limit): elements that nobody needs, and terms that add nothing, as far as the numbers they end
 * at are inputs of the kernel (jit/fuse/needs.h).
 */
#include "jit/lower/lower_impl.h"

#include <string.h>

static void add(lowering *w, dc_stmt *s, dc_ix at, dc_ref end)
{
    int64_t c;
    const uint32_t buf = end != 0 ? dc_lower_fact(w, end)->buf : DC_NO_BUF;
    if (buf != DC_NO_BUF && !dc_ix_is_const(w->k, at, &c))
        dc_stmt_add_limit(w->k, s, (dc_limit){at, buf});
}

void dc_lower_limit_before(lowering *w, dc_stmt *s, dc_ref mask, int axis, dc_ix at)
{
    add(w, s, at, dc_needs_before(&w->groups->needs, mask, axis));
}

void dc_lower_limit(lowering *w, dc_stmt *s, dc_ref r, const dc_ix *pos)
{
    for (int i = 0; i < dc_node_at(w->fn, r)->rank; i++)
        add(w, s, pos[i], dc_needs_end(&w->groups->needs, r, i));
}

/* The position in the operand of a movement, of an element of its result. */
static void move_back(lowering *w, dc_ref r, dc_ix *pos)
{
    const dc_node *n = dc_node_at(w->fn, r), *x = dc_node_at(w->fn, n->in[0]);
    dc_ix to[DC_MAX_RANK];
    if (n->op == DC_OP_RESHAPE)
        dc_lower_delinear(w->k, dc_lower_linear(w->k, n, pos), x->rank, x->dim, to);
    else if (n->op == DC_OP_PERMUTE)
        for (int i = 0; i < n->rank; i++)
            to[n->attr[i]] = pos[i];
    else if (n->op == DC_OP_EXPAND)
        for (int i = 0; i < n->rank; i++)
            to[i] = x->dim[i] == 1 ? dc_ix_const(w->k, 0) : pos[i];
    else
        return;
    memcpy(pos, to, (size_t)x->rank * sizeof *pos);
}

/* From where on elements of x are neutral, at a position in it. */
static void add_masks(lowering *w, dc_stmt *s, dc_ref x, const dc_ix *at, uint64_t bits)
{
    const dc_needs *needs = &w->groups->needs;
    dc_ix pos[DC_MAX_RANK];
    memcpy(pos, at, (size_t)dc_node_at(w->fn, x)->rank * sizeof *pos);
    for (dc_ref next; (next = dc_needs_through(needs, x, bits)) != 0; x = next) {
        const dc_node *n = dc_node_at(w->fn, x);
        if (n->op != DC_OP_WHERE)
            move_back(w, x, pos);
        else
            for (int i = 0; i < n->rank; i++)
                add(w, s, pos[i], dc_needs_before(needs, n->in[0], i));
    }
}

/* Those limits of s that others are, too. */
static void keep_common(lowering *w, dc_stmt *s, const dc_stmt *other)
{
    dc_stmt both = {0};
    for (uint32_t i = 0; i < other->nlimit; i++)
        for (uint32_t n = 0; n < s->nlimit; n++)
            if (s->limit[n].ix == other->limit[i].ix && s->limit[n].buf == other->limit[i].buf)
                dc_stmt_add_limit(w->k, &both, other->limit[i]);
    s->nlimit = both.nlimit;
    s->limit = both.limit;
}

void dc_lower_limit_terms(lowering *w, dc_stmt *s, dc_ref r, const dc_ix *const at[2])
{
    const dc_node *n = dc_node_at(w->fn, r);
    const bool is_product = dc_op_is((dc_op)n->op, DC_CLASS_CON);
    dc_stmt own[2] = {0};
    if (w->groups->needs.end == NULL || (!is_product && !dc_op_is((dc_op)n->op, DC_CLASS_RED)))
        return;
    for (int i = 0; i < n->nin; i++)
        add_masks(w, &own[i], n->in[i], at[i], dc_needs_neutral(w->fn, r));
    if (is_product)
        keep_common(w, &own[0], &own[1]);
    for (uint32_t i = 0; i < own[0].nlimit; i++)
        dc_stmt_add_limit(w->k, s, own[0].limit[i]);
}

void dc_lower_limit_updates(lowering *w, dc_stmt *s, dc_ref r, const dc_ix *at)
{
    const dc_node *n = dc_node_at(w->fn, r);
    const dc_dtype t = (dc_dtype)dc_node_at(w->fn, n->in[1])->dtype;
    if (w->groups->needs.end != NULL)
        add_masks(w, s, n->in[1], at, dc_bits_of(t, -1));
}

void dc_lower_limit_also(lowering *w, dc_stmt *s, bool first, dc_ref r, const dc_ix *pos)
{
    dc_stmt own = {0};
    dc_lower_limit(w, &own, r, pos);
    if (!first)
        keep_common(w, s, &own);
    s->nlimit = first ? own.nlimit : s->nlimit;
    s->limit = first ? own.limit : s->limit;
}

static bool has_remainder(const dc_kernel *k, dc_ix a)
{
    const dc_ix_node *x = &k->ix.at[a];
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &k->atom.at[x->term[i].atom];
        if (t->kind == DC_ATOM_MOD || (t->kind == DC_ATOM_DIV && has_remainder(k, t->of)))
            return true;
    }
    return false;
}

bool dc_lower_limits_wrap(const dc_kernel *k, const dc_stmt *first)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next) {
        if (s->kind == DC_STMT_LOOP && dc_lower_limits_wrap(k, s->body))
            return true;
        for (uint32_t i = 0; i < s->nlimit; i++)
            if (has_remainder(k, s->limit[i].ix))
                return true;
    }
    return false;
}
