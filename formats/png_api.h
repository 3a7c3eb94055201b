/*
 * What deepc uses of libpng 1.6: the writing half of its simplified API, declared here so that no header of
 * libpng is needed to build and no library of it to start. The numbers and the structure are part of the ABI of
 * libpng16.so.16; tests/unit/test_png.c compares them with png.h.
 */
#ifndef DC_FORMATS_PNG_API_H
#define DC_FORMATS_PNG_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DC_PNG_IMAGE_VERSION = 1,
    DC_PNG_FORMAT_RGB = 2, /* three components of a byte, sRGB */
};

/* png_image */
typedef struct dc_png_image {
    void *opaque; /* of libpng; NULL at the beginning */
    uint32_t version;
    uint32_t width, height; /* in pixels */
    uint32_t format, flags;
    uint32_t colormap_entries;
    uint32_t warning_or_error; /* the low two bits: 0 well, 1 a warning, 2 or 3 an error */
    char message[64];          /* of it */
} dc_png_image;

/*
 * png_image_write_to_memory: false leaves *size as it was, unless `memory` is too small, which makes it the size that
 * is needed. A row_stride of 0 is that of rows without gaps.
 */
typedef int dc_png_write_fn(dc_png_image *image, void *memory, size_t *size, int convert_to_8_bit,
                            const void *buffer, int32_t row_stride, const void *colormap);

typedef struct dc_png_lib {
    void *handle;
    dc_png_write_fn *write_to_memory;
} dc_png_lib;

/* NULL is the usual name. On failure nothing stays open and `why` tells. */
bool dc_png_lib_open(const char *name, dc_png_lib *lib, char *why, size_t size);
void dc_png_lib_close(dc_png_lib *lib);

#endif
