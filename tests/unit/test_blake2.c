/* BLAKE2b of 16 bytes, against digests of Python's hashlib.blake2b(text, digest_size=16). */
#include "core/base/blake2.h"

#include <stdio.h>
#include <string.h>

#include "tests/t.h"

static const char *hex_of(const void *bytes, size_t n, char out[33])
{
    unsigned char digest[16];
    uint64_t word[2];
    dc_blake2(bytes, n, word);
    memcpy(digest, word, sizeof digest);
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    return out;
}

int main(void)
{
    /* i % 251 for i of 0..n-1: lengths round the border of a block, and several */
    static const struct {
        size_t n;
        const char *digest;
    } row[] = {
        {0, "cae66941d9efbd404e4d88758ea67670"},    {1, "7025e075d5e2f6cde3cc051a31f07660"},
        {8, "d0e90592ae6dd7652b279a63d7277c8a"},    {127, "28b1296c7d4807883de6ee4ec04dcc0a"},
        {128, "a74787004ef589e31149183900d0294a"},  {129, "aaf1b0371f6d4ee49ee4fb5ddd9c49ef"},
        {255, "e2f3b2a57bcf64d626b37fc9c12674a1"},  {256, "1142c504dcd26338b7cbcf41424540d0"},
        {257, "b77b55d3dddcc45c6a52774565cd0dd6"},  {999, "376138a9ebbf004c409be28a472dc722"},
        {1000, "bca120dfd89cd95d82898473a5b01c90"},
    };
    unsigned char bytes[1000];
    char text[33], shifted[1001];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i % 251);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        CHECK_STR(hex_of(bytes, row[i].n, text), row[i].digest);
        memcpy(shifted + 1, bytes, row[i].n); /* from any address */
        CHECK_STR(hex_of(shifted + 1, row[i].n, text), row[i].digest);
    }
    CHECK_STR(hex_of("abc", 3, text), "cf4ab791c62b8d2b2109c90275287816");
    return t_done();
}
