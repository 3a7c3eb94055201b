/*
 * Fusion (jit/fuse/fuse.h): decides which nodes get memory and which kernel stores them.
 *
 * One walk from users to producers (the model: fuse_impl.h). When a node is met, every user of it has a home:
 * the group it is computed in (or several), and an access map in it. Then
 *
 *   - a stored node joins the group of a user that reads it under blocked maps, if the shapes agree
 *     and the group waits for no other that reads the node; else it starts a group;
 *   - a reduction or product that all its users read under blocked maps of one group is computed
 *     there, if that group has none yet or has the same rows; else it is stored by a group of its own;
 *   - other nodes are computed in place where they are used, unless a guard objects.
 *
 * A group becomes row-wise (fuse_rows.c) once it has a reduction over the last axes: softmax, layer norm
 * and their gradients end as one group each.
 *
 * Guards, each against a measured way to be slow:
 *
 *   - several homes: recomputed only where that costs less than storing (fuse_cost.c);
 *   - several maps in one group, such as the taps of a stencil: the same;
 *   - under an expand, where a row would be recomputed for each row of the result: the same,
 *     unless the group is row-wise with those rows;
 *   - rows: too few of them would leave threads idle (fuse_rows.c);
 *   - the epilogue of a product is stored with the product, not in a row-wise group;
 *   - large groups: after GROUP_OPS operations, each counted once per map, another begins; after
 *     fewer where the device takes fewer buffers than a kernel would have;
 *   - operands of contractions are read many times, and are plain memory (fuse_operands.c).
 */
#include "jit/fuse/fuse_impl.h"

#include <string.h>

static void find_live(fusing *w)
{
    for (uint32_t i = 0; i < w->fn->result.n; i++)
        w->live[w->fn->result.at[i]] = true;
    for (dc_ref r = w->fn->node.n; r-- > 1;)
        for (int i = 0; w->live[r] && i < fuse_reads(w, r); i++)
            w->live[fuse_at(w, r)->in[i]] = true;
}

/* Users -------------------------------------------------------------------------------------- */

static void list_users(fusing *w)
{
    const uint32_t n = w->fn->node.n;
    uint32_t total = 0;
    for (dc_ref r = 1; r < n; r++)
        for (int i = 0; w->live[r] && i < fuse_reads(w, r); i++, total++)
            w->node[fuse_at(w, r)->in[i]].nuser++;
    w->user = DC_NEW_ARRAY(w->a, dc_ref, total + 1);
    uint32_t next = 0;
    for (dc_ref r = 1; r < n; r++) {
        w->node[r].first_user = next;
        next += w->node[r].nuser;
        w->node[r].nuser = 0;
    }
    for (dc_ref r = 1; r < n; r++)
        for (int i = 0; w->live[r] && i < fuse_reads(w, r); i++) {
            fuse_node *x = &w->node[fuse_at(w, r)->in[i]];
            w->user[x->first_user + x->nuser++] = r;
        }
}

/* Homes -------------------------------------------------------------------------------------- */

typedef struct demand { /* what all users together ask of a node */
    uint32_t home, maps;
    dc_ref map;       /* see fuse_node */
    uint8_t operand;  /* bits of fuse_operand */
    bool expanded;    /* by a broadcast that keeps no blocked map */
    int64_t repeats;  /* by an expand, of each element; else 1 */
    dc_ref broadcast; /* an expand along trailing axes, under a blocked map; 0 none */
} demand;

/* Does an expand repeat its operand along its last axes only? Which these are. */
bool dc_fuse_along_columns(const fusing *w, dc_ref u, fuse_rows *rows)
{
    const dc_node *n = fuse_at(w, u), *a = fuse_at(w, n->in[0]);
    int split = 0;
    while (split < n->rank && a->dim[split] == n->dim[split])
        split++;
    for (int i = split; i < n->rank; i++)
        if (a->dim[i] != 1)
            return false;
    const int64_t count = dc_node_count(a);
    *rows = (fuse_rows){u, split, count, count > 0 ? dc_node_count(n) / count : 0};
    return true;
}

bool dc_fuse_keeps_blocked(const fusing *w, dc_ref r)
{
    fuse_rows rows;
    switch (fuse_class(w, r)) {
    case DC_CLASS_EW:
    case DC_CLASS_SAME:
        return true;
    case DC_CLASS_MOV:
        return fuse_at(w, r)->op == DC_OP_RESHAPE ||
               (fuse_at(w, r)->op == DC_OP_EXPAND && dc_fuse_along_columns(w, r, &rows));
    case DC_CLASS_RED:
        return dc_fuse_is_row_wise(w, r);
    case DC_CLASS_SRC:
    case DC_CLASS_IDX:
    case DC_CLASS_HST:
    case DC_CLASS_COM:
    case DC_CLASS_FFT:
    case DC_CLASS_CON:
    case DC_CLASS_PART:
    case DC_CLASS_CTL:
        break;
    }
    return false;
}

static demand demand_of(const fusing *w, dc_ref r)
{
    const fuse_node *x = &w->node[r];
    demand d = {.home = NO_HOME, .repeats = 1};
    const int64_t count = dc_node_count(fuse_at(w, r));
    for (uint32_t i = 0; i < x->nuser; i++) {
        const dc_ref u = w->user[x->first_user + i];
        const fuse_node *y = &w->node[u];
        const bool blocked = fuse_reads_blocked(w, u);
        const bool expand = fuse_at(w, u)->op == DC_OP_EXPAND;
        const dc_ref map = blocked || fuse_keeps_map(w, u) ? y->map : u;
        d.home = d.home == NO_HOME || d.home == y->home ? y->home : MANY_HOME;
        d.expanded |= expand && !blocked;
        if (expand && count > 0)
            d.repeats = dc_max_i64(d.repeats, dc_node_count(fuse_at(w, u)) / count);
        if (expand && blocked)
            d.broadcast = u;
        if (w->asked[map] != r) {
            w->asked[map] = r;
            d.map = d.maps == 0 ? map : r;
            d.maps += y->maps;
        }
        d.operand |= dc_fuse_operand_of(w, u, r);
    }
    return d;
}

/* Is there no room in a group for an operation under so many maps? */
bool dc_fuse_is_full(const fusing *w, uint32_t g, uint32_t maps)
{
    return g < MANY_HOME && w->group.at[g].size + maps > w->most;
}

/* Can r, repeated along the columns of its group, be computed once for each row there? */
static bool once_for_row(const fusing *w, dc_ref r, const demand *d, fuse_rows *rows)
{
    return d->broadcast != 0 && d->home < MANY_HOME && d->map == FUSE_BLOCKED &&
           (w->node[r].on_reduction || w->group.at[d->home].rows > 0) &&
           dc_fuse_along_columns(w, d->broadcast, rows) &&
           dc_fuse_may_be_row_wise(w, d->home, rows);
}

/* The epilogue of a product, read by a row-wise group, where no product is computed. */
static bool goes_with_product(const fusing *w, dc_ref r, const demand *d)
{
    return d->home < MANY_HOME && w->group.at[d->home].rows > 0 && w->node[r].on_product;
}

/* Why r is stored because of what it is, whatever it costs; NULL: it need not be. */
static const char *why_by_kind(fusing *w, dc_ref r, const demand *d)
{
    if (w->level == 0 || w->is_result[r] || fuse_is_part(w, r))
        return FUSE_GIVEN;
    if (w->node[r].once)
        return "compared with what is selected of it";
    if ((d->operand & OPERAND_MEMORY) != 0)
        return "operand of a loop, a branch or the host";
    if (fuse_is_scatter(w, r))
        return "a scatter is a kernel of its own";
    if (fuse_is_transform(w, r))
        return "a transform is a kernel of its own";
    if (fuse_class(w, r) == DC_CLASS_SAME)
        return NULL;
    if (dc_fuse_stores_update(w, r))
        return "an update of what it is made of";
    if (dc_fuse_stores_operand(w, r, d->operand))
        return "operand of a contraction";
    return dc_fuse_hinders_tiles(w, r, d->home) ? "gathered by positions, beside a contraction"
                                                : NULL;
}

/* Read where it is used, or read under another name. */
static bool is_read(const fusing *w, dc_ref r)
{
    return fuse_class(w, r) == DC_CLASS_SRC || fuse_class(w, r) == DC_CLASS_SAME;
}

/* Several kernels may want it repeated: what it repeats is stored, if anything. */
static bool is_repetition(const fusing *w, dc_ref r)
{
    return fuse_at(w, r)->op == DC_OP_EXPAND && !dc_fuse_is_memory(w, r);
}

/*
 * Recompute or store: true if there is a choice, and what it is. A number of rank 0 is recomputed
 * unless it is costly: a loop computes it once.
 */
static bool choose(const fusing *w, dc_ref r, const demand *d, dc_choice *c)
{
    const fuse_node *x = &w->node[r];
    const bool number = dc_node_count(fuse_at(w, r)) <= 1 && !x->costly;
    const bool repeated = (d->expanded || d->broadcast != 0) && !number;
    fuse_rows rows;
    *c = (dc_choice){0};
    if (fuse_is_reduction(w, r))
        return false;
    if (repeated && !once_for_row(w, r, d, &rows))
        *c = dc_fuse_choice(w, r, DC_CHOICE_BROADCAST, d->repeats);
    if (c->stored)
        return true;
    if (d->home == MANY_HOME && is_repetition(w, r))
        return false;
    if (d->home == MANY_HOME && (!x->on_reduction || fuse_class(w, r) == DC_CLASS_MOV))
        *c = dc_fuse_choice(w, r, DC_CHOICE_KERNELS, dc_fuse_count_homes(w, r));
    else if (d->home < MANY_HOME && d->maps > 1 && !number)
        *c = dc_fuse_choice(w, r, DC_CHOICE_MAPS, d->maps);
    return c->ref != 0;
}

/* Why r is stored; NULL: it need not be. Records a choice, if there is one. */
static const char *why_stored(fusing *w, dc_ref r, const demand *d)
{
    dc_choice c;
    const char *why = why_by_kind(w, r, d);
    if (why != NULL || is_read(w, r) || dc_needs_is_mask(&w->needs, r))
        return why;
    if (choose(w, r, d, &c)) {
        dc_fuse_record(w, c);
        if (c.stored)
            return FUSE_GIVEN;
    }
    if (d->home == MANY_HOME) /* else its sum would have to be stored */
        return w->node[r].on_reduction && fuse_class(w, r) != DC_CLASS_MOV
                   ? "an epilogue of a reduction, read in several kernels"
                   : NULL;
    if (dc_fuse_turns_backwards(w, r, d->map))
        return "transposed by its user, and read backwards";
    if (goes_with_product(w, r, d))
        return "an epilogue of a contraction, read by a row-wise kernel";
    return dc_fuse_is_full(w, d->home, d->maps) ? "limit of operations in a kernel" : NULL;
}

/* Why reduction r is not computed in the group that reads it; NULL: it is. */
static const char *why_not_reduced(const fusing *w, dc_ref r, const demand *d)
{
    if (d->home >= MANY_HOME)
        return "a reduction, read in several kernels";
    if (w->group.at[d->home].g.attention != NULL)
        return "read by attention";
    if (d->map == r)
        return "read under several access maps";
    if (d->map != FUSE_BLOCKED)
        return dc_fuse_map_text(w, d->map);
    return dc_fuse_refuses_reduce(w, d->home, r);
}

/* Assignment --------------------------------------------------------------------------------- */

static uint32_t new_group(fusing *w, dc_ref r)
{
    fuse_group g = {.points = dc_node_count(fuse_at(w, r))};
    g.g.is_join = fuse_at(w, r)->op == DC_OP_JOIN;
    g.never_row_wise = fuse_is_product(w, r) || w->node[r].on_product;
    g.g.out = DC_NEW_ARRAY(w->a, dc_ref, 1);
    g.g.out[g.g.nout++] = r;
    DC_PUSH_IN(w->a, w->group, g);
    return w->group.n - 1;
}

static void add_output(fusing *w, uint32_t g, dc_ref r)
{
    dc_group *x = &w->group.at[g].g;
    dc_ref *out = DC_NEW_ARRAY(w->a, dc_ref, x->nout + 1);
    memcpy(out, x->out, x->nout * sizeof *out);
    out[x->nout++] = r;
    x->out = out;
}

static void set_home(fusing *w, dc_ref r, uint32_t home)
{
    fuse_node *x = &w->node[r];
    x->home = home;
    if (home >= MANY_HOME)
        return;
    w->group.at[home].size += x->maps;
    x->next_member = w->group.at[home].member;
    w->group.at[home].member = r;
}

/* Computed where it is used. */
static void stay(fusing *w, dc_ref r, const demand *d)
{
    fuse_node *x = &w->node[r];
    fuse_rows rows;
    if (fuse_class(w, r) == DC_CLASS_SAME || dc_fuse_folds_operand(w, r, d->operand) ||
        dc_fuse_masks_operand(w, r, d->operand))
        x->operand = d->operand & ~OPERAND_OTHER;
    else if (fuse_class(w, r) == DC_CLASS_MOV || fuse_at(w, r)->op == DC_OP_CAST)
        x->operand = d->operand & (OPERAND_GATHERED | OPERAND_COLUMNS);
    x->map = d->map;
    x->maps = d->maps;
    if (fuse_is_heavy(x) && once_for_row(w, r, d, &rows))
        dc_fuse_make_row_wise(w, d->home, &rows);
    set_home(w, r, d->home);
}

static void place_host(fusing *w, dc_ref r)
{
    const uint32_t g = new_group(w, r);
    w->group.at[g].g.control = r;
    w->group.at[g].never_row_wise = true;
    w->node[r].maps = 1;
    w->node[r].stored = true;
    set_home(w, r, g);
}

/* Picks are met before what they pick from. */
static void place_control(fusing *w, dc_ref r)
{
    const bool pick = fuse_at(w, r)->op == DC_OP_PICK;
    const dc_ref control = pick ? fuse_at(w, r)->in[0] : r;
    fuse_node *x = &w->node[control];
    w->node[r].maps = 1;
    w->node[r].stored = pick;
    if (!pick)
        return;
    if (x->home == NO_HOME) {
        const uint32_t g = new_group(w, r);
        w->group.at[g].g.control = control;
        w->group.at[g].never_row_wise = true;
        set_home(w, control, g);
    } else {
        add_output(w, x->home, r);
    }
    set_home(w, r, x->home);
}

/* Is r computed or stored by kernels of attention? Tops are met first. */
static bool place_attention(fusing *w, dc_ref r)
{
    const dc_attention_place place = dc_attention_place_of(&w->attention, r);
    if (place == DC_ATTENTION_NOT)
        return false;
    w->node[r].maps = 1;
    if (place != DC_ATTENTION_KEPT) {
        const demand d = demand_of(w, r);
        stay(w, r, &d);
        return true;
    }
    const uint32_t number = w->attention.kernel_of[r];
    const dc_attention_kernel *k = &w->attention.at[number];
    uint32_t *home = &w->attention_home[number];
    bool top = false;
    for (int i = 0; i < k->n + k->across; i++)
        top |= r == k->top[i];
    const bool stored = top || (r == k->max && k->stores_max) || (r == k->sum && k->stores_sum);
    if (*home == NO_HOME) {
        *home = new_group(w, r);
        w->group.at[*home].g.attention = k;
        w->group.at[*home].never_row_wise = true;
    } else if (stored) {
        add_output(w, *home, r);
    }
    w->node[r].stored = stored;
    if (stored)
        dc_fuse_record_stored(w, r, FUSE_GIVEN);
    set_home(w, r, *home);
    return true;
}

static void place_node(fusing *w, dc_ref r)
{
    fuse_node *x = &w->node[r];
    const demand d = demand_of(w, r);
    const bool reduction = fuse_is_reduction(w, r);

    if (fuse_is_param(w, r))
        return;
    if (place_attention(w, r))
        return;
    if (fuse_is_host(w, r)) {
        place_host(w, r);
        return;
    }
    if (fuse_is_control(w, r)) {
        place_control(w, r);
        return;
    }
    x->maps = 1;
    const char *why = why_stored(w, r, &d);
    if (reduction && why == NULL)
        why = why_not_reduced(w, r, &d);
    if (why == NULL && reduction) {
        dc_fuse_add_reduce(w, d.home, r);
        set_home(w, r, d.home);
        return;
    }
    if (why == NULL) {
        stay(w, r, &d);
        return;
    }
    x->stored = true;
    dc_fuse_record_stored(w, r, why);
    fuse_rows rows = {0};
    const bool alone = x->once || fuse_is_scatter(w, r) || fuse_is_transform(w, r) ||
                       fuse_at(w, r)->op == DC_OP_JOIN;
    uint32_t home = alone ? NO_HOME : dc_fuse_group_to_join(w, r, &rows);
    if (home == NO_HOME)
        home = new_group(w, r);
    else
        add_output(w, home, r);
    if (rows.rows > 0)
        dc_fuse_make_row_wise(w, home, &rows);
    set_home(w, r, home);
    if (reduction)
        dc_fuse_add_reduce(w, home, r);
}

/* The last of the joins of one number is the memory of all of it. */
static void find_joins(const fusing *w, dc_groups *out)
{
    out->join_of = DC_NEW_ARRAY(w->a, dc_ref, w->fn->node.n);
    for (dc_ref r = w->fn->node.n; r-- > 1;) {
        const dc_node *n = fuse_at(w, r);
        if (!w->live[r] || n->op != DC_OP_JOIN)
            continue;
        if (out->join_of[r] == 0)
            out->join_of[r] = r;
        for (int i = 0; i < n->nin; i++)
            if (fuse_is_part(w, n->in[i]))
                out->join_of[n->in[i]] = out->join_of[r];
    }
}

dc_window dc_group_window(const dc_groups *g, dc_ref piece)
{
    const dc_node *whole = dc_node_at(g->fn, g->join_of[piece]), *n = dc_node_at(g->fn, piece);
    const int rank = whole->rank;
    const int64_t *lo = n->attr + 2, *step = lo + rank, *dim = step + rank;
    dc_window x = {.rank = rank, .dim = dim};
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        x.stride[i] = stride * step[i];
        x.first += stride * lo[i];
        x.span += (dim[i] - 1) * x.stride[i];
        stride *= whole->dim[i];
    }
    return x;
}

/* Does r end at a size that is known at run time? */
static bool has_end(const fusing *w, dc_ref r)
{
    for (int axis = 0; axis < fuse_at(w, r)->rank; axis++)
        if (dc_needs_end(&w->needs, r, axis) != 0)
            return true;
    return false;
}

/* Kernels of attention go through all rows and terms. */
static bool attends_all(const fusing *w, const dc_attention *t)
{
    for (dc_ref r = 1; w->needs.end != NULL && r < w->fn->node.n; r++) {
        if (!w->live[r] || dc_attention_place_of(t, r) == DC_ATTENTION_NOT)
            continue;
        if (has_end(w, r))
            return false;
        for (int i = 0; i < fuse_at(w, r)->nin; i++)
            if (has_end(w, fuse_at(w, r)->in[i]))
                return false;
    }
    return true;
}

static void find_attention(fusing *w)
{
    if (w->level < 2 || w->groups || dc_opts_math(w->j->opt, "strict"))
        return;
    const dc_attention found = dc_attention_in(w->fn, w->a);
    if (!attends_all(w, &found))
        return;
    w->attention = found;
    w->attention_home = DC_NEW_ARRAY(w->a, uint32_t, w->attention.n);
    for (uint32_t i = 0; i < w->attention.n; i++)
        w->attention_home[i] = NO_HOME;
}

/* By the node that it reduces by, unless it is more than one loop nest round that. */
static dc_kernel_kind kind_of(const dc_func *fn, const dc_group *g)
{
    if (g->attention != NULL)
        return DC_KERNEL_attention;
    if (g->row_wise)
        return DC_KERNEL_rows;
    if (g->nreduce == 0)
        return DC_KERNEL_map;
    const dc_op op = (dc_op)dc_node_at(fn, g->reduce[0])->op;
    return op == DC_OP_DOT              ? DC_KERNEL_contraction
           : op == DC_OP_CONV           ? DC_KERNEL_convolution
           : op == DC_OP_STAGE          ? DC_KERNEL_stage
           : op == DC_OP_DFT            ? DC_KERNEL_transform
           : dc_op_is(op, DC_CLASS_IDX) ? DC_KERNEL_scatter
                                        : DC_KERNEL_reduction;
}

static void fuse(dc_job *j, dc_arena *a, const dc_func *fn, int level, bool groups, uint32_t most,
                 dc_groups *out)
{
    fusing w = {.j = j,
                .a = a,
                .fn = fn,
                .level = level,
                .groups = groups,
                .row_blocks = !groups,
                .most = most};
    w.node = DC_NEW_ARRAY(a, fuse_node, fn->node.n);
    w.live = DC_NEW_ARRAY(a, bool, fn->node.n);
    w.is_result = DC_NEW_ARRAY(a, bool, fn->node.n);
    w.asked = DC_NEW_ARRAY(a, dc_ref, fn->node.n);
    w.counted = DC_NEW_ARRAY(a, uint32_t, fn->node.n);
    w.seen = DC_NEW_ARRAY(a, uint32_t, fn->node.n);
    w.seen_after = DC_NEW_ARRAY(a, uint32_t, fn->node.n);
    w.walk = dc_fuse_walk_new(a, fn->node.n);
    for (uint32_t i = 0; i < fn->result.n; i++)
        w.is_result[fn->result.at[i]] = true;
    for (dc_ref r = 0; r < fn->node.n; r++)
        w.node[r].home = NO_HOME;
    w.needs = dc_needs_of(fn, a);
    find_live(&w);
    list_users(&w);
    dc_fuse_find_awaited(&w);
    dc_fuse_find_once(&w);
    find_attention(&w);
    dc_fuse_measure(&w);
    for (dc_ref r = fn->node.n; r-- > 1;)
        if (w.live[r])
            place_node(&w, r);
    dc_fuse_close(&w);

    *out = (dc_groups){.fn = fn, .n = w.group.n, .at = DC_NEW_ARRAY(a, dc_group, w.group.n)};
    for (uint32_t g = 0; g < w.group.n; g++) {
        out->at[g] = w.group.at[g].g;
        out->at[g].kind = kind_of(fn, &out->at[g]);
    }
    out->needs = w.needs;
    out->choice = w.choice.at;
    out->nchoice = w.choice.n;
    out->group_of = DC_NEW_ARRAY(a, uint32_t, fn->node.n);
    for (dc_ref r = 0; r < fn->node.n; r++)
        out->group_of[r] = w.node[r].stored ? w.node[r].home : DC_NO_GROUP;
    find_joins(&w, out);
}

static uint32_t most_buffers(const dc_groups *g)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < g->n; i++)
        if (!g->at[i].is_join && g->at[i].control == 0 && g->at[i].nout + g->at[i].nin > most)
            most = g->at[i].nout + g->at[i].nin;
    return most;
}

/* Fewer operations to a group until no group has too many buffers. */
dc_status dc_fuse_for(dc_job *j, dc_arena *a, const dc_func *fn, int level, const dc_target *t,
                      dc_groups *out)
{
    uint32_t most = DC_TUNE_GROUP_OPS;
    fuse(j, a, fn, level, t->simt, most, out);
    while (t->buffers > 0 && most_buffers(out) > t->buffers && most > 1) {
        most /= 2;
        fuse(j, a, fn, level, t->simt, most, out);
    }
    out->vector_bytes = t->vector_bytes;
    return DC_OK;
}

dc_status dc_fuse(dc_job *j, dc_arena *a, const dc_func *fn, int level, dc_groups *out)
{
    return dc_fuse_for(j, a, fn, level, &(dc_target){0}, out);
}
