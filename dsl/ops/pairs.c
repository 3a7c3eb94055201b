/*
 * Operands that both grow where they are broadcast, one by axes that it lacks, the other one along axes of size 1: [4, 1]
 * and [4] make [4, 4], all pairs of elements, where one by one may have been meant.
 */
#include "dsl/base/uses.h"
#include "dsl/ops/apply.h"

#include <stdio.h>

typedef struct growth {
    int missing, stretched, named; /* axes longer than 1; those of both that have names */
    bool same;                     /* but for axes of size 1 the sizes are the same */
} growth;

/* The size of the next axis of t from *k on that is longer than 1; 1 where there is none. */
static int64_t next_size(const dc_type *t, int *k)
{
    while (*k < t->rank && t->dim[*k] == 1)
        (*k)++;
    return *k < t->rank ? t->dim[(*k)++] : 1;
}

static growth growth_of(const dc_type *less, const dc_type *more)
{
    growth g = {.same = true};
    const int lead = more->rank - less->rank;
    for (int k = 0; k < more->rank; k++) {
        if (k < lead && more->dim[k] != 1) {
            g.missing++;
            g.named += more->name[k] != NULL;
        } else if (k >= lead && more->dim[k] == 1 && less->dim[k - lead] != 1) {
            g.stretched++;
            g.named += less->name[k - lead] != NULL;
        }
    }
    for (int k = 0, m = 0; g.same && (k < less->rank || m < more->rank);)
        g.same = next_size(less, &k) == next_size(more, &m);
    return g;
}

/* Where all the axes have names, those say that pairs are meant. */
static bool find_pair(const dc_apply *a, int *left, int *right, growth *g)
{
    for (int i = 0; i < a->n; i++)
        for (int k = i + 1; k < a->n; k++) {
            const dc_type *p = &a->in[i].type, *q = &a->in[k].type;
            if (p->rank == q->rank || a->in[i].h == NULL || a->in[k].h == NULL)
                continue;
            *g = p->rank < q->rank ? growth_of(p, q) : growth_of(q, p);
            *left = i;
            *right = k;
            if (g->missing > 0 && g->stretched > 0 && g->named < g->missing + g->stretched)
                return true;
        }
    return false;
}

bool dc_pairs_any(const dc_apply *a)
{
    int left, right;
    growth g;
    return a->n > 1 && find_pair(a, &left, &right, &g);
}

void dc_pairs_look(lua_State *L, dc_dsl *d, const dc_apply *a, const dc_handle *out,
                   const dc_place *place)
{
    const dc_type type = *dc_handle_type(out);
    const bool test = type.dtype == DC_BOOL;
    char left[DC_TYPE_TEXT], right[DC_TYPE_TEXT], both[DC_TYPE_TEXT], sentence[4 * DC_TYPE_TEXT];
    int i, k;
    growth g;
    if (!find_pair(a, &i, &k, &g) || (!g.same && (test || g.named == 0)))
        return;
    dc_type_print(&type, both, sizeof both);
    if (g.named > 0 && !test)
        dc_error_fact(L, d, DC_ERR_PAIRS, &(dc_fact){.op = a->op, .word = {both}},
                      &(dc_blame){.op = a->op, .in = a->in, .n = a->n, .place = place});
    dc_type_print(&a->in[i].type, left, sizeof left);
    dc_type_print(&a->in[k].type, right, sizeof right);
    snprintf(sentence, sizeof sentence, "%s: %s and %s make %s, each element with each", a->op,
             left, right, both);
    dc_uses_note(
        d, place->where, "pairs", a->op, sentence,
        "x:reshape(y.shape) is one by one, y:reshape(1, -1) says that all pairs are meant");
}
