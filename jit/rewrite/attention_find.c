/*
 * Which contractions of a function are chains of attention (jit/rewrite/attention.h), and which nodes a kernel computes for
 * each of them.
 *
 * A node of a tile has an element for each row and term, and is made of a contraction by element-wise operations and other
 * dims of the same memory. It is never stored; so all its users have to be nodes of tiles, contractions that are chains, or the
 * maximum and the sum of rows that one chain computes. What has a user of another kind ends the chains that need it.
 */
#include "jit/rewrite/attention_impl.h"

#include <string.h>

static bool is_ew(const dc_func *f, dc_ref r)
{
    return dc_op_is((dc_op)dc_node_at(f, r)->op, DC_CLASS_EW);
}

/* ---- what values are made of ------------------------------------------------------------------ */

static int64_t size_of(const dc_node *n, int64_t axis)
{
    return n->dim[axis];
}

/* May tiles be computed of it, as scores are? */
static bool is_inner(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    if (n->op != DC_OP_DOT || n->dtype != DC_F32)
        return false;
    const dc_dot d = dc_dot_of(f, n);
    return d.ncontract == 1 && d.nfree[0] == 1 && d.nfree[1] == 1 &&
           size_of(dc_node_at(f, n->in[0]), d.contract[0][0]) <= DC_TUNE_ATTENTION_FEATURES &&
           n->dim[n->rank - 2] >= DC_TUNE_ATTENTION_ROWS &&
           n->dim[n->rank - 1] >= DC_TUNE_ATTENTION_ROWS;
}

/* The maximum over the last axis that a value of rows is made of; 0: of none, or of more than that. */
static dc_ref max_below(const dc_func *f, dc_ref r, int depth)
{
    const dc_node *n = dc_node_at(f, r);
    if (n->op == DC_OP_MAXR)
        return r;
    dc_ref found = 0;
    if (depth == 0 || (!is_ew(f, r) && n->op != DC_OP_RESHAPE && n->op != DC_OP_EXPAND))
        return 0;
    for (int i = 0; i < n->nin; i++) {
        const dc_ref m =
            dc_node_at(f, n->in[i])->op == DC_OP_CONST ? 0 : max_below(f, n->in[i], depth - 1);
        if (m != 0 && found != 0 && m != found)
            return 0;
        found = m != 0 ? m : found;
    }
    return found;
}

/* exp(score - row) with a row made of the maximum of the score: that maximum; 0: r is something else. */
static dc_ref max_of(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    const dc_node *sub = n->op == DC_OP_EXP ? dc_node_at(f, n->in[0]) : NULL;
    if (sub == NULL || sub->op != DC_OP_SUB)
        return 0;
    const dc_ref max = max_below(f, sub->in[1], 8);
    return max != 0 && dc_node_at(f, max)->in[0] == sub->in[0] ? max : 0;
}

/* Weights that are nothing but scaled and masked exponentials: which; 0: r is something else. */
static dc_ref scaled_exp(const dc_func *f, const uint8_t *carries, dc_ref r)
{
    for (;;) {
        const dc_node *n = dc_node_at(f, r);
        if ((carries[r] & DC_CARRIES_EXP) == 0)
            return 0;
        if (n->op == DC_OP_EXP)
            return r;
        if (n->op == DC_OP_WHERE && dc_is_const(f, n->in[2], 0))
            r = n->in[1];
        else if (n->op == DC_OP_MUL)
            r = n->in[(carries[n->in[0]] & DC_CARRIES_EXP) != 0 ? 0 : 1];
        else if (n->op == DC_OP_DIV || n->op == DC_OP_RESHAPE)
            r = n->in[0];
        else
            return 0;
    }
}

/* What carries what; exponentials are those of a softmax, all of them or those that are wanted. */
static void carry(const dc_func *f, const bool *live, const bool *wanted, uint8_t *c)
{
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        c[r] = 0;
        if (!live[r])
            continue;
        if (is_inner(f, r))
            c[r] = DC_CARRIES_DOT;
        else if (n->op == DC_OP_RESHAPE || is_ew(f, r))
            for (int i = 0; i < n->nin; i++)
                c[r] |= c[n->in[i]];
        if (c[r] != 0 && (wanted == NULL || wanted[r]) && max_of(f, r) != 0)
            c[r] |= DC_CARRIES_EXP;
    }
}

/*
 * A softmax whose weights a contraction has as they are: attention. Others are left alone, as that of a cross entropy, whose
 * gradient takes the labels from them first.
 */
const uint8_t *dc_attention_carries(const dc_func *f, const bool *live, dc_arena *a)
{
    uint8_t *c = DC_NEW_ARRAY(a, uint8_t, f->node.n);
    bool *wanted = DC_NEW_ARRAY(a, bool, f->node.n), any = false;
    carry(f, live, NULL, c);
    for (dc_ref r = 1; r < f->node.n; r++)
        for (int i = 0; i < 2 && live[r] && dc_node_at(f, r)->op == DC_OP_DOT; i++) {
            const dc_ref e = scaled_exp(f, c, dc_node_at(f, r)->in[i]);
            wanted[e] = e != 0;
            any |= e != 0;
        }
    if (any)
        carry(f, live, wanted, c);
    return any ? c : NULL;
}

bool dc_attention_is_chain(const dc_func *f, const dc_dot *d, const uint8_t *carries,
                           const dc_node *n, int side)
{
    const dc_node *values = dc_node_at(f, n->in[1 - side]);
    return n->dtype == DC_F32 && d->ncontract == 1 && d->nfree[0] == 1 && d->nfree[1] == 1 &&
           (carries[n->in[side]] & DC_CARRIES_EXP) != 0 &&
           size_of(values, d->free[1 - side][0]) <= DC_TUNE_ATTENTION_FEATURES;
}

/* ---- users ------------------------------------------------------------------------------------ */

static void list_users(finding *w)
{
    const dc_func *f = w->f;
    w->first = DC_NEW_ARRAY(w->a, uint32_t, f->node.n);
    w->nuser = DC_NEW_ARRAY(w->a, uint32_t, f->node.n);
    uint32_t all = 0;
    for (dc_ref r = 1; r < f->node.n; r++)
        for (int i = 0; w->live[r] && i < at(w, r)->nin; i++, all++)
            w->nuser[at(w, r)->in[i]]++;
    w->user = DC_NEW_ARRAY(w->a, dc_ref, all + 1);
    all = 0;
    for (dc_ref r = 1; r < f->node.n; r++) {
        w->first[r] = all;
        all += w->nuser[r];
        w->nuser[r] = 0;
    }
    for (dc_ref r = 1; r < f->node.n; r++)
        for (int i = 0; w->live[r] && i < at(w, r)->nin; i++) {
            const dc_ref o = at(w, r)->in[i];
            w->user[w->first[o] + w->nuser[o]++] = r;
        }
    w->is_result = DC_NEW_ARRAY(w->a, bool, f->node.n);
    for (uint32_t i = 0; i < f->result.n; i++)
        w->is_result[f->result.at[i]] = true;
}

/* ---- one chain -------------------------------------------------------------------------------- */

static bool is_tile(const finding *w, dc_ref r)
{
    return w->carries[r] != 0;
}

/* The nodes of tiles that r is made of, and their contractions. False: these are too many, or have other dims. */
static bool walk_tiles(finding *w, dc_ref r, const dc_node *weights, dc_attention_kernel *k)
{
    if (!is_tile(w, r) || w->seen[r] == w->search)
        return true;
    w->seen[r] = w->search;
    DC_PUSH_IN(w->a, w->met, r);
    const dc_node *n = at(w, r);
    if (n->op == DC_OP_DOT) {
        if (k->ninner == DC_ATTENTION_INNER || !same_dims(n, weights))
            return false;
        k->inner[k->ninner++] = r;
        return true;
    }
    for (int i = 0; i < n->nin; i++)
        if (!walk_tiles(w, n->in[i], weights, k))
            return false;
    return true;
}

/* Is a reduction over the terms of tiles? */
static bool is_over_terms(const finding *w, dc_ref r, const dc_attention_kernel *k,
                          const dc_node *weights)
{
    const dc_node *n = at(w, r), *a = at(w, n->in[0]);
    if (same_dims(a, weights))
        return n->attr[0] == (int64_t)1 << k->y;
    return k->y == weights->rank - 1 && a->rank > 0 && a->dim[a->rank - 1] == weights->dim[k->y] &&
           n->attr[0] == (int64_t)1 << (a->rank - 1);
}

/* The maximum over the terms of the chain, of the one exponential in it. */
static void find_max(const finding *w, const dc_node *weights, dc_attention_kernel *k)
{
    for (uint32_t i = 0; i < w->met.n; i++) {
        const dc_ref r = w->met.at[i], max = max_of(w->f, r);
        if (max == 0 || !is_over_terms(w, max, k, weights))
            continue;
        k->max = max;
        k->score = at(w, at(w, r)->in[0])->in[0];
        k->exp = r;
    }
}

/* The sum of the exponentials of each row, if there is one. */
static void find_sum(const finding *w, const dc_node *weights, dc_attention_kernel *k)
{
    for (uint32_t i = 0; i < w->nuser[k->exp]; i++) {
        const dc_ref u = w->user[w->first[k->exp] + i];
        if (at(w, u)->op == DC_OP_SUM && is_over_terms(w, u, k, weights))
            k->sum = u;
    }
}

bool dc_attention_depends(finding *w, dc_ref r, const dc_ref *on, int n, dc_ref least)
{
    if (r < least || w->seen[r] == w->search)
        return false;
    for (int i = 0; i < n; i++)
        if (r == on[i])
            return true;
    w->seen[r] = w->search;
    for (int i = 0; i < at(w, r)->nin; i++)
        if (dc_attention_depends(w, at(w, r)->in[i], on, n, least))
            return true;
    return false;
}

/* Of weights [.., x, parts, y / parts], of which the parts are a batch; 0: they are not in parts. */
static int64_t parts_of(const finding *w, const dc_dot *d, dc_ref r)
{
    const dc_node *n = at(w, r), *of = at(w, n->in[0]);
    const int last = of->rank - 1;
    if (n->op != DC_OP_RESHAPE || last < 1 || n->rank != of->rank + 1 || d->nbatch != last ||
        d->batch[0][last - 1] != last || d->contract[0][0] != last + 1 ||
        memcmp(n->dim, of->dim, (size_t)last * sizeof *n->dim) != 0)
        return 0;
    return n->dim[last];
}

/* The tiles of a chain, with their contractions in k. */
static bool walk(finding *w, const dc_attention_kernel *chain, dc_attention_kernel *k)
{
    w->search++;
    w->met.n = 0;
    return walk_tiles(w, at(w, chain->dot[0])->in[0], weights_of(w, chain), k);
}

static bool is_chain(finding *w, dc_ref r, dc_attention_kernel *k)
{
    const dc_node *n = at(w, r);
    if (n->op != DC_OP_DOT || w->refused[r])
        return false;
    const dc_dot d = dc_dot_of(w->f, n);
    if (!dc_attention_is_chain(w->f, &d, w->carries, n, 0))
        return false;
    *k = (dc_attention_kernel){.n = 1, .dot = {r}, .top = {r}, .parts = parts_of(w, &d, n->in[0])};
    k->rank = weights_of(w, k)->rank;
    const int last =
        k->rank - 1; /* rows and terms are the free axes of the scores, which come last */
    k->x = (int)d.free[0][0];
    k->y = k->parts > 0 ? last : (int)d.contract[0][0];
    return k->rank + (k->parts > 0) == d.nbatch + 2 && k->x >= last - 1 && k->y >= last - 1 &&
           walk(w, k, k) && k->ninner > 0;
}

/*
 * What is made of the maximum on its way to the exponential: marked as if it were of tiles, since each kernel computes it. False
 * where anything else reads it. *on: does r depend on the maximum?
 */
static bool mark_path(finding *w, uint8_t *place, dc_ref max, dc_ref r, int depth, bool *on)
{
    const dc_node *n = at(w, r);
    *on = r == max;
    if (*on || r < max || depth == 0 || (!is_ew(w->f, r) && !dc_op_is((dc_op)n->op, DC_CLASS_MOV)))
        return true;
    for (int i = 0; i < n->nin; i++) {
        bool is = false;
        if (!mark_path(w, place, max, n->in[i], depth - 1, &is))
            return false;
        *on |= is;
    }
    if (!*on)
        return true;
    if (w->is_result[r])
        return false;
    place[r] = DC_ATTENTION_TILE;
    return true;
}

/* ---- all chains -------------------------------------------------------------------------------- */

/* Chains, and which of them computes a maximum: the first whose weights are made of nothing that comes after it. */
static void find_chains(finding *w)
{
    dc_attention_kernel k;
    for (dc_ref r = 1; r < w->f->node.n; r++) {
        if (!w->live[r] || !is_chain(w, r, &k))
            continue;
        const dc_node *weights = weights_of(w, &k);
        if (k.parts == 0)
            find_max(w, weights, &k);
        for (uint32_t i = 0; k.max != 0 && i < w->kernel.n; i++)
            if (w->kernel.at[i].max == k.max)
                k.max = 0;
        if (k.max != 0) {
            find_sum(w, weights, &k);
            const dc_ref own[2] = {k.max, k.sum};
            const dc_ref least = k.max;
            const dc_ref sub = at(w, k.exp)->in[0], row = at(w, sub)->in[1];
            w->search++; /* what gives the maximum to the exponential is no other way to it */
            w->seen[row] = w->search;
            if (dc_attention_depends(w, at(w, r)->in[0], own, k.sum != 0 ? 2 : 1, least) ||
                dc_attention_depends(w, at(w, r)->in[1], own, k.sum != 0 ? 2 : 1, least))
                k.max = 0;
        }
        if (k.max == 0)
            k.score = k.exp = k.sum = 0;
        DC_PUSH_IN(w->a, w->kernel, k);
    }
}

/* By ref: in tiles of which kernels may it be computed? Here: of any. */
static void mark_tiles(finding *w, uint8_t *place)
{
    memset(place, 0, w->f->node.n * sizeof *place);
    for (uint32_t i = 0; i < w->kernel.n; i++) {
        dc_attention_kernel k = {0};
        walk(w, &w->kernel.at[i], &k);
        for (uint32_t m = 0; m < w->met.n; m++)
            place[w->met.at[m]] = DC_ATTENTION_TILE;
        const dc_ref max = w->kernel.at[i].max;
        bool on;
        if (max != 0 &&
            !mark_path(w, place, max, at(w, at(w, w->kernel.at[i].exp)->in[0])->in[1], 8, &on))
            place[max] = DC_ATTENTION_KEPT; /* refused */
    }
}

/* A maximum, a sum or a contraction of a kernel. */
static bool is_own(const finding *w, dc_ref r)
{
    for (uint32_t i = 0; i < w->kernel.n; i++)
        if (w->kernel.at[i].max == r || w->kernel.at[i].sum == r || w->kernel.at[i].dot[0] == r)
            return r != 0;
    return false;
}

static bool is_used_within(const finding *w, const uint8_t *place, dc_ref r)
{
    if (w->is_result[r])
        return false;
    for (uint32_t i = 0; i < w->nuser[r]; i++) {
        const dc_ref u = w->user[w->first[r] + i];
        if (place[u] != DC_ATTENTION_TILE && !is_own(w, u))
            return false;
    }
    return true;
}

/* Do tiles alone read what is made of the maximum on its way to the exponential? */
static bool is_path_within(const finding *w, const uint8_t *place, const dc_attention_kernel *k)
{
    for (dc_ref r = k->max + 1; r < k->exp; r++) {
        if (place[r] != DC_ATTENTION_TILE || w->carries[r] != 0)
            continue;
        for (uint32_t i = 0; i < w->nuser[r]; i++)
            if (place[w->user[w->first[r] + i]] != DC_ATTENTION_TILE)
                return false;
    }
    return true;
}

/*
 * Is there so much of a matrix of weights that it pays not to store it? Scores are computed again for gradients, and masks leave
 * little out of few blocks: products of matrices that stay in caches are faster then.
 */
static bool is_long(const finding *w, const dc_attention_kernel *k)
{
    const dc_node *weights = weights_of(w, k);
    const int64_t count = weights->dim[k->x] * weights->dim[k->y];
    return count >= (k->max != 0 ? DC_TUNE_ATTENTION_LEAST : DC_TUNE_ATTENTION_GRADIENT);
}

/*
 * Is everything in the tiles of the chain used in tiles alone, and is it of a softmax whose maximum a chain computes? Without
 * one, as between two layers, it would be a product that is computed again for each use instead of being stored.
 */
static bool holds(finding *w, const uint8_t *place, const dc_attention_kernel *k)
{
    dc_attention_kernel again = {0};
    if (!is_long(w, k))
        return false;
    walk(w, k, &again);
    for (uint32_t m = 0; m < w->met.n; m++)
        if (!is_used_within(w, place, w->met.at[m]))
            return false;
    if (k->max != 0 && (place[k->max] == DC_ATTENTION_KEPT || !is_path_within(w, place, k)))
        return false;
    for (int i = 0; i < again.ninner; i++) /* whose operands are in memory */
        if (is_own(w, again.inner[i]))
            return false;
    for (uint32_t m = 0; m < w->met.n; m++) {
        const dc_ref max = max_of(w->f, w->met.at[m]);
        if (max != 0)
            return is_own(w, max);
    }
    return false;
}

static void drop_others(finding *w, uint8_t *place)
{
    bool changed = true;
    while (changed) {
        changed = false;
        mark_tiles(w, place);
        for (uint32_t i = 0; i < w->kernel.n; i++)
            if (!holds(w, place, &w->kernel.at[i])) {
                w->kernel.at[i] = w->kernel.at[--w->kernel.n];
                changed = true;
                break;
            }
    }
}

/* ---- what is stored ---------------------------------------------------------------------------- */

/* Is r computed of constants and of what the kernel itself gives for a row, and used by nothing outside? Then it is marked. */
static bool mark_row(finding *w, uint8_t *place, const dc_attention_kernel *k, dc_ref r,
                     dc_ref user)
{
    const dc_node *n = at(w, r);
    if (r == k->max || r == k->sum || n->op == DC_OP_CONST)
        return true;
    if (!is_ew(w->f, r) && n->op != DC_OP_RESHAPE && n->op != DC_OP_EXPAND &&
        n->op != DC_OP_PERMUTE)
        return false;
    if (w->is_result[r] || w->nuser[r] != 1 || w->user[w->first[r]] != user)
        return false;
    for (int i = 0; i < n->nin; i++)
        if (!mark_row(w, place, k, n->in[i], r))
            return false;
    place[r] = DC_ATTENTION_ROW;
    return true;
}

/* Steps behind a contraction: element-wise, with constants and rows of the kernel. */
static void find_top(finding *w, uint8_t *place, dc_attention_kernel *k, int which)
{
    dc_ref r = k->dot[which];
    while (w->nuser[r] == 1 && !w->is_result[r]) {
        const dc_ref u = w->user[w->first[r]];
        const dc_node *n = at(w, u);
        bool all =
            is_ew(w->f, u) && dc_dtype_is_float((dc_dtype)n->dtype) && place[u] == DC_ATTENTION_NOT;
        for (int i = 0; all && i < n->nin; i++)
            all = n->in[i] == r || mark_row(w, place, k, n->in[i], u);
        if (!all)
            break;
        place[r] = DC_ATTENTION_KEPT;
        r = u;
    }
    k->top[which] = r;
    place[r] = DC_ATTENTION_KEPT;
}

/* Is r, a maximum or a sum of the kernel, read by anything but what the kernel computes for its rows? */
static bool is_read_outside(const finding *w, const uint8_t *place, dc_ref r)
{
    for (uint32_t i = 0; i < w->nuser[r]; i++) {
        const uint8_t p = place[w->user[w->first[r] + i]];
        if (p != DC_ATTENTION_ROW && p != DC_ATTENTION_TILE)
            return true;
    }
    return w->is_result[r];
}

/* Does another kernel compute the exponential of this one, for which it needs the maximum? */
static bool is_exp_elsewhere(finding *w, uint32_t kernel)
{
    for (uint32_t i = 0; i < w->kernel.n; i++) {
        dc_attention_kernel k = {0};
        walk(w, &w->kernel.at[i], &k);
        if (i != kernel && w->seen[w->kernel.at[kernel].exp] == w->search)
            return true;
    }
    return false;
}

/* False: a chain in parts is alone, and is refused from now on. */
static bool find_kernels(finding *w, uint8_t *place)
{
    w->kernel.n = 0;
    find_chains(w);
    drop_others(w, place);
    for (uint32_t i = 0; i < w->kernel.n; i++)
        find_top(w, place, &w->kernel.at[i], 0);
    for (uint32_t i = 0; i < w->kernel.n; i++) {
        dc_attention_kernel *k = &w->kernel.at[i];
        k->stores_max =
            k->max != 0 && (is_read_outside(w, place, k->max) || is_exp_elsewhere(w, i));
        k->stores_sum = k->sum != 0 && is_read_outside(w, place, k->sum);
    }
    dc_attention_join(w);
    bool all = true;
    for (uint32_t i = 0; i < w->kernel.n; i++)
        if (w->kernel.at[i].parts > 0 && !w->kernel.at[i].across) {
            w->refused[w->kernel.at[i].dot[0]] = true;
            all = false;
        }
    return all;
}

dc_attention dc_attention_in(const dc_func *f, dc_arena *a)
{
    finding w = {.f = f, .a = a, .live = dc_func_live(f, a)};
    w.carries = dc_attention_carries(f, w.live, a);
    if (w.carries == NULL)
        return (dc_attention){0};
    w.seen = DC_NEW_ARRAY(a, uint32_t, f->node.n);
    w.refused = DC_NEW_ARRAY(a, bool, f->node.n);
    list_users(&w);
    uint8_t *place = DC_NEW_ARRAY(a, uint8_t, f->node.n);
    while (!find_kernels(&w, place))
        ;
    if (w.kernel.n == 0)
        return (dc_attention){0};
    dc_attention t = {.n = w.kernel.n, .at = w.kernel.at, .place = place};
    t.kernel_of = DC_NEW_ARRAY(a, uint32_t, f->node.n);
    for (uint32_t i = 0; i < t.n; i++) {
        const dc_attention_kernel *k = &t.at[i];
        for (int n = 0; n < k->n + k->across; n++)
            for (dc_ref r = k->dot[n];; r = w.user[w.first[r]]) {
                place[r] = DC_ATTENTION_KEPT;
                t.kernel_of[r] = i;
                if (r == k->top[n])
                    break;
            }
        const dc_ref row[2] = {k->max, k->sum};
        for (int n = 0; n < 2; n++)
            if (row[n] != 0) {
                place[row[n]] = DC_ATTENTION_KEPT;
                t.kernel_of[row[n]] = i;
            }
    }
    return t;
}
