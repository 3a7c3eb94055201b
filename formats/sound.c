#define _POSIX_C_SOURCE 200809L
#include "formats/sound.h"

#include "core/base/heap.h"
#include "core/base/path.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of sndfile.h; the same since libsndfile 1.0 (libsndfile.so.1). */
enum { SFM_READ = 0x10 };

typedef struct sf_info {
    int64_t frames;
    int rate, channels, format, sections, seekable;
} sf_info;

typedef void *sf_open_fn(int fd, int mode, sf_info *info, int close_desc);
typedef const char *sf_text_fn(void *decoder);

enum {
    PIECE = 1 << 14, /* frames that are decoded between two looks at the job */
    MOST = 1 << 13,  /* frames that a byte stands for: less in a block of silence */
    CHANNELS = 1024  /* that the library knows */
};

#define fail(...) dc_path_fail(j, DC_ERR_FORMAT, path, __VA_ARGS__)

static bool find(void *library, const char *symbol, void *at)
{
    void *found = dlsym(library, symbol);
    memcpy(at, &found, sizeof found);
    return found != NULL;
}

static const char *reason(const char *words)
{
    return words != NULL ? words : "libsndfile does not say how";
}

/* What the library says is not trusted further than memory goes: its numbers are looked at where they come in. */
static dc_status check_info(dc_job *j, const char *path, const sf_info *info, int64_t bytes,
                            dc_sound *s)
{
    if (info->channels < 1 || info->channels > CHANNELS || info->rate < 1 || info->frames < 0)
        return fail("the format of the %s file is damaged", s->name);
    s->channels = info->channels;
    s->rate = info->rate;
    s->frames = info->frames == 0 || info->frames == INT64_MAX ? -1 : info->frames;
    s->most = bytes < INT64_MAX / MOST ? bytes * MOST : INT64_MAX;
    if (s->frames > s->most)
        return fail("%" PRId64 " frames are declared, more than %" PRId64 " bytes can hold",
                    s->frames, bytes);
    return DC_OK;
}

static dc_status open_decoder(dc_job *j, const char *path, int64_t bytes, dc_sound *s)
{
    static const char library[] = "libsndfile.so.1";
    sf_open_fn *open;
    sf_text_fn *text;
    sf_info info = {0};
    s->library = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (s->library == NULL)
        return dc_path_fail(j, DC_ERR_FILE, path,
                            "%s needs libsndfile (%s; Debian: apt-get install libsndfile1)",
                            s->name, library);
    if (!find(s->library, "sf_open_fd", &open) || !find(s->library, "sf_strerror", &text) ||
        !find(s->library, "sf_readf_float", &s->read) || !find(s->library, "sf_error", &s->error) ||
        !find(s->library, "sf_close", &s->close))
        return dc_path_fail(j, DC_ERR_FILE, path, "%s is not libsndfile 1", library);
    s->decoder = open(s->fd, SFM_READ, &info, 0);
    if (s->decoder == NULL)
        return fail("the %s file is damaged: %s", s->name, reason(text(NULL)));
    return check_info(j, path, &info, bytes, s);
}

static dc_status look(dc_job *j, const char *path, int64_t bytes, dc_sound *s)
{
    char magic[4] = {0};
    size_t got;
    DC_TRY(dc_infile_read(j, path, s->fd, 0, magic, sizeof magic, &got));
    s->name = memcmp(magic, "fLaC", 4) == 0 ? "FLAC" : memcmp(magic, "OggS", 4) == 0 ? "Ogg" : NULL;
    if (s->name != NULL)
        return open_decoder(j, path, bytes, s);
    if (memcmp(magic, "RIFF", 4) != 0 && memcmp(magic, "RIFX", 4) != 0 &&
        memcmp(magic, "RF64", 4) != 0)
        return fail("not a WAV, FLAC or Ogg file");
    DC_TRY(dc_wav_look(j, path, s->fd, bytes, &s->wav));
    s->frames = s->wav.frames;
    s->channels = s->wav.channels;
    s->rate = s->wav.rate;
    return DC_OK;
}

dc_status dc_sound_open(dc_job *j, const char *path, dc_sound *out)
{
    struct stat st;
    *out = (dc_sound){.fd = -1};
    DC_TRY(dc_infile_open(j, path, &out->fd, &st));
    const dc_status status = look(j, path, st.st_size, out);
    if (status != DC_OK)
        dc_sound_close(out);
    return status;
}

void dc_sound_close(dc_sound *s)
{
    if (s->decoder != NULL)
        s->close(s->decoder);
    if (s->library != NULL)
        dlclose(s->library);
    if (s->fd >= 0)
        close(s->fd);
    *s = (dc_sound){.fd = -1};
}

/* Decodes up to `frames`; *done is how many there were. */
static dc_status decode(dc_job *j, const char *path, const dc_sound *s, int64_t frames, float *to,
                        int64_t *done)
{
    *done = 0;
    while (*done < frames) {
        DC_TRY(dc_job_ended(j));
        const int64_t want = dc_min_i64(frames - *done, PIECE);
        const int64_t got = s->read(s->decoder, to + *done * s->channels, want);
        if (got < 0 || got > want)
            return fail("libsndfile decodes %" PRId64 " of %" PRId64 " frames", got, want);
        if (got == 0)
            break;
        *done += got;
    }
    return s->error(s->decoder) == 0 ? DC_OK : fail("the %s file is damaged", s->name);
}

static dc_status check_end(dc_job *j, const char *path, const dc_sound *s, int64_t done)
{
    return done >= s->frames
               ? DC_OK
               : fail("truncated: got %" PRId64 " of %" PRId64 " frames", done, s->frames);
}

dc_status dc_sound_samples(dc_job *j, const char *path, const dc_sound *s, int64_t frames,
                           float *to)
{
    int64_t done;
    if (s->name == NULL)
        return dc_wav_samples(j, path, s->fd, &s->wav, frames, to);
    DC_TRY(decode(j, path, s, frames, to, &done));
    if (done < frames)
        DC_TRY(check_end(j, path, s, done));
    memset(to + done * s->channels, 0, (size_t)(frames - done) * (size_t)s->channels * sizeof *to);
    return DC_OK;
}

/* ---- whole files ------------------------------------------------------------------------------ */

typedef struct whole {
    dc_sound sound;
    float *
        sample; /* of those that are decoded: memory for what was decoded, not for what is declared */
} whole;

static void end_whole(void *what)
{
    whole *w = what;
    dc_sound_close(&w->sound);
    dc_xfree(w->sample);
}

static dc_status decode_all(dc_job *j, const char *path, whole *w, int64_t *frames)
{
    const dc_sound *s = &w->sound;
    int64_t room = 0, done = 0, got;
    do {
        const int64_t more = dc_max_i64(room, PIECE);
        const size_t size = (size_t)(room + more) * (size_t)s->channels * sizeof *w->sample;
        float *grown = dc_try_realloc(w->sample, size);
        if (grown == NULL)
            return dc_fail_memory(j, size);
        w->sample = grown;
        room += more;
        DC_TRY(decode(j, path, s, room - done, w->sample + done * s->channels, &got));
        done += got;
        if (done > s->most)
            return fail("libsndfile decodes more frames than the file can hold");
    } while (done == room);
    *frames = done;
    return check_end(j, path, s, done);
}

dc_status dc_sound_read(dc_job *j, const char *path, const dc_room *room, int *rate)
{
    whole *w = DC_NEW(&j->scratch, whole);
    *w = (whole){.sound = {.fd = -1}};
    dc_job_defer(j, end_whole, w);
    DC_TRY(dc_sound_open(j, path, &w->sound));
    const dc_sound *s = &w->sound;
    int64_t frames = s->frames;
    void *to;
    if (s->name != NULL)
        DC_TRY(decode_all(j, path, w, &frames));
    const int64_t dim[] = {frames, s->channels};
    const dc_type type = dc_type_make(DC_F32, 2, dim);
    DC_TRY(room->make(j, room->ctx, &type, &to));
    *rate = s->rate;
    if (s->name == NULL)
        return dc_sound_samples(j, path, s, frames, to);
    memcpy(to, w->sample, dc_type_bytes(&type));
    return DC_OK;
}
