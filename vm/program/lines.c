#define _GNU_SOURCE /* fopencookie */
#include "vm/program/lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 1 << 16 }; /* of whole lines that are written at once; longer ones are cut */

typedef struct stream {
    bool inside; /* of a line */
    size_t n;
    char text[ROOM];
} stream;

struct dc_lines {
    char number[16];
    stream out, err;
};

static dc_lines *common;
static _Thread_local dc_lines *own;

/* ---- lines ----------------------------------------------------------------------------------------- */

static bool write_all(int file, const char *text, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(file, text, n);
        if (done < 0 && errno != EINTR)
            return false;
        text += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* The first n bytes of what is kept. */
static bool put_out(stream *s, int file, size_t n)
{
    const bool fine = write_all(file, s->text, n);
    memmove(s->text, s->text + n, s->n - n);
    s->n -= n;
    return fine;
}

static bool keep(stream *s, int file, const char *text, size_t n)
{
    bool fine = true;
    while (n > 0) {
        const size_t room = sizeof s->text - s->n, part = n < room ? n : room;
        memcpy(s->text + s->n, text, part);
        s->n += part;
        text += part;
        n -= part;
        if (s->n == sizeof s->text)
            fine = put_out(s, file, s->n) && fine;
    }
    return fine;
}

/* A line that is drawn again and again (dc.progress) is not held back until it ends. */
static ssize_t write_lines(dc_lines *l, int file, const char *text, size_t size)
{
    stream *s = file == STDOUT_FILENO ? &l->out : &l->err;
    const bool drawn = size > 0 && text[0] == '\r';
    bool fine = true;
    size_t whole = s->inside ? 0 : s->n;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t n = end != NULL ? (size_t)(end - text) + 1 - at : size - at;
        if (!s->inside && !drawn)
            fine = keep(s, file, l->number, strlen(l->number)) && fine;
        fine = keep(s, file, text + at, n) && fine;
        s->inside = end == NULL;
        whole = end != NULL || drawn ? s->n : whole;
        at += n;
    }
    whole = whole < s->n ? whole : s->n;
    fine = put_out(s, file, whole) && fine;
    return fine ? (ssize_t)size : 0;
}

static ssize_t write_out(void *arg, const char *text, size_t size)
{
    (void)arg;
    return write_lines(own != NULL ? own : common, STDOUT_FILENO, text, size);
}

static ssize_t write_err(void *arg, const char *text, size_t size)
{
    (void)arg;
    return write_lines(own != NULL ? own : common, STDERR_FILENO, text, size);
}

/* ---- life -------------------------------------------------------------------------------------------- */

dc_lines *dc_lines_new(const char *number)
{
    dc_lines *l = calloc(1, sizeof *l);
    if (l != NULL)
        snprintf(l->number, sizeof l->number, "%s", number);
    return l;
}

static void end_line(stream *s, int file)
{
    if (s->inside)
        keep(s, file, "\n", 1);
    put_out(s, file, s->n);
    s->inside = false;
}

void dc_lines_end(dc_lines *l)
{
    end_line(&l->out, STDOUT_FILENO);
    end_line(&l->err, STDERR_FILENO);
}

static void end_common(void)
{
    fflush(stdout);
    fflush(stderr);
    dc_lines_end(common);
}

static FILE *open_stream(FILE *f, cookie_write_function_t *write, int mode)
{
    const cookie_io_functions_t io = {.write = write};
    fflush(f);
    FILE *numbered = fopencookie(NULL, "w", io);
    if (numbered == NULL)
        return f;
    setvbuf(numbered, NULL, mode, BUFSIZ);
    return numbered;
}

void dc_lines_install(dc_lines *l, bool apart)
{
    common = l;
    stdout = open_stream(stdout, write_out, apart ? _IONBF : _IOLBF);
    stderr = open_stream(stderr, write_err, _IONBF);
    atexit(end_common);
}

void dc_lines_use(dc_lines *l)
{
    own = l;
}

void dc_lines_shout(const dc_lines *l, const char *text)
{
    char line[1000];
    const int n = snprintf(line, sizeof line, "%sdeepc: %s\n", l != NULL ? l->number : "", text);
    write_all(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}
