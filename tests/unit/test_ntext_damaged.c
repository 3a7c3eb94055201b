/*
 * Texts of nests that are damaged at random must be refused or make a kernel that can be verified and
 * run. They come from kernels of random graphs and from texts with all constructs.
 *
 *   test_ntext_damaged [seed [damaged texts]]
 */
#include "jit/compile/kernel_forms.h"
#include "jit/fuse/fuse.h"
#include "jit/lower/lower.h"
#include "jit/sim/sim_target.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/graphgen.h"
#include "tests/unit/nest_interp.h"
#include "tests/unit/nest_texts.h"

enum { MAX_TEXT = 6000, MAX_WORK = 3000, MAX_ELEMENTS = 1 << 16 };

static double work_of(const dc_kernel *k, const dc_stmt *first)
{
    double work = 1;
    for (const dc_stmt *t = first; t != NULL; t = t->next)
        work += t->kind == DC_STMT_TILE ? 600
                : t->kind == DC_STMT_SET
                    ? 2
                    : 1 + (double)k->axis.at[t->axis].extent * work_of(k, t->body);
    return work;
}

static bool is_small(const dc_kernel *k)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < k->buf.n; i++)
        count += k->buf.at[i].count;
    return count <= MAX_ELEMENTS && work_of(k, k->root) <= MAX_WORK;
}

static long parsed, legal, ran, failed_runs, formed;

/* On memory of exactly the size of each parameter. */
static void run_damaged(const dc_kernel *k)
{
    void **mem = calloc(k->nparam + 1, sizeof *mem);
    for (uint32_t i = 0; i < k->buf.n; i++) {
        const dc_buffer *b = &k->buf.at[i];
        const size_t bytes = (size_t)b->count * dc_dtype_size((dc_dtype)b->dtype);
        if (b->scope == DC_SCOPE_PARAM)
            mem[b->param] = memset(malloc(bytes + !bytes), 1, bytes + !bytes);
    }
    const dc_status s = dc_nest_run(&nest_job, k, mem);
    CHECK(s == DC_OK || (s == DC_E_BUG && nest_job.err.id == DC_ERR_BUG));
    ran++;
    failed_runs += s != DC_OK;
    for (uint32_t i = 0; i < k->nparam; i++)
        free(mem[i]);
    free(mem);
}

/* Scheduled for a target it is legal, too, and has all forms but where the target is too small for it. */
static void form_damaged(const char *text, long number)
{
    static const char *const names[] = {"cpu",     "c11",        "opencl",  "cuda",
                                        "sim:cpu", "sim:opencl", "sim:cuda"};
    const dc_target *t = dc_sim_target_named(names[number % (long)DC_COUNTOF(names)]);
    dc_text out = {0};
    dc_kernel *k;
    dc_status s = dc_nest_parse(&nest_job, text, &k);
    if (number / (long)DC_COUNTOF(names) % 4 > 0)
        s = dc_schedule(&nest_job, k, t, 2);
    if (!CHECK(s == DC_OK) || !CHECK(dc_nest_check(&nest_job, k) == DC_OK)) {
        dc_nest_print(k, &out);
        printf("    %s: %s\n%s%s\n", t->name, nest_said(), text, out.s);
    }
    s = dc_form_print(&nest_job, k, t, 0, DC_FORM_TEXT, &out);
    if (!CHECK(s == DC_OK || s == DC_E_BUILD))
        printf("    %s: %s\n%s\n", t->name, nest_said(), text);
    formed += s == DC_OK;
    dc_text_free(&out);
    dc_kernel_free(k);
}

/* Whatever is parsed prints and parses again; what verifies also runs. */
static dc_status try_damaged(dc_job *j, void *arg)
{
    const char *text = arg;
    dc_text a = {0}, b = {0};
    dc_kernel *k, *back;
    if (dc_nest_parse(j, text, &k) != DC_OK) {
        CHECK(j->err.id == DC_ERR_PARSE && k == NULL);
        return DC_OK;
    }
    parsed++;
    dc_nest_print(k, &a);
    if (CHECK(dc_nest_parse(j, a.s, &back) == DC_OK)) {
        dc_nest_print(back, &b);
        if (!CHECK(strcmp(a.s, b.s) == 0))
            printf("    %s\n    %s\n", a.s, b.s);
    } else {
        printf("    %s\n%s\n", nest_said(), a.s);
    }
    if (dc_nest_check_given(j, k) == DC_OK) {
        legal++;
        if (is_small(k))
            run_damaged(k);
        form_damaged(text, legal);
    } else {
        CHECK(j->err.id == DC_ERR_PARSE);
    }
    dc_text_free(&a);
    dc_text_free(&b);
    dc_kernel_free(k);
    dc_kernel_free(back);
    return DC_OK;
}

static size_t replace(char *text, size_t n, size_t at, size_t cut, const char *put, size_t len)
{
    cut = cut < n - at ? cut : n - at;
    if (n - cut + len >= MAX_TEXT)
        return n;
    memmove(text + at + len, text + at + cut, n - at - cut);
    memcpy(text + at, put, len);
    return n - cut + len;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_' || c == '.' || (c >= '0' && c <= '9');
}

/* The word or number at or behind a place; what is no word has length 0. */
static size_t word_at(const char *text, size_t n, size_t *at)
{
    size_t len = 0;
    while (*at < n && !is_word(text[*at]))
        ++*at;
    while (*at > 0 && is_word(text[*at - 1]))
        --*at;
    while (*at + len < n && is_word(text[*at + len]))
        len++;
    return len;
}

/* Bytes: most of what comes out is no text of a nest. */
static size_t damage_bytes(rng *r, char *text, size_t n, const char *other)
{
    static const char *const pieces[] = {
        "0",      "1",         "2",       "-",     "9999999999", "72057594037927935",
        "(",      ")",         "[",       "]",     "*",          "/",
        "%",      " + ",       " if ",    " in ",  "&& ",        "& ",
        "\n",     "  ",        "int(",    "grid",  "block",      "lane",
        "vector", "reduce",    "local",   "group", "add=",       "neg(",
        "thread", "cast.i32(", "nan:f32", "test(", "#",          "for i in 2\n",
    };
    const size_t at = (size_t)rng_below(r, (int)n + 1);
    const char *piece = other + rng_below(r, (int)strlen(other) + 1);
    size_t len = (size_t)rng_below(r, 60);
    switch (rng_below(r, 4)) {
    case 0:
        if (at < n)
            text[at] = (char)(rng_below(r, 3) ? ' ' + rng_below(r, 95) : 1 + rng_below(r, 255));
        return n;
    case 1:
        return replace(text, n, at, rng_below(r, 4) ? (size_t)rng_below(r, 12) : n, "", 0);
    case 2:
        len = strlen(piece) < len ? strlen(piece) : len;
        return replace(text, n, at, 0, piece, len);
    default:
        piece = pieces[rng_below(r, (int)DC_COUNTOF(pieces))];
        return replace(text, n, at, (size_t)rng_below(r, 5), piece, strlen(piece));
    }
}

/* Words, numbers and lines: much of what comes out can be parsed. */
static size_t damage_words(rng *r, char *text, size_t n)
{
    static const char *const numbers[] = {
        "0", "1", "2", "3", "4", "5", "7", "8", "16", "64", "1000", "65536", "281474976710656"};
    static const char *const kinds[] = {"",        " grid",   " block", " lane",
                                        " vector", " unroll", " reduce"};
    size_t at = (size_t)rng_below(r, (int)n + 1), from = (size_t)rng_below(r, (int)n + 1);
    char copy[200];
    size_t len = word_at(text, n, &at);
    const char *number = numbers[rng_below(r, (int)DC_COUNTOF(numbers))];
    const char *kind = kinds[rng_below(r, (int)DC_COUNTOF(kinds))];
    if (len > 0 && text[at] >= '0' && text[at] <= '9')
        return replace(text, n, at, len, number, strlen(number));
    const char *in = len > 0 ? strstr(text + at, " in ") : NULL;
    switch (rng_below(r, 4)) {
    case 0: /* another kind of loop */
        if (in == NULL)
            return n;
        at = (size_t)(in - text) + 4;
        at += word_at(text, n, &at);
        for (len = 0; at + len < n && text[at + len] != '\n';)
            len++;
        return replace(text, n, at, len, kind, strlen(kind));
    case 1: /* a line again, elsewhere or not at all */
        while (at > 0 && text[at - 1] != '\n')
            at--;
        for (len = 0; at + len < n && len < sizeof copy && text[at + len - (len > 0)] != '\n';)
            len++;
        memcpy(copy, text + at, len);
        if (rng_below(r, 2))
            n = replace(text, n, at, len, "", 0);
        from = from < n ? from : n;
        while (from > 0 && text[from - 1] != '\n')
            from--;
        return rng_below(r, 3) ? replace(text, n, from, 0, copy, len) : n;
    default: { /* a word from elsewhere */
        const size_t have = word_at(text, n, &from);
        if (have == 0 || have > sizeof copy || (text[from] >= '0' && text[from] <= '9'))
            return n;
        memcpy(copy, text + from, have);
        return replace(text, n, at, len, copy, have);
    }
    }
}

static void test_damaged(uint64_t seed, long times, const char *const *corpus, size_t ncorpus)
{
    rng r = {seed};
    char *text = malloc(MAX_TEXT + 1);
    for (long i = 0; i < times; i++) {
        const char *from = corpus[rng_below(&r, (int)ncorpus)];
        size_t n = strlen(from) < MAX_TEXT ? strlen(from) : MAX_TEXT - 1;
        memcpy(text, from, n);
        text[n] = '\0';
        const bool words = rng_below(&r, 3) > 0;
        for (int d = 1 + rng_below(&r, 4); d > 0; d--) {
            const char *other = corpus[rng_below(&r, (int)ncorpus)];
            n = words ? damage_words(&r, text, n) : damage_bytes(&r, text, n, other);
            text[n] = '\0';
        }
        if (!CHECK(dc_protect(&nest_job, try_damaged, text) == DC_OK))
            printf("    %s\n%s\n", nest_said(), text);
    }
    free(text);
    printf("%ld damaged texts: %ld parsed, %ld legal, %ld ran, %ld of them reported\n", times,
           parsed, legal, ran, failed_runs);
    CHECK(times < 1000 || (parsed > times / 50 && legal > times / 100 && failed_runs > 0));
}

/* Texts of kernels of random graphs, as lowered and scheduled. */
static dc_status collect(dc_job *j, void *arg)
{
    DC_VEC(const char *) *out = arg;
    for (uint64_t seed = 1; seed < 40; seed++) {
        dc_groups gs;
        dc_module *m = dc_module_new();
        CHECK(dc_fuse(j, &j->scratch, graphgen_func(m, seed, 25), 2, &gs) == DC_OK);
        for (uint32_t g = 0; g < gs.n; g++) {
            dc_kernel *k;
            dc_text text = {0};
            CHECK(dc_lower(j, &gs, g, &k) == DC_OK);
            if (seed % 2)
                CHECK(dc_schedule(j, k, &nest_target, 2) == DC_OK);
            dc_nest_print(k, &text);
            DC_PUSH(*out, text.s); /* freed by main */
            dc_kernel_free(k);
        }
        dc_module_free(m);
    }
    return DC_OK;
}

static const char *const kernels[] = {"argmax",  "attention", "lanes", "layer_norm", "product",
                                      "softmax", "total",     "turn",  "updates"};

/* Those written by hand. */
static char *read_kernel(const char *name)
{
    char path[100], *text = dc_xalloc(MAX_TEXT);
    snprintf(path, sizeof path, "tests/kernel/%s.nest", name);
    FILE *in = fopen(path, "rb");
    if (CHECK(in != NULL)) {
        CHECK(fread(text, 1, MAX_TEXT, in) < MAX_TEXT);
        fclose(in);
    }
    return text;
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 1);
    const long times = argc > 2 ? strtol(argv[2], NULL, 0) : 20000;
    DC_VEC(const char *) corpus = {0};
    nest_open();
    CHECK(dc_protect(&nest_job, collect, &corpus) == DC_OK);
    for (size_t i = 0; i < DC_COUNTOF(kernels); i++)
        DC_PUSH(corpus, read_kernel(kernels[i]));
    const uint32_t made = corpus.n;
    for (int copies = 0; copies < 20; copies++) /* half of the cases */
        for (size_t i = 0; i < DC_COUNTOF(nest_texts); i++)
            DC_PUSH(corpus, nest_texts[i]);
    test_damaged(seed, times, corpus.at, corpus.n);
    for (uint32_t i = 0; i < made; i++) {
        char *text;
        memcpy(&text, &corpus.at[i], sizeof text);
        dc_xfree(text);
    }
    DC_VEC_FREE(corpus);
    nest_close();
    return t_done();
}
