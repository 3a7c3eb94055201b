/*
 * Rows of a data set that do not lie in a tensor: read from a file, decoded from many, or of several lengths. They are
 * read by any thread, by several at once.
 */
#ifndef DC_FORMATS_ROWS_H
#define DC_FORMATS_ROWS_H

#include "core/base/job.h"

typedef struct dc_rows {
    dc_type type;          /* of all; where rows differ in length, axis 2 has the largest */
    size_t row;            /* bytes of the longest */
    const int64_t *length; /* of each row along axis 2; NULL: they are alike */
    const int64_t
        *bound; /* lengths that batches are filled up to, in order; none: to their longest row */
    size_t nbound;
    /* Rows from `first` on, `count` of them, each with `length` places where rows differ in length. */
    dc_status (*get)(const struct dc_rows *r, dc_job *j, int64_t first, int64_t count,
                     int64_t length, void *to);
    void (*free)(struct dc_rows *r);
    uint32_t shared; /* owners besides the first */
} dc_rows;

dc_rows *dc_rows_share(dc_rows *r); /* one owner more, each of which frees it */
void dc_rows_free(dc_rows *r);      /* NULL is fine */
/* The length of a batch with these rows; order of NULL: from `first` on. */
int64_t dc_rows_length(const dc_rows *r, const uint32_t *order, int64_t first, int64_t count);

/*
 * Rows along axis 1 of an array in a file: an .npy file, a tensor of a safetensors file by its name, or with a type
 * elements from a byte on. The file stays open; one that has become shorter is a failure of the row that is missing.
 */
dc_status dc_rows_npy(dc_job *j, const char *path, dc_rows **out);
dc_status dc_rows_safetensors(dc_job *j, const char *path, const char *name, dc_rows **out);
dc_status dc_rows_raw(dc_job *j, const char *path, const dc_type *type, int64_t at, dc_rows **out);

/*
 * Rows of several lengths: n of them, one behind the other in `values`, which is copied; `type` is that of all values,
 * whose first axis is as long as all rows together. What a row is short of is filled with `pad`, a pattern of bits.
 */
dc_status dc_rows_ragged(dc_job *j, const dc_type *type, const void *values, const int64_t *length,
                         int64_t n, uint64_t pad, const int64_t *bound, size_t nbound,
                         dc_rows **out);

/*
 * Images of files, decoded when they are asked for, in one form (dc_image_fit): u8[n, height, width, channels]. Height 0:
 * that of the first file, as is the width; channels 0: its channels. Paths are copied.
 */
dc_status dc_rows_images(dc_job *j, const char *const *path, int64_t n, int fit, int64_t height,
                         int64_t width, int channels, dc_rows **out);
/* Sounds of files, f32[n, frames, channels]: cut off, or with silence behind; 0: as many as the first has. All have
 * the rate, 0: that of the first, which *found becomes. */
dc_status dc_rows_sounds(dc_job *j, const char *const *path, int64_t n, int64_t frames,
                         int channels, int rate, dc_rows **out, int *found);
/* Frames of each file of such rows, at most those of a row; false for other rows. */
bool dc_rows_are_sounds(const dc_rows *r);
dc_status dc_rows_sound_lengths(dc_job *j, const dc_rows *r, int64_t *to);

#endif
