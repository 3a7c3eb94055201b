#define _POSIX_C_SOURCE 200809L
#include "formats/wav.h"

#include "core/base/outfile.h"
#include "core/base/path.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { PCM = 1, FLOAT = 3, EXTENSIBLE = 0xfffe, PIECE = 1 << 14 };

static uint32_t get16(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t get32(const unsigned char *p)
{
    return get16(p) | get16(p + 2) << 16;
}

#define fail(...) dc_path_fail(j, DC_ERR_FORMAT, path, __VA_ARGS__)

static dc_status read_format(dc_job *j, const char *path, const unsigned char *p, size_t n,
                             dc_wav *w)
{
    if (n < 16)
        return fail("the format of the WAV file is damaged");
    uint32_t kind = get16(p);
    w->channels = (int)get16(p + 2);
    w->rate = (int)get32(p + 4);
    w->bits = (int)get16(p + 14);
    if (kind == EXTENSIBLE && n >= 26)
        kind = get16(p + 24); /* the first bytes of its GUID */
    w->is_float = kind == FLOAT;
    const bool known = kind == PCM ? w->bits == 8 || w->bits == 16 || w->bits == 24 || w->bits == 32
                                   : kind == FLOAT && (w->bits == 32 || w->bits == 64);
    if (!known)
        return fail("samples of %d bits in format %u, which is not read", w->bits, kind);
    if (w->channels < 1 || w->rate < 1 || get16(p + 12) != (uint32_t)(w->channels * w->bits / 8))
        return fail("the format of the WAV file is damaged");
    return DC_OK;
}

dc_status dc_wav_look(dc_job *j, const char *path, int fd, int64_t length, dc_wav *out)
{
    unsigned char head[40];
    size_t got;
    *out = (dc_wav){0};
    DC_TRY(dc_infile_read(j, path, fd, 0, head, 12, &got));
    if (got < 12 || memcmp(head, "RIFF", 4) != 0 || memcmp(head + 8, "WAVE", 4) != 0)
        return fail("not a WAV file");
    for (int64_t at = 12; at + 8 <= length;) {
        DC_TRY(dc_infile_read(j, path, fd, at, head, sizeof head, &got));
        if (got < 8)
            break;
        const int64_t size = get32(head + 4);
        if (memcmp(head, "fmt ", 4) == 0) {
            const size_t n = got - 8 < (size_t)size ? got - 8 : (size_t)size;
            DC_TRY(read_format(j, path, head + 8, n, out));
        } else if (memcmp(head, "data", 4) == 0) {
            if (out->channels == 0)
                return fail("the WAV file has samples before their format");
            const int64_t frame = out->channels * out->bits / 8;
            out->at = at + 8;
            if (size > length - out->at)
                return fail("truncated: got %" PRId64 " of %" PRId64 " bytes of samples",
                            length - out->at, size);
            out->frames = size / frame;
            return DC_OK;
        }
        at += 8 + size + size % 2;
    }
    return fail("the WAV file has no samples");
}

static float sample(const dc_wav *w, const unsigned char *p)
{
    double d;
    float f;
    switch (w->bits) {
    case 8:
        return (float)(p[0] - 128) / 128;
    case 16:
        return (float)(int16_t)get16(p) / 32768;
    case 24:
        return (float)((int32_t)((uint32_t)p[0] << 8 | (uint32_t)p[1] << 16 |
                                 (uint32_t)p[2] << 24) >>
                       8) /
               8388608;
    case 64:
        memcpy(&d, p, sizeof d);
        return (float)d;
    default:
        memcpy(&f, p, sizeof f);
        return w->is_float ? f : (float)((double)(int32_t)get32(p) / 2147483648.0);
    }
}

dc_status dc_wav_samples(dc_job *j, const char *path, int fd, const dc_wav *w, int64_t frames,
                         float *to)
{
    unsigned char piece[PIECE];
    const size_t size = (size_t)w->bits / 8;
    const int64_t all = dc_min_i64(frames, w->frames) * w->channels;
    for (int64_t done = 0; done < all;) {
        const int64_t n = dc_min_i64(all - done, (int64_t)(PIECE / size));
        size_t got;
        DC_TRY(dc_infile_read(j, path, fd, w->at + done * (int64_t)size, piece, (size_t)n * size,
                              &got));
        if (got < (size_t)n * size)
            return fail("has become shorter");
        for (int64_t i = 0; i < n; i++)
            to[done + i] = sample(w, piece + (size_t)i * size);
        done += n;
    }
    memset(to + all, 0, (size_t)(frames * w->channels - all) * sizeof *to);
    return DC_OK;
}

dc_status dc_wav_read(dc_job *j, const char *path, const dc_room *room, dc_wav *out)
{
    struct stat st;
    int fd;
    void *to;
    DC_TRY(dc_infile_open(j, path, &fd, &st));
    dc_infile_defer(j, fd);
    DC_TRY(dc_wav_look(j, path, fd, st.st_size, out));
    const int64_t dim[] = {out->frames, out->channels};
    const dc_type type = dc_type_make(DC_F32, 2, dim);
    DC_TRY(room->make(j, room->ctx, &type, &to));
    return dc_wav_samples(j, path, fd, out, out->frames, to);
}

/* ---- writing ---------------------------------------------------------------------------------- */

static void put(unsigned char *p, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = (unsigned char)(v >> (8 * i));
}

/* A sample as the file has it: the nearest, clamped; NaN is silence. */
static void put_sample(const dc_wav *w, float v, unsigned char *p)
{
    const double d = (double)v;
    if (w->is_float && w->bits == 32) {
        memcpy(p, &v, sizeof v);
    } else if (w->is_float) {
        memcpy(p, &d, sizeof d);
    } else {
        const double scale = ldexp(1, w->bits - 1);
        const double r = isnan(d) ? 0 : fmin(fmax(nearbyint(d * scale), -scale), scale - 1);
        put(p, (uint64_t)((int64_t)r + (w->bits == 8 ? 128 : 0)), w->bits / 8);
    }
}

dc_status dc_wav_write(dc_job *j, const char *path, const dc_wav *w, const float *samples)
{
    unsigned char head[44], piece[PIECE];
    const int size = w->bits / 8, frame = size * w->channels;
    const int64_t count = w->frames * w->channels, bytes = count * size;
    dc_outfile *f;
    if (bytes > (int64_t)UINT32_MAX - 100)
        return dc_path_fail(j, DC_ERR_FILE, path,
                            "cannot be written: a WAV file has at most 4 GiB");
    DC_TRY(dc_outfile_open(j, path, &f));
    memcpy(head, "RIFF", 4);
    put(head + 4, (uint64_t)(36 + bytes + bytes % 2), 4);
    memcpy(head + 8, "WAVEfmt ", 8);
    put(head + 16, 16, 4);
    put(head + 20, w->is_float ? FLOAT : PCM, 2);
    put(head + 22, (uint64_t)w->channels, 2);
    put(head + 24, (uint64_t)w->rate, 4);
    put(head + 28, (uint64_t)w->rate * (uint64_t)frame, 4);
    put(head + 32, (uint64_t)frame, 2);
    put(head + 34, (uint64_t)w->bits, 2);
    memcpy(head + 36, "data", 4);
    put(head + 40, (uint64_t)bytes, 4);
    DC_TRY(dc_outfile_write(f, head, sizeof head));
    for (int64_t done = 0; done < count;) {
        const int64_t n = dc_min_i64(count - done, PIECE / size);
        for (int64_t i = 0; i < n; i++)
            put_sample(w, samples[done + i], piece + i * size);
        DC_TRY(dc_outfile_write(f, piece, (size_t)(n * size)));
        done += n;
    }
    if (bytes % 2 != 0)
        DC_TRY(dc_outfile_write(f, "", 1));
    return dc_outfile_commit(f);
}
