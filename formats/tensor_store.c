#include "formats/tensor_store.h"

#include "core/runtime/split.h"

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

/* ---- matrices with their axes the other way round ---- */

/* Rows that are turned together: they fill lines of the caches there, and stay in the near ones here. */
enum { BAND = 1 << 17, FEW = 16, SIDE = 16 };

typedef struct turning {
    const dc_tensor_file *f;
    const dc_tensor_want *want;
    size_t rows, columns, band; /* of the tensor in the file; rows of a band */
    size_t size;                /* of an element */
    char *to;                   /* [columns][rows] */
} turning;

typedef struct two_words {
    uint64_t a, b;
} two_words;

/* to[c * stride + r] = from[r * columns + c]. */
#define TURN(T)                                                                                  \
    static void turn_##T(const void *from, void *to, size_t rows, size_t columns, size_t stride) \
    {                                                                                            \
        const T *x = from;                                                                       \
        T *y = to;                                                                               \
        for (size_t c0 = 0; c0 < columns; c0 += SIDE)                                            \
            for (size_t c = c0; c < columns && c < c0 + SIDE; c++)                               \
                for (size_t r = 0; r < rows; r++)                                                \
                    y[c * stride + r] = x[r * columns + c];                                      \
    }
TURN(uint8_t)
TURN(uint16_t)
TURN(uint32_t)
TURN(uint64_t)
TURN(two_words)
#undef TURN

static dc_status turn_band(dc_job *j, void *ctx, uint32_t i)
{
    const turning *t = ctx;
    const size_t first = i * t->band;
    const size_t rows = t->rows - first < t->band ? t->rows - first : t->band;
    const size_t n = rows * t->columns;
    DC_TRY(dc_job_ended(j));
    void *there = dc_try_realloc(NULL, n * t->size);
    if (there == NULL)
        return dc_fail_memory(j, n * t->size);
    dc_job_defer(j, dc_xfree, there);
    const dc_file_read read = {t->want->tensor, first * t->columns, n, t->want->dtype, there};
    DC_TRY(dc_tensor_file_read(t->f, j, &read, 1));
    char *to = t->to + first * t->size;
    switch (t->size) {
    case 1:
        turn_uint8_t(there, to, rows, t->columns, t->rows);
        break;
    case 2:
        turn_uint16_t(there, to, rows, t->columns, t->rows);
        break;
    case 4:
        turn_uint32_t(there, to, rows, t->columns, t->rows);
        break;
    case 8:
        turn_uint64_t(there, to, rows, t->columns, t->rows);
        break;
    default:
        turn_two_words(there, to, rows, t->columns, t->rows);
        break;
    }
    dc_job_keep(j, there);
    dc_xfree(there);
    return DC_OK;
}

/* Bands on several threads, where there may be any; the whole at once where blocks do not end with rows. */
static dc_status turn(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *w, size_t size,
                      char *to)
{
    const dc_type *type = &w->tensor->type;
    const dc_packing *p = w->tensor->packing;
    turning t = {f, w, (size_t)type->dim[0], (size_t)type->dim[1], .size = size, .to = to};
    DC_ASSERT(!w->packed && size <= sizeof(two_words), "elements of %zu bytes", size);
    if (t.rows == 0 || t.columns == 0)
        return DC_OK;
    t.band = BAND / t.columns / FEW * FEW;
    t.band = t.band < FEW ? FEW : t.band;
    if (w->tensor->whole || (p != NULL && t.columns % (size_t)p->elements != 0))
        t.band = t.rows;
    const size_t bands = (t.rows + t.band - 1) / t.band;
    if (bands > 1 && bands <= UINT32_MAX && (j->opt == NULL || j->opt->threads != 1))
        return dc_split(j, (uint32_t)bands, turn_band, &t);
    for (size_t i = 0; i < bands; i++)
        DC_TRY(turn_band(j, &t, (uint32_t)i));
    return DC_OK;
}

static dc_status read_turned(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *w, size_t n,
                             size_t size, dc_storage *to)
{
    dc_device *dev = to->rt->device;
    if (dev->ops->host)
        return turn(f, j, w, size, to->mem);
    const dc_mark mark = dc_arena_mark(&j->scratch);
    char *here = dc_arena_alloc(&j->scratch, n * size + 1);
    DC_TRY(turn(f, j, w, size, here));
    DC_TRY(dev->ops->upload(dev, j, to->mem, here, n * size));
    dc_arena_rewind(&j->scratch,
                    mark); /* what failed may have left something there for the end of the entry */
    return DC_OK;
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
