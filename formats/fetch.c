#define _POSIX_C_SOURCE 200809L
#include "formats/fetch.h"

#include "core/base/file.h"
#include "core/base/number.h"
#include "core/base/outfile.h"
#include "core/base/path.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is used of libcurl.so.4, whose numbers and functions are an ABI. */
enum {
    CURL_WRITEDATA = 10001,
    CURL_URL = 10002,
    CURL_ERRORBUFFER = 10010,
    CURL_USERAGENT = 10018,
    CURL_LOW_SPEED_LIMIT = 19,
    CURL_LOW_SPEED_TIME = 20,
    CURL_FAILONERROR = 45,
    CURL_FOLLOWLOCATION = 52,
    CURL_MAXREDIRS = 68,
    CURL_CONNECTTIMEOUT = 78,
    CURL_NOSIGNAL = 99,
    CURL_PROTOCOLS = 181,
    CURL_REDIR_PROTOCOLS = 182,
    CURL_WRITEFUNCTION = 20011,
    CURL_HTTP_AND_HTTPS = 1 | 2,
    CURL_LENGTH = 0x600000 + 15, /* CURLINFO_CONTENT_LENGTH_DOWNLOAD_T */
    CURL_ERROR_SIZE = 256,
    CURL_MSG_DONE = 1
};

typedef struct curl_message {
    int msg;
    void *easy;
    union {
        void *whatever;
        int result;
    } data;
} curl_message;

typedef struct curl_lib {
    void *handle, *easy, *multi;
    void *(*easy_init)(void);
    int (*setopt)(void *easy, int option, ...);
    int (*getinfo)(void *easy, int info, ...);
    void (*easy_cleanup)(void *easy);
    const char *(*strerror)(int code);
    void *(*multi_init)(void);
    int (*add)(void *multi, void *easy);
    int (*perform)(void *multi, int *running);
    int (*wait)(void *multi, void *extra, unsigned n, int ms, int *ready);
    curl_message *(*read)(void *multi, int *left);
    int (*remove)(void *multi, void *easy);
    int (*multi_cleanup)(void *multi);
} curl_lib;

typedef struct fetching {
    dc_job *job;
    const char *url;
    dc_outfile *f;
    dc_sha256 sha;
    dc_status status; /* of writing */
    uint64_t bytes;
} fetching;

#define fail(f, ...) dc_path_fail((f)->job, DC_ERR_FILE, (f)->url, __VA_ARGS__)

static dc_status take(fetching *f, const void *bytes, size_t n)
{
    dc_sha256_add(&f->sha, bytes, n);
    f->bytes += n;
    return dc_outfile_write(f->f, bytes, n);
}

/* ---- files ------------------------------------------------------------------------------------ */

/* "%20" and its like as bytes. */
static bool unescape(const char *s, char *to)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    for (; *s != '\0'; s++) {
        if (*s != '%') {
            *to++ = *s;
            continue;
        }
        const char *hi = s[1] != '\0' ? strchr(digits, s[1]) : NULL;
        const char *lo = hi != NULL && s[2] != '\0' ? strchr(digits, s[2]) : NULL;
        if (lo == NULL)
            return false;
        *to = (char)((hi - digits) % 16 * 16 + (lo - digits) % 16);
        if (*to++ == '\0')
            return false;
        s += 2;
    }
    *to = '\0';
    return true;
}

static dc_status copy_file(fetching *f)
{
    enum { PIECE = 1 << 16 };
    struct stat st;
    int fd;
    size_t got;
    const char *after = f->url + strlen("file://");
    char *path = dc_arena_alloc(&f->job->scratch, strlen(after) + 1);
    char *piece = dc_arena_alloc(&f->job->scratch, PIECE);
    if (*after != '/' || !unescape(after, path))
        return fail(f,
                    "a URL of a file is file:///path, with %%20 and its like for other characters");
    DC_TRY(dc_infile_open(f->job, path, &fd, &st));
    dc_infile_defer(f->job, fd);
    for (int64_t at = 0;; at += (int64_t)got) {
        DC_TRY(dc_infile_read(f->job, path, fd, at, piece, PIECE, &got));
        if (got == 0)
            return DC_OK;
        DC_TRY(take(f, piece, got));
    }
}

/* ---- the network ------------------------------------------------------------------------------- */

static void close_curl(void *what)
{
    curl_lib *c = what;
    if (c->multi != NULL && c->easy != NULL)
        c->remove(c->multi, c->easy);
    if (c->easy != NULL)
        c->easy_cleanup(c->easy);
    if (c->multi != NULL)
        c->multi_cleanup(c->multi);
    /* The library stays: what it has begun for TLS it does not end. */
}

static bool find(const curl_lib *c, const char *symbol, void *at)
{
    void *found = dlsym(c->handle, symbol);
    memcpy(at, &found, sizeof found);
    return found != NULL;
}

static dc_status open_curl(fetching *f, curl_lib **out)
{
    curl_lib *c = DC_NEW(&f->job->scratch, curl_lib);
    c->handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (c->handle == NULL)
        return fail(f, "needs libcurl (libcurl.so.4; Debian: apt-get install libcurl4)");
    if (!find(c, "curl_easy_init", &c->easy_init) || !find(c, "curl_easy_setopt", &c->setopt) ||
        !find(c, "curl_easy_getinfo", &c->getinfo) ||
        !find(c, "curl_easy_cleanup", &c->easy_cleanup) ||
        !find(c, "curl_easy_strerror", &c->strerror) ||
        !find(c, "curl_multi_init", &c->multi_init) || !find(c, "curl_multi_add_handle", &c->add) ||
        !find(c, "curl_multi_perform", &c->perform) || !find(c, "curl_multi_wait", &c->wait) ||
        !find(c, "curl_multi_info_read", &c->read) ||
        !find(c, "curl_multi_remove_handle", &c->remove) ||
        !find(c, "curl_multi_cleanup", &c->multi_cleanup))
        return fail(f, "libcurl.so.4 is too old");
    dc_job_defer(f->job, close_curl, c);
    c->easy = c->easy_init();
    c->multi = c->multi_init();
    if (c->easy == NULL || c->multi == NULL)
        return dc_fail(f->job, DC_ERR_NOMEM, NULL);
    *out = c;
    return DC_OK;
}

/* Called by libcurl: nothing in it unwinds. */
static size_t on_bytes(char *bytes, size_t size, size_t n, void *arg)
{
    fetching *f = arg;
    if (f->status == DC_OK)
        f->status = take(f, bytes, size * n);
    return f->status == DC_OK ? size * n : 0;
}

static void say_progress(const fetching *f, const curl_lib *c)
{
    char done[DC_NUMBER_TEXT], all[DC_NUMBER_TEXT];
    int64_t length = -1;
    c->getinfo(c->easy, CURL_LENGTH, &length);
    dc_number_bytes(f->bytes, done);
    if (length > 0)
        dc_logf(f->job->log, DC_CH_NOTE, "fetch: %s of %s of %s", done,
                dc_number_bytes((uint64_t)length, all), f->url);
    else
        dc_logf(f->job->log, DC_CH_NOTE, "fetch: %s of %s", done, f->url);
}

static dc_status run(fetching *f, curl_lib *c, const char *why)
{
    enum { SAY_NS = 2000000000, WAIT_MS = 100 };
    int running = 1, ready, left;
    uint64_t said = dc_clock_ns();
    while (running > 0) {
        DC_TRY(dc_job_ended(f->job));
        if (c->perform(c->multi, &running) != 0 ||
            (running > 0 && c->wait(c->multi, NULL, 0, WAIT_MS, &ready) != 0))
            return dc_fail(f->job, DC_ERR_NOMEM, NULL);
        if (dc_clock_ns() - said > SAY_NS) {
            say_progress(f, c);
            said = dc_clock_ns();
        }
    }
    const curl_message *m = c->read(c->multi, &left);
    if (f->status != DC_OK)
        return f->status;
    if (m == NULL || m->msg != CURL_MSG_DONE)
        return fail(f, "cannot be fetched");
    return m->data.result == 0
               ? DC_OK
               : fail(f, "cannot be fetched: %s", *why != '\0' ? why : c->strerror(m->data.result));
}

static dc_status fetch_net(fetching *f)
{
    curl_lib *c = NULL;
    char *why = dc_arena_alloc(&f->job->scratch, CURL_ERROR_SIZE);
    DC_TRY(open_curl(f, &c));
    c->setopt(c->easy, CURL_URL, f->url);
    c->setopt(c->easy, CURL_ERRORBUFFER, why);
    c->setopt(c->easy, CURL_WRITEFUNCTION, on_bytes);
    c->setopt(c->easy, CURL_WRITEDATA, (void *)f);
    c->setopt(c->easy, CURL_USERAGENT, "deepc");
    c->setopt(c->easy, CURL_FAILONERROR, 1L);
    c->setopt(c->easy, CURL_FOLLOWLOCATION, 1L);
    c->setopt(c->easy, CURL_MAXREDIRS, 10L);
    c->setopt(c->easy, CURL_PROTOCOLS, (long)CURL_HTTP_AND_HTTPS);
    c->setopt(c->easy, CURL_REDIR_PROTOCOLS, (long)CURL_HTTP_AND_HTTPS);
    c->setopt(c->easy, CURL_NOSIGNAL, 1L);
    c->setopt(c->easy, CURL_CONNECTTIMEOUT, 30L);
    c->setopt(c->easy, CURL_LOW_SPEED_LIMIT, 100L);
    c->setopt(c->easy, CURL_LOW_SPEED_TIME, 60L);
    if (c->add(c->multi, c->easy) != 0)
        return dc_fail(f->job, DC_ERR_NOMEM, NULL);
    const dc_status status = run(f, c, why);
    dc_job_keep(f->job, c);
    close_curl(c); /* before what it writes to is gone */
    return status;
}

static dc_status fetch_with(fetching *f)
{
    if (strncmp(f->url, "file://", 7) == 0)
        return copy_file(f);
    if (strncmp(f->url, "http://", 7) != 0 && strncmp(f->url, "https://", 8) != 0)
        return dc_path_fail(f->job, DC_ERR_FILE, f->url,
                            "a URL begins with https://, http:// or file://");
    if (f->job->folders != NULL)
        return dc_path_fail(f->job, DC_ERR_ALLOW, f->url, "no network may be used here");
    return fetch_net(f);
}

dc_status dc_fetch(dc_job *j, const char *url, const char *path, const char *sha256)
{
    fetching *f = DC_NEW(&j->scratch, fetching);
    char digest[DC_SHA256_TEXT];
    f->job = j;
    f->url = url;
    dc_sha256_init(&f->sha);
    DC_TRY(dc_path_allow(j, url));
    DC_TRY(dc_outfile_open(j, path, &f->f));
    DC_TRY(fetch_with(f));
    dc_sha256_end(&f->sha, digest);
    if (sha256 != NULL && strcmp(sha256, digest) != 0)
        return dc_path_fail(j, DC_ERR_FORMAT, url, "its SHA-256 is %s, not %s", digest, sha256);
    return dc_outfile_commit(f->f);
}

dc_status dc_fetch_digest(dc_job *j, const char *path, bool *there, char out[DC_SHA256_TEXT])
{
    enum { PIECE = 1 << 16 };
    struct stat st;
    dc_sha256 sha;
    int fd;
    size_t got;
    DC_TRY(dc_path_exists(j, DC_FOLDER_READ, path, there));
    if (!*there)
        return DC_OK;
    char *piece = dc_arena_alloc(&j->scratch, PIECE);
    DC_TRY(dc_infile_open(j, path, &fd, &st));
    dc_infile_defer(j, fd);
    dc_sha256_init(&sha);
    for (int64_t at = 0;; at += (int64_t)got) {
        DC_TRY(dc_infile_read(j, path, fd, at, piece, PIECE, &got));
        if (got == 0)
            break;
        dc_sha256_add(&sha, piece, got);
    }
    dc_sha256_end(&sha, out);
    return DC_OK;
}

dc_status dc_fetch_folder(dc_job *j, const char **out)
{
    const char *base = dc_opts_system("XDG_CACHE_HOME"), *home = dc_opts_system("HOME");
    *out = "";
    DC_TRY(dc_path_allow(j, "the folder for caches"));
    if (j->folders != NULL) /* a sandbox sees no environment */
        return dc_path_fail(j, DC_ERR_ALLOW, "the folder for caches",
                            "it is not to be used here, cache = ... names another");
    if (*base != '/' && *home != '/')
        return DC_OK;
    char *path = *base == '/' ? dc_arena_printf(&j->scratch, "%s/deepc/data", base)
                              : dc_arena_printf(&j->scratch, "%s/.cache/deepc/data", home);
    dc_file_make_folders(path);
    *out = path;
    return DC_OK;
}
