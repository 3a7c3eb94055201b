/*
 * The process that compiles (backends/cpu/server.h). It opens no context and reads no setting: what it
 * compiles for comes as arguments, what it compiles as requests, one after the other.
 */
#include "backends/cpu/server.h"
#include "core/base/digits.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SOCKET = 0,
    LOOK_MS = 5000,   /* between two looks whether the parent is still there */
    MORE_SECONDS = 5, /* than the host waits, which ends this process */
    MAX_TEXT = 1 << 30
};

typedef struct service {
    dc_llvm_conf conf;
    dc_llvm *llvm; /* opened by the first request */
    pid_t parent;
    bool over; /* no more requests, or none that could be read */
    const void *object;
    size_t bytes;
} service;

static bool is_wanted(const service *s)
{
    for (;;) {
        struct pollfd p = {.fd = SOCKET, .events = POLLIN};
        const int n = poll(&p, 1, LOOK_MS);
        if (n > 0)
            return true;
        if ((n < 0 && errno != EINTR) || getppid() != s->parent)
            return false;
    }
}

static bool receive(void *to, size_t n)
{
    char *at = to;
    while (n > 0) {
        const ssize_t got = recv(SOCKET, at, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static bool send_all(const void *from, size_t n)
{
    const char *at = from;
    while (n > 0) {
        const ssize_t sent = send(SOCKET, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return false;
        at += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool answer(uint32_t kind, const void *bytes, size_t n)
{
    const dc_server_head head = {.magic = DC_SERVER_MAGIC, .kind = kind, .bytes = n};
    return send_all(&head, sizeof head) && send_all(bytes, n);
}

/* The next text, in the scratch arena; NULL when there is none. */
static const char *next_text(service *s, dc_job *j)
{
    dc_server_head head;
    if (!is_wanted(s) || !receive(&head, sizeof head) || head.magic != DC_SERVER_MAGIC ||
        head.kind != DC_SERVER_TEXT || head.bytes > MAX_TEXT)
        return NULL;
    char *text = dc_arena_alloc(&j->scratch, head.bytes + 1);
    text[head.bytes] = '\0';
    if (!receive(text, head.bytes))
        return NULL;
    alarm(head.seconds != 0 ? head.seconds + MORE_SECONDS : 0);
    return text;
}

static dc_status serve_one(dc_job *j, void *arg)
{
    service *s = arg;
    s->over = true;
    const char *text = next_text(s, j);
    if (text == NULL)
        return DC_OK;
    s->over = false;
    if (s->llvm == NULL)
        DC_TRY(dc_llvm_open(j, &s->conf, &s->llvm));
    DC_TRY(dc_llvm_compile(s->llvm, j, text, &s->object, &s->bytes));
    s->over = !answer(DC_SERVER_OBJECT, s->object, s->bytes);
    alarm(0);
    return DC_OK;
}

/* The sentence without "cpu: ", which the host's has again. */
static void answer_failure(service *s, const dc_job *j, dc_status status)
{
    char why[600];
    dc_err_render(&j->err, 1, why, sizeof why);
    const char *words = strncmp(why, "cpu: ", 5) == 0 ? why + 5 : why;
    s->over |=
        !answer(status == DC_E_DEVICE ? DC_SERVER_DEVICE : DC_SERVER_BUILD, words, strlen(words));
    alarm(0);
}

int dc_server_main(int argc, char **argv)
{
    const dc_opts opt = {0};
    dc_job j;
    service s = {.parent = getppid()};
    int64_t level;
    if (argc != 4)
        return 2;
    const char *number = argv[3];
    if (dc_digits_signed(&number, NULL, 0, 3, &level) != DC_DIGITS_OK)
        return 2;
    s.conf = (dc_llvm_conf){.path = argv[0],
                            .triple = argv[1],
                            .cpu = argv[2][0] != '\0' ? argv[2] : NULL,
                            .features = "",
                            .level = (int)level};
    dc_job_init(&j, &opt, NULL);
    while (!s.over) {
        const dc_status status = dc_protect(&j, serve_one, &s);
        if (status != DC_OK)
            answer_failure(&s, &j, status);
    }
    dc_llvm_close(s.llvm);
    dc_job_fini(&j);
    return 0;
}
