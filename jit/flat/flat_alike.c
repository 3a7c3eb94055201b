/* Likeness of kernels (jit/flat/flat_alike.h): both lists side by side. */
#include "jit/flat/flat_alike.h"

static bool is_leaf(const dc_finst *i)
{
    return i->op == DC_K_CONST || i->op == DC_K_ARG;
}

/* Operands whose values decide what is a register, users before what they use. */
static void find_known(dc_flat_body *x)
{
    for (uint32_t n = x->n; n-- > 0;) {
        const dc_finst *i = dc_finst_at(x->f, x->at[n]);
        const bool memory = dc_kop_row_of((dc_kop)i->op)->form == DC_KFORM_MEM;
        if (i->op == DC_K_LOOP)
            x->known[i->in[0]] = x->known[i->in[1]] = true;
        else if (memory && x->f->buf.at[i->buf].scope == DC_SCOPE_LOCAL)
            x->known[i->in[0]] = true;
        else if (x->known[x->at[n]] && !memory)
            for (int k = 0; k < 3; k++)
                x->known[i->in[k]] = true;
    }
}

dc_flat_body dc_flat_body_of(dc_arena *a, const dc_flat *f)
{
    dc_flat_body x = {.f = f,
                      .at = DC_NEW_ARRAY(a, dc_fv, f->order.n),
                      .number = DC_NEW_ARRAY(a, uint32_t, f->inst.n),
                      .known = DC_NEW_ARRAY(a, bool, f->inst.n)};
    for (uint32_t n = 0; n < f->order.n; n++) {
        if (is_leaf(dc_finst_at(f, f->order.at[n])))
            continue;
        x.number[f->order.at[n]] = x.n;
        x.at[x.n++] = f->order.at[n];
    }
    find_known(&x);
    return x;
}

static bool is_like_buffer(const dc_buffer *a, const dc_buffer *b)
{
    const bool sized = a->scope == DC_SCOPE_PARAM || a->scope == DC_SCOPE_GROUP;
    return a->dtype == b->dtype && a->scope == b->scope && a->mode == b->mode &&
           a->align == b->align && a->nontemporal == b->nontemporal && a->prefetch == b->prefetch &&
           a->atoms == b->atoms && a->param == b->param && a->table == 0 && b->table == 0 &&
           (sized || a->count == b->count);
}

static bool may_differ(const dc_flat_body *x, dc_fv user, const dc_finst *c)
{
    const bool made_known = x->known[user] && dc_finst_at(x->f, user)->op != DC_K_LOAD;
    const bool cell = c->type != DC_BOOL && !dc_ftype_is_short(c->type) && c->lanes == 1;
    return cell && !made_known;
}

static bool is_like_operand(const dc_flat_body *a, const dc_flat_body *b, uint32_t n, int k)
{
    const dc_finst *x = dc_finst_at(a->f, a->at[n]), *y = dc_finst_at(b->f, b->at[n]);
    if (x->in[k] == 0 || y->in[k] == 0)
        return x->in[k] == y->in[k];
    const dc_finst *p = dc_finst_at(a->f, x->in[k]), *q = dc_finst_at(b->f, y->in[k]);
    if (p->type != q->type || p->lanes != q->lanes || is_leaf(p) != is_leaf(q))
        return false;
    if (!is_leaf(p))
        return a->number[x->in[k]] == b->number[y->in[k]];
    if (p->op != q->op || p->imm == q->imm)
        return p->op == q->op;
    const bool memory = dc_kop_row_of((dc_kop)x->op)->form == DC_KFORM_MEM;
    const bool own = memory && k == 0 && a->f->buf.at[x->buf].scope == DC_SCOPE_LOCAL;
    return p->op == DC_K_CONST && x->op != DC_K_LOOP && !own && may_differ(a, a->at[n], p);
}

static bool is_like(const dc_flat_body *a, const dc_flat_body *b, uint32_t n)
{
    const dc_finst *x = dc_finst_at(a->f, a->at[n]), *y = dc_finst_at(b->f, b->at[n]);
    if (x->op != y->op || x->type != y->type || x->lanes != y->lanes || x->align != y->align ||
        x->buf != y->buf || x->imm != y->imm)
        return false;
    for (int k = 0; k < 3; k++)
        if (!is_like_operand(a, b, n, k))
            return false;
    return true;
}

bool dc_flat_alike(const dc_flat_body *a, const dc_flat_body *b)
{
    if (a->n != b->n || a->f->nparam != b->f->nparam || a->f->buf.n != b->f->buf.n ||
        a->f->strict != b->f->strict || a->f->index_bits != b->f->index_bits || a->f->table.n > 0 ||
        b->f->table.n > 0)
        return false;
    for (uint32_t n = 0; n < a->f->buf.n; n++)
        if (!is_like_buffer(&a->f->buf.at[n], &b->f->buf.at[n]))
            return false;
    for (uint32_t n = 0; n < a->n; n++)
        if (!is_like(a, b, n))
            return false;
    return true;
}
