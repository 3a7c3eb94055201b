/* Pixels as Sixel, the graphics of DEC's VT340 that terminals show. */
#ifndef DC_FORMATS_SIXEL_H
#define DC_FORMATS_SIXEL_H

#include "core/base/vec.h"

/*
 * rgb has height rows of width pixels of three bytes. Colours are those of the pixels where these are 256 at most, else
 * the nearest of 6 x 7 x 6; a terminal has them in hundredths.
 */
void dc_sixel_encode(dc_arena *a, dc_text *out, const unsigned char *rgb, uint32_t width,
                     uint32_t height);

#endif
