/*
 * Values. Three things with different lives:
 *
 *   dc_storage  memory on the device. Its address never changes.
 *   dc_tensor   an immutable value, reference counted: a handle that shows a storage, or an aligned part
 *               of it. Handles move.
 *   dc_cell     a named place (parameter, state) with a type that never changes, but for the first size of a
 *               state that grows; owns one storage whose address stays for the cell's life, unless it is moved to
 *               another device (core/runtime/devices.h).
 *
 * Invariant: what a tensor shows is never overwritten. The storage of a cell that a call is about to
 * write is first freed of its handles: dc_storage_evict copies the content to a storage of the pool and moves
 * every handle there. Other memory that is held is left alone: a writer takes another storage.
 *
 * Freed storages go back to a pool by size; an allocation counts in stats.allocs only when the pool
 * had none. With DEEPC_CHECK=2 every storage has 64 guard bytes before and after it, which
 * dc_storage_guards checks.
 */
#ifndef DC_CORE_RUNTIME_STORAGE_H
#define DC_CORE_RUNTIME_STORAGE_H

#include "core/runtime/rt.h"
#include "core/transform/partition.h"

typedef struct dc_tensor dc_tensor;

typedef struct dc_storage {
    dc_rt *rt;
    void *mem;
    size_t bytes;
    dc_tensor *shown; /* handles that show it, linked */
    struct dc_outcome
        *outcome; /* of the call that wrote it; NULL: known (core/runtime/outcome.h) */
    bool owned;   /* by a cell, or of no tensor: not given back with the last handle */
    bool foreign; /* memory of the host's, see dc_tensor_foreign */
    void (*release)(void *ctx); /* of that: called at its end */
    void *release_ctx;
    uint64_t freed;          /* in the pool: when, among the others */
    struct dc_storage *next; /* in the pool, or in the list of live ones */
    struct dc_storage *prev;
    struct dc_storage *left; /* of a cell that is elsewhere now: the next such one */
} dc_storage;

enum { DC_ALIGN = 64 }; /* of memory that devices give out and kernels rely on */

struct dc_tensor {
    uint32_t refs;
    dc_type type; /* with names */
    dc_storage *store;
    size_t offset;          /* in it, in bytes; a multiple of DC_ALIGN, but of a window */
    dc_tensor *next, *prev; /* among those that show the storage */
};

/*
 * How the memory of a cell stands: its axis i is axis axis[i] of the value. Not turned: as the value, which
 * is what holds after dc_cell_check.
 */
typedef struct dc_cell_layout {
    bool turned;
    uint8_t axis[DC_MAX_RANK];
} dc_cell_layout;

/* Of a state whose first axis grows. The sizes of two such states are two variables. */
typedef struct dc_growth {
    int64_t least, most; /* what its first size may be; it has memory for the most */
    dc_type inside;      /* its type in functions: with the variable */
    dc_type shown;       /* room for the type that it has where a function is traced */
    uint32_t number;     /* of the variable: that of no other one in the list */
    struct dc_cell *cell;
    struct dc_growth *next, *prev; /* in rt->growing */
} dc_growth;

/* Of a cell that holds a part of its value, as all ranks do. */
typedef struct dc_cell_split {
    dc_sharding s;
    dc_type whole; /* its type in functions */
} dc_cell_split;

typedef struct dc_cell {
    uint32_t refs;
    dc_rt *rt;
    uint64_t id;      /* unique in the context */
    uint64_t version; /* another one after each write: the writer calls dc_cell_written */
    dc_type type;
    struct dc_growth *growth; /* of a state whose first axis grows; else NULL */
    dc_cell_split *split;     /* NULL: the value is whole */
    dc_storage *store;        /* with room for the largest size */
    dc_storage *left;         /* its memory on other devices, which it may come back to */
    uint32_t moved;           /* so often to another device, for good */
    dc_cell_layout layout;    /* of the storage */
    struct dc_lazy *start; /* what it starts with, not computed yet; else NULL: see dc_cell_start */
    char *label;           /* "net.2.weight"; replaced when a path is known */
    bool trainable;        /* dc.param, not dc.state */
    bool frozen;           /* a parameter that is not trained for a while */
    bool optimised;        /* an optimiser was made for it */
    bool agreed;           /* all ranks had the same value, when it was first used */
    bool torn;             /* a failed device run may have left half a value */
    const char *job;       /* function whose call or job is about to set it; NULL: none */
    struct dc_filling
        *filling; /* that writes its value, or could not (core/runtime/filling.h); else NULL */
} dc_cell;

dc_status dc_storage_new(dc_rt *rt, dc_job *j, size_t bytes, dc_storage **out);
void dc_storage_free(dc_storage *s);   /* no handle may show it */
void dc_storage_disown(dc_storage *s); /* its owner lets go: freed now, or with the last handle */
dc_status dc_storage_evict(dc_storage *s, dc_job *j); /* gives handles a copy elsewhere */
/* What does not succeed may have written a part. */
dc_status dc_storage_fill(dc_storage *s, dc_job *j, const void *from,
                          size_t bytes);              /* of this device */
dc_status dc_storage_clear(dc_storage *s, dc_job *j); /* zeros */
/* DEEPC_CHECK=2: GUARD names `what` if bytes outside any live storage were written. */
dc_status dc_storage_guards(dc_rt *rt, dc_job *j, const char *what);

/* MEMORY if so much more of the device's memory is above the limit, even without what the pool holds. */
/* Called after a change of rt->held: tells it to the heap, which counts it towards the limit. */
void dc_storage_tell(const dc_rt *rt);
void dc_storage_count(dc_rt *rt, size_t bytes); /* so many more are alive */
dc_status dc_storage_admit(dc_rt *rt, dc_job *j, size_t bytes);

/* The pool of a context; core/runtime/rt.c makes and frees it. */
struct dc_pool *dc_pool_new(const dc_opts *opt);
void dc_pool_drain(dc_rt *rt);        /* freed storages go back to the device */
void dc_storage_give_back(dc_rt *rt); /* and all that is kept without being in use */
/* Those go that were not needed since the time before this was last called. */
void dc_pool_trim(dc_rt *rt);
void dc_pool_free(dc_rt *rt);

/* A tensor with fresh memory, not cleared; or one that shows `s` (another tensor's, or a cell's). */
dc_status dc_tensor_new(dc_rt *rt, dc_job *j, const dc_type *t, dc_tensor **out);
dc_tensor *dc_tensor_show(dc_storage *s, const dc_type *t);
/*
 * One over memory of this device that is the host's: at a multiple of DC_ALIGN, and as it is until its end. It is
 * only read; no pool takes it and no limit counts it. Where the last handle goes, release(ctx) is called (NULL: nothing is).
 */
dc_status dc_tensor_foreign(dc_rt *rt, dc_job *j, const dc_type *t, void *mem,
                            void (*release)(void *ctx), void *ctx, dc_tensor **out);
/* One that shows dense memory of another one, from so many bytes on. */
dc_tensor *dc_tensor_part(const dc_tensor *of, const dc_type *t, size_t offset);
/* The same from any element on: an argument for a program that knows of it, and nothing else. */
dc_tensor *dc_tensor_window(const dc_tensor *of, const dc_type *t, size_t offset);
dc_tensor *dc_tensor_retain(dc_tensor *t);
void dc_tensor_release(dc_tensor *t);          /* NULL is fine */
void dc_tensor_defer(dc_job *j, dc_tensor *t); /* dc_job_defer: j releases it */
static inline void *dc_tensor_mem(const dc_tensor *t)
{
    return (char *)t->store->mem + t->offset;
}

/* Cells start with zeros. dc_cell_write evicts holders first. */
dc_status dc_cell_new(dc_rt *rt, dc_job *j, const dc_type *t, const char *label, bool trainable,
                      dc_cell **out);
/*
 * One that starts with the value of n, of numbers alone, and of the same type, else CELL_TYPE. It is
 * computed at the first read (dc_cell_check), or never, if the cell is written before that.
 */
dc_status dc_cell_start(dc_rt *rt, dc_job *j, const dc_type *t, bool trainable, struct dc_lazy *n,
                        dc_cell **out);
/*
 * A state whose first size, now that of t, is from `least` to `most` > 0; the axis is called so. It is never laid out in
 * another way.
 */
dc_status dc_cell_new_growing(dc_rt *rt, dc_job *j, const dc_type *t, const char *axis,
                              int64_t least, int64_t most, dc_cell **out);
/* growth.c, for cell.c: what such a state has; into the list and out of it. */
dc_status dc_growth_of(dc_rt *rt, dc_job *j, const dc_type *t, const char *axis, int64_t least,
                       int64_t most, dc_growth *out);
dc_status dc_growth_add(dc_cell *c, dc_job *j, const dc_growth *as);
void dc_growth_remove(dc_cell *c);
/* The one whose size in functions is this variable, or NULL. */
dc_cell *dc_cell_of_size(const dc_rt *rt, int64_t var);
/* The value that functions know is a larger one, of which this is the part here. NOMEM. */
dc_status dc_cell_set_split(dc_cell *c, dc_job *j, const dc_sharding *s, const dc_type *whole);
/* A whole cell becomes one that holds this part; nothing has its memory yet. */
dc_status dc_cell_shard(dc_cell *c, dc_job *j, const dc_sharding *s, const dc_type *whole,
                        const dc_tensor *part);
/* Its type in functions, but for sizes that grow. */
static inline const dc_type *dc_cell_whole(const dc_cell *c)
{
    return c->split != NULL ? &c->split->whole : &c->type;
}
/* Of its memory: with the largest size. */
dc_type dc_cell_room_type(const dc_cell *c);
/* Does a value of this type fit, but for the size of its first axis? And that, too: else BOUND. */
bool dc_cell_takes(const dc_cell *c, const dc_type *value);
dc_status dc_cell_check_size(const dc_cell *c, dc_job *j, const char *op, int64_t size);
dc_cell *dc_cell_retain(dc_cell *c);
void dc_cell_release(dc_cell *c);
void dc_cell_defer(dc_job *j, dc_cell *c); /* dc_job_defer: j releases it */
dc_status dc_cell_write(dc_cell *c, dc_job *j,
                        const dc_tensor *value); /* same type, else CELL_TYPE */
/*
 * Its memory is about to be written, and torn where that does not succeed: only a request that insists ends it.
 * Returns what dc_job_heed does.
 */
const atomic_bool *dc_cell_writing(const dc_cell *c, dc_job *j);
/* There is another value in the cell's memory, or may be; half of one where it is torn. */
void dc_cell_written(dc_cell *c, bool torn);
/*
 * Called before each read or write of a cell: fails with JOB while a job sets it; with TORN, for reads, or as what should
 * have filled it did; waits while that is under way. Afterwards the memory is laid out as the value.
 */
dc_status dc_cell_check(dc_cell *c, dc_job *j, const char *op, bool reads);
/* The same, for reads and writes of the memory as it is laid out. */
dc_status dc_cell_refuse(dc_cell *c, dc_job *j, const char *op, bool reads);
/* The memory of the cell holds its value, also if that was not computed yet. To be read, it has passed the check. */
dc_status dc_cell_settle(dc_cell *c, dc_job *j);
/* One that stands twice in a list; NULL: none does. */
const dc_cell *dc_cells_twice(dc_job *j, dc_cell *const *cell, uint32_t n);
dc_tensor *dc_cell_show(dc_cell *c); /* the value now, as an immutable tensor */
void dc_cell_label(dc_cell *c, const char *label);

/* ---- layouts (core/runtime/cell_layout.c) ---- */

bool dc_cell_layout_same(const dc_cell_layout *a, const dc_cell_layout *b);
/* Of the memory of a value of type t. */
dc_type dc_cell_layout_type(const dc_cell_layout *l, const dc_type *t);
/* Axes of the memory laid out as `from` in the order that `to` wants. */
void dc_cell_layout_perm(const dc_cell_layout *from, const dc_cell_layout *to, int rank,
                         int64_t *perm);
/* The same value in other memory order: copied where the cell is not laid out so. It was asked for before. */
dc_status dc_cell_relayout(dc_cell *c, dc_job *j, const dc_cell_layout *want);

#endif
