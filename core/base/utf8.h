/* UTF-8, as RFC 3629 has it: no surrogates, no longer forms, nothing beyond U+10FFFF. */
#ifndef DC_CORE_BASE_UTF8_H
#define DC_CORE_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that begins n > 0 bytes, and the character; 0: none does. */
size_t dc_utf8_character(const char *text, size_t n, uint32_t *code);

#endif
