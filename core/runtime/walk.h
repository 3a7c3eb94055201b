/*
 * The control flow of command lists (core/runtime/device.h), the same for every device: nesting, how often a
 * LOOP goes round, which side of a BRANCH, CHECKs that stop, slices by a deadline. A device brings
 * four or five functions and keeps no position of its own.
 *
 *     record:  r->walk = dc_walk_new(command, n);       checks the list; a malformed one is a BUG
 *     run:     return dc_walk_run(r->walk, j, &ops, r, info);
 *     free:    dc_walk_free(r->walk);
 *
 * A walk holds the list's shape and where the run at hand stands, all of it allocated by
 * dc_walk_new; running allocates nothing. It copies what it needs of the commands.
 */
#ifndef DC_CORE_RUNTIME_WALK_H
#define DC_CORE_RUNTIME_WALK_H

#include "core/base/spans.h"
#include "core/runtime/device.h"

typedef struct dc_walk dc_walk;

/* The span of a command, or of a part of one. */
static inline void dc_run_span(const dc_run_watch *w, uint32_t command, uint64_t begun_ns,
                               uint64_t ended_ns)
{
    if (w->to != NULL && w->name[command] != 0)
        dc_spans_add(w->to, w->name[command], w->lane, begun_ns, ended_ns, 0);
}

/* A command ran; `again`: it goes on, and was counted. */
static inline void dc_run_tell(const dc_run_watch *w, uint32_t command, bool again,
                               uint64_t begun_ns, uint64_t ended_ns)
{
    w->ns[command] += ended_ns - begun_ns;
    if (w->runs != NULL)
        w->runs[command] += !again;
    dc_run_span(w, command, begun_ns, ended_ns);
}

/* `command` is the position in the recorded list. What fails ends the run with that status. */
typedef struct dc_walk_ops {
    dc_status (*launch)(void *ctx, uint32_t command);
    dc_status (*copy)(void *ctx, uint32_t command);
    /* CHECK: the i32 at bind[0]; where it is >= 0, what stands at bind[1]. Everything that launches before it is visible. */
    dc_status (*check)(void *ctx, uint32_t command, int32_t *out, uint64_t *bits);
    /* LOOP and BRANCH: the bool at bind[0]. NULL where lists have neither. */
    dc_status (*test)(void *ctx, uint32_t command, bool *out);
    /*
     * LOOP: the number of the element that the iteration is for, for the i32 at bind[1]; binds of the body have
     * moved (dc_walk_offset). NULL like `test`.
     */
    dc_status (*count)(void *ctx, uint32_t command, int32_t element);
    /*
     * BUNDLE: the n LAUNCH commands from `first` on, in any order or at the same time. NULL: they are
     * launched one after the other, as they are while times are taken.
     */
    dc_status (*bundle)(void *ctx, uint32_t first, uint32_t n);
    /* LOOP: the i32 at bind[2]. NULL like `test`. */
    dc_status (*limit)(void *ctx, uint32_t command, int32_t *out);
    /* HOST: all rows. */
    dc_status (*host)(void *ctx, uint32_t command);
} dc_walk_ops;

/*
 * BUG if the list is malformed: a body that leaves its list, binds that do not fit the kind, a dep
 * that is no earlier command of the same list. Takes no job, so put the walk where unwinding finds it.
 */
dc_walk *dc_walk_new(const dc_command *command, uint32_t n);
void dc_walk_free(dc_walk *w);
/* The binds of a command, copied into the walk: those of all commands follow one another there, and so many they are. */
const dc_bind *dc_walk_binds(const dc_walk *w, uint32_t command);
uint32_t dc_walk_bind_count(const dc_walk *w);
/* Where a bind of a command is now in its slot. */
size_t dc_walk_offset(const dc_walk *w, uint32_t command, uint32_t bind);
/*
 * For devices that keep addresses: what moves in LOOP `command`, *n of them, where `bind` counts as dc_walk_binds
 * does, from the first command's. dc_walk_element: that loop `loop` is at, counted from the outermost; 0 outside.
 */
const dc_bind_move *dc_walk_moves(const dc_walk *w, uint32_t command, uint32_t *n);
const dc_bind_move *dc_walk_all_moves(const dc_walk *w, uint32_t *n);
int64_t dc_walk_element(const dc_walk *w, uint32_t loop);

/*
 * Runs, or goes on with, the list as dc_run_info says: from the begin when info is NULL or
 * info->next is 0, else from where the slice before stopped. A slice ends before a LAUNCH, COPY,
 * CHECK or next iteration, and after at least one LAUNCH, COPY or iteration, so that every run
 * comes to its end. `next` is then the next command's position, 1 at least.
 *
 * A CHECK that finds something ends the run with DC_OK and info->fault_command; without info it is a
 * failure, DEVICE. info->watch hears how long each function took and how often it began; a device that
 * measures in another way passes a copy of info without it.
 */
dc_status dc_walk_run(dc_walk *w, dc_job *j, const dc_walk_ops *ops, void *ctx, dc_run_info *info);

#endif
