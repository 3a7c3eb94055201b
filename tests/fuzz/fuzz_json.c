/* JSON read piece by piece: whatever is next is asked for; strings that were read are printed and read again. */
#include "formats/json.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static void come_back(const char *s)
{
    dc_text t = {0};
    dc_json r;
    char *again;
    if (!dc_json_print(&t, s))
        fuzz_finding("a string that was read is not printed: %s", s);
    char *copy = dc_xalloc(t.n + 1);
    memcpy(copy, t.s, t.n);
    dc_json_init(&r, copy, t.n);
    if (!dc_json_string(&r, &again) || strcmp(s, again) != 0 || !dc_json_end(&r))
        fuzz_finding("%s is printed as %s", s, t.s);
    dc_xfree(copy);
    dc_text_free(&t);
}

static bool take(dc_json *r)
{
    static const char signs[] = "{}[]:,";
    dc_json at = *r;
    char *s;
    int64_t n;
    for (const char *c = signs; *c != '\0'; c++)
        if (dc_json_accept(r, *c))
            return true;
    if (dc_json_whole(&at, &n)) {
        if (n < 0)
            fuzz_finding("a whole number is %lld", (long long)n);
        *r = at;
        return true;
    }
    if (!dc_json_string(r, &s))
        return false;
    come_back(s);
    return true;
}

/* The whole as one value. */
static void step_over(dc_job *j, const fuzz_input *in)
{
    char *copy = dc_arena_alloc(&j->scratch, in->n + 1);
    dc_json r;
    if (in->n > 0)
        memcpy(copy, in->at, in->n);
    dc_json_init(&r, copy, in->n);
    if (!(dc_json_skip(&r) && dc_json_end(&r)) && r.why[0] == '\0')
        fuzz_finding("refused without a reason");
}

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    char *copy = dc_arena_alloc(&j->scratch, in->n);
    dc_json r;
    if (in->n > 0)
        memcpy(copy, in->at, in->n);
    dc_json_init(&r, copy, in->n);
    while (take(&r))
        ;
    if (!dc_json_end(&r) && r.why[0] == '\0')
        fuzz_finding("refused without a reason");
    step_over(j, in);
    return DC_OK;
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
