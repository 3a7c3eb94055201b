/*
 * Sounds in WAV files (RIFF WAVE): whole numbers of up to 32 bits, floats of 32 and 64, A-law and mu-law, the extensible header;
 * files beyond 4 GiB (RF64), with the highest byte first (RIFX), and of programs that wrote to a pipe and did not know the length.
 * Samples are f32 from -1 to 1, frames by channels.
 */
#ifndef DC_FORMATS_WAV_H
#define DC_FORMATS_WAV_H

#include "formats/infile.h"

typedef struct dc_wav {
    int64_t frames;
    int channels, rate;
    int bits; /* of a sample in the file; when one is read those of whole bytes */
    bool is_float;
    int law;    /* 6: A-law, 7: mu-law; 0: neither */
    bool big;   /* its highest byte comes first */
    int64_t at; /* where the samples begin */
} dc_wav;

/* What stands in the header. FORMAT where it is no such file, or its data is cut off. */
dc_status dc_wav_look(dc_job *j, const char *path, int fd, int64_t length, dc_wav *out);
dc_status dc_wav_read(dc_job *j, const char *path, const dc_room *room, dc_wav *out);
/* `frames` of them as f32, from the first on; zeros behind the last. */
dc_status dc_wav_samples(dc_job *j, const char *path, int fd, const dc_wav *w, int64_t frames,
                         float *to);

/* bits: 8, 16, 24, 32 whole numbers, clamped; or is_float 32, 64. Whole or not at all. */
dc_status dc_wav_write(dc_job *j, const char *path, const dc_wav *w, const float *samples);

#endif
