/* The pages of docs/errors/ inside the program; the array is made by scripts/embed.cmake. */
#ifndef DC_VM_PROGRAM_PAGES_H
#define DC_VM_PROGRAM_PAGES_H

#include <stddef.h>

struct dc_page {
    const char *code; /* "DC0301" */
    const char *text; /* Markdown; `size` bytes, zero-terminated besides */
    size_t size;
};

extern const struct dc_page dc_pages[]; /* sorted by code; a row of zeros behind the last */

#endif
