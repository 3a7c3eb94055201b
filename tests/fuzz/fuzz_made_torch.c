/*
 * Files of torch.save, mostly valid (made.h): archives and files of several pickles, protocols 2 to 5; tables, lists and
 * tuples in each other, tensors of every type that share storages, with strides and offsets, expanded and conjugated, as
 * parameters and subclasses; archives that are packed, and of machines with the other order of bytes; what is left out.
 */
#include "core/base/bits.h"

#include <stdio.h>
#include <string.h>

#include "tests/fuzz/made.h"

enum { STORAGES = 12, DEEP = 3, ITEMS = 5, SHARED = 8 };

typedef struct element {
    const char *name, *storage; /* NULL: of an untyped one alone */
    dc_dtype dtype;
    unsigned size;
    bool packed;
} element;

static const element elements[] = {
    {"float32", "FloatStorage", DC_F32, 4, false},
    {"float64", "DoubleStorage", DC_F64, 8, false},
    {"float16", "HalfStorage", DC_F16, 2, false},
    {"bfloat16", "BFloat16Storage", DC_BF16, 2, false},
    {"int64", "LongStorage", DC_I64, 8, false},
    {"int32", "IntStorage", DC_I32, 4, false},
    {"int16", "ShortStorage", DC_I16, 2, false},
    {"int8", "CharStorage", DC_I8, 1, false},
    {"uint8", "ByteStorage", DC_U8, 1, false},
    {"bool", "BoolStorage", DC_BOOL, 1, false},
    {"complex64", "ComplexFloatStorage", DC_C64, 8, false},
    {"complex128", "ComplexDoubleStorage", DC_C128, 16, false},
    {"uint16", NULL, DC_U16, 2, false},
    {"uint32", NULL, DC_U32, 4, false},
    {"uint64", NULL, DC_U64, 8, false},
    {"float8_e4m3fn", NULL, DC_F8E4M3FN, 1, false},
    {"float8_e5m2", NULL, DC_F8E5M2, 1, false},
    {"float8_e4m3fnuz", NULL, DC_F32, 1, true},
    {"float8_e5m2fnuz", NULL, DC_F32, 1, true},
    {"float8_e8m0fnu", NULL, DC_F32, 1, true},
};

typedef struct storage {
    const element *element;
    bool untyped;
    const unsigned char *bytes;
    uint64_t n;
} storage;

/* A tensor that a later value may be again. */
typedef struct shared {
    uint32_t memo;
    made_tensor tensor;
} shared;

typedef struct torch {
    made *m;
    bool legacy, fresh; /* fresh: protocol 4 and its opcodes */
    bool big;           /* numbers of storages have their highest byte first */
    uint32_t memo, nstorage, nshared;
    storage storage[STORAGES];
    shared shared[SHARED];
    char path[400];
    size_t length; /* of the path */
} torch;

/* ---- opcodes ---------------------------------------------------------------------------------- */

static void put_text(torch *t, const char *s)
{
    const size_t n = strlen(s);
    const bool small = t->fresh && n < 256;
    made_byte(t->m, small ? 0x8c : 'X');
    made_le(t->m, made_number(t->m, n), small ? 1 : 4);
    made_text(t->m, s);
}

static void put_global(torch *t, const char *module, const char *name)
{
    if (!t->fresh) {
        made_printf(t->m, "c%s\n%s\n", module, name);
        return;
    }
    put_text(t, module);
    put_text(t, name);
    made_byte(t->m, 0x93);
}

static void put_int(torch *t, uint64_t right)
{
    const uint64_t v = made_number(t->m, right);
    if (v < 256) {
        made_byte(t->m, 'K');
        made_le(t->m, v, 1);
    } else if (v < 65536) {
        made_byte(t->m, 'M');
        made_le(t->m, v, 2);
    } else if ((int64_t)v == (int32_t)v) {
        made_byte(t->m, 'J');
        made_le(t->m, v, 4);
    } else {
        made_byte(t->m, 0x8a);
        made_byte(t->m, 8);
        made_le(t->m, v, 8);
    }
}

/* What stands on top of the stack is kept; returns its number. */
static uint32_t put_memo(torch *t)
{
    if (t->fresh) {
        made_byte(t->m, 0x94);
    } else if (t->memo < 256) {
        made_byte(t->m, 'q');
        made_le(t->m, made_number(t->m, t->memo), 1);
    } else {
        made_byte(t->m, 'r');
        made_le(t->m, t->memo, 4);
    }
    return t->memo++;
}

static void put_get(torch *t, uint32_t memo)
{
    made_byte(t->m, memo < 256 ? 'h' : 'j');
    made_le(t->m, made_number(t->m, memo), memo < 256 ? 1 : 4);
}

static void put_numbers(torch *t, int n, const int64_t *v)
{
    made_text(t->m, n == 0 ? ")" : n > 3 ? "(" : "");
    for (int i = 0; i < n; i++)
        put_int(t, (uint64_t)v[i]);
    if (n > 0)
        made_byte(t->m, n > 3 ? 't' : 0x84u + (unsigned)n);
}

static void put_begin(torch *t)
{
    made_byte(t->m, 0x80);
    made_byte(t->m, t->fresh ? 4 + made_below(t->m, 2) : 2 + made_below(t->m, 2));
    if (t->fresh && made_once_in(t->m, 2)) {
        made_byte(t->m, 0x95);
        made_le(t->m, 100, 8);
    }
    t->memo = 0;
}

static void put_hooks(torch *t)
{
    put_global(t, "collections", "OrderedDict");
    made_text(t->m, ")R");
}

/* ---- tensors ---------------------------------------------------------------------------------- */

typedef struct view {
    int rank;
    int64_t dim[DC_MAX_RANK], stride[DC_MAX_RANK], offset;
    int64_t reach; /* elements that the storage needs */
    bool conj, neg;
} view;

/* Any order of the axes in memory, with gaps. */
static void choose_view(torch *t, view *v)
{
    made *m = t->m;
    int order[DC_MAX_RANK];
    int64_t step = made_below(m, 4) == 3 ? 2 : 1;
    bool none = false;
    v->rank = made_sizes(m, 5, v->dim);
    const bool turned = made_once_in(m, 2);
    for (int i = 0; i < v->rank; i++)
        order[i] = i;
    for (int i = v->rank; turned && i-- > 1;) {
        const int k = (int)made_below(m, (uint32_t)i + 1), was = order[i];
        order[i] = order[k];
        order[k] = was;
    }
    v->offset = made_below(m, 4) == 3 ? made_below(m, 9) : 0;
    v->reach = v->offset + 1;
    for (int i = v->rank; i-- > 0;) {
        const int a = order[i];
        if (v->dim[a] > 1 && made_below(m, 16) == 15) { /* the same elements again and again */
            v->stride[a] = 0;
            continue;
        }
        v->stride[a] = step;
        none = none || v->dim[a] == 0;
        v->reach += v->dim[a] > 0 ? (v->dim[a] - 1) * step : 0;
        step *= v->dim[a] > 1 ? v->dim[a] : 1;
        step += made_below(m, 16) == 15;
    }
    v->reach = none ? v->offset : v->reach;
}

static uint32_t choose_storage(torch *t, const element *e, int64_t reach)
{
    made *m = t->m;
    const bool untyped = e->storage == NULL || (!t->legacy && made_below(m, 4) == 3);
    for (uint32_t i = 0; i < t->nstorage; i++)
        if (t->storage[i].element == e && t->storage[i].untyped == untyped &&
            (uint64_t)reach * e->size <= t->storage[i].n &&
            (made_once_in(m, 2) || t->nstorage == STORAGES))
            return i;
    if (t->nstorage == STORAGES)
        return STORAGES;
    storage *s = &t->storage[t->nstorage];
    *s = (storage){.element = e, .untyped = untyped};
    s->n = (uint64_t)(reach + (made_once_in(m, 2) ? made_below(m, 20) : 0)) * e->size;
    s->bytes = made_data(m, e->dtype, s->n);
    return t->nstorage++;
}

/* Some are a part of the storage, from one of its elements on: *first. */
static void put_storage(torch *t, uint32_t which, int64_t most, int64_t *first)
{
    const storage *s = &t->storage[which];
    const uint64_t n = s->untyped ? s->n : s->n / s->element->size;
    char key[16];
    *first = most > 0 && !s->untyped && made_below(t->m, 8) == 7
                 ? made_below(t->m, (uint32_t)most + 1)
                 : 0;
    snprintf(key, sizeof key, "%u", (unsigned)made_number(t->m, which));
    made_byte(t->m, '(');
    put_text(t, "storage");
    if (s->untyped)
        put_global(t, "torch.storage", "UntypedStorage");
    else
        put_global(t, "torch", s->element->storage);
    put_text(t, key);
    put_text(t, made_once_in(t->m, 2) ? "cuda:0" : "cpu");
    put_int(t, n);
    if (*first > 0) {
        put_text(t, "view");
        put_int(t, (uint64_t)*first);
        put_int(t, n - (uint64_t)*first);
        made_byte(t->m, 0x87);
    } else if (t->legacy) {
        made_byte(t->m, 'N');
    }
    made_text(t->m, "tQ");
}

/* Conjugates and negatives, which are only noted beside the storage. */
static void apply_signs(const view *v, const element *e, unsigned char *at, size_t n)
{
    const dc_dtype part = dc_dtype_part(e->dtype);
    const size_t size = dc_dtype_size(part);
    for (size_t i = 0; i < n; i += size) {
        uint64_t bits = dc_bits_load(part, at + i);
        const bool minus = v->neg != (v->conj && i / size % 2 == 1);
        if (minus && dc_dtype_is_float(part))
            bits ^= (uint64_t)1 << (8 * size - 1);
        else if (minus)
            bits = 0 - bits;
        dc_bits_store(part, at + i, bits);
    }
}

static const unsigned char *gather(torch *t, const view *v, const storage *s, size_t *n)
{
    const size_t size = s->element->size;
    int64_t index[DC_MAX_RANK] = {0}, count = 1;
    for (int i = 0; i < v->rank; i++)
        count *= v->dim[i];
    *n = (size_t)count * size;
    unsigned char *to = dc_arena_alloc(t->m->arena, *n + 1);
    for (int64_t k = 0; k < count; k++) {
        int64_t at = v->offset;
        for (int i = 0; i < v->rank; i++)
            at += index[i] * v->stride[i];
        memcpy(to + (size_t)k * size, s->bytes + (size_t)at * size, size);
        for (int i = v->rank; i-- > 0 && ++index[i] == v->dim[i];)
            index[i] = 0;
    }
    if (v->conj || v->neg)
        apply_signs(v, s->element, to, *n);
    return to;
}

static void put_signs(torch *t, const view *v)
{
    made_text(t->m, "}(");
    put_text(t, "conj");
    made_byte(t->m, v->conj ? 0x88 : 0x89);
    if (v->neg) {
        put_text(t, "neg");
        made_byte(t->m, 0x88);
    }
    made_byte(t->m, 'u');
}

static void put_rebuild(torch *t, const view *v, uint32_t which)
{
    made *m = t->m;
    const storage *s = &t->storage[which];
    const bool third = s->untyped;
    int64_t first;
    made_byte(m, '(');
    put_storage(t, which, v->offset, &first);
    put_int(t, (uint64_t)(v->offset - first));
    if (made_below(m, 8) == 7) {
        put_global(t, "torch", "Size");
        put_numbers(t, v->rank, v->dim);
        made_text(m, "\x85R");
    } else {
        put_numbers(t, v->rank, v->dim);
    }
    put_numbers(t, v->rank, v->stride);
    made_byte(m, made_once_in(m, 2) ? 0x88 : 0x89);
    put_hooks(t);
    if (third)
        put_global(t, "torch", s->element->name);
    if (v->conj || v->neg)
        put_signs(t, v);
    else if (made_once_in(m, 4))
        made_byte(m, '}');
    made_byte(m, 't');
}

/* The call, plain, of a subclass or of a parameter. */
static void put_call(torch *t, const view *v, uint32_t which)
{
    made *m = t->m;
    const uint32_t how = made_below(m, 8);
    const char *rebuild = t->storage[which].untyped ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2";
    if (how == 6)
        put_global(t, "torch._utils", "_rebuild_parameter");
    if (how == 7) {
        put_global(t, "torch._tensor", "_rebuild_from_type_v2");
        made_byte(m, '(');
    }
    if (how == 6)
        made_byte(m, '(');
    put_global(t, "torch._utils", rebuild);
    if (how == 7)
        put_global(t, "torch.nn.parameter", "Parameter");
    put_rebuild(t, v, which);
    if (how == 7) {
        made_text(m, "}tR");
        return;
    }
    made_byte(m, 'R');
    if (how == 6) {
        made_byte(m, 0x88);
        put_hooks(t);
        made_text(m, "tR");
    }
}

static void keep_shared(torch *t, uint32_t memo, const made_tensor *x)
{
    if (t->nshared < SHARED)
        t->shared[t->nshared++] = (shared){memo, *x};
}

static void put_tensor(torch *t)
{
    made *m = t->m;
    view v;
    made_tensor x = {.name = dc_arena_strdup(m->arena, t->path)};
    const element *e = &elements[made_below(m, DC_COUNTOF(elements))];
    if (t->legacy && e->storage == NULL)
        e = &elements[0];
    choose_view(t, &v);
    const uint32_t which = choose_storage(t, e, v.reach);
    if (which == STORAGES) {
        made_byte(m, 'N');
        return;
    }
    const uint32_t signs = made_below(m, 8);
    v.conj = dc_dtype_is_complex(e->dtype) && signs >= 6;
    v.neg = !e->packed && e->dtype != DC_BOOL && signs == 7;
    x.type = dc_type_make(e->dtype, v.rank, v.dim);
    x.bytes = gather(t, &v, &t->storage[which], &x.n);
    put_call(t, &v, which);
    keep_shared(t, put_memo(t), &x);
    made_expect(m, x.name, &x.type, x.bytes, x.n);
}

/* One that has been put, again: by another name. */
static void put_again(torch *t)
{
    if (t->nshared == 0) {
        made_byte(t->m, 'N');
        return;
    }
    const shared *s = &t->shared[made_below(t->m, t->nshared)];
    put_get(t, s->memo);
    made_expect(t->m, dc_arena_strdup(t->m->arena, t->path), &s->tensor.type, s->tensor.bytes,
                s->tensor.n);
}

/* A storage by itself: its elements in a row. */
static void put_row(torch *t)
{
    made *m = t->m;
    int64_t first;
    if (t->nstorage == 0 || t->storage[t->nstorage - 1].untyped) {
        made_byte(m, 'N');
        return;
    }
    const storage *s = &t->storage[t->nstorage - 1];
    const int64_t n = (int64_t)(s->n / s->element->size);
    const dc_type type = dc_type_make(s->element->dtype, 1, &n);
    put_storage(t, t->nstorage - 1, 0, &first);
    made_expect(m, dc_arena_strdup(m->arena, t->path), &type, s->bytes, s->n);
}

/* Tensors that are in the list, and are not read. */
static void put_unread(torch *t)
{
    made *m = t->m;
    const char *name = dc_arena_strdup(m->arena, t->path);
    switch (made_below(m, 4)) {
    case 0:
        put_global(t, "torch._utils", "_rebuild_sparse_tensor");
        put_global(t, "torch.serialization", "_get_layout");
        put_text(t, "torch.sparse_coo");
        made_text(m, "\x85R)\x86R");
        break;
    case 1:
        put_global(t, "torch._utils", "_rebuild_meta_tensor_no_storage");
        made_byte(m, '(');
        put_global(t, "torch", "float32");
        made_text(m, "))\x89tR");
        break;
    case 2:
        put_global(t, "torch._utils", "_rebuild_qtensor");
        put_global(t, "torch", "per_tensor_affine");
        made_text(m, "\x85R");
        break;
    default:
        put_global(t, "torch._tensor", "_rebuild_from_type_v2");
        made_byte(m, '(');
        put_global(t, "torch._utils", "_rebuild_wrapper_subclass");
        put_global(t, "torch", "Tensor");
        made_text(m, "N\x85}tR");
    }
    made_expect_unread(m, name);
}

/* ---- values ----------------------------------------------------------------------------------- */

static void put_value(torch *t, int depth);

static void put_item(torch *t, const char *name, int depth)
{
    const size_t n = t->length;
    t->length += (size_t)snprintf(t->path + n, sizeof t->path - n, "%s%s", n > 0 ? "." : "", name);
    put_value(t, depth + 1);
    t->length = n;
    t->path[n] = '\0';
}

static void put_dict(torch *t, int depth)
{
    made *m = t->m;
    const uint32_t n = made_below(m, ITEMS), one = made_once_in(m, 2);
    const uint32_t kind = made_below(m, 8);
    if (kind == 7) {
        put_global(t, "collections", "Counter");
        made_text(m, made_once_in(m, 2) ? "}\x85R" : ")R");
    } else if (kind == 6) { /* of pairs, as Python 2 wrote it */
        put_global(t, "collections", "OrderedDict");
        made_text(m, "](](");
        put_text(t, "pair");
        made_text(m, "Nee\x85R");
    } else if (kind > 2) {
        put_hooks(t); /* an ordered one */
    } else {
        made_byte(m, '}');
    }
    if (made_once_in(m, 2))
        put_memo(t);
    if (!one)
        made_byte(m, '(');
    for (uint32_t i = 0; i < n; i++) {
        const bool number = made_below(m, 8) == 7;
        if (made_below(m, 16) == 15) { /* what stands for such a key is left out */
            made_text(m, made_once_in(m, 2) ? "NN" : "N\x85N");
            if (one)
                made_byte(m, 's');
        }
        const char *name =
            number ? dc_arena_printf(m->arena, "%u", 1000 + i) : made_name(m, "k", i);
        if (number)
            put_int(t, 1000 + i);
        else
            put_text(t, name);
        put_item(t, name, depth);
        if (one)
            made_byte(m, 's');
    }
    if (!one)
        made_byte(m, 'u');
    if (made_below(m, 8) == 7)
        made_text(m, "}b"); /* its attributes */
}

static void put_list(torch *t, int depth)
{
    made *m = t->m;
    const uint32_t n = made_below(m, ITEMS), how = made_below(m, 4);
    made_text(m, how == 0 ? "](" : how == 1 ? "]" : "(");
    for (uint32_t i = 0; i < n; i++) {
        put_item(t, dc_arena_printf(m->arena, "%u", i + 1), depth);
        if (how == 1)
            made_byte(m, 'a');
    }
    if (how != 1)
        made_byte(m, how == 0 ? 'e' : how == 2 ? 't' : 'l');
}

/* A number of any length. */
static void put_long(made *m)
{
    const uint32_t n = made_below(m, 9);
    made_byte(m, 0x8a);
    made_byte(m, n);
    for (uint32_t i = 0; i < n; i++)
        made_byte(m, made_below(m, 256));
}

static void put_plain(torch *t)
{
    made *m = t->m;
    switch (made_below(m, 15)) {
    case 0:
        made_byte(m, 'N');
        return;
    case 1:
        made_byte(m, made_once_in(m, 2) ? 0x88 : 0x89);
        return;
    case 2:
        put_int(t, made_below(m, 1 << 24));
        return;
    case 3:
        put_long(m);
        return;
    case 4:
        made_byte(m, 'G');
        made_be(m, (uint64_t)made_below(m, 1 << 24) << 40, 8);
        return;
    case 5:
        put_text(t, made_name(m, "", made_below(m, 5)));
        return;
    case 6:
        put_global(t, "torch", elements[made_below(m, DC_COUNTOF(elements))].name);
        return;
    case 7:
        put_global(t, "torch", "device");
        put_text(t, "cuda");
        made_text(m, "\x85R");
        return;
    case 8:
        put_int(t, 7); /* pushed, and taken away again */
        made_text(m, made_once_in(m, 2) ? "20N(NN10" : "0N(NN1");
        return;
    case 9:
        put_global(t, "_codecs", "encode");
        put_text(t, "a\xc3\xbf");
        put_text(t, "latin1");
        made_text(m, "\x86R");
        return;
    case 10:
        put_global(t, "__builtin__", made_once_in(m, 2) ? "set" : "bytearray");
        made_text(m, ")R");
        return;
    case 11:
        put_global(t, "builtins", "complex");
        made_text(m, "K\1K\2\x86R");
        return;
    case 12:
        made_byte(m, 0x8a);
        made_byte(m, 9);
        made_le(m, made_below(m, 1 << 24), 8);
        made_byte(m, made_below(m, 256));
        return;
    case 13:
        put_global(t, "torch.cuda.sparse", "HalfTensor");
        return;
    default:
        made_byte(m, 'J');
        made_le(m, (uint64_t) - (int64_t)made_below(m, 1 << 16), 4);
        return;
    }
}

static void put_value(torch *t, int depth)
{
    const uint32_t how = made_below(t->m, 14);
    if (depth < DEEP && how < 2)
        put_dict(t, depth);
    else if (depth < DEEP && how == 2)
        put_list(t, depth);
    else if (how < 8)
        put_tensor(t);
    else if (how == 8)
        put_again(t);
    else if (how == 9 && made_once_in(t->m, 2))
        put_row(t);
    else if (how == 9)
        put_unread(t);
    else
        put_plain(t);
}

static void put_root(torch *t)
{
    const uint32_t how = made_below(t->m, 8);
    put_begin(t);
    if (how < 5)
        put_dict(t, 0);
    else if (how < 7)
        put_list(t, 0);
    else
        put_item(t, "value", DEEP);
    made_byte(t->m, '.');
}

/* ---- files ------------------------------------------------------------------------------------ */

/* As the file has them: numbers of typed storages with their bytes turned round. */
static const unsigned char *bytes_of(const torch *t, const storage *s)
{
    const size_t size = s->untyped ? 1 : dc_dtype_size(dc_dtype_part(s->element->dtype));
    if (!t->big || size == 1)
        return s->bytes;
    unsigned char *to = dc_arena_alloc(t->m->arena, s->n + 1);
    for (size_t i = 0; i < s->n; i++)
        to[i] = s->bytes[i / size * size + (size - 1 - i % size)];
    return to;
}

static void make_archive(torch *t)
{
    made *m = t->m;
    t->big = made_below(m, 8) == 7;
    const bool packed = made_below(m, 8) == 7;
    made_entry entry[STORAGES + 4];
    uint32_t n = 0;
    put_root(t);
    entry[n++] = (made_entry){"archive/data.pkl", m->at, m->n, 0, true};
    m->at = NULL;
    m->n = m->room = 0;
    for (uint32_t i = 0; i < t->nstorage; i++)
        entry[n++] = (made_entry){dc_arena_printf(m->arena, "archive/data/%u", i),
                                  bytes_of(t, &t->storage[i]), t->storage[i].n,
                                  made_once_in(m, 2) ? 64 : 0, packed};
    entry[n++] = (made_entry){"archive/version", (const unsigned char *)"3\n", 2, 0, true};
    const char *order = t->big ? "big" : "little";
    if (t->big || made_once_in(m, 2))
        entry[n++] =
            (made_entry){"archive/byteorder", (const unsigned char *)order, strlen(order), 0, true};
    made_zip(m, entry, n);
}

static void make_legacy(torch *t)
{
    made *m = t->m;
    made_put(m, "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19.", 15);
    put_begin(t);
    put_int(t, 1001);
    made_byte(m, '.');
    put_begin(t);
    made_text(m, "}(");
    put_text(t, "little_endian");
    made_text(m, "\x88u.");
    put_root(t);
    put_begin(t);
    made_text(m, "](");
    for (uint32_t i = 0; i < t->nstorage; i++)
        put_text(t, dc_arena_printf(m->arena, "%u", i));
    made_text(m, "e.");
    for (uint32_t i = 0; i < t->nstorage; i++) {
        made_le(m, made_number(m, t->storage[i].n / t->storage[i].element->size), 8);
        made_put(m, t->storage[i].bytes, t->storage[i].n);
    }
}

static dc_status body(dc_job *j, void *arg)
{
    made m;
    made_begin(&m, &j->scratch, arg);
    torch *t = DC_NEW(&j->scratch, torch);
    t->m = &m;
    t->legacy = made_once_in(&m, 3);
    t->fresh = made_once_in(&m, 3);
    if (t->legacy)
        make_legacy(t);
    else
        make_archive(t);
    made_end(&m);
    return made_tensors_check(j, &m);
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
