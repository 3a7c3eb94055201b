/*
 * The interface of a device. A backend fills in dc_device_ops; it sees text, sizes and pointers.
 *
 * A device compiles kernel text to a program, and records a list of commands to something that can be
 * run again and again. Addresses are the device's and need not be the host's; arithmetic on them is
 * that of char *. Commands name memory by slot and offset; run() receives the base address of
 * every slot, so a recording never changes while arguments move from call to call. Slot 0 is the
 * argument block (per-call scalars).
 */
#ifndef DC_CORE_RUNTIME_DEVICE_H
#define DC_CORE_RUNTIME_DEVICE_H

#include "core/base/job.h"
#include "core/runtime/halt.h"

typedef struct dc_device dc_device;
typedef struct dc_program dc_program;
typedef struct dc_recording dc_recording;

/* What schedules and renderers know of a device. */
typedef struct dc_target {
    char name[64];      /* "cpu", then what keys need: "x86-64 znver5" */
    char triple[64];    /* of the compiler */
    char features[512]; /* of the compiler: "+avx512f,..." */
    char dialect[16];   /* of kernel text: "llvm", "c11", "opencl", "cuda", "flat" */
    bool simt;       /* a launch is thread groups, not ranges of work items for threads of a pool */
    bool no_f64;     /* it does not compute in f64 */
    bool half;       /* one instruction converts between f16 and f32 */
    bool bfloat;     /* one instruction rounds f32 to bf16 */
    bool scales;     /* one instruction multiplies 16 f32 by powers of two */
    bool dp4a;       /* one instruction multiplies four bytes by four and adds the products to 32 bits */
    bool fused;      /* one instruction multiplies and adds floats, with one rounding */
    bool ranges;     /* one instruction picks the larger of two numbers, -0 below 0 */
    bool warpgroups; /* four warps begin products together, wgmma; where the user asks for it */
    int vector_bytes; /* 64 with AVX-512, 32 with AVX2, else 16; 4: no vectors */
    int vector_registers;
    uint32_t buffers; /* parameters of a kernel at most; 0: any number */
    bool
        bundles; /* several kernels are one launch: a BUNDLE command; simt: a kernel joined of them */
    int group_threads;  /* simt: threads of a group at most */
    int lanes;          /* simt: threads that read each other's registers; 0 none */
    size_t group_bytes; /* simt: memory that a group shares, at most */
    int units;          /* simt: multiprocessors; 0: not known */
    int sm;             /* CUDA: compute capability times ten; 0: another kind of device */
    size_t l1, l2;      /* bytes of data cache of one core */
    size_t l3;          /* of the cache that cores share; 0: none, or not known */
} dc_target;

typedef enum dc_command_kind {
    DC_COMMAND_LAUNCH, /* run entry `entry` of program for work items 0..grid-1 */
    DC_COMMAND_COPY,   /* bytes from bind[1] to bind[0] */
    /*
     * bind[0] is an i32: if >= 0, the run stops and reports this command; it has written no cell. bind[1], where there
     * is one: `bytes`, 8 at most, that go into the report.
     */
    DC_COMMAND_CHECK,
    DC_COMMAND_LOOP, /* the nbody commands that follow, again and again: see dc_command.grid */
    DC_COMMAND_BRANCH, /* bind[0] is a bool: the nbody commands that follow, or the nelse after them */
    DC_COMMAND_HOST,   /* rows 0 to grid - 1 of what core/host computes; bind[0] is its result */
    DC_COMMAND_BUNDLE /* one launch of the nbody LAUNCH commands that follow: none waits for another */
} dc_command_kind;

typedef struct dc_bind {
    uint32_t slot;
    size_t offset;
} dc_bind;

/*
 * In the body of a LOOP: the offset of bind `bind` grows by `step` for each element. `loop` says which of the LOOPs around
 * the command it is, counted from the outermost, which is 0.
 */
typedef struct dc_bind_move {
    uint32_t bind, loop;
    size_t step;
} dc_bind_move;

enum { DC_LOOP_DEPTH = 16 }; /* LOOPs inside each other, at most */

/*
 * Commands run as if one after the other. `dep` are the positions of those that one really has to wait
 * for, counted from the begin of the list that it stands in (the whole recording or the body), so
 * that a device may run the others at the same time. A LOOP, BRANCH or BUNDLE and its body count as
 * one for those outside; positions count the commands of bodies too.
 */
typedef struct dc_command {
    dc_command_kind kind;
    dc_program *program;
    uint32_t entry;   /* index into dc_source.entry */
    int64_t grid;     /* LAUNCH: work items. HOST: rows. LOOP: iterations at most */
    uint32_t threads; /* simt: of a group */
    bool sets;        /* LAUNCH, COPY, HOST: writes what outlives the run; not after a CHECK that stops */
    size_t shared;    /* simt: bytes a group shares, beside the arrays in the text */
    size_t scratch;   /* bytes per thread */
    uint64_t cost_ns; /* LAUNCH, HOST: an estimate for one thread, so that small ones are not split */
    uint32_t nbind;
    /*
     * LAUNCH: buffers in the order of the kernel's parameters. LOOP: [0] a bool, read before each
     * iteration, the loop ends when it is false (nbind 0, or `untested`: never); [1] an i32 that receives the
     * number of the element that the iteration is for: from 0 up, `reverse` down to 0 (nbind 1: not used); [2] an i32,
     * read once before the loop: how many iterations there are, none to `grid` (nbind 2: `grid`).
     */
    const dc_bind *bind;
    uint32_t nmove;
    const dc_bind_move *move;
    uint32_t nhost;
    const int64_t *host;    /* HOST: core/ir/host_call.h */
    bool untested, reverse; /* LOOP */
    size_t bytes;           /* COPY; CHECK: of bind[1] */
    const char *label;      /* name of the kernel, for the profile */
    uint32_t nbody, nelse;
    uint32_t ndep;
    const uint32_t *dep;
} dc_command;

/*
 * Kernel text. For threads of a pool every entry is
 *   void entry(void *const *buf, const void *block, void *scratch, int64_t begin, int64_t end)
 * and runs work items begin to end - 1; `block` is the argument block. In front of `scratch` lies the address of a
 * dc_look, which kernels with very long loops read. OpenCL C and CUDA C++
 * have entries of their own kind: see jit/render/render_c.h.
 */
typedef struct dc_source {
    const char *text;
    const char *dialect; /* dc_target.dialect */
    const char *const *entry;
    uint32_t nentry;
} dc_source;

/* Whom a run tells when each of its commands ran: counters, one per command, and spans (core/base/spans.h). */
typedef struct dc_run_watch {
    uint64_t *ns;         /* to be added to */
    uint64_t *runs;       /* how often each ran, in loops too; NULL: nobody counts */
    struct dc_spans *to;  /* NULL: no spans are recorded */
    const uint32_t *name; /* of spans, by command; 0: it is not told */
    uint32_t lane;        /* of the device; 0: of the thread that runs the command */
} dc_run_watch;

/*
 * One run, or a slice of one. A run that has reached its deadline returns between two commands, with
 * `next` where to go on: the position of the next command, 1 at least; neither it nor any command behind
 * it has begun, but in a LOOP that has been round. run() with the same values and that `next`
 * continues it (how often loops went round is kept in the recording, which no other run uses
 * meanwhile).
 */
typedef struct dc_run_info {
    int32_t fault_command;   /* out: the CHECK command that stopped the run, or -1 */
    int64_t fault_value;     /* out: what it read */
    uint64_t fault_bits;     /* out: what stood at its bind[1] */
    bool begun;              /* in and out: set once anything has been given to the device */
    const dc_run_watch *watch; /* in: NULL, or who hears of each command */
    uint64_t deadline_ns;    /* in: of dc_clock_ns(); 0 none. At least one command runs */
    const atomic_bool *stop; /* in: NULL, or true makes it as if the deadline were reached */
    dc_halt *halt;     /* in: NULL, or what ends it in the middle of a launch, with INTERRUPTED */
    const void *block; /* in: the argument block on the host, for devices that take it */
    size_t block_bytes;
    const bool *moves; /* in: NULL, or by slot: its address is another one from run to run */
    bool later;        /* in: what a CHECK finds may be asked for afterwards, by `ticket` */
    uint64_t ticket;   /* out: 0, or what answer() wants: `fault_command` is not known yet */
    uint32_t next;     /* in: 0, or from the slice before; out: 0 when the run has ended */
    bool
        denormals; /* out: the device saw operands or results that were denormal, or made zeros of them */
} dc_run_info;

typedef struct dc_device_ops {
    const char *name;
    bool host; /* addresses are the host's: what is there may be read and written directly */
    bool
        shares; /* not of the host: a host knows addresses as this one does, and may give it dc_opts.stream */
    void (*free)(dc_device *d);
    const dc_target *(*target)(const dc_device *d);
    /* NOMEM is a status here. Memory is aligned to 64 bytes and not cleared. */
    dc_status (*alloc)(dc_device *d, dc_job *j, size_t bytes, void **out);
    void (*release)(dc_device *d, void *mem);
    /* These two, and copy: in pieces, INTERRUPTED where the job is to end between two (dc_job_ended). */
    dc_status (*upload)(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes);
    dc_status (*download)(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes);
    /*
     * BUILD or DEVICE with the compiler's words on failure. May be called by several threads at
     * once, each with a job of its own, and while the context's thread does anything else here.
     */
    dc_status (*compile)(dc_device *d, dc_job *j, const dc_source *src, dc_program **out);
    void (*program_free)(dc_device *d, dc_program *p);
    /* A kernel alone is compiled as fast as among others, and at the same time as others. */
    bool one_by_one;
    bool
        compiles_flush; /* denormals are flushed by how a kernel is compiled, not by how it is run */
    /*
     * compile() in two halves, so that programs can be kept on disk. Between them lie bytes, in the
     * scratch arena: load() of another process makes the same of them if it has the same target and
     * `settings` says the same: options of the compiler, the processor. `toolchain` is the compiler, by
     * its file and the date of that; it opens none, and is false where there is none or it cannot
     * tell: what another compiler made of the text is as good then. load() gets a source without
     * text, and refuses damaged bytes as it would a compiler's. All four or none are NULL; threads
     * as for compile().
     */
    void (*settings)(dc_device *d, dc_text *out);
    bool (*toolchain)(dc_device *d, dc_text *out);
    dc_status (*translate)(dc_device *d, dc_job *j, const dc_source *src, const void **object,
                           size_t *bytes);
    dc_status (*load)(dc_device *d, dc_job *j, const dc_source *src, const void *object,
                      size_t bytes, dc_program **out);
    bool takes_block; /* run() brings the argument block to the device; nobody else does */
    /* Items are copied. */
    dc_status (*record)(dc_device *d, dc_job *j, const dc_command *command, uint32_t n,
                        dc_recording **out);
    void (*recording_free)(dc_device *d, dc_recording *r);
    dc_status (*run)(dc_device *d, dc_job *j, dc_recording *r, void *const *slot,
                     dc_run_info *info);
    /*
     * What the checks of a run have found: `fault_command`, `fault_value` and `fault_bits` of info, once *known. Waits for
     * it if `wait`. A ticket is good until its answer is known. NULL: no run gives one. A device that has this function
     * runs ahead of the host, and once it has failed it fails in all that follows.
     */
    dc_status (*answer)(dc_device *d, dc_job *j, uint64_t ticket, bool wait, bool *known,
                        dc_run_info *info);
    /* Between two places of this device; NULL: callers go through the host. DEVICE: nothing has been written. */
    dc_status (*copy)(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes);
    /* Zeros in memory that alloc gave, without touching each page of it. NULL: zeros are uploaded. */
    void (*clear)(dc_device *d, void *mem, size_t bytes);
    /*
     * Address space for memory that grows where it is: reserve gives an address, of which the first
     * `bytes` can be used after commit(bytes). release gives all back. NULL: there is none.
     */
    dc_status (*reserve)(dc_device *d, dc_job *j, size_t bytes, void **out);
    dc_status (*commit)(dc_device *d, dc_job *j, void *mem, size_t bytes);
    /* Can it exchange values with those of other ranks, if these can (core/world/direct.c)? NULL: no. */
    bool (*direct)(dc_device *d, dc_job *j);
    /* Waits for what was begun; DEVICE if it failed. NULL: nothing is ever under way. */
    dc_status (*finish)(dc_device *d, dc_job *j);
} dc_device_ops;

struct dc_device {
    const dc_device_ops *ops;
    uint32_t threads;   /* that share the work items of a launch; 0: it has groups of threads */
    bool answers_later; /* what checks find is asked for after a call, where it has `answer` */
};

/* memmove in pieces; false: ask(ctx), called between two of them, was not 0, and a part has been moved. */
bool dc_host_move(void *to, const void *from, size_t bytes, int (*ask)(void *ctx), void *ctx);

/* For devices whose memory is the host's, from malloc and its like. Places may overlap. */
void dc_host_release(dc_device *d, void *mem);
dc_status dc_host_copy(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes);
/* Their rows of dc_device_ops. */
#define DC_HOST_MEMORY_OPS \
    .host = true, .upload = dc_host_copy, .download = dc_host_copy, .copy = dc_host_copy

#endif
