/*
 * Tokenizers whose descriptions are right in form: bytes choose normalizers, pre-tokenizers, a decoder and regular
 * expressions from a small grammar, and the text. What is accepted encodes with and without places, and decodes. Pieces
 * that are only cut lie side by side and make the text.
 */
#include "extras/llm/tokenizer/tokenizer.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

typedef struct maker {
    const unsigned char *at;
    size_t n;
    dc_text *json;
    bool writes; /* a step changes the text, or leaves some of it out */
} maker;

static unsigned next(maker *m)
{
    if (m->n == 0)
        return 0;
    m->n--;
    return *m->at++;
}

static const char *pick(maker *m, const char *const *from, size_t n)
{
    return from[next(m) % n];
}

#define PICK(m, list) pick((m), (list), DC_COUNTOF(list))

static void put_regex(maker *m, int depth)
{
    static const char *const atoms[] = {"a",
                                        "b",
                                        " ",
                                        "\\\\s",
                                        "\\\\S",
                                        "\\\\p{L}",
                                        "\\\\p{N}",
                                        "[ab]",
                                        "[^a]",
                                        "[\\\\r\\\\n]",
                                        ".",
                                        "\xc3\xa9",
                                        "\\\\w",
                                        "[^\\\\s\\\\p{L}]",
                                        "\\\\R",
                                        "\\\\h",
                                        "\\\\d",
                                        "(?i:s)",
                                        "[[:punct:]\\\\s]",
                                        "[a-c&&[^b]]",
                                        "(a)\\\\1",
                                        "[^a[b ]]",
                                        "\\\\u00e9",
                                        "(?m:.)",
                                        "\\\\p{^Han}"};
    static const char *const places[] = {"\\\\b",     "\\\\B",   "^",     "$",
                                         "(?!\\\\S)", "\\\\K",   "\\\\G", "\\\\z",
                                         "(?<=a)",    "(?<!ab)", "(?i)"};
    static const char *const repeats[] = {"",     "",   "",   "+",     "*",    "?",   "{1,3}",
                                          "{2,}", "+?", "++", "{300}", "{2}+", "{2}?"};
    static const char *const groups[] = {"(", "(?:", "(?>", "(?i:"};
    static const char *const looks[] = {"(?=", "(?!"};
    for (unsigned k = next(m) % 3 + 1; k > 0; k--) {
        const unsigned kind = next(m) % 5;
        if (kind == 0) {
            dc_text_puts(m->json, PICK(m, places));
            continue;
        }
        if (depth > 0 && kind < 3) {
            dc_text_puts(m->json, kind == 1 ? PICK(m, looks) : PICK(m, groups));
            put_regex(m, depth - 1);
            dc_text_puts(m->json, ")");
        } else
            dc_text_puts(m->json, PICK(m, atoms));
        if (depth == 0 || kind != 1)
            dc_text_puts(m->json, PICK(m, repeats));
    }
    if (depth > 0 && next(m) % 3 == 0) {
        dc_text_puts(m->json, "|");
        put_regex(m, depth - 1);
    }
}

static void put_pattern(maker *m)
{
    dc_text_puts(m->json, "\"pattern\": {\"Regex\": \"");
    put_regex(m, 2);
    dc_text_puts(m->json, "\"}");
}

static void put_step(maker *m, const char *const *plain, size_t n, const char *regex, bool writes)
{
    const unsigned which = next(m) % (unsigned)(n + 3);
    m->writes = m->writes || writes;
    if (which < n) {
        dc_text_puts(m->json, plain[which]);
        m->writes = true;
        return;
    }
    dc_text_puts(m->json, regex);
    put_pattern(m);
    dc_text_puts(m->json, "}");
}

static void put_list(maker *m, const char *what, const char *list, const char *const *plain,
                     size_t n, const char *regex, bool writes)
{
    const unsigned steps = next(m) % 3;
    if (steps == 0)
        return;
    dc_text_printf(m->json, "\"%s\": {\"type\": \"Sequence\", \"%s\": [", what, list);
    for (unsigned i = 0; i < steps; i++) {
        dc_text_puts(m->json, i > 0 ? ", " : "");
        put_step(m, plain, n, regex, writes);
    }
    dc_text_puts(m->json, "]}, ");
}

static void describe(maker *m)
{
    static const char *const normalizers[] = {
        "{\"type\": \"NFKC\"}", "{\"type\": \"BertNormalizer\"}", "{\"type\": \"Strip\"}",
        "{\"type\": \"Prepend\", \"prepend\": \"_\"}"};
    static const char *const cutters[] = {
        "{\"type\": \"ByteLevel\"}", "{\"type\": \"Metaspace\", \"replacement\": \"_\"}",
        "{\"type\": \"Whitespace\"}", "{\"type\": \"Digits\", \"individual_digits\": true}",
        "{\"type\": \"FixedLength\", \"length\": 3}"};
    static const char *const decoders[] = {"{\"type\": \"ByteLevel\"}", "{\"type\": \"Fuse\"}",
                                           "{\"type\": \"WordPiece\", \"prefix\": \"#\"}",
                                           "{\"type\": \"ByteFallback\"}"};
    static const char *const models[] = {
        "{\"type\": \"WordLevel\", \"unk_token\": \"?\", \"vocab\": {\"?\": 0, \"ab\": 1}}",
        "{\"type\": \"BPE\", \"unk_token\": \"?\", \"vocab\": {\"?\": 0, \"a\": 1, \"b\": 2, "
        "\"ab\": 3, \"aa\": 4}, \"merges\": [\"a b\", \"a a\"]}",
        "{\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"?\", 0], [\"a\", -1], [\"aa\", "
        "-1.5], [\"b\", -2]]}",
        "{\"type\": \"WordPiece\", \"unk_token\": \"?\", \"continuing_subword_prefix\": \"#\", "
        "\"max_input_chars_per_word\": 90, "
        "\"vocab\": {\"?\": 0, \"a\": 1, \"#a\": 2, \"#ab\": 3}}"};
    dc_text_puts(m->json, "{");
    put_list(m, "normalizer", "normalizers", normalizers, DC_COUNTOF(normalizers),
             "{\"type\": \"Replace\", \"content\": \"+\", ", true);
    put_list(m, "pre_tokenizer", "pretokenizers", cutters, DC_COUNTOF(cutters),
             "{\"type\": \"Split\", \"behavior\": \"Isolated\", ", false);
    put_list(m, "decoder", "decoders", decoders, DC_COUNTOF(decoders),
             "{\"type\": \"Replace\", \"content\": \"--\", ", false);
    const unsigned model = next(m) % DC_COUNTOF(models);
    m->writes =
        m->writes || model != 0; /* others have tokens for nothing, or one for several pieces */
    dc_text_printf(m->json, "\"model\": %s}", models[model]);
}

/* Runs of characters, so that matches are longer than the parts that are looked at. */
static dc_span make_text(maker *m, dc_job *j)
{
    static const char *const parts[] = {
        "a", "b", " ", "\n", "\r\n", "1", "\xc3\xa9", "e\xcc\x81", "\xe4\xb8\xad", ".", "z"};
    static const unsigned times[] = {1, 1, 2, 5, 40, 300, 1500};
    dc_text *to = dc_job_text(j);
    dc_text_puts(to, "");
    for (int i = 0; i < 20 && m->n > 0; i++) {
        const char *part = PICK(m, parts);
        for (unsigned k = times[next(m) % DC_COUNTOF(times)]; k > 0; k--)
            dc_text_puts(to, part);
    }
    return (dc_span){to->s, to->n};
}

static void free_it(void *t)
{
    dc_tokenizer_free(t);
}

static void check_pieces(const dc_encoded *e, size_t n, bool writes)
{
    size_t at = 0;
    for (size_t i = 0; i < e->n; i++) {
        const dc_range r = e->range[i];
        if (r.from > r.to || r.to > n)
            fuzz_finding("a place from %u to %u of %zu bytes", r.from, r.to, n);
        if (!writes && r.from != at)
            fuzz_finding("a piece from %u on, where the one before ends at %zu", r.from, at);
        at = r.to;
    }
    if (!writes && at != n)
        fuzz_finding("pieces end at %zu of %zu bytes", at, n);
}

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    maker m = {.at = in->at, .n = in->n, .json = dc_job_text(j)};
    dc_tokenizer *t;
    dc_encoded e;
    dc_span back;
    describe(&m);
    const dc_span text = make_text(&m, j);
    DC_TRY(dc_tokenizer_new(j, "fuzz", m.json->s, m.json->n, NULL, &t));
    dc_job_defer(j, free_it, t);
    dc_encode how = {.text = text, .most = -1};
    DC_TRY(dc_tokenizer_encode(t, j, &how, &e));
    const size_t n = e.n;
    uint32_t *ids = dc_arena_alloc(&j->scratch, (n + 1) * sizeof *ids);
    if (n > 0)
        memcpy(ids, e.id, n * sizeof *ids);
    how.offsets = true;
    DC_TRY(dc_tokenizer_encode(t, j, &how, &e));
    if (e.n != n || (n > 0 && memcmp(ids, e.id, n * sizeof *ids) != 0))
        fuzz_finding("other ids with places: %zu and %zu", n, e.n);
    check_pieces(&e, text.n, m.writes);
    return dc_tokenizer_decode(t, j, ids, n, false, &back);
}

void fuzz_one(const fuzz_input *in)
{
    const dc_status status = fuzz_protect(body, (void *)(uintptr_t)in);
    if (status != DC_OK && fuzz_error()[0] == '\0')
        fuzz_finding("refused without a reason");
}
