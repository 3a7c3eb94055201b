/*
 * Flattening for groups of threads: what one thread does.
 *
 * The threads of a group are numbered 0 .. T-1, T being the largest product of nested thread loops.
 * A thread loop of extent E with P threads inside takes the threads in runs of P; its axis is the
 * number of the run, and runs beyond E - 1 are not active. Serial loops round thread loops are run by
 * all threads in step; assignments outside of thread loops by the first thread of those that
 * come by.
 *
 * Barriers. Walking a list of statements, we keep what shared memory was read and written since the
 * last barrier; a statement that would touch it in conflict is preceded by one, unless each thread
 * keeps to its own part of a buffer ([threads][n]) on both sides. A loop whose body writes shared memory
 * ends each iteration with one. No barrier stands in an IF of a thread: whether
 * a thread is active is asked at the leaves. All parameters count as one piece of memory, since an
 * input may share memory with an output.
 */
#include "jit/flat/flatten_impl.h"
#include "jit/nest/matrix_tile.h"
#include "jit/nest/nest_stage.h"

#include <string.h>

/* Shared memory that statements touch; index: buffers, then one for all parameters. */
typedef struct touched {
    bool *read, *written;
    bool *shared; /* not only by each thread in its own part, as rows are laid out */
} touched;

/* Threads that a list of statements is divided among. */
typedef struct space {
    dc_fv rel;    /* number of this thread among them */
    int64_t size; /* how many they are */
    dc_fv active; /* 0 true */
    bool whole;   /* they are the group */
} space;

/* Walking expressions ----------------------------------------------------------------------- */

/* see(l, buf, at, store, arg) is called for every access in statements. */
typedef void (*access_fn)(flattener *l, uint32_t buf, dc_ix at, bool store, void *arg);

/* The first and the last element that an operand touches. */
static void each_in_tile(flattener *l, const dc_tile_operand *o, int rows, int cols, bool store,
                         access_fn see, void *arg)
{
    const int64_t by[2] = {(rows - 1) * o->row, (cols - 1) * o->col};
    const int64_t lo = dc_min_i64(by[0], 0) + dc_min_i64(by[1], 0);
    const int64_t hi = dc_max_i64(by[0], 0) + dc_max_i64(by[1], 0);
    see(l, o->buf, dc_ix_add(l->k, o->at, dc_ix_const(l->k, lo)), store, arg);
    see(l, o->buf, dc_ix_add(l->k, o->at, dc_ix_const(l->k, hi)), store, arg);
}

static void each_in_set(flattener *l, const dc_stmt *s, access_fn see, void *arg)
{
    const dc_mark mark = dc_arena_mark(&l->j->scratch);
    const uint32_t nvx = l->k->vx.n;
    bool *seen = DC_NEW_ARRAY(&l->j->scratch, bool, nvx);
    dc_pred_mark(l->k, s->pred, seen);
    for (uint32_t n = 0; n < s->nput; n++) {
        seen[s->put[n].value] = true;
        dc_ix_mark(l->k, s->put[n].at, seen);
    }
    if (s->kind == DC_STMT_TILE) {
        dc_ix_mark(l->k, s->tile->a.at, seen);
        dc_ix_mark(l->k, s->tile->b.at, seen);
        dc_ix_mark(l->k, s->tile->c.at, seen);
    }
    dc_vx_mark_parts(l->k, seen);
    for (dc_vx v = 1; v < nvx; v++)
        if (seen[v] && l->k->vx.at[v].kind == DC_VX_LOAD)
            see(l, l->k->vx.at[v].buf, l->k->vx.at[v].at, false, arg);
    for (uint32_t n = 0; n < s->nput; n++)
        see(l, s->put[n].buf, s->put[n].at, true, arg);
    dc_arena_rewind(&l->j->scratch, mark);
    if (s->kind == DC_STMT_TILE) {
        const dc_tile_row *row = dc_tile_row_of(s->tile->which);
        each_in_tile(l, &s->tile->a, row->m, row->k, false, see, arg);
        each_in_tile(l, &s->tile->b, row->k, row->n, false, see, arg);
        each_in_tile(l, &s->tile->c, row->m, row->n, false, see, arg);
        each_in_tile(l, &s->tile->c, row->m, row->n, true, see, arg);
    }
}

/* Threads ----------------------------------------------------------------------------------- */

static bool is_thread_loop(const flattener *l, const dc_stmt *s)
{
    return s->kind == DC_STMT_LOOP && dc_axis_is_thread(l->k->axis.at[s->axis].kind);
}

static bool has_threads(const flattener *l, const dc_stmt *s)
{
    if (s->kind != DC_STMT_LOOP)
        return false;
    if (is_thread_loop(l, s))
        return true;
    for (const dc_stmt *t = s->body; t != NULL; t = t->next)
        if (has_threads(l, t))
            return true;
    return false;
}

/* Number of the first thread of an iteration of the loop, added to that of the loops round it. */
static dc_ix enter_thread_loop(flattener *l, const dc_stmt *loop)
{
    const dc_ix outer = l->thread_ix;
    const dc_ix axis = dc_ix_axis(l->k, loop->axis);
    l->thread_ix = dc_ix_add(l->k, outer, dc_ix_mul(l->k, axis, dc_nest_threads(l->k, loop->body)));
    return outer;
}

static void each_access(flattener *l, const dc_stmt *s, access_fn see, void *arg)
{
    if (s->kind != DC_STMT_LOOP) {
        each_in_set(l, s, see, arg);
        return;
    }
    const dc_ix outer = l->thread_ix;
    if (is_thread_loop(l, s))
        enter_thread_loop(l, s);
    for (const dc_stmt *t = s->body; t != NULL; t = t->next)
        each_access(l, t, see, arg);
    l->thread_ix = outer;
}

/* Rows ---------------------------------------------------------------------------------------- */

static bool is_own(flattener *l, dc_ix at, int64_t n)
{
    const dc_ix rest = dc_ix_add(l->k, at, dc_ix_mul(l->k, l->thread_ix, -n));
    return fl_ix(l, rest)->lo >= 0 && fl_ix(l, rest)->hi < n;
}

static bool uses_kind(const flattener *l, dc_ix a, bool (*is)(uint8_t kind))
{
    for (uint32_t x = 0; x < l->k->axis.n; x++)
        if (is(l->k->axis.at[x].kind) && dc_ix_uses(l->k, a, x))
            return true;
    return false;
}

static bool is_vector(uint8_t kind)
{
    return kind == DC_AXIS_VECTOR;
}

/* Does a shuffle reach element `at`: a row of the same lanes, one place for all of them? */
static bool is_reachable(flattener *l, dc_ix at, int64_t n)
{
    if (l->warp == 0 || fl_ix(l, at)->lo < 0 || uses_kind(l, at, is_vector))
        return false;
    const dc_ix owner = dc_ix_div(l->k, at, n);
    return dc_ix_div(l->k, owner, l->warp) == dc_ix_div(l->k, l->thread_ix, l->warp) &&
           !uses_kind(l, dc_ix_mod(l->k, at, n), dc_axis_is_thread);
}

bool dc_flatten_is_foreign(flattener *l, uint32_t buf, dc_ix at)
{
    return l->row != NULL && l->row[buf] == ROW_PRIVATE &&
           !is_own(l, at, l->b->f->buf.at[buf].count);
}

static void see_row(flattener *l, uint32_t buf, dc_ix at, bool store, void *arg)
{
    DC_UNUSED(arg);
    if (l->k->buf.at[buf].scope != DC_SCOPE_THREAD || l->row[buf] == ROW_SHARED)
        return;
    const int64_t n = l->k->buf.at[buf].count / l->threads;
    if (!is_own(l, at, n) &&
        (store || !(is_reachable(l, at, n) || dc_flatten_is_exchanged(l, at, n))))
        l->row[buf] = ROW_SHARED;
}

static void find_rows(flattener *l, const dc_stmt *first)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next) {
        if (s->kind != DC_STMT_LOOP) {
            each_in_set(l, s, see_row, NULL);
            continue;
        }
        const dc_ix outer = l->thread_ix;
        if (is_thread_loop(l, s))
            enter_thread_loop(l, s);
        find_rows(l, s->body);
        l->thread_ix = outer;
    }
}

static dc_status too_large(flattener *l, const char *what, uint64_t need, uint64_t have)
{
    return dc_failf(l->j, DC_ERR_BUILD, l->k->name, "a group needs %llu %s, the device has %llu",
                    (unsigned long long)need, what, (unsigned long long)have);
}

/* Rings of staged buffers: an axis is the place in a ring. What a later move made impossible has one place. */
static void find_rings(flattener *l)
{
    const uint32_t n = l->k->buf.n;
    l->slot = DC_NEW_ARRAY(&l->j->scratch, uint32_t, n);
    l->ring = DC_NEW_ARRAY(&l->j->scratch, const dc_stmt *, n);
    for (uint32_t b = 0; b < n; b++) {
        const dc_buffer x = l->k->buf.at[b];
        l->slot[b] = DC_NO_AXIS;
        if (x.stages > 1 && x.scope == DC_SCOPE_GROUP &&
            dc_nest_stage(l->k, &l->j->scratch, b, x.stages, &l->ring[b]) == NULL &&
            has_threads(l, l->ring[b])) {
            l->slot[b] = dc_axis_new(l->k, x.name, x.stages, false);
            l->b->f->buf.at[b].count *= x.stages;
        }
    }
    l->bind = DC_NEW_ARRAY(&l->j->scratch, bind, l->k->axis.n); /* nothing is bound yet */
}

dc_status dc_flatten_simt_buffers(flattener *l, const dc_target *t)
{
    dc_flat *f = l->b->f;
    l->threads = f->threads;
    l->warp = f->lanes = t->lanes;
    l->thread_ix = dc_ix_const(l->k, 0);
    l->inner[0] = l->inner[1] = DC_NO_AXIS;
    l->row = DC_NEW_ARRAY(&l->j->scratch, uint8_t, l->k->buf.n);
    for (uint32_t b = 0; b < l->k->buf.n; b++)
        l->row[b] = l->k->buf.at[b].scope == DC_SCOPE_THREAD ? ROW_PRIVATE : ROW_NONE;
    find_rows(l, l->k->root);
    find_rings(l);
    for (uint32_t b = 0; b < f->buf.n; b++) {
        dc_buffer *x = &f->buf.at[b];
        if (l->row[b] == ROW_PRIVATE)
            x->count /= f->threads;
        if (l->row[b] != ROW_NONE)
            x->scope = l->row[b] == ROW_PRIVATE ? DC_SCOPE_LOCAL : DC_SCOPE_GROUP;
    }
    if (f->threads > (uint32_t)t->group_threads)
        return too_large(l, "threads", f->threads, (uint64_t)t->group_threads);
    const size_t bytes = dc_flat_group_bytes(f);
    return bytes > t->group_bytes ? too_large(l, "bytes of shared memory", bytes, t->group_bytes)
                                  : DC_OK;
}

static void see_shuffle(flattener *l, uint32_t buf, dc_ix at, bool store, void *arg)
{
    bool *found = arg;
    if (!store && dc_flatten_is_foreign(l, buf, at))
        *found = true;
}

bool dc_flatten_has_shuffle(flattener *l, const dc_stmt *s)
{
    bool found = false;
    if (l->warp > 0)
        each_access(l, s, see_shuffle, &found);
    return found;
}

/* Barriers ---------------------------------------------------------------------------------- */

static touched new_touched(flattener *l)
{
    const uint32_t n = l->k->buf.n + 1;
    return (touched){DC_NEW_ARRAY(&l->j->scratch, bool, n), DC_NEW_ARRAY(&l->j->scratch, bool, n),
                     DC_NEW_ARRAY(&l->j->scratch, bool, n)};
}

static void see_touch(flattener *l, uint32_t buf, dc_ix at, bool store, void *arg)
{
    touched *t = arg;
    const dc_buffer *b = &l->b->f->buf.at[buf];
    if (b->scope == DC_SCOPE_LOCAL)
        return;
    const uint32_t which = b->scope == DC_SCOPE_GROUP ? buf : l->k->buf.n;
    (store ? t->written : t->read)[which] = true;
    if (which != buf || l->slot[buf] != DC_NO_AXIS || b->count % l->threads != 0 ||
        !is_own(l, at, b->count / l->threads))
        t->shared[which] = true;
}

static bool conflict(const flattener *l, const touched *a, const touched *b)
{
    for (uint32_t n = 0; n <= l->k->buf.n; n++)
        if ((a->shared[n] || b->shared[n]) &&
            ((a->written[n] && (b->written[n] || b->read[n])) || (a->read[n] && b->written[n])))
            return true;
    return false;
}

static void add_touched(const flattener *l, touched *to, const touched *more)
{
    for (uint32_t n = 0; n <= l->k->buf.n; n++) {
        to->read[n] |= more->read[n];
        to->written[n] |= more->written[n];
        to->shared[n] |= more->shared[n];
    }
}

static void forget(const flattener *l, touched *t)
{
    memset(t->read, 0, (l->k->buf.n + 1) * sizeof *t->read);
    memset(t->written, 0, (l->k->buf.n + 1) * sizeof *t->written);
    memset(t->shared, 0, (l->k->buf.n + 1) * sizeof *t->shared);
}

static void barrier(flattener *l, const space *in)
{
    const bool lanes = !in->whole && l->warp > 0 && l->warp % in->size == 0;
    if (l->threads > 1)
        dc_fb_barrier(l->b, lanes      ? DC_BARRIER_LANES
                            : l->wgmma ? DC_BARRIER_ASYNC
                                       : DC_BARRIER_GROUP);
}

/* A barrier if what comes cannot begin while what was is still going on. */
static void wait_before(flattener *l, const space *in, touched *since, const touched *next)
{
    if (conflict(l, since, next)) {
        barrier(l, in);
        forget(l, since);
    }
    add_touched(l, since, next);
}

/* Statements ---------------------------------------------------------------------------------- */

static void walk(flattener *l, const dc_stmt *first, const space *in);

/* Statements for one thread: those from `first` up to `end`. */
static void by_first_thread(flattener *l, const dc_stmt *first, const dc_stmt *end, const space *in)
{
    l->divided = in->size > 1 || in->active != 0;
    dc_fv when = in->active;
    if (in->size > 1)
        when = dc_flatten_both(
            l, when, dc_fb_op2(l->b, DC_K_EQ, in->rel, dc_fb_const(l->b, DC_INDEX, 1, 0)));
    if (when != 0)
        dc_fb_if(l->b, when);
    for (const dc_stmt *s = first; s != end; s = s->next)
        dc_flatten_stmt(l, s);
    if (when != 0)
        dc_fb_end(l->b);
}

static bool list_shuffles(flattener *l, const dc_stmt *first)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next)
        if (dc_flatten_has_shuffle(l, s))
            return true;
    return false;
}

static void leaf(flattener *l, const dc_stmt *body, dc_fv active)
{
    l->held = NULL;
    l->exchanged = NULL;
    l->divided = active != 0;
    const bool in_step = active != 0 && list_shuffles(l, body);
    if (active != 0 && !in_step)
        dc_fb_if(l->b, active);
    l->active = in_step ? active : 0;
    dc_flatten_list(l, body);
    if (!l->products.later)
        dc_flatten_wgmma_wait(l, 0);
    l->active = 0;
    if (active != 0 && !in_step)
        dc_fb_end(l->b);
}

static void thread_loop(flattener *l, const dc_stmt *s, const space *in)
{
    dc_fbuild *b = l->b;
    const int64_t inside = dc_nest_threads(l->k, s->body), extent = l->k->axis.at[s->axis].extent;
    const dc_fv p = dc_fb_const(b, DC_INDEX, 1, (uint64_t)inside);
    const dc_fv run = dc_fb_op2(b, DC_K_DIV, in->rel, p);
    const dc_fv n = dc_fb_const(b, DC_INDEX, 1, (uint64_t)extent);
    space inner = {.rel = dc_fb_const(b, DC_INDEX, 1, 0), .size = inside, .active = in->active};
    if (inside > 1)
        inner.rel = dc_fb_op2(b, DC_K_REM, in->rel, p);
    if (extent * inside < in->size)
        inner.active = dc_flatten_both(l, in->active, dc_fb_op2(b, DC_K_LT, run, n));
    const dc_ix outer = enter_thread_loop(l, s);
    const uint32_t around = l->inner[0];
    l->inner[0] = l->inner[1];
    l->inner[1] = s->axis;
    l->bind[s->axis] = (bind){.kind = BIND_VALUE, .v = run};
    if (dc_nest_threads(l->k, s->body) > 1)
        walk(l, s->body, &inner);
    else
        leaf(l, s->body, inner.active);
    l->bind[s->axis] = (bind){0};
    l->inner[1] = l->inner[0];
    l->inner[0] = around;
    l->thread_ix = outer;
}

/* One iteration of a loop that all threads run in step. */
static void step(flattener *l, const dc_stmt *loop, const space *in, const fl_live *live,
                 bool writes)
{
    const dc_fv test = dc_flatten_live_test(l, live);
    if (test != 0)
        dc_fb_if(l->b, test);
    walk(l, loop->body, in);
    if (test != 0)
        dc_fb_end(l->b);
    if (writes)
        barrier(l, in);
}

/* Stages -------------------------------------------------------------------------------------- */

/* Behind the statements that fill rings of the loop; its first one where there are none. */
static const dc_stmt *behind_fills(const flattener *l, const dc_stmt *loop)
{
    const dc_stmt *s = loop->body;
    for (; s != NULL; s = s->next) {
        const uint32_t buf = dc_nest_stores_to(s);
        if (buf == DC_NO_BUF || l->slot[buf] == DC_NO_AXIS || l->ring[buf] != loop)
            break;
    }
    return s;
}

static void bind_slots(flattener *l, const dc_stmt *loop, bind to)
{
    for (uint32_t b = 0; b < l->k->buf.n; b++)
        if (l->slot[b] != DC_NO_AXIS && l->ring[b] == loop)
            l->bind[l->slot[b]] = to;
}

/* Which iteration comes, and its place in the rings. */
static void bind_stage(flattener *l, const dc_stmt *loop, dc_fv counter, int64_t stages)
{
    const dc_fv n = dc_fb_const(l->b, DC_INDEX, 1, (uint64_t)stages);
    l->bind[loop->axis] = (bind){.kind = BIND_VALUE, .v = counter};
    bind_slots(l, loop, (bind){.kind = BIND_VALUE, .v = dc_fb_op2(l->b, DC_K_REM, counter, n)});
}

static void fill(flattener *l, const dc_stmt *loop, const dc_stmt *end, const space *in)
{
    l->filling = l->async;
    for (const dc_stmt *s = loop->body; s != end; s = s->next) {
        dc_stmt alone = *s;
        alone.next = NULL;
        walk(l, &alone, in);
    }
    l->filling = false;
}

/* What was filled until now is a group of its own. */
static void end_fill(flattener *l)
{
    if (l->async)
        dc_fb_commit(l->b);
}

/* What is read. Products of warp groups go on while the next iteration begins. */
static void read_stage(flattener *l, const dc_stmt *rest, const space *in, bool later)
{
    const int others = l->products.others;
    l->products.later = later;
    walk(l, rest, in);
    l->products.later = false;
    dc_flatten_wgmma_wait(l, later && others == l->products.others ? 1 : 0);
}

/*
 * The copies of the first iterations; then in each those of a later one, to where the last one has been read, or, if
 * products go on, the one before the last.
 */
static void staged_loop(flattener *l, const dc_stmt *s, const dc_stmt *rest, const space *in)
{
    dc_fbuild *b = l->b;
    const int64_t n = l->k->axis.at[s->axis].extent;
    const int64_t stages = l->k->buf.at[dc_nest_stores_to(s->body)].stages;
    const fl_live live = dc_flatten_live(l, s);
    const dc_fv extent = dc_flatten_live_end(l, &live, dc_fb_const(b, DC_INDEX, 1, (uint64_t)n));
    const bool overlapped = l->wgmma && stages > 2 && dc_flatten_only_wgmma(l, rest);
    const int64_t distance = overlapped ? stages - 2 : stages - 1;
    for (int64_t i = 0; i < distance; i++) {
        l->bind[s->axis] = (bind){.kind = BIND_CONST, .c = i};
        bind_slots(l, s, (bind){.kind = BIND_CONST, .c = i});
        if (live.end != 0)
            dc_fb_if(b, dc_fb_op2(b, DC_K_LT, dc_fb_const(b, DC_INDEX, 1, (uint64_t)i), extent));
        if (i < n)
            fill(l, s, rest, in);
        if (live.end != 0)
            dc_fb_end(b);
        end_fill(l);
    }
    const dc_fv counter = dc_fb_loop(b, dc_fb_const(b, DC_INDEX, 1, 0), extent);
    const dc_fv ahead = dc_fb_const(b, DC_INDEX, 1, (uint64_t)distance);
    const dc_fv later = dc_fb_op2(b, DC_K_ADD, counter, ahead);
    if (l->async)
        dc_fb_wait(b, (int)(distance - 1));
    barrier(l, in);
    dc_fb_if(b, dc_fb_op2(b, DC_K_LT, later, extent));
    bind_stage(l, s, later, stages);
    fill(l, s, rest, in);
    dc_fb_end(b);
    end_fill(l);
    bind_stage(l, s, counter, stages);
    read_stage(l, rest, in, overlapped);
    dc_fb_end(b);
    if (overlapped)
        dc_flatten_wgmma_wait(l, 0);
    barrier(l, in);
    bind_slots(l, s, (bind){0});
}

static void shared_loop(flattener *l, const dc_stmt *s, const space *in, touched *since)
{
    const int64_t n = l->k->axis.at[s->axis].extent;
    touched body = new_touched(l);
    bool writes = false,
         comes = true; /* by the barrier at the end of an iteration, if there is one */
    if (n <= 0)
        return;
    each_access(l, s, see_touch, &body);
    for (uint32_t i = 0; i <= l->k->buf.n; i++)
        writes |= body.written[i] && body.shared[i];
    wait_before(l, in, since, &body);
    const dc_stmt *rest = behind_fills(l, s);
    if (rest != s->body) {
        staged_loop(l, s, rest, in);
    } else if (l->k->axis.at[s->axis].kind == DC_AXIS_UNROLL || n == 1) {
        for (int64_t i = 0; i < n; i++) {
            l->bind[s->axis] = (bind){.kind = BIND_CONST, .c = i};
            step(l, s, in, &(fl_live){0}, writes);
        }
    } else {
        const fl_live live = dc_flatten_live(l, s);
        comes = live.end == 0;
        const dc_fv zero = dc_fb_const(l->b, DC_INDEX, 1, 0);
        const dc_fv all = dc_fb_const(l->b, DC_INDEX, 1, (uint64_t)n);
        const dc_fv counter = dc_fb_loop(l->b, zero, dc_flatten_live_end(l, &live, all));
        l->bind[s->axis] = (bind){.kind = BIND_VALUE, .v = counter};
        step(l, s, in, &live, writes);
        dc_fb_end(l->b);
    }
    l->bind[s->axis] = (bind){0};
    if (writes && comes)
        forget(l, since);
}

static void walk(flattener *l, const dc_stmt *first, const space *in)
{
    const dc_mark mark = dc_arena_mark(&l->j->scratch);
    touched since = new_touched(l);
    for (const dc_stmt *s = first; s != NULL;) {
        touched next = new_touched(l);
        const dc_stmt *end = s->next;
        if (has_threads(l, s) && !is_thread_loop(l, s)) {
            shared_loop(l, s, in, &since);
            s = end;
            continue;
        }
        const bool plain = !has_threads(l, s);
        while (plain && end != NULL && !has_threads(l, end))
            end = end->next;
        for (const dc_stmt *t = s; t != end; t = t->next)
            each_access(l, t, see_touch, &next);
        wait_before(l, in, &since, &next);
        if (plain)
            by_first_thread(l, s, end, in);
        else
            thread_loop(l, s, in);
        s = end;
    }
    dc_arena_rewind(&l->j->scratch, mark);
}

/* The kernel ---------------------------------------------------------------------------------- */

static void group_nest(flattener *l, const dc_stmt *s, int64_t first, const space *in, bool alone)
{
    dc_fbuild *b = l->b;
    const dc_fv group = dc_fb_arg(b, DC_KARG_GROUP);
    const dc_fv at = dc_fb_op2(b, DC_K_SUB, group, dc_fb_const(b, DC_INDEX, 1, (uint64_t)first));
    const uint64_t extent = (uint64_t)l->k->axis.at[s->axis].extent;
    if (!alone)
        dc_fb_if(b, dc_fb_op2(b, DC_K_LT, at, dc_fb_const(b, DC_INDEX, 1, extent)));
    const fl_live live = dc_flatten_live(l, s);
    l->bind[s->axis] = (bind){.kind = BIND_VALUE, .v = at};
    dc_fv test = dc_flatten_live_test(l, &live);
    if (live.end != 0)
        test = dc_flatten_both(l, test, dc_fb_op2(b, DC_K_LT, at, live.end));
    if (test != 0)
        dc_fb_if(b, test);
    walk(l, s->body, in);
    if (test != 0)
        dc_fb_end(b);
    l->bind[s->axis] = (bind){0};
    if (!alone)
        dc_fb_end(b);
}

void dc_flatten_simt(flattener *l)
{
    const dc_stmt *root = l->k->root;
    const bool grid = root != NULL && root->kind == DC_STMT_LOOP &&
                      l->k->axis.at[root->axis].kind == DC_AXIS_GRID;
    const dc_fv zero = dc_fb_const(l->b, DC_INDEX, 1, 0);
    const space all = {.rel = l->threads > 1 ? dc_fb_arg(l->b, DC_KARG_THREAD) : zero,
                       .size = l->threads,
                       .whole = true};
    int64_t first = 0;
    if (!grid) {
        walk(l, root, &all);
        return;
    }
    for (const dc_stmt *s = root; s != NULL; s = s->next) {
        if (l->k->axis.at[s->axis].extent <= 0)
            continue;
        group_nest(l, s, first, &all, root->next == NULL);
        first += l->k->axis.at[s->axis].extent;
    }
}
