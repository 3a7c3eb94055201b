/* Executables for users of jit/: references and facts. Shared, immutable, no pointers to tensors. */
#ifndef DC_JIT_EXEC_EXECUTABLE_H
#define DC_JIT_EXEC_EXECUTABLE_H

#include "core/ir/exchange.h"
#include "core/runtime/storage.h"
#include "jit/base/exec_desc.h"

typedef struct dc_exec dc_exec;

/* What an executable was made from; its copy. */
const dc_exec_desc *dc_exec_desc_of(const dc_exec *e);

const char *dc_exec_device(const dc_exec *e); /* "opencl:0" */

dc_exec *dc_exec_retain(dc_exec *e);
void dc_exec_release(dc_exec *e);

/*
 * From now on executables that were called stay when their users are gone, up to a thousand with 200,000 nodes, to the
 * end of the context, whose closing forgets those of each device.
 */
void dc_exec_keep(dc_rt *rt);
void dc_exec_forget(dc_rt *rt);
/* The executables of all devices, the youngest of each first; NULL begins and ends. */
dc_exec *dc_exec_next(dc_rt *rt, const dc_exec *e);

/*
 * Until the compilation has ended, here if it has not begun, and its failure, if any. A failure for lack of memory is
 * tried again by the next wait, others stay.
 */
dc_status dc_exec_wait(dc_rt *rt, dc_job *j, dc_exec *e);
/*
 * Nobody waits for it, and others are more wanted: its compilation does not begin, or ends as soon as it may. The next
 * wait has it compiled all the same; dc_exec_resume lets a thread do so.
 */
void dc_exec_postpone(dc_rt *rt, dc_exec *e);
void dc_exec_resume(dc_rt *rt, dc_exec *e);
/* Is it there, without a compiler being asked? Waits for that until one is, or for so many nanoseconds. */
bool dc_exec_found(dc_rt *rt, dc_exec *e, uint64_t ns);
/* Is another thread compiling it, or will one? Then dc_exec_wait would wait for it. */
bool dc_exec_compiling(dc_rt *rt, const dc_exec *e);

/* Facts for dc.stats, :explain and tests. */
typedef struct dc_exec_info {
    uint32_t launches, copies, kernels; /* a bundle is one; distinct kernels */
    uint32_t derived; /* values that are kept from call to call (jit/rewrite/prologue.h) */
    uint32_t prologue_launches; /* when they are computed; not among `launches` and `copies` */
    size_t derived_bytes;
    size_t arena_bytes, arena_lower_bound;
    uint32_t donated, denied; /* cells updated in place; through a temporary */
    bool interpreted;         /* runs on the interpreter */
    uint64_t nodes;           /* of the graph after simplification */
} dc_exec_info;

/* Of one that has been waited for. */
void dc_exec_info_of(const dc_exec *e, dc_exec_info *out);

/* What there is to look at, of one that has been waited for (jit/exec/exec_report.c). */
typedef struct dc_exec_kernel {
    const char *name;
    uint32_t launches;    /* per call */
    uint32_t prologue;    /* launches when derived values are computed */
    int64_t flops, bytes; /* of all these */
    int64_t idle; /* work items of one that leaves threads idle, with much to do; 0: none does */
    bool bounded; /* that is at most: they depend on sizes that a call gives */
    uint64_t calls, ns;            /* launches that were timed, in loops too, and what they took */
    double done_flops, done_bytes; /* of these */
    const char *where[3];          /* script lines, NULL behind the last one */
    double
        gain; /* its schedule was found by timing: so many times faster than the rules'; 0: it was not */
} dc_exec_kernel;

/* Distinct kernels, in the order of the numbers below; none where the interpreter runs it. */
uint32_t dc_exec_kernel_count(const dc_exec *e);
void dc_exec_kernel_of(const dc_exec *e, uint32_t kernel, dc_exec_kernel *out);
/* Values that could be computed again or stored, and what was cheaper (jit/fuse/fuse.h); NULL: none. */
typedef struct dc_exec_choice {
    const char *op, *type; /* "exp", "f32[64, 10]" */
    const char *times_of;  /* "kernels": what `times` counts */
    const char *where;     /* script line, or NULL */
    const char *
        but; /* why it is not stored though that would cost less; where times is 0, why it is; or NULL */
    bool stored;
    int64_t times;
    double again, moved; /* operations more if it is not stored; bytes written and read if it is */
} dc_exec_choice;

/* A loop of the function as it was traced. Begin with ref 0. */
typedef struct dc_exec_loop {
    uint32_t ref;
    int64_t n;    /* iterations, at most */
    bool may_end; /* it may have less */
    int64_t
        kept; /* bytes: what it reads, as part of a gradient, that loops of the forward pass keep; 0: none */
    const char *where; /* NULL: not known */
} dc_exec_loop;

bool dc_exec_next_loop(const dc_exec *e, dc_exec_loop *l);

const dc_exec_choice *dc_exec_choices(const dc_exec *e, uint32_t *n);

/* Of a value that is kept from call to call (jit/rewrite/prologue.h): operation, type, script line or NULL. */
typedef struct dc_exec_derived {
    const char *op, *type, *where;
} dc_exec_derived;

/* Value i of info.derived. */
dc_exec_derived dc_exec_derived_of(const dc_exec *e, uint32_t i);

/* Calls of it that were timed, and what they took in all. */
typedef struct dc_exec_calls {
    uint64_t calls, ns, prologues;
} dc_exec_calls;

dc_exec_calls dc_exec_calls_of(const dc_exec *e);

/* A command as people look at it. */
typedef struct dc_exec_command {
    const char *kind;  /* "launch", "copy", "check", "host", "loop", "branch", "bundle" */
    const char *label; /* of a launch its kernel's name; or NULL */
    const char *where[3];
    int64_t kernel;        /* of a launch, by number; -1 */
    int64_t grid;          /* positions of a launch; iterations of a loop, at most */
    int64_t flops, bytes;  /* of a launch */
    bool bounded;          /* that is at most: they depend on sizes that a call gives */
    uint64_t ns;           /* that was timed */
    uint64_t runs;         /* how often it ran meanwhile, in loops too */
    bool inside, prologue; /* of a loop or a branch */
    uint32_t nbody, nelse; /* commands behind it that are inside: of a loop, branch or bundle */
    uint32_t nout, nbind;  /* what it writes, the first ones, and reads */
    uint32_t npart;        /* kernels that it was joined of; 0: it is one */
    int64_t times;         /* in a call, at most: how often the loops around it go round */
    uint32_t ndep;
    const uint32_t
        *dep;      /* what it waits for, by number among those of the prologue or of the call */
    bool exchange; /* with other ranks: its group, and what this rank gives */
    dc_exchange_attr attr;
    dc_op op;
    dc_type type;
} dc_exec_command;

/* Those of the prologue first; none where the interpreter runs it. */
uint32_t dc_exec_command_count(const dc_exec *e);
void dc_exec_command_of(const dc_exec *e, uint32_t i, dc_exec_command *out);
/* "x", "+4096" in the arena, "result 1". */
void dc_exec_print_bind(const dc_exec *e, uint32_t command, uint32_t bind, dc_text *out);

/* A kernel that a launch was joined of. Its binds follow those of the parts before it: first what all write. */
typedef struct dc_exec_joined {
    const char *name;
    uint32_t nout, nin;
} dc_exec_joined;

dc_exec_joined dc_exec_joined_of(const dc_exec *e, uint32_t command, uint32_t part);

/* A temporary of the arena, alive between two commands, both included. */
typedef struct dc_exec_temp {
    size_t offset, bytes;
    uint32_t first, last;
} dc_exec_temp;

uint32_t dc_exec_temp_count(const dc_exec *e);
dc_exec_temp dc_exec_temp_of(const dc_exec *e, uint32_t i);

/* Times are those of the calls from now on. */
void dc_exec_forget_times(dc_exec *e);
/* How the memory of a cell is laid out while it is called (jit/rewrite/weight_layout.h). */
const dc_cell_layout *dc_exec_layout(const dc_exec *e, uint32_t cell);
/* Why the cell is not set in place; NULL where it is. *set: the function sets it. */
const char *dc_exec_denied(const dc_exec *e, uint32_t cell, bool *set);
/* Is the cell set in place, and what changes stored alone? */
bool dc_exec_in_part(const dc_exec *e, uint32_t cell);
/* Kernels of the context, of this executable to begin with, are timed from now on. */
void dc_exec_measure(dc_exec *e);

/* DEEPC_DEBUG=time: one line per kernel: name, calls, ms, GFLOP/s, GB/s, Lua lines. */
void dc_profile_report_all(dc_rt *rt);

#endif
