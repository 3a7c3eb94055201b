/*
 * Recompute or store: what it costs to compute a value again at each use, beside what it costs to write
 * it once and read it back (jit/fuse/fuse.c asks; f:explain() prints).
 *
 *     again = (times - 1) * elements * operations of one element
 *     moved = bytes written and read back
 *
 * An operation on 4 bytes counts as much as a byte moved: in a loop over memory some operations for
 * each element read are hidden, and one that is COSTLY takes as long as several others. What is read
 * to compute the value is not counted: mostly its users read that anyway.
 *
 * A value that leaves the caches between two kernels is written to memory and read from there, which takes many times as long.
 * So one that is made of a single other one of its size, as an activation is, is computed again: its gradient reads that, too.
 *
 * Stored is what costs more to recompute. There is no choice for what is a result, an operand that a product
 * reads many times, or made of a sum, which would have to be stored in its place.
 */
#include "jit/fuse/fuse_impl.h"

#include <stdio.h>

/* Of one element, without what is below it. */
uint32_t dc_fuse_ops(const fusing *w, dc_ref r)
{
    const dc_node *n = fuse_at(w, r);
    if (fuse_class(w, r) != DC_CLASS_EW || fuse_is_part(w, r))
        return 0;
    const bool costly = (dc_op_row_of(n->op)->flags & DC_OPF_COSTLY) != 0;
    const dc_dtype t = (dc_dtype)(n->nin > 0 ? fuse_at(w, n->in[n->nin - 1])->dtype : n->dtype);
    return (costly ? DC_TUNE_COSTLY_OPS : 1) * (dc_dtype_size(t) > 4 ? 2 : 1);
}

/* ---- estimates before the walk --------------------------------------------------------------- */

/*
 * The walk goes from users to producers, so what a value costs to recompute has to be known before it
 * is decided what below it is stored. This file alone says what is expected there.
 */
static bool is_expected_stored(const fusing *w, dc_ref r)
{
    const fuse_node *x = &w->node[r];
    return w->is_result[r] || fuse_is_control(w, r) ||
           (x->nuser > 1 && fuse_class(w, r) != DC_CLASS_MOV &&
            (x->on_reduction || fuse_is_heavy(x)));
}

/* Does r repeat an epilogue of a reduction along so many columns that it is computed once for a row? */
static bool is_expected_once(const fusing *w, dc_ref r)
{
    fuse_rows rows;
    return fuse_at(w, r)->op == DC_OP_EXPAND && w->node[fuse_at(w, r)->in[0]].on_reduction &&
           dc_fuse_along_columns(w, r, &rows) && rows.columns > DC_TUNE_REPEATED_COLUMNS;
}

/* A sum over the parts of a contraction (jit/rewrite/split_contraction.h) ends it. */
static bool ends_product(const fusing *w, dc_ref r)
{
    return fuse_is_product(w, r) || (w->groups && fuse_at(w, r)->op == DC_OP_SUM &&
                                     fuse_at(w, fuse_at(w, r)->in[0])->op == DC_OP_DOT);
}

static void measure_operand(fusing *w, dc_ref r, int i)
{
    fuse_node *x = &w->node[r];
    const dc_ref o = fuse_at(w, r)->in[i];
    const fuse_node *in = &w->node[o];
    const bool stored = is_expected_stored(w, o);
    if (fuse_keeps_map(w, r) || fuse_at(w, r)->op == DC_OP_RESHAPE) {
        x->on_reduction |= (fuse_is_reduction(w, o) && !(fuse_is_product(w, o) && in->nuser > 1)) ||
                           (in->on_reduction && !stored);
        x->on_product |= ends_product(w, o) || (in->on_product && !stored);
        x->picks = stored || in->picks < x->picks ? x->picks : in->picks;
    }
    if (stored || (i > 0 && o == fuse_at(w, r)->in[i - 1]))
        return;
    x->ops += in->ops;
    x->costly |= in->costly;
}

/* What recomputing each node would repeat, down to what is expected stored; constants and iota are free. */
void dc_fuse_measure(fusing *w)
{
    for (dc_ref r = 1; r < w->fn->node.n; r++) {
        fuse_node *x = &w->node[r];
        if (!w->live[r] || fuse_class(w, r) == DC_CLASS_SRC || fuse_is_reduction(w, r))
            continue;
        const bool ew = fuse_class(w, r) == DC_CLASS_EW;
        x->ops = dc_fuse_ops(w, r);
        x->picks = dc_fuse_picks(w, r);
        x->costly = ew && (dc_op_row_of(fuse_at(w, r)->op)->flags & DC_OPF_COSTLY) != 0;
        for (int i = 0; i < fuse_reads(w, r) && !is_expected_once(w, r); i++)
            measure_operand(w, r, i);
        if (x->ops > DC_TUNE_GROUP_OPS) /* of expressions that share a lot this counts too many */
            x->ops = DC_TUNE_GROUP_OPS;
    }
}

/* ---- choices --------------------------------------------------------------------------------- */

typedef struct sources { /* values of about its size that one is made of, down to memory */
    const fusing *w;
    uint32_t search; /* its number: of nodes that it has seen */
    int64_t least;   /* elements */
    int n;
} sources;

static void find_sources(sources *s, dc_ref r)
{
    const fusing *w = s->w;
    for (int i = 0; i < fuse_reads(w, r) && s->n < 2; i++) {
        const dc_ref o = fuse_at(w, r)->in[i];
        const dc_node *n = fuse_at(w, o);
        const bool repeats =
            n->op == DC_OP_EXPAND && dc_node_count(fuse_at(w, n->in[0])) < s->least;
        if (repeats || n->op == DC_OP_CONST || n->op == DC_OP_IOTA || dc_node_count(n) < s->least ||
            w->counted[o] == s->search)
            continue;
        w->counted[o] = s->search;
        const fuse_node *x = &w->node[o];
        if (fuse_class(w, o) == DC_CLASS_EW && !(x->nuser > 1 && x->on_reduction))
            find_sources(s, o);
        else
            s->n++;
    }
}

/* Is it out of caches before it is read again, and made of one other value of its size? */
static bool is_far(const fusing *w, dc_ref r)
{
    const int64_t count = dc_node_count(fuse_at(w, r));
    if (count < DC_TUNE_FAR_ELEMENTS)
        return false;
    sources s = {.w = w, .search = ++w->counted[0], .least = count / 4};
    find_sources(&s, r);
    return s.n < 2;
}

/* Of what is in w->node[r].ops. */
dc_choice dc_fuse_choice(const fusing *w, dc_ref r, dc_choice_way way, int64_t times)
{
    return dc_fuse_choice_of(w, r, way, times, w->node[r].ops);
}

dc_choice dc_fuse_choice_of(const fusing *w, dc_ref r, dc_choice_way way, int64_t times,
                            uint32_t ops)
{
    const dc_node *n = fuse_at(w, r);
    dc_choice c = {.ref = r, .way = (uint8_t)way, .ops = ops, .times = times};
    c.elements = dc_node_count(n);
    c.bytes = dc_dtype_size((dc_dtype)n->dtype);
    const bool far = way == DC_CHOICE_KERNELS && is_far(w, r);
    c.stored = dc_choice_again(&c) > dc_choice_moved(&c) * (far ? DC_TUNE_FAR_OPS : 1);
    return c;
}

/* ---- kernels --------------------------------------------------------------------------------- */

typedef struct homes {
    const fusing *w;
    uint32_t search; /* its number: of nodes that it has seen */
    uint32_t n, found[DC_TUNE_HOMES_COUNTED];
} homes;

static void find_homes(homes *h, dc_ref r)
{
    const fuse_node *x = &h->w->node[r];
    for (uint32_t i = 0; i < x->nuser; i++) {
        const dc_ref u = h->w->user[x->first_user + i];
        const uint32_t home = h->w->node[u].home;
        uint32_t k = 0;
        if (home == NO_HOME || h->w->counted[u] == h->search)
            continue;
        h->w->counted[u] = h->search;
        if (home == MANY_HOME) {
            find_homes(h, u);
            continue;
        }
        while (k < h->n && h->found[k] != home)
            k++;
        if (k == h->n && h->n < DC_TUNE_HOMES_COUNTED)
            h->found[h->n++] = home;
    }
}

int64_t dc_fuse_count_homes(const fusing *w, dc_ref r)
{
    homes h = {.w = w, .search = ++w->counted[0]}; /* no node has that place */
    find_homes(&h, r);
    return h.n;
}

/* ---- what f:explain() prints ------------------------------------------------------------------ */

/* Not recorded where all its users are recorded as recomputed. */
static bool goes_with_users(const fusing *w, dc_ref r)
{
    const fuse_node *x = &w->node[r];
    for (uint32_t i = 0; i < x->nuser; i++)
        if (!w->node[w->user[x->first_user + i]].recomputed)
            return false;
    return x->nuser > 0;
}

void dc_fuse_record(fusing *w, dc_choice c)
{
    fuse_node *x = &w->node[c.ref];
    x->recomputed = !c.stored;
    if (c.ops == 0 || (!c.stored && goes_with_users(w, c.ref)))
        return;
    while (fuse_class(w, c.ref) == DC_CLASS_MOV || fuse_class(w, c.ref) == DC_CLASS_SAME)
        c.ref = fuse_at(w, c.ref)->in[0];
    c.elements = dc_node_count(fuse_at(w, c.ref)); /* the value below a movement is named */
    DC_PUSH_IN(w->a, w->choice, c);
}

void dc_fuse_record_stored(fusing *w, dc_ref r, const char *why)
{
    if (*why != '\0')
        DC_PUSH_IN(w->a, w->choice,
                   ((dc_choice){.ref = r, .way = DC_CHOICE_NONE, .stored = true, .but = why}));
}

const char *dc_fuse_map_text(const fusing *w, dc_ref map)
{
    char text[64];
    while (w->node[map].map != FUSE_BLOCKED && w->node[map].map != map)
        map = w->node[map]
                  .map; /* the first on the way from the group that keeps it from being blocked */
    snprintf(text, sizeof text, "read through %s", dc_op_row_of((dc_op)fuse_at(w, map)->op)->name);
    return dc_arena_strdup(w->a, text);
}

/* Not so in the end: recomputed would be cheaper, and it is stored; or no other kernel reads it. */
static bool is_outdone(const fusing *w, const dc_choice *c)
{
    const fuse_node *x = &w->node[c->ref];
    if (c->way == DC_CHOICE_NONE)
        return !x->stored || !dc_fuse_is_read_outside(w, c->ref, x->home);
    return c->times <= 1 || (!c->stored && c->way != DC_CHOICE_ROW && x->stored);
}

/* Groups have been merged since: some values are read in fewer kernels. */
void dc_fuse_settle_choices(fusing *w)
{
    const dc_mark mark = dc_arena_mark(&w->j->scratch);
    uint8_t *recorded =
        DC_NEW_ARRAY(&w->j->scratch, uint8_t, w->fn->node.n); /* by ref: its ways, bits */
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->choice.n; i++) {
        dc_choice c = w->choice.at[i];
        if (c.way == DC_CHOICE_KERNELS)
            c.times = dc_fuse_count_homes(w, c.ref);
        if (is_outdone(w, &c) || (recorded[c.ref] >> c.way & 1) != 0)
            continue;
        recorded[c.ref] |= (uint8_t)(1u << c.way);
        w->choice.at[n++] = c;
    }
    w->choice.n = n;
    dc_arena_rewind(&w->j->scratch, mark);
}
