#define _POSIX_C_SOURCE 200809L
#include "formats/unpack.h"

#include "core/base/heap.h"

#include <dlfcn.h>
#include <string.h>

/* Of bzlib.h; the same since bzip2 1.0 (libbz2.so.1.0). */
typedef struct bz_stream {
    char *next_in;
    unsigned avail_in, total_in_low, total_in_high;
    char *next_out;
    unsigned avail_out, total_out_low, total_out_high;
    void *state;
    void *(*alloc)(void *, int, int);
    void (*free)(void *, void *);
    void *opaque;
} bz_stream;

enum { BZ_OK = 0, BZ_STREAM_END = 4, BZ_MEM_ERROR = -3 };

/* Of lzma/base.h; the same since XZ Utils 5.0 (liblzma.so.5). */
typedef struct lzma_stream {
    const uint8_t *next_in;
    size_t avail_in;
    uint64_t total_in;
    uint8_t *next_out;
    size_t avail_out;
    uint64_t total_out;
    const void *allocator;
    void *internal;
    void *reserved_ptr[4];
    uint64_t reserved_int[2];
    size_t reserved_size[2];
    int reserved_enum[2];
} lzma_stream;

enum { LZMA_OK = 0, LZMA_STREAM_END = 1, LZMA_MEM_ERROR = 5, LZMA_MEMLIMIT_ERROR = 6 };
enum { LZMA_RUN = 0, LZMA_BUF_ERROR = 10 };

enum { MOST_MEMORY = 1 << 28 }; /* of LZMA's dictionary, whose size a file says */

struct dc_unpack {
    dc_unpack_kind kind;
    void *library;
    union {
        bz_stream bz;
        lzma_stream lzma;
    };
    int (*bz_run)(bz_stream *);
    int (*bz_end)(bz_stream *);
    int (*lzma_run)(lzma_stream *, int);
    void (*lzma_end)(lzma_stream *);
};

static const struct {
    const char *file, *missing;
} libraries[] = {
    {"libbz2.so.1.0", "bzip2 needs libbz2 (libbz2.so.1.0; Debian: apt-get install libbz2-1.0)"},
    {"liblzma.so.5", "LZMA needs liblzma (liblzma.so.5; Debian: apt-get install liblzma5)"},
};

static void *open_library(dc_unpack_kind kind)
{
    return dlopen(libraries[kind].file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

const char *dc_unpack_missing(dc_unpack_kind kind)
{
    void *library = open_library(kind);
    if (library == NULL)
        return libraries[kind].missing;
    dlclose(library);
    return NULL;
}

static bool find(void *library, const char *symbol, void *at)
{
    void *found = dlsym(library, symbol);
    memcpy(at, &found, sizeof found);
    return found != NULL;
}

static bool start_bzip2(dc_unpack *u)
{
    int (*init)(bz_stream *, int, int);
    return find(u->library, "BZ2_bzDecompressInit", &init) &&
           find(u->library, "BZ2_bzDecompress", &u->bz_run) &&
           find(u->library, "BZ2_bzDecompressEnd", &u->bz_end) && init(&u->bz, 0, 0) == BZ_OK;
}

static bool start_lzma(dc_unpack *u)
{
    int (*init)(lzma_stream *, uint64_t);
    return find(u->library, "lzma_alone_decoder", &init) &&
           find(u->library, "lzma_code", &u->lzma_run) &&
           find(u->library, "lzma_end", &u->lzma_end) && init(&u->lzma, MOST_MEMORY) == LZMA_OK;
}

dc_unpack *dc_unpack_open(dc_unpack_kind kind)
{
    dc_unpack *u = dc_xalloc(sizeof *u);
    u->kind = kind;
    u->library = open_library(kind);
    if (u->library != NULL && (kind == DC_UNPACK_BZIP2 ? start_bzip2(u) : start_lzma(u)))
        return u;
    if (u->library != NULL)
        dlclose(u->library);
    dc_xfree(u);
    return NULL;
}

void dc_unpack_close(dc_unpack *u)
{
    if (u == NULL)
        return;
    if (u->kind == DC_UNPACK_BZIP2)
        u->bz_end(&u->bz);
    else
        u->lzma_end(&u->lzma);
    dlclose(u->library);
    dc_xfree(u);
}

const char *dc_unpack_library(const dc_unpack *u)
{
    return libraries[u->kind].file;
}

static dc_flowed run_bzip2(dc_unpack *u, dc_flow *f)
{
    const unsigned in = dc_flow_piece(f->nfrom), out = dc_flow_piece(f->nto);
    memcpy(&u->bz.next_in, &f->from, sizeof f->from); /* it is not const, and not written to */
    u->bz.avail_in = in;
    u->bz.next_out = (char *)f->to;
    u->bz.avail_out = out;
    const int code = u->bz_run(&u->bz);
    return dc_flow_moved(f, f->nfrom - in + u->bz.avail_in, f->nto - out + u->bz.avail_out,
                         code == BZ_OK           ? DC_FLOWED_SOME
                         : code == BZ_STREAM_END ? DC_FLOWED_ALL
                         : code == BZ_MEM_ERROR  ? DC_FLOWED_MEMORY
                                                 : DC_FLOWED_DAMAGED);
}

static dc_flowed run_lzma(dc_unpack *u, dc_flow *f)
{
    u->lzma.next_in = f->from;
    u->lzma.avail_in = f->nfrom;
    u->lzma.next_out = f->to;
    u->lzma.avail_out = f->nto;
    const int code = u->lzma_run(&u->lzma, LZMA_RUN);
    return dc_flow_moved(f, u->lzma.avail_in, u->lzma.avail_out,
                         code == LZMA_OK || code == LZMA_BUF_ERROR ? DC_FLOWED_SOME
                         : code == LZMA_STREAM_END                 ? DC_FLOWED_ALL
                         : code == LZMA_MEM_ERROR || code == LZMA_MEMLIMIT_ERROR
                             ? DC_FLOWED_MEMORY
                             : DC_FLOWED_DAMAGED);
}

dc_flowed dc_unpack_some(dc_unpack *u, dc_flow *f)
{
    return u->kind == DC_UNPACK_BZIP2 ? run_bzip2(u, f) : run_lzma(u, f);
}
