/* extras/editors/rpc.c: messages in pieces, what is left out, and how it goes on. */
#include "extras/editors/rpc.h"

#include "tests/t.h"

/* What a stream gives: "<message>" or "(complaint)", one behind the other. */
static const char *given(dc_rpc *r, const char *bytes, size_t n)
{
    static char out[2000];
    const char *text;
    char why[96];
    dc_rpc_got got;
    size_t k, at = 0;
    out[0] = '\0';
    dc_rpc_add(r, bytes, n);
    while ((got = dc_rpc_take(r, &text, &k, why)) != DC_RPC_MORE)
        at += (size_t)(got == DC_RPC_MESSAGE
                           ? snprintf(out + at, sizeof out - at, "<%.*s>", (int)k, text)
                           : snprintf(out + at, sizeof out - at, "(%s)", why));
    return out;
}

static const char *whole(const char *bytes)
{
    dc_rpc r = {0};
    const char *out = given(&r, bytes, strlen(bytes));
    dc_rpc_free(&r);
    return out;
}

int main(void)
{
    CHECK_STR(whole(""), "");
    CHECK_STR(whole("Content-Length: 2\r\n\r\n{}"), "<{}>");
    CHECK_STR(whole("Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\n1"), "<><1>");
    CHECK_STR(whole("Content-Type: x\r\ncontent-length:2\n\n{}"), "<{}>");
    CHECK_STR(whole("Content-Length: 3\r\n\r\n{}"), "");
    CHECK_STR(whole("Content-Length: -1\r\n\r\n{}Content-Length: 1\r\n\r\n1"),
              "(a Content-Length that is no number of bytes)<1>");
    CHECK_STR(whole("Content-Length: 99999999999999999999\r\n\r\nContent-Length: 1\r\n\r\n1"),
              "(a Content-Length that is no number of bytes)<1>");
    CHECK_STR(whole("{\"no\": \"header\"}\nContent-Length: 1\r\n\r\n1"),
              "<1>"); /* the first line looks like one of a header */
    CHECK_STR(whole("no header\nContent-Length: 1\r\n\r\n1"),
              "(a line that is none of a header)<1>");
    CHECK_STR(whole("A: b\r\n\r\n{}Content-Length: 1\r\n\r\n1"),
              "(a header without Content-Length)<1>");
    CHECK_STR(whole("Content-Length: 67108865\r\n\r\n1234"),
              "(a message of 67108865 bytes, more than 67108864)");

    dc_rpc r = {0};
    const char *stream = "Content-Length: 3\r\n\r\nabcContent-Length: 2\r\n\r\nde";
    char all[100] = "";
    for (const char *c = stream; *c != '\0'; c++)
        strcat(all, given(&r, c, 1));
    CHECK_STR(all, "<abc><de>");
    dc_rpc_free(&r);

    /* What is too long is stepped over, whatever it holds, and what follows is read. */
    static char zeros[1 << 20];
    memset(zeros, '0', sizeof zeros);
    const char *head = "Content-Length: 68157440\r\n\r\n"; /* 65 MiB */
    CHECK_STR(given(&r, head, strlen(head)), "(a message of 68157440 bytes, more than 67108864)");
    for (int i = 0; i < 65; i++)
        CHECK_STR(given(&r, zeros, sizeof zeros), "");
    CHECK(r.in.cap < DC_RPC_MOST);
    CHECK_STR(given(&r, "Content-Length: 1\r\n\r\n1", 22), "<1>");
    CHECK_STR(given(&r, zeros, 5000), "(a header of more than 4096 bytes)");
    CHECK_STR(given(&r, "Content-Length: 1\r\n\r\n1", 22), "<1>");
    dc_rpc_free(&r);
    return t_done();
}
