#include "formats/convert.h"

#include "core/base/bits.h"
#include "formats/floats.h"

#include <string.h>

bool dc_convert_exact(dc_dtype from, dc_dtype to)
{
    return from == to || dc_dtype_bits(from) < dc_dtype_bits(to);
}

static void to_f32(dc_dtype from, const void *src, float *dst, size_t n)
{
    const uint16_t *h = src;
    const double *d = src;
    if (from == DC_F16)
        for (size_t i = 0; i < n; i++)
            dst[i] = dc_float_of_half(h[i]);
    else if (from == DC_BF16)
        for (size_t i = 0; i < n; i++)
            dst[i] = dc_float_of_bfloat(h[i]);
    else
        for (size_t i = 0; i < n; i++)
            dst[i] = (float)d[i];
}

static void of_f32(const float *src, dc_dtype to, void *dst, size_t n)
{
    uint16_t *h = dst;
    double *d = dst;
    if (to == DC_F16)
        for (size_t i = 0; i < n; i++)
            h[i] = dc_half_of_float(src[i]);
    else if (to == DC_BF16)
        for (size_t i = 0; i < n; i++)
            h[i] = dc_bfloat_of_float(src[i]);
    else
        for (size_t i = 0; i < n; i++)
            d[i] = src[i];
}

/* The pairs without f32. */
static void other(dc_dtype from, const char *src, dc_dtype to, char *dst, size_t n)
{
    const size_t m = dc_dtype_size(from), k = dc_dtype_size(to);
    for (size_t i = 0; i < n; i++)
        dc_bits_store(to, dst + i * k, dc_bits_cast(from, to, dc_bits_load(from, src + i * m)));
}

void dc_convert(dc_dtype from, const void *src, dc_dtype to, void *dst, size_t n)
{
    if (from == to)
        memcpy(dst, src, n * dc_dtype_size(from));
    else if (to == DC_F32)
        to_f32(from, src, dst, n);
    else if (from == DC_F32)
        of_f32(src, to, dst, n);
    else
        other(from, src, to, dst, n);
}
