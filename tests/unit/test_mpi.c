/*
 * backends/mpi/engine.c over a library whose numbers are wrong, and beside ranks that lie: each is a failure with a sentence,
 * before anything is indexed with it.
 */
#define _DEFAULT_SOURCE
#include "backends/mpi/mpi_impl.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/t.h"

enum { ALL = 1, LOCAL = 2, SIZE = 4, TEXT = 256 };

/* What is said next. */
typedef struct lie {
    int rank, size, me, nlocal;
    int first[SIZE];
    bool endless;  /* names have no end */
    int64_t wants; /* what the other rank of this host wants: so much more */
    int received;  /* bytes of a message */
} lie;

static const lie honest = {.size = SIZE, .nlocal = 2, .first = {0, 0, 2, 2}};
static lie now;
static char other_name[48];

/* ---- the library ------------------------------------------------------------------------------ */

static int initialized(int *flag)
{
    *flag = 1;
    return 0;
}

static int finalized(int *flag)
{
    *flag = 0;
    return 0;
}

static int query_thread(int *level)
{
    *level = 3;
    return 0;
}

static int comm_dup(mpi_handle comm, mpi_handle *out)
{
    DC_UNUSED(comm);
    *out = ALL;
    return 0;
}

static int comm_split(mpi_handle comm, int type, int key, mpi_handle info, mpi_handle *out)
{
    DC_UNUSED(comm), DC_UNUSED(type), DC_UNUSED(key), DC_UNUSED(info);
    *out = LOCAL;
    return 0;
}

static int set_errhandler(mpi_handle comm, mpi_handle handler)
{
    DC_UNUSED(comm), DC_UNUSED(handler);
    return 0;
}

static int comm_rank(mpi_handle comm, int *rank)
{
    *rank = comm == ALL ? now.rank : now.me;
    return 0;
}

static int comm_size(mpi_handle comm, int *size)
{
    *size = comm == ALL ? now.size : now.nlocal;
    return 0;
}

static int processor_name(char *name, int *n)
{
    strcpy(name, "here");
    *n = 4;
    return 0;
}

/* The other rank of this host says what this one does, but for what is a lie. */
static void gather_offers(const char *from, char *to, size_t n)
{
    int64_t bytes;
    memcpy(to, from, n);
    memcpy(to + n, from, n);
    char *other = now.me == 0 ? to + n : to;
    if (now.me == 1)
        memcpy(other, other_name, sizeof other_name);
    memcpy(&bytes, other + 48, sizeof bytes);
    bytes += now.wants;
    memcpy(other + 48, &bytes, sizeof bytes);
}

static int allgather(const void *from, int n, mpi_handle type, void *to, int nto,
                     mpi_handle type_to, mpi_handle comm)
{
    DC_UNUSED(type), DC_UNUSED(nto), DC_UNUSED(type_to);
    if (comm == ALL && n == sizeof(int))
        memcpy(to, now.first, (size_t)now.size * sizeof(int));
    else if (comm == ALL)
        memset(to, now.endless ? 'x' : 0, (size_t)now.size * TEXT);
    else if (n == sizeof(int))
        memset(to, 0, (size_t)now.nlocal * sizeof(int));
    else
        gather_offers(from, to, (size_t)n);
    return 0;
}

static int irecv(void *to, int n, mpi_handle type, int rank, int tag, mpi_handle comm,
                 mpi_handle *request)
{
    DC_UNUSED(type), DC_UNUSED(rank), DC_UNUSED(tag), DC_UNUSED(comm);
    memset(to, 'y', (size_t)(now.received < n ? now.received > 0 ? now.received : 0 : n));
    *request = 5;
    return 0;
}

static int isend(const void *from, int n, mpi_handle type, int rank, int tag, mpi_handle comm,
                 mpi_handle *request)
{
    DC_UNUSED(from), DC_UNUSED(n), DC_UNUSED(type), DC_UNUSED(rank), DC_UNUSED(tag),
        DC_UNUSED(comm);
    *request = 6;
    return 0;
}

static int test(mpi_handle *request, int *flag, void *status)
{
    DC_UNUSED(request);
    memcpy(status, &now.received, sizeof now.received);
    *flag = 1;
    return 0;
}

static int get_count(const void *status, mpi_handle type, int *n)
{
    DC_UNUSED(type);
    memcpy(n, status, sizeof *n);
    return 0;
}

static int error_string(int code, char *text, int *n)
{
    *n = snprintf(text, 512, "code %d", code);
    return 0;
}

static dc_engine *engine_of(const lie *what)
{
    dc_mpi_lib lib = {.name = "libmpi.so.40"};
    const dc_mpi_launch by = {.name = "mpirun"};
    now = *what;
    lib.fn.Initialized = initialized;
    lib.fn.Finalized = finalized;
    lib.fn.Query_thread = query_thread;
    lib.fn.Comm_dup = comm_dup;
    lib.fn.Comm_split_type = comm_split;
    lib.fn.Comm_set_errhandler = set_errhandler;
    lib.fn.Comm_rank = comm_rank;
    lib.fn.Comm_size = comm_size;
    lib.fn.Get_processor_name = processor_name;
    lib.fn.Allgather = allgather;
    lib.fn.Irecv = irecv;
    lib.fn.Isend = isend;
    lib.fn.Test = test;
    lib.fn.Get_count = get_count;
    lib.fn.Error_string = error_string;
    lib.is.THREAD_SERIALIZED = 2;
    return dc_mpi_engine_new(&lib, &by, false);
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void check_why(const dc_engine *e, const char *words)
{
    if (!CHECK(strstr(e->why, words) != NULL))
        printf("'%s' instead of '%s'\n", e->why, words);
}

static void refused(const lie *what, const char *words)
{
    dc_engine *e = engine_of(what);
    CHECK(!e->ops->open(e));
    check_why(e, words);
    e->ops->close(e, false);
}

static void test_open(void)
{
    static const int ranks[][2] = {{4, 4}, {-1, 4}, {0, 0}, {0, -3}, {INT_MAX, 4}, {INT_MIN, 4}};
    static const int firsts[][2] = {{0, 1}, {0, -1}, {1, 2}, {1, INT_MAX}, {1, INT_MIN}, {3, 1}};
    dc_engine *e = engine_of(&honest);
    CHECK(e->ops->open(e) && e->size == SIZE);
    CHECK(e->host[0] == 0 && e->host[1] == 0 && e->host[2] == 1 && e->host[3] == 1);
    e->ops->close(e, false);
    for (size_t i = 0; i < DC_COUNTOF(ranks); i++) {
        lie l = honest;
        l.rank = ranks[i][0];
        l.size = ranks[i][1];
        refused(&l, "libmpi.so.40 says that this is rank ");
    }
    for (size_t i = 0; i < DC_COUNTOF(firsts); i++) {
        lie l = honest;
        l.first[firsts[i][0]] = firsts[i][1];
        refused(&l, "is the first of its host, which cannot be");
    }
    for (int n = -1; n <= SIZE + 1; n += SIZE / 2 + 1) {
        lie l = honest;
        l.nlocal = n;
        if (n < 1 || n > SIZE)
            refused(&l, "this host has more ranks than there are");
    }
    lie l = honest;
    l.endless = true;
    e = engine_of(&l);
    CHECK(e->ops->open(e) && strlen(e->name[SIZE - 1]) == TEXT - 1);
    e->ops->close(e, false);
}

/* Memory that another rank has made, of so many bytes. */
static void make_other(size_t bytes, bool endless)
{
    memset(other_name, endless ? 'x' : 0, sizeof other_name);
    if (endless)
        return;
    snprintf(other_name, sizeof other_name, "/deepc-test-mpi-%d", (int)getpid());
    const int file = shm_open(other_name, O_CREAT | O_RDWR, 0600);
    CHECK(file >= 0 && ftruncate(file, (off_t)bytes) == 0);
    close(file);
}

static void segment(const lie *what, const char *words)
{
    enum { BYTES = 1 << 16 };
    dc_engine *e = engine_of(what);
    CHECK(e->ops->open(e));
    char *at = e->ops->segment(e, BYTES);
    if (words == NULL)
        CHECK(at != NULL && at[BYTES - 1] == 0);
    else if (CHECK(at == NULL))
        check_why(e, words);
    e->ops->close(e, false);
}

static void test_segment(void)
{
    static const int places[][2] = {{2, 2}, {-1, 2}, {0, 0}, {0, SIZE + 1}, {INT_MIN, -1}};
    lie l = honest;
    segment(&l, NULL);
    l.wants = -4096;
    segment(&l, "different versions of deepc");
    l = honest;
    l.me = l.rank = 1;
    make_other(1 << 16, false);
    segment(&l, NULL);
    l.wants = INT64_MAX / 2;
    segment(&l, "different versions of deepc");
    l.wants = 0;
    make_other(4096, false); /* its end would be a fault */
    segment(&l, "is not to be had");
    shm_unlink(other_name);
    make_other(0, true);
    segment(&l, "is not to be had");
    for (size_t i = 0; i < DC_COUNTOF(places); i++) {
        dc_engine *e = engine_of(&honest);
        CHECK(e->ops->open(e));
        now.me = places[i][0];
        now.nlocal = places[i][1];
        CHECK(e->ops->segment(e, 4096) == NULL);
        check_why(e, "MPI does not say which ranks this host has");
        e->ops->close(e, false);
    }
}

/* A message that is shorter than what both have agreed on would leave old bytes in the place of values. */
static void test_messages(void)
{
    static const int got[] = {0, 99, 101, -1, INT_MIN, INT_MAX};
    char to[100];
    bool done = false;
    dc_request r;
    lie l = honest;
    l.received = 100;
    dc_engine *e = engine_of(&l);
    CHECK(e->ops->open(e));
    CHECK(e->ops->recv(e, 1, DC_TAG_DATA, to, sizeof to, &r) && e->ops->test(e, &r, &done) && done);
    for (size_t i = 0; i < DC_COUNTOF(got); i++) {
        now.received = got[i];
        CHECK(e->ops->recv(e, 1, DC_TAG_DATA, to, sizeof to, &r));
        CHECK(!e->ops->test(e, &r, &done));
        check_why(e, " bytes, not 100");
        CHECK(e->ops->send(e, 1, DC_TAG_DATA, to, sizeof to, &r)); /* of which nothing is said */
        CHECK(e->ops->test(e, &r, &done) && done);
    }
    e->ops->close(e, false);
}

int main(void)
{
    test_open();
    test_segment();
    test_messages();
    return t_done();
}
