/*
 * An editor at a language server: runs a program, sends messages, and waits for what it says.
 *
 *     rpc PROGRAM ARGS... <STEPS
 *
 *   send JSON         sends the message
 *   open NAME V FILE  textDocument/didOpen: file:///NAME in version V has the text of FILE
 *   change NAME V FILE   the same as textDocument/didChange
 *   raw TEXT          sends these bytes; \r \n \\ and \xHH stand for characters
 *   zeros N           sends N times the digit 0
 *   expect A & B      waits until a message that has both texts comes, since the one that was expected before; those in
 *                     between are passed over
 *   within MS A & B   the same, in so many milliseconds
 *   absent MS A       no message with this text comes in so many milliseconds, nor has since the last expectation
 *   memory KIB        the program has never had more
 *   lap NAME          prints the name and the milliseconds since a message was sent last
 *   pause MS
 *   close             its standard input ends
 *   end STATUS        waits until the program ends with this status; the last step
 *
 * Ends with 0 if all went as the steps say; else tells which did not, and what the program said last.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 30000, ROOM = 1 << 24 };

typedef struct session {
    int to, from;
    pid_t child;
    char *in;     /* what it has said */
    size_t n, at; /* bytes of it; the first message that is new to the next expectation */
    bool over;
    double sent; /* when, ms */
} session;

static long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void listen_for(session *s, long ms)
{
    struct pollfd p = {.fd = s->from, .events = POLLIN};
    if (s->over || poll(&p, 1, (int)(ms > 0 ? ms : 0)) <= 0)
        return;
    const ssize_t n = read(s->from, s->in + s->n, ROOM - s->n - 1);
    s->over = n <= 0;
    s->n += n > 0 ? (size_t)n : 0;
    s->in[s->n] = '\0';
}

/* The next whole message, which ends in '\0' meanwhile; NULL: there is none yet. */
static char *next_message(session *s, size_t *length)
{
    char *head = s->in + s->at, *body = strstr(head, "\r\n\r\n");
    if (body == NULL || sscanf(head, "Content-Length: %zu", length) != 1)
        return NULL;
    body += 4;
    if ((size_t)(body - s->in) + *length > s->n)
        return NULL;
    s->at = (size_t)(body - s->in) + *length;
    return body;
}

static bool has(const char *text, size_t n, const char *wanted)
{
    for (const char *end; *wanted != '\0'; wanted = *end != '\0' ? end + 3 : end) {
        end = strstr(wanted, " & ");
        end = end != NULL ? end : wanted + strlen(wanted);
        if (memmem(text, n, wanted, (size_t)(end - wanted)) == NULL)
            return false;
    }
    return true;
}

static bool wait_for(session *s, long ms, const char *wanted)
{
    const long until = now_ms() + ms;
    for (;;) {
        size_t n;
        const char *m;
        while ((m = next_message(s, &n)) != NULL)
            if (has(m, n, wanted))
                return true;
        if (s->over || now_ms() >= until)
            return false;
        listen_for(s, until - now_ms());
    }
}

static bool is_absent(session *s, long ms, const char *unwanted)
{
    const size_t at = s->at;
    const bool came = wait_for(s, ms, unwanted);
    s->at = at; /* other messages may still be expected */
    return !came;
}

/* While writing, what the program says is read, so that neither waits for the other. */
static bool write_all(session *s, const char *text, size_t n)
{
    while (n > 0 && !s->over) {
        struct pollfd p = {.fd = s->to, .events = POLLOUT};
        if (poll(&p, 1, 10) > 0) {
            const ssize_t k = write(s->to, text, n < 4096 ? n : 4096);
            if (k < 0 && errno != EINTR)
                return false;
            text += k > 0 ? k : 0;
            n -= k > 0 ? (size_t)k : 0;
        }
        listen_for(s, 0);
    }
    return n == 0;
}

static bool send_message(session *s, const char *text, size_t n)
{
    char head[60];
    s->sent = now();
    const int k = snprintf(head, sizeof head, "Content-Length: %zu\r\n\r\n", n);
    return write_all(s, head, (size_t)k) && write_all(s, text, n);
}

static size_t add_escaped(char *out, FILE *f)
{
    size_t n = 0;
    for (int c; (c = getc(f)) != EOF;)
        n += (size_t)sprintf(out + n, c < ' ' || c == '"' || c == '\\' ? "\\u%04x" : "%c", c);
    return n;
}

/* "NAME V FILE" */
static bool send_text(session *s, const char *method, char *words)
{
    static char text[ROOM];
    const char *name = strtok(words, " "), *version = strtok(NULL, " "), *file = strtok(NULL, " ");
    FILE *f = file != NULL ? fopen(file, "rb") : NULL;
    if (f == NULL)
        return false;
    const bool open = strcmp(method, "didOpen") == 0;
    size_t n = (size_t)sprintf(text,
                               "{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/%s\",\"params\":{"
                               "\"textDocument\":{\"uri\":\"file:///%s\",\"version\":%s%s",
                               method, name, version,
                               open ? ",\"languageId\":\"lua\",\"text\":\""
                                    : "},\"contentChanges\":[{\"text\":\"");
    n += add_escaped(text + n, f);
    n += (size_t)sprintf(text + n, open ? "\"}}}" : "\"}]}}");
    fclose(f);
    return send_message(s, text, n);
}

static size_t unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0'; at++) {
        unsigned code;
        if (*at != '\\') {
            *to++ = *at;
        } else if (*++at == 'x' && sscanf(at + 1, "%2x", &code) == 1) {
            *to++ = (char)code;
            at += 2;
        } else {
            *to++ = *at == 'r' ? '\r' : *at == 'n' ? '\n' : *at;
        }
    }
    return (size_t)(to - text);
}

static bool send_zeros(session *s, long n)
{
    static char zeros[1 << 16];
    memset(zeros, '0', sizeof zeros);
    for (long k; n > 0; n -= k) {
        k = n < (long)sizeof zeros ? n : (long)sizeof zeros;
        if (!write_all(s, zeros, (size_t)k))
            return false;
    }
    return true;
}

static bool has_had(const session *s, long kib)
{
    char path[60], line[200];
    long peak = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)s->child);
    FILE *f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        sscanf(line, "VmHWM: %ld", &peak);
    if (f != NULL)
        fclose(f);
    if (peak > kib)
        printf("it has had %ld KiB\n", peak);
    return peak > 0 && peak <= kib;
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
    if (strcmp(line, "send") == 0)
        return send_message(s, text, strlen(text));
    if (strcmp(line, "open") == 0)
        return send_text(s, "didOpen", text);
    if (strcmp(line, "change") == 0)
        return send_text(s, "didChange", text);
    if (strcmp(line, "raw") == 0)
        return write_all(s, text, unescape(text));
    if (strcmp(line, "zeros") == 0)
        return send_zeros(s, atol(text));
    if (strcmp(line, "expect") == 0)
        return wait_for(s, PATIENCE_MS, text);
    if (strcmp(line, "memory") == 0)
        return has_had(s, atol(text));
    if (strcmp(line, "end") == 0)
        return ends_with(s, atoi(text));
    if (strcmp(line, "lap") == 0)
        return printf("%-32s %6.0f\n", text, now() - s->sent) > 0;
    char *rest;
    const long ms = strtol(text, &rest, 10);
    rest += *rest == ' ';
    if (strcmp(line, "within") == 0)
        return wait_for(s, ms, rest);
    if (strcmp(line, "absent") == 0)
        return is_absent(s, ms, rest);
    if (strcmp(line, "pause") == 0) {
        for (const long until = now_ms() + ms; now_ms() < until && !s->over;)
            listen_for(s, until - now_ms());
        return true;
    }
    return strcmp(line, "close") == 0 && close(s->to) == 0;
}

static bool start(session *s, char **argv)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || (s->child = fork()) < 0)
        return false;
    if (s->child == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execv(argv[0], argv);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    s->to = in[1];
    s->from = out[0];
    return true;
}

int main(int argc, char **argv)
{
    static session s;
    static char line[1 << 16], copy[sizeof line];
    int step = 0;
    s.in = calloc(1, ROOM);
    signal(SIGPIPE, SIG_IGN);
    bool good = argc > 1 && s.in != NULL && start(&s, argv + 1);
    while (good && fgets(line, sizeof line, stdin) != NULL) {
        step++;
        line[strcspn(line, "\n")] = '\0';
        strcpy(copy, line);
        if (*line == '\0' || *line == '#')
            continue;
        good = do_step(&s, line);
        if (!good)
            printf("step %d: %.1000s\n---- said\n%s\n----\n", step, copy,
                   s.in + (s.n > 3000 ? s.n - 3000 : 0));
    }
    if (s.child > 0) {
        kill(s.child, SIGKILL);
        waitpid(s.child, NULL, 0);
    }
    free(s.in);
    return good ? 0 : 1;
}
