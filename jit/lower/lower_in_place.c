/*
 * May an output of a kernel live in the memory of an input (dc_lower_in_place)? Asked of the naive
 * kernel: every read of the input has to stand at the very place that the same iteration stores to,
 * and before it is stored.
 */
#include "jit/lower/lower.h"

/* Do all loads of buf that the statement makes stand at `at`? Those of positions and tests, too. */
static bool reads_only_at(dc_kernel *k, const dc_stmt *t, uint32_t buf, dc_ix at)
{
    const dc_mark mark = dc_arena_mark(&k->arena);
    bool *seen = DC_NEW_ARRAY(&k->arena, bool, k->vx.n), only = true;
    dc_pred_mark(k, t->pred, seen);
    for (uint32_t i = 0; i < t->nput; i++) {
        seen[t->put[i].value] = true;
        dc_ix_mark(k, t->put[i].at, seen);
    }
    dc_vx_mark_parts(k, seen);
    for (dc_vx v = 1; v < k->vx.n && only; v++)
        only = !seen[v] || k->vx.at[v].kind != DC_VX_LOAD || k->vx.at[v].buf != buf ||
               k->vx.at[v].at == at;
    dc_arena_rewind(&k->arena, mark);
    return only;
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
        if (!reads_only_at(k, t, w->buf, t->reduces || w->stored ? 0 : w->at))
            return false;
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
