/* Counts, and their text in the format of Prometheus. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host.h"

static const int codes[CODES] = {200, 400, 404, 405, 413, 500, 503, 504, 0};
static const double latencies[LATENCIES] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                            0.01,   0.025,   0.05,   0.1,   0.5,    2.5};
static const int64_t batches[BATCHES] = {1, 2, 4, 8, 16, 32, 64, 128, 256};

void metrics_answered(metrics *m, int code, double seconds)
{
    int i = 0;
    while (codes[i] != code && codes[i] != 0)
        i++;
    m->codes[i]++;
    i = 0;
    while (i < LATENCIES && seconds > latencies[i])
        i++;
    m->latency[i]++;
    m->latency_us += (uint64_t)(1e6 * seconds);
}

void metrics_batch(metrics *m, int64_t rows)
{
    int i = 0;
    while (i < BATCHES && rows > batches[i])
        i++;
    m->batch[i]++;
    m->batch_rows += (uint64_t)rows;
}

enum { ROOM = 8192 };

typedef struct text {
    char *at;
    size_t n;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at + t->n, ROOM - t->n, format, args);
    va_end(args);
    t->n = n < 0 || t->n + (size_t)n >= ROOM ? ROOM - 1 : t->n + (size_t)n;
}

static long resident_bytes(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%*s %ld", &pages) != 1)
        pages = 0;
    if (f != NULL)
        fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

static void gauge(text *t, const char *name, long long value)
{
    put(t, "# TYPE deepc_%s gauge\ndeepc_%s %lld\n", name, name, value);
}

char *metrics_text(metrics *m, size_t *n)
{
    text t = {malloc(ROOM), 0};
    uint64_t sum = 0;
    if (t.at == NULL)
        return NULL;
    put(&t, "# TYPE deepc_requests_total counter\n");
    for (int i = 0; codes[i] != 0; i++)
        put(&t, "deepc_requests_total{code=\"%d\"} %" PRIu64 "\n", codes[i], m->codes[i]);
    put(&t, "# TYPE deepc_request_seconds histogram\n");
    for (int i = 0; i < LATENCIES; i++)
        put(&t, "deepc_request_seconds_bucket{le=\"%g\"} %" PRIu64 "\n", latencies[i],
            sum += m->latency[i]);
    sum += m->latency[LATENCIES];
    put(&t, "deepc_request_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", sum);
    put(&t, "deepc_request_seconds_sum %.6f\n", 1e-6 * (double)m->latency_us);
    put(&t, "deepc_request_seconds_count %" PRIu64 "\n", sum);
    put(&t, "# TYPE deepc_batch_rows histogram\n");
    sum = 0;
    for (int i = 0; i < BATCHES; i++)
        put(&t, "deepc_batch_rows_bucket{le=\"%d\"} %" PRIu64 "\n", (int)batches[i],
            sum += m->batch[i]);
    sum += m->batch[BATCHES];
    put(&t, "deepc_batch_rows_bucket{le=\"+Inf\"} %" PRIu64 "\n", sum);
    put(&t, "deepc_batch_rows_sum %" PRIu64 "\ndeepc_batch_rows_count %" PRIu64 "\n", m->batch_rows,
        sum);
    put(&t, "# TYPE deepc_received_bytes_total counter\ndeepc_received_bytes_total %" PRIu64 "\n",
        m->bytes_in);
    gauge(&t, "queue_length", m->waiting);
    gauge(&t, "requests_open", m->open);
    gauge(&t, "connections", m->connections);
    gauge(&t, "resident_bytes", resident_bytes());
    *n = t.n;
    return t.at;
}
