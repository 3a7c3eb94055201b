/*
 * Schedules by rule for devices that run groups of threads: each kind of kernel has a list of rules, which are tried in
 * order.
 *
 *   map      no reduction (schedule_simt_map.c).
 *   rows     reductions along rows and what is stored by rows beside them; long sums (schedule_simt_rows.c).
 *   across   rows whose columns lie across memory (schedule_simt_across.c).
 *   tiny     products of tiny matrices (schedule_simt_tiny.c).
 *   columns  few sums over leading axes (schedule_simt_columns.c).
 *   scatter  updates of places that integers choose (schedule_simt_scatter.c).
 *   windows  short sums that go along the last axis of the result (schedule_simt_window.c).
 *   flat     a thread for each output, outputs numbered through all their axes; a reduction is a loop of its thread.
 *            It fits everything.
 */
#include "jit/base/tuning.h"
#include "jit/moves/move.h"
#include "jit/schedule/schedule_simt_impl.h"

int64_t dc_simt_threads(const dc_sketch *s)
{
    static const int32_t others[] = {128, 512, 64, 1024, 0};
    const int64_t rule = dc_min_i64(s->t->group_threads, DC_TUNE_GROUP_THREADS);
    return dc_sketch_knob(s, DC_KNOB_GROUP, rule, others, s->t->group_threads);
}

int64_t dc_simt_shared(const dc_sketch *s)
{
    return dc_min_i64((int64_t)s->t->group_bytes, DC_TUNE_GROUP_SHARED);
}

int64_t dc_simt_many(const dc_sketch *s)
{
    return s->t->units > 0 ? s->t->units : DC_TUNE_MANY_GROUPS;
}

int64_t dc_simt_product(const dc_sketch *s, const uint32_t *axis, int n)
{
    int64_t p = 1;
    for (int i = 0; i < n; i++)
        p *= dc_sketch_extent(s, axis[i]);
    return p;
}

bool dc_simt_is_contraction(const dc_sketch *s, const dc_shape *p, dc_operands *operands)
{
    return p->nred > 0 && !dc_ix_any_value(s->k) && dc_contraction_of(s->k, p, operands) &&
           operands->product;
}

bool dc_simt_fuse(dc_sketch *s, const uint32_t *axis, int n, uint32_t *all)
{
    *all = axis[0];
    for (int i = 1; i < n; i++)
        if (!dc_do_fuse(s, *all, axis[i], all))
            return false;
    return true;
}

int64_t dc_simt_vector(const dc_sketch *s, int64_t extent)
{
    size_t widest = 1;
    for (uint32_t b = 0; b < s->k->buf.n; b++) {
        const dc_buffer *x = &s->k->buf.at[b];
        const size_t size = dc_dtype_size((dc_dtype)x->dtype);
        if (x->scope == DC_SCOPE_PARAM && x->count >= extent && size > widest)
            widest = size;
    }
    int64_t n = dc_min_i64(DC_TUNE_ACCESS_BYTES / (int64_t)widest, DC_TUNE_ACCESS_ELEMENTS);
    while (n > 1 && extent % n != 0)
        n /= 2;
    return n;
}

int64_t dc_simt_ask_access(const dc_sketch *s, int64_t rule, int64_t most)
{
    static const int32_t others[] = {4, 2, 1, 8, 0};
    const int64_t asked = dc_sketch_knob(s, DC_KNOB_ACCESS, rule, others, most);
    return asked <= most && most % asked == 0 ? asked : rule;
}

bool dc_simt_own_group(dc_sketch *s, uint32_t axis)
{
    dc_split of;
    return dc_do_split(s, axis, dc_sketch_extent(s, axis), &of) && dc_do_block(s, of.i);
}

/* The two loops that a cut makes have one copy of a local, which threads of the second one would share. */
static bool has_locals(const dc_sketch *s)
{
    for (uint32_t b = 0; b < s->k->buf.n; b++)
        if (s->k->buf.at[b].scope == DC_SCOPE_LOCAL)
            return true;
    return false;
}

bool dc_simt_groups(dc_sketch *s, uint32_t axis, int64_t threads)
{
    const int64_t extent = dc_sketch_extent(s, axis);
    dc_split parts = {.o = axis}, of;
    if (extent <= threads)
        return dc_do_block(s, axis);
    if (extent % threads != 0 && !has_locals(s) &&
        (!dc_do_cut(s, axis, extent - extent % threads, &parts) || !dc_simt_own_group(s, parts.i)))
        return false;
    return dc_do_split(s, parts.o, threads, &of) && dc_do_block(s, of.i) && dc_sketch_grid_all(s);
}

/* A long sum of a thread is a sum of sums. */
static bool shorten_chain(dc_sketch *s, const dc_shape *p)
{
    dc_chain sum = {.total = p->add->put[0].value, .n = p->nred, .side = 1, .inside = 1};
    for (int i = 0; i < p->nred; i++) {
        sum.red[i] = p->red[i];
        sum.extent[i] = dc_sketch_extent(s, p->red[i]);
    }
    dc_sketch_subtotal(s, &sum);
    return true;
}

/* As dc_simt_groups does, but for a tail: locals, of sums, are of one loop alone. */
static bool masked_groups(dc_sketch *s, uint32_t axis, int64_t threads)
{
    dc_split of = {.i = axis};
    if (dc_sketch_extent(s, axis) <= threads)
        return dc_do_block(s, axis);
    return dc_do_split(s, axis, threads, &of) && dc_do_block(s, of.i) && dc_sketch_grid_all(s);
}

bool dc_simt_flat(dc_sketch *s, dc_shape *p, bool *is)
{
    uint32_t all;
    *is = true;
    if (p->nout == 0)
        return true;
    if (p->add == NULL)
        return dc_simt_fuse(s, p->out, p->nout, &all) && dc_simt_groups(s, all, dc_simt_threads(s));
    shorten_chain(s, p);
    return dc_simt_fuse(s, p->out, p->nout, &all) && masked_groups(s, all, dc_simt_threads(s));
}

static bool skinny(dc_sketch *s, dc_shape *p, bool *is)
{
    return dc_schedule_simt_skinny(s, p, DC_TUNE_SKINNY_ROWS, is);
}

#define PRODUCTS dc_simt_join_loops, dc_simt_tiny, dc_schedule_simt_product, skinny
#define SUMS \
    dc_simt_columns, dc_simt_windows, dc_simt_turn_sum, dc_simt_across, dc_simt_rows, dc_simt_flat

DC_RULES(map, dc_simt_map, SUMS);
DC_RULES(reduction, dc_simt_map, PRODUCTS, SUMS);
DC_RULES(contraction, dc_simt_map, PRODUCTS, SUMS);
DC_RULES(convolution, dc_simt_map, PRODUCTS, SUMS);
DC_RULES(scatter, dc_simt_scatter, dc_simt_map, SUMS);
DC_RULES(stage, dc_simt_map, SUMS);
DC_RULES(transform, SUMS);
DC_RULES(rows, dc_simt_map, SUMS);
DC_RULES(attention, SUMS);

static dc_sketch_rule *const *const by_kind[] = {
#define KIND(id, letter) id##_rules,
#include "jit/base/kinds.def"
#undef KIND
};

/* Of shared memory, at least: rows of threads may come to it later. */
static size_t shared_bytes(const dc_kernel *k)
{
    size_t bytes = 0;
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (k->buf.at[b].scope == DC_SCOPE_GROUP)
            bytes += (size_t)k->buf.at[b].count * dc_dtype_size((dc_dtype)k->buf.at[b].dtype);
    return bytes;
}

/*
 * What needs more threads or shared memory than a group can have is a thread for each result, as everything is on a device whose
 * groups have not the threads of a row.
 */
bool dc_schedule_simt(dc_sketch *s, dc_shape *p)
{
    dc_job *j = dc_job_here();
    dc_arena own = {0},
             *tmp = j != NULL ? &j->scratch : &own; /* freed where memory runs out, too */
    const dc_mark mark = dc_arena_mark(tmp);
    const dc_move_state naive = dc_move_save(s->k, tmp);
    static dc_sketch_rule *const flat[] = {dc_simt_flat, NULL};
    const bool narrow = s->t->group_threads < DC_TUNE_ROW_LANES;
    bool done = dc_sketch_try(s, p, narrow ? flat : by_kind[s->k->kind]), is;
    if (dc_nest_threads(s->k, s->k->root) > s->t->group_threads ||
        shared_bytes(s->k) > s->t->group_bytes) {
        dc_move_restore(s->k, &naive);
        *p = dc_shape_of(s->k);
        done = dc_simt_flat(s, p, &is) && s->space == NULL;
    }
    dc_arena_rewind(tmp, mark);
    dc_arena_free(&own);
    return done;
}
