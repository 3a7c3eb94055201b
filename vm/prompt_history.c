/*
 * What was entered at the prompt, kept in a file: a line for each piece, with \n and \\ for line
 * ends and backslashes in it. Pieces are appended when they are entered, so two prompts may share
 * the file, and a crash loses nothing. A file that has grown is cut when it is read.
 */
#define _POSIX_C_SOURCE 200809L
#include "vm/prompt.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT = 2000 };

bool dc_history_path(const dc_opts *opt, char *out, size_t size)
{
    const char *state = dc_opts_system("XDG_STATE_HOME"), *home = dc_opts_system("HOME");
    int n = 0;
    if (strcmp(opt->history, "off") == 0)
        return false;
    if (opt->history[0] != '\0')
        n = snprintf(out, size, "%s", opt->history);
    else if (*state != '\0')
        n = snprintf(out, size, "%s/deepc_history", state);
    else if (*home != '\0')
        n = snprintf(out, size, "%s/.deepc_history", home);
    return n > 0 && (size_t)n < size;
}

/* In place; the text only gets shorter. */
static void decode(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '\\' && at[1] != '\0')
            *to++ = *++at == 'n' ? '\n' : *at;
        else if (*at != '\n')
            *to++ = *at;
    }
    *to = '\0';
}

static void encode(FILE *f, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n' || *text == '\\')
            putc('\\', f);
        putc(*text == '\n' ? 'n' : *text, f);
    }
    putc('\n', f);
}

/* Only its owner reads what was entered. */
static FILE *open_for(const char *path, int how, const char *mode)
{
    const int fd = open(path, how | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return NULL;
    fchmod(fd, S_IRUSR | S_IWUSR);
    FILE *f = fdopen(fd, mode);
    if (f == NULL)
        close(fd);
    return f;
}

static int count_lines(FILE *f)
{
    int n = 0;
    for (int c; (c = getc(f)) != EOF;)
        n += c == '\n';
    rewind(f);
    return n;
}

/* Writes the file again without its first lines; what fails leaves it as it is. */
static void cut(const char *path, FILE *f, int drop)
{
    char next[700];
    snprintf(next, sizeof next, "%s.%ld", path, (long)getpid());
    FILE *out = open_for(next, O_WRONLY | O_TRUNC, "w");
    if (out == NULL)
        return;
    for (int c; (c = getc(f)) != EOF;) {
        if (drop == 0)
            putc(c, out);
        drop -= c == '\n' && drop > 0;
    }
    rewind(f);
    if (fclose(out) != 0 || rename(next, path) != 0)
        unlink(next);
}

void dc_history_load(const char *path, void (*see)(void *ctx, const char *piece), void *ctx)
{
    char *line = NULL;
    size_t room = 0;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return;
    const int n = count_lines(f);
    if (n > 2 * KEPT)
        cut(path, f, n - KEPT);
    for (int i = 0; getline(&line, &room, f) >= 0; i++) {
        decode(line);
        if (i >= n - KEPT && *line != '\0')
            see(ctx, line);
    }
    free(line);
    fclose(f);
}

void dc_history_add(const char *path, const char *piece)
{
    FILE *f = open_for(path, O_WRONLY | O_APPEND, "a");
    if (f == NULL)
        return;
    encode(f, piece);
    fclose(f);
}
