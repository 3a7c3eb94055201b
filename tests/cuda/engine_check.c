/*
 * Races, bounds, alignment, and shared memory without a value: a cell for each word of 4 bytes says
 * who touched it last. Accesses of less than a word split it into cells for its bytes, for good.
 *
 * Cells are never cleared: they hold epochs, which only rise (engine_impl.h). Two accesses, one of
 * them a store, are ordered if they are of one thread, or of one block with a barrier between, or of
 * one warp with a meeting of its lanes between; those of two blocks of a launch never are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "engine_impl.h"

enum { LANES = 1, WARPS_READ = 2, BLOCKS = 4 }; /* cell.r_many: several of these have read */

typedef struct engine_cell {
    uint32_t w_epoch, w_warp; /* last store: epoch, and warp_epoch of its warp */
    uint32_t r_epoch, r_warp; /* last load */
    uint32_t flight;          /* first_of_block while an asynchronous copy goes here */
    uint32_t w_fences;        /* of the thread that stored, before it */
    uint16_t w_thread, r_thread;
    uint8_t r_many, split;
} cell;

engine_memory engine_device;
static engine_area fixed, dynamic; /* shared memory */
static size_t fixed_room;

/* Cells ------------------------------------------------------------------------------------- */

static cell *new_cells(size_t n)
{
    void *p = mmap(NULL, n * sizeof(cell), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "CUDA stand-in: no address space for checked launches\n");
        abort();
    }
    return p;
}

static size_t words_of(const engine_area *a)
{
    return a->bytes / 4 + 1;
}

static size_t bytes_of(const engine_area *a)
{
    return a->bytes + 4;
}

void engine_forget(engine_area *a)
{
    if (a->word != NULL)
        munmap(a->word, words_of(a) * sizeof(cell));
    if (a->byte != NULL)
        munmap(a->byte, bytes_of(a) * sizeof(cell));
    a->word = a->byte = NULL;
}

void engine_check_open(void)
{
    if (eng.l->shared_bytes > fixed_room) { /* cells for the largest so far */
        fixed.bytes = fixed_room;
        engine_forget(&fixed);
        fixed.bytes = fixed_room = eng.l->shared_bytes;
        fixed.word = new_cells(words_of(&fixed));
        fixed.byte = new_cells(bytes_of(&fixed));
    }
    if (dynamic.word == NULL) {
        dynamic = (engine_area){.begin = eng.dynamic, .bytes = ENGINE_MOST_DYNAMIC};
        dynamic.word = new_cells(words_of(&dynamic));
        dynamic.byte = new_cells(bytes_of(&dynamic));
    }
    fixed.begin = eng.l->shared;
    fixed.bytes = eng.l->shared_bytes;
    dynamic.bytes = eng.l->dynamic_bytes;
}

static bool is_shared_area(const engine_area *a)
{
    return a == &fixed || a == &dynamic;
}

static bool within(const engine_area *a, const void *p)
{
    return (uintptr_t)p - (uintptr_t)a->begin < a->bytes;
}

bool engine_is_shared(const void *p)
{
    return (uintptr_t)p - (uintptr_t)eng.l->shared < eng.l->shared_bytes ||
           (uintptr_t)p - (uintptr_t)eng.dynamic < eng.l->dynamic_bytes;
}

/* Races ------------------------------------------------------------------------------------- */

static unsigned block_of(uint32_t epoch)
{
    unsigned lo = 0, hi = eng.blocks_run;
    while (hi - lo > 1) {
        const unsigned m = (lo + hi) / 2;
        if (eng.block_epoch[m] <= epoch)
            lo = m;
        else
            hi = m;
    }
    return eng.block_number[lo];
}

/* "shared memory + 12", "byte 12 of an allocation of 100" */
static const char *place(const engine_area *a, const void *p)
{
    static char text[80];
    const size_t at = (size_t)((const char *)p - a->begin);
    if (is_shared_area(a))
        snprintf(text, sizeof text, "%sshared memory + %zu", a == &dynamic ? "dynamic " : "", at);
    else
        snprintf(text, sizeof text, "byte %zu of an allocation of %zu", at, a->bytes);
    return text;
}

static void race(const engine_area *a, const void *p, bool store, uint32_t epoch, unsigned thread,
                 const char *did, const void *pc)
{
    engine_fail(pc, "race: a %s %s, which thread %u of block %u has %s",
                store ? "store to" : "load of", place(a, p), thread, block_of(epoch), did);
}

/* Is what a thread of this launch did before what the thread at hand does? */
static bool ordered(uint32_t epoch, unsigned thread, uint32_t warp_epoch)
{
    const unsigned me = eng.rt.now->number;
    return epoch >= eng.first_of_block &&
           (thread == me || epoch != eng.epoch ||
            (thread / 32 == me / 32 && warp_epoch != eng.warp_epoch[me / 32]));
}

static bool readers_ordered(const cell *c)
{
    const unsigned me = eng.rt.now->number;
    if (c->r_many & BLOCKS)
        return false;
    if (c->r_epoch == eng.epoch) {
        if (c->r_many & WARPS_READ)
            return false;
        if ((c->r_many & LANES) &&
            (c->r_thread / 32 != me / 32 || c->r_warp == eng.warp_epoch[me / 32]))
            return false;
    }
    return ordered(c->r_epoch, c->r_thread, c->r_warp);
}

static void note_load(cell *c, bool again)
{
    const unsigned me = eng.rt.now->number;
    uint8_t many = again ? c->r_many & BLOCKS : 0;
    if (again && c->r_epoch < eng.first_of_block)
        many |= BLOCKS;
    else if (again && c->r_epoch == eng.epoch) {
        many |= c->r_many & WARPS_READ;
        if (c->r_thread / 32 != me / 32)
            many |= WARPS_READ;
        else if (c->r_warp == eng.warp_epoch[me / 32])
            many |= (uint8_t)((c->r_many & LANES) | (c->r_thread != me ? LANES : 0));
    }
    c->r_epoch = eng.epoch;
    c->r_warp = eng.warp_epoch[me / 32];
    c->r_thread = (uint16_t)me;
    c->r_many = many;
}

static void check_cell(cell *c, const engine_area *a, const void *p, bool store, const void *pc)
{
    const bool shared = is_shared_area(a);
    const uint32_t first = shared ? eng.first_of_block : eng.first_of_launch;
    if (shared && c->flight == eng.first_of_block)
        engine_fail(pc, "a %s %s while an asynchronous copy goes there",
                    store ? "store to" : "load of", place(a, p));
    if (c->w_epoch >= first && !ordered(c->w_epoch, c->w_thread, c->w_warp))
        race(a, p, store, c->w_epoch, c->w_thread, "written", pc);
    if (!store) {
        if (shared && c->w_epoch < first)
            engine_fail(pc, "%s is read and was not written in this block", place(a, p));
        note_load(c, c->r_epoch >= first);
        return;
    }
    if (c->r_epoch >= first && !readers_ordered(c))
        race(a, p, true, c->r_epoch, c->r_thread, "read", pc);
    c->w_epoch = eng.epoch;
    c->w_warp = eng.warp_epoch[eng.rt.now->number / 32];
    c->w_thread = (uint16_t)eng.rt.now->number;
    c->w_fences = engine_me()->fences;
}

/* Cells of bytes, from that of their word. */
static cell *split(engine_area *a, size_t at)
{
    cell *word = &a->word[at / 4];
    if (a->byte == NULL)
        a->byte = new_cells(bytes_of(a));
    if (!word->split) {
        word->split = 1;
        for (size_t i = 0; i < 4; i++)
            a->byte[at / 4 * 4 + i] = *word;
    }
    return &a->byte[at];
}

static void check_area(engine_area *a, const char *p, size_t bytes, bool store, const void *pc)
{
    const size_t at = (size_t)(p - a->begin);
    if (a->word == NULL)
        a->word = new_cells(words_of(a));
    for (size_t i = 0; i < bytes;) {
        const bool whole = (at + i) % 4 == 0 && bytes - i >= 4;
        cell *word = &a->word[(at + i) / 4];
        if (whole && !word->split) {
            check_cell(word, a, p + i, store, pc);
            i += 4;
        } else {
            check_cell(split(a, at + i), a, p + i, store, pc);
            i++;
        }
    }
}

/* Accesses ---------------------------------------------------------------------------------- */

static engine_area *find_global(const char *p, size_t bytes, const void *pc)
{
    static engine_area *last[4]; /* used in this launch */
    static uint32_t launch;
    static unsigned next;
    if (launch != eng.first_of_launch)
        last[0] = last[1] = last[2] = last[3] = NULL;
    launch = eng.first_of_launch;
    for (unsigned i = 0; i < 4; i++)
        if (last[i] != NULL && p >= last[i]->begin && p + bytes <= last[i]->begin + last[i]->bytes)
            return last[i];
    engine_area *a = engine_device.around(p);
    if (a == NULL || p + bytes > a->begin + a->bytes)
        engine_fail(pc, "%s", engine_device.wrong(p, bytes));
    next = (next + 1) % 4;
    return last[next] = a;
}

/* The area of an access that is in bounds; NULL: it is of the thread itself. */
static engine_area *find_area(const char *p, size_t bytes, const void *pc)
{
    engine_area *const shared = within(&fixed, p) ? &fixed : within(&dynamic, p) ? &dynamic : NULL;
    if (shared != NULL) {
        if (p + bytes > shared->begin + shared->bytes)
            engine_fail(pc, "%zu bytes at %s leave it: it has %zu", bytes, place(shared, p),
                        shared->bytes);
        return shared;
    }
    if ((uintptr_t)p - (uintptr_t)eng.dynamic < ENGINE_MOST_DYNAMIC)
        engine_fail(pc, "dynamic shared memory + %zu: it has %zu bytes", (size_t)(p - eng.dynamic),
                    dynamic.bytes);
    if ((uintptr_t)p - (uintptr_t)engine_device.base < engine_device.bytes)
        return find_global(p, bytes, pc);
    if ((uintptr_t)p < 1 << 16)
        engine_fail(pc, "%zu bytes at %p are in no allocation", bytes, (const void *)p);
    return NULL;
}

void engine_check(const void *p, size_t bytes, bool store, const void *pc)
{
    engine_area *a = find_area(p, bytes, pc);
    if (a != NULL)
        check_area(a, p, bytes, store, pc);
}

void engine_access(const void *p, unsigned long bytes, int store, const void *pc)
{
    engine_area *a = find_area(p, bytes, pc);
    if (a == NULL)
        return;
    if (bytes <= 16 && (bytes & (bytes - 1)) == 0 && ((uintptr_t)p & (bytes - 1)) != 0)
        engine_fail(pc, "%lu bytes at %s are not aligned", bytes, place(a, p));
    if (engine_counts_traffic && bytes <= 16)
        engine_traffic_note((const char *)p - (is_shared_area(a) ? (uintptr_t)a->begin : 0),
                            (unsigned)bytes, store != 0, is_shared_area(a), pc);
    check_area(a, p, bytes, store != 0, pc);
}

/* Atomic operations are ordered among themselves; they are in bounds. */
void engine_atomic(void *p, unsigned bytes, const void *pc)
{
    if (!eng.l->checked)
        return;
    if (((uintptr_t)p & (bytes - 1)) != 0)
        engine_fail(pc, "an atomic operation on %u bytes at %p is not aligned", bytes, p);
    find_area(p, bytes, pc);
}

void engine_async_proxy(void)
{
    engine_me()->fences++;
}

/* Fenced by the thread that wrote it, and behind that a barrier, or it is this one. */
bool engine_is_visible(const void *p, size_t bytes, unsigned *writer)
{
    engine_area *a = find_area(p, bytes, NULL);
    const size_t at = (size_t)((const char *)p - a->begin);
    for (size_t i = at; i < at + bytes; i++) {
        const cell *c = a->word[i / 4].split ? &a->byte[i] : &a->word[i / 4];
        const fiber *w = &eng.f[c->w_thread];
        *writer = c->w_thread;
        if ((w == engine_me() ? w->fences : w->fences_at_barrier) == c->w_fences)
            return false;
    }
    return true;
}

void engine_flight(const void *p, unsigned bytes, bool begins)
{
    engine_area *a = find_area(p, bytes, NULL);
    const size_t at = (size_t)((const char *)p - a->begin);
    for (size_t i = 0; i < bytes; i += 4) { /* whole words: copies are aligned */
        cell *word = &a->word[(at + i) / 4];
        word->flight = begins ? eng.first_of_block : 0;
        for (size_t b = 0; word->split && b < 4; b++)
            a->byte[at + i + b].flight = word->flight;
    }
}
