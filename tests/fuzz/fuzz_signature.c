/* Signatures: what is read prints to a text that reads back the same, and binds arguments of odd sizes or says why not. */
#include "core/base/type.h"
#include "core/signature/signature.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { LEAVES = 64 };

static char printed[1 << 16], again[1 << 16];

static void free_sig(void *s)
{
    dc_sig_fini(s);
}

static void free_names(void *n)
{
    dc_names_free(n);
}

static void come_back(dc_job *j, dc_names *names, const dc_sig *s)
{
    static dc_sig t;
    if (dc_sig_print(s, NULL, printed, sizeof printed) >= (int)sizeof printed)
        return;
    if (dc_sig_parse(j, names, printed, &t) != DC_OK)
        fuzz_finding("does not read back: %s", printed);
    dc_sig_print(&t, NULL, again, sizeof again);
    if (strcmp(printed, again) != 0)
        fuzz_finding("reads back as another text: %s\n%s", printed, again);
    dc_sig_fini(&t);
}

/* Arguments for all parameters that are plain tensors. */
static int choose_leaves(const dc_sig *s, uint64_t draw, dc_sig_leaf *leaf)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 64, 1 << 20, INT64_MAX / 2};
    int n = 0;
    for (int p = 0; p < s->nparam && n < LEAVES; p++) {
        const dc_sig_type *t = s->param[p].type;
        if (t == NULL || t->kind != DC_SHAPE_TENSOR)
            continue;
        dc_type given = dc_type_scalar((dc_dtype)t->dtype);
        given.rank = (uint8_t)(t->ndim > DC_MAX_RANK ? DC_MAX_RANK : t->ndim);
        for (int d = 0; d < given.rank; d++) {
            draw = draw * 6364136223846793005u + 1;
            given.dim[d] = sizes[(draw >> 33) % DC_COUNTOF(sizes)];
        }
        leaf[n++] = (dc_sig_leaf){.declared = t, .given = given};
    }
    return n;
}

static void bind(const dc_sig *s, dc_sig_bind b, uint64_t draw)
{
    dc_sig_leaf leaf[LEAVES];
    dc_sig_miss miss;
    char text[300];
    dc_type t;
    const int n = choose_leaves(s, draw, leaf);
    if (!dc_sig_match(s, &b, leaf, n, &miss)) {
        dc_sig_miss_print(s, &miss, 1, text, sizeof text);
        return;
    }
    for (int r = 0; r < s->nresult; r++)
        if (s->result[r]->kind == DC_SHAPE_TENSOR && dc_sig_resolve(&b, s->result[r], &t) &&
            !dc_sig_match_result(s, &b, s->result[r], &t, &miss))
            fuzz_finding("a result does not match the type that it was given");
    dc_sig_bind_print(s, &b, text, sizeof text);
    dc_sig_print(s, &b, printed, 200);
}

static dc_status body(dc_job *j, void *arg)
{
    static dc_sig s;
    const fuzz_input *in = arg;
    dc_names *names = dc_names_new();
    dc_sig_bind b;
    dc_job_defer(j, free_names, names);
    DC_TRY(dc_sig_parse(j, names, in->text, &s));
    dc_job_defer(j, free_sig, &s);
    come_back(j, names, &s);
    dc_sig_begin(&s, &b);
    DC_TRY(dc_sig_check(j, &s, &b));
    bind(&s, b, dc_hash_bytes(1, in->at, in->n));
    return DC_OK;
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
