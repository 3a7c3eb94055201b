/* Open addressing; at most half of the slots are taken. */
#include "core/base/ptrmap.h"

#include <string.h>

typedef struct dc_ptrmap_slot {
    const void *key; /* NULL: free */
    uint32_t value;
} slot;

static slot *slot_of(slot *at, uint32_t size, const void *key)
{
    uint64_t h = dc_hash_mix(UINT64_C(0x9e3779b97f4a7c15), (uint64_t)(uintptr_t)key);
    while (at[h & (size - 1)].key != NULL && at[h & (size - 1)].key != key)
        h++;
    return &at[h & (size - 1)];
}

bool dc_ptrmap_find(const dc_ptrmap *m, const void *key, uint32_t *value)
{
    const slot *s = m->size > 0 ? slot_of(m->slot, m->size, key) : NULL;
    if (s == NULL || s->key == NULL)
        return false;
    *value = s->value;
    return true;
}

static void grow(dc_ptrmap *m)
{
    const uint32_t size = m->size > 0 ? 2 * m->size : 16;
    slot *at = dc_xalloc(size * sizeof *at);
    for (uint32_t i = 0; i < m->size; i++)
        if (m->slot[i].key != NULL)
            *slot_of(at, size, m->slot[i].key) = m->slot[i];
    dc_xfree(m->slot);
    m->slot = at;
    m->size = size;
}

void dc_ptrmap_add(dc_ptrmap *m, const void *key, uint32_t value)
{
    if (2 * (m->n + 1) > m->size)
        grow(m);
    slot *s = slot_of(m->slot, m->size, key);
    DC_ASSERT(key != NULL && s->key == NULL, "%p is there twice", (void *)s);
    *s = (slot){key, value};
    m->n++;
}

void dc_ptrmap_free(dc_ptrmap *m)
{
    dc_xfree(m->slot);
    *m = (dc_ptrmap){0};
}
