#include "backends/build_log.h"

#include <string.h>

const char *dc_build_log_line(const char *log, size_t *n)
{
    const char *at = strstr(log, "error");
    const char *line = at != NULL ? at : log;
    while (line > log && line[-1] != '\n')
        line--;
    line += strspn(line, " \t\r\n");
    if (*line == '\0')
        line = "no reason given";
    *n = strcspn(line, "\r\n");
    return line;
}
