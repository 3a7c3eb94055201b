/* CRC-32C (Castagnoli), as the records of event files have it. */
#ifndef DC_FORMATS_CRC32C_H
#define DC_FORMATS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t dc_crc32c_of(const void *bytes, size_t n);

#endif
