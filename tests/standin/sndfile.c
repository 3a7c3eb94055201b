/* In the place of libsndfile.so.1, for tests/unit/test_sound.c. It writes the samples that were asked for, and no more. */
#include "tests/standin/sndfile.h"

#include <stddef.h>

static sndfile_lie now;
static int open_files;
static int64_t left;

void sndfile_tell(const sndfile_lie *lie)
{
    now = *lie;
    left = lie->have;
}

int sndfile_left_open(void)
{
    return open_files;
}

/* The beginning of SF_INFO. */
typedef struct info {
    int64_t frames;
    int rate, channels, format, sections, seekable;
} info;

void *sf_open_fd(int fd, int mode, info *to, int close_desc);
const char *sf_strerror(void *file);
int64_t sf_readf_float(void *file, float *to, int64_t frames);
int sf_error(void *file);
int sf_close(void *file);

void *sf_open_fd(int fd, int mode, info *to, int close_desc)
{
    (void)fd, (void)mode, (void)close_desc;
    to->frames = now.frames;
    to->channels = now.channels;
    to->rate = now.rate;
    if (now.refuses)
        return NULL;
    open_files++;
    return &now;
}

const char *sf_strerror(void *file)
{
    (void)file;
    return now.text;
}

int64_t sf_readf_float(void *file, float *to, int64_t frames)
{
    (void)file;
    const int64_t n = left < 0 || frames < left ? frames : left;
    for (int64_t i = 0; i < n * now.channels; i++)
        to[i] = 0.5f;
    left -= left < 0 ? 0 : n;
    return n + now.more;
}

int sf_error(void *file)
{
    (void)file;
    return now.error;
}

int sf_close(void *file)
{
    (void)file;
    open_files--;
    return 0;
}
