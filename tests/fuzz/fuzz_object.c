/* An ELF object of kernels, mapped; its code is not called. */
#include "backends/cpu/loader.h"

#include "tests/fuzz/fuzz.h"

static dc_status body(dc_job *j, void *arg)
{
    static const char *const entry[] = {"k"};
    const fuzz_input *in = arg;
    dc_image *image;
    DC_TRY(dc_loader_load(j, in->at, in->n, entry, 1, &image));
    const char *at = image->entry[0], *base = image->base;
    if (at < base || at >= base + image->bytes)
        fuzz_finding("an entry outside of the image");
    dc_loader_unload(image);
    return DC_OK;
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
