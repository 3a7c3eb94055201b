#define _GNU_SOURCE
#include "vm/top_screen.h"

#include "core/base/opt.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* A screen of its own without cursor, and back. */
static const char enter[] = "\033[?1049h\033[?25l\033[2J", leave[] = "\033[0m\033[?25h\033[?1049l";

static bool write_all(const char *text, size_t n)
{
    while (n > 0) {
        const ssize_t k = write(STDOUT_FILENO, text, n);
        if (k < 0 && errno != EINTR)
            return false;
        text += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
    return true;
}

bool dc_top_screen_is_there(void)
{
    const char *term = dc_opts_system("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && *term != '\0' &&
           strcmp(term, "dumb") != 0;
}

void dc_top_screen_size(uint32_t *columns, uint32_t *rows)
{
    struct winsize w = {0};
    const bool told = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0;
    *columns = told && w.ws_col > 0 ? w.ws_col : 80;
    *rows = told && w.ws_row > 0 ? w.ws_row : 24;
}

static void take_over(const dc_top_screen *s)
{
    struct termios t = s->before;
    t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    t.c_cc[VMIN] = 0;
    t.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &t);
    write_all(enter, sizeof enter - 1);
}

static void give_back(const dc_top_screen *s)
{
    write_all(leave, sizeof leave - 1);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
}

bool dc_top_screen_open(dc_top_screen *s)
{
    static const int taken[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
    sigset_t set;
    *s = (dc_top_screen){.signals = -1};
    if (tcgetattr(STDIN_FILENO, &s->before) != 0)
        return false;
    sigemptyset(&set);
    for (size_t i = 0; i < DC_COUNTOF(taken); i++)
        sigaddset(&set, taken[i]);
    sigprocmask(SIG_BLOCK, &set, &s->mask);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signals < 0) {
        sigprocmask(SIG_SETMASK, &s->mask, NULL);
        return false;
    }
    dc_top_screen_size(&s->columns, &s->rows);
    take_over(s);
    return true;
}

void dc_top_screen_close(dc_top_screen *s)
{
    give_back(s);
    close(s->signals);
    if (s->ended_by != 0) {
        signal(s->ended_by, SIG_DFL);
        raise(s->ended_by);
    }
    sigprocmask(SIG_SETMASK, &s->mask, NULL);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* In the background the terminal is another's. */
static void stop(const dc_top_screen *s)
{
    give_back(s);
    raise(SIGSTOP);
    take_over(s);
}

static dc_top_key read_signal(dc_top_screen *s)
{
    struct signalfd_siginfo info;
    if (read(s->signals, &info, sizeof info) != sizeof info)
        return DC_TOP_REDRAW;
    switch (info.ssi_signo) {
    case SIGINT:
        return DC_TOP_QUIT;
    case SIGTSTP:
        stop(s);
        break;
    case SIGCONT:
    case SIGWINCH:
        break;
    default:
        s->ended_by = (int)info.ssi_signo;
        return DC_TOP_QUIT;
    }
    dc_top_screen_size(&s->columns, &s->rows);
    return DC_TOP_REDRAW;
}

static dc_top_key key_of(const char *text)
{
    static const struct {
        const char *text;
        dc_top_key key;
    } known[] = {{"q", DC_TOP_QUIT},
                 {"Q", DC_TOP_QUIT},
                 {"s", DC_TOP_SORT},
                 {"p", DC_TOP_PAUSE},
                 {" ", DC_TOP_PAUSE},
                 {"k", DC_TOP_KERNELS},
                 {"\t", DC_TOP_NEXT},
                 {"\033[A", DC_TOP_UP},
                 {"\033OA", DC_TOP_UP},
                 {"\033[B", DC_TOP_DOWN},
                 {"\033OB", DC_TOP_DOWN},
                 {"\033[5~", DC_TOP_PAGE_UP},
                 {"\033[6~", DC_TOP_PAGE_DOWN},
                 {"\x04", DC_TOP_QUIT}};
    for (size_t i = 0; i < DC_COUNTOF(known); i++)
        if (strcmp(text, known[i].text) == 0)
            return known[i].key;
    return DC_TOP_REDRAW; /* one that is not known */
}

/* Bytes of a key that begins with Escape come together; of others each is one. */
static dc_top_key read_key(dc_top_screen *s)
{
    char text[8];
    size_t n = 0;
    if (read(STDIN_FILENO, text, 1) != 1) {
        s->ended_by = SIGHUP; /* the terminal is gone */
        return DC_TOP_QUIT;
    }
    for (n = 1; text[0] == '\033' && n + 1 < sizeof text; n++) {
        const bool more = read(STDIN_FILENO, text + n, 1) == 1;
        if (!more)
            break;
        if (n >= 2 && text[n] >= '@' && text[n] <= '~') {
            n++;
            break;
        }
    }
    text[n] = '\0';
    return key_of(text);
}

dc_top_key dc_top_screen_wait(dc_top_screen *s, int ms)
{
    struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = s->signals, .events = POLLIN}};
    if (poll(p, 2, ms) <= 0)
        return DC_TOP_NONE;
    return p[1].revents != 0 ? read_signal(s) : read_key(s);
}

/* Each line takes away what stood there, all in one write, so nothing flickers. */
bool dc_top_screen_show(const dc_text *frame)
{
    dc_text t = {0};
    const char *at = frame->s, *end = frame->s + frame->n;
    dc_text_puts(&t, "\033[H\033[K");
    for (const char *line; at < end; at = line + 1) {
        line = memchr(at, '\n', (size_t)(end - at));
        dc_text_put(&t, at, (size_t)((line != NULL ? line : end) - at));
        dc_text_puts(&t, line != NULL ? "\n\033[K" : "");
        if (line == NULL)
            break;
    }
    const bool fine = write_all(t.s, t.n);
    dc_text_free(&t);
    return fine;
}
