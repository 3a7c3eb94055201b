/*
 * Pixels to a PNG file: libpng, opened for each file, encodes it in memory; it is written from there.
 */
#include "formats/png.h"

#include "core/base/outfile.h"
#include "formats/png_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *const usual_name = "libpng16.so.16";

bool dc_png_lib_open(const char *name, dc_png_lib *lib, char *why, size_t size)
{
    static const char symbol[] = "png_image_write_to_memory";
    if (name == NULL)
        name = usual_name;
    *lib = (dc_png_lib){.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)};
    if (lib->handle == NULL) {
        snprintf(why, size, "no libpng is installed (%s; Debian: apt-get install libpng16-16)",
                 name);
        return false;
    }
    void *found = dlsym(lib->handle, symbol);
    memcpy(&lib->write_to_memory, &found, sizeof found);
    if (found != NULL)
        return true;
    snprintf(why, size, "%s has no %s: libpng 1.6 is needed", name, symbol);
    dc_png_lib_close(lib);
    return false;
}

void dc_png_lib_close(dc_png_lib *lib)
{
    dlclose(lib->handle);
    *lib = (dc_png_lib){0};
}

/* Bytes that hold any such image: deflate adds less than a thousandth, a chunk 12 to each 8 KiB. */
static size_t most_bytes(uint32_t width, uint32_t height)
{
    const size_t n = (size_t)height * ((size_t)width * 3 + 1);
    return n + n / 64 + 1024;
}

/* *size: the room in `memory`, then what is used of it. While the library is open nothing unwinds. */
static dc_status encode(dc_job *j, const char *path, dc_png_image *image, const unsigned char *rgb,
                        unsigned char *memory, size_t *size)
{
    char why[160];
    dc_png_lib lib;
    if (!dc_png_lib_open(NULL, &lib, why, sizeof why))
        return dc_path_fail(j, DC_ERR_FILE, path, "cannot be written: %s", why);
    const size_t room = *size;
    const bool done = lib.write_to_memory(image, memory, size, 0, rgb, 0, NULL) != 0;
    dc_png_lib_close(&lib);
    if (done && *size <= room)
        return DC_OK;
    if (done)
        return dc_path_fail(j, DC_ERR_FILE, path,
                            "cannot be written: libpng gives %zu bytes for room of %zu", *size,
                            room);
    image->message[sizeof image->message - 1] = '\0';
    if (strstr(image->message, "memory") != NULL) /* libpng says what failed in words alone */
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    return dc_path_fail(j, DC_ERR_FILE, path, "cannot be written: libpng: %s", image->message);
}

dc_status dc_png_write(dc_job *j, const char *path, uint32_t width, uint32_t height,
                       const unsigned char *rgb)
{
    enum { MOST = 1 << 14 };
    if (width == 0 || height == 0 || width > MOST || height > MOST)
        return dc_failf(j, DC_ERR_ARG, NULL, "an image of %u x %u pixels", width, height);
    dc_png_image image = {.version = DC_PNG_IMAGE_VERSION,
                          .width = width,
                          .height = height,
                          .format = DC_PNG_FORMAT_RGB};
    dc_outfile *f;
    DC_TRY(dc_outfile_open(j, path, &f)); /* first: a path that is refused needs no library */
    size_t size = most_bytes(width, height);
    unsigned char *memory = dc_arena_alloc(&j->scratch, size);
    DC_TRY(encode(j, path, &image, rgb, memory, &size));
    DC_TRY(dc_outfile_write(f, memory, size));
    return dc_outfile_commit(f);
}
