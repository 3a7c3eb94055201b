/*
 * PNG files to pixels, and pixels to PNG files: chunks, zlib's stream, filters, interlacing. What stands in the header is
 * checked against the length of the compressed data before memory is asked for.
 */
#include "core/base/outfile.h"
#include "core/base/path.h"
#include "formats/flow.h"
#include "formats/image.h"

#include <stdlib.h>
#include <string.h>

enum { DEFLATE_BEST = 1032, GREY = 0, COLOURS = 2, PALETTE = 3, ALPHA = 4 };

typedef struct png {
    dc_job *job;
    const char *path;
    const unsigned char *at, *end;
    uint32_t width, height;
    int depth, colour, samples; /* samples of a pixel in the file */
    bool interlaced;
    unsigned char palette[256][4]; /* with alpha */
    int ncolours;
    bool has_alpha;     /* a transparent colour or palette */
    uint16_t key[3];    /* the transparent colour */
    size_t packed;      /* bytes of compressed data */
    unsigned char *raw; /* filtered rows */
    size_t nraw;
    z_stream z;
} png;

#define fail(p, ...) dc_path_fail((p)->job, DC_ERR_FORMAT, (p)->path, __VA_ARGS__)

static uint32_t get32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* ---- chunks ----------------------------------------------------------------------------------- */

static dc_status read_header(png *p, const unsigned char *d, size_t n)
{
    static const int samples[] = {1, 0, 3, 1, 2, 0, 4};
    static const unsigned depths[] = {1 << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16,
                                      0,
                                      1 << 8 | 1 << 16,
                                      1 << 1 | 1 << 2 | 1 << 4 | 1 << 8,
                                      1 << 8 | 1 << 16,
                                      0,
                                      1 << 8 | 1 << 16};
    if (n != 13)
        return fail(p, "not a PNG file: its header is damaged");
    p->width = get32(d);
    p->height = get32(d + 4);
    p->depth = d[8];
    p->colour = d[9];
    p->interlaced = d[12] == 1;
    if (p->width == 0 || p->height == 0 || p->width > DC_IMAGE_SIDE || p->height > DC_IMAGE_SIDE)
        return fail(p, "an image of %u x %u pixels, 1 to %d of a side are read", p->width,
                    p->height, DC_IMAGE_SIDE);
    if (p->colour > 6 || p->depth > 16 || (depths[p->colour] >> p->depth & 1) == 0 || d[10] != 0 ||
        d[11] != 0 || d[12] > 1)
        return fail(p, "not a PNG file: colour type %d of %d bits", p->colour, p->depth);
    p->samples = samples[p->colour];
    return DC_OK;
}

static dc_status read_palette(png *p, const unsigned char *d, size_t n)
{
    if (n % 3 != 0 || n > 768 || n == 0)
        return fail(p, "the palette is damaged");
    p->ncolours = (int)(n / 3);
    for (int i = 0; i < p->ncolours; i++) {
        memcpy(p->palette[i], d + 3 * i, 3);
        p->palette[i][3] = 255;
    }
    return DC_OK;
}

static dc_status read_transparency(png *p, const unsigned char *d, size_t n)
{
    const size_t want = p->colour == COLOURS ? 6 : 2;
    if (p->colour == PALETTE ? n > (size_t)p->ncolours : (p->colour & ALPHA) != 0 || n != want)
        return fail(p, "the transparent colour is damaged");
    p->has_alpha = true;
    for (size_t i = 0; i < n && p->colour == PALETTE; i++)
        p->palette[i][3] = d[i];
    for (size_t i = 0; i < n / 2 && p->colour != PALETTE; i++)
        p->key[i] = (uint16_t)(d[2 * i] << 8 | d[2 * i + 1]);
    return DC_OK;
}

/* The next chunk; `at` moves behind it. */
static dc_status next_chunk(png *p, const unsigned char **data, size_t *n, uint32_t *type)
{
    const size_t left = (size_t)(p->end - p->at);
    if (left < 12 || get32(p->at) > left - 12)
        return fail(p, "truncated: a chunk of the PNG file is cut off");
    *n = get32(p->at);
    *type = get32(p->at + 4);
    *data = p->at + 8;
    if (crc32(crc32(0, NULL, 0), p->at + 4, (unsigned)*n + 4) != get32(*data + *n))
        return fail(p, "a chunk of the PNG file is damaged");
    p->at = *data + *n + 4;
    return DC_OK;
}

#define CHUNK(a, b, c, d) \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

/* All chunks to the end, but for the pixels; where the first of these is. */
static dc_status read_chunks(png *p, const unsigned char **pixels)
{
    static const unsigned char magic[] = "\x89PNG\r\n\x1a\n";
    const unsigned char *d;
    uint32_t type = 0;
    size_t n;
    if (p->end - p->at < 8 || memcmp(p->at, magic, 8) != 0)
        return fail(p, "not a PNG file");
    p->at += 8;
    DC_TRY(next_chunk(p, &d, &n, &type));
    if (type != CHUNK('I', 'H', 'D', 'R'))
        return fail(p, "not a PNG file: it has no header");
    DC_TRY(read_header(p, d, n));
    while (type != CHUNK('I', 'E', 'N', 'D')) {
        const unsigned char *chunk = p->at;
        DC_TRY(next_chunk(p, &d, &n, &type));
        if (type == CHUNK('P', 'L', 'T', 'E') && *pixels == NULL)
            DC_TRY(read_palette(p, d, n));
        else if (type == CHUNK('t', 'R', 'N', 'S') && *pixels == NULL)
            DC_TRY(read_transparency(p, d, n));
        else if (type == CHUNK('I', 'D', 'A', 'T')) {
            *pixels = *pixels == NULL ? chunk : *pixels;
            p->packed += n;
        } else if ((type >> 29 & 1) == 0 && type != CHUNK('I', 'E', 'N', 'D') &&
                   type != CHUNK('P', 'L', 'T', 'E'))
            return fail(p, "a chunk of the PNG file is of an unknown kind");
    }
    if (*pixels == NULL)
        return fail(p, "the PNG file has no pixels");
    if (p->colour == PALETTE && p->ncolours == 0)
        return fail(p, "the PNG file has no palette");
    return DC_OK;
}

/* ---- rows ------------------------------------------------------------------------------------- */

/* A pass of the interlacing: where its pixels begin, and how far they are apart. */
typedef struct pass {
    uint32_t x, y, dx, dy;
} pass;

static const pass passes[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                              {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
static const pass whole = {0, 0, 1, 1};

static uint32_t along(uint32_t size, uint32_t from, uint32_t step)
{
    return size > from ? (size - from + step - 1) / step : 0;
}

static size_t row_bytes(const png *p, uint32_t width)
{
    return ((size_t)width * (size_t)(p->samples * p->depth) + 7) / 8;
}

static size_t pass_bytes(const png *p, const pass *q)
{
    const uint32_t w = along(p->width, q->x, q->dx), h = along(p->height, q->y, q->dy);
    return w == 0 ? 0 : (size_t)h * (row_bytes(p, w) + 1);
}

/*
 * Inflates n bytes more into the rows; *how is that of the last step. Behind the rows there is room for one byte more, which
 * only a damaged file fills.
 */
static dc_status inflate_more(png *p, const unsigned char *d, size_t n, size_t *given,
                              dc_flowed *how)
{
    dc_flow f = {d, n, p->raw + *given, p->nraw + 1 - *given};
    while (*how == DC_FLOWED_SOME && f.nfrom > 0) {
        *how = dc_inflate(&p->z, &f);
        if (*how == DC_FLOWED_WRONG)
            return fail(p, "zlib gives wrong counts of bytes");
        if (f.nto == 0)
            return fail(p, "the PNG file has more pixels than its header says");
    }
    *given = p->nraw + 1 - f.nto;
    return DC_OK;
}

static dc_status unpack_chunks(png *p, const unsigned char *chunk)
{
    const unsigned char *d;
    uint32_t type = CHUNK('I', 'D', 'A', 'T');
    size_t n, given = 0;
    dc_flowed how = DC_FLOWED_SOME;
    for (p->at = chunk; how == DC_FLOWED_SOME && type == CHUNK('I', 'D', 'A', 'T');) {
        DC_TRY(dc_job_ended(p->job));
        DC_TRY(next_chunk(p, &d, &n, &type));
        if (type == CHUNK('I', 'D', 'A', 'T'))
            DC_TRY(inflate_more(p, d, n, &given, &how));
    }
    if (how == DC_FLOWED_MEMORY)
        return dc_fail(p->job, DC_ERR_NOMEM, NULL);
    if (how == DC_FLOWED_DAMAGED)
        return fail(p, "the pixels of the PNG file are damaged");
    return how == DC_FLOWED_ALL && given == p->nraw
               ? DC_OK
               : fail(p, "the pixels of the PNG file are cut off");
}

/* The filtered rows of all passes. Exactly as many bytes have to come out. */
static dc_status unpack(png *p, const unsigned char *chunk)
{
    if (p->nraw / DEFLATE_BEST > p->packed)
        return fail(p,
                    "an image of %u x %u pixels is declared, more than %zu compressed bytes can "
                    "hold",
                    p->width, p->height, p->packed);
    p->raw = dc_try_realloc(NULL, p->nraw + 1);
    if (p->raw == NULL)
        return dc_fail_memory(p->job, p->nraw);
    if (inflateInit(&p->z) != Z_OK)
        return dc_fail(p->job, DC_ERR_NOMEM, NULL);
    const dc_status status = unpack_chunks(p, chunk);
    inflateEnd(&p->z);
    return status;
}

static int nearest(int a, int b, int c)
{
    const int pa = abs(b - c), pb = abs(a - c), pc = abs(a + b - 2 * c);
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* Takes the filter of a row away; `above` is NULL for the first one. bpp: bytes from one pixel to the next. */
static bool unfilter(int filter, unsigned char *row, const unsigned char *above, size_t n,
                     size_t bpp)
{
    switch (filter) {
    case 0:
        return true;
    case 1:
        for (size_t i = bpp; i < n; i++)
            row[i] = (unsigned char)(row[i] + row[i - bpp]);
        return true;
    case 2:
        for (size_t i = 0; above != NULL && i < n; i++)
            row[i] = (unsigned char)(row[i] + above[i]);
        return true;
    case 3:
        for (size_t i = 0; i < n; i++) {
            const int left = i >= bpp ? row[i - bpp] : 0, up = above != NULL ? above[i] : 0;
            row[i] = (unsigned char)(row[i] + (left + up) / 2);
        }
        return true;
    case 4:
        for (size_t i = 0; i < n; i++) {
            const int left = i >= bpp ? row[i - bpp] : 0, up = above != NULL ? above[i] : 0;
            const int corner = i >= bpp && above != NULL ? above[i - bpp] : 0;
            row[i] = (unsigned char)(row[i] + nearest(left, up, corner));
        }
        return true;
    default:
        return false;
    }
}

/* ---- pixels ----------------------------------------------------------------------------------- */

/* Sample i of a row, as it stands there. */
static unsigned sample(const png *p, const unsigned char *row, size_t i)
{
    if (p->depth == 8)
        return row[i];
    if (p->depth == 16)
        return (unsigned)(row[2 * i] << 8 | row[2 * i + 1]);
    const size_t bit = i * (size_t)p->depth;
    return row[bit / 8] >> (8 - (size_t)p->depth - bit % 8) & ((1u << p->depth) - 1);
}

static void store(const dc_image *out, size_t at, unsigned v)
{
    if (out->depth == 8)
        ((unsigned char *)out->pixel)[at] = (unsigned char)v;
    else
        ((uint16_t *)out->pixel)[at] = (uint16_t)v;
}

static bool put_pixel(const png *p, const dc_image *out, const unsigned char *row, size_t x,
                      size_t to)
{
    const unsigned full = out->depth == 8 ? 255 : 65535;
    bool hidden = p->has_alpha;
    if (p->colour == PALETTE) {
        const unsigned i = sample(p, row, x);
        if ((int)i >= p->ncolours)
            return false;
        for (int c = 0; c < out->channels; c++)
            store(out, to + (size_t)c, p->palette[i][c]);
        return true;
    }
    const unsigned scale = p->depth < 8 ? 255 / ((1u << p->depth) - 1) : 1;
    for (int c = 0; c < p->samples; c++) {
        const unsigned v = sample(p, row, x * (size_t)p->samples + (size_t)c);
        hidden = hidden && v == p->key[c];
        store(out, to + (size_t)c, v * scale);
    }
    if (p->has_alpha)
        store(out, to + (size_t)p->samples, hidden ? 0 : full);
    return true;
}

static bool put_row(const png *p, const dc_image *out, const unsigned char *row, const pass *q,
                    uint32_t y)
{
    const uint32_t w = along(p->width, q->x, q->dx);
    const size_t step = (size_t)out->channels;
    const size_t to = (size_t)(q->y + y * q->dy) * p->width * step;
    if (p->depth == 8 && p->colour != PALETTE && !p->has_alpha && q->dx == 1) {
        memcpy((char *)out->pixel + to, row, (size_t)w * step);
        return true;
    }
    for (uint32_t x = 0; x < w; x++)
        if (!put_pixel(p, out, row, x, to + (size_t)(q->x + x * q->dx) * step))
            return false;
    return true;
}

/* One pass, from its filtered rows. */
static dc_status put_pass(png *p, const dc_image *out, unsigned char *raw, const pass *q)
{
    const uint32_t w = along(p->width, q->x, q->dx), h = along(p->height, q->y, q->dy);
    const size_t n = row_bytes(p, w);
    const size_t bpp = (size_t)(p->samples * p->depth + 7) / 8;
    const unsigned char *above = NULL;
    for (uint32_t y = 0; w > 0 && y < h; y++, raw += n + 1) {
        if (y % 64 == 0)
            DC_TRY(dc_job_ended(p->job));
        if (!unfilter(raw[0], raw + 1, above, n, bpp))
            return fail(p, "the pixels of the PNG file are damaged: filter %d", raw[0]);
        if (!put_row(p, out, raw + 1, q, y))
            return fail(p, "a pixel of the PNG file is not in its palette");
        above = raw + 1;
    }
    return DC_OK;
}

static dc_status decode(png *p, dc_image *out)
{
    const unsigned char *pixels = NULL;
    DC_TRY(read_chunks(p, &pixels));
    const size_t npasses = p->interlaced ? DC_COUNTOF(passes) : 1;
    const pass *q = p->interlaced ? passes : &whole;
    for (size_t i = 0; i < npasses; i++)
        p->nraw += pass_bytes(p, &q[i]);
    DC_TRY(unpack(p, pixels));
    *out = (dc_image){.height = p->height, .width = p->width, .depth = p->depth == 16 ? 16 : 8};
    out->channels = (p->colour == PALETTE ? 3 : p->samples) + p->has_alpha;
    const size_t bytes =
        (size_t)p->width * p->height * (size_t)out->channels * (size_t)(out->depth / 8);
    out->pixel = dc_try_realloc(NULL, bytes);
    if (out->pixel == NULL)
        return dc_fail_memory(p->job, bytes);
    unsigned char *raw = p->raw;
    for (size_t i = 0; i < npasses; raw += pass_bytes(p, &q[i++]))
        DC_TRY(put_pass(p, out, raw, &q[i]));
    return DC_OK;
}

dc_status dc_png_decode(dc_job *j, const char *path, const void *bytes, size_t n, dc_image *out)
{
    png p = {.job = j, .path = path, .at = bytes, .end = (const unsigned char *)bytes + n};
    *out = (dc_image){0};
    const dc_status status = decode(&p, out);
    dc_xfree(p.raw);
    if (status != DC_OK) {
        dc_xfree(out->pixel);
        *out = (dc_image){0};
    }
    return status;
}

/* ---- writing ---------------------------------------------------------------------------------- */

static void put32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (24 - 8 * i));
}

static unsigned char *put_chunk(unsigned char *to, const char *type, const void *d, size_t n)
{
    put32(to, (uint32_t)n);
    memcpy(to + 4, type, 4);
    if (n > 0)
        memcpy(to + 8, d, n);
    put32(to + 8 + n, (uint32_t)crc32_z(0, to + 4, n + 4));
    return to + 12 + n;
}

/* Rows as they are compressed: each as the difference to the one above it. */
static void filter_rows(const dc_image *m, unsigned char *to)
{
    const size_t n = (size_t)m->width * (size_t)m->channels * (size_t)(m->depth / 8);
    const unsigned char *from = m->pixel;
    for (int64_t y = 0; y < m->height; y++, from += n, to += n + 1) {
        to[0] = y > 0 ? 2 : 0;
        for (size_t i = 0; i < n; i++) {
            const size_t k = m->depth == 16 ? i ^ 1 : i; /* big-endian in the file */
            to[1 + i] = (unsigned char)(from[k] - (y > 0 ? from[k - n] : 0));
        }
    }
}

dc_status dc_png_encode(dc_job *j, const dc_image *m, const void **out, size_t *nout)
{
    static const unsigned char colours[] = {0, GREY, ALPHA, COLOURS, COLOURS | ALPHA};
    static const char sign[] = "\x89PNG\r\n\x1a\n";
    const size_t row = (size_t)m->width * (size_t)m->channels * (size_t)(m->depth / 8) + 1;
    const size_t n = row * (size_t)m->height;
    unsigned char head[13] = {0};
    unsigned char *raw = dc_arena_alloc(&j->scratch, n);
    const uLongf most = compressBound((uLong)n);
    uLongf size = most;
    unsigned char *packed = dc_arena_alloc(&j->scratch, size);
    filter_rows(m, raw);
    if (compress2(packed, &size, raw, (uLong)n, Z_DEFAULT_COMPRESSION) != Z_OK || size > most)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    put32(head, (uint32_t)m->width);
    put32(head + 4, (uint32_t)m->height);
    head[8] = (unsigned char)m->depth;
    head[9] = colours[m->channels];
    unsigned char *file = dc_arena_alloc(&j->scratch, size + sizeof head + 8 + 3 * 12);
    unsigned char *to = file;
    memcpy(to, sign, 8);
    to = put_chunk(to + 8, "IHDR", head, sizeof head);
    to = put_chunk(to, "IDAT", packed, size);
    to = put_chunk(to, "IEND", NULL, 0);
    *out = file;
    *nout = (size_t)(to - file);
    return DC_OK;
}

dc_status dc_png_put(dc_job *j, const char *path, const dc_image *m)
{
    const void *bytes;
    size_t n;
    dc_outfile *f;
    DC_TRY(dc_outfile_open(j, path, &f));
    DC_TRY(dc_png_encode(j, m, &bytes, &n));
    DC_TRY(dc_outfile_write(f, bytes, n));
    return dc_outfile_commit(f);
}
