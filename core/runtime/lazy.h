/*
 * Lazy tensors: an expression of operations that have not been computed yet, for code outside
 * compiled functions.
 *
 * A dc_lazy is a small reference-counted node at the level of the op table. Its leaves are values:
 * realized tensors, the value that a cell had when it was read, numbers. Realizing a node writes what
 * it needs as a function of core/, finds the program of that structure in a cache of the context or
 * builds it, and runs it with the leaves as arguments. A number is an argument, too, so another
 * number is no other program.
 *
 * What holds:
 * - A node never changes its value. What a leaf shows is a dc_tensor, so cells may be set meanwhile.
 * - `value` is set once. With it, a node that reads no parameter drops its operands and is a leaf
 *   from then on (`dropped`); one that does keeps them for as long as it lives, for gradients.
 * - Which nodes share a program depends on the structure of the expression and on sizes, not on what was collected or
 *   computed before; one may serve for many sizes (core/runtime/realize_general.c).
 *   Whether it is compiled or interpreted depends on these and on how often it has been computed: on no
 *   clock, thread or cache, so a script gives the same bits each time. In a steady context (dc_rt.steady) it depends on
 *   structure and sizes alone.
 * - Nothing here recurses over an expression: chains may be as long as memory allows.
 *
 * Movement of what has a value is a view of it (core/runtime/lazyview.c): no program computes it, it is read where
 * it stands. A part of a value is a leaf of programs, so where it stands is an argument of them.
 */
#ifndef DC_CORE_RUNTIME_LAZY_H
#define DC_CORE_RUNTIME_LAZY_H

#include "core/build/build.h"
#include "core/runtime/storage.h"
#include "core/runtime/view.h"

typedef struct dc_lazy dc_lazy;

/* Elements of a tensor, by steps. */
typedef struct dc_lazy_view {
    dc_tensor *of;
    dc_view at;
} dc_lazy_view;

typedef enum dc_lazy_kind {
    DC_LAZY_OP,     /* an operation of the op table */
    DC_LAZY_LEAF,   /* a value: of a tensor, of a cell, of what was an operation */
    DC_LAZY_NUMBER, /* `bits`, of rank 0 */
    DC_LAZY_GROUP,  /* values that are computed together: its operands */
    DC_LAZY_PICK    /* operand `index` of the group that is its only operand */
} dc_lazy_kind;

/* A set of nodes, hashed: each is four bits. Sets that share some may seem to hold others. */
typedef struct dc_lazy_sources {
    uint64_t bit[2];
} dc_lazy_sources;

struct dc_lazy {
    uint32_t refs;
    uint8_t kind; /* dc_lazy_kind */
    uint8_t op;   /* of OP: dc_op */
    uint16_t nattr;
    bool param;   /* reads a parameter, what is watched or received: the recipe stays */
    bool dropped; /* LEAF that was an operation */
    bool call;    /* LEAF that is the result of a compiled function */
    bool counts;  /* what the language calls one operation ends here */
    bool rule;    /* made of numbers alone, such as zeros and draws, or given as such: of no device in particular */
    bool steady;  /* of a cell, or kept by a typed function: how it is computed depends on structure and sizes alone */
    bool part;    /* of the walk `epoch`: a leaf, since it is a part of a value */
    uint32_t nin;
    uint32_t index;       /* of PICK */
    uint32_t ops, nodes;  /* pending below, this one included; at most so many (dc_lazy_count) */
    uint32_t uses;        /* as operand, ever */
    uint64_t serial;      /* in the order of making */
    dc_lazy_sources from; /* the leaves below; none behind stop_gradient */
    uint64_t cell;        /* LEAF that was a cell's value: its id, else 0 */
    uint64_t bits;        /* of NUMBER */
    dc_type type;         /* with names */
    dc_tensor *value;     /* realized, or NULL */
    dc_lazy_view *view;   /* LEAF that was movement of a value; holds `of`. Else NULL */
    const char *where, *path; /* of the script, interned in the context; NULL unknown */
    dc_lazy **in;
    int64_t *attr;
    dc_rt *rt;

    /* of the walk `epoch` */
    uint64_t epoch;
    uint32_t number, inside;
    dc_lazy *next; /* being freed */
};

enum {
    DC_LAZY_PENDING = 64,   /* operations: one more without a parameter is realized at once */
    DC_LAZY_NODES = 512,    /* nodes of the op table: the same */
    DC_LAZY_RECIPE = 10000, /* operations of a recipe that stays: one more is an error */
    DC_LAZY_WORK = 4096, /* element operations that the interpreter always does rather than a compiler */
    DC_LAZY_SMALL =
        16384 /* elements that are copied rather than have a program made for their form */
};

dc_lazy *dc_lazy_retain(dc_lazy *n);
void dc_lazy_release(dc_lazy *n);          /* NULL is fine */
void dc_lazy_defer(dc_job *j, dc_lazy *n); /* dc_job_defer: j releases it */

/* ---- leaves: a new node, owned by the caller ---- */

dc_lazy *dc_lazy_leaf(dc_rt *rt, dc_tensor *t); /* retains t */
/* The same as a start of gradients: what reads it keeps its recipe. */
dc_lazy *dc_lazy_watch(dc_rt *rt, dc_tensor *t);
/* The value of a cell now. JOB, TORN. */
dc_status dc_lazy_read(dc_rt *rt, dc_job *j, dc_cell *c, dc_lazy **out);
dc_lazy *dc_lazy_number(dc_rt *rt, dc_dtype t, uint64_t bits);
/* Numbers that are part of an operation: 0, 1 and -1, and those of bool. */
bool dc_lazy_is_plain(dc_dtype t, uint64_t bits);

/* A new reference on n, or on its value as a leaf of this device. */
dc_status dc_lazy_on(dc_rt *rt, dc_job *j, dc_lazy *n, dc_lazy **out);

/* ---- operations ---- */

/*
 * An operation is built as a piece of graph in a function that is empty between operations:
 *
 *   f = dc_lazy_begin(rt, j);  in[i] = dc_lazy_operand(rt, n);  build(j, f, arg, in, out);
 *   dc_lazy_end(rt, j, out, nout, where, path, result);
 *
 * Inside one entry. If it fails between, or unwinds, everything is given back when the entry ends.
 * Several results are computed together. result[i] are new references. The caller then asks
 * dc_lazy_limit.
 */
dc_func *dc_lazy_begin(dc_rt *rt, dc_job *j);
dc_val dc_lazy_operand(dc_rt *rt, dc_lazy *n);
void dc_lazy_end(dc_rt *rt, dc_job *j, const dc_val *out, int nout, const char *where,
                 const char *path, dc_lazy **result);
/* Realizes n if much is pending below it; LAZY_LONG if its recipe is too long to keep. */
dc_status dc_lazy_limit(dc_rt *rt, dc_job *j, dc_lazy *n);

/* ---- values (core/runtime/realize.c) ---- */

/* Is it a small expression of numbers alone, such as a draw, not computed yet? */
bool dc_lazy_is_numbers(const dc_lazy *n);

/* Afterwards n->value is there. A failure names the place of the node: dc_lazy_place. */
dc_status dc_lazy_realize(dc_rt *rt, dc_job *j, dc_lazy *n);
/* To be read where it stands: what n is made of is realized, n itself only if it is no view of that. */
dc_status dc_lazy_look(dc_rt *rt, dc_job *j, dc_lazy *n, dc_lazy_view *out);
/* n elements of a view, from number `first` on, to memory of the host. */
dc_status dc_lazy_read_view(dc_rt *rt, dc_job *j, const dc_lazy_view *v, int64_t first, int64_t n,
                            void *to);
/* It would take many reads of a device's memory. */
bool dc_lazy_is_far(const dc_rt *rt, const dc_lazy_view *v);
/* Of the node that failed last. */
void dc_lazy_place(const dc_rt *rt, const char **where, const char **path);

/* ---- how programs are made: jit/ puts a table of these into dc_rt.lazy_exec ---- */

typedef struct dc_lazy_arg {
    const dc_tensor *tensor; /* NULL: `bits`, of rank 0 */
    uint64_t bits;
} dc_lazy_arg;

typedef struct dc_lazy_exec {
    /*
     * f is copied. anywhere: by parameter, its memory begins at any element; NULL: none does. nsize: so many parameters at the
     * end are sizes known at run time.
     */
    dc_status (*build)(dc_rt *rt, dc_job *j, const dc_func *f, const bool *anywhere, uint32_t nsize,
                       void **out);
    /* out[] receives new references to memory that nothing else writes. */
    dc_status (*run)(void *program, dc_job *j, const dc_lazy_arg *arg, dc_tensor **out);
    void (*free)(void *program);
} dc_lazy_exec;

/* Gives back what the context keeps for this; no node may be alive. */
void dc_lazy_close(dc_rt *rt);
/* Lets programs of structures go that nothing runs, until there are no more than so many. */
void dc_lazy_trim(dc_rt *rt, uint32_t most);

/* ---- gradients (core/runtime/lazygrad.c) ---- */

typedef struct dc_lazy_wrt {
    dc_lazy *node;       /* of a tensor; NULL: no operation has read it */
    const dc_cell *cell; /* or a cell: the version that loss read, of several the last */
    const char *name;    /* for sentences */
    dc_type type;        /* with names, which the gradient has too */
} dc_lazy_wrt;

/*
 * Gradients of the scalar loss, as expressions that are computed together, with loss. out[i] are new
 * references. zero: zeros where loss does not depend on wrt[i], else GRAD_UNUSED. GRAD_DROPPED where
 * what loss reads was computed from wrt[i] and its recipe is gone.
 * message: NULL, or a new reference to what ranks send each other for them, which the caller realizes.
 */
dc_status dc_lazy_grad(dc_rt *rt, dc_job *j, dc_lazy *loss, dc_lazy_wrt *wrt, int n, bool zero,
                       const char *where, const char *path, dc_lazy **out, dc_lazy **message);

/* ---- shared by core/runtime/lazy*.c and core/runtime/realize*.c ---- */

/*
 * A walk. `recipes`: through nodes that have a value and keep their operands; otherwise such are
 * leaves. Arrays are in the job's scratch memory. `number` of a node that was met is its place in
 * order, from 1; `inside` how often the others read it.
 */
typedef struct dc_lazy_walk {
    dc_rt *rt;
    dc_job *j;
    bool recipes;
    uint64_t epoch;
    DC_VEC(dc_lazy *) order; /* leaves and operations */
    DC_VEC(dc_lazy *) leaf;
    DC_VEC(dc_lazy_view) view; /* of each leaf; `of` NULL where it has none */
    DC_VEC(dc_lazy *) stack;
    uint32_t *bucket; /* leaves with a view by memory: places in `leaf` + 1 */
    uint32_t nbucket;
    bool *window;   /* by leaf: given as a window; NULL: none is */
    dc_lazy *group; /* met a pick of it without a value: the walk has stopped */
    const struct dc_lazy_wrt
        *apart; /* constants among the first `napart` of these are no others of equal value */
    int napart;
} dc_lazy_walk;

void dc_lazy_walk_begin(dc_lazy_walk *w, dc_rt *rt, dc_job *j, bool recipes);
void dc_lazy_walk_add(dc_lazy_walk *w, dc_lazy *root);
/*
 * Of a walk that is done: what ranks do together in it, in the order of making, if it was met in another one; else *n is 0. Then
 * a walk that begins with these meets them in this order, which is the same on all ranks.
 */
dc_lazy **dc_lazy_walk_exchanges(const dc_lazy_walk *w, uint32_t *n);
dc_lazy *dc_lazy_walk_real(const dc_lazy_walk *w, dc_lazy *n);
bool dc_lazy_walk_leaf(const dc_lazy_walk *w, const dc_lazy *n);
bool dc_lazy_walk_pending(const dc_lazy_walk *w, const dc_lazy *n); /* it was met, and is no leaf */
/* A new function of m with a parameter for each leaf and no results; refs by number. */
dc_ref *dc_lazy_walk_write(const dc_lazy_walk *w, dc_module *m, dc_func **out);

/* What has to be realized before the rest of what was met, each before the one in front of it: wholes that a
 * part is taken of. */
typedef DC_VEC(dc_lazy *) dc_lazy_list;
void dc_lazy_wholes(const dc_lazy_walk *w, dc_lazy_list *todo);

typedef struct dc_lazy_entry dc_lazy_entry;

/* What the interpreter has taken for a structure, in estimated nanoseconds. */
typedef struct dc_lazy_spent {
    uint64_t structure, ns;
} dc_lazy_spent;
enum { DC_LAZY_SPENT = 4096 }; /* places, by hash: another structure takes one over */
enum { DC_LAZY_FORMS = 128 };  /* the same of structures without their sizes */

typedef struct dc_lazies { /* of a context: dc_rt.lazy */
    dc_module *module;     /* the function that operations are built in */
    dc_func *scratch;
    dc_mark empty;
    bool open;
    DC_VEC(dc_lazy *) operand; /* by parameter of it */
    DC_VEC(dc_lazy *) fresh;   /* made by the operation at hand, one reference each */
    uint64_t epoch, serial;
    const char *where, *path; /* of the last failure */
    dc_lazy_entry **entry;    /* programs by structure */
    uint32_t nentry;
    uint64_t used;
    dc_lazy_spent *spent; /* [DC_LAZY_SPENT], or NULL */
    struct dc_lazy_form *form; /* [DC_LAZY_FORMS], or NULL */
    uint32_t general;     /* programs for any size that were tried */
    uint64_t rent;        /* the sum of what was added to these, before the first compilation */
    bool compiles;        /* there has been one */
} dc_lazies;

dc_lazies *dc_lazy_of(dc_rt *rt);
/* A node of f, a function of any module, whose operands are given. */
dc_lazy *dc_lazy_node(dc_rt *rt, const dc_func *f, dc_ref r, dc_lazy *const *map);
/* What a pick or a name given anew stands for: the node that has the value, or makes it. A pick whose
 * group has no values yet is its own. */
dc_lazy *dc_lazy_real(dc_lazy *n);
/* n as a result of the operation at hand: its names, its place. Kept by the operation. */
dc_lazy *dc_lazy_name(dc_rt *rt, dc_lazy *n, const dc_type *type, const char *where,
                      const char *path);
/* Takes a node just made over for the operation at hand; the room for it is made before. */
dc_lazy *dc_lazy_keep(dc_rt *rt, dc_lazy *n);
void dc_lazy_room(dc_rt *rt);
dc_lazy_sources dc_lazy_source(uint64_t kind, uint64_t number); /* 0: by serial; 1: a cell */
/* n becomes a leaf, if it is no recipe to keep. It has a value, or is a view. */
void dc_lazy_drop(dc_lazy *n);

/* ---- views (core/runtime/lazyview.c) ---- */

/* Is n a value, or movement of one that is a view of it? `of` is kept by what is below n. */
bool dc_lazy_view_of(dc_lazy *n, dc_lazy_view *out);
/* What has to have a value before n, which has none, can be a view: below n. NULL where it is one, or never
 * will be. */
dc_lazy *dc_lazy_beneath(dc_lazy *n);
/* What is copied by the host rather than by a program, or read by one where it stands. */
typedef enum dc_lazy_copies {
    DC_LAZY_COPY_LITTLE,
    DC_LAZY_COPY_PART, /* parts of a million elements, too, that no aligned address begins */
    DC_LAZY_COPY_ALL
} dc_lazy_copies;
/* Gives n, which has the view v, a value without a program: v itself where that is dense and aligned, else such a
 * copy. Otherwise n stays without. */
dc_status dc_lazy_load(dc_rt *rt, dc_job *j, dc_lazy *n, const dc_lazy_view *v,
                       dc_lazy_copies copies);
/* n has been read: if it is a view, it lets go of its recipe, as dc_lazy_drop. */
dc_status dc_lazy_settle(dc_rt *rt, dc_job *j, dc_lazy *n);

/*
 * Windows: a run of memory that a program takes the elements of a view out of. The words say which program
 * it is. A window may begin at any element: its tensor is an argument and nothing else. write adds a
 * parameter to f.
 */
enum { DC_LAZY_WINDOW = DC_MAX_RANK + 1 }; /* words at most */
bool dc_lazy_has_window(const dc_lazy_view *v);
bool dc_lazy_window_aligned(const dc_lazy_view *v);
int dc_lazy_window_words(const dc_lazy_view *v, uint64_t *word);
dc_tensor *dc_lazy_window_tensor(const dc_lazy_view *v);
dc_ref dc_lazy_window_write(dc_func *f, const dc_lazy_view *v);
/* Members that will be computed together; what replaces them belongs to the operation at hand. */
void dc_lazy_group(dc_rt *rt, dc_lazy **member, int n);
/* The operation at hand is whole: gives the caller a reference on each result. */
void dc_lazy_finish(dc_rt *rt, dc_job *j, dc_lazy *const *result, int n);

#endif
