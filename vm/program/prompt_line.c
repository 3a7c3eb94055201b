/*
 * Where the prompt's lines come from: an editor on a terminal, plain reading elsewhere and where
 * there is no editor. History is kept for the editor alone.
 */
#define _POSIX_C_SOURCE 200809L
#include "vm/program/prompt.h"
#include "vm/program/signals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dc_lines {
    dc_prompt *p;
    dc_edit *edit;
    char history[600]; /* "" none */
    char *last;        /* remembered; NULL none */
    char *line;
    size_t room;
};

static void see(void *ctx, const char *piece)
{
    dc_edit_remember(ctx, piece);
}

dc_lines *dc_lines_open(dc_prompt *p)
{
    dc_lines *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->p = p;
    if (p->terminal)
        l->edit = dc_edit_open(p);
    if (l->edit == NULL || !dc_history_path(&p->rt->opt, l->history, sizeof l->history))
        l->history[0] = '\0';
    if (l->history[0] != '\0')
        dc_history_load(l->history, see, l->edit);
    return l;
}

void dc_lines_close(dc_lines *l)
{
    if (l == NULL)
        return;
    dc_edit_close(l->edit);
    free(l->last);
    free(l->line);
    free(l);
}

static dc_line_end read_plain(dc_lines *l, bool more, const char **out)
{
    if (l->p->terminal) {
        fputs(more ? ">> " : "> ", stdout);
        fflush(stdout);
    }
    errno = 0;
    const ssize_t n = getline(&l->line, &l->room, stdin);
    if (n < 0 && l->p->terminal)
        putchar('\n');
    if (n < 0 && errno == EINTR) {
        clearerr(stdin);
        return DC_LINE_INTERRUPTED;
    }
    if (n < 0)
        return DC_LINE_END;
    if (n > 0 && l->line[n - 1] == '\n')
        l->line[n - 1] = '\0';
    *out = l->line;
    return DC_LINE_READ;
}

dc_line_end dc_lines_read(dc_lines *l, bool more, const char **out)
{
    return l->edit != NULL ? dc_edit_read(l->edit, more, out) : read_plain(l, more, out);
}

void dc_lines_remember(dc_lines *l, const char *piece)
{
    if (l->edit == NULL || (l->last != NULL && strcmp(l->last, piece) == 0))
        return;
    dc_edit_remember(l->edit, piece);
    if (l->history[0] != '\0')
        dc_history_add(l->history, piece);
    free(l->last);
    l->last = strdup(piece);
}
