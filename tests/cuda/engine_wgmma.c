/*
 * wgmma: products of matrices in shared memory that four warps begin together and wait for later. Operands are found
 * by their descriptors, as the PTX ISA and CUTLASS's comments describe the layouts that are swizzled by 128 bytes. They
 * are read as late as a wait allows or, in half of the random orders, at once; from the instruction to the wait the accumulators
 * hold 0xff. Checked launches also find operands that no fence made visible, or that change meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "engine_impl.h"

enum { ROWS = 64, TERMS = 16, MOST_N = 256, MOST_PRODUCTS = 64, MOST_SUMS = 8, HISTORY = 256 };
enum { ATOM = 1024, PIECE = 16, SWIZZLE_128 = 1 };

/* The accumulators of a thread while products are added to them. */
typedef struct sums {
    float *at; /* NULL: free */
    unsigned n;
    float value[MOST_N / 2];
} sums;

typedef struct product {
    wgmma_operands of;
    int line, group;
    unsigned number; /* of those of the warp */
    sums *to;
    uint32_t bytes; /* sum over those of the operands when it began */
    bool done;
} product;

typedef struct engine_products {
    product at[MOST_PRODUCTS];
    sums sum[MOST_SUMS];
    int n, group;
    unsigned number;
    bool fenced; /* wgmma.fence stands behind the last wait */
} products;

/* What warps of a group began, by number: the first one that comes says it. */
typedef struct history {
    wgmma_operands of;
    int line;
    unsigned number;
} history;

static history begun[ENGINE_MOST_THREADS / 128][HISTORY];

/* Numbers of b, which the lanes of a warp share. */
static struct {
    unsigned number;
    uint32_t block;
    float b[MOST_N][TERMS];
} shared_b[WARPS];

static products *mine(void)
{
    fiber *me = engine_me();
    if (me->products == NULL)
        me->products = calloc(1, sizeof *me->products);
    return me->products;
}

void engine_wgmma_open_thread(fiber *f)
{
    if (f->products != NULL)
        memset(f->products, 0, sizeof *f->products);
}

/* Addresses --------------------------------------------------------------------------------- */

/* As shared memory counts: arrays of the module, then those of the launch; both begin at multiples of what they say. */
static size_t first_dynamic(void)
{
    const size_t offset = (uintptr_t)eng.l->shared % ATOM;
    return (offset + eng.l->shared_bytes + ATOM - 1) / ATOM * ATOM;
}

unsigned engine_shared_address(const void *p)
{
    const size_t at = (uintptr_t)p - (uintptr_t)eng.dynamic;
    if (at < eng.l->dynamic_bytes)
        return (unsigned)(first_dynamic() + at);
    if ((uintptr_t)p - (uintptr_t)eng.l->shared >= eng.l->shared_bytes)
        engine_fail(__builtin_return_address(0), "an address of no shared memory");
    return (unsigned)((uintptr_t)eng.l->shared % ATOM + ((uintptr_t)p - (uintptr_t)eng.l->shared));
}

static const char *memory_at(size_t address, const product *p)
{
    const size_t dynamic = first_dynamic(), offset = (uintptr_t)eng.l->shared % ATOM;
    const char *at =
        address >= dynamic ? eng.dynamic + (address - dynamic) : eng.l->shared + (address - offset);
    if (!engine_is_shared(at) || !engine_is_shared(at + PIECE - 1))
        engine_fail(NULL, "line %d: an operand of wgmma leaves shared memory", p->line);
    return at;
}

/*
 * Element (row, k) of an operand, row being m or n. Rows of 128 bytes are 8 to an atom of 1024; neighbours in them are
 * neighbours along k, "K-major", or along m or n:
 *
 *   along k      row r at r % 8 * 128 + r / 8 * stride
 *   else         k at k % 8 * 128 + k / 8 * stride, and 64 elements further on `leading`
 *
 * Bits 4 to 6 of the address are then those bits and bits 7 to 9, exclusive or.
 */
static const char *element(const product *p, uint64_t descriptor, bool along_k, unsigned row,
                           unsigned k)
{
    const size_t start = (descriptor & 0x3fff) << 4, leading = (descriptor >> 16 & 0x3fff) << 4;
    const size_t stride = (descriptor >> 32 & 0x3fff) << 4;
    size_t at = start;
    if (along_k)
        at += row % 8 * 128 + row / 8 * stride + 2 * (size_t)k;
    else
        at += k % 8 * 128 + k / 8 * stride + row / 64 * leading + 2 * (size_t)(row % 64);
    at &= 0x3ffff;
    at ^= (at >> 7 & 7) << 4;
    return memory_at(at & ~(size_t)(PIECE - 1), p) + at % PIECE;
}

static const char *element_a(const product *p, unsigned row, unsigned k)
{
    return element(p, p->of.a, !p->of.turned_a, row, k);
}

static const char *element_b(const product *p, unsigned col, unsigned k)
{
    return element(p, p->of.b, !p->of.turned_b, col, k);
}

static void check_descriptor(const product *p, uint64_t d, bool along_k)
{
    const size_t start = (d & 0x3fff) << 4, stride = (d >> 32 & 0x3fff) << 4;
    if (d >> 62 != SWIZZLE_128 || (d >> 46 & 0xffff) != 0)
        engine_fail(NULL, "line %d: a descriptor of another layout than swizzled by 128 bytes",
                    p->line);
    /* along k parts of a row follow each other in the atom; else whole groups of 8 rows */
    if (along_k ? start % ATOM + 32 > 128 : start % ATOM != 0)
        engine_fail(NULL, "line %d: a matrix of wgmma begins in no first row of 1024 bytes",
                    p->line);
    if (stride % ATOM != 0)
        engine_fail(NULL, "line %d: rows of wgmma are %zu bytes apart", p->line, stride);
}

/* Each element of the operands once: the lane's two rows of a, and of b, by the first lane, all columns. */
static void each_piece(const product *p, void (*see)(const product *, const char *, void *),
                       void *arg)
{
    const unsigned number = engine_me()->view.number, lane = number & 31;
    const unsigned row = number % 128 / 32 * 16 + lane / 4;
    for (unsigned k = 0; k < TERMS; k++) {
        if (lane % 4 == 0) {
            see(p, element_a(p, row, k), arg);
            see(p, element_a(p, row + 8, k), arg);
        }
        for (unsigned col = 0; lane == 0 && col < p->of.n; col++)
            see(p, element_b(p, col, k), arg);
    }
}

static void add_bytes(const product *p, const char *at, void *arg)
{
    (void)p;
    uint32_t *sum = arg;
    uint16_t x;
    memcpy(&x, at, 2);
    *sum = (*sum ^ x) * 16777619u + 1;
}

static uint32_t sum_of_bytes(const product *p)
{
    uint32_t sum = 2166136261u;
    each_piece(p, add_bytes, &sum);
    return sum;
}

static void check_visible(const product *p, const char *at, void *arg)
{
    (void)arg;
    unsigned writer;
    if (!engine_is_visible(at, 2, &writer))
        engine_fail(
            NULL,
            "line %d: an operand of wgmma that thread %u has written, without a fence to the "
            "asynchronous proxy and a barrier behind",
            p->line, writer);
}

static void check_load(const product *p, const char *at, void *arg)
{
    (void)p, (void)arg;
    engine_check(at, 2, false, NULL);
}

/* Arithmetic -------------------------------------------------------------------------------- */

static float number_at(const product *p, const char *at)
{
    uint16_t x;
    memcpy(&x, at, 2);
    return engine_of_half(x, p->of.kind);
}

static void read_b(const product *p, unsigned warp)
{
    if (shared_b[warp].number == p->number && shared_b[warp].block == eng.first_of_block)
        return;
    shared_b[warp].number = p->number;
    shared_b[warp].block = eng.first_of_block;
    for (unsigned col = 0; col < p->of.n; col++)
        for (unsigned k = 0; k < TERMS; k++)
            shared_b[warp].b[col][k] = number_at(p, element_b(p, col, k));
}

/* The numbers of this lane: two rows, 8 apart; of every 8 columns two neighbours. k ascending. */
static void multiply(product *p)
{
    const unsigned number = engine_me()->view.number, lane = number & 31;
    const unsigned row = number % 128 / 32 * 16 + lane / 4;
    float a[2][TERMS];
    read_b(p, number / 32);
    for (unsigned k = 0; k < TERMS; k++) {
        a[0][k] = number_at(p, element_a(p, row, k));
        a[1][k] = number_at(p, element_a(p, row + 8, k));
    }
    for (unsigned i = 0; i < p->to->n; i++) {
        const unsigned col = i / 4 * 8 + lane % 4 * 2 + i % 2;
        for (unsigned k = 0; k < TERMS; k++)
            p->to->value[i] =
                __builtin_fmaf(a[i / 2 % 2][k], shared_b[number / 32].b[col][k], p->to->value[i]);
    }
    p->done = true;
}

/* Accumulators ------------------------------------------------------------------------------ */

static void check_untouched(const sums *s, int line)
{
    for (unsigned i = 0; i < s->n * sizeof(float); i++)
        if (((const unsigned char *)s->at)[i] != 0xff)
            engine_fail(NULL, "line %d: accumulators of wgmma are written while it is under way",
                        line);
}

static sums *begin_sums(products *all, float *at, unsigned n, int line)
{
    sums *s = NULL;
    for (int i = 0; i < MOST_SUMS; i++) {
        sums *x = &all->sum[i];
        if (x->at == at) {
            if (x->n != n)
                engine_fail(NULL, "line %d: accumulators of a wgmma of another shape", line);
            check_untouched(x, line);
            return x;
        }
        if (x->at != NULL && at < x->at + x->n && x->at < at + n)
            engine_fail(NULL, "line %d: accumulators of wgmma overlap others", line);
        if (x->at == NULL)
            s = x;
    }
    if (s == NULL)
        engine_fail(NULL, "line %d: %d accumulators of wgmma are under way", line, MOST_SUMS);
    if (!all->fenced)
        engine_fail(NULL, "line %d: no wgmma.fence before the first wgmma on registers", line);
    s->at = at;
    s->n = n;
    memcpy(s->value, at, n * sizeof *at);
    memset(at, 0xff, n * sizeof *at);
    return s;
}

/* Those to which nothing is added any more go back to the thread. */
static void end_sums(products *all, int line)
{
    for (int i = 0; i < MOST_SUMS; i++) {
        sums *s = &all->sum[i];
        bool busy = false;
        for (int n = 0; n < all->n; n++)
            busy = busy || all->at[n].to == s;
        if (s->at == NULL || busy)
            continue;
        check_untouched(s, line);
        memcpy(s->at, s->value, s->n * sizeof *s->value);
        s->at = NULL;
    }
}

/* Instructions ------------------------------------------------------------------------------ */

/* The warps of a group begin the same products, their lanes by the same descriptors. */
static void check_history(const product *p)
{
    history *h = &begun[engine_me()->view.number / 128][p->number % HISTORY];
    if (h->number < p->number) {
        *h = (history){p->of, p->line, p->number};
        return;
    }
    if (h->number == p->number && (h->line != p->line || memcmp(&h->of, &p->of, sizeof p->of) != 0))
        engine_fail(NULL, "line %d: the four warps of a wgmma part: line %d, or other operands",
                    p->line, h->line);
}

void engine_wgmma(float *c, const wgmma_operands *of, int line)
{
    products *all = mine();
    fiber *me = engine_me();
    engine_meet(0xffffffffu, line);
    if ((me->view.number | 127) >= eng.n)
        engine_fail(NULL, "line %d: wgmma needs four warps", line);
    if (all->n == MOST_PRODUCTS)
        engine_fail(NULL, "line %d: %d products of wgmma are under way", line, MOST_PRODUCTS);
    product *p = &all->at[all->n];
    *p = (product){.of = *of, .line = line, .group = all->group, .number = ++all->number};
    check_descriptor(p, of->a, !of->turned_a);
    check_descriptor(p, of->b, !of->turned_b);
    check_history(p);
    p->to = begin_sums(all, c, of->n / 2, line);
    all->n++;
    if (eng.l->checked) {
        each_piece(p, check_load, NULL);
        each_piece(p, check_visible, NULL);
        p->bytes = sum_of_bytes(p);
    }
    if (eng.early)
        multiply(p);
}

void engine_wgmma_fence(int line)
{
    engine_meet(0xffffffffu, line);
    mine()->fenced = true;
}

void engine_wgmma_commit(int line)
{
    engine_meet(0xffffffffu, line);
    mine()->group++;
}

static void finish(product *p)
{
    if (eng.l->checked) {
        each_piece(p, check_load, NULL);
        if (sum_of_bytes(p) != p->bytes)
            engine_fail(NULL, "line %d: operands of wgmma change while it is under way", p->line);
    }
    if (!p->done)
        multiply(p);
}

void engine_wgmma_wait(int left, int line)
{
    products *all = mine();
    int kept = 0;
    engine_meet(0xffffffffu, line);
    for (int i = 0; i < all->n; i++) {
        if (all->at[i].group >= all->group - left)
            all->at[kept++] = all->at[i];
        else
            finish(&all->at[i]);
    }
    all->n = kept;
    all->fenced = false;
    end_sums(all, line);
}

/* At the end of a thread, and of a block: nothing is under way, and all warps of a group began the same. */
void engine_wgmma_end_thread(void)
{
    const fiber *me = engine_me();
    if (me->products != NULL && me->products->n > 0)
        engine_fail(NULL, "ends with products of wgmma under way");
}

void engine_wgmma_end_block(void)
{
    for (unsigned i = 0; i < eng.n; i++) {
        const products *p = eng.f[i].products, *first = eng.f[i & ~127u].products;
        if ((p != NULL ? p->number : 0) != (first != NULL ? first->number : 0))
            engine_fail(NULL, "the four warps of a wgmma part: some begin more than others");
    }
}

void engine_wgmma_open_block(void)
{
    memset(begun, 0, sizeof begun);
    eng.early = eng.random != 0 && engine_coin(2) == 0;
}
