#define _POSIX_C_SOURCE 200809L
#include "formats/wav.h"

#include "core/base/outfile.h"
#include "core/base/path.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { PCM = 1, FLOAT = 3, A_LAW = 6, MU_LAW = 7, EXTENSIBLE = 0xfffe, PIECE = 1 << 14 };

/*
 * Sizes that programs write which do not know it: 0xffffffff, and what is near 2 GiB. The samples go to the end of the file.
 */
enum { UNKNOWN = 0x7f000000 };

static uint64_t get(const unsigned char *p, int n, bool big)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v = v << 8 | p[big ? i : n - 1 - i];
    return v;
}

#define fail(...) dc_path_fail(j, DC_ERR_FORMAT, path, __VA_ARGS__)

static dc_status read_format(dc_job *j, const char *path, const unsigned char *p, size_t n,
                             dc_wav *w)
{
    if (n < 16)
        return fail("the format of the WAV file is damaged");
    int kind = (int)get(p, 2, w->big);
    w->channels = (int)get(p + 2, 2, w->big);
    w->rate = (int)get(p + 4, 4, w->big);
    w->bits = (int)get(p + 14, 2, w->big);
    if (kind == EXTENSIBLE && n >= 26)
        kind = (int)get(p + 24, 2, w->big); /* the first bytes of its GUID */
    w->is_float = kind == FLOAT;
    w->law = kind == A_LAW || kind == MU_LAW ? kind : 0;
    const bool known = kind == PCM     ? w->bits >= 1 && w->bits <= 32
                       : kind == FLOAT ? w->bits == 32 || w->bits == 64
                                       : w->law != 0 && w->bits == 8;
    if (!known)
        return fail("samples of %d bits in format %d, which is not read", w->bits, kind);
    w->bits = (w->bits + 7) / 8 * 8; /* of 12 the highest of 16, the others are zeros */
    if (w->channels < 1 || w->rate < 1 ||
        get(p + 12, 2, w->big) != (uint64_t)(w->channels * w->bits / 8))
        return fail("the format of the WAV file is damaged");
    return DC_OK;
}

/* The samples begin at `at`, `size` bytes of them are declared. */
static dc_status read_length(dc_job *j, const char *path, int64_t at, int64_t size, int64_t length,
                             dc_wav *out)
{
    const int64_t left = length - at;
    if (out->channels == 0)
        return fail("the WAV file has samples before their format");
    out->at = at;
    if (size > left && size >= UNKNOWN && size <= UINT32_MAX)
        size = left;
    if (size > left || size < 0)
        return fail("truncated: got %" PRId64 " of %" PRId64 " bytes of samples", left, size);
    out->frames = size / (out->channels * out->bits / 8);
    return DC_OK;
}

dc_status dc_wav_look(dc_job *j, const char *path, int fd, int64_t length, dc_wav *out)
{
    unsigned char head[40];
    size_t got;
    int64_t wide = -1; /* bytes of samples, of RF64 */
    *out = (dc_wav){0};
    DC_TRY(dc_infile_read(j, path, fd, 0, head, 12, &got));
    out->big = got >= 12 && memcmp(head, "RIFX", 4) == 0;
    const bool large = got >= 12 && memcmp(head, "RF64", 4) == 0;
    if (got < 12 || (memcmp(head, "RIFF", 4) != 0 && !out->big && !large) ||
        memcmp(head + 8, "WAVE", 4) != 0)
        return fail("not a WAV file");
    for (int64_t at = 12; at + 8 <= length;) {
        DC_TRY(dc_infile_read(j, path, fd, at, head, sizeof head, &got));
        if (got < 8)
            break;
        const int64_t size = (int64_t)get(head + 4, 4, out->big);
        if (memcmp(head, "fmt ", 4) == 0) {
            const size_t n = got - 8 < (size_t)size ? got - 8 : (size_t)size;
            DC_TRY(read_format(j, path, head + 8, n, out));
        } else if (large && memcmp(head, "ds64", 4) == 0 && size >= 24 && got >= 32) {
            wide = (int64_t)get(head + 16, 8, false);
        } else if (memcmp(head, "data", 4) == 0) {
            return read_length(j, path, at + 8, size == UINT32_MAX && large ? wide : size, length,
                               out);
        }
        at += 8 + size + size % 2;
    }
    return fail("the WAV file has no samples");
}

/* Of ITU-T G.711, of 16 bits: a sign, three bits of exponent and four of the number, some turned. */
static int expand_law(int law, unsigned p)
{
    const unsigned code = law == A_LAW ? p ^ 0x55 : ~p & 0xff;
    const int exponent = code >> 4 & 7, part = (int)(code & 15) << 4;
    int v;
    if (law == MU_LAW)
        v = ((part / 2 + 0x84) << exponent) - 0x84;
    else
        v = exponent == 0 ? part + 8 : (part + 0x108) << (exponent - 1);
    /* the bit of the sign is set for positive numbers of A-law, for negative ones of mu-law */
    return ((code & 0x80) != 0) == (law == A_LAW) ? v : -v;
}

static float sample(const dc_wav *w, const unsigned char *p)
{
    const int n = w->bits / 8;
    const uint64_t u = get(p, n, w->big);
    const uint32_t narrow = (uint32_t)u;
    double d;
    float f;
    if (w->law != 0)
        return (float)expand_law(w->law, p[0]) / 32768;
    if (w->is_float && n == 4) {
        memcpy(&f, &narrow, sizeof f);
        return f;
    }
    if (w->is_float) {
        memcpy(&d, &u, sizeof d);
        return (float)d;
    }
    if (n == 1)
        return (float)((int)narrow - 128) / 128;
    return (float)((double)(int32_t)(narrow << (32 - w->bits)) / 2147483648.0);
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
