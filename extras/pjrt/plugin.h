/*
 * What the files of the plugin share.
 *
 * A client has a context, a lua_State, and a thread that runs what was begun and not waited for.
 * `state` is held by whoever uses the context and the lua_State; `queue_lock` guards the list of
 * calls and of values that nobody has any more. Of both, state is taken first. Nothing of the
 * caller's (callbacks) is called under either.
 *
 * A value is a tensor that buffers, calls and copies share; it is there when its event is ready,
 * and does not change after.
 */
#ifndef DC_EXTRAS_PJRT_PLUGIN_H
#define DC_EXTRAS_PJRT_PLUGIN_H

#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>

#include <pthread.h>
#include <stdatomic.h>

#include "extras/pjrt/pjrt.h"

#define FN(name) PJRT_Error *dc_pjrt_##name(PJRT_##name##_Args *a);
#define GAP(name)
#include "extras/pjrt/pjrt.def"

enum { DC_PJRT_RANK = 8 }; /* most axes of a buffer */

/* Sets a text of the arguments of a function and its size; NULL, no error. */
#define TEXT(a, member, text) ((a)->member##_size = strlen((a)->member = (text)), NULL)

/* ---- errors.c -------------------------------------------------------------------------------- */

/* Never NULL; without memory it is one that says so. */
PJRT_Error *dc_pjrt_error(PJRT_Error_Code code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
PJRT_Error *dc_pjrt_error_copy(const PJRT_Error *e);
PJRT_Error *dc_pjrt_no_memory(void);
void dc_pjrt_error_free(PJRT_Error *e);

/* An event that is not ready; NULL without memory. */
PJRT_Event *dc_pjrt_event_new(void);
PJRT_Event *dc_pjrt_event_retain(PJRT_Event *e);
void dc_pjrt_event_release(PJRT_Event *e); /* NULL is fine */
/* One that is ready, without an error; needs no memory. */
PJRT_Event *dc_pjrt_event_done(void);
/* Makes it ready, once, and calls whoever waits; takes the error, which may be NULL. */
void dc_pjrt_event_set(PJRT_Event *e, PJRT_Error *error);
bool dc_pjrt_event_is_ready(PJRT_Event *e);
/* Waits; a copy of its error, or NULL. */
PJRT_Error *dc_pjrt_event_wait(PJRT_Event *e);
/* Calls it with a copy of the error once the event is ready. False: no memory, it is not called. */
bool dc_pjrt_event_when(PJRT_Event *e, PJRT_Event_OnReadyCallback call, void *arg);

/* ---- client.c -------------------------------------------------------------------------------- */

typedef struct dc_pjrt_value {
    atomic_int users;
    PJRT_Client *client;
    PJRT_Event *ready;
    int ref;     /* in Lua's registry, LUA_NOREF: not yet */
    void *block; /* what came from the host, until the context has it */
    const void *at; /* elements once ready; NULL where the host cannot read the device's memory */
    size_t bytes;
    struct dc_pjrt_value *next; /* dropped */
} dc_pjrt_value;

typedef struct dc_pjrt_call dc_pjrt_call;

struct PJRT_DeviceDescription {
    PJRT_Client *client;
    char text[200];
};
struct PJRT_Memory {
    PJRT_Client *client;
};
struct PJRT_Device {
    PJRT_Client *client;
    PJRT_DeviceDescription description;
};

struct PJRT_Client {
    atomic_int users; /* the caller, programs and values */
    dc_rt *ctx;
    lua_State *L;
    int kilobytes;     /* of Lua, when its collector ran last */
    bool reads_memory; /* the host can read what is in the device's memory */
    pthread_mutex_t state, queue_lock;
    pthread_cond_t queued, taken;
    dc_pjrt_call *first, **last;
    int waiting; /* so many calls are in the queue */
    bool busy, closing; /* a call of the queue runs; the thread is to end */
    pthread_t worker;
    dc_pjrt_value *dropped;
    PJRT_Device device, *devices[1];
    PJRT_Memory memory, *memories[1];
    char platform_version[200];
};

PJRT_Client *dc_pjrt_client_retain(PJRT_Client *c);
void dc_pjrt_client_release(PJRT_Client *c);
/*
 * Calls f(L) with arg as a light userdata, protected, where the caller holds `state`. The error of
 * Lua as one of PJRT, or NULL.
 */
PJRT_Error *dc_pjrt_protected(PJRT_Client *c, lua_CFunction f, void *arg);
/* Pushes a function of extras/pjrt/pjrt/host.lua. */
void dc_pjrt_push_host(lua_State *L, const char *name);
/* Takes `state` and closes values that were dropped; leaves it. */
void dc_pjrt_client_enter(PJRT_Client *c);
void dc_pjrt_client_leave(PJRT_Client *c);
/* A value that nobody has any more: whoever enters next closes its tensor and frees it. */
void dc_pjrt_client_drop(PJRT_Client *c, dc_pjrt_value *v);
/*
 * The next call of the queue is this one; the client has its memory. Waits where the queue is
 * full, as each call keeps its arguments; the thread that empties it does not.
 */
void dc_pjrt_client_queue(PJRT_Client *c, dc_pjrt_call *call);
/* Enters if nothing is queued and nobody else is in: a call comes behind all that were begun. */
bool dc_pjrt_client_try(PJRT_Client *c);

/* ---- buffer.c -------------------------------------------------------------------------------- */

/* With one user; NULL without memory. */
dc_pjrt_value *dc_pjrt_value_new(PJRT_Client *c, size_t bytes, PJRT_Event *ready);
dc_pjrt_value *dc_pjrt_value_retain(dc_pjrt_value *v);
void dc_pjrt_value_release(dc_pjrt_value *v); /* NULL is fine */

/* What an array is; sizes are below 2^62 bytes. */
typedef struct dc_pjrt_shape {
    PJRT_Buffer_Type type;
    int rank;
    int64_t dim[DC_PJRT_RANK];
    size_t bytes;
} dc_pjrt_shape;

struct PJRT_Buffer {
    dc_pjrt_shape shape;
    dc_pjrt_value *value; /* NULL: deleted; under queue_lock, as another thread may delete it */
    PJRT_Client *client;
    atomic_int users; /* who holds a pointer to the elements, the buffer itself too */
};

/* Takes the value. NULL without memory: the value is released. */
PJRT_Buffer *dc_pjrt_buffer_new(const dc_pjrt_shape *shape, dc_pjrt_value *v);
/* Its value, with one user more; NULL where it was deleted. */
dc_pjrt_value *dc_pjrt_buffer_value(const PJRT_Buffer *b);
/* False where the size is beyond what there can be. */
bool dc_pjrt_shape_measure(dc_pjrt_shape *s);
/* How deepc has it: complex numbers as an axis of two behind the others. False: no such type. */
bool dc_pjrt_shape_array(const dc_pjrt_shape *s, dc_array *out);
/* "f32", as deepc calls it; NULL: it has no such type. */
const char *dc_pjrt_type_name(PJRT_Buffer_Type t);
PJRT_Buffer_Type dc_pjrt_type_of(const char *name);

/* ---- program.c ------------------------------------------------------------------------------- */

/* Runs a call where the caller is in the client, tells its events, and frees it. */
void dc_pjrt_call_run(dc_pjrt_call *call);
dc_pjrt_call **dc_pjrt_call_next(dc_pjrt_call *call);

#endif
