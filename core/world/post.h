/* Messages under way, in groups that are waited for together. */
#ifndef DC_CORE_WORLD_POST_H
#define DC_CORE_WORLD_POST_H

#include "core/world/world_impl.h"

/*
 * What a message has at most. Up to 64 KiB with its header Open MPI sends the bytes with the message; of a longer one it sends
 * the beginning, and the rest when the other side has answered.
 */
enum { DC_MESSAGE_BYTES = 60 << 10 };

typedef struct dc_message {
    dc_request q;
    int rank;
} dc_message;

/* Room for as many as its owner knows of. */
typedef struct dc_post {
    dc_message *at;
    int n;
} dc_post;

/* In how many messages bytes go. */
static inline size_t dc_post_count(size_t bytes)
{
    return (bytes + DC_MESSAGE_BYTES - 1) / DC_MESSAGE_BYTES;
}

/* In so many messages, of no bytes none. False: the world has failed. */
bool dc_post_send(dc_call *c, dc_post *p, int rank, int tag, const void *bytes, size_t n);
bool dc_post_recv(dc_call *c, dc_post *p, int rank, int tag, void *bytes, size_t n);
/* Takes those that are done off. */
bool dc_post_test(dc_call *c, dc_post *p);
/* Until all are done; the post is empty then. */
bool dc_post_finish(dc_call *c, dc_post *p);
/* Lets go of those that are not done. */
void dc_post_drop(dc_call *c, dc_post *p);

#endif
