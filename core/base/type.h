/*
 * Element types and tensor types, and their one notation: f32[batch=64, 784].
 *
 * Invariants of a dc_type: rank <= DC_MAX_RANK, dims >= 0, the product of the dims times the element
 * size fits int64_t (dc_type_check). Names are interned in the context or are NULL; equal names are
 * equal pointers. Tensors are dense, row-major, without padding.
 */
#ifndef DC_CORE_BASE_TYPE_H
#define DC_CORE_BASE_TYPE_H

#include "core/base/base.h"

typedef enum dc_dtype {
#define DTYPE(id, name, kind, bits, exponent, fraction, finite) DC_##id,
#include "core/base/dtype.def"
    DC_DTYPE__ALL,
    DC_DTYPE__COUNT = DC_C64 /* those that nodes and kernels have */
} dc_dtype;

typedef enum dc_kind {
    DC_KIND_BOOL,
    DC_KIND_UINT,
    DC_KIND_SINT,
    DC_KIND_FLOAT,
    DC_KIND_COMPLEX
} dc_kind;

const char *dc_dtype_name(dc_dtype t);
dc_kind dc_dtype_kind(dc_dtype t);
int dc_dtype_bits(dc_dtype t);
size_t dc_dtype_size(dc_dtype t); /* bytes of one element */
/* Bits of a float behind the point, as stored: 10, 7, 23, 52. Of the others 0. */
int dc_dtype_fraction(dc_dtype t);
int dc_dtype_exponent(dc_dtype t);   /* of its exponent: 5, 8, 8, 11 */
int dc_dtype_bias(dc_dtype t);       /* what is added to it: 15, 127, 127, 1023 */
bool dc_dtype_is_finite(dc_dtype t); /* a float without infinities, and with one NaN */
bool dc_dtype_find(const char *name, size_t n, dc_dtype *out);
/* What the dtype of this name in other libraries is called, "f32" for "float32"; or NULL. */
const char *dc_dtype_elsewhere(const char *s, size_t n);
static inline bool dc_dtype_is_float(dc_dtype t)
{
    return dc_dtype_kind(t) == DC_KIND_FLOAT;
}
static inline bool dc_dtype_is_complex(dc_dtype t)
{
    return t >= DC_C64;
}
/* Of a complex number its parts; others as they are. */
static inline dc_dtype dc_dtype_part(dc_dtype t)
{
    return t == DC_C64 ? DC_F32 : t == DC_C128 ? DC_F64 : t;
}
/* Can gradients flow to it? */
static inline bool dc_dtype_is_smooth(dc_dtype t)
{
    return dc_dtype_is_float(dc_dtype_part(t));
}
/* A float that memory has and nothing computes with: f32 is computed with, and rounded once where it is stored. */
static inline bool dc_dtype_is_short(dc_dtype t)
{
    return dc_dtype_is_float(t) && dc_dtype_bits(t) < 32;
}
/* One of 16 bits, for which machines have instructions. */
static inline bool dc_dtype_is_half(dc_dtype t)
{
    return dc_dtype_is_float(t) && dc_dtype_bits(t) == 16;
}
static inline bool dc_dtype_is_signed(dc_dtype t) /* an integer with a sign */
{
    return dc_dtype_kind(t) == DC_KIND_SINT;
}

typedef struct dc_type {
    uint8_t dtype; /* dc_dtype */
    uint8_t rank;
    int64_t dim[DC_MAX_RANK];
    const char *name[DC_MAX_RANK]; /* interned, or NULL */
} dc_type;

enum { DC_TYPE_TEXT = 256 }; /* room that every printed type fits in (it is cut beyond) */

dc_type dc_type_scalar(dc_dtype t);
dc_type dc_type_make(dc_dtype t, int rank, const int64_t *dim);
/* n of them along a new axis 0, which has no name. There is room for the axis. */
dc_type dc_type_stacked(const dc_type *t, int64_t n);
/* Of complex numbers: their parts along a last axis of 2, as they lie in memory. Other types as they are. */
dc_type dc_type_parts(const dc_type *t);
/* Is there room for the axis of the parts? */
static inline bool dc_type_has_parts(const dc_type *t)
{
    return !dc_dtype_is_complex((dc_dtype)t->dtype) || t->rank < DC_MAX_RANK;
}
/* With the bound for each size that is known at run time (core/base/extent.h). */
dc_type dc_type_bound(const dc_type *t);
int64_t dc_type_count(const dc_type *t); /* elements */
size_t dc_type_bytes(const dc_type *t);
bool dc_type_same(const dc_type *a, const dc_type *b);       /* dtype and dims; names ignored */
bool dc_type_agrees(const dc_type *a, const dc_type *b);     /* the same, and no two names differ */
bool dc_type_same_shape(const dc_type *a, const dc_type *b); /* dims only */
/* Are all of them plain sizes, none a code (core/base/extent.h)? For what comes from files and hosts. */
bool dc_dims_known(int rank, const int64_t *dim);
bool dc_dims_fit(int rank, const int64_t *dim, size_t element); /* may it be addressed? */

/* "f32[batch=64, 784]"; returns what snprintf would. */
int dc_type_print(const dc_type *t, char *out, size_t size);

/* Where element `position` (from 0) is, counted from 1: "4", or "[2, 3]" where there are several axes. */
void dc_type_position(const dc_type *t, int64_t position, char *out, size_t size);
/* "matrix [2, 3]" of as many as t has elements; "the matrix" of one alone. */
void dc_type_matrix(const dc_type *t, int64_t position, char *out, size_t size);

/*
 * Reads one type at *text and moves *text behind it. `intern` gives names their identity (NULL:
 * names are refused). On failure the job holds TYPE_TEXT with the reason. Every dim has a size, or an
 * expression of numbers: 64, batch=64, 2*32. Sizes with names in them: core/signature/signature.h.
 */
struct dc_job;
typedef struct dc_names dc_names;
dc_status dc_type_parse(struct dc_job *j, dc_names *intern, const char **text, dc_type *out);

/* The same where names have sizes: size(ctx, name) gives one, or a negative number. */
typedef int64_t dc_type_size(void *ctx, const char *name, size_t n);
dc_status dc_type_parse_with(struct dc_job *j, dc_names *intern, const char **text,
                             dc_type_size *size, void *ctx, dc_type *out);

/* Interned names; they live as long as the table. */
dc_names *dc_names_new(void);
void dc_names_free(dc_names *n);
const char *dc_name_intern(dc_names *n, const char *s, size_t len);
const char *dc_name_intern_text(dc_names *n, const char *s); /* NULL for NULL */

#endif
