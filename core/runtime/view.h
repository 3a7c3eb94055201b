/*
 * Strided views: where the elements of a tensor of these sizes stand in memory that is dense. Movement
 * of whole axes, parts and most reshapes of a view are views, so nothing has to be copied for them.
 */
#ifndef DC_CORE_RUNTIME_VIEW_H
#define DC_CORE_RUNTIME_VIEW_H

#include "core/base/type.h"
#include "core/ir/op.h"

typedef struct dc_view { /* all counted in elements */
    int rank;
    bool cut; /* elements have been left out: one of many parts, perhaps */
    int64_t at;
    int64_t dim[DC_MAX_RANK], stride[DC_MAX_RANK]; /* 0: repeated; negative: backwards */
} dc_view;

dc_view dc_view_whole(const dc_type *t);
/* The movement `op` with these attributes and a result of this type. False, v as it was: no view. */
bool dc_view_move(dc_view *v, dc_op op, const int64_t *attr, const dc_type *to);
int64_t dc_view_count(const dc_view *v);
/* Row-major without gaps, from `at` on. */
bool dc_view_is_dense(const dc_view *v);
bool dc_view_same(const dc_view *a, const dc_view *b);
/* Where element i stands in row-major order, and how many elements stand one behind the other from there. */
int64_t dc_view_find(const dc_view *v, int64_t i, int64_t *run);
/* The n elements from number `first` on, of `size` bytes each, in row-major order; mem is the view's. */
void dc_view_read(const dc_view *v, size_t size, const void *mem, int64_t first, int64_t n,
                  void *to);

#endif
