/* PNG files: what libpng reads of them is what was given; paths that cannot be written. */
#include "formats/image.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/folder.h"
#include "tests/unit/rng.h"

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct picture {
    const char *path;
    dc_image image;
} picture;

static dc_status write_body(dc_job *j, void *arg)
{
    const picture *p = arg;
    return dc_png_put(j, p->path, &p->image);
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

static void test_refused(void)
{
    unsigned char pixel[3] = {0};
    const dc_image image = {.height = 1, .width = 1, .channels = 3, .depth = 8, .pixel = pixel};
    CHECK(strstr(write_it((picture){"/nonexistent/a.png", image}), "No such file") != NULL);
}

/* ---- libpng ---------------------------------------------------------------------------------- */

#if __has_include(<png.h>)
#include <png.h>

typedef int begin_read(png_image *image, const char *path);
typedef int finish_read(png_image *image, const void *background, void *to, int32_t row_stride,
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

static void check_read(picture p)
{
    const dc_image *m = &p.image;
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!CHECK(reader.begin(&image, p.path) != 0))
        return;
    CHECK_EQ(image.width, m->width);
    CHECK_EQ(image.height, m->height);
    CHECK_EQ(image.format, (m->channels % 2 == 0 ? PNG_FORMAT_FLAG_ALPHA : 0u) |
                               (m->channels > 2 ? PNG_FORMAT_FLAG_COLOR : 0u));
    const size_t n = (size_t)(m->width * m->height * m->channels);
    unsigned char *got = malloc(n);
    CHECK(reader.finish(&image, NULL, got, 0, NULL) != 0);
    CHECK_EQ(image.warning_or_error, 0);
    CHECK(memcmp(got, m->pixel, n) == 0);
    free(got);
}

/* Of one colour, and of random bytes, which compression makes larger. */
static void test_size(rng *dice, int64_t width, int64_t height, int channels)
{
    const size_t n = (size_t)(width * height * channels);
    unsigned char *pixel = malloc(n);
    const picture p = {folder_path("a.png"), {height, width, channels, 8, pixel}};
    memset(pixel, 0xa5, n);
    CHECK_STR(write_it(p), "");
    check_read(p);
    for (size_t k = 0; k < n; k++)
        pixel[k] = (unsigned char)rng_next(dice);
    CHECK_STR(write_it(p), "");
    check_read(p);
    free(pixel);
}

static void test_sizes(rng *dice)
{
    static const int64_t sizes[][2] = {{1, 1},     {1, 40},    {40, 1},    {7, 5},
                                       {200, 200}, {801, 479}, {16384, 1}, {1, 16384}};
    for (size_t i = 0; i < DC_COUNTOF(sizes); i++)
        for (int channels = 1; channels <= 4; channels++)
            test_size(dice, sizes[i][0], sizes[i][1], channels);
}

static void test_read(rng *dice)
{
    if (!open_reader()) {
        T_SKIP("no libpng16.so.16 (Debian: libpng16-16)");
        return;
    }
    test_sizes(dice);
    dlclose(reader.handle);
}
#else
static void test_read(rng *dice)
{
    DC_UNUSED(dice);
    T_SKIP("no png.h (Debian: libpng-dev)");
}
#endif

int main(int argc, char **argv)
{
    rng dice = {.state = rng_seed(argc, argv, 3)};
    if (!CHECK(folder_make()))
        return t_done();
    test_refused();
    test_read(&dice);
    CHECK(folder_remove());
    return t_done();
}
