/* Tensors of files to memory of a device: straight where it is the host's, else by pieces. */
#ifndef DC_FORMATS_TENSOR_STORE_H
#define DC_FORMATS_TENSOR_STORE_H

#include "core/runtime/storage.h"
#include "formats/box.h"
#include "formats/tensor_file.h"

typedef enum dc_tensor_form {
    DC_FORM_PLAIN,  /* elements of the wanted dtype (dc_tensor_file_read) */
    DC_FORM_PACKED, /* bytes, as they lie */
    DC_FORM_CODES, /* the same of floats of 8 bits that kernels multiply, which have to be no NaN of f8_e4m3 */
    DC_FORM_TURNED, /* a matrix with its axes the other way round */
    DC_FORM_WORDS,  /* of a packed matrix, laid out as kernels multiply it (formats/blocks.h) */
    DC_FORM_SCALES, /* stands behind the WORDS of the same tensor */
    DC_FORM_MINS    /* and behind its SCALES, where its blocks have mins */
} dc_tensor_form;

/* How a tensor is wanted. */
typedef struct dc_tensor_want {
    const dc_file_tensor *tensor;
    dc_dtype dtype; /* of PLAIN and TURNED */
    dc_tensor_form form;
    bool boxed; /* PLAIN, CODES, TURNED: a part of it alone, */
    dc_box box; /* whose axes are those of the file */
} dc_tensor_want;

/* Is it a matrix that can be laid out? The type of its words, scales or mins. */
bool dc_tensor_laid_type(const dc_file_tensor *t, dc_tensor_form form, dc_type *out);

/* Have all WORDS of a list what stands behind them, and no others stand anywhere? */
bool dc_tensor_together(const dc_tensor_want *want, uint32_t n);

/* Called once, before the first byte is written: what fails until then has changed nothing. */
typedef struct dc_tensor_begin {
    void (*call)(void *arg, dc_job *j); /* NULL: nothing */
    void *arg;
} dc_tensor_begin;

/*
 * All of n tensors, each to its memory, which is at least as large. Several threads read what is long. What fails may have
 * written a part.
 */
dc_status dc_tensor_store_read(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *want,
                               dc_storage *const *to, uint32_t n, dc_tensor_begin begin);

#endif
