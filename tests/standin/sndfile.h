/* A libsndfile that lies: what the next file is said to be, and what is decoded of it. */
#ifndef DC_TESTS_STANDIN_SNDFILE_H
#define DC_TESTS_STANDIN_SNDFILE_H

#include <stdint.h>

typedef struct sndfile_lie {
    int64_t frames;
    int channels, rate;
    int64_t more;     /* frames that are said to be decoded beyond those that are asked for */
    int64_t have;     /* frames that there are; -1: without end */
    int error;        /* after decoding */
    int refuses;      /* the file, */
    const char *text; /* for this reason */
} sndfile_lie;

void sndfile_tell(const sndfile_lie *lie);
int sndfile_left_open(void);

#endif
