/* Writing GGUF, version 3 (formats/gguf_write.c); reading is behind formats/tensor_file.h. */
#ifndef DC_FORMATS_GGUF_H
#define DC_FORMATS_GGUF_H

#include "formats/packing.h"
#include "formats/safetensors.h"

/* The number of a type of tensors there: of a dtype, or of a packing; -1 where the format has none. */
int dc_gguf_number(dc_dtype dtype, const dc_packing *packing);

typedef struct dc_gguf_item {
    const char *name; /* each once */
    dc_type type;
    dc_dtype dtype;            /* in the file: its own, or of floats another one */
    const dc_packing *packing; /* or so, with f32 as dtype; NULL: as they are */
} dc_gguf_item;

/* Metadata as they stand in the file, one behind the other. */
typedef struct dc_gguf_entries {
    uint64_t count;
    const char *bytes;
    size_t n;
} dc_gguf_entries;

enum { DC_GGUF_AXES = 4, DC_GGUF_NAME = 63 }; /* the most that programs take */

/*
 * A file whole or not at all; items in their order by name. ARG where the format has no such type, for too many axes, long
 * names, rows that are no whole blocks, and elements that the type does not hold: NaN and infinities where it is quantised,
 * what is finite and becomes infinite in f16.
 */
dc_status dc_gguf_write(dc_job *j, const char *path, const dc_gguf_item *item, uint32_t n,
                        const dc_gguf_entries *entries, dc_st_fetch *fetch, void *ctx);

#endif
