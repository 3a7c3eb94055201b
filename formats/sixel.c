/*
 * Pixels to Sixel: rows in bands of six, a band once for each colour in it, as characters whose six bits say which of
 * the six pixels of a column have the colour. Registers of colours are defined first.
 */
#include "formats/sixel.h"

#include "core/base/base.h"

#include <string.h>

enum { COLOURS = 256, BAND = 6, SLOTS = 1024 };

/* Colours by their hash, open addressing; `of` is number + 1, 0: empty. */
typedef struct palette {
    uint32_t n, colour[COLOURS], key[SLOTS];
    uint16_t of[SLOTS];
    bool reduced; /* there are more: those of a grid instead */
} palette;

static uint32_t pixel_at(const unsigned char *p)
{
    return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

/* The nearest step of n from 0 to 255. */
static uint32_t step(uint32_t v, uint32_t n)
{
    return (v * (n - 1) + 127) / 255;
}

static uint32_t reduce(uint32_t c)
{
    const uint32_t r = step(c >> 16, 6), g = step(c >> 8 & 255, 7), b = step(c & 255, 6);
    return (r * 255 / 5) << 16 | (g * 255 / 6) << 8 | b * 255 / 5;
}

/* The number of a colour, which is added; -1: there is no room. */
static int find(palette *p, uint32_t colour)
{
    uint32_t slot = colour * 2654435761u >> 22;
    while (p->of[slot] != 0 && p->key[slot] != colour)
        slot = (slot + 1) % SLOTS;
    if (p->of[slot] != 0)
        return p->of[slot] - 1;
    if (p->n == COLOURS)
        return -1;
    p->key[slot] = colour;
    p->of[slot] = (uint16_t)(p->n + 1);
    p->colour[p->n] = colour;
    return (int)p->n++;
}

static int number_of(palette *p, const unsigned char *pixel)
{
    const uint32_t c = pixel_at(pixel);
    return find(p, p->reduced ? reduce(c) : c);
}

/* The numbers of pixels. */
static void gather(palette *p, const unsigned char *rgb, size_t n, unsigned char *to)
{
    for (size_t i = 0; i < n; i++) {
        const int number = number_of(p, rgb + 3 * i);
        if (number < 0) {
            *p = (palette){.reduced = true};
            gather(p, rgb, n, to);
            return;
        }
        to[i] = (unsigned char)number;
    }
}

static void put_run(dc_text *out, char c, uint32_t n)
{
    if (n > 3)
        dc_text_printf(out, "!%u%c", n, c);
    for (; n > 0 && n <= 3; n--)
        dc_text_put(out, &c, 1);
}

/* The pixels of a colour in a band; what is empty at the end is left out. */
static void put_colour(dc_text *out, int colour, const unsigned char *band, uint32_t width,
                       uint32_t rows)
{
    uint32_t run = 0;
    char last = '\0';
    for (uint32_t x = 0; x < width; x++) {
        int bits = 0;
        for (uint32_t y = 0; y < rows; y++)
            bits |= (band[(size_t)y * width + x] == colour) << y;
        const char c = (char)('?' + bits);
        if (c != last) {
            put_run(out, last, run);
            run = 0;
        }
        last = c;
        run++;
    }
    if (last != '?')
        put_run(out, last, run);
}

static void put_band(dc_text *out, int colours, const unsigned char *band, uint32_t width,
                     uint32_t rows)
{
    bool used[COLOURS] = {false};
    bool first = true;
    for (size_t i = 0; i < (size_t)width * rows; i++)
        used[band[i]] = true;
    for (int c = 0; c < colours; c++) {
        if (!used[c])
            continue;
        dc_text_printf(out, "%s#%d", first ? "" : "$", c);
        put_colour(out, c, band, width, rows);
        first = false;
    }
    dc_text_puts(out, "-");
}

static unsigned percent(uint32_t v)
{
    return (v * 100 + 127) / 255;
}

void dc_sixel_encode(dc_arena *a, dc_text *out, const unsigned char *rgb, uint32_t width,
                     uint32_t height)
{
    palette p = {0};
    unsigned char *pixel = dc_arena_alloc(a, (size_t)width * height);
    gather(&p, rgb, (size_t)width * height, pixel);
    dc_text_printf(out, "\033P0;1q\"1;1;%u;%u", width, height);
    for (uint32_t c = 0; c < p.n; c++)
        dc_text_printf(out, "#%u;2;%u;%u;%u", c, percent(p.colour[c] >> 16),
                       percent(p.colour[c] >> 8 & 255), percent(p.colour[c] & 255));
    for (uint32_t y = 0; y < height; y += BAND)
        put_band(out, (int)p.n, pixel + (size_t)y * width, width,
                 height - y < BAND ? height - y : BAND);
    dc_text_puts(out, "\033\\");
}
