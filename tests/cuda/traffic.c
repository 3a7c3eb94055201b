/*
 * What the memory accesses of a CUDA text cost, a line for each place:
 *
 *   traffic FILE.cu ENTRY GRID THREADS[+DYNAMIC] BYTES...     a size for each parameter
 */
#include "tests/cuda/measure.h"

int main(int argc, char **argv)
{
    static char text[1 << 20];
    size_t bytes[MEASURE_MOST];
    measured m;
    if (argc < 6 || argc - 5 > MEASURE_MOST) {
        fprintf(stderr, "usage: traffic FILE.cu ENTRY GRID THREADS[+DYNAMIC] BYTES...\n");
        return 2;
    }
    FILE *f = fopen(argv[1], "r");
    if (f == NULL || fread(text, 1, sizeof text - 1, f) == 0) {
        fprintf(stderr, "traffic: %s cannot be read\n", argv[1]);
        return 2;
    }
    fclose(f);
    for (int i = 5; i < argc; i++)
        bytes[i - 5] = strtoull(argv[i], NULL, 0);
    const char *plus = strchr(argv[4], '+');
    cuda_standin_set("WRONG", "report");
    cuda_standin_set("TRAFFIC", "1");
    if (!measure(
            text, argv[2], (unsigned)strtoul(argv[3], NULL, 0), (unsigned)strtoul(argv[4], NULL, 0),
            plus != NULL ? (unsigned)strtoul(plus + 1, NULL, 0) : 0, (unsigned)argc - 5, bytes, &m))
        return 1;
    printf("%6s  %-6s %-5s %5s %10s %8s %8s  %s\n", "line", "memory", "", "bytes", "requests",
           "each", "least", "");
    for (size_t i = 0; i < m.n; i++) {
        const cuda_traffic *t = &m.row[i];
        printf("%6d  %-6s %-5s %5u %10lu %8.2f %8.2f  %s\n", t->line,
               t->shared ? "shared" : "global", t->store ? "store" : "load", t->bytes,
               (unsigned long)t->requests, (double)t->units / (double)t->requests,
               (double)t->least / (double)t->requests, t->shared ? "passes" : "sectors");
    }
    return 0;
}
