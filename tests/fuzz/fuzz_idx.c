/* A file of images or labels, compressed or not. */
#include "formats/idx.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    dc_type t;
    void *data;
    DC_TRY(dc_idx_read(j, fuzz_file(in->at, in->n), &t, &data));
    char *copy = dc_arena_alloc(&j->scratch, dc_type_bytes(&t)); /* all of it is there */
    memcpy(copy, data, dc_type_bytes(&t));
    dc_xfree(data);
    return DC_OK;
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
