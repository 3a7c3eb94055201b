/*
 * formats/tensor_store.c, turn.c: matrices of every size turned; tensors of a file to memory in every form, on one thread and
 * on several, with what each element ought to be; a file that becomes shorter, and allocations that fail.
 */
#define _POSIX_C_SOURCE 200809L
#include "formats/blocks.h"
#include "formats/floats.h"
#include "formats/tensor_store.h"
#include "formats/turn.h"

#include <string.h>

#include "tests/unit/filekit.h"

static filekit kit;
static dc_rt *rt;

/* ---- turning ---------------------------------------------------------------------------------- */

static void test_turn(void)
{
    enum { MOST = 150 };
    static unsigned char from[MOST * MOST * 16], to[MOST * MOST * 16];
    static const size_t size[] = {1, 2, 4, 8, 16}, sides[] = {0, 1, 3, 16, 31, 33, 64, 70, 131};
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i * 2654435761u >> 13);
    for (size_t s = 0; s < DC_COUNTOF(size); s++)
        for (size_t a = 0; a < DC_COUNTOF(sides); a++)
            for (size_t b = 0; b < DC_COUNTOF(sides); b++) {
                const size_t rows = sides[a], columns = sides[b], stride = rows + a % 3;
                size_t wrong = 0;
                memset(to, 0xa5, sizeof to);
                dc_turn(size[s], from, rows, columns, to, stride);
                for (size_t c = 0; c < columns; c++)
                    for (size_t r = 0; r < stride; r++) {
                        const unsigned char *y = to + (c * stride + r) * size[s];
                        const unsigned char *x = from + (r * columns + c) * size[s];
                        wrong += r < rows ? memcmp(x, y, size[s]) != 0 : *y != 0xa5;
                    }
                CHECK_EQ(wrong, 0);
            }
}

/* ---- a file ----------------------------------------------------------------------------------- */

enum { F32 = 0, F16 = 1, Q4_1 = 3, Q8_0 = 8, Q6_K = 14, NTENSOR = 6 };

/* Each is large enough for several units, the first together for several threads. */
static const struct {
    const char *name;
    uint32_t type;
    int64_t columns, rows;
} in_file[NTENSOR] = {{"a", F32, 700, 901},  {"b", F16, 1030, 600}, {"c", Q8_0, 1024, 533},
                      {"d", Q4_1, 992, 700}, {"e", Q6_K, 512, 77},  {"f", F32, 3, 5}};

static unsigned char *bytes, *data;
static size_t length;

static void put(uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        bytes[length++] = (unsigned char)(v >> 8 * i);
}

static size_t bytes_of(int i)
{
    static const size_t block[] = {[F32] = 4, [F16] = 2, [Q4_1] = 20, [Q8_0] = 34, [Q6_K] = 210};
    static const size_t elements[] = {[F32] = 1, [F16] = 1, [Q4_1] = 32, [Q8_0] = 32, [Q6_K] = 256};
    const size_t n = (size_t)(in_file[i].columns * in_file[i].rows);
    return n / elements[in_file[i].type] * block[in_file[i].type];
}

static size_t place_of(int i)
{
    size_t at = 0;
    for (int k = 0; k < i; k++)
        at += dc_align_up(bytes_of(k), 32);
    return at;
}

static void make(void)
{
    uint32_t state = 4711;
    const size_t all = place_of(NTENSOR);
    bytes = malloc(all + 4096);
    memcpy(bytes, "GGUF", 4);
    length = 4;
    put(3, 4);
    put(NTENSOR, 8);
    put(0, 8);
    for (int i = 0; i < NTENSOR; i++) {
        put(1, 8);
        put((uint64_t)in_file[i].name[0], 1);
        put(2, 4);
        put((uint64_t)in_file[i].columns, 8);
        put((uint64_t)in_file[i].rows, 8);
        put(in_file[i].type, 4);
        put(place_of(i), 8);
    }
    while (length % 32 != 0)
        put(0, 1);
    data = bytes + length;
    for (size_t i = 0; i < all; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = (unsigned char)(state >> 24) & 0x3f; /* floats are finite */
    }
    length += all;
}

/* ---- reading ---------------------------------------------------------------------------------- */

/* What is wanted: f32 of a and f as they are, of b and d turned, b in its own dtype; c, d and e laid out; d's bytes. */
static const struct {
    const char *name;
    dc_dtype dtype;
    dc_tensor_form form;
} wanted[] = {
    {"a", DC_F32, DC_FORM_PLAIN},  {"a", DC_F32, DC_FORM_TURNED}, {"b", DC_F16, DC_FORM_TURNED},
    {"b", DC_F32, DC_FORM_TURNED}, {"d", DC_F32, DC_FORM_TURNED}, {"c", DC_F32, DC_FORM_WORDS},
    {"c", DC_F32, DC_FORM_SCALES}, {"d", DC_F32, DC_FORM_WORDS},  {"d", DC_F32, DC_FORM_SCALES},
    {"d", DC_F32, DC_FORM_MINS},   {"e", DC_F32, DC_FORM_WORDS},  {"e", DC_F32, DC_FORM_SCALES},
    {"f", DC_F32, DC_FORM_PLAIN},  {"d", DC_F32, DC_FORM_PACKED}, {"f", DC_F32, DC_FORM_TURNED}};
enum { NWANT = DC_COUNTOF(wanted) };

static dc_tensor_want want[NWANT];
static dc_storage *to[NWANT];
static size_t room[NWANT];

static dc_status open_and_read(dc_job *j, void *arg)
{
    dc_tensor_file *f;
    const bool *shorter = arg; /* NULL: it stays as it is */
    DC_TRY(dc_tensor_file_open(j, kit.path, &f));
    dc_tensor_file_defer(j, f);
    for (size_t i = 0; i < NWANT; i++) {
        const dc_file_tensor *t = dc_tensor_file_find(f, wanted[i].name);
        dc_type type = t->type;
        type.dtype = (uint8_t)wanted[i].dtype;
        want[i] = (dc_tensor_want){.tensor = t, .dtype = wanted[i].dtype, .form = wanted[i].form};
        if (wanted[i].form >= DC_FORM_WORDS)
            CHECK(dc_tensor_laid_type(t, wanted[i].form, &type));
        room[i] = wanted[i].form == DC_FORM_PACKED ? (size_t)t->bytes : dc_type_bytes(&type);
        if (to[i] == NULL) {
            DC_TRY(dc_storage_new(rt, j, room[i], &to[i]));
            to[i]->owned = true;
        }
        memset(to[i]->mem, 0xee, room[i]);
    }
    if (shorter != NULL &&
        truncate(kit.path, (off_t)(length - place_of(NTENSOR) + place_of(4))) != 0)
        return dc_failf(j, DC_ERR_ARG, NULL, "no truncate");
    return dc_tensor_store_read(f, j, want, to, NWANT, (dc_tensor_begin){NULL, NULL});
}

/* The same by the functions that read one at a time. */
static void check_content(void)
{
    for (size_t i = 0; i < NWANT; i++) {
        const dc_file_tensor *t = want[i].tensor;
        const int at = t->name[0] - 'a';
        const size_t rows = (size_t)in_file[at].rows, columns = (size_t)in_file[at].columns;
        const size_t n = rows * columns, size = dc_dtype_size(want[i].dtype);
        const unsigned char *from = data + place_of(at);
        unsigned char *x = malloc(n * 4), *y = calloc(room[i], 1);
        const dc_blocks *b = t->packing != NULL ? dc_blocks_find(t->packing->name) : NULL;
        uint32_t *words = malloc(n * 4);
        char *scales = malloc(n * 4), *mins = malloc(n * 4);
        if (t->packing != NULL)
            t->packing->unpack(from, (float *)(void *)x, n / t->packing->elements);
        else if (in_file[at].type == F16 && want[i].dtype == DC_F32)
            for (size_t k = 0; k < n; k++)
                ((float *)(void *)x)[k] =
                    dc_float_of_half(((const uint16_t *)(const void *)from)[k]);
        else
            memcpy(x, from, n * size);
        if (want[i].form >= DC_FORM_WORDS)
            dc_blocks_lay(b, from, rows, columns, words, scales, b->mins ? mins : NULL);
        switch (want[i].form) {
        case DC_FORM_PLAIN:
            memcpy(y, x, room[i]);
            break;
        case DC_FORM_PACKED:
        case DC_FORM_CODES: /* lua/test_float8.lua */
            memcpy(y, from, room[i]);
            break;
        case DC_FORM_TURNED:
            for (size_t r = 0; r < rows; r++)
                for (size_t c = 0; c < columns; c++)
                    memcpy(y + (c * rows + r) * size, x + (r * columns + c) * size, size);
            break;
        case DC_FORM_WORDS:
            memcpy(y, words, room[i]);
            break;
        case DC_FORM_SCALES:
            memcpy(y, scales, room[i]);
            break;
        case DC_FORM_MINS:
            memcpy(y, mins, room[i]);
            break;
        }
        if (!CHECK(memcmp(y, to[i]->mem, room[i]) == 0))
            printf("%s in form %d\n", t->name, (int)want[i].form);
        free(x);
        free(y);
        free(words);
        free(scales);
        free(mins);
    }
}

static dc_status check_body(dc_job *j, void *arg)
{
    DC_TRY(open_and_read(j, arg));
    check_content();
    return DC_OK;
}

static void test_read(void)
{
    filekit_write(&kit, bytes, length);
    for (int threads = 0; threads < 2; threads++) {
        kit.opt.threads = threads;
        if (!CHECK_EQ(filekit_run(&kit, check_body, NULL), DC_OK))
            printf("%s\n", kit.message);
    }
}

static void test_together(void)
{
    const dc_tensor_want w = {.tensor = want[7].tensor, .dtype = DC_F32, .form = DC_FORM_WORDS};
    dc_tensor_want list[4] = {w, w, w, w};
    list[1].form = DC_FORM_SCALES;
    list[2].form = DC_FORM_MINS;
    list[3].form = DC_FORM_PLAIN;
    CHECK(dc_tensor_together(list, 4) && dc_tensor_together(list, 0));
    CHECK(!dc_tensor_together(list, 2));
    CHECK(!dc_tensor_together(list + 1, 3));
    list[2].form = DC_FORM_SCALES;
    CHECK(!dc_tensor_together(list, 4));
}

static dc_status together_body(dc_job *j, void *arg)
{
    DC_TRY(open_and_read(j, arg));
    test_together();
    return DC_OK;
}

/* ---- boxes ------------------------------------------------------------------------------------ */

static uint32_t box_state = 17;

static int64_t below(int64_t n)
{
    box_state = box_state * 1664525u + 1013904223u;
    return (int64_t)((box_state >> 8) % (uint32_t)n);
}

static void check_box(const dc_tensor_want *w, const float *all, const float *got)
{
    const dc_box *b = &w->box;
    size_t differ = 0;
    for (int64_t r = 0; r < b->dim[0]; r++)
        for (int64_t c = 0; c < b->dim[1]; c++) {
            const float x = all[(b->start[0] + r) * b->whole[1] + b->start[1] + c];
            const float y = got[w->form == DC_FORM_TURNED ? c * b->dim[0] + r : r * b->dim[1] + c];
            differ += memcmp(&x, &y, sizeof x) != 0;
        }
    CHECK_EQ(differ, 0);
}

/* Of a, b, d and f, which are as they are, converted, and packed. */
static dc_status boxes_body(dc_job *j, void *arg)
{
    dc_tensor_file *f;
    DC_UNUSED(arg);
    DC_TRY(dc_tensor_file_open(j, kit.path, &f));
    dc_tensor_file_defer(j, f);
    for (const char *name = "abdf"; *name != '\0'; name++) {
        const dc_file_tensor *t = dc_tensor_file_find(f, (char[]){*name, '\0'});
        const size_t n = (size_t)dc_type_count(&t->type);
        float *all = malloc(n * sizeof *all);
        DC_TRY(dc_tensor_file_read(f, j, &(dc_file_read){t, 0, n, DC_F32, all}, 1));
        for (int i = 0; i < 12; i++) {
            dc_tensor_want w = {.tensor = t, .dtype = DC_F32, .boxed = true, .box.rank = 2};
            dc_storage *s;
            w.form = i % 2 == 0 ? DC_FORM_PLAIN : DC_FORM_TURNED;
            for (int k = 0; k < 2; k++) {
                w.box.whole[k] = t->type.dim[k];
                w.box.start[k] = i < 4 && k == 1 ? 0 : below(t->type.dim[k]);
                w.box.dim[k] =
                    i < 4 && k == 1 ? t->type.dim[k] : 1 + below(t->type.dim[k] - w.box.start[k]);
            }
            DC_TRY(dc_storage_new(rt, j, dc_box_count(&w.box) * sizeof *all, &s));
            s->owned = true;
            DC_TRY(dc_tensor_store_read(f, j, &w, &s, 1, (dc_tensor_begin){NULL, NULL}));
            check_box(&w, all, s->mem);
            dc_storage_disown(s);
        }
        free(all);
    }
    return DC_OK;
}

static void test_boxes(void)
{
    filekit_write(&kit, bytes, length);
    for (int threads = 0; threads < 2; threads++) {
        kit.opt.threads = threads;
        if (!CHECK_EQ(filekit_run(&kit, boxes_body, NULL), DC_OK))
            printf("%s\n", kit.message);
    }
}

/* Elements of a box in the whole and back, by counting. */
static void test_box_places(void)
{
    for (int i = 0; i < 200; i++) {
        dc_box b = {.rank = (int)below(4)};
        size_t all = 1;
        for (int k = 0; k < b.rank; k++) {
            b.whole[k] = 1 + below(5);
            b.start[k] = below(b.whole[k]);
            b.dim[k] = 1 + below(b.whole[k] - b.start[k]);
            all *= (size_t)b.whole[k];
        }
        size_t seen = 0, at, place, n, next = 0;
        dc_box_walk w = dc_box_begin(&b, 0, dc_box_count(&b));
        CHECK(dc_box_next(&w, &at, &place, &n) && at == 0);
        for (size_t x = 0; x < all; x++) {
            CHECK_EQ(dc_box_below(&b, x), seen);
            if (seen < dc_box_count(&b) && dc_box_place(&b, seen) == x) {
                CHECK(place + (seen - at) == x);
                next = ++seen;
                if (seen == at + n && seen < dc_box_count(&b))
                    CHECK(dc_box_next(&w, &at, &place, &n) && at == next);
            }
        }
        CHECK_EQ(seen, dc_box_count(&b));
        CHECK_EQ(dc_box_below(&b, all), seen);
        CHECK(!dc_box_next(&w, &at, &place, &n));
    }
}

/* The first tensor that the file ends within is the one that is named. */
static void test_shorter(void)
{
    for (int threads = 0; threads < 2; threads++) {
        filekit_write(&kit, bytes, length);
        kit.opt.threads = threads;
        bool shorter = true;
        CHECK_EQ(filekit_run(&kit, open_and_read, &shorter), DC_E_FILE);
        CHECK(strstr(kit.message, "tensor 'e' has been cut off since the file was opened") != NULL);
    }
}

/* ---- allocations that fail -------------------------------------------------------------------- */

typedef struct failing {
    atomic_int left; /* allocations until all fail; negative: they do */
} failing;

static void *allocate(void *ctx, void *block, size_t had, size_t n)
{
    failing *f = ctx;
    DC_UNUSED(had);
    if (n == 0) {
        free(block);
        return NULL;
    }
    return atomic_fetch_sub(&f->left, 1) > 0 ? realloc(block, n) : NULL;
}

static void test_memory(void)
{
    filekit_write(&kit, bytes, length);
    for (int threads = 0; threads < 2; threads++) {
        dc_status status = DC_E_NOMEM;
        for (int n = 8; status != DC_OK && n < 1000; n++) {
            failing f = {1 << 30};
            filekit own = kit;
            dc_heap *heap = dc_heap_new(allocate, &f);
            dc_job_init(&own.job, &own.opt, &own.log);
            own.opt.heap = heap;
            own.opt.threads = threads;
            f.left = n;
            status = filekit_run(&own, open_and_read, NULL);
            f.left = 1 << 30;
            CHECK(status == DC_OK || status == DC_E_NOMEM);
            dc_job_fini(&own.job);
            dc_heap_free(heap);
        }
        CHECK_EQ(status, DC_OK);
    }
}

int main(void)
{
    dc_opts opt;
    const char *bad;
    dc_opts_init(&opt, &bad);
    rt = dc_rt_new(&opt, NULL);
    dc_rt_set_device(rt, dc_host_device_new(), true);
    filekit_init(&kit, open_and_read, NULL);
    make();
    test_turn();
    test_read();
    test_boxes();
    test_box_places();
    CHECK_EQ(filekit_run(&kit, together_body, NULL), DC_OK);
    test_shorter();
    test_memory();
    for (size_t i = 0; i < NWANT; i++)
        dc_storage_disown(to[i]);
    filekit_fini(&kit);
    dc_rt_free(rt);
    free(bytes);
    return t_done();
}
