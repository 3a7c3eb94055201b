/* Writing PNG files: 8-bit RGB, by libpng. */
#ifndef DC_FORMATS_PNG_H
#define DC_FORMATS_PNG_H

#include "core/base/job.h"

/*
 * rgb has height rows of width pixels of three bytes. Written whole or not at all (core/base/outfile.h). FILE also
 * where libpng is not installed.
 */
dc_status dc_png_write(dc_job *j, const char *path, uint32_t width, uint32_t height,
                       const unsigned char *rgb);

#endif
