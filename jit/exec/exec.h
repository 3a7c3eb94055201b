/*
 * What an executable and an instance are made of; inside jit/ only.
 *
 * Slots of a recording: 0 the argument block, 1 the arena, 2 derived values, then one for each free
 * parameter (one of rank 0 is a number in the block, or a tensor), each cell, each result.
 */
#ifndef DC_JIT_EXEC_EXEC_H
#define DC_JIT_EXEC_EXEC_H

#include "jit/exec/instance.h"
#include "jit/plan/memory_limit.h"

#include <string.h>

enum { DC_SLOT_BLOCK, DC_SLOT_ARENA, DC_SLOT_DERIVED, DC_SLOT_FIRST };

/* What is known of a command beside what the device needs. */
typedef struct dc_command_fact {
    const char *where[3]; /* script lines of the nodes inside, or NULL */
    const char *layer[2]; /* and their layers */
    int64_t flops, bytes; /* per launch */
    uint32_t nout;        /* LAUNCH: binds that are written, the first ones */
    uint32_t check;       /* CHECK: its number */
} dc_command_fact;

/* Adds a text to the first of n that are not NULL, unless it is among them or there is no room. */
static inline void dc_words_add(const char **words, uint32_t n, const char *text)
{
    uint32_t i = 0;
    while (i < n && words[i] != NULL && (text == NULL || strcmp(words[i], text) != 0))
        i++;
    if (i < n && text != NULL)
        words[i] = text;
}

/* A temporary of the arena, for guard zones. */
typedef struct dc_guarded {
    size_t offset, bytes;
    uint32_t first, last; /* commands between which it is alive */
} dc_guarded;

/* What a distinct kernel can be made from again, to look at. */
typedef struct dc_kept {
    const char *name, *nest; /* as lowered, without its name */
    const char **move;
    uint32_t nmove, nout, nin; /* parameters: outputs, inputs behind them */
    uint32_t npart;            /* it is joined of so many, and has no nest itself; 0: it is not */
    struct dc_kept *part;      /* in the order of their groups */
} dc_kept;

/* A value that the prologue computes and instances keep (jit/rewrite/prologue.h). */
typedef struct dc_derived_value {
    const char *op, *type, *where; /* for people; no line: NULL */
    size_t offset, bytes;          /* in the memory of all of them */
} dc_derived_value;

typedef struct dc_profile { /* DEEPC_DEBUG=time */
    uint64_t *command_ns;   /* one per command; NULL when nothing is measured */
    uint64_t *command_runs; /* with it: how often each ran, in loops too */
    void *rows;             /* room for the report, which may be printed while nothing can fail */
    uint64_t calls, call_ns, prologues;
    void *late; /* memory of both where somebody began to measure later; NULL: they are of the executable's */
    uint32_t *span_name; /* as many: names of spans (core/base/spans.h), in `recording`; 0: none of their own */
    uint64_t recording;
} dc_profile;

struct dc_exec {
    uint32_t refs;
    dc_rt *rt;
    dc_exec *prev, *next; /* in rt->execs */
    dc_arena mem;         /* everything below that points */
    dc_module *module; /* of the description: not changed once it is described */
    dc_module *work;   /* what the compiler makes of it; NULL: nothing yet */
    dc_exec_desc given; /* fn is a copy */
    dc_exec_desc desc;  /* the same, fn with cells as they are laid out: the interpreter runs it */
    dc_cell_layout *layout; /* by cell; NULL: all as their values */
    dc_type *param, *result;
    bool *cell_read;  /* by cell: the function depends on the old value */
    size_t *block_at; /* by free parameter: offset in the argument block */
    size_t block_bytes;
    void *constant;        /* behind the arguments in the block: of jit/lower/lift_constants.h */
    size_t constant_bytes; /* 0 until it is compiled */
    bool compare;

    struct dc_exec_task *task; /* jit/exec/exec_task.h; NULL when there is nothing to compile */

    /* compiled; none of it when info.interpreted. To be looked at after dc_exec_wait */
    struct dc_compiled **kernel; /* jit/exec/kernel_table.h: those in use; NULL where none is yet */
    uint32_t nkernel;
    dc_kept *kept;          /* nkernel of them; NULL where the interpreter runs it */
    dc_exec_choice *choice; /* nchoice of them */
    uint32_t nchoice;
    const char **denied_why; /* by cell: why it is not set in place; NULL where it is, or not set */
    bool *in_part;           /* by cell: set in place, and only what changes is stored */
    dc_program **program;    /* jit/exec/exec_commands.h: the executable's own */
    uint32_t nprogram;
    dc_command *command;
    dc_command_fact *fact;
    uint32_t ncommand;
    uint32_t nprologue; /* commands of the prologue, a list by itself; the others are the body */
    dc_derived_value *derived; /* nderived of them: what the prologue computes */
    uint32_t nderived;
    bool *derived_from; /* by parameter: the prologue reads it; NULL without prologue */
    uint32_t untouched; /* no cell is written while a run stands at most here (dc_run_info.next) */
    size_t guard;       /* free bytes round each temporary */
    dc_guarded *temp;
    uint32_t ntemp;
    dc_memory_needs needs; /* for a device that has less; nothing where memory is the host's */

    dc_exec_info info;
    dc_profile profile;
    bool stays;             /* nothing uses it, but it may be asked for: counted in rt->nkept */
};

typedef enum dc_inst_state {
    DC_INST_FREE,
    DC_INST_BUSY, /* inside start, poll or call */
    DC_INST_PAUSED,
    DC_INST_DONE /* results wait to be taken */
} dc_inst_state;

struct dc_inst {
    dc_exec *exec;
    dc_rt *rt;
    dc_arena mem; /* the arrays below */
    dc_cell **cell;
    dc_tensor **result; /* what the last call gave out; written again unless it is held elsewhere */
    dc_storage *block;  /* the argument block */
    void *staging;      /* the same on the host */
    void **slot;
    bool *moves;              /* by slot: arguments and results */
    dc_recording **recording; /* one; or one per command, with its body, when guards are checked */
    uint32_t *recorded;       /* by recording: its first command; one more: ncommand */
    uint32_t nrecording;
    bool prepared;         /* recorded, or left to the interpreter */
    void *late;            /* who is told afterwards what checks found; NULL: the call tells */
    bool later;            /* of the call at hand: they may be told afterwards */
    uint64_t ticket;       /* 0, or what the device gave for that */
    uint32_t ticket_first; /* first command of the recording that it is of */
    bool unchecked;        /* its caller looks for NaN (jit/exec/finite_check.h) */
    uint64_t calls;

    /* derived values (jit/exec/derived_values.h) */
    dc_storage *derived;           /* NULL: not kept */
    bool derived_right;            /* they are those of what the arrays below say */
    struct dc_inst *newer, *older; /* in rt->derived, with memory for them */
    dc_tensor **seen_tensor;       /* by free parameter, of those that the prologue reads */
    uint64_t *seen_version;        /* by cell */
    uint32_t body;                 /* recording that the body begins with */

    /* of the call or job at hand */
    dc_inst_state state;
    bool has_arena;
    dc_storage *own_arena;   /* NULL: the context's */
    const atomic_bool *stop; /* makes it pause between two commands; NULL: only its deadline does */
    bool endable;            /* a launch of it may be ended in the middle, as `halt` says */
    dc_halt halt;
    bool running;      /* the device is at it: what it has written when unwinding is unknown */
    bool begun;        /* something has been given to the device */
    dc_run_info run;   /* that runs, or ran last */
    bool locked;       /* the cells that it sets are its own */
    uint32_t at, next; /* recording, and where in it to go on (dc_run_info.next) */
    uint64_t spent_ns; /* by the slices so far; DEEPC_DEBUG=time */
    dc_tensor **held;  /* by slot: arguments and cells read, which move when they are written */
};

/* Waits for the compilation, then records, once (jit/exec/instance_record.c). */
dc_status dc_inst_prepare(dc_inst *i, dc_job *j);
void dc_inst_free_recordings(dc_inst *i);

/* What becomes of `status`: a device that is short of memory is told what the function needs. */
dc_status dc_inst_short(const dc_inst *i, dc_job *j, dc_status status);
/* For want of memory, and unused memory went back to the device: what failed is worth another attempt. */
bool dc_inst_make_room(const dc_inst *i, dc_job *j, dc_status status);

/* Gives a result that has no memory new memory; leaves the memory of a result to the tensors that hold it. */
dc_status dc_inst_new_result(dc_inst *i, dc_job *j, uint32_t r);
void dc_inst_leave_result(dc_inst *i, uint32_t r);

/* Of executables being made (jit/compile/compile_job.c). */
dc_exec *dc_exec_new(dc_rt *rt);       /* with nothing in it */
void dc_exec_free(void *e);            /* whatever state it is in */
void dc_exec_drop_kernels(dc_exec *e); /* on any thread */
void dc_exec_destroy(dc_exec *e);      /* no references are left */

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

/* Numbers in the argument block are aligned as memory is. */
static inline size_t dc_exec_block_at(const dc_type *param, uint32_t i)
{
    size_t at = 0;
    for (uint32_t p = 0; p < i; p++)
        at += param[p].rank == 0 ? 64 : 0;
    return at;
}

/* Places the free parameters of rank 0. There is always a block, so that its slot has an address. */
static inline void dc_exec_lay_block(dc_exec *e)
{
    e->block_at = DC_NEW_ARRAY(&e->mem, size_t, e->desc.nfree);
    for (uint32_t i = 0; i < e->desc.nfree; i++)
        e->block_at[i] = dc_exec_block_at(e->param, i);
    e->block_bytes = dc_exec_block_at(e->param, e->desc.nfree);
    if (e->block_bytes == 0)
        e->block_bytes = 64;
}

/* Those of a bundle are one. */
static inline void dc_exec_count_launches(dc_exec *e)
{
    for (uint32_t i = 0; i < e->ncommand; i++) {
        const dc_command *x = &e->command[i];
        const bool launch = x->kind == DC_COMMAND_LAUNCH || x->kind == DC_COMMAND_BUNDLE;
        *(i < e->nprologue ? &e->info.prologue_launches : &e->info.launches) += launch;
        i += x->kind == DC_COMMAND_BUNDLE ? x->nbody : 0;
    }
}

/* Commands of the body that write a cell. */
static inline void dc_exec_find_sets(dc_exec *e)
{
    for (uint32_t i = e->nprologue; i < e->ncommand; i++) {
        dc_command *x = &e->command[i];
        const uint32_t nout = x->kind == DC_COMMAND_LAUNCH ? e->fact[i].nout
                              : x->kind == DC_COMMAND_COPY || x->kind == DC_COMMAND_HOST ? 1
                                                                                         : 0;
        x->sets = false;
        for (uint32_t b = 0; b < nout; b++)
            x->sets |=
                x->bind[b].slot >= dc_slot_cell(e, 0) && x->bind[b].slot < dc_slot_result(e, 0);
    }
}

/* The type of the element that a check names. */
static inline const dc_type *dc_exec_check_value(const dc_exec *e, uint32_t check)
{
    return &e->result[e->desc.nresult + e->desc.nset + 2 * check + 1];
}

/* Copies what a command of e waits for. */
static inline void dc_exec_set_deps(dc_exec *e, dc_command *x, uint32_t ndep, const uint32_t *dep)
{
    uint32_t *copy = DC_NEW_ARRAY(&e->mem, uint32_t, ndep);
    for (uint32_t d = 0; d < ndep; d++)
        copy[d] = dep[d];
    x->ndep = ndep;
    x->dep = copy;
}

#endif
