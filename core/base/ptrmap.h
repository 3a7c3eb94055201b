/* A hash map from addresses to numbers: the index of an entry in a list. */
#ifndef DC_CORE_BASE_PTRMAP_H
#define DC_CORE_BASE_PTRMAP_H

#include "core/base/heap.h"

typedef struct dc_ptrmap {
    struct dc_ptrmap_slot *slot;
    uint32_t n, size; /* slots taken; all of them, a power of two */
} dc_ptrmap;

bool dc_ptrmap_find(const dc_ptrmap *m, const void *key, uint32_t *value);
/* key is not there yet, and not NULL. May unwind, then nothing has changed. */
void dc_ptrmap_add(dc_ptrmap *m, const void *key, uint32_t value);
void dc_ptrmap_free(dc_ptrmap *m);

#endif
