#include "tests/fuzz/made.h"

#include "formats/json.h"
#include "formats/sound.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tests/fuzz/tensors.h"

enum { LONGEST_DATA = 1 << 12 };

/* ---- choices ---------------------------------------------------------------------------------- */

uint32_t made_below(made *m, uint32_t n)
{
    uint32_t v = 0;
    for (uint32_t reach = 1; reach < n && m->choices > 0;
         reach = reach < 1u << 24 ? reach << 8 : n) {
        v = v << 8 | *m->choice++;
        m->choices--;
    }
    return n > 0 ? v % n : 0;
}

bool made_once_in(made *m, uint32_t n)
{
    return made_below(m, n) == n - 1;
}

uint64_t made_number(made *m, uint64_t right)
{
    static const uint64_t odd[] = {0,          1,          2,          0x7f,
                                   0x80,       0xff,       0x7fff,     0xffff,
                                   0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32,
                                   1ull << 62, INT64_MAX,  1ull << 63, UINT64_MAX};
    if (!m->lies || !made_once_in(m, 12))
        return right;
    const uint32_t how = made_below(m, 24);
    const uint64_t lie = how < DC_COUNTOF(odd) ? odd[how]
                         : how < 20            ? right + how - 15
                                               : right - (how - 19);
    m->lied = m->lied || lie != right;
    return lie;
}

const char *made_lies_in(made *m, const char *text)
{
    const size_t room = 21 * strlen(text) + 1; /* a digit may become a number */
    char *out = dc_arena_alloc(m->arena, room), *to = out;
    while (*text != '\0') {
        char *end = NULL;
        const bool is_number = *text >= '0' && *text <= '9';
        const uint64_t right = is_number ? strtoull(text, &end, 10) : 0;
        const uint64_t lie = is_number && made_once_in(m, 4) ? made_number(m, right) : right;
        if (lie == right) {
            *to++ = *text++;
            while (is_number && *text >= '0' && *text <= '9')
                *to++ = *text++;
        } else {
            to += snprintf(to, 22, made_once_in(m, 2) ? "%" PRIu64 : "-%" PRIu64, lie);
            text = end;
        }
    }
    *to = '\0';
    return out;
}

void made_begin(made *m, dc_arena *a, const fuzz_input *in)
{
    *m = (made){.arena = a, .choice = in->at, .choices = in->n};
    const uint32_t how = made_below(m, 8);
    m->lies = how == 6;
    m->edits = how == 7;
}

bool made_is_intact(const made *m)
{
    return !m->lied && !m->edits;
}

/* ---- bytes ------------------------------------------------------------------------------------ */

void made_put(made *m, const void *bytes, size_t n)
{
    if (n > m->room - m->n) {
        m->room = 2 * m->room + n + 256;
        unsigned char *grown = dc_arena_alloc(m->arena, m->room);
        if (m->n > 0)
            memcpy(grown, m->at, m->n);
        m->at = grown;
    }
    if (n > 0)
        memcpy(m->at + m->n, bytes, n);
    m->n += n;
}

void made_text(made *m, const char *s)
{
    made_put(m, s, strlen(s));
}

void made_byte(made *m, unsigned v)
{
    const unsigned char byte = (unsigned char)v;
    made_put(m, &byte, 1);
}

void made_le(made *m, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        made_byte(m, (unsigned)(v >> 8 * i & 0xff));
}

void made_be(made *m, uint64_t v, int bytes)
{
    for (int i = bytes; i-- > 0;)
        made_byte(m, (unsigned)(v >> 8 * i & 0xff));
}

void made_printf(made *m, const char *fmt, ...)
{
    char text[1000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    made_text(m, text);
}

void made_align(made *m, size_t to, unsigned with)
{
    while (m->n % to != 0)
        made_byte(m, with);
}

made made_part_begin(made *m)
{
    const made file = *m;
    m->at = NULL;
    m->n = m->room = 0;
    return file;
}

made made_part_end(made *m, const made *file)
{
    const made part = *m;
    m->at = file->at;
    m->n = file->n;
    m->room = file->room;
    return part;
}

static void edit(made *m)
{
    const size_t at = made_below(m, (uint32_t)m->n), left = m->n - at;
    size_t n = made_below(m, 16) + 1;
    n = n < left ? n : left;
    switch (made_below(m, 6)) {
    case 0:
        m->at[at] ^= (unsigned char)(1u << made_below(m, 8));
        return;
    case 1:
        m->at[at] = (unsigned char)made_below(m, 256);
        return;
    case 2:
        memset(m->at + at, made_once_in(m, 2) ? 0xff : 0, n);
        return;
    case 3: /* a piece from elsewhere */
        memmove(m->at + at, m->at + made_below(m, (uint32_t)(m->n - n + 1)), n);
        return;
    case 4:
        memmove(m->at + at, m->at + at + n, left - n);
        m->n -= n;
        return;
    default:
        m->n = at;
        return;
    }
}

void made_end(made *m)
{
    for (uint32_t i = m->edits ? made_below(m, 4) + 1 : 0; i > 0 && m->n > 0; i--)
        edit(m);
}

/* ---- tensors ---------------------------------------------------------------------------------- */

unsigned char *made_data(made *m, dc_dtype dtype, size_t n)
{
    uint32_t state = made_below(m, 256) + 1;
    unsigned char *to = dc_arena_alloc(m->arena, n + 1);
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        to[i] = (unsigned char)(dtype == DC_BOOL ? state >> 31 : state >> 24);
    }
    return to;
}

int made_sizes(made *m, int most_rank, int64_t dim[DC_MAX_RANK])
{
    static const int64_t sizes[] = {2, 3, 1, 4, 5, 7, 32, 0};
    const int rank = (int)made_below(m, (uint32_t)most_rank + 1);
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        dim[i] = sizes[made_below(m, DC_COUNTOF(sizes))];
        if (count * dim[i] > LONGEST_DATA / 16)
            dim[i] = 1;
        count *= dim[i];
    }
    return rank;
}

const char *made_name(made *m, const char *prefix, uint32_t number)
{
    static const char *const words[] = {"", "weight", "bias", "\xc3\xa4", "a b", "\"", "\\", "'"};
    return dc_arena_printf(m->arena, "%s%s%u", prefix, words[made_below(m, DC_COUNTOF(words))],
                           number);
}

void made_expect(made *m, const char *name, const dc_type *type, const unsigned char *bytes,
                 size_t n)
{
    const made_tensor t = {name, *type, bytes, n, false};
    DC_PUSH_IN(m->arena, m->tensor, t);
}

void made_expect_unread(made *m, const char *name)
{
    const made_tensor t = {.name = name, .unread = true};
    DC_PUSH_IN(m->arena, m->tensor, t);
}

/* ---- JSON ------------------------------------------------------------------------------------- */

void made_quoted(made *m, const char *text)
{
    dc_job *j = dc_job_here();
    dc_text *t = dc_job_text(j);
    if (!dc_json_print(t, text))
        fuzz_finding("a text that is none is printed");
    made_put(m, t->s, t->n);
    dc_job_text_end(j, t);
}

void made_st_entry(made *m, const char *name, const char *more, const char *dtype,
                   const dc_type *type, uint64_t at, uint64_t bytes)
{
    made_quoted(m, name);
    made_printf(m, ":{%s\"dtype\":\"%s\",\"shape\":[", more, dtype);
    for (int i = 0; i < type->rank; i++)
        made_printf(m, "%s%" PRIu64, i > 0 ? "," : "", made_number(m, (uint64_t)type->dim[i]));
    made_printf(m, "],\"data_offsets\":[%" PRIu64 ",", made_number(m, at));
    made_printf(m, "%" PRIu64 "]}", made_number(m, at + bytes));
}

/* ---- archives --------------------------------------------------------------------------------- */

typedef struct placed {
    uint64_t at, packed;
    uint32_t crc, method;
    bool wide; /* its sizes stand in an extra field */
} placed;

static const unsigned char *deflated(made *m, const made_entry *e, size_t *n)
{
    z_stream z = {0};
    const size_t room = e->n + e->n / 2 + 100;
    unsigned char *to = dc_arena_alloc(m->arena, room);
    if (deflateInit2(&z, (int)made_below(m, 10), Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        fuzz_finding("deflateInit2");
    z.next_in = (unsigned char *)(uintptr_t)e->bytes;
    z.avail_in = (unsigned)e->n;
    z.next_out = to;
    z.avail_out = (unsigned)room;
    deflate(&z, Z_FINISH);
    *n = room - z.avail_out;
    deflateEnd(&z);
    return to;
}

/* What the local header and the directory both have. */
static void put_common(made *m, const made_entry *e, const placed *p)
{
    made_le(m, 0x21 << 16, 4); /* time, date */
    made_le(m, made_number(m, p->crc), 4);
    made_le(m, p->wide ? 0xffffffff : made_number(m, p->packed), 4);
    made_le(m, p->wide ? 0xffffffff : made_number(m, e->n), 4);
    made_le(m, made_number(m, strlen(e->name)), 2);
}

static void put_entry(made *m, const made_entry *e, placed *p)
{
    const unsigned char *bytes = e->bytes;
    size_t n = e->n, extra = made_below(m, 4) == 1 ? 4 : 0;
    if (e->may_deflate && made_once_in(m, 2)) {
        p->method = 8;
        bytes = deflated(m, e, &n);
    }
    p->at = m->n;
    p->packed = n;
    p->crc = (uint32_t)crc32(0, e->bytes, (unsigned)e->n);
    p->wide = made_once_in(m, 6);
    while (e->align > 0 && (m->n + 30 + strlen(e->name) + extra) % e->align != 0)
        extra += extra == 0 ? 4 : 1;
    made_text(m, "PK\3\4");
    made_le(m, 20, 2);
    made_le(m, 0, 2);
    made_le(m, p->method, 2);
    put_common(m, e, p);
    made_le(m, made_number(m, extra), 2);
    made_text(m, e->name);
    if (extra >= 4) {
        made_text(m, "FB");
        made_le(m, extra - 4, 2);
        for (size_t i = 4; i < extra; i++)
            made_byte(m, 'Z');
    }
    made_put(m, bytes, n);
}

static void put_directory_entry(made *m, const made_entry *e, const placed *p)
{
    made_text(m, "PK\1\2");
    made_le(m, 20, 2);
    made_le(m, 20, 2);
    made_le(m, 0, 2);
    made_le(m, made_number(m, p->method), 2);
    put_common(m, e, p);
    const size_t comment = made_below(m, 8) == 7 ? 3 : 0;
    made_le(m, p->wide ? 28 : 0, 2);
    made_le(m, comment, 2);
    made_le(m, 0, 8);
    made_le(m, p->wide ? 0xffffffff : made_number(m, p->at), 4);
    made_text(m, e->name);
    if (p->wide) {
        made_le(m, 1, 2);
        made_le(m, made_number(m, 24), 2);
        made_le(m, made_number(m, e->n), 8);
        made_le(m, made_number(m, p->packed), 8);
        made_le(m, made_number(m, p->at), 8);
    }
    made_put(m, "abc", comment);
}

void made_zip(made *m, made_entry *entry, uint32_t n)
{
    placed *p = DC_NEW_ARRAY(m->arena, placed, n + 1);
    for (uint32_t i = n; i-- > 1;) {
        const uint32_t k = made_below(m, i + 1);
        const made_entry e = entry[i];
        entry[i] = entry[k];
        entry[k] = e;
    }
    for (uint32_t i = 0; i < n; i++)
        put_entry(m, &entry[i], &p[i]);
    const uint64_t at = m->n;
    for (uint32_t i = 0; i < n; i++)
        put_directory_entry(m, &entry[i], &p[i]);
    const uint64_t size = m->n - at, end = m->n;
    const bool wide = made_once_in(m, 4);
    if (wide) {
        made_text(m, "PK\6\6");
        made_le(m, 44, 8);
        made_le(m, 45, 4);
        made_le(m, 0, 8);
        made_le(m, made_number(m, n), 8);
        made_le(m, made_number(m, n), 8);
        made_le(m, made_number(m, size), 8);
        made_le(m, made_number(m, at), 8);
        made_text(m, "PK\6\7");
        made_le(m, 0, 4);
        made_le(m, made_number(m, end), 8);
        made_le(m, 1, 4);
    }
    const size_t comment = made_below(m, 8) == 7 ? 5 : 0;
    made_text(m, "PK\5\6");
    made_le(m, 0, 4);
    made_le(m, wide ? 0xffff : made_number(m, n), 2);
    made_le(m, wide ? 0xffff : made_number(m, n), 2);
    made_le(m, wide ? 0xffffffff : made_number(m, size), 4);
    made_le(m, wide ? 0xffffffff : made_number(m, at), 4);
    made_le(m, made_number(m, comment), 2);
    made_put(m, "12345", comment);
}

/* ---- what is read ----------------------------------------------------------------------------- */

static dc_status compare(dc_job *j, made *m, const dc_tensor_file *f, const made_tensor *want)
{
    const dc_file_tensor *t = dc_tensor_file_find(f, want->name);
    if (t == NULL)
        fuzz_finding("tensor '%s' is not there", want->name);
    if (t->unread != want->unread)
        fuzz_finding("tensor '%s' is%s read", want->name, t->unread ? " not" : "");
    if (want->unread)
        return DC_OK;
    if (!dc_type_same(&t->type, &want->type))
        fuzz_finding("tensor '%s' has another type", want->name);
    if (want->bytes == NULL)
        return DC_OK;
    unsigned char *got = dc_arena_alloc(m->arena, want->n + 1);
    const dc_file_read read = {t, 0, (size_t)dc_type_count(&t->type), (dc_dtype)t->type.dtype, got};
    DC_TRY(t->packing != NULL ? dc_tensor_file_bytes(f, j, t, 0, want->n, got)
                              : dc_tensor_file_read(f, j, &read, 1));
    if (memcmp(got, want->bytes, want->n) != 0)
        fuzz_finding("tensor '%s' has other values", want->name);
    return DC_OK;
}

static dc_status read_all(dc_job *j, made *m)
{
    uint32_t n;
    dc_tensor_file *f;
    DC_TRY(dc_tensor_file_open(j, fuzz_file(m->at, m->n), &f));
    dc_tensor_file_defer(j, f);
    DC_TRY(fuzz_use_tensors(j, f, m->n));
    if (!made_is_intact(m))
        return DC_OK;
    dc_tensor_file_list(f, &n);
    if (n != m->tensor.n)
        fuzz_finding("%u tensors, not %u", n, m->tensor.n);
    for (uint32_t i = 0; i < n; i++)
        DC_TRY(compare(j, m, f, &m->tensor.at[i]));
    return DC_OK;
}

dc_status made_tensors_check(dc_job *j, made *m)
{
    char text[1000];
    const dc_status status = read_all(j, m);
    if (status == DC_OK || !made_is_intact(m))
        return status;
    dc_err_render(&j->err, 0, text, sizeof text);
    fuzz_finding("a valid file is refused: %s", text);
}

typedef struct sound_got {
    dc_type type;
    float *at;
} sound_got;

static dc_status make_room(dc_job *j, void *ctx, const dc_type *type, void **at)
{
    sound_got *g = ctx;
    g->type = *type;
    *at = g->at = dc_arena_alloc(&j->scratch, dc_type_bytes(type) + 1);
    return DC_OK;
}

dc_status made_sound_read(dc_job *j, made *m, int rate, int64_t frames, int channels,
                          const float **samples)
{
    sound_got g = {0};
    const dc_room room = {make_room, &g};
    const dc_type want = dc_type_make(DC_F32, 2, (const int64_t[]){frames, channels});
    char text[1000];
    int got_rate;
    const dc_status status = dc_sound_read(j, fuzz_file(m->at, m->n), &room, &got_rate);
    *samples = NULL;
    if (!made_is_intact(m))
        return status;
    if (status != DC_OK) {
        dc_err_render(&j->err, 0, text, sizeof text);
        if (strstr(text, "needs libsndfile") == NULL)
            fuzz_finding("a valid file is refused: %s", text);
        return status;
    }
    if (got_rate != rate || !dc_type_same(&g.type, &want))
        fuzz_finding("%lld frames of %lld, or another rate or number of channels",
                     (long long)g.type.dim[0], (long long)frames);
    *samples = g.at;
    return DC_OK;
}
