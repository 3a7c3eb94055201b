/*
 * One loop over a position and a stack of frames, so that a run can stop between any two commands and
 * go on later. A frame is the list being run: frame 0 the whole recording, above it one for each
 * LOOP or side of a BRANCH that the position is inside of.
 */
#include "core/runtime/walk.h"

#include <inttypes.h>
#include <string.h>

#define NO_OWNER UINT32_MAX

typedef struct node { /* what is kept of a command */
    dc_command_kind kind;
    uint32_t nbind, nbody, nelse;
    int64_t grid;
    const dc_bind *bind;  /* in the walk */
    uint32_t first, move; /* binds, and moves, of the commands before it */
    bool untested, reverse;
} node;

typedef struct frame {
    uint32_t owner;    /* the LOOP or BRANCH, or NO_OWNER */
    uint32_t end;      /* one past the last command of this list */
    int64_t iteration; /* LOOP: that runs, or is about to begin */
    int64_t most;      /* LOOP: iterations */
} frame;

struct dc_walk {
    uint32_t n, nframe;
    uint32_t loops; /* that the position is inside of */
    int64_t element[DC_LOOP_DEPTH];
    dc_bind_move *move;
    uint32_t nmove;
    uint32_t at;    /* next command; a LOOP in its own frame: before its next iteration */
    uint32_t depth; /* of the frame in use */
    frame *frame;
    node node[];
};

typedef struct run {
    dc_walk *w;
    const dc_walk_ops *ops;
    void *ctx;
    const dc_run_watch *watch;
    uint64_t deadline;
    const atomic_bool *stop;
    bool moved; /* something ran in this slice */
    int32_t found;
    uint64_t bits; /* what the check that found it has for the report */
} run;

/* ---- checking a list ------------------------------------------------------------------------- */

static void check_binds(const dc_command *x, uint32_t i)
{
    const uint32_t n = x->nbind;
    bool ok = true;
    switch (x->kind) {
    case DC_COMMAND_LAUNCH:
        ok = x->grid >= 0;
        break;
    case DC_COMMAND_COPY:
        ok = n == 2;
        break;
    case DC_COMMAND_CHECK:
        ok = n == 1 || (n == 2 && x->bytes <= sizeof(uint64_t));
        break;
    case DC_COMMAND_BRANCH:
        ok = n == 1;
        break;
    case DC_COMMAND_LOOP:
        ok = n <= 3 && x->grid >= 0 && (n < 2 || x->grid <= INT32_MAX) &&
             (n > 1 || !(x->untested || x->reverse));
        break;
    case DC_COMMAND_HOST:
        ok = n > 1 && x->grid >= 0 && x->nhost > 0;
        break;
    case DC_COMMAND_BUNDLE:
        ok = n == 0;
        break;
    }
    if (!ok)
        DC_BUG("command %u of kind %d has %u binds and grid %" PRId64, i, x->kind, n, x->grid);
    for (uint32_t m = 0; m < x->nmove; m++)
        if (x->move[m].bind >= n || x->move[m].loop >= DC_LOOP_DEPTH)
            DC_BUG("command %u moves bind %u with loop %u", i, x->move[m].bind, x->move[m].loop);
    if (x->nelse > 0 && x->kind != DC_COMMAND_BRANCH)
        DC_BUG("command %u of kind %d has an else", i, x->kind);
    if (x->nbody > 0 && x->kind != DC_COMMAND_BRANCH && x->kind != DC_COMMAND_LOOP &&
        x->kind != DC_COMMAND_BUNDLE)
        DC_BUG("command %u of kind %d has a body", i, x->kind);
}

/* Item `at` of a list: its deps are begins of units (a command with its bodies) before it. */
static void check_deps(const dc_command *list, uint32_t at)
{
    const dc_command *x = &list[at];
    for (uint32_t d = 0; d < x->ndep; d++) {
        uint32_t unit = 0;
        while (unit < at && unit < x->dep[d])
            unit += 1 + list[unit].nbody + list[unit].nelse;
        if (unit != x->dep[d] || unit >= at)
            DC_BUG("command %u of a list waits for %u", at, x->dep[d]);
    }
}

static void check_bundle(const dc_command *command, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if (command[i].kind != DC_COMMAND_LAUNCH || command[i].ndep > 0)
            DC_BUG("command %u of a bundle is of kind %d and waits for %u others", i,
                   command[i].kind, command[i].ndep);
}

/* Items [begin, end) are one list. Returns how deep the bodies in it are nested. */
static uint32_t check_list(const dc_command *command, uint32_t begin, uint32_t end, uint32_t loops)
{
    uint32_t deepest = 0;
    for (uint32_t i = begin; i < end;) {
        const dc_command *x = &command[i];
        const uint32_t body = i + 1, left = end - body;
        check_binds(x, i);
        if (x->nbody > left || x->nelse > left - x->nbody)
            DC_BUG("the bodies of command %u, %u and %u long, leave its list", i, x->nbody,
                   x->nelse);
        check_deps(command + begin, i - begin);
        i = body + x->nbody + x->nelse;
        if (x->kind == DC_COMMAND_BUNDLE)
            check_bundle(command, body, i);
        if (x->kind != DC_COMMAND_LOOP && x->kind != DC_COMMAND_BRANCH)
            continue;
        const uint32_t inside = loops + (x->kind == DC_COMMAND_LOOP);
        if (inside > DC_LOOP_DEPTH)
            DC_BUG("%u loops inside each other", inside);
        const uint32_t one = check_list(command, body, body + x->nbody, inside);
        const uint32_t two = check_list(command, body + x->nbody, i, inside);
        const uint32_t deeper = 1 + (one > two ? one : two);
        deepest = deeper > deepest ? deeper : deepest;
    }
    return deepest;
}

/* ---- making one ------------------------------------------------------------------------------ */

static void rewind_walk(dc_walk *w)
{
    w->at = 0;
    w->depth = 0;
    w->loops = 0;
    w->frame[0] = (frame){.owner = NO_OWNER, .end = w->n};
}

dc_walk *dc_walk_new(const dc_command *command, uint32_t n)
{
    const uint32_t nframe = 1 + check_list(command, 0, n, 0);
    const size_t frames = dc_align_up(sizeof(dc_walk) + n * sizeof(node), 16);
    const size_t binds = frames + nframe * sizeof(frame);
    size_t nbind = 0, nmove = 0;
    for (uint32_t i = 0; i < n; i++) {
        nbind += command[i].nbind;
        nmove += command[i].nmove;
    }
    const size_t moves = binds + nbind * sizeof(dc_bind);
    dc_walk *w = dc_xalloc(moves + nmove * sizeof *w->move); /* one block: nothing to unwind */
    dc_bind *bind = (dc_bind *)(void *)((char *)w + binds);
    uint32_t first = 0;
    w->n = n;
    w->move = (dc_bind_move *)(void *)((char *)w + moves);
    w->nframe = nframe;
    w->frame = (frame *)(void *)((char *)w + frames);
    for (uint32_t i = 0; i < n; i++) {
        w->node[i] = (node){.kind = command[i].kind,
                            .nbind = command[i].nbind,
                            .nbody = command[i].nbody,
                            .nelse = command[i].nelse,
                            .grid = command[i].grid,
                            .bind = bind,
                            .first = first,
                            .move = w->nmove,
                            .untested = command[i].untested,
                            .reverse = command[i].reverse};
        for (uint32_t m = 0; m < command[i].nmove; m++) {
            w->move[w->nmove] = command[i].move[m];
            w->move[w->nmove++].bind += first;
        }
        first += command[i].nbind;
        if (command[i].nbind > 0)
            memcpy(bind, command[i].bind, command[i].nbind * sizeof *bind);
        bind += command[i].nbind;
    }
    rewind_walk(w);
    return w;
}

void dc_walk_free(dc_walk *w)
{
    dc_xfree(w);
}

const dc_bind *dc_walk_binds(const dc_walk *w, uint32_t command)
{
    return w->node[command].bind;
}

uint32_t dc_walk_bind_count(const dc_walk *w)
{
    const node *last = w->n > 0 ? &w->node[w->n - 1] : NULL;
    return last != NULL ? (uint32_t)(last->bind + last->nbind - w->node->bind) : 0;
}

int64_t dc_walk_element(const dc_walk *w, uint32_t loop)
{
    return loop < w->loops ? w->element[loop] : 0;
}

/* Moves of the commands [begin, end). */
static const dc_bind_move *moves_of(const dc_walk *w, uint32_t begin, uint32_t end, uint32_t *n)
{
    const uint32_t last = end < w->n ? w->node[end].move : w->nmove;
    *n = last - w->node[begin].move;
    return w->move + w->node[begin].move;
}

size_t dc_walk_offset(const dc_walk *w, uint32_t command, uint32_t bind)
{
    const node *x = &w->node[command];
    uint32_t n;
    const dc_bind_move *move = moves_of(w, command, command + 1, &n);
    size_t offset = x->bind[bind].offset;
    for (uint32_t i = 0; i < n; i++)
        if (move[i].bind == x->first + bind)
            offset += move[i].step * (size_t)dc_walk_element(w, move[i].loop);
    return offset;
}

const dc_bind_move *dc_walk_moves(const dc_walk *w, uint32_t command, uint32_t *n)
{
    return moves_of(w, command, command + 1 + w->node[command].nbody, n);
}

const dc_bind_move *dc_walk_all_moves(const dc_walk *w, uint32_t *n)
{
    *n = w->nmove;
    return w->move;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static void enter_body(dc_walk *w, uint32_t owner, uint32_t begin, uint32_t end)
{
    DC_ASSERT(w->depth + 1 < w->nframe, "command %u is nested too deep", owner);
    w->frame[++w->depth] = (frame){.owner = owner, .end = end};
    w->at = begin;
}

/* Before an iteration, of a loop that is in its own frame. */
static dc_status next_iteration(run *r, frame *f)
{
    dc_walk *w = r->w;
    const node *x = &w->node[f->owner];
    bool more = f->iteration < f->most;
    if (more && x->nbind > 0 && !x->untested)
        DC_TRY(r->ops->test(r->ctx, f->owner, &more));
    if (!more) {
        w->at = f->end;
        w->depth--;
        w->loops--;
        return DC_OK;
    }
    w->at = f->owner + 1;
    const int64_t element = x->reverse ? f->most - 1 - f->iteration : f->iteration;
    w->element[w->loops - 1] = element;
    return x->nbind > 1 ? r->ops->count(r->ctx, f->owner, (int32_t)element) : DC_OK;
}

/* The frame is that of the loop from here on. */
static dc_status enter_loop(run *r)
{
    dc_walk *w = r->w;
    const node *x = &w->node[w->at];
    int32_t limit;
    int64_t most = x->grid;
    if (x->nbind > 2) {
        DC_TRY(r->ops->limit(r->ctx, w->at, &limit));
        most = limit < 0 ? 0 : dc_min_i64(limit, x->grid);
    }
    enter_body(w, w->at, w->at, w->at + 1 + x->nbody);
    w->frame[w->depth].most = most;
    w->element[w->loops++] = 0;
    return DC_OK;
}

static dc_status begin_loop(run *r)
{
    dc_walk *w = r->w;
    if (w->frame[w->depth].owner != w->at)
        DC_TRY(enter_loop(r));
    return next_iteration(r, &w->frame[w->depth]);
}

static dc_status choose_side(run *r)
{
    dc_walk *w = r->w;
    const uint32_t owner = w->at, body = owner + 1;
    const node *x = &w->node[owner];
    bool yes = false;
    DC_TRY(r->ops->test(r->ctx, owner, &yes));
    if (yes)
        enter_body(w, owner, body, body + x->nbody);
    else
        enter_body(w, owner, body + x->nbody, body + x->nbody + x->nelse);
    return DC_OK;
}

/* The end of a body: a LOOP stands before its next iteration, a BRANCH is behind us. */
static void end_body(run *r)
{
    dc_walk *w = r->w;
    frame *f = &w->frame[w->depth];
    const node *x = &w->node[f->owner];
    w->at = f->owner;
    if (x->kind == DC_COMMAND_LOOP) {
        f->iteration++;
        r->moved = true;
        return;
    }
    w->at += 1 + x->nbody + x->nelse;
    w->depth--;
}

/* ---- running --------------------------------------------------------------------------------- */

/* As one, or as commands of the list that it stands in. */
static dc_status do_bundle(run *r)
{
    dc_walk *w = r->w;
    const uint32_t first = ++w->at, n = w->node[first - 1].nbody;
    if (r->ops->bundle == NULL || r->watch != NULL)
        return DC_OK;
    w->at += n;
    r->moved = true;
    return r->ops->bundle(r->ctx, first, n);
}

/* Does command w->at, and moves on. */
static dc_status do_item(run *r)
{
    dc_walk *w = r->w;
    const uint32_t i = w->at;
    switch (w->node[i].kind) {
    case DC_COMMAND_LAUNCH:
        w->at++;
        r->moved = true;
        return r->ops->launch(r->ctx, i);
    case DC_COMMAND_COPY:
        w->at++;
        r->moved = true;
        return r->ops->copy(r->ctx, i);
    case DC_COMMAND_HOST:
        w->at++;
        r->moved = true;
        return r->ops->host(r->ctx, i);
    case DC_COMMAND_CHECK:
        w->at++;
        return r->ops->check(r->ctx, i, &r->found, &r->bits);
    case DC_COMMAND_LOOP:
        return begin_loop(r);
    case DC_COMMAND_BRANCH:
        return choose_side(r);
    case DC_COMMAND_BUNDLE:
        return do_bundle(r);
    }
    DC_BUG("a command of kind %d", w->node[i].kind);
}

static dc_status do_timed(run *r)
{
    const uint32_t i = r->w->at;
    const bool around = r->w->frame[r->w->depth].owner == i; /* a LOOP that has been round */
    const uint64_t start = dc_clock_ns();
    const dc_status status = do_item(r);
    dc_run_tell(r->watch, i, around, start, dc_clock_ns());
    return status;
}

static bool is_over(const run *r)
{
    return (r->deadline != 0 && dc_clock_ns() >= r->deadline) ||
           (r->stop != NULL && atomic_load_explicit(r->stop, memory_order_relaxed));
}

/* Until the end, a failure, a CHECK that found something (`at` is then behind it) or a pause. */
static dc_status go_on(run *r, bool *paused)
{
    dc_walk *w = r->w;
    *paused = false;
    for (;;) {
        while (w->at == w->frame[w->depth].end && w->depth > 0)
            end_body(r);
        if (w->depth == 0 && w->at == w->n)
            return DC_OK;
        if (r->moved && is_over(r)) {
            *paused = true;
            return DC_OK;
        }
        DC_TRY(r->watch != NULL ? do_timed(r) : do_item(r));
        if (r->found >= 0)
            return DC_OK;
    }
}

/* What tells a paused run from one that begins; a LOOP at 0 is given as its body. */
static uint32_t mark_of(const dc_walk *w)
{
    return w->at > 0 ? w->at : 1;
}

static dc_status report_check(const run *r, dc_job *j, dc_run_info *info)
{
    const uint32_t command = r->w->at - 1;
    if (info == NULL)
        return dc_failf(j, DC_ERR_DEVICE, NULL, "check %" PRIu32 " of a run found %" PRId32,
                        command, r->found);
    info->fault_command = (int32_t)command;
    info->fault_value = r->found;
    info->fault_bits = r->bits;
    return DC_OK;
}

dc_status dc_walk_run(dc_walk *w, dc_job *j, const dc_walk_ops *ops, void *ctx, dc_run_info *info)
{
    bool paused = false;
    run r = {.w = w, .ops = ops, .ctx = ctx, .found = -1};
    if (info != NULL) {
        info->fault_command = -1;
        info->fault_value = -1;
        info->fault_bits = 0;
        r.watch = info->watch;
        r.deadline = info->deadline_ns;
        r.stop = info->stop;
    }
    if (info == NULL || info->next == 0)
        rewind_walk(w);
    else if (info->next != mark_of(w))
        DC_BUG("a run goes on at command %u, and stands at %u", info->next, mark_of(w));
    if (info != NULL)
        info->begun |= w->n > 0;
    dc_status status = go_on(&r, &paused);
    if (status == DC_OK && r.found >= 0)
        status = report_check(&r, j, info);
    if (info != NULL)
        info->next = paused ? mark_of(w) : 0;
    if (!paused)
        rewind_walk(w);
    return status;
}
