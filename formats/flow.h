/*
 * Streams through libraries that pack or unpack, a step at a time: zlib here, bzip2 and LZMA in unpack.c. After a step a
 * library says how much of its input and of its room is left. These counts are checked, and places are computed from
 * counts of ours.
 */
#ifndef DC_FORMATS_FLOW_H
#define DC_FORMATS_FLOW_H

#include "core/base/base.h"

#include <zlib.h>

typedef enum dc_flowed {
    DC_FLOWED_SOME, /* without input or room nothing may have moved */
    DC_FLOWED_ALL,  /* the stream has ended */
    DC_FLOWED_DAMAGED,
    DC_FLOWED_MEMORY, /* it wants too much, or there is none */
    DC_FLOWED_WRONG   /* the library gives counts that cannot be, or does nothing for ever */
} dc_flowed;

/* What is to be read, and room for what comes out. A step moves both places on. */
typedef struct dc_flow {
    const unsigned char *from;
    size_t nfrom;
    unsigned char *to;
    size_t nto;
} dc_flow;

/* How many of n bytes are given to a library that counts in 32 bits. */
unsigned dc_flow_piece(size_t n);

/* After a step that ended as `how`: what the library says is left. */
dc_flowed dc_flow_moved(dc_flow *f, size_t nfrom, size_t nto, dc_flowed how);

dc_flowed dc_inflate(z_stream *z, dc_flow *f);
dc_flowed dc_deflate(z_stream *z, dc_flow *f, int flush); /* a flush of zlib.h */

#endif
