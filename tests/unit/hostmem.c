#include "tests/unit/hostmem.h"

#include <stdlib.h>

void *hostmem_give(void *ctx, void *block, size_t old_size, size_t new_size)
{
    hostmem *m = ctx;
    old_size = block != NULL ? old_size : 0; /* else it is a kind of object of Lua's */
    if (new_size == 0) {
        free(block);
        m->bytes -= old_size;
        return NULL;
    }
    const long n = new_size > old_size ? ++m->n : 0; /* what shrinks, Lua takes for granted */
    if (n > 0 && n >= m->first && n <= m->last) {
        m->refused++;
        return NULL;
    }
    void *p = realloc(block, new_size);
    if (p != NULL)
        m->bytes += new_size - old_size;
    return p;
}

void hostmem_refuse(hostmem *m, long first, bool alone)
{
    m->n = 0;
    m->first = first;
    m->last = alone ? first + 1 : 1L << 60;
}

void hostmem_allow(hostmem *m)
{
    m->first = m->last = 0;
}
