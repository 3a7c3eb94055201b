/* Messages on a stream: whatever the pieces that bytes come in, the same messages and the same complaints come out. */
#include "extras/editors/rpc.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

/* What was taken, one behind the other. */
static void take_all(dc_rpc *r, dc_text *out)
{
    const char *text;
    size_t n;
    char why[96];
    dc_rpc_got got;
    while ((got = dc_rpc_take(r, &text, &n, why)) != DC_RPC_MORE) {
        if (got == DC_RPC_BAD && (why[0] == '\0' || strlen(why) >= sizeof why))
            fuzz_finding("left out without a reason");
        if (got == DC_RPC_MESSAGE && n > DC_RPC_MOST)
            fuzz_finding("a message of %zu bytes", n);
        dc_text_printf(out, "%s ", got == DC_RPC_BAD ? why : "message");
        if (got == DC_RPC_MESSAGE)
            dc_rpc_print(out, text, n);
    }
}

static void come_back(const dc_text *all)
{
    dc_rpc r = {0};
    dc_text stream = {0};
    const char *text;
    size_t n;
    char why[96];
    dc_rpc_print(&stream, all->s, all->n);
    dc_rpc_add(&r, stream.s, stream.n);
    if (dc_rpc_take(&r, &text, &n, why) != DC_RPC_MESSAGE || n != all->n ||
        memcmp(text, all->s, n) != 0)
        fuzz_finding("a message that was printed is not read");
    dc_text_free(&stream);
    dc_rpc_free(&r);
}

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    dc_rpc once = {0}, pieces = {0};
    dc_text a = {0}, b = {0};
    DC_UNUSED(j);
    dc_text_puts(&a, "");
    dc_text_puts(&b, "");
    dc_rpc_add(&once, in->text, in->n);
    take_all(&once, &a);
    for (size_t at = 0, k; at < in->n; at += k) {
        k = 1 + in->at[at] % 7;
        k = k < in->n - at ? k : in->n - at;
        dc_rpc_add(&pieces, in->text + at, k);
        take_all(&pieces, &b);
    }
    if (a.n != b.n || memcmp(a.s, b.s, a.n) != 0)
        fuzz_finding("in pieces:\n%s\nat once:\n%s", b.s, a.s);
    come_back(&a);
    dc_text_free(&a);
    dc_text_free(&b);
    dc_rpc_free(&once);
    dc_rpc_free(&pieces);
    return DC_OK;
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
