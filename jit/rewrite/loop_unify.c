/*
 * Equal parts of a loop to one: constants and xs by their operands; carries that begin alike, as long as they go on alike,
 * which is found by taking them for one and looking at their next values; then carries that stay what they are become
 * constants, which may make more of them equal.
 */
#include "jit/rewrite/loops_impl.h"

#include <string.h>

/* Of slots with the same operand, a parameter is that of the first one. */
static bool find_same(const dc_loop_slot *slot, uint32_t n, dc_ref *same)
{
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i && same[slot[i].param] == 0; k++)
            if (slot[k].in == slot[i].in && slot[k].param != slot[i].param) {
                same[slot[i].param] = slot[k].param;
                any = true;
            }
    return any;
}

/* of: the slots with the parameters as they were. */
static void drop_same(dc_loop_slot *slot, uint32_t *n, const dc_loop_slot *of, const dc_ref *same)
{
    uint32_t to = 0;
    for (uint32_t i = 0; i < *n; i++)
        if (same[of[i].param] == 0)
            slot[to++] = slot[i];
    *n = to;
}

/* With lists of its own, and the same body. */
static dc_loopedit copy_of(const dc_loopedit *w)
{
    dc_loopedit c = *w;
#define COPY(list)                                                                  \
    do {                                                                            \
        c.list.cap = w->list.n + 1;                                                 \
        c.list.at = dc_arena_alloc(&w->j->scratch, c.list.cap * sizeof *c.list.at); \
        if (w->list.n > 0)                                                          \
            memcpy(c.list.at, w->list.at, w->list.n * sizeof *c.list.at);           \
    } while (0)
    COPY(constant);
    COPY(carry);
    COPY(x);
    COPY(y);
#undef COPY
    return c;
}

/* Merges loops in the body, which may make more values equal. All parameters are those of slots. */
static void merge_inside(dc_loopedit *w)
{
    dc_func *b = w->body;
    for (uint32_t i = 0; i < w->carry.n; i++)
        DC_PUSH(b->result, w->carry.at[i].next);
    for (uint32_t i = 0; i < w->y.n; i++)
        DC_PUSH(b->result, w->y.at[i].value);
    dc_func *m = dc_loop_merge(w->j, b);
    if (m != NULL) {
#define PARAM(r) ((r) = m->param.at[dc_node_at(b, (r))->attr[0]])
        PARAM(w->i);
        for (uint32_t i = 0; i < w->constant.n; i++)
            PARAM(w->constant.at[i].param);
        for (uint32_t i = 0; i < w->x.n; i++)
            PARAM(w->x.at[i].param);
        for (uint32_t i = 0; i < w->carry.n; i++)
            PARAM(w->carry.at[i].param);
#undef PARAM
        for (uint32_t i = 0; i < w->carry.n; i++)
            w->carry.at[i].next = m->result.at[i];
        for (uint32_t i = 0; i < w->y.n; i++)
            w->y.at[i].value = m->result.at[w->carry.n + i];
        dc_func_drop(b);
        w->body = m;
    }
    w->body->result.n = 0;
}

/* Carries of one class go on together; those whose next values differ make classes of their own. True: none did. */
static bool refine(const dc_loopedit *c, uint32_t *class)
{
    bool stable = true;
    uint32_t *finer = DC_NEW_ARRAY(&c->j->scratch, uint32_t, c->carry.n);
    for (uint32_t k = 0; k < c->carry.n; k++) {
        finer[k] = k;
        for (uint32_t i = k; i-- > 0;)
            if (class[i] == class[k] && c->carry.at[i].next == c->carry.at[k].next)
                finer[k] = i;
        stable = stable && finer[k] == class[k];
    }
    memcpy(class, finer, c->carry.n * sizeof *class);
    return stable;
}

/* Carries that begin alike are taken for one until they turn out not to go on alike. */
static dc_loopedit with_classes(const dc_loopedit *w, uint32_t *class, dc_ref *same)
{
    for (;;) {
        dc_loopedit c = copy_of(w);
        for (uint32_t k = 0; k < w->carry.n; k++)
            same[w->carry.at[k].param] = class[k] == k ? 0 : w->carry.at[class[k]].param;
        dc_loop_remake_beside(&c, same, NULL);
        merge_inside(&c);
        if (c.carry.n == 0 || refine(&c, class))
            return c;
        dc_func_drop(c.body);
    }
}

static bool unify_operands(dc_loopedit *w)
{
    dc_arena *a = &w->j->scratch;
    dc_ref *same = DC_NEW_ARRAY(a, dc_ref, w->body->node.n);
    uint32_t *class = DC_NEW_ARRAY(a, uint32_t, w->carry.n);
    bool any = find_same(w->constant.at, w->constant.n, same);
    any = find_same(w->x.at, w->x.n, same) || any;
    for (uint32_t k = 0; k < w->carry.n; k++) {
        class[k] = k;
        for (uint32_t i = k; i-- > 0;)
            if (w->carry.at[i].in == w->carry.at[k].in)
                class[k] = i;
        any = any || class[k] != k;
    }
    if (!any)
        return false;
    dc_loopedit c = with_classes(w, class, same);
    const uint32_t before = w->constant.n + w->carry.n + w->x.n;
    for (uint32_t i = 0; i < c.nresult; i++)
        if (c.result[i].kind == DC_LOOP_CARRIED)
            c.result[i].at = class[c.result[i].at];
    drop_same(c.constant.at, &c.constant.n, w->constant.at, same);
    drop_same(c.x.at, &c.x.n, w->x.at, same);
    bool *stays = DC_NEW_ARRAY(a, bool, c.carry.n);
    for (uint32_t k = 0; k < c.carry.n; k++)
        stays[k] = class[k] == k;
    dc_loop_keep_carries(&c, stays);
    dc_func_drop(w->body);
    *w = c;
    return w->constant.n + w->carry.n + w->x.n < before;
}

/* The same constant, in the loop's function and in the body? */
static bool same_const(const dc_loopedit *w, dc_ref in, dc_ref next)
{
    const dc_node *a = dc_node_at(w->f, in), *b = dc_node_at(w->body, next);
    return a->op == DC_OP_CONST && b->op == DC_OP_CONST && a->attr[0] == b->attr[0];
}

/* Carries that stay what they are become constants. The flag of a test is looked at as a carry. */
static bool free_carries(dc_loopedit *w)
{
    bool *stays = DC_NEW_ARRAY(&w->j->scratch, bool, w->carry.n), any = false;
    for (uint32_t k = 0; k < w->carry.n; k++) {
        const dc_loop_slot s = w->carry.at[k];
        stays[k] = (k == 0 && (w->flags & DC_LOOP_TEST) != 0) ||
                   (s.next != s.param && !same_const(w, s.in, s.next));
        if (stays[k])
            continue;
        any = true;
        DC_PUSH_IN(&w->j->scratch, w->constant, ((dc_loop_slot){.in = s.in, .param = s.param}));
        for (uint32_t i = 0; i < w->nresult; i++)
            if (w->result[i].kind == DC_LOOP_CARRIED && w->result[i].at == k)
                w->result[i] = (dc_loop_result){DC_LOOP_VALUE, 0, s.in};
    }
    dc_loop_keep_carries(w, stays);
    return any;
}

static void unify_ys(dc_loopedit *w)
{
    for (uint32_t i = 0; i < w->nresult; i++) {
        dc_loop_result *r = &w->result[i];
        for (uint32_t k = 0; r->kind == DC_LOOP_STACKED && k < r->at; k++)
            if (w->y.at[k].value == w->y.at[r->at].value && w->y.at[k].kept == w->y.at[r->at].kept)
                r->at = k;
    }
}

void dc_loop_unify(dc_loopedit *w)
{
    bool more = true;
    while (more) {
        more = unify_operands(w);
        more = free_carries(w) || more;
    }
    unify_ys(w);
    dc_loop_drop_dead(w);
}
