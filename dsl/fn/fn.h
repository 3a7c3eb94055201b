/*
 * Typed functions and their specialisations, between dsl/fn/fn.c (definition), fncall.c (calls), spec.c
 * (tracing), fnvalue.c (arguments and results as leaves) and guard_trace.c (captures).
 *
 * What a call means is decided by its key: the device of its arguments, sizes of dims, which optional arguments are there,
 * how long lists are, and which values static parameters have. Two specialisations of one key differ in
 * the values of static objects (dc.static, states of layers) that their traces read; the one whose
 * values are those of now is called.
 */
#ifndef DC_DSL_FN_FN_H
#define DC_DSL_FN_FN_H

#include "core/signature/signature.h"
#include "core/transform/bounded.h"
#include "core/transform/partition.h"
#include "dsl/base/error.h"
#include "dsl/base/run.h"
#include "dsl/base/trace.h"
#include "jit/jit.h"

/*
 * User values of a dc_fn. SPECS: a list, and each under its address. STATICS: the values of static
 * parameters and their numbers. MADE: cells that its traces made, by place and order.
 */
enum { DC_FN_BODY = 1, DC_FN_SPECS, DC_FN_STATICS, DC_FN_MADE, DC_FN__USER = DC_FN_MADE };
/* Of a dc_spec. REFS: what guards hold (guard_trace.c). PRINTS: texts of dc.print. */
enum { DC_SPEC_REFS = 1, DC_SPEC_PRINTS, DC_SPEC__USER = DC_SPEC_PRINTS };

enum { DC_FN_SHAPE = 64 }; /* optional arguments, lists and statics, and what lists hold */

/* Presence (0 or 1) of each optional parameter, length of each list, number of each static value;
 * in the order in which a walk over the parameters meets them. */
typedef struct dc_fn_key {
    dc_rt *rt; /* of the device that the tensors among the arguments lie on; NULL: there are none */
    dc_sig_bind bind;
    int nshape;
    int64_t shape[DC_FN_SHAPE];
} dc_fn_key;

typedef struct dc_fn {
    dc_uhead head;
    dc_dsl *d;
    struct dc_fn *next, *prev; /* in d->fns, while `ready` */
    dc_sig sig;
    const char *name;     /* interned, as are the next two */
    const char *place;    /* ", train.lua:12", or "" */
    const char *origin;   /* of results */
    struct dc_spec *last; /* called last; held by DC_FN_SPECS */
    int limit;
    dc_sig_bind given; /* by the third argument of dc.fn, if has_given */
    bool has_given;
    bool plain;        /* every parameter is a tensor that has to be there: leaves are arguments */
    bool fixed;        /* every parameter is a tensor or a record of tensors and of such records */
    bool flat_results; /* each result is a tensor */
    bool bounded;      /* a dim is: its size is no part of a key */
    bool split;        /* an axis is, among ranks */
    bool strict;       /* what ranks have to bring together is asked for, or an error */
    bool wide;         /* sums over ranks of 16-bit floats are made of terms in f32 */
    bool traced;       /* for some sizes, or that was tried */
    bool ready;        /* parsed: sig is owned */
    dc_uses seen;      /* places of operations of its traces so far */
    int64_t called;    /* calls that ended well, of all specialisations */
} dc_fn;

typedef struct dc_guards dc_guards;

/* A node of the first trace, to tell where the second one differs. */
typedef struct dc_fn_step {
    uint64_t hash;
    const char *where; /* interned in the context */
} dc_fn_step;

typedef struct dc_spec {
    dc_uhead head;
    dc_dsl *d;
    struct dc_spec *next, *prev; /* in d->specs, until it is dropped */
    dc_rt *rt;                   /* of the device that it computes on */
    dc_trace *trace;
    dc_exec *exec;
    dc_inst *inst;
    struct dc_fnjob *job; /* that its instance is, or NULL */
    dc_cell *generator; /* among its cells, or NULL */
    uint64_t moved;     /* of its cells from device to device, when it was made; */
    uint64_t
        in_place; /* that this is so yet was seen when so many of the context's had been moved */
    dc_arg *arg; /* leaves of declared parameters, sizes known at run time, then captured tensors */
    dc_extent_list size; /* those sizes */
    uint32_t
        nplace; /* of numbers behind them: the place of this rank in the mesh; 0: values are whole */
    DC_VEC(const dc_sig_type *) declared; /* of leaves of arguments */
    DC_VEC(dc_partition_step) exchange; /* what ranks give each other in a call; where: interned */
    DC_VEC(const char *)
    whole;       /* what all ranks have alike among arguments and captured tensors (ranks.c) */
    bool agreed; /* and have compared */
    dc_sig_bind actual; /* of the names in the last call, where there are such sizes */
    dc_type *
        inside; /* of the leaves as this rank has them, with bounds; where there are such sizes, else NULL */
    dc_type *result;  /* alike, of results and what is printed */
    dc_tensor **room; /* as large as these bounds, for leaves that are smaller */
    dc_type *type;    /* of the leaves, as the last caller gave them: a call like it is known */
    uint32_t nleaf, nresult; /* leaves of arguments; leaves of results, without what is printed */
    uint32_t nout;           /* results and what is printed */
    bool prints;             /* lines, with tensors or without */
    uint32_t sized; /* axes of the mesh over which sizes known at run time have to be the same */
    dc_fn_key key;  /* with the names of the caller it was made for */
    dc_type *out;   /* of result leaves, under the names of the last caller */
    const dc_sig_type **out_declared; /* NULL where nothing is declared */
    int nout_shape;
    int64_t out_shape[DC_FN_SHAPE]; /* lengths of lists among the results */
    DC_VEC(dc_trace_dep) dep;
    dc_guards *guards;
    uint64_t fingerprint;    /* of what was traced */
    DC_VEC(dc_fn_step) step; /* until the second trace */
    uint64_t calls;
    uint32_t retraces;   /* without a difference */
    const char *refused; /* why nothing was compiled, when last waited for; interned, or NULL */
    const char *why;     /* it was made: "batch 64 -> 32"; NULL: the first. Interned */
    const char *note;    /* to be logged once it is compiled; interned */
    uint64_t begun_ns;   /* when it was asked for */
} dc_spec;

/* Arguments of a call taken apart: where each leaf is on the stack, and what it should be. */
typedef struct dc_fn_taken {
    int idx;
    const dc_sig_type *declared;
    const char *label; /* "x", "p.w", "xs[2]"; interned, or NULL where only asked for */
} dc_fn_taken;

/* Of more than a few the list is a userdata on the stack, which lives as long as the call. */
enum { DC_FN_FEW = 256 };
typedef struct dc_fn_leaves {
    int n, room;
    dc_fn_taken *at, few[DC_FN_FEW];
} dc_fn_leaves;

/* ---- fnobject.c ------------------------------------------------------------------------------ */

/* Raises where the value at idx is no typed function. */
dc_fn *dc_fn_check(lua_State *L, int idx);
/* The list of specialisations of the typed function at idx is pushed. */
void dc_fn_push_specs(lua_State *L, int idx);
/* An empty one is pushed; the caller has its user values to fill. */
dc_spec *dc_spec_push(lua_State *L, dc_dsl *d, const dc_fn_key *key);
/* Frees what it owns; it is at none of its lists any more. */
void dc_spec_drop(dc_spec *s);
/* The specialisation at idx, or NULL where there is none any more; one that is in use from now on, or raises. */
dc_spec *dc_spec_test(lua_State *L, int idx);
dc_spec *dc_spec_at(lua_State *L, int idx);
void dc_fn_close_all(dc_dsl *d);

/* ---- ranks.c --------------------------------------------------------------------------------- */

/* Has the mesh the axes that the signature names? Raises. */
void dc_fn_check_mesh(lua_State *L, dc_dsl *d, dc_fn *fn);
/* A type as the caller has it becomes that of all parts together; and back. */
void dc_fn_whole(const dc_fn *fn, const dc_sig_type *declared, dc_type *t);
void dc_fn_part(const dc_fn *fn, const dc_sig_type *declared, dc_type *t);
/* How a value of a declared type, of so many axes, lies; false: it is whole. */
bool dc_fn_sharding(const dc_fn *fn, const dc_sig_type *declared, int rank, dc_sharding *out);
/* Are values of the function in parts? */
bool dc_spec_is_split(const dc_fn *fn, const dc_trace *t);
/* Makes of what was traced what a rank runs; the parameters and results of the description follow. */
dc_status dc_spec_partition(dc_job *j, const dc_fn *fn, dc_spec *s, dc_exec_desc *desc);
/* Pushes a list of those that partitioning made. */
void dc_fn_push_exchanges_of(lua_State *L, const dc_spec *s);
int dc_fn_push_exchanges(lua_State *L); /* f:exchanges() */
/* Of one without values in parts: what it exchanges by itself. */
void dc_spec_note_exchanges(dc_job *j, dc_spec *s, const dc_func *f);
/* Axes of the mesh over which the function, before it is lowered, exchanges what has a size known at run time. */
uint32_t dc_fn_sized_axes(const dc_func *f);
/* The numbers of this rank among the arguments of calls. */
void dc_spec_set_places(dc_spec *s);

/* ---- agree.c --------------------------------------------------------------------------------- */

/* Have all ranks the same values in cells that are whole? Before the first call; each cell is looked at once. */
dc_status dc_spec_agree(dc_job *j, const dc_spec *s);
/* And in arguments and captured tensors that are whole? In the first call. */
dc_status dc_spec_agree_values(dc_job *j, dc_spec *s);
/*
 * Before a call of a function whose ranks meet: have all of them the same sizes known at run time? Else AGREEMENT of all
 * of them, where each would have waited for other numbers of bytes.
 */
dc_status dc_spec_agree_sizes(dc_job *j, const dc_spec *s);

/* ---- fnkey.c --------------------------------------------------------------------------------- */

/* Gives the size of this name n; all sizes are given: is it a definition, and which others follow? Raise. */
void dc_fn_give_size(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_sig_bind *b, const char *name,
                     int64_t n);
void dc_fn_check_sizes(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_sig_bind *b);
/* Adds the lengths of the lists of this type to the key (-1: not known); false where a size is missing. */
bool dc_fn_add_lengths(const dc_sig_type *t, int64_t length, dc_fn_key *key, int *leaves);
/* The key that the table at idx tells, as f:check takes it. Raises for op. */
void dc_fn_key_of(lua_State *L, dc_dsl *d, const dc_fn *fn, int idx, const char *op,
                  dc_fn_key *key);
/* What can be traced without a call: optional arguments are left out. False where a size or a static value is missing. */
bool dc_fn_early_key(const dc_fn *fn, dc_fn_key *key);
/* Of sizes, arguments and static values, how many differ from the key's; sizes also by how much, in the lower half. */
uint64_t dc_spec_distance(const dc_sig *sig, const dc_spec *a, const dc_fn_key *key);
/* What of two keys differs, for logs: "batch 64 -> 32". */
void dc_spec_difference(lua_State *L, int fn_idx, const dc_spec *a, const dc_fn_key *key, char *out,
                        size_t room);

extern const dc_bindings dc_fn_bindings, dc_static_bindings, dc_dim_print_bindings,
    dc_layer_bindings, dc_fntune_bindings, dc_fnplan_bindings,
    dc_trace_work_bindings, dc_report_bindings, dc_fnreport_bindings, dc_fngraph_bindings;
extern const dc_utype dc_fn_type, dc_spec_type, dc_tracing_type, dc_frame_type, dc_fnjob_type,
    dc_fntext_type, dc_static_type, dc_fntune_type, dc_executable_type;
extern const dc_bindings dc_fn_methods, dc_tracing_methods, dc_frame_methods,
    dc_fnjob_methods, dc_static_methods;

/* ---- fnjob.c: f:start, f:ready --------------------------------------------------------------- */

int dc_fnjob_start(lua_State *L);
int dc_fnjob_ready(lua_State *L);
/* It has no instance any more: its specialisation is dropped. NULL is none. */
void dc_fnjob_end(struct dc_fnjob *p);

/* ---- fntune.c: dc.tune ----------------------------------------------------------------------- */

/* With DEEPC_OPT=3: before a specialisation, which has no instance yet, is called. Inside a body. */
dc_status dc_fntune_first(dc_dsl *d, dc_job *j, dc_spec *s);

/* ---- bounded.c ------------------------------------------------------------------------------- */

/*
 * Sizes of bounded names in the key become codes: of a call all of them, else those that have no size. Raises where
 * one is out of its range.
 */
void dc_fn_bound(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_fn_key *key, bool call);
/* Are values looked at so that nothing may lie behind actual sizes? Then each size is a specialisation. */
bool dc_fn_exact(const dc_dsl *d);
/* Into arguments and types of results go the sizes of a call. */
void dc_spec_sizes(dc_spec *s, const dc_sig_bind *actual);
/* Is there a state that grows among the cells, or among those that are set? */
bool dc_spec_grows(const dc_spec *s, bool set);
/* Raises where it is called in a way that states that grow have no part in. */
void dc_spec_refuse_growing(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_spec *s);
/*
 * Before a call: the sizes that states have now go with it, and those that it gives them, in the job's scratch memory,
 * are in their range: else BOUND. After it: they have these sizes.
 */
dc_status dc_spec_growth(dc_spec *s, dc_job *j, int64_t **rows);
void dc_spec_grew(const dc_spec *s, const int64_t *rows);
/* A run-time test with the sizes of the last call. */
dc_trace_check dc_spec_check(const dc_spec *s, uint32_t check);
/* Arguments of the call, which are set, are put into memory of the bounds. */
dc_status dc_spec_pad(dc_spec *s, dc_job *j);
/*
 * Before a call: memory for results of these types, of those that are copied out of memory of the bounds. Behind the
 * call, which may have set states, nothing fails for want of memory, so that it is not called again.
 */
typedef struct dc_trim {
    dc_tensor **part; /* by result, or NULL; the job's */
    char *host;
} dc_trim;
dc_status dc_spec_reserve(const dc_spec *s, dc_job *j, const dc_type *want, dc_trim *out);
/* Results become tensors of these types. Where that does not succeed they are released. */
dc_status dc_spec_trim(const dc_spec *s, dc_job *j, const dc_type *want, const dc_trim *room,
                       dc_tensor **made);
void dc_spec_drop_room(dc_spec *s);

/* ---- export.c: f:export ---------------------------------------------------------------------- */

int dc_fn_export(lua_State *L);
/*
 * Pushes a list of the specialisations that are meant: of each table of sizes from `first` to the top; where there is
 * none, all that still hold. Raises, in a trace too.
 */
void dc_fn_push_meant(lua_State *L, dc_dsl *d, dc_fn *fn, int first, const char *op);
/* Raises where it has sizes that are known at run time. */
void dc_fn_check_fixed(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_spec *s, const char *op);

/* ---- fnreport.c: methods that look at a typed function --------------------------------------- */

int dc_fnreport_report(lua_State *L);
int dc_fnreport_explain(lua_State *L);
int dc_fnreport_kernels(lua_State *L);
int dc_fnreport_source(lua_State *L);
int dc_fnreport_plan(lua_State *L);
int dc_fnreport_dot(lua_State *L);
/* Pushes an empty text that is freed with its userdata; the text on top becomes a string. */
dc_text *dc_fntext_push(lua_State *L);
void dc_fntext_finish(lua_State *L);
/* The number of a constant: a float with so many digits, an integer with all it has. */
void dc_fntext_const(const dc_node *n, int digits, char *out, size_t room);

/* ---- fncall.c: __call ------------------------------------------------------------------------ */

int dc_fn_call(lua_State *L);
/* Checks the number of arguments at 2...; absent ones become nil. */
void dc_fn_check_count(lua_State *L, dc_dsl *d, const dc_fn *fn);
/*
 * The specialisation that a call with the arguments at 2... runs, outside of traces; it is left on the
 * stack, at *spec_idx. Cells and lazy tensors among the arguments become their values.
 */
dc_spec *dc_fn_begin(lua_State *L, dc_dsl *d, dc_fn *fn, dc_fn_leaves *v, int *spec_idx);
/*
 * Fills s->arg and runs body: between these nothing may allocate in Lua, since finalizers may call the function.
 * Both again after a whole collection where there is no memory.
 */
dc_status dc_fn_act(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_spec *s, const dc_fn_leaves *v,
                    dc_run_body *body, void *arg);
/* Pushes an empty handle for a result. */
dc_handle *dc_fn_new_result(lua_State *L, dc_dsl *d, const dc_fn *fn);
/* Pushes what the function returns; handles of its results, what it prints behind them, are at first... */
int dc_fn_give(lua_State *L, const dc_fn *fn, const dc_spec *s, int spec_idx, int first);
DC_NORETURN void dc_fn_raise_late(lua_State *L, dc_dsl *d, const dc_outcome *o);
DC_NORETURN void dc_fn_raise_fault(lua_State *L, dc_dsl *d, const dc_spec *s,
                                   const dc_fault *fault);
/*
 * The specialisation of the function at 1 for the key, made if need be; leaves it on the stack. asked: by
 * name; a new one is not logged.
 */
dc_spec *dc_fn_find(lua_State *L, dc_dsl *d, dc_fn *fn, const dc_fn_key *key, bool asked);
/* Are two keys equal, but for the device? */
bool dc_fn_same_key(const dc_fn_key *a, const dc_fn_key *b);
/* Are the static objects that it read what they were, and its cells where they were? */
bool dc_fn_still_holds(dc_spec *s);
void dc_fn_add_spec(lua_State *L, int list_idx, const dc_spec *s);

/* ---- spec.c ---------------------------------------------------------------------------------- */

/* Traces and checks the function at fn_idx for this key, begins to compile it unless `only_check`;
 * pushes the specialisation. */
dc_spec *dc_spec_make(lua_State *L, dc_dsl *d, int fn_idx, const dc_fn_key *key, bool only_check);
/* Traces again. Raises where the graph is another one; `why` names what was seen to change. */
void dc_spec_retrace(lua_State *L, dc_dsl *d, int fn_idx, int spec_idx);
/* Before it is shown: waits for the executable. False: it is refused. */
bool dc_spec_wait(lua_State *L, dc_dsl *d, dc_spec *s);
/* Before it is called: waits for the executable, makes the instance. Inside a body. */
dc_status dc_spec_ready(dc_dsl *d, dc_job *j, dc_spec *s);
/* ---- fnvalue.c ------------------------------------------------------------------------------- */

/* An empty list. */
void dc_fn_leaves_begin(dc_fn_leaves *v);
/* A further one; pushes a value where the room is used up. */
dc_fn_taken *dc_fn_leaves_add(lua_State *L, dc_fn_leaves *v);
/* Takes the arguments at 2... apart; leaves inside tables are pushed. Raises. */
void dc_fn_take(lua_State *L, dc_dsl *d, dc_fn *fn, int fn_idx, dc_fn_leaves *v, dc_fn_key *key);
/* The number of the static value at idx: the same for equal values. */
int64_t dc_fn_number_static(lua_State *L, dc_dsl *d, const dc_fn *fn, int fn_idx, int param,
                            int idx);
/* The device of the tensors among the leaves goes into the key. DEVICES is raised. */
void dc_fn_lies(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_fn_leaves *v, dc_fn_key *key);
/* Binds the sizes of key->bind by the tensors among the leaves, makes tensors of tables. Raises. */
void dc_fn_bind(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_fn_leaves *v, dc_fn_key *key);
/* The first difference of two shapes: "k 2 -> 3", "length of list xs 2 -> 4", "m is given now". */
void dc_fn_shape_difference(lua_State *L, const dc_fn *fn, int fn_idx, const int64_t *a,
                            const int64_t *b, char *out, size_t room);
/* Pushes one argument per parameter for a key; leaf(ctx, L, declared, label) pushes each tensor. */
typedef void dc_fn_leaf(void *ctx, lua_State *L, const dc_sig_type *declared, const char *label);
void dc_fn_push_arguments(lua_State *L, dc_dsl *d, const dc_fn *fn, int fn_idx,
                          const dc_fn_key *key, dc_fn_leaf *leaf, void *ctx);
/*
 * Takes the results at idx..idx+n-1 apart and checks them against the declared types; numbers that
 * stand for scalars count as leaves. Leaves inside tables are pushed. Raises.
 */
void dc_fn_take_results(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_sig_bind *bind, int idx, int n,
                        dc_fn_leaves *v, int64_t *shape, int *nshape);
/* Puts results together: leaf i is at first + i; pushes the values, returns their number. */
int dc_fn_push_results(lua_State *L, const dc_fn *fn, const int64_t *shape, int first, int nleaf);
/* The type of result leaf i outside, under the caller's names. `inside`: as traced. */
void dc_fn_outside(const dc_fn *fn, const dc_sig_bind *b, const dc_sig_type *declared,
                   const dc_type *inside, dc_type *out);

/* ---- guard_trace.c, guard_tables.c, guard_compare.c, guard_text.c ---------------------------- */

/*
 * While a trace runs, a call hook sees every function; those that were there before the trace are
 * noted with the values of their captured locals. dc_guard_begin pushes nothing; dc_guard_end makes
 * guards of what was noted, in t->guards, and raises where a captured local was assigned.
 */
void dc_guard_begin(lua_State *L, dc_dsl *d, dc_trace *t, int fn_idx, int body_idx);
void dc_guard_end(lua_State *L, dc_dsl *d, dc_trace *t, const char *fn, int refs_idx);
/* The fields of the table at idx, which is called so, are guarded too. */
void dc_guard_watch(lua_State *L, dc_dsl *d, dc_trace *t, int idx, const char *name);
dc_guards *dc_guard_new(void);
/* Did a function run that may keep something no guard sees? */
bool dc_guard_foreign(const dc_guards *g);
void dc_guard_open(lua_State *L, dc_dsl *d);
void dc_guard_stop(lua_State *L, dc_dsl *d, dc_trace *t); /* restores the hook; in any case */
void dc_guard_free(dc_guards *g);

/* How much is compared: what each call asks; with tables that are too large for that; with what changes
 * again and again without effect. */
typedef enum dc_guard_look { DC_LOOK_CALL, DC_LOOK_OFTEN, DC_LOOK_ALL } dc_guard_look;
dc_guard_look dc_guard_look_of(const dc_guards *g, uint64_t calls);
/* Number of the first guard that is not what it was; -1 none. Allocates nothing in Lua. */
int dc_guard_changed(lua_State *L, dc_dsl *d, dc_guards *g, int refs_idx, dc_guard_look look);
/* The same for a message, of all there are: what a function names comes first. */
int dc_guard_blame(lua_State *L, dc_dsl *d, dc_guards *g, int refs_idx);
/* What differs now is counted as harmless until dc_guard_forget says that the graph is another one; */
void dc_guard_count(lua_State *L, dc_dsl *d, dc_guards *g, int refs_idx, dc_guard_look look);
void dc_guard_forget(dc_guards *g);
/* what the guards of the next trace know of it. */
void dc_guard_inherit(dc_guards *g, dc_guards *old);

/* "captured field 'cfg.lr' changed from 0.1 to 0.05": raises for guard i after a trace that differed. */
DC_NORETURN void dc_guard_raise(lua_State *L, dc_dsl *d, const dc_guards *g, int refs_idx, int i,
                                const char *fn);
/* The names of what is captured, "a, cfg.lr", for explain. */
void dc_guard_list(const dc_guards *g, luaL_Buffer *b);
/* Notes about what is not compared at each call: after the first trace; after one that made no difference. */
void dc_guard_tell(dc_dsl *d, const dc_guards *g, const char *fn, const char *place);
void dc_guard_tell_quiet(dc_dsl *d, dc_guards *g, const char *fn);

/* ---- dim_print.c: dc.print, dc.dim ----------------------------------------------------------- */

/* Shows what dc.print asked for: tensors at first..., texts of the table at idx. */
void dc_dim_print_show(lua_State *L, int texts_idx, int first);

/* ---- static.c -------------------------------------------------------------------------------- */

/* Pushes what stands for the value at idx as a key of a table. */
void dc_static_push_key(lua_State *L, int idx);
/* Pushes a static object whose value is on top (replaces it). */
void dc_static_push(lua_State *L, dc_dsl *d, const char *what);

#endif
