/*
 * What is moved in pieces ends between two of them when that is asked for: copies of a device, files, cells. A file is
 * the old one then, a value is the old one or refused.
 */
#define _POSIX_C_SOURCE 200809L
#include "core/base/outfile.h"
#include "core/runtime/storage.h"
#include "formats/infile.h"
#include "formats/ststore.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/unit/folder.h"

enum { PIECES = 3, BYTES = PIECES << 22 /* of DC_PIECE_BYTES */, FILE_PIECE = 1 << 20 };

static dc_rt *rt;
static dc_job *job;
static const dc_type type = {.dtype = DC_U8, .rank = 1, .dim = {BYTES}};

static void ask(bool interrupt, bool insist)
{
    atomic_store(&rt->interrupt, interrupt);
    atomic_store(&rt->insist, insist);
}

static char *filled(size_t n, int byte)
{
    char *p = malloc(n);
    memset(p, byte, n);
    return p;
}

/* How many of n bytes are this one, from the first on. */
static size_t run_of(const char *p, size_t n, int byte)
{
    size_t i = 0;
    while (i < n && p[i] == (char)byte)
        i++;
    return i;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void test_copy(void)
{
    char *from = filled(BYTES, 1), *to = filled(BYTES, 2);
    ask(true, false);
    CHECK_EQ(dc_host_copy(NULL, job, to, from, DC_PIECE_BYTES), DC_OK); /* too short to be asked */
    job->err = (dc_err){0};
    memset(to, 2, BYTES);
    CHECK(dc_host_copy(NULL, job, to, from, BYTES) != DC_OK);
    CHECK_EQ(job->err.id, DC_ERR_INTERRUPTED);
    const bool last_first = to > from;
    CHECK_EQ(run_of(to, BYTES, last_first ? 2 : 1),
             last_first ? BYTES - DC_PIECE_BYTES : DC_PIECE_BYTES);
    CHECK_EQ(dc_host_copy(NULL, NULL, to, from, BYTES), DC_OK);
    CHECK_EQ(run_of(to, BYTES, 1), BYTES);
    free(from);
    free(to);
    ask(false, false);
}

/* Places that overlap, either way. */
static void test_overlap(void)
{
    uint32_t *p = malloc(2 * BYTES);
    enum { N = BYTES / 4, BY = 12345 };
    for (int way = 0; way < 2; way++) {
        uint32_t *from = p + (way == 0 ? BY : 0), *to = p + (way == 0 ? 0 : BY);
        for (uint32_t i = 0; i < N; i++)
            from[i] = i;
        CHECK_EQ(dc_host_copy(NULL, job, to, from, BYTES), DC_OK);
        uint32_t wrong = 0;
        for (uint32_t i = 0; i < N; i++)
            wrong += to[i] != i;
        CHECK_EQ(wrong, 0);
    }
    free(p);
}

/* ---- cells ----------------------------------------------------------------------------------- */

typedef struct writing {
    dc_cell *c;
    dc_tensor *t;
} writing;

static dc_status make_body(dc_job *j, void *arg)
{
    writing *w = arg;
    DC_TRY(dc_cell_new(rt, j, &type, "w", true, &w->c));
    DC_TRY(dc_tensor_new(rt, j, &type, &w->t));
    memset(dc_tensor_mem(w->t), 7, BYTES);
    return DC_OK;
}

static dc_status write_body(dc_job *j, void *arg)
{
    const writing *w = arg;
    return dc_cell_write(w->c, j, w->t);
}

/* What a tensor shows has to be copied first: that changes nothing and ends at once. */
static void test_cell(void)
{
    writing w;
    CHECK_EQ(dc_protect(job, make_body, &w), DC_OK);
    ask(true, false);
    CHECK_EQ(dc_protect(job, write_body, &w), DC_OK); /* not insisted: it goes on to its end */
    CHECK(!w.c->torn && job->cancel == &rt->interrupt);
    CHECK_EQ(run_of(w.c->store->mem, BYTES, 7), BYTES);
    dc_tensor *shown = dc_cell_show(w.c);
    memset(dc_tensor_mem(w.t), 8, BYTES);
    CHECK(dc_protect(job, write_body, &w) != DC_OK);
    CHECK_EQ(job->err.id, DC_ERR_INTERRUPTED);
    CHECK(!w.c->torn && shown->store == w.c->store);
    CHECK_EQ(run_of(w.c->store->mem, BYTES, 7), BYTES);
    dc_tensor_release(shown);
    ask(true, true);
    CHECK(dc_protect(job, write_body, &w) != DC_OK);
    CHECK_EQ(job->err.id, DC_ERR_INTERRUPTED);
    CHECK(w.c->torn);
    ask(false, false);
    CHECK_EQ(dc_protect(job, write_body, &w), DC_OK);
    CHECK(!w.c->torn);
    CHECK_EQ(run_of(w.c->store->mem, BYTES, 8), BYTES);
    dc_tensor_release(w.t);
    dc_cell_release(w.c);
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct putting {
    char *bytes;
    size_t before; /* written when it is asked for; of all of them: by the commit */
} putting;

static dc_status put_body(dc_job *j, void *arg)
{
    const putting *p = arg;
    dc_outfile *f;
    DC_TRY(dc_outfile_open(j, folder_path("old"), &f));
    DC_TRY(dc_outfile_write(f, p->bytes, p->before));
    ask(true, false);
    DC_TRY(dc_outfile_write(f, p->bytes, BYTES - p->before));
    return dc_outfile_commit(f);
}

static dc_status read_body(dc_job *j, void *arg)
{
    struct stat st;
    size_t got;
    int fd;
    DC_TRY(dc_infile_open(j, folder_path("old"), &fd, &st));
    const dc_status status = dc_infile_read(j, "old", fd, 0, arg, BYTES, &got);
    close(fd);
    return status;
}

static void test_file(void)
{
    putting p = {.bytes = filled(BYTES, 3)};
    const size_t before[] = {0, FILE_PIECE, BYTES - 1, BYTES};
    CHECK(folder_put("old", "old"));
    for (size_t i = 0; i < DC_COUNTOF(before); i++) {
        p.before = before[i];
        CHECK(dc_protect(job, put_body, &p) != DC_OK);
        CHECK_EQ(job->err.id, DC_ERR_INTERRUPTED);
        CHECK(folder_has("old", "old"));
        CHECK_EQ(folder_entries(""), 1);
        ask(false, false);
    }
    char *to = filled(BYTES, 4);
    ask(true, false);
    CHECK(dc_protect(job, read_body, to) != DC_OK);
    CHECK_EQ(job->err.id, DC_ERR_INTERRUPTED);
    CHECK_EQ(run_of(to, BYTES, 4), BYTES);
    ask(false, false);
    CHECK_EQ(dc_protect(job, read_body, to), DC_OK);
    free(to);
    free(p.bytes);
}

/* ---- safetensors ----------------------------------------------------------------------------- */

typedef struct saving {
    char *bytes;
    int fetched, asked; /* pieces; so many when it is asked for; 0 never */
} saving;

static dc_status fetch(dc_job *j, void *ctx, uint32_t item, size_t from, size_t n, const void **out)
{
    saving *s = ctx;
    (void)j, (void)item, (void)n;
    *out = s->bytes + from;
    if (++s->fetched == s->asked)
        ask(true, false);
    return DC_OK;
}

static dc_status save_body(dc_job *j, void *arg)
{
    const dc_st_item item[] = {{"a", type, NULL}, {"b", type, NULL}};
    return dc_safetensors_write(j, folder_path("st"), item, 2, NULL, 0, fetch, arg);
}

static dc_status load_body(dc_job *j, void *arg)
{
    dc_st_file *f;
    dc_tensor *t;
    DC_TRY(dc_safetensors_open(j, folder_path("st"), &f));
    dc_safetensors_defer(j, f);
    DC_TRY(dc_tensor_new(rt, j, &type, &t));
    dc_tensor_defer(j, t);
    ask(*(bool *)arg, false);
    return dc_ststore_read(f, j, dc_safetensors_find(f, "b"), t->store);
}

static void test_safetensors(void)
{
    saving s = {.bytes = filled(BYTES, 5)};
    struct stat st;
    bool interrupted = false;
    CHECK_EQ(dc_protect(job, save_body, &s), DC_OK);
    CHECK_EQ(s.fetched, 2 * PIECES);
    CHECK(stat(folder_path("st"), &st) == 0);
    const int files = folder_entries("");
    const ino_t old = st.st_ino;
    for (int i = 1; i <= 2 * PIECES; i++) {
        s.fetched = 0;
        s.asked = i;
        CHECK(dc_protect(job, save_body, &s) != DC_OK);
        CHECK_EQ(job->err.id, DC_ERR_INTERRUPTED);
        CHECK_EQ(s.fetched, i);
        CHECK(stat(folder_path("st"), &st) == 0 && st.st_ino == old);
        CHECK_EQ(folder_entries(""), files);
        ask(false, false);
    }
    CHECK_EQ(dc_protect(job, load_body, &interrupted), DC_OK);
    interrupted = true;
    CHECK(dc_protect(job, load_body, &interrupted) != DC_OK);
    CHECK_EQ(job->err.id, DC_ERR_INTERRUPTED);
    ask(false, false);
    CHECK_EQ(rt->stats.bytes_live, 0);
    free(s.bytes);
}

int main(void)
{
    dc_opts opt;
    const char *bad;
    dc_opts_init(&opt, &bad);
    rt = dc_rt_new(&opt, NULL);
    job = &rt->job;
    dc_rt_set_device(rt, dc_host_device_new(), true);
    if (!CHECK(folder_make()))
        return t_done();
    test_copy();
    test_overlap();
    test_cell();
    test_file();
    test_safetensors();
    CHECK(folder_remove());
    dc_rt_free(rt);
    return t_done();
}
