/*
 * Monitors: contexts that may be watched, by clients that behave, that do not, and by many at once, while a script computes;
 * where their sockets may lie; what is left of them. And what `deepc top` makes of answers (vm/top_*.c).
 */
#define _GNU_SOURCE
#include "core/runtime/monitor.h"
#include "vm/deepc.h"
#include "vm/monitor_folder.h"
#include "vm/top_client.h"
#include "vm/top_draw.h"
#include "vm/top_rates.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/unit/folder.h"
#include "tests/unit/hostmem.h"

static char sockets[DC_MONITOR_PATH]; /* a folder that is made by the first context */

static void rest_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static double now(void)
{
    return (double)dc_clock_ns() * 1e-9;
}

static int count_sockets(const char *folder)
{
    int n = 0, process, number;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        n += dc_monitor_file(e->d_name, &process, &number);
    if (d != NULL)
        closedir(d);
    return n;
}

/* ---- contexts -------------------------------------------------------------------------------- */

static void keep_line(void *ctx, const char *channel, const char *text, size_t n)
{
    (void)channel;
    snprintf(ctx, 1000, "%.*s", (int)n, text);
}

/* On the interpreter: what is compiled is of no interest here. */
static dc_rt *open_context(const char *monitor, char *line)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = NULL;
    cfg.device = "eval";
    cfg.monitor = monitor;
    cfg.log = line != NULL ? keep_line : NULL;
    cfg.log_ctx = line;
    CHECK(dc_open(&cfg, &rt) == DC_OK);
    return rt;
}

static bool refused(const char *monitor, uint64_t allow, const char *part)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = NULL;
    cfg.device = "eval";
    cfg.monitor = monitor;
    cfg.allow = allow;
    const bool no = dc_open(&cfg, &rt) == DC_E_VALUE && strstr(dc_errmsg(rt), part) != NULL;
    if (!no)
        printf("%s: %s\n", monitor, dc_errmsg(rt));
    dc_close(rt);
    return no;
}

/* A script on a thread of its own, which computes until it is told to end. */
typedef struct script {
    const char *code;
    dc_config cfg;
    dc_rt *rt;
    lua_State *L;
    atomic_bool stop, ready;
    pthread_t thread;
    bool failed;
} script;

static int l_stop(lua_State *L)
{
    script *s = lua_touserdata(L, lua_upvalueindex(1));
    atomic_store(&s->ready, true);
    lua_pushboolean(L, atomic_load(&s->stop));
    return 1;
}

static void *run_script(void *arg)
{
    script *s = arg;
    s->L = luaL_newstate();
    luaL_openlibs(s->L);
    s->failed = dc_open(&s->cfg, &s->rt) != DC_OK || dc_attach(s->L, s->rt) != DC_OK;
    lua_pushlightuserdata(s->L, s);
    lua_pushcclosure(s->L, l_stop, 1);
    lua_setglobal(s->L, "stop");
    if (s->failed || luaL_dostring(s->L, s->code) != LUA_OK) {
        char text[600];
        dc_error_text(s->L, -1, text, sizeof text);
        printf("the script failed: %s\n", s->failed ? dc_errmsg(s->rt) : text);
        s->failed = true;
        atomic_store(&s->ready, true);
    }
    lua_close(s->L);
    return NULL;
}

static void begin(script *s, const char *code)
{
    s->code = code;
    pthread_create(&s->thread, NULL, run_script, s);
    while (!atomic_load(&s->ready))
        rest_ms(1);
}

static bool end(script *s)
{
    atomic_store(&s->stop, true);
    pthread_join(s->thread, NULL);
    return !s->failed;
}

static const char training[] =
    "local dc, nn, optim = require 'deepc', require 'deepc.nn', require 'deepc.optim'\n"
    "local net = nn.Linear(4, 2)\n"
    "local opt = optim.SGD(net:parameters(), { lr = 0.01 })\n"
    "local step = dc.fn('step(x: f32[8, 4], y: i32[8]) -> f32[]', function(x, y)\n"
    "  local loss = nn.cross_entropy(net(x), y)\n"
    "  opt:step(loss)\n"
    "  return loss\n"
    "end)\n"
    "local x, y = dc.rand('f32[8, 4]', { seed = 1 }), dc.iota 'i32[8]' % 2\n"
    "local turns = dc.fn('turns(x: f32[24]) -> f32[24]', function(x)\n"
    "  return dc.fori(50, function(_, v) return (v * 1.001):sin() end, x)\n"
    "end)\n"
    "local shown, many = {}, dc.ones 'f32[24]'\n"
    "for i in dc.progress(1 << 40, { title = 'round', metrics = shown, show = 'off' }) do\n"
    "  shown.loss = step(x, y)\n"
    "  dc.metric('half', i / 2)\n"
    "  dc.metric('doubled', shown.loss * 2)\n"
    "  turns(many)\n"
    "  if stop() then break end\n"
    "end\n";

static void configure(script *s, const char *device)
{
    const dc_config dflt = DC_CONFIG_INIT;
    *s = (script){.cfg = dflt};
    s->cfg.device = device;
    s->cfg.monitor = sockets;
    s->cfg.threads = 1;
}

/* ---- clients --------------------------------------------------------------------------------- */

static int connect_raw(int number)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval patience = {.tv_sec = 10};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    snprintf(a.sun_path, sizeof a.sun_path, "%.80s/%d-%d", sockets, (int)getpid(), number);
    if (connect(fd, (const struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool say(int fd, const char *text, size_t n)
{
    return send(fd, text, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* One line, without its end; NULL: the other side closed, or said nothing. The caller frees it. */
static char *hear(int fd)
{
    size_t n = 0, room = 1 << 20;
    char *text = malloc(room);
    while (n + 1 < room && recv(fd, text + n, 1, 0) == 1)
        if (text[n++] == '\n') {
            text[n - 1] = '\0';
            return text;
        }
    free(text);
    return NULL;
}

static bool is_closed(int fd)
{
    char byte;
    const ssize_t n = recv(fd, &byte, 1, 0);
    return n == 0 || (n < 0 && errno == ECONNRESET);
}

static bool ask(int number, const char *request, dc_top_snapshot *s)
{
    char why[96] = "";
    const int fd = connect_raw(number);
    char *text = fd >= 0 && say(fd, request, strlen(request)) ? hear(fd) : NULL;
    const bool fine = text != NULL && dc_top_read(s, text, strlen(text), why);
    if (!fine)
        printf("no answer: %s\n", why);
    free(text);
    if (fd >= 0)
        close(fd);
    return fine;
}

static const dc_top_metric *metric(const dc_top_snapshot *s, const char *name)
{
    for (uint32_t i = 0; i < s->nmetric; i++)
        if (strcmp(s->metric[i].name, name) == 0)
            return &s->metric[i];
    return NULL;
}

static const dc_top_count *function(const dc_top_snapshot *s, const char *name)
{
    for (uint32_t i = 0; i < s->nfunction; i++)
        if (strcmp(s->function[i].name, name) == 0)
            return &s->function[i];
    return NULL;
}

/* Launches of the kernel that was launched most often: in the loop of `turns`. */
static double most_launches(const dc_top_snapshot *s)
{
    double most = 0;
    for (uint32_t i = 0; i < s->nkernel; i++)
        most = s->kernel[i].times > most ? s->kernel[i].times : most;
    return most;
}

/* ---- what is seen ---------------------------------------------------------------------------- */

static void test_training(const char *device, bool compiled)
{
    static dc_top_snapshot a, b;
    script s;
    configure(&s, device);
    begin(&s, training);
    CHECK(ask(1, "snapshot kernels\n", &a));
    rest_ms(120);
    CHECK(ask(1, "snapshot kernels\n", &a));
    rest_ms(120);
    CHECK(ask(1, "snapshot kernels\n", &b));
    CHECK_EQ(a.pid, getpid());
    CHECK_STR(a.device, device);
    CHECK(a.age >= 0 && a.age < 5 && a.ranks == 1 && a.wait < 0);
    CHECK(b.rounds > a.rounds && b.calls > a.calls && b.open > a.open);
    CHECK(a.live > 0 && a.peak >= a.live && a.resident > 1e6 && a.process_threads >= 2);
    CHECK(b.nloop == 1 && b.loop[0].done > 0 && b.loop[0].total == (double)(INT64_C(1) << 40));
    CHECK_STR(b.loop[0].title, "round");
    const dc_top_metric *loss = metric(&b, "loss"), *doubled = metric(&b, "doubled"),
                        *half = metric(&b, "half");
    if (CHECK(loss != NULL && doubled != NULL && half != NULL)) {
        CHECK(loss->value > 0 && loss->value < 10 && loss->npoint >= 1);
        CHECK(doubled->value > 0 && doubled->age < 5);
        CHECK(half->value > 0);
    }
    const dc_top_count *step = function(&b, "step"), *turns = function(&b, "turns"),
                       *before = function(&a, "turns");
    CHECK(step != NULL && step->times > 0 && step->seconds > 0);
    CHECK(b.timed && (compiled ? b.nkernel > 0 && b.kernel[0].times > 0 : b.nkernel == 0));
    if (compiled && CHECK(turns != NULL && before != NULL && turns->times > before->times))
        CHECK_EQ(most_launches(&b) - most_launches(&a), 50 * (turns->times - before->times));
    CHECK(end(&s));
    CHECK_EQ(count_sockets(sockets), 0);
}

/* A copy has all metrics of a round, not some of the round before. */
static void test_rounds_are_whole(void)
{
    static dc_top_snapshot a;
    script s;
    configure(&s, "eval");
    begin(&s, "local dc, shown = require 'deepc', {}\n"
              "for i in dc.progress(1 << 40, { metrics = shown, show = 'off' }) do\n"
              "  shown.first, shown.second, shown.third = i, dc.tensor(i), i\n"
              "  if stop() then break end\n"
              "end\n");
    int whole = 0;
    for (int i = 0; i < 100 && whole < 3; i++) {
        CHECK(ask(1, "snapshot\n", &a));
        const dc_top_metric *first = metric(&a, "first"), *second = metric(&a, "second"),
                            *third = metric(&a, "third");
        if (first == NULL && second == NULL && third == NULL) { /* the first request was so early */
            rest_ms(20);
            continue;
        }
        whole++;
        if (CHECK(first != NULL && second != NULL && third != NULL))
            CHECK(first->value == third->value && second->value == third->value);
    }
    CHECK_EQ(whole, 3);
    CHECK(end(&s));
}

/* Nobody has asked for a while: kernels are timed no more, and no metric is read. */
static void test_rest(void)
{
    static dc_top_snapshot a, b;
    script s;
    configure(&s, "eval");
    begin(&s, training);
    CHECK(ask(1, "snapshot kernels\n", &a));
    rest_ms(60);
    CHECK(ask(1, "snapshot kernels\n", &b));
    CHECK(b.timed);
    rest_ms(2300);
    CHECK_EQ(atomic_load(&s.rt->monitor->round), 0);
    CHECK(ask(1, "snapshot\n", &b));
    CHECK(!b.timed && metric(&b, "loss") != NULL && metric(&b, "loss")->age > 1.5);
    CHECK(end(&s));
}

/* Lua that comes to no safe point; what the thread is at is known all the same. */
static void test_stuck(void)
{
    static dc_top_snapshot a;
    script s;
    configure(&s, "eval");
    begin(&s, "require 'deepc'\nwhile not stop() do end\n");
    const double began = now();
    CHECK(ask(1, "snapshot\n", &a));
    CHECK(now() - began >= 0.2 && now() - began < 5);
    CHECK_STR(a.what, "script");
    CHECK(a.age < 0 && a.pid == getpid());
    dc_monitor *m = s.rt->monitor; /* as if it were in a call */
    dc_monitor_enter(m, DC_DOING_CALL, dc_monitor_row(m, "forever"), dc_clock_ns());
    rest_ms(250);
    CHECK(ask(1, "snapshot\n", &a));
    CHECK_STR(a.what, "call");
    CHECK_STR(a.name, "forever");
    CHECK(a.doing > 0.2 && a.doing < 5);
    CHECK(end(&s));
}

/* ---- clients that do not behave -------------------------------------------------------------- */

static void refuses(const char *text, size_t n, const char *part)
{
    const int fd = connect_raw(1);
    CHECK(fd >= 0 && say(fd, text, n));
    char *line = hear(fd);
    if (!CHECK(line != NULL && strstr(line, part) != NULL))
        printf("'%.*s': %s\n", (int)n, text, line != NULL ? line : "");
    CHECK(is_closed(fd));
    free(line);
    close(fd);
}

static void test_garbage(void)
{
    char noise[4096];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)(i * 37 + 11);
    refuses("hello\n", 6, "a request is");
    refuses("\n", 1, "a request is");
    refuses("snapshot\0x\n", 11, "a request is");
    refuses("snapshot kernels please\n", 24, "a request is");
    refuses("GET / HTTP/1.1\r\n\r\n", 18, "a request is");
    refuses(noise, 64, "too long");
    memset(noise, 'x', sizeof noise);
    refuses(noise, 64, "too long");
    for (int i = 0; i < 5; i++) { /* who leaves at once, or in the middle */
        const int fd = connect_raw(1);
        CHECK(fd >= 0);
        if (i % 2 == 1)
            say(fd, "snapshot\nsnap", 13);
        close(fd);
    }
}

/* Requests without an end, and answers that nobody reads: both are let go; others are heard meanwhile. */
static void test_slow(void)
{
    static dc_top_snapshot a;
    const int half = connect_raw(1), deaf = connect_raw(1);
    CHECK(half >= 0 && say(half, "snap", 4));
    const struct timeval moment = {.tv_usec = 1000};
    setsockopt(deaf, SOL_SOCKET, SO_SNDTIMEO, &moment, sizeof moment);
    int sent = 0;
    for (const double until = now() + 1; now() < until && sent < 100000;) {
        const ssize_t n = send(deaf, "snapshot\n", 9, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            break; /* it was let go */
        sent += n > 0;
        if (n < 0)
            rest_ms(20);
    }
    CHECK(sent > 0 && sent < 100000);
    bool gone = false;
    for (const double until = now() + 10; !gone && now() < until;) {
        struct pollfd p = {.fd = deaf};
        gone = poll(&p, 1, 100) > 0 && (p.revents & POLLHUP) != 0;
    }
    CHECK(gone);
    CHECK(ask(1, "snapshot\n", &a));
    CHECK(is_closed(half));
    close(half);
    close(deaf);
}

/* More than there are places for: they are told, and a place is free again when one leaves. */
static void test_many(void)
{
    static dc_top_snapshot a;
    int fd[8], told = 0, taken = 0;
    for (int i = 0; i < 8; i++) {
        fd[i] = connect_raw(1);
        CHECK(fd[i] >= 0 && say(fd[i], "snapshot\n", 9));
        char *line = hear(fd[i]);
        taken += line != NULL && strstr(line, "\"pid\"") != NULL;
        free(line);
    }
    CHECK_EQ(taken, 8);
    const int more = connect_raw(1);
    char *line = hear(more);
    told = line != NULL && strstr(line, "others watch it") != NULL;
    free(line);
    close(more);
    CHECK_EQ(told, 1);
    for (int i = 0; i < 8; i++)
        close(fd[i]);
    rest_ms(50);
    CHECK(ask(1, "snapshot\n", &a));
}

/* A thousand connections, as fast as they can be made, none of which asks anything. */
static void test_flood(void)
{
    static int fd[1000];
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int made = 0;
    snprintf(to.sun_path, sizeof to.sun_path, "%.80s/%d-1", sockets, (int)getpid());
    for (int i = 0; i < 1000; i++) {
        fd[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        made += connect(fd[i], (const struct sockaddr *)&to, sizeof to) == 0;
    }
    CHECK(made > 0 && made < 1000);
    for (int i = 0; i < 1000; i++)
        close(fd[i]);
    bool heard = false;
    for (const double until = now() + 10; !heard && now() < until; rest_ms(50)) {
        const int one = connect_raw(1);
        char *line = one >= 0 && say(one, "snapshot\n", 9) ? hear(one) : NULL;
        heard = line != NULL && strstr(line, "\"pid\"") != NULL;
        free(line);
        if (one >= 0)
            close(one);
    }
    CHECK(heard);
}

static void test_clients(void)
{
    static dc_top_snapshot a, b;
    script s;
    configure(&s, "eval");
    begin(&s, training);
    CHECK(ask(1, "snapshot\n", &a));
    test_garbage();
    test_many();
    test_slow();
    test_flood();
    CHECK(ask(1, "snapshot\n", &b));
    CHECK(b.rounds > a.rounds);
    CHECK(end(&s));
}

/* ---- where sockets lie ----------------------------------------------------------------------- */

static void test_folders(void)
{
    char line[1000] = "", path[600], deep[700];
    struct stat st;
    dc_rt *rt = open_context(sockets, line);
    CHECK(rt->monitor != NULL && line[0] == '\0');
    CHECK(stat(sockets, &st) == 0 && (st.st_mode & 0777) == 0700);
    CHECK(stat(rt->monitor->path, &st) == 0 && S_ISSOCK(st.st_mode));
    dc_close(rt);
    CHECK(stat(sockets, &st) == 0 && count_sockets(sockets) == 0);

    snprintf(path, sizeof path, "%s", folder_path("open"));
    CHECK(mkdir(path, 0755) == 0);
    rt = open_context(path, line);
    CHECK(rt->monitor == NULL && strstr(line, "mode 755") != NULL);
    dc_close(rt);

    snprintf(path, sizeof path, "%s", folder_path("link"));
    CHECK(symlink(sockets, path) == 0);
    rt = open_context(path, line);
    CHECK(rt->monitor == NULL && strstr(line, "symbolic link") != NULL);
    dc_close(rt);

    snprintf(path, sizeof path, "%s", folder_path("file"));
    CHECK(folder_put("file", "x\n"));
    rt = open_context(path, line);
    CHECK(rt->monitor == NULL && strstr(line, "no folder") != NULL);
    dc_close(rt);

    rt = open_context("/nowhere/at/all", line);
    CHECK(rt->monitor == NULL && strstr(line, "No such file") != NULL);
    dc_close(rt);

    /* longer than the path of a socket may be */
    const size_t n = (size_t)snprintf(deep, sizeof deep, "%s/", folder_path(""));
    memset(deep + n, 'd', 150);
    snprintf(deep + n + 150, sizeof deep - n - 150, "/");
    CHECK(mkdir(deep, 0700) == 0);
    rt = open_context(deep, line);
    CHECK(rt->monitor != NULL && count_sockets(deep) == 1);
    dc_close(rt);
    CHECK_EQ(count_sockets(deep), 0);

    CHECK(refused("maybe", 0, "DEEPC_MONITOR"));
    CHECK(refused("", 0, "DEEPC_MONITOR"));
    CHECK(refused("some/where", 0, "DEEPC_MONITOR"));
    CHECK(refused("on", DC_ALLOW_COMPUTE, "may be opened"));
    rt = open_context("off", line);
    CHECK(rt->monitor == NULL);
    dc_close(rt);
}

/* Each context has its own; in one without files there is none, whatever the environment says. */
static void test_several(void)
{
    static dc_top_snapshot a;
    dc_rt *first = open_context(sockets, NULL), *second = open_context(sockets, NULL);
    CHECK(first->monitor != NULL && second->monitor != NULL);
    CHECK(strcmp(first->monitor->path, second->monitor->path) != 0);
    CHECK_EQ(count_sockets(sockets), 2);
    CHECK(ask(1, "snapshot\n", &a) && ask(2, "snapshot\n", &a));
    dc_close(first);
    CHECK_EQ(count_sockets(sockets), 1);
    CHECK(ask(2, "snapshot\n", &a));
    first = open_context(sockets, NULL);
    CHECK(ask(1, "snapshot\n", &a));
    dc_close(second);
    dc_close(first);

    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = "eval";
    cfg.allow = DC_ALLOW_COMPUTE;
    setenv("DEEPC_MONITOR", sockets, 1);
    CHECK(dc_open(&cfg, &first) == DC_OK && first->monitor == NULL);
    dc_close(first);
    unsetenv("DEEPC_MONITOR");
    CHECK_EQ(count_sockets(sockets), 0);
}

/* Makes a socket that nobody listens to, or a file, with this name. */
static void leave(const char *name, bool is_socket)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%.80s/%s", sockets, name);
    const int fd = is_socket ? socket(AF_UNIX, SOCK_STREAM, 0) : creat(at.sun_path, 0600);
    CHECK(fd >= 0);
    CHECK(!is_socket || bind(fd, (const struct sockaddr *)&at, sizeof at) == 0);
    close(fd);
}

/* What a killed process leaves is taken away by whoever meets it; a child takes nothing away. */
static void test_left(void)
{
    static dc_top_snapshot a;
    char own[DC_MONITOR_FILE];
    snprintf(own, sizeof own, "%d-1", (int)getpid());
    leave(own, true);
    CHECK_EQ(count_sockets(sockets), 1);
    dc_rt *rt = open_context(sockets, NULL);
    CHECK(rt->monitor != NULL && ask(1, "snapshot\n", &a));
    CHECK_EQ(count_sockets(sockets), 1);
    const pid_t child = fork();
    if (child == 0) {
        dc_close(rt);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    CHECK(ask(1, "snapshot\n", &a));
    dc_close(rt);
    CHECK_EQ(count_sockets(sockets), 0);
}

/* A client sees the end of a process at once. */
static void test_end_is_seen(void)
{
    static dc_top_clients all;
    char why[DC_MONITOR_WHY];
    dc_rt *rt = open_context(sockets, NULL);
    CHECK(dc_top_find(&all, sockets, (int)getpid(), why) && dc_top_ask(&all, false));
    dc_close(rt);
    const double begun = now();
    CHECK(!dc_top_ask(&all, false));
    CHECK(now() - begun < 1);
    dc_top_close(&all);
}

/* Is the file there after somebody has tried to connect to it, which fails for such a reason? */
static bool stays(const dc_monitor_folder *f, const char *name, bool tidy, const char *reason)
{
    char why[DC_MONITOR_WHY];
    CHECK(dc_monitor_connect(f, name, geteuid(), tidy, why) < 0 && strstr(why, reason) != NULL);
    return faccessat(f->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Files that are no sockets of deepc's stay, whatever their names. */
static void test_files_stay(void)
{
    char why[DC_MONITOR_WHY];
    dc_monitor_folder f;
    int which = 0;
    if (!CHECK(dc_monitor_folder_open(sockets, geteuid(), false, &which, &f, why)))
        return;
    leave("2024-10", false);
    leave("2024-11", true);
    leave("other", true);
    CHECK(symlinkat("2024-11", f.fd, "2024-12") == 0);
    CHECK(stays(&f, "2024-10", true, "is no socket"));
    CHECK(stays(&f, "2024-12", true, "is no socket"));
    CHECK(stays(&f, "other", true, "ended"));
    CHECK(stays(&f, "2024-11", false, "ended"));
    CHECK(!stays(&f, "2024-11", true, "ended"));
    CHECK(!stays(&f, "2024-11", true, "No such file"));
    dc_monitor_unlink(&f, "2024-10");
    CHECK(faccessat(f.fd, "2024-10", F_OK, 0) == 0);
    unlinkat(f.fd, "2024-10", 0);
    unlinkat(f.fd, "2024-12", 0);
    unlinkat(f.fd, "other", 0);
    dc_monitor_folder_close(&f);
}

/* Memory that is refused: while it is opened there is a note, or no context; later the client goes, the script does not. */
static void test_memory(void)
{
    static dc_top_snapshot a;
    hostmem m = {0};
    script s;
    int opened = 0, without = 0;
    for (long n = 1; n < 400 && opened < 3; n++) {
        dc_config cfg = DC_CONFIG_INIT;
        dc_rt *rt = NULL;
        cfg.device = "eval";
        cfg.monitor = sockets;
        cfg.alloc = hostmem_give;
        cfg.alloc_ctx = &m;
        hostmem_refuse(&m, n, false);
        const dc_status status = dc_open(&cfg, &rt);
        hostmem_allow(&m);
        opened += status == DC_OK && rt->monitor != NULL;
        without += status == DC_OK && rt->monitor == NULL;
        t_count(status == DC_OK || status == DC_E_NOMEM);
        dc_close(rt);
    }
    CHECK(opened == 3 && without > 0);
    CHECK_EQ(m.bytes, 0);
    CHECK_EQ(count_sockets(sockets), 0);

    configure(&s, "eval");
    s.cfg.alloc = hostmem_give;
    s.cfg.alloc_ctx = &m;
    begin(&s, "require 'deepc'\nwhile not stop() do end\n"); /* which asks for no memory itself */
    hostmem_refuse(&m, 1, false);
    const int fd = connect_raw(1);
    CHECK(say(fd, "snapshot\n", 9) && is_closed(fd));
    close(fd);
    hostmem_allow(&m);
    CHECK(ask(1, "snapshot\n", &a));
    CHECK(end(&s));
    CHECK_EQ(m.bytes, 0);
}

/* ---- counters -------------------------------------------------------------------------------- */

/* Metrics keep their whole history in the room there is; what has no room is left out. */
static void test_counters(void)
{
    static dc_monitor_data d;
    uint64_t age;
    char name[40];
    dc_rt *rt = open_context(sockets, NULL);
    dc_monitor *m = rt->monitor;
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "f%d", i);
        const uint32_t row = dc_monitor_row(m, name);
        CHECK(row == (uint32_t)(i < DC_MONITOR_FUNCTIONS - 1 ? i : DC_MONITOR_FUNCTIONS - 1));
        m->live.function[row].calls++;
        dc_monitor_tell(m, name, i);
    }
    m->opened_ns -= 10000 * UINT64_C(1000000000);
    for (int i = 0; i < 1000; i++) { /* a point every second */
        m->opened_ns -= UINT64_C(1000000000);
        dc_monitor_tell(m, "f0", i);
    }
    CHECK_EQ(dc_monitor_loop_begin(m, "outer", 10, 0), 0);
    CHECK_EQ(dc_monitor_loop_begin(m, "inner", -1, 3), 1);
    CHECK(!dc_monitor_loop_at(m, 1, 5) && !dc_monitor_loop_at(m, 9, 5) &&
          !dc_monitor_loop_at(m, -1, 5));
    const uint64_t before = dc_monitor_ask(m, false);
    CHECK(dc_monitor_is_due(m, "f1") && !dc_monitor_is_due(m, "f99"));
    CHECK(!dc_monitor_loop_at(m, 0, 0) && dc_monitor_loop_at(m, 0, 1) &&
          !dc_monitor_loop_at(m, 0, 2));
    dc_monitor_breathe(rt);
    CHECK_EQ(dc_monitor_number(m), before + 1);
    dc_monitor_read(m, &d, &age);
    CHECK_EQ(d.nfunction, DC_MONITOR_FUNCTIONS);
    CHECK_EQ(d.function[DC_MONITOR_FUNCTIONS - 1].calls, 100 - DC_MONITOR_FUNCTIONS + 1);
    CHECK_EQ(d.nmetric, DC_MONITOR_METRICS);
    const dc_monitor_metric *f0 = &d.metric[0];
    CHECK(f0->value == 999 && f0->npoint > DC_MONITOR_POINTS / 2 &&
          f0->npoint <= DC_MONITOR_POINTS);
    CHECK(f0->point[0].value == 0 && f0->point[f0->npoint - 1].value > 900);
    CHECK(d.nloop == 2 && d.rounds == 7);
    dc_monitor_loop_end(m, 0);
    CHECK_EQ(m->live.nloop, 0);
    dc_close(rt);
}

/* ---- deepc top ------------------------------------------------------------------------------- */

/* An answer read by itself. */
static bool reads(const char *json, dc_top_snapshot *s)
{
    char text[4000], why[96];
    snprintf(text, sizeof text, "%s", json);
    return dc_top_read(s, text, strlen(text), why);
}

static const char answer[] =
    "{\"pid\": 17, \"command\": \"/usr/bin/deepc a.lua\", \"device\": \"cpu\", \"open_seconds\": "
    "10, \"age\": 0, "
    "\"future\": {\"x\": [1, {\"y\": null}]}, \"doing\": {\"what\": \"call\", \"name\": \"step\", "
    "\"seconds\": 12.5}, "
    "\"memory\": {\"live\": 1048576, \"limit\": 2e6}, \"counts\": {\"rounds\": 100, \"calls\": 5}, "
    "\"loops\": [{\"title\": \"epoch 1\", \"done\": 5, \"total\": 10, \"seconds\": 5, "
    "\"since_first\": 4}], "
    "\"metrics\": [{\"name\": \"loss\", \"value\": \"nan\", \"history\": [[0, 4], [1, 2], [2, 1], "
    "[3, \"inf\"]]}], "
    "\"kernels_timed\": true, \"functions\": [{\"name\": \"step\", \"calls\": 50, \"seconds\": "
    "5}], "
    "\"kernels\": [{\"name\": \"K1\", \"where\": \"/a/b.lua:7\", \"launches\": 10, \"seconds\": 2, "
    "\"flops\": 4e9}]}";

static void test_reader(void)
{
    static dc_top_snapshot s;
    CHECK(reads(answer, &s));
    CHECK(s.pid == 17 && s.live == 1048576 && s.limit == 2e6 && s.rounds == 100 && s.timed);
    CHECK(s.nloop == 1 && s.loop[0].total == 10 && s.nfunction == 1 && s.nkernel == 1);
    CHECK(s.nmetric == 1 && s.metric[0].value != s.metric[0].value && s.metric[0].npoint == 4);
    CHECK_STR(s.kernel[0].where, "/a/b.lua:7");
    for (size_t n = 0; n < sizeof answer - 1; n++) { /* cut anywhere */
        char part[sizeof answer], why[96];
        memcpy(part, answer, n);
        t_count(!dc_top_read(&s, part, n, why) && why[0] != '\0');
    }
    for (size_t at = 0; at < sizeof answer - 1; at++) { /* one byte is another */
        static const char other[] = "\0\"{[]}:,9-e\\\xff";
        char text[sizeof answer], why[96];
        for (size_t k = 0; k < sizeof other - 1; k++) {
            memcpy(text, answer, sizeof text);
            text[at] = other[k];
            dc_top_read(&s, text, sizeof text - 1, why);
        }
    }
    CHECK(reads("{\"command\": \"a\\u001b[2J\\u009b\\u00e4\\n\"}", &s));
    CHECK_STR(s.command, "a\\x1b[2J\\u{9b}\xc3\xa4\\n");
    CHECK(reads("{\"error\": \"no\"}", &s) && strcmp(s.error, "no") == 0);
    CHECK(!reads("[]", &s) && !reads("{\"functions\": 3}", &s) && !reads("{} x", &s));
}

static bool shows(const dc_text *t, const char *part)
{
    if (t->s != NULL && strstr(t->s, part) != NULL)
        return true;
    printf("'%s' is not in\n%s\n", part, t->s);
    return false;
}

/* Lines of a frame, and the longest one in letters. */
static int count_lines(const dc_text *t, int *longest)
{
    int n = 1, at = 0;
    *longest = 0;
    for (const char *c = t->s; *c != '\0'; c++) {
        at = *c == '\n' ? 0 : at + (((unsigned char)*c & 0xc0) != 0x80);
        n += *c == '\n';
        *longest = at > *longest ? at : *longest;
    }
    return n;
}

static dc_status draw_body(dc_job *j, void *arg)
{
    static const int sizes[][2] = {{80, 24}, {120, 50}, {20, 5}, {1, 1}, {300, 100}, {80, 2}};
    dc_top_clients *all = arg;
    (void)j;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int scroll = 0; scroll < 9; scroll += 4) {
            int longest;
            dc_text t = {0};
            dc_top_look look = {.columns = (uint32_t)sizes[i][0],
                                .rows = (uint32_t)sizes[i][1],
                                .unicode = scroll > 0,
                                .scroll = (uint32_t)scroll};
            dc_top_draw(&t, all, &look);
            const int lines = count_lines(&t, &longest);
            CHECK(longest <= sizes[i][0] && (lines == sizes[i][1] || sizes[i][1] < 12));
            dc_text_free(&t);
        }
    dc_text t = {0};
    dc_top_look look = {.columns = 100, .sort = DC_TOP_BY_NAME};
    dc_top_draw(&t, all, &look);
    CHECK(shows(&t, "in step for 12.5 s") && shows(&t, "deepc a.lua") && shows(&t, "1024.0 KiB"));
    CHECK(shows(&t, "epoch 1  5/10   50%") && shows(&t, "left 0:05") && shows(&t, "nan"));
    CHECK(shows(&t, "b.lua:7") && shows(&t, "waits for rank 1 in all_reduce") && shows(&t, "#") &&
          shows(&t, "!"));
    CHECK(strchr(t.s, '\033') == NULL);
    dc_text_free(&t);
    dc_top_draw_line(&t, &all->at[0]);
    CHECK(shows(&t, "loss nan") && shows(&t, "in step"));
    dc_text_free(&t);
    return DC_OK;
}

static void test_frames(void)
{
    static dc_top_snapshot first, second, other;
    static dc_top_clients all = {.n = 2};
    dc_top_rates r;
    dc_top_row row[DC_MONITOR_KERNELS];
    dc_opts opt = {0};
    dc_job j;
    CHECK(reads(answer, &first) && reads(answer, &second) && reads(answer, &other));
    second.open = 12;
    second.rounds = 150;
    second.function[0].times = 60;
    second.function[0].seconds = 6.5;
    second.cpu = 3;
    other.ranks = 2;
    other.wait = 3;
    other.wait_rank = 1;
    snprintf(other.wait_in, sizeof other.wait_in, "all_reduce, a.lua:3");
    all.at[0] = (dc_top_client){.now = &second, .last = &first};
    all.at[1] = (dc_top_client){.now = &other};
    dc_top_rates_of(&all.at[0], &r);
    CHECK_NEAR(r.steps, 25, 1e-9);
    CHECK_NEAR(r.cpu, 1.5, 1e-9);
    CHECK_EQ(dc_top_rows(&all.at[0], false, DC_TOP_BY_TIME, row), 1);
    CHECK_NEAR(row[0].rate, 5, 1e-9);
    CHECK_NEAR(row[0].each, 0.15, 1e-9);
    CHECK_NEAR(row[0].share, 0.75, 1e-9);
    CHECK_EQ(dc_top_rows(&all.at[1], true, DC_TOP_BY_RATE, row), 1);
    CHECK_NEAR(row[0].each, 0.2, 1e-9);
    CHECK_NEAR(row[0].flops, 2e9, 1);
    dc_job_init(&j, &opt, NULL);
    CHECK(dc_protect(&j, draw_body, &all) == DC_OK);
    dc_job_fini(&j);
}

int main(void)
{
    const char *device = getenv("DEEPC_DEVICE");
    if (!folder_make())
        return t_done();
    snprintf(sockets, sizeof sockets, "%s", folder_path("s"));
    unsetenv("DEEPC_MONITOR");
    test_folders();
    test_several();
    test_left();
    test_end_is_seen();
    test_files_stay();
    test_counters();
    test_training(device != NULL ? device : "cpu", true);
    test_rounds_are_whole();
    test_training("eval", false);
    test_stuck();
    test_rest();
    test_clients();
    test_memory();
    test_reader();
    test_frames();
    CHECK_EQ(count_sockets(sockets), 0);
    CHECK(folder_remove());
    return t_done();
}
