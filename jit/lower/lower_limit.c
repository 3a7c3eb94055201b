/*
 * Limits of assignments (dc_limit): elements that nobody needs, and terms that add nothing, as far as the numbers they end
 * at are inputs of the kernel (jit/fuse/needs.h).
 */
#include "jit/lower/lower_impl.h"

static void add(lowering *w, dc_stmt *s, dc_ix at, dc_ref end)
{
    int64_t c;
    const uint32_t buf = end != 0 ? dc_lower_fact(w, end)->buf : DC_NO_BUF;
    if (buf != DC_NO_BUF && !dc_ix_is_const(w->k, at, &c))
        dc_stmt_add_limit(w->k, s, (dc_limit){at, buf});
}

void dc_lower_limit(lowering *w, dc_stmt *s, dc_ref r, const dc_ix *pos)
{
    for (int i = 0; i < dc_node_at(w->fn, r)->rank; i++)
        add(w, s, pos[i], dc_needs_end(&w->groups->needs, r, i));
}

void dc_lower_limit_terms(lowering *w, dc_stmt *s, dc_ref r, const dc_ix *pos)
{
    int64_t dim[DC_MAX_RANK];
    const int n = dc_lower_reduced_dims(w, dc_node_at(w->fn, r), dim);
    for (int i = 0; i < n; i++)
        add(w, s, pos[i], dc_needs_term_end(&w->groups->needs, r, i));
}

void dc_lower_limit_also(lowering *w, dc_stmt *s, bool first, dc_ref r, const dc_ix *pos)
{
    dc_stmt own = {0}, both = {0};
    dc_lower_limit(w, &own, r, pos);
    for (uint32_t i = 0; !first && i < own.nlimit; i++)
        for (uint32_t n = 0; n < s->nlimit; n++)
            if (s->limit[n].ix == own.limit[i].ix && s->limit[n].buf == own.limit[i].buf)
                dc_stmt_add_limit(w->k, &both, own.limit[i]);
    s->nlimit = first ? own.nlimit : both.nlimit;
    s->limit = first ? own.limit : both.limit;
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
