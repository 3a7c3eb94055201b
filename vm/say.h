/*
 * What the program prints itself: with names of files, devices, arguments and settings, and the texts of errors, as
 * core/base/shown.h shows them; line feeds and tabulators stay. What a script prints does not come here.
 */
#ifndef DC_VM_SAY_H
#define DC_VM_SAY_H

#include "core/base/base.h"

#include <stdio.h>

void dc_say(FILE *to, const char *text, size_t n);
void dc_sayf(FILE *to, const char *fmt, ...) DC_PRINTF(2, 3);

#endif
