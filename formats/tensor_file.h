/*
 * Files of tensors, whatever their format: tensors by name and metadata by key. The format is told by the content.
 *
 * A file is a list of tensors, each with the type of its values, how its elements lie (as they are, or packed), and its
 * place; and typed metadata. Elements are read by several threads, in pieces, straight to where they are wanted, and
 * converted on the way.
 *
 *   formats/safetensors.c   safetensors
 *   formats/shards.c        several of them with an index
 *   formats/gguf.c          GGUF
 *   formats/torch.c         what torch.save of PyTorch writes
 *   formats/npyfile.c       arrays of NumPy
 *
 * Files are not trusted: what has been opened lies in the file, whole; a tensor of a type that is not known is in the list
 * and cannot be read.
 */
#ifndef DC_FORMATS_TENSOR_FILE_H
#define DC_FORMATS_TENSOR_FILE_H

#include "core/base/job.h"
#include "core/base/shown.h"
#include "formats/packing.h"

typedef struct dc_tensor_file dc_tensor_file;

typedef struct dc_file_tensor {
    const char *name;
    const char *format; /* the file's own name of its type: "F32", "Q4_1" */
    dc_type
        type; /* of its values: f32 where they are packed; of unread ones the sizes, where known */
    const dc_packing *packing; /* how they lie; NULL: as they are */
    bool unread;               /* its type is none that is read, or: */
    const char *why;           /* it is left out, a part of a sentence: "it is sparse"; or NULL */
    bool whole;                /* its elements are scattered: best read at once */
    bool asks;      /* it is read only where a conversion was asked for: floats of 8 bits */
    int64_t bytes;  /* in the file; -1: not known */
    int64_t at;     /* where; of the format's reader */
    uint32_t index; /* of the format's reader */
    uint32_t parts; /* in so many parts, which files of a set hold; 0: as one */
} dc_file_tensor;

/* ---- metadata ---- */

typedef enum dc_meta_kind {
    DC_META_U8, /* in the order of GGUF's numbers */
    DC_META_I8,
    DC_META_U16,
    DC_META_I16,
    DC_META_U32,
    DC_META_I32,
    DC_META_F32,
    DC_META_BOOL,
    DC_META_TEXT,
    DC_META_LIST,
    DC_META_U64,
    DC_META_I64,
    DC_META_F64,
    DC_META__COUNT
} dc_meta_kind;

const char *dc_meta_kind_name(dc_meta_kind k); /* "u8", "text" */

/* A value, which points into the file's memory. */
typedef struct dc_meta {
    dc_meta_kind kind;
    union {
        int64_t i; /* signed integers, BOOL */
        uint64_t u;
        double f;
    };
    const char *text;        /* TEXT: bytes, any, n of them */
    uint64_t n;              /* LIST: how many there are */
    dc_meta_kind of;         /* LIST */
    const unsigned char *at; /* LIST: the first, as the file has it */
} dc_meta;

typedef struct dc_meta_entry {
    const char *key;
    dc_meta value;
} dc_meta_entry;

/* The first of the list that is left, which becomes shorter; there is one. A list of lists is at most 4 deep. */
dc_meta dc_meta_next(dc_meta *list);

/* ---- values in tables ---- */

typedef enum dc_tree_kind {
    DC_TREE_NONE,
    DC_TREE_VALUE,
    DC_TREE_LIST,
    DC_TREE_TABLE,
    DC_TREE_TENSOR
} dc_tree_kind;

/* What formats that have tables in tables say. Parts may be shared; there are no cycles. */
typedef struct dc_tree {
    dc_tree_kind kind;
    dc_meta value;    /* VALUE */
    const char *name; /* TENSOR: in the list of tensors */
    uint32_t n;       /* LIST, TABLE */
    dc_meta *key;     /* texts and whole numbers; of a LIST 1 to n */
    struct dc_tree **item;
} dc_tree;

/* ---- files ---- */

/* FILE: it cannot be read; FORMAT: it is not exactly what its format says. */
dc_status dc_tensor_file_open(dc_job *j, const char *path, dc_tensor_file **out);
void dc_tensor_file_close(dc_tensor_file *f); /* NULL is fine */
void dc_tensor_file_defer(dc_job *j, dc_tensor_file *f);

const char *dc_tensor_file_format(const dc_tensor_file *f); /* "safetensors" */
/* Sorted by name, byte by byte; metadata by key. Each once. They live as long as f. */
const dc_file_tensor *dc_tensor_file_list(const dc_tensor_file *f, uint32_t *n);
const dc_file_tensor *dc_tensor_file_find(const dc_tensor_file *f, const char *name); /* or NULL */
const dc_meta_entry *dc_tensor_file_metadata(const dc_tensor_file *f, uint32_t *n);

/* NULL: the format has no tables in tables. */
const dc_tree *dc_tensor_file_tree(const dc_tensor_file *f);

/* Sentences about what of the file was left out or changed, besides tensors. */
const char *const *dc_tensor_file_notes(const dc_tensor_file *f, uint32_t *n);

/* FORMAT where the tensor has a type that is not read. */
dc_status dc_tensor_file_readable(const dc_tensor_file *f, dc_job *j, const dc_file_tensor *t);

/*
 * Elements `from` to from + n - 1 as `dtype`: the tensor's own or, of floats, another one. Both numbers are multiples
 * of a block's elements.
 */
typedef struct dc_file_read {
    const dc_file_tensor *tensor;
    size_t from, n;
    dc_dtype dtype;
    void *to;
} dc_file_read;

/* Several threads read what is long, or many. What fails may have written a part. */
dc_status dc_tensor_file_read(const dc_tensor_file *f, dc_job *j, const dc_file_read *read,
                              uint32_t n);
/* Bytes as they lie. FORMAT where the file has become shorter. */
dc_status dc_tensor_file_bytes(const dc_tensor_file *f, dc_job *j, const dc_file_tensor *t,
                               size_t from, size_t n, void *to);
/* FORMAT where n of its bytes that have been read, from one of them on, are NaN of f8_e4m3, which kernels take for 480. */
dc_status dc_tensor_file_numbers(const dc_tensor_file *f, dc_job *j, const dc_file_tensor *t,
                                 size_t from, size_t n, const unsigned char *codes);
/* FORMAT if the file has been written to since it was opened. */
dc_status dc_tensor_file_unchanged(const dc_tensor_file *f, dc_job *j);

/* ---- for the readers of formats ---- */

typedef DC_VEC(dc_file_tensor) dc_file_tensors;
typedef DC_VEC(dc_meta_entry) dc_meta_entries;

typedef struct dc_tensor_file_ops {
    const char *format;
    void (*close)(void *file);
    /* Any thread calls it. */
    dc_status (*read)(const void *file, dc_job *j, const dc_file_tensor *t, size_t from, size_t n,
                      void *to);
    dc_status (*unchanged)(const void *file, dc_job *j);
    const dc_tree *(*tree)(const void *file);                   /* NULL: the format has none */
    const char *const *(*notes)(const void *file, uint32_t *n); /* the same */
} dc_tensor_file_ops;

/* One of several files of a model: no index, no folder. */
dc_status dc_tensor_file_open_part(dc_job *j, const char *path, dc_tensor_file **out);

/* Takes the file, and both lists, which may be in any order. FORMAT where a name or key occurs twice. */
dc_status dc_tensor_file_make(dc_job *j, const char *path, const dc_tensor_file_ops *ops,
                              void *file, dc_file_tensors *tensors, dc_meta_entries *entries,
                              dc_tensor_file **out);

/* Bytes as they lie, on the calling thread. */
dc_status dc_tensor_file_stretch(const dc_tensor_file *f, dc_job *j, const dc_file_tensor *t,
                                 size_t from, size_t n, void *to);

/* Kernels rely on truth values being 0 and 1; files may have any other byte for true. */
void dc_make_bools(unsigned char *b, size_t n);

#endif
