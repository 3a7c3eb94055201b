/*
 * The typed function that is being traced: its graph, what it captured, what its calls test.
 */
#ifndef DC_DSL_BASE_TRACE_H
#define DC_DSL_BASE_TRACE_H

#include "core/base/ptrmap.h"
#include "dsl/base/handle.h"
#include "dsl/base/place.h"
#include "dsl/base/uses.h"

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
    dc_err_id id;     /* CLASS, LENGTH or POSITION; SINGULAR and its like: 0 for each matrix */
    int axis;         /* of POSITION */
    const char *op;   /* static or interned */
    const char *role; /* of the tensor; static */
    dc_type type;
    dc_type shown; /* of what messages show: the same, or that of the matrices */
    const char *origin;
    dc_place place;
} dc_trace_check;

/* What a cell was when a body began. */
typedef struct dc_trace_saved {
    uint32_t nread; /* versions; 0: the body leaves it alone */
    dc_val set;
    bool is_set;
    dc_ref stand_in; /* its value in the body of a loop */
    bool pulled;     /* a gradient for it was also that of what was made of it before the loop */
} dc_trace_saved;

/* A body of a loop, or a side of a branch, that is traced, or was. In the arena of the trace. */
typedef struct dc_trace_body {
    struct dc_trace_body *outer; /* when it has ended: one that ended before */
    const char *op, *where;      /* "scan", "train.lua:12", of its call; static, interned */
    bool loop;
    lua_State *L;            /* where it runs */
    uint64_t born, last;     /* handles made before it, and when it ended */
    dc_ref mark, end;        /* the first node that is its own; when it has ended, the first that is not */
    dc_val i;                /* of a loop: the number of the element, a stand-in */
    uint32_t ncheck, nprint; /* what there was before it; */
    int nline;               /* lines of prints */
    uint32_t ncell;
    dc_trace_saved *cell; /* [ncell] */
} dc_trace_body;

/* What a static object (dsl/fn/static.c) has now: a number for each value it ever had. */
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
    uint64_t cells;    /* cells made before it */
    dc_rt *rt;         /* of the device that it is for; NULL: nothing has told yet */
    const char *told;  /* what has: "its arguments are", "net.0.weight is"; interned */
    const char *name;  /* of the function; interned */
    const char *where; /* its body; interned */
    lua_State *L;      /* where the body runs, ... */
    bool finalizing;   /* ... begun by a finalizer */
    dc_module *module;
    dc_func *f;
    DC_VEC(dc_ref) arg;
    DC_VEC(dc_trace_capture) captured;
    DC_VEC(dc_trace_cell) cell;
    dc_ptrmap known; /* captured tensors, lazy or not, and cells: where in their lists */
    DC_VEC(dc_trace_check) check;
    DC_VEC(dc_val) result;
    DC_VEC(dc_val) print; /* tensors that dc.print shows at each call */
    DC_VEC(dc_trace_dep) dep;
    const dc_frame *frame; /* innermost */
    struct dc_guards
        *guards;   /* captured locals noted so far (guard_trace.c); the specialisation's */
    lua_Hook hook; /* that was there before the trace */
    int hook_mask, hook_count;
    const char *silent;  /* the layer that last returned nothing; interned, NULL: none did */
    uint32_t draws;      /* of the generator, numbered */
    dc_val call[2];      /* with the first one: keys of a call */
    dc_uses uses;        /* of results that the script made */
    dc_trace_body *body; /* of loops and branches, innermost */
    dc_trace_body *left; /* those that ended, but for those in another one; the last one first */
};

/* Inside a body; released at once where there is no memory for all of it. */
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
/* Is a finalizer running? */
bool dc_trace_finalizing(lua_State *L);
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
/* The same of a handle or a number, from Lua. Raises. */
dc_val dc_trace_operand(lua_State *L, dc_trace *t, const dc_operand *in);
dc_trace_cell *dc_trace_cell_of(dc_trace *t, dc_cell *c);
/* Of the version that is read now: of a state that grows with the size that it has there. */
static inline const dc_type *dc_trace_cell_type(const dc_trace_cell *c)
{
    return &c->read.at[c->read.n - 1].type;
}
/* The type of a state that grows, where it is asked for: in a trace its size is a variable. Stays where it is. */
const dc_type *dc_trace_growing(dc_dsl *d, dc_cell *c);
/*
 * A body begins: in that of a loop the cells that are known get stand-ins. When it ends, nothing stays of what it set,
 * tested and printed; tensors that were made in it may not be used any more.
 */
dc_trace_body *dc_trace_body_begin(dc_trace *t, lua_State *L, const char *op, const char *where,
                                   bool loop);
void dc_trace_body_end(dc_trace *t, dc_trace_body *b);
/* The ended body in which the handle of this number was made, or NULL. */
const dc_trace_body *dc_trace_body_left(const dc_trace *t, uint64_t born);
/* Pushes the table of what dc.print shows, whose lines are from 1 on; made when first asked for. */
void dc_trace_push_prints(lua_State *L, const dc_trace *t);
/* A function with arguments, captured tensors, then cells; results, sets, checks. */
dc_func *dc_trace_close(dc_trace *t);
/* What the trace reads lies there: on its device, which it tells if nothing has. DEVICES. */
dc_status dc_trace_lies(dc_job *j, dc_trace *t, dc_rt *rt, const char *what);
dc_status dc_trace_cell_lies(dc_job *j, dc_trace *t, const dc_cell *c);
/*
 * The trace has ended: its device is told. What it made inside gets there, cells if `move`; anything else that is elsewhere is
 * DEVICES.
 */
dc_status dc_trace_place(dc_job *j, dc_trace *t, bool move);
/* Drops the graphs; captured tensors, cells and checks stay. */
void dc_trace_settle(dc_trace *t);
/* The cells made are the function's from now on. The references are at idx. */
void dc_trace_commit(lua_State *L, int refs_idx);

#endif
