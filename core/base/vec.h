/*
 * Typed growable arrays: DC_VEC(int) v = {0}; DC_PUSH(v, 3); v.at[0]; v.n; DC_VEC_FREE(v).
 * On the heap by default; DC_PUSH_IN grows in an arena (the old copy stays there until rewound).
 * Never keep a pointer to an element across a push; keep the index.
 */
#ifndef DC_CORE_BASE_VEC_H
#define DC_CORE_BASE_VEC_H

#include "core/base/arena.h"

#define DC_VEC(type)     \
    struct {             \
        type *at;        \
        uint32_t n, cap; \
    }

/* Room for one more: the next push cannot fail. For arrays that have to grow together. */
#define DC_ROOM(v)                                                                 \
    do {                                                                           \
        if ((v).n == (v).cap)                                                      \
            (v).at = dc_vec_grow((v).at, &(v).cap, sizeof *(v).at);                \
    } while (0)

#define DC_PUSH(v, x)                                                              \
    do {                                                                           \
        DC_ROOM(v);                                                                \
        (v).at[(v).n++] = (x);                                                     \
    } while (0)

#define DC_PUSH_IN(arena, v, x)                                                    \
    do {                                                                           \
        if ((v).n == (v).cap)                                                      \
            (v).at = dc_vec_grow_in((arena), (v).at, &(v).cap, sizeof *(v).at);    \
        (v).at[(v).n++] = (x);                                                     \
    } while (0)

#define DC_VEC_FREE(v)       \
    do {                     \
        dc_xfree((v).at);    \
        (v).at = NULL;       \
        (v).n = (v).cap = 0; \
    } while (0)

void *dc_vec_grow(void *at, uint32_t *cap, size_t size);
void *dc_vec_grow_in(dc_arena *a, void *at, uint32_t *cap, size_t size);

/* Text that grows, for printers. Always terminated; on the heap. */
typedef struct dc_text {
    char *s;
    size_t n, cap;
} dc_text;

void dc_text_printf(dc_text *t, const char *fmt, ...) DC_PRINTF(2, 3);
void dc_text_puts(dc_text *t, const char *s);
void dc_text_put(dc_text *t, const char *s, size_t n); /* n bytes */
void dc_text_free(dc_text *t);

#endif
