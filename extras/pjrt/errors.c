/* Errors and events of the plugin. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extras/pjrt/plugin.h"

/* ---- errors ---------------------------------------------------------------------------------- */

struct PJRT_Error {
    PJRT_Error_Code code;
    const char *message;
};

static PJRT_Error no_memory = {PJRT_Error_Code_RESOURCE_EXHAUSTED, "deepc: no memory is left"};

static PJRT_Error *new_error(PJRT_Error_Code code, const char *text, size_t n)
{
    PJRT_Error *e = malloc(sizeof *e + n + 1);
    if (e == NULL)
        return &no_memory;
    char *copy = (char *)(e + 1);
    memcpy(copy, text, n);
    copy[n] = '\0';
    e->code = code;
    e->message = copy;
    return e;
}

PJRT_Error *dc_pjrt_error(PJRT_Error_Code code, const char *format, ...)
{
    char text[8000];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t length = n < 0 ? 0 : (size_t)n;
    return new_error(code, text, length < sizeof text ? length : sizeof text - 1);
}

PJRT_Error *dc_pjrt_no_memory(void)
{
    return &no_memory;
}

PJRT_Error *dc_pjrt_error_copy(const PJRT_Error *e)
{
    return e == NULL ? NULL : new_error(e->code, e->message, strlen(e->message));
}

void dc_pjrt_error_free(PJRT_Error *e)
{
    if (e != &no_memory)
        free(e);
}

PJRT_Error *dc_pjrt_Error_Destroy(PJRT_Error_Destroy_Args *a)
{
    dc_pjrt_error_free(a->error);
    return NULL;
}

PJRT_Error *dc_pjrt_Error_Message(PJRT_Error_Message_Args *a)
{
    a->message = a->error->message;
    a->message_size = strlen(a->message);
    return NULL;
}

PJRT_Error *dc_pjrt_Error_GetCode(PJRT_Error_GetCode_Args *a)
{
    a->code = a->error->code;
    return NULL;
}

/* ---- events ---------------------------------------------------------------------------------- */

typedef struct waiting {
    PJRT_Event_OnReadyCallback call;
    void *arg;
    struct waiting *next;
} waiting;

struct PJRT_Event {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int users;
    bool ready;
    PJRT_Error *error;
    waiting *first, **last;
};

/* Has a user more than there are, so nobody frees it. */
static PJRT_Event done = {.lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER,
                          .users = 1,
                          .ready = true};

PJRT_Event *dc_pjrt_event_new(void)
{
    PJRT_Event *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    e->users = 1;
    e->last = &e->first;
    return e;
}

PJRT_Event *dc_pjrt_event_retain(PJRT_Event *e)
{
    pthread_mutex_lock(&e->lock);
    e->users++;
    pthread_mutex_unlock(&e->lock);
    return e;
}

void dc_pjrt_event_release(PJRT_Event *e)
{
    if (e == NULL)
        return;
    pthread_mutex_lock(&e->lock);
    const bool last = --e->users == 0;
    pthread_mutex_unlock(&e->lock);
    if (!last)
        return;
    dc_pjrt_error_free(e->error);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->changed);
    free(e);
}

PJRT_Event *dc_pjrt_event_done(void)
{
    return dc_pjrt_event_retain(&done);
}

void dc_pjrt_event_set(PJRT_Event *e, PJRT_Error *error)
{
    pthread_mutex_lock(&e->lock);
    e->error = error;
    e->ready = true;
    waiting *w = e->first;
    e->first = NULL;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
    while (w != NULL) {
        waiting *next = w->next;
        w->call(dc_pjrt_error_copy(error), w->arg);
        free(w);
        w = next;
    }
}

bool dc_pjrt_event_is_ready(PJRT_Event *e)
{
    pthread_mutex_lock(&e->lock);
    const bool ready = e->ready;
    pthread_mutex_unlock(&e->lock);
    return ready;
}

PJRT_Error *dc_pjrt_event_wait(PJRT_Event *e)
{
    pthread_mutex_lock(&e->lock);
    while (!e->ready)
        pthread_cond_wait(&e->changed, &e->lock);
    pthread_mutex_unlock(&e->lock);
    return dc_pjrt_error_copy(e->error); /* nobody writes it any more */
}

bool dc_pjrt_event_when(PJRT_Event *e, PJRT_Event_OnReadyCallback call, void *arg)
{
    waiting *w = malloc(sizeof *w);
    if (w == NULL)
        return false;
    *w = (waiting){call, arg, NULL};
    pthread_mutex_lock(&e->lock);
    const bool ready = e->ready;
    if (!ready) {
        *e->last = w;
        e->last = &w->next;
    }
    pthread_mutex_unlock(&e->lock);
    if (ready) {
        free(w);
        call(dc_pjrt_error_copy(e->error), arg);
    }
    return true;
}

PJRT_Error *dc_pjrt_Event_Destroy(PJRT_Event_Destroy_Args *a)
{
    dc_pjrt_event_release(a->event);
    return NULL;
}

PJRT_Error *dc_pjrt_Event_IsReady(PJRT_Event_IsReady_Args *a)
{
    a->is_ready = dc_pjrt_event_is_ready(a->event);
    return NULL;
}

PJRT_Error *dc_pjrt_Event_Error(PJRT_Event_Error_Args *a)
{
    return dc_pjrt_event_wait(a->event);
}

PJRT_Error *dc_pjrt_Event_Await(PJRT_Event_Await_Args *a)
{
    return dc_pjrt_event_wait(a->event);
}

PJRT_Error *dc_pjrt_Event_OnReady(PJRT_Event_OnReady_Args *a)
{
    return dc_pjrt_event_when(a->event, a->callback, a->user_arg) ? NULL : &no_memory;
}
