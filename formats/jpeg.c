/*
 * JPEG through TurboJPEG's C API, whose handles are opaque: nothing of the library's structures is known here, and it
 * never jumps. The functions are declared below; they have been the same since libjpeg-turbo 1.2 (libturbojpeg.so.0).
 */
#include "core/base/outfile.h"
#include "core/base/path.h"
#include "formats/image.h"

#include <dlfcn.h>
#include <string.h>

/* Of turbojpeg.h: formats of pixels, spaces of colours, ways to leave out colours. */
enum { TJ_RGB = 0, TJ_GREY = 6, TJ_CMYK = 11, TJ_444 = 0, TJ_420 = 2, TJ_SAMP_GREY = 3 };
enum { TJ_SPACE_GREY = 2, TJ_SPACE_CMYK = 3, TJ_SPACE_YCCK = 4 };

typedef void *tj_init_fn(void);
typedef int tj_header_fn(void *h, const unsigned char *bytes, unsigned long n, int *width,
                         int *height, int *subsampling, int *colours);
typedef int tj_decompress_fn(void *h, const unsigned char *bytes, unsigned long n,
                             unsigned char *to, int width, int pitch, int height, int format,
                             int flags);
typedef int tj_compress_fn(void *h, const unsigned char *from, int width, int pitch, int height,
                           int format, unsigned char **to, unsigned long *n, int subsampling,
                           int quality, int flags);
typedef int tj_destroy_fn(void *h);
typedef void tj_free_fn(unsigned char *p);
typedef char *tj_error_fn(void);

struct dc_jpeg_lib {
    void *handle;
    tj_init_fn *init_decompress, *init_compress;
    tj_header_fn *header;
    tj_decompress_fn *decompress;
    tj_compress_fn *compress;
    tj_destroy_fn *destroy;
    tj_free_fn *free;
    tj_error_fn *error;
};

static const char *const usual_name = "libturbojpeg.so.0";

static bool find(const dc_jpeg_lib *lib, const char *symbol, void *at)
{
    void *found = dlsym(lib->handle, symbol);
    memcpy(at, &found, sizeof found);
    return found != NULL;
}

static void close_lib(void *lib)
{
    dc_jpeg_close(lib);
}

static dc_status find_all(dc_job *j, const char *name, dc_jpeg_lib *lib)
{
    lib->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (lib->handle == NULL)
        return dc_failf(j, DC_ERR_FILE_TEXT, NULL,
                        "JPEG needs libturbojpeg (%s; Debian: apt-get install libturbojpeg0)",
                        name);
    const bool all = find(lib, "tjInitDecompress", &lib->init_decompress) &&
                     find(lib, "tjInitCompress", &lib->init_compress) &&
                     find(lib, "tjDecompressHeader3", &lib->header) &&
                     find(lib, "tjDecompress2", &lib->decompress) &&
                     find(lib, "tjCompress2", &lib->compress) &&
                     find(lib, "tjDestroy", &lib->destroy) && find(lib, "tjFree", &lib->free) &&
                     find(lib, "tjGetErrorStr", &lib->error);
    if (!all)
        return dc_failf(j, DC_ERR_FILE_TEXT, NULL, "%s is not libjpeg-turbo 1.4 or later", name);
    return DC_OK;
}

dc_status dc_jpeg_open(dc_job *j, const char *name, dc_jpeg_lib **out)
{
    dc_jpeg_lib *lib = dc_xalloc(sizeof *lib);
    dc_job_defer(j, close_lib, lib);
    DC_TRY(dc_job_settle(j, lib, find_all(j, name == NULL ? usual_name : name, lib)));
    *out = lib;
    return DC_OK;
}

void dc_jpeg_close(dc_jpeg_lib *lib)
{
    if (lib != NULL && lib->handle != NULL)
        dlclose(lib->handle);
    dc_xfree(lib);
}

/* Inks, whose bytes are the light that is left, as Adobe writes them and Pillow takes them, to colours, in place. */
static void mix_inks(unsigned char *pixel, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned black = pixel[4 * i + 3];
        for (size_t c = 0; c < 3; c++) {
            const unsigned dark = (255u - pixel[4 * i + c]) * black + 128;
            pixel[3 * i + c] = (unsigned char)(black - (((dark >> 8) + dark) >> 8));
        }
    }
}

static dc_status decode_with(dc_job *j, const char *path, const unsigned char *bytes, size_t n,
                             const dc_jpeg_lib *lib, void *h, dc_image *out)
{
    int width, height, subsampling, colours;
    if (lib->header(h, bytes, (unsigned long)n, &width, &height, &subsampling, &colours) != 0)
        return dc_path_fail(j, DC_ERR_FORMAT, path, "not a JPEG file: %s", lib->error());
    if (width < 1 || height < 1 || width > DC_IMAGE_SIDE || height > DC_IMAGE_SIDE)
        return dc_path_fail(j, DC_ERR_FORMAT, path, "an image of %d x %d pixels", width, height);
    /* A block of 64 pixels takes some bits at least. */
    if ((int64_t)width * height / 4096 > (int64_t)n * 8)
        return dc_path_fail(j, DC_ERR_FORMAT, path,
                            "an image of %d x %d pixels is declared, more than %zu bytes can hold",
                            width, height, n);
    const bool grey = colours == TJ_SPACE_GREY;
    const bool inks = colours == TJ_SPACE_CMYK || colours == TJ_SPACE_YCCK;
    *out = (dc_image){.height = height, .width = width, .channels = grey ? 1 : 3, .depth = 8};
    const size_t size = (size_t)width * (size_t)height * (size_t)(inks ? 4 : out->channels);
    out->pixel = dc_try_alloc(size);
    if (out->pixel == NULL)
        return dc_fail_memory(j, size);
    if (lib->decompress(h, bytes, (unsigned long)n, out->pixel, width, 0, height,
                        inks   ? TJ_CMYK
                        : grey ? TJ_GREY
                               : TJ_RGB,
                        0) != 0)
        return dc_path_fail(j, DC_ERR_FORMAT, path, "the JPEG file is damaged: %s", lib->error());
    if (inks)
        mix_inks(out->pixel, (size_t)width * (size_t)height);
    return DC_OK;
}

dc_status dc_jpeg_decode(dc_job *j, const char *path, const void *bytes, size_t n,
                         const dc_jpeg_lib *jpeg, dc_image *out)
{
    dc_jpeg_lib *own = NULL;
    *out = (dc_image){0};
    if (jpeg == NULL) {
        DC_TRY(dc_jpeg_open(j, NULL, &own));
        jpeg = own;
    }
    void *h = jpeg->init_decompress();
    dc_status status =
        h != NULL ? decode_with(j, path, bytes, n, jpeg, h, out) : dc_fail(j, DC_ERR_NOMEM, NULL);
    if (h != NULL)
        jpeg->destroy(h);
    dc_jpeg_close(own);
    if (status != DC_OK) {
        dc_xfree(out->pixel);
        *out = (dc_image){0};
    }
    return status;
}

static dc_status put_with(dc_job *j, const char *path, const dc_image *m, int quality,
                          const dc_jpeg_lib *lib, void *h)
{
    unsigned char *bytes = NULL;
    unsigned long n = 0;
    const bool grey = m->channels == 1;
    if (lib->compress(h, m->pixel, (int)m->width, 0, (int)m->height, grey ? TJ_GREY : TJ_RGB,
                      &bytes, &n,
                      grey            ? TJ_SAMP_GREY
                      : quality >= 95 ? TJ_444
                                      : TJ_420,
                      quality, 0) != 0)
        return dc_path_fail(j, DC_ERR_FILE, path, "cannot be written: %s", lib->error());
    /* In whole blocks of 16 x 16 pixels, which are at most twice as large as they were. */
    const size_t most = ((size_t)m->width + 16) * ((size_t)m->height + 16) * 6 + 2048;
    if (bytes == NULL || n == 0 || n > most)
        return dc_path_fail(j, DC_ERR_FILE, path,
                            "cannot be written: libturbojpeg gives %lu bytes for an image of %d x "
                            "%d pixels",
                            n, (int)m->width, (int)m->height);
    unsigned char *copy = dc_try_realloc(NULL, n); /* what follows may unwind */
    if (copy != NULL)
        memcpy(copy, bytes, n);
    lib->free(bytes);
    if (copy == NULL)
        return dc_fail_memory(j, n);
    dc_job_defer(j, dc_xfree, copy);
    return dc_outfile_put(j, path, copy, n);
}

typedef struct compressor {
    dc_jpeg_lib *lib;
    void *h;
} compressor;

static void end_compressor(void *what)
{
    compressor *c = what;
    if (c->h != NULL)
        c->lib->destroy(c->h);
    dc_jpeg_close(c->lib);
}

dc_status dc_jpeg_put(dc_job *j, const char *path, const dc_image *m, int quality)
{
    compressor *c = DC_NEW(&j->scratch, compressor);
    DC_TRY(dc_jpeg_open(j, NULL, &c->lib));
    dc_job_defer(j, end_compressor, c);
    c->h = c->lib->init_compress();
    return c->h != NULL ? put_with(j, path, m, quality, c->lib, c->h)
                        : dc_fail(j, DC_ERR_NOMEM, NULL);
}
