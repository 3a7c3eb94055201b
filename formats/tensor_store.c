#include "formats/tensor_store.h"

#include <string.h>

/* Elements, or bytes of packed ones, that go to a device at once: a multiple of every block's. */
enum { PIECE = 1 << 20 };

static dc_status read_some(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *w, size_t from,
                           size_t n, void *to)
{
    const dc_file_read read = {w->tensor, from, n, w->dtype, to};
    return w->packed ? dc_tensor_file_bytes(f, j, w->tensor, from, n, to)
                     : dc_tensor_file_read(f, j, &read, 1);
}

static dc_status read_by_pieces(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *w,
                                size_t n, size_t size, dc_storage *to)
{
    dc_device *dev = to->rt->device;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    void *piece = dc_arena_alloc(&j->scratch, PIECE * size);
    dc_status status = DC_OK;
    for (size_t at = 0, k; at < n && status == DC_OK; at += k) {
        k = n - at < PIECE ? n - at : PIECE;
        status = read_some(f, j, w, at, k, piece);
        if (status == DC_OK)
            status = dev->ops->upload(dev, j, (char *)to->mem + at * size, piece, k * size);
    }
    if (status == DC_OK) /* what failed may have left something there for the end of the entry */
        dc_arena_rewind(&j->scratch, mark);
    return status;
}

/* to[c][r] = from[r][c], by squares that stay in the near cache. */
static dc_status turn(dc_job *j, const char *from, char *to, size_t rows, size_t columns,
                      size_t size)
{
    enum { SIDE = 32, LOOK = 256 };
    size_t n = 0;
    for (size_t r0 = 0; r0 < rows; r0 += SIDE)
        for (size_t c0 = 0; c0 < columns; c0 += SIDE) {
            if (n++ % LOOK == 0)
                DC_TRY(dc_job_ended(j));
            for (size_t r = r0; r < rows && r < r0 + SIDE; r++)
                for (size_t c = c0; c < columns && c < c0 + SIDE; c++)
                    memcpy(to + (c * rows + r) * size, from + (r * columns + c) * size, size);
        }
    return DC_OK;
}

static dc_status read_turned(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *w, size_t n,
                             size_t size, dc_storage *to)
{
    dc_device *dev = to->rt->device;
    const dc_type *type = &w->tensor->type;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    char *there = dc_arena_alloc(&j->scratch, n * size + 1);
    char *here = dev->ops->host ? to->mem : dc_arena_alloc(&j->scratch, n * size + 1);
    dc_status status = read_some(f, j, w, 0, n, there);
    if (status == DC_OK)
        status = turn(j, there, here, (size_t)type->dim[0], (size_t)type->dim[1], size);
    if (status == DC_OK && !dev->ops->host)
        status = dev->ops->upload(dev, j, to->mem, here, n * size);
    if (status == DC_OK) /* what failed may have left something there for the end of the entry */
        dc_arena_rewind(&j->scratch, mark);
    return status;
}

static dc_status read_one(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *w,
                          dc_storage *to)
{
    const size_t size = w->packed ? 1 : dc_dtype_size(w->dtype);
    const size_t n = w->packed ? (size_t)w->tensor->bytes : (size_t)dc_type_count(&w->tensor->type);
    if (w->turned)
        return read_turned(f, j, w, n, size, to);
    return to->rt->device->ops->host ? read_some(f, j, w, 0, n, to->mem)
                                     : read_by_pieces(f, j, w, n, size, to);
}

/* Those that go straight to the host's memory are read together, the others one by one. */
dc_status dc_tensor_store_read(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *want,
                               dc_storage *const *to, uint32_t n)
{
    dc_file_read *read = DC_NEW_ARRAY(&j->scratch, dc_file_read, n + 1);
    uint32_t together = 0;
    for (uint32_t i = 0; i < n; i++) {
        const dc_tensor_want *w = &want[i];
        const size_t count = (size_t)dc_type_count(&w->tensor->type);
        if (w->turned || w->packed || !to[i]->rt->device->ops->host)
            DC_TRY(read_one(f, j, w, to[i]));
        else
            read[together++] = (dc_file_read){w->tensor, 0, count, w->dtype, to[i]->mem};
    }
    return dc_tensor_file_read(f, j, read, together);
}
