/*
 * May an output of a kernel live in the memory of an input (dc_lower_in_place)? Asked of the naive
 * kernel: every read of the input has to stand at the very place that the same iteration stores to,
 * and before it is stored.
 */
#include "jit/lower.h"

static bool index_reads_only_at(dc_kernel *k, dc_ix a, uint32_t buf, dc_ix at);

static bool pred_reads_only_at(dc_kernel *k, dc_pred p, uint32_t buf, dc_ix at)
{
    for (uint32_t i = 0; i < p.n; i++)
        if (!index_reads_only_at(k, p.range[i].ix, buf, at))
            return false;
    return true;
}

/* Do all loads of buf below v stand at `at`? */
static bool reads_only_at(dc_kernel *k, dc_vx v, uint32_t buf, dc_ix at)
{
    const dc_mark mark = dc_arena_mark(&k->arena);
    const bool *part = dc_vx_parts(k, &k->arena, v);
    bool only = true;
    for (dc_vx i = 1; i <= v && only; i++) {
        const dc_vx_node *n = &k->vx.at[i];
        if (!part[i])
            continue;
        only = n->kind != DC_VX_LOAD || n->buf != buf || n->at == at;
        if (n->kind == DC_VX_LOAD || n->kind == DC_VX_INDEX)
            only = only && index_reads_only_at(k, n->at, buf, at);
        only = only && pred_reads_only_at(k, n->pred, buf, at);
    }
    dc_arena_rewind(&k->arena, mark);
    return only;
}

/* The same for integers that a position is made of. */
static bool index_reads_only_at(dc_kernel *k, dc_ix a, uint32_t buf, dc_ix at)
{
    const dc_ix_node x = k->ix.at[a];
    for (uint32_t i = 0; i < x.n; i++) {
        const dc_atom_node t = k->atom.at[x.term[i].atom];
        if (t.kind == DC_ATOM_VALUE && !reads_only_at(k, t.value, buf, at))
            return false;
        if ((t.kind == DC_ATOM_DIV || t.kind == DC_ATOM_MOD) &&
            !index_reads_only_at(k, t.of, buf, at))
            return false;
    }
    return true;
}

typedef struct allowing { /* input `buf` in the memory of `out`, which is first stored at `at` */
    uint32_t buf, out;
    dc_ix at;
    bool stored;
} allowing;

/* Only statements up to the first that stores may read the input, and there at its own position. */
static bool stmt_allows(dc_kernel *k, const dc_stmt *first, allowing *w)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_LOOP) {
            if (!stmt_allows(k, t->body, w))
                return false;
            continue;
        }
        const dc_ix at = t->reduces || w->stored ? 0 : w->at;
        if (!pred_reads_only_at(k, t->pred, w->buf, at))
            return false;
        for (uint32_t i = 0; i < t->nput; i++) {
            if (!reads_only_at(k, t->put[i].value, w->buf, at) ||
                !index_reads_only_at(k, t->put[i].at, w->buf, at))
                return false;
        }
        for (uint32_t i = 0; i < t->nput; i++)
            w->stored |= t->put[i].buf == w->out;
    }
    return true;
}

static dc_ix store_map(const dc_stmt *first, uint32_t buf)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_LOOP) {
            const dc_ix at = store_map(t->body, buf);
            if (at != 0)
                return at;
            continue;
        }
        for (uint32_t i = 0; i < t->nput; i++)
            if (t->put[i].buf == buf)
                return t->put[i].at;
    }
    return 0;
}

bool dc_lower_in_place(dc_kernel *k, const dc_group *g, uint32_t out, uint32_t in)
{
    const uint32_t in_buf = g->nout + in;
    if (k->buf.at[out].dtype != k->buf.at[in_buf].dtype ||
        k->buf.at[out].count != k->buf.at[in_buf].count)
        return false;
    allowing w = {.buf = in_buf, .out = out, .at = store_map(k->root, out)};
    return stmt_allows(k, k->root, &w);
}
