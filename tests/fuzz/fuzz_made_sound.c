/*
 * Sounds, mostly valid (made.h): FLAC with every kind of subframe and of residual, either kind of channels, checksums that
 * agree; WAV of every width with other chunks between. libsndfile decodes FLAC: what it makes of valid files has to be the
 * samples. Where it is not installed a file is refused with its name.
 */
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/made.h"

enum { FRAMES = 300, CHANNELS = 8, ORDER = 8 };

typedef struct sound {
    made *m;
    int channels, bits, rate;
    int frames;
    bool is_float;
    int32_t sample[CHANNELS][FRAMES];
    float *want; /* frames by channels */
} sound;

/* ---- samples ---------------------------------------------------------------------------------- */

/* A walk with steps of about so many bits, now and then silence. */
static void choose_samples(sound *s)
{
    made *m = s->m;
    uint32_t state = made_below(m, 256) + 1;
    const int32_t most = (int32_t)((1u << (s->bits - 1)) - 1), least = -most - 1;
    for (int c = 0; c < s->channels; c++) {
        const int step = (int)made_below(m, s->bits < 32 ? (uint32_t)s->bits + 1 : 32);
        const int wasted = made_below(m, 4) == 3 ? (int)made_below(m, (uint32_t)s->bits - 2) : 0;
        int64_t v = 0;
        for (int i = 0; i < s->frames; i++) {
            state = state * 1664525u + 1013904223u;
            v += step == 0 ? 0 : (int64_t)(state >> 1 >> (31 - step)) - (1ll << step) / 2;
            v = v > most ? most : v < least ? least : v;
            s->sample[c][i] = (int32_t)((uint32_t)(int32_t)v >> wasted << wasted);
        }
    }
}

static void expect_samples(sound *s)
{
    s->want = DC_NEW_ARRAY(s->m->arena, float, s->frames * s->channels + 1);
    for (int i = 0; i < s->frames; i++)
        for (int c = 0; c < s->channels; c++)
            s->want[i * s->channels + c] =
                (float)((double)s->sample[c][i] / (double)(1u << (s->bits - 1)));
}

/* ---- bits ------------------------------------------------------------------------------------- */

typedef struct bits {
    made *m;
    unsigned held, n; /* of a byte that is not full */
} bits;

static void put_bits(bits *b, uint64_t v, int n)
{
    while (n-- > 0) {
        b->held = b->held << 1 | (unsigned)(v >> n & 1);
        if (++b->n == 8) {
            made_byte(b->m, b->held);
            b->held = b->n = 0;
        }
    }
}

static void fill_byte(bits *b)
{
    while (b->n > 0)
        put_bits(b, 0, 1);
}

static unsigned crc(const unsigned char *at, size_t n, unsigned polynomial, int width)
{
    unsigned c = 0;
    for (size_t i = 0; i < n; i++) {
        c ^= (unsigned)at[i] << (width - 8);
        for (int k = 0; k < 8; k++)
            c = (c << 1) ^ ((c >> (width - 1) & 1) != 0 ? polynomial : 0);
    }
    return c & ((1u << width) - 1);
}

/* ---- residuals -------------------------------------------------------------------------------- */

static int bits_of(int64_t v)
{
    uint64_t u = v < 0 ? (uint64_t)~v : (uint64_t)v;
    int n = 1;
    for (; u != 0; u >>= 1)
        n++;
    return n;
}

static void put_partition(sound *s, bits *b, const int64_t *r, int n, bool wide)
{
    int most = 1;
    for (int i = 0; i < n; i++)
        most = bits_of(r[i]) > most ? bits_of(r[i]) : most;
    const int width = wide ? 5 : 4, escape = (1 << width) - 1;
    int parameter = most > 3 ? most - 3 : 0;
    if (parameter >= escape || made_below(s->m, 8) == 7) { /* as they are */
        put_bits(b, (unsigned)escape, width);
        put_bits(b, made_number(s->m, (uint64_t)most), 5);
        for (int i = 0; i < n; i++)
            put_bits(b, (uint64_t)r[i], most);
        return;
    }
    parameter = parameter + 1 < escape && made_once_in(s->m, 4) ? parameter + 1 : parameter;
    put_bits(b, (unsigned)parameter, width);
    for (int i = 0; i < n; i++) {
        const uint64_t folded = r[i] < 0 ? (uint64_t)~r[i] * 2 + 1 : (uint64_t)r[i] * 2;
        for (uint64_t q = folded >> parameter; q > 0; q--)
            put_bits(b, 0, 1);
        put_bits(b, 1, 1);
        put_bits(b, folded, parameter);
    }
}

static void put_residual(sound *s, bits *b, const int64_t *r, int n, int order)
{
    const bool wide = made_once_in(s->m, 2);
    int split = 0;
    while (split < 3 && n % (2 << split) == 0 && (n >> (split + 1)) > order &&
           made_once_in(s->m, 2))
        split++;
    put_bits(b, wide, 2);
    put_bits(b, made_number(s->m, (uint64_t)split), 4);
    for (int i = 0, at = order; i < 1 << split; i++) {
        const int end = (i + 1) * (n >> split);
        put_partition(s, b, r + at, end - at, wide);
        at = end;
    }
}

/* ---- subframes -------------------------------------------------------------------------------- */

static void put_head(sound *s, bits *b, unsigned type, int wasted)
{
    put_bits(b, made_number(s->m, type) & 0x7f, 7);
    put_bits(b, wasted > 0, 1);
    if (wasted > 0)
        put_bits(b, 1, wasted);
}

/* What a predictor leaves: fixed ones by repeated differences. */
static void put_fixed(sound *s, bits *b, const int64_t *v, int n, int width, int order)
{
    int64_t r[FRAMES];
    memcpy(r, v, (size_t)n * sizeof *r);
    for (int k = 0; k < order; k++)
        for (int i = n - 1; i > k; i--)
            r[i] -= r[i - 1];
    for (int i = 0; i < order; i++)
        put_bits(b, (uint64_t)v[i], width);
    put_residual(s, b, r, n, order);
}

static void put_linear(sound *s, bits *b, const int64_t *v, int n, int width, int order)
{
    int64_t r[FRAMES], coefficient[ORDER];
    /* so that a residual has 31 bits at most */
    const int room = 28 - width < 10 ? 28 - width : 10, shift = (int)made_below(s->m, 10);
    const int precision = 2 + (int)made_below(s->m, (uint32_t)room - 1);
    for (int k = 0; k < order; k++)
        coefficient[k] = (int64_t)made_below(s->m, 1u << precision) - (1 << (precision - 1));
    for (int i = order; i < n; i++) {
        int64_t sum = 0;
        for (int k = 0; k < order; k++)
            sum += coefficient[k] * v[i - 1 - k];
        r[i] = v[i] - (sum >> shift);
    }
    for (int i = 0; i < order; i++)
        put_bits(b, (uint64_t)v[i], width);
    put_bits(b, (unsigned)precision - 1, 4);
    put_bits(b, (unsigned)shift, 5);
    for (int k = 0; k < order; k++)
        put_bits(b, (uint64_t)coefficient[k], precision);
    put_residual(s, b, r, n, order);
}

static bool is_constant(const int64_t *v, int n)
{
    for (int i = 1; i < n; i++)
        if (v[i] != v[0])
            return false;
    return true;
}

static void put_subframe(sound *s, bits *b, int64_t *v, int n, int width)
{
    made *m = s->m;
    int wasted = 0;
    int64_t any = 0;
    for (int i = 0; i < n; i++)
        any |= v[i];
    if (any != 0 && made_once_in(m, 2))
        while ((any >> wasted & 1) == 0)
            wasted++;
    for (int i = 0; i < n; i++)
        v[i] >>= wasted;
    width -= wasted;
    const int order = (int)made_below(m, 5), deep = 1 + (int)made_below(m, ORDER);
    const uint32_t how = made_below(m, 4);
    if (how == 0 && is_constant(v, n)) {
        put_head(s, b, 0, wasted);
        put_bits(b, (uint64_t)v[0], width);
    } else if (how == 1 && order < n && width + order <= 31) {
        put_head(s, b, 8 + (unsigned)order, wasted);
        put_fixed(s, b, v, n, width, order);
    } else if (how > 1 && deep < n && width <= 26) {
        put_head(s, b, 31 + (unsigned)deep, wasted);
        put_linear(s, b, v, n, width, deep);
    } else {
        put_head(s, b, 1, wasted);
        for (int i = 0; i < n; i++)
            put_bits(b, (uint64_t)v[i], width);
    }
}

/* Channels as they are, or one of two as the difference. */
static void put_channels(sound *s, bits *b, int from, int n, unsigned assignment)
{
    for (int c = 0; c < s->channels; c++) {
        int64_t v[FRAMES];
        for (int i = 0; i < n; i++) {
            const int64_t left = s->sample[0][from + i],
                          right = s->channels > 1 ? s->sample[1][from + i] : 0;
            v[i] = s->sample[c][from + i];
            if ((assignment == 8 && c == 1) || (assignment == 9 && c == 0) ||
                (assignment == 10 && c == 1))
                v[i] = left - right;
            else if (assignment == 10)
                v[i] = (left + right) >> 1;
        }
        const bool side =
            (assignment == 9 && c == 0) || ((assignment == 8 || assignment == 10) && c == 1);
        put_subframe(s, b, v, n, s->bits + side);
    }
}

/* ---- FLAC ------------------------------------------------------------------------------------- */

static void put_number(made *m, uint64_t v) /* as UTF-8 has them */
{
    if (v < 0x80) {
        made_byte(m, (unsigned)v);
    } else {
        made_byte(m, 0xc0 | (unsigned)(v >> 6 & 0x1f));
        made_byte(m, 0x80 | (unsigned)(v & 0x3f));
    }
}

static void put_frame(sound *s, int number, int from, int n)
{
    made *m = s->m;
    bits b = {.m = m};
    const size_t begin = m->n;
    const unsigned assignment =
        s->channels == 2 && made_once_in(m, 2) ? 8 + made_below(m, 3) : (unsigned)s->channels - 1;
    const unsigned depth = s->bits == 8 ? 1 : s->bits == 16 ? 4 : 6;
    const bool wide = made_once_in(m, 2);
    put_bits(&b, 0xfff8, 16);
    put_bits(&b, wide ? 7 : n <= 256 ? 6 : 7, 4);
    put_bits(&b, made_once_in(m, 2) ? 13 : 0, 4);
    const bool rate = (m->at[m->n - 1] & 15) == 13;
    put_bits(&b, made_number(m, assignment), 4);
    put_bits(&b, made_once_in(m, 2) ? depth : 0, 3);
    put_bits(&b, 0, 1);
    put_number(m, made_number(m, (unsigned)number));
    made_be(m, made_number(m, (unsigned)n - 1), wide || n > 256 ? 2 : 1);
    if (rate)
        made_be(m, (unsigned)s->rate, 2);
    made_byte(m, (unsigned)made_number(m, crc(m->at + begin, m->n - begin, 0x07, 8)));
    put_channels(s, &b, from, n, assignment);
    fill_byte(&b);
    made_be(m, made_number(m, crc(m->at + begin, m->n - begin, 0x8005, 16)), 2);
}

static void put_block(made *m, unsigned type, bool last, const char *bytes, size_t n)
{
    made_byte(m, type | (last ? 0x80u : 0));
    made_be(m, made_number(m, n), 3);
    made_put(m, bytes, n);
}

static void make_flac(sound *s)
{
    static const char comment[] = "\4\0\0\0abcd\1\0\0\0\3\0\0\0A=b";
    made *m = s->m;
    bits b = {.m = m};
    s->bits = (int[]){16, 8, 24}[made_below(m, 3)];
    choose_samples(s);
    const int block = s->frames < 16 ? 16 : 16 + (int)made_below(m, (uint32_t)s->frames - 15);
    const uint32_t others = made_below(m, 4);
    made_text(m, "fLaC");
    made_byte(m, others == 0 ? 0x80 : 0);
    made_be(m, 34, 3);
    made_be(m, made_number(m, (unsigned)block), 2);
    made_be(m, made_number(m, (unsigned)block), 2);
    made_be(m, 0, 6);
    put_bits(&b, made_number(m, (unsigned)s->rate), 20);
    put_bits(&b, made_number(m, (unsigned)s->channels - 1), 3);
    put_bits(&b, made_number(m, (unsigned)s->bits - 1), 5);
    put_bits(&b, made_below(m, 8) == 7 ? 0 : made_number(m, (unsigned)s->frames),
             36); /* 0: not known */
    made_be(m, 0, 8);
    made_be(m, 0, 8);
    for (uint32_t i = 1; i <= others; i++)
        if (made_once_in(m, 2))
            put_block(m, 4, i == others, comment, sizeof comment - 1);
        else
            put_block(m, 1, i == others, comment, made_below(m, 10));
    for (int at = 0, i = 0; at < s->frames; at += block, i++)
        put_frame(s, i, at, s->frames - at < block ? s->frames - at : block);
}

/* ---- WAV -------------------------------------------------------------------------------------- */

static void put_sample(sound *s, int c, int i)
{
    const float f = (float)s->sample[c][i] / 8388608.0f;
    const double d = (double)f;
    uint64_t u = (uint64_t)(int64_t)s->sample[c][i];
    if (s->is_float && s->bits == 32) {
        uint32_t narrow;
        memcpy(&narrow, &f, sizeof narrow);
        u = narrow;
    } else if (s->is_float) {
        memcpy(&u, &d, sizeof u);
    } else if (s->bits == 8) {
        u += 128;
    }
    made_le(s->m, u, s->bits / 8);
    if (s->is_float)
        s->want[i * s->channels + c] = f;
}

static void make_wav(sound *s)
{
    made *m = s->m;
    const uint32_t how = made_below(m, 6);
    const bool extended = made_once_in(m, 3);
    s->is_float = how > 3;
    s->bits = s->is_float ? 24 : (int[]){16, 8, 24, 32}[how];
    choose_samples(s);
    expect_samples(s);
    s->bits = s->is_float ? (how == 4 ? 32 : 64) : s->bits;
    const unsigned frame = (unsigned)(s->channels * s->bits / 8);
    const unsigned bytes = frame * (unsigned)s->frames;
    const uint32_t length = made_below(m, 8);
    const bool large = length == 7, stream = length == 6 && bytes % 2 == 0;
    made_text(m, large ? "RF64" : "RIFF");
    made_le(m, large || stream ? UINT32_MAX : made_number(m, bytes + 36), 4);
    made_text(m, "WAVE");
    if (large) {
        made_text(m, "ds64");
        made_le(m, 28, 4);
        made_le(m, bytes + 80, 8);
        made_le(m, made_number(m, bytes), 8);
        made_le(m, (unsigned)s->frames, 8);
        made_le(m, 0, 4);
    }
    for (uint32_t i = made_below(m, 3); i > 0; i--) {
        const uint32_t n = made_below(m, 9);
        made_text(m, "LIST");
        made_le(m, made_number(m, n), 4);
        made_put(m, "123456789", n + n % 2);
    }
    made_text(m, "fmt ");
    made_le(m, made_number(m, extended ? 40 : 16), 4);
    made_le(m, extended ? 0xfffe : s->is_float ? 3 : 1, 2);
    made_le(m, made_number(m, (unsigned)s->channels), 2);
    made_le(m, made_number(m, (unsigned)s->rate), 4);
    made_le(m, (unsigned)s->rate * frame, 4);
    made_le(m, made_number(m, frame), 2);
    made_le(m, made_number(m, (unsigned)s->bits), 2);
    if (extended) {
        made_le(m, 22, 2);
        made_le(m, (unsigned)s->bits, 2);
        made_le(m, 0, 4);
        made_le(m, s->is_float ? 3 : 1, 2);
        made_put(m, "\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
    }
    made_text(m, "data");
    made_le(m, large || stream ? UINT32_MAX : made_number(m, bytes), 4);
    for (int i = 0; i < s->frames; i++)
        for (int c = 0; c < s->channels; c++)
            put_sample(s, c, i);
    made_align(m, 2, 0);
}

/* ---- what is read ----------------------------------------------------------------------------- */

static dc_status read_sound(dc_job *j, sound *s)
{
    const float *got;
    DC_TRY(made_sound_read(j, s->m, s->rate, s->frames, s->channels, &got));
    if (got != NULL && memcmp(got, s->want, (size_t)(s->frames * s->channels) * sizeof *got) != 0)
        fuzz_finding("other samples");
    return DC_OK;
}

static dc_status body(dc_job *j, void *arg)
{
    made m;
    made_begin(&m, &j->scratch, arg);
    sound *s = DC_NEW(&j->scratch, sound);
    s->m = &m;
    const bool wav = made_once_in(&m, 4);
    s->channels = 1 + (int)(made_once_in(&m, 2) ? 1 : made_below(&m, CHANNELS));
    s->rate = 8000 + (int)made_below(&m, 50000);
    s->frames = 1 + (int)made_below(&m, FRAMES);
    if (wav) {
        make_wav(s);
    } else {
        make_flac(s);
        expect_samples(s);
    }
    made_end(&m);
    return read_sound(j, s);
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
