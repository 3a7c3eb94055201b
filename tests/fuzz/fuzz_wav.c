/* A sound. */
#include "formats/wav.h"

#include "tests/fuzz/fuzz.h"

static dc_status make_room(dc_job *j, void *ctx, const dc_type *type, void **at)
{
    DC_UNUSED(ctx);
    *at = dc_arena_alloc(&j->scratch, dc_type_bytes(type) + 1);
    return DC_OK;
}

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    const dc_room room = {make_room, NULL};
    dc_wav w;
    return dc_wav_read(j, fuzz_file(in->at, in->n), &room, &w);
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
