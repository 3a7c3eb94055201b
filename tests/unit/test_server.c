/*
 * LLVM in a process of its own (backends/cpu/server.h). This program is the server too: with
 * --compile-server as its first argument it compiles, or behaves as the variable FAKE says. Whatever a server
 * does, its host gets an object or a sentence in time, and neither a process nor a descriptor stays.
 */
#define _GNU_SOURCE
#include "backends/cpu/loader.h"
#include "backends/cpu/server.h"
#include "backends/cpu/toolchain.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/t.h"

enum { THREADS = 4, ROUNDS = 60 };

static const char good[] = "define i32 @entry0() {\n  ret i32 7\n}\n";
static const char bad[] = "define void @entry0() {\n  %x = fadd i32 1, 2\n  ret void\n}\n";

/* ---- the other side -------------------------------------------------------------------------- */

static void read_request(void)
{
    dc_server_head head;
    static char text[1 << 16];
    recv(0, &head, sizeof head, MSG_WAITALL);
    recv(0, text, head.bytes < sizeof text ? head.bytes : sizeof text, MSG_WAITALL);
}

static void say(uint64_t magic, uint32_t kind, uint64_t bytes, size_t given)
{
    static const char rest[64] = "not what was promised";
    const dc_server_head head = {.magic = magic, .kind = kind, .bytes = bytes};
    send(0, &head, sizeof head, MSG_NOSIGNAL);
    send(0, rest, given, MSG_NOSIGNAL);
}

static int fake(const char *how)
{
    if (strcmp(how, "deaf") == 0)
        pause();
    if (strcmp(how, "early") == 0)
        return 3;
    read_request();
    if (strcmp(how, "hangs") == 0)
        pause();
    if (strcmp(how, "crashes") == 0)
        raise(SIGKILL);
    if (strcmp(how, "garbage") == 0)
        send(0, "LLVM ERROR: this is no answer at all, and long", 46, MSG_NOSIGNAL);
    if (strcmp(how, "kind") == 0)
        say(DC_SERVER_MAGIC, 99, 4, 4);
    if (strcmp(how, "huge") == 0)
        say(DC_SERVER_MAGIC, DC_SERVER_OBJECT, UINT64_MAX, 64);
    if (strcmp(how, "half") == 0)
        say(DC_SERVER_MAGIC, DC_SERVER_OBJECT, 64, 20);
    if (strcmp(how, "stalls") == 0) {
        say(DC_SERVER_MAGIC, DC_SERVER_OBJECT, 64, 20);
        pause();
    }
    if (strcmp(how, "lies") == 0) {
        say(DC_SERVER_MAGIC, DC_SERVER_OBJECT, 64, 64);
        pause();
    }
    return 4;
}

static int serve(int argc, char **argv)
{
    const char *how = getenv("FAKE"), *limit = getenv("LIMIT_MIB");
    if (how != NULL)
        return fake(how);
    if (limit != NULL) {
        const rlim_t bytes = (rlim_t)atol(limit) << 20;
        setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    }
    return dc_server_main(argc - 2, argv + 2);
}

/* ---- this side ------------------------------------------------------------------------------- */

static char self[4096];
static int64_t seconds = 60;
static atomic_bool cancelled;

static const dc_llvm_conf conf = {
    .path = "", .triple = "x86_64-pc-linux-gnu", .features = "", .level = 1};

static int count_descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static bool has_children(void)
{
    return waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD;
}

static dc_servers *open_servers(void)
{
    const dc_opts opt = {0};
    dc_job j;
    dc_servers *s = NULL;
    dc_job_init(&j, &opt, NULL);
    CHECK_EQ(dc_servers_open(&j, &conf, self, &s), DC_OK);
    dc_job_fini(&j);
    return s;
}

typedef struct answer {
    dc_servers *from;
    dc_status status;
    int value; /* of the function that was made */
    char words[600];
} answer;

static const char *text_to_compile;

static dc_status compile_and_run(dc_job *j, void *arg)
{
    static const char *const entry[] = {"entry0"};
    answer *a = arg;
    const void *object;
    size_t bytes;
    dc_image *image;
    int (*made)(void);
    DC_TRY(dc_servers_compile(a->from, j, text_to_compile, &object, &bytes));
    DC_TRY(dc_loader_load(j, object, bytes, entry, 1, &image));
    memcpy(&made, &image->entry[0], sizeof made);
    a->value = made();
    dc_loader_unload(image);
    return DC_OK;
}

static void *compile_on_thread(void *arg)
{
    answer *a = arg;
    const dc_opts opt = {.compile_seconds = seconds};
    dc_job j;
    dc_job_init(&j, &opt, NULL);
    j.cancel = &cancelled;
    a->status = dc_protect(&j, compile_and_run, a);
    dc_err_render(&j.err, 1, a->words, sizeof a->words);
    dc_job_fini(&j);
    return NULL;
}

static answer compile(dc_servers *s, const char *text)
{
    answer a = {.from = s};
    text_to_compile = text;
    compile_on_thread(&a);
    return a;
}

static void expect_good(dc_servers *s)
{
    const answer a = compile(s, good);
    if (!CHECK_EQ(a.status, DC_OK))
        printf("    %s\n", a.words);
    CHECK_EQ(a.value, 7);
}

static void expect_refused(dc_servers *s, const char *text, const char *words)
{
    const answer a = compile(s, text);
    CHECK_EQ(a.status, DC_E_BUILD);
    if (!CHECK(strstr(a.words, words) != NULL))
        printf("    '%s', not '%s'\n", a.words, words);
}

/* With nothing left behind. */
static void close_servers(dc_servers *s, int descriptors)
{
    dc_servers_close(s);
    CHECK(!has_children());
    CHECK_EQ(count_descriptors(), descriptors);
}

static pid_t child_of_ours(void)
{
    int pid = 0;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "r");
    if (f != NULL && fscanf(f, "%d", &pid) != 1)
        pid = 0;
    if (f != NULL)
        fclose(f);
    return pid;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_answers(void)
{
    const int before = count_descriptors();
    dc_servers *s = open_servers();
    CHECK(!has_children()); /* the first kernel starts it */
    expect_good(s);
    const pid_t first = child_of_ours();
    expect_refused(s, bad, "cpu: the compiler cannot read a kernel");
    expect_good(s);
    CHECK(first > 0);
    CHECK_EQ(child_of_ours(), first);
    close_servers(s, before);
}

/* The host waits as long as it wants to, so the text may have any length. */
static void test_long_text(void)
{
    const size_t n = 20u << 20;
    char *text = malloc(n + sizeof good + 1);
    memset(text, ';', n);
    text[n] = '\n';
    strcpy(text + n + 1, good);
    dc_servers *s = open_servers();
    const answer a = compile(s, text);
    CHECK_EQ(a.status, DC_OK);
    CHECK_EQ(a.value, 7);
    dc_servers_close(s);
    free(text);
}

static void test_fakes(void)
{
    static const struct {
        const char *fake, *words;
    } row[] = {
        {"deaf", "did not answer within 1 s and was ended (DEEPC_COMPILE_SECONDS)"},
        {"hangs", "did not answer within 1 s and was ended (DEEPC_COMPILE_SECONDS)"},
        {"stalls", "did not answer within 1 s and was ended (DEEPC_COMPILE_SECONDS)"},
        {"early", "ended with status 3 at a kernel"},
        {"crashes", "was ended by signal 9 at a kernel"},
        {"half", "ended with status 4 at a kernel"},
        {"garbage", "gave an answer that is none"},
        {"kind", "gave an answer that is none"},
        {"huge", "gave an answer that is none"},
    };
    const int before = count_descriptors();
    seconds = 1;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        dc_servers *s = open_servers();
        setenv("FAKE", row[i].fake, 1);
        expect_refused(s, good, row[i].words);
        unsetenv("FAKE");
        CHECK(!has_children());
        seconds = 60;
        expect_good(s); /* a fresh one */
        seconds = 1;
        close_servers(s, before);
    }
    seconds = 60;
    setenv("FAKE", "lies", 1); /* bytes that are no object are the loader's to refuse */
    dc_servers *s = open_servers();
    CHECK_EQ(compile(s, good).status, DC_E_BUILD);
    unsetenv("FAKE");
    close_servers(s, before);
}

static void test_given_up(void)
{
    const int before = count_descriptors();
    dc_servers *s = open_servers();
    setenv("FAKE", "crashes", 1);
    for (int i = 0; i < 4; i++)
        expect_refused(s, good, "was ended by signal 9");
    unsetenv("FAKE");
    expect_refused(s, good, "was lost 4 times and is not started again");
    close_servers(s, before);
}

/* One that ends while it is idle costs nothing. */
static void test_killed_when_idle(void)
{
    const int before = count_descriptors();
    dc_servers *s = open_servers();
    for (int i = 0; i < 6; i++) {
        expect_good(s);
        const pid_t pid = child_of_ours();
        CHECK(pid > 0 && kill(pid, SIGKILL) == 0);
        siginfo_t info;
        waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT); /* it has ended; reaped by its owner */
    }
    expect_good(s);
    close_servers(s, before);
}

/* LLVM gets no memory: fatal for it, a sentence for us. */
static void test_memory(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    T_SKIP("no limit of address space under sanitizers");
#else
    const int before = count_descriptors();
    static const char *const limits[] = {"120", "170", "200", "240"};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        dc_servers *s = open_servers();
        setenv("LIMIT_MIB", limits[i], 1);
        const answer a = compile(s, good);
        unsetenv("LIMIT_MIB");
        CHECK(a.status == DC_OK || a.words[0] != '\0');
        CHECK(i > 0 || a.status == DC_E_DEVICE);
        close_servers(s, before);
    }
#endif
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* MiB: for LLVM itself, what dc_llvm_open wants besides, and the program. */
static const char *room_to_begin(void)
{
    static char mib[24];
    char path[1024];
    struct stat file = {0};
    CHECK(dc_toolchain_find_llvm("", path, sizeof path) && stat(path, &file) == 0);
    snprintf(mib, sizeof mib, "%d", (int)(file.st_size >> 20) + 96 + 45);
    return mib;
}
#endif

/* It begins, and then a malloc fails inside of LLVM, which ends the process. */
static void test_fatal_error(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    T_SKIP("no limit of address space under sanitizers");
#else
    enum { LINES = 80000, LINE = 64 };
    char *text = malloc((LINES + 3) * LINE), *at = text;
    at += sprintf(at, "define float @entry0(<16 x float> %%v0) {\n");
    for (int i = 1; i < LINES; i++)
        at += sprintf(at, "  %%v%d = %s <16 x float> %%v%d, %%v%d\n", i, i % 2 ? "fadd" : "fmul",
                      i - 1, i > 7 ? i - 7 : 0);
    sprintf(at, "  %%r = extractelement <16 x float> %%v%d, i32 0\n  ret float %%r\n}\n",
            LINES - 1);
    const int before = count_descriptors();
    dc_servers *s = open_servers();
    setenv("LIMIT_MIB", room_to_begin(), 1);
    expect_refused(s, text, "the compiler's process was ended by signal");
    unsetenv("LIMIT_MIB");
    expect_good(s);
    close_servers(s, before);
    free(text);
#endif
}

static void test_cancelled(void)
{
    const int before = count_descriptors();
    dc_servers *s = open_servers();
    setenv("FAKE", "hangs", 1);
    atomic_store(&cancelled, true);
    const uint64_t begun = dc_clock_ns();
    const answer a = compile(s, good);
    CHECK(strstr(a.words, "no longer wanted") != NULL);
    CHECK(dc_clock_ns() - begun < 10u * 1000000000u);
    atomic_store(&cancelled, false);
    unsetenv("FAKE");
    expect_good(s); /* what was not wanted does not count as lost */
    close_servers(s, before);
}

static void test_threads(void)
{
    const int before = count_descriptors();
    dc_servers *s = open_servers();
    text_to_compile = good;
    for (int round = 0; round < 5; round++) {
        pthread_t thread[THREADS];
        answer a[THREADS];
        for (int i = 0; i < THREADS; i++) {
            a[i] = (answer){.from = s};
            pthread_create(&thread[i], NULL, compile_on_thread, &a[i]);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(thread[i], NULL);
            CHECK_EQ(a[i].status, DC_OK);
            CHECK_EQ(a[i].value, 7);
        }
    }
    close_servers(s, before);
}

/* A child closes what it has copied; the parent's server lives. */
static void test_fork(void)
{
    const int before = count_descriptors();
    dc_servers *s = open_servers();
    expect_good(s);
    const pid_t server = child_of_ours(), child = fork();
    int status = -1;
    if (child == 0) {
        dc_servers_close(s);
        _exit(count_descriptors() == before ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    expect_good(s);
    CHECK_EQ(child_of_ours(), server);
    close_servers(s, before);
}

/* A host that ignores its children's ends, as daemons do: they reap themselves. */
static void test_ignored_children(void)
{
    const int before = count_descriptors();
    signal(SIGCHLD, SIG_IGN);
    dc_servers *s = open_servers();
    expect_good(s);
    setenv("FAKE", "crashes", 1);
    const pid_t pid = child_of_ours();
    CHECK(pid > 0 && kill(pid, SIGKILL) == 0);
    while (kill(pid, 0) == 0)
        usleep(1000);
    expect_refused(s, good, "the compiler's process is gone at a kernel");
    unsetenv("FAKE");
    expect_good(s);
    close_servers(s, before);
    signal(SIGCHLD, SIG_DFL);
}

/* The end of the host ends its server, even where a child of fork keeps the socket. */
static void test_host_dies(bool with_child)
{
    int to_us[2], server = 0;
    CHECK(pipe(to_us) == 0);
    const pid_t host = fork();
    if (host == 0) {
        expect_good(open_servers());
        server = child_of_ours();
        if (with_child && fork() == 0) {
            alarm(30);
            pause();
        }
        if (write(to_us[1], &server, sizeof server) == sizeof server)
            raise(SIGKILL);
        _exit(1);
    }
    CHECK(read(to_us[0], &server, sizeof server) == sizeof server && server > 0);
    waitpid(host, NULL, 0);
    close(to_us[0]);
    close(to_us[1]);
    bool there = true;
    for (int i = 0; i < 1000 && there; i++) {
        char path[64], state[2] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", server);
        FILE *f = fopen(path, "r"); /* a zombie that its new parent has not reaped has ended */
        there = f != NULL && fscanf(f, "%*d %*s %1s", state) == 1 && state[0] != 'Z';
        if (f != NULL)
            fclose(f);
        usleep(10000);
    }
    CHECK(!there);
}

static void test_soak(void)
{
    const int before = count_descriptors();
    for (int i = 0; i < ROUNDS; i++) {
        dc_servers *s = open_servers();
        if (i % 3 == 0)
            setenv("FAKE", i % 2 == 0 ? "garbage" : "half", 1);
        compile(s, good);
        unsetenv("FAKE");
        compile(s, good);
        dc_servers_close(s);
    }
    CHECK(!has_children());
    CHECK_EQ(count_descriptors(), before);
}

static void test_no_program(void)
{
    const dc_opts opt = {0};
    dc_job j;
    dc_servers *s = NULL;
    char words[600];
    dc_job_init(&j, &opt, NULL);
    CHECK_EQ(dc_servers_open(&j, &conf, "/nowhere/deepc", &s), DC_E_DEVICE);
    dc_err_render(&j.err, 1, words, sizeof words);
    CHECK_STR(words, "cpu: there is no program '/nowhere/deepc' to compile with (DEEPC_COMPILER)");
    dc_job_fini(&j);
}

int main(int argc, char **argv)
{
    char line[300];
    if (argc > 1 && strcmp(argv[1], "--compile-server") == 0)
        return serve(argc, argv);
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    test_no_program();
    if (!dc_llvm_probe("", line, sizeof line)) {
        T_SKIP("no LLVM");
        return t_done();
    }
    test_answers();
    test_long_text();
    test_fakes();
    test_given_up();
    test_killed_when_idle();
    test_memory();
    test_fatal_error();
    test_cancelled();
    test_threads();
    test_fork();
    test_ignored_children();
    test_host_dies(false);
    test_host_dies(true);
    test_soak();
    return t_done();
}
