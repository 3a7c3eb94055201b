/* A file of tensors: header, places, all elements of all tensors. */
#include "formats/safetensors.h"

#include "tests/fuzz/fuzz.h"

static dc_status read_tensors(dc_job *j, dc_st_file *f, size_t most)
{
    uint32_t n;
    const dc_st_tensor *t = dc_safetensors_tensors(f, &n);
    size_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        const size_t bytes = dc_type_bytes(&t[i].type);
        if (dc_safetensors_find(f, t[i].name) != &t[i])
            fuzz_finding("tensor '%s' is not found by its name", t[i].name);
        if (dc_safetensors_readable(f, j, &t[i]) != DC_OK) {
            j->err = (dc_err){0};
            continue;
        }
        if ((total += bytes) > most)
            fuzz_finding("tensors of %zu bytes in a file of %zu", total, most);
        const dc_mark mark = dc_arena_mark(&j->scratch);
        DC_TRY(dc_safetensors_read(f, j, &t[i], 0, bytes, dc_arena_alloc(&j->scratch, bytes)));
        dc_arena_rewind(&j->scratch, mark);
    }
    return DC_OK;
}

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    dc_st_file *f;
    uint32_t n;
    DC_TRY(dc_safetensors_open(j, fuzz_file(in->at, in->n), &f));
    dc_safetensors_defer(j, f);
    DC_TRY(read_tensors(j, f, in->n));
    const dc_st_text *text = dc_safetensors_texts(f, &n);
    for (uint32_t i = 0; i < n; i++)
        if (dc_safetensors_text(f, text[i].key) == NULL)
            fuzz_finding("text '%s' is not found by its key", text[i].key);
    dc_job_keep(j, f);
    dc_safetensors_close(f);
    return DC_OK;
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
