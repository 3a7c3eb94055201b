/*
 * Arrays of NumPy and archives of them, and safetensors, mostly valid (made.h): every type, either order of bytes and of
 * axes, headers of each version and of Python 2, deflated members; members whose elements are none of ours, which are left
 * out; fields and metadata that are stepped over.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/made.h"

enum { ARRAYS = 5 };

typedef struct code {
    const char *npy, *safetensors;
    dc_dtype dtype;
} code;

static const code codes[] = {
    {"f4", "F32", DC_F32}, {"b1", "BOOL", DC_BOOL}, {"i1", "I8", DC_I8},
    {"i2", "I16", DC_I16}, {"i4", "I32", DC_I32},   {"i8", "I64", DC_I64},
    {"u1", "U8", DC_U8},   {"u2", "U16", DC_U16},   {"u4", "U32", DC_U32},
    {"u8", "U64", DC_U64}, {"f2", "F16", DC_F16},   {"V2", "BF16", DC_BF16},
    {"f8", "F64", DC_F64}, {"c8", "C64", DC_C64},   {"c16", "C128", DC_C128},
};

typedef struct array {
    const code *code;
    dc_type type;
    const unsigned char *bytes;
    size_t n;
} array;

static array choose(made *m)
{
    int64_t dim[DC_MAX_RANK];
    array a = {.code = &codes[made_below(m, DC_COUNTOF(codes))]};
    const int rank = made_sizes(m, 5, dim);
    a.type = dc_type_make(a.code->dtype, rank, dim);
    a.n = dc_type_bytes(&a.type);
    a.bytes = made_data(m, a.code->dtype, a.n);
    return a;
}

/* ---- NumPy ------------------------------------------------------------------------------------ */

/* The elements as the file has them. */
static void put_elements(made *m, const array *a, bool fortran, bool swap)
{
    const size_t size = dc_dtype_size(a->code->dtype);
    const size_t part = dc_dtype_size(dc_dtype_part(a->code->dtype));
    int64_t index[DC_MAX_RANK] = {0};
    for (int64_t k = 0; k < dc_type_count(&a->type); k++) {
        int64_t at = 0;
        for (int i = 0; i < a->type.rank; i++)
            at = at * a->type.dim[i] + index[i];
        for (size_t i = 0; i < size; i++)
            made_byte(
                m,
                a->bytes[(size_t)at * size + (swap ? i / part * part + (part - 1 - i % part) : i)]);
        for (int i = 0; i < a->type.rank; i++) {
            const int axis = fortran ? i : a->type.rank - 1 - i;
            if (++index[axis] < a->type.dim[axis])
                break;
            index[axis] = 0;
        }
    }
}

static const char *shape_of(made *m, const array *a)
{
    const char *s = "", *suffix = made_below(m, 8) == 7 ? "L" : ""; /* as Python 2 writes it */
    for (int i = 0; i < a->type.rank; i++)
        s = dc_arena_printf(m->arena, "%s%s%" PRIu64 "%s", s, i == 0 ? "" : ", ",
                            made_number(m, (uint64_t)a->type.dim[i]), suffix);
    return dc_arena_printf(m->arena, "%s%s", s, a->type.rank == 1 ? "," : "");
}

static void put_array(made *m, const array *a)
{
    const uint32_t version = 1 + made_below(m, 3);
    const bool fortran = made_once_in(m, 3), swap = made_once_in(m, 3), last = made_once_in(m, 2);
    const char order = dc_dtype_size(a->code->dtype) == 1 ? '|' : swap ? '>' : '<';
    char *descr = dc_arena_printf(m->arena, "'descr': '%c%s'", order, a->code->npy);
    char *head = dc_arena_printf(m->arena, "{%s%s'fortran_order': %s, 'shape': (%s), %s}",
                                 last ? "" : descr, last ? "" : ", ", fortran ? "True" : "False",
                                 shape_of(m, a), last ? descr : "");
    const size_t used = strlen(head) + (version == 1 ? 10 : 12) + 1;
    const size_t length = dc_align_up(used, made_once_in(m, 2) ? 16 : 64) - used + strlen(head) + 1;
    made_text(m, "\x93NUMPY");
    made_byte(m, version);
    made_byte(m, 0);
    made_le(m, made_number(m, length), version == 1 ? 2 : 4);
    made_text(m, head);
    for (size_t i = strlen(head) + 1; i < length; i++)
        made_byte(m, ' ');
    made_byte(m, '\n');
    put_elements(m, a, fortran, swap && order != '|');
}

/* Texts, records, objects, too many axes: in the list, and not read. */
static void put_unread(made *m)
{
    static const char *const heads[] = {
        "{'descr': '<U3', 'fortran_order': False, 'shape': (1,), }\n",
        "{'descr': '|O', 'fortran_order': False, 'shape': (), }\n",
        "{'descr': [('a', '<f4'), ('b', '|S2', (2, 3))], 'fortran_order': False, 'shape': (0,), "
        "}\n",
        "{'descr': ('<i8', (2,)), 'fortran_order': False, 'shape': (0,), }\n",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }\n",
    };
    const char *head = heads[made_below(m, DC_COUNTOF(heads))];
    made_put(m, "\x93NUMPY\1\0", 8);
    made_le(m, strlen(head), 2);
    made_text(m, head);
    made_put(m, "some bytes", 10);
}

static void make_archive(made *m)
{
    made_entry entry[ARRAYS + 1];
    const uint32_t n = 1 + made_below(m, ARRAYS);
    for (uint32_t i = 0; i < n; i++) {
        const bool unread = made_below(m, 8) == 7;
        const array a = choose(m);
        const char *name = made_name(m, "", i);
        const made file = made_part_begin(m);
        if (unread)
            put_unread(m);
        else
            put_array(m, &a);
        const made part = made_part_end(m, &file);
        entry[i] =
            (made_entry){dc_arena_printf(m->arena, "%s.npy", name), part.at, part.n, 0, true};
        if (unread)
            made_expect_unread(m, name);
        else
            made_expect(m, name, &a.type, a.bytes, a.n);
    }
    made_zip(m, entry, n);
}

/* ---- safetensors ------------------------------------------------------------------------------ */

static void put_entry(made *m, const char *name, const array *a, uint64_t at)
{
    const char *more = made_below(m, 8) == 7 ? "\"more\":[1.5,{\"x\":null}]," : "";
    made_st_entry(m, name, more, a->code->safetensors, &a->type, at, a->n);
}

static void make_safetensors(made *m)
{
    array a[ARRAYS];
    const uint32_t n = made_below(m, ARRAYS + 1), texts = made_below(m, 3);
    const bool null = texts == 0 && made_once_in(m, 4);
    const made file = made_part_begin(m);
    uint64_t at = 0;
    made_byte(m, '{');
    if (null)
        made_text(m, "\"__metadata__\":null");
    if (texts > 0)
        made_text(m, "\"__metadata__\":{");
    for (uint32_t i = 0; i < texts; i++) {
        made_quoted(m, made_name(m, "key", i));
        made_byte(m, ':');
        made_quoted(m, made_name(m, "", i));
        made_byte(m, i + 1 < texts ? ',' : '}');
    }
    for (uint32_t i = 0; i < n; i++) {
        const char *name = made_name(m, "layer.", i);
        a[i] = choose(m);
        made_text(m, i > 0 || texts > 0 || null ? "," : "");
        put_entry(m, name, &a[i], at);
        made_expect(m, name, &a[i].type, a[i].bytes, a[i].n);
        at += a[i].n;
    }
    made_byte(m, '}');
    made_align(m, 8, ' ');
    const made header = made_part_end(m, &file);
    made_le(m, made_number(m, header.n), 8);
    made_put(m, header.at, header.n);
    for (uint32_t i = 0; i < n; i++)
        made_put(m, a[i].bytes, a[i].n);
}

/* ---- all of them ------------------------------------------------------------------------------ */

static dc_status body(dc_job *j, void *arg)
{
    made m;
    made_begin(&m, &j->scratch, arg);
    const uint32_t how = made_below(&m, 4);
    if (how == 0) {
        const array a = choose(&m);
        put_array(&m, &a);
        made_expect(&m, "value", &a.type, a.bytes, a.n);
        if (made_below(&m, 8) == 7) /* another one, which is left */
            put_array(&m, &a);
    } else if (how == 1) {
        make_safetensors(&m);
    } else {
        make_archive(&m);
    }
    made_end(&m);
    return made_tensors_check(j, &m);
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
