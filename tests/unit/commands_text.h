/* The commands of an executable as lines of text, for tests that compare executables. */
#ifndef DC_TESTS_UNIT_COMMANDS_TEXT_H
#define DC_TESTS_UNIT_COMMANDS_TEXT_H

#include "jit/exec/executable.h"

#include <inttypes.h>

static inline void commands_text(const dc_exec *e, dc_text *out)
{
    for (uint32_t i = 0; i < dc_exec_command_count(e); i++) {
        dc_exec_command c;
        dc_exec_command_of(e, i, &c);
        dc_text_printf(out, "%s %s %" PRId64 " %u %u:", c.kind, c.label != NULL ? c.label : "",
                       c.grid, c.nbody, c.nelse);
        for (uint32_t b = 0; b < c.nbind; b++) {
            dc_text_puts(out, b == c.nout ? " <- " : " ");
            dc_exec_print_bind(e, i, b, out);
        }
        for (int k = 0; k < 3 && c.where[k] != NULL; k++)
            dc_text_printf(out, " %s", c.where[k]);
        dc_text_puts(out, "\n");
    }
}

#endif
