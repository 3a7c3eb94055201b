/*
 * Where memory is the host's, all that is wanted is cut into units, which threads take one by one: elements that are read
 * and converted to their place, and bands of rows that are read to memory of the thread, near enough to stay in its cache,
 * and written from there as they are wanted. Other devices get one tensor after the other.
 */
#define _GNU_SOURCE /* madvise */
#include "formats/tensor_store.h"

#include "core/runtime/split.h"
#include "formats/blocks.h"
#include "formats/turn.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Elements, or bytes of packed ones, that are read at once, or go to a device: a multiple of every block's. */
enum { PIECE = 1 << 20 };

/* Elements of rows that are turned together, and rows: they fill lines of the caches. Bytes of rows that are laid out. */
enum { BAND = 1 << 17, FEW = 64, STRIPS = 1 << 18 };

static bool is_of_bytes(const dc_tensor_want *w)
{
    return w->form == DC_FORM_PACKED || w->form == DC_FORM_CODES;
}

static size_t elements_of(const dc_tensor_want *w)
{
    if (w->boxed)
        return dc_box_count(&w->box);
    return is_of_bytes(w) ? (size_t)w->tensor->bytes : (size_t)dc_type_count(&w->tensor->type);
}

static size_t element_size(const dc_tensor_want *w)
{
    return is_of_bytes(w) ? 1 : dc_dtype_size(w->dtype);
}

/*
 * Memory that is about to be written and may be new: its pages are asked for together, since a fault for each one takes as
 * long as writing to it. A wish; systems that do not know it change nothing.
 */
static void expect_writes(char *to, size_t bytes)
{
    enum { WORTH = 1 << 16 };
#ifdef MADV_POPULATE_WRITE
    const size_t page = (size_t)sysconf(_SC_PAGESIZE),
                 before = (page - (uintptr_t)to % page) % page;
    if (bytes >= WORTH && bytes - before >= page)
        madvise(to + before, (bytes - before) / page * page, MADV_POPULATE_WRITE);
#else
    DC_UNUSED(to);
    DC_UNUSED(bytes);
#endif
}

static dc_status read_some(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *w, size_t from,
                           size_t n, void *to)
{
    const dc_file_read read = {w->tensor, from, n, w->dtype, to};
    if (!is_of_bytes(w))
        return dc_tensor_file_read(f, j, &read, 1);
    DC_TRY(dc_tensor_file_bytes(f, j, w->tensor, from, n, to));
    return w->form == DC_FORM_CODES ? dc_tensor_file_numbers(f, j, w->tensor, from, n, to) : DC_OK;
}

/* ---- boxes ------------------------------------------------------------------------------------ */

/* Can its elements be read one by one? */
static bool is_in_order(const dc_tensor_want *w)
{
    return !w->tensor->whole && (w->tensor->packing == NULL || w->tensor->packing->elements == 1);
}

/* Elements from `from` to `from + n - 1` of what is wanted, in the order of the file. */
static dc_status read_range(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *w,
                            size_t from, size_t n, char *to)
{
    size_t i, place, run;
    if (!w->boxed)
        return read_some(f, j, w, from, n, to);
    for (dc_box_walk k = dc_box_begin(&w->box, from, from + n); dc_box_next(&k, &i, &place, &run);)
        DC_TRY(read_some(f, j, w, place, run, to + (i - from) * element_size(w)));
    return DC_OK;
}

static dc_status take_memory(dc_job *j, size_t bytes, char **out)
{
    *out = dc_try_realloc(NULL, bytes + 1);
    if (*out == NULL)
        return dc_fail_memory(j, bytes);
    dc_job_defer(j, dc_xfree, *out);
    return DC_OK;
}

static void give_memory(dc_job *j, char *memory)
{
    dc_job_keep(j, memory);
    dc_xfree(memory);
}

/* A box of elements that cannot be read one by one: by way of all of them. */
static dc_status read_by_all(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *w, char *to)
{
    const size_t n = (size_t)dc_type_count(&w->tensor->type), size = element_size(w);
    size_t i, place, run;
    char *all;
    DC_TRY(take_memory(j, n * size, &all));
    DC_TRY(read_some(f, j, w, 0, n, all));
    for (dc_box_walk k = dc_box_begin(&w->box, 0, elements_of(w));
         dc_box_next(&k, &i, &place, &run);)
        memcpy(to + i * size, all + place * size, run * size);
    give_memory(j, all);
    return DC_OK;
}

static dc_status read_box(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *w, char *to)
{
    return is_in_order(w) ? read_range(f, j, w, 0, elements_of(w), to) : read_by_all(f, j, w, to);
}

/* Is it read at once, by one thread? */
static bool is_one_unit(const dc_tensor_want *w)
{
    return w->boxed && (w->form == DC_FORM_TURNED || !is_in_order(w));
}

static dc_status read_unit_box(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *w,
                               char *to)
{
    char *there;
    if (w->form != DC_FORM_TURNED)
        return read_box(f, j, w, to);
    const size_t rows = (size_t)w->box.dim[0], size = element_size(w);
    DC_TRY(take_memory(j, elements_of(w) * size, &there));
    DC_TRY(read_box(f, j, w, there));
    dc_turn(size, there, rows, (size_t)w->box.dim[1], to, rows);
    give_memory(j, there);
    return DC_OK;
}

/* ---- matrices --------------------------------------------------------------------------------- */

typedef struct matrix {
    size_t rows, columns; /* of the tensor in the file */
    size_t band;          /* rows of one that is read at once */
    size_t bytes;         /* of a row where it has been read */
} matrix;

/* The whole at once where blocks do not end with rows. */
static matrix turned_matrix(const dc_tensor_want *w)
{
    const dc_type *type = &w->tensor->type;
    const dc_packing *p = w->tensor->packing;
    matrix m = {.rows = (size_t)type->dim[0], .columns = (size_t)type->dim[1]};
    m.bytes = m.columns * dc_dtype_size(w->dtype);
    m.band = m.columns > 0 ? BAND / m.columns / FEW * FEW : 0;
    m.band = m.band < FEW ? FEW : m.band;
    if (w->tensor->whole || (p != NULL && m.columns % (size_t)p->elements != 0))
        m.band = m.rows;
    return m;
}

static matrix laid_matrix(const dc_tensor_want *w)
{
    const dc_type *type = &w->tensor->type;
    matrix m = {.rows = (size_t)type->dim[0], .columns = (size_t)type->dim[1]};
    m.bytes = dc_packing_bytes(w->tensor->packing, m.columns);
    const size_t strips = m.bytes > 0 ? STRIPS / (m.bytes * DC_BLOCKS_LANES) : 0;
    m.band = DC_BLOCKS_LANES * (strips > 0 ? strips : 1);
    if (w->tensor->whole)
        m.band = m.rows;
    return m;
}

static void lay_band(const dc_tensor_want *w, const matrix *m, const unsigned char *rows,
                     size_t first, size_t n, char *const *to)
{
    const dc_blocks *b = dc_blocks_find(w->tensor->packing->name);
    const size_t groups = first * (m->columns / (size_t)b->block); /* of 16 rows, times 16 */
    const size_t scale = groups * dc_dtype_size(b->scale);
    const size_t part = (size_t)dc_blocks_words(b) * sizeof(uint32_t); /* of a row */
    char *words = to[0] + groups * part;
    expect_writes(words, n * (m->columns / (size_t)b->block) * part);
    dc_blocks_lay(b, rows, n, m->columns, (uint32_t *)(void *)words, to[1] + scale,
                  b->mins ? to[2] + scale : NULL);
}

/* Rows from `first` on, a band of them. `to` is one place, or those of words, scales and mins. */
static dc_status read_band(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *w,
                           const matrix *m, size_t first, char *const *to)
{
    const size_t rows = m->rows - first < m->band ? m->rows - first : m->band;
    DC_TRY(dc_job_ended(j));
    char *there = dc_try_realloc(NULL, rows * m->bytes + 1);
    if (there == NULL)
        return dc_fail_memory(j, rows * m->bytes);
    dc_job_defer(j, dc_xfree, there);
    if (w->form == DC_FORM_TURNED) {
        const size_t size = dc_dtype_size(w->dtype);
        if (first == 0) /* a band writes to all pages */
            expect_writes(to[0], m->rows * m->bytes);
        DC_TRY(read_some(f, j, w, first * m->columns, rows * m->columns, there));
        dc_turn(size, there, rows, m->columns, to[0] + first * size, m->rows);
    } else {
        DC_TRY(dc_tensor_file_stretch(f, j, w->tensor, first * m->bytes, rows * m->bytes, there));
        lay_band(w, m, (const unsigned char *)there, first, rows, to);
    }
    dc_job_keep(j, there);
    dc_xfree(there);
    return DC_OK;
}

bool dc_tensor_laid_type(const dc_file_tensor *t, dc_tensor_form form, dc_type *out)
{
    const dc_blocks *b = t->packing != NULL ? dc_blocks_find(t->packing->name) : NULL;
    if (b == NULL || t->unread || t->type.rank != 2)
        return false;
    const int64_t strips =
        t->type.dim[0] / DC_BLOCKS_LANES + (t->type.dim[0] % DC_BLOCKS_LANES > 0);
    const int64_t parts = t->type.dim[1] / b->block;
    if (form == DC_FORM_WORDS)
        *out = dc_type_make(DC_U32, 4,
                            (int64_t[]){strips, parts, dc_blocks_words(b), DC_BLOCKS_LANES});
    else
        *out = dc_type_make(b->scale, 3, (int64_t[]){strips, parts, DC_BLOCKS_LANES});
    return form == DC_FORM_WORDS || form == DC_FORM_SCALES || (form == DC_FORM_MINS && b->mins);
}

/* How many of a list belong together. */
static uint32_t entries_of(const dc_tensor_want *w)
{
    if (w->form != DC_FORM_WORDS)
        return 1;
    return dc_blocks_find(w->tensor->packing->name)->mins ? 3 : 2;
}

bool dc_tensor_together(const dc_tensor_want *want, uint32_t n)
{
    for (uint32_t i = 0, k; i < n; i += k) {
        const dc_tensor_form form = want[i].form;
        k = entries_of(&want[i]);
        if (form == DC_FORM_SCALES || form == DC_FORM_MINS || k > n - i)
            return false;
        for (uint32_t m = 1; m < k; m++)
            if (want[i + m].tensor != want[i].tensor || want[i + m].form != form + m)
                return false;
    }
    return true;
}

/* ---- units ------------------------------------------------------------------------------------ */

typedef struct unit {
    uint32_t want;
    size_t first; /* element; row of a matrix */
} unit;

typedef struct reading {
    const dc_tensor_file *f;
    const dc_tensor_want *want;
    char *const *to; /* for each that is wanted */
    size_t elements;
    DC_VEC(unit) unit; /* scratch */
} reading;

static bool is_matrix(const dc_tensor_want *w)
{
    return !w->boxed && (w->form == DC_FORM_TURNED || w->form == DC_FORM_WORDS);
}

static matrix matrix_of(const dc_tensor_want *w)
{
    return w->form == DC_FORM_TURNED ? turned_matrix(w) : laid_matrix(w);
}

static size_t step_of(const dc_tensor_want *w, size_t elements)
{
    return w->tensor->whole || is_one_unit(w) ? elements : PIECE;
}

static dc_status read_unit(dc_job *j, void *ctx, uint32_t i)
{
    const reading *r = ctx;
    const unit *u = &r->unit.at[i];
    const dc_tensor_want *w = &r->want[u->want];
    char *const *to = r->to + u->want;
    if (is_matrix(w)) {
        const matrix m = matrix_of(w);
        return read_band(r->f, j, w, &m, u->first, to);
    }
    if (is_one_unit(w))
        return read_unit_box(r->f, j, w, to[0]);
    const size_t rest = elements_of(w) - u->first, step = step_of(w, rest);
    const size_t n = rest < step ? rest : step, size = element_size(w);
    char *at = to[0] + u->first * size;
    expect_writes(at, n * size);
    return read_range(r->f, j, w, u->first, n, at);
}

static void cut(reading *r, dc_job *j, uint32_t i)
{
    const dc_tensor_want *w = &r->want[i];
    const size_t elements = elements_of(w);
    const matrix m = is_matrix(w) ? matrix_of(w) : (matrix){0};
    const size_t n = is_matrix(w) ? m.rows : elements,
                 step = is_matrix(w) ? m.band : step_of(w, elements);
    for (size_t at = 0; at < n && elements > 0; at += step)
        DC_PUSH_IN(&j->scratch, r->unit, ((unit){i, at}));
    r->elements += elements;
}

static dc_status read_units(dc_job *j, reading *r)
{
    const bool split = r->elements > PIECE && r->unit.n > 1;
    if (split && (j->opt == NULL || j->opt->threads != 1))
        return dc_split(j, r->unit.n, read_unit, r);
    for (uint32_t i = 0; i < r->unit.n; i++) {
        const dc_mark mark = dc_arena_mark(&j->scratch);
        DC_TRY(read_unit(j, r, i));
        dc_arena_rewind(&j->scratch, mark);
    }
    return DC_OK;
}

/* ---- other devices ---------------------------------------------------------------------------- */

static dc_status read_by_pieces(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *w,
                                dc_storage *to)
{
    dc_device *dev = to->rt->device;
    const size_t n = elements_of(w), size = element_size(w);
    void *piece = dc_arena_alloc(&j->scratch, PIECE * size);
    for (size_t at = 0, k; at < n; at += k) {
        k = n - at < PIECE ? n - at : PIECE;
        DC_TRY(read_range(f, j, w, at, k, piece));
        DC_TRY(dev->ops->upload(dev, j, (char *)to->mem + at * size, piece, k * size));
    }
    return DC_OK;
}

static size_t bytes_of(const dc_tensor_want *w)
{
    dc_type t;
    if (w->form == DC_FORM_TURNED || w->boxed)
        return elements_of(w) * element_size(w);
    return dc_tensor_laid_type(w->tensor, w->form, &t) ? dc_type_bytes(&t) : 0;
}

/* A matrix in the host's memory, then there. */
static dc_status read_here(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *w,
                           dc_storage *const *to)
{
    const uint32_t n = entries_of(w);
    char *here[3];
    for (uint32_t i = 0; i < n; i++)
        here[i] = dc_arena_alloc(&j->scratch, bytes_of(&w[i]) + 1);
    reading r = {.f = f, .want = w, .to = here};
    cut(&r, j, 0);
    DC_TRY(read_units(j, &r));
    for (uint32_t i = 0; i < n; i++) {
        dc_device *dev = to[i]->rt->device;
        DC_TRY(dev->ops->upload(dev, j, to[i]->mem, here[i], bytes_of(&w[i])));
    }
    return DC_OK;
}

/* ---- all -------------------------------------------------------------------------------------- */

static void begins(dc_tensor_begin *b, dc_job *j)
{
    if (b->call != NULL)
        b->call(b->arg, j);
    b->call = NULL;
}

dc_status dc_tensor_store_read(const dc_tensor_file *f, dc_job *j, const dc_tensor_want *want,
                               dc_storage *const *to, uint32_t n, dc_tensor_begin begin)
{
    char **mem = DC_NEW_ARRAY(&j->scratch, char *, n + 1);
    reading r = {.f = f, .want = want, .to = mem};
    DC_ASSERT(dc_tensor_together(want, n), "parts of a matrix are not together");
    for (uint32_t i = 0; i < n; i++)
        mem[i] = to[i]->mem;
    for (uint32_t i = 0; i < n; i += entries_of(&want[i])) {
        const dc_tensor_want *w = &want[i];
        if (to[i]->rt->device->ops->host) {
            cut(&r, j, i);
            continue;
        }
        begins(&begin, j);
        const dc_mark mark = dc_arena_mark(&j->scratch); /* what fails may leave something there */
        DC_TRY(is_matrix(w) || is_one_unit(w) ? read_here(f, j, w, to + i)
                                              : read_by_pieces(f, j, w, to[i]));
        dc_arena_rewind(&j->scratch, mark);
    }
    begins(&begin, j);
    return read_units(j, &r);
}
