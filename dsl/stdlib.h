/* Modules in Lua that are embedded at build time by scripts/embed.cmake, sorted by path; behind the last stands a row of zeros. */
#ifndef DC_DSL_STDLIB_H
#define DC_DSL_STDLIB_H

#include <stddef.h>

struct dc_stdlib_module {
    const char *name;          /* "deepc.nn", as given to require */
    const char *chunkname;     /* "=deepc/nn.lua", as given to luaL_loadbuffer */
    const unsigned char *text; /* the file, and a zero byte that size does not count */
    size_t size;
};

extern const struct dc_stdlib_module dc_stdlib_modules[]; /* of stdlib/ */

#endif
