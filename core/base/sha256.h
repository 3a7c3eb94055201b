/* SHA-256 (FIPS 180-4), for checksums of files that others publish. */
#ifndef DC_CORE_BASE_SHA256_H
#define DC_CORE_BASE_SHA256_H

#include "core/base/base.h"

typedef struct dc_sha256 {
    uint32_t h[8];
    uint64_t n; /* bytes so far */
    unsigned char block[64];
} dc_sha256;

enum { DC_SHA256_TEXT = 65 };

void dc_sha256_init(dc_sha256 *s);
void dc_sha256_add(dc_sha256 *s, const void *bytes, size_t n);
/* The digest as 64 hexadecimal digits, lower case. */
void dc_sha256_end(dc_sha256 *s, char out[DC_SHA256_TEXT]);

#endif
