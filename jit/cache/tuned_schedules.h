/*
 * Schedules that were found by timing (jit/tune), by the kernel as it was lowered.
 *
 * A list of entries, the newest first, none of which ever changes: whoever has its first entry has all of it as it was
 * at that time, on any thread. A newer entry of a kernel hides the older ones. The list is one entry of the cache on
 * disk, whose key says the target and the build: other machines, other options and other versions have lists of their
 * own.
 *
 * The fingerprint is a digest of the schedules that the list puts in the place of the rules', in no order. Equal
 * fingerprints: equal kernels, and so equal bits of results.
 */
#ifndef DC_JIT_CACHE_TUNED_SCHEDULES_H
#define DC_JIT_CACHE_TUNED_SCHEDULES_H

#include "jit/cache/disk_cache.h"

#include <string.h>

typedef enum dc_tuned_kind {
    DC_TUNED_NOTHING, /* what was known of the kernel is forgotten */
    DC_TUNED_RULES,   /* no schedule was found to be faster than the rules' */
    DC_TUNED_MOVES
} dc_tuned_kind;

typedef struct dc_tuned {
    const struct dc_tuned *older;
    dc_tuned_kind kind;
    dc_cache_key kernel;
    uint64_t rules_ns, best_ns; /* of a launch, as they were measured side by side */
    const char *const *move;    /* as text */
    uint32_t nmove;
    uint64_t
        fingerprint; /* of the list that this is the newest entry of; 0: it changes no kernel */
} dc_tuned;

/* The digest of a kernel's text as lowered, which has no name in it. */
static inline dc_cache_key dc_tuned_key(const char *nest)
{
    return dc_cache_key_of(nest, strlen(nest));
}

/* What is known of a kernel; NULL: nothing. An empty list is NULL, too. */
const dc_tuned *dc_tuned_find(const dc_tuned *list, dc_cache_key kernel);

/* The list with one entry more, copied into the arena. */
const dc_tuned *dc_tuned_add(dc_arena *mem, const dc_tuned *list, const dc_tuned *entry);

static inline uint64_t dc_tuned_fingerprint(const dc_tuned *list)
{
    return list != NULL ? list->fingerprint : 0;
}

/* Text of what the list says, each kernel once. */
void dc_tuned_print(const dc_tuned *list, dc_text *out);
/* The list of a text, behind `list`; false where it is no such text: nothing is added then. */
bool dc_tuned_parse(dc_arena *mem, const char *text, size_t n, const dc_tuned **list);

/* The lists of a context: the one of now, and where it is kept. */
typedef struct dc_tuned_store {
    dc_arena mem;
    const dc_tuned *newest;
    bool opened, kept; /* kept: on disk, by `key` */
    dc_cache_key key;
} dc_tuned_store;

dc_tuned_store *dc_tuned_store_new(void);
void dc_tuned_store_free(dc_tuned_store *s); /* NULL is fine */
/* Takes up what is on disk. cache NULL: nothing is kept. */
void dc_tuned_store_open(dc_tuned_store *s, dc_cache *cache, dc_job *j, dc_cache_key key);
/* `list`, which s->newest is the end of, is the list of now; on disk with what other processes have added meanwhile. */
void dc_tuned_store_set(dc_tuned_store *s, dc_cache *cache, dc_job *j, const dc_tuned *list);

#endif
