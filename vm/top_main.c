#define _POSIX_C_SOURCE 200809L
#include "vm/top_main.h"

#include "core/base/digits.h"
#include "core/base/job.h"
#include "core/base/real.h"
#include "vm/say.h"
#include "vm/top_draw.h"
#include "vm/top_screen.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: deepc top [options] [PID | SOCKET]\n"
    "What a running script is doing: steps and calls in a second, metrics, memory, kernels by "
    "time.\n"
    "It may be watched if it runs with DEEPC_MONITOR=on or has called dc.monitor(). Without PID:\n"
    "the processes that may be.\n"
    "  --once           print what there is and end; on no terminal a line for each interval, "
    "else\n"
    "  --json           the same as JSON: a line for each context\n"
    "  -i SECONDS       between two looks (1)\n"
    "  --sort KEY       tables by time, rate (in a second), each (time of one) or name\n"
    "  --no-kernels     leave kernels untimed: it costs the script less\n"
    "Keys: q quit, s sort, p pause, k kernels, arrows and pages scroll, Tab the next rank.\n";

enum {
    KEEP_MS = 20000, /* while it is paused */
    TIMED_MS = 1000  /* kernels are timed as long as somebody asks so often */
};

typedef struct asked {
    bool once, json;
    double seconds; /* interval */
    dc_top_sort sort;
    bool kernels;
    const char *what; /* PID or path; NULL: all */
    const dc_opts *opt;
    dc_top_clients all;
    int status;
} asked;

/* ---- arguments ------------------------------------------------------------------------------- */

static bool misused(const char *fmt, const char *word)
{
    fputs("deepc: top: ", stderr);
    dc_sayf(stderr, "%s%s\n%s", fmt, word, usage);
    return false;
}

static bool read_interval(const char *text, double *out)
{
    int64_t whole;
    const char *at = text, *end = text + strlen(text);
    return dc_real_read(&at, end, out, &whole) != DC_REAL_NONE && at == end && *out >= 0.1 &&
           *out <= 86400;
}

static bool read_sort(const char *text, dc_top_sort *out)
{
    for (int s = DC_TOP_BY_TIME; s <= DC_TOP_BY_NAME; s++)
        if (strcmp(text, dc_top_sort_name((dc_top_sort)s)) == 0) {
            *out = (dc_top_sort)s;
            return true;
        }
    return false;
}

static bool read_arguments(asked *a, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        const char *w = argv[i];
        const bool takes = strcmp(w, "-i") == 0 || strcmp(w, "--sort") == 0;
        if (takes && i + 1 == argc)
            return misused("an argument is needed behind ", w);
        if (strcmp(w, "--once") == 0)
            a->once = true;
        else if (strcmp(w, "--json") == 0)
            a->json = true;
        else if (strcmp(w, "--no-kernels") == 0)
            a->kernels = false;
        else if (strcmp(w, "-i") == 0) {
            if (!read_interval(argv[++i], &a->seconds))
                return misused("an interval is 0.1 to 86400 seconds, not ", argv[i]);
        } else if (takes) {
            if (!read_sort(argv[++i], &a->sort))
                return misused("tables are sorted by time, rate, each or name, not ", argv[i]);
        } else if (w[0] == '-')
            return misused("there is no option ", w);
        else if (a->what != NULL)
            return misused("one process is watched at a time: ", w);
        else
            a->what = w;
    }
    return true;
}

/* ---- what is watched ------------------------------------------------------------------------- */

/* Why a process cannot be watched, for its user. */
static bool not_found(const asked *a, uint64_t process, const char *why)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%llu", (unsigned long long)process);
    if (why[0] != '\0')
        dc_sayf(stderr, "deepc: top: %s\n", why);
    else if (access(path, F_OK) != 0)
        dc_sayf(stderr, "deepc: top: there is no process %s\n", a->what);
    else
        fprintf(
            stderr,
            "deepc: top: process %s may not be watched: it has to run with DEEPC_MONITOR=on, or "
            "call dc.monitor()\n",
            a->what);
    return false;
}

static bool connect_to(asked *a)
{
    char why[DC_MONITOR_WHY];
    uint64_t process = 0;
    if (strchr(a->what, '/') != NULL) {
        if (dc_top_connect(&a->all, a->what, why))
            return true;
        dc_sayf(stderr, "deepc: top: %s\n", why);
        return false;
    }
    if (!dc_digits_whole(a->what, INT_MAX, &process) || process == 0)
        return misused("a process has a number, a socket a path: ", a->what);
    if (!dc_top_find(&a->all, a->opt->monitor, (int)process, why) &&
        !dc_top_find_launched(&a->all, a->opt->monitor, (double)process))
        return not_found(a, process, why);
    return true;
}

static bool ask_first(asked *a)
{
    char why[DC_MONITOR_WHY];
    dc_top_ask(&a->all, a->kernels);
    if (dc_top_drop_silent(&a->all, why)) {
        dc_top_add_ranks(&a->all, a->opt->monitor);
        return true;
    }
    dc_sayf(stderr, "deepc: top: %s\n", why);
    return false;
}

static void rest(double seconds)
{
    const time_t whole = (time_t)seconds;
    nanosleep(&(struct timespec){whole, (long)((seconds - (double)whole) * 1e9)}, NULL);
}

/* Kernels are timed meanwhile. */
static void rest_watching(asked *a)
{
    double left = a->seconds;
    for (; left > TIMED_MS / 1e3; left -= TIMED_MS / 1e3) {
        rest(TIMED_MS / 1e3);
        dc_top_keep(&a->all, a->kernels);
    }
    rest(left);
}

static void print_json(const asked *a)
{
    for (uint32_t i = 0; i < a->all.n; i++)
        if (a->all.at[i].fd >= 0)
            fwrite(a->all.at[i].text, 1, a->all.at[i].n, stdout);
}

/* ---- the list -------------------------------------------------------------------------------- */

static void list_one(const dc_top_snapshot *s)
{
    dc_text state = {0}, up = {0};
    dc_top_print_state(&state, s);
    dc_top_print_time(&up, s->open);
    dc_sayf(stdout, "%8.0f  %-12.12s %5.0f  %9s  %-30.60s  %s\n", s->pid, s->device, s->rank, up.s,
            dc_top_command(s), state.s);
    dc_text_free(&state);
    dc_text_free(&up);
}

static int list_all(asked *a)
{
    char why[DC_MONITOR_WHY];
    const bool any = dc_top_find(&a->all, a->opt->monitor, 0, why);
    if (!any && why[0] != '\0')
        dc_sayf(stderr, "deepc: top: %s\n", why);
    if (!any || !dc_top_ask(&a->all, false)) {
        fputs("deepc: top: nothing may be watched: a script runs with DEEPC_MONITOR=on, or calls "
              "dc.monitor()\n",
              stderr);
        return 1;
    }
    if (a->json) {
        print_json(a);
        return 0;
    }
    dc_sayf(stdout, "%8s  %-12s %5s  %9s  %-30s  %s\n", "PID", "DEVICE", "RANK", "UP", "COMMAND",
            "IS");
    for (uint32_t i = 0; i < a->all.n; i++)
        if (a->all.at[i].now != NULL)
            list_one(a->all.at[i].now);
    return 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Twice, so that there are rates. */
static int print_once(asked *a)
{
    dc_text t = {0};
    dc_top_look look = {.columns = 120, .sort = a->sort, .kernels = a->kernels, .unicode = true};
    rest(a->seconds < 0.5 ? a->seconds : 0.5);
    dc_top_ask(&a->all, a->kernels);
    if (a->json)
        print_json(a);
    else {
        dc_top_draw(&t, &a->all, &look);
        fputs(t.s, stdout);
        dc_text_free(&t);
    }
    return 0;
}

static int print_lines(asked *a)
{
    do {
        dc_text t = {0};
        for (uint32_t i = 0; i < a->all.n && !a->json; i++)
            if (a->all.at[i].fd >= 0)
                dc_top_draw_line(&t, &a->all.at[i]);
        if (t.s != NULL)
            fputs(t.s, stdout);
        dc_text_free(&t);
        if (a->json)
            print_json(a);
        if (fflush(stdout) != 0)
            return 1;
        rest_watching(a);
    } while (dc_top_ask(&a->all, a->kernels));
    return 0;
}

/* ---- the screen ------------------------------------------------------------------------------ */

static bool knows_unicode(void)
{
    static const char *const name[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *text = "";
    for (size_t i = 0; i < DC_COUNTOF(name) && *text == '\0'; i++)
        text = dc_opts_system(name[i]);
    return strstr(text, "UTF-8") != NULL || strstr(text, "utf8") != NULL ||
           strstr(text, "utf-8") != NULL;
}

static void obey(dc_top_look *look, dc_top_key key, uint32_t clients)
{
    const uint32_t page = look->rows > 12 ? look->rows - 12 : 1;
    switch (key) {
    case DC_TOP_SORT:
        look->sort = look->sort == DC_TOP_BY_NAME ? DC_TOP_BY_TIME : (dc_top_sort)(look->sort + 1);
        break;
    case DC_TOP_PAUSE:
        look->paused = !look->paused;
        break;
    case DC_TOP_KERNELS:
        look->kernels = !look->kernels;
        break;
    case DC_TOP_UP:
        look->scroll -= look->scroll > 0;
        break;
    case DC_TOP_DOWN:
        look->scroll++;
        break;
    case DC_TOP_PAGE_UP:
        look->scroll -= look->scroll > page ? page : look->scroll;
        break;
    case DC_TOP_PAGE_DOWN:
        look->scroll += page;
        break;
    case DC_TOP_NEXT:
        look->selected = (look->selected + 1) % clients;
        break;
    case DC_TOP_NONE:
    case DC_TOP_QUIT:
    case DC_TOP_REDRAW:
        break;
    }
}

static bool show(const asked *a, const dc_top_screen *s, dc_top_look *look)
{
    dc_text frame = {0};
    look->columns = s->columns;
    look->rows = s->rows;
    dc_top_draw(&frame, &a->all, look);
    const bool fine = dc_top_screen_show(&frame);
    dc_text_free(&frame);
    return fine;
}

/* Returns when a key ends it or nobody is left to be watched. */
static bool watch(asked *a, dc_top_screen *s, dc_top_look *look)
{
    const uint64_t interval = (uint64_t)(a->seconds * 1e9);
    uint64_t next = dc_clock_ns() + interval, kept = next;
    bool lives = true;
    while (lives) {
        const uint64_t now = dc_clock_ns();
        if (now >= next && !look->paused) {
            lives = dc_top_ask(&a->all, look->kernels);
            next = dc_clock_ns() + interval;
            kept = next;
        } else if (now >= kept + (look->paused ? KEEP_MS : TIMED_MS) * UINT64_C(1000000)) {
            dc_top_keep(&a->all, look->kernels && !look->paused);
            kept = now;
        }
        if (lives && !show(a, s, look))
            return true;
        const uint64_t most = now + UINT64_C(1000000000),
                       until = look->paused || next > most ? most : next;
        const int ms = until > now ? (int)((until - now) / 1000000 + 1) : 0;
        const dc_top_key key = lives ? dc_top_screen_wait(s, ms) : DC_TOP_NONE;
        if (key == DC_TOP_QUIT)
            return true;
        obey(look, key, a->all.n);
    }
    return false;
}

static int run_screen(asked *a)
{
    dc_top_screen s;
    dc_top_look look = {.colour = *dc_opts_system("NO_COLOR") == '\0',
                        .unicode = knows_unicode(),
                        .kernels = a->kernels,
                        .sort = a->sort};
    if (!dc_top_screen_open(&s))
        return print_lines(a);
    const bool left = watch(a, &s, &look);
    dc_top_screen_close(&s);
    if (!left)
        dc_sayf(stdout, "deepc: process %.0f: %s\n", a->all.at[0].now->pid,
                a->all.at[0].why[0] != '\0' ? a->all.at[0].why : "it has ended");
    return 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

static dc_status run(dc_job *j, void *arg)
{
    asked *a = arg;
    DC_UNUSED(j);
    a->status = 1;
    if (a->what == NULL)
        a->status = list_all(a);
    else if (connect_to(a) && ask_first(a))
        a->status = a->once                                ? print_once(a)
                    : dc_top_screen_is_there() && !a->json ? run_screen(a)
                                                           : print_lines(a);
    return DC_OK;
}

int dc_top_main(int argc, char **argv)
{
    static const dc_opts none;
    const char *bad;
    dc_opts opt;
    dc_job j;
    asked a = {.seconds = 1, .kernels = true, .opt = &opt};
    if (argc == 1 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    dc_opts_init(&opt, &bad);
    if (!read_arguments(&a, argc, argv))
        return 1;
    if (!dc_monitor_known(opt.monitor)) {
        dc_sayf(stderr, "deepc: DEEPC_MONITOR: not 'on', 'off' or the path of a folder, which "
                        "begins with '/'\n");
        return 1;
    }
    dc_job_init(&j, &none, NULL);
    if (dc_protect(&j, run, &a) != DC_OK) {
        fputs("deepc: out of memory\n", stderr);
        a.status = 1;
    }
    dc_job_fini(&j);
    dc_top_close(&a.all);
    return a.status;
}
