/*
 * Element types, tensor types and their notation, and the table of interned names.
 *
 * The parser reads what dc_type_print writes. Its failures quote the type as written (w0) and name
 * the word at fault (w1).
 */
#include "core/base/type.h"

#include "core/base/expr.h"
#include "core/base/extent.h"
#include "core/base/job.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct dtype_row {
    const char *name;
    uint8_t kind, bits, exponent, fraction, finite;
} dtypes[] = {
#define DTYPE(id, name, kind, bits, exponent, fraction, finite) \
    [DC_##id] = {name, DC_KIND_##kind, bits, exponent, fraction, finite},
#include "core/base/dtype.def"
};

const char *dc_dtype_name(dc_dtype t)
{
    return dtypes[t].name;
}

dc_kind dc_dtype_kind(dc_dtype t)
{
    return (dc_kind)dtypes[t].kind;
}

int dc_dtype_bits(dc_dtype t)
{
    return dtypes[t].bits;
}

size_t dc_dtype_size(dc_dtype t)
{
    return (size_t)dtypes[t].bits / 8;
}

int dc_dtype_fraction(dc_dtype t)
{
    return dtypes[t].fraction;
}

int dc_dtype_exponent(dc_dtype t)
{
    return dtypes[t].exponent;
}

int dc_dtype_bias(dc_dtype t)
{
    return (1 << (dtypes[t].exponent - 1)) - 1;
}

bool dc_dtype_is_finite(dc_dtype t)
{
    return dtypes[t].finite != 0;
}

const char *dc_dtype_elsewhere(const char *s, size_t n)
{
    static const char *const names[][2] = {
        {"float32", "f32"},
        {"float", "f32"},
        {"float64", "f64"},
        {"double", "f64"},
        {"float16", "f16"},
        {"half", "f16"},
        {"bfloat16", "bf16"},
        {"int8", "i8"},
        {"char", "i8"},
        {"int16", "i16"},
        {"short", "i16"},
        {"int32", "i32"},
        {"int", "i32"},
        {"int64", "i64"},
        {"long", "i64"},
        {"uint8", "u8"},
        {"byte", "u8"},
        {"uint16", "u16"},
        {"uint32", "u32"},
        {"uint64", "u64"},
        {"boolean", "bool"},
        {"complex64", "c64"},
        {"cfloat", "c64"},
        {"complex128", "c128"},
        {"cdouble", "c128"},
        {"float8_e4m3fn", "f8e4m3fn"},
        {"float8_e5m2", "f8e5m2"},
    };
    for (size_t i = 0; i < DC_COUNTOF(names); i++)
        if (strlen(names[i][0]) == n && memcmp(names[i][0], s, n) == 0)
            return names[i][1];
    return NULL;
}

bool dc_dtype_find(const char *name, size_t n, dc_dtype *out)
{
    for (int t = 0; t < DC_DTYPE__ALL; t++)
        if (strlen(dtypes[t].name) == n && memcmp(dtypes[t].name, name, n) == 0) {
            *out = (dc_dtype)t;
            return true;
        }
    return false;
}

dc_type dc_type_scalar(dc_dtype t)
{
    return (dc_type){.dtype = (uint8_t)t};
}

dc_type dc_type_make(dc_dtype t, int rank, const int64_t *dim)
{
    dc_type type = {.dtype = (uint8_t)t, .rank = (uint8_t)rank};
    DC_ASSERT(rank >= 0 && rank <= DC_MAX_RANK, "rank %d", rank);
    for (int i = 0; i < rank; i++)
        type.dim[i] = dim[i];
    return type;
}

dc_type dc_type_stacked(const dc_type *t, int64_t n)
{
    dc_type type = {.dtype = t->dtype, .rank = (uint8_t)(t->rank + 1), .dim = {n}};
    DC_ASSERT(t->rank < DC_MAX_RANK, "rank %d", t->rank);
    for (int i = 0; i < t->rank; i++) {
        type.dim[i + 1] = t->dim[i];
        type.name[i + 1] = t->name[i];
    }
    return type;
}

dc_type dc_type_parts(const dc_type *t)
{
    dc_type out = *t;
    if (!dc_dtype_is_complex((dc_dtype)t->dtype))
        return out;
    DC_ASSERT(t->rank < DC_MAX_RANK, "rank %d", t->rank);
    out.dtype = (uint8_t)dc_dtype_part((dc_dtype)t->dtype);
    out.name[out.rank] = NULL;
    out.dim[out.rank++] = 2;
    return out;
}

dc_type dc_type_bound(const dc_type *t)
{
    dc_type out = *t;
    for (int i = 0; i < t->rank; i++)
        out.dim[i] = dc_extent_bound(t->dim[i]);
    return out;
}

int64_t dc_type_count(const dc_type *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= dc_extent_bound(t->dim[i]);
    return n;
}

size_t dc_type_bytes(const dc_type *t)
{
    return (size_t)dc_type_count(t) * dc_dtype_size((dc_dtype)t->dtype);
}

bool dc_type_same_shape(const dc_type *a, const dc_type *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

bool dc_type_agrees(const dc_type *a, const dc_type *b)
{
    if (!dc_type_same(a, b))
        return false;
    for (int k = 0; k < a->rank; k++)
        if (a->name[k] != NULL && b->name[k] != NULL && a->name[k] != b->name[k])
            return false;
    return true;
}

bool dc_type_same(const dc_type *a, const dc_type *b)
{
    return a->dtype == b->dtype && dc_type_same_shape(a, b);
}

/* A dim of 0 counts as 1, so that the strides of an empty tensor fit, too. */
bool dc_dims_known(int rank, const int64_t *dim)
{
    int i = 0;
    while (i < rank && dim[i] >= 0 && !dc_extent_is(dim[i]))
        i++;
    return i == rank;
}

bool dc_dims_fit(int rank, const int64_t *dim, size_t element)
{
    int64_t bytes = (int64_t)element;
    for (int i = 0; i < rank; i++)
        if (dim[i] < 0 || !dc_mul_ok(bytes, dim[i] ? dc_extent_bound(dim[i]) : 1, &bytes))
            return false;
    return true;
}

int dc_type_print(const dc_type *t, char *out, size_t size)
{
    size_t n = 0;
#define PRINT(...) \
    n += (size_t)snprintf(n < size ? out + n : NULL, n < size ? size - n : 0, __VA_ARGS__)
    PRINT("%s[", dc_dtype_name((dc_dtype)t->dtype));
    for (int i = 0; i < t->rank; i++) {
        PRINT("%s", i ? ", " : "");
        if (t->name[i] != NULL)
            PRINT("%s%s", t->name[i], dc_extent_is(t->dim[i]) ? " " : "=");
        PRINT("%s%" PRId64, dc_extent_is(t->dim[i]) ? "<= " : "", dc_extent_bound(t->dim[i]));
    }
    PRINT("]");
#undef PRINT
    return (int)n;
}

void dc_type_position(const dc_type *t, int64_t position, char *out, size_t size)
{
    int64_t at[DC_MAX_RANK];
    int n = 0;
    if (t->rank < 2 || dc_type_count(t) == 0) {
        snprintf(out, size, "%" PRId64, position + 1);
        return;
    }
    for (int k = t->rank - 1; k >= 0; k--) {
        at[k] = position % t->dim[k];
        position /= t->dim[k];
    }
    for (int k = 0; k < t->rank && n < (int)size; k++)
        n += snprintf(out + n, size - (size_t)n, "%s%" PRId64 "%s", k ? ", " : "[", at[k] + 1,
                      k == t->rank - 1 ? "]" : "");
}

void dc_type_matrix(const dc_type *t, int64_t position, char *out, size_t size)
{
    const int n = snprintf(out, size, t->rank == 0 ? "the matrix" : "matrix ");
    if (t->rank > 0 && n < (int)size)
        dc_type_position(t, position, out + n, size - (size_t)n);
}

/* The cursor of dc_type_parse. */
typedef struct reader {
    dc_job *j;
    dc_names *intern;
    const char *start, *at;
    dc_type_size *size; /* of names of dims; NULL: they have none */
    void *ctx;
    int nvar;
    int64_t var[DC_EXPR_VARS]; /* sizes of the names in the expression that is read */
} reader;

static void skip_blanks(reader *r)
{
    r->at = dc_expr_skip_blanks(r->at);
}

/* The type as the user wrote it: up to its bracket, or up to where it cannot go on. */
static size_t quoted_length(const char *s)
{
    size_t n = strcspn(s, "[]\n,)({}");
    if (s[n] == '[')
        n += strcspn(s + n, "]\n");
    return s[n] == ']' ? n + 1 : n;
}

static dc_status refuse_type(reader *r, const char *fmt, ...) DC_PRINTF(2, 3);

static dc_status refuse_type(reader *r, const char *fmt, ...)
{
    char type[120], reason[240];
    const size_t n = quoted_length(r->start);
    snprintf(type, sizeof type, "%.*s", (int)(n < 100 ? n : 100), r->start);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(reason, sizeof reason, fmt, ap);
    va_end(ap);
    return dc_fail(r->j, DC_ERR_TYPE_TEXT, &(dc_fact){.word = {type, reason}});
}

/* `expected` and the word that stands there instead. */
static dc_status expected(reader *r, const char *what)
{
    if (*r->at == '\0')
        return refuse_type(r, "%s expected at its end", what);
    size_t n = dc_expr_name_length(r->at);
    if (n == 0)
        while (isdigit((unsigned char)r->at[n]))
            n++;
    if (n == 0) /* a character, of several bytes if it is not ASCII */
        for (n = 1; ((unsigned char)r->at[n] & 0xC0) == 0x80;)
            n++;
    return refuse_type(r, "%s expected, not '%.*s'", what, (int)(n < 40 ? n : 40), r->at);
}

static dc_status read_dtype(reader *r, dc_type *out)
{
    const size_t n = dc_expr_name_length(r->at);
    dc_dtype t;
    if (n == 0)
        return expected(r, "a dtype");
    if (!dc_dtype_find(r->at, n, &t)) {
        char known[160] = "";
        size_t used = 0;
        const char *here = dc_dtype_elsewhere(r->at, n);
        if (here != NULL)
            return refuse_type(r, "unknown dtype '%.*s', which is called %s", (int)n, r->at, here);
        for (int i = 0; i < DC_DTYPE__ALL && used < sizeof known; i++)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                     dc_dtype_name((dc_dtype)i));
        return refuse_type(r, "unknown dtype '%.*s'; known are %s", (int)(n < 40 ? n : 40), r->at,
                           known);
    }
    out->dtype = (uint8_t)t;
    r->at += n;
    return DC_OK;
}

/* Why a size cannot be read; r->at is where. */
static dc_status refuse_size(reader *r, dc_expr_fault fault)
{
    size_t n = 0;
    while (dc_expr_starts_name(r->at[n]) || isdigit((unsigned char)r->at[n]))
        n++;
    const int shown = (int)(n < 40 ? n : 40);
    switch (fault) {
    case DC_EXPR_CLOSE:
        return expected(r, "')'");
    case DC_EXPR_NAME:
        return refuse_type(r, "'%.*s' has no size here", shown, r->at);
    case DC_EXPR_WORD:
        return refuse_type(r, "'%.*s' is neither a size nor a name", shown, r->at);
    case DC_EXPR_SLASH:
        return refuse_type(r, "sizes are divided by '//', not '/'");
    case DC_EXPR_ZEROS:
        return refuse_type(r, "size '%.*s' has a leading zero", shown, r->at);
    case DC_EXPR_LARGE:
        return n > 0 ? refuse_type(r, "size '%.*s' is too large", shown, r->at)
                     : refuse_type(r, "a size is too large");
    case DC_EXPR_ZERO:
        return refuse_type(r, "a size divides by zero");
    case DC_EXPR_LONG:
    case DC_EXPR_DEEP:
        return refuse_type(r, "a size is too long");
    case DC_EXPR_OPERAND:
    case DC_EXPR_OK:
    case DC_EXPR_UNKNOWN:
    case DC_EXPR_NOT_LINEAR:
        break;
    }
    if (*r->at == '-')
        return refuse_type(r, "a size is 0 or more, not '-'");
    return expected(r, "a size");
}

static int named_size(void *ctx, const char *name, size_t n)
{
    reader *r = ctx;
    if (r->nvar == DC_EXPR_VARS)
        return -1;
    r->var[r->nvar] = r->size(r->ctx, name, n);
    return r->var[r->nvar] < 0 ? -1 : r->nvar++;
}

/* 64, or an expression of numbers, and of names that have a size. */
static dc_status read_size(reader *r, int64_t *out)
{
    dc_expr_reader in = {.at = r->at, .var = r->size != NULL ? named_size : NULL, .ctx = r};
    r->nvar = 0;
    dc_expr_fault fault = dc_expr_read(&in);
    r->at = in.at;
    if (fault == DC_EXPR_OK)
        fault = dc_expr_eval_in(r->j->extents, &(dc_expr){in.n, in.node}, r->var, out);
    if (fault != DC_EXPR_OK)
        return refuse_size(r, fault);
    if (dc_extent_is(*out) && !dc_extent_known(r->j->extents, *out))
        *out = INT64_MAX; /* a number, and too large */
    return *out < 0 ? refuse_type(r, "a size is 0 or more, not %" PRId64, *out) : DC_OK;
}

/* Does the dim begin with a name that has a size: t, or 2 * t behind no "="? *alone: it is the whole. */
static bool is_sized(const reader *r, const char *name, size_t n, bool *alone)
{
    const char *after = dc_expr_skip_blanks(name + n);
    *alone = *after == ',' || *after == ']';
    return n > 0 && r->size != NULL && *after != '=' && r->size(r->ctx, name, n) >= 0;
}

/* 64, batch=64 or 2*32 */
static dc_status read_dim(reader *r, dc_type *out)
{
    const int axis = out->rank;
    const char *name = r->at;
    size_t n = dc_expr_name_length(r->at);
    bool alone;
    if (is_sized(r, name, n, &alone)) {
        n = alone ? n : 0;
    } else if (n > 0) {
        const int shown = (int)(n < 40 ? n : 40);
        r->at += n;
        skip_blanks(r);
        if (*r->at != '=')
            return refuse_type(r, "dim '%.*s' has no size; %.*s=64 gives it one", shown, name,
                               shown, name);
        if (r->intern == NULL)
            return refuse_type(r, "dim '%.*s' may have no name here", shown, name);
        r->at++;
        skip_blanks(r);
    } else if (strncmp(r->at, "...", 3) == 0) {
        return refuse_type(r, "'...' has no sizes here");
    }
    if (axis == DC_MAX_RANK)
        return refuse_type(r, "more than %d axes", DC_MAX_RANK);
    DC_TRY(read_size(r, &out->dim[axis]));
    if (n > 0)
        out->name[axis] = dc_name_intern(r->intern, name, n);
    out->rank++;
    return DC_OK;
}

static dc_status read_dims(reader *r, dc_type *out)
{
    skip_blanks(r);
    if (*r->at == ']')
        return DC_OK;
    for (;;) {
        skip_blanks(r);
        DC_TRY(read_dim(r, out));
        skip_blanks(r);
        if (*r->at != ',')
            return DC_OK;
        r->at++;
    }
}

dc_status dc_type_parse(dc_job *j, dc_names *intern, const char **text, dc_type *out)
{
    return dc_type_parse_with(j, intern, text, NULL, NULL, out);
}

dc_status dc_type_parse_with(dc_job *j, dc_names *intern, const char **text, dc_type_size *size,
                             void *ctx, dc_type *out)
{
    reader r = {.j = j, .intern = intern, .at = *text, .size = size, .ctx = ctx};
    dc_type t = {0};
    skip_blanks(&r);
    r.start = r.at;
    DC_TRY(read_dtype(&r, &t));
    skip_blanks(&r);
    if (*r.at != '[')
        return expected(&r, "'['");
    r.at++;
    DC_TRY(read_dims(&r, &t));
    if (*r.at != ']')
        return expected(&r, "',' or ']'");
    r.at++;
    if (!dc_type_has_parts(&t))
        return refuse_type(&r, "more than %d axes of complex numbers", DC_MAX_RANK - 1);
    if (!dc_dims_fit(t.rank, t.dim, dc_dtype_size((dc_dtype)t.dtype)))
        return refuse_type(&r, "too large to address");
    *text = r.at;
    *out = t;
    return DC_OK;
}

typedef struct seen_text { /* at `from` there was the text of `name` */
    const char *from, *name;
} seen_text;

enum { SEEN = 64 };

struct dc_names {
    dc_arena arena;
    const char **slot; /* open addressing, a power of two, at most half full */
    size_t nslot, used;
    seen_text seen[SEEN]; /* by address: what is copied names the same few texts again and again */
};

dc_names *dc_names_new(void)
{
    return dc_xalloc(sizeof(dc_names));
}

void dc_names_free(dc_names *n)
{
    if (n == NULL)
        return;
    dc_arena_free(&n->arena);
    dc_xfree(n->slot);
    dc_xfree(n);
}

static uint64_t hash_text(const char *s, size_t len)
{
    return dc_hash_mix(dc_hash_bytes(0xcbf29ce484222325u, s, len), len);
}

/* Where the name is or belongs. */
static const char **find_slot(const char **slot, size_t nslot, const char *s, size_t len)
{
    size_t i = hash_text(s, len) & (nslot - 1);
    while (slot[i] != NULL && (strncmp(slot[i], s, len) != 0 || slot[i][len] != '\0'))
        i = (i + 1) & (nslot - 1);
    return &slot[i];
}

static void grow_names(dc_names *n)
{
    const size_t nslot = n->nslot ? n->nslot * 2 : 64;
    const char **slot = dc_xalloc(nslot * sizeof *slot);
    for (size_t i = 0; i < n->nslot; i++)
        if (n->slot[i] != NULL)
            *find_slot(slot, nslot, n->slot[i], strlen(n->slot[i])) = n->slot[i];
    dc_xfree(n->slot);
    n->slot = slot;
    n->nslot = nslot;
}

const char *dc_name_intern(dc_names *n, const char *s, size_t len)
{
    if ((n->used + 1) * 2 > n->nslot)
        grow_names(n);
    const char **at = find_slot(n->slot, n->nslot, s, len);
    if (*at == NULL) {
        char *copy = dc_arena_alloc(&n->arena, len + 1); /* zeroed: it ends in '\0' */
        memcpy(copy, s, len);
        *at = copy;
        n->used++;
    }
    return *at;
}

const char *dc_name_intern_text(dc_names *n, const char *s)
{
    if (s == NULL)
        return NULL;
    seen_text *x = &n->seen[dc_hash_mix(0, (uintptr_t)s) % SEEN];
    if (x->from != s || strcmp(x->name, s) != 0) /* another text may be there now */
        *x = (seen_text){s, dc_name_intern(n, s, strlen(s))};
    return x->name;
}
