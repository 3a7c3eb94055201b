/*
 * extras/llm/tokenizer/regex.c: where texts are cut by regular expressions, whose matches go over the parts that PCRE2 is given;
 * patterns that are refused, or take too long; ends. The same without PCRE2's machine code, for which its function is stood
 * in for. What patterns mean is for tests/lua/test_tokenizers.lua to compare.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "extras/llm/tokenizer/tokenizer.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "tests/unit/filekit.h"

static filekit kit;

/* Without machine code libpcre2 is found among all that the program has, behind the one function here. */
static bool interpreted;

DC_API void *dlopen(const char *name, int flags)
{
    static void *(*real)(const char *, int);
    void *found = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&real, &found, sizeof found);
    if (!interpreted || name == NULL || strcmp(name, "libpcre2-8.so.0") != 0)
        return real(name, flags);
    return real(name, RTLD_NOW | RTLD_GLOBAL) != NULL ? real(NULL, RTLD_NOW) : NULL;
}

DC_API int pcre2_jit_compile_8(void *code, uint32_t options);
DC_API int pcre2_jit_compile_8(void *code, uint32_t options)
{
    enum { BADOPTION = -45 };
    return code != NULL && options != 0 ? BADOPTION : 0;
}

static void free_it(void *t)
{
    dc_tokenizer_free(t);
}

/* A tokenizer with a pattern in one of its places; what it makes of a text. */
typedef struct use {
    const char *place, *regex; /* as in JSON */
    const char *text;
    size_t n;
    char *shown; /* the pieces with | between; decoded: the text. NULL: not wanted */
    size_t room, count;
} use;

static void show(use *u, const dc_encoded *e)
{
    size_t n = 0;
    for (size_t i = 0; u->shown != NULL && i < e->n; i++) {
        const size_t k = e->range[i].to - e->range[i].from;
        if (n + k + 2 > u->room)
            break;
        memcpy(u->shown + n, u->text + e->range[i].from, k);
        n += k;
        u->shown[n++] = '|';
    }
    if (u->shown != NULL)
        u->shown[n > 0 ? n - 1 : 0] = '\0';
}

static dc_status body(dc_job *j, void *arg)
{
    use *u = arg;
    char json[2000];
    dc_tokenizer *t;
    dc_encoded e;
    dc_span s;
    const int n =
        snprintf(json, sizeof json,
                 "{\"%s\": {\"type\": \"%s\", \"pattern\": {\"Regex\": \"%s\"}, %s},"
                 "\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"?\", \"vocab\": "
                 "{\"?\": 0, \"aab\": 1}}}",
                 u->place, strcmp(u->place, "pre_tokenizer") == 0 ? "Split" : "Replace", u->regex,
                 strcmp(u->place, "pre_tokenizer") == 0 ? "\"behavior\": \"Isolated\""
                                                        : "\"content\": \"-\"");
    DC_TRY(dc_tokenizer_new(j, "x", json, (size_t)n, NULL, &t));
    dc_job_defer(j, free_it, t);
    const dc_encode in = {.text = {u->text, u->n}, .offsets = true, .most = -1};
    DC_TRY(dc_tokenizer_encode(t, j, &in, &e));
    u->count = e.n;
    if (strcmp(u->place, "decoder") != 0) {
        show(u, &e);
        return DC_OK;
    }
    const uint32_t id = 1;
    DC_TRY(dc_tokenizer_decode(t, j, &id, 1, false, &s));
    snprintf(u->shown, u->room, "%.*s", (int)s.n, s.at);
    return DC_OK;
}

/* The pieces of a text, or the sentence of the failure. */
static const char *pieces(const char *regex, const char *text)
{
    static char shown[8192];
    use u = {"pre_tokenizer", regex, text, strlen(text), shown, sizeof shown, 0};
    return filekit_run(&kit, body, &u) == DC_OK ? shown : kit.message;
}

static void test_cuts(void)
{
    CHECK_STR(pieces("a+", "baab a"), "b|aa|b |a");
    CHECK_STR(pieces("[[:punct:]\\\\s]", "a, ]b"), "a|,| |]|b");
    CHECK_STR(pieces("[]\\\\s]", "a ]b"), "a| |]|b");
    CHECK_STR(pieces("[^]\\\\s]+", "ab ]b"), "ab| ]|b");
    CHECK_STR(pieces("[\\\\]\\\\[]", "a[b]"), "a|[|b|]");
    CHECK_STR(pieces("(?#[)b", "abc"), "a|b|c");
    CHECK_STR(pieces("a\\\\Kb", "ab ab"), "a|b| a|b");
    CHECK_STR(pieces("(?<=a)b|^a", "aabab"), "a|a|b|a|b");
    CHECK_STR(pieces("\\\\Ga", "aaba"), "a|a|ba");
    CHECK_STR(pieces("x*", "ab"), "a|b");
    CHECK_STR(pieces("a*", "baab"), "b|aa|b");
    CHECK_STR(pieces("$", "a\nb\n"), "a|\nb|\n");
    CHECK_STR(pieces("\\\\n^", "a\n\nb"), "a|\n|\n|b");
    CHECK_STR(pieces("\\\\h+", "fgA0 \t"), "f|g|A0| \t");
    CHECK_STR(pieces("a(?i)b|c", "aC C aB"), "aC| C |aB");
    CHECK_STR(pieces("a{2}?b", "ab aab b"), "a|b| |aab| |b");
    CHECK_STR(pieces("[a-z&&[^b]]+", "abcd"), "a|b|cd");
    CHECK_STR(pieces("[^(\\\\s|[.,!?])]+", "ab (|) c."), "ab| (|) |c|.");
    CHECK_STR(pieces("\\\\w+", "a\xc2\xb2\xe2\x91\xa0"), "a\xc2\xb2|\xe2\x91\xa0");
    CHECK_STR(pieces("[\\\\w]+", "a\xc2\xb2"), "a|\xc2\xb2");
    CHECK_STR(pieces("(?x) a # b", "aba"), "a|b|a");
    CHECK_STR(pieces("(?<n>a)\\\\k<n>", "aaa"), "aa|a");
    CHECK_STR(pieces("b$", "bab"), "ba|b");
    CHECK_STR(pieces("\\\\s+(?!\\\\S)|\\\\s+", "a   b "), "a|  | |b| ");
}

/* Bytes that are no UTF-8 are in no match, with machine code and without. */
static void test_bytes(void)
{
    CHECK_STR(pieces("a+", "aa\xff"
                           "a"),
              "aa|\xff|a");
}

static void test_refused(void)
{
    static const char *const not_known[] = {
        "(*LIMIT_MATCH=1)a", "a(*COMMIT)", "(?C1)a",  "(?s).",        "(?P<n>a)",    "(?~a)",
        "(a)(?1)",           "(?(1)a)",    "\\\\X",   "\\\\y",        "(a)\\\\g<1>", "a\\\\C-b",
        "\\\\p{Emoji}",      "[[:foo:]]",  "\\\\xe9", "(?i)\xc3\x9f", "(?i:ss)",     "(?i)\\\\p{L}",
        "(a)(?i)\\\\1",      "[a-b--]"};
    for (size_t i = 0; i < DC_COUNTOF(not_known); i++)
        if (!CHECK(strstr(pieces(not_known[i], "a"), " known") != NULL))
            printf("of %s: %s\n", not_known[i], pieces(not_known[i], "a"));
    CHECK_STR(pieces("a[(*]", "a(a*"), "a(|a*");
    CHECK_STR(pieces("(a", "a"), "x: the regular expression '(a': a group has no end");
    CHECK_STR(pieces("a)", "a"), "x: the regular expression 'a)': it has a ) without its (");
    CHECK_STR(pieces("[a", "a"), "x: the regular expression '[a': a class has no end");
    CHECK_STR(pieces("+a", "a"),
              "x: the regular expression '+a': a repeat has nothing that it could be of");
    CHECK_STR(pieces("a{3,1}", "a"),
              "x: the regular expression 'a{3,1}': a repeat {n,m} has n above m, or above 65535");
    CHECK_STR(pieces("\\\\2(a)", "a"),
              "x: the regular expression '\\2(a)': a number is of no group; "
              "beside groups with names none has a number");
}

/* Matches that are longer than a part, and what they are only depends on what is far behind. */
static void test_far(void)
{
    enum { LONG = 50000 };
    static char text[LONG + 1];
    static const struct {
        const char *regex;
        size_t length, count; /* shorter ones for patterns that take the square */
    } rows[] = {{"a+", LONG, 2},
                {"a+(?=z)", LONG, 2},
                {"a(?=a*z)|a+", 3000, 3000},
                {"aa(?!.*z)|a", 3000, 3000},
                {"z", LONG, 2},
                {"(?:aa)+", LONG, 2},
                {"\\\\z", LONG, 1},
                {"(?m).+", LONG, 1}};
    memset(text, 'a', LONG - 1);
    text[LONG - 1] = 'z';
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        const size_t n = rows[i].length;
        use u = {"pre_tokenizer", rows[i].regex, text + LONG - n, n, NULL, 0, 0};
        CHECK_EQ(filekit_run(&kit, body, &u), DC_OK);
        if (!CHECK_EQ(u.count, rows[i].count))
            printf("of %s\n", rows[i].regex);
    }
}

/* ---- time ------------------------------------------------------------------------------------- */

/* A match for each place looks through all that is behind; or there are as many ways as there are numbers. */
static const char *const slow[] = {"a(?=.*z)", "(?:a?){200}a{200}b", "(a+)\\\\1+b?(?=.*z)"};
enum { LENGTH = 1 << 20 };

static void test_too_slow(void)
{
    static char text[LENGTH];
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < DC_COUNTOF(slow); i++) {
        use u = {"pre_tokenizer", slow[i], text, i == 1 ? 5000 : sizeof text, NULL, 0, 0};
        CHECK(filekit_run(&kit, body, &u) != DC_OK);
        CHECK(strstr(kit.message, "of the tokenizer takes too long for a text of ") != NULL);
    }
    use u = {"pre_tokenizer", "(?:a|b)+", text, sizeof text, NULL, 0, 0};
    if (filekit_run(&kit, body, &u) !=
        DC_OK) /* where there is machine code, and its stack is small */
        CHECK(strstr(kit.message, "needs more than 32 MiB of memory") != NULL);
}

static void *ask_then(void *arg)
{
    const struct timespec wait = {.tv_nsec = 5000000};
    nanosleep(&wait, NULL);
    atomic_store((atomic_bool *)arg, true);
    return NULL;
}

static void test_ended(void)
{
    static char text[LENGTH];
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < 2; i++) { /* those that take seconds */
        atomic_bool asked = false;
        pthread_t thread;
        use u = {"pre_tokenizer", slow[i], text, sizeof text, NULL, 0, 0};
        kit.job.cancel = &asked;
        CHECK_EQ(pthread_create(&thread, NULL, ask_then, &asked), 0);
        CHECK_EQ(filekit_run(&kit, body, &u), DC_E_STATE);
        CHECK(strstr(kit.message, "interrupted") != NULL);
        pthread_join(thread, NULL);
        kit.job.cancel = NULL;
    }
}

int main(void)
{
    void *library = dlopen("libpcre2-8.so.0", RTLD_NOW);
    if (library == NULL)
        T_SKIP("libpcre2-8 is missing");
    filekit_init(&kit, NULL, NULL);
    test_cuts();
    test_bytes();
    test_refused();
    test_far();
    test_too_slow();
    test_ended();
    interpreted = true;
    test_cuts();
    test_bytes();
    test_refused();
    test_far();
    test_too_slow();
    filekit_fini(&kit);
    return t_done();
}
