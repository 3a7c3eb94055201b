/*
 * What the files of dsl/ share: the state of a context in Lua, handles, operands, blame.
 *
 * Every binding has three parts: parse (may raise, owns nothing), act (C inside dc_protect, never
 * touches L) and push (what was made belongs to a userdata already). A userdata is made empty and
 * valid first and filled second.
 */
#ifndef DC_DSL_IMPL_H
#define DC_DSL_IMPL_H

#include "core/build.h"
#include "core/lazy.h"
#include "core/store.h"
#include "dsl/dsl.h"
#include "jit/jit.h"

#include <lauxlib.h>
#include <lua.h>

typedef struct dc_trace dc_trace;
typedef struct dc_handle dc_handle;
typedef struct dc_scope dc_scope;
typedef struct dc_blame dc_blame;

/* Of one context in one lua_State: the first upvalue of every binding. */
typedef struct dc_dsl {
    dc_rt *rt;
    dc_trace *trace;    /* of the typed function being traced, innermost; or NULL */
    uint64_t serial;    /* of traces made so far */
    uint64_t born;      /* handles made so far */
    dc_cell *generator; /* of random numbers, see random.c; NULL before the first draw */
    uint64_t seed;      /* what it was started with */
    uint64_t handed;    /* dc_rt.handed when the collector was last stepped */
    dc_handle *live;    /* all that hold something, linked */
    uint64_t nlive;     /* so many */
    struct dc_fn *fns;  /* all that own something, linked; as are specialisations */
    struct dc_spec *specs;
    struct dc_batches *batches; /* loops over data sets that have not ended, linked */
    dc_scope *scope;      /* the open ones, innermost first */
    uint64_t scopes;      /* made so far */
    lua_CFunction ipairs; /* its iterator */
    void (*closed)(void *);
    void *arg;
    /* interrupt.c */
    lua_State *volatile running; /* the main thread, or a coroutine whose resume the host reports */
    lua_Hook hook;               /* the one that stood where ours was put */
    int hook_mask, hook_count;
} dc_dsl;

/* Raises: a finalizer of the script calls us after the context was closed. */
DC_NORETURN void dc_dsl_refuse_closed(lua_State *L);

static inline dc_dsl *dc_dsl_of(lua_State *L)
{
    dc_dsl *d = lua_touserdata(L, lua_upvalueindex(1));
    if (d->rt == NULL)
        dc_dsl_refuse_closed(L);
    return d;
}

/* That of a state, where no binding of ours is called; or NULL. */
dc_dsl *dc_dsl_in(lua_State *L);

/* Adds functions to the table on top; each has the context as its first upvalue. */
void dc_lib_add(lua_State *L, dc_dsl *d, const luaL_Reg *fn);
/* t[name] = n for the table on top. */
void dc_lib_set(lua_State *L, const char *name, uint64_t n);
/* Pushes one such function. */
void dc_lib_push(lua_State *L, dc_dsl *d, lua_CFunction fn);

/* ---- places (place.c) ------------------------------------------------------------------------ */

/* Where a script called us: interned in the context, NULL unknown. */
typedef struct dc_place {
    const char *where; /* "train.lua:15" */
    const char *path;  /* "net.2 (nn.Linear 784 -> 10)" */
} dc_place;

dc_place dc_place_find(lua_State *L, dc_dsl *d);
const char *dc_place_intern(dc_dsl *d, const char *fmt, ...) DC_PRINTF(2, 3);
/* "made at train.lua:14", the origin of what an operation makes; NULL for NULL. */
const char *dc_place_made(dc_dsl *d, const char *where);
/* Where the Lua function at idx is written. */
const char *dc_place_of_function(lua_State *L, dc_dsl *d, int idx);
/* The name of the script's variable that holds the value at idx, innermost first; pushes it or nil.
 */
void dc_place_push_name(lua_State *L, int idx);
/* The __call of layers; second upvalue: a function from the layer to the text of its path. */
int dc_place_layer(lua_State *L);
/* Puts C functions before the Lua functions of a module, of its classes and their bases. */
void dc_place_enter(lua_State *L, dc_dsl *d, int table);

/* ---- handles (handle.c) ---------------------------------------------------------------------- */

typedef enum dc_handle_kind {
    DC_HANDLE_CLOSED, /* nothing yet, or no more */
    DC_HANDLE_VALUE,  /* a realized tensor */
    DC_HANDLE_LAZY,   /* an expression; it has a value from its realization on */
    DC_HANDLE_CELL,
    DC_HANDLE_TRACED /* a node of the function being traced */
} dc_handle_kind;

/* The userdata behind a tensor, a cell and a traced tensor alike. */
struct dc_handle {
    dc_handle_kind kind;
    bool loan;     /* of a batch: says so when used after closing */
    bool by_scope; /* closed by one */
    dc_dsl *d;
    const char *origin; /* "made at train.lua:14", "argument 'x' of step, train.lua:12"; interned */
    union {
        uint64_t scope;     /* that frees it; 0 none */
        const char *closed; /* where; interned or NULL */
    };
    uint64_t born; /* a number of its own */
    dc_handle *next, *prev;
    dc_tensor *tensor;
    dc_cell *cell;
    const char *compiled; /* VALUE that is a result of this typed function; interned */
    dc_lazy *lazy;        /* of LAZY; of VALUE once it was an operand: its identity for gradients */
    dc_val val;           /* TRACED only: other kinds end before it */
    uint64_t serial;      /* of the trace */
    const char *fn;       /* name of the function traced; interned */
};

void dc_handle_register(lua_State *L, dc_dsl *d);
/* Pushes an empty handle that may become a value or a cell; or one for a traced tensor. */
dc_handle *dc_handle_new(lua_State *L, dc_dsl *d);
dc_handle *dc_handle_new_traced(lua_State *L, dc_dsl *d);
/* These take the reference. */
void dc_handle_fill(dc_handle *h, dc_tensor *t);
void dc_handle_fill_cell(dc_handle *h, dc_cell *c);
void dc_handle_fill_lazy(dc_handle *h, dc_lazy *n);
void dc_handle_trace(dc_handle *h, const dc_trace *t, const dc_val *v);
void dc_handle_close(dc_handle *h);
void dc_handle_close_all(dc_dsl *d);
const dc_type *dc_handle_type(const dc_handle *h);
dc_handle *dc_handle_test(lua_State *L, int idx);                             /* or NULL */
dc_handle *dc_handle_check(lua_State *L, dc_dsl *d, int idx, const char *op); /* open, or raises */
/* Steps the collector by the memory handed out since the last step, which it cannot see. */
void dc_handle_pressure(lua_State *L, dc_dsl *d);
/* dc_protect; where there is no memory, again after a full collection. */
dc_status dc_handle_act(lua_State *L, dc_dsl *d, dc_status (*body)(dc_job *, void *), void *arg);

/*
 * The tensor behind a value or a lazy tensor, realized now if it has to be; the handle keeps it.
 * Inside an entry, or from Lua, where a failure is raised with the place of the operation that
 * failed.
 */
dc_status dc_handle_tensor(dc_job *j, dc_handle *h, dc_tensor **out);
dc_tensor *dc_handle_realize(lua_State *L, dc_dsl *d, dc_handle *h, const char *op);
/* The same if it has one, else NULL; never fails. */
dc_tensor *dc_handle_held(const dc_handle *h);
/* A new reference on what stands for the handle in lazy expressions: of a cell, its value now. */
dc_status dc_handle_lazy(dc_job *j, dc_handle *h, dc_lazy **out);
/* Raises the record of a failure in an entry that may have realized something. */
DC_NORETURN void dc_handle_raise(lua_State *L, dc_dsl *d, const dc_blame *b);

/* Copies a value or a cell to host memory owned by Lua, pushed as a userdata. Raises while traced.
 */
const void *dc_handle_read(lua_State *L, dc_dsl *d, dc_handle *h, const char *op);
/* The same for n stretches of it, put one behind the other; at least one byte is returned. */
typedef struct dc_part {
    size_t from, bytes;
} dc_part;
const void *dc_handle_read_parts(lua_State *L, dc_dsl *d, dc_handle *h, const dc_part *part, int n,
                                 const char *op);
/* Fills an empty handle with a new tensor of this type, from host memory (NULL: zeros). */
void dc_handle_upload(lua_State *L, dc_dsl *d, dc_handle *h, const dc_type *t, const void *from,
                      const char *op);

/* ---- arguments (args.c) ---------------------------------------------------------------------- */

void dc_args_type(lua_State *L, dc_dsl *d, int idx, const char *op, dc_type *out);
/* The string at idx; one with a zero byte is an error. */
const char *dc_args_text(lua_State *L, dc_dsl *d, int idx, const char *op);
int dc_args_axis_of(lua_State *L, dc_dsl *d, int idx, const dc_type *t, const char *op);
int dc_args_axis(lua_State *L, dc_dsl *d, int idx, const dc_handle *h,
                 const char *op); /* 0-based */
/* nil: all; an axis; a list of axes; { axis = .., keep = .. } */
uint32_t dc_args_axes(lua_State *L, dc_dsl *d, int idx, const dc_handle *h, const char *op,
                      bool *keep);
/* A table keyed by axes (axes.c): refuses other keys; pushes what stands for an axis, or nil. */
void dc_axes_check(lua_State *L, dc_dsl *d, int idx, const dc_type *t, const char *op);
void dc_axes_push(lua_State *L, dc_dsl *d, int idx, const dc_type *t, int axis, const char *op);
/* A shape from argument 2 on, for a tensor of type `from`; one size may be -1 (shape.c). */
void dc_shape_read(lua_State *L, dc_dsl *d, const dc_type *from, const char *op, dc_type *out);
/* A number or a boolean: what stands for a scalar. */
bool dc_args_is_scalar(lua_State *L, int idx);
double dc_args_number(lua_State *L, dc_dsl *d, int idx, const char *op, const char *what);
int64_t dc_args_integer(lua_State *L, dc_dsl *d, int idx, const char *op, const char *what);
/* A field of the options table at idx (which may be nil), or the default. */
double dc_args_option(lua_State *L, dc_dsl *d, int idx, const char *op, const char *name,
                      double dflt);
/* Options other than these (NULL-terminated) raise. */
void dc_args_options(lua_State *L, dc_dsl *d, int idx, const char *op, const char *const *known);
/* The Lua value at idx as one element of this dtype; NUMBER_FIT. */
uint64_t dc_args_element(lua_State *L, dc_dsl *d, int idx, const char *op, dc_dtype t);
bool dc_args_fits(lua_State *L, int idx, dc_dtype t, uint64_t *bits);
/* Raises for one that does not; where is "[2][3]" or "". */
DC_NORETURN void dc_args_refuse_element(lua_State *L, dc_dsl *d, int idx, const char *op,
                                        dc_dtype t, const char *where);
/* A table without a metatable? */
bool dc_args_is_plain(lua_State *L, int idx);
/* "a string", "nil", "f32[2, 3]" for sentences; pushes it. */
const char *dc_args_describe(lua_State *L, int idx);

/* ---- failures (error.c) ---------------------------------------------------------------------- */

typedef struct dc_operand {
    dc_handle *h;     /* NULL: a number */
    const char *role; /* "left" */
    int idx;          /* on the stack */
    uint64_t bits;    /* of a number, of dtype type.dtype */
    dc_type type;
} dc_operand;

/* What the sentence of a failure is surrounded by. */
struct dc_blame {
    const char *op;
    const dc_operand *in;
    int n;
    const dc_place *place; /* NULL: found now */
    const char *hint;      /* instead of the row's */
    const char *expected, *got;
};

void dc_error_register(lua_State *L, dc_dsl *d);
/* Raises the record of the context's job. */
DC_NORETURN void dc_error_raise(lua_State *L, dc_dsl *d, const dc_blame *b);
/* Makes a record of one sentence and raises it; for mistakes found in dsl/. */
DC_NORETURN void dc_error_raisef(lua_State *L, dc_dsl *d, dc_err_id id, const char *op,
                                 const char *fmt, ...) DC_PRINTF(5, 6);
/* Makes a record from facts and raises it. */
DC_NORETURN void dc_error_fact(lua_State *L, dc_dsl *d, dc_err_id id, const dc_fact *fact,
                               const dc_blame *b);
/*
 * A hint for a name that does not exist: the nearest of the table's keys and of `more` (ends with
 * NULL; may be NULL). Pushes it, or returns NULL.
 */
const char *dc_near_name(lua_State *L, int table, const char *const *more, const char *name);
/* Raises if the status is a failure. */
void dc_error_check(lua_State *L, dc_dsl *d, dc_status status, const char *op);

/* ---- operations (apply.c) -------------------------------------------------------------------- */

typedef dc_status dc_build_fn(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                              dc_val *out);

enum { DC_APPLY_IN = 4, DC_APPLY_OUT = 2 };

/* One operation on operands that are parsed already. */
typedef struct dc_apply {
    const char *op;
    dc_operand in[DC_APPLY_IN];
    int n, nout;
    bool as_f32; /* numbers beside integers are f32, for `/` and `^` */
    dc_build_fn *build;
    const void *arg;
} dc_apply;

/* Records it while tracing, else makes a lazy tensor. Pushes nout handles; raises. */
void dc_apply_run(lua_State *L, dc_dsl *d, dc_apply *a);
/* Both for the values at idx[0..n-1]: one result. */
void dc_apply_to(lua_State *L, dc_dsl *d, const char *op, const int *idx, int n, dc_build_fn *build,
                 const void *arg);
/* Takes the values at idx[0..n-1] as operands; numbers get the dtype that the tensors have. */
void dc_apply_operands(lua_State *L, dc_dsl *d, dc_apply *a, const char *op, const int *idx, int n);

/* Steps of composites. */
dc_status dc_ops_1(dc_job *j, dc_func *f, dc_op op, dc_val a, dc_val *out);
dc_status dc_ops_2(dc_job *j, dc_func *f, dc_op op, dc_val a, dc_val b, dc_val *out);
dc_status dc_ops_number(dc_job *j, dc_func *f, dc_val like, double v, dc_val *out); /* a scalar */
dc_status dc_ops_float(dc_job *j, dc_func *f, dc_val a, dc_val *out); /* integers become f32 */

/* An element-wise composite: a method and a function of the module. */
typedef struct dc_composite {
    const char *name;
    dc_build_fn *build;
    int n;       /* operands */
    bool as_f32; /* see dc_apply */
} dc_composite;

dc_build_fn dc_ops_sigmoid, dc_ops_tanh;

/* The rows live as long as the program. */
void dc_ops_composites(lua_State *L, dc_dsl *d, const dc_composite *rows, size_t n, int methods,
                       int module);

/* ---- tracing (trace.c) ----------------------------------------------------------------------- */

typedef struct dc_trace_cell {
    dc_cell *cell;
    DC_VEC(dc_val) read; /* the value at the start, then what each set left */
    dc_val set;          /* the last one */
    bool is_set;
} dc_trace_cell;

typedef struct dc_trace_capture {
    dc_tensor *tensor;
    dc_lazy *lazy; /* until the first call realizes it; tensor is NULL then */
    dc_ref ref;
    uint64_t id; /* of the handle; of one made inside, of what it holds */
} dc_trace_capture;

/* A run-time test, and what to say when it fails. */
typedef struct dc_trace_check {
    dc_ref position, value;
    int64_t classes;  /* what is allowed is 0..classes - 1 */
    dc_err_id id;     /* CLASS or POSITION */
    int axis;         /* of POSITION */
    const char *op;   /* static or interned */
    const char *role; /* of the tensor; static */
    dc_type type;
    const char *origin;
    dc_place place;
} dc_trace_check;

/* What a static object (dsl/static.c) has now: a number for each value it ever had. */
typedef struct dc_static_value {
    uint64_t number;
    const char *text; /* for messages; interned */
} dc_static_value;

/* A static object that a trace read, and what it had then. */
typedef struct dc_trace_dep {
    const dc_static_value *now; /* kept alive by the references */
    dc_static_value then;
    const char *what; /* "static value made at train.lua:3", "net"; interned */
} dc_trace_dep;

/* The signature in whose body we are: of the function being traced, or of one called inside. */
typedef struct dc_frame {
    const struct dc_sig *sig;
    const struct dc_sig_bind *bind;
    const char *name;
    lua_State *L; /* where it runs */
    const struct dc_frame *outer;
} dc_frame;

struct dc_trace {
    dc_dsl *d;
    dc_trace *outer;
    uint64_t serial;
    uint64_t born;     /* handles made before it */
    const char *name;  /* of the function; interned */
    const char *where; /* its body; interned */
    lua_State *L;      /* where the body runs, ... */
    int depth;         /* ... above so many levels of the stack */
    dc_module *module;
    dc_func *f;
    DC_VEC(dc_ref) arg;
    DC_VEC(dc_trace_capture) captured;
    DC_VEC(dc_trace_cell) cell;
    DC_VEC(dc_trace_check) check;
    DC_VEC(dc_val) result;
    DC_VEC(dc_val) print; /* tensors that dc.print shows at each call */
    DC_VEC(dc_trace_dep) dep;
    const dc_frame *frame;    /* innermost */
    struct dc_guards *guards; /* captured locals noted so far (dsl/guard.c) */
    lua_Hook hook;            /* that was there before the trace */
    int hook_mask, hook_count;
    uint32_t draws; /* of the generator, numbered */
    dc_val call[2]; /* with the first one: keys of a call */
};

/*
 * Tests the integers of the tensor at idx: now, or when a call of the function being traced
 * completes (check.c). Of the test: id, op, role, classes, axis. Raises.
 */
void dc_check_index(lua_State *L, dc_dsl *d, int idx, dc_trace_check test);
/* Raises for an integer at a position (from 0) of the tensor h, or of that the test tells of. */
DC_NORETURN void dc_check_raise(lua_State *L, dc_dsl *d, const dc_trace_check *c, dc_handle *h,
                                int64_t value, int64_t position);

dc_trace *dc_trace_new(dc_dsl *d, const char *name, const char *where);
void dc_trace_free(dc_trace *t);
/*
 * The trace that a binding called from L takes part in, or NULL. Not the same as d->trace where the
 * collector runs a finalizer of the script in the middle of a body: what it does is its own.
 */
dc_trace *dc_trace_here(lua_State *L, dc_dsl *d);
/*
 * The innermost trace, or NULL. Traces and frames of coroutines that died are ended here: Lua closes
 * nothing in a coroutine that an error ends.
 */
dc_trace *dc_trace_current(lua_State *L, dc_dsl *d);
/* Levels of the stack of L. */
int dc_trace_depth(lua_State *L);
/*
 * What the trace keeps in Lua: a table in the registry while it runs, which then belongs to the
 * specialisation. Pushes it; dc_trace_hold adds the value at idx and returns its number.
 */
void dc_trace_push_refs(lua_State *L, const dc_trace *t);
int dc_trace_hold(lua_State *L, const dc_trace *t, int idx);
/* "batch=64, t=128": dims bound in the innermost typed function; "" none. */
void dc_trace_bound(const dc_trace *t, char *out, size_t room);
/*
 * Cells made while tracing are found again by the next trace of the function: by the place where
 * they are made and how often it was passed. dc_trace_made pushes the cell made there before, or
 * returns false; after making one, dc_trace_keep takes the handle on top (and leaves it there).
 */
bool dc_trace_made(lua_State *L, dc_dsl *d, const char *op, const dc_place *place,
                   const dc_type *t);
void dc_trace_keep(lua_State *L, dc_dsl *d, const char *op, const dc_place *place);
/* The value of a handle in the function being traced. LEAKED. */
dc_status dc_trace_value(dc_job *j, dc_trace *t, dc_handle *h, dc_val *out);
dc_trace_cell *dc_trace_cell_of(dc_trace *t, dc_cell *c);
/* A function with arguments, captured tensors, then cells; results, sets, checks. */
dc_func *dc_trace_close(dc_trace *t);
/* Drops the graphs; captured tensors, cells and checks stay. */
void dc_trace_settle(dc_trace *t);
/* The cells made are the function's from now on. The references are at idx. */
void dc_trace_commit(lua_State *L, int refs_idx);

/* ---- interruptions (interrupt.c) -------------------------------------------------------------- */

void dc_interrupt_register(lua_State *L, dc_dsl *d);
/*
 * For hooks of ours, and whoever has put another hook in place of the one that stood there: raises
 * if the context is interrupted; puts the hook that will raise into place again.
 */
void dc_interrupt_arm(void *d); /* in a signal handler too: dc_rt.stop_lua */
void dc_interrupt_poll(lua_State *L, dc_dsl *d);
void dc_interrupt_rearm(lua_State *L, dc_dsl *d);

/* ---- the rest -------------------------------------------------------------------------------- */

void dc_ops_register(lua_State *L, dc_dsl *d, int methods, int module, int meta); /* ops.c */
void dc_reduce_register(lua_State *L, dc_dsl *d, int methods, int module);        /* reduce.c */
void dc_move_register(lua_State *L, dc_dsl *d, int methods);                      /* move.c */
void dc_einsum_register(lua_State *L, dc_dsl *d, int module);                     /* einsum.c */
void dc_join_register(lua_State *L, dc_dsl *d, int methods, int module);          /* join.c */
void dc_unary_register(lua_State *L, dc_dsl *d, int methods, int module);         /* unary.c */
void dc_pick_register(lua_State *L, dc_dsl *d, int methods, int module);          /* pick.c */
int dc_pick_put(lua_State *L, dc_dsl *d);                     /* x:put(idx, v, axis) */
const char *dc_hint_field(const char *name);                  /* hints.c: of a tensor; or NULL */
const char *dc_hint_function(const char *name);               /* of the module; or NULL */
const char *dc_hint_library(const char *name); /* of nn, optim, data ...; or NULL */
void dc_index_register(lua_State *L, dc_dsl *d, int methods); /* index.c */
int dc_index_get(lua_State *L, dc_dsl *d, dc_handle *h);      /* a[k]: key at 2 */
void dc_make_register(lua_State *L, dc_dsl *d, int module);   /* make.c */
void dc_make_from_table(lua_State *L, dc_dsl *d, int idx, const dc_type *want, bool dtype_only,
                        const char *op);                      /* pushes a tensor */
void dc_random_register(lua_State *L, dc_dsl *d, int module); /* random.c */
uint32_t dc_random_bits(uint64_t seed, uint64_t stream, uint64_t i);
void dc_cell_register(lua_State *L, dc_dsl *d, int methods, int module); /* cell.c */
/* A new value of a cell while tracing; of its type. */
dc_status dc_cell_record(dc_job *j, dc_trace *t, dc_cell *c, dc_val v);
void dc_grad_register(lua_State *L, dc_dsl *d, int module);   /* grad.c */
void dc_custom_register(lua_State *L, dc_dsl *d, int module); /* custom.c */
void dc_conv_register(lua_State *L, dc_dsl *d, int module);   /* conv.c */
void dc_fn_register(lua_State *L, dc_dsl *d, int module);     /* fn.c */
void dc_fn_close_all(dc_dsl *d);
void dc_layer_register(lua_State *L, dc_dsl *d); /* layer.c: internals on top */
void dc_data_register(lua_State *L, dc_dsl *d);  /* data.c: internals on top */
/* batches.c: internals on top */
void dc_batches_register(lua_State *L, dc_dsl *d);
void dc_batches_close_all(dc_dsl *d);
void dc_files_register(lua_State *L, dc_dsl *d); /* files.c: internals on top */
void dc_terminal_register(lua_State *L, dc_dsl *d); /* terminal.c: internals on top */
void dc_tensor_register(lua_State *L, dc_dsl *d, int methods, int meta); /* tensor.c */
void dc_scope_register(lua_State *L, dc_dsl *d, int module);             /* scope.c */
uint64_t dc_scope_here(const lua_State *L, const dc_dsl *d); /* number of the innermost, 0 none */
int dc_print_value(lua_State *L, dc_dsl *d, dc_handle *h);   /* print.c: pushes text */

#endif
