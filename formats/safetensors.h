/*
 * Safetensors files: tensors by name, and texts by key.
 *
 * A file is: the length of the header (8 bytes, little-endian), the header (JSON), the data
 * (https://github.com/huggingface/safetensors, "Format"). The header has for each name
 * {"dtype", "shape", "data_offsets": [begin, end]}, and may have "__metadata__", a table of texts.
 *
 * Files are not trusted: dc_safetensors_open accepts a header only if every byte of the data belongs to
 * exactly one tensor and every tensor has as many bytes as its dtype and shape say. One of an unknown
 * dtype is in the list and cannot be read. Data may begin at any address; it is copied, never pointed into.
 */
#ifndef DC_FORMATS_SAFETENSORS_H
#define DC_FORMATS_SAFETENSORS_H

#include "core/base/job.h"

typedef struct dc_st_tensor {
    const char *name;
    dc_type type;
    /* Its dtype in the file where that is none of ours, else NULL: type is none, or of floats of 8 bits u8 with their sizes. */
    const char *unread;
    const char *why;   /* it is left out for another reason than its dtype; or NULL */
    int64_t at, bytes; /* its place in the file */
} dc_st_tensor;

typedef struct dc_st_text {
    const char *key, *value;
} dc_st_text;

typedef struct dc_st_file dc_st_file;

/* Names of dtypes there: "F32". Those of this table are the ones that are read and written. */
const char *dc_safetensors_dtype(dc_dtype t);

/* Of floats of 8 bits, which are none of ours: what formats/packing.h calls them; NULL: it is another dtype. */
const char *dc_safetensors_packing(const char *dtype);

/* ---- reading --------------------------------------------------------------------------------- */

/*
 * The header of a file, checked. FILE: it cannot be read; FORMAT: it is not exactly a safetensors
 * file. Nothing is allocated that the file is too short for.
 */
dc_status dc_safetensors_open(dc_job *j, const char *path, dc_st_file **out);
void dc_safetensors_close(dc_st_file *f); /* NULL is fine */
void dc_safetensors_defer(dc_job *j, dc_st_file *f);

/* Both sorted by name, byte by byte; they live as long as f. */
const dc_st_tensor *dc_safetensors_tensors(const dc_st_file *f, uint32_t *n);
const dc_st_text *dc_safetensors_texts(const dc_st_file *f, uint32_t *n);
const dc_st_tensor *dc_safetensors_find(const dc_st_file *f, const char *name); /* or NULL */
const char *dc_safetensors_text(const dc_st_file *f, const char *key);          /* or NULL */

/* FORMAT where the tensor has a dtype that is not read; to be called before its value is read. */
dc_status dc_safetensors_readable(const dc_st_file *f, dc_job *j, const dc_st_tensor *t);
/* n bytes of a tensor, from one of them on. FORMAT where the file has become shorter. */
dc_status dc_safetensors_read(const dc_st_file *f, dc_job *j, const dc_st_tensor *t, size_t from,
                              size_t n, void *to);
/* FORMAT if the file has been written to since it was opened. */
dc_status dc_safetensors_unchanged(const dc_st_file *f, dc_job *j);

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct dc_st_item {
    const char *name; /* not "__metadata__"; each once */
    dc_type type;     /* names of dims are not written */
    const char *as;   /* of u8, what the file calls their dtype: "F8_E4M3"; NULL: U8 */
} dc_st_item;

/*
 * Gives *bytes, n bytes of item `item` from one of them on, valid until it is asked again.
 */
typedef dc_status dc_st_fetch(dc_job *j, void *ctx, uint32_t item, size_t from, size_t n,
                              const void **bytes);

enum { DC_ST_PIECE = 1 << 22 }; /* n of a dc_st_fetch is no more */

/*
 * Writes a file whole or not at all (core/base/outfile.h). Equal items and texts give equal bytes, in
 * whatever order they come: texts are sorted by key, items by size of their elements, large ones
 * first, then by name; data begins at a multiple of 64 and every item at a multiple of its elements.
 * ARG where names or texts are not UTF-8 or occur twice, or are too long together.
 */
dc_status dc_safetensors_write(dc_job *j, const char *path, const dc_st_item *item,
                               uint32_t ncommand, const dc_st_text *text, uint32_t ntext,
                               dc_st_fetch *fetch, void *ctx);

/* The same but for the commit, which is the caller's. */
struct dc_outfile;
dc_status dc_safetensors_begin(dc_job *j, const char *path, const dc_st_item *item,
                               uint32_t ncommand, const dc_st_text *text, uint32_t ntext,
                               dc_st_fetch *fetch, void *ctx, struct dc_outfile **out);

#endif
