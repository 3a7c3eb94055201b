/*
 * What an executable and an instance are made of; inside jit/ only.
 *
 * Slots of a recording: 0 the argument block, 1 the arena, then one for each free parameter (those
 * of rank 0 stay unused, they live in the block), each cell, each result.
 */
#ifndef DC_JIT_EXEC_H
#define DC_JIT_EXEC_H

#include "jit/jit.h"

enum { DC_SLOT_BLOCK, DC_SLOT_ARENA, DC_SLOT_FIRST };

/* What is known of an item beside what the device needs. */
typedef struct dc_item_fact {
    const char *where[3]; /* script lines of the nodes inside, or NULL */
    int64_t flops, bytes; /* per launch */
    uint32_t check;       /* CHECK: its number */
    dc_bind value;        /* CHECK: where the value at fault stands */
} dc_item_fact;

/* A temporary of the arena, for guard zones. */
typedef struct dc_guarded {
    size_t offset, bytes;
    uint32_t first, last; /* items between which it is alive */
} dc_guarded;

typedef struct dc_profile { /* DEEPC_DEBUG=time */
    uint64_t *item_ns;      /* one per item; NULL when nothing is measured */
    void *rows;             /* room for the report, which may be printed while nothing can fail */
    uint64_t calls, call_ns;
} dc_profile;

struct dc_exec {
    uint32_t refs;
    dc_rt *rt;
    dc_exec *prev, *next; /* in rt->execs */
    dc_arena mem;         /* everything below that points */
    dc_module *module;
    dc_exec_desc desc; /* fn is a copy of what was given: the interpreter runs it */
    dc_type *param, *result;
    bool *cell_read;  /* by cell: the function depends on the old value */
    size_t *block_at; /* by free parameter: offset in the argument block */
    size_t block_bytes;
    bool compare;

    /* compiled; none of it when info.interpreted */
    dc_program *program;
    dc_item *item;
    dc_item_fact *fact;
    uint32_t nitem;
    size_t guard; /* free bytes round each temporary */
    dc_guarded *temp;
    uint32_t ntemp;

    dc_exec_info info;
    dc_profile profile;
};

struct dc_inst {
    dc_exec *exec;
    dc_rt *rt;
    dc_arena mem; /* the arrays below */
    dc_cell **cell;
    dc_store **result;  /* memory of the results */
    dc_tensor **handle; /* what calls give out; reused when nobody else holds it, else NULL */
    dc_store *block;    /* the argument block */
    void *staging;      /* the same on the host */
    void **slot;
    dc_recording **recording; /* one; or one per item when guards are checked */
    uint32_t nrecording;
    uint64_t calls;
    bool busy;           /* a call is running */
    bool borrowed;       /* it uses the context's arena */
    dc_store *own_arena; /* or this one */
};

static inline uint32_t dc_slot_free(uint32_t i)
{
    return DC_SLOT_FIRST + i;
}

static inline uint32_t dc_slot_cell(const dc_exec *e, uint32_t i)
{
    return DC_SLOT_FIRST + e->desc.nfree + i;
}

static inline uint32_t dc_slot_result(const dc_exec *e, uint32_t i)
{
    return DC_SLOT_FIRST + e->desc.nfree + e->desc.ncell + i;
}

static inline uint32_t dc_slot_count(const dc_exec *e)
{
    return dc_slot_result(e, e->desc.nresult);
}

#endif
