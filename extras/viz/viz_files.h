/* The files of extras/viz/, which extras/viz/viz.lua puts together to a page; embedded at build time by scripts/embed.cmake. */
#ifndef DC_EXTRAS_VIZ_VIZ_FILES_H
#define DC_EXTRAS_VIZ_VIZ_FILES_H

#include <stddef.h>

struct dc_viz_file {
    const char *name; /* "page.html" */
    const char *text; /* and a zero byte that size does not count */
    size_t size;
};

extern const struct dc_viz_file dc_viz_files[]; /* a row of zeros behind the last */

#endif
