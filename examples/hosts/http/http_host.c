/*
 * Serves a function that a script exported: no Lua. libmicrohttpd's thread reads requests and writes answers, the thread of a
 * queue computes them, several at once where they come together.
 *
 *     http_host [OPTION=N...] FILE        http_host --port=8080 model.dcfn
 */
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

typedef struct server {
    settings s;
    model m;
    queue q;
    metrics count;
    struct MHD_Daemon *http;
    _Atomic bool closing;
} server;

/* One HTTP request; the first member is what the queue knows. */
typedef struct exchange {
    request r;
    server *host;
    struct MHD_Connection *connection;
    double began;
    char *body;
    size_t n, room;
    bool queued, too_large;
    int code;
    const char *allow; /* for 405 */
} exchange;

/* ---- answers ---- */

static enum MHD_Result answer(exchange *x, int code, const char *type, char *text, size_t n)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return MHD_NO;
    }
    x->code = code;
    MHD_add_response_header(response, "Content-Type", type);
    if (code == 503)
        MHD_add_response_header(response, "Retry-After", "1");
    if (x->allow != NULL)
        MHD_add_response_header(response, "Allow", x->allow);
    if (x->host->closing || x->too_large)
        MHD_add_response_header(response, "Connection", "close");
    enum MHD_Result result = MHD_queue_response(x->connection, (unsigned)code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_text(exchange *x, int code, const char *text)
{
    char *copy = strdup(text);
    return copy == NULL ? MHD_NO : answer(x, code, "text/plain", copy, strlen(copy));
}

/* {"error": "..."} */
static enum MHD_Result answer_error(exchange *x, int code, const char *sentence)
{
    char *text = malloc(2 * strlen(sentence) + 20);
    if (text == NULL)
        return MHD_NO;
    size_t n = (size_t)sprintf(text, "{\"error\":\"");
    for (const char *c = sentence; *c != 0;
         c++) { /* what a client wrote may be cut within a letter: ASCII alone */
        if (*c == '"' || *c == '\\')
            text[n++] = '\\';
        text[n++] = *c < ' ' || *c > '~' ? '?' : *c;
    }
    n += (size_t)sprintf(text + n, "\"}\n");
    return answer(x, code, "application/json", text, n);
}

static enum MHD_Result answer_model(exchange *x)
{
    model *m = &x->host->m;
    enum { ROOM = 16384 };
    char *text = malloc(ROOM);
    dc_array a;
    const char *name;
    if (text == NULL)
        return MHD_NO;
    int n = snprintf(text, ROOM, "%.*s\n", ROOM / 2, dc_function_signature(m->fn));
    for (size_t v = 0; v < m->variants; v++)
        for (size_t i = 0; i < m->nin && n < ROOM - 512; i++) {
            dc_function_argument(m->fn, v, i, &name, &a);
            n += snprintf(text + n, 256, "variant %zu: %.100s", v, name);
            for (int k = 0; k < a.rank; k++)
                n += snprintf(text + n, 24, " %lld", (long long)a.dim[k]);
            n += snprintf(text + n, 2, "\n");
        }
    return answer(x, 200, "text/plain", text, (size_t)n);
}

static enum MHD_Result answer_health(exchange *x)
{
    if (x->host->closing)
        return answer_text(x, 503, "going down\n");
    if (x->host->m.torn)
        return answer_text(x, 503, "a state is half written: start the server again\n");
    return answer_text(x, 200, "ok\n");
}

static enum MHD_Result answer_metrics(exchange *x)
{
    size_t n;
    char *text = metrics_text(&x->host->count, &n);
    return text == NULL ? MHD_NO : answer(x, 200, "text/plain; version=0.0.4", text, n);
}

static enum MHD_Result answer_results(exchange *x)
{
    size_t n;
    if (x->r.code != 200)
        return answer_error(x, x->r.code, x->r.error);
    char *text = tensors_write(&x->host->m, &x->r, &n);
    if (text == NULL)
        return answer_error(x, 500, "no memory");
    return answer(x, 200, "application/json", text, n);
}

/* ---- requests ---- */

/* On the queue's thread: libmicrohttpd calls on_request again. */
static void on_done(request *r)
{
    MHD_resume_connection(((exchange *)r)->connection);
}

/* A part of a body; false without memory. What is too large is read and forgotten. */
static bool receive(exchange *x, const char *data, size_t n)
{
    size_t most = (size_t)x->host->s.body;
    x->host->count.bytes_in += n;
    if (n > most - x->n || x->too_large) {
        x->too_large = true;
        return true;
    }
    if (x->room - x->n < n) {
        size_t room = 2 * (x->n + n) < most ? 2 * (x->n + n) : most;
        char *body = realloc(x->body, room);
        if (body == NULL)
            return false;
        x->body = body;
        x->room = room;
    }
    memcpy(x->body + x->n, data, n);
    x->n += n;
    return true;
}

static enum MHD_Result run(exchange *x)
{
    server *host = x->host;
    char error[TEXT] = "";
    if (!tensors_read(&host->m, x->body != NULL ? x->body : "", x->n, &x->r, error))
        return answer_error(x, strcmp(error, "no memory") == 0 ? 503 : 400, error);
    free(x->body);
    x->body = NULL;
    x->r.done = on_done;
    x->queued = true;
    MHD_suspend_connection(x->connection); /* before the queue's thread may resume it */
    if (queue_add(&host->q, &x->r))
        return MHD_YES;
    x->r.code = 503;
    snprintf(x->r.error, TEXT,
             host->closing ? "the server is going down" : "too many requests are waiting");
    MHD_resume_connection(x->connection);
    return MHD_YES;
}

/* Is the method a whole word of "GET, HEAD"? */
static bool allows(const char *list, const char *method)
{
    const size_t n = strlen(method);
    for (const char *word = list; *word != 0; word += strspn(word, ", ")) {
        const size_t length = strcspn(word, ",");
        if (length == n && memcmp(word, method, n) == 0)
            return true;
        word += length;
    }
    return false;
}

static enum MHD_Result route(exchange *x, const char *url, const char *method)
{
    static const struct {
        const char *url, *allow;
        enum MHD_Result (*answer)(exchange *);
    } routes[] = {
        {"/run", "POST", run},
        {"/health", "GET, HEAD", answer_health},
        {"/metrics", "GET, HEAD", answer_metrics},
        {"/model", "GET, HEAD", answer_model},
    };
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (strcmp(url, routes[i].url) != 0)
            continue;
        if (allows(routes[i].allow, method))
            return routes[i].answer(x);
        x->allow = routes[i].allow;
        return answer_error(x, 405, "another method is wanted here");
    }
    return answer_error(x, 404, "there are /run, /model, /health and /metrics");
}

static exchange *begin(server *host, struct MHD_Connection *connection)
{
    exchange *x = calloc(1, sizeof *x);
    if (x == NULL)
        return NULL;
    x->host = host;
    x->connection = connection;
    x->began = now_seconds();
    host->count.open++;
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    x->too_large = length != NULL && strtoll(length, NULL, 10) > host->s.body;
    return x;
}

/* Called at the beginning of a request, for each part of its body, at the end, and when its results are there. */
static enum MHD_Result on_request(void *host, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *n, void **at)
{
    exchange *x = *at;
    (void)version;
    if (x == NULL) {
        *at = x = begin(host, connection);
        if (x != NULL && x->too_large) /* before its body is sent */
            return answer_error(x, 413, "the body is larger than this server takes");
        return x != NULL ? MHD_YES : MHD_NO;
    }
    if (*n > 0) {
        bool ok = receive(x, data, *n);
        *n = 0;
        return ok ? MHD_YES : MHD_NO;
    }
    if (x->queued)
        return answer_results(x);
    if (x->too_large)
        return answer_error(x, 413, "the body is larger than this server takes");
    return route(x, url, method);
}

static void on_connection(void *host, struct MHD_Connection *connection, void **at,
                          enum MHD_ConnectionNotificationCode what)
{
    (void)connection;
    (void)at;
    ((server *)host)->count.connections += what == MHD_CONNECTION_NOTIFY_STARTED ? 1 : -1;
}

static void on_end(void *host, struct MHD_Connection *connection, void **at,
                   enum MHD_RequestTerminationCode why)
{
    exchange *x = *at;
    server *h = host;
    (void)connection;
    (void)why;
    if (x == NULL)
        return;
    if (x->code != 0)
        metrics_answered(&h->count, x->code, now_seconds() - x->began);
    request_clear(&x->r);
    free(x->body);
    free(x);
    *at = NULL;
    h->count.open--;
}

/* ---- the program ---- */

static bool take_option(settings *s, const char *arg)
{
    const struct {
        const char *name;
        int64_t *at, least, most;
    } options[] = {
        {"--batch=", &s->batch, 1, MOST_BATCH},     {"--wait-us=", &s->wait_us, 0, 1000000},
        {"--queue=", &s->queue, 1, 1000000},        {"--connections=", &s->connections, 1, 100000},
        {"--body=", &s->body, 1, INT64_C(1) << 30}, {"--timeout-ms=", &s->timeout_ms, 1, 3600000},
        {"--memory=", &s->memory, 0, INT64_MAX},
    };
    char *end;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        size_t n = strlen(options[i].name);
        if (strncmp(arg, options[i].name, n) != 0)
            continue;
        *options[i].at = strtoll(arg + n, &end, 10);
        return end != arg + n && *end == 0 && *options[i].at >= options[i].least &&
               *options[i].at <= options[i].most;
    }
    int *at = strncmp(arg, "--port=", 7) == 0       ? &s->port
              : strncmp(arg, "--threads=", 10) == 0 ? &s->threads
                                                    : NULL;
    if (at == NULL)
        return false;
    long v = strtol(strchr(arg, '=') + 1, &end, 10);
    *at = (int)v;
    return end != strchr(arg, '=') + 1 && *end == 0 && v >= 0 &&
           v <= (at == &s->port ? 65535 : 1024);
}

static bool start_http(server *h)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)h->s.port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    h->http =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME,
                         (uint16_t)h->s.port, NULL, NULL, on_request, h, MHD_OPTION_SOCK_ADDR, &at,
                         MHD_OPTION_NOTIFY_COMPLETED, on_end, h, MHD_OPTION_NOTIFY_CONNECTION,
                         on_connection, h, MHD_OPTION_CONNECTION_LIMIT, (unsigned)h->s.connections,
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(1 + h->s.timeout_ms / 1000),
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16384, MHD_OPTION_END);
    if (h->http == NULL)
        return false;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->http, MHD_DAEMON_INFO_BIND_PORT);
    printf("%s\nlistening on 127.0.0.1:%u, batches of %lld rows\n", dc_function_signature(h->m.fn),
           info != NULL ? info->port : 0,
           (long long)(h->m.rows && h->s.batch < h->m.most ? h->s.batch : h->m.most));
    fflush(stdout);
    return true;
}

/* No new connections; what has begun is answered, for as long as a request may take; then all end. */
static void finish(server *h)
{
    h->closing = true;
    int listening = MHD_quiesce_daemon(h->http);
    double end = now_seconds() + 1e-3 * (double)h->s.timeout_ms;
    while (h->count.open > 0 && now_seconds() < end)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    queue_finish(&h->q); /* suspended requests are answered before MHD_stop_daemon */
    MHD_stop_daemon(h->http);
    queue_free(&h->q);
    if (listening >= 0)
        close(listening);
}

int main(int argc, char **argv)
{
    static server h = {.s = {.port = 8080,
                             .threads = 1,
                             .batch = 32,
                             .wait_us = 500,
                             .queue = 256,
                             .connections = 512,
                             .body = 1 << 20,
                             .timeout_ms = 5000,
                             .memory = (int64_t)512 << 20}};
    char error[TEXT];
    sigset_t ends;
    int signal;

    for (int i = 1; i < argc - 1; i++)
        if (!take_option(&h.s, argv[i])) {
            fprintf(stderr, "http_host: what is %s? README.md lists the options\n", argv[i]);
            return EXIT_FAILURE;
        }
    if (argc < 2 || argv[argc - 1][0] == '-') {
        fprintf(stderr, "http_host [OPTION=N...] FILE\n");
        return EXIT_FAILURE;
    }
    h.s.file = argv[argc - 1];

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* in every thread that is started from here on */
    if (!model_open(&h.m, &h.s, error)) {
        fprintf(stderr, "http_host: %s\n", error);
        model_close(&h.m);
        return EXIT_FAILURE;
    }
    if (!queue_start(&h.q, &h.m, &h.count, &h.s))
        return EXIT_FAILURE;
    if (!start_http(&h)) {
        fprintf(stderr, "http_host: cannot listen on port %d\n", h.s.port);
        queue_finish(&h.q);
        queue_free(&h.q);
        model_close(&h.m);
        return EXIT_FAILURE;
    }
    sigwait(&ends, &signal);
    finish(&h);
    model_close(&h.m);
    printf("ended\n");
    return EXIT_SUCCESS;
}
