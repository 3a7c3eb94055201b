/*
 * formats/jsontree.c and extras/llm/tokenizer/: what a tree is; models of each kind; descriptions cut at every byte and with
 * changed bits, which are refused or encode.
 */
#define _POSIX_C_SOURCE 200809L
#include "formats/jsontree.h"
#include "extras/llm/tokenizer/tokenizer.h"

#include <time.h>

#include "tests/unit/filekit.h"

static filekit kit;

static char text[1 << 16];
static size_t length;

/* ---- trees ------------------------------------------------------------------------------------ */

static char shown[4096];

static void show(const dc_jnode *v)
{
    char *out = shown + strlen(shown);
    const size_t room = (size_t)(shown + sizeof shown - out);
    if (v->kind == DC_J_STRING)
        snprintf(out, room, "<%s:%u>", v->v.s, v->n);
    else if (v->kind == DC_J_NUMBER)
        snprintf(out, room, "%g ", v->v.num);
    else if (v->kind == DC_J_BOOL)
        snprintf(out, room, v->v.num != 0 ? "T" : "F");
    else if (v->kind == DC_J_NULL)
        snprintf(out, room, "0");
    else {
        snprintf(out, room, v->kind == DC_J_LIST ? "[" : "{");
        for (const dc_jnode *one = v->child; one != NULL; one = one->next) {
            if (v->kind == DC_J_OBJECT)
                snprintf(shown + strlen(shown), 100, "%s=", one->key);
            show(one);
        }
        strcat(shown, v->kind == DC_J_LIST ? "]" : "}");
    }
}

static dc_status tree_body(dc_job *j, void *arg)
{
    const dc_jnode *root;
    DC_UNUSED(arg);
    DC_TRY(dc_json_tree(j, "x", text, length, &j->scratch, &root));
    shown[0] = '\0';
    show(root);
    return DC_OK;
}

static void tree(const char *json, const char *want)
{
    length = strlen(json);
    memcpy(text, json, length);
    const dc_status status = filekit_run(&kit, tree_body, NULL);
    CHECK_STR(status == DC_OK ? shown : kit.message, want);
}

static void test_trees(void)
{
    tree("[1, -2.5e1, true, false, null, \"a\\u00e9\\ud83d\\ude01\\n\"]", "[1 -25 TF0<aé😁\n:8>]");
    tree(" {\"a\": {}, \"b\": [[], {\"c\": 0}]} ", "{a={}b=[[]{c=0 }]}");
    tree("\"\\u0000x\"", "<:2>");
    tree("[1,]", "x: at byte 3: a value expected, not ']'");
    tree("[01]", "x: at byte 1: a value expected, not '0'");
    tree("[1.]", "x: at byte 1: a value expected, not '1'");
    tree("{\"a\" 1}", "x: at byte 5: ':' expected, not '1'");
    tree("[1 2]", "x: at byte 3: ',' or ']' expected, not '2'");
    tree("\"\\ud83d\"", "x: at byte 7: a character as \\uXXXX, in pairs where it is a surrogate, "
                        "expected, not '\"'");
    tree("\"\\x\"", "x: at byte 2: one of \"\\/bfnrtu expected, not 'x'");
    tree("\"a\nb\"",
         "x: at byte 2: a character that is no control character expected, not byte 10");
    tree("\"\xed\xa0\x80\"", "x: at byte 1: UTF-8 expected, not byte 237");
    tree("\"a", "x: at byte 2: '\"' expected, not the end");
    tree("nul", "x: at byte 0: a value expected, not 'n'");
    tree("1 1", "x: at byte 2: the end expected, not '1'");
}

/* ---- models ----------------------------------------------------------------------------------- */

static const char *const input = "ab  aab <x>b\xc3\xa9 A1";

static void free_it(void *t)
{
    dc_tokenizer_free(t);
}

static dc_status make_body(dc_job *j, void *arg)
{
    dc_tokenizer *t;
    dc_encoded e;
    dc_span s;
    DC_UNUSED(arg);
    DC_TRY(dc_tokenizer_new(j, "x", text, length, NULL, &t));
    dc_job_defer(j, free_it, t);
    shown[0] = '\0';
    for (int round = 0; round < 2; round++) {
        const dc_encode in = {.text = {input, strlen(input)},
                              .pair = {round ? input : NULL, round ? strlen(input) : 0},
                              .special = true,
                              .parse_special = true,
                              .offsets = round,
                              .most = -1};
        DC_TRY(dc_tokenizer_encode(t, j, &in, &e));
        for (size_t i = 0; round == 0 && i < e.n && i < 100; i++)
            snprintf(shown + strlen(shown), 16, "%u ", e.id[i]);
        for (size_t i = 0; round == 1 && i < e.n; i++)
            CHECK(e.range[i].from <= e.range[i].to && e.range[i].to <= strlen(input));
        uint32_t *ids = dc_arena_alloc(&j->scratch, (e.n + 1) * sizeof *ids);
        if (e.n > 0)
            memcpy(ids, e.id, e.n * sizeof *ids);
        DC_TRY(dc_tokenizer_decode(t, j, ids, e.n, round == 0, &s));
        if (round == 0 && s.n < 100)
            snprintf(shown + strlen(shown), 200, "|%s|", s.at);
    }
    return DC_OK;
}

static const char bytes[] =
    "{\"added_tokens\": [{\"id\": 5, \"content\": \"<x>\", \"special\": true, \"lstrip\": true}],"
    "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": "
    "\"Lowercase\"}]},"
    "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\", "
    "\"individual_digits\": true},"
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}]},"
    "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": "
    "{\"id\": \"<x>\", \"type_id\": 0}},"
    "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [{\"Sequence\": {\"id\": \"A\", "
    "\"type_id\": 0}},"
    "{\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}], \"special_tokens\": {\"<x>\": {\"id\": "
    "\"<x>\", \"ids\": [5],"
    "\"tokens\": [\"<x>\"]}}}, \"decoder\": {\"type\": \"ByteLevel\"},"
    "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"\xc4\xa0\": 3, "
    "\"1\": 4},"
    "\"merges\": [\"a b\"]}}";

static const char wordpiece[] =
    "{\"normalizer\": {\"type\": \"BertNormalizer\"}, \"pre_tokenizer\": {\"type\": "
    "\"BertPreTokenizer\"},"
    "\"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"?\", 0], \"cls\": [\"?\", 0]},"
    "\"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true},"
    "\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"?\", \"continuing_subword_prefix\": "
    "\"##\","
    "\"max_input_chars_per_word\": 100, \"vocab\": {\"?\": 0, \"a\": 1, \"##ab\": 2, \"ab\": 3, "
    "\"<\": 4, \"##1\": 5}}}";

static const char unigram[] =
    "{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"\xe2\x96\x81\", "
    "\"prepend_scheme\": \"always\"},"
    "\"decoder\": {\"type\": \"Metaspace\", \"replacement\": \"\xe2\x96\x81\", \"prepend_scheme\": "
    "\"always\"},"
    "\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"?\", 0], [\"\xe2\x96\x81\", "
    "-3], [\"a\", -2],"
    "[\"b\", -2.5], [\"ab\", -3], [\"\xe2\x96\x81\x61\x62\", -4], [\"<x>\", -5]]}}";

static const char *const all[] = {bytes, wordpiece, unigram};

static void model(const char *json, const char *want)
{
    length = strlen(json);
    memcpy(text, json, length);
    const dc_status status = filekit_run(&kit, make_body, NULL);
    CHECK_STR(status == DC_OK ? shown : kit.message, want);
}

static void test_models(void)
{
    model(bytes, "5 2 3 3 0 2 5 1 3 0 4 |ab  aabb a1|");
    model(wordpiece, "0 3 1 2 4 0 0 0 1 5 0 |? ab aab <??? a1?|");
    model(unigram, "5 1 1 2 4 1 6 3 0 1 0 |ab  aab <x>b? ?|");
}

/* Whatever the bits are, a sentence or a tokenizer that encodes; and nothing is left where memory ends. */
static void any(void)
{
    const dc_status status = filekit_run(&kit, make_body, NULL);
    CHECK(status == DC_OK ||
          ((status == DC_E_FILE || status == DC_E_NOMEM) && kit.message[0] != '\0'));
}

static void test_damage(uint32_t seed)
{
    printf("mutations: seed %u\n", seed);
    for (size_t i = 0; i < DC_COUNTOF(all); i++) {
        const size_t n = strlen(all[i]);
        for (size_t cut = 0; cut < n; cut++) {
            memcpy(text, all[i], cut);
            length = cut;
            CHECK_EQ(filekit_run(&kit, make_body, NULL), DC_E_FILE);
        }
        for (int round = 0; round < 3000; round++) {
            memcpy(text, all[i], n);
            length = n;
            seed = seed * 1664525u + 1013904223u;
            for (uint32_t k = 0; k <= seed >> 30; k++) {
                seed = seed * 1664525u + 1013904223u;
                text[(seed >> 8) % n] ^= (char)(1u << (seed & 7));
            }
            any();
        }
    }
}

/* ---- long texts, and files that want time or memory -------------------------------------------- */

enum { LONG = 1 << 20 };

/* How many tokens a text of one character again and again has. Where one takes the square of it this does not return. */
static dc_status long_body(dc_job *j, void *arg)
{
    char *s = dc_arena_alloc(&j->scratch, LONG);
    const char *c = arg;
    dc_tokenizer *t;
    dc_encoded e;
    dc_span back;
    memset(s, *c, LONG);
    DC_TRY(dc_tokenizer_new(j, "x", text, length, NULL, &t));
    dc_job_defer(j, free_it, t);
    const dc_encode in = {.text = {s, LONG}, .parse_special = true, .most = -1};
    DC_TRY(dc_tokenizer_encode(t, j, &in, &e));
    snprintf(shown, sizeof shown, "%zu", e.n);
    uint32_t *ids = dc_arena_alloc(&j->scratch, (e.n + 1) * sizeof *ids);
    memcpy(ids, e.id, e.n * sizeof *ids);
    return dc_tokenizer_decode(t, j, ids, e.n, false, &back);
}

static void long_text(const char *json, const char *c, const char *want)
{
    length = strlen(json);
    memcpy(text, json, length);
    const dc_status status = filekit_run(&kit, long_body, (void *)(uintptr_t)c);
    CHECK_STR(status == DC_OK ? shown : kit.message, want);
}

static char *big_text;

static dc_status big_body(dc_job *j, void *arg)
{
    dc_tokenizer *t;
    DC_UNUSED(arg);
    DC_TRY(dc_tokenizer_new(j, "x", big_text, length, NULL, &t));
    dc_tokenizer_free(t);
    return DC_OK;
}

static const char *base64(const unsigned char *from, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static char out[4000];
    char *to = out;
    for (size_t i = 0; i + 3 <= n; i += 3) {
        const uint32_t w = (uint32_t)from[i] << 16 | (uint32_t)from[i + 1] << 8 | from[i + 2];
        for (int k = 18; k >= 0; k -= 6)
            *to++ = digits[w >> k & 63];
    }
    *to = '\0';
    return out;
}

static void test_long(void)
{
    static char json[1 << 14];
    unsigned char map[4 + 4 * 128 + 3] = {0, 2};
    const uint32_t circle = 'a' << 10 | 'a';
    long_text(bytes, "a", "1048576");
    long_text(wordpiece, "a", "1");
    long_text(unigram, "a", "1048577");
    long_text("{\"added_tokens\": [{\"id\": 1, \"content\": \" \", \"rstrip\": true}], \"model\": "
              "{\"type\": \"WordLevel\", \"unk_token\": \"?\", \"vocab\": {\"?\": 0}}}",
              " ", "1048576");
    memcpy(map + 4 + 4 * 'a', &circle, 4);
    snprintf(json, sizeof json,
             "{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"%s\"}, "
             "\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"?\", \"vocab\": {\"?\": "
             "0}}}",
             base64(map, sizeof map));
    long_text(json, "a", "1");
}

static void test_bounds(void)
{
    static char json[1 << 14], ids[4000];
    memset(ids, 'b', 1025);
    snprintf(json, sizeof json, "{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"%s\", 0]]}}",
             ids);
    long_text(json, "b", "x: token 0 has 1025 bytes, 1024 are the most");
    for (size_t i = 0; i < 501; i++)
        memcpy(ids + 2 * i, "0,", 3);
    ids[1001] = '\0';
    snprintf(
        json, sizeof json,
        "{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [%s, %s], \"pair\": "
        "[], \"special_tokens\": {\"?\": {\"id\": \"?\", \"ids\": [%s], \"tokens\": []}}}, "
        "\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"?\", \"vocab\": {\"?\": 0}}}",
        "{\"SpecialToken\": {\"id\": \"?\", \"type_id\": 0}}",
        "{\"SpecialToken\": {\"id\": \"?\", \"type_id\": 0}}", ids);
    long_text(json, "b", "x: the post-processor adds more than 1000 tokens");
}

/* Texts that would fall on one place of a table without a seed: then this takes many seconds, else some hundredths. */
static void test_collisions(void)
{
    enum { TOKENS = 30000 };
    uint64_t inverse = 1, random = 1;
    struct timespec begin, end;
    char *big = malloc(TOKENS * 24 + 200);
    size_t n = (size_t)sprintf(big, "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"?\": 0");
    for (int i = 0; i < 6; i++) /* Newton's: of the factor */
        inverse *= 2 - 0x9e3779b97f4a7c15u * inverse;
    for (int k = 1; k < TOKENS;) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t h = (random >> 17 << 49 | random >> 32) * inverse;
        h ^= h >> 32;
        h = (h * inverse) ^ 8;
        bool printed = true;
        for (int i = 0; i < 64; i += 8)
            printed = printed && (h >> i & 255) >= ' ' && (h >> i & 255) < 127 &&
                      (h >> i & 255) != '"' && (h >> i & 255) != '\\';
        if (printed)
            n += (size_t)sprintf(big + n, ",\"%.8s\": %d", (const char *)&h, k++);
    }
    n += (size_t)sprintf(big + n, "}}}");
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    big_text = big;
    length = n;
    const dc_status status = filekit_run(&kit, big_body, NULL);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    if (!CHECK_EQ(status, DC_OK))
        printf("%s\n", kit.message);
    CHECK(end.tv_sec - begin.tv_sec < 3);
    free(big);
}

/* ---- memory that ends ------------------------------------------------------------------------- */

typedef struct failing {
    size_t left;
} failing;

static void *allocate(void *ctx, void *block, size_t had, size_t want)
{
    failing *f = ctx;
    DC_UNUSED(had);
    if (want == 0) {
        free(block);
        return NULL;
    }
    if (f->left == 0)
        return NULL;
    f->left--;
    return realloc(block, want);
}

static void test_no_memory(void)
{
    for (size_t i = 0; i < DC_COUNTOF(all); i++) {
        dc_status status = DC_E_NOMEM;
        for (size_t n = 4; status != DC_OK && n < 10000; n++) {
            failing f = {SIZE_MAX};
            filekit own;
            dc_heap *heap = dc_heap_new(allocate, &f);
            filekit_init(&own, NULL, NULL);
            own.opt.heap = heap;
            f.left = n;
            length = strlen(all[i]);
            memcpy(text, all[i], length);
            status = dc_protect(&own.job, make_body, NULL);
            f.left = SIZE_MAX;
            CHECK(status == DC_OK || status == DC_E_NOMEM);
            filekit_fini(&own);
            dc_heap_free(heap);
        }
        CHECK_EQ(status, DC_OK);
    }
}

int main(void)
{
    filekit_init(&kit, NULL, NULL);
    test_trees();
    test_models();
    test_damage(20);
    test_long();
    test_bounds();
    test_collisions();
    test_no_memory();
    filekit_fini(&kit);
    return t_done();
}
