/*
 * Schedules found by timing (jit/cache/tuned_schedules.h): lists and what hides what, fingerprints, their text with every
 * truncation and with mutations, and the store: found again by its key alone, with what others added meanwhile.
 */
#include "jit/cache/tuned_schedules.h"

#include <string.h>

#include "tests/t.h"
#include "tests/unit/folder.h"
#include "tests/unit/rng.h"

static dc_opts opts;
static dc_log no_log;
static dc_job job;

static const char *const moves[] = {"split i 4", "vectorize i.i"};
static const char *const others[] = {"split i 8", "vectorize i.i"};

static dc_tuned entry(const char *kernel, const char *const *move, uint32_t n)
{
    return (dc_tuned){.kind = n > 0 ? DC_TUNED_MOVES : DC_TUNED_RULES,
                      .kernel = dc_tuned_key(kernel),
                      .rules_ns = 1000,
                      .best_ns = 700,
                      .move = move,
                      .nmove = n};
}

static const dc_tuned *with(dc_arena *mem, const dc_tuned *list, const char *kernel,
                            const char *const *move, uint32_t n)
{
    const dc_tuned e = entry(kernel, move, n);
    return dc_tuned_add(mem, list, &e);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void test_lists(void)
{
    dc_arena mem = {0};
    const dc_tuned *a = with(&mem, NULL, "a", moves, 2), *b = with(&mem, a, "b", NULL, 0);
    const dc_tuned *c = with(&mem, b, "a", others, 2);
    CHECK(dc_tuned_find(NULL, dc_tuned_key("a")) == NULL);
    CHECK(dc_tuned_find(c, dc_tuned_key("c")) == NULL);
    CHECK_STR(dc_tuned_find(b, dc_tuned_key("a"))->move[0], "split i 4");
    CHECK_STR(dc_tuned_find(c, dc_tuned_key("a"))->move[0], "split i 8"); /* the newer one */
    CHECK_EQ(dc_tuned_find(c, dc_tuned_key("b"))->kind, DC_TUNED_RULES);
    const dc_tuned nothing = {.kernel = dc_tuned_key("a")};
    const dc_tuned *d = dc_tuned_add(&mem, c, &nothing);
    CHECK(dc_tuned_find(d, dc_tuned_key("a")) == NULL);
    CHECK(dc_tuned_find(c, dc_tuned_key("a")) != NULL); /* what others hold does not change */
    dc_arena_free(&mem);
}

static void test_fingerprints(void)
{
    dc_arena mem = {0};
    const dc_tuned *a = with(&mem, NULL, "a", moves, 2), *b = with(&mem, NULL, "b", moves, 2);
    const dc_tuned *ab = with(&mem, a, "b", moves, 2), *ba = with(&mem, b, "a", moves, 2);
    CHECK(dc_tuned_fingerprint(NULL) == 0 && a->fingerprint != 0);
    CHECK(a->fingerprint != b->fingerprint && ab->fingerprint != a->fingerprint);
    CHECK(ab->fingerprint == ba->fingerprint);                             /* in any order */
    CHECK(with(&mem, ab, "b", others, 2)->fingerprint != ab->fingerprint); /* other moves */
    CHECK(with(&mem, ab, "b", moves, 1)->fingerprint != ab->fingerprint);  /* fewer */
    CHECK(with(&mem, a, "a", moves, 2)->fingerprint == a->fingerprint);
    CHECK(with(&mem, ab, "b", NULL, 0)->fingerprint == a->fingerprint); /* the rules again */
    CHECK(with(&mem, NULL, "b", NULL, 0)->fingerprint == 0);
    dc_arena_free(&mem);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void test_text(void)
{
    dc_arena mem = {0};
    dc_text text = {0}, again = {0};
    const dc_tuned *list = with(&mem, with(&mem, with(&mem, NULL, "a", others, 2), "a", moves, 2),
                                "b", NULL, 0),
                   *back = NULL;
    dc_tuned_print(list, &text);
    CHECK(strstr(text.s, "split i 8") == NULL); /* what is hidden is gone */
    CHECK(dc_tuned_parse(&mem, text.s, text.n, &back));
    CHECK(back->fingerprint == list->fingerprint);
    CHECK_EQ((int)dc_tuned_find(back, dc_tuned_key("a"))->best_ns, 700);
    dc_tuned_print(back, &again);
    back = NULL;
    CHECK(dc_tuned_parse(&mem, again.s, again.n, &back));
    CHECK(back->fingerprint == list->fingerprint);
    dc_text_free(&text);
    dc_text_free(&again);
    dc_arena_free(&mem);
}

/* Nothing is taken from a text that is not whole; no mutation does harm. */
static void test_bad_texts(uint64_t seed)
{
    static const char good[] = "schedules 1\n"
                               "kernel 0123456789abcdef0123456789abcdef 1000 700 moves 1\n"
                               "split i 4\n"
                               "kernel 00112233445566778899aabbccddeeff 50 50 rules 0\n";
    static const char *const bad[] = {
        "schedules 2\n",
        "schedules 1\nkernel 0123 1 1 rules 0\n",
        "schedules 1\nkernel 0123456789abcdef0123456789abcdeg 1 1 rules 0\n",
        "schedules 1\nkernel 0123456789abcdef0123456789abcdef 1 1 rules 1\nsplit i 4\n",
        "schedules 1\nkernel 0123456789abcdef0123456789abcdef 1 -1 rules 0\n",
        "schedules 1\nkernel 0123456789abcdef0123456789abcdef 1 1 rule 0\n",
        "schedules 1\nkernel 0123456789abcdef0123456789abcdef 1 1 moves 5000\n",
        "schedules 1\nkernel 0123456789abcdef0123456789abcdef 1 1 moves 2\nsplit i 4\n",
        "schedules 1\nkernel 0123456789abcdef0123456789abcdef 1 1 moves 1\n\n",
        "schedules 1\nkernel 0123456789abcdef0123456789abcdef 1 1 rules 0 \n",
        "schedules 1\nsplit i 4\n",
    };
    dc_arena mem = {0};
    const dc_tuned *list = NULL;
    for (size_t i = 0; i < DC_COUNTOF(bad); i++)
        if (!CHECK(!dc_tuned_parse(&mem, bad[i], strlen(bad[i]), &list) && list == NULL))
            printf("    %s\n", bad[i]);
    for (size_t n = 0; n < sizeof good - 1; n++) {
        char *cut = memcpy(malloc(n + 1), good, n); /* where a sanitizer sees its end */
        list = NULL;
        const bool whole =
            good[n > 0 ? n - 1 : 0] == '\n' && strncmp(good + n, "split", 5) != 0 && n > 0;
        CHECK_EQ(dc_tuned_parse(&mem, cut, n, &list), whole);
        free(cut);
    }
    rng r = {seed};
    for (int i = 0; i < 20000; i++) {
        char *text = memcpy(malloc(sizeof good - 1), good, sizeof good - 1);
        for (int m = 1 + rng_below(&r, 3); m > 0; m--)
            text[rng_below(&r, sizeof good - 1)] = (char)rng_below(&r, 256);
        list = NULL;
        if (!dc_tuned_parse(&mem, text, sizeof good - 1, &list))
            CHECK(list == NULL);
        free(text);
        dc_arena_free(&mem);
    }
}

/* ---- the store ------------------------------------------------------------------------------- */

static dc_tuned_store *opened(dc_cache *c, const char *key)
{
    dc_tuned_store *s = dc_tuned_store_new();
    dc_tuned_store_open(s, c, &job, dc_cache_key_of(key, strlen(key)));
    return s;
}

/* Another process, which finds this. */
static void check_found(const char *key, const char *kernel, const char *first_move)
{
    dc_cache *c = dc_cache_new(&opts);
    dc_tuned_store *s = opened(c, key);
    const dc_tuned *e = dc_tuned_find(s->newest, dc_tuned_key(kernel));
    CHECK_STR(e == NULL ? "nothing" : e->nmove > 0 ? e->move[0] : "rules", first_move);
    dc_tuned_store_free(s);
    dc_cache_free(c);
}

static dc_status store_body(dc_job *j, void *arg)
{
    dc_cache *c = dc_cache_new(&opts), *d = dc_cache_new(&opts);
    dc_tuned_store *s = opened(c, "cpu"), *t = opened(d, "cpu");
    DC_UNUSED(arg);
    CHECK(s->newest == NULL);
    dc_tuned_store_set(s, c, j, with(&s->mem, s->newest, "a", moves, 2));
    dc_cache_flush(c);
    check_found("cpu", "a", "split i 4");
    check_found("gpu", "a", "nothing");
    dc_tuned_store_set(t, d, j, with(&t->mem, t->newest, "b", NULL, 0)); /* began before that */
    dc_cache_flush(d);
    check_found("cpu", "a", "split i 4");
    check_found("cpu", "b", "rules");
    const dc_tuned nothing = {.kernel = dc_tuned_key("a")};
    dc_tuned_store_set(s, c, j, dc_tuned_add(&s->mem, s->newest, &nothing));
    dc_cache_flush(c);
    check_found("cpu", "a", "nothing");
    check_found("cpu", "b", "rules");
    dc_tuned_store_free(s);
    dc_tuned_store_free(t);
    dc_cache_free(c);
    dc_cache_free(d);
    return DC_OK;
}

static dc_status nowhere_body(dc_job *j, void *arg)
{
    dc_tuned_store *s = opened(NULL, "cpu");
    DC_UNUSED(arg);
    dc_tuned_store_set(s, NULL, j, with(&s->mem, s->newest, "a", moves, 2));
    CHECK(dc_tuned_find(s->newest, dc_tuned_key("a")) != NULL);
    dc_tuned_store_free(s);
    dc_tuned_store_free(NULL);
    return DC_OK;
}

int main(int argc, char **argv)
{
    const char *bad;
    const uint64_t seed = rng_seed(argc, argv, 1);
    dc_opts_init(&opts, &bad);
    dc_job_init(&job, &opts, &no_log);
    test_lists();
    test_fingerprints();
    test_text();
    test_bad_texts(seed);
    if (CHECK(folder_make())) {
        snprintf(opts.cache, sizeof opts.cache, "%s", folder_path("cache"));
        CHECK(dc_protect(&job, store_body, NULL) == DC_OK);
        CHECK(dc_protect(&job, nowhere_body, NULL) == DC_OK);
        CHECK(folder_remove());
    }
    dc_job_fini(&job);
    return t_done();
}
