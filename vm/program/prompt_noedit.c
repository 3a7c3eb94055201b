/* Instead of prompt_edit.c where the header of libedit was not found: lines are read as they come. */
#include "vm/program/prompt.h"

const char *const dc_edit_libraries[] = {NULL};

dc_edit *dc_edit_open(dc_prompt *p)
{
    DC_UNUSED(p);
    return NULL;
}

void dc_edit_close(dc_edit *e)
{
    DC_UNUSED(e);
}

dc_line_end dc_edit_read(dc_edit *e, bool more, const char **out)
{
    DC_UNUSED(e);
    DC_UNUSED(more);
    *out = "";
    return DC_LINE_END;
}

void dc_edit_remember(dc_edit *e, const char *piece)
{
    DC_UNUSED(e);
    DC_UNUSED(piece);
}
