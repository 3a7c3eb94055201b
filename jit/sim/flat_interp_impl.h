/*
 * Inside of the interpreter of the flat form: jit/sim/flat_interp_step.c holds what instructions do to values,
 * jit/sim/flat_interp_memory.c is memory with its checks, jit/sim/flat_interp.c makes steps of the instructions and runs
 * work items, groups and threads.
 *
 * A value is an array of patterns, one of 64 bits for each lane, canonical as constants are
 * (dc_flat_canonical). Every thread has an array of all values; a step names them by offsets.
 */
#ifndef DC_JIT_SIM_FLAT_INTERP_IMPL_H
#define DC_JIT_SIM_FLAT_INTERP_IMPL_H

#include "jit/sim/flat_interp.h"

typedef struct fi fi;
typedef struct fi_step fi_step;

typedef enum fi_kind {
    FI_DO,   /* run */
    FI_LOOP, /* to `jump` if it is over before it begins */
    FI_NEXT, /* the end of a loop: to `jump` for the next iteration */
    FI_IF,   /* to `jump` unless */
    FI_MEET, /* a barrier or shuffle: the thread waits */
    FI_HALT
} fi_kind;

struct fi_step {
    bool (*run)(fi *m, const fi_step *s, uint64_t *v); /* FI_DO; false: the run has failed */
    uint8_t kind, op, type, from;                      /* from: type of the first operand */
    uint16_t lanes;
    uint16_t align;
    uint32_t out, in[3]; /* offsets among the values */
    bool masked;
    uint32_t buf, jump;
    uint64_t imm;
    uint64_t mask;             /* of the result's width */
    const dc_finst *matrix[2]; /* of WGMMA: where its operands lie */
    uint32_t line;             /* in the text that dc_flat_print gives */
};

/* The thread that touched an element last, counted as fi_now does. */
typedef struct fi_mark {
    uint32_t group; /* 1 + work item; 0 none */
    uint32_t epoch, meet;
    uint16_t thread;
    bool many;      /* readers: several threads of these lanes since their last barrier */
    uint8_t spread; /* readers: FI_RUNS, FI_GROUPS */
} fi_mark;

enum {
    FI_RUNS = 1,  /* several runs of lanes in this epoch */
    FI_GROUPS = 2 /* several groups: no later store is right */
};

typedef struct fi_shadow {
    fi_mark writer, reader;
} fi_shadow;

typedef struct fi_memory { /* a buffer */
    char *base;
    uint64_t count;
    uint32_t size; /* bytes of an element */
    uint8_t dtype, scope;
    fi_shadow *shadow; /* of the first element; NULL: no other thread can reach it */
    uint32_t units;    /* shadows of an element */
    size_t at;         /* LOCAL: offset in the memory of a thread */
} fi_memory;

typedef struct fi_reach { /* a parameter */
    fi_memory mem;
    bool written;
} fi_reach;

/* An async store that is under way: its step, what it stores and where, and its group by number. */
typedef struct fi_flight {
    const fi_step *step;
    uint64_t at, value[16];
    uint64_t group;
} fi_flight;

typedef struct fi_thread {
    uint32_t pc;
    uint64_t *v;
    char *local;
    DC_VEC(fi_flight) flight;
    uint64_t committed; /* groups so far */
} fi_thread;

/* Time as races know it: epochs between barriers of the group, meets between those of lanes. */
typedef struct fi_now {
    uint32_t group, epoch, thread, run;
    uint32_t *meet; /* by run of lanes */
} fi_now;

struct fi {
    dc_job *j;
    const dc_flat *f;
    const fi_step *step;
    uint32_t *at;    /* by value: its offset */
    uint32_t nvalue; /* patterns of a thread */
    fi_memory *mem;  /* by buffer; of those of a table in the row chosen last */
    fi_reach *reach; /* every parameter */
    uint32_t nreach;
    uint32_t *first; /* by buffer, of a parameter: where it, or its first row, is in reach[] */
    size_t local;    /* bytes of a thread */
    fi_thread *thread;
    fi_now now;
};

static inline float fi_float(uint64_t bits)
{
    return dc_bits_f32((uint32_t)bits);
}

/* What the step of a row does, by its types. */
bool (*dc_fi_value_step(const fi *m, const fi_step *s))(fi *m, const fi_step *s, uint64_t *v);
bool (*dc_fi_memory_step(const fi_step *s))(fi *m, const fi_step *s, uint64_t *v);

/* What lanes give each other of matrices in group memory. */
bool dc_fi_load_matrices(fi *m, const fi_step *s, uint32_t threads);
/* Products of 128 threads each. */
bool dc_fi_multiply_groups(fi *m, const fi_step *s, uint32_t threads);
/* Of the thread that is asked for from now on. */
void dc_fi_select_thread(fi *m, uint32_t thread);

/* The buffers of a table are those of a row from now on; false: it has none such. */
bool dc_fi_memory_choose(fi *m, const fi_step *s, uint64_t *v);

/* In the job's scratch arena. */
void dc_fi_memory_open(fi *m, void *const *param);
/* Points LOCAL buffers at the memory of the thread. */
void dc_fi_memory_of(fi *m, const fi_thread *t);
/* What is not written is no number: at the begin of each work item. */
void dc_fi_memory_spoil(fi *m, uint32_t threads);

/* A BUG record that names kernel, line and thread; false. */
bool dc_fi_fail(fi *m, const fi_step *s, const char *fmt, ...) DC_PRINTF(3, 4);

#endif
