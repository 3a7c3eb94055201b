/* Files and memory of a device: straight where it is the host's, else by pieces. */
#ifndef DC_FORMATS_STSTORE_H
#define DC_FORMATS_STSTORE_H

#include "core/runtime/storage.h"
#include "formats/gguf.h"

/* All of a tensor; `to` is at least as large. What fails may have written a part. */
dc_status dc_ststore_read(dc_st_file *f, dc_job *j, const dc_st_tensor *t, dc_storage *to);

typedef struct dc_st_memory {
    dc_device *dev;
    const void *at; /* of the device */
} dc_st_memory;

/* Item i is what stands at mem[i]. */
dc_status dc_ststore_write(dc_job *j, const char *path, const dc_st_item *item,
                           const dc_st_memory *mem, uint32_t ncommand, const dc_st_text *text,
                           uint32_t ntext);

/*
 * In files of some `piece` bytes of data each, one tensor at least, and an index, which is `path` and ends with
 * ".safetensors.index.json" (formats/shards.c). All files are written beside their places, then renamed, the index last.
 * Texts are in the index. items and mem are sorted by name on the way.
 */
dc_status dc_ststore_write_pieces(dc_job *j, const char *path, dc_st_item *item, dc_st_memory *mem,
                                  uint32_t ncommand, const dc_st_text *text, uint32_t ntext,
                                  int64_t piece);

/* As GGUF: item i is what stands at mem[i]. */
dc_status dc_ststore_write_gguf(dc_job *j, const char *path, const dc_gguf_item *item,
                                const dc_st_memory *mem, uint32_t n,
                                const dc_gguf_entries *entries);

#endif
