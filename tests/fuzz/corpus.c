/*
 * In libFuzzer's place: runs a target on every file of a folder, then for a second on inputs that are made of them by a few
 * random changes, which sanitizers watch. scripts/fuzz, which sees what an input covers, finds more in more time.
 *
 *     fuzz_TARGET FOLDER [SEED [SECONDS]]     a fresh seed without one; the same seed makes the same inputs
 *
 * Each file and the seed are printed before they are run. With a seed, each changed input is in the file fuzz-input of the
 * temporary folder while it is run.
 */
#define _DEFAULT_SOURCE /* scandir */
#include "core/base/base.h"

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "tests/t.h"
#include "tests/unit/rng.h"

enum { FILES = 400, LONGEST = 8192, FILE_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

typedef struct text {
    uint8_t *at;
    size_t n;
} text;

static text file[FILES];
static int files;

static void write_input(text t)
{
    char path[1000];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/fuzz-input", folder != NULL ? folder : "/tmp");
    FILE *f = fopen(path, "wb");
    if (!CHECK(f != NULL))
        return;
    fwrite(t.at, 1, t.n, f);
    fclose(f);
}

static void run(const uint8_t *at, size_t n)
{
    uint8_t *exact = malloc(n > 0 ? n : 1); /* reading past its end is seen */
    if (n > 0)
        memcpy(exact, at, n);
    CHECK_EQ(LLVMFuzzerTestOneInput(exact, n), 0);
    free(exact);
}

static void run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = malloc(FILE_BYTES);
    if (CHECK(f != NULL && bytes != NULL && files < FILES)) {
        const size_t n = fread(bytes, 1, FILE_BYTES, f);
        printf("%s\n", path); /* the last one is the one that crashed */
        fflush(stdout);
        run(bytes, n);
        file[files++] = (text){bytes, n};
    }
    if (f != NULL)
        fclose(f);
}

/* ---- changes ---- */

static size_t place(rng *r, size_t n)
{
    return (size_t)(rng_next(r) % (n + 1));
}

/* [from, from + drop) of t gives way to n bytes, as far as there is room. */
static void replace(text *t, size_t from, size_t drop, const uint8_t *by, size_t n)
{
    uint8_t put[64];
    n = n < sizeof put ? n : sizeof put;
    if (n > 0)
        memcpy(put, by, n);
    drop = drop < t->n - from ? drop : t->n - from;
    if (t->n - drop + n > LONGEST)
        return;
    memmove(t->at + from + n, t->at + from + drop, t->n - from - drop);
    memcpy(t->at + from, put, n);
    t->n += n - drop;
}

/* A number in digits becomes another one, most of them at the edge of a type. */
static void change_number(rng *r, text *t)
{
    static const char *const numbers[] = {"0",
                                          "1",
                                          "-1",
                                          "2",
                                          "7",
                                          "255",
                                          "65536",
                                          "2147483647",
                                          "2147483648",
                                          "4294967295",
                                          "4294967296",
                                          "9007199254740993",
                                          "4611686018427387904",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "18446744073709551615",
                                          "1e999",
                                          "0.5"};
    const char *by = numbers[rng_below(r, (int)DC_COUNTOF(numbers))];
    size_t from = place(r, t->n), n = 0;
    while (from < t->n && (t->at[from] < '0' || t->at[from] > '9'))
        from++;
    while (from + n < t->n && t->at[from + n] >= '0' && t->at[from + n] <= '9')
        n++;
    if (n > 0)
        replace(t, from, n, (const uint8_t *)by, strlen(by));
}

/* A word of two, four or eight bytes becomes a number at the edge of its type, or of what the input has. */
static void change_word(rng *r, text *t)
{
    const size_t size = (size_t)2 << rng_below(r, 3);
    const uint64_t edge[] = {0,    1,        UINT64_MAX, UINT64_MAX >> 1,   (UINT64_MAX >> 1) + 1,
                             t->n, t->n + 1, INT32_MAX,  (uint64_t)1 << 62, (uint64_t)1 << 40};
    const uint64_t by = edge[rng_below(r, (int)DC_COUNTOF(edge))];
    if (t->n >= size)
        memcpy(t->at + place(r, t->n - size), &by, size);
}

static void change(rng *r, text *t)
{
    const text *other = &file[rng_below(r, files)];
    const size_t at = place(r, t->n), from = place(r, other->n);
    uint8_t byte = (uint8_t)rng_next(r);
    switch (rng_below(r, 8)) {
    case 0:
        if (t->n > 0)
            t->at[at % t->n] ^= (uint8_t)(1u << rng_below(r, 8));
        break;
    case 1:
        if (t->n > 0)
            t->at[at % t->n] = byte;
        break;
    case 2:
        replace(t, at, 0, &byte, 1);
        break;
    case 3:
        replace(t, at, place(r, 16), NULL, 0);
        break;
    case 4: /* of another input, or of this one */
        replace(t, at, place(r, 16), other->at + from, place(r, other->n - from));
        break;
    case 5:
        t->n = at; /* cut */
        break;
    case 6:
        change_number(r, t);
        break;
    default:
        change_word(r, t);
    }
}

static void run_changed(rng *r, int seconds, bool keep)
{
    uint8_t *at = malloc(LONGEST);
    const clock_t end = clock() + seconds * CLOCKS_PER_SEC;
    int inputs = 0;
    while (files > 0 && clock() < end) {
        const text *of = &file[rng_below(r, files)];
        text t = {at, of->n < LONGEST ? of->n : LONGEST};
        memcpy(at, of->at, t.n);
        for (int changes = 1 + rng_below(r, 4); changes > 0; changes--)
            change(r, &t);
        if (keep)
            write_input(t);
        run(t.at, t.n);
        inputs++;
    }
    printf("%d changed inputs\n", inputs);
    free(at);
}

int main(int argc, char **argv)
{
    struct dirent **entry = NULL;
    const char *folder = argc > 1 ? argv[1] : ".";
    rng r = {rng_seed(argc - 1, argv + 1, (uint64_t)time(NULL))};
    run(NULL, 0);
    const int n = scandir(folder, &entry, NULL, alphasort);
    CHECK(n > 2); /* a folder without inputs tests nothing */
    for (int k = 0; k < n; k++) {
        char path[1000];
        snprintf(path, sizeof path, "%s/%s", folder, entry[k]->d_name);
        if (entry[k]->d_name[0] != '.')
            run_file(path);
        free(entry[k]);
    }
    free(entry);
    run_changed(&r, argc > 3 ? atoi(argv[3]) : 1, argc > 2);
    for (int k = 0; k < files; k++)
        free(file[k].at);
    return t_done();
}
