/*
 * A PNG file is a signature and chunks: length, name, data, CRC-32 of name and data. Here: the sizes,
 * all rows compressed at once, the end. Rows are not filtered; large areas of one colour compress well
 * as they are.
 */
#include "formats/png.h"

#include "core/base/outfile.h"

#include <string.h>
#include <zlib.h>

static void put_u32(unsigned char *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(v >> (24 - 8 * i));
}

static dc_status put_chunk(dc_outfile *f, const char *name, const unsigned char *data, uint32_t n)
{
    unsigned char head[8], crc[4];
    put_u32(head, n);
    memcpy(head + 4, name, 4);
    uLong sum = crc32(0, head + 4, 4);
    if (n > 0)
        sum = crc32(sum, data, n);
    put_u32(crc, (uint32_t)sum);
    DC_TRY(dc_outfile_write(f, head, sizeof head));
    DC_TRY(dc_outfile_write(f, data, n));
    return dc_outfile_write(f, crc, sizeof crc);
}

/* Each row begins with its filter, 0 for none. */
static unsigned char *filtered(dc_job *j, uint32_t width, uint32_t height, const unsigned char *rgb)
{
    const size_t row = (size_t)width * 3;
    unsigned char *out = dc_arena_alloc(&j->scratch, height * (row + 1));
    for (uint32_t y = 0; y < height; y++)
        memcpy(out + y * (row + 1) + 1, rgb + y * row, row);
    return out;
}

dc_status dc_png_write(dc_job *j, const char *path, uint32_t width, uint32_t height,
                       const unsigned char *rgb)
{
    static const unsigned char signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    enum { MOST = 1 << 14 };
    if (width == 0 || height == 0 || width > MOST || height > MOST)
        return dc_failf(j, DC_ERR_ARG, NULL, "an image of %u x %u pixels", width, height);
    const uLong n = (uLong)height * ((uLong)width * 3 + 1);
    uLongf size = compressBound(n);
    unsigned char *packed = dc_arena_alloc(&j->scratch, size);
    if (compress2(packed, &size, filtered(j, width, height, rgb), n, Z_BEST_COMPRESSION) != Z_OK)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    unsigned char head[13] = {[8] = 8 /* bits */, [9] = 2 /* RGB */};
    put_u32(head, width);
    put_u32(head + 4, height);
    dc_outfile *f;
    DC_TRY(dc_outfile_open(j, path, &f));
    DC_TRY(dc_outfile_write(f, signature, sizeof signature));
    DC_TRY(put_chunk(f, "IHDR", head, sizeof head));
    DC_TRY(put_chunk(f, "IDAT", packed, (uint32_t)size));
    DC_TRY(put_chunk(f, "IEND", head, 0));
    return dc_outfile_commit(f);
}
