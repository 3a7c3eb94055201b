/* NumPy's arrays in files. The header is read by a parser of exactly the literals that stand in one. */
#define _POSIX_C_SOURCE 200809L
#include "formats/npy.h"

#include "core/base/digits.h"
#include "core/base/outfile.h"
#include "core/base/path.h"
#include "formats/npy_stream.h"
#include "formats/tensor_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- dtypes ----------------------------------------------------------------------------------- */

static const struct {
    const char *code; /* behind the order of bytes */
    dc_dtype dtype;
} codes[] = {{"b1", DC_BOOL}, {"i1", DC_I8},  {"i2", DC_I16}, {"i4", DC_I32}, {"i8", DC_I64},
             {"u1", DC_U8},   {"u2", DC_U16}, {"u4", DC_U32}, {"u8", DC_U64}, {"f2", DC_F16},
             {"V2", DC_BF16}, {"f4", DC_F32}, {"f8", DC_F64}, {"c8", DC_C64}, {"c16", DC_C128}};

static bool dtype_of(const char *text, size_t n, dc_npy_header *out)
{
    if (n < 2 || strchr("<>|=", text[0]) == NULL)
        return false;
    for (size_t i = 0; i < DC_COUNTOF(codes); i++)
        if (strlen(codes[i].code) == n - 1 && memcmp(codes[i].code, text + 1, n - 1) == 0) {
            out->type.dtype = (uint8_t)codes[i].dtype;
            out->swap = text[0] == '>' && dc_dtype_size(codes[i].dtype) > 1;
            return true;
        }
    return false;
}

/* NULL: the format has none. */
static const char *code_of(dc_dtype t)
{
    for (size_t i = 0; i < DC_COUNTOF(codes); i++)
        if (codes[i].dtype == t)
            return codes[i].code;
    return NULL;
}

dc_status dc_npy_check(dc_job *j, const char *path, const dc_npy_item *item)
{
    const dc_dtype t = (dc_dtype)item->type.dtype;
    if (code_of(t) != NULL)
        return DC_OK;
    return dc_path_fail(j, DC_ERR_FORMAT, path, "NumPy's files have no %s; :cast \"f32\" first",
                        dc_dtype_name(t));
}

/* ---- headers ---------------------------------------------------------------------------------- */

typedef struct header {
    dc_job *job;
    const char *path, *entry;
    const char *at, *end;
} header;

#define fail(h, ...) dc_npy_fail((h)->job, (h)->path, (h)->entry, __VA_ARGS__)

dc_status dc_npy_fail(dc_job *j, const char *path, const char *entry, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return entry == NULL ? dc_path_fail(j, DC_ERR_FORMAT, path, "%s", text)
                         : dc_path_fail(j, DC_ERR_FORMAT, path, "'%.80s': %s", entry, text);
}

static void skip_blanks(header *h)
{
    while (h->at < h->end && strchr(" \t\n", *h->at) != NULL && *h->at != '\0')
        h->at++;
}

static bool take(header *h, char c)
{
    skip_blanks(h);
    if (h->at == h->end || *h->at != c)
        return false;
    h->at++;
    return true;
}

static bool take_word(header *h, const char *word)
{
    const size_t n = strlen(word);
    skip_blanks(h);
    if ((size_t)(h->end - h->at) < n || memcmp(h->at, word, n) != 0)
        return false;
    h->at += n;
    return true;
}

/* 'text' or "text", without escapes. */
static bool take_text(header *h, const char **text, size_t *n)
{
    skip_blanks(h);
    if (h->at == h->end || (*h->at != '\'' && *h->at != '"'))
        return false;
    const char *close = memchr(h->at + 1, *h->at, (size_t)(h->end - h->at - 1));
    if (close == NULL)
        return false;
    *text = h->at + 1;
    *n = (size_t)(close - *text);
    h->at = close + 1;
    return true;
}

/* Python 2 may write (2L, 3L). */
static dc_status read_shape(header *h, dc_npy_header *out)
{
    dc_type *type = &out->type;
    if (!take(h, '('))
        return fail(h, "the header has no shape in brackets");
    for (int axis = 1; !take(h, ')'); axis++) {
        uint64_t size;
        skip_blanks(h);
        const dc_digits d = dc_digits_unsigned(&h->at, h->end, INT64_MAX, &size);
        if (d != DC_DIGITS_OK)
            return fail(h, "the size of axis %d %s", axis, dc_digits_why(d));
        if (axis > DC_MAX_RANK)
            snprintf(out->unread, sizeof out->unread, "it has more than %d axes", DC_MAX_RANK);
        else
            type->dim[type->rank++] = (int64_t)size;
        take(h, 'L');
        if (!take(h, ',') && (h->at == h->end || *h->at != ')'))
            return fail(h, "the shape in the header is damaged");
    }
    return DC_OK;
}

/* Steps over what stands in brackets. */
static bool skip_brackets(header *h)
{
    const char *text;
    size_t n;
    int depth = 0;
    do {
        skip_blanks(h);
        if (h->at == h->end)
            return false;
        if (*h->at == '\'' || *h->at == '"') {
            if (!take_text(h, &text, &n))
                return false;
            continue;
        }
        depth += (*h->at == '[' || *h->at == '(') - (*h->at == ']' || *h->at == ')');
        h->at++;
    } while (depth > 0);
    return true;
}

static dc_status read_dtype(header *h, dc_npy_header *out)
{
    const char *text;
    size_t n;
    snprintf(out->descr, sizeof out->descr, "records");
    if (take(h, '[') || take(h, '(')) {
        h->at--;
        snprintf(out->unread, sizeof out->unread, "elements are records, which are not read");
        return skip_brackets(h) ? DC_OK : fail(h, "the header is damaged");
    }
    if (!take_text(h, &text, &n))
        return fail(h, "the header has no type of elements");
    snprintf(out->descr, sizeof out->descr, "%.*s", (int)(n < 20 ? n : 20), text);
    if (n > 1 && (text[1] == 'O' || text[0] == 'O'))
        snprintf(out->unread, sizeof out->unread,
                 "elements are objects of Python, which are not read");
    else if (!dtype_of(text, n, out))
        snprintf(out->unread, sizeof out->unread, "elements are '%.*s', which is not read",
                 (int)(n < 40 ? n : 40), text);
    return DC_OK;
}

static dc_status read_value(header *h, unsigned key, dc_npy_header *out)
{
    if (key == 0)
        return read_dtype(h, out);
    if (key == 2)
        return read_shape(h, out);
    out->fortran = take_word(h, "True");
    return out->fortran || take_word(h, "False")
               ? DC_OK
               : fail(h, "'fortran_order' is neither True nor False");
}

static dc_status read_dict(header *h, dc_npy_header *out)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    unsigned seen = 0;
    if (!take(h, '{'))
        return fail(h, "the header is no dictionary");
    while (!take(h, '}')) {
        const char *text;
        size_t n;
        unsigned key = 0;
        if (!take_text(h, &text, &n) || !take(h, ':'))
            return fail(h, "the header is damaged");
        while (key < 3 && (strlen(keys[key]) != n || memcmp(keys[key], text, n) != 0))
            key++;
        if (key == 3 || (seen & 1u << key) != 0)
            return fail(h, "the header has the key '%.*s' %s", (int)(n < 40 ? n : 40), text,
                        key == 3 ? "besides" : "twice");
        seen |= 1u << key;
        DC_TRY(read_value(h, key, out));
        skip_blanks(h);
        if (!take(h, ',') && (h->at == h->end || *h->at != '}'))
            return fail(h, "the header is damaged");
    }
    skip_blanks(h);
    if (h->at != h->end)
        return fail(h, "something follows the header's dictionary");
    for (unsigned key = 0; key < 3; key++)
        if ((seen & 1u << key) == 0)
            return fail(h, "the header has no '%s'", keys[key]);
    return DC_OK;
}

dc_status dc_npy_parse(dc_job *j, const char *path, const char *entry, const unsigned char *bytes,
                       size_t n, dc_npy_header *out)
{
    header h = {.job = j, .path = path, .entry = entry};
    *out = (dc_npy_header){0};
    if (n < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return fail(&h, "not an npy file");
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return fail(&h, "version %d.%d of the format, 1.0 to 3.0 are read", bytes[6], bytes[7]);
    const size_t begin = bytes[6] == 1 ? 10 : 12;
    if (n < begin)
        return fail(&h, "truncated: the header has no length");
    size_t length = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > DC_NPY_HEADER - begin)
        return fail(&h, "a header of %zu bytes, %zu are the most", length, DC_NPY_HEADER - begin);
    if (n - begin < length)
        return fail(&h, "truncated: the header has %zu bytes, %zu are there", length, n - begin);
    h.at = (const char *)bytes + begin;
    h.end = h.at + length;
    out->bytes = begin + length;
    DC_TRY(read_dict(&h, out));
    if (out->unread[0] != '\0')
        return DC_OK;
    if (!dc_dims_known(out->type.rank, out->type.dim) ||
        !dc_dims_fit(out->type.rank, out->type.dim, dc_dtype_size((dc_dtype)out->type.dtype)))
        return fail(&h, "the array is too large to address");
    if (!dc_type_has_parts(&out->type))
        snprintf(out->unread, sizeof out->unread, "it is complex, and has more than %d axes",
                 DC_MAX_RANK - 1);
    return DC_OK;
}

/* ---- elements --------------------------------------------------------------------------------- */

static void swap_bytes(char *at, size_t n, dc_dtype t)
{
    const size_t size = dc_dtype_size(dc_dtype_part(t));
    for (char *e = at; e < at + n; e += size)
        for (size_t i = 0; i < size / 2; i++) {
            const char c = e[i];
            e[i] = e[size - 1 - i];
            e[size - 1 - i] = c;
        }
}

/* Elements whose first axis varies fastest, from one place to another in C's order. */
static void reorder(const dc_type *t, const char *from, char *to, size_t size)
{
    int64_t stride[DC_MAX_RANK], at[DC_MAX_RANK] = {0}, where = 0;
    const int64_t n = dc_type_count(t);
    for (int i = 0; i < t->rank; i++)
        stride[i] = i == 0 ? 1 : stride[i - 1] * t->dim[i - 1];
    for (int64_t k = 0; k < n; k++) {
        memcpy(to + (size_t)k * size, from + (size_t)where * size, size);
        if (k % 4096 == 0)
            dc_job_look();
        for (int i = t->rank - 1; i >= 0; i--) {
            where += stride[i];
            if (++at[i] < t->dim[i])
                break;
            where -= stride[i] * t->dim[i];
            at[i] = 0;
        }
    }
}

/* All of the elements, whatever their order; in an archive nothing behind them. */
static dc_status read_bytes(header *h, dc_npy_stream *in, void *to, size_t n)
{
    size_t got;
    char extra;
    DC_TRY(in->read(in, h->job, to, n, &got));
    if (got < n)
        return fail(h, "truncated: got %zu of %zu bytes of data", got, n);
    if (h->entry != NULL)
        DC_TRY(in->read(in, h->job, &extra, 1, &got));
    if (h->entry != NULL && got > 0)
        return fail(h, "bytes follow the %zu bytes of data", n);
    return DC_OK;
}

/* By way of memory of their own. */
static dc_status read_fortran(header *h, dc_npy_stream *in, const dc_npy_header *head, void *to)
{
    const size_t n = dc_type_bytes(&head->type);
    char *as_read = dc_try_realloc(NULL, n + 1);
    if (as_read == NULL)
        return dc_fail_memory(h->job, n);
    dc_job_defer(h->job, dc_xfree, as_read);
    DC_TRY(read_bytes(h, in, as_read, n));
    reorder(&head->type, as_read, to, dc_dtype_size((dc_dtype)head->type.dtype));
    return DC_OK;
}

dc_status dc_npy_read_header(dc_job *j, dc_npy_stream *in, dc_npy_header *head)
{
    unsigned char start[DC_NPY_HEADER];
    size_t got;
    DC_TRY(in->read(in, j, start, 10, &got));
    const size_t two = got == 10 ? start[8] | (size_t)start[9] << 8 : 0;
    const size_t rest = got < 10 ? 0 : start[6] == 1 ? two : 2; /* of version 2 the length first */
    size_t more = 0;
    if (rest > 0 && rest <= sizeof start - 10)
        DC_TRY(in->read(in, j, start + 10, rest, &more));
    got += more;
    if (got == 12 && start[6] > 1 && start[10] == 0 && start[11] == 0 && two <= sizeof start - 12) {
        DC_TRY(in->read(in, j, start + 12, two, &more));
        got += more;
    }
    return dc_npy_parse(j, in->path, in->entry, start, got, head);
}

dc_status dc_npy_read_stream(dc_job *j, dc_npy_stream *in, const dc_room *room)
{
    header h = {.job = j, .path = in->path, .entry = in->entry};
    dc_npy_header head;
    void *to;
    DC_TRY(dc_npy_read_header(j, in, &head));
    if (head.unread[0] != '\0')
        return fail(&h, "%s", head.unread);
    const size_t n = dc_type_bytes(&head.type);
    if (in->length >= 0 && (int64_t)(head.bytes + n) > in->length)
        return fail(&h, "truncated: got %" PRId64 " of %zu bytes of data",
                    in->length - (int64_t)head.bytes, n);
    DC_TRY(room->make(j, room->ctx, &head.type, &to));
    DC_TRY(head.fortran && head.type.rank > 1 ? read_fortran(&h, in, &head, to)
                                              : read_bytes(&h, in, to, n));
    if (head.swap)
        swap_bytes(to, n, (dc_dtype)head.type.dtype);
    if (head.type.dtype == DC_BOOL)
        dc_make_bools(to, n);
    return DC_OK;
}

typedef struct file_stream {
    dc_npy_stream in;
    int fd;
    int64_t at;
} file_stream;

static dc_status read_file(dc_npy_stream *in, dc_job *j, void *to, size_t n, size_t *got)
{
    file_stream *f = (file_stream *)in;
    DC_TRY(dc_infile_read(j, in->path, f->fd, f->at, to, n, got));
    f->at += (int64_t)*got;
    return DC_OK;
}

dc_status dc_npy_read(dc_job *j, const char *path, const dc_room *room, int64_t *behind)
{
    file_stream f = {.in = {.read = read_file, .path = path}};
    struct stat st;
    DC_TRY(dc_infile_open(j, path, &f.fd, &st));
    dc_infile_defer(j, f.fd);
    f.in.length = st.st_size;
    DC_TRY(dc_npy_read_stream(j, &f.in, room));
    *behind = f.in.length - f.at;
    return DC_OK;
}

/* ---- writing ---------------------------------------------------------------------------------- */

/* Room for the header of any type; the length is a multiple of 64. */
size_t dc_npy_header_write(const dc_type *t, char out[DC_NPY_ROOM])
{
    const dc_dtype dtype = (dc_dtype)t->dtype;
    char shape[DC_MAX_RANK * 24] = "";
    int n = 0;
    for (int i = 0; i < t->rank; i++)
        n += snprintf(shape + n, sizeof shape - (size_t)n, i == 0 ? "%" PRId64 : ", %" PRId64,
                      t->dim[i]);
    memset(out, ' ', DC_NPY_ROOM);
    memcpy(out, "\x93NUMPY\x01\0", 8);
    char *at = out + 10;
    at += snprintf(
        at, DC_NPY_ROOM - 10, "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s%s), }",
        dc_dtype_size(dtype) > 1 ? '<' : '|', code_of(dtype), shape, t->rank == 1 ? "," : "");
    *at = ' '; /* snprintf's zero */
    const size_t length = dc_align_up((size_t)(at - out) + 1, 64);
    out[length - 1] = '\n';
    out[8] = (char)((length - 10) & 0xff);
    out[9] = (char)((length - 10) >> 8);
    return length;
}

dc_status dc_npy_write(dc_job *j, const char *path, const dc_npy_item *item)
{
    char head[DC_NPY_ROOM];
    dc_outfile *f;
    DC_TRY(dc_npy_check(j, path, item));
    DC_TRY(dc_outfile_open(j, path, &f));
    DC_TRY(dc_outfile_write(f, head, dc_npy_header_write(&item->type, head)));
    DC_TRY(dc_outfile_write(f, item->data, dc_type_bytes(&item->type)));
    return dc_outfile_commit(f);
}
