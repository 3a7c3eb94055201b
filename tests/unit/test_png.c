/* PNG files: what libpng reads of them is what was given; what deepc declares of libpng; images refused. */
#include "formats/png.h"
#include "formats/png_api.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/folder.h"
#include "tests/unit/rng.h"

#if __has_include(<png.h>)
#include <png.h>
#define SAME(field) \
    _Static_assert(offsetof(dc_png_image, field) == offsetof(png_image, field), "png.h: " #field)
_Static_assert(sizeof(dc_png_image) == sizeof(png_image), "png.h: png_image");
SAME(opaque);
SAME(version);
SAME(width);
SAME(height);
SAME(format);
SAME(flags);
SAME(colormap_entries);
SAME(warning_or_error);
SAME(message);
_Static_assert(DC_PNG_IMAGE_VERSION == PNG_IMAGE_VERSION, "png.h: the version");
_Static_assert(DC_PNG_FORMAT_RGB == PNG_FORMAT_RGB, "png.h: the format");
_Static_assert(sizeof(png_alloc_size_t) == sizeof(size_t), "png.h: sizes");
#endif

typedef int begin_read(dc_png_image *image, const char *path);
typedef int finish_read(dc_png_image *image, const void *background, void *to, int32_t row_stride,
                        void *colormap);

static struct {
    void *handle;
    begin_read *begin;
    finish_read *finish;
} reader;

static bool open_reader(void)
{
    reader.handle = dlopen("libpng16.so.16", RTLD_NOW | RTLD_LOCAL);
    if (reader.handle == NULL)
        return false;
    void *begin = dlsym(reader.handle, "png_image_begin_read_from_file");
    void *finish = dlsym(reader.handle, "png_image_finish_read");
    memcpy(&reader.begin, &begin, sizeof begin);
    memcpy(&reader.finish, &finish, sizeof finish);
    return CHECK(begin != NULL && finish != NULL);
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct picture {
    const char *path;
    uint32_t width, height;
    const unsigned char *rgb;
} picture;

static dc_status write_body(dc_job *j, void *arg)
{
    const picture *p = arg;
    return dc_png_write(j, p->path, p->width, p->height, p->rgb);
}

/* The words of what was refused; "" where it was not. */
static const char *write_it(picture p)
{
    static char words[300];
    static dc_opts opt;
    static dc_log no_log;
    dc_job job;
    dc_job_init(&job, &opt, &no_log);
    words[0] = '\0';
    if (dc_protect(&job, write_body, &p) != DC_OK)
        snprintf(words, sizeof words, "%s: %s", job.err.fact.word[0], job.err.fact.word[1]);
    dc_job_fini(&job);
    return words;
}

static void check_read(picture p)
{
    dc_png_image image = {.version = DC_PNG_IMAGE_VERSION};
    if (!CHECK(reader.begin(&image, p.path) != 0))
        return;
    CHECK_EQ(image.width, p.width);
    CHECK_EQ(image.height, p.height);
    CHECK_EQ(image.format, DC_PNG_FORMAT_RGB);
    const size_t n = (size_t)p.width * p.height * 3;
    unsigned char *got = malloc(n);
    CHECK(reader.finish(&image, NULL, got, 0, NULL) != 0);
    CHECK_EQ(image.warning_or_error, 0);
    CHECK(memcmp(got, p.rgb, n) == 0);
    free(got);
}

/* Of one colour, and of random bytes, which compression makes larger. */
static void test_sizes(rng *dice)
{
    static const uint32_t sizes[][2] = {{1, 1},     {1, 40},    {40, 1},    {7, 5},
                                        {200, 200}, {801, 479}, {16384, 1}, {1, 16384}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint32_t width = sizes[i][0], height = sizes[i][1];
        const size_t n = (size_t)width * height * 3;
        unsigned char *rgb = malloc(n);
        const picture p = {folder_path("a.png"), width, height, rgb};
        memset(rgb, 0xa5, n);
        CHECK_STR(write_it(p), "");
        check_read(p);
        for (size_t k = 0; k < n; k++)
            rgb[k] = (unsigned char)rng_next(dice);
        CHECK_STR(write_it(p), "");
        check_read(p);
        free(rgb);
    }
}

static void test_refused(void)
{
    static const unsigned char rgb[3];
    const char *path = folder_path("none.png");
    CHECK(strstr(write_it((picture){path, 0, 1, rgb}), "an image of 0 x 1 pixels") != NULL);
    CHECK(strstr(write_it((picture){path, 1, 0, rgb}), "an image of 1 x 0 pixels") != NULL);
    CHECK(strstr(write_it((picture){path, 16385, 1, rgb}), "16385 x 1 pixels") != NULL);
    CHECK(strstr(write_it((picture){path, 1, 16385, rgb}), "1 x 16385 pixels") != NULL);
    CHECK(strstr(write_it((picture){"/nonexistent/a.png", 1, 1, rgb}), "No such file") != NULL);
    CHECK(folder_has("none.png", NULL));
}

/* ---- the library ----------------------------------------------------------------------------- */

static void test_no_library(void)
{
    dc_png_lib lib;
    char why[200];
    CHECK(!dc_png_lib_open("libnone.so.7", &lib, why, sizeof why));
    CHECK_STR(why, "no libpng is installed (libnone.so.7; Debian: apt-get install libpng16-16)");
    CHECK(!dc_png_lib_open("libc.so.6", &lib, why, sizeof why));
    CHECK_STR(why, "libc.so.6 has no png_image_write_to_memory: libpng 1.6 is needed");
    CHECK(lib.handle == NULL);
}

int main(int argc, char **argv)
{
    rng dice = {.state = rng_seed(argc, argv, 3)};
    if (!CHECK(folder_make()))
        return t_done();
    test_refused();
    test_no_library();
    if (open_reader()) {
        test_sizes(&dice);
        dlclose(reader.handle);
    } else {
        T_SKIP("no libpng16.so.16 (Debian: libpng16-16)");
    }
    CHECK(folder_remove());
    return t_done();
}
