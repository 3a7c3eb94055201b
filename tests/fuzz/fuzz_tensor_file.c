/* A file of tensors of any format. */
#include "tests/fuzz/tensors.h"

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    dc_tensor_file *f;
    DC_TRY(dc_tensor_file_open(j, fuzz_file(in->at, in->n), &f));
    dc_tensor_file_defer(j, f);
    return fuzz_use_tensors(j, f, in->n);
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
