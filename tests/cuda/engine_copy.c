/*
 * cp.async: copies from global to shared memory that are done by the wait for their group. Until
 * then the destination holds 0xff and may not be touched; with random orders some are done at once.
 */
#include <stdlib.h>
#include <string.h>

#include "engine_impl.h"

static void do_copy(const async_copy *c)
{
    memcpy(c->to, c->from, c->take);
    memset(c->to + c->take, 0, c->bytes - c->take);
}

void engine_copy_async(void *to, const void *from, unsigned bytes, unsigned take, int line)
{
    fiber *me = engine_me();
    const void *pc = __builtin_return_address(0);
    const async_copy c = {to, from, bytes, take, me->group};
    if ((((uintptr_t)to | (uintptr_t)from) & (bytes - 1)) != 0)
        engine_fail(pc, "line %d: an asynchronous copy is not aligned to %u bytes", line, bytes);
    if (take > bytes)
        engine_fail(pc, "line %d: an asynchronous copy of %u bytes takes %u", line, bytes, take);
    if (!engine_is_shared(to) || engine_is_shared(from))
        engine_fail(pc, "line %d: an asynchronous copy does not go from global to shared memory",
                    line);
    if (me->copies == NULL)
        me->copies = malloc(MOST_COPIES * sizeof *me->copies);
    if (me->ncopy == MOST_COPIES)
        engine_fail(pc, "line %d: %d asynchronous copies are under way", line, MOST_COPIES);
    if (eng.l->checked) {
        if (take > 0)
            engine_access(from, take, 0, pc);
        engine_access(to, bytes, 1, pc);
        engine_flight(to, bytes, true);
    }
    if (eng.random != 0 && engine_coin(2) == 0)
        do_copy(&c);
    else
        memset(to, 0xff, bytes);
    me->copies[me->ncopy++] = c;
}

void engine_copy_commit(void)
{
    engine_me()->group++;
}

/* Waits until at most `left` groups are under way. What is in no group yet stays. */
void engine_copy_wait(int left)
{
    fiber *me = engine_me();
    const void *pc = __builtin_return_address(0);
    int kept = 0;
    for (int i = 0; i < me->ncopy; i++) {
        const async_copy *c = &me->copies[i];
        if (c->group >= me->group - left) {
            me->copies[kept++] = *c;
            continue;
        }
        do_copy(c);
        if (eng.l->checked) {
            engine_flight(c->to, c->bytes, false);
            engine_check(c->to, c->bytes, 1, pc); /* written now: others need a barrier */
        }
    }
    me->ncopy = kept;
}
