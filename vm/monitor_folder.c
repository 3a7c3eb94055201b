#define _GNU_SOURCE /* struct ucred */
#include "vm/monitor_folder.h"

#include "core/base/digits.h"
#include "core/base/opt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 16, MOST = 1000 /* contexts of a process */ };

bool dc_monitor_known(const char *setting)
{
    return strcmp(setting, "on") == 0 || strcmp(setting, "off") == 0 || setting[0] == '/';
}

/* ---- folders --------------------------------------------------------------------------------- */

/* The one of this number; false: there are no more. Of others than this user, what systemd gives them. */
static bool name_folder(const char *setting, uid_t user, int which, char *out, size_t size)
{
    const bool mine = user == geteuid();
    const char *run = mine ? dc_opts_system("XDG_RUNTIME_DIR") : "";
    if (setting[0] == '/') {
        snprintf(out, size, "%s", setting);
        return which == 0;
    }
    const bool two = !mine || (run[0] == '/' && strlen(run) < size - sizeof "/deepc");
    if (which == 0 && two && mine)
        snprintf(out, size, "%s/deepc", run);
    else if (which == 0 && two)
        snprintf(out, size, "/run/user/%u/deepc", (unsigned)user);
    else
        snprintf(out, size, "/tmp/deepc-%u", (unsigned)user);
    return which <= two;
}

static bool refuse(char *why, const char *path, const char *text)
{
    snprintf(why, DC_MONITOR_WHY, "%s: %s", path, text);
    return false;
}

static bool open_one(dc_monitor_folder *f, uid_t user, bool make, char *why)
{
    struct stat s;
    char text[80];
    if (make && mkdir(f->path, 0700) != 0 && errno != EEXIST)
        return refuse(why, f->path, strerror(errno));
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f->fd < 0 && errno == ENOENT && !make)
        return false; /* nobody has made it */
    if (f->fd < 0)
        return refuse(why, f->path,
                      errno == ELOOP || errno == ENOTDIR ? "no folder, or a symbolic link to one"
                                                         : strerror(errno));
    if (fstat(f->fd, &s) == 0 && s.st_uid == user && (s.st_mode & 077) == 0)
        return true;
    snprintf(text, sizeof text, "is open to others (mode %o); it has to have mode 700",
             (unsigned)(s.st_mode & 0777));
    close(f->fd);
    return refuse(why, f->path, s.st_uid != user ? "belongs to another user" : text);
}

bool dc_monitor_folder_open(const char *setting, uid_t user, bool make, int *which,
                            dc_monitor_folder *out, char why[DC_MONITOR_WHY])
{
    why[0] = '\0';
    while (name_folder(setting, user, (*which)++, out->path, sizeof out->path))
        if (open_one(out, user, make, why))
            return true;
    return false;
}

void dc_monitor_folder_close(dc_monitor_folder *f)
{
    close(f->fd);
}

bool dc_monitor_file(const char *name, int *process, int *number)
{
    char first[DC_MONITOR_FILE];
    uint64_t p, n;
    const char *dash = strchr(name, '-');
    if (dash == NULL || (size_t)(dash - name) >= sizeof first)
        return false;
    snprintf(first, sizeof first, "%.*s", (int)(dash - name), name);
    if (!dc_digits_whole(first, INT_MAX, &p) || !dc_digits_whole(dash + 1, MOST, &n))
        return false;
    *process = (int)p;
    *number = (int)n;
    return true;
}

void dc_monitor_folder_each(const dc_monitor_folder *f,
                            void (*see)(void *ctx, const char *name, int process, int number),
                            void *ctx)
{
    int process, number;
    const int copy = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    if (d == NULL && copy >= 0)
        close(copy);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (dc_monitor_file(e->d_name, &process, &number))
            see(ctx, e->d_name, process, number);
    if (d != NULL)
        closedir(d);
}

/* ---- sockets --------------------------------------------------------------------------------- */

/* Through the descriptor, where the system shows it: paths of sockets have room for 107 bytes. */
static bool address_of(const dc_monitor_folder *f, const char *file, struct sockaddr_un *a)
{
    char at[DC_MONITOR_PATH + DC_MONITOR_FILE];
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(at, sizeof at, "/proc/self/fd/%d", f->fd);
    if (access(at, X_OK) == 0)
        snprintf(at, sizeof at, "/proc/self/fd/%d/%s", f->fd, file);
    else
        snprintf(at, sizeof at, "%s/%s", f->path, file);
    if (strlen(at) >= sizeof a->sun_path)
        return false;
    memcpy(a->sun_path, at, strlen(at) + 1);
    return true;
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

bool dc_monitor_peer(int fd, uid_t *user, pid_t *process)
{
    struct ucred c;
    socklen_t size = sizeof c;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &size) != 0)
        return false;
    *user = c.uid;
    *process = c.pid;
    return true;
}

void dc_monitor_unlink(const dc_monitor_folder *f, const char *file)
{
    struct stat s;
    if (fstatat(f->fd, file, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(s.st_mode))
        unlinkat(f->fd, file, 0);
}

/* Nobody listens; or a child that a process left behind does, which never answers. */
static bool is_dead(int fd, int failed)
{
    uid_t user;
    pid_t process;
    if (failed != 0)
        return failed == ECONNREFUSED;
    return dc_monitor_peer(fd, &user, &process) && process > 0 && kill(process, 0) != 0 &&
           errno == ESRCH;
}

/* NULL: connected. `dead`: the process is no more. */
static const char *connect_to(int fd, const dc_monitor_folder *f, const char *file, uid_t user,
                              bool *dead)
{
    struct sockaddr_un a;
    struct stat s;
    uid_t owner;
    pid_t process;
    if (fstatat(f->fd, file, &s, AT_SYMLINK_NOFOLLOW) != 0)
        return strerror(errno);
    if (!S_ISSOCK(s.st_mode)) /* connect() refuses it as it does sockets of the dead */
        return "is no socket";
    if (!address_of(f, file, &a))
        return "the path is too long";
    const int failed = connect(fd, (const struct sockaddr *)&a, sizeof a) == 0 ? 0 : errno;
    *dead = is_dead(fd, failed);
    if (*dead)
        return "the process has ended";
    if (failed != 0)
        return failed == EAGAIN ? "too many ask at once" : strerror(failed);
    const bool ours =
        dc_monitor_peer(fd, &owner, &process) && (owner == user || owner == geteuid());
    return ours ? NULL : "belongs to another user";
}

int dc_monitor_connect(const dc_monitor_folder *f, const char *file, uid_t user, bool tidy,
                       char why[DC_MONITOR_WHY])
{
    int process, number;
    bool dead = false;
    const int fd = new_socket();
    const char *bad = fd < 0 ? strerror(errno) : connect_to(fd, f, file, user, &dead);
    if (bad == NULL)
        return fd;
    snprintf(why, DC_MONITOR_WHY, "%s/%s: %s", f->path, file, bad);
    if (fd >= 0)
        close(fd);
    if (dead && tidy && dc_monitor_file(file, &process, &number))
        dc_monitor_unlink(f, file);
    return -1;
}

/* The name under which it was bound becomes one that no living context has: others see it only when it listens. */
static bool publish(const dc_monitor_folder *f, const char *bound, char *file, char *why)
{
    for (int number = 1; number <= MOST; number++) {
        snprintf(file, DC_MONITOR_FILE, "%d-%d", (int)getpid(), number);
        for (int try = 0; try < 2; try++) {
            if (linkat(f->fd, bound, f->fd, file, 0) == 0)
                return true;
            if (errno != EEXIST)
                return refuse(why, f->path, strerror(errno));
            const int other = dc_monitor_connect(f, file, geteuid(), true, why);
            if (other >= 0) { /* it lives */
                close(other);
                break;
            }
        }
    }
    return refuse(why, f->path, "too many contexts of this process are watched");
}

int dc_monitor_listen(const dc_monitor_folder *f, char file[DC_MONITOR_FILE],
                      char why[DC_MONITOR_WHY])
{
    struct sockaddr_un a;
    char bound[DC_MONITOR_FILE];
    const int fd = new_socket();
    snprintf(bound, sizeof bound, ".%d-%d", (int)getpid(), (int)gettid());
    dc_monitor_unlink(f, bound);
    bool fine = fd >= 0 && address_of(f, bound, &a);
    if (!fine)
        refuse(why, f->path, fd < 0 ? strerror(errno) : "the path is too long");
    else if (bind(fd, (const struct sockaddr *)&a, sizeof a) != 0 || listen(fd, BACKLOG) != 0)
        fine = refuse(why, f->path, strerror(errno));
    fine = fine && publish(f, bound, file, why);
    dc_monitor_unlink(f, bound);
    if (!fine && fd >= 0)
        close(fd);
    return fine ? fd : -1;
}
