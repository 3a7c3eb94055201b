/* formats/png_read.c, jpeg.c, image.c, wav.c: damaged files, and images that are written and read again. */
#define _POSIX_C_SOURCE 200809L
#include "formats/image.h"
#include "formats/wav.h"

#include "tests/unit/filekit.h"

#define CORPUS "tests/fuzz/corpus/"

static filekit kit;
static dc_image image; /* read last */
static dc_wav sound;

static dc_status read_image(dc_job *j, void *arg)
{
    DC_UNUSED(arg);
    dc_xfree(image.pixel);
    image = (dc_image){0};
    return dc_image_read(j, kit.path, NULL, &image);
}

static dc_status make_room(dc_job *j, void *ctx, const dc_type *type, void **at)
{
    DC_UNUSED(ctx);
    *at = dc_arena_alloc(&j->scratch, dc_type_bytes(type) + 1);
    return DC_OK;
}

static dc_status read_sound(dc_job *j, void *arg)
{
    const dc_room room = {make_room, NULL};
    DC_UNUSED(arg);
    return dc_wav_read(j, kit.path, &room, &sound);
}

static size_t load(const char *name, unsigned char bytes[4096])
{
    FILE *f = fopen(name, "rb");
    const size_t n = f != NULL ? fread(bytes, 1, 4096, f) : 0;
    if (f != NULL)
        fclose(f);
    CHECK(n > 0);
    return n;
}

static void test_damage(void)
{
    static const char *const pngs[] = {"rgb8", "rgb8-interlaced", "palette8-alpha",
                                       "grey2-interlaced", "rgba16"};
    static const char *const wavs[] = {"i16", "i32-ext", "f64"};
    unsigned char bytes[4096];
    char name[100];
    kit.read = read_image;
    for (size_t i = 0; i < DC_COUNTOF(pngs); i++) {
        snprintf(name, sizeof name, CORPUS "image/%s", pngs[i]);
        const size_t n = load(name, bytes);
        filekit_damage(&kit, bytes, n, true, 400, 21u + (uint32_t)i);
        filekit_write(&kit, bytes, n);
        CHECK_EQ(filekit_read(&kit), DC_OK);
        CHECK(image.width == 9 && image.height == 7);
    }
    kit.read = read_sound;
    for (size_t i = 0; i < DC_COUNTOF(wavs); i++) {
        snprintf(name, sizeof name, CORPUS "wav/%s", wavs[i]);
        const size_t n = load(name, bytes);
        filekit_damage(&kit, bytes, n, true, 800, 31u + (uint32_t)i);
    }
}

static void test_jpeg(void)
{
    unsigned char bytes[4096];
    dc_jpeg_lib *lib;
    kit.read = read_image;
    const size_t n = load(CORPUS "image/jpeg-rgb", bytes);
    filekit_write(&kit, bytes, n);
    if (filekit_read(&kit) != DC_OK) {
        CHECK(strstr(kit.message, "Debian: apt-get install libturbojpeg0") != NULL);
        T_SKIP("libturbojpeg is not installed (Debian: libturbojpeg0)");
        return;
    }
    CHECK(image.width == 9 && image.height == 7 && image.channels == 3);
    filekit_damage(&kit, bytes, n, false, 400, 41u);
    CHECK_EQ(dc_jpeg_open(&kit.job, "libnothing.so.0", &lib), DC_E_FILE);
}

/* Headers that promise more than the file can have. */
static void test_wrong(void)
{
    unsigned char bytes[4096];
    kit.read = read_image;
    filekit_refused(&kit, "GIF89a", 6, "neither a PNG file nor a JPEG file");
    filekit_refused(&kit, "\x89PNG\r\n\x1a\n", 8, "truncated: a chunk of the PNG file is cut off");
    const size_t n = load(CORPUS "image/rgb8", bytes);
    bytes[40] ^= 1;
    filekit_refused(&kit, bytes, n, "a chunk of the PNG file is damaged");
    kit.read = read_sound;
    filekit_refused(&kit, "RIFF    WAVX", 12, "not a WAV file");
    filekit_refused(&kit, "RIFF    WAVE", 12, "the WAV file has no samples");
}

typedef struct writing {
    dc_image m;
    const char *path;
} writing;

static dc_status put_image(dc_job *j, void *arg)
{
    const writing *a = arg;
    return dc_png_put(j, a->path, &a->m);
}

static void test_there_and_back(void)
{
    unsigned char pixel[5 * 6 * 4 * 2];
    for (size_t i = 0; i < sizeof pixel; i++)
        pixel[i] = (unsigned char)(i * 37 ^ i >> 3);
    kit.read = read_image;
    for (int depth = 8; depth <= 16; depth += 8)
        for (int channels = 1; channels <= 4; channels++) {
            writing w = {{5, 6, channels, depth, pixel}, kit.path};
            CHECK_EQ(filekit_run(&kit, put_image, &w), DC_OK);
            CHECK_EQ(filekit_read(&kit), DC_OK);
            CHECK(image.channels == channels && image.depth == depth);
            CHECK_EQ(memcmp(image.pixel, pixel, (size_t)(30 * channels * depth / 8)), 0);
        }
}

int main(void)
{
    filekit_init(&kit, read_image, NULL);
    test_damage();
    test_jpeg();
    test_wrong();
    test_there_and_back();
    dc_xfree(image.pixel);
    filekit_fini(&kit);
    return t_done();
}
