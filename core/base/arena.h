/*
 * Bump allocation. An arena zeroes what it hands out, never frees single objects and holds no
 * resources. Memory it cannot get unwinds to the recovery point (core/base/job.h), so callers need no
 * check; so does a request to end during a long clear. In sanitizer builds the unused and rewound parts are poisoned.
 */
#ifndef DC_CORE_BASE_ARENA_H
#define DC_CORE_BASE_ARENA_H

#include "core/base/heap.h"

typedef struct dc_block dc_block;

typedef struct dc_arena {
    dc_block *top;  /* newest block; older ones are chained behind it */
    size_t used;    /* bytes of `top` in use */
    size_t total;   /* bytes held in all blocks */
} dc_arena;

typedef struct dc_mark {
    dc_block *top;
    size_t used;
} dc_mark;

void *dc_arena_alloc(dc_arena *a, size_t bytes);
char *dc_arena_strdup(dc_arena *a, const char *s);
char *dc_arena_printf(dc_arena *a, const char *fmt, ...) DC_PRINTF(2, 3);
dc_mark dc_arena_mark(const dc_arena *a);
void dc_arena_rewind(dc_arena *a, dc_mark m); /* forgets everything made since the mark */
void dc_arena_free(dc_arena *a);

#define DC_NEW(a, type)         ((type *)dc_arena_alloc((a), sizeof(type)))
#define DC_NEW_ARRAY(a, type, n) ((type *)dc_arena_alloc((a), sizeof(type) * (size_t)(n)))

#endif
