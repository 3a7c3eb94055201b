/*
 * What was entered at the prompt, kept in a file: a line for each piece, with \n and \\ for line
 * ends and backslashes in it. Pieces are appended when they are entered, so two prompts may share
 * the file, and a crash loses nothing. A file that has grown is cut when it is read. A disk that is full leaves
 * the file as it was.
 */
#define _POSIX_C_SOURCE 200809L
#include "vm/program/prompt.h"

#include <errno.h>
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

/* As a line, in memory of malloc; NULL where there is none. */
static char *encode(const char *text, size_t *n)
{
    char *line = malloc(2 * strlen(text) + 1), *to = line;
    if (line == NULL)
        return NULL;
    for (; *text != '\0'; text++) {
        if (*text == '\n' || *text == '\\')
            *to++ = '\\';
        *to++ = *text == '\n' ? 'n' : *text;
    }
    *to++ = '\n';
    *n = (size_t)(to - line);
    return line;
}

/* Only its owner reads what was entered. */
static int open_for(const char *path, int how)
{
    const int fd = open(path, how | O_WRONLY | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd >= 0)
        fchmod(fd, S_IRUSR | S_IWUSR);
    return fd;
}

static int count_lines(FILE *f)
{
    int n = 0;
    for (int c; (c = getc(f)) != EOF;)
        n += c == '\n';
    rewind(f);
    return n;
}

/* What follows the next `drop` lines of f, to `out`; has all of it been read and written? */
static bool copy_rest(FILE *f, FILE *out, int drop)
{
    for (int c; (c = getc(f)) != EOF;) {
        if (drop == 0)
            putc(c, out);
        drop -= c == '\n' && drop > 0;
    }
    return !ferror(f) && fflush(out) == 0 && !ferror(out);
}

/* Writes the file again without its first lines; what fails leaves it as it is. */
static void drop_lines(const char *path, FILE *f, int drop)
{
    char next[700];
    snprintf(next, sizeof next, "%s.%ld", path, (long)getpid());
    const int fd = open_for(next, O_TRUNC);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (out == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    bool whole = copy_rest(f, out, drop);
    rewind(f);
    whole = fclose(out) == 0 && whole;
    if (!whole || rename(next, path) != 0)
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
        drop_lines(path, f, n - KEPT);
    for (int i = 0; getline(&line, &room, f) >= 0; i++) {
        decode(line);
        if (i >= n - KEPT && *line != '\0')
            see(ctx, line);
    }
    free(line);
    fclose(f);
}

/* A part of a line would become one with the next piece. */
static void take_back(int fd, ssize_t written)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || st.st_size < written || ftruncate(fd, st.st_size - written) != 0)
        return;
}

void dc_history_add(const char *path, const char *piece)
{
    size_t n;
    ssize_t written;
    const int fd = open_for(path, O_APPEND);
    char *line = fd >= 0 ? encode(piece, &n) : NULL;
    if (line != NULL) {
        do
            written = write(fd, line, n);
        while (written < 0 && errno == EINTR);
        if (written > 0 && (size_t)written < n)
            take_back(fd, written);
    }
    free(line);
    if (fd >= 0)
        close(fd);
}
