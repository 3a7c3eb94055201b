/*
 * How the results of matrix instructions go to memory (jit/schedule/schedule_simt_tile.h). A lane has two neighbouring sums
 * of each matrix, of which 4 lanes share a row of 8: with elements of 2 bytes the rows that a warp stores are half a
 * sector long each, in two matrices side by side. So pairs of lanes exchange what they have of pairs of matrices, by
 * shuffles, and each has four neighbours of one of them:
 *
 *   lane 0   a0 a1   b0 b1        a0 a1 a2 a3
 *   lane 1   a2 a3   b2 b3        b0 b1 b2 b3
 *
 * Operands that are read where results are stored, a residual or a bias, are read in the same runs.
 */
#include "jit/schedule/schedule_simt_tile.h"

#define TRY(...)            \
    do {                    \
        if (!(__VA_ARGS__)) \
            return false;   \
    } while (0)

enum { RUN = 4, WORD = 4 }; /* elements, bytes */

typedef struct runs { /* of what is stored or read outside of the sum */
    bool all;         /* all that is stored goes along the columns, in runs */
    bool few_bytes;   /* something goes along them and has fewer bytes than a word */
} runs;

static void see(const dc_simt_product *q, const dc_vx_node *x, bool store, runs *r)
{
    const int64_t run = dc_simt_run(q->s->k, x, q->n.axis, RUN);
    r->all = r->all && (run == RUN || !store);
    r->few_bytes = r->few_bytes || (run == RUN && dc_dtype_size((dc_dtype)x->dtype) < WORD);
}

static void see_set(const dc_simt_product *q, const dc_stmt *s, runs *r)
{
    dc_kernel *k = q->s->k;
    const dc_mark mark = dc_arena_mark(&k->arena);
    for (uint32_t i = 0; i < s->nput; i++) {
        const dc_put *p = &s->put[i];
        const bool *part = dc_vx_parts(k, &k->arena, p->value);
        if (k->buf.at[p->buf].scope == DC_SCOPE_PARAM)
            see(q, &(dc_vx_node){.buf = p->buf, .at = p->at, .dtype = k->buf.at[p->buf].dtype},
                true, r);
        for (dc_vx v = 1; v <= p->value; v++)
            if (part[v] && k->vx.at[v].kind == DC_VX_LOAD &&
                k->buf.at[k->vx.at[v].buf].scope == DC_SCOPE_PARAM)
                see(q, &k->vx.at[v], false, r);
    }
    dc_arena_rewind(&k->arena, mark);
}

static void see_all(const dc_simt_product *q, const dc_stmt *first, runs *r)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP)
            see_all(q, t->body, r);
        else if (!t->reduces)
            see_set(q, t, r);
}

bool dc_simt_exchange_pays(const dc_simt_product *q)
{
    runs r = {.all = true};
    see_all(q, q->s->k->root, &r);
    return r.all && r.few_bytes;
}

/* The loops that store get axes of their own: warps, lanes, matrices, elements, of rows and columns in turn. */
static bool part_loops(dc_simt_product *q, uint32_t own[8])
{
    const uint32_t axis[8] = {q->m.warp,   q->n.warp,   q->m.lane,   q->n.lane,
                              q->m.own[0], q->n.own[0], q->m.own[1], q->n.own[1]};
    for (int i = 0; i < 8; i++)
        TRY(dc_do_part_after(q->s, axis[i], q->stage, &own[i]));
    return true;
}

bool dc_simt_exchange(dc_simt_product *q, uint32_t sums)
{
    uint32_t a[8], made, run;
    dc_split lane, matrix;
    TRY(part_loops(q, a));
    TRY(dc_do_split(q->s, a[3], 2, &lane));
    TRY(dc_do_split(q->s, a[5], 2, &matrix));
    uint32_t now[10] = {a[0], a[1], a[2], lane.o, lane.i, a[4], matrix.o, matrix.i, a[6], a[7]};
    const uint32_t want[10] = {a[0], a[1],     a[2], lane.o, matrix.i,
                               a[4], matrix.o, a[6], lane.i, a[7]};
    TRY(dc_simt_arrange(q->s, now, want, 10));
    TRY(dc_do_cache_elements(q->s, sums, a[6], (const uint32_t[]){lane.i, a[7]}, 2, &made));
    TRY(dc_do_unroll(q->s, dc_sketch_copy_of(q->s, made, lane.i, 0)));
    TRY(dc_do_unroll(q->s, dc_sketch_copy_of(q->s, made, a[7], 0)));
    TRY(dc_do_fuse(q->s, lane.i, a[7], &run));
    TRY(dc_do_vectorize(q->s, run));
    for (int i = 0; i < 4; i++)
        TRY(dc_do_block(q->s, want[i]));
    TRY(dc_do_lane(q->s, want[4]));
    for (int i = 5; i < 8; i++)
        dc_do_unroll(q->s, want[i]);
    return true;
}
