/*
 * Pieces of memory out of chunks that lie on huge pages: what is too small to ask for huge pages of its own, as the
 * weights of a layer are, and of which there is so much that pages of 4 KB cost time, when they are touched first and
 * whenever their addresses are looked up.
 *
 * A chunk is divided into spans of whole small pages, in use or free, no two free ones side by side. A piece is a span,
 * the first that is large enough. A chunk without pieces is given back, but for one.
 *
 * On one thread at a time.
 */
#ifndef DC_BACKENDS_CPU_HUGE_CHUNKS_H
#define DC_BACKENDS_CPU_HUGE_CHUNKS_H

#include "core/base/vec.h"

enum {
    DC_HUGE_PAGE = 2 << 20,
    DC_CHUNK_BYTES = 16 << 20,
    DC_SPAN_BYTES = 4096,
    DC_SPANS = DC_CHUNK_BYTES / DC_SPAN_BYTES
};

typedef struct dc_chunk {
    char *mem;
    uint32_t largest;       /* no free span has more small pages */
    uint32_t used;          /* small pages */
    int16_t span[DC_SPANS]; /* where a span begins: its small pages, negative while it is free */
} dc_chunk;

typedef struct dc_chunks {
    DC_VEC(dc_chunk *) at;
    dc_chunk *last; /* where a piece was found */
} dc_chunks;

/* At a small page. NULL: there is no memory. bytes is neither 0 nor more than a chunk. */
void *dc_chunks_take(dc_chunks *c, size_t bytes);

/* False: mem is no piece. */
bool dc_chunks_give(dc_chunks *c, void *mem);

/* With all pieces. */
void dc_chunks_free(dc_chunks *c);

#endif
