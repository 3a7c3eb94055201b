/* Messages of an engine (core/world/post.h). */
#include "core/world/post.h"

static bool send_one(dc_call *c, dc_post *p, int rank, int tag, const char *bytes, size_t n)
{
    dc_engine *e = c->w->engine;
    p->at[p->n].rank = rank;
    if (!e->ops->send(e, rank, tag, bytes, n, &p->at[p->n].q))
        return dc_world_engine_failed(c, "sending");
    p->n++;
    dc_world_count_sent(c->w, tag == DC_TAG_DATA && c->x->about == NULL ? n : 0);
    return true;
}

static bool recv_one(dc_call *c, dc_post *p, int rank, int tag, char *bytes, size_t n)
{
    dc_engine *e = c->w->engine;
    p->at[p->n].rank = rank;
    if (!e->ops->recv(e, rank, tag, bytes, n, &p->at[p->n].q))
        return dc_world_engine_failed(c, "receiving");
    p->n++;
    return true;
}

static size_t message_at(size_t at, size_t n)
{
    return n - at < DC_MESSAGE_BYTES ? n - at : DC_MESSAGE_BYTES;
}

bool dc_post_send(dc_call *c, dc_post *p, int rank, int tag, const void *bytes, size_t n)
{
    for (size_t at = 0; at < n; at += DC_MESSAGE_BYTES)
        if (!send_one(c, p, rank, tag, (const char *)bytes + at, message_at(at, n)))
            return false;
    return true;
}

bool dc_post_recv(dc_call *c, dc_post *p, int rank, int tag, void *bytes, size_t n)
{
    for (size_t at = 0; at < n; at += DC_MESSAGE_BYTES)
        if (!recv_one(c, p, rank, tag, (char *)bytes + at, message_at(at, n)))
            return false;
    return true;
}

bool dc_post_test(dc_call *c, dc_post *p)
{
    dc_engine *e = c->w->engine;
    int left = 0;
    for (int i = 0; i < p->n; i++) {
        bool done = false;
        if (!e->ops->test(e, &p->at[i].q, &done))
            return dc_world_engine_failed(c, "a message");
        if (!done)
            p->at[left++] = p->at[i];
    }
    p->n = left;
    return true;
}

bool dc_post_finish(dc_call *c, dc_post *p)
{
    dc_watch watch = {0};
    while (p->n > 0) {
        const int before = p->n;
        if (!dc_post_test(c, p))
            return false;
        if (p->n < before)
            watch = (dc_watch){0};
        else if (!dc_watch_pause(&watch, c, p->at[0].rank))
            return false;
    }
    return true;
}

void dc_post_drop(dc_call *c, dc_post *p)
{
    dc_engine *e = c->w->engine;
    for (int i = 0; i < p->n; i++)
        e->ops->cancel(e, &p->at[i].q);
    p->n = 0;
}
