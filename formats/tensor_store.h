/* Tensors of files to memory of a device: straight where it is the host's, else by pieces. */
#ifndef DC_FORMATS_TENSOR_STORE_H
#define DC_FORMATS_TENSOR_STORE_H

#include "core/runtime/storage.h"
#include "formats/tensor_file.h"

/* How a tensor is wanted. */
typedef struct dc_tensor_want {
    const dc_file_tensor *tensor;
    dc_dtype dtype; /* dc_tensor_file_read */
    bool packed;    /* its bytes as they lie instead */
    bool turned;    /* a matrix: with its axes the other way round */
} dc_tensor_want;

/* All of n tensors, each to its memory, which is at least as large. What fails may have written a part. */
dc_status dc_tensor_store_read(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *want,
                               dc_storage *const *to, uint32_t n);

#endif
