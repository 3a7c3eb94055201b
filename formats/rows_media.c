/* Rows that are decoded: a file for each. */
#define _POSIX_C_SOURCE 200809L
#include "core/base/path.h"
#include "formats/image.h"
#include "formats/rows.h"
#include "formats/sound.h"

#include <inttypes.h>
#include <string.h>

typedef struct media {
    dc_rows rows;
    char **path;
    dc_jpeg_lib *jpeg; /* NULL: it is not there; a JPEG file says so */
    dc_fit fit;
    int64_t height, width, frames;
    int channels, rate;
} media;

static void free_media(dc_rows *r)
{
    media *m = (media *)r;
    for (int64_t i = 0; m->path != NULL && i < r->type.dim[0]; i++)
        dc_xfree(m->path[i]);
    dc_xfree(m->path);
    dc_jpeg_close(m->jpeg);
    dc_xfree(m);
}

static void defer_free(void *r)
{
    dc_rows_free(r);
}

/* With copies of the paths; the entry frees it unless that keeps it. */
static media *new_media(dc_job *j, const char *const *path, int64_t n)
{
    media *m = dc_xalloc(sizeof *m);
    m->rows.free = free_media;
    dc_job_defer(j, defer_free, &m->rows);
    m->path = dc_xalloc(((size_t)n + 1) * sizeof *m->path);
    for (int64_t i = 0; i < n; i++) {
        m->path[i] = dc_xalloc(strlen(path[i]) + 1);
        memcpy(m->path[i], path[i], strlen(path[i]));
        m->rows.type.dim[0] = i + 1;
    }
    return m;
}

static dc_status finish(dc_job *j, media *m, dc_dtype dtype, int rank, const int64_t *dim,
                        dc_rows **out)
{
    if (!dc_dims_known(rank, dim) || !dc_dims_fit(rank, dim, dc_dtype_size(dtype)))
        return dc_failf(j, DC_ERR_ARG, NULL, "all of them are too large to address");
    m->rows.type = dc_type_make(dtype, rank, dim);
    m->rows.row = dc_dtype_size(dtype);
    for (int i = 1; i < rank; i++)
        m->rows.row *= (size_t)dim[i];
    dc_job_keep(j, &m->rows);
    *out = &m->rows;
    return DC_OK;
}

/* ---- images ----------------------------------------------------------------------------------- */

static dc_status get_image(const media *m, dc_job *j, const char *path, unsigned char *to)
{
    dc_image image;
    DC_TRY(dc_image_read(j, path, m->jpeg, &image));
    dc_job_defer(j, dc_xfree, image.pixel);
    const dc_status status =
        dc_image_fit(j, path, &image, m->fit, m->height, m->width, m->channels, to);
    dc_job_keep(j, image.pixel);
    dc_xfree(image.pixel);
    return status;
}

static dc_status get_images(const dc_rows *r, dc_job *j, int64_t first, int64_t count,
                            int64_t length, void *to)
{
    const media *m = (const media *)r;
    DC_UNUSED(length);
    for (int64_t i = 0; i < count; i++) {
        DC_TRY(dc_job_ended(j));
        DC_TRY(get_image(m, j, m->path[first + i], (unsigned char *)to + (size_t)i * r->row));
    }
    return DC_OK;
}

/* What the first file says of the others. */
static dc_status look_at_first(media *m, dc_job *j)
{
    dc_image image;
    DC_TRY(dc_image_read(j, m->path[0], m->jpeg, &image));
    dc_xfree(image.pixel);
    if (m->height == 0) {
        m->height = image.height;
        m->width = image.width;
    }
    m->channels = m->channels == 0 ? image.channels : m->channels;
    return DC_OK;
}

dc_status dc_rows_images(dc_job *j, const char *const *path, int64_t n, int fit, int64_t height,
                         int64_t width, int channels, dc_rows **out)
{
    media *m = new_media(j, path, n);
    m->rows.get = get_images;
    m->fit = (dc_fit)fit;
    m->height = height;
    m->width = width;
    m->channels = channels;
    if (dc_jpeg_open(j, NULL, &m->jpeg) != DC_OK)
        dc_err_clear(&j->err);
    if (n > 0 && (height == 0 || channels == 0))
        DC_TRY(look_at_first(m, j));
    const int64_t dim[] = {n, m->height, m->width, m->channels};
    return finish(j, m, DC_U8, 4, dim, out);
}

/* ---- sounds ----------------------------------------------------------------------------------- */

static dc_status get_sound(const media *m, dc_job *j, const char *path, float *to)
{
    dc_sound w;
    DC_TRY(dc_sound_open(j, path, &w));
    dc_status status = DC_OK;
    if (w.channels != m->channels || w.rate != m->rate)
        status = dc_path_fail(j, DC_ERR_FORMAT, path,
                              "has %d channel%s at %d Hz, %d at %d Hz are wanted", w.channels,
                              w.channels == 1 ? "" : "s", w.rate, m->channels, m->rate);
    if (status == DC_OK)
        status = dc_sound_samples(j, path, &w, m->frames, to);
    dc_sound_close(&w);
    return status;
}

static dc_status get_sounds(const dc_rows *r, dc_job *j, int64_t first, int64_t count,
                            int64_t length, void *to)
{
    const media *m = (const media *)r;
    DC_UNUSED(length);
    for (int64_t i = 0; i < count; i++) {
        DC_TRY(dc_job_ended(j));
        DC_TRY(get_sound(m, j, m->path[first + i], (float *)((char *)to + (size_t)i * r->row)));
    }
    return DC_OK;
}

/* What the header of a file says. */
static dc_status look_at_sound(dc_job *j, const char *path, dc_sound *out)
{
    dc_sound s;
    DC_TRY(dc_sound_open(j, path, &s));
    *out = (dc_sound){.frames = s.frames, .channels = s.channels, .rate = s.rate, .fd = -1};
    dc_sound_close(&s);
    return DC_OK;
}

static dc_status check_length(dc_job *j, const char *path, const dc_sound *s)
{
    return s->frames >= 0 ? DC_OK
                          : dc_path_fail(j, DC_ERR_FORMAT, path,
                                         "the file does not say how many frames it has");
}

dc_status dc_rows_sounds(dc_job *j, const char *const *path, int64_t n, int64_t frames,
                         int channels, int rate, dc_rows **out, int *found)
{
    media *m = new_media(j, path, n);
    dc_sound w = {.frames = frames, .channels = channels, .rate = rate};
    m->rows.get = get_sounds;
    if (n > 0 && (frames == 0 || channels == 0 || rate == 0)) {
        DC_TRY(look_at_sound(j, path[0], &w));
        if (frames == 0)
            DC_TRY(check_length(j, path[0], &w));
    }
    m->frames = frames == 0 ? w.frames : frames;
    m->channels = channels == 0 ? w.channels : channels;
    m->rate = *found = rate == 0 ? w.rate : rate;
    const int64_t dim[] = {n, m->frames, m->channels};
    return finish(j, m, DC_F32, 3, dim, out);
}

bool dc_rows_are_sounds(const dc_rows *r)
{
    return r->get == get_sounds;
}

dc_status dc_rows_sound_lengths(dc_job *j, const dc_rows *r, int64_t *to)
{
    const media *m = (const media *)r;
    for (int64_t i = 0; i < r->type.dim[0]; i++) {
        dc_sound w;
        DC_TRY(dc_job_ended(j));
        DC_TRY(look_at_sound(j, m->path[i], &w));
        DC_TRY(check_length(j, m->path[i], &w));
        to[i] = dc_min_i64(w.frames, m->frames);
    }
    return DC_OK;
}
