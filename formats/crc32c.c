/* CRC-32C: the reflected polynomial 0x82f63b78, four bits at a time. */
#include "formats/crc32c.h"

/* What four bits that leave the register become: eight shifts less four. */
static const uint32_t of_bits[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t dc_crc32c_of(const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    uint32_t c = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        c ^= at[i];
        c = c >> 4 ^ of_bits[c & 15];
        c = c >> 4 ^ of_bits[c & 15];
    }
    return ~c;
}
