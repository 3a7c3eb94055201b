/*
 * Memory of a host in tests: counted, and refused when a test wants it. What dc_config.alloc and lua_newstate take; may
 * be asked for by several threads.
 */
#ifndef DC_TESTS_HOSTMEM_H
#define DC_TESTS_HOSTMEM_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hostmem {
    _Atomic size_t bytes;    /* that are given out */
    _Atomic long n, refused; /* blocks asked for that grow; those of them that were refused */
    _Atomic long first, last; /* these are; 0: none. Others may allocate meanwhile */
} hostmem;

void *hostmem_give(void *m, void *block, size_t old_size, size_t new_size);
/* Counts anew: refuses from the first on, alone (and once more: Lua tries again when it has collected) or all. */
void hostmem_refuse(hostmem *m, long first, bool alone);
void hostmem_allow(hostmem *m);

#endif
