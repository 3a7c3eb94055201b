/*
 * The device cpu:cc (backends/cpu/cc.h): kernels of random graphs, many of them in one program and
 * sanitized where the test is, against the interpreter of the nest form; then what happens when the
 * compiler is absent, refuses, dies or lies, and that nothing stays behind.
 *
 *   test_cc [seed [graphs]]
 */
#define _XOPEN_SOURCE 700 /* mkdtemp, fork */
#include "backends/cpu/cc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/graph_kernels.h"

#define ENTRY(name) \
    "void " name "(void *const *buf, const void *b, void *s, long begin, long end)\n"

enum { GRAPHS_OF_A_PROGRAM = 12, THREADS = 4 };

typedef void kernel_fn(void *const *buf, const void *block, void *scratch, int64_t begin,
                       int64_t end);

typedef struct built {
    dc_status status;
    char words[600];
    void *library;
    kernel_fn *entry;
} built;

static int64_t seconds = 600; /* that a compiler may take */
static atomic_bool cancelled;

/* One kernel, by a job of its own. Everything temporary lies in `folder`. */
static built build(const char *command, const char *folder, const char *text, const char *name)
{
    dc_opts opt = {.compile_seconds = seconds};
    dc_job j;
    dc_cc cc = {.march = "x86-64"};
    built b = {0};
    void *entry = NULL;
    const dc_source src = {text, "c11", &name, 1};
    snprintf(cc.command, sizeof cc.command, "%s", command);
    snprintf(cc.folder, sizeof cc.folder, "%s", folder);
    dc_job_init(&j, &opt, NULL);
    j.cancel = &cancelled;
    b.status = dc_cc_compile(&cc, &j, &src, &entry, &b.library);
    memcpy(&b.entry, &entry, sizeof entry);
    dc_err_render(&j.err, 1, b.words, sizeof b.words);
    dc_job_fini(&j);
    return b;
}

/* A folder of one's own, and that it is as empty at the end as it was. */
static void make_folder(char *path)
{
    strcpy(path, "/tmp/deepc-test-XXXXXX");
    CHECK(mkdtemp(path) != NULL);
}

static void check_empty(const char *path)
{
    CHECK(rmdir(path) == 0);
}

/* Is there a compiler at all? */
static bool have_cc(void)
{
    char line[300];
    return dc_cc_probe("cc", line, sizeof line);
}

static void expect(const char *command, const char *text, dc_status status, const char *words)
{
    char folder[40];
    make_folder(folder);
    const built b = build(command, folder, text, "k");
    CHECK_EQ(b.status, status);
    if (!CHECK(strstr(b.words, words) != NULL))
        printf("    %s\n", b.words);
    dc_cc_unload(b.library);
    check_empty(folder);
}

static const char adds_one[] = ENTRY("k") "{\n"
                                          "    for (long i = begin; i < end; i++)\n"
                                          "        ((int *)buf[0])[i] += 1;\n"
                                          "}\n";

static void test_failures(void)
{
    char folder[40], script[60];
    expect("no-such-compiler -O1", adds_one, DC_E_DEVICE, "'no-such-compiler' cannot be run");
    expect("", adds_one, have_cc() ? DC_OK : DC_E_DEVICE, "");
    expect("false", adds_one, DC_E_BUILD, "no reason given");
    expect("true", adds_one, DC_E_BUILD, "cannot be opened");
    const built b = build("cc", "/nowhere/at/all", adds_one, "k");
    CHECK_EQ(b.status, DC_E_DEVICE);
    CHECK(strstr(b.words, "no temporary folder in /nowhere/at/all") != NULL);

    make_folder(folder); /* a compiler that is killed */
    snprintf(script, sizeof script, "%s/dies", folder);
    FILE *f = fopen(script, "w");
    fputs("#!/bin/sh\nkill -9 $$\n", f);
    fclose(f);
    chmod(script, 0700);
    expect(script, adds_one, DC_E_BUILD, "was ended by signal 9");
    unlink(script);
    check_empty(folder);
}

static void test_words(void)
{
    expect("cc", "int good;\nint bad = ;\n", DC_E_BUILD, "k.c:2:11: error: expected expression");
    expect("cc", "int k(void);", DC_E_BUILD, "the text has no kernel 'k'");
    expect("cc -DEXPECTED=3",
           "#if EXPECTED != 3\n#error \"other options\"\n#endif\n" ENTRY("k") "{}", DC_OK, "");
    expect("cc -no-such-option", adds_one, DC_E_BUILD, "no-such-option");
}

/* A compiler of the test's own: a script in a folder. */
static void expect_script(const char *lines, const char *text, dc_status status, const char *words)
{
    char folder[40], script[60];
    make_folder(folder);
    snprintf(script, sizeof script, "%s/mine", folder);
    FILE *f = fopen(script, "w");
    fprintf(f, "#!/bin/sh\n%s\n", lines);
    fclose(f);
    chmod(script, 0700);
    expect(script, text, status, words);
    unlink(script);
    check_empty(folder);
}

/* The compiler and what it has started are gone: what they would have made is never there. */
static void expect_ended(const char *words, dc_status status)
{
    char folder[40], late[60], lines[200];
    make_folder(folder);
    snprintf(late, sizeof late, "%s/late", folder);
    snprintf(lines, sizeof lines, "(sleep 3; touch %s) &\nsleep 600", late);
    const uint64_t begun = dc_clock_ns();
    expect_script(lines, adds_one, status, words);
    CHECK(dc_clock_ns() - begun < (uint64_t)60 * 1000000000);
    sleep(4);
    CHECK(access(late, F_OK) != 0);
    check_empty(folder);
}

static void test_hanging(void)
{
    seconds = 1;
    expect_ended("did not end within 1 s, so it was ended and is not started again", DC_E_BUILD);
    seconds = 600;
    atomic_store(&cancelled, true);
    expect_ended("no longer wanted", DC_E_STATE);
    atomic_store(&cancelled, false);
}

static void test_talkative(void)
{
    expect_script("yes 'a warning' | head -c 5000000 >&2; exec cc \"$@\"", adds_one, DC_OK, "");
    expect_script("yes 'a warning' | head -c 5000000 >&2; exit 3", adds_one, DC_E_BUILD,
                  "refuses a kernel: a warning");
}

/* The host does not want to hear of its children: nor do we hear then how they ended. */
static void test_ignored_children(void)
{
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    char line[300];
    expect("cc", adds_one, DC_OK, "");
    expect("cc", "int bad = ;\n", DC_E_BUILD, "expected expression");
    expect("true", adds_one, DC_E_BUILD, "");
    CHECK(dc_cc_probe("cc", line, sizeof line) && strncmp(line, "cc: ", 4) == 0);
    CHECK(!dc_cc_probe("no-such-compiler", line, sizeof line));
    /* A compiler that waits for processes of its own finds it as usual. */
    expect_script(
        "trap | grep CHLD && exit 1; grep -q '^SigIgn:.*0000$' /proc/self/status || exit 1\n"
        "exec cc \"$@\"",
        adds_one, DC_OK, "");
    signal(SIGCHLD, before);
}

/* The disk is full as soon as there is something to write. */
static void test_full(void)
{
    const struct rlimit none = {0, RLIM_INFINITY};
    struct rlimit before;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0 && setrlimit(RLIMIT_FSIZE, &none) == 0);
    expect("cc", adds_one, DC_E_DEVICE, "k.c: File too large");
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    signal(SIGXFSZ, handler);
}

static int open_files(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* However it ends: no open file stays, no process. */
static void test_nothing_stays(void)
{
    char line[300];
    const int files = open_files();
    for (int n = 0; n < 50; n++) {
        expect("false", adds_one, DC_E_BUILD, "");
        expect("true", adds_one, DC_E_BUILD, "");
        expect("no-such-compiler", adds_one, DC_E_DEVICE, "");
        dc_cc_probe("true", line, sizeof line);
    }
    for (int n = 0; n < 5; n++)
        expect("cc", n % 2 ? adds_one : "int k(void);", n % 2 ? DC_OK : DC_E_BUILD, "");
    CHECK_EQ(open_files(), files);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void *compile_often(void *arg)
{
    const char *folder = arg;
    char *right = NULL;
    for (int n = 0; n < 2; n++) {
        int x[3] = {1, 2, 3};
        built b = build("cc", folder, adds_one, "k");
        if (b.status != DC_OK)
            return right;
        b.entry((void *[]){x}, NULL, NULL, 1, 3);
        dc_cc_unload(b.library);
        if (x[0] != 1 || x[1] != 3 || x[2] != 4)
            return right;
    }
    return arg;
}

static void test_threads(void)
{
    char folder[40];
    pthread_t thread[THREADS];
    make_folder(folder);
    for (int n = 0; n < THREADS; n++)
        CHECK(pthread_create(&thread[n], NULL, compile_often, folder) == 0);
    for (int n = 0; n < THREADS; n++) {
        void *right = NULL;
        CHECK(pthread_join(thread[n], &right) == 0);
        CHECK(right == folder);
    }
    check_empty(folder);
}

/* That a sanitized kernel is one: what it does outside of its buffer ends the process. */
static void test_sanitizer(void)
{
#ifdef __SANITIZE_ADDRESS__
    const pid_t pid = fork();
    if (pid == 0) {
        int *x = malloc(4 * sizeof *x);
        const built b = build("cc -fsanitize=address", "/tmp", adds_one, "k");
        if (b.status != DC_OK)
            _exit(0);
        dup2(open("/dev/null", O_WRONLY), 2);
        b.entry((void *[]){x}, NULL, NULL, 4, 5);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0));
#endif
}

static void see(void *ctx, const char *name, bool usable, const char *line)
{
    if (strcmp(name, "cpu:cc") == 0)
        snprintf(ctx, 400, "%d %s", usable, line);
}

static void test_device(void)
{
    runner r;
    char line[400] = "";
    if (!runner_open_on(&r, "cpu:cc"))
        return;
    const dc_target *t = r.device->ops->target(r.device);
    CHECK_STR(r.device->ops->name, "cpu:cc");
    CHECK_STR(t->dialect, "c11");
    CHECK(strncmp(t->name, "cpu:cc ", 7) == 0);
    const dc_source src = {"define", "llvm", NULL, 0};
    CHECK_EQ(r.device->ops->compile(r.device, &r.job, &src, &r.program), DC_E_BUILD);
    strcpy(r.opt.cc, "cc");
    dc_backend_list(&r.opt, see, line);
    CHECK(strncmp(line, have_cc() ? "1 cc: " : "0 no C compiler", 6) == 0);
    strcpy(r.opt.cc, "no-such-compiler");
    dc_backend_list(&r.opt, see, line);
    CHECK(strncmp(line, "0 no C compiler 'no-such-compiler'", 34) == 0);
    runner_close(&r);
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 1);
    const uint64_t graphs = argc > 2 ? strtoull(argv[2], NULL, 0) : 24;
    test_failures();
    test_full();
    test_device();
    if (have_cc()) {
        test_words();
        test_talkative();
        test_hanging();
        test_ignored_children();
        test_nothing_stays();
        test_threads();
        test_sanitizer();
    } else {
        T_SKIP("no C compiler 'cc'");
    }
    graph_kernels("cpu:cc", seed, graphs, GRAPHS_OF_A_PROGRAM);
    return t_done();
}
