/* Streams, events and launches as entries (standin_stream.c runs what they ask for). */
#include <stdlib.h>

#include "standin.h"

EXPORT CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    ENTER_CONTEXT;
    if (flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUstream)(void *)new_stream(ctx->device, (flags & CU_STREAM_NON_BLOCKING) == 0, CALLER);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority)
{
    (void)priority;
    return cuStreamCreate(out, flags);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream x)
{
    stream *s = (stream *)(void *)x;
    ENTER_CONTEXT;
    WANT(s, STREAM);
    const CUresult e = drain(s);
    end_stream(s);
    return e;
}

EXPORT CUresult cuStreamGetCtx(CUstream x, CUcontext *out)
{
    ENTER_CONTEXT;
    const stream *s = stream_of(x, ctx->device);
    WANT(s, STREAM);
    *out = (CUcontext)(void *)device[s->h.device].primary;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream x)
{
    ENTER_CONTEXT;
    stream *s = stream_of(x, ctx->device);
    WANT(s, STREAM);
    TRY(drain(s));
    pools_settle(ctx->device);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamQuery(CUstream x)
{
    ENTER_CONTEXT;
    stream *s = stream_of(x, ctx->device);
    WANT(s, STREAM);
    if (s->first == NULL)
        return CUDA_SUCCESS;
    if (coin(2) == 0)
        run_first(s);
    TRY(device[ctx->device].dead);
    return CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuStreamWaitEvent(CUstream x, CUevent y, unsigned flags)
{
    event *e = (event *)(void *)y;
    ENTER_CONTEXT;
    stream *s = stream_of(x, ctx->device);
    WANT(e, EVENT);
    WANT(s, STREAM);
    if (flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    return push(s, &(command){.op = WAIT, .e = e, .generation = e->asked});
}

EXPORT CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    ENTER_CONTEXT;
    if (flags > 3)
        return CUDA_ERROR_INVALID_VALUE;
    event *e = new_handle(EVENT, sizeof *e, ctx->device, CALLER);
    e->timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    *out = (CUevent)(void *)e;
    return CUDA_SUCCESS;
}

/* Runs the stream as far as the event asks for. */
static CUresult wait_event(event *e)
{
    while (e->done < e->asked && e->s != NULL && run_first(e->s)) {
    }
    return device[e->h.device].dead;
}

EXPORT CUresult cuEventDestroy_v2(CUevent x)
{
    event *e = (event *)(void *)x;
    ENTER_CONTEXT;
    WANT(e, EVENT);
    const CUresult result = wait_event(e);
    e->h.alive = false;
    return result;
}

EXPORT CUresult cuEventRecord(CUevent x, CUstream y)
{
    event *e = (event *)(void *)x;
    ENTER_CONTEXT;
    stream *s = stream_of(y, ctx->device);
    WANT(e, EVENT);
    WANT(s, STREAM);
    if (e->h.device != s->h.device)
        return misuse(__func__, "an event of device %d in a stream of %d", e->h.device,
                      s->h.device);
    e->s = s;
    return push(s, &(command){.op = RECORD, .e = e, .generation = ++e->asked});
}

EXPORT CUresult cuEventSynchronize(CUevent x)
{
    event *e = (event *)(void *)x;
    ENTER_CONTEXT;
    WANT(e, EVENT);
    TRY(wait_event(e));
    pools_settle(ctx->device);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventQuery(CUevent x)
{
    event *e = (event *)(void *)x;
    ENTER_CONTEXT;
    WANT(e, EVENT);
    if (e->done >= e->asked)
        return CUDA_SUCCESS;
    if (e->s != NULL && coin(2) == 0)
        run_first(e->s);
    TRY(device[ctx->device].dead);
    return CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent x, CUevent y)
{
    const event *a = (const event *)(const void *)x, *b = (const event *)(const void *)y;
    ENTER_CONTEXT;
    WANT(a, EVENT);
    WANT(b, EVENT);
    if (!a->timing || !b->timing || a->asked == 0 || b->asked == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (a->done < a->asked || b->done < b->asked)
        return CUDA_ERROR_NOT_READY;
    *ms = (float)(b->at - a->at);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime_v2(float *ms, CUevent a, CUevent b)
{
    return cuEventElapsedTime(ms, a, b);
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned dynamic, CUstream x,
                               void **argument, void **extra)
{
    command c;
    ENTER_CONTEXT;
    stream *s = stream_of(x, ctx->device);
    WANT(s, STREAM);
    if (extra != NULL)
        return misuse(__func__, "the stand-in does not know `extra`");
    TRY(make_launch(__func__, f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, dynamic,
                    argument, &c));
    if (c.f->h.device != s->h.device) {
        free(c.value);
        return misuse(__func__, "a kernel of device %d in a stream of %d", c.f->h.device,
                      s->h.device);
    }
    return push(s, &c);
}

EXPORT CUresult cuLaunchHostFunc(CUstream x, CUhostFn fn, void *data)
{
    ENTER_CONTEXT;
    stream *s = stream_of(x, ctx->device);
    WANT(s, STREAM);
    return push(s, &(command){.op = CALL, .fn = fn, .data = data});
}
