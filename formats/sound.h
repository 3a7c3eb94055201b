/*
 * Sounds: WAV, which is read here (wav.h); FLAC and Ogg (Vorbis, Opus) through libsndfile, which is opened at run time
 * when one is met. Which one a file is, its first bytes tell.
 */
#ifndef DC_FORMATS_SOUND_H
#define DC_FORMATS_SOUND_H

#include "formats/wav.h"

/* An open file; no memory of ours. */
typedef struct dc_sound {
    int64_t frames; /* as declared; -1: the file does not say */
    int64_t most;   /* of those that are decoded: what the file can hold */
    int channels, rate;
    int fd;
    dc_wav wav;
    const char *name; /* "FLAC", "Ogg"; NULL: WAV */
    void *library, *decoder;
    int64_t (*read)(void *decoder, float *to, int64_t frames);
    int (*error)(void *decoder);
    int (*close)(void *decoder);
} dc_sound;

/* FILE where it cannot be read, or the library is missing; FORMAT where it is none of them, or damaged. */
dc_status dc_sound_open(dc_job *j, const char *path, dc_sound *out);
void dc_sound_close(dc_sound *s);
/* `frames` of them as f32 from -1 to 1, from where reading is; zeros behind the last. Once for an open file. */
dc_status dc_sound_samples(dc_job *j, const char *path, const dc_sound *s, int64_t frames,
                           float *to);
/* All of a file, f32[frames, channels]. */
dc_status dc_sound_read(dc_job *j, const char *path, const dc_room *room, int *rate);

#endif
