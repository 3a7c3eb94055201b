/* GGUF, mostly valid (made.h): metadata of every type, lists in lists, tensors of every type with gaps between them. */
#include <string.h>

#include "tests/fuzz/made.h"

enum { DEEPEST = 4, TENSORS = 6 };

typedef struct kind {
    uint32_t number;
    dc_dtype dtype;
    const char *packing;
} kind;

static const kind kinds[] = {
    {0, DC_F32, NULL},   {1, DC_F16, NULL},    {24, DC_I8, NULL},    {25, DC_I16, NULL},
    {26, DC_I32, NULL},  {27, DC_I64, NULL},   {28, DC_F64, NULL},   {30, DC_BF16, NULL},
    {2, DC_F32, "q4_0"}, {3, DC_F32, "q4_1"},  {6, DC_F32, "q5_0"},  {7, DC_F32, "q5_1"},
    {8, DC_F32, "q8_0"}, {12, DC_F32, "q4_k"}, {13, DC_F32, "q5_k"}, {14, DC_F32, "q6_k"},
};

static void put_text(made *m, const char *s)
{
    made_le(m, made_number(m, strlen(s)), 8);
    made_text(m, s);
}

static void put_value(made *m, uint32_t type, int depth);

static void put_list(made *m, int depth)
{
    /* those of lists end at the deepest */
    uint32_t of = made_below(m, 13);
    of = of == DC_META_LIST && depth == DEEPEST - 1 ? DC_META_TEXT : of;
    const uint32_t n = made_below(m, 5);
    made_le(m, made_number(m, of), 4);
    made_le(m, made_number(m, n), 8);
    for (uint32_t i = 0; i < n; i++)
        put_value(m, of, depth + 1);
}

static void put_value(made *m, uint32_t type, int depth)
{
    static const int size_of[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == DC_META_LIST)
        put_list(m, depth);
    else if (type == DC_META_TEXT)
        put_text(m, made_name(m, "text", made_below(m, 3)));
    else if (type == DC_META_BOOL)
        made_le(m, made_number(m, made_below(m, 2)), 1);
    else
        made_le(m, (uint64_t)made_below(m, 1 << 24) * 0x9e3779b97f4a7c15u, size_of[type]);
}

static void put_metadata(made *m, uint32_t n, uint32_t alignment)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t type = made_below(m, 13);
        put_text(m, made_name(m, "general.", i));
        made_le(m, made_number(m, type), 4);
        put_value(m, type, 0);
    }
    if (alignment == 0)
        return;
    put_text(m, "general.alignment");
    made_le(m, DC_META_U32, 4);
    made_le(m, made_number(m, alignment), 4);
}

typedef struct tensor {
    const char *name;
    const kind *kind;
    dc_type type;
    uint64_t at;
    const unsigned char *bytes;
    size_t n;
} tensor;

static void choose(made *m, tensor *t, uint32_t number)
{
    int64_t dim[DC_MAX_RANK];
    t->kind = &kinds[made_below(m, DC_COUNTOF(kinds))];
    t->name = made_name(m, "blk.", number);
    const dc_packing *p = t->kind->packing != NULL ? dc_packing_find(t->kind->packing) : NULL;
    int rank = made_sizes(m, 4, dim);
    if (p != NULL) {
        rank = rank == 0 ? 1 : rank > 2 ? 2 : rank;
        dim[rank - 1] = p->elements * (1 + made_below(m, 2));
    }
    t->type = dc_type_make(t->kind->dtype, rank, dim);
    t->n =
        p != NULL ? dc_packing_bytes(p, (size_t)dc_type_count(&t->type)) : dc_type_bytes(&t->type);
    t->bytes = made_data(m, t->kind->dtype, t->n);
    made_expect(m, t->name, &t->type, t->bytes, t->n);
}

static void make(made *m)
{
    tensor t[TENSORS];
    const uint32_t n = made_below(m, TENSORS + 1), entries = made_below(m, 6);
    const uint32_t said = made_once_in(m, 2) ? 1u << made_below(m, 9) : 0;
    const uint64_t alignment = said > 0 ? said : 32;
    uint64_t at = 0;
    made_text(m, "GGUF");
    made_le(m, 2 + made_below(m, 2), 4);
    made_le(m, made_number(m, n), 8);
    made_le(m, made_number(m, entries + (said > 0)), 8);
    put_metadata(m, entries, said);
    for (uint32_t i = 0; i < n; i++) {
        choose(m, &t[i], i);
        t[i].at = at;
        at = dc_align_up((size_t)(at + t[i].n), (size_t)alignment) +
             (made_below(m, 8) == 7 ? alignment : 0);
        put_text(m, t[i].name);
        made_le(m, made_number(m, (uint64_t)t[i].type.rank), 4);
        for (int k = t[i].type.rank; k-- > 0;)
            made_le(m, made_number(m, (uint64_t)t[i].type.dim[k]), 8);
        made_le(m, made_number(m, t[i].kind->number), 4);
        made_le(m, made_number(m, t[i].at), 8);
    }
    made_align(m, (size_t)alignment, 0);
    const size_t data = m->n;
    for (uint32_t i = 0; i < n; i++) {
        while (m->n < data + t[i].at)
            made_byte(m, 0);
        made_put(m, t[i].bytes, t[i].n);
    }
}

static dc_status body(dc_job *j, void *arg)
{
    made m;
    made_begin(&m, &j->scratch, arg);
    make(&m);
    made_end(&m);
    return made_tensors_check(j, &m);
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
