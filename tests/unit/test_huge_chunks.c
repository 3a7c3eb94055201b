/*
 * backends/cpu/huge_chunks: pieces of any size do not overlap and keep what was written to them, spans join when they
 * are free again, chunks are given back; the device takes pieces from them once there are many.
 */
#include "backends/cpu/cpu_impl.h"
#include "core/base/heap.h"

#include <string.h>

#include "tests/t.h"
#include "tests/unit/rng.h"

enum { PIECES = 200 };

typedef struct piece {
    unsigned char *mem;
    size_t bytes;
    unsigned char mark;
} piece;

static void check_piece(const piece *p)
{
    for (size_t i = 0; i < p->bytes; i += 997)
        if (p->mem[i] != p->mark) {
            CHECK(!"another piece wrote to this one");
            return;
        }
    CHECK(p->mem[p->bytes - 1] == p->mark);
}

static void check_spans(const dc_chunk *x)
{
    uint32_t used = 0, largest = 0, at = 0;
    bool after_free = false;
    while (at < DC_SPANS) {
        const bool free = x->span[at] < 0;
        const uint32_t pages = (uint32_t)(free ? -x->span[at] : x->span[at]);
        if (pages == 0 || (free && after_free)) {
            CHECK(!"two free spans side by side, or one of no pages");
            return;
        }
        used += free ? 0 : pages;
        largest = free && pages > largest ? pages : largest;
        after_free = free;
        at += pages;
    }
    CHECK(at == DC_SPANS && used == x->used && largest <= x->largest);
}

static dc_status take_and_give(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    rng *r = arg;
    dc_chunks c = {0};
    static piece at[PIECES];
    for (int step = 0; step < 4000; step++) {
        piece *p = &at[rng_below(r, PIECES)];
        if (p->mem != NULL) {
            check_piece(p);
            CHECK(dc_chunks_give(&c, p->mem));
            *p = (piece){0};
        } else {
            p->bytes = (size_t)1 + (size_t)rng_below(r, rng_below(r, 10) == 0 ? 4 << 20 : 300000);
            p->mark = (unsigned char)rng_below(r, 256);
            p->mem = dc_chunks_take(&c, p->bytes);
            CHECK(p->mem != NULL && (uintptr_t)p->mem % DC_SPAN_BYTES == 0);
            memset(p->mem, p->mark, p->bytes);
        }
        if (step % 50 == 0)
            for (uint32_t i = 0; i < c.at.n; i++)
                check_spans(c.at.at[i]);
    }
    CHECK(c.at.n > 1);
    for (int i = 0; i < PIECES; i++)
        if (at[i].mem != NULL) {
            check_piece(&at[i]);
            CHECK(dc_chunks_give(&c, at[i].mem));
            at[i] = (piece){0};
        }
    CHECK_EQ(c.at.n, 1); /* one stays */
    CHECK(c.at.at[0]->used == 0 && c.at.at[0]->span[0] == -DC_SPANS);
    CHECK(!dc_chunks_give(&c, &c));
    dc_chunks_free(&c);
    return DC_OK;
}

static dc_status whole_chunk(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    DC_UNUSED(arg);
    dc_chunks c = {0};
    void *a = dc_chunks_take(&c, DC_CHUNK_BYTES), *b = dc_chunks_take(&c, 1);
    CHECK(a != NULL && b != NULL && c.at.n == 2);
    CHECK(dc_chunks_give(&c, a) && dc_chunks_take(&c, DC_CHUNK_BYTES) == a && c.at.n == 2);
    dc_chunks_free(&c);
    return DC_OK;
}

/* Small ones and large ones are blocks of their own; those between are pieces, behind the first 16 MB. */
static dc_status of_device(dc_job *j, void *arg)
{
    enum { MANY = 40 };
    void *mem[MANY], *small, *large;
    dc_cpu cpu = {0};
    DC_UNUSED(arg);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(dc_cpu_alloc(&cpu.device, j, 1 << 20, &mem[i]), DC_OK);
    CHECK_EQ(dc_cpu_alloc(&cpu.device, j, 1000, &small), DC_OK);
    CHECK_EQ(dc_cpu_alloc(&cpu.device, j, 8 << 20, &large), DC_OK);
#ifndef __SANITIZE_ADDRESS__
    CHECK_EQ(cpu.chunks.at.n, 2);
    CHECK_EQ(cpu.chunks.at.at[0]->used + cpu.chunks.at.at[1]->used, (MANY - 16) * 256);
#endif
    for (int i = 0; i < MANY; i++)
        dc_cpu_release(&cpu.device, mem[i]);
    dc_cpu_release(&cpu.device, small);
    dc_cpu_release(&cpu.device, large);
    CHECK(cpu.chunks.at.n <= 1);
    dc_chunks_free(&cpu.chunks);
    return DC_OK;
}

int main(int argc, char **argv)
{
    static const dc_opts opt;
    rng r = {rng_seed(argc, argv, 20261127)};
    dc_job job;
    dc_job_init(&job, &opt, NULL);
    CHECK_EQ(dc_protect(&job, take_and_give, &r), DC_OK);
    CHECK_EQ(dc_protect(&job, whole_chunk, NULL), DC_OK);
    CHECK_EQ(dc_protect(&job, of_device, NULL), DC_OK);
    dc_job_fini(&job);
    return t_done();
}
