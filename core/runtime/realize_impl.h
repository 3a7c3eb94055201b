/* What core/runtime/realize*.c share. */
#ifndef DC_CORE_RUNTIME_REALIZE_IMPL_H
#define DC_CORE_RUNTIME_REALIZE_IMPL_H

#include "core/runtime/lazy.h"

/* What a word of a description is. */
typedef enum dc_lazy_size {
    DC_LAZY_FORM,  /* no size: another one is another form */
    DC_LAZY_DIM,   /* at least 1, unless it is 0 always */
    DC_LAZY_BEGIN, /* where a part begins */
    DC_LAZY_CONST  /* a constant, plus its dc_dtype: a number of elements, it may be */
} dc_lazy_size;

/* One realization. Arrays are in the job's scratch memory. */
typedef struct dc_realize_task {
    dc_rt *rt;
    dc_job *j;
    dc_lazy_walk walk;
    DC_VEC(dc_lazy *) result;
    DC_VEC(uint64_t) word;
    uint64_t form;        /* hash of the words without sizes */
    DC_VEC(uint8_t) size; /* by word: a dc_lazy_size */
    double work;
    bool compiled, general; /* by a program for these sizes alone; for any */
    dc_tensor **given;      /* by leaf, when compiled; NULL of a number */
} dc_realize_task;

typedef struct dc_lazy_general dc_lazy_general;

struct dc_lazy_entry {
    uint64_t hash, used;
    uint64_t *word;
    uint32_t nword, nresult;
    bool running;
    const dc_lazy_exec *exec;
    void *program;     /* compiled; else ... */
    dc_module *module; /* ... for the interpreter */
    dc_func *fn;
    dc_lazy_general
        *general; /* for any size: hash and word are not used; NULL: for those of word */
};

/*
 * Runs the program that t->word describes, made where the context has none, and gives the results their
 * values. Leaves and results are held by the caller: the log sink may realize the same nodes meanwhile.
 */
dc_status dc_realize_compute(dc_realize_task *t);

uint64_t dc_realize_hash(const dc_realize_task *t); /* of t->word */

/*
 * Is the interpreter to compute it, and is what it will have taken for this structure then no more than a compilation?
 * Counted in estimates (core/runtime/realize_cost.c).
 */
bool dc_realize_rents(dc_realize_task *t, uint64_t structure);
/* Is there a compiled program for t->word, for these sizes alone? */
bool dc_realize_is_known(const dc_realize_task *t, uint64_t structure);

/* ---- programs for any size (core/runtime/realize_general.c) ---- */

/*
 * Is it to be computed by a program for any size, since there is one, or other sizes of it have taken the interpreter as long as
 * one costs? rent: what this one takes; price: to compile it.
 */
bool dc_realize_generalises(dc_realize_task *t, double rent, double price);
/* The one that t->word is of, whose form dc_realize_generalises has noted; NULL: there is none. */
dc_lazy_entry *dc_lazy_general_find(const dc_realize_task *t);
/* Fills in an empty entry. *made false: an operation needs a fixed size, or sizes are in no line. */
dc_status dc_lazy_general_make(const dc_realize_task *t, dc_lazy_entry *e, bool *made);
dc_status dc_lazy_general_run(const dc_realize_task *t, const dc_lazy_entry *e, dc_tensor **made);
void dc_lazy_general_free(dc_lazy_general *g); /* NULL is fine */
void dc_lazy_forms_free(dc_lazies *l);

#endif
