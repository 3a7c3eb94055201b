/* An image: PNG, or JPEG where libturbojpeg is there. What was read is resampled. */
#include "formats/image.h"

#include "tests/fuzz/fuzz.h"

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    unsigned char small[5 * 4 * 3];
    dc_image m;
    DC_TRY(dc_image_decode(j, "input", in->at, in->n, NULL, &m));
    dc_job_defer(j, dc_xfree, m.pixel);
    if (m.height * m.width > 1 << 20)
        return DC_OK;
    return dc_image_fit(j, "input", &m, DC_FIT_CROP, 5, 4, 3, small);
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
