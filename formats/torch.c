/*
 * Files of torch.save (https://pytorch.org/docs/stable/notes/serialization.html).
 *
 * New ones are archives: NAME/data.pkl is the pickle, NAME/data/KEY the bytes of each storage, stored. Older ones are five
 * pickles - a number, the version, facts about the machine, the value, the keys of storages - and for each key the number
 * of its elements and their bytes. A storage's bytes are read where they lie.
 */
#define _GNU_SOURCE
#include "core/base/bits.h"
#include "core/base/path.h"
#include "core/base/sort.h"
#include "formats/infile.h"
#include "formats/tensor_formats.h"
#include "formats/torch_impl.h"
#include "formats/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_PICKLE = 1 << 27, FIRST = 1 << 20, MAGIC = 15 };

/* Bytes of one storage. */
typedef struct storage {
    const char *key;
    int64_t at, bytes;
    const dc_zip_entry *packed; /* deflated; NULL: it lies there as it is */
} storage;

typedef struct torch {
    char *path;
    int fd;
    dc_zip *zip; /* NULL: several pickles. Its file is fd */
    struct stat st;
    unsigned char *bytes; /* of the pickle, into which values point */
    dc_torch values;
    DC_VEC(storage) storage; /* sorted by key */
} torch;

#define REFUSE(...) dc_path_fail(j, DC_ERR_FORMAT, f->path, __VA_ARGS__)

static void close_torch(void *file)
{
    torch *f = file;
    if (f->zip == NULL && f->fd >= 0)
        close(f->fd);
    dc_zip_close(f->zip);
    dc_pickle_free(&f->values.pickle);
    DC_VEC_FREE(f->values.form);
    DC_VEC_FREE(f->values.tensor);
    DC_VEC_FREE(f->values.tree_of);
    DC_VEC_FREE(f->values.note);
    DC_VEC_FREE(f->values.entry);
    dc_arena_free(&f->values.arena);
    DC_VEC_FREE(f->storage);
    dc_xfree(f->bytes);
    dc_xfree(f->path);
    dc_xfree(f);
}

/* ---- reading elements ------------------------------------------------------------------------- */

static dc_status read_exactly(const torch *f, dc_job *j, int64_t at, void *to, size_t n)
{
    size_t got;
    DC_TRY(dc_infile_read(j, f->path, f->fd, at, to, n, &got));
    return got == n ? DC_OK : REFUSE("has been cut off since the file was opened");
}

/* The same of a storage that is deflated: what is in front is unpacked, too. */
static dc_status unpack_exactly(const torch *f, dc_job *j, const storage *s, int64_t at, char *to,
                                size_t n)
{
    dc_zip_stream *stream;
    char skipped[1 << 12];
    size_t got;
    DC_TRY(dc_zip_stream_open(f->zip, j, s->packed, &stream));
    for (int64_t left = at; left > 0; left -= (int64_t)got) {
        const size_t most = (size_t)dc_min_i64(left, sizeof skipped);
        DC_TRY(dc_zip_stream_read(stream, j, skipped, most, &got));
        if (got == 0)
            break;
    }
    DC_TRY(dc_zip_stream_read(stream, j, to, n, &got));
    dc_zip_stream_close(stream, j);
    return got == n ? DC_OK : REFUSE("has been cut off since the file was opened");
}

/* Walks through the elements of a tensor in their order. */
typedef struct walk {
    const dc_type *type;
    const int64_t *stride;
    int64_t index[DC_MAX_RANK], at; /* in elements, from its first one on */
} walk;

static walk walk_from(const dc_file_tensor *t, const int64_t *stride, int64_t element)
{
    walk w = {.type = &t->type, .stride = stride};
    for (int i = t->type.rank; i-- > 0;) {
        w.index[i] = element % t->type.dim[i];
        element /= t->type.dim[i];
        w.at += w.index[i] * stride[i];
    }
    return w;
}

static void walk_on(walk *w)
{
    for (int i = w->type->rank; i-- > 0;) {
        w->at += w->stride[i];
        if (++w->index[i] < w->type->dim[i])
            return;
        w->at -= w->stride[i] * w->type->dim[i];
        w->index[i] = 0;
    }
}

/* Elements that are scattered: the stretch of the storage that has them, then each from its place. */
static dc_status read_scattered(const torch *f, dc_job *j, const dc_file_tensor *t, size_t first,
                                size_t n, size_t size, char *to)
{
    const dc_torch_form *form = &f->values.form.at[t->index];
    const int64_t *stride = form->stride;
    int64_t least = INT64_MAX, most = 0;
    walk w = walk_from(t, stride, (int64_t)first);
    for (size_t i = 0; i < n; i++, walk_on(&w)) {
        if (i % 4096 == 0)
            DC_TRY(dc_job_ended(j));
        least = dc_min_i64(least, w.at);
        most = dc_max_i64(most, w.at);
    }
    const size_t bytes = (size_t)(most - least + 1) * size;
    char *stretch = dc_try_realloc(NULL, bytes);
    if (stretch == NULL)
        return dc_fail_memory(j, bytes);
    dc_job_defer(j, dc_xfree, stretch);
    const int64_t from = t->at + least * (int64_t)size;
    DC_TRY(form->packed > 0
               ? unpack_exactly(f, j, &f->storage.at[form->packed - 1], from, stretch, bytes)
               : read_exactly(f, j, from, stretch, bytes));
    w = walk_from(t, stride, (int64_t)first);
    for (size_t i = 0; i < n; i++, walk_on(&w)) {
        if (i % 4096 == 0)
            DC_TRY(dc_job_ended(j));
        memcpy(to + i * size, stretch + (size_t)(w.at - least) * size, size);
    }
    dc_job_keep(j, stretch);
    dc_xfree(stretch);
    return DC_OK;
}

static void turn_bytes(unsigned char *at, size_t n, size_t size)
{
    for (unsigned char *e = at; e < at + n; e += size)
        for (size_t i = 0; i < size / 2; i++) {
            const unsigned char c = e[i];
            e[i] = e[size - 1 - i];
            e[size - 1 - i] = c;
        }
}

/* The other sign for n bytes of numbers of a size, in every `step` bytes. */
static void turn_signs(dc_dtype part, unsigned char *at, size_t n, size_t step)
{
    const size_t size = dc_dtype_size(part);
    for (unsigned char *e = at; e < at + n; e += step)
        if (dc_dtype_is_float(part))
            e[size - 1] ^= 0x80;
        else
            dc_bits_store(part, e, 0 - dc_bits_load(part, e));
}

/* What the elements mean, of what lies there. */
static void apply_form(const dc_torch_form *form, const dc_file_tensor *t, unsigned char *at,
                       size_t n)
{
    const dc_dtype dtype = (dc_dtype)t->type.dtype, part = dc_dtype_part(dtype);
    const size_t size = dc_dtype_size(part);
    if (form->swap > 0)
        turn_bytes(at, n, form->swap);
    if (form->conj && n > size) /* the second of two parts */
        turn_signs(part, at + size, n - size, 2 * size);
    if (form->neg && t->packing == NULL && dtype != DC_BOOL)
        turn_signs(part, at, n, size);
}

static dc_status read_bytes(const void *file, dc_job *j, const dc_file_tensor *t, size_t from,
                            size_t n, void *to)
{
    const torch *f = file;
    const size_t size = t->packing != NULL ? 1 : dc_dtype_size((dc_dtype)t->type.dtype);
    DC_ASSERT((int64_t)from <= t->bytes && (int64_t)n <= t->bytes - (int64_t)from,
              "%zu bytes from %zu on", n, from);
    if (t->index == UINT32_MAX)
        DC_TRY(read_exactly(f, j, t->at + (int64_t)from, to, n));
    else if (n > 0) {
        DC_TRY(read_scattered(f, j, t, from / size, n / size, size, to));
        apply_form(&f->values.form.at[t->index], t, to, n);
    }
    if (t->type.dtype == DC_BOOL)
        dc_make_bools(to, n);
    return DC_OK;
}

static dc_status unchanged(const void *file, dc_job *j)
{
    const torch *f = file;
    return dc_infile_unchanged(j, f->path, f->fd, &f->st);
}

static const dc_tree *tree_of(const void *file)
{
    const torch *f = file;
    return f->values.tree;
}

static const char *const *notes(const void *file, uint32_t *n)
{
    const torch *f = file;
    *n = f->values.note.n;
    return f->values.note.at;
}

static const dc_tensor_file_ops ops = {"pytorch", close_torch, read_bytes,
                                       unchanged, tree_of,     notes};

/* ---- storages --------------------------------------------------------------------------------- */

static int by_key(const void *x, const void *y)
{
    const storage *a = x, *b = y;
    return strcmp(a->key, b->key);
}

static dc_status find_storage(void *ctx, const char *key, int64_t *at, int64_t *bytes,
                              uint32_t *packed)
{
    torch *f = ctx;
    dc_job *j = f->values.job;
    const storage wanted = {.key = key};
    const storage *s = f->storage.n > 0 ? bsearch(&wanted, f->storage.at, f->storage.n,
                                                  sizeof *f->storage.at, by_key)
                                        : NULL;
    if (s == NULL)
        return REFUSE("has no storage '%s'", dc_show_name(key).s);
    *packed = s->packed != NULL ? (uint32_t)(s - f->storage.at) + 1 : 0;
    *at = s->packed != NULL ? 0 : s->at;
    *bytes = s->bytes;
    return DC_OK;
}

/* Each key is there once: of two, nobody knows which is meant. */
static dc_status sort_storages(torch *f, dc_job *j)
{
    DC_TRY(dc_sort(j, f->storage.at, f->storage.n, sizeof *f->storage.at, by_key));
    for (uint32_t i = 1; i < f->storage.n; i++)
        if (by_key(&f->storage.at[i - 1], &f->storage.at[i]) == 0)
            return REFUSE("has two storages '%s'", dc_show_name(f->storage.at[i].key).s);
    return DC_OK;
}

/* ---- archives --------------------------------------------------------------------------------- */

static void close_zip(void *z)
{
    dc_zip_close(z);
}

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

static dc_status unpack(torch *f, dc_job *j, const dc_zip *z, const dc_zip_entry *e, void *to,
                        size_t n)
{
    dc_zip_stream *s;
    size_t got;
    char more;
    DC_TRY(dc_zip_stream_open(z, j, e, &s));
    DC_TRY(dc_zip_stream_read(s, j, to, n, &got));
    if (got == n)
        DC_TRY(dc_zip_stream_read(s, j, &more, 1, &got)); /* compares the checksum */
    dc_zip_stream_close(s, j);
    return got == 0 || n == 0 ? DC_OK
                              : REFUSE("'%.80s' has another length than the archive says", e->name);
}

/* The pickle of NAME/data.pkl; *prefix becomes "NAME/". */
static dc_status read_pickle(torch *f, dc_job *j, const dc_zip *z, const char **prefix, size_t *n)
{
    const dc_zip_entry *e = NULL;
    for (uint32_t i = 0; i < z->n && e == NULL; i++)
        if (ends_with(z->entry[i].name, "/data.pkl"))
            e = &z->entry[i];
    if (e == NULL)
        return REFUSE("no PyTorch file: the archive has no 'data.pkl'");
    if (e->size > MOST_PICKLE)
        return REFUSE("'%.80s' has %" PRIu64 " bytes, %d are the most", e->name, e->size,
                      MOST_PICKLE);
    *n = (size_t)e->size;
    f->bytes = dc_try_realloc(NULL, *n + 1);
    if (f->bytes == NULL)
        return dc_fail_memory(j, *n + 1);
    *prefix =
        dc_arena_printf(&j->scratch, "%.*s", (int)(strlen(e->name) - strlen("data.pkl")), e->name);
    return unpack(f, j, z, e, f->bytes, *n);
}

static dc_status check_order(torch *f, dc_job *j, const dc_zip *z, const char *prefix)
{
    char order[8] = "little";
    const dc_zip_entry *e = dc_zip_find(z, dc_arena_printf(&j->scratch, "%sbyteorder", prefix));
    if (e != NULL && e->size < sizeof order)
        DC_TRY(unpack(f, j, z, e, order, (size_t)e->size));
    f->values.big = strncmp(order, "big", 3) == 0;
    return DC_OK;
}

static dc_status list_storages(torch *f, dc_job *j, const dc_zip *z, const char *prefix)
{
    const char *data = dc_arena_printf(&j->scratch, "%sdata/", prefix);
    const size_t n = strlen(data);
    for (uint32_t i = 0; i < z->n; i++) {
        const dc_zip_entry *e = &z->entry[i];
        uint64_t at;
        if (strncmp(e->name, data, n) != 0)
            continue;
        DC_TRY(dc_job_ended(j));
        DC_TRY(dc_zip_place(z, j, e, &at));
        if (at > (uint64_t)z->length || e->packed > (uint64_t)z->length - at)
            return REFUSE("'%.80s' lies outside of the file", e->name);
        const storage s = {.key = dc_arena_strdup(&f->values.arena, e->name + n),
                           .at = (int64_t)at,
                           .bytes = (int64_t)e->size,
                           .packed = e->method != DC_ZIP_STORED ? e : NULL};
        DC_PUSH(f->storage, s);
    }
    return sort_storages(f, j);
}

static dc_status read_archive(torch *f, dc_job *j)
{
    dc_zip *z;
    size_t n = 0, end;
    const char *prefix = "";
    bool truncated = false;
    dc_pickle_ref root;
    DC_TRY(dc_zip_open(j, f->path, "a PyTorch file", &z));
    dc_job_defer(j, close_zip, z);
    DC_TRY(read_pickle(f, j, z, &prefix, &n));
    DC_TRY(check_order(f, j, z, prefix));
    DC_TRY(list_storages(f, j, z, prefix));
    DC_TRY(dc_pickle_read(j, f->path, &f->values.pickle, f->bytes, n, dc_torch_known, &end,
                          &truncated, &root));
    if (end != n)
        return REFUSE("bytes follow the pickle");
    f->st = z->st;
    f->fd = z->fd;
    f->zip = z;
    dc_job_keep(j, z);
    return dc_torch_values(&f->values, root);
}

/* ---- files of several pickles ----------------------------------------------------------------- */

/* A PROTO, then a LONG1 of ten bytes. */
static const unsigned char magic[MAGIC] = {0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c, 0x46,
                                           0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};

typedef struct legacy {
    torch *f;
    size_t n; /* bytes in memory */
    size_t at;
    bool truncated;
    dc_pickle_ref root, keys;
} legacy;

static dc_status next_pickle(legacy *l, dc_job *j, dc_pickle_ref *root)
{
    size_t end;
    torch *f = l->f;
    /* Values point into memory, which stays where it is from here on. */
    DC_TRY(dc_pickle_read(j, f->path, &f->values.pickle, f->bytes + l->at, l->n - l->at,
                          dc_torch_known, &end, &l->truncated, root));
    l->at += end;
    return DC_OK;
}

static dc_status parse(legacy *l, dc_job *j)
{
    torch *f = l->f;
    dc_pickle_ref version, machine;
    l->at = MAGIC;
    DC_TRY(next_pickle(l, j, &version));
    const dc_pickle_node *v = &f->values.pickle.node.at[version];
    if (v->kind != DC_PICKLE_INT || v->i != 1001)
        return REFUSE("a PyTorch file of another version than 1001");
    DC_TRY(next_pickle(l, j, &machine));
    DC_TRY(next_pickle(l, j, &l->root));
    return next_pickle(l, j, &l->keys);
}

/* Reads more of the file until its pickles are whole. */
static dc_status read_pickles(legacy *l, dc_job *j)
{
    torch *f = l->f;
    for (size_t want = FIRST;; want *= 2) {
        size_t got;
        if (want > (uint64_t)f->st.st_size)
            want = (size_t)f->st.st_size;
        unsigned char *grown = dc_try_realloc(f->bytes, want + 1);
        if (grown == NULL)
            return dc_fail_memory(j, want + 1);
        f->bytes = grown;
        DC_TRY(dc_infile_read(j, f->path, f->fd, (int64_t)l->n, grown + l->n, want - l->n, &got));
        l->n += got;
        if (l->n < MAGIC || memcmp(grown, magic, MAGIC) != 0)
            return REFUSE("a pickle that torch.save of PyTorch did not write");
        dc_pickle_free(&f->values.pickle);
        f->values.pickle = (dc_pickle){0};
        l->truncated = false;
        const dc_status status = parse(l, j);
        if (!l->truncated || l->n == (uint64_t)f->st.st_size || l->n > MOST_PICKLE)
            return status;
        dc_err_clear(&j->err);
    }
}

static uint64_t get64(const unsigned char *p)
{
    uint64_t v = 0;
    for (int i = 8; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

/* A storage's key, and the size of its elements, which the values that use it tell. */
typedef struct use {
    const char *key;
    size_t n;
    int64_t size;
} use;

typedef DC_VEC(use) uses;

static int by_used_key(const void *x, const void *y)
{
    const use *a = x, *b = y;
    return a->n != b->n ? (a->n > b->n) - (a->n < b->n) : memcmp(a->key, b->key, a->n);
}

static dc_status list_uses(const torch *f, dc_job *j, uses *out)
{
    const dc_pickle *p = &f->values.pickle;
    for (uint32_t i = 0; i < p->node.n; i++) {
        if (i % 4096 == 0)
            DC_TRY(dc_job_ended(j));
        const dc_pickle_node *n = &p->node.at[i];
        const dc_pickle_node *id =
            n->kind == DC_PICKLE_PERSISTENT ? &p->node.at[n->item.at[0]] : NULL;
        if (id == NULL || id->kind != DC_PICKLE_LIST || id->item.n < 5)
            continue;
        const dc_pickle_node *type = &p->node.at[id->item.at[1]];
        const dc_pickle_node *key = &p->node.at[id->item.at[2]];
        if (type->kind != DC_PICKLE_GLOBAL || key->kind != DC_PICKLE_TEXT)
            continue;
        const use u = {key->text, (size_t)key->n, dc_torch_storage_size(type->text)};
        if (u.size > 0)
            DC_PUSH_IN(&j->scratch, *out, u);
    }
    DC_TRY(dc_sort(j, out->at, out->n, sizeof *out->at, by_used_key));
    for (uint32_t i = 1; i < out->n; i++) {
        const use *a = &out->at[i - 1], *b = &out->at[i];
        if (by_used_key(a, b) == 0 && a->size != b->size)
            return REFUSE("has a storage '%s' whose elements have %" PRId64 " bytes, and %" PRId64,
                          dc_show_name(dc_arena_printf(&j->scratch, "%.*s",
                                                       (int)dc_min_i64((int64_t)b->n, 200), b->key))
                              .s,
                          dc_min_i64(a->size, b->size), dc_max_i64(a->size, b->size));
    }
    return DC_OK;
}

static dc_status place_storages(legacy *l, dc_job *j)
{
    torch *f = l->f;
    const dc_pickle *p = &f->values.pickle;
    const dc_pickle_node *keys = &p->node.at[l->keys];
    int64_t at = (int64_t)l->at;
    uses used = {0};
    DC_TRY(list_uses(f, j, &used));
    if (keys->kind != DC_PICKLE_LIST)
        return REFUSE("has no list of storages");
    for (uint32_t i = 0; i < keys->item.n; i++) {
        const dc_pickle_node *key = &p->node.at[keys->item.at[i]];
        unsigned char head[8];
        int64_t bytes;
        DC_TRY(dc_job_ended(j));
        if (key->kind != DC_PICKLE_TEXT || key->n > 200)
            return REFUSE("has a storage whose name is no text");
        const use wanted = {.key = key->text, .n = (size_t)key->n};
        const use *u =
            used.n > 0 ? bsearch(&wanted, used.at, used.n, sizeof *used.at, by_used_key) : NULL;
        if (u == NULL)
            return REFUSE("has a storage that no tensor uses");
        if (f->st.st_size - at < 8)
            return REFUSE("truncated: the file ends within its storages");
        DC_TRY(read_exactly(f, j, at, head, sizeof head));
        const uint64_t count = get64(head);
        if (count > INT64_MAX || !dc_mul_ok((int64_t)count, u->size, &bytes) ||
            bytes > f->st.st_size - at - 8)
            return REFUSE("truncated: the file ends within its storages");
        const storage s = {.key = dc_arena_printf(&f->values.arena, "%.*s", (int)key->n, key->text),
                           .at = at + 8,
                           .bytes = bytes};
        DC_PUSH(f->storage, s);
        at += 8 + bytes;
    }
    if (at != f->st.st_size)
        return REFUSE("%" PRId64 " bytes follow the storages", (int64_t)f->st.st_size - at);
    return sort_storages(f, j);
}

static dc_status read_legacy(torch *f, dc_job *j)
{
    legacy l = {.f = f};
    DC_TRY(dc_infile_open(j, f->path, &f->fd, &f->st));
    DC_TRY(read_pickles(&l, j));
    DC_TRY(place_storages(&l, j));
    return dc_torch_values(&f->values, l.root);
}

/*
 * Tensors may share a storage or repeat its elements, and each gets memory of its own: those that together are much larger
 * than the file are left out.
 */
static void bound_total(torch *f)
{
    enum { SLACK = 1 << 20, DEFLATED = 1032 /* of zlib's manual */ };
    int64_t total = 0, most_times = 64;
    for (uint32_t i = 0; i < f->storage.n; i++)
        if (f->storage.at[i].packed != NULL)
            most_times = DEFLATED;
    for (uint32_t i = 0; i < f->values.tensor.n; i++) {
        dc_file_tensor *t = &f->values.tensor.at[i];
        if (t->unread)
            continue;
        if (t->bytes / most_times <= f->st.st_size + SLACK - total / most_times) {
            total += t->bytes;
            continue;
        }
        const bool expanded = t->index != UINT32_MAX && f->values.form.at[t->index].expanded;
        t->unread = true;
        t->why = dc_arena_printf(&f->values.arena, "it %s, %" PRId64 " bytes in a file of %" PRId64,
                                 expanded ? "repeats what lies there"
                                          : "and those before it share what lies there",
                                 t->bytes, (int64_t)f->st.st_size);
    }
}

/* ---- both ------------------------------------------------------------------------------------- */

static dc_status open_torch(torch *f, dc_job *j, dc_tensor_file **out)
{
    char begin[2] = {0};
    size_t got;
    int fd;
    DC_TRY(dc_path_open(j, f->path, &fd));
    const dc_status status = dc_infile_read(j, f->path, fd, 0, begin, sizeof begin, &got);
    close(fd);
    DC_TRY(status);
    f->values.job = j;
    f->values.path = f->path;
    f->values.find = find_storage;
    f->values.ctx = f;
    DC_TRY(begin[0] == 'P' ? read_archive(f, j) : read_legacy(f, j));
    bound_total(f);
    f->values.job = NULL;
    return dc_tensor_file_make(j, f->path, &ops, f, &f->values.tensor, &f->values.entry, out);
}

dc_status dc_torch_open(dc_job *j, const char *path, dc_tensor_file **out)
{
    torch *f = dc_xalloc(sizeof *f);
    f->fd = -1;
    dc_job_defer(j, close_torch, f);
    f->path = dc_xalloc(strlen(path) + 1);
    strcpy(f->path, path);
    return dc_job_settle(j, f, open_torch(f, j, out));
}
