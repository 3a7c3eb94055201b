/*
 * Reading safetensors (formats/safetensors.h); writing is in stwrite.c.
 *
 * The header is copied, then decoded where it lies, so names are pointers into the copy. Checks go in
 * the order of the file: length of the header, JSON, each entry by itself, then all of them together.
 *
 * Data is read with pread, straight to where it is wanted, and not through a mapping: both copy each
 * byte once (1 GiB in the page cache takes 0.13 s into cells that are there; into new memory 0.6 s, most
 * of it the faults of its pages, with either), but a mapped file that is truncated meanwhile ends the process
 * with SIGBUS, where pread says how much was there. Tensors that stay in the mapping would save the copy
 * (0.15 s) and keep that danger for as long as they live; a handler of SIGBUS is the process's, not a
 * library's, to have. Parameters are written in place and have to be copied in any case.
 */
#define _GNU_SOURCE
#include "formats/safetensors.h"

#include "core/base/path.h"
#include "core/base/sort.h"
#include "formats/infile.h"
#include "formats/json.h"
#include "formats/tensor_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LENGTH = 8, MOST_HEADER = 100000000 }; /* the second as in the reference implementation */

struct dc_st_file {
    char *path;
    int fd;
    struct stat st;
    char *header;
    int64_t data; /* where it begins */
    DC_VEC(dc_st_tensor) tensor;
    DC_VEC(dc_st_text) text;
    bool has_metadata;
};

void dc_safetensors_close(dc_st_file *f)
{
    if (f == NULL)
        return;
    if (f->fd >= 0)
        close(f->fd);
    dc_xfree(f->header);
    DC_VEC_FREE(f->tensor);
    DC_VEC_FREE(f->text);
    dc_xfree(f->path);
    dc_xfree(f);
}

static void close_file(void *f)
{
    dc_safetensors_close(f);
}

void dc_safetensors_defer(dc_job *j, dc_st_file *f)
{
    dc_job_defer(j, close_file, f);
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

static const char *const dtype_name[] = {
#define DTYPE(id, name, kind, bits, exponent, fraction, finite) #id,
#include "core/base/dtype.def"
};

const char *dc_safetensors_dtype(dc_dtype t)
{
    return t == DC_F8E4M3FN ? "F8_E4M3" : t == DC_F8E5M2 ? "F8_E5M2" : dtype_name[t];
}

/* C128 is ours: the format has C64, of two F32, and no other complex type. */
static bool find_dtype(const char *name, dc_dtype *out)
{
    for (int t = 0; t < DC_DTYPE__ALL; t++)
        if (strcmp(dc_safetensors_dtype((dc_dtype)t), name) == 0) {
            *out = (dc_dtype)t;
            return true;
        }
    return false;
}

const char *dc_safetensors_packing(const char *dtype)
{
    static const char *const names[][2] = {
        {"F8_E8M0", "f8_e8m0"}, {"F8_E4M3FNUZ", "f8_e4m3fnuz"}, {"F8_E5M2FNUZ", "f8_e5m2fnuz"}};
    for (size_t i = 0; i < DC_COUNTOF(names); i++)
        if (strcmp(dtype, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

/* ---- failures -------------------------------------------------------------------------------- */

#define REFUSE(...) dc_path_fail(j, DC_ERR_FORMAT, f->path, __VA_ARGS__)

/* ---- one entry ------------------------------------------------------------------------------- */

/* What is read of an entry. */
typedef struct entry {
    char *dtype;
    int rank; /* -1: no shape yet */
    int64_t dim[DC_MAX_RANK];
    bool has_offsets;
    int64_t begin, end;
} entry;

/* [1, 2, 3]; more axes than we have are counted and not kept. */
static bool read_shape(dc_json *r, entry *e)
{
    if (!dc_json_expect(r, '['))
        return false;
    for (e->rank = 0; !dc_json_accept(r, ']'); e->rank++) {
        int64_t size;
        if ((e->rank > 0 && !dc_json_expect(r, ',')) || !dc_json_whole(r, &size))
            return false;
        if (e->rank < DC_MAX_RANK)
            e->dim[e->rank] = size;
    }
    return true;
}

static bool read_offsets(dc_json *r, entry *e)
{
    e->has_offsets = true;
    return dc_json_expect(r, '[') && dc_json_whole(r, &e->begin) && dc_json_expect(r, ',') &&
           dc_json_whole(r, &e->end) && dc_json_expect(r, ']');
}

/* Behind the '{' of an entry. A false without r->why: *what is wrong with it. */
static bool read_fields(dc_json *r, entry *e, const char **what)
{
    *e = (entry){.rank = -1};
    if (dc_json_accept(r, '}'))
        return true;
    do {
        char *key;
        bool twice, ok;
        if (!dc_json_string(r, &key) || !dc_json_expect(r, ':'))
            return false;
        if (strcmp(key, "dtype") == 0) {
            twice = e->dtype != NULL;
            ok = twice || dc_json_string(r, &e->dtype);
        } else if (strcmp(key, "shape") == 0) {
            twice = e->rank >= 0;
            ok = twice || read_shape(r, e);
        } else if (strcmp(key, "data_offsets") == 0) {
            twice = e->has_offsets;
            ok = twice || read_offsets(r, e);
        } else { /* of newer files; as the reference implementation */
            twice = false;
            ok = dc_json_skip(r);
        }
        if (twice)
            *what = "has a field twice";
        if (twice || !ok)
            return false;
    } while (dc_json_accept(r, ','));
    return dc_json_expect(r, '}');
}

/* Does the entry agree with itself, and its data lie in the file? */
static dc_status check_entry(const dc_st_file *f, dc_job *j, const char *name, const entry *e,
                             dc_st_tensor *out)
{
    const dc_shown_name s = dc_show_name(name);
    dc_dtype dtype;
    if (e->dtype == NULL || e->rank < 0 || !e->has_offsets)
        return REFUSE("tensor '%s' has no %s", s.s,
                      e->dtype == NULL ? "dtype"
                      : e->rank < 0    ? "shape"
                                       : "data_offsets");
    const bool known = find_dtype(e->dtype, &dtype);
    const bool short_float = dc_safetensors_packing(e->dtype) != NULL;
    if (e->begin > e->end || e->end > f->st.st_size - f->data)
        return REFUSE("tensor '%s' has data_offsets %" PRId64 " to %" PRId64 " in %" PRId64
                      " bytes of data",
                      s.s, e->begin, e->end, (int64_t)f->st.st_size - f->data);
    *out = (dc_st_tensor){.name = name, .at = f->data + e->begin, .bytes = e->end - e->begin};
    if (!known)
        out->unread = e->dtype;
    if (!known && !short_float)
        return DC_OK;
    if (short_float)
        dtype = DC_U8;
    if (e->rank > DC_MAX_RANK - (known && dc_dtype_is_complex(dtype))) {
        out->unread = e->dtype;
        out->why = "it has more axes than tensors have here";
        return DC_OK;
    }
    if (!dc_dims_known(e->rank, e->dim) || !dc_dims_fit(e->rank, e->dim, dc_dtype_size(dtype)))
        return REFUSE("tensor '%s' is too large to address", s.s);
    out->type = dc_type_make(dtype, e->rank, e->dim);
    char type[DC_TYPE_TEXT];
    dc_type_print(&out->type, type, sizeof type);
    if ((uint64_t)(e->end - e->begin) != dc_type_bytes(&out->type))
        return REFUSE("tensor '%s' is %.80s, %zu bytes, and has data_offsets %" PRId64
                      " to %" PRId64,
                      s.s, type, dc_type_bytes(&out->type), e->begin, e->end);
    return DC_OK;
}

/* ---- the header ------------------------------------------------------------------------------ */

static bool read_metadata(dc_st_file *f, dc_json *r, const char **what)
{
    if (f->has_metadata) {
        *what = "occurs twice";
        return false;
    }
    f->has_metadata = true;
    if (dc_json_accept(r, '}'))
        return true;
    do {
        char *key, *value;
        if (!dc_json_string(r, &key) || !dc_json_expect(r, ':') || !dc_json_string(r, &value))
            return false;
        DC_PUSH(f->text, ((dc_st_text){key, value}));
    } while (dc_json_accept(r, ','));
    return dc_json_expect(r, '}');
}

static dc_status read_entry(dc_st_file *f, dc_job *j, dc_json *r)
{
    const char *what = NULL;
    char *name;
    entry e;
    bool ok = dc_json_string(r, &name) && dc_json_expect(r, ':');
    const bool is_metadata = ok && strcmp(name, "__metadata__") == 0;
    if (is_metadata && dc_json_peek(r) == 'n') /* null: there are none */
        return dc_json_skip(r) ? DC_OK : REFUSE("header: %s", r->why);
    ok = ok && dc_json_expect(r, '{');
    if (ok)
        ok = is_metadata ? read_metadata(f, r, &what) : read_fields(r, &e, &what);
    if (!ok && what != NULL)
        return is_metadata ? REFUSE("__metadata__ %s", what)
                           : REFUSE("tensor '%s' %s", dc_show_name(name).s, what);
    if (!ok)
        return REFUSE("header: %s", r->why);
    if (is_metadata)
        return DC_OK;
    dc_st_tensor t;
    DC_TRY(check_entry(f, j, name, &e, &t));
    DC_PUSH(f->tensor, t);
    return DC_OK;
}

static dc_status read_header(dc_st_file *f, dc_job *j, dc_json *r)
{
    if (r->n == 0 || r->text[0] != '{')
        return REFUSE("header: does not begin with '{'");
    dc_json_expect(r, '{');
    if (!dc_json_accept(r, '}')) {
        do {
            DC_TRY(dc_job_ended(j));
            DC_TRY(read_entry(f, j, r));
        } while (dc_json_accept(r, ','));
        if (!dc_json_expect(r, '}'))
            return REFUSE("header: %s", r->why);
    }
    return dc_json_end(r) ? DC_OK : REFUSE("header: %s", r->why);
}

/* ---- all entries together -------------------------------------------------------------------- */

static int by_name(const void *x, const void *y)
{
    const dc_st_tensor *a = x, *b = y;
    return strcmp(a->name, b->name);
}

static int by_key(const void *x, const void *y)
{
    const dc_st_text *a = x, *b = y;
    return strcmp(a->key, b->key);
}

/* Empty ones come before what begins at the same place. */
static int by_offset(const void *x, const void *y)
{
    const dc_st_tensor *a = x, *b = y;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    const int64_t m = a->bytes, n = b->bytes;
    return (m > n) - (m < n);
}

/* Every byte belongs to exactly one tensor. */
static dc_status check_places(dc_st_file *f, dc_job *j)
{
    int64_t at = f->data;
    DC_TRY(dc_sort(j, f->tensor.at, f->tensor.n, sizeof *f->tensor.at, by_offset));
    for (uint32_t i = 0; i < f->tensor.n; i++) {
        const dc_st_tensor *t = &f->tensor.at[i];
        if (t->at < at)
            return REFUSE("tensors '%s' and '%s' overlap", dc_show_name(f->tensor.at[i - 1].name).s,
                          dc_show_name(t->name).s);
        if (t->at > at)
            return REFUSE("%" PRId64 " bytes before tensor '%s' belong to no tensor", t->at - at,
                          dc_show_name(t->name).s);
        at = t->at + t->bytes;
    }
    if (at != f->st.st_size)
        return REFUSE("%" PRId64 " bytes at the end belong to no tensor",
                      (int64_t)f->st.st_size - at);
    return DC_OK;
}

static dc_status check_names(dc_st_file *f, dc_job *j)
{
    DC_TRY(dc_sort(j, f->tensor.at, f->tensor.n, sizeof *f->tensor.at, by_name));
    DC_TRY(dc_sort(j, f->text.at, f->text.n, sizeof *f->text.at, by_key));
    for (uint32_t i = 1; i < f->tensor.n; i++)
        if (by_name(&f->tensor.at[i - 1], &f->tensor.at[i]) == 0)
            return REFUSE("tensor '%s' occurs twice", dc_show_name(f->tensor.at[i].name).s);
    for (uint32_t i = 1; i < f->text.n; i++)
        if (by_key(&f->text.at[i - 1], &f->text.at[i]) == 0)
            return REFUSE("__metadata__ '%s' occurs twice", dc_show_name(f->text.at[i].key).s);
    return DC_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* What a file is instead, by its first bytes; NULL: unknown. */
static const char *other_format(const unsigned char *b)
{
    static const struct {
        const char *begin, *is;
    } known[] = {
        {"PK\3\4", "a zip archive, as torch.save and numpy.savez write; in Python, "
                   "safetensors.torch.save_file(model.state_dict(), path) writes one"},
        {"\x80\2", "a pickle, as old torch.save writes; in Python, "
                   "safetensors.torch.save_file(model.state_dict(), path) writes one"},
        {"\x80\4", "a pickle"},
        {"\x93NUMPY", "a NumPy array"},
        {"GGUF", "a GGUF file"},
        {"\x89HDF", "an HDF5 file, as Keras writes"},
        {"\x1f\x8b", "compressed by gzip"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (memcmp(b, known[i].begin, strlen(known[i].begin)) == 0)
            return known[i].is;
    return NULL;
}

static dc_status read_length(dc_st_file *f, dc_job *j, size_t *header)
{
    unsigned char b[LENGTH];
    uint64_t n = 0;
    size_t got;
    DC_TRY(dc_infile_read(j, f->path, f->fd, 0, b, sizeof b, &got));
    if (got < sizeof b)
        return REFUSE("not a safetensors file: %zu bytes long", got);
    for (int i = LENGTH; i-- > 0;)
        n = n << 8 | b[i];
    const char *other = other_format(b);
    if (other != NULL && ((int64_t)n > f->st.st_size - LENGTH || n > MOST_HEADER))
        return REFUSE("not a safetensors file but %s", other);
    if (n > MOST_HEADER)
        return REFUSE("not a safetensors file: a header of %" PRIu64 " bytes", n);
    if ((int64_t)n > f->st.st_size - LENGTH)
        return REFUSE("truncated: got %" PRId64 " of %" PRIu64 " bytes of the header",
                      (int64_t)f->st.st_size - LENGTH, n);
    *header = (size_t)n;
    f->data = LENGTH + (int64_t)n;
    return DC_OK;
}

static dc_status load_header(dc_st_file *f, dc_job *j)
{
    size_t n = 0, got;
    dc_json r;
    DC_TRY(dc_infile_open(j, f->path, &f->fd, &f->st));
    DC_TRY(read_length(f, j, &n));
    f->header = dc_try_realloc(NULL, n + 1);
    if (f->header == NULL)
        return dc_fail_memory(j, n + 1);
    DC_TRY(dc_infile_read(j, f->path, f->fd, LENGTH, f->header, n, &got));
    if (got < n)
        return REFUSE("truncated: got %zu of %zu bytes of the header", got, n);
    dc_json_init(&r, f->header, n);
    DC_TRY(read_header(f, j, &r));
    DC_TRY(check_places(f, j));
    return check_names(f, j);
}

dc_status dc_safetensors_open(dc_job *j, const char *path, dc_st_file **out)
{
    dc_st_file *f = dc_xalloc(sizeof *f);
    f->fd = -1;
    dc_safetensors_defer(j, f);
    f->path = dc_xalloc(strlen(path) + 1);
    strcpy(f->path, path);
    DC_TRY(dc_job_settle(j, f, load_header(f, j)));
    *out = f;
    return DC_OK;
}

const dc_st_tensor *dc_safetensors_tensors(const dc_st_file *f, uint32_t *n)
{
    *n = f->tensor.n;
    return f->tensor.at;
}

const dc_st_text *dc_safetensors_texts(const dc_st_file *f, uint32_t *n)
{
    *n = f->text.n;
    return f->text.at;
}

const dc_st_tensor *dc_safetensors_find(const dc_st_file *f, const char *name)
{
    const dc_st_tensor key = {.name = name};
    return f->tensor.n == 0
               ? NULL
               : bsearch(&key, f->tensor.at, f->tensor.n, sizeof *f->tensor.at, by_name);
}

const char *dc_safetensors_text(const dc_st_file *f, const char *key)
{
    const dc_st_text wanted = {.key = key};
    const dc_st_text *t =
        f->text.n == 0 ? NULL : bsearch(&wanted, f->text.at, f->text.n, sizeof *f->text.at, by_key);
    return t != NULL ? t->value : NULL;
}

dc_status dc_safetensors_readable(const dc_st_file *f, dc_job *j, const dc_st_tensor *t)
{
    if (t->unread == NULL)
        return DC_OK;
    if (t->why != NULL)
        return REFUSE("tensor '%s' is not read: %s", dc_show_name(t->name).s, t->why);
    return REFUSE("tensor '%s' has dtype '%s', which is not read", dc_show_name(t->name).s,
                  dc_show_name(t->unread).s);
}

dc_status dc_safetensors_read(const dc_st_file *f, dc_job *j, const dc_st_tensor *t, size_t from,
                              size_t n, void *to)
{
    size_t got;
    DC_ASSERT(from <= dc_type_bytes(&t->type) && n <= dc_type_bytes(&t->type) - from,
              "%zu bytes from %zu on", n, from);
    DC_TRY(dc_infile_read(j, f->path, f->fd, t->at + (int64_t)from, to, n, &got));
    if (got < n)
        return REFUSE("tensor '%s' has been cut off since the file was opened",
                      dc_show_name(t->name).s);
    if (t->unread == NULL && t->type.dtype == DC_BOOL)
        dc_make_bools(to, n);
    return DC_OK;
}

dc_status dc_safetensors_unchanged(const dc_st_file *f, dc_job *j)
{
    return dc_infile_unchanged(j, f->path, f->fd, &f->st);
}
