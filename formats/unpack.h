/*
 * Streams that are packed by bzip2 and LZMA, piece by piece, through libbz2 and liblzma, which are opened when one is met.
 * What is used of bzlib.h and lzma.h is declared in unpack.c.
 */
#ifndef DC_FORMATS_UNPACK_H
#define DC_FORMATS_UNPACK_H

#include "core/base/base.h"

typedef enum dc_unpack_kind { DC_UNPACK_BZIP2, DC_UNPACK_LZMA } dc_unpack_kind;

typedef enum dc_unpacked {
    DC_UNPACKED_SOME,
    DC_UNPACKED_ALL, /* the stream has ended */
    DC_UNPACKED_DAMAGED,
    DC_UNPACKED_MEMORY, /* it wants too much, or there is none */
    DC_UNPACKED_WRONG   /* the library gives numbers that cannot be */
} dc_unpacked;

typedef struct dc_unpack dc_unpack;

/* What it needs, for messages: "bzip2 needs libbz2 (libbz2.so.1.0; ...)"; NULL: it is there. */
const char *dc_unpack_missing(dc_unpack_kind kind);

/* NULL: the library is missing, or has no memory. Of LZMA the stream is that of .lzma files. */
dc_unpack *dc_unpack_open(dc_unpack_kind kind);
void dc_unpack_close(dc_unpack *u); /* NULL is fine */

/* Moves on: *nfrom bytes are left at *from, room for *nto at `to`. */
dc_unpacked dc_unpack_some(dc_unpack *u, const unsigned char **from, size_t *nfrom,
                           unsigned char *to, size_t *nto);

#endif
