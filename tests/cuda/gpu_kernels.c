/*
 * What kernels need of a GPU, from the files that DEEPC_DUMP writes (scripts/gpu-kernels):
 *
 *   gpu_kernels table DIR < LIST     a row of a table for each kernel
 *   gpu_kernels check DIR < LIST     LIST's limits are held
 *
 * LIST has lines of a number, a section, a title and limits (gpu_kernels.lua); the kernels of a line are the files of
 * DIR/NUMBER. Registers are those that NVIDIA's NVRTC takes. Traffic is counted by the stand-in for the driver
 * on SAMPLE blocks from the middle of the grid, at the full size.
 */
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/cubin.h"
#include "tests/cuda/measure.h"

enum { SAMPLE = 2, MOST_SECONDS = 30, MOST_KERNELS = 100, NO_LIBRARY = 77 };

typedef struct parameter {
    char type[16];
    bool in;
    size_t bytes, count;
} parameter;

/* A kernel as its file tells it. */
typedef struct dumped {
    char *file, *body; /* the text of CUDA begins at `text`, its entry at `body` */
    const char *text;
    char name[64];
    int sm, units;
    long grid;
    int threads;
    unsigned dynamic; /* bytes of shared memory that the launch brings */
    unsigned n;
    parameter p[MEASURE_MOST];
} dumped;

typedef struct accesses {
    uint64_t requests, units, least, bytes;
} accesses;

/* Sums over the accesses of a launch. */
typedef struct traffic {
    bool known;
    accesses load, store, shared;
} traffic;

typedef struct row {
    dumped k;
    cubin_kernel needs;
    traffic t;
    int blocks; /* of a multiprocessor */
    long sample;
} row;

/* Files ----------------------------------------------------------------------------------------- */

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char *s = NULL;
    size_t n = 0;
    if (f == NULL)
        return NULL;
    for (size_t got = 1; got > 0;) {
        s = realloc(s, n + (1 << 20) + 1);
        got = fread(s + n, 1, 1 << 20, f);
        n += got;
    }
    s[n] = '\0';
    fclose(f);
    return s;
}

static size_t bytes_of(const char *type)
{
    const char *digits = type + strcspn(type, "0123456789");
    return *digits != '\0' ? strtoul(digits, NULL, 10) / 8 : 1;
}

static void note_parameter(dumped *k, unsigned number, const parameter *x)
{
    if (x->bytes > k->p[number].bytes) /* kernels in one may share it */
        k->p[number] = *x;
    if (number >= k->n)
        k->n = number + 1;
}

/*
 * Lines such as `const f32 *const b1 = (const f32 *)at(base, p0); / * x0, 1024 * /`; of a table
 * `at(base, p.at[4 + 2 * row0]); / * x0, 1024, 3 rows * /`.
 */
static bool read_parameters(dumped *k)
{
    for (const char *at = k->body; (at = strstr(at, ")at(base, p")) != NULL; at++) {
        const char *line = at, *note = strstr(at, "/* ");
        unsigned number, step = 0, rows = 1;
        parameter x = {.in = false};
        while (line > k->body && line[-1] != '\n')
            line--;
        line += strspn(line, " ");
        x.in = strncmp(line, "const ", 6) == 0;
        if ((sscanf(at, ")at(base, p%u", &number) != 1 &&
             sscanf(at, ")at(base, p.at[%u + %u", &number, &step) < 1) ||
            note == NULL || sscanf(line + (x.in ? 6 : 0), "%15s", x.type) != 1 ||
            sscanf(note, "/* %*[^,], %zu, %u rows", &x.count, &rows) < 1 ||
            number + (size_t)step * (rows - 1) >= MEASURE_MOST)
            return false;
        x.bytes = x.count * bytes_of(x.type);
        for (unsigned r = 0; r < rows; r++)
            note_parameter(k, number + step * r, &x);
    }
    return k->n > 0;
}

static bool read_dump(const char *path, dumped *k)
{
    static const char entry[] = "extern \"C\" __global__";
    *k = (dumped){.file = read_file(path)};
    if (k->file == NULL || sscanf(k->file, "%63s for cuda sm_%d %d, positions %ld, threads %d",
                                  k->name, &k->sm, &k->units, &k->grid, &k->threads) != 5)
        return false;
    k->text = strstr(k->file, "\n==== cuda\n");
    if (k->text == NULL || (k->body = strstr(k->text, entry)) == NULL)
        return false;
    k->text += strlen("\n==== cuda\n");
    const char *name = strstr(k->body, "__launch_bounds__("), *shared = strstr(k->body, "SHARED_D");
    if (shared != NULL && sscanf(shared, "SHARED_DYNAMIC(shared); /* %u", &k->dynamic) != 1)
        return false;
    return name != NULL && sscanf(name, "__launch_bounds__(%*d) %63[A-Za-z0-9_]", k->name) == 1 &&
           read_parameters(k);
}

/* Traffic --------------------------------------------------------------------------------------- */

static const dumped *measured_one;

/* Whole numbers are positions of something: small ones that differ. Floats stay what they are. */
static bool positions(unsigned p, CUdeviceptr at, size_t bytes)
{
    const parameter *x = &measured_one->p[p];
    int32_t *a;
    if (strcmp(x->type, "i32") != 0)
        return true;
    a = malloc(bytes);
    for (size_t i = 0; i < x->count; i++)
        a[i] = (int32_t)(i * 7919 % 97);
    const bool ok = cuMemcpyHtoD_v2(at, a, bytes) == CUDA_SUCCESS;
    free(a);
    return ok;
}

/* The text with its blocks counted from the middle of the grid. */
static char *from_the_middle(const dumped *k, long sample)
{
    static const char block[] = "blockIdx.x";
    const size_t room = strlen(k->text) * 4;
    char *text = malloc(room), *to = text + (k->body - k->text);
    const char *from = k->body;
    memcpy(text, k->text, (size_t)(k->body - k->text));
    for (const char *at; (at = strstr(from, block)) != NULL; from = at + strlen(block))
        to += snprintf(to, room - (size_t)(to - text), "%.*s(%s + %ld)", (int)(at - from), from,
                       block, (k->grid - sample) / 2);
    snprintf(to, room - (size_t)(to - text), "%s", from);
    return text;
}

/* Four bytes of each lane are a pass: a vector takes several, though lanes may share what they read. */
static uint64_t least_passes(const cuda_traffic *r)
{
    const uint64_t lanes = r->requests * r->bytes / 4, fit = r->units < lanes ? r->units : lanes;
    return r->least > fit ? r->least : fit;
}

static void add_access(accesses *a, const cuda_traffic *r, uint64_t least)
{
    a->requests += r->requests;
    a->bytes += r->bytes * r->requests;
    a->units += r->units;
    a->least += least;
}

static void add_traffic(traffic *t, const measured *m)
{
    for (size_t i = 0; i < m->n; i++) {
        const cuda_traffic *r = &m->row[i];
        if (r->shared)
            add_access(&t->shared, r, least_passes(r));
        else
            add_access(r->store ? &t->store : &t->load, r, r->least);
    }
    t->known = true;
}

static void count_traffic(const dumped *k, long sample, int to)
{
    size_t bytes[MEASURE_MOST];
    traffic t = {0};
    measured m;
    measured_one = k;
    dup2(STDERR_FILENO, STDOUT_FILENO); /* what is wrong is no part of the table */
    for (unsigned p = 0; p < k->n; p++)
        bytes[p] = k->p[p].bytes;
    char *text = from_the_middle(k, sample);
    alarm(MOST_SECONDS);
    if (measure_with(text, k->name, (unsigned)sample, (unsigned)k->threads, k->dynamic, k->n, bytes,
                     positions, &m))
        add_traffic(&t, &m);
    fflush(stdout);
    if (write(to, &t, sizeof t) != sizeof t)
        _exit(1);
    _exit(0);
}

/* In a process of its own: a kernel that takes too long, or is wrong, leaves the counts unknown. */
static void take_traffic(row *r)
{
    int end[2];
    r->sample = r->k.grid < SAMPLE ? r->k.grid : SAMPLE;
    fflush(stdout);
    if (pipe(end) != 0)
        return;
    const pid_t child = fork();
    if (child == 0)
        count_traffic(&r->k, r->sample, end[1]);
    close(end[1]);
    if (read(end[0], &r->t, sizeof r->t) != sizeof r->t)
        r->t.known = false;
    close(end[0]);
    waitpid(child, NULL, 0);
}

/* Kernels --------------------------------------------------------------------------------------- */

/* By the program beside this one, to whose input the text goes; 77: there is no NVRTC. */
static int take_needs(const char *program, row *r)
{
    char command[1024], answer[] = "/tmp/deepc-resources-XXXXXX";
    const int fd = mkstemp(answer);
    if (fd < 0)
        return 1;
    snprintf(command, sizeof command, "LD_LIBRARY_PATH= '%s' sm_%d%s %s >%s", program, r->k.sm,
             r->k.sm >= 90 ? "a" : "", r->k.name, answer);
    FILE *to = popen(command, "w");
    if (to != NULL)
        fputs(r->k.text, to);
    const int status = to != NULL ? pclose(to) : 1;
    FILE *from = fdopen(fd, "r");
    const bool ok =
        fscanf(from, "%d %zu %zu", &r->needs.registers, &r->needs.local, &r->needs.shared) == 3;
    fclose(from);
    unlink(answer);
    r->blocks = ok ? cubin_blocks(r->k.sm, &r->needs, r->k.threads, r->k.dynamic) : 0;
    r->needs.shared += r->k.dynamic;
    return ok ? 0 : WEXITSTATUS(status);
}

static double ratio(uint64_t a, uint64_t b)
{
    return b > 0 ? (double)a / (double)b : 0;
}

static void print_ratio(uint64_t a, uint64_t b)
{
    if (b > 0)
        printf(" %.2f |", (double)a / (double)b);
    else
        printf(" |");
}

/* How often the launch reads what it is given, if all blocks read as the sample does. */
static double times_read(const row *r)
{
    size_t in = 0;
    for (unsigned p = 0; p < r->k.n; p++)
        in += r->k.p[p].in ? r->k.p[p].bytes : 0;
    return in == 0 ? 0
                   : 32.0 * (double)r->t.load.units * (double)r->k.grid / (double)r->sample /
                         (double)in;
}

static void print_parts(const row *r)
{
    static const char *const parts[][2] = {{"mma_m", "mma"},         {"wgmma(", "wgmma"},
                                           {"cp_async", "cp.async"}, {"__shfl", "shuffles"},
                                           {"__shared__", "shared"}, {"SHARED_DYNAMIC", "shared"}};
    const char *comma = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(r->k.body, parts[i][0]) != NULL) {
            printf("%s%s", comma, parts[i][1]);
            comma = ", ";
        }
}

/* Elements stored for each thread. */
static double results_each(const row *r)
{
    size_t results = 0;
    for (unsigned p = 0; p < r->k.n; p++)
        results += r->k.p[p].in ? 0 : r->k.p[p].count;
    return (double)results / ((double)r->k.grid * r->k.threads);
}

static void print_row(const row *r)
{
    const int warps = r->blocks * ((r->k.threads + 31) / 32);
    printf("| %s | ", r->k.name);
    print_parts(r);
    printf(" | %ld | %d | %.3g | %d | %zu | %zu | %d | %.2g |", r->k.grid, r->k.threads,
           results_each(r), r->needs.registers, r->needs.local, r->needs.shared, warps,
           r->blocks > 0 ? (double)r->k.grid / (double)r->blocks / r->k.units : 0.0);
    if (!r->t.known) {
        printf(" ? | ? | ? | ? | ? |\n");
        return;
    }
    print_ratio(r->t.load.bytes, r->t.load.requests);
    print_ratio(r->t.load.units, r->t.load.least);
    print_ratio(r->t.store.units, r->t.store.least);
    print_ratio(r->t.shared.units, r->t.shared.least);
    printf(" %.3g |\n", times_read(r));
}

/* Of the multiprocessors that have no group. */
static double idle_share(const row *r)
{
    return r->k.grid < r->k.units ? 1.0 - (double)r->k.grid / r->k.units : 0.0;
}

/* Limits: WORD=MOST of each. */
static void check_limits(const row *r, const char *limits)
{
    const struct {
        const char *word;
        double is;
    } known[] = {{"local", (double)r->needs.local},
                 {"registers", r->needs.registers},
                 {"shared", (double)r->needs.shared},
                 {"loads", ratio(r->t.load.units, r->t.load.least)},
                 {"stores", ratio(r->t.store.units, r->t.store.least)},
                 {"banks", ratio(r->t.shared.units, r->t.shared.least)},
                 {"read", times_read(r)},
                 {"each", results_each(r)},
                 {"idle", idle_share(r)},
                 {"mma", strstr(r->k.body, "mma_m") != NULL}};
    char word[16];
    double most;
    int n;
    for (; sscanf(limits, " %15[a-z]=%lf%n", word, &most, &n) == 2; limits += n) {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(known[i].word, word) != 0)
            i++;
        if (CHECK(i < sizeof known / sizeof *known) && !CHECK(known[i].is <= most))
            printf("    %s for sm_%d: %s is %g\n", r->k.name, r->k.sm, word, known[i].is);
    }
    CHECK(limits[strspn(limits, " ")] == '\0');
}

/* Lists ----------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static size_t files_of(const char *folder, char name[MOST_KERNELS][256])
{
    size_t n = 0;
    DIR *d = opendir(folder);
    if (d == NULL)
        return 0;
    for (struct dirent *e; n < MOST_KERNELS && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            snprintf(name[n++], sizeof name[0], "%s", e->d_name);
    closedir(d);
    qsort(name, n, sizeof name[0], by_name);
    return n;
}

/* False: there is no NVRTC. */
static bool each_kernel(const char *program, const char *folder, const char *limits)
{
    static char name[MOST_KERNELS][256];
    const size_t files = files_of(folder, name);
    int status = 0;
    CHECK(files > 0);
    for (size_t i = 0; i < files && status != NO_LIBRARY; i++) {
        char path[1024];
        row r = {.sample = 0};
        snprintf(path, sizeof path, "%s/%s", folder, name[i]);
        if (!CHECK(read_dump(path, &r.k))) {
            printf("    %s\n", path);
        } else if ((status = take_needs(program, &r)) == 0) {
            take_traffic(&r);
            if (limits == NULL)
                print_row(&r);
            else if (CHECK(r.t.known))
                check_limits(&r, limits);
        } else if (status != NO_LIBRARY) {
            CHECK_EQ(status, 0);
        }
        free(r.k.file);
    }
    return status != NO_LIBRARY;
}

static void print_head(void)
{
    printf(
        "\n| kernel | with | grid | threads | results each | registers | local | shared | warps | "
        "waves | load bytes | loads | stores | banks | read |\n"
        "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: "
        "|\n");
}

int main(int argc, char **argv)
{
    static char line[4096], before[256], program[512];
    const bool table = argc == 3 && strcmp(argv[1], "table") == 0;
    if (argc != 3 || (!table && strcmp(argv[1], "check") != 0)) {
        fprintf(stderr, "usage: gpu_kernels table|check DIR < LIST\n");
        return 2;
    }
    const char *slash = strrchr(argv[0], '/');
    snprintf(program, sizeof program, "%.*sresources",
             slash != NULL ? (int)(slash + 1 - argv[0]) : 0, argv[0]);
    if (!have_compiler())
        return t_done();
    cuda_standin_set("WRONG", "report");
    cuda_standin_set("TRAFFIC", "1");
    while (fgets(line, sizeof line, stdin) != NULL) {
        char section[256], title[256], limits[256] = "", folder[512];
        int number;
        if (!CHECK(sscanf(line, "%d\t%255[^\t]\t%255[^\t\n]\t%255[^\n]", &number, section, title,
                          limits) >= 3))
            continue;
        snprintf(folder, sizeof folder, "%s/%d", argv[2], number);
        if (table && strcmp(section, before) != 0) {
            printf("\n### %s\n", section);
            print_head();
            strcpy(before, section);
        }
        if (table)
            printf("| **%s** | | | | | | | | | | | | | | |\n", title);
        if (!each_kernel(program, folder, table ? NULL : limits)) {
            T_SKIP("no NVRTC library of NVIDIA's: registers of kernels are not known");
            break;
        }
    }
    return table ? t_failed > 0 : t_done();
}
