/*
 * Images of files: PNG, read here, and JPEG, through libturbojpeg, which is opened at run time.
 *
 * A PNG file of any colour type and depth is read (ISO/IEC 15948): grey or colours, with an alpha channel or without,
 * palettes become colours, depths below 8 become 8; 16 stay 16 (u16). Values are as they stand in the file: no
 * gamma is applied.
 */
#ifndef DC_FORMATS_IMAGE_H
#define DC_FORMATS_IMAGE_H

#include "formats/infile.h"

typedef struct dc_image {
    int64_t height, width;
    int channels; /* 1 grey, 2 grey and alpha, 3 colours, 4 colours and alpha */
    int depth;    /* 8 or 16 */
    void *pixel;  /* rows without gaps; of dc_xfree */
} dc_image;

enum { DC_IMAGE_SIDE = 1 << 16, DC_JPEG_QUALITY = 90 }; /* pixels of a side at most */

/* libturbojpeg: its functions, while it is open. */
typedef struct dc_jpeg_lib dc_jpeg_lib;
/* NULL is the usual name. FILE with a sentence that names the package where it is not there. */
dc_status dc_jpeg_open(dc_job *j, const char *name, dc_jpeg_lib **out);
void dc_jpeg_close(dc_jpeg_lib *lib); /* NULL is fine */

/*
 * The image in n bytes; the path is for messages. `jpeg` may be NULL: then the library is opened for this one. Sizes are
 * compared with what the bytes can hold before memory is asked for. Any thread.
 */
dc_status dc_image_decode(dc_job *j, const char *path, const void *bytes, size_t n,
                          const dc_jpeg_lib *jpeg, dc_image *out);
dc_status dc_png_decode(dc_job *j, const char *path, const void *bytes, size_t n, dc_image *out);
dc_status dc_jpeg_decode(dc_job *j, const char *path, const void *bytes, size_t n,
                         const dc_jpeg_lib *jpeg, dc_image *out);
/* Reads and decodes a file. */
dc_status dc_image_read(dc_job *j, const char *path, const dc_jpeg_lib *jpeg, dc_image *out);

/*
 * An image in another form, of 8 bits: so many channels (grey of colours by ITU-R 601, alpha left out or full), resampled
 * with a triangle as wide as a pixel of the coarser side (as Pillow's BILINEAR).
 */
typedef enum dc_fit { DC_FIT_EXACT, DC_FIT_STRETCH, DC_FIT_CROP } dc_fit;
dc_status dc_image_fit(dc_job *j, const char *path, const dc_image *image, dc_fit fit,
                       int64_t height, int64_t width, int channels, unsigned char *to);

/* The bytes of a PNG file, in the job's scratch memory. */
dc_status dc_png_encode(dc_job *j, const dc_image *image, const void **out, size_t *n);
/* Whole or not at all (core/base/outfile.h): 8 or 16 bits as PNG, 8 bits and 1 or 3 channels as JPEG. */
dc_status dc_png_put(dc_job *j, const char *path, const dc_image *image);
dc_status dc_jpeg_put(dc_job *j, const char *path, const dc_image *image, int quality);

#endif
