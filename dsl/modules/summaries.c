/*
 * Values as summaries, for stdlib/tensorboard and stdlib/show.lua; all of them read a tensor whole.
 *
 *   statistics(op, x, bins [, low, high])   of the finite values: a table { n, nan, above, below, low, high, sum,
 *                                squares, [i] = how many lie in the i-th of equal intervals of [low, high] }
 *   picture(op, x, geometry, low, high)     bytes of pixels; how many values were NaN, infinite, -infinite
 *   png_encode(pixels, width, height, channels)   the bytes of a file
 *   sixel(pixels, width, height)                  of three bytes each: what a terminal shows (formats/sixel.h)
 *   crc32c(bytes)
 *
 * The geometry of a picture: n images of h x w values with c channels (1 grey, 3 colours, 4 colours and alpha), how far
 * the next one of each is in elements (sn, sh, sw, sc), the pixels to each image (height, width), how many images are
 * side by side (columns) and pixels between them (gap), the channels of a pixel (1, 3, 4). Where an image has more values than
 * pixels, a pixel is the mean of those that it covers; where it has fewer, each value is several pixels. A pixel with a NaN in it
 * is magenta, with an infinity red, with one below zero blue; so it is black or white where pixels are grey.
 */
#include "core/base/bits.h"
#include "dsl/base/args.h"
#include "dsl/base/error.h"
#include "dsl/base/run.h"
#include "dsl/modules/modules.h"
#include "formats/crc32c.h"
#include "formats/image.h"
#include "formats/sixel.h"

#include <lauxlib.h>

#include <math.h>
#include <string.h>

/* ---- reading ---------------------------------------------------------------------------------- */

typedef struct values {
    dc_dtype dtype;
    size_t size;
    const char *at;
    int64_t n;
} values;

/* Of the tensor at idx; what is pushed keeps them. */
static values read_values(lua_State *L, dc_dsl *d, int idx, const char *op)
{
    dc_handle *h = dc_handle_check(L, d, idx, op);
    const dc_type t = *dc_handle_type(h);
    if (dc_dtype_is_complex((dc_dtype)t.dtype))
        dc_error_raisef(L, d, DC_ERR_DTYPE_TEXT, op, "real numbers are needed, not %s",
                        dc_dtype_name((dc_dtype)t.dtype));
    return (values){.dtype = (dc_dtype)t.dtype,
                    .size = dc_dtype_size((dc_dtype)t.dtype),
                    .n = dc_type_count(&t),
                    .at = dc_handle_read(L, d, h, op)};
}

static inline double value_at(const values *v, int64_t i)
{
    const char *at = v->at + (size_t)i * v->size;
    float f;
    if (v->dtype == DC_F32) {
        memcpy(&f, at, sizeof f);
        return f;
    }
    return dc_value_of(v->dtype, dc_bits_load(v->dtype, at));
}

/* ---- statistics ------------------------------------------------------------------------------- */

typedef struct statistics {
    int64_t n, nan, above, below; /* finite ones; infinities */
    double low, high, sum, squares;
} statistics;

static statistics gather(const values *v)
{
    statistics s = {.low = INFINITY, .high = -INFINITY};
    for (int64_t i = 0; i < v->n; i++) {
        const double x = value_at(v, i);
        if (!isfinite(x)) {
            s.nan += isnan(x);
            s.above += x > 0;
            s.below += x < 0;
            continue;
        }
        s.n++;
        s.low = x < s.low ? x : s.low;
        s.high = x > s.high ? x : s.high;
        s.sum += x;
        s.squares += x * x;
    }
    if (s.n == 0)
        s.low = s.high = 0;
    return s;
}

/* Halves: the width of the range may be more than the largest number. */
static void count(const values *v, double low, double high, int64_t bins, int64_t *to)
{
    const double width = (high / 2 - low / 2) / (double)bins;
    for (int64_t i = 0; i < v->n; i++) {
        const double x = value_at(v, i);
        if (!isfinite(x) || x < low || x > high)
            continue;
        const double place = width > 0 ? floor((x / 2 - low / 2) / width) : 0;
        to[place < (double)bins ? (int64_t)place : bins - 1]++;
    }
}

static void set_field(lua_State *L, const char *name, double v)
{
    lua_pushnumber(L, v);
    lua_setfield(L, -2, name);
}

static int l_statistics(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    const int64_t bins = luaL_checkinteger(L, 3);
    lua_settop(L, 5);
    luaL_argcheck(L, bins >= 0 && bins <= 1 << 20, 3, "bins");
    const values v = read_values(L, d, 2, op);
    const statistics s = gather(&v);
    const double low = luaL_optnumber(L, 4, s.low), high = luaL_optnumber(L, 5, s.high);
    int64_t *counts = lua_newuserdatauv(L, (size_t)(bins + 1) * sizeof *counts, 0);
    memset(counts, 0, (size_t)(bins + 1) * sizeof *counts);
    if (bins > 0)
        count(&v, low, high, bins, counts);
    lua_createtable(L, (int)bins, 8);
    dc_binding_set_number(L, "n", (uint64_t)s.n);
    dc_binding_set_number(L, "nan", (uint64_t)s.nan);
    dc_binding_set_number(L, "above", (uint64_t)s.above);
    dc_binding_set_number(L, "below", (uint64_t)s.below);
    set_field(L, "low", low);
    set_field(L, "high", high);
    set_field(L, "sum", s.sum);
    set_field(L, "squares", s.squares);
    for (int64_t i = 0; i < bins; i++) {
        lua_pushinteger(L, (lua_Integer)counts[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* ---- pictures --------------------------------------------------------------------------------- */

enum { MOST_PIXELS = 1 << 26 };

typedef struct geometry {
    int64_t n, h, w, c, sn, sh, sw, sc;
    int64_t height, width, columns, gap, channels;
} geometry;

static geometry read_geometry(lua_State *L, int idx)
{
    static const char *const name[] = {"n",  "h",      "w",     "c",       "sn",  "sh",      "sw",
                                       "sc", "height", "width", "columns", "gap", "channels"};
    geometry g;
    int64_t *const to[] = {&g.n,  &g.h,      &g.w,     &g.c,       &g.sn,  &g.sh,      &g.sw,
                           &g.sc, &g.height, &g.width, &g.columns, &g.gap, &g.channels};
    for (size_t i = 0; i < DC_COUNTOF(name); i++) {
        lua_getfield(L, idx, name[i]);
        *to[i] = luaL_checkinteger(L, -1);
        lua_pop(L, 1);
    }
    luaL_argcheck(L,
                  g.n > 0 && g.h > 0 && g.w > 0 && g.height > 0 && g.width > 0 && g.columns > 0 &&
                      g.gap >= 0 && (g.c == 1 || g.c == 3 || g.c == 4) &&
                      (g.channels == 1 || g.channels == 3 || g.channels == 4),
                  idx, "geometry");
    return g;
}

typedef struct painting {
    values v;
    geometry g;
    double low, range;  /* 0: all is black */
    int64_t strange[3]; /* NaN, infinities, those below zero */
} painting;

enum { NONE, IS_NAN, IS_ABOVE, IS_BELOW };

/* The mean of a box of values of one channel, from 0 to 255; *strange: what in it is not finite. */
static double mean(painting *p, int64_t from, const int64_t y[2], const int64_t x[2], int *strange)
{
    const geometry *g = &p->g;
    double sum = 0;
    for (int64_t r = y[0]; r < y[1]; r++)
        for (int64_t k = x[0]; k < x[1]; k++) {
            const double v = value_at(&p->v, from + r * g->sh + k * g->sw);
            const int is = isnan(v) ? IS_NAN : !isinf(v) ? NONE : v > 0 ? IS_ABOVE : IS_BELOW;
            if (is != NONE && (*strange == NONE || is < *strange))
                *strange = is;
            double u = is == NONE && p->range > 0 ? (v - p->low) / p->range * 255 : 0;
            u = u < 0 ? 0 : u > 255 ? 255 : u;
            sum += u;
        }
    return sum / (double)((y[1] - y[0]) * (x[1] - x[0]));
}

static void put_pixel(const geometry *g, const double value[4], int strange, unsigned char *to)
{
    static const unsigned char colour[][3] = {{0}, {255, 0, 255}, {255, 0, 0}, {0, 0, 255}};
    const double alpha = g->c == 4 && g->channels == 3 ? value[3] / 255 : 1;
    for (int64_t k = 0; k < g->channels; k++) {
        const double v = g->c == 1 ? value[0] : value[k];
        if (k == 3)
            to[k] = strange != NONE || g->c < 4 ? 255 : (unsigned char)(value[3] + 0.5);
        else if (strange != NONE)
            to[k] = g->channels == 1 ? (unsigned char)(strange == IS_ABOVE ? 255 : 0)
                                     : colour[strange][k];
        else
            to[k] = (unsigned char)(v * alpha + 0.5);
    }
}

/* Values that pixel i of n covers, of `all`: at least one. */
static void cover(int64_t i, int64_t n, int64_t all, int64_t out[2])
{
    out[0] = i * all / n;
    out[1] = (i + 1) * all / n;
    if (out[1] <= out[0])
        out[1] = out[0] + 1;
}

static void paint(painting *p, int64_t image, unsigned char *to, int64_t row)
{
    const geometry *g = &p->g;
    for (int64_t i = 0; i < g->height; i++) {
        int64_t y[2], x[2];
        cover(i, g->height, g->h, y);
        for (int64_t k = 0; k < g->width; k++) {
            double value[4] = {0};
            int strange = NONE;
            cover(k, g->width, g->w, x);
            for (int64_t c = 0; c < g->c; c++)
                value[c] = mean(p, image * g->sn + c * g->sc, y, x, &strange);
            put_pixel(g, value, strange, to + i * row + k * g->channels);
        }
    }
}

static void count_strange(painting *p)
{
    for (int64_t i = 0; i < p->v.n; i++) {
        const double v = value_at(&p->v, i);
        p->strange[0] += isnan(v);
        p->strange[1] += isinf(v) && v > 0;
        p->strange[2] += isinf(v) && v < 0;
    }
}

static int l_picture(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    luaL_checktype(L, 3, LUA_TTABLE);
    painting p = {.g = read_geometry(L, 3), .low = luaL_checknumber(L, 4)};
    const geometry *g = &p.g;
    const double high = luaL_checknumber(L, 5);
    p.range = high > p.low ? high - p.low : 0;
    p.v = read_values(L, d, 2, op);
    luaL_argcheck(L, g->n * g->h * g->w * g->c == p.v.n, 3, "geometry");
    const int64_t columns = g->columns < g->n ? g->columns : g->n;
    const int64_t rows = (g->n + columns - 1) / columns;
    const double wide = (double)columns * (double)(g->width + g->gap) - (double)g->gap;
    const double high_up = (double)rows * (double)(g->height + g->gap) - (double)g->gap;
    if (wide * high_up > MOST_PIXELS)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "a picture of %.0f x %.0f pixels is too large", wide,
                        high_up);
    const int64_t width = (int64_t)wide, height = (int64_t)high_up, row = width * g->channels;
    luaL_Buffer b;
    unsigned char *to = (unsigned char *)luaL_buffinitsize(L, &b, (size_t)(row * height));
    memset(to, 0, (size_t)(row * height));
    for (int64_t i = 0; i < g->n; i++)
        paint(&p, i,
              to + i / columns * (g->height + g->gap) * row +
                  i % columns * (g->width + g->gap) * g->channels,
              row);
    luaL_pushresultsize(&b, (size_t)(row * height));
    count_strange(&p);
    lua_pushinteger(L, (lua_Integer)width);
    lua_pushinteger(L, (lua_Integer)height);
    for (int i = 0; i < 3; i++)
        lua_pushinteger(L, (lua_Integer)p.strange[i]);
    return 6;
}

/* ---- files ------------------------------------------------------------------------------------ */

typedef struct encoding {
    dc_image image;
    const void *bytes;
    size_t n;
} encoding;

static dc_status encode_body(dc_job *j, void *arg)
{
    encoding *a = arg;
    const void *bytes;
    DC_TRY(dc_png_encode(j, &a->image, &bytes, &a->n));
    a->bytes = memcpy(dc_xalloc(a->n), bytes, a->n);
    return DC_OK;
}

static dc_status sixel_body(dc_job *j, void *arg)
{
    encoding *a = arg;
    dc_text *text = dc_job_text(j);
    dc_sixel_encode(&j->scratch, text, a->image.pixel, (uint32_t)a->image.width,
                    (uint32_t)a->image.height);
    a->n = text->n;
    a->bytes = memcpy(dc_xalloc(a->n), text->s, a->n);
    dc_job_text_end(j, text);
    return DC_OK;
}

static int push_encoded(lua_State *L)
{
    const encoding *a = lua_touserdata(L, 1);
    lua_pushlstring(L, a->bytes, a->n);
    return 1;
}

static int encode(lua_State *L, dc_run_body *body, int channels)
{
    dc_dsl *d = dc_dsl_of(L);
    size_t n;
    const char *pixel = luaL_checklstring(L, 1, &n);
    encoding a = {.image = {.width = luaL_checkinteger(L, 2),
                            .height = luaL_checkinteger(L, 3),
                            .channels = channels,
                            .depth = 8}};
    luaL_argcheck(
        L,
        a.image.width > 0 && a.image.height > 0 && a.image.channels > 0 && a.image.channels <= 4 &&
            (uint64_t)a.image.width * (uint64_t)a.image.height * (uint64_t)a.image.channels == n,
        1, "pixels");
    memcpy(&a.image.pixel, &pixel, sizeof pixel); /* it is read only */
    dc_error_check_of(L, d, dc_run_once(d, body, &a), "image");
    lua_pushcfunction(L, push_encoded);
    lua_pushlightuserdata(L, &a);
    const int status = lua_pcall(L, 1, 1, 0); /* whatever becomes of it, the bytes are freed */
    void *bytes;
    memcpy(&bytes, &a.bytes, sizeof bytes);
    dc_xfree(bytes);
    return status == LUA_OK ? 1 : lua_error(L);
}

static int l_png_encode(lua_State *L)
{
    return encode(L, encode_body, (int)luaL_checkinteger(L, 4));
}

static int l_sixel(lua_State *L)
{
    return encode(L, sixel_body, 3);
}

static int l_crc32c(lua_State *L)
{
    size_t n;
    const char *bytes = luaL_checklstring(L, 1, &n);
    lua_pushinteger(L, (lua_Integer)dc_crc32c_of(bytes, n));
    return 1;
}

static const dc_binding bindings[] = {
    {"statistics", l_statistics, DC_ANY, DC_IN_LIBRARY},
    {"picture", l_picture, DC_ANY, DC_IN_LIBRARY},
    {"png_encode", l_png_encode, DC_ANY, DC_IN_LIBRARY},
    {"sixel", l_sixel, DC_ANY, DC_IN_LIBRARY},
    {"crc32c", l_crc32c, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_summary_bindings = DC_BINDINGS(bindings);
