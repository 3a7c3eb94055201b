/*
 * C11 text to functions through a process of the system's compiler (backends/cpu/cc.h). The folder
 * of a compilation is on the job's cleanup list while it exists; between starting the compiler and
 * reading what it said nothing can unwind.
 */
#define _GNU_SOURCE /* environ, pipe2 */
#include "backends/cpu/cc.h"

#include "backends/build_log.h"
#include "backends/cpu/toolchain.h"
#include "backends/library.h"
#include "core/base/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_WORDS = 64, MAX_PATH = 512, MAX_SAID = 16 << 10 };

static const char *const device_name = "cpu:cc";

/*
 * What jit/render/render_c.h asks for, then what makes good code: vectors come as loops over lanes that
 * gcc from -O3 on would unroll before it looks for vectors.
 */
static const char *const options[] = {
    "-std=c11",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-O2",
    "-ftree-vectorize",
    "-fPIC",
    "-shared",
    "-w",
};

/* The command in words ------------------------------------------------------------------------ */

typedef struct words {
    char text[sizeof((dc_opts *)0)->cc];
    char *at[MAX_WORDS];
    int n;
} words;

static void add_word(words *w, const char *s)
{
    if (w->n < MAX_WORDS - 1)
        w->at[w->n++] = (char *)(uintptr_t)s; /* exec's arguments are not const, and not written */
}

/* The program, then `own`, then the options that the command has. */
static void split(words *w, const char *command, const char *const *own, size_t nown)
{
    char *rest = NULL;
    w->n = 0;
    snprintf(w->text, sizeof w->text, "%s", command);
    char *word = strtok_r(w->text, " \t", &rest);
    add_word(w, word != NULL ? word : "cc");
    for (size_t i = 0; i < nown; i++)
        add_word(w, own[i]);
    while ((word = strtok_r(NULL, " \t", &rest)) != NULL)
        add_word(w, word);
    w->at[w->n] = NULL;
}

/* Processes ----------------------------------------------------------------------------------- */

/* Runs it with what it prints going to a file; an errno when it could not be started. */
static int start_compiler(const words *w, int out, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, usual;
    int e = posix_spawn_file_actions_init(&files);
    if (e != 0)
        return e;
    e = posix_spawnattr_init(&attr);
    if (e == 0) {
        sigemptyset(&none);
        sigemptyset(&usual);
        sigaddset(&usual, SIGCHLD); /* compilers wait for processes of their own, */
        sigaddset(&usual, SIGPIPE); /* and our host may ignore these */
        posix_spawnattr_setsigmask(&attr, &none);
        posix_spawnattr_setsigdefault(&attr, &usual);
        posix_spawnattr_setpgroup(&attr, 0); /* ended with what it has started */
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                            POSIX_SPAWN_SETPGROUP);
        e = posix_spawn_file_actions_adddup2(&files, out, 1);
        if (e == 0)
            e = posix_spawn_file_actions_adddup2(&files, out, 2);
        if (e == 0) /* last: `out` may be 0 */
            e = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        if (e == 0)
            e = posix_spawnp(pid, w->at[0], &files, &attr, w->at, environ);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    return e;
}

/* The status that waitpid gives; -1 where the host has reaped the child already. */
static int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

static void end_group(pid_t pid)
{
    kill(-pid, SIGKILL);
    wait_for(pid);
}

typedef enum ending { ENDED, LATE, CANCELLED } ending;

/* The same, but ends it where it takes too long or is wanted no more. */
static ending wait_in_time(const dc_job *j, pid_t pid, int *status)
{
    static const struct timespec a_little = {.tv_nsec = 500000};
    const uint64_t most = (uint64_t)j->opt->compile_seconds * 1000000000, begun = dc_clock_ns();
    for (;;) {
        const pid_t who = waitpid(pid, status, WNOHANG);
        if (who == pid)
            return ENDED;
        if (who < 0 && errno != EINTR) {
            *status = -1;
            return ENDED;
        }
        const bool late = most > 0 && dc_clock_ns() - begun > most;
        if (late || dc_job_cancelled(j)) {
            end_group(pid);
            return late ? LATE : CANCELLED;
        }
        nanosleep(&a_little, NULL);
    }
}

/* One compilation ------------------------------------------------------------------------------ */

typedef struct build {
    dc_cc *cc;
    dc_job *j;
    char folder[MAX_PATH]; /* "" once it is gone */
    char source[MAX_PATH + 8], object[MAX_PATH + 8], log[MAX_PATH + 8];
    char *said; /* by the compiler, up to MAX_SAID bytes */
} build;

static void remove_folder(void *what)
{
    build *b = what;
    if (b->folder[0] == '\0')
        return;
    unlink(b->source);
    unlink(b->object);
    unlink(b->log);
    rmdir(b->folder);
    b->folder[0] = '\0';
}

static dc_status make_folder(build *b)
{
    const int n = snprintf(b->folder, sizeof b->folder, "%s/deepc-XXXXXX", b->cc->folder);
    if (n >= (int)sizeof b->folder || mkdtemp(b->folder) == NULL) {
        b->folder[0] = '\0';
        return dc_failf(b->j, DC_ERR_DEVICE, device_name, "no temporary folder in %.200s: %s",
                        b->cc->folder, strerror(errno));
    }
    snprintf(b->source, sizeof b->source, "%s/k.c", b->folder);
    snprintf(b->object, sizeof b->object, "%s/k.so", b->folder);
    snprintf(b->log, sizeof b->log, "%s/log", b->folder);
    return DC_OK;
}

static int new_file(const char *path)
{
    return open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
}

static dc_status write_file(build *b, const char *path, const void *bytes, size_t n)
{
    const int file = new_file(path);
    bool ok = file >= 0 && dc_file_write(file, bytes, n);
    int e = errno;
    if (file >= 0 && close(file) != 0 && ok) {
        ok = false;
        e = errno;
    }
    return ok ? DC_OK
              : dc_failf(b->j, DC_ERR_DEVICE, device_name, "cannot write %.200s: %s", path,
                         strerror(e));
}

static void read_log(build *b, int file)
{
    const ssize_t n = pread(file, b->said, MAX_SAID - 1, 0);
    b->said[n > 0 ? n : 0] = '\0';
}

/* The line that says what is wrong, without the name of the folder. */
static const char *telling_line(const build *b, size_t *n)
{
    const char *line = dc_build_log_line(b->said, n);
    const size_t folder = strlen(b->folder);
    if (*n <= folder || strncmp(line, b->folder, folder) != 0 || line[folder] != '/')
        return line;
    *n -= folder + 1;
    return line + folder + 1;
}

static dc_status fail_build(build *b, int status)
{
    dc_log_text(b->j->log, DC_CH_SRC, "the compiler's words", b->said);
    size_t n;
    const char *line = telling_line(b, &n);
    if (WIFSIGNALED(status))
        return dc_failf(b->j, DC_ERR_BUILD, device_name, "'%.80s' was ended by signal %d",
                        b->cc->command, WTERMSIG(status));
    return dc_failf(b->j, DC_ERR_BUILD, device_name, "'%.80s' refuses a kernel: %.*s",
                    b->cc->command, (int)(n < 300 ? n : 300), line);
}

/* An errno when it could not be started, else 0 and what wait_in_time tells. */
static int run_compiler(build *b, const words *w, int *status, ending *how)
{
    pid_t pid;
    const int log = new_file(b->log);
    if (log < 0)
        return errno;
    const int e = start_compiler(w, log, &pid);
    if (e == 0) {
        *how = wait_in_time(b->j, pid, status);
        read_log(b, log);
    }
    close(log);
    return e;
}

static dc_status refuse_late(const build *b)
{
    return dc_failf(b->j, DC_ERR_BUILD, device_name,
                    "'%.80s' did not end within %lld s, so it was ended and is not started again "
                    "(DEEPC_COMPILE_SECONDS)",
                    b->cc->command, (long long)b->j->opt->compile_seconds);
}

static dc_status make_object(build *b)
{
    const char *own[DC_COUNTOF(options) + 4];
    char march[64];
    size_t n = 0;
    int status = 0;
    ending how = ENDED;
    words w;
    for (; n < DC_COUNTOF(options); n++)
        own[n] = options[n];
    snprintf(march, sizeof march, "-march=%s", b->cc->march);
    own[n++] = march;
    own[n++] = "-o";
    own[n++] = b->object;
    own[n++] = b->source;
    split(&w, b->cc->command, own, n);
    if (atomic_load(&b->cc->late))
        return refuse_late(b);
    const int e = run_compiler(b, &w, &status, &how);
    if (e != 0 || status == 127 << 8) /* 127: what a shell says, and some spawns */
        return dc_failf(b->j, DC_ERR_DEVICE, device_name,
                        "the C compiler '%.80s' cannot be run: %s (DEEPC_CC names another one)",
                        w.at[0], e != 0 ? strerror(e) : "not found");
    if (how == CANCELLED)
        return dc_failf(b->j, DC_ERR_REENTER, NULL, "no longer wanted");
    if (how == LATE) {
        atomic_store(&b->cc->late, true);
        return refuse_late(b);
    }
    if (status == 0 || (status == -1 && access(b->object, R_OK) == 0))
        return DC_OK;
    return fail_build(b, status);
}

static dc_status load_object(build *b, const dc_source *src, void **entry, void **library)
{
    void *so = dlopen(b->object, RTLD_NOW | RTLD_LOCAL);
    if (so == NULL)
        return dc_failf(b->j, DC_ERR_BUILD, device_name,
                        "what '%.80s' made cannot be opened: %.300s", b->cc->command, dlerror());
    for (uint32_t i = 0; i < src->nentry; i++) {
        entry[i] = dlsym(so, src->entry[i]);
        if (entry[i] != NULL)
            continue;
        dlclose(so);
        return dc_failf(b->j, DC_ERR_BUILD, device_name, "the text has no kernel '%.80s'",
                        src->entry[i]);
    }
    *library = so;
    return DC_OK;
}

static dc_status translate(build *b, const dc_source *src)
{
    DC_TRY(make_folder(b));
    DC_TRY(write_file(b, b->source, src->text, strlen(src->text)));
    return make_object(b);
}

static build *begin_build(dc_cc *cc, dc_job *j)
{
    build *b = DC_NEW(&j->scratch, build);
    b->cc = cc;
    b->j = j;
    b->said = dc_arena_alloc(&j->scratch, MAX_SAID);
    dc_job_defer(j, remove_folder, b);
    return b;
}

static void end_build(build *b)
{
    dc_job_keep(b->j, b);
    remove_folder(b);
}

dc_status dc_cc_compile(dc_cc *cc, dc_job *j, const dc_source *src, void **entry, void **library)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    build *b = begin_build(cc, j);
    dc_status status = translate(b, src);
    if (status == DC_OK)
        status = load_object(b, src, entry, library);
    end_build(b);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}

/* ---- in two halves --------------------------------------------------------------------------- */

static dc_status read_object(build *b, const void **object, size_t *bytes)
{
    struct stat s;
    const int file = open(b->object, O_RDONLY | O_CLOEXEC);
    char *to = NULL;
    size_t n = 0;
    if (file >= 0 && fstat(file, &s) == 0 && s.st_size > 0)
        to = dc_arena_alloc(&b->j->scratch, (size_t)s.st_size);
    for (ssize_t got = 1; to != NULL && got > 0 && n < (size_t)s.st_size; n += (size_t)got)
        got = dc_max_i64(read(file, to + n, (size_t)s.st_size - n), 0);
    const int e = errno;
    if (file >= 0)
        close(file);
    if (to == NULL || n < (size_t)s.st_size)
        return dc_failf(b->j, DC_ERR_DEVICE, device_name, "cannot read %.200s: %s", b->object,
                        strerror(e));
    *object = to;
    *bytes = n;
    return DC_OK;
}

dc_status dc_cc_translate(dc_cc *cc, dc_job *j, const dc_source *src, const void **object,
                          size_t *bytes)
{
    build *b = begin_build(cc, j);
    dc_status status = translate(b, src);
    if (status == DC_OK)
        status = read_object(b, object, bytes);
    end_build(b);
    return status;
}

dc_status dc_cc_load(dc_cc *cc, dc_job *j, const dc_source *src, const void *object, size_t bytes,
                     void **entry, void **library)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    build *b = begin_build(cc, j);
    dc_status status = make_folder(b);
    if (status == DC_OK)
        status = write_file(b, b->object, object, bytes);
    if (status == DC_OK)
        status = load_object(b, src, entry, library);
    end_build(b);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}

bool dc_cc_toolchain(const dc_cc *cc, dc_text *out)
{
    char path[1024];
    words w;
    split(&w, cc->command, NULL, 0);
    if (!dc_toolchain_find_program(w.at[0], path, sizeof path) || !dc_library_put_id(path, out))
        return false;
    dc_text_printf(out, "%s\n", cc->command);
    return true;
}

void dc_cc_settings(const dc_cc *cc, dc_text *out)
{
    dc_text_puts(out, cc->march);
    for (size_t i = 0; i < DC_COUNTOF(options); i++)
        dc_text_printf(out, " %s", options[i]);
    dc_text_puts(out, "\n");
    dc_toolchain_put_processor(out);
}

void dc_cc_unload(void *library)
{
    if (library != NULL)
        dlclose(library);
}

bool dc_cc_probe(const char *command, char *line, size_t size)
{
    static const char *const own[] = {"--version"};
    char text[200] = "";
    int ends[2];
    words w;
    pid_t pid;
    split(&w, command, own, DC_COUNTOF(own));
    if (pipe2(ends, O_CLOEXEC) != 0) {
        snprintf(line, size, "%s: %s", w.at[0], strerror(errno));
        return false;
    }
    const int e = start_compiler(&w, ends[1], &pid);
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got = 1; e == 0 && got > 0;) { /* to the end, or it would wait for us */
        char rest[256];
        got = read(ends[0], rest, sizeof rest);
        const size_t fits = got < 0                             ? 0
                            : (size_t)got < sizeof text - 1 - n ? (size_t)got
                                                                : sizeof text - 1 - n;
        memcpy(text + n, rest, fits);
        n += fits;
    }
    close(ends[0]);
    text[strcspn(text, "\n")] = '\0';
    int status = e == 0 ? wait_for(pid) : 127 << 8;
    if (status == -1 && text[0] != '\0') /* it wrote text, and its status is lost */
        status = 0;
    if (status == 0)
        snprintf(line, size, "%s: %s", w.at[0], text);
    else
        snprintf(line, size, "no C compiler '%.80s'%s%s (DEEPC_CC names another one)", w.at[0],
                 e != 0 ? ": " : "", e != 0 ? strerror(e) : "");
    return status == 0;
}
