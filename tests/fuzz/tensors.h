/* What targets do with a file of tensors: header, metadata, places, all elements of all tensors, floats as f32. */
#ifndef DC_TESTS_FUZZ_TENSORS_H
#define DC_TESTS_FUZZ_TENSORS_H

#include "formats/tensor_file.h"

#include "tests/fuzz/fuzz.h"

static inline uint64_t fuzz_walk_meta(dc_meta v)
{
    uint64_t n = 1;
    while (v.kind == DC_META_LIST && v.n > 0)
        n += fuzz_walk_meta(dc_meta_next(&v));
    return n;
}

static inline uint64_t fuzz_walk_tree(const dc_tree *t, int depth)
{
    uint64_t n = 1;
    if (depth > 100)
        fuzz_finding("values in values without end");
    for (uint32_t i = 0; i < t->n && n < 100000; i++)
        n += fuzz_walk_tree(t->item[i], depth + 1);
    return n;
}

static inline dc_status fuzz_read_tensors(dc_job *j, dc_tensor_file *f, size_t most)
{
    uint32_t n;
    const dc_file_tensor *t = dc_tensor_file_list(f, &n);
    int64_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (dc_tensor_file_find(f, t[i].name) != &t[i])
            fuzz_finding("tensor '%s' is not found by its name", t[i].name);
        if (t[i].unread)
            continue;
        /* tensors of some formats share memory, or are unpacked */
        if ((total += t[i].bytes) > (int64_t)most * 1032 + (1 << 30))
            fuzz_finding("tensors of %lld bytes in a file of %zu", (long long)total, most);
        const size_t count = (size_t)dc_type_count(&t[i].type);
        const dc_dtype own = (dc_dtype)t[i].type.dtype;
        const dc_dtype wanted = dc_dtype_is_float(own) ? DC_F32 : own;
        if (count > 1 << 20)
            continue;
        const dc_mark mark = dc_arena_mark(&j->scratch);
        void *to = dc_arena_alloc(&j->scratch, count * dc_dtype_size(wanted) + 1);
        const dc_file_read read = {&t[i], 0, count, wanted, to};
        DC_TRY(dc_tensor_file_read(f, j, &read, 1));
        dc_arena_rewind(&j->scratch, mark);
    }
    return DC_OK;
}

/* All there is in it; `most` bytes were in the file. */
static inline dc_status fuzz_use_tensors(dc_job *j, dc_tensor_file *f, size_t most)
{
    uint32_t n;
    const dc_meta_entry *e = dc_tensor_file_metadata(f, &n);
    uint64_t values = 0;
    for (uint32_t i = 0; i < n; i++)
        values += fuzz_walk_meta(e[i].value);
    if (values > 16 * most + 2048)
        fuzz_finding("%llu values in a file of %zu bytes", (unsigned long long)values, most);
    if (dc_tensor_file_tree(f) != NULL)
        fuzz_walk_tree(dc_tensor_file_tree(f), 0);
    return fuzz_read_tensors(j, f, most);
}

#endif
