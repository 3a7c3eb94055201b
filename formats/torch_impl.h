/* Between torch.c, which knows files, and torch_values.c, which knows what their pickles mean. */
#ifndef DC_FORMATS_TORCH_IMPL_H
#define DC_FORMATS_TORCH_IMPL_H

#include "formats/pickle.h"
#include "formats/tensor_file.h"

/* A type of elements, by PyTorch's name. */
typedef struct dc_torch_dtype {
    const char *name;    /* "float32" */
    const char *storage; /* "FloatStorage"; NULL: it has none of its own */
    dc_dtype dtype;
    const char *packing; /* formats/packing.h, or NULL */
    uint32_t size;
} dc_torch_dtype;

/* Of a tensor that does not lie as its elements follow each other. */
typedef struct dc_torch_strides {
    int64_t stride[DC_MAX_RANK]; /* in elements */
} dc_torch_strides;

typedef struct dc_torch {
    dc_job *job; /* while the file is opened */
    const char *path;
    dc_pickle pickle;
    dc_arena arena; /* of names and the tree */
    DC_VEC(dc_torch_strides) strides;
    dc_file_tensors tensor; /* index: in strides, or UINT32_MAX */
    dc_meta_entries entry;
    const dc_tree *tree;
    /* Where the bytes of a storage lie, and how many there are; FORMAT where there is none. */
    dc_status (*find)(void *ctx, const char *key, int64_t *at, int64_t *bytes);
    void *ctx;
} dc_torch;

bool dc_torch_known(const char *global);           /* a dc_pickle_known */
int64_t dc_torch_storage_size(const char *global); /* of its elements; 0: it is no storage */

/* The tensors, the other values and the tree of what a pickle says. */
dc_status dc_torch_values(dc_torch *t, dc_pickle_ref root);

#endif
