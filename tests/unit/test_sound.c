/*
 * formats/sound.c: what libsndfile says of a file is looked at before memory is written by it. A stand-in in its place
 * (tests/standin/sndfile.c) says what it is told to.
 */
#define _POSIX_C_SOURCE 200809L
#include "formats/rows.h"
#include "formats/sound.h"

#include <inttypes.h>
#include <string.h>

#include "tests/standin/sndfile.h"
#include "tests/unit/filekit.h"

static filekit kit;
static dc_type got;

static dc_status make_room(dc_job *j, void *ctx, const dc_type *type, void **at)
{
    DC_UNUSED(ctx);
    got = *type;
    *at = dc_arena_alloc(&j->scratch, dc_type_bytes(type) + 1);
    return DC_OK;
}

static dc_status read_whole(dc_job *j, void *arg)
{
    const dc_room room = {make_room, NULL};
    int rate;
    DC_UNUSED(arg);
    return dc_sound_read(j, kit.path, &room, &rate);
}

static void free_rows(void *r)
{
    dc_rows_free(r);
}

/* As one of several, of 100 frames of two channels. */
static dc_status read_row(dc_job *j, void *arg)
{
    const char *const path[] = {kit.path};
    float to[200];
    dc_rows *rows;
    int rate;
    DC_UNUSED(arg);
    DC_TRY(dc_rows_sounds(j, path, 1, 100, 2, 8000, &rows, &rate));
    dc_job_defer(j, free_rows, rows);
    return rows->get(rows, j, 0, 1, 0, to);
}

static void check_refused(const char *how, const char *words)
{
    printf("%s: %s\n", how, kit.message);
    CHECK_EQ(kit.job.err.status, DC_E_FILE);
    CHECK(strstr(kit.message, words) != NULL);
    CHECK_EQ(sndfile_left_open(), 0);
}

/* Both ways of reading refuse it. */
static void test_lie(const sndfile_lie *lie, const char *words)
{
    sndfile_tell(lie);
    filekit_run(&kit, read_whole, NULL);
    check_refused("whole", words);
    sndfile_tell(lie);
    filekit_run(&kit, read_row, NULL);
    check_refused("row", words);
}

static const sndfile_lie honest = {
    .frames = 100, .channels = 2, .rate = 8000, .have = 100, .text = "a reason"};

static void test_honest(void)
{
    sndfile_tell(&honest);
    CHECK_EQ(filekit_run(&kit, read_whole, NULL), DC_OK);
    CHECK(got.rank == 2 && got.dim[0] == 100 && got.dim[1] == 2);
    sndfile_tell(&honest);
    CHECK_EQ(filekit_run(&kit, read_row, NULL), DC_OK);
    CHECK_EQ(sndfile_left_open(), 0);
}

static void test_lies(void)
{
    static const int channels[] = {0, -1, INT32_MIN, INT32_MAX, 1025};
    static const int64_t more[] = {1, -101, 16384, INT64_MAX - 200, INT64_MIN};
    sndfile_lie lie = honest;
    for (size_t i = 0; i < DC_COUNTOF(channels); i++, lie = honest) {
        lie.channels = channels[i];
        lie.have = 0;
        test_lie(&lie, "the format of the FLAC file is damaged");
    }
    lie.rate = -8000;
    test_lie(&lie, "the format of the FLAC file is damaged");
    lie = honest;
    lie.frames = -5;
    test_lie(&lie, "the format of the FLAC file is damaged");
    lie.frames = INT64_MAX - 1;
    test_lie(&lie, "more than 8 bytes can hold");
    for (size_t i = 0; i < DC_COUNTOF(more); i++) {
        lie = honest;
        lie.more = more[i];
        test_lie(&lie, "libsndfile decodes ");
    }
    lie = honest;
    lie.error = 3;
    test_lie(&lie, "the FLAC file is damaged");
    lie = honest;
    lie.refuses = 1;
    test_lie(&lie, "the FLAC file is damaged: a reason");
    lie.text = NULL;
    test_lie(&lie, "the FLAC file is damaged: libsndfile does not say how");
    lie = honest;
    lie.have = 50;
    test_lie(&lie, "truncated: got 50 of 100 frames");
}

/* Decoding ends, whether the file declares a length or not: with what its bytes can be. */
static void test_endless(void)
{
    static const int64_t frames[] = {0, 100, INT64_MAX};
    for (size_t i = 0; i < DC_COUNTOF(frames); i++) {
        sndfile_lie lie = honest;
        lie.frames = frames[i];
        lie.have = -1;
        sndfile_tell(&lie);
        filekit_run(&kit, read_whole, NULL);
        check_refused("endless", "more frames than the file can hold");
    }
}

int main(void)
{
    filekit_init(&kit, read_whole, NULL);
    filekit_write(&kit, "fLaC1234", 8);
    test_honest();
    test_lies();
    test_endless();
    filekit_fini(&kit);
    return t_done();
}
