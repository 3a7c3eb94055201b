/* An array of NumPy, or an archive of them. */
#include "formats/npy.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static dc_status make_room(dc_job *j, void *ctx, const dc_type *type, void **at)
{
    DC_UNUSED(ctx);
    if (dc_type_bytes(type) > 1 << 24)
        return dc_fail_memory(j, dc_type_bytes(type));
    *at = dc_arena_alloc(&j->scratch, dc_type_bytes(type) + 1);
    return DC_OK;
}

static void close_npz(void *z)
{
    dc_npz_close(z);
}

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    const dc_room room = {make_room, NULL};
    const char *path = fuzz_file(in->at, in->n);
    dc_npz *z;
    if (in->n == 0 || in->at[0] != 'P')
        return dc_npy_read(j, path, &room, &(int64_t){0});
    DC_TRY(dc_npz_open(j, path, &z));
    dc_job_defer(j, close_npz, z);
    for (uint32_t i = 0; i < dc_npz_count(z) && i < 8; i++)
        DC_TRY(dc_npz_read(z, j, i, &room));
    return DC_OK;
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
