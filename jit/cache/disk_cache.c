/*
 * Entries of the cache on disk (jit/cache/disk_cache.h), and the thread that writes them. A file is a header,
 * then the data:
 *
 *   magic    8 bytes, with the version of this layout
 *   check    digest of all that follows
 *   key      of the entry; its file is named after it
 *   toolchain    the compiler that made it; 0 where there was none
 *   bytes    of the data
 *
 * Numbers lie as the machine has them: keys contain the target.
 */
#define _POSIX_C_SOURCE 200809L
#include "jit/cache/disk_cache.h"

#include "core/base/blake2.h"
#include "core/base/thread.h"
#include "jit/cache/cache_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct header {
    char magic[8];
    uint64_t check[2];
    dc_cache_key key;
    dc_cache_maker toolchain;
    uint64_t bytes;
} header;

static const char magic[8] = "deepc-\0\2";

/* Something to be written. */
typedef struct pending {
    struct pending *next;
    header head;
    char data[];
} pending;

struct dc_cache {
    char path[1024];
    uint64_t most; /* bytes of all files */
    pthread_mutex_t lock;
    pthread_cond_t wake, idle; /* of the writer; of threads that wait for it */
    int dir;                   /* -1 none */
    bool opened;               /* or tried to */
    bool writing, stop, started;
    bool full; /* a file could not be written: no others are tried */
    pending *first, *last;
    pthread_t writer;
    uint64_t bytes;       /* of all files, once the writer has counted them */
    dc_cache_maker toolchain; /* once the device was asked */
    bool asked;
};

/* ---- digests --------------------------------------------------------------------------------- */

enum { NAME = 2 * 16 + 8 };

static void digest(uint64_t h[2], const void *data, size_t n)
{
    const char *at = data;
    uint64_t v;
    h[0] ^= n;
    for (; n >= 8; n -= 8, at += 8) {
        memcpy(&v, at, 8);
        h[0] = dc_hash_mix(h[0], v);
        h[1] = dc_hash_mix(h[1] ^ h[0] >> 7, ~v);
    }
    v = 0;
    memcpy(&v, at, n);
    h[0] = dc_hash_mix(h[0], v);
    h[1] = dc_hash_mix(h[1] ^ h[0] >> 7, ~v);
}

dc_cache_key dc_cache_key_of(const char *text, size_t n)
{
    dc_cache_key key;
    dc_blake2(text, n, key.word);
    return key;
}

static void name_of(dc_cache_key key, char *name)
{
    snprintf(name, NAME, "%016" PRIx64 "%016" PRIx64 ".dco", key.word[0], key.word[1]);
}

static void checksum(const header *h, const void *data, uint64_t check[2])
{
    const size_t from = offsetof(header, key);
    check[0] = UINT64_C(0x3c6ef372fe94f82b);
    check[1] = UINT64_C(0xa54ff53a5f1d36f1);
    digest(check, (const char *)h + from, sizeof *h - from);
    digest(check, data, h->bytes);
}

/* ---- the folder ------------------------------------------------------------------------------ */

dc_cache *dc_cache_new(const dc_opts *opt)
{
    char path[sizeof((dc_cache *)0)->path];
    if (!dc_cache_folder_place(opt, path, sizeof path))
        return NULL;
    dc_cache *c = dc_xalloc(sizeof *c);
    memcpy(c->path, path, sizeof path);
    c->most = (uint64_t)opt->cache_size << 20;
    c->dir = -1;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    pthread_cond_init(&c->idle, NULL);
    return c;
}

/* The folder, opened at the first use; one line when it is refused. */
static int folder_of(dc_cache *c, dc_job *j)
{
    char why[200] = "";
    pthread_mutex_lock(&c->lock);
    if (!c->opened)
        c->dir = dc_cache_folder_open(c->path, true, why, sizeof why);
    c->opened = true;
    const int dir = c->dir;
    pthread_mutex_unlock(&c->lock);
    if (why[0] != '\0')
        dc_logf(j->log, DC_CH_NOTE, "cache: %s is not used: %s", c->path, why);
    return dir;
}

bool dc_cache_maker_known(dc_cache_maker m)
{
    return m.word[0] != 0 || m.word[1] != 0;
}

/* Two that are the first ask both and find the same. Nothing may unwind while the lock is held. */
dc_cache_maker dc_cache_maker_of(dc_cache *c, dc_job *j, dc_device *d)
{
    pthread_mutex_lock(&c->lock);
    const bool asked = c->asked;
    dc_cache_maker m = c->toolchain;
    pthread_mutex_unlock(&c->lock);
    if (asked) /* it stays as it is */
        return m;
    dc_text *text = dc_job_text(j);
    m = d->ops->toolchain(d, text) ? dc_cache_key_of(text->s, text->n) : (dc_cache_maker){{0, 0}};
    dc_job_text_end(j, text);
    pthread_mutex_lock(&c->lock);
    if (!c->asked)
        c->toolchain = m;
    m = c->toolchain;
    c->asked = true;
    pthread_mutex_unlock(&c->lock);
    return m;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* What is wrong with it, or NULL. */
static const char *judge(const char *file, size_t bytes, dc_cache_key key, dc_cache_maker toolchain)
{
    header h;
    uint64_t check[2];
    if (bytes < sizeof h)
        return "it ends too early";
    memcpy(&h, file, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0)
        return "it is of another kind";
    if (h.bytes != bytes - sizeof h)
        return "its length is wrong";
    if (memcmp(&h.key, &key, sizeof key) != 0)
        return "it is of another program";
    if (dc_cache_maker_known(toolchain) && memcmp(&h.toolchain, &toolchain, sizeof toolchain) != 0)
        return "another compiler made it";
    checksum(&h, file + sizeof h, check);
    return memcmp(check, h.check, sizeof check) != 0 ? "its checksum is wrong" : NULL;
}

static bool find(dc_cache *c, dc_job *j, dc_cache_key key, dc_cache_maker toolchain, bool optional,
                 const void **data, size_t *bytes)
{
    char name[NAME];
    size_t n;
    const int dir = folder_of(c, j);
    name_of(key, name);
    char *file = dir >= 0 ? dc_cache_folder_read(dir, name, &n) : NULL;
    if (file == NULL) {
        if (!optional)
            dc_logf(j->log, DC_CH_CACHE, "%s: not there", name);
        return false;
    }
    const char *wrong = judge(file, n, key, toolchain);
    dc_logf(j->log, DC_CH_CACHE, "%s: %s", name, wrong != NULL ? wrong : "found");
    if (wrong == NULL) {
        dc_job_defer(j, dc_xfree, file); /* the next line may unwind */
        *bytes = n - sizeof(header);
        *data = memcpy(dc_arena_alloc(&j->scratch, *bytes + 1), file + sizeof(header), *bytes);
        dc_job_keep(j, file);
    }
    dc_xfree(file);
    return wrong == NULL;
}

bool dc_cache_find(dc_cache *c, dc_job *j, dc_cache_key key, dc_cache_maker toolchain,
                   const void **data, size_t *bytes)
{
    return find(c, j, key, toolchain, false, data, bytes);
}

bool dc_cache_find_optional(dc_cache *c, dc_job *j, dc_cache_key key, dc_cache_maker toolchain,
                            const void **data, size_t *bytes)
{
    return find(c, j, key, toolchain, true, data, bytes);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_one(dc_cache *c, const pending *p)
{
    char name[NAME];
    name_of(p->head.key, name);
    if (c->bytes == 0)
        c->bytes = dc_cache_folder_measure(c->dir).bytes;
    if (!dc_cache_folder_write(c->dir, name, &p->head, sizeof p->head, p->data, p->head.bytes)) {
        c->full = true;
        return;
    }
    c->bytes += dc_cache_folder_bytes(sizeof p->head + p->head.bytes);
    if (c->bytes > c->most)
        c->bytes = dc_cache_folder_trim(c->dir, c->most - c->most / 4).bytes;
}

static void *write_all(void *arg)
{
    dc_cache *c = arg;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        pending *p = c->first;
        if (p == NULL && c->stop)
            break;
        if (p == NULL) {
            c->writing = false;
            pthread_cond_broadcast(&c->idle);
            pthread_cond_wait(&c->wake, &c->lock);
            continue;
        }
        c->writing = true;
        c->first = p->next;
        pthread_mutex_unlock(&c->lock);
        if (!c->full)
            write_one(c, p);
        dc_xfree(p);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* With the lock. */
static void start_writer(dc_cache *c)
{
    c->started = dc_thread_start(&c->writer, "deepc cache", 0, write_all, c);
}

void dc_cache_store(dc_cache *c, dc_job *j, dc_cache_key key, dc_cache_maker toolchain,
                    const void *data, size_t bytes)
{
    pending *p = NULL;
    if (folder_of(c, j) < 0 || bytes > c->most / 4)
        return;
    p = dc_try_alloc(sizeof *p + bytes);
    if (p == NULL)
        return;
    *p = (pending){.head = {.key = key, .toolchain = toolchain, .bytes = bytes}};
    memcpy(p->head.magic, magic, sizeof magic);
    memcpy(p->data, data, bytes);
    checksum(&p->head, p->data, p->head.check);
    pthread_mutex_lock(&c->lock);
    if (!c->started)
        start_writer(c);
    if (c->started) {
        *(c->first != NULL ? &c->last->next : &c->first) = p;
        c->last = p;
        c->writing = true;
        p = NULL;
        pthread_cond_signal(&c->wake);
    }
    pthread_mutex_unlock(&c->lock);
    dc_xfree(p);
}

void dc_cache_flush(dc_cache *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    while (c->started && c->writing)
        pthread_cond_wait(&c->idle, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

void dc_cache_free(dc_cache *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    if (c->started)
        pthread_join(c->writer, NULL);
    if (c->dir >= 0)
        close(c->dir);
    pthread_cond_destroy(&c->wake);
    pthread_cond_destroy(&c->idle);
    pthread_mutex_destroy(&c->lock);
    dc_xfree(c);
}

/* ---- looking --------------------------------------------------------------------------------- */

void dc_cache_look(const dc_opts *opt, bool clear, dc_cache_report *out)
{
    *out = (dc_cache_report){.most = (uint64_t)opt->cache_size << 20};
    if (!dc_cache_folder_place(opt, out->path, sizeof out->path)) {
        out->path[0] = '\0';
        return;
    }
    const int dir = dc_cache_folder_open(out->path, false, out->why, sizeof out->why);
    if (dir < 0)
        return;
    const dc_cachedir_use use = clear ? dc_cache_folder_trim(dir, 0) : dc_cache_folder_measure(dir);
    out->bytes = use.bytes;
    out->files = use.files;
    close(dir);
}
