/*
 * Convolutions and pools as users write them: x is [batch, channels, dims...], the last dims are
 * those that a window runs over and lose their names.
 */
#ifndef DC_CORE_BUILD_BUILD_CONV_H
#define DC_CORE_BUILD_BUILD_CONV_H

#include "core/build/build.h"
#include "core/ir/conv.h"

/* Axes of c are those of dc_conv_plain. Short integers are added up as i32, as by matmul. */
dc_status dc_build_conv(dc_job *j, dc_func *f, dc_val x, dc_val kernel, const dc_conv *c,
                        dc_val *out);

/*
 * The gradient of a convolution for its input, as a function of its own: kernel is [channels of x, channels of the
 * result / groups, window], stride is how far elements of x lie apart in the result, lo and hi cut the result, `more`
 * adds positions behind it.
 */
typedef struct dc_conv_back {
    int n;
    int64_t groups;
    int64_t stride[DC_CONV_DIMS], lo[DC_CONV_DIMS], hi[DC_CONV_DIMS], more[DC_CONV_DIMS],
        dilate[DC_CONV_DIMS];
} dc_conv_back;

dc_status dc_build_conv_transpose(dc_job *j, dc_func *f, dc_val x, dc_val kernel,
                                  const dc_conv_back *c, dc_val *out);

typedef struct dc_pool {
    int n; /* dims of the window: the last n of x */
    int64_t window[DC_CONV_DIMS], stride[DC_CONV_DIMS], lo[DC_CONV_DIMS], hi[DC_CONV_DIMS],
        dilate[DC_CONV_DIMS];
    bool count_padding; /* of the mean: zeros around x count as elements */
    bool ceil;       /* a last window may look behind x and its padding, where it begins inside */
    int64_t divisor; /* of the mean: of each sum, instead of how many elements; 0: none */
} dc_pool;

enum { DC_POOL_WINDOW = 256 }; /* elements of a window along an axis, at most */

/*
 * The largest element of each window, NaN if one is. Its gradient goes to the first of them, the last
 * axis fastest. CONV_WINDOW, ARG.
 */
dc_status dc_build_max_pool(dc_job *j, dc_func *f, dc_val x, const dc_pool *p, dc_val *out);
/*
 * Where it is, i32, counted over the axes of the window, as in PyTorch: the first of equal ones, the last NaN. Without
 * gradient. EXTENT: an axis behind the first has a size known at run time.
 */
dc_status dc_build_max_positions(dc_job *j, dc_func *f, dc_val x, const dc_pool *p, dc_val *out);
/* The mean of each window; of integers f32. */
dc_status dc_build_mean_pool(dc_job *j, dc_func *f, dc_val x, const dc_pool *p, dc_val *out);

/* The axes that a window of n dims moves along, the last ones. */
uint32_t dc_window_axes(const dc_type *x, int n);
/*
 * Places of a window over so many elements along an axis of a size known at run time. EXTENT where there may be none.
 */
dc_status dc_window_places(dc_job *j, const dc_type *x, int axis, int64_t window, int64_t margin,
                           int64_t stride, int64_t *out);

#endif
