/* Images of files, whatever their format, and images in another form. */
#define _POSIX_C_SOURCE 200809L
#include "formats/image.h"

#include "core/base/path.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

dc_status dc_image_decode(dc_job *j, const char *path, const void *bytes, size_t n,
                          const dc_jpeg_lib *jpeg, dc_image *out)
{
    const unsigned char *b = bytes;
    if (n >= 3 && b[0] == 0xff && b[1] == 0xd8 && b[2] == 0xff)
        return dc_jpeg_decode(j, path, bytes, n, jpeg, out);
    if (n >= 4 && memcmp(b, "\x89PNG", 4) == 0)
        return dc_png_decode(j, path, bytes, n, out);
    return dc_path_fail(j, DC_ERR_FORMAT, path, "neither a PNG file nor a JPEG file");
}

dc_status dc_image_read(dc_job *j, const char *path, const dc_jpeg_lib *jpeg, dc_image *out)
{
    char *bytes;
    size_t n;
    DC_TRY(dc_infile_all(j, path, (size_t)1 << 31, &bytes, &n));
    dc_job_defer(j, dc_xfree, bytes);
    const dc_status status = dc_image_decode(j, path, bytes, n, jpeg, out);
    dc_job_keep(j, bytes);
    dc_xfree(bytes);
    return status;
}

/* ---- other forms ------------------------------------------------------------------------------ */

/* A pixel of 8 bits with the channels that are wanted. */
static void convert(const dc_image *m, size_t at, int channels, float *to)
{
    float v[4] = {0, 0, 0, 255};
    for (int c = 0; c < m->channels; c++)
        v[c] =
            m->depth == 8
                ? (float)((const unsigned char *)m->pixel)[at * (size_t)m->channels + (size_t)c]
                : (float)(((const uint16_t *)m->pixel)[at * (size_t)m->channels + (size_t)c] >> 8);
    if (m->channels < 3) { /* grey */
        v[3] = m->channels == 2 ? v[1] : 255;
        v[1] = v[2] = v[0];
    }
    if (channels < 3 && m->channels >= 3)
        v[0] = floorf((19595 * v[0] + 38470 * v[1] + 7471 * v[2] + 32768) / 65536);
    if (channels == 2)
        v[1] = v[3];
    memcpy(to, v, (size_t)channels * sizeof *v);
}

/* What of one axis makes pixel i: weights of `count` pixels from `first` on. */
typedef struct tap {
    int first, count;
    float *weight;
} tap;

/* Triangles of n pixels over [from, from + span) of an axis of `size` pixels. */
static tap *make_taps(dc_arena *a, int64_t n, double from, double span, int64_t size)
{
    const double step = span / (double)n, radius = step > 1 ? step : 1;
    tap *t = DC_NEW_ARRAY(a, tap, n);
    for (int64_t i = 0; i < n; i++) {
        const double centre = from + ((double)i + 0.5) * step;
        const int64_t lo = dc_max_i64(0, (int64_t)(centre - radius + 0.5));
        const int64_t hi = dc_min_i64(size, (int64_t)(centre + radius + 0.5));
        double sum = 0;
        t[i].first = (int)lo;
        t[i].count = (int)dc_max_i64(1, hi - lo);
        t[i].weight = DC_NEW_ARRAY(a, float, t[i].count);
        for (int k = 0; k < t[i].count; k++) {
            const double far = fabs(((double)(lo + k) + 0.5 - centre) / radius);
            t[i].weight[k] = far < 1 ? (float)(1 - far) : 0;
            sum += (double)t[i].weight[k];
        }
        for (int k = 0; k < t[i].count; k++)
            t[i].weight[k] = sum > 0 ? (float)((double)t[i].weight[k] / sum) : 1;
    }
    return t;
}

/* Rounded to 8 bits. */
static unsigned char byte_of(float v)
{
    return (unsigned char)(v <= 0 ? 0 : v >= 255 ? 255 : v + 0.5f);
}

static void resample(dc_arena *a, const dc_image *m, int64_t height, int64_t width, int channels,
                     double x0, double y0, double w, double h, unsigned char *to)
{
    const tap *tx = make_taps(a, width, x0, w, m->width),
              *ty = make_taps(a, height, y0, h, m->height);
    const int64_t top = ty[0].first;
    const int64_t rows = ty[height - 1].first + ty[height - 1].count - top;
    const size_t row = (size_t)width * (size_t)channels;
    float *line = DC_NEW_ARRAY(a, float, (size_t)m->width *(size_t)channels);
    float *across = DC_NEW_ARRAY(a, float, (size_t)rows *row);
    for (int64_t y = 0; y < rows; y++) {
        for (int64_t x = 0; x < m->width; x++)
            convert(m, (size_t)((top + y) * m->width + x), channels, line + x * channels);
        float *out = across + (size_t)y * row;
        for (int64_t x = 0; x < width; x++)
            for (int k = 0; k < tx[x].count; k++)
                for (int c = 0; c < channels; c++)
                    out[x * channels + c] +=
                        tx[x].weight[k] * line[(tx[x].first + k) * channels + c];
        for (size_t i = 0; i < row; i++) /* as Pillow: rounded in between */
            out[i] = (float)byte_of(out[i]);
    }
    for (int64_t y = 0; y < height; y++)
        for (size_t i = 0; i < row; i++) {
            float sum = 0;
            for (int k = 0; k < ty[y].count; k++)
                sum += ty[y].weight[k] * across[(size_t)(ty[y].first - top + k) * row + i];
            to[(size_t)y * row + i] = byte_of(sum);
        }
}

dc_status dc_image_fit(dc_job *j, const char *path, const dc_image *m, dc_fit fit, int64_t height,
                       int64_t width, int channels, unsigned char *to)
{
    if (m->height == height && m->width == width) {
        const size_t n = (size_t)height * (size_t)width;
        if (m->channels == channels && m->depth == 8) {
            memcpy(to, m->pixel, n * (size_t)channels);
            return DC_OK;
        }
        for (size_t i = 0; i < n; i++) {
            float v[4];
            convert(m, i, channels, v);
            for (int c = 0; c < channels; c++)
                to[i * (size_t)channels + (size_t)c] = byte_of(v[c]);
        }
        return DC_OK;
    }
    if (fit == DC_FIT_EXACT)
        return dc_path_fail(j, DC_ERR_FORMAT, path,
                            "has %" PRId64 " x %" PRId64
                            " pixels, height and width are to be %" PRId64 " x %" PRId64,
                            m->height, m->width, height, width);
    double w = (double)m->width, h = (double)m->height;
    if (fit == DC_FIT_CROP) { /* the largest part of these proportions */
        const double scale = fmin(w / (double)width, h / (double)height);
        w = scale * (double)width;
        h = scale * (double)height;
    }
    const dc_mark mark = dc_arena_mark(&j->scratch);
    resample(&j->scratch, m, height, width, channels, ((double)m->width - w) / 2,
             ((double)m->height - h) / 2, w, h, to);
    dc_arena_rewind(&j->scratch, mark);
    return DC_OK;
}
