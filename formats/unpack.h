/*
 * Streams that are packed by bzip2 and LZMA, piece by piece, through libbz2 and liblzma, which are opened when one is met.
 * What is used of bzlib.h and lzma.h is declared in unpack.c.
 */
#ifndef DC_FORMATS_UNPACK_H
#define DC_FORMATS_UNPACK_H

#include "formats/flow.h"

typedef enum dc_unpack_kind { DC_UNPACK_BZIP2, DC_UNPACK_LZMA } dc_unpack_kind;

typedef struct dc_unpack dc_unpack;

/* What it needs, for messages: "bzip2 needs libbz2 (libbz2.so.1.0; ...)"; NULL: it is there. */
const char *dc_unpack_missing(dc_unpack_kind kind);

/* NULL: the library is missing, or has no memory. Of LZMA the stream is that of .lzma files. */
dc_unpack *dc_unpack_open(dc_unpack_kind kind);
void dc_unpack_close(dc_unpack *u); /* NULL is fine */

const char *dc_unpack_library(const dc_unpack *u); /* "liblzma.so.5" */

dc_flowed dc_unpack_some(dc_unpack *u, dc_flow *f);

#endif
