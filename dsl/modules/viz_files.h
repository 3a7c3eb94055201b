/* The files of viz/, which stdlib/viz.lua puts together to a page; embedded at build time by scripts/embed.cmake. */
#ifndef DC_DSL_MODULES_VIZ_FILES_H
#define DC_DSL_MODULES_VIZ_FILES_H

#include <stddef.h>

struct dc_viz_file {
    const char *name; /* "page.html" */
    const char *text; /* and a zero byte that size does not count */
    size_t size;
};

extern const struct dc_viz_file dc_viz_files[];
extern const size_t dc_viz_file_count;

#endif
