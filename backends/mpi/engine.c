/*
 * MPI as an engine of core/world: messages are MPI's, memory of a host is POSIX shared memory, whose name is gone before
 * anything can fail, so that nothing is left behind by a process that is killed.
 */
#define _DEFAULT_SOURCE /* shm_open, ftruncate */
#include "backends/mpi/mpi_impl.h"
#include "core/base/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    NAME = 256,  /* of a host: the most of all libraries */
    REST_MS = 30 /* before the end */
};

typedef struct engine {
    dc_engine base;
    dc_mpi_lib lib;
    dc_mpi_launch by;
    bool apart;
    bool began;            /* MPI: by us, to be ended by us */
    mpi_handle all, local; /* communicators; those of this host */
    int *host;
    const char **name;
    char (*text)[NAME];
    void *segment;
    size_t segment_bytes;
} engine;

static engine *of(dc_engine *e)
{
    return (engine *)e;
}

/* MPI's words for a code. False always. */
static bool failed(engine *e, const char *what, int code)
{
    char text[512] = "";
    int n = 0;
    if (e->lib.fn.Error_string(code, text, &n) != 0)
        snprintf(text, sizeof text, "error %d", code);
    snprintf(e->base.why, sizeof e->base.why, "MPI_%s: %.300s", what, text);
    return false;
}

static bool refuse(engine *e, const char *words)
{
    snprintf(e->base.why, sizeof e->base.why, "%s", words);
    return false;
}

/* Leaves the function where MPI fails. */
#define MPI_TRY(e, name, ...)                            \
    do {                                                 \
        const int code_ = (e)->lib.fn.name(__VA_ARGS__); \
        if (code_ != 0)                                  \
            return failed((e), #name, code_);            \
    } while (0)

static bool gather(engine *e, mpi_handle comm, const void *from, void *to, int n)
{
    const mpi_handle byte = e->lib.is.BYTE;
    MPI_TRY(e, Allgather, from, n, byte, to, n, byte, comm);
    return true;
}

/* ---- opening --------------------------------------------------------------------------------------------- */

/* A host that has begun MPI itself calls it on threads of its own. */
static bool begin_mpi(engine *e)
{
    const dc_mpi_constants *is = &e->lib.is;
    int begun = 0, ended = 0, level = 0;
    MPI_TRY(e, Initialized, &begun);
    MPI_TRY(e, Finalized, &ended);
    if (ended)
        return refuse(e, "the program has ended MPI (MPI_Finalize)");
    if (!begun) {
        MPI_TRY(e, Init_thread, NULL, NULL, (int)is->THREAD_FUNNELED, &level);
        e->began = true;
        return true;
    }
    MPI_TRY(e, Query_thread, &level);
    return level >= is->THREAD_SERIALIZED ||
           refuse(e, "the program has begun MPI for one thread, and deepc calls it on another: "
                     "MPI_Init_thread "
                     "with MPI_THREAD_MULTIPLE is needed");
}

static bool find_ranks(engine *e)
{
    const dc_mpi_constants *is = &e->lib.is;
    MPI_TRY(e, Comm_dup, is->COMM_WORLD, &e->all);
    MPI_TRY(e, Comm_set_errhandler, e->all, is->ERRORS_RETURN);
    MPI_TRY(e, Comm_rank, e->all, &e->base.rank);
    MPI_TRY(e, Comm_size, e->all, &e->base.size);
    if (e->base.rank < 0 || e->base.rank >= e->base.size) {
        snprintf(e->base.why, sizeof e->base.why, "%s says that this is rank %d of %d", e->lib.name,
                 e->base.rank, e->base.size);
        return false;
    }
    MPI_TRY(e, Comm_split_type, e->all, (int)is->COMM_TYPE_SHARED, e->base.rank, is->INFO_NULL,
            &e->local);
    MPI_TRY(e, Comm_set_errhandler, e->local, is->ERRORS_RETURN);
    if (e->by.size == 0 || e->by.size == e->base.size)
        return true;
    snprintf(e->base.why, sizeof e->base.why,
             "%s says there are %d processes, the library %s says %d: they do not belong together; "
             "DEEPC_MPI "
             "names the library",
             e->by.name, e->by.size, e->lib.name, e->base.size);
    return false;
}

static bool make_room(engine *e)
{
    const size_t n = (size_t)e->base.size;
    e->host = dc_try_alloc(n * sizeof *e->host);
    e->name = dc_try_alloc(n * sizeof *e->name);
    e->text = dc_try_alloc(n * sizeof *e->text);
    return (e->host != NULL && e->name != NULL && e->text != NULL) || refuse(e, "out of memory");
}

/* What other ranks say: the first of a rank's host is no later one, and the first of its own. */
static bool check_hosts(engine *e)
{
    for (int r = 0; r < e->base.size; r++) {
        const int first = e->host[r];
        if (first >= 0 && first <= r && e->host[first] == first)
            continue;
        snprintf(e->base.why, sizeof e->base.why,
                 "rank %d says that rank %d is the first of its host, which cannot be", r, first);
        return false;
    }
    return true;
}

/* A host is known by the first of its ranks; hosts are counted in the order of these. */
static bool find_hosts(engine *e)
{
    char name[NAME] = "";
    int n = 0, nhost = 0, nlocal = 0, first = e->base.rank;
    MPI_TRY(e, Comm_size, e->local, &nlocal);
    if (nlocal < 1 || nlocal > e->base.size)
        return refuse(e, "MPI says that this host has more ranks than there are");
    int *local = dc_try_alloc((size_t)nlocal * sizeof *local);
    if (local == NULL)
        return refuse(e, "out of memory");
    const bool known = gather(e, e->local, &e->base.rank, local, sizeof *local);
    for (int i = 0; known && !e->apart && i < nlocal; i++)
        first = local[i] < first ? local[i] : first;
    dc_xfree(local);
    MPI_TRY(e, Get_processor_name, name, &n);
    if (!known || !gather(e, e->all, &first, e->host, sizeof first) ||
        !gather(e, e->all, name, e->text, sizeof name) || !check_hosts(e))
        return false;
    for (int r = 0; r < e->base.size; r++) {
        e->text[r][NAME - 1] = '\0';
        e->name[r] = e->text[r];
        e->host[r] = e->host[r] == r ? nhost++ : e->host[e->host[r]];
    }
    e->base.host = e->host;
    e->base.name = e->name;
    return true;
}

static bool open_engine(dc_engine *base)
{
    engine *e = of(base);
    return begin_mpi(e) && find_ranks(e) && make_room(e) && find_hosts(e);
}

/* ---- shared memory ------------------------------------------------------------------------------------------ */

/* What each rank of the host says to the others: the name, of the first; how much it wants; what went wrong, 0 nothing. */
typedef struct offer {
    char name[48];
    uint64_t bytes;
    int error;
} offer;

static int map(engine *e, int file, size_t bytes)
{
    struct stat s;
    if (file < 0)
        return errno;
    if (fstat(file, &s) != 0 || s.st_size < (off_t)bytes) { /* what is behind its end is a fault */
        close(file);
        return EIO;
    }
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const int error = p == MAP_FAILED ? errno : 0;
    close(file);
    if (error == 0) {
        e->segment = p;
        e->segment_bytes = bytes;
    }
    return error;
}

/* All of it is taken at once: later there might be no room, which is a fault and no failure. */
static int create(engine *e, const char *name, size_t bytes)
{
    const int file = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (file < 0)
        return errno;
    const int error = posix_fallocate(file, 0, (off_t)bytes);
    if (error == 0)
        return map(e, file, bytes);
    close(file);
    return error;
}

/* The first error of those on this host. */
static int worst(const offer *all, int n)
{
    int error = 0;
    for (int i = 0; i < n && error == 0; i++)
        error = all[i].error;
    return error;
}

static bool agree_on_memory(engine *e, size_t bytes, offer *all, int n, int me)
{
    offer mine = {.bytes = bytes};
    if (me == 0) {
        snprintf(mine.name, sizeof mine.name, "/deepc-%d-%llx", (int)getpid(),
                 (unsigned long long)dc_clock_ns());
        mine.error = create(e, mine.name, bytes);
    }
    bool fine = gather(e, e->local, &mine, all, sizeof mine);
    all[0].name[sizeof all[0].name - 1] = '\0';
    for (int i = 0; fine && i < n; i++)
        if (all[i].bytes != bytes)
            mine.error = EPROTO;
    if (fine && me > 0 && all[0].error == 0 && mine.error == 0)
        mine.error = map(e, shm_open(all[0].name, O_RDWR, 0), bytes);
    fine = fine && gather(e, e->local, &mine, all, sizeof mine);
    if (me == 0)
        shm_unlink(mine.name);
    const int error = fine ? worst(all, n) : 0;
    if (error == EPROTO)
        refuse(e, "the ranks of this host want different memory in common: they run different "
                  "versions of deepc");
    else if (error != 0)
        snprintf(e->base.why, sizeof e->base.why,
                 "shared memory of %zu MiB (/dev/shm) is not to be had: %s", bytes >> 20,
                 strerror(error));
    return fine && error == 0;
}

static void *share_segment(dc_engine *base, size_t bytes)
{
    engine *e = of(base);
    int n = 0, me = 0;
    const int code = e->lib.fn.Comm_size(e->local, &n) | e->lib.fn.Comm_rank(e->local, &me);
    const bool known = code == 0 && n > 0 && n <= e->base.size && me >= 0 && me < n;
    offer *all = known ? dc_try_alloc((size_t)n * sizeof *all) : NULL;
    if (all == NULL)
        refuse(e, known ? "out of memory" : "MPI does not say which ranks this host has");
    const bool fine = all != NULL && agree_on_memory(e, bytes, all, n, me);
    dc_xfree(all);
    return fine ? e->segment : NULL;
}

/* ---- messages ------------------------------------------------------------------------------------------------ */

static bool send_bytes(dc_engine *base, int rank, int tag, const void *bytes, size_t n,
                       dc_request *r)
{
    engine *e = of(base);
    mpi_handle q = 0;
    DC_ASSERT(n <= INT_MAX, "a message of %zu bytes", n);
    MPI_TRY(e, Isend, bytes, (int)n, e->lib.is.BYTE, rank, tag, e->all, &q);
    *r = (dc_request){{q}};
    return true;
}

static bool recv_bytes(dc_engine *base, int rank, int tag, void *bytes, size_t n, dc_request *r)
{
    engine *e = of(base);
    mpi_handle q = 0;
    DC_ASSERT(n <= INT_MAX, "a message of %zu bytes", n);
    MPI_TRY(e, Irecv, bytes, (int)n, e->lib.is.BYTE, rank, tag, e->all, &q);
    *r = (dc_request){{q, 1, n}};
    return true;
}

static void *no_status(const engine *e)
{
    return (void *)e->lib.is.STATUS_IGNORE;
}

static bool test_request(dc_engine *base, dc_request *r, bool *done)
{
    engine *e = of(base);
    mpi_handle q = (mpi_handle)r->word[0];
    uint64_t status[32] = {0}; /* larger than that of any library */
    int flag = 0, n = 0;
    MPI_TRY(e, Test, &q, &flag, status);
    r->word[0] = q;
    *done = flag != 0;
    if (!*done || r->word[1] == 0)
        return true;
    MPI_TRY(e, Get_count, status, e->lib.is.BYTE, &n); /* a shorter one is no error of MPI */
    if (n >= 0 && (uint64_t)n == r->word[2])
        return true;
    snprintf(e->base.why, sizeof e->base.why, "a message of %d bytes, not %llu", n,
             (unsigned long long)r->word[2]);
    return false;
}

static void cancel_request(dc_engine *base, dc_request *r)
{
    engine *e = of(base);
    mpi_handle q = (mpi_handle)r->word[0];
    if (e->lib.fn.Cancel(&q) == 0)
        e->lib.fn.Request_free(&q);
}

static bool poll_tag(dc_engine *base, int tag, void *bytes, size_t n)
{
    engine *e = of(base);
    const int any = (int)e->lib.is.ANY_SOURCE;
    int flag = 0;
    return e->lib.fn.Iprobe(any, tag, e->all, &flag, no_status(e)) == 0 && flag != 0 &&
           e->lib.fn.Recv(bytes, (int)n, e->lib.is.BYTE, any, tag, e->all, no_status(e)) == 0;
}

static bool is_gone(dc_engine *base, int rank, int pid)
{
    DC_UNUSED(base);
    DC_UNUSED(rank);
    return dc_world_process_gone(pid);
}

/* ---- closing ------------------------------------------------------------------------------------------------- */

/*
 * MPICH on UCX (4.0.2) hangs in MPI_Finalize where messages went by TCP: what flushes a connection has to be answered by the
 * other rank, which answers while it flushes its own, and no more when it waits for the launcher. Where one flushes before the
 * other has come to its end, the other answers, then nobody answers it. So all of them, who have just met, call nothing for
 * a moment, and begin the end together.
 */
static void rest(const engine *e)
{
    bool far = false; /* some are on another host */
    for (int r = 0; r < e->base.size; r++)
        far = far || e->host[r] != e->host[e->base.rank];
    if (far && e->lib.abi != DC_MPI_OPEN)
        nanosleep(&(struct timespec){.tv_nsec = REST_MS * 1000000L}, NULL);
}

/* After a failure MPI is left as it is: its end would wait for all ranks. */
static void close_engine(dc_engine *base, bool clean)
{
    engine *e = of(base);
    if (clean) {
        e->lib.fn.Comm_free(&e->local);
        e->lib.fn.Comm_free(&e->all);
        rest(e);
        if (e->began)
            e->lib.fn.Finalize();
    }
    if (e->segment != NULL)
        munmap(e->segment, e->segment_bytes);
    dc_xfree(e->text);
    dc_xfree(e->name);
    dc_xfree(e->host);
    dc_xfree(e);
}

dc_engine *dc_mpi_engine_new(const dc_mpi_lib *lib, const dc_mpi_launch *by, bool apart)
{
    static const dc_engine_ops ops = {open_engine, share_segment, send_bytes,
                                      recv_bytes,  test_request,  cancel_request,
                                      poll_tag,    is_gone,       close_engine};
    engine *e = dc_xalloc(sizeof *e);
    *e = (engine){.base.ops = &ops, .lib = *lib, .by = *by, .apart = apart};
    return &e->base;
}

dc_status dc_mpi_open(dc_job *j, dc_world **out)
{
    dc_mpi_launch by;
    dc_mpi_lib lib;
    char why[400];
    if (dc_mpi_launcher(j->opt) == NULL || !dc_mpi_find_launch(&by) || by.size == 1)
        return dc_world_alone(j, out);
    if (!dc_mpi_lib_open(j->opt->mpi, &by, &lib, why, sizeof why))
        return dc_failf(j, DC_ERR_WORLD, NULL, "%s", why);
    return dc_world_open(j, dc_mpi_engine_new(&lib, &by, false), out);
}
