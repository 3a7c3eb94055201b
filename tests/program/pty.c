/*
 * A user at a terminal: runs a program in a pseudo-terminal, types, and waits for what it shows.
 *
 *     pty PROGRAM ARGS... <STEPS
 *
 *   line TEXT      types TEXT and Enter
 *   send TEXT      types TEXT; \t \e \n \\ and \xHH stand for characters
 *   prompt SIGN    waits until SIGN and a blank begin the last line, of those since something was typed
 *   expect TEXT    waits until TEXT has been shown, since the step before; terminal sequences do
 *                  not count
 *   within MS TEXT the same, in so many milliseconds
 *   raw TEXT       the same, sequences included; escapes as in send
 *   absent TEXT    it has not been shown since the last expectation, nor for a moment from now
 *   size ROWS COLUMNS   the terminal has another size from now on; it began with 40 rows of 120
 *   pause MS
 *   hold MS        the same, and what the program writes is not read: it waits in a write
 *   end STATUS     waits until the program ends with this status; the last step
 *
 * Ends with 0 if all went as the steps say; else tells which did not, and what was shown.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 30000, MOMENT_MS = 300, ROOM = 1 << 20 };

typedef struct session {
    int fd;
    pid_t child;
    char raw[ROOM], shown[ROOM];         /* shown: without sequences */
    size_t nraw, nshown, from_raw, from; /* from: what is new to the next expectation */
    bool in_sequence, over;
    size_t begun; /* of the sequence in raw */
    size_t typed; /* shown when something was typed */
} session;

static long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool ends_sequence(const session *s, char c)
{
    const size_t n = s->nraw - s->begun; /* ESC and c included */
    if (n == 2)
        return c != '[' && c != ']' && c != '(';
    if (s->raw[s->begun + 1] == '[')
        return isalpha((unsigned char)c) || c == '~' || c == '@';
    return s->raw[s->begun + 1] == '(' || c == '\a';
}

static void take(session *s, char c)
{
    if (s->nraw + 1 >= ROOM)
        return;
    s->raw[s->nraw++] = c;
    if (!s->in_sequence && c == '\033') {
        s->in_sequence = true;
        s->begun = s->nraw - 1;
    } else if (s->in_sequence) {
        s->in_sequence = !ends_sequence(s, c);
    } else if (c == '\b' && s->nshown > s->from) {
        s->nshown--;
    } else if (c != '\r' && c != '\0') {
        s->shown[s->nshown++] = c;
    }
}

/* Takes what comes in so many milliseconds; returns as soon as something came. */
static void listen_for(session *s, long ms)
{
    char text[4096];
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    if (s->over || poll(&p, 1, (int)(ms > 0 ? ms : 0)) <= 0)
        return;
    const ssize_t n = read(s->fd, text, sizeof text);
    s->over = n <= 0;
    for (ssize_t i = 0; i < n; i++)
        take(s, text[i]);
}

static bool find(const char *text, size_t n, size_t *from, const char *wanted)
{
    const char *at = *from < n ? memmem(text + *from, n - *from, wanted, strlen(wanted)) : NULL;
    if (at == NULL)
        return false;
    *from = (size_t)(at - text) + strlen(wanted);
    return true;
}

static bool wait_for(session *s, long ms, const char *wanted, bool raw)
{
    const long until = now_ms() + ms;
    for (;;) {
        if (raw ? find(s->raw, s->nraw, &s->from_raw, wanted)
                : find(s->shown, s->nshown, &s->from, wanted)) {
            if (raw)
                s->from = s->nshown;
            else
                s->from_raw = s->nraw;
            return true;
        }
        if (s->over || now_ms() >= until)
            return false;
        listen_for(s, until - now_ms());
    }
}

static bool wait_for_prompt(session *s, const char *sign)
{
    const long until = now_ms() + PATIENCE_MS;
    char wanted[16];
    const size_t n = (size_t)snprintf(wanted, sizeof wanted, "\n%s ", sign);
    for (;;) {
        if (s->nshown >= s->typed + n && memcmp(s->shown + s->nshown - n, wanted, n) == 0) {
            s->from = s->nshown;
            s->from_raw = s->nraw;
            return true;
        }
        if (s->over || now_ms() >= until)
            return false;
        listen_for(s, until - now_ms());
    }
}

static bool is_absent(session *s, const char *unwanted)
{
    const long until = now_ms() + MOMENT_MS;
    size_t from = s->from;
    while (now_ms() < until && !s->over)
        listen_for(s, until - now_ms());
    return !find(s->shown, s->nshown, &from, unwanted);
}

/* Escapes become characters, in place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0'; at++) {
        unsigned code;
        if (*at != '\\') {
            *to++ = *at;
            continue;
        }
        at++;
        if (*at == 'x' && sscanf(at + 1, "%2x", &code) == 1) {
            *to++ = (char)code;
            at += 2;
        } else {
            *to++ = *at == 't' ? '\t' : *at == 'n' ? '\n' : *at == 'e' ? '\033' : *at;
        }
    }
    *to = '\0';
}

static bool type(session *s, const char *text)
{
    s->typed = s->nshown;
    for (size_t n = strlen(text); n > 0;) {
        const ssize_t k = write(s->fd, text, n);
        if (k < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        text += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
        listen_for(s, 0);
    }
    return true;
}

static bool ends_with(session *s, int wanted)
{
    const long until = now_ms() + PATIENCE_MS;
    int status = -1;
    while (!s->over && now_ms() < until)
        listen_for(s, until - now_ms());
    if (!s->over)
        return false;
    waitpid(s->child, &status, 0);
    s->child = 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == wanted;
}

static bool do_step(session *s, char *line)
{
    char *text = line + strcspn(line, " ");
    if (*text != '\0')
        *text++ = '\0';
    if (strcmp(line, "prompt") == 0)
        return wait_for_prompt(s, text);
    if (strcmp(line, "line") == 0)
        return type(s, strcat(text, "\n"));
    if (strcmp(line, "expect") == 0)
        return wait_for(s, PATIENCE_MS, text, false);
    if (strcmp(line, "absent") == 0)
        return is_absent(s, text);
    if (strcmp(line, "end") == 0)
        return ends_with(s, atoi(text));
    if (strcmp(line, "size") == 0) {
        char *columns;
        struct winsize size = {.ws_row = (unsigned short)strtol(text, &columns, 10)};
        size.ws_col = (unsigned short)atoi(columns);
        return ioctl(s->fd, TIOCSWINSZ, &size) == 0;
    }
    if (strcmp(line, "within") == 0) {
        char *wanted;
        const long ms = strtol(text, &wanted, 10);
        return wait_for(s, ms, wanted + 1, false);
    }
    if (strcmp(line, "pause") == 0) {
        for (const long until = now_ms() + atol(text); now_ms() < until && !s->over;)
            listen_for(s, until - now_ms());
        return true;
    }
    if (strcmp(line, "hold") == 0) {
        const long ms = atol(text);
        return nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL) == 0;
    }
    unescape(text);
    if (strcmp(line, "send") == 0)
        return type(s, text);
    return strcmp(line, "raw") == 0 && wait_for(s, PATIENCE_MS, text, true);
}

int main(int argc, char **argv)
{
    static session s;
    static char line[8192];
    struct winsize size = {.ws_row = 40, .ws_col = 120};
    int step = 0;
    bool good = argc > 1;
    if (!good)
        return 2;
    s.child = forkpty(&s.fd, NULL, NULL, &size);
    if (s.child < 0) {
        perror("pty");
        return 77;
    }
    if (s.child == 0) {
        execv(argv[1], argv + 1);
        _exit(127);
    }
    while (good && fgets(line, sizeof line, stdin) != NULL) {
        static char copy[sizeof line];
        line[sizeof line - 2] = '\0'; /* room for Enter */
        step++;
        line[strcspn(line, "\n")] = '\0';
        strcpy(copy, line);
        if (*line == '\0' || *line == '#')
            continue;
        good = do_step(&s, line);
        if (!good)
            printf("step %d: %s\n---- shown\n%.*s\n----\n", step, copy, (int)s.nshown, s.shown);
    }
    if (s.child != 0) {
        kill(s.child, SIGKILL);
        waitpid(s.child, NULL, 0);
    }
    return good ? 0 : 1;
}
