#include "extras/editors/rpc.h"

#include "core/base/digits.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char LENGTH[] = "Content-Length:";

void dc_rpc_add(dc_rpc *r, const char *bytes, size_t n)
{
    const size_t skipped = r->skip < n ? (size_t)r->skip : n;
    r->skip -= skipped;
    if (r->at > 0) { /* what was taken makes room */
        memmove(r->in.s, r->in.s + r->at, r->in.n - r->at);
        r->in.n -= r->at;
        r->at = 0;
    }
    dc_text_put(&r->in, bytes + skipped, n - skipped);
}

void dc_rpc_free(dc_rpc *r)
{
    dc_text_free(&r->in);
    *r = (dc_rpc){0};
}

static dc_rpc_got refuse(dc_rpc *r, char why[96], const char *what)
{
    snprintf(why, 96, "%s", what);
    r->lost = true;
    return DC_RPC_BAD;
}

/* Up to the next Content-Length, or so far that none can begin before what is kept. false: none is there yet. */
static bool find_header(dc_rpc *r)
{
    const size_t k = sizeof LENGTH - 1;
    for (; r->in.n - r->at >= k; r->at++)
        if (strncasecmp(r->in.s + r->at, LENGTH, k) == 0) {
            r->lost = false;
            return true;
        }
    return false;
}

/* "17", blanks around it. */
static bool read_length(const char *s, const char *end, uint64_t *n)
{
    while (s < end && *s == ' ')
        s++;
    while (end > s && (end[-1] == ' ' || end[-1] == '\r'))
        end--;
    return dc_digits_unsigned(&s, end, INT64_MAX, n) == DC_DIGITS_OK && s == end;
}

static dc_rpc_got take_body(dc_rpc *r, size_t begin, uint64_t length, const char **text, size_t *n,
                            char why[96])
{
    const size_t there = r->in.n - begin;
    if (length > DC_RPC_MOST) {
        snprintf(why, 96, "a message of %llu bytes, more than %d", (unsigned long long)length,
                 (int)DC_RPC_MOST);
        const size_t skipped = length < there ? (size_t)length : there;
        r->at = begin + skipped;
        r->skip = length - skipped;
        return DC_RPC_BAD;
    }
    if (there < length)
        return DC_RPC_MORE;
    *text = r->in.s + begin;
    *n = (size_t)length;
    r->at = begin + *n;
    return DC_RPC_MESSAGE;
}

dc_rpc_got dc_rpc_take(dc_rpc *r, const char **text, size_t *n, char why[96])
{
    uint64_t length = 0;
    bool given = false;
    if (r->in.n == r->at || (r->lost && !find_header(r)))
        return DC_RPC_MORE;
    for (size_t at = r->at;;) {
        const char *line = r->in.s + at, *end = memchr(line, '\n', r->in.n - at);
        if ((end != NULL ? (size_t)(end - r->in.s) : r->in.n) - r->at > DC_RPC_HEADER) {
            r->at++; /* not this one again */
            return refuse(r, why, "a header of more than 4096 bytes");
        }
        if (end == NULL)
            return DC_RPC_MORE;
        at = (size_t)(end - r->in.s) + 1;
        if (end == line || (end == line + 1 && *line == '\r')) {
            r->at += given ? 0 : at - r->at;
            return given ? take_body(r, at, length, text, n, why)
                         : refuse(r, why, "a header without Content-Length");
        }
        if (strncasecmp(line, LENGTH, sizeof LENGTH - 1) == 0) {
            given = read_length(line + sizeof LENGTH - 1, end, &length);
            if (!given) {
                r->at = at;
                return refuse(r, why, "a Content-Length that is no number of bytes");
            }
        } else if (memchr(line, ':', (size_t)(end - line)) == NULL) {
            r->at = (size_t)(line - r->in.s) + 1;
            return refuse(r, why, "a line that is none of a header");
        }
    }
}

void dc_rpc_print(dc_text *out, const char *text, size_t n)
{
    dc_text_printf(out, "Content-Length: %zu\r\n\r\n", n);
    dc_text_put(out, text, n);
}
