/*
 * A description of a tokenizer, as tokenizer.json has it, with a small vocabulary beside it. What is accepted encodes a text
 * and the description itself, with places, alone and as a pair, and decodes the ids again.
 */
#include "extras/llm/tokenizer/tokenizer.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { MOST_TEXT = 2000 };

static void free_it(void *t)
{
    dc_tokenizer_free(t);
}

static dc_status use(dc_tokenizer *t, dc_job *j, dc_span text, dc_span pair)
{
    dc_encoded plain, e;
    dc_span s;
    dc_encode in = {.text = text, .pair = pair, .special = true, .parse_special = true, .most = -1};
    DC_TRY(dc_tokenizer_encode(t, j, &in, &plain));
    const size_t n = plain.n;
    uint32_t *ids = dc_arena_alloc(&j->scratch, (n + 1) * sizeof *ids);
    if (n > 0)
        memcpy(ids, plain.id, n * sizeof *ids);
    in.offsets = true;
    DC_TRY(dc_tokenizer_encode(t, j, &in, &e));
    if (e.n != n || (n > 0 && memcmp(ids, e.id, n * sizeof *ids) != 0))
        fuzz_finding("other ids with places: %zu and %zu", n, e.n);
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= dc_tokenizer_size(t))
            fuzz_finding("id %u of %u", ids[i], dc_tokenizer_size(t));
        if (e.range[i].from > e.range[i].to || e.range[i].to > text.n + pair.n)
            fuzz_finding("a place from %u to %u", e.range[i].from, e.range[i].to);
    }
    DC_TRY(dc_tokenizer_decode(t, j, ids, n, false, &s));
    in.most = 3;
    dc_tokenizer_encode(t, j, &in, &e);
    return DC_OK;
}

static dc_status body(dc_job *j, void *arg)
{
    static const dc_span tokens[] = {{"a", 1}, {"b", 1}, {"ab", 2}, {"\xe2\x96\x81", 3}, {"?", 1}},
                         merges[] = {{"a b", 3}};
    static const double scores[] = {-2, -3, -1, -4, 0};
    static const char sample[] = "ab <x> e\xcc\x81\xc3\xa9\xff A1  the";
    const dc_token_list list = {.token = tokens,
                                .n = DC_COUNTOF(tokens),
                                .score = scores,
                                .merge = merges,
                                .nmerge = 1,
                                .sentencepiece = true};
    const fuzz_input *in = arg;
    const dc_span own = {in->text, in->n < MOST_TEXT ? in->n : MOST_TEXT}, none = {NULL, 0},
                  text = {sample, sizeof sample - 1};
    dc_tokenizer *t;
    char *copy = dc_arena_alloc(&j->scratch, in->n + 1);
    memcpy(copy, in->text, in->n);
    DC_TRY(dc_tokenizer_new(j, "fuzz", copy, in->n, in->n % 2 == 0 ? &list : NULL, &t));
    dc_job_defer(j, free_it, t);
    DC_TRY(use(t, j, text, none));
    return use(t, j, own, text);
}

void fuzz_one(const fuzz_input *in)
{
    if (fuzz_protect(body, (void *)(uintptr_t)in) != DC_OK && fuzz_error()[0] == '\0')
        fuzz_finding("refused without a reason");
}
