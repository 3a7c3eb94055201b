#include "jit/nest/nest_shape.h"

/* The loops of reductions in a list of statements, outermost first, and the first accumulation in them. */
static void read_reduction(const dc_kernel *k, const dc_stmt *first, dc_shape *s)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_LOOP && k->axis.at[t->axis].reduce) {
            if (s->nred < DC_SHAPE_AXES)
                s->red[s->nred++] = t->axis;
            else /* of many sums: each by itself */
                s->by_rows = true;
            read_reduction(k, t->body, s);
        } else if (t->kind == DC_STMT_SET && t->reduces && s->add == NULL) {
            s->add = t;
        }
    }
}

/* Is there one sum in the list, and it stands in loops of its own? */
static bool is_one_sum(const dc_shape *p, const dc_stmt *first)
{
    int sums = 0;
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        int depth = 1;
        const dc_stmt *in = t->body;
        for (; in != NULL && in->kind == DC_STMT_LOOP && in->next == NULL; in = in->body)
            depth++;
        if (in == NULL || in != p->add || in->next != NULL || depth != p->nred)
            return false;
        sums++;
    }
    return sums == 1;
}

dc_shape dc_shape_of(const dc_kernel *k)
{
    dc_shape s = {0};
    const dc_stmt *t = k->root;
    while (s.nout < DC_SHAPE_AXES && t != NULL && t->kind == DC_STMT_LOOP && t->next == NULL &&
           !k->axis.at[t->axis].reduce) {
        s.out[s.nout++] = t->axis;
        t = t->body;
    }
    read_reduction(k, t, &s);
    s.one_sum = is_one_sum(&s, t);
    for (; t != NULL; t = t->next)
        s.by_rows |= t->kind == DC_STMT_LOOP && !k->axis.at[t->axis].reduce;
    return s;
}

dc_vx dc_shape_term(const dc_kernel *k, const dc_shape *p)
{
    return k->vx.at[p->add->put[0].value].in[1];
}

dc_strides dc_strides_of(dc_kernel *k, dc_vx v, uint32_t axis)
{
    const dc_mark mark = dc_arena_mark(&k->arena);
    const bool *part = dc_vx_parts(k, &k->arena, v);
    dc_strides s = {0};
    for (dc_vx i = 1; i <= v; i++) {
        const dc_vx_node *n = &k->vx.at[i];
        if (!part[i] || n->kind != DC_VX_LOAD || k->buf.at[n->buf].scope != DC_SCOPE_PARAM)
            continue;
        bool affine = true;
        const int64_t stride = dc_ix_stride(k, n->at, axis, &affine);
        s.invariant |= affine && stride == 0;
        s.unit |= affine && stride == 1;
        s.strided |= affine && stride != 0 && stride != 1;
        s.irregular |= !affine;
    }
    dc_arena_rewind(&k->arena, mark);
    return s;
}

bool dc_axes_overlap(const dc_kernel *k, dc_ix at, uint32_t a, uint32_t b)
{
    bool affine = true;
    int64_t sa = dc_ix_stride(k, at, a, &affine), sb = dc_ix_stride(k, at, b, &affine);
    sa = sa < 0 ? -sa : sa;
    sb = sb < 0 ? -sb : sb;
    return affine && sa > 0 && sb > 0 && sa < sb * k->axis.at[b].extent &&
           sb < sa * k->axis.at[a].extent;
}
