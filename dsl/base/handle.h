/*
 * The userdata behind a tensor, a cell and a traced tensor alike.
 */
#ifndef DC_DSL_BASE_HANDLE_H
#define DC_DSL_BASE_HANDLE_H

#include "core/build/build.h"
#include "core/runtime/lazy.h"
#include "dsl/base/binding.h"

typedef enum dc_handle_kind {
    DC_HANDLE_CLOSED, /* nothing yet, or no more */
    DC_HANDLE_VALUE,  /* a realized tensor */
    DC_HANDLE_LAZY,   /* an expression; it has a value from its realization on */
    DC_HANDLE_CELL,
    DC_HANDLE_TRACED /* a node of the function being traced */
} dc_handle_kind;

/* The userdata behind a tensor, a cell and a traced tensor alike. */
struct dc_handle {
    dc_uhead head;
    dc_handle_kind kind;
    bool loan;     /* of a batch: says so when used after closing */
    bool by_scope; /* closed by one */
    bool unread;   /* LAZY or VALUE: of bool, made by the script, and nothing has read it yet */
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
    union {
        const char *compiled; /* VALUE that is a result of this typed function; interned */
        const char *test;     /* LAZY that was unread: the operation; static or interned */
    };
    dc_lazy *lazy;   /* of LAZY; of VALUE once it was an operand: its identity for gradients */
    dc_val val;      /* TRACED only: other kinds end before it */
    uint64_t serial; /* of the trace */
    const char *fn;  /* name of the function traced; interned */
    uint32_t
        use; /* its place in the trace's dc_uses, from 1; 0 none. In `deepc check` of all kinds */
};

/* Of the device that it lies on; NULL of one that is traced, or closed. */
static inline dc_rt *dc_handle_rt(const dc_handle *h)
{
    switch (h->kind) {
    case DC_HANDLE_VALUE:
        return h->tensor->store->rt;
    case DC_HANDLE_LAZY:
        return h->lazy->rt;
    case DC_HANDLE_CELL:
        return h->cell->rt;
    case DC_HANDLE_TRACED:
    case DC_HANDLE_CLOSED:
        break;
    }
    return NULL;
}

/* Is it made of numbers alone? Then it is on whichever device it is used, whatever dc_handle_rt is. */
static inline bool dc_handle_roams(const dc_handle *h)
{
    return h->kind == DC_HANDLE_LAZY && h->lazy->rule;
}

/* Does an expression of it keep its recipe for gradients? Then it is written as in a typed function. */
static inline bool dc_handle_keeps_recipe(const dc_handle *h)
{
    return h->kind == DC_HANDLE_CELL || (h->lazy != NULL && h->lazy->param);
}

extern const dc_utype dc_handle_utype;
/* Pushes an empty handle that may become a value or a cell; or one for a traced tensor. */
dc_handle *dc_handle_new(lua_State *L, dc_dsl *d);
dc_handle *dc_handle_new_traced(lua_State *L, dc_dsl *d);
/* These take the reference. */
void dc_handle_fill(dc_handle *h, dc_tensor *t);
void dc_handle_fill_cell(dc_handle *h, dc_cell *c);
void dc_handle_fill_lazy(dc_handle *h, dc_lazy *n);
void dc_handle_trace(dc_handle *h, const dc_trace *t, const dc_val *v);
void dc_handle_close(dc_handle *h);
/* Empty again, as it was pushed: what filled it has failed. */
void dc_handle_empty(dc_handle *h);
int dc_handle_leave(lua_State *L); /* x:close() */
void dc_handle_close_all(dc_dsl *d);
const dc_type *dc_handle_type(const dc_handle *h);
dc_handle *dc_handle_test(lua_State *L, int idx); /* or NULL */
bool dc_handle_was(lua_State *L, int idx);        /* also one that was finalized */
dc_handle *dc_handle_look(lua_State *L, int idx); /* the same; does not count as a use of it */
dc_handle *dc_handle_check(lua_State *L, dc_dsl *d, int idx, const char *op); /* open, or raises */
/* "a string", "nil", "f32[2, 3]" for sentences; pushes it. */
const char *dc_handle_describe(lua_State *L, int idx);
/*
 * collector.c. The collector hears of the memory that has been handed out: before what makes more of it looks at its
 * operands, since finalizers may run. And a whole collection, where there is no more memory.
 */
void dc_collector_step(lua_State *L, dc_dsl *d);
void dc_collector_run(lua_State *L, dc_dsl *d);
/* For a binding: calls f with all that is on the stack, for one result, while the collector stands: no finalizer runs, also where f raises. */
int dc_collector_hold(lua_State *L, lua_CFunction f);
/* Before a graph grows that is not traced again where memory is short: what waits in the pool is given back. */
void dc_collector_make_room(dc_dsl *d);

/*
 * The tensor behind a value or a lazy tensor, realized now if it has to be; the handle keeps it.
 * Inside an entry, or from Lua, where a failure is raised with the place of the operation that
 * failed.
 */
dc_status dc_handle_tensor(dc_job *j, dc_handle *h, dc_tensor **out);
dc_tensor *dc_handle_realize(lua_State *L, dc_dsl *d, dc_handle *h);
/* The same if it has one, else NULL; never fails. */
dc_tensor *dc_handle_held(const dc_handle *h);
/* A new reference on what stands for the handle in lazy expressions: of a cell, its value now. */
dc_status dc_handle_lazy(dc_job *j, dc_handle *h, dc_lazy **out);
/* Raises the record of a failure in an entry that may have realized something. */
DC_NORETURN void dc_handle_raise(lua_State *L, dc_dsl *d, const dc_blame *b);

/* Copies a value or a cell to host memory owned by Lua, pushed as a userdata. Raises while traced.
 */
const void *dc_handle_read(lua_State *L, dc_dsl *d, dc_handle *h, const char *op);
/* The same for n stretches of its elements, put one behind the other; at least one byte is returned. */
typedef struct dc_part {
    int64_t from, count;
} dc_part;
const void *dc_handle_read_parts(lua_State *L, dc_dsl *d, dc_handle *h, const dc_part *part, int n,
                                 const char *op);
/*
 * Host memory for a value of this type, pushed as a userdata: for dc_handle_upload. MEMORY is raised, before anything is
 * allocated, where the limit has no room for the tensor; at least one byte is returned.
 */
void *dc_handle_room(lua_State *L, dc_dsl *d, const dc_type *t);
/* Fills an empty handle with a new tensor of this type, from host memory (NULL: zeros). */
void dc_handle_upload(lua_State *L, dc_dsl *d, dc_handle *h, const dc_type *t, const void *from);
/* Fills it with the value of another one, which is no traced one, as it is on this device. */
void dc_handle_copy(lua_State *L, dc_dsl *d, dc_handle *of, dc_rt *to, dc_handle *h);

#endif
