/*
 * Lowering of attention (jit/rewrite/attention.h): a work item has a block of rows of the results, which lie side by side as
 * lanes of vectors, and goes through all terms in blocks. For a block of terms it computes tiles [terms][rows]: of the scores
 * and whatever else is contracted, then, by elements, of the weights; and adds what they contribute to its results,
 * [columns][rows]. So everything is vertical: maxima and sums of rows are those of lanes, the operands that terms have are
 * read element by element and broadcast, and only what the rows have is copied, transposed, once.
 *
 * With a maximum of its own, a row goes by the largest score so far; what was added up is corrected when that grows. A row of
 * nothing but -inf goes by 0 instead, and is corrected at the end.
 */
#include "jit/lower/lower_attention_impl.h"

/* Terms of a block: such a number of them, near what the caches want, that no block has fewer. */
static int64_t step_of(int64_t terms)
{
    int64_t best = dc_min_i64(terms, DC_TUNE_ATTENTION_TERMS);
    bool found = false;
    for (int64_t n = DC_TUNE_ATTENTION_TERMS * 5 / 4; n >= DC_TUNE_ATTENTION_TERMS / 2; n--)
        if (terms % n == 0 &&
            (!found || (best % dc_attend_strip_of(best) != 0 && n % dc_attend_strip_of(n) == 0))) {
            best = n;
            found = true;
        }
    return best;
}

/* The value where the lane is a row, else 0. */
static dc_vx within(attending *x, dc_ix lane, dc_vx v)
{
    dc_kernel *k = x->w->k;
    const dc_ix row = row_of_part(x, plus(x, x->first_row, lane));
    const dc_vx test = op2(x, DC_OP_LT, dc_vx_index(k, row, DC_I64),
                           dc_vx_index(k, dc_ix_const(k, x->part_rows), DC_I64));
    return choose(x, test, v, number(x, 0));
}

/* The weights of the block, and the sums of exponentials. */
static void find_weights(attending *x)
{
    const dc_attention_kernel *a = x->a;
    nest loops = {0};
    const bool sums = x->sum != DC_NO_BUF;
    const dc_ix y = dc_attend_loop(x, "y", x->height, DC_ROLE_NONE, false, &loops),
                v = dc_attend_lanes(x, &loops);
    dc_stmt *s = dc_stmt_set(x->w->k, (uint32_t)(results_of(x) + sums));
    for (int i = 0; i < results_of(x); i++) {
        const dc_ref r = dc_attention_weights(x->w->fn, a, i);
        x->element[i] = dc_attend_element(x, r, y, v);
        const bool behind = i == a->n && x->covers; /* rows behind the last one count across */
        const dc_vx value = behind ? within(x, v, x->element[i]) : x->element[i];
        s->put[i] = (dc_put){x->weight[i], place(x, y, v), value};
    }
    if (a->max == 0)
        x->axis = (axes){.term = loops.axis[0], .lane = loops.axis[1]};
    if (sums)
        s->put[a->n] = (dc_put){
            x->sum, v, op2(x, DC_OP_ADD, load(x, x->sum, v), dc_attend_element(x, a->exp, y, v))};
    dc_attend_append(x, dc_lower_wrap(x->w->k, &loops, s));
}

/* ---- blocks ----------------------------------------------------------------------------------- */

/* Terms from `first` on. */
static void add_block(attending *x, dc_ix first, int64_t height)
{
    x->first_term = first;
    x->height = height;
    for (int i = 0; i < x->a->ninner; i++) {
        dc_attend_contract(x, i, -1);
        dc_attend_stands_in(x, x->a->inner[i], x->tile[i], false);
    }
    if (x->a->max != 0)
        dc_attend_find_maxima(x);
    find_weights(x);
    for (int i = 0; i < x->a->n; i++)
        dc_attend_contract(x, -1, i);
    if (x->a->across)
        dc_attend_contract_across(x);
    if (x->a->max != 0)
        dc_attend_leaves(x, x->a->score);
    for (int i = 0; i < x->a->ninner; i++)
        dc_attend_leaves(x, x->a->inner[i]);
}

static void add_blocks(attending *x)
{
    const int64_t all = x->weights->dim[x->a->y], whole = all / x->step, rest = all % x->step;
    if (whole > 0) {
        nest outer = {0};
        dc_stmt *body = NULL, **last = x->last;
        const dc_ix b = dc_attend_loop(x, "b", whole, DC_ROLE_NONE, false, &outer);
        x->last = &body;
        add_block(x, dc_ix_mul(x->w->k, b, x->step), x->step);
        x->last = last;
        dc_stmt *blocks = dc_lower_wrap(x->w->k, &outer, body);
        dc_attend_bound_loop(x, blocks);
        dc_attend_append(x, blocks);
    }
    if (rest > 0)
        add_block(x, dc_ix_const(x->w->k, whole * x->step), rest);
}

/* What the rows have, transposed; totals at zero. */
static void begin_rows(attending *x)
{
    dc_kernel *k = x->w->k;
    for (int i = 0; i < x->a->ninner; i++) {
        nest loops = {0};
        const dc_ix c = dc_attend_loop(x, "c", dc_attend_features_of(x, x->a->inner[i]),
                                       DC_ROLE_NONE, false, &loops);
        const dc_ix v = dc_attend_lanes(x, &loops);
        const dc_vx value = dc_attend_operand(x, x->a->inner[i], true, plus(x, x->first_row, v), c);
        dc_attend_append(x, dc_lower_wrap(k, &loops, set(x, x->rows[i], place(x, c, v), value)));
    }
    for (int i = 0; i < x->a->n; i++) {
        nest loops = {0};
        const dc_ix n =
            dc_attend_loop(x, "n", dc_attend_columns_of(x, i), DC_ROLE_NONE, false, &loops);
        const dc_ix v = dc_attend_lanes(x, &loops);
        dc_attend_append(
            x, dc_lower_wrap(k, &loops, set(x, x->total[i], place(x, n, v), number(x, 0))));
    }
    if (x->a->across)
        dc_attend_turn_rows(x);
    if (x->a->max != 0)
        dc_attend_begin_maxima(x);
}

static void store_rows(attending *x)
{
    lowering *w = x->w;
    for (uint32_t o = 0; o < w->group->nout; o++) {
        const dc_ref r = w->group->out[o];
        const dc_node *n = dc_node_at(w->fn, r);
        int which = -1;
        if (o == x->across)
            continue;
        for (int i = 0; i < x->a->n; i++)
            which = x->a->top[i] == r ? i : which;
        nest loops = {0};
        dc_ix pos[DC_MAX_RANK], row;
        if (which >= 0) {
            const dc_dot d = dc_dot_of(w->fn, dc_node_at(w->fn, x->a->dot[which]));
            const dc_ix c =
                dc_attend_loop(x, "n", dc_attend_columns_of(x, which), DC_ROLE_NONE, false, &loops);
            const dc_ix v = dc_attend_lanes(x, &loops);
            row = plus(x, x->first_row, v);
            w->column = place(x, c, v);
            for (int i = 0; i < d.nbatch; i++)
                pos[i] = x->batch[d.batch[0][i]];
            pos[d.nbatch] = row;
            pos[d.nbatch + 1] = c;
        } else { /* of its rows, which may have other dims */
            dc_ix at[DC_MAX_RANK];
            int64_t dim[DC_MAX_RANK];
            int rank = 0;
            row = plus(x, x->first_row, dc_attend_lanes(x, &loops));
            for (int i = 0; i < x->weights->rank; i++)
                if (i != x->a->y) {
                    at[rank] = i == x->a->x ? row : x->batch[i];
                    dim[rank++] = x->weights->dim[i];
                }
            dc_lower_at(w, n, rank, dim, at, pos);
        }
        const dc_vx v = dc_lower_as_stored(w, dc_lower_node(w, r, pos), (dc_dtype)n->dtype);
        dc_stmt *store = set(x, o, dc_lower_linear(w->k, n, pos), v);
        store->pred = is_row(x, row);
        dc_attend_append(x, dc_lower_wrap(w->k, &loops, store));
    }
}

/* A block of rows through all terms. */
static void add_rows(attending *x)
{
    begin_rows(x);
    add_blocks(x);
    if (x->a->max != 0)
        dc_attend_end_maxima(x);
    if (x->a->sum != 0)
        dc_attend_stands_in(x, x->a->sum, x->sum, true);
    for (int i = 0; i < x->a->n; i++)
        dc_attend_stands_in(x, x->a->dot[i], x->total[i], false);
    store_rows(x);
    for (int i = 0; i < x->a->n; i++)
        dc_attend_leaves(x, x->a->dot[i]);
    if (x->a->max != 0)
        dc_attend_leaves(x, x->a->max);
    if (x->a->sum != 0)
        dc_attend_leaves(x, x->a->sum);
}

/* The loop over batches, each with so many work items: *item, of its batch. */
static void over_batches(attending *x, int64_t items, nest *loops, dc_ix *item)
{
    dc_kernel *k = x->w->k;
    int64_t dim[DC_MAX_RANK], batches = 1;
    for (int i = 0; i < x->weights->rank; i++) {
        dim[i] = i == x->a->x || i == x->a->y ? 1 : x->weights->dim[i];
        batches *= dim[i];
    }
    const dc_ix g = dc_attend_loop(x, "g", batches * items, DC_ROLE_ROW, false, loops);
    dc_lower_delinear(k, dc_ix_div(k, g, items), x->weights->rank, dim, x->batch);
    *item = dc_ix_mod(k, g, items);
}

static void first_row_of(attending *x, int64_t begin, int64_t count, dc_ix block)
{
    dc_kernel *k = x->w->k;
    const dc_ix row = dc_ix_mul(k, plus(x, dc_ix_const(k, begin), block), WIDTH);
    x->first_row = plus(x, row, dc_ix_mul(k, x->part, x->part_rows));
    x->covers = (begin + count) * WIDTH > x->part_rows;
}

/* So many blocks of rows, from this one on: a work item has one. */
static dc_stmt *work(attending *x, int64_t begin, int64_t count)
{
    nest loops = {0};
    dc_ix block;
    dc_stmt *body = NULL;
    over_batches(x, count, &loops, &block);
    x->part = dc_ix_const(x->w->k, 0);
    first_row_of(x, begin, count, block);
    x->last = &body;
    add_rows(x);
    return dc_lower_wrap(x->w->k, &loops, body);
}

/* The same one after the other. */
static void add_row_blocks(attending *x, int64_t begin, int64_t count)
{
    nest loops = {0};
    dc_stmt *body = NULL, **last = x->last;
    const dc_ix block = dc_attend_loop(x, "r", count, DC_ROLE_NONE, false, &loops);
    first_row_of(x, begin, count, block);
    x->last = &body;
    add_rows(x);
    x->last = last;
    dc_attend_append(x, dc_lower_wrap(x->w->k, &loops, body));
}

/* With a result across a work item has all rows of a part, whose first `whole` blocks are not tested. */
static dc_stmt *work_across(attending *x, int64_t whole, int64_t all)
{
    nest loops = {0};
    dc_stmt *body = NULL;
    over_batches(x, dc_max_i64(x->a->parts, 1), &loops, &x->part);
    x->last = &body;
    dc_attend_clear_across(x);
    add_row_blocks(x, 0, whole);
    if (all > whole)
        add_row_blocks(x, whole, all - whole);
    dc_attend_finish_across(x);
    return dc_lower_wrap(x->w->k, &loops, body);
}

void dc_lower_attention(lowering *w)
{
    const dc_attention_kernel *a = w->group->attention;
    const dc_node *dot = dc_node_at(w->fn, a->dot[0]);
    attending x = {.w = w, .a = a, .weights = dc_node_at(w->fn, dot->in[0])};
    x.step = step_of(x.weights->dim[a->y]);
    const bool wide = w->groups->vector_bytes == 0 || w->groups->vector_bytes >= 64;
    x.lanes =
        wide ? WIDTH : DC_TUNE_ATTENTION_LANES; /* STRIP times as many sums stay in registers */
    int64_t flops = 0;
    for (int i = 0; i < a->ninner; i++) {
        const int64_t features = dc_attend_features_of(&x, a->inner[i]);
        x.rows[i] = dc_attend_local(&x, "rows", features);
        x.tile[i] = dc_attend_local(&x, "tile", x.step);
        flops += 2 * features;
    }
    for (int i = 0; i < a->n; i++) {
        x.total[i] = dc_attend_local(&x, "total", dc_attend_columns_of(&x, i));
        x.weight[i] = i < a->ninner ? x.tile[i] : dc_attend_local(&x, "weight", x.step);
        flops += 2 * dc_attend_columns_of(&x, i);
    }
    x.turned = x.across = DC_NO_BUF;
    if (a->across) {
        const int64_t columns = dc_attend_columns_of(&x, a->n);
        x.turned = dc_attend_local(&x, "turned", columns);
        x.weight[a->n] = dc_attend_local(&x, "weight", x.step);
        for (uint32_t o = 0; o < w->group->nout; o++)
            x.across = w->group->out[o] == a->top[a->n] ? o : x.across;
        flops += 2 * columns;
    }
    x.strip =
        dc_buffer_new(w->k, "strip", kind_of(&x), STRIP * x.lanes, DC_SCOPE_LOCAL, DC_MODE_OUT);
    x.max = x.next = x.base = x.factor = x.sum = DC_NO_BUF;
    if (a->max != 0) {
        x.max = dc_attend_local(&x, "max", 1);
        x.next = dc_attend_local(&x, "next", 1);
        x.base = dc_attend_local(&x, "base", 1);
        x.factor = dc_attend_local(&x, "factor", 1);
    }
    if (a->sum != 0)
        x.sum = dc_attend_local(&x, "sum", 1);
    w->k->flops = dc_node_count(x.weights) * flops;
    /* where there are many, those that are whole are not tested for rows behind the last one */
    x.part_rows = x.weights->dim[a->x] / dc_max_i64(a->parts, 1);
    const int64_t all = (x.part_rows + WIDTH - 1) / WIDTH;
    const bool apart = x.part_rows % WIDTH != 0 && all >= DC_TUNE_ATTENTION_APART;
    const int64_t whole = apart ? all - 1 : all;
    if (a->across) {
        w->k->root = work_across(&x, whole, all);
        return;
    }
    w->k->root = work(&x, 0, whole);
    w->k->root->next = apart ? work(&x, whole, 1) : NULL;
}
