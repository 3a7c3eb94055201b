/*
 * What the program prints itself: with names of files, devices, arguments and settings, and the texts of errors, as
 * core/base/shown.h shows them; line feeds and tabulators stay. What a script prints does not come here.
 */
#ifndef DC_VM_PROGRAM_SAY_H
#define DC_VM_PROGRAM_SAY_H

#include "core/base/base.h"

#include <stdio.h>

void dc_say(FILE *to, const char *text, size_t n);
/* JSON, of which no value is another one then: codes stand for what would steer, and for bytes that are no UTF-8. */
void dc_say_json(FILE *to, const char *text, size_t n);
void dc_sayf(FILE *to, const char *fmt, ...) DC_PRINTF(2, 3);

#endif
