/*
 * Images and sounds for stdlib/data:
 *
 *   image_read(path, channels)        a tensor u8[h, w, c], of 16 bits u16; channels of 0: those of the file
 *   image_write(path, x, quality)     x: [h, w, c] or [h, w]; quality of 0: PNG
 *   wav_read(path)   sound_read(path) f32[frames, channels], the rate
 *   wav_write(path, x, rate, bits, is_float)
 *   rows_images(paths, fit, height, width, channels)   rows_sounds(paths, frames, channels, rate): rows, the rate
 *   read_file(op, path [, most])      all its bytes, unpacked where it is gzipped; so many at most
 */
#include "dsl/base/args.h"
#include "dsl/base/error.h"
#include "dsl/base/reading.h"
#include "dsl/base/run.h"
#include "dsl/modules/modules.h"
#include "dsl/modules/orders.h"
#include "formats/image.h"
#include "formats/sound.h"

#include <string.h>

/* ---- reading ---------------------------------------------------------------------------------- */

typedef struct taking {
    dc_reading r;
    const char *path;
    int channels;
    dc_wav wav;
} taking;

static dc_status image_body(dc_job *j, void *arg)
{
    taking *a = arg;
    const dc_room room = dc_reading_room(&a->r);
    dc_image m;
    void *to;
    DC_TRY(dc_image_read(j, a->path, NULL, &m));
    dc_job_defer(j, dc_xfree, m.pixel);
    const int channels = a->channels == 0 ? m.channels : a->channels;
    const int64_t dim[] = {m.height, m.width, channels};
    const bool wide = m.depth == 16 && channels == m.channels;
    const dc_type type = dc_type_make(wide ? DC_U16 : DC_U8, 3, dim);
    DC_TRY(room.make(j, room.ctx, &type, &to));
    if (wide)
        memcpy(to, m.pixel, dc_type_bytes(&type));
    else
        DC_TRY(dc_image_fit(j, a->path, &m, DC_FIT_EXACT, m.height, m.width, channels, to));
    return dc_reading_end(&a->r, j);
}

static int l_image_read(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    taking a = {.path = dc_args_text(L, d, 1, "read_image"),
                .channels = (int)luaL_checkinteger(L, 2)};
    luaL_argcheck(L, a.channels >= 0 && a.channels <= 4, 2, "channels");
    a.r = dc_reading_new(L, d, a.path);
    const dc_run_made made = {.out = &a.r.h, .nout = 1};
    dc_error_check_of(L, d, dc_run_again(L, d, image_body, &a, &made), "read_image");
    return 1;
}

static dc_status wav_body(dc_job *j, void *arg)
{
    taking *a = arg;
    const dc_room room = dc_reading_room(&a->r);
    DC_TRY(dc_wav_read(j, a->path, &room, &a->wav));
    return dc_reading_end(&a->r, j);
}

static dc_status sound_body(dc_job *j, void *arg)
{
    taking *a = arg;
    const dc_room room = dc_reading_room(&a->r);
    DC_TRY(dc_sound_read(j, a->path, &room, &a->wav.rate));
    return dc_reading_end(&a->r, j);
}

/* Samples and rate of the file that a body reads. */
static int read_sound(lua_State *L, const char *op, dc_run_body *body)
{
    dc_dsl *d = dc_dsl_of(L);
    taking a = {.path = dc_args_text(L, d, 1, op)};
    a.r = dc_reading_new(L, d, a.path);
    const dc_run_made made = {.out = &a.r.h, .nout = 1};
    dc_error_check_of(L, d, dc_run_again(L, d, body, &a, &made), op);
    lua_pushinteger(L, a.wav.rate);
    return 2;
}

static int l_wav_read(lua_State *L)
{
    return read_sound(L, "read_wav", wav_body);
}

static int l_sound_read(lua_State *L)
{
    return read_sound(L, "read_sound", sound_body);
}

typedef struct slurping {
    const char *path;
    size_t most;
    char *bytes;
    size_t n;
} slurping;

static dc_status slurp_body(dc_job *j, void *arg)
{
    slurping *a = arg;
    return dc_infile_all(j, a->path, a->most, &a->bytes, &a->n);
}

static int push_bytes(lua_State *L)
{
    const slurping *a = lua_touserdata(L, 1);
    lua_pushlstring(L, a->bytes, a->n);
    return 1;
}

static int l_read_file(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    slurping a = {.path = dc_args_text(L, d, 2, op),
                  .most = (size_t)luaL_optinteger(L, 3, PTRDIFF_MAX)};
    dc_error_check_of(L, d, dc_run_once(d, slurp_body, &a), op);
    lua_pushcfunction(L, push_bytes);
    lua_pushlightuserdata(L, &a);
    const int status = lua_pcall(L, 1, 1, 0); /* whatever becomes of it, the bytes are freed */
    dc_xfree(a.bytes);
    return status == LUA_OK ? 1 : lua_error(L);
}

/* ---- writing ---------------------------------------------------------------------------------- */

typedef struct writing {
    dc_rt *rt;
    const char *path;
    dc_image image;
    int quality;
    dc_wav wav;
    const float *samples;
} writing;

static dc_status write_image_body(dc_job *j, void *arg)
{
    const writing *a = arg;
    if (a->rt->check)
        return DC_OK;
    return a->quality == 0 ? dc_png_put(j, a->path, &a->image)
                           : dc_jpeg_put(j, a->path, &a->image, a->quality);
}

static int l_image_write(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    writing a = {.rt = d->rt, .path = dc_args_text(L, d, 1, "write_image")};
    dc_handle *h = dc_handle_check(L, d, 2, "write_image");
    const dc_type t = *dc_handle_type(h);
    a.quality = (int)luaL_checkinteger(L, 3);
    luaL_argcheck(L, (t.rank == 2 || t.rank == 3) && (t.dtype == DC_U8 || t.dtype == DC_U16), 2,
                  "an image");
    a.image = (dc_image){.height = t.dim[0],
                         .width = t.dim[1],
                         .channels = t.rank == 3 ? (int)t.dim[2] : 1,
                         .depth = t.dtype == DC_U8 ? 8 : 16};
    luaL_argcheck(L,
                  a.image.height > 0 && a.image.width > 0 && a.image.height <= DC_IMAGE_SIDE &&
                      a.image.width <= DC_IMAGE_SIDE && a.image.channels > 0 &&
                      a.image.channels <= 4,
                  2, "an image");
    const void *pixel = dc_handle_read(L, d, h, "write_image");
    memcpy(&a.image.pixel, &pixel, sizeof pixel); /* it is read only */
    dc_error_check_of(L, d, dc_run_once(d, write_image_body, &a), "write_image");
    return 0;
}

static dc_status write_wav_body(dc_job *j, void *arg)
{
    const writing *a = arg;
    return a->rt->check ? DC_OK : dc_wav_write(j, a->path, &a->wav, a->samples);
}

static int l_wav_write(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    writing a = {.rt = d->rt, .path = dc_args_text(L, d, 1, "write_wav")};
    dc_handle *h = dc_handle_check(L, d, 2, "write_wav");
    const dc_type t = *dc_handle_type(h);
    luaL_argcheck(L, t.rank == 2 && t.dtype == DC_F32, 2, "samples");
    a.wav = (dc_wav){.frames = t.dim[0],
                     .channels = (int)t.dim[1],
                     .rate = (int)luaL_checkinteger(L, 3),
                     .bits = (int)luaL_checkinteger(L, 4),
                     .is_float = lua_toboolean(L, 5)};
    a.samples = dc_handle_read(L, d, h, "write_wav");
    dc_error_check_of(L, d, dc_run_once(d, write_wav_body, &a), "write_wav");
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------- */

typedef struct listing {
    dc_rows_holder *holder;
    const char *const *path;
    int64_t n, a, b; /* height and width, or frames */
    int fit, channels, rate, found;
} listing;

static dc_status images_body(dc_job *j, void *arg)
{
    listing *a = arg;
    return dc_rows_images(j, a->path, a->n, a->fit, a->a, a->b, a->channels, &a->holder->rows);
}

static dc_status sounds_body(dc_job *j, void *arg)
{
    listing *a = arg;
    return dc_rows_sounds(j, a->path, a->n, a->a, a->channels, a->rate, &a->holder->rows,
                          &a->found);
}

/* The paths of the list at 1; pushes memory that has them, and an empty holder. */
static listing new_listing(lua_State *L, dc_dsl *d, const char *op)
{
    listing a = {0};
    luaL_checktype(L, 1, LUA_TTABLE);
    a.n = (int64_t)lua_rawlen(L, 1);
    const char **path = lua_newuserdatauv(L, (size_t)a.n * sizeof *path + 1, 0);
    for (int64_t i = 0; i < a.n; i++) {
        lua_rawgeti(L, 1, i + 1);
        path[i] = dc_args_text(L, d, -1, op); /* the list keeps it */
        lua_pop(L, 1);
    }
    a.path = path;
    a.holder = dc_udata_new(L, &dc_rows_type, sizeof *a.holder, 0);
    return a;
}

static int l_rows_images(lua_State *L)
{
    static const char *const fits[] = {"exact", "stretch", "crop", NULL};
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 5);
    listing a = new_listing(L, d, "images");
    a.fit = luaL_checkoption(L, 2, "exact", fits);
    a.a = luaL_checkinteger(L, 3);
    a.b = luaL_checkinteger(L, 4);
    a.channels = (int)luaL_checkinteger(L, 5);
    luaL_argcheck(L, a.a >= 0 && a.b >= 0 && a.a <= DC_IMAGE_SIDE && a.b <= DC_IMAGE_SIDE, 3,
                  "sizes");
    luaL_argcheck(L, a.channels >= 0 && a.channels <= 4, 5, "channels");
    dc_error_check_of(L, d, dc_run_once(d, images_body, &a), "images");
    return 1;
}

static int l_rows_sounds(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 4);
    listing a = new_listing(L, d, "sounds");
    a.a = luaL_checkinteger(L, 2);
    a.channels = (int)luaL_checkinteger(L, 3);
    a.rate = (int)luaL_checkinteger(L, 4);
    luaL_argcheck(L, a.a >= 0 && a.channels >= 0 && a.rate >= 0, 2, "sizes");
    dc_error_check_of(L, d, dc_run_once(d, sounds_body, &a), "sounds");
    lua_pushinteger(L, a.found);
    return 2;
}

static const dc_binding bindings[] = {
    {"image_read", l_image_read, DC_ANY, DC_IN_LIBRARY},
    {"image_write", l_image_write, DC_ANY, DC_IN_LIBRARY},
    {"wav_read", l_wav_read, DC_ANY, DC_IN_LIBRARY},
    {"sound_read", l_sound_read, DC_ANY, DC_IN_LIBRARY},
    {"wav_write", l_wav_write, DC_ANY, DC_IN_LIBRARY},
    {"rows_images", l_rows_images, DC_ANY, DC_IN_LIBRARY},
    {"rows_sounds", l_rows_sounds, DC_ANY, DC_IN_LIBRARY},
    {"read_file", l_read_file, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_media_bindings = DC_BINDINGS(bindings);
