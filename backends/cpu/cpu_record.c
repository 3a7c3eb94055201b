/*
 * A recording: commands with everything resolved that does not move, so that a run only adds the bases
 * of the slots to the offsets and calls. The walk (core/runtime/walk.h) knows what comes next; launches go
 * to the pool, those of a bundle together. All arrays are allocated when recording; run() allocates
 * nothing.
 *
 * Whether a launch is split depends on what it costs, a guess of the compiler's that may be wrong
 * by a factor of thirty, and on where its operands were written. So unless the guess is far beyond
 * doubt, the first runs of a launch stay on one thread and are timed; one that takes long is run some
 * times in pieces and some times whole, and the better way stays, until it is tried again. Results are
 * the same either way.
 */
#include "backends/cpu/cpu_exchange.h"
#include "backends/cpu/cpu_impl.h"
#include "core/base/control_word.h"
#include "core/host/host_step.h"
#include "core/runtime/walk.h"

#include <string.h>

enum {
    SPLIT_NS = 8000,       /* a launch that takes less stays on one thread */
    PIECE_NS = 5000,       /* what a thread takes at a time, at least */
    PIECES = 8,            /* and at most so many of them per thread */
    CERTAIN_NS = 10000000, /* a guess that is split without a trial */
    TRIALS = 3,            /* runs of each part, alone */
    ROUND = 6,             /* then so many in pieces, and so many whole */
    SOON = 64,             /* runs until the next two rounds, MORE times as many each time ... */
    MORE = 4,
    LATE = 4096, /* ... but no more than these */
    SLICE_NS =
        1000000 /* by the guess, which is too high: a run looks at least so often whether it is to end */
};

typedef struct step {
    dc_cpu_kernel kernel; /* LAUNCH */
    dc_host_step *host;   /* HOST: a launch as any other, of this instead of a kernel */
    int64_t grid;
    uint64_t cost;  /* nanoseconds on one thread: a guess, which is too high, until it has run */
    bool certain;   /* that it is to be split */
    uint32_t first; /* of its binds */
    size_t bytes;   /* COPY */
    int64_t slice;  /* work items that run without a look whether the run is to end */
    int64_t piece;  /* work items that a thread takes at a time, of the launch at hand */
    /* Of the first part of a launch: */
    uint32_t runs, again;  /* since the last trials; when there are new ones */
    uint64_t split, whole; /* best nanoseconds in pieces, and not */
    bool wide;             /* pieces are better */
} step;

struct dc_recording {
    uint32_t nbind, nstep;
    dc_walk *walk;
    step *step;
    const dc_bind *bind;         /* of all steps, one after the other; in the walk */
    void **address;              /* of each bind, in the run at hand */
    dc_cpu_exchanges *exchanges; /* with other ranks; NULL: none go on while others run */
};

/* A run at hand; one launch of it, for the pool. */
typedef struct run {
    dc_recording *r;
    dc_cpu_pool *pool;
    void *const *slot; /* NULL where there are no commands */
    bool split_all;
    dc_job *j;
    dc_halt *halt; /* NULL: it is not ended early */
    dc_look look;
    const dc_run_watch *watch; /* NULL: nobody is told */
    uint32_t last;             /* command of the launch at hand, the last one of a bundle */
} run;

/* Kernels that are launched together; one is a launch as any other. */
typedef struct parts {
    const run *x;
    step *at;
    uint32_t n, width; /* width: threads */
} parts;

/* An exchange with other ranks, on the thread of the job. */
typedef struct one_row {
    run *x;
    uint32_t at;
    dc_status status;
} one_row;

/* ---- recording ------------------------------------------------------------------------------- */

static void set_step(step *s, const dc_command *item, uint32_t first)
{
    *s = (step){.grid = item->grid, .cost = item->cost_ns, .first = first, .bytes = item->bytes};
    if (item->kind != DC_COMMAND_LAUNCH && item->kind != DC_COMMAND_HOST)
        return;
    const dc_program *p = item->program;
    if (item->kind == DC_COMMAND_LAUNCH) {
        DC_ASSERT(item->entry < p->nentry, "launch of kernel %u of %u", item->entry, p->nentry);
        s->kernel = p->entry[item->entry];
    }
    s->certain = s->cost >= CERTAIN_NS;
    s->slice =
        s->cost <= SLICE_NS ? s->grid : dc_max_i64(s->grid / (int64_t)(s->cost / SLICE_NS + 1), 1);
    s->again = SOON;
}

static void release_recording(void *what)
{
    dc_recording *r = what;
    for (uint32_t i = 0; i < r->nstep && r->step != NULL; i++)
        dc_xfree(r->step[i].host);
    dc_walk_free(r->walk);
    dc_cpu_exchanges_free(r->exchanges);
    dc_xfree(r->step);
    dc_xfree(r->address);
    dc_xfree(r);
}

static dc_status record_items(dc_recording *r, const dc_cpu *cpu, dc_job *j, const dc_command *item,
                              uint32_t n)
{
    size_t scratch = 0;
    uint32_t first = 0;
    r->walk = dc_walk_new(item, n);
    r->nbind = dc_walk_bind_count(r->walk);
    r->bind = r->nbind > 0 ? dc_walk_binds(r->walk, 0) : NULL;
    r->step = dc_xalloc(n * sizeof *r->step);
    r->nstep = n;
    r->address = dc_xalloc(r->nbind * sizeof *r->address);
    for (uint32_t i = 0; i < n; i++) {
        set_step(&r->step[i], &item[i], first);
        if (item[i].kind == DC_COMMAND_HOST)
            DC_TRY(dc_host_step_new(j, item[i].host, item[i].nhost, item[i].label, false,
                                    &r->step[i].host));
        first += item[i].nbind;
        scratch = item[i].scratch > scratch ? item[i].scratch : scratch;
    }
    r->exchanges = dc_cpu_exchanges_new(item, n);
    return dc_cpu_pool_scratch(cpu->pool, j, scratch);
}

dc_status dc_cpu_record(dc_device *d, dc_job *j, const dc_command *item, uint32_t n,
                        dc_recording **out)
{
    dc_recording *r = dc_xalloc(sizeof *r);
    dc_job_defer(j, release_recording, r);
    DC_TRY(dc_job_settle(j, r, record_items(r, (const dc_cpu *)d, j, item, n)));
    *out = r;
    return DC_OK;
}

void dc_cpu_recording_free(dc_device *d, dc_recording *r)
{
    DC_UNUSED(d);
    if (r != NULL)
        release_recording(r);
}

/* ---- running --------------------------------------------------------------------------------- */

static bool is_halted(const run *x)
{
    return x->halt != NULL && dc_halt_now(x->halt, x->last);
}

/* dc_look.ask */
static int ask(void *x)
{
    return is_halted(x);
}

static inline void run_work(const run *x, const step *s, void *scratch, int64_t begin, int64_t end)
{
    if (s->host == NULL)
        s->kernel(x->r->address + s->first, x->slot[0], scratch, begin, end);
    else
        (void)dc_host_step_run(s->host, NULL, &x->look, x->r->address + s->first, scratch, begin,
                               end);
}

/* A long launch: looks between pieces. */
static void run_slices(const run *x, const step *s, void *scratch, int64_t begin, int64_t end)
{
    for (; begin < end && !is_halted(x); begin += s->slice)
        run_work(x, s, scratch, begin, dc_min_i64(begin + s->slice, end));
}

static inline void run_positions(const run *x, const step *s, void *scratch, int64_t begin,
                                 int64_t end)
{
    *dc_look_of(scratch) = &x->look;
    if (s->slice < s->grid)
        run_slices(x, s, scratch, begin, end);
    else
        run_work(x, s, scratch, begin, end);
}

static int64_t pieces_of(const step *s)
{
    return (s->grid + s->piece - 1) / s->piece;
}

/*
 * Pieces are numbered thread by thread, each with its share of every part: what a kernel alone would
 * give it. This is the first piece of part i for thread w; those of few pieces go round.
 */
static int64_t share_of(const parts *p, uint32_t i, uint32_t w)
{
    return (pieces_of(&p->at[i]) * w + i % p->width) / p->width;
}

/* Those of thread w among pieces [begin, end), counted from its first; its number of pieces. */
static int64_t run_share(const parts *p, void *scratch, uint32_t w, int64_t begin, int64_t end)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const step *s = &p->at[i];
        const int64_t first = share_of(p, i, w), count = share_of(p, i, w + 1) - first;
        const int64_t from = first + dc_max_i64(begin - n, 0);
        const int64_t to = first + dc_min_i64(end - n, count);
        if (from < to)
            run_positions(p->x, s, scratch, from * s->piece, dc_min_i64(to * s->piece, s->grid));
        n += count;
    }
    return n;
}

static void run_pieces(void *ctx, void *scratch, int64_t begin, int64_t end)
{
    const parts *p = ctx;
    for (uint32_t w = 0; w < p->width && end > 0; w++) {
        const int64_t n = run_share(p, scratch, w, begin, end);
        begin -= n;
        end -= n;
    }
}

/* A thread of the pool has had a part of it; that of the job tells of the whole. */
static void tell_part(void *ctx, uint64_t begun)
{
    const parts *p = ctx;
    dc_run_span(p->x->watch, p->x->last, begun, dc_clock_ns());
}

static void run_whole(void *ctx, void *scratch, int64_t begin, int64_t end)
{
    const parts *p = ctx;
    for (int64_t i = begin; i < end; i++)
        run_positions(p->x, &p->at[i], scratch, 0, p->at[i].grid);
}

static void run_here(const parts *p)
{
    dc_cpu_pool_run_here(p->x->pool, run_whole, (void *)(uintptr_t)p, p->n);
}

/* One after the other, each timed. */
static void run_timed(const parts *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        step *s = &p->at[i];
        const uint64_t start = dc_clock_ns();
        run_here(&(parts){p->x, s, 1, p->width});
        const uint64_t ns = dc_clock_ns() - start;
        if (!is_halted(p->x))
            s->cost = ns < s->cost ? ns : s->cost;
    }
}

static uint64_t cost_of(const parts *p)
{
    uint64_t cost = 0;
    for (uint32_t i = 0; i < p->n; i++)
        cost += p->at[i].cost;
    return cost;
}

/* How many pieces part s is worth; a number that can be shared, where there are several. */
static int64_t wish_of(const parts *p, const step *s, uint64_t each)
{
    const uint64_t wish = s->cost / each, few = s->cost / PIECE_NS;
    if (few < 2)
        return 1;
    if (wish < p->width)
        return few < p->width ? (int64_t)few : p->width;
    return (int64_t)(wish - wish % p->width);
}

/* Cuts all parts; the number of pieces. */
static int64_t cut_parts(const parts *p)
{
    const uint64_t most = PIECES * (uint64_t)p->width, cost = cost_of(p);
    const uint64_t each = cost / most > PIECE_NS ? cost / most : PIECE_NS;
    int64_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        step *s = &p->at[i];
        const int64_t pieces = wish_of(p, s, each);
        s->piece = p->x->split_all ? 1 + s->grid / (int64_t)most
                                   : dc_max_i64((s->grid + pieces - 1) / pieces, 1);
        n += pieces_of(s);
    }
    return n;
}

/* Of guesses, before anything was timed. */
static bool cost_is_certain(const parts *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->at[i].certain)
            return true;
    return false;
}

static void run_split(parts *p)
{
    const int64_t pieces = cut_parts(p);
    if (pieces < 2)
        run_here(p);
    else
        dc_cpu_pool_run(p->x->pool, run_pieces, p, pieces, 1);
}

/* Both ways, one round each; pieces have to be better by an eighth, for what they move between cores. */
static void run_trial(parts *p)
{
    step *s = p->at;
    const uint32_t n = s->runs - TRIALS - 1;
    const uint64_t start = dc_clock_ns();
    if (n < ROUND)
        run_split(p);
    else
        run_timed(p);
    if (is_halted(p->x))
        return;
    uint64_t *best = n < ROUND ? &s->split : &s->whole;
    const uint64_t ns = dc_clock_ns() - start;
    *best = n % ROUND == 0 || ns < *best ? ns : *best;
    s->wide = s->split + s->split / 8 < s->whole;
}

static void run_parts(parts *p)
{
    step *s = p->at;
    if (s->runs == s->again) { /* both ways once more */
        s->runs = TRIALS;
        s->again = s->again * MORE < LATE ? s->again * MORE : LATE;
    }
    s->runs++;
    if (s->runs <= TRIALS)
        run_timed(p);
    else if (cost_of(p) < SPLIT_NS)
        run_here(p);
    else if (s->runs <= TRIALS + 2 * ROUND)
        run_trial(p);
    else if (s->wide)
        run_split(p);
    else
        run_here(p);
}

/* For the exchanges with other ranks whose results the command reads or writes over. */
static inline dc_status await(const run *x, uint32_t i)
{
    return x->r->exchanges == NULL ? DC_OK : dc_cpu_exchange_await(x->r->exchanges, x->j, i);
}

static dc_status run_bundle(void *ctx, uint32_t first, uint32_t n)
{
    run *x = ctx;
    x->last = first + n - 1;
    DC_TRY(await(x, first));
    parts p = {x, &x->r->step[first], n, dc_cpu_pool_width(x->pool)};
    if (p.width == 1 || (n == 1 && p.at[0].grid < 2))
        run_here(&p);
    else if (x->split_all || cost_is_certain(&p))
        run_split(&p);
    else
        run_parts(&p);
    return x->halt != NULL && x->halt->cut ? dc_fail(x->j, DC_ERR_INTERRUPTED, NULL) : DC_OK;
}

static dc_status run_launch(void *ctx, uint32_t i)
{
    return run_bundle(ctx, i, 1);
}

static void run_row(void *ctx, void *scratch, int64_t begin, int64_t end)
{
    one_row *x = ctx;
    const step *s = &x->x->r->step[x->at];
    x->status =
        dc_host_step_run(s->host, x->x->j, NULL, x->x->r->address + s->first, scratch, begin, end);
}

/* What ranks do together may fail, and is for the thread of the job. */
static dc_status run_host(void *ctx, uint32_t i)
{
    run *x = ctx;
    if (!dc_op_is(x->r->step[i].host->call.op, DC_CLASS_COM))
        return run_launch(ctx, i);
    one_row row = {x, i, DC_OK};
    x->last = i;
    DC_TRY(await(x, i));
    if (x->j->world != NULL && dc_cpu_exchange_is(x->r->exchanges, i))
        return dc_cpu_exchange_reach(x->r->exchanges, x->j, i, x->r->step[i].host,
                                     x->r->address + x->r->step[i].first);
    dc_cpu_pool_run_here(x->pool, run_row, &row, 1);
    return row.status;
}

/* A long one is ended between pieces, as a launch is. */
static dc_status run_copy(void *ctx, uint32_t i)
{
    run *x = ctx;
    const step *s = &x->r->step[i];
    void *const *at = x->r->address + s->first;
    x->last = i;
    DC_TRY(await(x, i));
    if (at[0] == at[1] || dc_host_move(at[0], at[1], s->bytes, ask, x))
        return DC_OK;
    return dc_fail(x->j, DC_ERR_INTERRUPTED, NULL);
}

static void *first_of(const run *x, uint32_t i)
{
    return x->r->address[x->r->step[i].first];
}

static dc_status run_check(void *ctx, uint32_t i, int32_t *out, uint64_t *bits)
{
    const run *x = ctx;
    const step *s = &x->r->step[i];
    DC_TRY(await(x, i));
    memcpy(out, first_of(x, i), sizeof *out);
    if (*out >= 0 && s->bytes > 0)
        memcpy(bits, x->r->address[s->first + 1], s->bytes);
    return DC_OK;
}

static dc_status run_test(void *ctx, uint32_t i, bool *out)
{
    const run *x = ctx;
    uint8_t byte;
    DC_TRY(await(x, i));
    memcpy(&byte, first_of(ctx, i), 1);
    *out = byte != 0;
    return DC_OK;
}

static dc_status run_limit(void *ctx, uint32_t i, int32_t *out)
{
    const run *x = ctx;
    DC_TRY(await(x, i));
    memcpy(out, x->r->address[x->r->step[i].first + 2], sizeof *out);
    return DC_OK;
}

static void resolve(const run *x, uint32_t bind)
{
    x->r->address[bind] = (char *)x->slot[x->r->bind[bind].slot] + x->r->bind[bind].offset;
}

/* From where they are at element 0 to the elements that the loops are at. */
static void advance(const run *x, const dc_bind_move *move, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        x->r->address[move[k].bind] =
            (char *)x->r->address[move[k].bind] +
            move[k].step * (size_t)dc_walk_element(x->r->walk, move[k].loop);
}

static dc_status run_count(void *ctx, uint32_t i, int32_t element)
{
    const run *x = ctx;
    uint32_t n;
    DC_TRY(await(x, i));
    memcpy(x->r->address[x->r->step[i].first + 1], &element, sizeof element);
    const dc_bind_move *move = dc_walk_moves(x->r->walk, i, &n);
    for (uint32_t k = 0; k < n; k++)
        resolve(x, move[k].bind);
    advance(x, move, n);
    return DC_OK;
}

/* A run that goes on may be within an iteration. */
static void resolve_all(const run *x)
{
    uint32_t n;
    for (uint32_t b = 0; b < x->r->nbind; b++)
        resolve(x, b);
    const dc_bind_move *move = dc_walk_all_moves(x->r->walk, &n);
    advance(x, move, n);
}

dc_status dc_cpu_run(dc_device *d, dc_job *j, dc_recording *r, void *const *slot, dc_run_info *info)
{
    static const dc_walk_ops ops = {run_launch, run_copy,   run_check, run_test,
                                    run_count,  run_bundle, run_limit, run_host};
    static const atomic_bool never;
    const dc_cpu *cpu = (const dc_cpu *)d;
    run x = {.r = r,
             .pool = cpu->pool,
             .slot = slot,
             .split_all = cpu->split_all,
             .j = j,
             .halt = info != NULL ? info->halt : NULL,
             .watch = info != NULL ? info->watch : NULL};
    dc_cpu_pool_watch(x.pool, x.watch != NULL && x.watch->to != NULL ? tell_part : NULL);
    x.look = (dc_look){x.halt != NULL ? x.halt->asked : &never, ask, &x};
    resolve_all(&x);
    const uint64_t control = dc_control_word();
    if (j->opt->flush)
        dc_set_control_word(control | DC_CONTROL_FLUSH);
    dc_control_denormals(); /* what the host has met is not ours */
    if (info == NULL || info->next == 0)
        dc_cpu_exchanges_begin(r->exchanges);
    dc_status status = dc_walk_run(r->walk, j, &ops, &x, info);
    status = dc_cpu_exchanges_finish(r->exchanges, j, status, info != NULL && info->next != 0);
    if (info != NULL)
        info->denormals = dc_control_denormals();
    dc_set_control_word(control);
    return status;
}
