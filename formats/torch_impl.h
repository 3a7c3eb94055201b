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
    bool quantized; /* its numbers mean nothing without scales: not read */
} dc_torch_dtype;

/* Of a tensor that does not lie as its elements follow each other and are meant. */
typedef struct dc_torch_form {
    int64_t stride[DC_MAX_RANK]; /* in elements */
    bool expanded;               /* more elements than its storage has */
    bool conj, neg;              /* conjugates are meant, the negative of what lies there */
    uint32_t swap;   /* the bytes of so many in a row are in the other order; 0: of none */
    uint32_t packed; /* its storage is deflated: the number that find gave; else 0 */
} dc_torch_form;

typedef struct dc_torch {
    dc_job *job; /* while the file is opened */
    const char *path;
    dc_pickle pickle;
    dc_arena arena; /* of names and the tree */
    DC_VEC(dc_torch_form) form;
    dc_file_tensors tensor;    /* index: in form, or UINT32_MAX */
    DC_VEC(dc_tree *) tree_of; /* each tensor's */
    dc_meta_entries entry;
    DC_VEC(const char *) note; /* sentences about what is left out */
    const dc_tree *tree;
    bool big; /* numbers of storages have their highest byte first */
    /*
     * Where the bytes of a storage lie, and how many there are; FORMAT where there is none. Of one that is deflated *packed
     * is its number, and it begins at 0.
     */
    dc_status (*find)(void *ctx, const char *key, int64_t *at, int64_t *bytes, uint32_t *packed);
    void *ctx;
} dc_torch;

/* ---- torch_types.c: globals, as "torch float32" ---- */

/* A function that makes tensors which are left out, what `deepc inspect` calls these, and why. */
typedef struct dc_torch_unread {
    const char *global, *format, *why;
} dc_torch_unread;

bool dc_torch_known(const char *global);           /* a dc_pickle_known */
int64_t dc_torch_storage_size(const char *global); /* of its elements; 0: it is no storage */
/* Or NULL. */
const dc_torch_dtype *dc_torch_dtype_of(const char *global);
const dc_torch_dtype *dc_torch_storage_of(const char *global);
const dc_torch_unread *dc_torch_find_unread(const char *global);
bool dc_torch_is_unread(const char *global); /* a type of elements that are not read */

/* ---- torch_values.c ---- */

/*
 * The tensors, the other values and the tree of what a pickle says. What has no meaning here - a complex number, a sparse
 * tensor, a key that is a tuple - is left out, which a note tells.
 */
dc_status dc_torch_values(dc_torch *t, dc_pickle_ref root);

#endif
